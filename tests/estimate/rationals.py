"""Least squares in rational numbers: an oracle without rounding, for variances far apart."""

from fractions import Fraction

import numpy as np


def solved(matrix, right):
    """The solution of a square system of Fractions, by elimination."""
    rows = [[*left, *behind] for left, behind in zip(matrix, right, strict=True)]
    for p in range(len(rows)):
        pivot = next(i for i in range(p, len(rows)) if rows[i][p])
        rows[p], rows[pivot] = rows[pivot], rows[p]
        rows[p] = [entry / rows[p][p] for entry in rows[p]]
        for i, row in enumerate(rows):
            if i != p and row[p]:
                rows[i] = [entry - row[p] * own for entry, own in zip(row, rows[p], strict=True)]
    return [row[len(matrix) :] for row in rows]


def covariance(measured, variances, exact=()):
    """The covariance of the unknowns x, of which rows measure sums, and others are exact.

    Args:
        measured: 0/1 (rows, unknowns).
        variances: of each row, above 0 and finite.
        exact: 0/1 (rows, unknowns), rows that do not follow from each other.
    """
    size, known = measured.shape[1], [[Fraction(int(entry)) for entry in row] for row in exact]
    system = [[Fraction(0)] * (size + len(known)) for _ in range(size + len(known))]
    for row, variance in zip(measured, variances, strict=True):
        inside = np.flatnonzero(row)
        for i in inside:
            for j in inside:
                system[i][j] += 1 / Fraction(float(variance))
    for k, row in enumerate(known):
        for i in range(size):
            system[size + k][i] = system[i][size + k] = row[i]
    unit = [[Fraction(int(i == j)) for j in range(size)] for i in range(len(system))]
    return solved(system, unit)[:size]


def variance(matrix, weights):
    """wᵀ C w, for weights of 0 and 1."""
    inside = np.flatnonzero(weights)
    return float(sum(matrix[i][j] for i in inside for j in inside))


def unknowns(rows):
    """Columns that tell the others: as many as there are sums that do not follow from others."""
    left, found = [[Fraction(int(entry)) for entry in row] for row in rows], []
    for column in range(len(left[0])):
        pivot = next((i for i in range(len(found), len(left)) if left[i][column]), None)
        if pivot is None:
            continue
        at = len(found)
        left[at], left[pivot] = left[pivot], left[at]
        for i in range(at + 1, len(left)):
            factor = left[i][column] / left[at][column]
            left[i] = [a - factor * b for a, b in zip(left[i], left[at], strict=True)]
        found.append(column)
    return found
