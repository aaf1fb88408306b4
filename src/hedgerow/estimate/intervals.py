"""Intervals for counts, from unbiased estimates, their variances and the kind of noise.

An estimate x of a true count T is T + S, with S one draw of the noise (a *raw* count) or a weighted
sum of independent draws (*combined*). With w the half-width the interval is

    { integers n : |n - x| <= w, or n nearest to x }, both ends clipped to [0, total],

and holds T with probability at least P(|S| <= w), over the noise, for each measured cell. For raw
counts w is the exact quantile; for combined ones, of variance V where one draw has variance v,

    w = min(max(q √(V s²/v), J) + max(h, 1 - h)/2,  k + 1/2),   h = V/v.

`docs/proofs/intervals.md`, "Intervals", defines the terms, proves what is proved and measures the
rest.
"""

from dataclasses import astuple
from functools import cache, lru_cache
from typing import Annotated

import numpy as np
from scipy.special import ive, ndtri

from hedgerow.arrays import Float64, Int64, IntPair, float64
from hedgerow.declared import Real, check_fields, frozen
from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel
from hedgerow.noise.envelope import NormalEnvelope
from hedgerow.noise.mechanisms import Mechanism

COVERAGE = Real("a confidence", 0, 1, EstimateError, "0.95 misses one in twenty", ends="()")
LARGEST_INT = (1 << 62) - 1
MOST_JUMPY_DEVIATION = 8
NARROW = 0.5
"""Variance, records²: noise of a smaller one has tails well above a normal law's."""
JUMP_STEPS = 128
MOST_AT_ONCE = 10**290
"""Intervals that may hold at once; nobody lists more, and floats end soon after."""


@frozen
class Confidence:
    """How sure an interval is, and of what.

    Attributes:
        coverage: the probability, in (0, 1), that an interval holds the true count.
        simultaneous: whether it is the probability that all intervals of a depth hold at once.

    Raises:
        EstimateError: the level is not in (0, 1).

    Example:
        >>> noise = hr.DiscreteGaussian("100")
        >>> hr.Confidence(0.95).half_width(noise, variance=None, cells=50)
        20
        >>> hr.Confidence(0.95, simultaneous=True).half_width(noise, variance=None, cells=50)
        33
    """

    coverage: Annotated[float, COVERAGE] = 0.95
    simultaneous: bool = False

    def __post_init__(self) -> None:
        check_fields(self)

    def half_width(
        self,
        mechanism: Mechanism,
        variance: float | Float64 | None,
        cells: int,
        *,
        measured: bool = True,
        steps: "Steps | None" = None,
    ) -> int | Float64:
        """Return the half-width (records) of intervals around estimates.

        Args:
            mechanism: the noise of the depth; where the depth is not measured, of the depth with
                the smallest parameter that tells of it.
            variance: None for raw noisy counts; for combined ones float64 (cells) or one for all,
                records², 0 where the estimate is exact. Above the mechanism's own, as a cube's may
                be where noise is nearly always 0, the reach has no cap.
            cells: how many cells the depth has, measured or not.
            measured: whether a combined estimate has a noisy count of its own.
            steps: what is known of an estimate's coefficients where they are not proved to be at
                most 1 - h.

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
        envelope = mechanism.envelope
        normal = NormalEnvelope(1.0).quantile(miss)
        quantile = max(normal, envelope.quantile(miss))
        factor = quantile * float(np.sqrt(envelope.variance / own)) if own > 0 else quantile
        cap = mechanism.tail_bound(miss) + 0.5 - 1e-6  # 1e-6: rounding must not add an integer
        if normal > envelope.quantile(miss):
            cap = max(cap, normal * float(np.sqrt(envelope.variance)))
        half_width = np.empty(variances.size)
        own_if_measured = own if measured else 0.0
        wide = quantile, 2 * quantile * float(np.sqrt(envelope.variance))
        is_normal = isinstance(envelope, NormalEnvelope)
        bounds = (0.0, True, is_normal) if steps is None else (*astuple(steps), is_normal)
        if not _half_widths(
            variances.ravel(), own_if_measured, (factor, cap, *wide), bounds, _jumps(miss),
            half_width,
        ):  # fmt: skip
            raise EstimateError("variances must not be negative or NaN; give inf where unknown")
        return half_width.reshape(variances.shape)

    def half_width_of_sums(self, variance: Float64, cells: int) -> Float64:
        """Return the half-width (records) for sums of many draws in steps below a record.

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
        """Return the probability with which one interval may miss."""
        if not self.simultaneous or cells <= 1:
            return 1 - self.coverage
        cells = min(cells, MOST_AT_ONCE)
        if independent:
            return float(-np.expm1(np.log(self.coverage) / cells))
        return (1 - self.coverage) / cells


@frozen
class Steps:
    """What bounds the steps in which an estimate's error moves, beside its own coefficient.

    Attributes:
        least: the smallest variance of a draw that tells of the cell, records²; 0 where no other
            draw's coefficient is above 1 - h.
        is_exact: whether variances are exact; if not, they are upper bounds.
    """

    least: float
    is_exact: bool


