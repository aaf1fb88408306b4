"""Which subtrees of a tree are alike: public facts, found once, without visiting every node.

Two nodes of an axis have the same *shape* if their children's shapes are the same, counted with
repetition; all nodes of the deepest level have one shape. What estimation does to the variance of a
node depends on its own subtree through shapes alone, so millions of nodes become a few thousand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from hedgerow.arrays import (
    Bool,
    Float64,
    FloatPair,
    Int64,
    IntArrays,
    Integers,
    IntTriple,
    UInt64,
    float64,
    int64_zeros,
    run_starts,
    run_sums,
    runs,
    starts_among,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.limits import MOST_SHAPES
from hedgerow.tables.tree import Tree


@frozen(eq=False)
class LevelShapes:
    """The distinct shapes of the nodes of one level of an axis.

    Attributes:
        nodes: float64 (shapes): how many nodes have the shape.
        start: int64 (shapes + 1): the entries of shape i are ``start[i]:start[i + 1]``.
        shape: int64 (entries): the shape whose entry it is.
        child: int64 (entries): a shape of the next level.
        times: float64 (entries): how many children have it.
    """

    nodes: Float64
    start: Int64
    shape: Int64
    child: Int64
    times: Float64

    @property
    def families(self) -> Float64:
        """The number of children of a node of each shape: float64 (shapes)."""
        return run_sums(self.times, self.start)

    def over_children(self, values: Float64) -> Float64:
        """Return for each shape the sum, over a node's children, of the values of their shapes."""
        return run_sums(self.times * values[self.child], self.start)


@dataclass(frozen=True, eq=False)
class Shapes:
    """The shapes of the subtrees of a tree; make them with `Shapes.of`.

    The subtree below a node of the tree is determined by the shapes of its codes, one an axis, so
    the distinct subtrees of a depth are the tuples of shapes: an array with one dimension an axis.

    Attributes:
        levels: for each axis its levels 0..L.
        steps: of the tree: the axis and level that depth t refines, for t = 1..T.
    """

    levels: tuple[tuple[LevelShapes, ...], ...]
    steps: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, tree: Tree) -> "Shapes":
        """Return the shapes of a tree."""
        return cls(tuple(level_shapes(axis.child_start) for axis in tree.axes), tree.steps)

    @classmethod
    def along(cls, child_start: Sequence[Int64]) -> "Shapes":
        """Return the shapes of one axis, from the child ranges of its levels."""
        return cls((level_shapes(child_start),), steps_along(len(child_start)))

    @property
    def depth(self) -> int:
        """T, the depth of the leaves."""
        return len(self.steps)

    @cached_property
    def cuboids(self) -> tuple[tuple[LevelShapes, ...], ...]:
        """For each depth 0..T the level of each axis."""
        at = [0] * len(self.levels)
        chain = [tuple(levels[0] for levels in self.levels)]
        for axis, level in self.steps:
            at[axis] = level
            chain.append(tuple(levels[k] for levels, k in zip(self.levels, at, strict=True)))
        return tuple(chain)

    @cached_property
    def sizes(self) -> Float64:
        """The number of nodes of each depth: float64 (T + 1)."""
        return np.array([prod(float(level.nodes.sum()) for level in at) for at in self.cuboids])

    @cached_property
    def fit(self) -> bool:
        """Whether the distinct subtrees of every depth fit in memory."""
        return max(prod(self.counts(t)) for t in range(self.depth + 1)) <= MOST_SHAPES

    def counts(self, depth: int) -> list[int]:
        """Return how many distinct shapes each axis has at a depth: the distinct subtrees."""
        return [len(level.nodes) for level in self.cuboids[depth]]

    def is_single(self, depth: int) -> bool:
        """Return whether no node of a depth has a sibling."""
        axis, level = self.steps[depth - 1]
        return bool((self.levels[axis][level - 1].families == 1).all())

    def refined(self, depth: int) -> tuple[LevelShapes, tuple[int, int, int], tuple[int, int, int]]:
        """Return how the depth refines the one before: (level of the parents, parents, children).

        The distinct subtrees of either depth as an array of three dimensions: axes before the one
        that is refined, that axis, axes after it.
        """
        if not self.fit:
            raise EstimateError(
                "a depth of this tree has more than 2^24 distinct subtrees, "
                "too many for the exact error of all its nodes; refine the axis with the most "
                "irregular families first"
            )
        return self._refinements[depth - 1]

    @cached_property
    def _refinements(self) -> list[tuple[LevelShapes, tuple[int, int, int], tuple[int, int, int]]]:
        refinements = []
        for depth, (axis, level) in enumerate(self.steps, start=1):
            above = self.levels[axis][level - 1]
            counts = self.counts(depth)
            before = prod(counts[:axis])
            after = prod(counts[axis + 1 :])
            upper = (before, len(above.nodes), after)
            lower = (before, counts[axis], after)
            refinements.append((above, upper, lower))
        return refinements

    def nodes(self, depth: int) -> Float64:
        """Return how many nodes have each distinct subtree of a depth: one dimension an axis."""
        product = np.ones(())
        for level in self.cuboids[depth]:
            product = np.multiply.outer(product, level.nodes)
        return product

    @cached_property
    def projection(self) -> Float64:
        """What own variances do to the sums of variances under projection: float64 (T + 1, T + 1).

        Where a family of n is projected onto its parent's count, Var(child) = Var(parent)/n² +
        v(1 - 1/n). So the sum over the nodes of depth t is Σ_s v_s P[t, s]: an error of depth s
        arrives after a factor 1/n² for each refinement since. These factors belong to one axis
        each, so P[t, s] is a product over the axes of sums over one axis's nodes.
        """
        tables = [_axis_projection(levels) for levels in self.levels]
        ends = np.zeros((self.depth + 1, len(self.levels)), dtype=int)
        for t, (axis, level) in enumerate(self.steps, start=1):
            ends[t:, axis] = level
        matrix = np.zeros((self.depth + 1, self.depth + 1))
        for s in range(self.depth + 1):
            source = self.steps[s - 1][0] if s else None
            for t in range(s, self.depth + 1):
                matrix[t, s] = prod(
                    table[int(axis == source)][ends[s, axis], ends[t, axis]]
                    for axis, table in enumerate(tables)
                )
        return matrix


