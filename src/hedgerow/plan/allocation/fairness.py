"""Who is released less precisely, only because of having more siblings.

Projecting a family onto its parent's count takes a share 1/n of a cell's noise away: counts in
large families keep more of it (Zhu et al. 2022). Variances here are those of large counts, before
anything is clipped at 0, and are computed class by class: nodes that no plan can tell apart. What
allocations can and cannot change: docs/proofs.md, "Fair shares".
"""

from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import PlanError
from hedgerow.limits import MOST_AXES_OF_CLASSES, MOST_CLASSES
from hedgerow.plan.chain import noise_variances
from hedgerow.plan.cuboids import All, RunningSums, Survivors
from hedgerow.plan.plan import Plan
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, slots=True, eq=False)
class LevelClasses:
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
    """The classes of a tree's axes: of each axis its levels 1..L.

    Two nodes of an axis are of one class if their ancestors are families of the same sizes (and,
    where subtrees matter, of the same subtrees). A node of the tree is a tuple of axis nodes, so
    its variance depends on its tuple of classes: arrays have one dimension an axis.
    """

    tree: Tree
    levels: tuple[tuple[LevelClasses, ...], ...]

    def __post_init__(self) -> None:
        if len(self.levels) > MOST_AXES_OF_CLASSES:
            raise PlanError(
                f"fairness looks at trees of up to {MOST_AXES_OF_CLASSES} axes, this one has "
                f"{len(self.levels)}; ask for it with fewer axes"
            )
        tuples = sum(prod(self.shape(t)) for t in range(self.tree.depth + 1))
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
        nodes = np.ones(())
        for axis, k in zip(self.levels, self.tree.cuboid(depth), strict=True):
            nodes = np.multiply.outer(nodes, axis[k - 1].nodes if k else np.ones(1))
        return nodes

    def refined(self, depth: int) -> tuple[int, LevelClasses]:
        """Return the axis that depth 1..T refines, and its level there."""
        axis, level = self.tree.steps[depth - 1]
        return axis, self.levels[axis][level - 1]


def tree_classes(tree: Tree, *, subtrees: bool) -> Classes:
    """Return the classes of a tree; with ``subtrees`` their nodes have the same descendants."""
    return Classes(tree, tuple(_axis_levels(axis, subtrees=subtrees) for axis in tree.axes))


