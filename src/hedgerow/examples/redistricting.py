"""A synthetic redistricting file: blocks by quarters, voting age, Hispanic origin and race.

It has the schema of the 2020 census's P.L. 94-171, public lists of what every block has, and two
release files: geography × one axis of all attributes, and the production's marginals and shares.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl

from hedgerow.examples.files import free, size_of, write_release_file
from hedgerow.examples.production_shares import production_sections, rho_of
from hedgerow.examples.redistricting_nation import (
    AGES,
    CENRACE,
    GROUPS,
    HISPANIC,
    INSTITUTIONS,
    KINDS,
    RACES,
    RedistrictingSize,
    draw_geography,
    draw_people,
    draw_residents,
)
from hedgerow.export.released import write_parts

REDISTRICTING_SIZES = {
    "small": RedistrictingSize(1, 3, 24, 70, 2_100, 90_000),
    "state": RedistrictingSize(1, 5, 250, 820, 25_000, 1_097_379),  # Rhode Island, 2020
    "nation": RedistrictingSize(51, 3_143, 85_000, 240_000, 8_132_968, 331_449_281),
}
"""By the name that a command gives them."""

PRODUCTION = "production.toml"
LISTS = ["hhgq.csv", "votingage.csv", "race.csv", "hispanic.csv", "cenrace.csv"]
TABLES = ["areas.parquet", "facilities.parquet", "people.parquet"]

Progress = Callable[[float], object]
"""What is told the part of the work that is done."""


def write_redistricting(
    directory: Path, size: str = "state", progress: Progress = lambda _: None
) -> Path:
    """Return the path of ``release.toml``, written beside a synthetic redistricting file.

    Files: ``people.parquet`` (block, hhgq, votingage, hispanic, cenrace, count: one row a cell with
    people in it; confidential, were it real); ``areas.parquet`` (state … block: one row a block);
    ``facilities.parquet`` (block, hhgq, facilities, people_at_least: one row a kind of quarters
    that a block has; housing units of households); lists of attributes; ``production.toml``, which
    measures the marginals of the 2020 census with its shares. The people
    are in memory some blocks at a time.
    """
    chosen = size_of(REDISTRICTING_SIZES, size)
    free(directory, "release.toml", PRODUCTION, *LISTS, *TABLES)
    race = [  # a group is the race of those who are not Hispanic
        (hispanic, one, "hispanic" if hispanic == "yes" else one if one in RACES else GROUPS[6])
        for hispanic in HISPANIC
        for one in CENRACE
    ]
    lists = [
        pl.DataFrame({"hhgq": KINDS, "inst": INSTITUTIONS}),
        pl.DataFrame({"votingage": AGES}),
        pl.DataFrame(race, schema=["hispanic", "cenrace", "group"], orient="row"),
        pl.DataFrame({"hispanic": HISPANIC}),
        pl.DataFrame({"cenrace": CENRACE}),
    ]
    for name, frame in zip(LISTS, lists, strict=True):
        frame.write_csv(directory / name)
    # write the lists of blocks and of facilities and the people in them
    areas, facilities, people = (directory / name for name in TABLES)
    places, rng = draw_geography(chosen)
    places.areas.write_parquet(areas)
    residents = draw_residents(rng, places, chosen.people)
    kinds = pl.Series("hhgq", KINDS)[residents["kind"]]
    at_least = pl.when(pl.col("kind") > 0).then("facilities").otherwise(0)
    residents.select(
        places.areas["block"][residents["block"]],
        kinds,
        "facilities",
        people_at_least=at_least,
    ).write_parquet(facilities)

    def told() -> Iterator[pl.DataFrame]:
        done = 0
        for part in draw_people(rng, places, residents):
            yield part
            done += part["count"].sum()
            progress(done / chosen.people)

    write_parts(people, told())
    several = chosen.states > 1
    cube = _CUBE.format(rho=rho_of(several=several), shares=GEOGRAPHY_SHARES[several])
    of_2020 = production_sections(several=several)
    tables = _TABLE + _PERSON + _PUBLIC, _TABLE + _MARGINALS + _PUBLIC
    file, production = directory / "release.toml", directory / PRODUCTION
    write_release_file(file, "A redistricting file", tables[0], cube)
    title = "A redistricting file with the marginals and shares of 2020"
    write_release_file(production, title, tables[1], of_2020, output="out_production")
    return file


GEOGRAPHY_SHARES = {
    False: '["0.02", "0.1", "0.175", "0.33", "0.375"]',
    True: '["0.01", "0.02", "0.095", "0.175", "0.325", "0.375"]',
}
"""By whether there are several states; a single one is the total of geography."""

_TABLE = """\
[table]
source = "people.parquet"       # the confidential table: one row a cell with people in it
count  = "count"                # the column that holds the count; without it a row is one person

[[axis]]
name    = "geography"           # the spine: it is cut into jobs, the attributes stand beside it
levels  = ["state", "county", "tract", "block_group", "block"]   # from coarse to fine
areas   = "areas.parquet"       # the public list of all blocks, empty ones included
"""

_PERSON = """
[[axis]]
name      = "person"            # all attributes, as one tree
attribute = true
product   = ["hhgq", "votingage", "group", "detail"]   # the order of refinement
lists     = ["hhgq.csv", "votingage.csv", "race.csv"]  # public; group: a column of race.csv
"""

_MARGINALS = """
[[axis]]
name      = "hhgq"              # household, or a kind of group quarters; inst: kinds of kinds
levels    = ["inst", "hhgq"]
areas     = "hhgq.csv"
attribute = true

[[axis]]
name      = "votingage"
levels    = ["votingage"]
areas     = "votingage.csv"
attribute = true

[[axis]]
name      = "hispanic"
levels    = ["hispanic"]
areas     = "hispanic.csv"
attribute = true

[[axis]]
name      = "cenrace"           # 63 sets of one race or more
levels    = ["cenrace"]
areas     = "cenrace.csv"
attribute = true
"""

_PUBLIC = """
[[public]]                      # nobody of this kind, by rule
zeros = { hhgq = ["nursing"], votingage = ["minor"] }

[[public]]                      # kinds of quarters that a block has; one person in each, at least
source   = "facilities.parquet" # housing units, too, which may be empty
zeros    = "unlisted"
at_least = "people_at_least"
"""

_CUBE = """\
[workload]
cuboids = "cube"                # every level of geography × every level of person

[privacy]
neighbours    = "replace"       # protects what a person's record says; their number is public
contributions = 1
mechanism     = "discrete-gaussian"
rho           = "{rho}"   # of the 2020 census, for these levels

[allocation]
method = "shares"               # of every level, the total of everybody first; a cuboid's: product
[allocation.shares]
geography = {shares}
person    = ["0.31", "0.03", "0.18", "0.17", "0.31"]
"""
