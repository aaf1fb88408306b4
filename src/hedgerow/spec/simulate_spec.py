"""The simulation file: the public table, and the settings to compare on it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from hedgerow.errors import HedgerowError, SpecError, of_public_table
from hedgerow.evaluate.method import Method
from hedgerow.plan.prior import has_counts_of
from hedgerow.spec.axis_section import NUMERIC
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.simulate_settings import Comparison, LeftOut, read_section, with_sections
from hedgerow.spec.table import located
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree


class SimulateSpec:
    """A file with a ``[simulate]`` section; relative paths in it are relative to it.

    Raises:
        SpecError: it does not declare the table public, or names the confidential table of a
            release file as public.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.section, place = read_section(self.path)
        self.release = ReleaseSpec(place)
        self._own_is_public = place != self.path and _declares_own(place)
        self._public = self.release
        if self.section.table is not None:
            source, folder = self.section.table.source, self.path.parent  # not the release file's
            if "://" in source:
                source = located(source, folder)
            else:
                source = str((folder / source).absolute())
            table = self.section.table.model_copy(update={"source": source})
            self._public = with_sections(self.release, table=table)
            self._check_other()
        elif place != self.path and not self._own_is_public:
            raise SpecError(
                f"{str(place)!r} does not declare its own table public ([simulate] public = true "
                f"there); name another one in [simulate.table]"
            )

    def _check_other(self) -> None:
        """Raise if it is the table of a release file that does not declare it public."""
        if self._own_is_public:
            return
        own = self.release.table
        given = self._public.table
        if own.source == given.source or any(map(own.shares_files, given.places)):
            raise SpecError(
                "[simulate.table] is the table of the release file, and that file does not declare "
                "it public: name a public or synthetic table"
            )

    @property
    def is_distribution(self) -> bool:
        """Whether the table has one axis, a numeric one, so that cumulative counts matter."""
        axes = self.release.file.axis
        return len(axes) == 1 and axes[0].kind is NUMERIC

    def tree(self) -> Tree:
        """Return the release's tree."""
        return self._public.tree()

    def counts(self, tree: Tree) -> Counts:
        """Return the public table."""
        with of_public_table():
            return self._public.table.public_counts(tree)

    def is_own_table(self, tree: Tree) -> bool:
        """Return whether the public table has the counts of the release file's confidential one.

        To compare them, that is read where it is a file. The answer is for a terminal alone.
        """
        own = self.release.table
        public = self._public.table
        if self.section.table is None or self._own_is_public or not isinstance(own.source, Path):
            return False
        return any(
            has_counts_of(one, other)
            for one in _read(public.public_counts, tree)
            for other in _read(own.counts, tree)
        )

    def settings(self, tree: Tree) -> tuple[list[Method], list[LeftOut]]:
        """Return what to compare, the file's own setting first, and what is impossible."""
        return Comparison(self.section, self.release).settings(tree)


def _declares_own(path: Path) -> bool:
    """Return whether a release file declares its own table public."""
    try:
        section, place = read_section(path)
    except SpecError:
        return False
    return place == path and section.table is None


def _read(counts: Callable[..., Counts], tree: Tree) -> Iterator[Counts]:
    """Yield a table with contributions bounded and not; nothing where it cannot be read."""
    for bounded in (True, False):
        with suppress(HedgerowError):  # missing, or not a table over these areas
            yield counts(tree, bounded=bounded)
