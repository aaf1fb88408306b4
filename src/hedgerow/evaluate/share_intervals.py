"""Intervals of what each area would get by its true count, from a release's own noisy counts.

Errors of a release's unbiased estimates have a known law that does not depend on the true counts,
so the true counts are resampled from the estimates, which is post-processing and costs no privacy.
An interval holds the middle of the resampled shares, after the bias of the other areas' weights is
taken off; areas above a threshold that share equally get bounds on how many they are. Derivation,
what is proved and what is measured: docs/proofs/trials.md, "Intervals of shares".
"""

from dataclasses import replace

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, FloatPair, Levels, int64
from hedgerow.declared import Real
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.funds import Above, Rule, Seats, WeightedRule
from hedgerow.limits import MOST_BOOTSTRAPPED
from hedgerow.release.answers.joint_errors import cells_with_errors
from hedgerow.release.directory.measurements import CONTRADICTED, COUNT, ESTIMATE, HIGH, LOW
from hedgerow.release.naming import axis_level
from hedgerow.release.release import Release
from hedgerow.tables.counts import label_nodes

SHARE, AMOUNT = "share", "amount"
ABOVE_0 = Real("the amount to share", 0, np.inf, EstimateError, ends="()")
DRAWS = 2000
USUAL = Confidence()

WIDTHS = (1.0, 2.0, 3.0)  # in standard deviations
ROUND_OFF = 1e-6  # records: of estimates by least squares, in floating point
COUNT_PART = 0.25  # of the chance to miss, spent on M; the rest on the area's own count


