"""Whole counts of families: what is exact, and how near the rest comes."""

import numpy as np
import pytest

from hedgerow.estimate.spine.fit.rounding import round_root
from tests.estimate.spine.random_families import (
    check_rows,
    distance,
    marginals,
    metric,
    random_family,
    rounded,
)


def test_sums_zeros_and_bounds_are_exact_in_thousands_of_families():
    rng = np.random.default_rng(12)
    for _ in range(3_000):
        family = random_family(rng)
        rounded(family, most=int(rng.choice([3, 300])))  # a fit cut short, too


@pytest.mark.parametrize("seed", range(30))
def test_no_unit_moved_between_two_children_comes_nearer_in_all_marginals(seed):
    family = random_family(np.random.default_rng(seed), groups=None if seed % 2 else 1)
    y, out = rounded(family)
    best, total = distance(family, y, out), out.sum(axis=1)
    for slot in range(len(family.above)):
        here = np.flatnonzero(family.slot == slot)
        for to in here[total[here] < family.high[here]]:
            for back in here[total[here] > family.low[here]]:
                for k in np.flatnonzero(out[back]) if to != back else ():
                    other = out.copy()
                    other[to, k] += 1
                    other[back, k] -= 1
                    assert distance(family, y, other) >= best * (1 - 1e-6) - 1e-6


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
    check_rows(family, out)
    assert (out[free == 0] == 0).all()
    assert wanted < 0 or out.sum() == wanted


@pytest.mark.parametrize("seed", range(30))
def test_no_unit_more_or_less_brings_a_root_nearer(seed):
    family = random_family(np.random.default_rng(seed), children=1)
    point, out, free = rounded_root(family, -1)
    best, total = distance(family, point, out), out.sum(axis=1)
    for row, k in np.argwhere(free):
        for unit in (1, -1):
            other = out.copy()
            other[row, k] += unit
            inside = family.low[row] <= total[row] + unit <= family.high[row]
            if other[row, k] >= 0 and inside:
                assert distance(family, point, other) >= best - 1e-6
