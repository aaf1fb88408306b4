"""What may be asked of a release beside the counts that it lists, whatever its plan measures.

*Every measured cell of a cuboid of the plan*, with its errors. A count of 0 is released without a
row; its interval says how many records may be there even so. Not among the cells are those that
public facts or public counts of 0 say are empty, and, where survivors alone were measured, those
below counts that were released as 0: nothing was measured there. Which cells were measured follows
from the plan, and along a chain, or where survivors were measured, from released counts too.

*Noisy counts as they are*: unbiased, and negative as often as noise makes them so: what
statisticians ask for first. Codes, ``noisy_count`` and ``variance`` are what a measurement file
reads (`hedgerow.release.reestimate.external`).

*Sums of released counts.* A cuboid of the plan has errors of its own
(`hedgerow.release.directory.cuboid_errors`); a cube has every combination of levels. Any other, and
areas of a user's own, are sums of the cells of a released table that contains them: of the leaves
of a chain or a cube, or of one of the tables of a workload that names cuboids, which all say the
same of it. There are three ways to their errors.

1. *A cube or named cuboids, also along a spine, each cell of the table measured.* Beside the sum of
   released counts stands the least-squares estimate of the same sum from all cuboids that are
   measured whole (`hedgerow.plan.joint`): unbiased, with its variance, an interval, and
   ``contradicted``, as those of the workload have. Where the variances of so large a workload are
   upper bounds (`Plan.design` says so), standard errors are, too: intervals are wider than they
   need be, and hold at least as often.
2. *A chain, all nodes of it measured.* Beside each sum of released leaves stands the least-squares
   estimate of the same sum from all measurements: unbiased, with an exact variance
   (`hedgerow.estimate.tree.sums`) and an interval as on the tree. The sum of released leaves is not
   unbiased: each is kept from falling below 0, which adds up (`hedgerow.plan.cost`). Where it lies
   outside the intervals that hold for all sums at once it is ``contradicted``.
3. *A chain, survivors alone measured.* Noise decided which nodes were measured, yet all noisy
   counts of a depth together are unbiased, so a sum by a cuboid has an estimate whose noise is
   known; what lies below nodes released as 0 was not measured, and a model of it is put in its
   place (`hedgerow.release.survivor_sums`). The interval is wider by half of what the model tells,
   and

       low = 0 unless the estimate is above 0 at a tenth of the chance to miss,

   as sums are listed because they seem to be above 0. Where half of what the model tells is more
   than half of the noise's half width, a sum has neither estimate nor interval. Areas have none.

Of a table of a cube or of named cuboids that was measured at survivors there are counts alone.
"""

from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import MOST_NOISY_READ, MOST_ROWS_LISTED
from hedgerow.plan.chain import PlannedChain, PlannedSums
from hedgerow.plan.cuboids import Measured, Summed
from hedgerow.plan.plan import Plan
from hedgerow.plan.tables import PlannedTables
from hedgerow.release.answers.answers import Answers
from hedgerow.release.answers.chain import ChainAnswers, SumsAnswers
from hedgerow.release.answers.spine import SpineAnswers
from hedgerow.release.answers.sums import Sums
from hedgerow.release.answers.tables import TablesAnswers
from hedgerow.release.descent.jobs import OnFraction, tell_nobody
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ERROR_OF_ESTIMATE,
    ESTIMATE,
    HIGH,
    LOW,
    NOISY_COUNT,
    STANDARD_ERROR,
    VARIANCE,
)
from hedgerow.release.directory.stored import Content
from hedgerow.release.naming import label_columns
from hedgerow.tables.counts import label_nodes
from hedgerow.text import TextByName


def answers_of(plan: Plan) -> Answers[Any]:
    """Return what tells of any cells of a plan's releases: the one place that asks which it is."""
    design = plan.design
    if isinstance(design, PlannedChain):
        return SumsAnswers(plan) if isinstance(design, PlannedSums) else ChainAnswers(plan)
    return TablesAnswers(plan) if isinstance(design, PlannedTables) else SpineAnswers(plan)


def every_cell(content: Content, levels: Levels) -> Nodes:
    """Return all measured cells of a cuboid, with released counts, estimates and variances.

    Returns:
        Along a chain in tree order, else row by row; counts are 0 where a cell is not listed.

    Raises:
        ReleaseError: there are too many, or the cuboid has no estimates of its unlisted cells.
    """
    plan = content.plan
    if levels in content.measured:
        cells = len(content.measured[levels])
    else:
        cells = plan.design.possible_cells(levels)
    if cells > MOST_ROWS_LISTED:
        raise ReleaseError(
            f"{plan.tree.name_of(levels)!r} has {cells:,} cells, and all are listed up to "
            f"{MOST_ROWS_LISTED:,}; ask for those with a positive "
            "count alone, or for a coarser cuboid"
        )
    if (noisy := content.noisy_cells) > MOST_NOISY_READ:
        raise ReleaseError(
            f"estimates of all cells need the {noisy:,} noisy counts, and can be had up to "
            f"{MOST_NOISY_READ:,}; ask for those with a positive count alone"
        )
    nodes = answers_of(plan).cells(content.stored, [levels])
    if levels not in nodes:
        raise ReleaseError(
            f"{plan.tree.name_of(levels)!r} is {plan.by_levels[levels].kind}, so cells that are "
            "not listed have no estimates of their own; ask for the listed ones alone, or for a "
            "measured cuboid"
        )
    return nodes[levels]


