"""Sets that hold the ratio of two true counts, from unbiased estimates of both.

*Fieller's set.* Let a and b estimate A and B without bias, with standard errors s and t and the
correlation c. Of the true ratio r, A = r B, the difference a - r b is unbiased for 0, so that

    { r : |a - r b| <= z √(s² - 2 r c s t + r² t²) }

holds r as often as z standard errors around a normal estimate hold what it estimates, whatever B
is (E. C. Fieller, Some problems in interval estimation, J. R. Stat. Soc. B 16, 1954). With reaches
S = z s and T = z t, which intervals of the counts themselves have, it is where

    (b² - T²) r² - 2 (a b - c S T) r + (a² - S²) <= 0.

If b is more than T from 0, that is an interval. If not, B may be 0, and it is unbounded: all but an
open interval, or, where both may be 0 at once, everything. A correlation of -1 gives the widest set
of ratios that are not negative, so it serves where nothing is known of the correlation.

*Cut to what ratios can be.* They are at least 0, and shares at most 1. Of a set in two parts that
both reach in there, everything between 0 and the most is told, which holds it as well.

*What is assumed.* Errors are normal, or nearly: sums of many draws. Of noise as it is, and of
narrow noise, sets rest on the intervals of both counts, which are exact: where each of these misses
one in twenty, a set from both may miss a little more often than that.
"""

from math import inf

import numpy as np

from hedgerow.arrays import Bool, Float64, float64
from hedgerow.declared import frozen

CANCELS = 0.5
"""Correlations above this let much of both errors cancel."""
UNKNOWN = -1.0
"""The correlation that stands for one that is not known."""


@frozen(eq=False)
class Ratios:
    """What two estimates tell of their ratio.

    Attributes:
        numerator: float64 (pairs): a.
        reach: float64 (pairs): S, how far the numerator's interval reaches to either side.
        denominator: float64 (pairs): b.
        reach_of_denominator: float64 (pairs): T.
        correlation: float64 (pairs): c.

    Example:
        >>> one = np.ones(1)
        >>> low, high, bounded = Ratios(50 * one, 10 * one, 100 * one, 10 * one, 0 * one).sets()
        >>> [round(float(end), 3) for end in (low[0], high[0])], bool(bounded[0])
        ([0.395, 0.615], True)
    """

    numerator: Float64
    reach: Float64
    denominator: Float64
    reach_of_denominator: Float64
    correlation: Float64

    def sets(self, most: float = inf) -> tuple[Float64, Float64, Bool]:
        """Return the ends of what is told of each ratio, cut to 0..most, and whether it has ends.

        Args:
            most: 1 for shares.

        Returns:
            float64 (pairs) twice, and bool (pairs): whether Fieller's set is an interval. One that
            lies outside 0..most is its nearest number.
        """
        a, s, b, t, c = self._columns
        square = (b - t) * (b + t)
        half = a * b - c * s * t
        constant = (a - s) * (a + s)
        # half² - square · constant, without the difference of its largest terms
        root2 = (a * t) ** 2 + (b * s) ** 2 - 2 * c * a * t * b * s - (1 - c * c) * (s * t) ** 2
        root = np.sqrt(np.maximum(root2, 0.0))
        farther = half + np.where(half < 0, -root, root)
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([farther / square, constant / farther])
        ends[np.isnan(ends)] = 0.0  # 0 / 0: a numerator without error that is 0
        first = ends.min(axis=0)
        last = ends.max(axis=0)
        bounded = square > 0
        low = np.clip(first, 0.0, most)
        high = np.clip(last, 0.0, most)
        # what is left out lies between: one part above it, one below it, or both
        above_alone = (first < 0) & (last <= most)
        below_alone = (first >= 0) & (last > most)
        nothing = ~above_alone & ~below_alone | (root2 <= 0) | (square == 0)
        unbounded_low = np.where(above_alone & ~nothing, np.maximum(last, 0.0), 0.0)
        unbounded_high = np.where(below_alone & ~nothing, np.minimum(first, most), most)
        return (
            np.where(bounded, low, unbounded_low),
            np.where(bounded, high, unbounded_high),
            bounded,
        )

    def holds(self, ratio: Float64) -> Bool:
        """Return whether Fieller's set, which is not cut, holds a number: bool (pairs)."""
        a, s, b, t, c = self._columns
        reach2 = s**2 - 2 * ratio * c * s * t + (ratio * t) ** 2
        rounding = 1e-9 * (np.abs(a) + np.abs(ratio * b))  # of pairs without any error
        return np.abs(a - ratio * b) <= np.sqrt(np.maximum(reach2, 0.0)) + rounding

    def blurred(self) -> "Ratios":
        """Return wider ones where errors of both nearly cancel: by half a step of a - r b.

        Reaches hold half a step of a count each, but of two errors that are nearly one a difference
        keeps little of them, and moves in steps of up to max(1, r). With e half of that and q what
        is reached without, (q + e)² <= (1 + η) q² + (1 + 1/η) e² for any η; here η = e/q at the
        ratio of the estimates. Sets of a number and itself stay as they are.
        """
        a, s, b, t, c = self._columns
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(b > 0, np.clip(a / b, 0.0, None), 1.0)
        reach = np.sqrt(np.maximum(s**2 - 2 * ratio * c * s * t + (ratio * t) ** 2, 0.0))
        near = (c > CANCELS) & (reach > 1e-6 * (s + ratio * t))
        eta = np.where(near, np.maximum(1.0, ratio) / 2 / np.where(near, reach, 1.0), 0.0)
        more = np.where(near, (1 + 1 / np.where(near, eta, 1.0)) / 4, 0.0)
        wider = [np.sqrt((1 + eta) * each**2 + more) for each in (s, t)]
        product = wider[0] * wider[1]
        shared = (1 + eta) * c * s * t
        correlation = np.divide(shared, product, out=float64(c), where=product > 0)
        return Ratios(a, wider[0], b, wider[1], np.where(near, correlation, c))

    @property
    def may_be_anything(self) -> Bool:
        """Whether both counts may be 0 at once, so that no ratio is told: bool (pairs)."""
        a, s, b, t, c = self._columns
        outside = (a * t) ** 2 + (b * s) ** 2 - 2 * c * a * t * b * s
        return ((b - t) * (b + t) <= 0) & (outside <= (1 - c * c) * (s * t) ** 2)

    @property
    def _columns(self) -> tuple[Float64, Float64, Float64, Float64, Float64]:
        return (
            self.numerator, self.reach, self.denominator, self.reach_of_denominator,
            self.correlation,
        )  # fmt: skip
