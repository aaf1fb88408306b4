"""A promise, whole: who is protected, between which tables, and how well.

A guarantee without its neighbours says nothing, and without what is public by declaration it is
false: where the counts of a region are published as they are, a record that moves to another region
is seen with certainty, whatever ε is. So whatever prints a guarantee prints a `Promise`. A bare
`Profile` is for compositions that belong to no table.

Declaring something public restricts the neighbouring relation to tables that agree on it. All that
composes (`hedgerow.privacy.profile`, the sums of ρ and of pure ε) does so for each pair of tables,
and so for the restricted relation, as long as all parts are promised under the same one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from hedgerow.declared import frozen
from hedgerow.notebook import block, html_table, paragraph
from hedgerow.privacy.budget import EpsilonDelta
from hedgerow.privacy.neighbours import Neighbours, Norm, l2_squared
from hedgerow.privacy.profile import DELTAS, FALSE_ALARMS, Profile
from hedgerow.privacy.use import Use
from hedgerow.text import (
    Exact,
    exact_or_smaller,
    format_delta,
    format_percent,
    format_rounded_up,
)

DIGITS = 12
"""How much of a list's digest is shown, to tell it from others."""


@frozen
class Restriction:
    """Something about the table that is public by declaration, so that neighbours agree on it.

    Attributes:
        axis: whose list of areas it speaks of.
        level: the level whose counts are published exactly; None where the list itself was taken
            from the table, so that which codes the table holds is public.
        digest: SHA-256 of the list (`Axis.digest`): the same name may mean other areas elsewhere.
    """

    axis: str
    level: str | None
    digest: str

    def __str__(self) -> str:
        """Return what is public, as a clause."""
        if self.level is None:
            return f"the list of {self.axis}, {self.digest[:DIGITS]}, was taken from the table"
        listed = f"by list {self.digest[:DIGITS]}"
        return f"the counts of {self.axis}.{self.level} {listed} are published exactly"


@frozen
class Protection:
    """Who is protected, and between which tables; two that are equal mean the same promise.

    Attributes:
        neighbours: the unit of privacy.
        restrictions: what neighbours must agree on besides, in a fixed order and each once.
    """

    neighbours: Neighbours
    restrictions: tuple[Restriction, ...] = ()

    def __post_init__(self) -> None:
        ordered = sorted(set(self.restrictions), key=lambda r: (r.axis, r.level or "", r.digest))
        object.__setattr__(self, "restrictions", tuple(ordered))

    @property
    def kind(self) -> str:
        """Who is protected, in a few words."""
        parts = [self.neighbours.name, f"contributions {self.neighbours.contributions}"]
        if self.neighbours.unit is not None:
            parts.append(f"unit {self.neighbours.unit!r}")
        if self.neighbours.total_is_public:
            parts.append("total public")
        return ", ".join(parts)

    @property
    def label(self) -> str:
        """All of it in a few words, to tell it from others."""
        return "; ".join([self.kind, *map(str, self.restrictions)])

    def among(self, sentence: str, *, again: bool = False) -> str:
        """Return a sentence that promises with the tables between which it holds, if not all.

        Args:
            sentence: with a capital letter first.
            again: whether a sentence before it has named them.
        """
        counts, lists = self._public
        agreed = [f"the counts of {counts}"] if counts else []
        agreed += [f"the list of areas of {lists}"] if lists else []
        if not agreed:
            return sentence
        between = "these" if again else f"tables that agree on {_joined(agreed)}"
        return f"Between {between}, {sentence[0].lower()}{sentence[1:]}"

    @property
    def _public(self) -> tuple[str, str]:
        """The levels whose counts are published exactly, and the axes whose lists are public."""
        counts = [f"{r.axis}.{r.level}" for r in self.restrictions if r.level is not None]
        return _joined(counts), _joined([r.axis for r in self.restrictions if r.level is None])

    @property
    def restriction(self) -> str | None:
        """What is not hidden, where something is public by declaration, in sentences."""
        counts, lists = self._public
        parts = []
        if counts:
            parts.append(
                f"The guarantee holds between tables that agree on the counts of {counts}, "
                f"which are published exactly; it does not hide anything that these counts give "
                f"away."
            )
        if lists:
            parts.append(
                f"The list of areas of {lists} was taken from the table itself and "
                f"declared public; the guarantee does not hide which codes the table holds."
            )
        return " ".join(parts) or None

    def describe(self, subject: str = "The release") -> str:
        """Return who is protected from what, and from what not, in sentences about ``subject``."""
        parts = [self.among(self.neighbours.describe(subject)), self.restriction]
        return " ".join(filter(None, parts))

    def lacks(self, other: "Protection") -> str | None:
        """Return the clauses in which this differs from another of the same neighbours, or None."""
        parts = []
        unsaid = [str(r) for r in other.restrictions if r not in self.restrictions]
        more = [str(r) for r in self.restrictions if r not in other.restrictions]
        if unsaid:
            parts.append(f"does not say that {_joined(unsaid)}")
        if more:
            parts.append(f"holds only where {_joined(more)}")
        return _joined(parts) if parts and self.neighbours == other.neighbours else None


