"""The contract: what holds for every way to estimate cuboids, beside dense matrices."""

import re
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube import variances as chunks
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.cube.variances import nominal_of
from hedgerow.estimate.workload import general
from hedgerow.estimate.workload.general import GeneralSolver
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.product import ProductSolver
from hedgerow.estimate.workload.spine import SpineSolver
from tests.estimate.cube.dense_cubes import axis_sums, random_axis
from tests.estimate.workload.workloads import (
    KINDS,
    DenseWorkload,
    answerable,
    brute_sums,
    drawn_workload,
    random_public,
    random_shape,
    random_tables,
    random_workload,
)

SEEDS = st.integers(0, 2**32 - 1)


@dataclass
class Case:
    """A solver, what it is asked, and how near it has to come."""

    solver: Solver
    estimates: float
    variances: float
    weights: dict | None = None

    def __post_init__(self):
        self.observed = self.solver.observed
        self.every = answerable(self.observed)
        self.dense = DenseWorkload(self.observed, self.weights)
        self.largest = max(self.observed.variances.values())
        self.rounding = 1e-12 * self.largest * len(self.dense.covariance)  # a variance of 0


def product(rng, kind, seed, *, other=False):
    """Squares with random variances, some infinite; and noise that has others, or the same."""
    observed = None
    while observed is None:
        shape = random_shape(rng, int(rng.integers(1, 5)))
        squares = []
        for axis in shape.axes:
            own = np.exp(rng.normal(0, 1.5, axis.depth + 1))
            if seed % 2:
                own[:-1][rng.random(axis.depth) < 0.3] = np.inf
            squares.append(AxisSquares.of(axis, own))
        public = random_public(rng, kind, [range(axis.depth + 1) for axis in shape.axes])
        exact, nominal = shape.within(public), {c: nominal_of(squares, c) for c in shape.cuboids()}
        nominal = {c: v for c, v in nominal.items() if c not in exact and v < np.inf}
        if nominal:
            noise = {c: v * np.exp(rng.normal() * other) for c, v in nominal.items()}
            observed = Observed(shape, noise, public)
    return Case(ProductSolver(observed, squares), 1e-9, 1e-9, nominal)


def spine(rng, kind, _):
    """A spine and attributes.

    The spine is any axis and uneven, some of its levels are not measured; attributes may have a
    level between the total and their detail, and one below it, that no cuboid names.
    """
    while True:
        axes = int(rng.choice([1, 2, 2, 3, 3]))
        spine = int(rng.integers(axes))
        shape = CubeShape.of([
            random_axis(rng, int(rng.integers(1, 4)), 3 if axes < 3 or a == spine else 2)
            for a in range(axes)
        ])  # fmt: skip
        if shape.cells(shape.finest) > 250 or not all(axis.depth for axis in shape.axes):
            continue
        levels = [[0, max(1, axis.depth - int(rng.random() < 0.4))] for axis in shape.axes]
        levels[spine] = list(range(shape.axes[spine].depth + 1))
        if (observed := random_workload(rng, kind, shape, levels, most=9)) is not None:
            return Case(SpineSolver(observed), 1e-9, 1e-9)


def exact(_, kind, seed):
    return Case(GeneralSolver.of(drawn_workload(seed, kind)[1]), 1e-8, 1e-6)


def gradients(_, kind, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(general, "MOST_DENSE", -1)
        return Case(GeneralSolver.of(drawn_workload(seed, kind)[1]), 1e-8, 1e-6)


SOLVERS = {
    "product": product,
    "product, other noise": lambda *given: product(*given, other=True),
    "spine": spine,
    "general": exact,
    "by gradients": gradients,
}


def contract(test):
    """For every solver and whatever is public, on random workloads."""
    test = settings(max_examples=12, deadline=None)(given(seed=SEEDS)(test))
    test = pytest.mark.parametrize("kind", KINDS)(test)
    return pytest.mark.parametrize("name", SOLVERS)(test)


def drawn(name, kind, seed):
    rng = np.random.default_rng(seed)
    return rng, SOLVERS[name](rng, kind, seed)


@contract
def test_estimates_are_those_of_dense_matrices(name, kind, seed):
    rng, case = drawn(name, kind, seed)
    observed, shape = case.observed, case.observed.shape
    tables = random_tables(rng, observed)
    before, wanted = {c: t.copy() for c, t in tables.items()}, case.dense.estimates(tables)
    found = case.solver.estimates(tables, case.every)
    assert {*found} == {*case.every}
    for cuboid, table in found.items():
        assert (table.dtype, table.shape) == (np.float64, shape.shape(cuboid))
        scale = case.estimates * max(np.abs(t).max() for t in before.values())
        np.testing.assert_allclose(table, wanted[cuboid], case.estimates, scale)
        if observed.is_public(cuboid) and "product" not in name:
            known = brute_sums(shape, before[observed.public], observed.public, cuboid)
            assert (table == known).all()
        table[...] = -1  # nothing of it is a view of what was passed
    for cuboid, table in tables.items():
        assert (table == before[cuboid]).all()


@contract
@pytest.mark.sweep(4)
def test_variances_of_cells_are_those_of_dense_matrices_or_bounds(name, kind, seed):
    rng, case = drawn(name, kind, seed)
    is_bound = name == "by gradients"
    assert case.solver.is_exact != is_bound
    for cuboid in case.every:
        wanted, variances = case.dense.variances(cuboid), case.solver.variances_of(cuboid)
        near = {"rtol": case.variances, "atol": case.variances * wanted.max() + case.rounding}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chunks, "CHUNK", 3)
            codes = [rng.integers(0, n, 11) for n in wanted.shape]
            cells, listed = variances.of_cells(cuboid), variances.at(cuboid, codes)
        assert (cells.dtype, cells.shape) == (np.float64, wanted.shape)
        assert (listed.dtype, listed.shape) == (np.float64, (11,))
        np.testing.assert_allclose(listed, cells[tuple(codes)], 1e-12, 1e-3 * near["atol"])
        assert variances.at(cuboid, [code[:0] for code in codes]).shape == (0,)
        if is_bound:
            assert (cells >= wanted * (1 - 1e-9) - case.rounding).all()
            wanted = cells
        figures = variances.mean(cuboid), variances.largest(cuboid)
        np.testing.assert_allclose(cells, wanted, **near)
        np.testing.assert_allclose(figures, [wanted.mean(), wanted.max()], **near)
        if case.observed.is_public(cuboid) and "product" not in name:
            assert not cells.any()


