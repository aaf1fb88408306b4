"""Parquet files of a release, which anyone may have written: read where they are what they must be.

A few kilobytes can stand for a billion rows, or for one long code in each of a million. So before a
page is read, columns, rows and bytes are compared with what the tree has room for: the rows of the
footer, and the headers of all pages, which say what reading them takes.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from hedgerow.declared import frozen
from hedgerow.errors import HedgerowError, MachineError, ReleaseError
from hedgerow.limits import MOST_COLUMNS_OF_A_FILE, MOST_DICTIONARY, MOST_FOOTER
from hedgerow.release.directory.manifest import part_files
from hedgerow.release.preflight import available_memory
from hedgerow.tables.sources.parquet_pages import (
    PLAIN,
    PLAIN_DICTIONARY,
    RLE_DICTIONARY,
    bytes_of_chunk,
)
from hedgerow.text import visible

ROWS_A_GROUP = 1 << 20
TEXT, WHOLE, REAL = pl.String, pl.Int64, pl.Float64
PHYSICAL = {TEXT: "BYTE_ARRAY", WHOLE: "INT64", REAL: "DOUBLE"}
LEAST_BYTES = 12
SURELY_FREE = 1 << 20
"""Bytes of memory for which the machine is not asked how much it has."""
ENCODINGS = {PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY}
"""Those that our writer knows; others make much of little (a delta of long prefixes)."""
BYTES_A_VALUE = {TEXT: 16, WHOLE: 8, REAL: 8}
"""In memory; of a text beside its letters."""

Kind = type[pl.String] | type[pl.Int64] | type[pl.Float64]


@frozen
class Layout:
    """What a file of a release may hold.

    Attributes:
        columns: names and kinds, in their order.
        most: rows.
    """

    columns: Mapping[str, Kind]
    most: int


def schema_of(kinds: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the schema of columns that are all there in every row."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])


def write_frame(path: Path, frame: pl.DataFrame) -> None:
    """Write a public table of texts and whole numbers."""
    kinds = {k: pa.string() if v == TEXT else pa.int64() for k, v in frame.schema.items()}
    schema = schema_of(kinds)
    with pq.ParquetWriter(path, schema, compression="zstd", store_schema=False) as file:
        for few in frame.iter_slices(ROWS_A_GROUP):
            columns = [few[name].to_arrow().cast(kind) for name, kind in kinds.items()]
            file.write_table(pa.Table.from_arrays(columns, schema=schema))


def read_parquet(folder: Path, name: str, layout: Layout) -> pl.DataFrame:
    """Return one Parquet file of a release directory, or its parts in their order.

    Read by PyArrow: Polars takes ``[1]`` in a path for a pattern, and panics on some damage.

    Raises:
        ReleaseError: it is damaged, or holds anything else.
        MachineError: there is not enough memory for it.
    """
    with opened(folder, name, layout) as files, _readable(name):
        tables = [file.read() for file in files]
        frame = pl.DataFrame(pa.concat_tables(tables))
        return frame.cast(dict(layout.columns))  # type: ignore[arg-type]


def read_batches(
    folder: Path, name: str, layout: Layout, columns: Sequence[str], rows: int
) -> Iterator[pl.DataFrame]:
    """Yield some columns of a Parquet file, at most so many rows at a time, one group in memory.

    Raises:
        ReleaseError, MachineError: as `read_parquet`; groups that were read before were yielded.
    """
    kinds = {column: layout.columns[column] for column in columns}
    with opened(folder, name, layout, grouped=True) as files:
        for file in files:
            batches = file.iter_batches(rows, columns=list(columns))
            while True:
                with _readable(name):
                    batch = next(batches, None)
                    if batch is None:
                        break
                    frame = pl.DataFrame(pa.Table.from_batches([batch]))
                    frame = frame.select(columns).cast(kinds)  # type: ignore[arg-type]
                yield frame


@contextmanager
def opened(
    folder: Path, name: str, layout: Layout, *, grouped: bool = False
) -> Iterator[list[pq.ParquetFile]]:
    """Open the parts of a file, to be read: what they hold fits, and there is memory for it.

    With ``grouped`` for the largest of its row groups: they are read one after the other.
    """
    with ExitStack() as stack:
        files = []
        rows = 0
        needed = 0
        for path in part_files(folder, name):
            with _readable(name):
                about = _footer(path, layout, rows)
                rows, groups = rows + about.num_rows, _bytes_of(path, about, layout)
                needed = max([needed, *groups]) if grouped else needed + sum(groups)
                files.append(stack.enter_context(pq.ParquetFile(path)))
        free = available_memory() if needed > SURELY_FREE else None
        if free is not None and needed > free:
            raise MachineError(
                f"{name} takes {needed / 1e9:,.1f} GB of memory, and only {free / 1e9:,.1f} GB are "
                f"free; use a larger machine"
            )
        yield files


def rows_of(folder: Path, name: str, layout: Layout) -> int:
    """Return how many rows a file of a release directory has, or its parts together.

    Raises:
        ReleaseError: more than it may, or it is damaged.
    """
    rows = 0
    for path in part_files(folder, name):
        with _readable(name):
            rows += _footer(path, layout, rows).num_rows
    return rows


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Whatever breaks on the way in, as one sentence."""
    try:
        yield
    except HedgerowError as error:
        kind = MachineError if isinstance(error, MachineError) else ReleaseError
        raise kind(f"{name}: {error}" if name not in str(error) else str(error)) from None
    except MemoryError as error:
        raise MachineError(f"{name} cannot be read: out of memory") from error
    except PermissionError as error:
        raise MachineError(f"no permission to read {name}") from error
    except Exception as error:
        raise ReleaseError(f"{name} is damaged ({type(error).__name__})") from error


