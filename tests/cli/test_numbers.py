"""What commands refuse before they start: numbers that no float holds, names that no file has."""

import json
import shutil
from decimal import Decimal
from pathlib import Path

import pytest

from hedgerow.errors import BudgetError, PlanError
from hedgerow.examples import EXAMPLES
from hedgerow.privacy.ledger.file import create_file, open_ledger_file
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.toml_file import as_float


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    folder = tmp_path_factory.mktemp("census")
    EXAMPLES["census"](folder, "small")
    return folder


@pytest.fixture
def census(example, tmp_path):
    return Path(shutil.copytree(example, tmp_path / "census")) / "release.toml"


@pytest.fixture
def refused(run):
    """The one sentence that a command refuses with."""

    def command(*arguments):
        code, out, err = run(*arguments)
        assert (code, out, err.count("Error: "), "internal" in err) == (2, "", 1, False), err
        return " ".join(err.split())

    return command


def section(file, name, lines):
    """The file with the lines as its section of that name."""
    kept = [part for part in file.read_text().split("\n[") if not part.startswith(f"{name}]")]
    file.write_text("\n[".join([*kept, f"{name}]\n{lines}\n"]))


def account_of(folder, lines):
    file = folder / "uses.toml"
    file.write_text(f"[[use]]\n{lines}\n")
    return file


def no_table(file):
    """Take the confidential table away: what then still is refused was refused without it."""
    Path(ReleaseSpec(file).table.source).unlink()


@pytest.mark.parametrize("given", ["1e400", Decimal("-1e999"), "1e-400"])
def test_a_number_that_no_float_holds_is_refused(given):
    with pytest.raises(PlanError, match="the weight is too"):
        as_float(given, "the weight", PlanError)


def test_a_number_that_a_float_holds_is_kept():
    assert [as_float(n, "it", PlanError) for n in (0, "1/4", Decimal("1e308"))] == [0, 0.25, 1e308]


@pytest.mark.parametrize(
    ("name", "lines", "word"),
    [
        ("allocation", 'method = "optimal"\nimportance = [1e400, 1, 1, 1]', "importance"),
        ("allocation", 'method = "optimal"\nimportance = {county = 1e-400}', "county"),
        ("allocation", 'method = "fair"\nratio = 1e999', "ratio"),
        ("estimate", 'method = "sparse"\npenalty = 1e999', "penalty"),
    ],
    ids=["list", "mapping", "ratio", "penalty"],
)
def test_a_release_file_with_such_a_number_is_refused(refused, census, name, lines, word):
    section(census, name, lines)
    said = refused("plan", census)
    assert f"[{name}]" in said
    assert word in said
    assert "too large" in said or "too near 0" in said


def test_a_target_beyond_floats_is_refused(refused, census):
    section(census, "allocation", 'method = "optimal"')
    assert "--target-mse is too large" in refused("plan", census, "--target-mse", "1e400")


@pytest.mark.parametrize(
    ("lines", "word"),
    [
        ('mechanism = "discrete-gaussian"\nsigma2 = "1e30"\ntimes = 1' + "0" * 23, "times"),
        ('mechanism = "discrete-gaussian"\nsigma2 = 50\nshift = 1' + "0" * 19, "shift"),
        ('mechanism = "discrete-gaussian"\nsigma2 = 1e-300', "noise"),
        ('mechanism = "discrete-laplace"\nscale = 1e-300', "noise"),
        ('mechanism = "guarantee"\nepsilon = 1000\ntimes = 1000000', "fewer"),
        ('mechanism = "guarantee"\nepsilon = 1000\ndelta = "1e-9"\ntimes = 1000000', "fewer"),
    ],
    ids=["times", "shift", "sigma2", "scale", "epsilon", "delta"],
)
def test_uses_beyond_all_protection_are_refused(refused, tmp_path, lines, word):
    said = refused("account", account_of(tmp_path, lines))
    assert "[[use]] 1" in said
    assert word in said


def test_a_table_that_cannot_be_written_names_its_path(run, tmp_path):
    file = account_of(tmp_path, 'mechanism = "discrete-laplace"\nscale = 5')
    code, out, err = run("account", file, "--csv", tmp_path / "nowhere" / "a.csv")
    assert (code, out, err.count("Error: ")) == (2, "", 1)
    assert "nowhere/a.csv" in "".join(err.split())


@pytest.mark.parametrize("name", ["patients.csv", "release.toml"])
def test_an_account_overwrites_no_file(refused, tmp_path, name):
    file = account_of(tmp_path, 'mechanism = "discrete-laplace"\nscale = 5')
    (tmp_path / name).write_text("mine")
    said = refused("account", file, "--csv", tmp_path / name)
    assert ("exists already" if name.endswith("csv") else "must end in .csv") in said
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("command", ["plan", "account", "compare", "distribution"])
def test_a_picture_overwrites_nothing_but_a_picture(refused, census, command):
    uses = account_of(census.parent, 'mechanism = "discrete-laplace"\nscale = 5')
    picture = census.parent / "a.png"
    picture.write_text("mine")
    file = {"account": uses, "distribution": census.parent}.get(command, census)
    said = refused(command, file, "--picture", picture)
    assert "the file exists and is not a PNG picture; name another file" in said
    assert picture.read_text() == "mine"


