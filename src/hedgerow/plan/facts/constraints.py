"""What public facts say of a spine and its attributes, in numbers, checked against each other.

*Groups.* Facts that differ from place to place speak of *groups*: the nodes of the coarsest
attribute level that tells apart what the tables' attribute columns do (kinds of quarters). Rules
speak of single attribute cells. No node has a group all of whose cells are empty by rule.
Whether all bounds can be kept: `hedgerow.plan.placed`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import polars as pl

from hedgerow.arrays import Int64, IntPair, int64, int64_zeros, runs
from hedgerow.errors import PlanError, did_you_mean
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.support import UNBOUNDED, Bounds
from hedgerow.limits import MOST_ATTRIBUTE_CELLS
from hedgerow.plan.facts.facts import Fact, Zeros
from hedgerow.plan.facts.public_rows import SECTION, PublicRows, attribute_axes, shown, spine_axis
from hedgerow.plan.placed import Flags, Placed, PlacedTables, combinations
from hedgerow.tables.tree import Tree

FREE = (
    "Public facts, from public files and rules. They are declared not to come from the "
    "confidential table, which nobody can check for certain; so they cost nothing, and do not "
    "restrict the promise."
)


@dataclass(frozen=True, eq=False)
class Constraints:
    """What public facts say, in numbers. Levels are those of `AxisShape`: no single children.

    Attributes:
        spine: the shape of the spine; its deepest level is L.
        tree: the levels 0..G of the group axis; its deepest nodes are the groups. G may be 0.
        group_axis: the number of the axis that the groups are of; None where several attributes
            stand beside the spine and no table tells nodes of any apart (then G = 0).
        group_of: int64 (attribute cells): the group of every combination of the attributes' leaves,
            row by row in the tree's order of axes.
        zeros: bool (attribute cells): those that hold nobody by rule, wherever they are.
        has: nodes of level L and groups that they may have, both int64 (pairs), ascending; None
            where no table leaves anybody out.
        bounds: each a spine level, and int64 (bounds): nodes, groups, least and largest counts.
        least: of all records together that the bounds allow for.
        most: likewise; `UNBOUNDED` for no bound.
    """

    spine: AxisShape
    tree: AxisShape
    group_axis: int | None
    group_of: Int64
    zeros: Flags
    has: IntPair | None
    bounds: tuple[Bounds, ...]
    least: int
    most: int

    @property
    def group_level(self) -> int:
        """G, the level of the group axis whose nodes are the groups."""
        return self.tree.depth

    @property
    def groups(self) -> int:
        """The number of groups."""
        return self.tree.sizes[-1]

    @property
    def words(self) -> str:
        """What the facts leave together, in a sentence."""
        return f"Together, {self.open_cells:,} of {self.cells:,} finest cells may hold records."

    def at_leaves(self, number: int, axis: AxisShape) -> tuple[IntPair | None, tuple[Bounds, ...]]:
        """Return ``has`` and ``bounds`` with the leaves of an axis for groups.

        Args:
            number: of the axis, the groups' own; any attribute where they are of none.
            axis: its shape, with all levels.

        Raises:
            PlanError: a bound is of a group with several leaves, so that it bounds none of them.
        """
        start = np.array([0, axis.sizes[-1]])
        if number == self.group_axis:
            start = axis.descendant_start(self.group_level, axis.depth)
        if self.bounds and axis.sizes[-1] > self.groups:
            raise PlanError(
                f"{SECTION} bounds of several attribute cells together need a cube whose shares "
                f"are a product over its axes, or the columns that they go by as an axis alone"
            )
        has = None
        if self.has is not None:
            nodes, groups = self.has
            leaves = np.diff(start)[groups]
            has = np.repeat(nodes, leaves), runs(start[groups], leaves)
        return has, self.bounds

    @cached_property
    def widths(self) -> Int64:
        """Attribute cells of each group that may hold somebody: int64 (groups)."""
        return np.bincount(self.group_of[~self.zeros], minlength=self.groups)

    @property
    def cells(self) -> int:
        """Finest cells: nodes of level L × attribute cells (a Python integer)."""
        return self.spine.sizes[-1] * len(self.zeros)

    @property
    def open_cells(self) -> int:
        """Finest cells that may hold somebody."""
        if self.has is None:
            return self.spine.sizes[-1] * int(self.widths.sum())
        return int(self.widths[self.has[1]].sum())


def constraints_of(tree: Tree, facts: Sequence[Fact]) -> Constraints:
    """Return what public facts say of a tree, in numbers.

    Args:
        tree: with one spine, and attributes beside it.
        facts: as `hedgerow.plan.facts.facts.read_facts` returns them.

    Raises:
        PlanError: a fact names what is not in the tree, or facts contradict each other.
    """
    leaves = _attribute_leaves(tree)
    zeros = np.zeros(len(leaves), dtype=np.bool_)
    rows = [fact for fact in facts if isinstance(fact, PublicRows)]
    for fact in facts:
        if isinstance(fact, Zeros):
            zeros |= _by_rule(fact, leaves)
        elif not fact.level and fact.zeros is not None:
            nowhere = int64_zeros(len(fact.frame))
            zeros |= ~Placed(fact, 0, nowhere, *combinations(fact, leaves)).may_hold(1)[0]
    placed = PlacedTables.of(
        tree, [table for table in rows if table.level or table.numbers], leaves
    )
    widths = np.bincount(placed.group_of[~zeros], minlength=placed.groups)
    may = placed.may_hold(widths)
    has = None
    if placed.emptying:
        nodes, groups = np.nonzero(may)
        has = int64(nodes), int64(groups)
    shapes = (placed.shape, placed.tree)
    of_groups = (placed.axis, placed.group_of)
    least, most = placed.limits(widths, has) if placed.bounds else (0, UNBOUNDED)
    return Constraints(*shapes, *of_groups, zeros, has, placed.bounds, least, most)


def describe_facts(tree: Tree, facts: Sequence[Fact], constraints: Constraints) -> str:
    """Return what is public, in lines: a table or rule each, and what they leave together."""
    subjects = [SECTION if isinstance(fact, Zeros) else f"{fact.subject}:" for fact in facts]
    each = zip(subjects, facts_in_words(tree, facts), strict=True)
    return "\n".join(
        [FREE, *(f"  {subject} {words}" for subject, words in each), constraints.words]
    )


def facts_in_words(tree: Tree, facts: Sequence[Fact]) -> list[str]:
    """Return what each public table or rule says; not which file it is from."""
    leaves = _attribute_leaves(tree)
    every = []
    for fact in facts:
        if isinstance(fact, Zeros):
            empty = int(_by_rule(fact, leaves).sum())
            every.append(
                f"zeros {fact.words}: {empty:,} of {len(leaves):,} attribute cells "
                f"{'holds' if empty == 1 else 'hold'} nobody"
            )
        else:
            every.append("; ".join(_words(tree, fact, leaves)))
    return every


def _words(tree: Tree, rows: PublicRows, leaves: pl.DataFrame) -> list[str]:
    """Return what a public table says, in clauses."""
    spine = spine_axis(tree)
    places = spine.size(spine.columns.index(rows.level[0]) + 1) if rows.level else 1
    cells = places * (leaves.select(rows.attributes).n_unique() if rows.attributes else 1)
    words = [rows.words]
    if rows.zeros is not None:
        empty = len(rows.frame) if rows.zeros == "listed" else cells - len(rows.frame)
        words.append(f"{empty:,} of {cells:,} cells hold nobody")
    for kind, there in (("lower", rows.low > 0), ("upper", rows.high < UNBOUNDED)):
        number = int(np.count_nonzero(there))
        if number:
            words.append(f"{number:,} {kind} bound{'' if number == 1 else 's'}")
    return words


def attribute_cells(tree: Tree) -> int:
    """Return how many combinations of the attributes' leaves there are."""
    axes = (tree.axes[a] for a in attribute_axes(tree))
    return prod(axis.leaves for axis in axes)


