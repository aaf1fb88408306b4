"""The measured cells of a cuboid along a spine: which there are, and how detail falls into them.

A cuboid is a spine level with an attribute cuboid. The attribute cuboid's cells lie below *coarse
cells*, the nodes of a level of the groups' tree, in runs of as many as each coarse cell has. At a
node those coarse cells are measured below which the node has a group. The flat table of some nodes
is: node by node, the coarse cells that are there, ascending, the cells within each. Noise streams
and files have that order.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hedgerow.arrays import (
    Array,
    Int32,
    Int64,
    IntPair,
    int32,
    int64_zeros,
    run_of,
    run_starts,
    runs,
    starts_within,
)
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import kernel, run_range


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one cuboid of a spine.

    Attributes:
        support: which nodes have which groups.
        level: of the spine.
        coarse: the level b <= G of the groups' tree whose nodes are the coarse cells.
        width: int64 (nodes of tree level b): cells within each coarse cell.
        place: int32 (detail cells of all groups, group by group): to which cell within its coarse
            cell a detail cell adds; -1 for none.

    Raises:
        EstimateError: arrays that do not fit the support.
    """

    support: Support
    level: int
    coarse: int
    width: Int64
    place: Int32

    def __post_init__(self) -> None:
        """Check that places lie within widths."""
        cells = int(self.support.widths.sum())
        nodes = self.support.tree.sizes[self.coarse]
        if len(self.width) != nodes or len(self.place) != cells:
            raise EstimateError(
                f"a cuboid needs the widths of {nodes} coarse cells and the places of {cells} "
                f"detail cells, got {len(self.width)} and {len(self.place)}"
            )
        width = self.width[self._coarse_cell[self._group_of]]
        if (self.place >= width).any() or (self.place < -1).any():
            raise EstimateError("the place of a detail cell must lie within its coarse cell")

    @cached_property
    def _coarse_cell(self) -> Int32:
        """The coarse cell of each group: int32 (groups)."""
        tree = self.support.tree
        return int32(tree.ancestors(tree.depth, self.coarse))

    @cached_property
    def _offset(self) -> Int64:
        """Where each coarse cell's cells begin within the attribute cuboid: int64."""
        return run_starts(self.width)

    @cached_property
    def _group_of(self) -> Int32:
        """The group of each detail cell: int32 (detail cells of all groups)."""
        return np.repeat(np.arange(self.support.groups, dtype=np.int32), self.support.widths)

    @property
    def numbers(self) -> Int32:
        """The attribute cuboid's cell to which each detail cell adds, -1 for none: int32."""
        first = self._offset[self._coarse_cell[self._group_of]]
        return int32(np.where(self.place < 0, -1, first + self.place))

    @cached_property
    def is_detail(self) -> bool:
        """Whether the cuboid is the detail itself, cell by cell."""
        here = self.support
        own = runs(0, here.widths)
        return (
            self.coarse == here.tree.depth
            and np.array_equal(self.width, here.widths)
            and np.array_equal(self.place, own)
        )

    @cached_property
    def starts(self) -> Int64:
        """Where the cells of each node of the level begin, and the end: int64 (nodes + 1)."""
        nodes = range(len(self.support.start[self.level]) - 1)
        start = int64_zeros(len(nodes) + 1)
        _lay_out(self._rows(nodes), (self._coarse_cell, self.width), start[:0], start)
        return start

    def row_starts(self, nodes: range) -> Int64:
        """Return where the cells of each row's coarse cell begin in the nodes' table: (rows)."""
        start = int64_zeros(len(nodes) + 1)
        rows = self.support.rows(self.level, nodes)
        starts = np.empty(rows.stop - rows.start, dtype=np.int64)
        _lay_out(self._rows(nodes), (self._coarse_cell, self.width), starts, start)
        return starts

    def count(self, nodes: range) -> int:
        """Return the number of measured cells of a range of nodes."""
        return int(self.starts[nodes.stop] - self.starts[nodes.start])

    def start(self, nodes: range) -> Int64:
        """Return where the cells of each of a range of nodes begin: int64 (nodes + 1), from 0."""
        return starts_within(self.starts, nodes)

    def sums(self, detail: Array, nodes: range) -> Array:
        """Return the flat table of a range of nodes: the sums of their detail.

        Args:
            detail: float64 or int64, the detail layout of the nodes at the cuboid's spine level.
            nodes: of that level.

        Returns:
            Of the same type (cells), records; ``detail`` itself where the cuboid is the detail.

        Raises:
            EstimateError: a detail of another length.
        """
        expected = self.support.cells(self.level, nodes)
        if len(detail) != expected:
            raise EstimateError(f"a detail table needs {expected} cells here, got {len(detail)}")
        if self.is_detail:
            return detail
        out = np.zeros(self.count(nodes), dtype=detail.dtype)
        layout = self.row_starts(nodes), self.support.offset, self.place
        _sum_detail(self._rows(nodes), layout, detail, out)
        return out

    def add(self, out: Int64, nodes: range, node: Int32, cell: Int32, values: Int64) -> None:
        """Add counts to a flat table, in place, modulo 2**64.

        Args:
            out: int64 (cells), the flat table of the nodes.
            nodes: of the cuboid's spine level.
            node: int32 (counts): the node of each, numbered over the whole level.
            cell: int32 (counts): the detail cell of each, numbered over all groups; counts of -1,
                of groups that the node does not have and of nodes outside are left out.
            values: int64 (counts), records.
        """
        layout = self.row_starts(nodes), self._group_of, self.place
        _add_counts(self._rows(nodes), layout, (node, cell, values), out)

    def located(self, places: Int64, nodes: range) -> IntPair:
        """Return the node and the attribute cuboid's cell of places in the nodes' flat table.

        Args:
            places: int64 (places).
            nodes: of the cuboid's spine level.

        Returns:
            int64 (places) both: nodes numbered over the whole level, cells over the attribute
            cuboid with all its coarse cells.
        """
        first, start, group = self._rows(nodes)
        begin = self.row_starts(nodes)
        row = run_of(begin, places)  # the last one of the coarse cell
        coarse = self._coarse_cell[group[start[0] : start[-1]]]
        node = run_of(start, row + start[0])
        return node + first, self._offset[coarse[row]] + places - begin[row]

    def _rows(self, nodes: range) -> tuple[int, Int64, Int32]:
        """Return the first node, and of all nodes of a range where rows begin, and all groups."""
        start = self.support.start[self.level][nodes.start : nodes.stop + 1]
        return nodes.start, start, self.support.group[self.level]


