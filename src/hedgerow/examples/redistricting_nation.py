"""A synthetic redistricting file: states down to blocks, and who lives where in them.

Facilities and homes first, then the people in them.
"""

from collections.abc import Iterator
from itertools import combinations
from math import prod

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.arrays import Bool, Float64, Int64
from hedgerow.declared import frozen
from hedgerow.examples.census import STATE_CODES
from hedgerow.examples.files import SEED, families_by, nested_codes, parents_of

MOST_GROUPS = 9
"""Block groups of a tract: one digit, the first of a block's number."""

MOST_BLOCKS = 1000
"""Blocks of a block group: the three digits after it."""

WITH_PEOPLE = 0.61
"""The share of blocks in which somebody lives, as in 2020."""


@frozen
class RedistrictingSize:
    """How many areas at each level, and how many people live in them."""

    states: int
    counties: int
    tracts: int
    block_groups: int
    blocks: int
    people: int


@frozen
class Geography:
    """Which area lies in which.

    Attributes:
        areas: one row a block: state, county, tract, block_group, block.
        state_of: int64 (counties).
        county_of: int64 (tracts).
        tract_of: int64 (block groups).
        group_of: int64 (blocks).
        inhabited: bool (blocks): whether somebody lives there.
    """

    areas: pl.DataFrame
    state_of: Int64
    county_of: Int64
    tract_of: Int64
    group_of: Int64
    inhabited: Bool


def draw_geography(size: RedistrictingSize) -> tuple[Geography, Generator]:
    """Return a geography, and the generator that goes on drawing for it.

    Every area has a child, families are uneven, and codes have enough digits.
    """
    rng = np.random.default_rng(SEED)
    state_of = parents_of(rng, size.states, size.counties, sigma=0.8)
    county_of = parents_of(rng, size.counties, size.tracts, sigma=1.2)
    tract_of = families_by(rng, np.ones(size.tracts), size.block_groups, MOST_GROUPS)
    pull = rng.lognormal(sigma=0.6, size=size.block_groups)
    group_of = families_by(rng, pull, size.blocks, MOST_BLOCKS)
    rng = np.random.default_rng([SEED, 0])
    dense = rng.beta(10 * WITH_PEOPLE, 10 * (1 - WITH_PEOPLE), size=size.tracts)
    likely = dense[tract_of[group_of]] - rng.random(size.blocks)
    inhabited = likely > np.quantile(likely, 1 - WITH_PEOPLE)
    # As in FIPS, a code is its parent's with more digits: 2 for the state, 3 for the county (odd
    # numbers), 6 for the tract (hundreds), 1 for the block group (from 1 on), 3 for the block.
    below = (
        *(("county", state_of, 5, 1, 3), ("tract", county_of, 11, 100, 200)),
        *(("block_group", tract_of, 12, 1, 2), ("block", group_of, 15, 0, 1)),
    )
    areas = nested_codes("state", np.array(STATE_CODES[: size.states]), 2, *below)
    return Geography(areas, state_of, county_of, tract_of, group_of, inhabited), rng


RACES = ["white", "black", "aian", "asian", "nhpi", "other"]
CENRACE = ["+".join(few) for n in range(1, 7) for few in combinations(RACES, n)]
"""The 63 sets of one race or more, the six of one race first."""

GROUPS = [*RACES, "two or more", "hispanic"]
"""Race of those who are not Hispanic, and Hispanic whatever the race."""

AGES = ["minor", "adult"]
HISPANIC = ["no", "yes"]
ROWS_AT_ONCE = 1 << 15


@frozen
class Quarters:
    """A kind of group quarters: how many blocks have it, how large it is, who lives there.

    Attributes:
        blocks: that have it, in a million people.
        people: in the median facility.
        minors: their share.
        alone: the share of its blocks in which there are no homes.
        facilities: in a block that has it, on average.
    """

    blocks: float
    people: float
    minors: float
    alone: float = 0.0
    facilities: float = 1.05


HOUSEHOLD = "household"
QUARTERS = {
    "correctional": Quarters(15, 180, 0.001, 0.8),
    "juvenile": Quarters(14, 9, 0.95),
    "nursing": Quarters(80, 55, 0.0),
    "other_institutional": Quarters(10, 25, 0.05),
    "college": Quarters(20, 60, 0.01, 0.4, 7.0),
    "military": Quarters(3, 120, 0.005, 0.6, 2.0),
    "other_noninstitutional": Quarters(140, 14, 0.08),
}
KINDS = [HOUSEHOLD, *QUARTERS]
INSTITUTIONS = [HOUSEHOLD, *4 * ["institutional"], *3 * ["noninstitutional"]]
"""The kind of each of `KINDS`."""

NAMES = ["hhgq", "votingage", "hispanic", "cenrace"]
WORDS = [KINDS, AGES, HISPANIC, CENRACE]
"""The columns that tell people apart, and the words of each."""

BASE = np.array([0.60, 0.12, 0.007, 0.06, 0.002, 0.005, 0.036, 0.17])
"""Shares of `GROUPS` in the nation."""

UNEVEN = np.array([0.3, 1.0, 1.0, 0.8, 0.7, 0.4, 0.3, 0.8])
"""How much they vary, beside that of a level of the geography."""


