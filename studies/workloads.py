"""Named workloads: two margins beside a chain, and two tables that agree on what they share.

Reads the trips of the United Kingdom and the blocks of Rhode Island in ``../shared/data`` beside
the repository (or the folder named as the first argument), and writes
``docs/workload_errors.md``. The tables are public and all noise is seeded.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Float64, Levels
from hedgerow.evaluate.method import Released
from hedgerow.evaluate.simulate import Tally
from hedgerow.noise.bits import Bits
from hedgerow.plan.workload import Workload
from hedgerow.tables.tree import Tree
from studies.cube import CASES
from studies.page import keep, markdown, with_data
from studies.releases import DELTA, by_pass, plan_of, ratio, rmse, trips_plan, within
from studies.tables import trips_between

Squares = dict[tuple[Levels, Levels], Float64]
"""By released table and one of its coarsenings, or itself: mean squared errors (releases)."""

TRIPS_RUNS, BLOCKS_RUNS = 100, 30
CHAIN, MARGINS, MORE, CUBE = "chain", "chain and margins", "these and lad × nuts1", "cube"
DISTRICTS = ("origin.lad", "destination.lad")

BLOCKS, TRACTS = "geography.block × race.cenrace", "geography.tract × race.cenrace × age.votingage"
AREAS = ("county", "tract", "block_group", "block")
RHO = "1"


@dataclass(frozen=True)
class Agreeing:
    """Releases of tables, whole, that agree on what they have in common.

    Attributes:
        plan: of the tables.
    """

    plan: hr.Plan

    def released(self, counts: hr.Counts, bits: Bits) -> Released:
        """The tables.

        Raises:
            ValueError: they differ.
        """
        tree = self.plan.tree
        found = dict(by_pass(self.plan, hr.Euclidean()).released(counts, bits))
        for one, other in combinations(self.plan.tables, 2):
            common = tuple(map(min, one, other))
            sums = (found[each].summed(tree, common, each) for each in (one, other))
            first, second = (each.dense(tree.cells(common)) for each in sums)
            if not np.array_equal(first, second):
                raise ValueError(f"the tables differ on {tree.name_of(common)}")
        return found.items()


def coarsenings(plan: hr.Plan, levels: Levels) -> Iterator[Levels]:
    """A cuboid and all that are coarser, but for those that are public."""
    every = product(*(range(level + 1) for level in levels))
    return (cuboid for cuboid in every if not plan.is_public(cuboid))


def squared_errors(counts: hr.Counts, plan: hr.Plan, runs: int) -> Squares:
    """The mean squared errors of every table and its coarsenings, under the seeds 0, 1, … ."""
    every = [(table, levels) for table in plan.tables for levels in coarsenings(plan, table)]
    cuboids = {levels: i for i, levels in enumerate(dict.fromkeys(levels for _, levels in every))}
    squares = Tally.of_seeds(counts, Agreeing(plan), cuboids, range(runs)).score("mse")
    return {(table, levels): squares[:, cuboids[levels]] for table, levels in every}


def standard_error(plan: hr.Plan, levels: Levels) -> float:
    """The RMSE of a cuboid's estimates, named or not: exact, before anything is measured."""
    return float(np.sqrt(plan.design.mean_variance(levels)))


def named(tree: Tree, levels: Levels) -> str:
    """A cuboid with the total of an axis shown."""
    each = zip(tree.axes, levels, strict=True)
    return " × ".join(axis.levels[k - 1] if k else "total" for axis, k in each)


def trips_plans(tree: Tree) -> dict[str, hr.Plan]:
    """Of the chain, of the chain and cuboids beside it, and of the cube."""
    more = [*DISTRICTS, "origin.lad × destination.nuts1"]
    workloads: dict[str, Workload] = {
        CHAIN: hr.Chain(),
        MARGINS: hr.Cuboids(DISTRICTS, chain=True),
        MORE: hr.Cuboids(more, chain=True),
        CUBE: hr.Cube(),
    }
    shares = {CUBE: CASES[0].allocation}
    return {
        name: trips_plan(tree, within("1"), hr.All(), shares.get(name), workload)
        for name, workload in workloads.items()
    }


def trips_rows(tree: Tree, plans: Mapping[str, hr.Plan], squares: Mapping[str, Squares]) -> str:
    """A row a cuboid: what each method is off by, and the margins' plan over the chain's."""
    measured = plans[MARGINS].workload.named(tree)
    rows = (
        (
            named(tree, levels) + (" *" if levels in measured else ""),
            standard_error(plans[CHAIN], levels) if levels in tree.chain else "",
            standard_error(plans[MARGINS], levels),
            *(rmse(squares[name][table, levels]) for name in plans),
            ratio(squares[MARGINS][table, levels], chain),
        )
        for (table, levels), chain in squares[CHAIN].items()
    )
    head = [f"{CHAIN}, forecast", f"{MARGINS}, forecast", *plans, f"{MARGINS} / {CHAIN}"]
    forms = f"{' | .3g' * (len(head) - 1)} | .3f ± .3f"
    return markdown(["origin × destination", *head], rows, forms)


