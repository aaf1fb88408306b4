"""The column with the number of records of a row: whole numbers, or a sentence why not."""

import duckdb
import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import TableError

MAX_TOTAL = 1 << 60
WHOLE_TEXT = r"[+-]?[0-9]+([.]0*)?"
NUMBER_TEXT = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?"
ENDLESS_TEXT = r"[+-]?(nan|inf|infinity)"

MISSING = "has a row without a value; write 0 where there are no records"
NEGATIVE = "holds a negative number; counts must be 0 or more"
FRACTION = "holds a fraction; counts must be whole numbers"
ENDLESS = "holds NaN or infinity; counts must be whole numbers"
WORDS = "holds text that is no number; counts must be whole numbers"
POWERS = "holds a number that is not written out in digits; counts must be whole numbers like 1000"
TOO_MUCH = "overflows: a count and the sum of all must not exceed 2**60"

Rules = list[tuple[str, str]]


def is_number(kind: str) -> bool:
    """Whether a type of DuckDB holds numbers, or text that may hold them."""
    starts = ("DECIMAL", "ENUM", "VARCHAR", "FLOAT", "DOUBLE", '"NULL"')
    return kind.startswith(starts) or kind.endswith(("INT", "INTEGER"))


def whole_count_sql(column: str, kind: str) -> tuple[str, Rules]:
    """The SQL of the count as an integer, and what must not hold for any row, with its sentence.

    Nothing is rounded: a cast of DuckDB's would turn '12.5' into 13.

    Args:
        column: in SQL.
        kind: its type in DuckDB.
    """
    missing = (f"{column} IS NULL", MISSING)
    if kind.endswith(("INT", "INTEGER")):
        rules = [(f"{column} < 0", NEGATIVE), (f"{column} > {MAX_TOTAL}", TOO_MUCH)]
        return column, [missing, *rules]
    if kind in {"FLOAT", "DOUBLE"}:
        rules = [
            (f"NOT isfinite({column})", ENDLESS),
            (f"{column} < 0", NEGATIVE),
            (f"{column} <> floor({column})", FRACTION),
            (f"{column} > {MAX_TOTAL}", TOO_MUCH),
        ]
        return f"CAST({column} AS BIGINT)", [missing, *rules]
    if kind.startswith("DECIMAL"):  # its whole part always fits a HUGEINT
        rules = [
            (f"{column} < 0", NEGATIVE),
            (f"{column} <> floor({column})", FRACTION),
            (f"CAST({column} AS HUGEINT) > {MAX_TOTAL}", TOO_MUCH),
        ]
        return f"CAST({column} AS BIGINT)", [missing, *rules]
    return _whole_text(column)


def _whole_text(column: str) -> tuple[str, Rules]:
    text = f"trim(CAST({column} AS VARCHAR))"
    whole = f"regexp_full_match({text}, '{WHOLE_TEXT}')"
    value = f"TRY_CAST({text} AS HUGEINT)"  # NULL beyond 2¹²⁷

    def written(pattern: str) -> str:
        return f"NOT {whole} AND regexp_full_match({text}, '{pattern}', 'i')"

    return f"CAST({text} AS BIGINT)", [
        (f"{column} IS NULL OR {text} = ''", MISSING),
        (written(ENDLESS_TEXT), ENDLESS),
        (written(NUMBER_TEXT + "|.*e.*") + f" AND contains(lower({text}), 'e')"
         f" AND regexp_full_match({text}, '{NUMBER_TEXT}', 'i')", POWERS),
        (written(NUMBER_TEXT) + f" AND {text} NOT LIKE '-%'", FRACTION),
        (f"regexp_full_match({text}, '{NUMBER_TEXT}', 'i') AND {text} LIKE '-%'"
         f" AND ({value} IS NULL OR {value} < 0 OR NOT {whole})", NEGATIVE),
        (f"NOT {whole}", WORDS),
        (f"{value} IS NULL OR {value} > {MAX_TOTAL}", TOO_MUCH),
    ]
