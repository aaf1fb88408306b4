"""Medians of places in a real browser: in the rows, on the map, and in the answer."""

import csv

import pytest

from tests.browser import barriers
from tests.parts import CHROMIUM
from tests.release.in_browser import ROWS, address, ready, title
from tests.release.median_pages import LEVELS, quartiles, released, words

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

MEDIAN = "Median of income"


@pytest.fixture(scope="module")
def medians(tmp_path_factory):
    return released(tmp_path_factory.mktemp("medians_in_browser"))


def written_out(row):
    return f"{words(row['value'])} {words(row['low'])} to {words(row['high'])}"


def rows_of(tab, heading=MEDIAN):
    """By town what stands in a column of the rows."""
    each = tab.locator(ROWS).evaluate_all(
        "(all, heading) => all.map(({ cells }) => [cells[0], "
        "[...cells].find((one) => one.dataset.of === heading)].map((one) => one.innerText.trim()))",
        heading,
    )
    return {name: " ".join(told.split()) for name, told in each}


def by_town(frame):
    return {row["place_town"]: written_out(row) for row in frame.to_dicts()}


def choose(tab, level):
    tab.locator(f"button[data-sure='{level}']").click()
    tab.wait_for_selector(f"button[data-sure='{level}'][aria-pressed='true']")


def terms(tab):
    """The quartiles in the answer, without their names."""
    told = tab.locator("#answer .spread dd").all_inner_texts()
    return [" ".join(one.split()) for one in told]


@pytest.mark.parametrize("width", [1280, 390])
def test_rows_have_medians_whose_intervals_follow_the_chosen_level(opened, medians, width):
    made = medians["income first"]
    tab = ready(opened(made.path, address("", "", by=(0, 2)), width=width))
    tab.get_by_role("button", name="Show the other 4 rows").click()
    tab.wait_for_function("() => document.querySelectorAll('.listing tbody tr').length === 16")
    for level in (95, 90, 99):
        choose(tab, level)
        assert rows_of(tab) == by_town(quartiles(made, (0, 2), level)[1])
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(
    ("kind", "at", "levels", "row"),
    [
        ("cube", ("", ""), (0, 0), {}),
        ("cube", ("23", ""), (2, 0), {"place_town": "23"}),
        ("chain", ("23", ""), (2, 0), {"place_town": "23"}),
        ("three axes", ("1", "f", ""), (1, 1, 0), {"place_county": "1", "sex": "f"}),
    ],
)
def test_the_answer_has_the_quartiles_of_the_place_and_its_ranges(
    opened, medians, kind, at, levels, row
):
    made = medians[kind]
    tab = ready(opened(made.path, address(*at)))
    own = [each.filter(**row).row(0, named=True) for each in quartiles(made, levels)]
    told = [written_out(own[rank]) for rank in (1, 0, 2)]
    assert terms(tab) == [*told, "Each with its 95 % interval"]
    assert tab.locator("#answer .spread .bar").count() == 16
    assert barriers(tab) == []


def test_a_bar_of_the_answer_is_read_below_it_and_opens(opened, medians):
    made = medians["cube"]
    tab = ready(opened(made.path, address("23", "")), "23")
    cells = made.release.level("place.town × income.bin").filter(place_town="23")
    row = cells.sort("count", descending=True).row(0, named=True)
    code = row["income_bin"].partition(" ")[2]
    bar = tab.locator(f".spread button[aria-label*='{code}']")
    bar.hover()
    line = tab.inner_text("#answer .readout")
    assert code in line
    assert f"{row['count']:,} (95 % interval" in line
    assert code not in tab.inner_text("#explorer .readout")
    bar.click()
    tab.wait_for_function("(code) => document.querySelector('#answer h2').innerText.endsWith(code)",
                          arg=code)  # fmt: skip
    assert tab.locator(".spread").count() == 0  # a range has no quartiles


