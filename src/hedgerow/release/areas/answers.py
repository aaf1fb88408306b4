"""Sums over areas of a user's own, which are no level of an axis and may overlap.

Beside the sum of released counts stands the sum of least-squares estimates: unbiased, with its
exact variance: `hedgerow.release.areas.chain`, `tables` and `spine` have one each.
"""

from collections.abc import Callable

import numpy as np
import polars as pl

from hedgerow.arrays import Float64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence, Steps
from hedgerow.plan.cuboids import All
from hedgerow.plan.joint import as_tables
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.areas.chain import estimates_along_chain, variances_along_chain
from hedgerow.release.areas.spine import SpineSums
from hedgerow.release.areas.sums import AreaSums
from hedgerow.release.areas.tables import estimates_of_tables, is_closed, variances_of_tables
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ERROR_OF_ESTIMATE,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.stored import Content, noise_variances

MOST_NOISY, MOST_READ = 1 << 25, 1 << 29
"""Noisy counts that errors of sums need, at most: along a chain, and of other workloads."""
MOST_WORK = 1 << 33
"""Sums times what each runs through, at most: the axes' nodes, or all cells where it iterates."""
A_SUM = 1 << 14
"""What a sum takes beside that, in nodes."""
ITERATIONS = 4
"""What a cell takes where sums iterate, in nodes of an axis."""
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
    estimate, variance = (each.ravel() for each in _estimated(content, sums, on_fraction))
    total = int(content.listed(content.plan.tree.cuboid(0)).counts.sum())
    errors = CuboidErrors.of_sums(content.plan, len(counts), total, _steps(content.plan))
    low, high = errors.interval(estimate, variance, confidence)
    flags = errors.contradicted(counts, estimate, variance, confidence.coverage)
    columns = {
        ESTIMATE: estimate, STANDARD_ERROR: np.sqrt(variance), LOW: low, HIGH: high,
        CONTRADICTED: flags,
    }  # fmt: skip
    return found.with_columns(pl.Series(name, column) for name, column in columns.items())


def check_errors(sums: AreaSums, *, is_planned: bool = False) -> None:
    """Raise unless estimates of the sums and their variances can be had.

    Args:
        sums: over which areas.
        is_planned: whether variances alone are wanted, which along a spine read no noisy counts.

    Raises:
        ReleaseError: survivors alone were measured, or it would take too long.
    """
    plan, many = sums.plan, len(sums.lookup) * sums.cells
    without, instead = ("", "") if is_planned else (f"; {COUNTS_ALONE}", f", or {COUNTS_ALONE}")
    if plan.is_chain:
        known = isinstance(plan.measure, All)
        cells = sum(plan.tree.cells(levels) for levels in noise_variances(plan))
        most, work = MOST_NOISY, 0
    else:
        known = plan.joint.is_answerable(sums.given)
        cells, most = sum(map(plan.joint.possible_cells, plan.joint.noise)), MOST_READ
        if is_planned and isinstance(plan.joint, PlannedSpine):
            cells = 0
        work = _work(sums, many, cells) if known and cells <= most else 0
    if not known:
        raise ReleaseError(
            "errors of sums over areas are unknown here: not every one of these cells is measured "
            f"with noise of its own, and noise decides which are{without}; a plan with "
            'measure = "all" has errors of any areas'
        )
    if cells > most or work > MOST_WORK:
        raise ReleaseError(
            f"errors of these {many:,} sums would take too long, with {cells:,} noisy counts; name "
            f"fewer areas or coarser levels{instead}"
        )


def _work(sums: AreaSums, many: int, cells: int) -> int:
    """Return about how many numbers the variances of sums run through, beside a chain."""
    joint, lookup = sums.plan.joint, sums.lookup
    if isinstance(joint, PlannedSpine):
        rows = len(lookup.nodes) if lookup.axis == 0 else many
        return rows * joint.model.support.groups**2 + many
    nodes = sum(joint.shape.shape(sums.given)) + A_SUM
    closed = joint.is_public(sums.given) or is_closed(as_tables(joint), sums.given)
    return many * (nodes if closed else cells * ITERATIONS + A_SUM)


def variances(sums: AreaSums, on_fraction: Callable[[float], None] = _quiet) -> Float64:
    """Return the variances of the sums' estimates from public facts: float64 (areas, cells beside).

    Of a chain with public counts below the total every node is taken to have records.

    Raises:
        ReleaseError: they cannot be had.
    """
    check_errors(sums, is_planned=True)
    if sums.plan.is_chain:
        return variances_along_chain(sums)
    return _joint_variances(sums, on_fraction)


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


def _steps(plan: Plan) -> Steps | None:
    """Return what bounds the coefficients of sums; None along a chain, where none is above 1."""
    if plan.is_chain:
        return None
    joint = plan.joint
    if isinstance(joint, PlannedSpine):
        return joint.steps_of_sums
    return Steps(min(joint.noise.values()), is_exact=True)


def _estimated(
    content: Content, sums: AreaSums, on_fraction: Callable[[float], None]
) -> tuple[Float64, Float64]:
    """Return estimates and variances: float64 (areas, cells beside) both."""
    plan = content.plan
    if plan.is_chain:
        return estimates_along_chain(content, sums)
    joint = plan.joint
    if joint.is_public(sums.given):
        exact = sums.counts(content).astype(np.float64)
        return exact, np.zeros(exact.shape)
    if isinstance(joint, PlannedSpine):
        found = SpineSums(sums, joint).estimates(content.stored)
    else:
        found = estimates_of_tables(content, sums)
    return found, _joint_variances(sums, on_fraction)


def _joint_variances(sums: AreaSums, on_fraction: Callable[[float], None]) -> Float64:
    """Return the variances beside a chain: float64 (areas, cells beside)."""
    joint = sums.plan.joint
    if joint.is_public(sums.given):
        return np.zeros((len(sums.lookup), sums.cells))
    if isinstance(joint, PlannedSpine):
        return SpineSums(sums, joint).variances(on_fraction)
    return variances_of_tables(sums, as_tables(joint), on_fraction)
