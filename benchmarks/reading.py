"""From a file to leaf counts: Polars' and DuckDB's group-by as the floor of our whole read.

A group-by is what nobody can leave out. Ours also matches every code with the public list of areas,
refuses contradictions and counts that are none, and sorts the leaves in tree order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import polars as pl

import hedgerow as hr
from benchmarks.clock import fastest
from benchmarks.page import Benchmark, Ratio, number
from studies.tables import synthetic_country

ROWS = 4_000_000
RUNS = 3
"""Each with a file of its own, and one file more to begin with."""
LEVELS = ("region", "province", "municipality")

TEXT = """{rows:,} rows of a Parquet file, {cells:,} pairs of 8,092 municipalities, read to leaf
counts in memory by all cores. *Six columns*: region, province and municipality of both ends, as
text; *two columns*: the municipalities alone. The group-bys only sum; ours also matches every code
with the public list, checks that the columns are consistent, rejects invalid counts, and sorts the
leaves in tree order. Each run reads a new file with other rows; all were just written, so the
operating system has them in memory and no disk is timed. The cost of this is a ratio below 1: our
read takes {least} to {most} times a group-by."""


@dataclass(frozen=True, slots=True)
class Trips:
    """Tables of rows that repeat pairs.

    Attributes:
        paths: of the Parquet files.
        columns: the codes in them.
        tree: over both ends.
    """

    paths: Sequence[Path]
    columns: Sequence[str]
    tree: hr.Tree


def trips(folder: Path) -> dict[str, Trips]:
    """The commuting example's pairs, drawn many times over, with all levels and with the last."""
    tree, found = synthetic_country(folder), {}
    pairs = pl.read_parquet(folder / "trips.parquet")
    for width, levels in (("six columns", LEVELS), ("two columns", LEVELS[-1:])):
        paths = [folder / f"{width} {run}.parquet" for run in range(RUNS + 1)]
        found[width] = Trips(paths, [f"{end}_{level}" for end in "od" for level in levels], tree)
    for run in range(RUNS + 1):
        rows = np.random.default_rng([5, run]).integers(0, pairs.height, ROWS)
        drawn = pairs[rows].with_columns(pl.lit(1, pl.Int64).alias("trips"))
        for table in found.values():
            drawn.select(*table.columns, "trips").write_parquet(table.paths[run])
    return found


def by_polars(table: Trips, path: Path) -> int:
    """Leaf counts by Polars; how many."""
    return pl.scan_parquet(path).group_by(table.columns).agg(pl.col("trips").sum()).collect().height


def by_duckdb(table: Trips, path: Path) -> int:
    """Leaf counts by DuckDB; how many."""
    named = ", ".join(table.columns)
    query = f"SELECT {named}, SUM(trips)::BIGINT FROM '{path}' GROUP BY {named}"
    with duckdb.connect() as database:
        return int(database.sql(query).to_arrow_table().num_rows)


def by_hedgerow(table: Trips, path: Path) -> int:
    """Leaf counts by Hedgerow; how many."""
    return len(hr.Counts.from_frame(table.tree, path, count="trips").values)


WAYS = {"Hedgerow": by_hedgerow, "Polars": by_polars, "DuckDB": by_duckdb}


def measured() -> Benchmark:
    """Both widths."""
    ratios = []
    cells = set[int]()
    with TemporaryDirectory() as folder:
        for width, table in trips(Path(folder)).items():
            tasks = {name: partial(way, table) for name, way in WAYS.items()}
            found = fastest(tasks, table.paths)
            cells |= {task(table.paths[0]) for task in tasks.values()}
            for peer in ("Polars", "DuckDB"):
                ours = found["Hedgerow"].wall
                ratios.append(Ratio(f"read and group, {width}", peer, ours, found[peer].wall))
    assert len(cells) == 1, "all three find the same cells"
    slower = sorted(1 / ratio.times for ratio in ratios)
    text = TEXT.format(
        rows=ROWS, cells=cells.pop(), least=number(slower[0]), most=number(slower[-1])
    )
    return Benchmark("Reading: the group-by floor", text, ratios, figures={"rows": ROWS})
