"""What an axis, its levels and its columns may be called."""

from collections.abc import Sequence
from itertools import pairwise

from hedgerow.arrays import Sizes
from hedgerow.errors import TableError
from hedgerow.limits import MOST_LEVELS_OF_AN_AXIS
from hedgerow.text import Texts, check_name

LONGEST_NAME = 100
"""Of an axis, in bytes: a file is called by it."""
LONGEST_LEVEL = 500
"""Of a level or column, in bytes."""


def check_axis_name(name: str) -> None:
    """Raise unless an axis can be called that."""
    check_name(name, "an axis's name", LONGEST_NAME, TableError)
    if not set(name).isdisjoint("./\\"):
        raise TableError(f"an axis needs a name without dots and slashes, got {name!r}")


def check_entries(name: str, product: Sequence[object]) -> None:
    """Raise unless the entries of a product can be names of levels."""
    if len(product) > MOST_LEVELS_OF_AN_AXIS:
        raise TableError(
            f"axis {name!r} has at most {MOST_LEVELS_OF_AN_AXIS} levels, got {len(product)}"
        )
    for entry in product:
        check_name(entry, f"axis {name!r}: an entry of product", LONGEST_LEVEL, TableError)


def check_names(
    name: str,
    levels: Texts,
    columns: Texts,
    column_ends: Sizes | None = None,
) -> None:
    """Raise unless the names can be those of an axis, its levels and columns.

    Args:
        name: of the axis.
        levels: L names.
        columns: one a level; or
        column_ends: of a product axis, for each level how many columns it and those above it tell.
    """
    check_axis_name(name)
    if not 1 <= len(levels) <= MOST_LEVELS_OF_AN_AXIS:
        raise TableError(
            f"axis {name!r} needs 1 to {MOST_LEVELS_OF_AN_AXIS} levels, got {len(levels)}"
        )
    if column_ends is None and len(columns) != len(levels):
        raise TableError(
            f"axis {name!r} has {len(levels)} levels and {len(columns)} columns; "
            f"name one column a level, or that of {levels[-1]} alone"
        )
    if column_ends is not None:
        ends = (0, *column_ends)
        ascends = all(type(n) is int for n in column_ends) and all(a < b for a, b in pairwise(ends))
        if not ascends or len(column_ends) != len(levels) or ends[-1] != len(columns):
            raise TableError(f"axis {name!r}: each level must tell more columns, and the last all")
    for names, kind in ((levels, "level"), (columns, "column")):
        for each in names:
            check_name(each, f"axis {name!r}: a {kind}", LONGEST_LEVEL, TableError)
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise TableError(f"axis {name!r} must name each {kind} once, got {', '.join(names)}")