@kernel
def _lay_out(
    rows: tuple[int, Int64, Int32], layout: tuple[Int32, Int64], begin: Int64, start: Int64
) -> None:
    """Write where each row's coarse cell begins, if asked, and behind each node where it ends."""
    _, row_start, group = rows
    coarse, width = layout
    base = 0
    for n in range(len(row_start) - 1):
        last = -1
        # Rows ascend by group, so those of one coarse cell stand together.
        for row in run_range(row_start, n):
            here = coarse[group[row]]
            if last >= 0 and here != last:
                base += width[last]
            last = here
            if len(begin) > 0:
                begin[row - row_start[0]] = base
        if last >= 0:
            base += width[last]
        start[n + 1] = base


@kernel
def _sum_detail(
    rows: tuple[int, Int64, Int32],
    layout: tuple[Int64, Int64, Int32],
    detail: Array,
    out: Array,
) -> None:
    """Add every detail cell to its cell."""
    _, row_start, group = rows
    begin, offset, place = layout
    at = 0
    zero = out.dtype.type(0)
    for row in range(row_start[0], row_start[-1]):
        g = group[row]
        base = begin[row - row_start[0]]
        # Neighbours mostly add to one cell, whose sum so far stays in a register.
        here = np.int32(-1)
        total = zero
        for i in run_range(offset, g):
            if place[i] != here:
                if here >= 0:
                    out[base + here] = total
                here = place[i]
                if here >= 0:
                    total = out[base + here]
            total += detail[at]
            at += 1
        if here >= 0:
            out[base + here] = total


@kernel
def _add_counts(
    rows: tuple[int, Int64, Int32],
    layout: tuple[Int64, Int32, Int32],
    given: tuple[Int32, Int32, Int64],
    out: Int64,
) -> None:
    """Add each count to its cell, if there is one."""
    first, row_start, group = rows
    begin, group_of, place = layout
    nodes, cells, values = given
    for i in range(len(nodes)):
        n = nodes[i] - first
        cell = cells[i]
        # Leaves outside the nodes, or in no cell of this cuboid, count elsewhere.
        if cell < 0 or n < 0 or n >= len(row_start) - 1 or place[cell] < 0:
            continue
        # A node has few rows, and the group at most once.
        for row in run_range(row_start, n):
            if group[row] == group_of[cell]:
                out[begin[row - row_start[0]] + place[cell]] += values[i]
                break
