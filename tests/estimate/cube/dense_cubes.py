"""A cube's least squares by dense matrices: the oracle for small cubes."""

from functools import reduce

import numpy as np


def random_axis(rng, depth, widest):
    """The child ranges of an uneven axis; some levels are of single children alone."""
    found, nodes = [], 1
    for _ in range(depth):
        wide = 1 if rng.random() < 0.15 else widest
        sizes = rng.integers(1, wide + 1, nodes)
        found.append(np.append(0, np.cumsum(sizes)))
        nodes = int(sizes.sum())
    return found


def axis_sums(shape):
    """For each level the 0/1 matrix (nodes, leaves) that sums leaves to nodes."""
    return [
        (shape.ancestors(shape.depth, k) == np.arange(shape.sizes[k])[:, None]).astype(float)
        for k in range(shape.depth + 1)
    ]


def cuboid_sums(cube, cuboid):
    """The 0/1 matrix (cells, leaves) of a cuboid."""
    each = [axis_sums(axis)[k] for axis, k in zip(cube.axes, cuboid, strict=True)]
    return reduce(np.kron, each)


def dense_gain(cube, variances, public=None):
    """The matrices H_c of the estimates x = Σ H_c M_c, and the covariance of x.

    ``variances`` holds one number a cuboid that is measured; the cells of ``public`` are exact and
    stand first in the system of Karush, Kuhn and Tucker: minimise Σ |M_c - S_c x|²/v_c, S_p x = r.
    """
    measured = {c: v for c, v in variances.items() if np.isfinite(v)}
    sums = {c: cuboid_sums(cube, c) for c in measured}
    nothing = np.zeros((cube.cells(cube.finest),) * 2)
    information = sum((s.T @ s / measured[c] for c, s in sums.items()), nothing)
    if public is None:
        inverse = np.linalg.inv(information)
        return {c: inverse @ s.T / measured[c] for c, s in sums.items()}, inverse
    exact = cuboid_sums(cube, public)
    _, values, rows = np.linalg.svd(exact)
    free = rows[len(values) :].T
    inside = free @ np.linalg.inv(free.T @ information @ free) @ free.T if free.size else nothing
    gains = {c: inside @ s.T / measured[c] for c, s in sums.items()}
    start = np.linalg.pinv(exact)
    gains["public"] = start - inside @ information @ start
    return gains, inside
