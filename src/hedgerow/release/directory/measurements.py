"""Parquet files of a release: released counts with labels, and the noisy measurements.

Both grow as the pass finds them. A file is called by its cuboid: the level of each axis, 0 for one
that is summed over. ``counts/cuboid=2-3.parquet`` has one row a node with a positive count, in tree
order, with the codes of its ancestors; a node that is not listed has a count of 0. Beside its count
stand an unbiased ``estimate`` (before rounding, and where it may be negative), its
``standard_error``, and ``low`` and ``high``, the interval of the true count at 95 %.
``measurements/cuboid=2-3.parquet`` has one column, ``noisy_count``: the children of the nodes of
the cuboid above it in the chain (where all are measured: of all nodes below public ones with a
count), family by family, each in the order of ``domain/AXIS.parquet``. Along a spine these are the
cells that public facts do not rule out in the order of `hedgerow.estimate.spine.cells.Cells`: node
by node of the spine, group by group, then the cells within; of named cuboids the groups may be
those of a later axis, and `hedgerow.release.release.Release.measurements` returns all row by row.
With the noise of the manifest it can be estimated again for ever at no privacy cost. (Of a cuboid
of kind ``summed`` these are the weighted running sums of its bins; see
`hedgerow.estimate.running_sums`.)
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.arrays import Array, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes, Noisy
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.directory.parquet_file import (
    REAL,
    ROWS_A_GROUP,
    TEXT,
    WHOLE,
    Kind,
    Layout,
    read_parquet,
    rows_of,
    schema_of,
    write_frame,
)
from hedgerow.release.directory.public_files import write_facts
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.areas import names_frame
from hedgerow.tables.tree import Tree

Part = TypeVar("Part")

COUNTS, MEASUREMENTS = "counts", "measurements"
ROWS_AT_ONCE = 1 << 16
"""Rows of a column that are encoded at once: statistics of a dictionary's take long for each."""
COUNT = "count"
ESTIMATE, STANDARD_ERROR, LOW, HIGH = "estimate", "standard_error", "low", "high"
ERROR_OF_ESTIMATE = "standard_error_of_estimate"
"""What `STANDARD_ERROR` is called where no `ESTIMATE` stands before it."""
CONTRADICTED = "contradicted"
NOISY_COUNT, VARIANCE = "noisy_count", "variance"
FACTS: dict[str, Kind] = {
    COUNT: WHOLE,
    ESTIMATE: REAL,
    STANDARD_ERROR: REAL,
    LOW: WHOLE,
    HIGH: WHOLE,
}
NOISY: dict[str, Kind] = {NOISY_COUNT: WHOLE}
NOISY_SCHEMA = schema_of({NOISY_COUNT: pa.int64()})


def counts_layout(tree: Tree, levels: Levels) -> Layout:
    """Return what the file of a cuboid's counts may hold: codes, the count, and how sure it is."""
    return Layout({**dict.fromkeys(tree.columns_of(levels), TEXT), **FACTS}, tree.cells(levels))


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """Return the writer of a file; it seeks no values twice in texts and estimates: few are."""
    shared = [each.name for each in schema if each.type != pa.string() and each.name != ESTIMATE]
    return pq.ParquetWriter(
        path, schema, compression="zstd", store_schema=False, use_dictionary=shared,
        write_batch_size=ROWS_AT_ONCE,
    )  # fmt: skip


