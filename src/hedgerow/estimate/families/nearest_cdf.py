"""The estimator of the nearest cumulative distribution: isotonic regression, family by family."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.estimate.families.isotonic import isotonic_squared, pool
from hedgerow.estimate.families.real_projection import project_real
from hedgerow.kernels import kernel

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Isotonic:
    """Minimise ``Σ_j w_j (Y_j - X_j)²`` over integers ``0 <= Y_1 <= … <= Y_n = c``, by family.

    X_j are the noisy counts of a family summed up to its j-th child, Y_j the released counts so
    summed, c the family's total; consistency of Rameshwar, Section VI
    (`hedgerow.estimate.families.isotonic` says why the rounded real fit is optimal). The weight w_j
    is the inverse of the variance of X_j given the total: with V_j the variance of X_j and V that
    of the whole sum, ``V_j (V - V_j)/V``. The order of the children matters, so it is for numeric
    axes; elsewhere it is as good as any.

    For running sums (`hedgerow.estimate.running_sums`) it is the only estimator; their cumulative
    counts are decoded first, and `nearest` takes them with their own variances.
    """

    name: ClassVar[str] = "isotonic"
    combine: ClassVar[bool | None] = None

    def to_dict(self) -> dict[str, Any]:
        """Method and parameters for the manifest."""
        return {"method": self.name}

    def project(
        self,
        noisy: NDArray[np.int64] | NDArray[np.float64],
        family_start: NDArray[np.int64],
        totals: NDArray[np.int64],
        variance: float | NDArray[np.float64] | None = None,
    ) -> NDArray[np.int64]:
        """The consistent counts, int64 (cells), in records.

        Args:
            noisy: int64 or float64 (cells), records, within ±2^40.
            family_start: int64 (families + 1): where each family's cells begin, and the end.
            totals: int64 (families), records, 0 to 2^40: what each family must sum to.
            variance: records²; only ratios matter.

        Raises:
            EstimateError: for arrays that break these rules.
        """
        return project_real(_project, noisy, family_start, totals, variance)

    @staticmethod
    def nearest(cumulative: Float64, total: int, variances: Float64) -> Int64:
        """The counts of single bins whose sums are nearest: int64 (K), records.

        Args:
            cumulative: float64 (K), records: estimates of the counts up to each bin; the last is
                not used.
            total: what all sum to, records.
            variances: float64 (K), records²; their inverses are the weights.
        """
        largest = max(float(variances.max(initial=0.0)), np.finfo(np.float64).tiny)
        weights = 1 / np.maximum(variances / largest, 1e-12)
        return np.diff(isotonic_squared(cumulative, total, weights), prepend=0)


@kernel
def _project(
    noisy: Float64,
    variance: Float64,
    family_start: Int64,
    totals: Int64,
    families: tuple[int, int],
    y: Int64,
) -> None:
    one = len(variance) == 1
    for family in range(families[0], families[1]):
        begin, end = family_start[family], family_start[family + 1]
        if begin == end:
            continue
        x, weights = np.empty(end - begin - 1), np.empty(end - begin - 1)
        whole = 0.0
        for i in range(begin, end):
            whole += variance[0] if one else variance[i]
        upto, spread = 0.0, 0.0
        for i in range(begin, end - 1):
            upto += noisy[i]
            spread += variance[0] if one else variance[i]
            x[i - begin] = upto
            weights[i - begin] = whole / spread / max(whole - spread, whole * 1e-12)
        pool(x, weights, totals[family], y[begin : end - 1])
        before = 0
        for i in range(begin, end - 1):
            y[i], before = y[i] - before, y[i]
        y[end - 1] = totals[family] - before
