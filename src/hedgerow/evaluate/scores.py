"""How far the counts of one depth in one run are from the truth."""

import numpy as np
from numpy.typing import NDArray

from hedgerow.kernels import kernel

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

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
    """The errors of a depth: float64 (`SCORES`).

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
