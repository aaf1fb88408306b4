"""What Spark costs on a table that one machine could do: `local[2]` beside the local engine."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import hedgerow as hr
from benchmarks.clock import Timed, timed
from benchmarks.machine import MissingPeer, needed
from benchmarks.page import Benchmark, clock, publish, table
from hedgerow.examples.commuting import write_commuting

LEVELS = ("region", "province", "municipality")
MASTER = "local[2]"
RUNS = 2

TEXT = """The synthetic country: {trips:,} trips between 8,092 municipalities, {cells:,} non-zero
of 65 million pairs, T = 6, ε = 1, δ = 1e-8, from a Parquet file to a release directory. Spark runs
as `{master}` on this machine, so what it adds is overhead alone: **{overhead}** over the local
engine for the first release, the start of Spark within it, and {later} for a further one in the
same session.

{times}"""


def tree_of(folder: Path) -> hr.Tree:
    """Pairs of municipalities."""
    areas = pl.read_parquet(folder / "municipalities.parquet")
    axes = [
        hr.Axis.from_frame(end, areas, LEVELS, columns=[f"{end[0]}_{level}" for level in LEVELS])
        for end in ("origin", "destination")
    ]
    return hr.Tree(axes, refine=["destination", "origin"])


def local(tree: hr.Tree, plan: hr.Plan, path: Path, output: Path) -> hr.Counts:
    """By the local engine."""
    counts = hr.Counts.from_frame(tree, path, count="trips")
    hr.release(counts, plan, directory=output)
    return counts


def by_spark(session: Any, plan: hr.Plan, path: Path, output: Path) -> None:
    """By Spark."""
    reader = needed("hedgerow.engines.spark_table", "the Spark engine")
    release = needed("hedgerow.release.on_spark", "the Spark engine").release_on_spark
    records = reader.SparkTable(reader.read_files(session, str(path)), count="trips")
    release(records, plan, directory=output)


def measured() -> Benchmark:
    """Local releases, the start of a session, and releases in it."""
    needed("pyspark", "pyspark")
    if shutil.which("java") is None:
        raise MissingPeer("Java is not installed")
    engine = needed("hedgerow.engines.spark", "the Spark engine").SparkEngine(MASTER)
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_commuting(folder, "national")
        tree, path = tree_of(folder), folder / "trips.parquet"
        budget = hr.EpsilonDelta("1", "1e-8")
        plan = hr.make_plan(tree, budget=budget, neighbours=hr.Replace())
        times: dict[str, Timed] = {}
        for run in range(RUNS):
            times[f"local, release {run + 1}"], counts = timed(
                lambda run=run: local(tree, plan, path, folder / f"local-{run}")  # type: ignore[misc]
            )
        opened = engine.session()
        times["Spark, start"], session = timed(opened.__enter__)
        try:
            for run in range(RUNS):
                times[f"Spark, release {run + 1}"], _ = timed(
                    lambda run=run: by_spark(session, plan, path, folder / f"spark-{run}")  # type: ignore[misc]
                )
        finally:
            opened.__exit__(None, None, None)
    alone = min(times[f"local, release {run + 1}"].wall for run in range(RUNS))
    first = times["Spark, start"].wall + times["Spark, release 1"].wall - alone
    later = times[f"Spark, release {RUNS}"].wall - alone
    text = TEXT.format(
        trips=counts.total,
        cells=len(counts.values),
        master=MASTER,
        overhead=clock(max(first, 0.0)),
        later=clock(max(later, 0.0)),
        times=table(["", "seconds"], [[what, clock(time.wall)] for what, time in times.items()]),
    )
    figures = {what: time.wall for what, time in times.items()}
    return Benchmark("Spark's overhead", text, (), (), figures)


def main() -> None:
    """Measure and publish."""
    publish("spark", measured)


if __name__ == "__main__":
    main()
