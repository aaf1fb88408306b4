"""How much noise a budget buys: from shares and what one unit changes to noise parameters."""

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from scipy.optimize import brentq

from hedgerow.errors import BudgetError
from hedgerow.noise.loss import InEpsilon, InRho, Price, precision_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.privacy.accountant.accountant import SMALLEST_DELTA
from hedgerow.privacy.accountant.domination import gaussian_delta_above
from hedgerow.privacy.accountant.lattice_convolution import TooFineError
from hedgerow.privacy.budget import (
    WELL_BELOW,
    Budget,
    Epsilon,
    EpsilonDelta,
    check_budget,
    rho_within,
)
from hedgerow.privacy.neighbours import Change, Changes, in_case, l1, l2_squared
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.use import Use
from hedgerow.text import Exact

DOUBT = 1e-7
"""By how much, relatively, certified bounds of δ may differ between two machines."""
NEAR = 1e-3
"""How far from that of continuous noise, in its logarithm, the base is sought first."""
CERTAIN = Fraction(1, 10**6)
"""How far above the true figure, relatively, a bound of δ is at most by round-off
(`accountant.delta_bounds`)."""
SMALLER = Fraction(1, 10**8)
"""By how much an ε is smaller that needs no search: more than what a search may be wrong by."""
_LOG_INVERSES = -30.0, 60.0

_DIGITS = Context(prec=6, rounding=ROUND_CEILING)


def calibrate(
    mechanism: type[Mechanism],
    budget: Budget,
    shares: Sequence[Fraction],
    changes: Sequence[Changes],
    *,
    is_worst: bool = True,
    inverse_two_rho: Fraction | None = None,
) -> Profile:
    """Return the composition that spends the budget in the given shares, one use a measured depth.

    Noise that is priced in ρ has the precision s_ℓ ρ/(p Δ₂²) (discrete Gaussian noise:
    σ²_ℓ = p Δ₂²/(2 s_ℓ ρ)); an (ε, δ) budget first becomes the largest ρ whose profile keeps it
    (`_widest`). Noise that is priced in pure ε has the precision s_ℓ ε/(p Δ₁) (discrete Laplace
    noise: scale_ℓ = p Δ₁/(s_ℓ ε)). Here Δ is the sensitivity of the depth, and p the `worst_part`
    that one unit can incur of all depths' own costs, so that the worst case costs all of the
    budget, exactly. Where there is one case, p = 1 and depth ℓ costs its share of the budget. Where
    there are several, shares are relative: a depth by itself costs s_ℓ/p of the budget, and no unit
    incurs that at every depth.

    Args:
        mechanism: `DiscreteGaussian` with `Rho` or `EpsilonDelta`, `DiscreteLaplace` with
            `Epsilon`, or one of your own with what it is priced in.
        budget: what all depths together may cost.
        shares: one a measured depth, above 0, summing to exactly 1.
        changes: one a measured depth: what one unit changes there, in each case
            (`Neighbours.changes`).
        is_worst: see `Profile.is_worst`; without it (ε, δ) rests on a proved bound.
        inverse_two_rho: 1/(2ρ) as an earlier calibration of an (ε, δ) budget found it, to be
            verified instead of found again: the last digits of a search differ between machines.
    """
    check_budget(budget)
    _check_shares(shares, changes)
    check_spendable(mechanism, budget)
    bought = partial(_bought, mechanism, shares, changes, is_worst)
    if not isinstance(budget, EpsilonDelta):
        return bought(budget.epsilon if isinstance(budget, Epsilon) else budget.rho)
    if inverse_two_rho is None:
        return _widest(bought, budget)
    profile = bought(1 / (2 * inverse_two_rho))
    if _excess(profile, budget) > DOUBT:
        raise BudgetError("the noise does not keep the (epsilon, delta) budget")
    return profile


def check_spendable(mechanism: type[Mechanism], budget: Budget) -> None:
    """Raise unless the budget is one that the mechanism is bought with."""
    if isinstance(budget, Epsilon) != isinstance(mechanism.price, InEpsilon):
        raise BudgetError(_no_such_pair(mechanism, budget))


def norm_of(price: Price) -> Callable[[Change], Fraction]:
    """Return the norm of a change that a cost in ρ or in pure ε is proportional to."""
    return l1 if price.norm == 1 else l2_squared


