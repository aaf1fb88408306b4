"""`export --as xlsx`: read back by openpyxl, equal to the release, and nothing in it runs."""

import sys

import openpyxl
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl.utils.escape import unescape
from polars.testing import assert_frame_equal

import hedgerow as hr
from hedgerow.errors import MachineError, ReleaseError
from hedgerow.export import workbook
from hedgerow.export.workbook import EXACT, LONGEST_NAME, check_fits, sheet_names
from tests.made import plain_plan

CODES = [
    *("=1+1", "+2", "-3", "@SUM(A1)", "007", "1e5", "0.10", "TRUE", "2021-01-02", " a ", "\ta"),
    *("=cmd|'/c calc'!A1", "http://a.b", "'b", "_x0041_", "a\nb", '<c>&"', "東京"),
    *("\U0001f600", "\x1b[2J", "\ufffe", "a\rb"),
]  # fmt: skip
"""What a spreadsheet takes for something else than text."""


def release_of(codes, out, count=100):
    tree = hr.Tree([hr.Axis.from_frame("town", {"town": codes}, levels=["town"])])
    table = {"town": codes, "people": [count] * len(codes)}
    counts = hr.Counts.from_frame(tree, table, count="people")
    hr.release(counts, plain_plan(tree, budget=hr.Rho(100))).write(out)
    return out


def frame_of(sheet, like):
    """A sheet as a table with the types of another."""
    first, *rows = sheet.iter_rows(values_only=True)
    return pl.DataFrame(rows, schema=list(first), orient="row", infer_schema_length=None).cast(
        dict(like.schema)
    )


@pytest.mark.parametrize("kind", ["flows", "places", "named"])
def test_every_sheet_is_a_table_of_the_release(request, kind, tmp_path):
    folder, file = request.getfixturevalue(kind), tmp_path / "a.xlsx"
    hr.export(folder, file, hr.Workbook())
    book, release = openpyxl.load_workbook(file), hr.read_release(folder)
    names = sheet_names(release.plan.cuboids)
    assert book.sheetnames == ["Notes", *names.values()]
    for cuboid, sheet in names.items():
        wanted = release.level(cuboid)
        found = frame_of(book[sheet], wanted)
        assert_frame_equal(found, wanted, rel_tol=1e-14)  # Excel has 15 digits
        assert book[sheet].freeze_panes == "A2"
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_the_notes_say_what_is_promised_and_what_columns_and_sheets_are(flows, tmp_path):
    hr.export(flows, tmp_path / "a.xlsx", hr.Workbook())
    plan = hr.read_release(flows).plan
    rows = [*openpyxl.load_workbook(tmp_path / "a.xlsx")["Notes"].iter_rows(values_only=True)]
    assert rows[0][0] == "Journeys to work — 2021"
    texts = [text for _, text in rows]
    for text in (str(plan.promise), plan.promise.attacker, "Unit: workers.", "Licence: CC BY 4.0."):
        assert text in texts
    assert "with or without any one record" in str(plan.promise)
    said = dict(rows)
    assert said["home state"] == "State of residence"
    assert said["count"] == "Count (workers)"
    assert said["low"] == "Lower end of the 95 % interval of the true count"
    assert said["home.sa2 × work.sa2"].startswith("home.sa2 × work.sa2, ")
    first = [name for name, _ in rows]
    assert first.index("work.sa2") < first.index("count"), "columns in the order of their tables"


def test_codes_stay_texts_whatever_they_begin_with(tmp_path):
    """A formula would run on the machine of whoever opens the file."""
    out = release_of(CODES, tmp_path / "out")
    hr.export(out, tmp_path / "a.xlsx", hr.Workbook("town"))
    notes, sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")
    cells = [row[0] for row in sheet.iter_rows(min_row=2)]
    assert sorted(unescape(cell.value) for cell in cells) == sorted(CODES)
    every = [cell for each in (notes, sheet) for row in each.iter_rows() for cell in row]
    assert {cell.data_type for cell in every} <= {"s", "inlineStr", "n", "b"}
    assert all(cell.hyperlink is None for cell in every)
    assert {cell.number_format for cell in cells} == {"@"}, "texts where a cell is edited, too"


