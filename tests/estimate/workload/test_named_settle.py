"""Whole counts of named cuboids: sums, signs, optimality, and what is refused."""

from functools import partial
from itertools import product

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, is_within
from hedgerow.estimate.families.euclidean import Euclidean
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
def test_every_element_is_the_sum_of_each_table_that_refines_it_and_none_is_negative(kind, axes):
    rng = np.random.default_rng([axes, LEAVES.index(kind)])
    for number in range(100 if axes > 2 else 60):
        lattice, _, public, depths = random_lattice(rng, axes)
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


def cells_below(shape, cuboid, cover, which):
    """The numbers of a cuboid's cells that lie below one cell of a coarsening."""
    up = [a.ancestors(k, c) for a, k, c in zip(shape.axes, cuboid, cover, strict=True)]
    inside = [np.flatnonzero(own == at) for own, at in zip(up, which, strict=True)]
    return np.ix_(*inside)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_below_one_cover_each_family_is_the_projection_of_its_cells(kind):
    """(2, 2, 1) below (1, 0, 1): cells of two axes below each pair."""
    rng = np.random.default_rng(5)
    coarse, fine = (1, 0, 1), (2, 2, 1)
    lattice = Lattice.of([coarse, fine], [fine])
    assert lattice.exact[fine] == (coarse,)
    for _ in range(20):
        leaves, of_axis = random_leaves(rng, SHAPE, kind), factors(SHAPE, rng)
        estimates, _ = noisy(rng, SHAPE, leaves, lattice.elements)
        counts = settle(SHAPE, lattice, estimates, None, of_axis)
        for which in np.ndindex(SHAPE.shape(coarse)):
            below = cells_below(SHAPE, fine, coarse, which)
            weight = np.multiply.outer(of_axis(fine, 0), of_axis(fine, 1))[below[0], below[1]]
            z, w, total = estimates[fine][below].ravel(), weight.ravel(), counts[coarse][which]
            start = np.array([0, len(z)])
            assert (counts[fine][below] >= 0).all()
            assert counts[fine][below].sum() == total
            wanted = Euclidean().project(z, start, np.array([total]), w)
            y = counts[fine][below].ravel()
            assert ((y - z) ** 2 / w).sum() == pytest.approx(((wanted - z) ** 2 / w).sum())
            if len(z) <= 4 and total <= 6:  # against all tables there are
                every = [t for t in product(range(total + 1), repeat=len(z)) if sum(t) == total]
                least = min(((np.array(t) - z) ** 2 / w).sum() for t in every)
                assert ((y - z) ** 2 / w).sum() <= least + 1e-9


TWO_COVERS = [
    # the table, its two covers: levels skipped, groups of two axes, and a batch.
    ((2, 2, 0), (2, 1, 0), (0, 2, 0)),
    ((2, 2, 2), (2, 2, 0), (0, 0, 2)),
    ((2, 2, 2), (2, 2, 1), (1, 0, 2)),
    ((1, 2, 2), (1, 2, 0), (1, 1, 2)),
    ((2, 1, 2), (2, 1, 1), (2, 0, 2)),
]


@pytest.mark.parametrize(("table", "one", "other"), TWO_COVERS)
def test_below_two_covers_each_block_is_nearly_the_best_there_is(table, one, other):
    """To the integer optimum of the transport problem, which is that of a linear program."""
    rng = np.random.default_rng(6)
    lattice = Lattice.of([table, one, other], [table])
    common = tuple(map(min, one, other))
    assert set(lattice.exact[table]) == {one, other}
    ours, best, checked = 0.0, 0.0, 0
    for number in range(30):
        leaves, of_axis = random_leaves(rng, SHAPE, ["dense", "sparse"][number % 2]), None
        of_axis = factors(SHAPE, rng)
        estimates, _ = noisy(rng, SHAPE, leaves, lattice.elements)
        counts = settle(SHAPE, lattice, estimates, None, of_axis)
        # rows are the nodes of the axes on which ``other`` is coarser, columns those of ``one``
        groups = [[a for a in range(3) if table[a] > c[a]] for c in (other, one)]
        for which in np.ndindex(SHAPE.shape(common)):
            below = cells_below(SHAPE, table, common, which)
            batch = [a for a in range(3) if a not in groups[0] + groups[1]]
            order = [*batch, *groups[0], *groups[1]]
            sizes = [below[a].size for a in range(3)]
            rows = int(np.prod([sizes[a] for a in groups[0]]))
            z = estimates[table][below].transpose(order).reshape(rows, -1)
            y = counts[table][below].transpose(order).reshape(rows, -1)
            u, v = (
                np.prod(
                    np.meshgrid(
                        *(of_axis(table, a)[below[a].ravel()] for a in group), indexing="ij"
                    ),
                    axis=0,
                ).ravel()
                for group in groups
            )
            assert y.shape == (len(u), len(v))
            sums = y.sum(axis=1), y.sum(axis=0)
            margins = (
                counts[one][cells_below(SHAPE, one, common, which)],
                counts[other][cells_below(SHAPE, other, common, which)],
            )
            assert sorted(sums[0]) == sorted(margins[0].ravel())
            assert sorted(sums[1]) == sorted(margins[1].ravel())
            i, j = np.flatnonzero(sums[0]), np.flatnonzero(sums[1])
            if min(len(i), len(j)) < 2:
                continue
            part = y[np.ix_(i, j)], z[np.ix_(i, j)], u[i], v[j]
            ours, best = ours + cost(*part), best + cost(optimum(*part), *part[1:])
            if checked < 5:
                least = optimum_by_linear_program(*part[1:], sums[0][i], sums[1][j])
                assert cost(optimum(*part), *part[1:]) == pytest.approx(least, rel=1e-6, abs=1e-6)
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
