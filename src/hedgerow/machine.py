"""What this machine allows: memory, also where a container or a service has less than all of it."""

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def usable_memory(root: Path = ROOT) -> int | None:
    """Bytes of memory that this process may use, or None where the system does not tell.

    The least of what the machine has and what control groups allow (version 1 and 2): those of
    this process and all above them, as each limits what is below.

    Args:
        root: below which the system's own files lie.
    """
    known = [*_limits(root)]
    physical = physical_memory()
    if physical is not None:
        known.append(physical)
    return min(known, default=None)


def physical_memory() -> int | None:
    """Bytes of memory of this machine, or None where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _limits(root: Path) -> Iterator[int]:
    """The limits of this process's control groups.

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
            top, name = groups, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = groups / "memory", "memory.limit_in_bytes"
        else:
            continue
        own = top / path.lstrip("/")
        for folder in [own, *own.parents][: len(own.parts) - len(top.parts) + 1]:
            limit = _number(folder / name)
            if limit is not None:
                yield limit


def _number(path: Path) -> int | None:
    """The limit in a file; None where there is none."""
    try:
        text = path.read_text().strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None  # "max": there is none
