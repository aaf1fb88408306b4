"""Rules that share a fixed amount by counts.

`Proportional`, `Logarithmic` and `Quadratic` weigh an area's part P = N / ΣN of all records by
W(P) = P, log(1 + P), P² and share the amount by W / ΣW (Ko et al., Section 5). `Above` gives to
areas with more records than a threshold. `Seats` shares whole seats. For intervals of what areas of
a release are due see `hedgerow.evaluate.share_intervals`.
"""

import heapq
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Annotated, ClassVar, Protocol

import numpy as np

from hedgerow.arrays import Float64, Int64, float64, int64_zeros
from hedgerow.declared import Real, Whole, check_fields, frozen
from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel
from hedgerow.limits import LARGEST_DOUBLE

SEATS = Whole("the number of seats", 0, LARGEST_DOUBLE, EstimateError, ends="[]")
AMOUNT = Real("the amount to share", 0, math.inf, EstimateError)
THRESHOLD = Whole("a threshold", 0, math.inf, EstimateError)
_MOST_STEPS = 200
_GUARD = 1e-9
"""Relative: far above the rounding of a priority, far below what parts most priorities."""


def huntington_hill(counts: Int64, seats: int) -> Int64:
    """Return the seats of each area by equal proportions, exactly: int64, the shape of the counts.

    Ties go to the area that comes first. Most seats are handed out at once by a divisor, the rest
    one by one in whole numbers: docs/proofs/trials.md, "Seats".

    Args:
        counts: int64 (cells) or (runs, cells), records, from 0 to 2⁵³, in the public order of the
            areas.
        seats: the number to share.
    """
    if counts.dtype != np.int64 or counts.ndim not in {1, 2} or not counts.shape[-1]:
        raise EstimateError("seats are shared by int64 counts of at least one area")
    if len(counts) and not 0 <= int(counts.min()) <= int(counts.max()) <= LARGEST_DOUBLE:
        raise EstimateError("seats are shared by counts from 0 to 2**53")
    SEATS(seats)
    return np.array([_row(row, seats) for row in np.atleast_2d(counts)]).reshape(counts.shape)


def _row(counts: Int64, seats: int) -> Int64:
    given = int64_zeros(len(counts))
    if seats < len(counts):
        largest_first = np.argsort(-counts, kind="stable")
        given[largest_first[:seats]] = 1
        return given
    if not counts.any():
        given[:] = 1  # all priorities are 0: every further seat is a tie
        given[0] += seats - len(counts)
        return given
    _certain(float64(counts), seats, given)
    _compete(counts, seats - int(given.sum()), given)
    return given


@kernel
def _certain(counts: Float64, seats: int, given: Int64) -> None:
    """Write into ``given`` the first seats, and all that surely have the highest priorities."""
    # Invariant: at the divisor `high` at most `seats` seats are due. There no area has a second
    # seat at first, as N / √2 is below N.
    low = 0.0
    high = counts.max()
    for _ in range(_MOST_STEPS):
        middle = (low + high) / 2
        if high - low <= 1e-13 * high:
            break
        total = 0.0
        for count in counts:
            total += _seats_at(count, middle)
        if total <= seats:
            high = middle
        else:
            low = middle
    for i in range(len(counts)):
        # rounding of doubles cannot lift a priority over the guard, so no seat here is one too many
        given[i] = int(_seats_at(counts[i], high * (1 + _GUARD)))


@kernel
def _seats_at(count: float, divisor: float) -> float:
    """Return the largest n with count >= divisor √(n (n - 1)), at least 1."""
    ratio = count / divisor
    # The larger root of n (n - 1) = ratio², rounded down; a first seat is due at any divisor.
    return max(1.0, math.floor((1 + math.sqrt(1 + 4 * ratio * ratio)) / 2))


