"""Whether a text is one SELECT, whichever way a database may read it.

A query runs as ``SELECT … FROM (query) AS selected``, so one that closes the parenthesis early
could append any statement. Databases differ in where a text or a comment ends. So a query must be
one SELECT under every reading that its database may have, and what a database may read in two ways
(``E'…'`` escapes, ``'…'`` may not) is refused wherever it stands.
"""

import re
from collections.abc import Iterator
from enum import Enum
from itertools import product

from hedgerow.declared import frozen
from hedgerow.errors import TableError

BEGINNINGS = {"SELECT", "WITH", "VALUES", "TABLE"}
ONE = "query must be one SELECT"
RULE = (
    f"{ONE} (or WITH … SELECT, or VALUES) without a semicolon in between, its "
    "parentheses, quotes and comments closed"
)

_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)
_HIGH = r"\x80-\U0010ffff"
_TAG = re.compile(rf"\$(?:[A-Za-z_{_HIGH}][A-Za-z0-9_{_HIGH}]*)?\$")
_LINE, _LONG_LINE = re.compile(r"[^\n\r]*"), re.compile(r"[^\n]*")


@frozen
class Doubt:
    """Letters that end or begin a text or comment in one database and not in the next.

    Attributes:
        letters: where they stand, in capitals or not.
        change: what to write instead.
    """

    letters: re.Pattern[str]
    change: str


def _doubt(letters: str, change: str) -> Doubt:
    return Doubt(re.compile(letters, re.IGNORECASE), change)


UNSEEN = _doubt(
    r"[^\S \t\r\n]|[\0-\x08\x0e-\x1f\x7f-\x9f\u180e\u2028\u2029\ufeff\ud800-\udfff]",
    "use no blanks but spaces, tabs and line ends, and no control characters",
)
RUN = _doubt(r"/\*\w*!", "begin no comment with /*!, /*M! or the like, which some databases run")
SUBSTITUTED = _doubt(
    r"[$#]\{", "write the value itself in place of ${…}, which some databases replace"
)
ESCAPED = _doubt(
    r"\\['\"`]",
    "put no backslash directly before a quote; write a quote in a text twice, and a backslash at "
    "its end as chr(92) or char(92)",
)
VARIABLE = _doubt(
    # SQLite reads $a(…) as one variable; it stops at the cast ::name(…)
    rf"(?:[$@#]|(?<!:):(?!:))[\w$:{_HIGH}]+\(|:::",
    "put no parenthesis directly after a name that begins with $, @, # or :",
)
DOLLARS = _doubt(
    # also what H2, ClickHouse or Snowflake take for a tag, and PostgreSQL does not
    rf"\$[\w{_HIGH}]*\$",
    "write texts between single quotes, not between $$ or $tag$, and have no other $…$ in it",
)
TAGGED = (
    "leave a blank before a text between $$ or $tag$, have only ASCII letters in its tag, and no "
    "name with two dollars"
)
ORACLE = _doubt(
    r"(?<![^\W\d])N?Q'(?=\S)",
    "write texts as '…', not as q'[…]', and leave a blank after the text 'q'",
)
TRIPLE = _doubt(
    r"'''|\"\"\"", "have no three quotes in a row; a quote in a text is also chr(39) or char(39)"
)
CURLY = _doubt("[‘“]", "have no ‘ or “, with which texts begin in ClickHouse")


class Brackets(Enum):
    """What ``[`` is: a sign, or the beginning of a name in which ``]]`` ends it or is a ``]``."""

    SIGN = 0
    NAME = 1
    NAME_WITH_DOUBLED = 2


@frozen(kw_only=True)
class Reading:
    """What begins and ends a text, a quoted name or a comment, besides ``'``, ``"`` and ``/*``.

    Attributes:
        dollars: ``$tag$`` begins a text that ends with ``$tag$``.
        nested: a comment may hold comments.
        brackets: what ``[`` is.
        backticks: they quote a name.
        hashes: ``#`` begins a comment to the end of the line.
        slashes: ``//`` does (Snowflake, H2, Cassandra).
        braces: ``{`` begins a comment that ends with ``}`` (Informix).
        spaced: ``--`` begins one only if a space follows.
        returns: a carriage return ends a line.
    """

    dollars: bool = False
    nested: bool = False
    brackets: Brackets = Brackets.SIGN
    backticks: bool = False
    hashes: bool = False
    slashes: bool = False
    braces: bool = False
    spaced: bool = False
    returns: bool = False


