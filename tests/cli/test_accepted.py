"""Criteria after a release: `check` and the page without the table, `compare` with it."""

import numpy as np
import polars as pl
import pytest

FILE = """
[table]
source = "people.csv"
count = "people"
[[axis]]
name = "place"
areas = "areas.csv"
levels = ["region", "town"]
[privacy]
neighbours = "add-remove"
rho = "1/4"
[estimate]
measure = "all"
[output]
directory = "out"
"""
CRITERIA = """
[[accept]]
cuboid = "region"
within = "1 %"
from = 1000
records = 30_000
[[accept]]
cuboid = "town"
within = "1/2"
cells = "0.95"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accepted")
    rng = np.random.default_rng(3)
    rows = [
        (f"r{i}", f"r{i}t{j}", int(rng.integers(200, 3000))) for i in range(3) for j in range(9)
    ]
    people = pl.DataFrame(rows, schema=["region", "town", "people"], orient="row")
    people.write_csv(folder / "people.csv")
    people.select("region", "town").write_csv(folder / "areas.csv")
    return folder


@pytest.fixture
def released(folder, succeeds, monkeypatch):
    monkeypatch.chdir(folder)

    def made(criteria):
        (folder / "release.toml").write_text(FILE + criteria, encoding="utf-8")
        if not (folder / "out").exists():
            succeeds("release", "release.toml")

    yield made
    (folder / "out").rename(folder / f"done{len(list(folder.iterdir()))}")


def joined(words):
    return " ".join(words.split())


def test_check_tells_without_the_table_and_compare_of_the_truth(folder, released, succeeds):
    released(CRITERIA)
    by_truth = joined(succeeds("compare", "release.toml"))
    (folder / "people.csv").rename(folder / "hidden.csv")
    said = joined(succeeds("check", "out"))
    (folder / "hidden.csv").rename(folder / "people.csv")
    assert said.startswith("All ")
    assert "Criterion 1: all region within 1 % of counts from 1,000, with probability" in said
    assert "they keep it, too. Sizes: released counts." in said
    assert "Criterion 2: 95 % of town within 0.5 records" in said
    assert "times the budget" in said[said.index("Criterion 2") :]
    assert "Criteria, by the truth (confidential):" in by_truth
    assert "3 of 3 cells keep it, 3 must: kept." in by_truth
    assert "of 27 cells keep it, 26 must: not kept." in by_truth
    assert "to draw another one, because of these lines is outside the promise" in by_truth
    assert "Each try is charged" in by_truth
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "kept (99.9 %)</bdi></dt><dd><p><bdi>region: every count within 1 %" in page
    assert "not kept (0 %)</bdi></dt><dd><p><bdi>town: 95 of 100 counts within 0.5" in page


def test_without_criteria_nothing_is_said_of_them(folder, released, succeeds):
    released("")
    assert "Criteri" not in succeeds("check", "out") + succeeds("compare", "release.toml")
    assert 'id="criteria"' not in (folder / "out" / "report.html").read_text(encoding="utf-8")
