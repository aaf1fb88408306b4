"""Whole counts of named cuboids: sums, signs, optimality, and what is refused."""

from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, is_within
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.workload.fold import Fold
from hedgerow.estimate.workload.lattice import Lattice, settle, settle_in_order
from tests.estimate.cube.transport import cost, optimum, optimum_by_linear_program
from tests.estimate.workload.workloads import (
    LEAVES,
    brute_sums,
    noisy,
    random_lattice,
    random_leaves,
    shape_of_depths,
)


def factors(shape, rng):
    """For each axis and level uneven factors of variances, as `settle` asks for them."""
    found = {
        (axis, level): np.exp(rng.normal(0, 0.7, own.sizes[level]))
        for axis, own in enumerate(shape.axes)
        for level in range(own.depth + 1)
    }
    return lambda cuboid, axis: found[axis, cuboid[axis]]


@pytest.mark.parametrize("kind", LEAVES)
@pytest.mark.parametrize("axes", [1, 2, 3, 4])
@pytest.mark.sweep(4)
def test_every_element_is_the_sum_of_each_table_that_refines_it_and_none_is_negative(kind, axes):
    rng = np.random.default_rng([axes, LEAVES.index(kind)])
    for number in range(30):
        lattice, _, public, depths = random_lattice(rng, axes)
        if number % 5 == 0:  # a whole cube
            every = [*product(*(range(depth + 1) for depth in depths))]
            public = (0,) * axes if number % 10 else None
            lattice = Lattice.of(every, [depths], public=public)
        shape = shape_of_depths(rng, depths)
        leaves = random_leaves(rng, shape, kind)
        estimates, true = noisy(rng, shape, leaves, lattice.elements)
        exact = {} if public is None else {public: brute_sums(shape, leaves, shape.finest, public)}
        weights = factors(shape, rng) if number % 2 else None
        given = {c: e for c, e in estimates.items() if not any(is_within(c, e) for e in exact)}
        counts = settle(shape, lattice, given, exact, weights)
        assert set(counts) == set(lattice.elements)
        for element, found in counts.items():
            assert found.dtype == np.int64
            assert (found >= 0).all()
            for table in lattice.tables:
                if is_within(element, table):
                    assert (found == brute_sums(shape, counts[table], table, element)).all()
            if public is not None and is_within(element, public):
                assert (found == true[element]).all()


@pytest.mark.parametrize("axes", [2, 3, 4])
def test_each_element_keeps_the_sums_of_the_covers_it_keeps_as_they_were_settled(axes):
    rng = np.random.default_rng(axes)
    for _ in range(60):
        lattice, _, public, depths = random_lattice(rng, axes)
        if public is not None:
            continue
        shape = shape_of_depths(rng, depths)
        leaves = random_leaves(rng, shape, "dense")
        estimates, _ = noisy(rng, shape, leaves, lattice.elements)
        counts = settle_in_order(shape, lattice, estimates)
        for element, found in counts.items():
            for cover in lattice.exact[element]:
                assert (brute_sums(shape, found, element, cover) == counts[cover]).all()
        after = settle(shape, lattice, estimates)
        assert all((after[c] == counts[c]).all() for c in lattice.kept)


SHAPE = CubeShape.of(
    [
        [np.array([0, 2]), np.array([0, 2, 5])],
        [np.array([0, 3]), np.array([0, 1, 3, 4])],
        [np.array([0, 2]), np.array([0, 3, 4])],
    ]
)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_below_one_cover_each_family_is_the_projection_of_its_cells(kind):
    """(2, 2, 1) below (1, 0, 1): cells of two axes below each pair."""
    rng = np.random.default_rng(5)
    coarse, fine = (1, 0, 1), (2, 2, 1)
    lattice = Lattice.of([coarse, fine], [fine])
    assert lattice.exact[fine] == (coarse,)
    fold = Fold(SHAPE, fine, (coarse,))
    (start,) = fold.starts
    for _ in range(20):
        leaves, of_axis = random_leaves(rng, SHAPE, kind), factors(SHAPE, rng)
        estimates, _ = noisy(rng, SHAPE, leaves, lattice.elements)
        counts = settle(SHAPE, lattice, estimates, None, of_axis)
        (w,), total = fold.weights(of_axis), fold.fold(counts[coarse], 0)
        z, y = fold.fold(estimates[fine]), fold.fold(counts[fine])
        assert (y >= 0).all()
        assert (np.add.reduceat(y, start[:-1]) == total).all()
        costs = (each - z for each in (y, Euclidean().project(z, start, total, w)))
        ours, best = (np.add.reduceat(apart**2 / w, start[:-1]) for apart in costs)
        assert ours == pytest.approx(best)


