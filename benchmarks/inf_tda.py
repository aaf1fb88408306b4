"""Releases of the six synthetic tables of Boninsegna & Silvestri: the authors' package beside ours.

Their package takes a minute on a full table, so it runs once there, and three times on the tables
of which 1 % are filled.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np
import polars as pl

import hedgerow as hr
from benchmarks.clock import Clock, Timed, fastest, near
from benchmarks.inf_tda_peer import EPSILON, Peer, counts_of, peer_release, series_of
from benchmarks.page import Benchmark, Ratio, clock, number
from benchmarks.picture import OTHER, OURS, THIRD, panels, save
from hedgerow.arrays import Levels
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.method import Released, of_leaves, of_nodes
from hedgerow.evaluate.simulate import Tally
from hedgerow.noise.bits import Bits
from studies.boninsegna.releases import Curve, Setting, published
from studies.boninsegna.tables import Table, binary_areas, destination_tree, random_areas
from studies.boninsegna.tables import synthetic_tables as all_tables
from studies.page import markdown
from studies.releases import DELTA

RUNS = 10
STEP = Fraction(1, 1_000_000)
"""By how much ε differs, relatively, from question to question."""
PEER = "inf-tda 0.1"
WHOLE = f"{PEER}, its release alone beside our whole way"

TEXT = """{peer} is the authors' package on PyPI. It, and Hedgerow with the same measurements and
the same projection (Chebyshev, survivors), release the paper's own tables at ε = {epsilon}, δ =
{delta}, replacing one trip per person. The times are from counts in memory to counts in memory;
*whole* includes the preparation: building the tree, reading a data frame with the positive flows,
and the plan with its price. Each run uses a new ε, larger by a millionth, and empty caches.
*Combined* is Hedgerow's own method: it measures all cells, combines depths and then projects with a
penalty on support. *Published* are the mean seconds of the authors' own runs (Xeon W-2245, their
research code).

{times}

The maximum error over all cells of a depth, as a geometric mean over the depths below the root, in
trips; the peer's of {peer_runs} runs, ours of {runs}. Our gain comes from exact accounting instead
of ε = ρ + 2√(ρ ln(1/δ)). Over all tables our maximum error is **{same:.3f}** (± {error:.3f}) of the
peer's with the same method, and **{combined:.3f}** of it combined. The published runs had twice the
variance that the paper states, so their errors are larger than the package's.

{errors}

With pandas 3, OpenDP rejects the read-only arrays that {peer} passes to it; it gets a copy, and
64-bit integers by default. It requires every possible tuple in the index, including zeros; the time
to build that series is not counted."""


SAME = Setting(hr.Chebyshev())
WAYS = {"release": SAME, "combined": Setting(hr.Sparse(penalty=0.5), everything=True)}
EPSILONS = near(Fraction(EPSILON), RUNS + 1, STEP)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found on one table.

    Attributes:
        name: of the table.
        seconds: of the peer, the same method, the combined one, and our whole way.
        errors: by method, the maximum error.
        peer_runs: of the peer.
    """

    name: str
    seconds: dict[str, Timed]
    errors: dict[str, Curve]
    peer_runs: int


@dataclass(frozen=True, slots=True)
class Each:
    """Releases at one ε after the other."""

    release: Callable[[Fraction], Released]
    epsilons: Iterator[Fraction] = field(default_factory=lambda: iter(EPSILONS))

    def released(self, _counts: hr.Counts, _bits: Bits) -> Released:
        """The next one, whose noise is its own."""
        return self.release(next(self.epsilons))


Tasks = Mapping[str, Callable[[Fraction], hr.Release]]
"""Ours, by name."""


def compared(
    counts: hr.Counts, peer: Peer, peer_runs: int, tasks: Tasks, cuboids: Collection[Levels]
) -> tuple[Timed, dict[str, Tally]]:
    """The fastest release of the peer, and the errors by method, the peer's first."""
    series, watch, times = series_of(counts), Clock(), list[Timed]()

    def theirs(epsilon: Fraction) -> Released:
        time, made = watch.timed(PEER, partial(peer, series), epsilon)
        times.append(time)
        return of_leaves(counts_of(counts.tree, made))

    def ours(task: Callable[[Fraction], hr.Release], epsilon: Fraction) -> Released:
        return of_nodes(counts.tree, task(epsilon).content.nodes)

    runs = {PEER: (theirs, peer_runs)}
    runs |= {name: (partial(ours, task), RUNS) for name, task in tasks.items()}
    errors = {
        name: Tally.of_seeds(counts, Each(release), cuboids, range(many))
        for name, (release, many) in runs.items()
    }
    return min(times, key=lambda time: time.wall), errors


