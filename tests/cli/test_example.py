"""`example redistricting`: its usual size, its two release files, and what is printed."""

import polars as pl

from hedgerow.examples import EXAMPLES, SIZES


def test_a_state_is_written_unless_another_size_is_given(run, tmp_path):
    code, out, err = run("example", "redistricting", tmp_path / "x")
    assert code == 0
    assert "writing the state redistricting example" in err
    assert pl.scan_parquet(tmp_path / "x" / "areas.parquet").select(pl.len()).collect().item() == (
        25_000
    )
    first, second = out.splitlines()
    assert first == f"The marginals and shares of the 2020 census: {tmp_path}/x/production.toml"
    assert second == f"Next: hedgerow plan {tmp_path}/x/release.toml"


def test_a_size_may_be_given(succeeds, tmp_path):
    succeeds("example", "redistricting", tmp_path / "x", "--size", "small")
    assert pl.read_parquet(tmp_path / "x" / "areas.parquet").height == 2_100


def test_the_usual_size_of_every_example_is_one_of_its_own(run, tmp_path):
    assert SIZES.keys() == EXAMPLES.keys()
    for kind, sizes in SIZES.items():
        code, _, err = run("example", kind, tmp_path / kind, "--size", "none")
        assert code == 2
        assert all(size in err for size in sizes)
    assert {sizes[0] for sizes in SIZES.values()} == {"small", "state"}


def test_the_release_file_is_planned_with_its_exact_price(run, succeeds, tmp_path):
    run("example", "redistricting", tmp_path, "--size", "small")
    out = succeeds("plan", tmp_path / "release.toml")
    assert "16.2194" in out, "ε at δ = 1e-10"
    assert "126 of 2,016 attribute cells hold nobody" in out
