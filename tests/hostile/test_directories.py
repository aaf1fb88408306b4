"""Forged release directories: every command explains itself, on one screen and in little memory."""

import json
import unicodedata
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hedgerow.errors import MachineError, ReleaseError
from hedgerow.release import memory, parquet_file
from hedgerow.release.manifest import MOST_BYTES, read_manifest
from hedgerow.release.parquet_file import TEXT, WHOLE, Layout, read_parquet
from hedgerow.release.parquet_pages import DICTIONARY, longest_entry, pages
from tests.hostile import directories
from tests.hostile.commands import ran
from tests.hostile.directories import EDITS, HARMLESS, honest
from tests.hostile.walking import walked

UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
PATIENCE = 300  # seconds, for a machine that does much else
MOST_MEGABYTES = 400
LONGEST = 1600  # letters of a line


def unseen(text):
    """What moves a cursor, ends a line or turns its direction, but for the ends of lines."""
    return {letter for letter in text if unicodedata.category(letter) in UNSEEN} - {"\n"}


@pytest.mark.parametrize("edit", EDITS)
def test_a_forged_directory_is_told_of_in_one_sentence(tmp_path, edit):
    found = walked(edit, tmp_path, PATIENCE)
    assert isinstance(found, list), found
    for command, code, out, err, megabytes in found:
        said = f"{command} ended with {code}: {err[-2000:]}"
        assert code in {0, 1, 2, 3}, said
        assert unseen(out + err) == set(), said
        assert "internal error" not in err, said
        assert "Traceback" not in err, said
        errors = [line for line in err.splitlines() if line.startswith("Error: ")]
        assert len(errors) == (code in {1, 2}), said
        assert max(map(len, (out + err).splitlines()), default=0) < LONGEST, said
        assert megabytes < MOST_MEGABYTES, said
    codes = {command: code for command, code, *_ in found}
    assert (codes["check"] == 0) == (edit in HARMLESS), found[0]


def test_an_honest_directory_passes_and_every_command_reads_it(tmp_path):
    folder = honest(tmp_path / "out")
    for arguments in (
        ["check", folder],
        ["table", folder, "--level", "county"],
        ["account", folder],
        ["funds", folder, "--level", "county", "--amount", "100"],
        ["estimate", folder, "--method", "least-squares", "--output", tmp_path / "least"],
        ["report", folder, "--output", tmp_path / "page.html"],
    ):
        assert ran(*arguments)[0] == 0, arguments


def test_codes_are_shown_with_escapes_and_stay_as_they_are(tmp_path):
    directories.honest_codes(tmp_path / "out")
    _, out, _ = ran("table", tmp_path / "out", "--depth", "2")
    assert r"ca\x1b[2K" in out
    assert r"cat" + r"x\nok   All checks passed.\u202e" in out
    assert len(out.splitlines()) == 7, "a heading, four rows, and what is left out"
    _, out, _ = ran("funds", tmp_path / "out", "--level", "tract", "--amount", "1")
    assert r"x\nok   All checks passed.\u202e" in out
    page = (tmp_path / "out" / "report.html").read_text()
    assert unseen(page) == set()


def manifest(folder, text):
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"format": "hedgerow-release-1", "a": 1, "a": 2}', "a key is there twice"),
        ('{"format": "hedgerow-release-1", "a": {"b": 1, "b": 1}}', "a key is there twice"),
        ('{"format": "hedgerow-release-1", "a": NaN}', "NaN is no number"),
        ('{"format": "hedgerow-release-1", "a": -Infinity}', "-Infinity is no number"),
        ('{"format": "hedgerow-release-1", "a": 1e999}', "1e999 is no number"),
        ('{"format": "hedgerow-release-1", "a": ["\\u001b"]}', "not seen"),
        ('{"format": "hedgerow-release-1", "a\\u202e": 1}', "not seen"),
        ('{"format": "hedgerow-release-1", "a": "\\ud800"}', "not seen"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"format": "hedgerow-release-1"}' + " " * MOST_BYTES, "larger than any manifest"),
    ],
)
def test_a_manifest_is_plain_json_of_a_bounded_size(tmp_path, text, message):
    with pytest.raises(ReleaseError, match=message):
        read_manifest(manifest(tmp_path / "out", text))


def test_the_code_of_a_leaf_that_is_not_stated_may_hold_anything(tmp_path):
    text = json.dumps({"format": "hedgerow-release-1", "not_stated": "\x1b"})
    assert read_manifest(manifest(tmp_path / "out", text))["not_stated"] == "\x1b"


