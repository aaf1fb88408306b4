"""Who is released less precisely, only because of having more siblings.

Noise is the same for all counts of a depth, but projecting a family onto its parent's count takes a
share 1/n of a cell's noise away: counts in large families keep more of it (Zhu et al. 2022). All
variances here are those of large counts, before anything is cut off at 0.

With parents of one variance P and children measured with v, ``V(n) = P/n² + v (1 - 1/n)``. The
ratio of two family sizes a < b is a Möbius function of x = P/v, so it is monotone between

    (1 - 1/b) / (1 - 1/a) at x = 0  and  a²/b² as x grows, and 1 at x = ab/(a + b).

So below a *public* parent (x = 0) no allocation changes it; elsewhere, two sizes can be made equal,
by measuring the parents x times less precisely than the children; three in general cannot.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import PlanError
from hedgerow.plan.depths import All, Measured, Public, RunningSums, Survivors
from hedgerow.plan.plan import Plan
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

# Variances of the nodes of a tree, class by class: nodes that no plan can tell apart.
#
# On one axis, two nodes are of one *class* if their ancestors are of the same shape at every level:
# families with the same numbers of children (and, where what lies below matters, the same
# subtrees). A node of a tree is a tuple of axis nodes, so its variance depends on its tuple of
# classes, and arrays with one dimension an axis hold every variance there is.
#
# With own variance v_t of a measurement of depth t, u of what is known of a child before its family
# is projected, and S the sum of u over the family,
#
# Var(child) = (u/S)² Var(parent) + u - u²/S.
#
# From survivors u = v_t, so that this is Var(parent)/n² + v_t (1 - 1/n) (Zhu et al., Theorem 12,
# with a noisy parent); a depth without a measurement takes S of its own children for u. By least
# squares u = 1/(1/v_t + 1/S) (Hay et al. 2010).


MOST_CLASSES = 5_000_000
"""Tuples of classes, over all depths, that are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The classes of one level of an axis, in the order of their parents' classes.

    Attributes:
        parent: int64 (classes): the parent's class.
        start: int64 (parent classes): where each parent's classes begin.
        repeats: float64 (classes): how many children of the class a parent has.
        nodes: float64 (classes): how many nodes of the level are of the class.
        siblings: int64 (classes): n, how many children the parent has.
        members: int64 (nodes of the level): the class of each node.
    """

    parent: Int64
    start: Int64
    repeats: Float64
    nodes: Float64
    siblings: Int64
    members: Int64


@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The classes of a tree's axes.

    Attributes:
        tree: the tree.
        levels: for each axis its levels 1..L.

    Raises:
        PlanError: more than `MOST_CLASSES` tuples of classes.
    """

    tree: Tree
    levels: tuple[tuple[Level, ...], ...]

    def __post_init__(self) -> None:
        tuples = sum(int(np.prod(self.shape(t))) for t in range(self.tree.depth + 1))
        if tuples > MOST_CLASSES:
            raise PlanError(
                f"fairness looks at up to {MOST_CLASSES:,} different kinds of nodes, this tree has "
                f"{tuples:,}; ask for it with fewer axes or levels"
            )

    def shape(self, depth: int) -> tuple[int, ...]:
        """Return how many classes each axis has at a depth."""
        levels = zip(self.levels, self.tree.cuboid(depth), strict=True)
        return tuple(len(axis[k - 1].parent) if k else 1 for axis, k in levels)

    def nodes(self, depth: int) -> Float64:
        """Return how many nodes of a depth each tuple stands for: float64 (shape)."""
        found = np.ones(())
        for axis, k in zip(self.levels, self.tree.cuboid(depth), strict=True):
            found = np.multiply.outer(found, axis[k - 1].nodes if k else np.ones(1))
        return found

    def refined(self, depth: int) -> tuple[int, Level]:
        """Return the axis that depth 1..T refines, and its level there."""
        axis, level = self.tree.steps[depth - 1]
        return axis, self.levels[axis][level - 1]


