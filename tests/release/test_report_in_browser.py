"""The page of a release in a real browser, without a network: it opens, zooms, and says so."""

import re

import numpy as np
import polars as pl
import pytest

from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.ranges import Ranges
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.plan.cuboids import All
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.neighbours import Replace
from hedgerow.release.page import cuboids as cuboids_module
from hedgerow.release.page.report import page
from hedgerow.release.release import read_release
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from tests.made import all_leaves
from tests.parts import CHROMIUM
from tests.release.contradictions import uneven
from tests.release.drawn_page import between
from tests.release.made_pages import written

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

EVIL = "</script><img src=x onerror=document.title='evil'>"


def made(folder, tree, values, **options):
    options = {"budget": Rho(2), "estimator": Chebyshev(), **options}
    return written(folder, all_leaves(tree, values), seed=1, **options).path


def areas(prefix, states=3, counties=4, tracts=5):
    """Areas of three levels; the code of each begins with that of its parent."""
    rows = [
        (f"{prefix}{s}", f"{prefix}{s}{c}", f"{prefix}{s}{c}{t}")
        for s in range(states) for c in range(counties) for t in range(tracts)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=["state", "county", "tract"], orient="row")


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    frame = areas(EVIL)
    tree = Tree([Axis.from_frame("geography", frame, frame.columns)])
    path = tmp_path_factory.mktemp("page") / "census"
    return made(path, tree, 1_000 + 97 * np.arange(len(frame)))


@pytest.fixture(scope="module")
def flows(tmp_path_factory):
    frame = areas("")
    axes = [
        Axis.from_frame(name, frame, frame.columns, columns=[f"{name}_{c}" for c in frame.columns])
        for name in ("origin", "destination")
    ]
    start, end = np.divmod(np.arange(3600), 60)
    values = 5_000 // (1 + np.abs(start - end))
    path = tmp_path_factory.mktemp("page") / "flows"
    tree = Tree(axes, ["destination", "origin"])
    return made(path, tree, values, neighbours=Replace())


@pytest.fixture(scope="module")
def incomes(tmp_path_factory):
    tree = Tree([coded_axis(Ranges.equal_width("income", 0, 1200, 240), [240])])
    path = tmp_path_factory.mktemp("page") / "incomes"
    return made(
        path, tree, 20 + np.arange(240), estimator=Euclidean(),
        neighbours=Replace(), measure=All(), budget=Epsilon(1), mechanism=DiscreteLaplace,
    )  # fmt: skip


def here(tab):
    return tab.locator("#explorer h3").inner_text()


def arrive(tab, place, depth):
    """Wait until a place is drawn, which is after it is asked for: its counts are unpacked first.

    Args:
        tab: with the page.
        place: what its heading begins with.
        depth: which its address must name.
    """
    tab.wait_for_function(
        "(words) => document.querySelector('#explorer h3')?.innerText.startsWith(words)", arg=place
    )
    areas = tab.evaluate("location.hash").removeprefix("#at-").split("-")
    assert sum(int(area.split(".")[0]) for area in areas) == depth


def level_of(path, depth):
    return read_release(path.with_suffix("")).level(depth=depth)


def test_a_click_opens_a_state_and_its_counties(opened, census):
    tab = opened(census)
    tab.locator("#explorer .tile").first.click()
    arrive(tab, "state", 1)
    largest = level_of(census, 1).sort("count")["state"][-1]
    assert here(tab) == f"state {largest}"
    inside = level_of(census, 2).filter(state=largest).sort("count", descending=True)
    rows = tab.locator("#explorer .scroll table tbody tr")
    told = [row.split("\t")[:3] for row in rows.all_inner_texts()]
    assert told == [
        [county, f"{count:,}", between(low, high)]
        for county, count, low, high in inside["county", "count", "low", "high"].iter_rows()
    ]
    assert tab.title() == "Counts by state, county and tract"  # no name of an area ran as a script


