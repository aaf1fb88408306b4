"""The staging folder: a release is built beside its place and appears there whole or not at all.

It lies inside the boundary: it holds the release key until the release is complete, and a seal: a
keyed digest of the plan, the estimator and the confidential table. A run that was killed leaves it
behind; a resumed run draws the same noise under the same key, and only if the seal fits: the same
noise on another table would tell the two apart, and a key that was damaged or already erased
would be no secret. One run at a time holds the folder's lock.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import IO

from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan.plan import Plan
from hedgerow.release.keys import (
    KEY_FILE,
    STATE_FILE,
    check_named,
    erase,
    fresh_key,
    has_begun,
    is_erased,
    release_id,
    resumed_key,
    sealed_facts,
    sync,
)
from hedgerow.release.manifest import check_outside
from hedgerow.tables.counts import Counts

LOCK_FILE = "lock"
LONGEST_NAME = 200
SECONDS_A_DAY = 86_400
COMPLETE = "complete"
CONTENT = "content"
JOBS = "jobs"


class Unfinished(Enum):
    """What to do about a release that an earlier run left unfinished.

    REFUSE says that it is there; RESUME finishes it under its own key, so no cell gets a second
    draw; DISCARD throws it away, noise and all, and begins anew: a charge to a ledger stays, and
    the new release is charged again. RESUME and DISCARD refuse where nothing is there.
    """

    REFUSE = "refuse"
    RESUME = "resume"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Staging:
    """A staging folder, its lock and the release key in it.

    Attributes:
        folder: the staging folder, readable by its owner alone.
        output: where the release will appear.
        key: of this release.
        release_id: its name in a ledger, the same when it is resumed.
        lock: an open file that holds the lock until the process ends or `publish` is through.
    """

    folder: Path
    output: Path
    key: ReleaseKey
    release_id: str
    lock: IO[bytes]

    @property
    def content(self) -> Path:
        """The folder that will become the release."""
        return self.folder / CONTENT

    @property
    def jobs(self) -> Path:
        """The folder of jobs that were finished under this key; see `hedgerow.release.kept`."""
        return self.folder / JOBS / self.release_id

    def publish(self) -> None:
        """Erase the key, then let the release appear in one rename."""
        without_times(self.content)
        _sync_all(self.content)
        (self.folder / COMPLETE).touch()
        sync(self.folder)
        _publish(self.folder, self.output)
        self.lock.close()

    def abandon(self) -> None:
        """Throw the folder away: no noise was drawn."""
        erase(self.folder / KEY_FILE)
        shutil.rmtree(self.folder)
        self.lock.close()

    def leave(self) -> None:
        """Let go of the folder, for a later run to resume or discard."""
        self.lock.close()


def without_times(folder: Path) -> None:
    """Give all files of a release the day as time of change: how long each took is confidential."""
    day = int(time.time()) // SECONDS_A_DAY * SECONDS_A_DAY
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (day, day))


def staging_folder(output: Path) -> Path:
    """Where the release of a directory is built."""
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
    if unfinished is Unfinished.RESUME and _is_left_over(folder, output):
        return
    check_outside(output, "[output] directory")
    if output.exists() or output.is_symlink():
        raise ReleaseError(
            f"[output] directory {str(output)!r} exists already; a release is never overwritten: "
            f"name another directory or move that one away"
        )
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise ReleaseError(f"{str(folder)!r} is in the way; move it")
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


def open_staging(
    output: Path, counts: Counts, plan: Plan, estimator: str, unfinished: Unfinished
) -> Staging | None:
    """A staging folder with an empty `Staging.content`, under a fresh or the resumed key.

    Returns:
        None where resuming found a complete release, which now is published.

    Raises:
        ReleaseError: the place is taken, another run is at work in it, or what it holds is of
            another table, plan or estimator.
        MachineError: the disk is full or not writable.
    """
    check_output(output, unfinished)
    folder = staging_folder(output)
    named = {"plan": plan.hash, "estimator": estimator, "Hedgerow version": version("hedgerow")}
    with machine_errors(f"cannot write to {str(folder)!r}"):
        if unfinished is Unfinished.DISCARD and folder.exists():
            _discard(folder)
        resumed = unfinished is Unfinished.RESUME
        if not resumed:
            _make(folder)
        with ExitStack() as on_failure:
            lock = on_failure.enter_context(_locked(folder))
            if resumed and _is_left_over(folder, output):
                shutil.rmtree(folder)
                return None
            begun = resumed and has_begun(folder)
            if begun:
                check_named(folder, named)
            elif resumed:
                _clear(folder)
            sealed = sealed_facts(counts, named)
            if begun and (folder / COMPLETE).exists() and (folder / CONTENT).is_dir():
                if not is_erased(folder / KEY_FILE):
                    resumed_key(folder, sealed)
                _publish(folder, output)
                return None
            key = resumed_key(folder, sealed) if begun else fresh_key(folder, named, sealed)
            shutil.rmtree(folder / CONTENT, ignore_errors=True)
            (folder / CONTENT).mkdir()
            (folder / JOBS / release_id(key)).mkdir(parents=True, exist_ok=True)
            on_failure.pop_all()
    return Staging(folder, output, ReleaseKey(key), release_id(key), lock)


def _make(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        raise ReleaseError(f"another run has just begun in {str(folder)!r}") from None


def _is_left_over(folder: Path, output: Path) -> bool:
    """Whether the release has appeared, and its run was killed before it had tidied up."""
    gone = not (folder / KEY_FILE).exists() and not (folder / CONTENT).exists()
    return folder.is_dir() and output.is_dir() and gone


def _clear(folder: Path) -> None:
    """Throw away what lies in a folder where no noise was drawn, or where all was discarded."""
    erase(folder / KEY_FILE)
    for name in (CONTENT, JOBS):
        if (folder / name).exists():  # what stays behind would be used under another key
            shutil.rmtree(folder / name)


def _locked(folder: Path) -> IO[bytes]:
    """The folder's lock, held while the file is open.

    Raises:
        ReleaseError: another run holds it.
    """
    lock = (folder / LOCK_FILE).open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Between opening and locking, another run may have removed or replaced the folder.
        held = os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK_FILE).stat())
    except (BlockingIOError, FileNotFoundError):
        held = False
    if not held:
        lock.close()
        raise ReleaseError(f"another run is at work in {str(folder)!r}; let it finish")
    return lock


def _discard(folder: Path) -> None:
    """Throw a staging folder away: first what makes its key usable, then the key, then all."""
    with _locked(folder):
        (folder / STATE_FILE).unlink(missing_ok=True)
        erase(folder / KEY_FILE)
        shutil.rmtree(folder)


def _publish(folder: Path, output: Path) -> None:
    erase(folder / KEY_FILE)
    (folder / CONTENT).rename(output)
    sync(output.parent)
    shutil.rmtree(folder)


@contextmanager
def whole_or_not(output: Path) -> Iterator[Path]:
    """A folder to fill that then appears as ``output``, or not at all; for what is public already.

    Raises:
        ReleaseError: the output exists.
        MachineError: the disk is full or not writable.
    """
    check_output(output)
    folder = staging_folder(output)
    with machine_errors(f"cannot write to {str(folder)!r}"):
        _make(folder)
        try:
            (folder / CONTENT).mkdir()
            yield folder / CONTENT
            without_times(folder / CONTENT)
            _sync_all(folder / CONTENT)
            (folder / CONTENT).rename(output)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        sync(path)
    sync(folder)
