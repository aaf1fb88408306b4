"""Accounts and charges as rows of text in a ledger, written and read back exactly, and sealed."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from fractions import Fraction
from typing import Any

from hedgerow.errors import BudgetError
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.ledger.ledger_records import Account, Charge
from hedgerow.privacy.neighbours import AddRemove, Neighbours, Replace
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.promise import Protection, Restriction
from hedgerow.privacy.use import Use, read_use


def written_account(account: Account) -> tuple[str, str, str, str]:
    """Dataset, protection, measure and cap as the ledger's columns hold them.

    Raises:
        BudgetError: neighbours that could not be read back as they are.
    """
    with _short_enough("cap"):
        cap = str(account.amount)
    measure = "rho" if isinstance(account.cap, Rho) else "epsilon"
    return account.dataset, _written_protection(account.protection), measure, cap


def read_account(dataset: str, protection: str, measure: str, cap: str) -> Account:
    """The account that `written_account` wrote."""
    amount = Fraction(cap)
    kept_in = Rho(amount) if measure == "rho" else Epsilon(amount)
    return Account(dataset, _read_protection(protection), kept_in)


def written_charge(charge: Charge) -> tuple[str, str, str, str]:
    """Release id, time, plan hash and profile as the ledger's columns hold them.

    What is written of the profile is what was done, its uses; what they cost follows from them.

    Raises:
        BudgetError: a profile that could not be read back exactly.
    """
    with _short_enough("profile"):
        uses = [use.to_dict() for use in charge.profile.uses]
        profile = _canonical({"is_worst": charge.profile.is_worst, "uses": uses})
    row = (charge.release_id, charge.at.isoformat(), charge.plan_hash, profile)
    try:
        same = read_charge(*row) == charge
    except (KeyError, TypeError, BudgetError):
        same = False
    if not same:
        raise BudgetError("a ledger cannot write this release's mechanisms down exactly")
    return row


def read_charge(release_id: str, at: str, plan_hash: str, profile: str) -> Charge:
    """The charge that `written_charge` wrote."""
    facts = json.loads(profile)
    uses = tuple(_read_use(use) for use in facts["uses"])
    done = Profile(uses, is_worst=facts["is_worst"])
    return Charge(release_id, done, plan_hash, datetime.fromisoformat(at))


def sealed(before: str, row: Sequence[str]) -> str:
    """SHA-256 of a row and the digest before it."""
    return hashlib.sha256(_canonical([before, *row]).encode()).hexdigest()


def _written_protection(protection: Protection) -> str:
    """The relation, its unit and restrictions as JSON: the same text for the same protection.

    Raises:
        BudgetError: neighbours that could not be read back as they are.
    """
    neighbours = protection.neighbours
    with _short_enough("number of contributions"):
        text = _canonical(
            {
                "relation": neighbours.name,
                "contributions": neighbours.contributions,
                "unit": neighbours.unit,
                "total_is_public": neighbours.total_is_public,
                "public": [[r.axis, r.level, r.digest] for r in protection.restrictions],
            }
        )
    if _read_protection(text) != protection:
        raise BudgetError(f"a ledger cannot write these neighbours down: {neighbours!r}")
    return text


def _read_protection(text: str) -> Protection:
    facts = json.loads(text)
    restrictions = tuple(Restriction(*public) for public in facts["public"])
    return Protection(_read_neighbours(facts), restrictions)


def _read_neighbours(facts: dict[str, Any]) -> Neighbours:
    contributions, unit = facts["contributions"], facts["unit"]
    if facts["relation"] == "replace":
        return Replace(contributions, unit=unit, exactly=facts["total_is_public"])
    return AddRemove(contributions, unit=unit)


def _read_use(facts: dict[str, Any]) -> Use:
    """The use that was written; its numbers may be longer than any that a person may type."""
    texts = {name: text for name, text in facts.items() if isinstance(text, str)}
    numbers = {name: Fraction(text) for name, text in texts.items() if name != "mechanism"}
    return read_use({**facts, **numbers})


def _canonical(facts: object) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@contextmanager
def _short_enough(what: str) -> Iterator[None]:
    """Python refuses to write numbers of more than 4300 digits."""
    try:
        yield
    except BudgetError:
        raise
    except ValueError:
        raise BudgetError(f"this {what} has too many digits for a ledger; round it") from None
