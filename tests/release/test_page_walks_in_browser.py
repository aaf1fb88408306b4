"""Three readers of a page: a director, a court and a data user, at a desk and on a phone.

After each step axe finds nothing. Names and codes of the areas are hostile, and none of them runs.
"""

import csv
import json
import re

import numpy as np
import polars as pl
import pytest

from hedgerow.plan.workload import Cube
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.neighbours import Replace
from hedgerow.tables.axis import Axis
from hedgerow.tables.description import Description
from hedgerow.tables.tree import Tree
from tests.browser import barriers
from tests.made import all_leaves, plain_plan
from tests.parts import CHROMIUM
from tests.release.drawn_page import between, unraised
from tests.release.in_browser import address, figure_of, ready
from tests.release.made_pages import written

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

WIDTHS = pytest.mark.parametrize("width", [1280, 390])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])
EVIL = "</script><img src=x onerror=document.title='evil'>"
CALLED = ["Ashby", "Brook", EVIL, "=cmd|'/C calc'!A0", "<b>Eaton</b>", "Ford & Sons"]
TITLE = "Where people live and where they work"


def areas():
    rows = [("N" if i < 3 else "S", f"{EVIL}{i}", name) for i, name in enumerate(CALLED)]
    return pl.DataFrame(rows, schema=["region", "town", "called"], orient="row")


def axis(name):
    levels = ["region", "town"]
    columns = [f"{name}_{level}" for level in levels]
    return Axis.from_frame(name, areas(), levels, columns=columns, names={"town": "called"})


def made(folder, tree, **options):
    said = Description(title=TITLE, unit="workers", publisher="Office of Counts", period="2025")
    budget = EpsilonDelta("1", "1e-8")
    plan = plain_plan(tree, budget=budget, neighbours=Replace(), **options).described(said)
    return written(folder, all_leaves(tree, 3 * np.arange(tree.leaves) ** 2), plan=plan, seed=5)


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    return made(tmp_path_factory.mktemp("walks") / "towns", Tree([axis("place")]))


@pytest.fixture(scope="module")
def flows(tmp_path_factory):
    tree = Tree([axis("home"), axis("work")])
    return made(tmp_path_factory.mktemp("walks") / "flows", tree, workload=Cube())


