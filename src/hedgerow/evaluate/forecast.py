"""The error to expect of a plan, by releasing a public prior under it again and again."""

from dataclasses import replace
from math import inf

import polars as pl

from hedgerow.declared import Whole
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import fineness
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.method import Setting, check_numbered
from hedgerow.evaluate.simulate import Tally
from hedgerow.kernels import core_count
from hedgerow.plan.cost import sums_off_the_chain
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.release.preflight import check_estimator
from hedgerow.tables.counts import Counts
from hedgerow.text import Rows

HEADINGS = ("depth", "cuboid", "RMSE", "MAE", "max error", "false positives", "false negatives")
SUMS_HEADINGS = ("", "cuboid", "cells", "RMSE", "most too high", "most too low")
SUMS_SCHEMA = {"cuboid": pl.String, "cells": pl.Float64, "rmse": pl.Float64,
               "highest": pl.Float64, "lowest": pl.Float64}  # fmt: skip
RUNS = Whole("runs", 2, inf, PlanError)
MOST_SHOWN = 5
METRICS = ("rmse", "mae", "max_error", "false_discovery_rate", "false_negative_rate")
COLUMNS = ("depth", "cuboid", "cells", *METRICS, *(f"{name}_error" for name in METRICS))


def simulated_releases(
    plan: Plan, prior: Prior, estimator: Estimator, *, runs: int, seed: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the errors of simulated releases of a public table, by cuboid and off the chain.

    The noise of each cuboid is the plan's; the areas are those of the prior, so sums run over them.
    Nothing simulated may be published as a release.

    Returns:
        One row a cuboid: ``depth`` (of a chain alone), ``cuboid``, ``cells``, the metrics of
        `hedgerow.evaluate.metrics.error_by_cuboid` (``rmse`` is the root of the mean over runs of
        its square, the others are means over runs), and for each the Monte Carlo standard error,
        ``*_error``. And one row for each of the few cuboids off a chain that `hedgerow.plan.cost`
        finds worst (of other workloads there are none): ``cuboid``, ``cells``, ``rmse`` (over cells
        and runs, records), ``highest`` and ``lowest``: the mean error over runs of the cells that
        are most too high and most too low (records), null where more cells had an error than can be
        kept.
    """
    RUNS(runs)
    check_estimator(estimator, plan)
    own = plan_over(plan, prior.counts)
    counts = prior.counts
    check_numbered(own.tree)
    setting = Setting("prior", own, estimator, workers=core_count())
    cuboids = tuple(sorted(own.levels, key=fineness))
    worst = sums_off_the_chain(own)["cuboid"]
    named = map(own.tree.named, worst.head(MOST_SHOWN))
    sums = [levels for levels in named if levels is not None]
    tally = Tally.of_seeds(counts, setting, (*cuboids, *sums), range(seed, seed + runs), sums)
    rows = list(tally.rows())
    along = cuboids == own.tree.chain
    errors = pl.DataFrame(rows[: len(cuboids)]).select(COLUMNS if along else COLUMNS[1:])
    ends = (tally.sums[levels].ends() or (None, None) for levels in sums)
    off = [
        (row["cuboid"], row["cells"], row["rmse"], *end)
        for row, end in zip(rows[len(cuboids) :], ends, strict=True)
    ]
    return errors, pl.DataFrame(off, schema=SUMS_SCHEMA, orient="row")


def plan_over(plan: Plan, table: Counts) -> Plan:
    """Return the plan with the same noise over the tree of another table with its levels."""
    levels = [
        [f"{axis.name}.{level}" for axis in tree.axes for level in axis.levels]
        for tree in (plan.tree, table.tree)
    ]
    if plan.tree.steps != table.tree.steps or levels[0] != levels[1]:
        raise PlanError(
            f"the table to simulate has the levels {', '.join(levels[1])}, the plan "
            f"{', '.join(levels[0])}; they and their order of refinement must agree"
        )
    rho = plan.guarantee.rho
    inverse_two_rho = 1 / (2 * rho) if isinstance(plan.budget, EpsilonDelta) and rho else None
    return replace(plan, tree=table.tree, inverse_two_rho=inverse_two_rho, prior=None)


def simulated_rows(errors: pl.DataFrame) -> Rows:
    """Return the rows of `simulated_releases` in words, under `HEADINGS`."""
    return [
        (
            str(row.get("depth", "")),
            row["cuboid"],
            *(f"{row[name]:,.4g} ± {row[f'{name}_error']:,.2g}" for name in METRICS[:3]),
            *(f"{row[name]:.1%} ± {row[f'{name}_error']:.1%}" for name in METRICS[3:]),
        )
        for row in errors.iter_rows(named=True)
    ]


def sums_rows(sums: pl.DataFrame) -> Rows:
    """Return the rows of the sums of `simulated_releases` in words, under `SUMS_HEADINGS`."""
    return [
        ("", cuboid, f"{cells:,.0f}", f"{rmse:,.4g}",
         *("" if end is None else f"{end:+,.0f}" for end in ends))
        for cuboid, cells, rmse, *ends in sums.iter_rows()
    ]  # fmt: skip
