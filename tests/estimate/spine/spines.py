"""Random spines, supports and flat tables, made cell by cell, for tests."""

import numpy as np

from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.support import Part, Support


def random_axis(rng, depth, widest=3):
    """An uneven axis of exactly so many levels below its root."""
    starts, nodes = [], 1
    for _ in range(depth):
        sizes = rng.integers(1, widest + 1, nodes)
        if sizes.max() == 1:
            sizes[rng.integers(nodes)] = 2
        starts.append(np.concatenate(([0], np.cumsum(sizes))))
        nodes = int(starts[-1][-1])
    return AxisShape.of(starts)


def random_pairs(rng, nodes, groups, chance=0.6):
    """Some pairs of nodes and groups, at least one, in random order with repeats."""
    there = np.argwhere(rng.random((nodes, groups)) < chance)
    if len(there) == 0:
        there = np.array([[nodes - 1, groups - 1]])
    there = np.concatenate([there, there[:1]])
    there = there[rng.permutation(len(there))]
    return there[:, 0], there[:, 1]


def random_support(rng, depth=None, *, chance=0.6, widths=None, bounds=()):
    """A support with an uneven spine and tree and a random choice of groups."""
    spine = random_axis(rng, int(rng.integers(0, 4)) if depth is None else depth)
    tree = random_axis(rng, int(rng.integers(0, 3)))
    groups = tree.sizes[-1]
    widths = rng.integers(1, 5, groups) if widths is None else widths
    has = None if chance is None else random_pairs(rng, spine.sizes[-1], groups, chance)
    return Support.of(spine, tree, widths, has, bounds)


def groups_of(support, level):
    """For each node the list of its groups, from the deepest level's alone."""
    deepest = support.spine.depth
    above = support.spine.ancestors(deepest, level)
    found = [set() for _ in range(support.spine.sizes[level])]
    start, group = support.start[deepest], support.group[deepest]
    for node in range(support.spine.sizes[deepest]):
        found[above[node]] |= set(group[start[node] : start[node + 1]].tolist())
    return [sorted(each) for each in found]


def detail_cells(support, level, nodes):
    """The detail layout as a list of (node, group, cell of all groups)."""
    every, offset = groups_of(support, level), support.offset
    return [
        (node, group, cell)
        for node in nodes
        for group in every[node]
        for cell in range(offset[group], offset[group + 1])
    ]


def parts_below(support, cut):
    """A part a node of a level, each down to the deepest level."""
    return [
        Part(cut, range(n, n + 1), support.spine.depth) for n in range(support.spine.sizes[cut])
    ]
