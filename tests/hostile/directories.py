"""Release directories that somebody forged: honest ones with one edit, and digests made to fit."""

import hashlib
import json
import os
import struct
from collections.abc import Callable
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import hedgerow as hr
from hedgerow.privacy import neighbours
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory import manifest, measurements
from hedgerow.release.directory import stored as described
from hedgerow.tables import axis
from tests.hostile.commands import listing, write
from tests.made import plain_plan

COUNTS, NOISY, DOMAIN = (
    "counts/cuboid=2.parquet",
    "measurements/cuboid=2.parquet",
    "domain/place.parquet",
)
CODES = [(f"c{c}", f"c{c}t{t}") for c in range(4) for t in range(5)]
MANY = 40_000_000
"""Rows that take 320 MB a column of whole numbers, twice what a command may take."""

HARMLESS = {"areas with escapes", "an honest cube", "an honest cube of survivors"}
"""Releases as they may be: they pass their check."""

FORGED = {
    "escape": "county\x1b[2K\r\x1b[32mok\x1b[0m   All 14 checks passed.",
    "new line": "county\nok   every file has the digest of the manifest",
    "C1 control": "county\x9b2J",
    "line separator": "county\u2028All 14 checks passed.",
    "paragraph separator": "county\u2029All 14 checks passed.",
    "bidirectional override": "\u202eytnuoc",
    "isolate": "county\u2066x",
    "zero width": "coun\u200bty",
    "byte order mark": "coun\ufeffty",
    "tag": "county\U000e0041",
}
"""Names that show something else than they are."""


def honest(folder: Path) -> Path:
    """A copy of a release of twenty tracts, which passes its check."""
    write(folder, _made_once())
    return folder


@cache
def _made_once() -> dict[str, bytes]:
    with TemporaryDirectory() as place:
        found = listing(made(Path(place) / "out"))
    return {name: content for name, content in found.items() if content is not None}


def made(folder: Path, level: str = "county", name: str = "place", **options: Any) -> Path:
    """A release of twenty tracts, with other names."""
    areas = pl.DataFrame(CODES, schema=[level, "tract"], orient="row")
    tree = hr.Tree([hr.Axis.from_frame(name, areas, levels=[level, "tract"])])
    table = areas.with_columns(people=pl.int_range(pl.len()) * 10 + 50)
    plan = plain_plan(tree, budget=hr.EpsilonDelta(1, "1e-6"), measure=hr.All(), **options)
    unit = plan.neighbours.unit
    table = table if unit is None else table.rename({"people": unit})
    counts = hr.Counts.from_frame(tree, table, count=None if unit else "people", unit=unit)
    hr.release(counts, plan, directory=folder)
    return folder


@contextmanager
def no_doors():
    """Names are not looked at: as an older version, or another program, would write them."""
    with (
        mock.patch.object(axis, "check_names"),
        mock.patch.object(described, "check_names"),
        mock.patch.object(neighbours, "check_name"),
        mock.patch.object(manifest, "_check_texts"),
    ):
        yield


def manifest_of(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "manifest.json").read_text()))


