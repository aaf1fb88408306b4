"""Ko's downstream task: an amount shared among the leaves of one tract by released counts."""

from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Int64
from hedgerow.evaluate.funds import Logarithmic, Proportional, Quadratic, WeightedRule
from studies.ko.misallocation import misallocation
from studies.ko.own import own_releases
from studies.ko.releasing import released
from studies.ko.tables import Case, uniform

RULES: tuple[WeightedRule, ...] = (Logarithmic(), Proportional(), Quadratic())
KINDS = ("uniform", "optimum", "Hedgerow")
FINE = 1000
"""Real counts are shared in thousandths: shares depend on proportions alone."""


@dataclass(frozen=True)
class Misallocated:
    """What one kind of release puts at the wrong leaves of one tract.

    Attributes:
        kind: one of `KINDS`.
        epsilon, rule: the setting.
        bias2, variance: percent² of the amount.
        bias2_error, variance_error: Monte Carlo standard errors.
    """

    kind: str
    epsilon: float
    rule: str
    bias2: float
    bias2_error: float
    variance: float
    variance_error: float


def misallocated(
    case: Case, tract: int, epsilon: float, rng: np.random.Generator, runs: int, own_runs: int
) -> list[Misallocated]:
    """For each kind of release and rule; all kinds are consistent from the top down."""
    leaves = slice(case.tract_start[tract], case.tract_start[tract + 1])
    truth = (FINE * case.truth[2][leaves]).astype(np.int64)
    shares = {"uniform": uniform(epsilon), "optimum": case.optimum(epsilon)}
    tables = {
        kind: np.array([released(case, b, rng)[2][leaves] for _ in range(runs)])
        for kind, b in shares.items()
    }
    own = own_releases(case, epsilon, own_runs)
    tables["Hedgerow"] = np.array([made[2][leaves] for made in own], dtype=np.float64)
    found = []
    for kind in KINDS:
        counts: Int64 = np.rint(FINE * tables[kind]).astype(np.int64)
        for rule in RULES:
            row = misallocation(truth, counts, rule, 1.0, classes=(0,)).row(-1, named=True)
            names = ("bias2", "bias2_error", "variance", "variance_error")
            found.append(Misallocated(kind, epsilon, rule.name, *(row[name] for name in names)))
    return found
