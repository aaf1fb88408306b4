"""A whole release with an axis of several columns: users see columns, files round-trip."""

import json
import shutil
from collections import Counter

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.directory.stored import read_nodes
from hedgerow.release.execution import in_memory
from hedgerow.spec.release_spec import ReleaseSpec
from tests.made import plain_plan

FILE = """
[table]
source = "people.csv"
[[axis]]
name = "place"
levels = ["county", "block"]
areas = "areas.csv"
[[axis]]
name = "person"
attribute = true
product = ["hhgq", "votingage", "group", "detail"]
lists = ["hhgq.csv", "votingage.csv", "race.csv"]
[workload]
cuboids = "{}"
[privacy]
rho = "1/20"
"""
PERSON = ["hhgq", "votingage", "group", "hispanic", "cenrace"]


@pytest.fixture(scope="module", params=["chain", "cube"])
def example(request, tmp_path_factory):
    """A small census, released."""
    folder, rng = tmp_path_factory.mktemp(request.param), np.random.default_rng(18)
    areas = {"county": ["A", "A", "B"], "block": ["A1", "A2", "B1"]}
    lists = {"hhgq": ["0", "101"], "votingage": ["minor", "adult"]}
    race = {"hispanic": ["h", "h", "n", "n"], "cenrace": ["01", "02"] * 2, "group": list("hhwb")}
    pl.DataFrame(areas).write_csv(folder / "areas.csv")
    pl.DataFrame(race).write_csv(folder / "race.csv")
    for name, codes in lists.items():
        pl.DataFrame({name: codes}).write_csv(folder / f"{name}.csv")
    chosen = {name: rng.choice(codes, 2000) for name, codes in lists.items()}
    chosen |= {name: rng.choice(race[name], 2000) for name in ("hispanic", "cenrace")}
    place = rng.choice(2, 2000)
    chosen |= {name: np.array(codes)[place] for name, codes in areas.items()}
    pl.DataFrame(chosen).write_csv(folder / "people.csv")
    file = folder / "release.toml"
    file.write_text(FILE.format(request.param))
    spec = ReleaseSpec(file)
    tree = spec.tree()
    counts, plan = spec.table.counts(tree), spec.plan(tree)
    in_memory(counts, plan, estimator=spec.estimator, bits=seeded_bits(1)).write(spec.output)
    return folder


@pytest.fixture
def folder(example, tmp_path):
    return shutil.copytree(example, tmp_path / "copy")


def test_a_release_is_checked_whole(succeeds, folder):
    out = succeeds("check", folder / "out")
    assert "failed" not in out


def test_files_have_one_column_for_each_column_of_the_lists(folder):
    domain = pl.read_parquet(folder / "out" / "domain" / "person.parquet")
    assert domain.columns == PERSON
    assert len(domain) == 16
    told = {1: 1, 2: 2, 3: 3, 4: 5}
    for level, columns in told.items():
        file = folder / "out" / "counts" / f"cuboid=2-{level}.parquet"
        labels = pl.read_parquet(file).columns[:-5]
        assert labels == ["county", "block", *PERSON[:columns]]


def test_a_release_read_back_answers_in_columns(folder):
    release = hr.read_release(folder / "out")
    tree = release.plan.tree
    assert tree.spine == 0
    assert release.columns == {"place": ["county", "block"], "person": PERSON}
    level = release.level("place.block × person.group")
    assert level.columns[:5] == ["county", "block", "hhgq", "votingage", "group"]
    detail = release.cuboid(None, person="detail", place="county")
    assert detail.columns == [*PERSON, "county", "count"]
    counts = release.cuboid(None, person="votingage")
    assert counts.columns == ["hhgq", "votingage", "count"]
    by_hand = Counter()
    for row in release.level("place.block × person.detail").iter_rows(named=True):
        by_hand[row["hhgq"], row["votingage"]] += row["count"]
    assert {row[:2]: row[2] for row in counts.rows()} == by_hand
    truth = ReleaseSpec(folder / "release.toml").table.counts(tree).level(tree.depth)
    both = truth.join(
        release.level("place.block × person.detail"), on=["block", *PERSON], suffix="_released"
    )
    assert len(both) == len(truth) == 2 * 16
    assert (both["count"] - both["count_released"]).abs().max() < 40


def test_table_prints_the_columns(succeeds, folder):
    out = succeeds("table", folder / "out", "--by", "person=group")
    assert out.split()[:4] == ["hhgq", "votingage", "group", "count"]


def test_estimates_are_made_again_from_the_files(succeeds, folder):
    succeeds("estimate", folder / "out", "--output", folder / "again")
    again = pl.read_parquet(folder / "again" / "cuboid=2-4.parquet")
    assert again.columns[:7] == ["county", "block", *PERSON]


@pytest.mark.parametrize("column", ["cenrace", "group"])
def test_a_changed_code_in_the_domain_is_found(run, folder, column):
    file = folder / "out" / "domain" / "person.parquet"
    domain = pl.read_parquet(file)
    domain.with_columns(pl.col(column) + "x").write_parquet(file)
    with pytest.raises(hr.ReleaseError, match="in domain/ are not those of the plan"):
        hr.read_release(folder / "out")
    assert run("check", folder / "out")[0] == 2


@pytest.mark.parametrize("told", [[1, 2, 3], [1, 2, 4, 5], [5, 3, 2, 1], ["1", 2, 3, 5], 4])
def test_a_plan_that_tells_other_columns_is_found(run, folder, told):
    file = folder / "out" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["plan"]["tree"]["axes"][1]["told"] = told
    file.write_text(json.dumps(manifest))
    assert run("check", folder / "out")[0] == 2
    assert run("table", folder / "out", "--by", "person=group")[0] == 2


@pytest.mark.parametrize(
    ("column", "code", "words"),
    [
        ("votingage", "old", "a code of group is not in the domain"),
        ("group", "minor", "a code of group is not in the domain"),
        ("county", "C", "a code of county is not the parent in the domain"),
    ],
)
def test_a_changed_code_in_a_file_of_counts_is_found(folder, column, code, words):
    file = folder / "out" / "counts" / "cuboid=2-3.parquet"
    tree = hr.read_release(folder / "out").plan.tree
    assert len(read_nodes(folder / "out", tree, (2, 3))) == 2 * 2 * 2 * 3
    pl.read_parquet(file).with_columns(pl.lit(code).alias(column)).write_parquet(file)
    with pytest.raises(hr.ReleaseError, match=words):
        read_nodes(folder / "out", tree, (2, 3))


def test_compare_counts_the_table_again(succeeds, folder):
    succeeds("plan", folder / "release.toml")
    succeeds("compare", folder / "release.toml")


def test_an_attribute_of_nested_codes_is_read_back(tmp_path):
    ages = hr.Axis.from_frame("age", {"band": ["0", "1"]}, ["band"], attribute=True)
    place = hr.Axis.from_frame("place", {"town": ["a", "b"]}, ["town"])
    counts = hr.Counts.from_frame(hr.Tree([ages, place]), {"town": ["a"], "band": ["0"]})
    hr.release(counts, plain_plan(counts.tree, budget=hr.Rho("1"))).write(tmp_path / "out")
    assert hr.read_release(tmp_path / "out").plan.tree.spine == 1
