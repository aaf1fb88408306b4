"""The console command, before the package is imported."""

import os
import signal
import subprocess
import sys
from functools import cache

import pytest
import typer.main

import hedgerow
from hedgerow import cli
from hedgerow_command import overview

SLOW_IMPORT = """
import sys, time, signal
{before}
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "hedgerow.cli":
            print("importing", flush=True)
            time.sleep({seconds})
            sys.exit(7)
sys.meta_path.insert(0, Slow())
import hedgerow_command
sys.argv[1:] = ["plan"]
hedgerow_command.main()
"""
COMMAND = "import sys, hedgerow_command; sys.argv[:] = {words}; hedgerow_command.main()"
HEAVY = ["numba", "scipy", "numpy", "duckdb", "polars", "pyarrow", "hedgerow.cli"]


def interrupted(before, seconds):
    """The exit code and standard error of a command that gets Ctrl-C while it imports."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT.format(before=before, seconds=seconds)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=600)
    return process.returncode, err


@pytest.mark.parametrize(
    ("before", "seconds", "ends"),
    [("", 1800, (130, "Error: stopped\n")), ("signal.signal(2, signal.SIG_IGN)", 2, (7, ""))],
    ids=["caught", "ignored from outside"],
)
def test_ctrl_c_while_the_package_is_imported_ends_in_one_line(before, seconds, ends):
    assert interrupted(before, seconds) == ends


@cache
def ran(code, words, width=80):
    """The exit code, standard output and standard error of a process."""
    process = [sys.executable, "-c", code.format(words=["hedgerow", *words])]
    surroundings = {**os.environ, "COLUMNS": str(width)}
    done = subprocess.run(process, capture_output=True, text=True, check=False, env=surroundings)
    return done.returncode, done.stdout, done.stderr


def test_the_command_runs():
    code, out, _ = ran(COMMAND, ("--version",))
    assert (code, out.split()[0]) == (0, "hedgerow")


@pytest.fixture
def whole(monkeypatch, capsys):
    """Run what knows all commands, in this process, which has loaded it."""

    def run(words, width=80):
        monkeypatch.setenv("COLUMNS", str(width))
        monkeypatch.setattr(sys, "argv", ["hedgerow"])  # the name that help gives it
        monkeypatch.setattr(sys.modules["__main__"], "__package__", None)
        return (cli.run(words), *capsys.readouterr())

    return run


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_overview_is_the_help_of_all_commands_together(whole, width):
    assert ran(COMMAND, ("--help",), width) == whole(["--help"], width)


@pytest.mark.parametrize("words", [("--help",), ("ledger", "--help")])
def test_no_summary_is_cut_at_80_columns(whole, words):
    code, shown, _ = whole(words)
    summaries = shown.split("Commands:\n")[1].splitlines()
    assert code == 0
    assert len(summaries) > 1
    assert all(line.endswith(".") and "..." not in line for line in summaries), shown


def test_the_overview_knows_the_first_paragraph_of_each_command():
    commands = typer.main.get_command(cli.app).commands
    words = {name: command.help.split("\n\n")[0].split() for name, command in commands.items()}
    shown = overview.summaries()
    assert [(name, shown[name].split()) for name in overview.COMMANDS] == list(words.items())


def test_without_words_the_overview_is_shown_as_an_error():
    _, overview_, _ = ran(COMMAND, ("--help",))
    assert ran(COMMAND, ()) == (2, "", overview_)


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_neither_help_nor_version_loads_what_the_commands_need(whole, words):
    assert "hedgerow 0" in ran(COMMAND, ("--version",))[1]
    heavy = "".join(f"sys.modules[{name!r}] = None\n" for name in HEAVY)
    assert ran(f"import sys\n{heavy}{COMMAND}", words) == whole(words)


def test_the_package_is_imported_without_what_it_loads_on_first_use():
    code = "import sys, hedgerow; print(sorted({words} & sys.modules.keys()))"
    assert subprocess.run(
        [sys.executable, "-c", code.format(words=set(HEAVY))],
        capture_output=True, text=True, check=True,
    ).stdout == "[]\n"  # fmt: skip


def test_every_public_name_is_there_and_is_what_it_is_called():
    for name in hedgerow.__all__:
        assert getattr(hedgerow, name).__name__ == name
    assert callable(hedgerow.release)  # and not the package of the same name
    with pytest.raises(AttributeError):
        _ = hedgerow.nothing
