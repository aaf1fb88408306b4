"""`new`: a release file from the names of a table's columns, and from nothing else."""

import os
import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

from hedgerow.spec.release_file import ReleaseFile
from hedgerow.spec.toml_file import parse

HEADER = "Visit,Patient,Hospital,Ward\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text(f"{HEADER}secret-1,secret-2,H1,W1\n")
    return tmp_path


def test_a_file_to_fill_in_holds_nothing_of_the_table(succeeds, here):
    out = succeeds("new", "visits.csv")
    assert "Replace the placeholders in <…>" in out
    text = (here / "release.toml").read_text()
    assert '"Visit"' not in text  # a table without a header has a record there
    assert "secret" not in text + out
    found = tomllib.loads(text)
    assert found["table"]["source"] == "visits.csv"
    assert found["axis"][0]["levels"] == ["<coarsest column>", "<finest column>"]


def to_fill_in(run, here):
    """What `plan` asks for, after the columns of one axis."""
    code, out, err = run("plan", here / "release.toml")
    assert (code, out) == (2, "")
    before, said, keys = " ".join(err.split()).partition("replace the placeholders in <…>: ")
    assert (before, bool(said)) == ("Error: ", True)
    return keys.split(", ")


def test_a_plan_asks_for_everything_that_is_to_be_filled_in(run, here):
    run("new", "visits.csv", "--unit", "Patient")
    axis = [f"[[axis]] 1 {key}" for key in ("name", "levels", "areas")]
    privacy = ["[privacy] contributions", "[privacy] epsilon"]
    assert to_fill_in(run, here) == [*axis, *privacy]
    file = here / "release.toml"
    file.write_text(file.read_text().replace("# count = ", "count = ", 1))
    assert to_fill_in(run, here) == [*axis, *privacy]
    (here / "release.toml").unlink()
    run("new", "visits.csv", "--axis", "place=Hospital,Ward", "--epsilon", "1")
    file.write_text(file.read_text().replace("# count = ", "count = ", 1))
    assert to_fill_in(run, here) == ["[table] count"]
    file.write_text(file.read_text().replace('"<a column>"', '"<b>"', 1))
    assert parse(file, ReleaseFile).table.count == "<b>"


def test_how_many_records_of_each_are_kept_is_never_guessed(run, succeeds, here):
    options = ("--axis", "place=Hospital,Ward", "--unit", "Patient", "--epsilon", "1")
    assert "Replace the placeholders in <…>" in succeeds("new", "visits.csv", *options)
    assert to_fill_in(run, here) == ["[privacy] contributions"]
    assert 'contributions = "<most records of one Patient>"' in (here / "release.toml").read_text()
    code, out, _ = run("new", "visits.csv", "r.toml", *options, "--contributions", 3)
    assert (code, "Replace the" in out) == (0, False)
    assert parse(here / "r.toml", ReleaseFile).privacy.contributions == 3


def test_nothing_new_is_written_within_a_release(refuses, here):
    (here / "out").mkdir()
    (here / "out" / "manifest.json").write_text('{"format": "hedgerow-release-4"}')
    (here / "link").symlink_to(here / "out")
    commands = [
        ("new", "visits.csv", "out/r.toml"), ("new", "visits.csv", "link/r.toml"),
        ("example", "incomes", "out"), ("example", "incomes", "out/ex"),
    ]  # fmt: skip
    for command in commands:
        refuses("lies within the release", *command)
    assert [path.name for path in (here / "out").iterdir()] == ["manifest.json"]


def test_a_value_that_differs_changes_nothing(run, here):
    run("new", "visits.csv", "a.toml")
    (here / "visits.csv").write_text(f"{HEADER}" + "x,y,H2,W9\n" * 5)
    run("new", "visits.csv", "b.toml")
    texts = [(here / name).read_text().replace(name, "") for name in ("a.toml", "b.toml")]
    assert texts[0] == texts[1]


def test_with_all_options_the_file_is_planned_and_released_as_it_is(succeeds, here):
    out = succeeds(
        "new",
        "visits.csv",
        "sub.toml",
        "--axis",
        "place=Hospital,Ward",
        "--unit",
        "Patient",
        "--epsilon",
        "1/2",
        "--delta",
        "1e-9",
        "--contributions",
        "1",
    )
    assert "<" not in out + (here / "sub.toml").read_text()
    assert "# [describe]" in (here / "sub.toml").read_text()
    found = parse(here / "sub.toml", ReleaseFile)
    assert (found.table.unit, found.privacy.epsilon) == ("Patient", "1/2")
    (here / "place.csv").write_text("Hospital,Ward\nH1,W1\nH1,W2\n")
    succeeds("release", "sub.toml")
    succeeds("check", "out")