def sealed(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest whose digests fit, of the files and of the plan."""
    for name in manifest["files"]:
        path = folder / name
        if path.is_file():
            with path.open("rb") as file:
                manifest["files"][name] = hashlib.file_digest(file, "sha256").hexdigest()
    plan = json.dumps(manifest["plan"], sort_keys=True, separators=(",", ":"))
    manifest["plan_sha256"] = hashlib.sha256(plan.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest, ensure_ascii=True))


Edit = Callable[[Path], object]


def in_manifest(change: Callable[[dict[str, Any]], object]) -> Edit:
    """An edit of the manifest, whose digests are made to fit."""

    def edit(folder: Path) -> None:
        manifest = manifest_of(honest(folder))
        change(manifest)
        sealed(folder, manifest)

    return edit


def in_text(old: str, new: str) -> Edit:
    """An edit of the manifest's text, whatever becomes of its digests."""

    def edit(folder: Path) -> None:
        path = honest(folder) / "manifest.json"
        text = path.read_text()
        assert old in text, old
        path.write_text(text.replace(old, new, 1))

    return edit


def in_file(name: str, write: Callable[[Path], object]) -> Edit:
    """An edit of a file, whose digest is made to fit."""

    def edit(folder: Path) -> None:
        manifest = manifest_of(honest(folder))
        write(folder / name)
        sealed(folder, manifest)

    return edit


def instead(name: str, put: Callable[[Path], object]) -> Edit:
    """Something else in the place of a file."""

    def edit(folder: Path) -> None:
        path = honest(folder) / name
        path.unlink()
        put(path)

    return edit


def forged_name(word: str, where: str) -> Edit:
    """A release that was made with a forged name, consistent to the last byte of its page."""

    def edit(folder: Path) -> None:
        with no_doors():
            if where == "level":
                made(folder, level=word)
            elif where == "axis":
                made(folder, name=word)
            else:
                made(folder, neighbours=hr.AddRemove(1, unit=word))

    return edit


def like(path: Path, rows: int, **values: Any) -> None:
    """A file with the columns of another and many equal rows: a few kilobytes a billion."""
    first = pq.read_table(path).slice(0, 1).to_pydict()
    first = {name: column[0] for name, column in first.items()} | values
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    schema = pa.schema([pa.field(n, kinds[type(v)], nullable=False) for n, v in first.items()])
    a_group = min(rows, 20_000_000)
    columns = []
    for name, value in first.items():
        index = pa.array(np.zeros(a_group, dtype=np.int32))
        column = pa.DictionaryArray.from_arrays(index, pa.array([value], schema.field(name).type))
        columns.append(column)
    table = pa.table(columns, names=schema.names)
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False) as writer:
        for start in range(0, rows, a_group):
            writer.write_table(table.slice(0, min(a_group, rows - start)), row_group_size=a_group)


def bomb(name: str, rows: int = MANY, **values: Any) -> Edit:
    """A file of many rows."""
    return in_file(name, lambda path: like(path, rows, **values))


def bomb_of_the_plan(folder: Path) -> None:
    """Many areas that are one, of which the plan says that they are many."""
    bomb(DOMAIN)(folder)
    manifest = manifest_of(folder)
    manifest["plan"]["tree"]["axes"][0]["sizes"][-1] = MANY
    sealed(folder, manifest)


