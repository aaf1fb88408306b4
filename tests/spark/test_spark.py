"""The Spark engine: the release of the local one, whatever happens to its tasks, and no word of it.

One session for all; a tree is cut here however small it is.
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import venv
import warnings
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow import cli
from hedgerow.errors import OUTSIDE, HedgerowError, MachineError
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.bits import ReleaseKey
from hedgerow.plan import chain as planned_chain
from hedgerow.plan import spine as plan_spine
from hedgerow.plan import tables as plan_tables
from hedgerow.privacy.ledger.ledger import create_ledger
from hedgerow.release import execution
from hedgerow.release.directory import keys, staging
from hedgerow.release.directory.check import check
from hedgerow.release.directory.keys import Charging
from hedgerow.release.directory.measurements import counts_file, cuboid_slug
from hedgerow.release.directory.output import Unfinished
from hedgerow.release.execution import in_memory
from hedgerow.release.release import read_release
from hedgerow.spark import driver as on_spark
from hedgerow.spark import executors as cluster
from hedgerow.spark import table as of_table
from hedgerow.spark import top as cluster_top
from hedgerow.spark.driver import release_on_spark
from hedgerow.spark.executors import write_run
from hedgerow.spark.session import SEALED, SparkEngine, collected, spark_errors
from hedgerow.spark.table import SparkTable, read_files, read_source
from hedgerow.spec.release_spec import ReleaseSpec
from tests.hostile.test_confidential import chain, left_behind
from tests.made import plain_plan, random_counts, random_tree
from tests.pages import blocks
from tests.parts import JAVA, LIGHT_JAVA
from tests.refused import refused
from tests.release.spine.made_files import write_files
from tests.spark.killed_executor import table_and_plan, with_little_effort

pytestmark = [
    pytest.mark.xdist_group("spark"),  # one Java machine at a time
    JAVA.needed,
]
SEED, SECRET = 3, "ZZ-SECRET-CODE"
PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """A session that tries a task twice, with little effort for queries of a few rows."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        from pyspark import cloudpickle  # noqa: PLC0415 - it may not be installed

        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        folder = tmp_path_factory.mktemp("spark")
        patch.setenv(
            "SPARK_SUBMIT_OPTS",
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC "
            "-Dspark.python.daemon.module=tests.spark.preloaded "
            f"-Dspark.sql.warehouse.dir={folder} -Dderby.system.home={folder}",
        )
        path = os.environ.get("PYTHONPATH")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(PAGE.parents[1]), path])))
        with SparkEngine("local[2,2]", memory="1g").session() as session:
            with_little_effort(session)
            yield session


@pytest.fixture(autouse=True)
def cut_trees(monkeypatch):
    """Small trees are cut into jobs, as large ones are."""
    for limit in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
        monkeypatch.setattr(planned_chain, limit, 0)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", 5)


@pytest.fixture
def known_key(monkeypatch):
    """Releases draw the noise of a seed: for made-up tables alone."""
    fresh = staging.fresh_key

    def seeded(folder, *facts):
        with monkeypatch.context() as patch:
            patch.setattr(keys.os, "urandom", lambda _: seeded_bits(SEED).secret)
            return fresh(folder, *facts)

    monkeypatch.setattr(staging, "fresh_key", seeded)


def made(axes, measure=None, neighbours=None):
    """A made-up table and a plan for it, with enough noise that some subtrees are noise alone."""
    rng = np.random.default_rng(axes)
    tree = random_tree(rng, axes, depth=3, widest=4 if axes == 1 else 3)
    counts = random_counts(rng, tree, filled=0.6)
    plan = plain_plan(
        tree,
        budget=hr.Rho("1/50"),
        measure=hr.Survivors() if measure is None else measure,
        neighbours=hr.AddRemove() if neighbours is None else neighbours,
    )
    return counts, plan


@pytest.fixture
def frame_of(spark, tmp_path_factory):
    """Makes a Polars frame one of Spark's, in several partitions."""

    def read(table):
        folder = tmp_path_factory.mktemp("table")
        for i in range(3):
            table.gather_every(3, i).write_parquet(folder / f"{i}.parquet")
        return read_files(spark, str(folder))

    return read


@pytest.fixture
def table_of(frame_of):
    """Makes a table of leaves one of Spark's, each leaf in two rows with half of its records."""

    def read(counts):
        leaves, half = counts.level(counts.tree.depth), pl.col("count") // 2
        halves = [leaves.with_columns(half), leaves.with_columns(pl.col("count") - half)]
        return SparkTable(frame_of(pl.concat(halves)), count="count")

    return read


def assert_same(released, local, plan):
    for depth, what in enumerate(plan.depths):
        levels = plan.tree.cuboid(depth)
        assert released.content.counts(levels).equals(local.content.counts(levels)), depth
        if isinstance(what, hr.Measured):
            assert released.measurements(depth=depth).equals(local.measurements(depth=depth)), depth


CASES = {
    "survivors of one axis, public total": (1, hr.Survivors(), hr.Replace()),
    "survivors of two axes, measured total": (2, hr.Survivors(), hr.AddRemove()),
    "all of one axis, measured total": (1, hr.All(), hr.AddRemove()),
    "all of two axes, public total": (2, hr.All(), hr.Replace()),
}


