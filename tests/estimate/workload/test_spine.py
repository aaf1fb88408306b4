"""Several tables along a spine, against least squares over the joint cross by dense matrices."""

import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, maximal
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.spine import SpineSolver
from tests.estimate.workload.workloads import (
    answerable,
)


def block_tables(*, race=5, widths=(3, 4, 5)):
    """Blocks below tracts below counties; blocks × race and tracts × race × voting age."""
    geography, nodes, rng = [], 1, np.random.default_rng(7)
    for wide in widths:
        sizes = rng.integers(1, 2 * wide, nodes) if nodes > 1 else np.array([wide])
        geography.append(np.append(0, np.cumsum(sizes)))
        nodes = int(sizes.sum())
    shape = CubeShape.of([geography, [np.array([0, race])], [np.array([0, 2])]])
    variances = {(3, 1, 0): 3.0, (2, 1, 1): 2.0, (1, 0, 1): 7.0, (1, 0, 0): 0.5, (3, 0, 0): 5.0}
    return Observed(shape, variances, (0, 0, 0))


def noisy(observed, seed):
    rng, shape = np.random.default_rng(seed), observed.shape
    return {c: rng.normal(0, 100, shape.shape(c)) for c in [*observed.variances, observed.public]}


def test_two_tables_agree_on_their_common_coarsenings():
    observed = block_tables()
    blocks, tracts = observed.tables[1], observed.tables[0]
    assert (blocks, tracts) == ((3, 1, 0), (2, 1, 1))
    solver = SpineSolver(observed)
    found = solver.estimates(noisy(observed, 1), [blocks, tracts, (2, 1, 0), (1, 0, 0)])
    start = observed.shape.axes[0].descendant_start(2, 3)
    by_blocks = np.add.reduceat(found[blocks], start[:-1], axis=0)
    by_tracts = found[tracts].sum(axis=2, keepdims=True)
    np.testing.assert_allclose(by_blocks, by_tracts, atol=1e-9 * 100)
    np.testing.assert_allclose(found[2, 1, 0], by_tracts, atol=1e-9 * 100)
    start = observed.shape.axes[0].descendant_start(1, 2)
    by_tracts = np.add.reduceat(by_tracts.sum(axis=1, keepdims=True), start[:-1], axis=0)
    np.testing.assert_allclose(found[1, 0, 0], by_tracts, atol=1e-9 * 100)


def test_a_cuboid_has_the_same_variance_as_the_sum_of_each_tables_cells():
    """Tracts × race, from tracts × race × voting age and from blocks × race."""
    observed = block_tables()
    solver, axis = SpineSolver(observed), observed.shape.axes[0]
    tract, race = 4, 2
    ones = [np.eye(axis.sizes[2])[tract], np.eye(5)[race], np.ones(1)]
    own = list(zip((2, 1, 0), ones, strict=True))
    by_age = [*own[:2], (1, np.ones(2))]
    by_blocks = [(3, (axis.ancestors(3, 2) == tract).astype(float)), *own[1:]]
    wanted = solver.of_cells((2, 1, 0))[tract, race, 0]
    for one, other in product((own, by_age, by_blocks), repeat=2):
        assert solver.covariance(one, other) == pytest.approx(wanted, rel=1e-9)


def test_another_measurement_makes_no_variance_larger():
    observed = block_tables()
    alone = Observed(observed.shape, {c: observed.variances[c] for c in observed.tables},
                     observed.public)  # fmt: skip
    for cuboid in answerable(observed):
        more, less = SpineSolver(observed).of_cells(cuboid), SpineSolver(alone).of_cells(cuboid)
        assert (more <= less * (1 + 1e-12)).all()
    assert SpineSolver(observed).mean((1, 0, 1)) < 0.99 * SpineSolver(alone).mean((1, 0, 1))


def three_levels(*chosen, public=None):
    axis = [np.array([0, 2]), np.array([0, 2, 5])]
    return Observed(CubeShape.of([axis, axis]), dict.fromkeys(chosen, 1.0), public)


