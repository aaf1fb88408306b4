"""A synthetic census over its geography, and the same by age and sex as well."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.arrays import Float64, Int64, float64, int64_zeros
from hedgerow.declared import frozen
from hedgerow.examples.files import (
    SEED,
    free,
    nested_codes,
    parents_of,
    size_of,
    write_release_file,
)
from hedgerow.export.released import write_parts

BLOCKS_A_PART = 1 << 15
EDGES = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
SEXES = ["female", "male"]

_PRIVACY = """
[privacy]
neighbours    = "add-remove"    # protects whether a person is in the table at all
contributions = 1               # a person is counted once
mechanism     = "discrete-gaussian"
epsilon       = 1               # the promise: smaller is more private and less precise
delta         = 1e-10           # well below one over the population
"""

_PEOPLE = """\
[table]
source = "people.parquet"       # the confidential table: one row a block, age and sex with people
count  = "people"               # the column that holds the count; without it a row is one person

[[axis]]
name    = "geography"
levels  = ["state", "county", "tract", "block"]   # from coarse to fine; the table has "block" alone
areas   = "areas.parquet"       # the public list of all blocks, empty ones included

[[axis]]
name   = "age"
levels = ["age"]
areas  = "ages.parquet"

[[axis]]
name   = "sex"
levels = ["sex"]
areas  = "sexes.parquet"

[tree]
refine = [
    "geography.state", "geography.county", "geography.tract", "geography.block", "age.age",
    "sex.sex",
]
"""


def age_names() -> list[str]:
    """Return 23 bands of age, ordered by years."""
    last = [edge - 1 for edge in EDGES[1:]]
    bands = [f"{a:02d}-{b:02d}" for a, b in zip(EDGES, last, strict=False)]
    return [*bands, f"{EDGES[-1]}+"]


def _people(rng: Generator, blocks: pl.Series, population: Int64) -> Iterator[pl.DataFrame]:
    """Yield codes of block, age and sex with how many people, some blocks at a time."""
    ages = pl.Series("age", age_names())
    sexes = pl.Series("sex", SEXES)
    inhabited = np.flatnonzero(population)
    for first in range(0, len(inhabited), BLOCKS_A_PART):
        part = inhabited[first : first + BLOCKS_A_PART]
        # shares of age × sex: float64 (blocks, ages × sexes), around one middle age a block
        years = float64(np.diff([*EDGES, 95]))
        middle = np.asarray(EDGES) + years / 2
        pull = years * (
            0.15 + np.exp(-(((middle - rng.normal(38, 14, size=(len(part), 1))) / 22) ** 2))
        )
        share: Float64 = pull / pull.sum(axis=1, keepdims=True) / len(SEXES)
        people = rng.multinomial(population[part], np.repeat(share, len(SEXES), axis=1))
        block, cell = np.nonzero(people)
        age, sex = np.divmod(cell, len(SEXES))
        count = pl.Series("people", people[block, cell])
        yield pl.DataFrame([blocks[part[block]], ages[age], sexes[sex], count])


STATE_CODES = [code for code in range(1, 57) if code not in {3, 7, 14, 43, 52}]  # as in FIPS


@frozen
class CensusSize:
    """How many areas at each level, how many people live in them, and whether by age and sex."""

    states: int
    counties: int
    tracts: int
    blocks: int
    population: int
    crossed: bool = False


CENSUS_SIZES = {
    "small": CensusSize(3, 60, 1_000, 20_000, 830_000),
    "national": CensusSize(51, 3_200, 80_000, 8_000_000, 331_449_281),  # the United States, 2020
    "usa": CensusSize(51, 3_143, 84_414, 8_132_968, 331_449_281, crossed=True),
}

_CENSUS = """\
[table]
source = "population.parquet"   # the confidential table: one row a block with people in it
count  = "population"           # the column that holds the count; without it a row is one person

[[axis]]
name   = "geography"
levels = ["state", "county", "tract", "block"]   # from coarse to fine: the columns
areas  = "areas.parquet"        # the public list of all blocks, empty ones included
"""


def write_census(directory: Path, size: str = "small") -> Path:
    """Return the path of ``release.toml``, written beside a synthetic census and its list of areas.

    Files: ``areas.parquet`` (state, county, tract, block: one row a block),
    ``population.parquet`` (the same and population: one row a block with people in it).
    """
    chosen = size_of(CENSUS_SIZES, size)
    lists = {"ages": {"age": age_names()}, "sexes": {"sex": SEXES}} if chosen.crossed else {}
    names = ["areas", *lists, "people" if chosen.crossed else "population"]
    file, *files = free(directory, "release.toml", *(f"{name}.parquet" for name in names))
    rng = np.random.default_rng(SEED)
    areas, tract_of = _blocks(rng, chosen)
    # people in each block: none in two fifths of them (more in some tracts)
    inhabited_share = rng.beta(3.0, 2.0, size=chosen.tracts)
    inhabited = np.flatnonzero(rng.random(chosen.blocks) < inhabited_share[tract_of])
    density = rng.lognormal(sigma=0.5, size=chosen.tracts)[tract_of[inhabited]]
    pull = density * rng.lognormal(sigma=1.2, size=len(inhabited))
    population = int64_zeros(chosen.blocks)
    extra = rng.multinomial(chosen.population - len(inhabited), pull / pull.sum())
    population[inhabited] = 1 + extra
    frames = [areas, *map(pl.DataFrame, lists.values())]
    for frame, path in zip(frames, files, strict=False):
        frame.write_parquet(path)
    title = "A census over its geography"
    text = _CENSUS
    if chosen.crossed:
        title = "A census by block, age and sex"
        text = _PEOPLE
        parts = _people(rng, areas["block"], population)
    else:
        rows = areas.with_columns(population=population)
        parts = iter([rows.filter(pl.col("population") > 0)])
    write_parts(files[-1], parts)
    write_release_file(file, title, text + _PRIVACY)
    return file


def _blocks(rng: Generator, size: CensusSize) -> tuple[pl.DataFrame, Int64]:
    """Return the list of blocks in the manner of FIPS, and the tract of each.

    A code is its parent's with more digits: 2 for the state, 3 for the county (odd numbers), 6 for
    the tract (hundreds), 4 for the block (from 1000 on).
    """
    state_of = parents_of(rng, size.states, size.counties, sigma=0.8)
    county_of = parents_of(rng, size.counties, size.tracts, sigma=1.2)
    tract_of = parents_of(rng, size.tracts, size.blocks, sigma=0.6)
    states = np.array(STATE_CODES[: size.states])
    counties = ("county", state_of, 5, 1, 3)
    tracts = ("tract", county_of, 11, 100, 200)
    blocks = ("block", tract_of, 15, 1_000, 1_001)
    return nested_codes("state", states, 2, counties, tracts, blocks), tract_of