@dataclass(frozen=True)
class Promise:
    """Who is protected, and how well.

    Attributes:
        protection: who, and between which tables.
        profile: what all noise together costs those.
        budget: what was asked for, at whose δ `str` states ε; None for ρ or pure ε alone.
        fixed_counts: a sentence on counts that public files fix, if they do; it restricts nothing.
    """

    protection: Protection
    profile: Profile
    budget: EpsilonDelta | None = None
    fixed_counts: str | None = None

    def epsilon(self, delta: Exact) -> Fraction | float:
        """Return ε at δ as it is stated: as it was asked for, where the exact one is no larger."""
        exact = self.profile.epsilon(delta)
        budget = self.budget
        if budget and exact_or_smaller(delta, "delta") == budget.delta and exact <= budget.epsilon:
            return budget.epsilon
        return exact

    def statement(self, delta: Exact | None = None, *, subject: str = "The release") -> str:
        """Return the whole promise in sentences about ``subject``; print no part of it alone."""
        at = self.budget.delta if delta is None and self.budget else delta
        epsilon = None if at is None else self.epsilon(at)
        cost = self.profile.statement(at, who=f"{subject} satisfies", epsilon=epsilon)
        parts = [
            self.protection.among(self.protection.neighbours.describe(subject)),
            self.protection.among(cost, again=True),
            self.protection.restriction,
            self.fixed_counts,
        ]
        return " ".join(filter(None, parts))

    def answer(self, delta: Exact) -> str:
        """Return what was asked for, or ε at δ, with all that it depends on, in a line."""
        pure = self.profile.pure_epsilon
        rho = self.profile.rho
        figure = f"ε = {format_rounded_up(self.epsilon(delta))} at δ = {format_delta(delta)}"
        if self.budget is None and pure is not None:
            figure = f"ε = {format_rounded_up(pure)}"
        elif self.budget is None and rho is not None:
            figure = f"ρ = {format_rounded_up(rho)}, {figure}"
        return self.protection.among(f"{figure} ({self.protection.kind}).")

    @property
    def attacker(self) -> str:
        """What an attacker can find out at most, in a sentence (`Profile.power`).

        Example:
            >>> tree = hr.Tree([hr.Axis.from_frame("town", {"town": ["a", "b"]}, levels=["town"])])
            >>> print(hr.make_plan(tree, budget=hr.Rho("1/8")).promise.attacker)
            Whoever tests whether one protected unit was different, ...
        """
        unit = self.protection.neighbours.unit
        return self.protection.among(
            f"Whoever tests whether one {unit or 'protected unit'} was different, and accepts "
            f"{100 * FALSE_ALARMS:.0f} % false alarms, notices a true difference in at most "
            f"{format_percent(self.profile.power())} % of cases, whatever they know and "
            f"compute; by guessing it would be {100 * FALSE_ALARMS:.0f} %."
        )

    @property
    def label(self) -> str:
        """The whole promise in a few words."""
        satisfied = self.profile.statement(who="satisfies").removesuffix(".")
        return f"{satisfied}; {self.protection.label}"

    @property
    def deltas(self) -> list[Exact]:
        """The δ at which ε is shown, that of the budget first."""
        own = [] if self.budget is None else [self.budget.delta]
        return [*own, *(delta for delta in DELTAS if Fraction(delta) not in own)]

    def __str__(self) -> str:
        return self.statement()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the promise, what an attacker learns, ε at several δ."""
        headings, *rows = self.profile.prices(self.deltas, self.epsilon)
        said = f"{self}\n\n{self.attacker}"
        return block(paragraph(said), html_table(headings, rows))


def _joined(clauses: Sequence[str]) -> str:
    return " and ".join(clauses)


# Several releases together are priced by the worst combination of their cases:
# `docs/proofs/releases.md`, "Several releases together". Where a release has several cases the
# figures are bounds, not exact.

MOST_COMBINATIONS = 64


def compose_profiles(profiles: Sequence[Profile]) -> Profile:
    """Return the profile of all releases, at least one, whose noise was fixed beforehand."""
    if len(profiles) == 1:
        return profiles[0]
    single = all(len(profile.cases) == 1 for profile in profiles)
    proved = single and all(profile.is_worst for profile in profiles)
    return Profile(tuple(_combined(Counter(profiles))), is_worst=proved)


def _combined(counted: Counter[Profile]) -> list[Use]:
    """Return the uses of all, with a case for each combination of theirs."""
    uses = []
    chosen = []
    number = 1
    for profile, times in counted.items():
        number *= len(profile.cases)
        if len(profile.cases) == 1 or number > MOST_COMBINATIONS:
            number //= len(profile.cases)
            uses += [_united(use) for use in profile.uses] * times
        else:
            chosen.append(profile)
    combinations = list(product(*(range(len(profile.cases)) for profile in chosen)))
    for place, profile in enumerate(chosen):
        cases = [combination[place] for combination in combinations]
        uses += [
            replace(use, changes=tuple(use.changes[case] for case in cases))
            if len(use.changes) > 1
            else use
            for use in profile.uses
        ] * counted[profile]
    return uses


def _united(use: Use) -> Use:
    """Return the use with one change, of which that of every case is a part."""
    if len(use.changes) == 1:
        return use
    most: Counter[int] = Counter()
    for change in use.changes:
        if isinstance(change, Norm):
            return replace(use, changes=(Norm(int(max(map(l2_squared, use.changes)))),))
        most |= Counter(map(abs, change))
    return replace(use, changes=(tuple(most.elements()),))
