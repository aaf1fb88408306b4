"""The column with the number of records of a row: whole numbers, or a sentence why not."""

import duckdb
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError
from hedgerow.tables.database import explained

MAX_TOTAL = 1 << 60

MISSING = "has a row without a value; write 0 where there are no records"
NEGATIVE = "holds a negative number; counts must be 0 or more"
FRACTION = "holds a fraction; counts must be whole numbers"
ENDLESS = "holds NaN or infinity; counts must be whole numbers"
WORDS = "holds text that is no number; counts must be whole numbers"
POWERS = "holds a number with an exponent; write counts out in digits"
TOO_MUCH = "overflows: counts and their sum must not exceed 2**60"

Rules = list[tuple[str, str]]


def whole_count(db: duckdb.DuckDBPyConnection, column: str, kind: str, *, what: str) -> str:
    """The SQL of a count column of ``loaded`` as whole numbers; nothing is ever rounded.

    Args:
        db: holds the relation ``loaded``.
        column: in SQL.
        kind: its type in DuckDB.
        what: how messages name it, for example ``the table a.csv: column 'n'``.

    Raises:
        TableError: a value that is no whole number in 0..2⁶⁰, or none at all.
    """
    suspicious, rules = _rules(column, kind, what)
    flags = ", ".join(f"bool_or({broken})" for broken, _ in rules)
    with explained(what, "cannot be read to its end"):
        (found,) = db.execute(f"SELECT {flags} FROM loaded WHERE {suspicious}").fetchall()
    for broken, (_, sentence) in zip(found, rules, strict=True):
        if broken:
            raise TableError(f"{what} {sentence}")
    return f"CAST({column} AS BIGINT)"


def check_total(values: NDArray[np.int64], what: str) -> None:
    """Refuse counts whose sum exceeds 2⁶⁰.

    Args:
        values: int64 (leaves), each at least 0 and at most 2⁶⁰ + 1.
        what: how messages name them.

    Raises:
        TableError: they do.
    """
    rough = float(values.sum(dtype=np.float64))  # an int64 sum could wrap
    if rough > 2.0 * MAX_TOTAL or int(values.sum()) > MAX_TOTAL:
        raise TableError(f"{what} {TOO_MUCH}")


def _rules(column: str, kind: str, what: str) -> tuple[str, Rules]:
    """Which rows need a closer look, and what is wrong with a row, in the order of reporting."""
    missing = (f"{column} IS NULL", MISSING)
    negative = (f"{column} < 0", NEGATIVE)
    fraction = (f"{column} <> floor({column})", FRACTION)
    large = (f"{column} > {MAX_TOTAL}", TOO_MUCH)
    if kind.endswith(("INT", "INTEGER")):
        return "true", [missing, negative, large]
    if kind in {"FLOAT", "DOUBLE"}:
        endless = (f"NOT isfinite({column})", ENDLESS)
        return "true", [missing, endless, negative, fraction, large]
    if kind.startswith("DECIMAL") and kind.endswith(")"):
        # the rounded value always fits a HUGEINT, while 2⁶⁰ may not fit the decimal
        large = (f"CAST({column} AS HUGEINT) > {MAX_TOTAL}", TOO_MUCH)
        return "true", [missing, negative, fraction, large]
    if kind in {"VARCHAR", '"NULL"'} or (kind.startswith("ENUM") and kind.endswith(")")):
        text = f"trim(CAST({column} AS VARCHAR))"
        return f"{column} IS NULL OR NOT {_matches(text, '[0-9]{1,18}')}", _text_rules(text)
    raise TableError(f"{what} holds {kind}; counts must be whole numbers")


def _text_rules(text: str) -> Rules:
    number = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
    whole = f"TRY_CAST({text} AS HUGEINT)"  # NULL beyond 2¹²⁷
    return [
        (f"{text} IS NULL OR {text} = ''", MISSING),
        (_matches(text, "[+-]?(nan|inf|infinity)"), ENDLESS),
        (_matches(text, number + "e[+-]?[0-9]+"), POWERS),
        (f"NOT {_matches(text, number)}", WORDS),
        (_matches(text, "-.*[1-9].*"), NEGATIVE),
        (_matches(text, ".*[.].*[1-9].*"), FRACTION),
        (f"{whole} IS NULL OR {whole} > {MAX_TOTAL}", TOO_MUCH),
    ]


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, '{pattern}', 'i')"
