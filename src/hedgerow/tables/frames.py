"""The door for data frames: anything with the Arrow stream interface, as Polars."""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.errors import TableError

CODE_TYPES = (pl.String, pl.Categorical, pl.Enum, pl.Boolean, pl.Date, pl.Null)


def as_arrow(frame: Any, what: str) -> pa.Table:
    """The frame as an Arrow table.

    Args:
        frame: Polars, pandas, PyArrow, DuckDB: anything with ``__arrow_c_stream__``; or a dict of
            columns.
        what: how messages name it.

    Raises:
        TableError: the object is no data frame.
    """
    if isinstance(frame, pl.LazyFrame):
        frame = _collected(frame, what)
    if isinstance(frame, pa.Table):
        return frame
    if not isinstance(frame, dict) and not hasattr(frame, "__arrow_c_stream__"):
        raise TableError(
            f"{what} must be a data frame with the Arrow stream interface (Polars, pandas, "
            f"PyArrow, DuckDB), a dict of columns or a file, got {type(frame).__name__}"
        )
    try:
        if isinstance(frame, dict):
            return pa.table(frame)
        return pa.RecordBatchReader.from_stream(frame).read_all()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(
            f"{what} is no table: its columns must have one length, and each a type of Arrow's",
            confidential=str(error),
        ) from None


def refused_codes(what: str, column: str, kind: str) -> str:
    """The sentence for a column that cannot hold codes."""
    return (
        f"{what} column {column!r} holds {kind}; codes must be text or whole numbers "
        f"(write them as text, so that 01001 keeps its zero)"
    )


def _collected(frame: pl.LazyFrame, what: str) -> pl.DataFrame:
    try:
        return frame.collect()
    except pl.exceptions.PolarsError as error:
        failure = TableError(f"{what} cannot be computed", confidential=str(error))
    raise failure


def as_codes(frame: pl.DataFrame, columns: list[str], what: str) -> pl.DataFrame:
    """The named columns as text codes; an empty text counts as missing.

    Raises:
        TableError: a column is absent, or holds fractions, times or nested values.
    """
    for column in columns:
        if column not in frame.columns:
            known = ", ".join(frame.columns)
            raise TableError(f"{what} has no column {column!r}; it has {known}")
        kind = frame.schema[column]
        whole = kind.is_integer() or (isinstance(kind, pl.Decimal) and kind.scale == 0)
        if not (whole or kind in CODE_TYPES):
            raise TableError(refused_codes(what, column, str(kind)))
    texts = [pl.col(column).cast(pl.String) for column in columns]
    return frame.select(pl.when(text != "").then(text) for text in texts)


def in_order(frame: pl.DataFrame) -> bool:
    """Whether the rows of text codes ascend, compared by the first column first.

    Where a code is missing the answer may be False for rows that ascend.
    """
    tied = np.ones(max(len(frame) - 1, 0), dtype=bool)
    for column in frame:
        upper, lower = column[:-1], column[1:]
        if (tied & (upper > lower).fill_null(value=True).to_numpy()).any():
            return False
        tied &= upper.eq_missing(lower).to_numpy()
    return True
