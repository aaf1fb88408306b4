"""Released counts of cuboids that the plan does not have, and their errors.

A cuboid of the plan has errors of its own (`hedgerow.release.directory.cuboid_errors`); a cube has
every combination of levels. Any other is a sum of the cells of a released table that contains it:
of the leaves of a chain, or of one of the tables of a workload that names cuboids, which all say
the same of it. There are three ways to its errors.

*Named cuboids, each cell of them measured.* Beside the sum of released counts stands the
least-squares estimate of the same sum from all cuboids that are measured whole
(`hedgerow.plan.joint`): unbiased, with its variance, an interval, and ``contradicted``, as those of
the workload have. Where the variances of so large a workload are upper bounds (`Plan.design` says
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

import polars as pl

from hedgerow.arrays import Levels
from hedgerow.estimate.intervals import Confidence
from hedgerow.release.answers.answers import listed_sums, table_with
from hedgerow.release.answers.ways import answers_of
from hedgerow.release.directory.measurements import COUNT
from hedgerow.release.directory.stored import Content
from hedgerow.release.naming import levels_of
from hedgerow.tables.counts import label_nodes


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
    return answers_of(content.plan).sums(content, wanted, confidence)


def sums_of_a_table(content: Content, wanted: Levels) -> pl.DataFrame:
    """Return the positive sums of a released table by a cuboid: its codes, and ``count``.

    Raises:
        ReleaseError: no table contains the cuboid.
    """
    codes, counts = listed_sums(content, wanted, table_with(content.plan, wanted))
    return label_nodes(content.plan.tree, wanted, codes, **{COUNT: counts})
