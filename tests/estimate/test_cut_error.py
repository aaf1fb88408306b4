from itertools import pairwise

import numpy as np
import pytest

from hedgerow.distribution.cut_error import CutError
from hedgerow.errors import EstimateError

UNEVEN = (np.array([0, 3]), np.array([0, 1, 3, 6]), np.array([0, 4, 5, 7, 8, 11, 13]))
TREES = {
    "uneven": UNEVEN,
    "binary": (np.array([0, 2]), np.array([0, 2, 4]), np.array([0, 2, 4, 6, 8])),
    "trimmed": (np.array([0, 3]), np.array([0, 3, 6, 7])),
    "histogram": (np.array([0, 9]),),
}


def covariance_of_cuts(family_start, variances):
    """Dense generalised least squares with a public total: covariance of cuts 0 … K."""
    leaves = family_start[-1][-1]
    starts, rows, precisions = np.arange(leaves + 1), [], []
    for level in range(len(family_start) - 1, -1, -1):
        if np.isfinite(variances[level]):
            for first, last in pairwise(starts):
                row = np.zeros(leaves)
                row[first:last] = 1
                rows.append(row)
                precisions.append(1 / variances[level])
        starts = starts[family_start[level]]
    tree = np.array(rows)
    free = np.vstack([np.eye(leaves - 1), -np.ones(leaves - 1)])
    information = free.T @ (tree.T * np.array(precisions)) @ tree @ free
    covariance = free @ np.linalg.inv(information) @ free.T
    cuts = np.tril(np.ones((leaves + 1, leaves)), -1)
    return cuts @ covariance @ cuts.T


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("measured", ["all", "some"])
def test_variances_of_cuts_and_ranges_are_those_of_the_dense_covariance(name, measured):
    family_start = TREES[name]
    variances = [2.0 + 3 * (i % 2) for i in range(len(family_start))]
    if measured == "some" and len(variances) > 1:
        variances[0] = np.inf
    found = CutError.of_tree(family_start, variances)
    dense = covariance_of_cuts(family_start, variances)
    assert found.cuts() == pytest.approx(np.diag(dense), abs=1e-9)
    first, last = (a.ravel() for a in np.indices(dense.shape))
    first, last = first[first <= last], last[first <= last]
    spread = np.diag(dense)
    expected = spread[first] + spread[last] - 2 * dense[first, last]
    assert found.between(first, last) == pytest.approx(expected, abs=1e-9)


def test_a_hundred_thousand_bins_are_ordinary():
    starts = [np.arange(0, 10 ** (i + 1) + 1, 10) for i in range(5)]
    variance = CutError.of_tree(starts, [1.0] * 5).cuts()
    assert len(variance) == 10**5 + 1
    assert (variance[0], variance[-1]) == pytest.approx((0, 0), abs=1e-9)
    assert variance == pytest.approx(variance[::-1], abs=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: CutError.of_tree(UNEVEN, [1.0, 1.0]), "3 levels need as many noise variances"),
        (lambda: CutError.of_tree(UNEVEN, [1.0, 0.0, 1.0]), "all above 0"),
        (lambda: CutError.of_tree(UNEVEN, [1.0, 1.0, np.inf]), "the last one finite"),
    ],
)
def test_what_is_no_tree_is_refused(call, words):
    with pytest.raises(EstimateError) as caught:
        call()
    assert words in str(caught.value)
