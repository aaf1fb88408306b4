"""What projecting one family onto its parent's count does to the error (Zhu et al. 2022).

A family of n cells with true counts x gets independent noise η, one a cell, and is projected in l2
onto the vectors that sum to the public Σx: program (P_S); with non-negativity too, (P₊).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import gammainc, gammaincc, gammaln

from hedgerow.arrays import Float64


@dataclass(frozen=True, slots=True)
class LaplaceNorm:
    """The l1 norm of n Laplace draws: a Gamma variable (Zhu et al., Corollary 9).

    Attributes:
        cells: n, at least 1.
        scale: λ (records), above 0.
    """

    cells: int
    scale: float

    def outside(self, radius: float) -> float:
        """P(‖η‖₁ > r) = Q(n, r/λ), the regularised upper incomplete gamma function."""
        return float(gammaincc(self.cells, radius / self.scale))

    def mean_outside(self, radius: float) -> float:
        """E[‖η‖₁; ‖η‖₁ > r] = nλ Q(n + 1, r/λ), in records."""
        return self.cells * self.scale * float(gammaincc(self.cells + 1, radius / self.scale))


@dataclass(frozen=True, slots=True)
class GeometricNorm:
    """The l1 norm of n draws of double-sided geometric (discrete Laplace) noise, a = exp(-1/scale).

    |η| is 0 with probability (1-a)/(1+a), and otherwise 1 + G with P(G >= k) = aᵏ. Adding a G to
    a variable with upper tail T gives one with ``T'(s) = a T'(s-1) + (1-a) T(s)``: from that each
    further |η| is one pass of positive terms over s = 0..r, with nothing to overflow or cancel.
    The result is Zhu et al.'s ``(2aʳ⁺¹/(1+a)) Σ_{i<n} h_i(r) ((1-a)/(1+a))ⁱ``, whose h_i (Delannoy
    numbers) have hundreds of digits. Time O(n r).

    Attributes:
        cells: n, at least 1.
        scale: of the noise (records), above 0.
    """

    cells: int
    scale: float

    def outside(self, radius: float) -> float:
        """P(‖η‖₁ > r)."""
        return float(self._tail(self.cells, int(radius))[-1])

    def mean_outside(self, radius: float) -> float:
        """E[‖η‖₁; ‖η‖₁ > r], in records.

        By exchangeability n E[|η₁|; ‖η‖₁ > r]; |η₁| weighted by its size is 1 + G + G'.
        """
        a = np.exp(-1 / self.scale)
        mean = self.cells * 2 * a / ((1 - a) * (1 + a))
        if radius < 1:
            return float(mean)
        tail = self._tail(self.cells - 1, int(radius) - 1)
        return float(mean * self._plus_geometric(self._plus_geometric(tail))[-1])

    def _tail(self, cells: int, radius: int) -> Float64:
        """P(sum of so many |η| > s) for s = 0..radius."""
        a = np.exp(-1 / self.scale)
        tail = np.zeros(radius + 1)
        for _ in range(cells):
            further = np.concatenate(([1.0], self._plus_geometric(tail)[:-1]))
            tail = tail * ((1 - a) / (1 + a)) + further * (2 * a / (1 + a))
        return tail

    def _plus_geometric(self, tail: Float64) -> Float64:
        a = np.exp(-1 / self.scale)
        found: Float64 = lfilter([1 - a], [1, -a], tail, zi=[a])[0]
        return found


def bias_bound(norm: LaplaceNorm | GeometricNorm, smallest: float, total: float) -> float:
    """A bound (records) on the bias of every cell after (P₊) (Zhu et al., Theorem 11).

    ``C' P(‖η‖₁ > r)``: r is the smallest count of the family; C' = Σx - r is how far a feasible
    vector can be from the truth. Within the ball ‖η‖₁ <= r nothing is clipped and the error is
    symmetric.

    ``norm.mean_outside(r)``, E[‖η‖₁; ‖η‖₁ > r], is a bound, too, that does not grow with the total:
    the truth is feasible and a projection onto a convex set brings no two points further apart in
    l2, so ‖error‖_∞ <= ‖error‖₂ <= ‖η‖₂ <= ‖η‖₁, outside the ball as inside; the rest is the proof
    of Theorem 11, without C'.
    """
    return (total - smallest) * norm.outside(smallest)


def projected_variance(noise_variance: float, siblings: int) -> float:
    """The variance (records²) of a cell after (P_S): v (1 - 1/n).

    Zhu et al., Theorem 12 (2λ² (1 - 1/n) for Laplace noise), true of any independent noise of
    variance v: the error is ``((n-1) η_i - Σ_{j≠i} η_j) / n``. It rises to v with n (Theorem 13).
    """
    return noise_variance * (1 - 1 / siblings)


@dataclass(frozen=True)
class LaplaceProjection:
    """The error of a cell after (P_S) of n >= 2 cells with Laplace noise, in closed form.

    It is A + B: A is Laplace of scale s = λ(n-1)/n; B is the difference of two Gamma(m, β)
    variables, m = n - 1, β = λ/n. |B| is a mixture of Erlang(k, β), k = 1..m, with weights
    ``2 C(2m-k-1, m-1) 2^(k-2m)``: k events of a fair race to m are left when the other side has
    won. So the distribution is a sum of incomplete gamma functions with positive weights.

    Attributes:
        siblings: n.
        scale: λ (records).
    """

    siblings: int
    scale: float

    @cached_property
    def _race(self) -> tuple[Float64, Float64]:
        """The k = 1..m and their weights."""
        m = self.siblings - 1
        k = np.arange(1.0, m + 1)
        binomial = gammaln(2 * m - k) - gammaln(m) - gammaln(m - k + 1)
        return k, np.exp(binomial + (k + 1 - 2 * m) * np.log(2))

    def tail(self, distances: Float64) -> Float64:
        """P(error > x) for x >= 0 (float64, one dimension, records); by symmetry P(error < -x)."""
        k, weights = self._race
        m = self.siblings - 1
        x = distances[:, None] / (self.scale / self.siblings)
        down = weights * np.exp(-k * np.log1p(1 / m))
        beyond = gammaincc(k, x) @ weights / 2
        up = x[:, 0] if m == 1 else gammainc(k, x * (1 - 1 / m)) @ (weights / (1 - 1 / m) ** k)
        # exp(x/s) Q(k, x (1 + 1/m)) falls like exp(-x/β); beyond 600 it is below 1e-250.
        above = np.exp(np.minimum(x[:, 0], 600.0) / m) * (gammaincc(k, x * (1 + 1 / m)) @ down) / 4
        found: Float64 = beyond + (np.exp(-x[:, 0] / m) * (down.sum() + up) / 4) - above
        return found

    def distance(self) -> float:
        """The Wasserstein-1 distance (records) to the noise itself; it falls as n grows.

        ``2 ∫ |P(error > x) - exp(-x/λ)/2| dx`` over x >= 0. From n = 3 on the difference is
        positive near 0 and negative beyond one crossing, found first; for n = 2 it is of one sign.
        """

        def difference(u: float) -> float:
            return float(self.tail(np.array([self.scale * u]))[0] - np.exp(-u) / 2)

        crossing = brentq(difference, 1e-3, 8.0) if self.siblings > 2 else 1e-3
        parts = (
            quad(difference, *ends, epsabs=1e-13, epsrel=1e-11)[0]
            for ends in ((0, crossing), (crossing, crossing + 5), (crossing + 5, crossing + 40))
        )
        return float(2 * self.scale * sum(map(abs, parts)))


def projection_masses(noise: Float64, siblings: int) -> Float64:
    """The distribution of n times the error after (P_S), for any symmetric integer noise.

    Args:
        noise: float64 (2K + 1): P(η = x) for x = -K..K, cut where the rest is negligible.
        siblings: n >= 2.

    Returns:
        float64 (4(n-1)K + 1): P(n · error = x) for x = -2(n-1)K .. 2(n-1)K, to about 1e-15 each:
        by one Fourier transform, φ((n-1)t) φ(t)ⁿ⁻¹.
    """
    widest = 2 * (siblings - 1) * (len(noise) // 2)
    length = 2 * widest + 1
    rolled = np.roll(np.append(noise, np.zeros(length - len(noise))), -(len(noise) // 2))
    transform = np.fft.fft(rolled).real
    dilated = transform[np.arange(length) * (siblings - 1) % length]
    return np.maximum(np.roll(np.fft.ifft(dilated * transform ** (siblings - 1)).real, widest), 0.0)


def projection_distance(noise: Float64, siblings: int) -> float:
    """The Wasserstein-1 distance (records) between integer noise and the error after (P_S)."""
    masses = projection_masses(noise, siblings)
    half = len(noise) // 2
    own = np.zeros_like(masses)
    own[(len(masses) // 2) + siblings * np.arange(-half, half + 1)] = noise
    return float(np.abs(np.cumsum(masses - own)).sum() / siblings)
