"""Files of SAS, Stata and SPSS: numbers and texts, read in chunks by pyreadstat."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from hedgerow.arrays import Sizes
from hedgerow.errors import MachineError, TableError, outside_limits
from hedgerow.machine import check_plain, library
from hedgerow.text import Texts, check_utf8

READERS = {
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
}
"""The function of pyreadstat for each suffix."""

ROWS = 1 << 18
"""Rows of the first chunk."""

VALUES, BYTES_A_VALUE = 1 << 21, 100
"""Values that are in memory at a time, and what each takes; of texts that may be longer, fewer."""


def is_statistics_file(source: Any) -> bool:
    """Return whether a path ends as the files of these programs do."""
    return Path(source).suffix.lower() in READERS


@dataclass(frozen=True)
class StoredStatistics:
    """A file whose columns are known.

    Attributes:
        path: where it is.
        subject: how messages name it.
        names: its columns.
        kinds: their types in Arrow: texts and floats, which is what these programs store.
        widths: the most bytes that a value takes in memory, as the file declares.
    """

    path: Path
    subject: str
    names: Texts
    kinds: tuple[pa.DataType, ...]
    widths: Sizes

    @classmethod
    def open(cls, path: Path, subject: str) -> "StoredStatistics":
        """Return the file's columns; no row is read.

        Raises:
            TableError: there is no such file, or pyreadstat cannot read it or is missing.
            MachineError: no permission to read it.
        """
        if not os.path.lexists(path):
            raise TableError(f"{subject} does not exist; check its path")
        check_plain(path, subject, TableError)
        check_utf8(path, subject, TableError)
        if not os.access(path, os.R_OK):
            raise MachineError(f"no permission to read {subject}")
        with _read_errors(subject):
            _, about = _reader(path)(str(path), metadataonly=True, output_format="dict")
        stored = about.readstat_variable_types
        kinds = tuple(_KINDS.get(stored[name], pa.float64()) for name in about.column_names)
        stored_in = about.variable_storage_width
        widths = tuple(max(BYTES_A_VALUE, stored_in[name]) for name in about.column_names)
        return cls(path, subject, tuple(about.column_names), kinds, widths)

    def schema(self, places: list[int]) -> pa.Schema:
        """Return the types of some columns, called c0, c1, …."""
        return pa.schema([(f"c{i}", self.kinds[place]) for i, place in enumerate(places)])

    def chunks(self, places: list[int]) -> Iterator[pa.Table]:
        """Yield the rows of some columns, called c0, c1, …; a missing value is null.

        A value is what is stored, no label. What SPSS calls a missing value on top of that (9 for
        "not stated") is a code as any other; Stata's and SAS's ``.a`` to ``.z`` are missing.
        """
        schema = self.schema(places)
        names = [self.names[place] for place in places]
        options: dict[str, Any] = {"output_format": "dict", "disable_datetime_conversion": True}
        if READERS[self.path.suffix.lower()] == "read_sav":
            options["user_missing"] = True
        most = VALUES * BYTES_A_VALUE // sum(self.widths[place] for place in places)
        rows = limit = first = 0
        while rows == limit:
            # The rows before a chunk are passed over again for each, so that chunks must grow.
            limit = max(1, min(most, max(ROWS, first)))
            with _read_errors(self.subject):
                columns, _ = _reader(self.path)(
                    str(self.path), usecols=names, row_offset=first, row_limit=limit, **options
                )
                values = [
                    pa.array(columns[name], kind)
                    for name, kind in zip(names, schema.types, strict=True)
                ]
            chunk = pa.Table.from_arrays(values, schema=schema)
            rows, first = len(chunk), first + len(chunk)
            yield chunk


_KINDS = {"string": pa.string(), "float": pa.float32()}


def _pyreadstat() -> Any:
    return library("pyreadstat", "stats", "reading files of SAS, Stata and SPSS", TableError)


def _reader(path: Path) -> Callable[..., Any]:
    read: Callable[..., Any] = getattr(_pyreadstat(), READERS[path.suffix.lower()])
    return read


@contextmanager
def _read_errors(subject: str) -> Iterator[None]:
    """Turn pyreadstat's errors into ours; its words may quote the table and stay confidential."""
    pyreadstat = _pyreadstat()
    try:
        yield
    except (
        pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeError, pa.ArrowException,
    ) as bad:  # fmt: skip
        rule = "is no table: a damaged or unfinished file, or not of the kind that its name ends in"
        raise outside_limits(subject, rule, str(bad)) from None
