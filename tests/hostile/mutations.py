"""Valid inputs, and hypothesis strategies for what can become of them."""

import io
import json
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st


class Literal(str):
    """A value as it is typed in TOML."""

    __slots__ = ()


PLACES = {
    "region": ["r1", "r1", "r2", "r2", "r2"],
    "town": ["t1", "t2", "t3", "t4", "t5"],
}
ORIGIN = {"o_region": ["r1", "r2", "r2", "r1"], "o_town": ["t1", "t3", "t5", "t2"]}
DESTINATION = {"d_region": ["r2", "r1", "r2", "r1"], "d_town": ["t4", "t2", "t3", "t2"]}


def parquet(columns: Any) -> bytes:
    """A table as a Parquet file."""
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def csv(columns: dict[str, list[Any]]) -> bytes:
    """A table as a CSV file."""
    return pl.DataFrame(columns).write_csv().encode()


def trips() -> dict[str, Any]:
    """Two axes over one public list; counted rows in Parquet."""
    axes = [
        {
            "name": name,
            "levels": ["region", "town"],
            "columns": [f"{name[0]}_region", f"{name[0]}_town"],
            "areas": "places.csv",
        }
        for name in ("origin", "destination")
    ]
    return {
        "table": {"source": "table.parquet", "count": "trips"},
        "axis": axes,
        "tree": {"refine": ["destination", "origin"]},
        "privacy": {
            "neighbours": "replace",
            "contributions": 1,
            "mechanism": "discrete-gaussian",
            "epsilon": 1,
            "delta": Literal("1e-6"),
        },
        "allocation": {"method": "shares", "shares": [Literal("0.25")] * 4},
        "estimate": {"method": "chebyshev", "measure": "survivors"},
        "output": {"directory": "out"},
    }


def people() -> dict[str, Any]:
    """One axis; one row a record, bounded by a unit column, in CSV."""
    return {
        "table": {"source": "table.csv", "unit": "person"},
        "axis": [
            {
                "name": "home",
                "levels": ["region", "town"],
                "areas": "places.csv",
                "not_stated": "t5",
            }
        ],
        "privacy": {"neighbours": "add-remove", "contributions": 2, "rho": "1/2"},
        "allocation": {"method": "optimal", "importance": [1, 2, 3], "objective": "cells"},
        "estimate": {"method": "euclidean", "measure": "all"},
        "output": {"directory": "out"},
    }


def incomes() -> dict[str, Any]:
    """A numeric axis, in CSV."""
    return {
        "table": {"source": "table.csv"},
        "axis": [{"name": "income", "low": 0, "high": 100, "bins": 8, "out_of_bounds": "clamp"}],
        "privacy": {"neighbours": "replace", "mechanism": "discrete-laplace", "epsilon": 1},
        "allocation": {"method": "distribution"},
        "estimate": {"method": "euclidean", "measure": "all"},
        "output": {"directory": "out"},
    }


RECORDS = {
    "region": ["r1", "r2", "r2", "r1", "r9"],
    "town": ["t1", "t3", "t5", "t2", "t9"],
    "person": ["a", "a", "a", "b", "c"],
}
TABLES: dict[str, tuple[dict[str, Any], dict[str, bytes]]] = {
    "trips": (
        trips(),
        {
            "table.parquet": parquet(ORIGIN | DESTINATION | {"trips": [5, 0, 2, 9]}),
            "places.csv": csv(PLACES),
        },
    ),
    "people": (people(), {"table.csv": csv(RECORDS), "places.csv": csv(PLACES)}),
    "incomes": (incomes(), {"table.csv": csv({"income": [1.0, 3.5, 99.0, 100.0, 12.0]})}),
}


def toml(tree: dict[str, Any]) -> str:
    """A dictionary as TOML, however odd."""
    lines = []
    for name, section in tree.items():
        if isinstance(section, dict):
            lines += [f"[{_key(name)}]", *_entries(section)]
        elif isinstance(section, list) and section and all(isinstance(x, dict) for x in section):
            for part in section:
                lines += [f"[[{_key(name)}]]", *_entries(part)]
        else:
            lines.insert(0, f"{_key(name)} = {_value(section)}")
    return "\n".join(lines) + "\n"


