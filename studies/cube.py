"""A cube beside the chain, InfTDA and a constrained optimum: errors of every cuboid.

Reads the tables of trips in ``../shared/data`` beside the repository (or the folder named as the
first argument), and writes ``docs/cube_errors.md``. The tables are public and all noise is seeded.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np

import hedgerow as hr
from hedgerow.arrays import Array, Levels
from hedgerow.evaluate.baselines import IndependentNoise
from hedgerow.evaluate.method import CuboidCounts, Released, Releasing
from hedgerow.evaluate.metrics import errors_of
from hedgerow.evaluate.simulate import Tally
from hedgerow.noise.bits import Bits
from hedgerow.plan.joint import shape_of_tree
from hedgerow.plan.tables import as_tables
from studies.boninsegna.releases import loose_rho
from studies.constrained import Constrained
from studies.page import keep, markdown, with_data
from studies.releases import by_pass, rmse, trips_plan, within
from studies.tables import ENDS, TRIPS, every_count, trips_between

EPSILONS = ("0.1", "1", "10")
OPTIMUM_CELLS, OPTIMUM_RUNS = 1 << 18, 3
"""The optimum is computed with dense matrices, of tables of so many cells at most, so often."""

INF_TDA, CHAIN, CUBE = "InfTDA", "chain", "cube"
SURVIVORS, OPTIMUM = "cube, survivors", "optimum"
RATES = "false_discovery_rate", "false_negative_rate"


@dataclass(frozen=True, slots=True)
class Case:
    """A table of trips.

    Attributes:
        name: what it is called.
        folder: where it is.
        shares: of each axis of the cube, in hundredths, the axis's total first.
        runs: how many releases of each kind.
    """

    name: str
    folder: str
    shares: tuple[int, ...]
    runs: int = 10

    @property
    def allocation(self) -> hr.Shares:
        """The same for both axes."""
        return hr.Shares({end: [Fraction(share, 100) for share in self.shares] for end in ENDS})


CASES = (
    Case("UK, districts", "od_uk_lad_2011", (10, 20, 25, 45)),
    Case("Italy, provinces", "od_italy_province_2011", (10, 20, 25, 45)),
    Case("Sardinia, municipalities", "od_sardinia_municipality_2001", (20, 30, 50)),
    Case("Sydney, zones", "od_sydney_tz_2001", (10, 15, 15, 20, 40), runs=3),
    Case("United States, counties", "od_us_county_acs_2011_2015", (20, 30, 50), runs=3),
)


@dataclass(frozen=True)
class Optimum:
    """The nearest non-negative leaves to a cube's noisy counts, which are not whole.

    Attributes:
        plan: of the cube, whose noise it has under the same seeds.
        rates: of each release `RATES`, of the leaves when rounded.
    """

    plan: hr.Plan
    rates: list[list[float]] = field(default_factory=list)

    def released(self, counts: hr.Counts, bits: Bits) -> Released:
        """The leaves alone."""
        squares, tree = as_tables(self.plan.design).squares, counts.tree
        shape = shape_of_tree(tree)
        assert squares is not None
        noisy: dict[Levels, Array] = {
            shape.given(levels): given.dense(tree.cells(levels)).reshape(tree.sizes(levels))
            for levels, given in IndependentNoise(self.plan).released(counts, bits)
        }
        leaves: Array = Constrained.of(squares).nearest(noisy, shape)
        whole = errors_of(np.rint(leaves), every_count(counts, shape.finest), leaves.size)
        self.rates.append([whole[name] for name in RATES])
        yield shape.finest, CuboidCounts(None, leaves.ravel())


def on_table(counts: hr.Counts, case: Case, epsilon: str) -> dict[str, Tally]:
    """The errors of all methods under the seeds 0, 1, … , of every combination of levels."""
    tree, budget = counts.tree, within(epsilon)
    cuboids, cube = [*shape_of_tree(tree).cuboids()], (case.allocation, hr.Cube())
    plans = {
        INF_TDA: trips_plan(tree, loose_rho(epsilon), hr.Survivors()),
        CHAIN: trips_plan(tree, budget, hr.All()),
        CUBE: trips_plan(tree, budget, hr.All(), *cube),
        SURVIVORS: trips_plan(tree, budget, hr.Survivors(), *cube),
    }

    def simulated(method: Releasing, runs: int) -> Tally:
        return Tally.of_seeds(counts, method, cuboids, range(runs))

    found = {}
    for name, plan in plans.items():
        estimator = hr.Chebyshev() if name == INF_TDA else hr.Euclidean()
        found[name] = simulated(by_pass(plan, estimator), case.runs)
    if tree.leaves <= OPTIMUM_CELLS:
        optimum = Optimum(plans[CUBE])
        found[OPTIMUM] = simulated(optimum, min(case.runs, OPTIMUM_RUNS))
        for name, rates in zip(RATES, zip(*optimum.rates, strict=True), strict=True):
            found[OPTIMUM].score(name)[:, -1] = rates
    return found


def rmse_of(errors: Tally) -> dict[Levels, float]:
    """Of each combination of levels, records."""
    return dict(zip(errors.truth, map(rmse, errors.score("mse").T), strict=True))


def rates_of(errors: Tally) -> list[float]:
    """The shares of released leaves that are truly 0, and of true ones that are released as 0."""
    return [float(errors.score(name)[:, -1].mean()) for name in RATES]


def section(counts: hr.Counts, case: Case, found: Mapping[str, Mapping[str, Tally]]) -> str:
    """A table's part of the page: for each ε a row a combination of levels, a column a method."""
    shares = ", ".join(f"{share / 100:g}" for share in case.shares)
    about = f"{counts.total:,} records, {counts.tree.leaves:,} pairs, axis shares {shares}"
    parts = [f"## {case.name}", f"{about}, {case.runs} releases."]
    for epsilon, errors in found.items():
        told = errors_by_cuboid(case, errors.values())
        told["seconds"] = [f"{e.seconds.min():.2g}" for e in errors.values()]
        rows = ((what, *shown) for what, shown in told.items())
        parts += [f"ε = {epsilon}:", markdown(["origin × destination", *errors], rows)]
    return "\n\n".join(parts) + "\n"


