"""A machine that fails: no room, no permission, files cut short, nobody who reads."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.commands import ends_well, listing, ran, write
from tests.hostile.mutations import TABLES, csv, parquet, toml, trips


def files_of(kind):
    spec, files = TABLES[kind]
    return {**files, "release.toml": toml(spec).encode()}


@contextlib.contextmanager
def small_disk(place, size):
    """A file system of a few kilobytes; the test is skipped where we may not mount one."""
    place.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(place)]
    try:
        done = subprocess.run(["mount", *options], capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount here")
    if done.returncode:
        pytest.skip("mounting takes root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def wide(towns=2_000):
    """A table whose release takes tens of kilobytes."""
    spec = trips()
    spec["axis"] = [{"name": "home", "levels": ["town"], "areas": "places.csv"}]
    del spec["tree"], spec["allocation"]
    names = [f"{i * 7919:020}" for i in range(towns)]
    return {
        "places.csv": csv({"town": names}),
        "table.parquet": parquet({"town": names, "trips": list(range(1000, 1000 + towns))}),
        "release.toml": toml(spec).encode(),
    }


@pytest.mark.parametrize("room", range(0, 96, 12))
def test_a_disk_that_fills_up_at_any_point_leaves_nothing_half_written(tmp_path, room):
    files = wide()
    needed = sum(-(-len(data) // 4096) * 4 for data in files.values())
    with small_disk(tmp_path / "disk", needed + room) as disk:
        write(disk, files)
        code, _, err = ran("release", disk / "release.toml")
        assert "Traceback" not in err
        if code == 0:
            assert ran("check", disk / "out")[0] == 0
            return
        assert code == 1, err
        assert not (disk / "out").exists()
        assert "No space left" in err
        left = set(listing(disk)) - set(files)
        assert {name.split("/")[0] for name in left} <= {"out.staging"}
        again = ends_well(disk, "release", disk / "release.toml")
        is_begun = "out.staging/staging.json" in left
        assert again == (2 if is_begun else 1), "an unfinished release is spoken of"


def test_a_disk_that_is_large_enough_is_enough(tmp_path):
    with small_disk(tmp_path / "disk", 2_000) as disk:
        write(disk, wide())
        assert ends_well(disk, "release", disk / "release.toml", makes="manifest.json") == 0


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    with small_disk(tmp_path / "disk", 2_000) as disk:
        write(disk, files_of("trips"))
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert ends_well(disk, "plan", disk / "release.toml") == 0
        code, _, err = ran("release", disk / "release.toml")
        assert code == 1, err
        assert str(disk) in err
        assert "Traceback" not in err


@pytest.mark.parametrize("name", ["table.parquet", "places.parquet"])
def test_a_parquet_file_cut_anywhere_is_refused(tmp_path, name):
    spec = trips()
    for axis in spec["axis"]:
        axis["areas"] = "places.parquet"
    files = dict(TABLES["trips"][1])
    files["places.parquet"] = parquet(
        {"region": ["r1", "r1", "r2", "r2", "r2"], "town": ["t1", "t2", "t3", "t4", "t5"]}
    )
    whole = files[name]
    write(tmp_path, {**files, "release.toml": toml(spec).encode()})
    for length in range(0, len(whole), 90):
        (tmp_path / name).write_bytes(whole[:length])
        assert ends_well(tmp_path, "release", tmp_path / "release.toml") == 2, length
    (tmp_path / name).write_bytes(whole)
    assert ends_well(tmp_path, "release", tmp_path / "release.toml", makes="manifest.json") == 0


def test_a_released_file_cut_anywhere_fails_the_check(tmp_path):
    write(tmp_path, files_of("trips"))
    assert ran("release", tmp_path / "release.toml")[0] == 0
    for file in ("counts/cuboid=2-2.parquet", "measurements/cuboid=2-2.parquet", "manifest.json"):
        path = tmp_path / "out" / file
        whole = path.read_bytes()
        for length in range(0, len(whole) - 8, max(50, len(whole) // 10)):
            path.write_bytes(whole[:length])
            assert ends_well(tmp_path, "check", tmp_path / "out") == 2, (file, length)
        path.write_bytes(whole)
    assert ends_well(tmp_path, "check", tmp_path / "out") == 0


def started(*arguments, **streams):
    command = [sys.executable, "-m", "hedgerow.cli", *map(str, arguments)]
    return subprocess.run(command, text=True, check=False, timeout=600, **streams)


COMMAND = "import sys, hedgerow_command; sys.argv[0] = 'hedgerow'; hedgerow_command.main()"


@pytest.mark.parametrize("command", [["-c", COMMAND], ["-m", "hedgerow.cli"]], ids=["console", "m"])
@pytest.mark.parametrize(
    ("words", "full", "code", "said"),
    [
        (["plan"], "stdout", 1, "No space left on device"),
        (["--version"], "stdout", 1, "No space left on device"),
        (["plan", "no.toml"], "stderr", 2, None),
    ],
)
def test_output_that_nobody_can_write_down_ends_in_the_promised_exit_code(
    tmp_path, words, full, code, said, command
):
    """Where its own flush at the end fails, Python exits with 120."""
    write(tmp_path, files_of("trips"))
    words = [*words, "release.toml"] if words == ["plan"] else words
    surroundings = {**os.environ, "PYTHONUNBUFFERED": ""}  # else nothing is left to flush
    with Path("/dev/full").open("w") as opened:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, full: opened}
        done = subprocess.run(
            [sys.executable, *command, *words], text=True, check=False, timeout=600, cwd=tmp_path,
            env=surroundings, **streams,
        )  # fmt: skip
    assert done.returncode == code, done.stderr
    if said is not None:
        assert done.stderr.rstrip().endswith(said)
        assert done.stderr.count("Error: ") == 1
        assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_is_no_traceback(tmp_path):
    write(tmp_path, files_of("trips"))
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = started("plan", tmp_path / "release.toml", stdout=writing, stderr=subprocess.PIPE)
    finally:
        os.close(writing)
    assert "Traceback" not in done.stderr
    assert done.returncode in {1, 141}, done.stderr
