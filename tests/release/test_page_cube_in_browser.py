"""The page of a cube in a real browser: any pair of levels, the margins beside it, and the way in.

What is drawn is compared with the files of the cuboids that it must come from.
"""

import re

import polars as pl
import pytest

from hedgerow.release.page import cuboids as cuboids_module
from tests.browser import show_all
from tests.parts import CHROMIUM
from tests.release.drawn_page import between
from tests.release.in_browser import (
    ROWS,
    address,
    as_matrix,
    choose,
    figure_of,
    offered,
    ready,
)
from tests.release.made_pages import CUBES, EVIL, counts_of, page_of

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]


def shown_matrix(tab):
    """The matrix: for each row heading the texts of its cells by column heading.

    Tiles have no figure, and their count is taken from what is said of them.
    """
    tables = tab.locator("#explorer .matrix table").evaluate_all(
        """(all) => all.map((table) => [...table.rows].map((row) => [...row.cells].map((cell) => {
            const said = table.matches(".tiles") && cell.querySelector("button[aria-label]");
            const mark = said && said.matches(".doubt") ? "≠ " : "";
            return said ? mark + /: ([0-9,]+) [(]/.exec(said.getAttribute("aria-label"))[1]
                : cell.textContent;
        })))"""
    )
    found, columns = {}, []
    for (_, *names), *body in tables:
        columns += [name for name in names if name != "all"]
        for name, *cells in body:
            found.setdefault(name, {}).update(zip(names, cells, strict=True))
    assert len(columns) == len(set(columns))
    assert tab.evaluate(
        "[...document.querySelectorAll('.matrix')]"
        ".every((one) => one.scrollWidth <= one.clientWidth)"
    )
    return columns, found


def said_of_margins(tab):
    """What is said of each count of both margins, rows first, by its label; sums have none."""
    found = []
    for where in ("tr:not(:last-child)", "tr:last-child"):
        labels = tab.locator(f"#explorer .matrix tbody {where} .margin button").evaluate_all(
            "(all) => all.map((one) => one.getAttribute('aria-label'))"
        )
        found.append(dict(label.split(": ", maxsplit=1) for label in labels))
    return found


def column_of(made, axis, level):
    return made.tree.axes[axis].columns[level - 1]


def inside(made, levels, areas):
    """The counts of a cuboid within areas: {axis: (level, label)}."""
    frame = counts_of(made, levels)
    for axis, (level, label) in areas.items():
        frame = frame.filter(pl.col(column_of(made, axis, level)) == label)
    return frame


def figure(row):
    """A count as it stands in a matrix."""
    return f"{'≠ ' if row['contradicted'] else ''}{row['count']:,}"


def sure_words(row):
    """What is said of how sure a count is."""
    if row["low"] == row["high"] == row["count"]:
        return ["exact"]
    return [
        f"95 % interval {between(row['low'], row['high'])}, ",
    ]


def check_matrix(tab, made, levels, areas):
    """Each field against the file of its own cuboid: cells, both margins, the grand total."""
    columns, found = shown_matrix(tab)
    context = [areas.get(a, (0, None))[0] for a in range(2)]
    across = inside(made, (context[0], levels[1]), areas)
    down = inside(made, (levels[0], context[1]), areas)
    (whole,) = inside(made, tuple(context), areas).to_dicts()
    names = [column_of(made, a, levels[a]) for a in range(2)]
    assert columns == across[names[1]].to_list()
    assert list(found) == [*down[names[0]], "all"]
    if not tab.locator("#explorer .tiles").count():
        assert found["all"]["all"] == figure(whole)
    said = said_of_margins(tab)
    for row in across.to_dicts():
        assert found["all"][row[names[1]]] == figure(row)
    for row in down.to_dicts():
        assert found[row[names[0]]]["all"] == figure(row)
    for name, file, known in zip(names, (down, across), said, strict=True):
        for row in file.to_dicts():
            assert all(words in known[row[name]] for words in sure_words(row))
    cells = {(row[names[0]], row[names[1]]): row for row in inside(made, levels, areas).to_dicts()}
    for r in down[names[0]]:
        for c in across[names[1]]:
            known = cells.get((r, c))
            assert found[r][c] == (figure(known) if known else "0")
    assert len(cells) > 1


