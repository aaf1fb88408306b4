"""Records with leaf numbers → leaf counts in tree order: sorted by DuckDB, which spills to disk.

Sorting comes cheaper than grouping where few rows share a leaf, and rows that come sorted need no
room: equal leaves stand side by side, and are added up as they stream by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.tables.order import Codes, leaf_words
from hedgerow.tables.tree import Tree
from hedgerow.tables.whole import MAX_TOTAL, check_total

Int64 = NDArray[np.int64]
Leaves = tuple[Codes, Int64]

ROWS_A_BATCH = 1 << 20


class Column(Protocol):
    """An array that grows."""

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""

    def whole(self) -> NDArray[Any]:
        """All of them; nothing is added any more."""


@dataclass(slots=True)
class InMemory:
    """A column in memory."""

    kind: type[np.generic]
    parts: list[NDArray[Any]] = field(default_factory=list)

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        self.parts.append(values)

    def whole(self) -> NDArray[Any]:
        """All of them."""
        found = np.concatenate([np.empty(0, dtype=self.kind), *self.parts])
        self.parts = []
        return found


@dataclass(slots=True)
class OnDisk:
    """A column in a file without a name, which goes away with the array; read a page at a time."""

    kind: type[np.generic]
    path: Path
    file: Any = None

    def append(self, values: NDArray[Any]) -> None:
        """Add values at the end."""
        if self.file is None:
            self.file = self.path.open("x+b")
            self.path.unlink()  # a killed run leaves nothing
        values.tofile(self.file)

    def whole(self) -> NDArray[Any]:
        """All of them, mapped into memory."""
        if self.file is None:
            return np.empty(0, dtype=self.kind)
        self.file.flush()
        found: NDArray[Any] = np.memmap(self.file, dtype=self.kind, mode="r").view(np.ndarray)
        self.file.close()
        return found


@dataclass(frozen=True, slots=True)
class Ordering:
    """How the records of a table become leaf counts.

    Attributes:
        tree: the tree.
        what: how messages name the counts.
        grouped: many rows share a leaf, so DuckDB adds them up before it sorts.
        folder: where the leaf counts lie on disk; None: in memory.
    """

    tree: Tree
    what: str
    grouped: bool
    folder: Path | None = None

    def leaves(
        self, db: duckdb.DuckDBPyConnection, records: str, flags: Sequence[str] = ()
    ) -> tuple[Leaves, list[int], list[int]]:
        """The non-zero leaves in tree order, the lowest leaf seen on each axis, flagged records.

        Args:
            db: the database.
            records: a SELECT of leaf0, leaf1, … (INTEGER), n (BIGINT, 0..2⁶⁰) and the flags.
            flags: columns that are 1 or 0, of each of which the flagged records are counted.

        Raises:
            TableError: the counts add up to more than 2⁶⁰.
        """
        axes = range(len(self.tree.axes))
        names = [f"leaf{a}" for a in axes]
        columns = [*(self._column(np.int32, name) for name in names), self._column(np.int64, "n")]
        lowest, flagged = [0 for _ in axes], [0 for _ in flags]
        total = np.zeros(1, dtype=np.int64)
        waiting: list[NDArray[Any]] = []
        for batch in self._sorted(db, records, names, flags):
            codes = [batch.column(a).to_numpy() for a in axes]
            lowest = [min(low, int(code.min())) for low, code in zip(lowest, codes, strict=True)]
            values = batch.column(len(names)).to_numpy()
            check_total(values, self.what)
            total = np.append(total, values.sum())[-2:]
            check_total(total, self.what)
            total = total.sum(keepdims=True)
            for i in range(len(flags)):
                flag = batch.column(len(names) + 1 + i).to_numpy()
                flagged[i] += int(values[flag == 1].sum())
            kept = np.flatnonzero(values)
            if not len(kept):
                continue
            found = [column[kept] for column in (*codes, values)]
            if waiting:
                found = [np.append(*pair) for pair in zip(waiting, found, strict=True)]
            found = _merged(found)
            waiting = [column[-1:] for column in found]
            for column, part in zip(columns, found, strict=True):
                column.append(part[:-1])
        for column, last in zip(columns, waiting, strict=bool(waiting)):
            column.append(last)
        *codes, values = [column.whole() for column in columns]
        return (tuple(codes), values), lowest, flagged

    def _column(self, kind: type[np.generic], name: str) -> Column:
        return InMemory(kind) if self.folder is None else OnDisk(kind, self.folder / name)

    def _sorted(
        self, db: duckdb.DuckDBPyConnection, records: str, names: list[str], flags: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        leaves, flagged = ", ".join(names), "".join(f", {flag}" for flag in flags)
        if (
            self.grouped
        ):  # a sum beyond the limit is cut to just beyond it, for `check_total` to see
            many = f"CAST(LEAST(SUM(n), {MAX_TOTAL + 1}) AS BIGINT)"
            records = (
                f"SELECT {leaves}, {many} AS n{flagged} FROM ({records}) GROUP BY {leaves}{flagged}"
            )
        joins, words = self._words(db, names)
        order = ", ".join(words)
        rows = db.sql(
            f"SELECT {leaves}, CAST(n AS BIGINT){flagged} FROM ({records}) AS r {joins} "
            f"ORDER BY {order}"
        )
        yield from rows.to_arrow_reader(ROWS_A_BATCH)

    def _words(self, db: duckdb.DuckDBPyConnection, names: list[str]) -> tuple[str, list[str]]:
        """The joins that bring what each axis adds to the words, and the words."""
        if len(names) == 1:
            return "", names
        joins = ""
        terms: list[list[str]] = [[] for _ in leaf_words(self.tree, 0)]
        for a, name in enumerate(names):
            words = leaf_words(self.tree, a)
            columns = {f"w{i}": word for i, word in enumerate(words) if word.any()}
            if columns:
                leaf = np.arange(len(words[0]), dtype=np.int32)
                db.register(f"words{a}", pa.table({"leaf": leaf, **columns}))
                joins += f" LEFT JOIN words{a} ON words{a}.leaf = r.{name}"
                for column in columns:
                    terms[int(column[1:])].append(f"words{a}.{column}")
        return joins, [" + ".join(term) for term in terms if term] or names[:1]


def _merged(columns: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Sum neighbours with equal codes; the last column holds the counts."""
    *codes, values = columns
    changed = np.ones(len(values), dtype=bool)
    changed[1:] = False
    for code in codes:
        changed[1:] |= code[1:] != code[:-1]
    if changed.all():
        return columns
    start = np.flatnonzero(changed)
    return [*(code[start] for code in codes), np.add.reduceat(values, start)]
