"""The schema of the redistricting file, its production shares, and the study's own figures."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.examples.production_shares import RHO
from studies.census_figures import SIZES, Errors, Layout, largest_within, mean_by_size
from studies.redistricting import (
    GROUPS,
    KINDS,
    RACES,
    STATE_RHO,
    Attributes,
    State,
    group_of,
    production_sigma2,
    production_uses,
)


def test_a_state_has_all_of_the_productions_measurements_but_the_nations():
    sigma2 = production_sigma2()
    assert len(sigma2) == 5 * 11
    assert len(production_uses()) == len(sigma2) + 10
    assert (
        sum(1 / value for value in sigma2.values()) == STATE_RHO == RHO * (1 - Fraction(104, 4099))
    )
    assert sum(Fraction(n, 2) / value for value, n in production_uses()) == RHO


def test_own_standard_deviations_are_those_of_the_bureaus_tables():
    """State, tract and block: total, Hispanic origin × race, detailed (Bureau's code, as given)."""
    sigma2 = production_sigma2()
    for level, printed in ((0, (1.1, 19, 4.4)), (2, (2.47, 2.23, 4.46)), (4, (89, 43, 3.2))):
        for cuboid, sigma in zip(((0, 0, 0, 0), (0, 0, 1, 1), (2, 1, 1, 1)), printed, strict=True):
            assert math.sqrt(sigma2[level, *cuboid]) == pytest.approx(sigma, rel=0.03)


def test_there_are_2016_cells_of_which_nursing_minors_are_none():
    crossed, nested = Attributes.crossed(), Attributes.nested()
    assert len(RACES) == len(set(RACES)) == 63
    assert len(crossed.kind) == 2016
    assert (~crossed.allowed).sum() == 126
    assert len(nested.kind) == 2016 - 126
    assert nested.allowed.all()
    for each in (crossed, nested):
        number = each.number()
        assert (np.sort(number[number >= 0]) == np.arange(len(each.kind))).all()


def test_the_axis_of_a_cube_has_the_detail_of_its_layout():
    axis, zeros = Attributes.refined()
    nested = Attributes.nested()
    assert axis.sizes == (1, 8, 16, 128, 2016)
    kept = np.flatnonzero(~zeros)
    assert (axis.ancestors(4, 1)[kept] == nested.kind).all()
    assert (axis.ancestors(4, 2)[kept] % 2 == nested.age).all()
    assert (axis.ancestors(4, 3)[kept] % 8 == nested.group).all()
    assert KINDS.index("nursing") not in axis.ancestors(4, 1)[kept][nested.age == 0]


def test_hispanics_are_a_group_whatever_their_race():
    assert group_of(1, RACES.index("white")) == 0
    assert GROUPS[group_of(0, RACES.index("asian"))] == "asian"
    assert GROUPS[group_of(0, RACES.index("white+asian"))] == "two or more"


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
    assert errors.by_size(3)[150] == (10, 0.9)
    assert errors.sure_from(3) == 200
    assert errors.sure_from(4) == 0


def small_state():
    """A state with people in two blocks: households in both, a nursing home in the second."""
    starts = [0, 2], [0, 1, 3], [0, 2, 3, 4], [0, 2, 3, 4, 5]
    spine = AxisShape.of([np.array(start) for start in starts])
    cell = np.array([[0, 0, 3], [0, 1, 1], [0, 1, 0], [0, 6, 2]])
    blocks, people = np.array([0, 1, 1]), np.array([5, 4, 3])
    places, kinds, facilities = np.array([0, 1, 1]), np.array([0, 0, 3]), np.array([1, 1, 2])
    return State(spine, blocks, cell, people, places, kinds, facilities)


@pytest.mark.parametrize("attributes", [Attributes.crossed(), Attributes.nested()])
def test_what_is_public_is_checked_in_every_run(attributes):
    layout = Layout(small_state(), attributes)
    truth = layout.truth
    layout.check(truth)
    rows = {level: layout.support.cell[level] for level in truth}
    last = max(truth)

    def emptied(counts):
        """Two of the home's three people move to the first household, at all levels."""
        for level, start in rows.items():
            home = int(start[2] if level == last else start[1])
            counts[level][home + np.flatnonzero(counts[level][home:])[0]] -= 2
            counts[level][np.flatnonzero(counts[level])[0]] += 2

    def moved(counts):
        counts[last][0] += 1
        counts[last][np.flatnonzero(counts[last])[-1]] -= 1

    def broken(move):
        counts = {level: table.copy() for level, table in truth.items()}
        move(counts)
        return counts

    for move, says in (
        (lambda counts: counts[0].__setitem__(0, 1), "public one"),
        (emptied, "bound is not kept"),
        (moved, "do not add up"),
    ):
        with pytest.raises(ValueError, match=says):
            layout.check(broken(move))


def test_a_minor_in_a_nursing_home_is_found():
    layout = Layout(small_state(), Attributes.crossed())
    counts = {level: table.copy() for level, table in layout.truth.items()}
    for level, table in counts.items():
        row = 2 if level == max(counts) else 1
        start = int(layout.support.cell[level][row])
        table[start] += 1
        table[start + int(np.flatnonzero(table[start + 1 :])[0]) + 1] -= 1
    with pytest.raises(ValueError, match="0 by rule"):
        layout.check(counts)
