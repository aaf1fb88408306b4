"""Intervals of cubes and named cuboids hold as often as they say; what is proved of them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import skellam

import hedgerow as hr
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.workload import general
from hedgerow.estimate.workload.observed import are_two_chains
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.descent.nodes import by_cuboid
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.tables import TablesFlow
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.passes import Pass
from tests.estimate.cube.dense_cubes import cuboid_sums, random_axis
from tests.made import fixed_axis, plain_plan
from tests.release.pairs import true_table

TREE = hr.Tree([fixed_axis(name, 2, 3, columns=[f"{name}_1", f"{name}_2"]) for name in ("o", "d")])
RELEASES = 600
ONE_SIDED = 4.9
"""α = 5e-7, in standard errors of a cuboid's share."""
SPINE = hr.Cuboids(["o.level1 × d.level2", "o.level2 × d.level2", "d.level2"])
CHAIN = hr.Cuboids(["o.level2", "d.level2"], chain=True)
GENERAL = hr.Cuboids(["o.level2 × d.level1", "o.level1 × d.level2"])
NOISE = {
    "wide gaussian": (hr.Replace(), hr.DiscreteGaussian, hr.Rho("1/8")),
    "narrow gaussian": (hr.AddRemove(), hr.DiscreteGaussian, hr.Rho(4)),
    "laplace": (hr.Replace(), hr.DiscreteLaplace, hr.Epsilon(16)),
}


def plan_of(workload, noise, **options):
    who, mechanism, budget = NOISE[noise]
    return plain_plan(
        TREE, budget=budget, mechanism=mechanism, neighbours=who, workload=workload,
        **{"measure": hr.All(), **options},
    )  # fmt: skip


def table_of():
    """Counts that no noise takes to 0, so that no interval is clipped."""
    rows, columns = np.indices((6, 6)).reshape(2, -1).astype(np.int32)
    values = np.random.default_rng(1).integers(20_000, 90_000, len(rows))
    return hr.Counts.from_leaves(TREE, (rows, columns), values)


WORKLOADS = {
    "cube": (hr.Cube(), hr.All(), True),
    "cube, survivors": (hr.Cube(), hr.Survivors(), True),
    "spine": (SPINE, hr.All(), True),
    "chain": (CHAIN, hr.All(), True),
    "chain, upper bounds": (CHAIN, hr.All(), False),
    "general": (GENERAL, hr.All(), True),
    "general, upper bounds": (GENERAL, hr.All(), False),
}


def estimates_of(plan, counts, asked):
    """Of each release the estimates and variances of each cuboid that is asked for."""
    runs = (TablesFlow(plan, Drawn(counts, plan, seeded_bits(seed))) for seed in range(RELEASES))
    if isinstance(plan.measure, hr.Survivors):  # each cell is listed, and survives
        every = (by_cuboid(Pass(run).results())[0] for run in runs)
        return [{k: (nodes[k].estimate, nodes[k].variance) for k in asked} for nodes in every]
    variances = {k: plan.design.each(k).ravel() for k in asked}
    every = (run.estimates(asked) for run in runs)
    return [{k: (found[k].ravel(), variances[k]) for k in asked} for found in every]


@pytest.mark.slow
@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sweep(12)
def test_intervals_of_every_answerable_cuboid_hold_as_often_as_they_say(
    workload, noise, monkeypatch
):
    """Found as often as not where a share is below 0.906 in a cell, or in 36 cells below 0.943.

    Above, no share is surely more than 0.96: intervals are of whole counts, hence a little wide.
    """
    cuboids, measure, is_exact = WORKLOADS[workload]
    if not is_exact:  # a spine is always exact
        monkeypatch.setattr(general, "MOST_DENSE", 0)
    plan, counts = plan_of(cuboids, noise, measure=measure), table_of()
    assert getattr(plan.design.solver, "is_exact", True) is is_exact
    asked = [k for k in plan.design.shape.cuboids() if plan.table_of(k) is not None]
    assert set(asked) >= set(plan.levels), "sums of tables, too"
    truth = {k: true_table(counts, k).ravel() for k in asked}
    errors = {k: CuboidErrors.of(plan, k, counts.total) for k in asked}
    releases = estimates_of(plan, counts, asked)
    for k in asked:
        estimate, variance = np.array([found[k] for found in releases]).swapaxes(0, 1)
        low, high = errors[k].interval(estimate.ravel(), variance.ravel(), USUAL)
        every = np.tile(truth[k], RELEASES)
        held = ((low <= every) & (every <= high)).reshape(RELEASES, -1).mean(1)
        if plan.is_public(k):
            assert held.all()
            continue
        # At most that of one cell, and at least that of cells that have nothing in common.
        spread = max(held.std(), (0.05 * 0.95 / truth[k].size) ** 0.5)
        share, room = held.mean(), ONE_SIDED * spread / RELEASES**0.5
        assert share >= 0.95 - room, k
        if noise == "wide gaussian" and is_exact:
            assert share - room <= 0.96, k
            assert share <= 0.975, k  # where a cuboid has few cells, too


def coefficients(shape, variances):
    """The hat matrix of least squares, K, each row's variance, and the cuboid of each row."""
    rows = [cuboid_sums(shape, c) for c in variances]
    own = np.repeat(np.arange(len(rows)), list(map(len, rows)))
    sums, noise = np.concatenate(rows), np.array([*variances.values()])[own]
    inverse = np.linalg.pinv((sums.T / noise) @ sums, rcond=1e-13, hermitian=True)
    return sums @ inverse @ sums.T / noise, noise, own


