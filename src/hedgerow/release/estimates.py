"""Estimates of every measured node, listed in a release or not: the analyst's side of a release."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.estimate.least_squares import Layer, least_squares
from hedgerow.release.source import Noisy, Stored, Variance, uneven
from hedgerow.release.steps import Int64, Nodes, Refinement, children
from hedgerow.release.topdown import Outline
from hedgerow.tables.order import Codes


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
    top = _top(stored, outline)
    nodes, layers = [top], [_layer(stored, outline, 0, np.array([0, len(top)]), len(top))]
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
        layers.append(_layer(stored, outline, t, start, len(below)))
    return nodes, layers


def least_squares_of(
    stored: Stored, outline: Outline, released: Mapping[int, Nodes]
) -> list[Nodes]:
    """For each depth all nodes that were measured, with their least-squares estimates.

    Best linear unbiased where all nodes were measured; else conditional on which survived.
    """
    nodes, layers = measured_nodes(stored, outline, released)
    found = least_squares(layers)
    return [
        replace(here, estimate=made.estimate, variance=made.variance)
        for here, made in zip(nodes, found, strict=True)
    ]


def _top(stored: Stored, outline: Outline) -> Nodes:
    if outline.public_depth >= 0:
        return stored.public(0)
    codes = tuple(np.zeros(1, dtype=np.int32) for _ in outline.tree.axes)
    nothing = np.zeros(1, dtype=np.int64)
    return Nodes(codes, nothing, np.zeros(1), np.zeros(1), nothing, nothing)


def _layer(
    stored: Stored,
    outline: Outline,
    depth: int,
    family_start: Int64,
    cells: int,
) -> Layer:
    """What is known of the nodes of a depth on its own."""
    if depth <= outline.public_depth:
        exact = stored.public(depth).counts
        return Layer(exact, 0.0, family_start)
    noisy: Noisy = np.zeros(cells, dtype=np.int64)
    variance: Variance = np.inf
    if depth in stored.noisy:
        noisy, variance = stored.noisy[depth], stored.variance[depth]
        if len(noisy) != cells:
            raise uneven(depth)
    return Layer(noisy, variance, family_start)


def _is_open(outline: Outline, depth: int, nodes: Nodes) -> NDArray[np.bool_]:
    """Below which nodes of a depth something was measured."""
    pruned = not outline.everything and depth in outline.measured
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
    return family_start[place.to_numpy()] + child - step.child_start[codes[step.axis]]


def _frame(codes: Codes) -> pl.DataFrame:
    return pl.DataFrame({str(axis): code for axis, code in enumerate(codes)})