@pytest.mark.usefixtures("known_key")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sweep(2)
def test_the_same_key_gives_the_release_of_the_local_engine(table_of, tmp_path, monkeypatch, case):
    counts, plan = made(*CASES[case])
    shuffles = []

    def counted(frame, what):
        shuffles.append(frame._jdf.queryExecution().executedPlan().toString().count("Exchange "))
        return collected(frame, what)

    for module in (cluster, cluster_top):
        monkeypatch.setattr(module, "collected", counted)
    assert 0 < plan.design.cut < plan.tree.depth
    found = release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    assert_same(found, local, plan)
    assert (
        tmp_path / "out" / "counts" / cuboid_slug(plan.tree.chain[-1]) / "part-00000.parquet"
    ).exists()
    assert [finding for finding in check(tmp_path / "out") if finding.failure] == []
    assert not (tmp_path / "out.staging").exists()
    # the rows of each leaf, and each run's leaves; of all nodes these are kept and used twice
    assert shuffles in ([1, 2], [1, 2, 2])


@pytest.mark.usefixtures("known_key")
def test_full_leaves_are_those_of_the_local_engine(frame_of, tmp_path):
    """Every leaf comes in three parts of 2^39 to 2^60 records, which are read apart."""
    counts, plan = made(1, hr.Survivors(), hr.AddRemove())
    leaves = counts.level(counts.tree.depth)
    parts = [leaves.with_columns(count=pl.lit(1 << power)) for power in (39, 40, 60)]
    whole = pl.concat(parts)
    table = SparkTable(frame_of(whole), count="count")
    found = release_on_spark(table, plan, directory=tmp_path / "out")
    full = hr.Counts.from_frame(counts.tree, whole, count="count")
    assert (full.values == 1 << 40).all()
    local = in_memory(full, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    assert_same(found, local, plan)


@pytest.mark.usefixtures("known_key")
@pytest.mark.parametrize("leaves", [0, 1])
def test_subtrees_without_records_are_noise_alone(table_of, tmp_path, leaves):
    counts, plan = made(1)
    codes = tuple(code[:leaves] for code in counts.codes)
    counts = hr.Counts.from_leaves(counts.tree, codes, counts.values[:leaves])
    found = release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    assert len(local.content.nodes[plan.tree.cuboid(plan.design.cut)]) > leaves
    assert_same(found, local, plan)


@pytest.mark.usefixtures("known_key")
def test_below_a_public_total_of_0_there_is_no_job(table_of, tmp_path):
    counts, plan = made(1, hr.All(), hr.Replace())
    nothing = tuple(code[:0] for code in counts.codes)
    counts = hr.Counts.from_leaves(counts.tree, nothing, counts.values[:0])
    found = release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    assert not any(len(nodes) for nodes in local.content.nodes.values())
    assert_same(found, local, plan)


@pytest.mark.usefixtures("known_key")
def test_a_tree_that_is_not_cut_is_released_by_the_driver(table_of, tmp_path, monkeypatch):
    monkeypatch.undo()
    counts, plan = made(1)
    release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    assert (tmp_path / "out" / counts_file(plan.tree.chain[-1])).is_file()
    assert [finding for finding in check(tmp_path / "out") if finding.failure] == []


TOGETHER = {
    "cube": hr.Cube(),
    "two tables": hr.Cuboids(["a0.level2 × a1.level1", "a0.level1 × a1.level2"]),
    "a chain and margins": hr.Cuboids(["a0.level3", "a1.level3"], chain=True),
}
"""Workloads whose cuboids are estimated together."""


@pytest.mark.usefixtures("known_key")
@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=["survivors", "all"])
@pytest.mark.parametrize("name", TOGETHER)
@pytest.mark.sweep(2)
def test_cuboids_that_are_estimated_together_are_summed_by_executors_and_released_by_the_driver(
    table_of, tmp_path, name, measure
):
    counts, _ = made(2)
    workload = TOGETHER[name]
    plan = plain_plan(counts.tree, budget=hr.Rho("1/2"), workload=workload, measure=measure)
    found = release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    for cuboid in plan.cuboids:
        assert found.level(cuboid).equals(local.level(cuboid)), cuboid
    for levels in plan.measured:
        assert np.array_equal(found.content.measured[levels], local.content.measured[levels]), (
            levels
        )
    assert [finding for finding in check(tmp_path / "out") if finding.failure] == []


@pytest.mark.usefixtures("known_key")
@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=["survivors", "all"])
def test_named_cuboids_whose_run_was_killed_are_finished_with_the_same_noise(
    table_of, tmp_path, monkeypatch, measure
):
    counts, _ = made(2)
    workload = TOGETHER["a chain and margins"]
    plan = plain_plan(counts.tree, budget=hr.Rho("1/2"), workload=workload, measure=measure)
    table = table_of(counts)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "write_report", killed)
        with pytest.raises(KeyboardInterrupt):
            release_on_spark(table, plan, directory=tmp_path / "out")
    key = ReleaseKey((tmp_path / "out.staging" / "release.key").read_bytes())
    found = release_on_spark(table, plan, directory=tmp_path / "out", unfinished=Unfinished.RESUME)
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=key)
    for cuboid in plan.cuboids:
        assert found.level(cuboid).equals(local.level(cuboid)), cuboid
    assert [finding for finding in hr.check(tmp_path / "out") if not finding.passed] == []


