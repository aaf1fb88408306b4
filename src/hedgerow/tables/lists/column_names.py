"""What the names of columns say: what a column holds, and which columns of two tables are alike."""

import re
from dataclasses import dataclass
from typing import Literal

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
    words: tuple[str, ...]
    kind: Kind | None

    @classmethod
    def of(cls, text: str) -> "ColumnName":
        """Return the name that a text is."""
        parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
        words, kind = list[str](), None
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

    def role(self, listed: "ColumnName") -> tuple[str, ...] | None:
        """Return the words before or behind those of a list's column: none where they are alike.

        None: this column's name is not made from the list's.
        """
        mine, theirs = self.words, listed.words
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


def _is_acronym(short: tuple[str, ...], words: tuple[str, ...]) -> bool:
    """Return whether a word is made of the first letters of others, of which one may be missing.

    "lsoa" of "lower layer super output areas".
    """
    if len(short) != 1 or not 2 <= len(short[0]) <= len(words):
        return False
    initials = "".join(word[0] for word in words)
    shorter = {initials[:i] + initials[i + 1 :] for i in range(1, len(initials))}
    return short[0] == initials or (len(short[0]) > 2 and short[0] in shorter)
