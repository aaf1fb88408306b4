"""Mechanisms of one's own, for tests alone: they look at nothing but the interface.

Each is the sum of two draws, so its price is that of one draw: the other is post-processing.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, exp, sqrt
from typing import Any, ClassVar

import numpy as np

from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.cell_error import PRECISION, CellError, whole_counts
from hedgerow.noise.envelope import LaplaceEnvelope, NormalEnvelope
from hedgerow.noise.loss import InEpsilon, InRho, PairLoss
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace


class TwoDraws:
    """What sums of two draws of another mechanism have in common; ``one`` is the other."""

    one: Any

    @property
    def parameter(self):
        return self.one.parameter

    @property
    def noise_variance(self):
        return 2 * self.one.noise_variance

    def sample(self, n):
        out = np.empty(n, dtype=np.int64)
        self.draw(ReleaseKey.fresh().stream(), 0, out)
        return out

    def draw(self, stream, start, out):
        both = np.empty(2 * len(out), dtype=np.int64)
        self.one.draw(stream, 2 * start, both)
        np.add(both[::2], both[1::2], out=out)

    def tail_bound(self, probability):
        return 2 * self.one.tail_bound(probability / 2)

    def rho(self, l2_squared):
        return self.one.rho(l2_squared)

    def epsilon(self, l1):
        return self.one.epsilon(l1)


class TwoLaplaceError(CellError):
    """With P(x) = c² q^|x| (|x| + a), c = (1-q)/(1+q), a = (1+q²)/(1-q²); sums of x^k q^x."""

    def bias(self, parameter, counts):
        n, q, c, a = self._parts(parameter, counts)
        return c**2 * q**n * (self._sum(2, q) + (n + a) * self._sum(1, q))

    def mse(self, parameter, counts):
        n, q, c, a = self._parts(parameter, counts)
        s1, s2, s3 = (self._sum(k, q) for k in (1, 2, 3))
        missing = s3 + (3 * n + a) * s2 + 2 * n * (n + a) * s1
        return 4 * q / (1 - q) ** 2 - c**2 * q**n * missing

    def _parts(self, parameter, counts):
        q = exp(-PRECISION(parameter))
        return whole_counts(counts), q, (1 - q) / (1 + q), (1 + q * q) / (1 - q * q)

    @staticmethod
    def _sum(k, q):
        """Σ y^k q^y over y from 1 on."""
        above = {1: q, 2: q * (1 + q), 3: q * (1 + 4 * q + q * q)}[k]
        return above / (1 - q) ** (k + 1)


@dataclass(frozen=True)
class TwoLaplace(TwoDraws):
    """Priced in ε, by which its loss is told: that pair of laws dominates it."""

    name: ClassVar[str] = "two-laplace"
    key: ClassVar[str] = "scale"
    symbol: ClassVar[str] = "scale"
    price: ClassVar[Any] = InEpsilon(variance=Fraction(4))
    cell_error: ClassVar[CellError] = TwoLaplaceError()
    loss_is_exact: ClassVar[bool] = False
    one: DiscreteLaplace

    def __init__(self, scale):
        object.__setattr__(self, "one", DiscreteLaplace(scale))

    @classmethod
    def with_precision(cls, precision):
        return cls(1 / precision)

    @property
    def chance_of_zero(self):
        q = exp(-1 / float(self.one.scale))
        return (1 - q) ** 2 / (1 + q) ** 2 * (1 + q * q) / (1 - q * q)

    @property
    def envelope(self):
        """1/(1 - λ²b²)² <= 1/(1 - 2λ²b²)."""
        return LaplaceEnvelope(4 * float(self.one.scale) ** 2)

    def loss(self, shift):
        return PairLoss(self.epsilon(Fraction(abs(shift))), Fraction(0))


class TwoGaussianError(CellError):
    """By plain sums over the law of two draws with sigma2 = 1/(2ρ) each."""

    def bias(self, parameter, counts):
        return self._mean(parameter, counts, 1)

    def mse(self, parameter, counts):
        return self._mean(parameter, counts, 2)

    def _mean(self, parameter, counts, power):
        reach = ceil(10 / sqrt(2 * PRECISION(parameter))) + 10
        x = np.arange(-reach, reach + 1)
        weights = np.exp(-parameter * x * x)
        law = np.convolve(weights, weights) / weights.sum() ** 2
        both = np.arange(-2 * reach, 2 * reach + 1)
        errors = np.maximum(both, -whole_counts(counts)[..., None])
        return (errors**power) @ law


@dataclass(frozen=True)
class TwoGaussian(TwoDraws):
    """Priced in ρ. Its loss is that of one draw, which dominates it."""

    name: ClassVar[str] = "two-gaussian"
    key: ClassVar[str] = "sigma2"
    symbol: ClassVar[str] = "σ²"
    price: ClassVar[Any] = InRho(variance=Fraction(1))
    cell_error: ClassVar[CellError] = TwoGaussianError()
    loss_is_exact: ClassVar[bool] = False
    one: DiscreteGaussian

    def __init__(self, sigma2):
        object.__setattr__(self, "one", DiscreteGaussian(sigma2))

    @classmethod
    def with_precision(cls, precision):
        return cls(1 / (2 * precision))

    @property
    def chance_of_zero(self):
        x = np.arange(-self.one.tail_bound(1e-18), self.one.tail_bound(1e-18) + 1)
        weights = np.exp(-x * x / (2 * float(self.one.sigma2)))
        return float((weights**2).sum() / weights.sum() ** 2)

    @property
    def envelope(self):
        return NormalEnvelope(2 * float(self.one.sigma2))

    def loss(self, shift):
        return self.one.loss(shift)