def worst_part(
    shares: Sequence[Fraction],
    changes: Sequence[Changes],
    norm: Callable[[Change], Fraction],
) -> Fraction:
    """Return the part of all depths' worst costs, in their shares, that one unit can incur.

        p = max over the cases k of Σ_ℓ s_ℓ ‖change_ℓk‖/Δ_ℓ,   Δ_ℓ = max over k of ‖change_ℓk‖

    Args:
        shares: one a depth, summing to 1.
        changes: one a depth, of the same cases (`Neighbours.changes`), not all ().
        norm: `l2_squared` for ρ, `l1` for pure ε: what a cost is proportional to.

    Returns:
        At most 1, and 1 where there is one case.
    """
    return max(
        sum(
            (
                share * norm(in_case(moves, case)) / max(map(norm, moves))
                for share, moves in zip(shares, changes, strict=True)
            ),
            Fraction(0),
        )
        for case in range(max(map(len, changes)))
    )


def matching_factor(profile: Profile, delta: Exact) -> Fraction:
    """Return the factor on every variance at which the exact ε(δ) is the Bureau's.

    How much noise the loose conversion wastes: 1 minus the factor. The factor has six digits and is
    rounded up, so that the reduced noise keeps the stated ε.
    """
    is_guarantee = (isinstance(use.mechanism, EpsilonDelta | Epsilon) for use in profile.uses)
    if any(is_guarantee) or not all(isinstance(u.noise.price, InRho) for u in profile.uses):
        raise BudgetError("only discrete Gaussian noise is matched with the Bureau's conversion")
    if not profile.is_worst:
        raise BudgetError("the exact profile is proved for units with one record alone")
    stated = EpsilonDelta(Fraction(profile.bureau_epsilon(delta)), delta)

    def scaled(factor: Fraction) -> Profile:
        uses = (  # with their variances times the factor, as they are priced in ρ
            replace(use, mechanism=type(noise).with_precision(precision_of(noise) / factor))
            for use in profile.uses
            for noise in [use.noise]
        )
        return replace(profile, uses=tuple(uses))

    low = Fraction(1, 1000)
    high = Fraction(1)
    while high - low > Fraction(1, 2_000_000):
        middle = (low + high) / 2
        low, high = (low, middle) if _excess(scaled(middle), stated) <= 0 else (middle, high)
    factor = Fraction(math.ceil(high * 1_000_000), 1_000_000)
    while factor < 1 and _excess(scaled(factor), stated) > 0:
        factor += Fraction(1, 1_000_000)
    return factor


def _bought(
    mechanism: type[Mechanism],
    shares: Sequence[Fraction],
    changes: Sequence[Changes],
    is_worst: bool,  # noqa: FBT001 - known before the amount
    whole: Fraction,
) -> Profile:
    """Return the noise that shares of a ρ or of a pure ε buy: of the precision s_ℓ ρ/(p Δ_ℓ)."""
    norm = norm_of(mechanism.price)
    uses = []
    part = worst_part(shares, changes, norm)
    for share, moves in zip(shares, changes, strict=True):
        sensitivity = max(map(norm, moves))
        given = share * whole / part
        noise = mechanism.with_precision(given / sensitivity)
        use = Use(noise, 1, moves)
        cost = mechanism.price.cost(noise, sensitivity)
        if cost != given:
            raise BudgetError(
                f"{mechanism.__name__}.with_precision gives noise that costs {cost} of a budget of "
                f"{given}; it must cost exactly what it is given"
            )
        uses.append(use)
    return Profile(tuple(uses), is_worst)


def _widest(bought: Callable[[Fraction], Profile], budget: EpsilonDelta) -> Profile:
    """Return about the least noise whose certified δ(ε) is at most δ: 1/(2ρ) of six digits.

    δ(ε) falls as the noise grows (below σ² = 4 it may rise by a little here and there), so a root
    of ln δ(ε) - ln δ in the logarithm of the base is sought between the base of the loose
    conversion, which is known to be enough, and smaller ones.

    Continuous noise that keeps the same (ε, δ) is close to it, and tells where to look first.

    The root is found to 1e-13 and rounded up to six digits, so that another machine, whose last
    bits differ, mostly arrives at the same noise. It is not trusted: the base goes up by its last
    digit, then by twice as much and so on, until the certified bounds, of δ(ε) and of ε(δ), are
    seen to be within the budget.
    """

    @lru_cache
    def excess(log_inverse: float) -> float:
        return _excess(bought(1 / (2 * Fraction(math.exp(log_inverse)))), budget)

    enough = math.log(1 / (2 * rho_within(budget.epsilon, budget.delta)))
    near = min(_continuous(budget), enough)
    low = near - NEAR
    high = min(near + NEAR, enough)
    if excess(low) <= 0 or excess(high) > 0:
        low, high = min(low, enough - 1), enough
        while excess(low) <= 0:
            low -= 1
    log_root = brentq(excess, low, high, xtol=1e-13) if excess(high) < 0 else high
    inverse_two_rho = Decimal(math.exp(log_root)).normalize(_DIGITS)
    step = inverse_two_rho.next_plus(_DIGITS) - inverse_two_rho
    while not _keeps(profile := bought(1 / (2 * Fraction(inverse_two_rho))), budget):
        inverse_two_rho, step = _DIGITS.add(inverse_two_rho, step), 2 * step
    return profile


