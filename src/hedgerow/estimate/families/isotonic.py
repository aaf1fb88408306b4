"""Integer counts that make a cumulative distribution: monotone, within 0 and the total."""

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import Families
from hedgerow.estimate.families.real_projection import FamilyEstimator
from hedgerow.kernels import kernel, run_ends
from hedgerow.limits import LARGEST_DOUBLE


@kernel
def pool(x: Float64, weights: Float64, total: int, y: Int64) -> None:
    """Write the weighted real fit of x, rounded half up and clipped to 0 … total, to y."""
    # A stack of blocks with rising means: pooling adjacent violators (Barlow et al. 1972).
    means = np.empty(len(x))
    masses = np.empty(len(x))
    sizes = np.empty(len(x), dtype=np.int64)
    blocks = 0
    for i in range(len(x)):
        means[blocks] = x[i]
        masses[blocks] = weights[i]
        sizes[blocks] = 1
        while blocks > 0 and means[blocks - 1] >= means[blocks]:
            blocks -= 1
            mass = masses[blocks] + masses[blocks + 1]
            # A step towards the other mean: no large sums, so nothing cancels.
            means[blocks] += (means[blocks + 1] - means[blocks]) * (masses[blocks + 1] / mass)
            masses[blocks] = mass
            sizes[blocks] += sizes[blocks + 1]
        blocks += 1
    cell = 0
    for block in range(blocks):
        # Clipped before the cast: doubles beyond int64 have no defined integer.
        mean = min(max(means[block], 0.0), float(total))
        floor = np.floor(mean)
        y[cell : cell + sizes[block]] = int(floor) + int(mean - floor >= 0.5)
        cell += sizes[block]


@kernel
def _project(
    noisy: Float64,
    variance: Float64,
    family_start: Int64,
    totals: Int64,
    families: Families,
    y: Int64,
) -> None:
    # x: cumulative noisy counts before each cut; weights: 1/Var given the total, up to a factor.
    one = len(variance) == 1
    for family in range(families[0], families[1]):
        begin, end = run_ends(family_start, family)
        if begin == end:
            continue
        x = np.empty(end - begin - 1)
        weights = np.empty(end - begin - 1)
        whole = 0.0
        for i in range(begin, end):
            whole += variance[0] if one else variance[i]
        upto, before_cut = 0.0, 0.0
        # X_j, and its weight: the inverse of V_j (V - V_j) / V.
        for i in range(begin, end - 1):
            upto += noisy[i]
            before_cut += variance[0] if one else variance[i]
            x[i - begin] = upto
            weights[i - begin] = whole / before_cut / max(whole - before_cut, whole * 1e-12)
        pool(x, weights, totals[family], y[begin : end - 1])
        # From cumulative counts to those of children.
        before = 0
        for i in range(begin, end - 1):
            y[i], before = y[i] - before, y[i]
        y[end - 1] = totals[family] - before


@frozen
class Isotonic(FamilyEstimator):
    """Minimise ``Σ_j w_j (Y_j - X_j)²`` over integers ``0 <= Y_1 <= … <= Y_n = c``, by family.

    X_j are the noisy counts of a family summed up to its j-th child, Y_j the released counts so
    summed, c the family's total; consistency of Rameshwar, Section VI
    (`hedgerow.estimate.families.isotonic` says why the rounded real fit is optimal). The weight w_j
    is the inverse of the variance of X_j given the total: with V_j the variance of X_j and V that
    of the whole sum, ``V_j (V - V_j)/V``. The order of the children matters, so it is for numeric
    axes; elsewhere it is as good as any.

    For running sums (`hedgerow.estimate.running_sums`) it is the only estimator; their cumulative
    counts are decoded first, and `nearest` takes them with their own variances.

    Example:
        >>> import numpy as np
        >>> noisy, families, totals = np.array([7, -2, 4, 1]), np.array([0, 2, 4]), np.array([6, 5])
        >>> hr.Isotonic().project(noisy, families, totals)
        array([6, 0, 4, 1])
    """

    name = "isotonic"
    kernels = _project, None

    @staticmethod
    def nearest(cumulative: Float64, totals: Int64, variances: Float64) -> Int64:
        """Return the steps of the nearest cumulative counts of each row: int64 (rows, K), records.

        They minimise ``Σ_j (Y_j - X_j)² / v_j`` over integers ``0 <= Y_1 <= … <= Y_K = c``.

        Args:
            cumulative: float64 (rows, K), records: estimates of the counts up to each bin; the last
                is not used.
            totals: int64 (rows): what each row sums to, records.
            variances: float64 (K), records²: v of every row; the last is not used.

        Raises:
            EstimateError: estimates are not finite, or totals are beyond doubles.
        """
        possible = totals.min(initial=0) >= 0 and totals.max(initial=0) <= LARGEST_DOUBLE
        if not possible or not np.isfinite(cumulative).all():
            raise EstimateError("cumulative counts must be finite, and totals from 0 to 2^53")
        largest = max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
        weights = 1 / np.maximum(variances / largest, 1e-12)
        result = np.repeat(totals[:, None], cumulative.shape[1], axis=1)
        _pool_rows(cumulative, (weights / weights.max())[:-1], result)
        return np.diff(result, prepend=0, axis=1)


@kernel
def _pool_rows(x: Float64, weights: Float64, y: Int64) -> None:
    """Fit all columns of each row of y but the last, which holds its total."""
    for row in range(len(x)):
        pool(x[row, :-1], weights, y[row, -1], y[row, :-1])
