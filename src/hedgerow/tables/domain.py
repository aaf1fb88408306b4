"""Which leaf of an axis a record belongs to, found in DuckDB by the codes it carries."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from unicodedata import normalize

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.errors import TableError, outside_limits
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.float_codes import is_pointed
from hedgerow.tables.sources.database import Database
from hedgerow.tables.sources.source import Source
from hedgerow.text import TextByName, Texts

OUTSIDE, CONTRADICTION = -1, -2
VIEWS = pl.CompatLevel.newest()  # text as Polars holds it, not copied


@dataclass(frozen=True)
class Match:
    """How the records of the relation ``codes`` find their leaf of one axis.

    Attributes:
        axis: the axis.
        columns: of the table: all of the axis's, or its deepest alone, or those of its reading; of
            a product axis those that the table has, which tell its leaves apart.
        fields: what SQL calls them.
        join: the LEFT JOIN behind FROM codes.
        leaf: the leaf's number; `OUTSIDE` for a code that is not in the list (and there is no
            ``not_stated`` leaf) and `CONTRADICTION` for a known leaf under another parent.
        unlisted: 1 for a record that is counted at the ``not_stated`` leaf because its code is not
            in the list, or it has none; 0 for any other. None where the axis has no such leaf.
    """

    axis: Axis
    columns: Texts
    fields: Texts
    join: str
    leaf: str
    unlisted: str | None


def axis_columns(axis: Axis, source: Source) -> Texts:
    """Return the columns of a table that say where on an axis a record is."""
    if axis.product is not None:
        return _product_columns(axis, source)
    if axis.reading is not None:
        for column in axis.reading.columns:
            source.place(column)
        return axis.reading.columns
    present = axis.columns_in(source.names)
    if present == [axis.columns[-1]]:
        return axis.columns[-1:]
    for column in reversed(axis.columns):
        if column not in present:
            try:
                source.place(column)
            except TableError as error:
                rest = (
                    f" (axis {axis.name!r} needs all of {', '.join(axis.columns)}, or "
                    f"{axis.columns[-1]} alone)"
                    if axis.depth > 1
                    else ""
                )
                raise error.within("", rest) from None
    return axis.columns


def _product_columns(axis: Axis, source: Source) -> Texts:
    """Return the columns of a product axis that a table has; they must tell its leaves apart."""
    leaves = axis.leaf_frame()

    def suffice(columns: Sequence[str]) -> bool:
        return bool(columns) and leaves.select(columns).n_unique() == len(leaves)

    present = axis.columns_in(source.names)
    if suffice(present):
        return tuple(present)
    missing = [column for column in axis.columns if column not in present]
    needed = [m for m in missing if not suffice([c for c in axis.columns if c != m])]
    try:
        source.place((needed or missing)[0])
    except TableError as error:
        needs = f"axis {axis.name!r} needs {', '.join(axis.columns)}"
        raise error.within("", f" ({needs}, but for those that the others tell)") from None
    return axis.columns


def is_column_pointed(axis: Axis, column: str) -> bool:
    """Return whether a code of a column is itself a whole number with ``.0`` behind it."""
    if axis.product is not None:
        return is_pointed(axis.leaf_frame()[column])
    if axis.reading is not None:  # its codes may be of any level
        return any(map(is_pointed, axis.labels))
    return is_pointed(axis.labels[axis.columns.index(column)])


def match_axis(db: Database, number: int, axis: Axis, columns: Texts, first: int) -> Match:
    """Return how the records find their leaf of an axis.

    The join compares the leaf's code and its parent's. That settles all levels, once each
    combination of upper codes that occurs is known to be in the list; there are few of those.
    Where one is not, the join compares every level. On a product axis it compares all columns.
    """
    fields = tuple(f"codes.c{first + i}" for i in range(len(columns)))
    if axis.product is not None:
        return _match_product(db, f"axis{number}", axis, columns, fields)
    by_level = axis.reading is None and len(columns) > 1  # each level by a column
    levels = range(1, axis.depth) if by_level else range(0)
    if len(levels) > 1 and _uppers_are_listed(db, axis, fields[:-1]):
        levels = levels[-1:]
    stops = _stops(axis) if by_level else None
    name = f"axis{number}"
    ragged = stops is not None
    db.register(name, _listed(axis, levels, stops))
    code = f"COALESCE({', '.join(reversed(fields))})" if stops is not None else fields[-1]
    if axis.reading is not None:
        code = axis.reading.code(axis.depth, axis.depth, fields) or fields[-1]
    join = f"LEFT JOIN {name} ON {name}.label = {code}"
    outside = str(OUTSIDE)
    rule = axis.not_stated_by_parent
    if rule is not None:  # a record outside the list whose parent is known has a leaf of it
        if axis.reading is not None:
            codes = [axis.reading.code(rule.level, axis.depth, fields)]
        else:
            codes = list(fields[: rule.level]) if len(columns) > 1 else [None]
        if codes[-1] is None:
            raise axis.untold_parent(rule, columns[-1])
        words = axis.paths(rule.level).get_columns()[-len(codes) :]
        parents = pl.DataFrame([each.alias(f"p{i}") for i, each in enumerate(words)])
        parents = parents.with_columns(pl.Series("id", axis.not_stated_leaves))
        db.register(f"{name}parents", parents.to_arrow(compat_level=VIEWS))
        same = " AND ".join(f"{name}parents.p{i} = {code}" for i, code in enumerate(codes))
        join += f" LEFT JOIN {name}parents ON {same}"
        outside = f"COALESCE({name}parents.id, {OUTSIDE})"
    elif axis.not_stated is not None:
        outside = str(axis.not_stated_leaves[0])
    leaf_sql = partial(_leaf_sql, name, fields, levels, is_ragged=ragged)
    leaf = leaf_sql((outside, f"{name}.id"))
    unlisted = None if axis.not_stated is None else leaf_sql(("1", "0"))
    return Match(axis, columns, fields, join, leaf, unlisted)


def _match_product(
    db: Database,
    name: str,
    axis: Axis,
    columns: Texts,
    fields: Texts,
) -> Match:
    """Return how the records find their leaf by all codes together."""
    listed = axis.leaf_frame().select(columns).to_arrow(compat_level=VIEWS)
    listed = listed.rename_columns([f"l{i}" for i in range(len(columns))])
    ids = pa.array(np.arange(axis.leaves, dtype=np.int32))
    db.register(name, listed.append_column("id", ids))
    same = " AND ".join(f"{name}.l{i} = {field}" for i, field in enumerate(fields))
    leaf = f"COALESCE({name}.id, {OUTSIDE})"
    return Match(axis, columns, fields, f"LEFT JOIN {name} ON {same}", leaf, None)


def _leaf_sql(
    name: str, fields: Texts, levels: range, values: tuple[str, str], *, is_ragged: bool
) -> str:
    """Return the first value for a record outside the list, the second for one in it."""
    outside, inside = values
    deepest = len(fields)
    reached = str(deepest)
    if is_ragged:  # the deepest level that the record has a code for
        cases = " ".join(
            f"WHEN {fields[k - 1]} IS NOT NULL THEN {k}" for k in range(deepest, 0, -1)
        )
        reached = f"(CASE {cases} ELSE 0 END)"
    missing = f"{name}.id IS NULL" + (f" OR {reached} < {name}.stop" if is_ragged else "")
    differs = [f"{fields[k - 1]} <> {name}.l{k}" for k in levels]
    gaps = [f"({fields[k - 1]} IS NULL AND {k} < {reached})" for k in levels]
    checks = (
        f"WHEN {' OR '.join(differs)} THEN {CONTRADICTION} WHEN {' OR '.join(gaps)} THEN {outside} "
        if levels
        else ""
    )
    return f"CASE WHEN {missing} THEN {outside} {checks}ELSE {inside} END"


def _listed(axis: Axis, levels: range, stops: NDArray[np.int8] | None) -> pa.Table:
    """Return one row a leaf: its code, its number, the codes of its ancestors at some levels.

    Codes below a leaf that the list knows have rows, too; then there are no levels and no stops.
    """
    columns = {
        "label": axis.labels[-1].to_arrow(compat_level=VIEWS),
        "id": pa.array(np.arange(axis.leaves, dtype=np.int32)),
    }
    for k in levels:
        columns[f"l{k}"] = axis.labels[k - 1].gather(axis.ancestors(k)).to_arrow(compat_level=VIEWS)
    if stops is not None:
        columns["stop"] = pa.array(stops)
    deeper = None if axis.reading is None else axis.reading.deeper
    if deeper is None:
        return pa.table(columns)
    labels = axis.labels[-1].alias("label")
    leaves = pl.DataFrame([labels, pl.Series("id", np.arange(len(labels), dtype=np.int32))])
    below = deeper.join(leaves, left_on="leaf", right_on="label").select(label="code", id="id")
    below = below.join(leaves, on="label", how="anti")  # or a record would count twice
    return pl.concat([leaves, below]).to_arrow(compat_level=VIEWS)


def _stops(axis: Axis) -> NDArray[np.int8] | None:
    """Return for each leaf the level where its branch stops; None where none stops early.

    Such a branch is continued by single children that repeat its code.
    """
    deepest = axis.depth
    stops = np.full(axis.size(deepest), deepest, dtype=np.int8)
    for k in range(deepest - 1, 0, -1):
        start = axis.descendant_start(k, deepest)
        alone = np.flatnonzero(np.diff(start) == 1)
        leaf = start[alone]
        same = (axis.labels[k - 1].gather(alone) == axis.labels[-1].gather(leaf)).to_numpy()
        leaf = leaf[same]
        stops[leaf[stops[leaf] == k + 1]] = k
    return stops if (stops < deepest).any() else None


def _uppers_are_listed(db: Database, axis: Axis, fields: Texts) -> bool:
    """Return whether each combination of codes above the leaves that occurs is in the list."""
    level = len(fields)
    paths = [series.alias(f"l{k}") for k, series in enumerate(axis.paths(level))]
    db.register("paths", pl.DataFrame(paths).to_arrow())
    same = " AND ".join(f"o.u{k} = paths.l{k}" for k in range(level))
    occurring = ", ".join(f"{field} AS u{k}" for k, field in enumerate(fields))
    distinct = f"(SELECT DISTINCT {occurring} FROM codes) o"
    unlisted = db.execute(f"SELECT 1 FROM {distinct} ANTI JOIN paths ON {same} LIMIT 1").fetchall()
    db.unregister("paths")
    return not unlisted


def raise_unmatched(db: Database, match: Match, wrong: int, subject: str) -> None:
    """Say what is wrong with the records that found no leaf: `OUTSIDE` or `CONTRADICTION`."""
    shown = ", ".join(match.fields)
    (row,) = db.execute(
        f"SELECT {shown} FROM codes {match.join} WHERE {match.leaf} = {wrong} LIMIT 1"
    ).fetchall()
    codes = dict(zip(match.columns, row, strict=True))
    said = f"the record has {', '.join(f'{column} {code!r}' for column, code in codes.items())}"
    of_list = f"the public list of axis {match.axis.name!r}"
    if wrong == CONTRADICTION:
        deepest = match.columns[-1]
        raise outside_limits(
            subject,
            f"has a known {deepest!r} under another parent ({', '.join(match.columns[:-1])})"
            f" than in {of_list}; correct the table or the list",
            said,
        )
    missing = [column for column, code in codes.items() if code is None]
    lacks = (
        f"column {missing[0]!r} lacks a code for some record; correct the table" if missing else ""
    )
    if match.axis.product is not None:
        raise (
            outside_limits(subject, lacks, said)
            if missing
            else _no_row(match, subject, codes, said)
        )
    rule = (
        lacks
        or f"column {match.columns[-1]!r} holds a code that is not in {of_list} (compared "
        f"letter by letter: look for lost leading zeros, spaces, capitals); correct the table, add "
        f"the area to the list"
    )
    alike = "" if missing else _alike(match.axis, row[-1])
    raise outside_limits(
        subject,
        f"{rule}, or name a leaf of the list for such records (not_stated; add a row for it to the "
        f"list first)",
        f"{said}{alike}",
    )


def _no_row(match: Match, subject: str, codes: TextByName, said: str) -> TableError:
    """Return the error for a record whose codes are no row of the lists of a product axis."""
    leaves = match.axis.leaf_frame()
    unknown = [name for name, code in codes.items() if not (leaves[name] == code).any()]
    together = f"no list has {unknown[0]!r} so" if unknown else "no row of a list has them together"
    return outside_limits(
        subject,
        f"columns {', '.join(match.columns)} hold codes that are in no row of the public lists of "
        f"axis {match.axis.name!r} (compared letter by letter: look for lost leading zeros, "
        f"spaces, capitals); correct the table, or add a row to a list",
        f"{said}: {together}",
    )


_AROUND = " \t\u00a0'\"="
"""What programs leave around a code: ``'01`` and ``="01"`` keep a spreadsheet from its zero."""


def _alike(axis: Axis, code: str) -> str:
    """Return which leaf is the same but for leading zeros, what stands around it, or its case."""

    def bare(codes: pl.Series) -> pl.Series:
        whole = codes.str.normalize("NFC").str.strip_chars(_AROUND)
        return whole.str.strip_chars_start("0").str.to_lowercase()

    similar = axis.labels[-1].filter(bare(axis.labels[-1]) == bare(pl.Series([code]))[0])
    if similar.is_empty():
        return ""
    same = normalize("NFC", similar[0]) == normalize("NFC", code)
    return f"; the list has {similar[0]!r}{', accents written in another way' if same else ''}"
