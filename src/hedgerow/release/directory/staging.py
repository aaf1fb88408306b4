"""The staging folder: a release is built beside its place and appears there whole or not at all.

It lies inside the boundary: it holds the release key until the release is complete, and a seal: a
keyed digest of the plan, the estimator, the ledger and the confidential table. A run that was
killed leaves it behind; a resumed run draws the same noise under the same key, and only if the seal
fits: the same noise on another table would tell the two apart, and a key that was damaged or
already erased would be no secret. What was begun may have been charged, so nothing but `Unfinished`
DISCARD throws it away. One run at a time holds the folder's lock.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from hedgerow.declared import frozen
from hedgerow.errors import BudgetError, HedgerowError, ReleaseError, machine_errors
from hedgerow.noise.bits import KEY_BYTES, ReleaseKey
from hedgerow.plan.plan import Plan
from hedgerow.privacy.ledger.records import SMALLER
from hedgerow.release.directory.check import check_unchanged
from hedgerow.release.directory.keys import (
    ANEW,
    KEY_FILE,
    UNCHARGED,
    Charging,
    begun_release,
    check_named,
    erase,
    fresh_key,
    release_id,
    resumed_key,
    sealed_facts,
    sync,
)
from hedgerow.release.directory.manifest import read_manifest
from hedgerow.release.directory.output import (
    COMPLETE,
    CONTENT,
    JOBS,
    Unfinished,
    check_output,
    held_folder,
    is_left_over,
    remove,
    sync_all,
    without_times,
)
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.passes import ESTIMATION
from hedgerow.tables.counts import Counts
from hedgerow.text import TextByName


@frozen
class Staging:
    """A staging folder, its lock and the release key in it.

    Attributes:
        folder: the staging folder, readable by its owner alone.
        output: where the release will appear.
        key: of this release.
        release_id: its name in a ledger, the same when it is resumed.
        is_resumed: whether an earlier run began it, which may have charged it and drawn its noise.
    """

    folder: Path
    output: Path
    key: ReleaseKey
    release_id: str
    is_resumed: bool

    @property
    def content(self) -> Path:
        """The folder that will become the release."""
        return self.folder / CONTENT

    @property
    def jobs(self) -> Path:
        """The folder of jobs that were finished under this key."""
        return self.folder / JOBS / self.release_id

    def charge(self, charging: Charging, plan: Plan) -> None:
        """Charge the release, which costs nothing where that was done before.

        Where a release is refused that has only now begun, nothing was charged or drawn and
        nothing stays behind; what an earlier run began stays.

        Raises:
            BudgetError: it is refused.
            MachineError: the ledger cannot be written; the charge may be in or not.
        """
        if self.is_resumed:
            _charge_again(charging, plan, self.release_id)
            return
        try:
            charging.charge(plan, self.release_id)
        except BudgetError:
            _tidy(self.folder)
            raise

    def publish(self) -> None:
        """Let the release appear in one rename, once all of it has reached the disk."""
        without_times(self.content)
        sync_all(self.content)
        (self.folder / COMPLETE).touch()
        sync(self.folder)
        _publish(self.folder, self.output)


@frozen
class Bound:
    """What a staging folder is bound to: its key is never used for anything else.

    Attributes:
        counts: the confidential table.
        plan: of the release.
        estimator: in words.
        charging: the ledger and dataset, if any.
    """

    counts: Counts
    plan: Plan
    estimator: str
    charging: Charging | None

    @property
    def named(self) -> TextByName:
        """All of it that may be told, by name."""
        charged = UNCHARGED if self.charging is None else self.charging.bound
        return {
            "plan": self.plan.hash,
            "estimator": self.estimator,
            "Hedgerow version": version("hedgerow"),
            "version of the estimation": str(ESTIMATION),
            **charged,
        }


@contextmanager
def open_staging(output: Path, bound: Bound, unfinished: Unfinished) -> Iterator[Staging | None]:
    """Open a staging folder with an empty `Staging.content`, under a fresh or the resumed key.

    Its lock is let go of at the end of the block, and the folder stays for a later run to resume or
    discard unless the release has appeared.

    Yields:
        None where resuming found a complete release, which now is published.

    Raises:
        ReleaseError: the place is taken, another run is at work in it, or what it holds is of
            another table, plan or estimator, or is charged elsewhere.
        BudgetError: a release that does not fit into the ledger.
        MachineError: the disk is full or not writable.
    """
    resumed = unfinished is Unfinished.RESUME
    check_output(output, unfinished)
    if bound.charging is not None and not resumed:
        bound.charging.check(bound.plan)  # before anything is discarded
    with held_folder(output, unfinished) as folder:
        if is_left_over(folder, output):
            if read_manifest(output)["plan_sha256"] != bound.plan.hash:
                raise ReleaseError(
                    f"the release in {str(output)!r} is complete and of another plan; there is "
                    f"nothing to resume"
                )
            with _kept(folder, output):
                _tidy(folder)
            yield None
            return
        with machine_errors(f"cannot write to {str(folder)!r}"):
            key = _usable_key(folder, bound) if resumed else _new_key(folder, bound)
        with _kept(folder, output):
            if key is None:  # an earlier run's; a ledger that does not hold it is charged
                if bound.charging is not None:
                    _charge_again(bound.charging, bound.plan, begun_release(folder))
                with machine_errors(f"cannot write to {str(folder)!r}"):
                    _publish(folder, output)
                yield None
            else:
                yield Staging(folder, output, ReleaseKey(key), release_id(key), resumed)


def _new_key(folder: Path, bound: Bound) -> bytes:
    """Return a fresh key, in a folder where nothing was begun."""
    named = bound.named
    key = fresh_key(folder, named, sealed_facts(bound.counts, named))
    _make_room(folder, key)
    return key


def _usable_key(folder: Path, bound: Bound) -> bytes | None:
    """Return the key of the release that was begun here; None where the release is complete.

    A complete release whose files are not those of its manifest (a disk that failed) is made again,
    unless its key is gone.

    Raises:
        ReleaseError: the folder is of another plan, estimator, ledger or table, or its key is gone.
    """
    named = bound.named
    check_named(folder, named)
    is_complete = (folder / COMPLETE).exists()
    path = folder / KEY_FILE
    is_gone = not path.exists() or path.read_bytes() == bytes(KEY_BYTES)  # or overwritten
    is_whole = is_complete and _is_whole(folder / CONTENT)
    if is_whole and is_gone:
        return None
    if is_complete and is_gone:
        raise ReleaseError(f"the complete release in {str(folder)!r} has been damaged; {ANEW}")
    key = resumed_key(folder, sealed_facts(bound.counts, named))
    if is_whole:
        return None
    (folder / COMPLETE).unlink(missing_ok=True)
    _make_room(folder, key)
    return key


def _is_whole(content: Path) -> bool:
    """Return whether the files of a release are those that its manifest lists."""
    try:
        with undamaged(content):
            check_unchanged(content, read_manifest(content))
    except ReleaseError:
        return False
    return True


def _make_room(folder: Path, key: bytes) -> None:
    shutil.rmtree(folder / CONTENT, ignore_errors=True)
    (folder / CONTENT).mkdir()
    (folder / JOBS / release_id(key)).mkdir(parents=True, exist_ok=True)


def _charge_again(charging: Charging, plan: Plan, release_id: str) -> None:
    """Charge what an earlier run began: free where the ledger holds it, and due where it does not.

    The ledger may be a copy from before the charge. It is the same noise, so the same charge.
    """
    try:
        charging.charge(plan, release_id)
    except BudgetError as error:
        why = str(error).removesuffix(SMALLER)  # which would be another plan
        raise BudgetError(
            f"the ledger does not hold the charge of the unfinished release {release_id[:12]} (an "
            f"older copy? restore the newest), and refuses it: {why}"
        ) from error


@contextmanager
def _kept(folder: Path, output: Path) -> Iterator[None]:
    """Add to what fails once a release has begun that it is still there, and what to do with it."""
    try:
        yield
    except HedgerowError as error:
        if not folder.exists():
            raise
        if is_left_over(folder, output):
            advice = f"; the release in {str(output)!r} is complete, and --resume tidies up"
        else:
            taken = f"move {str(output)!r} away, then " if os.path.lexists(output) else ""
            advice = (
                f"; what was begun is kept in {str(folder)!r}: {taken}finish it with --resume "
                f"(same noise, nothing charged again), or throw it away with --discard (a charge "
                f"stays)"
            )
        raise error.within("", advice) from error


def _publish(folder: Path, output: Path) -> None:
    erase(folder / KEY_FILE)
    (folder / CONTENT).rename(output)
    sync(output.parent)
    _tidy(folder)


def _tidy(folder: Path) -> None:
    with machine_errors(f"cannot remove {str(folder)!r}"):
        remove(folder)
