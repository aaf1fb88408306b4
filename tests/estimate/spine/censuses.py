"""Random censuses of a spine and one attribute, and their least squares by dense matrices."""

import numpy as np

from hedgerow.estimate.spine.nested.nested import Nested
from tests.estimate.spine.dense_spines import solve
from tests.estimate.spine.spines import random_axis, random_pairs


def random_variances(rng, levels, *, missing=0.3):
    found = rng.uniform(0.3, 20, levels)
    found[:-1][rng.random(levels - 1) < missing] = np.inf
    return found


def random_census(seed, *, total_known=None, depth=None, bounds=(), noise=None, zeros=0.2):
    """A model with uneven axes, groups that differ by node, and cells that are 0 by rule."""
    rng = np.random.default_rng(seed)
    spine = random_axis(rng, int(rng.integers(0, 4)) if depth is None else depth)
    attribute = random_axis(rng, int(rng.integers(0 if seed % 10 == 9 else 1, 4)), widest=3)
    group_level = int(rng.integers(0, attribute.depth + 1))
    groups = attribute.sizes[group_level]
    zero = rng.random(attribute.sizes[-1]) < zeros
    zero[rng.integers(len(zero))] = False
    has = None if seed % 4 == 0 else random_pairs(rng, spine.sizes[-1], groups, 0.5)
    if has is not None:  # some group with a leaf is somewhere
        alive = attribute.ancestors(attribute.depth, group_level)[~zero][0]
        has = np.append(has[0], rng.integers(spine.sizes[-1])), np.append(has[1], alive)
    known = bool(rng.integers(2)) if total_known is None else total_known
    return Nested.of(
        spine, attribute, group_level, has, bounds, zero,
        random_variances(rng, spine.depth + 1), random_variances(rng, attribute.depth + 1),
        total_known=known, noise=noise,
    )  # fmt: skip


def random_noisy(seed, model, scale=30.0):
    """A table of random values for every measured cuboid, of the whole spine."""
    rng = np.random.default_rng(seed + 1000)
    return {
        key: rng.normal(scale=scale, size=model.cells(key).count(every(model, key[0])))
        for key in model.measured
    }


def every(model, level):
    return range(model.support.spine.sizes[level])


def of_part(model, part, noisy):
    """The tables of a part."""
    found = {}
    for (level, *b), table in noisy.items():
        if level in part.levels:
            nodes = model.support.nodes(part, level)
            cells = model.cells((level, *b))
            first = cells.count(range(nodes.start))
            found[level, *b] = table[first : first + cells.count(nodes)]
    return found


def detail_sums(model, level):
    """0/1 (detail cells of a level, detail cells of the deepest): which sum to which."""
    support, depth = model.support, model.support.spine.depth
    ids = [support.spine.ancestors(depth, level), np.arange(support.spine.sizes[depth])]
    cell = [None, None]
    for i, k in enumerate((level, depth)):
        node = np.repeat(np.arange(support.spine.sizes[k]), np.diff(support.start[k]))
        widths = support.widths[support.group[k]]
        at = [np.arange(support.offset[g], support.offset[g + 1]) for g in support.group[k]]
        cell[i] = np.repeat(node, widths), np.concatenate(at)
    above = ids[0][cell[1][0]]
    same = (cell[0][0][:, None] == above) & (cell[0][1][:, None] == cell[1][1])
    return same.astype(float)


def measured_sums(model, key):
    """0/1 (cells of a cuboid, detail cells of the deepest level): its matrix."""
    cells, nodes = model.cells(key), every(model, key[0])
    here = detail_sums(model, key[0])
    sums = [cells.sums(np.ascontiguousarray(column), nodes) for column in here.T]
    return np.array(sums).T


def dense_estimates(model, noisy, total=None):
    """The estimate of the deepest level's detail, and its covariance."""
    information, h = 0.0, 0.0
    for key, variance in model.measured.items():
        sums = measured_sums(model, key)
        information = information + sums.T @ sums / variance
        h = h + sums.T @ noisy[key] / variance
    known = None
    if model.total_known:
        known = np.ones((1, len(h))), np.array([[float(total)]])
    estimate, covariance = solve(information, h[:, None], known)
    return estimate[:, 0], covariance
