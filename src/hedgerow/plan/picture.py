"""A plan as people see it: the error to expect of each cuboid, and what is promised."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.errors import BudgetError, PlanError
from hedgerow.notebook import block, heading, html_picture, html_table, paragraph, text_table
from hedgerow.picture import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MUTE,
    OCHRE,
    RULE,
    figure_for,
    figure_of,
    label_rows,
    open_axes,
    power_of_ten,
    row_height,
    row_names,
    rows_height,
    scale_errors,
    scale_shares,
    svg_of,
    write_heading,
)
from hedgerow.plan.forecast import HEADINGS, forecast, forecast_matrix, forecast_rows
from hedgerow.privacy.profile import Profile

if TYPE_CHECKING:  # a plan makes its design
    from hedgerow.plan.plan import Plan

MOST_ROWS = 60
"""Cuboids that one picture shows."""
WIDTH, NARROW, BAR = 11.0, 8.8, 0.165
"""Inches: pictures in a file and in a notebook, and the bar of a share."""


def unit_of(plan: "Plan") -> str:
    """Return what a count counts, in the plural."""
    return plan.description.unit or "records"


def counts_of(plan: "Plan") -> str:
    """Return what is counted, in words."""
    return f"counts of {plan.description.unit}" if plan.description.unit else "counts"


def title_of(plan: "Plan", otherwise: str) -> str:
    """Return the table's own title, with the period that it speaks of."""
    said = plan.description
    return ", ".join(filter(None, [said.title, said.period])) if said.title else otherwise


def names_of(plan: "Plan", levels: Sequence[Levels]) -> list[str]:
    """Return cuboids as a picture names them: in the publisher's words, where there are any."""
    said = plan.description
    worded = bool(said.axes or said.levels)
    named = plan.label_of if worded else plan.tree.name_of
    return row_names(map(named, levels))


def some_rows(rows: int) -> list[int]:
    """Return which rows are drawn: all, or of many an even choice from the first to the last."""
    return [int(row) for row in np.unique(np.linspace(0, rows - 1, min(rows, MOST_ROWS)).round())]


def picture_of_forecast(plan: "Plan", path: Path, frame: pl.DataFrame | None = None) -> None:
    """Draw the expected errors, the shares, and the empty cells seen above 0, a row a cuboid.

    Args:
        plan: what will be measured.
        path: PNG, SVG or PDF.
        frame: its `hedgerow.plan.forecast.forecast`, where that is there already.

    Raises:
        PlanError: matplotlib is not installed, or the file cannot be written.
    """
    drawn = _Forecast(plan, forecast(plan) if frame is None else frame)
    with figure_for(Path(path), drawn.size, PlanError) as figure:
        drawn.draw(figure)


def figure_of_forecast(plan: "Plan") -> Any:
    """Return the same as a figure of matplotlib."""
    drawn = _Forecast(plan, forecast(plan))
    return figure_of(drawn.draw, drawn.size, PlanError)


def svg_of_forecast(plan: "Plan", frame: pl.DataFrame) -> bytes | None:
    """Return the same picture without its heading, as SVG; None without matplotlib."""
    drawn = _Forecast(plan, frame, width=NARROW, headed=False)
    return svg_of(drawn.draw, drawn.size, PlanError)