def test_the_keyboard_alone_goes_down_and_back(opened, census):
    tab = opened(census)
    tab.wait_for_selector(".tile")
    tab.locator(".tile[tabindex='0']").focus()
    tab.keyboard.press("ArrowRight")
    second = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    tab.keyboard.press("Enter")
    arrive(tab, "state", 1)
    tab.wait_for_function("document.activeElement.className.startsWith('tile')")
    assert here(tab).removeprefix("state ") in second
    tab.keyboard.press("Escape")
    arrive(tab, "Everything", 0)
    tab.wait_for_function("document.activeElement.className.startsWith('tile')")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == second


def test_breadcrumbs_and_the_back_button_lead_back(opened, census):
    tab = opened(census, "#at-2.5.3")
    tab.wait_for_selector(".crumbs button")
    assert here(tab) == f"county {EVIL}11"
    assert tab.locator(".tile b").first.inner_text() == "…4"
    assert f"\n{EVIL}114" in tab.locator("#explorer .scroll table").inner_text()
    tab.locator(".crumbs button").nth(1).click()
    arrive(tab, "state", 1)
    tab.locator(".crumbs button").first.click()
    arrive(tab, "Everything", 0)
    tab.go_back()
    arrive(tab, "state", 1)


def test_a_cell_of_the_matrix_opens_a_matrix(opened, flows):
    tab = opened(flows)
    tab.wait_for_selector(".matrix")
    cell = tab.locator(".matrix tbody tr").nth(0).locator("td").nth(1)
    first = level_of(flows, 2).filter(origin_state="0", destination_state="1")
    assert cell.inner_text() == f"{first['count'][0]:,}"
    cell.locator("button").click()
    arrive(tab, "origin", 2)
    assert here(tab) == "origin state 0 × destination state 1"
    below = level_of(flows, 4).filter(origin_state="0", destination_state="1")
    cells = tab.locator(".matrix .cell").all_inner_texts()
    assert len(cells) == len(below)
    assert sum(int(cell.replace(",", "")) for cell in cells) == first["count"][0]
    corner = tab.locator(".matrix tr").last.locator("td").last.inner_text()
    assert corner == f"{first['count'][0]:,}"


def test_escape_goes_up_as_far_as_a_picture_went_down(opened, census, flows):
    tab = opened(census, "#at-3.25.3")
    tab.wait_for_selector("#explorer[data-ready]")
    tab.locator("#explorer h3").focus()
    tab.keyboard.press("Escape")
    tab.wait_for_function("location.hash.startsWith('#at-2.5.')")
    tab = opened(flows, "#at-2.1.3-2.0.3")
    tab.wait_for_selector("#explorer[data-ready]")
    tab.locator("#explorer h3").focus()
    tab.keyboard.press("Escape")
    tab.wait_for_function("location.hash.startsWith('#at-1.0.2-1.0.2')")


def test_arrow_keys_walk_the_matrix_and_one_step_views_are_there(opened, flows):
    tab = opened(flows)
    tab.locator(".cell[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowDown"):
        tab.keyboard.press(key)
    label = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("1 → 0: ")
    assert "1 → 0" in tab.inner_text(".reading")
    tab.get_by_role("button", name="destination state", exact=True).click()
    tab.wait_for_selector(".tile")
    assert tab.locator(".tile").count() == 3
    assert tab.evaluate("document.activeElement.innerText") == "destination state"


def test_bars_of_many_ranges_are_sums(opened, incomes):
    tab = opened(incomes)
    tab.wait_for_selector(".bars")
    bars = tab.locator("button.bar")
    assert bars.count() == 80
    first = int(level_of(incomes, 1)["count"][:3].sum())
    assert f": {first:,} in 3 ranges" in bars.first.get_attribute("aria-label")


def test_rows_can_be_ordered_and_more_of_them_shown(opened, flows):
    tab = opened(flows, "#at-1.0.2-1.0.2")
    tab.wait_for_selector("select")
    rows = tab.locator("#explorer > div:last-child tbody tr")
    listed = len(level_of(flows, 4).filter(origin_state="0", destination_state="0"))
    assert rows.count() == min(25, listed) == listed
    tab.select_option("select", "code")
    assert rows.first.inner_text().startswith("00 → 00")


