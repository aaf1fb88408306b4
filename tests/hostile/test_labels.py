"""Labels and names with every oddity of Unicode: released as they are, or refused in a sentence."""

import polars as pl
import pytest

from hedgerow.release.release import read_release
from tests.hostile.commands import ends_well, ran, write
from tests.hostile.mutations import csv, parquet, toml

LABELS = {
    "right to left": ["עברית", "العربية", "\u202eabc\u202c", "\u200fx"],
    "combining": ["a\u0308", "a\u0308\u0301", "\u0301", "\u0345"],
    "twins of normalisation": [
        "\u00e9",
        "e\u0301",
        "\u00c5",
        "\u212b",
        "A\u030a",
        "\ufb01",
        "fi",
        "\u03a9",
        "\u2126",
    ],
    "joined": ["👩\u200d👩\u200d👧", "👩👩👧", "\u200d", "🏴\U000e0067\U000e007f", "1\ufe0f\u20e3"],
    "unseen": ["\u200b", "\u2060", "\ufeff", "\ufeffa", "\u00ad", "\u3164", "\U000e0001", "\x7f"],
    "line ends": ["\r", "a\rb", "a\r", "\n", "\r\n", "\x85", "\u2028", "\u2029", "\x0b", "\x0c"],
    "spaces": [" ", "  ", " a", "a ", "\u00a0", "\u3000", "\t"],
    "control": ["\x01", "\x1b[31mred\x1b[0m", "\x08", "\x1a", "\uffff", "\U0010ffff", "\ue000"],
    "markup": ["[bold]x[/bold]", "[/]", "<b>&amp;", "{}", "%s", "$(id)", "\\", "\\n", '"', "'"],
    "not numbers": ["NaN", "null", "NULL", "NA", "None", "true", "-0", "1e5", "007", "0x1", "½"],
    "case": ["I", "i", "İ", "ı", "ß", "SS", "ss", "ẞ"],
    "long": ["x" * 10_000, "x" * 10_001, "é" * 10_000],
}
EVERY = [label for kind in LABELS.values() for label in kind]
ZERO = ["\0", "a\0", "a\0b", "a"]


def spec(table, areas, level="code"):
    axis = {"name": "where", "levels": [level], "areas": areas}
    return {
        "table": {"source": table, "count": "people"},
        "axis": [axis],
        "privacy": {"neighbours": "replace", "rho": 50},
    }


def journey(folder, files, described):
    """The labels that a release of these files has."""
    write(folder, {**files, "release.toml": toml(described).encode()})
    assert ends_well(folder, "plan", folder / "release.toml") == 0
    assert ends_well(folder, "release", folder / "release.toml", makes="manifest.json") == 0
    assert ends_well(folder, "check", folder / "out") == 0
    return pl.read_parquet(folder / "out" / "counts" / "cuboid=1.parquet")


def test_labels_are_released_as_they_are(tmp_path):
    labels = [*EVERY, *ZERO]
    assert len(set(labels)) == len(labels)
    counts = {"code": labels, "people": [1_000] * len(labels)}
    files = {"table.parquet": parquet(counts), "areas.parquet": parquet({"code": labels})}
    released = journey(tmp_path, files, spec("table.parquet", "areas.parquet"))
    assert sorted(released["code"]) == sorted(labels)


def test_labels_in_csv_are_released_as_they_are(tmp_path):
    counts = {"code": EVERY, "people": [1_000] * len(EVERY)}
    files = {"table.csv": csv(counts), "areas.csv": csv({"code": EVERY})}
    released = journey(tmp_path, files, spec("table.csv", "areas.csv"))
    assert sorted(released["code"]) == sorted(EVERY)


@pytest.mark.parametrize("kind", LABELS)
def test_a_name_of_a_level_is_kept_or_refused(tmp_path, kind):
    name = LABELS[kind][0]
    counts = {name: ["a", "b"], "people": [1_000, 2_000]}
    files = {"table.parquet": parquet(counts), "areas.parquet": parquet({name: ["a", "b"]})}
    described = spec("table.parquet", "areas.parquet", name)
    write(tmp_path, {**files, "release.toml": toml(described).encode()})
    code = ends_well(tmp_path, "release", tmp_path / "release.toml", makes="manifest.json")
    if code == 0:
        assert ran("check", tmp_path / "out")[0] == 0
        assert read_release(tmp_path / "out").level(depth=1).columns[0] == name
