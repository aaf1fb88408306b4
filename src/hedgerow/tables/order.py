"""Tree order: a rank that sorts leaves so that every subtree is one contiguous slice."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

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
    final = tree.cuboid(lower)
    starts = []  # of each axis: where the final-level descendants of its current node begin, end
    for axis, leaf, level, last in zip(tree.axes, codes, tree.cuboid(upper), final, strict=True):
        starts.append(_span(axis.descendant_start(level, last), axis.ancestors(level), leaf))
    rank = np.zeros(len(codes[0]), dtype=np.int64)
    for refined, level in tree.steps[upper:lower]:
        axis = tree.axes[refined]
        first, _ = starts[refined]
        child = _span(
            axis.descendant_start(level, final[refined]), axis.ancestors(level), codes[refined]
        )
        term = child[0] - first
        starts[refined] = child
        for other, (begin, end) in enumerate(starts):
            if other != refined:
                term *= end - begin
        rank += term
    return rank


def _span(
    start: NDArray[np.int64], ancestor: NDArray[np.int32], leaf: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    node = ancestor[leaf]
    return start[node], start[node + 1]


def join(parts: list[tuple[Codes, NDArray[np.int64]]]) -> tuple[Codes, NDArray[np.int64]]:
    """Nodes with their counts from parts that follow one another in tree order."""
    axes = range(len(parts[0][0]))
    codes = tuple(np.concatenate([part[0][a] for part in parts]) for a in axes)
    return codes, np.concatenate([part[1] for part in parts])
