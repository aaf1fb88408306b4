"""Small tables along a spine with public facts, and dense matrices of what their plans measure."""

from itertools import product

import numpy as np
import polars as pl

import hedgerow as hr
from tests.made import random_axis

KINDS = ["home", "nursing", "prison", "college"]


def person_axis(rng, widest=3):
    """A tree of kinds, bands and cells, uneven."""
    paths = [
        (kind, f"{kind}.{band}", f"{kind}.{band}.{cell}")
        for kind in KINDS
        for band in range(rng.integers(1, 3))
        for cell in range(rng.integers(1, widest + 1))
    ]
    frame = pl.DataFrame(paths, schema=["kind", "band", "cell"], orient="row")
    return hr.Axis.from_frame("person", frame, ["kind", "band", "cell"], attribute=True)


def spine_tree(rng, depth=3, widest=4):
    """A spine of ``depth`` levels and one attribute tree."""
    return hr.Tree([random_axis(rng, "place", depth, widest), person_axis(rng)])


def kinds_of_blocks(rng, tree):
    """A public table: which kinds each finest node has, and how many people at least."""
    blocks = tree.axes[0].labels[-1].to_list()
    rows = [
        (block, kind, int(rng.integers(0, 3)))
        for block in blocks
        for kind in KINDS
        if rng.random() < (0.8 if kind == "home" else 0.3)
    ]
    rows = rows or [(blocks[0], "home", 0)]
    column = tree.axes[0].columns[-1]
    return pl.DataFrame(rows, schema=[column, "kind", "least"], orient="row")


def people(rng, tree, kinds, mean=15):
    """Counts that keep the public facts."""
    place, person = tree.axes
    block = place.labels[-1].to_list()
    cell = person.labels[-1].to_list()
    codes, values = ([], []), []
    for b, kind, least in kinds.iter_rows():
        cells = [i for i, code in enumerate(cell) if code.startswith(f"{kind}.")]
        codes[0].append(block.index(b))
        codes[1].append(cells[0])
        values.append(least + int(rng.poisson(mean * rng.random() ** 3)))
        for i in cells[1:]:
            codes[0].append(block.index(b))
            codes[1].append(i)
            values.append(int(rng.poisson(mean * rng.random() ** 4)))
    arrays = tuple(np.array(code, dtype=np.int32) for code in codes)
    return hr.Counts.from_leaves(tree, arrays, np.array(values, dtype=np.int64))


def possible(tree, kinds):
    """Which leaves can hold records: bool (blocks, attribute leaves)."""
    place, person = tree.axes
    found = np.zeros((place.size(place.depth), person.size(person.depth)), dtype=bool)
    block = {code: i for i, code in enumerate(place.labels[-1])}
    for b, kind, *_ in kinds.iter_rows():
        for i, code in enumerate(person.labels[-1]):
            found[block[b], i] |= code.startswith(f"{kind}.")
    return found


def incidence(tree, levels, allowed):
    """Rows of a cuboid's cells that can hold records, columns of the leaves that can: float64."""
    codes = np.nonzero(allowed)
    cell = np.zeros(len(codes[0]), dtype=np.int64)
    for axis, level, code in zip(tree.axes, levels, codes, strict=True):
        cell = cell * axis.size(level) + axis.ancestors(level)[code]
    numbers = np.unique(cell)
    return (cell[None, :] == numbers[:, None]).astype(np.float64), numbers


def dense_estimates(plan, allowed, noisy, total):
    """Least squares of everything by dense matrices: estimates and covariance of the leaves."""
    tree = plan.tree
    rows, values, weights = [], [], []
    for levels, what in plan.by_levels.items():
        if what.kind == "measured":
            matrix, _ = incidence(tree, levels, allowed)
            rows.append(matrix)
            values.append(noisy[levels])
            weights.append(np.full(len(matrix), 1 / what.mechanism.noise_variance))
    a, b, w = np.vstack(rows), np.concatenate(values), np.concatenate(weights)
    covariance = np.linalg.inv(a.T @ (w[:, None] * a))
    x = covariance @ (a.T @ (w * b))
    if total is not None:
        one = np.ones(len(x))
        gain = covariance @ one / (one @ covariance @ one)
        x = x + gain * (total - x.sum())
        covariance = covariance - np.outer(gain, one @ covariance)
    return x, covariance


def every_levels(tree):
    return list(product(*(range(axis.depth + 1) for axis in tree.axes)))
