"""Intervals for counts, from unbiased estimates, their variances and the kind of noise.

An estimate x of a true count T is ``T + S``, where S is one draw of the noise (a *raw* noisy count)
or ``Σ a_j η_j`` over independent draws of one kind of noise at several depths (*combined*: least
squares). Public facts bound T: it is an integer, at least 0, and at most the public total where
there is one. The interval is

    { integers n : |n - x| <= reach, or n nearest to x }, both ends moved into [0, total].

Why moving the ends keeps the coverage: clipping to [0, total] never falls, and it leaves T where it
is, so T lies between the clipped ends whenever it lies between the ends. An interval wholly
below 0 becomes [0, 0], one wholly above the total [total, total]; both only add coverage. So

    P(low <= T <= high) >= P(|S| <= reach).

The probability is over the noise, for each measured cell, whether or not it is then listed. It is
not conditional on survival: of the cells that a pruned release lists, those with a true count of 0
are there because their noise was large, and are covered less often.

Reach of a raw count: the exact quantile of the mechanism (`Mechanism.tail_bound`), so coverage is
at least the level; proved. All cells at once (`simultaneous`): the draws are independent, so each
cell gets the level ``level ** (1 / cells)`` (Šidák 1967); exact. Which cells are measured depends
on depths above at most, so both statements hold given the set of measured cells.

Reach of a combined estimate with variance V, where one draw of its own depth has variance v:

    reach = min(max(q √(V s²/v), J) + max(h, 1 - h)/2,  k + 1/2),   h = V/v.

- h is the coefficient of the cell's own noisy count: by the normal equations, the coefficient of a
  measurement with variance v in the least-squares estimate of what it measures is V/v. Estimates
  are unbiased, so the coefficients on a path through the cell add up to 1; in every tree of the
  study below no other draw has one above 1 - h.
- s² is the variance of the mechanism's envelope, sigma2 or 2 scale²: of the continuous law that
  the noise is a lattice version of; it is above v, much so where nearly all draws are 0. For
  Gaussian noise its tails bound those of the noise: P(|η| > k) <= P(|Z| > k) (see
  `DiscreteGaussian.tail_bound`).
- q is the larger of the two-sided quantiles of the normal law and of the envelope, at variance 1.
  They are one for the discrete Gaussian; for the discrete Laplace the envelope's is ln(1/α)/√2
  (2.118 against 1.960 at 95 %): sums of Laplace draws lie between, from one dominant draw to many.
- J is for estimates that owe more to other depths than to their own count (h < 1/2), whose noise
  may be 0 but for rare jumps: the quantile of the Skellam law of variance V, the limit of
  many rare jumps of one record. Where h >= 1/2, or V >= 64, it is left out.
- max(h, 1 - h)/2 is the continuity correction: S moves in steps of h and 1 - h at most.
- k is the raw quantile, so before clipping no interval is wider than a raw one. (Laplace noise
  below a level of 0.905, where the normal quantile is the larger: there the second term is the
  normal's if that is more.)

An unmeasured depth has no own count: there h = 0, and the second term of the minimum is left out.
All cells at once: each gets the level 1 - (1 - level) / cells (Bonferroni), as errors depend on
one another.

Proved: the raw reach; and the combined one where h = 1, with α <= 0.317 for Gaussian noise and any
α for Laplace. There the reach holds the least k with P(|η| > k) <= α: exp(-x²/2sigma2) is convex
beyond sigma, so P(|η| > k - 1) <= P(|Z| >= k - 1/2), and with a reach below k the right side would
be below α, against the choice of k; for Laplace,
P(|η| > k - 1) = 2q^k/(1+q) <= exp(-(k - 1/2)/scale), q = exp(-1/scale).

Otherwise the reach is an approximation. It was verified against the exact law of S (by Fourier
transform, no sampling) for every depth of the trees with (depth, branching) = (1; 2, 3, 10),
(2; 2, 3, 5, 10), (3; 2, 3, 5, 8), root public or measured, parameters that stay, quadruple or fall
to a quarter from depth to depth (scales double or halve). At each α in {0.5, 0.2, 0.05, 0.01,
0.001} every depth is covered with at least 1 - α; at 1e-6 at most 1.7e-6 is missed. At 95 %, the
least and the mean coverage of a depth, and the mean width relative to a raw interval's (never
above it, at any depth, also for cells whose truth is 0):

    sigma2   0.1    0.2    0.5    1      4      25     400
    least    0.965  0.963  0.963  0.960  0.955  0.952  0.950
    mean     0.992  0.996  0.985  0.985  0.975  0.962  0.953
    width    0.14   0.49   0.63   0.64   0.76   0.78   0.80

    scale    0.3    0.7    1      3      20
    least    0.961  0.961  0.959  0.954  0.953
    mean     0.995  0.984  0.976  0.965  0.958
    width    0.47   0.70   0.73   0.80   0.80
"""

