"""The errors that users see: one kind a room, each sentence naming the rule and the way out.

What a sentence says of a confidential table stands in `HedgerowError.confidential`, and which of
its rules a table breaks is a fact about the table: `outside_limits` is the refusal that says no
more than that it breaks one, and `reads_table` the door that nothing else leaves by. No sentence
has a password in it.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import wraps
from typing import Any, ParamSpec, Self, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

LONGEST_WORD, LONGEST_SENTENCE = 200, 2_000
"""Letters without a space, and letters, that a message has at most: users' input is echoed in it,
and a path has to be there whole."""

OUTSIDE = (
    "is damaged or outside its declared limits; what is wrong is confidential: the command shows "
    "it when it is run on a terminal (in Python it is the error's attribute confidential)"
)

_SCHEMES = "jdbc odbc postgresql postgres mysql mariadb mssql sqlserver oracle db2 snowflake"
_DATABASES = _SCHEMES.replace(" ", "|")
_ADDRESS = re.compile(rf"\b(?:{_DATABASES})\b:?/*|:/+", re.IGNORECASE)
_LOGIN = re.compile(
    r"(?<![^\s/'\"=,(])[^\s/:'\"=,(]+:"  # user:
    r"|(?<![^\s'\"=,(])(?![.~])[^\s/:'\"=,(]+/"  # Oracle's user/, which a path begins with, too
)
_OPTION = re.compile(
    r"((?<!\w)\w*(?:pwd|password|passwd|passphrase|secret|token|"
    r"(?:access|account|api|private)[ _-]?key))"
    r"\s*=\s*(?:\{[^}]*(?:\}\}[^}]*)*\}?|[^;&\n]*)",
    re.IGNORECASE,
)
"""The filter of passwords takes time in proportion to a text, whatever is in it: a table may quote
millions of letters, and how long that takes would tell which. So no search begins twice in a word,
and none looks ahead for an end that may be missing.
"""


def shorten(text: str, longest: int = 100) -> str:
    """Return the first letters of a user's text for a message, and that there were more."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def kind_of(given: object) -> str:
    """Return a text or number as it is, and of anything else its kind, which tells no value."""
    if isinstance(given, Decimal | Fraction):
        return shorten(str(given))
    if isinstance(given, str | int | float):
        try:
            return shorten(repr(given))
        except ValueError:  # more digits than Python writes
            return "a number of thousands of digits"
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__


def check_type(
    subject: str,
    given: object,
    kinds: type | tuple[type, ...],
    fitting: str,
    error: "type[HedgerowError]",
) -> None:
    """Raise unless a value is of a fitting type; called where it comes in, not where it is used."""
    if not isinstance(given, kinds):
        raise error(f"{subject} must be {fitting}, got {kind_of(given)}")


def as_list(subject: str, given: Any, fitting: str, error: "type[HedgerowError]") -> list[Any]:
    """Return the items of a list or other iterable; refuse a text, which is one item."""
    if not isinstance(given, str | bytes):
        try:
            return list(given)
        except TypeError:
            pass
    raise error(f"{subject} must be {fitting}, got {kind_of(given)}")


def without_passwords(text: str) -> str:
    """Return a text without what is, or may be, a password in an address, well-formed or not.

    Rather too much is cut than too little: from what begins as an address up to the last @ of the
    text, from ``user:`` or ``user/`` up to the last of the word, and of an option such as ``PWD=``
    up to the next semicolon.
    """
    words = re.sub(r"\S+", lambda word: _cut(_LOGIN, word[0], keep=False), _cut(_ADDRESS, text))
    return _OPTION.sub(r"\1=…", words)


def _cut(begins: re.Pattern[str], text: str, *, keep: bool = True) -> str:
    """Return a text without what stands between a beginning, itself kept or not, and the last @."""
    head, at, rest = text.rpartition("@")
    match = begins.search(head) if at else None
    if match is None:
        return text
    return f"{head[: match.end() if keep else match.start()]}…@{rest}"


