"""The exact price against dp-accounting: time and error, and a bracket around ours.

dp-accounting bounds δ(ε) from above on a grid of losses, best by connecting dots, and from below
by rounding down. Ours comes with bounds of its own.
"""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from benchmarks.clock import fastest
from benchmarks.machine import needed
from benchmarks.page import Benchmark, Ratio, clock
from benchmarks.picture import OTHER, OURS, panels, save
from studies.page import markdown
from studies.su.census import LEVEL, LEVELS, QUERIES, Folds, promised, uses

QUESTIONS = 6
STEP = 1e-3
"""By how much ε differs from question to question."""
INTERVALS = (1e-3, 1e-4)
CENSUS = [(sigma2, n * QUERIES) for sigma2, n in Counter(level.sigma2 for level in LEVELS).items()]

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
    """One composition, beside the peer on one grid.

    Attributes:
        name: of it.
        low, high: our bounds of δ.
        grid: the width of the peer's.
        upper: the peer's bound.
        brackets: whether the peer's two bounds bracket ours.
        ours, theirs: seconds.
    """

    name: str
    low: float
    high: float
    grid: float
    upper: float
    brackets: bool
    ours: float
    theirs: float

    @property
    def width(self) -> float:
        """Of our bounds, relative."""
        return (self.high - self.low) / self.high

    @property
    def error(self) -> float:
        """The peer's, relative."""
        return self.upper / self.high - 1


def cases() -> dict[str, tuple[Folds, float]]:
    """Compositions, each with an ε."""
    return {
        "census 2020, 80 queries": (CENSUS, 20.3247),
        "census, state level": (uses(levels=[LEVEL["State"]]), 10.1),
        "1890 equal folds": ([(Fraction(10_000), 1890)], 3.0),
        "140 queries, 14 variances": (mixture(1), 15.0),
        "census, δ near 1e-30": (CENSUS, 34.0),
    }


def mixture(seed: int) -> Folds:
    """140 queries with 14 rational variances that have no coarse unit in common."""
    rng = random.Random(seed)  # noqa: S311 - a choice of examples
    return [(Fraction(rng.randint(2_000, 60_000), rng.randint(300, 1_000)), 10) for _ in range(14)]


def compared(peer: Any, name: str, folds: Folds, epsilon: float) -> Iterator[Found]:
    """Both on one composition, at ε and slightly above."""

    def ours(asked: float) -> tuple[float, float]:
        return promised(folds).delta_bounds(asked)

    def theirs(interval: float, asked: float, *, pessimistic: bool = True) -> float:
        return float(peer(folds, interval, pessimistic=pessimistic).get_delta_for_epsilon(asked))

    tasks: dict[str, Callable[[float], object]] = {"ours": ours}
    tasks |= {f"{interval:g}": partial(theirs, interval) for interval in INTERVALS}
    times = fastest(tasks, [epsilon + STEP * k for k in range(QUESTIONS)])
    low, high = ours(epsilon)
    print(f"{name}: δ({epsilon}) in [{low:.12g}, {high:.12g}], {clock(times['ours'].wall)}")
    for interval in INTERVALS:
        lower, upper = (theirs(interval, epsilon, pessimistic=above) for above in (False, True))
        brackets = lower * (1 - 1e-9) <= low and high <= upper * (1 + 1e-9)
        seconds = times["ours"].wall, times[f"{interval:g}"].wall
        yield Found(name, low, high, interval, upper, brackets, *seconds)


def measured() -> Benchmark:
    """All compositions."""
    peer = needed("studies.dp_accounting_peer", "dp-accounting").peer
    logging.getLogger().setLevel(logging.ERROR)
    found = [one for name, case in cases().items() for one in compared(peer, name, *case)]
    rows = (
        (one.name, one.high, one.width, one.error, one.grid, "yes" if one.brackets else "**no**")
        for one in found
    )
    heads = "composition | δ | our width | the peer's error | its grid | brackets"
    ratios = [
        Ratio(one.name, f"dp-accounting at {one.grid:g}", one.ours, one.theirs) for one in found
    ]
    text = TEXT.format(figures=markdown(heads, rows, " | .4g | .0e | .1e | g | "))
    return Benchmark("The price of a composition", text, ratios, [figure(found)], found)


def figure(found: Sequence[Found]) -> str:
    """Error over seconds."""
    drawn, (axes,) = panels(size=(6.5, 3.6))
    seconds = [one.ours for one in found]
    widths = [max(one.width, 1e-16) for one in found]
    axes.loglog(seconds, widths, "o", color=OURS, label="Hedgerow: width of its bounds")
    for interval, mark in zip(INTERVALS, "sD", strict=True):
        label = f"dp-accounting at {interval:g}: error of its bound"
        points = [(one.theirs, abs(one.error)) for one in found if one.grid == interval]
        axes.loglog(*zip(*points, strict=True), mark, color=OTHER, label=label)
    axes.set(xlabel="seconds", ylabel="relative, of δ")
    return save(drawn, "accounting")
