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
from tests.release.in_browser import ROWS, address, as_matrix, figure_of, ready, title
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


def level_of(path, depth):
    return read_release(path.with_suffix("")).level(depth=depth)


def told(tab):
    """The rows beside the picture: name, count, interval."""
    return [row.split("\t")[:3] for row in tab.locator(ROWS).all_inner_texts()]


def test_a_click_opens_a_state_and_its_counties(opened, census):
    tab = ready(opened(census))
    tab.locator("#explorer .tile").first.click()
    largest = level_of(census, 1).sort("count")["state"][-1]
    ready(tab, largest)
    assert tab.evaluate("location.hash") == address(largest)
    inside = level_of(census, 2).filter(state=largest).sort("count", descending=True)
    assert told(tab) == [
        [county, f"{count:,}", between(low, high)]
        for county, count, low, high in inside["county", "count", "low", "high"].iter_rows()
    ]
    assert tab.title() == "Counts by state, county and tract"  # no name of an area ran as a script


def test_a_finest_area_is_marked_among_those_beside_it(opened, census):
    """The one selection: in the address, in the answer, in the picture and among the rows."""
    tab = ready(opened(census, address(f"{EVIL}11")), f"{EVIL}11")
    tab.locator(ROWS).nth(1).locator("button").click()
    tract = level_of(census, 3).filter(county=f"{EVIL}11").sort("count").row(-2, named=True)
    ready(tab, tract["tract"])
    assert figure_of(tab) == f"{tract['count']:,}"
    assert f"{between(tract['low'], tract['high'])} 95 % interval" in tab.inner_text("#answer")
    for kind in ("tr", ".tile"):
        marked = tab.locator(f"#explorer {kind}[aria-current]")
        assert marked.count() == 1
        assert tract["tract"][-3:] in (marked.get_attribute("aria-label") or marked.inner_text())
    again = ready(opened(census, tab.evaluate("location.hash")), tract["tract"])
    assert told(again) == told(tab)


def test_the_neighbours_of_an_answer_are_those_of_the_tree(opened, census):
    tab = ready(opened(census, address(f"{EVIL}11")), f"{EVIL}11")
    counties, tracts = (level_of(census, depth) for depth in (2, 3))
    near = tab.locator(".near dd").evaluate_all("(all) => all.map((one) => one.innerText)")
    above = level_of(census, 1).filter(state=f"{EVIL}1").row(0, named=True)
    beside = counties.filter(pl.col("state") == f"{EVIL}1", pl.col("county") != f"{EVIL}11")
    below = tracts.filter(county=f"{EVIL}11")
    wanted = [[(above["state"], above["count"])]] + [
        one.sort("count", descending=True).select(column, "count").head(3).rows()
        for column, one in (("county", beside), ("tract", below))
    ]
    assert [each.split("\n") for each in near] == [
        [words for name, count in each for words in (name, f"{count:,}")] for each in wanted
    ]
    tab.locator(".near button").last.click()
    ready(tab, wanted[2][-1][0])


def test_the_keyboard_alone_goes_down_and_back(opened, census):
    tab = ready(opened(census))
    tab.locator(".tile[tabindex='0']").focus()
    tab.keyboard.press("ArrowRight")
    second = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    tab.keyboard.press("Enter")
    tab.wait_for_function("() => location.hash.length > 1")
    ready(tab, EVIL)
    tab.wait_for_function("() => document.activeElement.className.startsWith('tile')")
    assert title(tab) in second
    tab.keyboard.press("Escape")
    ready(tab, "Total")
    tab.wait_for_function("() => document.activeElement.className.startsWith('tile')")
    assert tab.evaluate("document.activeElement.getAttribute('aria-label')") == second


def test_what_is_above_and_the_back_button_lead_back(opened, census):
    tab = ready(opened(census, address(f"{EVIL}11")), f"{EVIL}11")
    assert tab.locator(".tile b").first.inner_text() == "…4"
    assert tab.locator(ROWS).first.inner_text().startswith(f"{EVIL}114")
    tab.locator(".near button").first.click()
    ready(tab, f"{EVIL}1")
    tab.wait_for_function("(code) => location.hash === code", arg=address(f"{EVIL}1"))
    tab.locator(".near button").first.click()
    ready(tab, "Total")
    tab.go_back()
    ready(tab, f"{EVIL}1")


