"""The executors of a cluster: they do the jobs of a flow and write down what these find.

A shuffle brings the leaves below a run of jobs together, wherever Spark likes, and beside them what
the driver knows of these jobs. They are done there, by the very flow of the local engine, and what
they find goes straight into files. A task that is run twice draws the same noise under the key of
the release, so it writes the same files. On other data the same noise would give both away: so each
run also says which records it saw, and a table that changed between two readings is never
published.
"""

import json
import pickle
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from hedgerow.arrays import CellNumbers, Int64, Levels, Sizes, int32, run_of
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError, outside_limits
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import (
    Flow,
    Jobs,
    OnFraction,
    Progress,
    Told,
    equal_runs,
    joined,
)
from hedgerow.release.descent.nodes import NOWHERE, Found, JobRoots
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.keys import sync
from hedgerow.release.directory.measurements import (
    COUNTS,
    MEASUREMENTS,
    CuboidFiles,
    cuboid_slug,
)
from hedgerow.spark.session import (
    FAULT,
    Batches,
    Frame,
    applied,
    collected,
    mapped,
    spark_errors,
    spark_schema,
)
from hedgerow.spark.table import leaf_schema
from hedgerow.spark.top import Top, leaves_of
from hedgerow.tables.counts import Counts
from hedgerow.tables.ordered import record_words
from hedgerow.tables.tree import Tree

# Parts of a release that were written apart: ``counts/cuboid=2-3/part-00000.parquet`` etc.
#
# Below the cut each run of subtree jobs writes one part a cuboid, numbered in tree order: a cuboid
# is its parts one after the other. A part is written under a name of its own attempt, then renamed;
# a second attempt writes the same bytes, as it draws the same noise, so it does not matter which of
# them is there in the end. A run is finished when its note is there, which comes last.

ATTEMPTS, PARTS, NOTES = "attempts", "parts", "notes"


@frozen
class Note:
    """What is known of a finished run. Confidential.

    Attributes:
        run: its number.
        sums: of its records; see `hedgerow.tables.ordered`.
        cells: by the name of a cuboid's files, how many cells were measured.
        survivors: likewise, how many nodes have a positive count.
    """

    run: int
    sums: Sizes
    cells: dict[str, int]
    survivors: dict[str, int]


def write_run(
    folder: Path,
    tree: Tree,
    errors: Mapping[Levels, CuboidErrors],
    run: int,
    sums: Sizes,
    results: Iterable[Found],
) -> None:
    """Write the parts of a run, then its note; whoever does it again changes nothing.

    Args:
        folder: of the finished jobs, in the staging folder.
        tree: the domain.
        errors: of each cuboid.
        run: its number.
        sums: of the records below its roots.
        results: the results of its jobs, in their order.
    """
    attempt = folder / ATTEMPTS / uuid4().hex
    attempt.mkdir(parents=True)
    try:
        with CuboidFiles(attempt, tree, errors) as files:
            for result in results:
                files.add(result.levels, result.nodes, result.noisy)
        rows = (
            {cuboid_slug(k): v.rows for k, v in each.items()}
            for each in (files.noisy, files.counts)
        )
        note = Note(run, sums, *rows)
        for path in sorted(attempt.glob("*/*")):
            _appear(path, _part(folder, path.parent.name, path.stem, run))
        written = attempt / "note.json"
        written.write_text(json.dumps(asdict(note)), encoding="utf-8")
        _appear(written, folder / NOTES / f"run-{run:05d}.json")
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


