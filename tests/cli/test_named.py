"""The commands on a release of named cuboids, and on plans of them."""

import shutil
from pathlib import Path

import polars as pl
import pytest

from hedgerow.estimate.workload import general
from hedgerow.release.release import read_release

OUTFLOWS = '["origin.municipality × destination.region", "destination.municipality"]'
ALIKE = '["origin.region", "destination.region"]'


@pytest.fixture
def folder(two_tables_of_trips, tmp_path):
    return Path(shutil.copytree(two_tables_of_trips, tmp_path / "trips"))


def test_sums_of_a_table_have_intervals_and_others_a_sentence(succeeds, refuses, folder, tmp_path):
    file = tmp_path / "x.parquet"
    by = ("--by", "origin=province", "--by", "destination=region")
    succeeds("table", folder / "out", *by, "--output", file)
    found = pl.read_parquet(file)
    wanted = read_release(folder / "out").cuboid(origin="province", destination="region")
    assert found.select(sorted(found.columns)).equals(wanted.select(sorted(found.columns)))
    succeeds("table", folder / "out", *by, "--counts-only", "--output", file, "--force")
    assert pl.read_parquet(file)["count"].to_list() == wanted["count"].to_list()
    by = ("--by", "origin=region", "--by", "destination=province")
    for more in ((), ("--counts-only",)):
        refuses(
            "is no sum of what was released: the released tables are",
            "table",
            folder / "out",
            *by,
            *more,
        )
    refuses("did you mean 'destination'?", "table", folder / "out", "--by", "dest=region")
    refuses("a workload of named cuboids has no depths", "table", folder / "out", "--depth", "1")


@pytest.mark.usefixtures("few_draws")
def test_a_directory_is_verified_compared_shared_and_estimated_again(succeeds, folder, tmp_path):
    said = succeeds("check", folder / "out")
    assert "destination.region: every count is the sum of those of destination.municipality" in said
    own = "destination.municipality: every count is the sum of those of destination.municipality"
    assert own not in said.replace("× destination", "× other"), "a table is no check of itself"
    succeeds("account", folder / "out")
    said = succeeds("compare", folder / "release.toml", "--picture", tmp_path / "e.svg", "--wide")
    assert "origin.municipality × destination.region" in said
    by = ("--by", "destination=municipality", "--amount", "1000")
    said = succeeds("funds", folder / "out", *by)
    assert "1,000 shared by destination.municipality" in said
    by = (*by[:2], "--amount", "1000000.5")
    assert "1,000,000.50 shared by" in succeeds("funds", folder / "out", *by)
    said = succeeds("estimate", folder / "out", "--output", tmp_path / "own")
    differences = [line.split()[-3] for line in said.splitlines() if line.endswith("on average")]
    assert set(differences) == {"0"}, "its own method makes the release again"


def test_shares_of_what_is_no_cuboid_of_the_workload_are_refused(run, folder):
    code, _, err = run("funds", folder / "out", "--by", "destination=province", "--amount", "3")
    assert code == 2
    words = " ".join(err.split())
    assert "the plan has no cuboid 'destination.province' (a level of axis 'destination'" in words
    assert "to share by another, name it in [workload] of a new release" in words


def test_fairness_of_counts_that_are_alike_is_one_sentence(succeeds, folder):
    file = folder / "release.toml"
    file.write_text(file.read_text().replace(OUTFLOWS, ALIKE))
    said = succeeds("plan", file, "--fairness")
    assert "All counts of a cuboid have the same variance." in said
    assert "ratio" not in said


def test_a_chain_a_cube_and_named_cuboids_are_simulated_beside_each_other(succeeds, folder):
    file = folder / "simulate.toml"
    beside = '{ cuboids = ["origin.municipality", "destination.municipality"], chain = true }'
    file.write_text(
        '[simulate]\npublic = true\nrelease = "release.toml"\n'
        f'workloads = ["chain", "cube", {OUTFLOWS}, {beside}]\n'
        'allocations = ["uniform"]\nmeasures = ["all"]\nestimators = ["euclidean"]\n'
        'baselines = ["leaf-noise"]\n[simulate.table]\nsource = "public.parquet"\n'
        'count = "trips"\n'
    )
    trips = pl.read_parquet(folder / "trips.parquet")
    trips.with_columns(trips=pl.col("trips") * 2 + 1).write_parquet(folder / "public.parquet")
    output = folder / "errors.parquet"
    said = succeeds(
        "simulate",
        file,
        "--runs",
        "3",
        "--show",
        "rmse",
        "--output",
        output,
        "--picture",
        folder / "errors.svg",
    )
    errors = pl.read_parquet(output)
    of = {name: len(part) for (name,), part in errors.group_by("setting", maintain_order=True)}
    assert sorted(of.values()) == [10, 16, 16, 16, 16]
    words = " ".join(said.split())
    assert "Left out:" in words
    assert "6 of the cuboids, such as origin.region × destination.province and " in words
    assert ", which no released table contains" in words
    outflow = errors.filter(pl.col("cuboid") == "origin.municipality")
    by_name = dict(outflow.select("setting", "rmse").rows())
    chain = next(value for name, value in by_name.items() if name.startswith("chain,"))
    beside = [v for n, v in by_name.items() if "chain" in n and not n.startswith("chain,")]
    assert len(beside) == 1
    assert any(
        name.startswith("chain with origin.municipality, destination.municipality, ")
        for name in by_name
    )
    assert beside[0] < chain / 2, "what margins beside a chain are for"


@pytest.mark.parametrize("command", ["plan", "release"])
def test_estimates_that_cannot_be_made_are_found_before_anything_is_signed(
    succeeds, refuses, folder, monkeypatch, command
):
    text = (folder / "release.toml").read_text()
    margins = 'cuboids = ["origin.municipality", "destination.municipality"]\nchain = true'
    start = text.index("cuboids = ")
    (folder / "release.toml").write_text(text[:start] + margins + text[text.index("\n", start) :])
    shutil.rmtree(folder / "out")
    monkeypatch.setattr(general, "MOST_DENSE", 0)
    succeeds("plan", folder / "release.toml")
    monkeypatch.setattr(general, "MOST_STEPS", 2)
    refuses("do not settle within 1 steps", command, folder / "release.toml")
    assert not (folder / "out").exists()


def test_a_plan_is_simulated_and_priced(succeeds, folder):
    text = (folder / "release.toml").read_text()
    assert "[prior]" not in text
    said = succeeds("plan", folder / "release.toml", "--records", "100000")
    assert "Expected cost (rough)" in said
    assert "Sums that are not a depth" not in said
