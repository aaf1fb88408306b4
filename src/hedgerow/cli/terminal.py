"""The terminal: results on standard output, progress and notes on standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
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

from hedgerow.columns import aligned
from hedgerow.errors import TableError
from hedgerow.limits import LARGEST_LEAF
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import Progress as PassProgress
from hedgerow.tables.counts import Counts
from hedgerow.tables.lists.lookup import Lookup
from hedgerow.tables.tree import Tree
from hedgerow.text import Rows, visible

# The numbers of cells and survivors are confidential until the release appears, and timings always:
# they go to a terminal alone, never to a file.

HEADINGS = ("cuboid", "cells", "survivors", "core seconds")


@dataclass(slots=True)
class Tally:
    """Sums by cuboid of the reports to `hedgerow.release.descent.jobs.Progress.on_cuboid`.

    Attributes:
        work: by the cuboid's name, coarse to fine: cells, survivors and seconds.
    """

    work: dict[str, tuple[int, int, float]] = field(default_factory=dict)

    def on_cuboid(self, name: str, cells: int, survivors: int, seconds: float) -> None:
        """Add a report of a cuboid."""
        before = self.work.get(name, (0, 0, 0.0))
        self.work[name] = before[0] + cells, before[1] + survivors, before[2] + seconds

    def rows(self) -> Rows:
        """Return one row a cuboid: `HEADINGS` in words."""
        return [
            (name, f"{cells:,}", f"{survivors:,}", f"{seconds:,.1f}")
            for name, (cells, survivors, seconds) in self.work.items()
        ]


PLAIN = "hedgerow.plain"
LETTERS = {
    "ε": "epsilon", "δ": "delta", "ρ": "rho", "σ": "sigma", "τ": "tau", "α": "alpha",
    "²": "^2", "√": "sqrt ", "±": "+-", "×": "x", "≤": "<=", "≥": ">=", "−": "-", "–": "-",
    "…": "...", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
"""Replacements for a terminal or file that lacks these letters."""


def in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    """Handle the error `PLAIN` of `codecs`: write `LETTERS`, and escapes for others.

    A ``?`` for each would make ε, δ and ρ, and different codes, look alike.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    escaped = (LETTERS.get(x) or x.encode("ascii", "backslashreplace").decode() for x in letters)
    return "".join(escaped), error.end


stdout = Console(soft_wrap=True, highlight=False)
stderr = Console(stderr=True, soft_wrap=True, highlight=False)


def escape(text: object) -> str:
    """Return lines of text, or a path, without markup; invisible characters as escapes."""
    return markup.escape(visible(str(text), lines=True))


def say(text: str) -> None:
    """Print lines of text on standard output as they are."""
    stdout.print(escape(text))


def warn(sentence: str) -> None:
    """Print a warning on standard error."""
    stderr.print(f"[yellow]Warning:[/yellow] {escape(sentence)}")


def say_files(written: Mapping[str, Path | None]) -> None:
    """Print where files were written, of those that were asked for."""
    for kind, path in written.items():
        if path is not None:
            say(f"{kind}: {path}")


def on_terminal() -> bool:
    """Return whether standard error is a terminal, whatever FORCE_COLOR tells rich."""
    return stderr.is_terminal and sys.stderr.isatty()


def kept(counts: Counts) -> str | None:
    """Return how many records the bound of contributions kept (confidential), or None."""
    if counts.before is None:
        return None
    return (
        f"kept {counts.total:,} of {counts.before:,} records (at most {counts.contributions:,} "
        f"contributions a unit; confidential, shown only here)"
    )


Note = tuple[str, str]
"""A confidential sentence for a terminal, and the one for a log."""
COMPARE = "how many they are is confidential: hedgerow compare shows it"


def not_stated(counts: Counts) -> list[Note]:
    """Return for each axis how many records are counted as not stated, and why.

    Codes that lost their leading zeros end there unnoticed, so records that have the code
    themselves are counted apart from those that are not in the list.
    """
    notes = []
    unlisted = counts.unlisted or (None,) * len(counts.codes)
    for axis, codes, mapped in zip(counts.tree.axes, counts.codes, unlisted, strict=True):
        if axis.not_stated is None or mapped is None:
            continue
        total = int(counts.values[np.isin(codes, axis.not_stated_leaves)].sum())
        counted = f"counted as {axis.not_stated!r}"
        that = "that code" if axis.not_stated_by_parent is None else "such a code"
        confidential = (
            f"axis {axis.name!r}: {total:,} of {counts.total:,} records are {counted} "
            f"(not_stated): {total - mapped:,} have {that}, {mapped:,} have a code that is not "
            f"in the list, or none (confidential, shown only here)"
        )
        rule = f"axis {axis.name!r}: records that are not in the list are {counted}; {COMPARE}"
        notes.append((confidential, rule))
    return notes


def moved(counts: Counts) -> list[Note]:
    """Return for each numeric axis how many values were moved to a bound."""
    return [
        (
            (
                f"axis {name!r}: {number:,} of {counts.total:,} values outside the bounds are "
                f"counted in the outermost bins (confidential, shown only here)"
            ),
            (
                f"axis {name!r}: values outside the bounds are counted in the outermost bins; "
                f"{COMPARE}"
            ),
        )
        for name, number in counts.moved
    ]