def share_intervals(
    release: Release,
    level: str,
    rule: Rule,
    amount: float,
    confidence: Confidence = USUAL,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> pl.DataFrame:
    """Return what each area gets by its released count, and an interval of what it is due.

    The amount (above 0, in any unit; or a number of seats) is shared by the areas of a cuboid of
    the plan, named as ``"county"`` or ``"origin.region"``. ``draws`` errors are resampled, rounded
    up to an even number.

    Returns:
        One row a measured area, in tree order, or of a cube row by row: its codes, ``count``
        (released, 0 where it is not listed), the unbiased ``estimate`` of the true count (records),
        ``share`` (of the amount) and ``amount`` by the released counts, ``low`` and ``high``: what
        it would get by the true counts, in units of the amount; ``contradicted``: whether the count
        cannot be the true one, by the intervals that hold for all areas at once.
    """
    levels = _levels_of(release, level)
    ABOVE_0(amount)
    pairs = (draws + 1) // 2
    rank = _rank(confidence, 2 * pairs)
    content = release.content
    nodes, joint, raw = cells_with_errors(content, levels)
    paid = rule.allocate(nodes.counts, amount) if len(nodes) else np.empty(0)
    low = high = paid
    if joint is not None:
        if 2 * pairs * len(paid) > MOST_BOOTSTRAPPED:
            raise ReleaseError(
                f"{len(paid):,} areas at {level} with {2 * pairs:,} draws fill the memory; ask for "
                f"fewer draws, or for a coarser level"
            )
        errors = joint(pairs, f"share intervals/{seed}")
        errors = np.concatenate([errors, -errors])
        if isinstance(rule, Above) and rule.equally:
            ends = equal_parts(rule.threshold, nodes.estimate, errors, confidence)
        elif isinstance(rule, Seats):
            whole = int64(np.maximum(np.rint(nodes.estimate - errors), 0))
            ends = _middle(rule.allocate(whole, amount) / amount, rank)
        else:
            ends = _ends(rule, nodes.estimate - errors, nodes.estimate, rank)
        low, high = (amount * end for end in ends)
    own = content.errors(levels)
    own = replace(own, noise=replace(own.noise, raw=raw))
    columns = {
        COUNT: nodes.counts, ESTIMATE: nodes.estimate, SHARE: paid / amount, AMOUNT: paid,
        LOW: low, HIGH: high,
        CONTRADICTED: own.contradicted(
            nodes.counts, nodes.estimate, nodes.variance, confidence.coverage
        ),
    }  # fmt: skip
    return label_nodes(content.plan.tree, levels, nodes.codes, **columns)


def _levels_of(release: Release, level: str) -> Levels:
    """Return the cuboid of a name, or raise where it is none or a column would be named twice."""
    plan = release.plan
    tree = release.plan.tree
    levels = tree.named(level)
    if levels is None or levels not in plan.by_levels:
        names = ", ".join(plan.cuboids)
        of_axis = axis_level(tree, level)
        if of_axis is None and levels is None:
            raise ReleaseError(f"no level is called {level!r}; there are {names}")
        what = "" if of_axis is None else f" (a level of axis {of_axis[0]!r} alone)"
        raise ReleaseError(
            f"the plan has no cuboid {level!r}{what}; amounts are shared by cuboids of the plan "
            f"alone: {names}; to share by another, name it in [workload] of a new release"
        )
    taken = {SHARE, AMOUNT} & {name for columns in release.columns.values() for name in columns}
    if taken:
        raise ReleaseError(f"a column of the areas is called {min(taken)!r}, as a result is")
    return levels


def _rank(confidence: Confidence, draws: int) -> int:
    """Return the index of the low end in sorted draws; the high end is as far from the last."""
    if confidence.simultaneous:
        raise EstimateError(
            "intervals of shares hold one at a time; simultaneous ones are unavailable"
        )
    rank = int((1 - confidence.coverage) / 2 * (draws + 1) + 1e-9) - 1
    if rank < 0:
        least = int(np.ceil(2 / (1 - confidence.coverage)))
        raise EstimateError(
            f"a confidence of {confidence.coverage:g} needs {least:,} draws, got {draws:,}"
        )
    return rank


def _ends(rule: Rule, truth: Float64, estimate: Float64, rank: int) -> FloatPair:
    """Return the ends of each area's interval, as parts of the amount."""
    if not isinstance(rule, WeightedRule):
        raise EstimateError(f"no intervals are available for the rule {rule.name!r}")
    total = truth.sum(axis=1, keepdims=True)
    rest = _rest(rule.weights(truth, total))
    plain = rule.weights(estimate, estimate.sum(keepdims=True))
    bias = rest.mean(axis=0) - _rest(plain)
    own = rule.weights(np.maximum(truth, 0, out=truth), total)
    low, high = _middle(_parts(own, rest - 2 * bias), rank)
    if rule.jumps:
        others = _middle(_parts(own, rest), rank)
        low, high = np.minimum(low, others[0]), np.maximum(high, others[1])
    return low, high


def _rest(weights: Float64) -> Float64:
    """Return the weights of all other areas, together."""
    rest: Float64 = weights.sum(axis=-1, keepdims=True) - weights
    return rest


def _parts(own: Float64, rest: Float64) -> Float64:
    """Return W / (w + R), 0 where no area has a weight; ``rest`` is overwritten."""
    both = np.maximum(rest, 0, out=rest)
    both += own
    return np.divide(own, both, out=np.zeros_like(own), where=both > 0)


def _middle(draws: Float64, rank: int) -> FloatPair:
    """Return the ends of the middle of each column; the draws are sorted in place."""
    draws.sort(axis=0)
    return draws[rank], draws[-1 - rank]


def equal_parts(
    threshold: int, estimate: Float64, errors: Float64, confidence: Confidence
) -> FloatPair:
    """Return the ends of each area's interval, as parts of the amount: two float64 (cells).

    An interval holds what the area is due with at least this confidence: the number of areas above
    the threshold and the area's own count are bounded at once. An interval starts at 0 where the
    area may be on either side of the threshold.

    Args:
        threshold: t, records.
        estimate: float64 (cells), records: unbiased; of all areas that share.
        errors: float64 (draws, cells), records: joint draws of the estimates' errors, each with its
            mirror image.
        confidence: of one interval.
    """
    draws = len(errors)
    missed = 1 - confidence.coverage
    fewest, most = sorted(eligible(threshold, estimate, errors, COUNT_PART * missed))
    rank = _rank_from_largest((1 - COUNT_PART) * missed / 2, draws)
    half_width = np.partition(errors, draws - rank, axis=0)[draws - rank]
    certain = estimate - half_width > threshold + ROUND_OFF
    possible = estimate + half_width > threshold + 1 - ROUND_OFF
    low = np.where(certain, 1 / max(most, 1), 0.0)
    high = np.where(possible | certain, 1 / max(fewest, 1), 0.0)
    return low, high


def eligible(threshold: int, estimate: Float64, errors: Float64, missed: float) -> tuple[int, int]:
    """Return the fewest and the most areas that may have more records than the threshold.

    The true number is outside with a chance of at most ``missed``. Arguments as of `equal_parts`.
    """
    rank = _rank_from_largest(missed / (2 * len(WIDTHS)), len(errors))
    deviation = errors.std(axis=0)
    fewest = 0
    most = len(estimate)
    for width in WIDTHS:
        half_width = width * deviation
        astray = np.sort((errors > half_width).sum(axis=1))[len(errors) - rank]
        above = estimate > threshold + half_width + ROUND_OFF
        near = estimate > threshold + 1 - half_width - ROUND_OFF
        fewest = max(fewest, int(above.sum() - astray))
        most = min(most, int(near.sum() + astray))
    return fewest, most


def least_draws(confidence: Confidence) -> int:
    """Return how many draws `equal_parts` needs."""
    return int(np.ceil(2 * len(WIDTHS) / (COUNT_PART * (1 - confidence.coverage)) - 1e-6))


def _rank_from_largest(missed: float, draws: int) -> int:
    """Return the rank of the draw, from the largest, that is exceeded with at most this chance."""
    rank = int(missed * (draws + 1) + 1e-9)
    if rank < 1:
        raise EstimateError(
            f"equal parts at this confidence need {int(np.ceil(1 / missed)):,} draws, got {draws:,}"
        )
    return rank
