"""The page of a release along a spine: what public facts leave, and what labels are made of."""

from itertools import product

import polars as pl
import pytest

from hedgerow.pages.catalogue import catalogue
from hedgerow.release.page.words import _few
from tests.release.drawn_page import table
from tests.release.made_pages import facts_of
from tests.release.shown_pages import item
from tests.release.spine.made_files import BLOCKS, FACILITIES, RACES

pytestmark = pytest.mark.xdist_group("pages")

PLACES = ["county", "tract", "block"]
PEOPLE = [["hhgq"], ["votingage"], ["group"], ["hispanic", "race"]]


def possible():
    """Everything that somebody can be: one row a finest cell, by brute force."""
    above = {block: (county, tract, block) for county, tract, block in BLOCKS}
    rows = [
        (*above[block], kind, age, group, hispanic, race)
        for (block, kind, _), age, (hispanic, race, group) in product(
            FACILITIES, ("minor", "adult"), RACES
        )
        if (kind, age) != ("nursing", "minor")
    ]
    columns = [*PLACES, *(column for each in PEOPLE for column in each)]
    return pl.DataFrame(rows, schema=columns, orient="row")


def possible_at(levels):
    """How many cells of a cuboid somebody can be in."""
    columns = [*PLACES[: levels[0]], *(c for each in PEOPLE[: levels[1]] for c in each)]
    return possible().select(columns).n_unique() if columns else 1


def test_the_counts_that_are_called_possible_are_those_that_public_facts_leave(of_a_spine):
    made = of_a_spine
    found = table(made.seen, "Level by level").column("Possible counts under public facts, at most")
    expected = [possible_at(levels) for levels in made.plan.levels]
    assert expected[-1] == 104 < made.tree.leaves
    assert list(map(int, found)) == expected
    pairs = table(made.seen, "Expected error (RMSE) of every pair of levels")
    assert "under public facts, at most" in pairs.caption
    for i, row in enumerate(pairs.rows):
        for k, cell in enumerate(list(row.values())[1:]):
            many = cell.all("small")[0].text
            assert many.removesuffix("s") == f"{possible_at((i, k))} count"


def test_public_facts_are_said_to_restrict_no_promise(of_a_spine):
    made = of_a_spine
    said = item(made.seen, "What is public").text
    assert "zeros hhgq nursing × votingage minor: 4 of 24 attribute cells hold nobody" in said
    assert "14 rows by block × hhgq; 22 of 36 cells hold nobody; 3 lower bounds" in said
    assert "Together, 104 of 288 finest cells may hold records." in said
    assert "cost nothing, and do not restrict the promise" in said
    assert not made.plan.protection.restrictions
    assert "Only between tables" not in made.text
    assert str(made.folder) not in made.text
    assert "facilities.csv" not in made.text


def test_what_labels_of_a_product_list_is_said(of_a_spine):
    made = of_a_spine
    said = " ".join(one.text for one in made.seen.all("p"))
    words = "Labels of person list hhgq · votingage · group · hispanic · race"
    assert words in " ".join(said.split())
    place, person = facts_of(made.text)["axes"]
    assert "told" not in place
    every = ["", *(" · ".join(["hhgq", "votingage", *more])
                   for more in ([], ["group"], ["group", "hispanic", "race"]))]  # fmt: skip
    assert person["told"] == every
    assert facts_of(made.text)["ruled"] is True


def test_of_many_combinations_a_sentence_names_some():
    assert _few(catalogue(), ["a", "b"]) == "a and b"
    assert _few(catalogue(), [f"m{i}" for i in range(54)]).endswith(", m10, m11 and 42 more")
