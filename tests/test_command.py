"""The console command, before the package is imported."""

import signal
import subprocess
import sys

import pytest

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
hedgerow_command.main()
"""


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


def test_the_command_runs():
    code = "import sys, hedgerow_command; sys.argv[1:] = ['--version']; hedgerow_command.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "hedgerow")