def report_reading(counts: Counts) -> None:
    """Print what reading changed: numbers on a terminal, only the rules in a log."""
    notes = not_stated(counts) + moved(counts)
    if sys.stderr.isatty() and (counts.values >= LARGEST_LEAF).any():
        cut = "a cell has 2**40 records or more and is counted as 2**40 (confidential)"
        notes.append((cut, cut))
    sentence = kept(counts)
    if sentence is not None:
        kept_of_each = f"of each unit at most {counts.contributions:,} records are kept"
        rule = f"{kept_of_each}, any others left out; {COMPARE}"
        notes.insert(0, (sentence, rule))
    for confidential, public in notes:
        stderr.print(escape(confidential if sys.stderr.isatty() else public))


COPIED = (
    "If it was made from the table, the promise does not hold: do not publish what was made with it"
)


def warn_of_copies(find: Callable[[], Iterable[str]]) -> None:
    """Warn on a terminal of public files that say what the confidential table does.

    Elsewhere nothing is compared, so that nothing can depend on it. On a
    terminal a comparison that fails changes nothing either.
    """
    if not sys.stderr.isatty():
        return
    try:
        for clause in find():
            warn(f"{clause} (confidential, shown only here). {COPIED}.")
    except Exception as error:  # noqa: BLE001 - a release that was made is made
        stderr.print(f"Note: public files were not compared with the table: {type(error).__name__}")


def warn_of_contradictions(flags: pl.Series, astray: int | None = None) -> None:
    """Warn of counts that their own measurements contradict.

    Args:
        flags: the column ``contradicted`` of `hedgerow.release.release.Release.level`.
        astray: how many counts lie outside their own interval.
    """
    if many := flags.null_count():
        note = (
            f"Note: {many:,} of {len(flags):,} sums have neither estimate nor interval: too much "
            "of them may lie below counts released as 0, where survivors alone were measured. "
            'A plan that names these sums in [workload], or measure = "all", measures them.'
        )
        stderr.print(escape(note))
    if not flags.any():
        return
    own = (
        ""
        if astray is None
        else f" ({astray:,} lie outside their own 95 % interval; chance explains about "
        f"{0.05 * len(flags):,.0f}.)"
    )
    warn(
        f"{flags.sum():,} of {len(flags):,} counts are contradicted by "
        f"their own measurements: they lie outside the intervals that hold for all counts of the "
        f"table at once with 95 % confidence.{own} Counts may not be negative and must add up to "
        f"those above them, which moved these by more than noise explains. Use the unbiased "
        f"estimate there, or plan a release that measures these sums: one whose tree refines these "
        f"levels first, or whose [workload] names them."
    )


@contextmanager
def stage(task: str) -> Iterator[None]:
    """Show a spinner on a terminal, or a plain line in a log."""
    if on_terminal():
        with stderr.status(task):
            yield
    else:
        stderr.print(task)
        yield


@contextmanager
def bar(task: str) -> Iterator[PassProgress]:
    """Show a bar with rate and time left on a terminal, and then the work on each cuboid.

    Elsewhere show a plain line: the work depends on the table, and logs may be published.
    """
    if not on_terminal():
        stderr.print(task)
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
        number = progress.add_task(task, total=1.0, rate="")
        cells = 0

        def on_cells(more: int) -> None:
            nonlocal cells
            cells += more
            elapsed = progress.tasks[0].elapsed or 0.0
            if elapsed > 0:
                progress.update(number, rate=f"{cells / elapsed / 1e6:,.1f} M cells/s")

        tally = Tally()
        yield PassProgress(
            on_cells,
            lambda fraction: progress.update(number, completed=fraction),
            tally.on_cuboid,
        )
    if tally.work:
        stderr.print(f"\n{aligned([HEADINGS, *tally.rows()], left=(0,))}")


def show_heading(plan: Plan) -> None:
    """Print title, unit and period, where any is said."""
    said = plan.description
    about = ", ".join(filter(None, [f"counts of {said.unit}" if said.unit else "", said.period]))
    words = f"{said.title} ({about})" if said.title and about else said.title or about
    if words:
        stdout.print(f"[bold]{escape(words[:1].upper() + words[1:])}[/bold]\n")


def show_levels(plan: Plan, *, wide: bool) -> None:
    """Print what readers call the levels, where the publisher gives labels."""
    tree = plan.tree
    pairs = list[tuple[str, str]]()
    for axis in tree.axes:
        labels = plan.description.labels_of(tree, axis) or ()
        names = [tree.level_name(axis, level) for level in axis.levels]
        pairs += zip(names, labels, strict=False)
    _show(pairs, wide=wide)


def show_columns(plan: Plan, columns: Sequence[str], *, wide: bool) -> None:
    """Print what readers call the columns of codes of a table, where the publisher says so."""
    columns_here = [
        column
        for axis in plan.tree.axes
        if plan.description.labels_of(plan.tree, axis) is not None
        for column in axis.columns
    ]
    labels = plan.description.column_labels(plan.tree)
    shown = [(column, labels[column]) for column in columns if column in columns_here]
    _show(shown, wide=wide)


def with_names(tree: Tree, frame: pl.DataFrame, lookup: Lookup | None = None) -> pl.DataFrame:
    """Return a table with names of areas; as it is where a column is called like one of names."""
    with suppress(TableError):  # codes are enough
        return tree.with_names(frame if lookup is None else lookup.with_names(frame))
    return frame


def _show(pairs: Sequence[tuple[str, str]], *, wide: bool) -> None:
    """Print names and what readers call them, unless that is nothing new."""
    new = [("", name, label) for name, label in pairs if name != label]
    if new:
        say(f"In the publisher's words:\n{aligned([('', '', ''), *new], left={1, 2}, wide=wide)}\n")
