"""Which column of a lookup is what: codes of an axis, areas, names of areas.

Codes stand in the columns that the release calls so (or those given as such columns). Of the others
a column of names is one whose header is that of codes but for the word that says so: ``PCON25NM``
beside ``PCON25CD``, ``seat_name`` beside ``seat``. What is left is the column of areas, or the one
that is given.
"""

from collections.abc import Sequence

from hedgerow.declared import frozen
from hedgerow.errors import TableError, did_you_mean, shorten
from hedgerow.tables.lists.column_names import ColumnName
from hedgerow.tables.tree import TAKEN, Tree
from hedgerow.text import TextByName, Texts


@frozen
class LookupColumns:
    """The columns of a lookup.

    Attributes:
        axis: its number, 0..A−1.
        level: 1..L, whose codes the lookup has.
        codes: its columns of these codes.
        area: its column of areas.
        names: its column of their names, if there is one.
    """

    axis: int
    level: int
    codes: Texts
    area: str
    names: str | None

    @classmethod
    def of(
        cls,
        tree: Tree,
        headers: Sequence[str],
        area: str | None,
        names: str | None,
        codes: TextByName,
        subject: str,
    ) -> "LookupColumns":
        """Return which of a lookup's headers are what; arguments as in `Lookup.of`.

        Raises:
            TableError: no column of an axis, or of several; no column of areas, or several; a level
                that the release has not.
        """
        # Header → the release's column of the codes, which may be said as ``origin.town``.
        said = {}
        there = _names_in_release(tree)
        levels = _levels_by_name(tree)
        for header, name in codes.items():
            if name not in there and name not in levels:
                raise TableError(
                    f"the codes of {shorten(header)!r} cannot be those of {shorten(name)!r}: the "
                    f"release has no such level or column; it has {shorten(', '.join(levels), 200)}"
                    f"{did_you_mean(name, [*levels, *there])}"
                )
            columns = [] if name in there else levels[name]
            said[header] = columns[0] if len(columns) == 1 else name
        for header in said:
            if header not in headers:
                raise TableError(
                    f"{subject} has no column {shorten(header)!r}; its columns are "
                    f"{shorten(', '.join(headers), 200)}{did_you_mean(header, headers)}"
                )
        taken = {*said.values()}
        if len(taken) < len(said):
            raise TableError(f"{subject}: two columns are said to have the same codes; name one")
        # What columns are called in the release → their headers.
        called = {each: each for each in headers if each not in said and each not in taken}
        called |= {name: header for header, name in said.items()}
        axis, level, own = _level_in(tree, list(called), subject)
        own = [called[each] for each in own]
        of_axis = {*(called[name] for name in there & called.keys()), *own}
        area, names = _area_columns(headers, of_axis, own, area, names, subject)
        return cls(axis, level, tuple(own), area, names)


def _level_in(tree: Tree, names: Sequence[str], subject: str) -> tuple[int, int, list[str]]:
    """Return the axis, its deepest level that a table has the codes of, and their columns."""
    places = []
    for number, axis in enumerate(tree.axes):
        ways = [(k, list(axis.keys(k).columns)) for k in range(axis.depth, 0, -1)]
        if axis.product is None:
            ways = [way for k, own in ways for way in ((k, own), (k, [axis.levels[k - 1]]))]
        there = [(number, *way) for way in ways if set(way[1]) <= set(names)]
        places += there[:1]
    if len(places) != 1:
        which = " and ".join(repr(tree.axes[number].name) for number, *_ in places)
        fault = f"has codes of the axes {which}" if places else "has no column of an axis's codes"
        said = next(iter(_levels_by_name(tree)), "")
        say = f"say which level's codes a column has: --area-codes COLUMN={shorten(said, 60)}"
        raise TableError(
            f"{subject} {fault}; it needs those of one axis, in a column that is called as in the "
            f"release ({shorten(', '.join(tree.every_column), 200)}); its columns are "
            f"{shorten(', '.join(names), 200)}; {say} (codes={{…}})"
        )
    return places[0]


def _levels_by_name(tree: Tree) -> dict[str, list[str]]:
    """Return the name of each level, as in a plan → its columns of codes."""
    return {
        tree.level_name(axis, level): axis.keys(k).columns
        for axis in tree.axes
        for k, level in enumerate(axis.levels, start=1)
    }


def _names_in_release(tree: Tree) -> set[str]:
    """Return all that levels and columns are called in the release."""
    return {name for axis in tree.axes for name in (*axis.columns, *axis.levels)}


def _words(header: str) -> Texts:
    """Return what a column of codes and that of their names have in common."""
    return ColumnName.of(header).words


def _is_of_names(header: str) -> bool:
    return ColumnName.of(header).kind == "name"


def _area_columns(
    headers: Sequence[str],
    of_axis: set[str],
    codes: Sequence[str],
    column: str | None,
    names: str | None,
    subject: str,
) -> tuple[str, str | None]:
    """Return the column of areas, and that of their names if there is one."""
    others = [header for header in headers if header not in of_axis]
    for given, what in ((column, "areas"), (names, "names")):
        if given is not None and given not in others:
            raise TableError(
                f"{subject} has no column of {what} {shorten(given)!r}; beside levels it has "
                f"{shorten(', '.join(others), 200) or 'none'}{did_you_mean(given, others)}"
            )
    of_names = list(filter(_is_of_names, others))
    if column is None:
        named = {_words(each) for each in (*codes, *others) if each not in of_names}
        left = [
            each
            for each in others
            if each != names and not (each in of_names and _words(each) in named)
        ]
        if len(left) != 1:
            raise TableError(
                f"{subject} has {len(left)} columns beside those of the axis"
                + (f" ({shorten(', '.join(left), 200)}); say which holds the areas (column=…, "
                   f"--area-column), and which their names, if any (names=…, --area-names)"
                   if left else "; it needs one with the areas")
            )  # fmt: skip
        column = left[0]
    if column in TAKEN:
        raise TableError(
            f"{subject}: areas cannot be called {column!r}, as a release's columns are"
        )
    if names is None and not _is_of_names(column):
        alike = [each for each in of_names if _words(each) == _words(column)]
        names = alike[0] if len(alike) == 1 else None
    return column, names
