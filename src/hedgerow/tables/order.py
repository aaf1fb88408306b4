"""Tree order: words that sort leaves so that every subtree is one contiguous slice."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

Codes = tuple[NDArray[np.int32], ...]
Int64 = NDArray[np.int64]
WORD_BITS = 63


def word_depths(tree: Tree) -> list[int]:
    """Where the key of a leaf is cut into words: depths 0 = d₀ < d₁ < … = T.

    A refinement takes as many bits as its largest family needs, fewer than 32; a word has 63.
    """
    cuts, bits = [0], 0
    for depth in range(1, tree.depth + 1):
        more = _bits(tree, depth)
        if bits + more > WORD_BITS:
            cuts.append(depth - 1)
            bits = 0
        bits += more
    return [*cuts, tree.depth]


def _bits(tree: Tree, depth: int) -> int:
    axis, level = tree.steps[depth - 1]
    return (int(np.diff(tree.axes[axis].child_start[level - 1]).max()) - 1).bit_length()


def leaf_words(tree: Tree, number: int) -> list[Int64]:
    """What a leaf of one axis adds to the words of its cells: for each word int64 (its leaves).

    A cell's key is, refinement by refinement, the place of its node among its siblings. That place
    is a matter of the refined axis alone, so a word is a sum over the axes.
    """
    axis, words = tree.axes[number], []
    for upper, lower in pairwise(word_depths(tree)):
        word, shift = np.zeros(axis.size(axis.depth), dtype=np.int64), 0
        for depth in range(lower, upper, -1):
            refined, level = tree.steps[depth - 1]
            if refined == number:
                word |= _place(axis, level) << shift
            shift += _bits(tree, depth)
        words.append(word)
    return words


def _place(axis: Axis, level: int) -> Int64:
    """For each leaf the place of its ancestor of a level among that one's siblings."""
    nodes = np.arange(axis.size(level))
    start = axis.child_start[level - 1]
    first = np.repeat(start[:-1], np.diff(start))
    place: Int64 = (nodes - first)[axis.ancestors(level)]
    return place


def tree_rank(tree: Tree, codes: Codes) -> list[Int64]:
    """The words of the leaves' keys in tree order, most significant first.

    Args:
        tree: the tree.
        codes: one int32 array (leaves) an axis: leaf numbers on that axis.

    Returns:
        int64 arrays (leaves). Comparing them lexicographically compares leaves in tree order.
    """
    if len(tree.axes) == 1:
        return [codes[0].astype(np.int64)]
    words: list[Int64] = []
    for number, code in enumerate(codes):
        for i, word in enumerate(leaf_words(tree, number)):
            if number == 0:
                words.append(word[code])
            elif word.any():
                words[i] += word[code]
    return words


def join(parts: list[tuple[Codes, NDArray[np.int64]]]) -> tuple[Codes, NDArray[np.int64]]:
    """Nodes with their counts from parts that follow one another in tree order."""
    axes = range(len(parts[0][0]))
    codes = tuple(np.concatenate([part[0][a] for part in parts]) for a in axes)
    return codes, np.concatenate([part[1] for part in parts])
