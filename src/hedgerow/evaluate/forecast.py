"""The error to expect of a plan, by releasing a public prior under it again and again."""

import math

import polars as pl

from hedgerow.errors import PlanError
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.metrics import error_of_nodes
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.release.refusals import check_combines
from hedgerow.release.results import gathered
from hedgerow.release.source import Drawn
from hedgerow.release.summed import pass_of
from hedgerow.tables.counts import Counts

HEADINGS = ("depth", "cuboid", "RMSE", "MAE", "max error", "false positives", "false negatives")
METRICS = ("rmse", "mae", "max_error", "false_discovery_rate", "false_negative_rate")


def simulated_errors(
    plan: Plan, prior: Prior, estimator: Estimator, *, runs: int, seed: int = 0
) -> pl.DataFrame:
    """For each depth the errors of simulated releases of a public table, and how sure they are.

    The noise of each depth is the plan's; the areas are the table's own, so its sums run over
    them.

    Args:
        plan: what would be measured with which noise.
        prior: a table that is declared public and whose tree has the same levels.
        estimator: of the release.
        runs: how many releases to simulate, at least 2.
        seed: of the first; nothing that is simulated may be published as a release.

    Returns:
        One row a depth: ``depth``, ``cuboid``, ``cells``, the metrics of `error_of_nodes` (``rmse``
        is the root of the mean over runs of its square, the others are means over runs), and for
        each the Monte Carlo standard error, ``*_error``.

    Raises:
        PlanError: fewer than 2 runs, or a table whose levels differ from the plan's.
    """
    if runs < 2:
        raise PlanError(f"a simulation needs at least 2 runs, got {runs}")
    check_combines(estimator, plan)
    own = plan_over(plan, prior.counts)
    found = []
    for run in range(runs):
        source = Drawn(prior.counts, own, seeded_bits(seed + run))
        nodes, _ = gathered(pass_of(own, source, estimator).results())
        found.append(error_of_nodes(prior.counts, nodes))
    every = pl.concat(found).with_columns((pl.col("rmse") ** 2).alias("mse"))
    by_depth = every.group_by("depth", "cuboid", "cells", maintain_order=True).agg(
        pl.col("mse").mean().sqrt().alias("rmse"),
        (pl.col("mse").std() / (2 * pl.col("mse").mean().sqrt() * math.sqrt(runs)))
        .fill_nan(0.0)
        .alias("rmse_error"),
        *(pl.col(name).mean() for name in METRICS[1:]),
        *((pl.col(name).std() / math.sqrt(runs)).alias(f"{name}_error") for name in METRICS[1:]),
    )
    return by_depth.sort("depth")


def plan_over(plan: Plan, table: Counts) -> Plan:
    """The plan with the same noise over the tree of another table.

    Raises:
        PlanError: its levels differ.
    """
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
    base = 1 / (2 * rho) if isinstance(plan.budget, EpsilonDelta) and rho is not None else None
    return Plan(
        table.tree,
        plan.neighbours,
        plan.budget,
        plan.mechanism,
        plan.allocation,
        plan.shares,
        plan.invariants,
        plan.measure,
        base,
    )


def simulated_rows(errors: pl.DataFrame) -> list[tuple[str, ...]]:
    """The rows of `simulated_errors` in words, under `HEADINGS`."""
    return [
        (
            str(row["depth"]),
            row["cuboid"],
            *(f"{row[name]:,.4g} ± {row[f'{name}_error']:,.2g}" for name in METRICS[:3]),
            *(f"{row[name]:.1%} ± {row[f'{name}_error']:.1%}" for name in METRICS[3:]),
        )
        for row in errors.iter_rows(named=True)
    ]
