"""Whole counts of families: what is exact, and how near the rest comes."""

import numpy as np
import pytest

from hedgerow.estimate.spine.marginal_fit import fit_family
from hedgerow.estimate.spine.marginal_rounding import round_family
from tests.estimate.spine.random_families import random_family


def rounded(family, tolerance=1e-3, most=2000):
    here = family.residuals
    y, out = np.zeros_like(family.z), np.zeros(family.z.shape, dtype=np.int64)
    rows = family.row_start, family.slot
    limits = (each.astype(float) for each in (family.above, family.low, family.high))
    bounds = (*limits, (True, 0.0))
    given = here.turned(family.z), family.covariance
    fit_family((here.extents, here.residual), rows, given, bounds, (tolerance, most), y)
    cells = here.sum_place, here.weights
    given = family.z, family.covariance
    round_family(cells, rows, given, (family.above, family.low, family.high), y, out)
    return y, out


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
def test_no_unit_moved_between_two_children_comes_nearer(seed):
    family = random_family(np.random.default_rng(seed))
    _, out = rounded(family)
    best, total = family.objective(out), out.sum(axis=1)
    for slot in range(len(family.above)):
        here = np.flatnonzero(family.slot == slot)
        for to in here[total[here] < family.high[here]]:
            for back in here[total[here] > family.low[here]]:
                for k in np.flatnonzero(out[back]) if to != back else ():
                    other = out.copy()
                    other[to, k] += 1
                    other[back, k] -= 1
                    assert family.objective(other) >= best - 1e-6 * best