def steps_along(depth: int) -> tuple[tuple[int, int], ...]:
    """Return the steps of a tree of one axis."""
    return tuple((0, level) for level in range(1, depth + 1))


def _axis_projection(levels: tuple[LevelShapes, ...]) -> FloatPair:
    """Return two tables (L + 1, L + 1) over (level s, level t): sums over the nodes of t.

    Of Π 1/n² over the levels s + 1..t, n being the family of the node's ancestor; and of the same
    times 1 - 1/n of level s.
    """
    passed, entered = np.zeros((2, len(levels), len(levels)))
    for t in range(len(levels)):
        below = np.ones(len(levels[t].nodes))  # over a node's descendants of level t
        for s in range(t, -1, -1):
            passed[s, t] = levels[s].nodes @ below
            if s:
                families = levels[s - 1].families
                sums = levels[s - 1].over_children(below)
                entered[s, t] = levels[s - 1].nodes @ ((1 - 1 / families) * sums)
                below = sums / families**2
    return passed, entered


def level_shapes(child_starts: Sequence[Int64]) -> tuple[LevelShapes, ...]:
    """Return the shapes of every level of an axis, found from the leaves up.

    Args:
        child_starts: for each level but the last int64 (nodes + 1), as `hedgerow.tables.axis.Axis`
            and `hedgerow.estimate.cube.shape.AxisShape` have them.
    """
    return tuple(level for level, _ in _from_leaves_up(child_starts))[::-1]


def classes_of_nodes(
    child_starts: Sequence[Int64], *, subtrees: bool
) -> tuple[tuple[LevelShapes, ...], IntArrays]:
    """Return the classes of the nodes of every level of an axis, and the class of each node.

    Two nodes are of one class if their ancestors are families of the same sizes, and, with
    ``subtrees``, they and their ancestors have the same subtrees: no estimate can tell them apart.
    Classes are in the order of their parents' classes, each an entry of one class above alone.
    """
    families = [np.diff(start) for start in child_starts]
    members = [int64_zeros(1)]
    alike: list[Integers] = [shape for _, shape in _from_leaves_up(child_starts)][::-1]
    if not subtrees:
        alike[:-1] = families
    levels = []
    for family, shape in zip(families, alike[1:], strict=True):
        keys = np.repeat(members[-1], family) * (int(shape.max()) + 1) + shape
        distinct, own, nodes = np.unique(keys, return_inverse=True, return_counts=True)
        parent = distinct // (int(shape.max()) + 1)
        above = np.bincount(members[-1])
        start = starts_among(parent, len(above))
        child = np.arange(len(distinct))
        times = nodes / above[parent]
        levels.append(LevelShapes(float64(above), start, parent, child, times))
        members.append(own)
    return (*levels, _leaves(np.bincount(members[-1]))), tuple(members)


