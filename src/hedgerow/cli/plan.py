"""The command `plan`: what a release will measure, its promise and its expected error."""

import json
import sys
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Annotated

import polars as pl
from typer import Option

from hedgerow.cli.areas import AreaCodes, AreaColumn, AreaNames, AreaOptions, Areas
from hedgerow.cli.output_file import (
    Beside,
    ByLevels,
    Picture,
    ReleaseFile,
    Wide,
    check_options,
    check_picture_place,
    check_place,
    levels_by,
)
from hedgerow.cli.planning_page import write_page
from hedgerow.cli.terminal import (
    bar,
    escape,
    say,
    say_files,
    show_heading,
    show_levels,
    stage,
    stdout,
    warn,
    with_names,
)
from hedgerow.columns import aligned
from hedgerow.declared import Whole
from hedgerow.distribution.plan import alternative_plan, mean_cut_variance, places_of
from hedgerow.errors import PlanError, SpecError
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.forecast import HEADINGS as SIMULATED_HEADINGS
from hedgerow.evaluate.forecast import (
    SUMS_HEADINGS,
    simulated_releases,
    simulated_rows,
    sums_rows,
)
from hedgerow.evaluate.metrics import headings_of
from hedgerow.kernels import core_count
from hedgerow.plan.allocation.fairness import fairness
from hedgerow.plan.cost import expected_cost, sums_off_the_chain, sums_text
from hedgerow.plan.criteria.least import least_budget, planned_at
from hedgerow.plan.criteria.verdict import Verdict, verdicts
from hedgerow.plan.cuboids import All, Survivors
from hedgerow.plan.forecast import (
    forecast,
    forecast_legend,
    forecast_matrix,
    forecast_table,
    shares_are_relative,
)
from hedgerow.plan.picture import picture_of_forecast
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import weakness
from hedgerow.release.answers.questions import area_forecast
from hedgerow.release.answers.sums import Sums
from hedgerow.release.directory.measurements import ERROR_OF_ESTIMATE
from hedgerow.release.preflight import check_estimator
from hedgerow.spec.allocation import budget_lines, privacy_lines, release_file_lines
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.text import visible

MOST_AREAS = 20
"""Areas that a terminal lists."""

RECORDS = Whole("--records", 0, 10**18, PlanError, ends="[]")

Records = Annotated[
    int | None,
    Option(metavar="N", help="Estimate time, memory and disk for N records (public, or a bound)."),
]


