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

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import PlanError
from hedgerow.plan.allocation.sibling_classes import Classes, tree_classes, variances
from hedgerow.plan.depths import All, Measured, Public, RunningSums, Survivors
from hedgerow.plan.plan import Plan

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
    """One row a family type: a depth 1..T, and a number of siblings.

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


def _variances(plan: Plan) -> tuple[Classes, list[NDArray[np.float64]]]:
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


def _least_above_zero(found: NDArray[np.float64]) -> float | None:
    above = found[found > 0]
    return float(above.min()) if len(above) else None


def _area(plan: Plan, depth: int, number: int, classes: Classes) -> str:
    """The code of the first area of a class, or of its parent where families are named."""
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
