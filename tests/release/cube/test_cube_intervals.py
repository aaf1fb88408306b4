"""Intervals of a cube's counts hold as often as they say, cuboid by cuboid."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, plain_plan

pytestmark = pytest.mark.slow

TREE = hr.Tree([fixed_axis(name, 2, 3, columns=[f"{name}_1", f"{name}_2"]) for name in ("o", "d")])
RELEASES = 2000
MONTE_CARLO = 4 * (0.05 * 0.95 / RELEASES) ** 0.5
"""Four standard errors of a share of releases; cells of one release depend on each other."""


def dense_table():
    """Counts that no noise takes to 0, so that every cell is listed in every release."""
    rows, columns = np.indices((6, 6)).reshape(2, -1).astype(np.int32)
    values = np.random.default_rng(1).integers(20_000, 90_000, len(rows))
    return hr.Counts.from_leaves(TREE, (rows, columns), values)


def coverage(plan, counts):
    """The share of intervals that hold the true count, by cuboid; and the least σ²."""
    truth = {}
    for levels in plan.levels:
        table = np.zeros((6, 6), dtype=np.int64)
        table[counts.codes] = counts.values
        for axis, level in enumerate(levels):
            start = TREE.axes[axis].descendant_start(level, 2)
            table = np.add.reduceat(table, start[:-1], axis=axis)
        truth[levels] = table.ravel()
    held = dict.fromkeys(plan.levels, 0.0)
    for seed in range(RELEASES):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        for levels, nodes in release.content.nodes.items():
            assert len(nodes) == TREE.cells(levels)
            errors = CuboidErrors.of(plan, levels, counts.total)
            low, high = errors.interval(nodes.estimate, nodes.variance, USUAL)
            held[levels] += float(((low <= truth[levels]) & (truth[levels] <= high)).mean())
    return {levels: each / RELEASES for levels, each in held.items()}


@pytest.mark.sweep(3)
@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
@pytest.mark.parametrize(
    ("who", "mechanism", "budget", "is_wide"),
    [
        (hr.Replace(), hr.DiscreteGaussian, hr.Rho("1/8"), True),
        (hr.AddRemove(), hr.DiscreteGaussian, hr.Rho(4), False),
        (hr.Replace(), hr.DiscreteLaplace, hr.Epsilon(16), False),
    ],
    ids=["wide-gaussian", "narrow-gaussian", "laplace"],
)
def test_intervals_of_every_cuboid_hold_as_often_as_they_say(
    measure, who, mechanism, budget, is_wide
):
    plan = plain_plan(
        TREE,
        budget=budget,
        mechanism=mechanism,
        neighbours=who,
        workload=hr.Cube(),
        measure=measure,
    )
    noise = [w.mechanism.noise_variance for w in plan.by_levels.values() if hasattr(w, "mechanism")]
    assert (min(noise) >= 25) is is_wide
    for levels, share in coverage(plan, dense_table()).items():
        if plan.is_public(levels):
            assert share == 1
            continue
        assert share >= 0.95 - MONTE_CARLO, levels
        if is_wide:
            assert 0.94 <= share <= 0.97, levels
