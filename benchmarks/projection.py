"""Cells a second of every estimator, beside what one would write without it.

Run: .venv/bin/python benchmarks/projection.py [--cells 2000000] [--seconds 0.5]

Peers, each timed for about --seconds on as many families as that allows, on one core:
- Algorithm 4 of Boninsegna & Silvestri, in NumPy, as printed; for Chebyshev.
- HiGHS through scipy.optimize.milp, the generic integer solver of their TDA_ℓ∞; for Chebyshev.
- Sort, water-fill and round in NumPy: the usual real projection, made integer by rounding and
  handing the rest to the largest remainders; for Euclidean. The same optimum, up to ties.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from hedgerow.estimate.chebyshev import Chebyshev
from hedgerow.estimate.euclidean import Euclidean
from hedgerow.estimate.sparse import Sparse

Integers = NDArray[np.int64]
Table = tuple[Integers, Integers, Integers]
SIZES = [2, 16, 100, 1000, 10_000]
LARGEST_PROGRAM = 100


def families(size: int, kind: str, cells: int) -> Table:
    """Noise of sd 10 on counts that are mostly 0 (sparse), or lie in 0..1999 (dense)."""
    rng = np.random.default_rng(size)
    count = max(cells // size, 1)
    shape = (count, size)
    sparse = np.where(rng.random(shape) < 0.02, rng.geometric(0.2, shape), 0)
    true = sparse if kind == "sparse" else rng.integers(0, 2000, shape)
    noisy = true + np.rint(rng.normal(0, 10, shape)).astype(np.int64)
    return noisy.ravel(), np.arange(0, count * size + 1, size), true.sum(axis=1)


def algorithm_4(x: Integers, c: int) -> Integers:
    """IntOpt∞ as the paper prints it, vectors in NumPy, running sums instead of new ones."""
    raised = -((int(x.sum()) - c) // len(x))
    z = np.maximum(raised, -x)
    t = int(np.abs(z).max())
    order = np.argsort(x, kind="stable")
    order = order[z[order] > -x[order]]
    surplus = int(z.sum() + x.sum()) - c
    j = 0
    while surplus > 0:
        i = order[j]
        lowered = max(int(z[i]) - surplus, -int(x[i]), -t)
        surplus -= int(z[i]) - lowered
        z[i] = lowered
        j = (j + 1) % len(order)
        if j == 0 and surplus > 0:
            order = order[z[order] > -x[order]]
            t += max(1, surplus // len(order))
    return np.asarray(x + z, dtype=np.int64)


def integer_program(x: Integers, c: int) -> Integers:
    """Equation 12 of the paper handed to HiGHS: variables z and their largest size."""
    size = len(x)
    ones = np.ones((size, 1))
    rows = [
        LinearConstraint(np.hstack([np.eye(size), ones]), lb=0),
        LinearConstraint(np.hstack([np.eye(size), -ones]), ub=0),
        LinearConstraint(np.append(np.ones(size), 0), c - x.sum(), c - x.sum()),
    ]
    bounds = Bounds(np.append(-x, 0), np.inf)
    found = milp(np.append(np.zeros(size), 1), constraints=rows, bounds=bounds, integrality=1)
    solution: Integers = x + np.rint(found.x[:-1]).astype(np.int64)
    return solution


def sort_and_round(x: Integers, c: int) -> Integers:
    """The real projection by sorting, rounded down; the largest remainders get the rest."""
    falling = np.sort(x)[::-1]
    levels = (np.cumsum(falling) - c) / np.arange(1, len(x) + 1)
    level = levels[np.nonzero(falling > levels)[0][-1]] if c else falling[0]
    real = np.maximum(x - level, 0)
    y: Integers = np.floor(real).astype(np.int64)
    rest = c - int(y.sum())
    if rest:
        y[np.argsort(y - real, kind="stable")[:rest]] += 1
    return y


def agree(kind: str, found: Integers, peer: Integers, x: Integers) -> bool:
    """Whether a peer's answer is as good as ours, in the measure it shares with us."""
    if kind == "equal":
        return bool((found == peer).all())
    if kind == "largest change":
        return int(abs(found - x).max()) == int(abs(peer - x).max())
    return int(((found - x) ** 2).sum()) == int(((peer - x) ** 2).sum())


