import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import least_squares, upward
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.cube.variances import CubeVariances
from tests.estimate.cube.dense_cubes import axis_sums, cuboid_sums, dense_gain, random_axis

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=60)
WIDEST = {1: (4, 4), 2: (3, 3), 3: (2, 3), 4: (2, 2)}  # depth and width by number of axes
KINDS = ["total measured", "total public", "level invariant", "cuboid public"]


def random_cube(rng, kind, *, unmeasured=False):
    """Squares with random variances, a table of leaves, a noisy table of every cuboid."""
    axes = int(rng.integers(1, 5))
    depth, widest = WIDEST[axes]
    shape = CubeShape.of([random_axis(rng, int(rng.integers(1, depth + 1)), widest)
                          for _ in range(axes)])  # fmt: skip
    squares = []
    for axis in shape.axes:
        own = np.exp(rng.normal(0, 1.5, axis.depth + 1))
        if unmeasured:
            own[:-1][rng.random(axis.depth) < 0.3] = np.inf
        squares.append(AxisSquares.of(axis, own))
    public = None if kind == "total measured" else list(shape.total)
    if kind == "level invariant":
        a = int(rng.integers(axes))
        public[a] = int(rng.integers(shape.axes[a].depth + 1))
    elif kind == "cuboid public":
        public = [int(rng.integers(axis.depth + 1)) for axis in shape.axes]
    public = None if public is None else tuple(public)
    leaves = rng.integers(0, 50, shape.shape(shape.finest)).astype(float)
    exact, tables, variances = shape.within(public), {}, {}
    for cuboid in shape.cuboids():
        true = (cuboid_sums(shape, cuboid) @ leaves.ravel()).reshape(shape.shape(cuboid))
        v = np.prod([own.own[k] for own, k in zip(squares, cuboid, strict=True)])
        if cuboid in exact:
            tables[cuboid] = true
        elif np.isinf(v):
            tables[cuboid] = np.zeros_like(true)
        else:
            tables[cuboid] = true + rng.normal(0, 5, true.shape)
            variances[cuboid] = v
    return shape, tuple(squares), public, tables, variances


def dense(shape, public, tables, variances):
    gains, covariance = dense_gain(shape, variances, public)
    leaves = sum(gains[c] @ tables[c].ravel() for c in variances)
    if public is not None:
        leaves = leaves + gains["public"] @ tables[public].ravel()
    return leaves, covariance


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_estimates_are_those_of_a_dense_solver(kind, seed):
    rng = np.random.default_rng(seed)
    shape, squares, public, tables, variances = random_cube(rng, kind, unmeasured=seed % 2 == 1)
    leaves, _ = dense(shape, public, tables, variances)
    least_squares(squares, tables, public)
    for cuboid in shape.cuboids():
        wanted = cuboid_sums(shape, cuboid) @ leaves
        np.testing.assert_allclose(tables[cuboid].ravel(), wanted, rtol=1e-9, atol=1e-9 * 1e3)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@few
def test_variances_of_cells_and_sums_are_those_of_a_dense_solver(kind, seed):
    rng = np.random.default_rng(seed)
    shape, squares, public, tables, variances = random_cube(rng, kind, unmeasured=seed % 2 == 1)
    _, covariance = dense(shape, public, tables, variances)
    found = CubeVariances(squares, public)
    scale = covariance.max() + 1e-12
    for cuboid in shape.cuboids():
        sums = cuboid_sums(shape, cuboid)
        wanted = np.diag(sums @ covariance @ sums.T)
        size = 1e-9 * max(scale, found.of_cells(cuboid).max())
        np.testing.assert_allclose(found.of_cells(cuboid).ravel(), wanted, rtol=1e-9, atol=size)
        assert found.mean(cuboid) == pytest.approx(wanted.mean(), rel=1e-9, abs=size)
        assert found.largest(cuboid) >= wanted.max() * (1 - 1e-9) - size
    pair, dense_pair = [], []
    for _ in range(2):
        levels = [int(rng.integers(axis.depth + 1)) for axis in shape.axes]
        product = [
            (k, rng.normal(size=a.sizes[k])) for a, k in zip(shape.axes, levels, strict=True)
        ]
        pair.append(product)
        each = [axis_sums(a)[k].T @ w for a, (k, w) in zip(shape.axes, product, strict=True)]
        whole = np.ones(1)
        for w in each:
            whole = np.kron(whole, w)
        dense_pair.append(whole)
    size = 1e-9 * scale * np.abs(dense_pair[0]).sum() * np.abs(dense_pair[1]).sum() + 1e-12
    wanted = dense_pair[0] @ covariance @ dense_pair[1]
    assert found.covariance(*pair) == pytest.approx(wanted, rel=1e-9, abs=size)
    wanted = dense_pair[0] @ covariance @ dense_pair[0]
    size = 1e-9 * scale * np.abs(dense_pair[0]).sum() ** 2 + 1e-12
    assert found.covariance(pair[0], pair[0]) == pytest.approx(wanted, rel=1e-9, abs=size)


