"""Tree order: a rank that sorts leaves so that every subtree is one contiguous slice."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

Codes = tuple[NDArray[np.int32], ...]
WORD = 1 << 63


def word_depths(tree: Tree) -> list[int]:
    """Where the key of a leaf is cut into words: depths 0 = d₀ < d₁ < … = T.

    Word w ranks the node of depth dᵥ₊₁ among the descendants of its ancestor of depth dᵥ; it
    never exceeds the product over the axes of the largest number of such descendants, and that is
    kept below 2⁶³. So no key overflows, however deep the tree (a single refinement has fewer than
    2³¹ children).
    """
    cuts = [0]
    for depth in range(1, tree.depth + 1):
        if _most_descendants(tree, cuts[-1], depth) >= WORD:
            cuts.append(depth - 1)
    return [*cuts, tree.depth]


def _most_descendants(tree: Tree, depth: int, deeper: int) -> int:
    """A bound on the depth-``deeper`` nodes below one node of ``depth``."""
    most = 1
    for axis, level, lower in zip(tree.axes, tree.cuboid(depth), tree.cuboid(deeper), strict=True):
        most *= int(np.diff(axis.descendant_start(level, lower)).max())
    return most


def tree_rank(tree: Tree, codes: Codes) -> list[NDArray[np.int64]]:
    """The words of the leaves' ranks in tree order, most significant first.

    Args:
        tree: the tree.
        codes: one int32 array (leaves) an axis: leaf numbers on that axis.

    Returns:
        int64 arrays (leaves). Comparing them lexicographically compares leaves in tree order:
        within a word, the rank of a node is the sum over its refinements of (descendants of the
        refined axis before the child) × (descendants of the other axes).
    """
    if len(tree.axes) == 1:
        return [codes[0].astype(np.int64)]
    cuts = word_depths(tree)
    return [_word(tree, codes, upper, lower) for upper, lower in pairwise(cuts)]


def _word(tree: Tree, codes: Codes, upper: int, lower: int) -> NDArray[np.int64]:
    last = tree.cuboid(lower)
    levels = list(tree.cuboid(upper))
    rank = np.zeros(len(codes[0]), dtype=np.int64)
    for refined, level in tree.steps[upper:lower]:
        axis = tree.axes[refined]
        begin = _first_descendant(axis, level, last[refined])
        before = _first_descendant(axis, levels[refined], last[refined])
        levels[refined] = level
        term = (begin - before)[codes[refined]]
        for other, code in enumerate(codes):
            if other != refined and levels[other] < last[other]:
                term *= _descendants(tree.axes[other], levels[other], last[other])[code]
        rank += term
    return rank


def _first_descendant(axis: Axis, level: int, last: int) -> NDArray[np.int64]:
    """For each leaf the first level-``last`` descendant of its ancestor at a level."""
    return axis.descendant_start(level, last)[:-1][axis.ancestors(level)]


def _descendants(axis: Axis, level: int, last: int) -> NDArray[np.int64]:
    """For each leaf how many level-``last`` descendants its ancestor at a level has."""
    return np.diff(axis.descendant_start(level, last))[axis.ancestors(level)]


def join(parts: list[tuple[Codes, NDArray[np.int64]]]) -> tuple[Codes, NDArray[np.int64]]:
    """Nodes with their counts from parts that follow one another in tree order."""
    axes = range(len(parts[0][0]))
    codes = tuple(np.concatenate([part[0][a] for part in parts]) for a in axes)
    return codes, np.concatenate([part[1] for part in parts])
