"""The map of a page in a real browser: regions open into towns, flows turn, names stay words."""

import hashlib
import re
from importlib.resources import files
from itertools import pairwise

import geopandas
import numpy as np
import polars as pl
import pytest
import shapely
from playwright.sync_api import expect

from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.cuboids import All
from hedgerow.plan.workload import Cube
from hedgerow.privacy.budget import Rho
from hedgerow.release.release import read_release
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.rules import Division
from hedgerow.tables.description import Description
from hedgerow.tables.tree import Tree
from tests.browser import PATIENCE, barriers
from tests.made import all_leaves, plain_plan
from tests.parts import CHROMIUM
from tests.release.in_browser import ROWS, address, figure_of, ready
from tests.release.made_pages import written

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

EVIL = "</script><img src=x onerror=document.title='evil'>"
SIDE = 4
TITLE = "People of a square country"


def axis(name, folder, key="town", crs="EPSG:3035"):
    towns = [f"{x}{y}" for x in range(SIDE) for y in range(SIDE)]
    boxes = [shapely.box(x, y, x + 1, y + 1) for x in range(SIDE) for y in range(SIDE)]
    path = folder / "towns.geojson"
    geopandas.GeoDataFrame({key: towns}, geometry=boxes, crs=crs).to_file(path)
    frame = pl.DataFrame(
        {"county": [t[0] for t in towns], "town": towns, "name": [f"{EVIL}{t}" for t in towns]}
    )
    columns = [f"{name}_county", f"{name}_town"]
    made = Axis.from_frame(name, frame, ["county", "town"], columns=columns, names="name")
    return made.with_shapes(path, key)


def made(folder, tree, values, *, budget=2, estimator=None, **options):
    said = Description(title=TITLE, unit="people")
    plan = plain_plan(tree, budget=Rho(budget), **options).described(said)
    estimator = estimator or Chebyshev()
    return written(folder, all_leaves(tree, values), plan=plan, estimator=estimator, seed=1).path


@pytest.fixture(scope="module")
def census(tmp_path_factory):
    folder = tmp_path_factory.mktemp("map")
    tree = Tree([axis("place", folder)])
    return made(folder / "out", tree, 1_000 + 97 * np.arange(SIDE * SIDE))


@pytest.fixture(scope="module")
def flows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flows")
    start, end = np.divmod(np.arange(SIDE**4), SIDE**2)
    values = 50_000 // (1 + np.abs(start - end))
    tree = Tree([axis("home", folder), axis("work", folder)], ["home", "work"])
    return made(folder / "out", tree, values)


