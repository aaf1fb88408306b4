"""What every export has of a release: its directory, tables, labels for their columns."""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import polars as pl
import pyarrow.parquet as pq

from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.machine import check_free
from hedgerow.plan.plan import Plan
from hedgerow.release.answers.pairs import RATIO, check_names
from hedgerow.release.answers.sums import Sums
from hedgerow.release.directory.check import check_unchanged
from hedgerow.release.directory.manifest import check_outside, read_manifest
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.stored import undamaged
from hedgerow.release.naming import label_columns
from hedgerow.release.records import only_table
from hedgerow.release.release import Release, read_release
from hedgerow.tables.lists.areas import SUFFIX
from hedgerow.text import TextByName

UNLISTED = "Combinations that are not listed were released as 0."
FIGURES = {
    COUNT: "Count",
    ESTIMATE: "Unbiased estimate",
    STANDARD_ERROR: "Standard error of the estimate",
    LOW: "Lower end of the 95 % interval of the true count",
    HIGH: "Upper end of the 95 % interval of the true count",
    CONTRADICTED: "Whether the count is contradicted by its own measurements",
}

SHARE, SHARE_LOW, SHARE_HIGH, SHARE_CONTRADICTED = (
    "share", "share_low", "share_high", "share_contradicted",
)  # fmt: skip
SHARES = {RATIO: SHARE, LOW: SHARE_LOW, HIGH: SHARE_HIGH, CONTRADICTED: SHARE_CONTRADICTED}
"""What columns of `Release.ratio` are called beside those of a count."""
OF_SHARES = (
    "A share is that of the released counts. Its set holds the true share with a confidence of "
    "95 %, over all cells and not only those listed, from both unbiased estimates. Where the "
    "denominator may be 0 it reaches far; where both may be 0 there is none."
)


@contextmanager
def whole_file(place: Path) -> Iterator[Path]:
    """Give a place beside a file to write to, which then takes its name; or leave nothing."""
    part = place.with_name(f".{os.getpid()}.{place.name}")
    with machine_errors(f"cannot write {str(place)!r}"):
        try:
            yield part
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)


def write_parts(place: Path | BinaryIO, parts: Iterable[pl.DataFrame]) -> None:
    """Write rows to a Parquet file, some at a time; the first say its columns."""
    with ExitStack() as stack:
        writer = None
        for part in parts:
            table = part.to_arrow(compat_level=pl.CompatLevel.oldest())
            if writer is None:
                new = pq.ParquetWriter(place, table.schema, compression="zstd", store_schema=False)
                writer = stack.enter_context(new)
            writer.write_table(table)


def one_table(
    release: Release,
    level: str | None,
    *,
    names: bool = False,
    all: bool = False,  # noqa: A002 - as in `Release.level`
    share: TextByName | None = None,
) -> pl.DataFrame:
    """Return the table of a cuboid by its name; the released table where none is named.

    Args:
        release: whose table it is.
        level: the cuboid.
        names: whether names of areas stand behind their codes.
        all: whether measured cells with a count of 0 are listed, too.
        share: axis = level of the cells that each count is told as a share of, too.

    Raises:
        ReleaseError: no such cuboid; several released tables, and none named; or the table has no
            such shares.
        TableError: the table has a column called like one of names or of shares.
    """
    tree = release.plan.tree
    name = tree.name_of(only_table(release.plan)) if level is None else level
    frame = release.level(name, all=all)
    if share is not None:
        shared(release.plan, [name], share)
        by = dict(Sums.of(release.plan, tree.named(name) or ()).by)
        codes = label_columns(release.plan, by)
        check_names(frame.columns, SHARES.values())
        shares = release.ratio(by, share, all=all).select(*codes, *SHARES).rename(SHARES)
        frame = frame.join(shares, on=codes, how="left", maintain_order="left", nulls_equal=True)
    return tree.with_names(frame) if names else frame


