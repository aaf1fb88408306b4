"""What the names of columns say: what a column holds, and which columns of two tables are alike."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hedgerow.text import Texts

Kind = Literal["code", "name"]

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("code", "codes", "maincode", "cd", "id", "key"), "code"),
    **dict.fromkeys(("name", "names", "nm", "label", "title", "description"), "name"),
}
_YEAR = re.compile(r"(?:19|20)\d\d")
_SHORT = re.compile(r"(?P<what>[a-z]{2,}?|[a-z]+\d)(?P<year>\d\d)?(?P<kind>cd|nmw?)")
"""As Britain's lists have them: lsoa21cd, ladnm, and in Welsh ladnmw."""
_DATED = re.compile(r"(geoid|geocode|code|name|aland|awater|pop|housing|intptlat|intptlon)\d\d")
"""A word with the two digits of a year: GEOID20, SA2_CODE21, ALAND20."""

_COUNTS = {
    "n", "count", "counts", "obs_value", "observation", "people", "persons", "records",
    "population", "residents", "inhabitants", "households", "trips", "flow", "flows", "visits",
    "cases", "patients",
}  # fmt: skip
"""What columns of numbers of records are often called."""
_UNITS = {
    "person", "people", "individual", "patient", "resident", "citizen", "member", "employee",
    "worker", "student", "pupil", "customer", "client", "user", "respondent", "participant",
    "taxpayer", "household", "subject", "beneficiary", "claimant", "traveller", "passenger",
}  # fmt: skip
"""Who may have several records, where a column tells one from another."""
_NUMBERS = {"age", "income", "wage", "wages", "salary", "earnings", "rent", "turnover", "duration"}
"""What columns of numbers are often called."""
_NUMBERED = {"number", "no", "nr", "num", "uid", "pid"}
_PERSONAL = {"pid", "uid", "ssn", "nino"}


def count_among(names: Iterable[str]) -> str | None:
    """Return the only column that is called like a number of records."""
    fitting = [name for name in names if name.casefold() in _COUNTS]
    return fitting[0] if len(fitting) == 1 else None


def unit_among(names: Iterable[str]) -> str | None:
    """Return the one column whose name says that it identifies persons or other units, or None.

    Example:
        >>> from hedgerow.tables.lists.column_names import unit_among
        >>> unit_among(["ward", "patient_id", "age"])
        'patient_id'
    """
    fitting = [name for name in names if _is_unit(ColumnName.of(name))]
    return fitting[0] if len(fitting) == 1 else None


def numbers_among(names: Iterable[str]) -> list[str]:
    """Return the columns that are called like a number."""
    return [name for name in names if name.casefold() in _NUMBERS]


def _is_unit(name: "ColumnName") -> bool:
    words = set(name.words) - _NUMBERED
    if name.text.casefold() in _COUNTS or name.kind == "name":
        return False
    return name.text.casefold() in _PERSONAL or (len(words) == 1 and words <= _UNITS)


@dataclass(frozen=True)
class ColumnName:
    """The name of a column, read word by word.

    Attributes:
        text: as it is written.
        words: in lower case, without years and without the word for what the column holds.
        kind: "code" or "name", where a word says so.

    Example:
        >>> from hedgerow.tables.lists.column_names import ColumnName
        >>> ColumnName.of("SA2_CODE_2021").words, ColumnName.of("lsoa21nm").kind
        (('sa2',), 'name')
        >>> ColumnName.of("O_SA2").role(ColumnName.of("SA2_CODE_2021"))
        ('o',)
    """

    text: str
    words: Texts
    kind: Kind | None

    @classmethod
    def of(cls, text: str) -> "ColumnName":
        """Return the name that a text is."""
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
        words, kind = [], None
        for given in re.split(r"[\W_]+", parted.casefold()):
            dated = _DATED.fullmatch(given)
            word = given if dated is None else dated[1]
            short = _SHORT.fullmatch(word)
            if word in _KINDS:
                kind = kind or _KINDS[word]
            elif short is not None:
                kind = kind or _KINDS[short["kind"][:2]]
                words.append(short["what"])
            elif word and not _YEAR.fullmatch(word):
                words.append(word)
        return cls(text, tuple(words), kind)

    def role(self, listed: "ColumnName") -> Texts | None:
        """Return the words before or behind those of a list's column: none where they are alike.

        None: this column's name is not made from the list's.
        """
        mine = self.words
        theirs = listed.words
        if self.text.casefold() == listed.text.casefold():
            return ()
        if not theirs:
            return None
        if mine == theirs or _is_acronym(theirs, mine):
            return ()
        if mine[: len(theirs)] == theirs:
            return mine[len(theirs) :]
        if mine[-len(theirs) :] == theirs:
            return mine[: -len(theirs)]
        return None


def _is_acronym(short: Texts, words: Texts) -> bool:
    """Return whether a word is made of the first letters of others, of which one may be missing.

    "lsoa" of "lower layer super output areas".
    """
    if len(short) != 1 or not 2 <= len(short[0]) <= len(words):
        return False
    initials = "".join(word[0] for word in words)
    shorter = {initials[:i] + initials[i + 1 :] for i in range(1, len(initials))}
    return short[0] == initials or (len(short[0]) > 2 and short[0] in shorter)
