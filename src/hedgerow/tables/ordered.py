"""Records with leaf numbers → leaf counts in tree order: sorted by DuckDB, which spills to disk.

Sorting comes cheaper than grouping where few rows share a leaf, and rows that come sorted need no
room: equal leaves stand side by side, and are added up as they stream by.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.arrays import Array, CellNumbers, Codes, Int64, UInt64, begins, some_of
from hedgerow.declared import frozen
from hedgerow.errors import TableError, outside_limits
from hedgerow.limits import LARGEST_LEAF
from hedgerow.tables.sources.database import Database, translate_duckdb_errors
from hedgerow.tables.tree import Tree, leaf_words

# The column with the number of records of a row: whole numbers, or a sentence why not.


MISSING = "has a row without a value; write 0 where there are no records"
NEGATIVE = "holds a negative number; counts must be 0 or more"
FRACTION = "holds a fraction; counts must be whole numbers"
ENDLESS = "holds NaN or infinity; counts must be whole numbers"
GROUPED = (
    "holds a number such as 1,234 or 1.234, which may be a thousand or a fraction; write counts as "
    "digits alone"
)
WORDS = "holds text that is no number; counts must be whole numbers"
POWERS = "holds a number with an exponent; write counts out in digits"

Rules = list[tuple[str, str]]


def whole_count(
    db: Database,
    column: str,
    kind: str,
    *,
    subject: str,
    name: str,
    empty: int | None = None,
) -> str:
    """Return the SQL of a count column of ``loaded`` as whole numbers up to `LARGEST_LEAF`.

    Nothing is ever rounded; larger numbers count as the largest. A row without a value has the
    number ``empty``; where that is None, there must be none.
    """
    number = _number(column, kind)
    suspicious, rules, large = _rules(column, number, kind, f"{subject}: column {name!r}")
    whole = f"WHEN {large} THEN {LARGEST_LEAF} ELSE CAST({number} AS BIGINT) END"
    if empty is not None:
        (missing, _), *rules = rules
        suspicious = f"NOT ({missing}) AND ({suspicious})"
        whole = f"WHEN {missing} THEN {empty} {whole}"
    flags = ", ".join(f"bool_or({broken})" for broken, _ in rules)
    with translate_duckdb_errors(subject, "cannot be read to its end"):
        (flagged,) = db.execute(f"SELECT {flags} FROM loaded WHERE {suspicious}").fetchall()
    for broken, (_, sentence) in zip(flagged, rules, strict=True):
        if broken:
            raise outside_limits(subject, sentence, column=name)
    return f"CASE {whole}"


def hold_counts(db: Database, kinds: Sequence[str]) -> list[bool]:
    """Return which columns c0, c1, … of ``loaded`` hold whole numbers alone, one above 1.

    Args:
        db: where they are loaded.
        kinds: their types.
    """
    (flags,) = db.execute(
        f"SELECT {', '.join(map(_holds_counts, count(), kinds))} FROM loaded"
    ).fetchall()
    return [each is True for each in flags]


def _holds_counts(place: int, kind: str) -> str:
    column = f"c{place}"
    number = _number(column, kind)
    try:
        suspicious, rules, large = _rules(column, number, kind, column)
    except TableError:
        return "false"
    broken = " OR ".join(rule for rule, _ in rules)
    return f"NOT bool_or(({suspicious}) AND ({broken})) AND bool_or({large} OR {number} > 1)"


def _number(column: str, kind: str) -> str:
    """Return the SQL of a column's numbers: of text the whole ones, NULL beyond 2¹²⁷."""
    if not _is_text(kind):
        return column
    text = _trimmed(column)
    return f"COALESCE(TRY_CAST({text} AS HUGEINT), TRY_CAST({_plain(text)} AS HUGEINT))"


def _is_text(kind: str) -> bool:
    return kind in {"VARCHAR", '"NULL"'} or (kind.startswith("ENUM") and kind.endswith(")"))


def _trimmed(column: str) -> str:
    return f"trim(CAST({column} AS VARCHAR))"


