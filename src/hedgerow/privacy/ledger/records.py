"""Accounts and charges as rows of text in a ledger, written and read back exactly, and sealed."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from hedgerow.declared import frozen
from hedgerow.errors import BudgetError
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.neighbours import AddRemove, Neighbours, Replace
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.promise import Promise, Protection, Restriction, compose_profiles
from hedgerow.privacy.use import Use, read_use
from hedgerow.text import Exact, Json

# What a ledger tells: accounts, charges, and where an account stands; public facts alone.

PLANNED_TOGETHER = (
    "The ε of all together holds for releases planned together: which ones there are, and with how "
    "much noise, was fixed before the first was seen. The sum holds in any case."
)
ALL = "Everything charged here"
LONGEST_TEXT = 500
SMALLER = "; give it a smaller budget"
_PLAN_HASH = re.compile("[0-9a-f]{64}")
_SHOWN = {
    direction: Context(prec=6, rounding=direction) for direction in (ROUND_CEILING, ROUND_FLOOR)
}


@frozen
class Account:
    """All that may be spent on one dataset under one neighbouring relation.

    Attributes:
        dataset: the user's name for it: one printable line.
        protection: who is protected, and between which tables.
        cap: what all charges together may cost: `Rho`, in which every mechanism has a price, or
            pure `Epsilon`, which only mechanisms with a pure price can be charged to.
    """

    dataset: str
    protection: Protection
    cap: Rho | Epsilon

    def __post_init__(self) -> None:
        _check_line("dataset", self.dataset)
        if self.protection.neighbours.unit is not None:
            _check_line("unit", self.protection.neighbours.unit)
        for restriction in self.protection.restrictions:
            _check_line("restriction", str(restriction))
        if not isinstance(self.cap, Rho | Epsilon):
            raise BudgetError(
                f"the cap of an account must be Rho(...) or Epsilon(...), whose costs add, got "
                f"{self.cap!r}; (epsilon, delta) budgets do not add: give their rho"
            )

    @property
    def amount(self) -> Fraction:
        """The cap as a number, exact."""
        return self.cap.rho if isinstance(self.cap, Rho) else self.cap.epsilon

    @property
    def symbol(self) -> str:
        """``ρ`` or ``ε``: what the account is kept in."""
        return "ρ" if isinstance(self.cap, Rho) else "ε"

    def cost(self, profile: Profile) -> Fraction:
        """Return what a release costs here, exact."""
        if isinstance(self.cap, Rho):
            cost = profile.rho
            others = "mere (epsilon, delta) guarantees do not add to a rho"
        else:
            cost = profile.pure_epsilon
            others = "use the discrete Laplace mechanism"
        if cost is None:
            raise BudgetError(
                f"the account of {self.describe()} is kept in {self.symbol}, and this release has "
                f"none: {others}"
            )
        return cost

    def describe(self) -> str:
        """Return dataset, neighbours and restrictions, for a sentence."""
        return describe_account(self.dataset, self.protection)


@frozen
class Charge:
    """One release, as it is charged before its noise is drawn.

    Attributes:
        release_id: names the release and its one key; a resumed run gives the same again.
        profile: the composition that it draws.
        plan_hash: SHA-256 of its plan, in hexadecimal.
        at: when; must know its offset from UTC.
    """

    release_id: str
    profile: Profile
    plan_hash: str
    at: datetime

    def __post_init__(self) -> None:
        _check_line("release id", self.release_id)
        if not isinstance(self.plan_hash, str) or not _PLAN_HASH.fullmatch(self.plan_hash):
            raise BudgetError(f"a plan's hash is 64 hexadecimal digits, got {self.plan_hash!r}")
        if not isinstance(self.at, datetime) or self.at.utcoffset() is None:
            raise BudgetError(
                f"the time of a charge must know its offset from UTC, got {self.at!r}"
            )
        object.__setattr__(self, "at", self.at.astimezone(UTC))

    def repeats(self, earlier: "Charge") -> bool:
        """Return whether this is the same release again, whenever."""
        return self == replace(earlier, at=self.at)


@frozen
class Standing:
    """Where an account stands.

    Attributes:
        account: the account.
        charges: its charges, oldest first.
        digest: SHA-256 over the account and all charges, each sealing those before it. Noted
            elsewhere (on paper, in a manifest), it shows whether any of them was changed since.
    """

    account: Account
    charges: tuple[Charge, ...]
    digest: str

    @property
    def spent(self) -> Fraction:
        """The sum of all costs, exact, in the account's ρ or ε."""
        return sum((self.account.cost(charge.profile) for charge in self.charges), Fraction(0))

    @property
    def left(self) -> Fraction:
        """The cap less what is spent, exact."""
        return self.account.amount - self.spent

    @property
    def together(self) -> Profile | None:
        """The profile of all charges, None without any; read `PLANNED_TOGETHER` with it."""
        return (
            compose_profiles([charge.profile for charge in self.charges]) if self.charges else None
        )

    def statement(self, delta: Exact) -> str:
        """Return what all charges together promise, and to whom, with ε at δ."""
        if self.together is None:
            return f"Nothing is charged yet. {self.account.protection.describe(ALL)}"
        promise = Promise(self.account.protection, self.together)
        return f"{promise.statement(delta, subject=ALL)} {PLANNED_TOGETHER}"

    def describe(self) -> str:
        """Return what is spent (rounded up) and left (rounded down) in one sentence."""
        symbol = self.account.symbol
        spent = self.spent
        return (
            f"{self.account.describe()}: of the cap {symbol} = {_below(self.account.amount)}, "
            f"{_above(spent)} is spent and {_below(self.account.amount - spent)} is left"
        )

    def check(self, profile: Profile) -> None:
        """Raise if a release would exceed the cap."""
        cost = self.account.cost(profile)
        if self.spent + cost > self.account.amount:
            raise BudgetError(
                f"this release costs {self.account.symbol} = {_above(cost)}, which is more than is "
                f"left for {self.describe()}{SMALLER}"
            )


