import tracemalloc
from functools import partial

import numpy as np
import pytest

from hedgerow import kernels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.block import _fill, scratch_of
from hedgerow.estimate.cube.blocks import Blocks
from hedgerow.estimate.cube.estimates import upward
from hedgerow.estimate.cube.shape import CubeShape, summed
from hedgerow.estimate.cube.survivors import SparseBlocks
from hedgerow.estimate.cube.targets import settle_with_targets
from hedgerow.estimate.workload.lattice import Lattice, settle, settle_in_order
from hedgerow.estimate.workload.product import weight_of
from tests.estimate.cube.transport import (
    cost,
    optimum,
    optimum_by_linear_program,
    random_block,
)

KINDS = ["dense", "sparse", "very sparse", "lopsided", "wild", "steep"]


def settled(z, u, v, rows, columns):
    starts = np.array([0, len(rows)]), np.array([0, len(columns)])
    return Blocks.of_cuboid((u, v), starts).settle(z, (rows[:, None], columns[None, :]))


def blocks_below(margins, starts):
    """The blocks below margins that are whole tables."""
    each = (np.nonzero(table) for table in margins)
    listed = [
        (i.astype(np.int32), j.astype(np.int32), table[i, j])
        for (i, j), table in zip(each, margins, strict=True)
    ]
    parents = tuple(np.repeat(np.arange(len(s) - 1), np.diff(s)) for s in starts)
    return SparseBlocks.of_cells(*listed, parents)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_keep_their_margins_and_come_within_a_thousandth_of_the_optimum(kind):
    """To the targets; and no further than a hundredth from the counts themselves."""
    rng = np.random.default_rng(KINDS.index(kind))
    ours, best, wrong, least_wrong = 0.0, 0.0, 0.0, 0.0
    for _ in range(200):
        true, (z, u, v, rows, columns) = random_block(rng, kind)
        y = settled(z, u, v, rows, columns)
        assert (y >= 0).all()
        assert (y.sum(axis=1) == rows).all()
        assert (y.sum(axis=0) == columns).all()
        least = optimum(y, z, u, v)
        ours, best = ours + cost(y, z, u, v), best + cost(least, z, u, v)
        wrong, least_wrong = wrong + cost(y, true, u, v), least_wrong + cost(least, true, u, v)
    assert np.sqrt(ours / best) <= 1.001
    assert np.sqrt(wrong / least_wrong) <= 1.01


