"""`hedgerow plan` of a cube: its allocations in a release file, its matrix, its smallest budget."""

import json
import re

import polars as pl
import pytest

FILE = """
[table]
source = "trips.csv"
[[axis]]
name = "origin"
levels = ["o_region", "o_town"]
areas = "o.csv"
[[axis]]
name = "destination"
levels = ["d_region", "d_town"]
areas = "d.csv"
[workload]
cuboids = "cube"
[privacy]
rho = "0.02"
neighbours = "replace"
"""


@pytest.fixture
def pairs(tmp_path):
    """The release file of a cube over pairs of twelve towns; no table is there to be read."""
    for axis in "od":
        regions = [f"r{town // 4}" for town in range(12)]
        towns = [f"t{town:02d}" for town in range(12)]
        pl.DataFrame({f"{axis}_region": regions, f"{axis}_town": towns}).write_csv(
            tmp_path / f"{axis}.csv"
        )
    (tmp_path / "release.toml").write_text(FILE)
    return tmp_path / "release.toml"


def allocate(file, *lines):
    file.write_text("\n".join([FILE, "[allocation]", *lines]))


@pytest.mark.parametrize(
    "lines",
    [
        ('method = "uniform"',),
        (
            'method = "shares"',
            'shares = {origin = ["0.2", "0.3", "0.5"], destination = ["0", "1/3", "2/3"]}',
        ),
        ('method = "optimal"', "importance = {origin = [1, 2, 3]}"),
        ('method = "optimal"', 'importance = {"origin.o_region" = 3}'),
        ('method = "optimal"', 'importance = "levels"'),
        ('method = "optimal"', 'objective = "largest"'),
        ('method = "fair"', "ratio = 2"),
    ],
    ids=["uniform", "shares", "by-axis", "by-cuboid", "levels", "largest", "fair"],
)
def test_every_allocation_of_a_cube_is_planned_from_a_file(succeeds, pairs, lines):
    allocate(pairs, *lines)
    out = succeeds("plan", pairs)
    matrix = out.split("RMSE by levels of origin (down) and destination (across)")[1]
    assert [line.split()[0] for line in matrix.split("\n")[2:6]] == [
        "total", "total", "o_region", "o_town",
    ]  # fmt: skip


def test_the_forecast_of_a_cube_is_by_levels_in_json(succeeds, pairs):
    rows = json.loads(succeeds("plan", pairs, "--json"))["forecast"]
    assert [row["levels"] for row in rows][:3] == [[0, 0], [0, 1], [1, 0]]
    assert {row["depth"] for row in rows} == {None}


def test_shares_by_cuboid_that_are_no_product_are_planned_from_a_file(succeeds, pairs):
    allocate(
        pairs,
        'method = "shares"',
        'shares = {"origin.o_region" = "1/2", "origin.o_town × destination.d_town" = "1/2"}',
    )
    out = succeeds("plan", pairs, "--json")
    rows = {tuple(row["levels"]): row for row in json.loads(out)["forecast"]}
    assert {k for k, row in rows.items() if row["share"]} == {(1, 0), (2, 2)}
    assert all(row["rmse"] >= 0 for row in rows.values())


def test_a_target_of_a_cube_is_for_its_estimates(run, pairs):
    allocate(pairs, 'method = "optimal"', 'objective = "cells"')
    code, _, complaint = run("plan", pairs, "--target-mse", "30000")
    assert code == 2
    assert 'needs objective = "released": it is for estimates' in complaint.replace("\n", " ")


@pytest.mark.parametrize("lines", [(), ('method = "optimal"', 'objective = "released"')])
def test_the_lines_for_a_target_give_the_file_of_a_cube_the_same_plan(succeeds, pairs, lines):
    if lines:
        allocate(pairs, *lines)
    said = succeeds("plan", pairs, "--target-mse", "30000")
    wanted = re.search(r"--expect-plan (\w+)", said.replace("\n", " "))[1]
    rho = re.search(r'rho = "(.*)"', said)[1]
    shares = re.search(r"shares = \{.*?\}", said, re.DOTALL)[0].replace("\n", " ")
    allocate(pairs, 'method = "shares"', shares)
    pairs.write_text(pairs.read_text().replace('rho = "0.02"', f'rho = "{rho}"'))
    out = succeeds("plan", pairs, "--json")
    told = json.loads(out)
    assert told["sha256"] == wanted
    assert sum(row["cells"] * row["rmse"] ** 2 for row in told["forecast"]) <= 30000
