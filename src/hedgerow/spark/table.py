"""A confidential table that Spark reads → leaf codes, on the executors, by the local reader.

The public lists go to every executor, where each share of the records is read as a table of its
own by `hedgerow.tables.counts.Counts.from_frame`: so the rules, and the sentences about what
breaks them, are those of the local engine, and the records of a share that fall into one leaf are
one row from then on. Then the rows of each leaf are brought together, where its count is cut to the
limit. Records of one unit are brought together before all that, as bounding needs them all.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from hedgerow.declared import frozen
from hedgerow.distribution.bins import NumericColumn, binned
from hedgerow.errors import TableError, outside_limits, reads_table
from hedgerow.limits import LARGEST_LEAF
from hedgerow.spark.session import (
    FAULT,
    Batches,
    Frame,
    causes_of,
    failed_of_machine,
    mapped,
    spark_errors,
)
from hedgerow.tables.counts import Counts
from hedgerow.tables.domain import axis_columns
from hedgerow.tables.sources.one_select import ANY, POSTGRESQL, SQLITE, one_select
from hedgerow.tables.sources.source import Source
from hedgerow.tables.tree import Tree

CATALOGUE, JDBC = "table:", "jdbc:"
FILES = r"(s3a|hdfs|abfss?|gs|file|dbfs)://"
ROWS_A_SHARE = 1 << 21
BROKEN = "hedgerow: broken"
RAGGED = (
    "is no table: a CSV file must be UTF-8 text with the same number of fields in every "
    "row as in its header"
)


@dataclass(frozen=True)
class SparkTable:
    """Records in a data frame of Spark, and what to count of them.

    Attributes:
        frame: the records.
        what: how messages name them.
        count: the column with the number of records of a row; None: a row is a record.
        unit: the column that names a record's unit of privacy; None: nothing is bounded.
        contributions: the most records kept of one unit.
        numeric: columns that are cut into the bins of an axis.
    """

    frame: Frame
    what: str = "the table"
    count: str | None = None
    unit: str | None = None
    contributions: int = 1
    numeric: Sequence[NumericColumn] = ()

    def leaves(self, tree: Tree) -> Frame:
        """Return leaf codes and counts, each leaf in one row: ``leaf0``, …, ``n``, ``fault``.

        Which rows of a leaf share an executor's table is up to Spark, so a leaf has its final count
        only here, when all its rows are together: ``min(x, LARGEST_LEAF)`` of all its x records,
        as in the local engine. A record more or less changes that by at most one, in one leaf (a
        record that moves: in two), so the table is 1-stable whatever the splits are.

        Raises:
            TableError: a missing column, or one that is there twice.
        """
        if self.unit is not None and self.count is not None:
            raise TableError("unit needs one row a record; leave count out")
        columns = self._columns(tree)
        with table_errors(self.what):
            chosen = self.frame.select(*(f"`{name.replace('`', '``')}`" for name in columns))
        if self.unit is not None:
            chosen = chosen.repartition(f"`{self.unit.replace('`', '``')}`")
        rows = mapped(chosen, _leaf_rows(self, tree, columns), leaf_schema(tree))
        with table_errors(self.what):
            return _each_once(rows, tree)

    def _columns(self, tree: Tree) -> list[str]:
        source = Source(self.what, tuple(self.frame.columns), lambda _places: None)
        binned_axes = {n.axis.name for n in self.numeric}
        wanted = [n.column for n in self.numeric]
        for axis in tree.axes:
            if axis.name not in binned_axes:
                wanted += axis_columns(axis, source)
        extra = [name for name in (self.count, self.unit) if name is not None]
        if not set(extra).isdisjoint(wanted):
            raise TableError(f"column {extra[0]!r} of {self.what} is already a level of an axis")
        if BROKEN in source.names:
            extra.append(BROKEN)
        for name in [*wanted, *extra]:
            source.place(name)
        return [*wanted, *extra]


def leaf_columns(tree: Tree) -> list[str]:
    """Return what the columns of leaf codes are called, one an axis."""
    return [f"leaf{a}" for a in range(len(tree.axes))]


def leaf_schema(tree: Tree, sums: Sequence[str] = ("n",)) -> pa.Schema:
    """Return the columns of leaf codes, of counts and other sums, and of faults."""
    kinds = dict.fromkeys(leaf_columns(tree), pa.int32()) | dict.fromkeys(sums, pa.int64())
    return pa.schema([*kinds.items(), FAULT])


def _each_once(rows: Frame, tree: Tree) -> Frame:
    """Return each leaf in one row, with up to `LARGEST_LEAF` records; faults are kept.

    Doubles hold every sum below 2⁵³ exactly and never fall, so the minimum is exact, whatever the
    order is in which Spark adds; a sum of whole numbers would fail where it passes 64 bits.
    """
    keys = [*leaf_columns(tree), FAULT.name]
    real = rows.selectExpr(*keys, "CAST(COALESCE(n, 0) AS double) AS n")
    summed = real.groupBy(*keys).sum("n")
    many = f"CAST(LEAST(`sum(n)`, CAST({LARGEST_LEAF} AS double)) AS bigint) AS n"
    return summed.selectExpr(*keys[:-1], many, FAULT.name)


def _leaf_rows(table: SparkTable, tree: Tree, others: list[str]) -> Callable[[Batches], Batches]:
    """Return what an executor does with a partition's rows; the frame stays on the driver."""
    count = table.count
    unit = table.unit
    contributions = table.contributions
    numeric = table.numeric
    schema = leaf_schema(tree)

    def work(batches: Batches) -> Batches:
        for share in _shares(batches, whole=unit is not None):
            if BROKEN in share.column_names and any(share[BROKEN].to_pylist()):
                raise outside_limits("the table", RAGGED)
            records = binned(share, numeric, others).table if numeric else share
            counts = Counts.from_frame(
                tree, records, count=count, unit=unit, contributions=contributions
            )
            columns = [*counts.codes, counts.values, pa.nulls(len(counts.values), pa.string())]
            yield pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=schema)

    return work