@pytest.fixture
def small_spines(monkeypatch):
    """Even a small spine is cut into jobs."""
    for limit, small in (("UNCUT", 0), ("MOST_ABOVE_THE_CUT", 200), ("WORTH_A_JOB", 1)):
        monkeypatch.setattr(plan_spine, limit, small)
    monkeypatch.setattr(plan_tables, "LEAST_SAVED", 0)


@pytest.mark.usefixtures("known_key", "small_spines")
@pytest.mark.parametrize("killed_at", [None, (cluster.Cluster, "down"), (on_spark, "take_parts")])
@pytest.mark.parametrize("workload", ["cube", "named"])
@pytest.mark.sweep(2)
def test_a_cube_and_named_cuboids_in_jobs_are_those_of_the_local_engine(
    table_of, tmp_path, monkeypatch, workload, killed_at
):
    counts, plan = table_and_plan(workload)
    assert len(plan.design.along.jobs) > 2
    table, unfinished = table_of(counts), Unfinished.REFUSE
    if killed_at is not None:
        with monkeypatch.context() as patch:
            patch.setattr(*killed_at, killed)
            with pytest.raises(KeyboardInterrupt):
                release_on_spark(table, plan, directory=tmp_path / "out")
        unfinished = Unfinished.RESUME
    release_on_spark(table, plan, directory=tmp_path / "out", unfinished=unfinished)
    finest = cuboid_slug(plan.tree.chain[-1])
    assert (tmp_path / "out" / "counts" / finest / "part-00000.parquet").exists()
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    assert_released_as(local, plan, tmp_path / "out")


@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=["survivors", "all"])
@pytest.mark.sweep(2)
def test_no_file_but_its_own_holds_the_key(table_of, tmp_path, monkeypatch, measure):
    """It is erased when the release appears; a copy would not be."""
    counts, plan = made(1, measure)
    with monkeypatch.context() as patch:
        patch.setattr(on_spark, "take_parts", killed)
        with pytest.raises(KeyboardInterrupt):
            release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    folder = tmp_path / "out.staging"
    key = (folder / "release.key").read_bytes()
    secret = key[-32:]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name == cluster.FLOW for path in files)
    assert {path.name for path in files if secret in path.read_bytes()} == {"release.key"}


@pytest.fixture
def along_a_spine(spark, tmp_path, small_spines):  # noqa: ARG001 - the active session
    """A release file along a spine that names Spark, and what the local engine makes of a key."""
    engine = '[engine]\nname = "spark"\nmaster = "local[2]"'
    file = write_files(tmp_path / "files", more=engine)
    spec = ReleaseSpec(file)
    plan = spec.plan(spec.tree())
    assert len(plan.design.jobs) > 2
    people = pl.read_csv(file.parent / "people.csv", schema_overrides={"people": pl.Int64})
    counts = hr.Counts.from_frame(plan.tree, people, count="people")

    def local(key):
        return in_memory(counts, plan, estimator=hr.Euclidean(), bits=key)

    return file, plan, local


def assert_released_as(local, plan, folder):
    found = read_release(folder)
    for cuboid in plan.cuboids:
        assert found.level(cuboid).equals(local.level(cuboid)), cuboid
    for levels in plan.measured:
        assert np.array_equal(found.content.measured[levels], local.content.measured[levels]), (
            levels
        )
    assert [finding for finding in check(folder) if not finding.passed] == []


@pytest.mark.usefixtures("known_key")
def test_a_release_along_a_spine_is_that_of_the_local_engine(along_a_spine, run):
    file, plan, local = along_a_spine
    code, said, failed = run("release", file)
    assert code == 0, failed
    assert "Released" in said
    assert_released_as(local(seeded_bits(SEED)), plan, file.parent / "out")


@pytest.mark.parametrize("instant", [(cluster.Cluster, "down"), (on_spark, "take_parts")])
@pytest.mark.sweep(2)
def test_a_killed_release_along_a_spine_is_finished_with_the_same_noise(
    along_a_spine, run, monkeypatch, instant
):
    file, plan, local = along_a_spine
    with monkeypatch.context() as patch:
        patch.setattr(*instant, killed)
        assert run("release", file)[0] == 130
    key = ReleaseKey((file.parent / "out.staging" / "release.key").read_bytes())
    code, _, failed = run("release", file, "--resume")
    assert code == 0, failed
    assert_released_as(local(key), plan, file.parent / "out")


WRITE_RUN = write_run


def dies_once(*run):
    """Write a run; the first time, end the whole process when it is written."""
    from pyspark import TaskContext  # noqa: PLC0415

    WRITE_RUN(*run)
    if run[3] % 2 and TaskContext.get().attemptNumber() == 0:
        os._exit(1)


def fails_half_way(folder, tree, errors, run, sums, found):
    """Fail the first time when some depths of the first job are found."""
    from pyspark import TaskContext  # noqa: PLC0415

    def broken():
        for i, result in enumerate(found):
            if i == 1 and TaskContext.get().attemptNumber() == 0:
                raise OSError(28, "No space left on device")
            yield result

    WRITE_RUN(folder, tree, errors, run, sums, broken())


