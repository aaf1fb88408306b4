"""What may be given, declared once: the check, its error message and the reference use it.

A parameter, or a key of a file, is declared beside its type: ``Annotated[float, COVERAGE]``, where
``COVERAGE = Real("a confidence", 0, 1, …)`` is a range, and `With` a key that goes with another
one. The reference (`docs/hooks.py`) reads the same declarations. A range of a file's key is for
the reference alone: the class that is made of the key checks it (`check_fields`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from math import inf, isinf, nan
from numbers import Integral
from typing import Any, Generic, TypeVar, cast, dataclass_transform, get_args, overload

from hedgerow.errors import HedgerowError, did_you_mean, kind_of
from hedgerow.text import as_double, exact

N = TypeVar("N", int, float, Fraction)
T = TypeVar("T")


@overload
def frozen(kind: type[T], /) -> type[T]: ...
@overload
def frozen(**options: bool) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: Any = None, /, **options: bool) -> Any:
    """Make a class a dataclass with slots whose fields never change.

    Args:
        kind: the class.
        options: others of `dataclasses.dataclass`: ``eq=False`` for a class that holds arrays, so
            that an instance equals itself alone.

    Example:
        >>> from hedgerow.declared import frozen
        >>> @frozen
        ... class Share:
        ...     level: int
        ...     part: float
        >>> Share(1, 0.5)
        Share(level=1, part=0.5)
    """
    return dataclass(kind, frozen=True, slots=True, **options)


@dataclass(frozen=True, repr=False)
class Range(Generic[N]):
    """Numbers between two ends, which a user may give.

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
    ends: str = field(default="[)", kw_only=True)
    why: str = field(default="", kw_only=True)
    finite = ""

    def __repr__(self) -> str:
        return self.words

    def __call__(self, given: object, name: str = "") -> N:
        """Return the number that is given, or raise an error in one sentence.

        Args:
            given: by a user.
            name: what the sentence calls it, if not by the name of all such numbers.
        """
        subject = name or self.name
        words = self.words
        number = self.read(given, subject)
        is_low = number <= self.low if self.ends[0] == "(" else number < self.low
        is_high = number >= self.high if self.ends[1] == ")" else number > self.high
        if not (is_low or is_high or number != number):  # noqa: PLR0124 - NaN
            return cast("N", number)
        if is_high and self.why:
            words = f"at most {_shown(self.high)}, {self.why}"
        advice = f"; {self.advice}" if self.advice else ""
        got = kind_of(given).strip("'")
        raise self.error(f"{subject} must be {words}, got {got}{advice}")

    def read(self, given: Any, subject: str, /) -> Any:
        """Return what is given as a number of this kind, NaN for what is none."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The range in words."""
        low = _shown(self.low)
        high = _shown(self.high)
        if self.high == inf or self.why:
            least = f"above {low}" if self.ends[0] == "(" else f"at least {low}"
            return f"{least}{self.finite}" if self.low > -inf else "a finite number"
        return f"in {self.ends[0]}{low}, {high}{self.ends[1]}"


class Real(Range[float]):
    """Numbers that may be rounded to 53 bits."""

    finite = " and finite"

    def read(self, given: Any, subject: str, /) -> float:
        """Return a number as a float."""
        return as_double(given, subject, self.error)


class Rational(Range[Fraction]):
    """Numbers on whose last digit privacy depends."""

    def read(self, given: Any, subject: str, /) -> Fraction:
        """Return the number as it is written down."""
        return exact(given, subject, self.error)


class Whole(Range[int]):
    """Whole numbers."""

    def read(self, given: Any, _subject: str, /) -> float:
        """Return a whole number; a truth value, or a number of another type, is none."""
        is_whole = isinstance(given, Integral) and not isinstance(given, bool)
        return int(given) if is_whole else nan

    @property
    def words(self) -> str:
        """The range in words."""
        least = f"of at least {self.low:,}"
        many = least if self.high == inf else f"from {_shown(self.low)} to {_shown(self.high)}"
        return f"a whole number {many}"


def _shown(end: Any) -> str:
    """Return an end of a range; a large power of two as such."""
    if isinf(end) or end < 1 << 16:
        return f"{float(end):g}"
    whole = int(end)
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
            if isinstance(rule, Range) and not (given is None and one.default is None):
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


@frozen
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
        is_given = given.get(key) is not None
        if fits < is_given or (fits and self.is_needed and not is_given):
            need = ", which needs it" if self.is_needed else ""
            raise error(f"{key} goes with {self.words}{need}{self.advice}")

    @property
    def words(self) -> str:
        """What the key goes with, in words."""
        names = either(self.keys)
        values = [f'"{value}"' for value in self.values]
        return f"{names} = {either(values)}" if values else names


def either(names: Sequence[str]) -> str:
    """Return names of which one is meant: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
