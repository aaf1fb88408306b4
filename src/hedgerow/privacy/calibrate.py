"""How much noise a budget buys: from shares and worst-case shifts to noise parameters."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from hedgerow.errors import BudgetError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import l1, l2_squared
from hedgerow.privacy.profile import Profile, Use
from hedgerow.privacy.zcdp import rho_within


def calibrate(
    mechanism: type[Mechanism],
    budget: Budget,
    shares: Sequence[Fraction],
    shifts: Sequence[tuple[int, ...]],
) -> Profile:
    """The composition that spends the budget in the given shares, one use a measured depth.

    Discrete Gaussian noise: σ²_ℓ = Δ₂²/(2 s_ℓ ρ), so that depth ℓ costs s_ℓ ρ and all together ρ,
    exactly; an (ε, δ) budget first becomes the ρ of `rho_within`, which is on the private side.
    Discrete Laplace noise: scale_ℓ = Δ₁/(s_ℓ ε), so that depth ℓ costs s_ℓ ε.

    Args:
        mechanism: `DiscreteGaussian` with `Rho` or `EpsilonDelta`, `DiscreteLaplace` with
            `Epsilon`.
        budget: what all depths together may cost.
        shares: one a measured depth, above 0, summing to exactly 1.
        shifts: one a measured depth: the worst change of one unit there (`Neighbours.shifts`).

    Raises:
        BudgetError: a budget that the mechanism cannot spend, or shares that are no shares.
    """
    _check_shares(shares, shifts)
    if mechanism is DiscreteGaussian and isinstance(budget, Rho | EpsilonDelta):
        rho = _total_rho(budget)
        return _composed(
            (DiscreteGaussian(l2_squared(moves) / (2 * share * rho)), moves)
            for share, moves in zip(shares, shifts, strict=True)
        )
    if mechanism is DiscreteLaplace and isinstance(budget, Epsilon):
        return _composed(
            (DiscreteLaplace(l1(moves) / (share * budget.epsilon)), moves)
            for share, moves in zip(shares, shifts, strict=True)
        )
    raise BudgetError(_no_such_pair(mechanism, budget))


def _composed(noise: Iterable[tuple[Mechanism, tuple[int, ...]]]) -> Profile:
    return Profile(tuple(Use(mechanism, 1, moves) for mechanism, moves in noise))


def _total_rho(budget: Rho | EpsilonDelta) -> Fraction:
    return budget.rho if isinstance(budget, Rho) else rho_within(budget.epsilon, budget.delta)


def _check_shares(shares: Sequence[Fraction], shifts: Sequence[tuple[int, ...]]) -> None:
    if len(shares) != len(shifts) or not shares:
        raise BudgetError(
            f"shares must be one a measured depth, got {len(shares)} for {len(shifts)} depths"
        )
    for place, (share, moves) in enumerate(zip(shares, shifts, strict=True), start=1):
        if not isinstance(share, Fraction) or share <= 0:
            raise BudgetError(
                f"shares must be fractions above 0, got {share!r} in place {place}; "
                "leave a depth unmeasured instead of giving it nothing"
            )
        if not moves:
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
            "the discrete Gaussian has no pure epsilon; add a delta, or give rho, "
            "or use the discrete Laplace mechanism"
        )
    if isinstance(budget, EpsilonDelta):
        return "the discrete Laplace takes epsilon alone; leave delta out, or use discrete Gaussian"
    return (
        f"{mechanism.__name__} takes epsilon alone, not rho; "
        "give epsilon, or use the discrete Gaussian mechanism"
    )
