"""Pairs of sums of one release, with what both are told to be: their ratios and differences."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64, IntPair, int64
from hedgerow.declared import frozen
from hedgerow.errors import TableError
from hedgerow.estimate.intervals import Confidence
from hedgerow.estimate.ratios import UNKNOWN, Ratios
from hedgerow.release.answers.sums import Sums
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.stored import Content

OF, RATIO, BOUNDED = "of", "ratio", "bounded"
"""The denominator's released count, the released counts' ratio, and whether its set is bounded."""
ROUND_OFF = 1e-9


@frozen(eq=False)
class Side:
    """One sum of each pair: what was released of it, and its unbiased estimate.

    Attributes:
        counts: int64 (pairs), records.
        estimate: float64 (pairs), records.
        variance: float64 (pairs), records².
        errors: of the estimates.
    """

    counts: Int64
    estimate: Float64
    variance: Float64
    errors: CuboidErrors

    def reach(self, confidence: Confidence) -> Float64:
        """Return how far the interval of each count reaches: float64 (pairs), records."""
        half_width = self.errors.half_width(self.variance, confidence)
        return np.broadcast_to(np.asarray(half_width, dtype=np.float64), self.variance.shape)

    def take(self, pairs: Int64) -> "Side":
        """Return that of some pairs."""
        return Side(self.counts[pairs], self.estimate[pairs], self.variance[pairs], self.errors)

    def of_plan(self, content: Content, sums: Sums) -> "Side":
        """Return it with the errors of a cuboid of the plan, if these sums are one."""
        is_planned = sums.is_cuboid and sums.levels in content.plan.by_levels
        return replace(self, errors=content.errors(sums.levels)) if is_planned else self

    def among(self, pairs: int) -> "Side":
        """Return it with intervals that hold at once over so many pairs."""
        return replace(self, errors=replace(self.errors, cells=pairs))


@frozen(eq=False)
class Pairs:
    """Pairs of sums of one release.

    Attributes:
        labels: a row a pair: what both are of.
        first: of each pair; a numerator.
        second: a denominator.
        covariance: float64 (pairs), records²; NaN where it is not known.
        are_shares: whether the second sum has all that the first has.
        cells: how many pairs there are, listed or not, over which simultaneous sets hold.
    """

    labels: pl.DataFrame
    first: Side
    second: Side
    covariance: Float64
    are_shares: bool
    cells: int

    def ratios(self, confidence: Confidence) -> pl.DataFrame:
        """Return the ratio of each pair: see `hedgerow.release.release.Release.ratio`."""
        most = 1.0 if self.are_shares else np.inf
        given = self.joint(confidence)
        low, high, bounded = given.sets(most)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.first.counts / self.second.counts
        at_once = self.joint(replace(confidence, simultaneous=True))
        is_told = (self.second.counts > 0) & ~given.may_be_anything
        columns = {
            COUNT: self.first.counts,
            OF: self.second.counts,
            RATIO: ratio,
            LOW: low,
            HIGH: high,
            BOUNDED: bounded,
            CONTRADICTED: is_told & ~at_once.holds(np.where(is_told, ratio, 0.0)),
        }
        check_names(self.labels.columns, columns)
        frame = pl.DataFrame(columns)
        if self.labels.width:  # the total has none
            frame = pl.concat([self.labels, frame], how="horizontal")
        told = pl.Series(is_told)
        endless = pl.Series(np.isfinite(high))
        return frame.with_columns(
            pl.when(told).then(pl.col(RATIO, LOW)),
            pl.when(told & endless).then(pl.col(HIGH)).alias(HIGH),
        )

    def differences(self, confidence: Confidence) -> pl.DataFrame:
        """Return each first sum less its second one with its interval, of known covariances."""
        estimate = self.first.estimate - self.second.estimate
        both = self.first.variance + self.second.variance
        variance = np.maximum(both - 2 * self.covariance, 0.0)
        count = self.first.counts - self.second.counts
        errors = replace(self.first.errors, cells=self.cells, total=None)
        low, high = _around(estimate, errors.half_width(variance, confidence))
        at_once = replace(confidence, simultaneous=True)
        lowest, highest = _around(estimate, errors.half_width(variance, at_once))
        columns = {
            COUNT: count,
            ESTIMATE: estimate,
            STANDARD_ERROR: np.sqrt(variance),
            LOW: low,
            HIGH: high,
            CONTRADICTED: (count < lowest) | (count > highest),
        }
        check_names(self.labels.columns, columns)
        return self.labels.with_columns(**{k: pl.Series(v) for k, v in columns.items()})

    def take(self, pairs: Int64) -> "Pairs":
        """Return some pairs."""
        sides = self.first.take(pairs), self.second.take(pairs)
        covariance = self.covariance[pairs]
        return Pairs(self.labels[pairs], *sides, covariance, self.are_shares, self.cells)

    def labelled(self, labels: pl.DataFrame) -> "Pairs":
        """Return the same pairs with labels."""
        return replace(self, labels=labels)

    def joint(self, confidence: Confidence) -> Ratios:
        """Return both estimates as they reach with a confidence, for all pairs at once or each."""
        size = self.first.variance * self.second.variance
        with np.errstate(divide="ignore", invalid="ignore"):
            correlation = np.where(size > 0, self.covariance / np.sqrt(size), 0.0)
        correlation = np.where(np.isnan(correlation), UNKNOWN, np.clip(correlation, -1.0, 1.0))
        first = self.first.among(self.cells)
        second = self.second.among(self.cells)
        reach = first.reach(confidence)
        of_second = second.reach(confidence)
        # one sum by two names has one error, and is all of itself
        both = self.first.variance + self.second.variance
        of_second = np.where(both - 2 * self.covariance <= ROUND_OFF * both, reach, of_second)
        told = Ratios(first.estimate, reach, second.estimate, of_second, correlation)
        return told.blurred()


def check_names(labels: Sequence[str], figures: Iterable[str]) -> None:
    """Raise a TableError where a column of codes is called like one of figures."""
    if taken := set(labels).intersection(figures):
        raise TableError(
            f"a column of codes is called {min(taken)!r}, as a column of figures is; name it "
            f"otherwise in a new release"
        )


def _around(estimate: Float64, reach: int | Float64) -> IntPair:
    """Return the whole numbers within reach of estimates, the nearest one among them."""
    nearest = np.rint(estimate)
    low = np.minimum(np.ceil(estimate - reach), nearest)
    high = np.maximum(np.floor(estimate + reach), nearest)
    return int64(low), int64(high)
