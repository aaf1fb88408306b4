"""The commands, as a user types them: what they show, refuse, and leave behind."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from hedgerow.errors import OUTSIDE
from hedgerow.examples import EXAMPLES
from hedgerow.examples.census import CENSUS_SIZES, CensusSize
from hedgerow.examples.redistricting import REDISTRICTING_SIZES
from hedgerow.examples.redistricting_nation import RedistrictingSize
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.directory.keys import Charging
from tests.cli.in_turn import in_turn

SIGNAL_EXIT = 130
PATIENCE = 600  # seconds, for a machine that does much else


@pytest.fixture(scope="session")
def examples(tmp_path_factory):
    """Two small examples, the census of 4,000 blocks, written once; tests work on copies."""
    folder = tmp_path_factory.mktemp("examples")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CENSUS_SIZES, "small", CensusSize(3, 20, 200, 4_000, 170_000))
        for kind in ("commuting", "census"):
            EXAMPLES[kind](folder / kind, "small")
    return folder


@pytest.fixture
def commuting(examples, tmp_path):
    return Path(shutil.copytree(examples / "commuting", tmp_path / "commuting")) / "release.toml"


@pytest.fixture
def census(examples, tmp_path):
    return Path(shutil.copytree(examples / "census", tmp_path / "census")) / "release.toml"


DEMO = {"commuting": 21, "census": 18}
"""How many lines of each example `make demo` shows at most; one more says what to open."""
COMMANDS = 5
"""Lines of those that it names: it leaves `compare` to its last line."""


def edit(file, old, new):
    text = file.read_text()
    assert old in text, old
    file.write_text(text.replace(old, new))


def frame(file, change):
    change(pl.read_parquet(file)).write_parquet(file)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_whole_journey_of_an_example(run, succeeds, tmp_path, monkeypatch, kind):
    """Of a smaller redistricting than users get, which `test_example` writes."""
    monkeypatch.setitem(REDISTRICTING_SIZES, "small", RedistrictingSize(1, 2, 6, 12, 120, 5_000))
    out = succeeds("example", kind, tmp_path / kind, "--size", "small")
    file = tmp_path / kind / "release.toml"
    assert f"hedgerow plan {file}" in out
    planned = succeeds("plan", file)
    assert "can differ only so much" in planned
    code, released, err = run("release", file)
    assert code == 0
    assert "reading the table" in err
    assert "Released" in released
    assert planned.split("plan ")[-1].split()[0] in released, "the plan's hash is shown by both"
    checked = succeeds("check", tmp_path / kind / "out")
    assert "checks passed" in checked
    picture = ("--picture", tmp_path / "errors.png") if kind in DEMO else ()
    compared = succeeds("compare", file, *picture)
    assert "confidential" in compared
    assert compared.count("forecast") >= 3
    assert "ratio: the measured error over the forecast" in " ".join(compared.split())
    if kind in DEMO:
        assert (tmp_path / "errors.png").exists()
        shown = [planned, released, checked, succeeds("table", file.parent / "out", "--depth", "1")]
        paragraphs = [said.strip("\n").split("\n\n")[0].splitlines() for said in shown]
        assert sum(map(len, paragraphs)) + COMMANDS <= DEMO[kind], "all of make demo: 40 lines"


def test_a_plan_is_made_without_opening_the_table(succeeds, refuses, commuting):
    (commuting.parent / "trips.parquet").unlink()
    out = succeeds("plan", commuting, "--json")
    plan = json.loads(out)
    assert [depth["kind"] for depth in plan["cuboids"]] == ["public"] + ["measured"] * 6
    refuses(
        f"has the hash {plan['sha256']}, not 000", "release", commuting, "--expect-plan", "0" * 64
    )


def test_the_signed_plan_is_executed(succeeds, commuting):
    signed = json.loads(succeeds("plan", commuting, "--json"))
    succeeds("release", commuting, "--expect-plan", signed["sha256"])
    manifest = json.loads((commuting.parent / "out" / "manifest.json").read_text())
    assert manifest["plan_sha256"] == signed.pop("sha256")
    assert manifest["plan"] == {name: signed[name] for name in manifest["plan"]}
    assert set(signed) - set(manifest["plan"]) == {
        "forecast",
        "sums",
        "promise",
        "efficiency",
        "optimum",
        "chosen",
        "settled",
        "verdicts",
    }
    assert signed["promise"] == manifest["promise"]


def test_every_command_explains_itself(run, succeeds):
    for command in (
        (),
        ("example",),
        ("plan",),
        ("release",),
        ("check",),
        ("compare",),
        ("account",),
        ("estimate",),
        ("distribution",),
    ):
        out = succeeds(*command, "--help")
        assert "Usage" in out
    code, out, _ = run("--version")
    assert (code, out.split()[0]) == (0, "hedgerow")


STATE_LEVEL = """
[[use]]
mechanism = "discrete-gaussian"
sigma2 = "5"
times = 10
"""


def test_an_account_states_the_exact_price_beside_the_loose_ones(succeeds, tmp_path):
    file = tmp_path / "account.toml"
    file.write_text(STATE_LEVEL)
    out = succeeds(
        "account",
        file,
        "--delta",
        "1e-11",
        "--match",
        "bureau",
        "--csv",
        tmp_path / "a.csv",
        "--picture",
        tmp_path / "a.png",
    )
    assert "10.1249" in out, "the tight ε"
    assert "11.0655" in out, "the Bureau's"
    assert "15.09% less variance" in out
    frame = pl.read_csv(tmp_path / "a.csv")
    assert (frame["delta_low"] <= frame["delta_high"]).all()
    assert frame["delta_high"].is_sorted(descending=True)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_the_account_of_a_release_is_that_of_its_plan(run, succeeds, commuting):
    planned = succeeds("plan", commuting)
    assert "Noise variance saved by exact accounting: 31.2%" in planned
    run("release", commuting)
    out = succeeds("account", commuting.parent / "out", "--delta", "1e-8")
    assert "1e-08 1 1.05995 1.2093" in " ".join(out.split())
    manifest = run("account", commuting.parent / "out" / "manifest.json", "--delta", "1e-8")
    assert manifest[1] == out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "[use] is missing"),
        ("use = []", "at least 1 item"),
        ('[[use]]\nmechanism = "discrete-gaussian"', "discrete-gaussian takes sigma2, got none"),
        ('[[use]]\nmechanism = "discrete-gaussian"\nscale = 1', "takes sigma2, got scale"),
        ('[[use]]\nmechanism = "discrete-gaussian"\nsigma2 = -1', "sigma2 must be above 0, got -1"),
        ('[[use]]\nmechanism = "discrete-gaussian"\nsigma2 = 0', "sigma2 must be above 0, got 0"),
        ('[[use]]\nmechanism = "discrete-gaussian"\nsigma2 = nan', "sigma2"),
        (STATE_LEVEL.replace("10", "-1"), "of at least 1, got -1"),
        (STATE_LEVEL + "shift = 0", "other than 0"),
        (STATE_LEVEL + "shifts = 1", "did you mean 'shift'?"),
        ('[[use]]\nmechanism = "guarantee"\ndelta = 1', "takes epsilon or delta and epsilon"),
    ],
)
def test_a_wrong_account_is_refused(refuses, tmp_path, text, message):
    file = tmp_path / "account.toml"
    file.write_text(text)
    refuses(message, "account", file)


@pytest.mark.parametrize("delta", ["0", "1", "-1", "nan", "much"])
def test_a_delta_that_is_no_chance_is_refused(refuses, tmp_path, delta):
    file = tmp_path / "account.toml"
    file.write_text(STATE_LEVEL)
    refuses("delta", "account", file, f"--delta={delta}")


LEDGER = """
[ledger]
database = "ledger.sqlite"
dataset = "commuting-2011"
"""


@pytest.fixture
def charged(commuting):
    commuting.write_text(commuting.read_text() + LEDGER)
    return commuting


def test_releases_are_charged_until_the_cap_and_refused_beyond_it(succeeds, refuses, charged):
    folder = charged.parent
    refuses("there is no ledger", "release", charged)
    succeeds("ledger", "open", charged, "--rho", "0.03")
    out = succeeds("release", charged)
    assert "0.0192213 is spent and 0.0107787 is left" in out
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert manifest["ledger"]["dataset"] == "commuting-2011"
    assert manifest["ledger"]["release_id"][:12] in succeeds(
        "ledger", "show", folder / "ledger.sqlite"
    )
    (folder / "out").rename(folder / "first")
    before = sorted(folder.iterdir())
    refuses("more than is left", "release", charged)
    assert sorted(folder.iterdir()) == before
    succeeds("check", folder / "first")


def test_a_charge_that_another_run_has_made_impossible_leaves_nothing_behind(
    run, refuses, charged, monkeypatch
):
    run("ledger", "open", charged, "--rho", "0.001")
    monkeypatch.setattr(Charging, "check", lambda *_: None)
    before = sorted(charged.parent.iterdir())
    refuses("more than is left", "release", charged)
    assert sorted(charged.parent.iterdir()) == before


def test_a_resumed_release_is_charged_once(run, succeeds, charged, monkeypatch):
    run("ledger", "open", charged, "--rho", "0.03")

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ChainFlow, "_measured", die)
        assert run("release", charged)[0] == SIGNAL_EXIT
    shown = succeeds("ledger", "show", charged.parent / "ledger.sqlite")
    assert "0.0192213 is spent" in shown, "charged before any noise was drawn"
    succeeds("release", charged, "--resume")
    again = succeeds("ledger", "show", charged.parent / "ledger.sqlite")
    assert again == shown


def test_a_discarded_release_stays_charged_and_the_new_one_is_charged_too(
    run, succeeds, refuses, charged, monkeypatch
):
    refuses("hedgerow ledger open FILE --rho", "release", charged)
    run("ledger", "open", charged, "--rho", "0.05")
    refuses("there is nothing to discard", "release", charged, "--discard")

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ChainFlow, "_measured", die)
        assert run("release", charged)[0] == SIGNAL_EXIT
    err = run("release", charged)[2]
    assert "a charge to a ledger stays, and the new run is charged again" in err
    out = succeeds("release", charged, "--discard")
    assert "0.0384425 is spent" in out
    said = " ".join(succeeds("release", "--help").split())
    assert "start again" in said


def test_a_cap_that_no_release_of_the_file_could_use_is_not_opened(succeeds, refuses, charged):
    ledger = charged.parent / "ledger.sqlite"
    refuses("no pure ε", "ledger", "open", charged, "--epsilon", "1")
    assert not ledger.exists()
    text = charged.read_text().replace("discrete-gaussian", "discrete-laplace")
    charged.write_text(re.sub("(?m)^delta.*\n", "", text))
    succeeds("ledger", "open", charged, "--rho", "10")
    succeeds("release", charged)
    ledger.unlink()
    succeeds("ledger", "open", charged, "--epsilon", "2")


def test_a_ledger_without_the_account_names_the_command_that_opens_it(run, refuses, charged):
    run("ledger", "open", charged, "--rho", "1")
    edit(charged, "commuting-2011", "commuting-2012")
    refuses("open one, with its cap: hedgerow ledger open FILE --rho", "release", charged)


def test_a_ledger_that_is_none_and_caps_that_are_none_are_refused(run, succeeds, refuses, charged):
    assert run("ledger", "open", charged)[0] == 2
    assert run("ledger", "open", charged, "--rho", "1", "--epsilon", "1")[0] == 2
    assert run("ledger", "open", charged, "--rho", "-1")[0] == 2
    assert run("ledger", "show", charged.parent / "trips.parquet")[0] == 2
    assert not (charged.parent / "ledger.sqlite").exists()
    succeeds("ledger", "open", charged, "--rho", "1")
    refuses("cap", "ledger", "open", charged, "--rho", "2")


FILE_ERRORS = {
    "missing table": ('"trips.parquet"', '"nowhere.parquet"', "nowhere.parquet"),
    "missing areas": ('areas   = "municipalities.parquet"', 'areas = "no.parquet"', "no.parquet"),
    "unknown column": ('"o_province"', '"o_provnice"', "o_provnice"),
    "unknown count": ('count  = "trips"', 'count = "journeys"', "journeys"),
    "unknown key": ("contributions = 1", "contribution = 1", "did you mean 'contributions'?"),
    "unknown section": ("[allocation]", "[alocation]", "did you mean 'allocation'?"),
    "unknown axis key": ("areas   =", "area =", "did you mean 'areas'?"),
    "epsilon 0": ("epsilon       = 1", "epsilon = 0", "[privacy] epsilon must be above 0"),
    "epsilon negative": ("epsilon       = 1", "epsilon = -1", "epsilon must be above 0, got -1"),
    "epsilon nan": ("epsilon       = 1", "epsilon = nan", "[privacy] epsilon"),
    "epsilon infinite": ("epsilon       = 1", "epsilon = inf", "[privacy] epsilon"),
    "epsilon text": ("epsilon       = 1", 'epsilon = "much"', "[privacy] epsilon"),
    "delta 0": ("delta         = 1e-8", "delta = 0", "delta must be in (0, 1), got 0"),
    "delta 1": ("delta         = 1e-8", "delta = 1.0", "delta must be in (0, 1), got 1"),
    "both budgets": ("epsilon       = 1", "epsilon = 1\nrho = 1", "give one budget"),
    "no budget": ("epsilon       = 1", "", "give one budget"),
    "no delta": ("delta         = 1e-8", "", "pure epsilon; add a delta"),
    "laplace with delta": ('"discrete-gaussian"', '"discrete-laplace"', "epsilon alone"),
    "mechanism": ('"discrete-gaussian"', '"laplace"', "[privacy] mechanism"),
    "contributions 0": ("contributions = 1", "contributions = 0", "at least 1, got 0"),
    "contributions text": ("contributions = 1", 'contributions = "1"', "[privacy] contributions"),
    "shares sum": (
        'method = "uniform"',
        'method = "shares"\nshares = [0.5, 0.4]',
        "[allocation] shares must sum to exactly 1, got 9/10",
    ),
    "shares 0": (
        'method = "uniform"',
        'method = "shares"\nshares = [1, 0]',
        "the last share must be above 0",
    ),
    "shares number": ('method = "uniform"', 'method = "shares"\nshares = [1]', "needs 6 shares"),
    "shares missing": (
        'method = "uniform"',
        'method = "shares"',
        'method = "shares" takes shares = ',
    ),
    "refine": ('["destination", "origin"]', '["destination"]', "must name every axis once"),
    "refine unknown": ('["destination", "origin"]', '["origin.city"]', "no level 'city'"),
    "invariant": (
        "[output]",
        '[[invariant]]\naxis = "origin"\nlevel = "region"\n[output]',
        "is not a depth of this tree",
    ),
    "contributions of replace": ("contributions = 1", "contributions = 3", "needs exactly = true"),
    "epsilon endless": ("epsilon       = 1", "epsilon = 1e999", "epsilon must be at most"),
    "epsilon of many digits": ("epsilon       = 1", f"epsilon = {'9' * 5000}", "is not TOML"),
    "nested without end": ("[output]", f"x = {'[' * 3000}\n[output]", "is not TOML"),
    "levels twice": (
        'levels  = ["region", "province", "municipality"]   #',
        'levels = ["region", "region", "municipality"] #',
        "must name each level once",
    ),
    "a URL in the wrong place": ("[tree]", 'tree = "postgresql://u:sekret@h/d"\n[other]', "tree"),
    "output below a file": ('directory = "out"', 'directory = "trips.parquet/out"', "below a file"),
    "output nowhere": ('directory = "out"', 'directory = "a/.."', "cannot be made"),
    "not toml": ("[privacy]", "[privacy", "is not TOML"),
    "method": ('"euclidean"', '"simplex"', "[estimate] method"),
}


@pytest.mark.parametrize("name", FILE_ERRORS)
def test_a_wrong_release_file_is_refused_in_one_sentence(run, commuting, name):
    old, new, message = FILE_ERRORS[name]
    edit(commuting, old, new)
    before = sorted(commuting.parent.iterdir())
    code, out, err = run("release", commuting)
    assert (code, out) == (2, "")
    sentence = [line for line in err.splitlines() if line.startswith("Error: ")]
    assert len(sentence) == 1
    assert message in sentence[0]
    assert "sekret" not in err
    assert "Traceback" not in err
    assert sorted(commuting.parent.iterdir()) == before, "nothing was written"


TABLE_ERRORS = {
    "negative": (lambda f: f.with_columns(trips=-pl.col("trips")), "negative"),
    "fraction": (lambda f: f.with_columns(trips=pl.col("trips") + 0.5), "whole"),
    "missing count": (lambda f: f.with_columns(trips=pl.lit(None, pl.Int64)), "without a value"),
    "nan": (lambda f: f.with_columns(trips=pl.lit(float("nan"))), "whole"),
    "unknown code": (lambda f: f.with_columns(o_municipality=pl.lit("zz")), "not in the public"),
    "wrong parent": (lambda f: f.with_columns(o_region=f["o_region"].reverse()), "parent"),
}


def test_a_list_taken_from_the_table_is_told_of(succeeds, commuting):
    text = commuting.read_text().replace('"municipalities.parquet"', '"table"')
    commuting.write_text(text)
    succeeds("release", commuting)
    manifest = json.loads((commuting.parent / "out" / "manifest.json").read_text())
    assert "does not hide which codes the table holds" in manifest["promise"]
    assert "destination and origin was taken from the table itself" in manifest["restriction"]
    succeeds("check", commuting.parent / "out")


def test_units_and_their_contributions_are_told_of(succeeds, census):
    records = pl.read_parquet(census.parent / "population.parquet").head(300)
    records = (
        records.drop("population").with_row_index("person").with_columns(pl.col("person") // 3)
    )
    records.write_parquet(census.parent / "population.parquet")
    edit(census, 'count  = "population"', 'unit = "person"')
    edit(census, '"add-remove"', '"replace"')
    edit(census, "contributions = 1", "contributions = 2")
    out = succeeds("release", census)
    assert "the records of any one person say and however many they are, up to 2" in out
    manifest = json.loads((census.parent / "out" / "manifest.json").read_text())
    assert manifest["plan"]["neighbours"]["unit"] == "person"
    assert manifest["plan"]["cuboids"][0]["kind"] == "measured"


@pytest.mark.parametrize("name", TABLE_ERRORS)
def test_what_is_wrong_with_a_table_is_told_on_a_terminal_alone(
    run, run_on_terminal, commuting, name
):
    change, message = TABLE_ERRORS[name]
    frame(commuting.parent / "trips.parquet", change)
    before = sorted(commuting.parent.iterdir())
    code, _, err = run("release", commuting)
    assert code == 2
    assert err.endswith(f"Error: the table {OUTSIDE}\n")
    assert message not in err
    assert message in run_on_terminal("release", commuting)[2]
    assert sorted(commuting.parent.iterdir()) == before


AREA_ERRORS = {
    "two parents": (
        lambda f: f.with_columns(
            province=pl.when(pl.int_range(pl.len()) < 1)
            .then(pl.col("province").last())
            .otherwise("province")
        ),
        "two parents",
    ),
    "empty": (lambda f: f.head(0), "is empty"),
    "orphan": (lambda f: f.with_columns(province=pl.lit(None, pl.String)), "has no province"),
}


@pytest.mark.parametrize("name", AREA_ERRORS)
def test_a_wrong_list_of_areas_is_refused(refuses, commuting, name):
    change, message = AREA_ERRORS[name]
    frame(commuting.parent / "municipalities.parquet", change)
    for command in ("plan", "release"):
        refuses(message, command, commuting)
    assert not (commuting.parent / "out").exists()


def test_a_file_that_is_no_table_is_refused(refuses, commuting):
    (commuting.parent / "trips.parquet").write_bytes(os.urandom(1000))
    refuses(f"Error: the table {OUTSIDE}", "release", commuting)


def test_missing_files_and_directories_are_named(refuses, tmp_path):
    for command in ("plan", "release"):
        refuses("no.toml", command, tmp_path / "no.toml")
    refuses("no release directory", "check", tmp_path)


def test_unknown_examples_commands_and_switches_are_refused(run, tmp_path):
    assert run("example", "weather", tmp_path)[0] == 2
    assert run("example", "census", tmp_path, "--size", "huge")[0] == 2
    assert run("publish")[0] == 2
    assert run("plan", tmp_path / "a.toml", "--fast")[0] == 2
    assert list(tmp_path.iterdir()) == []


def test_an_existing_output_is_refused_before_the_table_is_read(refuses, commuting):
    (commuting.parent / "out").mkdir()
    (commuting.parent / "trips.parquet").unlink()
    refuses("exists already", "release", commuting)


def test_a_spoiled_release_fails_its_check(run, census):
    run("release", census)
    (census.parent / "out" / "counts" / "cuboid=2.parquet").unlink()
    code, out, err = run("check", census.parent / "out")
    assert code == 2
    assert "FAIL" in out
    assert "cuboid=2.parquet is missing" in out
    assert "checks failed" in err


def test_an_unforeseen_error_does_not_quote_the_table(run, census, monkeypatch):
    def quote(*_, **__):
        raise KeyError("4711 people in block 530330001")

    monkeypatch.setattr("hedgerow.cli.commands.make_release", quote)
    code, _, err = run("release", census)
    assert code == 1
    assert "internal error, please report it: KeyError" in err
    assert "4711" not in err


WAIT_IN_MEASURING = """
import sys, time
from hedgerow import cli
from hedgerow.release.descent import chain
draw = chain.ChainFlow._measured
def slow(self, *rest):
    print("measuring", file=sys.stderr, flush=True)
    time.sleep(1800)
