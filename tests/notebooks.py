"""Notebooks of the documentation, run from the first cell to the last."""

import os
import subprocess
import sys

import nbformat


def executed(path, folder):
    """The notebook after a run in a folder, by a kernel of this Python with this package.

    In a process of its own: what a kernel's libraries warn of is no concern of ours.
    """
    made = folder / path.name
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "nbconvert", "--to", "notebook", "--execute",
         "--ClearMetadataPreprocessor.enabled=True", "--ExecutePreprocessor.timeout=600",
         "--ExecutePreprocessor.record_timing=False", "--output", str(made), str(path)],
        cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
             "IPYTHONDIR": str(folder), "JUPYTER_PLATFORM_DIRS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return nbformat.read(made, as_version=4)
