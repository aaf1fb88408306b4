"""The file that is checked is the file that is read, whatever it is called."""

import polars as pl
import pytest

from tests.hostile.commands import ran

FILE = """
[table]
source = {table}
count = "n"

[[axis]]
name = "place"
levels = ["town"]
areas = {areas}

[privacy]
rho = 100000

[output]
directory = "out"
"""
NAMES = [
    "~/t", "~", "~root/t", "file:t", "file:/t", "file:~/t", "s3:t", "s3:/bucket/t", "https:/host/t",
    "gcs:t", "hf:t", "[1]t", "[!a]t", "a*t", "**t", "q?t", "{a,b}t", "a'b\"ct", "a\\bt",
    "%7Et", "%20t", "a#b?ct", " t", "t ", "$HOME", ":memory:", "-t", "a;b--t", "é👩‍👧t",
]  # fmt: skip


def toml(path):
    """A path as a literal text of TOML."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def write(folder, path, frame):
    place = folder / path
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("wb") as file:
        frame.write_parquet(file) if path.endswith(".parquet") else frame.write_csv(file)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("name", NAMES)
def test_a_file_beside_the_release_file_is_read_whatever_its_name(
    tmp_path, monkeypatch, name, suffix
):
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    folder = tmp_path / "here"
    folder.mkdir()
    table = pl.DataFrame({"town": ["a", "b"], "n": [30, 7]})
    write(folder, f"{name}{suffix}", table)
    write(folder, f"{name} areas{suffix}", table.select("town"))
    decoys = ["t", "1t", "at", "abt", "a1t", "qxt", "bt", "bucket/t", "host/t", "~/t", "root/t"]
    for decoy in decoys:  # what DuckDB would read for some of the names
        for place in (home, folder):
            if not (place / f"{decoy}{suffix}").exists():
                write(place, f"{decoy}{suffix}", table.with_columns(n=pl.col("n") * 1000))
    text = FILE.format(table=toml(f"{name}{suffix}"), areas=toml(f"{name} areas{suffix}"))
    (folder / "release.toml").write_text(text)
    monkeypatch.chdir(folder)
    for file in ("release.toml", folder / "release.toml"):
        code, _, err = ran("release", file)
        assert code == 0, err
        counts = pl.read_parquet(folder / "out" / "counts" / "cuboid=0.parquet")["count"]
        assert counts.to_list() == [37]
        (folder / "out").rename(folder / f"out {file == 'release.toml'}")


def test_a_name_that_no_pattern_can_tell_is_refused(tmp_path):
    """To DuckDB a backslash in a pattern is a stroke: it would look into another folder."""
    write(tmp_path, "a\\*t.csv", pl.DataFrame({"town": ["a"], "n": [1]}))
    write(tmp_path, "areas.csv", pl.DataFrame({"town": ["a"]}))
    write(tmp_path, "a/1t.csv", pl.DataFrame({"town": ["a"], "n": [7]}))
    text = FILE.format(table=toml("a\\*t.csv"), areas=toml("areas.csv"))
    (tmp_path / "release.toml").write_text(text)
    code, _, err = ran("release", tmp_path / "release.toml")
    assert (code, "a backslash and a wildcard in its path; rename it" in err) == (2, True)
