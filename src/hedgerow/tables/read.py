"""A confidential table → leaf counts: found, checked and grouped in one go."""

from collections.abc import Sequence
from typing import Any

from hedgerow.arrays import Codes, Int64
from hedgerow.errors import TableError, outside_limits, reads_table
from hedgerow.tables.codes.float_codes import unpointed_sql
from hedgerow.tables.domain import (
    CONTRADICTION,
    OUTSIDE,
    Match,
    axis_columns,
    is_column_pointed,
    match_axis,
    raise_unmatched,
)
from hedgerow.tables.ordered import Ordering, whole_count
from hedgerow.tables.sources.database import (
    Database,
    Query,
    private_folder,
    sql_text,
    translate_duckdb_errors,
)
from hedgerow.tables.sources.source import (
    Source,
    coded,
    describe_source,
    load,
    open_table,
    read_areas,
)
from hedgerow.tables.tree import Tree


def bounded_sql(leaves: list[str], contributions: int, carried: Sequence[str] = ()) -> str:
    """Return the SELECT of the leaves of at most ``contributions`` records a unit.

    The records of a unit stand in the order of a hash of the unit, the leaf, and which of the
    unit's records in that leaf it is; the first ``contributions`` are kept. So what is kept of a
    unit depends on its own records alone: `docs/proofs/privacy.md`, "Bounding contributions".
    """
    names = ", ".join(leaves)
    # the unit stands last, so that no two records write the same text
    record = ", ".join(f"CAST({part} AS VARCHAR)" for part in ["copy", *leaves])
    return (
        f"SELECT {', '.join([*leaves, *carried])} FROM ("
        f"SELECT *, row_number() OVER (PARTITION BY unit "
        f"ORDER BY md5(concat_ws(' ', {record}, unit)), copy, {names}) AS place FROM ("
        f"SELECT *, row_number() OVER (PARTITION BY unit, {names}) AS copy FROM records"
        f")) WHERE place <= {contributions}"
    )


REWRITTEN = (
    "^[+-]?[0-9]+[.,]0*$",
    "^[+-]?[0-9]+([.,][0-9]*[eE][+-]?|[eE][+-])[0-9]+$",
    r"^[\s\p{Z}\p{C}]|[\s\p{Z}\p{C}]$",
)
"""Ids as a program rewrites them unasked: ``17.0`` and ``1.7E+1`` for 17, and blanks around one."""
ONE_WRITING = (
    "holds an id that programs write in several ways; write 17, not 17.0 or 1.7E+1, without blanks "
    "around it, and accents composed (Unicode NFC), so that nobody is two units"
)


def rewritten_sql(unit: str) -> str:
    """Return the SQL of whether an id, as text, is one that a program has rewritten.

    Ids are compared letter by letter, so a person with two writings of one id would be two units,
    and would have twice the records that the bound promises. To read both as one would be wrong the
    other way: two persons would push out each other's records. Each id is looked at by itself:
    were ids compared with each other, whoever adds a record ``17.0`` could learn from the refusal
    whether 17 is in the table.
    """
    patterns = " OR ".join(f"regexp_matches({unit}, {sql_text(each)})" for each in REWRITTEN)
    return f"({patterns} OR nfc_normalize({unit}) <> {unit})"


MISSING = (
    r"(?i)^([^\p{L}\p{N}]*(nan|nan\(ind\)|nat|none|null|nil|undefined|n/?a|n/a n/a|n\.a\.?|"
    r"na_character_|1\.#(ind|qnan))?[^\p{L}\p{N}]*|\\n|\.[a-z])$"
)
"""An id without letters and digits, and what programs write in place of a missing one: of pandas
``nan``, ``NaT`` and ``<NA>``, of Python ``None``, of databases ``NULL`` and ``\\N``, of
spreadsheets ``#N/A``, of C ``1.#IND``, of R ``NA_character_``, of Stata ``.a``."""
NO_UNIT = (
    "lacks the unit of some record, which may be written nan, None, NULL, NA or as a dot; each "
    "record needs its own, or who has a record without one has more than the bound"
)


__all__ = ["Query", "read_areas", "read_leaves"]

Unlisted = tuple[int | None, ...]
Leaves = tuple[Codes, Int64, int | None, Unlisted]


