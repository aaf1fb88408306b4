"""What may be given, declared once: the check, its sentence and the reference follow from it.

A parameter, or a key of a file, is declared beside its type: ``Annotated[float, COVERAGE]``, where
``COVERAGE = Real("a confidence", 0, 1, …)`` is a range, and `With` a key that goes with another
one. The reference (`docs/hooks.py`) reads the same declarations.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import inf
from numbers import Integral
from typing import Any, Generic, TypeVar, get_args

from hedgerow.errors import HedgerowError, did_you_mean, kind_of, shorten
from hedgerow.text import as_double, exact, visible

N = TypeVar("N", int, float, Fraction)


@dataclass(frozen=True, repr=False)
class Number(Generic[N]):
    """Numbers of one range.

    Attributes:
        name: what a sentence calls such a number.
        low: the lower end; -inf where there is none.
        high: the upper end; inf where there is none, as no infinite number is in a range.
        error: the kind of error to raise: that of the room that asks.
        advice: why, or the way out: the end of the sentence.
        ends: which ends belong to the range, as intervals are written: ``[`` and ``(``.
        why: of a high end that few ask beyond: it alone is told to them, and why.
    """

    name: str
    low: Any
    high: Any
    error: type[HedgerowError]
    advice: str = ""
    ends: str = field(default="[]", kw_only=True)
    why: str = field(default="", kw_only=True)

    def __repr__(self) -> str:
        return self.words

    def __call__(self, given: object, name: str = "") -> N:
        """Return the number that is given, or raise an error in one sentence.

        Args:
            given: by a user.
            name: what the sentence calls it, if not by the name of all such numbers.
        """
        subject = name or self.name
        number = self.read(given, subject)
        is_low = number < self.low or (self.ends[0] == "(" and number == self.low)
        is_high = number > self.high or (self.ends[1] == ")" and number == self.high)
        if is_low or is_high or number != number or number in {inf, -inf}:  # noqa: PLR0124 - NaN
            raise self.refusal(given, subject, too_high=is_high)
        return number

    def read(self, given: Any, subject: str) -> N:
        """Return what is given as a number of this kind, or raise for what is none."""
        raise NotImplementedError

    def refusal(self, given: object, subject: str, *, too_high: bool = False) -> HedgerowError:
        """Return the error for what is not in the range."""
        try:
            got = visible(shorten(str(given), 40))
        except ValueError:  # more digits than Python writes
            got = kind_of(given)
        words, advice = self.words, f"; {self.advice}" if self.advice else ""
        if too_high and self.why:
            words = f"at most {_shown(self.high)}, {self.why}"
        return self.error(f"{subject} must be {words}, got {got}{advice}")

    @property
    def words(self) -> str:
        """The range in words."""
        low, high = _shown(self.low), _shown(self.high)
        if self.high == inf or self.why:
            least = f"above {low}" if self.ends[0] == "(" else f"at least {low}"
            return least if self.low > -inf else "a finite number"
        return f"in {self.ends[0]}{low}, {high}{self.ends[1]}"


class Real(Number[float]):
    """Numbers that may be rounded to 53 bits."""

    def read(self, given: Any, subject: str) -> float:
        """Return a number as a float; a truth value is none."""
        if isinstance(given, bool):
            raise self.refusal(given, subject)
        return as_double(given, subject, self.error)

    @property
    def words(self) -> str:
        """The range in words."""
        words = super().words
        return f"{words} and finite" if words.startswith(("above", "at least")) else words


class Rational(Number[Fraction]):
    """Numbers on whose last digit privacy depends."""

    def read(self, given: Any, subject: str) -> Fraction:
        """Return the number as it is written down."""
        return exact(given, subject, self.error)


class Whole(Number[int]):
    """Whole numbers."""

    def read(self, given: Any, subject: str) -> int:
        """Return a whole number; a truth value, or a number of another type, is none."""
        if isinstance(given, bool) or not isinstance(given, Integral):
            raise self.refusal(given, subject)
        return int(given)

    @property
    def words(self) -> str:
        """The range in words."""
        if self.high == inf:
            return f"a whole number of at least {self.low:,}"
        return f"a whole number from {_shown(self.low)} to {_shown(self.high)}"


def _shown(end: Any) -> str:
    """Return an end of a range; a large power of two or of ten as such."""
    if end in {inf, -inf} or end != int(end) or end < 1 << 16:
        return f"{float(end):g}"
    whole = int(end)
    zeros = len(str(whole)) - 1
    if whole == 10**zeros and zeros > 6:
        return f"10^{zeros}"
    return f"2^{whole.bit_length() - 1}" if whole.bit_count() == 1 else f"{whole:,}"


def check_fields(made: Any) -> None:
    """Check the fields of a dataclass that are declared as numbers; None stays where it may be.

    Example:
        >>> from dataclasses import dataclass
        >>> from typing import Annotated
        >>> from hedgerow.declared import Real, check_fields
        >>> @dataclass(frozen=True)
        ... class Confidence:
        ...     coverage: Annotated[float, Real("a confidence", 0, 1, hr.EstimateError, ends="()")]
        ...
        ...     def __post_init__(self):
        ...         check_fields(self)
        >>> try:
        ...     Confidence(2)
        ... except hr.EstimateError as error:
        ...     print(error)
        a confidence must be in (0, 1), got 2
    """
    for one in fields(made):
        for rule in get_args(one.type)[1:]:
            given = getattr(made, one.name)
            if isinstance(rule, Number) and not (given is None and one.default is None):
                object.__setattr__(made, one.name, rule(given))


def check_known(
    given: object, names: Collection[str], what: str, error: type[HedgerowError]
) -> None:
    """Raise unless one of some names is given: what they are names of, and what there is.

    Example:
        >>> from hedgerow.declared import check_known
        >>> try:
        ...     check_known("contry", ["county", "country"], "level", hr.SpecError)
        ... except hr.SpecError as error:
        ...     print(error)
        no level is called 'contry'; there are county, country; did you mean 'country'?
    """
    if given not in names:
        there = ", ".join(names) or "none"
        raise error(
            f"no {what} is called {kind_of(given)}; there are {there}{did_you_mean(given, names)}"
        )


@dataclass(frozen=True, slots=True)
class With:
    """A key that goes with another one alone, or with some values of it.

    Attributes:
        keys: the other, or several of which one will do.
        values: of the other; any where there are none.
        is_needed: whether these need the key in turn.
        advice: the end of the sentence.
    """

    keys: tuple[str, ...]
    values: tuple[str, ...] = ()
    is_needed: bool = field(default=False, kw_only=True)
    advice: str = field(default="", kw_only=True)

    def check(self, key: str, given: Mapping[str, object], error: type[HedgerowError]) -> None:
        """Raise if the key is given without the other, or is missing where it is needed."""
        others = [given[name] for name in self.keys if given.get(name) is not None]
        fits = any(not self.values or other in self.values for other in others)
        if given.get(key) is None:
            if not (self.is_needed and fits):
                return
        elif fits:
            return
        need = ", which needs it" if self.is_needed else ""
        raise error(f"{key} goes with {self.words}{need}{self.advice}")

    @property
    def words(self) -> str:
        """What the key goes with, in words."""
        names = either(self.keys)
        values = [f'"{value}"' for value in self.values]
        return f"{names} = {either(values)}" if values else names


@dataclass(frozen=True, slots=True)
class Without:
    """An option that excludes others.

    Attributes:
        keys: the others.
        advice: the rest of the sentence, which begins with the option.
    """

    keys: tuple[str, ...]
    advice: str

    def check(self, key: str, given: Mapping[str, object], error: type[HedgerowError]) -> None:
        """Raise if the option is given beside one that it excludes."""
        if given.get(key) is not None and any(given.get(name) is not None for name in self.keys):
            raise error(f"{key} {self.advice}")


def either(names: Sequence[str]) -> str:
    """Return names of which one is meant: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
