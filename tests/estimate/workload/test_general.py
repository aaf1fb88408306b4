import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube import shape as shapes
from hedgerow.estimate.cube.shape import CubeShape, meet, summed
from hedgerow.estimate.workload import dense, general
from hedgerow.estimate.workload.bounds import bounds, least_mean
from hedgerow.estimate.workload.general import EXACT, GeneralSolver
from hedgerow.estimate.workload.observed import Observed
from hedgerow.estimate.workload.spine import SpineSolver
from hedgerow.limits import MOST_DENSE
from tests.estimate import rationals
from tests.estimate.cube.dense_cubes import cuboid_sums
from tests.estimate.workload.workloads import (
    KINDS,
    DenseWorkload,
    answerable,
    drawn_workload,
    random_shape,
    random_tables,
    random_workload,
    two_tables,
)

SEEDS = st.integers(0, 2**32 - 1)
many = settings(max_examples=40, deadline=None)
few = settings(max_examples=30, deadline=None)


def rounding(oracle):
    """Below this a variance is 0."""
    return 1e-12 * max(oracle.observed.variances.values()) * len(oracle.covariance)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=SEEDS)
@many
def test_mean_variances_are_at_least_what_is_said(kind, seed):
    _, observed = drawn_workload(seed, kind)
    oracle = DenseWorkload(observed)
    for cuboid in answerable(observed):
        if not observed.is_public(cuboid):
            mean = oracle.variances(cuboid).mean()
            assert least_mean(observed, cuboid) <= mean * (1 + 1e-9) + rounding(oracle)


def test_a_solver_says_what_its_variances_are(monkeypatch):
    for seed in range(20):
        _, observed = drawn_workload(seed, KINDS[seed % 4])
        assert "estimated exactly" in GeneralSolver.of(observed).words
        with monkeypatch.context() as patch:
            patch.setattr(general, "MOST_DENSE", -1)
            solver = GeneralSolver.of(observed)
            assert ("upper bounds" in solver.words) == bool(solver.dual.size)


@pytest.mark.parametrize("is_known", [False, True])
def test_nothing_is_lost_from_below_where_all_nodes_of_a_level_have_as_many_children(is_known):
    """Margins of two axes and pairs at two levels, of which none refines another."""
    axis = [np.array([0, 3]), np.array([0, 2, 4, 6])]
    shape = CubeShape.of([axis, axis[:1], axis])
    noise = {(1, 0, 0): 2.0, (2, 1, 0): 0.7, (0, 1, 2): 5.0, (1, 0, 2): 0.3, (2, 1, 2): 9.0}
    observed = Observed(shape, noise, shape.total if is_known else None)
    oracle = DenseWorkload(observed)
    for cuboid in answerable(observed):
        if not observed.is_public(cuboid):
            mean = oracle.variances(cuboid).mean()
            assert least_mean(observed, cuboid) == pytest.approx(mean, rel=1e-9)


def test_a_solver_by_gradients_says_how_far_its_bounds_are_above_the_exact_errors(monkeypatch):
    monkeypatch.setattr(general, "MOST_DENSE", -1)
    drawn = (drawn_workload(seed, KINDS[0])[1] for seed in range(50))
    observed = max(drawn, key=lambda each: GeneralSolver.of(each).dual.size)
    solver, oracle = GeneralSolver.of(observed), DenseWorkload(observed)
    said = re.search(
        r"root mean square is at most ([\d.,]+) % above that of the exact", solver.words
    )
    exact = {cuboid: oracle.variances(cuboid).mean() for cuboid in observed.variances}
    above = max((solver.mean(cuboid) / exact[cuboid]) ** 0.5 - 1 for cuboid in exact)
    assert 100 * above <= float(said[1].replace(",", "")) * 1.01


def test_bounds_of_mean_variances_are_within_2_6_times_them_for_99_percent_of_cuboids(monkeypatch):
    """And within 8 times for all, on random workloads whose variances are far apart."""
    monkeypatch.setattr(general, "MOST_DENSE", -1)
    found = []
    for seed in range(1_200):
        _, observed = drawn_workload(seed, KINDS[seed % 4])
        solver, oracle = GeneralSolver.of(observed), DenseWorkload(observed)
        means = {c: oracle.variances(c).mean() for c in answerable(observed)}
        found += [solver.mean(c) / mean for c, mean in means.items() if mean > rounding(oracle)]
    assert len(found) > 3_500
    assert max(found) < 8
    assert np.quantile(found, 0.99) < 2.6
    assert np.quantile(found, 0.5) < 1.01


