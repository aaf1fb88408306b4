"""The layer of a GeoPackage, which is a file of SQLite: a table of rows, and nothing that computes.

The file is opened unchangeable, so that neither a lock nor a journal beside it is touched. What its
schema could add (views, triggers, virtual tables, attached files, functions) stays shut: the layer
and what describes it are tables, and an authorizer refuses all but reading their columns. Rows are
read in the order of the table, whatever indices and statistics the file has, and in bounded steps.
(OGC 12-128: GeoPackage Encoding Standard, clauses 1.1.3 and 2.1.)
"""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import chain, repeat
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hedgerow.limits import MOST_BYTES_UNPACKED
from hedgerow.tables.maps.geometry import Areas, Crs, NoMap, from_wkb
from hedgerow.tables.sources.database import sql_identifier

ENVELOPES = {0: 0, 1: 32, 2: 48, 3: 48, 4: 64}
"""Bytes of the bounds before a geometry, by three bits of its flags."""
EXTENDED = 32
SCHEMA, CONTENTS, COLUMNS = "sqlite_master", "gpkg_contents", "gpkg_geometry_columns"
SYSTEMS, COLUMNS_OF = "gpkg_spatial_ref_sys", "table_xinfo"
STEPS_AT_ONCE, MOST_STEPS = 10_000, 50_000
"""Of SQLite's machine, and how often so many: pages may name one another without end."""


def read_geopackage(path: Path) -> Areas:
    """Return the areas of the first layer of a GeoPackage; a column is read when asked for.

    Raises:
        NoMap: it has none, or one that is no table.
    """
    with closing(_opened(path)) as file:
        for name in (CONTENTS, COLUMNS, SYSTEMS):
            _check_table(file, name)
        layer = file.execute(
            f"SELECT c.table_name, g.column_name, g.srs_id FROM {CONTENTS} c NOT INDEXED "
            f"CROSS JOIN {COLUMNS} g NOT INDEXED ON g.table_name = c.table_name "
            f"WHERE c.data_type = 'features' ORDER BY c.rowid LIMIT 1"
        ).fetchone()
        if layer is None:
            raise NoMap("it has no layer of features")
        table, own, system = layer
        _check_table(file, table)
        columns = file.execute(f"PRAGMA {COLUMNS_OF}({sql_identifier(table)})").fetchall()
        crs = _crs(file, system)
    if any(hidden for *_, hidden in columns):
        raise NoMap(
            f"its layer {table!r} has a column that is computed, and not stored; export the layer "
            "to a new file"
        )
    names = [name for _, name, *_ in columns]
    if own not in names:
        raise NoMap(f"its layer {table!r} has no geometry")
    values = partial(_column, path, table)
    geometry = from_wkb([_binary(value) for value in values(own)])
    return Areas(tuple(name for name in names if name != own), values, geometry, crs)


def _opened(path: Path) -> sqlite3.Connection:
    """Open a file of SQLite to be read, and nothing beside it."""
    place = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    file = sqlite3.connect(place, uri=True)
    file.execute("PRAGMA trusted_schema = OFF")
    file.execute("PRAGMA temp_store = MEMORY")
    file.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES_UNPACKED)
    file.set_authorizer(_allowed)
    is_over = chain(repeat(False, MOST_STEPS), repeat(True))  # no Python: it would catch Ctrl-C
    file.set_progress_handler(is_over.__next__, STEPS_AT_ONCE)
    return file


def _allowed(
    action: int, first: str | None, _second: str | None, _database: str | None, inner: str | None
) -> int:
    """Return whether a statement may do what it is about to; ``inner`` is a view or a trigger."""
    may = action in {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ} or (
        action == sqlite3.SQLITE_PRAGMA and first == COLUMNS_OF
    )
    return sqlite3.SQLITE_OK if may and inner is None else sqlite3.SQLITE_DENY


def _check_table(file: sqlite3.Connection, name: str) -> None:
    """Raise unless a file has a table of that name which stores its rows."""
    select = f"SELECT type, rootpage, sql FROM {SCHEMA} WHERE name = ?"
    rows = file.execute(select, [name]).fetchall()
    word = rf"CREATE\s+TABLE\s+[\"'`\[]?{re.escape(name.replace(chr(34), chr(34) * 2))}\b"
    is_table = len(rows) == 1 and rows[0][0] == "table" and rows[0][1] > 0
    if not is_table or not re.match(word, rows[0][2], re.IGNORECASE):
        raise NoMap(
            f"its {name!r} is missing, a view or a virtual table, and only tables are read; export "
            "the layer to a new GeoPackage"
        )


def _column(path: Path, table: str, name: str) -> Sequence[Any]:
    """Return a column of a layer whose values are together no larger than a map may be."""
    values, size = [], 0
    select = f"SELECT {sql_identifier(name)} FROM {sql_identifier(table)} NOT INDEXED"
    with closing(_opened(path)) as file:
        for (value,) in file.execute(select):
            size += 64 + len(value) if isinstance(value, bytes | str) else 64
            if size > MOST_BYTES_UNPACKED:
                raise NoMap(f"its column {name!r} has more than 0.6 GB; simplify it first")
            values.append(value)
    return values


def _binary(value: Any) -> bytes | None:
    """Return the well-known binary behind the header of a geometry; None of an empty one."""
    if value is None:
        return None
    if not isinstance(value, bytes) or value[:2] != b"GP" or len(value) < 8:
        raise NoMap("it has a geometry without the header of a GeoPackage; export the layer again")
    flags = value[3]
    if flags & EXTENDED or (flags >> 1 & 7) not in ENVELOPES:
        raise NoMap("it has a geometry of a kind that is no area")
    return value[8 + ENVELOPES[flags >> 1 & 7] :]


def _crs(file: sqlite3.Connection, system: int) -> Crs:
    """Return the coordinate reference system that a layer names by its number."""
    row = file.execute(
        f"SELECT organization, organization_coordsys_id, definition FROM {SYSTEMS} "
        f"WHERE srs_id = ?",
        [system],
    ).fetchone()
    if row is None:
        return Crs()
    authority, code, text = row
    crs = Crs.of_code("EPSG", str(code)) if str(authority).upper() == "EPSG" else Crs()
    return crs if crs.system is not None else Crs.of_text(str(text))
