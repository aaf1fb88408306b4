"""What the baselines of today's practice share: record keys, and answers cell by cell."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.arrays import Bool, Int64, Levels, UInt64
from hedgerow.declared import frozen
from hedgerow.evaluate.method import CuboidCounts, Released, check_tree
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cell_codes, cell_numbers, cells_above
from hedgerow.text import TextByName

WITHHELD = -1
"""The answer where a cell gets no number."""
APART = (1 << 31) - 1
"""Where places of noise have a level, which is less: no stream of a seed is used twice."""
KEYS = (APART, 1)
"""The place of the record keys."""


def record_keys(counts: Counts, bits: Bits) -> Counts:
    """Return the sum of the record keys of each leaf in place of its count.

    A record key is uniform on [0, 1), and of sums the fractional part matters alone. That of one
    or more independent keys is uniform again, so one draw a leaf has the distribution of its
    records' sum. Keys are whole multiples of 2⁻⁶⁴: sums that wrap at 2⁶⁴ lose their whole part.
    """
    words = bits.stream(*KEYS).words(0, len(counts.values))
    return replace(counts, values=words.view(np.int64))


def cell_keys(keys: Counts, levels: Levels) -> UInt64:
    """Return the key of each cell of a cuboid that is above 0, in the order of its numbers."""
    return CuboidCounts.true(keys, levels).values.view(np.uint64)


@frozen(eq=False, kw_only=True)
class Practice(ABC):
    """A method that treats each cell for itself, by its true count and its key.

    Attributes:
        plan: which cuboids are published; nothing else of it counts.
        name: its name beside others.
    """

    plan: Plan
    name: str

    @abstractmethod
    def answered(self, counts: Int64, keys: UInt64) -> Int64:
        """Return what is published of cells above 0, or `WITHHELD`: int64 (cells).

        Args:
            counts: int64 (cells), records: the true counts.
            keys: uint64 (cells): the fractional parts of the sums of their record keys, times 2⁶⁴.
        """

    @property
    def about(self) -> str:
        """What its name does not say, in a sentence; nothing unless overridden."""
        return ""

    def facts(self) -> TextByName:
        """Return nothing: there is no budget, and so no promise."""
        return {}

    def check(self, counts: Counts) -> None:
        """Raise a PlanError unless the plan is one for the table's tree."""
        check_tree(self.plan, counts)

    def released(self, counts: Counts, bits: Bits) -> Released:
        """Yield the answers of every cuboid; a cell without a number counts as 0."""
        keys = record_keys(counts, bits)
        for levels in self.plan.levels:
            true = CuboidCounts.true(counts, levels)
            answers = self.answered(true.values, cell_keys(keys, levels))
            yield levels, withheld(true, answers == WITHHELD, answers)


def withheld(true: CuboidCounts, hidden: Bool, answers: Int64) -> CuboidCounts:
    """Return the published counts of a cuboid, of which some cells have no number."""
    return CuboidCounts(true.numbers, np.where(hidden, 0, answers), true.numbers[hidden])


def refinements(cuboids: Sequence[Levels]) -> list[tuple[Levels, Levels]]:
    """Return each published cuboid with every finer one that has no other between both."""

    def is_finer(one: Levels, other: Levels) -> bool:
        return one != other and all(a >= b for a, b in zip(one, other, strict=True))

    pairs = [(one, other) for one in cuboids for other in cuboids if is_finer(other, one)]
    return [
        (coarse, fine)
        for coarse, fine in pairs
        if not any(is_finer(fine, k) and is_finer(k, coarse) for k in cuboids)
    ]


def numbers_above(tree: Tree, levels: Levels, finer: Levels, number: Int64) -> Int64:
    """Return in which cell of a cuboid each cell of a finer one lies, by its number."""
    above = cells_above(tree, levels, finer, cell_codes(tree, finer, number))
    return cell_numbers(tree, levels, above)
