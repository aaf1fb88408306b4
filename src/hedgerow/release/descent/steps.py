"""One step down the tree: the children of nodes, their true counts and slices of the leaves."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hedgerow.arrays import Codes, Int32, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.kernels import kernel, over_families
from hedgerow.release.descent.nodes import Roots, Slices
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, slots=True)
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

    def family_start(self, codes: Codes) -> Int64:
        """Return where each parent's children begin when laid end to end: int64 (parents + 1)."""
        parent = codes[self.axis]
        start = np.zeros(len(parent) + 1, dtype=np.int64)
        np.cumsum(self.child_start[parent + 1] - self.child_start[parent], out=start[1:])
        return start


def only_children(roots: Roots, step: Refinement) -> Roots:
    """Return the children where no family has a second one: the parents under new codes.

    Raises:
        ReleaseError: some family has a second child; its leaves would be counted for the first.
    """
    if not step.single:
        raise ReleaseError(f"depth {step.depth} has no measurement to share its counts out by")
    codes = list(roots.nodes.codes)
    codes[step.axis] = step.child_start[codes[step.axis]].astype(np.int32)
    nodes = replace(roots.nodes, codes=tuple(codes))
    return Roots(nodes, replace(roots.slices, codes=tuple(codes)))


def descendants(tree: Tree, depth: int, deeper: int, codes: Codes) -> Int64:
    """Return how many nodes of a deeper depth lie below each node of a depth: int64 (nodes)."""
    many = np.ones(len(codes[0]), dtype=np.int64)
    levels = zip(tree.axes, tree.cuboid(depth), tree.cuboid(deeper), codes, strict=True)
    for axis, level, lower, code in levels:
        if level < lower:
            many *= np.diff(axis.descendant_start(level, lower))[code]
    return many


def families_of(family_start: Int64, parents: Int64) -> tuple[Int64, Int64]:
    """Return the cells of the families of some parents, ascending, and where each family begins."""
    sizes = np.diff(family_start)[parents]
    begin: Int64 = np.append(0, np.cumsum(sizes))
    return np.arange(begin[-1]) + np.repeat(family_start[parents] - begin[:-1], sizes), begin


def add_true_counts(
    noisy: Int64, family_start: Int64, parents: Slices, step: Refinement, counts: Counts
) -> None:
    """Add to each child's noise its true count, in place.

    Args:
        noisy: int64 (children): the noise, which becomes the noisy counts.
        family_start: int64 (parents + 1).
        parents: the surviving parents and their slices of the table.
        step: the refinement.
        counts: the confidential table.
    """
    leaf = counts.codes[step.axis]
    over_families(
        partial(
            _add_true_counts, noisy, family_start, step.child_start, step.leaf_start,
            parents.codes[step.axis], parents.start, parents.stop, leaf, counts.values,
        ),
        family_start,
    )  # fmt: skip


def child_codes(
    cells: Int64, family_start: Int64, parents: Codes, step: Refinement
) -> tuple[Codes, Int64]:
    """Return the codes of some children, and the place of each one's parent: int64 (children).

    Args:
        cells: int64 (children), ascending: which cells of the families laid end to end.
        family_start: int64 (parents + 1).
        parents: their codes.
        step: the refinement.
    """
    parent = np.searchsorted(family_start, cells, side="right") - 1
    refined = step.child_start[parents[step.axis][parent]] + cells - family_start[parent]
    codes = tuple(
        refined.astype(np.int32) if a == step.axis else code[parent]
        for a, code in enumerate(parents)
    )
    return codes, parent


def slices_below(
    codes: Codes, parent: Int64, parents: Slices, step: Refinement, counts: Counts | None
) -> Slices:
    """Return the slices of the table below some children, if there is a table.

    Args:
        codes: of the children, in tree order.
        parent: int64 (children), ascending: the place of each one's parent.
        parents: the parents.
        step: the refinement.
        counts: the confidential table; None where noisy counts are read back.
    """
    if counts is None:
        return Slices.without_table(codes)
    first = np.searchsorted(parent, np.arange(len(parents.start) + 1)).astype(np.int64)
    start, stop = np.empty(len(parent), dtype=np.int64), np.empty(len(parent), dtype=np.int64)
    over_families(
        partial(
            _find_slices, start, stop, first, codes[step.axis], step.leaf_start,
            parents.start, parents.stop, counts.codes[step.axis],
        ),
        first,
    )  # fmt: skip
    return Slices(codes, start, stop)


def all_children(parents: Slices, step: Refinement, counts: Counts | None) -> Slices:
    """Return all children of nodes, with their slices of the table, if there is one."""
    family_start = step.family_start(parents.codes)
    cells = np.arange(family_start[-1])
    codes, parent = child_codes(cells, family_start, parents.codes, step)
    return slices_below(codes, parent, parents, step, counts)


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
        i, end = slice_start[f], slice_stop[f]
        for s in range(first_survivor[f], first_survivor[f + 1]):
            child = child_code[s]
            while i < end and leaf[i] < leaf_start[child]:
                i += 1  # the leaf of a sibling that did not survive
            start[s] = i
            while i < end and leaf[i] < leaf_start[child + 1]:
                i += 1
            stop[s] = i