def _leaves(nodes: Int64) -> LevelShapes:
    """Return the shapes of the deepest level, so many nodes of each."""
    nothing = int64_zeros(0)
    start = int64_zeros(len(nodes) + 1)
    return LevelShapes(float64(nodes), start, nothing, nothing, np.zeros(0))


def _from_leaves_up(
    child_starts: Sequence[Int64],
) -> Iterator[tuple[LevelShapes, Integers]]:
    """Yield the shapes of each level, the deepest first, and the shape of each of its nodes."""
    leaves = int(child_starts[-1][-1]) if child_starts else 1
    level = _leaves(np.array([leaves]))
    shape: Integers = np.zeros(leaves, dtype=np.int8)
    yield level, shape
    for child_start in reversed(child_starts):
        shape, level = _level_shapes(child_start, shape, len(level.nodes))
        yield level, shape


def _level_shapes(child_start: Int64, shape: Integers, shapes: int) -> tuple[Int64, LevelShapes]:
    """Return the shape of each node of a level, and the distinct ones, from its children's shapes.

    Nodes with equal fingerprints are compared with the first of them, entry by entry; one that
    differs (it never does in practice) becomes a shape of its own, which is exact as well.
    """
    start, child, times = _entries(child_start, shape, shapes)
    prints = run_sums(_mixed(child, times), start)
    _, first, shape_of_node = np.unique(prints, return_index=True, return_inverse=True)
    alien = np.flatnonzero(_differs(start, child, times, first[shape_of_node]))
    shape_of_node[alien] = len(first) + np.arange(len(alien))
    first = np.append(first, alien)
    lengths = np.diff(start)[first]
    ends = run_starts(lengths)
    own = np.repeat(np.arange(len(first)), lengths)
    chosen = runs(start[first], lengths)
    nodes = float64(np.bincount(shape_of_node, minlength=len(first)))
    many = float64(times[chosen])
    return shape_of_node, LevelShapes(nodes, ends, own, child[chosen], many)


def _entries(child_start: Int64, shape: Integers, shapes: int) -> IntTriple:
    """Return for each node its children's distinct shapes in order, and how many have each."""
    sizes = np.diff(child_start)
    parents = len(child_start) - 1
    if shapes == 1:
        return np.arange(parents + 1), np.zeros(parents, np.int64), sizes
    keys = np.sort(np.repeat(np.arange(parents) * shapes, sizes) + shape)
    begins = np.flatnonzero(np.diff(keys, prepend=-1))
    parent, child = np.divmod(keys[begins], shapes)
    start = starts_among(parent, parents)
    return start, child, np.diff(begins, append=len(keys))


def _mixed(child: Int64, times: Int64) -> UInt64:
    """Return a fingerprint of each entry: two rounds of SplitMix64 (Steele et al. 2014)."""
    bits = child.astype(np.uint64)
    for more in (times.astype(np.uint64), np.uint64(0)):
        bits = (bits + more) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    return bits


def _differs(start: Int64, child: Int64, times: Int64, other: Int64) -> Bool:
    """Return for each node whether its entries differ from those of another: bool (nodes)."""
    # The entries of node n are start[n] .. start[n + 1], its children's shapes in ascending order.
    sizes = np.diff(start)
    there = np.arange(len(child)) + np.repeat(start[other] - start[:-1], sizes)
    there = np.minimum(there, len(child) - 1)  # of a longer node, which differs anyway
    apart = (child != child[there]) | (times != times[there])
    return np.asarray((sizes != sizes[other]) | np.logical_or.reduceat(apart, start[:-1]))
