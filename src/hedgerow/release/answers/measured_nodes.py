"""Estimates of every measured node, listed in a release or not: the analyst's side of a release."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Int64, Levels, int64_zeros, run_starts
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares
from hedgerow.limits import LARGEST_COUNT
from hedgerow.plan.chain import Outline
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.descent.nodes import (
    Nodes,
    NodesOf,
    Noisy,
    Slices,
    by_cuboid,
    check_families,
    unknown_root,
)
from hedgerow.release.descent.source import Stored, Variance, uneven
from hedgerow.release.descent.steps import Families, Refinement
from hedgerow.release.passes import Pass

Depths = tuple[list[Nodes], list[Layer]]
"""Of each depth from the root on the nodes, and what was measured of them."""


def estimated(
    stored: Stored, outline: Outline, estimator: Estimator, *, again: bool = False
) -> NodesOf:
    """Return the survivors of all cuboids, from noisy counts in memory.

    Args:
        stored: the noisy counts.
        outline: which depths were measured.
        estimator: that makes counts of them.
        again: whether they are those of a release, which lists the nodes that it measured below.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the outline's nodes.
    """
    tree = outline.tree
    listed = {}
    cuts = outline.measured - {max(outline.measured)}
    for t in range(outline.first + 1, max(cuts, default=0) + 1) if again else ():
        listed[t] = stored.nodes[tree.cuboid(t)]
        check_families(tree, t, stored.nodes[tree.cuboid(t - 1)], listed[t])
    flow = ChainFlow(outline.uncut, stored, estimator, listed=listed)
    return estimated_again(stored, Pass(flow))


def estimated_again(stored: Stored, run: Pass) -> NodesOf:
    """Return the survivors of all cuboids, by a pass over the noisy counts of a release.

    Raises:
        ReleaseError: they are more or fewer than the nodes of what was measured.
    """
    nodes, noisy = by_cuboid(run.results())
    for levels, values in stored.measured.items():
        if len(noisy.get(levels, ())) != len(values):
            raise uneven(stored.tree, levels)
    return nodes


def check_stored(stored: Stored) -> None:
    """Raise a ReleaseError unless a release could have written the noisy counts."""
    for levels, noisy in stored.measured.items():
        what = f"the noisy counts of {stored.tree.name_of(levels)}"
        if ((noisy < -LARGEST_COUNT) | (noisy > LARGEST_COUNT)).any():
            raise ReleaseError(f"{what} must lie between -2^61 and 2^61")


def measured_nodes(stored: Stored, outline: Outline, last: int | None = None) -> Depths:
    """Return for each depth all nodes that were measured or lie above such, and their measurements.

    Args:
        stored: the noisy counts, and the listed nodes of the depths.
        outline: which depths were measured.
        last: the deepest depth to return; that of the leaves unless given.

    Returns:
        nodes: in tree order, with their released counts (0 where they are not listed); the root,
            too, below which there is none if its count is public and 0.
        layers: their noisy counts, variances, and how they group under the nodes above.
    """
    total = stored.nodes[outline.tree.cuboid(0)].counts.sum(keepdims=True)  # which may be 0
    nodes = [Nodes.exact(unknown_root(outline.tree, None).nodes.codes, total)]
    layers = [_layer(stored, outline, 0, np.array([0, 1]), total)]
    for t in range(1, (outline.tree.depth if last is None else last) + 1):
        step = Refinement.of(outline.tree, t)
        above = nodes[-1]
        given = stored.nodes[outline.tree.cuboid(t)]
        open_below = np.flatnonzero(_is_open(outline, t - 1, above))
        parents = above.take(open_below).codes
        families = Families.of(step, Slices.without_table(parents))
        codes = families.every(None).codes
        listed = families.places(given.codes)
        if len(listed) < len(given):
            raise ReleaseError("a node is listed whose parent is not")
        counts = int64_zeros(len(codes[0]))
        counts[listed] = given.counts
        sizes = int64_zeros(len(above))
        sizes[open_below] = np.diff(families.start)
        start = run_starts(sizes)
        nodes.append(replace(Nodes.unknown(codes), counts=counts))
        layers.append(_layer(stored, outline, t, start, counts))
    return nodes, layers


def unlisted(
    outline: Outline, measured: Mapping[Levels, Noisy], variances: Mapping[Levels, Variance]
) -> tuple[Stored, Outline]:
    """Return noisy counts of all nodes of depths, and an outline in which no counts decide that."""
    codes = tuple(np.zeros(0, dtype=np.int32) for _ in outline.tree.axes)
    nothing = dict.fromkeys(outline.tree.chain, Nodes.unknown(codes))
    return Stored(outline.tree, measured, variances, nothing), replace(outline, public_depth=-1)


def least_squares_of(stored: Stored, outline: Outline) -> Depths:
    """Return for each depth all nodes that were measured, with their least-squares estimates.

    Best linear unbiased where all nodes were measured; else conditional on which survived. With
    them come the layers that they were made of.
    """
    nodes, layers = measured_nodes(stored, outline)
    estimates = zip(nodes, least_squares(layers), strict=True)
    return [replace(n, estimate=e.estimate, variance=e.variance) for n, e in estimates], layers


def _layer(
    stored: Stored,
    outline: Outline,
    depth: int,
    family_start: Int64,
    counts: Int64,
) -> Layer:
    """Return the measurements of a depth on its own."""
    if depth <= outline.public_depth:
        return Layer(counts, 0.0, family_start)
    levels = outline.tree.cuboid(depth)
    if levels not in stored.measured:
        return Layer(int64_zeros(len(counts)), np.inf, family_start)
    if len(stored.measured[levels]) != len(counts):
        raise uneven(outline.tree, levels)
    return Layer(stored.measured[levels], stored.variances[levels], family_start)


def _is_open(outline: Outline, depth: int, nodes: Nodes) -> NDArray[np.bool_]:
    """Return below which nodes of a depth something was measured: bool (nodes)."""
    ends = depth in outline.measured and depth < max(outline.measured)
    pruned = ends and not outline.everything
    if pruned or depth <= outline.public_depth:
        return nodes.counts > 0
    return np.ones(len(nodes), dtype=bool)
