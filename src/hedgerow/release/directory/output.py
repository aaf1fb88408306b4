"""The output directory: refused where it cannot be, and there whole or not at all."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.release.directory.keys import KEY_FILE, STATE_FILE, sync
from hedgerow.release.directory.manifest import check_outside

LONGEST_NAME = 200
SECONDS_A_DAY = 86_400
CONTENT = "content"


class Unfinished(Enum):
    """What to do about a release that an earlier run left unfinished.

    REFUSE says that it is there; RESUME finishes it under its own key, so no cell gets a second
    draw; DISCARD throws it away, noise and all, and begins anew: a charge to a ledger stays, and
    the new release is charged again. RESUME and DISCARD refuse where nothing is there.

    Example:
        >>> [choice.name for choice in hr.Unfinished]
        ['REFUSE', 'RESUME', 'DISCARD']
    """

    REFUSE = "refuse"
    RESUME = "resume"
    DISCARD = "discard"


def staging_folder(output: Path) -> Path:
    """Return where the release of a directory is built."""
    return output.with_name(output.name + ".staging")


def check_output(output: Path, unfinished: Unfinished = Unfinished.REFUSE) -> None:
    """Refuse a place that is taken, before anything is read.

    Raises:
        ReleaseError: the output exists, lies within a release, or has a staging folder that nobody
            spoke of; or it has none to resume or discard.
    """
    unusable = output.name in {"", ".."} or "\0" in str(output)
    if unusable or len(os.fsencode(output.name)) > LONGEST_NAME:
        raise ReleaseError(f"[output] directory {str(output)[:300]!r} cannot be made")
    above = next(folder for folder in output.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ReleaseError(f"[output] directory {str(output)!r} lies below a file")
    folder = staging_folder(output)
    if unfinished is Unfinished.RESUME and is_left_over(folder, output):
        return
    check_outside(output, "[output] directory")
    if output.exists() or output.is_symlink():
        raise ReleaseError(
            f"[output] directory {str(output)!r} exists already; a release is never overwritten: "
            f"name another directory or move that one away"
        )
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ReleaseError(f"{str(folder)!r} is in the way; move it")
    if unfinished is not Unfinished.DISCARD and has_appeared(folder):
        raise ReleaseError(
            f"{str(folder)!r} is left of a release that was complete, and is in {str(output)!r} no "
            f"more; there is nothing to resume: begin another with --discard (which a ledger is "
            f"charged for again)"
        )
    if folder.exists() and unfinished is Unfinished.REFUSE:
        raise ReleaseError(
            f"an unfinished release lies in {str(folder)!r}; finish it with --resume (same noise, "
            f"nothing charged again), or throw it away and begin anew with --discard (a charge "
            f"to a ledger stays, and the new run is charged again)"
        )
    if unfinished is not Unfinished.REFUSE and not folder.exists():
        raise ReleaseError(
            f"there is nothing to {unfinished.value}: {str(folder)!r} does not exist"
        )


def is_left_over(folder: Path, output: Path) -> bool:
    """Return whether the release has appeared, and its run was killed before it had tidied up."""
    gone = not (folder / KEY_FILE).exists() and not (folder / CONTENT).exists()
    return folder.is_dir() and output.is_dir() and gone


def has_appeared(folder: Path) -> bool:
    """Return whether a release has left its staging folder, wherever it is now."""
    left = (folder / name for name in (KEY_FILE, CONTENT))
    return (folder / STATE_FILE).exists() and not any(path.exists() for path in left)


def make_folder(folder: Path) -> None:
    """Make a staging folder, which its owner alone may read.

    Raises:
        ReleaseError: another run has made it since it was looked for.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise ReleaseError(f"another run has just begun in {str(folder)!r}") from None


@contextmanager
def whole_or_not(output: Path) -> Iterator[Path]:
    """Open a folder that appears as ``output`` when it is filled, or not at all; for public data.

    Raises:
        ReleaseError: the output exists, or is left unfinished.
        MachineError: the disk is full or not writable.
    """
    folder = staging_folder(output)
    if folder.is_dir() and (folder / CONTENT).is_dir() and not (folder / KEY_FILE).exists():
        raise ReleaseError(
            f"{str(folder)!r} is of a run that is under way or was killed; remove it if none is "
            f"under way, or name another place"
        )
    check_output(output)
    with machine_errors(f"cannot write to {str(folder)!r}"):
        make_folder(folder)
        try:
            (folder / CONTENT).mkdir()
            yield folder / CONTENT
            without_times(folder / CONTENT)
            sync_all(folder / CONTENT)
            (folder / CONTENT).rename(output)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def without_times(folder: Path) -> None:
    """Give all files of a release the day as time of change: how long each took is confidential."""
    day = int(time.time()) // SECONDS_A_DAY * SECONDS_A_DAY
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (day, day))


def sync_all(folder: Path) -> None:
    """Make sure that a folder has reached the disk with all that is in it."""
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)
