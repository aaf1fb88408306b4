"""What commands say of counts that their own measurements contradict."""

import json

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow import read_release
from tests.release.contradictions import counts_of, made, mostly_lost, small_group, uneven


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    """A release on disk whose towns are all contradicted."""
    place = tmp_path_factory.mktemp("towns") / "out"
    uneven()[1].write(place)
    return place


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """A release on disk with a sum off the chain that is contradicted."""
    place = tmp_path_factory.mktemp("groups") / "out"
    made(counts_of(small_group())).write(place)
    return place


def table_of(said):
    """The rows of what `table` shows, by their headings."""
    first, *rows = said.split("\n\n")[0].splitlines()
    return [dict(zip(first.split(), row.split(maxsplit=len(first.split()) - 1), strict=False))
            for row in rows]  # fmt: skip


def test_a_table_shows_estimates_marks_the_counts_and_warns(run, groups):
    code, said, err = run("table", groups, "--by", "group=level1", "--wide")
    assert code == 0
    rows, wanted = table_of(said), read_release(groups).cuboid(group="level1")
    for row, known in zip(rows, wanted.to_dicts(), strict=True):
        assert row["count"] == f"{known['count']:,}"
        assert row["estimate"] == f"{known['estimate']:,.1f}"
        apart = (known["count"] - known["estimate"]) / known["standard_error"]
        way = "above" if apart > 0 else "below"
        why = f"yes: {abs(apart):,.1f} standard errors {way}"
        assert row.get("contradicted") == (why if known["contradicted"] else None)
        assert [row["low"], row["high"]] == [f"{known['low']:,}", f"{known['high']:,}"]
    assert "standard_error is the error of estimate, and low to high an interval around it." in said
    number = wanted["contradicted"].sum()
    assert number >= 1
    outside = wanted.filter((pl.col("count") < pl.col("low")) | (pl.col("count") > pl.col("high")))
    words = " ".join(err.split())
    assert f"Warning: {number} of 6 counts are contradicted by their own measurements" in words
    assert f"({len(outside)} lie outside their own 95 % interval; chance explains" in words
    assert "or whose [workload] names them" in words
    assert "Use the unbiased estimate" in words


@pytest.mark.parametrize("shown", [("--round", "50"), ("--suppress-wider", "0.000001")])
def test_how_far_a_count_was_moved_is_of_the_release_not_of_what_is_shown(succeeds, groups, shown):
    usual = table_of(succeeds("table", groups, "--by", "group=level1", "--wide"))
    said = succeeds("table", groups, "--by", "group=level1", *shown, "--wide")
    whys = [why for row in usual for why in [row.get("contradicted")] if why]
    assert len(whys) >= 1
    lines = said.split("\n\n")[0].splitlines()[1:]
    assert [line for line in lines for why in whys if why in line] == [
        line for line in lines if "standard errors" in line
    ]
    assert sum("standard errors" in line for line in lines) == len(whys)
    if "--suppress-wider" in shown:
        assert all(line.endswith("yes") for line in lines), "all are suppressed"


def test_a_file_has_the_estimate_and_the_flag_and_the_warning_is_given(run, groups, tmp_path):
    file = tmp_path / "sums.csv"
    code, _, err = run("table", groups, "--by", "group=level1", "--output", file)
    assert code == 0
    assert "contradicted by their own measurements" in " ".join(err.split())
    found = pl.read_csv(file, schema_overrides={"group": pl.String})
    wanted = read_release(groups).cuboid(group="level1")
    assert found.columns == wanted.columns
    assert found["contradicted"].equals(wanted["contradicted"])


def test_counts_alone_are_warned_of_too(run, groups, towns):
    code, said, err = run("table", towns, "--depth", "2", "--counts-only")
    assert code == 0
    assert said.splitlines()[0].split() == ["level1", "level2", "count"]
    assert "Warning: 12 of 12 counts are contradicted" in " ".join(err.split())
    code, _, err = run("table", groups, "--by", "group=level1", "--counts-only")
    assert "whether these sums contradict their own measurements is not shown" in err


def test_a_table_without_contradictions_has_no_warning(run, groups, towns):
    for place, depth in ((groups, 2), (towns, 1), (towns, 0)):
        code, _, err = run("table", place, "--depth", depth)
        assert (code, "Warning" in err) == (0, False)


def test_sums_of_survivors_say_how_many_have_no_interval(run, tmp_path):
    mostly_lost().write(tmp_path / "out")
    code, said, err = run("table", tmp_path / "out", "--by", "o=level1", "--suppress-wider", "0.5")
    assert code == 0
    assert "Note: 4 of 4 sums have neither estimate nor interval: too much" in " ".join(err.split())
    assert "4 of 4 counts are left out" in said
    code, _, err = run("table", tmp_path / "out", "--by", "d=level1")
    assert (code, "neither estimate" in err) == (0, False)


