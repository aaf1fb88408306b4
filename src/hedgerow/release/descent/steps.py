"""One step down the tree: the children of nodes, their true counts and slices of the leaves."""

from dataclasses import replace
from functools import partial

import numpy as np

from hedgerow.arrays import (
    CellNumbers,
    Codes,
    Int32,
    Int64,
    IntPair,
    Levels,
    int32,
    int64,
    run_of,
    run_starts,
    runs,
)
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.kernels import kernel, over_families, run_range
from hedgerow.release.descent.nodes import NOWHERE, Roots, Slices, places
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree


@frozen
class Refinement:
    """What a step from depth t - 1 to depth t needs to know of the tree.

    Attributes:
        depth: t.
        levels: of its cuboid.
        axis: the number of the refined axis.
        child_start: int64 (nodes of the upper level + 1): children in the lower level.
        leaf_start: int64 (nodes of the lower level + 1): where each one's leaves begin.
        single: whether no family has a second child.
    """

    depth: int
    levels: Levels
    axis: int
    child_start: Int64
    leaf_start: Int64
    single: bool

    @classmethod
    def of(cls, tree: Tree, depth: int) -> "Refinement":
        """Return the step of a tree that ends at a depth."""
        number, level = tree.steps[depth - 1]
        axis = tree.axes[number]
        leaf_start = axis.descendant_start(level, axis.depth)
        child_start = axis.child_start[level - 1]
        single = len(child_start) - 1 == child_start[-1]
        return cls(depth, tree.chain[depth], number, child_start, leaf_start, single)


def only_children(roots: Roots, step: Refinement) -> Roots:
    """Return the children where no family has a second one: the parents under new codes.

    Raises:
        ReleaseError: some family has a second child; its leaves would be counted for the first.
    """
    if not step.single:
        raise ReleaseError(f"depth {step.depth} has no measurement to share its counts out by")
    codes = list(roots.nodes.codes)
    codes[step.axis] = int32(step.child_start[codes[step.axis]])
    nodes = replace(roots.nodes, codes=tuple(codes))
    return Roots(nodes, replace(roots.slices, codes=tuple(codes)))


def descendants(tree: Tree, levels: Levels, finer: Levels, codes: Codes) -> Int64:
    """Return how many cells of a finer cuboid lie below each cell of one: int64 (cells).

    Args:
        tree: the tree.
        levels: the cuboid.
        finer: the finer one; an axis that it has at no deeper level is left out.
        codes: one int32 array (cells) an axis.
    """
    many = np.ones(len(codes[0]), dtype=np.int64)
    for axis, level, lower, code in zip(tree.axes, levels, finer, codes, strict=True):
        if level < lower:
            many *= np.diff(axis.descendant_start(level, lower))[code]
    return many


