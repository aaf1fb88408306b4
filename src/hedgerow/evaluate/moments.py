"""Bias² and variance of released counts over simulated runs, cell by cell, in bounded memory.

Unbiased estimates with delete-a-group jackknife errors: docs/proofs/trials.md, "Bias and variance
over runs".
"""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from hedgerow.arrays import Float64, float64, int64_zeros
from hedgerow.evaluate.method import CuboidCounts, align_cells
from hedgerow.evaluate.metrics import errors_of
from hedgerow.limits import MOST_CELLS_OF_RUNS, MOST_SUMS_OF_RUNS

GROUPS = 8
MOMENTS = ("bias2", "variance", "bias2_error", "variance_error")
"""Bias² and variance (records², means over all possible cells) and their standard errors."""


@dataclass(slots=True, eq=False)
class ErrorSums:
    """The sums of errors of one cuboid, by group of runs and cell.

    Cells without an error are not kept, until laying out all possible ones takes less memory.

    Attributes:
        cells: how many are possible.
        runs: R.
    """

    cells: int
    runs: int
    _sums: list[CuboidCounts] = field(init=False)
    _full: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        groups = min(GROUPS, self.runs)
        if self.cells <= MOST_CELLS_OF_RUNS:
            groups = min(groups, MOST_SUMS_OF_RUNS // self.cells)
        nothing = int64_zeros(0)
        self._sums = [CuboidCounts(nothing, nothing)] * groups

    def add(self, run: int, errors: CuboidCounts) -> None:
        """Add the errors of run 0..R-1."""
        if not self._full:
            group = run % len(self._sums)
            sums = self._sums[group] = self._sums[group].plus(errors, self.cells)
            held = len(sums.values) * (1 if sums.number is None else 2)
            self._full = held > MOST_SUMS_OF_RUNS // len(self._sums)

    def moments(self, squares: Float64) -> dict[str, float] | None:
        """Return `MOMENTS` from each run's sum of squared errors: float64 (R), records².

        None where more cells had an error than can be kept; errors are NaN for fewer than 3 runs.
        """
        if self._full:
            return None
        gram = np.zeros((len(self._sums),) * 2)
        group = np.arange(self.runs) % len(self._sums)
        for g, h in zip(*np.tril_indices(len(gram)), strict=True):  # sums over cells of products
            _, one, other = align_cells(self._sums[g], self._sums[h], self.cells)
            gram[g, h] = gram[h, g] = np.dot(float64(one), float64(other))
        sizes = float64(np.bincount(group))
        parts = np.bincount(group, squares)
        whole = _both(gram.sum(), parts.sum(), self.runs, self.cells)
        errors = np.full(2, np.nan)
        if self.runs > 2:
            left = gram.sum() - 2 * gram.sum(axis=1) + gram.diagonal()
            groups = len(gram)
            without = np.array(_both(left, parts.sum() - parts, self.runs - sizes, self.cells))
            errors = np.sqrt((groups - 1) * without.var(axis=1))
        return dict(zip(MOMENTS, (*whole, *errors.tolist()), strict=True))

    def ends(self) -> tuple[float, float] | None:
        """Return the mean errors of the cells that are most too high and most too low, records.

        At least and at most 0. None where more cells had an error than can be kept.
        """
        if self._full:
            return None
        nothing = int64_zeros(0)
        whole = CuboidCounts(nothing, nothing)
        for sums in self._sums:
            whole = whole.plus(sums, self.cells)
        highest = int(whole.values.max(initial=0))
        lowest = int(whole.values.min(initial=0))
        return highest / self.runs, lowest / self.runs


def _both(squared_sums: Any, squares: Any, runs: Any, cells: int) -> tuple[Any, Any]:
    """Return bias² and variance from Σ_c (Σ_r e)² and Σ_rc e², of one sample or of several."""
    mean_square = squares / (runs * cells)
    raw = squared_sums / (runs * runs * cells)
    variance = (mean_square - raw) * runs / (runs - 1)
    return raw - variance / runs, variance


SIZE_CLASSES = (1, 10, 100, 1000, 10_000)
"""The least true count (records) of each class; a class ends where the next one begins."""

CLASS_NAMES = (
    *(f"relative_error_{low}_to_{high - 1}" for low, high in pairwise(SIZE_CLASSES)),
    f"relative_error_{SIZE_CLASSES[-1]}_or_more",
)
"""The mean of |error| / true count over the cells of each class."""

SCORES = ("mse", "mae", "max_error", "false_discovery_rate", "false_negative_rate",
          "total_variation", *CLASS_NAMES, "cumulative_mse")  # fmt: skip
"""What `score` gives, in its order."""


def score(given: CuboidCounts, true: CuboidCounts, cells: int) -> tuple[list[float], CuboidCounts]:
    """Return `SCORES` of a cuboid, and the errors of its cells.

    - ``mse`` (records²): the mean over all possible cells; ``max_error`` to
      ``false_negative_rate``: those of `hedgerow.evaluate.metrics.errors_of`.
    - ``total_variation``: ½ Σ |p̂ - p| between the shares p of the total that cells have, with
      negative counts taken as 0; 1 where one side alone has no records.
    - relative errors: see `CLASS_NAMES`; NaN where a class has no cells.
    - ``cumulative_mse``: the mean square of the running sums of errors over all cells in order,
      records².
    """
    number, counts, exact = align_cells(given, true, cells)
    errors = counts - exact
    positive = exact > 0
    shown = np.maximum(counts, 0)
    totals = float(shown.sum()), float(exact.sum())
    variation = float(totals[0] != totals[1])
    if all(totals):
        variation = 0.5 * np.abs(shown / totals[0] - exact / totals[1]).sum()
    size = np.searchsorted(SIZE_CLASSES, exact[positive], side="right") - 1
    sizes = np.bincount(size, minlength=len(SIZE_CLASSES))
    with np.errstate(invalid="ignore"):
        relative = np.bincount(size, np.abs(errors[positive]) / exact[positive], len(sizes)) / sizes
    until = 1 if number is None else np.diff(number, append=cells)  # no error before the next cell
    cumulative = float((np.cumsum(errors, dtype=np.float64) ** 2 * until).sum() / cells)
    figures = errors_of(counts, exact, cells)
    mse = np.square(float64(errors)).sum() / cells
    listed = [figures[name] for name in SCORES[1:5]]
    return [mse, *listed, variation, *relative, cumulative], CuboidCounts(number, errors)