NAME = "counts/depth=2.parquet"
COLUMNS = {
    "county": TEXT,
    "tract": TEXT,
    "count": WHOLE,
    "estimate": parquet_file.REAL,
    "standard_error": parquet_file.REAL,
    "low": WHOLE,
    "high": WHOLE,
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return honest(tmp_path_factory.mktemp("honest") / "out")


def test_a_file_is_read_where_it_fits(out):
    assert len(read_parquet(out, NAME, Layout(COLUMNS, 20))) == 20


def test_rows_are_compared_with_the_tree_before_a_page_is_read(out, monkeypatch):
    monkeypatch.setattr(parquet_file.pq, "ParquetFile", None)
    with pytest.raises(ReleaseError, match="it has 20 rows, and the plan has room for 19"):
        read_parquet(out, NAME, Layout(COLUMNS, 19))


@pytest.mark.parametrize("changed", ["name", "kind", "order", "number"])
def test_columns_are_compared_with_the_tree_before_a_page_is_read(out, monkeypatch, changed):
    monkeypatch.setattr(parquet_file.pq, "ParquetFile", None)
    columns = dict(COLUMNS)
    if changed == "name":
        columns = {("x" if name == "tract" else name): kind for name, kind in columns.items()}
    elif changed == "kind":
        columns["tract"] = WHOLE
    elif changed == "order":
        columns = dict(reversed(columns.items()))
    else:
        del columns["high"]
    with pytest.raises(ReleaseError, match="its columns are county, tract, count"):
        read_parquet(out, NAME, Layout(columns, 20))


@pytest.mark.parametrize(("letters", "fits"), [(1_000, True), (4_000_000, False)])
def test_memory_is_told_from_pages_and_their_dictionaries(tmp_path, monkeypatch, letters, fits):
    """A thousand rows of one code: told by the letters that they stand for, not by the file."""
    monkeypatch.setattr(memory, "physical_memory", lambda: 1 << 30)
    monkeypatch.setattr(memory, "_address_space", lambda: None)
    folder = honest(tmp_path / "out")
    directories.like(folder / NAME, 1_000, tract="c" * letters)
    assert (folder / NAME).stat().st_size < 30_000
    if fits:
        frame = read_parquet(folder, NAME, Layout(COLUMNS, 1_000))
        assert frame["tract"].str.len_bytes().sum() == 1_000 * letters
        return
    with pytest.raises(MachineError, match=r"takes 4\.0 GB of memory, and there are 0\.6"):
        read_parquet(folder, NAME, Layout(COLUMNS, 1_000))


def test_a_limit_on_addresses_is_a_limit_on_memory(monkeypatch):
    monkeypatch.setattr(memory, "physical_memory", lambda: 1 << 40)
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (1 << 35, 1 << 35))
    room = memory.room()
    assert 0 < room < 0.6 * (1 << 35)
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (memory.resource.RLIM_INFINITY, 0))
    assert memory.room() == int(0.6 * (1 << 40))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_an_encoding_that_makes_much_of_little_is_refused(tmp_path, monkeypatch, encoding):
    """Each text a letter longer than the one before: a few bytes each, by its prefix."""
    folder = honest(tmp_path / "out")
    table = pq.read_table(folder / NAME)
    longer = pa.array(["c" * (1000 * i) for i in range(len(table))])
    table = table.set_column(1, pa.field("tract", pa.string(), nullable=False), longer)
    pq.write_table(table, folder / NAME, use_dictionary=False, column_encoding={"tract": encoding})
    monkeypatch.setattr(parquet_file.pq, "ParquetFile", None)
    with pytest.raises(ReleaseError, match="a page that is none of ours"):
        read_parquet(folder, NAME, Layout(COLUMNS, 20))


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["zstd", "none", "snappy"])
def test_the_headers_of_pages_are_what_the_writer_wrote(tmp_path, version, compression):
    """Against PyArrow's own footer: all values, and all bytes but those of the headers."""
    rng = np.random.default_rng(5)
    words = [f"{i:x}" * 3 for i in rng.integers(0, 5_000, 30_000)]
    table = pa.table({"word": words, "number": rng.integers(0, 2**60, 30_000)})
    pq.write_table(
        table, tmp_path / "x.parquet", compression=compression, row_group_size=20_000,
        data_page_size=10_000, dictionary_pagesize_limit=20_000, data_page_version=version,
    )  # fmt: skip
    about, seen = pq.read_metadata(tmp_path / "x.parquet"), set()
    with (tmp_path / "x.parquet").open("rb") as file:
        for group in range(about.num_row_groups):
            for column in range(2):
                chunk = about.row_group(group).column(column)
                start = chunk.dictionary_page_offset or chunk.data_page_offset
                found = list(pages(file, start, start + chunk.total_compressed_size))
                data = [page for page in found if page.kind != DICTIONARY]
                assert sum(page.values for page in data) == chunk.num_values
                headers = chunk.total_compressed_size - sum(page.packed for page in found)
                assert sum(page.size for page in found) == chunk.total_uncompressed_size - headers
                seen |= {(page.kind, page.encoding) for page in found}
                if column == 0:
                    here = words[group * 20_000 : (group + 1) * 20_000]
                    assert longest_entry(file, found[0], chunk.compression) <= max(map(len, here))
    assert len(seen) >= 3, "dictionaries, and plain pages after them"


def test_the_longest_text_of_a_dictionary_is_found(tmp_path):
    words = ["a" * i for i in range(200)] * 5
    pq.write_table(pa.table({"word": words}), tmp_path / "x.parquet", compression="zstd")
    chunk = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0)
    with (tmp_path / "x.parquet").open("rb") as file:
        start = chunk.dictionary_page_offset
        first = next(pages(file, start, start + chunk.total_compressed_size))
        assert longest_entry(file, first, chunk.compression) == 199
        with pytest.raises(ReleaseError, match="no page"):
            longest_entry(file, replace(first, values=first.values + 1), chunk.compression)
        with pytest.raises(ReleaseError, match="larger than any"):
            longest_entry(file, replace(first, size=1 << 30), chunk.compression)


def test_bytes_that_are_no_header_are_no_page(tmp_path):
    """Whatever they are: a sentence, and never another error or an endless loop."""
    rng = np.random.default_rng(6)
    for length in [0, 1, 5, 40, 4_000] * 40:
        (tmp_path / "x").write_bytes(bytes(rng.integers(0, 256, length, dtype=np.uint8)))
        with (tmp_path / "x").open("rb") as file, pytest.raises(ReleaseError, match="no page"):
            list(pages(file, 0, length + 1))
