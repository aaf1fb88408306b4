"""The leaves that are measured below settled margins: sparse blocks of positive rows and columns.

Where leaves are many, the margins are measured and settled first; then only leaves all of whose
settled margins are positive are measured. Margins are released, so which leaves these are costs
nothing (adaptive composition). Below a pair of parents they are the rows of positive sums times the
columns of positive sums: a block that is dense again, but smaller (`SparseBlocks`).

Blocks stand in the order of their row parents, then column parents; cells are laid end to end,
block by block and row by row.
"""

from functools import partial

import numpy as np

from hedgerow.arrays import (
    Float64,
    FloatPair,
    Int32,
    Int64,
    Integers,
    IntPair,
    int32,
    int64,
    run_of,
    run_starts,
    run_sums,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.blocks import Blocks
from hedgerow.kernels import inner_kernel, kernel, over_families, run_ends

Cells = tuple[Int32, Int32, Int64]
"""Positive cells of a cuboid: their nodes of the first axis and of the second, and their counts."""


@frozen(eq=False)
class SparseBlocks:
    """The blocks with a positive cell above them; `SparseBlocks.of_cells` makes them.

    Attributes:
        pairs: int64 (blocks): row parent · number of columns + column parent, ascending.
        row_start: int64 (blocks + 1): where each block's rows begin, and the end.
        rows: int32: the nodes of the first axis, block by block, ascending.
        row_sums: int64 (rows): their settled sums, above 0.
        column_start, columns, column_sums: the same for the second axis.
        cell_start: int64 (blocks + 1): where each block's cells begin, and the end.
    """

    pairs: Int64
    row_start: Int64
    rows: Int32
    row_sums: Int64
    column_start: Int64
    columns: Int32
    column_sums: Int64
    cell_start: Int64

    @classmethod
    def of_cells(cls, by_row: Cells, by_column: Cells, parents: IntPair) -> "SparseBlocks":
        """Return the blocks below settled margins that are lists of positive cells themselves.

        Args:
            by_row: the cells of nodes of the first axis and parents of the second: int32 (cells)
                each, and int64 (cells) their counts, above 0; in any order.
            by_column: those of parents of the first axis and nodes of the second.
            parents: int64 (nodes) of each axis: the parent of each node.

        Raises:
            EstimateError: the margins contradict each other: not settled below one coarser table.
        """
        wide = len(parents[1])
        pairs, row_start, rows, row_sums = _grouped(
            parents[0][by_row[0]] * wide + by_row[1], by_row[0], by_row[2]
        )
        others, column_start, columns, column_sums = _grouped(
            by_column[0] * np.int64(wide) + parents[1][by_column[1]], by_column[1], by_column[2]
        )
        totals = [
            run_sums(sums, start)
            for sums, start in ((row_sums, row_start), (column_sums, column_start))
        ]
        if not (np.array_equal(pairs, others) and np.array_equal(totals[0], totals[1])):
            raise EstimateError("the margins of a block must have one total: settle them first")
        cells = np.diff(row_start) * np.diff(column_start)
        return cls(
            pairs, row_start, rows, row_sums, column_start, columns, column_sums,
            run_starts(cells),
        )  # fmt: skip

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.pairs)

    @property
    def cells(self) -> int:
        """The number of cells that are measured."""
        return int(self.cell_start[-1])

    def places(self, row: Int32, column: Int32, parents: IntPair) -> Int64:
        """Return where leaves stand among the cells, -1 for those that are not measured.

        Args:
            row: int32 (leaves): their nodes of the first axis.
            column: int32 (leaves): and of the second.
            parents: int64 (rows) and int64 (columns): the parent of each node.
        """
        places = np.empty(len(row), dtype=np.int64)
        nodes = (self.rows, self.columns)
        layout = self.pairs, self.row_start, self.column_start, self.cell_start
        task = partial(_write_places, (row, column), parents, layout, nodes, places)
        over_families(task, np.arange(len(row) + 1))
        return places

    def nodes(self, cells: Int64) -> tuple[Int32, Int32]:
        """Return the nodes of some cells: int32 (cells), of the first axis and of the second."""
        block = run_of(self.cell_start, cells)
        place = cells - self.cell_start[block]
        wide = np.diff(self.column_start)[block]
        row = self.rows[self.row_start[block] + place // wide]
        return row, self.columns[self.column_start[block] + place % wide]

    def settle(self, noisy: Float64, weights: FloatPair) -> Int64:
        """Return the whole counts of the cells, with all margins: int64 (cells), records.

        Args:
            noisy: float64 (cells), records.
            weights: float64 (nodes of the first axis) and float64 (nodes of the second): a cell's
                variance is their product.

        Raises:
            EstimateError: noisy counts that are not finite, or too few or too many.
        """
        if noisy.shape != (self.cells,):
            raise EstimateError(f"{self.cells} noisy counts are needed, each finite")
        rows = np.diff(self.row_start)
        columns = np.diff(self.column_start)
        every = np.arange(len(self) + 1)
        blocks = Blocks(
            (int32(every[:-1]), self.row_start, np.arange(len(self.rows))),
            (every, self.column_start, self.column_start, weights[1][self.columns]),
            weights[0][self.rows],
            (
                np.arange(len(self.rows)),
                self.column_start,
                run_starts(np.repeat(columns, rows)),
            ),
        )
        return blocks.settle(noisy, (self.row_sums, self.column_sums))


def _grouped(keys: Int64, nodes: Int32, counts: Int64) -> tuple[Int64, Int64, Int32, Int64]:
    """Return the distinct keys, where each one's cells begin, and nodes and counts by key."""
    order = np.lexsort((nodes, keys))
    distinct, start = np.unique(keys[order], return_index=True)
    begin = int64(np.append(start, len(keys)))
    return distinct, begin, int32(nodes[order]), counts[order]


@kernel
def _write_places(
    leaves: tuple[Int32, Int32],
    parents: IntPair,
    layout: tuple[Int64, Int64, Int64, Int64],
    nodes: tuple[Int32, Int32],
    places: Int64,
    first: int,
    last: int,
) -> None:
    """Write where a range of leaves stand among the cells, -1 for those that are not measured."""
    row, column = leaves
    pairs, row_start, column_start, cell_start = layout
    for leaf in range(first, last):
        places[leaf] = -1
        pair = parents[0][row[leaf]] * len(parents[1]) + parents[1][column[leaf]]
        # Three searches in ascending lists: tables of all pairs would be far larger than these.
        block = _place(pairs, 0, len(pairs), pair)
        if block < 0:
            continue
        begin, end = run_ends(column_start, block)
        i = _place(nodes[0], row_start[block], row_start[block + 1], row[leaf])
        j = _place(nodes[1], begin, end, column[leaf])
        if i >= 0 and j >= 0:
            places[leaf] = cell_start[block] + (i - row_start[block]) * (end - begin) + j - begin


@inner_kernel
def _place(numbers: Integers, first: int, last: int, wanted: int) -> int:
    """Return where a number stands in a range of ascending ones, -1 for none."""
    # All before low is below the number, and nothing from high on is.
    low, high = first, last
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < last and numbers[low] == wanted else -1
