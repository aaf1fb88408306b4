"""A cube beside the chain, InfTDA and a constrained optimum: errors of every cuboid.

Reads the tables of trips in ``../shared/data`` beside the repository (or the folder named as the
first argument), and writes ``docs/cube_errors.md`` and ``docs/cube_errors.json``. The tables are
public and all noise is seeded.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hedgerow as hr
from hedgerow.arrays import Int64, Levels
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.method import sum_to_cuboid
from hedgerow.plan.joint import shape_of_tree
from hedgerow.plan.tables import as_tables
from studies.boninsegna.releases import loose_rho
from studies.constrained import Constrained
from studies.page import keep, markdown, timed, with_data
from studies.releases import noise, seeded, trips_plan, within
from studies.tables import every_count, leaves_of, trips_between

EPSILONS = ("0.1", "1", "10")
OPTIMUM_CELLS, OPTIMUM_RUNS = 1 << 18, 3
"""The optimum is computed with dense matrices, of tables of so many cells at most, so often."""

INF_TDA, CHAIN, CUBE = "InfTDA", "chain", "cube"
SURVIVORS, OPTIMUM = "cube, survivors", "optimum"


@dataclass(frozen=True, slots=True)
class Case:
    """A table of trips.

    Attributes:
        name: what it is called.
        folder: where it is.
        levels: of both axes, coarsest first.
        shares: of each axis of the cube, in hundredths, the axis's total first.
        runs: how many releases of each kind.
    """

    name: str
    folder: str
    levels: tuple[str, ...]
    shares: tuple[int, ...]
    runs: int = 10

    def axis_shares(self) -> dict[str, list[Fraction]]:
        """The same for both axes."""
        each = [Fraction(share, 100) for share in self.shares]
        return {"origin": each, "destination": each}


CASES = (
    Case("UK, districts", "od_uk_lad_2011", ("nuts1", "nuts2", "lad"), (10, 20, 25, 45)),
    Case(
        "Italy, provinces", "od_italy_province_2011", ("area", "region", "province"),
        (10, 20, 25, 45),
    ),
    Case(
        "Sardinia, municipalities", "od_sardinia_municipality_2001", ("province", "municipality"),
        (20, 30, 50),
    ),
    Case(
        "Sydney, zones", "od_sydney_tz_2001", ("sd", "ssd", "sla", "tz"), (10, 15, 15, 20, 40),
        runs=3,
    ),
    Case(
        "United States, counties", "od_us_county_acs_2011_2015", ("state", "county"), (20, 30, 50),
        runs=3,
    ),
)  # fmt: skip


def plans_of(counts: hr.Counts, case: Case, epsilon: str) -> dict[str, hr.Plan]:
    """Of the methods that are Hedgerow's, or are run by its pass."""
    budget, tree = within(epsilon), counts.tree
    shares, cube = hr.Shares(case.axis_shares()), hr.Cube()
    return {
        INF_TDA: trips_plan(tree, loose_rho(epsilon), hr.Survivors()),
        CHAIN: trips_plan(tree, budget, hr.All()),
        CUBE: trips_plan(tree, budget, hr.All(), shares, cube),
        SURVIVORS: trips_plan(tree, budget, hr.Survivors(), shares, cube),
    }


@dataclass(slots=True)
class Errors:
    """What was released less the truth, over all cells of every combination of levels.

    Attributes:
        squares: the sums over runs of the mean squared errors.
        discovered, missed: the sums of the shares of released cells that are truly 0, and of truly
            positive cells that are released as 0.
        seconds: of one release, the fastest.
        runs: how many.
    """

    squares: dict[Levels, float] = field(default_factory=dict)
    discovered: float = 0.0
    missed: float = 0.0
    seconds: float = float("inf")
    runs: int = 0

    def add(self, truth: "Truth", leaves: NDArray[Any], seconds: float) -> None:
        """Add a run."""
        for cuboid, true in truth.tables.items():
            error = (sum_to_cuboid(truth.counts.tree, leaves, cuboid) - true).astype(np.float64)
            self.squares[cuboid] = self.squares.get(cuboid, 0.0) + float(np.mean(error**2))
        shown, there = np.rint(leaves) > 0, truth.tables[truth.shape.finest] > 0
        self.discovered += (shown & ~there).sum() / max(int(shown.sum()), 1)
        self.missed += (there & ~shown).sum() / there.sum()
        self.seconds, self.runs = min(self.seconds, seconds), self.runs + 1

    def rmse(self, cuboid: Levels) -> float:
        """Records."""
        return float(np.sqrt(self.squares[cuboid] / self.runs))


@dataclass(frozen=True)
class Truth:
    """A table and all its sums."""

    counts: hr.Counts

    @cached_property
    def shape(self) -> CubeShape:
        """How its levels nest."""
        return shape_of_tree(self.counts.tree)

    @cached_property
    def tables(self) -> dict[Levels, Int64]:
        """For each combination of levels the counts of all cells."""
        leaves = every_count(self.counts, self.counts.tree.chain[-1])
        return {c: sum_to_cuboid(self.counts.tree, leaves, c) for c in self.shape.cuboids()}


def simulated(truth: Truth, plan: hr.Plan, estimator: Estimator, runs: int) -> Errors:
    """Releases under the seeds 0, 1, … ."""
    found = Errors()
    for seed in range(runs):
        seconds, release = timed(partial(seeded, truth.counts, plan, estimator, seed))
        found.add(truth, leaves_of(release), seconds)
    return found


