"""Intervals of equal parts among the areas above a threshold, from estimates and draws of errors.

Where M areas have more than t records and share equally, each of them is due 1 / M: all shares hang
on one number. Let x_i = N_i + e_i be the estimates, c_i >= 0 widths that do not depend on x, and

    O_c = #{i: e_i < -c_i},   o_c = #{i: e_i > c_i}.

An area with N_i >= t + 1 has x_i >= t + 1 - c_i unless it is one of O_c; one with N_i <= t has
x_i <= t + c_i unless it is one of o_c. Hence, whatever the counts are,

    #{i: x_i > t + c_i} - o_c  <=  M  <=  #{i: x_i >= t + 1 - c_i} + O_c.

The law of O_c and o_c is that of the noise, correlations included, so their quantiles come from
draws of the errors, exact as the draws grow (where the draws are exact: an area with measured
levels below it has a part of its error drawn as normal, see `hedgerow.evaluate.share_intervals`).
The bounds are taken for each c of `WIDTHS` (times the standard deviation of e_i) and the best
holds, each paid for by its part of the chance to miss (Bonferroni): nothing is assumed of the
counts, of how many lie near the threshold, or of independence.
"""

import numpy as np

from hedgerow.arrays import Float64
from hedgerow.errors import EstimateError
from hedgerow.estimate.intervals import Confidence

WIDTHS = (1.0, 2.0, 3.0)  # in standard deviations
ROUND_OFF = 1e-6  # records: of estimates by least squares, in floating point
COUNT_PART = 0.25  # of the chance to miss, spent on M; the rest on the area's own count


def equal_parts(
    threshold: int, estimate: Float64, errors: Float64, confidence: Confidence
) -> tuple[Float64, Float64]:
    """Return the ends of each area's interval, as parts of the amount: two float64 (cells).

    The areas are all that share: those that were measured.

    An interval holds what the area is due with the chance asked for or more: M and the area's own
    count are bounded at once. An area that may be on either side of the threshold reaches from 0.

    Args:
        threshold: t, records.
        estimate: float64 (cells), records: unbiased.
        errors: float64 (draws, cells), records: joint draws of the estimates' errors, as many
            negatives as positives: each with its mirror image.
        confidence: of one interval.

    Raises:
        EstimateError: too few draws for the confidence.
    """
    draws, missed = len(errors), 1 - confidence.coverage
    bounds = eligible(threshold, estimate, errors, COUNT_PART * missed)
    fewest, most = min(bounds), max(bounds)
    rank = _rank((1 - COUNT_PART) * missed / 2, draws)
    spread = np.partition(errors, draws - rank, axis=0)[draws - rank]
    certain = estimate - spread > threshold + ROUND_OFF
    possible = estimate + spread > threshold + 1 - ROUND_OFF
    low = np.where(certain, 1 / max(most, 1), 0.0)
    high = np.where(possible | certain, 1 / max(fewest, 1), 0.0)
    return low, high


def eligible(threshold: int, estimate: Float64, errors: Float64, missed: float) -> tuple[int, int]:
    """Return the fewest and the most areas that may have more records than the threshold.

    The true number is outside with a chance of at most ``missed``. Arguments as of `equal_parts`.

    Raises:
        EstimateError: too few draws.
    """
    rank = _rank(missed / (2 * len(WIDTHS)), len(errors))
    deviation = errors.std(axis=0)
    fewest, most = 0, len(estimate)
    for width in WIDTHS:
        reach = width * deviation
        astray = np.sort((errors > reach).sum(axis=1))[len(errors) - rank]
        above = estimate > threshold + reach + ROUND_OFF
        near = estimate > threshold + 1 - reach - ROUND_OFF
        fewest = max(fewest, int(above.sum() - astray))
        most = min(most, int(near.sum() + astray))
    return fewest, most


def least_draws(confidence: Confidence) -> int:
    """Return how many draws `equal_parts` needs."""
    return int(np.ceil(2 * len(WIDTHS) / (COUNT_PART * (1 - confidence.coverage)) - 1e-6))


def _rank(missed: float, draws: int) -> int:
    """Return which of the sorted draws, from the largest, is exceeded with this chance or less."""
    rank = int(missed * (draws + 1) + 1e-9)
    if rank < 1:
        raise EstimateError(
            f"equal parts at this confidence need {int(np.ceil(1 / missed)):,} draws, got {draws:,}"
        )
    return rank
