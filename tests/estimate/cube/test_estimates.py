import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import least_squares, upward
from hedgerow.estimate.cube.shape import CubeShape, is_within
from tests.estimate.cube.dense_cubes import cuboid_sums
from tests.estimate.dense import Dense
from tests.estimate.workload.test_solvers import product
from tests.estimate.workload.workloads import KINDS, random_tables

SHAPE = CubeShape.of([[np.array([0, 2]), np.array([0, 2, 5])]] * 2)
SQUARES = tuple(AxisSquares.of(axis, [3.0, 2.0, 1.0]) for axis in SHAPE.axes)
TABLES = {c: np.ones(SHAPE.shape(c)) for c in SHAPE.cuboids()}


def test_a_table_that_is_missing_or_of_another_shape_is_refused():
    finest = SHAPE.finest
    for wrong in (None, np.zeros(3), TABLES[finest].astype(np.int64)):
        given = {c: t for c, t in (TABLES | {finest: wrong}).items() if t is not None}
        with pytest.raises(EstimateError, match="needs a float64 table"):
            least_squares(SQUARES, given)


def test_a_noisy_count_that_is_not_finite_is_refused_in_every_cuboid():
    for cuboid, table in TABLES.items():
        with pytest.raises(EstimateError, match=re.escape(f"cuboid {cuboid} must be finite")):
            least_squares(SQUARES, TABLES | {cuboid: table * np.nan})


@pytest.mark.parametrize("own", [[1, 1], [1, 1, np.inf], [0, 1, 1], [1, np.nan, 1]])
def test_variances_that_do_not_fit_an_axis_are_refused(own):
    shape = CubeShape.of([[np.array([0, 2]), np.array([0, 1, 3])]])
    with pytest.raises(EstimateError, match="a variance above 0 for each of its 3 levels"):
        AxisSquares.of(shape.axes[0], own)


@pytest.mark.parametrize("leaves", [True, False])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_what_subtrees_say_is_unbiased_and_has_the_variance_that_settling_takes(leaves, seed):
    """By the dense solver over the measurements of a cell's own subtree."""
    rng = np.random.default_rng(seed)
    case = product(rng, KINDS[0], 0)
    squares, shape = case.solver.squares, case.observed.shape
    sums = {c: cuboid_sums(shape, c) for c in shape.cuboids()}
    true = rng.normal(size=shape.cells(shape.finest))
    exact = {c: (own @ true).reshape(shape.shape(c)) for c, own in sums.items()}
    if not leaves:
        del exact[shape.finest]
    given = {c: t.copy() for c, t in exact.items()}
    upward(squares, given)
    for cuboid, table in given.items():
        np.testing.assert_allclose(table, exact[cuboid], rtol=1e-9, atol=1e-9)
    if not leaves:
        return
    tables = random_tables(rng, case.observed)
    noisy = {c: t.ravel().copy() for c, t in tables.items()}
    upward(squares, tables)
    cuboid = tuple(int(rng.integers(axis.depth + 1)) for axis in shape.axes)
    cell = tuple(int(rng.integers(n)) for n in shape.shape(cuboid))
    inside = sums[cuboid][np.ravel_multi_index(cell, shape.shape(cuboid))] > 0
    fine = {c: sums[c][:, inside] for c in sums if is_within(cuboid, c)}
    kept = {c: own.any(axis=1) for c, own in fine.items()}
    dense = Dense.of((fine[c][kept[c]], case.weights[c]) for c in fine)
    wanted = (dense.gain @ np.concatenate([noisy[c][kept[c]] for c in fine])).sum()
    assert tables[cuboid][cell] == pytest.approx(wanted, rel=1e-8, abs=1e-7)
    product_of = np.prod([s.combined[k][i] for s, k, i in zip(squares, cuboid, cell, strict=True)])
    assert product_of == pytest.approx(dense.covariance.sum(), rel=1e-8)


def test_without_leaves_their_margins_are_combined_as_if_there_were_none():
    rng = np.random.default_rng(4)
    tables = {c: rng.normal(size=t.shape) for c, t in TABLES.items() if c != SHAPE.finest}
    given = {c: t.copy() for c, t in tables.items()}
    upward(SQUARES, given)
    short = SQUARES[0].down_to(1)
    below = tables[1, 2]
    assert (given[1, 2] == below).all()
    wanted = short.own_weight(0) * tables[0, 2][0] + short.child_weight(0) * below.sum(axis=0)
    np.testing.assert_allclose(given[0, 2][0], wanted)
