"""Random workloads: uneven axes, cuboids, tables, true leaves of each kind, noisy estimates."""

from itertools import product

import numpy as np

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, is_within, maximal
from hedgerow.estimate.workload.lattice import Lattice
from tests.estimate.cube.dense_cubes import random_axis

KINDS = ["dense", "sparse", "very sparse", "lopsided", "zeros"]


def random_levels(rng, axes, deepest=3):
    """Depths of axes, and some cuboids over them."""
    depths = rng.integers(1, 1 + (deepest if axes < 4 else 2), axes)
    every = list(product(*(range(depth + 1) for depth in depths)))
    named = [every[i] for i in rng.choice(len(every), min(len(every), rng.integers(1, 7)))]
    if rng.random() < 0.3:  # much of what is within them
        named += [c for c in every if any(is_within(c, t) for t in named) and rng.random() < 0.7]
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


def random_shape(rng, depths, widest=3):
    """Uneven axes of these depths, each level of which has a parent with two children."""
    while True:
        shape = CubeShape.of([random_axis(rng, depth, widest) for depth in depths])
        if shape.finest == depths:
            return shape


def random_leaves(rng, shape, kind):
    """True counts of the finest cuboid."""
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