class GrowingFile(Generic[Part]):
    """A Parquet file that takes parts as they come and writes them in large row groups.

    Attributes:
        rows: how many it has been given.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, build: Callable[[list[Part]], pa.Table]
    ) -> None:
        self._writer = parquet_writer(path, schema)
        self._build = build
        self._waiting: list[Part] = []
        self._written = 0
        self.rows = 0

    def add(self, part: Part, rows: int) -> None:
        """Append rows."""
        self._waiting.append(part)
        self.rows += rows
        if self.rows - self._written >= ROWS_A_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self.rows > self._written:
            self._writer.write_table(self._build(self._waiting), row_group_size=ROWS_A_GROUP)
        self._waiting, self._written = [], self.rows

    def close(self, *, is_whole: bool) -> None:
        """Write what waits, unless the file will be thrown away, and the footer."""
        if is_whole:
            self._flush()
        self._writer.close()


class CuboidFiles:
    """The growing files of cuboids below one folder, with their counts and noisy counts.

    Attributes:
        counts: of the cuboids that have a file of counts.
        noisy: likewise of noisy counts.
    """

    def __init__(self, folder: Path, tree: Tree, errors: Mapping[Levels, CuboidErrors]) -> None:
        for name in (COUNTS, MEASUREMENTS):
            (folder / name).mkdir()
        self.counts: dict[Levels, GrowingFile[Nodes]] = {}
        self.noisy: dict[Levels, GrowingFile[Int64]] = {}
        self._folder = folder
        self._tree = tree
        self._errors = errors

    def open_counts(self, levels: Levels) -> None:
        """Begin a cuboid's file of counts, unless it is there."""
        if levels not in self.counts:
            schema = count_schema(self._tree, levels)
            build = partial(_labelled, self._tree, levels, self._errors[levels])
            self.counts[levels] = GrowingFile(self._folder / counts_file(levels), schema, build)

    def open_noisy(self, levels: Levels) -> None:
        """Begin a cuboid's file of noisy counts, unless it is there."""
        if levels not in self.noisy:
            path = self._folder / noisy_file(levels)
            self.noisy[levels] = GrowingFile(path, NOISY_SCHEMA, _noisy)

    def add_noisy(self, levels: Levels, noisy: Noisy) -> None:
        """Append noisy counts of a cuboid."""
        self.open_noisy(levels)
        for first in range(0, len(noisy), ROWS_A_GROUP):
            part = cast("Int64", noisy)[first : first + ROWS_A_GROUP]
            if len(part) < len(noisy):
                part = part.copy()  # a few rows that wait must not keep all of them in memory
            self.noisy[levels].add(part, len(part))

    def add(self, levels: Levels, nodes: Nodes, noisy: Noisy | None) -> None:
        """Append what a job found of a cuboid."""
        if noisy is not None:
            self.add_noisy(levels, noisy)
        self.open_counts(levels)
        for first in range(0, len(nodes), ROWS_A_GROUP):
            few = nodes.take(slice(first, first + ROWS_A_GROUP))
            self.counts[levels].add(few, len(few))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        files: list[GrowingFile[Any]] = [*self.counts.values(), *self.noisy.values()]
        for file in files:
            file.close(is_whole=kind is None)


