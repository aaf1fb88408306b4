"""Bias² and variance of released counts over simulated runs, cell by cell, in bounded memory.

With e_rc the error of cell c in run r = 1..R, n cells, ``ē_c`` its mean over runs:

    MSE = Σ_rc e² / (nR),   B = Σ_c ē_c² / n,
    variance = (MSE - B) R / (R - 1),   bias² = B - variance / R,

both without bias themselves (B counts the error of ē_c as bias), and bias² + variance = MSE to the
last digit of the arithmetic. An estimated bias² may be a little below 0. All that is kept of a
cell is the sum of its errors, an integer, so the order of the runs does not matter.

Their Monte Carlo errors are delete-a-group jackknife ones: run r belongs to group r mod G, and
with θ_g what the runs outside g give, se² = (G-1)/G Σ (θ_g - mean θ)². So G sums are kept a cell.
"""

from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.evaluate.method import Cells, side_by_side
from hedgerow.kernels import kernel

GROUPS = 8
FEWEST_GROUPS = 4
MOST_SUMS = 1 << 28
"""Sums that one depth keeps (2 GiB)."""

MOST_LAID_OUT = MOST_SUMS // FEWEST_GROUPS
"""Possible cells of a depth up to which all of them can have sums."""


@dataclass(frozen=True, slots=True)
class BiasVariance:
    """Bias² and variance of a depth, and how sure they are.

    Attributes:
        bias2, variance: records², means over all possible cells.
        bias2_error, variance_error: Monte Carlo standard errors; NaN for fewer than 3 runs.
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
    _sums: list[Cells] = field(init=False)
    _locks: list[Lock] = field(init=False)
    _full: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        groups = min(GROUPS, self.runs)
        if self.cells <= MOST_LAID_OUT:
            groups = min(groups, MOST_SUMS // self.cells)
        nothing = np.empty(0, dtype=np.int64)
        self._sums = [Cells(nothing, nothing)] * groups
        self._locks = [Lock() for _ in range(groups)]

    def add(self, run: int, number: Int64 | None, errors: Int64) -> None:
        """Add the errors of a run.

        Args:
            run: 0..R-1.
            number: int64 (cells), ascending: those that may be in error; None for all.
            errors: int64 (cells), records.
        """
        group = run % len(self._sums)
        with self._locks[group]:
            if self._full:
                return
            found = self._added(self._sums[group], number, errors)
            held = len(found.values) * (1 if found.number is None else 2)
            self._full = held > MOST_SUMS // len(self._sums)
            self._sums[group] = found

    def _added(self, known: Cells, number: Int64 | None, errors: Int64) -> Cells:
        """Return the sums of a group with a run more; laid out where that takes less memory."""
        if number is None or known.number is None:
            sums = known.laid_out(self.cells)
            if number is None:
                sums += errors
            else:
                sums[number] += errors
            return Cells(None, sums)
        both, one, other = side_by_side(known, Cells(number, errors), self.cells)
        found = Cells(both, one + other)
        return found if 2 * len(one) < self.cells else Cells(None, found.laid_out(self.cells))

    def found(self, squares: Float64) -> BiasVariance | None:
        """Bias² and variance; None where more cells had an error than can be kept.

        Args:
            squares: float64 (R): for each run the sum of its squared errors, records².
        """
        if self._full:
            return None
        gram = self._gram()
        groups = len(gram)
        sizes = np.bincount(np.arange(self.runs) % groups, minlength=groups)
        parts = np.bincount(np.arange(self.runs) % groups, weights=squares, minlength=groups)
        whole = _both(gram.sum(), parts.sum(), self.runs, self.cells)
        if self.runs < 3:
            return BiasVariance(*whole, np.nan, np.nan)
        without = np.array(
            [
                _both(
                    gram.sum() - 2 * gram[g].sum() + gram[g, g],
                    parts.sum() - parts[g],
                    self.runs - int(sizes[g]),
                    self.cells,
                )
                for g in range(groups)
            ]
        )
        spread = ((without - without.mean(axis=0)) ** 2).sum(axis=0)
        return BiasVariance(*whole, *np.sqrt((groups - 1) / groups * spread).tolist())

    def _gram(self) -> Float64:
        """Return for each two groups the sum over cells of the product of their sums: (G, G)."""
        groups = len(self._sums)
        gram = np.zeros((groups, groups))
        for g in range(groups):
            for h in range(g + 1):
                gram[g, h] = gram[h, g] = _product(self._sums[g], self._sums[h], self.cells)
        return gram


def _product(one: Cells, other: Cells, cells: int) -> float:
    _, a, b = side_by_side(one, other, cells)
    return float(np.dot(a.astype(np.float64), b.astype(np.float64)))


def _both(squared_sums: float, squares: float, runs: int, cells: int) -> tuple[float, float]:
    """bias² and variance from Σ_c (Σ_r e)² and Σ_rc e²."""
    mean_square, raw = squares / (runs * cells), squared_sums / (runs * runs * cells)
    variance = (mean_square - raw) * runs / (runs - 1)
    return raw - variance / runs, variance


# How far the counts of one depth in one run are from the truth.

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
    found = np.zeros(len(SCORES))
    _score(given, true, float(cells), _EDGES, found)
    return found


def cumulative_square(number: Int64 | None, errors: Int64, cells: int) -> float:
    """The mean square of the running sums of errors over all cells of an axis in order, records².

    Args:
        number: int64 (cells), ascending: of the cells that may be in error; None for all.
        errors: int64 (cells), records.
        cells: how many are possible.
    """
    every = np.empty(0, dtype=np.int64) if number is None else number
    return _cumulative_square(every, errors, cells)


@kernel
def _cumulative_square(number: Int64, errors: Int64, cells: int) -> float:
    total = 0.0
    running = 0.0
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
    shown = 0
    false = 0
    there = 0
    missed = 0
    given_total = 0.0
    true_total = 0.0
    sizes = np.zeros(len(edges))
    relative = np.zeros(len(edges))
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
