"""What options and paths can be that nobody means: one sentence each, and nothing half-written."""

import copy
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import MachineError
from hedgerow.release import execution
from hedgerow.release.directory import check as checking
from hedgerow.release.directory import staging
from hedgerow.tables.sources import files
from hedgerow.tables.sources.database import open_database
from tests.hostile.commands import ends_well, ran, write
from tests.hostile.mutations import TABLES, toml

ODD = os.fsdecode(b"caf\xe9")
"""A name in Latin-1, as old archives unpack."""


def made(folder, **sections):
    spec, stored = TABLES["trips"]
    write(folder, {**stored, "release.toml": toml({**copy.deepcopy(spec), **sections}).encode()})
    return folder / "release.toml"


@pytest.mark.parametrize("records", ["9" * 400, str(10**18 + 1), "-1", "9" * 5000, "nan", "1e3"])
def test_a_number_of_records_that_no_table_has_is_refused(tmp_path, records):
    assert ends_well(tmp_path, "plan", made(tmp_path), f"--records={records}") == 2


def test_the_largest_number_of_records_is_planned_for(tmp_path):
    assert ends_well(tmp_path, "plan", made(tmp_path), f"--records={10**18}") == 0


@pytest.mark.parametrize("workload", ["cube", ["origin.town"], "chain"])
@pytest.mark.parametrize("target", ["1e-308", "5e-324", "1.7e308", "1e-9"])
def test_a_target_that_no_budget_reaches_is_refused(tmp_path, workload, target):
    file = made(
        tmp_path,
        workload={"cuboids": workload},
        allocation={"method": "optimal"},
        estimate={"method": "euclidean", "measure": "all"},
    )
    assert ends_well(tmp_path, "plan", file, f"--target-mse={target}") == 2


def test_a_path_that_is_no_text_is_refused_in_words(tmp_path):
    folder = tmp_path / ODD
    folder.mkdir()
    file = made(folder)
    for command in ("plan", "release", "compare"):
        code, _, err = ran(command, file)
        assert (code, "name that is not UTF-8 text" in err) == (2, command != "compare")
    assert ends_well(tmp_path, "example", "commuting", tmp_path / f"{ODD}2") == 2
    shutil.copyfile(folder / "places.csv", tmp_path / "people.csv")
    listed = ("--list", folder / "places.csv")
    assert ends_well(tmp_path, "new", tmp_path / "people.csv", tmp_path / "n.toml", *listed) == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sav"])
def test_a_table_whose_name_is_no_text_is_refused_in_words(tmp_path, suffix):
    place = tmp_path / f"{ODD}.{suffix}"
    place.write_bytes(b"town\nt1\n")
    tree = hr.Tree([hr.Axis.from_frame("place", {"town": ["t1"]}, ["town"])])
    with pytest.raises(hr.TableError, match="name that is not UTF-8 text"):
        hr.Counts.from_frame(tree, place)


def test_a_place_that_cannot_be_is_bad_input(tmp_path):
    file = made(tmp_path)
    assert ran("release", file)[0] == 0
    below = file / "x"
    for command in (
        ("new", file, below),
        ("example", "commuting", below),
        ("report", "/"),
        ("report", "a" * 300),
        ("example", "commuting", file),
    ):
        assert ends_well(tmp_path, *command) == 2, command


@pytest.mark.parametrize("named", ["folder", "glob"])
def test_a_folder_of_the_whole_disk_is_not_walked(tmp_path, monkeypatch, named):
    monkeypatch.setattr(files, "MOST_ENTRIES", 100)
    many = tmp_path / "many"
    for each in range(11):
        (many / str(each)).mkdir(parents=True)
        for number in range(10):
            (many / str(each) / f"{number}.txt").touch()
    seen = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda place: seen.append(place) or scandir(place))
    place = many if named == "folder" else many / "**" / "*.parquet"
    file = made(tmp_path)
    for command in (
        ("new", place, tmp_path / "new.toml"),
        ("new", tmp_path / "table.parquet", tmp_path / "new.toml", "--list", place),
        ("release", made(tmp_path, table={"source": str(place)})),
    ):
        seen.clear()
        code, _, err = ran(*command)
        assert (code, "name the table's own" in err) == (2, True), err
        assert len(seen) < 60
    assert file.exists()


