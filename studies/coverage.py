"""Coverage of the intervals that a release states, over 2,000 simulated releases of small trees.

Writes ``docs/coverage.md``. The tables are made up and all noise is seeded, so the figures come
out the same every time.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import hedgerow as hr
from hedgerow.arrays import Bool, Float64, Int64
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.least_squares import Layer, least_squares
from hedgerow.plan.cuboids import Measure
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from studies.page import keep, markdown, told
from studies.releases import seeded
from studies.tables import census_of, dense, every_count

RUNS = 2000
STANDARD_ERRORS = 4
LEVELS = ["county", "tract", "block"]
BUDGETS: dict[str, Budget] = {
    "Gaussian, ρ = 1/20": hr.Rho("1/20"),
    "Gaussian, ρ = 2": hr.Rho(2),
    "Laplace, ε = 1": hr.Epsilon(1),
    "Laplace, ε = 6": hr.Epsilon(6),
}
TABLES = ("dense", "half-empty")
NEIGHBOURS: dict[str, Neighbours] = {"measured": hr.AddRemove(), "public": hr.Replace()}
MODES: dict[str, tuple[Measure, Estimator]] = {
    "All nodes, least squares (listed by Chebyshev)": (hr.All(), hr.Chebyshev(combine=True)),
    "Survivors, Chebyshev": (hr.Survivors(), hr.Chebyshev()),
    "Survivors, Euclidean": (hr.Survivors(), hr.Euclidean()),
}


def made(rng: np.random.Generator, *, dense: bool) -> hr.Counts:
    """A tree of 3 counties with 1 to 5 tracts and those with 1 to 6 blocks, and its counts.

    Dense blocks hold 20 to 200 records; else more than half are empty, whole tracts among them, and
    the others hold 1 to 20.
    """
    paths = [
        (f"{c}", f"{c}.{t}", f"{c}.{t}.{b}")
        for c, tracts in enumerate((2, 4, 5))
        for t in range(tracts)
        for b in range(rng.integers(1, 7))
    ]
    frame = pl.DataFrame(paths, schema=LEVELS, orient="row")
    values = rng.integers(20, 201, len(paths))
    if not dense:
        tract = np.unique([path[1] for path in paths], return_inverse=True)[1]
        empty = (rng.random(len(paths)) < 0.4) | (tract % 4 == 1)
        values = np.where(empty, 0, rng.integers(1, 21, len(paths)))
    return census_of(frame.with_columns(count=values), LEVELS, "count")


@dataclass(frozen=True)
class Simulated:
    """Of one depth, all releases: float64 or bool (releases, cells).

    Attributes:
        noisy: noisy counts; nothing is meant where they were not measured.
        measured: which cells were.
        listed: which cells the release lists.
        stated: the estimates that it states of them.
    """

    noisy: Float64
    measured: Bool
    listed: Bool
    stated: Float64


def simulated(counts: hr.Counts, plan: hr.Plan, estimator: Estimator) -> dict[int, Simulated]:
    """For each measured depth what `RUNS` releases drew and listed."""
    tree, everything = plan.tree, isinstance(plan.measure, hr.All)
    depths = [t for t, what in enumerate(plan.depths) if isinstance(what, hr.Measured)]
    found: dict[int, list[tuple[NDArray[Any], ...]]] = {t: [] for t in depths}
    for run in range(RUNS):
        release = seeded(counts, plan, estimator, run).content
        listed = {
            levels: dense(tree, levels, here.codes, np.ones(len(here.counts), dtype=bool))
            for levels, here in release.nodes.items()
        }
        for t, runs in found.items():
            levels = tree.cuboid(t)
            measured = np.ones(tree.nodes(t), dtype=bool)
            if t > 0 and not everything:
                families = np.diff(tree.axes[0].child_start[t - 1])
                measured = np.repeat(listed[tree.cuboid(t - 1)], families)
            noisy, here = np.zeros(len(measured)), release.nodes[levels]
            noisy[measured] = release.measured[levels]
            stated = dense(tree, levels, here.codes, here.estimate)
            runs.append((noisy, measured, listed[levels], stated))
    return {
        t: Simulated(*(np.array(each) for each in zip(*runs, strict=True)))
        for t, runs in found.items()
    }


def combined(
    counts: hr.Counts, plan: hr.Plan, found: Mapping[int, Simulated]
) -> dict[int, tuple[Float64, Float64]]:
    """Least squares of every release: estimates (releases, cells) and variances (cells).

    Releases are the cells of one more depth, of which nothing is known, or the public total.
    """
    tree, layers = plan.tree, [Layer(np.zeros(1), np.inf, np.array([0, 1]))]
    for t in range(tree.depth + 1):
        cells, what = tree.nodes(t), plan.depths[t]
        parents = tree.axes[0].child_start[t - 1] if t else np.array([0, 1])
        sizes = np.tile(np.diff(parents), RUNS) if t else np.array([RUNS])
        start = np.append(0, np.cumsum(sizes))
        values, variance = np.full(RUNS * cells, float(counts.total)), 0.0
        if isinstance(what, hr.Measured):
            values, variance = found[t].noisy.ravel(), what.mechanism.noise_variance
        layers.append(Layer(values, variance, start))
    best = least_squares(layers)[1:]
    shape = (RUNS, -1)
    return {t: (best[t].estimate.reshape(shape), best[t].variance.reshape(shape)[0]) for t in found}


@dataclass(frozen=True)
class Coverage:
    """Coverage at one depth.

    Attributes:
        kind: of release: its mode, table, noise and total.
        depth: which.
        shares: by `SHARES`, with their standard errors; NaN where there are no such cells.
        width: mean width over that of a clipped interval of the noisy counts.
    """

    kind: tuple[str, str, str, str]
    depth: int
    shares: tuple[tuple[float, float], ...]
    width: float

    @property
    def name(self) -> str:
        """The kind in words, without the mode."""
        return ", ".join(self.kind[1:])

    @property
    def failures(self) -> list[str]:
        """What issue 5 asks for and this depth does not do."""
        every, zero, *_, together = self.shares
        least = 0.95 if MODES[self.kind[0]][0] == hr.All() else 0.94
        wanted = {"all": (every, 0.95), "together": (together, 0.95), "truth 0": (zero, least)}
        missed = [
            f"{name} {found:.3%} ± {error:.3%}"
            for name, ((found, error), level) in wanted.items()
            if found < level - STANDARD_ERRORS * error
        ]
        return missed + ([f"width {self.width:.3f}"] if self.width > 1 + 1e-12 else [])


def share(of: Bool, among: Bool) -> tuple[float, float]:
    """A share of cells, and its standard error with releases as the independent draws."""
    hits, cells = (of & among).sum(axis=1), among.sum(axis=1)
    if not cells.any():
        return np.nan, np.nan
    mean = hits.sum() / cells.sum()
    residual = hits - mean * cells
    return float(mean), float(residual.std(ddof=1) / cells.mean() / np.sqrt(len(cells)))


def coverages(
    kind: tuple[str, str, str, str], counts: hr.Counts, plan: hr.Plan, estimator: Estimator
) -> Iterator[Coverage]:
    """Coverage at each measured depth."""
    found = simulated(counts, plan, estimator)
    best = combined(counts, plan, found) if isinstance(plan.measure, hr.All) else {}
    for t, here in found.items():
        truth = every_count(counts, plan.tree.cuboid(t))
        errors = CuboidErrors.of(plan, plan.tree.cuboid(t), counts.total)
        estimate, variance = best.get(t, (here.noisy, np.zeros(truth.size)))
        assert np.allclose(here.stated[here.listed], estimate[here.listed], atol=1e-6)
        holds, width = _held(errors, estimate, variance, truth, hr.Confidence())
        alone = replace(errors, noise=replace(errors.noise, raw=True))
        _, raw = _held(alone, here.noisy, variance, truth, hr.Confidence())
        every, _ = _held(errors, estimate, variance, truth, hr.Confidence(simultaneous=True))
        whole = np.all(every | ~here.measured, axis=1, keepdims=True)
        among = [cells & of for cells in (here.measured, here.listed) for of in (True, truth == 0)]
        shares = (*(share(holds, cells) for cells in among), share(whole, np.ones_like(whole)))
        wider = width[here.measured].mean() / raw[here.measured].mean()
        yield Coverage(kind, t, shares, wider)


def _held(
    errors: CuboidErrors,
    estimate: Float64,
    variance: Float64,
    truth: Int64,
    confidence: hr.Confidence,
) -> tuple[Bool, Float64]:
    """Which intervals hold the truth, and how wide they are: (releases, cells)."""
    spread = np.tile(variance, len(estimate))
    low, high = errors.interval(estimate.ravel(), spread, confidence)
    low, high = low.reshape(estimate.shape), high.reshape(estimate.shape)
    return (low <= truth) & (truth <= high), (high - low).astype(np.float64)


def percent(found: tuple[float, float]) -> str:
    """A share and its standard error."""
    return "" if np.isnan(found[0]) else told((100 * found[0], 100 * found[1]), ".2f ± .2f")


def cases() -> Iterator[Coverage]:
    """Every kind of release, simulated."""
    tables = {name: made(np.random.default_rng(5), dense=name == TABLES[0]) for name in TABLES}
    for kind in product(MODES, TABLES, BUDGETS, NEIGHBOURS):
        mode, table, noise, total = kind
        (measure, estimator), counts, budget = MODES[mode], tables[table], BUDGETS[noise]
        plan = hr.make_plan(
            counts.tree,
            budget=budget,
            neighbours=NEIGHBOURS[total],
            mechanism=hr.DiscreteLaplace if isinstance(budget, hr.Epsilon) else hr.DiscreteGaussian,
            measure=measure,
            allocation=hr.Uniform(),
        )
        yield from coverages(kind, counts, plan, estimator)


def summary(every: Sequence[Coverage]) -> Iterator[Sequence[object]]:
    """The least coverage, and the largest width, over depths and kinds of total."""
    for key in product(MODES, TABLES, BUDGETS):
        rows = [row for row in every if row.kind[:3] == key]
        shares = zip(*(row.shares for row in rows), strict=True)
        least = [min(each, key=lambda one: (np.isnan(one[0]), one[0])) for each in shares]
        yield *key, *map(percent, least), max(row.width for row in rows)


def main() -> None:
    """Simulate every kind of release and write the page."""
    every = list(cases())
    missed = [
        f"- {row.kind[0]}, {row.name}, depth {row.depth}: {what}"
        for row in every
        for what in row.failures
    ]
    least = markdown(("estimates", "table", "noise", *SHARES, "width"), summary(every), ".3f")
    parts = [f"## Least over depths and kinds of total\n\n{least}\n"]
    for mode in MODES:
        lines = (
            (row.name, str(row.depth), *map(percent, row.shares), row.width)
            for row in every
            if row.kind[0] == mode
        )
        titles = ("table, noise, total", "depth", *SHARES, "width")
        parts.append(f"## {mode}\n\n{markdown(titles, lines, '.3f')}\n")
    verdict = (
        f"All {len(every)} depths meet the requirements (within {STANDARD_ERRORS} standard errors)."
    )
    if missed:
        verdict = "What falls short:\n\n" + "\n".join(missed)
    keep("coverage", PAGE.format(runs=RUNS, verdict=verdict, parts="\n".join(parts)))


SHARES = (
    "measured cells, %", "truth 0, %", "listed, %", "listed, truth 0, %", "all at once, %"
)  # fmt: skip

PAGE = """# Coverage of intervals

