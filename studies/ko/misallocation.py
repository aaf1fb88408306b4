"""What goes to the wrong areas where an amount is shared by released counts."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError
from hedgerow.evaluate.funds import Rule

SIZES = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
EVERY = "all"


def misallocation(
    truth: Int64,
    released: Int64,
    rule: Rule,
    amount: float,
    classes: Sequence[int] = SIZES,
) -> pl.DataFrame:
    """How far areas are from what they should get, by size: for public or synthetic tables.

    With d_i = 100 (released_i - true_i) / amount, the misallocation of area i in percent of the
    amount, bias² is Σ (E d_i)² and variance Σ Var d_i over the areas of a class, as Ko et al.
    (Section 5.1) report them. Both are estimated without bias over the runs: the square of a mean
    of R runs is above (E d_i)² by Var d_i / R, which is taken off, so a bias² of nothing
    may come out a little below 0. Errors are those of the jackknife over runs; of a bias² that is
    small against its error they are too large, by a factor of √2 at most (it is then a
    degenerate U-statistic).

    Args:
        truth: int64 (cells), records.
        released: int64 (runs, cells), records, at least three runs.
        rule: how the amount is shared.
        amount: in any unit; of seats, how many.
        classes: the least true count of each class, ascending from 0.

    Returns:
        One row a class with an area in it, and one of all areas: ``records`` (such as ``10 to
        99``), ``areas``, ``due`` (what they get by true counts), ``paid`` (mean over runs),
        ``moved`` (mean of Σ |released - true|), all in units of the amount, ``bias2``,
        ``bias2_error``, ``variance``, ``variance_error`` (percent²).

    Raises:
        EstimateError: arrays that do not fit, or classes that are not ascending from 0.
    """
    if released.ndim != 2 or released.shape[0] < 3 or released.shape[1:] != truth.shape:
        raise EstimateError("released counts must be (runs, cells) with at least three runs")
    edges = np.asarray(classes)
    if not len(edges) or edges[0] != 0 or (np.diff(edges) <= 0).any():
        raise EstimateError("classes must be least counts that ascend from 0")
    if not amount > 0:
        raise EstimateError(f"the amount must be above 0, got {amount}")
    due = rule.allocate(truth, amount)
    paid = rule.allocate(released, amount)
    size = np.searchsorted(edges, truth, side="right") - 1
    rows = []
    for k in (*range(len(edges)), None):
        inside = np.ones(len(truth), dtype=bool) if k is None else size == k
        if inside.any():
            words = EVERY if k is None else _words(edges, k)
            rows.append(_class_row(words, due[inside], paid[:, inside], amount))
    return pl.DataFrame(rows)


def _class_row(words: str, due: Float64, paid: Float64, amount: float) -> dict[str, float | str]:
    """The figures of one class."""
    error = paid - due
    bias2, variance = _moments(error * (100 / amount))
    return {
        "records": words,
        "areas": len(due),
        "due": due.sum(),
        "paid": paid.sum(axis=1).mean(),
        "moved": np.abs(error).sum(axis=1).mean(),
        "bias2": bias2[0],
        "bias2_error": bias2[1],
        "variance": variance[0],
        "variance_error": variance[1],
    }


def _moments(errors: Float64) -> tuple[tuple[float, float], tuple[float, float]]:
    """Bias² and variance, summed over cells, each with its jackknife error over runs.

    With d_r the errors of run r, s their sum and q = Σ |d_r|², unbiased estimates over R runs are
    bias² = (|s|² - q) / (R (R - 1)) and variance = (q - |s|²/R) / (R - 1); leaving run r out takes
    d_r from s and |d_r|² from q.
    """
    runs = len(errors)
    own = np.einsum("rc,rc->r", errors, errors)
    along = errors @ errors.sum(axis=0)
    whole = along.sum()
    squares = own.sum()
    less = whole - 2 * along + own
    less_squares = squares - own
    fewer = runs - 1
    bias2 = (whole - squares) / (runs * (runs - 1))
    variance = (squares - whole / runs) / (runs - 1)
    without_bias2 = (less - less_squares) / (fewer * (fewer - 1))
    without_variance = (less_squares - less / fewer) / (fewer - 1)
    return (bias2, _jackknife(without_bias2)), (variance, _jackknife(without_variance))


def _jackknife(without: Float64) -> float:
    """The standard error from the estimates without one run each."""
    return float(np.sqrt((len(without) - 1) * np.var(without)))


def _words(edges: Int64, k: int) -> str:
    """The counts of a class."""
    if k == len(edges) - 1:
        return f"{edges[k]:,} or more"
    last = edges[k + 1] - 1
    return f"{edges[k]:,}" if last == edges[k] else f"{edges[k]:,} to {last:,}"
