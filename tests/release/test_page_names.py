"""Names of areas on the page, before their codes: in tables and pictures, and never as markup."""

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.release.page.report import check_report, page
from tests.made import plain_plan
from tests.parts import CHROMIUM
from tests.release.drawn_page import read
from tests.release.in_browser import address

EVIL = "</script><img src=x onerror=document.title='evil'>"
NAMES = ["Goulburn", EVIL, "\u202egnirahs", "long " * 40 + "end", "a\nb", "עברית", None]
CODES = [f"{k // 3}{k:02}" for k in range(len(NAMES))]
AREAS = pl.DataFrame(
    {"state": [code[0] for code in CODES], "area": CODES, "area_name": NAMES}
).with_columns(state_name=pl.col("state").replace_strict({"0": "North", "1": "South", "2": "West"}))


def axis(name):
    return hr.Axis.from_frame(
        name, AREAS, ["state", "area"], columns=[f"{name}_state", f"{name}_area"],
        names={"state": "state_name", "area": "area_name"},
    )  # fmt: skip


@pytest.fixture(scope="module", params=["chain", "cube"])
def made(request, tmp_path_factory):
    """A release of two axes with names: its directory, plan and page."""
    tree = hr.Tree([axis("home"), axis("work")])
    table = pl.DataFrame({"home_area": CODES}).join(
        pl.DataFrame({"work_area": CODES}), how="cross"
    ).with_columns(people=pl.int_range(pl.len()) * 20 + 500)  # fmt: skip
    table = table.with_columns(
        pl.col(f"{way}_area").str.slice(0, 1).alias(f"{way}_state") for way in ("home", "work")
    )
    workload = hr.Cube() if request.param == "cube" else hr.Chain()
    plan = plain_plan(tree, budget=hr.Rho(50), workload=workload)
    out = tmp_path_factory.mktemp(request.param) / "out"
    hr.release(hr.Counts.from_frame(tree, table, count="people"), plan).write(out)
    return request.param, out, hr.read_release(out).plan


def test_the_first_table_has_names_before_codes(made):
    _, out, plan = made
    said = read(page(out, plan, hr.Euclidean(), "1")).text
    assert "North (0)" in said
    assert "home state × work state" in said or "home state" in said
    assert "home.state" not in said


def test_a_page_with_other_names_is_not_the_one_that_the_files_make(made):
    _, out, plan = made
    text = (out / "report.html").read_text("utf-8")
    version = hr.__version__
    check_report(out, plan, hr.Euclidean(), version)
    (out / "report.html").write_text(text.replace("North (0)", "South (0)"), "utf-8")
    with pytest.raises(hr.ReleaseError, match="is not what the files"):
        check_report(out, plan, hr.Euclidean(), version)
    (out / "report.html").write_text(text, "utf-8")


@CHROMIUM.needed
@pytest.mark.xdist_group("browser")
def test_names_are_shown_with_their_codes_in_pictures_and_tables_and_never_run(made, opened):
    kind, out, _ = made
    where = {"chain": address("0", "0", within=("0", "0"), by=(2, 2)),
             "cube": address("", "", by=(2, 2))}[kind]  # fmt: skip
    tab = opened(out / "report.html", where)
    tab.wait_for_selector("#explorer[data-ready] .matrix th bdi")
    heads = tab.locator("#explorer .matrix tbody th bdi").all_inner_texts()
    wanted = [
        "Goulburn (000)", f"{EVIL} (001)", r"\u202egnirahs (002)", NAMES[3] + " (103)",
        r"a\nb (104)", "\u2068עברית\u2069 (105)", "206",
    ]  # fmt: skip
    assert heads == (wanted[:3] if kind == "chain" else wanted)
    assert tab.locator("#explorer img").count() == 0
    assert "evil" not in tab.title()
    if kind == "cube":
        tab.goto((out / "report.html").as_uri() + address("", "", by=(2, 0)))
        tab.wait_for_selector("#explorer .tile")
        tiles = tab.locator("#explorer .tile b").all_inner_texts()
        assert {"Goulburn", "…06"} <= set(tiles)


@CHROMIUM.needed
@pytest.mark.xdist_group("browser")
def test_a_long_name_leaves_the_counts_in_sight(made, opened):
    kind, out, _ = made
    tab = opened(out / "report.html", {"chain": address("1", "1", by=(2, 2)),
                                        "cube": address("", "", by=(2, 0))}[kind])  # fmt: skip
    tab.wait_for_selector("#explorer[data-ready]")
    inside = tab.locator("#explorer .scroll").last.evaluate(
        "(one) => one.scrollWidth <= one.clientWidth"
    )
    assert inside
