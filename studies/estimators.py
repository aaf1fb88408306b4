"""Estimators side by side on the tables of Boninsegna & Silvestri and on real ones.

Run as ``python -m studies.estimators``.
Reads ``../shared/data`` beside the repository (or the folder named as the first argument), and
writes ``docs/estimators.md`` and ``docs/estimators.png``. Simulated releases under seeds. What the
first section calls the paper: Chebyshev, children of survivors, noise σ² = T/ρ at each of T
depths, with ρ from ε = ρ + 2√(ρ ln(1/δ)).
"""

import platform
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from scipy.optimize import minimize

import hedgerow as hr
from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.error import (
    mean_variances,
    weighted_variance_and_gradient,
)
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.evaluate.baselines import StabilityHistogram
from hedgerow.evaluate.method import Releasing
from hedgerow.evaluate.simulate import Tally
from hedgerow.kernels import core_count
from hedgerow.plan.allocation.allocation import Allocation, rounded_shares
from studies.boninsegna.releases import EPSILONS, Setting, gaussian_method, loose_rho
from studies.boninsegna.tables import Table, areas_of, synthetic_tables
from studies.methods import picture_of_methods
from studies.page import ROOT, keep, markdown, with_data
from studies.real_tables import CASES
from studies.releases import Unprojected, by_pass, within

RUNS = 10
MANY_LEAVES = 5_000_000
ORDER = (
    "paper", "Chebyshev", "Euclidean", "Sparse", "Chebyshev, all", "Euclidean, all", "Sparse, all",
    "least squares", "leaf noise", "stability",
)  # fmt: skip
SHOWN = ("paper", "Chebyshev", "Euclidean, all", "leaf noise", "stability")
GOAL = 0.6
STEPS = 4
METRICS = ["max_error", "rmse", "false_discovery_rate", "false_negative_rate"]
PENALTIES = (0.25, 0.5, 1.0, 1.5, 1.75, 2.0)

INTRO = """# Estimators

Made by `python -m studies.estimators`; replace-one neighbours, δ = 1e-8, simulated releases under
seeds, means over runs (RMSE: root of the mean square). The same (ε, δ) for all:

- **paper**: Chebyshev on raw noisy counts of survivors' children, σ² = T/ρ with ρ from the loose
  conversion ε = ρ + 2√(ρ ln(1/δ)).
- **Chebyshev, Euclidean, Sparse** (penalty 0.5): survivors' children, exact calibration.
- **…, all**: all nodes measured, least squares combined upward before projecting.
- **least squares**: the unprojected estimates of the same noisy counts: may be negative and
  fractional, so nearly half of all empty cells come out as false positives.
- **leaf noise**: discrete Gaussian noise on every possible leaf; other depths are sums of leaves.
- **stability**: the stability histogram; other depths are sums of the leaves that it keeps.

The binary and random tables are the paper's own (`studies/boninsegna/tables.py`).

Only at the leaves can the last two have the smaller RMSE (UK commuting at ε = 1), as the whole
budget is spent there; at every depth above they are worse, at the top by a factor of ten and more.
"""

BINARY = """The aim, 25 % off the middle depths,
is met wherever counts are large compared with the noise. Where most are near 0 (1 % filled, or ε =
0.1 in the lower half), projecting from the top already uses the information that combining would
add."""

WIDE = """The aim, no more false
positives and 5 % less RMSE, is met by the penalty 0.5 at ε = 0.1 and 1. At ε = 10 the noise has σ²
< 4 and rounding to integers is too coarse: none of these penalties meets both."""

