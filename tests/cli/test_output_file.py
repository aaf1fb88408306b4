"""Where ``--output`` may go, and that what goes there is whole."""

import csv
import re

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.cli.output_file import (
    TABLES,
    check_picture_place,
    check_place,
    whole_file,
    write_table,
)
from hedgerow.errors import MachineError, PlanError, ReleaseError
from hedgerow.release.directory.manifest import check_outside
from tests.made import all_leaves, plain_plan


@pytest.fixture
def release(tmp_path):
    (tmp_path / "out" / "counts").mkdir(parents=True)
    (tmp_path / "out" / "manifest.json").write_text('{"format": "hedgerow-release-4"}')
    return tmp_path / "out"


def refused(place, words, **options):
    with pytest.raises(ReleaseError, match=words) as caught:
        check_place(place, **options)
    assert str(caught.value).startswith(f"{options.get('option', '--output')} {str(place)!r}")


def test_a_picture_never_goes_into_a_release(release):
    """It may tell of the table (`compare`), and the release would no longer be as it was made."""
    check_picture_place(None, PlanError)
    check_picture_place(release.parent / "a.png", PlanError)
    for place in (release / "a.png", release / "counts" / "a.png"):
        with pytest.raises(ReleaseError, match=r"^--picture .* lies within the release"):
            check_picture_place(place, PlanError)
    with pytest.raises(PlanError, match="its name must end in"):
        check_picture_place(release / "a.txt", PlanError)


def test_a_folder_with_the_manifest_of_another_program_is_no_release(release):
    (release / "manifest.json").write_text('{"name": "a page"}')
    check_place(release / "a.csv")


PICTURES = {
    ".png": b"\x89PNG\r\n\x1a\nrest", ".svg": b"\xef\xbb\xbf\n<?xml?>", ".pdf": b"%PDF-1.4",
    ".SVG": b"<svg/>",
}  # fmt: skip


@pytest.mark.parametrize("suffix", PICTURES)
def test_a_picture_replaces_a_picture_of_its_kind_and_nothing_else(tmp_path, suffix):
    picture = tmp_path / f"a{suffix}"
    others = [start for other, start in PICTURES.items() if other.lower() != suffix.lower()]
    for text in [b"", b"mine", *others]:
        picture.write_bytes(text)
        with pytest.raises(
            ReleaseError, match=r"^--picture .* the file exists and is not a [A-Z]{3} "
        ):
            check_picture_place(picture, PlanError)
        check_picture_place(picture, PlanError, force=True)
    picture.write_bytes(PICTURES[suffix])
    check_picture_place(picture, PlanError)
    with pytest.raises(ReleaseError, match="name another file, or add --force"):
        check_picture_place(picture, PlanError, force=False)


def test_a_picture_follows_no_link_and_takes_the_place_of_no_folder(tmp_path):
    (tmp_path / "a.png").mkdir()
    (tmp_path / "b.png").symlink_to(tmp_path / "gone")
    for name in ("a.png", "b.png"):
        with pytest.raises(ReleaseError, match="the file exists and is not"):
            check_picture_place(tmp_path / name, PlanError)


@pytest.mark.parametrize("name", ["a.csv", "A.CSV", "b.parquet"])
def test_a_free_place_beside_a_release_is_fine(release, name):
    check_place(release.parent / name, suffixes=TABLES)
    check_place(release.parent / "a", force=False)


def test_a_place_that_cannot_be_is_refused_by_the_name_of_its_option(tmp_path):
    refused(tmp_path / "a.xlsx", r"must end in \.csv or \.parquet", suffixes=TABLES)
    refused(tmp_path / "no" / "a.csv", "the directory does not exist; create it")
    refused(tmp_path / "no" / "a.svg", "the directory does not exist", option="--picture")


@pytest.mark.parametrize("inner", ["a.csv", "counts/a.csv", "counts/../a.csv"])
def test_nothing_is_put_into_any_release(release, tmp_path, inner):
    refused(release / inner, "lies within the release .*out', which stays as it is")
    (tmp_path / "link").symlink_to(release)
    refused(tmp_path / "link" / inner, "lies within the release")
    with pytest.raises(ReleaseError, match="lies within the release"):
        check_outside(release / "folder" / "that" / "is" / "not" / "there", "--output")


def test_what_exists_is_overwritten_by_force_alone(tmp_path):
    (tmp_path / "a.csv").touch()
    (tmp_path / "nowhere.csv").symlink_to(tmp_path / "gone")
    (tmp_path / "folder.csv").mkdir()
    for name in ("a.csv", "nowhere.csv"):
        refused(tmp_path / name, "exists already; name another file$")
        refused(tmp_path / name, "exists already; name another file, or add --force$", force=False)
        check_place(tmp_path / name, force=True)
    refused(tmp_path / "folder.csv", "exists already", force=True)


@pytest.mark.parametrize("suffix", TABLES)
def test_a_table_is_written_by_its_suffix_over_what_was_there(tmp_path, suffix):
    place, frame = tmp_path / f"a{suffix.upper()}", pl.DataFrame({"code": ["01"], "count": [3]})
    place.write_text("mine")
    write_table(frame, place)
    read = pl.read_parquet if suffix == ".parquet" else pl.read_csv
    assert read(place)["count"].to_list() == [3]
    assert list(tmp_path.iterdir()) == [place]


