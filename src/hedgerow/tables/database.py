"""The private database: DuckDB in memory, where a confidential table is grouped once."""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import duckdb

from hedgerow.errors import MachineError, outside_limits
from hedgerow.kernels import core_count
from hedgerow.machine import usable_memory

NOT_UTF8 = "is not UTF-8 text (Latin-1 or Windows-1252, perhaps); save it as UTF-8"


@contextmanager
def private_folder() -> Iterator[Path]:
    """A folder for temporary files that only we can read; it goes away afterwards.

    Raises:
        MachineError: no room for it.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="hedgerow-", ignore_cleanup_errors=True)
    except OSError as error:
        raise MachineError(
            f"cannot make a folder for temporary files in {tempfile.gettempdir()} "
            f"({error.strerror}); name another in the environment variable TMPDIR"
        ) from error
    with folder as path:
        yield Path(path)


@contextmanager
def open_database(memory: int | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory; what it spills goes to a folder that only we can read, then away.

    Args:
        memory: bytes that it may take before it spills; half of what there is unless given.

    Raises:
        MachineError: no room for the folder.
    """
    with private_folder() as folder:
        settings = _settings(str(folder), memory)
        with closing(duckdb.connect(":memory:", config=settings)) as db:
            db.execute("SET enable_progress_bar = false")  # ours is the only one
            yield db


def _settings(folder: str, memory: int | None) -> dict[str, str | bool | int | float | list[str]]:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": folder,
        "threads": core_count(),
        "preserve_insertion_order": False,
        # nothing is fetched from the network behind the user's back
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    usable = usable_memory()  # unknown, DuckDB decides
    if memory is None and usable is not None:  # the rest is for the axes and the leaf counts
        memory = usable // 2
    if memory is not None:
        settings["memory_limit"] = f"{memory}B"
    return settings


@contextmanager
def explained(what: str, sentence: str) -> Iterator[None]:
    """DuckDB's failures as ours; its own words may quote the table, so they stay confidential.

    Args:
        what: how messages name the table.
        sentence: what is wrong if the machine is not.

    Raises:
        MachineError: out of memory or disk.
        TableError: the table is damaged or outside its limits; ``sentence`` is confidential.
        KeyboardInterrupt: Ctrl-C, which DuckDB reports as a RuntimeError.
    """
    try:
        yield
    except duckdb.OutOfMemoryException:
        raise MachineError(
            f"{what} needs more memory than there is, and the temporary files in "
            f"{tempfile.gettempdir()} have no more room; free some, or name another place in "
            f"the environment variable TMPDIR"
        ) from None
    except duckdb.InterruptException:
        raise KeyboardInterrupt from None
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise MachineError(f"the disk is full: no room to read {what}") from None
        if "Permission denied" in str(error):
            raise MachineError(f"no permission to read {what}") from None
        told = NOT_UTF8 if "This file is not utf-8 encoded" in str(error) else sentence
        raise outside_limits(what, told, str(error)) from None
    except RuntimeError as error:
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise


def quoted(name: str) -> str:
    """An identifier in SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"
