"""What a table is, in its publisher's words: title, unit, source, and labels; all of it public."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, fields

from hedgerow.arrays import Levels
from hedgerow.declared import frozen
from hedgerow.errors import TableError, as_list, did_you_mean, kind_of
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from hedgerow.text import Json, TextByName, Texts, is_visible

LONGEST_TEXT, LONGEST_NOTE = 200, 4_000
MOST_NOTES, MOST_LABELS = 50, 1_000
"""Limits: letters of a text and of a note; how many notes, and labels of axes or levels."""

_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,5}")


@frozen
class Description:
    """What a table is, for whoever reads its release; no part of what is signed off.

    It stands in the manifest beside the plan, whose hash leaves it out, on the page and in every
    export. Everything in it is published as it is given.

    Attributes:
        title: of the table.
        unit: what a count counts, in the plural: ``"workers"``.
        publisher: who answers for the release.
        period: that the counts refer to: ``"2021"``, ``"week of 8 August 2021"``.
        notes: paragraphs.
        licence: its name or address.
        language: of all these texts, as a tag of BCP 47: ``"en"``, ``"pt-BR"``.
        axes: axis → what readers call it.
        levels: level, or ``axis.level`` where several axes have one of that name, → what readers
            call it. Columns of product axes are given labels here, too.

    Raises:
        TableError: a text that is none, is too long, or has control characters.

    Example:
        >>> described = hr.Description(title="Journeys to work", unit="workers")
        >>> described.title, described.unit, described.publisher
        ('Journeys to work', 'workers', '')
    """

    title: str = ""
    unit: str = ""
    publisher: str = ""
    period: str = ""
    notes: Texts = ()
    licence: str = ""
    language: str = ""
    axes: TextByName = field(default_factory=dict)
    levels: TextByName = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in TEXTS:
            _check_text(name, getattr(self, name), LONGEST_TEXT)
        if self.language and not _LANGUAGE.fullmatch(self.language):
            raise TableError(
                f'language must be a tag such as "en" or "pt-BR", got {self.language[:40]!r}'
            )
        notes = tuple(as_list("notes", self.notes, "a list of texts", TableError))
        if len(notes) > MOST_NOTES:
            raise TableError(f"notes has at most {MOST_NOTES} paragraphs, got {len(notes):,}")
        for number, note in enumerate(notes, start=1):
            _check_text(f"paragraph {number} of notes", note, LONGEST_NOTE, needed=True)
        object.__setattr__(self, "notes", notes)
        for name in ("axes", "levels"):
            given = getattr(self, name)
            if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
                raise TableError(
                    f"{name} must be a table of names and labels, got {kind_of(given)}"
                )
            if len(given) > MOST_LABELS:
                raise TableError(f"{name} has at most {MOST_LABELS:,} labels, got {len(given):,}")
            for key, label in given.items():
                subject = f"the label of {key[:80]!r} in {name}"
                _check_text(subject, label, LONGEST_TEXT, needed=True)
            object.__setattr__(self, name, dict(given))

    def __bool__(self) -> bool:
        return bool(self.to_dict())

    def to_dict(self) -> Json:
        """Return what is said as JSON; nothing of what is not."""
        every = {name: getattr(self, name) for name in TEXTS}
        every |= {"notes": list(self.notes), "axes": dict(self.axes), "levels": dict(self.levels)}
        return {each.name: every[each.name] for each in fields(self) if every[each.name]}

    @classmethod
    def from_dict(cls, described: object) -> "Description":
        """Return the description that `to_dict` gives.

        Raises:
            TableError: it gives none like it.
        """
        names = {each.name for each in fields(cls)}
        if not isinstance(described, dict) or not set(described) <= names:
            raise TableError("the description of the table has keys that no description has")
        made = cls(**described)
        if made.to_dict() != described:
            raise TableError("the description of the table is not as Hedgerow writes it")
        return made

    def check_names(self, tree: Tree) -> None:
        """Raise unless every label is of an axis, level or column of a tree.

        Raises:
            TableError: it is of none.
        """
        names = [
            name for axis in tree.axes for name in dict.fromkeys((*axis.levels, *_columns(axis)))
        ]
        full = [f"{axis.name}.{k}" for axis in tree.axes for k in (*axis.levels, *_columns(axis))]
        for kind, given, possible in (
            ("axis", self.axes, tree.axis_names),
            ("level", self.levels, [*names, *full]),
        ):
            for name in given:
                if name not in possible:
                    raise TableError(
                        f"no {kind} is called {name[:80]!r}; there are "
                        f"{', '.join(dict.fromkeys(possible))[:300]}"
                        f"{did_you_mean(name, possible)}"
                    )

    def axis_label(self, axis: Axis) -> str:
        """Return what readers call an axis."""
        return self.axes.get(axis.name, readable(axis.name))

    def level_label(self, axis: Axis, name: str) -> str:
        """Return what readers call a level or column of an axis, beside the axis's label."""
        return self.levels.get(f"{axis.name}.{name}", self.levels.get(name, readable(name)))

    def column_labels(self, tree: Tree) -> dict[str, str]:
        """Return for each column of a release's codes what readers call it, alone."""
        return {
            column: self.level_words(tree, axis, name)
            for axis in tree.axes
            for column, name in zip(axis.columns, _columns(axis) or axis.levels, strict=True)
        }

    def level_words(self, tree: Tree, axis: Axis, name: str) -> str:
        """Return what readers call a level or column of an axis, standing alone.

        A label that can mean no other axis says it all; otherwise the axis stands before it. What
        has no label is called as in the plan, in words.
        """
        label = self.level_label(axis, name)
        others = [each for each in tree.axes if each is not axis]
        shared = any(name in (*each.levels, *_columns(each)) for each in others)
        its_own = f"{axis.name}.{name}" in self.levels or (name in self.levels and not shared)
        is_twice = any(self.level_label(each, k) == label for each in others for k in each.levels)
        if (its_own and not is_twice) or len(tree.axes) == 1:
            return label
        if axis.name in self.axes or name in self.levels:
            return f"{self.axis_label(axis)}: {label}"
        return f"{self.axis_label(axis)} {label}"

    def cuboid_label(self, tree: Tree, levels: Levels) -> str:
        """Return a cuboid in readers' words: `Tree.name_of` with labels, or in words."""
        named = (self.level_words(tree, *each) for each in tree.split(levels))
        return " × ".join(named) or "total"

    def labels_of(self, tree: Tree, axis: Axis) -> list[str] | None:
        """Return what readers call the levels of an axis; None where it has no label of its own."""
        words = [self.level_words(tree, axis, level) for level in axis.levels]
        labelled = axis.name in self.axes or any(
            name in self.levels for level in axis.levels for name in (level, f"{axis.name}.{level}")
        )
        return words if labelled else None


