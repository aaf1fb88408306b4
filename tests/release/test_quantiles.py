"""Quantiles, cumulative counts and counts between by place: equal to those of dense matrices."""

import math
import re
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import binom

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
    every = {"place": "town", **sex}  # with it the bins of a chain end
    return [{}, {"place": "town"}, every, {"place": "county", **sex}, {"areas": AREAS, **sex}]


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


@pytest.mark.parametrize("kind", ["chain", "cube", "named", "spine"])
def test_cumulative_counts_and_counts_between_have_their_own_errors(kind):
    """By town and by overlapping areas: estimates, standard errors and intervals of dense sums."""
    release = made(kind)
    dense = Dense(release)
    first = dense.leaves["income_bin"].str.slice(0, 1).cast(pl.Int64).to_numpy()
    for where in ({"place": "town"}, {"areas": AREAS}):
        cdf = release.cdf("income", confidence=CONFIDENCE, **where)
        shown = cdf.filter(pl.col("upper") == 100).select(labels_of(cdf))
        rows = dense.sums(shown, pl.DataFrame(AREAS) if "areas" in where else None)
        inside = release.count_between("income", 20, 80, confidence=CONFIDENCE, **where)
        errors = distributions(release, **where).cumulative.errors
        counts = released_leaves(release, dense)
        for b in range(1, 7):
            told = cdf.filter(pl.col("upper") == RANGES.edges[b])
            check_sums(told, rows * (first < b), dense, counts, errors)
            part = told["count"] / np.maximum(rows @ counts, 1)
            np.testing.assert_allclose(told["cdf"], part)
        check_sums(inside, rows * ((first >= 2) & (first < 5)), dense, counts, errors)


def check_sums(told, rows, dense, counts, errors):
    assert told["count"].to_list() == (rows @ counts).tolist()
    variance = np.einsum("pi,ij,pj->p", rows, dense.covariance, rows)
    reach = errors.half_width(variance, CONFIDENCE)
    low, high = rows @ dense.x - reach, rows @ dense.x + reach
    np.testing.assert_allclose(told["low"], np.maximum(np.ceil(low), 0), atol=1)
    np.testing.assert_allclose(told["high"], np.maximum(np.floor(high), 0), atol=1)
    assert (np.abs(told["high"] - np.floor(high)) > 0).sum() <= (high < 0).sum()


def test_ends_that_are_no_edges_take_their_part_of_a_bin():
    release = made("cube")
    told = release.count_between("income", 5, 60, place="town")
    cdf = release.cdf("income", place="town")
    below = {b: cdf.filter(pl.col("upper") == b)["count"] for b in (10, 50, 80)}
    part = below[50] + (below[80] - below[50]) / 3 - below[10] / 2
    assert told["count"].to_list() == part.round(0).to_list()
    touched = release.count_between("income", 0, 80, place="town")
    within = release.count_between("income", 10, 50, place="town")
    assert told["low"].to_list() == within["low"].to_list()
    assert told["high"].to_list() == touched["high"].to_list()


def test_a_column_alone_is_one_place():
    values = np.random.default_rng(3).normal(50, 20, 3000)
    alone = hr.release_distribution(values, low=0, high=100, bins=50, budget=hr.Rho("1/20"))
    release = alone.release
    frame = release.quantiles("value", [0.25, 0.5])
    for q, row in zip([0.25, 0.5], frame.iter_rows(named=True), strict=True):
        one = alone.quantile(q)
        assert (row["value"], row["low"], row["high"]) == (one.value, one.low, one.high)
    assert release.cdf("value").equals(alone.cdf)
    one = alone.count_between(10, 30)
    assert release.count_between("value", 10, 30).row(0) == (one.count, one.low, one.high)


