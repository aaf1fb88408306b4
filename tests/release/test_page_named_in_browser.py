"""The page of cuboids that somebody names in a real browser, against the files of the cuboids."""

import polars as pl
import pytest

from hedgerow.release.page import cuboids as cuboids_module
from tests.browser import show_all
from tests.parts import CHROMIUM
from tests.release.made_pages import EVIL, NAMED, counts_of, page_of
from tests.release.test_page_cube_in_browser import (
    column_of,
    figure,
    inside,
    ready,
    said_of_margins,
    shown_matrix,
    sure_words,
)

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]


def offered(tab):
    return tab.locator("select[data-axis='cuboid'] option").all_inner_texts()


def choose(tab, levels):
    """Choose a cuboid and wait until it is drawn."""
    value = "-".join(map(str, levels))
    tab.evaluate("document.querySelector('#explorer h3').dataset.old = 'true'")
    if tab.input_value("select[data-axis='cuboid']") == value:
        return
    tab.select_option("select[data-axis='cuboid']", value)
    tab.wait_for_selector("#explorer h3:not([data-old])")
    tab.wait_for_function(
        "(value) => document.activeElement.dataset.axis === 'cuboid'"
        " && document.activeElement.value === value",
        arg=value,
    )


def check_picture(tab, made, levels, areas):
    """What is shown of a cuboid within areas against its file; margins against theirs, or summed.

    Args:
        tab: the page.
        made: the release.
        levels: of the cuboid.
        areas: {axis: (level, label)}: where it is cut.
    """
    context = tuple(areas.get(a, (0, None))[0] for a in range(len(levels)))
    split = [a for a, k in enumerate(levels) if k > context[a]]
    frame = inside(made, levels, areas).sort("count", descending=True)
    show_all(tab)
    if len(split) == 1:
        tab.wait_for_function(  # tiles are laid out again once the room for them is known
            "(tiles) => document.querySelectorAll('.tile:not(.rest)').length === tiles",
            arg=len(frame),
        )
        labels = [tile.get_attribute("aria-label") for tile in tab.locator(".tile").all()]
        column = column_of(made, split[0], levels[split[0]])
        assert sorted(label.split(" (")[0] for label in labels) == sorted(
            f"{row[column]}: {row['count']:,}" for row in frame.to_dicts()
        )
    elif len(split) == 2:
        check_matrix(tab, made, levels, areas, context, split, frame)
    else:
        assert "these counts have more" in tab.inner_text("#explorer")
    rows = tab.locator("#explorer > div:last-child tbody tr td:nth-child(2)").all_inner_texts()
    few = [f"{count:,}" for count in frame["count"]][:25]
    assert [row.split("\n")[0] for row in rows] == few


def check_matrix(tab, made, levels, areas, context, split, frame):
    (columns, found), said = shown_matrix(tab), said_of_margins(tab)
    names = [column_of(made, a, levels[a]) for a in split]
    cells = {(row[names[0]], row[names[1]]): row for row in frame.to_dicts()}
    for side, a in enumerate(split):
        only = tuple(k if b == a else context[b] for b, k in enumerate(levels))
        at = (lambda name: found[name]["all"]) if side == 0 else (lambda name: found["all"][name])
        if only in made.plan.by_levels:
            for row in inside(made, only, areas).to_dicts():
                assert at(row[names[side]]) == figure(row)
                assert all(words in said[side][row[names[side]]] for words in sure_words(row))
        else:
            sums = frame.group_by(names[side]).agg(pl.col("count").sum())
            assert {name: at(name) for name in sums[names[side]]} == {
                name: f"{count:,}" for name, count in sums.iter_rows()
            }
            assert said[side] == {}
            assert "without an interval" in tab.inner_text("#explorer")
    for r in {row for row, _ in cells}:
        for c in {column for _, column in cells}:
            known = cells.get((r, c))
            assert found[r][c] == (figure(known) if known else "0")
    assert set(columns) == {column for _, column in cells}


@pytest.mark.parametrize("kind", ["beside", "margins", "tables", "below", "alone", "one"])
def test_the_released_cuboids_alone_are_offered_and_each_shows_its_counts(opened, named, kind):
    made = named[kind]
    tab = ready(opened(made.path), "Everything")
    finer = [levels for levels in made.plan.levels if any(levels)]
    assert offered(tab) == ["total", *(made.plan.label_of(levels) for levels in finer)]
    for levels in finer:
        choose(tab, levels)
        check_picture(tab, made, levels, {})
    choose(tab, made.plan.levels[0])
    assert "This is one count" in tab.inner_text("#explorer")


