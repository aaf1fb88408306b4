"""What a data user does with a page: find an area, narrow the rows, take them away as CSV."""

import csv

import numpy as np
import polars as pl
import pytest

from hedgerow.plan.workload import Cube
from hedgerow.privacy.budget import Rho
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from tests.made import all_leaves
from tests.parts import CHROMIUM
from tests.release.made_pages import written

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

TOWNS = ["Ålborg", "Nice", "Nice-sur-Mer", "=HYPERLINK(1)", "@home", 'A "quoted", town']
FORMULAS = {"=HYPERLINK(1)", "@home"}


def areas():
    rows = [("north" if i < 3 else "south", f"t{i}", town) for i, town in enumerate(TOWNS)]
    return pl.DataFrame(rows, schema=["region", "town", "called"], orient="row")


def axis(name):
    levels = ["region", "town"]
    columns = [f"{name}_{level}" for level in levels]
    return Axis.from_frame(name, areas(), levels, columns=columns, names={"town": "called"})


def made(folder, tree, **options):
    counts = all_leaves(tree, 40 + 300 * np.arange(tree.leaves))
    return written(folder, counts, budget=Rho(1), seed=1, **options)


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    return made(tmp_path_factory.mktemp("search") / "towns", Tree([axis("place")]))


@pytest.fixture(scope="module")
def flows(tmp_path_factory):
    tree = Tree([axis("home"), axis("work")])
    return made(tmp_path_factory.mktemp("search") / "flows", tree, workload=Cube())


def search(tab, words, first):
    """Type into the page's search, and wait for what it finds first."""
    tab.locator(".finder input").fill(words)
    tab.wait_for_function(
        "(words) => document.querySelector('.found button')?.innerText === words", arg=first
    )


@pytest.mark.parametrize("width", [1280, 390])
def test_an_area_is_found_by_its_name_without_accents_and_opens(opened, towns, width):
    tab = opened(towns.path, width=width)
    search(tab, "alborg", "Ålborg (t0)")
    tab.locator(".found button").first.click()
    tab.wait_for_function("() => location.hash.startsWith('#at-2.0.')")
    tab.wait_for_function("() => document.querySelector('h3').innerText === 'town Ålborg (t0)'")
    count = towns.release.level("town")["count"][0]
    assert tab.inner_text(".here strong") == f"{count:,}"
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_the_area_that_is_called_so_stands_before_others_that_begin_so(opened, towns):
    tab = opened(towns.path)
    search(tab, "NICE", "Nice (t1)")
    assert tab.locator(".found button").all_inner_texts() == ["Nice (t1)", "Nice-sur-Mer (t2)"]
    assert "2 places found" in tab.inner_text(".finder")
    search(tab, "t2", "Nice-sur-Mer (t2)")


def test_an_area_of_one_axis_of_a_cube_opens_over_everything_of_the_other(opened, flows):
    tab = opened(flows.path)
    search(tab, "nice", "Nice (t1)")
    tab.locator(".found button").nth(1).click()
    tab.wait_for_function(
        "() => document.querySelector('h3').innerText.startsWith('work town Nice')"
    )
    file = flows.release.cuboid(work="town")
    (count,) = file.filter(work_town="t1")["count"]
    assert tab.inner_text(".here strong") == f"{count:,}"


def downloaded(tab):
    with tab.expect_download() as got:
        tab.locator("button.save").click()
    with got.value.path().open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("width", [1280, 390])
def test_the_rows_with_some_words_are_shown_and_downloaded_as_the_files_have_them(
    opened, flows, width
):
    tab = opened(flows.path, "#at-0.0.2-0.0.2", width=width)
    tab.wait_for_selector("#explorer[data-ready]")
    tab.locator("#explorer input[type=search]").fill("nice-sur")
    rows = downloaded(tab)
    file = flows.release.cuboid(home="town", work="town")
    wanted = file.filter((pl.col("home_town") == "t2") | (pl.col("work_town") == "t2"))
    assert tab.locator("#explorer > div:last-child tbody tr").count() == len(wanted) == 11
    names = dict(areas().select("town", "called").iter_rows())
    known = {(row["home_town"], row["work_town"]): row for row in wanted.to_dicts()}
    assert {(row["home town"], row["work town"]) for row in rows} == set(known)
    for row in rows:
        of = known[row["home town"], row["work town"]]
        told = [int(row[name]) for name in ("count", "low_95", "high_95")]
        assert told == [of["count"], of["low"], of["high"]]
        reach = max(of["high"] - of["count"], of["count"] - of["low"]) / of["count"]
        word = "firm" if reach <= 0.1 else "rough" if reach <= 0.5 else "mostly noise"
        assert row["reliability"] == word
        for end in ("home", "work"):
            name = names[row[f"{end} town"]]
            assert row[f"{end} town (name)"] == (f"'{name}" if name in FORMULAS else name)


def test_the_head_names_what_is_counted_and_what_an_attacker_notices(opened, towns):
    lead = opened(towns.path).inner_text(".lead")
    total = towns.release.level(depth=0)["count"][0]
    assert lead.startswith(
        f"{total:,} records, counted with noise. Whoever tests whether one protected unit"
    )