@frozen
class Dialect:
    """How a database may read a text.

    Attributes:
        readings: one of them is its own, wherever there is no doubt.
        doubts: what it may read either way.
    """

    readings: tuple[Reading, ...]
    doubts: tuple[Doubt, ...]


SQLITE = Dialect(
    (Reading(brackets=Brackets.NAME, backticks=True),), (UNSEEN, RUN, SUBSTITUTED, VARIABLE)
)
POSTGRESQL = Dialect(
    (Reading(dollars=True, nested=True, returns=True),), (UNSEEN, RUN, SUBSTITUTED, ESCAPED)
)
ANY = Dialect(
    tuple(
        Reading(
            nested=a, backticks=b, hashes=c, slashes=d, braces=e, spaced=f, returns=g,
            brackets=brackets,
        )
        for a, b, c, d, e, f, g in product((False, True), repeat=7)
        for brackets in Brackets
    ),
    (UNSEEN, RUN, SUBSTITUTED, ESCAPED, VARIABLE, DOLLARS, ORACLE, TRIPLE, CURLY),
)  # fmt: skip


def one_select(sql: str, dialect: Dialect) -> str:
    """Return the query without a final semicolon; raise unless every reading is one SELECT."""
    text = sql.strip(" \t\r\n").removesuffix(";").rstrip(" \t\r\n")
    for doubt in dialect.doubts:
        if doubt.letters.search(text):
            raise _doubtful(doubt.change)
    if not all(_is_one(text, reading) for reading in dialect.readings):
        raise TableError(RULE)
    return text


def _doubtful(change: str) -> TableError:
    return TableError(f"{ONE} however its database reads it: {change}")


def _is_one(sql: str, reading: Reading) -> bool:
    """Return whether it is one statement that may stand in parentheses and begins as a SELECT."""
    depth, first = 0, ""
    for word in _words(sql, reading):
        depth += (word == "(") - (word == ")")
        if word in {";", ""} or depth < 0:
            return False
        if not first and word != "(":
            first = word.upper()
    return depth == 0 and first in BEGINNINGS


def _words(sql: str, reading: Reading) -> Iterator[str]:
    """Yield words and single signs outside of texts, quoted names and comments.

    A text or quoted name yields a ``'``; one that does not end, or such a comment, yields ``""``.
    """
    place = 0
    while place < len(sql):
        end = _after_comment(sql, place, reading)
        if end == place:
            end = _after_quoted(sql, place, reading)
            if end is None or end > place:
                yield "" if end is None else "'"
            else:
                match = _WORD.match(sql, place)
                word = match[0] if match else sql[place]
                end = place + len(word)
                if not word.isspace():
                    yield word
        if end is None:
            yield ""
            return
        place = end


def _after_quoted(sql: str, place: int, reading: Reading) -> int | None:
    """Return the end of the text or name that begins here: here if none, None if it never ends."""
    sign = sql[place]
    tag = _TAG.match(sql, place) if reading.dollars else None
    if tag is not None:
        before = sql[place - 1 : place]
        if not tag[0].isascii() or re.match(rf"[\w${_HIGH}]", before):
            raise _doubtful(TAGGED)
        end = sql.find(tag[0], tag.end())
        return None if end < 0 else end + len(tag[0])
    is_quoted = {"'": True, '"': True, "`": reading.backticks}
    is_quoted["["] = reading.brackets is not Brackets.SIGN
    if not is_quoted.get(sign):
        return place
    closing = "]" if sign == "[" else sign
    doubled = sign != "[" or reading.brackets is Brackets.NAME_WITH_DOUBLED
    at = place + 1
    while at < len(sql):
        two = sql[at : at + 2]
        if doubled and two == 2 * closing:
            at += 2
        elif two[0] == closing:
            return at + 1
        else:
            at += 1
    return None


def _after_comment(sql: str, place: int, reading: Reading) -> int | None:
    """Return the end of the comment that begins here: here if none, None if it never ends."""
    dashes = sql.startswith("--", place)
    dashes &= not reading.spaced or not sql[place + 2 : place + 3].strip()
    slashes = reading.slashes and sql.startswith("//", place)
    if dashes or slashes or (reading.hashes and sql[place] == "#"):
        line = (_LINE if reading.returns else _LONG_LINE).match(sql, place)
        return line.end() if line else place
    if reading.braces and sql[place] == "{":
        return sql.find("}", place) + 1 or None
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
