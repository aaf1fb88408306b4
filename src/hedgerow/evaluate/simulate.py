"""Simulation on public or synthetic tables: releases under a seed, against the truth."""

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import fineness
from hedgerow.evaluate.method import (
    FACTS,
    CuboidCounts,
    Method,
    Setting,
    align_cells,
    check_numbered,
    table_of,
)
from hedgerow.evaluate.moments import SCORES, ErrorSums, cumulative_square, score
from hedgerow.kernels import core_count
from hedgerow.noise.bits import Bits, ReleaseKey
from hedgerow.release.descent.jobs import LocalEngine
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree

FEWEST_RUNS = 3

METRICS = ("rmse", "cumulative_rmse", *SCORES[1:3], "bias2", "variance", *SCORES[3:], "seconds")
"""The columns of a simulation, each with its Monte Carlo standard error ``*_error``."""


def seeded_bits(seed: int) -> ReleaseKey:
    """Return bits that anyone can draw again: for simulations on public or synthetic tables alone.

    Noise from them hides nothing, so nothing simulated may be published as a release of a
    confidential table.
    """
    return ReleaseKey(hashlib.sha256(f"hedgerow/simulation/{seed}".encode()).digest())


def run_bits(seed: int, run: int) -> ReleaseKey:
    """Return the bits of a run of a simulation; no two (seed, run) share any. See `seeded_bits`."""
    return ReleaseKey(hashlib.sha256(f"hedgerow/simulation/{seed}/run/{run}".encode()).digest())


def simulate(
    counts: Counts,
    settings: Sequence[Method],
    *,
    public: bool,
    runs: int,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[float], None] = lambda _share: None,
) -> pl.DataFrame:
    """Return the errors of simulated releases of a public table, by setting and cuboid.

    The cuboids are those that the settings release: of the tree's chain, of a cube all, and those
    that are named. What a setting does not release is a sum of the leaves that it releases, or of
    a table that contains it; where it has none, the setting has no row for that cuboid
    (`left_out`).

    Run r has the same random bits under all settings, so their errors are compared on common noise:
    a difference between two settings is more certain than the two errors suggest. Every number but
    ``seconds`` is the same for any number of workers.

    Args:
        counts: a public or synthetic table.
        settings: what to compare.
        public: must be True: the declaration that anyone may see this table.
        runs: how many releases of each to simulate, at least 3.
        seed: nothing that is simulated may be published as a release.
        workers: threads; one a core unless given.
        progress: called with the share of the runs that is done, 0 to 1.

    Returns:
        One row a setting and depth: ``setting``, the columns of `hedgerow.evaluate.method.FACTS`
        (null where they do not apply), ``runs``, ``depth``, ``cuboid``, ``cells`` (possible ones),
        and for each of `METRICS` its estimate and, as ``*_error``, its Monte Carlo standard error:
        ``rmse`` (records), whose square is ``bias2`` + ``variance`` (null above 2²⁶ possible cells
        where too many of them had an error); ``cumulative_rmse``, the same of the running sums of
        all cells in order (null for several axes); means over runs of the other scores of
        `hedgerow.evaluate.moments` (null for a size class without cells); ``seconds`` of one run.
    """
    check_simulation(counts, settings, public=public, runs=runs, workers=workers)
    truth = {levels: CuboidCounts.true(counts, levels) for levels in _compared(counts, settings)}
    along = tuple(truth) == counts.tree.chain
    engine = LocalEngine(workers or core_count())
    rows = []
    for i, setting in enumerate(settings):
        answered = _answered(counts.tree, setting, truth)
        tally = Tally.of(counts.tree, answered, runs, summed=answered, along=along)
        run = partial(tally.release, counts, setting, partial(run_bits, seed))
        for done, _ in enumerate(engine.run(range(runs), run), start=1):
            progress((i * runs + done) / (len(settings) * runs))
        facts: dict[str, object] = {name: setting.facts().get(name) for name in FACTS}
        rows += [{"setting": setting.name, **facts, **row} for row in tally.rows()]
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    return frame if along else frame.drop("depth")


def _compared(counts: Counts, settings: Sequence[Method]) -> tuple[Levels, ...]:
    """Return the cuboids to compare: all that the settings' plans release, or the chain's."""
    plans = [setting.plan for setting in settings if isinstance(setting, Setting)]
    every = {levels for plan in plans for levels in plan.levels} or counts.tree.chain
    return tuple(sorted(every, key=fineness))


def _answered(
    tree: Tree, setting: Method, truth: Mapping[Levels, CuboidCounts]
) -> dict[Levels, CuboidCounts]:
    """Return those cuboids that a setting releases, or that are sums of what it releases."""
    return {k: true for k, true in truth.items() if table_of(setting, tree, k) is not None}


def left_out(counts: Counts, settings: Sequence[Method]) -> dict[str, list[str]]:
    """Return for each setting that has some the cuboids that no table of it contains, by name."""
    tree, compared = counts.tree, _compared(counts, settings)
    found = {
        setting.name: [tree.name_of(k) for k in compared if table_of(setting, tree, k) is None]
        for setting in settings
    }
    return {name: cuboids for name, cuboids in found.items() if cuboids}


