"""Seats by the method of equal proportions (Huntington and Hill), exactly.

An area with N records and n seats has the priority N / √(n (n + 1)) for its next one; the seats go,
one after another, to the highest priority (2 U.S.C. § 2a). The first seat of an area comes before
every second one: 1/√0 is infinite. Where there are fewer seats than areas the first seats go to the
largest counts, the limit of N / √(n (n + 1)) as n falls to 0. Ties, exact ones alone, go to
the area that comes first in the public order of the areas.

Most seats are handed out at once: a divisor λ is found by bisection for which no more seats than
there are have a priority N / √(n (n + 1)) of at least λ. Seats whose priority is above λ by more
than the rounding of doubles are certain; the few others compete by whole numbers,
N² m (m + 1) against M² n (n + 1).
"""

import heapq
import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.kernels import kernel

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

LARGEST_COUNT = 1 << 53
_MOST_STEPS = 200
_GUARD = 1e-9
"""Relative: far above the rounding of a priority, far below what parts most priorities."""


def huntington_hill(counts: Int64, seats: int) -> Int64:
    """The seats of each area, which sum to ``seats``: int64 (cells) or (runs, cells).

    Args:
        counts: int64 (cells) or (runs, cells), records, from 0 to 2⁵³, in the public order of the
            areas.
        seats: how many there are to share.

    Raises:
        EstimateError: no areas, a count out of range, a negative number of seats.
    """
    if counts.dtype != np.int64 or counts.ndim not in {1, 2} or not counts.shape[-1]:
        raise EstimateError("seats are shared by int64 counts of at least one area")
    if len(counts) and not 0 <= int(counts.min()) <= int(counts.max()) <= LARGEST_COUNT:
        raise EstimateError("seats are shared by counts from 0 to 2**53")
    if not 0 <= seats <= LARGEST_COUNT:
        raise EstimateError(f"the number of seats must be from 0 to 2**53, got {seats}")
    rows = np.atleast_2d(counts)
    found = np.array([_row(row, seats) for row in rows]).reshape(rows.shape)
    return found if counts.ndim == 2 else found[0]


def _row(counts: Int64, seats: int) -> Int64:
    given = np.zeros(len(counts), dtype=np.int64)
    if seats < len(counts):
        largest_first = np.argsort(-counts, kind="stable")
        given[largest_first[:seats]] = 1
        return given
    if not counts.any():
        given[:] = 1  # all priorities are 0: every further seat is a tie
        given[0] += seats - len(counts)
        return given
    _certain(counts.astype(np.float64), seats, given)
    _compete(counts, seats - int(given.sum()), given)
    return given


@kernel
def _certain(counts: Float64, seats: int, given: Int64) -> None:
    """Into ``given`` the first seats, and all that surely belong to the highest priorities."""
    low, high = 0.0, counts.max()  # at `high` no area has a second seat: N / √2 is below N
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
        given[i] = int(_seats_at(counts[i], high * (1 + _GUARD)))


@kernel
def _seats_at(count: float, divisor: float) -> float:
    """The largest n with count >= divisor √(n (n - 1)), at least 1."""
    ratio = count / divisor
    return max(1.0, math.floor((1 + math.sqrt(1 + 4 * ratio * ratio)) / 2))


def _compete(counts: Int64, left: int, given: Int64) -> None:
    """Hand out what is left, by exact priorities (their squares)."""
    if not left:
        return
    waiting = [(_key(int(counts[i]), int(given[i])), i) for i in range(len(counts))]
    heapq.heapify(waiting)
    for _ in range(left):
        _, i = waiting[0]
        given[i] += 1
        heapq.heapreplace(waiting, (_key(int(counts[i]), int(given[i])), i))


def _key(count: int, held: int) -> Fraction:
    """Lower for a higher priority."""
    return Fraction(-count * count, held * (held + 1))
