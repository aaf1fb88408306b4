"""Counts that public facts fix, so that a release gives them as the public files have them.

A count is *fixed* if it is the same in every table that keeps to the facts. Of groups and nodes of
the spine each has a least and a largest count, which are tightened from the leaves to the root
(`hedgerow.estimate.spine.support.Support`) and here from the root to the leaves, by what the others
below a node leave to each:

    low = max(its own, low of the node above − Σ high of the others),
    high = min(its own, high of the node above − Σ low of the others).

Then every whole number between them occurs, as bounds are of one group each and the nodes are a
tree; so a row is fixed exactly where both are equal. A cell of a cuboid is fixed if each group that
it has a part of is: where it has all of the group's open cells, if low = high; else if high = 0.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from hedgerow.arrays import Float64, FloatPair, Int64, Levels, float64, run_numbers, starts_among
from hedgerow.declared import frozen
from hedgerow.errors import PlanError
from hedgerow.estimate.spine.support import UNBOUNDED, Support
from hedgerow.plan.facts.constraints import Constraints
from hedgerow.plan.facts.public_rows import SECTION, attribute_axes
from hedgerow.tables.tree import Tree

MOST_NAMED = 6
PART, WHOLE = 1, 2
"""Of the open cells of a group a cell of a cuboid has some, or all."""

Pattern = tuple[tuple[int, int], ...]
"""The groups that a cell of a cuboid has a part of, each with `PART` or `WHOLE`."""

FixedCounts = Mapping[Levels, tuple[int, int]]
"""By cuboid how many counts are fixed, and how many may hold records at all."""


def fixed_counts(
    tree: Tree,
    constraints: Constraints,
    cuboids: Iterable[Levels],
    *,
    total_is_public: bool,
    total: int | None = None,
) -> FixedCounts:
    """Return the cuboids of which public facts fix some counts.

    Args:
        tree: of the plan.
        constraints: what public facts say.
        cuboids: the released ones.
        total_is_public: then the last count that is not fixed follows from the others.
        total: the number of records, where it is known and public.
    """
    bounded = any((high < UNBOUNDED).any() for *_, high in constraints.bounds)
    if not bounded and total is None and constraints.open_cells > 1:
        return {}
    support = Support.of(
        constraints.spine, constraints.tree, constraints.widths, constraints.has, constraints.bounds
    )
    root = (0.0, np.inf) if total is None else (float(total), float(total))
    rows = [Rows.of(support, level, *each) for level, each in enumerate(_tightened(support, root))]
    counts = {}
    for levels in cuboids:
        spine = constraints.spine.given[levels[tree.spine or 0]]
        cells, free = rows[spine].counted(_patterns(tree, constraints, levels))
        fixed = cells if total_is_public and free == 1 else cells - free
        if fixed:
            counts[levels] = fixed, cells
    return counts


def _tightened(support: Support, root: tuple[float, float]) -> list[FloatPair]:
    """Return the bounds of the rows of every level, whose sum is bounded too (records)."""
    above = np.array([root[0]]), np.array([root[1]])
    bounds = []
    for level, (low, high) in enumerate(zip(support.low, support.high, strict=True)):
        most = np.where(high < UNBOUNDED, high, np.inf)
        above = _below(*above, float64(low), most, support.parent[level])
        bounds.append(above)
    return bounds


def _below(
    low_above: Float64, high_above: Float64, low: Float64, high: Float64, parent: Int64
) -> FloatPair:
    """Return the bounds of rows, tightened by the rows above: whole numbers, exact below 2⁵³."""
    rows = len(low_above)
    endless = np.isinf(high)
    finite = np.where(endless, 0, high)
    most = np.bincount(parent, finite, rows)[parent] - finite
    most[np.bincount(parent, endless, rows)[parent] > endless] = np.inf
    most[most >= UNBOUNDED] = np.inf
    least = np.bincount(parent, low, rows)[parent] - low
    return np.maximum(low, low_above[parent] - most), np.minimum(high, high_above[parent] - least)


@frozen(eq=False)
class Rows:
    """The rows of a level of the spine, group by group.

    Attributes:
        node: int64 (rows): the node of each.
        low: float64 (rows): the least count, records.
        high: float64 (rows): the largest, or infinity.
        start: int64 (groups + 1): where the rows of each group begin.
    """

    node: Int64
    low: Float64
    high: Float64
    start: Int64

    @classmethod
    def of(cls, support: Support, level: int, low: Float64, high: Float64) -> "Rows":
        """Return the rows of a level, which the support has node by node."""
        group = support.group[level]
        first = support.start[level]
        order = np.argsort(group, kind="stable")
        node = run_numbers(first)
        start = starts_among(group[order], support.groups)
        return cls(node[order], low[order], high[order], start)

    def counted(self, patterns: Counter[Pattern]) -> tuple[int, int]:
        """Return how many cells may hold records, and how many of them are not fixed."""
        cells = free = 0
        for pattern, times in patterns.items():
            there, loose = [], []
            for group, part in pattern:
                own = slice(self.start[group], self.start[group + 1])
                there.append(self.node[own])
                least = self.low[own] if part == WHOLE else 0
                loose.append(self.node[own][self.high[own] > least])
            cells += times * _different(there)
            free += times * _different(loose)
        return cells, free


def _different(nodes: Sequence[Int64]) -> int:
    """Return how many nodes there are, each counted once."""
    if len(nodes) == 1:  # a group has one row a node
        return len(nodes[0])
    return int(np.count_nonzero(np.bincount(np.concatenate(nodes))))


def _patterns(tree: Tree, constraints: Constraints, levels: Levels) -> Counter[Pattern]:
    """Return how many attribute cells of a cuboid have which parts of which groups."""
    axes = [(tree.axes[a], levels[a]) for a in attribute_axes(tree)]
    codes = np.unravel_index(np.arange(len(constraints.zeros)), [a.leaves for a, _ in axes])
    nodes = [axis.ancestors(level)[code] for (axis, level), code in zip(axes, codes, strict=True)]
    cell = np.ravel_multi_index(tuple(nodes), [axis.size(level) for axis, level in axes])
    keys, leaves = np.unique(
        (cell * constraints.groups + constraints.group_of)[~constraints.zeros], return_counts=True
    )
    cell, group = np.divmod(keys, constraints.groups)
    part = np.where(leaves == constraints.widths[group], WHOLE, PART)
    pairs = list(zip(group.tolist(), part.tolist(), strict=True))
    ends = [*np.flatnonzero(np.diff(cell, prepend=-1)).tolist(), len(pairs)]
    return Counter(tuple(pairs[a:b]) for a, b in pairwise(ends))


def refuse_fixed(tree: Tree, fixed: FixedCounts, tables: Sequence[Levels], why: str = "") -> None:
    """Raise a PlanError if all counts of a released table are fixed: it is a public file again."""
    for levels in tables:
        counts, cells = fixed.get(levels, (0, 1))
        if counts == cells:
            raise PlanError(
                f"{SECTION} fixes every count of {tree.name_of(levels)}{why}, so that its release "
                f"would be the public files, without noise: if these come from the confidential "
                f"table, it is published. Leave out the bounds or zeros that fix them, or do not "
                f"release this table"
            )


def fixed_in_words(tree: Tree, fixed: FixedCounts) -> str | None:
    """Return which counts public facts fix, and what that means, in a sentence; None: none."""
    if not fixed:
        return None
    each = [f"{n:,} of {cells:,} counts of {tree.name_of(k)}" for k, (n, cells) in fixed.items()]
    if len(each) > MOST_NAMED:
        each[MOST_NAMED:] = [f"some of {len(each) - MOST_NAMED:,} more cuboids"]
    return (
        f"Public files fix {', '.join(each)}: the release gives these as the files have them, "
        f"and the guarantee hides nothing that the files give away."
    )