TWO_COVERS = [
    # the table, its two covers: levels skipped, groups of two axes, and a batch.
    ((2, 2, 0), (2, 1, 0), (0, 2, 0)),
    ((2, 2, 2), (2, 2, 0), (0, 0, 2)),
    ((2, 2, 2), (2, 2, 1), (1, 0, 2)),
    ((1, 2, 2), (1, 2, 0), (1, 1, 2)),
    ((2, 1, 2), (2, 1, 1), (2, 0, 2)),
]


@pytest.mark.parametrize("covers", TWO_COVERS)
def test_below_two_covers_each_block_is_nearly_the_best_there_is(covers):
    """To the integer optimum of the transport problem, which is that of a linear program."""
    rng, (table, *_) = np.random.default_rng(6), covers
    lattice = Lattice.of(covers, [table])
    assert {table, *lattice.exact[table]} == {*covers}
    fold = Fold(SHAPE, table, lattice.exact[table])
    ours, best, checked = 0.0, 0.0, 0
    for number in range(12):
        leaves = random_leaves(rng, SHAPE, ["dense", "sparse"][number % 2])
        of_axis = factors(SHAPE, rng)
        estimates, _ = noisy(rng, SHAPE, leaves, lattice.elements)
        counts = settle(SHAPE, lattice, estimates, None, of_axis)
        z, y, (u, v) = fold.fold(estimates[table]), fold.fold(counts[table]), fold.weights(of_axis)
        for i, cover in enumerate(fold.covers):
            sums = np.add.reduceat(y, fold.starts[i][:-1], axis=i)
            assert (sums == fold.fold(counts[cover], i)).all()
        for (top, bottom), (left, right) in product(*map(pairwise, fold.starts)):
            block = y[top:bottom, left:right]
            i, j = top + np.flatnonzero(block.sum(axis=1)), left + np.flatnonzero(block.sum(axis=0))
            if min(len(i), len(j)) < 2:
                continue
            part = y[np.ix_(i, j)], z[np.ix_(i, j)], u[i], v[j]
            least = cost(optimum(*part), *part[1:])
            ours, best = ours + cost(*part), best + least
            if checked < 5:
                sums = part[0].sum(axis=1), part[0].sum(axis=0)
                wanted = optimum_by_linear_program(*part[1:], *sums)
                assert least == pytest.approx(wanted, rel=1e-6, abs=1e-6)
                checked += 1
    assert checked
    assert np.sqrt(ours / best) <= 1.002


def test_weights_say_which_cells_move_most():
    """Of two cells whose sum is too low, the one of the larger variance is raised more."""
    shape = CubeShape.of([[np.array([0, 2])]])
    lattice = Lattice.of([(1,)], [(1,)])
    estimates = {(0,): np.array([40.0]), (1,): np.array([10.0, 10.0])}
    even = settle(shape, lattice, estimates)
    assert even[1,].tolist() == [20, 20]
    uneven = settle(shape, lattice, estimates, None, lambda c, a: np.array([1.0, 3.0])[: c[a] + 1])
    assert uneven[1,].tolist() == [15, 25]


