"""Releases of Boninsegna & Silvestri's tables by their methods and by ours, beside their results.

The results of their published program (github.com/aidaLabDEI/TDA_hierarchical at 6f8d70b,
``results/*/results_1.pickle``) are the paper's figures, as its README says; ``published.json``
holds their means and errors. The program departs from the paper twice. It divides ρ by twice the
depth of the tree and uses the first half of the parts, so the noise of a depth has σ² = 2T/ρ, not
T/ρ: half of the budget is never spent. And SH ran with the ℓ2 sensitivity √2 in place of the ℓ1
sensitivity 2 (mended in June 2025, after the results), so its noise is too small by √2.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import count, product
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.arrays import Float64
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate import method as simulation
from hedgerow.evaluate.baselines import LeafNoise, StabilityHistogram
from hedgerow.evaluate.method import Released, Releasing, of_leaves
from hedgerow.evaluate.simulate import Tally
from hedgerow.noise.bits import Bits
from hedgerow.plan.allocation.allocation import Allocation
from hedgerow.privacy.budget import Budget, rho_within
from studies.boninsegna.tables import Table
from studies.page import Row
from studies.releases import DELTA, trips_plan, within

EPSILONS = ("0.1", "1", "10")
METRICS = ("max_error", "false_discovery_rate")
SPENT = Fraction(1, 2)
"""The part of ρ that the authors' program uses."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A plan and an estimator.

    Attributes:
        estimator: of the pass.
        everything: whether all nodes are measured and combined, or the survivors' children alone.
        exact: noise by exact accounting, or by the paper's conversion ε = ρ + 2√(ρ ln(1/δ)).
        allocation: uniform unless given.
        spent: the part of ρ that is used; without exact accounting alone.
    """

    estimator: Estimator
    everything: bool = False
    exact: bool = True
    allocation: Allocation = field(default_factory=hr.Uniform)
    spent: Fraction = Fraction(1)

    def plan(
        self, counts: hr.Counts, epsilon: str | Fraction, budget: Budget | None = None
    ) -> hr.Plan:
        """The plan of a table under replace-one neighbours; its budget that of ε unless given."""
        budget = budget or (within(epsilon) if self.exact else loose_rho(epsilon, self.spent))
        measure = hr.All() if self.everything else hr.Survivors()
        return trips_plan(counts.tree, budget, measure, self.allocation)

    def releases(self, counts: hr.Counts, epsilon: str) -> Releasing:
        """Releases of a table."""
        return simulation.Setting("", self.plan(counts, epsilon), self.estimator)


def loose_rho(epsilon: str | Fraction, spent: Fraction = Fraction(1)) -> hr.Rho:
    """What the paper's conversion makes of ε, or a part of it."""
    budget = within(epsilon)
    return hr.Rho(rho_within(budget.epsilon, budget.delta) * spent)


AS_RUN = "InfTDA, σ² = 2T/ρ as run"
AS_SAID = "InfTDA, σ² = T/ρ as said"
TDA_L2 = "TDA ℓ2, σ² = 2T/ρ as run"
GAUSS = "VanillaGauss"
SH_AS_RUN = "SH, scale √2/ε as run"
SH_AS_SAID = "SH, scale 2/ε as said"
COLOURS = {AS_RUN: "#0072b2", TDA_L2: "#d55e00", GAUSS: "#999999", SH_AS_RUN: "#cc79a7"}
MARKS = {AS_RUN: "o", TDA_L2: "s", GAUSS: "v", SH_AS_RUN: "^"}
THEIRS = {
    AS_RUN: "InfTDA",
    AS_SAID: "InfTDA",
    TDA_L2: "TDA l2",
    GAUSS: "VanillaGauss",
    SH_AS_RUN: "SH",
    SH_AS_SAID: "SH",
}
"""The name of each method in ``published.json``."""


def gaussian_method(counts: hr.Counts, budget: Budget) -> LeafNoise:
    """Discrete Gaussian noise on every leaf, one record replaced.

    VanillaGauss is this with all of ρ by the paper's conversion.
    """
    return LeafNoise(counts.tree, budget, hr.Replace(), hr.DiscreteGaussian)


@dataclass(frozen=True, slots=True)
class StabilityAsRun:
    """SH as the authors ran it, with OpenDP's cut √2 + s ln(1/(√2 δ)) at the scale s = √2/ε.

    Attributes:
        epsilon: ε.
        seeds: of one release after the other.
    """

    epsilon: str
    seeds: Iterator[int] = field(default_factory=count)

    def released(self, counts: hr.Counts, _bits: Bits) -> Released:
        """The next one."""
        scale = math.sqrt(2) / float(self.epsilon)
        cut = math.sqrt(2) + scale * math.log(1 / (math.sqrt(2) * float(DELTA)))
        rng = np.random.default_rng(next(self.seeds))
        noisy = counts.values + rng.laplace(0, scale, len(counts.values))
        kept = noisy >= cut
        codes = tuple(code[kept] for code in counts.codes)
        return of_leaves(hr.Counts(counts.tree, codes, np.rint(noisy[kept]).astype(np.int64)))