def presentable(message: str) -> str:
    """Return a message without passwords, and the start and the end of what is too long."""
    message = without_passwords(message)
    half = LONGEST_WORD // 2

    def cut(match: re.Match[str]) -> str:
        return f"{match[0][:half]}…{match[0][-half:]}"

    quoted = rf"(?<!\w)'[^']{{{LONGEST_WORD + 1},}}'"
    message = re.sub(rf"\S{{{LONGEST_WORD + 1},}}|{quoted}", cut, message)
    if len(message) > LONGEST_SENTENCE:
        half = LONGEST_SENTENCE // 2
        message = f"{message[:half]} … {message[-half:]}"
    return message


class HedgerowError(Exception):
    """Any failure that Hedgerow explains in one sentence.

    Attributes:
        confidential: what the sentence must not say outside the boundary, such as a code that only
            the confidential table holds. The command line shows it on a terminal and nowhere else.
        exit_code: what the process returns: 2 for bad input, 1 for a failure of the machine.
        breaks: of a refusal by `outside_limits` the sentence that names the rule, which quotes no
            value, and the values; both are confidential unless the table is public.

    Example:
        >>> try:
        ...     hr.Rho(0.1)
        ... except hr.HedgerowError as error:
        ...     print(error)
        rho must be exact, ...
    """

    exit_code = 2

    def __init__(
        self,
        message: str,
        *,
        confidential: str | None = None,
        breaks: tuple[str, str | None] | None = None,
    ) -> None:
        super().__init__(presentable(message))
        self.confidential = None if confidential is None else presentable(confidential)
        self.breaks = breaks

    def within(self, where: str, advice: str = "") -> Self:
        """Return the same error, with what stands before its sentence and behind it.

        A refusal by `outside_limits` stays as it is: where it arose would tell what is wrong.
        """
        sentence = str(self) if self.breaks else f"{where}{self}{advice}"
        return type(self)(sentence, confidential=self.confidential, breaks=self.breaks)


class TableError(HedgerowError, ValueError):
    """A table, an axis or a tree that cannot be what it says it is.

    Example:
        >>> try:
        ...     hr.Axis.from_frame("town", {"town": []}, levels=["town"])
        ... except hr.TableError as error:
        ...     print(error)
        the list of areas of axis 'town' is empty; it needs one row an area
    """


def outside_limits(
    subject: str, rule: str, values: str | None = None, *, column: str | None = None
) -> TableError:
    """Return the error for a confidential table, which says only that it breaks some rule.

    Its sentence is the same whatever is wrong, and wherever: not even the table's name is in it.
    """
    sentence = f"{subject} {rule}" if column is None else f"{subject}: column {column!r} {rule}"
    detail = sentence if values is None else f"{sentence} ({values})"
    return TableError(f"the table {OUTSIDE}", confidential=detail, breaks=(sentence, values))


def reads_table(read: Callable[P, T]) -> Callable[P, T]:
    """Return a function that reads a confidential table, as a door that only sentences leave by.

    Libraries quote what they read: in their messages, in the error that one arose from, in the
    variables of the frames that it passed. So an error leaves as a new one, raised where no other
    is being handled; and one that nobody foresaw is the refusal of `outside_limits`.
    """

    @wraps(read)
    def door(*given: P.args, **named: P.kwargs) -> T:
        try:
            return read(*given, **named)
        except HedgerowError as error:
            failure: HedgerowError = error.within("")
        except MemoryError:
            failure = MachineError("the table cannot be read: out of memory")
        except Exception as error:  # noqa: BLE001 - whatever an unforeseen one says may quote it
            reason = getattr(error, "strerror", None)  # the system's words, which quote nothing
            if reason:
                failure = MachineError(f"the table cannot be read: {reason}")
            else:
                said = f"{type(error).__name__}: {error}"
                failure = outside_limits("the table", "cannot be read to its end", said)
        try:
            raise failure
        finally:
            del failure  # which holds this frame

    return door


