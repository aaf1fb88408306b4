"""Subtree jobs away from the driver: everything that one needs, and nothing of the whole table.

A worker gets what is known of the nodes of the cut (`Subtrees`) and the leaves below a run of them;
it makes the jobs *up* and *down* of `hedgerow.release.descent.topdown`, the very ones of the local
engine. Until the release appears a `Subtrees` is confidential: it holds the release key.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hedgerow.arrays import Codes, Int64, UInt64
from hedgerow.estimate.estimator import Estimator
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import (
    LocalEngine,
    Told,
    equal_runs,
    joined,
)
from hedgerow.release.descent.nodes import NOWHERE, Nodes, Roots, Slices, places
from hedgerow.release.descent.outline import Found, Outline
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.topdown import Pass
from hedgerow.spark.session import FAULT, Batches, Frame, collected, mapped
from hedgerow.tables.counts import Counts
from hedgerow.tables.ordered import record_words
from hedgerow.tables.tree import Tree

LEAVES_A_RUN = 1 << 22
FEWEST_RUNS, MOST_RUNS = 8, 1024


@dataclass(frozen=True, eq=False, repr=False)
class Subtrees:
    """The jobs of a tree that is cut.

    Attributes:
        plan: what is measured with which noise.
        outline: of the plan.
        estimator: from noisy counts to consistent counts.
        bits: of the release.
    """

    plan: Plan
    outline: Outline
    estimator: Estimator
    bits: Bits

    def down(self, roots: Nodes, leaves: Counts) -> Iterator[Found]:
        """Yield the results of consecutive jobs *down*."""
        for run, root in self._jobs(roots, leaves):
            yield from run.release_subtree(root)

    def up(self, roots: Nodes, leaves: Counts) -> Told:
        """Return what consecutive jobs *up* tell of their roots."""
        jobs = self._jobs(roots, leaves)
        return joined((run.estimate_upward(root) for run, root in jobs), 2)

    def _jobs(self, roots: Nodes, leaves: Counts) -> Iterator[tuple[Pass, Roots]]:
        """Yield each root with its slice of the leaves, and the pass that does its job."""
        source = Drawn(leaves, self.plan, self.bits)
        run = Pass(self.outline, source, self.estimator, engine=LocalEngine(1))
        job = jobs_of(self.outline, roots, leaves.codes)
        start = np.searchsorted(job, np.arange(len(roots)))
        stop = np.searchsorted(job, np.arange(len(roots)), side="right")
        located = Roots(roots, Slices(roots.codes, start, stop))
        for i in range(len(roots)):
            yield run, located.take(slice(i, i + 1))


def runs_of(tree: Tree, weights: Int64) -> list[range]:
    """Return consecutive jobs in runs of about equal weight, which are worth a task.

    How many runs there are at most is public: one for each four million possible leaves.

    Args:
        tree: the tree.
        weights: int64 (jobs), at least 0: what is known of their sizes; zeros where nothing is.
    """
    return equal_runs(weights, min(max(tree.leaves // LEAVES_A_RUN, FEWEST_RUNS), MOST_RUNS))


def jobs_of(outline: Outline, roots: Nodes, codes: Codes) -> Int64:
    """Return for each leaf the place of its root among ``roots``, or `NOWHERE`: int64 (leaves).

    Args:
        outline: says where the tree is cut.
        roots: nodes of the cut.
        codes: one int32 array (leaves) an axis.
    """
    return places(cut_codes(outline, codes), roots.codes)


def cut_codes(outline: Outline, codes: Codes) -> Codes:
    """Return for each leaf its node of the cut: one int32 array (leaves) an axis."""
    return tuple(
        axis.ancestors(level)[code] if level < axis.depth else code
        for axis, level, code in zip(
            outline.tree.axes, outline.tree.cuboid(outline.cut), codes, strict=True
        )
    )


def first_leaves(tree: Tree, depth: int, codes: Codes) -> Codes:
    """Return for each node of a depth the first leaf below it: one int32 array (nodes) an axis.

    A table whose records all moved there has the counts of the true one down to that depth.
    """
    return tuple(
        axis.descendant_start(level, axis.depth)[code].astype(np.int32)
        for axis, level, code in zip(tree.axes, tree.cuboid(depth), codes, strict=True)
    )


# What the driver of a cluster knows of a confidential table: the true counts of the cut.

ROWS_A_SUM = 1 << 20
"""Rows that are summed at once: of 2^40 records at most each, so no such sum wraps."""


@dataclass(frozen=True, eq=False, repr=False)
class Top:
    """What the driver knows of a table: the true counts of the nodes of the cut. Confidential.

    Each leaf was cut to the limit once, when all its rows were together (`SparkTable.leaves`);
    here sums are only added up, modulo 2⁶⁴ as on the executors and in the local engine. So a
    record more or less changes one leaf by at most one, and with it one node of each depth.

    Attributes:
        counts: a table with the records of each node on its first leaf: equal to the true one down
            to the cut.
        sums: uint64 (nodes, 2): of each node's records; see `hedgerow.tables.ordered`.
        total: the number of records; it does not wrap.
    """

    counts: Counts
    sums: UInt64
    total: float

    @classmethod
    def of(cls, leaves: Frame, outline: Outline, contributions: int | None) -> "Top":
        """Return the true counts of the nodes of the cut, summed on the executors.

        Raises:
            TableError: a code or count that does not fit.
        """
        rows = collected(
            mapped(leaves, _node_rows(outline), _top_schema(outline.tree)),
            "the table cannot be read",
        )
        return cls.from_rows(rows, outline.tree, contributions)

    @classmethod
    def from_rows(cls, rows: pa.Table, tree: Tree, contributions: int | None) -> "Top":
        """Return the true counts of the nodes, from sums of parts of the table in any order."""
        codes, values = leaves_of(rows, tree)
        words = [rows[name].to_numpy() for name in ("sum0", "sum1")]
        counts = Counts.from_nodes(tree, codes, values, contributions)
        nodes, sums = _summed(codes, words)
        # the same nodes; `Counts` has them in tree order
        place = {node: i for i, node in enumerate(zip(*nodes, strict=True))}
        order = [place[node] for node in zip(*counts.codes, strict=True)]
        each = np.stack(sums, axis=1).view(np.uint64)[order]
        return cls(counts, each, float(values.sum(dtype=np.float64)))

    @property
    def sealed(self) -> Counts:
        """What a seal is made of: besides the counts, the sums of all records."""
        words = self.sums.sum(axis=0).view(np.int64)
        return replace(self.counts, values=np.append(self.counts.values, words))

    def sums_below(self, outline: Outline, roots: Nodes) -> tuple[int, ...]:
        """Return the sums of all records below some nodes of the cut."""
        below = jobs_of(outline, roots, self.counts.codes) != NOWHERE
        return tuple(self.sums[below].sum(axis=0).tolist())


def _node_rows(outline: Outline) -> Callable[[Batches], Batches]:
    """Return what an executor does with a partition's leaves: add them up by node of the cut."""
    tree, schema = outline.tree, _top_schema(outline.tree)

    def work(batches: Batches) -> Batches:
        for batch in batches:
            for first in range(0, batch.num_rows, ROWS_A_SUM):
                rows = batch.slice(first, ROWS_A_SUM)
                fault = next((f for f in rows[FAULT.name].to_pylist() if f), None)
                codes, values = leaves_of(rows, tree)
                words = record_words(codes, values)
                firsts = first_leaves(tree, outline.cut, cut_codes(outline, codes))
                nodes, sums = _summed(firsts, [values, *(w.view(np.int64) for w in words)])
                faults = pa.array([fault] + [None] * (len(sums[0]) - 1), pa.string())
                columns = [*map(pa.array, nodes), *map(pa.array, sums), faults]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return work


