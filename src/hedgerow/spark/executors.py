"""The executors of a cluster: they run subtree jobs and write down what these find.

A shuffle brings the leaves below a run of roots together, wherever Spark likes, and the jobs of
`hedgerow.spark.subtree` are done there; what they find goes straight into files
(`hedgerow.spark.executors`). A task that is run twice draws the same noise under the release's key,
so it writes the same files. On other data the same noise would give both away: so each run also
says which records it saw, and a table that changed between two readings is never published.
"""

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import numpy as np
import pyarrow as pa

from hedgerow.arrays import Int64
from hedgerow.errors import ReleaseError, outside_limits
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import OnFraction, Progress, Told, joined
from hedgerow.release.descent.nodes import NOWHERE, Nodes, Roots
from hedgerow.release.descent.outline import Found
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.topdown import Pass
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.keys import sync
from hedgerow.release.directory.measurements import (
    NOISY_SCHEMA,
    GrowingFile,
    _labelled,
    _noisy,
    count_schema,
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
from hedgerow.spark.subtree import Subtrees, Top, jobs_of, leaves_of, runs_of
from hedgerow.spark.table import leaf_schema
from hedgerow.tables.counts import Counts
from hedgerow.tables.ordered import record_words

# Parts of a release that were written apart: ``counts/cuboid=2-3/part-00000.parquet`` etc.
#
# Below the cut each run of subtree jobs writes one part a cuboid, numbered in tree order: a cuboid
# is its parts one after the other. A part is written under a name of its own attempt, then renamed;
# a second attempt writes the same bytes, as it draws the same noise, so it does not matter which of
# them is there in the end. A run is finished when its note is there, which comes last.

ATTEMPTS, PARTS, NOTES = "attempts", "parts", "notes"
KINDS = ("counts", "measurements")


@dataclass(frozen=True, slots=True)
class Note:
    """What is known of a finished run. Confidential.

    Attributes:
        run: its number.
        sums: of its records; see `hedgerow.tables.ordered`.
        cells: by the name of a cuboid's files, how many cells were measured.
        survivors: likewise, how many nodes have a positive count.
    """

    run: int
    sums: tuple[int, ...]
    cells: dict[str, int]
    survivors: dict[str, int]


def write_run(
    folder: Path,
    plan: Plan,
    total: int,
    run: int,
    sums: tuple[int, ...],
    results: Iterable[Found],
) -> None:
    """Write the parts of a run, then its note; whoever does it again changes nothing.

    Args:
        folder: of the finished jobs, in the staging folder.
        plan: what was measured.
        total: the released one.
        run: its number.
        sums: of the records below its roots.
        results: the results of its jobs, in their order.
    """
    attempt = folder / ATTEMPTS / uuid4().hex
    attempt.mkdir(parents=True)
    try:
        note = Note(run, sums, {}, {})
        _write(attempt, plan, total, note, results)
        for path in sorted(attempt.glob("*/*")):
            _appear(path, _part(folder, path.parent.name, path.name, run))
        written = attempt / "note.json"
        written.write_text(json.dumps(asdict(note)), encoding="utf-8")
        _appear(written, folder / NOTES / f"run-{run:05d}.json")
    finally:
        shutil.rmtree(attempt, ignore_errors=True)


def _write(folder: Path, plan: Plan, total: int, note: Note, results: Iterable[Found]) -> None:
    """Write the parts as files of a folder, and what they are into the note."""
    files: dict[tuple[str, str], GrowingFile[Any]] = {}
    for kind in KINDS:
        (folder / kind).mkdir()
    try:
        for result in results:
            levels, nodes, slug = result.levels, result.nodes, cuboid_slug(result.levels)
            if ("counts", slug) not in files:
                build = partial(_labelled, plan.tree, levels, CuboidErrors.of(plan, levels, total))
                schema = count_schema(plan.tree, levels)
                files["counts", slug] = GrowingFile(folder / "counts" / slug, schema, build)
            files["counts", slug].add(nodes, len(nodes))
            note.survivors[slug] = note.survivors.get(slug, 0) + len(nodes)
            if result.noisy is not None:
                if ("measurements", slug) not in files:
                    path = folder / "measurements" / slug
                    files["measurements", slug] = GrowingFile(path, NOISY_SCHEMA, _noisy)
                files["measurements", slug].add(cast("Int64", result.noisy), len(result.noisy))
                note.cells[slug] = note.cells.get(slug, 0) + len(result.noisy)
    except BaseException:
        for file in files.values():
            file.abandon()
        raise
    for file in files.values():
        file.close()


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
        if all(part.exists() for part in _parts(folder, read)):
            notes[read.run] = read
    return notes


def _parts(folder: Path, note: Note) -> list[Path]:
    """Return the files that a run has written, but for what was moved since."""
    kinds = zip(KINDS, (note.survivors, note.cells), strict=True)
    return [_part(folder, kind, slug, note.run) for kind, slugs in kinds for slug in slugs]


def _part(folder: Path, kind: str, slug: str, run: int) -> Path:
    return folder / PARTS / kind / slug / f"part-{run:05d}.parquet"


def take_parts(folder: Path, content: Path) -> None:
    """Move all parts to their place in a release, instead of the empty files of their cuboids."""
    for part in sorted((folder / PARTS).glob("*/*")):
        place = content / part.parent.name / part.name
        place.with_name(f"{place.name}.parquet").unlink()
        part.rename(place)


RUN = "run"
GAVE_UP = "the release failed on Spark"
CHANGED = (
    "was not the same each time it was read, so nothing is released: release a copy that does not "
    "change"
)


@dataclass(frozen=True, eq=False, repr=False)
class Cluster:
    """Who does the subtree jobs: a `hedgerow.release.descent.jobs.Jobs` on the executors.

    Attributes:
        leaves: of the table, kept on the executors.
        top: what the driver knows.
        subtrees: the jobs.
        folder: for what the jobs find: shared by driver and executors.
        progress: whom to tell.
    """

    leaves: Frame
    top: Top
    subtrees: Subtrees
    folder: Path
    progress: Progress
    _shuffled: dict[str, Frame] = field(default_factory=dict)

    @property
    def run(self) -> Pass:
        """The pass whose jobs run here."""
        jobs = self.subtrees
        source = Drawn(self.top.counts, jobs.plan, jobs.bits)
        return Pass(jobs.outline, source, jobs.estimator, progress=self.progress, remote_jobs=self)

    def close(self) -> None:
        """Let go of what the executors keep."""
        for frame in self._shuffled.values():
            frame.unpersist()

    def up(self, roots: Roots, progress: OnFraction) -> Told:
        """Return what the jobs *up* tell of their roots, which are all nodes of the cut."""
        nodes = roots.nodes
        if not len(nodes):
            return joined((), 2)
        subtrees = self.subtrees
        tree, runs = subtrees.outline.tree, runs_of(self.top.counts.tree, nodes.counts)
        schema = pa.schema([(RUN, pa.int32()), ("estimate", pa.binary()), FAULT])

        def work(rows: pa.Table) -> pa.RecordBatch:
            run = rows[RUN][0].as_py()
            leaves = Counts.from_leaves(tree, *leaves_of(rows, tree))
            estimate = subtrees.up(nodes.take(slice(runs[run].start, runs[run].stop)), leaves)
            return _row(schema, run, np.concatenate(estimate).tobytes())

        shuffled = self._shuffled["all"] = self._by_run(nodes, runs, range(len(runs))).persist()
        rows = collected(applied(shuffled, RUN, work, schema), GAVE_UP)
        estimates = dict(zip(rows[RUN].to_pylist(), rows["estimate"].to_pylist(), strict=True))
        progress(1.0)
        halves = (np.frombuffer(estimates[run]).reshape(2, -1) for run in range(len(runs)))
        return joined(((estimate, variance) for estimate, variance in halves), 2)

    def down(self, roots: Roots, _progress: OnFraction) -> Iterable[Found]:
        """Run the jobs *down*: their results go into files, and none is returned.

        Raises:
            TableError: the table changed since its top was read.
            ReleaseError: a run of jobs left no results.
        """
        nodes, folder, subtrees = roots.nodes, self.folder, self.subtrees
        plan, tree = subtrees.plan, subtrees.plan.tree
        everything = subtrees.outline.everything
        runs = runs_of(tree, np.zeros_like(nodes.counts) if everything else nodes.counts)
        total = int(nodes.counts.sum())
        schema = pa.schema([(RUN, pa.int32()), FAULT])

        def work(rows: pa.Table) -> pa.RecordBatch:
            run = rows[RUN][0].as_py()
            read = leaves_of(rows, tree)
            leaves, words = Counts.from_leaves(tree, *read), record_words(*read)
            sums = tuple(int(word.sum()) for word in words)
            roots_of_run = nodes.take(slice(runs[run].start, runs[run].stop))
            write_run(folder, plan, total, run, sums, subtrees.down(roots_of_run, leaves))
            return _row(schema, run)

        missing = sorted(set(range(len(runs))) - set(read_notes(folder)))
        if missing:
            shuffled = self._shuffled.get("all") or self._by_run(nodes, runs, missing)
            if everything:
                shuffled = shuffled.where(f"{RUN} IN ({', '.join(map(str, missing))})")
            collected(applied(shuffled, RUN, work, schema), GAVE_UP)
        self._check(nodes, len(runs))
        return ()

    def _check(self, roots: Nodes, runs: int) -> None:
        notes = read_notes(self.folder)
        if sorted(notes) != list(range(runs)):
            raise ReleaseError("some runs of jobs left no results; run it again with --resume")
        each = np.array([note.sums for note in notes.values()], dtype=np.uint64)
        if tuple(each.sum(axis=0).tolist()) != self.top.sums_below(self.subtrees.outline, roots):
            raise outside_limits("the table", CHANGED)
        tree = self.subtrees.plan.tree
        for levels in tree.chain[self.subtrees.outline.cut + 1 :]:
            slug = cuboid_slug(levels)
            cells = sum(note.cells.get(slug, 0) for note in notes.values())
            survivors = sum(note.survivors[slug] for note in notes.values())
            self.progress.on_cuboid(tree.name_of(levels), cells, survivors, 0.0)

    def _by_run(self, roots: Nodes, runs: list[range], wanted: Any) -> Frame:
        """Return the leaves below the roots of some runs, those of each run together, by a shuffle.

        Each run has a row at least, without records, as noise alone may be below its roots.
        """
        outline, tree = self.subtrees.outline, self.subtrees.outline.tree
        schema = pa.schema([(RUN, pa.int32()), *leaf_schema(tree)])
        starts = np.array([jobs.start for jobs in runs])
        chosen = np.isin(np.arange(len(runs)), list(wanted))

        def work(batches: Batches) -> Batches:
            for rows in batches:
                job = jobs_of(outline, roots, leaves_of(rows, tree)[0])
                run = (np.searchsorted(starts, job, side="right") - 1).astype(np.int32)
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


def _row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    cells = [*values, None]
    columns = [pa.array([cell], f.type) for cell, f in zip(cells, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
