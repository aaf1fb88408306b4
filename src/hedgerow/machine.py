"""What this machine allows and has: memory, also where a container has less, files, libraries."""

import os
import re
import stat
from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from hedgerow.declared import either
from hedgerow.errors import HedgerowError, MachineError

ROOT = Path("/")


def usable_memory(root: Path = ROOT) -> int | None:
    """Return the bytes of memory that this process may use; None where the system does not tell.

    The least of what the machine has and what control groups allow (version 1 and 2): those of
    this process and all above them, as each limits what is below.
    """
    bounds = [*_limits(root)]
    physical = physical_memory()
    if physical is not None:
        bounds.append(physical)
    return min(bounds, default=None)


def physical_memory() -> int | None:
    """Return bytes of memory of this machine, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _limits(root: Path) -> Iterator[int]:
    """Yield the memory limits of this process's control groups.

    A line of ``/proc/self/cgroup`` is ``number:controllers:/path``; version 2 names no controllers.
    A container may see the groups from its own on, under a path that it cannot: hence every folder
    between the path's and the root is asked, and those that are not there are passed over.
    """
    groups = root / "sys" / "fs" / "cgroup"
    try:
        lines = (root / "proc" / "self" / "cgroup").read_text().splitlines()
    except (OSError, ValueError):
        lines = ["0::/"]
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            top = groups
            name = "memory.max"
        elif "memory" in controllers.split(","):
            top = groups / "memory"
            name = "memory.limit_in_bytes"
        else:
            continue
        own = top / path.lstrip("/")
        for folder in [own, *own.parents][: len(own.parts) - len(top.parts) + 1]:
            limit = _number(folder / name)
            if limit is not None:
                yield limit


def _number(path: Path) -> int | None:
    """Return the limit in a file; None where there is none."""
    try:
        text = path.read_text().strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None  # "max": there is none


# Files as users name them: plain ones alone, and small ones read up to a bound.
#
# A pipe may never end, a device never does, and opening either can wait for ever; so what is no
# plain file is refused before it is opened. (A file can be put in a file's place in between.
# Whoever can do that is inside the boundary.)

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


_OPEN_SAFELY = sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
"""A pipe that is opened does not wait; and what Windows calls a binary file."""


def kind_of_file(path: Path) -> str | None:
    """Return what is there that is no plain file; None for a plain file."""
    mode = path.stat().st_mode
    return None if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "something else")


def check_plain(path: Path, subject: str, error: type[HedgerowError]) -> None:
    """Raise unless a plain file is there, or nothing at all."""
    try:
        kind = kind_of_file(path)
    except (OSError, ValueError):  # opening it says why
        return
    if kind is not None:
        raise error(f"{subject} is {kind}; name a file")


def check_suffix(
    path: Path, suffixes: Collection[str], subject: str, error: type[HedgerowError]
) -> None:
    """Raise unless the name of a file tells one of some formats."""
    if path.suffix.lower() not in suffixes:
        raise error(f"{subject} must end in {either([*suffixes])}, got {path.name!r}")


def check_free(
    path: Path, subject: str, error: type[HedgerowError], way_out: str = "name another file"
) -> None:
    """Raise unless a file can be made at a place where nothing is yet."""
    if os.path.lexists(path):
        raise error(f"{subject} exists already; {way_out}")
    if not path.absolute().parent.is_dir():
        raise error(f"{subject}: the directory does not exist; create it")


def read_small_file(path: Path, most: int, subject: str, error: type[HedgerowError]) -> bytes:
    """Return the content of a plain file of at most ``most`` bytes."""
    check_plain(path, subject, error)
    try:
        handle = os.open(path, os.O_RDONLY | _OPEN_SAFELY)
        with os.fdopen(handle, "rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or "it has no name that a file can have"
        raise error(f"cannot read {subject}: {reason}") from None
    if len(content) > most:
        raise error(f"{subject} is larger than {most >> 20} MB, which no such file is")
    return content


_ABSENT = re.compile(r"([\w.+-]+\.so[\w.]*): cannot open shared object file")
_PACKAGES = {"libodbc.so.2": "; in Debian the package unixodbc has it"}


def library(
    name: str, extra: str, subject: str = "this export", error: type[HedgerowError] = MachineError
) -> Any:
    """Return a module of an optional library.

    Args:
        name: of the module.
        extra: of Hedgerow's, which brings the library.
        subject: what needs it.
        error: the kind that is raised where it is not installed.

    Raises:
        HedgerowError: it is not installed; says which extra to install.
        MachineError: a library of the system that it needs is not here, or is damaged.
    """
    package = name.partition(".")[0]
    try:
        return import_module(name)
    except (ImportError, OSError) as failure:
        absent = _ABSENT.search(str(failure))
        missing = isinstance(failure, ImportError)
    if absent is not None:
        raise MachineError(
            f"{subject} needs the system's library {absent[1]}, which is not installed here"
            f"{_PACKAGES.get(absent[1], '')}"
        )
    if missing:
        raise error(
            f"{subject} needs {package}: install Hedgerow with its extra {extra!r}, which in its "
            f"checkout is pip install '.[{extra}]'"
        )
    raise MachineError(f"{subject} needs {package}, whose libraries cannot be loaded; reinstall it")
