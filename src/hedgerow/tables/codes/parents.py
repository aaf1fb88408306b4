"""Levels of a list whose rows name a code and its parent."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.errors import TableError
from hedgerow.tables.codes.rule import Rule, every_code
from hedgerow.tables.sources.source import as_codes
from hedgerow.text import Texts


@dataclass(frozen=True)
class Parents(Rule):
    """Each row of the list names the parent of its code; the first level has none.

    Levels are depths. A code without children ends at its level; codes below the last level are no
    leaves, and a record that has one counts at the leaf above it.

    Args:
        parent: the list's column of parents.
        code: its column of codes; see `Rule.code_columns`.

    Example:
        >>> causes = {"code": ["A", "A1", "A2", "B"], "parent": [None, "A", "A", None]}
        >>> hr.Axis.from_frame("cause", causes, ["chapter", "cause"], rule=hr.Parents("parent"))
        Axis(cause: 2 chapter, 3 cause)
    """

    parent: str
    code: str | None = None

    def list_columns(self, names: Sequence[str], levels: Sequence[str], subject: str) -> Texts:
        """Return the columns of codes and parents."""
        return (*self.code_columns(names, levels, subject), self.parent)

    def paths(self, areas: pl.DataFrame, levels: Sequence[str], subject: str) -> pl.DataFrame:
        """Return the ancestors of each leaf; see `Rule.paths`."""
        return _climb(*self._up(areas, levels, subject), levels, subject)

    def deeper(
        self, areas: pl.DataFrame, levels: Sequence[str], subject: str
    ) -> pl.DataFrame | None:
        """Return the codes below the last level, each with its ancestor there."""
        rows, up = self._up(areas, levels, subject)
        depth = _depths(up)[:-1]
        below = node = np.flatnonzero(depth > len(levels))
        further, far = depth[below] - len(levels), up
        while further.any():  # each round doubles the stride
            node = np.where(further % 2 == 1, far[node], node)
            further, far = further // 2, far[far]
        codes = rows["code"]
        return pl.DataFrame({"code": codes.gather(below), "leaf": codes.gather(node)})

    def _up(
        self, areas: pl.DataFrame, levels: Sequence[str], subject: str
    ) -> tuple[pl.DataFrame, Int64]:
        """Return rows of a code and its parent, and the row of each parent; see `_parents`."""
        (name,) = self.code_columns(areas.columns, levels, subject)
        if self.parent == name:
            raise TableError(f"{subject}: column {name!r} cannot hold codes and parents")
        rows = as_codes(areas, [name, self.parent], subject).unique(maintain_order=True)
        codes = every_code(rows, name, subject)
        if codes.is_duplicated().any():
            twice = rows.filter(codes.is_duplicated())
            twice = twice.filter(twice[name] == twice[name][0])
            parents = " and ".join("none" if p is None else repr(p) for p in twice[self.parent])
            raise TableError(f"{subject}: {name} {twice[name][0]!r} has two parents, {parents}")
        rows = rows.rename({name: "code", self.parent: "parent"})
        return rows, _parents(rows, subject)

    def sql(self, level: int, fields: Sequence[str]) -> str | None:  # noqa: ARG002 - the code is no path
        """Return nothing: a code alone does not tell its parents."""
        return None


def _parents(rows: pl.DataFrame, subject: str) -> Int64:
    """Return the row of each row's parent, one past the last for none: int64 (rows + 1)."""
    numbered = rows.with_row_index("number")
    found = numbered.join(
        numbered.select(parent="code", up="number"), on="parent", how="left", maintain_order="left"
    )
    lost = found.filter(pl.col("parent").is_not_null() & pl.col("up").is_null())
    if not lost.is_empty():
        raise TableError(
            f"{subject}: the parent {lost['parent'][0]!r} of {lost['code'][0]!r} has no row; add "
            f"one, and leave its parent empty if it is the first level"
        )
    top = len(rows)
    return np.append(found["up"].fill_null(top).to_numpy().astype(np.int64), top)


def _climb(rows: pl.DataFrame, up: Int64, levels: Sequence[str], subject: str) -> pl.DataFrame:
    """Return the paths of the leaves of rows of a code and its parent."""
    top = len(rows)
    depth = _depths(up)[:-1]
    if (depth < 0).any():
        code = rows["code"][int((depth < 0).argmax())]
        raise TableError(f"{subject}: {code!r} is its own parent, or among those of its parents")
    has_children = np.bincount(up[:-1], minlength=top + 1)[:-1] > 0
    kept = depth <= len(levels)
    node = np.flatnonzero(kept & (~has_children | (depth == len(levels))))
    columns = dict[str, pl.Series]()
    for k, level in reversed(list(enumerate(levels, start=1))):
        here = depth[node] == k
        place = pl.Series(np.where(here, node, 0))
        columns[level] = pl.select(
            pl.when(pl.Series(here)).then(rows["code"].gather(place))
        ).to_series()
        node = np.where(here, up[node], node)
    if columns[levels[-1]].null_count() == len(node):
        raise TableError(
            f"{subject}: no code has {len(levels) - 1} others above it; name one level a depth"
        )
    return pl.DataFrame({level: columns[level] for level in levels})


def _depths(up: Int64) -> Int64:
    """Return how many steps each node is below the top, the last one; −1 where it is on a cycle."""
    top, depth = len(up) - 1, np.full(len(up), -1, dtype=np.int64)
    far, steps = up.copy(), np.ones(len(up), dtype=np.int64)
    steps[top] = 0
    for _ in range(max(1, int(top).bit_length() + 1)):  # each round doubles the stride
        steps = steps + steps[far]
        far = far[far]
    depth[far == top] = steps[far == top]
    return depth
