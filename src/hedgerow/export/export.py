"""`export`: a release directory in the format of another tool."""

from pathlib import Path
from typing import Protocol

from hedgerow.errors import ReleaseError
from hedgerow.release.directory.check import check_unchanged
from hedgerow.release.directory.manifest import check_outside, read_manifest
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.release import Release, read_release


class Form(Protocol):
    """A format, with its options."""

    def write(self, release: Release, output: Path) -> None:
        """Write a release to a place that is free, whole or not at all."""


def export(directory: str | Path, output: str | Path, form: Form) -> None:
    """Write a release in the format of another tool, from its directory alone.

    Costs nothing in privacy: an export has nothing that the directory does not hold.

    Args:
        directory: of the release, whose files and plan are verified on the way.
        output: the file or directory to make; nothing is overwritten.
        form: `DataPackage`, `StatisticsFile` and so on.

    Raises:
        ReleaseError: no release is there, a file of it was changed, the output exists or lies
            within a release, or the format cannot hold what the release has.
        MachineError: the format's library is not installed, or the disk is full.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
        >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
        >>> counts = hr.Counts.from_frame(tree, people, count="people")
        >>> hr.release(counts, hr.make_plan(tree, budget=hr.Rho(1))).write("out")
        >>> hr.export("out", "towns.sav", hr.StatisticsFile(level="county"))
    """
    place = Path(output)
    if place.exists() or place.is_symlink():
        raise ReleaseError(f"{str(place)!r} exists already; name another place")
    if not place.absolute().parent.is_dir():
        raise ReleaseError(f"{str(place)!r}: the directory does not exist; create it")
    check_outside(place, "the export")
    folder = Path(directory)
    with undamaged(folder):
        check_unchanged(folder, read_manifest(folder))
        release = read_release(folder)
    form.write(release, place)
