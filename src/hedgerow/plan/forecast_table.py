"""A forecast in words: the table of a plan that people read, on a terminal and in a notebook."""

import math
from fractions import Fraction

import polars as pl

from hedgerow.plan.describe import aligned
from hedgerow.plan.forecast import MOST_CELLS

HEADINGS = (
    "depth", "cuboid", "cells", "share", "noise", "sd", "RMSE", "MAE", "95 % max", "empty seen > 0"
)  # fmt: skip

_ERRORS = (
    "In records. sd: of the noise of one count. RMSE, MAE: root mean square and mean error of the "
    "estimates. 95 % max: no estimate of the depth is further off, with a chance of 95 %."
)
_EMPTY = (
    " empty seen > 0: how many of the cells that are truly 0 have a noisy count above 0, before "
    "estimation; it says nothing of other cells."
)


def forecast_legend(frame: pl.DataFrame) -> str:
    """What the headings mean; of a column that is blank at every measured depth, nothing."""
    measured = frame.filter(pl.col("noise").is_not_null())
    blank = measured["false_positive_share"].is_null().all()
    return _ERRORS + ("" if blank else _EMPTY)


def shares_are_relative(price: Fraction) -> str:
    """What shares mean where depths together cost less than each alone; see `Plan`."""
    return (
        "share: of one depth beside the others. One unit cannot change all depths by their worst "
        f"at once, so a depth alone costs {float(price):.4g} times its share of the budget, and "
        "all together cost the budget."
    )


def forecast_table(frame: pl.DataFrame) -> str:
    """The rows of a `hedgerow.plan.forecast.forecast` under `HEADINGS`, as aligned text."""
    return aligned([HEADINGS, *forecast_rows(frame)])


def forecast_rows(frame: pl.DataFrame) -> list[tuple[str, ...]]:
    """The rows of a `forecast` in words, under `HEADINGS`; an empty word for what is not known."""
    rows = []
    for row in frame.iter_rows(named=True):
        errors = (row[name] for name in ("noise_sd", "rmse", "mae"))
        positive, share, largest = row["false_positive_share"], row["share"], row["max_95"]
        rows.append(
            (
                str(row["depth"]),
                row["cuboid"],
                f"> {MOST_CELLS:.1e}" if row["cells"] is None else f"{row['cells']:,}",
                "" if share is None else f"{share:.1%}",
                row["kind"] if row["noise"] is None else row["noise"],
                *("" if error is None else f"{error:,.4g}" for error in errors),
                "" if largest is None else f"±{math.ceil(largest):,}",
                "" if positive is None else f"{positive:.1%}",
            )
        )
    return rows
