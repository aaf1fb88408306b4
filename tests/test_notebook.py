"""The notebook of the documentation runs, shows what it says, and states its guarantee whole."""

import html
import re
from pathlib import Path

import nbformat
import pytest

from tests.notebooks import executed

DOCS = Path(__file__).parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.glob("*.ipynb"))
PICTURE = re.compile(r"base64,[A-Za-z0-9+/=]+")
NOISY = {
    r"\b(?:firm|rough|mostly noise)(?:, contradicted)?": "reliability",
    r"\b(?:Aller|Brue|Corve|Dart)\b": "place",
    r"[0-9][0-9,.]*(?:e-?[0-9]+)?": "#",
    r"[ ─═]+": " ",  # as wide as the longest number
}
"""What fresh noise may change: counts, which of them are the largest, and how reliable they are."""


def shown(cell, *, noisy):
    """What a cell showed by its kinds, without pictures and what fresh noise changes."""
    kinds = {}
    for output in cell.get("outputs", ()):
        assert output.output_type != "error"
        data = output.get("data") or {output.get("name"): output.get("text")}
        for kind, text in data.items():
            kinds[kind] = kinds.get(kind, "") + PICTURE.sub("base64,", text)
    for pattern, word in NOISY.items() if noisy else ():
        kinds = {kind: re.sub(pattern, word, text) for kind, text in kinds.items()}
    return kinds


def text_of(cell):
    every = "".join(output.get("data", {}).get("text/html", "") for output in cell.outputs)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", every)).split())


def test_there_is_a_notebook():
    assert [path.name for path in NOTEBOOKS] == ["notebook.ipynb"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the libraries of kernels
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_is_kept_of_it(path, tmp_path):
    now, kept = executed(path, tmp_path), nbformat.read(path, as_version=4)
    assert [cell.source for cell in now.cells] == [cell.source for cell in kept.cells]
    noisy = False
    for mine, theirs in zip(now.cells, kept.cells, strict=True):
        noisy = noisy or "hr.release(" in mine.source  # and all that follows
        assert shown(mine, noisy=noisy) == shown(theirs, noisy=noisy), mine.source
    assert noisy


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_guarantee_in_a_notebook_is_whole(path):
    """Wherever it says ε or ρ of a release, it says between which tables."""
    stating = [
        text_of(cell)
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "code" and "satisfies" in text_of(cell)
    ]
    assert len(stating) >= 3, "the plan, the release, and one of its tables"
    assert all("with or without any one record" in text for text in stating)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_paths_times_and_errors(path):
    text = path.read_text()
    assert not re.search(r"/(?:tmp|work|home)/", text)
    assert '"execution": {' not in text
    assert '"stderr"' not in text
