"""Discrete Laplace noise: parameter, exact draws, price, privacy loss and law of its error."""

import math
from fractions import Fraction
from typing import ClassVar, Self

from hedgerow.arrays import Int64
from hedgerow.declared import frozen
from hedgerow.noise import rejection as draws
from hedgerow.noise.bits import Stream
from hedgerow.noise.cell_error import CellError, DiscreteLaplaceError
from hedgerow.noise.envelope import Envelope, LaplaceEnvelope
from hedgerow.noise.inversion import Law, certified_tail_bound
from hedgerow.noise.loss import (
    SENSITIVITY,
    TAIL,
    InEpsilon,
    LaplaceLoss,
    Price,
    round_up,
    scale_of_noise,
)
from hedgerow.text import Exact

LARGEST_SCALE = Fraction(1 << 52)
SCALE = scale_of_noise("scale", LARGEST_SCALE)


@frozen(init=False, repr=False)
class DiscreteLaplace:
    """P(X = x) ∝ exp(-|x| / scale) on the integers (Ghosh, Roughgarden, Sundararajan 2009).

    Args:
        scale: exact: an int, a string ("1/2", "0.25"), a Fraction or a Decimal. At most 2⁵², so
            that P(|X| >= 2⁶²) < 2 exp(-2¹⁰) and every draw fits an int64 with room to be added to.

    Raises:
        NoiseError: scale is a float, not a number, not positive or too large.

    Example:
        >>> noise = hr.DiscreteLaplace("2")
        >>> noise.sample(3).shape, noise.epsilon(l1=1), noise.tail_bound(0.05)
        ((3,), Fraction(1, 2), 6)
    """

    name: ClassVar[str] = "discrete-laplace"
    key: ClassVar[str] = "scale"
    symbol: ClassVar[str] = "scale"
    price: ClassVar[Price] = InEpsilon(variance=Fraction(2))
    cell_error: ClassVar[CellError] = DiscreteLaplaceError()
    loss_is_exact: ClassVar[bool] = True
    scale: Fraction

    def __init__(self, scale: Exact) -> None:
        object.__setattr__(self, "scale", SCALE(scale))

    def __repr__(self) -> str:
        return f'DiscreteLaplace(scale="{self.scale}")'

    @classmethod
    def with_precision(cls, precision: Fraction) -> Self:
        """Return the scale 1/ε."""
        return cls(1 / precision)

    @property
    def parameter(self) -> Fraction:
        """The scale."""
        return self.scale

    @property
    def law(self) -> Law:
        """The law of the noise."""
        return Law(1 / self.scale, Fraction(0))

    @property
    def noise_variance(self) -> float:
        """The true variance in records², 2q/(1-q)² with q = exp(-1/scale), to 1e-13 relative."""
        if self.scale < Fraction(1, 800):  # exp(-800) is 0 in floating point
            return 0.0
        rate = float(1 / self.scale)
        return 2 * math.exp(-rate) / math.expm1(-rate) ** 2

    @property
    def chance_of_zero(self) -> float:
        """P(X = 0) = tanh(1/(2 scale))."""
        return math.tanh(0.5 / float(self.scale))

    @property
    def envelope(self) -> Envelope:
        """The Laplace law of the same scale, of variance 2 scale²."""
        return LaplaceEnvelope(2 * float(self.scale) ** 2)

    def sample(self, n: int) -> Int64:
        """Return draws under a fresh key of the operating system: int64 (n)."""
        return draws.sample(self.law, n)

    def draw(self, stream: Stream, start: int, out: Int64) -> None:
        """Write the noise of cells ``start .. start + len(out) - 1`` of a stream to ``out``."""
        draws.draw(self.law, stream, start, out)

    def tail_bound(self, probability: float) -> int:
        """Return the least k with P(|X| > k) <= probability; or a bit more for scale > 64.

        Large scales: P(|X| > k) = 2 q**(k+1) / (1+q), q = exp(-1/scale).
        """
        probability = TAIL(probability)
        if self.scale <= 64:
            return certified_tail_bound(self.law, probability)
        scale = float(self.scale)
        needed = math.log(2 / (1 + math.exp(-1 / scale))) - math.log(probability)
        return max(0, math.ceil(scale * round_up(needed)) - 1)

    def epsilon(self, l1: Fraction) -> Fraction:
        """Return the pure privacy loss of one use: l1 / scale (Ghosh et al. 2009, Section 2).

        Args:
            l1: the l1 norm (records) of an integer vector: what one unit changes.
        """
        return SENSITIVITY(l1, "l1") / self.scale

    def rho(self, l2_squared: Fraction) -> Fraction:
        """Return a zCDP parameter of one use: l2² / (2 scale²).

        A coordinate that moves by m is (m/scale)-DP, hence (m/scale)²/2-zCDP (Bun and Steinke 2016,
        Proposition 1.4); the coordinates' noise is independent, so these add (Lemma 1.7).

        Args:
            l2_squared: the squared l2 norm (records²) of an integer vector: what one unit changes.
        """
        return SENSITIVITY(l2_squared, "l2_squared") / (2 * self.scale**2)

    def loss(self, shift: int) -> LaplaceLoss:
        """Return the law of the privacy loss of one use on a count that moves by ``shift``."""
        return LaplaceLoss(self.scale, abs(shift))