class _Forecast:
    """A forecast that is about to be drawn."""

    def __init__(
        self, plan: "Plan", frame: pl.DataFrame, *, width: float = WIDTH, headed: bool = True
    ) -> None:
        rows = some_rows(len(frame))
        self.frame = frame[rows]
        self.unit = unit_of(plan)
        self.names = names_of(plan, [list(plan.by_levels)[row] for row in rows])
        more = f" {len(rows)} of {len(frame)} cuboids are drawn." if len(rows) < len(frame) else ""
        below = (
            f"The error to expect of the released {counts_of(plan)}, from public facts alone: the "
            f"table was not read.{more} Plan {plan.hash[:12]}…"
        )
        self.heading = title_of(plan, "What to expect of this plan"), below
        self.size, self.headed = (width, rows_height(self.names) + 0.35), headed

    def draw(self, figure: Any) -> None:
        """Draw it."""
        if self.headed:
            write_heading(figure, *self.heading)
        errors, shares, empty = figure.subplots(1, 3, width_ratios=(3.2, 1.4, 1.4))
        self._errors(errors)
        marks, words = errors.get_legend_handles_labels()
        figure.legend(marks[::-1], words[::-1], loc="outside lower left", ncols=3)
        self._shares(shares)
        self._empty(empty)

    def _errors(self, axes: Any) -> None:
        """Draw what is expected as a dot, and how far the furthest of all cells may be."""
        frame = self.frame
        rows = np.arange(len(self.frame))
        typical, most, noise = (
            frame[name].cast(pl.Float64).to_numpy() for name in ("rmse", "max_95", "noise_sd")
        )
        axes.hlines(rows, typical, most, color=GREEN, alpha=0.3, linewidth=5)
        axes.plot(
            most, rows, "|", color=GREEN, markersize=11, markeredgewidth=2, clip_on=False,
            label="no cell is further off, with 95 % probability",
        )  # fmt: skip
        axes.plot(
            noise, rows, "D", color=OCHRE, mfc="white", markersize=6.5, mew=1.5, clip_on=False,
            label="noise of one count, before estimation",
        )  # fmt: skip
        axes.plot(
            typical, rows, "o", color=GREEN, markersize=7, clip_on=False,
            label="typical error (RMSE)",
        )  # fmt: skip
        scale_errors(axes, [*frame["rmse"], *frame["max_95"], *frame["noise_sd"]])
        label_rows(axes, self.names)
        axes.set_title("Expected error of a count")
        axes.set_xlabel(self.unit)

    def _shares(self, axes: Any) -> None:
        rows = range(len(self.frame))
        shares = self.frame["share"].fill_null(0).to_numpy()
        axes.barh(rows, 100 * shares, height=BAR / row_height(self.names), color=BLUE)
        for row, share, kind in zip(rows, self.frame["share"], self.frame["kind"], strict=True):
            text, colour = (f"{share:.1%}", INK) if share else (kind, MUTE)
            axes.annotate(
                text, (100 * (share or 0), row), (5, 0), textcoords="offset points",
                va="center_baseline", fontsize=8.5, color=colour,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )  # fmt: skip
        axes.set_xlim(0, 100 * max(shares.max(initial=0), 0.01) * 1.45)
        axes.xaxis.set_major_locator(_few_ticks())
        label_rows(axes, self.names, written=False)
        axes.set_title("Share of the budget")
        axes.set_xlabel("%")

    def _empty(self, axes: Any) -> None:
        rows = range(len(self.frame))
        shares = self.frame["false_positive_share"]
        axes.hlines(rows, 0, [value or 0 for value in shares], color=RULE, linewidth=2)
        axes.plot(shares.cast(pl.Float64).to_numpy(), rows, "s", color=OCHRE, mfc="white", mew=1.5)
        scale_shares(axes)
        label_rows(axes, self.names, written=False)
        axes.set_title("Empty cells seen above 0")
        axes.set_xlabel("before estimation")


def _few_ticks() -> Any:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - an optional extra

    return MaxNLocator(4, integer=True)


def picture_of_profile(
    profile: Profile, path: Path, stated: str, title: str = "What the guarantee says"
) -> None:
    """Draw ε against δ, tight and by the loose conversions, and the trade-off curve.

    Raises:
        BudgetError: matplotlib is not installed, or the file cannot be written.
    """
    with figure_for(path, (11, 4.2), BudgetError) as figure:
        write_heading(figure, title, stated)
        curve, trade = figure.subplots(1, 2)
        grid = profile.epsilon_grid()
        curve.semilogy(
            grid,
            [max(profile.delta(e), 1e-18) for e in grid],
            color=GREEN,
            label="exact" if profile.is_exact else "proved bound",
        )
        if profile.rho is not None:
            deltas = np.logspace(-15, -2, 30)
            for label, style, ask in (
                ("from ρ, optimally", "--", profile.zcdp_epsilon),
                ("from ρ, Bun & Steinke", ":", profile.bureau_epsilon),
            ):
                curve.semilogy(
                    [ask(float(d)) for d in deltas], deltas, style, color=OCHRE, label=label
                )
        curve.set(xlabel="ε", ylabel="δ(ε)", ylim=(1e-15, 1))
        curve.yaxis.set_major_formatter(power_of_ten)
        curve.legend()
        alphas = np.linspace(0, 1, 51)
        trade.plot(alphas, profile.tradeoff_curve(alphas.tolist()), color=GREEN)
        trade.plot([0, 1], [1, 0], color=GREY, linewidth=0.8)
        trade.set(
            xlabel="type I error α", ylabel="least type II error T(α)", xlim=(0, 1), ylim=(0, 1)
        )
        for axes in (curve, trade):
            open_axes(axes)


def plan_html(plan: "Plan") -> str:
    """Return a plan as HTML: what is measured, the error to expect, the promise, the hash."""
    frame = forecast(plan)
    first = int(frame["depth"].null_count() > 0)  # only a chain has depths
    rows = [row[first:] for row in forecast_rows(frame)]
    table = html_table(HEADINGS[first:], rows, left={1 - first})
    described = f"Expected error of the {counts_of(plan)} of each cuboid, as in the table."
    return block(
        heading(
            title_of(plan, "A plan"), f"Expected errors of {counts_of(plan)}. Plan {plan.hash}"
        ),
        table,
        text_table(forecast_matrix(plan, frame)),
        html_picture(svg_of_forecast(plan, frame), described),
        paragraph(" ".join(plan.choices.values())),
        promise_html(plan),
    )


def promise_html(plan: "Plan") -> str:
    """Return the promise with its neighbours and restrictions, and what public files say."""
    return paragraph(str(plan.promise)) + text_table(plan.public_facts)
