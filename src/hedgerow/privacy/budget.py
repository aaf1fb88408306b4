"""What a release may spend: ρ of zero-concentrated, (ε, δ), or pure ε differential privacy."""

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from hedgerow.declared import Rational, Real
from hedgerow.errors import BudgetError
from hedgerow.noise.loss import InEpsilon, Price
from hedgerow.text import Exact

# What ρ-zCDP (Bun & Steinke 2016, Definition 1.1) says in terms of (ε, δ), rounded to the safe
# side. Decimal rounds sums, products and quotients as the context says, but roots and logarithms to
# the nearest digit: one digit up or down from there is the bound.

DIGITS = 60
RHO_DIGITS = 12
MOST_STEPS = 200
NEAR = Decimal("1e-25")
"""Of the best order: how many steps are taken towards it, and how near they come, relatively."""
_MOST = Fraction(10**300)  # what a float holds
_UP = Context(prec=DIGITS, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX)
_DOWN = Context(prec=DIGITS, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)
_FEW_DOWN = Context(prec=RHO_DIGITS, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX)


@lru_cache(maxsize=1 << 12)
def bun_steinke_epsilon(rho: Fraction, delta: Fraction) -> Decimal:
    """Return an upper bound, tight to 58 digits, of ε = ρ + 2√(ρ ln(1/δ)).

    ρ-zCDP implies (ε, δ)-differential privacy with that ε, for every δ in (0, 1): Bun & Steinke
    2016, Proposition 1.3. It is the figure that the US Census Bureau reports.
    """
    cost = _divided(_UP, rho)
    root = _root_above(_UP.multiply(cost, _log_inverse_above(delta)))
    return _UP.add(cost, _UP.multiply(Decimal(2), root))


@lru_cache(maxsize=1 << 12)
def optimal_epsilon(rho: Fraction, delta: Fraction) -> Decimal:
    """Return an upper bound of the least ε that the known optimal conversion of ρ-zCDP gives at δ.

    Canonne, Kamath & Steinke 2020, Proposition 12 with Corollary 13, at about the best order; every
    order is valid, so what is proved is the value at the order used, rounded up, and at least 0.
    Derivation: `docs/proofs/privacy.md`, "What ρ says of (ε, δ)".
    """
    order = _best_order(rho, delta)
    alpha_up = _UP.add(order, Decimal(1))
    alpha_down = _DOWN.add(order, Decimal(1))
    divergence = _UP.multiply(alpha_up, _divided(_UP, rho))
    shrink = _log_above(_UP.divide(order, alpha_down))
    tail = _UP.subtract(_log_inverse_above(delta), _log_below(alpha_down))
    epsilon = _UP.add(_UP.add(divergence, shrink), _UP.divide(tail, order))
    return max(epsilon, Decimal(0))


@lru_cache(maxsize=1 << 12)
def optimal_delta(rho: Fraction, epsilon: Fraction) -> Decimal:
    """Return an upper bound of the least δ that the known optimal conversion of ρ-zCDP gives at ε.

    The other way round of `optimal_epsilon`: with a = α - 1 > 0

        ln δ(a) = a((1+a)ρ - ε) + (1+a) ln(a/(1+a)) - ln a,

    whose derivative (1+2a)ρ - ε + ln(a/(1+a)) increases, so the best a is its only root. Every
    a > 0 is valid: what is proved is the value at the a used, rounded up; 1 at most.
    """
    low = -80.0
    high = 80.0
    cost = float(min(rho, _MOST))
    loss = float(epsilon)
    for _ in range(80):
        middle = (low + high) / 2
        slope = (1 + 2 * math.exp(middle)) * cost - loss - math.log1p(math.exp(-middle))
        low, high = (middle, high) if slope < 0 else (low, middle)
    order = Decimal(math.exp(low))
    alpha_up = _UP.add(order, Decimal(1))
    alpha_down = _DOWN.add(order, Decimal(1))
    excess = _UP.subtract(_UP.multiply(alpha_up, _divided(_UP, rho)), _divided(_DOWN, epsilon))
    shrink = _log_above(_UP.divide(order, alpha_down))
    gained = _UP.multiply(alpha_down if shrink < 0 else alpha_up, shrink)
    power = _UP.subtract(_UP.add(_UP.multiply(order, excess), gained), _log_below(order))
    return min(_UP.exp(power).next_plus(_UP), Decimal(1)) if power < 0 else Decimal(1)


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ρ of twelve significant digits that is proved to keep (ε, δ).

    The proof goes through `bun_steinke_epsilon`, as in the papers; the tight profile of a whole
    composition buys less noise.

    The result is lowered until the upper bound of its ε is seen to be within the budget, so the
    proof rests on that one comparison (`docs/proofs/privacy.md`, "What ρ says of (ε, δ)").

    Returns:
        ρ > 0 with a power of ten as its denominator (or reduced from one).
    """
    log_inverse = _log_inverse_above(delta)
    larger = _root_above(_UP.add(log_inverse, _divided(_UP, epsilon)))
    root = _DOWN.divide(_divided(_DOWN, epsilon), _UP.add(larger, _root_above(log_inverse)))
    rho = _FEW_DOWN.multiply(root, root)
    while Fraction(bun_steinke_epsilon(Fraction(rho), delta)) > epsilon:
        rho = rho.next_minus(_FEW_DOWN)
    return Fraction(rho)


def float_above(value: Fraction | Decimal) -> float:
    """Return the least binary float that is not below ``value``: a reported loss rounds upwards."""
    rounded = float(_divided(_UP, value) if isinstance(value, Fraction) else value)
    while rounded < value:  # Python compares floats with fractions and decimals exactly
        rounded = math.nextafter(rounded, math.inf)
    return rounded


def _best_order(rho: Fraction, delta: Fraction) -> Decimal:
    """Return about the root a of ρa² + ln(1+a) = ln(1/δ), by Newton's method between two bounds.

    The left side increases. Near the root the bound that is proved at a hardly changes with a.
    """
    rough = Context(prec=40, Emin=MIN_EMIN, Emax=MAX_EMAX)
    cost = _divided(rough, rho)
    target = _log_inverse_above(delta)
    low = Decimal(0)
    order = high = rough.sqrt(rough.divide(target, cost))
    for _ in range(MOST_STEPS):
        above = rough.add(order, Decimal(1))
        quadratic = rough.multiply(cost, order)
        reached = rough.add(rough.multiply(quadratic, order), rough.ln(above))
        excess = rough.subtract(reached, target)
        low, high = (order, high) if excess < 0 else (low, order)
        slope = rough.add(rough.multiply(Decimal(2), quadratic), rough.divide(Decimal(1), above))
        step = rough.divide(excess, slope)
        if step.copy_abs() <= rough.multiply(order, NEAR):
            break
        order = rough.subtract(order, step)
        if not low < order < high:
            order = rough.divide(rough.add(low, high), Decimal(2))
    return order


def _divided(context: Context, value: Fraction) -> Decimal:
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))


def _log_inverse_above(delta: Fraction) -> Decimal:
    return _log_above(_divided(_UP, 1 / delta))


def _log_above(value: Decimal) -> Decimal:
    return _UP.ln(value).next_plus(_UP)


def _log_below(value: Decimal) -> Decimal:
    return _DOWN.ln(value).next_minus(_DOWN)


def _root_above(value: Decimal) -> Decimal:
    return _UP.sqrt(value).next_plus(_UP)


@dataclass(frozen=True, slots=True, init=False)
class Rho:
    """A budget of ρ-zero-concentrated differential privacy (Bun & Steinke 2016, Definition 1.1).

    Attributes:
        rho: above 0, exact. Costs of a composition add.

    Example:
        >>> hr.Rho("1/2")
        Rho(rho=Fraction(1, 2))
    """

    rho: Fraction

    def __init__(self, rho: Exact) -> None:
        object.__setattr__(self, "rho", _amount(rho, "rho"))


@dataclass(frozen=True, slots=True, init=False)
class EpsilonDelta:
    """A budget of (ε, δ)-differential privacy: P[M(x) ∈ S] ≤ e^ε P[M(y) ∈ S] + δ for all S.

    Attributes:
        epsilon: above 0, exact.
        delta: strictly between 0 and 1, exact; far below one over the number of units.

    Example:
        >>> hr.EpsilonDelta("1", "1e-3")
        EpsilonDelta(epsilon=Fraction(1, 1), delta=Fraction(1, 1000))
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Exact, delta: Exact) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon, "epsilon"))
        object.__setattr__(self, "delta", DELTA(delta))