def _rules(column: str, number: str, kind: str, subject: str) -> tuple[str, Rules, str]:
    """Return which rows need a closer look, what can be wrong with a row, and when it is too large.

    The rules stand in the order of reporting; the first is that no value is missing.
    """
    missing = (f"{column} IS NULL", MISSING)
    negative = (f"{column} < 0", NEGATIVE)
    fraction = (f"{column} <> floor({column})", FRACTION)
    large = f"{column} > {LARGEST_LEAF}"
    if kind.endswith(("INT", "INTEGER")):
        return "true", [missing, negative], large
    if kind in {"FLOAT", "DOUBLE"}:
        return "true", [missing, (f"NOT isfinite({column})", ENDLESS), negative, fraction], large
    if kind.startswith("DECIMAL") and kind.endswith(")"):
        # the rounded value always fits a HUGEINT, while 2⁴⁰ may not fit the decimal
        large = f"CAST({column} AS HUGEINT) > {LARGEST_LEAF}"
        return "true", [missing, negative, fraction], large
    if _is_text(kind):
        text = _trimmed(column)
        suspicious = f"{column} IS NULL OR NOT {_matches(text, '[0-9]{1,18}')}"
        return suspicious, _text_rules(text), f"{number} IS NULL OR {number} > {LARGEST_LEAF}"
    raise TableError(f"{subject} holds {kind}; counts must be whole numbers")


def _text_rules(text: str) -> Rules:
    number = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
    plain = _plain(text)
    return [
        (f"{text} IS NULL OR {text} = ''", MISSING),
        (_matches(text, "[+-]?(nan|inf|infinity)"), ENDLESS),
        (_matches(text, number + "e[+-]?[0-9]+"), POWERS),
        (_matches(text, "[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}"), GROUPED),
        (f"NOT {_matches(plain, number)}", WORDS),
        (_matches(plain, "-.*[1-9].*"), NEGATIVE),
        (_matches(plain, ".*[.].*[1-9].*"), FRACTION),
    ]


def _plain(text: str) -> str:
    """Return the SQL of a number without separators of thousands, and with a decimal point.

    Only what can be read in one way changes: ``1 234``, ``1'234``, ``1,234,567``, ``1.234,0``,
    ``12,0``; ``1,234`` can be a fraction.
    """
    digits = "[+-]?[1-9][0-9]{0,2}"
    gaps = "([ \u00a0\u202f][0-9]{3})+"
    apostrophes = "([''’][0-9]{3})+"
    commas = f"{digits}((,[0-9]{{3}})+[.][0-9]*|(,[0-9]{{3}}){{2,}})"
    points = f"{digits}(([.][0-9]{{3}})+,[0-9]*|([.][0-9]{{3}}){{2,}})"
    blanks = f"{digits}({gaps}|{apostrophes})([.,][0-9]*)?"
    blank = f"regexp_replace({text}, '[ \u00a0\u202f''’]', '', 'g')"
    return (
        f"CASE WHEN {_matches(text, commas)} THEN replace({text}, ',', '') "
        f"WHEN {_matches(text, points)} THEN replace(replace({text}, '.', ''), ',', '.') "
        f"WHEN {_matches(text, blanks)} THEN replace({blank}, ',', '.') "
        f"WHEN {_matches(text, '[+-]?[0-9]*,[0-9]*')} THEN replace({text}, ',', '.') "
        f"ELSE {text} END"
    )


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, '{pattern}', 'i')"


# A sum over records that tells two tables apart, however their rows are ordered or shared out.
#
# Each record adds a fixed word of its leaf, so the sums of the parts of a table add up to that of
# the whole: `Σ count(leaf) · word(leaf)` modulo 2⁶⁴, twice with different words. A table that
# changed between two readings keeps both sums with probability 2⁻¹²⁸; nothing here resists someone
# who makes tables on purpose. Confidential, as a digest of the table.

SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def record_words(codes: Codes, values: Int64) -> tuple[UInt64, ...]:
    """Return what each leaf adds to the sums: two uint64 arrays (leaves).

    Args:
        codes: one int32 array (leaves) an axis.
        values: int64 (leaves), records.
    """
    words = []
    for seed in map(np.uint64, SEEDS):
        word = np.full(len(values), seed)
        for code in codes:  # by the finaliser of SplitMix64 (Steele, Lea & Flood 2014), a bijection
            word = word ^ code.astype(np.uint64)
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            word = (word ^ (word >> np.uint64(31))) + seed
        words.append(word * values.astype(np.uint64))
    return tuple(words)


Leaves = CellNumbers
Sums = Callable[[Int64, Int64], Int64]
"""``(values, start)``: the sums of the groups that begin at ``start``."""

