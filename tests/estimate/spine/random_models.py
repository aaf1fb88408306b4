"""Random models along a spine, their noisy tables, and least squares by dense matrices."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from math import prod

import numpy as np

from hedgerow.estimate.cube.shape import AxisShape, CubeShape
from hedgerow.estimate.spine.marginals import Marginals
from hedgerow.estimate.spine.model import Model
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.spine.support import UNBOUNDED, Part
from tests.estimate.dense import Dense, indicators
from tests.estimate.spine.spines import parts_below, random_axis, random_pairs


def flat_axis(size):
    """An axis of a total and so many nodes."""
    return AxisShape.of([np.array([0, size])])


@dataclass
class Case:
    """A model beside dense matrices over the detail cells of the deepest level.

    Attributes:
        model: that is tested.
        axes: by their number in a cuboid's levels, in the order that tables have.
        leaves: for each detail cell the node of each of these axes.
    """

    model: Model
    axes: dict[int, AxisShape]
    leaves: list[tuple[int, ...]]

    @property
    def depth(self):
        return self.model.support.spine.depth

    @property
    def whole(self):
        return Part.top(self.depth)

    def sums(self, key):
        """The sums of a cuboid in the order of its flat table: 0/1 (cells, leaves)."""
        each = zip(self.axes.items(), np.transpose(self.leaves), strict=True)
        above = [axis.ancestors(axis.depth, key[a])[codes] for (a, axis), codes in each]
        return indicators(np.unique(above, axis=1, return_inverse=True)[1])

    def detail(self, level):
        """The sums of the detail layout of a spine level."""
        return self.sums({a: axis.depth for a, axis in self.axes.items()} | {0: level})

    @cached_property
    def dense(self):
        rows = [(self.sums(key), v) for key, v in self.model.measured.items()]
        total = np.ones((int(self.model.total_known), len(self.leaves)))
        return Dense.of([*rows, (total, 0.0)])

    def estimates(self, tables, total):
        """The estimates of the leaves."""
        told = [tables[key] for key in self.model.measured] + [[total]] * self.model.total_known
        return self.dense.gain @ np.concatenate(told)

    def tables(self, rng, scale=3.0):
        """A flat table of each measured cuboid: some true counts and noise; and the true total."""
        truth = rng.poisson(4, len(self.leaves)) * (rng.random(len(self.leaves)) < 0.7)
        exact = {key: self.sums(key) @ truth for key in self.model.measured}
        total = int(truth.sum()) if self.model.total_known else None
        return {key: t + scale * rng.normal(size=len(t)) for key, t in exact.items()}, total

    def of_part(self, part, tables):
        """The tables of the nodes of a part."""
        found = {}
        for key, table in tables.items():
            if key[0] in part.levels:
                cells, nodes = self.model.cells(key), self.model.support.nodes(part, key[0])
                first = cells.count(range(nodes.start))
                found[key] = table[first : first + cells.count(nodes)]
        return found

    def ask(self, what, tables, total):
        """The estimates of all levels, or their counts, in one part."""
        upward = self.model.up(self.whole, tables)
        return getattr(self.model, what)(self.whole, upward, None, total)

    def ask_parts(self, what, tables, total, cut):
        """The same in a top and a part a node of the level of the cut, put together again."""
        support, ask = self.model.support, getattr(self.model, what)
        top, parts = Part.top(cut), parts_below(support, cut)
        ups = [self.model.up(part, self.of_part(part, tables)) for part in parts]
        told = np.concatenate([up.root_sums for up in ups])
        upward = self.model.up(top, self.of_part(top, tables), told)
        assert len(upward.root_sums) == 0
        found = ask(top, upward, None, total)
        ends = pairwise(np.cumsum([0, *(support.cells(cut, part.nodes) for part in parts)]))
        below = [ask(part, up, found[cut][slice(*end)], None)
                 for part, up, end in zip(parts, ups, ends, strict=True)]  # fmt: skip
        return found | {
            level: np.concatenate([each[level] for each in below])
            for level in range(cut + 1, self.depth + 1)
        }


def rows_of(support):
    """The node and the group of each row of the deepest level."""
    start, group = support.start[-1], support.group[-1]
    return zip(np.repeat(np.arange(len(start) - 1), np.diff(start)), group, strict=True)


def beside_attribute(model, attribute, zero):
    """A census, of whose attribute some leaves are 0 by rule."""
    group = attribute.ancestors(attribute.depth, model.group_level)
    kept = [np.flatnonzero((group == g) & ~zero) for g in range(max(group) + 1)]
    leaves = [(node, leaf) for node, g in rows_of(model.support) for leaf in kept[g]]
    return Case(model, {0: model.support.spine, 1: attribute}, leaves)


def beside_marginals(model):
    """All cells of the groups that nodes have."""
    grouped = [] if model.group_axis is None else [model.group_axis]
    axes = {a: model.shape.axes[a] for a in (0, *grouped, *model.residuals.axes)}
    others = [range(axes[a].sizes[-1]) for a in model.residuals.axes]
    rows = ((n, g) if grouped else (n,) for n, g in rows_of(model.support))
    return Case(model, axes, [(*row, *rest) for row in rows for rest in product(*others)])


def random_variances(rng, levels):
    found = rng.uniform(0.3, 20, levels)
    found[:-1][rng.random(levels - 1) < 0.3] = np.inf
    return found


def census(seed, *, depth=None, known=None, bounds=(), noise=None):
    """A model with uneven axes, groups that differ by node, and cells that are 0 by rule."""
    rng = np.random.default_rng(seed)
    spine = random_axis(rng, int(rng.integers(0, 4)) if depth is None else depth)
    attribute = random_axis(rng, int(rng.integers(0 if seed % 10 == 9 else 1, 4)), widest=3)
    group_level = int(rng.integers(0, attribute.depth + 1))
    zero = rng.random(attribute.sizes[-1]) < 0.2
    zero[rng.integers(len(zero))] = False
    has = None
    if seed % 4:  # some group with a leaf is somewhere
        has = random_pairs(rng, spine.sizes[-1], attribute.sizes[group_level], 0.5)
        alive = attribute.ancestors(attribute.depth, group_level)[~zero][0]
        has = np.append(has[0], rng.integers(spine.sizes[-1])), np.append(has[1], alive)
    model = Nested.of(
        spine, attribute, group_level, has, bounds, zero,
        random_variances(rng, spine.depth + 1), random_variances(rng, attribute.depth + 1),
        total_known=bool(rng.integers(2)) if known is None else known, noise=noise,
    )  # fmt: skip
    return beside_attribute(model, attribute, zero)


def marginals(seed, *, depth=None, known=None, bounds=()):
    """A model of attributes in random order, of which a random choice of cuboids is measured."""
    rng = np.random.default_rng(seed)
    spine = random_axis(rng, int(rng.integers(0, 4)) if depth is None else depth)
    grouped = [random_axis(rng, int(rng.integers(1, 3)))] * (seed % 5 > 0)
    others = [*grouped, *(flat_axis(int(rng.integers(2, 4))) for _ in range(rng.integers(0, 3)))]
    order = rng.permutation(len(others))
    shape = CubeShape((spine, *(others[i] for i in order)))
    group = 1 + int(np.flatnonzero(order == 0)[0]) if grouped else None
    has = random_pairs(rng, spine.sizes[-1], grouped[0].sizes[-1]) if grouped else None
    zeros = np.asarray(rng.random([a.sizes[-1] for a in shape.axes[1:]]) < 0.2 * rng.integers(2))
    zeros[tuple(slice(None) if a == group else 0 for a in range(1, len(shape.axes)))] = False
    every = [range(axis.depth + 1) for axis in shape.axes]
    chosen = {key for key in product(*every) if rng.random() < 0.4} | {shape.finest}
    noise = {key: float(rng.uniform(0.3, 9)) for key in sorted(chosen)}
    model = Marginals.of(
        shape, group, has, bounds, zeros.ravel(), noise,
        total_known=bool(rng.integers(2)) if known is None else known,
    )  # fmt: skip
    return beside_marginals(model)


MODELS = {"census": census, "marginals": marginals}


def bounded(make, seed, **kind):
    """A case with bounds of some rows of some levels, around a table that meets them all.

    Returns:
        The case, and a total within them, if it is known.
    """
    support, rng = make(seed, **kind).model.support, np.random.default_rng(seed)
    depth = support.spine.depth
    tables = {depth: rng.poisson(4, len(support.group[depth]))}
    for level in range(depth, 0, -1):
        above = len(support.group[level - 1])
        tables[level - 1] = np.bincount(support.parent[level], tables[level], minlength=above)
    found = []
    for level, table in tables.items():
        node = np.repeat(np.arange(support.spine.sizes[level]), np.diff(support.start[level]))
        some = np.flatnonzero(rng.random(len(table)) < 0.5)
        low = np.maximum(table - rng.integers(0, 4, len(table)), 0)
        high = table + rng.integers(0, 4, len(table))
        if seed % 3 == 0:
            high[:] = UNBOUNDED
        each = node, support.group[level], low, high
        found.append((level, *(own[some].astype(np.int64) for own in each)))
    case = make(seed, bounds=found, **kind)
    return case, int(tables[depth].sum()) if case.model.total_known else None


def small_shape(*, middle=False):
    """A spine of three levels, groups, and one attribute of two levels or three."""
    spine = AxisShape.of([np.array([0, 2]), np.array([0, 2, 4])])
    starts = [np.array([0, 2]), np.array([0, 2, 4])]
    return CubeShape((spine, flat_axis(2), AxisShape.of(starts) if middle else flat_axis(3)))


def small_model(shape=None, noise=None, bounds=(), zeros=None, *, group=1, known=False):
    shape = shape or small_shape()
    noise = {shape.finest: 1.0} if noise is None else noise
    if zeros is None:
        zeros = np.zeros(prod(a.sizes[-1] for a in shape.axes[1:]), dtype=bool)
    return Marginals.of(shape, group, None, bounds, zeros, noise, total_known=known)
