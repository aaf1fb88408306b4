"""The page of `hedgerow plan --page`."""

from pathlib import Path

from hedgerow import __version__
from hedgerow.cli.output_file import whole_file
from hedgerow.cli.terminal import stage
from hedgerow.evaluate.forecast import simulated_releases
from hedgerow.plan.page.page import Simulated, planning_page
from hedgerow.plan.page.points import plans_for_trials
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import value_of
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.spec.release_spec import ReleaseSpec

RUNS = 3
MOST_LISTED = 300_000
"""Counts of a prior that a few trials take some seconds for."""


def write_page(
    path: Path | None,
    spec: ReleaseSpec,
    made: Plan,
    *,
    runs: int,
    ledger: bool,
) -> None:
    """Write the planning page of a release file, if it is asked for."""
    if path is None:
        return
    standing = None
    if ledger:
        book = Ledger(spec.ledger_path)
        standing = book.standing(book.account(spec.dataset, made.protection))
    simulated = _trials(spec, made, runs)
    with stage("computing the page"):
        text = planning_page(
            made, __version__, standing=standing, simulated=simulated, estimator=spec.estimator
        )
    with whole_file(path) as file:
        file.write(text.encode())


def _trials(spec: ReleaseSpec, made: Plan, runs: int) -> Simulated | None:
    """Return what comes out where the public prior is released in trial, if there is one.

    Args:
        spec: of the release file.
        made: its plan.
        runs: releases of each budget; 0 for a few, and for none where the prior is large.
    """
    prior = None if made.prior is None else spec.allocation.prior(made.tree)
    if prior is None or (not runs and len(prior.counts.values) > MOST_LISTED):
        return None
    plans = plans_for_trials(made)
    each = []
    with stage("simulating releases of the prior"):
        for plan in plans:
            errors, _ = simulated_releases(plan, prior, spec.estimator, runs=runs or RUNS)
            rows = errors.select("cuboid", "rmse", "mae").iter_rows()
            each.append({name: (rmse, mae) for name, rmse, mae in rows})
    return Simulated(tuple(value_of(plan.budget) for plan in plans), tuple(each), runs or RUNS)
