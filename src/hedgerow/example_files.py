"""Where the files of an example go."""

from pathlib import Path
from typing import TypeVar

from hedgerow.errors import SpecError

Size = TypeVar("Size")

SEED = 20_110_828
START = """\
# {what}, released under differential privacy.
#
#     hedgerow plan release.toml       what will be measured, with how much noise; opens no table
#     hedgerow release release.toml    makes the release
#
# Paths are relative to this file.

"""


def size_of(sizes: dict[str, Size], size: str, *others: str) -> Size:
    """The size of a name; other names are known as well.

    Raises:
        SpecError: no such size.
    """
    if size not in sizes:
        *first, last = [*sizes, *others]
        raise SpecError(f'the size of an example is {", ".join(first)} or {last}, got "{size}"')
    return sizes[size]


def free(directory: Path, *names: str) -> list[Path]:
    """The paths of the files to write, none of which is there yet.

    Raises:
        SpecError: one is, or the directory is a file.
    """
    if directory.exists() and not directory.is_dir():
        raise SpecError(f"{directory} must be a directory, and is a file; choose another name")
    paths = [directory / name for name in names]
    for path in paths:
        if path.exists():
            raise SpecError(f"{path} exists and is not overwritten; choose another directory")
    directory.mkdir(parents=True, exist_ok=True)
    return paths