def _entries(section: dict[str, Any]) -> list[str]:
    return [f"{_key(name)} = {_value(value)}" for name, value in section.items()]


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        return "{" + ", ".join(_entries(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return str(value)


ODD_TEXTS = [
    "", " ", "\0", "a\0b", "\ufeff", "\u202eabc", "e\u0301", "👩‍👩‍👧", "\r", "\n", "\x7f", "'", '"',
    "`", "%", "{}", "..", ".", "/", "//", "a/b", "~", "*", "[1]", "?", "-", "--help", "nan", "inf",
    "1e999", "1/0", "0/1", "1/3", "-1/2", "0.1", "table", "total", "count", "estimate", "low",
    "high", "standard_error", "noisy_count", "region", "town", "home.town", "places.csv",
    "table.csv", "release.toml", "out", "out/../out", "out/", "sqlite:///x",
    "/dev/null", "/dev/full", "x" * 300, "x" * 10_000, "é" * 200,
    "SELECT 1", "postgresql://u:p@h/d", "x" * 200, "[bold]x[/bold]", "[/]",
]  # fmt: skip
ODD_LITERALS = [
    "0", "-1", "1", "2", "3", "64", "65", "1000000", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "1e400", "-1e400", "1e-400", "1e-20", "0.5",
    "0.1", "1.0", "-0.0", "inf", "-inf", "nan", "0x10", "1_000", "9" * 400, "0." + "3" * 400,
    "true", "false", "1979-05-27", "07:32:00", "[]", "[[]]", "{}", "[1, 2, 3]", '["a", "a"]',
    '["region"]', '["town", "region"]', "[0.5, 0.5]", "[1]", "[0, 0, 0, 1]", '{ source = "x" }',
    '{ source = "table.csv", public = true }', '{ source = "places.csv", public = true }',
    "[" * 200 + "]" * 200,
]  # fmt: skip
ODD_KEYS = [
    "", "x", "region", "query", "columns", "exactly", "delta", "rho", "low", "bins", "edges",
    "prior", "penalty", "invariant", "ledger", "simulate", "axis", "ratio", "\0",
    "__class__",
]  # fmt: skip

odd_values = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.sampled_from(ODD_LITERALS).map(Literal),
    st.text(max_size=8),
    st.integers(),
)


@st.composite
def damaged_bytes(draw: Any, valid: bytes) -> bytes:
    """A few bytes changed, cut out, doubled or put in."""
    data = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        how = draw(st.sampled_from(["change", "cut", "double", "put", "end"]))
        if how == "change":
            data[at:end] = bytes(b ^ (1 << draw(st.integers(0, 7))) for b in data[at:end])
        elif how == "cut":
            del data[at:end]
        elif how == "double":
            data[at:at] = data[at:end] * draw(st.integers(1, 5))
        elif how == "put":
            data[at:at] = draw(st.one_of(st.binary(max_size=8), odd_bytes))
        else:
            del data[at:]
    return bytes(data)


odd_bytes = st.sampled_from(
    [
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n\n",
        b'"',
        b",",
        b";",
        b"\xed\xa0\x80",
        b"'''",
        b"-1",
    ]
)


@st.composite
def damaged_tree(draw: Any, valid: Any) -> Any:
    """A few values replaced, removed, renamed, moved or added, anywhere in JSON or TOML."""
    tree = json.loads(json.dumps({"whole": _marked(valid)}), object_hook=_unmarked)
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        holders = [tree["whole"], *_holders(tree["whole"])]
        holder = draw(st.sampled_from(holders))
        if not isinstance(holder, dict | list):
            break
        places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add", "move"]))
        if how == "add" or not places:
            _put(holder, draw(st.sampled_from(ODD_KEYS)), draw(odd_values))
        elif how == "replace":
            holder[draw(st.sampled_from(places))] = draw(odd_values)
        else:
            taken = holder.pop(draw(st.sampled_from(places)))
            if how == "move":
                _put(draw(st.sampled_from(holders)), draw(st.sampled_from(ODD_KEYS)), taken)
    return tree["whole"]


def _marked(value: Any) -> Any:
    if isinstance(value, Literal):
        return {"\0literal": str(value)}
    if isinstance(value, dict):
        return {name: _marked(inner) for name, inner in value.items()}
    return [_marked(inner) for inner in value] if isinstance(value, list) else value


def _unmarked(found: dict[str, Any]) -> Any:
    return Literal(found["\0literal"]) if "\0literal" in found else found


def _holders(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    found = [each for each in inner if isinstance(each, dict | list)]
    return found + [deeper for each in found for deeper in _holders(each)]


def _put(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    elif isinstance(holder, list):
        holder.append(value)


COLUMNS = [
    pa.array([None] * 4, pa.string()),
    pa.array([None] * 4, pa.null()),
    pa.array([b"\xff\xfe", b"", b"\0", None]),
    pa.array([[1], [], None, [2]]),
    pa.array([{"a": 1}, {"a": None}, None, {"a": 2}]),
    pa.array([1.5, float("nan"), float("inf"), -0.0]),
    pa.array([2**63 - 1] * 4),
    pa.array([-(2**63)] * 4),
    pa.array([2**64 - 1] * 4, pa.uint64()),
    pa.array([0, 10**9, 1, 2], pa.timestamp("ns")),
    pa.array([0, 1, 2, 3], pa.date32()),
    pa.array([0, 1, 2, 3], pa.time64("us")),
    pa.array([True, False, None, True]),
    pa.array(["1", "02", " 3", "4e1"]),
    pa.array(["r1", "r2", "r2", "r1"]).dictionary_encode(),
    pa.array([1, 2, 3, 4], pa.decimal128(38, 10)),
    pa.array(["t1", "t1", "t2", "\0"]),
    pa.array([1, 2, 3, 4], pa.duration("s")),
    pa.array([b"0123456789abcdef"] * 4, pa.binary(16)),
]


@st.composite
def damaged_table(draw: Any, valid: dict[str, list[Any]]) -> pa.Table:
    """Columns of other types, under other names, missing, doubled; or no rows."""
    names, columns = list(valid), [pa.array(values) for values in valid.values()]
    rows = len(columns[0])
    for _ in range(draw(st.integers(1, 3))):
        i = draw(st.integers(0, len(columns) - 1))
        how = draw(st.sampled_from(["type", "type", "name", "cell", "twice", "drop"]))
        if how == "type":
            columns[i] = draw(st.sampled_from(COLUMNS)).take([j % 4 for j in range(rows)])
        elif how == "name":
            names[i] = draw(st.sampled_from([*ODD_TEXTS, *names]))
        elif how == "cell":
            values = columns[i].to_pylist()
            values[draw(st.integers(0, len(values) - 1))] = draw(st.sampled_from(ODD_TEXTS))
            columns[i] = pa.array([None if v is None else str(v) for v in values])
        elif how == "twice":
            names, columns = [*names, names[i]], [*columns, columns[i]]
        elif len(columns) > 1:
            del names[i], columns[i]
    table = pa.Table.from_arrays(columns, names=names)
    return table.slice(0, draw(st.sampled_from([len(table), len(table), 0, 1])))
