"""Estimates of the cells that a release lists, whichever version of the estimation made its counts.

Counts are taken as they are: they decide which cells were measured, where these are survivors, and
nothing else. Unbiased estimates and their variances follow from the plan and the noisy counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from hedgerow.arrays import Int64, Levels
from hedgerow.distribution.plan import cumulative_error
from hedgerow.estimate.running_sums import Decoded
from hedgerow.plan.cuboids import All, RunningSums
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.source import Stored, uneven
from hedgerow.release.distribution.running_sums import BINS, ROOT
from hedgerow.release.reestimate.measured_cells import measured_cells
from hedgerow.release.reestimate.measured_nodes import (
    check_noisy,
    least_squares_of,
    measured_nodes,
    of_an_empty_table,
)


def listed_cells(
    plan: Plan, stored: Stored, released: Mapping[Levels, Nodes]
) -> dict[Levels, Nodes]:
    """Return the listed cells of cuboids with their estimates; their counts are the released ones.

    Left out are cuboids along a chain that were not measured themselves, where survivors were.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the cells that were measured, or none
            that a release writes; or cells are listed that were not measured.
    """
    check_noisy(stored)
    if plan.is_chain and plan.public_depth >= 0 and not len(released[plan.tree.cuboid(0)]):
        return of_an_empty_table(stored, released)
    every = _every_cell(plan, stored, released)
    return {levels: nodes.take(np.flatnonzero(nodes.counts)) for levels, nodes in every}


def _every_cell(
    plan: Plan, stored: Stored, released: Mapping[Levels, Nodes]
) -> Iterator[tuple[Levels, Nodes]]:
    """Yield the measured cells of a cuboid with their released counts, one after the other."""
    if not plan.is_chain:
        for levels in plan.levels:
            yield from measured_cells(plan, stored, released, [levels]).items()
    elif isinstance(plan.measure, RunningSums):
        yield from _bins(plan, stored, released)
    elif isinstance(plan.measure, All):
        nodes, _ = least_squares_of(stored, Outline.of(plan), released)
        yield from zip(plan.tree.chain, nodes, strict=True)
    else:
        survivors = measured_nodes(stored, Outline.of(plan), released)
        for levels, cells, layer in zip(plan.tree.chain, *survivors, strict=True):
            variance = np.broadcast_to(layer.variance, len(cells))
            if np.isfinite(variance).all():
                estimate = np.asarray(layer.noisy, dtype=np.float64)
                yield levels, replace(cells, estimate=estimate, variance=variance)


def _bins(
    plan: Plan, stored: Stored, released: Mapping[Levels, Nodes]
) -> Iterator[tuple[Levels, Nodes]]:
    """Yield the total and the bins of which running sums were measured."""
    sums, errors = cast("Int64", stored.noisy[BINS]), cast("Decoded", cumulative_error(plan))
    if len(sums) != plan.tree.cells(BINS):
        raise uneven(plan.tree, BINS)
    root, listed = released[ROOT], released[BINS]
    public = int(root.counts[0]) if plan.public_depth == 0 else None
    cumulative, at = errors.estimate(sums, public), listed.codes[0]
    if public is None:
        here = slice(len(cumulative) - len(root), None)  # none where the total was released as 0
        root = replace(root, estimate=cumulative[here], variance=errors.before[here])
    yield ROOT, root
    yield BINS, replace(listed, estimate=np.diff(cumulative)[at], variance=errors.leaves[at])
