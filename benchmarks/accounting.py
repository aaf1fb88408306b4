"""The exact price against dp-accounting: time and error, and a bracket around ours.

dp-accounting bounds δ(ε) from above on a grid of losses, best by connecting dots, and from below
by rounding down. Ours comes with bounds of its own.
"""

import logging
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import hedgerow as hr
from benchmarks.clock import Timed, fastest
from benchmarks.machine import needed
from benchmarks.page import Benchmark, Ratio, clock
from benchmarks.picture import OTHER, OURS, panels, save
from studies.page import markdown

Folds = list[tuple[Fraction, int]]

QUESTIONS = 6
STEP = 1e-3
"""By how much ε differs from question to question."""
INTERVALS = (1e-3, 1e-4)
SHARES = (20, 274, 85, 131, 238, 118, 3)
CENSUS: Folds = [
    (10 / (2 * Fraction(a, 1000) * Fraction(365, 100)), n)
    for a, n in zip(SHARES, (10, 10, 10, 20, 10, 10, 10), strict=True)
]

TEXT = """δ at a given ε of compositions of discrete Gaussians under one shift. dp-accounting
composes privacy loss distributions on a grid: pessimistic, with `use_connect_dots=True`, its
tightest option, at two grid widths. Its time is for this upper bound alone. Every run starts from
the mechanisms, with a new ε, larger by a thousandth, and empty caches. Ours gives two bounds;
*width* is their relative distance, *error* the relative excess of the other program's δ over ours.
*Brackets*: the optimistic estimate of the other program on the same grid lies below ours and the
pessimistic one above, as required. This fails where δ is near 1e-30: dp-accounting truncates tails
of 1e-15 and convolves in double precision, so both of its estimates end near 1e-14 there.

{figures}"""


@dataclass(frozen=True, slots=True)
class Found:
    """One composition.

    Attributes:
        name: of it.
        low, high: our bounds of δ.
        ours: seconds.
        peers: by interval: seconds, the upper bound, and whether the two bounds bracket ours.
    """

    name: str
    low: float
    high: float
    ours: Timed
    peers: dict[float, tuple[Timed, float, bool]]

    @property
    def width(self) -> float:
        """Of our bounds, relative."""
        return (self.high - self.low) / self.high

    def error(self, interval: float) -> float:
        """The peer's, relative."""
        return self.peers[interval][1] / self.high - 1


def cases() -> dict[str, tuple[Folds, float]]:
    """Compositions, each with an ε."""
    return {
        "census 2020, 80 queries": (CENSUS, 20.3247),
        "census, state level": ([(CENSUS[1][0], 10)], 10.1),
        "1890 equal folds": ([(Fraction(10_000), 1890)], 3.0),
        "140 queries, 14 variances": (mixture(1), 15.0),
        "census, δ near 1e-30": (CENSUS, 34.0),
    }


def mixture(seed: int) -> Folds:
    """140 queries with 14 rational variances that have no coarse unit in common."""
    rng = random.Random(seed)  # noqa: S311 - a choice of examples
    return [(Fraction(rng.randint(2_000, 60_000), rng.randint(300, 1_000)), 10) for _ in range(14)]


def compared(peer: Any, name: str, folds: Folds, epsilon: float) -> Found:
    """Both on one composition, at ε and slightly above."""

    def ours(asked: float) -> tuple[float, float]:
        return hr.compose([(hr.DiscreteGaussian(s), n) for s, n in folds]).delta_bounds(asked)

    def theirs(asked: float, interval: float) -> float:
        return float(peer(folds, interval).get_delta_for_epsilon(asked))

    tasks: dict[str, Callable[[float], object]] = {"ours": ours}
    tasks |= {f"{i:g}": partial(theirs, interval=i) for i in INTERVALS}
    times = fastest(tasks, [epsilon + STEP * k for k in range(QUESTIONS)])
    low, high = ours(epsilon)
    peers = {}
    for interval in INTERVALS:
        upper = theirs(epsilon, interval)
        below = peer(folds, interval, pessimistic=False)
        lower = float(below.get_delta_for_epsilon(epsilon))
        brackets = lower * (1 - 1e-9) <= low and high <= upper * (1 + 1e-9)
        peers[interval] = times[f"{interval:g}"], upper, brackets
    print(f"{name}: δ({epsilon}) in [{low:.12g}, {high:.12g}], {clock(times['ours'].wall)}")
    return Found(name, low, high, times["ours"], peers)


def measured() -> Benchmark:
    """All compositions."""
    peer = needed("studies.dp_accounting_peer", "dp-accounting").peer
    logging.getLogger().setLevel(logging.ERROR)
    found = [compared(peer, name, *case) for name, case in cases().items()]
    rows = [
        [
            one.name,
            f"{one.high:.4g}",
            f"{one.width:.0e}",
            f"{one.error(interval):.1e}",
            f"{interval:g}",
            "yes" if one.peers[interval][2] else "**no**",
        ]
        for one in found
        for interval in INTERVALS
    ]
    heads = ["composition", "δ", "our width", "the peer's error", "its grid", "brackets"]
    ratios = tuple(
        Ratio(
            one.name,
            f"dp-accounting at {interval:g}",
            one.ours.wall,
            one.peers[interval][0].wall,
        )
        for one in found
        for interval in INTERVALS
    )
    figures = {
        one.name: {
            "delta_bounds": [one.low, one.high],
            "peer_delta": {f"{i:g}": delta for i, (_, delta, _) in one.peers.items()},
        }
        for one in found
    }
    text = TEXT.format(figures=markdown(heads, rows))
    return Benchmark("The price of a composition", text, ratios, (figure(found),), figures)


def figure(found: Sequence[Found]) -> str:
    """Error over seconds."""
    drawn, (axes,) = panels(1)
    drawn.set_size_inches(6.5, 3.6)
    seconds = [one.ours.wall for one in found]
    widths = [max(one.width, 1e-16) for one in found]
    axes.loglog(seconds, widths, "o", color=OURS, label="Hedgerow: width of its bounds")
    for interval, mark in zip(INTERVALS, "sD", strict=True):
        label = f"dp-accounting at {interval:g}: error of its bound"
        times = [one.peers[interval][0].wall for one in found]
        errors = [abs(one.error(interval)) for one in found]
        axes.loglog(times, errors, mark, color=OTHER, label=label)
    axes.set_xlabel("seconds", fontsize=8)
    axes.set_ylabel("relative, of δ", fontsize=8)
    axes.legend(fontsize=8, frameon=False)
    return save(drawn, "accounting")
