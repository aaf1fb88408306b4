"""`hedgerow simulate`: what it compares, what it refuses, what it writes."""

import json
import shutil
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
import typer

import hedgerow as hr
from hedgerow.cli.simulate import simulate
from hedgerow.examples import EXAMPLES
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.simulate_spec import SimulateSpec

PUBLIC = "\n[simulate]\npublic = true\n"
FEW = 'estimators = ["chebyshev"]\nmeasures = ["survivors"]\nallocations = ["uniform"]\n'
FEW += "baselines = []\n"
LEAST = f"{PUBLIC}{FEW}"


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commuting")
    EXAMPLES["commuting"](folder, "small")
    trips = pl.read_parquet(folder / "trips.parquet")
    other = trips.with_columns(trips=pl.col("trips") * 2 + 1)
    other.write_parquet(folder / "public.parquet")
    return folder


@pytest.fixture
def folder(example, tmp_path):
    """The example with a budget that no search has to meet."""
    made = Path(shutil.copytree(example, tmp_path / "trips"))
    text = (made / "release.toml").read_text()
    text = text.replace("epsilon       = 1 ", 'rho = "1/100" ').replace("delta         =", "#")
    (made / "release.toml").write_text(text)
    return made


@pytest.fixture
def release_file(folder):
    return folder / "release.toml"


@pytest.fixture
def epsilon_file(example, release_file):
    """The example as it is, with ε and δ."""
    return Path(shutil.copy(example / "release.toml", release_file))


