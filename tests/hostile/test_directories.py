"""Forged release directories: every command explains itself, on one screen and in little memory."""

import json
import os
import resource
import shutil
import unicodedata
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.cli import commands, terminal
from hedgerow.errors import MachineError, ReleaseError, TableError
from hedgerow.limits import MOST_BYTES_OF_A_MANIFEST
from hedgerow.release import preflight as memory
from hedgerow.release.directory import parquet_file
from hedgerow.release.directory.manifest import FORMAT, read_manifest
from hedgerow.release.directory.parquet_file import TEXT, WHOLE, Layout, read_parquet
from hedgerow.release.page import carried as blocks
from hedgerow.release.page import report
from hedgerow.release.release import read_release
from hedgerow.tables.sources.parquet_pages import DICTIONARY, longest_entry, pages
from tests.hostile import directories
from tests.hostile.commands import ran
from tests.hostile.directories import EDITS, HARMLESS, honest
from tests.hostile.mutations import toml
from tests.hostile.walking import walkers
from tests.made import plain_plan

pytestmark = pytest.mark.xdist_group("forged")  # one process walks them all

UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
PATIENCE = 300  # seconds, for a machine that does much else
MOST_MEGABYTES = 160
MOST = 1 << 24  # bytes of a dictionary
LONGEST = 1600  # letters of a line


def unseen(text):
    """What moves a cursor, ends a line or turns its direction, but for the ends of lines."""
    return {letter for letter in text if unicodedata.category(letter) in UNSEEN} - {"\n"}


@pytest.fixture(scope="module")
def walked():
    with walkers(PATIENCE) as begun:
        yield begun


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.sweep(6)
def test_a_forged_directory_is_told_of_in_one_sentence(tmp_path, edit, walked):
    found = walked(edit, tmp_path)
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
    _, out, _ = ran("table", tmp_path / "out", "--depth", "2", "--wide")
    assert r"ca\x1b[2K" in out
    assert r"cat" + r"x\nok   All checks passed.\u202e" in out
    assert len(out.splitlines()) == 9, "a heading, four rows, what the errors are of, and the rest"
    _, out, _ = ran("funds", tmp_path / "out", "--level", "tract", "--amount", "1", "--wide")
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
        ('{"format": "FORMAT", "a": 1, "a": 2}', "a key is there twice"),
        ('{"format": "FORMAT", "a": {"b": 1, "b": 1}}', "a key is there twice"),
        ('{"format": "FORMAT", "a": NaN}', "NaN is no number"),
        ('{"format": "FORMAT", "a": -Infinity}', "-Infinity is no number"),
        ('{"format": "FORMAT", "a": 1e999}', "1e999 is no number"),
        ('{"format": "FORMAT", "a": ["\\u001b"]}', "not seen"),
        ('{"format": "FORMAT", "a\\u202e": 1}', "not seen"),
        ('{"format": "FORMAT", "a": "\\ud800"}', "not seen"),
        ("[" * 100_000, "cannot be read as JSON"),
        ('{"format": "FORMAT"}' + " " * MOST_BYTES_OF_A_MANIFEST, "larger than 16 MB"),
        ('{"format": "hedgerow-release-3"}', "the format 'hedgerow-release-3', and this version"),
        (
            '{"format": "hedgerow-release-9999"}',
            "the format 'hedgerow-release-9999', and this version",
        ),
        ('{"format": "hedgerow-release-\\u0663"}', "no manifest of a release"),
        ('{"format": ["FORMAT"]}', "no manifest of a release"),
        ('["FORMAT"]', "no manifest of a release"),
    ],
)
def test_a_manifest_is_plain_json_of_a_bounded_size(tmp_path, text, message):
    with pytest.raises(ReleaseError, match=message):
        read_manifest(manifest(tmp_path / "out", text.replace("FORMAT", FORMAT)))


def test_the_code_of_a_leaf_that_is_not_stated_may_hold_anything(tmp_path):
    text = json.dumps({"format": FORMAT, "not_stated": "\x1b"})
    assert read_manifest(manifest(tmp_path / "out", text))["not_stated"] == "\x1b"