def counts_of(
    content: Content, levels: Levels, confidence: Confidence | None, *, all_cells: bool = False
) -> pl.DataFrame:
    """Return the released counts of a cuboid of the plan, with intervals.

    Raises:
        ReleaseError: all cells are asked for, and there are too many.
    """
    errors = content.errors(levels)
    every = content.told(levels, every_cell(content, levels)) if all_cells else None
    frame = content.counts(levels) if every is None else every
    estimate = frame[ESTIMATE].to_numpy()
    variance = frame[STANDARD_ERROR].to_numpy() ** 2
    if confidence is not None:
        low, high = errors.interval(estimate, variance, confidence)
        frame = frame.with_columns(pl.Series(LOW, low), pl.Series(HIGH, high))
    sure = (confidence or USUAL).coverage
    flags = errors.contradicted(frame[COUNT].to_numpy(), estimate, variance, sure)
    return frame.with_columns(pl.Series(CONTRADICTED, flags))


def cuboid_of(
    content: Content,
    levels: TextByName,
    confidence: Confidence | None,
    on_fraction: OnFraction = tell_nobody,
) -> pl.DataFrame:
    """Return the positive counts by any choice of one level an axis, sorted by their codes.

    Raises:
        TableError: no such column of an attribute.
        ReleaseError: no such axis or level; no released table that contains the cuboid; or no
            errors of it are known.
    """
    columns = label_columns(content.plan, levels)
    sums = Sums(content.plan, levels)
    if not sums.is_cuboid or sums.levels not in content.plan.by_levels:
        listed = sums_of(content, sums, confidence, on_fraction).filter(pl.col(COUNT) > 0)
    elif confidence is None:
        listed = content.counts(sums.levels).select(*columns, COUNT)
    else:
        listed = counts_of(content, sums.levels, confidence)
    listed = listed.select(*columns, *(n for n in listed.columns if n not in columns))
    return listed.sort(columns) if columns else listed


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
    name = plan.tree.name_of(levels)
    if isinstance(what, Summed):
        raise ReleaseError(
            f"of {name!r} weighted running sums were measured, which are the noisy counts of no "
            f"cell; they stand in measurements/, and the estimates made of them in counts/"
        )
    if not isinstance(what, Measured):
        measured = map(plan.tree.name_of, plan.measured)
        raise ReleaseError(
            f"{name!r} is {what.kind}; it has no noisy counts: those measured are "
            f"{', '.join(map(repr, measured)) or 'none'}"
        )
    noisy = content.measured[levels]
    if len(noisy) > MOST_ROWS_LISTED:
        raise ReleaseError(
            f"{name!r} has {len(noisy):,} noisy counts, and tables have up to "
            f"{MOST_ROWS_LISTED:,} rows; read them in parts from "
            "measurements/, in the order of domain/"
        )
    codes, noisy = answers_of(plan).noisy_cells(content, levels)
    variance = np.full(len(noisy), what.mechanism.noise_variance)
    return label_nodes(plan.tree, levels, codes, **{NOISY_COUNT: noisy, VARIANCE: variance})


def sums_of(
    content: Content,
    sums: Sums,
    confidence: Confidence | None,
    on_fraction: OnFraction = tell_nobody,
) -> pl.DataFrame:
    """Return released sums, with their errors.

    Args:
        content: the release.
        sums: by what, and over which areas.
        confidence: of the intervals; None for counts alone.
        on_fraction: told how much is done.

    Returns:
        One row a sum: the area, if any, its codes axis by axis as the tree has them, ``count``, and
        with a confidence ``estimate`` and the ``standard_error`` of its noise, ``low``, ``high``
        and ``contradicted``; all of these are null where survivors alone of a chain were measured
        and too much of a sum may lie below counts of 0. Areas all have a row, whether the count is
        0 or not, and so have cuboids where all nodes of a chain were measured: every combination
        below the public counts. Elsewhere those with a positive count have one.

    Raises:
        ReleaseError: no released table holds the sums; or errors cannot be had, as survivors alone
            were measured or the release is too large.
    """
    answers = answers_of(content.plan)
    if sums.lookup is None:
        answers.check_columns(sums)
    if confidence is None:
        numbers, counts = sums.counted(content)
        return sums.labelled(numbers, **{COUNT: counts})
    if sums.lookup is None:
        answers.check_sums(content, sums)
    else:
        answers.check_areas(sums)  # before anything is read
    return answers.sums(content, sums, confidence, on_fraction)


def area_forecast(sums: Sums, on_fraction: OnFraction = tell_nobody) -> pl.DataFrame:
    """Return the standard errors that estimates of sums over areas will have, from public facts.

    Of a chain with public counts below the total every node is taken to have records.

    Returns:
        One row an area and combination: the area, the codes beside it, and
        ``standard_error_of_estimate`` (records).

    Raises:
        ReleaseError: they cannot be had.
    """
    answers = answers_of(sums.plan)
    answers.check_areas(sums, is_planned=True)
    error = np.sqrt(answers.planned_variances(sums, on_fraction))
    return sums.labelled(np.arange(sums.many), **{ERROR_OF_ESTIMATE: error})
