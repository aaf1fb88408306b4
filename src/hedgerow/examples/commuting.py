"""Synthetic trips to work, by origin and destination: near and large places attract more."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
from numpy.random import Generator
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64, IntTriple, int64, starts_among, sums_before
from hedgerow.declared import frozen
from hedgerow.examples.files import (
    SEED,
    codes_of,
    families_by,
    free,
    parents_of,
    place_in_family,
    size_of,
    write_release_file,
)
from hedgerow.export.released import write_parts

TRIPS_A_BLOCK = 1 << 21
Pairs = IntTriple
"""Origins, destinations, and how many trips between them."""

_TRIPS = """\
[table]
source = "trips.parquet"        # the confidential table: one row a pair of places with any trip
count  = "trips"                # the number of trips of a row; without it a row is one trip
{axes}
[tree]
refine = ["destination", "origin"]   # destination regions first, then origin regions, and so on

[privacy]
neighbours    = "replace"       # protects where a trip starts and ends; their number is public
contributions = 1               # every person makes exactly one trip
mechanism     = "discrete-gaussian"
epsilon       = 1               # the promise: smaller is more private and less precise
delta         = 1e-8            # well below one over the number of trips
"""


def draw_sections(
    rng: Generator, areas: pl.DataFrame, people: Float64, size: "CommutingSize"
) -> tuple[pl.DataFrame, Int64]:
    """Return sections below a list of municipalities, and where each municipality's begin.

    Numbered in the manner of ISTAT: a locality's code is its municipality's with five more digits,
    a section's with seven.
    """
    municipality_of = families_by(rng, np.sqrt(people), size.localities)
    alone = people / np.bincount(municipality_of)
    pull = alone[municipality_of] * rng.lognormal(sigma=1.0, size=size.localities)
    locality_of = families_by(rng, pull, size.sections)
    rows = municipality_of[locality_of]
    numbers = areas["municipality"].cast(pl.Int64).to_numpy()
    locality = numbers[municipality_of] * 100_000 + 10_001 + place_in_family(municipality_of)
    section = numbers[rows] * 10_000_000 + 1 + place_in_family(rows)
    whole = areas[rows].with_columns(
        codes_of("locality", locality, 11)[locality_of], codes_of("section", section, 13)
    )
    return whole, starts_among(rows, areas.height)


def _flows(rng: Generator, first: Int64, pairs: Pairs) -> Iterator[Pairs]:
    """Yield the sections of both ends with how many trips, some pairs of municipalities a time."""
    *ends, trips = pairs
    blocks = np.arange(TRIPS_A_BLOCK, trips.sum(), TRIPS_A_BLOCK)
    cuts = [0, *np.searchsorted(np.cumsum(trips), blocks).tolist(), len(trips)]
    many = first[-1]
    often = [rng.lognormal(sigma=sigma, size=many) for sigma in (1.2, 2.7)]  # residents, workplaces
    running = [sums_before(pull) for pull in often]
    for begin, last in pairwise(cuts):
        times = trips[begin:last]
        start, stop = (
            _drawn(rng, sums, first, end[begin:last], times)
            for sums, end in zip(running, ends, strict=True)
        )
        flow, trips_of = np.unique(start * many + stop, return_counts=True)
        yield *np.divmod(flow, many), trips_of


def _drawn(
    rng: Generator,
    running: Float64,
    start: Int64,
    municipality: Int64,
    trips: Int64,
) -> Int64:
    """Return a section of the municipality for each trip: int64 (all trips)."""
    low = running[start[municipality]]
    high = running[start[municipality + 1]]
    spot = np.repeat(low, trips) + rng.random(int(trips.sum())) * np.repeat(high - low, trips)
    section = np.searchsorted(running, spot, side="right") - 1
    # a spot may be rounded up to the next municipality's first section
    return int64(np.minimum(section, np.repeat(start[municipality + 1] - 1, trips)))


@frozen
class CommutingSize:
    """How many areas at each level, pairs with any trip between municipalities, and trips.

    Trips of 0 localities and sections are those between municipalities.
    """

    regions: int
    provinces: int
    municipalities: int
    pairs: int
    trips: int
    localities: int = 0
    sections: int = 0


COMMUTING_SIZES = {
    "small": CommutingSize(4, 12, 120, 3_000, 50_000),
    "national": CommutingSize(20, 110, 8_092, 500_000, 28_805_440),  # Italy, 2011
    "sections": CommutingSize(20, 110, 8_092, 500_000, 28_805_440, 50_000, 362_292),
}


def write_commuting(directory: Path, size: str = "small") -> Path:
    """Return the path of ``release.toml``, written beside synthetic trips and their list of areas.

    Files: ``municipalities.parquet`` (region, province, municipality), ``trips.parquet``
    (o_region … d_municipality, trips: one row a pair with any trip).
    """
    chosen = size_of(COMMUTING_SIZES, size)
    name = "sections" if chosen.sections else "municipalities"
    file, listed, table = free(directory, "release.toml", f"{name}.parquet", "trips.parquet")
    rng = np.random.default_rng(SEED)
    areas, spot = _municipalities(rng, chosen)
    people = rng.lognormal(sigma=1.5, size=chosen.municipalities)
    whole = _trips(rng, spot, people, chosen)
    parts = iter([whole])
    title = "Trips to work over origin × destination"
    if chosen.sections:
        areas, first = draw_sections(rng, areas, people, chosen)
        parts = _flows(rng, first, whole)
        title = "Trips to work between census sections"
    areas.write_parquet(listed)
    origins, destinations = (
        areas.rename({name: f"{end}_{name}" for name in areas.columns}) for end in "od"
    )
    rows = (
        pl.concat([origins[o], destinations[d], pl.DataFrame({"trips": n})], how="horizontal")
        for o, d, n in parts
    )
    write_parts(table, rows)
    # the sections of a release file of trips between the finest level's areas
    axes = ""
    for axis in ("origin", "destination"):
        columns = [f"{axis[0]}_{level}" for level in areas.columns]
        axes += (
            f'\n[[axis]]\nname    = "{axis}"\n'
            f"levels  = {json.dumps(areas.columns)}   # from coarse to fine\n"
            f"columns = {json.dumps(columns)}   # of the table\n"
            f'areas   = "{listed.name}"   # the public list\n'
        )
    write_release_file(file, title, _TRIPS.format(axes=axes))
    return file


Spots = NDArray[np.float32]
"""Where municipalities lie in a plane: (municipalities, 2)."""


def _municipalities(rng: Generator, size: CommutingSize) -> tuple[pl.DataFrame, Spots]:
    """Return the list of municipalities in the manner of ISTAT, and where they lie.

    A municipality's code is its province's with three more digits; provinces are numbered through.
    """
    region_of = parents_of(rng, size.regions, size.provinces, sigma=0.5)
    province_of = parents_of(rng, size.provinces, size.municipalities, sigma=0.7)
    numbers = (province_of + 1) * 1_000 + place_in_family(province_of) + 1
    areas = [
        codes_of("region", region_of[province_of] + 1, 2),
        codes_of("province", province_of + 1, 3),
        codes_of("municipality", numbers, 6),
    ]
    # A country of side 1: provinces lie around the middle of their region, and so on down.
    middle = rng.random((size.regions, 2))[region_of] + rng.normal(0, 0.06, (size.provinces, 2))
    spot = middle[province_of] + rng.normal(0, 0.02, (size.municipalities, 2))
    return pl.DataFrame(areas), spot.astype(np.float32)


def _trips(rng: Generator, spot: Spots, people: Float64, size: CommutingSize) -> Pairs:
    """Return origin, destination and trips of every pair that has any, in order of origin.

    Pairs race: exponential times with rates w arrive in the order of draws without replacement in
    proportion to w (Efraimidis & Spirakis 2006), and the first are taken. Nearer and larger places
    are likelier; staying at home always comes first.
    """

    def attraction(origin: int | Int64, destination: slice | Int64) -> Float64:
        """Return the gravity law: people at both ends over the square of the distance."""
        across, along = (spot[origin] - spot[destination]).T
        masses = people[origin] * people[destination]
        pull: Float64 = masses / (across * across + along * along + np.float32(1e-5))
        return pull

    n = size.municipalities
    arrival = np.empty((n, n), dtype=np.float32)
    for row in range(n):  # by rows: all pairs at once would take gigabytes in between
        waiting = rng.standard_exponential(n, dtype=np.float32)
        arrival[row] = waiting / attraction(row, slice(None))
    np.fill_diagonal(arrival, 0)
    flat = arrival.reshape(-1)
    last = np.partition(flat, size.pairs - 1)[size.pairs - 1]
    chosen = np.flatnonzero(flat <= last)[: size.pairs]
    origin, destination = np.divmod(chosen, n)
    at_home = origin == destination
    pull = np.where(at_home, people[origin], attraction(origin, destination))
    # Half of what is left after one trip a pair stays at home.
    share = np.where(at_home, 0.5 * pull / pull[at_home].sum(), 0.5 * pull / pull[~at_home].sum())
    trips = 1 + rng.multinomial(size.trips - len(chosen), share / share.sum())
    return origin, destination, int64(trips)
