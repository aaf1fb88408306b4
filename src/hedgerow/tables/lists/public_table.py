"""A table of public facts: a list of codes, with whole numbers beside them."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from hedgerow.errors import TableError
from hedgerow.tables.codes.float_codes import unpointed_sql
from hedgerow.tables.ordered import whole_count
from hedgerow.tables.sources.database import sql_identifier, translate_duckdb_errors
from hedgerow.tables.sources.source import check_fits, coded, in_order, load, open_table


def read_public_table(
    source: Any, known: Mapping[str, bool], numbers: Mapping[str, int | None], subject: str
) -> pl.DataFrame:
    """Read a public table: the columns of codes that are known, and some of whole numbers.

    Args:
        source: a CSV or Parquet file, a `hedgerow.tables.read.Query`, or a data frame.
        known: columns that hold codes, where the table has them, and whether the codes of their
            axis end in ``.0`` themselves; others are left alone.
        numbers: columns that must be there, of whole numbers from 0 on; and what an empty cell of
            each stands for, None where each row needs a number.
        subject: how messages name it.

    Returns:
        The codes as text (``01001`` keeps its zero), in the table's order of columns, then the
        numbers as int64, at most `hedgerow.limits.LARGEST_LEAF`; sorted by the codes.

    Raises:
        TableError: no such table or column, no known column, no row; a row without a code, or
            with anything but a whole number from 0 on; more than a quarter of the memory.
    """
    with open_table(source, subject, public=True) as (db, table):
        codes = [name for name in dict.fromkeys(table.names) if name in known]
        for name in numbers:
            if name in codes:
                raise TableError(f"{subject}: column {name!r} holds codes, and no numbers")
        if not codes:
            raise TableError(
                f"{subject} has no column of an axis, whose cells it could speak of; its columns "
                f"are {', '.join(table.names)[:500]}"
            )
        kinds = load(db, table, [*codes, *numbers])
        check_fits(db, kinds, subject)
        chosen = [
            f"{text if known[name] else unpointed_sql(text)} AS {sql_identifier(name)}"
            for name, text in zip(codes, coded(db, table, codes, kinds[: len(codes)]), strict=True)
        ]
        for i, (name, empty) in enumerate(numbers.items(), start=len(codes)):
            number = whole_count(db, f"c{i}", kinds[i], subject=subject, name=name, empty=empty)
            chosen.append(f"{number} AS {sql_identifier(name)}")
        with translate_duckdb_errors(subject, "is no table that can be read to its end"):
            db.execute("SET preserve_insertion_order = true")
            rows = pl.DataFrame(db.sql(f"SELECT {', '.join(chosen)} FROM loaded").to_arrow_table())
    if rows.is_empty():
        raise TableError(f"{subject} has no row")
    for name in codes:
        if rows[name].null_count():
            raise TableError(f"{subject} has a row without a {name!r}; every row needs one")
    return rows if in_order(rows.select(codes)) else rows.sort(codes, maintain_order=True)