class ReleaseFiles(CuboidFiles):
    """The growing files of all cuboids of a release, beside its public lists."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self._plan = plan
        self._each = dict[Levels, CuboidErrors]()
        super().__init__(folder, plan.tree, self._each)
        (folder / "domain").mkdir()
        for axis in plan.tree.axes:
            write_domain(folder / "domain" / f"{axis.name}.parquet", axis)
        write_facts(folder, plan.facts)
        for levels in plan.measured:
            self.open_noisy(levels)

    def add(self, levels: Levels, nodes: Nodes, noisy: Noisy | None) -> None:
        """Append what a job found of a cuboid; the first nodes are the total."""
        if not self._each:
            total = int(nodes.counts.sum())
            for every in self._plan.levels:
                self._each[every] = CuboidErrors.of(self._plan, every, total)
                self.open_counts(every)
        super().add(levels, nodes, noisy)


def count_schema(tree: Tree, levels: Levels) -> pa.Schema:
    """Return the columns of a file of counts: codes, the count, and how sure it is."""
    axes = zip(tree.axes, levels, strict=True)
    texts = (kind for axis, level in axes for kind in axis.kinds(level))
    kinds = dict(zip(tree.columns_of(levels), texts, strict=True))
    facts = {name: pa.int64() if kind is WHOLE else pa.float64() for name, kind in FACTS.items()}
    return schema_of(kinds | facts)


def _noisy(parts: list[Int64]) -> pa.Table:
    return pa.Table.from_arrays([pa.array(np.concatenate(parts))], schema=NOISY_SCHEMA)


def _labelled(tree: Tree, levels: Levels, errors: CuboidErrors, parts: list[Nodes]) -> pa.Table:
    """Nodes of a cuboid with their labels and counts, as `count_schema` describes."""
    nodes = Nodes.concatenate(parts)
    columns = []
    for axis, codes, level in zip(tree.axes, nodes.codes, levels, strict=True):
        columns += axis.rows(level, codes)
    values = released_columns(nodes, errors, USUAL).values()
    columns += [pa.array(column) for column in values]
    return pa.Table.from_arrays(columns, schema=count_schema(tree, levels))


def released_columns(
    nodes: Nodes, errors: CuboidErrors, confidence: Confidence
) -> dict[str, Array]:
    """Return the columns of released counts but their labels, by name."""
    estimate = nodes.estimate
    variance = nodes.variance
    low, high = errors.interval(estimate, variance, confidence)
    error = np.sqrt(variance)
    return {COUNT: nodes.counts, ESTIMATE: estimate, STANDARD_ERROR: error, LOW: low, HIGH: high}


def write_domain(path: Path, axis: Axis) -> None:
    """Write the public list of an axis: one row a leaf in tree order, one column a level.

    Of a product axis there is one column for each column of its lists.
    """
    columns_of = axis.levels if axis.product is None else axis.columns
    schema = schema_of(dict(zip(columns_of, axis.kinds(axis.depth), strict=True)))
    leaves = axis.leaves
    with parquet_writer(path, schema) as writer:
        for first in range(0, leaves, ROWS_A_GROUP):
            few = np.arange(first, min(first + ROWS_A_GROUP, leaves), dtype=np.int32)
            columns = axis.rows(axis.depth, few)
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    if axis.names:
        names = names_frame(axis.labels, axis.levels, axis.names)
        write_frame(path.with_name(f"{axis.name}.names.parquet"), names)
    if axis.shapes is not None:
        text = axis.shapes.to_json(axis.labels[axis.shapes.level - 1])
        path.with_name(f"{axis.name}.shapes.json").write_text(text, encoding="utf-8", newline="\n")


def domain_files(axis: Axis) -> list[str]:
    """Return the files of an axis in a release directory: its list, its names and shapes if any."""
    names = [f"domain/{axis.name}.names.parquet"] if axis.names else []
    shapes = [] if axis.shapes is None else [shapes_file(axis.name)]
    return [f"domain/{axis.name}.parquet", *names, *shapes]


def shapes_file(axis: str) -> str:
    """Return the file with the shapes of an axis's areas, in a release directory: TopoJSON."""
    return f"domain/{axis}.shapes.json"


def cuboid_slug(levels: Levels) -> str:
    """Return what files and folders of a cuboid are called: ``cuboid=2-3``, a level an axis."""
    return f"cuboid={'-'.join(map(str, levels))}"


def counts_file(levels: Levels) -> str:
    """Return the released counts of a cuboid, in a release directory."""
    return f"{COUNTS}/{cuboid_slug(levels)}.parquet"


def noisy_file(levels: Levels) -> str:
    """Return the noisy counts of a cuboid, in a release directory."""
    return f"{MEASUREMENTS}/{cuboid_slug(levels)}.parquet"


def read_counts(folder: Path, tree: Tree, levels: Levels) -> pl.DataFrame:
    """Return the released counts of a cuboid: codes, counts, estimates, standard errors, intervals.

    Raises:
        ReleaseError: the file is damaged, or has other columns or more rows than the cuboid.
    """
    return read_parquet(folder, counts_file(levels), counts_layout(tree, levels))


def noisy_rows(folder: Path, tree: Tree, levels: Levels) -> int:
    """Return how many noisy counts of a cuboid there are; none is read for it."""
    return rows_of(folder, noisy_file(levels), Layout(NOISY, tree.cells(levels)))


def read_noisy(folder: Path, levels: Levels, most: int) -> Int64:
    """Return the noisy counts of a cuboid: int64 (measured cells), at most so many.

    Raises:
        ReleaseError: the file is damaged, or has other columns or more rows.
    """
    noisy = read_parquet(folder, noisy_file(levels), Layout(NOISY, most))[NOISY_COUNT]
    if noisy.null_count():
        raise ReleaseError(f"the noisy counts in {noisy_file(levels)} are not all there")
    return noisy.to_numpy()
