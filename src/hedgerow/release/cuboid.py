"""Released counts of cuboids that the plan does not have, and their errors.

A cuboid of the plan has errors of its own (`hedgerow.release.directory.cuboid_errors`); a cube has
every combination of levels. Any other is a sum of the cells of a released table that contains it:
of the leaves of a chain, or of one of the tables of a workload that names cuboids, which all say
the same of it. There are three ways to its errors.

*Named cuboids, each cell of them measured.* Beside the sum of released counts stands the
least-squares estimate of the same sum from all cuboids that are measured whole
(`hedgerow.plan.joint`): unbiased, with its variance, an interval, and ``contradicted``, as those of
the workload have. Where the variances of so large a workload are upper bounds (`Plan.joint` says
so), standard errors are, too: intervals are wider than they need be, and hold at least as often.

*A chain, all nodes of it measured.* Beside each sum of released leaves stands the least-squares
estimate of the same sum from all measurements: unbiased, with an exact variance
(`hedgerow.estimate.tree.sums`) and an interval as on the tree. The sum of released leaves is not
unbiased: each is kept from falling below 0, which adds up (`hedgerow.plan.cost`). Where it lies
outside the intervals that hold for all sums at once it is ``contradicted``
(`hedgerow.release.directory.cuboid_errors`).

*A chain, survivors alone measured.* Noise decided which nodes were measured, yet all noisy counts
of a depth together are unbiased, so a sum has an estimate whose noise is known; what lies below
nodes released as 0 was not measured, and a model of it is put in its place
(`hedgerow.release.survivor_sums`). The interval is wider by half of what the model tells, and

    low = 0 unless the estimate is above 0 at a tenth of the chance to miss,

as sums are listed because they seem to be above 0. Where half of what the model tells is more than
half of the noise's half width, a sum has neither estimate nor interval.

Of a table of named cuboids that was measured at survivors there are counts alone.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import polars as pl

from hedgerow.arrays import Codes, Float64, Int64, Levels
from hedgerow.errors import ReleaseError, did_you_mean
from hedgerow.estimate.cube.shape import meet
from hedgerow.estimate.intervals import Confidence, interval
from hedgerow.estimate.tree.sums import sums_of_leaves
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import All, Measured
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.descent.nodes import sums_of_cells
from hedgerow.release.descent.outline import Outline
from hedgerow.release.directory.cuboid_errors import CuboidErrors, outside
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.stored import Content
from hedgerow.release.joint.joint_pass import JointPass
from hedgerow.release.reestimate.measured_nodes import measured_nodes
from hedgerow.release.spine.answers import check_noisy, columns_among, estimates_along_spine
from hedgerow.release.survivor_sums import survivor_sums
from hedgerow.tables.counts import label_nodes
from hedgerow.tables.tree import Tree

MOST_CELLS = 1 << 25
"""Noisy counts that least squares of sums off a chain hold at once, at most: 4 gigabytes."""
WIDEST = 0.5
"""Of the noise's half width, what intervals may be wider by for what was not measured."""
FIRMER = 0.1
"""The part of the chance to miss at which an estimate must be above 0 for ``low`` to be."""


def levels_of(tree: Tree, levels: Mapping[str, str]) -> Levels:
    """Return the level of each axis, 0 for those that are not named and so summed over.

    Raises:
        TableError: no such level.
    """
    return tuple(axis.level_number(levels[axis.name]) if axis.name in levels else 0
                 for axis in tree.axes)  # fmt: skip


def label_columns(plan: Plan, levels: Mapping[str, str]) -> list[str]:
    """Return the label columns of axis → level, in the order in which its axes are named.

    Raises:
        TableError: no such column of an attribute.
        ReleaseError: no such axis or level.
    """
    axes, columns = {axis.name: axis for axis in plan.tree.axes}, list[str]()
    for name, level in levels.items():
        axis = axes.get(name)
        if axis is not None and axis.attribute and level not in axis.levels:
            columns += columns_among(axis, level)
            continue
        if axis is None or level not in axis.levels:
            names = list(axes) if axis is None else list(axis.levels)
            given = name if axis is None else level
            raise ReleaseError(
                f"no {'axis' if axis is None else f'level of axis {name!r}'} is called "
                f"{given!r}; there are {', '.join(names)}{did_you_mean(given, names)}"
            )
        columns += axis.columns_of(axis.level_number(level))
    return columns


