"""Releases of the six synthetic tables of Boninsegna & Silvestri: the authors' package beside ours.

Their package takes a minute on a full table, so it runs once there, and three times on the tables
of which 1 % are filled.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import hedgerow as hr
from benchmarks.clock import Clock, Timed, fastest
from benchmarks.inf_tda_peer import EPSILON, Peer, counts_of, peer_release, series_of
from benchmarks.page import Benchmark, Ratio, clock, number
from benchmarks.picture import OTHER, OURS, THIRD, panels, save
from hedgerow.arrays import Float64
from hedgerow.evaluate.method import error_of_released, of_leaves
from hedgerow.evaluate.metrics import error_by_cuboid
from studies.boninsegna.releases import Found as Printed
from studies.boninsegna.releases import Setting, published
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
COMBINED = Setting(hr.Sparse(penalty=0.5), everything=True)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found on one table.

    Attributes:
        name: of the table.
        seconds: of the peer, the same method, the combined one, and our whole way.
        errors: by method, float64 (runs, T): the maximum error of the depths 1 … T.
    """

    name: str
    seconds: dict[str, Timed]
    errors: dict[str, Float64]

    @property
    def printed(self) -> Printed:
        """What the authors published."""
        return published()[self.name]["InfTDA"][EPSILON]

    def typical(self, method: str) -> float:
        """The geometric mean over the depths of a method's mean maximum error."""
        return float(np.exp(np.log(self.errors[method].mean(axis=0)).mean()))

    def ratio_to_peer(self, method: str) -> tuple[float, float]:
        """A method's typical error over the peer's, and its relative standard error."""
        errors = self.errors[method]
        spread = (errors / errors.mean(axis=0)).mean(axis=1).std(ddof=1)  # the peer's is as large
        runs = 1 / len(errors) + 1 / len(self.errors[PEER])
        return self.typical(method) / self.typical(PEER), float(spread * math.sqrt(runs))


def below_root(frame: pl.DataFrame) -> Float64:
    """The maximum error of the depths 1 … T."""
    return frame["max_error"].to_numpy()[1:].astype(np.float64)


def by_peer(item: Table, release: Peer, runs: int) -> tuple[Timed, Float64]:
    """The fastest of some runs of the peer, and their errors."""
    series, clock = series_of(item.counts), Clock()
    done = [clock.timed(PEER, partial(release, series), epsilon) for epsilon in near(runs)]
    errors = [
        below_root(error_of_released(item.counts, of_leaves(counts_of(item.counts.tree, released))))
        for _, released in done
    ]
    return min((time for time, _ in done), key=lambda time: time.wall), np.array(errors)


def near(many: int) -> list[Fraction]:
    """So many ε, all about the same."""
    return [Fraction(EPSILON) * (1 + STEP * k) for k in range(many)]


def from_frame(areas: pl.DataFrame, frame: pl.DataFrame, epsilon: Fraction) -> hr.Release:
    """A release with all that comes before it."""
    counts = hr.Counts.from_frame(destination_tree(areas), frame, count="count")
    return hr.release(counts, SAME.plan(counts, epsilon), estimator=SAME.estimator)


def planned(way: Setting, counts: hr.Counts) -> Callable[[Fraction], hr.Release]:
    """Releases at any ε, the plans made before."""
    plans = {epsilon: way.plan(counts, epsilon) for epsilon in near(RUNS + 1)}
    return lambda epsilon: hr.release(counts, plans[epsilon], estimator=way.estimator)


