"""The texts of all pages: one file a language, the same keys in each.

A text is plain or HTML of ours, with ``{name}`` where a value goes. One that depends on a number is
a table of ``one`` and ``other``, chosen by the value ``n``. What is put in is escaped by whoever
gives it.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from hedgerow.declared import frozen
from hedgerow.text import Json, TextByName, Texts

Text = str | TextByName

USUAL = "en"
FORMS = {"one", "other"}

_GAP = re.compile(r"\{(\w+)\}")
_NUMBER_MARK = re.compile(r"(?<=\d)[,.](?=\d)")


@frozen(eq=False)
class Catalogue:
    """The texts of the pages in one language.

    Attributes:
        language: its tag, as a page's ``lang``.
        texts: by key; the keys of nested tables are joined by dots.
    """

    language: str
    texts: Mapping[str, Text]

    def __call__(self, key: str, **values: str | int) -> str:
        """Return a text with its values put in; whole numbers as people write them.

        Args:
            key: of the text.
            values: HTML, or text where the text stands in none; ``n`` chooses the form.
        """
        text = self.texts[key]
        if not isinstance(text, str):
            singular = str(self.texts["number.singular"]).split()
            text = text["one" if str(values["n"]) in singular else "other"]

        def put(gap: re.Match[str]) -> str:
            value = values[gap[1]]
            return self.number(value) if isinstance(value, int) else value

        return _GAP.sub(put, text)

    def number(self, value: int) -> str:
        """Return a whole number with marks between its thousands: ``10,533,470``."""
        return self.numeral(f"{value:,}")

    def numeral(self, english: str) -> str:
        """Return a number that is written the English way as this language writes it."""
        marks = {",": str(self.texts["number.thousands"]), ".": str(self.texts["number.decimal"])}
        return _NUMBER_MARK.sub(lambda mark: marks[mark[0]], english)

    def percent(self, english: str) -> str:
        """Return a percentage; its number is written the English way."""
        return self("number.percent", number=self.numeral(english))

    def between(self, low: int, high: int) -> str:
        """Return an interval in words."""
        if low == 0:
            return self("script.at_most", high=high)
        return self("script.from_to", low=low, high=high)

    def joined(self, words: Sequence[str]) -> str:
        """``a, b and c``."""
        return self("list.last").join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)

    def script(self, *pages: str) -> dict[str, Text]:
        """Return the texts of the scripts that all pages share and of those of some, by key."""
        begins = tuple(f"{each}." for each in ("script", *(f"{page}.script" for page in pages)))
        return {
            key.rpartition("script.")[2]: text
            for key, text in self.texts.items()
            if key.startswith(begins)
        }


@cache
def languages() -> Texts:
    """Return the languages that there is a catalogue of."""
    names = (each.name for each in files("hedgerow.pages").joinpath("catalogue").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def catalogue(language: str = "") -> Catalogue:
    """Return the texts in a language; in English where there are none in it.

    Args:
        language: a tag of BCP 47, of which the first part counts; empty where nobody chose.
    """
    own = language.partition("-")[0].lower()
    name = own if own in languages() else USUAL
    text = files("hedgerow.pages").joinpath("catalogue", f"{name}.toml").read_text("utf-8")
    return Catalogue(name, dict(_flat(tomllib.loads(text))))


def _flat(table: Json, above: str = "") -> list[tuple[str, Text]]:
    texts: list[tuple[str, Text]] = []
    for name, value in table.items():
        is_text = isinstance(value, str) or set(value) == FORMS
        texts += [(above + name, value)] if is_text else _flat(value, f"{above}{name}.")
    return texts
