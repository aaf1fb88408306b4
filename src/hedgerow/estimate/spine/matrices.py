"""Matrices by block: the algebra of families that `hedgerow.estimate.spine.component` states.

A block is a range of rows of one node and has one matrix, row-major, one behind the other.
"""

import numpy as np

from hedgerow.arrays import Float64, FloatPair, FloatTriple, Int32, Int64, IntPair
from hedgerow.kernels import kernel, run_range, run_size

Blocks = IntPair
"""Where the rows of each block begin and the end, and where its matrix begins: int64."""

Metric = tuple[Int64, Int64, Int64, Float64]
"""Of each row: the first row of its block, the number of rows there, and where its row of the
matrix begins; and the entries of all matrices."""


@kernel
def add_matrices(blocks: tuple[Blocks, Blocks], above: IntPair, matrices: FloatPair) -> None:
    """Add the matrix of each block to that of the block above it."""
    (rows, start), (lower_rows, lower_start) = blocks
    owner, parent = above
    for b in range(len(lower_rows) - 1):
        first = lower_rows[b]
        k = run_size(lower_rows, b)
        p = owner[b]
        size = run_size(rows, p)
        for i in range(k):
            # E embeds: a child may lack groups, so its rows have places among those above.
            line = start[p] + (parent[first + i] - rows[p]) * size - rows[p]
            for j in range(k):
                matrices[0][line + parent[first + j]] += matrices[1][lower_start[b] + i * k + j]


@kernel
def combine(
    blocks: Blocks,
    own: tuple[Int32, Float64],
    matrices: FloatPair,
    first: int,
    last: int,
) -> None:
    """Write V⁻¹ over V, and C, of a range of blocks; C = M⁻¹ where V is nothing, 0."""
    rows, start = blocks
    group, information = own
    joined, combined = matrices
    for b in range(first, last):
        k = run_size(rows, b)
        is_measured = False
        whole = combined[start[b] : start[b + 1]].reshape(k, k)
        inverse = joined[start[b] : start[b + 1]].reshape(k, k)
        # V; where there are no children it is 0, and stands for V⁻¹ = 0.
        whole[:] = inverse
        if k > 0 and inverse[0, 0] > 0.0:
            invert(inverse)
        here = group[rows[b] : rows[b + 1]]
        # What is not measured changes nothing: C = V.
        for i in range(k):
            is_measured |= information[here[i], here[i]] > 0.0
        if not is_measured:
            continue
        # C = (M + V⁻¹)⁻¹.
        whole[:] = inverse
        for i in range(k):
            for j in range(k):
                whole[i, j] += information[here[i], here[j]]
        invert(whole)


@kernel
def finish(
    blocks: tuple[Blocks, Blocks],
    above: IntPair,
    family: FloatTriple,
    combined: Float64,
    final: Float64,
    first: int,
    last: int,
) -> None:
    """Write F of a range of blocks, from V, V⁻¹ and F of the blocks above them."""
    (rows, start), (lower_rows, lower_start) = blocks
    owner, parent = above
    whole, joined, upper_final = family
    widest = 1
    for b in range(first, last):
        widest = max(widest, rows[owner[b] + 1] - rows[owner[b]])
    room = np.empty((4, widest * widest))
    for b in range(first, last):
        row = lower_rows[b]
        k = run_size(lower_rows, b)
        p = owner[b]
        size = run_size(rows, p)
        at = lower_start[b]
        if k == 0:  # a node that has no group
            continue
        if size == 1:  # numbers: K is C / V
            own = combined[at]
            share = combined[at] * joined[start[p]]
            rest_of_family = whole[start[p]] - own + upper_final[start[p]]
            final[at] = (1.0 - share) ** 2 * own + share * share * rest_of_family
            continue
        block = slice(start[p], start[p + 1])
        place = parent[row : row + k] - rows[p]
        matrix = combined[at : at + k * k].reshape(k, k)
        own_final = final[at : at + k * k].reshape(k, k)
        gain = room[0, : k * size].reshape(k, size)
        left = room[1, : k * k].reshape(k, k)
        _write_gain(matrix, joined[block].reshape(size, size), place, gain, left)
        # What is beside the child and above the family: V - E C Eᵀ + F.
        rest = room[2, : size * size].reshape(size, size)
        rest[:] = whole[block].reshape(size, size)
        for i in range(k):
            for j in range(k):
                rest[place[i], place[j]] -= matrix[i, j]
        rest += upper_final[block].reshape(size, size)
        own_final[:] = 0.0
        _add_sandwich(left, matrix, room[3], own_final)
        _add_sandwich(gain, rest, room[3], own_final)
        for i in range(k):
            for j in range(i):
                own_final[j, i] = own_final[i, j]


