"""The unit of privacy: which tables must look alike, and how far apart their counts can be.

A *record* is one thing that a leaf counts (a person, a trip). A *unit* is who is protected: all
the records of one person, say, at most ``contributions`` of them. Two tables are neighbours if they
differ in one unit. What a release measures at a depth is the vector of that depth's node counts;
one unit changes it by a vector whose norms are the sensitivities. A node that did not survive is
not measured: dropping coordinates makes no norm larger, and survival depends on released counts
alone, so a depth costs the same whichever nodes survive (adaptive composition).

What a unit changes at one depth says something of what it changes at others: if its records move,
the total stays. So a unit's change is one of a few *cases* (`Neighbours.changes`), the same at
every depth, and a release costs what it costs in its worst case, not the sum of all depths' worst.
"""

from abc import ABC, abstractmethod
from dataclasses import field
from fractions import Fraction
from math import inf
from typing import Annotated, ClassVar

from hedgerow.arrays import Sizes
from hedgerow.declared import Whole, check_fields, frozen
from hedgerow.errors import BudgetError, check_type
from hedgerow.text import check_name

LONGEST_UNIT = 500

CONTRIBUTIONS = Whole(
    "contributions",
    1,
    inf,
    BudgetError,
    "it is how many records one protected unit can have in the table",
)
DEPTH = Whole("a depth", 0, inf, BudgetError, "0 is the total")
SQUARED_NORM = Whole("a squared norm", 1, inf, BudgetError)


@frozen
class Norm:
    """The change that one unit makes to measurements that are no counts: its ℓ2 norm alone.

    Attributes:
        squared: an upper bound of the squared norm, above 0, in units of the measurements.

    Raises:
        BudgetError: it is not above 0.
    """

    squared: Annotated[int, SQUARED_NORM]

    def __post_init__(self) -> None:
        check_fields(self)


Shifts = Sizes
"""A change of counts: integer shifts of distinct nodes; () for none."""

Change = Shifts | Norm
"""What one unit changes of one vector of measurements, in one case."""


Changes = tuple[Change, ...]
"""What one unit changes, in each case; a single change is that of every case."""


def in_case(changes: Changes, case: int) -> Change:
    """Return the change in a case; a single change is that of every case."""
    return changes[case] if len(changes) > 1 else changes[0]


@frozen
class Neighbours(ABC):
    """Which tables must look alike; sensitivities are norms of the worst change (`changes`).

    Attributes:
        name: of the relation, in a release file and a manifest.
        contributions: m ≥ 1, the records of one unit.
        unit: what the table calls a unit (its column); None where it does not name them.
    """

    name: ClassVar[str]
    contributions: Annotated[int, CONTRIBUTIONS] = 1
    unit: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.unit is not None:
            check_name(self.unit, "the unit", LONGEST_UNIT, BudgetError)

    @property
    @abstractmethod
    def total_is_public(self) -> bool:
        """Whether neighbours always agree on the total, so that it may be published as it is."""

    @abstractmethod
    def changes(self, depth: int) -> tuple[Shifts, ...]:
        """Return the worst shifts by one unit at a depth, in each case; () for no change.

        The cases are the same ones, in the same order, at every depth. Whatever a unit does, the
        release costs at most what it costs in the worst of them.
        """

    @abstractmethod
    def norm_of_columns(self, column_squared: int, distance_squared: int) -> Norm:
        """Return the worst change of linear measurements Wx of the leaves x, in any case.

        Args:
            column_squared: the largest squared column of W: what one record more or less changes.
            distance_squared: the largest squared distance of two columns: what one record does that
                moves to another leaf.
        """

    @property
    def is_worst(self) -> bool:
        """Whether the worst of the cases is proved to be worst for the whole privacy profile.

        It is for one contribution: in each case some unit makes just these changes at all depths
        at once, and any other makes a part of them (where a node did not survive, or the record
        stays in its node), which is what remains of the whole when counts are dropped:
        post-processing. So the largest δ(ε) of the cases is exact. For more contributions the same
        norms can be split over nodes in other ways, and no order between them is proved.
        """
        return self.contributions == 1

    @abstractmethod
    def describe(self, subject: str = "The release") -> str:
        """Return one plain sentence about ``subject``: who is protected from what."""

    def l1_sensitivity(self, depth: int) -> Fraction:
        """Return the ℓ1 sensitivity of a depth's counts (records): Σ|shift|."""
        return max(map(l1, self.changes(depth)))

    def l2_sensitivity_squared(self, depth: int) -> Fraction:
        """Return the squared ℓ2 sensitivity of a depth's counts (records²): Σ shift²."""
        return max(map(l2_squared, self.changes(depth)))