@reads_table
def read_leaves(
    tree: Tree,
    table: Any,
    *,
    count: str | None,
    unit: str | None,
    contributions: int,
    memory: int | None = None,
    public: bool = False,
) -> Leaves:
    """Return the non-zero leaves of a table, each once, in tree order.

    A record's codes on an axis must be a path of the axis's public list. Where a branch of the
    list stops early, so may the record's codes. A record outside the list goes to the axis's
    ``not_stated`` leaf, if it has one.

    Args:
        tree: the tree. Of each axis the table has all columns, or the deepest alone.
        table: a CSV file (also ``.csv.gz``), a Parquet file, a folder or glob of Parquet files; a
            `Query`; a data frame with the Arrow stream interface, or a dict of columns.
        count: the column with the number of records of a row; None: a row is a record.
        unit: the column that names a record's unit of privacy; None: nothing is bounded.
        contributions: the most records kept of one unit (see `bounding`).
        memory: bytes for reading, half of them for the database before it spills to disk; the leaf
            counts then lie on disk as well. Not given: half of the machine's, and in memory.
        public: anyone may see the table; then it has to fit the memory (`open_table`).

    Returns:
        codes: one int32 array (leaves) an axis: leaf numbers; values: int64 (leaves), records, at
        most `LARGEST_LEAF`;
        before: where contributions are bounded, how many records there were, else None;
        unlisted: of each axis with a ``not_stated`` leaf, how many of the records counted there
        have a code that is not in the list, or none; None of the other axes.
    """
    if unit is not None and count is not None:
        raise TableError("unit needs one row a record; leave count out")
    if unit is not None and contributions < 1:
        raise TableError(f"contributions must be at least 1, got {contributions}")
    subject = describe_source(table, "the table")
    limit = None if memory is None else memory // 2
    with (
        private_folder() as folder,
        open_table(table, subject, public=public, memory=limit) as (db, source),
    ):
        matches = _prepare(db, tree, source, count, unit)
        with translate_duckdb_errors(subject, "cannot be read to its end"):
            records, before = _records(db, matches, unit, contributions, subject)
            rows = "SELECT COUNT(*) FROM loaded"
            ordering = Ordering(
                tree,
                grouped=count is None or db.execute(rows).fetchall()[0][0] > tree.leaves,
                folder=None if memory is None else folder,
            )
            flags = _flags(matches)
            (codes, values), lowest, flagged = ordering.leaves(db, records, [*flags.values()])
            _refuse_lost(db, matches, lowest, subject)
            unlisted = dict(zip(flags, flagged, strict=True))
            return codes, values, before, tuple(map(unlisted.get, range(len(matches))))


def _prepare(
    db: Database, tree: Tree, source: Source, count: str | None, unit: str | None
) -> list[Match]:
    """Make the relation ``codes``: text codes c0, c1, …, the count ``n``, the unit ``unit``."""
    chosen = [axis_columns(axis, source) for axis in tree.axes]
    columns = [column for of_axis in chosen for column in of_axis]
    extra = [column for column in (count, unit) if column is not None]
    if extra and extra[0] in columns:
        raise TableError(f"column {extra[0]!r} of {source.subject} is already a level of an axis")
    kinds = load(db, source, [*columns, *extra])
    n, who = "1", "NULL"
    of_codes = columns if count is not None else [*columns, *extra]
    readings = [axis.reading for axis in tree.axes if axis.reading is not None]
    numeric = {column for reading in readings if reading.numeric for column in reading.columns}
    codes = coded(db, source, of_codes, kinds[: len(of_codes)], numeric)
    if count is not None:
        n = whole_count(db, f"c{len(columns)}", kinds[-1], subject=source.subject, name=count)
    if unit is not None:
        who = codes.pop()
    of_columns = [axis for axis, own in zip(tree.axes, chosen, strict=True) for _ in own]
    texts = "".join(
        f"{code if is_column_pointed(axis, column) else unpointed_sql(code)} AS c{i}, "
        for i, (axis, column, code) in enumerate(zip(of_columns, columns, codes, strict=True))
    )
    with translate_duckdb_errors(source.subject, "cannot be read to its end"):
        db.execute(f"CREATE TEMP VIEW codes AS SELECT {texts}{n} AS n, {who} AS unit FROM loaded")
        matches, first = [], 0
        for number, (axis, of_axis) in enumerate(zip(tree.axes, chosen, strict=True)):
            matches.append(match_axis(db, number, axis, of_axis, first))
            first += len(of_axis)
    return matches


def _records(
    db: Database,
    matches: list[Match],
    unit: str | None,
    contributions: int,
    subject: str,
) -> tuple[str, int | None]:
    """Return the SELECT of the leaf numbers and counts of all records, or of those that are kept.

    With it, where contributions are bounded, the number of records before.
    """
    names = [f"leaf{i}" for i in range(len(matches))]
    flags = _flags(matches)
    selected = [f"{match.leaf} AS {name}" for match, name in zip(matches, names, strict=True)]
    selected += [f"{matches[a].unlisted} AS {flag}" for a, flag in flags.items()]
    select_list = ", ".join(selected)
    records = (
        f"SELECT {select_list}, n, unit FROM codes {' '.join(match.join for match in matches)}"
    )
    before = None
    if unit is not None:  # every record is checked, also those that bounding drops
        db.execute(f"CREATE TEMP TABLE records AS {records}")
        least = ", ".join(f"min({name})" for name in names)
        ((before, *lowest),) = db.execute(f"SELECT count(*), {least} FROM records").fetchall()
        _refuse_lost(db, matches, [leaf or 0 for leaf in lowest], subject)
        missing = f"unit IS NULL OR regexp_matches(unit, {sql_text(MISSING)})"
        for broken, rule in ((missing, NO_UNIT), (rewritten_sql("unit"), ONE_WRITING)):
            rows = db.execute(f"SELECT unit FROM records WHERE {broken} LIMIT 1").fetchall()
            if rows:
                raise outside_limits(subject, rule, repr(rows[0][0]), column=unit)
        records = f"SELECT *, 1 AS n FROM ({bounded_sql(names, contributions, [*flags.values()])})"
    return records, before


def _flags(matches: list[Match]) -> dict[int, str]:
    """Return of each axis with a ``not_stated`` leaf the column that says who is there unlisted."""
    return {a: f"unlisted{a}" for a, match in enumerate(matches) if match.unlisted is not None}


def _refuse_lost(db: Database, matches: list[Match], lowest: list[int], subject: str) -> None:
    for match, least in zip(matches, lowest, strict=True):
        if least < 0:
            raise_unmatched(
                db, match, CONTRADICTION if least == CONTRADICTION else OUTSIDE, subject
            )
