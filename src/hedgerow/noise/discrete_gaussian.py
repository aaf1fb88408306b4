"""Discrete Gaussian noise: parameter, exact draws, price, privacy loss and law of its error."""

import math
from fractions import Fraction
from typing import ClassVar, Self

from scipy.special import ndtri_exp

from hedgerow.arrays import Int64
from hedgerow.declared import frozen
from hedgerow.noise import rejection as draws
from hedgerow.noise.bits import Stream
from hedgerow.noise.cell_error import CellError, DiscreteGaussianError
from hedgerow.noise.envelope import Envelope, NormalEnvelope
from hedgerow.noise.inversion import Law, certified_tail_bound
from hedgerow.noise.loss import (
    SENSITIVITY,
    TAIL,
    GaussianLoss,
    InRho,
    Price,
    round_up,
    scale_of_noise,
)
from hedgerow.text import Exact

LARGEST_SIGMA2 = Fraction(1 << 112)
SIGMA2 = scale_of_noise("sigma2", LARGEST_SIGMA2)


@frozen(init=False, repr=False)
class DiscreteGaussian:
    """P(X = x) ∝ exp(-x² / (2 sigma2)) on the integers (Canonne, Kamath, Steinke 2020, Def. 1).

    Args:
        sigma2: exact: an int, a string ("1/2", "0.25"), a Fraction or a Decimal. At most 2¹¹², so
            that P(|X| >= 2⁶²) < 2 exp(-2¹¹) and every draw fits an int64 with room to be added to.

    Raises:
        NoiseError: sigma2 is a float, not a number, not positive or too large.

    Example:
        >>> noise = hr.DiscreteGaussian("25/2")
        >>> noise.sample(3).shape, noise.rho(l2_squared=1), noise.tail_bound(0.05)
        ((3,), Fraction(1, 25), 7)
    """

    name: ClassVar[str] = "discrete-gaussian"
    key: ClassVar[str] = "sigma2"
    symbol: ClassVar[str] = "σ²"
    price: ClassVar[Price] = InRho(variance=Fraction(1, 2))
    cell_error: ClassVar[CellError] = DiscreteGaussianError()
    loss_is_exact: ClassVar[bool] = True
    sigma2: Fraction

    def __init__(self, sigma2: Exact) -> None:
        object.__setattr__(self, "sigma2", SIGMA2(sigma2))

    def __repr__(self) -> str:
        return f'DiscreteGaussian(sigma2="{self.sigma2}")'

    @classmethod
    def with_precision(cls, precision: Fraction) -> Self:
        """Return σ² = 1/(2ρ)."""
        return cls(1 / (2 * precision))

    @property
    def parameter(self) -> Fraction:
        """The sigma2."""
        return self.sigma2

    @property
    def law(self) -> Law:
        """The law of the noise: x²/2sigma2 = |x|/2sigma2 + |x|(|x|-1)/2sigma2."""
        return Law(1 / (2 * self.sigma2), 1 / self.sigma2)

    @property
    def noise_variance(self) -> float:
        """The true variance in records², to about 1e-13 relative; less than sigma2.

        From sigma2 = 5 on it is sigma2 to the last bit: by Poisson summation, the relative
        difference is below 8π²sigma2 exp(-2π²sigma2) < 1e-39.
        """
        if self.sigma2 >= 5:
            return float(self.sigma2)
        if self.sigma2 < Fraction(1, 1600):  # exp(-800) is 0 in floating point
            return 0.0
        halved = float(1 / (2 * self.sigma2))
        weights = [math.exp(-x * x * halved) for x in range(1, 100)]
        second = math.fsum(x * x * weight for x, weight in enumerate(weights, start=1))
        return 2 * second / (1 + 2 * math.fsum(weights))

    @property
    def chance_of_zero(self) -> float:
        """P(X = 0) = 1/Σ exp(-x²/2σ²); from σ² = 5 on 1/√(2πσ²), to 1e-42 by Poisson summation."""
        parameter = float(self.sigma2)
        if parameter >= 5:
            return 1 / math.sqrt(2 * math.pi * parameter)
        falls = (math.exp(-x * x / (2 * parameter)) for x in range(1, 100))
        return 1 / (1 + 2 * math.fsum(falls))

    @property
    def envelope(self) -> Envelope:
        """The normal law of variance σ²."""
        return NormalEnvelope(float(self.sigma2))

    def sample(self, n: int) -> Int64:
        """Return draws under a fresh key of the operating system: int64 (n)."""
        return draws.sample(self.law, n)

    def draw(self, stream: Stream, start: int, out: Int64) -> None:
        """Write the noise of cells ``start .. start + len(out) - 1`` of a stream to ``out``."""
        draws.draw(self.law, stream, start, out)

    def tail_bound(self, probability: float) -> int:
        """Return the least k with P(|X| > k) <= probability; or a bit more for sigma2 > 4096.

        Small parameters: certified tails. Large ones: the sum over x > k of exp(-x²/2sigma2) is at
        most the integral from k, and the sum over all x is at least sqrt(2π sigma2) (Poisson), so
        P(|X| > k) <= 2 Φ(-k/σ).
        """
        probability = TAIL(probability)
        if self.sigma2 <= 4096:
            return certified_tail_bound(self.law, probability)
        deviations = -float(ndtri_exp(math.log(probability) - math.log(2)))
        return math.ceil(math.sqrt(self.sigma2) * round_up(deviations))

    def rho(self, l2_squared: Fraction) -> Fraction:
        """Return the zCDP parameter of one use: l2² / (2 sigma2).

        Canonne, Kamath, Steinke (2020), Theorem 4, for one integer query; the coordinates' noise is
        independent, so their Rényi divergences add (Bun and Steinke 2016, Lemma 1.7).

        Args:
            l2_squared: the squared l2 norm (records²) of an integer vector: what one unit changes.
        """
        return SENSITIVITY(l2_squared, "l2_squared") / (2 * self.sigma2)

    def epsilon(self, l1: Fraction) -> None:
        """Return None: the privacy loss has no bound.

        Args:
            l1: the l1 norm (records) of an integer vector: what one unit changes.
        """

    def loss(self, shift: int) -> GaussianLoss:
        """Return the law of the privacy loss of one use on a count that moves by ``shift``."""
        return GaussianLoss(self.sigma2, abs(shift))
