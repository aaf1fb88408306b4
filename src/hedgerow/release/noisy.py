"""The noisy counts of a release, cell by cell: what its own files hold, with codes and variances.

They are unbiased, and negative as often as noise makes them so: what statisticians ask for first.
Which cells were measured follows from the plan, and along a chain, or where survivors were
measured, from released counts too. Codes, ``noisy_count`` and ``variance`` are what a measurement
file reads (`hedgerow.release.reestimate.external`).
"""

import numpy as np
import polars as pl

from hedgerow.arrays import Codes, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.plan.cuboids import Measured, Summed
from hedgerow.plan.joint import Joint
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.source import Stored, uneven
from hedgerow.release.directory.measurements import NOISY_COUNT, VARIANCE
from hedgerow.release.directory.stored import Content, noise_variances, public_nodes
from hedgerow.release.reestimate.measured_cells import surviving_cells
from hedgerow.release.reestimate.measured_nodes import measured_nodes
from hedgerow.tables.counts import label_nodes

MOST_ROWS = 1 << 27
"""Rows of a table with codes, at most; larger ones are read from the files in parts."""


def noisy_table(content: Content, levels: Levels) -> pl.DataFrame:
    """Return the noisy counts of a measured cuboid with their codes.

    Returns:
        One row a measured cell: its codes, ``noisy_count`` (records, int64) and ``variance``
        (records²) of its noise; along a chain in tree order, else row by row.

    Raises:
        ReleaseError: the cuboid was not measured count by count, or has too many noisy counts; or
            the files are damaged.
    """
    plan = content.plan
    what = plan.by_levels[levels]
    if not isinstance(what, Measured):
        raise ReleaseError(_not_measured(plan, levels))
    noisy = content.noisy(levels)
    if len(noisy) > MOST_ROWS:
        raise ReleaseError(
            f"{plan.tree.name_of(levels)!r} has {len(noisy):,} noisy counts, and tables have up to "
            f"{MOST_ROWS:,} rows; read them in parts from measurements/, in the order of domain/"
        )
    codes, noisy = _cells(content, levels, noisy)
    variance = np.full(len(noisy), what.mechanism.noise_variance)
    return label_nodes(plan.tree, levels, codes, **{NOISY_COUNT: noisy, VARIANCE: variance})


def _not_measured(plan: Plan, levels: Levels) -> str:
    """Return why a cuboid has no noisy counts, and which have some."""
    what, name = plan.by_levels[levels], plan.tree.name_of(levels)
    if isinstance(what, Summed):
        return (
            f"of {name!r} weighted running sums were measured, which are the noisy counts of no "
            f"cell; they stand in measurements/, and the estimates made of them in counts/"
        )
    measured = [n for n, each in plan.cuboids.items() if isinstance(each, Measured)]
    return f"{name!r} is {what.kind}; it has no noisy counts: those measured are " + (
        ", ".join(map(repr, measured)) or "none"
    )


def _cells(content: Content, levels: Levels, noisy: Int64) -> tuple[Codes, Int64]:
    """Return the measured cells of a cuboid and their noisy counts, in the order of the table."""
    plan = content.plan
    if plan.is_chain:
        return _below_survivors(content, levels, noisy), noisy
    joint = plan.joint
    if isinstance(joint, PlannedSpine):
        cuboid = joint.shape.given(levels)
        _check_number(plan, levels, joint.possible_cells(cuboid), noisy)
        codes, order = joint.codes_of(cuboid)
        return codes, noisy[order]
    if not plan.is_whole(levels):
        return _survivors(content, joint, levels, noisy)
    cells = plan.tree.cells(levels)
    _check_number(plan, levels, cells, noisy)
    sizes = [axis.size(level) for axis, level in zip(plan.tree.axes, levels, strict=True)]
    rows = np.unravel_index(np.arange(cells), sizes)
    return tuple(code.astype(np.int32) for code in rows), noisy


def _survivors(content: Content, joint: Joint, levels: Levels, noisy: Int64) -> tuple[Codes, Int64]:
    """Return the cells below positive counts of their margins, row by row."""
    survivors = surviving_cells(joint, joint.shape.given(levels), content.listed)
    _check_number(content.plan, levels, survivors.cells, noisy)
    codes = survivors.nodes(np.arange(survivors.cells))
    order = np.lexsort(codes[::-1])
    return tuple(code[order] for code in codes), noisy[order]


def _below_survivors(content: Content, levels: Levels, noisy: Int64) -> Codes:
    """Return the nodes of a depth of a chain that were measured, in tree order."""
    plan, depth = content.plan, content.plan.tree.chain.index(levels)
    released = {each: content.listed(each) for each in plan.tree.chain[: depth + 1]}
    public = public_nodes(plan, released)
    stored = Stored(plan.tree, {levels: noisy}, noise_variances(plan), public)
    nodes, _ = measured_nodes(stored, Outline.of(plan), released, depth)
    return nodes[depth].codes


def _check_number(plan: Plan, levels: Levels, cells: int, noisy: Int64) -> None:
    if len(noisy) != cells:
        raise uneven(plan.tree, levels)
