"""A synthetic redistricting file: blocks by quarters, voting age, Hispanic origin and race.

It has the schema of the 2020 census's P.L. 94-171, public lists of what every block has, and two
release files: geography × one axis of all attributes, and the production's marginals and shares.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import polars as pl

from hedgerow.examples.files import free, size_of, write_release_file
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

RHO = Fraction(293764, 114921)
"""(542/339)², what the production of 2020 spent in all: on the levels of geography, and within each
on queries.

Its shares are those of the Bureau's code (``uscensusbureau/DAS_2020_Redistricting_Production_Code``
on GitHub) and its certificate. Neighbours differ in one replaced record; σ² = 1/(ρ × both shares).
"""

LEVEL_SHARES = {
    "total": 104, "state": 1440, "county": 447, "tract": 687, "block_group": 1256, "block": 165,
}  # fmt: skip
"""4,099ths of ρ; the total of the levels is the United States."""

OF_LEVELS = 4099

QUERY_SHARES = {
    "total": (0, 3773, 3126, 1567, 1705, 5),
    "cenrace": (52, 6, 10, 8, 3, 9),
    "hispanic": (26, 6, 10, 5, 3, 5),
    "votingage": (26, 6, 10, 5, 3, 5),
    "inst": (26, 6, 10, 5, 3, 5),
    "hhgq": (26, 6, 10, 5, 3, 5),
    "hispanic × cenrace": (130, 12, 28, 1933, 1055, 21),
    "votingage × cenrace": (130, 12, 28, 20, 9, 21),
    "votingage × hispanic": (26, 6, 10, 5, 3, 5),
    "votingage × hispanic × cenrace": (442, 34, 101, 67, 24, 71),
    "hhgq × votingage × hispanic × cenrace": (3213, 230, 754, 482, 1288, 3945),
}
"""By level, in parts of `OF_QUERIES`. The total of the United States is public."""

OF_QUERIES = (4097, 4097, 4097, 4102, 4099, 4097)

AXIS_OF = {"inst": "hhgq"}
"""The axis of a level that is not called like it."""


def queries_of(level: str) -> dict[str, Fraction]:
    """Return the shares of the queries within a level, which sum to 1."""
    place = list(LEVEL_SHARES).index(level)
    return {
        query: Fraction(parts[place], OF_QUERIES[place])
        for query, parts in QUERY_SHARES.items()
        if parts[place]
    }


def parts_of(*, several: bool) -> dict[tuple[str, str], Fraction]:
    """Return the part of ρ of each level and query that is measured.

    A single state has no level above it, and its total is public as the nation's is.
    """
    return {
        (level, query): Fraction(parts, OF_LEVELS) * share
        for level, parts in LEVEL_SHARES.items()
        for query, share in queries_of(level).items()
        if several or (level != "total" and (level, query) != ("state", "total"))
    }


def noise_parameters() -> dict[tuple[str, str], Fraction]:
    """Return σ² of each level and query that the census measured, the United States included.

    A record that is replaced changes two counts of a query by one, so σ² = 1 / (ρ · level share ·
    query share) costs ρ · level share · query share.
    """
    return {place: 1 / (RHO * part) for place, part in parts_of(several=True).items()}


def rho_of(*, several: bool) -> Fraction:
    """Return what the levels of one state cost, or those of the nation."""
    return RHO * (1 - (0 if several else Fraction(LEVEL_SHARES["total"], OF_LEVELS)))


def cuboid_of(level: str, query: str) -> str:
    """Return the name of the cuboid of a query at a level: every level with its axis."""
    words = [] if level == "total" else [f"geography.{level}"]
    if query != "total":
        words += [f"{AXIS_OF.get(word, word)}.{word}" for word in query.split(" × ")]
    return " × ".join(words)


def production_sections(*, several: bool) -> str:
    """Return the sections of a release file on the workload, the budget and the shares."""
    parts = parts_of(several=several)
    levels = dict.fromkeys(level for level, _ in parts)
    shares = ", ".join(f'{level} = "{LEVEL_SHARES[level]}/{OF_LEVELS}"' for level in levels)
    left_out = "" if several else " less the parts of the United States and of the state's total"
    return _SECTIONS.format(
        cuboids="".join(f'    "{cuboid_of(*place)}",\n' for place in parts),
        rho=RHO * sum(parts.values()),
        left_out=left_out,
        shares=shares,
        tables="".join(
            f"\n[allocation.queries.{level}]\n"
            + "".join(
                f'"{query}" = "{QUERY_SHARES[query][place]}/{OF_QUERIES[place]}"\n'
                for query in queries_of(level)
            )
            for place, level in enumerate(LEVEL_SHARES)
            if level in levels
        ),
    )


_SECTIONS = """\
[workload]
cuboids = [                     # level × query; a level of geography is a geolevel
{cuboids}]

[privacy]
neighbours    = "replace"       # protects what a person's record says; their number is public
contributions = 1
mechanism     = "discrete-gaussian"
# 293764/114921 = (542/339)^2{left_out}:
rho           = "{rho}"

[allocation]                    # source: uscensusbureau/DAS_2020_Redistricting_Production_Code
method = "shares"               # of rho: by level, and within a level by query
levels = {{ {shares} }}
{tables}"""


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
    measures the marginals of the 2020 census with its shares. People are in memory some blocks at a
    time.
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
            done += int(part["count"].sum())
            progress(done / chosen.people)

    write_parts(people, told())
    several = chosen.states > 1
    cube = _CUBE.format(rho=rho_of(several=several), shares=GEOGRAPHY_SHARES[several])
    of_2020 = production_sections(several=several)
    tables = _TABLE + _PERSON + _PUBLIC, _TABLE + _MARGINALS + _PUBLIC
    file = directory / "release.toml"
    production = directory / PRODUCTION
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
