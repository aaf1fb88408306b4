"""Codes of bins that say which values they hold, so that a list of bins is its own legend.

The code of a node is the number of its first bin and its range, ``"0025 [5000, 5200)"``. The last
range is closed. Where values outside the bounds are moved to them, the outermost ranges say so:
``"0000 [0 or less, 200)"``. Edges are written with as many digits as tell doubles apart, and the
codes are part of the axis's digest: whoever signs a plan signs the edges too.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis

OR_LESS, OR_MORE = " or less", " or more"
_CODE = rf"^\d+ \[(?<low>\S+?)(?<less>{OR_LESS})?, (?<high>\S+?)(?<more>{OR_MORE})?[)\]]$"


def coded_axis(ranges: Ranges, branching: Sequence[int]) -> Axis:
    """The axis of `Ranges.axis`, with the range of each node in its code.

    Raises:
        TableError: see `Ranges.axis`.
    """
    axis = ranges.axis(branching)
    texts = _texts(ranges)
    clamps = ranges.out_of_bounds == "clamp"
    lower, upper = texts[:-1], texts[1:]
    if clamps:
        lower = pl.concat([lower[:1] + OR_LESS, lower[1:]])
    upper = pl.concat([upper[:-1] + ")", upper[-1:] + (OR_MORE if clamps else "") + "]"])
    labels = []
    for number, level in enumerate(axis.labels, start=1):
        start = axis.descendant_start(number, axis.depth)
        low, high = lower.gather(start[:-1]), upper.gather(start[1:] - 1)
        labels.append((level + " [" + low + ", " + high).alias(level.name))
    return replace(axis, labels=tuple(labels))


def ranges_of(axis: Axis) -> Ranges:
    """The ranges that the codes of an axis's leaves say.

    Raises:
        TableError: the axis is not one of `coded_axis`.
    """
    found = axis.labels[-1].str.extract_groups(_CODE).struct.unnest()
    if found["low"].null_count() or found["high"].null_count():
        raise TableError(f"axis {axis.name!r} is no numeric column: its codes name no ranges")
    bounds = found.select(pl.col("low", "high").cast(pl.Float64, strict=False))
    low, high = bounds["low"].to_numpy(), bounds["high"].to_numpy()
    if not np.array_equal(low[1:], high[:-1]):
        raise TableError(f"axis {axis.name!r}: the ranges in its codes do not join")
    clamps = found["less"][0] is not None and found["more"][-1] is not None
    return Ranges(axis.name, np.append(low, high[-1]), "clamp" if clamps else "refuse")


def _texts(ranges: Ranges) -> pl.Series:
    """The edges as text that reads back as the same doubles."""
    edges = pl.Series(ranges.edges + 0.0)  # -0 is 0
    texts = edges.cast(pl.String).str.strip_suffix(".0")
    if (texts.cast(pl.Float64) == edges).all():
        return texts
    return pl.Series([f"{edge:.17g}" for edge in ranges.edges.tolist()])
