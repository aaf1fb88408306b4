"""A fixed amount shared by released counts, and what goes to the wrong areas.

A rule turns the counts of all areas into what each gets of an amount. `Proportional`,
`Logarithmic` and `Quadratic` weigh an area's part P = N / ΣN of all records by W(P) = P,
log(1 + P), P² and share the amount by W / ΣW (Ko et al., Section 5). `Above` gives to areas with
more records than a threshold. `Seats` shares whole seats (`hedgerow.evaluate.seats`).

`studies.ko.misallocation` compares what areas get by released counts with what they get by
true ones, on public or synthetic tables. For a release whose truth is not known see
`hedgerow.evaluate.share_intervals`.
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.evaluate.seats import huntington_hill

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

_LEAST_PART = -0.5  # where the logarithm of an unclipped estimate of a part stops


class Rule(Protocol):
    """How an amount is shared by counts."""

    @property
    def name(self) -> str:
        """As commands and tables call it."""

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """What each area gets: float64, in the shape of the counts, units of the amount.

        It sums to the amount, or to 0 where nobody is eligible.

        Args:
            counts: int64 (cells) or (runs, cells), records, not negative.
            amount: to share; not negative.

        Raises:
            EstimateError: counts or an amount that the rule cannot share by.
        """


@runtime_checkable
class WeightedRule(Rule, Protocol):
    """A rule that shares by weights, each of which rises with its own count.

    Attributes:
        jumps: whether a weight can jump when its count moves by one record.
    """

    jumps: ClassVar[bool]

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """The weight of each count: float64, in the shape of the counts.

        Args:
            counts: float64 (..., cells), records; estimates below 0 are let through, smoothly where
                the rule is smooth, so that sums of weights are not biased by clipping.
            total: float64 (..., 1), records: of all areas.
        """


@dataclass(frozen=True, slots=True)
class Proportional:
    """W(P) = P: shares are parts of the population."""

    name: ClassVar[str] = "proportional"
    jumps: ClassVar[bool] = False

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """P."""
        return _parts(counts, total)

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """See `Rule.allocate`."""
        return _by_weight(self, counts, amount)


@dataclass(frozen=True, slots=True)
class Logarithmic:
    """W(P) = log(1 + P): favours small areas (Ko et al., Section 5.1)."""

    name: ClassVar[str] = "logarithmic"
    jumps: ClassVar[bool] = False

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """log(1 + P)."""
        return np.log1p(np.maximum(_parts(counts, total), _LEAST_PART))

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """See `Rule.allocate`."""
        return _by_weight(self, counts, amount)


@dataclass(frozen=True, slots=True)
class Quadratic:
    """W(P) = P²: favours large areas (Ko et al., Section 5.1)."""

    name: ClassVar[str] = "quadratic"
    jumps: ClassVar[bool] = False

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """P²."""
        return np.square(_parts(counts, total))

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """See `Rule.allocate`."""
        return _by_weight(self, counts, amount)


@dataclass(frozen=True, slots=True)
class Above:
    """Areas with more than ``threshold`` records share the amount, by count or equally.

    Attributes:
        threshold: records; an area with just as many is not eligible.
        equally: whether eligible areas get equal parts; otherwise in proportion to their counts
            (the whole count, not what is above the threshold).

    Raises:
        EstimateError: a negative threshold.
    """

    threshold: int
    equally: bool = False
    name: ClassVar[str] = "above"
    jumps: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold < 0:
            raise EstimateError(f"a threshold must not be negative, got {self.threshold}")

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """1 or P for eligible areas, 0 for others."""
        eligible = counts > self.threshold
        if self.equally:
            return eligible.astype(np.float64)
        return np.where(eligible, _parts(counts, total), 0.0)

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """See `Rule.allocate`."""
        return _by_weight(self, counts, amount)


@dataclass(frozen=True, slots=True)
class Seats:
    """The amount is a whole number of seats; see `hedgerow.evaluate.seats`."""

    name: ClassVar[str] = "seats"

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """See `Rule.allocate`."""
        _check(counts, amount)
        if amount != int(amount):
            raise EstimateError(f"the number of seats must be whole, got {amount:,g}")
        return huntington_hill(counts, int(amount)).astype(np.float64)


def _parts(counts: Float64, total: Float64) -> Float64:
    """Parts of the total; 0 where there is none."""
    known = total > 0
    return np.where(known, counts / np.where(known, total, 1.0), 0.0)


def _by_weight(rule: WeightedRule, counts: Int64, amount: float) -> Float64:
    """The amount by weight; nothing where all weights are 0."""
    _check(counts, amount)
    real = counts.astype(np.float64)
    weights = rule.weights(real, real.sum(axis=-1, keepdims=True))
    return amount * _parts(weights, weights.sum(axis=-1, keepdims=True))


def _check(counts: Int64, amount: float) -> None:
    if counts.dtype != np.int64 or (counts < 0).any():
        raise EstimateError("an amount is shared by int64 counts that are not negative")
    if not 0 <= amount < np.inf:
        raise EstimateError(f"the amount to share must be finite and not negative, got {amount}")