def test_a_folder_that_cannot_be_removed_is_named(tmp_path, monkeypatch):
    """It may hold parts of the table; Python's own way to remove it calls itself without end."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def denied(path, *_args, **_options):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "rmdir", denied)
    with (
        pytest.raises(MachineError, match="may hold parts of the table"),
        open_database(),
    ):
        pass


def test_too_little_virtual_memory_to_begin_with_is_said_in_a_sentence():
    if not sys.platform.startswith("linux"):
        pytest.skip("ulimit -v is Linux's")
    code = "import hedgerow_command, sys; sys.argv[1:] = ['check', 'x']; hedgerow_command.main()"
    command = f'ulimit -v 900000; exec {sys.executable} -c "{code}"'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: the limit of virtual memory (ulimit -v) is 0.9 GB")
    assert done.stderr.count("\n") == 1


def test_what_a_check_may_not_read_has_failed(tmp_path, monkeypatch):
    file = made(tmp_path)
    assert ran("release", file)[0] == 0

    def denied(*_args, **_options):
        raise MachineError("no permission to read it") from PermissionError(13, "denied")

    with monkeypatch.context() as patch:
        patch.setattr(checking, "stated_plan", denied)
        assert ran("check", tmp_path / "out")[0] == 2
    with monkeypatch.context() as patch:  # by another version, too
        patch.setattr(checking, "made_by", lambda _: "0.1")
        patch.setattr(checking, "check_report", denied)
        assert ran("check", tmp_path / "out")[0] == 2


@pytest.mark.parametrize("form", ["datapackage", "sdmx"])
def test_an_export_warns_of_formulas_as_a_table_does(tmp_path, form):
    towns = ["=1+1", "-9", "b"]
    areas = pl.DataFrame({"town": towns})
    tree = hr.Tree([hr.Axis.from_frame("place", areas, ["town"])])
    counts = hr.Counts.from_frame(tree, areas.with_columns(n=pl.Series([900, 800, 700])), count="n")
    hr.release(counts, hr.make_plan(tree, budget=hr.Rho(1)), directory=tmp_path / "out")
    code, _, err = ran("export", tmp_path / "out", "--as", form, "--output", tmp_path / "there")
    assert code == 0, err
    written = [path.read_text() for path in (tmp_path / "there").rglob("*.csv")]
    assert ("begin like formulas" in err) == any("=1+1" in text for text in written)
    assert form == "sdmx" or "begin like formulas" in err


def test_a_release_that_appears_meanwhile_is_not_resumed_but_moved_away(tmp_path, monkeypatch):
    file = made(tmp_path)
    written = execution.write_manifest

    def appearing(*given):
        manifest = written(*given)
        shutil.copytree(given[0], tmp_path / "out")
        return manifest

    with monkeypatch.context() as patch:
        patch.setattr(execution, "write_manifest", appearing)
        code, _, err = ran("release", file)
    assert code == 1
    assert f"move '{tmp_path / 'out'}' away, then finish it with --resume" in err
    (tmp_path / "out").rename(tmp_path / "moved")
    assert ran("release", file, "--resume")[0] == 0
    assert ran("check", tmp_path / "out")[0] == 0


def test_what_a_complete_release_left_is_not_to_be_resumed(tmp_path, monkeypatch):
    file = made(tmp_path)

    def killed(_folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(staging, "remove", killed)
        assert ran("release", file)[0] == 130
    (tmp_path / "out").rename(tmp_path / "moved")
    code, _, err = ran("release", file, "--resume")
    assert (code, "there is nothing to resume" in err) == (2, True), err
    (tmp_path / "moved").rename(tmp_path / "out")
    (tmp_path / "out.staging").mkdir(exist_ok=True)
    assert ran("release", file, "--resume")[0] == 0
    assert not (tmp_path / "out.staging").exists()


def test_a_folder_that_stays_behind_a_release_says_that_it_is_complete(tmp_path, monkeypatch):
    file = made(tmp_path)
    rmdir = os.rmdir

    def denied(path, *given, **named):
        if str(path).endswith(".staging"):
            raise PermissionError(13, "Permission denied", str(path))
        rmdir(path, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", denied)
        code, _, err = ran("release", file)
    assert (code, "is complete, and --resume tidies up" in err) == (1, True), err
    assert stat.S_ISDIR(Path(tmp_path / "out").stat().st_mode)
    assert ran("release", file, "--resume")[0] == 0
