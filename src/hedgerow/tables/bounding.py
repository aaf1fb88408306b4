"""Bounding of contributions: at most m records of each unit of privacy are kept."""

from collections.abc import Sequence

import duckdb

from hedgerow.errors import TableError


def check_units(db: duckdb.DuckDBPyConnection, what: str) -> None:
    """Refuse ``records`` of no unit.

    Raises:
        TableError: a record without a unit.
    """
    if db.execute("SELECT 1 FROM records WHERE unit IS NULL LIMIT 1").fetchall():
        raise TableError(f"{what} lacks a value for some record; each record needs its unit")


def bounded_sql(leaves: list[str], contributions: int, carried: Sequence[str] = ()) -> str:
    """The SELECT of the leaves of the records that are kept: at most ``contributions`` a unit.

    The records of a unit stand in the order of a hash of the unit, the leaf, and which of the
    unit's records in that leaf it is; the first ``contributions`` are kept. So

    - what is kept of a unit is a function of that unit's own records alone: adding, removing or
      replacing another unit's changes nothing of it. Two tables that differ in one unit therefore
      differ, once bounded, in that unit's kept records and nowhere else: at most m records come or
      go (add-remove), or at most m are replaced by at most m others (replace). Each record counts
      in one node a depth, so a depth changes by at most m in ℓ1 (2m under replace), which is what
      the sensitivities take for granted, whatever the unbounded table was;
    - each of a unit's records is as likely to be kept as any other of its own, for MD5 knows
      nothing of counts, and the order of rows in the table has no part in it: records of a unit
      in one leaf are the same record to us;
    - a resumed release sees the same table, for there is no chance in it.

    Args:
        leaves: the columns of ``records`` with leaf numbers; its column ``unit`` is text.
        contributions: m.
        carried: further columns of the kept records, which have no part in what is kept.
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
