"""A ledger of privacy loss: what has been spent on each dataset, and what may still be.

An *account* is one dataset under one neighbouring relation, with a cap. Every release is charged
before its noise is drawn; a charge that would exceed the cap is refused and costs nothing; no
charge is ever taken back. A cap in ρ or pure ε holds although each release may be chosen after
seeing those before it: `docs/proofs/releases.md`, "A cap on adaptive releases". The tight (ε, δ)
profile is shown only for releases that were planned together (`PLANNED_TOGETHER`). Two accounts of
one dataset, under other neighbours or restrictions, do not know of each other.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hedgerow.declared import frozen
from hedgerow.errors import BudgetError
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.ledger.file import (
    OPEN,
    create_file,
    damaged_ledger,
    open_ledger_file,
    read_id,
    transaction,
)
from hedgerow.privacy.ledger.records import (
    Account,
    Charge,
    Standing,
    account_row,
    charge_row,
    describe_account,
    read_account,
    read_charge,
    seal_row,
)
from hedgerow.privacy.promise import Protection

PATIENCE = 30.0  # seconds; a charge holds the lock for milliseconds


@frozen
class Ledger:
    """A ledger that exists; `create_ledger` makes one.

    Each method opens the file, checks it and closes it again, so that a ledger may be used by any
    number of processes and threads at once, before and after a fork.

    Attributes:
        path: the SQLite file. It lies inside the boundary, on a disk of this machine.
        patience: how long to wait for other runs, in seconds.

    Raises:
        BudgetError: there is no file, or it is no ledger that this version can read.
        MachineError: here and in every method: damaged, not readable or writable, or locked.
    """

    path: Path
    patience: float = PATIENCE

    def __post_init__(self) -> None:
        with open_ledger_file(self.path, self.patience):
            pass

    @property
    def id(self) -> str:
        """What the ledger is known by wherever it lies: random, and shared by its copies alone."""
        with self._transaction("DEFERRED") as connection:
            return read_id(connection, self.path)

    def accounts(self) -> tuple[Account, ...]:
        """Return all accounts, in the order in which they were opened.

        Several of one dataset, under other neighbours or restrictions, do not limit each other.
        """
        with self._transaction("DEFERRED") as connection:
            return tuple(entry.account for entry in self._entries(connection))

    def account(self, dataset: str, protection: Protection) -> Account:
        """Return the account of a dataset under these neighbours and restrictions.

        Raises:
            BudgetError: there is none.
        """
        with self._transaction("DEFERRED") as connection:
            return self._entry(connection, dataset, protection).account

    def open_account(self, dataset: str, protection: Protection, cap: Rho | Epsilon) -> Account:
        """Return the account with this cap; open it unless it exists.

        Raises:
            BudgetError: it is there with another cap. A cap that moves with what was seen caps
                nothing, so it is fixed for ever.
        """
        wanted = Account(dataset, protection, cap)
        row = account_row(wanted)
        with self._transaction("IMMEDIATE") as connection:
            for entry in self._entries(connection):
                there = entry.account
                if (there.dataset, there.protection) == (dataset, protection):
                    if there.cap == wanted.cap:
                        return there
                    raise BudgetError(
                        f"the account of {there.describe()} has the cap {there.symbol} = "
                        f"{there.amount}, and a cap is fixed when the account is opened; it cannot "
                        f"become {wanted.symbol} = {wanted.amount}"
                    )
            connection.execute(
                "INSERT INTO account (dataset, protection, measure, cap, digest) "
                "VALUES (?, ?, ?, ?, ?)",
                (*row, seal_row(read_id(connection, self.path), row)),
            )
        return wanted

    def standing(self, account: Account) -> Standing:
        """Return what was charged to an account, what is spent and left, and the profile of it all.

        Raises:
            BudgetError: the ledger has no such account.
        """
        with self._transaction("DEFERRED") as connection:
            entry = self._entry(connection, account.dataset, account.protection)
            return self._standing(connection, entry)

    def charge(self, account: Account, charge: Charge) -> Charge:
        """Return the charge once it is on the disk; only then draw the noise.

        The same release again (a resumed run) is not charged again, and its first charge is
        returned. What counts is the ledger's own cap. Where this raises, no noise may be drawn:
        a `BudgetError` has cost nothing; after a `MachineError` the charge may be in or not, and
        charging the same release again settles it.

        Raises:
            BudgetError: it would exceed the cap, has no price in this account, or its id was
                charged for another composition or plan.
        """
        row = charge_row(charge)
        with self._transaction("IMMEDIATE") as connection:
            entry = self._entry(connection, account.dataset, account.protection)
            standing = self._standing(connection, entry)
            for earlier in standing.charges:
                if earlier.release_id == charge.release_id:
                    if charge.repeats(earlier):
                        return earlier
                    raise BudgetError(
                        f"release {charge.release_id!r} was charged at "
                        f"{earlier.at:%Y-%m-%d %H:%M} UTC for another plan or other noise; a "
                        f"release keeps what it was charged for: start a new one"
                    )
            standing.check(charge.profile)
            connection.execute(
                "INSERT INTO charge (account, number, release_id, charged_at, plan_hash, profile, "
                "digest) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (entry.id, len(standing.charges) + 1, *row, seal_row(standing.digest, row)),
            )
        return charge

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        with (
            open_ledger_file(self.path, self.patience) as connection,
            transaction(connection, kind),
        ):
            yield connection

    def _entry(
        self, connection: sqlite3.Connection, dataset: str, protection: Protection
    ) -> "_Entry":
        entries = [e for e in self._entries(connection) if e.account.dataset == dataset]
        for entry in entries:
            if entry.account.protection == protection:
                return entry
        lacks = (entry.account.protection.lacks(protection) for entry in entries)
        near = next((f"; the promise of its account {lack}" for lack in lacks if lack), "")
        raise BudgetError(
            f"the ledger {str(self.path)!r} has no account of "
            f"{describe_account(dataset, protection)}{near}; open one, with its cap: {OPEN}"
        )

    def _entries(self, connection: sqlite3.Connection) -> list["_Entry"]:
        rows = connection.execute(
            "SELECT id, digest, dataset, protection, measure, cap FROM account ORDER BY id"
        ).fetchall()
        name = read_id(connection, self.path)
        with self._trusted():
            for _, digest, *row in rows:
                _check_seal(digest, name, row)
            return [_Entry(id_, digest, read_account(*row)) for id_, digest, *row in rows]

    def _standing(self, connection: sqlite3.Connection, entry: "_Entry") -> Standing:
        rows = connection.execute(
            "SELECT digest, release_id, charged_at, plan_hash, profile FROM charge "
            "WHERE account = ? ORDER BY number",
            (entry.id,),
        ).fetchall()
        last = entry.digest
        with self._trusted():
            for digest, *row in rows:
                _check_seal(digest, last, row)
                last = digest
            return Standing(entry.account, tuple(read_charge(*row) for _, *row in rows), last)

    @contextmanager
    def _trusted(self) -> Iterator[None]:
        """Report rows that no ledger wrote as damage, whatever is wrong with them."""
        try:
            yield
        except (ValueError, TypeError, KeyError) as error:
            raise damaged_ledger(self.path, "an entry is not as it was written") from error


@frozen
class _Entry:
    """An account as the file holds it."""

    id: int
    digest: str
    account: Account


def create_ledger(path: Path, patience: float = PATIENCE) -> Ledger:
    """Return the ledger at a path, made if nothing is there; its accounts are opened one by one.

    To make one is a step of its own: a release that made its ledger where it finds none would have
    all of the budget again whenever the path is misspelt.
    """
    create_file(path, patience)
    return Ledger(path, patience)


def _check_seal(digest: str, before: str, row: list[str]) -> None:
    if digest != seal_row(before, row):
        raise ValueError("the seal does not fit")