@pytest.mark.usefixtures("known_key")
@pytest.mark.parametrize("fault", [dies_once, fails_half_way])
@pytest.mark.sweep(2)
def test_tasks_that_are_tried_again_change_nothing(table_of, tmp_path, monkeypatch, fault):
    counts, plan = made(2)
    monkeypatch.setattr(cluster, "write_run", fault)
    found = release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    assert_same(found, local, plan)


def killed(*_given):
    raise KeyboardInterrupt


def second_alone(*run):
    """Write the second run; no other is to be done."""
    assert run[3] == 1
    WRITE_RUN(*run)


def moved(counts, cut):
    """A table that differs in the place of one record, within one subtree."""
    levels = counts.tree.cuboid(cut)
    above = [
        axis.ancestors(level)[code]
        for axis, level, code in zip(counts.tree.axes, levels, counts.codes, strict=True)
    ]
    same = np.all([code[1:] == code[:-1] for code in above], axis=0) & (counts.values[1:] > 1)
    i = np.flatnonzero(same)[0]
    values = counts.values.copy()
    values[i : i + 2] += [1, -1]
    return hr.Counts.from_leaves(counts.tree, counts.codes, values)


@pytest.mark.usefixtures("known_key")  # how many subtrees survive is chance
@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=["survivors", "all"])
@pytest.mark.sweep(2)
def test_a_resumed_release_runs_finished_jobs_no_more(table_of, tmp_path, monkeypatch, measure):
    counts, plan = made(1, measure)
    table = table_of(counts)

    with monkeypatch.context() as patch:
        patch.setattr(on_spark, "take_parts", killed)
        with pytest.raises(KeyboardInterrupt):
            release_on_spark(table, plan, directory=tmp_path / "out")
    kept = tmp_path / "out.staging"
    key = ReleaseKey((kept / "release.key").read_bytes())
    with refused("the table differs"):
        release_on_spark(
            table_of(moved(counts, plan.design.cut)),
            plan,
            directory=tmp_path / "out",
            unfinished=Unfinished.RESUME,
        )
    notes = sorted((kept / "jobs").glob("*/notes/*"))
    assert len(notes) > 1
    notes[1].unlink()
    monkeypatch.setattr(cluster, "write_run", second_alone)
    found = release_on_spark(table, plan, directory=tmp_path / "out", unfinished=Unfinished.RESUME)
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=key)
    assert_same(found, local, plan)


@pytest.mark.usefixtures("known_key")
def test_a_release_that_is_killed_after_it_took_its_parts_is_finished(
    table_of, tmp_path, monkeypatch
):
    counts, plan = made(1)
    table = table_of(counts)
    with monkeypatch.context() as patch:
        patch.setattr(execution, "write_report", killed)
        with pytest.raises(KeyboardInterrupt):
            release_on_spark(table, plan, directory=tmp_path / "out")
    key = ReleaseKey((tmp_path / "out.staging" / "release.key").read_bytes())
    found = release_on_spark(table, plan, directory=tmp_path / "out", unfinished=Unfinished.RESUME)
    assert_same(found, in_memory(counts, plan, estimator=hr.Euclidean(), bits=key), plan)
    assert [finding for finding in hr.check(tmp_path / "out") if not finding.passed] == []


def test_what_spark_has_begun_is_bound_to_its_ledger(table_of, tmp_path, monkeypatch):
    counts, plan = made(1)
    table, ledger = table_of(counts), create_ledger(tmp_path / "ledger.sqlite")
    ledger.open_account("trips", plan.protection, hr.Rho(10))
    charging = Charging(ledger, "trips")
    with monkeypatch.context() as patch:
        patch.setattr(execution, "write_report", killed)
        with pytest.raises(KeyboardInterrupt):
            release_on_spark(table, plan, directory=tmp_path / "out", charging=charging)
    options = {"directory": tmp_path / "out", "unfinished": Unfinished.RESUME}
    with pytest.raises(hr.errors.ReleaseError, match="charged to dataset 'trips'"):
        release_on_spark(table, plan, **options)
    release_on_spark(table, plan, charging=charging, **options)
    stated = json.loads((tmp_path / "out" / "manifest.json").read_text())["ledger"]
    (charge,) = ledger.standing(ledger.account("trips", plan.protection)).charges
    assert stated == {"dataset": "trips", "release_id": charge.release_id}


def test_a_table_that_changes_while_it_is_read_is_not_released(table_of, tmp_path, monkeypatch):
    counts, plan = made(1)
    table = table_of(counts)

    def growing(batches):
        more = int.from_bytes(os.urandom(3), "big")
        for batch in batches:
            yield batch.set_column(
                batch.schema.get_field_index("count"), "count",
                pa.array([n + more for n in batch["count"].to_pylist()], pa.int64()),
            )  # fmt: skip

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        changing = table.frame.mapInArrow(growing, table.frame.schema)
    monkeypatch.setattr(on_spark, "persisted", nullcontext)  # what is kept would not be read again
    with refused("was not the same each time"):
        release_on_spark(SparkTable(changing, count="count"), plan, directory=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_units_are_bounded_as_the_local_engine_bounds_them(frame_of):
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 2, depth=2, widest=3)
    counts = random_counts(rng, tree, filled=0.8)
    records = counts.level(tree.depth).select(pl.exclude("count").repeat_by("count")).explode("*")
    records = records.with_columns(who=pl.Series(rng.integers(0, 40, len(records))).cast(pl.String))
    for m in (1, 3):
        local = hr.Counts.from_frame(tree, records, unit="who", contributions=m)
        table = SparkTable(frame_of(records), unit="who", contributions=m)
        found = on_spark.collected_counts(table.leaves(tree), tree, m)
        assert local.total < counts.total
        assert found.level(tree.depth).equals(local.level(tree.depth))


