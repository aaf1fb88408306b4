"""A table with numeric columns → the same records with the codes of their bins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.arrays import Float64, Int32
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import TableError, outside_limits, reads_table
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.ranges import OR_LESS, OR_MORE, edges_of, is_numeric
from hedgerow.tables.sources.database import translate_duckdb_errors
from hedgerow.tables.sources.source import (
    check_fits,
    describe_source,
    float_sql,
    load,
    open_table,
)


def coded_axis(ranges: Ranges, branching: Sequence[int]) -> Axis:
    """Return the axis of `Ranges.axis`, with the range of each node in its code."""
    axis = ranges.axis(branching)
    # the edges as text that reads back as the same doubles
    edges = pl.Series(ranges.edges + 0.0)  # -0 is 0
    texts = edges.cast(pl.String).str.strip_suffix(".0")
    texts = (
        (texts)
        if ((texts.cast(pl.Float64) == edges).all())
        else (pl.Series([f"{edge:.17g}" for edge in ranges.edges.tolist()]))
    )
    clamps = ranges.out_of_bounds == "clamp"
    lower = texts[:-1]
    upper = texts[1:]
    if clamps:
        lower = pl.concat([lower[:1] + OR_LESS, lower[1:]])
    upper = pl.concat([upper[:-1] + ")", upper[-1:] + (OR_MORE if clamps else "") + "]"])
    labels = []
    for number, level in enumerate(axis.labels, start=1):
        start = axis.descendant_start(number, axis.depth)
        low = lower.gather(start[:-1])
        high = upper.gather(start[1:] - 1)
        labels.append((level + " [" + low + ", " + high).alias(level.name))
    return replace(axis, labels=tuple(labels))


def ranges_of(axis: Axis) -> Ranges:
    """Return the ranges that the codes of an axis's leaves name."""
    edges, clamps = edges_of(axis)
    return Ranges(axis.name, edges, "clamp" if clamps else "refuse")


def numeric_axes(axes: Sequence[Axis]) -> dict[str, Ranges]:
    """Return the ranges of the axes that are numeric columns, by their names."""
    return {axis.name: ranges_of(axis) for axis in axes if is_numeric(axis)}


TEXT = "VARCHAR"
NUMBERS = ("INT", "INTEGER", "DOUBLE", "FLOAT")


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """A numeric column of a table and the axis that it becomes.

    Attributes:
        column: what the table calls it.
        ranges: its bins.
        axis: the tree over them, whose leaves are the bins.
    """

    column: str
    ranges: Ranges
    axis: Axis

    def codes(self, values: Float64) -> pa.DictionaryArray:
        """Return the code of the bin of each value; see `Ranges.bin`."""
        return codes_of_bins(self.axis, self.ranges.bin(values))


def codes_of_bins(axis: Axis, bins: Int32) -> pa.DictionaryArray:
    """Return the codes of leaves by their numbers."""
    words = axis.labels[-1].to_arrow().cast(pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(bins), words)


@dataclass(frozen=True, eq=False, repr=False)
class Binned:
    """Records with the codes of their bins. Confidential, unless their table is public.

    Attributes:
        table: the codes are under the name of each axis's deepest level.
        moved: by axis how many values outside the bounds were moved to the nearest one.
    """

    table: pa.Table
    moved: tuple[tuple[str, int], ...]


def binned(
    table: Any, numeric: Sequence[NumericColumn], others: Sequence[str], *, public: bool = False
) -> Binned:
    """Return the records with the codes of their bins.

    Args:
        table: as for `hedgerow.tables.read.read_leaves`. Numbers may also be text, as in CSV.
        numeric: the columns to cut into bins.
        others: further columns to keep, where the table has them: codes, counts, units.
        public: anyone may see the table; then it has to fit the memory (`open_table`).
    """
    read = _binned if public else reads_table(_binned)
    return read(table, numeric, others, public=public)


def _binned(
    table: Any, numeric: Sequence[NumericColumn], others: Sequence[str], *, public: bool
) -> Binned:
    subject = describe_source(table, "the table")
    with open_table(table, subject, public=public) as (db, source):
        kept = [name for name in dict.fromkeys(others) if name in source.names]
        kinds = load(db, source, [*(n.column for n in numeric), *kept])
        if public:
            check_fits(db, kinds, subject)
        values = [f"TRY_CAST(c{i} AS DOUBLE) AS v{i}" for i in range(len(numeric))]
        for n, kind in zip(numeric, kinds, strict=False):
            if kind != TEXT and not kind.endswith(NUMBERS) and not kind.startswith("DECIMAL"):
                raise TableError(
                    f"{source.subject}: column {n.column!r} holds {kind}; a numeric axis needs "
                    f"numbers (write dates as days since a fixed one)"
                )
        rest = [float_sql(source, name, f"c{i}") for i, name in enumerate(kept, len(numeric))]
        with translate_duckdb_errors(source.subject, "cannot be read to its end"):
            read = db.sql(f"SELECT {', '.join([*values, *rest])} FROM loaded").to_arrow_table()
        columns = {name: read.column(len(numeric) + i) for i, name in enumerate(kept)}
        moved = []
        for i, n in enumerate(numeric):
            words = f"NULLIF(TRIM(c{i}), '') IS NOT NULL AND TRY_CAST(c{i} AS DOUBLE) IS NULL"
            broken = f"SELECT 1 FROM loaded WHERE {words} LIMIT 1"
            with translate_duckdb_errors(source.subject, "cannot be read to its end"):
                is_broken = kinds[i] == TEXT and db.execute(broken).fetchall()
            if is_broken:
                rule = (
                    "holds text that is no number; write 1234.5, with a point and without "
                    "separators of thousands"
                )
                raise outside_limits(source.subject, rule, column=n.column)
            numbers = np.asarray(read.column(i).to_numpy(), dtype=np.float64)
            columns[n.axis.columns[-1]] = n.codes(numbers)
            if n.ranges.out_of_bounds == "clamp":
                moved.append((n.axis.name, n.ranges.outside(numbers)))
    return Binned(pa.table(columns), tuple(moved))
