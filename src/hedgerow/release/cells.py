"""Every measured cell of a cuboid of the plan: with its errors, or its noisy count as it is.

A count of 0 is released without a row; its interval says how many records may be there even so. Not
among the cells are those that public facts or public counts of 0 say are empty, and, where
survivors alone were measured, those below counts that were released as 0: nothing was measured
there. Which cells were measured follows from the plan, and along a chain, or where survivors were
measured, from released counts too.

Noisy counts are unbiased, and negative as often as noise makes them so: what statisticians ask for
first. Codes, ``noisy_count`` and ``variance`` are what a measurement file reads
(`hedgerow.release.reestimate.external`).
"""

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.limits import MOST_NOISY_READ, MOST_ROWS_LISTED
from hedgerow.plan.cuboids import Measured, Summed
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.ways import answers_of
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.measurements import NOISY_COUNT, VARIANCE
from hedgerow.release.directory.stored import Content, noise_variances
from hedgerow.tables.counts import label_nodes


def every_cell(content: Content, levels: Levels) -> Nodes:
    """Return all measured cells of a cuboid, with released counts, estimates and variances.

    Returns:
        Along a chain in tree order, else row by row; counts are 0 where a cell is not listed.

    Raises:
        ReleaseError: there are too many, or the cuboid has no estimates of its unlisted cells.
    """
    _check_size(content, levels)
    return answers_of(content.plan).every_cell(content, levels)


def _check_size(content: Content, levels: Levels) -> None:
    """Raise if the cells are too many to be listed, or the noisy counts to be read."""
    plan = content.plan
    cells = _most_cells(content, levels)
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


def _most_cells(content: Content, levels: Levels) -> int:
    """Return how many cells were measured, or may have been."""
    if levels in noise_variances(content.plan):
        return len(content.noisy(levels))
    return answers_of(content.plan).most_cells(levels)


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
