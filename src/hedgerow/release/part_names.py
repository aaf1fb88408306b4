"""What the parts of a depth are called: ``counts/depth=K/part-00000.parquet`` and so on.

A release that was made on a cluster has them in place of ``counts/depth=K.parquet``, and likewise
below ``measurements/``: one after the other they are that file.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from hedgerow.errors import ReleaseError
from hedgerow.tables.plain_files import check_plain

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


def part_files(path: Path) -> list[Path]:
    """The files that hold ``….parquet``: itself, or its parts in their order.

    Raises:
        ReleaseError: one is no plain file, so that reading it might never end.
    """
    folder = path.with_suffix("")
    files = sorted(folder.glob("part-*.parquet")) if folder.is_dir() else [path]
    for file in files:
        check_plain(file, repr(str(file)), ReleaseError)
    return files