def test_a_table_of_counts_and_several_axes(succeeds, here):
    pl.DataFrame({"o": ["a"], "d": ["b"], "trips": [1]}).write_parquet(here / "trips.parquet")
    (here / "files").mkdir()
    succeeds(
        "new",
        "trips.parquet",
        "files/r.toml",
        "--axis",
        "origin=o",
        "--axis",
        "destination=d",
        "--count",
        "trips",
        "--epsilon",
        "1",
    )
    found = parse(here / "files" / "r.toml", ReleaseFile)
    assert [axis.name for axis in found.axis] == ["origin", "destination"]
    assert (found.table.source, found.table.count) == ("../trips.parquet", "trips")


@pytest.mark.parametrize(
    "names", [['a"b', "c\\d", "tab\t", "é"], ["line\nbreak", "x\x7f", "#", "]"]], ids=["a", "b"]
)
def test_odd_names_make_a_file_all_the_same(succeeds, here, names):
    pl.DataFrame({name: ["v"] for name in names}).write_parquet(here / "t.parquet")
    succeeds("new", "t.parquet", "--axis", f"x={names[0]}")
    found = tomllib.loads((here / "release.toml").read_text())
    assert found["axis"][0]["levels"] == [names[0]]


REFUSED = {
    "column": (("--unit", "patient"), "no column 'patient'; did you mean 'Patient'?"),
    "axis": (("--axis", "place=Hospitals,Ward"), "no column 'Hospitals'"),
    "axis without columns": (
        ("--axis", "place"),
        "--axis takes NAME=VALUE such as geography=state,c",
    ),
    "both": (("--unit", "Patient", "--count", "Visit"), "leave --count out"),
    "epsilon": (("--epsilon", "nan"), "epsilon"),
    "delta": (("--epsilon", "1", "--delta", "2"), "delta must be in (0, 1)"),
    "delta alone": (("--delta", "0"), "delta must be in (0, 1)"),
    "contributions": (("--unit", "Patient", "--contributions", "0"), "contributions must be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_table_has_not_is_refused(refuses, here, name):
    arguments, message = REFUSED[name]
    refuses(message, "new", "visits.csv", *arguments)
    assert [path.name for path in here.iterdir()] == ["visits.csv"]


def test_a_file_that_is_there_stays(refuses, here):
    (here / "release.toml").write_text("mine")
    refuses("exists already", "new", "visits.csv")
    assert (here / "release.toml").read_text() == "mine"


def test_a_record_in_place_of_a_header_is_refused_and_not_quoted(run, here):
    (here / "visits.csv").write_text("secret-1,17,H1,W1\n")
    code, _, err = run("new", "visits.csv")
    assert code == 2
    assert "whose name is a number; if its first line is a record, put a header before it" in err
    assert "secret" not in err
    assert "17" not in err
    assert not (here / "release.toml").exists()


def test_a_database_is_no_table_with_a_header(run, here):
    code, _, err = run("new", "postgresql://me:secret@server/visits")
    assert (code, "reads the header of a CSV or Parquet file; for a database" in err) == (2, True)
    assert "secret" not in err
    assert [path.name for path in here.iterdir()] == ["visits.csv"]


AXES = ("--axis", "home=Hospital,Ward", "--axis", "work=Place", "--epsilon", "1")


def lists_of(here, wards, places):
    """Public lists of so many wards, two a hospital, and so many places."""
    hospitals, names = ([f"{c}{i // n}" for i in range(wards)] for c, n in (("H", 2), ("W", 1)))
    pl.DataFrame({"Hospital": hospitals, "Ward": names}).write_csv(here / "home.csv")
    pl.DataFrame({"Place": [f"P{i}" for i in range(places)]}).write_csv(here / "work.csv")


@pytest.mark.parametrize(
    ("wards", "places", "workload", "measure"),
    [
        (20, 30, "cube", "all"),
        (5_000, 5_000, "cube", "survivors"),
        (90_000, 3_000, None, "survivors"),
    ],
    ids=["small", "leaves too many", "margins too many"],
)
def test_the_cube_is_proposed_where_its_cells_fit(succeeds, here, wards, places, workload, measure):
    (here / "visits.csv").write_text("Hospital,Ward,Place\nsecret,secret,secret\n")
    lists_of(here, wards, places)
    succeeds("new", "visits.csv", *AXES)
    found = tomllib.loads((here / "release.toml").read_text())
    assert found.get("workload", {}).get("cuboids") == workload
    assert found["estimate"]["measure"] == measure


def test_the_cube_is_proposed_over_several_axes_before_there_are_lists(run, succeeds, here):
    (here / "visits.csv").write_text("Hospital,Ward,Place\nsecret,secret,secret\n")
    succeeds("new", "visits.csv", *AXES)
    text = (here / "release.toml").read_text()
    assert tomllib.loads(text)["workload"] == {"cuboids": "cube"}
    (here / "release.toml").unlink()
    run("new", "visits.csv", *AXES[:2])
    assert "[workload]" not in (here / "release.toml").read_text()


def test_a_table_called_like_a_list_is_not_read_as_one(succeeds, here):
    (here / "work.csv").write_text("Hospital,Ward,Place\nH,W,P1\nH,W,P2\n")
    lists_of(here, 4, 3)
    table = here / "work.csv"
    table.write_text("Hospital,Ward,Place\nH,W,P1\nH,W,P2\n")
    succeeds("new", "work.csv", *AXES)
    text = (here / "release.toml").read_text()
    assert "where the lists of areas are too long" in text


def test_a_proposed_cube_over_three_axes_is_one_that_can_be_planned(succeeds, here):
    (here / "visits.csv").write_text("a,b,c\nsecret,secret,secret\n")
    for name, many in (("a", 300), ("b", 300), ("c", 300)):
        pl.DataFrame({name: [f"{name}{i}" for i in range(many)]}).write_csv(here / f"{name}.csv")
    axes = [word for name in "abc" for word in ("--axis", f"{name}={name}")]
    succeeds("new", "visits.csv", *axes, "--epsilon", "1")
    file = here / "release.toml"
    assert tomllib.loads(file.read_text())["workload"] == {"cuboids": "cube"}
    file.write_text(file.read_text().replace("# count = ", "# "))
    succeeds("plan", "release.toml")


def test_a_number_beside_places_makes_a_cube_that_begins_with_the_places(succeeds, here):
    (here / "people.csv").write_text("income,tract\n")
    (here / "tracts.csv").write_text("county,tract\na,a1\na,a2\nb,b1\n")
    axes = ("--axis", "income=0:1000:8", "--list", "tracts.csv", "--epsilon", "1")
    succeeds("new", "people.csv", *axes)
    found = tomllib.loads((here / "release.toml").read_text())
    assert [axis["name"] for axis in found["axis"]] == ["tract", "income"]
    assert found["workload"]["cuboids"] == "cube"
    assert "tract.tract" in succeeds("plan", "release.toml")


@pytest.mark.parametrize("part", ["table", "list"])
def test_a_name_that_is_not_utf_8_cannot_stand_in_a_release_file(run, refuses, here, part):
    """Of a file system that knows bytes alone; the file would be no TOML."""
    odd = Path(os.fsdecode(b"odd\xff.csv"))
    try:
        odd.write_text("Hospital,Ward\nH,W1\nH,W2\n")
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    given = ["odd", "visits.csv"] if part == "table" else ["visits.csv", "odd"]
    table, public = (odd if each == "odd" else here / each for each in given)
    code, out, err = run("new", table, "--list", public)
    assert (code, out) == (2, "")
    assert re.search("a name that is not UTF-8 text: .*; rename it", " ".join(err.split()))
    assert not (here / "release.toml").exists()
    inside = Path(os.fsdecode(b"folder\xff"))
    inside.mkdir()
    (here / "visits.csv").rename(inside / "visits.csv")
    refuses("a name that is not UTF-8 text", "new", inside / "visits.csv", inside / "release.toml")


@pytest.mark.parametrize("part", ["table", "list"])
def test_a_link_to_itself_is_refused_in_a_sentence(run, here, part):
    (here / "circle.csv").symlink_to("circle.csv")
    given = ["circle.csv", "visits.csv"] if part == "table" else ["visits.csv", "circle.csv"]
    code, out, err = run("new", given[0], "--list", given[1])
    assert (code, out) == (2, "")
    assert ("the table" if part == "table" else "the list of areas circle.csv") in err
    assert "internal error" not in err
    assert not (here / "release.toml").exists()


def test_commands_refuse_links_to_themselves_in_a_sentence(run, succeeds, refuses, here):
    """As the table, a list of areas, the output directory, and a release."""
    (here / "circle").symlink_to("circle")
    (here / "wards.csv").write_text("Hospital,Ward\nH,W1\nH,W2\n")
    succeeds("new", "visits.csv", "--list", "wards.csv", "--epsilon", "1")
    text = (here / "release.toml").read_text()
    for named in ("visits.csv", "wards.csv"):
        (here / "file.toml").write_text(text.replace(f'"{named}"', '"circle"'))
        refuses(
            "the table is damaged" if named == "visits.csv" else "circle", "release", "file.toml"
        )
    (here / "rows").mkdir()
    (here / "visits.csv").rename(here / "rows" / "visits.csv")
    inside = text.replace('"visits.csv"', '"rows"').replace('"out"', '"circle/out"')
    (here / "file.toml").write_text(inside)
    assert run("release", "file.toml")[0] == 2
    for command in ("report", "check", "estimate", "table", "account"):
        code, _, err = run(command, "circle")
        assert code == 2, (command, err)
        assert "internal error" not in err
