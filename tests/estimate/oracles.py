"""Slow, plain and independent answers to compare the estimators with."""

from fractions import Fraction
from math import lcm

import numpy as np


def algorithm_4(x, c):
    """IntOpt∞ of Boninsegna & Silvestri, Algorithm 4, line by line; the sort is stable."""
    b = len(x)
    z = [max(-((sum(x) - c) // b), -x_i) for x_i in x]  # 1
    t = max(abs(z_i) for z_i in z)  # 2
    order = sorted(range(b), key=lambda i: x[i])  # 3
    order = [i for i in order if z[i] > -x[i]]  # 4
    j = 0  # 5
    while sum(z) > c - sum(x):  # 6
        delta = sum(z) - c + sum(x)  # 7
        z[order[j]] = max(z[order[j]] - delta, -x[order[j]], -t)  # 8
        j = (j + 1) % len(order)  # 9
        if j == 0:  # 10
            order = [i for i in order if z[i] > -x[i]]  # 11
            if not order:  # the paper divides by |I| = 0 where the loop is about to end
                break
            r = (sum(z) - c + sum(x)) // len(order)  # 12
            t += max(1, r)  # 13
    return [x_i + z_i for x_i, z_i in zip(x, z, strict=True)]  # 14


def compositions(total, cells):
    """Every vector of non-negative integers with this sum."""
    if cells == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, cells - 1):
            yield (first, *rest)


def distance(y, x):
    return max(abs(y_i - x_i) for y_i, x_i in zip(y, x, strict=True))


def whole(column):
    """The column times the smallest number that makes it integers, and that number."""
    scale = lcm(*(fraction.denominator for fraction in column))
    return [int(fraction * scale) for fraction in column], scale


def squared_distance(y, x, variance):
    """Σ (y - x)² / variance, exactly."""
    return sum(
        (
            (y_i - Fraction(x_i)) ** 2 / Fraction(v_i)
            for y_i, x_i, v_i in zip(y, x, variance, strict=True)
        ),
        Fraction(0),
    )


def least_squared_distance(x, variance, c):
    """The smallest `squared_distance` to x of all compositions of c, by trying every one."""
    whole_x, scale_x = whole([Fraction(x_i) for x_i in x])
    whole_w, scale_w = whole([1 / Fraction(v_i) for v_i in variance])
    costs = [
        [w_i * (y * scale_x - x_i) ** 2 for y in range(c + 1)]
        for x_i, w_i in zip(whole_x, whole_w, strict=True)
    ]
    best = min(
        sum(cost[y_i] for cost, y_i in zip(costs, y, strict=True)) for y in compositions(c, len(x))
    )
    return Fraction(best, scale_w * scale_x**2)


def every_estimate(total, cells):
    """All compositions of the total, one a row."""
    return np.array(list(compositions(total, cells)))


def largest_change(y, x, variance):
    """Of each row: max |y - x| / sd."""
    return (abs(y - x) / np.sqrt(variance)).max(axis=-1)


def penalised_distance(y, x, variance, penalty):
    """Of each row: Σ (y - x)² / variance + penalty · #{y > 0}."""
    return ((y - x) ** 2 / variance).sum(axis=-1) + penalty * (y > 0).sum(axis=-1)
