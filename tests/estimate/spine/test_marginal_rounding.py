"""Whole counts of families: what is exact, and how near the rest comes."""

import numpy as np
import pytest

from hedgerow.estimate.spine.marginals.fit import fit_family
from hedgerow.estimate.spine.marginals.rounding import metric_of, round_family, round_root
from tests.estimate.spine.random_families import random_family


def rounded(family, tolerance=1e-3, most=2000):
    """The fit of a family whose groups have one level above them, and its whole counts."""
    here = family.residuals
    y, out = np.zeros_like(family.z), np.zeros(family.z.shape, dtype=np.int64)
    rows = family.row_start, family.slot
    limits = (each.astype(float) for each in (family.above, family.low, family.high))
    given = family.turned(family.z), family.covariance
    fit_family((here.extents, here.runs), rows, given, (*limits, (True, 0.0)), (tolerance, most), y)
    cells = metric(family, y)
    round_family(cells, rows, (family.above, family.low, family.high), y, out)
    return y, out


def metric(family, fit):
    """What groups weigh, alone and together; where nothing is beside them, in their own metric."""
    near = 1 + np.eye(family.groups) if family.residuals.sizes else np.zeros((0, 0))
    groups = np.arange(family.groups, dtype=np.int32)
    rows, place = (family.row_start, family.slot), family.residuals.sum_place
    given = family.turned(family.z), family.covariance
    return place, *metric_of((near, groups), rows, given, fit, int(place[-1, -1]) + 1)


def marginals(family, table):
    """Every marginal of each row and then of each child: a list of (rows or children, cells)."""
    here, found = family.residuals, []
    children = np.repeat(np.arange(len(family.blocks)), np.diff(family.row_start))
    whole = np.zeros((len(family.blocks), here.width))
    np.add.at(whole, children, table)
    for each in (table, whole):
        shaped = each.reshape(-1, *here.sizes)
        for marginal in here.every:
            away = [1 + a for a, is_kept in enumerate(marginal) if not is_kept]
            found.append(shaped.sum(axis=tuple(away)).reshape(len(each), -1))
    return found


def distance(family, apart):
    if not family.residuals.sizes:
        return family.objective(family.z + apart)
    return sum((each**2).sum() for each in marginals(family, apart))


def check_exact(family, out):
    sums = np.zeros_like(family.above)
    np.add.at(sums, family.slot, out)
    np.testing.assert_array_equal(sums, family.above)
    assert (out >= 0).all()
    assert (out.sum(axis=1) >= family.low).all()
    assert (out.sum(axis=1) <= family.high).all()


def test_sums_zeros_and_bounds_are_exact_in_ten_thousand_families():
    rng = np.random.default_rng(12)
    for _ in range(10_000):
        family = random_family(rng)
        _, out = rounded(family, most=int(rng.choice([3, 300])))  # a fit cut short, too
        check_exact(family, out)


@pytest.mark.parametrize("seed", range(30))
def test_no_unit_moved_between_two_children_comes_nearer_in_all_marginals(seed):
    family = random_family(np.random.default_rng(seed), groups=None if seed % 2 else 1)
    y, out = rounded(family)
    best, total = distance(family, out - y), out.sum(axis=1)
    for slot in range(len(family.above)):
        here = np.flatnonzero(family.slot == slot)
        for to in here[total[here] < family.high[here]]:
            for back in here[total[here] > family.low[here]]:
                for k in np.flatnonzero(out[back]) if to != back else ():
                    other = out.copy()
                    other[to, k] += 1
                    other[back, k] -= 1
                    assert distance(family, other - y) >= best * (1 - 1e-6) - 1e-6


def test_no_marginal_is_rounded_by_much():
    """Half a record, root mean square, however many cells it sums; independent rounding: 2."""
    rng, squares, counts = np.random.default_rng(3), {}, {}
    for _ in range(40):
        family = random_family(rng, sizes=(2, 2, 9), children=8, groups=2, scale=2.0, bounded=False)
        y, out = rounded(family)
        for number, each in enumerate(marginals(family, out - y)):
            squares[number] = squares.get(number, 0.0) + (each**2).sum()
            counts[number] = counts.get(number, 0) + each.size
    assert all(squares[n] / counts[n] < 0.5**2 for n in squares)


def rounded_root(family, wanted):
    """A root's whole counts near a point, and where they may be above 0."""
    free = (family.above > 0).astype(np.int64)
    point = np.maximum(family.z, 0) * free
    out, bounds = np.zeros(point.shape, dtype=np.int64), (free, family.low, family.high)
    round_root(metric(family, point), bounds, wanted, point, out)
    return point, out, free


@pytest.mark.parametrize("seed", range(200))
def test_a_root_keeps_its_total_zeros_and_bounds(seed):
    family = random_family(np.random.default_rng(seed), children=1)
    wanted = int(family.above.sum()) if seed % 2 else -1
    _, out, free = rounded_root(family, wanted)
    assert (out >= 0).all()
    assert (out[free == 0] == 0).all()
    assert (out.sum(axis=1) >= family.low).all()
    assert (out.sum(axis=1) <= family.high).all()
    assert wanted < 0 or out.sum() == wanted


@pytest.mark.parametrize("seed", range(30))
def test_no_unit_more_or_less_brings_a_root_nearer(seed):
    family = random_family(np.random.default_rng(seed), children=1)
    point, out, free = rounded_root(family, -1)
    best, total = distance(family, out - point), out.sum(axis=1)
    for row, k in np.argwhere(free):
        for unit in (1, -1):
            other = out.copy()
            other[row, k] += unit
            inside = family.low[row] <= total[row] + unit <= family.high[row]
            if other[row, k] >= 0 and inside:
                assert distance(family, other - point) >= best - 1e-6
