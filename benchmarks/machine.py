"""What a benchmark ran on: the machine, the versions, the commit; and whether a peer is there."""

import importlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from hedgerow.kernels import core_count

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "hedgerow",
    "numpy",
    "numba",
    "polars",
    "duckdb",
    "pyarrow",
    "scipy",
    "inf-tda",
    "pandas",
    "opendp",
    "dp-accounting",
    "cvxpy",
    "pyspark",
)


class MissingPeer(Exception):  # noqa: N818 - no error, a benchmark that is left out
    """A peer that a benchmark cannot do without is not installed."""


def needed(module: str, package: str) -> Any:
    """The module of a peer.

    Raises:
        MissingPeer: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPeer(f"{package} is not installed ({error})") from None


def installed(module: str, package: str) -> Any:
    """The module of a peer, or None, with a word on it, where it is not installed."""
    try:
        return needed(module, package)
    except MissingPeer as missing:
        print(f"left out: {missing}")
        return None


def facts() -> dict[str, Any]:
    """Date, commit, machine and versions, for the record."""
    return {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "commit": commit(),
        "machine": {
            "processor": processor(),
            "cores": core_count(),
            "memory_gb": round(memory() / 1e9, 1),
            "system": f"{platform.system()} {platform.machine()}",
        },
        "versions": {"python": platform.python_version(), **versions()},
    }


def versions() -> dict[str, str]:
    """Of those packages that are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit, with a plus where files differ from it; "?" without Git or a clone."""
    git = shutil.which("git")
    if git is None:
        return "?"
    told = subprocess.run(
        [git, "describe", "--always", "--abbrev=10", "--exclude=*", "--dirty=+"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return told.stdout.strip() or "?"


def processor() -> str:
    """The model."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "?"


def memory() -> int:
    """Of the machine, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@contextmanager
def cores(count: int) -> Iterator[None]:
    """Fewer cores for this process."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)


def load() -> float:
    """How many processes wanted a core in the last minute."""
    return round(os.getloadavg()[0], 1)