@pytest.mark.parametrize("kind", ["pairs", "doubtful", "open"])
def test_every_pair_of_levels_has_its_cells_and_the_counts_of_its_margins(opened, cubes, kind):
    made = cubes[kind]
    tab = as_matrix(ready(opened(made.path), "Total"))
    check_matrix(tab, made, (1, 1), {})
    for levels in [levels for levels in made.plan.levels if all(levels)]:
        choose(tab, levels)
        show_all(tab)
        check_matrix(tab, made, levels, {})


def test_an_axis_at_its_total_leaves_the_margin_of_the_other_as_a_map(opened, cubes):
    made = cubes["pairs"]
    tab = ready(opened(made.path, address("", "", by=(1, 0))), "Total")
    file = counts_of(made, (1, 0)).sort("count", descending=True)
    labels = [tile.get_attribute("aria-label") for tile in tab.locator(".tile").all()]
    for row, label in zip(file.to_dicts(), labels, strict=True):
        assert label.startswith(f"{row['home_region']}: {row['count']:,} (95 % interval "
                                f"{between(row['low'], row['high'])}, ")  # fmt: skip


def test_a_click_on_a_cell_opens_it_with_margins_of_its_own(opened, cubes):
    made = cubes["pairs"]
    tab = as_matrix(ready(opened(made.path), "Total"))
    tab.locator(".matrix tbody tr").nth(-2).locator("td:not(.margin) .cell").last.click()
    ready(tab, "2 × 1")
    areas = {0: (1, "2"), 1: (1, "1")}
    check_matrix(tab, made, (2, 2), areas)
    (whole,) = inside(made, (1, 1), areas).to_dicts()
    assert figure_of(tab) == f"{whole['count']:,}"
    assert f"{between(whole['low'], whole['high'])} 95 % interval" in tab.inner_text("#answer")
    assert "home region; work region" in tab.inner_text("#answer .under")


def test_a_click_on_a_margin_opens_its_area_over_everything(opened, cubes):
    made = cubes["pairs"]
    tab = as_matrix(ready(opened(made.path), "Total"))
    tab.locator(".matrix tbody tr").nth(1).locator(".margin button").click()
    ready(tab, "1")
    check_matrix(tab, made, (2, 1), {0: (1, "1")})
    tab.locator(".matrix tbody tr").last.locator(".margin button").nth(1).click()
    ready(tab, "1 × 1")
    check_matrix(tab, made, (2, 2), {0: (1, "1"), 1: (1, "1")})
    near = tab.locator(".near button").all_inner_texts()
    assert near[:2] == ["1", "1"], "each end over everything of the other"


def test_an_area_keeps_its_own_levels_to_choose_from(opened, cubes):
    made = cubes["pairs"]
    tab = ready(opened(made.path, address("", "1", by=(1, 2))), "1")
    check_matrix(tab, made, (1, 2), {1: (1, "1")})
    assert offered(tab) == [
        f"home {home} × work {work}" for home in ("region", "district")
        for work in ("district", "ward")
    ]  # fmt: skip
    choose(tab, (1, 3))
    check_matrix(tab, made, (1, 3), {1: (1, "1")})


def test_two_tabs_keep_the_one_end_of_a_pair_or_the_other(opened, cubes):
    made = cubes["pairs"]
    tab = ready(opened(made.path, address("2", "1")), "2 × 1")
    for end, areas in (("home: 2", {0: (1, "2")}), ("work: 1", {1: (1, "1")})):
        tab.get_by_role("button", name=end, exact=True).click()
        tab.wait_for_selector(f"button[aria-pressed='true']:has-text('{end}')")
        rows = [row.split("\t")[1] for row in tab.locator(ROWS).all_inner_texts()]
        file = inside(made, (1, 1), areas).sort("count", descending=True)
        assert rows == [f"{count:,}" for count in file["count"]]
        assert tab.locator("tr[aria-current]").count() == 1