from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive, ndtri

from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel
from hedgerow.noise.envelope import NormalEnvelope
from hedgerow.noise.mechanisms import Mechanism

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]
LARGEST_INT = (1 << 62) - 1
MOST_JUMPY_DEVIATION = 8
JUMP_STEPS = 128
MOST_AT_ONCE = 10**290
"""Intervals that may hold at once; nobody lists more, and floats end soon after."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """How sure an interval is, and of what.

    Attributes:
        level: the probability, in (0, 1), that an interval holds the true count.
        simultaneous: whether it is the probability that all intervals of a depth hold at once.

    Raises:
        EstimateError: the level is not in (0, 1).
    """

    level: float = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise EstimateError(
                f"level must be in (0, 1), got {self.level}; 0.95 leaves out one count in twenty"
            )

    def reach(
        self,
        mechanism: Mechanism,
        variance: float | Float64 | None,
        cells: int,
        *,
        measured: bool = True,
    ) -> int | Float64:
        """How far, at most, estimates are from the true counts: records; see this module's head.

        Args:
            mechanism: the noise of the depth; where the depth is not measured, of the depth with
                the smallest parameter that tells of it.
            variance: None for raw noisy counts; for combined ones float64 (cells) or one for all,
                records², 0 where the estimate is exact. Not measured or above the mechanism's own:
                the reach of an unmeasured depth.
            cells: how many cells the depth has, measured or not.
            measured: whether a combined estimate has a noisy count of its own.

        Returns:
            One whole number for raw counts; else float64, in the shape of ``variance``.

        Raises:
            EstimateError: a variance is negative or not a number.
        """
        if variance is None:
            return min(mechanism.tail_bound(self._miss(cells, independent=True)), LARGEST_INT)
        miss = self._miss(cells, independent=False)
        variances = np.asarray(variance, dtype=np.float64)
        own = mechanism.noise_variance
        envelope, normal = mechanism.envelope, NormalEnvelope(1.0).quantile(miss)
        quantile = max(normal, envelope.quantile(miss))
        spread = quantile * float(np.sqrt(envelope.variance / own)) if own > 0 else quantile
        cap = mechanism.tail_bound(miss) + 0.5 - 1e-6  # 1e-6: rounding must not add an integer
        if normal > envelope.quantile(miss):
            cap = max(cap, normal * float(np.sqrt(envelope.variance)))
        reach = np.empty(variances.size)
        known = own if measured else 0.0
        if not _reach(variances.ravel(), known, spread, cap, _jumps(miss), reach):
            raise EstimateError("variances must not be negative or NaN; give inf where unknown")
        return reach.reshape(variances.shape)

    def reach_of_sums(self, variance: Float64, cells: int) -> Float64:
        """How far estimates are from the true counts that sum many draws in steps below a record.

        The two-sided normal quantile of each variance: discrete Gaussian noise is divided by a
        scale of at least 64 and summed over many draws (`hedgerow.estimate.running_sums`), and such
        a sum differs from a normal law by far less than its steps.

        Args:
            variance: float64 (cells), records².
            cells: how many intervals there are.
        """
        miss = self._miss(cells, independent=False)
        return np.asarray(-float(ndtri(miss / 2)) * np.sqrt(variance), dtype=np.float64)

    def _miss(self, cells: int, *, independent: bool) -> float:
        """The probability with which one interval may miss."""
        if not self.simultaneous or cells <= 1:
            return 1 - self.level
        cells = min(cells, MOST_AT_ONCE)
        if independent:
            return float(-np.expm1(np.log(self.level) / cells))
        return (1 - self.level) / cells


def interval(
    estimate: Int64 | Float64, reach: int | Float64, total: int | None
) -> tuple[Int64, Int64]:
    """The lowest and highest count of each interval: two int64 (cells), records, low <= high.

    Both are at least 0 and at most the total; see this module's head. Ends that pass ±2^62 stop
    there.

    Args:
        estimate: int64 or float64 (cells), records.
        reach: for all cells or float64 (cells), records, not negative; from `Confidence.reach`.
        total: the public number of records; None where it is measured.

    Raises:
        EstimateError: an estimate is not a finite number, or a reach negative or NaN.
    """
    most = LARGEST_INT if total is None else total
    low = np.empty(estimate.shape, dtype=np.int64)
    high = np.empty(estimate.shape, dtype=np.int64)
    if isinstance(reach, int) and estimate.dtype == np.int64:
        if reach < 0:
            raise EstimateError(f"a reach must not be negative, got {reach}")
        whole = estimate.astype(np.int64, order="C", copy=False)
        _around_whole(whole, min(reach, LARGEST_INT), most, low, high)
        return low, high
    reaches = np.ascontiguousarray(np.broadcast_to(np.asarray(reach, np.float64), estimate.shape))
    estimates = estimate.astype(np.float64, order="C", copy=False)
    if not _around(estimates, reaches, most, low, high):
        raise EstimateError("estimates must be finite and reaches not negative or NaN")
    return low, high


@lru_cache(maxsize=64)
def _jumps(miss: float) -> Float64:
    """Return the two-sided Skellam quantiles of standard deviations i / JUMP_STEPS, i = 0, 1, …."""
    quantiles: Float64 = np.sum(_skellam_tails()[1:] > miss, axis=0).astype(np.float64)
    return quantiles


@cache
def _skellam_tails() -> Float64:
    """Return P(|X| >= k), k = 0, 1, …, a row each, for standard deviations i / JUMP_STEPS.

    A Skellam law of variance V has P(X = k) = exp(-V) I_k(V). The row of k = 0 is no probability.
    """
    deviations = np.arange(int(MOST_JUMPY_DEVIATION * JUMP_STEPS) + 1) / JUMP_STEPS
    masses = ive(np.arange(256)[:, None], deviations**2)
    tails: Float64 = 2 * np.cumsum(masses[::-1], axis=0)[::-1]
    return tails


@kernel
def _reach(
    variances: Float64,
    own: float,
    spread: float,
    cap: float,
    jumps: Float64,
    reach: Float64,
) -> bool:
    for i in range(len(variances)):
        variance = variances[i]
        if not variance >= 0:
            return False
        measured = variance <= own * (1 + 1e-9)
        weight = min(variance / own, 1.0) if measured and own > 0 else 0.0
        deviation = np.sqrt(variance)
        value = spread * deviation
        if weight < 0.5 and deviation < MOST_JUMPY_DEVIATION:
            value = max(value, jumps[int(np.ceil(deviation * JUMP_STEPS))])
        value += max(weight, 1 - weight) / 2
        if variance == 0:
            value = 0.0
        reach[i] = min(value, cap) if measured else value
    return True


@kernel
def _around(estimate: Float64, reach: Float64, most: int, low: Int64, high: Int64) -> bool:
    for i in range(len(estimate)):
        if not (np.isfinite(estimate[i]) and reach[i] >= 0):
            return False
        # The whole part is exact in int64; comparing the rest with the reach rounds outwards.
        whole = np.floor(min(max(estimate[i], -(2.0**61)), 2.0**61))
        rest = min(max(estimate[i] - whole, 0.0), 1.0)
        bound = min(reach[i], 2.0**61)
        nearest = np.floor(rest + 0.5)
        lowest = int(whole) + int(min(np.ceil(rest - bound), nearest))
        highest = int(whole) + int(max(np.floor(rest + bound), nearest))
        low[i] = min(max(lowest, 0), most)
        high[i] = min(max(highest, 0), most)
    return True


@kernel
def _around_whole(estimate: Int64, reach: int, most: int, low: Int64, high: Int64) -> None:
    for i in range(len(estimate)):
        whole = min(max(estimate[i], -LARGEST_INT), LARGEST_INT)
        low[i] = min(max(whole - reach, 0), most)
        high[i] = min(max(whole + reach, 0), most)
