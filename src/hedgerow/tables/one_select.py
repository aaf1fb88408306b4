"""Whether a text is one SELECT, whichever way a database may read it.

A query is put into parentheses, `SELECT … FROM (query) AS selected`, so one that closes them may go
on with anything: ``SELECT 1) AS x; ATTACH …; --``. Databases differ in what a backslash, a dollar
or a bracket means, and whoever knows better than we do where a text ends can hide a statement
behind it. So a query has to be one SELECT under every reading that its database may have.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product

from hedgerow.errors import TableError

BEGINNINGS = {"SELECT", "WITH", "VALUES", "TABLE"}
RULE = (
    "query must be one SELECT (or WITH … SELECT, or VALUES) without a semicolon in between, its "
    "parentheses, quotes and comments closed"
)
UNREADABLE = re.compile(r"\0|/\*!|\bN?Q'", re.IGNORECASE)
"""Comments that MySQL runs, and texts of Oracle's that end where nobody else thinks they do."""

_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_TAG = re.compile(r"(?<![\w$])\$(?:[^\W\d]\w*)?\$")
_LINE, _LONG_LINE = re.compile(r"[^\n\r]*"), re.compile(r"[^\n]*")


class Brackets(Enum):
    """What ``[`` is: a sign, or the beginning of a name in which ``]]`` ends it or is a ``]``."""

    SIGN = 0
    NAME = 1
    NAME_WITH_DOUBLED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    r"""What begins and ends a text, a quoted name or a comment, besides ``'``, ``"`` and ``/*``.

    Attributes:
        backslashes: ``\'`` does not end a text.
        dollars: ``$tag$`` begins a text that ends with ``$tag$``.
        nested: a comment may hold comments.
        brackets: what ``[`` is.
        backticks: they quote a name.
        hashes: ``#`` begins a comment to the end of the line.
        spaced: ``--`` begins one only if a space follows.
        returns: a carriage return ends a line.
    """

    backslashes: bool = False
    dollars: bool = False
    nested: bool = False
    brackets: Brackets = Brackets.SIGN
    backticks: bool = False
    hashes: bool = False
    spaced: bool = False
    returns: bool = False


SQLITE = (Reading(brackets=Brackets.NAME, backticks=True),)
POSTGRESQL = tuple(
    Reading(backslashes=set_so, dollars=True, nested=True, returns=True) for set_so in (False, True)
)
ANY = tuple(
    Reading(
        backslashes=a, dollars=b, nested=c, brackets=brackets, backticks=d, hashes=e, spaced=f,
        returns=g,
    )
    for a, b, c, d, e, f, g in product((False, True), repeat=7)
    for brackets in Brackets
)  # fmt: skip


def one_select(sql: str, readings: Iterable[Reading]) -> str:
    """The query, without the semicolon at its end, if it is one SELECT under all readings.

    Raises:
        TableError: it is not; the query itself is not quoted.
    """
    found = sql.strip().removesuffix(";").rstrip()
    if UNREADABLE.search(found) or not all(_is_one(found, reading) for reading in readings):
        raise TableError(RULE)
    return found


def _is_one(sql: str, reading: Reading) -> bool:
    """Whether it is one statement that may stand in parentheses and begins as a SELECT does."""
    depth, first = 0, ""
    for word in _words(sql, reading):
        depth += (word == "(") - (word == ")")
        if word in {";", ""} or depth < 0:
            return False
        if not first and word != "(":
            first = word.upper()
    return depth == 0 and first in BEGINNINGS


def _words(sql: str, reading: Reading) -> Iterator[str]:
    """Words and single signs outside of texts, quoted names and comments, for each of the first two
    a ``'``; ``""`` for one of the three that does not end.
    """  # noqa: D205
    place = 0
    while place < len(sql):
        end = _after_comment(sql, place, reading)
        if end == place:
            end = _after_quoted(sql, place, reading)
            if end is None or end > place:
                yield "" if end is None else "'"
            else:
                found = _WORD.match(sql, place)
                word = found[0] if found else sql[place]
                end = place + len(word)
                if not word.isspace():
                    yield word
        if end is None:
            yield ""
            return
        place = end


def _after_quoted(sql: str, place: int, reading: Reading) -> int | None:
    """Where the text or name that begins at a place ends: there if none does, None if nowhere."""
    sign = sql[place]
    tag = _TAG.match(sql, place) if reading.dollars else None
    if tag is not None:
        end = sql.find(tag[0], tag.end())
        return None if end < 0 else end + len(tag[0])
    is_quoted = {"'": True, '"': True, "`": reading.backticks}
    is_quoted["["] = reading.brackets is not Brackets.SIGN
    if not is_quoted.get(sign):
        return place
    closing = "]" if sign == "[" else sign
    escaped = reading.backslashes and sign in "'\""
    doubled = sign != "[" or reading.brackets is Brackets.NAME_WITH_DOUBLED
    at = place + 1
    while at < len(sql):
        two = sql[at : at + 2]
        if (escaped and two[0] == "\\") or (doubled and two == 2 * closing):
            at += 2
        elif two[0] == closing:
            return at + 1
        else:
            at += 1
    return None


def _after_comment(sql: str, place: int, reading: Reading) -> int | None:
    """Where the comment that begins at a place ends: there if none does, None if nowhere."""
    dashes = sql.startswith("--", place)
    dashes &= not reading.spaced or not sql[place + 2 : place + 3].strip()
    if dashes or (reading.hashes and sql[place] == "#"):
        line = (_LINE if reading.returns else _LONG_LINE).match(sql, place)
        return line.end() if line else place
    if not sql.startswith("/*", place):
        return place
    depth, at = 0, place
    while at < len(sql):
        two = sql[at : at + 2]
        if two == "/*" and (reading.nested or depth == 0):
            depth, at = depth + 1, at + 2
        elif two == "*/":
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    return None
