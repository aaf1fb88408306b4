"""What was measured along a spine says of any cells: those of cuboids, and sums over attributes.

A sum of attribute cells at a node of the spine has its own estimate, the sum of those of all its
cells, whether these are listed or not, and its own exact variance
(`hedgerow.estimate.spine.model.Forms`): also where it is no cuboid, as voting age × race below
kinds of quarters.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Stored
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.stored import Content
from hedgerow.release.spine.spine_pass import SpinePass
from hedgerow.tables.tree import Codes, Levels

MOST_SUMS = 1 << 27
"""Sums that are made at once, at most: a gigabyte of estimates."""


def spine_of(plan: Plan) -> PlannedSpine:
    """Return what a plan decides along its spine, or raise a ReleaseError."""
    joint = None if plan.is_chain else plan.joint
    if not isinstance(joint, PlannedSpine):
        raise ReleaseError(
            "sums by columns of attributes need a release along a spine: attribute = true for the "
            'axes beside it, and cuboids = "cube" or a list'
        )
    return joint


def sums_at(plan: Plan, stored: Stored, level: int, numbers: Int32, many: int) -> Float64:
    """Return the estimates of sums of detail cells at all nodes of a level of the spine.

    Args:
        plan: whose cuboids go along a spine.
        stored: its noisy counts.
        level: of the spine, in the plan's shape.
        numbers: int32 (detail cells): the sum that each belongs to, -1 for none.
        many: how many sums there are.

    Returns:
        float64 (nodes, sums), records.
    """
    joint = spine_of(plan)
    nodes, support = joint.shape.axes[0].sizes[level], joint.model.support
    if nodes * many > MOST_SUMS:
        raise ReleaseError(
            f"{nodes * many:,} sums are too many at once (2^27 at most): ask for a coarser level, "
            "or for counts alone"
        )
    found = np.zeros((nodes, many))
    for some, estimates in SpinePass(plan, stored, Euclidean()).estimates_at(level):
        rows = support.rows(level, some)
        group = support.group[level][rows]
        cells = _detail_cells(support.offset, group)
        node = np.repeat(
            np.arange(some.start, some.stop), np.diff(support.start[level])[some.start : some.stop]
        )
        of_cell = np.repeat(node, support.widths[group])
        number = numbers[cells]
        there = number >= 0
        flat = of_cell[there] * many + number[there]
        found += np.bincount(flat, estimates[there], minlength=found.size).reshape(found.shape)
    return found


def _detail_cells(offset: Int64, group: Int32) -> Int64:
    """Return the number over all groups of each cell of rows: int64 (cells)."""
    sizes = offset[group + 1] - offset[group]
    begin = np.append(0, np.cumsum(sizes))
    found: Int64 = np.arange(begin[-1]) + np.repeat(offset[group] - begin[:-1], sizes)
    return found


def estimates_along_spine(plan: Plan, stored: Stored, levels: Levels, codes: Codes) -> Float64:
    """Return the estimates of listed cells of a cuboid: float64 (cells), records."""
    joint = spine_of(plan)
    cuboid = joint.shape.given(levels)
    sizes = [axis.sizes[k] for axis, k in zip(joint.shape.axes[1:], cuboid[1:], strict=True)]
    every, numbers = joint.attribute_cells(cuboid)
    flat = np.ravel_multi_index(every, sizes)
    of_cell = np.where(numbers < 0, -1, flat[numbers]).astype(np.int32)
    sums = sums_at(plan, stored, cuboid[0], of_cell, prod(sizes))
    return sums[codes[0], np.ravel_multi_index(tuple(codes[1:]), sizes)]


def cells_along_spine(plan: Plan, stored: Stored, levels: Levels) -> Nodes:
    """Return all cells of a cuboid that can hold records, row by row, with counts of 0."""
    joint = spine_of(plan)
    cuboid = joint.shape.given(levels)
    codes, _ = joint.codes_of(cuboid)
    if plan.is_public(levels):
        return Nodes.exact(codes, stored.exact(levels))
    estimates = estimates_along_spine(plan, stored, levels, codes)
    variance = joint.variances_at(cuboid, codes)
    return Nodes(codes, np.zeros(len(codes[0]), dtype=np.int64), estimates, variance)


def is_off_tree(plan: Plan, levels: Mapping[str, str]) -> bool:
    """Return whether columns of attributes are named where a cuboid names levels."""
    axes = {axis.name: axis for axis in plan.tree.axes}
    return any(
        name in axes and axes[name].attribute and value not in axes[name].levels
        for name, value in levels.items()
    )


def attribute_sums(
    content: Content, levels: Mapping[str, str], confidence: Confidence | None
) -> pl.DataFrame:
    """Return released sums over columns of attributes at a level of the spine, with their errors.

    Args:
        content: of a release along a spine.
        levels: axis → its level; or, for attributes, columns joined by ×.
        confidence: of the intervals; None for counts alone.

    Returns:
        One row a node and a combination with a positive sum: the codes, ``count``, and of the same
        cells' estimates ``estimate``, ``standard_error``, ``low``, ``high``, ``contradicted``.

    Raises:
        ReleaseError: no such column or level, or too many sums.
    """
    plan, joint = content.plan, spine_of(content.plan)
    spine, *attributes = plan.tree.axes
    place = spine.level_number(levels[spine.name]) if spine.name in levels else 0
    frames, numbers = [], np.zeros((1,), dtype=np.int64)
    for axis in attributes:
        given = levels.get(axis.name)
        if given is None:
            frame, number = pl.DataFrame(), np.zeros(axis.size(axis.depth), dtype=np.int32)
        else:
            frame, number = axis.parts(re.split(r"\s*[×*]\s*|\s+x\s+", given))
        many = max(len(frame), 1)
        frames.append(frame)
        numbers = np.add.outer(numbers * many, number).ravel()
    many = prod(max(len(frame), 1) for frame in frames)
    of_cell = numbers[joint.leaves].astype(np.int32)
    level = joint.shape.axes[0].given[place]
    if joint.shape.axes[0].sizes[level] * many > MOST_SUMS:
        raise ReleaseError(
            f"{joint.shape.axes[0].sizes[level] * many:,} sums are too many at once (2^27 at "
            f"most): ask for a coarser level"
        )
    counts = _counted(content, joint, level, numbers, many)
    node, sums = (each.astype(np.int64) for each in np.nonzero(counts))
    beside, rest = list[pl.Series](), sums
    for frame in reversed(frames):
        if len(frame):
            beside = [*frame[rest % len(frame)].get_columns(), *beside]
            rest = rest // len(frame)
    labels = [*spine.path(place, node.astype(np.int32)), *beside]
    found = pl.DataFrame([*labels, pl.Series(COUNT, counts[node, sums])])
    if confidence is None:
        return found
    estimate = sums_at(plan, content.stored, level, of_cell, many)[node, sums]
    variance = joint.model.variances(of_cell).at(level, node, sums)
    finest = joint.levels(joint.shape.finest)
    total = int(content.listed(plan.tree.cuboid(0)).counts.sum())
    errors = replace(CuboidErrors.of(plan, finest, total), measured=False, cells=counts.size)
    low, high = errors.interval(estimate, variance, confidence)
    flags = errors.contradicted(found[COUNT].to_numpy(), estimate, variance, confidence.coverage)
    columns = {
        ESTIMATE: estimate, STANDARD_ERROR: np.sqrt(variance), LOW: low, HIGH: high,
        CONTRADICTED: flags,
    }  # fmt: skip
    return found.with_columns(pl.Series(name, column) for name, column in columns.items())


def _counted(content: Content, joint: PlannedSpine, level: int, numbers: Int64, many: int) -> Int64:
    """Return the released sums at all nodes of a level: int64 (nodes, sums), records."""
    tree = content.plan.tree
    finest = content.listed(content.plan.tables[0])
    sizes = [axis.size(axis.depth) for axis in tree.axes[1:]]
    leaf = np.ravel_multi_index(finest.codes[1:], sizes)
    node = joint.ancestors(level)[finest.codes[0]].astype(np.int64)
    found = np.zeros(joint.shape.axes[0].sizes[level] * many, dtype=np.int64)
    np.add.at(found, node * many + numbers[leaf], finest.counts)
    return found.reshape(-1, many)