def test_what_fails_half_way_leaves_what_was_there(tmp_path):
    place = tmp_path / "a.csv"
    place.write_text("mine")

    def fill():
        with whole_file(place) as file:
            file.write(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(MachineError, match=r"cannot write .*a\.csv': No space left"):
        fill()
    assert place.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [place]


FORMULAS = [
    "=HYPERLINK(A1)",
    "+SUM(1)",
    "-2+3",
    "@x",
    "\tx",
    "\rx",
    "\nx",
    "＝1+1",
    "- 1",
    "+",
    "-",
]
HARMLESS = ["-9", "+49", "-1,5", "1=2", "a-b", "", "'=1", "x\t=1", "-10 000"]
NUMBERS = [-3.2, 4.0, -0.5]


def cells_of(place):
    """The cells of a CSV file, by Python's own reader."""
    with place.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def formulas_in(place):
    """What a spreadsheet would run: cells that begin like a formula and are no number."""
    begins = tuple("=+-@\t\r\n＝＋－＠")
    number = re.compile(r"[+-]?\d[\d ]*([.,]\d+)?(e[+-]?\d+)?", re.IGNORECASE)
    cells = [cell for row in cells_of(place) for cell in row]
    return [cell for cell in cells if cell.startswith(begins) and not number.fullmatch(cell)]


@pytest.mark.parametrize("codes", [FORMULAS, HARMLESS], ids=["formulas", "harmless"])
def test_codes_that_are_formulas_are_told_or_quoted_and_no_other(tmp_path, capsys, codes):
    frame = pl.DataFrame({"code": codes, "n": range(len(codes))})
    write_table(frame, tmp_path / "plain.csv")
    said = " ".join(capsys.readouterr().err.split())
    assert [row[0] for row in cells_of(tmp_path / "plain.csv")] == ["code", *codes]
    if codes is HARMLESS:
        assert said == ""
        assert formulas_in(tmp_path / "plain.csv") == []
    else:
        assert f"Warning: {len(codes)} codes or names in" in said
        assert "--quote-formulas" in said
        assert formulas_in(tmp_path / "plain.csv") == codes
    write_table(frame, tmp_path / "quoted.csv", quote_formulas=True)
    assert capsys.readouterr().err == ""
    assert formulas_in(tmp_path / "quoted.csv") == []
    quoted = [row[0] for row in cells_of(tmp_path / "quoted.csv")[1:]]
    assert quoted == [f"'{code}" if code in FORMULAS else code for code in codes]


def test_headings_that_are_formulas_are_quoted_and_numbers_stay_numbers(tmp_path, capsys):
    frame = pl.DataFrame({"=cmd()": ["a", None, "b"], "estimate": NUMBERS, "low": [-2, 0, 1]})
    write_table(frame, tmp_path / "quoted.csv", quote_formulas=True)
    assert (tmp_path / "quoted.csv").read_text() == (
        "'=cmd(),estimate,low\na,-3.2,-2\n,4.0,0\nb,-0.5,1\n"
    )
    write_table(frame.drop("=cmd()"), tmp_path / "numbers.csv")
    assert capsys.readouterr().err == ""
    write_table(frame, tmp_path / "plain.csv")
    assert "Warning: 1 codes or names" in capsys.readouterr().err


def test_parquet_keeps_formulas_as_text_without_a_word(tmp_path, capsys):
    frame = pl.DataFrame({"code": FORMULAS})
    for quote in (True, False):
        write_table(frame, tmp_path / "a.parquet", quote_formulas=quote)
        assert pl.read_parquet(tmp_path / "a.parquet").equals(frame)
    assert capsys.readouterr().err == ""


def test_commands_write_tables_as_they_are_asked_to(run, tmp_path):
    """Areas are called as formulas; their counts are numbers."""
    areas = {"region": ["=A()", "=A()", "b"], "town": ["=A()1", "@x", "-9"]}
    tree = hr.Tree([hr.Axis.from_frame("place", areas, [*areas])])
    plan = plain_plan(tree, budget=hr.Rho(1))
    counts = all_leaves(tree, np.array([90, 80, 70]))
    hr.release(counts, plan).write(tmp_path / "out")
    for name, options in {
        "table": ("--level", "town"), "funds": ("--level", "town", "--amount", "9"),
    }.items():  # fmt: skip
        plain, quoted = tmp_path / f"{name}.csv", tmp_path / f"{name}-quoted.csv"
        code, _, err = run(name, tmp_path / "out", *options, "--output", plain)
        assert (code, "Warning: 4 codes or names" in err) == (0, True)
        code, _, err = run(name, tmp_path / "out", *options, "--quote-formulas", "--output", quoted)
        assert (code, "codes or names" in err) == (0, False)
        assert [row[:2] for row in cells_of(quoted)[1:]] == [
            ["'=A()", "'=A()1"], ["'=A()", "'@x"], ["b", "-9"],
        ]  # fmt: skip
        assert [row[2:] for row in cells_of(quoted)] == [row[2:] for row in cells_of(plain)]
