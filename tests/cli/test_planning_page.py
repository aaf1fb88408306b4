"""`hedgerow plan --page`: what it writes, and what it never says."""

import json
import re

import polars as pl
import pytest

from hedgerow import cli

FILE = """
[table]
source = "secret-source.csv"
count = "people"
[[axis]]
name = "place"
areas = "areas.csv"
levels = ["region", "town"]
[privacy]
neighbours = "add-remove"
epsilon = "1"
delta = "1e-8"
[output]
directory = "out"
"""
LEDGER = """
[ledger]
database = "ledger.sqlite"
dataset = "register"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(f"r{i}", f"r{i}t{j}") for i in range(4) for j in range(3 + i)]
    areas = pl.DataFrame(rows, schema=["region", "town"], orient="row")
    areas.write_csv("areas.csv")
    (tmp_path / "release.toml").write_text(FILE, encoding="utf-8")
    return tmp_path


def facts_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="facts">(.*?)</script>', text, re.DOTALL)[1])


def test_the_page_is_made_of_public_facts_and_the_table_need_not_be_there(folder, capsys):
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    assert "Page: plan.html" in capsys.readouterr().out
    text = (folder / "plan.html").read_text(encoding="utf-8")
    assert "secret" not in text
    assert facts_of(folder / "plan.html")["ledger"] is None
    assert "Internal" not in text


def test_lines_of_the_page_plan_with_the_hash_that_stands_beside_them(folder, capsys):
    assert cli.run(["plan", "release.toml", "--page", "plan.html"]) == 0
    points = facts_of(folder / "plan.html")["points"]
    capsys.readouterr()
    for way in points["divisions"]:
        for place, signed in enumerate(way["hashes"]):
            if signed is None or (way["key"] == "own" and place % 7):
                continue
            text = FILE.replace('epsilon = "1"', f'epsilon = "{points["texts"][place]}"')
            if way["lines"] is not None:
                text += f"[allocation]\n{way['lines']}\n"
            (folder / "other.toml").write_text(text, encoding="utf-8")
            assert cli.run(["plan", "other.toml", "--json"]) == 0
            assert json.loads(capsys.readouterr().out)["sha256"] == signed


def test_with_a_ledger_the_page_is_marked_internal(folder, capsys):
    (folder / "release.toml").write_text(FILE + LEDGER, encoding="utf-8")
    assert cli.run(["ledger", "open", "release.toml", "--rho", "1/2"]) == 0
    assert cli.run(["plan", "release.toml", "--page", "plan.html", "--ledger"]) == 0
    assert "Internal: " in (folder / "plan.html").read_text(encoding="utf-8")
    ledger = facts_of(folder / "plan.html")["ledger"]
    assert (ledger["cap"], ledger["spent"], ledger["symbol"]) == (0.5, 0.0, "ρ")
    capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ledger"], "--ledger goes with --page"),
        (["--page", "plan.pdf"], "must end in .html"),
        (["--page", "areas.csv"], "must end in .html"),
    ],
)
def test_options_that_do_not_fit_are_refused(folder, capsys, options, said):
    del folder
    assert cli.run(["plan", "release.toml", *options]) == 2
    assert said in capsys.readouterr().err