def _of_several() -> Float64:
    """Return the shares of sets of two races or more, in the order of `CENRACE`."""
    each = dict(zip(RACES, [1.0, 0.35, 0.3, 0.25, 0.05, 0.5], strict=True))
    sets = [few for n in range(2, 7) for few in combinations(RACES, n)]
    pull = np.array([prod(each[race] for race in few) * 0.2 ** (len(few) - 2) for few in sets])
    shares: Float64 = pull / pull.sum()
    return shares


MIXED = _of_several()
OF_HISPANICS = np.concatenate([[0.50, 0.03, 0.014, 0.005, 0.001, 0.35], 0.10 * MIXED])


def draw_residents(rng: Generator, places: Geography, people: int) -> pl.DataFrame:
    """Return who lives in which kind of quarters: group quarters first, then homes.

    Columns, ordered by the first two: block (its number), kind (its place in `KINDS`), facilities
    (how many there are, or housing units), people (at least one a facility of group quarters; homes
    may be empty).
    """
    inhabited = np.flatnonzero(places.inhabited)
    with_homes = places.inhabited.copy()
    parts = []
    for number, kind in enumerate(QUARTERS.values(), start=1):
        count = max(1, rng.poisson(kind.blocks * people / 1e6))
        block = np.sort(rng.choice(inhabited, min(count, len(inhabited) // 10), replace=False))
        with_homes[block[rng.random(len(block)) < kind.alone]] = False
        facilities = 1 + rng.poisson(kind.facilities - 1, len(block))
        more = rng.poisson(facilities * kind.people * rng.lognormal(0, 0.8, len(block)))
        parts.append(_rows(block, number, facilities, facilities + more))
    at_home = people - sum(int(part["people"].sum()) for part in parts)
    parts += _in_homes(rng, places, np.flatnonzero(with_homes), at_home)
    return pl.concat(parts).sort("block", "kind")


def _rows(block: Int64, kind: int, facilities: Int64, people: Int64 | int) -> pl.DataFrame:
    columns = {"block": block, "facilities": facilities, "people": people}
    kinds = pl.lit(kind, pl.Int64).alias("kind")
    return pl.DataFrame(columns).select("block", kinds, "facilities", pl.col("people").cast(int))


def _in_homes(
    rng: Generator, places: Geography, block: Int64, people: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return housing units and who lives in them, and of some other blocks empty homes."""
    group = places.group_of[block]
    pull = rng.lognormal(sigma=0.95, size=len(block))
    wanted = rng.lognormal(sigma=0.35, size=len(places.tract_of))  # of whole block groups
    share = pull * (wanted / np.bincount(group, pull, len(wanted)).clip(1e-9))[group]
    count = 1 + rng.multinomial(people - len(block), share / share.sum())
    homes = 1 + rng.binomial(count - 1, 0.38) + rng.poisson(0.05 * count)
    is_empty = ~places.inhabited & (rng.random(len(places.inhabited)) < 0.12)
    empty = np.flatnonzero(is_empty)
    vacant = 1 + rng.poisson(1.0, len(empty))
    return _rows(block, 0, homes, count), _rows(empty, 0, vacant, 0)


def draw_people(
    rng: Generator, places: Geography, residents: pl.DataFrame
) -> Iterator[pl.DataFrame]:
    """Yield the cells in which somebody lives, in order, some rows of the residents at a time.

    Columns: block, hhgq, votingage, hispanic, cenrace, and how many people as count.
    """
    shares = BASE
    for varies, above in ((0.4, places.state_of), (0.6, places.county_of), (0.9, None)):
        areas = len(places.county_of) if above is None else int(above[-1]) + 1
        own = rng.lognormal(sigma=varies * UNEVEN, size=(areas, len(GROUPS)))
        shares = shares * own if above is None else (shares * own)[above]
    minors = np.array([0.0, *(kind.minors for kind in QUARTERS.values())])
    blocks = places.areas["block"]
    texts = [pl.Series(w, dtype=pl.Categorical) for w in WORDS]
    for part in residents.filter(pl.col("people") > 0).iter_slices(ROWS_AT_ONCE):
        block, kind, _, people = (column.to_numpy() for column in part)
        young = np.where(kind == 0, rng.beta(8, 28, len(part)), minors[kind])
        tract = places.tract_of[places.group_of[block]]
        groups = shares[tract] * rng.lognormal(sigma=0.5 * UNEVEN, size=(len(part), len(GROUPS)))
        groups /= groups.sum(axis=1, keepdims=True)
        cells = np.concatenate([groups * young[:, None], groups * (1 - young)[:, None]], axis=1)
        of_group = rng.multinomial(people, cells).reshape(-1, len(AGES), len(GROUPS))
        # one race: the group says it; several races, or Hispanic: the same shares everywhere
        *_, several, hispanic = np.moveaxis(of_group, 2, 0)
        mixed = rng.multinomial(several, MIXED / MIXED.sum())
        others = np.concatenate([of_group[:, :, : len(RACES)], mixed], axis=2)
        by_race = [others, rng.multinomial(hispanic, OF_HISPANICS / OF_HISPANICS.sum())]
        counts = np.stack(by_race, axis=2)
        row, *places_of = np.nonzero(counts)
        cells_of = zip(NAMES, texts, (kind[row], *places_of), strict=True)
        named = [words[place].alias(name) for name, words, place in cells_of]
        many = pl.Series("count", counts[row, *places_of])
        yield pl.DataFrame([blocks[block[row]], *named, many])
