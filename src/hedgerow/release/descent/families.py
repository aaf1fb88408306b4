"""How the nodes of one depth group into families below those of the depth above."""

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.release.descent.nodes import Nodes
from hedgerow.tables.tree import Tree

Int64 = NDArray[np.int64]


def family_starts(tree: Tree, depth: int, upper: Nodes, lower: Nodes) -> Int64:
    """Where each parent's listed children begin: int64 (parents + 1), and that they add up.

    Args:
        tree: the tree.
        depth: of the children.
        upper: the listed parents.
        lower: the listed children.

    Raises:
        ReleaseError: they are not in tree order, or some family does not add up to its parent.
    """
    axis, level = tree.steps[depth - 1]
    codes, counts = lower.codes, lower.counts
    child_start = tree.axes[axis].child_start[level - 1]
    parents = list(codes)
    parents[axis] = np.searchsorted(child_start, codes[axis], side="right").astype(np.int32) - 1
    new_family = np.zeros(len(counts), dtype=bool)
    for code in parents:
        new_family[1:] |= code[1:] != code[:-1]
    if not (new_family[1:] | (codes[axis][1:] > codes[axis][:-1])).all():
        raise ReleaseError("the nodes are not in tree order")
    new_family[:1] = True
    start = np.flatnonzero(new_family)
    sums = np.add.reduceat(counts, start) if len(start) else counts
    same = [np.array_equal(a[start], b) for a, b in zip(parents, upper.codes, strict=True)]
    if not all(same) or not np.array_equal(sums, upper.counts):
        raise ReleaseError("some families do not add up to their parents' counts")
    return np.append(start, len(counts))
