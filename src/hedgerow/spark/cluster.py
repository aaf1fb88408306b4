"""The executors of a cluster: they run subtree jobs and write down what these find.

A shuffle brings the leaves below a run of roots together, wherever Spark likes, and the jobs of
`hedgerow.spark.subtree` are done there; what they find goes straight into files
(`hedgerow.spark.parts`). A task that is run twice draws the same noise under the release's key,
so it writes the same files. On other data the same noise would give both away: so each run also
says which records it saw, and a table that changed between two readings is never published.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.errors import ReleaseError
from hedgerow.release.descent.jobs import Said, all_said
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.progress import Progress
from hedgerow.release.descent.results import DepthResult
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.topdown import Pass
from hedgerow.spark.cluster_top import Top, leaves_of
from hedgerow.spark.parts import read_notes, write_run
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
from hedgerow.spark.subtree import NOWHERE, Subtrees, jobs_of, runs_of
from hedgerow.spark.table import leaf_schema
from hedgerow.tables.counts import Counts
from hedgerow.tables.record_sum import record_words

RUN = "run"
GAVE_UP = "the release failed on Spark"
CHANGED = (
    "the table was not the same each time it was read, so nothing is released: release a copy that "
    "does not change"
)


@dataclass(frozen=True, eq=False, repr=False)
class Cluster:
    """Who does the subtree jobs: a `hedgerow.release.descent.jobs.Jobs` on the executors.

    Attributes:
        leaves: of the table, kept on the executors.
        top: what the driver knows.
        subtrees: the jobs, of roots that are yet unknown.
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
        return Pass(jobs.outline, source, jobs.estimator, progress=self.progress, elsewhere=self)

    def close(self) -> None:
        """Let go of what the executors keep."""
        for frame in self._shuffled.values():
            frame.unpersist()

    def up(self, roots: Nodes, told: Callable[[float], None]) -> Said:
        """What the jobs *up* say of their roots, which are all nodes of the cut."""
        if not len(roots):
            return all_said(())
        roots = roots.without_slices()
        subtrees = replace(self.subtrees, roots=roots)
        tree, runs = subtrees.outline.tree, runs_of(self.top.counts.tree, roots.counts)
        schema = pa.schema([(RUN, pa.int32()), ("said", pa.binary()), FAULT])

        def work(rows: pa.Table) -> pa.RecordBatch:
            run = rows[RUN][0].as_py()
            said = subtrees.up(runs[run], Counts.from_leaves(tree, *leaves_of(rows, tree)))
            return _row(schema, run, np.concatenate(said).tobytes())

        shuffled = self._shuffled["all"] = self._by_run(roots, runs, range(len(runs))).persist()
        rows = collected(applied(shuffled, RUN, work, schema), GAVE_UP)
        found = dict(zip(rows[RUN].to_pylist(), rows["said"].to_pylist(), strict=True))
        told(1.0)
        halves = (np.frombuffer(found[run]).reshape(2, -1) for run in range(len(runs)))
        return all_said((estimate, variance) for estimate, variance in halves)

    def down(self, roots: Nodes, _told: Callable[[float], None]) -> Iterable[DepthResult]:
        """Do the jobs *down*: what they find goes into files, and nothing comes back.

        Raises:
            ReleaseError: the table changed since its top was read.
        """
        subtrees, folder = replace(self.subtrees, roots=roots.without_slices()), self.folder
        plan, tree = subtrees.plan, subtrees.plan.tree
        everything = subtrees.outline.everything
        runs = runs_of(tree, np.zeros_like(roots.counts) if everything else roots.counts)
        total = int(roots.counts.sum())
        schema = pa.schema([(RUN, pa.int32()), FAULT])

        def work(rows: pa.Table) -> pa.RecordBatch:
            run = rows[RUN][0].as_py()
            read = leaves_of(rows, tree)
            leaves, words = Counts.from_leaves(tree, *read), record_words(*read)
            sums = tuple(int(word.sum()) for word in words)
            write_run(folder, plan, total, run, sums, subtrees.down(runs[run], leaves))
            return _row(schema, run)

        missing = sorted(set(range(len(runs))) - set(read_notes(folder)))
        if missing:
            shuffled = self._shuffled.get("all") or self._by_run(roots, runs, missing)
            if everything:
                shuffled = shuffled.where(f"{RUN} IN ({', '.join(map(str, missing))})")
            collected(applied(shuffled, RUN, work, schema), GAVE_UP)
        self._check(roots, len(runs))
        return ()

    def _check(self, roots: Nodes, runs: int) -> None:
        notes = read_notes(self.folder)
        if sorted(notes) != list(range(runs)):
            raise ReleaseError("some runs of jobs left no results; run it again with --resume")
        each = np.array([note.sums for note in notes.values()], dtype=np.uint64)
        if tuple(each.sum(axis=0).tolist()) != self.top.sums_below(self.subtrees.outline, roots):
            raise ReleaseError(CHANGED)
        for t in notes[0].survivors:
            cells = sum(note.cells.get(t, 0) for note in notes.values())
            survivors = sum(note.survivors[t] for note in notes.values())
            self.progress.on_depth(t, cells, survivors, 0.0)

    def _by_run(self, roots: Nodes, runs: list[range], wanted: Any) -> Frame:
        """The leaves below the roots of some runs, those of each run together, by a shuffle.

        Each run has a row at least, without records, as noise alone may be below its roots.
        """
        outline, tree = self.subtrees.outline, self.subtrees.outline.tree
        schema = pa.schema([(RUN, pa.int32()), *leaf_schema(tree)])
        starts = np.array([jobs.start for jobs in runs])
        chosen = np.isin(np.arange(len(runs)), list(wanted))
        bare = roots.without_slices()

        def work(batches: Batches) -> Batches:
            for rows in batches:
                job = jobs_of(outline, bare, leaves_of(rows, tree)[0])
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
