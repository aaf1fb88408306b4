"""The noisy counts of a release, cell by cell: what its own files hold, with codes and variances.

They are unbiased, and negative as often as noise makes them so: what statisticians ask for first.
Which cells were measured follows from the plan, and along a chain, or where survivors were
measured, from released counts too. Codes, ``noisy_count`` and ``variance`` are what a measurement
file reads (`hedgerow.release.reestimate.external`).
"""

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_ROWS_LISTED
from hedgerow.plan.cuboids import Measured, Summed
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.ways import answers_of
from hedgerow.release.directory.measurements import NOISY_COUNT, VARIANCE
from hedgerow.release.directory.stored import Content
from hedgerow.tables.counts import label_nodes


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
    if len(noisy) > MOST_ROWS_LISTED:
        raise ReleaseError(
            f"{plan.tree.name_of(levels)!r} has {len(noisy):,} noisy counts, and tables have up to "
            f"{MOST_ROWS_LISTED:,} rows; read them in parts from "
            "measurements/, in the order of domain/"
        )
    codes, noisy = answers_of(plan).noisy_cells(content, levels, noisy)
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