@frozen
class AddRemove(Neighbours):
    """Neighbours differ by adding or removing one unit: at most m records (unbounded neighbours).

    At every depth, the total included, ‖change‖₁ ≤ m and ‖change‖₂² ≤ m²; all m records in one node
    attain both. Proof: `docs/proofs/privacy.md`, "Sensitivities".

    Example:
        >>> print(hr.AddRemove(contributions=3).describe())
        The release can differ only so much with or without any one unit of up to 3 records.
    """

    name = "add-remove"

    @property
    def total_is_public(self) -> bool:
        """False: whether a unit is there at all is what the total would give away."""
        return False

    def changes(self, depth: int) -> tuple[Shifts, ...]:
        """Return (m,), the only case: all records of the unit in one node."""
        DEPTH(depth)
        return ((self.contributions,),)

    def norm_of_columns(self, column_squared: int, distance_squared: int) -> Norm:
        """Return m² times the largest squared column: a unit adds or removes at most m columns."""
        del distance_squared
        return Norm(self.contributions**2 * column_squared)

    def describe(self, subject: str = "The release") -> str:
        """Return one plain sentence about ``subject``: who is protected from what."""
        m = self.contributions
        who = f"unit of up to {m} records" if m > 1 else "record"
        if self.unit is not None:
            who = f"{self.unit} and its records (of which {m} at most are counted)"
        return f"{subject} can differ only so much with or without any one {who}."


@frozen
class Replace(Neighbours):
    """Neighbours differ by replacing the records of one unit by others (bounded neighbours).

    At every depth from 1 on ‖change‖₁ ≤ 2m and ‖change‖₂² ≤ 2m², attained where all m records move
    from one node to another. The total changes by nothing if every unit has exactly m records, else
    by at most m; then the worst case is one of two: the records come or go, or all move. Proofs:
    `docs/proofs/privacy.md`, "Sensitivities".

    Attributes:
        exactly: every unit has exactly m records, so the total is public. If False, a unit has
            at most m, the total betrays how many, and it is measured like the other depths.

    Example:
        >>> print(hr.Replace().describe())
        The release can differ only so much whatever any one record says; the number of records...
    """

    name = "replace"
    exactly: bool = True

    def __post_init__(self) -> None:
        Neighbours.__post_init__(self)
        fitting = "True or False, whether every unit has exactly so many records"
        check_type("exactly", self.exactly, bool, fitting, BudgetError)

    @property
    def total_is_public(self) -> bool:
        """True if every unit has exactly m records: then replacing one leaves the total."""
        return self.exactly

    def changes(self, depth: int) -> tuple[Shifts, ...]:
        """Return (m, -m), or () at depth 0; before it (m,) if records may come or go."""
        m = self.contributions
        moved: Shifts = (m, -m) if DEPTH(depth) > 0 else ()
        return (moved,) if self.exactly else ((m,), moved)

    def norm_of_columns(self, column_squared: int, distance_squared: int) -> Norm:
        """Return m² times the largest squared distance of two columns: at most m records move.

        The norm of a sum of m differences is at most the sum of theirs. Where a unit need not keep
        its number of records, each may also come or go: m² times the larger of both.
        """
        most = distance_squared if self.exactly else max(column_squared, distance_squared)
        return Norm(self.contributions**2 * most)

    def describe(self, subject: str = "The release") -> str:
        """Return one plain sentence about ``subject``: who is protected from what."""
        m = self.contributions
        same = f"{subject} can differ only so much whatever"
        unit = self.unit or "unit"
        if not self.exactly:
            return f"{same} the records of any one {unit} say and however many they are, up to {m}."
        who = f"the {m} records of any one {unit} say"
        if m == 1:
            who = (
                "any one record says" if self.unit is None else f"the record of any one {unit} says"
            )
        return f"{same} {who}; the number of records is public."


def l1(shifts: Change) -> Fraction:
    """Return the sum of the absolute shifts (records)."""
    if isinstance(shifts, Norm):
        raise BudgetError("of these measurements the l2 norm alone is bounded: use Gaussian noise")
    return Fraction(sum(map(abs, shifts)))


def l2_squared(shifts: Change) -> Fraction:
    """Return the sum of the squared shifts (records²), exact where its root is not."""
    if isinstance(shifts, Norm):
        return Fraction(shifts.squared)
    return Fraction(sum(shift * shift for shift in shifts))
