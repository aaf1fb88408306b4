"""The error to expect of each cuboid, from a plan alone: before any confidential count is read."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from hedgerow.arrays import Levels
from hedgerow.columns import aligned
from hedgerow.limits import MOST_LEAVES_FORECAST
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import (
    CuboidPlan,
    Measured,
    Public,
    Summed,
)
from hedgerow.text import Json, Texts

if TYPE_CHECKING:  # a plan makes its design
    from hedgerow.plan.plan import Plan

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "depth": pl.Int64, "cuboid": pl.String, "levels": pl.List(pl.Int64), "cells": pl.Int128,
    "kind": pl.String,
    "share": pl.Float64, "noise": pl.String, "noise_sd": pl.Float64, "rmse": pl.Float64,
    "mae": pl.Float64, "max_95": pl.Float64, "false_positive_share": pl.Float64,
}  # fmt: skip


SMALLEST = 1e-300  # a probability; more cells than its inverse are not to be had


def forecast(plan: "Plan") -> pl.DataFrame:
    """Return for every cuboid what is measured there, and the error of its released counts.

    Along a chain the released counts are under `All` those of least squares over all depths, under
    `Survivors` those of Euclidean projection; see `hedgerow.estimate.tree.error`. Of other
    workloads they are those of least squares over all cuboids that are measured whole, and of the
    others the noisy counts (`hedgerow.plan.joint`). Rounding and clipping at 0 are left out: that
    changes little where most counts are large; where most are 0, real errors are smaller than
    ``rmse``, as estimates that may not be negative stay near 0.

    Columns:
        depth, cuboid, levels, cells: the depth is null but for a chain; the levels are one an axis;
            cells is the number of possible ones.
        kind: ``measured``, ``summed``, ``public`` or ``unmeasured``.
        share, noise, noise_sd: of the budget (see `hedgerow.plan.plan.Plan.price_of_a_share`); the
            mechanism's parameter; the standard deviation of one draw (records). Null where nothing
            is measured.
        rmse: root of the mean variance over all nodes (records): *exact* formula, or an upper bound
            where a workload is too large for one (`hedgerow.plan.design.Design.words` says which).
        mae: rmse · sqrt(2/π): an *approximation*, exact for Gaussian errors of equal variance.
        max_95: with 95 % probability no estimate of the cuboid is off by more: a *bound*, by the
            union over all cells of a Chernoff bound at the largest variance V
            (`hedgerow.noise.envelope`); where the estimates are the noisy counts themselves, by
            the exact tail of the mechanism.
        false_positive_share: P(noise ≥ 1): the share of the cells that are truly 0, below parents
            that survive, that would be positive if each noisy count alone were clipped at 0:
            *exact* for that. A bound for projection where it lowers all counts of a family, as in
            sparse families, whose positive noise exceeds their parent's error.

    ``rmse``, ``mae``, ``max_95`` are null where measurements do not determine a depth, and where
    the tree has too many distinct subtrees, too many axes, or more cells than 128 bits can count
    (then ``cells`` is null, too). No memory is used per leaf.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.Rho(1), neighbours=hr.Replace())
        >>> hr.forecast(plan).select("cuboid", "cells", "kind").rows()
        [('total', 1, 'public'), ('bins_4', 2, 'measured'), ('bin', 8, 'measured')]
    """
    design = plan.design
    rows = []
    for levels, cuboid_plan in plan.by_levels.items():
        rmse = _finite(math.sqrt(design.mean_variance(levels)))
        cells = plan.tree.cells(levels)
        rows.append(
            {
                "depth": design.depth_of(levels),
                "cuboid": plan.tree.name_of(levels),
                "levels": list(levels),
                "cells": cells if cells <= MOST_LEAVES_FORECAST else None,
                "kind": cuboid_plan.kind,
                "rmse": rmse,
                "mae": None if rmse is None else rmse * math.sqrt(2 / math.pi),
                "max_95": _finite(_largest_error(plan, levels)),
                **_noise(cuboid_plan),
            }
        )
    return pl.DataFrame([{name: row.get(name) for name in SCHEMA} for row in rows], schema=SCHEMA)


def _noise(depth_plan: CuboidPlan) -> Json:
    """Return the columns of the noise of one count."""
    if isinstance(depth_plan, Measured):
        return {
            "share": float(depth_plan.share),
            "noise": noise_text(depth_plan.mechanism),
            "noise_sd": math.sqrt(depth_plan.mechanism.noise_variance),
            "false_positive_share": (1 - depth_plan.mechanism.chance_of_zero) / 2,
        }
    if isinstance(depth_plan, Summed):
        noise = f"{noise_text(depth_plan.mechanism)} on sums × {depth_plan.scale:,}"
        return {"share": float(depth_plan.share), "noise": noise}
    return {"noise_sd": 0.0, "false_positive_share": 0.0} if isinstance(depth_plan, Public) else {}


def _largest_error(plan: "Plan", levels: Levels) -> float:
    """Return a 95 % bound of the largest error of a cuboid, from the variances of its estimates."""
    largest = plan.design.largest_variance(levels)
    if largest == 0 or math.isinf(largest):
        return largest
    chance = max(0.05 / plan.tree.cells(levels), SMALLEST)
    used = plan.noise.values()
    if levels in plan.noise and plan.design.is_raw(levels):
        return plan.noise[levels].tail_bound(chance)
    widening = max(
        (m.envelope.variance / m.noise_variance for m in used if m.noise_variance), default=1.0
    )
    return math.sqrt(largest * widening) * max(m.envelope.farthest(chance) for m in used)


def _finite(error: float) -> float | None:
    return error if math.isfinite(error) else None


def noise_text(mechanism: Mechanism) -> str:
    """Return the parameter of a mechanism in words."""
    return f"{mechanism.symbol} {float(mechanism.parameter):,.6g}"


HEADINGS = (
    "depth", "cuboid", "cells", "RMSE", "MAE", "95 % max", "share", "noise", "sd", "empty seen > 0"
)  # fmt: skip

_ERRORS = (
    "In records. RMSE, MAE: root mean square and mean absolute error of the estimates. 95 % max: "
    "with 95 % probability no estimate of the cuboid is off by more. sd: standard deviation of the "
    "noise of one count."
)
_EMPTY = (
    " empty seen > 0: the share of the cells that are truly 0 whose noisy count is above 0, before "
    "estimation."
)


def forecast_legend(plan: "Plan", frame: pl.DataFrame) -> str:
    """Return what the headings mean, without a column that is blank at every measured depth."""
    measured = frame.filter(pl.col("noise").is_not_null())
    blank = measured["false_positive_share"].is_null().all()
    legend = _ERRORS + ("" if blank else _EMPTY)
    return f"{legend} {plan.design.words}{plan.design.remarks} {plan.design.settlers}"


def shares_are_relative(price: Fraction) -> str:
    """Return what shares mean where depths together cost less than the sum; see `Plan`."""
    return (
        "share: relative to the other depths. One unit cannot change all depths by their worst "
        f"case at once, so a depth alone costs {float(price):.4g} times its share of the budget, "
        "and all together cost the budget."
    )


def forecast_table(frame: pl.DataFrame, *, wide: bool = False) -> str:
    """Return the rows of a `hedgerow.plan.forecast.forecast` under `HEADINGS`, as `aligned` text.

    Only a chain has a column of depths.
    """
    rows = [HEADINGS, *forecast_rows(frame)]
    if frame["depth"].null_count():
        return aligned([row[1:] for row in rows], left=(0,), wide=wide)
    return aligned(rows, wide=wide)


def forecast_matrix(plan: "Plan", frame: pl.DataFrame, *, wide: bool = False) -> str:
    """Return the RMSE of cuboids of two axes as text: levels down and across.

    Those of sums of a table that are no cuboid of the workload stand in brackets; blank is what
    nothing tells. A chain, and cuboids of more axes or one, have no such matrix: the text is empty.
    """
    if len(plan.tree.axes) != 2 or frame["depth"].null_count() == 0:
        return ""
    down, across = (["total", *axis.levels] for axis in plan.tree.axes)
    cells = dict(zip(plan.by_levels, frame["rmse"], strict=True))

    def error(levels: Levels) -> str:
        if levels in cells:
            return _error_text(cells[levels])
        text = _error_text(plan.design.error_of(levels))
        return text and f"({text})"

    rows = [[level, *(error((i, j)) for j in range(len(across)))] for i, level in enumerate(down)]
    names = plan.tree.axis_names
    sums = ", of sums that are no cuboid of the plan in brackets"
    more = sums if any(text.startswith("(") for row in rows for text in row[1:]) else ""
    title = f"RMSE by levels of {names[0]} (down) and {names[1]} (across), in records{more}:"
    return f"{title}\n\n{aligned([['', *across], *rows], left=(0,), wide=wide)}"


def _error_text(error: float | None) -> str:
    return "" if error is None else f"{error:,.4g}"


def forecast_rows(frame: pl.DataFrame) -> list[Texts]:
    """Return the rows of a `forecast` in words, under `HEADINGS`; empty words for null."""
    rows: list[Texts] = []
    for row in frame.iter_rows(named=True):
        positive = row["false_positive_share"]
        share = row["share"]
        largest = row["max_95"]
        rows.append(
            (
                "" if row["depth"] is None else str(row["depth"]),
                row["cuboid"],
                f"> {MOST_LEAVES_FORECAST:.1e}" if row["cells"] is None else f"{row['cells']:,}",
                _error_text(row["rmse"]),
                _error_text(row["mae"]),
                "" if largest is None else f"±{math.ceil(largest):,}",
                "" if share is None else f"{share:.1%}",
                row["kind"] if row["noise"] is None else row["noise"],
                _error_text(row["noise_sd"]),
                "" if positive is None else f"{positive:.1%}",
            )
        )
    return rows