def changed(table, **columns):
    """A table with a first row of its own."""
    kinds = table.schema
    first = table.head(1).with_columns(
        **{name: pl.lit(v, dtype=kinds[name]) for name, v in columns.items()}
    )
    return pl.concat([first, table.tail(-1)])


BAD = {
    "an unknown code": ({"a0_level3": SECRET}, "a code that is not in the public list"),
    "another parent": ({"a0_level1": SECRET}, "under another parent|not in the public list"),
    "no code": ({"a0_level3": None}, "lacks a code"),
    "a negative count": ({"count": -987654}, "holds a negative number"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_tables_are_refused_in_a_sentence_that_quotes_nothing(frame_of, tmp_path, capfd, kind):
    counts, plan = made(1)
    columns, sentence = BAD[kind]
    table = SparkTable(frame_of(changed(counts.level(3), **columns)), count="count")
    with pytest.raises(hr.errors.TableError, match="outside its declared limits") as refused:
        release_on_spark(table, plan, directory=tmp_path / "out")
    assert re.search(sentence, str(refused.value.confidential))
    said = (
        f"{refused.value}{refused.value.__cause__}{refused.value.__context__}{capfd.readouterr()}"
    )
    assert not re.search(sentence, said)
    assert re.search(sentence, refused.value.confidential), "the rule, but not what breaks it"
    said += refused.value.confidential
    assert SECRET not in said
    assert "987654" not in said
    assert list(tmp_path.iterdir()) == []


def quotes(*_run):
    raise ValueError(SECRET)


def test_what_a_failure_of_a_task_says_stays_there(table_of, tmp_path, capfd, monkeypatch):
    counts, plan = made(1)
    monkeypatch.setattr(cluster, "write_run", quotes)
    with pytest.raises(
        MachineError, match=r"ValueError at test_spark\.py:\d+; what was begun is"
    ) as failed:
        release_on_spark(table_of(counts), plan, directory=tmp_path / "out")
    said = f"{failed.value}{failed.value.__cause__}{failed.value.__context__}{capfd.readouterr()}"
    assert SECRET not in said
    assert failed.value.exit_code == 1


TOWNS = pl.DataFrame({"town": ["a", "b"] * 500, "n": ["7"] * 1000, "who": [SECRET] * 1000})
SPEC = """
[[axis]]
name = "place"
levels = ["town"]
areas = "areas.csv"
[privacy]
rho = 1
[engine]
name = "spark"
master = "local[2]"
"""
DERBY = "jdbc:derby:memory:of_refusals;create=true"
RATIOS = 'SELECT "town", 70 / CAST("n" AS int) AS "n" FROM people'
QUERIES = {
    "a division by zero": RATIOS,
    "a word that is no number": 'SELECT "town", CAST("who" AS int) AS "n" FROM people',
    "a sum that breaks off": f'SELECT MIN("town") AS "town", MIN("n") AS "n" FROM ({RATIOS}) AS q',
}


def damaged(folder):
    """Write tables that are damaged or outside their limits; return how a file names each."""
    TOWNS.write_parquet(folder / "whole.parquet")
    whole, rows = (folder / "whole.parquet").read_bytes(), TOWNS.write_csv().encode()
    garbage = bytes(byte ^ 0x5A for byte in whole[20:200])
    files = {
        "footer.parquet": whole[: len(whole) // 2],
        "page.parquet": whole[:20] + garbage + whole[200:],
        "empty.parquet": b"",
        "other.parquet": SECRET.encode() * 100,
        "cut.csv.gz": gzip.compress(rows)[:20],
        "headless.csv": b"\n",
        "code.csv": rows + f"{SECRET},7,x\n".encode(),
        "negative.csv": rows + b"a,-7,x\n",
        "ragged.csv": rows + SECRET.encode(),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    named = {name: f"source = '{folder / name}'" for name in files}
    over = {name: f"source = '{DERBY}'\nquery = '{query}'" for name, query in QUERIES.items()}
    return named | {
        name: text.replace("'SELECT", "'''SELECT") + "''" for name, text in over.items()
    }


def test_all_refusals_of_a_table_on_spark_read_the_same(frame_of, tmp_path, capfd):
    """Whoever reads the log learns that a table was refused, and not why: all of it is the same."""
    zero = TOWNS.with_columns(n=pl.Series(["0", *["7"] * 999]))
    words = ", ".join(f"`{column}` VARCHAR(40)" for column in zero.columns)
    people = frame_of(zero).write.format("jdbc")
    people.options(url=DERBY, dbtable="people", createTableColumnTypes=words).save()
    (tmp_path / "areas.csv").write_text("town\na\nb\n")
    logs = {}
    for name, source in damaged(tmp_path).items():
        file = tmp_path / "release.toml"
        file.write_text(f'[table]\n{source}\ncount = "n"\n{SPEC}')
        code = cli.run(["release", str(file)])
        out, said = capfd.readouterr()
        elsewhere = "Warning: the table is no file of this machine"  # a public fact
        lines = [line for line in said.splitlines() if not line.startswith(elsewhere)]
        logs[name] = code, out, lines
    code, out, lines = logs["negative.csv"]
    assert (code, out, lines[-1]) == (2, "", f"Error: the table {OUTSIDE}")
    assert {name: log for name, log in logs.items() if log != logs["negative.csv"]} == {}


BREAKING = {
    "by a cast": f"CAST(CONCAT('{SECRET}', count) AS bigint) AS n",
    "by a user": f"raise_error(CONCAT('{SECRET}', count)) AS n",
    "by a division": "1 DIV (count - count) AS n",
    "with words of ours": (
        rf"CAST(CONCAT('\nRuntimeError: hedgerow task: {SECRET} at a.py:1\n', count) AS int) AS n"
    ),
}


@pytest.mark.parametrize("cut", [True, False], ids=["cut", "whole"])
@pytest.mark.parametrize("how", BREAKING)
def test_nothing_of_a_table_hangs_on_the_error_of_a_frame_that_breaks_off(
    table_of, tmp_path, capfd, monkeypatch, how, cut
):
    if not cut:
        monkeypatch.undo()
    counts, plan = made(1)
    frame = table_of(counts).frame.selectExpr("a0_level1", "a0_level2", "a0_level3", BREAKING[how])
    with refused("cannot be read to its end") as caught:
        release_on_spark(SparkTable(frame, count="n"), plan, directory=tmp_path / "out")
    assert chain(caught.value) == [caught.value]
    assert SECRET not in "".join(left_behind(caught.value))
    assert capfd.readouterr() == ("", "")


def dies(_batches):
    """End the process of the task."""
    os._exit(1)
    yield


def fills_the_disk(_batches):
    raise OSError(28, "No space left on device")
    yield


@pytest.mark.parametrize(("task", "why"), [(dies, "Python worker"), (fills_the_disk, "No space")])
def test_a_failure_of_the_cluster_is_no_fault_of_the_table(spark, table_of, monkeypatch, task, why):
    counts, plan = made(1)

    def failing(*_):
        def work(batches):
            yield from task(batches)

        return work

    monkeypatch.setattr(of_table, "_leaf_rows", failing)
    leaves = table_of(counts).leaves(plan.tree)
    with pytest.raises(MachineError, match=f"^the table cannot be read: .*{why}") as failed:
        on_spark.collected_counts(leaves, plan.tree, None)
    assert failed.value.confidential is None
    assert spark.range(3).count() == 3


def test_a_place_that_refuses_connections_is_no_fault_of_the_table(spark):
    sources = [("hdfs://localhost:1/people", None), ("jdbc:hive2://localhost:1/x", "SELECT 1")]
    for source, query in sources:
        with pytest.raises(
            MachineError, match=r"cannot be read: (ConnectException|SQLSTATE 08S01)$"
        ):
            read_source(spark, source, query)


def test_a_query_that_a_database_does_not_understand_is_bad_input(spark):
    with pytest.raises(hr.errors.TableError, match=r"over JDBC\) cannot be read: ") as caught:
        read_source(spark, DERBY, "SELECT nothing FROM nowhere")
    assert caught.value.breaks is None


LOST = (
    "Job aborted due to stage failure: Task 0 in stage 1.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 1.0 (TID 4) (host executor 1): "
)
"""How Spark's scheduler begins to tell what happened to a task."""
SCHEDULER = "org.apache.spark.SparkException"


@pytest.mark.parametrize(
    ("kind", "said", "failed"),
    [
        ("java.io.IOException", ["No space left on device"], "No space left on device"),
        (
            "java.io.IOException",
            ["error=2, No such file or directory"],
            "No such file or directory",
        ),
        ("java.io.IOException", [SECRET], None),
        ("java.io.EOFException", [], None),
        ("java.lang.OutOfMemoryError", ["Java heap space"], "OutOfMemoryError"),
        ("java.sql.SQLException", [SECRET, "08006"], "SQLSTATE 08006"),
        ("java.sql.SQLException", [SECRET, "57P01"], "SQLSTATE 57P01"),
        ("java.sql.SQLException", [SECRET, "22012"], None),
        ("java.sql.SQLException", [SECRET], None),
        (
            SCHEDULER,
            [f"{LOST}ExecutorLostFailure (executor 1 exited) {SECRET}"],
            "ExecutorLostFailure",
        ),
        (SCHEDULER, [f"{LOST}java.net.ConnectException: Connection refused"], "ConnectException"),
        (SCHEDULER, [f"{LOST}java.sql.SQLDataException: {SECRET}"], None),
        (SCHEDULER, ["Job 3 cancelled because SparkContext was shut down"], "SparkException"),
        (SCHEDULER, [SECRET], None),
    ],
)
def test_what_spark_says_is_a_failure_of_the_machine_or_of_the_table(spark, kind, said, failed):
    py4j = import_module("py4j.protocol")  # it may not be installed
    made_of = spark.sparkContext._jvm
    for part in kind.split("."):
        made_of = getattr(made_of, part)
    wrapped = spark.sparkContext._jvm.java.lang.RuntimeException(SECRET, made_of(*said))
    with pytest.raises(HedgerowError) as caught, spark_errors("the release failed", of_table=True):
        raise py4j.Py4JJavaError("An error occurred", wrapped)
    expected = f"the table {OUTSIDE}" if failed is None else f"the release failed: {failed}"
    assert str(caught.value) == expected
    assert isinstance(caught.value, hr.errors.TableError if failed is None else MachineError)
    assert chain(caught.value) == [caught.value]


@pytest.mark.parametrize("name", ["t.sav", "s3a://place/t.XLSX", "t.2024.json"])
def test_a_file_of_another_format_is_refused_by_name(name):
    """Before anything is read: Spark would take it for Parquet."""
    suffix = Path(name).suffix.lower()
    with pytest.raises(hr.errors.TableError) as refused:
        read_source(None, name)
    assert str(refused.value) == (
        f"the table {name} ends in {suffix}, and Spark reads CSV (.csv, .tsv, .txt) and Parquet "
        f"(.parquet, .pq): convert it, or write / behind the name of a folder of Parquet files"
    )


@pytest.mark.parametrize(
    "path",
    ["trips", "trips.2024", "trips.old/", "trips/*", "t.snappy.parquet", "T.PARQUET", "t.pq"],
)
def test_folders_and_patterns_are_read_as_parquet(path):
    read = SimpleNamespace(parquet=lambda given: given)
    assert read_files(SimpleNamespace(read=read), path) == path


def test_csv_files_are_read_as_the_local_engine_reads_them(spark, tmp_path):
    counts, plan = made(1)
    table = counts.level(3).with_columns(note=pl.lit('a "b"; c\nd'))
    table.write_csv(tmp_path / "a.csv", separator=";")
    found = SparkTable(read_files(spark, str(tmp_path / "a.csv")), count="count")
    read = on_spark.collected_counts(found.leaves(plan.tree), plan.tree, None)
    assert read.level(3).equals(counts.level(3))
    (tmp_path / "b.csv").write_text((tmp_path / "a.csv").read_text() + f"{SECRET};1\n")
    ragged = SparkTable(read_files(spark, str(tmp_path / "b.csv")), count="count")
    with pytest.raises(hr.errors.TableError, match="outside its declared limits") as refused:
        on_spark.collected_counts(ragged.leaves(plan.tree), plan.tree, None)
    assert "same number of fields" in refused.value.confidential


@pytest.mark.parametrize("more", [0, 1, 1 << 60])
def test_a_cell_is_cut_at_its_limit_as_the_local_engine_cuts_it(frame_of, more):
    """However its records are spread over partitions; the nodes above are cut at no limit."""
    counts, plan = made(1)
    table = counts.level(plan.tree.depth)
    large = pl.concat([table.head(1).with_columns(count=pl.lit((1 << 39) + more))] * 2 + [table])
    local = hr.Counts.from_frame(plan.tree, large, count="count")
    spark = SparkTable(frame_of(large).repartition(5), count="count")
    leaves = spark.leaves(plan.tree)
    assert local.values.max() == 1 << 40
    found = on_spark.collected_counts(leaves, plan.tree, None)
    assert found.level(3).equals(local.level(3))


def test_sources_that_are_not_there_are_refused(spark, tmp_path):
    for name in ("a.parquet", "a.csv"):
        with pytest.raises(hr.errors.TableError, match=r"does not exist; check its path$"):
            read_source(spark, str(tmp_path / name))
    with pytest.raises(hr.errors.TableError, match=r"nowhere does not exist; check its name$"):
        read_source(spark, "table:nowhere")
    with pytest.raises(hr.errors.TableError, match=r"needs query"):
        read_source(spark, "jdbc:derby:memory:a;password=secret")
    with pytest.raises(HedgerowError, match=r"over JDBC\) cannot be read: ") as failed:
        read_source(spark, "jdbc:derby:memory:a;password=secret", "SELECT 1 FROM a").count()
    assert "secret" not in str(failed.value)


def test_a_table_of_the_catalogue_is_read(spark, table_of):
    counts, plan = made(1)
    table_of(counts).frame.createOrReplaceTempView("people")
    found = SparkTable(read_source(spark, "table:people"), count="count")
    read = on_spark.collected_counts(found.leaves(plan.tree), plan.tree, None)
    assert read.level(3).equals(counts.level(3))


def test_a_database_is_read_over_jdbc(spark, table_of, tmp_path):
    """Of Derby, a database that Spark brings along: in memory, gone with the session."""
    counts, plan = made(2)
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    text = ", ".join(f"`{column}` VARCHAR(40)" for column in plan.tree.columns(3))
    table = table_of(counts).frame.write.format("jdbc").option("createTableColumnTypes", text)
    table.options(url=url, dbtable="people").save()
    found = SparkTable(read_source(spark, url, "SELECT * FROM people"), count="count")
    read = on_spark.collected_counts(found.leaves(plan.tree), plan.tree, None)
    assert read.level(3).equals(counts.level(3))
    release_on_spark(found, plan, directory=tmp_path / "out")
    assert [finding for finding in check(tmp_path / "out") if finding.failure] == []


def test_the_code_of_the_page_on_clusters_runs(spark, table_of, tmp_path):
    """Its blocks are text, as pages are tested without Spark."""
    code = [block.text for block in blocks(PAGE, PAGE.name) if "import" in block.text]
    of_frames, submitted = (text.replace("/shared/out", f"{tmp_path}/out") for text in code)
    counts, plan = made(1)
    spark.sql("CREATE DATABASE statistics")
    frame = table_of(counts).frame.withColumnRenamed("count", "trips")
    frame.write.saveAsTable("statistics.trips")
    exec(compile(of_frames, PAGE.name, "exec"), {"session": spark, "plan": plan})  # noqa: S102
    assert [finding for finding in check(tmp_path / "out") if finding.failure] == []
    assert submitted == "from hedgerow.cli import main\n\nmain()\n"
    assert callable(cli.main)


@pytest.mark.usefixtures("spark")
def test_a_release_file_asks_for_spark(tmp_path, run):
    counts, _ = made(1)
    tree = counts.tree
    levels = list(tree.axes[0].levels)
    columns = tree.columns(3)
    everything = tree.axes[0].path(3, np.arange(tree.leaves, dtype=np.int32))
    pl.DataFrame(everything).rename(dict(zip(columns, levels, strict=True))).write_csv(
        tmp_path / "areas.csv"
    )
    counts.level(3).write_parquet(tmp_path / "people.parquet")
    file = tmp_path / "release.toml"
    text = (
        f'[table]\nsource = "people.parquet"\ncount = "count"\n[[axis]]\nname = "a0"\n'
        f'levels = {levels}\ncolumns = {columns}\nareas = "areas.csv"\n[privacy]\nrho = "1/2"\n'
        f'[engine]\nname = "spark"\nmaster = "local[2]"\n'
    )
    file.write_text(text)
    code, said, failed = run("release", file)
    assert (code, failed.count("Traceback")) == (0, 0), failed
    assert "Released" in said
    assert (tmp_path / "out" / "counts" / "cuboid=3").is_dir()
    code, said, _ = run("check", tmp_path / "out")
    assert code == 0, said
    assert read_release(tmp_path / "out").level(depth=3)["count"].sum() > 0
    file.write_text(text.replace("people.parquet", "nothing.parquet") + '[output]\ndirectory="b"\n')
    code, said, failed = run("release", file)
    assert code == 2
    assert "does not exist; check its path" in failed.replace("\n", " ")
    assert "Traceback" not in failed


@pytest.mark.parametrize("python", ["of the driver", "without modules"])
@pytest.mark.sweep(2)
def test_executors_run_the_python_of_the_driver(tmp_path, python):
    """As somebody runs ``.venv/bin/hedgerow`` who has not activated the environment."""
    people = pl.DataFrame({"town": ["a", "b"], "n": [1000, 2000]})
    people.write_parquet(tmp_path / "people.parquet")
    people.select("town").write_parquet(tmp_path / "areas.parquet")
    (tmp_path / "release.toml").write_text(
        '[table]\nsource = "people.parquet"\ncount = "n"\n'
        '[[axis]]\nname = "place"\nlevels = ["town"]\nareas = "areas.parquet"\n'
        '[privacy]\nrho = 1\n[engine]\nname = "spark"\n'
    )
    environ = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    environ |= {"PATH": str(Path(shutil.which("java")).parent), **LIGHT_JAVA}
    if python == "without modules":
        venv.create(tmp_path / "bare")
        environ["PYSPARK_PYTHON"] = str(tmp_path / "bare" / "bin" / "python")
    done = subprocess.run(
        [sys.executable, "-m", "hedgerow.cli", "release", "release.toml"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    said = " ".join(done.stderr.split())
    if python == "of the driver":
        assert done.returncode == 0, said
        assert [finding for finding in check(tmp_path / "out") if finding.failure] == []
    else:
        assert done.returncode == 1
        assert "the Python of the executors has no" in said
        assert "set PYSPARK_PYTHON to one that has Hedgerow" in said
        assert "Traceback" not in said
        assert not (tmp_path / "out").exists()


FAILING = f"""
import sys
from hedgerow.spark.session import SparkEngine, collected
with SparkEngine("local-cluster[1,1,1024]", memory="1g").session() as session:
    try:
        collected(session.range(9).selectExpr("CAST(CONCAT('{SECRET}', id) AS int)"), "it failed")
    except Exception as error:
        sys.stdout.write(str(error))
"""


def test_executors_of_a_session_of_ours_log_nothing_that_a_task_failed_at(tmp_path):
    """Each writes to a file of its own, in Spark's home."""
    import pyspark  # noqa: PLC0415 - it may not be installed

    (tmp_path / "home").mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (tmp_path / "home" / part.name).symlink_to(part)
    environ = {name: value for name, value in os.environ.items() if "SPARK" not in name}
    environ |= {"SPARK_HOME": f"{tmp_path}/home", "PYSPARK_PYTHON": sys.executable, **LIGHT_JAVA}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FAILING],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.stdout == f"the table {OUTSIDE}"
    assert SECRET not in done.stderr
    logs = [*(tmp_path / "home" / "work").glob("*/*/std*")]
    assert len(logs) > 1
    for log in logs:
        assert SECRET not in log.read_text(), log


def test_a_session_of_ours_tells_nobody(spark):
    for name, value in SEALED.items():
        assert spark.conf.get(name) == value
    assert spark.sparkContext.uiWebUrl is None