def with_rows(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    table = change(pq.read_table(path))
    pq.write_table(table, path, compression="zstd", store_schema=False)


def replaced(column: str, values: Callable[[pa.Table], Any]) -> Callable[[Path], None]:
    """One column of a file replaced."""

    def write(path: Path) -> None:
        def change(table: pa.Table) -> pa.Table:
            made = values(table)
            return table.set_column(table.schema.get_field_index(column), column, made)

        with_rows(path, change)

    return write


def patched_footer(old: int, new: int, *, every: bool = True) -> Callable[[Path], None]:
    """A footer that tells another number of rows, everywhere or once; the pages stay."""

    def write(path: Path) -> None:
        whole = path.read_bytes()
        (length,) = struct.unpack("<I", whole[-8:-4])
        footer = whole[-8 - length : -8]
        before, after = _varint(2 * old), _varint(2 * new if new >= 0 else -2 * new - 1)
        assert before in footer
        footer = footer.replace(b"\x16" + before, b"\x16" + after, -1 if every else 1)
        tail = footer + struct.pack("<I", len(footer)) + b"PAR1"
        path.write_bytes(whole[: -8 - length] + tail)

    return write


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def sparse(path: Path, gigabytes: int) -> None:
    """A file that takes no room on the disk."""
    with path.open("r+b") as file:
        file.truncate(gigabytes << 30)


def honest_codes(folder: Path) -> None:
    """Codes of a public list may hold anything: released as they are, shown escaped."""
    hidden = "\nok   All checks passed.\u202e"
    codes = [(f"c{c}\x1b[2K", f"c{c}t{t}{hidden}") for c in "ab" for t in "xy"]
    areas = pl.DataFrame(codes, schema=["county", "tract"], orient="row")
    tree = hr.Tree([hr.Axis.from_frame("place", areas, levels=["county", "tract"])])
    table = areas.with_columns(people=pl.Series([100, 200, 300, 400]))
    plan = plain_plan(tree, budget=hr.Rho(5), measure=hr.All())
    hr.release(hr.Counts.from_frame(tree, table, count="people"), plan, directory=folder)


def with_long(table: pa.Table, letters: int) -> pa.Array:
    """The codes of a table, the last of them very long."""
    return pa.array([*table["tract"].to_pylist()[:-1], "c" * letters], pa.large_string())


def plan_of(change: Callable[[dict[str, Any]], object]) -> Edit:
    return in_manifest(lambda manifest: change(manifest["plan"]))


def axis_of(**facts: Any) -> Edit:
    return plan_of(lambda plan: plan["tree"]["axes"][0].update(facts))


LONG = "x" * 1_000_000
NESTED = "[" * 200_000 + "]" * 200_000
ESC = FORGED["escape"]

NAMES: dict[str, Edit] = {
    **{f"a level with a {kind}": forged_name(word, "level") for kind, word in FORGED.items()},
    **{
        f"{what} with a {kind}": forged_name(FORGED[kind].replace(".", ""), where)
        for what, where in {"an axis": "axis", "a unit": "unit"}.items()
        for kind in ("escape", "new line", "bidirectional override")
    },
    "a level with a surrogate": in_text('"county"', '"\\ud800county"'),
}

WORDS: dict[str, Edit] = {
    "the dataset of the ledger": in_manifest(
        lambda m: m.update(ledger={"dataset": ESC, "release_id": "0" * 32})
    ),
    "a ledger in words": in_manifest(lambda m: m.update(ledger=ESC)),
    "the estimator": in_manifest(lambda m: m["estimator"].update(method=ESC)),
    "a parameter of the estimator": in_manifest(lambda m: m["estimator"].update({ESC: 1})),
    "the version": in_manifest(lambda m: m["software"].update(hedgerow=ESC)),
    "the version of the estimation": in_manifest(lambda m: m.update(estimation=ESC)),
    "another program": in_manifest(lambda m: m["software"].update({ESC: "1.0"})),
    "another key": in_manifest(lambda m: m.update({ESC: 1})),
    "the promise": in_manifest(lambda m: m.update(promise=ESC)),
    "the restriction": in_manifest(lambda m: m.update(restriction=ESC)),
    "the format": in_text(f'"{manifest.FORMAT}"', f'"{manifest.FORMAT}\\u001b[2J"'),
    "a file": in_manifest(lambda m: m["files"].update({ESC: "0" * 64})),
    "the mechanism": plan_of(lambda p: p.update(mechanism=ESC)),
    "the allocation": plan_of(lambda p: p.update(allocation=ESC)),
    "the measure": plan_of(lambda p: p.update(measure=ESC)),
    "the kind of budget": plan_of(lambda p: p["budget"].update(kind=ESC)),
    "the amount of the budget": plan_of(lambda p: p["budget"].update(epsilon=ESC)),
    "a share": plan_of(lambda p: p["cuboids"][1].update(share=ESC)),
    "a cuboid": plan_of(lambda p: p["cuboids"][1].update(cuboid=ESC)),
    "a kind of depth": plan_of(lambda p: p["cuboids"][1].update(kind=ESC)),
    "a step": plan_of(lambda p: p["tree"].update(refine=[ESC, "place.tract"])),
    "the leaf that is not stated": axis_of(not_stated=ESC),
    "an invariant": plan_of(lambda p: p.update(invariants=[{"axis": ESC, "level": ESC}])),
    "the relation": plan_of(lambda p: p["neighbours"].update(relation=ESC)),
    "a use": plan_of(lambda p: p["guarantee"]["uses"][0].update(mechanism=ESC)),
}

JSON: dict[str, Edit] = {
    "nested lists": in_text('"invariants": []', f'"invariants": {NESTED}'),
    "a second plan": in_text('"plan": {', '"plan": {"tree": {}}, "plan": {'),
    "not a number": in_text('"contributions": 1', '"contributions": NaN'),
    "infinity": in_text('"contributions": 1', '"contributions": -Infinity'),
    "a float beyond floats": in_text('"contributions": 1', '"contributions": 1e999999'),
    "a number of a million digits": in_text(
        '"contributions": 1', f'"contributions": {"9" * 10**6}'
    ),
    "a number of 4,000 digits": plan_of(lambda p: p["neighbours"].update(contributions=10**4000)),
    "an estimation of 4,000 digits": in_manifest(lambda m: m.update(estimation=10**4000)),
    "minus one contribution": plan_of(lambda p: p["neighbours"].update(contributions=-1)),
    "cells beyond floats": plan_of(lambda p: p["cuboids"][1].update(cells=10**400)),
    "a long share": plan_of(lambda p: p["cuboids"][1].update(share="1/" + "9" * 100_000)),
    "a tiny share": plan_of(lambda p: p["cuboids"][1].update(share="1e-999")),
    "a long name": axis_of(name=LONG),
    "a long level": axis_of(levels=[LONG, "tract"]),
    "many levels": axis_of(levels=[f"l{i}" for i in range(100_000)]),
    "many depths": plan_of(lambda p: p.update(cuboids=p["cuboids"] * 5_000)),
    "many uses": plan_of(lambda p: p["guarantee"].update(uses=p["guarantee"]["uses"] * 5_000)),
    "many files": in_manifest(
        lambda m: m["files"].update({f"f{i}": "0" * 64 for i in range(20_000)})
    ),
    "no axes": plan_of(lambda p: p["tree"].update(axes=[])),
    "an axis that is a number": plan_of(lambda p: p["tree"].update(axes=[1])),
    "a path for a name": axis_of(name="../../domain/place"),
    "a plan that is a list": in_manifest(lambda m: m.update(plan=[])),
    "files that are a list": lambda folder: (honest(folder) / "manifest.json").write_text(
        json.dumps({**manifest_of(folder), "files": ["x"]})
    ),
    "a sparse manifest": lambda folder: sparse(honest(folder) / "manifest.json", 40),
    "a manifest of spaces": lambda folder: (honest(folder) / "manifest.json").write_text(
        " " * (300 << 20) + (folder / "manifest.json").read_text()
    ),
    "no text": lambda folder: (honest(folder) / "manifest.json").write_bytes(b"\xff\xfe" * 100),
}

PARQUET: dict[str, Edit] = {
    "40 million counts": bomb(COUNTS),
    "40 million noisy counts": bomb(NOISY),
    "40 million areas": bomb(DOMAIN),
    "40 million areas, as the plan says": bomb_of_the_plan,
    "40 million totals": bomb("counts/cuboid=0.parquet"),
    "21 counts": bomb(COUNTS, 21),
    "a long code in each row": in_file(
        COUNTS, replaced("tract", lambda t: pa.array(["c" * 20_000_000] * len(t)))
    ),
    "one long code": in_file(COUNTS, replaced("tract", lambda t: with_long(t, 300_000_000))),
    "a long area": in_file(DOMAIN, replaced("tract", lambda t: with_long(t, 300_000_000))),
    "areas that differ in their ends": in_file(
        DOMAIN,
        replaced("tract", lambda t: pa.array(["c" * 10**7 + str(i) for i in range(len(t))])),
    ),
    "a footer of 2^50 rows": in_file(COUNTS, patched_footer(20, 1 << 50)),
    "a footer of 2^50 noisy counts": in_file(NOISY, patched_footer(20, 1 << 50)),
    "a footer of 2^50 areas": in_file(DOMAIN, patched_footer(20, 1 << 50)),
    "a footer of -1 rows": in_file(COUNTS, patched_footer(20, -1)),
    "counts that are not finite": in_file(
        COUNTS, replaced("estimate", lambda t: pa.array([float("nan")] * len(t)))
    ),
    "errors that are infinite": in_file(
        COUNTS, replaced("standard_error", lambda t: pa.array([float("inf")] * len(t)))
    ),
    "counts near 2^63": in_file(
        COUNTS, replaced("count", lambda t: pa.array([2**63 - 1] * len(t)))
    ),
    "noisy counts near 2^63": in_file(
        NOISY, replaced("noisy_count", lambda t: pa.array([-(2**63)] * len(t)))
    ),
    "lists in place of counts": in_file(
        COUNTS, replaced("count", lambda t: pa.array([[1] * 1000] * len(t)))
    ),
    "decimals in place of counts": in_file(
        COUNTS, replaced("count", lambda t: t["count"].cast(pa.decimal128(30, 2)))
    ),
    "a code with an escape": in_file(
        COUNTS, replaced("tract", lambda t: pa.array([ESC + str(i) for i in range(len(t))]))
    ),
    "areas with escapes": honest_codes,
    "a hundred thousand columns": in_file(
        COUNTS,
        lambda path: with_rows(
            path, lambda t: pa.table({f"c{i}": t["count"] for i in range(20_000)})
        ),
    ),
    "no Parquet": in_file(COUNTS, lambda path: path.write_bytes(b"PAR1" + bytes(100) + b"PAR1")),
    "an empty file": in_file(NOISY, lambda path: path.write_bytes(b"")),
}


def _deep(folder: Path) -> None:
    below = folder.joinpath(*["d"] * 500)
    below.mkdir(parents=True)
    (below / "f").touch()


FILES: dict[str, Edit] = {
    **{
        f"{name} is a {kind}": instead(name, put)
        for name in ("manifest.json", COUNTS, NOISY, DOMAIN, "report.html")
        for kind, put in {
            "pipe": os.mkfifo,
            "link to a device": lambda path: path.symlink_to("/dev/zero"),
            "link to a file": lambda path: path.symlink_to("/etc/hostname"),
            "folder": Path.mkdir,
        }.items()
    },
    "a page of 1 GB": lambda folder: sparse(honest(folder) / "report.html", 1),
    "a folder of parts that is a link": instead(
        COUNTS, lambda path: path.with_suffix("").symlink_to("/dev")
    ),
    "a deep folder": lambda folder: _deep(honest(folder)),
    "a file with an escape": lambda folder: (honest(folder) / "x\x1b[2J\n").touch(),
}


def cube(*sizes: int, **options: Any) -> hr.Plan:
    """A directory of a plan of a cube over two axes of four counties, and further levels each."""
    levels = ["county", "tract", *(f"level{k}" for k in range(len(sizes)))]
    nodes = [[f"c{c}", f"t{c}{t}"] for c in range(4) for t in range(3)]
    for size in sizes:
        nodes = [[*node, f"{node[-1]}.{i}"] for node in nodes for i in range(size)]
    areas = pl.DataFrame(nodes, schema=levels, orient="row")
    columns = [f"to_{level}" for level in levels]
    axes = [
        hr.Axis.from_frame("place", areas, levels=levels),
        hr.Axis.from_frame("work", areas, levels=levels, columns=columns),
    ]
    options = {"budget": hr.Rho(1), "neighbours": hr.Replace(), "measure": hr.All(), **options}
    return plain_plan(hr.Tree(axes), workload=hr.Cube(), **options)


@cache
def _cube_once(measure: str) -> dict[str, bytes]:
    plan = cube(measure=hr.All() if measure == "all" else hr.Survivors())
    leaves = plan.tree.axes[0].size(2)
    codes = tuple(np.repeat(np.arange(leaves, dtype=np.int32), 2) for _ in range(2))
    counts = hr.Counts.from_leaves(plan.tree, codes, np.arange(2 * leaves) * 10)
    with TemporaryDirectory() as place:
        hr.release(counts, plan, directory=Path(place) / "out")
        found = listing(Path(place) / "out")
    return {name: content for name, content in found.items() if content is not None}


def of_cube(change: Callable[[Path, dict[str, Any]], object], measure: str = "all") -> Edit:
    """An edit of a cube: of its files or its manifest, whose digests are made to fit."""

    def edit(folder: Path) -> None:
        write(folder, _cube_once(measure))
        manifest = manifest_of(folder)
        change(folder, manifest)
        sealed(folder, manifest)

    return edit


def cube_plan(change: Callable[[dict[str, Any]], object]) -> Edit:
    return of_cube(lambda _, manifest: change(manifest["plan"]))


def noisy_of(cuboid: str, change: Callable[[Any], Any], measure: str = "all") -> Edit:
    """Other noisy counts of a cuboid of a cube."""

    def edit(folder: Path, _: object) -> None:
        path = folder / f"measurements/cuboid={cuboid}.parquet"
        noisy = change(pq.read_table(path)["noisy_count"].to_numpy())
        schema = pa.schema([pa.field("noisy_count", pa.int64(), nullable=False)])
        pq.write_table(pa.table([noisy], schema=schema), path, store_schema=False)

    return of_cube(edit, measure)


def counts_of(cuboid: str, column: str, change: Callable[[Any], Any]) -> Edit:
    """Another column of the counts of a cuboid of a cube of survivors."""
    write = replaced(column, lambda table: pa.array(change(table[column].to_numpy())))
    return of_cube(lambda folder, _: write(folder / f"counts/cuboid={cuboid}.parquet"), "survivors")


def vast(folder: Path) -> None:
    """A cube of 60 million leaves in a few kilobytes: equal noisy counts of the leaves alone."""
    leaf = {name: [0] * 9 + [1] for name in ("place", "work")}
    shares, sizes = hr.Shares(leaf), (10, *[2] * 6)
    plan = cube(*sizes, neighbours=hr.AddRemove(), allocation=shares)
    folder.mkdir()
    with measurements.ReleaseFiles(folder, plan) as files:
        for levels in plan.levels:
            files.add(levels, Nodes.exact((np.zeros(1, np.int32),) * 2, np.ones(1, np.int64)), None)
    noisy = folder / measurements.noisy_file(plan.measured[-1])
    with pq.ParquetWriter(noisy, measurements.NOISY_SCHEMA, store_schema=False) as writer:
        writer.write_table(pa.table([np.zeros(1, np.int64)], schema=measurements.NOISY_SCHEMA))
    like(noisy, plan.tree.cells(plan.measured[-1]))
    (folder / "report.html").write_text("a page")
    manifest.write_manifest(folder, plan, hr.Euclidean())


def cube_fact(key: str, value: object) -> Edit:
    """Another fact of a cube's plan, or of one of its cuboids."""
    return cube_plan(lambda p: (p["cuboids"][4] if key == "levels" else p).update({key: value}))


HUGE = np.int64(2**63 - 1)
NO_NAMES: list[object] = [None, 1, True, "chain", "running-sums", [], {}, ["cube"], LONG, ESC]
NO_LEVELS: list[object] = [
    None, 1, "11", [1], [1.0, True], [-1, 3], [10**400, 0], [1] * 10**5
]  # fmt: skip

CUBES: dict[str, Edit] = {
    "an honest cube": of_cube(lambda *_: None),
    "an honest cube of survivors": of_cube(lambda *_: None, "survivors"),
    **{
        f"a cube's noisy {cuboid} that are {kind}, {measure}": noisy_of(cuboid, change, measure)
        for measure in ("all", "survivors")
        for cuboid in ("0-1", "1-1", "2-1", "2-2")
        for kind, change in {
            "too few": lambda noisy: noisy[:-1],
            "too many": lambda noisy: np.append(noisy, noisy),
            "none": lambda noisy: noisy[:0],
            "near 2^63": lambda noisy: np.where(np.arange(len(noisy)) % 2, HUGE, -HUGE),
            "below 0": lambda noisy: -abs(noisy) - 10**6,
            "in another order": lambda noisy: noisy[::-1],
        }.items()
    },
    **{
        f"a cube's {cuboid} with another {column}": counts_of(cuboid, column, change)
        for cuboid in ("0-0", "0-2", "2-1", "2-2")
        for column, change in {
            "count": lambda count: count[::-1] + 1,
            "estimate": lambda estimate: estimate * 0 + 1e308,
            "standard_error": lambda error: -error - 1,
            "high": lambda high: high * 0 - 1,
        }.items()
    },
    **{
        f"a cube's {key} that is {value!r:.20}": cube_fact(key, value)
        for key in ("workload", "measure")
        for value in NO_NAMES
    },
    **{
        f"a cube's levels that are {levels!r:.20}": cube_fact("levels", levels)
        for levels in NO_LEVELS
    },
    "a cube that measures survivors as all": cube_plan(lambda p: p.update(measure="survivors")),
    "a cube of 20,000 cuboids": cube_plan(lambda p: p.update(cuboids=p["cuboids"] * 2_000)),
    "a cube with shares that are no product": cube_plan(
        lambda p: p["cuboids"][4].update(share="1/3")
    ),
    "a cube of 64 axes": cube_plan(
        lambda p: p["tree"].update(
            axes=[{**p["tree"]["axes"][0], "name": f"a{i}"} for i in range(64)]
        )
    ),
    "a cube with two invariants": cube_plan(
        lambda p: p.update(
            invariants=[{"axis": axis, "level": "county"} for axis in ("place", "work")]
        )
    ),
    "a cube over one axis": plan_of(lambda p: p.update(workload="cube")),
    "a cube of 60 million leaves in a small file": vast,
}

EDITS = {**NAMES, **WORDS, **JSON, **PARQUET, **FILES, **CUBES}
