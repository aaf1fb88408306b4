"""The intervals that a reader of a page can choose beside those of the files.

The files list 95 % intervals. The others are made anew from the estimates and standard errors
beside them, as `Release.level` makes them, and are carried as what is left when the usual reach is
taken off, which is little.
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.intervals import Confidence
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors

OTHERS = (Confidence(0.90), Confidence(0.99))
"""What can be chosen beside the usual one: below it and above it."""

Ends = tuple[Int64, Int64]
"""Where intervals begin and end: two int64 (cells), records."""


def percent(confidence: Confidence) -> int:
    """Return the level of a confidence in whole percents."""
    return round(100 * confidence.coverage)


def choices() -> list[int]:
    """Return the levels that a reader can choose, in percent; the usual one is the second."""
    return sorted(map(percent, (USUAL, *OTHERS)))


def other_intervals(
    errors: CuboidErrors, estimate: Float64, variance: Float64, usual: Ends
) -> list[Ends]:
    """Return the other intervals of some counts, which lie within one another.

    Args:
        errors: of their cuboid.
        estimate: float64 (cells), records: unbiased.
        variance: float64 (cells), records².
        usual: the 95 % intervals of the files.
    """
    narrow, wide = (errors.interval(estimate, variance, each) for each in OTHERS)
    low, high = usual
    return [
        (np.maximum(narrow[0], low), np.minimum(narrow[1], high)),
        (np.minimum(wide[0], low), np.maximum(wide[1], high)),
    ]


def usual_reach(high: Int64, others: Sequence[Ends]) -> list[tuple[int, int]]:
    """Return for each of other intervals how far most end beyond ``high``, and the usual width."""
    found = []
    for low, end in others:
        width = most_often((end - low)[low > 0])
        found.append((most_often(end - high), width))
    return found


def most_often(values: Int64) -> int:
    """Return the commonest of some whole numbers; 0 of none."""
    known, often = np.unique(values, return_counts=True)
    return int(known[np.argmax(often)]) if len(known) else 0
