"""The page of cuboids that somebody names: what it carries and says, against the files."""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.distribution.bins import coded_axis
from hedgerow.release.page import words
from hedgerow.text import visible
from tests.made import all_leaves, plain_plan
from tests.release.drawn_page import read, table, tables
from tests.release.made_pages import NAMED, counts_of, page_of, written
from tests.release.shown_pages import close, variance

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

PAIRS = "Expected error (RMSE) of every pair of levels"
MARGIN = ["all", "95 % interval", "unbiased estimate"]


# The first table, for readers without scripts.


def test_a_pair_without_margins_of_its_own_has_sums_without_intervals(named):
    made = named["tables"]
    found = table(made.seen, "Counts by home region (rows) and work region (columns)")
    corner = next(iter(found.rows[0]))
    frame = counts_of(made, (1, 1, 0))
    columns = sorted(set(frame["work_region"]))
    assert list(found.rows[0]) == [corner, "all", *columns]
    rows = {row[corner].text: [cell.text for cell in list(row.values())[1:]] for row in found.rows}
    total = counts_of(made, (0, 0, 0))["count"][0]

    def summed(*by):
        some = dict(zip(("home_region", "work_region"), by, strict=True))
        kept = frame.filter(*(pl.col(k) == v for k, v in some.items() if v is not None))
        return f"{kept['count'].sum():,}"

    assert rows.pop("all") == [f"{total:,}", *(summed(None, c) for c in columns)]
    assert rows == {
        r: [summed(r, None), *(summed(r, c) for c in columns)]
        for r in sorted(set(frame["home_region"]))
    }


def test_a_pair_with_one_margin_has_the_interval_of_that_one_alone(named):
    made = named["names of named"]
    found = next(one for caption, one in tables(made.seen).items() if caption.startswith("Counts"))
    corner = next(iter(found.rows[0]))
    assert list(found.rows[0])[1:4] == MARGIN
    by_row = {row[corner].text: row for row in found.rows}
    known = counts_of(made, (1, 0)).to_dicts()
    assert len(known) == 2
    for row in known:
        told = [by_row[visible(row["<i>home_region"])][each].text for each in MARGIN]
        assert told[1] == f"{row['low']:,} to {row['high']:,}"
    sums = [cell.text for name, cell in by_row["95 % interval"].items() if name != corner]
    assert set(sums[3:]) == {"–"}


def test_a_table_of_three_axes_alone_is_listed_with_all_its_codes(named):
    made = named["alone"]
    found = table(made.seen, "Counts by home region × work region × age region")
    told = [[cell.text for cell in row.values()] for row in found.rows]
    wanted = [
        [f"{r['home_region']} → {r['work_region']} → {r['age_region']}", f"{r['count']:,}",
         f"{r['low']:,} to {r['high']:,}", f"{round(r['estimate']):,}"]
        for r in counts_of(made, (1, 1, 1)).to_dicts()
    ]  # fmt: skip
    assert told == wanted


# The levels.


def test_pairs_that_were_not_released_are_sums_or_blank(named):
    found = table(named["beside"].seen, PAIRS)
    shown = [[cell.text for cell in list(row.values())[1:]] for row in found.rows]
    plan = named["beside"].plan
    for i, row in enumerate(shown):
        for j, cell in enumerate(row):
            assert (cell == "a sum") == ((i, j) not in plan.by_levels)
    margins = table(named["margins"].seen, PAIRS)
    blank = [[cell.text for cell in list(row.values())[1:]] for row in margins.rows]
    assert [row[1:] for row in blank[1:]] == [["", "", ""], ["", "", ""]]
    assert [row[0] for row in blank][1] == "a sum"
    assert blank[0][1:3] == ["a sum", "a sum"]


def test_the_error_of_a_margin_alone_is_that_of_noise_less_what_the_public_total_tells(named):
    """Of n noisy counts with a known sum: v (1 - 1/n)."""
    made = named["margins"]
    row = list(table(made.seen, PAIRS).rows[2].values())[1]
    noise = variance(made.plan.by_levels[2, 0].mechanism)
    assert close(row.inside[0], math.sqrt(noise * (1 - 1 / 12)), 4)