def test_a_page_of_some_levels_ends_where_the_files_begin(opened, census, tmp_path, monkeypatch):
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", 20)
    folder = census.with_suffix("")
    plan, path = read_release(folder).plan, tmp_path / "part.html"
    path.write_text(page(folder, plan, Chebyshev(), "1"), encoding="utf-8")
    tab = opened(path, "#at-2.3.2")
    tab.wait_for_selector(".crumbs")
    assert "The counts below are in counts/cuboid=3.parquet" in tab.inner_text("#explorer")


@pytest.mark.parametrize("name", ["census", "flows", "incomes"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(opened, request, name, scheme):
    tab = opened(request.getfixturevalue(name), width=360, color_scheme=scheme)
    tab.wait_for_selector("#explorer[data-ready]")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360
    small = tab.evaluate(
        "Math.min(...[...document.querySelectorAll('p, td, dd, li')]"
        ".map((one) => parseFloat(getComputedStyle(one).fontSize)))"
    )
    assert small >= 12


@pytest.mark.parametrize("name", ["census", "flows", "incomes"])
def test_without_scripts_tables_and_curves_are_there(opened, request, name):
    tab = opened(request.getfixturevalue(name), java_script_enabled=False)
    assert tab.locator("main table").count() >= 4
    assert tab.locator("figure svg polyline").count() >= 5
    assert tab.locator("#explorer tbody tr").count() > 1
    assert "With JavaScript" in tab.inner_text("#explore")


@pytest.mark.parametrize("name", ["census", "flows"])
def test_every_control_has_a_name_and_prints_away(opened, request, name):
    tab = opened(request.getfixturevalue(name))
    tab.wait_for_selector("#explorer[data-ready]")
    spoken = tab.evaluate(
        "[...document.querySelectorAll('button, select, a, [role=group]')]"
        ".map((one) => one.getAttribute('aria-label') || one.innerText)"
    )
    assert all(re.search(r"\w", words) for words in spoken)
    tab.emulate_media(media="print")
    assert not tab.locator("#explorer select").is_visible()
    assert tab.locator("#explorer table").first.is_visible()


def test_a_place_that_is_not_there_is_everything(opened, census):
    tab = opened(census, "#at-3.99999.3")
    tab.wait_for_selector("#explorer[data-ready]")
    assert here(tab) == "Everything"


@pytest.fixture(scope="module")
def contradictions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "towns"
    _, release = uneven()
    release.write(folder)
    path = folder.with_suffix(".html")
    path.write_text(page(folder, release.content.plan, release.content.estimator, "1"), "utf-8")
    return path


def test_counts_that_are_contradicted_are_marked_and_said_to_be(opened, contradictions):
    tab = opened(contradictions, "#at-1.0.2")
    tab.locator("#explorer[data-ready] .tile").first.wait_for()
    _, release = uneven()
    wanted = release.level("level2").head(3).sort("count", descending=True)
    tiles = tab.locator(".tile")
    assert tiles.count() == 3
    for i, row in enumerate(wanted.to_dicts()):
        tile, estimate = tiles.nth(i), f"{round(row['estimate']):,}"
        assert "doubt" in tile.get_attribute("class").split()
        assert tile.inner_text().startswith("≠")
        said = tile.get_attribute("aria-label")
        assert f"contradicted by its own noisy counts: unbiased estimate {estimate}" in said
        line = tab.locator("#explorer tbody tr").nth(i).inner_text()
        assert f"≠ contradicted; unbiased estimate {estimate}" in line
    assert (
        "≠ contradicted by its own noisy counts" in tab.locator(".tools:has(.key-box)").inner_text()
    )


def test_counts_that_nothing_contradicts_have_no_mark(opened, contradictions, census):
    tab = opened(contradictions)  # the regions
    tab.locator("#explorer[data-ready] .tile").first.wait_for()
    for one in (tab, opened(census)):
        one.locator("#explorer[data-ready] .tile").first.wait_for()
        assert one.locator("#explorer .doubt").count() == 0
        assert "≠" not in one.locator("#explorer").inner_text()


# What is drawn, against the files.


@pytest.fixture(scope="module")
def wages(tmp_path_factory):
    """Few enough ranges for a bar each."""
    tree = Tree([coded_axis(Ranges.equal_width("wage", 0, 400, 40), [4, 10])])
    path = tmp_path_factory.mktemp("page") / "wages"
    return made(
        path, tree, (np.arange(40) - 20) ** 2, estimator=Euclidean(),
        neighbours=Replace(), measure=All(), budget=Epsilon("1/2"), mechanism=DiscreteLaplace,
    )  # fmt: skip


def by_heading(tab):
    """The rows below the picture: for each the cells by their headings."""
    table = tab.locator("#explorer table").last
    return table.evaluate(
        """(table) => {
            const names = [...table.tHead.rows[0].cells].map((cell) => cell.innerText);
            return [...table.tBodies[0].rows].map((row) => Object.fromEntries(
                [...row.cells].map((cell, i) => [names[i], cell.querySelector("svg")
                    ? Object.fromEntries([...cell.querySelectorAll("line, circle")].flatMap((one) =>
                        ["x1", "x2", "cx"].filter((name) => one.hasAttribute(name))
                            .map((name) => [name, Number(one.getAttribute(name))])))
                    : cell.innerText])));
        }"""
    )


def three_digits(part):
    return pytest.approx(100 * part, rel=0.51e-2, abs=0.01)


@pytest.mark.parametrize(
    ("name", "where", "depth", "codes", "inside"),
    [
        ("census", "#at-0.0.1", 1, ["state"], None),
        ("census", "#at-1.1.2", 2, ["county"], ("state", EVIL + "1")),
        ("flows", "#at-0.0.1-0.0.1", 2, ["origin_state", "destination_state"], None),
        ("flows", "#at-0.0.0-0.0.1", 1, ["destination_state"], None),
        ("wages", "#at-0.0.1", 1, ["wage_bins_10"], None),
        ("wages", "#at-1.0.2", 2, ["wage_bin"], ("wage_bins_10", None)),
    ],
)
def test_every_row_below_a_picture_has_what_the_files_say_by_heading(
    opened, request, name, where, depth, codes, inside
):
    path = request.getfixturevalue(name)
    file = level_of(path, depth)
    if inside is not None:
        file = file.filter(pl.col(inside[0]) == (inside[1] or file[inside[0]][0]))
    tab = opened(path, where)
    tab.wait_for_selector("#explorer[data-ready]")
    rows = by_heading(tab)
    assert len(rows) == len(file) > 1
    whole, most = file["count"].sum(), max(file["high"].max(), file["count"].max())
    known = {
        " → ".join(re.sub(r"^\d+ (?=\[)", "", row[code]) for code in codes): row
        for row in file.iter_rows(named=True)
    }
    heading = next(iter(rows[0]))
    assert {row[heading] for row in rows} == set(known)
    for row in rows:
        count, low, high = (known[row[heading]][one] for one in ("count", "low", "high"))
        assert row["Count"].split("\n")[0] == f"{count:,}"
        exact = low == high == count
        assert row["95 % interval"] == ("exact" if exact else between(low, high))
        assert float(row["Part"].removesuffix(" %")) == three_digits(count / whole)
        for mark, value in (("x1", low), ("x2", high), ("cx", count)):
            place = 4 + 136 * np.log1p(value) / np.log1p(most)
            assert row["On a logarithmic scale"][mark] == pytest.approx(place, abs=0.06)


RELIABILITY = ["firm", "rough", "mostly noise"]


def sureness(row):
    """Its class by half the width of its interval over its count."""
    reach = max(row["high"] - row["count"], row["count"] - row["low"]) / row["count"]
    return 0 if reach <= 0.1 else 1 if reach <= 0.5 else 2


def test_the_tiles_of_a_map_have_the_size_the_label_and_the_class_of_their_count(opened, census):
    tab = opened(census, "#at-1.0.2")
    tab.wait_for_selector(".tile")
    file = level_of(census, 2).filter(state=EVIL + "0").sort("count", descending=True)
    tiles = tab.locator("#explorer .map .tile").evaluate_all(
        "(all) => all.map((one) => [parseFloat(one.style.width) * parseFloat(one.style.height)"
        " / 1e4, one.className, one.getAttribute('aria-label')])"
    )
    whole = file["count"].sum()
    for row, (area, kind, label) in zip(file.iter_rows(named=True), tiles, strict=True):
        assert area == pytest.approx(row["count"] / whole, rel=1e-3)
        assert kind == f"tile s{sureness(row)}"
        assert label.startswith(
            f"{row['county']}: {row['count']:,} (95 % interval {between(row['low'], row['high'])}, "
            f"{RELIABILITY[sureness(row)]}), "
        )


def test_the_bars_reach_to_the_counts_and_their_intervals(opened, wages):
    tab = opened(wages, "#at-1.1.2")
    tab.wait_for_selector(".bars")
    group = level_of(wages, 1).item(1, 0)
    file = level_of(wages, 2).filter(pl.col(level_of(wages, 2).columns[0]) == group)
    most = max(file["high"].max(), file["count"].max())
    bars = tab.locator("#explorer button.bar").evaluate_all(
        "(all) => all.map((one) => [one.querySelector('i').style.height,"
        " one.querySelector('s').style.bottom, one.querySelector('s').style.height,"
        " one.querySelector('i').className])"
    )
    for row, (height, bottom, reach, kind) in zip(file.iter_rows(named=True), bars, strict=True):
        shown = [float(one.removesuffix("%")) for one in (height, bottom, reach)]
        values = row["count"], row["low"], row["high"] - row["low"]
        assert shown == pytest.approx([100 * value / most for value in values], abs=0.01)
        assert kind == f"s{sureness(row)}"


def test_grouped_bars_are_the_sums_of_their_ranges(opened, incomes):
    tab = opened(incomes)
    tab.wait_for_selector(".bars")
    counts = level_of(incomes, 1)["count"].to_numpy()
    sums = counts.reshape(80, 3).sum(axis=1)
    heights = tab.locator("#explorer button.bar i").evaluate_all(
        "(all) => all.map((one) => parseFloat(one.style.height))"
    )
    assert heights == pytest.approx((100 * sums / sums.max()).tolist(), abs=0.01)


def test_every_cell_and_every_sum_of_a_matrix_is_that_of_the_files(opened, flows):
    tab = opened(flows, "#at-1.1.2-1.0.2")
    tab.wait_for_selector(".matrix")
    above = level_of(flows, 2).row(1, named=True)
    names = ["origin_state", "destination_state"]
    file = level_of(flows, 4).filter(**{name: above[name] for name in names})
    rows = tab.locator("#explorer .matrix table").evaluate(
        "(table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText))"
    )
    assert rows[0][0].split() == ["origin", "county", "↓", "destination", "county", "→"]
    columns, cells = rows[0][1:], {}
    for name, *values in rows[1:]:
        for column, value in zip(columns, values, strict=True):
            cells[name, column] = int(value.replace(",", ""))
    known = {
        (row["origin_county"], row["destination_county"]): row["count"]
        for row in file.iter_rows(named=True)
    }
    starts, ends = ({pair[k] for pair in known} for k in (0, 1))
    assert {name for name, _ in cells} == {*starts, "all"}
    assert set(columns) == {*ends, "all"}
    for start in starts:
        for end in ends:
            assert cells[start, end] == known.get((start, end), 0)
        assert cells[start, "all"] == sum(n for pair, n in known.items() if pair[0] == start)
    for end in ends:
        assert cells["all", end] == sum(n for pair, n in known.items() if pair[1] == end)
    assert cells["all", "all"] == above["count"]