NAME = "counts/cuboid=2.parquet"
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
    monkeypatch.setattr(memory, "usable_memory", lambda: 1 << 30)
    monkeypatch.setattr(memory, "_address_space", lambda: None)
    folder = honest(tmp_path / "out")
    directories.like(folder / NAME, 1_000, tract="c" * letters)
    assert (folder / NAME).stat().st_size < 30_000
    if fits:
        frame = read_parquet(folder, NAME, Layout(COLUMNS, 1_000))
        assert frame["tract"].str.len_bytes().sum() == 1_000 * letters
        return
    with pytest.raises(MachineError, match=r"takes 4\.0 GB of memory, and only 0\.6 GB are free"):
        read_parquet(folder, NAME, Layout(COLUMNS, 1_000))


def test_a_limit_on_addresses_is_a_limit_on_memory(monkeypatch):
    monkeypatch.setattr(memory, "usable_memory", lambda: 1 << 40)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 35, 1 << 35))
    room = memory.available_memory()
    assert 0 < room < 0.6 * (1 << 35)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, 0))
    assert memory.available_memory() == int(0.6 * (1 << 40))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_an_encoding_that_makes_much_of_little_is_refused(tmp_path, monkeypatch, encoding):
    """Each text a letter longer than the one before: a few bytes each, by its prefix."""
    folder = honest(tmp_path / "out")
    table = pq.read_table(folder / NAME)
    longer = pa.array(["c" * (1000 * i) for i in range(len(table))])
    table = table.set_column(1, pa.field("tract", pa.string(), nullable=False), longer)
    pq.write_table(table, folder / NAME, use_dictionary=False, column_encoding={"tract": encoding})
    monkeypatch.setattr(parquet_file.pq, "ParquetFile", None)
    with pytest.raises(ReleaseError, match="a page with more values than rows, or in an encoding"):
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
                    assert longest_entry(file, found[0], chunk.compression, MOST) <= max(
                        map(len, here)
                    )
    assert len(seen) >= 3, "dictionaries, and plain pages after them"


def test_the_longest_text_of_a_dictionary_is_found(tmp_path):
    words = ["a" * i for i in range(200)] * 5
    pq.write_table(pa.table({"word": words}), tmp_path / "x.parquet", compression="zstd")
    chunk = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0)
    with (tmp_path / "x.parquet").open("rb") as file:
        start = chunk.dictionary_page_offset
        first = next(pages(file, start, start + chunk.total_compressed_size))
        assert longest_entry(file, first, chunk.compression, MOST) == 199
        with pytest.raises(TableError, match="no page"):
            longest_entry(file, replace(first, values=first.values + 1), chunk.compression, MOST)
        with pytest.raises(TableError, match="larger than any"):
            longest_entry(file, replace(first, size=1 << 30), chunk.compression, MOST)


def test_bytes_that_are_no_header_are_no_page(tmp_path):
    """Whatever they are: a sentence, and never another error or an endless loop."""
    rng = np.random.default_rng(6)
    for length in [0, 1, 5, 40, 4_000] * 40:
        (tmp_path / "x").write_bytes(bytes(rng.integers(0, 256, length, dtype=np.uint8)))
        with (tmp_path / "x").open("rb") as file, pytest.raises(TableError, match="no page"):
            list(pages(file, 0, length + 1))


@pytest.mark.parametrize("kind", directories.FORGED)
def test_forged_names_are_refused_at_their_doors(kind):
    word, areas = directories.FORGED[kind].replace(".", ""), {"county": ["a", "b"]}
    doors = {
        "level": lambda: hr.Axis.from_frame("place", {word: ["a"]}, levels=[word], columns=["x"]),
        "column": lambda: hr.Axis.from_frame("place", areas, levels=["county"], columns=[word]),
        "axis's name": lambda: hr.Axis.from_frame(word, areas, levels=["county"]),
        "unit": lambda: hr.AddRemove(2, unit=word),
    }
    for what, door in doors.items():
        with pytest.raises(hr.errors.HedgerowError, match=f"{what} must have no control") as told:
            door()
        assert unseen(str(told.value)) == set()