def _attribute_leaves(tree: Tree) -> pl.DataFrame:
    """Return the columns of the attributes: one row a combination of their leaves, row by row."""
    axes = [tree.axes[a] for a in attribute_axes(tree)]
    cells = attribute_cells(tree)
    if cells > MOST_ATTRIBUTE_CELLS:
        raise PlanError(
            f"{SECTION} takes attributes of up to {MOST_ATTRIBUTE_CELLS:,} cells together, got "
            f"{cells:,}"
        )
    frame = axes[0].leaf_frame()
    for axis in axes[1:]:
        frame = frame.join(axis.leaf_frame(), how="cross", maintain_order="left_right")
    return frame


def _by_rule(rule: Zeros, leaves: pl.DataFrame) -> Flags:
    """Return the attribute cells that a rule leaves empty: bool (attribute cells)."""
    is_zero = np.ones(len(leaves), dtype=np.bool_)
    for column, codes in rule.codes:
        if column not in leaves.columns:
            raise PlanError(
                f"{SECTION} zeros: no attribute has a column {shown(column)}; they have "
                f"{', '.join(leaves.columns)[:300]}{did_you_mean(column, leaves.columns)}"
            )
        labels = leaves[column].unique()
        for code in codes:
            if not (labels == code).any():
                raise PlanError(
                    f"{SECTION} zeros: {column} has no code {shown(code)}"
                    f"{did_you_mean(code, labels.head(1000))}"
                )
        is_zero &= leaves[column].is_in(codes).to_numpy()
    if not is_zero.any():
        raise PlanError(f"{SECTION} zeros: no cell has {rule.words}, so the rule says nothing")
    return is_zero
