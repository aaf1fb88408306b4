"""The quartiles that a page carries of places, and shows to readers without scripts."""

import re

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.release.page import cuboids
from tests.release.drawn_page import read, table
from tests.release.made_pages import blocks_of, facts_of, numbers, page_of, unfolded, written
from tests.release.median_pages import (
    HIGH,
    LEVELS,
    incomes,
    numeric,
    people,
    places,
    quartiles,
    released,
    words,
)

pytestmark = pytest.mark.xdist_group("medians")  # the releases are made once

KINDS = ["cube", "chain", "income first", "three axes", "below 0"]


@pytest.fixture(scope="module")
def medians(tmp_path_factory):
    return released(tmp_path_factory.mktemp("medians"))


def places_of(made):
    """The carried cuboids in which incomes are summed over."""
    return [levels for levels in made.plan.levels if not levels[numeric(made.tree)]]


def carried(made, levels):
    """By rank the values and, of each level of confidence, the ends that the page carries."""
    block = blocks_of(made.text)[f"quartiles-{'-'.join(map(str, levels))}"]
    parts = [[unfolded(n) for n in numbers(part)] for part in block]
    step = 10.0 ** -facts_of(made.text)["digits"]
    for rank in range(3):
        value, *ends = np.array(parts[7 * rank : 7 * rank + 7]) * step
        yield value, [(value - ends[k], value + ends[k + 1]) for k in (0, 2, 4)]


@pytest.mark.parametrize("kind", KINDS)
def test_quartiles_are_those_of_the_release_at_each_level_of_confidence(medians, kind):
    made, cells = medians[kind], 0
    assert facts_of(made.text)["numeric"] == numeric(made.tree)
    for levels in places_of(made):
        given = list(carried(made, levels))
        for k, level in enumerate(LEVELS):
            for (value, ends), told in zip(given, quartiles(made, levels, level), strict=True):
                assert np.array_equal(value, told["value"].to_numpy().round())
                assert np.array_equal(ends[k][0], told["low"])  # edges are whole
                assert np.array_equal(ends[k][1], told["high"])
                cells += len(told)
    assert cells > 9 * 16


def test_ends_between_steps_are_rounded_outwards(tmp_path):
    """Of bins that are 2,666.67 wide."""
    tree = hr.Tree([places(), incomes(factors=(3, 10))])
    plan = hr.make_plan(tree, budget=hr.Rho("1/4"), workload=hr.Cube())
    made = written(tmp_path / "out", people(tree), plan=plan)
    told = quartiles(made, (1, 0))[1]
    ends = list(carried(made, (1, 0)))[1][1][1]
    assert np.array_equal(ends[0], np.floor(told["low"]))
    assert np.array_equal(ends[1], np.ceil(told["high"]))
    assert (ends[0] != told["low"].to_numpy()).any()
    assert (ends[1] != told["high"].to_numpy()).any()


@pytest.mark.parametrize("kind", ["cube", "income first", "below 0"])
def test_the_first_table_is_of_places_with_their_medians(medians, kind):
    made = medians[kind]
    levels = tuple(int(axis.name == "place") for axis in made.tree.axes)
    found, told = table(made.seen, "Counts by place county"), quartiles(made, levels)[1]
    assert found.column("Median of income, with its 95 % interval") == [
        f"{words(value)}{words(low)} to {words(high)}"
        for value, low, high in told.select("value", "low", "high").rows()
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_answer_is_the_count_and_the_quartiles_of_all(medians, kind):
    made = medians[kind]
    (answer,) = made.seen.all("div", id="answer")
    assert f"{made.release.content.total:,} records" in answer.text
    terms = [re.sub(r"\s+", " ", one.text) for one in answer.all("dl")[0].all("div")]
    lower, median, upper = (
        f"{words(row['value'])} {words(row['low'])} to {words(row['high'])}"
        for each in quartiles(made, (0,) * len(made.tree.axes))
        for row in each.to_dicts()
    )
    assert terms == [
        f"Median of income{median}",
        f"A quarter are below{lower}",
        f"A quarter are above{upper}",
        "Each with its 95 % interval",
    ]


@pytest.mark.parametrize("kind", ["cube", "chain"])
def test_the_distribution_of_all_is_in_the_page_in_figures(medians, kind):
    made = medians[kind]
    found, told = table(made.seen, "Records below a value of income"), made.release.cdf("income")
    assert found.column("Records") == [f"{count:,}" for count in told["count"]]
    assert found.column("Below") == [words(upper) for upper in told["upper"]]


def test_a_page_of_survivors_has_no_medians(tmp_path):
    tree = hr.Tree([places(), incomes()])
    plan = hr.make_plan(tree, budget=hr.Rho("1/4"), measure=hr.Survivors())
    made = written(tmp_path / "out", people(tree), plan=plan)
    assert "Median" not in made.seen.text
    assert not [name for name in blocks_of(made.text) if name.startswith("quartiles")]


def test_counts_are_carried_before_quartiles(medians, monkeypatch):
    """With room for the counts alone, and a little more."""
    made = medians["cube"]
    whole = set(blocks_of(made.text))
    blocks = re.findall(r'<script type="text/plain" id="([^"]+)">([^<]*)<', made.text)
    sizes = {name: len(text) for name, text in blocks}
    own = sum(size for name, size in sizes.items() if name.split("-")[0] in
              {"level", "cuboid", "intervals", "contradicted", "exact"})  # fmt: skip
    monkeypatch.setattr(cuboids, "MOST_CHARACTERS", own + sizes["quartiles-0-0"])
    left = whole - blocks_of(page_of(made)).keys()
    assert left == {"quartiles-1-0", "quartiles-2-0"}


def test_a_page_of_very_many_noisy_counts_does_without(medians, monkeypatch):
    made = medians["cube"]
    many = made.release.content.noisy_cells
    monkeypatch.setattr(cuboids, "MOST_NOISY_OF_A_PAGE", many)
    assert page_of(made) == made.text
    monkeypatch.setattr(cuboids, "MOST_NOISY_OF_A_PAGE", many - 1)
    left = page_of(made)
    assert not [name for name in blocks_of(left) if name.startswith("quartiles")]
    assert len(table(read(left), "Counts by place county").rows[0]) == 4


def test_in_french_a_median_is_written_as_numbers_are_there(tmp_path):
    tree = hr.Tree([places(), incomes()])
    plan = hr.make_plan(tree, budget=hr.Rho("1/4"), workload=hr.Cube())
    made = written(
        tmp_path / "out", people(tree), plan=plan.described(hr.Description(language="fr"))
    )
    value = quartiles(made, (1, 0))[1]["value"][0]
    assert f"{value:,.0f}".replace(",", "\u202f") in made.text
    assert "Médiane de income" in made.seen.text
    assert value < HIGH
