"""Parquet files of a release: released counts with labels, and the noisy measurements.

Both grow as the pass finds them. ``counts/depth=K.parquet`` has one row a node with a positive
count, in tree order, with the codes of its ancestors; a node that is not listed has a count of 0.
Beside its count stand an unbiased ``estimate`` (before rounding, and where it may be negative), its
``standard_error``, and ``low`` and ``high``, the interval of the true count at 95 %.
``measurements/depth=K.parquet`` has one column, ``noisy_count``: the children of the nodes of
``counts/depth=(K-1).parquet`` (where all are measured: of all nodes below public ones with a
count), family by family, each in the order of ``domain/AXIS.parquet``. With the noise of the
manifest it can be estimated again for ever at no privacy cost. (Of a depth of kind ``summed`` these
are the weighted running sums of its bins; see `hedgerow.estimate.running_sums`.)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hedgerow.arrays import Int64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.depths import Measured, Summed
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Noisy
from hedgerow.release.directory.depth_errors import USUAL, DepthErrors
from hedgerow.release.directory.parquet_file import REAL, TEXT, WHOLE, Kind, Layout, read_parquet
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree

Part = TypeVar("Part")

ROWS_A_GROUP = 1 << 20
COUNT = "count"
ESTIMATE, STANDARD_ERROR, LOW, HIGH = "estimate", "standard_error", "low", "high"
CONTRADICTED = "contradicted"
NOISY_COUNT = "noisy_count"
FACTS: dict[str, Kind] = {
    COUNT: WHOLE,
    ESTIMATE: REAL,
    STANDARD_ERROR: REAL,
    LOW: WHOLE,
    HIGH: WHOLE,
}
NOISY_SCHEMA = pa.schema([pa.field(NOISY_COUNT, pa.int64(), nullable=False)])


@dataclass(frozen=True, slots=True)
class Shape:
    """What the files of one depth may hold.

    Attributes:
        depth: its number.
        columns: of the codes of its nodes.
        cells: how many nodes there can be.
    """

    depth: int
    columns: tuple[str, ...]
    cells: int

    @classmethod
    def of(cls, tree: Tree, depth: int) -> "Shape":
        """Return the shape of a depth of a tree."""
        return cls(depth, tuple(tree.columns(depth)), tree.nodes(depth))

    @property
    def counts(self) -> Layout:
        """Of ``counts/depth=K.parquet``: codes, the count, and how sure it is."""
        return Layout({**dict.fromkeys(self.columns, TEXT), **FACTS}, self.cells)

    @property
    def noisy(self) -> Layout:
        """Of ``measurements/depth=K.parquet``."""
        return Layout({NOISY_COUNT: WHOLE}, self.cells)


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
        self._folder, self._plan = folder, plan
        self._counts: dict[int, GrowingFile[Nodes]] = {}
        self._noisy = {
            t: GrowingFile(folder / "measurements" / f"depth={t}.parquet", NOISY_SCHEMA, _noisy)
            for t, what in enumerate(plan.depths)
            if isinstance(what, Measured | Summed)
        }

    def add(self, depth: int, nodes: Nodes, noisy: Noisy | None) -> None:
        """Append what a job found at a depth; the first one found is the total."""
        if noisy is not None:
            for first in range(0, len(noisy), ROWS_A_GROUP):
                part = cast("Int64", noisy)[first : first + ROWS_A_GROUP]
                self._noisy[depth].add(part, len(part))
        if not self._counts:
            self._open(int(nodes.counts.sum()))
        for first in range(0, len(nodes), ROWS_A_GROUP):
            few = nodes.take(slice(first, first + ROWS_A_GROUP))
            self._counts[depth].add(few, len(few))

    def _open(self, total: int) -> None:
        for t in range(self._plan.tree.depth + 1):
            self._counts[t] = GrowingFile(
                self._folder / "counts" / f"depth={t}.parquet",
                count_schema(self._plan.tree, t),
                partial(_labelled, self._plan.tree, t, DepthErrors.of(self._plan, t, total)),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        files: list[GrowingFile[Any]] = [*self._counts.values(), *self._noisy.values()]
        for file in files:
            if kind is None:
                file.close()
            else:
                file.abandon()


def count_schema(tree: Tree, depth: int) -> pa.Schema:
    """Return the columns of ``counts/depth=K.parquet``: codes, the count, and how sure it is."""
    kinds = dict.fromkeys(tree.columns(depth), pa.string())
    kinds |= {COUNT: pa.int64(), ESTIMATE: pa.float64(), STANDARD_ERROR: pa.float64()}
    kinds |= {LOW: pa.int64(), HIGH: pa.int64()}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])


def _noisy(parts: list[Int64]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(np.concatenate(parts))], schema=NOISY_SCHEMA)


def _labelled(tree: Tree, depth: int, errors: DepthErrors, parts: list[Nodes]) -> pa.Table:
    """Nodes of a depth with their labels and counts, as `count_schema` describes."""
    nodes = Nodes.concatenate(parts)
    columns: list[Any] = []
    for axis, codes, level in zip(tree.axes, nodes.codes, tree.cuboid(depth), strict=True):
        columns += [text.to_arrow().cast(pa.string()) for text in axis.path(level, codes)]
    values = released_columns(nodes, errors, USUAL).values()
    columns += [pa.array(column) for column in values]
    return pa.Table.from_arrays(columns, schema=count_schema(tree, depth))


def released_columns(
    nodes: Nodes, errors: DepthErrors, confidence: Confidence
) -> dict[str, NDArray[Any]]:
    """Return the columns of released counts but their labels, by name."""
    low, high = errors.interval(nodes.estimate, nodes.variance, confidence)
    return {
        COUNT: nodes.counts,
        ESTIMATE: nodes.estimate,
        STANDARD_ERROR: np.sqrt(nodes.variance),
        LOW: low,
        HIGH: high,
    }


def write_domain(path: Path, axis: Axis) -> None:
    """Write the public list of an axis: one row a leaf in tree order, one column a level."""
    schema = pa.schema([pa.field(level, pa.string(), nullable=False) for level in axis.levels])
    leaves = axis.size(axis.depth)
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as writer:
        for first in range(0, leaves, ROWS_A_GROUP):
            few = np.arange(first, min(first + ROWS_A_GROUP, leaves), dtype=np.int32)
            columns = [text.to_arrow().cast(pa.string()) for text in axis.path(axis.depth, few)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


def counts_file(depth: int) -> str:
    """Return the released counts of a depth, in a release directory."""
    return f"counts/depth={depth}.parquet"


def noisy_file(depth: int) -> str:
    """Return the noisy counts of a depth, in a release directory."""
    return f"measurements/depth={depth}.parquet"


def read_counts(folder: Path, shape: Shape) -> pl.DataFrame:
    """Return the released counts of a depth: codes, counts, estimates, standard errors, intervals.

    Raises:
        ReleaseError: the file is damaged, or has other columns or more rows than the depth.
    """
    return read_parquet(folder, counts_file(shape.depth), shape.counts)


def read_noisy(folder: Path, shape: Shape) -> Int64:
    """Return the noisy counts of a depth: int64 (measured cells).

    Raises:
        ReleaseError: the file is damaged, or has other columns or more rows than the depth.
    """
    noisy = read_parquet(folder, noisy_file(shape.depth), shape.noisy)[NOISY_COUNT]
    if noisy.null_count():
        raise ReleaseError(f"the noisy counts of depth {shape.depth} are not all there")
    return noisy.to_numpy()