def cuboid_errors(
    content: Content, levels: Mapping[str, str], confidence: Confidence
) -> pl.DataFrame:
    """Return the released counts of a cuboid that the plan does not have, with their errors.

    Returns:
        One row a combination: its codes axis by axis as the tree has them, ``count``, ``estimate``
        and the ``standard_error`` of its noise, ``low``, ``high``, ``contradicted``; all of them
        are null where survivors alone of a chain were measured and too much of a sum may lie
        below counts of 0. Where all nodes of a chain were measured, every combination below the
        public counts has a row, with a count of 0 or not; elsewhere those with a positive
        count.

    Raises:
        ReleaseError: the release is too large for this; or no table contains the cuboid, or one
            that has no errors of sums.
        TableError: no such level.
    """
    wanted = levels_of(content.plan.tree, levels)
    if not content.plan.is_chain:
        table = _table_with(content.plan, wanted)
        cuboid = meet(wanted, table)  # which has its cells
        if content.plan.joint.is_answerable(content.plan.joint.shape.given(cuboid)):
            return _of_named(content, wanted, table, confidence)
        raise ReleaseError(_unknown(content.plan, wanted, table))
    _check_size(content)
    everything = content.plan.is_chain and isinstance(content.plan.measure, All)
    if everything and len(content.nodes[content.plan.tree.cuboid(0)]):
        return _least_squares(content, wanted, confidence)
    return _of_survivors(content, wanted, confidence)


def sums_of_a_table(content: Content, wanted: Levels) -> pl.DataFrame:
    """Return the positive sums of a released table by a cuboid: its codes, and ``count``.

    Raises:
        ReleaseError: no table contains the cuboid.
    """
    tree = content.plan.tree
    codes, counts = _listed(content, wanted, _table_with(content.plan, wanted))
    return label_nodes(tree, wanted, codes, **{COUNT: counts})


def _listed(content: Content, wanted: Levels, table: Levels) -> tuple[Codes, Int64]:
    """Return the cells with a positive sum of a table, row by row, and their counts."""
    tree = content.plan.tree
    numbers, sums = sums_of_cells(tree, wanted, table, content.listed(table))
    shape = [axis.size(level) for axis, level in zip(tree.axes, wanted, strict=True)]
    codes = np.unravel_index(numbers, shape)
    return tuple(code.astype(np.int32) for code in codes), sums


def _table_with(plan: Plan, wanted: Levels) -> Levels:
    """Return the smallest released table that contains a cuboid, or raise a ReleaseError."""
    table = plan.table_of(wanted)
    if table is None:
        name, tables = plan.tree.name_of(wanted), " and ".join(map(plan.tree.name_of, plan.tables))
        several = "tables are" if len(plan.tables) > 1 else "table is"
        raise ReleaseError(
            f"{name} is no sum of what was released: the released {several} {tables}; ask for a "
            f"cuboid that one of them contains, or name this one in [workload] of a new release"
        )
    return table


def _of_named(
    content: Content, wanted: Levels, table: Levels, confidence: Confidence
) -> pl.DataFrame:
    """Return positive sums of a table, with least-squares estimates of the same sums."""
    plan, cuboid = content.plan, meet(wanted, table)
    joint, total = plan.joint, content.listed(plan.tree.cuboid(0)).counts.sum()
    codes, counts = _listed(content, wanted, table)
    given = joint.shape.given(cuboid)
    if isinstance(joint, PlannedSpine):
        check_noisy(content)
        estimate = estimates_along_spine(plan, content.stored, cuboid, codes)
    else:
        run = JointPass(plan, content.stored, content.estimator)
        estimate = run.estimates([given])[given][codes]
    variance = joint.variances_at(given, codes)
    errors = CuboidErrors.of(plan, cuboid, int(total))
    low, high = errors.interval(estimate, variance, confidence)
    flags = errors.contradicted(counts, estimate, variance, confidence.coverage)
    return label_nodes(plan.tree, wanted, codes, **{
        COUNT: counts, ESTIMATE: estimate, STANDARD_ERROR: np.sqrt(variance), LOW: low, HIGH: high,
        CONTRADICTED: flags,
    })  # fmt: skip


def _unknown(plan: Plan, wanted: Levels, table: Levels) -> str:
    """Return that a sum of a table that was measured at survivors has no errors."""
    return (
        f"{plan.tree.name_of(wanted)} is a sum of {plan.tree.name_of(table)}, of which survivors "
        f"alone were measured, so its errors are unknown; ask for counts alone: cuboid(None, ...) "
        f"or --counts-only"
    )


