"""A cube's least squares by dense matrices: the oracle for small cubes."""

from functools import reduce

import numpy as np

from tests.estimate.dense import Dense, indicators


def random_axis(rng, depth, widest):
    """The child ranges of an uneven axis; some levels are of single children alone."""
    found, nodes = [], 1
    for _ in range(depth):
        wide = 1 if rng.random() < 0.15 else widest
        sizes = rng.integers(1, wide + 1, nodes)
        found.append(np.append(0, np.cumsum(sizes)))
        nodes = int(sizes.sum())
    return found


def axis_sums(axis):
    """For each level the 0/1 matrix (nodes, leaves) that sums leaves to nodes."""
    return [indicators(axis.ancestors(axis.depth, k)) for k in range(axis.depth + 1)]


def cuboid_sums(cube, cuboid):
    """The 0/1 matrix (cells, leaves) of a cuboid."""
    return reduce(np.kron, [axis_sums(axis)[k] for axis, k in zip(cube.axes, cuboid, strict=True)])


def dense_gain(cube, variances, public=None):
    """The matrices H_c of the estimates x = Σ H_c M_c, and the covariance of x.

    ``variances`` holds one number a cuboid that is measured; the cells of ``public`` are exact.
    """
    blocks = {c: (cuboid_sums(cube, c), v) for c, v in variances.items() if np.isfinite(v)}
    if public is not None:
        blocks["public"] = cuboid_sums(cube, public), 0
    dense = Dense.of(blocks.values())
    ends = np.cumsum([len(rows) for rows, _ in blocks.values()])[:-1]
    gains = dict(zip(blocks, np.split(dense.gain, ends, axis=1), strict=True))
    return gains, dense.covariance