def test_the_optimum_that_blocks_are_held_to_is_that_of_a_linear_program():
    rng = np.random.default_rng(8)
    for kind in ("sparse", "very sparse", "lopsided", "steep"):
        for _ in range(8):
            _, (z, u, v, rows, columns) = random_block(rng, kind)
            least = optimum(settled(z, u, v, rows, columns), z, u, v)
            wanted = optimum_by_linear_program(z, u, v, rows, columns)
            assert cost(least, z, u, v) == pytest.approx(wanted, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("size", [1.0, 1e6, 1e30])
@pytest.mark.parametrize("uneven", [6, 150])
def test_margins_are_exact_whatever_the_estimates_and_weights_are(size, uneven):
    rng = np.random.default_rng(10)
    for _ in range(60):
        m, n = rng.integers(1, 9, 2)
        z = size * rng.standard_cauchy((m, n))
        u, v = np.exp(rng.normal(0, uneven, m)), np.exp(rng.normal(0, uneven, n))
        whole = int(10 ** rng.uniform(0, 11))
        rows = rng.multinomial(whole, rng.dirichlet(np.full(m, 0.3)))
        columns = rng.multinomial(whole, rng.dirichlet(np.full(n, 0.3)))
        y = settled(z, u, v, rows, columns)
        assert (y >= 0).all()
        assert (y.sum(axis=1) == rows).all()
        assert (y.sum(axis=0) == columns).all()


def test_estimates_stay_within_what_units_are_dealt_by_however_uneven_weights_are():
    """Beyond ±2^40 records sums cancel out, and dealing out the units of a row did not end."""
    rng = np.random.default_rng(12)
    for _ in range(20):
        u, v = 10.0 ** rng.uniform(-3, 21, 39), 10.0 ** rng.uniform(-12, 12, 40)
        y = rng.multinomial(1000, rng.dirichlet(np.full(39 * 40, 0.1))).reshape(39, 40)
        t = y + rng.normal(size=y.shape) * np.sqrt(np.outer(u, v))
        rows, columns = np.flatnonzero(y.sum(1)), np.flatnonzero(y.sum(0))
        t, u, v = np.ascontiguousarray(t[rows][:, columns]), u[rows], v[columns]
        sums = y.sum(1)[rows], y.sum(0)[columns]
        _fill(t, (u, v), sums, scratch_of(*t.shape))
        assert abs(t).max() <= 2.0**40


def test_a_long_row_of_small_shares_is_made_whole_at_once():
    z = np.full((3, 4000), 0.2)
    columns = np.zeros(4000, dtype=np.int64)
    columns[:2400:2] = 2
    y = settled(z, np.ones(3), np.ones(4000), np.array([800, 800, 800]), columns)
    assert (y.sum(axis=0) == columns).all()
    assert (y.sum(axis=1) == 800).all()


def test_of_equal_cells_each_gets_the_odd_record_as_often():
    """4 × 4 cells of equal targets, 2 in each row and column: within 5 standard errors of 1/2."""
    rng, runs = np.random.default_rng(11), 6000
    got = np.zeros((4, 4))
    for _ in range(runs):
        z = np.full((4, 4), float(rng.integers(0, 10**6)))
        y = settled(z, np.ones(4), np.ones(4), np.full(4, 2), np.full(4, 2))
        assert y.max() == 1
        got += y
    assert (np.abs(got / runs - 0.5) <= 5 * 0.5 / np.sqrt(runs)).all()


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_estimates_that_are_not_finite_are_refused(wrong):
    z = np.ones((2, 2))
    z[1, 1] = wrong
    with pytest.raises(EstimateError, match="must be finite"):
        settled(z, np.ones(2), np.ones(2), np.array([2, 2]), np.array([2, 2]))


def noisy_cube(seed, child_start, axes, mean, spread=0.0):
    """A cube's shape, squares, a noisy table of each cuboid, and the table of its total."""
    rng, shape = np.random.default_rng(seed), CubeShape.of([child_start] * axes)
    squares = tuple(AxisSquares.of(axis, [5.0, 4.0, 3.0]) for axis in shape.axes)
    leaves = rng.poisson(mean * rng.lognormal(0, spread, shape.shape(shape.finest)))
    tables = {
        c: summed(shape, leaves, shape.finest, c) + rng.normal(0, 60**0.5, shape.shape(c))
        for c in shape.cuboids()
    }
    return shape, squares, tables, {shape.total: leaves.sum().reshape((1,) * axes)}


def settled_by(settle, shape, squares, tables, exact):
    """Whole counts of a cube, from what each cell's own subtree says."""
    upward(squares, tables)
    lattice = Lattice.of([*tables, *exact], tables, public=shape.total)
    return settle(shape, lattice, tables, exact, partial(weight_of, squares, tables=tables))


def test_settling_does_not_depend_on_how_many_threads_share_it(monkeypatch):
    found = []
    for cores in (1, 3):
        cube = noisy_cube(13, [np.array([0, 8]), np.arange(0, 321, 40)], 2, 1)
        monkeypatch.setattr(kernels, "core_count", lambda cores=cores: cores)
        found.append(settled_by(settle, *cube))
    for cuboid, counts in found[0].items():
        assert (counts == found[1][cuboid]).all()


def test_without_leaves_their_margins_are_settled_as_those_of_shorter_axes():
    """(3, 2) of a cube of depths 3 × 2 whose leaves are missing stands below (3, 1) and (2, 2)."""
    children = [np.array([0, 3]), np.array([0, 1, 9, 12])]
    cube = noisy_cube(14, children, 2, 2)
    shape, squares, tables, _ = cube
    del tables[shape.finest]
    counts = settled_by(settle, *cube)
    short = squares[0].down_to(1).combined[1], squares[1].combined[2]
    margins = counts[1, 1], counts[0, 2]
    wanted = Blocks.of_cuboid(short, tuple(children)).settle(tables[1, 2], margins)
    assert (counts[1, 2] == wanted).all()
    assert not np.allclose(
        short[0] / short[0][0], squares[0].combined[1] / squares[0].combined[1][0]
    )


def test_sums_that_are_targets_stay_within_a_record_or_so_of_them():
    cube = noisy_cube(15, [np.array([0, 3]), np.array([0, 4, 8, 12])], 3, 200, 0.5)
    counts, (shape, *_) = settled_by(settle_in_order, *cube), cube
    for cuboid, settled_counts in counts.items():
        off = summed(shape, counts[shape.finest], shape.finest, cuboid) - settled_counts
        assert np.sqrt((off**2.0).mean()) <= 0.7
        assert (off == 0).all() or (cuboid[0] and cuboid[1])


def test_blocks_are_laid_out_once_for_all_slabs(monkeypatch):
    """A slab of a few cells would pay more for that than for its counts."""
    starts = {axis: np.array([0, 2, 4]) for axis in (0, 1)} | {2: np.array([0, 300])}
    leaves = np.random.default_rng(17).poisson(3, (4, 4, 300))
    margins = {a: np.add.reduceat(leaves, start[:-1], axis=a) for a, start in starts.items()}
    weights = [np.ones(n) for n in leaves.shape]
    sorts, argsort = [], np.argsort
    monkeypatch.setattr(np, "argsort", lambda *a, **b: sorts.append(a) or argsort(*a, **b))
    found = settle_with_targets(leaves + 0.1, weights, margins, starts)
    for axis in (0, 1):
        sums = np.add.reduceat(found, starts[axis][:-1], axis=axis)
        assert (sums == margins[axis]).all()
    assert len(sorts) <= 3


@pytest.mark.parametrize("which", ["total", "missing"])
def test_margins_that_contradict_each_other_are_refused(which):
    starts = np.array([0, 2]), np.array([0, 2])
    by_row, by_column = np.array([[3], [1]]), np.array([[2, 2]])
    by_column = by_column + 1 if which == "total" else by_column * 0
    with pytest.raises(EstimateError, match="margins"):
        blocks_below((by_row, by_column), starts)
    with pytest.raises(EstimateError, match="margins"):
        Blocks.of_cuboid((np.ones(2),) * 2, starts).settle(np.ones((2, 2)), (by_row, by_column))


def test_a_few_leaves_are_found_without_memory_for_all_blocks():
    """Leaves come in chunks, and each would pay for the whole again."""
    nodes = np.arange(300)
    start = np.append(nodes, 300)
    blocks = blocks_below((np.ones((300, 300), dtype=np.int64),) * 2, (start, start))
    few = np.array([7, 299], dtype=np.int32)
    blocks.places(few, few, (nodes, nodes))  # compiles
    tracemalloc.start()
    found = blocks.places(few, few, (nodes, nodes))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found == [7 * 301, 299 * 301]).all()
    assert len(blocks) == 90_000
    assert most < 90_000