def _least_squares(content: Content, wanted: Levels, confidence: Confidence) -> pl.DataFrame:
    """Return all sums of what was measured, by least squares."""
    plan = content.plan
    every, layers = measured_nodes(content.stored, Outline.of(plan), content.nodes)
    leaves = every[-1]
    cells = _at_levels(plan.tree, wanted, leaves.codes)
    labels = cells.unique().sort(cells.columns).with_row_index("group")
    group = cells.join(labels, on=cells.columns, maintain_order="left")["group"]
    groups = group.cast(pl.Int64).to_numpy()
    sums = sums_of_leaves(layers, groups)
    counts = np.zeros(len(labels), dtype=np.int64)
    np.add.at(counts, groups, leaves.counts)
    noise, total = _widest(plan), _total(content)

    def ends(sure: Confidence) -> tuple[Int64, Int64]:
        half_width = sure.half_width(noise, sums.variance, len(labels), measured=False)
        return interval(sums.estimate, half_width, total)

    low, high = ends(confidence)
    flags = outside(counts, *ends(Confidence(confidence.coverage, simultaneous=True)))
    return _labelled(plan.tree, wanted, labels.drop("group")).with_columns(
        pl.Series(COUNT, counts),
        pl.Series(ESTIMATE, sums.estimate),
        pl.Series(STANDARD_ERROR, np.sqrt(sums.variance)),
        pl.Series(LOW, low),
        pl.Series(HIGH, high),
        pl.Series(CONTRADICTED, flags),
    )


def _of_survivors(content: Content, wanted: Levels, confidence: Confidence) -> pl.DataFrame:
    """Return the listed sums, with estimates where little of them was not measured."""
    plan, total, noise = content.plan, _total(content), _widest(content.plan)
    codes, counts = _listed(content, wanted, plan.tree.chain[-1])
    sums = survivor_sums(content, wanted, codes)

    def reach(sure: Confidence) -> Float64:
        cells = plan.tree.cells(wanted)  # noise decided which of them are listed
        return np.asarray(sure.half_width(noise, sums.variance, cells, measured=False))

    def ends(sure: Confidence) -> tuple[Int64, Int64]:
        low, high = interval(sums.estimate, reach(sure) + sums.allowance, total)
        firmer = reach(replace(sure, coverage=1 - FIRMER * (1 - sure.coverage)))
        return np.where(sums.estimate > firmer + sums.allowance, low, 0), high

    low, high = ends(confidence)
    flags = outside(counts, *ends(replace(confidence, simultaneous=True)))
    errors = {
        ESTIMATE: sums.estimate, STANDARD_ERROR: np.sqrt(sums.variance), LOW: low, HIGH: high,
        CONTRADICTED: flags,
    }  # fmt: skip
    known = pl.Series(sums.allowance <= WIDEST * reach(Confidence(confidence.coverage)))
    found = label_nodes(plan.tree, wanted, codes, **{COUNT: counts}, **errors)
    return found.with_columns(pl.when(known).then(pl.col(name)).alias(name) for name in errors)


def _total(content: Content) -> int | None:
    """Return the number of records where it is public."""
    root = content.nodes[content.plan.tree.cuboid(0)]
    return int(root.counts.sum()) if content.plan.public is not None else None


def _check_size(content: Content) -> None:
    """Raise if it would take gigabytes or minutes."""
    cells = content.noisy_cells
    if cells > MOST_CELLS:
        raise ReleaseError(
            f"errors of a cuboid off the tree need all {cells:,} noisy counts, and can be had up "
            f"to {MOST_CELLS:,}; ask for counts alone: cuboid(None, ...) or --counts-only"
        )


def _widest(plan: Plan) -> Mechanism:
    """Return the noise whose intervals are the widest in units of its standard deviation."""
    noise = [d.mechanism for d in plan.depths if isinstance(d, Measured)]
    return min(noise, key=lambda mechanism: mechanism.noise_variance)


def _at_levels(tree: Tree, wanted: Levels, codes: Codes) -> pl.DataFrame:
    """Return the nodes of a cuboid's levels that leaves belong to: one column an axis."""
    return pl.DataFrame({
        f"axis {a}": axis.ancestors(level)[code]
        for a, (axis, level, code) in enumerate(zip(tree.axes, wanted, codes, strict=True))
    })  # fmt: skip


def _labelled(tree: Tree, wanted: Levels, cells: pl.DataFrame) -> pl.DataFrame:
    """Return the cells' codes in words, under the table's own column names."""
    series = []
    for axis, level, code in zip(tree.axes, wanted, cells.iter_columns(), strict=True):
        series += axis.path(level, code.to_numpy())
    return pl.DataFrame(series)
