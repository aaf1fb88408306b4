"""Vectors over groups along a spine, against dense matrices."""

from functools import partial

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.block_squares import BlockSquares
from hedgerow.estimate.spine.coupled import Coupled
from hedgerow.estimate.spine.forms import Forms
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Part, Support
from tests.estimate.spine.dense_spines import dense_information, embedding, solve
from tests.estimate.spine.spines import parts_below, random_support

COORDINATES = 2
TWO_TOWNS = AxisShape.of([np.array([0, 2])])


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
    w = rng.uniform(0.5, 2, support.groups) if known else None
    coupled = Coupled.of(support, information, known_total=w)
    h = {
        level: rng.normal(size=(len(support.group[level]), COORDINATES)) * 10
        for level in range(support.spine.depth + 1)
    }
    for level, each in enumerate(information):  # h lies in the range of a node's information
        if not each.any():
            h.pop(level)
    total = rng.normal(size=COORDINATES) * 30 if known else None
    return coupled, information, h, total


def dense_answer(coupled, information, h, total):
    support = coupled.support
    whole = sum(embedding(support, level).T @ each for level, each in h.items())
    known = None
    if total is not None:
        weights = coupled.known_total[support.group[0]] @ embedding(support, 0)
        known = weights[None, :], total[None, :]
    return solve(dense_information(support, information), whole, known)


def largest_gap(found, expected):
    return np.abs(found - expected).max(initial=0.0) / (1 + np.abs(expected).max(initial=0.0))


def variances(coupled, level, nodes, weights):
    """The variance of a sum over a node's groups for each node."""
    forms = Forms.of(
        coupled.support, np.arange(weights.size), [(coupled.squares, weights.reshape(-1, 1))]
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
    coupled, information, h, total = random_problem(seed, **kind)
    support, whole = coupled.support, Part.top(coupled.support.spine.depth)
    expected, covariance = dense_answer(coupled, information, h, total)
    found = coupled.down(whole, coupled.up(whole, h), total)
    rng = np.random.default_rng(seed)
    for level in range(support.spine.depth + 1):
        sums = embedding(support, level)
        assert largest_gap(found[level], sums @ expected) < 1e-9
        nodes = np.repeat(np.arange(support.spine.sizes[level]), 2)
        weights = rng.normal(size=(len(nodes), support.groups))
        start, group = support.start[level], support.group[level]
        forms = []
        for node, a in zip(nodes, weights, strict=True):
            rows = slice(start[node], start[node + 1])
            a_rows = sums[rows].T @ a[group[rows]]
            forms.append(a_rows @ covariance @ a_rows)
        assert largest_gap(variances(coupled, level, nodes, weights), np.array(forms)) < 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(15))
def test_jobs_that_are_cut_at_any_level_find_what_the_whole_finds(seed, kind):
    coupled, _, h, total = random_problem(seed, **kind)
    support, depth = coupled.support, coupled.support.spine.depth
    whole = Part.top(depth)
    expected_z = coupled.up(whole, h)
    expected = coupled.down(whole, expected_z, total)
    for cut in range(depth):
        jobs = parts_below(support, cut)
        tables = [cut_out(coupled, job, h) for job in jobs]
        ups = [coupled.up(job, table) for job, table in zip(jobs, tables, strict=True)]
        told = [coupled.told(job, z) for job, z in zip(jobs, ups, strict=True)]
        top = Part.top(cut)
        z = coupled.up(top, cut_out(coupled, top, h), np.concatenate(told))
        for level in top.levels:
            assert np.array_equal(z[level], expected_z[level])
        x = coupled.down(top, z, total)
        below = [
            coupled.down(job, up, x[cut][support.rows(cut, job.nodes)])
            for job, up in zip(jobs, ups, strict=True)
        ]
        for level in range(cut + 1, depth + 1):
            assert np.array_equal(np.concatenate([b[level] for b in below]), expected[level])


def cut_out(coupled, part, h):
    support = coupled.support
    return {
        level: h[level][support.rows(level, support.nodes(part, level))]
        for level in part.levels
        if level in h
    }


def test_a_part_of_middle_levels_passes_on_what_it_is_told():
    coupled, _, h, _ = next(
        p for p in map(random_problem, range(200)) if p[0].support.spine.depth == 3
    )
    support = coupled.support
    whole = coupled.up(Part.top(3), h)
    below = coupled.told(Part(2, range(support.spine.sizes[2]), 3), whole)
    middle = Part(1, range(support.spine.sizes[1]), 2)
    z = coupled.up(middle, cut_out(coupled, middle, h), below)
    assert np.array_equal(z[2], whole[2])
    with pytest.raises(EstimateError, match="needs what is below"):
        coupled.up(middle, cut_out(coupled, middle, h))
    with pytest.raises(EstimateError, match="needs what is below"):
        coupled.up(middle, cut_out(coupled, middle, h), below[1:])


def test_diagonal_information_runs_as_numbers_and_agrees_with_matrices():
    coupled, information, h, _ = several_groups(partial(random_problem, diagonal=True))
    assert isinstance(coupled.squares, RowSquares)
    matrices = Coupled(coupled.support, BlockSquares.of(coupled.support, information, None), None)
    whole = Part.top(coupled.support.spine.depth)
    both = [each.down(whole, each.up(whole, h), None) for each in (coupled, matrices)]
    for level in whole.levels:
        assert largest_gap(both[0][level], both[1][level]) < 1e-12
    assert isinstance(several_groups(random_problem)[0].squares, BlockSquares)


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
            Coupled.of(support, wrong)
    with pytest.raises(EstimateError, match="at least one group"):
        Coupled.of(support, [good, good], known_total=np.zeros(groups))


def test_a_row_needs_information_from_0_on_and_some_at_the_deepest_level():
    support = random_support(np.random.default_rng(3), depth=1, chance=None)
    ones = np.ones(support.groups)
    with pytest.raises(EstimateError, match="from 0 on"):
        RowSquares.of(support, [-ones, ones])
    with pytest.raises(EstimateError, match="from 0 on"):
        RowSquares.of(support, [ones * np.inf, ones])
    with pytest.raises(EstimateError, match="deepest level"):
        RowSquares.of(support, [ones, 0 * ones])


def test_a_known_sum_must_be_given_and_no_other():
    known, _, h, total = random_problem(1, known=True)
    whole = Part.top(known.support.spine.depth)
    with pytest.raises(EstimateError, match="where, and only where"):
        known.down(whole, known.up(whole, h), None)
    other, _, h, _ = random_problem(1)
    with pytest.raises(EstimateError, match="where, and only where"):
        other.down(whole, other.up(whole, h), total)


def test_a_part_below_the_top_needs_its_roots():
    coupled, _, h, _ = next(p for p in map(random_problem, range(99)) if p[3] is None)
    job = next(iter(parts_below(coupled.support, 0)))
    with pytest.raises(EstimateError, match="the estimates of its roots"):
        coupled.down(job, coupled.up(job, h), None)
