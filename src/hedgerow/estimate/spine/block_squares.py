"""Least squares along a spine of vectors over groups: one small matrix a node.

A node has a vector over its groups, the sum of its children's (a child's groups are among its
parent's; E embeds). Write M for the information of a node's own measurements, C for the covariance
of what its subtree says, F for the covariance of its estimate from everything:

    V = Σ E C_child Eᵀ,  C = (M + V⁻¹)⁻¹
    F_child = C_child - C_child Eᵀ (V⁻¹ - V⁻¹ F V⁻¹) E C_child

with C = M⁻¹ at the deepest level and F = C at the root, or F = C - C w wᵀC / wᵀC w where wᵀx is
known.

*Over some nodes.* A child c of p has the estimate y_c = K_c y_p + r_c, K_c = C_c Eᵀ V⁻¹, and
residuals of different families are uncorrelated. So a sum Σ_c B_c y_c over children of p is B_p y_p
and a residual of the family,

    B_p = Σ_c B_c K_c,   Cov = Σ_c (B_c - B_p E) C_c (B_c - B_p E)ᵀ,

the last over all children of p, with B_c = 0 for those that are not in the sum. Families are added
up from the level of the nodes to the root, whose own covariance is F.

Matrices stand row-major one behind the other, a node's having as many rows as it has groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, TypeAlias

import numpy as np

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.estimate.spine.support import Support, run_starts, starts_within
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

    dimensions: ClassVar[int] = 2
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
        depth = support.spine.depth
        start = tuple(run_starts(np.diff(rows) ** 2) for rows in support.start)
        combined = [np.empty(int(each[-1])) for each in start]
        joined = [*(np.empty_like(each) for each in combined[:-1]), combined[-1]]
        for level in range(depth, -1, -1):
            nodes = support.start[level], start[level], combined[level]
            own = support.group[level], np.ascontiguousarray(information[level])
            if level == depth:  # no children
                below, work = nodes, start[level]
                children = np.zeros_like(work), support.parent[level]
            else:
                below = support.start[level + 1], start[level + 1], combined[level + 1]
                children = support.spine.child_start[level], support.parent[level + 1]
                work = start[level + 1][children[0]]
            over_families(partial(_combine, nodes, own, joined[level], children, below), work)
        return cls(support, start, tuple(combined), tuple(joined[:-1]), known_total)

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

    def combined_matrices(self, level: int, nodes: range) -> tuple[Int64, Float64]:
        """Return C of some nodes: int64 (nodes + 1), where each matrix begins, and the entries."""
        start = self.start[level]
        entries = self.combined[level][start[nodes.start] : start[nodes.stop]]
        return starts_within(start, nodes), entries

    def final_matrices(self, level: int) -> tuple[Int64, Float64]:
        """Return F of all nodes of a level: where each matrix begins, and the entries."""
        return self.start[level], self.final[level]

    def over(self, level: int, nodes: Int64) -> Float64:
        """Return the covariance of the sum of estimates over some nodes: float64 (groups, groups).

        It takes the nodes, their ancestors and the siblings of both, whatever else the spine has.

        Args:
            level: of the spine.
            nodes: int64 (nodes), ascending, each once.
        """
        support = self.support
        groups, found = support.groups, np.zeros((support.groups, support.groups))
        row = support.listed_rows(level, nodes)
        maps = np.zeros((len(row), groups))  # Bᵀ: a line for each row of each node
        maps[np.arange(len(row)), support.group[level][row]] = 1.0
        for above in range(level - 1, -1, -1):
            children = support.spine.child_start[above]
            parents = np.unique(np.searchsorted(children, nodes, side="right") - 1)
            upper = np.zeros((len(support.listed_rows(above, parents)), groups))
            lower = support.start[above + 1], self.start[above + 1], self.combined[above + 1]
            higher = support.start[above], self.start[above], self.joined[above]
            family = children, support.parent[above + 1]
            _climb(lower, higher, family, (nodes, parents), (maps, upper), found)
            nodes, maps = parents, upper
        root = len(support.group[0])
        return found + maps.T @ self.final[0].reshape(root, root) @ maps

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
def _add_own(group: Int32, information: Float64, matrix: Float64) -> None:
    """Add a node's own information to a matrix of its groups."""
    for i in range(len(group)):
        for j in range(len(group)):
            matrix[i, j] += information[group[i], group[j]]


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
    """Write V⁻¹ and C of a range of nodes; where they have no children C = M⁻¹."""
    rows, start, combined = nodes
    (group, information), (child_start, parent) = own, children
    for n in range(first, last):
        k = rows[n + 1] - rows[n]
        whole = combined[start[n] : start[n + 1]].reshape(k, k)
        if child_start[n] == child_start[n + 1]:  # its own measurements alone
            whole[:] = 0.0
            _add_own(group[rows[n] : rows[n + 1]], information, whole)
            invert(whole)
            continue
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
        whole[:] = inverse
        _add_own(group[rows[n] : rows[n + 1]], information, whole)
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
        known = _times(inverse, _times(above[start[n] : start[n + 1]].reshape(k, k), inverse))
        for c in range(child_start[n], child_start[n + 1]):
            some = lower[0][c + 1] - lower[0][c]
            own = lower[2][lower[1][c] : lower[1][c + 1]].reshape(some, some)
            gain = np.empty((some, some))
            for i in range(some):
                for j in range(some):
                    p, q = parent[lower[0][c] + i] - rows[n], parent[lower[0][c] + j] - rows[n]
                    gain[i, j] = inverse[p, q] - known[p, q]
            less = _times(own, _times(gain, own))
            for i in range(some):
                for j in range(some):
                    both = 0.5 * (less[i, j] + less[j, i])
                    final[lower[1][c] + i * some + j] = own[i, j] - both


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