def optimal(truth: Truth, plan: hr.Plan, runs: int) -> Errors:
    """The nearest non-negative leaves to a cube's noisy counts, which are not whole.

    The noise is that of the cube's release under the same seed.
    """
    cube, found = as_tables(plan.design), Errors()
    assert cube.squares is not None
    problem = Constrained.of(cube.squares)
    for seed in range(runs):
        noisy = {
            cuboid: true + noise(plan, cube.levels(cuboid), seed, true.size).reshape(true.shape)
            for cuboid, true in truth.tables.items()
        }
        seconds, leaves = timed(partial(problem.nearest, noisy, truth.shape))
        found.add(truth, leaves, seconds)
    return found


def on_table(truth: Truth, case: Case, epsilon: str) -> dict[str, Errors]:
    """All methods."""
    found, plans = dict[str, Errors](), plans_of(truth.counts, case, epsilon)
    for name, plan in plans.items():
        estimator = hr.Chebyshev() if name == INF_TDA else hr.Euclidean()
        found[name] = simulated(truth, plan, estimator, case.runs)
    if truth.counts.tree.leaves <= OPTIMUM_CELLS:
        found[OPTIMUM] = optimal(truth, plans[CUBE], min(case.runs, OPTIMUM_RUNS))
    return found


def section(truth: Truth, case: Case, found: Mapping[str, Mapping[str, Errors]]) -> str:
    """A table's part of the page: for each ε a row a combination of levels, a column a method."""
    shares = ", ".join(f"{share / 100:g}" for share in case.shares)
    cells = truth.counts.tree.leaves
    about = f"{truth.counts.total:,} records, {cells:,} pairs, axis shares {shares}"
    parts = [f"## {case.name}", f"{about}, {case.runs} releases."]
    for epsilon, errors in found.items():
        told = errors_by_cuboid(truth.shape, case, errors.values())
        told["seconds"] = [f"{e.seconds:.2g}" for e in errors.values()]
        rows = ((what, *shown) for what, shown in told.items())
        parts += [f"ε = {epsilon}:", markdown(["origin × destination", *errors], rows)]
    return "\n\n".join(parts) + "\n"


def in_short(cases: Mapping[str, Mapping[str, Mapping[str, Errors]]]) -> str:
    """For each table the cube's RMSE over others', at ε = 1: leaves, outflow, inflow."""
    rows, others = [], (CHAIN, INF_TDA)
    for name, found in cases.items():
        errors = found["1"]
        leaves = max(errors[CUBE].squares)
        asked = leaves, (leaves[0], 0), (0, leaves[1])
        ratios = [
            errors[CUBE].rmse(cuboid) / errors[other].rmse(cuboid)
            for other, cuboid in product(others, asked)
        ]
        rows.append((name, *ratios))
    what = product(others, ("leaves", "finest outflow", "finest inflow"))
    return markdown(["ε = 1", *(f"{each}, over {other}" for other, each in what)], rows, ".2f")


def errors_by_cuboid(
    shape: CubeShape, case: Case, every: Collection[Errors]
) -> dict[str, list[str]]:
    """Errors in words, a column a method: of each cuboid, then of which cells are released."""
    names = ("total", *case.levels)
    return {
        f"{names[cuboid[0]]} × {names[cuboid[1]]}": [f"{e.rmse(cuboid):.3g}" for e in every]
        for cuboid in shape.cuboids()
        if any(cuboid)
    } | {
        "false discoveries": [f"{e.discovered / e.runs:.3f}" for e in every],
        "misses": [f"{e.missed / e.runs:.3f}" for e in every],
    }


TEXT = """# Errors of a cube

Made by `make studies`: whole counts for every combination of levels of origin and destination, at δ
= 1e-8, one trip a person replaced. RMSE over all cells, in records; false discoveries (of the
pairs that are released, those that are truly 0) and misses (of the true pairs, those that are
released as 0) at the leaves; seconds of one release from counts in memory, the fastest.

- *InfTDA*: its method by our pass: survivors, Chebyshev, and ε = ρ + 2√(ρ ln(1/δ)). Its authors'
  own package is in the benchmarks.
- *chain*: all nodes measured, depths combined, Euclidean, equal shares.
- *cube*: every combination measured, by the axis shares named; *survivors*: leaves only below
  positive margins, where the leaves are too many or this is asked for.
- *optimum*: the non-negative leaves nearest to all noisy counts of the cube by their precision, not
  rounded; on tables of at most {cells:,} pairs, {runs} runs.

The cube's RMSE over that of others:

{short}

The chain keeps an advantage on cuboids of its own that are coarse, and on all that it refines
first: its destinations. The shares of a cube decide what else gains.

{sections}"""


def main(data: Path) -> None:
    """Run every table and write the page."""
    sections, every = [], dict[str, dict[str, dict[str, Errors]]]()
    for case in CASES:
        truth = Truth(trips_between(data / case.folder, case.levels))
        every[case.name] = {epsilon: on_table(truth, case, epsilon) for epsilon in EPSILONS}
        sections.append(section(truth, case, every[case.name]))
        print(case.name, flush=True)
    page = TEXT.format(
        cells=OPTIMUM_CELLS, runs=OPTIMUM_RUNS, short=in_short(every), sections="\n".join(sections)
    )
    kept = {
        name: {
            epsilon: {method: figures(errors) for method, errors in by_method.items()}
            for epsilon, by_method in found.items()
        }
        for name, found in every.items()
    }
    keep("cube_errors", page, kept)


def figures(errors: Errors) -> dict[str, object]:
    """For the JSON file."""
    return {
        "rmse": {"-".join(map(str, c)): errors.rmse(c) for c in errors.squares},
        "false_discoveries": errors.discovered / errors.runs,
        "misses": errors.missed / errors.runs,
        "seconds": errors.seconds,
        "runs": errors.runs,
    }


if __name__ == "__main__":
    with_data(main)
