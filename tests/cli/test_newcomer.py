"""What somebody meets who types the commands for the first time: sentences that help."""

import os
import pty
import subprocess
import sys

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.cli import terminal
from hedgerow.tables.counts import Counts
from tests.cli.in_turn import in_turn
from tests.made import plain_plan

VISITS = "Patient,Ward\np1,A\np1,A\np1,B\np2,B\np3,\n"
KEPT = "kept 4 of 5 records (at most 2 contributions a unit; confidential, shown only here)"

RELEASE = """
[table]
source = "visits.csv"
unit   = "Patient"

[[axis]]
name   = "ward"
levels = ["Ward"]
areas  = "wards.csv"
not_stated = "none"

[privacy]
contributions = 2
epsilon = 1
delta   = 1e-8
"""


@pytest.fixture
def visits(tmp_path):
    (tmp_path / "visits.csv").write_text(VISITS)
    (tmp_path / "wards.csv").write_text("Ward\nA\nB\nnone\n")
    file = tmp_path / "release.toml"
    file.write_text(RELEASE)
    return file


def edit(file, old, new):
    text = file.read_text()
    assert old in text, old
    file.write_text(text.replace(old, new))


def on_a_terminal(*arguments):
    """What a command says on standard error where that is a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "hedgerow.cli", *map(str, arguments)]
    with subprocess.Popen(command, stderr=slave, stdout=subprocess.PIPE) as process:
        os.close(slave)
        said = b""
        try:
            while part := os.read(master, 65536):
                said += part
        except OSError:  # the other end is closed
            pass
        process.wait(timeout=600)
    os.close(master)
    return said.decode()


def test_what_bounding_keeps_is_told_on_a_terminal_and_in_no_log_or_file(run, succeeds, visits):
    assert KEPT in on_a_terminal("release", visits)
    out = visits.parent / "out"
    for path in [path for path in out.rglob("*") if path.is_file()]:
        assert b"of 5 records" not in path.read_bytes(), path
    compared = succeeds("compare", visits)
    assert KEPT in compared
    out.rename(visits.parent / "first")
    code, said, err = run("release", visits)
    assert code == 0
    assert "of each unit at most 2 records are kept, any others left out" in err
    assert "hedgerow compare shows it" in err
    assert "of 5 records" not in said + err


def test_nothing_is_told_of_bounding_where_there_is_none(run, succeeds, visits):
    edit(visits, 'unit   = "Patient"', "")
    edit(visits, "contributions = 2", "")
    assert "of each unit" not in run("release", visits)[2]
    assert "kept" not in succeeds("compare", visits)


LOST = "Patient,Ward\np1,a\np2,a\np3,B\np4,\n"
SAID = "Patient,Ward\np1,none\np2,none\np3,B\np4,b\n"
OUTSIDE = (
    "axis 'ward': {} of 4 records are counted as 'none' (not_stated): {} have that code, "
    "{} have a code that is not in the list, or none (confidential, shown only here)"
)


@pytest.mark.parametrize(
    ("table", "there"), [(VISITS, (1, 0, 1)), (LOST, (3, 0, 3)), (SAID, (3, 2, 1))]
)
def test_how_many_records_are_not_stated_is_told_on_a_terminal_and_in_no_log(
    run, run_on_terminal, succeeds, visits, table, there
):
    """A code that lost a zero, or is written in small letters, is not stated: nobody is told."""
    (visits.parent / "visits.csv").write_text(table)
    there = OUTSIDE.format(*there)
    assert there in " ".join(run_on_terminal("release", visits)[2].split())
    assert there in succeeds("compare", visits)
    (visits.parent / "out").rename(visits.parent / "first")
    code, said, err = run("release", visits)
    assert code == 0
    assert "records that are not in the list are counted as 'none'" in err
    assert "of 4 records" not in said + err


def test_counts_know_how_many_records_there_were(visits):
    areas = pl.DataFrame({"Ward": ["A", "B", "none"]})
    tree = hr.Tree([hr.Axis.from_frame("ward", areas, ["Ward"], not_stated="none")])
    table = visits.parent / "visits.csv"
    bounded = Counts.from_frame(tree, table, unit="Patient", contributions=1)
    assert (bounded.total, bounded.before) == (3, 5)
    assert Counts.from_frame(tree, table).before is None


REFUSED = {
    "a column in small letters": (
        'unit   = "Patient"', 'unit = "patient"', "no column 'patient'; did you mean 'Patient'?"
    ),
    "a level": ('levels = ["Ward"]', 'levels = ["Wards"]', "no column 'Wards'; did you mean 'Ward"),
    "a method": (
        "[privacy]", '[estimate]\nmethod = "eucliden"\n[privacy]', "did you mean 'euclidean'?"
    ),
    "a mechanism": (
        "contributions = 2", 'mechanism = "discrete-gausian"', "did you mean 'discrete-gaussian'?"
    ),
    "epsilon alone": (
        "delta   = 1e-8",
        "",
        ("[privacy] discrete-gaussian noise has no pure epsilon; add a delta well below 1 over the "
        "number of records (1e-8 for a hundred thousand)"),
    ),
    "epsilon nan": (
        "epsilon = 1",
        "epsilon = nan",
        "[privacy] epsilon must be a finite number, got nan",
    ),
    "epsilon inf": (
        "epsilon = 1",
        "epsilon = -inf",
        "[privacy] epsilon must be a finite number, got -infinity",
    ),
    "half a contribution": ("contributions = 2", "contributions = 0.5",
        "[privacy] contributions must be a whole number, got 0.5"),
    "the table as list": (
        'areas  = "wards.csv"',
        'areas = "./visits.csv"',
        ("""[[axis]] 'ward' areas is the confidential table itself; name a public list with one """
        """row an area, or, if the codes in the table are public, areas = "table\""""),
    ),
    "no code": (
        'not_stated = "none"',
        "",
        ("column 'Ward' lacks a code for some record; correct the table, or name a leaf of the "
        "list for such records (not_stated; add a row for it to the list first)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_says_the_way_out(run_on_terminal, visits, name):
    old, new, message = REFUSED[name]
    edit(visits, old, new)
    code, out, err = run_on_terminal("release", visits)
    assert (code, out) == (2, "")
    assert message in err


def test_the_table_itself_as_list_is_refused_under_any_name(refuses, visits):
    (visits.parent / "list.csv").hardlink_to(visits.parent / "visits.csv")
    edit(visits, "wards.csv", "list.csv")
    refuses("areas is the confidential table itself", "plan", visits)


def test_levels_of_a_release_are_suggested(visits, succeeds):
    succeeds("release", visits)
    released = hr.read_release(visits.parent / "out")
    for wrong in (
        lambda: released.level("wards"),
        lambda: released.cuboid(ward="Wards"),
    ):
        with pytest.raises(hr.ReleaseError, match=r"did you mean 'Ward'\?"):
            wrong()


@pytest.mark.parametrize("command", ["plan", "release"])
def test_a_delta_that_promises_little_is_warned_of(run, visits, command):
    edit(visits, "delta   = 1e-8", "delta = 1e-5")
    assert "Warning" not in run("plan", visits)[2]
    edit(visits, "delta = 1e-5", "delta = 0.01")
    code, _, err = run(command, visits)
    assert code == 0
    assert (
        "Warning: delta = 0.01 is weak: it would permit publishing each record as it is with a "
        "chance of 0.01, however small epsilon" in err
    )


def test_a_directory_in_place_of_a_file_is_named(refuses, visits):
    for command in ("plan", "release", "compare"):
        refuses(f"{str(visits.parent)!r} is a directory; name a file", command, visits.parent)


@pytest.mark.parametrize("command", ["account", "estimate"])
def test_a_release_file_or_nothing_in_place_of_another_file_is_named(refuses, visits, command):
    refuses(f"this is a release file; {command} takes", command, visits)
    refuses("there is neither a directory nor a file", command, visits.parent / "nothere")


def test_numbers_are_asked_for_in_plain_words(run, refuses, visits):
    refuses("'--records': must be a whole number", "plan", visits, "--records", "2e4")
    refuses("'--penalty': must be a number", "estimate", visits.parent, "--penalty", "much")
    edit(visits, "epsilon = 1", "epsilon = true")
    assert "[privacy] epsilon must be a number" in run("plan", visits)[2]


def test_the_plan_explains_its_columns(succeeds, visits):
    out = succeeds("plan", visits)
    assert "empty seen > 0" in out
    assert "false positives" not in out
    assert "empty seen > 0: the share of the cells that are truly 0 whose noisy count" in out


def test_an_account_speaks_of_its_mechanisms_and_that_of_a_release_of_the_release(
    run, succeeds, visits
):
    uses = visits.parent / "uses.toml"
    uses.write_text('[[use]]\nmechanism = "discrete-gaussian"\nsigma2 = 5\n')
    out = succeeds("account", uses)
    assert out.startswith("Used together, they satisfy ρ = 0.1 zero")
    run("release", visits)
    out = succeeds("account", visits.parent / "out")
    answer, _, promise = out.splitlines()[:3]
    assert answer == "ε = 1 at δ = 1e-08 (add-remove, contributions 2, unit 'Patient')."
    assert promise.startswith("The release can differ only so much with or without any one Patient")
    assert "The release satisfies ρ =" in out


def test_what_python_shows_is_short(run, visits):
    run("release", visits)
    released = hr.read_release(visits.parent / "out")
    total = int(released.level(depth=0)["count"].sum())
    assert repr(released) == f"Release(total, Ward; {total} records released)"
    tree = hr.Tree([hr.Axis.from_frame("ward", {"Ward": ["A", "B"]}, ["Ward"])])
    plan = plain_plan(tree, budget=hr.Rho("1/2"))
    assert repr(plan) == (
        "Plan(total, Ward; satisfies ρ = 0.5 zero-concentrated differential privacy; add-remove, "
        "contributions 1; print() shows its table and promise)"
    )
    assert "cuboid" in str(plan)
    incomes = hr.release_distribution([1.0, 2.0], low=0, high=4, bins=4, budget=hr.Epsilon(1))
    assert repr(incomes).startswith("Distribution(")
    assert repr(incomes).endswith("records released, 4 bins from 0 to 4)")


def test_a_release_of_nothing_is_compared(succeeds, visits):
    (visits.parent / "visits.csv").write_text("Patient,Ward\n")
    edit(visits, "epsilon = 1", "epsilon = 1000")
    succeeds("release", visits)
    out = succeeds("compare", visits)
    assert "kept 0 of 0 records" in out


def test_forced_colours_do_not_make_a_log_a_terminal(run, succeeds, tmp_path, monkeypatch):
    monkeypatch.setattr(terminal.stderr, "_force_terminal", True)
    assert not terminal.on_terminal()
    with terminal.bar("measuring") as progress:
        progress.on_cuboid("county", 5, 5, 1.0)
    succeeds("example", "census", tmp_path / "c")
    _, _, said = run("release", tmp_path / "c" / "release.toml")
    assert "core seconds" not in said


def test_a_limit_on_memory_is_refused_where_spark_runs_the_release(succeeds, refuses, tmp_path):
    succeeds("example", "census", tmp_path / "c")
    file = tmp_path / "c" / "release.toml"
    file.write_text(file.read_text() + '\n[engine]\nname = "spark"\nmaster = "local[2]"\n')
    refuses("--memory is for this machine", "release", file, "--memory", "4GB")
    assert not (tmp_path / "c" / "out").exists()


@pytest.mark.parametrize(
    ("encoding", "word"), [("ascii", "Su\\xfcd"), ("latin-1", "Suüd"), ("utf-8", "Suüd")]
)
@pytest.mark.sweep(3)
def test_what_a_terminal_cannot_write_is_spelled_out(visits, encoding, word):
    """The promise names epsilon, delta and rho apart, and codes stay apart."""
    edit(visits, '"ward"', '"Suüd"')
    without = visits.with_name("without.toml")
    without.write_text(visits.read_text().replace('"wards.csv"', '"Suüd.csv"'))
    done = in_turn("plan", visits, without, PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode(encoding)
    promise = "ρ ε δ" if encoding == "utf-8" else "rho epsilon delta"
    for letter in promise.split():
        assert f"{letter} = " in said
    assert ("±" if encoding != "ascii" else "+-") in said
    assert "?" not in said
    assert f"{word}.csv does not exist" in done.stderr.decode(encoding)


def test_a_release_file_from_notepad_is_the_same_file(run, visits):
    plain = run("plan", visits)
    visits.write_bytes(b"\xef\xbb\xbf" + visits.read_bytes().replace(b"\n", b"\r\n"))
    assert run("plan", visits) == plain
    assert plain[0] == 0


def test_commands_are_listed_in_the_order_in_which_they_are_met(succeeds):
    names = [
        line.split()[0] for line in succeeds("--help").partition("Commands:")[2].splitlines()[1:]
    ]
    assert names[:6] == ["new", "example", "plan", "release", "check", "table"]