def test_one_axis_at_most_may_have_three_levels():
    assert SpineSolver.fits(three_levels((2, 2), (1, 0), (0, 2)))
    assert SpineSolver.fits(three_levels((1, 2), (1, 1), (0, 1)))  # the first is cut at level 1
    for observed in (
        three_levels((2, 2), (1, 0), (0, 1)),
        three_levels((2, 1), (1, 2)),
        three_levels((2, 2), (1, 0), public=(0, 1)),
    ):
        assert not SpineSolver.fits(observed)
        with pytest.raises(EstimateError, match="two axes or more"):
            SpineSolver(observed)


def test_the_spine_is_the_axis_with_most_nodes_that_can_be_it():
    small, large = [np.array([0, 2])], [np.array([0, 9])]
    shape = CubeShape.of([small, large, small])
    assert SpineSolver(Observed(shape, {(1, 1, 1): 1.0})).spine == 1
    assert SpineSolver(Observed(shape, {(1, 0, 1): 1.0})).spine == 0
    shape = CubeShape.of([[*small, np.array([0, 1, 3])], large])
    assert SpineSolver(Observed(shape, {(1, 0): 1.0, (2, 1): 1.0})).spine == 0
    assert SpineSolver(Observed(shape, {(2, 1): 1.0})).spine == 1


def test_it_is_a_solver_and_says_that_it_is_exact():
    solver: Solver = SpineSolver(block_tables())
    assert solver.is_exact
    assert "exactly" in solver.words


def test_every_measured_cuboid_is_estimated_though_attributes_are_many():
    """Eight attributes beside two levels; every cuboid of two of them, and all of one half."""
    shape = CubeShape.of([[np.array([0, 3])], *[[np.array([0, 2])]] * 8])
    pairs = [tuple(int(a in pair) for a in range(8)) for pair in combinations(range(8), 2)]
    chosen = {(1, *pair): 2.0 for pair in pairs} | {(0, 1, 1, 1, 1, 0, 0, 0, 0): 1.0}
    observed = Observed(shape, chosen)
    assert maximal(chosen) == observed.tables
    solver, leaves = SpineSolver(observed), np.arange(3 * 2**8, dtype=float)
    tables = {
        c: leaves.reshape(shape.shape(shape.finest))
        .sum(axis=tuple(a for a, k in enumerate(c) if k == 0), keepdims=True)
        for c in chosen
    }  # fmt: skip
    for cuboid, table in solver.estimates(tables, chosen).items():
        np.testing.assert_allclose(table, tables[cuboid], rtol=1e-12)
        assert 0 < solver.largest(cuboid) < chosen[cuboid]


def test_a_cross_of_all_attributes_may_have_any_cells_that_floats_can_count():
    """One margin of each: the totals of all tell the total, and a margin's cells stand alone."""

    def margins(axes, size):
        shape = CubeShape.of([[np.array([0, size])]] * axes)
        return Observed(shape, {tuple(row): 1.0 for row in np.eye(axes, dtype=int).tolist()})

    axes, size = 49, 1 << 20
    solver = SpineSolver(margins(axes, size))
    assert solver.mean((0,) * axes) == pytest.approx(size / axes, rel=1e-9)
    for first in (0, 48):  # the spine, and an attribute
        margin = tuple(int(axis == first) for axis in range(axes))
        expected = 1 - 1 / size + 1 / (size * axes)
        assert solver.mean(margin) == pytest.approx(expected, rel=1e-9)
    assert SpineSolver.fits(solver.observed)
    assert not SpineSolver.fits(margins(62, size))


def test_figures_of_a_state_need_no_array_of_its_cells():
    blocks = np.arange(0, 25_001, 25)
    shape = CubeShape.of([[np.array([0, 1000]), blocks], [np.array([0, 63])], [np.array([0, 2])]])
    solver = SpineSolver(Observed(shape, {(2, 1, 1): 2.0, (1, 0, 1): 1.0, (1, 0, 0): 3.0}))
    tracemalloc.start()
    mean, largest = solver.mean((2, 1, 1)), solver.largest((2, 1, 1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0 < mean <= largest * (1 + 1e-12) < 2
    assert peak < 8 * shape.cells((2, 1, 1)) / 5
