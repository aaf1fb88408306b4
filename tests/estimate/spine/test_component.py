"""Vectors over groups along a spine, against dense matrices."""

import tracemalloc

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.component import Component
from hedgerow.estimate.spine.forms import Forms
from hedgerow.estimate.spine.support import Part, Support
from tests.estimate.spine.spines import parts_below, random_support

TWO_TOWNS = AxisShape.of([np.array([0, 2])])


def embedding(support, level):
    """0/1 (rows of a level, rows of the deepest level): which sum to which."""
    depth = support.spine.depth
    row = np.arange(len(support.group[depth]))
    for k in range(depth, level, -1):
        row = support.parent[k][row]
    return (row == np.arange(len(support.group[level]))[:, None]).astype(float)


def dense_information(support, information):
    """The information (deepest rows, deepest rows) of all levels' measurements together."""
    total = 0.0
    for level, each in enumerate(information):
        sums = embedding(support, level)
        total = total + sums.T @ by_node(support, level, each) @ sums
    return total


def by_node(support, level, information):
    """The information (rows, rows) of a level: a block a node."""
    group = support.group[level]
    node = np.repeat(np.arange(support.spine.sizes[level]), np.diff(support.start[level]))
    return information[np.ix_(group, group)] * (node[:, None] == node)


def solve(information, h, known=None):
    """The best linear unbiased estimate and its covariance; known is (weights, values).

    Minimise (x - A⁻¹h)ᵀ A (x - A⁻¹h), by the system of Karush, Kuhn and Tucker where w x = t.
    """
    if known is None:
        covariance = np.linalg.inv(information)
        return covariance @ h, covariance
    weights, values = known
    n, m = len(information), len(weights)
    system = np.block([[information, weights.T], [weights, np.zeros((m, m))]])
    inverse = np.linalg.inv(system)
    return inverse[:n, :n] @ h + inverse[:n, n:] @ values, inverse[:n, :n]


def random_information(rng, support, *, diagonal=False):
    """Semidefinite matrices; some levels are unmeasured, some measure fewer sums than groups."""
    found = []
    for level in range(support.spine.depth + 1):
        deepest = level == support.spine.depth
        measured = int(rng.integers(0, support.groups + 2))
        sums = rng.normal(size=(measured, support.groups))
        here = sums.T @ sums * rng.uniform(0.1, 10)
        if diagonal:
            here = np.diag(rng.uniform(0, 2, support.groups) * (rng.random(support.groups) < 0.7))
        if deepest:
            here = here + np.diag(rng.uniform(0.1, 3, support.groups))
        found.append((here + here.T) / 2)
    return found


def random_problem(seed, *, diagonal=False, known=False):
    rng = np.random.default_rng(seed)
    support = random_support(rng, chance=None if seed % 5 == 0 else 0.5)
    information = random_information(rng, support, diagonal=diagonal)
    w, coordinates = (rng.uniform(0.5, 2), 1) if known else (None, 2)
    component = Component.of(support, np.full(support.groups, coordinates), information, w)
    h = {
        level: rng.normal(size=len(support.group[level]) * coordinates) * 10
        for level in range(support.spine.depth + 1)
    }
    for level, each in enumerate(information):  # h lies in the range of a node's information
        if not each.any():
            h.pop(level)
    total = rng.normal() * 30 if known else None
    return component, information, h, total


def dense_answer(component, information, h, total):
    """Of the deepest level the estimates, (rows, coordinates), and their covariance."""
    support = component.support
    whole = sum(embedding(support, level).T @ by_row(component, t) for level, t in h.items())
    known = None
    if total is not None:
        weights = component.total_weight * np.ones(whole.shape[0])
        known = weights[None, :], np.array([[total]])
    return solve(dense_information(support, information), whole, known)


def by_row(component, table):
    return table.reshape(-1, component.width[0])


def up_of(component, part, h, below=None):
    """What a part says; tables are kept."""
    below = None if below is None else below.copy()
    return component.up(part, {level: table.copy() for level, table in h.items()}, below)


def largest_gap(found, expected):
    return np.abs(found - expected).max(initial=0.0) / (1 + np.abs(expected).max(initial=0.0))


def variances(component, level, nodes, weights):
    """The variance of a sum over a node's groups for each node."""
    forms = Forms.of(
        component.support, np.arange(weights.size), [(component, weights.reshape(-1, 1))]
    )
    return forms.at(level, nodes, np.arange(len(nodes)))


def several_groups(made):
    """The first of some random problems with several groups."""
    return next(p for p in map(made, range(100)) if p[0].support.groups > 1)


KINDS = [
    pytest.param({}, id="coupled"),
    pytest.param({"known": True}, id="coupled, a known sum"),
    pytest.param({"diagonal": True}, id="diagonal"),
    pytest.param({"diagonal": True, "known": True}, id="diagonal, a known sum"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(30))
def test_estimates_and_covariances_are_the_dense_ones(seed, kind):
    component, information, h, total = random_problem(seed, **kind)
    support, whole = component.support, Part.top(component.support.spine.depth)
    expected, covariance = dense_answer(component, information, h, total)
    found = component.down(whole, up_of(component, whole, h), None, total)
    rng = np.random.default_rng(seed)
    for level in range(support.spine.depth + 1):
        sums = embedding(support, level)
        assert largest_gap(by_row(component, found[level]), sums @ expected) < 1e-9
        nodes = np.repeat(np.arange(support.spine.sizes[level]), 2)
        weights = rng.normal(size=(len(nodes), support.groups))
        start, group = support.start[level], support.group[level]
        forms = []
        for node, a in zip(nodes, weights, strict=True):
            rows = slice(start[node], start[node + 1])
            a_rows = sums[rows].T @ a[group[rows]]
            forms.append(a_rows @ covariance @ a_rows)
        assert largest_gap(variances(component, level, nodes, weights), np.array(forms)) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(15))
