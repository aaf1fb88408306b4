"""What the driver of a cluster knows of a confidential table: the true counts of the cut."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from hedgerow.arrays import CellNumbers, Codes, Int64, Levels, UInt64, begins, row_by_row, some_of
from hedgerow.release.descent.nodes import first_leaves, places
from hedgerow.spark.session import FAULT, Batches, Frame, collected, mapped
from hedgerow.spark.table import leaf_columns, leaf_schema
from hedgerow.tables.counts import Counts
from hedgerow.tables.ordered import record_words
from hedgerow.tables.tree import Tree, cells_above

ROWS_A_SUM = 1 << 20
"""Rows that are summed at once: of 2^40 records at most each, so no such sum wraps."""


@dataclass(frozen=True, eq=False, repr=False)
class Top:
    """What the driver knows of a table: the true counts of the cut. Confidential.

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
    def of(cls, leaves: Frame, tree: Tree, cut: Levels, contributions: int | None) -> "Top":
        """Return the true counts of the nodes of the cut, summed on the executors.

        Raises:
            TableError: a code or count that does not fit.
        """
        rows = collected(
            mapped(leaves, _node_rows(tree, cut), _top_schema(tree)),
            "the table cannot be read",
        )
        return cls.from_rows(rows, tree, contributions)

    @classmethod
    def from_rows(cls, rows: pa.Table, tree: Tree, contributions: int | None) -> "Top":
        """Return the true counts of the nodes, from sums of parts of the table in any order."""
        codes, values = leaves_of(rows, tree)
        words = [rows[name].to_numpy() for name in ("sum0", "sum1")]
        counts = Counts.from_nodes(tree, codes, values, contributions)
        nodes, sums = _summed(codes, words)
        order = places(counts.codes, nodes)  # the same nodes; `Counts` has them in tree order
        each = np.stack(sums, axis=1).view(np.uint64)[order]
        return cls(counts, each, float(values.sum(dtype=np.float64)))

    @property
    def sealed(self) -> Counts:
        """What a seal is made of: besides the counts, the sums of all records."""
        words = self.sums.sum(axis=0).view(np.int64)
        return replace(self.counts, values=np.append(self.counts.values, words))


def _node_rows(tree: Tree, cut: Levels) -> Callable[[Batches], Batches]:
    """Return what an executor does with a partition's leaves: add them up by node of the cut."""
    schema = _top_schema(tree)

    def work(batches: Batches) -> Batches:
        for batch in batches:
            for first in range(0, batch.num_rows, ROWS_A_SUM):
                rows = batch.slice(first, ROWS_A_SUM)
                fault = next((f for f in rows[FAULT.name].to_pylist() if f), None)
                codes, values = leaves_of(rows, tree)
                words = record_words(codes, values)
                firsts = first_leaves(tree, cut, cells_above(tree, cut, tree.finest, codes))
                nodes, sums = _summed(firsts, [values, *(w.view(np.int64) for w in words)])
                faults = pa.array([fault] + [None] * (len(sums[0]) - 1), pa.string())
                columns = [*map(pa.array, nodes), *map(pa.array, sums), faults]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return work


def leaves_of(rows: pa.Table | pa.RecordBatch, tree: Tree) -> CellNumbers:
    """Return the codes and counts of rows; those of a fault count nothing."""
    names = leaf_columns(tree)
    numbers = [rows[name].fill_null(0).to_numpy(zero_copy_only=False) for name in [*names, "n"]]
    return tuple(numbers[:-1]), numbers[-1]


def _top_schema(tree: Tree) -> pa.Schema:
    return leaf_schema(tree, ("n", "sum0", "sum1"))


def _summed(codes: Codes, columns: list[Int64]) -> tuple[Codes, list[Int64]]:
    """Return each combination of codes once, with the sums of its rows, which wrap."""
    codes, order = row_by_row(codes)
    start = np.flatnonzero(begins(codes))
    if not len(start):
        return codes, columns
    return some_of(codes, start), [np.add.reduceat(c[order], start) for c in columns]