def errors_by_cuboid(case: Case, every: Collection[Tally]) -> dict[str, list[str]]:
    """Errors in words, a column a method: of each cuboid, then of which cells are released."""
    names, each = ("total", *TRIPS[case.folder].split()), [*map(rmse_of, every)]
    told = {
        f"{names[c[0]]} × {names[c[1]]}": [f"{one[c]:.3g}" for one in each]
        for c in each[0]
        if any(c)
    }
    for i, what in enumerate(("false discoveries", "misses")):
        told[what] = [f"{rates_of(one)[i]:.3f}" for one in every]
    return told


def in_short(cases: Mapping[str, Mapping[str, Mapping[str, Tally]]]) -> str:
    """For each table the cube's RMSE over others', at ε = 1: leaves, outflow, inflow."""
    rows, others = [], (CHAIN, INF_TDA)
    for name, found in cases.items():
        errors = {method: rmse_of(each) for method, each in found["1"].items()}
        leaves = [*errors[CUBE]][-1]
        asked = leaves, (leaves[0], 0), (0, leaves[1])
        ratios = (errors[CUBE][c] / errors[other][c] for other, c in product(others, asked))
        rows.append((name, *ratios))
    what = product(others, ("leaves", "finest outflow", "finest inflow"))
    return markdown(["ε = 1", *(f"{each}, over {other}" for other, each in what)], rows, ".2f")


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
    sections, every = [], {}
    for case in CASES:
        counts = trips_between(data / case.folder)
        every[case.name] = {epsilon: on_table(counts, case, epsilon) for epsilon in EPSILONS}
        sections.append(section(counts, case, every[case.name]))
        print(case.name, flush=True)
    page = TEXT.format(
        cells=OPTIMUM_CELLS, runs=OPTIMUM_RUNS, short=in_short(every), sections="\n".join(sections)
    )
    keep("cube_errors", page)


if __name__ == "__main__":
    with_data(main)
