"""What buys noise: ρ against the l2 norm of a change, or pure ε against its l1 norm.

The *precision* of noise is what one use of it costs if a unit changes one count by one record. A
budget b spent on a change of sensitivity Δ (squared, where the norm is the second) buys the
precision b/Δ, and the variance of wide noise is V over a power of its precision.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

from hedgerow.errors import NoiseError


class Priced(Protocol):
    """Noise with the costs of one use of it."""

    def rho(self, l2_squared: Fraction) -> Fraction:
        """The zCDP parameter of one use whose l2 sensitivity has this square."""

    def epsilon(self, l1: Fraction) -> Fraction | None:
        """The pure ε of one use of this l1 sensitivity; None where there is none."""


@dataclass(frozen=True, slots=True)
class InRho:
    """Noise that is bought with ρ, or with the ρ that an (ε, δ) budget allows.

    Attributes:
        variance: V, the variance of wide noise of precision 1: that of precision p is V/p.
    """

    norm: ClassVar[int] = 2
    power: ClassVar[int] = 1
    variance: Fraction

    def cost(self, noise: Priced, sensitivity: Fraction) -> Fraction:
        """The ρ of one use, of this squared l2 norm (records²)."""
        return noise.rho(sensitivity)


@dataclass(frozen=True, slots=True)
class InEpsilon:
    """Noise that is bought with pure ε.

    Attributes:
        variance: V, the variance of wide noise of precision 1: that of precision p is V/p².
    """

    norm: ClassVar[int] = 1
    power: ClassVar[int] = 2
    variance: Fraction

    def cost(self, noise: Priced, sensitivity: Fraction) -> Fraction:
        """The pure ε of one use, of this l1 norm (records).

        Raises:
            NoiseError: the noise has none.
        """
        found = noise.epsilon(sensitivity)
        if found is None:
            raise NoiseError(
                f"{type(noise).__name__} is priced in epsilon, but its epsilon(l1) is None: "
                f"return the proved pure epsilon, or price it InRho"
            )
        return found


Price = InRho | InEpsilon
"""By which budget noise is bought, and how its variance falls with what it gets of it."""


class Bought(Priced, Protocol):
    """Noise that knows what it is bought with."""

    price: ClassVar[Price]


def precision_of(noise: Bought) -> Fraction:
    """The precision of noise: ρ = 1/(2 sigma2) of a discrete Gaussian, ε = 1/scale of a Laplace."""
    return noise.price.cost(noise, Fraction(1))