def _compete(counts: Int64, left: int, given: Int64) -> None:
    """Hand out what is left, by exact priorities (their squares)."""
    if not left:
        return

    def ranked(area: int) -> tuple[Fraction, int]:
        # lower for a higher priority: minus the square of the priority
        count = int(counts[area])
        held = int(given[area])
        return Fraction(-count * count, held * (held + 1)), area

    waiting = list(map(ranked, range(len(counts))))
    heapq.heapify(waiting)
    for _ in range(left):
        _, first = waiting[0]
        given[first] += 1
        heapq.heapreplace(waiting, ranked(first))


_LEAST_PART = -0.5  # where the logarithm of an unclipped estimate of a part stops


class Rule(Protocol):
    """How an amount is shared by counts."""

    @property
    def name(self) -> str:
        """The name in commands and tables."""

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """Return what each area gets: float64, in the shape of the counts, units of the amount.

        It sums to the amount, or to 0 where nobody is eligible.

        Args:
            counts: int64 (cells) or (runs, cells), records, not negative.
            amount: to share; not negative.
        """


class WeightedRule(ABC):
    """A rule that shares by weights, each of which rises with its own count.

    Attributes:
        jumps: whether a weight can jump when its count moves by one record.
    """

    __slots__ = ()
    name: ClassVar[str]
    jumps = False

    @abstractmethod
    def weights(self, counts: Float64, total: Float64) -> Float64:
        """Return the weight of each count: float64, in the shape of the counts.

        Args:
            counts: float64 (..., cells), records; estimates below 0 are let through, smoothly where
                the rule is smooth, so that sums of weights are not biased by clipping.
            total: float64 (..., 1), records: of all areas.
        """

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """Return the amount by weight, 0 where all weights are 0; see `Rule.allocate`."""
        _check(counts, amount)
        real = float64(counts)
        weights = self.weights(real, real.sum(axis=-1, keepdims=True))
        return amount * _parts(weights, weights.sum(axis=-1, keepdims=True))


@frozen
class Proportional(WeightedRule):
    """W(P) = P: shares are parts of the population."""

    name = "proportional"

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """Return P."""
        return _parts(counts, total)


@frozen
class Logarithmic(WeightedRule):
    """W(P) = log(1 + P): favours small areas (Ko et al., Section 5.1)."""

    name = "logarithmic"

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """Return log(1 + P)."""
        return np.log1p(np.maximum(_parts(counts, total), _LEAST_PART))


@frozen
class Quadratic(WeightedRule):
    """W(P) = P²: favours large areas (Ko et al., Section 5.1)."""

    name = "quadratic"

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """Return P²."""
        return np.square(_parts(counts, total))


@frozen
class Above(WeightedRule):
    """Areas with more than ``threshold`` records share the amount, by whole count or equally.

    Raises:
        EstimateError: a negative threshold.
    """

    threshold: Annotated[int, THRESHOLD]
    equally: bool = False
    name = "above"
    jumps = True

    def __post_init__(self) -> None:
        check_fields(self)

    def weights(self, counts: Float64, total: Float64) -> Float64:
        """Return 1 or P for eligible areas, 0 for others."""
        eligible = counts > self.threshold
        if self.equally:
            return float64(eligible)
        return np.where(eligible, _parts(counts, total), 0.0)


@frozen
class Seats:
    """The amount is a whole number of seats; see `huntington_hill`."""

    name = "seats"

    def allocate(self, counts: Int64, amount: float) -> Float64:
        """Return the seats; see `Rule.allocate`."""
        _check(counts, amount)
        seats = int(amount) if amount == int(amount) else amount
        return float64(huntington_hill(counts, SEATS(seats)))


def _parts(counts: Float64, total: Float64) -> Float64:
    """Return parts of the total, 0 where there is none."""
    positive = total > 0
    return np.where(positive, counts / np.where(positive, total, 1.0), 0.0)


def _check(counts: Int64, amount: float) -> None:
    if counts.dtype != np.int64 or (counts < 0).any():
        raise EstimateError("an amount is shared by int64 counts that are not negative")
    AMOUNT(amount)
