"""CSV and Parquet files as relations of DuckDB."""

import codecs
import csv
import glob
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from hedgerow.errors import HedgerowError, MachineError, TableError, outside_limits
from hedgerow.limits import MOST_ENTRIES, MOST_PLACES
from hedgerow.machine import check_plain
from hedgerow.tables.sources.database import (
    NOT_UTF8,
    Database,
    sql_identifier,
    sql_text,
    translate_duckdb_errors,
)
from hedgerow.text import Texts, check_utf8

PARQUET, GZIP = b"PAR1", b"\x1f\x8b"
HEADER_BYTES = 1 << 20


@dataclass(frozen=True)
class Relation:
    """Something DuckDB can read.

    Attributes:
        names: the columns as the user knows them, in order.
        fields: what SQL calls them.
        sql: the text behind FROM.
        repeatable: it may be read several times at no great cost.
        fault: the sentence for a failure while reading it.
    """

    names: Texts
    fields: Texts
    sql: str
    repeatable: bool
    fault: str


def open_file(db: Database, path: Path, subject: str) -> Relation:
    """Return a CSV file (also gzipped), a Parquet file, a folder or a glob of Parquet files.

    Its path is made absolute here, once: to DuckDB ``~``, ``file:`` and ``s3:`` at the start of a
    path mean another place than to Python, which has checked the file.
    """
    try:
        return _opened(db, path.absolute(), subject)
    except (ValueError, NotImplementedError, OSError) as error:
        if isinstance(error, HedgerowError):
            raise
        raise TableError(f"{subject} cannot be opened: {type(error).__name__}") from None


def _opened(db: Database, path: Path, subject: str) -> Relation:
    check_utf8(path, subject, TableError)
    check_folder(path, subject)
    if path.is_dir():
        return _parquet(db, sorted(map(str, path.rglob("*.parquet"))), subject, folders=True)
    if not os.path.lexists(path):
        matches = sorted(map(str, _matches(path)))
        if not matches:
            raise TableError(f"{subject} does not exist; check its path")
        return _parquet(db, matches, subject, folders=True)
    check_plain(path, subject, TableError)
    start = _read_start(path, subject)
    if not start.strip():
        raise TableError(f"{subject} is empty; it needs a header row at least")
    if start.startswith(PARQUET) or path.suffix in {".parquet", ".pq"}:
        return _parquet(db, [str(path)], subject, folders=False)
    relation = _csv(path, start, subject)
    _reach(db, [str(path)], subject)
    return relation


def _reach(db: Database, paths: Sequence[str], subject: str) -> None:
    """Let a database open some files, and from now on nothing else; a path is UTF-8 to DuckDB."""
    said = [path for path in paths if path.encode("utf-8", "replace").decode() == path]
    allowed = [text for path in said for text in (sql_text(path), _pattern(path, subject))]
    db.execute(f"SET allowed_paths = [{', '.join(dict.fromkeys(allowed))}]")
    db.execute("SET enable_external_access = false")


def check_folder(path: Path, subject: str) -> None:
    """Raise a TableError if what a folder or a glob stands for takes too long to be looked through.

    So that ``/`` in place of a file does not walk the whole disk.
    """
    parts = path.parts
    plain = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    waiting = []
    left = MOST_ENTRIES
    if path.is_dir() or (plain < len(parts) and "**" in path.parts[plain:]):
        waiting.append(str(path if path.is_dir() else Path(*parts[:plain])))
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                if left < 0:
                    raise _too_many(subject)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _too_many(subject: str) -> TableError:
    return TableError(
        f"{subject} is a folder with more than {MOST_ENTRIES:,} files and folders below it; name "
        f"the table's own"
    )


def _read_start(path: Path, subject: str) -> bytes:
    try:
        with path.open("rb") as file:
            start = file.read(HEADER_BYTES)
        if not start.startswith(GZIP):
            return start
        with gzip.open(path) as unpacked:
            return unpacked.read(HEADER_BYTES)
    except PermissionError:
        raise MachineError(f"no permission to read {subject}") from None
    except (OSError, EOFError, zlib.error) as error:  # gzip quotes a checksum of the table
        raise outside_limits(subject, "cannot be read", str(error)) from None


def _parquet(db: Database, paths: list[str], subject: str, *, folders: bool) -> Relation:
    if not paths:
        raise TableError(f"{subject} holds no Parquet file")
    for path in paths:
        check_plain(Path(path), f"{subject}: what looks like one of its files", TableError)
    _reach(db, paths, subject)
    fault = "is no table: a damaged or unfinished Parquet file"
    # codes in folder names (state=01) are a column, and stay text
    hive = "true, hive_types_autocast = false" if folders else "false"
    listed = ", ".join(_pattern(path, subject) for path in paths)
    sql = f"read_parquet([{listed}], hive_partitioning = {hive})"
    with translate_duckdb_errors(subject, fault):
        names = [row[0] for row in db.execute(f"DESCRIBE SELECT * FROM {sql}").fetchall()]
    fields = tuple(map(sql_identifier, names))
    return Relation(without_mark(names), fields, sql, repeatable=True, fault=fault)


def without_mark(names: Sequence[str]) -> Texts:
    """Return names without a byte order mark, which some programs leave in the first."""
    return tuple(name if i else name.removeprefix("\ufeff") for i, name in enumerate(names))


def _pattern(path: str, subject: str) -> str:
    """Return the SQL of the pattern that this file alone matches."""
    if glob.has_magic(path) and "\\" in path:
        raise TableError(f"{subject} has a backslash and a wildcard in its path; rename it")
    return sql_text(glob.escape(path))


