"""A public list of areas, one row a leaf, and how its codes nest."""

from itertools import pairwise

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.errors import TableError
from hedgerow.tables.sources.source import in_order


def complete(codes: pl.DataFrame, subject: str) -> pl.DataFrame:
    """Return every path down to the last level: a branch that stops early repeats its last code."""
    if codes.is_empty():
        raise TableError(f"{subject} is empty; it needs one row an area")
    names = codes.columns
    if codes[names[0]].null_count():
        raise TableError(f"{subject} has a row without a {names[0]!r}; every area needs one")
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


def nest(paths: pl.DataFrame, subject: str) -> tuple[tuple[pl.Series, ...], tuple[Int64, ...]]:
    """Return labels and child ranges of every level from the paths of the leaves.

    A path that occurs again counts once.
    """
    names = paths.columns
    if not in_order(paths):
        paths = paths.sort(names)
    changed = np.zeros(len(paths), dtype=bool)
    changed[0] = True
    upper_start = np.array([0, len(paths)])
    labels, child_start = [], []
    for k, name in enumerate(names):
        column = paths[name]
        changed[1:] |= (column[1:] != column[:-1]).to_numpy()
        start = np.flatnonzero(changed)
        level = column.gather(start).alias(name)
        ascends = (level[1:] > level[:-1]).all()  # then all differ, and none need be looked up
        if not ascends and level.n_unique() < len(level):
            _name_two_parents(paths, names[k - 1 : k + 1], level, subject)
        child_start.append(np.searchsorted(start, upper_start).astype(np.int64))
        upper_start = np.append(start, len(paths))
        labels.append(level)
    return tuple(labels), tuple(child_start)


def _name_two_parents(
    paths: pl.DataFrame, names: list[str], level: pl.Series, subject: str
) -> None:
    """Say which area has two parents (level 1 cannot: everything is its one parent)."""
    upper, lower = names
    area = level.filter(level.is_duplicated())[0]
    parents = paths.filter(pl.col(lower) == area)[upper].unique().sort()
    if len(parents) < 2:  # the parents' own codes were found unique before
        raise TableError(f"{subject} lists {lower} {area!r} twice")
    raise TableError(
        f"{subject}: {lower} {area!r} has two parents, {upper} {parents[0]!r} and {parents[1]!r}; "
        f"each area needs one (make codes unique, for example by putting the parent's code first)"
    )
