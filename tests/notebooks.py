"""Notebooks of the documentation, run from the first cell to the last."""

import os
import tempfile
from unittest import mock

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

PATIENCE = 600  # seconds for a cell, on a machine that does much else


def executed(path, folder):
    """The notebook after a run in a folder, by a kernel of this Python and no user settings."""
    notebook = nbformat.read(path, as_version=4)
    # Sockets are files, as a port that is free now may be another's when the kernel starts; their
    # names have at most some 100 letters.
    with tempfile.TemporaryDirectory(prefix="kernel", dir="/tmp") as private:
        places = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
        sockets = {"transport": "ipc", "ip": f"{private}/socket"}
        with mock.patch.dict(os.environ, dict.fromkeys(places, private)):
            NotebookClient(
                notebook, timeout=PATIENCE, startup_timeout=PATIENCE, kernel_name="python3",
                resources={"metadata": {"path": str(folder)}}, record_timing=False,
                config=Config({"AsyncKernelManager": sockets}),
            ).execute()  # fmt: skip
    return notebook
