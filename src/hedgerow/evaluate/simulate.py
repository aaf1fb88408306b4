"""Simulation on public or synthetic tables: releases under a seed, against the truth."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from functools import partial
from math import inf

import numpy as np
import polars as pl

from hedgerow.arrays import CuboidList, Float64, Levels
from hedgerow.declared import Whole
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import fineness
from hedgerow.evaluate.method import (
    FACTS,
    Counted,
    CuboidCounts,
    Method,
    Releasing,
    Setting,
    check_numbered,
    table_of,
)
from hedgerow.evaluate.moments import MOMENTS, SCORES, ErrorSums, score
from hedgerow.kernels import core_count
from hedgerow.noise.bits import Bits, ReleaseKey, key_of
from hedgerow.release.descent.jobs import LocalEngine
from hedgerow.tables.counts import Counts
from hedgerow.text import Json

RUNS = Whole("runs", 3, inf, PlanError, "fewer give no standard error")
WORKERS = Whole("workers", 1, inf, PlanError)

METRICS = ("rmse", "cumulative_rmse", *SCORES[1:3], *MOMENTS[:2], *SCORES[3:-1], "seconds")
"""The columns of a simulation, each with its Monte Carlo standard error ``*_error``."""


def seeded_bits(seed: int) -> ReleaseKey:
    """Return bits that anyone can draw again: for simulations on public or synthetic tables alone.

    Noise from them hides nothing, so nothing simulated may be published as a release of a
    confidential table.
    """
    return key_of(f"simulation/{seed}")


def run_bits(seed: int, run: int) -> ReleaseKey:
    """Return the bits of a run of a simulation; no two (seed, run) share any. See `seeded_bits`."""
    return key_of(f"simulation/{seed}/run/{run}")


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
    rows = []
    for i, setting in enumerate(settings):
        answered = {k: true for k, true in truth.items() if table_of(setting, counts.tree, k)}
        tally = Tally(counts, answered, runs, answered)
        for done in tally.fold(setting, partial(run_bits, seed), workers or core_count()):
            progress((i * runs + done) / (len(settings) * runs))
        facts: dict[str, object] = {name: setting.facts().get(name) for name in FACTS}
        rows += [{"setting": setting.name, **facts, **row} for row in tally.rows()]
    frame = pl.DataFrame(rows, schema=_SCHEMA)
    return frame if along else frame.drop("depth")


def _compared(counts: Counts, settings: Sequence[Method]) -> CuboidList:
    """Return the cuboids to compare: all that the settings' plans release, or the chain's."""
    plans = [setting.plan for setting in settings if isinstance(setting, Setting)]
    every = {levels for plan in plans for levels in plan.levels} or counts.tree.chain
    return tuple(sorted(every, key=fineness))


def left_out(counts: Counts, settings: Sequence[Method]) -> dict[str, list[str]]:
    """Return for each setting that has some the cuboids that no table of it contains, by name."""
    tree = counts.tree
    compared = _compared(counts, settings)
    cuboids_of = {
        setting.name: [tree.name_of(k) for k in compared if table_of(setting, tree, k) is None]
        for setting in settings
    }
    return {name: cuboids for name, cuboids in cuboids_of.items() if cuboids}


_SCHEMA: Json = {
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
    RUNS(runs)
    if workers is not None:
        WORKERS(workers)
    names = [setting.name for setting in settings]
    twice = [name for name in names if names.count(name) > 1]
    if twice or not names:
        fault = f"two settings are called {twice[0]!r}" if twice else "there is no setting"
        raise PlanError(f"{fault}; a simulation compares settings of different names")
    check_numbered(counts.tree)
    for setting in settings:
        setting.check(counts)


@dataclass(slots=True, eq=False)
class Tally:
    """The errors of releases of a table by one method, folded release by release.

    Attributes:
        counts: the table.
        truth: of the cuboids that are compared, coarse to fine.
        runs: how many releases.
        summed: the cuboids whose bias, variance or ends are asked.
        scores: float64 (runs, cuboids, `SCORES`).
        sums: of the errors of those.
        seconds: float64 (runs): of a release.
    """

    counts: Counts
    truth: Counted
    runs: InitVar[int]
    summed: InitVar[Iterable[Levels]] = ()
    scores: Float64 = field(init=False)
    sums: Mapping[Levels, ErrorSums] = field(init=False)
    seconds: Float64 = field(init=False)

    def __post_init__(self, runs: int, summed: Iterable[Levels]) -> None:
        self.scores, self.seconds = np.zeros((runs, len(self.truth), len(SCORES))), np.zeros(runs)
        self.sums = {k: ErrorSums(self.counts.tree.cells(k), runs) for k in summed}

    @classmethod
    def of_seeds(
        cls,
        counts: Counts,
        method: Releasing,
        cuboids: Iterable[Levels],
        seeds: range,
        summed: Iterable[Levels] = (),
    ) -> "Tally":
        """Return the errors of the releases of a public table under seeds; see `seeded_bits`."""
        truth = {levels: CuboidCounts.true(counts, levels) for levels in cuboids}
        tally = cls(counts, truth, len(seeds), summed)
        deque(tally.fold(method, lambda run: seeded_bits(seeds[run]), 1), maxlen=0)
        return tally

    def score(self, name: str) -> Float64:
        """Return one of `SCORES` of each release and cuboid: float64 (runs, cuboids)."""
        return self.scores[:, :, SCORES.index(name)]

    def fold(self, method: Releasing, bits: Callable[[int], Bits], workers: int) -> Iterator[int]:
        """Release the table run by run, and yield after each how many are folded."""
        runs = LocalEngine(workers).run(
            range(len(self.seconds)), lambda run: self._errors(method, bits(run), run)
        )
        for run, errors in enumerate(runs):
            for levels, sums in self.sums.items():
                sums.add(run, errors[levels])
            yield run + 1

    def _errors(self, method: Releasing, bits: Bits, run: int) -> Counted:
        """Release the table once, keep the scores, and return the errors of each cuboid."""
        tree = self.counts.tree
        errors = {}
        start = time.perf_counter()
        released = dict(method.released(self.counts, bits))
        self.seconds[run] = time.perf_counter() - start
        for place, (levels, true) in enumerate(self.truth.items()):
            given = released.get(levels)
            if given is None and (table := table_of(method, tree, levels)) is not None:
                given = released[table].summed(tree, levels, table)
            if given is not None:
                scores = score(given, true, tree.cells(levels))
                self.scores[run, place], errors[levels] = scores
        return errors

    def frame(self) -> pl.DataFrame:
        """Return the `rows`."""
        return pl.DataFrame([*self.rows()])

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield for each cuboid the estimates and Monte Carlo errors of `METRICS`."""
        runs = len(self.seconds)
        tree = self.counts.tree
        for t, levels in enumerate(self.truth):
            cells = tree.cells(levels)
            columns = dict(zip(SCORES, self.scores[:, t].T, strict=True))
            row: dict[str, object] = {
                "runs": runs, "depth": tree.depth_at(levels),
                "cuboid": tree.name_of(levels), "cells": float(cells),
            }  # fmt: skip
            if len(tree.axes) > 1:
                del columns["cumulative_mse"]
            for name, values in (columns | {"seconds": self.seconds}).items():
                mean = float(values.mean())
                error = float(values.std(ddof=1) / math.sqrt(runs))
                if name.endswith("mse"):
                    mean = math.sqrt(mean)
                    error = error / (2 * mean) if mean else 0.0
                if not math.isnan(mean):  # no cells in the size class: null
                    metric = name.replace("mse", "rmse")
                    row[metric] = mean
                    row[f"{metric}_error"] = error
            if levels in self.sums:
                row |= self.sums[levels].moments(columns["mse"] * cells) or {}
            yield row
