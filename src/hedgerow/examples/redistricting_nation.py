"""A synthetic redistricting file: its states down to blocks, and who lives where in them.

One state at a time: facilities and homes first, then the people in them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
import polars as pl
from numpy.random import Generator

from hedgerow.arrays import Bool, Float64, Int64
from hedgerow.examples.census import STATE_CODES
from hedgerow.examples.files import SEED, families_by, nested_codes, parents_of

MOST_GROUPS = 9
"""Block groups of a tract: one digit, the first of a block's number."""

MOST_BLOCKS = 1000
"""Blocks of a block group: the three digits after it."""

WITH_PEOPLE = 0.61
"""The share of blocks in which somebody lives, as in 2020."""


@dataclass(frozen=True, slots=True)
class RedistrictingSize:
    """How many areas at each level, and how many people live in them."""

    states: int
    counties: int
    tracts: int
    block_groups: int
    blocks: int
    people: int


@dataclass(frozen=True, slots=True)
class Nation:
    """What all states have in common: which area lies in which, down to block groups.

    Attributes:
        size: of the whole.
        state_of: int64 (counties).
        county_of: int64 (tracts).
        tract_of: int64 (block groups).
        blocks: int64 (block groups): how many there are in each.
        people: int64 (states).
    """

    size: RedistrictingSize
    state_of: Int64
    county_of: Int64
    tract_of: Int64
    blocks: Int64
    people: Int64


@dataclass(frozen=True, slots=True)
class State:
    """The blocks of one state.

    Attributes:
        areas: one row a block: state, county, tract, block_group, block.
        county_of: int64 (tracts), numbered from 0 within the state, as all of these are.
        tract_of: int64 (block groups).
        group_of: int64 (blocks).
        inhabited: bool (blocks): whether somebody lives there.
        people: in all.
        number: of the state, from 0; the randomness of each is its own.
    """

    areas: pl.DataFrame
    county_of: Int64
    tract_of: Int64
    group_of: Int64
    inhabited: Bool
    people: int
    number: int


def draw_nation(size: RedistrictingSize) -> Nation:
    """Return a geography: every area has a child, families are uneven, codes have enough digits."""
    rng = np.random.default_rng(SEED)
    state_of = parents_of(rng, size.states, size.counties, sigma=0.8)
    county_of = families_by(rng, rng.lognormal(sigma=1.2, size=size.counties), size.tracts)
    tract_of = limited_families(rng, np.ones(size.tracts), size.block_groups, MOST_GROUPS)
    pull = rng.lognormal(sigma=0.6, size=size.block_groups)
    blocks = np.bincount(limited_families(rng, pull, size.blocks, MOST_BLOCKS))
    by_state = np.bincount(state_of[county_of[tract_of]], minlength=size.states)
    people = rng.multinomial(size.people, by_state / by_state.sum())
    return Nation(size, state_of, county_of, tract_of, blocks, people.astype(np.int64))


def draw_state(nation: Nation, number: int) -> tuple[State, Generator]:
    """Return the blocks of a state, and the generator that goes on drawing for it."""
    rng = np.random.default_rng([SEED, number])
    counties = np.flatnonzero(nation.state_of == number)
    tracts = np.flatnonzero(np.isin(nation.county_of, counties))
    groups = np.flatnonzero(np.isin(nation.tract_of, tracts))
    county_of = nation.county_of[tracts] - counties[0]
    tract_of = nation.tract_of[groups] - tracts[0]
    group_of = np.repeat(np.arange(len(groups)), nation.blocks[groups])
    dense = rng.beta(10 * WITH_PEOPLE, 10 * (1 - WITH_PEOPLE), size=len(tracts))
    likely = dense[tract_of[group_of]] - rng.random(len(group_of))
    inhabited = likely > np.quantile(likely, 1 - WITH_PEOPLE)
    # As in FIPS, a code is its parent's with more digits: 2 for the state, 3 for the county (odd
    # numbers), 6 for the tract (hundreds), 1 for the block group (from 1 on), 3 for the block.
    state_of = np.zeros(len(counties), dtype=np.int64)
    below = (
        *(("county", state_of, 5, 1, 3), ("tract", county_of, 11, 100, 200)),
        *(("block_group", tract_of, 12, 1, 2), ("block", group_of, 15, 0, 1)),
    )
    areas = nested_codes("state", np.array([STATE_CODES[number]]), 2, *below)
    people = int(nation.people[number])
    return State(areas, county_of, tract_of, group_of, inhabited, people, number), rng


