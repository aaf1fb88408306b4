"""How many small counts a guess from what is published hits exactly: run, not asserted.

The targets are cells of 1 to 9 of the finest published table. An attacker who differences published
tables takes the cell's own number, and each published sum that contains it less its other cells.
All numbers have about the same error, so the mean of these, each by one over how many numbers it
takes, is the natural guess; it is rounded, and is 1 to 9 as the targets are. One who may ask for
sums made to order asks for a sum of other cells, and for the same with the target, again and again:
the mean difference is the guess. Of a table that is released once every sum is added up from the
same numbers, whatever is asked.
"""

from dataclasses import replace

import numpy as np

from hedgerow.arrays import Bool, Float64, Int64, Levels, float64, int64
from hedgerow.declared import frozen
from hedgerow.evaluate.method import Counted, CuboidCounts, Releasing
from hedgerow.evaluate.practice.practice import (
    APART,
    WITHHELD,
    Practice,
    cell_keys,
    numbers_above,
    record_keys,
    refinements,
)
from hedgerow.noise.bits import Bits
from hedgerow.tables.counts import Counts

SMALL = 10
"""Below it a count is a target."""
SUMS, CELLS = 20, 100
"""How many pairs of sums made to order an attacker asks for, one of them with the target, and of
how many other cells each is."""
MOST_TARGETS = 2000
CHOICES = (APART, 2)
"""The place of the random choices of an attacker."""


@frozen(eq=False)
class Targets:
    """Small cells of a table, whose counts somebody wants to find out.

    Attributes:
        counts: the table. Confidential.
        levels: the published cuboid with most cells.
        true: its counts.
        place: int64 (targets): which of its cells above 0 they are, an even choice of many.
    """

    counts: Counts
    levels: Levels
    true: CuboidCounts
    place: Int64

    @classmethod
    def of(cls, counts: Counts, true: Counted) -> "Targets":
        """Return the targets among the cells of published cuboids."""
        levels = max(true, key=counts.tree.cells)
        small = np.flatnonzero(true[levels].values < SMALL)
        some = np.unique(np.linspace(0, len(small) - 1, min(len(small), MOST_TARGETS)).astype(int))
        return cls(counts, levels, true[levels], small[some])

    @property
    def number(self) -> Int64:
        """The numbers of the targets in their cuboid."""
        return self.true.numbers[self.place]

    def recovered(self, guess: Float64) -> float:
        """Return the share of the targets that a guess, NaN for none, hits exactly."""
        exact = self.true.values[self.place]
        within = np.clip(np.rint(guess), 1, SMALL - 1)  # as targets are; of no guess none
        return float((within == exact).mean()) if len(exact) else np.nan

    def commonest(self) -> float:
        """Return the share that the commonest count among the targets hits; NaN of none."""
        exact = self.true.values[self.place]
        return float(np.bincount(exact).max() / len(exact)) if len(exact) else np.nan

    def published(self, released: Counted) -> float:
        """Return the share whose published number is the true count."""
        given = released[self.levels]
        has_none = is_withheld(given, self.number)
        return self.recovered(np.where(has_none, np.nan, given.at(self.number)))

    def differenced(self, released: Counted) -> float:
        """Return the share that differences of the published tables tell."""
        tree = self.counts.tree
        given = released[self.levels]
        own = given.at(self.number)
        has_none = is_withheld(given, self.number)
        weight = float64(~has_none)
        guess = weight * own
        cells = replace(self.true, values=np.ones_like(self.true.values))
        blanks = CuboidCounts(given.withheld, np.ones_like(given.withheld))
        for coarse, fine in refinements([*released]):
            if fine != self.levels:
                continue
            above = numbers_above(tree, coarse, fine, self.number)
            sums, numbers, empty = (
                table.summed(tree, coarse, fine).at(above) for table in (given, cells, blanks)
            )
            tells = ~is_withheld(released[coarse], above) & (empty == has_none)
            more = tells / numbers
            guess += more * (released[coarse].at(above) - sums + own)
            weight += more
        with np.errstate(invalid="ignore"):
            return self.recovered(guess / weight)

    def to_order(self, method: Releasing, released: Counted, bits: Bits) -> float:
        """Return the share that sums made to order tell; NaN where there are too few cells."""
        if not isinstance(method, Practice):
            return self.published(released)
        many = len(self.true.values)
        size = min(CELLS, many // 2)
        if size == 0 or not len(self.place):
            return np.nan
        words = bits.stream(*CHOICES).words(0, many + SUMS * len(self.place))
        order = np.argsort(words[:many])
        starts = words[many:] % np.uint64(many - size)
        # runs of cells in random order, over and over, that begin behind a target and end before it
        first = np.argsort(order)[self.place, None] + 1 + int64(starts).reshape(-1, SUMS)
        keys = cell_keys(record_keys(self.counts, bits), self.levels)
        without, alone = [], []
        for cells in (self.true.values.astype(np.uint64), keys):
            until = np.append(np.uint64(0), np.cumsum(np.tile(cells[order], 2)))
            without.append(until[first + size] - until[first])
            alone.append(cells[self.place, None])
        both = [sums + one for sums, one in zip(without, alone, strict=True)]
        answers, others = (
            np.ma.masked_equal(method.answered(int64(sums), key), WITHHELD)
            for sums, key in (both, without)
        )
        return self.recovered((answers - others).mean(axis=1, dtype=np.float64).filled(np.nan))


def is_withheld(cells: CuboidCounts, number: Int64) -> Bool:
    """Return which cells of a cuboid, by their numbers, get no number: bool (cells)."""
    return np.isin(number, cells.withheld)
