"""A small release file along a spine: an axis of columns, rules, facilities, and a table."""

import numpy as np
import polars as pl

BLOCKS = [
    (f"C{county}", f"T{county}{tract}", f"B{county}{tract}{block}")
    for county in range(2)
    for tract in range(2)
    for block in range(3)
]
"""The last but one has nobody: nothing lists it."""
SPECIAL = [("B000", "nursing", 2), ("B011", "college", 3), ("B110", "nursing", 1)]
HOMES = [(block, "household", 0) for *_, block in BLOCKS if block != "B112"]
FACILITIES = [*HOMES, *SPECIAL]
RACES = [(yes, race, "hispanic" if yes == "yes" else race)
         for yes in ("no", "yes") for race in ("white", "black")]  # fmt: skip
SHARES = """[allocation]
method = "shares"
[allocation.shares]
geography = ["0.1", "0.2", "0.3", "0.4"]
person = ["0.4", "0.1", "0.2", "0.1", "0.2"]
"""
FILE = """[table]
source = "people.csv"
count = "people"

[[axis]]
name = "geography"
levels = ["county", "tract", "block"]
areas = "areas.csv"

[[axis]]
name = "person"
attribute = true
product = ["hhgq", "votingage", "group", "detail"]
lists = ["hhgq.csv", "votingage.csv", "race.csv"]

[[public]]
zeros = {{ hhgq = ["nursing"], votingage = ["minor"] }}

[[public]]
source = "facilities.csv"
zeros = "unlisted"
at_least = "people"

[workload]
cuboids = {cuboids}

[privacy]
{privacy}

{allocation}

{more}

[output]
directory = "out"
"""
PRIVACY = 'neighbours = "replace"\nrho = "2"'


def write_files(
    folder, *, cuboids='"cube"', privacy=PRIVACY, allocation=SHARES, more="", people=8, seed=1
):
    """Write a release file and all that it names; return its place."""
    folder.mkdir(exist_ok=True)
    lists = {
        "areas": (["county", "tract", "block"], BLOCKS),
        "hhgq": (["hhgq"], [("household",), ("nursing",), ("college",)]),
        "votingage": (["votingage"], [("minor",), ("adult",)]),
        "race": (["hispanic", "race", "group"], RACES),
        "facilities": (["block", "hhgq", "people"], FACILITIES),
        "people": (
            ["block", "hhgq", "votingage", "hispanic", "race", "people"],
            list(people_of(np.random.default_rng(seed), people)),
        ),
    }
    for name, (columns, rows) in lists.items():
        frame = pl.DataFrame(rows, schema=columns, orient="row")
        frame.write_csv(folder / f"{name}.csv")
    text = FILE.format(cuboids=cuboids, privacy=privacy, allocation=allocation, more=more)
    (folder / "release.toml").write_text(text)
    return folder / "release.toml"


def people_of(rng, mean):
    """The rows of a table that keeps what public files say."""
    for block, kind, least in FACILITIES:
        for age in ("minor", "adult"):
            if (kind, age) == ("nursing", "minor"):
                continue
            for hispanic, race, _ in RACES:
                count = int(rng.poisson(mean * rng.random() ** 2)) + least
                if count:
                    yield block, kind, age, hispanic, race, count