def limited_families(rng: Generator, pull: Float64, children: int, most: int) -> Int64:
    """Return the parent of each child as `families_by` does, in families of at most ``most``."""
    sizes = np.bincount(families_by(rng, pull, children))
    while (over := int(np.maximum(sizes - most, 0).sum())) > 0:
        free = np.where(sizes < most, pull, 0.0)
        sizes = np.minimum(sizes, most) + rng.multinomial(over, free / free.sum())
    return np.repeat(np.arange(len(pull)), sizes)


RACES = ["white", "black", "aian", "asian", "nhpi", "other"]
CENRACE = ["+".join(few) for n in range(1, 7) for few in combinations(RACES, n)]
"""The 63 sets of one race or more, the six of one race first."""

GROUPS = [*RACES, "two or more", "hispanic"]
"""Race of those who are not Hispanic, and Hispanic whatever the race."""

AGES = ["minor", "adult"]
HISPANIC = ["no", "yes"]
ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True)
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
INSTITUTIONAL = ["correctional", "juvenile", "nursing", "other_institutional"]

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


@dataclass(frozen=True, slots=True)
class Residents:
    """How many people live in each kind of quarters of each block; only where there is any.

    Attributes:
        block: int64 (rows), ascending: its number in the state.
        kind: int64 (rows), ascending in a block: its place in `KINDS`.
        facilities: int64 (rows): how many there are, or housing units.
        people: int64 (rows): at least one a facility of group quarters; homes may be empty.
    """

    block: Int64
    kind: Int64
    facilities: Int64
    people: Int64

    def frame(self, blocks: pl.Series) -> pl.DataFrame:
        """Return the public list of facilities."""
        return pl.DataFrame(
            [
                blocks[self.block],
                pl.Series("hhgq", KINDS)[self.kind],
                pl.Series("facilities", self.facilities),
                pl.Series("people_at_least", np.where(self.kind > 0, self.facilities, 0)),
            ]
        )


def draw_residents(rng: Generator, state: State) -> Residents:
    """Return who lives in which kind of quarters: group quarters first, then homes."""
    inhabited = np.flatnonzero(state.inhabited)
    with_homes = state.inhabited.copy()
    parts = [_in_quarters(rng, number, inhabited, with_homes, state) for number in range(1, 8)]
    in_homes = state.people - sum(int(part[3].sum()) for part in parts)
    parts.append(_in_homes(rng, state, np.flatnonzero(with_homes), in_homes))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[1], columns[0]))
    return Residents(*(column[order] for column in columns))


Rows = tuple[Int64, Int64, Int64, Int64]


