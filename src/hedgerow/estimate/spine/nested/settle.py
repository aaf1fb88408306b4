"""Whole counts of a census along its spine, coarse to fine.

From the root of a part down, level by level of the spine:

1. the counts of groups, family by family of nodes
   (`hedgerow.estimate.spine.nested.group_families`; at the spine's root
   `hedgerow.estimate.spine.nested.group_root`), within public bounds;
2. from the groups down their attribute trees, level by level, blocks of the nodes of a family that
   have the group × sibling cells (`hedgerow.estimate.spine.nested.row_blocks`).

What is settled above, along the spine and along the attribute, is kept exactly. Given both sums of
a block, what a subtree says of it and the estimate from everything have the same nearest counts:
they differ by terms that the multipliers of the sums absorb. So the upward pass is all that is
needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.blocks import LIMIT
from hedgerow.estimate.spine.block_squares import invert_blocks
from hedgerow.estimate.spine.coupled import Coupled
from hedgerow.estimate.spine.nested.group_families import settle_families
from hedgerow.estimate.spine.nested.group_root import settle_root
from hedgerow.estimate.spine.nested.group_trees import GroupTrees
from hedgerow.estimate.spine.nested.row_blocks import settle_blocks, settle_root_cells
from hedgerow.estimate.spine.part import Part
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Support, run_starts
from hedgerow.kernels import over_families

Squares: TypeAlias = tuple[Coupled, RowSquares, GroupTrees]
"""Least squares of the vectors of groups, of the rests along the spine, and below groups."""

Said: TypeAlias = tuple[Mapping[int, Float64], Mapping[int, Float64]]
"""What each row's subtree says, for each level: of its count (rows) and of its rests (detail)."""


def settle_part(
    squares: Squares, part: Part, said: Said, above: Int64 | None, total: int | None
) -> dict[int, Int64]:
    """Return the whole counts of every level of a part: int64, detail layout, records.

    Args:
        squares: the factors of least squares.
        part: a part of the spine.
        said: what the subtrees of its rows say.
        above: the counts of the roots, detail layout; None for the top.
        total: for the top the public number of records, if it is public.

    Raises:
        EstimateError: counts of roots that break their bounds, or a total that does.
    """
    descent = _Descent(squares, part, said)
    root = descent.at_root(total) if part.is_top else descent.checked(above)
    found = {max(part.root, 0): root}
    for level in range(max(part.root, 0) + 1, part.last + 1):
        found[level] = descent.below(level, found[level - 1])
    return {level: found[level] for level in part.levels}


@dataclass(frozen=True, slots=True)
class _Descent:
    """The steps down one part."""

    squares: Squares
    part: Part
    said: Said

    @property
    def support(self) -> Support:
        """Which nodes have which groups."""
        return self.squares[0].support

    def at_root(self, total: int | None) -> Int64:
        """Return the counts of the spine's root."""
        (coupled, _, trees), here = self.squares, self.support
        group = here.group[0]
        z = np.clip(self.said[0][0], -LIMIT, LIMIT)
        metric = np.linalg.inv(
            coupled.squares.combined_matrices(0, range(1))[1].reshape(len(group), len(group))
        )
        counts = settle_root((metric + metric.T) / 2, z, (here.low[0], here.high[0]), total)
        rests = trees.sums(group, self.said[1][0])
        for level in range(trees.depth):
            start, below = trees.row_start(level, group), trees.row_start(level + 1, group)
            found = np.zeros(int(below[-1]), dtype=np.int64)
            settle_root_cells(
                group, trees.level(level), rests[level + 1], (start, counts), (below, found)
            )
            counts = found
        return counts

    def checked(self, above: Int64 | None) -> Int64:
        """Return the counts of the roots.

        Raises:
            EstimateError: they are missing, negative, or outside public bounds.
        """
        here, root = self.support, self.part.root
        rows, cell = here.part_rows(self.part, root), here.part_cells(self.part, root)
        if above is None or above.shape != (int(cell[-1]),) or above.dtype != np.int64:
            raise EstimateError(f"a part below the top needs the {cell[-1]} counts of its roots")
        totals = np.add.reduceat(above, cell[:-1])
        low, high = here.low[root][rows], here.high[root][rows]
        if (above < 0).any() or (totals < low).any() or (totals > high).any():
            raise EstimateError("the counts of a part's roots must not break public bounds")
        return above

    def below(self, level: int, above: Int64) -> Int64:
        """Return the counts of a level, given those of the level above it."""
        (_, rests, trees), here = self.squares, self.support
        rows, upper = here.part_rows(self.part, level), here.part_rows(self.part, level - 1)
        group, group_above = here.group[level][rows], here.group[level - 1][upper]
        parent = here.parent[level][rows] - upper.start
        counts = np.bincount(parent, minlength=upper.stop - upper.start)
        members = run_starts(counts), np.argsort(parent, kind="stable")
        column_sums = trees.sums(group_above, above)
        counts = self._groups(level, column_sums[0], members)
        said = trees.sums(group, self.said[1][level])
        u = rests.combined[level][rows]
        for k in range(trees.depth):
            start, below = trees.row_start(k, group), trees.row_start(k + 1, group)
            found = np.zeros(int(below[-1]), dtype=np.int64)
            start_above = trees.row_start(k + 1, group_above)
            task = partial(
                settle_blocks, (group_above, *members), trees.level(k), (said[k + 1], u),
                (start, counts), (start_above, column_sums[k + 1]), (below, found),
            )  # fmt: skip
            over_families(task, start_above)
            counts = found
        return counts

    def _groups(self, level: int, totals: Int64, members: tuple[Int64, Int64]) -> Int64:
        """Return the counts of the groups of every node of a level: int64 (rows)."""
        coupled, here = self.squares[0], self.support
        rows, upper = here.part_rows(self.part, level), here.part_rows(self.part, level - 1)
        z = np.clip(self.said[0][level], -LIMIT, LIMIT)
        x = coupled.step(self.part, level, z[:, None], totals[:, None].astype(np.float64))[:, 0]
        nodes, above = here.nodes(self.part, level), here.nodes(self.part, level - 1)
        row_start = here.start[level][nodes.start : nodes.stop + 1] - rows.start
        start, entries = coupled.squares.combined_matrices(level, nodes)
        entries = entries.copy()
        invert_blocks(row_start, start, entries)
        sizes = np.diff(row_start)
        size, first = np.repeat(sizes, sizes), np.repeat(row_start[:-1], sizes)
        at = np.repeat(start[:-1], sizes) + (np.arange(len(first)) - first) * size
        counts = np.zeros(len(z), dtype=np.int64)
        bounded = z, here.low[level][rows], here.high[level][rows]
        parents = here.start[level - 1][above.start : above.stop + 1] - upper.start, totals
        metric = first, size, at, entries
        task = partial(settle_families, bounded, metric, members, parents, x, counts)
        over_families(task, members[0][parents[0]])
        return counts
