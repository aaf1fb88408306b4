"""Allocations by the error they are meant to lower, and forecasts by the error they foretell.

Reads ``../shared/data`` beside the repository (or the folder named as the first argument), and
writes ``docs/released.md`` and ``docs/released.png``. All tables are public and all noise is
seeded, so the figures come out the same every time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.forecast import simulated_releases
from hedgerow.evaluate.method import Releasing
from hedgerow.evaluate.simulate import Tally
from hedgerow.picture import COLOURS
from hedgerow.plan.allocation.allocation import Allocation
from hedgerow.plan.cuboids import measurable
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from studies.page import ROOT, keep, markdown, told, with_data
from studies.releases import Unprojected, by_pass, plan_of, ratio, rmse
from studies.showing import panels, save
from studies.tables import BLOCKS, census_of, every_count, trips_between

SIMULATIONS = 20
STATES = {"10": "Delaware", "35": "New Mexico", "56": "Wyoming"}
BLOCK_GROUPS = ["state", "county", "tract", "block_group"]
BUDGETS: dict[str, Budget] = {"ρ = 1/50": hr.Rho("1/50"), "ε = 1": hr.Epsilon(1)}
PROJECTIONS: dict[str, Estimator] = {
    "Euclidean": hr.Euclidean(),
    "Chebyshev": hr.Chebyshev(),
}
ESTIMATORS = ("least squares", *PROJECTIONS)
CELLS, LEVELS = "every cell alike", "every level alike"


@dataclass(frozen=True)
class Table:
    """A public table that stands for a confidential one.

    Attributes:
        name: what it is called.
        counts: the truth.
        neighbours: the unit of privacy.
        prior: an earlier table; None: the table itself stands in, which a release refuses.
        runs: how many releases compare allocations.
        checks: how many releases a forecast is checked with.
    """

    name: str
    counts: hr.Counts
    neighbours: Neighbours
    prior: hr.Counts | None
    runs: int
    checks: int

    @cached_property
    def truth(self) -> list[Int64]:
        """For each depth the counts of all possible cells."""
        return [every_count(self.counts, levels) for levels in self.counts.tree.chain]

    @cached_property
    def depths(self) -> list[int]:
        """The depths that can be measured."""
        found = measurable(self.counts.tree, hr.Chain(), self.neighbours, ())
        return [sum(levels) for levels in found]

    @property
    def known(self) -> hr.Prior:
        """The earlier table, or the table itself in its stead; all tables here are public."""
        return hr.Prior(self.counts if self.prior is None else self.prior, public=True)

    def plan(self, budget: Budget, allocation: Allocation) -> hr.Plan:
        """The plan of a release in which all nodes are measured."""
        tree = self.counts.tree
        return plan_of(tree, budget, hr.All(), allocation, neighbours=self.neighbours)

    def importance(self, kind: str) -> list[float]:
        """What a squared error of one count costs at each depth that can be measured."""
        nodes = [self.counts.tree.nodes(t) for t in self.depths]
        return [1.0 if kind == CELLS else 1 / n for n in nodes]

    def discounts(self, budget: Budget) -> Float64:
        """For each depth that can be measured the squared error of a count over the forecast one.

        The error is that of `Chebyshev` on the prior under uniform shares; 1 where it is not
        smaller than the forecast by two Monte Carlo standard errors.
        """
        plan = self.plan(budget, hr.Uniform())
        forecast = hr.forecast(plan)["rmse"].to_numpy()
        found = simulated_releases(plan, self.known, PROJECTIONS["Chebyshev"], runs=SIMULATIONS)[0]
        root, error = found.select("rmse", "rmse_error").to_numpy().T
        smaller = (root / np.where(forecast > 0, forecast, 1)) ** 2
        return np.where(root + 2 * error < forecast, smaller, 1.0)[self.depths]

    def allocations(self, kind: str, budget: Budget) -> dict[str, Allocation]:
        """The allocations that are compared; ``released`` comes first."""
        weights = self.importance(kind)
        discounted = (self.discounts(budget) * weights).tolist()
        own = "prior" if self.prior is not None else "own prior*"
        return {
            "released": hr.Optimal(importance=weights, objective="released"),
            "uniform": hr.Uniform(),
            "cells": hr.Optimal(importance=weights, objective="cells"),
            f"cells, {own}": hr.Optimal(importance=weights, prior=self.known, objective="cells"),
            f"released, discounted by {own}": hr.Optimal(
                importance=discounted, objective="released"
            ),
        }


def block_groups(data: Path, year: int) -> hr.Counts:
    """Block groups of three states in a year."""
    frame = pl.read_parquet(data / f"census_us_block_group/bg_{year}.parquet")
    frame = frame.filter(pl.col("state").is_in(list(STATES)))
    return census_of(frame, BLOCK_GROUPS, "population")


def blocks(data: Path) -> hr.Counts:
    """Blocks of Washington, of which 39 % are empty."""
    levels = [*BLOCK_GROUPS[1:], "block"]
    return census_of(pl.read_parquet(data / BLOCKS), levels, "pop")


def tables(data: Path) -> list[Table]:
    """A dense and a sparse census, and a fuller and a sparser table of trips."""
    uk = trips_between(data / "od_uk_lad_2011")
    italy = trips_between(data / "od_italy_province_2011")
    earlier, truth = (block_groups(data, year) for year in (2010, 2020))
    states = ", ".join(STATES.values())
    return [
        Table(f"Block groups 2020 ({states})", truth, hr.AddRemove(), earlier, 100, 1000),
        Table("Washington blocks 2010", blocks(data), hr.AddRemove(), None, 20, 100),
        Table("UK commuting 2011", uk, hr.Replace(), None, 20, 100),
        Table("Italy commuting 2011", italy, hr.Replace(), None, 100, 400),
    ]  # fmt: skip


def tallies(table: Table, plan: hr.Plan, runs: int) -> dict[str, Tally]:
    """For each of `ESTIMATORS` the errors of releases by depth."""
    methods: dict[str, Releasing] = {"least squares": Unprojected(plan)}
    methods |= {name: by_pass(plan, estimator) for name, estimator in PROJECTIONS.items()}
    return {
        name: Tally.of_seeds(table.counts, method, plan.tree.chain, range(runs))
        for name, method in methods.items()
    }


@dataclass(frozen=True)
class Compared:
    """Weighted errors of one allocation.

    Attributes:
        allocation: its name.
        shares: by depth that can be measured.
        formula: RMSE of least squares by `forecast`, records.
        squared: mean squared errors by estimator: float64 (runs), records².
    """

    allocation: str
    shares: list[float]
    formula: float
    squared: dict[str, Float64]


Comparisons = Mapping[tuple[str, str, str], list[Compared]]
"""By table, budget and importance."""


def compared(table: Table, budget: Budget, kind: str) -> list[Compared]:
    """All allocations of a table, budget and importance, on the same seeds."""
    tree, found = table.counts.tree, []
    costs = np.zeros(tree.depth + 1)
    costs[table.depths] = np.array(table.importance(kind)) * [tree.nodes(t) for t in table.depths]
    costs /= costs.sum()
    for name, allocation in table.allocations(kind, budget).items():
        plan = table.plan(budget, allocation)
        shares = [float(plan.shares[t] or 0) for t in table.depths]
        formula = float(np.sqrt(hr.forecast(plan)["rmse"].to_numpy() ** 2 @ costs))
        every = tallies(table, plan, table.runs)
        own = {e: tally.score("mse") @ costs for e, tally in every.items()}
        found.append(Compared(name, shares, formula, own))
    return found


def comparison(found: Comparisons) -> str:
    """The first part of the page."""
    head, parts = ("allocation", "shares by depth, %", "formula", *ESTIMATORS), []
    for key, rows in found.items():
        first, lines = rows[0], []
        for row in rows:
            shares = " ".join(f"{100 * share:.1f}" for share in row.shares)
            errors = (
                f"{rmse(own):,.4g} ({told(ratio(own, first.squared[e]), '.3f ± .3f')})"
                for e, own in row.squared.items()
            )
            lines.append((row.allocation, shares, row.formula / first.formula, *errors))
        parts.append(f"### {', '.join(key)}\n\n{markdown(head, lines, '.3f')}\n")
    return "\n".join(parts)


def verdicts(found: Comparisons) -> str:
    """How often ``released``, plain and discounted, does better and worse than the others."""
    rows, ours = [], {"released": 0, "released, discounted": -1}
    others = {"uniform": 1, "cells": 2, "cells with a prior": 3}
    for e, name, among in product(ESTIMATORS, ours, others):
        ratios = [
            ratio(each[others[among]].squared[e], each[ours[name]].squared[e])
            for each in found.values()
        ]
        better = sum(r > 1 + 2 * error for r, error in ratios)
        worse = sum(r < 1 - 2 * error for r, error in ratios)
        most, least = max(ratios)[0], min(ratios)[0]
        rows.append((e, name, among, better, worse, f"{least:.3f} to {most:.3f}"))
    head = "estimator | allocation | against | better | worse | their RMSE over its own"
    return markdown(head, rows) + "\n"


Foretold = tuple[Float64, dict[str, tuple[Float64, Float64]]]
"""For each depth the forecast RMSE; the measured ones over it by estimator, and their errors."""


def foretold(table: Table, budget: Budget) -> Foretold:
    """The forecast of a uniform plan against simulated releases of the truth."""
    plan, found = table.plan(budget, hr.Uniform()), dict[str, tuple[Float64, Float64]]()
    forecast = hr.forecast(plan)["rmse"].to_numpy()
    for e, tally in tallies(table, plan, table.checks).items():
        root, error = tally.frame().select("rmse", "rmse_error").to_numpy().T
        with np.errstate(divide="ignore", invalid="ignore"):
            found[e] = root / forecast, error / forecast
    return forecast, found


def forecasts(table: Table, budgets: Mapping[str, Foretold]) -> str:
    """The forecasts of a table, in words."""
    rows = []
    for (name, (forecast, found)), t in product(budgets.items(), table.depths):
        cells = []
        for (over, error), allowed in zip(found.values(), (0.05, 0.15, 0.15), strict=True):
            cell = told((over[t], error[t]), ".3f ± .3f")
            cells.append(f"**{cell}**" if abs(over[t] - 1) - 2 * error[t] > allowed else cell)
        truth = table.truth[t]
        public = table.counts.tree.nodes(t), (truth == 0).mean(), np.median(truth)
        rows.append((name, t, *public, forecast[t], *cells))
    head = ("budget", "depth", "cells", "empty", "median", "forecast RMSE", *ESTIMATORS)
    forms = " |  | , | .1% | ,.0f | "
    return f"### {table.name}, {table.checks} runs\n\n{markdown(head, rows, forms)}\n"


def by_prior(table: Table) -> str:
    """Errors simulated on the prior against those on the truth, and the forecast."""
    rows = []
    for name, rho in {"ρ = 1/50": "1/50", "ρ = 1/200,000": "1/200000"}.items():
        plan = table.plan(hr.Rho(rho), hr.Uniform())
        forecast = hr.forecast(plan)["rmse"]
        for e, estimator in PROJECTIONS.items():
            both = [
                simulated_releases(plan, known, estimator, runs=200, seed=seed)[0]
                .select("rmse", "rmse_error")
                .rows()
                for known, seed in ((table.known, 0), (hr.Prior(table.counts, public=True), 10_000))
            ]
            for t in table.depths:
                before, after = (each[t] for each in both)
                rows.append((name, e, t, forecast[t], before, after, before[0] / after[0]))
    head = "budget | estimator | depth | forecast | simulated on 2010 | measured on 2020 | ratio"
    return markdown(head, rows, " |  |  |  |  |  | .3f") + "\n"


def picture(found: Comparisons, forecast: Mapping[str, Mapping[str, Foretold]]) -> None:
    """Left: least-squares and Chebyshev errors over ``released``. Right: measured over forecast."""
    figure, (left, right) = panels(2, size=(6.5, 5))
    for at, rows in enumerate(found.values()):
        for row, colour in zip(rows[1:], COLOURS, strict=False):
            for e, marker in (("least squares", "o"), ("Chebyshev", "x")):
                over, _ = ratio(row.squared[e], rows[0].squared[e])
                left.plot(over, at, marker, color=colour)
    left.axvline(1, color="black", linewidth=0.8)
    left.set_xscale("log")
    left.set_xticks([1, 1.5, 2, 3], ["1", "1.5", "2", "3"])
    left.minorticks_off()
    left.set_yticks(range(len(found)), [" · ".join(key) for key in found], fontsize=7)
    left.invert_yaxis()
    left.set_title("weighted RMSE over that of released (o least squares, × Chebyshev)", fontsize=9)
    names = ("uniform", "cells", "cells with a prior", "released, discounted")
    for name, colour in zip(names, COLOURS, strict=False):
        left.plot([], [], "s", color=colour, label=name)
    for (name, budgets), colour in zip(forecast.items(), COLOURS, strict=False):
        _, over_forecast = budgets["ρ = 1/50"]
        right.plot(over_forecast["least squares"][0], "o-", color=colour, label=name)
        right.plot(over_forecast["Chebyshev"][0], "x--", color=colour)
    right.axhspan(0.85, 1.15, color="grey", alpha=0.15)
    right.set_xlabel("depth")
    right.set_title("measured RMSE over forecast at ρ = 1/50 (o, ×; band: ± 15 %)", fontsize=9)
    for axes in (left, right):
        axes.legend(fontsize=7)
    save(figure, "released", 150, ROOT / "docs")


def main(data: Path) -> None:
    """Measure everything and write the page and the picture."""
    every = tables(data)
    found = {
        (table.name, name, kind): compared(table, budget, kind)
        for table in every
        for name, budget in BUDGETS.items()
        for kind in (CELLS, LEVELS)
    }
    forecast = {
        table.name: {name: foretold(table, budget) for name, budget in BUDGETS.items()}
        for table in every
    }
    page = PAGE.format(
        verdicts=verdicts(found),
        comparison=comparison(found),
        forecasts="\n".join(forecasts(table, forecast[table.name]) for table in every),
        prior=by_prior(every[0]),
    )
    keep("released", page)
    picture(found, forecast)


PAGE = """# Allocations for the released error, and forecasts of it