def leaves_of(rows: pa.Table | pa.RecordBatch, tree: Tree) -> tuple[Codes, Int64]:
    """Return the codes and counts of rows; those of a fault count nothing."""
    names = [f"leaf{a}" for a in range(len(tree.axes))]
    numbers = [rows[name].fill_null(0).to_numpy(zero_copy_only=False) for name in [*names, "n"]]
    return tuple(numbers[:-1]), numbers[-1]


def _top_schema(tree: Tree) -> pa.Schema:
    codes = [pa.field(f"leaf{a}", pa.int32()) for a in range(len(tree.axes))]
    sums = [pa.field(name, pa.int64()) for name in ("n", "sum0", "sum1")]
    return pa.schema([*codes, *sums, FAULT])


def _summed(codes: Codes, columns: list[Int64]) -> tuple[Codes, list[Int64]]:
    """Return each combination of codes once, with the sums of its rows, which wrap."""
    order = np.lexsort(codes[::-1])
    codes = tuple(code[order] for code in codes)
    changed = np.ones(len(order), dtype=bool)
    changed[1:] = False
    for code in codes:
        changed[1:] |= code[1:] != code[:-1]
    start = np.flatnonzero(changed)
    if not len(start):
        return codes, columns
    return tuple(c[start] for c in codes), [np.add.reduceat(c[order], start) for c in columns]
