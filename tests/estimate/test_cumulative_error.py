"""Errors of cumulative counts with a measured total: against dense generalised least squares."""

from math import inf

import numpy as np
import pytest

from hedgerow.distribution.cut_error import CutError
from hedgerow.distribution.ranges import Ranges


def dense_covariance(axis, variances, total):
    """Of all leaves, by the information matrix; a public total holds their sum."""
    leaves = axis.size(axis.depth)
    rows, weights = [], []
    for level, variance in zip(range(axis.depth + 1), [total, *variances], strict=True):
        inside = np.equal.outer(np.arange(axis.size(level)), axis.ancestors(level))
        rows.append(inside.astype(float))
        weights += [1e7 if variance == 0 else 1 / variance] * axis.size(level)
    matrix = np.vstack(rows)
    assert matrix.shape[1] == leaves
    return np.linalg.inv(matrix.T @ (matrix * np.array(weights)[:, None]))


@pytest.mark.parametrize("total", [0.0, 0.5, 7.0, inf])
@pytest.mark.parametrize("variances", [(3.0, 1.0, 2.0), (1.0, inf, 5.0)], ids=["all", "two levels"])
def test_variances_are_those_of_generalised_least_squares(total, variances):
    axis = Ranges.equal_width("x", 0, 1, 17).axis((2, 3, 3))
    error = CutError.of_tree(axis.child_start, variances, total)
    covariance = dense_covariance(axis, variances, total)
    sums = np.tril(np.ones((18, 17)), -1)
    first, last = np.triu_indices(18)
    ranges = sums[last] - sums[first]
    wanted = np.einsum("ij,jk,ik->i", ranges, covariance, ranges)
    assert error.between(first, last) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    excess = sums - 0.3 * sums[-1]
    wanted = np.einsum("ij,jk,ik->i", excess, covariance, excess)
    assert error.excess(0.3) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert error.fraction[-1] == pytest.approx(1)