def test_true_quantiles_lie_in_their_intervals_as_often_as_these_say():
    """At 90 %, over places of 0 to 800 records and three ranks; α = 1e-6, seed pinned.

    They hold more often, as noise varies from edge to edge and intervals are hulls. Power: with a
    third of the half widths the test fails; the dense one above knows them exactly.
    """
    rng, runs = np.random.default_rng(8), 90
    places = {"town": [f"{i}" for i in range(8)], "county": list("aaaabbbb")}
    income = hr.numeric_axis(hr.Ranges.equal_width("income", 0, 64, 64), [4, 4, 4])
    tree = hr.Tree([hr.Axis.from_frame("place", places, ["county", "town"]), income])
    size = np.array([0, 20, 400, 800] * 2)
    drawn = [rng.normal(32, 14, many).clip(0, 63).astype(int) for many in size]
    cells = np.stack([np.bincount(each, minlength=64) for each in drawn])
    codes = np.indices(cells.shape).reshape(2, -1).astype(np.int32)
    counts = hr.Counts.from_leaves(tree, tuple(codes), cells.ravel())
    plan = plain_plan(tree, budget=hr.Rho("1/200"), workload=hr.Cube())
    before, ranks = np.cumsum(cells, axis=1), [0.1, 0.5, 0.75]
    covered = np.zeros((len(size), len(ranks)))
    for seed in range(runs):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        frame = release.quantiles("income", ranks, place="town", confidence=CONFIDENCE)
        low, high = (frame[name].to_numpy().reshape(covered.shape) for name in ("low", "high"))
        for k, q in enumerate(ranks):
            rank = np.maximum(np.ceil(q * size), 1)
            true = (before < rank[:, None]).sum(axis=1)
            covered[:, k] += (low[:, k] <= true) & (true + 1 <= high[:, k])
        nobody = frame.filter(pl.col("count") == 0)
        assert nobody["value"].is_null().all()
        assert nobody["whole_axis"].all()
    many = size > 0
    assert binom.cdf(covered[many].min(), runs, 0.9) > 1e-6 / covered.size


def test_simultaneous_intervals_contain_those_of_each():
    release = made("cube")
    each = release.quantiles("income", RANKS, place="town", confidence=CONFIDENCE)
    every = release.quantiles(
        "income", RANKS, place="town", confidence=hr.Confidence(0.9, simultaneous=True)
    )
    assert (every["low"] <= each["low"]).all()
    assert (every["high"] >= each["high"]).all()
    assert (every["high"] - every["low"]).sum() > (each["high"] - each["low"]).sum()


def test_bins_are_the_finest_that_a_table_has():
    tables = hr.Cuboids(["place.town × income.bins_2", "income.bin × sex.sex"])
    plan = plain_plan(tree_of("named", None), budget=hr.Rho(1), workload=tables)
    release = in_memory(
        hr.Counts.from_leaves(plan.tree, (np.zeros(1, np.int32),) * 3, np.array([100])),
        plan, estimator=hr.Euclidean(), bits=seeded_bits(1),
    )  # fmt: skip
    assert release.cdf("income", place="town")["upper"].unique().sort().to_list() == [20, 50, 100]
    assert release.cdf("income", place="sex")["upper"].n_unique() == 6
    with pytest.raises(hr.ReleaseError, match=re.escape("is no sum of what was released")):
        release.quantiles("income", [0.5], place="town × sex")


def test_what_cannot_be_told_is_refused_in_one_sentence():
    release = made("cube")
    for words, axis, ranks, where in (
        ("no numeric axis is called 'place'", "place", [0.5], {}),
        ("places cannot be made of it", "income", [0.5], {"place": "bins_2"}),
        ("no level is called 'tract'", "income", [0.5], {"place": "tract"}),
        ("no way to name places is called 'level'", "income", [0.5], {"level": "town"}),
        ("at least one rank", "income", [], {}),
        ("a list, such as", "income", 0.5, {}),
        ("must be in (0, 1), got 50", "income", [50], {}),
        ("a confidence is", "income", [0.5], {"confidence": 0.9}),
    ):
        with pytest.raises(hr.ReleaseError, match=re.escape(words)):
            release.quantiles(axis, ranks, **where)
    with pytest.raises(hr.ReleaseError, match=re.escape("needs a below b")):
        release.count_between("income", 5, 5)
    tree = hr.Tree([hr.Axis.from_frame("place", TOWNS, ["county", "town"])])
    counts = hr.Counts.from_leaves(tree, (np.zeros(1, np.int32),), np.array([9]))
    plain = hr.release(counts, plain_plan(tree, budget=hr.Rho(1)))
    with pytest.raises(hr.ReleaseError, match=re.escape("of an axis of bins")):
        plain.quantiles("income", [0.5])
    tree = tree_of("chain", INCOME_LAST)
    plan = plain_plan(tree, budget=hr.Rho(1), measure=hr.Survivors())
    counts = hr.Counts.from_leaves(tree, (np.zeros(1, np.int32),) * 3, np.array([900]))
    with pytest.raises(hr.ReleaseError, match=re.escape('a plan with measure = "all"')):
        hr.release(counts, plan).quantiles("income", [0.5], place="town")
