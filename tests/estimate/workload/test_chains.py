import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.estimate.cube.shape import CubeShape, is_within
from hedgerow.estimate.workload.chains import chains_of
from hedgerow.estimate.workload.dual import dual_of
from hedgerow.estimate.workload.observed import Observed
from hedgerow.estimate.workload.overlap import Layers
from tests.estimate.cube.dense_cubes import cuboid_sums
from tests.estimate.workload.workloads import (
    KINDS,
    drawn_workload,
    random_shape,
    two_tables,
)

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40, deadline=None)


def halves(*depths):
    """Axes of binary families."""
    return CubeShape.of([[np.arange(2**k + 1) * 2 for k in range(depth)] for depth in depths])


def test_a_chain_takes_the_nested_cuboids_of_the_most_cells():
    measured = [(1, 1), (2, 0), (0, 2), (2, 1), (2, 2)]
    (chain,) = chains_of(Observed(halves(2, 2), dict.fromkeys(measured, 1.0)))
    assert chain.cuboids in {((1, 1), (2, 1), (2, 2)), ((2, 0), (2, 1), (2, 2))}
    (chain,) = chains_of(Observed(halves(2, 2), dict.fromkeys([(2, 0), (1, 0), (2, 2)], 2.0)))
    assert (chain.cuboids, chain.variances) == (((1, 0), (2, 0), (2, 2)), (2.0, 2.0, 2.0))


def test_a_chain_begins_with_what_is_public_within_its_table():
    measured = [(2, 0), (0, 2), (1, 1), (0, 1)]
    chains = chains_of(Observed(halves(2, 2), dict.fromkeys(measured, 1.0), (1, 0)))
    found = {chain.table: (chain.cuboids, chain.variances) for chain in chains}
    assert found[0, 2] == (((0, 0), (0, 1), (0, 2)), (0.0, 1.0, 1.0))
    assert found[2, 0] == (((1, 0), (2, 0)), (0.0, 1.0))
    assert found[1, 1] == (((1, 0), (1, 1)), (0.0, 1.0))


@given(seed=SEEDS)
@few
def test_every_measurement_is_on_one_chain_or_in_one_row(seed):
    _, observed = drawn_workload(seed, KINDS[seed % 4])
    chains = chains_of(observed)
    dual = dual_of(observed, chains)
    used = [c for chain in chains for c in chain.cuboids if not observed.is_public(c)]
    used += [rows.cuboid for rows in dual.rows if rows.variance]
    assert sorted(used) == sorted(observed.variances)
    for chain in chains:
        for coarse, fine in zip(chain.cuboids, chain.cuboids[1:], strict=False):
            assert coarse != fine
            assert is_within(coarse, fine)


@given(seed=SEEDS)
@few
def test_no_row_follows_from_others_and_the_diagonal_is_bounded(seed):
    observed = two_tables(np.random.default_rng(seed))
    dual = dual_of(observed, chains_of(observed))
    if not dual.size:
        return
    system = dual.times(np.eye(dual.size))
    np.testing.assert_allclose(system, system.T, rtol=1e-9, atol=1e-9 * np.abs(system).max())
    scale = 1 / np.sqrt(dual.diagonal())
    assert (np.diag(system) <= dual.diagonal() * (1 + 1e-9)).all()
    assert np.linalg.eigvalsh(system * np.multiply.outer(scale, scale))[0] > 1e-9


@given(seed=SEEDS)
@few
def test_overlaps_are_those_of_dense_matrices(seed):
    rng = np.random.default_rng(seed)
    shape = random_shape(rng)
    every = list(shape.cuboids())
    table = every[rng.integers(0, len(every))]
    inside = [c for c in every if is_within(c, table)]
    one, other = (inside[i] for i in rng.integers(0, len(inside), 2))
    weights = rng.normal(size=(*shape.shape(one), 2))
    sums = {c: cuboid_sums(shape, c) for c in (one, other, table)}
    cells = sums[table] / sums[table].sum(axis=1, keepdims=True)
    matrix = (sums[other] @ cells.T) @ (sums[one] @ cells.T).T
    wanted = (matrix @ weights.reshape(-1, 2)).reshape(*shape.shape(other), 2)
    np.testing.assert_allclose(Layers(shape, table, {one: weights}).sums(other), wanted, atol=1e-9)


def test_sums_leave_their_parts_as_they_are():
    parts = {(1, 1): np.ones((2, 2, 1)), (0, 0): np.ones((1, 1, 1))}
    np.testing.assert_array_equal(Layers(halves(1, 1), (1, 1), parts).sums((1, 1)), 2)
    np.testing.assert_array_equal(parts[1, 1], 1)


@pytest.mark.parametrize(
    ("public", "expected"),
    [
        (None, {(0, 0, 1): 2, (0, 1, 0): 2, (1, 0, 0): 1}),
        ((0, 0, 0), {(0, 0, 1): 1, (0, 1, 0): 1, (1, 0, 0): 1}),
        ((1, 0, 0), {(0, 0, 1): 1, (0, 1, 0): 1}),
    ],
)
def test_ties_of_three_tables_are_as_many_as_they_have_to_be(public, expected):
    """The last table is tied on two margins; the second of them leaves out the total."""
    measured = dict.fromkeys([(0, 1, 1), (1, 0, 1), (1, 1, 0)], 1.0)
    observed = Observed(halves(1, 1, 1), measured, public)
    ties = dual_of(observed, chains_of(observed)).rows
    assert all(rows.variance == 0 for rows in ties)
    assert {rows.cuboid: len(rows) for rows in ties} == expected