def cells_a_second(run: Callable[[], Any], cells: int, seconds: float) -> float:
    """Best of as many runs as fit; the first compiles and is not counted."""
    run()
    best = np.inf
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - began)
    return cells / best


def peer_speed(
    peer: Callable[[Integers, int], Integers],
    agreement: str,
    found: Integers,
    table: Table,
    seconds: float,
) -> float:
    """One family after the other until the time is up, each checked against our answer."""
    noisy, start, totals = table
    spent = 0.0
    for f, c in enumerate(totals.tolist()):
        cells = slice(start[f], start[f + 1])
        began = time.perf_counter()
        y = peer(noisy[cells], c)
        spent += time.perf_counter() - began
        assert agree(agreement, found[cells], y, noisy[cells]), (peer.__name__, f)
        if spent > seconds:
            return float(start[f + 1] / spent)
    return float(start[-1] / spent)


def ours(table: Table, seconds: float) -> dict[str, float]:
    """Each estimator on all cores and on one: integers, real values, and real unequal variances."""
    noisy, start, totals = table
    rng = np.random.default_rng(1)
    real = noisy + rng.normal(0, 1, len(noisy))
    variances = 100 * rng.lognormal(0, 1, len(noisy))
    runs = {}
    for name, estimator in (
        ("chebyshev", Chebyshev()),
        ("euclidean", Euclidean()),
        ("sparse", Sparse()),
    ):
        runs[name] = partial(estimator.project, noisy, start, totals, 100.0)
        runs[f"real {name}"] = partial(estimator.project, real, start, totals, 100.0)
        runs[f"weighted {name}"] = partial(estimator.project, real, start, totals, variances)
    cores = sorted(os.sched_getaffinity(0))
    speeds = {}
    for name, run in runs.items():
        for used in (cores, cores[:1]):
            os.sched_setaffinity(0, used)
            speed = cells_a_second(run, len(table[0]), seconds)
            os.sched_setaffinity(0, cores)
            speeds[f"{name}, {len(used)} cores" if len(used) > 1 else f"{name}, 1 core"] = speed
    return speeds


def peers(table: Table, seconds: float) -> dict[str, float]:
    """Each peer on one core, checked against the estimator it stands beside."""
    chebyshev = Chebyshev().project(*table)
    euclidean = Euclidean().project(*table)
    speeds = {
        "algorithm 4": peer_speed(algorithm_4, "equal", chebyshev, table, seconds),
        "sort and round": peer_speed(sort_and_round, "squares", euclidean, table, seconds),
    }
    if table[1][1] <= LARGEST_PROGRAM:
        speed = peer_speed(integer_program, "largest change", chebyshev, table, seconds)
        speeds["milp (HiGHS)"] = speed
    return speeds


def machine() -> str:
    """Processor and Python, for the record."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    model = models[0] if models else platform.processor()
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def main() -> None:
    """Print a table, and one line of JSON at its end."""
    parser = argparse.ArgumentParser(description="Cells a second of every estimator.")
    parser.add_argument("--cells", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=float, default=0.5)
    asked = parser.parse_args()
    results = []
    print("Million cells a second; load average", os.getloadavg()[0])
    for kind in ("sparse", "dense"):
        for size in SIZES:
            table = families(size, kind, asked.cells)
            speeds = ours(table, asked.seconds) | peers(table, asked.seconds)
            results.append({"counts": kind, "family": size, "cells_a_second": speeds})
            print(f"\n{kind} counts, families of {size}")
            for name, speed in speeds.items():
                print(f"    {name:28} {speed / 1e6:12.4f}", flush=True)
    print(json.dumps({"benchmark": "projection", "machine": machine(), "results": results}))


if __name__ == "__main__":
    main()