TOGETHER = """RMSE over that of the paper's pass at its noise, for the same (ε, δ), by depth;
*worst* is the largest. Settings are cumulative. *Shares from the tree* minimise the largest nominal
ratio V_t(s)/P_t over all shares: V_t the mean variance of least squares, P_t that of the paper's
pass without the bounds at 0. They depend on the tree alone and are
`hr.Optimal(objective="released", importance=w_t/(n_t P_t))` with the multipliers w of that program.
*Shares from the other country* were equalised on the other table, as is possible with a public one.
*Shares from its own truth* are not private; within the simulation error they are no better. That
error is about 4 % at depth 1 (12 and 5 cells; 32 runs for the UK, 160 for Italy), 2 % at depth 2
and less below.

*Least possible, unprojected*: min over s of max_t V_t(s)/P_t is convex (V_t = tr(W_t X(s)⁻¹), X
linear in s); the figure is a lower bound certified by duality, for all shares, depths left
unmeasured included. It applies wherever counts are large compared with the noise, because clipping
at zero has no effect there. Relative to the *measured* error of the paper it is larger: clipping
pulls the paper's leaves to 0, which no linear estimate does."""

NEEDED = """Why 0.6 at every depth cannot be attained. The smallest possible ratio is the factor of
the calibration, √(ρ_loose/ρ_exact), times the gain of combining and allocation on trees as wide as
these, about 0.9. The table: the share of the whole budget that linear estimates need to bring
depths 1 to t alone to 0.6 of the paper's measured RMSE, with nothing spent below them. More than
100 % is impossible. At depths 1-4 of the UK no cell is empty, so projection adds little there."""

SWEPT = """Worst ratios at ε = 1 (16 runs for the UK, 80 for Italy): estimators (a penalty of 0 is
Euclidean), measures, shares; and of linear estimates (nominal) with one depth left out and the best
shares for the others."""


def runs_of(table: Table) -> int:
    """Fewer where every run of `All` lays out many cells."""
    return RUNS if table.counts.tree.leaves < MANY_LEAVES else 2


PAPER = Setting(hr.Chebyshev(), exact=False)
ALL = Setting(hr.Euclidean(), everything=True)
ESTIMATORS: dict[str, Estimator] = {
    "Chebyshev": hr.Chebyshev(),
    "Euclidean": hr.Euclidean(),
    "Sparse": hr.Sparse(penalty=0.5),
}


def errors_over(counts: hr.Counts, method: Releasing, seeds: range) -> pl.DataFrame:
    """The mean errors of releases by depth below the root (RMSE: root of the mean square)."""
    tally = Tally.of_seeds(counts, method, counts.tree.chain, seeds)
    return tally.frame().filter(pl.col("depth") > 0)


def errors_of(table: Table, epsilon: str) -> dict[str, pl.DataFrame]:
    """The mean errors of all methods."""
    counts, budget, methods = table.counts, within(epsilon), dict[str, Releasing]()
    methods["paper"] = by_pass(PAPER.plan(counts, epsilon), hr.Chebyshev())
    for end, everything in (("", False), (", all", True)):
        plan = Setting(hr.Chebyshev(), everything=everything).plan(counts, epsilon)
        methods |= {f"{name}{end}": by_pass(plan, each) for name, each in ESTIMATORS.items()}
    methods |= {
        "least squares": Unprojected(plan),
        "leaf noise": gaussian_method(counts, budget),
        "stability": StabilityHistogram(budget, hr.Replace()),
    }
    seeds = range(runs_of(table))
    return {name: errors_over(counts, methods[name], seeds) for name in ORDER}


def rmse_of(
    table: Table, setting: Setting, epsilon: str, runs: int, *, first: int = 0, rho: bool = False
) -> Float64:
    """RMSE at depths 1..T; ``rho``: with the ρ of uniform shares, to spare the calibration.

    Other shares change it by far less than runs do.
    """
    budget = hr.Rho(exact_rho(table, epsilon)) if rho else None
    plan = setting.plan(table.counts, epsilon, budget)
    method = by_pass(plan, setting.estimator)
    return errors_over(table.counts, method, range(first, first + runs))["rmse"].to_numpy()


def exact_rho(table: Table, epsilon: str) -> Fraction:
    """The ρ of a plan with uniform shares under exact calibration."""
    plan = Setting(hr.Chebyshev()).plan(table.counts, epsilon)
    return plan.guarantee.rho or Fraction(0)


