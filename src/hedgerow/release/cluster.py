"""The executors of a cluster: they run subtree jobs and write down what these find.

One shuffle brings the leaves below a run of roots together, wherever Spark likes, and the jobs of
`hedgerow.release.subtree` are done there; what they find goes straight into files
(`hedgerow.release.parts`). A task that is run twice draws the same noise under the release's key,
so it writes the same files. On other data the same noise would give both away: so each run also
says which records it saw, and a table that changed between two readings is never published.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.engines.local import LocalEngine
from hedgerow.engines.spark import (
    FAULT,
    Batches,
    Frame,
    applied,
    collected,
    mapped,
    spark_errors,
    spark_schema,
)
from hedgerow.engines.spark_table import leaf_schema
from hedgerow.errors import ReleaseError
from hedgerow.release.cluster_top import Top, leaves_of
from hedgerow.release.parts import read_notes, write_run
from hedgerow.release.source import Drawn
from hedgerow.release.steps import Nodes, children
from hedgerow.release.subtree import NOWHERE, Subtrees, jobs_of, runs_of
from hedgerow.release.topdown import DepthResult, Pass, Progress, Said
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
    """Where subtree jobs run: a `hedgerow.release.topdown.Kept` of what they said of their roots.

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
    _said: list[Said] = field(default_factory=list)

    @property
    def run(self) -> Pass:
        """The pass whose jobs run here."""
        jobs = self.subtrees
        source = Drawn(self.top.counts, jobs.plan, jobs.bits)
        return _PassAbove(
            jobs.outline, source, jobs.estimator, LocalEngine(1), self.progress, self, cluster=self
        )

    def close(self) -> None:
        """Let go of what the executors keep."""
        for frame in self._shuffled.values():
            frame.unpersist()

    def up(self, jobs: range, _work: Callable[[], Said]) -> Said:
        """What these jobs say of their roots; all are run when the first are asked for."""
        if not self._said:
            self._said.append(self._all_said())
        estimate, variance = self._said[0]
        return estimate[jobs.start : jobs.stop], variance[jobs.start : jobs.stop]

    def down(self, _jobs: range, results: Any) -> Any:
        """Nothing that the driver finds is kept."""
        return results

    def _all_said(self) -> Said:
        roots = _every_root(self.run)
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
        halves = [np.frombuffer(found[run]).reshape(2, -1) for run in range(len(runs))]
        estimate, variance = np.concatenate(halves, axis=1)
        return estimate, variance

    def release_below(self, roots: Nodes) -> None:
        """Release everything below some nodes of the cut, given their counts, into files.

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
            leaves = Counts.from_leaves(tree, *leaves_of(rows, tree))
            words = record_words(leaves.codes, leaves.values)
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

    def _check(self, roots: Nodes, runs: int) -> None:
        notes = read_notes(self.folder)
        if sorted(notes) != list(range(runs)):
            raise ReleaseError(f"only {len(notes)} of {runs} runs of jobs left their results")
        each = np.array([note.sums for note in notes.values()], dtype=np.uint64)
        if tuple(each.sum(axis=0).tolist()) != self.top.sums_below(self.subtrees.outline, roots):
            raise ReleaseError(CHANGED)
        for t in notes[0].survivors:
            cells = sum(note.cells.get(t, 0) for note in notes.values())
            survivors = sum(note.survivors[t] for note in notes.values())
            self.progress.on_depth(t, cells, survivors, 0.0)

    def _by_run(self, roots: Nodes, runs: list[range], wanted: Any) -> Frame:
        """The leaves below the roots of some runs, those of each run together: the one shuffle.

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


@dataclass(frozen=True, eq=False)
class _PassAbove(Pass):
    """The pass down to the cut; below it the cluster does the jobs and writes what they find."""

    cluster: Cluster = field(kw_only=True)

    def _jobs(self, roots: Nodes) -> Iterator[DepthResult]:
        if len(roots):
            self.cluster.release_below(roots)
        else:
            yield from super()._jobs(roots)


def _every_root(run: Pass) -> Nodes:
    """All possible nodes of the cut below the public ones, in tree order."""
    outline = run.outline
    public = outline.public_depth >= 0
    nodes = run.source.public(outline.first) if public else run._everything()  # noqa: SLF001
    for steps in outline.blocks(outline.first, outline.cut):
        for step in steps:
            start = step.family_start(nodes.codes)
            nodes = children(np.arange(start[-1]), start, nodes, step, run.source.counts)
    return nodes.without_slices()


def _row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    cells = [*values, None]
    columns = [pa.array([cell], f.type) for cell, f in zip(cells, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
