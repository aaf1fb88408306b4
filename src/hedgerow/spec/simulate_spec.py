"""The simulation file: the public table, and the settings to compare on it."""

from collections.abc import Callable
from pathlib import Path

from hedgerow.errors import HedgerowError, SpecError, of_public_table
from hedgerow.evaluate.method import Method
from hedgerow.plan.prior import Prior
from hedgerow.spec.release_file import TableSection
from hedgerow.spec.release_spec import ReleaseSpec
from hedgerow.spec.simulate_section import read_section
from hedgerow.spec.simulate_settings import Comparison, LeftOut, with_sections
from hedgerow.spec.table import located
from hedgerow.tables.counts import Counts
from hedgerow.tables.sources.files import share_files
from hedgerow.tables.tree import Tree

_SAME = (
    "[simulate.table] is the table of the release file, or a copy of it, and that file does not "
    "declare it public: name a public or synthetic table"
)


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
            self._public = with_sections(self.release, table=self._placed(self.section.table))
            self._check_other()
        elif place != self.path and not self._own_is_public:
            raise SpecError(
                f"{str(place)!r} does not declare its own table public ([simulate] public = true "
                f"there); name another one in [simulate.table]"
            )

    def _placed(self, table: TableSection) -> TableSection:
        """Return the public table, its file relative to this file and not to the release file."""
        folder = self.path.parent
        if "://" in table.source:
            source = located(table.source, folder)
        else:
            source = str((folder / table.source).absolute())
        return table.model_copy(update={"source": source})

    def _check_other(self) -> None:
        """Raise if it is the table of a release file that does not declare it public."""
        own, given = self.release.file.table, self._public.file.table
        if self._own_is_public:
            return
        if "://" in own.source or "://" in given.source:
            url = located(own.source, self.release.path.parent)
            same = (url, own.query) == (given.source, given.query)
        else:
            same = share_files(self.release.path.parent / own.source, Path(given.source))
        if same:
            raise SpecError(_SAME)

    @property
    def is_distribution(self) -> bool:
        """Whether the table has one axis, a numeric one, so that cumulative counts matter."""
        axes = self.release.file.axis
        return len(axes) == 1 and axes[0].is_numeric

    def tree(self) -> Tree:
        """Return the release's tree."""
        return self._public.tree()

    def counts(self, tree: Tree) -> Counts:
        """Return the public table, or raise if it copies the release file's confidential one.

        To compare them, the confidential file is read where it is available.
        """
        with of_public_table():
            counts = self._public.table.public_counts(tree)
        table = self.release.file.table
        if self.section.table is None or self._own_is_public or "://" in table.source:
            return counts
        own, public = self.release.table, self._public.table
        if len(counts.values) and _digests(own.counts, tree) & _digests(public.public_counts, tree):
            raise SpecError(
                "[simulate.table] does not fit the table of the release file; the reason is "
                "confidential and shown on a terminal only",
                confidential=_SAME,
            )
        return counts

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


def _digests(counts: Callable[..., Counts], tree: Tree) -> set[str]:
    """Return digests of a table, with contributions bounded and not; none if unreadable."""
    digests = set()
    for bounded in (True, False):
        try:
            digests.add(Prior(counts(tree, bounded=bounded), public=True).digest)
        except HedgerowError:  # missing, or not a table over these areas
            continue
    return digests