SETTINGS = {
    AS_RUN: Setting(hr.Chebyshev(), exact=False, spent=SPENT),
    AS_SAID: Setting(hr.Chebyshev(), exact=False),
    TDA_L2: Setting(hr.Euclidean(), exact=False, spent=SPENT),
}
Methods = Mapping[str, Callable[[hr.Counts, str], Releasing]]
TREE_PASSES: Methods = {name: setting.releases for name, setting in SETTINGS.items()}
METHODS: Methods = {
    **TREE_PASSES,
    GAUSS: lambda counts, epsilon: gaussian_method(counts, loose_rho(epsilon)),
    SH_AS_RUN: lambda _, epsilon: StabilityAsRun(epsilon),
    SH_AS_SAID: lambda _, epsilon: StabilityHistogram(within(epsilon), hr.Replace()),
}
"""The paper's methods, as run and as said: SH has noise of scale 2/ε on the positive leaves, and
those below 1 + 2 ln(2/δ)/ε dropped."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A metric by depth.

    Attributes:
        mean: of each depth 0 … T, over runs.
        error: standard errors of these.
        spread: relative standard error of the geometric mean over the depths below the root.
    """

    mean: Sequence[float] | Float64
    error: Sequence[float] | Float64
    spread: float = 0.0

    @classmethod
    def of(cls, runs: Float64) -> "Curve":
        """From float64 (runs, T + 1)."""
        mean = runs.mean(axis=0)
        root = np.sqrt(len(runs))
        inside = np.flatnonzero(mean[1:] > 0) + 1
        relative = (runs[:, inside] / mean[inside]).sum(axis=1) / max(len(inside), 1)
        return cls(mean, runs.std(axis=0, ddof=1) / root, float(relative.std(ddof=1) / root))

    @property
    def below(self) -> tuple[range, Sequence[float] | Float64]:
        """The depths below the root, and the means there."""
        return range(1, len(self.mean)), self.mean[1:]

    @property
    def typical(self) -> float:
        """The geometric mean over the depths below the root."""
        return float(np.exp(np.log(self.mean[1:]).mean()))


@dataclass(frozen=True, slots=True)
class Found:
    """The errors of a method on a table at an ε.

    Attributes:
        seconds: of one release, the fastest run.
        max_error: records.
        false_discovery_rate: a share of the released positive cells.
    """

    seconds: float
    max_error: Curve
    false_discovery_rate: Curve

    @classmethod
    def of(cls, counts: hr.Counts, method: Releasing, runs: int) -> "Found":
        """Those of so many releases under seeds."""
        tally = Tally.of_seeds(counts, method, counts.tree.chain, range(runs))
        return cls(tally.seconds.min(), *(Curve.of(tally.score(metric)) for metric in METRICS))


Results = dict[tuple[str, str, str], Found]
"""By table, method and ε."""


def published() -> Results:
    """The authors' results, the methods by the names of `THEIRS`."""
    facts = json.loads(Path(__file__).with_name("published.json").read_text())
    return {
        (table, method, epsilon): Found(
            one["seconds"]["mean"], *(Curve(**one[metric]) for metric in METRICS)
        )
        for table, results in facts["tables"].items()
        for method, by_epsilon in results["mechanisms"].items()
        for epsilon, one in by_epsilon.items()
    }


def simulated(tables: Sequence[Table], methods: Methods, runs: int) -> Results:
    """The errors of so many releases of each table by each method."""
    return {
        (table.name, name, epsilon): Found.of(table.counts, method(table.counts, epsilon), runs)
        for table, (name, method), epsilon in product(tables, methods.items(), EPSILONS)
    }


def gap(ours: float, error: float, theirs: float, their_error: float) -> float:
    """Ours less theirs in standard errors."""
    return (ours - theirs) / max(math.hypot(error, their_error), 1e-12)


def compared_at(
    depth: int, what: str, sides: Sequence[Found], metric: str, reason: str, *, always: bool = False
) -> Row:
    """`compared` of the paper's results and ours in a metric at a depth."""
    paper, ours = (getattr(side, metric) for side in sides)
    error = float(np.hypot(ours.error[depth], paper.error[depth]))
    return compared(what, paper.mean[depth], ours.mean[depth], error, reason, always=always)


def compared(
    what: str, paper: float, ours: float, error: float, reason: str, *, always: bool = False
) -> Row:
    """A row that gives the reason where the two differ, or always."""
    row = Row(what, paper, ours, error, reason)
    return row if row.differs or always else replace(row, reason="")