def test_a_cell_of_the_matrix_opens_a_matrix(opened, flows):
    tab = as_matrix(ready(opened(flows)))
    cell = tab.locator(".matrix tbody tr").nth(0).locator("td").nth(1)
    first = level_of(flows, 2).filter(origin_state="0", destination_state="1")
    assert cell.inner_text() == f"{first['count'][0]:,}"
    cell.locator("button").click()
    ready(tab, "0 → 1")
    assert figure_of(tab) == f"{first['count'][0]:,}"
    below = level_of(flows, 4).filter(origin_state="0", destination_state="1")
    cells = tab.locator(".matrix td:not(.margin) .cell").all_inner_texts()
    assert len(cells) == len(below)
    assert sum(int(cell.replace(",", "")) for cell in cells) == first["count"][0]
    corner = tab.locator(".matrix tr").last.locator("td").last.inner_text()
    assert corner == f"{first['count'][0]:,}"


def test_escape_goes_up_a_level(opened, census, flows):
    for path, codes, up in ((census, [f"{EVIL}110"], f"{EVIL}11"), (flows, ["00", "10"], "0 → 10")):
        tab = ready(opened(path, address(*codes)))
        tab.locator("#answer h2").focus()
        tab.keyboard.press("Escape")
        tab.wait_for_function(
            "(up) => document.querySelector('#answer h2').innerText === up", arg=up
        )


