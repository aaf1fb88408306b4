"""Variances of the counts between cuts where the total may be measured too.

With a public total T the count y_b before cut b has the variance of `CutError`. Where T is an
estimate of variance V, least squares hands it down in proportion: ``y_b = r_b + f_b T`` with the
residual r_b of `CutError`, uncorrelated with T, and f_b the product of u_c/S along the way down
(see `hedgerow.distribution.cut_error`), summed over the leaves before b. So any ``Σ a_b y_b`` has
the variance of ``Σ a_b r_b`` plus ``(Σ a_b f_b)² V``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hedgerow.distribution.cut_error import CutError
from hedgerow.estimate.tree.least_squares import spread

Float64 = NDArray[np.float64]
Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False, slots=True)
class CumulativeError:
    """What the errors of all cuts of one tree need; made by `of_tree`.

    Attributes:
        given_total: the variances that hold if the total were known.
        fraction: float64 (K + 1): f, the part of an error of the total that is before each cut.
        total_variance: V, records²; 0 where the total is public.
    """

    given_total: CutError
    fraction: Float64
    total_variance: float

    @classmethod
    def of_tree(
        cls, family_start: Sequence[Int64], variances: Sequence[float], total: float
    ) -> Self:
        """From the families of an axis and the noise variances.

        Args:
            family_start: for each level 1 … m int64 (families + 1), as in `CutError.of_tree`.
            variances: records², one a level.
            total: the noise variance of the total, records²: 0 where it is public, infinite where
                it is not measured.

        Raises:
            EstimateError: see `CutError.of_tree`.
        """
        error = CutError.of_tree(family_start, variances)
        part = np.ones(1)
        for start, before in zip(error.family_start, error.before, strict=True):
            part, _ = spread(part, 0.0, np.zeros(int(start[-1])), np.diff(before), start)
        fraction = np.concatenate([[0.0], np.cumsum(part)])
        below = float(error.before[0][-1])
        own = below if total == inf else total * below / (total + below)
        return cls(error, fraction, own)

    def between(self, first: Int64, last: Int64) -> Float64:
        """The variances of the counts of leaves ``first <= leaf < last``: float64, records².

        Raises:
            EstimateError: see `CutError.between`.
        """
        part = self.fraction[last] - self.fraction[first]
        return self.given_total.between(first, last) + part**2 * self.total_variance

    def excess(self, share: float) -> Float64:
        """The variances of ``y_b - share · T`` for all cuts: float64 (K + 1), records²."""
        return self.given_total.cuts() + (self.fraction - share) ** 2 * self.total_variance
