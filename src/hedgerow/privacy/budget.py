"""What a release may spend: ρ of zero-concentrated, (ε, δ), or pure ε differential privacy."""

from dataclasses import dataclass
from fractions import Fraction

from hedgerow.errors import BudgetError
from hedgerow.noise.price import InEpsilon, Price
from hedgerow.numerals import Exact, exact


@dataclass(frozen=True, slots=True, init=False)
class Rho:
    """A budget of ρ-zero-concentrated differential privacy (Bun & Steinke 2016, Definition 1.1).

    Attributes:
        rho: above 0, exact. Costs of a composition add.
    """

    rho: Fraction

    def __init__(self, rho: Exact) -> None:
        object.__setattr__(self, "rho", _positive(rho, "rho"))


@dataclass(frozen=True, slots=True, init=False)
class EpsilonDelta:
    """A budget of (ε, δ)-differential privacy: P[M(x) ∈ S] ≤ e^ε P[M(y) ∈ S] + δ for all S.

    Attributes:
        epsilon: above 0, exact.
        delta: strictly between 0 and 1, exact; far below one over the number of units.
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exact, delta: Exact) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", probability(exact(delta, "delta", BudgetError)))


@dataclass(frozen=True, slots=True, init=False)
class Epsilon:
    """A budget of pure ε-differential privacy: P[M(x) ∈ S] ≤ e^ε P[M(y) ∈ S] for all S.

    Attributes:
        epsilon: above 0, exact. Costs of a composition add.
    """

    epsilon: Fraction

    def __init__(self, epsilon: Exact) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))


LARGEST, SMALLEST = 10**6, Fraction(1, 10**100)
"""Budgets of which anything can be computed in doubles: noise of a smaller one is 10⁵⁰ records and
more wide."""
WELL_BELOW = "well below 1 over the number of records (1e-8 for a hundred thousand)"
WEAK_DELTA = Fraction(1, 10**5)

Budget = Rho | EpsilonDelta | Epsilon


def budget_in(price: Price, amount: Fraction) -> Rho | Epsilon:
    """The budget of this amount of what noise is bought with."""
    return Epsilon(amount) if isinstance(price, InEpsilon) else Rho(amount)


def weakness(budget: Budget) -> str | None:
    """What a budget whose δ is above 1e-5 permits, in a sentence; None for others.

    Publishing the records of each unit as they are with probability δ, independently of others, is
    (0, δ)-differentially private: that is all that δ promises.
    """
    if not isinstance(budget, EpsilonDelta) or budget.delta <= WEAK_DELTA:
        return None
    return (
        f"delta = {float(budget.delta):g} is weak: it would permit publishing each record as it is "
        f"with a chance of {float(budget.delta):g}, however small epsilon; take a delta "
        f"{WELL_BELOW}"
    )


def check_budget(budget: object) -> None:
    """Refuse what is no budget, such as a bare number: of what, ρ or ε, it does not say.

    Raises:
        BudgetError: it is none.
    """
    if not isinstance(budget, Rho | EpsilonDelta | Epsilon):
        raise BudgetError(
            'a budget says of what it is: Rho("1"), EpsilonDelta("1", "1e-10") or Epsilon("1"); '
            f"got {budget!r}"
        )


def probability(delta: Fraction) -> Fraction:
    """``delta`` itself, strictly between 0 and 1.

    Raises:
        BudgetError: it is not.
    """
    if delta == 0:
        raise BudgetError(
            "delta must be in (0, 1), got 0; for pure differential privacy leave delta out "
            "and use the discrete Laplace mechanism"
        )
    if not 0 < delta < 1:
        raise BudgetError(
            f"delta must be in (0, 1), got {delta}; it bounds the chance that the promise fails, "
            'so make it tiny, such as "1e-10"'
        )
    return delta


def _positive(value: Exact, what: str) -> Fraction:
    number = exact(value, what, BudgetError)
    if number <= 0:
        raise BudgetError(f"{what} must be above 0, got {number}; nothing can be released for free")
    if number < SMALLEST:
        raise BudgetError(f"{what} must be at least 1e-100; less buys nothing but noise")
    if number > LARGEST:
        raise BudgetError(f"{what} must be at most {LARGEST:,}; beyond that nothing is protected")
    return number
