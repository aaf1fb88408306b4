"""Files of SAS, Stata and SPSS: read as written by pyreadstat, in chunks, or refused."""

from pathlib import Path

import polars as pl
import pyreadstat
import pytest

from hedgerow import machine
from hedgerow.errors import TableError
from hedgerow.plan.facts.facts import PublicTable, read_facts
from hedgerow.plan.prior import Prior
from hedgerow.tables.axis import Axis
from hedgerow.tables.read import read_areas
from hedgerow.tables.sources import statistics_file
from hedgerow.tables.tree import Tree
from tests.made import by_code
from tests.refused import refused

LIST = {"state": ["7", "7", "8"], "county": ["01074", "01075", "02080"]}
LEVELS = ["state", "county"]
TREE = Tree([Axis.from_frame("place", LIST, LEVELS)])
ROWS = pl.DataFrame(
    {"state": [7, 7, 8, 7], "county": ["01074", "01075", "02080", "01074"], "n": [1, 2, 0, 4]}
)
COUNTS = {"01074": 5, "01075": 2}

WRITERS = {
    "t.sav": pyreadstat.write_sav,
    "t.zsav": lambda frame, path: pyreadstat.write_sav(frame, path, compress=True),
    "t.DTA": pyreadstat.write_dta,
    "t.xpt": pyreadstat.write_xport,
}
FILES = pytest.mark.parametrize("name", WRITERS)


def test_every_suffix_is_read_here_but_those_that_pyreadstat_cannot_write():
    written_here = {Path(name).suffix.lower() for name in WRITERS}
    assert written_here | {".por", ".sas7bdat"} == set(statistics_file.READERS)


def written(folder, name, frame=ROWS):
    WRITERS[name](frame, str(folder / name))
    return folder / name


