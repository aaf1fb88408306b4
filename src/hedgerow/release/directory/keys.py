"""The release key on disk, and the seal that ties it to what it was drawn for.

That is one plan, one estimator, one table, and the ledger and dataset that it is charged to. The
same noise on another table would tell the two apart, so a key is used again only if its seal fits:
a keyed digest (HMAC-SHA256) of all of them. A key that was damaged or already overwritten does not
fit its seal and is never used. Under another ledger, or none, the release would appear as if its
charge had never been.
"""

import hashlib
import hmac
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError, outside_limits
from hedgerow.noise.bits import KEY_BYTES
from hedgerow.plan.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.records import Charge, Standing
from hedgerow.release.directory.manifest import NO_LEDGER
from hedgerow.tables.counts import Counts
from hedgerow.text import TextByName

# Charging a release to a ledger, before its noise is drawn.

LEDGER, DATASET = "ledger", "dataset"
UNCHARGED = {LEDGER: NO_LEDGER, DATASET: ""}
"""What an unfinished release keeps where no ledger is."""


@frozen
class Charging:
    """The ledger that a release is charged to, and the name of its dataset there.

    Attributes:
        ledger: with an account of the dataset under the plan's neighbours and restrictions.
        dataset: the user's name for it.
    """

    ledger: Ledger
    dataset: str

    def standing(self, plan: Plan) -> Standing:
        """Return where the account that the plan is charged to stands.

        Raises:
            BudgetError: there is no such account.
        """
        return self.ledger.standing(self.ledger.account(self.dataset, plan.protection))

    def check(self, plan: Plan) -> None:
        """Refuse a plan that would exceed the cap, before anything is read.

        Raises:
            BudgetError: it would, or there is no account.
        """
        self.standing(plan).check(plan.guarantee)

    def charge(self, plan: Plan, release_id: str) -> None:
        """Charge the plan's whole cost, on disk for certain; the same release again is free.

        Raises:
            BudgetError: it would exceed the cap; nothing is charged.
            MachineError: the ledger cannot be written; no noise may be drawn.
        """
        account = self.ledger.account(self.dataset, plan.protection)
        now = datetime.now(UTC)
        self.ledger.charge(account, Charge(release_id, plan.guarantee, plan.hash, now))

    @property
    def bound(self) -> TextByName:
        """What an unfinished release keeps of it: the ledger by its own name, and the dataset."""
        return {LEDGER: self.ledger.id, DATASET: self.dataset}

    def to_dict(self, release_id: str) -> TextByName:
        """Return what a manifest says of it."""
        return {"dataset": self.dataset, "release_id": release_id}


KEY_FILE = "release.key"
STATE_FILE = "staging.json"
UNFINISHED_STATE = f"{STATE_FILE}.unfinished"
RELEASE = "release"
ANEW = "begin anew with --discard (which a ledger is charged for again)"


def sealed_facts(counts: Counts, named: TextByName) -> bytes:
    """Return what a seal is made of: plan, estimator, ledger and the confidential leaves."""
    whole = hashlib.sha256(json.dumps([named, counts.tree.digest]).encode())
    for column in (*counts.codes, counts.values):
        whole.update(np.ascontiguousarray(column).data)
    return whole.digest()


def fresh_key(folder: Path, named: TextByName, sealed: bytes) -> bytes:
    """Draw a key from the operating system; write it and its seal, and wait for the disk."""
    key = os.urandom(KEY_BYTES)
    facts = {**named, RELEASE: release_id(key), "seal": _seal(key, sealed)}
    state = json.dumps(facts).encode()
    written = folder / UNFINISHED_STATE
    written.unlink(missing_ok=True)
    for path, content in ((folder / KEY_FILE, key), (written, state)):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    written.rename(folder / STATE_FILE)
    sync(folder)
    return key


def check_named(folder: Path, named: TextByName) -> None:
    """Refuse to go on with another plan, estimator, ledger or dataset than the folder's.

    Raises:
        ReleaseError: they differ, or nothing was begun.
    """
    state = _state(folder)
    if not state:
        raise ReleaseError(f"{str(folder)!r} holds nothing that could be continued; {ANEW}")
    for name, now in named.items():
        if state.get(name) == now:
            continue
        if name in UNCHARGED:
            raise ReleaseError(_charged_elsewhere(folder, state, named))
        raise ReleaseError(_differs(name, folder))


def begun_release(folder: Path) -> str:
    """Return the name in a ledger of the folder's release, also when its key is gone."""
    return str(_state(folder).get(RELEASE))


def resumed_key(folder: Path, sealed: bytes) -> bytes:
    """Return the folder's key, if its seal fits these facts.

    Raises:
        ReleaseError: the key is gone or damaged.
        TableError: it was drawn for another table, which its sentence does not tell.
    """
    try:
        key = (folder / KEY_FILE).read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) != KEY_BYTES or not any(key):
        raise ReleaseError(f"{str(folder)!r} holds no usable release key; {ANEW}")
    if not hmac.compare_digest(_seal(key, sealed), str(_state(folder).get("seal"))):
        raise outside_limits("the table", _differs("table", folder).removeprefix("the table "))
    return key


def erase(path: Path) -> None:
    """Overwrite, then unlink: what a file system allows (a copy-on-write one keeps old blocks)."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    with os.fdopen(handle, "r+b") as file:
        file.write(bytes(os.fstat(file.fileno()).st_size))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()


def _seal(key: bytes, sealed: bytes) -> str:
    """HMAC-SHA256: without the key it neither fits nor betrays anything of the table."""
    return hmac.digest(key, b"hedgerow/seal/2:" + sealed, "sha256").hex()


def _state(folder: Path) -> TextByName:
    """Return what the unfinished run wrote of itself; empty where it did not come so far."""
    try:
        state = json.loads((folder / STATE_FILE).read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return state if isinstance(state, dict) else {}


def _differs(name: str, folder: Path) -> str:
    return (
        f"the {name} differs from that of the unfinished release in {str(folder)!r}; the same "
        f"noise on anything else would give it away: restore the {name}, or {ANEW}"
    )


def _charged_elsewhere(folder: Path, state: TextByName, named: TextByName) -> str:
    """Return the error of a resumed release that would leave its ledger, or its dataset."""
    begun = f"the unfinished release in {str(folder)!r}"
    if state.get(LEDGER) == UNCHARGED[LEDGER]:
        return (
            f"{begun} was begun without a ledger; leave [ledger] out to finish it, or begin anew "
            f"with --discard"
        )
    now = f"dataset {named[DATASET]!r}" if named[DATASET] else "no ledger"
    if named[DATASET] == state.get(DATASET):
        now = "another ledger (copies of one count as the same)"
    return (
        f"{begun} is charged to dataset {state.get(DATASET)!r} of a ledger, and now {now} is "
        f"named; name the same in [ledger] to finish it, or {ANEW}"
    )


def release_id(key: bytes) -> str:
    """Return the name of the release in a ledger: of its key, so it stands for no other noise.

    It is an HMAC and tells nothing of the key.
    """
    return hmac.digest(key, b"hedgerow/release-id/1", "sha256").hex()[:32]


def sync(path: Path) -> None:
    """Make sure that a file or folder has reached the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
