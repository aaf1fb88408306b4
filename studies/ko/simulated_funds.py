"""What an amount shared by simulated releases of a public table gives to the wrong areas."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from hedgerow.arrays import Int64
from hedgerow.errors import PlanError
from hedgerow.evaluate.funds import Rule
from hedgerow.evaluate.method import CuboidCounts, Method
from hedgerow.evaluate.simulate import check_simulation, run_bits
from hedgerow.kernels import core_count
from hedgerow.release.descent.jobs import LocalEngine
from hedgerow.tables.counts import Counts
from studies.ko.misallocation import SIZES, misallocation

MOST_NUMBERS = 1 << 27


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
    workers: int | None = None,
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
        workers: threads; one a core unless given. Results do not change.
        classes: the least true count of each class of areas, ascending from 0.

    Returns:
        The rows of `studies.ko.misallocation.misallocation` for each setting, named in a
        first column ``setting``: misallocation's bias² and variance (percent² of the amount), what
        is due, paid and moved.

    Raises:
        PlanError: as `simulate`; no such level, or more counts than memory should hold.
        EstimateError: classes or an amount that cannot be.
    """
    check_simulation(counts, settings, public=public, runs=runs, workers=workers)
    tree = counts.tree
    names = [tree.cuboid_name(t) for t in range(tree.depth + 1)]
    if level not in names:
        raise PlanError(f"no level is called {level!r}; there are {', '.join(names)}")
    levels = tree.chain[names.index(level)]
    cells = tree.cells(levels)
    if runs * cells > MOST_NUMBERS:
        raise PlanError(
            f"{runs:,} runs of {cells:,} counts at {level} fill the memory; simulate fewer, or "
            "share at a coarser level"
        )
    truth = CuboidCounts.true(counts, levels).dense(cells)
    engine = LocalEngine(workers or core_count())

    def found(setting: Method) -> pl.DataFrame:
        def run(r: int) -> Int64:
            made = setting.released(counts, run_bits(seed, r))
            return np.maximum(next(given for one, given in made if one == levels).dense(cells), 0)

        released = np.array(list(engine.run(range(runs), run)))
        rows = misallocation(truth, released, rule, amount, classes)
        return rows.select(pl.lit(setting.name).alias("setting"), pl.all())

    return pl.concat([found(setting) for setting in settings])