def _in_quarters(
    rng: Generator, number: int, inhabited: Int64, with_homes: np.ndarray, state: State
) -> Rows:
    """Return the blocks of one kind of group quarters; strike out those that have no homes."""
    kind = QUARTERS[KINDS[number]]
    count = max(1, rng.poisson(kind.blocks * state.people / 1e6))
    block = np.sort(rng.choice(inhabited, min(count, len(inhabited) // 10), replace=False))
    with_homes[block[rng.random(len(block)) < kind.alone]] = False
    facilities = 1 + rng.poisson(kind.facilities - 1, len(block))
    people = facilities + rng.poisson(facilities * kind.people * rng.lognormal(0, 0.8, len(block)))
    return block, np.full(len(block), number), facilities, people.astype(np.int64)


def _in_homes(rng: Generator, state: State, block: Int64, people: int) -> Rows:
    """Return housing units and who lives in them; some blocks have empty homes alone."""
    group = state.group_of[block]
    pull = rng.lognormal(sigma=0.95, size=len(block))
    wanted = rng.lognormal(sigma=0.35, size=len(state.tract_of))  # of whole block groups
    share = pull * (wanted / np.bincount(group, pull, len(wanted)).clip(1e-9))[group]
    count = 1 + rng.multinomial(people - len(block), share / share.sum())
    homes = 1 + rng.binomial(count - 1, 0.38) + rng.poisson(0.05 * count)
    empty = np.flatnonzero(~state.inhabited & (rng.random(len(state.inhabited)) < 0.12))
    none = np.zeros(len(empty), dtype=np.int64)
    vacant = 1 + rng.poisson(1.0, len(empty))
    block, count = np.concatenate([block, empty]), np.concatenate([count, none])
    return block, np.zeros_like(block), np.concatenate([homes, vacant]), count


Cells = tuple[Int64, Int64, Int64, Int64, Int64]
"""Rows of `Residents`, places in `AGES`, `HISPANIC` and `CENRACE`, and how many people."""


def draw_people(rng: Generator, state: State, residents: Residents) -> Iterator[Cells]:
    """Yield the cells in which somebody lives, in order, some rows of the residents at a time."""
    shares = _shares(rng, state)
    minors = np.array([0.0, *(kind.minors for kind in QUARTERS.values())])
    inhabited = np.flatnonzero(residents.people)
    for first in range(0, len(inhabited), ROWS_AT_ONCE):
        rows = inhabited[first : first + ROWS_AT_ONCE]
        kind = residents.kind[rows]
        young = np.where(kind == 0, rng.beta(8, 28, len(rows)), minors[kind])
        tract = state.tract_of[state.group_of[residents.block[rows]]]
        groups = shares[tract] * rng.lognormal(sigma=0.5 * UNEVEN, size=(len(rows), len(GROUPS)))
        groups /= groups.sum(axis=1, keepdims=True)
        cells = np.concatenate([groups * young[:, None], groups * (1 - young)[:, None]], axis=1)
        people = rng.multinomial(residents.people[rows], cells)
        yield _by_race(rng, rows, people.reshape(len(rows) * len(AGES), len(GROUPS)))


def _shares(rng: Generator, state: State) -> Float64:
    """Return shares of the groups: float64 (tracts, groups), around those of state and county."""
    counties = int(state.county_of[-1]) + 1
    of_state = rng.lognormal(sigma=0.4 * UNEVEN, size=(1, len(GROUPS)))
    of_county = rng.lognormal(sigma=0.6 * UNEVEN, size=(counties, len(GROUPS)))
    of_tract = rng.lognormal(sigma=0.9 * UNEVEN, size=(len(state.county_of), len(GROUPS)))
    return BASE * of_state * of_county[state.county_of] * of_tract


def _by_race(rng: Generator, rows: Int64, people: Int64) -> Cells:
    """Return the cells of people by age and group: int64 (rows × ages, groups).

    One race: the group says it. Several races, or Hispanic: drawn from the same shares everywhere.
    """
    row, race = np.nonzero(people[:, : len(RACES)])
    parts = [(row, np.zeros_like(row), race, people[row, race])]
    for group, first, shares in (("two or more", len(RACES), MIXED), ("hispanic", 0, OF_HISPANICS)):
        total = people[:, GROUPS.index(group)]
        some = np.flatnonzero(total)
        drawn = rng.multinomial(total[some], shares / shares.sum())
        row, race = np.nonzero(drawn)
        is_hispanic = np.full(len(row), int(group == "hispanic"))
        parts.append((some[row], is_hispanic, race + first, drawn[row, race]))
    line, hispanic, race, count = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.argsort((line * 2 + hispanic) * len(CENRACE) + race)
    line = line[order]
    return rows[line // 2], line % 2, hispanic[order], race[order], count[order]