def _shares(batches: Batches, *, whole: bool) -> Iterator[pa.Table]:
    """Yield the batches of a partition in a few large tables; or in one."""
    waiting = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_A_SHARE and not whole:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting)


@frozen
class SparkSource:
    """What Spark can read and the local engine cannot.

    Attributes:
        text: ``table:database.name`` of Spark's catalogue; ``jdbc:…``, which may hold a password
            and is never shown; or a place of files: ``s3a://…``, ``hdfs://…``.
    """

    text: str = field(repr=False)

    @staticmethod
    def names(text: str) -> bool:
        """Return whether a source is none of the local engine's."""
        return text.startswith((CATALOGUE, JDBC)) or re.match(FILES, text) is not None


@reads_table
def read_source(session: Any, text: str, query: str | None = None) -> Frame:
    """Return the rows of a source: a path, or what `SparkSource` names.

    Raises:
        TableError: it is not there, or cannot be read.
        MachineError: Spark failed.
    """
    if text.startswith(JDBC):
        if query is None:
            raise TableError('a source over JDBC needs query = "SELECT …"')
        one = jdbc_query(text, query)  # Spark needs the database's driver (``--packages``)
        with table_errors("the table (a query over JDBC)"):
            return session.read.format("jdbc").option("url", text).option("query", one).load()
    if query is not None:
        raise TableError("query goes with a source over JDBC")
    if text.startswith(CATALOGUE):
        name = text.removeprefix(CATALOGUE)
        with table_errors(f"the table {name}"):
            return session.table(name)
    return read_files(session, text)


def read_files(session: Any, path: str) -> Frame:
    """Return the rows of a CSV file, or of a file or folder of Parquet, that Spark can reach.

    Another format of files is another branch here.

    Raises:
        TableError: there is none, or its name ends as those of neither.
        MachineError: Spark failed.
    """
    what = f"the table {path}"
    known = re.search(r"\.(csv|tsv|txt|parquet|pq)(\.\w+)?$", path.lower())
    suffix = re.search(r"\.[a-z]\w*$", path.lower())
    if known is None and suffix is not None:
        raise TableError(
            f"{what} ends in {suffix[0]}, and Spark reads CSV (.csv, .tsv, .txt) and Parquet "
            f"(.parquet, .pq): convert it, or write / behind the name of a folder of Parquet files"
        )
    is_csv = known is not None and known[1] in {"csv", "tsv", "txt"}
    with table_errors(what):
        return _csv(session, path, what) if is_csv else session.read.parquet(path)


def jdbc_query(url: str, query: str) -> str:
    """Return the query as Spark may put it into parentheses, whatever database the URL is of.

    Raises:
        TableError: it is not one SELECT.
    """
    dialects = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
    kind = url.removeprefix(JDBC).partition(":")[0]
    return f"{one_select(query, dialects.get(kind, ANY))}\n"  # it may end in a comment


def _csv(session: Any, path: str, what: str) -> Frame:
    """Return all columns text, and a column that tells which rows had more or fewer fields."""
    first = session.read.text(path).head()
    head = "" if first is None else first[0].removeprefix("\ufeff")
    separator = max(",;\t|", key=re.sub('"[^"]*"', "", head).count)
    names = next(csv.reader(io.StringIO(head, newline=""), delimiter=separator), [])
    if not any(names):
        raise outside_limits(what, "is no table: its first line is no header")
    fields = [f"f{i}" for i in range(len(names))]
    rows = session.read.csv(
        path, schema=", ".join(f"{field} string" for field in [*fields, "broken"]),
        header=True, sep=separator, quote='"', escape='"', multiLine=True, mode="PERMISSIVE",
        columnNameOfCorruptRecord="broken", enforceSchema=True,
    )  # fmt: skip
    flagged = rows.selectExpr(*fields, "broken IS NOT NULL AS broken")
    return flagged.toDF(*names, BROKEN)


@contextmanager
def table_errors(what: str) -> Iterator[None]:
    """Spark's refusals of a source as ours.

    Raises:
        TableError: Spark's analysis, or a database that the query is compiled in, says no; or what
            was read of the table is damaged.
        MachineError: the cluster or the machine failed.
    """
    reasons = {
        "PATH_NOT_FOUND": "does not exist; check its path",
        "TABLE_OR_VIEW_NOT_FOUND": "does not exist; check its name",
    }
    with spark_errors(f"{what} cannot be read", of_table=True):
        try:
            yield
        except Exception as error:
            named = _not_understood(error)
            if named is None:
                raise
            failure = TableError(f"{what} {reasons.get(named, f'cannot be read: {named}')}")
            raise failure from None


def _not_understood(error: Exception) -> str | None:
    """Return in a word what Spark or a database says no to, whatever the records are; else None.

    An SQLSTATE that begins with 42 is of a text that is compiled, one with 28 of a login.
    """
    causes = causes_of(error)
    named = causes[0].name
    if (
        failed_of_machine(causes) or named == "UNABLE_TO_INFER_SCHEMA"
    ):  # a file may be cut to 0 bytes
        return None
    if any(cause.state.startswith(("28", "42")) for cause in causes):
        return named
    analysed = type(error).__name__ in {"AnalysisException", "ParseException"}
    ran = named.startswith("FAILED_JDBC") and named != "FAILED_JDBC.CONNECTION"
    return named if analysed and not ran else None