def on_table(item: Table, release: Peer) -> Found:
    """Both on one table."""
    counts = item.counts
    areas = binary_areas(8) if item.name.startswith("binary") else random_areas(4, 10)
    frame = counts.level(counts.tree.depth)
    tasks: dict[str, Callable[[Fraction], hr.Release]] = {
        "same": planned(SAME, counts),
        "combined": planned(COMBINED, counts),
        "whole": partial(from_frame, areas, frame),
    }
    times = fastest(tasks, near(RUNS + 1))
    errors = {
        name: np.array([below_root(error_by_cuboid(counts, tasks[name](e))) for e in near(RUNS)])
        for name in ("same", "combined")
    }
    seconds, errors[PEER] = by_peer(item, release, 3 if item.name.endswith("sparse") else 1)
    print(f"{item.name}: {clock(seconds.wall)} and {clock(times['same'].wall)}", flush=True)
    return Found(item.name, {PEER: seconds, **times}, errors)


def measured() -> Benchmark:
    """All tables."""
    release = peer_release()
    found = [on_table(item, release) for item in all_tables()]
    ratios = [
        Ratio(f"{one.name}: {words}", peer, one.seconds[way].wall, one.seconds[PEER].wall)
        for one in found
        for words, peer, way in (("release", PEER, "same"), ("whole", WHOLE, "whole"))
    ]
    kept = {one.name: figures(one) for one in found}
    title = "Origins and destinations: the InfTDA reference"
    return Benchmark(title, text(found), ratios, [figure(found)], kept)


def text(found: Sequence[Found]) -> str:
    """What the page says."""
    times, errors = [], []
    for one in found:
        peer, same, *_ = one.seconds.values()
        seconds = (clock(each.wall) for each in one.seconds.values())
        by_processor = number(peer.processor / same.processor)
        times.append((one.name, f"{one.printed.seconds:.0f} s", *seconds, by_processor))
        typical = [one.typical(method) for method in (PEER, "same", "combined")]
        over = (each / typical[0] for each in typical[1:])
        errors.append((one.name, one.printed.max_error.typical, *typical, *over))
    heads = ["table", "published", PEER, "release", "combined", "whole"]
    kinds = ["published", PEER, "ours", "combined", "ours / peer", "combined / peer"]
    over_peer, error = over_tables(found, "same")
    return TEXT.format(
        peer=PEER, epsilon=EPSILON, delta=DELTA, runs=RUNS, peer_runs="1 or 3", same=over_peer,
        error=error, combined=over_tables(found, "combined")[0],
        times=markdown([*heads, "ratio by processor time"], times),
        errors=markdown(["table", *kinds], errors, ["", ".0f", *[".1f"] * 3, ".2f", ".2f"]),
    )  # fmt: skip


def over_tables(found: Sequence[Found], method: str) -> tuple[float, float]:
    """The geometric mean over tables of a method's error over the peer's, and its error."""
    ratios, errors = np.array([one.ratio_to_peer(method) for one in found]).T
    mean = math.exp(np.log(ratios).mean())
    return mean, mean * math.sqrt((errors**2).sum()) / len(errors)


def figures(one: Found) -> dict[str, Any]:
    """For the JSON file."""
    return {
        "seconds": {
            {"same": "release"}.get(name, name): asdict(time) for name, time in one.seconds.items()
        },
        "published_seconds": one.printed.seconds,
        "max_error_by_depth": {
            name: runs.mean(axis=0).tolist() for name, runs in one.errors.items()
        },
    }


def figure(found: Sequence[Found]) -> str:
    """Maximum error by depth, a panel a table."""
    drawn, axes = panels(3, 2)
    lines = {
        PEER: (OTHER, PEER),
        "same": (OURS, "Hedgerow, same method"),
        "combined": (THIRD, "Hedgerow, combined"),
    }
    for panel, one in zip(axes, found, strict=False):
        for method, (colour, label) in lines.items():
            errors = one.errors[method].mean(axis=0)
            depths = np.arange(1, len(errors) + 1)
            panel.plot(depths, errors, "o-", ms=3, color=colour, label=label)
        panel.set(ylim=(0, None), title=one.name, xlabel="depth")
    for panel in (axes[0], axes[3]):
        panel.set_ylabel("maximum error (trips)")
    drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return save(drawn, "inf_tda")
