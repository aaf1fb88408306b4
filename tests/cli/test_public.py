"""`hedgerow plan` with public facts: what they leave, beside the promise and no part of it."""

import json
import shutil

import polars as pl
import pytest

from hedgerow.cli import commands
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


def test_the_plan_prints_what_is_public_and_that_it_is_no_restriction(succeeds, file):
    out = succeeds("plan", file)
    said = " ".join(out.split())
    assert "do not restrict the promise" in said
    assert "zeros kind prison: 1 of 3 attribute cells holds nobody" in said
    assert "2 rows by block × kind; 7 of 9 cells hold nobody; 1 lower bound" in said
    assert "Together, 2 of 9 finest cells may hold records." in said
    without = file.read_text().replace(BOTH, "")
    file.write_text(without)
    plain = succeeds("plan", file)
    assert "Public facts" not in plain


def test_the_promise_is_that_of_the_plan_without_facts(succeeds, file):
    found = json.loads(succeeds("plan", file, "--json"))
    file.write_text(file.read_text().replace(BOTH, ""))
    without = json.loads(succeeds("plan", file, "--json"))
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


def with_people(file, rows):
    """Write the confidential table: records of (block, kind)."""
    people = pl.DataFrame(rows, {"block": pl.String, "kind": pl.String}, orient="row")
    people.write_csv(file.parent / "people.csv")


def seen(run, file):
    """What a release without a terminal says and leaves, but for what is drawn at random."""
    code, out, err = run("release", file)
    manifest = json.loads((file.parent / "out" / "manifest.json").read_text())
    names = sorted(
        str(path.relative_to(file.parent / "out")) for path in (file.parent / "out").rglob("*")
    )
    shutil.rmtree(file.parent / "out")
    words = [line for line in out.splitlines() if not line.startswith("Released")]
    return code, words, err, manifest["plan"], manifest["promise"], sorted(manifest), names


def test_whether_a_list_equals_the_table_is_told_on_a_terminal_and_changes_nothing(
    run, run_on_terminal, file
):
    """Who may name the list could otherwise ask of any cell whether somebody is in it."""
    file.write_text(file.read_text() + '[output]\ndirectory = "out"\n')
    found = {}
    for name, more in {"equal": [], "other": [("A1", "nursing")]}.items():
        with_people(file, [("A1", "home"), ("B1", "nursing"), ("B1", "nursing"), *more])
        found[name] = seen(run, file)
        assert "exactly" not in found[name][2]
        code, _, err = run_on_terminal("release", file)
        shutil.rmtree(file.parent / "out")
        said = "leaves exactly the cells in which the table has records" in " ".join(err.split())
        assert (code, said) == (0, name == "equal")
    assert found["equal"] == found["other"]


def test_nothing_is_compared_where_there_is_no_terminal(succeeds, file, monkeypatch):
    """Else a failure of the comparison, or its time, would depend on the table."""
    file.write_text(file.read_text() + '[output]\ndirectory = "out"\n')
    with_people(file, [("A1", "home"), ("B1", "nursing")])

    def compared(*_):
        raise AssertionError

    monkeypatch.setattr(commands, "copies_of_the_table", compared)
    succeeds("release", file)


@pytest.mark.parametrize("failure", [MemoryError, RuntimeError, KeyboardInterrupt])
def test_a_comparison_that_fails_on_a_terminal_ends_no_release(
    run_on_terminal, file, monkeypatch, failure
):
    file.write_text(file.read_text() + '[output]\ndirectory = "out"\n')
    with_people(file, [("A1", "home"), ("B1", "nursing")])

    def fails(*_):
        raise failure

    monkeypatch.setattr(commands, "copies_of_the_table", fails)
    code, said, err = run_on_terminal("release", file)
    assert (code, "Next: hedgerow check" in said) == (0, True)
    told = f"public files were not compared with the table: {failure.__name__}" in err
    assert told == (failure is not KeyboardInterrupt)


def test_a_copy_of_the_table_as_a_public_file_makes_no_plan(refuses, file):
    """It was released without noise, under whatever promise."""
    blocks, kinds = ["A1", "A2", "B1"], ["home", "nursing", "prison"]
    cells = pl.DataFrame(
        [(b, k, 1) for b in blocks for k in kinds], ["block", "kind", "n"], orient="row"
    )
    cells.write_csv(file.parent / "facilities.csv")
    says = 'at_least = "n"\nat_most = "n"'
    text = file.read_text().replace('zeros = "unlisted"\nat_least = "people"', says)
    file.write_text(text.replace('[[public]]\nzeros = { kind = ["prison"] }', ""))
    refuses("[[public]] fixes every count of place.block × kind.kind", "plan", file)


@pytest.mark.parametrize("command", ["plan", "release"])
def test_what_cannot_be_compared_is_said(run, file, command):
    text = file.read_text().replace('"people.csv"', '"hdfs://cluster/people.parquet"')
    file.write_text(text + '[engine]\nname = "spark"\n[output]\ndirectory = "out"\n')
    monkey = ["--expect-plan", "0" * 64] if command == "release" else []
    code, _, err = run(command, file, *monkey)
    assert code == (2 if monkey else 0)
    assert "nothing checked whether a public file of this release" in " ".join(err.split())
