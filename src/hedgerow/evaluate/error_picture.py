"""A picture of errors against the truth, beside the forecast.

Confidential where the table is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hedgerow.errors import ReleaseError
from hedgerow.picture import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MUTE,
    OCHRE,
    figure_for,
    label_rows,
    rows_height,
    scale_errors,
    scale_shares,
    write_heading,
)
from hedgerow.plan.picture import counts_of, names_of, some_rows, title_of, unit_of
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.manifest import check_outside

WIDTH = 12.5
CONFIDENTIAL = "CONFIDENTIAL: exact errors reveal true counts."
PANELS = (
    ("rmse", "rmse", "Typical error (RMSE)"),
    ("max_error", "max_95", "Largest error"),
)
"""What was measured, what was forecast of it, and how both are called."""


def picture_of_errors(
    plan: Plan,
    errors: pl.DataFrame,
    path: Path,
    *,
    expected: pl.DataFrame,
    covered: Mapping[str, float | None],
) -> None:
    """Draw the errors of a release beside the forecast of its plan, a row a cuboid.

    Args:
        plan: of the release.
        errors: a frame of `hedgerow.evaluate.metrics.error_by_cuboid`.
        path: PNG, SVG or PDF, outside every release.
        expected: the plan's `hedgerow.plan.forecast.forecast`.
        covered: for each cuboid the share of its intervals that hold the true count, if known.

    Raises:
        ReleaseError: matplotlib is not installed, or the file cannot be written there.
    """
    check_outside(Path(path), "the picture")
    rows = some_rows(len(errors))
    names = names_of(plan, [plan.levels[row] for row in rows])
    unit = unit_of(plan)
    drawn = f" {len(rows)} of {len(plan.levels)} cuboids are drawn."
    errors, more = errors[rows], drawn if len(rows) < len(plan.levels) else ""
    expected = errors.select("cuboid").join(
        expected, on="cuboid", how="left", maintain_order="left"
    )
    title = title_of(plan, "A release beside its own table")
    below = f"Errors of the released {counts_of(plan)} beside what the plan forecast.{more}"
    size = WIDTH, rows_height(names) + 0.35
    with figure_for(path, size, ReleaseError) as figure:
        write_heading(figure, title, below, warning=CONFIDENTIAL)
        shares = [covered.get(cuboid) for cuboid in errors["cuboid"]]
        covers = any(share is not None for share in shares)
        ratios = (1.25, 1.25, 1, 1) if covers else (1.25, 1.25, 1)
        panels = figure.subplots(1, len(ratios), width_ratios=ratios)
        for axes, (mine, theirs, words) in zip(panels, PANELS, strict=False):
            _beside(axes, errors[mine], expected[theirs], is_bound=theirs == "max_95")
            label_rows(axes, names, written=axes is panels[0])
            axes.set_title(words)
            axes.set_xlabel(unit)
        if covers:
            _coverage(panels[2], shares, errors["cells"])
        _empty(panels[-1], errors)
        for axes in panels[2:]:
            label_rows(axes, names, written=False)
        figure.legend(*_marks(covers=covers), loc="outside lower left", ncols=6)


def _beside(axes: Any, measured: pl.Series, expected: pl.Series, *, is_bound: bool) -> None:
    """Draw each error as a dot, and its forecast as a ring, a bound as a bar, and a line."""
    rows = np.arange(len(measured))
    seen, foreseen = (each.cast(pl.Float64).to_numpy() for each in (measured, expected))
    axes.hlines(rows, seen, foreseen, color=GREY, linewidth=1.4, alpha=0.8)
    if is_bound:
        axes.plot(foreseen, rows, "|", color=OCHRE, ms=12, mew=2.2, clip_on=False)
    else:
        axes.plot(foreseen, rows, "o", color=OCHRE, mfc="white", ms=8, mew=1.7, clip_on=False)
    axes.plot(seen, rows, "o", color=GREEN, ms=6, clip_on=False)
    scale_errors(axes, [*measured, *expected])


NEAR, MIDDLE, FEW_INTERVALS = 0.8, 0.5, 40
"""An axis of coverage begins here, where nothing is below; so few intervals may well hold more or
less than 95 %, and their number stands beside the share."""


def _coverage(axes: Any, covered: Sequence[float | None], cells: pl.Series) -> None:
    """Draw the share of the intervals that hold the true count, beside the 95 % they are for."""
    not_null = [share for share in covered if share is not None]
    axes.axvline(0.95, color=INK, linewidth=1, linestyle=(0, (4, 3)))
    shares = [np.nan if share is None else share for share in covered]
    axes.plot(shares, range(len(covered)), "D", color=BLUE, clip_on=False)
    for row, (share, many) in enumerate(zip(covered, cells, strict=True)):
        if share is not None and many <= FEW_INTERVALS:
            at_end = share > MIDDLE
            axes.annotate(
                f"of {many:,.0f}", (share, row), (-9 if at_end else 9, 0),
                textcoords="offset points", ha="right" if at_end else "left",
                va="center_baseline", fontsize=8, color=MUTE,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
            )  # fmt: skip
    scale_shares(axes)
    if min(not_null, default=1.0) > NEAR:
        axes.set_xlim(NEAR - 0.005, 1.005)
        axes.set_xticks([0.8, 0.85, 0.9, 0.95, 1], ["80", "85", "90", "95", "100 %"])
    axes.set_title("Intervals that hold the truth")
    axes.set_xlabel("share of the 95 % intervals")


def _empty(axes: Any, errors: pl.DataFrame) -> None:
    """Draw the cells that are there and should not be, and those that are missing."""
    rows = range(len(errors))
    axes.plot(errors["false_negative_rate"], rows, "s", color=GREEN, mfc="white", mew=1.6)
    axes.plot(errors["false_discovery_rate"], rows, "s", color=GREEN, markersize=5)
    scale_shares(axes)
    axes.set_title("Wrongly there, wrongly 0")
    axes.set_xlabel("of cells above 0")


Marks = tuple[list[Any], list[str]]
"""What a legend shows, and what it says beside each."""


def marks_of(looks: Mapping[str, Mapping[str, Any]]) -> Marks:
    """Return marks that look so, by what is said of each."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 - an optional extra

    return [Line2D([], [], linestyle="", **look) for look in looks.values()], list(looks)


def _marks(*, covers: bool) -> Marks:
    looks: dict[str, dict[str, Any]] = {
        "measured": {"marker": "o", "color": GREEN},
        "forecast": {"marker": "o", "color": OCHRE, "mfc": "white", "mew": 1.7, "markersize": 8},
        "forecast: 95 % bound": {"marker": "|", "color": OCHRE, "markersize": 12, "mew": 2.2},
        **({"coverage": {"marker": "D", "color": BLUE}} if covers else {}),
        "wrongly there": {"marker": "s", "color": GREEN, "markersize": 5},
        "wrongly 0": {"marker": "s", "color": GREEN, "mfc": "white", "mew": 1.6},
    }
    return marks_of(looks)
