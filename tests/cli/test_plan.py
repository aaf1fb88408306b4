"""`hedgerow plan` and `hedgerow estimate`: allocation, forecast, fairness, other estimates."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.examples import EXAMPLES
from hedgerow.examples.census import CENSUS_SIZES, CensusSize
from hedgerow.plan import chain as planned_chain
from hedgerow.spec.release_spec import ReleaseSpec

PRIOR = (
    'method = "optimal"\nprior = {source = "prior.parquet", public = true, count = "population"}'
)


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """A census of 4,000 blocks, and a prior of a part of them."""
    folder = tmp_path_factory.mktemp("census")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CENSUS_SIZES, "small", CensusSize(3, 20, 200, 4_000, 170_000))
        EXAMPLES["census"](folder, "small")
    areas = pl.read_parquet(folder / "areas.parquet")
    kept = areas.gather_every(3).filter(pl.col("county").str.ends_with("1"))
    people = pl.int_range(pl.len()) * 7 % 90 + 1
    kept.with_columns(population=people).write_parquet(folder / "prior.parquet")
    return folder


@pytest.fixture
def census(example, tmp_path):
    return Path(shutil.copytree(example, tmp_path / "census")) / "release.toml"


def allocate(file, section, measure='measure = "survivors"'):
    text = file.read_text().replace('method = "uniform"', section)
    file.write_text(text.replace('measure = "survivors"', measure))


def shares(out):
    depths = json.loads(out)["cuboids"]
    return [float(hr.Rho(depth["share"]).rho) for depth in depths if "share" in depth]


def test_an_optimal_plan_spends_more_where_there_are_more_counts(succeeds, census):
    allocate(census, 'method = "optimal"')
    out = succeeds("plan", census, "--json")
    found = shares(out)
    assert found == sorted(found)
    assert found[-1] > 0.5
    assert json.loads(out)["allocation"] == "optimal"


def test_the_error_of_estimates_may_leave_depths_unmeasured(run, succeeds, census):
    allocate(census, 'method = "optimal"\nobjective = "released"', 'measure = "all"')
    text = census.read_text()
    text = text.replace('"discrete-gaussian"', '"discrete-laplace"').replace("delta ", "# delta ")
    census.write_text(text)
    out = succeeds("plan", census, "--json")
    kinds = [depth["kind"] for depth in json.loads(out)["cuboids"]]
    assert kinds[-1] == "measured"
    assert "unmeasured" in kinds
    succeeds("release", census)
    code, out, _ = run("check", census.parent / "out")
    assert (code, "checks passed" in out) == (0, True)


def test_importance_moves_the_budget(succeeds, census):
    allocate(census, 'method = "optimal"\nimportance = {county = 1000}')
    county = json.loads(succeeds("plan", census, "--json"))["cuboids"][2]
    text = census.read_text().replace("county = 1000", "county = 1")
    census.write_text(text)
    before = json.loads(succeeds("plan", census, "--json"))["cuboids"][2]
    assert hr.Rho(county["share"]).rho > 5 * hr.Rho(before["share"]).rho


def test_a_prior_is_planned_with_and_simulated(succeeds, census):
    allocate(census, PRIOR)
    out = succeeds("plan", census, "--simulate", "3", "--picture", census.parent / "f.png")
    assert "simulated releases of the public prior" in out
    assert out.count(" ± ") >= 5 * 5
    assert (census.parent / "f.png").stat().st_size > 10_000
    succeeds("release", census)
    manifest = (census.parent / "out" / "manifest.json").read_text()
    assert "prior" not in manifest.replace("priority", "")


def test_a_table_that_is_its_own_prior_is_refused_by_path_and_a_copy_told_on_a_terminal(
    run, succeeds, refuses, run_on_terminal, census
):
    allocate(census, PRIOR.replace("prior.parquet", "population.parquet"))
    refuses("the prior is the confidential table itself", "plan", census)
    shutil.copy(census.parent / "population.parquet", census.parent / "copy.parquet")
    census.write_text(
        census.read_text().replace('"population.parquet", public', '"copy.parquet", public')
    )
    succeeds("plan", census)
    code, _, err = run("release", census)
    assert (code, "prior" in err) == (0, False), "a log tells whether the table is this one"
    shutil.rmtree(census.parent / "out")
    code, _, err = run_on_terminal("release", census)
    assert (code, "the prior has exactly the counts of the table" in err) == (0, True)


@pytest.mark.parametrize("alias", ["link", "hard link", "folder"])
def test_the_table_under_another_name_is_known(run_on_terminal, census, alias):
    folder = census.parent
    table, other = folder / "population.parquet", folder / "other.parquet"
    section = PRIOR.replace("prior.parquet", "other.parquet")
    if alias == "link":
        other.symlink_to(table)
    elif alias == "hard link":
        other.hardlink_to(table)
    else:
        (folder / "parts").mkdir()
        shutil.move(table, folder / "parts" / "a.parquet")
        section = PRIOR.replace("prior.parquet", "parts/a.parquet")
        census.write_text(census.read_text().replace('"population.parquet"', '"parts"'))
    allocate(census, section)
    code, _, err = run_on_terminal("plan", census)
    assert code == 2
    assert "the prior is the confidential table" in err
    assert not (folder / "out").exists()


def test_the_least_budget_for_a_target(succeeds, census):
    allocate(census, 'method = "optimal"')
    out = succeeds("plan", census, "--target-mse", "40000", "--json")
    plan = json.loads(out)
    assert plan["budget"]["kind"] == "Rho"
    squared = sum(row["cells"] * row["noise_sd"] ** 2 for row in plan["forecast"])
    assert 0.9 * 40_000 < squared <= 40_000 * 1.000001


def lines_into(file, said):
    """The release file with the lines that ``--target-mse`` says, put where they belong."""
    section = r"(?ms)^\[{}\].*?^(?=\[|\Z)"
    privacy, allocation = re.search(
        r"(?ms)^(\[privacy\].*?)\n\n(\[allocation\].*?)\n\n", said
    ).groups()
    text = file.read_text()
    kept = re.search(section.format("privacy"), text)[0].split("\n")[1:]
    kept = [line for line in kept if not line.startswith(("rho", "epsilon", "delta"))]
    text = re.sub(section.format("privacy"), lambda _: "\n".join([privacy, *kept]) + "\n", text)
    text = re.sub(section.format("allocation"), lambda _: allocation + "\n\n", text)
    file.write_text(text)


@pytest.mark.parametrize("mechanism", ["discrete-gaussian", "discrete-laplace"])
def test_the_lines_for_a_target_give_the_file_the_same_plan(succeeds, census, mechanism):
    weights = "importance = {state = 0, total = 0, block = 0.1}"
    allocate(census, f'method = "optimal"\n{weights}')
    text = census.read_text().replace("discrete-gaussian", mechanism)
    if mechanism == "discrete-laplace":
        text = re.sub("(?m)^delta.*\n", "", text)
    census.write_text(text)
    own = json.loads(succeeds("plan", census, "--json"))["sha256"]
    said = succeeds("plan", census, "--target-mse", "400000")
    found = re.search(r"^plan (\w{64})$", said, re.MULTILINE)[1]
    assert found != own
    assert "Next:" not in said
    assert f"{census} has its own budget and shares" in said
    assert f"Then: hedgerow release {census} --expect-plan {found}" in said
    lines_into(census, said)
    out = succeeds("plan", census, "--json")
    assert json.loads(out)["sha256"] == found
    assert json.loads(out)["cuboids"][1].get("share") is None


def test_shares_are_said_to_be_relative_where_costs_of_depths_do_not_add(succeeds, census):
    said = "a depth alone costs 1.25 times its share of the budget"
    assert said not in succeeds("plan", census)
    text = census.read_text()
    neighbours = re.search(r'neighbours *= *"[a-z-]+"', text).group()
    census.write_text(text.replace(neighbours, 'neighbours = "replace"\nexactly = false'))
    assert said in succeeds("plan", census).replace("\n", " ")


def test_fairness_is_told_in_a_table_and_in_json(succeeds, census):
    out = succeeds("plan", census, "--fairness")
    assert re.search(r"^cuboid +siblings +sd +ratio$", out, re.MULTILINE)
    facts = json.loads(succeeds("plan", census, "--fairness", "--json"))["fairness"]
    assert max(row["ratio"] for row in facts if row["ratio"]) > 1.2
    allocate(census, 'method = "fair"\nratio = 1.395')
    out = succeeds("plan", census, "--json", "--fairness")
    assert max(row["ratio"] for row in json.loads(out)["fairness"] if row["ratio"]) < 1.3951


WRONG = {
    "all zero": ('method = "optimal"\nimportance = [0, 0, 0, 0, 0]', "importance"),
    "negative": ('method = "optimal"\nimportance = [1, 1, -1, 1, 1]', "importance"),
    "too few": ('method = "optimal"\nimportance = [1, 1]', "importance"),
    "unknown level": ('method = "optimal"\nimportance = {city = 1}', "city"),
    "no prior": (PRIOR.replace("prior.parquet", "nowhere.parquet"), "nowhere.parquet"),
    "not public": (PRIOR.replace("true", "false"), "public"),
    "unfit": ('importance = [1, 1]\nmethod = "uniform"', "goes with"),
    "fair": ('method = "fair"', "ratio"),
    "too fair": ('method = "fair"\nratio = 1.0001', "ratio"),
    "objective": ('method = "optimal"\nobjective = "best"', "objective"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_allocation_is_refused_in_one_sentence(run, census, name):
    section, message = WRONG[name]
    allocate(census, section)
    code, out, err = run("plan", census)
    assert (code, out) == (2, "")
    said = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(said) == 1
    assert message in said[0]
    assert "Traceback" not in err


def test_a_prior_with_other_levels_is_refused(refuses, census):
    other = pl.read_parquet(census.parent / "prior.parquet")
    deepest = tomllib.loads(census.read_text())["axis"][0]["levels"][-1]
    other.rename({deepest: "district"}).write_parquet(census.parent / "prior.parquet")
    allocate(census, PRIOR)
    refuses(f"has no column {deepest!r}", "plan", census)


@pytest.mark.parametrize("target", ["0", "-3", "nan", "much", "1e-400"])
def test_a_target_that_no_budget_reaches_is_refused(run, census, target):
    allocate(census, 'method = "optimal"')
    code, _, err = run("plan", census, "--target-mse", target)
    assert code == 2
    assert err.count("Error: ") == 1
    if target != "1e-400":
        assert "--target-mse must be" in err
        assert f"got {target}" in err or f'got "{target}"' in err


def test_simulating_needs_a_prior(refuses, census):
    refuses("needs a public prior", "plan", census, "--simulate", "5")


@pytest.mark.parametrize("measure", ["survivors", "all"])
def test_a_release_is_estimated_again_beside_itself(run, succeeds, refuses, census, measure):
    allocate(census, 'method = "uniform"', f'measure = "{measure}"')
    succeeds("release", census)
    folder = census.parent / "out"
    out = succeeds("estimate", folder, "--method", "least-squares")
    assert ("conditional" in out) is (measure == "survivors")
    frame = pl.read_parquet(census.parent / "out.least-squares" / "cuboid=4.parquet")
    assert frame.columns[-5:] == ["released", "estimate", "standard_error", "low", "high"]
    code, out, _ = run("estimate", folder, "--method", "sparse", "--penalty", "1")
    assert (code, "on average" in out) == (0, True)
    succeeds("check", folder)
    refuses("exists already", "estimate", folder, "--method", "sparse")
    refuses("simplex", "estimate", folder, "--method", "simplex")


def test_noisy_counts_from_elsewhere_are_estimated(run, succeeds, tmp_path):
    areas = pl.DataFrame({"state": ["a", "a", "b"], "county": ["a1", "a2", "b1"]})
    areas.write_parquet(tmp_path / "areas.parquet")
    areas.with_columns(noisy_count=pl.Series([4.5, -2.0, 9.25]), variance=pl.lit(4.0)).write_csv(
        tmp_path / "county.csv"
    )
    pl.DataFrame(
        {"state": ["a", "b"], "noisy_count": [3, 9], "variance": [1.0, 1.0]}
    ).write_parquet(tmp_path / "state.parquet")
    file = tmp_path / "noisy.toml"
    file.write_text(
        """
        total = 12
        [[axis]]
        name = "geography"
        levels = ["state", "county"]
        areas = "areas.parquet"
        [[measurement]]
        level = "state"
        source = "state.parquet"
        [[measurement]]
        level = "county"
        source = "county.csv"
        """
    )
    out = succeeds("estimate", file, "--method", "chebyshev")
    assert "add up" in out
    counties = pl.read_parquet(tmp_path / "noisy.chebyshev" / "cuboid=2.parquet")
    assert counties["count"].sum() == 12
    assert (counties["count"] > 0).all()
    code, _, err = run("estimate", tmp_path / "nowhere.toml")
    assert (code, err.count("Error: ")) == (2, 1)


def test_the_spec_turns_strings_into_types(census):
    allocate(census, 'method = "optimal"\nimportance = "relative"', 'measure = "all"')
    spec = ReleaseSpec(census)
    assert isinstance(spec.measure, hr.All)
    assert spec.allocation.optimal(spec.tree()).importance == hr.Relative()


def test_the_plan_tells_where_the_tree_is_cut_and_what_it_costs(
    succeeds, refuses, census, monkeypatch
):
    said = succeeds("plan", census, "--records", "1000000")
    assert "cut into subtrees" not in said
    assert "Expected cost (rough): about" in said
    monkeypatch.setattr(planned_chain, "UNCUT_LEAVES", 100)
    monkeypatch.setattr(planned_chain, "UNCUT_LEAVES_OF_ALL", 100)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", 5)
    assert "The tree is cut into subtrees at depth 2 (county)" in succeeds("plan", census)
    words = "--records must be a whole number from 0 to 1,000,000,000,000,000,000, got -1"
    refuses(words, "plan", census, "--records", "-1")


def test_a_printed_plan_is_the_table_that_the_command_shows(run, census):
    code, out, _ = run("plan", census, "--wide")
    spec = ReleaseSpec(census)
    assert code == 0
    table, efficiency, promise = str(spec.plan(spec.tree())).split("\n\n")
    assert f"\n{table}\n\nIn records." in out
    assert f"\n\n{efficiency}\n\n{promise}\n\n" in out


def test_the_standard_errors_of_areas_of_ones_own_are_those_that_the_release_states(
    succeeds, refuses, census
):
    allocate(census, 'method = "uniform"', 'measure = "all"')
    leaves = pl.read_parquet(census.parent / "areas.parquet")
    column = leaves.columns[-1]
    seats = leaves.select(column, seat=(pl.int_range(pl.len()) % 30).cast(pl.String))
    seats = pl.concat([seats, seats[:9].with_columns(seat=pl.lit("0, too"))])
    seats.write_csv(census.parent / "seats.csv")
    options = ["--areas", census.parent / "seats.csv"]
    out = succeeds("plan", census, *options)
    assert "Estimates of 31 sums over areas, in records; the least certain 20 of them" in out
    out = succeeds("plan", census, *options, "--json")
    expected = pl.DataFrame(json.loads(out)["areas"])
    succeeds("release", census)
    file = census.parent / "made.parquet"
    succeeds("table", census.parent / "out", *options, "--output", file)
    made = pl.read_parquet(file)
    assert made["seat"].equals(expected["seat"])
    assert (made["standard_error"] / expected["standard_error_of_estimate"] - 1).abs().max() < 1e-9
    assert len(made) == 31
    refuses(
        "--area-column names a column of the file of --areas",
        "plan",
        census,
        "--area-column",
        "seat",
    )


def test_a_plan_says_how_near_the_least_cost_its_shares_are(succeeds, census):
    assert "least cost" not in succeeds("plan", census)
    assert json.loads(succeeds("plan", census, "--json"))["optimum"] is None
    allocate(census, 'method = "optimal"\nobjective = "released"')
    assert "within 1e-09 of the least cost under wide noise" in succeeds("plan", census)
    census.write_text(census.read_text().replace('"survivors"', '"all"'))
    out = succeeds("plan", census)
    assert "The shares are within 1e-09 of the least cost under wide noise" in out
    assert json.loads(succeeds("plan", census, "--json"))["optimum"]["gap"] == 1e-9
