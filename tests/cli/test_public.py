"""`hedgerow plan` with public facts: what they leave, beside the promise and no part of it."""

import json

import polars as pl
import pytest

from tests.spec.test_public_section import BOTH, FILE


@pytest.fixture
def file(tmp_path):
    """A release file with a rule and a list of facilities."""
    areas = {"tract": ["A", "A", "B"], "block": ["A1", "A2", "B1"]}
    kinds = {"kind": ["home", "nursing", "prison"]}
    facilities = {"block": ["A1", "B1"], "kind": ["home", "nursing"], "people": [0, 2]}
    for name, columns in {"areas": areas, "kinds": kinds, "facilities": facilities}.items():
        pl.DataFrame(columns).write_csv(tmp_path / f"{name}.csv")
    text = FILE.format(public=BOTH, cuboids="cube", attribute="true")
    (tmp_path / "release.toml").write_text(text)
    return tmp_path / "release.toml"


def test_the_plan_prints_what_is_public_and_that_it_is_no_restriction(run, file):
    code, out, _ = run("plan", file)
    assert code == 0
    said = " ".join(out.split())
    assert "do not restrict the promise" in said
    assert "zeros kind prison: 1 of 3 attribute cells holds nobody" in said
    assert "2 rows by block × kind; 7 of 9 cells hold nobody; 1 lower bound" in said
    assert "Together, 2 of 9 finest cells may hold records." in said
    without = file.read_text().replace(BOTH, "")
    file.write_text(without)
    code, plain, _ = run("plan", file)
    assert code == 0
    assert "Public facts" not in plain


def test_the_promise_is_that_of_the_plan_without_facts(run, file):
    found = json.loads(run("plan", file, "--json")[1])
    file.write_text(file.read_text().replace(BOTH, ""))
    without = json.loads(run("plan", file, "--json")[1])
    assert found["promise"] == without["promise"]
    assert found["sha256"] != without["sha256"]
    assert list(found["public"][0]) == ["zeros"]
    assert found["public"][1]["columns"] == ["block", "kind"]
    assert "public" not in without


def test_facts_that_contradict_each_other_end_with_2_and_one_sentence(run, file):
    file.write_text(file.read_text().replace('kind = ["prison"]', 'kind = ["nursing"]'))
    code, out, err = run("plan", file)
    assert (code, out) == (2, "")
    said = " ".join(err.split())
    assert "has people = 2 for block 'B1' × kind 'nursing', where [[public]] zeros leaves" in said
