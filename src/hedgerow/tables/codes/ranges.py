"""Codes of the nodes of a numeric axis, which say which values they hold.

The code of a node is the number of its first bin and its range, ``"0025 [5000, 5200)"``. The last
range is closed. Where values outside the bounds are moved to them, the outermost ranges say so:
``"0000 [0 or less, 200)"``. Edges are written with as many digits as tell doubles apart, and the
codes are part of the axis's digest: whoever signs a plan signs the edges too.
"""

from contextlib import suppress

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, rises
from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis

OR_LESS, OR_MORE = " or less", " or more"
_CODE = rf"^\d+ \[(?<low>\S+?)(?<less>{OR_LESS})?, (?<high>\S+?)(?<more>{OR_MORE})?[)\]]$"


def is_numeric(axis: Axis) -> bool:
    """Return whether the codes of an axis's leaves name ranges that join."""
    if axis.labels[-1].head(1).str.contains(_CODE).all():  # else millions are not looked at
        with suppress(TableError):
            edges_of(axis)
            return True
    return False


def edges_of(axis: Axis) -> tuple[Float64, bool]:
    """Return the edges of the bins of an axis, and whether the outermost take values beyond.

    Returns:
        float64 (leaves + 1), in units of the axis.

    Raises:
        TableError: the codes of the leaves name no ranges, or these do not join or have no end.

    Example:
        >>> from hedgerow.tables.codes.ranges import edges_of
        >>> bins = {"bin": ["0000 [0, 20)", "0001 [20, 40]"]}
        >>> edges, _ = edges_of(hr.Axis.from_frame("age", bins, ["bin"]))
        >>> edges.tolist()
        [0.0, 20.0, 40.0]
    """
    parts = axis.labels[-1].str.extract_groups(_CODE).struct.unnest()
    if parts["low"].null_count() or parts["high"].null_count():
        raise TableError(f"axis {axis.name!r} is no numeric column: its codes name no ranges")
    bounds = parts.select(pl.col("low", "high").cast(pl.Float64, strict=False))
    low = bounds["low"].to_numpy()
    high = bounds["high"].to_numpy()
    if not np.array_equal(low[1:], high[:-1]):
        raise TableError(f"axis {axis.name!r}: the ranges in its codes do not join")
    edges = np.append(low, high[-1])
    if not (np.isfinite(edges).all() and rises(edges)):
        raise TableError(f"axis {axis.name!r}: the edges in its codes must be finite and increase")
    clamps = parts["less"][0] is not None and parts["more"][-1] is not None
    return edges, clamps
