"""Hedgerow's own release of Ko's tables: all nodes measured, least squares, whole counts."""

from fractions import Fraction

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Int64
from studies.ko.releasing import Moments, moments
from studies.ko.tables import Case
from studies.releases import seeded
from studies.tables import census_of


def own_moments(case: Case, epsilon: float, runs: int) -> Moments:
    """Bias² and variance by level of Hedgerow's release at the same ε.

    Discrete Laplace noise on all nodes, shares that make the error after least squares least, and
    the nearest whole counts that are not negative and add up.
    """
    return moments(case, own_releases(case, epsilon, runs), runs)


def own_releases(case: Case, epsilon: float, runs: int) -> list[list[Int64]]:
    """The released counts of each level, in tree order, of so many releases."""
    tracts = np.repeat(np.arange(case.nodes[1]), np.diff(case.tract_start))
    leaves = np.arange(case.nodes[2])
    frame = pl.DataFrame({
        "tract": pl.Series(tracts).cast(pl.String).str.zfill(6),
        "leaf": pl.Series(leaves).cast(pl.String).str.zfill(9),
        "count": case.truth[2].astype(np.int64),
    })  # fmt: skip
    counts = census_of(frame, ["tract", "leaf"], "count")
    plan = hr.make_plan(
        counts.tree,
        budget=hr.Epsilon(Fraction(str(epsilon))),
        mechanism=hr.DiscreteLaplace,
        allocation=hr.Optimal(objective="released"),
        measure=hr.All(),
    )
    found = []
    for seed in range(runs):
        made = seeded(counts, plan, hr.Euclidean(), seed)
        shown = np.zeros(case.nodes[2], dtype=np.int64)
        listed = made.level("leaf")
        shown[listed["leaf"].cast(pl.Int64).to_numpy()] = listed["count"].to_numpy()
        above = np.add.reduceat(shown, case.tract_start[:-1])
        found.append([np.array([shown.sum()]), above, shown])
    return found
