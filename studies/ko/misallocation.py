"""What goes to the wrong areas where an amount is shared by released counts."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64
from hedgerow.evaluate.funds import Rule
from hedgerow.evaluate.method import CuboidCounts, Method
from hedgerow.evaluate.metrics import band_name
from hedgerow.evaluate.simulate import check_simulation, run_bits
from hedgerow.release.descent.jobs import LocalEngine
from hedgerow.tables.counts import Counts

SIZES = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


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
        amount: above 0, in any unit; of seats, how many.
        classes: the least true count of each class, ascending from 0.

    Returns:
        One row a class with an area in it, and one of all areas: ``records`` (such as ``10–99``),
        ``areas``, ``due`` (what they get by true counts), ``paid`` (mean over runs),
        ``moved`` (mean of Σ |released - true|), all in units of the amount, ``bias2``,
        ``bias2_error``, ``variance``, ``variance_error`` (percent²).
    """
    due, paid = rule.allocate(truth, amount), rule.allocate(released, amount)
    size = np.searchsorted(classes, truth, side="right") - 1
    most = (*(least - 1 for least in classes[1:]), None)
    named = {band_name(*ends): size == k for k, ends in enumerate(zip(classes, most, strict=True))}
    named["all"] = size >= 0
    return pl.DataFrame([
        {"records": words, **_figures(due[inside], paid[:, inside], amount)}
        for words, inside in named.items()
        if inside.any()
    ])  # fmt: skip


def _figures(due: Float64, paid: Float64, amount: float) -> dict[str, float]:
    """The figures of one class.

    With d_r the errors of run r in percent, s their sum and q = Σ |d_r|², unbiased estimates over R
    runs are bias² = (|s|² - q) / (R (R - 1)) and variance = (q - |s|²/R) / (R - 1); leaving run r
    out takes d_r from s and |d_r|² from q.
    """
    runs, error = len(paid), paid - due
    errors = error * (100 / amount)
    own = np.einsum("rc,rc->r", errors, errors)
    along = errors @ errors.sum(axis=0)
    whole, squares, fewer = along.sum(), own.sum(), runs - 1
    less, less_squares = whole - 2 * along + own, squares - own
    bias2 = (less - less_squares) / (fewer * (fewer - 1))
    variance = (less_squares - less / fewer) / (fewer - 1)
    return {
        "areas": len(due),
        "due": due.sum(),
        "paid": paid.sum(axis=1).mean(),
        "moved": np.abs(error).sum(axis=1).mean(),
        "bias2": (whole - squares) / (runs * fewer),
        "bias2_error": np.sqrt(fewer * np.var(bias2)),
        "variance": (squares - whole / runs) / fewer,
        "variance_error": np.sqrt(fewer * np.var(variance)),
    }


def simulated_misallocation(  # noqa: PLR0913 - what is shared, how, and what is simulated
    counts: Counts,
    settings: Sequence[Method],
    level: str,
    rule: Rule,
    amount: float,
    *,
    public: bool,
    runs: int,
    seed: int = 0,
    classes: Sequence[int] = SIZES,
) -> pl.DataFrame:
    """How far areas are from what they should get, by size and setting.

    The simulated releases are those of `hedgerow.evaluate.simulate.simulate` under the same seed;
    counts below 0, which some baselines leave, share as 0.

    Args:
        counts: a public or synthetic table.
        settings: what to compare.
        level: a depth of the tree by name, such as ``"county"``.
        rule: how the amount is shared.
        amount: in any unit; of seats, how many.
        public: must be True: the word of whoever simulates that anyone may see this table.
        runs: how many releases of each to simulate, at least 3.
        seed: nothing that is simulated may be published as a release.
        classes: the least true count of each class of areas, ascending from 0.

    Returns:
        The rows of `misallocation` for each setting, named in a first column ``setting``.

    Raises:
        PlanError: as `simulate`.
        TableError: no such level.
    """
    check_simulation(counts, settings, public=public, runs=runs, workers=None)
    levels = counts.tree.chain[counts.tree.depth_of(level)]
    cells, frames = counts.tree.cells(levels), []
    truth = CuboidCounts.true(counts, levels).dense(cells)
    for setting in settings:

        def run(r: int, setting: Method = setting) -> Int64:
            made = setting.released(counts, run_bits(seed, r))
            return np.maximum(next(given for one, given in made if one == levels).dense(cells), 0)

        released = np.array([*LocalEngine().run(range(runs), run)])
        rows = misallocation(truth, released, rule, amount, classes)
        frames.append(rows.select(pl.lit(setting.name).alias("setting"), pl.all()))
    return pl.concat(frames)
