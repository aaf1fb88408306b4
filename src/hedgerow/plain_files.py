"""Files as users name them: plain ones alone, and small ones read up to a bound.

A pipe may never end, a device never does, and opening either can wait for ever; so what is no plain
file is refused before it is opened. (A file can be put in a file's place in between. Whoever can do
that is inside the boundary.)
"""

import os
import stat
from pathlib import Path

from hedgerow.errors import HedgerowError

KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def kind_of_file(path: Path) -> str | None:
    """What is there that is no plain file; None for a plain file.

    Raises:
        OSError, ValueError: nothing is there, or it may not be looked at.
    """
    mode = path.stat().st_mode
    return None if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "something else")


def check_plain(path: Path, what: str, error: type[HedgerowError]) -> None:
    """Nothing, if a plain file is there, or nothing at all.

    Args:
        path: of the file.
        what: how messages name it.
        error: the kind of error to raise.

    Raises:
        HedgerowError: of the given kind: it is a folder, a pipe or a device.
    """
    try:
        kind = kind_of_file(path)
    except (OSError, ValueError):  # opening it says why
        return
    if kind is not None:
        raise error(f"{what} is {kind}; name a file")


def small_file(path: Path, most: int, what: str, error: type[HedgerowError]) -> bytes:
    """All of a plain file.

    Args:
        path: of the file.
        most: bytes.
        what: how messages name it.
        error: the kind of error to raise.

    Raises:
        HedgerowError: of the given kind: it is none, is larger, or cannot be read.
    """
    check_plain(path, what, error)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            found = file.read(most + 1)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or "it has no name that a file can have"
        raise error(f"cannot read {what}: {reason}") from None
    if len(found) > most:
        raise error(f"{what} is larger than {most >> 20} MB, which no such file is")
    return found
