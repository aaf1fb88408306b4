"""What `make` sets up, and on which Pythons."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.parts import MAKE

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", "docs/index.md", "CONTRIBUTING.md"]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def supported():
    """The Pythons of the Makefile: pairs of numbers."""
    versions = re.search(r"^PYTHONS := (.*)$", text_of("Makefile"), re.MULTILINE)[1].split()
    return [tuple(map(int, version.split("."))) for version in versions]


def test_package_and_makefile_name_the_same_pythons():
    project = tomllib.loads(text_of("pyproject.toml"))["project"]
    first, *_, (three, last) = pythons = supported()
    assert pythons == [(three, minor) for minor in range(first[1], last + 1)]
    assert project["requires-python"] == f">={three}.{first[1]},<{three}.{last + 1}"
    named = [each.rpartition(" :: ")[2] for each in project["classifiers"]]
    versions = [name for name in named if re.fullmatch(r"3\.\d+", name)]
    assert versions == [f"{three}.{minor}" for _, minor in pythons]


def test_nothing_says_to_install_by_a_name_that_anyone_could_register():
    """On a public index; where Hedgerow comes from is its own checkout."""
    texts = [*(ROOT / "src").rglob("*.py"), *map(ROOT.joinpath, PAGES)]
    for ending in ("md", "toml", "ipynb"):
        texts += (ROOT / "docs").rglob(f"*.{ending}")
    named = r"pip3? install (?!-e )[^\n`]*(?<![\w/.-])hedgerow"
    assert not [path for path in texts if re.search(named, path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES)
def test_pages_name_the_same_pythons(page):
    *most, last = [".".join(map(str, pair)) for pair in supported()]
    assert f"Python {', '.join(most)} or {last}" in " ".join(text_of(page).split())


@MAKE.needed
def test_another_python_is_refused_in_one_sentence_before_anything_is_installed(tmp_path):
    surroundings = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run(
        ["make", "setup", f"VENV={tmp_path}/venv", "PYTHONS=2.6 2.7"],
        cwd=ROOT, capture_output=True, text=True, check=False, env=surroundings,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if not line.startswith("make: ")]
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(said) == 1
    assert re.fullmatch(
        r"Hedgerow needs Python 2\.6, 2\.7, and \S+ is 3\.\d+: make clean, and make "
        r"PYTHON=python2\.7", said[0],
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == []
