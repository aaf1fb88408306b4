"""The planning page: how soon it answers a move of its slider, beside a plan made anew.

Run as ``python -m benchmarks.run planning``; needs playwright, and Chromium at /usr/bin/chromium.

Compare: a page of 20 cuboids is to open within 1 s and to answer within 50 ms. The other way to
see what another budget is worth is `hedgerow.make_plan` with `hedgerow.forecast`, in a process
that has its code loaded; no budget is asked for twice.
"""

import tempfile
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from playwright.sync_api import Browser, sync_playwright

import hedgerow as hr
from benchmarks.clock import Clock
from benchmarks.page import Benchmark, Ratio
from benchmarks.report import ARGUMENTS, CHROMIUM
from hedgerow.plan.page.page import planning_page
from studies.page import markdown
from studies.releases import plan_of, within

DEPTHS = ((3, 4), (6, 6), (3, 3, 4))
"""Of the axes of the cubes: 20, 49 and 80 cuboids."""

LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd"
MOVES = """() => { const dial = document.getElementById("value"), all = [];
const steps = Number(dial.max) + 1;
for (let k = 0; k < 61; k++) {
  dial.value = 5 * k % steps;
  const begun = performance.now();
  dial.dispatchEvent(new Event("input"));
  document.documentElement.getBoundingClientRect();
  all.push(performance.now() - begun);
}
return all; }"""
"""Moves of the slider with the layout that follows, in milliseconds."""


def cube(depths: tuple[int, ...]) -> hr.Tree:
    """A tree of an axis for each depth, every node with two nodes below."""
    axes = []
    for name, depth in zip("abc", depths, strict=False):
        codes = ["".join(path) for path in product("01", repeat=depth)]
        columns = {f"{name}{k}": [code[: k + 1] for code in codes] for k in range(depth)}
        axes.append(hr.Axis.from_frame(name, pl.DataFrame(columns), list(columns)))
    return hr.Tree(axes)


def planned(tree: hr.Tree, epsilon: Fraction) -> hr.Plan:
    """The plan whose page is looked at."""
    return plan_of(tree, within(epsilon), hr.All(), workload=hr.Cube())


def made(plan: hr.Plan) -> str:
    """The page, as `hedgerow plan --page` makes it."""
    return planning_page(plan, hr.__version__)


def anew(question: tuple[hr.Tree, Fraction]) -> pl.DataFrame:
    """What another budget is worth, without the page."""
    return hr.forecast(planned(*question))


def moves(browser: Browser, path: Path, *, share: bool) -> tuple[float, list[float]]:
    """When the page was loaded, and how long each move took (ms); with a division of one's own."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.goto(path.as_uri())
    loaded = tab.evaluate(LOADED)
    if share:
        tab.locator("#levers input >> nth=2").evaluate(
            "(lever) => { lever.value = 400; lever.dispatchEvent(new Event('input')); }"
        )
    taken: list[float] = tab.evaluate(MOVES)
    tab.close()
    return loaded, taken


def of_cube(
    browser: Browser, folder: Path, depths: tuple[int, ...], clock: Clock
) -> dict[str, Any]:
    """The figures of one page."""
    tree = cube(depths)
    plan = planned(tree, Fraction(1))
    seconds, text = clock.timed("page", made, plan)
    path = folder / "plan.html"
    path.write_text(text, encoding="utf-8")
    loaded, given = moves(browser, path, share=False)
    _, own = moves(browser, path, share=True)
    again = [
        clock.timed(f"make_plan {depths}", anew, (tree, Fraction(31 + k, 29)))[0].wall
        for k in range(5)
    ]
    return {
        "cuboids": len(plan.levels),
        "kilobytes": path.stat().st_size / 1e3,
        "seconds_to_make": seconds.wall,
        "opened_ms": loaded,
        "move_ms": np.quantile(given, [0.5, 0.95]).tolist(),
        "move_of_an_own_division_ms": np.quantile(own, [0.5, 0.95]).tolist(),
        "plan_made_anew_ms": 1e3 * min(again),
    }


def measured() -> Benchmark:
    """Pages of three cubes."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        found = [of_cube(browser, Path(place), depths, clock) for depths in DEPTHS]
        browser.close()
    rows = [
        [
            one["cuboids"],
            f"{one['kilobytes']:.0f} kB",
            f"{one['seconds_to_make']:.1f} s",
            f"{one['opened_ms']:.0f} ms",
            *(
                f"{one[moved][0]:.0f}, {one[moved][1]:.0f} ms"
                for moved in ("move_ms", "move_of_an_own_division_ms")
            ),
            f"{one['plan_made_anew_ms']:.0f} ms",
        ]
        for one in found
    ]
    head = (
        "cuboids | page | to make it | opened | a move, median and 95 % | "
        "of one's own division | a plan made anew"
    )
    text = "\n".join([
        "Pages of cubes in headless Chromium, opened from disk. A move is the script that one step",
        "of the budget's slider starts, with the layout that follows, 61 times; then the same",
        "with somebody's own division of the budget.\n",
        markdown(head, rows),
    ])  # fmt: skip
    ratios = [
        Ratio(
            f"{one['cuboids']} cuboids at another budget",
            "make_plan and forecast",
            one["move_ms"][0] / 1e3,
            one["plan_made_anew_ms"] / 1e3,
        )
        for one in found
    ]
    return Benchmark("The planning page", text, ratios, figures={"pages": found})
