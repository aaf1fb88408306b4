"""Mean variances of a workload in closed form, where every family is as large as the others.

Let r_d be the number of leaves in a cell of cuboid d, and S_d the matrix that sums leaves to d's
cells. With even families all S_dᵀS_d / r_d are projections that commute: along one axis they are
averages over nested partitions, and over several axes products of these. So the leaves' space is a
sum of orthogonal *residuals*, one a vector of levels b: what b's cells tell beyond those of all its
coarsenings, of dimension

    m_b = Π_a (n_a(b_a) - n_a(b_a - 1)),     n_a(k) nodes at level k of axis a, n_a(-1) = 0.

On residual b the information of the workload is one number, Σ_{d >= b} r_d / v_d over the measured
cuboids d (S_d takes it to 0 unless d refines b), so that the mean variance of a cell of cuboid c,
of n_c cells, is

    V_c = (r_c / n_c) Σ_{b <= c} m_b / Σ_{d >= b} (r_d / v_d),

residuals within a public cuboid having none. Each term is convex in the precisions 1/v_d. Uneven
axes are taken to have even families of their mean size: an approximation, for shares alone.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import numpy as np

from hedgerow.arrays import Float64, Levels, float64
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import is_within, is_within_any, maximal
from hedgerow.limits import MOST_RESIDUALS


class EvenMeans:
    """The mean variances of cuboids, by the precisions of those that are measured.

    Attributes:
        cuboids: that are measured.
        wanted: whose mean variances are told.
    """

    def __init__(
        self,
        sizes: Sequence[Sequence[int]],
        cuboids: Sequence[Levels],
        public: Levels | None = None,
        wanted: Sequence[Levels] | None = None,
    ) -> None:
        """Lay out the residuals.

        Args:
            sizes: for each axis the nodes of each of its levels, coarsest first.
            cuboids: that are measured.
            public: the finest cuboid whose counts are public, if any.
            wanted: whose mean variances are told, the measured cuboids unless given.

        Raises:
            EstimateError: more than 4,096 combinations of levels within measured cuboids, or a
                wanted cuboid that no measured one refines and that is not public.
        """
        self.cuboids = tuple(cuboids)
        self.wanted = tuple(cuboids if wanted is None else wanted)
        answerable = self.cuboids if public is None else (*self.cuboids, public)
        for cuboid in self.wanted:
            if not is_within_any(cuboid, answerable):
                raise EstimateError(f"cuboid {cuboid} is no sum of measured cells")
        below = set()
        for cuboid in maximal(self.cuboids):
            for residual in product(*(range(k + 1) for k in cuboid)):
                below.add(residual)
                if len(below) > MOST_RESIDUALS:
                    raise EstimateError(
                        f"the levels of these cuboids have more than {MOST_RESIDUALS:,} "
                        "combinations"
                    )
        residuals = [b for b in sorted(below) if not is_within(b, public)]
        more = [np.diff(float64(own), prepend=0.0) for own in sizes]
        size = _cells(more, residuals)
        leaves = prod(float(own[-1]) for own in sizes)
        self._information = _within(residuals, self.cuboids).T * (
            leaves / _cells(sizes, self.cuboids)
        )
        repeated = leaves / _cells(sizes, self.wanted) ** 2
        self._weight = _within(residuals, self.wanted) * size * repeated[:, None]

    def of(self, precisions: Float64) -> tuple[Float64, Callable[[Float64], Float64]]:
        """Return the mean variances, and what turns derivatives by them to those by precisions.

        Args:
            precisions: float64 (cuboids), at least 0: 1/v of each, above 0 for those that no other
                one refines.

        Returns:
            float64 (wanted), and a function of float64 (wanted), to float64 (cuboids).
        """
        inverse = 1 / (self._information @ precisions)

        def by_precision(by_mean: Float64) -> Float64:
            return -((by_mean @ self._weight) * inverse**2) @ self._information

        return self._weight @ inverse, by_precision


def _within(residuals: Sequence[Levels], cuboids: Sequence[Levels]) -> Float64:
    """Return 1 where a residual is one of a cuboid, else 0: float64 (cuboids, residuals)."""
    indicator = np.ones((len(cuboids), len(residuals)))
    for axis in range(len(cuboids[0]) if cuboids else 0):
        own = np.array([cuboid[axis] for cuboid in cuboids])
        indicator *= np.array([residual[axis] for residual in residuals]) <= own[:, None]
    return indicator


def _cells(sizes: Sequence[Sequence[float] | Float64], cuboids: Sequence[Levels]) -> Float64:
    """Return the product of the numbers of each cuboid's levels: float64 (cuboids)."""
    each = (zip(sizes, cuboid, strict=True) for cuboid in cuboids)
    return np.array([prod(float(own[k]) for own, k in cuboid) for cuboid in each])
