"""What a composition of noisy measurements promises.

Every figure here is proved through zero-concentrated differential privacy or, for discrete Laplace
noise alone, by adding pure ε. Binary floats that leave this module are rounded up: towards more
reported loss.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from hedgerow.errors import BudgetError
from hedgerow.noise.mechanisms import DiscreteLaplace, Mechanism
from hedgerow.noise.numerals import Exact, exact
from hedgerow.privacy.budget import probability
from hedgerow.privacy.neighbours import l1, l2_squared
from hedgerow.privacy.zcdp import float_above, optimal_epsilon

_SHOWN = Context(prec=6, rounding=ROUND_CEILING)


@dataclass(frozen=True, slots=True)
class Use:
    """One mechanism, used ``times`` times on counts that one unit moves by ``shifts``.

    Attributes:
        mechanism: the noise that every count gets.
        times: how often, at least 1.
        shifts: the worst change that one unit makes, each entry in a node of its own (records).
    """

    mechanism: Mechanism
    times: int
    shifts: tuple[int, ...]

    def __post_init__(self) -> None:
        if type(self.times) is not int or self.times < 1:
            raise BudgetError(f"a mechanism is used at least once, got {self.times!r} times")
        if not self.shifts or any(type(s) is not int or s == 0 for s in self.shifts):
            raise BudgetError(
                f"shifts must be whole numbers other than 0, got {self.shifts!r}; "
                "counts that no unit can change are public and need no noise"
            )

    @property
    def rho(self) -> Fraction:
        """The zCDP cost of all times together; costs add (Bun & Steinke 2016, Lemma 2.3)."""
        return self.times * self.mechanism.rho(l2_squared(self.shifts))

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The pure ε of all times together, Δ₁/scale each; None for Gaussian noise."""
        if isinstance(self.mechanism, DiscreteLaplace):
            return self.times * self.mechanism.epsilon(l1(self.shifts))
        return None

    def to_dict(self) -> dict[str, Any]:
        """The use as JSON takes it; fractions are text."""
        mechanism = self.mechanism
        parameter = "scale" if isinstance(mechanism, DiscreteLaplace) else "sigma2"
        return {
            "mechanism": mechanism.name,
            parameter: str(mechanism.parameter),
            "times": self.times,
            "shifts": list(self.shifts),
        }


@dataclass(frozen=True, slots=True)
class Profile:
    """What all uses together promise, also when each is chosen after seeing the ones before.

    Attributes:
        uses: at least one.
    """

    uses: tuple[Use, ...]

    def __post_init__(self) -> None:
        if not self.uses:
            raise BudgetError("a composition of no mechanisms promises nothing; name at least one")

    @property
    def rho(self) -> Fraction:
        """ρ such that the composition is ρ-zCDP: the sum over the uses, exact."""
        return sum((use.rho for use in self.uses), Fraction(0))

    @property
    def pure_epsilon(self) -> Fraction | None:
        """ε such that the composition is ε-differentially private, exact; None if there is none."""
        each = [use.pure_epsilon for use in self.uses]
        known = [epsilon for epsilon in each if epsilon is not None]
        return sum(known, Fraction(0)) if len(known) == len(each) else None

    def epsilon(self, delta: Exact | float) -> float:
        """ε such that the composition is (ε, δ)-differentially private, rounded up.

        The smaller of the optimal conversion of ρ (Canonne, Kamath & Steinke 2020, Corollary 13)
        and the pure ε, where there is one.

        Args:
            delta: in (0, 1). A binary float is allowed in this question, and stands for the
                smaller of its own value and of the decimal that it prints as.

        Raises:
            BudgetError: δ outside (0, 1), or no number.
        """
        bound = float_above(optimal_epsilon(self.rho, probability(_asked(delta, "delta"))))
        pure = self.pure_epsilon
        return bound if pure is None else min(bound, float_above(pure))

    def statement(self, delta: Exact | float | None = None) -> str:
        """The promise as a sentence; with ``delta``, also as (ε, δ). Figures are rounded up."""
        pure = self.pure_epsilon
        promise = (
            f"ρ = {_shown(self.rho)} zero-concentrated differential privacy"
            if pure is None
            else f"ε = {_shown(pure)} differential privacy"
        )
        if delta is None:
            return f"The release satisfies {promise}."
        implied = f"ε = {_shown(Fraction(self.epsilon(delta)))} at δ = {delta}"
        return f"The release satisfies {promise}, and {implied}."

    def to_dict(self) -> dict[str, Any]:
        """The composition and its exact costs as JSON takes them; fractions are text."""
        pure = self.pure_epsilon
        return {
            "uses": [use.to_dict() for use in self.uses],
            "rho": str(self.rho),
            "pure_epsilon": None if pure is None else str(pure),
        }


def _asked(value: Exact | float, what: str) -> Fraction:
    """The exact value of a question: of a float, the smaller of what it is and what it prints."""
    if isinstance(value, float):
        printed = exact(str(float(value)), what, BudgetError)
        return min(Fraction(value), printed)
    return exact(value, what, BudgetError)


def _shown(value: Fraction) -> str:
    """Six significant digits, rounded up."""
    return f"{float(_SHOWN.divide(Decimal(value.numerator), Decimal(value.denominator))):g}"