def fixed(shares: Float64) -> hr.Shares:
    """An allocation by given shares, in multiples of 1/10,000."""
    return hr.Shares([share or Fraction(0) for share in rounded_shares(shares)])


@dataclass(frozen=True)
class Linear:
    """Linear estimates of a tree, against the RMSE of the paper's at each depth.

    Attributes:
        shapes: of the tree.
        rho: what may be spent.
        paper: float64 (T): the paper's mean squared error by depth, records².
    """

    shapes: Shapes
    rho: float
    paper: Float64

    def own(self, shares: Float64) -> Float64:
        """The noise variance of each depth, 0 of the root: float64 (T + 1)."""
        with np.errstate(divide="ignore"):
            return np.append(0.0, 1 / (self.rho * shares))

    def ratios(self, shares: Float64) -> Float64:
        """V_t(s) over the paper's mean squared error: float64 (T)."""
        return mean_variances(self.shapes, self.own(shares), combine=True)[1:] / self.paper

    def slopes(self, shares: Float64) -> Float64:
        """Their derivatives by the shares: float64 (T, T)."""
        own, rows = self.own(shares), []
        for t, cells in enumerate(self.shapes.sizes[1:]):
            weights = np.zeros(len(own))
            weights[t + 1] = 1 / (cells * self.paper[t])
            _, slope = weighted_variance_and_gradient(self.shapes, own, weights, combine=True)
            rows.append(slope[1:] * self.rho)
        return np.array(rows)

    def least(self, out: int | None = None) -> tuple[Float64, Float64]:
        """Shares with the least largest ratio, and the ratios; depth ``out`` unmeasured."""
        depths = len(self.paper)
        most = [(0.0, 0.0) if t + 1 == out else (1e-6, 1.0) for t in range(depths)]
        start = np.array([high / 2 for _, high in most])
        found = minimize(
            lambda z: (z[-1], np.append(np.zeros(depths), 1.0)),
            np.append(start / start.sum(), 2.0),
            jac=True,
            method="SLSQP",
            bounds=[*most, (0, None)],
            constraints=[
                {
                    "type": "ineq",
                    "fun": lambda z: z[-1] - self.ratios(z[:-1]),
                    "jac": lambda z: np.column_stack([-self.slopes(z[:-1]), np.ones(depths)]),
                },
                {
                    "type": "eq",
                    "fun": lambda z: z[:-1].sum() - 1,
                    "jac": lambda _: np.append(np.ones(depths), 0.0),
                },
            ],
            options={"maxiter": 300, "ftol": 1e-12},
        )
        shares = found.x[:-1] / found.x[:-1].sum()
        return shares, self.ratios(shares)

    def certified(self, shares: Float64) -> tuple[float, Float64]:
        """A lower bound of the largest ratio of any shares, and the weights that prove it.

        For weights w ≥ 0 with Σw = 1, max_t V_t/P_t ≥ Σ w_t V_t/P_t, which is convex in the shares,
        so at least its value at s less max_k g_k - Σ s_k g_k, g minus its gradient.
        """
        slopes, count = self.slopes(shares), len(shares)
        system = np.ones((count + 1, count + 1))
        system[:-1, :-1], system[-1, -1] = slopes.T, 0
        solved = np.linalg.lstsq(system, np.append(np.zeros(count), 1.0), rcond=None)[0]
        weights = np.maximum(solved[:-1], 0)
        weights /= weights.sum()
        falls = -(weights @ slopes)
        return float(weights @ self.ratios(shares) - falls.max() + falls @ shares), weights

    def needed(self, deepest: int) -> float:
        """The share of ρ that brings depths 1..deepest to the goal, nothing measured below."""

        def spare(z: Float64) -> Float64:
            whole = np.append(np.exp(z), np.zeros(len(self.paper) - deepest))
            return 1 - self.ratios(whole)[:deepest] / GOAL**2

        found = minimize(
            lambda z: (np.exp(z).sum(), np.exp(z)),
            np.full(deepest, -1.0),
            jac=True,
            method="SLSQP",
            constraints=[{"type": "ineq", "fun": spare}],
            options={"maxiter": 300, "ftol": 1e-10},
        )
        return float(np.exp(found.x).sum())