@dataclass(frozen=True, slots=True, init=False)
class Epsilon:
    """A budget of pure ε-differential privacy: P[M(x) ∈ S] ≤ e^ε P[M(y) ∈ S] for all S.

    Attributes:
        epsilon: above 0, exact. Costs of a composition add.

    Example:
        >>> hr.Epsilon("0.5")
        Epsilon(epsilon=Fraction(1, 2))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Exact) -> None:
        object.__setattr__(self, "epsilon", _amount(epsilon, "epsilon"))


LARGEST, SMALLEST = 10**6, Fraction(1, 10**100)
"""Budgets of which anything can be computed in doubles: noise of a smaller one is 10⁵⁰ records and
more wide."""
AMOUNT = Rational(
    "a budget", 0, LARGEST, BudgetError, ends="(]", why="beyond which nothing is protected"
)
DELTA = Rational(
    "delta",
    0,
    1,
    BudgetError,
    'take it well below 1 over the number of records, such as "1e-10", or, for pure differential '
    "privacy, leave delta out and use the discrete Laplace mechanism",
    ends="()",
)
FINITE_EPSILON = Real("epsilon", -math.inf, math.inf, BudgetError, ends="()")
WELL_BELOW = "well below 1 over the number of records (1e-8 for a hundred thousand)"
WEAK_DELTA = Fraction(1, 10**5)

Budget = Rho | EpsilonDelta | Epsilon


def budget_in(price: Price, amount: Fraction) -> Rho | Epsilon:
    """Return the budget of this amount of what noise is bought with."""
    return Epsilon(amount) if isinstance(price, InEpsilon) else Rho(amount)


def value_of(budget: Budget) -> Fraction:
    """Return its one number that grows with it: ρ, or ε."""
    return budget.rho if isinstance(budget, Rho) else budget.epsilon


def with_value(budget: Budget, value: Fraction) -> Budget:
    """Return a budget of the same kind, and at the same δ."""
    if isinstance(budget, EpsilonDelta):
        return EpsilonDelta(value, budget.delta)
    return type(budget)(value)


def weakness(budget: Budget) -> str | None:
    """Return what a budget whose δ is above 1e-5 permits, in a sentence; None for others.

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
    """Raise unless the value is a budget; a bare number does not say whether it is ρ or ε."""
    if not isinstance(budget, Rho | EpsilonDelta | Epsilon):
        raise BudgetError(
            'a budget says of what it is: Rho("1"), EpsilonDelta("1", "1e-10") or Epsilon("1"); '
            f"got {budget!r}"
        )


def _amount(value: Exact, name: str) -> Fraction:
    amount = AMOUNT(value, name)
    if amount < SMALLEST:
        raise BudgetError(f"{name} must be at least 1e-100; less buys nothing but noise")
    return amount
