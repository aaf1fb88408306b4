"""Cuboids folded to rows and columns, and the cells that are measured below positive counts."""

from functools import reduce
from itertools import product

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.workload.fold import Fold
from hedgerow.estimate.workload.lattice import Lattice, settle
from hedgerow.estimate.workload.sparse import SparseFamilies, SparseFold, survivors_below
from tests.estimate.workload.workloads import brute_sums, noisy, random_leaves, shape_of_depths


def random_fold(rng, axes, covers):
    """A cuboid of uneven axes and some covers of it, coarser on axes of their own."""
    while True:
        depths = tuple(int(d) for d in rng.integers(1, 4 if axes < 4 else 3, axes))
        cuboid = tuple(int(rng.integers(0, d + 1)) for d in depths)
        group = rng.integers(-1, covers, axes)
        found = [
            tuple(
                int(rng.integers(k)) if g == i and k else k
                for g, k in zip(group, cuboid, strict=True)
            )
            for i in range(covers)
        ]
        if cuboid not in found:
            return shape_of_depths(rng, depths), cuboid, tuple(found)


def folds(many, seed, counts=(1, 2, 3)):
    rng = np.random.default_rng(seed)
    for number in range(many):
        covers = counts[number % len(counts)]
        yield rng, *random_fold(rng, int(rng.integers(covers, 5)), covers)


def test_children_of_a_parent_stand_together_and_sum_to_what_folds_of_the_cover_hold():
    for rng, shape, cuboid, covers in folds(300, 1):
        fold = Fold(shape, cuboid, covers)
        table = rng.integers(0, 100, shape.shape(cuboid))
        folded = fold.fold(table)
        assert folded.flags.c_contiguous
        assert folded.ndim == len(covers)
        assert (fold.unfold(folded) == table).all()
        for i, cover in enumerate(covers):
            sums = np.add.reduceat(folded, fold.starts[i][:-1], axis=i)
            wanted = brute_sums(shape, table, cuboid, cover)
            assert (sums == fold.fold(wanted, i)).all()


def test_weights_of_dimensions_are_those_of_cells_but_for_the_batch():
    for rng, shape, cuboid, covers in folds(100, 2):
        fold = Fold(shape, cuboid, covers)
        of_axis = [rng.uniform(1, 2, size) for size in shape.shape(cuboid)]
        for axis in fold.batch:
            of_axis[axis][:] = 1
        cells = np.asarray(reduce(np.multiply.outer, of_axis))
        dimensions = fold.weights(lambda _, axis, each=of_axis: each[axis])
        assert np.allclose(reduce(np.multiply.outer, dimensions), fold.fold(cells))
        ones = fold.weights(None)
        assert [len(each) for each in ones] == list(fold.fold(cells).shape)
        assert all((each == 1).all() for each in ones)


def settled_above(rng, shape, cuboid, covers, kind):
    """Settled counts of a cuboid and its covers, and the noisy counts that it was settled from."""
    lattice = Lattice.of([cuboid, *covers], [cuboid])
    estimates, _ = noisy(rng, shape, random_leaves(rng, shape, kind), lattice.elements, 1.0)
    return settle(shape, lattice, estimates), estimates[cuboid]


def shuffled(rng, table):
    """The positive cells of a table, in any order."""
    codes = np.nonzero(table)
    order = rng.permutation(len(codes[0]))
    return tuple(code[order].astype(np.int32) for code in codes), table[codes][order]


@pytest.mark.parametrize("kind", ["dense", "sparse", "very sparse", "zeros"])
@pytest.mark.parametrize("covers", [1, 2])
@pytest.mark.sweep(3)
def test_cells_below_positive_counts_are_settled_as_all_cells_are(kind, covers):
    """Every axis count, levels skipped, groups of several axes; margins whole or listed."""
    measured = 0
    for rng, shape, cuboid, above in folds(80, 10 + covers, (covers,)):
        counts, given = settled_above(rng, shape, cuboid, above, kind)
        every = tuple(code.ravel() for code in np.indices(shape.shape(cuboid)))
        positive = np.ones(len(every[0]), dtype=bool)
        for cover in above:
            levels = zip(shape.axes, cuboid, cover, every, strict=True)
            positive &= counts[cover][tuple(a.ancestors(k, c)[e] for a, k, c, e in levels)] > 0
        for margins in (
            {c: counts[c] for c in above},
            {c: shuffled(rng, counts[c]) for c in above},
            {c: counts[c] if c == above[0] else shuffled(rng, counts[c]) for c in above},
        ):
            found = survivors_below(shape, cuboid, above, margins)
            assert isinstance(found, SparseFamilies if covers == 1 else SparseFold)
            places = found.places([code.astype(np.int32) for code in every])
            assert ((places >= 0) == positive).all()
            assert (np.sort(places[positive]) == np.arange(found.cells)).all()
            back = found.nodes(places[positive])
            assert len(back) == len(cuboid)
            for code, wanted in zip(back, every, strict=True):
                assert code.dtype == np.int32
                assert (code == wanted[positive]).all()
            noise = np.empty(found.cells)
            noise[places[positive]] = given.ravel()[positive]
            settled = found.settle(noise)
            assert settled.dtype == np.int64
            assert (settled[places[positive]] == counts[cuboid].ravel()[positive]).all()
            assert (counts[cuboid].ravel()[~positive] == 0).all()
            measured += found.cells
    assert measured > 0