WORKBOOKS = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
"""How the files of Excel, LibreOffice and zip begin, and those of the older Excel."""


def _csv(path: Path, start: bytes, subject: str) -> Relation:
    """Return all columns text; nothing is guessed but the separator, which the header shows."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise TableError(f"{subject} is UTF-16 text; save it as UTF-8")
    if start.startswith(WORKBOOKS):
        raise TableError(
            f"{subject} is a workbook or an archive; save its sheet as CSV (UTF-8), code columns "
            f"being text, or they lose their zeros"
        )
    if b"\x00" in start:
        raise outside_limits(subject, "is no table: neither CSV nor Parquet")
    try:  # a letter that the end of the start cuts is none to complain of
        head = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError:
        raise outside_limits(subject, NOT_UTF8) from None
    if head[:4].lower() == "sep=" and head[5:6] in {"", "\r", "\n"}:
        raise TableError(f"{subject} begins with a line for Excel alone, sep=…; delete that line")
    separator = max(",;\t|", key=re.sub('"[^"]*"', "", head.split("\n", 1)[0]).count)
    try:
        names = tuple(next(csv.reader(io.StringIO(head, newline=""), delimiter=separator)))
    except (csv.Error, StopIteration):
        names = ()
    if not any(names):
        raise outside_limits(subject, "is no table: its first line is no header")
    fields = tuple(f"f{i}" for i in range(len(names)))
    with path.open("rb") as file:
        packed = file.read(2) == GZIP
    columns = ", ".join(f"{field}: 'VARCHAR'" for field in fields)
    sql = (
        f"read_csv({_pattern(str(path), subject)}, auto_detect = false, header = true, "
        f"delim = {sql_text(separator)}, quote = '\"', escape = '\"', "
        f"compression = '{'gzip' if packed else 'none'}', columns = {{{columns}}})"
    )
    fault = (
        "is no table: a CSV file must have the same number of fields in every row as in its "
        "header, and quotes around a field with a separator or a line break in it (1,234 has one)"
    )
    return Relation(names, fields, sql, repeatable=False, fault=fault)


def share_files(one: Path, other: Path) -> bool:
    """Return whether two sources have a file in common, under whatever names and links.

    One that cannot be looked at is no source at all; reading it says why. One that takes too long
    may have a file in common, and be read elsewhere: on Spark.

    Raises:
        TableError: a folder holds too many files to be looked through.
    """
    try:
        for source in (one, other):
            check_folder(source, repr(str(source)))
        identities = [
            {(status.st_dev, status.st_ino) for status in map(os.stat, _files_of(source))}
            for source in (one, other)
        ]
        named = {os.path.realpath(one), os.path.realpath(other)}  # of a link in a circle, too
        return not identities[0].isdisjoint(identities[1]) or len(named) == 1
    except HedgerowError:
        raise
    except (OSError, ValueError, NotImplementedError):
        return False


LOCAL = re.compile(
    r"(?:jdbc:)?(?:(?:file|sqlite|duckdb):)+(?://[^/]*(?=/))?(.+)", re.IGNORECASE | re.DOTALL
)
"""How URIs begin that name files of this machine: Spark's, and those of databases in one file."""


def local_places(text: str) -> list[Path]:
    """Return where on this machine a URI may point; nowhere for one of a server or a cluster.

    Programs do not agree on whether ``%20`` is a blank, where parameters begin, what ``{a,b}`` is
    and whether a backslash escapes, so each reading is a place; what is not there is no file.

    Raises:
        TableError: a pattern has too many alternatives.
    """
    uri = LOCAL.fullmatch(text)
    if uri is None:
        return []
    paths = {
        meant
        for path in (uri[1], re.split("[?;]", uri[1])[0])
        for each in (path, unquote(path))
        for meant in (each, re.sub(r"\\(.)", lambda letter: glob.escape(letter[1]), each))
    }
    return [Path(each) for path in sorted(paths) for each in (path, *_alternatives(path))]


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns of Python's that one of Hadoop's stands for: ``{a,b}`` and ``[^a]``."""
    every = [pattern]
    braces = re.compile(r"\{([^{}]*)\}")
    while match := braces.search(every[0]):  # each has as many as the first
        if len(every) * (match[1].count(",") + 1) > MOST_PLACES:
            raise TableError(
                f"the table's path stands for more than {MOST_PLACES:,} paths, with its "
                f"alternatives in braces; write * in place of some"
            )
        every = [
            each[: match.start()] + alternative + each[match.end() :]
            for each in every
            if (match := braces.search(each))
            for alternative in match[1].split(",")
        ]
    return [each.replace("[^", "[!") for each in every]


def _files_of(source: Path) -> list[Path]:
    """Return the files of a file, folder or glob that exist, in folders behind links too."""
    every = [source] if os.path.lexists(source) else [*_matches(source)]
    below = (_files_below(each) if each.is_dir() else [each] for each in every)
    return [path for paths in below for path in paths if path.is_file()]


def _files_below(folder: Path) -> Iterator[Path]:
    seen = set()
    left = MOST_ENTRIES
    for place, folders, names in os.walk(folder, followlinks=True):
        status = Path(place).stat()
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        left -= len(folders) + len(names)
        if left < 0:
            raise _too_many(repr(str(folder)))
        yield from (Path(place, name) for name in names)


def _matches(pattern: Path) -> Iterator[Path]:
    """Yield what matches a pattern, looking from the folder above its first wildcard."""
    parts = pattern.parts
    wild = [i for i, part in enumerate(parts) if glob.has_magic(part)]
    if wild:
        yield from Path(*parts[: wild[0]]).glob("/".join(parts[wild[0] :]))
