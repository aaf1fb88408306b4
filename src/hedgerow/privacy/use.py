"""One use of a mechanism: what it costs, which privacy loss it has, and how it is written down.

A use is one line of a composition (`hedgerow.privacy.profile`). Its costs are exact fractions; its
losses are the random variables that the accountants add up (`hedgerow.noise.loss`).
"""

from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Annotated

from hedgerow.declared import Whole, check_fields, frozen
from hedgerow.errors import BudgetError
from hedgerow.noise.loss import GaussianLoss, Loss, PairLoss
from hedgerow.noise.mechanisms import MECHANISMS, Mechanism, check_mechanism
from hedgerow.privacy.accountant.domination import Gaussians
from hedgerow.privacy.budget import Epsilon, EpsilonDelta
from hedgerow.privacy.neighbours import Change, Changes, Norm, in_case, l1, l2_squared
from hedgerow.text import Json, exact

TIMES = Whole("times", 1, inf, BudgetError, "a mechanism is used at least once")
Guarantee = Mechanism | EpsilonDelta | Epsilon


@frozen
class Use:
    """One mechanism, used ``times`` times on counts that one unit changes.

    Attributes:
        mechanism: the noise that every count gets; or `EpsilonDelta` or `Epsilon`: a guarantee of
            anything else, by the pair of laws that dominates all that satisfy it.
        times: how often, at least 1.
        changes: what one unit changes, in each case (`Neighbours.changes`): shifts, each in a node
            of its own (records), or their `Norm`. A single one holds in every case.
    """

    mechanism: Guarantee
    times: Annotated[int, TIMES]
    changes: Changes

    def __post_init__(self) -> None:
        check_fields(self)
        if self._pair is None:
            check_mechanism(type(self.mechanism))
            self._check_loss()
        for change in self.changes:
            self._check(change)
        if all(change == () for change in self.changes):
            raise BudgetError(
                "shifts are missing: counts that no unit can change are public and need no noise"
            )
        if self._pair is not None and self.changes != ((1,),):
            raise BudgetError("a guarantee speaks of one unit already; leave its shift out")

    def _check(self, change: Change) -> None:
        if isinstance(change, Norm):
            if not self._is_gaussian:
                raise BudgetError("a change that is told by its norm goes with Gaussian noise")
        elif any(type(s) is not int or s == 0 for s in change):
            raise BudgetError(
                f"shifts must be whole numbers other than 0, got {change!r}; "
                "counts that no unit can change are public and need no noise"
            )

    def in_case(self, case: int) -> "Use | None":
        """Return the use in one case; None where nothing changes in it."""
        change = in_case(self.changes, case)
        return None if change == () else replace(self, changes=(change,))

    @property
    def change(self) -> Change:
        """What one unit changes, where there is one case."""
        if len(self.changes) > 1:
            raise BudgetError("what one unit changes depends on the case")
        return self.changes[0]

    @property
    def noise(self) -> Mechanism:
        """The mechanism, where it is one that draws noise."""
        if isinstance(self.mechanism, EpsilonDelta | Epsilon):
            raise BudgetError(f"{self.mechanism!r} is a guarantee and draws no noise")
        return self.mechanism

    @property
    def rho(self) -> Fraction | None:
        """The zCDP cost of all times together; costs add (Bun & Steinke 2016, Lemma 2.3).

        Of the case that costs most. A pure ε costs ε²/2 (their Proposition 1.4); an (ε, δ)
        guarantee has no ρ.
        """
        if isinstance(self.mechanism, EpsilonDelta):
            return None
        if isinstance(self.mechanism, Epsilon):
            return self.times * self.mechanism.epsilon**2 / 2
        return self.times * self.mechanism.rho(max(map(l2_squared, self.changes)))

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The pure ε of all times together, such as Δ₁/scale each; None for Gaussian noise.

        Of the case that costs most.
        """
        if isinstance(self.mechanism, Epsilon):
            return self.times * self.mechanism.epsilon
        is_told_by_norm = any(isinstance(change, Norm) for change in self.changes)
        if isinstance(self.mechanism, EpsilonDelta) or is_told_by_norm:
            return None
        epsilon = self.mechanism.epsilon(max(map(l1, self.changes)))
        return None if epsilon is None else self.times * epsilon

    @property
    def _pair(self) -> PairLoss | None:
        """The loss of a guarantee; None of noise."""
        if isinstance(self.mechanism, EpsilonDelta):
            return PairLoss(self.mechanism.epsilon, self.mechanism.delta)
        if isinstance(self.mechanism, Epsilon):
            return PairLoss(self.mechanism.epsilon, Fraction(0))
        return None

    @property
    def losses(self) -> list[tuple[Loss, int]]:
        """The privacy loss of each shift, with how often it is incurred; of one case."""
        if (pair := self._pair) is not None:
            return [(pair, self.times)]
        if isinstance(self.change, Norm):
            raise BudgetError("the privacy loss of a change that is told by its norm is not known")
        return [(self._loss(shift), self.times) for shift in self.change]

    @property
    def is_exact(self) -> bool:
        """Whether `losses` are those of what is used, and not of something that dominates it."""
        return self._pair is not None or self.noise.loss_is_exact

    @property
    def dominated(self) -> Gaussians | tuple[PairLoss, int]:
        """All times together by the norm of the change, for `Domination`; of one case."""
        if (pair := self._pair) is not None:
            return pair, self.times
        loss = self._loss(1)
        if isinstance(loss, GaussianLoss):
            return Gaussians(loss.sigma2, l2_squared(self.change), self.times)
        epsilon = self.noise.epsilon(l1(self.change)) or Fraction(0)  # `_check_loss`: there is one
        return PairLoss(epsilon, Fraction(0)), self.times

    def to_dict(self) -> Json:
        """Return the use as JSON; fractions are text."""
        mechanism = self.mechanism
        if isinstance(mechanism, EpsilonDelta | Epsilon):
            named = {name: str(getattr(mechanism, name)) for name in mechanism.__slots__}
            return {"mechanism": "guarantee", **named, "times": self.times}
        written: list[Json] = [
            {"squared_norm": str(change.squared)}
            if isinstance(change, Norm)
            else {"shifts": list(change)}
            for change in self.changes
        ]
        return {
            "mechanism": mechanism.name,
            mechanism.key: str(mechanism.parameter),
            "times": self.times,
            **(written[0] if len(written) == 1 else {"cases": written}),
        }

    @property
    def _is_gaussian(self) -> bool:
        return self._pair is None and isinstance(self._loss(1), GaussianLoss)

    def _check_loss(self) -> None:
        """Raise unless the noise tells its price for every change, known or told by its norm."""
        noise = self.noise
        for change in self.changes:
            for shift in () if isinstance(change, Norm) else change:
                self._loss(shift)
        if not self._is_gaussian and noise.epsilon(Fraction(1)) is None:
            raise BudgetError(
                f"{type(noise).__name__} has neither the loss of a discrete Gaussian nor a pure "
                f"epsilon, so nothing is known of units with several records: give it epsilon(l1)"
            )

    def _loss(self, shift: int) -> Loss:
        """Return the loss of one use of the noise on a count that one unit moves by this."""
        law: object = self.noise.loss(shift)
        if not isinstance(law, Loss):
            raise BudgetError(
                f"{type(self.noise).__name__}.loss must be a GaussianLoss, a LaplaceLoss or a "
                f"PairLoss, got {type(law).__name__}; PairLoss of a proved pure epsilon always "
                f"holds"
            )
        if isinstance(law, GaussianLoss):
            first: object = self.noise.loss(1)
            # one σ² at every shift: `dominated` relies on it
            if not isinstance(first, GaussianLoss) or law != GaussianLoss(first.sigma2, abs(shift)):
                raise BudgetError(
                    f"{type(self.noise).__name__}.loss({shift}) is not the loss of a discrete "
                    f"Gaussian that moves by {abs(shift)}, with one sigma2 at every shift; where "
                    f"the noise is dominated by a larger move, give the loss of a smaller sigma2"
                )
        return law


def read_use(described: Json) -> Use:
    """Return the use that `Use.to_dict` describes."""
    return Use(_read_guarantee(described), described["times"], read_changes(described))


def read_changes(use: Json) -> Changes:
    """Return what a use, as `Use.to_dict` describes it, says that one unit changes in each case."""
    if "cases" not in use:
        return (_read_change(use),)
    if len(use["cases"]) < 2:
        raise BudgetError("cases are at least two; a single one is written as shifts alone")
    return tuple(map(_read_change, use["cases"]))


def _read_change(described: Json) -> Change:
    if "squared_norm" in described:
        squared = exact(described["squared_norm"], "squared_norm", BudgetError)
        if squared.denominator != 1:
            raise BudgetError(f"squared_norm must be a whole number, got {squared}")
        return Norm(squared.numerator)
    return tuple(described.get("shifts", (1,)))


def _read_guarantee(use: Json) -> Guarantee:
    if use["mechanism"] != "guarantee":
        if use["mechanism"] not in MECHANISMS:
            raise BudgetError(f"no mechanism is called {use['mechanism']!r}")
        kind = MECHANISMS[use["mechanism"]]
        return kind(use[kind.key])
    return EpsilonDelta(use["epsilon"], use["delta"]) if "delta" in use else Epsilon(use["epsilon"])