def plan(  # noqa: PLR0913, PLR0917 - the options of a command
    file: ReleaseFile,
    as_json: Annotated[bool, Option("--json", help="Print the plan as JSON.")] = False,
    picture: Picture = None,
    simulate: Annotated[
        int, Option(metavar="RUNS", help="Also simulate releases of the public prior.")
    ] = 0,
    fair: Annotated[
        bool, Option("--fairness", help="Show how precision depends on family sizes.")
    ] = False,
    records: Records = None,
    target_mse: Annotated[
        str | None,
        Option(
            metavar="MSE", help="Find the least budget whose weighted squared error is at most MSE."
        ),
    ] = None,
    accept: Annotated[
        bool,
        Option("--accept", help="Find the least budget whose estimates keep all of [[accept]]."),
        Beside(("target_mse",), "--accept and --target-mse each find a budget; give one of them"),
    ] = False,
    areas: Areas = None,
    area_column: AreaColumn = None,
    area_names: AreaNames = None,
    area_codes: AreaCodes = None,
    by: Annotated[
        ByLevels,
        Beside(
            ("areas",),
            "--by goes with --areas, whose sums it divides; plan shows all cuboids",
            needed=True,
        ),
    ] = None,
    page: Annotated[
        Path | None,
        Option(help="Write an HTML page for choosing the budget, from public facts alone."),
    ] = None,
    ledger: Annotated[
        bool,
        Option(
            "--ledger",
            help="Show on the page what the account has left; marks the page internal.",
        ),
        Beside(
            ("page",),
            "--ledger goes with --page, which shows what is left of the account",
            needed=True,
        ),
    ] = False,
    wide: Wide = False,
) -> None:
    """Show what a release measures, its errors and its promise.

    Reads the public lists of areas and no confidential table (unless the file says
    areas = "table").
    """
    check_options(plan, locals())
    check_picture_place(picture, PlanError)
    of_areas = AreaOptions(areas, area_column, area_names, area_codes or ())
    if page is not None:
        check_place(page, suffixes=(".html",), option="--page")
    if records is not None:
        RECORDS(records)
    spec = ReleaseSpec(file)
    if target_mse is not None:
        spec.check_target(target_mse)
    estimator = spec.estimator
    made = _made(spec, target_mse, accept=accept)
    warn_of(made, spec)
    check_estimator(estimator, made)
    made.design.rehearse()
    expected = forecast(made)
    sums = sums_off_the_chain(made, expected)
    lookup = of_areas.lookup(made.tree)
    more = {} if lookup is None else {"areas": _of_areas(made, lookup, by or [])}
    if simulate:
        more["simulated"], more["simulated_sums"] = _simulated(spec, made, simulate)
    if picture is not None:
        picture_of_forecast(made, picture, expected)
    write_page(page, spec, made, runs=simulate, ledger=ledger)
    judged = _judged(made, estimator)
    if as_json:
        shown = {"fairness": fairness(made)} if fair else {}
        _write_json(made, judged, {"forecast": expected, "sums": sums, **shown, **more})
        return
    show_plan(made, expected, wide=wide)
    _show_criteria(made, judged, is_least=accept)
    _show_more(made, sums, more, wide=wide)
    for sentence in [] if lookup is None else lookup.notes(made.tree):
        say(sentence)
    if fair:
        _show_fairness(made, wide=wide)
    _show_cost(made, records)
    say_files({"Picture": picture, "Page": page})
    _show_next(file, None if target_mse is None and not accept else made, accept=accept)


def _made(spec: ReleaseSpec, target_mse: str | None, *, accept: bool) -> Plan:
    """Return the plan of a release file, or the one of least budget."""
    with stage("reading the lists of areas"):
        tree = spec.tree()
        made = spec.plan(tree) if target_mse is None else spec.cheapest(tree, target_mse)
    if not accept:
        return made
    with stage("seeking the least budget"):
        return planned_at(made, least_budget(made))


def _judged(made: Plan, estimator: Estimator) -> Sequence[Verdict]:
    """Return whether each criterion is kept, if there are any."""
    if not made.accept:
        return ()
    with stage("judging the criteria"):
        return verdicts(made, estimator=estimator)


def _write_json(made: Plan, judged: Sequence[Verdict], frames: Mapping[str, pl.DataFrame]) -> None:
    facts = {**made.to_dict(), "sha256": made.hash, "promise": str(made.promise)}
    facts |= {"chosen": made.choices, "efficiency": made.efficiency.to_dict()}
    near = made.optimum
    facts["optimum"] = near and {"gap": near.gap, "words": str(near)}
    facts["settled"] = made.design.by_settler
    facts |= {name: frame.to_dicts() for name, frame in frames.items()}
    facts["verdicts"] = [verdict.to_dict() for verdict in judged]
    sys.stdout.write(json.dumps(facts, indent=2) + "\n")


def _show_criteria(made: Plan, judged: Sequence[Verdict], *, is_least: bool) -> None:
    """Print of each criterion whether it is kept, and the least budget that keeps all."""
    for number, verdict in enumerate(judged, start=1):
        say(f"Criterion {number}: {verdict.criterion!r}. {verdict.sentence}\n")
    if any(verdict.reach is None for verdict in judged):
        say("There is no least budget, as none is known to keep every criterion.\n")
    elif judged and not is_least:
        try:
            with stage("seeking the least budget"):
                budget = least_budget(made)
            keys = budget_lines(budget).replace("\n", ", ")
            say(f"The least budget at which estimates keep every criterion: {keys} (--accept)\n")
        except PlanError as reason:
            say(f"There is no least budget that keeps every criterion: {reason}\n")