def test_jobs_that_are_cut_at_any_level_find_what_the_whole_finds(seed, kind):
    component, _, h, total = random_problem(seed, **kind)
    support, depth = component.support, component.support.spine.depth
    whole = Part.top(depth)
    expected_z = up_of(component, whole, h)
    expected = component.down(whole, expected_z, None, total)
    for cut in range(depth):
        jobs = parts_below(support, cut)
        tables = [cut_out(component, job, h) for job in jobs]
        ups = [up_of(component, job, table) for job, table in zip(jobs, tables, strict=True)]
        told = [component.root_sums(job, z) for job, z in zip(jobs, ups, strict=True)]
        top = Part.top(cut)
        z = up_of(component, top, cut_out(component, top, h), np.concatenate(told))
        for level in top.levels:
            assert np.array_equal(z[level], expected_z[level])
        x = component.down(top, z, None, total)
        below = [
            component.down(job, up, by_row(component, x[cut])[support.rows(cut, job.nodes)].ravel())
            for job, up in zip(jobs, ups, strict=True)
        ]
        for level in range(cut + 1, depth + 1):
            assert np.array_equal(np.concatenate([b[level] for b in below]), expected[level])


def cut_out(component, part, h):
    support = component.support
    return {
        level: by_row(component, h[level])[support.part_rows(part, level)].ravel()
        for level in part.levels
        if level in h
    }


def test_a_part_of_middle_levels_passes_on_what_it_is_told():
    component, _, h, _ = next(
        p for p in map(random_problem, range(200)) if p[0].support.spine.depth == 3
    )
    support = component.support
    whole = up_of(component, Part.top(3), h)
    below = component.root_sums(Part(2, range(support.spine.sizes[2]), 3), whole)
    middle = Part(1, range(support.spine.sizes[1]), 2)
    z = up_of(component, middle, cut_out(component, middle, h), below)
    assert np.array_equal(z[2], whole[2])


@pytest.mark.parametrize("seed", range(10))
def test_sums_over_some_nodes_have_the_dense_covariance(seed):
    component, information, h, total = random_problem(
        seed, diagonal=seed % 2 > 0, known=seed % 3 > 1
    )
    support, rng = component.support, np.random.default_rng(seed)
    _, covariance = dense_answer(component, information, h, total)
    for level in range(support.spine.depth + 1):
        nodes = np.flatnonzero(rng.random(support.spine.sizes[level]) < 0.6)
        rows = support.listed_rows(level, nodes)
        sums = np.zeros((support.groups, len(covariance)))
        np.add.at(sums, support.group[level][rows], embedding(support, level)[rows])
        expected = sums @ covariance @ sums.T
        found = component.over(level, nodes)
        assert largest_gap(found, expected if component.start else np.diag(expected)) < 1e-9


@pytest.mark.parametrize("diagonal", [True, False])
def test_a_sum_over_a_few_nodes_takes_no_memory_for_their_siblings(diagonal):
    spine, tree = AxisShape.of([np.array([0, 50_000])]), AxisShape.of([np.array([0, 3])])
    support = Support.of(spine, tree, np.ones(3, dtype=int), None)
    information = np.eye(3) if diagonal else np.eye(3) + 1
    component = Component.of(support, np.ones(3, dtype=int), [np.zeros((3, 3)), information])
    few = np.array([3, 40_000])
    assert np.allclose(component.over(1, few), 2 * component.over(1, few[:1]), rtol=1e-12)
    tracemalloc.start()
    component.over(1, few)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50_000


def test_a_sum_over_all_nodes_of_a_known_total_is_exact():
    """Where no child is missing nothing has to cancel out."""
    rng = np.random.default_rng(3)
    start = np.concatenate(([0], np.cumsum(rng.integers(1, 9, 500))))
    spine, tree = AxisShape.of([np.array([0, 500]), start]), AxisShape.of([])
    support = Support.of(spine, tree, np.ones(1, dtype=int), None)
    information = [np.zeros((1, 1)), np.eye(1) * 3, np.eye(1) / 7]
    component = Component.of(support, np.ones(1, dtype=int), information, 1.0)
    every = np.arange(start[-1])
    assert component.over(2, every[1:]).item() > 1
    assert 0 <= component.over(2, every).item() < 1e-25


def test_diagonal_information_runs_as_numbers_and_any_other_as_matrices():
    assert several_groups(lambda seed: random_problem(seed, diagonal=True))[0].dimensions == 1
    assert several_groups(random_problem)[0].dimensions == 2


def test_information_that_is_none_is_refused():
    support = several_groups(random_problem)[0].support
    support = Support.of(TWO_TOWNS, support.tree, support.widths, None)
    groups = support.groups
    good, lopsided = np.eye(groups), np.eye(groups)
    lopsided[0, 1] = 0.5
    for wrong, words in [
        ([good], "each of 2 levels"),
        ([-good, good], "level 0 must not be negative"),
        ([lopsided, good], "level 0 must be a symmetric"),
        ([good * np.nan, good], "level 0 must be a symmetric"),
        ([good, np.ones((groups, groups))], "measured at the deepest level"),
    ]:
        with pytest.raises(EstimateError, match=words):
            Component.of(support, np.ones(groups, dtype=int), wrong)