_SCHEMA: Mapping[str, Any] = {
    **dict.fromkeys(("setting", *FACTS), pl.String),
    "runs": pl.Int64,
    "depth": pl.Int64,
    "cuboid": pl.String,
    "cells": pl.Float64,
    **{f"{name}{end}": pl.Float64 for name in METRICS for end in ("", "_error")},
}


def check_simulation(
    counts: Counts, settings: Sequence[Method], *, public: bool, runs: int, workers: int | None
) -> None:
    """Raise unless these settings can be compared on this table."""
    if public is not True:
        raise PlanError(
            "a simulation shows exact errors, which reveal a table: declare public=True if anyone "
            "may see this table, or simulate on another one"
        )
    if runs < FEWEST_RUNS:
        raise PlanError(
            f"a simulation needs at least {FEWEST_RUNS} runs for a standard error, got {runs}"
        )
    if workers is not None and workers < 1:
        raise PlanError(f"workers must be at least 1, got {workers}")
    names = [setting.name for setting in settings]
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        fault = f"two settings are called {twice[0]!r}" if twice else "there is no setting"
        raise PlanError(f"{fault}; a simulation compares settings of different names")
    check_numbered(counts.tree)
    for setting in settings:
        setting.check(counts)


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The errors of the runs of one setting; each writes its own part, so threads may share it."""

    tree: Tree
    truth: Mapping[Levels, CuboidCounts]  # coarse to fine
    scores: Float64  # (runs, cuboids, SCORES)
    cumulative: Float64  # (runs, cuboids), NaN for several axes
    sums: Mapping[Levels, ErrorSums]  # of those whose bias, variance or ends are asked
    seconds: Float64  # (runs)
    along: bool  # whether the cuboids are depths of the tree's chain

    @classmethod
    def of(
        cls,
        tree: Tree,
        truth: Mapping[Levels, CuboidCounts],
        runs: int,
        *,
        summed: Iterable[Levels],
        along: bool,
    ) -> "Tally":
        """Return that of no errors yet."""
        sums = {levels: ErrorSums(tree.cells(levels), runs) for levels in summed}
        scores = np.zeros((runs, len(truth), len(SCORES)))
        cumulative = np.full((runs, len(truth)), np.nan)
        return cls(tree, truth, scores, cumulative, sums, np.zeros(runs), along)

    def release(
        self, counts: Counts, setting: Method, bits: Callable[[int], Bits], run: int
    ) -> None:
        """Release the table once and tally its errors."""
        left, released = set(self.truth), dict[Levels, CuboidCounts]()
        tables = {levels: table_of(setting, self.tree, levels) for levels in left}
        kept = {*tables.values()}
        start = time.perf_counter()
        for levels, cells in setting.released(counts, bits(run)):
            self.seconds[run] += time.perf_counter() - start
            if levels in left:
                self._add(run, levels, cells)
                left.remove(levels)
            if levels in kept:
                released[levels] = cells
            start = time.perf_counter()
        for levels in left:
            if (table := tables[levels]) is not None:
                self._add(run, levels, released[table].summed(self.tree, levels, table))

    def _add(self, run: int, levels: Levels, cells: CuboidCounts) -> None:
        possible, place = self.tree.cells(levels), list(self.truth).index(levels)
        number, given, true = align_cells(cells, self.truth[levels], possible)
        self.scores[run, place] = score(given, true, possible)
        errors = given - true
        if len(self.tree.axes) == 1:
            self.cumulative[run, place] = cumulative_square(number, errors, possible)
        if levels in self.sums:
            self.sums[levels].add(run, number, errors)

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield for each cuboid the estimates and Monte Carlo errors of `METRICS`."""
        runs = len(self.seconds)
        for t, levels in enumerate(self.truth):
            cells = self.tree.cells(levels)
            mse, others = self.scores[:, t, 0], self.scores[:, t, 1:]
            columns = dict(zip(SCORES[1:], others.T, strict=True), seconds=self.seconds)
            row: dict[str, object] = {
                "runs": runs, "depth": t if self.along else None,
                "cuboid": self.tree.name_of(levels), "cells": float(cells),
            }  # fmt: skip
            row["rmse"], row["rmse_error"] = _root(mse)
            row["cumulative_rmse"], row["cumulative_rmse_error"] = _root(self.cumulative[:, t])
            for name, values in columns.items():
                if np.isnan(values).any():  # no cells in the size class: null
                    continue
                row[name] = float(values.mean())
                row[f"{name}_error"] = float(values.std(ddof=1) / math.sqrt(runs))
            moments = self.sums[levels].moments(mse * cells) if levels in self.sums else None
            for name in ("bias2", "variance", "bias2_error", "variance_error"):
                row[name] = None if moments is None else getattr(moments, name)
            yield row


def _root(squares: Float64) -> tuple[float | None, float | None]:
    """Return the root of the mean square over runs and its standard error, None where NaN."""
    if np.isnan(squares).any():
        return None, None
    root, error = math.sqrt(squares.mean()), squares.std(ddof=1) / math.sqrt(len(squares))
    return root, float(error / (2 * root)) if root else 0.0