_CODES = {"code", "codes", "maincode", "cd"}
"""Words that say that a column holds codes, which readers need not know."""
TEXTS = ("title", "unit", "publisher", "period", "licence", "language")


def readable(name: str) -> str:
    """Return the name of an axis, level or column as words, without the one for codes.

    Example:
        >>> from hedgerow.tables.description import readable
        >>> readable("SA2_CODE_2021"), readable("Ethnic group Code"), readable("postcode")
        ('SA2 2021', 'Ethnic group', 'postcode')
    """
    words = name.replace("_", " ").split()
    kept = [word for word in words if word.casefold() not in _CODES] or words
    return " ".join(kept) or name


def paragraphs(text: str) -> Texts:
    """Return the paragraphs of a text, which blank lines part, each as one line."""
    parts = re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.replace("\r\n", "\n"))
    lines = (" ".join(part.split()) for part in parts)
    return tuple(line for line in lines if line)


def _columns(axis: Axis) -> Sequence[str]:
    """Return the columns of a product axis, which are no levels."""
    return () if axis.product is None else axis.columns


def _check_text(subject: str, given: object, longest: int, *, needed: bool = False) -> None:
    if not isinstance(given, str):
        raise TableError(f"{subject} must be text, got {kind_of(given)}")
    if needed and not given:
        raise TableError(f"{subject} is empty; leave it out")
    if len(given) > longest:
        raise TableError(f"{subject} has {len(given):,} letters, and at most {longest:,} are "
                         "allowed; shorten it")  # fmt: skip
    if not is_visible(given):
        raise TableError(
            f"{subject} must have no line breaks, control characters or others that are not seen, "
            f"got {given[:100]!r}"
        )