@pytest.fixture
def command(run, monkeypatch):
    """The command, in an application of its own."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.callback()(lambda: None)
    app.command()(simulate)
    monkeypatch.setattr("hedgerow.cli.commands.app", app)

    def called(file, *options, runs=3):
        return run("simulate", file, "--runs", runs, *options)

    return called


def add(file, text):
    file.write_text(file.read_text() + text)
    return file


def beside(folder, text):
    """A simulation file of its own, in another folder, which names the release file."""
    place = folder.parent / "simulations"
    place.mkdir()
    file = place / "simulate.toml"
    file.write_text(f'[simulate]\npublic = true\nrelease = "../trips/release.toml"\n{text}')
    return file


def refused(found, *words):
    """A failure of the input: one sentence with these words."""
    code, out, err = found
    assert code == 2
    assert not out
    assert "Traceback" not in err
    said = err.split("Error: ")[-1]
    assert said.count("\n") == 1
    for word in words:
        assert word in said
    return True


def test_a_simulation_compares_the_files_setting_with_usual_ones(command, epsilon_file, tmp_path):
    output, picture = tmp_path / "sim.parquet", tmp_path / "errors.svg"
    file = add(epsilon_file, PUBLIC)
    code, out, err = command(file, "--output", output, "--picture", picture)
    assert code == 0
    assert "simulating 18 settings, 3 releases each" in err
    for name in (
        "uniform, survivors, euclidean (own)",
        "optimal released, all, sparse",
        "boninsegna",
        "ko optimal",
        "independent noise",
        "leaf noise",
        "stability histogram",
    ):
        assert name in out
    assert "RMSE (records), ± its Monte Carlo error" in out
    assert picture.exists()
    errors = pl.read_parquet(output)
    assert errors["setting"].n_unique() == 18
    assert errors["setting"][0] == "uniform, survivors, euclidean (own)"
    assert errors["depth"].unique().to_list() == list(range(7))
    assert {"bias2", "variance_error", "relative_error_1_to_9", "seconds"} < set(errors.columns)


def test_what_is_written_says_that_it_is_a_simulation_and_looks_like_no_release(
    command, release_file, tmp_path
):
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    output = tmp_path / "sim.parquet"
    assert command(add(release_file, LEAST), "--output", output, "--seed", 5)[0] == 0
    assert {path for path in tmp_path.rglob("*") if path.is_file()} - before == {output}
    said = json.loads(pq.read_metadata(output).metadata[b"hedgerow"])
    assert said["kind"] == "simulation"
    assert "Not a release" in said["notice"]
    assert (said["seed"], said["runs"], said["file"]) == (5, 3, "release.toml")


def test_the_same_seed_gives_the_same_table_for_any_number_of_workers(
    command, release_file, tmp_path
):
    baselines = '"leaf-noise", "stability-histogram", "uniform"'
    file = add(release_file, LEAST.replace("baselines = [", f"baselines = [{baselines}"))
    found = []
    for i, options in enumerate((("--workers", 1), ("--workers", 3), ("--seed", 1))):
        assert command(file, "--output", tmp_path / f"{i}.parquet", *options)[0] == 0
        found.append(pl.read_parquet(tmp_path / f"{i}.parquet").drop("seconds", "seconds_error"))
    assert found[0].equals(found[1])
    assert not found[0].equals(found[2])


@pytest.mark.parametrize("text", ["", "\n[simulate]\n", "\n[simulate]\npublic = false\n"])
def test_a_table_that_is_not_declared_public_is_refused(command, release_file, text):
    found = command(add(release_file, text))
    assert refused(found, "does not declare its table public", "[simulate] public = true")


def test_another_file_cannot_declare_the_table_of_a_release_public(command, folder):
    found = command(beside(folder, FEW))
    assert refused(found, "release.toml' does not declare its own table public")


@pytest.mark.parametrize("kind", ["itself", "link"])
def test_the_table_of_the_release_under_another_name_is_refused(command, folder, kind):
    table = folder / "trips.parquet"
    name = "trips.parquet" if kind == "itself" else "copy.parquet"
    if kind == "link":
        (folder / name).hardlink_to(table)
    text = f'{FEW}[simulate.table]\nsource = "../trips/{name}"\ncount = "trips"\n'
    found = command(beside(folder, text))
    assert refused(found, "is the table of the release file")


@pytest.mark.parametrize("kind", ["parquet", "csv", "shuffled", "changed"])
def test_what_the_records_of_a_copy_say_is_for_a_terminal_alone(
    command, run_on_terminal, folder, kind
):
    """Neither the exit code nor a word of a log depends on whether it is a copy."""
    table, name = pl.read_parquet(folder / "trips.parquet"), f"copy.{kind}"
    name = "copy.csv" if kind == "csv" else "copy.parquet"
    if kind == "changed":
        table = table.with_columns(pl.col("trips") + 1)
    if kind == "csv":
        table.write_csv(folder / name)
    else:
        (table.reverse() if kind == "shuffled" else table).write_parquet(folder / name)
    text = f'{FEW}[simulate.table]\nsource = "../trips/{name}"\ncount = "trips"\n'
    file = beside(folder, text)
    code, _, said = command(file)
    assert (code, "exactly" in said) == (0, False)
    code, _, said = run_on_terminal("simulate", file, "--runs", "3")
    assert (code, "has exactly the counts of the table" in said) == (0, kind != "changed")


@pytest.mark.parametrize("kind", ["file", "database"])
def test_the_very_table_of_the_release_is_refused_before_anything_is_read(folder, kind):
    source = 'source = "../trips/trips.parquet"'
    if kind == "database":
        source = 'source = "sqlite:///trips.db"\nquery = "SELECT * FROM trips"'
        file = folder / "release.toml"
        file.write_text(file.read_text().replace('source = "trips.parquet"', source))
    source = source.replace("///", "///../trips/")
    file = beside(folder, f'[simulate.table]\n{source}\ncount = "trips"\n')
    with pytest.raises(hr.SpecError, match="is the table of the release file"):
        SimulateSpec(file)


def test_a_public_table_is_simulated_in_place_of_the_confidential_one(command, folder, tmp_path):
    file = beside(
        folder,
        f'{FEW}[simulate.table]\nsource = "../trips/public.parquet"\ncount = "trips"\n',
    )
    assert command(file, "--output", tmp_path / "a.parquet")[0] == 0
    (folder / "trips.parquet").unlink()  # whoever simulates need not have it
    assert command(file, "--output", tmp_path / "b.parquet")[0] == 0
    a, b = (
        pl.read_parquet(tmp_path / f"{x}.parquet").drop("seconds", "seconds_error") for x in "ab"
    )
    assert a.equals(b)
    spec = SimulateSpec(file)
    counts = spec.counts(spec.tree())
    assert counts.total == pl.read_parquet(folder / "public.parquet")["trips"].sum()


def test_a_release_file_may_name_a_public_table_for_simulations(command, release_file):
    text = f'{PUBLIC}{FEW}[simulate.table]\nsource = "{{}}"\ncount = "trips"\n'
    before = release_file.read_text()
    assert command(add(release_file, text.format("public.parquet")))[0] == 0
    release_file.write_text(before)
    found = command(add(release_file, text.format("trips.parquet")))
    assert refused(found, "is the table of the release file")


def test_a_release_file_that_declares_its_table_public_may_be_named(command, folder):
    add(folder / "release.toml", PUBLIC)
    assert command(beside(folder, FEW))[0] == 0


def test_combinations_that_cannot_be_are_left_out_with_a_reason(command, epsilon_file):
    text = (
        'mechanisms = ["discrete-gaussian", "discrete-laplace"]\n'
        'budgets = [{epsilon = 1, delta = "1e-8"}, {epsilon = "1/2"}]\n'
        'estimators = ["euclidean"]\n'
        'allocations = ["uniform", {method = "shares", shares = ["1/2", "1/2"]}]\n'
        'measures = ["survivors"]\n'
        'baselines = ["stability-histogram", "leaf-noise", "uniform"]\n'
    )
    code, out, _ = command(add(epsilon_file, PUBLIC + text), "--wide")
    assert code == 0
    assert "uniform, survivors, euclidean, discrete-gaussian, ε = 1, δ = 1e-08 (own)" in out
    assert "uniform, survivors, euclidean, discrete-laplace, ε = 0.5" in out
    assert "Left out: stability histogram, ε = 0.5: the stability histogram needs" in out
    assert "discrete-gaussian noise has no pure epsilon" in out
    assert "discrete-laplace noise takes epsilon alone" in out
    assert "so it needs 6 shares, got 2" in out


def test_a_file_that_leaves_nothing_to_compare_is_refused(command, release_file):
    text = f"{LEAST}budgets = [{{epsilon = 1}}]\n"
    found = command(add(release_file, text))
    code, _, err = found
    assert code == 2
    assert "leaves no setting to compare: [privacy] discrete-gaussian noise has no pure eps" in err


def test_equal_entries_are_simulated_once_and_different_ones_never_share_a_name(release_file):
    text = (
        'allocations = ["uniform", {method = "optimal", importance = [1, 1, 1, 1, 1, 2]}, '
        '{method = "optimal", importance = [1, 1, 1, 1, 1, 4]}, {method = "uniform"}]\n'
        'measures = ["survivors", "all"]\n'
        'estimators = ["sparse", {method = "sparse", measure = "all"}]\n'
    )
    spec = SimulateSpec(add(release_file, f"{PUBLIC}{text}baselines = []\n"))
    names = [setting.name for setting in spec.settings(spec.tree())[0]]
    assert names == [
        "uniform, survivors, sparse",
        "uniform, all, sparse",
        "optimal importance, survivors, sparse",
        "optimal importance, all, sparse",
        "optimal importance, survivors, sparse #2",
        "optimal importance, all, sparse #2",
    ]


def test_uniform_shares_are_a_baseline_where_the_file_has_others(release_file):
    text = release_file.read_text().replace('method = "uniform"', 'method = "optimal"')
    release_file.write_text(text + PUBLIC + 'allocations = [{method = "optimal"}]\n')
    spec = SimulateSpec(release_file)
    names = [setting.name for setting in spec.settings(spec.tree())[0]]
    assert names[0] == "optimal, survivors, euclidean (own)"
    assert "uniform, survivors, euclidean" in names


def test_the_section_changes_nothing_of_the_plan(release_file):
    spec = ReleaseSpec(release_file)
    before = spec.plan(spec.tree()).hash
    spec = ReleaseSpec(add(release_file, LEAST))
    assert spec.plan(spec.tree()).hash == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('estimators = ["chebishev"]', ("estimators: entry 1: method: input should be",)),
        ('allocations = [{method = "optimal", prio = 1}]', ("entry 1: unknown key 'prio'",)),
        ("budgets = [{epsilom = 1}]", ("budgets: entry 1: unknown key 'epsilom'",)),
        ("budgets = [{epsilon = 1, rho = 1}]", ("[simulate] budgets: give one budget: rho",)),
        ('budgets = [{epsilon = "-1"}]', ("[simulate] budgets: epsilon must be above 0, got -1",)),
        ('measures = ["some"]', ("measures: entry 1: input should be",)),
        ('mechanisms = ["gauss"]', ("[simulate] mechanisms",)),
        ('baselines = ["leaf noise"]', ("[simulate] baselines",)),
        ("allocation = 1", ("unknown key 'allocation'; did you mean 'allocations'?",)),
        ("estimators = 3", ("[simulate] estimators: input should be a valid list",)),
    ],
    ids=lambda value: value.split(" ")[0] + str(len(value)) if isinstance(value, str) else "",
)
def test_mistakes_in_the_section_are_one_sentence(command, release_file, text, words):
    assert refused(command(add(release_file, f"{PUBLIC}{text}\n")), *words)


def test_a_file_of_its_own_holds_nothing_else(command, folder):
    file = beside(folder, "\n[privacy]\nepsilon = 1\n")
    assert refused(command(file), "unknown key 'privacy'")


def test_options_that_cannot_be_are_refused_before_anything_is_read(
    command, release_file, tmp_path
):
    file = add(release_file, LEAST)
    assert refused(command(file, runs=2), "--runs must be a whole number of at least 3")
    assert refused(command(file, "--workers", 0), "--workers must be a whole number", "got 0")
    assert refused(command(file, "--show", "mse"), "no metric is called 'mse'", "rmse")
    assert refused(command(file, "--output", tmp_path / "a.csv"), "must end in .parquet")
    assert refused(command(file, "--output", tmp_path / "no" / "a.parquet"), "does not exist")
    assert refused(command(file, "--picture", tmp_path / "a.txt"), "must end in .png")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text('{"format": "hedgerow-release-4"}')
    found = command(file, "--output", tmp_path / "out" / "a.parquet")
    assert refused(found, "lies within the release")


def test_what_exists_is_overwritten_by_force_alone(command, release_file, tmp_path):
    file, output, picture = add(release_file, LEAST), tmp_path / "a.parquet", tmp_path / "a.svg"
    output.write_text("mine")
    found = command(file, "--output", output)
    assert refused(found, "exists already; name another file, or add --force")
    assert output.read_text() == "mine"
    picture.write_text("mine")
    assert refused(command(file, "--picture", picture), "--picture", "exists already")
    assert command(file, "--output", output, "--picture", picture, "--force")[0] == 0
    assert len(pl.read_parquet(output)) == 7
    assert picture.read_text() != "mine"


def test_a_picture_calls_the_table_and_its_cuboids_as_readers_do(command, release_file, tmp_path):
    file, picture = add(release_file, LEAST), tmp_path / "a.svg"
    said = """