def from_frame(areas: pl.DataFrame, frame: pl.DataFrame, epsilon: Fraction) -> hr.Release:
    """A release with all that comes before it."""
    counts = hr.Counts.from_frame(destination_tree(areas), frame, count="count")
    return hr.release(counts, SAME.plan(counts, epsilon), estimator=SAME.estimator)


def planned(
    counts: hr.Counts, plan: Callable[[Fraction], hr.Plan], estimator: Estimator | None = None
) -> Callable[[Fraction], hr.Release]:
    """Releases at any ε, the plans made before."""
    plans = {epsilon: plan(epsilon) for epsilon in EPSILONS}
    return lambda epsilon: hr.release(counts, plans[epsilon], estimator=estimator)


def on_table(item: Table, release: Peer) -> Found:
    """Both on one table."""
    counts = item.counts
    areas = binary_areas(8) if item.name.startswith("binary") else random_areas(4, 10)
    tasks = {
        name: planned(counts, partial(way.plan, counts), way.estimator)
        for name, way in WAYS.items()
    }
    whole = partial(from_frame, areas, counts.level(counts.tree.depth))
    seconds = fastest({**tasks, "whole": whole}, EPSILONS)
    runs = 3 if item.name.endswith("sparse") else 1
    theirs, errors = compared(counts, release, runs, tasks, counts.tree.chain)
    print(f"{item.name}: {clock(theirs.wall)} and {clock(seconds['release'].wall)}", flush=True)
    curves = {name: Curve.of(tally.score("max_error")) for name, tally in errors.items()}
    return Found(item.name, {PEER: theirs, **seconds}, curves, runs)


def measured() -> Benchmark:
    """All tables."""
    release = peer_release()
    found = [on_table(item, release) for item in all_tables()]
    ratios = [
        Ratio(f"{one.name}: {words}", peer, one.seconds[words].wall, one.seconds[PEER].wall)
        for one in found
        for words, peer in (("release", PEER), ("whole", WHOLE))
    ]
    title = "Origins and destinations: the InfTDA reference"
    return Benchmark(title, text(found), ratios, [figure(found)], found)


def text(found: Sequence[Found]) -> str:
    """What the page says."""
    times, errors, printed, ratios = [], [], published(), []
    for one in found:
        theirs_spent, ours_spent, *_ = one.seconds.values()
        theirs = printed[one.name, "InfTDA", EPSILON]
        seconds = (clock(each.wall) for each in one.seconds.values())
        by_processor = number(theirs_spent.processor / ours_spent.processor)
        times.append((one.name, f"{theirs.seconds:.0f} s", *seconds, by_processor))
        typical = [one.errors[method].typical for method in (PEER, *WAYS)]
        ratios.append([each / typical[0] for each in typical[1:]])
        errors.append((one.name, theirs.max_error.typical, *typical, *ratios[-1]))
    same, combined = np.exp(np.log(ratios).mean(axis=0))
    # a peer's run is taken to vary as one of the same method does
    spreads = [one.errors["release"].spread * math.sqrt(1 + RUNS / one.peer_runs) for one in found]
    heads = f"table | published | {PEER} | release | combined | whole | ratio by processor time"
    kinds = f"table | published | {PEER} | ours | combined | ours / peer | combined / peer"
    return TEXT.format(
        peer=PEER, epsilon=EPSILON, delta=DELTA, runs=RUNS, peer_runs="1 or 3", same=same,
        error=same * np.linalg.norm(spreads) / len(found), combined=combined,
        times=markdown(heads, times),
        errors=markdown(kinds, errors, " | .0f | .1f | .1f | .1f | .2f"),
    )  # fmt: skip


def figure(found: Sequence[Found]) -> str:
    """Maximum error by depth, a panel a table."""
    drawn, axes = panels(3, 2)
    lines = {PEER: OTHER, "Hedgerow, same method": OURS, "Hedgerow, combined": THIRD}
    for panel, one in zip(axes, found, strict=False):
        for method, (label, colour) in zip((PEER, *WAYS), lines.items(), strict=True):
            panel.plot(*one.errors[method].below, "o-", ms=3, color=colour, label=label)
        panel.set(ylim=(0, None), title=one.name, xlabel="depth")
    for panel in (axes[0], axes[3]):
        panel.set_ylabel("maximum error (trips)")
    return save(drawn, "inf_tda", loc="outside lower center", ncols=3)
