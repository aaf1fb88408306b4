"""Lists of areas: gaps filled, nested into levels, and what areas are called."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from hedgerow.arrays import IntArrays, IntPair, int64
from hedgerow.errors import TableError, did_you_mean, shorten
from hedgerow.tables.codes.rule import Rule, every_code
from hedgerow.tables.sources.source import as_codes, in_order
from hedgerow.text import TextByName, visible


def complete(codes: pl.DataFrame, subject: str) -> pl.DataFrame:
    """Return every path down to the last level: a branch that stops early repeats its last code."""
    names = codes.columns
    every_code(codes, names[0], subject)
    for upper, lower in pairwise(names):
        orphan = codes.filter(pl.col(upper).is_null() & pl.col(lower).is_not_null())
        if not orphan.is_empty():
            raise TableError(f"{subject}: {lower} {orphan[lower][0]!r} has no {upper}")
    if not any(codes[name].null_count() for name in names):
        return codes
    for upper, lower in pairwise(names):
        stops = codes.filter(pl.col(lower).is_null())[upper].unique()
        both = codes.filter(pl.col(lower).is_not_null() & pl.col(upper).is_in(stops.implode()))
        if not both.is_empty():
            raise TableError(
                f"{subject}: {upper} {both[upper][0]!r} stops early in one row and goes on to "
                f"{lower} {both[lower][0]!r} in another"
            )
        codes = codes.with_columns(pl.coalesce(lower, upper).alias(lower))
    return codes


def nest(paths: pl.DataFrame, subject: str) -> tuple[tuple[pl.Series, ...], IntArrays]:
    """Return labels and child ranges of every level from the paths of the leaves.

    A path that occurs again counts once.
    """
    names = paths.columns
    if not in_order(paths):
        paths = paths.sort(names)
    labels = []
    child_start = []
    for k, (start, children) in enumerate(level_starts(paths, range(1, len(names) + 1))):
        level = paths[names[k]].gather(start)
        ascends = (level[1:] > level[:-1]).all()  # then all differ, and none need be looked up
        if not ascends and level.n_unique() < len(level):
            # say which area has two parents (level 1 cannot: everything is its one parent)
            upper, lower = names[k - 1 : k + 1]
            area = level.filter(level.is_duplicated())[0]
            parents = paths.filter(pl.col(lower) == area)[upper].unique().sort()
            if len(parents) < 2:  # the parents' own codes were found unique before
                raise TableError(f"{subject} lists {lower} {area!r} twice")
            raise TableError(
                f"{subject}: {lower} {area!r} has two parents, {upper} {parents[0]!r} and "
                f"{parents[1]!r}; each area needs one (make codes unique, for example by putting "
                f"the parent's code first)"
            )
        child_start.append(children)
        labels.append(level)
    return tuple(labels), tuple(child_start)


def level_starts(paths: pl.DataFrame, column_ends: Iterable[int]) -> Iterator[IntPair]:
    """Yield for each level the rows where its nodes begin, and the child ranges of those above.

    Args:
        paths: sorted codes of the leaves, at least one.
        column_ends: for each level how many of the columns it and the levels above it tell.
    """
    changed = np.zeros(len(paths), dtype=bool)
    changed[0] = True
    upper_start = np.array([0, len(paths)])
    before = 0
    for count in column_ends:
        for column in paths[:, before:count]:
            changed[1:] |= (column[1:] != column[:-1]).to_numpy()
        start = np.flatnonzero(changed)
        yield start, int64(np.searchsorted(start, upper_start))
        upper_start = np.append(start, len(paths))
        before = count


Names = tuple[pl.Series | None, ...]
"""Of each level the names of its nodes, missing where the list has none; None of a level without;
empty of an axis without."""
Given = str | TextByName
"""The column of names of the deepest level (with a rule: of all codes), or of each level given."""

CODE, NAME, LEVEL = "code", "name", "level"
SUFFIX = "_name"


def name_columns(given: Given | None, levels: Sequence[str], subject: str) -> TextByName:
    """Return level → its column of names.

    Raises:
        TableError: a level that is none.
    """
    if given is None or isinstance(given, str):
        return {} if given is None else {levels[-1]: given}
    for level in given:
        if level not in levels:
            raise TableError(
                f"{subject}: names has a column for {level!r}, which is no level "
                f"({', '.join(levels)}){did_you_mean(level, levels)}"
            )
    return dict(given)


def read_names(
    given: Given | None,
    rule: Rule | None,
    areas: pl.DataFrame,
    paths: pl.DataFrame,
    labels: Sequence[pl.Series],
    subject: str,
) -> Names:
    """Return the names of the nodes of all levels.

    Args:
        given: the columns of names.
        rule: of the list, if any; then one column has the names of all codes.
        areas: the list.
        paths: the codes of its rows, one column a level; of a rule, unused.
        labels: of each level the codes of its nodes.
        subject: how messages name the list.

    Raises:
        TableError: a missing column, or a code with two names.
    """
    if given is None:
        return ()
    levels = [codes.name for codes in labels]
    if rule is None:
        pairs = {
            level: pl.DataFrame(
                [paths[level].alias(CODE), as_codes(areas, [name], subject)[name].alias(NAME)]
            )
            for level, name in name_columns(given, levels, subject).items()
        }
    else:
        if not isinstance(given, str) or rule.numeric:
            raise TableError(
                f"{subject}: with prefix or parent, names is the one column with the names of all "
                f"codes; with divide there are none"
            )
        (code,) = rule.code_columns(areas.columns, levels, subject)
        every = as_codes(areas, [code, given], subject).rename({code: CODE, given: NAME})
        pairs = dict.fromkeys(levels, every)
    by_level = tuple(
        _where_any(names_of(pairs[level], codes, subject)) if level in pairs else None
        for level, codes in zip(levels, labels, strict=True)
    )
    return by_level if any(names is not None for names in by_level) else ()


def _where_any(names: pl.Series) -> pl.Series | None:
    """Return the names of a level, None where no node of it has one."""
    return None if names.null_count() == len(names) else names


def names_of(pairs: pl.DataFrame, wanted: pl.Series, subject: str) -> pl.Series:
    """Return the name of each wanted code, missing where there is none.

    Args:
        pairs: a column of codes, others than those wanted among them, and one of names.
        wanted: codes, under the name that messages give them.
        subject: how messages name the list.

    Raises:
        TableError: a code with two names.
    """
    rows = pl.DataFrame(pairs.get_columns(), [CODE, NAME])
    is_known = pl.col(NAME).is_not_null() & pl.col(CODE).is_in(wanted.implode())
    rows = rows.filter(is_known).unique()
    twice = rows.filter(rows[CODE].is_duplicated()).sort(CODE, NAME)
    if len(twice):
        code, *two = (shorten(visible(text)) for text in (twice[CODE][0], *twice[NAME][:2]))
        raise TableError(
            f"{subject}: {wanted.name} {code!r} has two names, {two[0]!r} and {two[1]!r}; each "
            f"code needs one"
        )
    return name_each(wanted, rows[CODE], rows[NAME])


def name_each(wanted: pl.Series, codes: pl.Series, names: pl.Series) -> pl.Series:
    """Return the name of each wanted code, missing where there is none."""
    texts = wanted.replace_strict(codes, names, default=None, return_dtype=pl.String)
    return texts.alias(names.name)


def names_frame(labels: Sequence[pl.Series], levels: Sequence[str], names: Names) -> pl.DataFrame:
    """Return all names that there are: ``level``, ``code``, ``name``."""
    frames = [
        pl.DataFrame([pl.repeat(level, len(codes), eager=True).alias(LEVEL), codes.alias(CODE),
                      of_level.alias(NAME)]).drop_nulls()
        for level, codes, of_level in zip(levels, labels, names, strict=bool(names))
        if of_level is not None
    ]  # fmt: skip
    return pl.concat(frames)


def from_names_frame(
    frame: pl.DataFrame, labels: Sequence[pl.Series], levels: Sequence[str], subject: str
) -> Names:
    """Return the names of all levels from what `names_frame` made."""
    return tuple(
        _where_any(
            names_of(frame.filter(pl.col(LEVEL) == level).select(CODE, NAME), codes, subject)
        )
        for level, codes in zip(levels, labels, strict=True)
    )


def insert_names(
    frame: pl.DataFrame, column: str, codes: pl.Series, names: pl.Series | None
) -> pl.DataFrame:
    """Return a table with the names of a column of codes behind it, called ``COLUMN_name``.

    Raises:
        TableError: the table has a column of that name.
    """
    if names is None or column not in frame.columns:
        return frame
    heading = f"{column}{SUFFIX}"
    if heading in frame.columns:
        raise TableError(f"the table has a column {heading!r} already; leave names out")
    named = name_each(frame[column], codes, names).alias(heading)
    return frame.clone().insert_column(frame.columns.index(column) + 1, named)
