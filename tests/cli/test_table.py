"""`table`: the counts of a release as CSV, as Parquet and on the terminal."""

import shutil
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from hedgerow import read_release
from hedgerow.cli.output_file import write_parts
from hedgerow.examples.commuting import write_commuting

SURENESS = ["estimate", "standard_error", "low", "high", "contradicted"]
COLUMNS = ["o_region", "d_region", "count", *SURENESS]


@pytest.fixture(scope="session")
def released(tmp_path_factory):
    """A release of the small commuting example, made once."""
    from hedgerow import cli  # noqa: PLC0415

    file = write_commuting(tmp_path_factory.mktemp("table") / "commuting", "small")
    assert cli.run(["release", str(file)]) == 0
    return file.parent / "out"


@pytest.fixture
def out(released, tmp_path):
    return Path(shutil.copytree(released, tmp_path / "out"))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_depth_is_written_as_the_release_has_it(succeeds, out, tmp_path, kind):
    file = tmp_path / f"regions.{kind}"
    said = succeeds("table", out, "--depth", "2", "--output", file)
    read = pl.read_csv if kind == "csv" else pl.read_parquet
    schema = {"schema_overrides": {"d_region": pl.String, "o_region": pl.String}}
    found = read(file, **(schema if kind == "csv" else {}))
    wanted = read_release(out).level(depth=2)
    assert found.columns == COLUMNS
    assert found.equals(wanted)
    assert f"{len(wanted)} rows: {file}" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", file.name]


def test_a_level_is_a_depth_by_name(succeeds, out, tmp_path):
    name = read_release(out).plan.tree.cuboid_name(2)
    for choice, file in (("--level", "a.csv"), ("--depth", "b.csv")):
        given = name if choice == "--level" else 2
        succeeds("table", out, choice, given, "--output", tmp_path / file)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_cuboid_off_the_tree_is_summed(succeeds, out, tmp_path):
    file, by = tmp_path / "x.csv", ["--by", "origin=province", "--by", "destination=region"]
    succeeds("table", out, *by, "--counts-only", "--output", file)
    found = pl.read_csv(file)
    assert found.columns == ["o_region", "o_province", "d_region", "count"]
    assert found["count"].sum() == read_release(out).level(depth=0)["count"].sum()
    succeeds("table", out, *by, "--output", tmp_path / "with.csv")
    assert pl.read_csv(tmp_path / "with.csv").columns[-5:] == SURENESS


def test_the_first_rows_are_shown(succeeds, out):
    said = succeeds("table", out, "--depth", "6")
    every = len(read_release(out).level(depth=6))
    assert every > 20
    assert f"20 of {every:,} rows" in said
    assert len(succeeds("table", out, "--depth", "6", "--wide").split("\n\n")[0].splitlines()) == 21
    said = succeeds("table", out, "--depth", "2", "--counts-only")
    assert said.splitlines()[0].split() == ["o_region", "d_region", "count"]


