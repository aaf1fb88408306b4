"""The page of a release of a million counts: its size, and when a browser first paints it.

Run as ``python -m benchmarks.report``; needs playwright, and Chromium at /usr/bin/chromium.

Compare: the page is to be below 5 MB and to be painted within 2 s, opened from disk.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from playwright.sync_api import sync_playwright

import hedgerow as hr
from benchmarks.page import Benchmark, publish
from hedgerow.release.report import page

FAMILIES = (50, 20, 20, 75)
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PAINTS = "performance.getEntriesByType('paint').map((one) => one.startTime)"


def population() -> hr.Counts:
    """Synthetic counts of 1,500,000 blocks, most of them inhabited."""
    rng, leaves = np.random.default_rng(1), int(np.prod(FAMILIES))
    frame, parent = {}, np.zeros(leaves, dtype=np.int64)
    for k, width in enumerate(("02", "03", "06", "04")):
        below = int(np.prod(FAMILIES[k + 1 :]))
        number = np.arange(leaves) // below
        frame[f"level{k}"] = [f"{at:{width}d}" for at in (number - parent * FAMILIES[k]).tolist()]
        parent = number
    levels = list(frame)
    codes = pl.DataFrame(frame).select(
        pl.concat_str(levels[: k + 1]).alias(name) for k, name in enumerate(levels)
    )
    tree = hr.Tree([hr.Axis.from_frame("geography", codes, levels)])
    people = np.floor(rng.lognormal(3.5, 1.2, leaves)).astype(np.int64)
    return hr.Counts.from_leaves(tree, (np.arange(leaves, dtype=np.int32),), people)


def opened(path: Path) -> dict[str, float]:
    """When the page was painted and its counts were there: seconds."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        tab = browser.new_page()
        begun = time.perf_counter()
        tab.goto(path.as_uri() + "#at-3-500-2")
        tab.wait_for_selector("#explorer[data-ready]")
        ready = time.perf_counter() - begun
        paints = tab.evaluate(PAINTS)
        browser.close()
    return {"first_paint": max(paints) / 1e3, "finest_counts_shown": ready}


def measured() -> Benchmark:
    """Its size, the time to make it and to paint it."""
    counts = population()
    plan = hr.make_plan(counts.tree, budget=hr.EpsilonDelta("1", "1e-10"))
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder, path = Path(place) / "release", Path(place) / "report.html"
        made = hr.release(counts, plan, directory=folder)
        figures["counts"] = sum(len(made.level(depth=t)) for t in range(counts.tree.depth + 1))
        begun = time.perf_counter()
        text = page(folder, plan, hr.Chebyshev(), hr.__version__)
        figures["seconds_to_make"] = time.perf_counter() - begun
        path.write_text(text, encoding="utf-8")
        figures["megabytes"] = path.stat().st_size / 1e6
        figures |= opened(path)
    text = (
        f"A release of {figures['counts']:,} counts makes a page of "
        f"{figures['megabytes']:.2f} MB in "
        f"{figures['seconds_to_make']:.1f} s; headless Chromium, opened from disk, first paints it "
        f"after {figures['first_paint']:.2f} s and shows the finest counts "
        f"{figures['finest_counts_shown']:.2f} s after it was opened."
    )
    return Benchmark("The page of a release", text, figures=figures)


def main() -> None:
    """Measure and keep the figures."""
    publish("report", measured)


if __name__ == "__main__":
    main()
