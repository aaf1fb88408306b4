"""A public list of areas, one row a leaf, and how its codes nest."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.errors import TableError
from hedgerow.tables.codes.rule import every_code
from hedgerow.tables.sources.source import in_order


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


def nest(paths: pl.DataFrame, subject: str) -> tuple[tuple[pl.Series, ...], tuple[Int64, ...]]:
    """Return labels and child ranges of every level from the paths of the leaves.

    A path that occurs again counts once.
    """
    names = paths.columns
    if not in_order(paths):
        paths = paths.sort(names)
    labels, child_start = [], []
    for k, (start, children) in enumerate(level_starts(paths, range(1, len(names) + 1))):
        level = paths[names[k]].gather(start)
        ascends = (level[1:] > level[:-1]).all()  # then all differ, and none need be looked up
        if not ascends and level.n_unique() < len(level):
            _name_two_parents(paths, names[k - 1 : k + 1], level, subject)
        child_start.append(children)
        labels.append(level)
    return tuple(labels), tuple(child_start)


def level_starts(paths: pl.DataFrame, told: Iterable[int]) -> Iterator[tuple[Int64, Int64]]:
    """Yield for each level the rows where its nodes begin, and the child ranges of those above.

    Args:
        paths: sorted codes of the leaves, at least one.
        told: for each level how many of the columns it and the levels above it tell.
    """
    changed = np.zeros(len(paths), dtype=bool)
    changed[0] = True
    upper_start, before = np.array([0, len(paths)]), 0
    for count in told:
        for column in paths[:, before:count]:
            changed[1:] |= (column[1:] != column[:-1]).to_numpy()
        start = np.flatnonzero(changed)
        yield start, np.searchsorted(start, upper_start).astype(np.int64)
        upper_start, before = np.append(start, len(paths)), count


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