@contract
def test_covariances_of_products_are_those_of_dense_matrices(name, kind, seed):
    rng, case = drawn(name, kind, seed)
    if name == "by gradients":
        return
    shape, covariance = case.observed.shape, case.dense.covariance
    for _ in range(5):
        pair, leaves = [], []
        for i in rng.integers(0, len(case.every), 2):
            levels = case.every[i]
            weights = [rng.normal(size=n) + 0.5 for n in shape.shape(levels)]
            pair.append([*zip(levels, weights, strict=True)])
            axes = zip(shape.axes, *zip(*pair[-1], strict=True), strict=True)
            leaves.append(reduce(np.kron, [axis_sums(axis)[k].T @ w for axis, k, w in axes]))
        found = case.solver.variances_of(case.every[-1])
        least = case.rounding * np.prod([np.abs(w).sum() for w in leaves])
        sd = [np.sqrt(abs(w @ covariance @ w)) for w in leaves]
        for one, other in ((0, 1), (0, 0)):
            wanted, size = leaves[one] @ covariance @ leaves[other], sd[one] * sd[other]
            told = found.covariance(pair[one], pair[other])
            assert told == pytest.approx(wanted, case.estimates, case.estimates * size + least)


def small(make):
    """A solver of (2, 0) and (1, 1), (1, 0) being public, and tables of ones."""
    shape = CubeShape.of([[np.array([0, 2]), np.array([0, 2, 4])], [np.array([0, 3])]])
    observed = Observed(shape, {(2, 0): 1.0, (1, 1): 2.0}, (1, 0))
    return make(observed), {c: np.ones(shape.shape(c)) for c in observed.cuboids}


MAKERS = pytest.mark.parametrize("make", [GeneralSolver.of, SpineSolver], ids=["general", "spine"])


@MAKERS
@pytest.mark.parametrize("cuboid", [(2, 0), (1, 0)])
@pytest.mark.parametrize("wrong", [None, np.ones((4, 2)), np.ones((4, 1), np.int64)])
def test_a_table_that_is_missing_or_of_another_kind_is_refused(make, cuboid, wrong):
    solver, tables = small(make)
    tables = {c: t for c, t in (tables | {cuboid: wrong}).items() if t is not None}
    expected = r"needs a float64 table of the shape \(., 1\), got (none|float64|int64)"
    with pytest.raises(EstimateError, match=expected):
        solver.estimates(tables, [(2, 0)])


@MAKERS
def test_a_noisy_count_that_is_not_finite_is_refused_in_every_cuboid(make):
    solver, tables = small(make)
    for cuboid, table in tables.items():
        wrong = table.copy()
        wrong.flat[-1] = np.nan
        with pytest.raises(EstimateError, match=re.escape(f"cuboid {cuboid} must be finite")):
            solver.estimates(tables | {cuboid: wrong}, [(2, 0)])


@MAKERS
def test_what_no_table_contains_is_refused_by_every_method(make):
    solver, tables = small(make)
    total = [(0, np.ones(1))] * 2
    for ask in (
        lambda: solver.estimates(tables, [(2, 1)]),
        lambda: solver.mean((2, 1)),
        lambda: solver.largest((2, 1)),
        lambda: solver.of_cells((2, 1)),
        lambda: solver.at((2, 1), [np.zeros(1, np.int64)] * 2),
        lambda: solver.covariance([(2, np.ones(4)), (1, np.ones(3))], total),
        lambda: solver.covariance(total, [(2, np.ones(4)), (1, np.ones(3))]),
    ):
        with pytest.raises(EstimateError, match=r"cuboid \(2, 1\) is no sum of a table's cells"):
            ask()
