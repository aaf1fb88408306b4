"""Every command on a release along a spine: an axis of columns, public rules and facilities."""

import json
import re
import shutil

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow import cli
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan import spine as plan_spine
from hedgerow.release import execution
from hedgerow.release.descent.spine import SpineFlow
from hedgerow.release.execution import in_memory
from hedgerow.spec.release_spec import ReleaseSpec
from tests.release.forged import reseal
from tests.release.spine.made_files import BLOCKS, FACILITIES, PRIVACY, SHARES, write_files

OPTIMAL = '[allocation]\nmethod = "optimal"\n'
PERSON = ["hhgq", "votingage", "group", "hispanic", "race"]
FINEST = "geography.block × person.detail"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    file = write_files(tmp_path_factory.mktemp("spine") / "files")
    assert cli.run(["release", str(file)]) == 0
    return file


@pytest.fixture
def folder(example, tmp_path):
    """A copy that may be changed."""
    return shutil.copytree(example.parent, tmp_path / "copy")


@pytest.fixture
def cut(monkeypatch):
    """Even so small a spine is cut into jobs."""
    monkeypatch.setattr(plan_spine, "UNCUT", 0)
    monkeypatch.setattr(plan_spine, "MOST_ABOVE_THE_CUT", 200)
    monkeypatch.setattr(plan_spine, "WORTH_A_JOB", 1)


def records(folder):
    """The released table, one row a cell."""
    return hr.read_release(folder).level(FINEST).select("block", *PERSON, "count")


def refused(said):
    """The sentence that a command refuses with."""
    code, _, err = said
    assert code == 2
    assert "Traceback" not in err
    assert "NotImplemented" not in err
    return " ".join(err.split()).partition("Error: ")[2]


# --- plan -----------------------------------------------------------------------------------------


def test_a_table_whose_errors_are_bounds_says_how_wide_they_are(succeeds, example, tmp_path):
    """Noise below σ² = 1 has variances that are no product."""
    narrow = write_files(tmp_path / "narrow", privacy=PRIVACY.replace('"2"', '"40"'))
    assert cli.run(["release", str(narrow)]) == 0
    for place, by, bounds in (
        (narrow, ["--level", FINEST], True),
        (narrow, ["--by", "votingage"], True),
        (example, ["--level", FINEST], False),
        (example, ["--by", "votingage"], False),
    ):
        said = " ".join(succeeds("table", place.parent / "out", *by).split())
        assert ("their errors are at most those stated, and at least " in said) is bounds


def test_the_plan_states_the_error_of_every_pair_of_levels(succeeds, example, tmp_path):
    picture = tmp_path / "plan.svg"
    out = succeeds("plan", example, "--picture", picture, "--records", 300)
    said = " ".join(out.split())
    assert "RMSE by levels of geography (down) and person (across)" in said
    assert "their errors are exact" in said
    assert "Together, 104 of 288 finest cells may hold records." in said
    assert "454 measured cells." in said
    assert picture.stat().st_size > 1000
    found = json.loads(succeeds("plan", example, "--json"))
    assert len(found["forecast"]) == 4 * 5
    assert found["sums"] == []
    assert [fact["zeros"] for fact in found["public"]] == [
        {"hhgq": ["nursing"], "votingage": ["minor"]}, "unlisted",
    ]  # fmt: skip


def test_fairness_is_over_the_cells_that_may_hold_records(succeeds, example):
    rows = json.loads(succeeds("plan", example, "--json", "--fairness"))["fairness"]
    plan = hr.read_release(example.parent / "out").plan
    expected = dict(hr.forecast(plan).select("cuboid", "rmse").iter_rows())
    assert len(rows) == 19
    for row in rows:
        assert row["sd"] == pytest.approx(expected[row["cuboid"]], rel=1e-9)
        assert 0 < row["least"] <= row["variance"] <= row["largest"]
    out = succeeds("plan", example, "--fairness")
    assert re.search(r"^cuboid +siblings +sd +ratio$", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("privacy", "target"),
    [(PRIVACY, 400), ('mechanism = "discrete-laplace"\nepsilon = "8"', 100_000)],
)
def test_a_target_is_met_by_the_errors_of_all_cells_that_may_hold_records(
    succeeds, tmp_path, privacy, target
):
    file = write_files(tmp_path / "files", privacy=privacy)
    out = succeeds("plan", file, "--target-mse", target, "--json")
    found = json.loads(out)
    plan = ReleaseSpec(file).cheapest(ReleaseSpec(file).tree(), str(target))
    assert found["sha256"] == plan.hash
    squared = {row["cuboid"]: row["rmse"] ** 2 for row in found["forecast"]}
    joint, tree = plan.design, plan.tree
    cells = {tree.name_of(c): joint.possible_cells(c) for c in plan.levels}
    total = sum(squared[name] * many for name, many in cells.items())
    assert 0.98 * target < total <= target


