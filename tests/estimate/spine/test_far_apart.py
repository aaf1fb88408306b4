"""Variances along a spine whose noise is as far apart as it may be, beside rational numbers."""

from itertools import product
from math import prod

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.spine.component import MOST_APART
from hedgerow.estimate.spine.marginals import Marginals
from hedgerow.estimate.spine.nested.nested import SPINES_APART, Nested
from tests.estimate.rationals import covariance, variance
from tests.estimate.spine.random_models import beside_attribute, beside_marginals, flat_axis
from tests.estimate.spine.spines import random_axis, random_pairs

MOST_CELLS = 12


def either(rng, apart, size=None):
    """The ends of a range of variances, or anything between."""
    ends = np.sqrt(float(apart)) ** rng.choice([-1, 1, rng.uniform(-1, 1)], size)
    return float(ends) if size is None else ends


def marginals(seed, apart):
    """A small model."""
    for rng in map(np.random.default_rng, range(1_000 * seed, 1_000 * (seed + 1))):
        named = [random_axis(rng, int(rng.integers(1, 3)), 2) for _ in range(2)]
        shape = CubeShape((*named, *[flat_axis(2)] * int(rng.integers(0, 2))))
        has = random_pairs(rng, shape.axes[0].sizes[-1], shape.axes[1].sizes[-1])
        every = product(*(range(axis.depth + 1) for axis in shape.axes))
        keys = {key for key in every if rng.random() < 0.5} | {shape.finest}
        noise = {key: either(rng, apart) for key in sorted(keys)}
        zeros = np.zeros(prod(axis.sizes[-1] for axis in shape.axes[1:]), dtype=bool)
        known = bool(rng.random() < 0.5)
        model = Marginals.of(shape, 1, has, (), zeros, noise, total_known=known)
        if len((case := beside_marginals(model)).leaves) <= MOST_CELLS:
            return case
    raise AssertionError


def census(seed, apart, group_level):
    """The same of a spine beside an attribute whose groups are at a level of it."""
    for rng in map(np.random.default_rng, range(1_000 * seed, 1_000 * (seed + 1))):
        spine, attribute = (random_axis(rng, int(rng.integers(1, 3)), 2) for _ in range(2))
        zero, groups = np.zeros(attribute.sizes[-1], dtype=bool), attribute.sizes[group_level]
        model = Nested.of(
            spine, attribute, group_level, random_pairs(rng, spine.sizes[-1], groups), (), zero,
            either(rng, apart, spine.depth + 1), rng.uniform(0.5, 8, attribute.depth + 1),
            total_known=False,
        )  # fmt: skip
        if len((case := beside_attribute(model, attribute, zero)).leaves) <= MOST_CELLS:
            return case
    raise AssertionError


def farthest(case):
    """By how much the variance of a cell, or of all of a node, is off at most, relatively."""
    model, detail = case.model, case.detail
    sums = [case.sums(key) for key in model.measured]
    noise = np.repeat([*model.measured.values()], [*map(len, sums)])
    exact = np.ones((int(model.total_known), len(case.leaves)))
    known = covariance(np.vstack(sums), noise, exact)
    support, off = model.support, [0.0]
    width = int(support.widths.sum())
    labels = np.arange(width, dtype=np.int32), np.zeros(width, dtype=np.int32)
    each, whole = map(model.variances, labels)
    for level in range(support.spine.depth + 1):
        group, start = support.group[level], support.start[level]
        node = np.repeat(
            np.repeat(np.arange(len(start) - 1), np.diff(start)), support.widths[group]
        )
        runs = [np.arange(support.offset[g], support.offset[g + 1]) for g in group]
        found = each.at(level, node, np.concatenate(runs))
        wanted = [variance(known, row) for row in detail(level)]
        nodes = np.unique(node)
        found = [*found, *whole.at(level, nodes, np.zeros_like(nodes))]
        wanted += [variance(known, detail(level)[node == n].sum(axis=0)) for n in nodes]
        some = nodes[::2]
        found.append(whole.over(level, some)[0])
        wanted.append(variance(known, detail(level)[np.isin(node, some)].sum(axis=0)))
        off += [abs(a / b - 1) for a, b in zip(found, wanted, strict=True) if b > 0]
    return max(off)


@pytest.mark.parametrize(("apart", "most"), [(1 << 10, 1e-11), (1 << 26, 1e-6), (MOST_APART, 0.05)])
@pytest.mark.parametrize("seed", range(25))
def test_variances_of_marginals_keep_digits_where_noise_is_far_apart(seed, apart, most):
    assert farthest(marginals(seed, apart)) < most


@pytest.mark.parametrize(("group_level", "apart"), [(0, 1 << 80), (1, SPINES_APART)])
@pytest.mark.parametrize("seed", range(25))
def test_variances_of_a_census_keep_digits_where_spine_levels_are_far_apart(
    seed, group_level, apart
):
    assert farthest(census(seed, apart, group_level)) < 1e-6


@pytest.mark.parametrize("of", [marginals, lambda seed, apart: census(seed, apart, 1)])
def test_noise_farther_apart_is_refused(of):
    with pytest.raises(EstimateError, match="give the one a larger share"):
        [of(seed, 1 << 56) for seed in range(9)]