Made by `python -m studies.coverage`: {runs:,} simulated releases of a tree of 3 counties, 11 tracts
and 1 to 6 blocks in each, total measured or public, uniform shares; intervals at 95 %. Dense blocks
hold 20 to 200 records; in the half-empty table more than half are empty, whole tracts among them,
and the others hold 1 to 20.

Columns: the share of the *measured* cells whose interval covers the true count, with its Monte
Carlo standard error (by release, since the cells of one release are dependent); the same for cells
with true count 0; the same for the cells that the release *lists*, and for those with true count 0;
the share of releases in which all simultaneous intervals of the depth cover; the mean width,
divided by that of the clipped intervals of the noisy counts.

If all nodes are measured, the intervals are those of least squares, whatever estimator is used for
the projection; it only decides which cells are listed. With survivors, they are those of the noisy
counts, over all cells that were measured, listed or not.

Requirements: 95 % over measured cells and for all at once, 94 % over cells with true count 0, and
no larger width than the intervals of the noisy counts.

**Coverage of listed cells is lower**, and much lower for those with true count 0: a cell without
records is listed only because its noise was large. The 95 % refer to everything that was measured,
not to cells selected because they are listed.

Sums off a chain of which survivors alone were measured have [their own page](survivor_sums.md).

{verdict}

{parts}"""


if __name__ == "__main__":
    main()
