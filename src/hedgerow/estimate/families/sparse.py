"""The estimator of penalised least squares: few counts that are not zero, and close ones."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.estimate.estimator import check_combine
from hedgerow.estimate.families.real_projection import project_real
from hedgerow.estimate.families.support import project_penalised


@dataclass(frozen=True, slots=True)
class Sparse:
    """Minimise ``Σ (y_i - x_i)² / v_i + penalty · #{y > 0}`` over integers ``y >= 0``, ``Σ y = c``.

    x (cells) are a family's noisy counts or combined estimates, v their variances (records²), c is
    the family's total, y its estimate, both in records. For equal variances the objective is the
    squared distance plus penalty · v for every count that is not 0: a count stays where giving it
    up costs more than ``penalty`` squared standard deviations. Exact for equal variances, an
    approximation for unequal ones: see `hedgerow.estimate.families.support`.

    A penalty of 0 makes it `Euclidean`, a very large one gives each family's total to one cell.
    """

    name: ClassVar[str] = "sparse"
    penalty: float = 0.5
    combine: bool | None = None

    def __post_init__(self) -> None:
        number = isinstance(self.penalty, int | float) and not isinstance(self.penalty, bool)
        if not number or not 0 <= self.penalty < math.inf:
            raise EstimateError(
                f"a sparse estimator's penalty must be a number from 0 on, got {self.penalty!r}; "
                "0.5 is usual"
            )
        check_combine(self.combine)

    def to_dict(self) -> dict[str, Any]:
        """Method and parameters for the manifest."""
        return {"method": self.name, "penalty": self.penalty, "combine": self.combine}

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
            family_start: int64 (families + 1): where each family's cells begin, and the end; a
                family has at most 2^29 cells.
            totals: int64 (families), records, 0 to 2^40: what each family must sum to.
            variance: records², of every cell (a float) or of each, float64 (cells).

        Raises:
            EstimateError: for arrays that break these rules, or no variance.
        """
        if variance is None:
            raise EstimateError(
                "a sparse estimator weighs counts against their variance, but got None; "
                "give the variance of the noisy counts, in records²"
            )
        penalty = float(self.penalty)

        def solve(
            x: NDArray[np.float64],
            v: NDArray[np.float64],
            start: NDArray[np.int64],
            totals: NDArray[np.int64],
            families: tuple[int, int],
            y: NDArray[np.int64],
        ) -> None:
            project_penalised(x, v, (start, totals), penalty, families, y)

        return project_real(solve, noisy, family_start, totals, variance, penalty)