@dataclass(frozen=True, eq=False)
class TwoTables:
    """People by block and race, and by tract, race and whether they may vote.

    Attributes:
        counts: the people of some areas.
        both: one plan for both tables, half of ρ each.
        alone: a plan for each table alone, with the ρ that both give it.
    """

    counts: hr.Counts
    both: hr.Plan
    alone: Mapping[str, hr.Plan]

    @classmethod
    def of(cls, folder: Path, county: str | None = None) -> "TwoTables":
        """Those of Rhode Island, or of one of its counties."""
        areas, people = (pl.read_parquet(folder / f"{n}.parquet") for n in ("areas", "table"))
        races = people.select("cenrace").unique().sort("cenrace")
        if county is not None:
            areas = areas.filter(pl.col("county") == county)
        tree = hr.Tree(
            [
                hr.Axis.from_frame("geography", areas, AREAS),
                hr.Axis.from_frame("race", races, ["cenrace"]),
                hr.Axis.from_frame("age", {"votingage": ["minor", "adult"]}, ["votingage"]),
            ]
        )
        cells = (
            people.join(areas, on="block")
            .group_by(*AREAS, "cenrace", "votingage")
            .agg(pl.col("count").sum())
        )
        whole, names = hr.Rho(RHO), (BLOCKS, TRACTS)

        def plan(budget: hr.Rho, *names: str) -> hr.Plan:
            return plan_of(tree, budget, hr.All(), workload=hr.Cuboids(names))

        return cls(
            hr.Counts.from_frame(tree, cells, count="count"),
            plan(whole, *names),
            {name: plan(hr.Rho(whole.rho / 2), name) for name in names},
        )

    def squared_errors(self, runs: int) -> tuple[Squares, Squares]:
        """Of both tables together, and of each alone."""
        alone = Squares()
        for plan in self.alone.values():
            alone |= squared_errors(self.counts, plan, runs)
        return squared_errors(self.counts, self.both, runs), alone

    def standard_errors(self, table: Levels, levels: Levels) -> tuple[float, float]:
        """The forecast of a coarsening of a table: with the other one, and alone."""
        alone = self.alone[self.counts.tree.name_of(table)]
        return standard_error(self.both, levels), standard_error(alone, levels)

    def rows(self, together: Squares, alone: Squares) -> str:
        """A row a table and coarsening."""
        tree = self.counts.tree
        rows = (
            (
                named(tree, table),
                named(tree, levels),
                *reversed(self.standard_errors(table, levels)),
                rmse(alone[table, levels]),
                rmse(squares),
                ratio(squares, alone[table, levels]),
            )
            for (table, levels), squares in together.items()
        )
        head = (
            "table | geography × race × age | alone, forecast | together, forecast | alone | "
            "together | together / alone"
        )
        return markdown(head, rows, " |  | .3g | .3g | .3g | .3g | .3f ± .3f")


TEXT = """# Errors of named workloads

Made by `make studies`. RMSE of whole counts over all cells, in records, with the forecast's
standard errors beside them, which are those of unbiased estimates. A ratio of two methods is of
releases under the same seeds, and is given with its Monte Carlo standard error.

## UK commuting: two margins beside the chain

{trips_records:,} trips between 380 districts, ε = 1, δ = {delta}, replace one, all cells measured,
{trips_runs} releases. *{chain}* has equal shares of its six depths, *{margins}* eight equal shares:
`hr.Cuboids(["origin.lad", "destination.lad"], chain=True)`. *{cube}* measures every combination,
with axis shares 0.1, 0.2, 0.25, 0.45. What *{margins}* measures has a *.

{trips}

Two cuboids more make the noise of a count √(8/6) = 1.155 times as large, and no cuboid of the chain
is released with more than {most:.3f} times its own error. In- and outflows are off by {flows}, and
by the chain by {chain_flows}. Where flows from districts to regions matter too, they can be named
(*{more}*): they are off by {found:.1f} then, in place of {lost:.1f}.

## Rhode Island: two tables from one budget

{people:,} people, ρ = {rho} add-remove (about 40 % of the redistricting file's), half for block ×
race (25,181 × 63 cells), half for tract × race × voting age (244 × 63 × 2),
{blocks_runs} releases. *Alone*, each table is released by a plan of its own with its share of ρ:
ρ = {rho} × ½, so that its noise is the same, drawn from the same streams. In every release the two
tables agree on tract × race, and so on all that it refines.

{blocks}

Together both the forecasts and what is released are nearer the truth for every coarsening of both
tables. Block × race gains most. Alone, its many cells that are truly 0 are each kept from falling
below 0, and their sums go wrong; together they are settled below tract × race.
"""


def main(data: Path) -> None:
    """Run both and write the page."""
    trips = trips_between(data / CASES[0].folder)
    plans = trips_plans(trips.tree)
    squares = {name: squared_errors(trips, plan, TRIPS_RUNS) for name, plan in plans.items()}
    two = TwoTables.of(data / "pl94_ri_2010")
    together, alone = two.squared_errors(BLOCKS_RUNS)
    leaves = trips.tree.finest
    regions = leaves, (leaves[0], 1)

    def off(name: str) -> str:
        flows = (0, leaves[1]), (leaves[0], 0)
        return " and ".join(f"{rmse(squares[name][leaves, flow]):.0f}" for flow in flows)

    page = TEXT.format(
        trips_records=trips.total, delta=DELTA, trips_runs=TRIPS_RUNS, chain=CHAIN,
        margins=MARGINS, cube=CUBE, trips=trips_rows(trips.tree, plans, squares),
        flows=off(MARGINS), chain_flows=off(CHAIN), more=MORE,
        lost=rmse(squares[MARGINS][regions]),
        most=max(
            ratio(squares[MARGINS][leaves, levels], squares[CHAIN][leaves, levels])[0]
            for levels in trips.tree.chain[1:]
        ),
        found=rmse(squares[MORE][regions]),
        people=two.counts.total, rho=RHO, blocks_runs=BLOCKS_RUNS,
        blocks=two.rows(together, alone),
    )  # fmt: skip
    keep("workload_errors", page)


if __name__ == "__main__":
    with_data(main)
