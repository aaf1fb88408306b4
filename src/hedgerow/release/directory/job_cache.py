"""Finished jobs on disk: what a resumed release need not do again.

They lie in the staging folder, one file a run of jobs, under the one release key of that folder: a
file appears whole, in one rename, once it has reached the disk; what was half written is written
again, with the same noise. Inside are the survivors of each cuboid with their released counts, and
the noisy counts: nothing that the release will not show.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import cast

import polars as pl
import pyarrow as pa

from hedgerow.arrays import Array, Levels, int64
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.release.descent.jobs import JobCache, Told
from hedgerow.release.descent.nodes import Found, Nodes, Noisy
from hedgerow.release.directory.keys import sync

UNFINISHED = ".unfinished"
END = b"the end\n"
ROWS_A_BATCH = 1 << 20
ROWS_WORTH_COMPRESSING = 1 << 15
COMPRESSED = pa.ipc.IpcWriteOptions(
    compression="lz4"
)  # read once and thrown away: quick, not small
METADATA = (b"levels", b"measured")
VALUES = ("count", "estimate", "variance")


@frozen
class DiskCache(JobCache):
    """Finished jobs below one folder; a job that is found there is not run again.

    Attributes:
        folder: of this key's jobs alone.
    """

    folder: Path

    def up(self, jobs: range, work: Callable[[], Told]) -> Told:
        """Return what these jobs tell of their roots: arrays of one length."""
        path = self._path("up", jobs)
        if not path.exists():
            results = work()
            with _written_whole(path) as file:
                _write(file, pa.table({f"told{i}": each for i, each in enumerate(results)}))
        with _opened(path) as file:
            table = pa.ipc.open_stream(file).read_all()
        return cast("Told", tuple(column.to_numpy() for column in table.columns))

    def down(self, jobs: range, results: Iterator[Found]) -> Iterable[Found]:
        """Return the results of these jobs, to be read one cuboid at a time."""
        path = self._path("down", jobs)
        seconds = []
        if not path.exists():
            with _written_whole(path) as file:
                for result in _in_batches(results):
                    seconds.append(result.seconds)
                    _write(file, _survivors(result))
                    if result.noisy is not None:
                        narrow = pl.Series(result.noisy).shrink_dtype()
                        _write(file, pa.table({"noisy": narrow.to_arrow()}))
        return _Results(path, seconds)

    def _path(self, way: str, jobs: range) -> Path:
        return self.folder / f"{way}-{jobs.start:09d}-{jobs.stop:09d}.arrow"


@frozen
class _Results:
    """The results in a file, read anew at each iteration; with the seconds of those just made."""

    path: Path
    seconds: Sequence[float]

    def __iter__(self) -> Iterator[Found]:
        with _opened(self.path) as file:
            size = file.size() - len(END)
            for i in count():
                if file.tell() >= size:
                    return
                table = pa.ipc.open_stream(file).read_all()
                levels, measured = (json.loads(table.schema.metadata[name]) for name in METADATA)
                noisy: Noisy | None = None
                if measured:
                    kept = pa.ipc.open_stream(file).read_all()["noisy"]
                    noisy = int64(kept.to_numpy())
                seconds = self.seconds[i] if self.seconds else 0.0
                yield Found(tuple(levels), _nodes(table), noisy, seconds)


def _in_batches(results: Iterable[Found]) -> Iterator[Found]:
    """Yield the same results in larger pieces: those of one cuboid end to end."""
    waiting: dict[Levels, list[Found]] = {}
    rows = 0
    for result in results:
        waiting.setdefault(result.levels, []).append(result)
        rows += len(result.nodes) + (0 if result.noisy is None else len(result.noisy))
        if rows >= ROWS_A_BATCH:
            yield from map(Found.concatenate, waiting.values())
            waiting, rows = {}, 0
    yield from map(Found.concatenate, waiting.values())


def _survivors(result: Found) -> pa.Table:
    nodes = result.nodes
    columns = {f"code{a}": pa.array(code) for a, code in enumerate(nodes.codes)}
    values: tuple[Array, ...] = nodes.counts, nodes.estimate, nodes.variance
    columns |= {name: pa.array(value) for name, value in zip(VALUES, values, strict=True)}
    header = (result.levels, result.noisy is not None)
    metadata = dict(zip(METADATA, map(json.dumps, header), strict=True))
    return pa.table(columns).replace_schema_metadata(metadata)


def _nodes(table: pa.Table) -> Nodes:
    *codes, counts, estimate, variance = (column.to_numpy() for column in table.columns)
    return Nodes(tuple(codes), counts, estimate, variance)


def _write(file: pa.NativeFile, table: pa.Table) -> None:
    options = COMPRESSED if table.num_rows >= ROWS_WORTH_COMPRESSING else None
    with pa.ipc.new_stream(file, table.schema, options=options) as writer:
        writer.write_table(table, ROWS_A_BATCH)


@contextmanager
def _written_whole(path: Path) -> Iterator[pa.NativeFile]:
    """Open a file that appears whole, once it has reached the disk, or not at all."""
    unfinished = path.with_suffix(UNFINISHED)
    with machine_errors(f"cannot write to {str(path.parent)!r}"):
        with pa.OSFile(str(unfinished), "wb") as file:
            yield file
            file.write(END)
        sync(unfinished)
        unfinished.rename(path)


@contextmanager
def _opened(path: Path) -> Iterator[pa.NativeFile]:
    """Open the file of finished jobs."""
    try:
        _check_end(path)
        with pa.OSFile(str(path)) as file:
            yield file
    except (pa.ArrowInvalid, OSError, KeyError, TypeError) as error:
        raise ReleaseError(
            f"{str(path)!r} is damaged; delete it, and its jobs are redone with the same noise"
        ) from error


def _check_end(path: Path) -> None:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - len(END)))
        if file.read() != END:
            raise pa.ArrowInvalid("the end is missing")
