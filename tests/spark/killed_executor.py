"""A release on two executors of their own, one of which is killed when it has written a run.

Arguments: a folder with a table, the folder for the release, and the workload.
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pyspark
from pyspark import cloudpickle

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import chain as planned_chain
from hedgerow.plan import spine as planned_spine
from hedgerow.plan import tables
from hedgerow.release.directory import staging
from hedgerow.release.directory.keys import KEY_FILE
from hedgerow.spark import driver as on_spark
from hedgerow.spark import executors as cluster
from hedgerow.spark.executors import take_parts, write_run
from hedgerow.spark.session import SparkEngine
from hedgerow.spark.table import SparkTable, read_files
from tests.made import fixed_axis, plain_plan, random_axis, random_counts, random_tree

SEED = 11
WRITE_RUN = write_run


LIMITS = {
    (planned_chain, "UNCUT_LEAVES"): 0,
    (planned_chain, "MIN_JOBS"): 5,
    (planned_spine, "UNCUT"): 0,
    (planned_spine, "MOST_ABOVE_THE_CUT"): 60,
    (planned_spine, "WORTH_A_JOB"): 1,
    (tables, "LEAST_SAVED"): 0,
}
NAMED = hr.Cuboids(["a.level1 × b.level1", "a.level2", "a.level3 × b.level1"])
WORKLOADS = {
    "chain": {"measure": hr.Survivors()},
    "cube": {"workload": hr.Cube()},
    "named": {"workload": NAMED},
}


def table_and_plan(workload):
    """A made-up table and a plan for it, cut into jobs."""
    for (module, name), small in LIMITS.items():
        setattr(module, name, small)
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 2, depth=3, widest=3)
    if workload == "named":
        columns = ["b1"]
        beside = fixed_axis("b", 4, columns=columns, attribute=True)
        tree = hr.Tree([random_axis(rng, "a", 3, 3), beside])
    counts = random_counts(rng, tree, filled=0.6)
    options = {"measure": hr.All(), **WORKLOADS[workload]}
    return counts, plain_plan(tree, budget=hr.Rho("1/50"), **options)


def with_little_effort(session):
    """Let a session plan queries of a few rows as such: few partitions, nothing compiled."""
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.adaptive.enabled", "false")
    session.conf.set("spark.sql.shuffle.partitions", "3")


def parent(pid):
    """The process that started a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def kills_its_executor(*run):
    """Write a run; when the second one is first written, kill the executor's own machine."""
    WRITE_RUN(*run)
    if run[3] == 1 and not (run[0] / "killed").exists():
        java = os.getpid()
        while "java" not in Path(f"/proc/{java}/cmdline").read_text().split("\0")[0]:
            java = parent(java)
        (run[0] / "killed").write_text(str(java))
        os.kill(java, signal.SIGKILL)


def seeded(folder, *_facts):
    """The key of a seed: for made-up tables alone."""
    secret = seeded_bits(SEED).secret
    (folder / KEY_FILE).write_bytes(secret)
    return secret


def told(folder, content):
    """Say whom the release survived."""
    sys.stdout.write(f"killed {(folder / 'killed').read_text()}\n")
    take_parts(folder, content)


def main(table, directory, workload):
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    staging.fresh_key = seeded
    cluster.write_run = kills_its_executor
    setattr(on_spark, "take_parts", told)  # noqa: B010 - it is imported there, not defined
    _, plan = table_and_plan(workload)
    with SparkEngine("local-cluster[2,1,1024]", memory="1g").session() as session:
        with_little_effort(session)
        frame = read_files(session, table)
        on_spark.release_on_spark(SparkTable(frame, count="count"), plan, directory=directory)


if __name__ == "__main__":
    main(*sys.argv[1:])
