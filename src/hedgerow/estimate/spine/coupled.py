"""Least squares along a spine of vectors over groups: what is measured of all groups together.

A node has a vector over its groups, the sum of its children's (a child's groups are among its
parent's; E embeds). Of each node of spine level l the information M_l about its vector is the
principal submatrix of its groups, and h = M_l · observation, summed over its measurements. Write z
for what a node's subtree says and C for the covariance of z; `hedgerow.estimate.workload.spine` is
the same with one number a node:

    up:    V = Σ E C_child Eᵀ,  C = (M + V⁻¹)⁻¹,  z = C (h + V⁻¹ Σ E z_child)
    down:  x_child = z_child + C_child Eᵀ V⁻¹ (x - Σ E z_child)

with C = M⁻¹ and z = C h at the deepest level, and at the root x = z; or, where wᵀx is known to be
t, x = z + C w (t - wᵀz) / wᵀC w, which is exact and needs no tiny variance. Where every M is
diagonal the groups do not meet, and one number a row does (`RowSquares`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.block_squares import BlockSquares
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Part, Support
from hedgerow.kernels import kernel

NOT_NEGATIVE = 1e-10
"""How far below 0 an eigenvalue of a semidefinite matrix may come out, of the largest one."""

MOST_APART = 1 << 36
"""How many times one noise variance may be another's, where groups are estimated together: a sum
that is measured so much better than its parts has its own variance to four digits, not to ten."""


def check_apart(variances: Iterable[float], most: int = MOST_APART) -> None:
    """Raise unless no noise variance is too many times another's for least squares in doubles.

    Args:
        variances: records², infinite where nothing is measured.
        most: how many times.

    Raises:
        EstimateError: one is.
    """
    finite = [variance for variance in variances if np.isfinite(variance)]
    if finite and max(finite) > most * min(finite):
        raise EstimateError(
            f"the noise variance of one cuboid is more than {most:,} times another's, and least "
            f"squares of both together would be rounding errors: give the one a larger share"
        )


class Elimination(ABC):
    """Least squares along a spine, up and down, of tables that have some numbers for each row."""

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


@dataclass(frozen=True, eq=False)
class Coupled(Elimination):
    """Least squares of vectors over groups along a spine.

    All tables are float64 (rows, coordinates): every coordinate is a problem of its own, with the
    same matrices.

    Attributes:
        support: which nodes have which groups.
        squares: the matrices of the nodes, or numbers of the rows where matrices are diagonal.
        known_total: float64 (groups), w: at the root wᵀx is known exactly; or None.
    """

    support: Support
    squares: RowSquares | BlockSquares
    known_total: Float64 | None

    @classmethod
    def of(
        cls,
        support: Support,
        information: Sequence[Float64],
        *,
        known_total: Float64 | None = None,
    ) -> "Coupled":
        """Return the least squares along a spine from the information of each level.

        Args:
            support: which nodes have which groups.
            information: for each spine level float64 (groups, groups), records⁻², positive
                semidefinite, the deepest level's positive definite over the groups that are used.
            known_total: float64 (groups): weights of the sum that is known at the root.

        Raises:
            EstimateError: matrices that are not so, or weights that are all 0.
        """
        used = support.group[0]
        if len(information) != support.spine.depth + 1:
            raise EstimateError(f"each of {support.spine.depth + 1} levels needs its information")
        for level, each in enumerate(information):
            _check_information(each[np.ix_(used, used)], level, support.spine.depth)
        if known_total is not None and not known_total[used].any():
            raise EstimateError("a known sum must be of at least one group")
        is_exact = known_total is not None
        if all(_is_diagonal(each) for each in information) and (not is_exact or len(used) == 1):
            own = [np.diag(each).copy() for each in information]
            rows = RowSquares.of(support, own, is_exact=is_exact)
            return cls(support, rows, known_total)
        blocks = BlockSquares.of(support, information, known_total)
        return cls(support, blocks, known_total)

    def starts(self, level: int, rows: slice, table: Float64) -> Int64:
        """Return where the coordinates of each of some rows begin: int64 (rows + 1)."""
        del level
        return np.asarray(np.arange(rows.stop - rows.start + 1) * table.shape[1])

    def combined(self, level: int, nodes: range, own: Float64, sums: Float64 | None) -> Float64:
        """Return z of some nodes, from h and, above the deepest level, from Σ E z_child."""
        if sums is not None:
            own = own + self.squares.over_family(level, nodes, sums)
        return self.squares.times_combined(level, nodes, own)

    def down(
        self, part: Part, z: Mapping[int, Float64], above: Float64 | None
    ) -> dict[int, Float64]:
        """Return the estimates from everything, x: for each level of a part (rows, coordinates).

        Args:
            part: a part of the spine.
            z: of `up`.
            above: the estimates of the roots (rows, coordinates); for the top float64
                (coordinates), the known sums t, or None where no sum is known.
        """
        if part.is_top:
            above = self._at_root(z[0], above)
        elif above is None:
            raise EstimateError("a part below the top needs the estimates of its roots")
        return self.estimates(part, z, above)

    def step(self, part: Part, level: int, z: Float64, above: Float64) -> Float64:
        """Return the estimates of one level of a part, x: float64 (rows, coordinates)."""
        nodes, nodes_above = (self.support.nodes(part, k) for k in (level, level - 1))
        rows, upper = self.support.rows(level, nodes), self.support.rows(level - 1, nodes_above)
        gap = above - self.sums(part, level - 1, z)
        moved = self.squares.over_family(level - 1, nodes_above, gap)
        moved = moved[self.support.parent[level][rows] - upper.start]
        return z + self.squares.times_combined(level, nodes, moved)

    def _at_root(self, z: Float64, total: Float64 | None) -> Float64:
        """Return the estimate of the root (rows, coordinates)."""
        if self.known_total is None or total is None:
            if (self.known_total is None) != (total is None):
                raise EstimateError("a sum must be given where, and only where, it is known")
            return z
        w = self.known_total[self.support.group[0]]
        moved = self.squares.times_combined(0, range(1), w[:, None])
        return np.asarray(z + moved * ((total - w @ z) / (w @ moved)))


def _check_information(matrix: Float64, level: int, depth: int) -> None:
    """Raise unless a matrix is positive semidefinite; of the deepest level, definite."""
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0.0):
        raise EstimateError(f"the information of spine level {level} must be a symmetric matrix")
    values = np.linalg.eigvalsh(matrix)
    if values[0] < -NOT_NEGATIVE * values[-1]:
        raise EstimateError(f"the information of spine level {level} must not be negative")
    if level == depth and values[0] <= 0:
        raise EstimateError("every group must be measured at the deepest level of the spine")


def _is_diagonal(matrix: Float64) -> bool:
    """Return whether all entries beside the diagonal are 0."""
    return int(np.count_nonzero(matrix - np.diag(np.diag(matrix)))) == 0


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
