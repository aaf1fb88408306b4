"""The page of a release of a million counts: its size, and when a browser first paints it.

Run as ``python -m benchmarks.run report``; needs playwright, and Chromium at /usr/bin/chromium.
``python -m benchmarks.report DIRECTORY`` makes the release alone: that is done in a process of its
own, as a release writes its page too, and what is timed is to make it for the first time.

Compare: the page is to be below 5 MB and to be painted within 2 s, opened from disk.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from playwright.sync_api import sync_playwright

import hedgerow as hr
from benchmarks.clock import Clock
from benchmarks.machine import ROOT
from benchmarks.page import Benchmark
from hedgerow.release.directory.manifest import read_manifest
from hedgerow.release.directory.stored import stated_plan
from hedgerow.release.page.report import page
from studies.releases import plan_of

FAMILIES, WIDTHS = (50, 20, 20, 75), (2, 3, 6, 4)
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PAINTS = "performance.getEntriesByType('paint').map((one) => one.startTime)"


def population() -> hr.Counts:
    """Synthetic counts of 1,500,000 blocks, most of them inhabited."""
    rng = np.random.default_rng(1)
    leaves = int(np.prod(FAMILIES))
    places = np.unravel_index(np.arange(leaves), FAMILIES)
    parts = [pl.Series(place).cast(pl.String) for place in places]
    levels = [f"level{k}" for k in range(len(FAMILIES))]
    codes = pl.DataFrame(
        [part.str.zfill(width) for part, width in zip(parts, WIDTHS, strict=True)], schema=levels
    ).select(pl.concat_str(levels[: k + 1]).alias(name) for k, name in enumerate(levels))
    tree = hr.Tree([hr.Axis.from_frame("geography", codes, levels)])
    people = np.floor(rng.lognormal(3.5, 1.2, leaves)).astype(np.int64)
    return hr.Counts.from_leaves(tree, (np.arange(leaves, dtype=np.int32),), people)


def opened(path: Path) -> dict[str, float]:
    """When the page was painted and its counts were there: seconds."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        tab = browser.new_page()
        begun = time.perf_counter()
        tab.goto(path.as_uri() + f"#place={'0' * sum(WIDTHS[:3])}")
        tab.wait_for_selector("#explorer[data-ready]")
        ready = time.perf_counter() - begun
        paints = tab.evaluate(PAINTS)
        browser.close()
    return {"first_paint": max(paints) / 1e3, "finest_counts_shown": ready}


def release(folder: Path) -> None:
    """Of all counts."""
    counts = population()
    plan = plan_of(counts.tree, hr.EpsilonDelta("1", "1e-10"), hr.Survivors())
    hr.release(counts, plan, directory=folder)


def made(folder: Path) -> str:
    """The page of a release, as `hedgerow report` makes it: the plan is read, and verified."""
    return page(folder, stated_plan(folder, read_manifest(folder)), hr.Chebyshev(), hr.__version__)


def measured() -> Benchmark:
    """Its size, the time to make it and to paint it."""
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "release"
        path = Path(place) / "report.html"
        subprocess.run([sys.executable, "-m", "benchmarks.report", folder], cwd=ROOT, check=True)
        files = (folder / "counts").glob("*.parquet")
        figures["counts"] = sum(pq.read_metadata(file).num_rows for file in files)
        seconds, text = Clock().timed("page", made, folder)
        figures["seconds_to_make"] = seconds.wall
        path.write_text(text, encoding="utf-8")
        figures["megabytes"] = path.stat().st_size / 1e6
        figures |= opened(path)
    text = (
        f"A release of {figures['counts']:,} counts makes a page of "
        f"{figures['megabytes']:.2f} MB in {figures['seconds_to_make']:.1f} s, in a process that "
        f"has neither made the release nor priced its plan before; headless Chromium, opened from "
        f"disk, first paints it after {figures['first_paint']:.2f} s and shows the finest counts "
        f"{figures['finest_counts_shown']:.2f} s after it was opened."
    )
    return Benchmark("The page of a release", text, figures=figures)


if __name__ == "__main__":
    release(Path(sys.argv[1]))