def test_a_release_file_with_a_forged_name_is_told_of_in_one_line(tmp_path):
    """`plan` and `release` never print it; a CSV header would carry it on."""
    word = directories.FORGED["escape"].replace("\r", "")
    pl.DataFrame({word: ["a", "b"]}).write_parquet(tmp_path / "areas.parquet")
    pl.DataFrame({word: ["a", "b"], "n": [1, 2]}).write_parquet(tmp_path / "table.parquet")
    spec = {
        "table": {"source": "table.parquet", "count": "n"},
        "axis": [{"name": "place", "levels": [word], "areas": "areas.parquet"}],
        "privacy": {"rho": "1/20"},
    }
    (tmp_path / "release.toml").write_text(toml(spec))
    for command in ("plan", "release"):
        code, out, err = ran(command, tmp_path / "release.toml")
        assert code == 2
        assert unseen(out + err) == set()
        assert r"\x1b[2K" in err
        assert len([line for line in err.splitlines() if "Error" in line]) == 1
    assert not (tmp_path / "out").exists()


def test_an_error_is_one_line_whatever_it_quotes(capsys):
    commands._print_error("a\x1b[2J\nb\u202e" + "c" * 10_000)
    said = capsys.readouterr().err
    assert unseen(said) == set()
    assert said.count("\n") == 1
    assert len(said) < LONGEST
    assert r"a\x1b[2J\nb\u202e" in said


def test_what_the_terminal_shows_is_seen_whoever_forgot_to_look():
    """The last door: lines of text, of which the ends alone are no letters."""
    assert terminal.escape("a\x1b[2J\nb\u202e[bold]") == "a\\x1b[2J\nb\\u202e\\[bold]"


def test_structures_that_are_nested_too_deeply_are_no_page(tmp_path):
    (tmp_path / "x").write_bytes(b"\x1c" * 5_000)
    with (tmp_path / "x").open("rb") as file, pytest.raises(TableError, match="no page"):
        list(pages(file, 0, 10_000))


def test_a_page_that_ends_past_its_chunk_is_no_page(tmp_path):
    pq.write_table(pa.table({"x": list(range(100))}), tmp_path / "x.parquet", use_dictionary=False)
    chunk = pq.read_metadata(tmp_path / "x.parquet").row_group(0).column(0)
    start = chunk.data_page_offset
    with (tmp_path / "x.parquet").open("rb") as file:
        assert len(list(pages(file, start, start + chunk.total_compressed_size))) == 1
        with pytest.raises(TableError, match="no page"):
            list(pages(file, start, start + chunk.total_compressed_size - 1))


@pytest.mark.parametrize("rows", [-1, 1 << 50, 19])
def test_a_footer_that_contradicts_itself_is_refused(tmp_path, rows):
    """One of its two numbers of rows is changed; the columns' own stay as they are."""
    folder = honest(tmp_path / "out")
    directories.patched_footer(20, rows, every=False)(folder / NAME)
    with pytest.raises(ReleaseError, match=r"contradicts itself|has room for|damaged"):
        read_parquet(folder, NAME, Layout(COLUMNS, 20))


def test_nothing_but_plain_files_in_plain_folders_is_opened(tmp_path):
    folder = honest(tmp_path / "out")
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(folder / NAME, tmp_path / "elsewhere" / "cuboid=2.parquet")
    layout = Layout(COLUMNS, 20)
    (folder / NAME).unlink()
    with pytest.raises(ReleaseError, match=r"counts/cuboid=2\.parquet is missing"):
        read_parquet(folder, NAME, layout)
    os.mkfifo(folder / NAME)
    with pytest.raises(ReleaseError, match="is no plain file"):
        read_parquet(folder, NAME, layout)
    (folder / NAME).unlink()
    (folder / NAME).symlink_to(tmp_path / "elsewhere" / "cuboid=2.parquet")
    with pytest.raises(ReleaseError, match="is no plain file"):
        read_parquet(folder, NAME, layout)
    with pytest.raises(ReleaseError, match="is no plain file"):
        read_release(folder).write(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()
    shutil.rmtree(folder / "counts")
    (folder / "counts").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ReleaseError, match="is no plain file"):
        read_parquet(folder, NAME, layout)


