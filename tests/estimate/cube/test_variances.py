"""Variances under noise whose true variances are a product, or none; and bounds of the largest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.estimate.cube import variances as module
from hedgerow.estimate.cube.variances import CubeVariances
from tests.estimate.workload.test_solvers import product
from tests.estimate.workload.workloads import KINDS

SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=40)


def drawn(seed, *, other):
    return product(np.random.default_rng(seed), KINDS[seed % 4], 0, other=other)


@given(seed=SEEDS)
@settings(max_examples=160)
def test_the_sum_over_cuboids_says_what_the_closed_form_says(seed):
    """One true variance that is off by more than 1e-9 is enough to leave the closed form."""
    case = drawn(seed, other=False)
    squares, public, nominal = case.solver.squares, case.observed.public, case.weights
    exact, same = CubeVariances(squares, public), CubeVariances(squares, public, nominal)
    assert same.true is None
    off = max(nominal)
    other = CubeVariances(squares, public, nominal | {off: nominal[off] * (1 + 2e-9)})
    assert other.true is not None
    for cuboid in case.observed.shape.cuboids():
        size = 1e-8 * (1 + exact.of_cells(cuboid).max()) + 1e-9 * case.largest
        np.testing.assert_allclose(other.of_cells(cuboid), exact.of_cells(cuboid), 1e-7, size)


@pytest.mark.parametrize("other", [False, True])
@given(seed=SEEDS)
@few
def test_a_bound_of_the_largest_variance_is_no_less_than_it(other, seed):
    case = drawn(seed, other=other)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_PAIRS", 0)
        for cuboid in case.every:
            found = case.solver.variances_of(cuboid)
            most = found.of_cells(cuboid).max()
            assert found.largest(cuboid) >= most * (1 - 1e-9) - 1e-9 * case.largest
