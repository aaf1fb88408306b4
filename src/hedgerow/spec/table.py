"""``[table]`` of a release file: where the confidential records are, and how they are counted."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hedgerow.declared import frozen
from hedgerow.distribution.bins import Binned, NumericColumn, binned
from hedgerow.errors import SpecError, TableError
from hedgerow.limits import MOST_COLUMNS_OF_A_LIST
from hedgerow.spark.table import SparkSource, SparkTable, read_source
from hedgerow.spec.axis_section import AREAS_OF_TABLE, NUMERIC
from hedgerow.spec.release_file import PriorSection, ReleaseFile
from hedgerow.spec.toml_file import within
from hedgerow.tables.counts import Counts
from hedgerow.tables.lists.public_table import as_called, columns_in, names_of
from hedgerow.tables.read import Query
from hedgerow.tables.sources.files import local_places, share_files
from hedgerow.tables.sources.odbc import is_connection
from hedgerow.tables.sources.source import describe_source
from hedgerow.tables.tree import Tree

SQLITE = "sqlite:///"


def located(url: str, folder: Path) -> str:
    """Return a database's URL, SQLite's with the real path of its file, relative to a folder."""
    address, mark, parameters = url.partition("?")
    if not address.startswith(SQLITE):
        return url
    path = os.path.realpath(folder / unquote(address.removeprefix(SQLITE)))
    return f"{SQLITE}{quote(path)}{mark}{parameters}"


@frozen
class TableSpec:
    """The table of a release file.

    Attributes:
        file: the release file, whose other sections say what of the table is counted.
        folder: where that file lies; a relative path in it is relative to it.
    """

    file: ReleaseFile
    folder: Path

    @property
    def source(self) -> Path | Query | SparkSource:
        """Where the records are."""
        table = self.file.table
        if self.file.engine.name == "spark" and SparkSource.names(table.source):
            return SparkSource(table.source)
        if "://" not in table.source:
            if is_connection(table.source):  # it may hold a password: never shown
                raise SpecError(
                    "[table] source is a connection string of ODBC; write odbc:// before it"
                )
            if table.query is not None:
                raise SpecError("[table] query needs a database URL as source")
            return self.folder / table.source
        if table.query is None:
            raise SpecError('[table] a database URL as source needs query = "SELECT …"')
        return within("[table]", Query, located(table.source, self.folder), table.query)

    @property
    def places(self) -> list[Path]:
        """Where on this machine the table may lie; nowhere if a server or a cluster has it."""
        source = self.source
        if isinstance(source, Path):
            spark = self.file.engine.name == "spark"
            return [source, *(local_places(f"file:{source}") if spark else [])]
        return local_places(source.url if isinstance(source, Query) else source.text)

    def shares_files(self, path: Path) -> bool:
        """Return whether a file is the table itself, or a part of it, under any name."""
        return any(share_files(path, place) for place in self.places)

    def check_public(self, name: str | None, what: str, instead: str) -> None:
        """Raise a SpecError if a public file, relative to the folder, is the confidential table.

        Args:
            name: the file; None where none is given.
            what: names it.
            instead: the way out.
        """
        if name is not None and self.shares_files(self.folder / name):
            raise SpecError(f"{what} is the confidential table itself; {instead}")

    @property
    def not_compared(self) -> str | None:
        """What a plan has to say of its public files where the table is no file of this machine."""
        file = self.file
        named: list[object] = [file.allocation.prior, *(fact.source for fact in file.public)]
        named += [each.sizes or each.areas for each in file.accept]
        for axis in file.axis:
            named += [axis.shapes, axis.lists, axis.areas != AREAS_OF_TABLE and axis.areas]
        if self.places or not any(named):
            return None
        return (
            "the table is no file of this machine, so nothing checked whether a public file of "
            "this release (list, shapes, [[public]], prior) is the table itself; make sure that "
            "none is"
        )

    def counts(self, tree: Tree, memory: int | None = None, *, bounded: bool = True) -> Counts:
        """Return the counts of the table; see `counts_of`."""
        return within(
            "[table]",
            lambda: self.counts_of(self._records(tree), tree, memory, bounded=bounded),
        )

    def public_counts(self, tree: Tree, *, bounded: bool = True) -> Counts:
        """Return the counts of a public table, which may call its columns as the lists do."""
        return within("[table]", self._public_counts, tree, bounded)

    def _public_counts(self, tree: Tree, bounded: bool) -> Counts:  # noqa: FBT001 - from within
        source = self.source
        axes = list(tree.axes)
        if isinstance(source, SparkSource):
            return self.counts(tree)  # an error that says so
        listed = [n for n, axis in enumerate(self.file.axis) if axis.kind is not NUMERIC]
        subject = "the table"
        called = as_called(
            [axes[n] for n in listed],
            columns_in(source, subject),
            describe_source(source, subject),
        )
        for n, axis in zip(listed, called, strict=True):
            axes[n] = axis
        own = tree.with_axes(axes)
        return replace(self.counts_of(self._records(own), own, bounded=bounded), tree=tree)

    def counts_of(
        self, records: Any, tree: Tree, memory: int | None = None, *, bounded: bool
    ) -> Counts:
        """Return the counts of records with the columns of the table.

        Args:
            records: see `Counts.from_frame`; or with their numeric columns binned.
            tree: of the release.
            memory: bytes; see `hedgerow.release.preflight`.
            bounded: whether contributions are bounded as the file says; not to compare tables.
        """
        made = Counts.from_frame(
            tree,
            records.table if isinstance(records, Binned) else records,
            count=self.file.table.count,
            unit=self.file.table.unit if bounded else None,
            contributions=self.file.privacy.contributions if bounded else 1,
            memory=memory,
        )
        return replace(made, moved=records.moved) if isinstance(records, Binned) else made

    def with_codes(self, given: PriorSection, tree: Tree, *, as_table: bool = False) -> Any:
        """Return a public table, with the codes of bins where it has the numbers of an axis.

        Its columns of numbers are called as the table's. Numbers are left alone of an axis that it
        has the codes of, under any name; where it is read as the table is, they come first.

        Args:
            given: the section that names it.
            tree: of the release.
            as_table: whether it is read as the table is.
        """
        path = self.folder / given.source
        names = columns_in(path, "the table")
        own = given.columns or {}
        numeric = [
            n
            for n in self._numeric(tree)
            if n.column in names
            and n.column != given.count
            and n.axis.name not in own
            and (as_table or {n.axis.columns[-1], n.axis.levels[-1]}.isdisjoint(names))
        ]
        if not numeric:
            return path
        numbers = {n.column for n in numeric}
        once = [name for name, times in Counter(names).items() if times == 1]
        kept = names_of(tree.axes).union(*own.values(), self._others, [given.count])
        left = [name for name in once if name not in numbers | kept][:MOST_COLUMNS_OF_A_LIST]
        others = [name for name in once if name in kept] + left
        return binned(path, numeric, others, public=True).table

    def on_spark(self, session: Any, tree: Tree) -> SparkTable:
        """Return the table, to be read on Spark."""
        table = self.file.table
        source = self.source
        if isinstance(source, Query):
            raise SpecError("[table] on Spark a database is read by JDBC: jdbc:postgresql://…")
        text = source.text if isinstance(source, SparkSource) else str(source.absolute())
        return SparkTable(
            frame=within("[table]", read_source, session, text, table.query),
            count=table.count,
            unit=table.unit,
            contributions=self.file.privacy.contributions,
            numeric=tuple(self._numeric(tree)),
        )

    def _records(self, tree: Tree) -> Any:
        """Return the records; where axes are numeric, with the codes of their bins."""
        numeric = self._numeric(tree)
        source = self.source
        if isinstance(source, SparkSource):
            raise SpecError("[table] source can be read by Spark only, in hedgerow release")
        if not numeric:
            return source
        made = {column for n in numeric for column in n.axis.columns}
        read = [a.columns if a.reading is None else a.reading.columns for a in tree.axes]
        codes = {column for columns in read for column in columns} - made
        return binned(source, numeric, [*sorted(codes), *self._others])

    def _numeric(self, tree: Tree) -> list[NumericColumn]:
        """Return the numeric columns of the table, each with its axis."""
        numeric = [
            NumericColumn(given.column, given.ranges, axis)
            for given, axis in zip(self.file.axis, tree.axes, strict=True)
            if given.kind is NUMERIC
        ]
        for name in self._others:
            if name in {n.column for n in numeric}:
                raise TableError(f"column {name!r} is already the numeric column of an axis")
        return numeric

    @property
    def _others(self) -> list[str]:
        """The columns of counts and units."""
        return [name for name in (self.file.table.count, self.file.table.unit) if name is not None]
