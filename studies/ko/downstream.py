"""Ko's downstream task: an amount shared among the leaves of one tract by released counts."""

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.evaluate.funds import Logarithmic, Proportional, Quadratic, WeightedRule
from studies.ko.misallocation import misallocation
from studies.ko.own import own_releases
from studies.ko.releasing import released
from studies.ko.tables import Case, uniform

BUDGETS = (0.5, 1.0, 2.0, 4.0)
RULES: tuple[WeightedRule, ...] = (Logarithmic(), Proportional(), Quadratic())
KINDS = ("uniform", "optimum", "Hedgerow")
FINE = 1000
"""Real counts are shared in thousandths: shares depend on proportions alone."""


def misallocated(case: Case, tract: int, rng: Generator, runs: int, own_runs: int) -> pl.DataFrame:
    """What each kind of release puts at the wrong leaves of one tract, by ε and rule.

    Returns:
        ``epsilon``, ``kind``, ``rule``, and the columns of `misallocation` (percent² of the
        amount); all kinds are consistent from the top down.
    """
    leaves = slice(case.tract_start[tract], case.tract_start[tract + 1])
    truth = (FINE * case.truth[2][leaves]).astype(np.int64)
    frames = []
    for epsilon in BUDGETS:
        tables = [
            [released(case, shares, rng)[2][leaves] for _ in range(runs)]
            for shares in (uniform(epsilon), case.optimum(epsilon))
        ]
        own = [made[2][leaves] for made in own_releases(case, epsilon, own_runs)]
        for kind, made in zip(KINDS, [*tables, own], strict=True):
            counts = np.rint(FINE * np.array(made)).astype(np.int64)
            for rule in RULES:
                found = misallocation(truth, counts, rule, 1.0, classes=(0,))[-1]
                what = {"epsilon": epsilon, "kind": kind, "rule": rule.name}
                frames.append(found.with_columns(pl.lit(v).alias(k) for k, v in what.items()))
    return pl.concat(frames)
