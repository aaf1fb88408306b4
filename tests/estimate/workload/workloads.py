"""Random workloads, their tables and lattices, and least squares over them by dense matrices."""

from itertools import product

import numpy as np

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, is_within, is_within_any, maximal
from hedgerow.estimate.workload.lattice import Lattice
from hedgerow.estimate.workload.observed import Observed
from tests.estimate.cube.dense_cubes import cuboid_sums, random_axis
from tests.estimate.dense import Dense

KINDS = ["nothing public", "total public", "axis public", "cuboid public"]
LEAVES = ["dense", "sparse", "very sparse", "lopsided", "zeros"]
WIDEST = {1: (4, 4), 2: (3, 3), 3: (2, 3), 4: (2, 2)}  # depth and width by number of axes


class DenseWorkload:
    """Least squares over the leaves of all axes, those unmeasured included.

    Weights are those of the noise, unless other variances are given.
    """

    def __init__(self, observed, weights=None):
        self.observed = observed
        self.sums = {c: cuboid_sums(observed.shape, c) for c in observed.shape.cuboids()}
        given = weights or observed.variances, observed.variances  # that of the public one is 0
        told = ((self.sums[c], *(v.get(c, 0.0) for v in given)) for c in observed.cuboids)
        self.dense = Dense.of(told)
        self.covariance = self.dense.covariance  # of the leaves

    def estimates(self, tables):
        told = np.concatenate([tables[c].ravel() for c in self.observed.cuboids])
        leaves, shape = self.dense.gain @ told, self.observed.shape.shape
        return {c: (sums @ leaves).reshape(shape(c)) for c, sums in self.sums.items()}

    def variances(self, cuboid):
        found = self.dense.variances_of(self.sums[cuboid])
        return found.reshape(self.observed.shape.shape(cuboid))


def random_shape(rng, axes=None):
    """Up to three uneven axes; levels of only children are left out."""
    axes = int(rng.integers(1, 4)) if axes is None else axes
    depth, widest = WIDEST[axes]
    return CubeShape.of([random_axis(rng, int(rng.integers(1, depth + 1)), widest)
                         for _ in range(axes)])  # fmt: skip


def shape_of_depths(rng, depths, widest=3):
    """Uneven axes of these depths: each level has a parent with two children."""
    while True:
        shape = CubeShape.of([random_axis(rng, depth, widest) for depth in depths])
        if shape.finest == depths:
            return shape


def random_public(rng, kind, levels):
    """A cuboid of some levels of each axis, or None."""
    if kind == "nothing public":
        return None
    found = [0] * len(levels)
    if kind == "axis public":
        axis = int(rng.integers(len(levels)))
        found[axis] = int(rng.choice(levels[axis]))
    elif kind == "cuboid public":
        found = [int(rng.choice(each)) for each in levels]
    return tuple(found)


def random_workload(rng, kind, shape=None, levels=None, most=7):
    """Up to so many cuboids that are not public, with variances that are far apart; or None.

    Args:
        kind: of `KINDS`.
        shape: of the axes, random unless given.
        levels: for each axis those that may be measured or public, all unless given.
        most: cuboids at most.
    """
    shape = random_shape(rng) if shape is None else shape
    levels = [range(axis.depth + 1) for axis in shape.axes] if levels is None else levels
    every = list(product(*levels))
    public = random_public(rng, kind, levels)
    left = [c for c in every if not is_within(c, public)]
    if not left:
        return None
    number = int(rng.integers(1, min(len(left), most) + 1))
    chosen = rng.permutation(len(left))[:number]
    return Observed(shape, {left[i]: float(np.exp(rng.normal(0, 1.5))) for i in chosen}, public)


def random_tables(rng, observed):
    """Noisy counts of what is measured, true counts of what is public."""
    shape = observed.shape
    leaves = rng.poisson(20, shape.shape(shape.finest)).astype(float)
    found = {}
    for cuboid, variance in observed.variances.items():
        true = brute_sums(shape, leaves, shape.finest, cuboid)
        found[cuboid] = true + rng.normal(0, np.sqrt(variance), true.shape)
    if observed.public is not None:
        found[observed.public] = brute_sums(shape, leaves, shape.finest, observed.public)
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
        shape = random_shape(rng, axes=int(rng.integers(2, 4)))
        observed = random_workload(rng, str(rng.choice(KINDS)), shape)
        if observed is not None and len(observed.tables) > 1:
            return observed


def random_levels(rng, axes, deepest=3):
    """Depths of axes, and some cuboids over them."""
    depths = rng.integers(1, 1 + (deepest if axes < 4 else 2), axes)
    every = list(product(*(range(depth + 1) for depth in depths)))
    named = [every[i] for i in rng.choice(len(every), min(len(every), rng.integers(1, 7)))]
    if rng.random() < 0.3:  # much of what is within them
        named += [c for c in every if is_within_any(c, named) and rng.random() < 0.7]
    return tuple(int(depth) for depth in depths), every, named


def random_lattice(rng, axes):
    """A lattice that can be settled, its cuboids and what is public; and the depths of the axes."""
    while True:
        depths, every, named = random_levels(rng, axes)
        tables = maximal(named)
        public = every[rng.integers(len(every))] if rng.random() < 0.4 else None
        if len(tables) > 4 or public in tables:
            continue
        try:
            return Lattice.of(named, tables, public=public), named, public, depths
        except EstimateError:
            continue


def random_leaves(rng, shape, kind):
    """True counts of the finest cuboid, of one of the `LEAVES`."""
    sizes = shape.shape(shape.finest)
    mean = {"dense": 40.0, "sparse": 0.5, "very sparse": 0.02, "lopsided": 0.0, "zeros": 0.0}[kind]
    if kind == "lopsided":
        return rng.poisson(rng.lognormal(-2, 4, sizes).clip(0, 1e5))
    return rng.poisson(mean * rng.lognormal(0, 1, sizes))


def brute_sums(shape, leaves, cuboid, coarser):
    """The sums of a cuboid's cells, added one by one to the cells of a coarsening."""
    found = np.zeros(shape.shape(coarser), dtype=leaves.dtype)
    up = [a.ancestors(k, c) for a, k, c in zip(shape.axes, cuboid, coarser, strict=True)]
    np.add.at(found, np.ix_(*up), leaves)
    return found


def noisy(rng, shape, leaves, elements, scale=3.0):
    """For each element its true counts with noise."""
    true = {c: brute_sums(shape, leaves, shape.finest, c) for c in elements}
    return {c: t + rng.normal(0, scale, t.shape) for c, t in true.items()}, true
