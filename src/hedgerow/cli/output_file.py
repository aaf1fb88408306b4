"""The file that an option names: outside every release, never overwritten unasked, and whole."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import polars as pl

from hedgerow.errors import HedgerowError, ReleaseError, machine_errors
from hedgerow.picture import check_picture, would_be_lost
from hedgerow.release.manifest import check_outside

TABLES = (".csv", ".parquet")


def check_place(
    place: Path,
    *,
    suffixes: Sequence[str] = (),
    force: bool | None = None,
    option: str = "--output",
) -> None:
    """Nothing, if a command may write a file there.

    Args:
        place: the file.
        suffixes: those that it may have; none given, any.
        force: whether it may be overwritten; None where the command knows no ``--force``.
        option: that names it.

    Raises:
        ReleaseError: it has another suffix, it exists, or its folder is not there or a release's.
    """
    where = f"{option} {str(place)!r}"
    if suffixes and place.suffix.lower() not in suffixes:
        raise ReleaseError(f"{where} must end in {' or '.join(suffixes)}")
    if place.is_dir() or ((place.exists() or place.is_symlink()) and not force):
        way_out = "name another file" + ("" if force is None else ", or add --force")
        raise ReleaseError(f"{where} exists already; {way_out}")
    if not place.parent.is_dir():
        raise ReleaseError(f"{where}: its folder is not there; make it first")
    refuse_within_a_release(place, option)


def refuse_within_a_release(place: Path, option: str = "--output") -> None:
    """Nothing, unless a file or folder there would be one more in a release, which stays as it is.

    Raises:
        ReleaseError: a folder above it is a release.
    """
    check_outside(place, option)


def check_picture_place(
    picture: Path | None, error: type[HedgerowError], *, force: bool | None = None
) -> None:
    """Nothing, if ``--picture`` may go there, or none is asked for.

    Args:
        picture: the file.
        error: the kind of the room that draws.
        force: whether any file may be overwritten; None where the command knows no ``--force``:
            then a picture may, of the kind that its name tells.

    Raises:
        HedgerowError: of the given kind: another suffix, a folder that is not there, no matplotlib.
        ReleaseError: what exists there may not be overwritten, or its folder is a release's, where
            a picture may tell of the table.
    """
    check_picture(picture, error)
    if picture is None:
        return
    refuse_within_a_release(picture, "--picture")
    if force is not None:
        check_place(picture, force=force, option="--picture")
    elif would_be_lost(picture):
        raise ReleaseError(
            f"--picture {str(picture)!r} exists already and is no {picture.suffix[1:].upper()} "
            f"picture; name another file"
        )


@contextmanager
def whole_file(place: Path) -> Iterator[BinaryIO]:
    """A file to fill that then takes its place, or leaves nothing where the block fails.

    Raises:
        MachineError: the disk is full or not writable.
    """
    part = place.with_name(f".{place.name}.{os.getpid()}")
    with machine_errors(f"cannot write {str(place)!r}"):
        try:
            with part.open("xb") as file:
                yield file
            part.replace(place)
        finally:
            part.unlink(missing_ok=True)


def write_table(found: pl.DataFrame, place: Path) -> None:
    """Write a frame as CSV or Parquet, by the suffix of its place; whole or not at all.

    Raises:
        MachineError: the disk is full or not writable.
    """
    with whole_file(place) as file:
        if place.suffix.lower() == ".csv":
            found.write_csv(file)
        else:
            found.write_parquet(file)
