"""A workload's least squares by dense matrices: the oracle for any measured cuboids."""

import numpy as np

from hedgerow.estimate.cube.shape import CubeShape, is_within
from hedgerow.estimate.workload.observed import Observed
from tests.estimate.cube.dense_cubes import cuboid_sums, random_axis

KINDS = ["nothing public", "total public", "cuboid public"]
WIDEST = {1: (4, 4), 2: (3, 3), 3: (2, 3)}  # depth and width by number of axes


class DenseWorkload:
    """Least squares over the leaves of all axes, those unmeasured included: by pseudo-inverses.

    Minimises Σ |M_c - S_c x|²/v_c over x with S_p x = r: x = x_r + N y, N a basis of S_p's kernel.
    Sums of x that are estimable do not depend on which minimum it is.
    """

    def __init__(self, observed):
        self.observed = observed
        shape = observed.shape
        leaves = shape.cells(shape.finest)
        self.sums = {c: cuboid_sums(shape, c) for c in shape.cuboids()}
        free, self.start = np.eye(leaves), np.zeros((leaves, 0))
        if observed.public is not None:
            exact = self.sums[observed.public]
            _, values, rows = np.linalg.svd(exact)
            free, self.start = rows[len(values) :].T, np.linalg.pinv(exact)
        stacked = np.vstack([self.sums[c] / np.sqrt(v) for c, v in observed.variances.items()])
        inverse = np.linalg.pinv(stacked @ free, rcond=1e-10)
        self.gain = free @ inverse  # of the weighted measurements, stacked
        self.stacked = stacked
        self.covariance = self.gain @ self.gain.T

    def estimates(self, tables):
        known = 0.0
        if self.observed.public is not None:
            known = self.start @ tables[self.observed.public].ravel()
        each = self.observed.variances.items()
        noisy = np.concatenate([tables[c].ravel() / np.sqrt(v) for c, v in each])
        leaves = known + self.gain @ (noisy - self.stacked @ (known + np.zeros(len(self.gain))))
        return {c: (s @ leaves).reshape(self.observed.shape.shape(c)) for c, s in self.sums.items()}

    def variances(self, cuboid):
        sums = self.sums[cuboid]
        found = np.einsum("il,lm,im->i", sums, self.covariance, sums)
        return found.reshape(self.observed.shape.shape(cuboid))


def random_shape(rng, axes=None):
    """Up to three uneven axes."""
    axes = int(rng.integers(1, 4)) if axes is None else axes
    depth, widest = WIDEST[axes]
    return CubeShape.of([random_axis(rng, int(rng.integers(1, depth + 1)), widest)
                         for _ in range(axes)])  # fmt: skip


def random_workload(rng, kind, shape=None):
    """Any cuboids that are not public, with variances that are far apart."""
    shape = random_shape(rng) if shape is None else shape
    every = list(shape.cuboids())
    public = {"nothing public": None, "total public": shape.total}.get(
        kind, every[int(rng.integers(0, max(1, len(every) - 1)))]
    )
    left = [c for c in every if public is None or not is_within(c, public)]
    if not left:
        return None
    number = int(rng.integers(1, min(len(left), 7) + 1))
    chosen = rng.permutation(len(left))[:number]
    return Observed(shape, {left[i]: float(np.exp(rng.normal(0, 1.5))) for i in chosen}, public)


def random_tables(rng, observed):
    """Noisy counts of what is measured, true counts of what is public."""
    shape = observed.shape
    leaves = rng.poisson(20, shape.cells(shape.finest)).astype(float)
    found = {}
    for cuboid, variance in observed.variances.items():
        counts = cuboid_sums(shape, cuboid) @ leaves
        noise = rng.normal(0, np.sqrt(variance), len(counts))
        found[cuboid] = (counts + noise).reshape(shape.shape(cuboid))
    if observed.public is not None:
        sums = cuboid_sums(shape, observed.public)
        found[observed.public] = (sums @ leaves).reshape(shape.shape(observed.public))
    return found


def answerable(observed):
    """All cuboids that are sums of a table's cells."""
    return [c for c in observed.shape.cuboids() if observed.is_answerable(c)]


def drawn_workload(seed, kind):
    """A generator and a random workload that measures something."""
    rng = np.random.default_rng(seed)
    while True:
        if (observed := random_workload(rng, kind)) is not None:
            return rng, observed


def two_tables(rng):
    """A random workload of several tables over two or three axes."""
    while True:
        shape = random_shape(rng, int(rng.integers(2, 4)))
        observed = random_workload(rng, str(rng.choice(KINDS)), shape)
        if observed is not None and len(observed.tables) > 1:
            return observed
