"""The page of `hedgerow plan --page`."""

from pathlib import Path

import polars as pl

from hedgerow import __version__
from hedgerow.cli.output_file import check_place, whole_file
from hedgerow.cli.terminal import stage
from hedgerow.errors import PlanError
from hedgerow.plan.forecast import forecast
from hedgerow.plan.page.page import Simulated, planning_page
from hedgerow.plan.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.records import Standing
from hedgerow.spec.release_spec import ReleaseSpec


def check_page_options(page: Path | None, *, ledger: bool) -> None:
    """Raise a PlanError unless the page can be written where it is to be, and is asked for."""
    if page is not None:
        check_place(page, suffixes=(".html",), option="--page")
    elif ledger:
        raise PlanError("--ledger goes with --page, which shows what is left of the account")


def write_page(
    path: Path | None,
    spec: ReleaseSpec,
    made: Plan,
    simulated: pl.DataFrame | None,
    *,
    runs: int,
    ledger: bool,
) -> None:
    """Write the planning page of a release file, if it is asked for."""
    if path is None:
        return
    standing = _standing(spec, made) if ledger else None
    trial = None if simulated is None else _trial(made, simulated, runs)
    with stage("computing the page"):
        text = planning_page(made, __version__, standing=standing, simulated=trial)
    with whole_file(path) as file:
        file.write(text.encode())


def _standing(spec: ReleaseSpec, made: Plan) -> Standing:
    """Return where the account of the release file stands."""
    account_of = Ledger(spec.ledger_path)
    return account_of.standing(account_of.account(spec.dataset, made.protection))


def _trial(made: Plan, simulated: pl.DataFrame, runs: int) -> Simulated:
    """Return what came out of simulated releases, with what was expected."""
    expected = dict(forecast(made).select("cuboid", "rmse").iter_rows())
    names = simulated["cuboid"].to_list()
    return Simulated(
        tuple(names),
        tuple(expected.get(name) for name in names),
        tuple(simulated["rmse"].to_list()),
        runs,
    )
