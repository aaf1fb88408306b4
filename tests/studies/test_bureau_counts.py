"""The Bureau's way down a small spine: what it keeps, and what it looks at."""

from dataclasses import dataclass

import numpy as np
import pytest

from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.support import Support
from studies.bureau.counts import bureau_counts

SPINE = AxisShape.of([np.array([0, 3]), np.array([0, 3, 5, 9])])
TREE = AxisShape.of([np.array([0, 2]), np.array([0, 1, 3])])
"""Three kinds, of which the last two are one class; in each kind age (2) × race (3)."""
CHAIN = ((2, 0, 0), (2, 0, 1), (2, 1, 1))
ALLOWED = np.array([True] * 12 + [False] * 3 + [True] * 3)
HAS = (
    np.array([0, 0, 1, 2, 2, 3, 4, 4, 5, 6, 6, 7]),
    np.array([0, 1, 0, 0, 2, 0, 0, 1, 2, 0, 2, 0]),
)
"""The eighth block has nobody by public facts, and the fifth no household."""


@dataclass(frozen=True)
class Small:
    """Marginals of two attributes beside the kinds, at every level."""

    support: Support
    measured: dict[tuple[int, ...], float]

    def cells(self, key):
        level, coarse, *used = key
        age, race = np.divmod(np.arange(6), 3)
        place = (age if used[0] else 0) * (3 if used[1] else 1) + (race if used[1] else 0)
        width = np.full(TREE.sizes[coarse], (2 if used[0] else 1) * (3 if used[1] else 1))
        place = np.tile(np.broadcast_to(place, 6), 3).astype(np.int32)
        return Cells(self.support, level, coarse, width, place)


def small(variance=9.0):
    least, none = np.array([24, 20, 24, 20]), np.full(4, 1 << 53)
    bounds = [(2, np.array([0, 2, 4, 5]), np.array([1, 2, 1, 2]), least, none)]
    support = Support.of(SPINE, TREE, np.full(3, 6), HAS, bounds)
    cuboids = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 1), (2, 1, 1)]
    return Small(support, {(k, *c): variance * (1 + k) for k in range(3) for c in cuboids})


def truth_of(model, rng):
    """Counts of all levels within the bounds, and none of the second kind's first age."""
    support = model.support
    tables = {2: rng.poisson(2.0, int(support.cell[2][-1])).astype(np.int64) + 1}
    tables[2][support.cell[2][1:] - 1] += support.low[2]
    group = np.repeat(support.group[2], 6)
    tables[2][(group == 2) & (np.tile(np.arange(6), len(support.group[2])) < 3)] = 0
    for level in (1, 0):
        tables[level] = np.zeros(int(support.cell[level][-1]), dtype=np.int64)
        at = support.cell[level][support.parent[level + 1]][:, None] + np.arange(6)
        np.add.at(tables[level], at.ravel(), tables[level + 1])
    return tables


def measured(model, truth, rng, scale):
    tables = {}
    for key in model.measured:
        layout = model.cells(key)
        true = layout.sums(truth[key[0]], range(SPINE.sizes[key[0]]))
        tables[key] = true + scale * rng.normal(0, np.sqrt(model.measured[key]), len(true))
    return tables


def estimated(model, noisy, truth):
    return bureau_counts(model, noisy, int(truth[0].sum()), CHAIN, ALLOWED)


@pytest.mark.parametrize("seed", range(25))
def test_counts_add_up_and_keep_public_zeros_and_bounds(seed):
    model, rng = small(), np.random.default_rng(seed)
    truth = truth_of(model, rng)
    counts = estimated(model, measured(model, truth, rng, 4.0), truth)
    support = model.support
    assert counts[0].sum() == truth[0].sum()
    for level in range(3):
        assert counts[level].min() >= 0
        of_rows = np.add.reduceat(counts[level], support.cell[level][:-1])
        assert (of_rows >= support.low[level]).all()
        cells = np.concatenate([np.arange(6 * g, 6 * g + 6) for g in support.group[level]])
        assert not counts[level][~ALLOWED[cells]].any()
    for level in (1, 2):
        sums = np.zeros_like(counts[level - 1])
        at = support.cell[level - 1][support.parent[level]][:, None] + np.arange(6)
        np.add.at(sums, at.ravel(), counts[level])
        assert (sums == counts[level - 1]).all()


def test_measurements_without_noise_give_the_truth():
    model, rng = small(), np.random.default_rng(1)
    truth = truth_of(model, rng)
    counts = estimated(model, measured(model, truth, rng, 0.0), truth)
    for level in range(3):
        assert (counts[level] == truth[level]).all()


def test_nothing_is_learnt_from_levels_below():
    model, rng = small(), np.random.default_rng(2)
    truth = truth_of(model, rng)
    noisy = measured(model, truth, rng, 1.0)
    counts = estimated(model, noisy, truth)
    other = {
        key: table + 50.0 * (key[0] == 2) * rng.normal(size=len(table))
        for key, table in noisy.items()
    }
    again = estimated(model, other, truth)
    assert (again[0] == counts[0]).all()
    assert (again[1] == counts[1]).all()
    assert (again[2] != counts[2]).any()


def test_totals_come_before_all_else_but_not_at_the_deepest_level():
    """A measured total is kept to half a record and the tolerance, whatever the cells say of it."""
    model, rng = small(), np.random.default_rng(3)
    truth = truth_of(model, rng)
    noisy = measured(model, truth, rng, 0.0)
    for level in (1, 2):
        noisy[level, 2, 1, 1] = noisy[level, 2, 1, 1] + rng.normal(0, 6, len(noisy[level, 2, 1, 1]))
    counts = estimated(model, noisy, truth)
    off = [
        np.abs(model.cells((k, 0, 0, 0)).sums(counts[k] - truth[k], range(SPINE.sizes[k]))).max()
        for k in (1, 2)
    ]
    assert off[0] == 0
    assert off[1] > 0
