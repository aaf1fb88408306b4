"""Sums over areas of a user's own, which are no level of an axis and may overlap.

Beside the sum of released counts stands the sum of least-squares estimates: unbiased, with its
exact variance (`hedgerow.release.answers`).
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from hedgerow.arrays import Float64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import MOST_WORK_OF_SUMS
from hedgerow.release.answers.ways import answers_of
from hedgerow.release.area_sums import AreaSums
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import COUNT, ERROR_OF_ESTIMATE, error_columns
from hedgerow.release.directory.stored import Content

COUNTS_ALONE = "ask for counts alone: areas(…, confidence=None) or --counts-only"


def _quiet(fraction: float) -> None:
    """Tell nobody how far it is."""
    del fraction


def area_sums(
    content: Content,
    sums: AreaSums,
    confidence: Confidence | None,
    on_fraction: Callable[[float], None] = _quiet,
) -> pl.DataFrame:
    """Return released sums over areas, with their errors.

    Args:
        content: the release.
        sums: over which areas.
        confidence: of the intervals; None for counts alone.
        on_fraction: told how much is done.

    Returns:
        One row an area and combination, whether its count is 0 or not: the area, the codes beside
        it, ``count``, and with a confidence ``estimate``, ``standard_error``, ``low``, ``high``
        and ``contradicted``.

    Raises:
        ReleaseError: no released table holds the sums, or errors cannot be had.
    """
    if confidence is not None:
        check_errors(sums)  # before anything is read
    counts = sums.counts(content).ravel()
    found = pl.DataFrame([*sums.labels(), pl.Series(COUNT, counts)])
    if confidence is None:
        return found
    found_here = answers_of(content.plan).area_estimates(content, sums, on_fraction)
    estimate, variance = (each.ravel() for each in found_here)
    total = int(content.listed(content.plan.tree.cuboid(0)).counts.sum())
    steps = content.plan.design.steps_of_sums
    errors = CuboidErrors.of_sums(content.plan, len(counts), total, steps)
    columns = error_columns(counts, estimate, variance, errors, confidence)
    return found.with_columns(pl.Series(name, column) for name, column in columns.items())


def check_errors(sums: AreaSums, *, is_planned: bool = False) -> None:
    """Raise unless estimates of the sums and their variances can be had.

    Args:
        sums: over which areas.
        is_planned: whether variances alone are wanted, which along a spine read no noisy counts.

    Raises:
        ReleaseError: survivors alone were measured, or it would take too long.
    """
    many = len(sums.lookup) * sums.cells
    without, instead = ("", "") if is_planned else (f"; {COUNTS_ALONE}", f", or {COUNTS_ALONE}")
    needed = answers_of(sums.plan).area_work(sums, is_planned=is_planned)
    if not needed.is_known:
        raise ReleaseError(
            "errors of sums over areas are unknown here: not every one of these cells is measured "
            f"with noise of its own, and noise decides which are{without}; a plan with "
            'measure = "all" has errors of any areas'
        )
    if needed.noisy > needed.most or needed.work > MOST_WORK_OF_SUMS:
        raise ReleaseError(
            f"errors of these {many:,} sums would take too long, with {needed.noisy:,} noisy "
            f"counts; name fewer areas or coarser levels{instead}"
        )


def variances(sums: AreaSums, on_fraction: Callable[[float], None] = _quiet) -> Float64:
    """Return the variances of the sums' estimates from public facts: float64 (areas, cells beside).

    Of a chain with public counts below the total every node is taken to have records.

    Raises:
        ReleaseError: they cannot be had.
    """
    check_errors(sums, is_planned=True)
    return answers_of(sums.plan).area_variances(sums, on_fraction)


def area_forecast(sums: AreaSums, on_fraction: Callable[[float], None] = _quiet) -> pl.DataFrame:
    """Return the standard errors that the sums' estimates will have, from public facts.

    Returns:
        One row an area and combination: the area, the codes beside it, and
        ``standard_error_of_estimate`` (records).

    Raises:
        ReleaseError: they cannot be had.
    """
    error = pl.Series(ERROR_OF_ESTIMATE, np.sqrt(variances(sums, on_fraction)).ravel())
    return pl.DataFrame([*sums.labels(), error])
