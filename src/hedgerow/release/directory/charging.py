"""Charging a release to a ledger, before its noise is drawn."""

from dataclasses import dataclass
from datetime import UTC, datetime

from hedgerow.plan.plan import Plan
from hedgerow.privacy.ledger.ledger import Ledger
from hedgerow.privacy.ledger.ledger_records import Charge, Standing
from hedgerow.release.directory.manifest import NO_LEDGER

LEDGER, DATASET = "ledger", "dataset"
UNCHARGED = {LEDGER: NO_LEDGER, DATASET: ""}
"""What an unfinished release keeps where no ledger is."""


@dataclass(frozen=True, slots=True)
class Charging:
    """The ledger that a release is charged to, and the name of its dataset there.

    Attributes:
        ledger: with an account of the dataset under the plan's neighbours and restrictions.
        dataset: the user's name for it.
    """

    ledger: Ledger
    dataset: str

    def standing(self, plan: Plan) -> Standing:
        """Where the account that the plan is charged to stands.

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
    def bound(self) -> dict[str, str]:
        """What an unfinished release keeps of it: the ledger by its own name, and the dataset."""
        return {LEDGER: self.ledger.id, DATASET: self.dataset}

    def to_dict(self, release_id: str) -> dict[str, str]:
        """What a manifest says of it."""
        return {"dataset": self.dataset, "release_id": release_id}
