"""Estimates along a spine, up and down, a part at a time: the steps that all coordinates take.

With z what a node's subtree says and x its estimate from everything, C and V as in
`hedgerow.estimate.spine.coupled`,

    up:    z = C (h + V⁻¹ Σ E z_child)
    down:  x_child = z_child + C_child Eᵀ V⁻¹ (x - Σ E z_child)
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.part import Part
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import kernel


class Elimination(ABC):
    """Least squares along a spine of tables that have some numbers for each row."""

    support: Support

    @abstractmethod
    def starts(self, level: int, rows: slice, table: Float64) -> Int64:
        """Return where the numbers of each of some rows begin in such a table: int64 (rows + 1)."""

    @abstractmethod
    def combined(self, level: int, nodes: range, own: Float64, sums: Float64 | None) -> Float64:
        """Return z of some nodes, from their own tables and from the sums over their children."""

    @abstractmethod
    def step(self, part: Part, level: int, z: Float64, above: Float64) -> Float64:
        """Return the estimates of one level of a part, x.

        Args:
            part: a part of the spine.
            level: of the part, below its first one if it is the top.
            z: of `up`, at this level.
            above: the estimates of the level above.
        """

    def up(
        self, part: Part, own: Mapping[int, Float64], below: Float64 | None = None
    ) -> dict[int, Float64]:
        """Return what each node's subtree says, z, for each level of a part.

        Args:
            part: a part of the spine.
            own: for each measured level of the part what the nodes' own tables say.
            below: for a part that does not reach the deepest level what the parts below tell of
                the nodes of its last level.

        Raises:
            EstimateError: ``below`` is missing or of other rows.
        """
        found, here = dict[int, Float64](), self.support
        for level in reversed(part.levels):
            nodes = here.nodes(part, level)
            if level == here.spine.depth:
                found[level] = self.combined(level, nodes, own[level], None)
                continue
            sums = below if level == part.last else self.sums(part, level, found[level + 1])
            if sums is None or sums.size != self.starts(level, here.rows(level, nodes), sums)[-1]:
                raise EstimateError("a part that ends above the deepest level needs what is below")
            is_measured = level in own
            found[level] = self.combined(level, nodes, own[level], sums) if is_measured else sums
        return found

    def told(self, part: Part, z: Mapping[int, Float64]) -> Float64:
        """Return what a part says of its roots: Σ E z_child."""
        return self.sums(part, part.root, z[part.root + 1])

    def estimates(self, part: Part, z: Mapping[int, Float64], above: Float64) -> dict[int, Float64]:
        """Return the estimates from everything, x, for each level of a part.

        Args:
            part: a part of the spine.
            z: of `up`.
            above: the estimates of the roots; for the top those of the spine's root.
        """
        first = max(part.root, 0)
        found = {first: above}
        for level in range(first + 1, part.last + 1):
            found[level] = self.step(part, level, z[level], found[level - 1])
        return {level: found[level] for level in part.levels}

    def sums(self, part: Part, level: int, table: Float64) -> Float64:
        """Return the sums over the children, for each row of a level of a part or its roots.

        Args:
            part: a part of the spine.
            level: a level of the part but the last, or that of its roots.
            table: of the next level.
        """
        here = self.support
        rows, below = here.part_rows(part, level), here.part_rows(part, level + 1)
        starts = self.starts(level, rows, table), self.starts(level + 1, below, table)
        found = np.zeros(int(starts[0][-1]))
        _add_children(here.parent[level + 1][below] - rows.start, starts, table.ravel(), found)
        return found.reshape(-1, *table.shape[1:])


@kernel
def _add_children(
    parent: Int64, starts: tuple[Int64, Int64], below: Float64, above: Float64
) -> None:
    """Add the numbers of each row to its parent's, in order."""
    upper, lower = starts
    for row in range(len(parent)):
        at = upper[parent[row]]
        for i in range(lower[row], lower[row + 1]):
            above[at + i - lower[row]] += below[i]
