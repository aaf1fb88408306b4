"""Estimates of every measured node, listed in a release or not: the analyst's side of a release."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.layers import Layer, start_of
from hedgerow.estimate.tree.least_squares import combine, least_squares
from hedgerow.plan.depths import Measured, RunningSums, Summed, Survivors, Unmeasured
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes, listed_nodes
from hedgerow.release.descent.outline import Outline, gathered
from hedgerow.release.descent.source import Noisy, Stored, Variance, uneven
from hedgerow.release.descent.steps import Refinement, children, descendants, families_of
from hedgerow.release.descent.topdown import Pass
from hedgerow.release.directory.measurements import Shape, read_noisy
from hedgerow.release.distribution.running_sums import SummedPass, pass_of
from hedgerow.release.preflight import check_combines
from hedgerow.tables.tree import Codes

# Estimating again from noisy counts that were written down: no table, no privacy cost.


def estimated_again(
    folder: Path, estimator: Estimator, plan: Plan, released: Mapping[int, Nodes]
) -> dict[int, Nodes]:
    """The survivors of all depths, from the noisy counts of a release directory.

    Args:
        folder: the release directory.
        estimator: any that suits the plan.
        plan: of the release.
        released: at least the public depths' nodes.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the plan's nodes.
        EstimateError: the estimator does not suit the plan, or the noisy counts no estimator.
    """
    check_combines(estimator, plan)
    stored = read_stored(folder, plan, released)
    if isinstance(plan.measure, RunningSums):
        return _all_used(stored, pass_of(plan, stored, estimator))
    return estimated(stored, replace(Outline.of(plan), cut=max(plan.public_depth, 0)), estimator)


def read_stored(folder: Path, plan: Plan, released: Mapping[int, Nodes]) -> Stored:
    """The noisy counts of a release directory, with its public depths' nodes."""
    measured = {
        t: what for t, what in enumerate(plan.depths) if isinstance(what, Measured | Summed)
    }
    return Stored(
        plan.tree,
        {t: read_noisy(folder, _measurable(plan, t, released)) for t in measured},
        {t: what.mechanism.noise_variance for t, what in measured.items()},
        {t: released[t] for t in range(plan.public_depth + 1)},
    )


def _measurable(plan: Plan, depth: int, released: Mapping[int, Nodes]) -> Shape:
    """What the noisy counts of a depth may be: below survivors no more than the released have."""
    shape = Shape.of(plan.tree, depth)
    above = depth - 1
    while above > 0 and isinstance(plan.depths[above], Unmeasured):
        above -= 1
    if isinstance(plan.measure, Survivors) and above in released:
        most = descendants(plan.tree, above, depth, released[above].codes).sum()
        shape = replace(shape, cells=min(shape.cells, int(most)))
    return shape


def estimated(stored: Stored, outline: Outline, estimator: Estimator) -> dict[int, Nodes]:
    """The survivors of all depths, from noisy counts in memory.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the outline's nodes.
    """
    return _all_used(stored, Pass(outline, stored, estimator))


def _all_used(stored: Stored, run: Pass | SummedPass) -> dict[int, Nodes]:
    """The nodes of a pass that reads stored noisy counts; it must read them all."""
    nodes, noisy = gathered(run.results())
    for t, values in stored.noisy.items():
        if len(noisy.get(t, ())) != len(values):
            raise uneven(t)
    return nodes


def measured_nodes(
    stored: Stored, outline: Outline, released: Mapping[int, Nodes]
) -> tuple[list[Nodes], list[Layer]]:
    """For each depth all nodes that were measured or lie above such, and what was measured.

    Args:
        stored: the noisy counts.
        outline: what was measured.
        released: the nodes that the release lists at each depth, with their counts: where only
            survivors' children were measured they say which those are.

    Returns:
        nodes: in tree order, with their released counts (0 where they are not listed).
        layers: their noisy counts, variances, and how they group under the nodes above.
    """
    top = _top(stored, outline, released[0])
    nodes, layers = [top], [_layer(stored, outline, 0, np.array([0, len(top)]), top.counts)]
    for t in range(1, outline.tree.depth + 1):
        step, above = Refinement.of(outline.tree, t), nodes[-1]
        open_below = np.flatnonzero(_is_open(outline, t - 1, above))
        parents = above.taken(open_below)
        family_start = step.family_start(parents.codes)
        cells = np.arange(family_start[-1])
        below = children(cells, family_start, parents, step, stored.counts)
        counts = np.zeros(len(below), dtype=np.int64)
        counts[_listed(parents, family_start, step, released[t])] = released[t].counts
        sizes = np.zeros(len(above), dtype=np.int64)
        sizes[open_below] = np.diff(family_start)
        start = np.append(0, np.cumsum(sizes))
        nodes.append(replace(below, counts=counts))
        layers.append(_layer(stored, outline, t, start, counts))
    return nodes, layers


def least_squares_of(
    stored: Stored, outline: Outline, released: Mapping[int, Nodes]
) -> tuple[list[Nodes], list[Layer]]:
    """For each depth all nodes that were measured, with their least-squares estimates.

    Best linear unbiased where all nodes were measured; else conditional on which survived. With
    them come the layers that they were made of.
    """
    nodes, layers = measured_nodes(stored, outline, released)
    found = least_squares(layers)
    estimates = [
        replace(here, estimate=made.estimate, variance=made.variance)
        for here, made in zip(nodes, found, strict=True)
    ]
    return estimates, layers