def test_arrow_keys_walk_the_matrix(opened, flows):
    tab = as_matrix(ready(opened(flows)))
    tab.locator("td:not(.margin) .cell[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "ArrowDown"):
        tab.keyboard.press(key)
    label = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("1 → 0: ")
    assert "1 → 0" in tab.inner_text(".reading")


def test_two_tabs_fix_the_one_end_of_a_flow_or_the_other(opened, flows):
    """The pair that is asked for stays marked among those from its origin, and to its end."""
    tab = ready(opened(flows, address("0", "1")), "0 → 1")
    pairs = level_of(flows, 2)
    for end, other, fixed, sought in (("origin", "destination", "0", "1"),
                                      ("destination", "origin", "1", "0")):  # fmt: skip
        tab.get_by_role("button", name=f"{end}: {fixed}", exact=True).click()
        tab.wait_for_selector(f"button[aria-pressed='true']:has-text('{end}: {fixed}')")
        own = pairs.filter(pl.col(f"{end}_state") == fixed).sort("count", descending=True)
        assert [row[:2] for row in told(tab)] == [
            [code, f"{count:,}"] for code, count in own[f"{other}_state", "count"].iter_rows()
        ]
        assert tab.locator("tr[aria-current] th").inner_text() == sought


def test_what_has_no_count_of_its_own_is_a_sum_and_said_to_be(opened, flows):
    """Destinations are refined first, so no count was released of one origin over everything."""
    tab = ready(opened(flows, address("1", "")), "1")
    (total,) = level_of(flows, 2).filter(origin_state="1").select(pl.col("count").sum()).row(0)
    assert figure_of(tab) == f"{total:,}"
    assert "the sum of released counts: no table has it as such" in tab.inner_text("#answer")
    own = level_of(flows, 2).filter(origin_state="1")
    assert len(told(tab)) == len(own)


def test_bars_of_many_ranges_are_sums(opened, incomes):
    tab = opened(incomes)
    tab.wait_for_selector(".bars")
    bars = tab.locator("button.bar")
    assert bars.count() == 80
    first = int(level_of(incomes, 1)["count"][:3].sum())
    assert f": {first:,} in 3 ranges" in bars.first.get_attribute("aria-label")


def test_rows_can_be_ordered_and_more_of_them_shown(opened, flows):
    tab = ready(opened(flows, address("0", "0", by=(2, 2))), "0 → 0")
    rows = tab.locator(ROWS)
    listed = len(level_of(flows, 4).filter(origin_state="0", destination_state="0"))
    assert rows.count() == 12 < listed
    tab.locator(".listing button.more").click()
    assert rows.count() == listed
    tab.select_option(".listing select", "code")
    assert rows.first.inner_text().startswith("00 → 00")


def test_a_page_of_some_levels_ends_where_the_files_begin(opened, census, tmp_path, monkeypatch):
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", 20)
    folder = census.with_suffix("")
    plan, path = read_release(folder).plan, tmp_path / "part.html"
    path.write_text(page(folder, plan, Chebyshev(), "1"), encoding="utf-8")
    tab = ready(opened(path, address(f"{EVIL}03")), f"{EVIL}03")
    assert "The counts below are in counts/cuboid=3.parquet" in tab.inner_text("#answer")


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
    assert re.search(r"\d", figure_of(tab))
    assert "95 % interval" in tab.inner_text("#answer") or "exact" in tab.inner_text("#answer")
    assert "With JavaScript" in tab.inner_text("#counts")


@pytest.mark.parametrize("name", ["census", "flows"])
def test_every_control_has_a_name_and_prints_away(opened, request, name):
    tab = opened(request.getfixturevalue(name))
    tab.wait_for_selector("#explorer[data-ready]")
    spoken = tab.evaluate(
        "[...document.querySelectorAll('button, select, a, summary, [role=group]')]"
        ".map((one) => one.getAttribute('aria-label') || one.innerText)"
    )
    assert all(re.search(r"\w", words) for words in spoken)
    tab.emulate_media(media="print")
    assert not tab.locator("#explorer select").is_visible()
    assert not tab.locator("#find").is_visible()
    assert tab.locator("#explorer table").first.is_visible()


def test_a_place_that_is_not_there_is_everything(opened, census):
    for where in (address("nowhere"), "#place=%", "#place=x&in=y", "#place"):
        assert title(ready(opened(census, where))) == "Total"


@pytest.fixture(scope="module")
def contradictions(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "towns"
    _, release = uneven()
    release.write(folder)
    path = folder.with_suffix(".html")
    path.write_text(page(folder, release.content.plan, release.content.estimator, "1"), "utf-8")
    return path


def test_counts_that_are_contradicted_are_marked_and_said_to_be(opened, contradictions):
    _, release = uneven()
    region = release.level("level2").row(0, named=True)[release.plan.tree.axes[0].columns[0]]
    tab = ready(opened(contradictions, address(region)))
    tab.locator("#explorer .tile").first.wait_for()
    wanted = release.level("level2").head(3).sort("count", descending=True)
    tiles = tab.locator(".tile")
    assert tiles.count() == 3
    for i, row in enumerate(wanted.to_dicts()):
        tile, estimate = tiles.nth(i), f"{round(row['estimate']):,}"
        assert "doubt" in tile.get_attribute("class").split()
        assert tile.inner_text().startswith("≠")
        said = tile.get_attribute("aria-label")
        assert f"contradicted by its own noisy counts: unbiased estimate {estimate}" in said
        line = tab.locator(ROWS).nth(i).inner_text()
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
    """The rows beside the picture: for each the cells by their headings."""
    return tab.locator(".listing table").evaluate(
        """(table) => {
            const names = [...table.tHead.rows[0].cells].map((cell) => cell.innerText);
            return [...table.tBodies[0].rows].map((row) => Object.fromEntries(
                [...row.cells].map((cell, i) => [names[i], cell.innerText.trim()])));
        }"""
    )


@pytest.mark.parametrize(
    ("name", "where", "depth", "codes", "inside"),
    [
        ("census", "", 1, ["state"], None),
        ("census", address(f"{EVIL}1"), 2, ["county"], ("state", EVIL + "1")),
        ("flows", address("", "", by=(1, 1)), 2, ["origin_state", "destination_state"], None),
        ("flows", "", 1, ["destination_state"], None),
        ("wages", "", 1, ["wage_bins_10"], None),
        ("wages", address("[0 or less, 100)"), 2, ["wage_bin"], ("wage_bins_10", None)),
    ],
)
def test_every_row_beside_a_picture_has_what_the_files_say_by_heading(
    opened, request, name, where, depth, codes, inside
):
    path = request.getfixturevalue(name)
    file = level_of(path, depth)
    if inside is not None:
        file = file.filter(pl.col(inside[0]) == (inside[1] or file[inside[0]][0]))
    rows = by_heading(ready(opened(path, where)))
    assert len(rows) == len(file) > 1
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
        assert row["Reliability"] == RELIABILITY[sureness(known[row[heading]])]
        shares = [words for name, words in row.items() if name.startswith("Share of ")]
        assert all(" to " in (words or " to ") for words in shares), "none without an interval"


RELIABILITY = ["firm", "rough", "mostly noise"]


def sureness(row):
    """Its class by half the width of its interval over its count."""
    reach = max(row["high"] - row["count"], row["count"] - row["low"]) / row["count"]
    return 0 if reach <= 0.1 else 1 if reach <= 0.5 else 2


def test_the_tiles_of_a_map_have_the_size_the_label_and_the_class_of_their_count(opened, census):
    tab = ready(opened(census, address(f"{EVIL}0")), f"{EVIL}0")
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
            f"{RELIABILITY[sureness(row)]})"
        )


def test_a_number_finds_the_narrowest_range_that_holds_it(opened, wages):
    tab = ready(opened(wages))
    for words, found in {"1,05": "[100, 110)", "-7": "[0 or less, 10)"}.items():
        tab.locator("#find").fill(words)
        tab.wait_for_function(
            "(words) => document.querySelector('#found:not([hidden]) b')?.innerText === words",
            arg=found,
        )
    tab.keyboard.press("Enter")
    ready(tab, "[0 or less, 10)")


def test_the_bars_reach_to_the_counts_and_their_intervals(opened, wages):
    group = level_of(wages, 1).item(1, 0)
    tab = ready(opened(wages, address(re.sub(r"^\d+ ", "", group))), "[")
    tab.wait_for_selector(".bars")
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
    tab = as_matrix(ready(opened(flows, address("1", "0")), "1 → 0"))
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