@contextmanager
def of_public_table(prefix: str = "") -> Iterator[None]:
    """Let errors of a public table name the rule that it breaks, after a prefix."""
    try:
        yield
    except TableError as error:
        sentence, values = error.breaks or (str(error), error.confidential)
        raise TableError(f"{prefix}{sentence}", confidential=values) from None


class NoiseError(HedgerowError, ValueError):
    """A noise parameter outside its domain.

    Example:
        >>> try:
        ...     hr.DiscreteLaplace(-1)
        ... except hr.NoiseError as error:
        ...     print(error)
        scale must be above 0, got -1
    """


class BudgetError(HedgerowError, ValueError):
    """A budget, a neighbouring relation or a guarantee that does not exist.

    Example:
        >>> try:
        ...     hr.Epsilon("0")
        ... except hr.BudgetError as error:
        ...     print(error)
        epsilon must be above 0, got 0
    """


class EstimateError(HedgerowError, ValueError):
    """Noisy counts that no estimate can be made from.

    Example:
        >>> try:
        ...     hr.Sparse(penalty=-1)
        ... except hr.EstimateError as error:
        ...     print(error)
        a sparse estimator's penalty must be a number from 0 on, got -1; 0.5 is usual
    """


class PlanError(HedgerowError, ValueError):
    """A plan that contradicts itself or the table.

    Example:
        >>> try:
        ...     hr.Shares([])
        ... except hr.PlanError as error:
        ...     print(error)
        shares must sum to exactly 1, got 0; write thirds as 1/3
    """


class ReleaseError(HedgerowError, ValueError):
    """A release that cannot be made, read or confirmed.

    Example:
        >>> try:
        ...     hr.read_release("nowhere")
        ... except hr.ReleaseError as error:
        ...     print(error)
        'nowhere' is no release directory: nothing is there
    """


class SpecError(HedgerowError, ValueError):
    """A release file that breaks a rule of its format.

    Example:
        >>> from hedgerow.spec.release_spec import ReleaseSpec
        >>> try:
        ...     ReleaseSpec("no-such-release.toml")
        ... except hr.SpecError as error:
        ...     print(error)
        cannot read the file 'no-such-release.toml': No such file or directory
    """


class MachineError(HedgerowError, OSError):
    """The machine failed us: disk, memory, permissions.

    Example:
        >>> tree = hr.Tree([hr.Axis.from_frame("town", {"town": ["a", "b"]}, levels=["town"])])
        >>> try:
        ...     hr.Counts.from_frame(tree, {"town": ["a"]}, memory=1000)
        ... except hr.MachineError as error:
        ...     print(error)
        the table needs more memory than there is, ...
    """

    exit_code = 1


@contextmanager
def machine_errors(subject: str) -> Iterator[None]:
    """Turn failures of disk and memory into one sentence."""
    try:
        yield
    except MachineError:
        raise
    except OSError as error:
        raise MachineError(f"{subject}: {error.strerror or error}") from error
    except MemoryError as error:
        raise MachineError(f"{subject}: out of memory") from error


def did_you_mean(given: object, names: Iterable[str], cutoff: float = 0.65) -> str:
    """Return ``; did you mean 'trips'?``, or nothing where no known name is like the given one."""
    like = nearest(given, names, cutoff)
    return "" if like is None else f"; did you mean {like!r}?"


def nearest(given: object, names: Iterable[str], cutoff: float = 0.65) -> str | None:
    """Return the known name that is most like the given one: the only one it begins, if any."""
    folded = {name.casefold(): name for name in names}
    text = str(given).casefold()
    begun = [name for name in folded if len(text) > 2 and name.startswith(text)]
    matches = begun if len(begun) == 1 else difflib.get_close_matches(text, folded, 1, cutoff)
    return folded[matches[0]] if matches else None
