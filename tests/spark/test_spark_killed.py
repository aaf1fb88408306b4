"""An executor that is killed in the middle changes nothing but the time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.directory.check import check
from hedgerow.release.execution import in_memory
from hedgerow.release.release import read_release
from tests.parts import JAVA, LIGHT_JAVA, PROC

pytestmark = [
    pytest.mark.xdist_group("spark"),
    JAVA.needed,
    PROC,
]
ROOT = Path(__file__).parents[2]
OPTIONS = (
    "-Dspark.python.daemon.module=tests.spark.preloaded "
    "-Dspark.shuffle.io.maxRetries=1 -Dspark.shuffle.io.retryWait=100ms"  # of a dead executor
)
JAVA_OPTIONS = {key: f"{options} {OPTIONS}" for key, options in LIGHT_JAVA.items()}


@pytest.mark.slow
@pytest.mark.sweep(3)
@pytest.mark.parametrize("workload", ["chain", "cube", "named"])
def test_a_killed_executor_changes_nothing(tmp_path, monkeypatch, workload):
    from tests.spark.killed_executor import LIMITS, SEED, table_and_plan  # noqa: PLC0415

    for module, name in LIMITS:  # to be restored
        monkeypatch.setattr(module, name, getattr(module, name))
    counts, plan = table_and_plan(workload)
    assert plan.design.cut_at is not None
    (tmp_path / "table").mkdir()
    counts.level(plan.tree.depth).write_parquet(tmp_path / "table" / "0.parquet")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.killed_executor", "table", "out", workload],
        cwd=tmp_path, env={**os.environ, **JAVA_OPTIONS, "PYTHONPATH": path}, capture_output=True,
        text=True, timeout=1200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("killed ")
    assert [finding for finding in check(tmp_path / "out") if finding.failure] == []
    found = read_release(tmp_path / "out")
    local = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(SEED))
    for levels in plan.levels:
        assert found.content.counts(levels).equals(local.content.counts(levels))