def test_ranges_that_no_table_has_for_a_place_are_sums_without_intervals(opened, medians):
    """Along a chain whose counties have counts and whose towns alone have ranges."""
    tab = ready(opened(medians["chain"].path, address("2", "")), "2")
    assert tab.locator(".spread .bar s").count() == 0
    bars = tab.locator(".spread button.bar")
    assert "the sum of released counts" in bars.first.get_attribute("aria-label")
    tab = ready(opened(medians["chain"].path, address("23", "")), "23")
    assert tab.locator(".spread .bar s").count() == tab.locator(".spread button.bar").count() > 5


def test_ranges_stand_as_bars_in_their_order_beside_places_too(opened, medians):
    tab = ready(opened(medians["cube"].path, address("2", "", by=(1, 2))), "2")
    assert tab.locator("#explorer .bars").count() == 1
    codes = [row.split("\t")[0] for row in tab.locator(ROWS).all_inner_texts()]
    begins = [float(code[1:].split(",")[0].split()[0]) for code in codes]
    assert begins == sorted(begins)


def test_a_page_opens_with_places_wherever_the_column_stands(opened, medians):
    tab = ready(opened(medians["income first"].path))
    assert [row.split("\t")[0] for row in sorted(tab.locator(ROWS).all_inner_texts())] == [*"0123"]


def test_a_map_is_coloured_by_medians_and_its_address_says_so(opened, medians):
    made = medians["cube"]
    tab = ready(opened(made.path, address("", "", by=(2, 0))))
    tab.locator("button[data-axis='map-median']").click()
    tab.wait_for_selector("button[data-axis='map-median'][aria-pressed='true']")
    assert "map=median" in tab.url
    towns = {row["place_town"]: row for row in quartiles(made, (2, 0))[1].to_dicts()}
    fills = dict(tab.locator(".area").evaluate_all(
        "all => all.map((one) => [one.ariaLabel.slice(0, 2), one.getAttribute('fill')])"
    ))  # fmt: skip
    assert fills.keys() == towns.keys()
    reach = {
        town: max(row["high"] - row["value"], row["value"] - row["low"]) / row["value"]
        for town, row in towns.items()
    }
    assert {town for town, fill in fills.items() if fill.startswith("url")} == {
        town for town, part in reach.items() if part > 0.5
    }
    firm = [towns[town]["value"] for town, part in reach.items() if part <= 0.1]
    assert len(firm) > 2
    assert tab.inner_text(".atlas-key p").startswith(MEDIAN)
    again = ready(opened(made.path, tab.url[tab.url.index("#") :]))
    assert again.locator("button[data-axis='map-median'][aria-pressed='true']").count() == 1
    assert barriers(again) == []


def test_what_can_be_below_0_colours_no_map(opened, medians):
    """A part of a value means nothing there; the rows have medians still."""
    made = medians["below 0"]
    tab = ready(opened(made.path, address("", "", by=(2, 0))))
    told = quartiles(made, (2, 0))[1]
    assert (told["low"] < 0).all()
    assert tab.locator("button[data-axis='map-median']").count() == 0
    tab.get_by_role("button", name="Show the other 4 rows").click()
    assert rows_of(tab) == by_town(told)


@pytest.mark.parametrize("coloured", ["count", "median"])
def test_a_download_has_medians_as_numbers(opened, medians, coloured):
    made = medians["cube"]
    where = address("", "", by=(2, 0)) + ("&map=median" if coloured == "median" else "")
    tab = ready(opened(made.path, where))
    for level in LEVELS:
        choose(tab, level)
        with tab.expect_download() as got:
            tab.locator("button.save").click()
        with got.value.path().open(encoding="utf-8-sig", newline="") as file:
            saved = {row["place town"]: [float(row[name]) for name in
                     ("median", f"median_low_{level}", f"median_high_{level}")]
                     for row in csv.DictReader(file)}  # fmt: skip
        told = quartiles(made, (2, 0), level)[1].to_dicts()
        assert saved == {
            row["place_town"]: [round(row["value"]), row["low"], row["high"]] for row in told
        }


def test_a_number_is_no_range_where_places_have_codes_of_digits(opened, medians):
    tab = ready(opened(medians["cube"].path))
    tab.locator("#find").fill("23")
    tab.wait_for_selector("#found li")
    tab.keyboard.press("Enter")
    ready(tab, "23")
    assert title(tab) == "23"
