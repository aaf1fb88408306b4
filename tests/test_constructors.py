"""What goes into a plan is refused where it comes in, in one sentence, if it is another thing."""

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.distribution.plan import ForDistribution
from hedgerow.errors import HedgerowError
from tests.made import fixed_axis

TREE = hr.Tree([fixed_axis("geo", 2, 2)])
COUNTS = hr.Counts.from_leaves(TREE, (np.arange(4, dtype=np.int32),), np.arange(4) + 1)
NEEDED = {
    "tree": TREE, "axes": list(TREE.axes), "counts": COUNTS, "budget": hr.Rho(1), "low": 0,
    "high": 2, "bins": 2, "name": "x", "edges": [0, 1, 2], "public": True, "rho": 1, "epsilon": 1,
    "delta": "1e-6", "ratio": 2, "given": [1], "ranks": ["1/2"], "sigma2": 1, "scale": 1,
    "url": "sqlite:///x.db", "sql": "SELECT 1", "ranges": hr.Ranges("x", [0, 1, 2]),
    "levels": {"g1": 1}, "queries": {"g1": {"total": 1}},
}  # fmt: skip
ODD = [
    object(), "x", "", None, 5, -1, 0.5, float("nan"), [], [object()], {}, {"a": object()}, COUNTS,
    hr.All, int, b"x", True, [None], ["x"], np.array([1.0]), (1, 2), hr.Rho(1), 10**400, "x" * 9999,
    hr.Prior(COUNTS, public=True),
]  # fmt: skip
MAKERS: list[Any] = [
    hr.Optimal, hr.Fair, hr.Shares, hr.QueryShares, hr.Quantiles, hr.Tree, hr.Ranges,
    hr.Ranges.equal_width, hr.Query, hr.Prior, ForDistribution, hr.AddRemove, hr.Replace,
    hr.Rho, hr.Epsilon, hr.EpsilonDelta, hr.DiscreteGaussian, hr.DiscreteLaplace, hr.make_plan,
    hr.plan_distribution, hr.Chebyshev, hr.Euclidean, hr.Sparse,
]  # fmt: skip


PARAMETERS = [(maker, name) for maker in MAKERS for name in inspect.signature(maker).parameters]


@pytest.mark.parametrize(
    ("maker", "name"), PARAMETERS, ids=lambda part: getattr(part, "__qualname__", part)
)
def test_another_kind_of_thing_is_refused_at_the_door_in_a_short_sentence(
    maker, name, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # "x" is a directory that a release may be written to
    given = inspect.signature(maker).parameters.values()
    needed = {p.name: NEEDED[p.name] for p in given if p.default is p.empty}
    longest = 0
    for odd in ODD:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of NumPy, about what it makes of odd things
            try:
                maker(**{**needed, name: odd})
            except HedgerowError as error:
                longest = max(longest, len(str(error)))
    assert longest < 500


def test_a_table_in_place_of_a_prior_is_told_what_a_prior_is():
    with pytest.raises(hr.PlanError, match=r"must be Prior\(counts, public=True\).*, got Counts$"):
        hr.Optimal(prior=COUNTS)
    with pytest.raises(hr.PlanError, match=r"must be Prior\(counts, public=True\)"):
        hr.cheapest(TREE, target=5, prior=COUNTS)
    with pytest.raises(hr.PlanError, match="must be Counts"):
        hr.Prior({"n": [1]}, public=True)
