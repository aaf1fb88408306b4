"""Codes that a program wrote as floats: ``74.0`` for ``74``, as pandas does beside a missing value.

What a record's code is read as depends on that code and on public lists alone, never on other
records: else one record could move all others.
"""

import polars as pl

WHOLE = "-?(?:0|[1-9][0-9]*)"
POINTED = f"^{WHOLE}[.,]0$"
EXACT = {"FLOAT": 1 << 24, "DOUBLE": 1 << 53}
"""Below which size each whole number has a float of its own, by DuckDB's types.

At the limit itself floats round: 2⁵³ is the float of 2⁵³ + 1 too.
"""

FRACTIONS = "fractions, or numbers too long for a float"


def is_pointed(codes: pl.Series) -> bool:
    """Return whether any code of a list is a whole number with ``.0`` or ``,0`` behind it."""
    ending = codes.filter(codes.str.ends_with(".0") | codes.str.ends_with(",0"))
    return bool(ending.str.contains(POINTED).any())


def unpointed(codes: pl.Series) -> pl.Series:
    """Return the codes of a public column without the ``.0`` that every one of them ends in."""
    given = codes.drop_nulls()
    if given.is_empty() or not given.head(1).str.contains(POINTED).all():
        return codes
    return codes.str.head(-2) if given.str.contains(POINTED).all() else codes


def unpointed_sql(text: str) -> str:
    """Return the SQL of a text code without the ``.0`` of a whole number."""
    ending = f"suffix({text}, '.0') OR suffix({text}, ',0')"
    whole = f"regexp_replace({text}, '^({WHOLE})[.,]0$', '\\1')"
    return f"CASE WHEN {ending} THEN {whole} ELSE {text} END"


def fraction_sql(number: str, kind: str) -> str:
    """Return the SQL of whether a float is no whole number that floats hold exactly."""
    return (
        f"NOT isnan({number}) AND NOT "
        f"(isfinite({number}) AND {number} = trunc({number}) AND abs({number}) < {EXACT[kind]})"
    )


def whole_sql(number: str) -> str:
    """Return the SQL of a whole float as a text code; NaN, which is no code, is NULL."""
    return f"CAST(CASE WHEN NOT isnan({number}) THEN TRY_CAST({number} AS BIGINT) END AS VARCHAR)"


def has_fraction(numbers: pl.Series) -> bool:
    """Return whether a float is no whole number that floats hold exactly."""
    given = numbers.drop_nulls().drop_nans()
    largest = EXACT["DOUBLE" if numbers.dtype == pl.Float64 else "FLOAT"]
    return not bool(((given == given.round()) & (given.abs() < largest)).all())


def whole_codes(numbers: pl.Series) -> pl.Series:
    """Return whole floats as text codes; NaN, which is no code, is missing."""
    return numbers.fill_nan(None).cast(pl.Int64).cast(pl.String)
