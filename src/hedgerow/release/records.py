"""A released table as records: a row for every record that was counted, batch by batch."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from hedgerow.arrays import Levels
from hedgerow.errors import ReleaseError
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.measurements import COUNT
from hedgerow.release.directory.stored import Content

ROWS_AT_ONCE = 1 << 18
"""Records, and counts that they are made of, in memory at a time."""


def only_table(plan: Plan) -> Levels:
    """Return the released table of a plan.

    Raises:
        ReleaseError: there are several, and a record of one is none of another.
    """
    if len(plan.tables) > 1:
        names = " and ".join(repr(plan.tree.name_of(table)) for table in plan.tables)
        raise ReleaseError(
            f"records of which table? This release has {names}; name one: records(name) or --level"
        )
    return plan.tables[0]


def records_of(content: Content, levels: Levels, rows: int) -> Iterator[pl.DataFrame]:
    """Return the records of a cuboid, in tree order, at most ``rows`` in a frame.

    Raises:
        ReleaseError: the cuboid has no columns; while it is read, its counts are damaged.
    """
    columns = content.plan.tree.columns_of(levels)
    if not columns:
        raise ReleaseError(
            f"the total has no codes, and its {content.total:,} records are all alike; name a "
            "finer cuboid"
        )
    return _records(content, levels, rows)


def _records(content: Content, levels: Levels, rows: int) -> Iterator[pl.DataFrame]:
    done = 0
    total = content.total
    columns = content.plan.tree.columns_of(levels)
    for part in content.parts(levels, rows):
        for frame in repeated(part, rows):
            done += len(frame)
            yield frame
    if done != total:
        raise ReleaseError(
            f"the counts of {content.plan.tree.name_of(levels)!r} sum to {done:,}, and "
            f"{total:,} records were released: run hedgerow check"
        )
    if not done:
        yield pl.DataFrame(schema=dict.fromkeys(columns, pl.String))


def repeated(part: pl.DataFrame, rows: int) -> Iterator[pl.DataFrame]:
    """Yield each row of a table as often as its count says, at most ``rows`` at a time.

    Raises:
        ReleaseError: a count or code is missing, or a count is not above 0.
    """
    labels = part.drop(COUNT)
    counts = part[COUNT].to_numpy()
    ends = np.cumsum(counts)  # where a sum passes 2^63 it falls below the one before
    if part.null_count().sum_horizontal()[0] or (counts <= 0).any() or (ends <= 0).any():
        raise ReleaseError("a count or code is missing, or not above 0: run hedgerow check")
    start = np.concatenate([[0], ends])
    for first in range(0, int(start[-1]), rows):
        stop = min(first + rows, int(start[-1]))
        low = int(np.searchsorted(ends, first, side="right"))
        high = int(np.searchsorted(ends, stop, side="left")) + 1
        times = np.diff(np.clip(start[low : high + 1], first, stop))
        yield labels[np.repeat(np.arange(low, high), times)]
