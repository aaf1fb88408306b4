"""Least squares along a spine of vectors over groups: one small matrix a node.

A node has a vector over its groups, the sum of its children's (a child's groups are among its
parent's; E embeds). Write M for the information of a node's own measurements, C for the covariance
of what its subtree says, F for the covariance of its estimate from everything:

    V = Σ E C_child Eᵀ,  C = (M + V⁻¹)⁻¹
    F_child = C_child - C_child Eᵀ (V⁻¹ - V⁻¹ F V⁻¹) E C_child

with C = M⁻¹ at the deepest level and F = C at the root, or F = C - C w wᵀC / wᵀC w where wᵀx is
known.

Matrices stand row-major one behind the other, a node's having as many rows as it has groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import kernel, over_families

Nodes: TypeAlias = tuple[Int64, Int64, Float64]
"""Of the nodes of a level: where rows begin, where matrices begin, and the matrices."""

Children: TypeAlias = tuple[Int64, Int64]
"""Where the children of each node begin, and the parent row of each row of the level below."""


@dataclass(frozen=True, eq=False)
class BlockSquares:
    """The matrices of every node of a spine.

    Attributes:
        support: which nodes have which groups.
        start: for each spine level int64 (nodes + 1): where the matrix of a node begins.
        combined: for each spine level float64 (entries): C.
        joined: for each spine level but the last float64 (entries): V⁻¹.
        known_total: float64 (groups): w where wᵀx is known at the root, or None.
    """

    support: Support
    start: tuple[Int64, ...]
    combined: tuple[Float64, ...]
    joined: tuple[Float64, ...]
    known_total: Float64 | None

    @classmethod
    def of(
        cls, support: Support, information: Sequence[Float64], known_total: Float64 | None
    ) -> "BlockSquares":
        """Return the matrices of a spine: `hedgerow.estimate.spine.coupled.Coupled.of`."""
        sizes = (np.diff(rows) ** 2 for rows in support.start)
        start = tuple(np.concatenate(([0], np.cumsum(each))) for each in sizes)
        combined = [np.empty(int(each[-1])) for each in start]
        joined = [np.empty(int(each[-1])) for each in start[:-1]]
        for level in range(support.spine.depth, -1, -1):
            nodes = support.start[level], start[level], combined[level]
            own = support.group[level], np.ascontiguousarray(information[level])
            if level == support.spine.depth:
                over_families(partial(_combine_deepest, nodes, own), start[level])
                continue
            children = support.spine.child_start[level], support.parent[level + 1]
            below = support.start[level + 1], start[level + 1], combined[level + 1]
            task = partial(_combine, nodes, own, joined[level], children, below)
            over_families(task, start[level + 1][children[0]])
        return cls(support, start, tuple(combined), tuple(joined), known_total)

    @cached_property
    def final(self) -> tuple[Float64, ...]:
        """F of every node: for each level float64 (entries)."""
        found = [self._at_root()]
        for level in range(1, self.support.spine.depth + 1):
            found.append(np.empty_like(self.combined[level]))
            upper = self.support.start[level - 1], self.start[level - 1], found[-2]
            lower = self.support.start[level], self.start[level], self.combined[level]
            children = self.support.spine.child_start[level - 1], self.support.parent[level]
            task = partial(_finish, upper, self.joined[level - 1], children, lower, found[-1])
            over_families(task, self.start[level][children[0]])
        return tuple(found)

    def _at_root(self) -> Float64:
        """Return F of the root: float64 (entries)."""
        if self.known_total is None:
            return self.combined[0]
        w = self.known_total[self.support.group[0]]
        whole = self.combined[0].reshape(len(w), len(w))
        moved = whole @ w
        return np.asarray(whole - np.outer(moved, moved) / (w @ moved)).ravel()

    def times_combined(self, level: int, nodes: range, table: Float64) -> Float64:
        """Return C times a table of the rows of some nodes: float64 (rows, coordinates)."""
        return self._times(self.combined[level], level, nodes, table)

    def over_family(self, level: int, nodes: range, table: Float64) -> Float64:
        """Return V⁻¹ times a table of the rows of some nodes: float64 (rows, coordinates)."""
        return self._times(self.joined[level], level, nodes, table)

    def _times(self, matrices: Float64, level: int, nodes: range, table: Float64) -> Float64:
        """Return each node's matrix times its rows of a table."""
        here = slice(nodes.start, nodes.stop + 1)
        found = np.empty_like(table)
        _multiply(self.support.start[level][here], self.start[level][here], matrices, table, found)
        return found


@kernel
def invert_blocks(rows: Int64, start: Int64, matrices: Float64) -> None:
    """Invert positive definite matrices in place, one a node.

    Args:
        rows: int64 (nodes + 1): where rows begin.
        start: int64 (nodes + 1): where matrices begin.
        matrices: float64 (entries), row-major.
    """
    for n in range(len(rows) - 1):
        k = rows[n + 1] - rows[n]
        invert(matrices[start[n] : start[n + 1]].reshape(k, k))


