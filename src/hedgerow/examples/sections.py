"""Synthetic trips between census sections: the commuting example at its full resolution."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.examples.areas import codes_of, dictionary, families_by, place_in_family
from hedgerow.examples.files import Rows, write_rows

Int64 = NDArray[np.int64]

TRIPS_A_BLOCK = 1 << 21
LEVELS = ["region", "province", "municipality", "locality", "section"]

SECTIONS_FILE = """\
[table]
source = "trips.parquet"        # the confidential table: one row a pair of sections with any trip
count  = "trips"                # the column that holds the count; leave out for one row a trip

[[axis]]
name    = "origin"
levels  = ["region", "province", "municipality", "locality", "section"]   # from coarse to fine
columns = ["o_region", "o_province", "o_municipality", "o_locality", "o_section"]
areas   = "sections.parquet"    # the public list

[[axis]]
name    = "destination"
levels  = ["region", "province", "municipality", "locality", "section"]
columns = ["d_region", "d_province", "d_municipality", "d_locality", "d_section"]
areas   = "sections.parquet"

[tree]
refine = ["destination", "origin"]   # destination regions first, then origin regions, and so on

[privacy]
neighbours    = "replace"       # protects where a trip starts and ends; their number is public
contributions = 1               # every person makes exactly one trip
mechanism     = "discrete-gaussian"
epsilon       = 1               # the promise: smaller is more private and less precise
delta         = 1e-8            # what is allowed beyond epsilon: below one over the number of trips
"""


@dataclass(frozen=True, slots=True)
class Sections:
    """The sections of a country, in the order of their municipalities.

    Attributes:
        areas: one row a section: the codes of `LEVELS`.
        start: int64 (municipalities + 1): where each one's sections begin.
        residents: float64 (sections + 1): running sums of how many trips start there.
        workplaces: float64 (sections + 1): running sums of how many end there.
    """

    areas: pl.DataFrame
    start: Int64
    residents: NDArray[np.float64]
    workplaces: NDArray[np.float64]


def draw_sections(
    rng: np.random.Generator,
    areas: pl.DataFrame,
    people: NDArray[np.float64],
    sizes: tuple[int, int],
) -> Sections:
    """Sections below a list of municipalities, in the manner of ISTAT.

    A locality's code is its municipality's with five more digits, a section's with seven.

    Args:
        rng: where chance comes from.
        areas: the list: region, province, municipality.
        people: float64 (municipalities): the more, the more localities and sections.
        sizes: the number of localities and of sections.
    """
    localities, sections = sizes
    municipality_of = families_by(rng, np.sqrt(people), localities)
    alone = people / np.bincount(municipality_of)
    pull = alone[municipality_of] * rng.lognormal(sigma=1.0, size=localities)
    locality_of = families_by(rng, pull, sections)
    rows = municipality_of[locality_of]
    numbers = areas["municipality"].cast(pl.Int64).to_numpy()
    locality = numbers[municipality_of] * 100_000 + 10_001 + place_in_family(municipality_of)
    section = numbers[rows] * 10_000_000 + 1 + place_in_family(rows)
    whole = areas[rows].with_columns(
        codes_of("locality", locality, 11)[locality_of], codes_of("section", section, 13)
    )
    start = np.searchsorted(rows, np.arange(areas.height + 1))
    residents = _running(rng.lognormal(sigma=1.2, size=sections))
    workplaces = _running(rng.lognormal(sigma=2.7, size=sections))
    return Sections(whole, start.astype(np.int64), residents, workplaces)


def write_flows(
    path: Path,
    rng: np.random.Generator,
    sections: Sections,
    pairs: tuple[Int64, Int64, Int64],
) -> None:
    """Write one row a pair of sections with any trip, block by block in bounded memory.

    Args:
        path: of the Parquet file.
        rng: where chance comes from.
        sections: with how often trips start and end there.
        pairs: origin, destination and trips of pairs of municipalities; each trip goes to a section
            of its own choice at either end.
    """
    columns = [f"{end}_{level}" for end in "od" for level in LEVELS]
    write_rows(path, [*columns, "trips"], _flows(rng, sections, pairs))


def _flows(
    rng: np.random.Generator, sections: Sections, pairs: tuple[Int64, Int64, Int64]
) -> Iterator[Rows]:
    """Codes of both ends with how many trips, some pairs of municipalities at a time."""
    origin, destination, trips = pairs
    levels = [dictionary(sections.areas[level]) for level in LEVELS]
    blocks = np.arange(TRIPS_A_BLOCK, trips.sum(), TRIPS_A_BLOCK)
    cuts = [0, *np.searchsorted(np.cumsum(trips), blocks).tolist(), len(trips)]
    many = len(sections.areas)
    for first, last in pairwise(cuts):
        part = slice(first, last)
        start = _drawn(rng, sections.residents, sections.start, origin[part], trips[part])
        stop = _drawn(rng, sections.workplaces, sections.start, destination[part], trips[part])
        flow, found = np.unique(start * many + stop, return_counts=True)
        ends = np.divmod(flow, many)
        yield [(of_section[end], codes) for end in ends for of_section, codes in levels], found


def _running(pull: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.append(0.0, np.cumsum(pull))


def _drawn(
    rng: np.random.Generator,
    running: NDArray[np.float64],
    start: Int64,
    municipality: Int64,
    trips: Int64,
) -> Int64:
    """A section of the municipality for each trip: int64 (all trips)."""
    low, high = running[start[municipality]], running[start[municipality + 1]]
    spot = np.repeat(low, trips) + rng.random(int(trips.sum())) * np.repeat(high - low, trips)
    found = np.searchsorted(running, spot, side="right") - 1
    # a spot may be rounded up to the next municipality's first section
    return np.minimum(found, np.repeat(start[municipality + 1] - 1, trips)).astype(np.int64)
