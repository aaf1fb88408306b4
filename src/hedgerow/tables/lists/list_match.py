"""Which columns of a table hold the codes of which public lists, by their names alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from hedgerow.tables.lists.column_names import ColumnName
from hedgerow.tables.lists.list_shape import ListShape
from hedgerow.text import Texts

_ROLES = {
    **dict.fromkeys(("o", "orig"), "origin"),
    **dict.fromkeys(("d", "dest"), "destination"),
}


@dataclass(frozen=True)
class Match:
    """Columns of the table that are called like those of a list.

    Attributes:
        shape: the list.
        role: what the table's names have besides the list's: ``("home",)``.
        columns: of the table: one, or two coordinates.
        listed: those of the list.
    """

    shape: ListShape
    role: Texts
    columns: Texts
    listed: Texts

    @property
    def name(self) -> str:
        """What an axis of it is called: after its role, or else after the list's column."""
        role = "_".join(self.role)
        own = self.shape.column(self.listed[0]).words if len(self.listed) == 1 else ("square",)
        stem = "_".join(own) or "place"
        return (_ROLES.get(role, role) if len(self.role) in {1, 2} else stem)[:60]

    def is_called(self, name: str) -> bool:
        """Return whether a name is that of its axis, or of its role."""
        return name in {self.name, "_".join(self.role)}


def matches(names: Sequence[str], shapes: Sequence[ListShape]) -> list[Match]:
    """Return which columns of a table hold the codes of which lists.

    Of columns that differ by their level alone (state, county), or hold codes and names of the
    same, the one of the most areas. A column of the table is that of one list.
    """
    by_list = dict[tuple[int, Texts], list[tuple[str, ColumnName]]]()
    for name in names:
        mine = ColumnName.of(name)
        best = []
        for place, shape in enumerate(shapes):
            for listed in shape.columns:
                role = mine.role(listed)
                if role is None or shape.is_measure(listed):
                    continue
                kinds = mine.kind is not None and mine.kind != listed.kind
                rank = (len(role), kinds, listed.kind == "name", listed.kind != "code")
                best.append((rank, place, listed))
        if best:
            _, place, listed = min(best, key=lambda one: one[:2])
            by_list.setdefault((place, mine.role(listed) or ()), []).append((name, listed))
    groups = []
    for (place, role), pairs in by_list.items():
        shape = shapes[place]
        name, listed = max(
            pairs,
            key=lambda pair: (shape.sizes[pair[1].text], ColumnName.of(pair[0]).kind == "code"),
        )
        groups.append(Match(shape, role, (name,), (listed.text,)))
    for shape in shapes:
        if not any(group.shape is shape for group in groups):
            groups += _squares(names, shape)
    return groups


def _squares(names: Sequence[str], shape: ListShape) -> list[Match]:
    """Return the pairs of columns that are called like a list's coordinates."""
    if shape.coordinates is None:
        return []
    x, y = (
        {
            role: name
            for name in names
            if (role := ColumnName.of(name).role(shape.column(listed))) is not None
        }
        for listed in shape.coordinates
    )
    return [Match(shape, role, (x[role], y[role]), shape.coordinates) for role in x if role in y]


def is_header(names: Sequence[str], shape: ListShape) -> bool:
    """Return whether a line has the name of a column of a list, word by word."""
    mine = [ColumnName.of(name) for name in names]
    theirs = [ColumnName.of(column.text) for column in shape.columns]
    return any(
        one.text.casefold() == other.text.casefold() or (one.words and one.words == other.words)
        for one in mine
        for other in theirs
    )