# --- release --------------------------------------------------------------------------------------


def test_a_release_keeps_zeros_bounds_and_sums(succeeds, example):
    succeeds("check", example.parent / "out")
    table = records(example.parent / "out")
    given = pl.DataFrame(FACILITIES, schema=["block", "hhgq", "least"], orient="row")
    sums = given.join(table, on=["block", "hhgq"], how="left").group_by("block", "hhgq").agg(
        pl.col("count").fill_null(0).sum(), pl.col("least").first()
    )  # fmt: skip
    assert (sums["count"] >= sums["least"]).all()
    assert sums["count"].sum() == table["count"].sum()
    assert not len(table.filter(hhgq="nursing", votingage="minor"))
    truth = pl.read_csv(example.parent / "people.csv")["people"].sum()
    assert table["count"].sum() == truth


PLANS = {
    "errors of all cells, three records": (
        'neighbours = "add-remove"\ncontributions = 3\nrho = "2"',
        OPTIMAL,
    ),
    "importance by level of both axes, pure epsilon": (
        'neighbours = "add-remove"\nmechanism = "discrete-laplace"\nepsilon = "8"',
        OPTIMAL
        + 'importance = { geography = ["1", "1", "2", "1"], person = ["1", "0", "1", "1", "1"] }',
    ),
    "every level alike, pure epsilon, public total": (
        'mechanism = "discrete-laplace"\nepsilon = "8"',
        OPTIMAL + 'importance = "levels"',
    ),
    "the largest error, two records each": (
        'neighbours = "replace"\ncontributions = 2\nexactly = true\nrho = "2"',
        OPTIMAL + 'objective = "largest"',
    ),
    "the same share for every cuboid, hardly any budget": (
        'rho = "1/100000"',
        '[allocation]\nmethod = "uniform"',
    ),
    "a level without a share, hardly any noise": (
        'rho = "1000"',
        SHARES.replace('"0.4", "0.1", "0.2"', '"0.5", "0", "0.2"'),
    ),
}
"""Each way to divide a budget once, and each promise."""


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.sweep(3)
def test_plans_are_released_and_verified(run, succeeds, tmp_path, name):
    privacy, allocation = PLANS[name]
    file = write_files(tmp_path / "files", privacy=privacy, allocation=allocation)
    out = succeeds("release", file)
    assert "Released" in out
    code, out, _ = run("check", tmp_path / "files" / "out")
    assert (code, "failed" in out) == (0, False)