def page_of(table: Table, epsilon: str, errors: Mapping[str, pl.DataFrame]) -> str:
    """All metrics of a table at one ε, a row a depth and a column a method."""
    rows = []
    for i, cuboid in enumerate(errors["paper"]["cuboid"]):
        cells = [f"{i + 1}: {cuboid}" if table.depth < 10 else str(i + 1)]
        for most, root, found, missed in (errors[n].select(METRICS).row(i) for n in ORDER):
            cells.append(f"**{root:.3g}** {most:.3g} {100 * found:.0f} {100 * missed:.0f}")
        rows.append(cells)
    return f"#### ε = {epsilon}\n\n{markdown(['depth', *ORDER], rows)}\n\n"


def tables(data: Path) -> list[Table]:
    """The six synthetic tables of the paper and the real ones."""
    real = [Table(case.name, case.load(data)[0]) for case in CASES if "commuting" in case.name]
    return [*synthetic_tables(), *real]


def middle_depths(chosen: Iterable[Table]) -> str:
    """(a) Combining on binary trees at the paper's noise."""
    rows = []
    for table, epsilon in product(chosen, EPSILONS):
        paper, combined = (
            rmse_of(table, setting, epsilon, RUNS)
            for setting in (PAPER, replace(PAPER, everything=True))
        )
        ratio = combined / paper
        cuts = 1 - ratio[table.depth // 4 : 3 * table.depth // 4]
        cut = f"{cuts.min():.0%} to {cuts.max():.0%}, mean {cuts.mean():.0%}"
        rows.append([table.name, epsilon, cut, *ratio])
    head = ["table", "ε", "cut at depths 5-12", *(str(t + 1) for t in range(len(ratio)))]
    return markdown(head, rows, ".2f")


def half_filled() -> Table:
    """One axis of four 16-ary levels, half of its 65,536 leaves filled with Pareto flows."""
    rng = np.random.default_rng(7)
    areas = areas_of([*product(range(16), repeat=4)])
    tree = hr.Tree([hr.Axis.from_frame("area", areas, areas.columns)])
    chosen = rng.choice(16**4, 16**4 // 2, replace=False).astype(np.int32)
    flows: Int64 = np.ceil(rng.pareto(1.2, len(chosen)) * 3 + 0.5).astype(np.int64)
    return Table("16-ary, half filled", hr.Counts.from_leaves(tree, (chosen,), flows))


def leaves_of_wide_trees() -> str:
    """(b) Sparse against Chebyshev at the paper's noise."""
    table, rows = half_filled(), []
    tried: dict[str, Estimator] = {
        "Chebyshev": hr.Chebyshev(),
        "Euclidean": hr.Euclidean(),
        **{f"Sparse {p:g}": hr.Sparse(penalty=p) for p in PENALTIES},
    }
    for epsilon in EPSILONS:
        plan, least = PAPER.plan(table.counts, epsilon), 0.0
        for name, estimator in tried.items():
            errors = errors_over(table.counts, by_pass(plan, estimator), range(RUNS))
            _, root, *rates = errors.select(METRICS).row(-1)
            least = least or root
            rows.append([epsilon, name, root, root / least - 1, *rates])
    head = "ε | estimator | RMSE | against Chebyshev | false positives | false negatives"
    return markdown(head, rows, " |  | .3g | +.1% | .1%")


@dataclass(frozen=True)
class Target:
    """A table of question (c) at one ε, with the paper's error and the bound of linear ones."""

    table: Table
    epsilon: str
    runs: int
    paper: Float64
    linear: Linear
    nominal: Linear

    @classmethod
    def of(cls, table: Table, epsilon: str, runs: int) -> "Target":
        """Measured: against the paper's RMSE. Nominal: against its variance, from public facts."""
        shapes = Shapes.of(table.counts.tree)
        rho = float(exact_rho(table, epsilon))
        own = table.depth / float(loose_rho(epsilon).rho)
        variances = mean_variances(shapes, np.append(0.0, np.full(table.depth, own)), combine=False)
        paper = rmse_of(table, PAPER, epsilon, 2 * runs)
        linear = Linear(shapes, rho, paper**2)
        return cls(table, epsilon, runs, paper, linear, Linear(shapes, rho, variances[1:]))

    def ratios(self, setting: Setting, *, rho: bool = False) -> Float64:
        """RMSE over the paper's by depth, under the setting's own calibration or as `rmse_of`."""
        runs = self.runs if rho else 2 * self.runs
        return rmse_of(self.table, setting, self.epsilon, runs, rho=rho) / self.paper

    def equalised(self) -> Float64:
        """Shares that make the ratio of RMSE to the paper's about alike at all depths.

        Each step, from the shares of the tree on, multiplies a share by its depth's ratio; runs
        under seeds of their own. It looks at the truth, so the result is no allocation for a
        release of this very table.
        """
        shares, _ = self.nominal.least()
        for _ in range(STEPS):
            tried = replace(ALL, allocation=fixed(shares))
            found = rmse_of(self.table, tried, self.epsilon, self.runs, first=10_000, rho=True)
            ratios = found / self.paper
            shares = shares * ratios / (shares @ ratios)
        return shares

    def from_the_tree(self) -> Allocation:
        """Shares with the least largest nominal ratio, through `hr.Optimal`: public facts alone."""
        shares, _ = self.nominal.least()
        _, weights = self.nominal.certified(shares)
        importance = weights / (self.nominal.shapes.sizes[1:] * self.nominal.paper)
        return hr.Optimal(importance=list(importance / importance.max()), objective="released")


def together(targets: Sequence[Target]) -> tuple[str, str]:
    """(c) Everything together against the paper: ratios of RMSE by depth; and the sweeps."""
    own = {(t.table.name, t.epsilon): t.equalised() for t in targets}
    rows, sweeps = [], []
    for target in targets:
        name, epsilon = target.table.name, target.epsilon
        other = next(s for (n, e), s in own.items() if n != name and e == epsilon)
        settings = {
            "exact calibration": Setting(hr.Chebyshev()),
            "+ all measured, combined": Setting(hr.Chebyshev(), everything=True),
            "+ Euclidean": ALL,
            "+ shares from the tree": replace(ALL, allocation=target.from_the_tree()),
            "or shares from the other country": replace(ALL, allocation=fixed(other)),
            "(shares from its own truth)": replace(ALL, allocation=fixed(own[name, epsilon])),
        }
        rows.append([name, epsilon, "paper's RMSE", "", *(f"{root:.3g}" for root in target.paper)])
        for words, setting in settings.items():
            ratio = target.ratios(setting)
            rows.append([name, epsilon, words, f"**{ratio.max():.3f}**", *ratio])
        for words, linear in (("nominal", target.nominal), ("measured", target.linear)):
            shares, squares = linear.least()
            what = f"least possible, unprojected, to the paper's {words} error"
            bound = np.sqrt(linear.certified(shares)[0])
            rows.append([name, epsilon, what, bound, *np.sqrt(squares)])
            print("(c)", name, epsilon, what, "shares", *(f"{share:.3f}" for share in shares))
        needs = (target.linear.needed(k) for k in range(1, target.table.depth + 1))
        sweeps.append([name, epsilon, *needs])
    depths = [str(t + 1) for t in range(targets[0].table.depth)]
    needed = markdown(["table", "ε", *(f"1-{t}" for t in depths)], sweeps, ".0%")
    return markdown(["table", "ε", "setting", "worst", *depths], rows, ".3f"), needed


def swept(targets: Sequence[Target]) -> str:
    """The worst ratio of estimators and measures; of linear estimates with a depth left out."""
    tried: dict[str, Estimator] = {"Chebyshev": hr.Chebyshev()}
    tried |= {f"Sparse {p:g}": hr.Sparse(penalty=p) for p in (0.0, 0.25, 0.5, 1.0, 2.0)}
    rows = []
    for target in targets:
        allocations = hr.Uniform(), target.from_the_tree()
        for name, estimator in tried.items():
            worst = [
                (target.ratios(Setting(estimator, everything, allocation=a), rho=True)).max()
                for everything, a in product((False, True), allocations)
            ]
            rows.append([target.table.name, name, *worst])
        for t in range(1, target.table.depth):
            bound = np.sqrt(target.nominal.least(out=t)[1].max())
            words = f"unprojected, depth {t} unmeasured"
            rows.append([target.table.name, words, "", "", "", bound])
    head = (
        "table | estimator | survivors | survivors, shares from the tree | all | "
        "all, shares from the tree"
    )
    return markdown(head, rows, ".3f")


def answers(found: Sequence[Table]) -> str:
    """The three questions, answered with numbers."""
    chosen = {table.name: table for table in found}
    binary = [table for table in found if table.name.startswith("binary")]
    runs = {"UK commuting 2011": 16, "Italy commuting 2011": 80}
    targets = [Target.of(chosen[n], e, k) for n, k in runs.items() for e in EPSILONS]
    a, b = middle_depths(binary), leaves_of_wide_trees()
    c, needed = together(targets)
    sweep = swept([target for target in targets if target.epsilon == "1"])
    return (
        "## (a) Combining on binary trees\n\nRMSE over that of the paper's pass at the same noise "
        f"(the paper's), Chebyshev, by depth 1-16. {BINARY}\n\n{a}\n\n"
        "## (b) Sparse on wide trees\n\nOne axis of four 16-ary levels, 65,536 leaves, half of "
        f"them filled with Pareto flows; leaves only, survivors, the paper's noise. {WIDE}\n\n"
        f"{b}\n\n## (c) Everything together\n\n{TOGETHER}\n\n{c}\n\n{NEEDED}\n\n{needed}\n\n"
        f"{SWEPT}\n\n{sweep}\n\n"
    )


def main(data: Path) -> None:
    """Run everything and write the page and the picture."""
    begun = time.perf_counter()
    found = tables(data)
    told = answers(found)
    pages, shown = [], {}
    for table in found:
        filled = len(table.counts.values) / table.counts.tree.leaves
        pages.append(
            f"### {table.name}\n\n{table.counts.total:,} records, {table.counts.tree.leaves:,} "
            f"leaves, {filled:.1%} filled, T = {table.depth}, {runs_of(table)} runs.\n\n"
        )
        for epsilon in EPSILONS:
            errors = errors_of(table, epsilon)
            pages.append(page_of(table, epsilon, errors))
            if table.name.startswith("UK") and epsilon == "1":
                shown = {name: errors[name] for name in SHOWN}
    taken = (
        f"{platform.machine()}, {core_count()} cores, Python {platform.python_version()}, Hedgerow "
        f"{hr.__version__}: {time.perf_counter() - begun:.0f} s in all.\n\n"
    )
    legend = (
        "## All tables\n\nEach cell: **RMSE**, maximum error (records), false discovery rate, "
        "false negative rate (%).\n\n"
    )
    page = f"{INTRO}\n{taken}{told}{legend}{''.join(pages)}"
    keep("estimators", page)
    picture_of_methods(
        shown,
        ROOT / "docs" / "estimators.png",
        title="Commuting in the United Kingdom, 2011",
        about="Mean errors of simulated releases at ε = 1, by estimator.",
    )


if __name__ == "__main__":
    with_data(main)
