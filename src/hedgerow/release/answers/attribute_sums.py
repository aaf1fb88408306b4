"""What was measured along a spine says of any cells: those of cuboids, and sums over attributes.

A sum of attribute cells at a node of the spine has its own estimate, the sum of those of all its
cells, whether these are listed or not, and its own exact variance
(`hedgerow.estimate.spine.forms.Forms`): also where it is no cuboid, as voting age × race below
kinds of quarters. Memory is for one part of the spine at a time, and for the sums that are listed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Codes, Float64, Int32, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.estimate.spine.support import runs, starts_within
from hedgerow.limits import MOST_NOISY_READ
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.release.descent.source import Source
from hedgerow.release.descent.spine import SpineFlow
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import COUNT, error_columns
from hedgerow.release.directory.stored import Content
from hedgerow.release.naming import columns_among
from hedgerow.release.passes import Pass
from hedgerow.tables.axis import Axis


def along_spine(plan: Plan) -> PlannedSpine:
    """Return what a plan decides along its spine, or raise a ReleaseError."""
    if not isinstance(plan.design, PlannedSpine):
        raise ReleaseError(
            "sums by columns of attributes need a release along a spine: attribute = true for the "
            'axes beside it, and cuboids = "cube" or a list that the plan says goes along it'
        )
    return plan.design


def estimates_of_sums(
    plan: Plan, source: Source, level: int, numbers: Int64, node: Int64, sums: Int64
) -> Float64:
    """Return the estimates of listed sums of detail cells at nodes of a level of the spine.

    Args:
        plan: whose cuboids go along a spine.
        source: of its noisy counts.
        level: of the spine, in the plan's shape.
        numbers: int64 (detail cells): the sum that each belongs to, -1 for none.
        node: int64 (pairs): the node of each listed sum.
        sums: int64 (pairs): its number. No pair is listed twice.

    Returns:
        float64 (pairs), records.
    """
    support, many = along_spine(plan).model.support, int(numbers.max(initial=0)) + 1
    keys = node * many + sums
    order = np.argsort(keys)
    keys, found = keys[order], np.zeros(len(keys))
    flow = SpineFlow(plan, source)
    for nodes, estimates in flow.estimates_at(level, Pass(flow).told()):
        here = slice(*np.searchsorted(keys, [nodes.start * many, nodes.stop * many]))
        rows = support.rows(level, nodes)
        group = support.group[level][rows]
        number = numbers[_detail_cells(support.offset, group)]
        sizes = np.diff(starts_within(support.start[level], nodes))
        above = np.repeat(np.arange(nodes.start, nodes.stop), sizes)
        flat = np.repeat(above, support.widths[group]) * many + number
        place = np.searchsorted(keys[here], flat)
        there = (number >= 0) & (place < here.stop - here.start)
        there[there] = keys[here][place[there]] == flat[there]
        size = here.stop - here.start
        found[order[here]] = np.bincount(place[there], estimates[there], minlength=size)
    return found


def _detail_cells(offset: Int64, group: Int32) -> Int64:
    """Return the number over all groups of each cell of rows: int64 (cells)."""
    return runs(offset[group], offset[group + 1] - offset[group])


def estimates_along_spine(plan: Plan, source: Source, levels: Levels, codes: Codes) -> Float64:
    """Return the estimates of listed cells of a cuboid: float64 (cells), records."""
    joint = along_spine(plan)
    cuboid = joint.shape.given(levels)
    sizes = [axis.sizes[k] for axis, k in zip(joint.shape.axes[1:], cuboid[1:], strict=True)]
    every, numbers = joint.attribute_cells(cuboid)
    flat = np.append(np.ravel_multi_index(every, sizes), -1)  # the last for those of no cell
    node, sums = codes[0].astype(np.int64), np.ravel_multi_index(tuple(codes[1:]), sizes)
    return estimates_of_sums(plan, source, cuboid[0], flat[numbers], node, sums)


# --- sums over columns of attributes ----------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """The combinations of codes in some columns of the attributes.

    Attributes:
        frames: for each attribute its own combinations, a row each; one row where it is left out.
        of_leaf: int64 (attribute leaves, all attributes row by row): the number of each leaf's.
    """

    frames: tuple[pl.DataFrame, ...]
    of_leaf: Int64

    @classmethod
    def of(cls, attributes: Sequence[Axis], levels: Mapping[str, str]) -> "Combinations":
        """Return those of attribute → columns; attributes that are not named are summed over."""
        frames, of_leaf = list[pl.DataFrame](), np.zeros(1, dtype=np.int64)
        for axis in attributes:
            frame = pl.DataFrame({"": [None]})
            number = np.zeros(axis.size(axis.depth), dtype=np.int32)
            if axis.name in levels:
                frame, number = axis.parts(columns_among(axis, levels[axis.name]))
            of_leaf = np.add.outer(of_leaf * len(frame), number).ravel()
            frames.append(frame)
        return cls(tuple(frames), of_leaf)

    @property
    def many(self) -> int:
        """How many there are."""
        return prod(map(len, self.frames))

    def labels(self, numbers: Int64) -> list[pl.Series]:
        """Return the codes of combinations, a column each."""
        codes = np.unravel_index(numbers, [len(frame) for frame in self.frames])
        return [
            column
            for frame, code in zip(self.frames, codes, strict=True)
            for column in frame[code].get_columns()
            if column.name
        ]


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
        ReleaseError: no release along a spine, or too many noisy counts for errors.
        TableError: no such column or level.
    """
    plan = content.plan
    spine, *attributes = plan.tree.axes
    beside = Combinations.of(attributes, levels)
    joint = along_spine(plan)
    place = spine.level_number(levels[spine.name]) if spine.name in levels else 0
    level = joint.shape.axes[0].given[place]
    if confidence is not None:
        check_noisy(content)
    node, sums, counts = _counted(content, level, beside)
    labels = [*spine.path(place, node.astype(np.int32)), *beside.labels(sums)]
    found = pl.DataFrame([*labels, pl.Series(COUNT, counts)])
    if confidence is None:
        return found
    of_cell = beside.of_leaf[joint.leaves]
    estimate = estimates_of_sums(plan, content.stored, level, of_cell, node, sums)
    variance = joint.model.variances(of_cell.astype(np.int32)).at(level, node, sums)
    cells = joint.shape.axes[0].sizes[level] * beside.many
    total = int(content.listed(plan.tree.cuboid(0)).counts.sum())
    errors = CuboidErrors.of_sums(plan, cells, total, joint.steps_of_sums)
    columns = error_columns(counts, estimate, variance, errors, confidence)
    return found.with_columns(pl.Series(name, column) for name, column in columns.items())


def check_noisy(content: Content) -> None:
    """Raise a ReleaseError if a release has more noisy counts than are read at once."""
    if (cells := content.noisy_cells) > MOST_NOISY_READ:
        raise ReleaseError(
            f"errors of these sums need all {cells:,} noisy counts, and can be had up to "
            f"{MOST_NOISY_READ:,}; ask for counts alone: cuboid(None, ...) or --counts-only"
        )


def _counted(content: Content, level: int, beside: Combinations) -> tuple[Int64, Int64, Int64]:
    """Return the positive released sums at nodes of a level: node, combination and count."""
    finest = content.listed(content.plan.tables[0])
    sizes = [axis.size(axis.depth) for axis in content.plan.tree.axes[1:]]
    leaf = np.ravel_multi_index(finest.codes[1:], sizes)
    node = along_spine(content.plan).ancestors(level)[finest.codes[0]].astype(np.int64)
    keys, place = np.unique(node * beside.many + beside.of_leaf[leaf], return_inverse=True)
    counts = np.zeros(len(keys), dtype=np.int64)
    np.add.at(counts, place, finest.counts)
    return keys // beside.many, keys % beside.many, counts
