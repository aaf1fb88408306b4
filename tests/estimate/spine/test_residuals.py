"""Residuals of attributes of two levels against dense matrices."""

from functools import reduce

import numpy as np
import pytest

from hedgerow.estimate.spine.marginals.residuals import Residuals, turn

SIZES = [(), (2,), (5,), (2, 3), (3, 2, 4), (2, 2, 7)]


def sums_matrix(residuals, marginal):
    """S_B, dense: (cells of the marginal, W)."""
    each = [
        np.eye(n) if a in residuals.members(marginal) else np.ones((1, n))
        for a, n in enumerate(residuals.sizes)
    ]
    return reduce(np.kron, each, np.eye(1))


@pytest.mark.parametrize("sizes", SIZES)
def test_turning_is_orthonormal_and_its_own_inverse(sizes):
    here = Residuals(sizes)
    matrix = here.turned(np.eye(here.width))
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(here.width), atol=1e-13)
    np.testing.assert_allclose(here.turned(matrix), np.eye(here.width), atol=1e-13)


@pytest.mark.parametrize("sizes", SIZES)
def test_sums_act_on_each_residual_as_one_number(sizes):
    here = Residuals(sizes)
    turned = here.turned(np.eye(here.width))
    for marginal in range(here.count):
        sums = sums_matrix(here, marginal)
        acts = turned.T @ sums.T @ sums @ turned
        inside = (here.residual & ~marginal) == 0
        np.testing.assert_allclose(acts, np.diag(inside * here.spread(marginal)), atol=1e-11)


@pytest.mark.parametrize("sizes", SIZES)
def test_a_marginals_own_coordinates_are_the_details_times_a_root(sizes):
    here = Residuals(sizes)
    detail = np.random.default_rng(5).normal(size=here.width)
    whole = here.turned(detail[None])[0]
    for marginal in range(here.count):
        own = (sums_matrix(here, marginal) @ detail)[None]
        turn(own, here.extents_of(marginal))
        expected = whole[here.within(marginal)] * np.sqrt(here.spread(marginal))
        np.testing.assert_allclose(own[0], expected, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES)
def test_runs_are_those_of_the_residuals(sizes):
    here = Residuals(sizes)
    start, residual = here.runs
    np.testing.assert_array_equal(np.repeat(residual, np.diff(start)), here.residual)


@pytest.mark.parametrize("sizes", SIZES)
def test_places_are_those_of_the_sums(sizes):
    here = Residuals(sizes)
    begin = 0
    for marginal in range(here.count):
        sums = sums_matrix(here, marginal)
        np.testing.assert_array_equal(here.sum_place[marginal], begin + sums.argmax(axis=0))
        levels = [int(a in here.members(marginal)) for a in range(len(sizes))]
        assert here.marginal(range(len(sizes)), levels) == marginal
        begin += len(sums)
    assert begin == np.prod(np.array(sizes) + 1)