@pytest.mark.parametrize("most", [MOST_DENSE, -1])
@given(seed=SEEDS)
@few
def test_tables_agree_on_every_common_coarsening(most, seed):
    rng = np.random.default_rng(seed)
    observed = two_tables(rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(general, "MOST_DENSE", most)
        solver = GeneralSolver.of(observed)
    shape, tables = observed.shape, observed.tables
    found = solver.estimates(random_tables(rng, observed), tables)
    for i, one in enumerate(tables):
        for other in tables[:i]:
            common = meet(one, other)
            a, b = (summed(shape, found[t], t, common) for t in (one, other))
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * np.abs(a).max())


def test_work_in_pieces_gives_the_same(monkeypatch):
    """Columns in blocks, tables in strips, and variances that are not kept."""
    for seed in range(20):
        rng, observed = drawn_workload(seed, KINDS[seed % 4])
        tables, whole = random_tables(rng, observed), GeneralSolver.of(observed)
        with monkeypatch.context() as patch:
            patch.setattr(dense, "CHUNK", 7)
            patch.setattr(shapes, "STRIP_CELLS", 3)
            patch.setattr(general, "MOST_CACHED", 0)
            pieces = GeneralSolver.of(observed)
            every = answerable(observed)
            found, cells = pieces.estimates(tables, every), list(map(pieces.of_cells, every))
            assert not pieces._cache
        wanted = whole.estimates(tables, every)
        for cuboid, variances in zip(every, cells, strict=True):
            np.testing.assert_allclose(found[cuboid], wanted[cuboid], rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(variances, whole.of_cells(cuboid), rtol=1e-9, atol=1e-9)
        assert sorted(whole._cache) == sorted(every)


def even_commuting(families, variance=1.0, public=(0, 0)):
    """Two axes of even families; a chain and both margins measured."""
    starts, nodes = [], 1
    for size in families:
        starts.append(np.arange(nodes + 1) * size)
        nodes *= size
    depth = len(families)
    chain = [c for k in range(1, depth + 1) for c in ((k, k - 1), (k, k))]
    measured = {*chain, (depth, 0), (0, depth)}
    shape = CubeShape.of([starts, starts])
    return Observed(shape, {c: variance for c in measured if c != public}, public)


def test_variances_that_were_told_can_be_changed_without_harm():
    solver = GeneralSolver.of(even_commuting([2, 2]))
    before = solver.of_cells((2, 1)).copy()
    solver.of_cells((2, 1))[...] = -1
    np.testing.assert_array_equal(solver.of_cells((2, 1)), before)
    assert solver.of_cells((0, 0)) == 0  # what is public, to the last bit


def test_bounds_of_a_table_are_told_by_its_families(monkeypatch):
    """They take no array of the table's own size."""
    observed = even_commuting([2, 3])
    told, cells = bounds(observed, (2, 2))
    assert (told, cells.shape) == ((2, 1), (6, 2))
    monkeypatch.setattr(general, "MOST_DENSE", -1)
    spread = np.repeat(cells, 3, axis=1)
    np.testing.assert_array_equal(GeneralSolver.of(observed).of_cells((2, 2)), spread)


def test_the_normal_equations_hold_to_1e_9_after_gradients(monkeypatch):
    """What is left of Σ S_cᵀ (M_c - S_c x) / v_c, but a constant, which the public total takes."""
    monkeypatch.setattr(general, "MOST_DENSE", -1)
    observed = even_commuting([3, 4, 3], 4.0)
    shape = observed.shape
    tables = random_tables(np.random.default_rng(1), observed)
    found = GeneralSolver.of(observed).estimates(tables, observed.variances)
    left, whole = np.zeros(shape.cells(shape.finest)), np.zeros(shape.cells(shape.finest))
    for cuboid, variance in observed.variances.items():
        matrix = cuboid_sums(shape, cuboid)
        left += matrix.T @ (tables[cuboid] - found[cuboid]).ravel() / variance
        whole += matrix.T @ tables[cuboid].ravel() / variance
    assert np.linalg.norm(left - left.mean()) <= 1e-9 * np.linalg.norm(whole)


def test_gradients_settle_however_large_the_counts_are(monkeypatch):
    """Counts of 10¹² whose noise is small: their differences are little but rounding."""
    monkeypatch.setattr(general, "MOST_DENSE", -1)
    observed = even_commuting([3, 4], 1e-6)
    shape = observed.shape
    leaves = np.random.default_rng(2).integers(0, 10**12, shape.cells(shape.finest)).astype(float)
    cuboids = {*observed.variances, shape.total}
    tables = {c: (cuboid_sums(shape, c) @ leaves).reshape(shape.shape(c)) for c in cuboids}
    found = GeneralSolver.of(observed).estimates(tables, [shape.finest])[shape.finest]
    np.testing.assert_allclose(found.ravel(), leaves, rtol=1e-9)


def test_gradients_that_take_too_long_are_given_up(monkeypatch):
    monkeypatch.setattr(general, "MOST_DENSE", -1)
    monkeypatch.setattr(general, "MOST_STEPS", 2)
    observed = even_commuting([3, 4])
    tables = random_tables(np.random.default_rng(3), observed)
    with pytest.raises(EstimateError, match="do not settle within 2 steps"):
        GeneralSolver.of(observed).estimates(tables, [(0, 2)])


def test_a_workload_of_too_many_cells_is_refused(monkeypatch):
    observed = even_commuting([2, 2])
    cells = sum(observed.shape.cells(c) for c in observed.variances)
    monkeypatch.setattr(general, "MOST_CELLS_OF_TABLES", cells)
    GeneralSolver.of(observed)
    monkeypatch.setattr(general, "MOST_CELLS_OF_TABLES", cells - 1)
    with pytest.raises(EstimateError, match=f"and these have {cells}; leave out cuboids"):
        GeneralSolver.of(observed)


def of_few_cells(rng, axes):
    """A random workload of three cuboids or more."""
    while True:
        drawn = random_workload(rng, str(rng.choice(KINDS)), random_shape(rng, axes=axes))
        sizes = [] if drawn is None else [*map(drawn.shape.cells, drawn.variances)]
        if len(sizes) > 2 and sum(sizes) <= 24:
            return drawn


def small_and_far_apart(seed, apart):
    """A workload of few cells, most of its noise at one of two variances; and the exact ones.

    Returns:
        The workload, and for each cuboid that is answerable and not public its cells' variances.
    """
    rng = np.random.default_rng(seed)
    drawn = of_few_cells(rng, axes=2 + seed % 2)
    ends = apart ** rng.choice([-0.5, 0.5, rng.uniform(-0.5, 0.5)], len(drawn.variances))
    ends[:2] = apart**-0.5, apart**0.5
    noise = dict(zip(drawn.variances, ends.tolist(), strict=True))
    observed = Observed(drawn.shape, noise, drawn.public)
    rows = np.vstack([cuboid_sums(observed.shape, c) for c in noise])
    each = np.concatenate([np.full(observed.shape.cells(c), v) for c, v in noise.items()])
    exact = np.zeros((0, rows.shape[1]), dtype=int)
    if observed.public is not None:
        exact = cuboid_sums(observed.shape, observed.public)
    columns = rationals.unknowns(np.vstack([rows, exact]))
    exact = exact[:, columns]
    exact = exact[rationals.unknowns(exact.T)] if len(exact) else exact
    known, found = rationals.covariance(rows[:, columns], each, exact), {}
    for cuboid in answerable(observed):
        if not observed.is_public(cuboid):
            cells = cuboid_sums(observed.shape, cuboid)[:, columns]
            found[cuboid] = np.array([rationals.variance(known, row) for row in cells])
    return observed, found


@pytest.mark.parametrize(("apart", "most"), [(2.0**10, 1e-11), (2.0**20, 1e-7), (EXACT, 1e-3)])
@pytest.mark.parametrize("seed", range(30))
def test_a_factor_keeps_the_digits_of_variances_where_noise_is_far_apart(seed, apart, most):
    observed, wanted = small_and_far_apart(seed, apart)
    solver = GeneralSolver.of(observed)
    assert solver.is_exact
    for cuboid, cells in wanted.items():
        found = solver.of_cells(cuboid).ravel()
        np.testing.assert_allclose(found[cells > 0], cells[cells > 0], rtol=most)


def test_a_factor_keeps_what_an_only_child_has_of_a_parent_that_is_measured_far_better():
    """What the rows take off is a square of tables that cancel: squared first, nothing was left."""
    shape = CubeShape.of([[np.array([0, 3]), np.array([0, 1, 2, 4])], [np.array([0, 3])]])
    good, bad = 2.0**-15, 2.0**15
    noise = {(1, 1): good, (2, 1): bad, (1, 0): 2.0**-10, (2, 0): good, (0, 1): good}
    observed = Observed(shape, noise, shape.total)
    found, exact = (of(observed).of_cells((2, 1)) for of in (GeneralSolver.of, SpineSolver))
    assert exact.min() < 1e-8 * exact.max()
    np.testing.assert_allclose(found, exact, rtol=1e-5)


def test_variances_are_bounds_beside_a_factor_where_noise_is_farther_apart():
    compared = 0
    for seed in range(20):
        observed, wanted = small_and_far_apart(seed, EXACT * 2**14)
        solver = GeneralSolver.of(observed)
        assert solver.is_dense
        assert solver.is_exact == (not solver.dual.size)
        assert ("upper bounds" in solver.words) == bool(solver.dual.size)
        if not solver.dual.size:
            continue
        compared += 1
        axes, c = observed.shape.axes, next(iter(wanted))
        for cuboid, cells in wanted.items():
            assert (solver.of_cells(cuboid).ravel() >= cells * (1 - 1e-4)).all()
        product = [(k, np.ones(axis.sizes[k])) for k, axis in zip(c, axes, strict=True)]
        with pytest.raises(EstimateError, match="covariances are unknown where noise is so far"):
            solver.covariance(product, product)
    assert compared > 10


@pytest.mark.parametrize("limit", ["MOST_DENSE", "MOST_EXACT", "MOST_KEPT"])
def test_variances_are_bounds_beyond_each_limit(monkeypatch, limit):
    """Chain (2, 1) of 8 cells, (2, 2) of 16: 8 rows beside; they see 8 + 4 + 4 numbers and 16."""
    observed = even_commuting([2, 2])
    exactly = {"MOST_DENSE": 8, "MOST_EXACT": 8 * 16, "MOST_KEPT": 8 * 16}[limit]
    monkeypatch.setattr(general, limit, exactly)
    assert GeneralSolver.of(observed).is_exact
    monkeypatch.setattr(general, limit, exactly - 1)
    solver = GeneralSolver.of(observed)
    assert not solver.is_exact
    product = [(2, np.ones(4)), (0, np.ones(1))]
    with pytest.raises(EstimateError, match="covariances of so large a workload are unknown"):
        solver.covariance(product, product)


def test_variances_that_are_too_far_apart_for_floats_are_refused():
    shape = even_commuting([2, 2]).shape
    far = {(2, 2): 1e60, (1, 1): 1e-60, (1, 0): 1e-120, (0, 2): 1e-120, (2, 0): 1e-200}
    with pytest.raises(EstimateError, match="too far apart for its least squares"):
        GeneralSolver.of(Observed(shape, far)).rehearse()


@pytest.mark.parametrize("factored", [True, False])
def test_a_rehearsal_finds_what_would_fail_after_the_charge(monkeypatch, factored):
    shape = even_commuting([2, 2]).shape
    fine = {(2, 2): 4.0, (1, 1): 4.0, (1, 0): 4.0, (0, 2): 4.0, (2, 0): 4.0}
    if not factored:
        monkeypatch.setattr(general, "MOST_DENSE", 0)
    solver = GeneralSolver.of(Observed(shape, fine))
    assert solver.is_exact == factored
    solver.rehearse()
    monkeypatch.setattr(general, "MOST_STEPS", 2)
    if not factored:
        with pytest.raises(EstimateError, match="do not settle within 1 steps"):
            solver.rehearse()
