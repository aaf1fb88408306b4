"""What a composition of noisy measurements and other guarantees promises.

δ(ε), ε(δ) and the trade-off curve are those of the composition's privacy loss, with proved bounds
(`accountant`); or, where the norms of the changes are all that is known, of what dominates it
(`domination`). What one unit changes is one of a few cases (`Neighbours.changes`), and the figures
are those of the worst: a ρ and a pure ε are the largest sum, δ(ε) is the largest of the cases' own,
the trade-off curve the least. What is counted may depend on what was released before (which nodes
survive), as each step's pair of laws is dominated by that of its worst shifts whatever came before,
and dominating pairs compose (Zhu, Dong & Wang 2022, Theorem 10). The noise itself, and how often it
is used, must have been fixed beforehand; where it was not, the sums of ρ and of pure ε hold. Binary
floats that leave this module are rounded towards more reported loss.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from hedgerow.errors import BudgetError
from hedgerow.noise.loss import Bounds, Losses, gather_losses
from hedgerow.notebook import block, html_table, paragraph
from hedgerow.privacy.accountant import accountant
from hedgerow.privacy.accountant.domination import Domination, Gaussians
from hedgerow.privacy.accountant.lattice_convolution import TooFineError
from hedgerow.privacy.budget import (
    DELTA,
    Epsilon,
    EpsilonDelta,
    bun_steinke_epsilon,
    float_above,
    optimal_delta,
    optimal_epsilon,
)
from hedgerow.privacy.neighbours import Norm
from hedgerow.privacy.use import Guarantee, Use
from hedgerow.text import Exact, Json, Rows, exact_or_smaller, format_delta, format_rounded_up

DELTAS = ("1e-5", "1e-6", "1e-8", "1e-10", "1e-12")
"""The δ at which ε is usually shown."""
FALSE_ALARMS = 0.05
"""How often an attacker may be wrong, in what is said of attackers (`Profile.power`)."""


@dataclass(frozen=True)
class Profile:
    """What all uses together promise, their noise having been fixed beforehand.

    Attributes:
        uses: at least one.
        is_worst: whether the changes are proved to be the worst that one unit can do, for the whole
            profile and not for their norms alone (see `Neighbours.is_worst`): then all figures are
            exact. Where they are not, or a `Norm` is all that is known, figures are proved bounds
            for whatever has these norms (`hedgerow.privacy.accountant.domination`, or ρ), a little
            above.

    Raises:
        BudgetError: no uses, uses whose cases are not the same, or norms that are said to be worst.

    Example:
        >>> profile = hr.compose([(hr.DiscreteGaussian("100"), 4)])
        >>> profile.rho
        Fraction(1, 50)
        >>> print(profile.statement("1e-6"))
        Used together, ...
    """

    uses: tuple[Use, ...]
    is_worst: bool = True

    def __post_init__(self) -> None:
        if not self.uses:
            raise BudgetError("a composition of no mechanisms promises nothing; name at least one")
        if len({len(use.changes) for use in self.uses} - {1}) > 1:
            raise BudgetError("the uses of a composition speak of the same cases")
        norms = (isinstance(change, Norm) for use in self.uses for change in use.changes)
        if self.is_worst and any(norms):
            raise BudgetError("a change that is told by its norm has no exact profile")

    @cached_property
    def cases(self) -> tuple[tuple[Use, ...], ...]:
        """The uses in each case, without those in which nothing changes."""
        number = max(len(use.changes) for use in self.uses)
        each = ([use.in_case(case) for use in self.uses] for case in range(number))
        return tuple(tuple(filter(None, case)) for case in each)

    @cached_property
    def rho(self) -> Fraction | None:
        """ρ such that the composition is ρ-zCDP: the largest sum of a case, exact; None without."""
        return _largest_sum([use.rho for use in case] for case in self.cases)

    @cached_property
    def pure_epsilon(self) -> Fraction | None:
        """ε such that the composition is ε-differentially private, exact; None if there is none."""
        return _largest_sum([use.pure_epsilon for use in case] for case in self.cases)

    @property
    def is_exact(self) -> bool:
        """Whether figures are those of the worst case, and not only proved bounds above them.

        They are bounds, too, where the loss of a mechanism is told by one that dominates it.
        """
        return self.is_worst and all(use.is_exact for use in self.uses)

    @cached_property
    def losses(self) -> tuple[Losses, ...]:
        """The privacy losses of each case that can be the worst.

        Losses are independent and add, so a case whose losses are among those of another is
        post-processing of it: it has the smaller δ(ε).
        """
        each = [gather_losses(loss for use in case for loss in use.losses) for case in self.cases]
        return tuple(
            losses
            for i, losses in enumerate(each)
            if not any(
                _is_part(losses, other) and (i > j or not _is_part(other, losses))
                for j, other in enumerate(each)
                if j != i
            )
        )

    @cached_property
    def domination(self) -> Domination:
        """What dominates the composition whatever the changes are that have its norms."""
        parts = [[use.dominated for use in case] for case in self.cases]
        gaussians = (tuple(part for part in case if isinstance(part, Gaussians)) for case in parts)
        # The pairs of all uses but Gaussian noise, each of the case that costs it most, dominate
        # those of any case: what keeps (ε, δ) keeps it with a larger ε.
        pairs = []
        for use in self.uses:
            each = map(use.in_case, range(len(use.changes)))
            every = [one.dominated for one in each if one is not None]
            others = [pair for pair in every if not isinstance(pair, Gaussians)]
            if others:
                pairs.append(max(others, key=lambda pair: pair[0].epsilon))
        return Domination(tuple(gaussians), tuple(pairs))

    def delta_bounds(self, epsilon: Exact) -> Bounds:
        """Return proved lower and upper bounds of δ(ε), round-off included.

        The lower one is 0 where the figures are not exact (`is_exact`).

        Args:
            epsilon: any finite number; a number that no float holds is rounded down.

        Raises:
            BudgetError: ε is no number.
        """
        value = -float_above(-exact_or_smaller(epsilon, "epsilon"))  # a float below
        if not self.is_worst:
            return 0.0, self._delta_above(value)
        bounds = [accountant.delta_bounds(one, value) for one in self.losses]
        lower = max(lower for lower, _ in bounds) if self.is_exact else 0.0
        return lower, max(upper for _, upper in bounds)

    def delta(self, epsilon: Exact) -> float:
        """Return δ such that the composition is (ε, δ)-DP: the upper bound of δ(ε)."""
        return self.delta_bounds(epsilon)[1]

    def epsilon(self, delta: Exact) -> float:
        """Return the least ε such that the composition is (ε, δ)-DP, rounded up.

        Args:
            delta: in (0, 1). A binary float is allowed in this question, and stands for the
                smaller of its own value and of the decimal that it prints as.

        Returns:
            ε, to 1e-9 of itself and never below; infinity where the promise fails with a larger
            probability than δ. Where the exact figure is out of reach (`TooFineError`, or δ below
            1e-250), that of ρ, which is larger.

        Raises:
            BudgetError: δ outside (0, 1), or no number.
        """
        chance = DELTA(exact_or_smaller(delta, "delta"))
        loose = self.zcdp_epsilon(chance)
        pure = self.pure_epsilon
        enough = loose if pure is None else min(loose, float_above(pure))
        try:
            return min(enough, accountant.epsilon_above(self._delta_above, chance, enough))
        except TooFineError:
            if math.isinf(enough):
                raise
            return enough

    def epsilon_grid(self, points: int = 60) -> list[float]:
        """Return ε from 0 to where δ(ε) is below 1e-15, evenly spaced, for tables and pictures."""
        last = self.epsilon("1e-15")
        if not math.isfinite(last):
            last = 2 * self.epsilon("0.5") + 10
        last = max(last, 1e-3)
        step = last / (points - 1)
        return [*(k * step for k in range(points - 1)), last]

    def zcdp_epsilon(self, delta: Exact) -> float:
        """Return ε from ρ alone (Canonne, Kamath & Steinke 2020, Corollary 13), rounded up."""
        return self._from_rho(delta, optimal_epsilon)

    def bureau_epsilon(self, delta: Exact) -> float:
        """Return ρ + 2√(ρ ln(1/δ)) (Bun & Steinke, used by the Census Bureau), rounded up."""
        return self._from_rho(delta, bun_steinke_epsilon)

    def tradeoff(self, alpha: float) -> float:
        """Return T(α): the least type II error of any test, at type I error α, of one unit's data.

        A lower bound: the promise, on the safe side. Where the exact curve is out of reach
        (`TooFineError`), that of ρ and a pure ε, which is lower.

        Args:
            alpha: in [0, 1].
        """
        if self.is_worst:
            with suppress(TooFineError):
                return min(accountant.tradeoff_below(one, alpha) for one in self.losses)
        # Each bound by itself: where one takes over from another, the lines have two tops.
        curves = [self._rho_delta] if self.is_worst else [self._rho_delta, self.domination.delta]
        lines = [accountant.highest_line(curve, alpha) for curve in curves]
        if self.pure_epsilon is not None:
            lines.append(accountant.pure_line(float_above(self.pure_epsilon), alpha))
        return max(lines)

    def power(self, alpha: float = FALSE_ALARMS) -> float:
        """Return how often an attacker finds one unit's change at most: 1 - T(α), rounded up.

        This is what Hedgerow says of an attacker, wherever it says it. Whoever tests, by whatever
        they know and compute, which of two neighbouring tables a release was made from, and takes
        the first for the second with probability α at most, recognises the second with this
        probability at most, and without exception (Neyman & Pearson; Dong, Roth & Su 2022,
        Definition 2.1 and Proposition 2.12). Guessing gives α.

        Args:
            alpha: the rate of false alarms, in [0, 1].

        Example:
            >>> f"{hr.compose([(hr.DiscreteGaussian('100'), 4)]).power():.3f}"
            '0.074'
        """
        return min(1.0, math.nextafter(1 - self.tradeoff(alpha), math.inf))

    def loss_bound(self, delta: Exact) -> float:
        """Return x that the privacy loss exceeds with probability δ at most, rounded up.

        The loss L = ln(P[o | y] / P[o | y']) of what comes out, o, of the true table y beside a
        neighbour y', is what the release adds to the logarithm of the odds of y against y',
        whatever else is known. The ε of (ε, δ) does not bound it so: P[L > ε] can be many times
        δ(ε). As
        δ(ε) = E[(1 - e^(ε - L))₊] >= (1 - e^(ε - x)) P[L > x], every ε with δ(ε) < δ gives the
        bound x = ε - ln(1 - δ(ε)/δ), and the least is returned, or that of ρ-zCDP,
        ρ + 2√(ρ ln(1/δ)) (Bun & Steinke 2016, proof of Proposition 1.3), or a pure ε.

        Args:
            delta: in (0, 1); as in `epsilon`.

        Raises:
            BudgetError: δ outside (0, 1), or no number.

        Example:
            >>> profile = hr.compose([(hr.DiscreteGaussian("100"), 4)])
            >>> profile.epsilon("1e-6") < profile.loss_bound("1e-6")
            True
        """
        chance = DELTA(exact_or_smaller(delta, "delta"))
        pure = self.pure_epsilon
        enough = min(self.bureau_epsilon(chance), math.inf if pure is None else float_above(pure))
        if chance < accountant.SMALLEST_DELTA:
            return enough
        with suppress(TooFineError):
            return min(enough, accountant.loss_above(self._delta_above, chance, enough))
        return enough

    def tradeoff_curve(self, alphas: Iterable[float], lines: int = 121) -> list[float]:
        """Return T(α) from below at many α: the highest of the lines 1 - δ(ε) - e^ε α over many ε.

        One δ(ε) a line serves all α, so a whole curve costs little more than a point of `tradeoff`.
        """
        last = min(self.epsilon("1e-15"), 60.0)
        grid = [last * (2 * i / (lines - 1) - 1) for i in range(lines)]
        deltas = [self.delta(epsilon) for epsilon in grid]
        return [
            max(0.0, *(accountant.height(e, d, a) for e, d in zip(grid, deltas, strict=True)))
            for a in alphas
        ]

    def statement(
        self,
        delta: Exact | None = None,
        *,
        who: str = "Used together, they satisfy",
        epsilon: Fraction | float | None = None,
    ) -> str:
        """Return the cost as a sentence; with ``delta``, also as (ε, δ). Figures are rounded up.

        The ε is the exact one, unless an ``epsilon`` is given that is no smaller.

        It says nothing of who is protected: the whole promise of a release is a
        `hedgerow.privacy.promise.Promise`.
        """
        pure = self.pure_epsilon
        rho = self.rho
        parts = []
        if pure is not None:
            parts.append(f"ε = {format_rounded_up(pure)} differential privacy")
        elif rho is not None:
            parts.append(f"ρ = {format_rounded_up(rho)} zero-concentrated differential privacy")
        if delta is not None:
            epsilon = self.epsilon(delta) if epsilon is None else epsilon
            figure = "no ε" if math.isinf(epsilon) else f"ε = {format_rounded_up(epsilon)}"
            parts.append(f"{figure} at δ = {format_delta(delta)}")
        if not parts:
            return "The composition has neither a ρ nor a pure ε; ask for ε at a δ."
        return f"{who} {' and '.join(parts)}."

    def prices(
        self,
        deltas: Sequence[Exact] = DELTAS,
        stated: Callable[[Exact], Fraction | float] | None = None,
    ) -> Rows:
        """Return ε at several δ in words: as it is stated, exactly unless told, and from ρ.

        The headings are the first row.
        """
        ways = stated or self.epsilon, self.zcdp_epsilon, self.bureau_epsilon
        return [
            ("δ", "ε", "from ρ, optimally", "from ρ, Bun & Steinke"),
            *(
                (format_delta(delta), *(format_rounded_up(epsilon(delta)) for epsilon in ways))
                for delta in deltas
            ),
        ]

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the cost in a sentence, and ε at several δ."""
        headings, *rows = self.prices()
        whom = "Noise alone does not say whom it protects: the promise of a plan does."
        return block(paragraph(f"{self.statement()} {whom}"), html_table(headings, rows))

    def to_dict(self) -> Json:
        """Return the composition and its exact costs as JSON; fractions are text."""
        pure = self.pure_epsilon
        rho = self.rho
        return {
            "uses": [use.to_dict() for use in self.uses],
            "is_worst": self.is_worst,
            "rho": None if rho is None else str(rho),
            "pure_epsilon": None if pure is None else str(pure),
        }

    def _from_rho(self, delta: Exact, conversion: Any) -> float:
        rho = self.rho
        if rho is None:
            return float("inf")
        return accountant.next_above(
            float_above(conversion(rho, DELTA(exact_or_smaller(delta, "delta"))))
        )

    def _delta_above(self, epsilon: float) -> float:
        if self.is_worst:
            return max(accountant.delta_bounds(one, epsilon)[1] for one in self.losses)
        return min(self._loose_delta(epsilon), self.domination.delta(epsilon))

    def _loose_delta(self, epsilon: float) -> float:
        """Return what ρ and a pure ε alone promise, rounded up."""
        pure = self.pure_epsilon
        return 0.0 if pure is not None and epsilon >= pure else self._rho_delta(epsilon)

    def _rho_delta(self, epsilon: float) -> float:
        rho = self.rho
        return 1.0 if rho is None else float_above(optimal_delta(rho, Fraction(epsilon)))


MechanismUse = tuple[Guarantee, int] | tuple[Guarantee, int, int]


def compose(uses: Iterable[MechanismUse]) -> Profile:
    """Return the profile of mechanisms used together.

    Args:
        uses: (mechanism, times) or (mechanism, times, shift), the shift being 1 unless given: how
            far one unit moves the count that the noise is added to. The mechanism may be a
            `DiscreteGaussian`, a `DiscreteLaplace`, one of your own, or a guarantee, `EpsilonDelta`
            or `Epsilon`.

    Raises:
        BudgetError: no uses, or one that is none.
        NoiseError: a mechanism of your own that lacks something (`check_mechanism`).

    Example:
        >>> profile = hr.compose([(hr.DiscreteLaplace("10"), 5), (hr.Epsilon("1/2"), 1)])
        >>> profile.pure_epsilon
        Fraction(1, 1)
        >>> profile.epsilon(delta="1e-6") < 1
        True
    """
    made = []
    for use in uses:
        if not isinstance(use, tuple) or not 2 <= len(use) <= 3:
            raise BudgetError(
                f"a use is (mechanism, times) or (mechanism, times, shift), got {use!r}"
            )
        mechanism, times, *shift = use
        is_noise = hasattr(mechanism, "draw") and not isinstance(mechanism, type)
        if not (is_noise or isinstance(mechanism, EpsilonDelta | Epsilon)):
            raise BudgetError(f"{mechanism!r} is no mechanism and no guarantee")
        made.append(Use(mechanism, times, (tuple(shift) or (1,),)))
    return Profile(tuple(made))


def _largest_sum(cases: Iterable[list[Fraction | None]]) -> Fraction | None:
    """Return the largest sum of a case; None where one has a part without a price."""
    largest = Fraction(0)
    for case in cases:
        costs = [cost for cost in case if cost is not None]
        if len(costs) < len(case):
            return None
        largest = max(largest, sum(costs, Fraction(0)))
    return largest


def _is_part(losses: Losses, others: Losses) -> bool:
    return Counter(dict(losses)) <= Counter(dict(others))
