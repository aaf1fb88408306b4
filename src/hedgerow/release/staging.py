"""The staging folder: a release is built beside its place and appears there whole or not at all.

It lies inside the boundary: it holds the release key and a digest of the confidential table, both
gone before the folder becomes the release. A run that was killed leaves it behind; a resumed run
draws the same noise under the same key, and only for the very same table, plan and estimator:
the same noise on another table would tell the two apart.
"""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from hedgerow.errors import MachineError, ReleaseError
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan.plan import Plan
from hedgerow.tables.counts import Counts

KEY_FILE = "release.key"
STATE_FILE = "staging.json"
COMPLETE = "complete"
CONTENT = "content"


class Unfinished(Enum):
    """What to do about a release that an earlier run left unfinished.

    REFUSE says that it is there; RESUME finishes it under its own key, so no cell gets a second
    draw; DISCARD throws it away, noise and all.
    """

    REFUSE = "refuse"
    RESUME = "resume"
    DISCARD = "discard"


@dataclass(frozen=True, slots=True)
class Staging:
    """A staging folder and the release key in it.

    Attributes:
        folder: the staging folder, readable by its owner alone.
        output: where the release will appear.
        key: of this release.
    """

    folder: Path
    output: Path
    key: ReleaseKey

    @property
    def content(self) -> Path:
        """The folder that will become the release."""
        return self.folder / CONTENT

    def publish(self) -> None:
        """Erase the key, then let the release appear in one rename."""
        _sync_all(self.content)
        (self.folder / COMPLETE).touch()
        _sync(self.folder)
        _publish(self.folder, self.output)


def staging_folder(output: Path) -> Path:
    """Where the release of a directory is built."""
    return output.with_name(output.name + ".staging")


def check_output(output: Path, unfinished: Unfinished = Unfinished.REFUSE) -> None:
    """Refuse a place that is taken, before anything is read.

    Raises:
        ReleaseError: the output exists, or a staging folder is there that nobody spoke of.
    """
    folder = staging_folder(output)
    if output.exists() or output.is_symlink():
        raise ReleaseError(
            f"[output] directory {str(output)!r} exists already; a release is never overwritten: "
            f"name another directory or move that one away"
        )
    if folder.exists() and unfinished is Unfinished.REFUSE:
        raise ReleaseError(
            f"an unfinished release lies in {str(folder)!r}; finish it with --resume (same noise, "
            f"nothing charged again) or throw it away with --discard"
        )
    if unfinished is Unfinished.RESUME and not folder.exists():
        raise ReleaseError(f"there is nothing to resume: {str(folder)!r} does not exist")


def publish_complete(output: Path) -> bool:
    """Publish what a run that was killed while publishing has left complete; False if none has."""
    folder = staging_folder(output)
    if not (folder / COMPLETE).exists() or not (folder / CONTENT).is_dir():
        return False
    with machine_errors(f"cannot write to {str(output)!r}"):
        _publish(folder, output)
    return True


def _publish(folder: Path, output: Path) -> None:
    _erase(folder / KEY_FILE)
    (folder / CONTENT).rename(output)
    _sync(output.parent)
    shutil.rmtree(folder)


def open_staging(
    output: Path, counts: Counts, plan: Plan, estimator: str, unfinished: Unfinished
) -> Staging:
    """A staging folder with an empty `Staging.content`, under a fresh or the resumed key."""
    check_output(output, unfinished)
    folder = staging_folder(output)
    state = {"plan": plan.hash, "estimator": estimator, "table": table_digest(counts)}
    with machine_errors(f"cannot write to {str(folder)!r}"):
        if unfinished is Unfinished.DISCARD and folder.exists():
            _erase(folder / KEY_FILE)
            shutil.rmtree(folder)
        resumed = unfinished is Unfinished.RESUME
        key = _resumed_key(folder, state) if resumed else _fresh_key(folder, state)
        shutil.rmtree(folder / CONTENT, ignore_errors=True)
        (folder / CONTENT).mkdir()
    return Staging(folder, output, key)


def table_digest(counts: Counts) -> str:
    """SHA-256 of the confidential leaves; never leaves the staging folder."""
    whole = hashlib.sha256(counts.tree.digest.encode())
    for code in counts.codes:
        whole.update(code.tobytes())
    whole.update(counts.values.tobytes())
    return whole.hexdigest()


def _fresh_key(folder: Path, state: dict[str, str]) -> ReleaseKey:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)
    key = os.urandom(32)
    for name, content in ((STATE_FILE, json.dumps(state).encode()), (KEY_FILE, key)):
        handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    _sync(folder)
    return ReleaseKey(key)


def _resumed_key(folder: Path, state: dict[str, str]) -> ReleaseKey:
    try:
        before = json.loads((folder / STATE_FILE).read_bytes())
        key = (folder / KEY_FILE).read_bytes()
    except (FileNotFoundError, ValueError):
        before, key = {}, b""
    if len(key) != 32:
        raise ReleaseError(
            f"{str(folder)!r} holds no usable release key, so nothing was drawn that could be "
            f"continued; start again with --discard"
        )
    for name, now in state.items():
        if before.get(name) != now:
            raise ReleaseError(
                f"the {name} differs from that of the unfinished release in {str(folder)!r}; the "
                f"same noise on anything else would give it away: restore the {name}, or start "
                f"again with --discard"
            )
    return ReleaseKey(key)


def _erase(path: Path) -> None:
    """Overwrite, then unlink: what a file system allows (a copy-on-write one keeps old blocks)."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        file.write(bytes(path.stat().st_size))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_all(folder: Path) -> None:
    for path in folder.rglob("*"):
        _sync(path)
    _sync(folder)


@contextmanager
def machine_errors(what: str) -> Iterator[None]:
    """Turn failures of disk and memory into one sentence.

    Raises:
        MachineError: instead of `OSError` or `MemoryError`.
    """
    try:
        yield
    except MachineError:
        raise
    except OSError as error:
        raise MachineError(f"{what}: {error.strerror or error}") from error
    except MemoryError as error:
        raise MachineError(f"{what}: out of memory") from error
