"""``[[public]]`` of a release file: cells that hold nobody, and bounds, from public files."""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from hedgerow.errors import SpecError
from hedgerow.plan.facts import RESTS, PublicTable, Zeros
from hedgerow.spec.toml_file import Section


class PublicSection(Section):
    """``[[public]]``: what public rules and files say of cells beside a spine."""

    zeros: Literal["unlisted", "listed"] | dict[str, list[str]] | None = None
    source: str | None = Field(None, min_length=1)
    at_least: str | None = None
    at_most: str | None = None

    @field_validator("zeros", mode="before")
    @classmethod
    def _is_known(cls, given: object) -> object:
        """Refuse what is neither a rule nor the name of what a list leaves empty."""
        rule = isinstance(given, dict) and all(
            isinstance(codes, list) and all(isinstance(code, str) for code in codes)
            for codes in given.values()
        )
        if rule or (isinstance(given, str) and given in RESTS):
            return given
        raise PydanticCustomError(
            "zeros",
            'must be "unlisted" or "listed" with a source, or columns with lists of codes, such as '
            '{hhgq = ["nursing"], votingage = ["minor"]}',
        )

    @field_validator("source")
    @classmethod
    def _is_file(cls, source: str) -> str:
        """Refuse a URL, which may hold a password, without quoting it."""
        if "://" in source:
            raise PydanticCustomError("url", "public facts are files, no database; export it first")
        return source


def public_fact(section: PublicSection, folder: Path) -> Zeros | PublicTable:
    """Return the fact of a section; its file is relative to a folder, and not yet read."""
    if section.source is None:
        if not isinstance(section.zeros, dict) or section.at_least or section.at_most:
            raise SpecError(
                "[[public]] without a source is a rule, and has zeros alone: columns with lists of "
                'codes, such as {hhgq = ["nursing"], votingage = ["minor"]}'
            )
        return Zeros(section.zeros)
    if isinstance(section.zeros, dict):
        raise SpecError(
            '[[public]] zeros must be "unlisted" or "listed" with a source; a rule is a [[public]] '
            "of its own"
        )
    given = section.zeros, section.at_least, section.at_most
    return PublicTable(folder / section.source, *given)
