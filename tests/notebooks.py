"""Notebooks of the documentation, run from the first cell to the last."""

import nbformat
from nbclient import NotebookClient

PATIENCE = 1200  # seconds, for a machine that does much else


def executed(path, folder):
    """The notebook after a run in a folder, by a kernel of this Python."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=PATIENCE, startup_timeout=PATIENCE, kernel_name="python3",
        resources={"metadata": {"path": str(folder)}}, record_timing=False,
    ).execute()  # fmt: skip
    return notebook
