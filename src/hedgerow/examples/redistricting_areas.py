"""The geography of a synthetic redistricting file: states down to blocks, one state at a time."""

from dataclasses import dataclass

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
