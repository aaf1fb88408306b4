"""Two runs of a command in one process of its own: one that succeeds, and one that is refused."""

import os
import subprocess
import sys

SCRIPT = """
import sys
from hedgerow import cli
command, *files = sys.argv[1:]
for file, code in zip(files, (0, 2), strict=True):
    sys.argv[1:] = [command, file]
    try:
        cli.main()
    except SystemExit as end:
        assert end.code == code, end.code
    else:
        raise AssertionError("it returned")
"""


def in_turn(command, good, bad, *, timeout=None, **environment):
    """Run a command of two release files; what was printed, as bytes."""
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, command, str(good), str(bad)],
        env={**os.environ, **environment}, cwd=good.parent, capture_output=True, check=False,
        timeout=timeout,
    )  # fmt: skip
