"""The output directory: refused where it cannot be, and there whole or not at all."""

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path

from filelock import lock_descriptor

from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.release.directory.keys import (
    KEY_FILE,
    STATE_FILE,
    UNFINISHED_STATE,
    erase,
    sync,
)
from hedgerow.release.directory.manifest import check_outside

LONGEST_NAME = 200
SECONDS_A_DAY = 86_400
CONTENT = "content"
COMPLETE = "complete"
JOBS = "jobs"
LOCK_FILE = "lock"
OURS = {CONTENT, COMPLETE, JOBS, LOCK_FILE, KEY_FILE, STATE_FILE, UNFINISHED_STATE}
"""All names in a staging folder."""
_OPEN_LOCK = (
    os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
)  # the last two are unknown to Windows


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
        ReleaseError: the output exists, lies within a release, or has an unfinished release that
            nobody spoke of; or it has none to resume or discard.
        MachineError: it cannot be looked at.
    """
    unusable = output.name in {"", ".."} or "\0" in str(output)
    if unusable or len(os.fsencode(output.name)) > LONGEST_NAME:
        raise ReleaseError(f"[output] directory {str(output)[:300]!r} cannot be made")
    with machine_errors(f"cannot look at [output] directory {str(output)!r}"):
        _check_place(output, unfinished)


def _check_place(output: Path, unfinished: Unfinished) -> None:
    """Refuse a place whose name could be one."""
    above = next(folder for folder in output.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ReleaseError(f"[output] directory {str(output)!r} lies below a file")
    folder = staging_folder(output)
    if os.path.lexists(folder) and not _is_ours(folder):
        raise ReleaseError(f"{str(folder)!r} is in the way; move it")
    if unfinished is Unfinished.RESUME and is_left_over(folder, output):
        return
    check_outside(output, "[output] directory")
    if output.exists() or output.is_symlink():
        raise ReleaseError(
            f"[output] directory {str(output)!r} exists already; a release is never overwritten: "
            f"name another directory or move that one away"
        )
    begun = is_unfinished(folder)
    if begun and unfinished is Unfinished.REFUSE:
        raise ReleaseError(
            f"an unfinished release lies in {str(folder)!r}; finish it with --resume (same noise, "
            f"nothing charged again), or throw it away and begin anew with --discard (a charge "
            f"to a ledger stays, and the new run is charged again)"
        )
    if not begun and unfinished is not Unfinished.REFUSE:
        raise ReleaseError(
            f"there is nothing to {unfinished.value}: no unfinished release lies in "
            f"{str(folder)!r}; a run without --{unfinished.value} makes a new one"
        )


def is_unfinished(folder: Path) -> bool:
    """Return whether a release was begun in a staging folder and has not appeared.

    The seal of its key appears in one rename and goes before all else; a complete release leaves
    its folder in one rename.
    """
    has_left = (folder / COMPLETE).exists() and not (folder / CONTENT).exists()
    return (folder / STATE_FILE).exists() and not has_left


def is_left_over(folder: Path, output: Path) -> bool:
    """Return whether the release has appeared, and its run was killed before it had tidied up."""
    return folder.is_dir() and output.is_dir() and not is_unfinished(folder)


def _is_ours(folder: Path) -> bool:
    """Return whether a place holds a staging folder, or an empty one, and nothing of others.

    All of it may be deleted: no link leads away from here, and no name is there but ours.
    """
    if folder.is_symlink() or not folder.is_dir():
        return False
    try:
        names = {path.name for path in folder.iterdir()}
    except FileNotFoundError:  # another run has just removed it
        return True
    return not names or LOCK_FILE in names <= OURS


@contextmanager
def held_folder(output: Path, unfinished: Unfinished = Unfinished.REFUSE) -> Iterator[Path]:
    """Hold the staging folder of an output, which its owner alone may read, to its end.

    What an earlier run left there without a release that could be finished is thrown away.

    Yields:
        The folder: of the unfinished release if that is to be resumed, or of a release that has
        appeared and is left over; else empty.

    Raises:
        ReleaseError: as of `check_output`, or another run is at work.
        MachineError: the disk is full or not writable.
    """
    check_output(output, unfinished)
    folder = staging_folder(output)
    resumed = unfinished is Unfinished.RESUME
    with ExitStack() as held:
        with machine_errors(f"cannot write to {str(folder)!r}"):
            if not resumed:
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=0o700, exist_ok=True)
            held.enter_context(_locked(folder))
            try:  # again, as another run may have come and gone since
                check_output(output, unfinished)
            except ReleaseError:
                if _is_ours(folder) and not is_unfinished(folder):
                    remove(folder)
                raise
            if not resumed:
                folder.chmod(0o700)
                _empty(folder)
                sync(folder.parent)
        yield folder


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the operating system lets go of however a process ends.

    The file is opened here, as filelock would make a missing folder, and would make do with a
    marker file where the file system has no locks.

    Raises:
        ReleaseError: another run holds it.
        OSError: its file system has no locks.
    """
    path = folder / LOCK_FILE
    with ExitStack() as opened:
        try:
            handle = os.open(path, _OPEN_LOCK, 0o600)
            lock = opened.enter_context(os.fdopen(handle, "r+b", buffering=0))
            # Between opening and locking, another run may have removed or replaced the folder.
            held = lock_descriptor(lock.fileno(), blocking=False) and os.path.samestat(
                os.fstat(lock.fileno()), path.stat()
            )
        except FileNotFoundError:
            held = False
        if not held:
            raise ReleaseError(f"another run is at work in {str(folder)!r}; let it finish")
        yield


def _empty(folder: Path) -> None:
    """Throw away all of ours but the lock: first what makes the key usable, then the key.

    What stayed behind would be used under another key.
    """
    (folder / STATE_FILE).unlink(missing_ok=True)
    erase(folder / KEY_FILE)
    for name in (CONTENT, JOBS):
        if (folder / name).exists():
            shutil.rmtree(folder / name)
    for name in (COMPLETE, UNFINISHED_STATE):
        (folder / name).unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Remove a staging folder whose lock is held; the lock goes last."""
    _empty(folder)
    (folder / LOCK_FILE).unlink(missing_ok=True)
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.ENOENT}:  # another run has come, or gone
            raise


@contextmanager
def whole_or_not(output: Path) -> Iterator[Path]:
    """Open a folder that appears as ``output`` when it is filled, or not at all; for public data.

    Raises:
        ReleaseError: the output exists, or is left unfinished, or another run is at work.
        MachineError: the disk is full or not writable.
    """
    with (
        machine_errors(f"cannot write to {str(staging_folder(output))!r}"),
        held_folder(output) as folder,
    ):
        try:
            (folder / CONTENT).mkdir()
            yield folder / CONTENT
            without_times(folder / CONTENT)
            sync_all(folder / CONTENT)
            (folder / CONTENT).rename(output)
        finally:
            remove(folder)


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
