"""The covariance of sums of estimates over some nodes of a level of a spine.

Below a node p, `hedgerow.estimate.spine.coupled` gives a child c the estimate y_c = K_c y_p + r_c,
K_c = C_c Eᵀ V⁻¹, and residuals of different families are uncorrelated. So a sum Σ_c B_c y_c over
children of p is B_p y_p and a residual of the family,

    B_p = Σ_c B_c K_c,   Cov = Σ_c (B_c - B_p E) C_c (B_c - B_p E)ᵀ,

the last over all children of p, with B_c = 0 for those that are not in the sum. Families are added
up from the level of the nodes to the root, whose own covariance is F. It takes the nodes, their
ancestors and the siblings of both, whatever else the spine has.
"""

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.spine.block_squares import BlockSquares
from hedgerow.estimate.spine.coupled import Coupled
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import kernel


def covariance_over(coupled: Coupled, level: int, nodes: Int64) -> Float64:
    """Return the covariance of the sum of estimates over some nodes: float64 (groups, groups).

    Args:
        coupled: least squares along the spine.
        level: of the spine.
        nodes: int64 (nodes), ascending, each once.
    """
    if isinstance(coupled.squares, RowSquares):
        return np.diag(variances_over(coupled.squares, level, nodes))
    return _over_blocks(coupled.squares, level, nodes)


def variances_over(squares: RowSquares, level: int, nodes: Int64) -> Float64:
    """Return the variances of the same sum where groups do not meet: float64 (groups)."""
    support = squares.support
    row = _rows_of(support, level, nodes)
    group = support.group[level][row]
    share, found = np.ones(len(row)), np.zeros(support.groups)
    for above in range(level - 1, -1, -1):
        u = squares.combined[above + 1][row]
        up, place = np.unique(support.parent[above + 1][row], return_inverse=True)
        family = squares.family[above][up]
        own = np.bincount(place, u * share, minlength=len(up)) / family
        left = np.maximum(family - np.bincount(place, u, minlength=len(up)), 0.0)
        found += np.bincount(group, u * (share - own[place]) ** 2, minlength=len(found))
        row, share, group = up, own, support.group[above][up]
        found += np.bincount(group, left * own**2, minlength=len(found))
    found += np.bincount(group, share**2 * squares.final[0][row], minlength=len(found))
    return found


def _over_blocks(squares: BlockSquares, level: int, nodes: Int64) -> Float64:
    """Return the covariance from matrices of the nodes."""
    support = squares.support
    groups, found = support.groups, np.zeros((support.groups, support.groups))
    row = _rows_of(support, level, nodes)
    maps = np.zeros((len(row), groups))  # Bᵀ: a line for each row of each node
    maps[np.arange(len(row)), support.group[level][row]] = 1.0
    for above in range(level - 1, -1, -1):
        children = support.spine.child_start[above]
        parents = np.unique(np.searchsorted(children, nodes, side="right") - 1)
        upper = np.zeros((len(_rows_of(support, above, parents)), groups))
        lower = support.start[above + 1], squares.start[above + 1], squares.combined[above + 1]
        higher = support.start[above], squares.start[above], squares.joined[above]
        family = children, support.parent[above + 1]
        _climb(lower, higher, family, (nodes, parents), (maps, upper), found)
        nodes, maps = parents, upper
    root = len(support.group[0])
    return found + maps.T @ squares.final[0].reshape(root, root) @ maps


def _rows_of(support: Support, level: int, nodes: Int64) -> Int64:
    """Return the rows of some nodes, one behind the other: int64 (rows)."""
    first, many = support.start[level][nodes], np.diff(support.start[level])[nodes]
    begin = np.append(0, np.cumsum(many))
    found: Int64 = np.repeat(first - begin[:-1], many) + np.arange(begin[-1])
    return found


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