def is_whole(tab, width):
    """Nothing stands in anybody's way, nothing is wider than the window, and no name has run."""
    assert barriers(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.title() == TITLE


@WIDTHS
@SCHEMES
def test_a_director_reads_the_title_what_is_promised_and_one_town(opened, towns, width, scheme):
    tab = ready(opened(towns.path, width=width, color_scheme=scheme))
    assert tab.inner_text("h1") == TITLE
    assert "Office of Counts" in tab.inner_text("header")
    assert tab.inner_text(".by").split() == ["2025", "plan", towns.plan.hash[:8]]
    total = towns.release.level(depth=0)["count"][0]
    assert figure_of(tab) == f"{total:,}"
    assert tab.locator("#answer .interval").bounding_box()["y"] < 500
    is_whole(tab, width)
    told = tab.inner_text("#promise")
    assert "By guessing it would be 5\u00a0%" in told
    assert "whatever the table says of any one of the workers" in told
    tab.locator("#find").fill("brook")
    tab.locator("#found li", has_text="Brook").click()
    ready(tab, "Brook")
    (row,) = towns.release.level("town").filter(place_town=f"{EVIL}1").to_dicts()
    assert figure_of(tab) == f"{row['count']:,}"
    assert f"{between(row['low'], row['high'])} 95 % interval" in tab.inner_text("#answer")
    is_whole(tab, width)


@WIDTHS
def test_a_court_finds_the_guarantee_its_exact_figures_and_the_hash(opened, towns, width):
    tab = ready(opened(towns.path, width=width))
    release = towns.release
    promise = str(release.plan.promise)
    assert "whatever the table says of any one of the workers" in tab.inner_text("#promise")
    for each in ("exact", "cite", "made", "files"):
        tab.locator(f"#{each} summary").first.click()
    exact = " ".join(tab.inner_text("#exact").split())
    assert promise.split(". ", maxsplit=1)[1] in exact
    assert "whatever the table says of any one of the workers" in exact
    rows = (
        tab.locator("#exact table")
        .last.locator("tbody tr")
        .evaluate_all(
            "(all) => all.map((row) => [...row.cells].slice(0, 2)"
            ".map((one) => one.innerText.trim()))"
        )
    )
    assert len(rows) >= 3
    for delta, epsilon in rows:
        exact = release.plan.guarantee.epsilon(unraised(delta))
        assert exact <= float(epsilon) <= exact * (1 + 1e-4), "rounded up, never down"
    manifest = json.loads((towns.folder / "manifest.json").read_text(encoding="utf-8"))
    assert release.plan.hash in tab.inner_text("#cite")
    assert release.plan.hash in json.dumps(manifest)
    is_whole(tab, width)


def words_of_cell(row):
    return f"{row['count']:,}", between(row["low"], row["high"])


@WIDTHS
@SCHEMES
def test_a_data_user_finds_an_area_reads_a_cell_and_takes_it_away(opened, flows, width, scheme):
    tab = ready(opened(flows.path, width=width, color_scheme=scheme))
    is_whole(tab, width)
    tab.locator("#find").fill("img src")  # the name of one town, the code of all
    tab.wait_for_selector("#found:not([hidden]) li")
    assert any(each.startswith(EVIL) for each in tab.locator("#found b").all_inner_texts())
    is_whole(tab, width)
    tab.locator("#find").fill("")
    tab.goto(flows.path.as_uri() + address("", "", by=(2, 2)))
    tab.wait_for_function("() => document.querySelectorAll('.matrix .cell').length > 20")
    file = flows.release.cuboid(home="town", work="town")
    largest = file.sort("count").row(-1, named=True)
    cell = tab.locator(".matrix td:not(.margin) .cell").last
    cell.hover()
    cell.dispatch_event("click", {"detail": 1, "pointerType": "touch", "bubbles": True})
    for words in words_of_cell(largest):
        assert words in tab.inner_text(".reading")
    is_whole(tab, width)
    tab.locator("#explorer input[type=search]").fill("ford")
    with tab.expect_download() as got:
        tab.locator("button.save").click()
    with got.value.path().open(encoding="utf-8-sig", newline="") as saved:
        rows = list(csv.DictReader(saved))
    wanted = file.filter((pl.col("home_town") == f"{EVIL}5") | (pl.col("work_town") == f"{EVIL}5"))
    assert {(row["home town"], row["work town"], int(row["count"])) for row in rows} == set(
        wanted.select("home_town", "work_town", "count").iter_rows()
    )
    names = {row["work town (name)"] for row in rows} | {row["home town (name)"] for row in rows}
    assert names == {name if name[0] != "=" else f"'{name}" for name in CALLED}
    is_whole(tab, width)


@pytest.mark.parametrize("kind", ["towns", "flows"])
def test_a_page_is_printed_on_three_sheets_at_most(opened, request, kind):
    tab = ready(opened(request.getfixturevalue(kind).path, width=1280))
    sheets = re.findall(rb"/Type\s*/Page\b", tab.pdf(prefer_css_page_size=True))
    assert 1 <= len(sheets) <= 3


@WIDTHS
def test_a_screen_reader_hears_title_search_and_answer_before_all_else(opened, towns, width):
    """In the order of the document: what has the focus, and what is read, up to the first map."""
    tab = ready(opened(towns.path, width=width))
    order = tab.evaluate(
        """() => [...document.querySelectorAll("h1, #find, #answer h2, #answer .figure, .interval,"
            + " .near, #counts h2, .side, #sure h2, #promise h2, #methods h2")]
            .map((one) => one.id || one.closest("section, #answer, header").id || one.tagName)"""
    )
    assert order == [
        "H1", "find", "answer", "answer", "answer", "answer", "counts", "counts", "sure", "promise",
        "methods",
    ]  # fmt: skip
    assert tab.locator("#answer h2").evaluate("(one) => one.tabIndex") == -1
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.innerText") == "Skip to the answer"


def test_all_that_is_folded_stands_in_nobodys_way(opened, flows):
    tab = ready(opened(flows.path, width=390))
    tab.locator("details").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
    is_whole(tab, 390)
