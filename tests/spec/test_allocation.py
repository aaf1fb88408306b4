"""``[allocation]`` becomes a type; keys that do not go together and own priors are refused."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.distribution.plan import ForDistribution
from hedgerow.errors import PlanError, SpecError
from hedgerow.plan.allocation.fair import Fair
from hedgerow.spec.allocation import AllocationSpec
from hedgerow.spec.release_file import AllocationSection, ReleaseFile
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.table import TableSpec

AXIS = {"name": "place", "levels": ["town"], "areas": "towns.csv"}


@pytest.fixture
def tree():
    return hr.Tree(
        [hr.Axis.from_frame("place", pl.DataFrame({"town": ["a", "b"]}), levels=["town"])]
    )


@pytest.fixture
def spec_of(tmp_path):
    """The allocation that keys describe, beside a table of two towns."""
    table = pl.DataFrame({"town": ["a", "b", "b"], "who": ["p", "p", "q"]})
    table.write_csv(tmp_path / "table.csv")
    table.write_csv(tmp_path / "copy.csv")
    pl.DataFrame({"town": ["a"] * 5}).write_csv(tmp_path / "earlier.csv")

    def made(prior=None, unit=None, **keys):
        if prior is not None:
            keys["prior"] = {"source": prior, "public": True}
        section = AllocationSection.model_validate(keys)
        told = {"table": {"source": "table.csv", "unit": unit}, "axis": [AXIS], "privacy": {}}
        return AllocationSpec(section, TableSpec(ReleaseFile.model_validate(told), tmp_path))

    return made


@pytest.mark.parametrize(
    ("keys", "made"),
    [
        ({}, None),
        ({"method": "uniform"}, hr.Uniform()),
        ({"method": "shares", "shares": ["1/4", "3/4"]}, hr.Shares(["1/4", "3/4"])),
        (
            {
                "method": "shares",
                "levels": {"town": "1/2"},
                "queries": {"town": {"total": "1/3", "sex × race": "2/3"}},
            },
            hr.QueryShares({"town": "1/2"}, {"town": {"total": "1/3", "sex × race": "2/3"}}),
        ),
        ({"method": "distribution"}, ForDistribution()),
        ({"method": "distribution", "objective": "cdf"}, ForDistribution()),
        ({"method": "distribution", "objective": "ranges"}, ForDistribution(hr.AllRanges())),
        (
            {"method": "distribution", "objective": "quantiles", "quantiles": ["1/4", "0.5"]},
            ForDistribution(hr.Quantiles(["1/4", "1/2"])),
        ),
        ({"method": "fair", "ratio": "3/2"}, Fair(1.5)),
        ({"method": "fair", "ratio": 2, "importance": [1, "1/2"]}, Fair(2.0, (1.0, 0.5))),
    ],
    ids=[
        "usual",
        "uniform",
        "shares",
        "shares-by-query",
        "distribution",
        "cdf",
        "ranges",
        "quantiles",
        "fair",
        "fair-weighted",
    ],
)
def test_an_allocation_is_what_its_keys_say(spec_of, tree, keys, made):
    assert spec_of(**keys).allocation(tree) == made


@pytest.mark.parametrize(
    ("keys", "made"),
    [
        ({}, (None, None, None)),
        ({"importance": {"town": "1/2"}}, ({"town": 0.5}, None, None)),
        ({"importance": [1, "1/2"], "objective": "released"}, ((1.0, 0.5), "released", None)),
        ({"importance": "levels", "objective": "released"}, (hr.PerLevel(), "released", None)),
        ({"importance": "relative", "prior": "earlier.csv"}, (hr.Relative(), None, 5)),
    ],
    ids=["plain", "of-a-level", "released", "levels", "relative"],
)
def test_the_optimal_one_has_its_importance_objective_and_prior(spec_of, tree, keys, made):
    found = spec_of(method="optimal", **keys).allocation(tree)
    records = None if found.prior is None else found.prior.counts.total
    assert (found.importance, found.objective, records) == made


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"method": "shares"}, "shares = "),
        ({"shares": [1]}, 'shares goes with method = "shares"'),
        ({"method": "fair"}, "ratio goes with"),
        ({"method": "shares", "levels": {"town": 1}}, "levels goes with queries"),
        (
            {"method": "shares", "queries": {"town": {"total": 1}}},
            "queries goes with levels: lev",
        ),
        ({"levels": {"town": 1}, "queries": {"town": {"total": 1}}}, 'with method = "shares"'),
        (
            {
                "method": "shares",
                "shares": [1],
                "levels": {"town": 1},
                "queries": {"town": {"total": 1}},
            },
            "not both",
        ),
        ({"ratio": 2}, "ratio goes with"),
        ({"method": "fair", "ratio": 2, "importance": {"town": 1}}, "importance as a list"),
        ({"method": "fair", "ratio": 2, "importance": "relative"}, "importance as a list"),
        ({"method": "fair", "ratio": 2, "objective": "cells"}, "objective goes with method = "),
        (
            {"method": "fair", "ratio": 2, "prior": "earlier.csv"},
            'prior goes with method = "optimal"',
        ),
        ({"importance": [1, 1]}, 'goes with method = "optimal" or "fair"'),
        ({"prior": "earlier.csv"}, 'goes with method = "optimal"'),
        ({"method": "distribution", "objective": "cells"}, "goes with method = "),
        ({"objective": "released"}, 'goes with method = "optimal" or "distribution"'),
        ({"method": "optimal", "objective": "ranges"}, 'goes with method = "distribution"'),
        ({"quantiles": ["1/2"]}, 'goes with method = "distribution"'),
        ({"method": "distribution", "quantiles": ["1/2"]}, 'goes with objective = "quantiles"'),
        (
            {"method": "distribution", "objective": "quantiles"},
            'goes with objective = "quantiles"',
        ),
    ],
    ids=str,
)
def test_keys_that_do_not_go_together_are_refused(spec_of, tree, keys, said):
    with pytest.raises(SpecError, match=said):
        spec_of(**keys).allocation(tree)


@pytest.mark.parametrize(
    "keys",
    [
        {"method": "optimal", "importance": ["1e999"]},
        {"method": "optimal", "importance": {"town": "1e999"}},
        {"method": "fair", "ratio": "1e999"},
    ],
    ids=["list", "table", "ratio"],
)
def test_numbers_that_no_float_holds_are_refused(spec_of, tree, keys):
    with pytest.raises(PlanError, match="too large for a number"):
        spec_of(**keys).allocation(tree)


def test_the_table_is_not_its_own_prior(spec_of, tree):
    with pytest.raises(SpecError, match="the prior is the confidential table itself"):
        spec_of(method="optimal", prior="table.csv").prior(tree)


@pytest.mark.parametrize("unit", [None, "who"])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_copy_of_the_table_is_known_as_a_prior_to_a_person_at_a_terminal(
    spec_of, tree, unit, bounded
):
    """However its contributions are counted; one that differs is."""
    spec = spec_of(method="optimal", prior="copy.csv", unit=unit)
    counts = spec.table.counts(tree, bounded=bounded)
    assert spec.is_own_prior(tree, counts)
    assert not spec_of(method="optimal", prior="earlier.csv", unit=unit).is_own_prior(tree, counts)
    assert not spec_of(unit=unit).is_own_prior(tree, counts)


TWO_AXES = """
[table]
source = "table.csv"
[[axis]]
name = "place"
levels = ["town"]
areas = "towns.csv"
[[axis]]
name = "income"
low = 0
high = 40
bins = 4
out_of_bounds = "refuse"
[workload]
cuboids = "cube"
[privacy]
rho = 1
"""


@pytest.fixture
def incomes_of(tmp_path):
    """Reads a prior beside a table of four incomes in two towns.

    Its counts, int (towns, bins), and whether it is known as the table once more.
    """
    own = pl.DataFrame({"town": ["a", "b", "b", "b"], "income": [3.5, 12.0, 19.0, 40.0]})
    own.write_csv(tmp_path / "table.csv")
    pl.DataFrame({"town": ["a", "b"]}).write_csv(tmp_path / "towns.csv")
    path = tmp_path / "release.toml"
    path.write_text(TWO_AXES)

    def read(header=None, /, *, given=None, **columns):
        """A file of columns, under a header of its own; what else the section says of it."""
        text = pl.DataFrame(columns).write_csv()
        (tmp_path / "earlier.csv").write_text(header + text[text.index("\n") :] if header else text)
        spec = ReleaseSpec(path)
        tree = spec.tree()
        prior = {"source": "earlier.csv", "public": True, **(given or {})}
        given = {"method": "optimal", "prior": prior}
        allocation = AllocationSpec(AllocationSection.model_validate(given), spec.table)
        found = allocation.prior(tree).counts
        counts = np.zeros((2, 4), int)
        counts[tuple(found.codes)] = found.values
        return counts.tolist(), allocation.is_own_prior(tree, spec.table.counts(tree))

    return read


def test_the_numbers_of_a_prior_are_put_into_the_bins_of_the_axis(incomes_of):
    told = incomes_of(town=["a", "a", "b"], income=[2.5, 9.0, 31.0])
    assert told == ([[2, 0, 0, 0], [0, 0, 0, 1]], False)
    table = {"town": ["b", "b", "a", "b"], "income": [40.0, 12.0, 3.5, 19.0]}
    assert incomes_of(**table, other=list("wxyz")) == ([[1, 0, 0, 0], [0, 2, 0, 1]], True)
    codes = ["0 [0, 10)", "3 [30, 40]"]
    assert incomes_of(town=["a", "b"], income=["x", "y"], income_bin=codes)[0][1] == [0, 0, 0, 1]


def test_other_columns_of_a_prior_with_numbers_are_left_alone(incomes_of):
    rows = {"town": ["a", "b"], "income": [9.0, 31.0]}
    counts = [[1, 0, 0, 0], [0, 0, 0, 1]]
    wide = {f"other{i}": ["x", "y"] for i in range(900)}
    assert incomes_of(**wide, **rows, n=[1, 1])[0] == counts
    assert incomes_of(**wide, **rows, n=[5, 7], given={"count": "n"})[0] == [
        [5, 0, 0, 0], [0, 0, 0, 7],
    ]  # fmt: skip
    assert incomes_of("town,income,x,x", **rows, y=[1, 1], z=[1, 1])[0] == counts
    bins = ["0 [0, 10)", "3 [30, 40]"]
    columns = {"columns": {"income": ["income"]}}
    assert incomes_of(town=["a", "b"], income=bins, given=columns)[0] == counts
    assert incomes_of(town=["a", "b"], income=["?", "?"], bin=bins)[0] == counts


def test_a_copy_is_known_by_its_numbers_whatever_codes_it_has_too(incomes_of):
    table = {"town": ["b", "b", "a", "b"], "income": [40.0, 12.0, 3.5, 19.0]}
    assert incomes_of(**table, income_bin=["0 [0, 10)"] * 4) == ([[1, 0, 0, 0], [3, 0, 0, 0]], True)


def test_numbers_of_a_prior_that_fit_no_bin_are_told_of(incomes_of):
    with pytest.raises(hr.TableError, match=r"the prior: .*range 'income': .*outside"):
        incomes_of(town=["a"], income=[41])
    with pytest.raises(hr.TableError, match=r"the prior: .*column 'income' holds text that is no"):
        incomes_of(town=["a"], income=["many"])
    with pytest.raises(hr.TableError, match=r"the prior: .*has no column 'income_bin'"):
        incomes_of(town=["a"], wage=[4])


def test_a_target_is_of_single_noisy_counts(spec_of):
    spec_of(method="optimal", objective="cells").check_target("1/2")
    with pytest.raises(SpecError, match="needs objective"):
        spec_of(method="optimal", objective="released").check_target("1/2")
    with pytest.raises(SpecError, match='method = "distribution" plans for'):
        spec_of(method="distribution").check_target("1/2")
    with pytest.raises(PlanError, match="--target-mse must be a number such as"):
        spec_of().check_target("little")
