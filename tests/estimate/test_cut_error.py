import numpy as np
import pytest

from hedgerow.distribution.cut_error import CutError
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import EstimateError
from tests.estimate.dense import Dense, node_sums, of_cuts

UNEVEN = (np.array([0, 3]), np.array([0, 1, 3, 6]), np.array([0, 4, 5, 7, 8, 11, 13]))
TREES = {
    "uneven": UNEVEN,
    "binary": (np.array([0, 2]), np.array([0, 2, 4]), np.array([0, 2, 4, 6, 8])),
    "trimmed": (np.array([0, 3]), np.array([0, 3, 6, 7])),
    "histogram": (np.array([0, 9]),),
}


def ranges_of(covariance):
    """All ranges of cuts, and their variances."""
    first, last = np.triu_indices(len(covariance))
    spread = np.diag(covariance)
    return first, last, spread[first] + spread[last] - 2 * covariance[first, last]


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("measured", ["all", "some"])
def test_variances_of_cuts_and_ranges_are_those_of_the_dense_covariance(name, measured):
    family_start = TREES[name]
    variances = [2.0 + 3 * (i % 2) for i in range(len(family_start))]
    if measured == "some" and len(variances) > 1:
        variances[0] = np.inf
    found = CutError.of_tree(family_start, variances)
    dense = of_cuts(Dense.of(zip(node_sums(family_start), [0, *variances], strict=True)))
    assert found.cuts() == pytest.approx(np.diag(dense), abs=1e-9)
    first, last, expected = ranges_of(dense)
    assert found.between(first, last) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("total", [0.0, 0.5, 7.0, np.inf])
@pytest.mark.parametrize(
    "variances", [(3.0, 1.0, 2.0), (1.0, np.inf, 5.0)], ids=["all", "two levels"]
)
def test_variances_with_a_measured_total_are_those_of_the_dense_covariance(total, variances):
    start = Ranges.equal_width("x", 0, 1, 17).axis((2, 3, 3)).child_start
    error = CutError.of_tree(start, variances, total)
    dense = of_cuts(Dense.of(zip(node_sums(start), [total, *variances], strict=True)))
    first, last, expected = ranges_of(dense)
    assert error.between(first, last) == pytest.approx(expected, rel=1e-6, abs=1e-6)
    wanted = np.diag(dense) + 0.09 * dense[-1, -1] - 0.6 * dense[-1]
    assert error.excess(0.3) == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    assert error.fraction[-1] == pytest.approx(1)


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
