"""`export --as sav|dta|xpt`: read back by pyreadstat, equal to the Parquet files."""

import polars as pl
import pyreadstat
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.export.released import plain_names
from hedgerow.export.statistics_file import FILES, TAKEN, check_fits
from tests.made import plain_plan

READ = {
    "sav": pyreadstat.read_sav,
    "dta": pyreadstat.read_dta,
    "xpt": pyreadstat.read_xport,
}
NAMES = {"home state": "home_state", "home.sa2": "home_sa2", "work state": "work_state"}
NAMES |= {"work.sa2": "work_sa2"}


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("level", [None, "home.state × work.sa2", "home.sa2", "total"])
def test_a_file_read_back_equals_the_table(flows, tmp_path, kind, level):
    file = tmp_path / f"flows.{kind}"
    hr.export(flows, file, hr.StatisticsFile(level))
    read, about = READ[kind](file, output_format="polars")
    wanted = (
        hr.read_release(flows).level(level or "home.sa2 × work.sa2").rename(NAMES, strict=False)
    )
    assert read.columns == wanted.columns
    assert read.cast({name: wanted.schema[name] for name in wanted.columns}).equals(wanted)
    assert about.file_label == "Journeys to work — 2021"
    labels = dict(zip(about.column_names, about.column_labels, strict=True))
    assert labels["count"] == "Count (workers)"
    if level is None:
        assert labels["home_state"] == "State of residence"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_an_spss_file_has_the_promise_in_its_notes(flows, tmp_path):
    hr.export(flows, tmp_path / "a.sav", hr.StatisticsFile("total"))
    _, about = pyreadstat.read_sav(tmp_path / "a.sav")
    text = " ".join(line.strip() for line in about.notes)
    assert " ".join(str(hr.read_release(flows).plan.promise).split()) in " ".join(text.split())
    assert "Publisher: Office of Statistics." in text


def test_an_spss_file_shows_names_for_codes_and_has_them_as_columns_only_where_asked(
    named, tmp_path
):
    hr.export(named, tmp_path / "a.sav", hr.StatisticsFile())
    read, about = pyreadstat.read_sav(tmp_path / "a.sav")
    assert list(read.columns)[:3] == ["state", "sa2", "count"]
    assert about.variable_value_labels["state"] == {"1": "New South Wales", "2": "Victoria"}
    labels = about.variable_value_labels["sa2"]
    assert labels["1"] == 'Le "Port" </script>'
    assert labels["=2+3"] == "x" * 117 + "…"
    assert "999" not in labels
    for kind, read_back in READ.items():
        hr.export(named, tmp_path / f"b.{kind}", hr.StatisticsFile(names=True))
        read, about = read_back(tmp_path / f"b.{kind}", output_format="polars")
        assert read.columns[:4] == ["state", "state_name", "sa2", "sa2_name"]
        assert dict(read.select("sa2", "sa2_name").iter_rows())["101"] == "Goulburn"
        assert dict(zip(about.column_names, about.column_labels, strict=True))["state_name"] == (
            "State: name"
        )


def release_of(codes, out):
    tree = hr.Tree([hr.Axis.from_frame("town", {"town": codes}, levels=["town"])])
    table = {"town": codes, "people": [100] * len(codes)}
    counts = hr.Counts.from_frame(tree, table, count="people")
    hr.release(counts, plain_plan(tree, budget=hr.Rho(100))).write(out)
    return out


@pytest.mark.parametrize("kind", READ)
@pytest.mark.parametrize("code", ["a ", "a\0b"])
def test_codes_that_a_file_would_change_are_refused(tmp_path, kind, code):
    out = release_of([code, "b"], tmp_path / "out")
    with pytest.raises(ReleaseError, match=r"column 'town' .*export a data package"):
        hr.export(out, tmp_path / f"a.{kind}", hr.StatisticsFile())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


@pytest.mark.parametrize("kind", ["dta", "xpt"])
def test_codes_that_a_file_would_cut_are_refused(tmp_path, kind):
    out = release_of(["x" * 2_046, "b"], tmp_path / "out")
    with pytest.raises(ReleaseError, match=r"column 'town' has more than .* bytes"):
        hr.export(out, tmp_path / f"a.{kind}", hr.StatisticsFile())


@pytest.mark.parametrize("suffix", FILES)
def test_counts_that_a_double_cannot_hold_are_refused(suffix):
    whole = pl.DataFrame({"count": [(1 << 53) - 1]})
    check_fits(whole, FILES[suffix], suffix)
    with pytest.raises(ReleaseError, match=r"column 'count' is too large"):
        check_fits(whole + 1, FILES[suffix], suffix)


def test_a_table_without_counts_is_refused():
    with pytest.raises(ReleaseError, match="lists no counts"):
        check_fits(pl.DataFrame({"count": []}), FILES[".sav"], ".sav")


def test_plain_names_are_different_and_allowed():
    given = ["a b", "a.b", "A_B", "9", "é", "by", "x" * 40, "x" * 41]
    found = plain_names(given, 32, TAKEN)
    assert list(found.values()) == [
        *("a_b", "a_b_2", "A_B_3", "v9", "v", "by_2"),
        *("x" * 32, f"{'x' * 30}_2"),
    ]


def test_the_command_writes_a_file_and_says_what_it_does_not_know(run, flows, tmp_path):
    file = tmp_path / "a.dta"
    code, said, _ = run("export", flows, "--as", "dta", "--output", file, "--level", "home.state")
    assert (code, f"Export: {file}" in said) == (0, True)
    assert len(pl.from_pandas(pyreadstat.read_dta(file)[0])) == 3
    for words, sentence in (
        (("--as", "data", "--output", tmp_path / "x"), "no format is called 'data'; there are"),
        (("--as", "sav", "--output", tmp_path / "x.dta"), "ends in .sav, got 'x.dta'"),
        (
            ("--as", "datapackage", "--output", tmp_path / "x", "--level", "total"),
            "datapackage has no --level",
        ),
        (("--as", "sav", "--output", tmp_path / "x.sav", "--level", "home.stat"), "home.state"),
        (("--as", "sav", "--output", file), "ends in .sav"),
        (("--as", "dta", "--output", file), "exists already"),
    ):
        code, _, err = run("export", flows, *words)
        assert code == 2
        assert sentence in err
