"""The commands on the cost of privacy: `account` and `ledger`."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer
from typer import Argument, Option

from hedgerow.cli.output_file import (
    Picture,
    ReleaseFile,
    Wide,
    check_picture_place,
    check_place,
    write_table,
)
from hedgerow.cli.terminal import escape, say, stage, stderr
from hedgerow.columns import aligned
from hedgerow.errors import BudgetError, SpecError
from hedgerow.noise.loss import InEpsilon
from hedgerow.plan.picture import picture_of_profile, title_of
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Epsilon, Rho, float_above
from hedgerow.privacy.calibrate import matching_factor
from hedgerow.privacy.ledger.ledger import Ledger, create_ledger
from hedgerow.privacy.ledger.records import ALL
from hedgerow.privacy.profile import DELTAS
from hedgerow.release.directory.manifest import MANIFEST, check_outside
from hedgerow.release.directory.stored import verified_release
from hedgerow.spec.other_file import read_account
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.text import format_rounded_up

LEDGER_HELP = "Keep the ledger of what releases of a dataset have cost."
ledgers = typer.Typer(help=LEDGER_HELP)
SIGNED_OFF = (
    "This holds if the plan is the one that was signed off: compare its hash. hedgerow check "
    "verifies, as far as files can show, that the counts were made with this noise."
)


def account(
    file: Annotated[
        Path, Argument(metavar="FILE", help="A TOML list of [[use]], or a release directory.")
    ],
    delta: Annotated[list[str] | None, Option(help="δ to state ε at; may be repeated.")] = None,
    match: Annotated[
        str | None,
        Option(help="bureau: the smaller σ² that keeps the ε of Bun & Steinke at --delta."),
    ] = None,
    csv: Annotated[
        Path | None, Option(help="Write ε and the bounds of δ(ε) into this file.")
    ] = None,
    picture: Picture = None,
    wide: Wide = False,
) -> None:
    """Show the exact privacy cost of mechanisms used together.

    Looser conversions stand beside it.
    """
    check_picture_place(picture, BudgetError)
    if csv is not None:
        check_place(csv, suffixes=(".csv",), option="--csv")
    plan = _plan_of_release(file)
    profile = read_account(file) if plan is None else plan.guarantee
    promise = profile if plan is None else plan.promise
    deltas = delta or (DELTAS if plan is None else plan.promise.deltas)
    stated = promise.statement(deltas[0])
    answer = attacker = ""
    if plan is not None:
        answer = f"{plan.promise.answer(deltas[0])}\n"
        attacker = f"{plan.promise.attacker}\n"
    parts = [
        answer,
        f"{stated}\n",
        attacker,
        aligned(profile.prices(deltas, promise.epsilon), left=(0,), wide=wide),
    ]
    if match is not None:
        # how much less noise keeps the ε of Bun & Steinke, in words and as a table
        at = deltas[0]
        if match != "bureau":
            raise SpecError(f"--match takes bureau, got {match!r}")
        factor = matching_factor(profile, at)
        own = profile.bureau_epsilon(at)
        less = f"{float(1 - factor):.2%} less variance (σ² times {float(factor)} exactly)"
        listed = [("", "uses", "σ²", "reduced σ²")]
        for use in profile.uses:
            whole = use.noise.parameter
            listed.append(
                ("", str(use.times), f"{float(whole):.2f}", f"{float(whole * factor):.2f}")
            )
        parts.append(
            f"\nThe Bureau's ε = {own:.4f} at δ = {at} takes {less}:\n{aligned(listed, wide=wide)}"
        )
    if plan is not None:
        parts.append(f"\nplan {plan.hash}\n{SIGNED_OFF}")
    for text in filter(None, parts):
        say(text)
    if csv is not None:
        rows = [(epsilon, *profile.delta_bounds(epsilon)) for epsilon in profile.epsilon_grid()]
        table = pl.DataFrame(rows, schema=["epsilon", "delta_low", "delta_high"], orient="row")
        write_table(table, csv)
        say(f"Table: {csv}")
    if picture is not None:
        title = "What the guarantee says"
        picture_of_profile(profile, picture, stated, title_of(plan, title) if plan else title)
        say(f"Picture: {picture}")


@ledgers.command("open")
def open_ledger(
    file: ReleaseFile,
    rho: Annotated[
        str | None, Option(help="The cap: all that releases of the dataset may cost, in ρ.")
    ] = None,
    epsilon: Annotated[
        str | None, Option(help="The cap in pure ε (discrete Laplace releases only).")
    ] = None,
) -> None:
    """Open the account that a release file names in [ledger].

    Its cap can never be changed.
    """
    spec = ReleaseSpec(file)
    path = spec.ledger_path
    if (rho is None) == (epsilon is None):
        raise SpecError("give the cap: --rho, or --epsilon for discrete Laplace releases only")
    if epsilon is not None and not isinstance(spec.mechanism.price, InEpsilon):
        raise SpecError(
            f"the file's releases have no pure ε (mechanism = {spec.mechanism.name!r}), so none "
            f"could be charged to a cap in ε, which can never be changed; give the cap with --rho"
        )
    check_outside(path, "[ledger] database")
    with stage("reading the lists of areas"):
        protection = spec.protection(spec.tree())
    cap = Rho(rho) if rho is not None else Epsilon(str(epsilon))
    ledger = Ledger(path) if path.exists() else create_ledger(path)
    account = ledger.open_account(spec.dataset, protection, cap)
    warn_of_other_accounts(ledger, {spec.dataset})
    say(f"{ledger.standing(account).describe()}\n{protection.describe(ALL)}")


@ledgers.command("show")
def show_ledger(
    database: Annotated[Path, Argument(metavar="DATABASE", help="A ledger.")],
    delta: Annotated[str, Option(help="δ to state the exact ε at.")] = "1e-10",
    wide: Wide = False,
) -> None:
    """Show all accounts of a ledger: charges, what is spent, what is left."""
    ledger = Ledger(database)
    accounts = ledger.accounts()
    warn_of_other_accounts(ledger, {account.dataset for account in accounts})
    for account in accounts:
        standing = ledger.standing(account)
        rows = [("release", "charged", "plan", standing.account.symbol)]
        for charge in standing.charges:
            cost = format_rounded_up(float_above(account.cost(charge.profile)))
            at = charge.at.isoformat(timespec="seconds")
            rows.append((charge.release_id[:12], at, charge.plan_hash[:12], cost))
        say(f"{standing.describe()}\n\n{aligned(rows, wide=wide)}\n")
        say(f"{standing.statement(delta)}\n")


def warn_of_other_accounts(ledger: Ledger, datasets: set[str]) -> None:
    """Note which datasets have several accounts in a ledger: none limits another."""
    opened = [account.dataset for account in ledger.accounts()]
    for dataset in sorted(name for name in datasets if opened.count(name) > 1):
        stderr.print(
            escape(
                f"Note: {dataset!r} has several accounts (other neighbours, or other public "
                f"facts); they do not limit each other, and their caps add."
            )
        )


def _plan_of_release(file: Path) -> Plan | None:
    """Return the verified plan of a release directory or its manifest; None of another file."""
    if file.is_dir():
        return verified_release(file).plan
    if file.name == MANIFEST:
        return verified_release(file.parent).plan
    if file.suffix == ".json":
        raise SpecError(
            f"account takes a release directory, or the {MANIFEST} in it, got {file.name!r}"
        )
    return None