def describe_account(dataset: str, protection: Protection) -> str:
    """Return a dataset and who is protected in it, for a sentence."""
    return f"dataset {dataset!r} ({protection.label})"


def _check_line(subject: str, text: str) -> None:
    if (
        not isinstance(text, str)
        or not 0 < len(text) <= LONGEST_TEXT
        or not text.isprintable()
        or text != text.strip()
    ):
        raise BudgetError(
            f"a ledger's {subject} is one printable line of at most {LONGEST_TEXT} characters, "
            f"without spaces around it, got {text!r:.100}"
        )


def _above(value: Fraction) -> str:
    return _shown(value, ROUND_CEILING)


def _below(value: Fraction) -> str:
    return _shown(value, ROUND_FLOOR)


def _shown(value: Fraction, direction: str) -> str:
    """Return six significant digits, rounded in a direction."""
    digits = _SHOWN[direction].divide(Decimal(value.numerator), Decimal(value.denominator))
    return f"{digits.normalize():{'f' if -6 <= digits.adjusted() <= 12 else 'g'}}"


def account_row(account: Account) -> tuple[str, str, str, str]:
    """Return dataset, protection, measure and cap as the ledger's columns hold them."""
    with _short_enough("cap"):
        cap = str(account.amount)
    measure = "rho" if isinstance(account.cap, Rho) else "epsilon"
    return account.dataset, _written_protection(account.protection), measure, cap


def read_account(dataset: str, protection: str, measure: str, cap: str) -> Account:
    """Return the account that `account_row` wrote."""
    amount = Fraction(cap)
    kept_in = Rho(amount) if measure == "rho" else Epsilon(amount)
    return Account(dataset, _read_protection(protection), kept_in)


def charge_row(charge: Charge) -> tuple[str, str, str, str]:
    """Return release id, time, plan hash and profile as the ledger's columns hold them.

    What is written of the profile is what was done, its uses; what they cost follows from them.
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
    """Return the charge that `charge_row` wrote."""
    facts = json.loads(profile)
    done = Profile(tuple(map(_read_use, facts["uses"])), is_worst=facts["is_worst"])
    return Charge(release_id, done, plan_hash, datetime.fromisoformat(at))


def seal_row(before: str, row: Sequence[str]) -> str:
    """Return the SHA-256 of a row and the digest before it."""
    return hashlib.sha256(_canonical([before, *row]).encode()).hexdigest()


def _written_protection(protection: Protection) -> str:
    """Return relation, unit and restrictions as JSON: one text for one protection."""
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


def _read_neighbours(facts: Json) -> Neighbours:
    contributions = facts["contributions"]
    unit = facts["unit"]
    if facts["relation"] == "replace":
        return Replace(contributions, unit=unit, exactly=facts["total_is_public"])
    return AddRemove(contributions, unit=unit)


def _read_use(facts: Json) -> Use:
    """Return the use that was written; its numbers may be longer than any that people may type."""
    texts = {name: text for name, text in facts.items() if isinstance(text, str)}
    numbers = {name: Fraction(text) for name, text in texts.items() if name != "mechanism"}
    return read_use({**facts, **numbers})


def _canonical(facts: object) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@contextmanager
def _short_enough(subject: str) -> Iterator[None]:
    """Raise a BudgetError for numbers of more than 4300 digits, which Python refuses to write."""
    try:
        yield
    except BudgetError:
        raise
    except ValueError:
        raise BudgetError(f"this {subject} has too many digits for a ledger; round it") from None
