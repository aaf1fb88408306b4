"""Debian's Chromium, without windows, for tests of pages.

It sees the fonts that matplotlib brings and no other: without any font it crashes, and with others
lines would break elsewhere.
"""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

from tests.parts import BROWSER

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

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>serif</family><prefer><family>DejaVu Serif</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


@contextmanager
def chromium():
    """A browser, closed afterwards."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        listed = Path(folder, "fonts.conf")
        fonts = Path(mpl.get_data_path(), "fonts", "ttf")
        listed.write_text(FONTS.format(fonts=fonts, cache=folder), encoding="utf-8")
        opened = driver.chromium.launch(
            executable_path=BROWSER, args=ARGUMENTS, timeout=PATIENCE,
            env={**os.environ, "FONTCONFIG_FILE": str(listed)},
        )  # fmt: skip
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
