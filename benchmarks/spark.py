"""What Spark costs on a table that one machine could do: `local[2]` beside the local engine."""

import shutil
from contextlib import ExitStack
from fractions import Fraction
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

import hedgerow as hr
from benchmarks.clock import Clock, Timed
from benchmarks.machine import MissingPeer, needed
from benchmarks.page import Benchmark, clock
from studies.page import markdown
from studies.releases import trips_plan, within
from studies.tables import synthetic_country

MASTER = "local[2]"
RUNS = 2
STEP = Fraction(1, 1_000_000)
"""By how much ε differs from release to release."""

TEXT = """The synthetic country: {trips:,} trips between 8,092 municipalities, {cells:,} non-zero
of 65 million pairs, T = 6, ε = 1, δ = 1e-8, from a Parquet file to a release directory, each time
with another file of the same rows and a plan at another ε, a millionth further on. Spark runs
as `{master}` on this machine, so the difference is pure overhead: **{overhead}** over the local
engine for the first release, including the start of Spark, and {later} for another one in the same
session.

{times}"""


Asked = tuple[Path, hr.Plan]
"""A table, and the plan of its release at an ε of its own."""


def questions(folder: Path) -> list[Asked]:
    """Files of the same trips in another order, each with a plan of its own."""
    tree, found = synthetic_country(folder), []
    trips = pl.read_parquet(folder / "trips.parquet")
    for run in range(RUNS):
        path = folder / f"trips-{run + 1}.parquet"
        trips.sample(fraction=1, shuffle=True, seed=run).write_parquet(path)
        found.append((path, trips_plan(tree, within(1 + run * STEP), hr.Survivors())))
    return found


def local(asked: Asked) -> hr.Counts:
    """By the local engine."""
    path, plan = asked
    counts = hr.Counts.from_frame(plan.tree, path, count="trips")
    hr.release(counts, plan, directory=path.with_suffix(".local"))
    return counts


def by_spark(session: Any, asked: Asked) -> None:
    """By Spark."""
    reader = needed("hedgerow.spark.table", "the Spark engine")
    release = needed("hedgerow.spark.driver", "the Spark engine").release_on_spark
    path, plan = asked
    records = reader.SparkTable(reader.read_files(session, str(path)), count="trips")
    release(records, plan, directory=path.with_suffix(".spark"))


def measured() -> Benchmark:
    """Local releases, the start of a session, and releases in it."""
    needed("pyspark", "pyspark")
    if shutil.which("java") is None:
        raise MissingPeer("Java is not installed")
    engine = needed("hedgerow.spark.session", "the Spark engine").SparkEngine(MASTER)
    with TemporaryDirectory() as name:
        all_asked = questions(Path(name))
        watch = Clock()
        times: dict[str, Timed] = {}
        for run, asked in enumerate(all_asked, start=1):
            times[f"local, release {run}"], counts = watch.timed("local", local, asked)
        with ExitStack() as stack:
            times["Spark, start"], session = watch.timed(
                "start", lambda _: stack.enter_context(engine.session()), MASTER
            )
            for run, asked in enumerate(all_asked, start=1):
                task = partial(by_spark, session)
                times[f"Spark, release {run}"], _ = watch.timed("Spark", task, asked)
    alone = min(times[f"local, release {run + 1}"].wall for run in range(RUNS))
    first = times["Spark, start"].wall + times["Spark, release 1"].wall - alone
    text = TEXT.format(
        trips=counts.total,
        cells=len(counts.values),
        master=MASTER,
        overhead=clock(max(first, 0.0)),
        later=clock(max(times[f"Spark, release {RUNS}"].wall - alone, 0.0)),
        times=markdown(" | seconds", [[what, clock(time.wall)] for what, time in times.items()]),
    )
    return Benchmark("Spark's overhead", text, figures=times)