def interval(estimate: Int64 | Float64, half_width: float | Float64, total: int | None) -> IntPair:
    """Return the lowest and highest count of each interval: two int64 (cells), records.

    Both are at least 0 and at most the total; see this module's head. Ends that pass ±2^62 stop
    there.

    Args:
        estimate: int64 or float64 (cells), records.
        half_width: one for all, or float64 (cells), records: from `Confidence.half_width`.
        total: the public number of records; None where it is measured.
    """
    most = LARGEST_INT if total is None else total
    low = np.empty(estimate.shape, dtype=np.int64)
    high = np.empty(estimate.shape, dtype=np.int64)
    half_widths = np.ascontiguousarray(
        np.broadcast_to(np.asarray(half_width, np.float64), estimate.shape)
    )
    estimates = estimate.astype(np.float64, order="C", copy=False)
    if not _around(estimates, half_widths, most, low, high):
        raise EstimateError("estimates must be finite and half-widths not negative or NaN")
    return low, high


@lru_cache(maxsize=64)
def _jumps(miss: float) -> Float64:
    """Return the two-sided Skellam quantiles of standard deviations i / JUMP_STEPS, i = 0, 1, …."""
    return float64(np.sum(_skellam_tails()[1:] > miss, axis=0))


@cache
def _skellam_tails() -> Float64:
    """Return P(|X| >= k), k = 0, 1, …, a row each, for standard deviations i / JUMP_STEPS.

    A Skellam law of variance V has P(X = k) = exp(-V) I_k(V). The row of k = 0 is no probability.
    """
    deviations = np.arange(int(MOST_JUMPY_DEVIATION * JUMP_STEPS) + 1) / JUMP_STEPS
    masses = ive(np.arange(256)[:, None], deviations**2)
    return 2 * np.cumsum(masses[::-1], axis=0)[::-1]


@kernel
def _half_widths(
    variances: Float64,
    own: float,
    reach: tuple[float, float, float, float],
    bounds: tuple[float, bool, bool],
    jumps: Float64,
    half_width: Float64,
) -> bool:
    # A variance above the own one has no cap. But where there is an own one, and weights are those
    # of wide noise (a cube's), the envelope's variance of the estimate is at most that of a draw:
    # twice its reach is enough, however far the own variance is below it.
    factor, cap, quantile, widest = reach
    least, is_exact, is_normal = bounds
    for i in range(len(variances)):
        variance = variances[i]
        if not variance >= 0:
            return False
        measured = variance <= own * (1 + 1e-9)
        weight = min(variance / own, 1.0) if measured and own > 0 else 0.0
        deviation = np.sqrt(variance)
        value = factor * deviation
        if own > 0 and not measured:
            value = min(value, max(quantile * deviation, widest))
        if (weight < 0.5 or not is_exact) and deviation < MOST_JUMPY_DEVIATION:
            value = max(value, jumps[int(np.ceil(deviation * JUMP_STEPS))])
        step = max(weight, 1 - weight) if is_exact else 1.0
        most = cap if measured else np.inf
        if least > 0:
            # Squared coefficients times variances are at most h (1 - h) times the own variance.
            # A bound of h may be above 1/2 where h is not.
            h = weight if is_exact else min(weight, 0.5)
            others = variance if weight == 0 else h * (1 - h) * own
            largest = np.sqrt(others / least)
            if largest > 1 and least < NARROW:
                most = np.inf  # its tails are above those of the own draw
                jump = min(deviation / largest, MOST_JUMPY_DEVIATION)
                value = max(value, largest * jumps[int(np.ceil(jump * JUMP_STEPS))])
            elif largest > 1 and is_exact and is_normal and 0 < weight <= 0.5:
                # The own draw, in steps of h, blurs those of one that counts more than a record.
                largest = max(1.0, 2 * largest * _unevenness(weight * least))
            step = max(step, largest)
        value += step / 2
        if variance == 0:
            value = 0.0
        half_width[i] = min(value, most)
    return True


@kernel
def _unevenness(variance: float) -> float:
    # By how much a quantile moves, at most, in units of steps that normal noise of this variance,
    # in squared steps, blurs: half a step unless blurred, sum_j exp(-2 pi^2 j^2 variance)/(pi j).
    reach = 0.0
    for j in range(1, 64):
        reach += np.exp(-2 * (np.pi * j) ** 2 * variance) / (np.pi * j)
    return min(reach, 0.5)


@kernel
def _around(estimate: Float64, half_width: Float64, most: int, low: Int64, high: Int64) -> bool:
    for i in range(len(estimate)):
        if not (np.isfinite(estimate[i]) and half_width[i] >= 0):
            return False
        # The whole part is exact in int64; comparing the rest with the reach rounds outwards.
        whole = np.floor(min(max(estimate[i], -(2.0**61)), 2.0**61))
        rest = min(max(estimate[i] - whole, 0.0), 1.0)
        bound = min(half_width[i], 2.0**61)
        nearest = np.floor(rest + 0.5)
        lowest = int(whole) + int(min(np.ceil(rest - bound), nearest))
        highest = int(whole) + int(max(np.floor(rest + bound), nearest))
        low[i] = min(max(lowest, 0), most)
        high[i] = min(max(highest, 0), most)
    return True
