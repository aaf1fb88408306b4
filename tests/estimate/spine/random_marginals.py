"""Random models of marginals on a spine, with flat noisy tables, and the dense matrices behind."""

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from hedgerow.estimate.cube.shape import AxisShape, CubeShape
from hedgerow.estimate.spine.marginals import Marginals
from hedgerow.estimate.spine.support import Part
from tests.estimate.spine.spines import parts_below, random_axis, random_pairs


def flat_axis(size):
    """An axis of a total and so many nodes."""
    return AxisShape.of([np.array([0, size])])


def random_model(rng, *, depth=None, total_known=None, groups=True, bounds=(), zeros=None):
    """A model of attributes in random order, of which a random choice of cuboids is measured."""
    depth = int(rng.integers(0, 4)) if depth is None else depth
    named = {"spine": random_axis(rng, depth)}
    if groups:
        named["group"] = random_axis(rng, int(rng.integers(1, 3)))
    for number in range(int(rng.integers(0, 3))):
        named[f"other {number}"] = flat_axis(int(rng.integers(2, 4)))
    order = 1 + rng.permutation(len(named) - 1)
    names = ["spine", *(list(named)[i] for i in order)]
    shape = CubeShape(tuple(named[name] for name in names))
    group = names.index("group") if groups else None
    has = None
    if groups:
        has = random_pairs(rng, named["spine"].sizes[-1], named["group"].sizes[-1])
    every = [range(a.depth + 1) for a in shape.axes]
    chosen = {key for key in product(*every) if rng.random() < 0.4} | {shape.finest}
    noise = {key: float(rng.uniform(0.3, 9)) for key in sorted(chosen)}
    if total_known is None:
        total_known = bool(rng.random() < 0.5)
    if zeros is None:
        zeros = np.zeros(prod(a.sizes[-1] for a in shape.axes[1:]), dtype=bool)
    return Marginals.of(shape, group, has, bounds, zeros, noise, total_known=total_known)


@dataclass
class Dense:
    """The detail cells of the deepest level as (node, indices of the attributes), all of them."""

    model: Marginals

    def __post_init__(self):
        here = self.model
        support, deepest = here.support, here.support.spine.depth
        self.leaves = []
        sizes = [range(here.shape.axes[a].sizes[-1]) for a in here.residuals.axes]
        start, group = support.start[deepest], support.group[deepest]
        for node in range(support.spine.sizes[deepest]):
            for g in group[start[node] : start[node + 1]]:
                for others in product(*sizes):
                    self.leaves.append(self._cell(node, int(g), others))

    def _cell(self, node, group, others):
        """One number an axis, in the order of the shape."""
        found = [0] * len(self.model.shape.axes)
        found[0] = node
        if self.model.group_axis is not None:
            found[self.model.group_axis] = group
        for axis, index in zip(self.model.residuals.axes, others, strict=True):
            found[axis] = index
        return found

    def sums(self, key):
        """The sums of a cuboid in the order of its flat table: 0/1 (cells, leaves)."""
        here = self.model
        order = [0]
        order += [] if here.group_axis is None else [here.group_axis]
        order += here.residuals.axes
        ancestors = [
            axis.ancestors(axis.depth, level)
            for axis, level in zip(here.shape.axes, key, strict=True)
        ]
        cells = [tuple(int(ancestors[a][leaf[a]]) for a in order) for leaf in self.leaves]
        number = {cell: i for i, cell in enumerate(sorted(set(cells)))}
        found = np.zeros((len(number), len(cells)))
        found[[number[cell] for cell in cells], np.arange(len(cells))] = 1
        return found

    def detail(self, level):
        """The sums of the detail layout of a spine level."""
        key = list(self.model.shape.finest)
        key[0] = level
        return self.sums(tuple(key))

    def solved(self, noisy, total):
        """Estimates of the leaves and their covariance, by the normal equations."""
        size = len(self.leaves)
        whole, h = np.zeros((size, size)), np.zeros(size)
        for key, variance in self.model.measured.items():
            sums = self.sums(key)
            whole += sums.T @ sums / variance
            h += sums.T @ noisy[key] / variance
        covariance = np.linalg.inv(whole)
        x = covariance @ h
        if total is not None:
            ones = np.ones(size)
            gain = covariance @ ones / (ones @ covariance @ ones)
            x = x + gain * (total - ones @ x)
            covariance = covariance - np.outer(gain, ones @ covariance)
        return x, covariance


def noisy_tables(rng, dense, scale=3.0):
    """A flat table of each measured cuboid: some true counts and noise; and the true total."""
    truth = rng.poisson(4, size=len(dense.leaves)) * (rng.random(len(dense.leaves)) < 0.7)
    tables = {}
    for key in dense.model.measured:
        exact = dense.sums(key) @ truth
        tables[key] = exact + np.round(scale * rng.normal(size=len(exact)))
    return tables, int(truth.sum())


def of_part(model, part, tables):
    """The tables of the nodes of a part."""
    found = {}
    for key, table in tables.items():
        level = key[0]
        if level in part.levels:
            cells, nodes = model.cells(key), model.support.nodes(part, level)
            first = cells.count(range(nodes.start))
            found[key] = table[first : first + cells.count(nodes)]
    return found


def run_whole(model, tables, total):
    """Estimates and counts of all levels in one part."""
    part = Part.top(model.support.spine.depth)
    upward = model.up(part, tables)
    found = model.estimates(part, upward, None, total)
    return found, model.settle(part, upward, None, total)


def run_parts(model, tables, total, cut):
    """The same in a top and a part a node of the level of the cut, put together again."""
    top, parts = Part.top(cut), parts_below(model.support, cut)
    upward = [model.up(part, of_part(model, part, tables)) for part in parts]
    told = np.concatenate([each.root_sums for each in upward])
    above = model.up(top, of_part(model, top, tables), told)
    assert len(above.root_sums) == 0
    estimates = model.estimates(top, above, None, total)
    counts = model.settle(top, above, None, total)
    cells = model.support.cell[cut]
    rows = model.support.start[cut]
    below = []
    for node, (part, each) in enumerate(zip(parts, upward, strict=True)):
        own = slice(int(cells[rows[node]]), int(cells[rows[node + 1]]))
        below.append(
            (
                model.estimates(part, each, estimates[cut][own], None),
                model.settle(part, each, counts[cut][own], None),
            )
        )
    for level in range(cut + 1, model.support.spine.depth + 1):
        estimates[level] = np.concatenate([e[level] for e, _ in below])
        counts[level] = np.concatenate([c[level] for _, c in below])
    return estimates, counts