def _continuous(budget: EpsilonDelta) -> float:
    """Return ln(1/(2ρ)) at about which continuous Gaussian noise of ρ = μ²/2 keeps (ε, δ)."""
    epsilon = np.array([float(budget.epsilon)])
    delta = float(budget.delta)
    least = sys.float_info.min

    def excess(log_inverse: float) -> float:
        above = float(gaussian_delta_above(epsilon, math.exp(-log_inverse / 2))[0])
        return math.log(max(above, least) / max(delta, least))

    low, high = _LOG_INVERSES
    return float(brentq(excess, low, high)) if excess(low) > 0 > excess(high) else high


def _keeps(profile: Profile, budget: EpsilonDelta) -> bool:
    """Return whether the certified δ at the budget's ε, and ε at its δ, are within the budget.

    `Profile.epsilon` ends where its bound of δ comes to the budget's δ. The bound falls as ε grows,
    but for round-off within `CERTAIN`. Where at a smaller ε it is lower by more than that, it is
    below δ at every larger one, so that the search ends below the budget's ε.
    """
    if budget.delta >= SMALLEST_DELTA:
        with suppress(TooFineError):
            if profile.delta(budget.epsilon) > budget.delta:
                return False
            if profile.delta(budget.epsilon * (1 - SMALLER)) <= budget.delta * (1 - 2 * CERTAIN):
                return True
    return profile.epsilon(budget.delta) <= budget.epsilon


def _excess(profile: Profile, budget: EpsilonDelta) -> float:
    """Return a number above 0 where the profile exceeds the budget, falling as its noise grows."""
    least = sys.float_info.min
    if budget.delta >= SMALLEST_DELTA:
        delta = math.nextafter(float(budget.delta), 0)
        try:
            return math.log(max(profile.delta(budget.epsilon), least) / delta)
        except TooFineError:
            pass
    epsilon = math.nextafter(float(budget.epsilon), 0)
    return math.log(max(profile.zcdp_epsilon(budget.delta), least) / epsilon)


def _check_shares(shares: Sequence[Fraction], changes: Sequence[Changes]) -> None:
    if len(shares) != len(changes) or not shares:
        raise BudgetError(
            f"shares must be one a measured depth, got {len(shares)} for {len(changes)} depths"
        )
    for place, (share, moves) in enumerate(zip(shares, changes, strict=True), start=1):
        if not isinstance(share, Fraction) or share <= 0:
            raise BudgetError(
                f"shares must be fractions above 0, got {share!r} in place {place}; "
                "leave a depth unmeasured instead of giving it nothing"
            )
        if all(change == () for change in moves):
            raise BudgetError(
                f"place {place} of the shares is a depth that no unit can change; "
                "it is public and takes no share"
            )
    if sum(shares) != 1:
        raise BudgetError(
            f"shares must sum to exactly 1, got {sum(shares)}; write thirds as 1/3, not 0.333"
        )


def _no_such_pair(mechanism: type[Mechanism], budget: Budget) -> str:
    if isinstance(budget, Epsilon):
        return (
            f"{mechanism.name} noise has no pure epsilon; add a delta {WELL_BELOW}, or give rho, "
            f"or use the discrete Laplace mechanism"
        )
    if isinstance(budget, EpsilonDelta):
        return (
            f"{mechanism.name} noise takes epsilon alone; leave delta out, or use the discrete "
            f"Gaussian mechanism"
        )
    return (
        f"{mechanism.name} noise takes epsilon alone, not rho; "
        "give epsilon, or use the discrete Gaussian mechanism"
    )
