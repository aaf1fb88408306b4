"""How a release is audited: what runs of it show against what its plan promises.

The promise is a trade-off curve T (Dong, Roth & Su 2022, *Gaussian differential privacy*,
Definition 2.1): whoever tells two neighbouring tables apart from a release, and errs with
probability at most a where the first is true, errs with probability at least T(a) where the second
is. So an *event* (a set of outputs taken as a sign of the second table) contradicts the promise if
both its error probabilities are too small, and counting both errors over independent releases
bounds them from above (Jagielski, Ullman & Oprea 2020, *Auditing differentially private machine
learning*, who bound ε so; with a whole curve in the place of one (ε, δ): Nasr et al. 2023, *Tight
auditing of differentially private machine learning*).

1. Release each of two neighbouring tables n times, all runs with noise of their own.
2. On the first half of the runs choose *tests*: numbers that say how much an output looks like
   one of the second table, and thresholds, so that T is asked at central a (`CENTRAL`), where the
   bounds are sharp. There are five: the likelihood ratio of all noisy counts under the plan's own
   noise (the most powerful one if the code is right); marginals of all noisy counts, learned by
   counting; their best linear direction, learned (Fisher's: it sees noise that is shared between
   counts); and both learned ones on the published counts alone. Where something was measured, and
   where not, is part of the output.
3. On the other half, count errors, and bound each probability by Clopper & Pearson (1934).
   *Contradiction*: T is above the upper bound of the second error at the upper bound of the first
   (or the other way round, as neighbours are symmetric).

False alarms: with events chosen on other runs than they are counted on, each bound fails with
probability at most its level. The levels of all bounds of all audits sum to ALPHA (Bonferroni), so
code that keeps its promise is accused by any audit of the suite with probability at most 1e-6; that
is over keys, which are pinned where the code takes one, so that a run repeats exactly.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from hedgerow.noise.mechanisms import DiscreteGaussian, Mechanism
from hedgerow.privacy.profile import Profile

ALPHA = 1e-6
AUDITS = 30  # of code that must not be accused; tests/audit/test_audit.py holds the list
CENTRAL = (0.05, 0.1, 0.2, 0.35, 0.5)
STATISTICS = 5
LEVEL = ALPHA / (AUDITS * STATISTICS * len(CENTRAL) * 2)

Float64 = NDArray[np.float64]
Statistic = Callable[["Seen"], Float64]


@dataclass(frozen=True, eq=False)
class Seen:
    """What releases of one table show to those outside, one row a release.

    Attributes:
        noisy: float64 (releases, nodes of all depths): noisy counts, NaN where not measured.
        counts: float64 (releases, nodes of all depths): released counts, 0 where not listed.
    """

    noisy: Float64
    counts: Float64

    def __len__(self) -> int:
        return len(self.noisy)

    def halves(self) -> tuple["Seen", "Seen"]:
        """The first and the second half of the releases."""
        cut = len(self) // 2
        return (
            Seen(self.noisy[:cut], self.counts[:cut]),
            Seen(self.noisy[cut:], self.counts[cut:]),
        )


@dataclass(frozen=True)
class Truth:
    """What the auditor knows, by node of all depths: what `Seen` has columns for.

    Attributes:
        first, second: int64 (nodes): what noise is added to, of the two tables.
        noise: for each node the noise that the plan gives it, None where it measures nothing.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    noise: tuple[Mechanism | None, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """An event and the upper bounds of its two error probabilities.

    Attributes:
        name: of the statistic and the central a of its threshold.
        first: of taking the first table for the second.
        second: of taking the second table for the first.
    """

    name: str
    first: float
    second: float

    def epsilon(self, delta: float) -> float:
        """No (ε, δ) promise with a smaller ε can be true (Jagielski et al. 2020, Section 3)."""
        chances = ((self.first, self.second), (self.second, self.first))
        return max(
            math.log((1 - delta - missed) / false) if missed < 1 - delta else 0.0
            for false, missed in chances
        )


def audited(first: Seen, second: Seen, truth: Truth) -> list[Event]:
    """All events, chosen on the first halves and bounded on the second ones."""
    (train_first, test_first), (train_second, test_second) = first.halves(), second.halves()
    events = []
    for name, statistic in _statistics(train_first, train_second, truth):
        usual = statistic(train_first)
        score_first, score_second = statistic(test_first), statistic(test_second)
        for central in CENTRAL:
            threshold = np.quantile(usual, 1 - central, method="higher")
            false = int((score_first >= threshold).sum())
            missed = int((score_second < threshold).sum())
            bounds = upper_bound(false, len(test_first)), upper_bound(missed, len(test_second))
            events.append(Event(f"{name} at {central}", *bounds))
    return events


def upper_bound(errors: int, runs: int) -> float:
    """Clopper & Pearson's: at most so probable, with confidence 1 - LEVEL."""
    return 1.0 if errors == runs else float(beta.ppf(1 - LEVEL, errors + 1, runs - errors))


def excess(events: list[Event], promise: Profile) -> float:
    """By how much T exceeds the bounds at the worst event: above 0 is a contradiction.

    How far below 0 it is for code that spends its whole budget says how much the audit would miss.
    """
    promised = promise.tradeoff
    return max(
        max(promised(event.first) - event.second, promised(event.second) - event.first)
        for event in events
    )


def _statistics(first: Seen, second: Seen, truth: Truth) -> Iterator[tuple[str, Statistic]]:
    yield "likelihood ratio", lambda seen: _likelihood_ratio(seen.noisy, truth)
    for name in ("noisy", "counts"):
        one, other = getattr(first, name), getattr(second, name)
        yield f"marginals of {name}", _on(name, _marginals(one, other))
        yield f"direction of {name}", _on(name, _direction(one, other))


def _on(name: str, score: Callable[[Float64], Float64]) -> Statistic:
    return lambda seen: score(getattr(seen, name))


def _likelihood_ratio(noisy: Float64, truth: Truth) -> Float64:
    """The logarithm of the second table's to the first's; unmeasured nodes say nothing."""
    found = np.zeros(len(noisy))
    for column, first, second, mechanism in zip(
        noisy.T, truth.first, truth.second, truth.noise, strict=True
    ):
        if mechanism is not None and first != second:
            size: Any = np.square if isinstance(mechanism, DiscreteGaussian) else np.abs
            per = float(mechanism.parameter) * (2 if size is np.square else 1)
            found += np.nan_to_num((size(column - first) - size(column - second)) / per)
    return found


def _marginals(first: Float64, second: Float64) -> Callable[[Float64], Float64]:
    """The sum over nodes of the logarithms of ratios of frequencies; missing is a value too."""
    tables = []
    for one, other in zip(first.T, second.T, strict=True):
        both = np.concatenate([one, other])
        known = both[~np.isnan(both)]
        low, high = (known.min(), known.max()) if len(known) else (0.0, 0.0)
        size = int(high - low) + 2
        tally = [np.bincount(_cells(side, low, high), minlength=size) for side in (one, other)]
        tables.append((low, high, np.log((tally[1] + 0.5) / (tally[0] + 0.5))))

    def score(seen: Float64) -> Float64:
        parts = (t[_cells(c, low, high)] for c, (low, high, t) in zip(seen.T, tables, strict=True))
        return np.asarray(sum(parts), dtype=np.float64)

    return score


def _cells(column: Float64, low: float, high: float) -> NDArray[np.int64]:
    """Value v in 1 + v - low, beyond the ends in the last ones; missing in 0."""
    inside = np.clip(column, low, high) - low + 1
    return np.where(np.isnan(inside), 0, inside).astype(np.int64)


def _direction(first: Float64, second: Float64) -> Callable[[Float64], Float64]:
    """The projection on S⁻¹(m₂ - m₁), S the pooled covariance: Fisher's linear discriminant."""
    usual = np.nan_to_num(np.nanmean(_with_a_value(np.concatenate([first, second])), axis=0))

    def features(seen: Float64) -> Float64:
        missing = np.isnan(seen)
        return np.hstack([np.where(missing, usual, seen), missing])

    one, other = features(first), features(second)
    pooled = (np.cov(one, rowvar=False) + np.cov(other, rowvar=False)) / 2
    ridge = 1e-9 * max(np.trace(pooled), 1.0) * np.eye(len(pooled))
    weights = np.linalg.solve(pooled + ridge, other.mean(axis=0) - one.mean(axis=0))
    return lambda seen: features(seen) @ weights


def _with_a_value(rows: Float64) -> Float64:
    """With a 0 below columns that are missing everywhere, so that they have a mean."""
    empty = np.isnan(rows).all(axis=0)
    return np.where(empty, 0.0, rows)
