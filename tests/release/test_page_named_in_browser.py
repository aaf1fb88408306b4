"""The page of cuboids that somebody names in a real browser, against the files of the cuboids."""

import polars as pl
import pytest

from hedgerow.release.page import cuboids as cuboids_module
from tests.browser import show_all
from tests.parts import CHROMIUM
from tests.release.in_browser import ROWS, address, choose, figure_of, offered, ready
from tests.release.made_pages import EVIL, NAMED, counts_of, page_of
from tests.release.test_page_cube_in_browser import (
    column_of,
    figure,
    inside,
    said_of_margins,
    shown_matrix,
    sure_words,
)

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]


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
    rows = tab.locator(f"{ROWS} td:nth-child(2)").all_inner_texts()
    few = [f"{count:,}" for count in frame["count"]][:12]
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


def at(levels):
    """The address of everything, split into a cuboid."""
    return address(*[""] * len(levels), by=levels)


@pytest.mark.parametrize("kind", ["beside", "margins", "tables", "below", "alone", "one"])
def test_each_released_cuboid_shows_its_counts(opened, named, kind):
    made = named[kind]
    for levels in [levels for levels in made.plan.levels if any(levels)]:
        check_picture(ready(opened(made.path, at(levels)), "Total"), made, levels, {})


@pytest.mark.parametrize("kind", ["tables", "alone", "one"])
def test_the_released_cuboids_alone_are_offered(opened, named, kind):
    made = named[kind]
    tab = ready(opened(made.path), "Total")
    finer = [made.plan.label_of(levels) for levels in made.plan.levels if any(levels)]
    assert offered(tab) == (finer if len(finer) > 1 else [])


@pytest.mark.parametrize("kind", ["beside", "margins", "below"])
def test_the_tabs_and_levels_of_two_axes_lead_to_every_released_cuboid(opened, named, kind):
    made, seen = named[kind], set()
    tab = ready(opened(made.path), "Total")
    tabs = tab.locator("[aria-label='What to show'] button")
    for i in range(max(1, tabs.count())):
        if tabs.count():
            tabs.nth(i).click()
            tab.wait_for_selector(f"[data-axis='tab{i}'][aria-pressed='true']")
        levels = tab.locator("[aria-label='Levels to show'] button")
        seen |= {levels.nth(k).get_attribute("data-axis") for k in range(levels.count())}
        seen.add(tab.locator(".listing").get_attribute("data-of"))
    assert seen >= {"-".join(map(str, each)) for each in made.plan.levels if any(each)}


def test_a_cell_opens_into_the_finer_cuboids_of_its_tables(opened, named):
    made = named["tables"]
    tab = ready(opened(made.path, at((1, 1, 0))), "Total")
    tab.locator(".matrix tbody tr").nth(1).locator(".cell").nth(1).click()
    ready(tab, "1 × 1")
    assert offered(tab) == ["not split", "age region", "home ward"][-len(offered(tab)) :]
    areas = {0: (1, "1"), 1: (1, "1")}
    for levels in ((1, 1, 1), (3, 1, 0)):
        choose(tab, levels)
        check_picture(tab, made, levels, areas)


def test_escape_leads_to_the_areas_of_a_coarser_cuboid(opened, named):
    tab = ready(opened(named["tables"].path, address("110", "1", "")), "110 × 1")
    for up in ("1 × 1", "Total"):
        tab.locator("#answer h2").focus()
        tab.keyboard.press("Escape")
        ready(tab, up)


def test_areas_without_counts_of_their_own_are_no_way_back(opened, named):
    """A row's sum is no count of its own: neither home.region nor work.region is released."""
    tab = ready(opened(named["tables"].path, address("1", "1", "")), "1 × 1")
    assert tab.locator(".near dt").first.inner_text() == "Above"
    assert tab.locator(".near dd").first.locator("button").all_inner_texts() == ["Total"]


def test_what_was_not_released_is_a_sum_or_nothing(opened, named):
    tab = ready(opened(named["margins"].path, address("1", "")), "1")
    own = counts_of(named["margins"], (2, 0)).filter(home_region="1")["count"].sum()
    assert figure_of(tab) == f"{own:,}"
    assert "the sum of released counts: no table has it as such" in tab.inner_text("#answer")
    ready(opened(named["margins"].path, address("1", "1")), "Total")


def test_what_is_not_carried_is_offered_as_a_file(opened, named, tmp_path, monkeypatch):
    made = named["beside"]
    rows = sum(len(counts_of(made, levels)) for levels in made.plan.levels)
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", rows - 1)
    path = tmp_path / "part.html"
    path.write_text(page_of(made), encoding="utf-8")
    tab = ready(opened(path, at((2, 3))), "Total")
    assert "are in counts/cuboid=2-3.parquet beside this page" in tab.inner_text("#explorer")
    assert offered(tab)[-1] == "home district × work ward (in its file)"


def test_no_name_of_an_area_runs(opened, named):
    tab = ready(opened(named["names of named"].path), "Total")
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
    assert tab.locator("#exact tbody tr").count() >= len(named[kind].plan.levels)