def test_a_file_that_is_there_stays_unless_forced(succeeds, refuses, out, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("mine")
    refuses(
        "exists already; name another file, or add --force",
        "table",
        out,
        "--depth",
        "1",
        "--output",
        file,
    )
    assert file.read_text() == "mine"
    succeeds("table", out, "--depth", "1", "--output", file, "--force")
    assert file.read_text().startswith(("d_region,", "o_region,"))


def test_what_cannot_be_written_leaves_nothing(run, out, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    code, _, err = run("table", out, "--depth", "1", "--output", tmp_path / "x.csv")
    assert (code, "No space left" in err) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


REFUSED = {
    "nothing": ((), "name one table: --level, or --depth, or --by AXIS=LEVEL, or --areas"),
    "two": (("--depth", "1", "--by", "origin=region"), "name one table"),
    "no depth": (("--depth", "9"), "no depth 9; there are 0 (total)"),
    "level of an axis": (("--level", "origin.region"), "no cuboid 'origin.region'"),
    "its --by": (("--level", "province"), "sums over the other axes write --by origin=province"),
    "its records": (
        ("--records", "--level", "province"),
        "--by origin=province without --records, or take the released table's records: --records",
    ),
    "no axis": (("--by", "orign=region"), "no axis is called 'orign'"),
    "no level": (("--by", "origin=regoin"), "did you mean 'region'?"),
    "no pair": (("--by", "origin"), "no axis has such a level or column; write --by AXIS="),
    "twice": (("--by", "origin=region", "--by", "origin=province"), "gives 'origin' twice"),
    "kind": (("--depth", "1", "--output", "x.xlsx"), "must end in .csv or .parquet"),
    "folder": (("--depth", "1", "--output", "no/x.csv"), "the directory does not exist"),
    "within": (("--depth", "1", "--output", "out/x.csv"), "lies within the release"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("out")
def test_what_is_no_table_of_the_release_is_refused(refuses, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    arguments, message = REFUSED[name]
    before = sorted(tmp_path.rglob("*"))
    refuses(message, "table", "out", *arguments)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_damaged_release_is_named(run, out):
    (out / "counts" / "cuboid=0-1.parquet").write_bytes(b"PAR1")
    code, _, err = run("table", out, "--depth", "1")
    assert code in {1, 2}
    assert "internal error" not in err


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_records_have_a_row_for_every_record_and_the_sums_of_the_release(run, out, tmp_path, kind):
    file, release = tmp_path / f"records.{kind}", read_release(out)
    code, said, err = run("table", out, "--records", "--output", file)
    assert code == 0
    assert "writing the records" in err
    total = release.level(depth=0)["count"].item()
    assert f"{total:,} rows: {file}" in said
    records = pl.read_csv(file, infer_schema=False) if kind == "csv" else pl.read_parquet(file)
    assert len(records) == total
    leaves = release.level(depth=release.plan.tree.depth)
    codes = [name for columns in release.columns.values() for name in columns]
    assert sorted(records.columns) == sorted(codes)
    summed = records.group_by(codes).len("count").sort(codes)
    assert summed.equals(leaves.select(*codes, pl.col("count").cast(pl.UInt32)).sort(codes))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", file.name]


def test_records_of_a_coarser_cuboid_and_the_first_of_them(succeeds, out):
    said = succeeds("table", out, "--records", "--depth", "2")
    total = read_release(out).level(depth=0)["count"].item()
    assert f"20 of {total:,} records" in said
    assert said.splitlines()[0].split() == ["o_region", "d_region"]
    assert len(succeeds("table", out, "--depth", "6", "--wide").split("\n\n")[0].splitlines()) == 21


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--by", "origin=region"), "--records goes with --level or --depth"),
        (("--counts-only",), "--records goes with --level or --depth"),
        (("--level", "total", "--depth", "1"), "name one table: --level, or --depth"),
    ],
)
def test_records_are_of_one_cuboid_of_the_plan(refuses, out, more, words):
    refuses(words, "table", out, "--records", *more)


def test_records_of_a_damaged_release_leave_no_file(refuses, out, tmp_path):
    name = f"cuboid={'-'.join(map(str, read_release(out).plan.tree.chain[-1]))}.parquet"
    file = out / "counts" / name
    table = pq.read_table(file)
    pq.write_table(table.slice(1), file)
    refuses("run hedgerow check", "table", out, "--records", "--output", tmp_path / "x.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_formulas_in_records_are_quoted_or_warned_of(tmp_path, capsys):
    frames = [pl.DataFrame({"=town": ["a", "=1+1"]}), pl.DataFrame({"=town": ["@x", "-9"]})]
    write_parts(frames, tmp_path / "x.csv")
    assert "Warning: 3 codes or names" in capsys.readouterr().err
    assert (tmp_path / "x.csv").read_text() == "=town\na\n=1+1\n@x\n-9\n"
    write_parts(frames, tmp_path / "y.csv", quote_formulas=True)
    assert capsys.readouterr().err == ""
    assert (tmp_path / "y.csv").read_text() == "'=town\na\n'=1+1\n'@x\n-9\n"


def test_noisy_counts_are_written_with_codes_and_variances(succeeds, out, tmp_path):
    release = read_release(out)
    name, file = release.plan.tree.cuboid_name(2), tmp_path / "noisy.parquet"
    said = succeeds("table", out, "--noisy", "--level", name, "--output", file)
    found = pl.read_parquet(file)
    assert found.columns == ["o_region", "d_region", "noisy_count", "variance"]
    assert found.equals(release.measurements(name))
    assert f"{len(found):,} rows: {file}" in said
    by = ["--by", "origin=region", "--by", "destination=region"]
    for chosen in (["--depth", "2"], by):
        again = tmp_path / f"{chosen[0]}.parquet"
        succeeds("table", out, "--noisy", *chosen, "--output", again)
        assert pl.read_parquet(again).equals(found)
    said = succeeds("table", out, "--noisy", "--depth", "2")
    assert said.splitlines()[0].split() == found.columns
    assert "noisy counts as they were measured, unbiased" in said


def test_rounded_counts_and_those_left_out_are_said_and_marked(succeeds, out, tmp_path):
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    wanted = read_release(out).level(depth=4)
    options = ["--depth", "4", "--round", "5", "--suppress-wider", "0.5"]
    said = succeeds("table", out, *options)
    wide = (wanted["high"] - wanted["low"]) > 0.5 * wanted["count"]
    assert 0 < wide.sum() < len(wanted)
    assert f"{wide.sum():,} of {len(wanted):,} counts are left out" in said
    assert "[u]" in said.split("\n\n")[0]
    assert "Counts are rounded to multiples of 5" in said
    for more in ((), ("--counts-only",)):
        file = tmp_path / f"shown{len(more)}.parquet"
        succeeds("table", out, *options, *more, "--output", file)
        shown = pl.read_parquet(file)
        assert shown["suppressed"].equals(wide.rename("suppressed"))
        assert shown["count"].is_null().equals(wide)
        assert (shown["count"].drop_nulls() % 5 == 0).all()
        assert (shown["rounded_to"] == 5).all()
        assert ("estimate" in shown.columns) == (not more)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


MIXED = {
    "both": (("--noisy", "--records"), "it shows codes alone"),
    "records, left out": (("--records", "--suppress-wider", "0.5"), "it shows codes alone"),
    "noisy, counts": (("--noisy", "--depth", "1", "--counts-only"), "as they were measured; leave"),
    "noisy, rounded": (("--noisy", "--depth", "1", "--round", "5"), "as they were measured; leave"),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_is_shown_as_it_is_takes_no_rounding(refuses, out, name):
    arguments, message = MIXED[name]
    refuses(message, "table", out, *arguments)


def test_noisy_counts_of_what_was_not_measured_are_refused(refuses, out):
    refuses("no cuboid 'origin.province'", "table", out, "--noisy", "--by", "origin=province")
    refuses("did you mean 'region'?", "table", out, "--noisy", "--by", "origin=regoin")


@pytest.fixture
def lookup(out, tmp_path):
    """Origin regions in two areas of which one holds the other."""
    regions = read_release(out).cuboid(None, origin="region")["o_region"].to_list()
    rows = [(code, "all") for code in regions] + [(regions[0], "first")]
    file = tmp_path / "seats.csv"
    pl.DataFrame(rows, schema=["o_region", "seat"], orient="row").write_csv(file)
    return file


def test_counts_over_areas_of_ones_own_are_shown_and_written(
    succeeds, refuses, out, tmp_path, lookup
):
    release, file = read_release(out), tmp_path / "seats.parquet"
    refuses(
        "ask for counts alone: areas(…, confidence=None) or --counts-only",
        "table",
        out,
        "--areas",
        lookup,
    )
    options = ["--areas", lookup, "--counts-only"]
    said = succeeds("table", out, *options)
    assert said.splitlines()[0].split() == ["seat", "count"]
    assert "areas may overlap, so their sums need not be the total" in said
    succeeds("table", out, *options, "--by", "destination=region", "--output", file)
    found = pl.read_parquet(file)
    by = {"destination": "region"}
    assert found.equals(release.areas(lookup, by=by, confidence=None))
    assert found.filter(seat="all")["count"].sum() == release.level(depth=0)["count"].sum()


AREAS_REFUSED = {
    "level": (("--level", "region"), "leave out --level and --depth"),
    "no column": (("--area-column", "seet"), "did you mean 'seat'?"),
    "noisy": (("--noisy",), "leave out --counts-only, --areas"),
    "records": (("--records",), "it shows codes alone"),
}


@pytest.mark.parametrize("name", AREAS_REFUSED)
def test_what_does_not_go_with_areas_is_refused(refuses, out, lookup, name):
    arguments, message = AREAS_REFUSED[name]
    refuses(message, "table", out, "--areas", lookup, *arguments)
    refuses(
        "--area-column names a column of the file of --areas",
        "table",
        out,
        "--depth",
        "1",
        "--area-column",
        "seat",
    )


def test_all_cells_are_listed_on_demand(run, succeeds, out, tmp_path):
    file, release = tmp_path / "all.parquet", read_release(out)
    said = succeeds("table", out, "--all", "--depth", "6")
    assert "a cell that is not listed is known to be empty, or was not measured" in said
    succeeds("table", out, "--all", "--depth", "6", "--output", file)
    found = pl.read_parquet(file)
    assert found.equals(release.level(depth=6, all=True))
    assert len(found) == len(release.measurements(depth=6)) > len(release.level(depth=6))
    for more in (["--by", "origin=region"], ["--depth", "6", "--noisy"], ["--records"]):
        assert run("table", out, "--all", *more)[0] == 2