def test_sums_that_a_model_has_a_part_in_are_said_to_be_approximate(succeeds, tmp_path):
    made(counts_of(np.full((40, 3), 5000)), measure=hr.Survivors()).write(tmp_path / "out")
    for by, has_a_model in (("group=level1", True), ("geo=level1", False)):
        said = succeeds("table", tmp_path / "out", "--by", by)
        assert ("These intervals are approximate" in " ".join(said.split())) == has_a_model


def test_funds_show_estimates_mark_the_areas_and_warn(run, towns):
    code, said, err = run("funds", towns, "--level", "level2", "--amount", "100", "--wide")
    assert code == 0
    assert "Warning: 12 of 12 counts are contradicted" in " ".join(err.split())
    rows = said.split("\n\n")[1].splitlines()
    assert rows[0].split()[1:3] == ["count", "estimate"]
    wanted = read_release(towns).level("level2")
    for row, known in zip(rows[1:], wanted.to_dicts(), strict=True):
        words = row.split()
        assert words[2:4] == [f"{known['count']:,}", f"{known['estimate']:,.1f}"]
        assert words[-1] == "yes"
    code, _, err = run("funds", towns, "--level", "level1", "--amount", "100")
    assert (code, "Warning" in err) == (0, False)


PLANNED = """
[table]
source = "none.csv"
[[axis]]
name = "place"
levels = ["region", "town"]
areas = "places.csv"
[[axis]]
name = "group"
levels = ["kind"]
areas = "kinds.csv"
[tree]
refine = ["place.region", "place.town", "group.kind"]
[privacy]
neighbours = "replace"
rho = "1/50"
[estimate]
measure = "all"
"""


@pytest.fixture
def planned(tmp_path):
    rows = "\n".join(f"r{i // 10},r{i // 10}t{i % 10}" for i in range(200))
    (tmp_path / "places.csv").write_text(f"region,town\n{rows}\n")
    (tmp_path / "kinds.csv").write_text("kind\na\nb\nc\n")
    file = tmp_path / "release.toml"
    file.write_text(PLANNED)
    return file


def test_a_plan_foresees_which_sums_leave_their_truth(succeeds, planned):
    said = succeeds("plan", planned)
    assert "Sums that are not a depth of the tree add up counts" in said
    out = succeeds("plan", planned, "--json")
    sums = json.loads(out)["sums"]
    assert [row["cuboid"] for row in sums] == ["group.kind", "place.region × group.kind"]
    assert [row["summands"] for row in sums] == [200, 10]
    for row in sums:
        (line,) = [line for line in said.splitlines() if line.startswith(f"  {row['cuboid']}  ")]
        assert f"{row['excess']:,.3g}" in line or f"{row['excess']:,.0f}" in line
    other = PLANNED.replace('"place.region", "place.town", "group.kind"',
                            '"group.kind", "place.region", "place.town"')  # fmt: skip
    planned.write_text(other + '[allocation]\nmethod = "uniform"\n')
    out = succeeds("plan", planned, "--json")
    assert [row["cuboid"] for row in json.loads(out)["sums"]] == ["place.town", "place.region"]


def test_a_plan_simulates_them_on_a_prior(succeeds, planned):
    rows = [(f"r{i // 10}", f"r{i // 10}t{i % 10}", kind, 0 if kind == "a" else 500)
            for i in range(200) for kind in "abc"]  # fmt: skip
    prior = planned.parent / "prior.csv"
    pl.DataFrame(rows, schema=["region", "town", "kind", "n"], orient="row").write_csv(prior)
    planned.write_text(
        PLANNED.replace('"none.csv"', '"none.csv"\ncount = "n"')
        + '[allocation]\nmethod = "optimal"\n'
        'objective = "cells"\nprior = {source = "prior.csv", count = "n", public = true}\n'
    )
    said = succeeds("plan", planned, "--simulate", "3")
    lines = said.split("The same for sums that are not a depth of the tree")[1].splitlines()
    words = next(line for line in lines if "group.kind" in line).split()
    assert words[0] == "group.kind"
    assert int(words[3].replace(",", "")) > 300, "group a has nobody, and is released with many"
    out = succeeds("plan", planned, "--simulate", "3", "--json")
    told = json.loads(out)["simulated_sums"]
    assert [row["cuboid"] for row in told][:1] == ["group.kind"]