@pytest.mark.parametrize("seed", range(40))
def test_other_draws_move_an_estimate_as_little_as_is_proved(seed):
    """By dense matrices, for random named cuboids over uneven axes, variances far apart."""
    rng = np.random.default_rng(700 + seed)
    axes = int(rng.integers(2, 4))
    shape = CubeShape.of([random_axis(rng, int(rng.integers(1, 3)), 3) for _ in range(axes)])
    every = list(shape.cuboids())
    few = rng.choice(len(every), min(len(every), int(rng.integers(2, 6))), replace=False)
    cuboids = {every[i] for i in few} | {shape.finest}
    if shape.cells(shape.finest) > 100:
        return
    found, noise, _ = coefficients(shape, {c: 4.0 ** rng.uniform(-2, 2) for c in sorted(cuboids)})
    own = np.diag(found)
    others = np.abs(found - np.diag(own))
    bound = np.sqrt(np.maximum(own * (1 - own), 0)[:, None] * noise[:, None] / noise[None, :])
    assert (others <= bound + 1e-6).all(), "by the projection"
    if are_two_chains(cuboids):
        assert (others <= (1 - own)[:, None] + 1e-6).all(), "by unimodularity"


def test_two_chains_are_told_from_three():
    nested = [(0, 0), (1, 0), (2, 0), (2, 1)]
    assert are_two_chains(nested)
    assert are_two_chains([*nested, (0, 1), (0, 2), (1, 2), (2, 2)])
    assert not are_two_chains([(2, 0), (1, 1), (0, 2)])
    assert not are_two_chains([(1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)])
    assert are_two_chains([(1, 0), (0, 1)])


def test_plans_say_what_bounds_the_steps_of_their_estimates(monkeypatch):
    two = plan_of(hr.Cuboids(["o.level2", "d.level2"]), "wide gaussian").design
    assert two.steps((2, 0)) is None
    assert two.steps((1, 0)) is None
    plan = plan_of(CHAIN, "wide gaussian")
    least = min(w.mechanism.noise_variance for w in plan.by_levels.values() if hasattr(w, "share"))
    assert plan.design.steps((2, 0)) == Steps(least, is_exact=True)
    assert plan_of(hr.Cube(), "wide gaussian").design.steps((2, 0)) is None
    monkeypatch.setattr(general, "MOST_DENSE", 0)
    large = plan_of(CHAIN, "wide gaussian")
    assert large.design.steps((2, 0)) == Steps(least, is_exact=False)
    errors = CuboidErrors.of(large, (2, 0), None)
    assert errors.noise.steps == Steps(least, is_exact=False)


def test_steps_widen_intervals_and_never_narrow_them():
    sure, noise = hr.Confidence(0.95), hr.DiscreteGaussian("25")
    variance = np.linspace(0.01, 24.9, 200)
    for measured in (True, False):
        usual = sure.half_width(noise, variance, 9, measured=measured)
        for least in (0.0, 1.0, 25.0, 400.0):
            for is_exact in (True, False):
                steps = Steps(least, is_exact=is_exact)
                wide = sure.half_width(noise, variance, 9, measured=measured, steps=steps)
                assert (wide >= usual).all()
                if is_exact and least == 0:
                    assert np.array_equal(wide, usual)
    near = sure.half_width(noise, variance, 9, steps=Steps(25.0, is_exact=True))
    assert np.array_equal(near, sure.half_width(noise, variance, 9)), "no draw is more precise"
    for is_exact, step in ((True, 1), (False, np.sqrt(0.25 * 0.75 * 25 / 1))):  # exact: blurred
        small = sure.half_width(noise, np.array([6.25]), 9, steps=Steps(1.0, is_exact=is_exact))
        assert small[0] == pytest.approx(5 + step / 2, abs=1e-9), "5: by the law of rare jumps"
    alone = sure.half_width(noise, np.array([6.25]), 9, measured=False, steps=Steps(1.0, True))
    assert alone[0] == pytest.approx(5 + 2.5 / 2, abs=1e-9)


def test_with_upper_bounds_rare_jumps_and_whole_steps_are_never_left_out():
    sure, noise = hr.Confidence(0.95), hr.DiscreteGaussian("25")
    for variance in (14.0, 20.0):  # h = 0.56 and 0.8, where an exact h needs neither
        deviation = np.ceil(np.sqrt(variance) * 128) / 128
        law = skellam(deviation**2 / 2, deviation**2 / 2)
        jumps = sum(2 * law.sf(k - 1) > 0.05 for k in range(1, 60))
        found = sure.half_width(noise, np.array([variance]), 9, steps=Steps(0.0, is_exact=False))
        reach = max(1.9599640 * np.sqrt(variance), jumps) + 1 / 2
        cap = noise.tail_bound(0.05) + 1 / 2
        assert found[0] == pytest.approx(min(reach, cap), abs=2e-6)
        assert found[0] > sure.half_width(noise, np.array([variance]), 9)[0]


def test_intervals_of_a_release_are_widened_by_the_steps_of_its_plan():
    errors = CuboidErrors.of(plan_of(CHAIN, "wide gaussian"), (2, 0), None)
    variance = np.full(3, errors.noise.mechanism.noise_variance / 4)
    near, far = (
        replace(errors, noise=replace(errors.noise, steps=Steps(least, is_exact=False))).interval(
            np.full(3, 1e4), variance, USUAL
        )
        for least in (1e9, 1.0)
    )
    assert (far[0] < near[0]).all()
    assert (far[1] > near[1]).all()