def _footer(path: Path, layout: Layout, before: int) -> pq.FileMetaData:
    """Return the footer of a file, whose columns and rows fit, after some rows before it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 8))
        length = int.from_bytes(file.read(4), "little")
    if size < LEAST_BYTES or length > min(size, MOST_FOOTER):
        raise ReleaseError("it is no Parquet file")
    about = pq.read_metadata(path)
    _check_columns(about, layout)
    rows = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
    if sum(rows) != about.num_rows or min(rows, default=0) < 0:
        raise ReleaseError("its footer contradicts itself")
    if before + sum(rows) > layout.most:
        raise ReleaseError(
            f"it has {before + sum(rows):,} rows, and the plan has room for {layout.most:,}"
        )
    return about


def _check_columns(about: pq.FileMetaData, layout: Layout) -> None:
    columns = [
        about.schema.column(i) for i in range(min(about.num_columns, MOST_COLUMNS_OF_A_FILE))
    ]
    fits = about.num_columns == len(layout.columns) and all(
        column.path == name
        and column.physical_type == PHYSICAL[kind]
        and column.max_repetition_level == 0
        and (kind is not TEXT or column.logical_type.type == "STRING")
        for column, (name, kind) in zip(columns, layout.columns.items(), strict=True)
    )
    if not fits:
        named = ", ".join(column.path for column in columns)
        raise ReleaseError(
            f"its columns are {visible(named[:200])}, and the plan's are "
            f"{', '.join(layout.columns)[:200]}, as whole numbers, numbers or text"
        )


def _bytes_of(path: Path, about: pq.FileMetaData, layout: Layout) -> list[int]:
    """Return the most bytes of memory that each row group takes, by the headers of its pages."""
    needed = []
    with path.open("rb") as file:
        for group in range(about.num_row_groups):
            here = about.row_group(group)
            size = 0
            for column, kind in enumerate(layout.columns.values()):
                size += here.num_rows * BYTES_A_VALUE[kind]
                size += bytes_of_chunk(
                    file, here.column(column), here.num_rows, MOST_DICTIONARY, ENCODINGS
                )
            needed.append(size)
    return needed
