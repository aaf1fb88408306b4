"""Releases of real tables: time, memory and error by level against the truth.

Reads ``../shared/data`` beside the repository (or the folder named as the first argument), and
writes ``docs/real_tables.md`` and ``docs/real_tables.png``. Release noise is real, so figures
differ a little from run to run.
"""

import resource
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

import hedgerow as hr
from hedgerow.evaluate.metrics import (
    HEADINGS,
    error_by_cuboid,
    error_rows,
)
from hedgerow.noise.bits import ReleaseKey
from studies.boninsegna.releases import gaussian_method
from studies.methods import error_of_released, picture_of_methods
from studies.page import ROOT, keep, markdown, timed, with_data
from studies.releases import plan_of, trips_plan, within
from studies.tables import BLOCKS, census_of, trips_between

CENSUS = hr.EpsilonDelta("1", "1e-10")


@dataclass(frozen=True)
class Case:
    """One table.

    Attributes:
        name: what it is called.
        file: in the data folder: of a census, whose own rows are the public list of areas, or the
            folder of trips.
        levels: of a census, coarsest first.
        count: the column of a census; none of trips.
    """

    name: str
    file: str
    levels: str = ""
    count: str = ""

    def load(self, data: Path) -> tuple[hr.Counts, hr.Plan]:
        """Its counts and its plan."""
        if not self.count:
            trips = trips_between(data / self.file)
            return trips, trips_plan(trips.tree, within("1"), hr.Survivors())
        counts = census_of(pl.read_parquet(data / self.file), self.levels.split(), self.count)
        return counts, plan_of(counts.tree, CENSUS, hr.Survivors())


CENSUS_LEVELS = "state county tract block_group"
CASES = [
    Case("UK commuting 2011", "od_uk_lad_2011"),
    Case("Italy commuting 2011", "od_italy_province_2011"),
    Case("Sydney commuting 2001", "od_sydney_tz_2001"),
    Case("Sardinia commuting 2001", "od_sardinia_municipality_2001"),
    Case("US county commuting", "od_us_county_acs_2011_2015"),
    Case(
        "Washington blocks 2010",
        BLOCKS,
        f"{CENSUS_LEVELS} block",
        "pop",
    ),
    Case(
        "US block groups 2010",
        "census_us_block_group/bg_2010.parquet",
        CENSUS_LEVELS,
        "population",
    ),
    Case(
        "Italian municipalities 2011",
        "census_italy_municipality/pop.parquet",
        "area region province municipality",
        "pop_2011",
    ),
]


def run(case: Case, data: Path) -> tuple[str, pl.DataFrame]:
    """A section of the page, and the errors of the release."""
    loading, (counts, plan) = timed(partial(case.load, data))
    spent, release = timed(partial(hr.release, counts, plan))
    errors = error_by_cuboid(counts, release)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    head = (
        f"## {case.name}\n\n{counts.total:,} records, {plan.tree.leaves:,} possible leaves. "
        f"{plan.promise.statement()} Loading {loading:.2f} s, release "
        f"{spent:.3f} s, peak memory of the process so far {memory:.2f} GB.\n"
    )
    return f"{head}\n{markdown(HEADINGS, error_rows(errors))}\n", errors


def main(data: Path) -> None:
    """Run every case and write the page and the picture."""
    run(CASES[0], data)  # compiles the kernels
    found = {case.name: run(case, data) for case in CASES}
    intro = (
        "# Real tables\n\nMade by `make studies`: one release each at ε = 1 (δ = 1e-10 for a "
        "census under add-remove, 1e-8 for trips under replace), uniform shares, Chebyshev.\n\n"
    )
    keep("real_tables", intro + "\n".join(page for page, _ in found.values()))
    counts, plan = CASES[0].load(data)
    method = gaussian_method(counts, plan.budget)
    noise = error_of_released(counts, method.released(counts, ReleaseKey.fresh()))
    shown = {"Hedgerow": found[CASES[0].name][1], "noise on every pair": noise}
    about = (
        "Errors of one release, and of its whole budget spent on noise for every pair, at ε = 1."
    )
    picture_of_methods(shown, ROOT / "docs" / "real_tables.png", title=CASES[0].name, about=about)


if __name__ == "__main__":
    with_data(main)