def tree_classes(tree: Tree, *, subtrees: bool) -> Classes:
    """The classes of a tree; with ``subtrees`` nodes of one class have the same descendants too."""
    return Classes(tree, tuple(_axis_levels(axis, subtrees=subtrees) for axis in tree.axes))


def variances(classes: Classes, own: Float64, *, combine: bool) -> list[Float64]:
    """Return for each depth 0..T the variance (records²) of each tuple of classes: float64 (shape).

    Args:
        classes: with subtrees, if depths are combined or one above the last measured one is not
            measured.
        own: float64 (T + 1): of one measurement; 0 where public, inf where unmeasured.
        combine: by least squares over all depths; otherwise projected from the root down.
    """
    top = max(np.flatnonzero(own == 0), default=-1)
    last = max(np.flatnonzero(np.isfinite(own)))
    before: dict[int, Float64] = {}
    sums: dict[int, Float64] = {}
    for t in range(last, top, -1):
        if t in sums and (combine or np.isinf(own[t])):
            before[t] = 1 / (1 / own[t] + 1 / sums[t])
        else:
            before[t] = np.full(classes.shape(t), own[t])
        if t:
            axis, level = classes.refined(t)
            weighted = before[t] * along(level.repeats, axis, before[t].ndim)
            sums[t - 1] = np.add.reduceat(weighted, level.start, axis=axis)
    found = [np.zeros(classes.shape(t)) for t in range(top + 1)] or [before[0]]
    for t in range(len(found), len(own)):
        axis, level = classes.refined(t)
        above = np.take(found[t - 1], level.parent, axis=axis)
        if t > last:  # only children: their parents' counts
            found.append(above)
            continue
        part = before[t] / np.take(sums[t - 1], level.parent, axis=axis)
        found.append(part**2 * above + before[t] * (1 - part))
    return found


def along(values: Float64, axis: int, dimensions: int) -> Float64:
    """Values of one axis, shaped to be spread over the others."""
    return values.reshape([-1 if i == axis else 1 for i in range(dimensions)])


def _axis_levels(axis: Axis, *, subtrees: bool) -> tuple[Level, ...]:
    families = [np.diff(start) for start in axis.child_start]
    shapes = [*families, np.zeros(axis.size(axis.depth), dtype=np.int64)]
    if subtrees:
        for k in range(axis.depth - 1, -1, -1):
            shapes[k] = _subtree_shapes(shapes[k + 1], axis.child_start[k])
    members = np.zeros(1, dtype=np.int64)
    levels = []
    for family, shape in zip(families, shapes[1:], strict=True):
        parents = np.repeat(members, family)
        keys = parents * (int(shape.max()) + 1) + shape
        _, first, found, nodes = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        parent = parents[first]
        start = np.searchsorted(parent, np.arange(int(parent[-1]) + 1))
        repeats = nodes / np.bincount(members)[parent]
        siblings = np.repeat(family, family)[first]
        levels.append(Level(parent, start, repeats, nodes.astype(float), siblings, found))
        members = found
    return tuple(levels)


def _subtree_shapes(below: Int64, child_start: Int64) -> Int64:
    """Return a number for the multiset of the children's shapes: int64 (nodes of the level)."""
    sizes = np.diff(child_start)
    family = np.repeat(np.arange(len(sizes)), sizes)
    ordered = below[np.lexsort((below, family))]
    shapes, used = np.empty(len(sizes), dtype=np.int64), 0
    for size in np.unique(sizes):
        nodes = np.flatnonzero(sizes == size)
        rows = ordered[child_start[nodes][:, None] + np.arange(size)]
        distinct, number = np.unique(rows, axis=0, return_inverse=True)
        shapes[nodes] = used + number.reshape(-1)
        used += len(distinct)
    return shapes


SCHEMA = {
    "depth": pl.Int64,
    "cuboid": pl.String,
    "siblings": pl.Int64,
    "families": pl.Int64,
    "variance": pl.Float64,
    "least": pl.Float64,
    "largest": pl.Float64,
    "sd": pl.Float64,
    "ratio": pl.Float64,
}


