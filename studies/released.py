"""Allocations by the error they are meant to lower, and forecasts by the error they foretell.

Reads ``../shared/data`` beside the repository (or the folder named as the first argument), and
writes ``docs/released.md`` and ``docs/released.png``. All tables are public and all noise is
seeded, so the figures come out the same every time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

import hedgerow as hr
from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.forecast import simulated_releases
from hedgerow.picture import COLOURS
from hedgerow.plan.allocation.allocation import Allocation
from hedgerow.plan.cuboids import measurable
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.release.answers.measured_nodes import least_squares_of
from hedgerow.release.descent.chain import ChainFlow, Outline
from hedgerow.release.descent.nodes import Nodes, by_cuboid
from hedgerow.release.passes import Pass
from studies.page import ROOT, keep, markdown, with_data
from studies.releases import ratio, rmse, seeded
from studies.tables import census_of, dense, every_count, trips_between

SIMULATIONS = 20
STATES = {"10": "Delaware", "35": "New Mexico", "56": "Wyoming"}
BLOCK_GROUPS = ["state", "county", "tract", "block_group"]
BUDGETS: dict[str, Budget] = {"ρ = 1/50": hr.Rho("1/50"), "ε = 1": hr.Epsilon(1)}
PROJECTIONS: dict[str, Estimator] = {
    "Euclidean": hr.Euclidean(combine=True),
    "Chebyshev": hr.Chebyshev(combine=True),
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
        pure = isinstance(budget, hr.Epsilon)
        return hr.make_plan(
            self.counts.tree,
            budget=budget,
            neighbours=self.neighbours,
            mechanism=hr.DiscreteLaplace if pure else hr.DiscreteGaussian,
            allocation=allocation,
            measure=hr.All(),
        )

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
        told = hr.forecast(plan)["rmse"].to_numpy()
        found = simulated_releases(plan, self.known, PROJECTIONS["Chebyshev"], runs=SIMULATIONS)[0]
        root, error = found["rmse"].to_numpy(), found["rmse_error"].to_numpy()
        smaller = (root / np.where(told > 0, told, 1)) ** 2
        return np.where(root + 2 * error < told, smaller, 1.0)[self.depths]

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
    return census_of(pl.read_parquet(data / "census_us_block/wa_2010.parquet"), levels, "pop")


def tables(data: Path) -> list[Table]:
    """A dense and a sparse census, and a fuller and a sparser table of trips."""
    uk = trips_between(data / "od_uk_lad_2011", ["nuts1", "nuts2", "lad"])
    italy = trips_between(data / "od_italy_province_2011", ["area", "region", "province"])
    earlier, truth = (block_groups(data, year) for year in (2010, 2020))
    states = ", ".join(STATES.values())
    return [
        Table(f"Block groups 2020 ({states})", truth, hr.AddRemove(), earlier, 100, 1000),
        Table("Washington blocks 2010", blocks(data), hr.AddRemove(), None, 20, 100),
        Table("UK commuting 2011", uk, hr.Replace(), None, 20, 100),
        Table("Italy commuting 2011", italy, hr.Replace(), None, 100, 400),
    ]  # fmt: skip


def squared_errors(table: Table, plan: hr.Plan, runs: int) -> dict[str, Float64]:
    """For each of `ESTIMATORS` the mean squared error: float64 (runs, depths 0..T), records²."""
    outline, chain = Outline.of(plan), plan.tree.chain
    found: dict[str, list[list[float]]] = {name: [] for name in ESTIMATORS}
    for run in range(runs):
        content = seeded(table.counts, plan, PROJECTIONS["Euclidean"], run).content
        nodes, stored = content.nodes, content.stored
        best = dict(zip(chain, least_squares_of(stored, outline, nodes)[0], strict=True))
        flow = ChainFlow(outline, stored, PROJECTIONS["Chebyshev"])
        other, _ = by_cuboid(Pass(flow).results())
        found["least squares"].append(_errors(table, best, lambda each: each.estimate))
        found["Euclidean"].append(_errors(table, nodes, lambda each: each.counts))
        found["Chebyshev"].append(_errors(table, other, lambda each: each.counts))
    return {name: np.array(errors) for name, errors in found.items()}


def _errors(
    table: Table, nodes: Mapping[Levels, Nodes], values: Callable[[Nodes], NDArray[np.generic]]
) -> list[float]:
    """The mean squared error of each depth over all possible cells."""
    tree = table.counts.tree
    return [
        float(np.square(dense(tree, levels, here.codes, values(here)) - true).mean())
        for true, (levels, here) in zip(table.truth, nodes.items(), strict=True)
    ]


@dataclass(frozen=True)
class Compared:
    """Weighted errors of one allocation, by estimator.

    Attributes:
        allocation: its name.
        shares: by depth that can be measured.
        rmse: records.
        ratio: of the RMSE to that of ``released``, and
        error: its standard error.
        formula: RMSE of least squares by `forecast`, records.
        squared: mean squared errors (runs), records².
    """

    allocation: str
    shares: tuple[float, ...]
    rmse: dict[str, float]
    ratio: dict[str, float]
    error: dict[str, float]
    formula: float
    squared: dict[str, Float64]


Comparisons = Mapping[tuple[str, str, str], list[Compared]]
"""By table, budget and importance."""


def compared(table: Table, budget: Budget, kind: str) -> list[Compared]:
    """All allocations of a table, budget and importance, on the same seeds."""
    costs = np.zeros(table.counts.tree.depth + 1)
    costs[table.depths] = [
        w * table.counts.tree.nodes(t)
        for w, t in zip(table.importance(kind), table.depths, strict=True)
    ]
    costs /= costs.sum()
    found: list[Compared] = []
    least: dict[str, Float64] = {}
    for name, allocation in table.allocations(kind, budget).items():
        plan = table.plan(budget, allocation)
        own = {e: mse @ costs for e, mse in squared_errors(table, plan, table.runs).items()}
        least = least or own
        told = hr.forecast(plan)["rmse"].to_numpy() ** 2 @ costs
        ratios = {e: ratio(own[e], least[e]) for e in ESTIMATORS}
        found.append(
            Compared(
                name,
                tuple(float(plan.shares[t] or 0) for t in table.depths),
                {e: rmse(own[e]) for e in ESTIMATORS},
                {e: found for e, (found, _) in ratios.items()},
                {e: error for e, (_, error) in ratios.items()},
                float(np.sqrt(told)),
                own,
            )
        )
    return found


def comparison(found: Comparisons) -> str:
    """The first part of the page."""
    parts = []
    for (name, budget, kind), rows in found.items():
        base = rows[0].formula

        def cells(row: Compared, base: float = base) -> Iterator[str]:
            yield row.allocation
            yield " ".join(f"{share:.1%}".removesuffix("%") for share in row.shares)
            yield f"{row.formula / base:.3f}"
            for e in ESTIMATORS:
                yield f"{row.rmse[e]:,.4g} ({row.ratio[e]:.3f} ± {row.error[e]:.3f})"

        head = ("allocation", "shares by depth, %", "formula", *ESTIMATORS)
        body = markdown(head, (list(cells(row)) for row in rows))
        parts.append(f"### {name}, {budget}, {kind}\n\n{body}\n")
    return "\n".join(parts)


def verdicts(found: Comparisons) -> str:
    """How often ``released``, plain and discounted, does better and worse than the others."""
    rows = []
    for e in ESTIMATORS:
        for place, name in ((0, "released"), (-1, "released, discounted")):
            for other in range(1, 4):
                ratios = [_against(each, place, other, e) for each in found.values()]
                better = sum(r > 1 + 2 * error for r, error in ratios)
                worse = sum(r < 1 - 2 * error for r, error in ratios)
                among = ("uniform", "cells", "cells with a prior")[other - 1]
                most, least = max(ratios)[0], min(ratios)[0]
                rows.append((e, name, among, str(better), str(worse), f"{least:.3f} to {most:.3f}"))
    head = ("estimator", "allocation", "against", "better", "worse", "their RMSE over its own")
    return markdown(head, rows) + "\n"


def _against(rows: Sequence[Compared], place: int, other: int, e: str) -> tuple[float, float]:
    """The ratio of the RMSE of another allocation to that at a place, and its standard error."""
    return ratio(rows[other].squared[e], rows[place].squared[e])


@dataclass(frozen=True)
class Foretold:
    """For each depth the forecast RMSE and the measured ones over it."""

    forecast: Float64
    ratio: dict[str, Float64]
    error: dict[str, Float64]


def foretold(table: Table, budget: Budget) -> Foretold:
    """The forecast of a uniform plan against simulated releases of the truth."""
    plan = table.plan(budget, hr.Uniform())
    told = hr.forecast(plan)["rmse"].to_numpy()
    over, error = {}, {}
    for e, mse in squared_errors(table, plan, table.checks).items():
        with np.errstate(divide="ignore", invalid="ignore"):
            over[e] = np.sqrt(mse.mean(axis=0)) / told
            error[e] = over[e] / 2 * mse.std(axis=0, ddof=1) / mse.mean(axis=0)
        error[e] /= np.sqrt(table.checks)
    return Foretold(told, over, error)


def forecasts(table: Table, budgets: Mapping[str, Foretold]) -> str:
    """The forecasts of a table, in words."""
    tree = table.counts.tree

    def rows() -> Iterator[list[str]]:
        for name, told in budgets.items():
            for t in table.depths:
                cells = [f"{told.ratio[e][t]:.3f} ± {told.error[e][t]:.3f}" for e in ESTIMATORS]
                off = [abs(told.ratio[e][t] - 1) - 2 * told.error[e][t] for e in ESTIMATORS]
                flags = [
                    f"**{cell}**" if far > allowed else cell
                    for cell, far, allowed in zip(cells, off, (0.05, 0.15, 0.15), strict=True)
                ]
                yield [
                    name, str(t), f"{tree.nodes(t):,}", f"{(table.truth[t] == 0).mean():.1%}",
                    f"{np.median(table.truth[t]):,.0f}", f"{told.forecast[t]:,.4g}", *flags,
                ]  # fmt: skip

    head = ("budget", "depth", "cells", "empty", "median", "forecast RMSE", *ESTIMATORS)
    return f"### {table.name}, {table.checks} runs\n\n{markdown(head, rows())}\n"


def by_prior(table: Table) -> str:
    """Errors simulated on the prior against those on the truth, and the forecast."""
    assert table.prior is not None

    def rows(prior: hr.Counts) -> Iterator[list[str]]:
        for name, budget in {
            "ρ = 1/50": hr.Rho("1/50"),
            "ρ = 1/200,000": hr.Rho("1/200000"),
        }.items():
            plan = table.plan(budget, hr.Uniform())
            told = hr.forecast(plan)["rmse"]
            for e, estimator in PROJECTIONS.items():
                before, after = (
                    simulated_releases(
                        plan, hr.Prior(counts, public=True), estimator, runs=200, seed=seed
                    )[0]
                    for counts, seed in ((prior, 0), (table.counts, 10_000))
                )
                for t in table.depths:
                    old, new = before.row(t, named=True), after.row(t, named=True)
                    yield [
                        name, e, str(t), f"{told[t]:,.4g}",
                        *(f"{row['rmse']:,.4g} ± {row['rmse_error']:,.2g}" for row in (old, new)),
                        f"{old['rmse'] / new['rmse']:.3f}",
                    ]  # fmt: skip

    head = (
        "budget", "estimator", "depth", "forecast", "simulated on 2010", "measured on 2020", "ratio"
    )  # fmt: skip
    return markdown(head, rows(table.prior)) + "\n"


def picture(found: Comparisons, told: Mapping[str, Mapping[str, Foretold]]) -> None:
    """Left: least-squares and Chebyshev errors over ``released``. Right: measured over forecast."""
    figure = Figure(figsize=(13, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    for at, rows in enumerate(found.values()):
        for i, row in enumerate(rows[1:]):
            for e, marker in (("least squares", "o"), ("Chebyshev", "x")):
                left.plot(row.ratio[e], at, marker, color=COLOURS[i])
    left.axvline(1, color="black", linewidth=0.8)
    left.set_xscale("log")
    left.set_xticks([1, 1.5, 2, 3], ["1", "1.5", "2", "3"])
    left.minorticks_off()
    left.set_yticks(range(len(found)), [" · ".join(key) for key in found], fontsize=7)
    left.invert_yaxis()
    left.set_title("weighted RMSE over that of released (o least squares, × Chebyshev)", fontsize=9)
    for i, name in enumerate(("uniform", "cells", "cells with a prior", "released, discounted")):
        left.plot([], [], "s", color=COLOURS[i], label=name)
    left.legend(fontsize=7)
    for i, (name, budgets) in enumerate(told.items()):
        here = budgets["ρ = 1/50"]
        depths = range(len(here.forecast))
        right.plot(depths, here.ratio["least squares"], "o-", color=COLOURS[i], label=name)
        right.plot(depths, here.ratio["Chebyshev"], "x--", color=COLOURS[i])
    right.axhspan(0.85, 1.15, color="grey", alpha=0.15)
    right.set_xlabel("depth")
    right.set_title("measured RMSE over forecast at ρ = 1/50 (o, ×; band: ± 15 %)", fontsize=9)
    right.legend(fontsize=7)
    figure.savefig(ROOT / "docs" / "released.png", dpi=150)


def main(data: Path) -> None:
    """Measure everything and write the page and the picture."""
    every = tables(data)
    found = {
        (table.name, name, kind): compared(table, budget, kind)
        for table in every
        for name, budget in BUDGETS.items()
        for kind in (CELLS, LEVELS)
    }
    told = {
        table.name: {name: foretold(table, budget) for name, budget in BUDGETS.items()}
        for table in every
    }
    page = PAGE.format(
        verdicts=verdicts(found),
        comparison=comparison(found),
        forecasts="\n".join(forecasts(table, told[table.name]) for table in every),
        prior=by_prior(every[0]),
    )
    print(page)
    keep("released", page)
    picture(found, told)


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
