"""Whole releases of random named workloads: sums, least squares, files, hashes."""

from contextlib import suppress
from functools import cache
from itertools import product

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.estimate.cube.shape import CubeShape, is_within
from hedgerow.estimate.workload.observed import Observed
from hedgerow.plan.workload import tables_of
from tests.estimate.workload.workloads import DenseWorkload
from tests.made import plain_plan, random_counts, random_tree
from tests.release.cube.test_cube_release import released, summed, tables, true_table

SEEDS = range(40)
EXACT = {"rtol": 1e-8, "atol": 1e-6}


def names_of(tree, rng):
    """One to four cuboids of a tree, by name."""
    every = [c for c in product(*(range(axis.depth + 1) for axis in tree.axes)) if any(c)]
    some = rng.choice(len(every), size=min(len(every), int(rng.integers(1, 5))), replace=False)
    return [tree.name_of(every[i]) for i in some]


def spelled_otherwise(tree, workload, rng):
    """The same cuboids: in another order, with another sign, and the chain's by name."""
    names = list(workload.given)
    if workload.chain:
        chain = [tree.name_of(levels) for levels in tree.chain]
        names = [*names, *(name for name in chain if name not in names)]
    sign = "x*"[rng.integers(2)]
    return hr.Cuboids([names[i].replace("×", sign) for i in rng.permutation(len(names))])


def tables_in(plan):
    return len(tables_of(plan.tree, plan.levels))


@cache
def planned(seed):
    """A plan of random cuboids over one to three uneven axes, and the same plan spelled otherwise.

    Drawn again where the cuboids cannot be released together, are a chain or a cube, or nothing is
    left to measure; over several axes, for two seeds of three, until there are several tables.
    """
    rng = np.random.default_rng(seed)
    for _ in range(50):
        axes = 1 + seed % 3
        tree = random_tree(rng, axes=axes, depth=(4, 3, 2)[axes - 1], widest=3)
        names, exact = names_of(tree, rng), []
        who = [hr.AddRemove(), hr.Replace(), hr.Replace(exactly=False)][rng.integers(3)]
        if who == hr.Replace() and rng.random() < 0.5:
            axis = tree.axes[rng.integers(axes)]
            exact = [hr.Invariant(axis.name, axis.levels[0])]
            names.append(tree.name_of(tuple(int(other is axis) for other in tree.axes)))
        workload = hr.Cuboids([*dict.fromkeys(names)], chain=bool(rng.random() < 0.3))
        pure = rng.random() < 0.3
        options = {
            "budget": hr.Epsilon(2) if pure else hr.Rho(1),
            "mechanism": hr.DiscreteLaplace if pure else hr.DiscreteGaussian,
            "neighbours": who,
            "measure": hr.Survivors() if axes > 1 and rng.random() < 0.5 else hr.All(),
            "invariants": exact,
        }
        with suppress(hr.PlanError):
            plan = plain_plan(tree, workload=workload, **options)
            tables_wanted = 2 if axes > 1 and seed % 9 < 6 else 1
            if isinstance(plan.workload, hr.Cuboids) and tables_wanted <= tables_in(plan):
                other = spelled_otherwise(tree, workload, rng)
                return plan, plain_plan(tree, workload=other, **options)
    raise AssertionError(f"seed {seed}: no workload that can be released")


def release_of(seed):
    plan, _ = planned(seed)
    filled = (0.2, 0.6, 2.0)[seed % 3]
    counts = random_counts(np.random.default_rng(1000 + seed), plan.tree, filled=filled)
    return counts, released(counts, plan, seed)


def test_random_workloads_are_of_all_kinds():
    plans = [planned(seed)[0] for seed in SEEDS]
    assert all(isinstance(plan.workload, hr.Cuboids) for plan in plans)
    assert 15 < sum(tables_in(plan) > 1 for plan in plans) < 35
    assert sum(isinstance(plan.measure, hr.Survivors) for plan in plans) >= 4
    assert sum(plan.mechanism is hr.DiscreteLaplace for plan in plans) >= 6
    assert sum(plan.public is not None and any(plan.public) for plan in plans) >= 4
    assert sum(plan.public is None for plan in plans) >= 10


@pytest.mark.parametrize("seed", SEEDS)
def test_every_cuboid_is_the_sum_of_every_table_that_contains_it(seed):
    counts, release = release_of(seed)
    plan, found = release.plan, tables(release)
    for levels, table in found.items():
        assert (table >= 0).all()
        for finer in tables_of(plan.tree, plan.levels):
            if is_within(levels, finer):
                assert np.array_equal(summed(plan.tree, found[finer], finer, levels), table)
        if plan.is_public(levels):
            assert np.array_equal(table, true_table(counts, levels))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_directory_passes_the_check_and_is_the_release_again(seed, tmp_path):
    _, release = release_of(seed)
    release.write(tmp_path / "out")
    assert [each.what for each in hr.check(tmp_path / "out") if not each.passed] == []
    again = hr.read_release(tmp_path / "out")
    assert again.plan.hash == release.plan.hash
    for name, what in release.plan.cuboids.items():
        assert again.level(name).equals(release.level(name))
        if isinstance(what, hr.Measured):
            assert again.measurements(name).equals(release.measurements(name))


@pytest.mark.parametrize("seed", SEEDS)
def test_estimates_are_dense_least_squares_of_the_stored_noisy_counts(seed, tmp_path):
    counts, release = release_of(seed)
    plan = release.plan
    release.write(tmp_path / "out")
    again, tree = hr.read_release(tmp_path / "out"), plan.tree
    shape = CubeShape.of([axis.child_start for axis in tree.axes])
    noise, given = {}, {}
    for levels, what in plan.by_levels.items():
        if isinstance(what, hr.Measured) and levels in plan.whole:
            own = shape.given(levels)
            noise[own] = what.mechanism.noise_variance
            noisy = again.measurements(tree.name_of(levels))["noisy_count"].to_numpy()
            given[own] = noisy.astype(float).reshape(shape.shape(own))
    public = None
    if plan.public is not None:
        public = shape.given(plan.public)
        given[public] = true_table(counts, plan.public).reshape(shape.shape(public))
    dense = DenseWorkload(Observed(shape, noise, public))
    expected = dense.estimates(given)
    for levels, nodes in release.content.nodes.items():
        if levels in plan.whole:
            own = shape.given(levels)
            np.testing.assert_allclose(nodes.estimate, expected[own][nodes.codes], **EXACT)
            variance = dense.variances(own)[nodes.codes]
            np.testing.assert_allclose(nodes.variance, variance, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_workload_has_one_hash_however_it_is_spelled(seed):
    plan, other = planned(seed)
    assert other.hash == plan.hash
    assert other.by_levels == plan.by_levels