@kernel
def _write_gain(
    matrix: Float64, inverse: Float64, place: Int64, gain: Float64, left: Float64
) -> None:
    """Write K = C Eᵀ V⁻¹ of a child, and 1 - K E; place has its rows among those above."""
    for i in range(len(matrix)):
        gain[i] = 0.0
        for j in range(len(matrix)):
            factor = matrix[i, j]
            line = inverse[place[j]]
            for g in range(len(line)):
                gain[i, g] += factor * line[g]
        for j in range(len(matrix)):
            # Joseph's form multiplies by 1 - K E from both sides, and so needs it in full.
            left[i, j] = (1.0 if i == j else 0.0) - gain[i, place[j]]


@kernel
def _add_sandwich(outer: Float64, inner: Float64, work: Float64, product: Float64) -> None:
    """Add outer · inner · outerᵀ, which is symmetric, on the diagonal and below it."""
    rows, size = outer.shape
    line = work[:size]  # a row of outer · inner
    for i in range(rows):
        line[:] = 0.0
        for j in range(size):
            factor = outer[i, j]
            row = inner[j]
            for g in range(size):
                line[g] += factor * row[g]
        # One half, as the caller mirrors it: rounding then cannot make it unsymmetric.
        for j in range(i + 1):
            total, row = 0.0, outer[j]
            for g in range(size):
                total += line[g] * row[g]
            product[i, j] += total


@kernel
def multiply(blocks: Blocks, matrices: Float64, cell: Int64, table: Float64) -> None:
    """Multiply each block's rows of a table by its matrix, in place.

    Args:
        blocks: some, whose rows stand one behind the other in the table.
        matrices: those of the level.
        cell: where the coordinates of each row begin.
        table: the rows.
    """
    rows, start = blocks
    before = np.empty(0)
    for b in range(len(rows) - 1):
        k = run_size(rows, b)
        row = rows[b] - rows[0]
        first = cell[row]
        many = cell[row + k] - cell[row]
        # A group alone, as all are where groups do not meet: a number, and no sum over rows.
        if k == 1:
            for r in range(first, first + many):
                table[r] *= matrices[start[b]]
            continue
        if many > len(before):
            before = np.empty(many)
        # Row i is Σ_j entry(i, j) · row j, all coordinates of the rows at once.
        before[:many] = table[first : first + many]
        table[first : first + many] = 0.0
        for i in range(k):
            line = first + i * (many // k)
            for j in range(k):
                entry = matrices[start[b] + i * k + j]
                for r in range(many // k):
                    table[line + r] += entry * before[j * (many // k) + r]


@kernel
def add_squares(
    blocks: Blocks,
    place: tuple[Int64, Int32],
    tables: FloatTriple,
    sums: Float64,
) -> None:
    """Add (B - B_p E) C (B - B_p E)ᵀ of each block.

    Args:
        blocks: those that are in the sum.
        place: the row above each row, and each row's group.
        tables: C, Bᵀ, and of the rows above B_pᵀ, or no row where that is 0.
        sums: float64 (1, groups, groups), or (groups, 1, 1) where groups do not meet.
    """
    rows, start = blocks
    at, group = place
    matrices, maps, above = tables
    row_product = np.empty(maps.shape[1])
    left = maps.copy()
    if len(above) > 0:
        for i in range(len(left)):
            left[i] -= above[at[i]]
    for b in range(len(rows) - 1):
        k = run_size(rows, b)
        first = rows[b]
        for i in range(first, first + k):
            # A row of C times the block's (B - B_p E)ᵀ.
            row_product[:] = 0.0
            for j in range(first, first + k):
                entry = matrices[start[b] + (i - first) * k + j - first]
                for r in range(len(row_product)):
                    row_product[r] += entry * left[j, r]
            for g in range(len(row_product)):
                # Where groups do not meet a row says something of its own group alone.
                line = sums[group[i] if len(row_product) == 1 else 0, g]
                for r in range(len(row_product)):
                    line[r] += left[i, g] * row_product[r]


@kernel
def add_children(parent: Int64, starts: IntPair, below: Float64, above: Float64) -> None:
    """Add the numbers of each row to its parent's, in order."""
    upper, lower = starts
    # In the order of the rows, so that sums are the same however the spine is cut.
    for row in range(len(parent)):
        at = upper[parent[row]]
        for i in run_range(lower, row):
            above[at + i - lower[row]] += below[i]


@kernel
def hand_down(parent: Int64, starts: IntPair, above: Float64, below: Float64) -> None:
    """Write the numbers of its parent over those of each row."""
    upper, lower = starts
    # All children get the whole gap; their own matrices make shares of it.
    for row in range(len(parent)):
        at = upper[parent[row]]
        for i in run_range(lower, row):
            below[i] = above[at + i - lower[row]]


@kernel
def invert(matrix: Float64) -> None:
    """Invert a small positive definite matrix in place, by Gauss and Jordan without pivots."""
    k = len(matrix)
    for p in range(k):
        # The pivot row is divided, and taken from all others; where the unit matrix would stand
        # beside the columns that are done, their place holds the inverse.
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
    # Rounding made both halves differ: their mean.
    for i in range(k):
        for j in range(i):
            both = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = both
            matrix[j, i] = both
