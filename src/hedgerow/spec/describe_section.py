"""``[describe]``: what the table is, for the readers of its release."""

from pydantic import Field

from hedgerow.errors import SpecError
from hedgerow.spec.toml_file import Section
from hedgerow.tables.description import Description, paragraphs
from hedgerow.text import TextByName


class DescribeSection(Section):
    """``[describe]``: title, unit, source and labels; all of it is published."""

    title: str = Field(default="", min_length=1)
    unit: str = Field(default="", min_length=1)
    publisher: str = Field(default="", min_length=1)
    period: str = Field(default="", min_length=1)
    notes: str = Field(default="", min_length=1)
    licence: str = Field(default="", min_length=1)
    language: str = Field(default="", min_length=1)
    axes: TextByName = Field(default_factory=dict)
    levels: dict[str, str | TextByName] = Field(default_factory=dict)


def described_by(section: DescribeSection) -> Description:
    """Return what a section says, or raise for a text that cannot be published.

    Raises:
        TableError: it has control characters, or is no language's tag.
        SpecError: a level with two labels.
    """
    said = section.model_dump(exclude={"notes", "levels"})
    levels: TextByName = {}
    for name, given in section.levels.items():
        inner = {name: given} if isinstance(given, str) else {}
        if isinstance(given, dict):  # as TOML reads ``origin.region = …``
            inner = {f"{name}.{level}": label for level, label in given.items()}
        for full, label in inner.items():
            if full in levels:
                raise SpecError(f"levels labels {full!r} twice; label it once")
            levels[full] = label
    return Description(**said, notes=paragraphs(section.notes), levels=levels)