def fairness(plan: Plan) -> pl.DataFrame:
    """Return one row a family type: a depth 1..T, and a number of siblings.

    Columns: ``depth``, ``cuboid``, ``siblings`` (children of a family), ``families`` (how many),
    ``variance`` (records², the mean over their children; ``least`` and ``largest`` among them, as
    ancestors differ), ``sd`` (records), and ``ratio``: variance to the least one above 0 at that
    depth (null where the depth is exact).

    Raises:
        PlanError: more different kinds of nodes than can be looked at.
    """
    classes, found = _variances(plan)
    rows = []
    for t in range(1, plan.tree.depth + 1):
        axis, level = classes.refined(t)
        others = tuple(i for i in range(found[t].ndim) if i != axis)
        nodes = classes.nodes(t)
        base = _least_above_zero(found[t])
        sums = (nodes * found[t]).sum(axis=others), nodes.sum(axis=others)
        least, largest = found[t].min(axis=others), found[t].max(axis=others)
        for n in np.unique(level.siblings):
            of = level.siblings == n
            count = sums[1][of].sum()
            mean = sums[0][of].sum() / count
            ratio = mean / base if base else None
            ends = least[of].min(), largest[of].max()
            cuboid = plan.tree.cuboid_name(t)
            rows.append((t, cuboid, n, round(count / n), mean, *ends, mean**0.5, ratio))
    return pl.DataFrame([tuple(_plain(v) for v in row) for row in rows], SCHEMA, orient="row")


def fairness_rows(plan: Plan) -> list[str]:
    """For people: one sentence a depth 1..T of a single axis, naming an area at either end.

    From survivors it names the parents of two families. Where depths are combined, siblings differ
    too (by what lies below them), so it names the two areas themselves. A depth whose areas are all
    alike, or that is exact, has no sentence; nor has a tree of several axes.
    """
    if len(plan.tree.axes) > 1:
        return []
    classes, found = _variances(plan)
    said = []
    for t in range(1, plan.tree.depth + 1):
        _, level = classes.refined(t)
        most = int(found[t].argmax())
        base = _least_above_zero(found[t])
        if not base or found[t][most] <= base * (1 + 1e-9):
            continue
        least = int(np.flatnonzero(found[t] == base)[0])
        worse, better = (_area(plan, t, c, classes) for c in (most, least))
        said.append(
            f"{plan.tree.cuboid_name(t)}: {worse}: {_siblings(level.siblings[most])}, "
            f"{found[t][most] / base - 1:.1%} more variance than {better} with "
            f"{_siblings(level.siblings[least])}"
        )
    return said


def _variances(plan: Plan) -> tuple[Classes, list[Float64]]:
    if isinstance(plan.measure, RunningSums):
        raise PlanError("fairness is told of noisy counts, and this plan measures running sums")
    combine = isinstance(plan.measure, All)
    own = np.array(
        [
            what.mechanism.noise_variance
            if isinstance(what, Measured)
            else 0.0
            if isinstance(what, Public)
            else np.inf
            for what in plan.depths
        ]
    )
    subtrees = combine or bool(np.isinf(own[: int(np.flatnonzero(np.isfinite(own))[-1])]).any())
    classes = tree_classes(plan.tree, subtrees=subtrees)
    return classes, variances(classes, own, combine=combine)


def _least_above_zero(found: Float64) -> float | None:
    above = found[found > 0]
    return float(above.min()) if len(above) else None


def _area(plan: Plan, depth: int, number: int, classes: Classes) -> str:
    """Return the code of the first area of a class, or of its parent where families are named."""
    _, level = classes.refined(depth)
    if isinstance(plan.measure, Survivors):
        if depth == 1:
            return "everything"
        number, depth = int(level.parent[number]), depth - 1
        _, level = classes.refined(depth)
    node = int(np.flatnonzero(level.members == number)[0])
    return str(plan.tree.axes[0].labels[depth - 1][node])


def _siblings(n: int) -> str:
    return "an only child" if n == 1 else f"{n:,} siblings"


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value