@frozen
class Families:
    """All children of some parents, family by family: a layout of their cells.

    Attributes:
        step: the refinement.
        parents: nodes of the depth above, and their slices of the table.
        start: int64 (parents + 1): where the children of each begin when they are laid end to end.
        first: how many cells of the depth the same job measured before these.
    """

    is_all = False
    step: Refinement
    parents: Slices
    start: Int64
    first: int

    @classmethod
    def of(cls, step: Refinement, parents: Slices, first: int = 0) -> "Families":
        """Return the families of some parents."""
        parent = parents.codes[step.axis]
        start = run_starts(step.child_start[parent + 1] - step.child_start[parent])
        return cls(step, parents, start, first)

    @property
    def cells(self) -> int:
        """How many children there are."""
        return int(self.start[-1])

    def add(self, noisy: Int64, counts: Counts) -> None:
        """Add to each child's noise its true count, in place."""
        step = self.step
        parents = self.parents
        leaf = counts.codes[step.axis]
        over_families(
            partial(
                _add_true_counts, noisy, self.start, step.child_start, step.leaf_start,
                parents.codes[step.axis], parents.start, parents.stop, leaf, counts.values,
            ),
            self.start,
        )  # fmt: skip

    def below(self, parents: Int64) -> IntPair:
        """Return the cells of the families of some parents, and where each family begins.

        Args:
            parents: int64 (some parents), ascending: their places.
        """
        sizes = np.diff(self.start)[parents]
        return runs(self.start[parents], sizes), run_starts(sizes)

    def codes(self, cells: Int64) -> CellNumbers:
        """Return the codes of some children, and where those of each parent begin among them.

        Args:
            cells: int64 (children), ascending: which.

        Returns:
            One int32 array (children) an axis; and int64 (parents + 1).
        """
        first = np.searchsorted(cells, self.start)
        many = np.diff(first)
        codes = list(self.parents.codes)
        eldest = self.step.child_start[codes[self.step.axis]] - self.start[:-1]
        codes = [np.repeat(code, many) for code in codes]
        codes[self.step.axis] = int32(np.repeat(eldest, many) + cells)
        return tuple(codes), first

    def places(self, codes: Codes) -> Int64:
        """Return which cells some nodes are; those of other parents are left out."""
        step = self.step
        above = list(codes)
        child = int64(codes[step.axis])
        parent = run_of(step.child_start, child)
        above[step.axis] = int32(parent)
        place = places(tuple(above), self.parents.codes)
        here = place != NOWHERE
        cells: Int64 = self.start[place[here]] + (child - step.child_start[parent])[here]
        return cells

    def slices(self, codes: Codes, first: Int64, counts: Counts | None) -> Slices:
        """Return the slices of the table below some children, if there is a table.

        Args:
            codes: of the children, in tree order.
            first: int64 (parents + 1): where the children of each parent begin.
            counts: the confidential table; None where noisy counts are read back.
        """
        if counts is None:
            return Slices.without_table(codes)
        step = self.step
        parents = self.parents
        start, stop = np.empty((2, len(codes[0])), dtype=np.int64)
        over_families(
            partial(
                _find_slices, start, stop, first, codes[step.axis], step.leaf_start,
                parents.start, parents.stop, counts.codes[step.axis],
            ),
            first,
        )  # fmt: skip
        return Slices(codes, start, stop)

    def every(self, counts: Counts | None) -> Slices:
        """Return all children, with their slices of the table, if there is one."""
        return self.slices(*self.codes(np.arange(self.cells)), counts)


@kernel
def _add_true_counts(
    noisy: Int64,
    family_start: Int64,
    child_start: Int64,
    leaf_start: Int64,
    parent_code: Int32,
    slice_start: Int64,
    slice_stop: Int64,
    leaf: Int32,
    values: Int64,
    first: int,
    last: int,
) -> None:
    # The leaves of a slice are sorted by code, and so are the children: one merge a family.
    for f in range(first, last):
        child = child_start[parent_code[f]]
        cell = family_start[f]
        for i in range(slice_start[f], slice_stop[f]):
            # Leaf i lies below `child`, as leaf_start[child] <= leaf[i] < leaf_start[child + 1].
            while leaf[i] >= leaf_start[child + 1]:
                child += 1
                cell += 1
            noisy[cell] += values[i]  # modulo 2^64, as the noise is; see `Drawn`


@kernel
def _find_slices(
    start: Int64,
    stop: Int64,
    first_survivor: Int64,
    child_code: Int32,
    leaf_start: Int64,
    slice_start: Int64,
    slice_stop: Int64,
    leaf: Int32,
    first: int,
    last: int,
) -> None:
    # first_survivor[f] … first_survivor[f + 1]: the kept children of family f, ascending by code.
    for f in range(first, last):
        i = slice_start[f]
        end = slice_stop[f]
        for s in run_range(first_survivor, f):
            child = child_code[s]
            while i < end and leaf[i] < leaf_start[child]:
                i += 1  # the leaf of a sibling that did not survive
            start[s] = i
            while i < end and leaf[i] < leaf_start[child + 1]:
                i += 1
            stop[s] = i