REFUSED = {
    "a chain": ({"cuboids": '"chain"', "allocation": ""}, 'goes with cuboids = "cube"'),
    "survivors": ({"more": '[estimate]\nmeasure = "survivors"'}, "measure"),
    "another estimator": ({"more": '[estimate]\nmethod = "chebyshev"'}, "euclidean"),
    "an invariant": (
        {"more": '[[invariant]]\naxis = "geography"\nlevel = "county"'},
        "only the total can be held exactly",
    ),
    "a refinement through both axes": (
        {"more": '[tree]\nrefine = ["geography.county", "person.hhgq", "geography.tract", '
                 '"geography.block", "person.votingage", "person.group", "person.detail"]'},
        "all its levels before those of the attributes",
    ),
    "bounds under shares that are no product": (
        {"cuboids": '["geography.block × person.votingage", "geography.tract × person.detail"]',
         "allocation": OPTIMAL},
        "need a cube whose shares are a product",
    ),
    "the table itself as a prior": (
        {"allocation": OPTIMAL + 'prior = { source = "people.csv", count = "people" }'},
        "prior",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_apply_is_refused_in_a_sentence(run, tmp_path, name):
    given, words = REFUSED[name]
    file = write_files(tmp_path / "files", **given)
    before = sorted(tmp_path.rglob("*"))
    for command in ("plan", "release"):
        assert words in refused(run(command, file))
    assert sorted(tmp_path.rglob("*")) == before


# --- killed ---------------------------------------------------------------------------------------


def stop(*_arguments, **_options):
    raise KeyboardInterrupt


def at_job(method, number):
    """Stop at the n-th time that a part is done."""
    own, calls = getattr(SpineFlow, method), iter(range(number))

    def work(self, *arguments):
        if next(calls, None) is None:
            stop()
        return own(self, *arguments)

    return SpineFlow, method, work


INSTANTS = {
    "before the jobs": lambda: at_job("up", 0),
    "on the way up": lambda: at_job("up", 2),
    "at the top": lambda: at_job("top", 0),
    "on the way down": lambda: at_job("down", 2),
    "when all is measured": lambda: (execution, "write_report", stop),
}


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("instant", INSTANTS)
@pytest.mark.sweep(6)
def test_a_killed_release_is_resumed_with_the_same_noise(
    run, succeeds, tmp_path, monkeypatch, instant
):
    file = write_files(tmp_path / "files")
    staging, out = tmp_path / "files" / "out.staging", tmp_path / "files" / "out"
    with monkeypatch.context() as patch:
        patch.setattr(*INSTANTS[instant]())
        assert run("release", file)[0] == 130
    key = ReleaseKey((staging / "release.key").read_bytes())
    assert "--resume" in refused(run("release", file))
    succeeds("release", file, "--resume")
    succeeds("check", out)
    assert not staging.exists()
    spec = ReleaseSpec(file)
    plan = spec.plan(spec.tree())
    assert len(plan.design.jobs) > 2
    expected = in_memory(spec.table.counts(plan.tree), plan, estimator=spec.estimator, bits=key)
    found = hr.read_release(out)
    for name in plan.cuboids:
        assert found.level(name).equals(expected.level(name)), name
    for levels in plan.measured:
        assert np.array_equal(found.content.measured[levels], expected.content.measured[levels]), (
            levels
        )


@pytest.mark.usefixtures("cut")
def test_a_killed_release_that_is_discarded_draws_other_noise_and_is_charged_twice(
    run, succeeds, tmp_path, monkeypatch
):
    more = '[ledger]\ndatabase = "ledger.sqlite"\ndataset = "people"'
    file = write_files(tmp_path / "files", more=more)
    ledger = tmp_path / "files" / "ledger.sqlite"
    succeeds("ledger", "open", file, "--rho", 5)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "write_report", stop)
        assert run("release", file)[0] == 130
    first = (tmp_path / "files" / "out.staging" / "release.key").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(execution, "write_report", stop)
        assert run("release", file, "--discard")[0] == 130
    assert (tmp_path / "files" / "out.staging" / "release.key").read_bytes() != first
    succeeds("release", file, "--resume")
    out = succeeds("ledger", "show", ledger)
    assert "of the cap ρ = 5, 4 is spent and 1 is left" in " ".join(out.split())


@pytest.mark.usefixtures("cut")
def test_a_release_within_a_limit_of_memory_is_the_same_plan(run, succeeds, tmp_path):
    file = write_files(tmp_path / "files")
    succeeds("release", file, "--memory", "500MB")
    succeeds("check", tmp_path / "files" / "out")
    said = refused(run("release", file, "--memory", "1MB"))
    assert said.startswith("--memory must be at least 500 MB")


# --- check ----------------------------------------------------------------------------------------


def every_table(out, change):
    """Change the finest table, and all sums with it."""
    table = change(pl.read_parquet(out / "counts" / "cuboid=3-4.parquet"))
    for place in range(4):
        for person in range(5):
            file = out / "counts" / f"cuboid={place}-{person}.parquet"
            frame = pl.read_parquet(file)
            labels = frame.columns[:-5]
            if (place, person) == (3, 4):
                frame = table
            elif labels:
                sums = table.group_by(labels).agg(pl.col("count").sum().alias("sum"))
                frame = frame.join(sums, on=labels, how="left", maintain_order="left")
                frame = frame.with_columns(pl.col("sum").alias("count")).drop("sum")
                frame = frame.drop_nulls("count")
            else:
                frame = frame.with_columns(count=pl.lit(table["count"].sum(), pl.Int64))
            frame.write_parquet(file)


def in_an_empty_cell(out):
    """One more record, in a cell that the rule leaves empty."""
    row = {"block": "B000", "hhgq": "nursing", "votingage": "minor"}

    def change(table):
        place = pl.col("block").eq("B000") & pl.col("hhgq").eq("nursing")
        first = table.filter(place).head(1)
        forged = first.with_columns(votingage=pl.lit("minor"))
        assert len(forged) == 1
        both = pl.concat([table, forged]).with_columns(pl.col(k).cast(pl.String) for k in row)
        return both.sort("county", "tract", "block", *PERSON)

    every_table(out, change)


def below_a_bound(out):
    """Nobody in the nursing home of two: others take their places."""

    def change(table):
        gone = pl.col("block").eq("B000") & pl.col("hhgq").eq("nursing")
        return table.filter(~gone)

    every_table(out, change)


def without_a_noisy_count(out):
    file = out / "measurements" / "cuboid=3-4.parquet"
    pl.read_parquet(file).head(-1).write_parquet(file)


def other_facilities(out):
    file = out / "domain" / "public" / "2.parquet"
    frame = pl.read_parquet(file)
    frame.with_columns(people=pl.lit(0, frame["people"].dtype)).write_parquet(file)


FORGED = {
    "a count in an empty cell": (
        in_an_empty_cell,
        "block 'B000' × hhgq 'nursing' × votingage 'minor' ×",
    ),
    "a bound that is broken": (below_a_bound, "nobody where public facts leave nobody, bounds"),
    "a noisy count that is missing": (without_a_noisy_count, "noisy counts are those of the plan"),
    "other facilities": (other_facilities, "plan, public domain and promise belong together"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_release_fails_its_check(run, folder, name):
    forge, finding = FORGED[name]
    forge(folder / "out")
    reseal(folder / "out")
    code, out, _ = run("check", folder / "out")
    assert code == 2
    failed = [line for line in out.splitlines() if line.startswith("FAIL") or "failed" in line]
    assert any(finding in line for line in failed), out


def test_every_file_that_was_changed_is_found(run, folder):
    other_facilities(folder / "out")
    code, out, _ = run("check", folder / "out")
    assert code == 2
    assert "domain/public/2.parquet was changed after the release" in " ".join(out.split())


# --- what reads a release -------------------------------------------------------------------------


def test_compare_states_every_cuboid_beside_its_forecast(succeeds, example, tmp_path):
    out = succeeds("compare", example, "--picture", tmp_path / "errors.svg", "--wide")
    tables = out.split("(confidential):\n")[1:]
    named = [sum(FINEST in row or "person." in row for row in t.splitlines()) for t in tables]
    assert named == [16, 16, 16, 16], "errors; cells, errors and coverage by size"
    assert (tmp_path / "errors.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("by", "columns"),
    [
        (["hispanic"], ["hispanic"]),
        (["votingage"], ["votingage"]),
        (["votingage", "race"], ["votingage", "race"]),
        (["person=race × votingage", "geography=tract"], ["county", "tract", "race", "votingage"]),
        (["county", "group"], ["county", "group"]),
        (["person=votingage"], ["hhgq", "votingage"]),
        (["hhgq"], ["hhgq"]),
    ],
)
def test_any_marginal_of_the_attributes_sums_the_release(succeeds, example, tmp_path, by, columns):
    out, file = example.parent / "out", tmp_path / "table.parquet"
    options = [word for each in by for word in ("--by", each)]
    succeeds("table", out, *options, "--output", file)
    found = pl.read_parquet(file)
    assert set(found.columns[: len(columns)]) == set(columns)
    table = hr.read_release(out).level(FINEST)
    summed = table.group_by(columns).agg(pl.col("count").sum())
    both = found.join(summed, on=columns, suffix="_summed")
    assert len(both) == len(found) == len(summed)
    assert (both["count"] == both["count_summed"]).all()
    assert (found["low"] <= found["estimate"]).all()
    assert (found["standard_error"] > 0).all()


def test_records_sum_to_the_release(succeeds, example, tmp_path):
    out, file = example.parent / "out", tmp_path / "records.csv"
    succeeds("table", out, "--records", "--output", file)
    listed = pl.read_csv(file).group_by("block", *PERSON).len("count")
    assert listed.sort("block", *PERSON).rows() == records(out).sort("block", *PERSON).rows()
    shown = succeeds("table", out, "--records", "--level", "geography.tract × person.group")
    assert shown.split()[:5] == ["county", "tract", "hhgq", "votingage", "group"]


TABLES = {
    "no level": (("--level", "geography.tracts"), "did you mean"),
    "a level of one axis": (("--level", "tract"), "did you mean 'geography.tract'?"),
    "levels without axes": (("--level", "tract × group"), "mean 'geography.tract × person.group'?"),
    "a column": (("--level", "hispanic"), "write --by hispanic"),
    "no such name": (("--by", "nothing"), "write --by AXIS=LEVEL, or one of block, county,"),
    "a depth": (("--depth", "2"), "a cube has no depths"),
    "no column": (("--by", "hispani"), "did you mean 'hispanic'?"),
    "no column among others": (("--by", "person=race × foo"), "axis 'person' has no column 'foo'"),
    "no level of the spine": (("--by", "geography=blck"), "did you mean 'block'?"),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_that_there_are_not_are_refused(run, example, name):
    options, words = TABLES[name]
    assert words in refused(run("table", example.parent / "out", *options))


def test_a_level_or_column_may_stand_with_its_axis(run, example):
    out = example.parent / "out"
    alone = run("table", out, "--by", "tract", "--by", "hispanic")
    assert alone == run("table", out, "--by", "geography.tract", "--by", "person.hispanic")
    assert alone[0] == 0


def test_estimates_along_the_spine_are_made_again(run, succeeds, example, tmp_path):
    out = example.parent / "out"
    succeeds("estimate", out, "--output", tmp_path / "same")
    again = pl.read_parquet(tmp_path / "same" / "cuboid=3-4.parquet")
    assert again["count"].to_list() == records(out)["count"].to_list()
    method = ("--method", "least-squares", "--output", tmp_path / "linear")
    succeeds("estimate", out, *method)
    linear = pl.read_parquet(tmp_path / "linear" / "cuboid=3-4.parquet")
    assert len(linear) == 104
    coarse = pl.read_parquet(tmp_path / "linear" / "cuboid=0-0.parquet")
    assert linear["estimate"].sum() == pytest.approx(coarse["estimate"].sum(), abs=1e-6)
    assert "euclidean" in refused(run("estimate", out, "--method", "chebyshev"))


@pytest.mark.usefixtures("few_draws")
def test_shares_of_tracts_have_intervals(run, succeeds, example, tmp_path):
    """Of 600 draws the width of an interval has a relative standard error of 5.5 %."""
    out, file = example.parent / "out", tmp_path / "funds.csv"
    asked = ("--amount", 1000, "--level", "geography.tract", "--output", file)
    succeeds("funds", out, *asked)
    found = pl.read_csv(file)
    assert found["amount"].sum() == pytest.approx(1000)
    assert ((found["low"] < found["amount"]) & (found["amount"] < found["high"])).all()
    table, total = hr.read_release(out).level("geography.tract"), records(out)["count"].sum()
    for row, error in zip(found.rows(named=True), table["standard_error"], strict=True):
        half = 1.96 * error / total * 1000  # the total is public
        assert row["high"] - row["low"] == pytest.approx(2 * half, rel=0.2)
    by = ("--by", "geography=tract", "--by", "hispanic")
    assert "--by takes NAME=VALUE" in refused(run("funds", out, "--amount", 1000, *by))


def test_the_page_and_the_promise_are_read_from_the_directory(run, succeeds, example, tmp_path):
    out = example.parent / "out"
    succeeds("report", out, "--output", tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == (out / "report.html").read_bytes()
    said = succeeds("account", out)
    assert "ρ = 2" in said
    assert "a distribution is of an axis of bins" in refused(run("distribution", out))


def test_settings_are_simulated_on_a_public_table_along_the_spine(succeeds, tmp_path):
    more = """[simulate]
public = true
budgets = [{ rho = "1" }]
"""
    file = write_files(tmp_path / "files", more=more)
    out = succeeds("simulate", file, "--runs", 3, "--show", "rmse")
    assert FINEST in out


def test_the_empty_block_is_released_as_empty(example):
    named = {block for *_, block in BLOCKS}
    listed = set(records(example.parent / "out")["block"])
    assert listed <= named - {"B112"}
