"""Synthetic people by block, age and sex: a census table that is crossed, and still sparse."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.examples.files import Rows, write_rows

Int64 = NDArray[np.int64]

BLOCKS_A_PART = 1 << 15
EDGES = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
SEXES = ["female", "male"]

PEOPLE_FILE = """\
[table]
source = "people.parquet"       # the confidential table: one row a block, age and sex with people
count  = "people"               # the column that holds the count; leave out for one row a person

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

[privacy]
neighbours    = "add-remove"    # protects whether a person is in the table at all
contributions = 1               # a person is counted once
mechanism     = "discrete-gaussian"
epsilon       = 1               # the promise: smaller is more private and less precise
delta         = 1e-10           # what is allowed beyond epsilon: well below one over the population
"""


def age_names() -> list[str]:
    """23 bands of age, whose order is that of their years."""
    last = [edge - 1 for edge in EDGES[1:]]
    bands = [f"{a:02d}-{b:02d}" for a, b in zip(EDGES, last, strict=False)]
    return [*bands, f"{EDGES[-1]}+"]


def write_ages(ages: Path, sexes: Path) -> None:
    """Write the two short public lists."""
    pl.DataFrame({"age": age_names()}).write_parquet(ages)
    pl.DataFrame({"sex": SEXES}).write_parquet(sexes)


def write_people(
    path: Path, rng: np.random.Generator, blocks: pl.Series, population: Int64
) -> None:
    """Write one row a block, age and sex with people, in bounded memory.

    Args:
        path: of the Parquet file.
        rng: where chance comes from.
        blocks: the codes of all blocks.
        population: int64 (blocks): people in each; every block has ages of its own.
    """
    write_rows(path, ["block", "age", "sex", "people"], _people(rng, blocks, population))


def _people(rng: np.random.Generator, blocks: pl.Series, population: Int64) -> Iterator[Rows]:
    """Codes of block, age and sex with how many people, some blocks at a time."""
    ages, sexes = pa.array(age_names()), pa.array(SEXES)
    inhabited = np.flatnonzero(population)
    for first in range(0, len(inhabited), BLOCKS_A_PART):
        part = inhabited[first : first + BLOCKS_A_PART]
        found = rng.multinomial(population[part], _shares(rng, len(part)))
        block, cell = np.nonzero(found)
        age, sex = np.divmod(cell.astype(np.int32), len(SEXES))
        names = blocks[part].to_arrow().cast(pa.string())
        yield [(block.astype(np.int32), names), (age, ages), (sex, sexes)], found[block, cell]


def _shares(rng: np.random.Generator, blocks: int) -> NDArray[np.float64]:
    """Shares of age × sex: float64 (blocks, ages × sexes), around one middle age a block."""
    years = np.diff([*EDGES, 95]).astype(np.float64)
    middle = np.asarray(EDGES) + years / 2
    centre = rng.normal(38, 14, size=(blocks, 1))
    pull = years * (0.15 + np.exp(-(((middle - centre) / 22) ** 2)))
    share: NDArray[np.float64] = pull / pull.sum(axis=1, keepdims=True) / len(SEXES)
    return np.repeat(share, len(SEXES), axis=1)