ROWS_A_BATCH = 1 << 20


@dataclass(slots=True)
class Column:
    """A column in memory, or in a file without a name, which goes away with the array.

    Attributes:
        kind: of its values.
        path: where the file is made; None: in memory.
    """

    kind: type[np.generic]
    path: Path | None
    parts: list[Array] = field(default_factory=list)
    file: Any = None

    def append(self, values: Array) -> None:
        """Add values at the end."""
        if self.path is None:
            self.parts.append(values)
            return
        if self.file is None:
            self.file = self.path.open("x+b")
            self.path.unlink()  # a killed run leaves nothing
        values.tofile(self.file)

    def whole(self) -> Array:
        """Return all of them; those of a file are mapped into memory, and read a page at a time."""
        if self.file is not None:
            self.file.flush()
            with self.file as file:
                return np.memmap(file, dtype=self.kind, mode="r").view(np.ndarray)
        column = np.concatenate([np.empty(0, dtype=self.kind), *self.parts])
        self.parts = []
        return column


@frozen
class Ordering:
    """How the records of a table become leaf counts.

    Attributes:
        tree: the tree.
        grouped: many rows share a leaf, so DuckDB adds them up before it sorts.
        folder: where the leaf counts lie on disk; None: in memory.
    """

    tree: Tree
    grouped: bool
    folder: Path | None = None

    def leaves(
        self, db: Database, records: str, flags: Sequence[str] = ()
    ) -> tuple[Leaves, list[int], list[int]]:
        """Return the non-zero leaves in tree order, each axis's lowest leaf, flagged records."""
        axes = range(len(self.tree.axes))
        names = [f"leaf{a}" for a in axes]
        kinds: dict[str, type[np.generic]] = {**dict.fromkeys(names, np.int32), "n": np.int64}
        columns = [Column(kind, self.folder and self.folder / n) for n, kind in kinds.items()]
        lowest = [0 for _ in axes]
        flagged = [0 for _ in flags]
        waiting: list[Array] = []
        for batch in self._sorted(db, records, names, flags):
            codes = [batch.column(a).to_numpy() for a in axes]
            lowest = [min(low, int(code.min())) for low, code in zip(lowest, codes, strict=True)]
            values = batch.column(len(names)).to_numpy()
            for i in range(len(flags)):
                flagged[i] += int(values[batch.column(len(names) + 1 + i).to_numpy() == 1].sum())
            kept = np.flatnonzero(values)
            if not len(kept):
                continue
            columns_kept = [column[kept] for column in (*codes, values)]
            if waiting:
                columns_kept = [
                    np.append(*pair) for pair in zip(waiting, columns_kept, strict=True)
                ]
            *codes, values = columns_kept
            merged, values = merge_equal(tuple(codes), values, _cut_sums)
            columns_kept = [*merged, values]
            waiting = [column[-1:] for column in columns_kept]
            for column, part in zip(columns, columns_kept, strict=True):
                column.append(part[:-1])
        for column, last in zip(columns, waiting, strict=bool(waiting)):
            column.append(last)
        *codes, values = [column.whole() for column in columns]
        return (tuple(codes), values), lowest, flagged

    def _sorted(
        self, db: Database, records: str, names: list[str], flags: Sequence[str]
    ) -> Iterator[pa.RecordBatch]:
        leaves = ", ".join(names)
        flagged = "".join(f", {flag}" for flag in flags)
        if self.grouped:
            many = f"CAST(LEAST(SUM(n), {LARGEST_LEAF}) AS BIGINT)"
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

    def _words(self, db: Database, names: list[str]) -> tuple[str, list[str]]:
        """Return the joins that bring what each axis adds to the words, and the words."""
        refined = [axis for axis, _ in self.tree.steps]
        if refined == sorted(refined):  # one axis after the other: that is the order of the leaves
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


def merge_equal(codes: Codes, values: Int64, sums: Sums) -> Leaves:
    """Return each run of neighbours with equal codes once, with the sum of its values."""
    changed = begins(codes)
    if changed.all():
        return codes, values
    start = np.flatnonzero(changed)
    return some_of(codes, start), sums(values, start)


def _cut_sums(values: Int64, start: Int64) -> Int64:
    """Return sums up to `LARGEST_LEAF`; those of a batch of 2²⁰ rows cannot wrap."""
    return np.minimum(np.add.reduceat(values, start), LARGEST_LEAF)
