"""What the parts of a depth are called: ``counts/depth=K/part-00000.parquet`` and so on.

A release that was made on a cluster has them in place of ``counts/depth=K.parquet``, and likewise
below ``measurements/``: one after the other they are that file.
"""

import re
import stat
from collections.abc import Iterable
from pathlib import Path

from hedgerow.errors import ReleaseError
from hedgerow.text import visible

PART = re.compile(r"(?P<depth>(counts|measurements)/depth=\d+)/part-(?P<number>\d{5,})\.parquet")


def whole_names(names: Iterable[str]) -> list[str]:
    """Names of files with those of parts replaced by that of the file they stand for, once each.

    Where parts are missing or stand beside a whole file, their names are left as they are.
    """
    whole: list[str] = []
    parts: dict[str, list[int]] = {}
    for name in names:
        part = PART.fullmatch(name)
        if part is None:
            whole.append(name)
        else:
            parts.setdefault(part["depth"], []).append(int(part["number"]))
    for depth, numbers in parts.items():
        name = f"{depth}.parquet"
        if sorted(numbers) == list(range(len(numbers))) and name not in whole:
            whole.append(name)
        else:
            whole += [f"{depth}/part-{number:05d}.parquet" for number in numbers]
    return whole


def part_files(folder: Path, name: str) -> list[Path]:
    """The files of a release directory that hold ``….parquet``: itself, or its parts in order.

    Raises:
        ReleaseError: one of them is missing, or is no plain file in plain folders.
    """
    whole = folder / name
    inner = whole.with_suffix("")
    paths = sorted(inner.glob("part-*.parquet")) if inner.is_dir() else [whole]
    for path in paths:
        check_plain(folder, path)
    return paths


def check_plain(folder: Path, path: Path) -> None:
    """Refuse what is no plain file of a release directory: a link, a pipe, a device, a folder.

    Opening a pipe may wait for ever, a device may never end, and a link leads elsewhere.

    Raises:
        ReleaseError: it is none, lies behind a link, or is not there.
    """
    name = path.relative_to(folder)
    for place in [path, *(folder / above for above in name.parents if above.name)]:
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            raise ReleaseError(f"{visible(name.as_posix())[:200]} is missing") from None
        if not (stat.S_ISREG(mode) if place == path else stat.S_ISDIR(mode)):
            raise ReleaseError(f"{visible(name.as_posix())[:200]} is no plain file")