def test_a_cell_opens_into_the_finer_cuboids_of_its_tables(opened, named):
    made = named["tables"]
    tab = ready(opened(made.path), "Everything")
    tab.locator(".matrix tbody tr").nth(1).locator(".cell").nth(1).click()
    ready(tab, "home region 1 × work region 1")
    areas = {0: (1, "1"), 1: (1, "1")}
    assert offered(tab) == ["not split", "age region", "home ward"]
    assert tab.evaluate("location.hash") == "#at-1.1.1-1.1.1-0.0.1"
    for levels in ((1, 1, 1), (3, 1, 0)):
        choose(tab, levels)
        check_picture(tab, made, levels, areas)
    assert tab.locator(".tile").count() == tab.locator(".tile[aria-disabled]").count() > 0
    tab = ready(opened(made.path, "#at-3.6.3-1.1.1-0.0.0"), "home ward")
    assert "which no released table splits further" in tab.inner_text("#explorer")


def test_a_cell_of_the_finest_table_opens_nothing(opened, named):
    tab = ready(opened(named["margins"].path), "Everything")
    assert tab.locator(".tile").count() == tab.locator(".tile[aria-disabled]").count() > 0


def test_escape_leads_to_the_areas_of_a_coarser_cuboid(opened, named):
    made = named["tables"]
    tab = ready(opened(made.path, "#at-3.6.3-1.1.1-0.0.0"), "home ward")
    tab.locator("select").focus()
    tab.keyboard.press("Escape")
    ready(tab, "home region 1 × work region 1")
    check_picture(tab, made, (3, 1, 0), {0: (1, "1"), 1: (1, "1")})
    tab.keyboard.press("Escape")
    ready(tab, "Everything")
    check_picture(tab, made, (1, 1, 0), {})


def test_areas_without_counts_of_their_own_are_no_way_back(opened, named):
    """A row's sum is no count of its own: neither home.region nor work.region is released."""
    tab = ready(opened(named["tables"].path, "#at-1.1.3-1.1.1-0.0.0"), "home region 1 ×")
    ways = tab.locator("nav[aria-label^='Where you are on'] button")
    assert ways.count() == 0


def test_a_way_back_keeps_to_released_cuboids(opened, named):
    made = named["beside"]
    tab = ready(opened(made.path, "#at-1.1.2-1.1.2"), "home region 1 × work region 1")
    tab.locator("nav[aria-label='Where you are on home'] button").first.click()
    ready(tab, "work region 1")
    hash_now = tab.evaluate("location.hash")
    levels = tuple(int(part.split(".")[2]) for part in hash_now.split("-")[1:])
    assert levels in made.plan.by_levels
    check_picture(tab, made, levels, {1: (1, "1")})


def test_a_place_that_was_not_released_is_everything(opened, named):
    for where in ("#at-0.0.1-0.0.0", "#at-0.0.1-0.0.1", "#at-1.0.2-0.0.0"):
        ready(opened(named["margins"].path, where), "Everything")


def test_what_is_not_carried_is_offered_as_a_file(opened, named, tmp_path, monkeypatch):
    made = named["beside"]
    rows = sum(len(counts_of(made, levels)) for levels in made.plan.levels)
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", rows - 1)
    path = tmp_path / "part.html"
    path.write_text(page_of(made), encoding="utf-8")
    tab = ready(opened(path), "Everything")
    assert offered(tab)[-1] == "home district × work ward (in its file)"
    choose(tab, (2, 3))
    assert "are in counts/cuboid=2-3.parquet beside this page" in tab.inner_text("#explorer")


def test_no_name_of_an_area_runs(opened, named):
    tab = ready(opened(named["names of named"].path), "Everything")
    assert EVIL in tab.inner_text("#explorer")
    assert "evil" not in tab.title()


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(opened, named, kind, scheme):
    tab = ready(opened(named[kind].path, width=360, color_scheme=scheme))
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("kind", NAMED)
def test_without_scripts_the_first_counts_and_the_levels_are_there(opened, named, kind):
    tab = opened(named[kind].path, java_script_enabled=False)
    assert tab.locator("#explorer tbody tr").count() > 2
    assert tab.locator("#levels tbody tr").count() >= len(named[kind].plan.levels)