def test_names_of_areas_are_columns_where_asked(named, tmp_path):
    hr.export(named, tmp_path / "a.xlsx", hr.Workbook("sa2", names=True))
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["sa2"]
    first, *rows = sheet.iter_rows(values_only=True)
    assert first[:4] == ("state", "state_name", "sa2", "sa2_name")
    assert ("1", "New South Wales", "101", "Goulburn") in [row[:4] for row in rows]


def test_a_release_makes_the_same_file_twice(places, tmp_path):
    for name in "ab":
        hr.export(places, tmp_path / f"{name}.xlsx", hr.Workbook())
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()


def test_a_table_longer_than_a_sheet_is_refused_before_its_errors_are_computed(
    flows, tmp_path, monkeypatch
):
    monkeypatch.setattr(workbook, "MOST_ROWS", 2)
    monkeypatch.setattr(workbook, "one_table", lambda *_, **__: pytest.fail("computed"))
    with pytest.raises(ReleaseError, match=r"state has 3 rows, .* room for 2 .*--level"):
        hr.export(flows, tmp_path / "a.xlsx", hr.Workbook())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ({"a": ["x" * 32_768]}, "more than 32,767 bytes"),
        ({"a": ["é" * 20_000]}, "more than 32,767 bytes"),
        ({"a": ["x\0"]}, "zero character"),
        ({"a": [-EXACT]}, "more than 15 digits"),
    ],
)
def test_what_a_cell_does_not_hold_is_refused(frame, said):
    with pytest.raises(ReleaseError, match=f"column 'a' .*{said}.*data package"):
        check_fits(pl.DataFrame(frame))


def test_what_a_cell_holds_is_not():
    check_fits(pl.DataFrame({"a": ["x" * 32_767], "b": [EXACT - 1], "c": [None]}))


LONG = "origin.municipality × destination.municipality"


def test_names_of_sheets_are_short_and_different():
    found = sheet_names([LONG, "a[b]:*?/\\c", LONG.replace("ni", "NI"), "notes", "'q'", "History"])
    assert [*found.values()] == [
        *("o.municipality × d.municipality", "a_b______c", "o.muNIci…ity × d.muNIci…ity (2)"),
        *("notes (2)", "q", "History (2)"),
    ]


LETTERS = st.characters(codec="utf-8", categories=["L", "M", "N", "P", "S"])


@given(st.lists(st.text(LETTERS, min_size=1), unique=True))
def test_every_name_of_a_sheet_is_allowed(names):
    found = [*sheet_names(names).values()]
    assert len({name.lower() for name in found}) == len(names)
    for name in found:
        assert 0 < len(name.encode("utf-16-le")) <= 2 * LONGEST_NAME
        assert not set(name) & set("[]:*?/\\")
        assert name.strip("'") == name


def test_without_its_library_the_extra_is_named(flows, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    with pytest.raises(MachineError, match=r"needs xlsxwriter: .* extra 'excel'"):
        hr.export(flows, tmp_path / "a.xlsx", hr.Workbook())
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_workbook(run, refuses_export, flows, tmp_path):
    file = tmp_path / "a.xlsx"
    code, said, _ = run("export", flows, "--as", "xlsx", "--output", file, "--level", "home.state")
    assert (code, f"Export: {file}" in said) == (0, True)
    assert openpyxl.load_workbook(file).sheetnames == ["Notes", "home.state"]
    refuses_export("must end in .xlsx", file.with_suffix(".xls"))
    refuses_export("no cuboid 'home.stat'", tmp_path / "b.xlsx", "--level", "home.stat")


@pytest.fixture
def refuses_export(run, flows):
    """Assert that no workbook is written, for a reason."""

    def refused(words, file, *options):
        code, _, err = run("export", flows, "--as", "xlsx", "--output", file, *options)
        assert code == 2
        assert words in " ".join(err.split())
        assert not file.exists()

    return refused


EVIL = '<r></r></is></c><c r="Z2"><f>HYPERLINK("http://evil")</f></c><c t="inlineStr"><is><r></r>'


@pytest.mark.parametrize("code", ["<r>x</r>", EVIL])
def test_a_code_that_would_be_markup_is_refused_and_a_title_is_none(code, tmp_path):
    release = release_of([code, "b"], tmp_path / "out")
    with pytest.raises(hr.ReleaseError, match="would be read as markup of Excel"):
        hr.export(release, tmp_path / "a.xlsx", hr.Workbook())
    assert not (tmp_path / "a.xlsx").exists()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out"]
