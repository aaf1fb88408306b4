"""Coverage of the intervals that a release states, over 2,000 simulated releases of small trees.

Writes ``docs/coverage.md``. The tables are made up and all noise is seeded, so the figures come
out the same every time.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars as pl
from numpy.random import Generator

import hedgerow as hr
from hedgerow.arrays import Array, Bool, Float64, Int64, Levels
from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.cuboids import Measure
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from studies.page import keep, markdown, told
from studies.releases import plan_of, seeded
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
    "All nodes, least squares (listed by Chebyshev)": (hr.All(), hr.Chebyshev()),
    "Survivors, Chebyshev": (hr.Survivors(), hr.Chebyshev()),
    "Survivors, Euclidean": (hr.Survivors(), hr.Euclidean()),
}


def made(rng: Generator, *, dense: bool) -> hr.Counts:
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


Simulated = list[Array]
"""Of one cuboid, all releases, (releases, cells) each: which cells were measured, and which are
listed; of those that were measured the unbiased estimates, their variances and the noisy counts."""


def simulated(counts: hr.Counts, plan: hr.Plan, estimator: Estimator) -> dict[Levels, Simulated]:
    """For each measured cuboid what `RUNS` releases say of its cells."""
    tree, found = plan.tree, defaultdict[Levels, list[list[Array]]](list)
    for run in range(RUNS):
        content = seeded(counts, plan, estimator, run).content
        every = answers_of(plan).cells(content.stored, list(content.stored.measured))
        for levels, nodes in every.items():
            ones, noisy = np.ones(len(nodes), dtype=bool), content.measured[levels]
            columns = ones, nodes.counts > 0, nodes.estimate, nodes.variance, noisy
            found[levels].append([dense(tree, levels, nodes.codes, each) for each in columns])
    return {
        levels: [np.array(each) for each in zip(*runs, strict=True)]
        for levels, runs in found.items()
    }


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
    for levels, here in simulated(counts, plan, estimator).items():
        measured, listed, estimate, variance, noisy = here
        truth, errors = every_count(counts, levels), CuboidErrors.of(plan, levels, counts.total)
        holds, width = _held(errors, estimate, variance, truth, hr.Confidence())
        alone = replace(errors, noise=replace(errors.noise, raw=True))
        _, raw = _held(alone, noisy, variance, truth, hr.Confidence())
        at_once = hr.Confidence(simultaneous=True)
        every, _ = _held(errors, estimate, variance, truth, at_once)
        whole = np.all(every | ~measured, axis=1, keepdims=True)
        among = [cells & of for cells in (measured, listed) for of in (True, truth == 0)]
        shares = (*(share(holds, cells) for cells in among), share(whole, np.ones_like(whole)))
        wider = width[measured].mean() / raw[measured].mean()
        yield Coverage(kind, sum(levels), shares, wider)


def _held(
    errors: CuboidErrors,
    estimate: Float64,
    variance: Float64,
    truth: Int64,
    confidence: hr.Confidence,
) -> tuple[Bool, Float64]:
    """Which intervals hold the truth, and how wide they are: (releases, cells)."""
    ends = errors.interval(estimate.ravel(), variance.ravel(), confidence)
    low, high = (end.reshape(estimate.shape) for end in ends)
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
        plan = plan_of(counts.tree, budget, measure, neighbours=NEIGHBOURS[total])
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
    least = markdown(f"estimates | table | noise | {SHARES}", summary(every), ".3f")
    parts = [f"## Least over depths and kinds of total\n\n{least}\n"]
    for mode in MODES:
        lines = (
            (row.name, str(row.depth), *map(percent, row.shares), row.width)
            for row in every
            if row.kind[0] == mode
        )
        table = markdown(f"table, noise, total | depth | {SHARES}", lines, ".3f")
        parts.append(f"## {mode}\n\n{table}\n")
    verdict = (
        f"All {len(every)} depths meet the requirements (within {STANDARD_ERRORS} standard errors)."
    )
    if missed:
        verdict = "What falls short:\n\n" + "\n".join(missed)
    keep("coverage", PAGE.format(runs=RUNS, verdict=verdict, parts="\n".join(parts)))


SHARES = "measured cells, % | truth 0, % | listed, % | listed, truth 0, % | all at once, % | width"

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
