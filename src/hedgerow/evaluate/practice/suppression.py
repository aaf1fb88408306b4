"""Suppression: no number for small cells, nor for what would give them away.

Every published cuboid that refines another ties cells: each cell of the coarser one is the sum of
its cells in the finer one. Cells of 0 are published. A hidden cell can be derived exactly unless
hidden cells can change with it so that all sums stay: unless the sums' null space moves it. As all
hidden cells are above 0, any such change that is small enough leaves them positive.

Counts are whole and hidden ones at least 1: a published sum whose hidden cells are all 1 gives them
away, too. In a small table each cell that can be derived gets the cheapest such change (a linear
program, solved by HiGHS), and what it moves is hidden: the heuristic of Kelly, Golden & Assad,
"Cell suppression: disclosure protection for sensitive tabular data" (Networks 22, 1992). In a large
one every sum that gives away hidden cells by itself hides its smallest other. Along a chain, where
no two paths lead from one cell to another, that is enough: from each sum a change can go on by
another hidden cell until it ends. Elsewhere a large table is protected against each sum, and not
against several, nor against what ranges of hidden cells tell.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.sparse import coo_array, hstack

from hedgerow.arrays import (
    Bool,
    CuboidList,
    Int64,
    Levels,
    UInt64,
    float64,
    int64_zeros,
    run_starts,
)
from hedgerow.declared import frozen
from hedgerow.evaluate.method import Counted, CuboidCounts, Released
from hedgerow.evaluate.practice.practice import (
    WITHHELD,
    Practice,
    numbers_above,
    refinements,
    withheld,
)
from hedgerow.noise.bits import Bits
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree

MOST_SOLVED = 1000
"""Cells above 0 of all cuboids together, of a table where the solver is asked: it takes seconds."""
TINY = 1e-9


@frozen(eq=False)
class TiedCells:
    """The cells above 0 of all published cuboids, end to end, and the sums that tie them.

    Attributes:
        counts: int64 (cells), records.
        start: for each cuboid where its cells begin.
        total: int64 (parts): of each sum and each of its parts the sum, a number of its own.
        cell: int64 (parts): the part; the whole is one, too.
        sign: int64 (parts): 1, and -1 of the whole.
    """

    counts: Int64
    start: Mapping[Levels, slice]
    total: Int64
    cell: Int64
    sign: Int64

    @classmethod
    def of(cls, tree: Tree, true: Counted) -> "TiedCells":
        """Return the cells of cuboids with their sums."""
        ends = run_starts(np.array([len(cells.values) for cells in true.values()]))
        start = {k: slice(*ends[i : i + 2]) for i, k in enumerate(true)}
        totals = []
        cells = []
        signs = []
        sums = 0
        for coarse, fine in refinements([*true]):
            wholes = true[coarse].numbers
            parts = true[fine].numbers
            within = np.searchsorted(wholes, numbers_above(tree, coarse, fine, parts))
            totals += [sums + within, sums + np.arange(len(wholes))]
            cells += [np.arange(start[k].start, start[k].stop) for k in (fine, coarse)]
            signs += [np.ones(len(parts), dtype=np.int64), np.full(len(wholes), -1)]
            sums += len(wholes)
        counts = np.concatenate([each.values for each in true.values()])
        none = int64_zeros(0)
        total, cell, sign = (np.concatenate([none, *each]) for each in (totals, cells, signs))
        return cls(counts, start, total, cell, sign)

    @property
    def sums(self) -> coo_array:
        """The matrix of the sums, each 0: (sums, cells)."""
        shape = int(self.total.max(initial=-1)) + 1, len(self.counts)
        return coo_array((float64(self.sign), (self.total, self.cell)), shape=shape)

    def derived(self, hidden: Bool) -> Int64:
        """Return the hidden cells that the sums tell exactly."""
        numbers = np.flatnonzero(hidden)
        moved = null_space(self.sums.tocsc()[:, numbers].toarray())
        return np.asarray(numbers[(np.abs(moved) < TINY).all(axis=1)])

    def hide_by_solver(self, hidden: Bool) -> Bool:
        """Return the hidden cells with others, until none can be derived; for small tables."""
        hidden, sums = hidden.copy(), self.sums
        both = hstack([sums, -sums])
        cells = len(self.counts)
        while len(open_cells := self.derived(hidden)):
            cell = open_cells[np.argmin(self.counts[open_cells])]
            bounds: list[tuple[int, int | None]] = [(0, None)] * (2 * cells)
            bounds[cell] = (1, 1)
            bounds[cells + cell] = (0, 0)
            cost = np.tile(np.where(hidden, 0, self.counts), 2)
            change = linprog(cost, A_eq=both, b_eq=np.zeros(sums.shape[0]), bounds=bounds).x
            if change is None:  # the solver gave up
                return self.hide_by_sums(hidden)
            hidden |= change[:cells] + change[cells:] > TINY
        return hidden

    def hide_by_sums(self, hidden: Bool) -> Bool:
        """Return the hidden cells with others, until no sum gives one away by itself.

        It does where one is hidden alone, or where the sum is published and all hidden are 1.
        """
        hidden = hidden.copy()
        order = np.lexsort((-self.sign, self.counts[self.cell], self.total))
        total = self.total[order]
        cell = self.cell[order]
        excess = np.where(self.sign[order] < 0, 1, self.counts[cell] - 1)  # 0 of parts of 1
        while True:
            many = np.bincount(total, hidden[cell])
            more = np.bincount(total, hidden[cell] * excess)
            is_told = (many == 1) | ((many > 0) & (more == 0))
            others = np.flatnonzero(is_told[total] & ~hidden[cell])
            if not len(others):
                return hidden
            smallest = others[np.unique(total[others], return_index=True)[1]]
            hidden[cell[smallest]] = True


@frozen(eq=False, kw_only=True)
class Suppression(Practice):
    """Cells of 1 to below a threshold have no number, nor have those that would give them away.

    Attributes:
        threshold: the least count that is published for its own sake.
    """

    threshold: int

    def answered(self, counts: Int64, _keys: UInt64) -> Int64:
        """Return counts as they are from the threshold on; a single answer hides no others."""
        return np.where(counts < self.threshold, WITHHELD, counts)

    def released(self, counts: Counts, _bits: Bits) -> Released:
        """Yield the counts that are published of every cuboid; nothing of it is random."""
        yield from published(counts, tuple(self.plan.levels), self.threshold)


@lru_cache(maxsize=1)
def published(
    counts: Counts, cuboids: CuboidList, threshold: int
) -> tuple[tuple[Levels, CuboidCounts], ...]:
    """Return the counts that are published of cuboids, the same in every run."""
    true = {levels: CuboidCounts.true(counts, levels) for levels in cuboids}
    tied = TiedCells.of(counts.tree, true)
    small = tied.counts < threshold
    is_small_table = len(tied.counts) <= MOST_SOLVED
    hidden = small
    before = ~small
    while not np.array_equal(hidden, before):
        before = hidden
        hidden = tied.hide_by_sums(tied.hide_by_solver(hidden) if is_small_table else hidden)
    each = ((k, cells, hidden[tied.start[k]]) for k, cells in true.items())
    return tuple((levels, withheld(cells, own, cells.values)) for levels, cells, own in each)