def variances(classes: Classes, own: Float64, *, combine: bool) -> list[Float64]:
    """Return for each depth 0..T the variance (records²) of each tuple of classes: float64 (shape).

    With u the variance of a child from below and S the sum of u over the family,

        Var(child) = (u/S)² Var(parent) + u - u²/S.

    From survivors u is the variance of one measurement (Zhu et al., Theorem 12, with a noisy
    parent), or S of its own children where it is unmeasured; by least squares 1/u = 1/v + 1/S (Hay
    et al. 2010).

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
    result = [np.zeros(classes.shape(t)) for t in range(top + 1)] or [before[0]]
    for t in range(len(result), len(own)):
        axis, level = classes.refined(t)
        above = np.take(result[t - 1], level.parent, axis=axis)
        if t > last:  # only children: their parents' counts
            result.append(above)
            continue
        part = before[t] / np.take(sums[t - 1], level.parent, axis=axis)
        result.append(part**2 * above + before[t] * (1 - part))
    return result


def along(values: Float64, axis: int, dimensions: int) -> Float64:
    """Return the values of one axis, shaped to broadcast over the others."""
    return values.reshape([-1 if i == axis else 1 for i in range(dimensions)])


def _axis_levels(axis: Axis, *, subtrees: bool) -> tuple[LevelClasses, ...]:
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
        _, first, classes, nodes = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        parent = parents[first]
        start = np.searchsorted(parent, np.arange(int(parent[-1]) + 1))
        repeats = nodes / np.bincount(members)[parent]
        siblings = np.repeat(family, family)[first]
        levels.append(LevelClasses(parent, start, repeats, nodes.astype(float), siblings, classes))
        members = classes
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

    Of other workloads one row a measured cuboid, over all its cells: ``depth``, ``siblings`` and
    ``families`` are null, and ``ratio`` is that of the largest variance to the least above 0; of a
    cuboid of more than 2²⁴ cells they are not looked at one by one, and it is left out.

    Raises:
        PlanError: too many different kinds of nodes, or a plan of running sums.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 50, 5).axis([2, 3])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho(1))
        >>> hr.fairness(plan).select("cuboid", "siblings", "families").rows()
        [('bins_3', 2, 1), ('bin', 2, 1), ('bin', 3, 1)]
    """
    if not plan.is_chain:
        return _fairness_of_cuboids(plan)
    classes, by_depth = _variances(plan)
    rows = []
    for t in range(1, plan.tree.depth + 1):
        axis, level = classes.refined(t)
        variance, nodes = by_depth[t], classes.nodes(t)
        others = tuple(i for i in range(variance.ndim) if i != axis)
        reference = _least_above_zero(variance)
        sums, counts = (nodes * variance).sum(axis=others), nodes.sum(axis=others)
        least, largest = variance.min(axis=others), variance.max(axis=others)
        for n in np.unique(level.siblings):
            of = level.siblings == n
            count = counts[of].sum()
            mean = float(sums[of].sum() / count)
            ratio = mean / reference if reference else None
            ends = float(least[of].min()), float(largest[of].max())
            cuboid = plan.tree.cuboid_name(t)
            rows.append((t, cuboid, int(n), round(count / n), mean, *ends, mean**0.5, ratio))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _fairness_of_cuboids(plan: Plan) -> pl.DataFrame:
    """Return the rows of cuboids that are estimated together."""
    rows = []
    for levels in plan.measured:
        variance = plan.design.cell_variances(levels)
        if variance is None:
            continue
        mean, least, largest = (float(f(variance)) for f in (np.mean, np.min, np.max))
        above = _least_above_zero(variance)
        ratio, name = largest / above if above else None, plan.tree.name_of(levels)
        rows.append((None, name, None, None, mean, least, largest, mean**0.5, ratio))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def fairness_rows(plan: Plan) -> list[str]:
    """Return one sentence a depth 1..T of a single axis, naming the most and least precise area.

    From survivors it names the parents of two families; where depths are combined, siblings differ
    too, so it names the areas themselves. Depths that are exact or whose areas are all alike have
    no sentence, nor have trees of several axes.
    """
    if len(plan.tree.axes) > 1:
        return []
    classes, by_depth = _variances(plan)
    sentences = []
    for t in range(1, plan.tree.depth + 1):
        (_, level), variance = classes.refined(t), by_depth[t]
        most = int(variance.argmax())
        reference = _least_above_zero(variance)
        if not reference or variance[most] <= reference * (1 + 1e-9):
            continue
        least = int(np.flatnonzero(variance == reference)[0])
        worse, better = (_area(plan, t, c, classes) for c in (most, least))
        sentences.append(
            f"{plan.tree.cuboid_name(t)}: {worse}: {_siblings(level.siblings[most])}, "
            f"{variance[most] / reference - 1:.1%} more variance than {better} with "
            f"{_siblings(level.siblings[least])}"
        )
    return sentences


def _variances(plan: Plan) -> tuple[Classes, list[Float64]]:
    if isinstance(plan.measure, RunningSums):
        raise PlanError("fairness is defined for noisy counts, and this plan measures running sums")
    combine = isinstance(plan.measure, All)
    own = np.array(noise_variances(plan.depths))
    subtrees = combine or bool(np.isinf(own[: int(np.flatnonzero(np.isfinite(own))[-1])]).any())
    classes = tree_classes(plan.tree, subtrees=subtrees)
    return classes, variances(classes, own, combine=combine)


def _least_above_zero(variance: Float64) -> float | None:
    above = variance[variance > 0]
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
