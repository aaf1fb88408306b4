"""What people see: results on standard output, progress on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import polars as pl
from rich import markup
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hedgerow.plan.describe import aligned
from hedgerow.release.descent.jobs import Progress as PassProgress
from hedgerow.tables.counts import Counts
from hedgerow.tables.ordered import LARGEST_LEAF
from hedgerow.text import visible

# How much a release has done by depth: for the terminal alone, never for a file.
#
# The numbers of cells and survivors are confidential until the release appears, and how long the
# work took is so for ever: both tell of the table.

HEADINGS = ("depth", "cells", "survivors", "core seconds")


@dataclass(slots=True)
class Tally:
    """Sums by depth of what `hedgerow.release.descent.jobs.Progress.on_depth` is told."""

    work: dict[int, tuple[int, int, float]] = field(default_factory=dict)

    def on_depth(self, depth: int, cells: int, survivors: int, seconds: float) -> None:
        """Add what was found at a depth."""
        before = self.work.get(depth, (0, 0, 0.0))
        self.work[depth] = before[0] + cells, before[1] + survivors, before[2] + seconds

    def rows(self) -> list[tuple[str, ...]]:
        """Return one row a depth: `HEADINGS` in words."""
        return [
            (str(depth), f"{cells:,}", f"{survivors:,}", f"{seconds:,.1f}")
            for depth, (cells, survivors, seconds) in sorted(self.work.items())
        ]


PLAIN = "hedgerow.plain"
LETTERS = {
    "ε": "epsilon", "δ": "delta", "ρ": "rho", "σ": "sigma", "τ": "tau", "α": "alpha",
    "²": "^2", "√": "sqrt ", "±": "+-", "×": "x", "≤": "<=", "≥": ">=", "−": "-", "–": "-",
    "…": "...", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
"""What a terminal or file without these letters is written in their place."""


def in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Return the handler `PLAIN` of `codecs`: `LETTERS`, and escapes for others.

    With ``?`` for ε, δ and ρ alike nobody would know what was promised, nor codes apart.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    escaped = (LETTERS.get(x) or x.encode("ascii", "backslashreplace").decode() for x in letters)
    return "".join(escaped), error.end


stdout = Console(soft_wrap=True, highlight=False)
stderr = Console(stderr=True, soft_wrap=True, highlight=False)


def escape(text: str) -> str:
    """Lines of text as they are, without markup, and with escapes for what is not seen."""
    return markup.escape(visible(text, lines=True))


def on_terminal() -> bool:
    """Return whether a person sees it: FORCE_COLOR makes a log look like a terminal to rich."""
    return stderr.is_terminal and sys.stderr.isatty()


def kept(counts: Counts) -> str | None:
    """How many records the bound of contributions kept: confidential; None where there is none."""
    if counts.before is None:
        return None
    return (
        f"kept {counts.total:,} of {counts.before:,} records (contributions at most "
        f"{counts.contributions:,} a unit; confidential, shown here only)"
    )


def not_stated(counts: Counts) -> list[tuple[str, str]]:
    """How many records each axis counts as not stated, who has that code apart from who has none.

    Nothing refuses a code that lost its zeros where there is such a leaf.

    Returns:
        Of each such axis the sentence that is confidential, and the one that is not.
    """
    said = []
    unlisted = counts.unlisted or (None,) * len(counts.codes)
    for axis, codes, mapped in zip(counts.tree.axes, counts.codes, unlisted, strict=True):
        if axis.not_stated is None or mapped is None:
            continue
        leaf = (axis.labels[-1] == axis.not_stated).arg_max()
        there = int(counts.values[codes == leaf].sum())
        counted = f"counted as {axis.not_stated!r}"
        confidential = (
            f"axis {axis.name!r}: {there:,} of {counts.total:,} records are {counted} "
            f"(not_stated): {there - mapped:,} have that code themselves, {mapped:,} have a code "
            f"that is not in the list, or none (confidential, shown here only)"
        )
        rule = (
            f"axis {axis.name!r}: records that are not in the list are {counted}; how many is "
            f"confidential: hedgerow compare shows it"
        )
        said.append((confidential, rule))
    return said


def moved(counts: Counts) -> list[tuple[str, str]]:
    """Return how many values of numeric axes were moved to a bound, as in `not_stated`."""
    said = []
    for name, number in counts.moved:
        confidential = (
            f"axis {name!r}: {number:,} of {counts.total:,} values lie outside the bounds and are "
            f"counted in the bin beside them (confidential, shown here only)"
        )
        rule = (
            f"axis {name!r}: values outside the bounds are counted in the bin beside them; how "
            f"many is confidential: hedgerow compare shows it"
        )
        said.append((confidential, rule))
    return said


def tell_read(counts: Counts) -> None:
    """Say on a terminal what reading did to records; in a log, where that can be read."""
    told_apart = not_stated(counts) + moved(counts)
    if sys.stderr.isatty() and (counts.values >= LARGEST_LEAF).any():
        cut = "a cell has 2**40 records or more, and no more of them are counted (confidential)"
        told_apart.append((cut, cut))
    sentence = kept(counts)
    if sentence is not None:
        rule = (
            f"contributions at most {counts.contributions:,} a unit; how many records that keeps "
            f"is confidential: hedgerow compare shows it"
        )
        told_apart.insert(0, (sentence, rule))
    for confidential, public in told_apart:
        stderr.print(escape(confidential if sys.stderr.isatty() else public))


def warn_of_contradictions(flags: pl.Series, astray: int | None = None) -> None:
    """Say how many counts of a table are no numbers to quote, and what to do.

    Args:
        flags: the column ``contradicted`` of `hedgerow.release.release.Release.level`.
        astray: how many counts lie outside their own interval.
    """
    if flags.null_count():
        stderr.print(
            "Note: survivors alone were measured, so these sums have no unbiased estimate, and "
            "nothing says which of them have grown because counts are kept from falling below 0; "
            'measure = "all" does'
        )
        return
    if not flags.any():
        return
    own = (
        ""
        if astray is None
        else f" ({astray:,} lie outside their own 95 % interval; chance explains about "
        f"{0.05 * len(flags):,.0f}.)"
    )
    stderr.print(
        f"[yellow]Warning:[/yellow] {flags.sum():,} of {len(flags):,} counts are contradicted by "
        f"their own measurements: they lie outside the intervals that hold for all counts of the "
        f"table at once with 95 %.{own} Counts may not fall below 0 and must add up to those above "
        f"them, which moved these by more than noise explains. There, take the unbiased estimate; "
        f"or plan a release whose tree comes to these levels first."
    )


@contextmanager
def stage(what: str) -> Iterator[None]:
    """Return a spinner on a terminal, a plain line elsewhere."""
    if on_terminal():
        with stderr.status(what):
            yield
    else:
        stderr.print(what)
        yield


@contextmanager
def bar(what: str) -> Iterator[PassProgress]:
    """On a terminal a bar with rate and time left, and then what was done at each depth.

    Elsewhere a plain line: how much was done tells of the table, and logs may be published.
    """
    if not on_terminal():
        stderr.print(what)
        yield PassProgress()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr) as progress:
        task = progress.add_task(what, total=1.0, rate="")
        cells = 0

        def on_cells(more: int) -> None:
            nonlocal cells
            cells += more
            elapsed = progress.tasks[0].elapsed or 0.0
            if elapsed > 0:
                progress.update(task, rate=f"{cells / elapsed / 1e6:,.1f} M cells/s")

        tally = Tally()
        yield PassProgress(
            on_cells,
            lambda fraction: progress.update(task, completed=fraction),
            tally.on_depth,
        )
    if tally.work:
        stderr.print(f"\n{aligned([HEADINGS, *tally.rows()])}")