def test_rows_and_columns_are_numbers_row_by_row_with_the_batch_first():
    """(3, 3) below (3, 2) and (0, 3), levels skipped; and a batch before the first group."""
    axis = [np.array([0, 2]), np.array([0, 1, 3]), np.array([0, 2, 3, 5])]
    shape = CubeShape.of([axis, axis])
    fold = Fold(shape, (3, 3), ((0, 3), (3, 2)))
    assert [each.tolist() for each in fold.parents] == [[0] * 5, [0, 0, 1, 2, 2]]
    beside = CubeShape.of([[np.array([0, 2])], axis, [np.array([0, 3])]])
    fold = Fold(beside, (1, 3, 1), ((1, 2, 1), (1, 3, 0)))
    assert fold.batch == (0,)
    assert fold.parents[0].tolist() == [0, 0, 1, 2, 2, 3, 3, 4, 5, 5]
    assert fold.parents[1].tolist() == [0, 0, 0]
    assert [each.tolist() for each in fold.starts] == [[0, 2, 3, 5, 7, 8, 10], [0, 3]]


def test_covers_are_taken_in_any_order():
    rng = np.random.default_rng(3)
    shape = shape_of_depths(rng, (2, 2, 2))
    covers = (2, 2, 1), (1, 0, 2)
    counts, _ = settled_above(rng, shape, (2, 2, 2), covers, "sparse")
    one, other = (survivors_below(shape, (2, 2, 2), c, counts) for c in (covers, covers[::-1]))
    assert one.cells == other.cells > 0
    every = np.arange(one.cells)
    for a, b in zip(one.nodes(every), other.nodes(every), strict=True):
        assert (a == b).all()


@pytest.mark.parametrize(
    ("covers", "rule"),
    [
        ([], r"positive counts of nothing: it takes one or two"),
        ([(0, 1, 1), (1, 0, 1), (1, 1, 0)], r"\(1, 1, 0\): it takes one or two"),
        ([(1, 1, 1)], r"of \(1, 1, 1\): it takes one or two cuboids that are coarser"),
        ([(0, 2, 0)], r"of \(0, 2, 0\): it takes one or two cuboids that are coarser"),
        ([(1, 0, 0), (0, 1, 0)], r"are together: name \(1, 1, 0\) too, or measure"),
    ],
)  # fmt: skip
def test_cells_that_no_one_or_two_covers_frame_are_refused(covers, rule):
    shape = CubeShape.of([[np.array([0, 2])]] * 3)
    counts = {c: np.ones((1, 1, 1), dtype=np.int64) for c in covers}
    with pytest.raises(EstimateError, match=rule):
        survivors_below(shape, (1, 1, 1), covers, counts)


def test_more_rows_than_have_numbers_are_refused():
    shape = CubeShape.of([[np.array([0, 50_000])]] * 2 + [[np.array([0, 2])]])
    covers = (1, 0, 1), (1, 1, 0)
    with pytest.raises(EstimateError, match="has 2,500,000,000 rows or columns below"):
        survivors_below(shape, (1, 1, 1), covers, {})


def test_counts_that_contradict_each_other_are_refused():
    shape = CubeShape.of([[np.array([0, 2])]] * 2)
    counts = {(1, 0): np.array([[1], [1]]), (0, 1): np.array([[2, 1]])}
    with pytest.raises(EstimateError, match="margins of a block must have one total"):
        survivors_below(shape, (1, 1), tuple(counts), counts)


@pytest.mark.parametrize("wrong", ["nan", "short"])
@pytest.mark.parametrize("covers", [((0, 0),), ((1, 0), (0, 1))])
def test_each_cell_needs_a_finite_noisy_count(wrong, covers):
    shape = CubeShape.of([[np.array([0, 2])]] * 2)
    counts = {(0, 0): np.array([[4]]), (1, 0): np.array([[2], [2]]), (0, 1): np.array([[1, 3]])}
    found = survivors_below(shape, (1, 1), covers, counts)
    noise = np.ones(3) if wrong == "short" else np.array([1.0, np.nan, 1.0, 1.0])
    with pytest.raises(EstimateError, match="4 noisy counts are needed, each finite"):
        found.settle(noise)


def test_covers_that_are_coarser_on_one_axis_make_no_fold():
    shape = CubeShape.of([[np.array([0, 2])]] * 2)
    for covers in ((), ((0, 0), (0, 1)), ((1, 1),), ((0, 2),)):
        with pytest.raises(EstimateError, match=r"cuboid \(1, 1\) cannot be settled below"):
            Fold(shape, (1, 1), covers)


def test_settled_survivors_are_margins_of_what_is_finer():
    """(2, 2, 1) below listed cells of (2, 1, 1) and (1, 2, 1), themselves measured so."""
    rng = np.random.default_rng(4)
    shape = shape_of_depths(rng, (2, 2, 1))
    leaves = random_leaves(rng, shape, "sparse")
    every = [(a, b, 1) for a, b in product((1, 2), repeat=2)]
    lattice = Lattice.of([(1, 1, 1)], [(1, 1, 1)])
    estimates, _ = noisy(rng, shape, leaves, [*lattice.elements, *every], 1.0)
    known = dict(settle(shape, lattice, estimates))
    tables = {(1, 1, 1): known[1, 1, 1]}
    for cuboid, covers in (
        ((2, 1, 1), [(1, 1, 1)]),
        ((1, 2, 1), [(1, 1, 1)]),
        ((2, 2, 1), [(2, 1, 1), (1, 2, 1)]),
    ):
        found = survivors_below(shape, cuboid, covers, known)
        codes = found.nodes(np.arange(found.cells))
        counts = found.settle(estimates[cuboid][codes])
        known[cuboid] = tuple(code[counts > 0] for code in codes), counts[counts > 0]
        tables[cuboid] = np.zeros(shape.shape(cuboid), dtype=np.int64)
        tables[cuboid][codes] = counts
    for cuboid in every[:-1]:
        assert (brute_sums(shape, tables[2, 2, 1], (2, 2, 1), cuboid) == tables[cuboid]).all()
    assert tables[2, 2, 1].sum() > 0
