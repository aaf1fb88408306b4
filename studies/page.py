"""A study's page: paper beside ours, row by row, with a reason wherever the two differ.

Every study below ``studies/`` is one figure or table of a paper: its ``main`` makes a `Study`, of
which `publish` writes ``docs/studies/SLUG.md`` for people and ``docs/studies/SLUG.json`` for the
summary, ``docs/studies.md`` (see ``studies/summary.py``). The wider studies beside them `keep` a
page of their own.
"""

import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from itertools import chain, repeat
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl

from hedgerow.arrays import Float64

Made = TypeVar("Made")

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
PAGES = ROOT / "docs" / "studies"
HEADS = "what | paper | ours | ours / paper | why they differ"
PRINTED = 5e-3
"""Relative: a printed figure of three digits may be off by this much without a difference."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of a paper beside ours.

    Attributes:
        what: the quantity, with its unit.
        paper: as printed; None where the paper draws a curve and prints no number.
        ours: computed or simulated here.
        error: Monte Carlo standard error of ours (with the paper's own, where it is known); 0 for
            computed figures.
        reason: one line that says why the two differ, or what stands in for the paper's number.

    Raises:
        ValueError: they differ by more than three standard errors and by more than half a percent,
            or there is no figure in the paper, and no reason is given.
    """

    what: str
    paper: float | None
    ours: float
    error: float = 0.0
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.reason and (self.paper is None or self.differs):
            raise ValueError(f"{self.what}: paper {self.paper}, ours {self.ours:.6g}; say why")

    @property
    def differs(self) -> bool:
        """By more than Monte Carlo error and rounding in print."""
        if self.paper is None:
            return False
        gap = abs(self.ours - self.paper)
        return gap > 3 * self.error and gap > PRINTED * abs(self.paper)


@dataclass(frozen=True, slots=True)
class Study:
    """A figure or table of a paper, made again.

    Attributes:
        source: such as ``Ko, Figure 2``.
        title: what it shows, in a few words.
        text: Markdown: the setting, what is reproduced, what differs and why, further tables.
        rows: paper beside ours.
        pictures: file names in ``docs/studies/``, drawn by the study.
    """

    source: str
    title: str
    text: str
    rows: Sequence[Row]
    pictures: Sequence[str] = ()


def unprinted(what: str, ours: float, reason: str, error: float = 0.0) -> Row:
    """A figure that the paper does not print, and the reason."""
    return Row(what, None, ours, error, reason)


def drawn(what: str, ours: float, claim: str, error: float = 0.0) -> Row:
    """A figure of a curve that the paper draws without a number, and what it claims of it."""
    return unprinted(what, ours, f"curve, no number printed: {claim}", error)


def mean_of(draws: Float64) -> tuple[float, float]:
    """The mean of independent draws, and its Monte Carlo standard error."""
    return float(draws.mean()), float(draws.std() / np.sqrt(len(draws)))


def timed(task: Callable[[], Made]) -> tuple[float, Made]:
    """The seconds of a task, and what it makes."""
    begun = time.perf_counter()
    made = task()
    return time.perf_counter() - begun, made


class Missing(Exception):  # noqa: N818 - no error, a study that is left out
    """A table that a study cannot do without is not there."""


def read(file: Path | str, columns: list[str] | None = None) -> pl.DataFrame:
    """A Parquet file, of the folder of real tables unless another is named.

    Raises:
        Missing: it is not there.
    """
    path = DATA / file
    if not path.exists():
        raise Missing(f"the real tables are not there: {path}")
    return pl.read_parquet(path, columns=columns)


def with_data(study: Callable[[Path], None]) -> None:
    """Run a wider study on the folder of real tables that the command line names, or on `DATA`.

    It says so where there is none.
    """
    data = Path(*sys.argv[1:2] or DATA.parts).resolve()
    if data.is_dir():
        study(data)
    else:
        print(f"skipped: the real tables are not at {data}")


def keep(name: str, page: str) -> None:
    """Write the page of a wider study, and print it."""
    print(page)
    (ROOT / "docs" / f"{name}.md").write_text(page)


def publish(name: str) -> None:
    """Make a study (``ko/figure_2``), write its page and rows, and print it; or say what misses."""
    slug, module = name.replace("/", "-"), import_module(f"studies.{name.replace('/', '.')}")
    try:
        seconds, study = timed(module.main)
    except Missing as missing:
        print(f"skipped: {missing}")
        return
    PAGES.mkdir(parents=True, exist_ok=True)
    shown = "\n\n".join(f"![{study.title}]({name})" for name in study.pictures)
    parts = f"# {study.source}: {study.title}", study.text, shown, table(study.rows)
    page = "\n\n".join(part.strip() for part in parts if part.strip())
    made = f"\n\nMade by `studies/{name}.py` in {seconds:.0f} s.\n"
    (PAGES / f"{slug}.md").write_text(page + made)
    facts = {"source": study.source, "title": study.title, "seconds": round(seconds, 1)}
    facts |= {"rows": [asdict(row) for row in study.rows], "pictures": list(study.pictures)}
    (PAGES / f"{slug}.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    print(page)


def markdown(head: Sequence[str] | str, rows: Iterable[Iterable[object]], forms: str = "") -> str:
    """A table in Markdown.

    Args:
        head: of the columns, perhaps as one text: ``K | error``.
        rows: words; figures; a figure with its standard error as a pair.
        forms: of the figures: ``.1%``; ``.2f ± .1g`` of pairs; by column: ``| .1% | .2f``,
            where the last one is that of all further columns.
    """
    heads = head.split(" | ") if isinstance(head, str) else head
    *first, last = map(str.strip, forms.split("|"))
    shown = ([*map(told, row, chain(first, repeat(last)))] for row in rows)
    lines = [heads, ["---"] * len(heads), *shown]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def told(cell: object, form: str = "") -> str:
    """A cell in words: of floats four digits unless a form is given, of their errors two."""
    if isinstance(cell, tuple):
        own, _, error = form.partition(" ± ")
        return f"{told(cell[0], own)} ± {told(cell[1], error or ',.2g')}"
    if isinstance(cell, str):
        return cell
    if "±" in form or not form:
        form = ",.4g" if isinstance(cell, float) else ""
    return format(cell, form)


def table(rows: Sequence[Row]) -> str:
    """Paper, ours and their ratio, one line a row."""
    return markdown(HEADS, map(cells, rows)) if rows else ""


def cells(row: Row) -> tuple[str, ...]:
    """What a row says, in words."""
    paper = "not printed" if row.paper is None else number(row.paper)
    sure = f" ± {row.error:.2g}" if row.error else ""
    return row.what, paper, number(row.ours) + sure, ratio(row), row.reason


def ratio(row: Row) -> str:
    """Ours over the paper's, where there is one."""
    if not row.paper:
        return ""
    found = row.ours / row.paper
    return f"{found:.3f}" if abs(found) >= 0.01 else f"{found:.1g}"


def number(value: float) -> str:
    """Six digits at most, of whole numbers all."""
    if float(value).is_integer() and abs(value) < 1e12:
        return f"{value:,.0f}"
    return f"{value:,.6g}" if 1e-3 <= abs(value) < 1e9 else f"{value:.4g}"