def shared(plan: Plan, names: Iterable[str], share: TextByName | None) -> dict[str, bool]:
    """Return for each cuboid, by name, whether it has shares: whether it tells more than they do.

    Raises:
        ReleaseError: none has.
    """
    if share is None:
        return dict.fromkeys(names, False)
    of = Sums(plan, share).levels
    told = set(label_columns(plan, share))
    has = {
        name: all(k >= other for k, other in zip(levels, of, strict=True))
        and told < set(label_columns(plan, Sums.of(plan, levels).by))
        for name in names
        if (levels := plan.tree.named(name)) is not None
    }
    if has and not any(has.values()):
        raise ReleaseError(
            f"no table here tells more than {plan.tree.name_of(of)}, which shares are to be of; "
            f"name coarser levels, or total"
        )
    return has


def column_labels(plan: Plan) -> dict[str, str]:
    """Return for each column of a table what readers call it."""
    unit = plan.description.unit
    count = {COUNT: f"{FIGURES[COUNT]} ({unit})"} if unit else {}
    return plan.description.column_labels(plan.tree) | FIGURES | count


def labels_of(plan: Plan, frame: pl.DataFrame, share: TextByName | None = None) -> dict[str, str]:
    """Return labels of columns, with those of the columns of names and of shares of a table."""
    labels = column_labels(plan)
    if share is not None:
        is_alone = len(plan.tree.axes) == 1
        named = [level if is_alone else f"{axis}.{level}" for axis, level in share.items()]
        of = f"its {' × '.join(named)}" if share else "the total"
        labels |= {
            SHARE: f"Share of {of}",
            SHARE_LOW: "Lower end of the 95 % set of the true share",
            SHARE_HIGH: "Upper end of the 95 % set of the true share",
            SHARE_CONTRADICTED: "Whether the share is contradicted by the measurements of both",
        }
    return {f"{column}{SUFFIX}": f"{label}: name" for column, label in labels.items()
            if f"{column}{SUFFIX}" in frame.columns} | labels  # fmt: skip


def statements(plan: Plan, share: TextByName | None = None) -> list[str]:
    """Return what a reader should know, sentence by sentence: source, notes, promise, plan.

    Args:
        plan: of the release.
        share: what shares are of, where there are some.
    """
    said = plan.description
    given = {
        "Unit": said.unit,
        "Publisher": said.publisher,
        "Period": said.period,
        "Licence": said.licence,
    }
    source = [f"{name}: {text}." for name, text in given.items() if text]
    shares = [] if share is None else [OF_SHARES]
    promise = str(plan.promise), f"Plan SHA-256: {plan.hash}."
    return [*source, *said.notes, UNLISTED, *shares, *promise]


def plain_names(names: Iterable[str], longest: int, taken: Iterable[str] = ()) -> TextByName:
    """Return for each name one of ASCII letters, digits and _, all different whatever their case.

    Args:
        names: any texts, each once.
        longest: letters of a plain name.
        taken: words that a plain name must not be, in lower case.
    """
    names_of = {}
    used = set(taken)
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "v"
        plain = plain if plain[0].isalpha() else f"v{plain}"
        number = 1
        free = plain[:longest]
        while free.lower() in used:
            number += 1
            free = f"{plain[: longest - 1 - len(str(number))]}_{number}"
        used.add(free.lower())
        names_of[name] = free
    return names_of


class ExportFormat(Protocol):
    """A format, with its options."""

    def write(self, release: Release, output: Path) -> None:
        """Write a release to a place that is free, whole or not at all."""


def export(directory: str | Path, output: str | Path, form: ExportFormat) -> None:
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
    check_free(place, repr(str(place)), ReleaseError, "name another place")
    check_outside(place, "the export")
    folder = Path(directory)
    with undamaged(folder):
        check_unchanged(folder, read_manifest(folder))
        release = read_release(folder)
    form.write(release, place)
