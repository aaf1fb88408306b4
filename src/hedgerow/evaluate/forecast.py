"""The error to expect of a plan, by releasing a public prior under it again and again."""

import math
from dataclasses import replace

import polars as pl

from hedgerow.arrays import Codes, Int64
from hedgerow.errors import PlanError
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.metrics import error_of_nodes
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.cost import off_the_chain, sums_off_the_chain
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.release.descent.outline import by_cuboid
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory.measurements import COUNT
from hedgerow.release.passes import pass_of
from hedgerow.release.preflight import check_combines
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from hedgerow.text import Rows

HEADINGS = ("depth", "cuboid", "RMSE", "MAE", "max error", "false positives", "false negatives")
SUMS_HEADINGS = ("", "cuboid", "cells", "RMSE", "most too high", "most too low")
SUMS_SCHEMA = {"cuboid": pl.String, "cells": pl.Float64, "rmse": pl.Float64,
               "highest": pl.Float64, "lowest": pl.Float64}  # fmt: skip
MOST_SHOWN = 5
METRICS = ("rmse", "mae", "max_error", "false_discovery_rate", "false_negative_rate")


def simulated_releases(
    plan: Plan, prior: Prior, estimator: Estimator, *, runs: int, seed: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the errors of simulated releases of a public table, by cuboid and off the chain.

    The noise of each cuboid is the plan's; the areas are those of the prior, so sums run over them.
    Nothing simulated may be published as a release.

    Returns:
        One row a cuboid: ``depth`` (of a chain alone), ``cuboid``, ``cells``, the metrics of
        `error_of_nodes` (``rmse`` is the root of the mean over runs of its square, the others are
        means over runs), and for each the Monte Carlo standard error, ``*_error``. And one row for
        each of the few cuboids off a chain that `hedgerow.plan.cost` finds worst (of other
        workloads there are none): ``cuboid``, ``cells``, ``rmse`` (over cells and runs, records),
        ``highest`` and ``lowest``: the mean error over runs of the cells that are most too high and
        most too low (records).
    """
    if runs < 2:
        raise PlanError(f"a simulation needs at least 2 runs, got {runs}")
    check_combines(estimator, plan)
    own = plan_over(plan, prior.counts)
    errors, tree = [], own.tree
    sums = _worst_sums(own)
    truth = {levels: _sums(tree, levels, *prior.counts.roll_up(tree.depth)) for levels in sums}
    for run in range(runs):
        source = Drawn(prior.counts, own, seeded_bits(seed + run))
        nodes, _ = by_cuboid(pass_of(own, source, estimator).results())
        errors.append(error_of_nodes(prior.counts, nodes))
        for levels, frames in sums.items():
            leaves = nodes[tree.chain[-1]]
            released = _sums(tree, levels, leaves.codes, leaves.counts)
            frames.append(_errors_of_sums(released, truth[levels]))
    return _means(errors, runs), _by_cuboid(tree, sums, runs)


def _worst_sums(plan: Plan) -> dict[tuple[int, ...], list[pl.DataFrame]]:
    """Return an empty list for each of the cuboids whose sums may be furthest from their truth."""
    names = sums_off_the_chain(plan)["cuboid"].head(MOST_SHOWN).to_list()
    levels = {plan.tree.name_of(one): one for one in off_the_chain(plan.tree)}
    return {levels[name]: [] for name in names}


def _sums(tree: Tree, levels: tuple[int, ...], codes: Codes, values: Int64) -> pl.DataFrame:
    """Return positive sums of leaves by levels: a column an axis, and the count."""
    cells = pl.DataFrame({
        f"axis {a}": axis.ancestors(level)[code]
        for a, (axis, level, code) in enumerate(zip(tree.axes, levels, codes, strict=True))
    })  # fmt: skip
    frame = cells.with_columns(pl.Series(COUNT, values))
    return frame.group_by(cells.columns).agg(pl.col(COUNT).sum())


def _errors_of_sums(released: pl.DataFrame, truth: pl.DataFrame) -> pl.DataFrame:
    """Return the error of each sum that either side holds."""
    both = released.join(
        truth, on=released.columns[:-1], how="full", suffix="_true", coalesce=True
    ).fill_null(0)
    return both.select(*released.columns[:-1], error=pl.col(COUNT) - pl.col(f"{COUNT}_true"))


def _by_cuboid(
    tree: Tree, sums: dict[tuple[int, ...], list[pl.DataFrame]], runs: int
) -> pl.DataFrame:
    """Return the errors of all runs, a row a cuboid; sums that a run does not list are exact."""
    rows = []
    for levels, frames in sums.items():
        every = pl.concat(frames)
        cells = math.prod(axis.size(k) for axis, k in zip(tree.axes, levels, strict=True))
        mean = every.group_by(every.columns[:-1]).agg(pl.col("error").sum() / runs)["error"]
        square = every.select((pl.col("error").cast(pl.Float64) ** 2).sum()).item()
        ends = (max(mean.max() or 0.0, 0.0), min(mean.min() or 0.0, 0.0))
        rows.append((tree.name_of(levels), float(cells), math.sqrt(square / cells / runs), *ends))
    return pl.DataFrame(rows, schema=SUMS_SCHEMA, orient="row")


def _means(errors: list[pl.DataFrame], runs: int) -> pl.DataFrame:
    """Return the mean errors of all runs, a row a cuboid."""
    every = pl.concat(errors).with_columns((pl.col("rmse") ** 2).alias("mse"))
    keys = [name for name in ("depth", "cuboid", "cells") if name in every.columns]
    return every.group_by(keys, maintain_order=True).agg(
        pl.col("mse").mean().sqrt().alias("rmse"),
        (pl.col("mse").std() / (2 * pl.col("mse").mean().sqrt() * math.sqrt(runs)))
        .fill_nan(0.0)
        .alias("rmse_error"),
        *(pl.col(name).mean() for name in METRICS[1:]),
        *((pl.col(name).std() / math.sqrt(runs)).alias(f"{name}_error") for name in METRICS[1:]),
    )


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
        ("", row["cuboid"], f"{row['cells']:,.0f}", f"{row['rmse']:,.4g}",
         f"{row['highest']:+,.0f}", f"{row['lowest']:+,.0f}")
        for row in sums.iter_rows(named=True)
    ]  # fmt: skip