@kernel
def _combine_deepest(nodes: Nodes, own: tuple[Int32, Float64], first: int, last: int) -> None:
    """Write C = M⁻¹ of a range of nodes of the deepest level."""
    rows, start, combined = nodes
    group, information = own
    for n in range(first, last):
        k = rows[n + 1] - rows[n]
        matrix = combined[start[n] : start[n + 1]].reshape(k, k)
        for i in range(k):
            for j in range(k):
                matrix[i, j] = information[group[rows[n] + i], group[rows[n] + j]]
        invert(matrix)


@kernel
def _combine(
    nodes: Nodes,
    own: tuple[Int32, Float64],
    joined: Float64,
    children: Children,
    below: Nodes,
    first: int,
    last: int,
) -> None:
    """Write V⁻¹ and C of a range of nodes."""
    rows, start, combined = nodes
    (group, information), (child_start, parent) = own, children
    for n in range(first, last):
        k = rows[n + 1] - rows[n]
        whole = combined[start[n] : start[n + 1]].reshape(k, k)
        inverse = joined[start[n] : start[n + 1]].reshape(k, k)
        whole[:] = 0.0
        for c in range(child_start[n], child_start[n + 1]):
            at, some = below[1][c], below[0][c + 1] - below[0][c]
            for i in range(some):
                for j in range(some):
                    p, q = parent[below[0][c] + i] - rows[n], parent[below[0][c] + j] - rows[n]
                    whole[p, q] += below[2][at + i * some + j]
        inverse[:] = whole
        invert(inverse)
        is_measured = False
        for i in range(k):
            is_measured |= information[group[rows[n] + i], group[rows[n] + i]] > 0.0
        if not is_measured:
            continue
        for i in range(k):
            for j in range(k):
                own_part = information[group[rows[n] + i], group[rows[n] + j]]
                whole[i, j] = inverse[i, j] + own_part
        invert(whole)


@kernel
def _finish(
    upper: Nodes,
    joined: Float64,
    children: Children,
    lower: Nodes,
    final: Float64,
    first: int,
    last: int,
) -> None:
    """Write F of the children of a range of nodes."""
    rows, start, above = upper
    child_start, parent = children
    for n in range(first, last):
        k = rows[n + 1] - rows[n]
        inverse = joined[start[n] : start[n + 1]].reshape(k, k)
        known = _product(inverse, _product(above[start[n] : start[n + 1]].reshape(k, k), inverse))
        for c in range(child_start[n], child_start[n + 1]):
            some = lower[0][c + 1] - lower[0][c]
            own = lower[2][lower[1][c] : lower[1][c + 1]].reshape(some, some)
            gain = np.empty((some, some))
            for i in range(some):
                for j in range(some):
                    p, q = parent[lower[0][c] + i] - rows[n], parent[lower[0][c] + j] - rows[n]
                    gain[i, j] = inverse[p, q] - known[p, q]
            less = _product(own, _product(gain, own))
            for i in range(some):
                for j in range(some):
                    both = 0.5 * (less[i, j] + less[j, i])
                    final[lower[1][c] + i * some + j] = own[i, j] - both


@kernel
def _product(a: Float64, b: Float64) -> Float64:
    """Return the product of two small square matrices."""
    k = len(a)
    found = np.zeros((k, k))
    for i in range(k):
        for m in range(k):
            for j in range(k):
                found[i, j] += a[i, m] * b[m, j]
    return found


@kernel
def invert(matrix: Float64) -> None:
    """Invert a small positive definite matrix in place, by Gauss and Jordan without pivots."""
    k = len(matrix)
    for p in range(k):
        pivot = 1.0 / matrix[p, p]
        matrix[p, p] = 1.0
        for j in range(k):
            matrix[p, j] *= pivot
        for i in range(k):
            if i != p:
                factor = matrix[i, p]
                matrix[i, p] = 0.0
                for j in range(k):
                    matrix[i, j] -= factor * matrix[p, j]
    for i in range(k):
        for j in range(i):
            both = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = both
            matrix[j, i] = both


@kernel
def _multiply(rows: Int64, start: Int64, matrices: Float64, table: Float64, found: Float64) -> None:
    """Write each node's matrix times its rows of a table; both tables begin at the first node."""
    for n in range(len(rows) - 1):
        k, base = rows[n + 1] - rows[n], rows[n] - rows[0]
        for i in range(k):
            for r in range(table.shape[1]):
                found[base + i, r] = 0.0
            for j in range(k):
                entry = matrices[start[n] + i * k + j]
                for r in range(table.shape[1]):
                    found[base + i, r] += entry * table[base + j, r]