Made by `python -m studies.released`; seeded noise on public tables, all nodes measured (`All`).

![Errors by allocation, and measured over forecast errors](released.png)

## Which allocation makes the error after estimation least

Importance-weighted RMSE over all possible cells, 20 runs (100 for block groups and Italy); every
cell alike, or every level alike (importance 1/n for n cells). `released` is
`Optimal(objective="released")`, `cells` program (6) in closed form or with a prior, `discounted` as
below. *Formula*: the RMSE of least squares by `forecast`, over that of `released`. In brackets the
measured ratio to `released` with the standard error of that ratio, paired by run.

How often of 16 cases (4 tables, 2 budgets, 2 importances) the allocation is better or worse than
another by more than two standard errors:

{verdicts}
- Under least squares `released` is optimal by construction, and in the measurements.
- For dense tables (block groups) this carries over to projected counts, which are then nearly those
  of least squares. The gain over program (6) is small under ρ, where the optimum is flat, and large
  under ε, where the noise variance grows with 1/share² and leaving depths unmeasured reduces it.
- With every level alike program (6) without a prior *is* uniform, and under ρ that is within 1 % of
  the optimum: there is nothing to gain.
- In sparse tables (leaves of both trips, Washington blocks) under ρ `released` loses 0.3 to 3 % to
  program (6) once counts are projected: it assumes the unprojected error of the leaves, but
  clipping at 0 removes up to three quarters of that in any case, so it spends too much on the
  leaves.
- *Discounted* corrects this: the importance of each depth times the squared ratio of the
  projected RMSE to the forecast one, simulated under uniform shares on the prior. With it
  `released` is never worse than any other allocation, under both projections (least squares is up
  to 7 % worse than with plain `released`). For the three tables without an earlier one the discount
  is taken from the table itself*: the best case.

{comparison}
\\* `make_plan` takes any prior; a release rejects its own table as a prior. The figures are the
best that a prior could give, for tables without an earlier one.

## Forecast against measurement

Uniform shares; measured RMSE over the forecast one, with its Monte Carlo standard error; bold: off
by more than 5 % (least squares) or 15 % (projected) and two standard errors.

For least squares the forecast holds at every depth; depths of one cell are measured to a few
percent only. For projected counts it holds if most counts are larger than a few times the noise. If
the median count is at or below the forecast RMSE, or close to it, many counts are clipped at 0 and
errors are smaller: the forecast is then too high, and `simulated_releases` on a prior is more
accurate.

{forecasts}
## Simulated on the prior, measured on the truth

`simulated_releases` on 2010 and, with other seeds, on 2020; 200 runs each.

{prior}"""


if __name__ == "__main__":
    with_data(main)