def _appear(path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    sync(path)
    path.replace(place)


def read_notes(folder: Path) -> dict[int, Note]:
    """Return the notes of the runs that are finished: all of whose parts are still there.

    A run that was killed after it had moved them to the release leaves notes alone.
    """
    notes = {}
    for path in sorted((folder / NOTES).glob("run-*.json")):
        note = json.loads(path.read_text(encoding="utf-8"))
        read = Note(note["run"], tuple(note["sums"]), note["cells"], note["survivors"])
        kinds = {COUNTS: read.survivors, MEASUREMENTS: read.cells}
        parts = (_part(folder, kind, slug, read.run) for kind in kinds for slug in kinds[kind])
        if all(part.exists() for part in parts):
            notes[read.run] = read
    return notes


def _part(folder: Path, kind: str, slug: str, run: int) -> Path:
    return folder / PARTS / kind / slug / f"part-{run:05d}.parquet"


def take_parts(folder: Path, content: Path) -> None:
    """Move all parts to their place in a release, instead of the empty files of their cuboids."""
    for part in sorted((folder / PARTS).glob("*/*")):
        place = content / part.parent.name / part.name
        place.with_name(f"{place.name}.parquet").unlink()
        part.rename(place)


RUN, FLOW, SUMS = "run", "flow", ("sum0", "sum1")
LEAVES_A_RUN = 1 << 22
FEWEST_RUNS, MOST_RUNS = 8, 1024
GAVE_UP = "the release failed on Spark"
CHANGED = (
    "was not the same each time it was read, so nothing is released: release a copy that does not "
    "change"
)


def runs_of(tree: Tree, weights: Int64) -> list[range]:
    """Return consecutive jobs in runs of about equal weight, which are worth a task.

    How many runs there are at most is public: one for each four million possible leaves.

    Args:
        tree: the tree.
        weights: int64 (jobs), at least 0: what is known of their sizes; zeros where nothing is.
    """
    return equal_runs(weights, min(max(tree.leaves // LEAVES_A_RUN, FEWEST_RUNS), MOST_RUNS))


Columns = Sequence[tuple[str, pa.DataType]]
Work = Callable[[int, Flow, Iterator[Jobs], list[int]], list[Any]]
"""Of the number of a run, the flow, its jobs and the sums of its records: what is told of it."""


@lru_cache(maxsize=1)
def _sent_flow(sent: Path) -> Flow:
    """Return the flow that was sent, once a process: its design is made once, not once a run."""
    flow: Flow = pickle.loads((sent / FLOW).read_bytes())  # noqa: S301 - it lies beside the key
    return flow


@dataclass(frozen=True, eq=False, repr=False)
class Cluster:
    """Who does the jobs of a flow: a `hedgerow.release.descent.jobs.Runner` on the executors.

    Attributes:
        leaves: of the table, kept on the executors.
        top: what the driver knows.
        plan: what is measured.
        key: the file of the release key: shared by driver and executors.
        folder: for what the jobs find: likewise.
        progress: whom to tell.
    """

    leaves: Frame
    top: Top
    plan: Plan
    key: Path
    folder: Path
    progress: Progress
    _shuffled: dict[str, Frame] = field(default_factory=dict)

    def close(self) -> None:
        """Let go of what the executors keep."""
        for frame in self._shuffled.values():
            frame.unpersist()

    def _sent(self, flow: Flow, jobs: Jobs, runs: list[range]) -> Path:
        """Return a folder with the flow and the jobs of each run, which no task carries.

        The flow may know all public facts, but neither table nor key; the jobs, what is released
        above them.
        """
        folder = self.folder / f"sent-{uuid4().hex}"
        folder.mkdir()
        (folder / FLOW).write_bytes(pickle.dumps(flow.on(None, None)))
        for run, numbers in enumerate(runs):
            few = jobs.take(slice(numbers.start, numbers.stop))
            (folder / str(run)).write_bytes(pickle.dumps(few))
        return folder

    def _done(
        self,
        flow: Flow,
        jobs: Jobs,
        runs: list[range],
        shuffled: Frame,
        columns: Columns,
        work: Work,
    ) -> pa.Table:
        """Return what executors say of runs of jobs, once these are done: a row each.

        Args:
            flow: of the jobs.
            jobs: all of them.
            runs: likewise.
            shuffled: the leaves below the runs that are to be done.
            columns: of a row beside the run's number.
            work: done beside the leaves of a run; returns what is in these columns.
        """
        sent = self._sent(flow, jobs, runs)
        key = self.key
        tree = flow.tree
        schema = pa.schema([(RUN, pa.int32()), *columns, FAULT])

        def done(rows: pa.Table) -> pa.RecordBatch:
            run = rows[RUN][0].as_py()
            read = leaves_of(rows, tree)
            # the key is read from its own file alone, which is erased when the release appears
            bits = ReleaseKey(key.read_bytes())
            here = _sent_flow(sent).on(Counts.from_leaves(tree, *read), bits)
            few: Jobs = pickle.loads((sent / str(run)).read_bytes())  # noqa: S301 - as the flow
            results = work(run, here, each_job(here.located(few)), sums_of(read))
            cells = zip([run, *results, None], schema, strict=True)
            arrays = [pa.array([cell], field.type) for cell, field in cells]
            return pa.RecordBatch.from_arrays(arrays, schema=schema)

        return collected(applied(shuffled, RUN, done, schema), GAVE_UP)

    def up(self, flow: Flow, jobs: Jobs, progress: OnFraction) -> Told:
        """Return what the jobs *up* tell of their roots, one after the other."""
        runs = runs_of(flow.tree, jobs.weights)
        if not runs:
            return joined((), flow.told)
        columns = [("told", pa.binary()), *((name, pa.int64()) for name in SUMS)]
        many = flow.told
        roots = flow.roots(jobs)

        def work(_run: int, here: Flow, few: Iterator[Jobs], sums: list[int]) -> list[Any]:
            return [np.concatenate(joined(map(here.up, few), many)).tobytes(), *sums]

        shuffled = self._by_run(roots, runs, range(len(runs))).persist()
        self._shuffled["all"] = shuffled
        rows = self._done(flow, jobs, runs, shuffled, columns, work)
        self._check_records(roots, np.stack([rows[name].to_numpy() for name in SUMS], axis=1))
        by_run = dict(zip(rows[RUN].to_pylist(), rows["told"].to_pylist(), strict=True))
        progress(1.0)
        each = (np.frombuffer(by_run[run]).reshape(many, -1) for run in range(len(runs)))
        return joined(map(tuple, each), many)

    def down(self, flow: Flow, jobs: Jobs, progress: OnFraction) -> Iterable[Found]:
        """Run the jobs *down*: their results go into files, and none is returned.

        Raises:
            TableError: the table changed since its top was read.
            ReleaseError: a run of jobs left no results.
        """
        del progress
        folder = self.folder
        plan = self.plan
        tree = flow.tree
        before = self._shuffled.get("all")  # runs are then those of the jobs up
        weights = jobs.weights if before is None else np.zeros_like(jobs.weights)
        runs = runs_of(flow.tree, weights)
        roots = flow.roots(jobs)
        total = None if plan.public is None else int(self.top.counts.values.sum())
        errors = {levels: CuboidErrors.of(plan, levels, total) for levels in plan.levels}

        def work(run: int, here: Flow, few: Iterator[Jobs], sums: list[int]) -> list[Any]:
            results = chain.from_iterable(map(here.down, few))
            write_run(folder, tree, errors, run, tuple(sums), results)
            return []

        missing = sorted(set(range(len(runs))) - set(read_notes(folder)))
        if missing:
            shuffled = self._by_run(roots, runs, missing) if before is None else before
            if before is not None:
                shuffled = shuffled.where(f"{RUN} IN ({', '.join(map(str, missing))})")
            self._done(flow, jobs, runs, shuffled, [], work)
        notes = read_notes(folder)
        if sorted(notes) != list(range(len(runs))):
            raise ReleaseError("some runs of jobs left no results; run it again with --resume")
        self._check_records(roots, np.array([note.sums for note in notes.values()]))
        for each in plan.levels:
            slug = cuboid_slug(each)
            if any(slug in note.survivors for note in notes.values()):
                cells = sum(note.cells.get(slug, 0) for note in notes.values())
                survivors = sum(note.survivors[slug] for note in notes.values())
                self.progress.on_cuboid(tree.name_of(each), cells, survivors, 0.0)
        return ()

    def _check_records(self, roots: JobRoots, seen: Int64) -> None:
        """Raise a TableError unless runs saw the records that the top was made of.

        Args:
            roots: of all jobs.
            seen: int64 (runs, 2): the sums of each run's records.
        """
        counts = self.top.counts
        sums = self.top.sums
        below = roots.jobs_of(counts.tree, counts.codes) != NOWHERE
        if (seen.view(np.uint64).sum(axis=0) != sums[below].sum(axis=0)).any():
            raise outside_limits("the table", CHANGED)

    def _by_run(self, roots: JobRoots, runs: list[range], wanted: Sequence[int]) -> Frame:
        """Return the leaves below the roots of some runs, those of each run together, by a shuffle.

        Each run has a row at least, without records, as noise alone may be below its roots.
        """
        tree = self.plan.tree
        schema = pa.schema([(RUN, pa.int32()), *leaf_schema(tree)])
        starts = np.array([jobs.start for jobs in runs])
        chosen = np.isin(np.arange(len(runs)), list(wanted))

        def work(batches: Batches) -> Batches:
            for rows in batches:
                job = roots.jobs_of(tree, leaves_of(rows, tree)[0])
                run = int32(run_of(starts, job))
                here = (job != NOWHERE) & chosen[run]
                columns = [pa.array(run[here]), *rows.filter(pa.array(here)).columns]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

        placed = mapped(self.leaves, work, schema)
        kinds = zip(schema.names, spark_schema(schema).split(", "), strict=True)
        nothing = {
            RUN: f"CAST(id AS int) AS {RUN}",
            FAULT.name: f"CAST(NULL AS string) AS {FAULT.name}",
        }
        cells = [
            nothing.get(name, f"CAST(0 AS {kind.split()[-1]}) AS {name}") for name, kind in kinds
        ]
        listed = ", ".join(map(str, wanted))
        with spark_errors(GAVE_UP):
            every = self.leaves.sparkSession.range(len(runs))
            made = every.where(f"id IN ({listed})").selectExpr(*cells)
            return placed.union(made).repartition(len(runs), RUN)


def sums_of(read: CellNumbers) -> list[int]:
    """Return the sums of records, as signed numbers: `hedgerow.tables.ordered.record_words`."""
    return [int(word.sum().view(np.int64)) for word in record_words(*read)]


def each_job(jobs: Jobs) -> Iterator[Jobs]:
    """Yield jobs one by one."""
    return (jobs.take(slice(i, i + 1)) for i in range(len(jobs.weights)))