def test_the_keyboard_alone_walks_opens_and_goes_back(opened, cubes):
    tab = as_matrix(ready(opened(cubes["pairs"].path), "Total"))
    tab.locator(".cell[tabindex='0']").focus()
    for key in ("ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):
        tab.keyboard.press(key)
    label = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert label.startswith("1 × 0: ")
    assert label.endswith("Opens.")
    tab.keyboard.press("Enter")
    ready(tab, "1 × 0")
    tab.wait_for_function("() => document.activeElement.classList.contains('cell')")
    tab.keyboard.press("Escape")
    ready(tab, "0")
    tab.keyboard.press("Escape")
    ready(tab, "Total")


def test_the_back_button_goes_back_and_a_place_that_is_not_there_is_everything(opened, cubes):
    made = cubes["pairs"]
    tab = ready(opened(made.path, address("0", "1")), "0 × 1")
    tab.locator(".near button").first.click()
    ready(tab, "1")
    tab.go_back()
    ready(tab, "0 × 1")
    for where in (address("99", ""), "#place=1-2-3", address("0", "nowhere"), "#at-1.0.2"):
        ready(opened(made.path, where), "Total")


def test_a_pair_of_areas_without_a_count_was_released_as_0(opened, cubes):
    """Both areas are there, and no record was released between them."""
    made = cubes["open"]
    homes, works = (counts_of(made, levels)[column].to_list() for levels, column in
                    (((2, 0), "home_district"), ((0, 2), "work_district")))  # fmt: skip
    listed = set(counts_of(made, (2, 2)).select("home_district", "work_district").iter_rows())
    h, w = next((h, w) for h in homes for w in works if (h, w) not in listed)
    tab = ready(opened(made.path, address(h, w)), f"{h} × {w}")
    assert figure_of(tab) == "0"
    assert "released as 0; the true count may be larger" in tab.inner_text("#answer")


def test_contradicted_counts_are_marked_in_cells_margins_and_rows(opened, cubes):
    made = cubes["doubtful"]
    file = counts_of(made, (2, 2))
    one = file.filter("contradicted").sort("count", descending=True).to_dicts()[0]
    where = address(one["home_region"], one["work_region"], by=(2, 2))
    tab = ready(opened(made.path, where), f"{one['home_region']} ")
    areas = {0: (1, one["home_region"]), 1: (1, one["work_region"])}
    check_matrix(tab, made, (2, 2), areas)
    doubted = inside(made, (2, 2), areas).filter("contradicted")
    assert tab.locator(".matrix .cell.doubt").count() == len(doubted) > 0
    label = f"{one['home_district']} → {one['work_district']}: {one['count']:,}"
    cell = tab.locator(f".cell[aria-label^='{label}']")
    estimate = f"unbiased estimate {round(one['estimate']):,}"
    assert f"contradicted by its own noisy counts: {estimate}" in cell.get_attribute("aria-label")
    row = tab.locator(ROWS, has_text=label.split(":", maxsplit=1)[0])
    assert f"≠ contradicted; {estimate}" in row.inner_text()
    assert "≠ contradicted by its own noisy counts" in tab.inner_text("#explorer")
    clean = ready(opened(cubes["pairs"].path), "Total")
    assert "≠" not in clean.inner_text("#explorer")


def test_the_rows_below_are_those_of_the_file(opened, cubes):
    made = cubes["pairs"]
    tab = as_matrix(ready(opened(made.path), "Total"))
    rows = tab.locator(ROWS).all_inner_texts()
    told = {tuple(row.split("\t")[:3]) for row in rows}
    assert told == {
        (f"{row['home_region']} × {row['work_region']}", f"{row['count']:,}",
         between(row["low"], row["high"]))
        for row in counts_of(made, (1, 1)).to_dicts()
    }  # fmt: skip
    assert "6 of 6 possible counts are listed." in tab.inner_text("#explorer")


def test_what_is_not_carried_is_said_to_be_in_its_file(opened, cubes, tmp_path, monkeypatch):
    made = cubes["pairs"]
    rows = sum(len(counts_of(made, levels)) for levels in made.plan.levels)
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", rows - 1)
    path = tmp_path / "part.html"
    path.write_text(page_of(made), encoding="utf-8")
    tab = ready(opened(path, address("", "", by=(2, 3))), "Total")
    assert "are in counts/cuboid=2-3.parquet beside this page" in tab.inner_text("#explorer")
    assert "home district × work ward (in its file)" in offered(tab)
    choose(tab, (2, 2))  # a pair that is there, of which each cell would open the one that is not
    labels = tab.locator(".matrix tbody td:not(.margin) .cell").evaluate_all(
        "(all) => all.map((one) => one.getAttribute('aria-label'))"
    )
    assert not any(label.endswith("Opens.") for label in labels)


def test_where_no_finer_pair_is_carried_a_cell_is_split_along_one_axis(
    opened, cubes, tmp_path, monkeypatch
):
    made = cubes["pairs"]
    few = [levels for levels in made.plan.levels if not all(levels)] + [(1, 1), (1, 2)]
    rows = sum(len(counts_of(made, levels)) for levels in few)
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", rows)
    path = tmp_path / "part.html"
    path.write_text(page_of(made), encoding="utf-8")
    tab = ready(opened(path, address("2", "1", within=("2", "1"), by=(1, 2))), "2 × 1")
    file = inside(made, (1, 2), {0: (1, "2"), 1: (1, "1")}).sort("count", descending=True)
    labels = [tile.get_attribute("aria-label") for tile in tab.locator(".tile").all()]
    for row, label in zip(file.to_dicts(), labels, strict=True):
        assert label.startswith(f"{row['work_district']}: {row['count']:,} (")


def test_three_axes_show_two_as_a_matrix_and_more_as_a_list(opened, cubes):
    made = cubes["three axes"]
    tab = ready(opened(made.path, address("", "", "", by=(1, 1, 0))), "Total")
    _, found = shown_matrix(tab)
    file = {(r["home_region"], r["work_region"]): r for r in counts_of(made, (1, 1, 0)).to_dicts()}
    for (row, column), known in file.items():
        assert found[row][column] == figure(known)
    for row in counts_of(made, (0, 1, 0)).to_dicts():
        assert found["all"][row["work_region"]] == figure(row)
    choose(tab, (1, 1, 1))
    assert tab.locator("#explorer .matrix").count() == 0
    every = counts_of(made, (1, 1, 1))
    assert f"{len(every)} of 24 possible counts" in tab.inner_text("#explorer")
    tab.locator(".listing button.more").click()
    rows = tab.locator(ROWS).all_inner_texts()
    told = {tuple(row.split("\t")[:2]) for row in rows}
    assert told == {
        (f"{r['home_region']} × {r['work_region']} × {r['age_region']}", f"{r['count']:,}")
        for r in every.to_dicts()
    }
    choose(tab, (0, 1, 1))
    _, found = shown_matrix(tab)
    for row in counts_of(made, (0, 1, 1)).to_dicts():
        assert found[row["work_region"]][row["age_region"]] == figure(row)


def test_levels_of_only_children_are_shown_like_others(opened, cubes):
    made = cubes["only"]
    tab = ready(opened(made.path, address("", "", by=(1, 2))), "Total")
    check_matrix(tab, made, (1, 2), {})
    choose(tab, (2, 2))
    check_matrix(tab, made, (2, 2), {})


def test_no_name_of_an_area_runs(opened, cubes):
    tab = as_matrix(ready(opened(cubes["names of a cube"].path), "Total"))
    assert EVIL in tab.inner_text("#explorer")
    assert "evil" not in tab.title()


def test_very_many_cells_are_cut_to_the_largest(opened, cubes, tmp_path):
    made = cubes["pairs"]
    text = made.text.replace("MOST_LISTED = 20000", "MOST_LISTED = 4").replace(
        "MOST_SIDE = 24", "MOST_SIDE = 2"
    )
    path = tmp_path / "few.html"
    path.write_text(re.sub(r"script-src '[^']*'", "script-src 'unsafe-inline'", text), "utf-8")
    tab = as_matrix(ready(opened(path), "Total"))
    columns, found = shown_matrix(tab)
    kept = counts_of(made, (1, 0)).sort("count", descending=True)["home_region"][:2].sort()
    assert list(found) == [*kept, "all"]
    assert len(columns) == 2
    assert "Shown are the 2 largest of 3 rows." in tab.inner_text("#explorer")
    largest = counts_of(made, (1, 1))["count"].sort(descending=True)[:4]
    rows = tab.locator(f"{ROWS} td:nth-child(2)").all_inner_texts()
    assert rows == [f"{count:,}" for count in largest]
    assert "Below are the 4 largest." in tab.inner_text("#explorer")
    show_all(tab)
    check_matrix(tab, made, (1, 1), {})


# For everyone.


@pytest.mark.parametrize("kind", CUBES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.sweep(4)
def test_a_phone_needs_no_sideways_scrolling(opened, cubes, kind, scheme):
    tab = ready(opened(cubes[kind].path, width=360, color_scheme=scheme))
    assert tab.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("kind", CUBES)
def test_without_scripts_the_first_pair_and_the_levels_are_there(opened, cubes, kind):
    tab = opened(cubes[kind].path, java_script_enabled=False)
    assert tab.locator("#explorer tbody tr").count() > 4
    assert "unbiased estimate" in tab.inner_text("#explorer")
    assert "With JavaScript" in tab.inner_text("#counts")


@pytest.mark.parametrize("kind", ["pairs", "three axes"])
def test_every_control_has_a_name_and_prints_away(opened, cubes, kind):
    where = address(*[""] * len(cubes[kind].tree.axes), by=[1, 1, 0][: len(cubes[kind].tree.axes)])
    tab = ready(opened(cubes[kind].path, where))
    spoken = tab.evaluate(
        """() => [...document.querySelectorAll("button, select, a, [role=group]")].map((one) => {
            const around = [...(one.labels?.[0]?.childNodes ?? [])].filter((node) => node !== one);
            return one.getAttribute("aria-label") || (one.tagName === "SELECT"
                ? around.map((node) => node.textContent).join("") : one.innerText);
        })"""
    )
    assert all(re.search(r"\w", words) for words in spoken)
    assert tab.evaluate(
        "[...document.querySelectorAll('#explorer th')].every((one) =>"
        " ['row', 'col'].includes(one.scope))"
    )
    tab.emulate_media(media="print")
    assert not tab.locator("#explorer select").first.is_visible()
    assert tab.locator("#explorer .matrix").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_matrix_is_laid_out_again_for_paper_with_figures_in_full(opened, cubes, width):
    """A4 less its edges is 672 pixels wide."""
    made = cubes["doubtful"]
    tab = ready(opened(made.path, address("", "", by=(2, 2)), width=width), "Total")
    tab.emulate_media(media="print")
    tab.set_viewport_size({"width": 672, "height": 900})
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator("#explorer .tiles").count() == 0
    _, found = shown_matrix(tab)
    for row in counts_of(made, (2, 0)).to_dicts():
        assert found[row["home_district"]]["all"] == figure(row)
    assert tab.locator("#explorer .matrix table").evaluate("(one) => one.scrollWidth") <= 672
    assert tab.evaluate(
        """() => [...document.querySelectorAll("#explorer .matrix td")]
            .every((cell) => cell.scrollWidth <= cell.clientWidth + 1)"""
    )
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator("#explorer .reading").count() == 1


@pytest.mark.parametrize("width", [320, 390, 640, 900, 1280])
@pytest.mark.parametrize("kind", ["pairs", "doubtful", "three axes"])
@pytest.mark.sweep(4)
def test_no_figure_of_a_matrix_is_clipped_at_any_width(opened, cubes, kind, width):
    where = address(*[""] * len(cubes[kind].tree.axes), by=[1, 1, 0][: len(cubes[kind].tree.axes)])
    tab = ready(opened(cubes[kind].path, where, width=width), "Total")
    for every in (False, True):
        if every:
            show_all(tab)
        assert tab.evaluate(
            """() => document.documentElement.scrollWidth <= innerWidth
                && [...document.querySelectorAll("#explorer .matrix :is(td, .cell)")]
                    .every((one) => one.scrollWidth <= one.clientWidth + 1)
                && [...document.querySelectorAll("#explorer .matrix, #explorer .matrix table")]
                    .every((one) => one.getBoundingClientRect().right <= innerWidth)"""
        )


def test_on_a_phone_a_tap_chooses_a_tile_and_the_readout_opens_it(opened, cubes):
    made = cubes["pairs"]
    tab = as_matrix(ready(opened(made.path, width=320, has_touch=True), "Total"))
    where = tab.evaluate("location.hash")
    (row,) = counts_of(made, (1, 1)).filter(home_region="2", work_region="1").to_dicts()
    cell = tab.locator(".matrix .cell[aria-label^='2 × 1: ']")
    cell.tap()
    assert tab.locator(".cell.chosen").count() == 1
    told = tab.inner_text(".reading")
    for words in ("2 × 1", figure(row), between(row["low"], row["high"]), "firm"):
        assert words in told
    assert tab.evaluate("location.hash") == where
    tab.locator(".reading button").tap()
    ready(tab, "2 × 1")
