"""Whole releases in memory: the six synthetic tables of Boninsegna & Silvestri.

Run as ``python -m benchmarks.release``.

Compare: the authors' own code took 8-12 s on the 1 % tables and minutes on the full ones.
"""

import json
import platform
import resource
import time

import hedgerow as hr
from hedgerow.evaluate.baselines import leaf_noise
from hedgerow.kernels import core_count
from hedgerow.noise.bits import ReleaseKey
from studies.boninsegna.tables import synthetic_tables

BUDGET = hr.EpsilonDelta("1", "1e-8")
RUNS = 5


def best_seconds(counts: hr.Counts, plan: hr.Plan) -> float:
    """The fastest of several releases."""
    best = float("inf")
    for _ in range(RUNS):
        begun = time.perf_counter()
        hr.release(counts, plan)
        best = min(best, time.perf_counter() - begun)
    return best


def main() -> None:
    """Print a line a table, and all of it as JSON."""
    figures: dict[str, float] = {}
    for table in synthetic_tables():
        counts = table.counts
        plan = hr.make_plan(counts.tree, budget=BUDGET, neighbours=hr.Replace())
        figures[table.name] = best_seconds(counts, plan)
        print(
            f"{table.name:15}  T = {counts.tree.depth:2}  {counts.tree.leaves:8,} pairs, "
            f"{len(counts.values):7,} filled, {counts.total:9,} trips: "
            f"{figures[table.name] * 1e3:7.1f} ms"
        )
    begun = time.perf_counter()
    noisy = leaf_noise(counts, ReleaseKey.fresh(), budget=BUDGET, neighbours=hr.Replace())
    print(f"leaf noise on the last: {(time.perf_counter() - begun) * 1e3:.1f} ms, {noisy.size:,}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {memory:.2f} GB")
    machine = {"machine": platform.machine(), "cores": core_count(), "hedgerow": hr.__version__}
    print(json.dumps({**machine, "seconds": figures, "peak_gb": memory}))


if __name__ == "__main__":
    main()