def test_a_table_that_is_missing_or_of_another_shape_is_refused():
    _, squares, _, tables, _ = random_cube(np.random.default_rng(3), "total measured")
    finest = max(tables, key=sum)
    for wrong in (None, np.zeros(3), tables[finest].astype(np.int64)):
        given = {c: t for c, t in tables.items() if c != finest}
        if wrong is not None:
            given[finest] = wrong
        with pytest.raises(EstimateError, match="needs a float64 table"):
            least_squares(squares, given)


def test_a_noisy_count_that_is_not_finite_is_refused_in_every_cuboid():
    _, squares, _, tables, _ = random_cube(np.random.default_rng(3), "total measured")
    for cuboid, table in tables.items():
        wrong = table.copy()
        wrong.flat[-1] = np.nan
        with pytest.raises(EstimateError, match=re.escape(f"cuboid {cuboid} must be finite")):
            least_squares(squares, {**tables, cuboid: wrong})


@pytest.mark.parametrize("own", [[1, 1], [1, 1, np.inf], [0, 1, 1], [1, np.nan, 1]])
def test_variances_that_do_not_fit_an_axis_are_refused(own):
    shape = CubeShape.of([[np.array([0, 2]), np.array([0, 1, 3])]])
    with pytest.raises(EstimateError, match="a variance above 0 for each of its 3 levels"):
        AxisSquares.of(shape.axes[0], own)


@pytest.mark.parametrize("leaves", [True, False])
@given(seed=SEEDS)
@few
def test_what_subtrees_say_is_unbiased_and_has_the_variance_that_settling_takes(leaves, seed):
    """By the dense solver over the measurements of a cell's own subtree."""
    rng = np.random.default_rng(seed)
    shape, squares, _, tables, variances = random_cube(rng, "total measured")
    true = rng.normal(size=shape.shape(shape.finest))
    exact = {c: (cuboid_sums(shape, c) @ true.ravel()).reshape(shape.shape(c)) for c in tables}
    if not leaves:
        del exact[shape.finest]
    given = {c: t.copy() for c, t in exact.items()}
    upward(squares, given)
    for cuboid, table in given.items():
        np.testing.assert_allclose(table, exact[cuboid], rtol=1e-9, atol=1e-9)
    if not leaves:
        return
    upward(squares, tables_copy := {c: t.copy() for c, t in tables.items()})
    cuboid = tuple(int(rng.integers(axis.depth + 1)) for axis in shape.axes)
    cell = tuple(int(rng.integers(n)) for n in shape.shape(cuboid))
    sums = cuboid_sums(shape, cuboid)[np.ravel_multi_index(cell, shape.shape(cuboid))] > 0
    information, seen = 0.0, 0.0
    for c, v in variances.items():
        if all(a >= b for a, b in zip(c, cuboid, strict=True)):
            inside = cuboid_sums(shape, c)
            kept = inside[:, sums].any(axis=1)
            inside = inside[kept][:, sums]
            information = information + inside.T @ inside / v
            seen = seen + inside.T @ tables[c].ravel()[kept] / v
    inverse = np.linalg.inv(information)
    wanted = (inverse @ seen).sum()
    assert tables_copy[cuboid][cell] == pytest.approx(wanted, rel=1e-8, abs=1e-7)
    product = np.prod([s.combined[k][i] for s, k, i in zip(squares, cuboid, cell, strict=True)])
    assert product == pytest.approx(inverse.sum(), rel=1e-8)


def test_without_leaves_their_margins_are_combined_as_if_there_were_none():
    rng = np.random.default_rng(4)
    shape = CubeShape.of([[np.array([0, 2]), np.array([0, 2, 5])]] * 2)
    squares = tuple(AxisSquares.of(axis, [3.0, 2.0, 1.0]) for axis in shape.axes)
    tables = {c: rng.normal(size=shape.shape(c)) for c in shape.cuboids() if c != (2, 2)}
    given = {c: t.copy() for c, t in tables.items()}
    upward(squares, given)
    short = squares[0].down_to(1)
    below = tables[1, 2]
    assert (given[1, 2] == below).all()
    wanted = short.own_weight(0) * tables[0, 2][0] + short.child_weight(0) * below.sum(axis=0)
    np.testing.assert_allclose(given[0, 2][0], wanted)
