"""Quantiles, cumulative counts and counts between by place: equal to those of dense matrices."""

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.distribution.places import Distributions
from hedgerow.release.execution import in_memory
from tests.made import plain_plan
from tests.release.dense import Dense

TOWNS = {"town": ["p1", "p2", "p3", "q1", "q2", "r1"], "county": ["p", "p", "p", "q", "q", "r"]}
SEXES = {"sex": ["f", "m"]}
RANGES = hr.Ranges("income", [0, 10, 20, 35, 50, 80, 100])
RANKS = [0.1, 0.5, 0.875]
NAMED = [
    "place.town × income.bin × sex.sex",
    "place.county × income.bins_2",
    "income.bin × sex.sex",
    "place.town",
]
INCOME_LAST = ["place.county", "place.town", "sex.sex", "income.bins_2", "income.bin"]
KINDS = {
    "chain": {"measure": hr.All(), "refine": INCOME_LAST},
    "chain, total known": {"measure": hr.All(), "neighbours": hr.Replace(), "refine": INCOME_LAST},
    "chain, in turns": {"measure": hr.All(), "refine": ["income", "place", "sex"]},
    "cube": {"workload": hr.Cube()},
    "cube, total known": {"workload": hr.Cube(), "neighbours": hr.Replace()},
    "named, one axis of several levels": {"workload": hr.Cuboids([NAMED[0], NAMED[3]])},
    "named": {"workload": hr.Cuboids(NAMED)},
    "spine": {"workload": hr.Cuboids(NAMED)},
    "spine cube": {"workload": hr.Cube()},
    "column": {"measure": hr.All()},
}
AREAS = {"town": ["p1", "q1", "r1", "q1", "p2", "p1"], "area": list("aabbcc")}
CONFIDENCE = hr.Confidence(0.9)


def tree_of(kind, refine):
    beside = kind.startswith("spine")
    axes = [
        hr.Axis.from_frame("place", TOWNS, ["county", "town"]),
        hr.numeric_axis(RANGES, [3, 2], attribute=beside),
        hr.Axis.from_frame("sex", SEXES, ["sex"], attribute=beside),
    ]
    if kind in {"spine cube", "column"}:
        return hr.Tree({"spine cube": axes[:2], "column": axes[1:2]}[kind])
    return hr.Tree(axes, refine=refine)


def made(kind, seed=2, scale=1):
    options = dict(KINDS[kind])
    tree = tree_of(kind, options.pop("refine", None))
    plan = plain_plan(tree, **{"budget": hr.Rho("1/4"), **options})
    codes = np.indices([axis.size(axis.depth) for axis in tree.axes]).reshape(len(tree.axes), -1)
    values = np.arange(1, codes.shape[1] + 1) * 7 % 23 * scale
    counts = hr.Counts.from_leaves(tree, tuple(codes.astype(np.int32)), values)
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))


def wheres(kind):
    """Places of every sort, and what they are by."""
    if kind == "column":
        return [{}]
    sex = {} if kind == "spine cube" else {"by": {"sex": "sex"}}
    return [{}, {"place": "town"}, {"place": "county", **sex}, {"areas": AREAS, **sex}]


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_follow_from_dense_estimates_and_their_covariance(kind):
    """Of each form (1 - q) y - q (N - y) its own variance, place by place and cut by cut."""
    release = made(kind)
    dense, edges = Dense(release), RANGES.edges
    first = dense.leaves["income_bin"].str.slice(0, 1).cast(pl.Int64).to_numpy()
    for where in wheres(kind):
        frame = release.quantiles("income", RANKS, confidence=CONFIDENCE, **where)
        shown = frame.filter(pl.col("quantile") == RANKS[0]).select(labels_of(frame))
        rows = np.ones((1, len(dense.leaves)))
        if shown.width:
            rows = dense.sums(shown, pl.DataFrame(AREAS) if "areas" in where else None)
        bins = (rows * released_leaves(release, dense)) @ np.eye(6)[first]
        before = [rows * (first < b) for b in range(7)]
        asked = distributions(release, **where)
        np.testing.assert_allclose(
            asked.cumulative.estimate, np.stack([row @ dense.x for row in before], -1), atol=1e-6
        )
        for q in RANKS:
            forms = np.stack([row - q * rows for row in before], axis=1)
            variance = np.einsum("pbi,ij,pbj->pb", forms, dense.covariance, forms)
            own = np.atleast_2d(asked.cumulative.error.excess(q))
            np.testing.assert_allclose(own, variance, rtol=1e-6, atol=1e-6)
            reach = asked.cumulative.errors.half_width(own, CONFIDENCE)
            told = frame.filter(pl.col("quantile") == q)
            estimate = forms @ dense.x
            for i, row in enumerate(told.iter_rows(named=True)):
                assert row["count"] == bins[i].sum()
                assert row["value"] == pytest.approx(straight(bins[i], q))
                held = next(b for b in range(6) if edges[b] <= row["value"] <= edges[b + 1])
                low, high = estimate[i] - reach[i], estimate[i] + reach[i]
                if variance[i, -1] < 1e-9:  # all are known: whole numbers of y - ⌈qN⌉ alone
                    rank = q * bins[i].sum()
                    low, high = np.ceil(low + rank - 1e-6), np.floor(high + rank + 1e-6)
                    low, high = np.maximum(low, 0) - math.ceil(rank), high - math.ceil(rank)
                possible = [
                    b for b in range(6) if (b == 5 or high[b + 1] >= 0) and (b == 0 or low[b] < 0)
                ]
                assert row["low"] == edges[min([*possible, held])]
                assert row["high"] == edges[max([*possible, held]) + 1]


def distributions(release, **where):
    return Distributions.of(release.content, "income", where)


def labels_of(frame):
    return [name for name in ("area", "county", "town", "sex") if name in frame]


def released_leaves(release, dense):
    """The released count of each leaf."""
    listed = release.cuboid(None, **{a.name: a.levels[-1] for a in release.plan.tree.axes})
    codes = [name for name in listed.columns if name != "count"]
    counts = dense.leaves.join(listed, on=codes, how="left", maintain_order="left")["count"]
    return counts.fill_null(0).to_numpy()


def straight(counts, q):
    """Where the counts, straight within bins, reach q: slowly, by fractions."""
    wanted, below = Fraction(str(q)) * int(counts.sum()), Fraction(0)
    for b, inside in enumerate(counts.astype(int).tolist()):
        if below + inside >= max(math.ceil(wanted), 1):
            part = (wanted - below) / inside
            return float(RANGES.edges[b] + (RANGES.edges[b + 1] - RANGES.edges[b]) * float(part))
        below += inside
    return None
