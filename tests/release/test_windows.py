"""What Windows lacks is not needed to plan, release, read and check."""

import subprocess
import sys

SCRIPT = """
import sys
import filelock  # which has its own way there
for name in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[name] = None  # as where there is none: importing it fails
import polars as pl
import hedgerow as hr
areas = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
tree = hr.Tree([hr.Axis.from_frame("place", areas, levels=["county", "town"])])
plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"))
counts = hr.Counts.from_frame(tree, areas.with_columns(n=pl.Series([90, 300, 50])), count="n")
hr.release(counts, plan).write("memory")
hr.release(counts, plan, directory="out")
for folder in ("memory", "out"):
    assert len(hr.read_release(folder).level("county")) == 2
    assert all(finding.passed for finding in hr.check(folder))
"""


def test_no_module_that_windows_lacks_is_needed(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
