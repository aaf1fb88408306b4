"""Bias² and variance of released counts over simulated runs, cell by cell, in bounded memory.

Unbiased estimates with delete-a-group jackknife errors: docs/proofs.md, "Bias and variance over
runs".
"""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.evaluate.method import CuboidCounts, align_cells
from hedgerow.kernels import kernel
from hedgerow.limits import MOST_CELLS_OF_RUNS, MOST_SUMS_OF_RUNS

GROUPS = 8


@dataclass(frozen=True, slots=True)
class BiasVariance:
    """Bias² and variance (records², means over all possible cells) and their standard errors.

    The Monte Carlo errors are NaN for fewer than 3 runs.
    """

    bias2: float
    variance: float
    bias2_error: float
    variance_error: float


@dataclass(slots=True, eq=False)
class ErrorSums:
    """The sums of errors of one depth, by group of runs and cell; safe on several threads.

    Cells without an error are not kept, until laying out all possible ones takes less memory.

    Attributes:
        cells: how many are possible.
        runs: R.
    """

    cells: int
    runs: int
    _sums: list[CuboidCounts] = field(init=False)
    _locks: list[Lock] = field(init=False)
    _full: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        groups = min(GROUPS, self.runs)
        if self.cells <= MOST_CELLS_OF_RUNS:
            groups = min(groups, MOST_SUMS_OF_RUNS // self.cells)
        self._sums = [CuboidCounts.none()] * groups
        self._locks = [Lock() for _ in range(groups)]

    def add(self, run: int, number: Int64 | None, errors: Int64) -> None:
        """Add the errors of run 0..R-1: of the cells of these numbers, or of all where None."""
        group = run % len(self._sums)
        with self._locks[group]:
            if self._full:
                return
            sums = self._added(self._sums[group], number, errors)
            held = len(sums.values) * (1 if sums.number is None else 2)
            self._full = held > MOST_SUMS_OF_RUNS // len(self._sums)
            self._sums[group] = sums

    def _added(self, before: CuboidCounts, number: Int64 | None, errors: Int64) -> CuboidCounts:
        """Return the sums of a group with one more run; dense where that takes less memory."""
        if number is None or before.number is None:
            sums = before.dense(self.cells)
            if number is None:
                sums += errors
            else:
                sums[number] += errors
            return CuboidCounts(None, sums)
        both, one, other = align_cells(before, CuboidCounts(number, errors), self.cells)
        after = CuboidCounts(both, one + other)
        return after if 2 * len(one) < self.cells else CuboidCounts(None, after.dense(self.cells))

    def moments(self, squares: Float64) -> BiasVariance | None:
        """Return bias² and variance from each run's sum of squared errors: float64 (R), records².

        None where more cells had an error than can be kept.
        """
        if self._full:
            return None
        gram = self._gram()
        groups = len(gram)
        sizes = np.bincount(np.arange(self.runs) % groups, minlength=groups).astype(np.float64)
        parts = np.bincount(np.arange(self.runs) % groups, weights=squares, minlength=groups)
        whole = _both(gram.sum(), parts.sum(), self.runs, self.cells)
        if self.runs < 3:
            return BiasVariance(*whole, np.nan, np.nan)
        left = gram.sum() - 2 * gram.sum(axis=1) + gram.diagonal()
        without = np.array(_both(left, parts.sum() - parts, self.runs - sizes, self.cells))
        errors = np.sqrt((groups - 1) * without.var(axis=1))
        return BiasVariance(*whole, *errors.tolist())

    def ends(self) -> tuple[float, float] | None:
        """Return the mean errors of the cells that are most too high and most too low, records.

        At least and at most 0. None where more cells had an error than can be kept.
        """
        if self._full:
            return None
        whole = CuboidCounts.none()
        for sums in self._sums:
            whole = self._added(whole, sums.number, sums.values)
        highest, lowest = int(whole.values.max(initial=0)), int(whole.values.min(initial=0))
        return highest / self.runs, lowest / self.runs

    def _gram(self) -> Float64:
        """Return for each two groups the sum over cells of the product of their sums: (G, G)."""
        groups = len(self._sums)
        gram = np.zeros((groups, groups))
        for g in range(groups):
            for h in range(g + 1):
                gram[g, h] = gram[h, g] = _product(self._sums[g], self._sums[h], self.cells)
        return gram


def _product(one: CuboidCounts, other: CuboidCounts, cells: int) -> float:
    _, a, b = align_cells(one, other, cells)
    return float(np.dot(a.astype(np.float64), b.astype(np.float64)))


def _both(squared_sums: Any, squares: Any, runs: Any, cells: int) -> tuple[Any, Any]:
    """Return bias² and variance from Σ_c (Σ_r e)² and Σ_rc e², of one sample or of several."""
    mean_square, raw = squares / (runs * cells), squared_sums / (runs * runs * cells)
    variance = (mean_square - raw) * runs / (runs - 1)
    return raw - variance / runs, variance


SIZE_CLASSES = (1, 10, 100, 1000, 10_000)
"""The least true count (records) of each class; a class ends where the next one begins."""

CLASS_NAMES = tuple(
    f"relative_error_{low}_or_more"
    if i == len(SIZE_CLASSES) - 1
    else f"relative_error_{low}_to_{SIZE_CLASSES[i + 1] - 1}"
    for i, low in enumerate(SIZE_CLASSES)
)
"""The mean of |error| / true count over the cells of each class."""

SCORES = (
    "mse",
    "max_error",
    "mae",
    "false_discovery_rate",
    "false_negative_rate",
    "total_variation",
    *CLASS_NAMES,
)
"""What `score` gives, in its order."""

_EDGES = np.array(SIZE_CLASSES, dtype=np.int64)


def score(given: Int64, true: Int64, cells: int) -> Float64:
    """Return the errors of a depth: float64 (`SCORES`).

    - ``mse`` (records²), ``mae`` (records): means over all possible cells; ``max_error`` (records).
    - ``false_discovery_rate``: the share of the cells released as positive that are truly 0;
      ``false_negative_rate``: the share of the truly positive cells that are not released as
      positive (Boninsegna & Silvestri, Section 5). 0 where there are no such cells.
    - ``total_variation``: ½ Σ |p̂ - p| between the shares p of the total that cells have, with
      negative counts taken as 0; 1 where one side alone has no records.
    - relative errors: see `CLASS_NAMES`; NaN where a class has no cells.

    Args:
        given: int64 (cells), records: of the cells that either side holds; all others are 0.
        true: int64 (cells), records.
        cells: how many are possible.
    """
    scores = np.zeros(len(SCORES))
    _score(given, true, float(cells), _EDGES, scores)
    return scores


def cumulative_square(number: Int64 | None, errors: Int64, cells: int) -> float:
    """Return the mean square of the running sums of errors over all cells in order, records²."""
    every = np.empty(0, dtype=np.int64) if number is None else number
    return _cumulative_square(every, errors, cells)


@kernel
def _cumulative_square(number: Int64, errors: Int64, cells: int) -> float:
    total = 0.0
    running = 0.0  # the sum of the errors up to cell i, constant until the next listed cell
    for i in range(len(errors)):
        running += errors[i]
        here = number[i] if len(number) > 0 else i
        after = cells
        if i + 1 < len(errors):
            after = number[i + 1] if len(number) > 0 else i + 1
        total += running * running * (after - here)
    return total / cells


@kernel
def _score(given: Int64, true: Int64, cells: float, edges: Int64, out: Float64) -> None:
    shown = 0  # cells released as positive
    false = 0  # of them, those that are truly 0
    there = 0  # truly positive cells
    missed = 0  # of them, those not released as positive
    given_total = 0.0
    true_total = 0.0
    sizes = np.zeros(len(edges))  # cells by size class of the true count
    relative = np.zeros(len(edges))  # sums of |error| / true count by size class
    for i in range(len(given)):
        error = float(abs(given[i] - true[i]))
        out[0] += error * error
        out[1] = max(out[1], error)
        out[2] += error
        shown += given[i] > 0
        false += given[i] > 0 and true[i] == 0
        there += true[i] > 0
        missed += true[i] > 0 and given[i] <= 0
        given_total += max(given[i], 0)
        true_total += true[i]
        if true[i] > 0:
            k = len(edges) - 1
            while true[i] < edges[k]:
                k -= 1
            sizes[k] += 1.0
            relative[k] += error / true[i]
    out[0] /= cells
    out[2] /= cells
    out[3] = false / max(shown, 1)
    out[4] = missed / max(there, 1)
    if given_total > 0.0 and true_total > 0.0:
        for i in range(len(given)):
            out[5] += 0.5 * abs(max(given[i], 0) / given_total - true[i] / true_total)
    else:
        out[5] = 1.0 if given_total != true_total else 0.0
    for k in range(len(edges)):
        out[len(out) - len(edges) + k] = relative[k] / sizes[k] if sizes[k] > 0.0 else np.nan