def projected_again(
    stored: Stored, outline: Outline, released: Mapping[int, Nodes], estimator: Estimator
) -> list[Nodes]:
    """For each depth the nodes with positive counts, from a pruned tree's noisy counts.

    Only the children of nodes that the release lists were measured, so another estimator can give
    a count to listed nodes alone, but for the deepest measured depth, below which nothing is cut.

    Args:
        stored: the noisy counts.
        outline: what was measured, below survivors alone.
        released: the nodes that the release lists at each depth.
        estimator: any that does not combine depths.
    """
    nodes, layers = measured_nodes(stored, outline, released)
    last_pruned = max(outline.measured - {max(outline.measured)}, default=-1)
    values, variances = _unpruned(outline, layers)
    root = nodes[0]
    if outline.public_depth < 0:
        count = np.array([max(0, round(float(values[0][0])))], dtype=np.int64)
        root = replace(root, counts=count, estimate=values[0].astype(float), variance=variances[0])
    kept = np.flatnonzero(root.counts > 0)
    found = [root.taken(kept)]
    for t in range(1, outline.tree.depth + 1):
        if t <= outline.public_depth:
            kept = np.arange(len(nodes[t]))
            found.append(nodes[t])
            continue
        cells, begin = families_of(start_of(layers[t]), kept)
        if t <= last_pruned:
            listed = nodes[t].counts[cells] > 0
            begin, cells = np.append(0, np.cumsum(listed))[begin], cells[listed]
        known = values[t][cells], variances[t][cells]
        if t not in outline.measured and Refinement.of(outline.tree, t).single:
            known = found[-1].estimate, found[-1].variance
        counts = estimator.project(known[0], begin, found[-1].counts, known[1])
        positive = np.flatnonzero(counts > 0)
        kept = cells[positive]
        estimate, variance = known[0][positive].astype(float), known[1][positive]
        here = nodes[t].taken(kept)
        found.append(replace(here, counts=counts[positive], estimate=estimate, variance=variance))
    return found


def _unpruned(outline: Outline, layers: list[Layer]) -> tuple[list[Noisy], list[Float64]]:
    """Noisy counts by depth, and where there are none the sums of those below, with variances."""
    values: list[Noisy] = []
    variances: list[Float64] = []
    for t in range(len(layers) - 1, -1, -1):
        layer = layers[t]
        if t in outline.measured or t <= outline.public_depth or not values:
            own = np.zeros(layer.nodes, dtype=np.int64) if layer.noisy is None else layer.noisy
            values.append(own)
            variances.append(np.broadcast_to(np.float64(layer.variance), own.shape).copy())
            continue
        both = combine(None, np.inf, values[-1], variances[-1], start_of(layers[t + 1]))
        values.append(both[0])
        variances.append(both[1])
    return values[::-1], variances[::-1]


def _top(stored: Stored, outline: Outline, released: Nodes) -> Nodes:
    """The root, with its released count; no node at all where it is public and empty."""
    if outline.public_depth >= 0:
        return stored.public(0)
    codes = tuple(np.zeros(1, dtype=np.int32) for _ in outline.tree.axes)
    count = np.array([released.counts.sum()], dtype=np.int64)
    return listed_nodes(codes, count)


def _layer(
    stored: Stored,
    outline: Outline,
    depth: int,
    family_start: Int64,
    counts: Int64,
) -> Layer:
    """What is known of the nodes of a depth on its own."""
    if depth <= outline.public_depth:
        return Layer(counts, 0.0, family_start)
    noisy: Noisy = np.zeros(len(counts), dtype=np.int64)
    variance: Variance = np.inf
    if depth in stored.noisy:
        noisy, variance = stored.noisy[depth], stored.variance[depth]
        if len(noisy) != len(counts):
            raise uneven(depth)
    return Layer(noisy, variance, family_start)


def _is_open(outline: Outline, depth: int, nodes: Nodes) -> NDArray[np.bool_]:
    """Below which nodes of a depth something was measured."""
    ends = depth in outline.measured and depth < max(outline.measured)
    pruned = ends and not outline.everything
    if pruned or depth <= outline.public_depth:
        return nodes.counts > 0
    return np.ones(len(nodes), dtype=bool)


def _listed(parents: Nodes, family_start: Int64, step: Refinement, released: Nodes) -> Int64:
    """Where the listed nodes stand among the children of parents laid end to end: ascending."""
    codes = list(released.codes)
    child = codes[step.axis].astype(np.int64)
    codes[step.axis] = (np.searchsorted(step.child_start, child, side="right") - 1).astype(np.int32)
    known = _frame(parents.codes).with_row_index("place")
    names = known.columns[1:]
    place = _frame(tuple(codes)).join(known, on=names, how="left", maintain_order="left")["place"]
    if place.null_count():
        raise ReleaseError("a node is listed whose parent is not")
    begin: Int64 = family_start[place.to_numpy()]
    return begin + child - step.child_start[codes[step.axis]]


def _frame(codes: Codes) -> pl.DataFrame:
    return pl.DataFrame({str(axis): code for axis, code in enumerate(codes)})
