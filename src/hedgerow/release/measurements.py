"""Parquet files of a release: released counts with labels, and the noisy measurements.

Both grow as the pass finds them. ``counts/depth=K.parquet`` has one row a node with a positive
count, in tree order, with the codes of its ancestors; a node that is not listed has a count of 0.
``measurements/depth=K.parquet`` has one column, ``noisy_count``: the children of the nodes of
``counts/depth=(K-1).parquet``, family by family, each family in the order of
``domain/AXIS.parquet``. It is written down before anything is estimated from it, and with the
noise variance in the manifest it can be re-estimated for ever at no privacy cost.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hedgerow.plan.depths import Measured
from hedgerow.plan.plan import Plan
from hedgerow.tables.axis import Axis
from hedgerow.tables.order import Codes, join
from hedgerow.tables.tree import Tree

Int64 = NDArray[np.int64]
Part = TypeVar("Part")

ROWS_A_GROUP = 1 << 20
COUNT = "count"
NOISY_COUNT = "noisy_count"
NOISY_SCHEMA = pa.schema([pa.field(NOISY_COUNT, pa.int64(), nullable=False)])


class GrowingFile(Generic[Part]):
    """A Parquet file that takes parts as they come and writes them in large row groups."""

    def __init__(
        self, path: Path, schema: pa.Schema, build: Callable[[list[Part]], pa.Table]
    ) -> None:
        self._writer = pq.ParquetWriter(path, schema, compression="zstd", store_schema=False)
        self._build = build
        self._waiting: list[Part] = []
        self._rows = 0

    def add(self, part: Part, rows: int) -> None:
        """Append rows."""
        self._waiting.append(part)
        self._rows += rows
        if self._rows >= ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._build(self._waiting), row_group_size=ROWS_A_GROUP)
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        """Write what waits and the footer."""
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close without a care for what waits; the file will be thrown away."""
        self._rows = 0
        self._writer.close()


class ReleaseFiles:
    """The growing files of all depths of a release below one folder."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        for name in ("counts", "measurements", "domain"):
            (folder / name).mkdir()
        for axis in plan.tree.axes:
            write_domain(folder / "domain" / f"{axis.name}.parquet", axis)
        self._counts = {
            t: GrowingFile(
                folder / "counts" / f"depth={t}.parquet",
                count_schema(plan.tree, t),
                partial(_labelled, plan.tree, t),
            )
            for t in range(plan.tree.depth + 1)
        }
        self._noisy = {
            t: GrowingFile(folder / "measurements" / f"depth={t}.parquet", NOISY_SCHEMA, _noisy)
            for t, what in enumerate(plan.depths)
            if isinstance(what, Measured)
        }

    def add(self, depth: int, codes: Codes, counts: Int64, noisy: Int64 | None) -> None:
        """Append what a job found at a depth."""
        if noisy is not None:
            self._noisy[depth].add(noisy, len(noisy))
        self._counts[depth].add((codes, counts), len(counts))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for file in (*self._counts.values(), *self._noisy.values()):
            if kind is None:
                file.close()
            else:
                file.abandon()


def count_schema(tree: Tree, depth: int) -> pa.Schema:
    """The columns of ``counts/depth=K.parquet``: codes, then the count."""
    labels = [pa.field(name, pa.string(), nullable=False) for name in tree.columns(depth)]
    return pa.schema([*labels, pa.field(COUNT, pa.int64(), nullable=False)])


def _noisy(parts: list[Int64]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(np.concatenate(parts))], schema=NOISY_SCHEMA)


def _labelled(tree: Tree, depth: int, parts: list[tuple[Codes, Int64]]) -> pa.Table:
    """Nodes of a depth with their labels and counts, as `count_schema` describes."""
    codes, counts = join(parts)
    schema = count_schema(tree, depth)
    columns: list[Any] = []
    for axis, nodes, level in zip(tree.axes, codes, tree.cuboid(depth), strict=True):
        columns += [text.to_arrow().cast(pa.string()) for text in axis.path(level, nodes)]
    return pa.Table.from_arrays([*columns, pa.array(counts)], schema=schema)


def write_domain(path: Path, axis: Axis) -> None:
    """The public list of an axis: one row a leaf in tree order, one column a level."""
    leaves = np.arange(axis.size(axis.depth), dtype=np.int32)
    columns = [text.to_arrow().cast(pa.string()) for text in axis.path(axis.depth, leaves)]
    schema = pa.schema([pa.field(level, pa.string(), nullable=False) for level in axis.levels])
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def read_counts(folder: Path, depth: int) -> pl.DataFrame:
    """The released counts of a depth: codes and ``count``."""
    return read_parquet(folder / "counts" / f"depth={depth}.parquet")


def read_noisy(folder: Path, depth: int) -> Int64:
    """The noisy counts of a depth: int64 (measured cells)."""
    return read_parquet(folder / "measurements" / f"depth={depth}.parquet")[NOISY_COUNT].to_numpy()


def read_parquet(path: Path) -> pl.DataFrame:
    """One Parquet file, whatever its name and however damaged.

    Read by PyArrow: Polars takes ``[1]`` in a path for a pattern, and panics on some damage.
    """
    with pq.ParquetFile(path) as file:
        return pl.DataFrame(file.read())
