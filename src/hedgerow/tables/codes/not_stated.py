"""Where records go whose code is not in the public list: to one leaf, or to one of each parent."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from hedgerow.errors import TableError, did_you_mean

_IN_BRACES = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class ByParent:
    """A code for each area of a level: ``"{state}9"`` is ``"NSW9"`` in ``"NSW"``.

    Attributes:
        before, after: what stands around the area's code.
        level: 1..L−1, whose areas they are.
    """

    before: str
    level: int
    after: str

    def codes(self, areas: pl.Series) -> pl.Series:
        """Return the code that stands for what is not stated in each area of the level."""
        return self.before + areas + self.after


def by_parent(not_stated: str | None, levels: Sequence[str], subject: str) -> ByParent | None:
    """Return the rule of a text with a level in braces; None of one code, or none.

    Raises:
        TableError: several braces, or what is in them is no level above the deepest.
    """
    if not_stated is None or not (found := _IN_BRACES.findall(not_stated)):
        return None
    above = list(levels[:-1])
    if len(found) > 1 or found[0] not in above:
        raise TableError(
            f"{subject}: not_stated may have one level above {levels[-1]} in braces "
            f"({', '.join(above) or 'there is none'}), got "
            f"{', '.join(map(repr, found))[:100]}{did_you_mean(found[0], above)}"
        )
    before, _, after = not_stated.partition(f"{{{found[0]}}}")
    return ByParent(before, above.index(found[0]) + 1, after)


def with_own_leaves(paths: pl.DataFrame, rule: ByParent, subject: str) -> pl.DataFrame:
    """Return the paths of leaves with one more in each area of a level, where there is none yet.

    Such a leaf hangs from its area alone: the levels between have its code.

    Raises:
        TableError: an area of these levels has that code and other leaves.
    """
    names = paths.columns
    uppers = paths.select(names[: rule.level]).unique(maintain_order=True)
    code = rule.codes(uppers[names[rule.level - 1]])
    for between in names[rule.level : -1]:
        genuine = paths.filter(
            pl.col(between).is_in(code.implode()) & (pl.col(between) != pl.col(names[-1]))
        )
        if not genuine.is_empty():
            raise TableError(
                f"{subject}: not_stated makes the code {genuine[between][0][:80]!r}, which is that "
                f"of a {between} with areas of its own; choose another"
            )
    added = uppers.with_columns([code.alias(name) for name in names[rule.level :]])
    added = added.filter(~code.is_in(paths[names[-1]].implode()))
    return pl.concat([paths, added]) if len(added) else paths