@pytest.mark.parametrize("kind", ["tables", "alone", "one"])
def test_there_is_no_matrix_of_levels_but_for_two_axes(named, kind):
    assert not [caption for caption in tables(named[kind].seen) if caption.startswith(PAIRS)]


# Words.


def test_a_page_says_which_tables_were_released_and_that_they_agree(named):
    told = named["tables"].seen.text
    assert (
        "2 tables were released: home region × work region × age region and home ward × "
        "work region. They agree on everything that they have in common: what they tell of "
        "home region × work region is the same. No joint table was made: counts that need levels "
        "of several tables at once, such as home ward × work region × age region, are not in "
        "this release."
    ) in " ".join(told.split())
    assert "adds up to all coarser ones, so the tables agree." in told
    assert "What its table does not list was released as 0; true counts there may be" in told
    assert "what they tell of the total is the same" in " ".join(named["margins"].seen.text.split())
    title = named["margins"].seen.all("title")[0].text
    assert title == "Counts by home district and work ward"


@pytest.mark.parametrize("kind", ["beside", "below", "alone", "one"])
def test_one_table_is_not_called_several(named, kind):
    text = named[kind].seen.text
    assert "tables were released" not in text
    assert "No joint table" not in text


def test_levels_that_were_not_released_are_not_said_to_be_counted(named):
    assert "by home (region), work (region) and age (region)." in named["alone"].seen.text
    plan = plain_plan(
        named["alone"].tree, budget=hr.Rho(1), workload=hr.Cuboids(["home.region × work.region"])
    )
    assert "<bdi>age" not in words.released(plan, 5)
    assert "by home (region, district and ward), work (region)" in named["tables"].seen.text


def test_a_page_says_which_cuboids_were_measured_at_which_cells_and_how_sure_errors_are(named):
    def made(kind):
        return " ".join(named[kind].seen.all("details", id="made")[0].text.split())

    assert (
        "was added to all possible counts of home district and work ward, at 2 of 3 "
        "combinations of levels (cuboids)."
    ) in made("margins")
    assert (
        "to all possible counts of home region × work district and home district × work region "
        "(and of home district × work district, those of which every coarser count was released "
        "as positive), at 3 of 5 combinations of levels"
    ) in made("below")
    follow = "Not measured, as they follow from others: {}."
    assert follow.format("home region × work region") in made("tables")
    assert follow.format("work region and work district") in made("beside")
    for kind in NAMED:
        assert named[kind].plan.design.ways in made(kind)


@pytest.mark.parametrize("level", ["bins_4", "bin"])
def test_a_level_of_a_numeric_axis_alone_has_a_page_without_a_distribution(tmp_path, level):
    tree = hr.Tree([coded_axis(hr.Ranges.equal_width("age", 0, 80, 8), [2, 4])])
    counts = all_leaves(tree, np.arange(100, 108))
    workload = hr.Cuboids([level])
    made = written(tmp_path / "one", counts, budget=hr.Rho(1), workload=workload)
    assert made.seen.all("title")[0].text == "Distribution of age"
    assert not made.seen.all("section", id="distribution")
    found = table(made.seen, f"Counts by {level.replace('_', ' ')}")
    assert [row["Count"].text for row in found.rows] == [
        f"{count:,}" for count in counts_of(made, (tree.axes[0].level_number(level),))["count"]
    ]


def test_upper_bounds_are_not_called_exact(named, monkeypatch):
    made = named["beside"]
    bounded = replace(made.plan.design.solver, is_exact=False)
    monkeypatch.setitem(vars(made.plan.design), "solver", bounded)
    bounds = read(page_of(made)).text
    assert "standard errors are upper bounds" in bounds
    assert "their errors are exact." not in bounds
    assert "their errors are exact." in made.seen.text
