"""Every measured cell of a cuboid of the plan with its errors, also those released as 0.

A count of 0 is released without a row; its interval says how many records may be there even so. Not
among them are cells that public facts or public counts of 0 say are empty, and, where survivors
alone were measured, those below counts that were released as 0: of these nothing was measured.
"""

from dataclasses import replace

import numpy as np

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.plan.cuboids import All, Measured
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.source import Stored
from hedgerow.release.directory.stored import Content, noise_variances, public_nodes
from hedgerow.release.reestimate.measured_cells import measured_cells
from hedgerow.release.reestimate.measured_nodes import least_squares_of, measured_nodes

MOST_ROWS = 1 << 27
"""Cells that are listed, at most."""
MOST_NOISY = 1 << 29
"""Noisy counts that are read at once, at most: four gigabytes."""


def every_cell(content: Content, levels: Levels) -> Nodes:
    """Return all measured cells of a cuboid, with released counts, estimates and variances.

    Returns:
        Along a chain in tree order, else row by row; counts are 0 where a cell is not listed.

    Raises:
        ReleaseError: there are too many, or the cuboid has no estimates of its unlisted cells.
    """
    plan = content.plan
    _check_size(content, levels)
    if not plan.is_chain:
        return measured_cells(plan, content.stored, content.nodes, [levels])[levels]
    depth = plan.tree.chain.index(levels)
    if isinstance(plan.measure, All):
        nodes, _ = least_squares_of(content.stored, Outline.of(plan), content.nodes)
        return nodes[depth]
    what = plan.by_levels[levels]
    if not (isinstance(what, Measured) or plan.is_public(levels)):
        raise ReleaseError(
            f"{plan.tree.name_of(levels)!r} is {what.kind}, so cells that are not listed have no "
            f"estimates of their own; ask for the listed ones alone, or for a measured cuboid"
        )
    last = max(depth, plan.public_depth)  # what is public below the cuboid is part of what is known
    released = {each: content.listed(each) for each in plan.tree.chain[: last + 1]}
    variances, public = noise_variances(plan), public_nodes(plan, released)
    noisy = {levels: content.noisy(levels)} if levels in variances else {}
    stored = Stored(plan.tree, noisy, variances, public)
    nodes, _ = measured_nodes(stored, Outline.of(plan), released, depth)
    found = nodes[depth]
    if levels not in noisy:
        return Nodes.exact(found.codes, found.counts)
    estimate, variance = noisy[levels].astype(np.float64), variances[levels]
    return replace(found, estimate=estimate, variance=np.full(len(found), variance))


def _check_size(content: Content, levels: Levels) -> None:
    """Raise if the cells are too many to be listed, or the noisy counts to be read."""
    plan = content.plan
    cells = _most_cells(content, levels)
    if cells > MOST_ROWS:
        raise ReleaseError(
            f"{plan.tree.name_of(levels)!r} has {cells:,} cells, and all are listed up to "
            f"{MOST_ROWS:,}; ask for those with a positive count alone, or for a coarser cuboid"
        )
    if (noisy := content.noisy_cells) > MOST_NOISY:
        raise ReleaseError(
            f"estimates of all cells need the {noisy:,} noisy counts, and can be had up to "
            f"{MOST_NOISY:,}; ask for those with a positive count alone"
        )


def _most_cells(content: Content, levels: Levels) -> int:
    """Return how many cells were measured, or may have been."""
    plan: Plan = content.plan
    if levels in noise_variances(plan):
        return len(content.noisy(levels))
    if plan.is_chain:
        return plan.tree.cells(levels)
    return plan.joint.possible_cells(plan.joint.shape.given(levels))
