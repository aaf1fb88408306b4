"""Who is released less precisely, only because of having more siblings.

Projecting a family onto its parent's count takes a share 1/n of a cell's noise away: counts in
large families keep more of it (Zhu et al. 2022). Variances here are those of large counts, before
anything is clipped at 0, and are computed class by class: nodes that no plan can tell apart. What
allocations can and cannot change: docs/proofs/shares.md, "Fair shares".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64, IntArrays, int64
from hedgerow.errors import PlanError
from hedgerow.estimate.tree.error import Passes
from hedgerow.estimate.tree.shapes import Shapes, classes_of_nodes, steps_along
from hedgerow.limits import MOST_AXES_OF_CLASSES, MOST_CLASSES
from hedgerow.plan.chain import noise_variances
from hedgerow.plan.cuboids import All, RunningSums
from hedgerow.plan.plan import Plan
from hedgerow.tables.tree import Tree


@dataclass(frozen=True, eq=False)
class Classes(Shapes):
    """The classes of a tree's axes: nodes that no plan can tell apart.

    A node of the tree is a tuple of axis nodes, so its variance depends on its tuple of classes:
    arrays have one dimension an axis.

    Attributes:
        members: for each axis and level int64 (nodes): the class of each node.
    """

    members: tuple[IntArrays, ...]

    def __post_init__(self) -> None:
        if len(self.levels) > MOST_AXES_OF_CLASSES:
            raise PlanError(
                f"fairness looks at trees of up to {MOST_AXES_OF_CLASSES} axes, this one has "
                f"{len(self.levels)}; ask for it with fewer axes"
            )
        tuples = sum(prod(self.counts(t)) for t in range(self.depth + 1))
        if tuples > MOST_CLASSES:
            raise PlanError(
                f"fairness looks at up to {MOST_CLASSES:,} different kinds of nodes, this tree has "
                f"{tuples:,}; ask for it with fewer axes or levels"
            )

    @classmethod
    def of(cls, tree: Tree, *, subtrees: bool = True) -> "Classes":
        """Return the classes of a tree; with ``subtrees`` their nodes have the same descendants."""
        axes = [classes_of_nodes(axis.child_start, subtrees=subtrees) for axis in tree.axes]
        return cls(tuple(a[0] for a in axes), tree.steps, tuple(a[1] for a in axes))

    @classmethod
    def along(cls, child_start: Sequence[Int64]) -> "Classes":
        """Return the classes of one axis with subtrees, from the child ranges of its levels."""
        levels, members = classes_of_nodes(child_start, subtrees=True)
        return cls((levels,), steps_along(len(child_start)), (members,))

    def above(self, depth: int) -> tuple[int, Int64, Float64]:
        """Return the axis that depth 1..T refines, each class's parent, and its siblings' number.

        Siblings are counted with the node itself.
        """
        axis, level = self.steps[depth - 1]
        above = self.levels[axis][level - 1]
        return axis, above.shape, above.families[above.shape]


def variances(classes: Classes, own: Float64, *, combine: bool) -> list[Float64]:
    """Return for each depth 0..T the variance (records²) of each tuple of classes.

    From survivors that of one measurement counts below a noisy parent (Zhu et al., Theorem 12);
    by least squares all depths are combined (Hay et al. 2010).

    Args:
        classes: with subtrees, if depths are combined or one above the last measured one is not
            measured.
        own: float64 (T + 1): of one measurement; 0 where public, inf where unmeasured.
        combine: by least squares over all depths; otherwise projected from the root down.
    """
    by_depth = Passes.of(classes, own, combine=combine).down(largest=True)  # a class has one parent
    result = [by_depth.get(t, np.zeros(classes.counts(t))) for t in range(max(by_depth) + 1)]
    for t in range(len(result), len(own)):  # only children: their parents' counts
        axis, parent, _ = classes.above(t)
        result.append(np.take(result[-1], parent, axis=axis))
    return result


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
        axis, _, families = classes.above(t)
        siblings = int64(np.rint(families))  # sums of parts, as 1/3 + 1/3 + 1 + 1/3
        variance = by_depth[t]
        nodes = classes.nodes(t)
        others = tuple(i for i in range(variance.ndim) if i != axis)
        reference = _least_above_zero(variance)
        sums = (nodes * variance).sum(axis=others)
        counts = nodes.sum(axis=others)
        least = variance.min(axis=others)
        largest = variance.max(axis=others)
        for n in np.unique(siblings):
            of = siblings == n
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
        ratio = largest / above if above else None
        name = plan.tree.name_of(levels)
        rows.append((None, name, None, None, mean, least, largest, mean**0.5, ratio))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _variances(plan: Plan) -> tuple[Classes, list[Float64]]:
    if isinstance(plan.measure, RunningSums):
        raise PlanError("fairness is defined for noisy counts, and this plan measures running sums")
    combine = isinstance(plan.measure, All)
    own = np.array(noise_variances(plan.depths))
    subtrees = combine or bool(np.isinf(own[: int(np.flatnonzero(np.isfinite(own))[-1])]).any())
    classes = Classes.of(plan.tree, subtrees=subtrees)
    return classes, variances(classes, own, combine=combine)


def _least_above_zero(variance: Float64) -> float | None:
    above = variance[variance > 0]
    return float(above.min()) if len(above) else None
