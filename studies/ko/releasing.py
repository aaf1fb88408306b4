"""Ko's release model, simulated: Laplace noise, clipped at 0, with consistency."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from hedgerow.arrays import Float64, Int64
from hedgerow.kernels import kernel, over_families
from studies.ko.tables import Case


@dataclass(frozen=True)
class Moments:
    """Bias² and variance of released counts over all levels, from runs.

    Attributes:
        bias2: records², what the runs' own variance adds to it taken off.
        error: its Monte Carlo standard error, cells taken for independent.
        variance: records².
    """

    bias2: float
    error: float
    variance: float

    @property
    def mse(self) -> float:
        """Both together."""
        return self.bias2 + self.variance


def released(case: Case, budgets: Float64, rng: Generator) -> list[Float64]:
    """One release: the counts of each level.

    Each is max(0, N + Lap(1/ε)), then projected from the top down onto the non-negative vectors
    that sum to the parent's (Ko et al., program (8)).
    """
    noisy = [
        np.maximum(0.0, truth + rng.laplace(scale=1 / budget, size=len(truth)))
        for budget, truth in zip(budgets, case.truth, strict=True)
    ]
    noisy[1] = projected(noisy[1], np.array([0, len(noisy[1])]), noisy[0])
    noisy[2] = projected(noisy[2], case.tract_start, noisy[1])
    return noisy


def moments(case: Case, releases: Iterable[Sequence[Float64 | Int64]], runs: int) -> Moments:
    """Bias² and variance of releases, so many."""
    sums = [np.zeros((2, len(truth))) for truth in case.truth]
    for release in releases:
        for total, made, truth in zip(sums, release, case.truth, strict=True):
            error = made - truth
            total[0] += error
            total[1] += error * error
    rows = []
    for mean, square in (total / runs for total in sums):
        variance = (square - mean**2) * (runs / (runs - 1))
        noise = variance / runs
        doubt = (2 * noise**2 + 4 * mean**2 * noise).sum()
        rows.append(((mean**2 - noise).sum(), doubt, variance.sum()))
    bias2, doubts, variances = np.sum(rows, axis=0)
    return Moments(float(bias2), float(np.sqrt(doubts)), float(variances))


def projected(noisy: Float64, family_start: Int64, totals: Float64) -> Float64:
    """The nearest non-negative real vectors, one a family, that sum to the totals."""
    result = np.empty_like(noisy)
    over_families(
        lambda first, last: _project(noisy, family_start, totals, first, last, result),
        family_start,
    )
    return result


@kernel
def _project(
    noisy: Float64, family_start: Int64, totals: Float64, first: int, last: int, result: Float64
) -> None:
    """max(0, x - s), with s from the sorted x at which the sum is right."""
    for family in range(first, last):
        x = noisy[family_start[family] : family_start[family + 1]]
        ordered = np.sort(x)[::-1]
        until, shift = 0.0, 0.0
        for i in range(len(x)):
            until += ordered[i]
            here = (until - totals[family]) / (i + 1)
            if ordered[i] >= here:  # equal at the first where the total is 0: all become 0
                shift = here
        for i in range(len(x)):
            result[family_start[family] + i] = max(0.0, x[i] - shift)