def _show_more(
    made: Plan, sums: pl.DataFrame, more: Mapping[str, pl.DataFrame], *, wide: bool
) -> None:
    """Print sums off the chain, and what was asked for beside the forecast."""
    everything = not isinstance(made.measure, Survivors)
    if text := sums_text(sums, everything=everything, wide=wide):
        say(f"{text}\n")
    if "areas" in more:
        # print the standard errors of some areas, the largest first
        of_areas = more["areas"]
        worst = of_areas.sort(ERROR_OF_ESTIMATE, descending=True, maintain_order=True).head(
            MOST_AREAS
        )
        rows = [
            (*(visible(str(label or "")) for label in labels), f"{error:,.4g}")
            for *labels, error in worst.iter_rows()
        ]
        stdout.print(
            f"Estimates of {len(of_areas):,} sums over areas, in records; the least certain "
            f"{len(worst):,} of them (all with --json):\n"
        )
        words = (
            *map(visible, of_areas.columns[:-1]),
            "standard error of the estimate",
        )
        say(f"{aligned([words, *rows], left=range(len(words) - 1), wide=wide)}\n")
    if "simulated" in more:
        errors = more["simulated"]
        others = more["simulated_sums"]
        stdout.print("Error of simulated releases of the public prior (± its Monte Carlo error):\n")
        headings = headings_of(errors, SIMULATED_HEADINGS)
        say(f"{aligned([headings, *simulated_rows(errors)], wide=wide)}\n")
        if len(others):
            stdout.print("The same for sums that are not a depth of the tree, the worst first:\n")
            say(f"{aligned([SUMS_HEADINGS, *sums_rows(others)], wide=wide)}\n")


def _show_next(file: Path, sought: Plan | None, *, accept: bool) -> None:
    """Print the next command, and of a plan that was sought the lines to write into the file."""
    release = f"[bold]hedgerow release {escape(file)}[/bold]"
    if sought is None:
        stdout.print(f"Next: {release}")
        return
    own = "budget" if accept else "budget and shares"
    lines = privacy_lines(sought.budget) if accept else release_file_lines(sought)
    say(f"{file} has its own {own}. For this plan write into it:\n\n{lines}\n")
    stdout.print(f"Then: {release} --expect-plan {sought.hash}")


def _show_cost(made: Plan, records: int | None) -> None:
    """Print where the tree is cut, and the expected time, memory and disk."""
    if (cut := made.design.cut_at) is not None and (depth := made.design.depth_of(cut)) is not None:
        say(
            f"The tree is cut into subtrees at depth {depth} ({made.tree.name_of(cut)}), on one "
            f"machine or many.\n"
        )
    if records is None and isinstance(made.measure, Survivors):
        stdout.print(
            "For the expected time, memory and disk give the number of records: --records N\n"
        )
        return
    bound = made.design.open_cells(made.tree.finest) if records is None else records
    cost = expected_cost(made, bound, core_count()).describe()
    is_assumed = records is None and bound >= 1_000_000  # fewer hardly matter
    assumed = f" For {bound:,} records; --records N if others." if is_assumed else ""
    stdout.print(f"{cost}{assumed}\n")


def warn_of(made: Plan, spec: ReleaseSpec) -> None:
    """Warn on standard error of a budget that is hardly intended, and of what nobody compared."""
    for said in (weakness(made.budget), spec.table.not_compared):
        if said is not None:
            warn(said)


