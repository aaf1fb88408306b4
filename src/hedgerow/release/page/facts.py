"""What the files of counts say of each depth, read piece by piece: sums, sizes, errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.plan.depths import Public
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.depth_errors import Certainty, certainty
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    Shape,
    counts_file,
)
from hedgerow.release.directory.parquet_file import opened, rows_of

MOST_ROWS = 5_000_000
"""Rows that are read at a depth; of larger ones the page says how many they are, no more."""

ROWS_A_PIECE = 1 << 18
CLASSES = 19
"""Sizes of counts by their number of digits."""


@dataclass(frozen=True, eq=False)
class DepthFacts:
    """What the file of one depth says.

    Attributes:
        listed: how many counts it lists.
        total: their sum, records; None where there are too many to read.
        number: int64 (19): how many counts have 1, 2, … digits.
        relative: float64 (19): the sum of their standard errors, each over its count.
        contradicted: how many counts their own measurements contradict, of those that were read.
    """

    listed: int
    total: int | None
    number: NDArray[np.int64]
    relative: NDArray[np.float64]
    contradicted: int = 0


def depth_facts(folder: Path, plan: Plan) -> list[DepthFacts]:
    """For each depth what its file says.

    Raises:
        ReleaseError: counts that are not above 0, intervals that are none, public counts that are
            not exact, or depths that do not sum to the same total.
    """
    found: list[DepthFacts] = []
    described, whole = plan.to_dict(), None
    for t, what in enumerate(plan.depths):
        known, shape = certainty(described, t, whole), Shape.of(plan.tree, t)
        found.append(_facts(folder, shape, known, is_public=isinstance(what, Public)))
        whole = found[0].total
    for t, facts in enumerate(found):
        if facts.total is not None and facts.total != found[0].total:
            raise ReleaseError(f"the counts of depth {t} do not sum to the total of depth 0")
    return found


def _facts(folder: Path, shape: Shape, known: Certainty, *, is_public: bool) -> DepthFacts:
    number, relative = np.zeros(CLASSES, dtype=np.int64), np.zeros(CLASSES)
    total, contradicted = 0, 0
    columns = [COUNT, ESTIMATE, STANDARD_ERROR, LOW, HIGH]
    depth, name = shape.depth, counts_file(shape.depth)
    listed = rows_of(folder, name, shape.counts)
    if listed > MOST_ROWS:
        return DepthFacts(listed, None, number, relative)
    for piece in _pieces(folder, name, shape, columns):
        count, estimate, error, low, high = (piece[name].to_numpy() for name in columns)
        if (count <= 0).any() or (low < 0).any() or (high < low).any():
            raise ReleaseError(f"depth {depth} has a count or an interval that is none")
        if is_public and not (np.array_equal(low, high) and np.array_equal(low, count)):
            raise ReleaseError(f"depth {depth} is public, but some counts are not exact")
        total += int(count.sum())
        contradicted += int(known.contradicted(count, estimate, error**2).sum())
        digits = np.searchsorted(10 ** np.arange(1, CLASSES), count, side="right")
        number += np.bincount(digits, minlength=CLASSES)
        relative += np.bincount(digits, error / count, CLASSES)
    return DepthFacts(listed, total, number, relative, contradicted)


def _pieces(folder: Path, name: str, shape: Shape, columns: list[str]) -> Iterator[pl.DataFrame]:
    """Some columns of the files, a piece at a time."""
    with opened(folder, name, shape.counts) as files:
        for file in files:
            for batch in file.iter_batches(ROWS_A_PIECE, columns=columns):
                yield pl.DataFrame(batch)  # PyArrow's own to_numpy would import pandas
