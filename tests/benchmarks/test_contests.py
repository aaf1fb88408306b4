"""The errors and bounds of the contests are those of dense matrices, on small instances."""

from functools import reduce

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

import hedgerow as hr
from benchmarks.contests import (
    PREFIXES,
    census,
    error_of,
    error_of_marginals,
    least,
    marginals,
    of_prefixes,
    planned,
    planned_by,
    shares_by_axis,
    tree_of,
)

AXES = {
    "sex": [np.arange(2)],
    "age": [np.array([0, 0, 0, 1, 1]), np.arange(5)],
}
TABLES = [
    (np.ones((1, 2)), np.eye(5)),
    (np.eye(2), np.array([[1.0, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]])),
    (np.eye(2)[:1], np.array([[1.0, 0, 0, 1, 0]])),  # cells of two nodes
]
ALIKE = [np.arange(2), np.array([0, 1, 1, 2, 3])]


def rows_of(tables):
    return np.vstack([reduce(np.kron, own) for own in tables])


def dense_error(plan, axes, queries):
    """From all that is measured, by the normal equations; price 1."""
    levels = [
        [np.ones((1, len(own[-1]))), *(np.equal.outer(np.unique(k), k) * 1.0 for k in own)]
        for own in axes.values()
    ]
    normal = 0.0
    for cuboid, what in plan.by_levels.items():
        if isinstance(getattr(what, "share", None), type(plan.budget.rho)):
            sums = reduce(np.kron, [own[k] for own, k in zip(levels, cuboid, strict=True)])
            normal = normal + sums.T @ sums / what.mechanism.noise_variance
    covariance = queries @ np.linalg.inv(normal) @ queries.T
    return np.sqrt(np.trace(covariance) / len(queries)) / 10


def test_errors_of_plans_are_those_of_the_normal_equations():
    tree, queries = tree_of(AXES), rows_of(TABLES)
    shares = hr.Shares(shares_by_axis(AXES, TABLES))
    cube = planned(tree, hr.Cube(), shares)
    even = planned(tree, hr.Cube(), hr.Uniform())
    names = ["sex.sex0", "age.age1", "sex.sex0 × age.age0", "sex.sex0 × age.age1"]
    named = planned_by(tree, dict.fromkeys(names, 1.0))
    found = [error_of(plan, AXES, TABLES) for plan in (cube, even, named)]
    assert found == pytest.approx([dense_error(p, AXES, queries) for p in (cube, even, named)])
    assert found[0] < found[1]  # shares that were sought for these queries


def test_bounds_are_nuclear_norms_of_even_weights_and_of_the_best():
    queries = rows_of(TABLES)

    def bound(logs):
        weights = softmax(logs)
        return np.linalg.norm(queries * np.sqrt(weights), "nuc") / np.sqrt(len(queries))

    found = least(TABLES, ALIKE, 40)
    assert found[0] == pytest.approx(bound(np.zeros(10)))
    best = minimize(lambda logs: -bound(logs), np.zeros(10), bounds=[(-9, 9)] * 10)
    assert found[-1] == pytest.approx(-best.fun, rel=1e-5)
    assert found[0] < 0.999 * found[-1]
    plan = planned(tree_of(AXES), hr.Cube(), hr.Shares(shares_by_axis(AXES, TABLES)))
    assert found[-1] < error_of(plan, AXES, TABLES)


@pytest.mark.parametrize("ways", [1, 2])
def test_the_least_of_marginals_is_their_nuclear_norm_and_less_than_cuboids_reach(ways):
    sizes = (2, 3, 4)
    tables, bound = marginals(sizes, ways)
    queries = rows_of(tables)
    assert len(tables) == 3
    assert bound == pytest.approx(np.linalg.norm(queries, "nuc") / np.sqrt(24 * len(queries)))
    assert least(tables, [np.zeros(n, int) for n in sizes], 3) == pytest.approx([bound] * 3)
    for beside in (False, True):
        assert bound < error_of_marginals(sizes, ways, tables, beside=beside) < 1.1 * bound


def test_prefixes_are_decoded_running_sums_and_a_tree():
    found, even = of_prefixes(64)
    assert [one.peer for one in found] == list(PREFIXES)
    prefixes = np.tri(64)
    assert even == pytest.approx(np.linalg.norm(prefixes, "nuc") / 64)
    root = np.cumprod(np.append(1.0, 1 - 0.5 / np.arange(1, 64)))
    strategy = np.array([[root[i - j] if i >= j else 0.0 for j in range(64)] for i in range(64)])
    decoded = prefixes @ np.linalg.inv(strategy)
    wanted = np.linalg.norm(decoded) * np.linalg.norm(root) / 8
    assert found[-1].ours == pytest.approx(wanted, rel=1e-3)
    assert even < found[-1].least < found[-1].ours < found[0].ours


def test_the_census_asks_4151_queries_and_does_not_tell_groups_apart():
    axes, tables, groups = census()
    assert sum(np.prod([len(own) for own in table]) for table in tables) == 4151
    assert [len(own) for own in groups] == [2, 2, 64, 103]
    for axis, (own, labels) in enumerate(zip(axes.values(), groups, strict=True)):
        assert all((np.diff(level) >= 0).all() for level in own)
        for group in np.unique(labels):
            cells = np.flatnonzero(labels == group)
            swapped = np.arange(len(labels))
            swapped[cells] = np.roll(cells, 1)
            for table in tables:  # the same queries in another order
                rows = table[axis]
                assert sorted(map(tuple, rows[:, swapped])) == sorted(map(tuple, rows))
