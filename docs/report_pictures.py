# ruff: noqa: INP001 - a script
"""Draw the pictures of pages that README and docs show: of releases of real tables, and of a plan.

    python docs/report_pictures.py [DATA]

Commuting between the districts of the United Kingdom in 2011, and the blocks of Washington in the
census of 2010, both public, in ``../shared/data`` beside the repository unless a folder is named.
"""

import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from playwright.sync_api import Page, sync_playwright

import hedgerow as hr
from hedgerow.cli import run

DOCS = Path(__file__).parent
DATA = DOCS.parents[1] / "shared" / "data"
CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
BLOCKS = ["state", "county", "tract", "block_group", "block"]
DISTRICTS = {"region": "nuts1", "subregion": "nuts2", "district": "lad"}


def commuting(data: Path, folder: Path) -> None:
    """Trips from every district to every other one."""
    areas = pl.read_parquet(data / "od_uk_lad_2011" / "geo.parquet", columns=[*DISTRICTS.values()])
    areas = areas.rename({code: level for level, code in DISTRICTS.items()})
    axes = [
        hr.Axis.from_frame(
            end, areas, [*DISTRICTS], columns=[f"{end[0]}_{code}" for code in DISTRICTS.values()]
        )
        for end in ("origin", "destination")
    ]
    tree = hr.Tree(axes, refine=["destination", "origin"])
    counts = hr.Counts.from_frame(tree, data / "od_uk_lad_2011" / "od.parquet", count="count")
    budget, allocation = hr.EpsilonDelta("1", "1e-8"), hr.Optimal(objective="released")
    plan = hr.make_plan(
        tree, budget=budget, neighbours=hr.Replace(), allocation=allocation, measure=hr.All()
    )
    plan = plan.described(hr.Description(title="Journeys to work, 2011", unit="commuters"))
    hr.release(counts, plan, estimator=hr.Euclidean(), directory=folder)


def census(data: Path, folder: Path) -> None:
    """People by block."""
    frame = pl.read_parquet(data / "census_us_block" / "wa_2010.parquet")
    tree = hr.Tree([hr.Axis.from_frame("geography", frame, BLOCKS)])
    counts = hr.Counts.from_frame(tree, frame.select(*BLOCKS, "pop"), count="pop")
    allocation = hr.Optimal(objective="released", importance=hr.PerLevel())
    budget = hr.EpsilonDelta("1", "1e-10")
    plan = hr.make_plan(tree, budget=budget, allocation=allocation, measure=hr.All())
    plan = plan.described(hr.Description(title="Residents of Washington, 2010", unit="residents"))
    hr.release(counts, plan, estimator=hr.Euclidean(), directory=folder)


def regions(tab: Page) -> None:
    """The matrix of regions, with what is said of one cell."""
    tab.get_by_role("button", name="matrix", exact=True).click()
    tab.locator("#explorer .matrix .cell").nth(26).hover()


def blocks(tab: Page) -> None:
    """Down to a block group, with what is said of one block."""
    for _ in BLOCKS[:-1]:
        heading = tab.locator("#answer h2").inner_text()
        tab.locator("#explorer .tile").first.click()
        tab.wait_for_function(
            "(words) => document.querySelector('#answer h2').innerText !== words", arg=heading
        )
    tab.locator("#explorer .tile").nth(1).hover()


SAID = """
[describe]
title = "Residents of the state, by county, tract and block"
unit = "people"
publisher = "A worked example of Hedgerow on invented counts"
period = "2026"
"""


def planning(tab: Page) -> None:
    """The planning page of the census that `hedgerow example` writes, from its head on."""
    with TemporaryDirectory() as folder:
        page = Path(folder) / "plan.html"
        run(["example", "census", folder])
        with (Path(folder) / "release.toml").open("a") as file:
            file.write(SAID)
        run(["plan", str(Path(folder) / "release.toml"), "--page", str(page)])
        tab.goto(page.as_uri())
        tab.wait_for_selector("#rows .row")
        tab.wait_for_timeout(500)
        tab.screenshot(path=DOCS / "planning_page.png")


PICTURES: dict[str, tuple[Callable[[Path, Path], None], Callable[[Page], None]]] = {
    "report_commuting.png": (commuting, regions),
    "report_census.png": (census, blocks),
}


def main(data: Path) -> None:
    """Release, open, walk, draw."""
    with TemporaryDirectory() as folder, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, (release, walk) in PICTURES.items():
            out = Path(folder) / name
            release(data, out)
            size = {"width": 1120, "height": 1040}
            tab = browser.new_page(viewport=size, reduced_motion="reduce")
            tab.goto((out / "report.html").as_uri())
            tab.wait_for_selector("#explorer[data-ready]")
            walk(tab)
            tab.evaluate("scrollTo(0, 0)")
            tab.wait_for_timeout(500)
            tab.screenshot(path=DOCS / name)
        planning(browser.new_page(viewport={"width": 1120, "height": 1180}))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DATA)
