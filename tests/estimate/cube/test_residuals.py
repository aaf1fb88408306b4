"""Residuals of attributes of two levels against dense matrices."""

from functools import reduce
from math import inf, prod

import numpy as np
import pytest

from hedgerow.estimate.cube.residuals import Residuals, part, subsets, turn, within

SIZES = [(), (2,), (5,), (2, 3), (3, 2, 4), (2, 2, 7)]


def residuals_of(sizes):
    """Those of attributes that are all axes but the first."""
    return Residuals(tuple(range(1, len(sizes) + 1)), tuple(sizes))


def turned(sizes, table):
    """The coordinates of rows of cells, (rows, W)."""
    rows = np.array(table, dtype=float).reshape(len(table), *sizes)
    return turn(rows).reshape(len(table), prod(sizes))


def sums_matrix(sizes, marginal):
    """S_B, dense: (cells of the marginal, W)."""
    each = [np.eye(n) if here else np.ones((1, n)) for n, here in zip(sizes, marginal, strict=True)]
    return reduce(np.kron, each, np.eye(1))


each_sizes = pytest.mark.parametrize("sizes", SIZES)


@each_sizes
def test_turning_is_orthonormal_and_its_own_inverse(sizes):
    eye = np.eye(prod(sizes))
    matrix = turned(sizes, eye)
    np.testing.assert_allclose(matrix @ matrix.T, eye, atol=1e-13)
    np.testing.assert_allclose(turned(sizes, matrix), eye, atol=1e-13)


def test_rows_are_turned_one_by_one_however_many_there_are():
    table = np.random.default_rng(3).normal(size=(20_000, 3, 2, 4))
    few = [turn(table[i : i + 1].copy())[0] for i in range(0, 20_000, 997)]
    np.testing.assert_array_equal(turn(table)[::997], few)


@each_sizes
def test_sums_act_on_each_residual_as_one_number(sizes):
    here, eye = residuals_of(sizes), np.eye(prod(sizes))
    matrix = turned(sizes, eye)
    for marginal in here.every:
        sums = sums_matrix(sizes, marginal)
        acts = matrix.T @ sums.T @ sums @ matrix
        inside = np.zeros((1, *sizes))
        for residual in subsets(marginal):
            part(inside, residual)[...] += 1
        spread = here.spread((0, *marginal))
        np.testing.assert_allclose(acts, np.diag(inside.ravel() * spread), atol=1e-11)


@each_sizes
def test_a_marginals_own_coordinates_are_the_details_times_a_root(sizes):
    here = residuals_of(sizes)
    detail = np.random.default_rng(5).normal(size=prod(sizes))
    whole = turned(sizes, detail[None]).reshape(1, *sizes)
    for marginal in here.every:
        own = turn((sums_matrix(sizes, marginal) @ detail).reshape(1, *here.shape(marginal)))
        expected = within(whole, marginal) * np.sqrt(here.spread((3, *marginal)))
        np.testing.assert_allclose(own, expected, atol=1e-12)


@each_sizes
def test_coordinates_fall_apart_and_are_joined_again(sizes):
    here = residuals_of(sizes)
    table = np.arange(3.0 * prod(sizes)).reshape(3, *sizes)
    each = here.apart(table)
    assert [len(own) for own in each] == [3 * prod(here.coordinates(r)) for r in here.every]
    np.testing.assert_array_equal(here.joined(each), table)


def test_cuboids_tell_the_residuals_of_what_they_do_not_sum_up():
    here = Residuals((2, 0), (5, 3))
    noise = {(1, 4, 2): 2.0, (0, 4, 1): 3.0, (0, 1, 0): 0.5, (1, 1, 0): 0.0}
    assert [here.marginal(cuboid) for cuboid in noise] == [(1, 1), (1, 0), (0, 0), (0, 1)]
    every = dict(zip(noise, (1 / 2, 3 / 3, 15 / 0.5, inf), strict=True))
    told = {r: here.precisions(r, noise) for r in here.every}
    assert told[0, 0] == every
    assert told[0, 1] == {c: every[c] for c in [(1, 4, 2), (1, 1, 0)]}
    assert told[1, 0] == {c: every[c] for c in [(1, 4, 2), (0, 4, 1)]}
    assert told[1, 1] == {(1, 4, 2): every[1, 4, 2]}


@each_sizes
def test_runs_are_those_of_the_residuals(sizes):
    here, number = residuals_of(sizes), np.zeros((1, *sizes))
    for which, residual in enumerate(here.every):
        part(number, residual)[...] = which
    start, residual = here.runs
    np.testing.assert_array_equal(np.repeat(residual, np.diff(start)), number.ravel())


@each_sizes
def test_places_are_those_of_the_sums(sizes):
    here, begin = residuals_of(sizes), 0
    for places, marginal in zip(here.sum_place, here.every, strict=True):
        sums = sums_matrix(sizes, marginal)
        np.testing.assert_array_equal(places, begin + sums.argmax(axis=0))
        begin += len(sums)
    assert begin == np.prod(np.array(sizes) + 1)