def show_plan(made: Plan, expected: pl.DataFrame | None = None, *, wide: bool) -> None:
    """Print what is measured, the error to expect, the promise and its price."""
    frame = forecast(made) if expected is None else expected
    stdout.print("")
    show_heading(made)
    say(f"{forecast_table(frame, wide=wide)}\n\n{forecast_legend(made, frame)}\n")
    show_levels(made, wide=wide)
    if matrix := forecast_matrix(made, frame, wide=wide):
        say(f"{matrix}\n")
    if len(made.tables) > 1:
        names = "; ".join(map(made.tree.name_of, made.tables))
        say(
            f"{len(made.tables)} tables are released: {names}. They agree on all that "
            "they have in common, and no joint table is made.\n"
        )
    if made.price_of_a_share > 1:
        say(f"{shares_are_relative(made.price_of_a_share)}\n")
    if told := cut_errors(made):
        say(f"{told}\n")
    if chosen := " ".join(made.choices.values()):
        say(f"{chosen}\n")
    say(f"{made.efficiency.text(wide=wide)}\n")
    if made.optimum is not None:
        say(f"{made.optimum}\n")
    say(f"{made.promise}\n\n{made.promise.attacker}\n")
    if made.facts:
        say(f"{made.public_facts}\n")
    prices = made.guarantee.prices(made.deltas, made.promise.epsilon)
    say(aligned(prices, left=(0,), wide=wide))
    if made.saved is not None:
        method = "exact accounting" if made.guarantee.is_exact else "a tight bound"
        stdout.print(f"Noise variance saved by {method}: {float(made.saved):.1%}")
    stdout.print(f"\nplan {made.hash}\n")


def cut_errors(made: Plan) -> str:
    """Return how far off counts below an edge are, and what the alternative would give."""
    tree = made.tree
    place = places_of(tree)
    is_known = made.is_chain and not isinstance(made.measure, Survivors)
    if place is None or not is_known or made.public_depth > place:
        return ""
    of_place = f", in one {tree.cuboid_name(place)}" if place else ""
    error = mean_cut_variance(made) ** 0.5
    if error == inf:  # of too many different subtrees
        return ""
    told = f"The count of values below an edge{of_place}: RMSE {error:,.4g} records, unrounded"
    other = alternative_plan(made)
    if other is None or (value := mean_cut_variance(other) ** 0.5) == inf:
        return f"{told}."
    told = f'{told}; {value:,.4g} with measure = "{other.measure.name}"'
    if made.public_depth == place:
        return f"{told}."
    beside = "no count above the bins"
    if isinstance(other.measure, All):
        beside = "counts of all levels above, too"
    return f"{told}, which measures {beside}."


def _simulated(spec: ReleaseSpec, made: Plan, runs: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the errors of simulated releases of the public prior, and of sums off the chain."""
    prior = spec.allocation.prior(made.tree)
    if prior is None:
        raise SpecError('--simulate needs a public prior: prior = {source = "…", public = true}')
    with stage(f"simulating {runs} releases of the prior"):
        return simulated_releases(made, prior, spec.estimator, runs=runs)


def _of_areas(made: Plan, lookup: Lookup, by: Sequence[str]) -> pl.DataFrame:
    """Return the standard errors that sums over areas of the user's own will have."""
    sums = Sums(made, levels_by(made.tree, by), lookup)
    with bar("errors of the areas") as progress:
        errors = area_forecast(sums, progress.on_fraction)
    return with_names(made.tree, errors, lookup)


def _show_fairness(made: Plan, *, wide: bool) -> None:
    """Print whose counts vary most beside the least variable ones of their cuboid."""
    every = fairness(made)
    by = "cuboid" if every["depth"].null_count() else "the number of siblings"
    stdout.print(f"Variance of counts by {by} (large counts, before rounding):\n")
    frame = every.filter(pl.col("ratio") > 1).sort("ratio", descending=True).head(12)
    rows = [
        (cuboid, f"{siblings:,}" if siblings else "", f"{sd:.4g}", f"{ratio:.4f}")
        for cuboid, siblings, sd, ratio in frame.select("cuboid", "siblings", "sd", "ratio").rows()
    ]
    same = "All counts of a cuboid have the same variance."
    headings = "cuboid", "siblings", "sd", "ratio"
    say(aligned([headings, *rows], left=(0,), wide=wide) if rows else same)
    stdout.print("")
