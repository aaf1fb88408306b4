"""Debian's Chromium, headless, for tests of pages."""

import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE = 180_000  # milliseconds, for a machine that does much else

needs_chromium = pytest.mark.skipif(
    not Path(CHROMIUM).is_file(), reason="needs Chromium, in Debian the package chromium"
)


@contextmanager
def chromium():
    """A browser, closed afterwards."""
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE)
        yield opened
        opened.close()


def show_all(tab):
    """Show all rows and columns of a matrix, and wait until they are drawn."""
    more = tab.get_by_role("button", name="Show all")
    if more.count():
        more.click()
        more.wait_for(state="detached")


def barriers(tab):
    """What axe finds that keeps somebody from using a page as it is now: rules, and where."""
    found = Axe().run(tab).response["violations"]
    return [(each["id"], node["html"]) for each in found for node in each["nodes"]]
