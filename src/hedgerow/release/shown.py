"""What a notebook shows of a release: the largest counts of a cuboid, with their uncertainty."""

from dataclasses import field
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.columns import aligned
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.notebook import block, heading, html_picture, html_table
from hedgerow.picture import (
    GREEN,
    figure_of,
    label_rows,
    row_names,
    rows_height,
    svg_of,
    write_heading,
    write_thousands,
)
from hedgerow.plan.picture import counts_of, promise_html, title_of, unit_of
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.measurements import CONTRADICTED, COUNT, ESTIMATE, HIGH, LOW
from hedgerow.text import Texts, visible

WIDTH, LONGEST = 9.0, 60
RELIABLE = {"firm": 0.1, "rough": 0.5}
"""Words for counts whose interval ends within these shares of them."""


@frozen
class ShownCounts:
    """The largest counts of a cuboid of a release, as `hedgerow.Release.show` gives them.

    Attributes:
        plan: of the release.
        levels: the cuboid.
        frame: its largest counts, with their errors, as `hedgerow.Release.level` has them.
        listed: how many counts of the cuboid are above 0.
        confidence: what the intervals are, in words.
    """

    plan: Plan
    levels: Levels
    frame: pl.DataFrame = field(repr=False)
    listed: int
    confidence: str

    def __str__(self) -> str:
        """Return the same as aligned text."""
        labels = len(self._labels()[0])
        table = aligned(
            [self._headings(), *self._rows()], left={*range(labels), labels + 2}, wide=True
        )
        return f"{self._title()}\n{self._about()}\n\n{table}\n\n{self.plan.promise}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: table, picture and promise."""
        labels = len(self._labels()[0])
        return block(
            heading(self._title(), self._about()),
            html_table(self._headings(), self._rows(), left={*range(labels), labels + 2}),
            self._picture(),
            promise_html(self.plan),
        )

    def plot(self) -> Any:
        """Return its picture with title and intervals in words, a figure of matplotlib.

        Raises:
            ReleaseError: matplotlib is not installed.
        """
        names = self._row_names()

        def draw(figure: Any) -> None:
            write_heading(figure, self._title(), self._about())
            self._draw(figure, names)

        return figure_of(draw, (WIDTH, rows_height(names)), ReleaseError)

    def _title(self) -> str:
        return title_of(self.plan, "A release")

    def _about(self) -> str:
        some = f"The {len(self.frame):,} largest of {self.listed:,}"
        every = f"All {self.listed:,}"
        which = some if len(self.frame) < self.listed else every
        return (
            f"{which} {counts_of(self.plan)} above 0 by {self.plan.label_of(self.levels)}, with "
            f"intervals of {self.confidence}."
        )

    def _labels(self) -> tuple[list[str], list[list[str]]]:
        """Return what readers call the label columns, and of each row names where there are any."""
        tree = self.plan.tree
        columns = tree.columns_of(self.levels)
        labels = self.plan.description.column_labels(tree)
        named = tree.with_names(self.frame)
        words = [
            [visible(str(row.get(f"{column}_name") or row[column] or "")) for column in columns]
            for row in named.iter_rows(named=True)
        ]
        return [labels.get(column, column) for column in columns], words

    def _headings(self) -> Texts:
        return (*self._labels()[0], unit_of(self.plan), "from … to", "")

    def _rows(self) -> list[Texts]:
        figures = self.frame.select(COUNT, LOW, HIGH, CONTRADICTED, ESTIMATE).iter_rows()
        return [
            (
                *words,
                f"{count:,}",
                _range(low, high),
                _reliability(count, low, high, estimate if flag else None),
            )
            for words, (count, low, high, flag, estimate) in zip(
                self._labels()[1], figures, strict=True
            )
        ]

    def _picture(self) -> str:
        names = self._row_names()
        size = WIDTH, rows_height(names)
        drawn = svg_of(lambda figure: self._draw(figure, names), size, ReleaseError)
        return html_picture(drawn, "The same counts as dots, and their intervals as lines.")

    def _row_names(self) -> list[str]:
        return row_names(map(self._short, self._labels()[1]))

    def _short(self, words: list[str]) -> str:
        """Return a cell as it stands beside its row: the finest name of each axis, or the last two.

        Of one axis the last two names tell towns of one name apart.
        """
        finest, end = [], 0
        for axis, level in zip(self.plan.tree.axes, self.levels, strict=True):
            end += len(axis.columns_of(level))
            finest += words[end - 1 : end] if level else []
        parts = words[-2:] if len(finest) == 1 else finest
        text = (", " if len(finest) == 1 else " × ").join(parts) or "total"
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

    def _draw(self, figure: Any, names: list[str]) -> None:
        axes = figure.subplots()
        rows = np.arange(len(names))
        count, low, high = (
            self.frame[name].cast(pl.Float64).to_numpy() for name in (COUNT, LOW, HIGH)
        )
        axes.hlines(rows, low, high, color=GREEN, linewidth=6, alpha=0.35)
        axes.plot(count, rows, "o", color=GREEN, markersize=6, clip_on=False)
        axes.set_xlim(left=0)
        write_thousands(axes.xaxis)
        label_rows(axes, names)
        axes.set_xlabel(unit_of(self.plan))


def _range(low: int | None, high: int | None) -> str:
    """Return an interval in words; nothing where there is none."""
    if low is None or high is None:
        return ""
    if low == high:
        return f"{low:,} exactly"
    return f"at most {high:,}" if low == 0 else f"{low:,} to {high:,}"


def _reliability(
    count: int, low: int | None, high: int | None, denied_by: float | None = None
) -> str:
    """Return how far a count may be from the truth, in a word: by its interval's farther end.

    Where its own measurements deny the count, also the estimate that they give instead.
    """
    if low is None or high is None:
        return ""
    reach = max(high - count, count - low)
    words = [word for word, share in RELIABLE.items() if reach <= share * count]
    word = words[0] if words else "mostly noise"
    return word if denied_by is None else f"{word}, contradicted: estimate {denied_by:,.0f}"
