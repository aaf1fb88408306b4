"""The map of a page in a real browser: regions open into towns, flows turn, names stay words."""

import hashlib
from importlib.resources import files

import geopandas
import numpy as np
import polars as pl
import pytest
import shapely

from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan.make import make_plan
from hedgerow.privacy.budget import Rho
from hedgerow.release.execution import in_memory
from hedgerow.release.page.report import page
from hedgerow.release.release import read_release
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from tests.browser import PATIENCE, needs_chromium

pytestmark = [needs_chromium, pytest.mark.xdist_group("browser")]

EVIL = "</script><img src=x onerror=document.title='evil'>"
SIDE = 4


def axis(name, folder, key="town"):
    towns = [f"{x}{y}" for x in range(SIDE) for y in range(SIDE)]
    boxes = [shapely.box(x, y, x + 1, y + 1) for x in range(SIDE) for y in range(SIDE)]
    path = folder / "towns.geojson"
    geopandas.GeoDataFrame({key: towns}, geometry=boxes, crs="EPSG:3035").to_file(path)
    frame = pl.DataFrame(
        {"county": [t[0] for t in towns], "town": towns, "name": [f"{EVIL}{t}" for t in towns]}
    )
    columns = [f"{name}_county", f"{name}_town"]
    made = Axis.from_frame(name, frame, ["county", "town"], columns=columns, names="name")
    return made.with_shapes(path, key)


def written(folder, tree, codes, values):
    plan = make_plan(tree, budget=Rho(2))
    counts = Counts.from_leaves(tree, codes, values)
    in_memory(counts, plan, estimator=Chebyshev(), bits=seeded_bits(1)).write(folder)
    path = folder.with_suffix(".html")
    path.write_text(page(folder, plan, Chebyshev(), "1"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    leaves = np.arange(SIDE * SIDE, dtype=np.int32)
    tree = Tree([axis("place", folder)])
    return written(folder / "out", tree, (leaves,), 1_000 + 97 * leaves.astype(np.int64))


@pytest.fixture(scope="module")
def flows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flows")
    start, end = np.divmod(np.arange(SIDE**4, dtype=np.int32), SIDE**2)
    values = 50_000 // (1 + np.abs(start - end)).astype(np.int64)
    tree = Tree([axis("home", folder), axis("work", folder)], ["home", "work"])
    return written(folder / "out", tree, (start, end), values)


def told(tab):
    return tab.locator(".atlas-read").inner_text()


def ready(tab):
    tab.wait_for_selector("#atlas[data-ready]", timeout=PATIENCE)


def test_a_click_on_a_county_shows_its_towns(opened, census):
    tab = opened(census)
    ready(tab)
    assert tab.locator(".area").count() == SIDE
    tab.locator('.area[data-node="2"]').click()
    tab.wait_for_function(f"document.querySelectorAll('.beside').length === {SIDE - 1}")
    towns = read_release(census.with_suffix("")).level("town").filter(place_county="2")
    rows = tab.locator(".atlas-table tbody tr").all_inner_texts()
    best = towns.sort("count", descending=True)
    assert [row.split("\t")[1] for row in rows] == [f"{count:,}" for count in best["count"]]
    low, high = best["low"][0], best["high"][0]
    tab.mouse.move(0, 0)
    tab.wait_for_function(
        "(count) => document.querySelector('.atlas-read').innerText.includes(count)",
        arg=f"{best['count'][0]:,}",
    )
    assert f"{low:,} to {high:,}" in told(tab)
    assert "firm" in told(tab)
    assert EVIL in told(tab)
    assert "evil" not in tab.title()


def test_the_keyboard_alone_goes_in_and_out(opened, census):
    tab = opened(census)
    ready(tab)
    tab.locator('.area[tabindex="0"]').focus()
    tab.keyboard.press("ArrowRight")
    node = tab.evaluate("document.activeElement.dataset.node")
    assert node == "1"
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".beside")
    tab.wait_for_function("document.activeElement.classList.contains('area')")
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".beside", state="detached")


def test_flows_are_those_from_the_area_chosen_and_turn(opened, flows):
    tab = opened(flows)
    ready(tab)
    pairs = read_release(flows.with_suffix("")).level("home.county × work.county")
    tab.locator(".atlas-tools select").select_option("3")
    tab.wait_for_function("document.querySelector('.atlas-heading').innerText.endsWith('from 3')")
    for side, other in (("home", "work"), ("work", "home")):
        own = pairs.filter(pl.col(f"{side}_county") == "3").sort("count", descending=True)
        rows = tab.locator(".atlas-table tbody tr").all_inner_texts()
        expected = [[a, f"{n:,}"] for a, n in own[f"{other}_county", "count"].iter_rows()]
        assert [row.split("\t")[:2] for row in rows] == expected
        assert tab.locator(".flow").count() == SIDE - 1
        if side == "home":
            tab.get_by_role("button", name="to", exact=True).click()
            tab.wait_for_function(
                "document.querySelector('.atlas-heading').innerText.endsWith('to 3')"
            )


def test_the_bundled_script_is_the_one_that_was_looked_at():
    text = files("hedgerow.pages.vendor").joinpath("cartography.js").read_bytes()
    assert hashlib.sha256(text).hexdigest() == CARTOGRAPHY
    assert len(text) < 20_000


CARTOGRAPHY = "07ecc3332ace370f8a2322d7feb06ae5912c808a3dce46e89e089940a73f41f4"


def test_the_map_follows_the_level_of_intervals_that_is_chosen(opened, census):
    tab = opened(census)
    tab.wait_for_selector(".atlas-table tbody tr")
    tab.wait_for_selector("#explorer[data-ready]")
    release = read_release(census.with_suffix(""))
    for level in (99, 90):
        tab.locator(f"button[data-sure='{level}']").click()
        tab.wait_for_function(
            "(level) => document.querySelector('.atlas-table thead').innerText"
            ".includes(`${level} % interval`)",
            arg=level,
        )
        file = release.level("county", confidence=Confidence(level / 100))
        wanted = {f"{low:,} to {high:,}" for low, high in file["low", "high"].iter_rows()}
        told = tab.locator(".atlas-table tbody tr td:nth-child(3)").all_inner_texts()
        assert {" ".join(one.split()[:3]) for one in told} == wanted
