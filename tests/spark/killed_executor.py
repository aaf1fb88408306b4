"""A release on two executors of their own, one of which is killed when it has written a run.

Arguments: a folder with a table, and the folder for the release.
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
from hedgerow.release.directory import staging
from hedgerow.spark import driver as on_spark
from hedgerow.spark import executors as cluster
from hedgerow.spark.executors import take_parts, write_run
from hedgerow.spark.session import SparkEngine
from hedgerow.spark.table import SparkTable, read_files
from tests.made import plain_plan, random_counts, random_tree

SEED = 11
WRITE_RUN = write_run


def table_and_plan():
    """A made-up table and a plan for it, cut into subtrees."""
    planned_chain.UNCUT_LEAVES, planned_chain.MIN_JOBS = 0, 5
    rng = np.random.default_rng(2)
    tree = random_tree(rng, 2, depth=3, widest=3)
    counts = random_counts(rng, tree, filled=0.6)
    return counts, plain_plan(tree, budget=hr.Rho("1/50"))


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
    del folder
    return seeded_bits(SEED).secret


def told(folder, content):
    """Say whom the release survived."""
    sys.stdout.write(f"killed {(folder / 'killed').read_text()}\n")
    take_parts(folder, content)


def main(table, directory):
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    staging.fresh_key = seeded
    cluster.write_run = kills_its_executor
    setattr(on_spark, "take_parts", told)  # noqa: B010 - it is imported there, not defined
    _, plan = table_and_plan()
    with SparkEngine("local-cluster[2,1,1024]", memory="1g").session() as session:
        frame = read_files(session, table)
        on_spark.release_on_spark(SparkTable(frame, count="count"), plan, directory=directory)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
