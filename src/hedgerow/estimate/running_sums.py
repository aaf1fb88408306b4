"""Weighted running sums of the bins of a numeric column: a strategy for cumulative counts.

Measured are not the bins x but ``s = Wx``, ``s_j = Σ_{m<=j} w_m x_{j-m}``, with W the Toeplitz
square root of the matrix of prefix sums, scaled and rounded to whole weights so that noise can be
exact. Decoded, noise on s has nearly the least error that any such strategy can give the cumulative
counts (Fichtenberger, Henzinger & Upadhyay 2023). Price and decoding:
`docs/proofs/distributions.md`, "Weighted running sums". Bins may stand in rows, one an area: each
row has sums of its own, with noise of their own.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isqrt
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Float64, Int64, float64, int64, int64_zeros, sums_before
from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel
from hedgerow.limits import MOST_SUMMED_BINS

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Strategy:
    """The weights for a number of bins; made by `of`, and the same for all tables.

    Attributes:
        scale: what the coefficients were multiplied by, a power of two: w_0.
        weights: int64 (K).
    """

    scale: int
    weights: Int64

    @classmethod
    def of(cls, bins: int) -> "Strategy":
        """Return for K bins, 2 to 2^16: the scale is the power of two from 32 √K up.

        The smallest coefficient is about ``1/√(πK)``, so the smallest weight is above 18.
        """
        if not 2 <= bins <= MOST_SUMMED_BINS:
            raise EstimateError(f"running sums are for 2 to 2^16 bins, got {bins:,}; use a tree")
        return _strategy(bins)

    @property
    def bins(self) -> int:
        """K."""
        return len(self.weights)

    @cached_property
    def column_squared(self) -> int:
        """``max_i ‖c_i‖²``: what one record more or less changes."""
        return int((self.weights**2).sum())

    @cached_property
    def distance_squared(self) -> int:
        """``max_{i,k} ‖c_i - c_k‖²``: what one record in another bin changes."""
        shared = _correlated(self.weights)
        lengths = np.cumsum(self.weights**2)
        return int((lengths[-1] + lengths[::-1] - 2 * shared).max())

    @cached_property
    def decoding(self) -> Float64:
        """float64 (K): g, from sums to cumulative counts."""
        inverse = np.zeros(self.bins)
        _inverse(float64(self.weights), inverse)
        return np.cumsum(inverse)

    @cached_property
    def decoding_correlated(self) -> Float64:
        """float64 (K): ``Σ_m g_m g_{m+d}`` for the lags d = 0 … K - 1."""
        return _correlated(self.decoding)

    def sums(self, leaves: Int64) -> Int64:
        """Return ``Wx`` of each row: int64 (rows, K), exact.

        Args:
            leaves: int64 (rows, K), records, not negative, with a sum within 2³⁹.
        """
        self.check_length(leaves)
        out = int64_zeros(leaves.size).reshape(leaves.shape)
        _convolve(self.weights, leaves, out)
        return out

    def check_length(self, values: Array) -> None:
        """Raise unless each row has one number a bin."""
        if values.shape[1:] != (self.bins,):
            raise EstimateError(f"there are {self.bins:,} bins, got {values.shape[-1]:,} numbers")


@lru_cache(maxsize=4)
def _strategy(bins: int) -> Strategy:
    scale = 1 << (isqrt(1024 * bins - 1)).bit_length()
    k = np.arange(1, bins)
    real = np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))  # C(2k, k)/4^k
    return Strategy(scale, int64(np.rint(real * scale)))


@dataclass(frozen=True, eq=False)
class Decoded:
    """The errors of cumulative counts that were decoded from noisy sums: of a row, or of several.

    It answers as `hedgerow.distribution.cut_error.CutError` does for trees. Rows are independent
    but for public totals: where m rows share one, each row's total moves by 1/m of the gap, and the
    count before a cut by `pull` times that. So the variance of s such rows added up falls by
    ``(s²/m) · pull² · V``, V the variance of one row's total.

    Attributes:
        strategy: the weights.
        noise_variance: of each noisy sum (in units of the sums, squared).
        known: the factor of pull² V that is gone: s²/m where m rows share a public total, s where
            each has its own, 0 where none is public; of several places float64 (places, 1).
        rows: s, how many are added up; likewise.
    """

    strategy: Strategy
    noise_variance: float
    known: float | Float64
    rows: float | Float64 = 1.0

    def estimate(self, noisy: Array) -> Float64:
        """Return the counts before the cuts 0 … K, totals unknown: float64 (rows, K + 1), records.

        Args:
            noisy: int64 (rows, K): noisy sums.
        """
        self.strategy.check_length(noisy)
        cumulative = np.zeros(noisy.shape)
        _convolve(self.strategy.decoding, float64(noisy), cumulative)
        return np.pad(cumulative, ((0, 0), (1, 0)))

    def given_totals(self, cumulative: Float64, totals: Array) -> Float64:
        """Return the counts before the cuts given what rows have in all: float64 (rows, K + 1).

        Args:
            cumulative: float64 (rows, K + 1), as `estimate` returns them.
            totals: (rows), records.
        """
        moved = cumulative + self.pull * (totals[:, None] - cumulative[:, -1:])
        moved[:, -1] = totals
        return moved

    @cached_property
    def pull(self) -> Float64:
        """float64 (K + 1): ``Cov(y_b, y_K)/Var(y_K)``, how far an error of y_K is shared."""
        shared = self.strategy.decoding_correlated
        return np.append(0.0, shared[::-1] / shared[0])

    @cached_property
    def _before(self) -> Float64:
        """float64 (K + 1): as `before`, of one row."""
        return self.noise_variance * sums_before(self.strategy.decoding**2)

    @property
    def before(self) -> Float64:
        """float64 (…, K + 1): the variances of counts before the cuts, totals unknown, records²."""
        return self.rows * self._before

    @cached_property
    def cuts(self) -> Float64:
        """float64 (…, K + 1): the variances of the counts before the cuts, records²."""
        return self._less_total(self.before, self.pull)

    @cached_property
    def leaves(self) -> Float64:
        """float64 (…, K): the variances of the counts of single bins, records²."""
        steps = np.diff(self.strategy.decoding, prepend=0.0)
        own = self.rows * (self.noise_variance * np.cumsum(steps**2))
        return self._less_total(own, np.diff(self.pull))

    def between(self, first: Int64, last: Int64) -> Float64:
        """Return the variances of the counts of bins ``first <= bin < last``: (…, ranges)."""
        shared = np.empty(len(first))
        _shared(self.strategy.decoding, first, last, shared)
        before = self._before
        own = before[first] + before[last] - 2 * self.noise_variance * shared
        return self._less_total(
            self.rows * np.maximum(own, 0.0), self.pull[last] - self.pull[first]
        )

    def excess(self, share: float) -> Float64:
        """Return the variances of ``y_b - share · T`` for the cuts 0 … K: (…, K + 1), records²."""
        most = float(self._before[-1])
        own = self._before + (share**2 - 2 * share * self.pull) * most
        return self._less_total(self.rows * own, self.pull - share)

    def _less_total(self, variance: Float64, pull: Float64) -> Float64:
        """Return variances less known · pull² · V."""
        return np.maximum(variance - self.known * (pull**2 * float(self._before[-1])), 0.0)


@kernel
def _convolve(a: Array, b: Array, out: Array) -> None:
    """Add the first K terms of ``a * b`` for each row of b, in the order of a: on any machine."""
    # No Fourier transform, whose rounding differs from machine to machine.
    for row in range(len(b)):
        # One row's K numbers stay in the cache while all weights pass over them.
        for m in range(len(a)):
            weight = a[m]
            for j in range(len(a) - m):
                out[row, m + j] += weight * b[row, j]


def _correlated(a: NDArray[Number]) -> NDArray[Number]:
    """Return ``Σ_m a_m a_{m+d}`` for each lag d."""
    out = np.zeros_like(a)[None]
    _convolve(a, a[None, ::-1].copy(), out)
    return out[0, ::-1]


@kernel
def _inverse(a: Float64, out: Float64) -> None:
    """Write the power series ``1/a(z)``, by forward substitution."""
    # rest: the coefficients of 1 - a(z)·out(z); those below m are 0.
    rest = np.zeros(len(a))
    rest[0] = 1.0
    for m in range(len(a)):
        out[m] = rest[m] / a[0]
        weight = out[m]
        for j in range(len(a) - m):
            rest[m + j] -= weight * a[j]


@kernel
def _shared(g: Float64, first: Int64, last: Int64, shared: Float64) -> None:
    """Write ``Σ_{m < first} g_m g_{m + last - first}``: two cuts' covariance for noise of 1."""
    for i in range(len(first)):
        # Noise behind the first cut is in the second one alone, so it adds nothing.
        lag = last[i] - first[i]
        total = 0.0
        for m in range(first[i]):
            total += g[m] * g[m + lag]
        shared[i] = total