[describe]
title = "Déplacements"
unit = "trajets"
period = "2021"
[describe.levels]
destination.region = "Région de travail"
"""
    assert command(add(file, said), "--picture", picture)[0] == 0
    drawn = picture.read_text(encoding="utf-8")
    for words in ("Déplacements, 2021", "RMSE (trajets)", "Région de travail", "origin region"):
        assert words in drawn
    assert "records" not in drawn


def test_a_picture_draws_what_is_shown(command, release_file, tmp_path):
    file, picture = add(release_file, LEAST), tmp_path / "a.svg"
    assert command(file, "--show", "bias2", "--picture", picture)[0] == 0
    assert "Bias²" in picture.read_text()
    assert "RMSE" not in picture.read_text()


def test_metrics_are_shown_as_asked(command, release_file):
    file = add(release_file, LEAST)
    code, out, _ = command(file, "--show", "bias2", "--show", "seconds")
    assert code == 0
    assert "Bias² (records²)" in out
    assert "Seconds a run" in out
    assert "RMSE" not in out


def test_a_copy_that_leaves_the_unit_out_is_still_the_table(run_on_terminal, tmp_path):
    areas = "area\nA\nB\nC\n"
    rows = "".join(f"{p},{a}\n" for p in range(40) for a in "ABC"[: 1 + p % 3])
    (tmp_path / "areas.csv").write_text(areas)
    for name in ("table.csv", "copy.csv"):
        (tmp_path / name).write_text("person,area\n" + rows)
    (tmp_path / "release.toml").write_text(
        '[table]\nsource = "table.csv"\nunit = "person"\n[[axis]]\nname = "geo"\n'
        'levels = ["area"]\nareas = "areas.csv"\n[privacy]\nneighbours = "add-remove"\n'
        'contributions = 2\nmechanism = "discrete-gaussian"\nrho = 1\n'
    )
    for unit in ("", 'unit = "person"\n'):
        (tmp_path / "sim.toml").write_text(
            f'[simulate]\npublic = true\nrelease = "release.toml"\n{FEW}'
            '[simulate.table]\nsource = "copy.csv"\n' + unit
        )
        code, _, said = run_on_terminal("simulate", tmp_path / "sim.toml", "--runs", "3")
        assert (code, "has exactly the counts" in said) == (0, True), said