@pytest.mark.parametrize(
    "options", [("--match", "bureau"), ("--match", "x"), ("--delta", "1e-9", "--delta", "2")]
)
def test_an_account_that_cannot_be_given_whole_prints_nothing(refused, tmp_path, options):
    file = account_of(tmp_path, 'mechanism = "discrete-laplace"\nscale = 5')
    refused("account", file, *options)  # which is all that it says


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("allocation", 'method="optimal"\nprior = {source = "a\\u0000b", public = true}'),
        ("ledger", 'database = "a\\u0000b"\ndataset = "d"'),
        ("output", 'directory = "a\\u0000b"'),
        ("tree", 'refine = ["a\\u0000b"]'),
    ],
    ids=["prior", "ledger", "output", "list"],
)
@pytest.mark.parametrize("command", ["plan", "release"])
def test_a_text_with_nul_is_refused(refused, census, name, lines, command):
    section(census, name, lines)
    said = refused(command, census)
    assert f"[{name}]" in said
    assert "zero character" in said


def test_a_ledger_with_nul_in_its_name_is_refused():
    with pytest.raises(BudgetError, match="no file can be called"):
        create_file(Path("a\0b"), 1)
    with (
        pytest.raises(BudgetError, match="no file can be called"),
        open_ledger_file(Path("a\0b"), 1),
    ):
        pass


def test_a_prior_as_url_is_refused_and_not_quoted(refused, census):
    url = "postgresql://me:hunter2@host/db"
    section(census, "allocation", f'method="optimal"\nprior={{source="{url}", public=true}}')
    said = refused("plan", census)
    assert "not a database" in said
    assert "hunter2" not in said


@pytest.mark.parametrize(
    "lines",
    [
        'method = "sparse"\npenalty = -1',
        'method = "sparse"\npenalty = "1/0"',
        'method = "chebyshev"\npenalty = 1',
    ],
    ids=["negative", "zero", "unknown"],
)
@pytest.mark.parametrize("command", ["plan", "release"])
def test_an_estimator_that_cannot_be_is_refused_without_the_table(refused, census, lines, command):
    section(census, "estimate", lines)
    no_table(census)
    said = refused(command, census)
    assert "penalty" in said


@pytest.mark.parametrize("place", ["noext", ".", "a.txt", "nowhere/a.png"])
@pytest.mark.parametrize("command", ["plan", "account"])
def test_a_picture_that_has_no_place_is_refused(refused, census, place, command):
    uses = account_of(census.parent, 'mechanism = "discrete-laplace"\nscale = 5')
    picture = census.parent / place if place != "." else "."
    said = refused(command, census if command == "plan" else uses, "--picture", picture)
    assert ("the directory does not exist" if "nowhere" in place else "must end in") in said
    assert not list(census.parent.glob("noext*"))


@pytest.mark.parametrize("command", ["plan", "account", "compare", "distribution"])
def test_no_picture_is_drawn_into_a_release(refused, census, command):
    uses = account_of(census.parent, 'mechanism = "discrete-laplace"\nscale = 5')
    published = census.parent / "published"
    published.mkdir()
    (published / "manifest.json").write_text('{"format": "hedgerow-release-4"}')
    file = {"account": uses, "distribution": published}.get(command, census)
    said = refused(command, file, "--picture", published / "a.png")
    assert "lies within the release" in said
    assert len(list(published.iterdir())) == 1


def test_no_ledger_is_opened_in_a_release(refused, census):
    published = census.parent / "published"
    published.mkdir()
    (published / "manifest.json").write_text('{"format": "hedgerow-release-4"}')
    section(census, "ledger", 'database = "published/ledger.sqlite"\ndataset = "d"')
    assert "lies within the release" in refused("ledger", "open", census, "--rho", "1")
    assert len(list(published.iterdir())) == 1


def test_json_comes_with_the_picture_and_the_simulated_errors(succeeds, census):
    areas = census.parent / "areas.parquet"
    source = json.dumps(str(areas))
    section(census, "allocation", f'method="optimal"\nprior={{source={source}, public=true}}')
    picture = census.parent / "f.PNG"
    out = succeeds("plan", census, "--json", "--simulate", "2", "--picture", picture)
    simulated = json.loads(out)["simulated"]
    assert [row["depth"] for row in simulated] == list(range(len(simulated)))
    assert simulated[-1]["rmse"] > 0
    assert picture.stat().st_size > 1000