DESCRIBED = {
    "cells": lambda plan: plan["cuboids"][1].update(cells=10**9),
    "cuboid": lambda plan: plan["cuboids"][1].update(cuboid="state"),
    "levels": lambda plan: plan["cuboids"][1].update(levels=[2]),
    "kind": lambda plan: plan["cuboids"][1].update(kind="safe"),
    "fewer depths": lambda plan: plan["cuboids"].pop(),
    "sizes": lambda plan: (
        plan["tree"]["axes"][0].update(sizes=[40, 20]),
        plan["cuboids"][1].update(cells=40),
    ),
    "huge sizes": lambda plan: (
        plan["tree"]["axes"][0].update(sizes=[4, 2**40]),
        plan["cuboids"][2].update(cells=2**40),
    ),
    "no sizes": lambda plan: plan["tree"]["axes"][0].update(sizes=[0, 0]),
    "steps": lambda plan: (
        plan["tree"].update(refine=["place.tract", "place.county"]),
        plan["cuboids"][1].update(cuboid="county"),
    ),
    "a level twice": lambda plan: plan["tree"]["axes"][0].update(columns=["tract", "tract"]),
    "a column of our own": lambda plan: plan["tree"]["axes"][0].update(columns=["county", "count"]),
    "a path": lambda plan: (
        plan["tree"]["axes"][0].update(name="../x"),
        plan["tree"].update(refine=["../x.county", "../x.tract"]),
    ),
    "no list": lambda plan: plan.update(depths={}),
}


@pytest.mark.parametrize("change", DESCRIBED)
def test_a_release_whose_plan_contradicts_itself_is_not_read(tmp_path, change):
    directories.plan_of(DESCRIBED[change])(tmp_path / "out")
    with pytest.raises(ReleaseError, match="is not verified"):
        read_release(tmp_path / "out")


def test_a_page_is_read_up_to_what_ours_takes(tmp_path, monkeypatch):
    folder = honest(tmp_path / "out")
    path = folder / "report.html"
    text = path.read_text()
    seen = []

    def told(inner, most=blocks.MOST_BYTES_OF_A_BLOCK):
        seen.append(most)
        return blocks.parts_of(inner, most)

    monkeypatch.setattr(report, "parts_of", told)
    bomb = blocks.block([bytes(100_000_000)])
    first = text.index('id="cuboid-1">') + len('id="cuboid-1">')
    path.write_text(text[:first] + bomb + text[text.index("</script>", first) :])
    directories.sealed(folder, directories.manifest_of(folder))
    assert "block of the page is not" in next(f.failure for f in hr.check(folder) if f.failure)
    assert max(seen[1::2]) < 10_000, "what somebody else wrote is inflated no further than ours"
    path.write_text(text + " " * (3 << 20))
    directories.sealed(folder, directories.manifest_of(folder))
    monkeypatch.setattr(report, "_same_page", None)
    assert "is not what the files" in next(f.failure for f in hr.check(folder) if f.failure)


def test_noisy_counts_below_survivors_are_no_more_than_these_have(tmp_path):
    """The tree has twenty tracts; of four counties two survived, so ten are measured at most."""
    areas = pl.DataFrame(directories.CODES, schema=["county", "tract"], orient="row")
    tree = hr.Tree([hr.Axis.from_frame("place", areas, levels=["county", "tract"])])
    table = areas.with_columns(n=pl.when(pl.col("county") < "c2").then(10**6).otherwise(0))
    plan = plain_plan(tree, budget=hr.Rho(50), neighbours=hr.Replace())
    counts = hr.Counts.from_frame(tree, table, count="n")
    folder = tmp_path / "out"
    hr.release(counts, plan, directory=folder)
    content = hr.read_release(folder).content
    assert len(content.nodes[1,]) == 2
    assert len(content.measured[2,]) == 10
    pq.write_table(pa.table({"noisy_count": [1] * 11}), folder / "measurements/cuboid=2.parquet")
    with pytest.raises(ReleaseError, match="it has 11 rows, and the plan has room for 10"):
        hr.read_release(folder).content.measured[2,]


@pytest.mark.parametrize(
    "ledger", ["kept, and safe", {"dataset": "x"}, {"dataset": "x" * 501, "release_id": "0"}, 3]
)
def test_a_manifest_says_of_its_ledger_what_a_ledger_says(tmp_path, ledger):
    folder = honest(tmp_path / "out")
    made = directories.manifest_of(folder)
    made["ledger"] = ledger
    directories.sealed(folder, made)
    assert "says of its ledger more" in hr.check(folder)[0].failure