@pytest.fixture(scope="module")
def faint(tmp_path_factory):
    """Flows that fall off fast: some of a hundred thousands, some of a few."""
    folder = tmp_path_factory.mktemp("faint")
    start, end = np.divmod(np.arange(SIDE**4), SIDE**2)
    values = np.array([9_000, 40, 6, 1])[np.abs(start // SIDE - end // SIDE)]
    tree = Tree([axis("home", folder), axis("work", folder)], ["home", "work"])
    return made(folder / "out", tree, values, budget="1/2000", measure=All())


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cube")
    age = Axis.from_frame("age", {"age": ["0", "1", "2"]}, ["age"])
    tree = Tree([axis("place", folder), age])
    values = 300 + 41 * (np.arange(3 * SIDE**2) // 3)
    options = {"estimator": Euclidean(), "workload": Cube(), "measure": All()}
    return made(folder / "out", tree, values, **options)


@pytest.fixture(scope="module")
def ages(tmp_path_factory):
    """Many people of whom few are old, few of whom many are, and some too few to tell."""
    folder = tmp_path_factory.mktemp("ages")
    tree = Tree(
        [
            axis("place", folder, crs="EPSG:4326"),
            Axis.from_frame("age", {"age": ["0", "1"]}, ["age"]),
        ]
    )
    of_counties = np.array([[60_000, 6_000], [400, 4_000], [240, 176], [9_000, 30]]) // SIDE
    options = {"estimator": Euclidean(), "workload": Cube(), "measure": All()}
    values = np.repeat(of_counties, SIDE, axis=0).ravel()
    return made(folder / "out", tree, values, budget="1/50", **options)


@pytest.fixture(scope="module")
def squares(tmp_path_factory):
    folder = tmp_path_factory.mktemp("squares")
    places = pl.DataFrame({"x": [x for x in range(4) for _ in range(4)], "y": [*range(4)] * 4})
    grid = Axis.from_frame("square", places, ["big", "small"], rule=Division([2, 1], ["x", "y"]))
    values = [0, 0, 3, 5, 8, 12, 30, 60, 90, 300, 700, 1_500, 4_000, 9_000, 20_000, 0]
    return made(folder / "out", Tree([grid]), values, budget="1/20", measure=All())


def areas_of(tab):
    """What is said of every area of the map."""
    return tab.locator(".area").evaluate_all("all => all.map(one => one.ariaLabel)")


def counts_in(tab):
    """The first two cells of the rows beside the map."""
    return [row.split("\t")[:2] for row in tab.locator(ROWS).all_inner_texts()]


def expected(frame, column):
    return [[f"{name}", f"{n:,}"] for name, n in frame.select(column, "count").iter_rows()]


def test_a_click_on_a_county_shows_its_towns(opened, census):
    tab = ready(opened(census))
    assert tab.locator(".area").count() == SIDE
    tab.locator('.area[data-node="2"]').click()
    ready(tab, "2")
    expect(tab.locator(".beside")).to_have_count(SIDE - 1, timeout=PATIENCE)
    towns = read_release(census.with_suffix("")).level("town").filter(place_county="2")
    best = towns.sort("count", descending=True)
    assert [count for _, count in counts_in(tab)] == [f"{count:,}" for count in best["count"]]
    town = best.row(0, named=True)
    tab.locator(f".area[aria-label*=' ({town['place_town']}): ']").click()
    ready(tab, f"{EVIL}{town['place_town']}")
    assert figure_of(tab) == f"{town['count']:,}"
    told = tab.inner_text("#answer")
    assert f"{town['low']:,} to {town['high']:,}" in told
    assert "firm" in told
    assert (
        tab.locator(".area[aria-current]").count() == tab.locator("tr[aria-current]").count() == 1
    )
    assert "evil" not in tab.title()


def test_the_keyboard_alone_goes_in_and_out(opened, census):
    tab = ready(opened(census))
    tab.locator('.area[tabindex="0"]').focus()
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.dataset.node") == "1"
    assert tab.locator("tr.pointed").count() == 1
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".beside")
    expect(tab.locator(".area:focus")).to_have_count(1, timeout=PATIENCE)
    tab.keyboard.press("Escape")
    tab.wait_for_selector(".beside", state="detached")


def test_flows_are_those_from_the_area_chosen_and_turn(opened, flows):
    pairs = read_release(flows.with_suffix("")).level("home.county × work.county")
    tab = ready(opened(flows, address("1", "0")), "1 → 0")
    for side, other in (("home", "work"), ("work", "home")):
        code = "1" if side == "home" else "0"
        tab.get_by_role("button", name=f"{side}: {code}", exact=True).click()
        tab.wait_for_selector(f"button[aria-pressed='true']:has-text('{side}: {code}')")
        own = pairs.filter(pl.col(f"{side}_county") == code).sort("count", descending=True)
        assert counts_in(tab) == expected(own, f"{other}_county")
        assert tab.locator(".arc").count() == SIDE - 1
        assert tab.locator(".area[aria-current]").count() == 1


def test_flows_that_are_mostly_noise_have_no_arc_and_rough_ones_are_dashed(opened, faint):
    tab = ready(opened(faint, address("0", "1")), "0 → 1")
    rows = tab.locator(ROWS).evaluate_all(
        "all => all.map(({ cells }) => [cells[0], cells[cells.length - 1]]"
        ".map(one => one.innerText.trim()))"
    )
    others = [kind for county, kind in rows if county != "0"]
    assert {"rough", "mostly noise"} <= {*others}
    firm, rough = (sum(kind == each for kind in others) for each in ("firm", "rough"))
    assert tab.locator(".arc").count() == firm + rough
    assert tab.locator(".arc.rough").count() == rough


def test_the_table_beside_the_map_is_what_the_map_tells(opened, census):
    """Every area of the map has the count of its row as its name for those who do not see it."""
    tab = ready(opened(census))
    rows = [row.split("\t") for row in tab.locator(ROWS).all_inner_texts()]
    told = areas_of(tab)
    assert len(rows) == len(told) == SIDE
    for name, count, interval, *_, sure in rows:
        words = f"{name}: {count} (95 % interval {interval}, {sure.strip()})"
        assert any(one.startswith(words) for one in told)


def test_on_a_touch_screen_the_first_tap_reads_and_the_second_opens(opened, census):
    tab = ready(opened(census, width=390, has_touch=True, is_mobile=True))
    area = tab.locator('.area[data-node="2"]')
    area.tap()
    tab.wait_for_selector('.area[data-node="2"].chosen')
    assert tab.locator(".beside").count() == 0
    assert area.get_attribute("aria-label").split(":")[0] in tab.inner_text(".readout")
    area.tap()
    expect(tab.locator(".beside")).to_have_count(SIDE - 1, timeout=PATIENCE)
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_a_map_of_a_cube_shows_the_margin_of_its_axis(opened, cube):
    tab = ready(opened(cube, address("", "", by=(2, 0))))
    towns = read_release(cube.with_suffix("")).cuboid(place="town")
    expect(tab.locator(".area")).to_have_count(SIDE**2, timeout=PATIENCE)
    told = areas_of(tab)
    for row in towns.iter_rows(named=True):
        name = f"{EVIL}{row['place_town']} ({row['place_town']})"
        wanted = f"{name}: {row['count']:,} (95 % interval {row['low']:,} to {row['high']:,}"
        assert any(one.startswith(wanted) for one in told)


def test_a_map_of_a_cube_shows_one_code_of_another_axis(opened, cube):
    counts = read_release(cube.with_suffix("")).cuboid(place="county", age="age")
    for code in ("2", "0"):
        tab = ready(opened(cube, address("", code)), code)
        rows = counts.filter(age=code).sort("count", descending=True)
        assert counts_in(tab) == expected(rows, "place_county")
        assert f"age {code}" in tab.inner_text("#counts h2")
        assert tab.locator(".area").count() == SIDE
        assert barriers(tab) == []


KINDS = "[data-axis^='map-']"
WHICH = "all => all.map(one => [one.ariaLabel, one.getAttribute('fill')])"


def coloured(tab, kind):
    """Choose what colours the map with the keyboard; by area what is said of it, and its colour."""
    tab.locator(f"[data-axis='map-{kind}']").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator(f"[data-axis='map-{kind}'][aria-pressed='true']")).to_be_focused()
    said = tab.locator(".area").evaluate_all(WHICH)
    return {words.split(" ")[0].rstrip(":"): (words, fill) for words, fill in said}


def saved(tab, level="county"):
    """The rows beside the map as a file, by the code of their area."""
    with tab.expect_download() as got:
        tab.locator("button.save").click()
    return pl.read_csv(got.value.path(), infer_schema_length=0).rows_by_key(
        f"place {level}", named=True, unique=True
    )


def test_shares_of_its_areas_colour_a_map_by_their_own_intervals(opened, ages):
    tab = ready(opened(ages, address("", "1")), "1")
    assert tab.locator(KINDS).all_inner_texts() == ["Count", "Share", "Density"]
    said, told = coloured(tab, "share"), saved(tab)
    legend = tab.locator(".scale rect[stroke]").evaluate_all(
        "all => all.map(one => one.getAttribute('fill'))"
    )
    shades = {"firm": legend[:8], "rough": legend[8:12], "mostly noise": ["url(#atlas-hatch)"]}
    release = read_release(ages.with_suffix(""))
    whole = dict(release.cuboid(place="county").select("place_county", "count").iter_rows())
    for code, (words, fill) in said.items():
        row, sure = told[code], told[code]["share_reliability"]
        assert sure in words.split("total:")[1]
        assert fill in shades[sure]
        if row["share"]:
            assert float(row["share"]) == pytest.approx(int(row["count"]) / whole[code], rel=1e-5)
            assert float(row["share_low_95"]) < float(row["share"]) < float(row["share_high_95"])
    both = [(told[code]["reliability"], told[code]["share_reliability"]) for code in "0123"]
    assert both == [*[("firm", "firm")] * 2, ("firm", "rough"), ("mostly noise", "mostly noise")]
    most = [max(told, key=lambda code: float(told[code][key] or 0)) for key in ("count", "share")]
    assert most == ["0", "1"]
    assert barriers(tab) == []
    # the choice is in the address, and is kept where it has no meaning
    tab = ready(opened(ages, f"{address('', '1')}&map=share"), "1")
    assert coloured(tab, "count") != said == coloured(tab, "share")
    tab.keyboard.press("Escape")
    ready(tab, "Total")
    assert "map=share" in tab.evaluate("location.hash")
    assert tab.locator("[data-axis='map-share']").count() == 0


def test_counts_a_square_kilometre_colour_a_map_whose_file_says_where_it_is(opened, ages):
    """Cells of 1° × 1° by the equator, as large as an equal-area projection says, within 0.1 %."""
    tab = ready(opened(ages, address("", "", by=(2, 0))))
    expect(tab.locator(".area")).to_have_count(SIDE**2, timeout=PATIENCE)
    assert tab.locator(KINDS).all_inner_texts() == ["Count", "Density"]
    boxes = [shapely.box(x, y, x + 1, y + 1) for x in range(SIDE) for y in range(SIDE)]
    codes = [f"{x}{y}" for x in range(SIDE) for y in range(SIDE)]
    sizes = geopandas.GeoSeries(boxes, crs="EPSG:4326").to_crs("EPSG:6933").area / 1e6
    coloured(tab, "per_km2")
    said = areas_of(tab)
    towns = read_release(ages.with_suffix("")).cuboid(place="town")
    told = {row["place_town"]: row for row in towns.iter_rows(named=True)}
    file = saved(tab, "town")
    for code, size in zip(codes, sizes, strict=True):
        row = file[code]
        value, low, high = (
            float(row[f"per_km2{end}"]) * size for end in ("", "_low_95", "_high_95")
        )
        assert value == pytest.approx(told[code]["count"], rel=1e-3)
        for end, bound in ((low, told[code]["low"]), (high, told[code]["high"])):
            assert end == pytest.approx(bound, rel=2.5e-3)
        assert low <= told[code]["low"]
        assert high >= told[code]["high"], "what four digits of a size leave open"
        assert row["per_km2_reliability"] == row["reliability"]
        assert any(f"({code}): " in one and "; people per km²: " in one for one in said)
    assert "People per km²" in tab.inner_text(".atlas-key")


def test_the_squares_of_a_grid_have_a_map_without_a_file(opened, squares):
    tab = ready(opened(squares))
    assert tab.locator(".area").count() == 4
    assert tab.locator(KINDS).count() == 0
    tab.locator('.area[tabindex="0"]').focus()
    tab.keyboard.press("Enter")
    tab.wait_for_selector(".beside")
    assert tab.locator(".area").count() == 4


def test_areas_are_coloured_by_what_their_intervals_allow(opened, squares):
    """Eight colours where firm, four where rough, one where mostly noise, white where 0."""
    tab = ready(opened(squares, address("", by=(2,))))
    expect(tab.locator(".area")).to_have_count(16, timeout=PATIENCE)
    seen = tab.locator(".area").evaluate_all(
        "all => all.map(one => [one.ariaLabel, one.getAttribute('fill')])"
    )
    fills = {}
    for words, fill in seen:
        kind = next(
            k
            for k in (
                "firm",
                "rough",
                "mostly noise",
                "released as 0; the true count may be larger",
            )
            if words.removesuffix(" Opens.").rstrip(".)").endswith(k)
        )
        fills.setdefault(kind, set()).add(fill)
    assert fills["mostly noise"] == {"url(#atlas-hatch)"}
    assert len(fills) >= 3
    firm, rough = fills["firm"], fills["rough"]
    assert len(firm) <= 8
    assert len(rough) <= 4
    assert not firm & rough


def test_steps_between_colours_are_round_ascending_and_within_the_counts(opened, census):
    """For counts of every spread, those of a few people and those that differ little too."""
    tab = ready(opened(census))
    text = files("hedgerow.release.page").joinpath("map_scale.js").read_text(encoding="utf-8")
    start, end = text.index("const ROUND"), text.index("const binOf")
    breaks_of = f"(counts) => {{ const BINS = 8;\n{text[start:end]}\nreturn breaksOf(counts); }}"
    shares_of = breaks_of.replace("(counts); }", "(counts, { most: 1, isWhole: false }); }")
    generator = np.random.default_rng(20260830)
    for _ in range(300):
        low, spread = 10 ** generator.uniform(0, 7), 10 ** generator.uniform(0.02, 6)
        counts = np.rint(low * spread ** generator.random(30)).astype(int).tolist()
        steps = tab.evaluate(breaks_of, counts)
        assert len(steps) == 7
        assert all(one < other for one, other in pairwise(steps))
        assert all(step == int(step) and step > 0 for step in steps)
        assert steps[-1] <= max(*counts, 2 * min(counts) + 8)
        shares = (np.array(counts) / (max(counts) * generator.uniform(1, 100))).tolist()
        for of in (shares, [1.0] * 5, [0.0]):
            steps = tab.evaluate(shares_of, of)
            assert len(steps) == 7
            assert all(0 < one < other <= 1 for one, other in pairwise(steps))


def test_a_page_with_a_map_keeps_its_policy(opened, census, flows):
    """One script and one style, by their hashes; nothing inline, nothing from elsewhere."""
    for path in (census, flows):
        text = path.read_text(encoding="utf-8")
        (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
        names = [each.split()[0] for each in policy.split("; ")]
        assert names == [
            "default-src",
            "script-src",
            "style-src",
            "img-src",
            "base-uri",
            "form-action",
        ]
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "cartography" in text
        assert not re.search(
            r"<[^>]+\s(?:on\w+|style)=", text.split("<script>")[0].split("</style>")[1]
        )
        tab = ready(opened(path))
        assert tab.evaluate("document.scripts.length") == text.count("<script")
        assert tab.title() != "evil"


def is_whole(tab, width):
    """Axe finds nothing, nothing is wider than the window, and no name has run."""
    assert barriers(tab) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.title() == TITLE


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_director_goes_from_the_title_to_one_town_by_the_map(opened, census, width, scheme):
    is_phone = width < 640
    tab = opened(census, width=width, color_scheme=scheme, has_touch=is_phone, is_mobile=is_phone)
    ready(tab)
    assert tab.inner_text("h1") == TITLE
    is_whole(tab, width)
    press = (lambda one: (one.tap(), one.tap())) if is_phone else (lambda one: one.click())
    press(tab.locator('.area[data-node="1"]'))
    expect(tab.locator(".beside")).to_have_count(SIDE - 1, timeout=PATIENCE)
    is_whole(tab, width)
    press(tab.locator('.area[data-node="6"]'))
    row = read_release(census.with_suffix("")).level("town").row(6, named=True)
    ready(tab, f"{EVIL}12")
    for words in (f"{row['count']:,}", f"{row['low']:,} to {row['high']:,}", "firm"):
        expect(tab.locator("#answer")).to_contain_text(words, timeout=PATIENCE)
    is_whole(tab, width)
    tab.locator(".near button").first.click()
    ready(tab, "1")
    tab.locator(".near button").first.click()
    expect(tab.locator(".beside")).to_have_count(0, timeout=PATIENCE)


@pytest.mark.parametrize("width", [1280, 390])
def test_flows_stand_in_nobodys_way(opened, flows, width):
    tab = ready(opened(flows, width=width))
    is_whole(tab, width)
    tab = ready(opened(flows, address("00", "11"), width=width))
    expect(tab.locator(".area")).to_have_count(SIDE**2, timeout=PATIENCE)
    is_whole(tab, width)


def test_on_paper_the_map_its_legend_and_its_table_are_whole(opened, census):
    """A4, as Chromium prints: the map within the paper, its counts beside it, no buttons."""
    tab = ready(opened(census, width=680))
    tab.emulate_media(media="print")
    for part in (".atlas-map", ".scale", ".listing table"):
        box = tab.locator(part).bounding_box()
        assert box["width"] > 100
        assert box["x"] + box["width"] <= 681
    assert not tab.locator(".more, .tools button, nav").evaluate_all(
        "all => all.filter(one => one.offsetParent).length"
    )
    assert tab.locator(".atlas-map").bounding_box()["height"] < 500


def test_the_bundled_script_is_the_one_that_was_looked_at():
    text = files("hedgerow.pages.vendor").joinpath("cartography.js").read_bytes()
    assert hashlib.sha256(text).hexdigest() == CARTOGRAPHY
    assert len(text) < 20_000


CARTOGRAPHY = "07ecc3332ace370f8a2322d7feb06ae5912c808a3dce46e89e089940a73f41f4"


def test_the_map_follows_the_level_of_intervals_that_is_chosen(opened, census):
    tab = ready(opened(census))
    release = read_release(census.with_suffix(""))
    for level in (99, 90):
        tab.locator(f"button[data-sure='{level}']").click()
        tab.wait_for_function(
            "(level) => document.querySelector('.listing thead').innerText"
            ".includes(`${level} % interval`)",
            arg=level,
        )
        file = release.level("county", confidence=Confidence(level / 100))
        wanted = {f"{low:,} to {high:,}" for low, high in file["low", "high"].iter_rows()}
        assert {*tab.locator(f"{ROWS} td:nth-child(3)").all_inner_texts()} == wanted
        assert all(any(one in label for one in wanted) for label in areas_of(tab))