@FILES
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5])
def test_a_table_is_read_whatever_the_chunks_are(name, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(statistics_file, "ROWS", rows)
    path = written(tmp_path, name)
    assert by_code(TREE, path, count="n") == COUNTS
    assert by_code(TREE, str(path)) == {"01074": 2, "01075": 1, "02080": 1}


@FILES
def test_a_list_of_areas_is_read(name, tmp_path):
    listed = read_areas(written(tmp_path, name, pl.DataFrame(LIST)), LEVELS)
    assert sorted(listed.rows()) == sorted(pl.DataFrame(LIST).rows())


@FILES
def test_a_prior_is_read(name, tmp_path):
    prior = Prior.read(TREE, written(tmp_path, name), count="n", public=True)
    assert prior.counts.total == 7


@FILES
def test_a_public_fact_is_read(name, tmp_path):
    sex = Axis.from_frame("sex", {"sex": ["1", "2"]}, ["sex"], attribute=True)
    facts = pl.DataFrame({"county": ["01074", "01075"], "sex": [1, 2], "most": [3, 4]})
    source = PublicTable(written(tmp_path, name, facts), at_most="most")
    (rows,) = read_facts(Tree([TREE.axes[0], sex]), [source])
    assert rows.frame.rows() == [("01074", "1", 3), ("01075", "2", 4)]


def test_a_chunk_is_all_that_is_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(statistics_file, "ROWS", 10)
    monkeypatch.setattr(statistics_file, "VALUES", 40)
    many = pl.concat([ROWS] * 25)
    path = written(tmp_path, "t.sav", many)
    read, sizes = pyreadstat.read_sav, []

    def watched(*args, **options):
        columns, about = read(*args, **options)
        sizes.append(max(map(len, columns.values()), default=0))
        return columns, about

    monkeypatch.setattr(pyreadstat, "read_sav", watched)
    assert by_code(TREE, path, count="n") == {code: 25 * n for code, n in COUNTS.items()}
    assert sizes == [0, 10, 10, 13, 13, 13, 13, 13, 13, 2]
    assert sum(sizes) == len(many)


def test_chunks_grow_so_that_rows_are_not_passed_over_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(statistics_file, "ROWS", 10)
    path = written(tmp_path, "t.sav", pl.concat([ROWS] * 250))
    read, passed = pyreadstat.read_sav, []

    def watched(*args, **options):
        passed.append(options.get("row_offset", 0))
        return read(*args, **options)

    monkeypatch.setattr(pyreadstat, "read_sav", watched)
    assert by_code(TREE, path, count="n") == {code: 250 * n for code, n in COUNTS.items()}
    assert sum(passed) < 2 * 1000


@pytest.mark.parametrize("name", [name for name in WRITERS if name != "t.xpt"])
def test_a_file_without_rows_is_a_table_without_records(name, tmp_path):
    assert by_code(TREE, written(tmp_path, name, ROWS.clear()), count="n") == {}


@FILES
def test_a_missing_code_is_missing(name, tmp_path):
    for missing in (
        {"county": ["", "01074"], "state": [7, 7]},
        {"county": ["01074"], "state": [None]},
    ):
        frame = pl.DataFrame(missing, schema={"county": pl.String, "state": pl.Float64})
        with refused("lacks a code for some record"):
            by_code(TREE, written(tmp_path, name, frame))


@FILES
def test_a_missing_count_is_missing(name, tmp_path):
    path = written(tmp_path, name, ROWS.with_columns(n=pl.Series([1.0, None, 2.0, 3.0])))
    with refused("column 'n' has a row without a value"):
        by_code(TREE, path, count="n")


def test_what_spss_calls_missing_is_a_code_of_the_list(tmp_path):
    frame = pl.DataFrame({"state": [7.0, 9.0, 9.0]})
    pyreadstat.write_sav(frame, str(tmp_path / "t.sav"), missing_ranges={"state": [9]})
    assert read_areas(tmp_path / "t.sav", ["state"], repeated=True)["state"].to_list() == ["7", "9"]


def test_labels_are_no_codes(tmp_path):
    labels = {"state": {7: "seven", 8: "eight"}}
    pyreadstat.write_sav(ROWS, str(tmp_path / "t.sav"), variable_value_labels=labels)
    assert by_code(TREE, tmp_path / "t.sav", count="n") == COUNTS


@FILES
def test_fractions_are_neither_codes_nor_counts(name, tmp_path):
    path = written(tmp_path, name, ROWS.with_columns(n=pl.col("n") + 0.5))
    with refused("column 'n' holds a fraction"):
        by_code(TREE, path, count="n")
    with refused("column 'n' holds fractions"):
        by_code(TREE, path, unit="n")


@FILES
def test_a_damaged_file_is_refused_in_one_sentence(name, tmp_path):
    path = written(tmp_path, name)
    content = path.read_bytes()
    for damaged in (b"", b"noise" * 99, content[:60], content[: len(content) // 2]):
        path.write_bytes(damaged)
        with refused("is no table: a damaged or unfinished file, or not of the kind") as caught:
            by_code(TREE, path, count="n")
        assert "\n" not in str(caught.value)
        with pytest.raises(TableError, match="is no table: a damaged or unfinished file"):
            read_areas(path, LEVELS)


def test_a_missing_file_and_a_missing_column_are_named(tmp_path):
    with pytest.raises(TableError, match=r"no\.sav does not exist; check its path"):
        by_code(TREE, tmp_path / "no.sav")
    with pytest.raises(TableError, match=r"t\.sav has no column 'persons'"):
        by_code(TREE, written(tmp_path, "t.sav"), count="persons")
    (tmp_path / "d.sav").mkdir()
    with pytest.raises(TableError, match=r"d\.sav"):
        by_code(TREE, tmp_path / "d.sav")


def test_a_missing_library_names_the_extra(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    path = written(tmp_path, "t.sav")
    monkeypatch.setattr(machine, "import_module", absent)
    with pytest.raises(TableError, match=r"pip install '\.\[stats\]'"):
        by_code(TREE, path)


def test_a_small_file_of_long_texts_is_read_a_few_rows_at_a_time(tmp_path, monkeypatch):
    """Ten thousand equal texts of 10,000 letters: packed in kilobytes, 100 MB in memory."""
    monkeypatch.setattr(statistics_file, "VALUES", 20_000)
    frame = pl.DataFrame({"town": ["x" * 10_000] * 1_000, "n": [1.0] * 1_000})
    pyreadstat.write_sav(frame.to_pandas(), tmp_path / "t.zsav", compress=True)
    assert (tmp_path / "t.zsav").stat().st_size < 200_000
    opened = statistics_file.StoredStatistics.open(tmp_path / "t.zsav", "it")
    sizes = [len(chunk) for chunk in opened.chunks([0, 1])]
    assert sum(sizes) == 1_000
    assert 100 < max(sizes) < 210
    assert [len(chunk) for chunk in opened.chunks([1])] == [1_000]