chain.ChainFlow._measured = slow
sys.exit(cli.run(sys.argv[1:]))
"""


def test_ctrl_c_leaves_a_release_that_the_next_run_finishes_or_discards(
    run, succeeds, refuses, census
):
    process = subprocess.Popen(
        [sys.executable, "-c", WAIT_IN_MEASURING, "release", str(census)],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while process.stderr.readline() != "measuring\n":
        assert process.poll() is None
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == SIGNAL_EXIT
    assert "stopped; an unfinished release is kept" in err
    assert "Traceback" not in err
    staging = census.parent / "out.staging"
    assert staging.exists()
    assert not (census.parent / "out").exists()
    refuses(["--resume", "--discard"], "release", census)
    assert run("release", census, "--resume", "--discard")[0] == 2
    succeeds("release", census, "--resume")
    succeeds("check", census.parent / "out")
    assert not staging.exists()
    assert run("release", census, "--resume")[0] == 2


FULL_DISK = """
import resource, sys
from hedgerow import cli
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
sys.exit(cli.run(sys.argv[1:]))
"""


def test_a_full_disk_ends_with_1_and_nothing_half_written(succeeds, census):
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, "release", str(census)],
        capture_output=True, text=True, check=False, timeout=PATIENCE,
        env={**os.environ, "NUMBA_CACHE_DIR": str(census.parent / "numba")},
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (census.parent / "out").exists()
    succeeds("release", census, "--discard")


def test_a_language_without_unicode_and_colours_that_are_forced_change_nothing(
    succeeds, census, commuting
):
    """A release is made, and codes stay out of logs."""
    frame(commuting.parent / "trips.parquet", TABLE_ERRORS["unknown code"][0])
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "FORCE_COLOR": "1"}
    done = in_turn("release", census, commuting, timeout=PATIENCE, **plain)
    said = done.stderr.decode()
    assert done.returncode == 0, said
    succeeds("check", census.parent / "out")
    assert OUTSIDE in said
    assert "not in the public" not in said
    assert "zz" not in said


def test_a_stopped_command_that_releases_nothing_speaks_of_no_release(run, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("hedgerow.cli.plan.ReleaseSpec", stopped)
    code, _, err = run("plan", "release.toml")
    assert code == 130
    assert "stopped" in err
    assert "--resume" not in err
