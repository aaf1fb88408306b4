"""Cells a second of every estimator, beside what one would write without it.

Peers (`benchmarks.projection_peers`) run for about `SECONDS` each on as many families as that
allows, on one core, every answer checked against ours.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.clock import Clock, fastest
from benchmarks.machine import cores, installed
from benchmarks.page import Benchmark, Ratio, number
from benchmarks.picture import COLOURS, panels, save
from benchmarks.projection_peers import OURS_FOR, Peer, agree, peers_for
from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.sparse import Sparse
from studies.page import markdown

Table = tuple[Int64, Int64, Int64]
Kinds = dict[str, tuple[Int64 | Float64, float | Float64]]
"""Noisy counts or estimates, and their variances."""
Asked = tuple[Int64, Int64, Kinds]
"""Where families begin, their totals, and their cells by kind."""
ESTIMATORS: dict[str, Estimator] = {
    "chebyshev": Chebyshev(), "euclidean": Euclidean(), "sparse": Sparse()
}  # fmt: skip

CELLS = 1_000_000
SECONDS = 0.3
RUNS = 5
SIZES = (2, 16, 100, 1000, 10_000)
KINDS = ("sparse", "dense")
MILLION = 1e6

TEXT = """Noisy counts of whole families become non-negative counts that sum to the parent's.
*Sparse* counts are mostly 0, *dense* ones lie in 0 … 1,999; noise of standard deviation 10. No
program is given the same families twice: each run of ours has a table of its own. The others
process one family after the other, Hedgerow all {cells:,} cells in one call; both on one core, in
seconds for a million cells. Every result is compared with ours: equal for Algorithm 4 of Boninsegna
& Silvestri, the same optimum for HiGHS and for the usual sorting projection with rounding, within
one record of the real optimum for cvxpy, whose program is built once for each size.

Hedgerow in million cells a second on {cores} cores, dense counts (*real*: combined estimates;
*weighted*: a variance for each cell):

{speeds}"""


@dataclass(frozen=True, slots=True)
class Found:
    """Speeds for one kind of counts and size of family, in cells a second.

    Attributes:
        kind: of counts.
        size: of every family.
        one_core: ours, by estimator.
        all_cores: ours.
        peers: on one core.
    """

    kind: str
    size: int
    one_core: dict[str, float]
    all_cores: dict[str, float]
    peers: dict[str, float]


def families(size: int, kind: str, cells: int, run: int) -> Table:
    """Noise of sd 10 on counts that are mostly 0 (sparse), or lie in 0..1999 (dense)."""
    rng = np.random.default_rng([size, run])
    count = max(cells // size, 1)
    shape = (count, size)
    sparse = np.where(rng.random(shape) < 0.02, rng.geometric(0.2, shape), 0)
    true = sparse if kind == "sparse" else rng.integers(0, 2000, shape)
    noisy = true + np.rint(rng.normal(0, 10, shape)).astype(np.int64)
    return noisy.ravel(), np.arange(0, count * size + 1, size), true.sum(axis=1)


def peer_speed(name: str, peer: Peer, found: Int64, given: Table) -> float:
    """Cells a second: ever more families in turn until the time is up, each answer checked."""
    noisy, start, totals = given
    peer(noisy[: start[1]], int(totals[0]))
    clock, spent, first, last = Clock(), 0.0, 1, 2
    while True:
        places = [slice(*start[f : f + 2]) for f in range(first, last)]
        asked = [(noisy[at], int(c)) for at, c in zip(places, totals[first:last], strict=True)]
        time, answers = clock.timed(name, lambda all_of: [peer(*one) for one in all_of], asked)
        spent += time.wall
        for at, answer in zip(places, answers, strict=True):
            assert agree(name, found[at], answer, noisy[at]), (name, at)
        if spent > SECONDS or last == len(totals):
            return int(start[last] - start[1]) / spent
        first, last = last, min(3 * last - 2 * first, len(totals))


def ours(tables: Sequence[Table]) -> dict[str, float]:
    """Cells a second of each estimator: integers, real values, and real unequal variances."""
    rng = np.random.default_rng(1)
    asked = []
    for noisy, start, totals in tables:
        real = noisy + rng.normal(0, 1, len(noisy))
        weighted = real, 100 * rng.lognormal(0, 1, len(noisy))
        kinds: Kinds = {"": (noisy, 100.0), "real ": (real, 100.0), "weighted ": weighted}
        asked.append((start, totals, kinds))
    runs = {
        f"{kind}{name}": partial(projected, estimator, kind)
        for name, estimator in ESTIMATORS.items()
        for kind in kinds
    }
    return {name: len(noisy) / time.wall for name, time in fastest(runs, asked).items()}


def projected(estimator: Estimator, kind: str, asked: Asked) -> Int64:
    """A table's counts of a kind, projected."""
    start, totals, kinds = asked
    cells, variance = kinds[kind]
    return estimator.project(cells, start, totals, variance)


def for_size(cvxpy: Any, kind: str, size: int) -> Found:
    """Ours and all peers."""
    tables = [families(size, kind, CELLS, run) for run in range(RUNS + 1)]
    given = tables[0]
    answers = {name: ESTIMATORS[name].project(*given) for name in {*OURS_FOR.values()}}
    with cores(1):
        one_core = ours(tables)
        speeds = {
            name: peer_speed(name, peer, answers[OURS_FOR[name]], given)
            for name, peer in peers_for(cvxpy, size).items()
        }
    print(f"{kind} counts, families of {size}", flush=True)
    return Found(kind, size, one_core, ours(tables), speeds)


def measured() -> Benchmark:
    """All kinds and sizes."""
    cvxpy = installed("cvxpy", "cvxpy")
    found = [for_size(cvxpy, kind, size) for kind in KINDS for size in SIZES]
    ratios = [
        Ratio(
            f"{estimator}, {one.kind}, families of {one.size:,}",
            name,
            MILLION / one.one_core[estimator],
            MILLION / one.peers[name],
        )
        for name, estimator in OURS_FOR.items()
        for one in found
        if name in one.peers
    ]
    dense = [one for one in found if one.kind == "dense"]
    rows = [
        [name, *(number(one.all_cores[name] / MILLION) for one in dense)]
        for name in dense[0].all_cores
    ]
    text = TEXT.format(
        cells=CELLS,
        cores=len(os.sched_getaffinity(0)),
        speeds=markdown(["families of", *(f"{one.size:,}" for one in dense)], rows),
    )
    return Benchmark("Projection of families", text, ratios, [figure(found)], found)


def figure(found: Sequence[Found]) -> str:
    """Cells a second over the size of families."""
    drawn, axes = panels(2)
    for panel, kind in zip(axes, KINDS, strict=True):
        of_kind = [one for one in found if one.kind == kind]
        sizes = [one.size for one in of_kind]
        for name, style in zip(ESTIMATORS, ("o-", "s-", "D-"), strict=True):
            speeds = [one.one_core[name] for one in of_kind]
            panel.loglog(sizes, speeds, style, ms=4, color=COLOURS[0], label=f"Hedgerow: {name}")
        for name, colour in zip(OURS_FOR, (*COLOURS[1:], "#555555"), strict=True):
            peers = [one.peers.get(name, np.nan) for one in of_kind]
            panel.loglog(sizes, peers, "x--", color=colour, label=name)
        panel.set(title=f"{kind} counts", xlabel="cells of a family")
    axes[0].set_ylabel("cells a second, one core")
    return save(drawn, "projection", loc="outside lower center", ncols=4)