@kernel
def _climb(
    lower: tuple[Int64, Int64, Float64],
    higher: tuple[Int64, Int64, Float64],
    family: tuple[Int64, Int64],
    chosen: tuple[Int64, Int64],
    maps: tuple[Float64, Float64],
    found: Float64,
) -> None:
    """Write Bᵀ of the parents, and add the covariance of their families' residuals."""
    # Where rows and matrices of a level begin, and its matrices: C of children, V⁻¹ of parents.
    rows, start, combined = lower
    upper_rows, upper_start, joined = higher
    (children, parent), (nodes, parents), (below, above) = family, chosen, maps
    groups = below.shape[1]
    i, line, written = 0, 0, 0  # the next node, its first line, and the next line above
    for p in parents:
        k = upper_rows[p + 1] - upper_rows[p]
        first, first_line = i, line
        sums = np.zeros((k, groups))  # (Σ B C Eᵀ)ᵀ
        while i < len(nodes) and nodes[i] < children[p + 1]:
            c = nodes[i]
            m = rows[c + 1] - rows[c]
            own = combined[start[c] : start[c + 1]].reshape(m, m)
            told = _times(own, below[line : line + m])
            for a in range(m):
                sums[parent[rows[c] + a] - upper_rows[p]] += told[a]
            i, line = i + 1, line + m
        inverse = joined[upper_start[p] : upper_start[p + 1]].reshape(k, k)
        above[written : written + k] = _times(inverse, sums)
        for c in range(children[p], children[p + 1]):
            m = rows[c + 1] - rows[c]
            left = np.zeros((m, groups))  # (B_c - B_p E)ᵀ
            for a in range(m):
                left[a] -= above[written + parent[rows[c] + a] - upper_rows[p]]
            if first < i and nodes[first] == c:
                left += below[first_line : first_line + m]
                first, first_line = first + 1, first_line + m
            _add_squares(combined[start[c] : start[c + 1]].reshape(m, m), left, found)
        written += k


@kernel
def _times(matrix: Float64, table: Float64) -> Float64:
    """Return a small square matrix times a table of its rows."""
    found = np.zeros(table.shape)
    for i in range(len(matrix)):
        for j in range(len(matrix)):
            for g in range(table.shape[1]):
                found[i, g] += matrix[i, j] * table[j, g]
    return found


@kernel
def _add_squares(matrix: Float64, table: Float64, found: Float64) -> None:
    """Add tableᵀ matrix table."""
    told = _times(matrix, table)
    for i in range(len(matrix)):
        for g in range(table.shape[1]):
            for h in range(table.shape[1]):
                found[g, h] += table[i, g] * told[i, h]