def test_sums_that_are_not_kept_are_still_near_what_they_were_settled_at():
    """A pair of axes that must be kept makes another pair's sums the targets."""
    rng = np.random.default_rng(7)
    every = list(product(range(3), repeat=3))
    lattice = Lattice.of(every, [(2, 2, 2)], public=(2, 2, 0))
    targets = [c for c in every if c not in lattice.kept]
    assert targets
    assert (2, 2, 0) in lattice.kept
    off, gap = [], []
    for _ in range(20):
        leaves = random_leaves(rng, SHAPE, "sparse")
        estimates, _ = noisy(rng, SHAPE, leaves, every)
        before = settle_in_order(SHAPE, lattice, estimates)
        after = settle(SHAPE, lattice, estimates)
        off += [(after[c] - before[c]).ravel() for c in targets]
        gap += [(after[c] - estimates[c]).ravel() for c in targets]
    wrong = np.sqrt((np.concatenate(off) ** 2.0).mean())
    assert 0 < wrong <= np.sqrt((np.concatenate(gap) ** 2).mean()) / 3


def test_more_is_not_settled_than_estimates_are_given_for():
    lattice = Lattice.of([(1, 1, 0)], [(1, 1, 0)])
    good = {c: np.ones(SHAPE.shape(c)) for c in lattice.elements}
    for wrong in (None, np.ones((2, 3)), np.ones((2, 3, 1), dtype=np.int64)):
        given = good | {(1, 1, 0): wrong}
        with pytest.raises(EstimateError, match=r"cuboid \(1, 1, 0\) needs a float64 table of"):
            settle(SHAPE, lattice, given)


def test_true_counts_that_tables_need_not_keep_are_refused():
    every = list(product(range(2), repeat=3))
    lattice = Lattice.of(every, [(1, 1, 1)])
    estimates = {c: np.ones(SHAPE.shape(c)) for c in every}
    exact = {(1, 1, 0): np.ones(SHAPE.shape((1, 1, 0)), dtype=np.int64)}
    with pytest.raises(EstimateError, match=r"cuboid \(1, 1, 0\) are known, but tables do not"):
        settle(SHAPE, lattice, estimates, exact)
    kept = Lattice.of(every, [(1, 1, 1)], public=(1, 1, 0))
    counts = settle(SHAPE, kept, estimates, exact)
    assert (counts[1, 1, 0] == 1).all()
    assert counts[0, 0, 0].item() == 6


def test_one_table_settles_as_the_same_cube_of_other_axes_does():
    """Two axes that are only refined together are one axis of their pairs."""
    rng = np.random.default_rng(8)
    pairs = CubeShape.of([[np.array([0, 6]), np.arange(0, 13, 2)], SHAPE_AXIS])
    apart = CubeShape.of([[np.array([0, 2]), np.array([0, 2, 4])], [np.array([0, 3])], SHAPE_AXIS])
    for _ in range(10):
        tables = {
            (a, b): rng.normal(5, 6, pairs.shape((a, b))) for a, b in product(range(3), range(3))
        }
        whole = settle(pairs, Lattice.of(tables, [(2, 2)]), tables)
        named = {(0, 0): (0, 0, 0), (1, 0): (1, 1, 0), (2, 0): (2, 1, 0)}
        named = {(a, b): (*named[a, 0][:2], b) for a, b in tables}
        split = {}
        for pair, c in named.items():
            split[c] = from_pairs(tables[pair], pair, apart.shape(c))
        found = settle(apart, Lattice.of(split, [(2, 1, 2)]), split)
        assert set(found) == set(split)
        for pair, c in named.items():
            assert (found[c] == from_pairs(whole[pair], pair, apart.shape(c))).all()


SHAPE_AXIS = [np.array([0, 2]), np.array([0, 1, 4])]


def from_pairs(table, pair, shape):
    """A table of pairs as one of both axes: pair 3 i + j, and its two halves at level 2."""
    if pair[0] < 2:
        return table.reshape(shape)
    return table.reshape(2, 3, 2, -1).transpose(0, 2, 1, 3).reshape(shape)


def test_settling_the_same_twice_gives_the_same():
    rng = np.random.default_rng(9)
    lattice, _, _, depths = random_lattice(rng, 3)
    shape = shape_of_depths(rng, depths)
    estimates, _ = noisy(rng, shape, random_leaves(rng, shape, "sparse"), lattice.elements)
    copies = {c: e.copy() for c, e in estimates.items()}
    run = partial(settle, shape, lattice, estimates)
    one, other = run(), run()
    assert all((one[c] == other[c]).all() for c in one)
    assert all((copies[c] == estimates[c]).all() for c in copies)
