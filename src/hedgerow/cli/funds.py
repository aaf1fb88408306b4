"""The command `funds`: share an amount by released counts, with intervals of what is due."""

from enum import StrEnum
from math import ceil
from pathlib import Path
from typing import Annotated

from typer import Option

from hedgerow.cli.output_file import (
    TABLES,
    Directory,
    QuoteFormulas,
    Wide,
    check_place,
    pairs,
    write_table,
)
from hedgerow.cli.terminal import say, say_files, stage, stdout, warn_of_contradictions, with_names
from hedgerow.columns import aligned
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.funds import Above, Logarithmic, Proportional, Quadratic, Rule, Seats
from hedgerow.evaluate.share_intervals import AMOUNT, DRAWS, SHARE, least_draws, share_intervals
from hedgerow.release.directory.measurements import CONTRADICTED, COUNT, ESTIMATE, HIGH, LOW
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.naming import label_columns
from hedgerow.release.release import read_release
from hedgerow.text import Texts, visible

MOST_SHOWN = 40
FIGURES = (COUNT, ESTIMATE, SHARE, AMOUNT, LOW, HIGH, CONTRADICTED)


class RuleName(StrEnum):
    """The rules by name."""

    PROPORTIONAL = "proportional"
    LOGARITHMIC = "logarithmic"
    QUADRATIC = "quadratic"
    ABOVE = "above"
    ABOVE_EQUALLY = "above-equally"
    SEATS = "seats"


def funds(  # noqa: PLR0913, PLR0917 - the options of a command
    directory: Directory,
    amount: Annotated[float, Option(help="The amount to share, or the number of seats.")],
    level: Annotated[
        str | None, Option(help="The level or cuboid whose areas share: county.")
    ] = None,
    by: Annotated[
        list[str] | None,
        Option(
            metavar="AXIS=LEVEL",
            help="The cuboid of one level of an axis; may be repeated for more axes.",
        ),
    ] = None,
    rule: Annotated[
        RuleName, Option(help="By which weight, above which count, or in whole seats.")
    ] = RuleName.PROPORTIONAL,
    threshold: Annotated[
        int | None, Option(help="For above: only areas with more records than this share.")
    ] = None,
    confidence: Annotated[float, Option(help="Confidence of each interval.")] = 0.95,
    output: Annotated[
        Path | None, Option(help="Write all areas into this file (CSV or Parquet).")
    ] = None,
    quote_formulas: QuoteFormulas = False,
    wide: Wide = False,
) -> None:
    """Share an amount by released counts, with intervals.

    They are of what each area is due by the true counts. Reads only the release directory, at no
    privacy cost.
    """
    chosen = _rule(rule, threshold)
    if output is not None:
        check_place(output, suffixes=TABLES)
    sure = Confidence(confidence)
    draws = max(DRAWS, ceil(4 / (1 - confidence)), least_draws(sure))
    chosen_levels = pairs(by or [], "--by", "origin=region")
    if (level is None) is not bool(chosen_levels):
        raise ReleaseError("name one cuboid: --level, or --by AXIS=LEVEL")
    with stage("sharing"), undamaged(directory):
        released = read_release(directory)
        tree = released.plan.tree
        label_columns(released.plan, chosen_levels)  # or an error that says which there are
        if level is None:
            level = tree.name_of(tree.cuboid_of(chosen_levels))
        frame = share_intervals(released, level, chosen, amount, sure, draws=draws)
    if output is not None:
        write_table(frame, output, quote_formulas=quote_formulas)
    whole = rule is RuleName.SEATS
    head = with_names(tree, frame.head(MOST_SHOWN))
    rows = [_row(row, whole=whole) for row in head.iter_rows(named=True)]
    total = f"{amount:,.2f}".removesuffix(".00")
    say(
        f"\n{total} shared by {level}, {rule.value}; {confidence:.0%} intervals of what is "
        "due by the true counts:\n"
    )
    rows = [tuple(map(visible, row)) for row in rows]  # labels come from the user's lists
    say(aligned([("area", *FIGURES), *rows], left=(0,), wide=wide))
    if len(frame) > MOST_SHOWN:
        stdout.print(f"\n{len(frame) - MOST_SHOWN:,} more areas; --output writes them all.")
    say_files({"\nAll areas": output})
    warn_of_contradictions(frame[CONTRADICTED])


def _rule(name: RuleName, threshold: int | None) -> Rule:
    by_count = name in {RuleName.ABOVE, RuleName.ABOVE_EQUALLY}
    if by_count and threshold is None:
        raise ReleaseError(f"--rule {name.value} needs --threshold, a number of records")
    if not by_count and threshold is not None:
        raise ReleaseError(f"--threshold is for --rule above, not for {name.value}")
    if threshold is not None:
        return Above(threshold, equally=name is RuleName.ABOVE_EQUALLY)
    rules: tuple[Rule, ...] = Proportional(), Logarithmic(), Quadratic(), Seats()
    return next(rule for rule in rules if rule.name == name.value)


def _row(row: dict[str, str | int | float], *, whole: bool) -> Texts:
    """Return a row in words; the area by its codes, coarsest first, and their names."""
    words = (value for name, value in row.items() if name not in FIGURES and value is not None)
    area = " ".join(map(str, words)) or "all"
    number = "{:,.0f}" if whole else "{:,.2f}"
    money = (number.format(row[name]) for name in (AMOUNT, LOW, HIGH))
    flag = "yes" if row[CONTRADICTED] else ""
    return (area, f"{row[COUNT]:,}", f"{row[ESTIMATE]:,.1f}", f"{row[SHARE]:.4%}", *money, flag)
