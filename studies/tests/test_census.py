"""The schema of the redistricting file, its production shares, and the study's own figures."""

import math

import numpy as np
import pytest

from hedgerow.examples.redistricting import noise_parameters, write_redistricting
from studies.census_figures import SIZES, Errors, largest_within, mean_by_size
from studies.redistricting import GROUPS, LEVELS, Table

FILES = ("release.toml", "production.toml")


def test_own_standard_deviations_are_those_of_the_bureaus_tables():
    """State, tract and block: total, Hispanic origin × race, detailed (Bureau's code, as given)."""
    queries = "total", "hispanic × cenrace", "hhgq × votingage × hispanic × cenrace"
    sigma2 = noise_parameters()
    for level, printed in (
        ("state", (1.1, 19, 4.4)), ("tract", (2.47, 2.23, 4.46)), ("block", (89, 43, 3.2)),
    ):  # fmt: skip
        for query, sigma in zip(queries, printed, strict=True):
            assert math.sqrt(sigma2[level, query]) == pytest.approx(sigma, rel=0.03)


@pytest.fixture(scope="module", params=FILES)
def table(request, tmp_path_factory):
    """The small example under one of its release files."""
    folder = tmp_path_factory.mktemp("redistricting")
    write_redistricting(folder, "small")
    return Table.read(folder / request.param)


def test_there_are_2016_cells_of_which_nursing_minors_are_none(table):
    nursing = (table.cells["hhgq"] == "nursing") & (table.cells["votingage"] == "minor")
    assert table.cells.is_unique().all()
    assert len(table.cells) - nursing.sum() == 2016 - 126
    assert (table.spine.is_free == ~nursing.to_numpy()).all()


def test_hispanics_are_a_group_whatever_their_race(table):
    _, group = table.labels["group"]
    words = np.array(GROUPS)[group]
    assert set(words[table.cells["hispanic"] == "yes"]) == {"hispanic"}
    others = table.cells["hispanic"] == "no"
    assert set(words[others & (table.cells["cenrace"] == "asian")]) == {"asian"}
    assert set(words[others & (table.cells["cenrace"] == "white+asian")]) == {"two or more"}


def test_queries_add_up_to_those_of_the_level_above(table):
    for query in table.labels:
        sums = [table.true_sums[level][query].sum(axis=0) for level in range(len(LEVELS))]
        assert all((each == sums[0]).all() for each in sums)
    assert table.true_sums[0]["total"].tolist() == [[table.counts.total]]
    adults = table.truth[0][(table.cells["votingage"] == "adult").to_numpy()]
    assert table.true_sums[0]["voting age"].item() == adults.sum()


def test_bias_is_the_mean_error_of_counts_of_a_size():
    true = np.array([[0, 3], [0, 7000]])
    error = np.array([[2, -1], [0, 5]])
    bias = mean_by_size(true, error)
    assert bias[0] == 1
    assert bias[1] == -1
    assert bias[-1] == 5
    assert np.isnan(bias[2 : len(SIZES) - 1]).all()


def test_the_largest_group_is_the_true_one_and_its_share_is_of_the_released_total():
    true = np.array([[60, 40], [60, 40], [0, 0]])
    error = np.array([[0, 20], [10, -6], [5, 5]])
    totals, good = largest_within(true, error)
    assert totals.tolist() == [100, 100]
    assert good.tolist() == [False, False]
    assert largest_within(true, error // 4)[1].tolist() == [True, True]


def test_block_groups_are_sure_from_the_last_step_that_is_not():
    errors = Errors()
    totals, good = np.repeat([120, 170, 220], 10), np.ones(30, dtype=bool)
    good[12] = False
    errors.within = {3: [(totals, good)], 4: [(totals, good | True)]}
    assert errors.by_size(3)[150] == 0.9
    assert errors.sure_from(3) == 200
    assert errors.sure_from(4) == 0


def moved(table, level, move):
    """The true counts, those of a level moved."""
    counts = {each: true.copy() for each, true in table.truth.items()}
    move(counts[level])
    return counts


def test_what_is_public_is_checked_in_every_run(table):
    table.check(table.truth)
    last, here = len(LEVELS) - 1, table.support
    home = int(np.flatnonzero(here.low[last])[0])  # a row with facilities, so with people

    def shifted(counts):
        """One person moves from the first place with one to the last."""
        there = np.flatnonzero(counts)
        counts[there[0]] -= 1
        counts[there[-1]] += 1

    def emptied(counts):
        counts[int(here.cell[last][home]) : int(here.cell[last][home + 1])] = 0

    for move, level, says in (
        (lambda counts: counts.__setitem__(0, counts[0] + 1), 0, "public one"),
        (emptied, last, "bound is not kept"),
        (shifted, last, "do not add up"),
    ):
        with pytest.raises(ValueError, match=says):
            table.check(moved(table, level, move))


def test_a_minor_in_a_nursing_home_is_found(table):
    last = len(LEVELS) - 1
    _, cell = table.located(last, np.arange(len(table.truth[last])))
    closed = np.flatnonzero(~table.spine.is_free[cell])
    if len(closed):  # a cube leaves such cells out
        with pytest.raises(ValueError, match="0 by rule"):
            table.check(moved(table, last, lambda counts: np.add.at(counts, closed[:1], 1)))
    else:
        nursing = table.cells.filter(hhgq="nursing")
        assert set(nursing["votingage"]) == {"adult"}
