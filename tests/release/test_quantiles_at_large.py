"""Distributions by place where the numeric axis is the spine, or places are many."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.distribution.places import Distributions
from hedgerow.release.execution import in_memory
from hedgerow.release.page.report import page
from tests.made import all_leaves, plain_plan
from tests.release.dense import Dense

TOWNS = {"town": ["p1", "p2", "p3", "q1", "q2", "r1"], "county": ["p", "p", "p", "q", "q", "r"]}
AREAS = {"town": ["p1", "q1", "r1", "q1", "p2", "p1"], "area": list("aabbcc")}
RANGES = hr.Ranges("income", [0, 10, 20, 35, 50, 80, 100])
RANKS = [0.1, 0.5, 0.875]


def in_two_axes(places, workload):
    """A release over bins, then places that are an attribute of them."""
    place = hr.Axis.from_frame("place", places, ["county", "town"], attribute=True)
    tree = hr.Tree([hr.numeric_axis(RANGES, [3, 2]), place])
    plan = plain_plan(tree, budget=hr.Rho("1/4"), workload=workload)
    counts = all_leaves(tree, np.arange(1, tree.leaves + 1) * 7 % 23)
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(2))


@pytest.mark.parametrize("where", [{}, {"place": "town"}, {"place": "county"}, {"areas": AREAS}])
@pytest.mark.parametrize("workload", [hr.Cube(), hr.Cuboids(["income.bin × place.town"])])
def test_bins_may_be_the_spine_that_places_stand_beside(where, workload):
    """Cuts are sums of several nodes of the spine: variances are those of dense matrices."""
    release = in_two_axes(TOWNS, workload)
    assert release.plan.design.along is not None
    dense, asked = Dense(release), Distributions.of(release.content, "income", where)
    shown = asked.sums.labelled(np.arange(asked.sums.many))
    rows = np.ones((1, len(dense.leaves)))
    if shown.width:
        rows = dense.sums(shown, pl.DataFrame(AREAS) if "areas" in where else None)
    first = dense.leaves["income_bin"].str.slice(0, 1).cast(pl.Int64).to_numpy()
    before = np.stack([rows * (first < b) for b in range(7)], axis=1)
    np.testing.assert_allclose(asked.cumulative.estimate, before @ dense.x, atol=1e-6)
    for q in RANKS:
        forms = before - q * rows[:, None]
        variance = np.einsum("pbi,ij,pbj->pb", forms, dense.covariance, forms)
        np.testing.assert_allclose(asked.excess(q), variance, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cuboids", ["cube", ["place.tract × income.bin", "place.county"]])
def test_eight_thousand_places_have_medians_where_variances_are_products(cuboids):
    codes = {"tract": [f"{i:04d}" for i in range(8000)]}
    codes["county"] = [code[:2] for code in codes["tract"]]
    place = hr.Axis.from_frame("place", codes, ["county", "tract"])
    tree = hr.Tree([place, hr.numeric_axis(hr.Ranges.equal_width("income", 0, 64, 64))])
    workload = hr.Cube() if cuboids == "cube" else hr.Cuboids(cuboids)
    plan = plain_plan(tree, budget=hr.Rho(1), workload=workload)
    places = np.arange(8000, dtype=np.int32)
    counts = hr.Counts.from_leaves(tree, (places, places % 64), np.full(8000, 900))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    told = release.quantiles("income", [0.5], place="tract")
    assert len(told) == 8000
    held = (told["low"].to_numpy() <= places % 64) & (places % 64 < told["high"].to_numpy())
    assert held.mean() > 0.93


@pytest.mark.parametrize("width", [1e-30, 1e-310])
def test_a_page_has_no_quartiles_of_bins_narrower_than_browsers_write(width, tmp_path):
    ranges = hr.Ranges("income", [0, width, 2 * width, 1])
    place = hr.Axis.from_frame("place", TOWNS, ["county", "town"])
    tree = hr.Tree([place, hr.numeric_axis(ranges)])
    plan = plain_plan(tree, budget=hr.Rho(1), workload=hr.Cube())
    counts = all_leaves(plan.tree, np.full(plan.tree.leaves, 50))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    release.write(tmp_path / "out")
    html = page(tmp_path / "out", plan, hr.Euclidean(), "a version")
    assert '"digits":20' in html
    assert 'id="quartiles-' not in html
