"""The column with the number of records of a row: whole numbers, or a sentence why not."""

import duckdb

from hedgerow.errors import TableError, outside_limits
from hedgerow.tables.database import explained

LARGEST_LEAF = 1 << 40
"""Records of one leaf that are counted at most; more are left out.

Whether a table has more is confidential, so it is no reason to refuse it. One unit changes
``min(count, 2^40)`` of a leaf by at most what it changes the count, and in the same direction, so
every sensitivity holds for what is left (`docs/privacy.md`). A public total must be below it: then
no leaf can reach it.
"""

MISSING = "has a row without a value; write 0 where there are no records"
NEGATIVE = "holds a negative number; counts must be 0 or more"
FRACTION = "holds a fraction; counts must be whole numbers"
ENDLESS = "holds NaN or infinity; counts must be whole numbers"
WORDS = "holds text that is no number; counts must be whole numbers"
POWERS = "holds a number with an exponent; write counts out in digits"

Rules = list[tuple[str, str]]


def whole_count(
    db: duckdb.DuckDBPyConnection, column: str, kind: str, *, what: str, name: str
) -> str:
    """The SQL of a count column of ``loaded`` as whole numbers up to `LARGEST_LEAF`.

    Nothing is ever rounded; larger numbers count as the largest.

    Args:
        db: holds the relation ``loaded``.
        column: in SQL.
        kind: its type in DuckDB.
        what: how messages name the table.
        name: of the column.

    Raises:
        TableError: a value that is no whole number of at least 0, or none at all.
    """
    suspicious, rules, large = _rules(column, kind, f"{what}: column {name!r}")
    flags = ", ".join(f"bool_or({broken})" for broken, _ in rules)
    with explained(what, "cannot be read to its end"):
        (found,) = db.execute(f"SELECT {flags} FROM loaded WHERE {suspicious}").fetchall()
    for broken, (_, sentence) in zip(found, rules, strict=True):
        if broken:
            raise outside_limits(what, sentence, column=name)
    return f"CASE WHEN {large} THEN {LARGEST_LEAF} ELSE CAST({column} AS BIGINT) END"


def _rules(column: str, kind: str, what: str) -> tuple[str, Rules, str]:
    """Which rows need a closer look; what is wrong with a row, in the order of reporting; and
    when a number is larger than a leaf can be.
    """  # noqa: D205
    missing = (f"{column} IS NULL", MISSING)
    negative = (f"{column} < 0", NEGATIVE)
    fraction = (f"{column} <> floor({column})", FRACTION)
    large = f"{column} > {LARGEST_LEAF}"
    if kind.endswith(("INT", "INTEGER")):
        return "true", [missing, negative], large
    if kind in {"FLOAT", "DOUBLE"}:
        endless = (f"NOT isfinite({column})", ENDLESS)
        return "true", [missing, endless, negative, fraction], large
    if kind.startswith("DECIMAL") and kind.endswith(")"):
        # the rounded value always fits a HUGEINT, while 2⁴⁰ may not fit the decimal
        large = f"CAST({column} AS HUGEINT) > {LARGEST_LEAF}"
        return "true", [missing, negative, fraction], large
    if kind in {"VARCHAR", '"NULL"'} or (kind.startswith("ENUM") and kind.endswith(")")):
        text = f"trim(CAST({column} AS VARCHAR))"
        whole = f"TRY_CAST({text} AS HUGEINT)"  # NULL beyond 2¹²⁷
        suspicious = f"{column} IS NULL OR NOT {_matches(text, '[0-9]{1,18}')}"
        return suspicious, _text_rules(text), f"{whole} IS NULL OR {whole} > {LARGEST_LEAF}"
    raise TableError(f"{what} holds {kind}; counts must be whole numbers")


def _text_rules(text: str) -> Rules:
    number = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
    return [
        (f"{text} IS NULL OR {text} = ''", MISSING),
        (_matches(text, "[+-]?(nan|inf|infinity)"), ENDLESS),
        (_matches(text, number + "e[+-]?[0-9]+"), POWERS),
        (f"NOT {_matches(text, number)}", WORDS),
        (_matches(text, "-.*[1-9].*"), NEGATIVE),
        (_matches(text, ".*[.].*[1-9].*"), FRACTION),
    ]


def _matches(text: str, pattern: str) -> str:
    return f"regexp_full_match({text}, '{pattern}', 'i')"
