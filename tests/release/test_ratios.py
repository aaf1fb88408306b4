"""Shares, rates and differences: their joint law is that of dense matrices, and they cover."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.answers import ratios
from hedgerow.release.answers.ratios import area_numbers, pairs_of_areas, pairs_of_levels
from hedgerow.release.execution import in_memory
from hedgerow.tables.lists.lookup import Lookup
from tests.made import all_leaves, plain_plan
from tests.release.dense import Dense
from tests.release.test_areas import AGES, FINEST, FIXED, PLACES, TOWNS, WORKLOADS, made

NESTED = [
    ({"place": "town"}, {"place": "county"}),
    ({"place": "county"}, {}),
    ({"place": "town", "age": "band"}, {"place": "county", "age": "band"}),
    ({"age": "age", "place": "county"}, {"place": "county"}),
]
"""A share along one axis: the covariance is known."""


@pytest.mark.parametrize("more", [{}, FIXED], ids=["measured", "public total"])
@pytest.mark.parametrize("kind", WORKLOADS)
def test_the_covariance_of_a_share_is_that_of_dense_least_squares(kind, more):
    release = made(kind, **more)
    dense = Dense(release)
    for numerator, denominator in NESTED:
        pairs = pairs_of_levels(release.content, numerator, denominator)
        fine = dense.sums(pairs.labels)
        of = [c for c in pairs.labels.columns if c in _columns(release, denominator)]
        coarse = dense.sums(pairs.labels.select(of)) if of else np.ones_like(fine)
        assert np.allclose(pairs.first.estimate, fine @ dense.x, rtol=1e-7, atol=1e-7)
        assert np.allclose(pairs.second.estimate, coarse @ dense.x, rtol=1e-7, atol=1e-7)
        both = np.einsum("ij,jk,ik->i", fine, dense.covariance, coarse)
        assert np.allclose(pairs.covariance, both, rtol=1e-7, atol=1e-7)
        assert pairs.are_shares


def _columns(release, levels):
    """The code columns of axis = level."""
    axes = {axis.name: axis for axis in release.plan.tree.axes}
    return [
        c for name, k in levels.items() for c in axes[name].columns_of(axes[name].level_number(k))
    ]


@pytest.mark.parametrize("kind", WORKLOADS)
def test_areas_that_overlap_have_the_covariance_of_dense_least_squares(kind):
    release, rows = made(kind), pl.DataFrame(TOWNS)
    dense, lookup = Dense(release), Lookup.of(release.plan.tree, TOWNS)
    for by in ({}, {"age": "band"}):
        pairs = pairs_of_areas(release.content, by, lookup, area_numbers(lookup, "a", "b"))
        frames = [pairs.labels.with_columns(area=pl.lit(area)) for area in ("a", "b")]
        first, second = (dense.sums(frame, rows) for frame in frames)
        both = np.einsum("ij,jk,ik->i", first, dense.covariance, second)
        assert np.allclose(pairs.covariance, both, rtol=1e-7, atol=1e-7)
        assert not pairs.are_shares
        apart = first - second
        found = release.difference("a", "b", TOWNS, by=by)
        variance = np.einsum("ij,jk,ik->i", apart, dense.covariance, apart)
        assert np.allclose(found["standard_error"], np.sqrt(variance), rtol=1e-7)
        assert np.allclose(found["estimate"], apart @ dense.x, rtol=1e-7, atol=1e-7)


TREE = hr.Tree([
    hr.Axis.from_frame("place", {"town": [f"t{i:02}" for i in range(24)],
                                 "county": [f"c{i // 6}" for i in range(24)]}, ["county", "town"]),
    hr.Axis.from_frame("age", {"age": ["0", "1", "2"]}, ["age"]),
])  # fmt: skip
SIZES = np.repeat([4, 40, 400, 4000], 6)[:, None] * [1, 2, 1]
COVERED = {
    "chain": {"measure": hr.All()},
    "cube": {"workload": hr.Cube()},
    "named": {"workload": hr.Cuboids(["place.town × age.age", "place.county", "age.age"])},
}


@pytest.mark.parametrize("kind", COVERED)
def test_sets_hold_the_true_share_as_often_as_they_say(kind):
    """Each size of town by itself, before and after shares are cut to 0..1.

    Of 40 × 18 sets 95 % hold; those of a town's ages depend on each other, so α = 1e-6 is taken of
    40 × 6 independent ones: 0.95 less 4.9 √(0.05 · 0.95/240) is 0.88.
    """
    plan = plain_plan(TREE, budget=hr.Rho("1/8"), **COVERED[kind])
    counts = all_leaves(TREE, SIZES.ravel())
    towns = np.repeat(np.arange(24) // 6, 3)
    truth = (SIZES / SIZES.sum(axis=1, keepdims=True)).ravel()
    held, cut, unbounded = np.zeros((3, 4)), np.zeros(4), []
    tried = np.zeros(4)
    for seed in range(40):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        levels = {"place": "town", "age": "age"}, {"place": "town"}
        pairs = pairs_of_levels(release.content, *levels)
        rows = pairs.labels.select(
            row=pl.col("town").str.slice(1).cast(pl.Int64) * 3 + pl.col("age").cast(pl.Int64)
        )["row"].to_numpy()
        given = pairs.joint(Confidence())
        low, high, bounded = given.sets(1.0)
        share, of = truth[rows], towns[rows]
        np.add.at(tried, of, 1)
        np.add.at(held[0], of, given.holds(share))
        np.add.at(cut, of, (low <= share + 1e-12) & (share - 1e-12 <= high))
        unbounded.append(1 - bounded[of == 0].mean())
        assert bounded[of > 0].all()
    assert (held[0] / tried > 0.88).all()
    assert (cut / tried > 0.88).all()
    assert held[0].sum() / tried.sum() < 0.985
    assert np.mean(unbounded) > 0.01, "of towns of 16 the denominator may be 0"


def test_the_only_town_of_a_county_is_all_of_it():
    for kind in WORKLOADS:
        found = made(kind).ratio({"place": "town"}, {"place": "county"}).filter(town="r1")
        assert found.select("ratio", "low", "high").row(0) == pytest.approx((1.0, 1.0, 1.0))


def test_where_survivors_alone_are_measured_noisy_counts_are_independent():
    place = hr.Axis.from_frame("place", PLACES, ["county", "town"])
    plan = plain_plan(hr.Tree([place]), budget=hr.Rho(1))
    counts = all_leaves(plan.tree, np.arange(300, 306))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    pairs = pairs_of_levels(release.content, *NESTED[0])
    assert not pairs.covariance.any()
    found = release.ratio(*NESTED[0])
    towns = release.level("town")
    assert found["count"].equals(towns["count"])
    several = found.filter(pl.col("town") != "r1")
    assert (several["low"] < several["ratio"]).all()
    assert (several["ratio"] < several["high"]).all()


@pytest.mark.parametrize("kind", ["chain", "cube", "spine cube"])
def test_shares_along_two_axes_have_the_widest_sets(kind):
    release = made(kind)
    pairs = pairs_of_levels(release.content, {"place": "town", "age": "band"}, {})
    assert np.isnan(pairs.covariance).all()
    wide = release.ratio({"place": "town", "age": "band"}, {})
    dense = Dense(release)
    first, all_of_them = dense.sums(pairs.labels), np.ones(len(dense.x))
    covariance = first @ dense.covariance @ all_of_them
    known = replace(pairs, covariance=covariance)
    narrow = known.ratios(Confidence())
    assert (wide["low"] <= narrow["low"] + 1e-12).all()
    assert (narrow["high"] <= wide["high"] + 1e-12).all()


def test_areas_that_are_too_large_have_the_widest_sets(monkeypatch):
    release = made("chain")
    known = release.ratio(*NESTED[0])
    monkeypatch.setattr(ratios, "MOST_MEMBERS", 3)
    wide = release.ratio(*NESTED[0])
    assert wide.select("county", "town", "count", "of", "ratio").equals(
        known.select("county", "town", "count", "of", "ratio")
    )
    assert (wide["high"] - wide["low"] >= known["high"] - known["low"]).all()
    assert wide["high"].sum() - wide["low"].sum() > known["high"].sum() - known["low"].sum()


@pytest.mark.parametrize("source", ["frame", "file"])
def test_a_rate_is_a_count_and_its_interval_by_a_public_number(source, tmp_path):
    release = made("cube")
    public = pl.DataFrame({"town": PLACES["town"], "people": [50.5, 100, 150, 200, 250, 300]})
    given = public
    if source == "file":
        given = tmp_path / "people.csv"
        public.write_csv(given)
    found = release.ratio({"place": "town", "age": "band"}, given)
    counts = release.cuboid(place="town", age="band").join(public, on="town", how="left")
    for name, column in {"ratio": "count", "low": "low", "high": "high"}.items():
        assert np.allclose(found[name], counts[column] / counts["people"])
    areas = pl.DataFrame({"area": ["a", "b", "c"], "size": [10, 20, 40]})
    rates = release.ratio(None, areas, areas=TOWNS)
    assert np.allclose(rates["high"] * areas["size"], release.areas(TOWNS)["high"])


def test_at_once_sets_are_wider_and_a_released_ratio_outside_them_is_contradicted():
    release = made("chain")
    each, at_once = (
        release.ratio(*NESTED[2], confidence=Confidence(0.95, simultaneous=both))
        for both in (False, True)
    )
    assert (at_once["low"] <= each["low"]).all()
    assert (at_once["high"] >= each["high"]).all()
    assert not each["contradicted"].any()
    pairs = pairs_of_levels(release.content, *NESTED[0])
    moved = ratios.Side(
        pairs.first.counts + 200, pairs.first.estimate, pairs.first.variance, pairs.first.errors
    )
    shifted = replace(pairs, first=moved)
    assert shifted.ratios(Confidence())["contradicted"].sum() >= 4


REFUSED = {
    "finer": (({"place": "county"}, {"place": "town"}), {}, "tells more than the numerator"),
    "no levels": (("a", "b"), {}, "name the levels of the numerator"),
    "no denominator": (({"place": "town"},), {}, "name the levels of the denominator"),
    "levels beside areas": (({"age": "band"}, "a"), {"areas": TOWNS}, "are codes of areas"),
    "no area": (("a", "d"), {"areas": TOWNS}, "no area is called 'd'"),
    "no axis": (({"plaec": "town"}, {}), {}, "did you mean 'place'"),
    "no number": (({"place": "town"}, pl.DataFrame({"town": ["p1"]})), {}, "and one of numbers"),
    "two numbers": (
        ({"place": "town"}, pl.DataFrame({"town": ["p1"], "a": [1], "b": [2]})),
        {},
        "and one of numbers",
    ),
    "a number of 0": (
        ({"place": "county"}, pl.DataFrame({"county": ["p", "q", "r"], "a": [1, 0, 3]})),
        {},
        "no number above 0 for 1 of 3 rows, such as that of q",
    ),
    "twice": (
        ({"place": "county"}, pl.DataFrame({"county": ["p", "p", "q", "r"], "a": [1, 2, 3, 4]})),
        {},
        "several rows for one county",
    ),
    "no finite number": (
        ({"place": "county"}, pl.DataFrame({"county": ["p", "q", "r"], "a": ["nan", "inf", "3"]})),
        {},
        "no number above 0 for 2 of 3 rows, such as that of p",
    ),
    "missing": (
        ({"place": "county"}, pl.DataFrame({"county": ["p", "q"], "a": [1, 2]})),
        {},
        "no number above 0 for 1 of 3 rows, such as that of r",
    ),
    "a confidence": (({"place": "town"}, {}), {"confidence": 0.9}, "a confidence is Confidence"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_ratio_is_refused(name):
    given, more, message = REFUSED[name]
    with pytest.raises(hr.HedgerowError, match=message):
        made("chain").ratio(*given, **more)


def test_a_difference_of_nothing_and_itself_has_no_error():
    found = made("cube").difference("a", "a", TOWNS)
    assert found.select("count", "standard_error", "low", "high").row(0) == (0, 0.0, 0, 0)


FACTORED = {
    "chain": ("place.town", {"measure": hr.All()}),
    "cube": ("place.town × age.band", WORKLOADS["cube"]),
    "named": (
        "place.town × age.age",
        {"workload": hr.Cuboids(["place.town × age.age", "place.county"])},
    ),
}


@pytest.mark.parametrize("more", [{}, FIXED, "public level"], ids=["measured", "total", "level"])
@pytest.mark.parametrize("kind", FACTORED)
def test_the_covariance_of_a_cuboid_is_that_of_dense_least_squares(kind, more):
    if more == "public level":
        more = FIXED | {"invariants": [hr.Invariant("place", "county")]}
    level, options = FACTORED[kind]
    tree = hr.Tree([hr.Axis.from_frame("place", PLACES, ["county", "town"])])
    if kind == "chain":
        level = "town"
    else:
        tree = hr.Tree([*tree.axes, hr.Axis.from_frame("age", AGES, ["band", "age"])])
    plan = plain_plan(tree, budget=hr.Rho("1/40"), **options, **more)
    counts = all_leaves(tree, np.arange(30, 30 + tree.leaves))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(3))
    cells, factors = release.covariance(level)
    dense = Dense(release)
    weights = dense.sums(cells)
    assert np.allclose(factors.dense(), weights @ dense.covariance @ weights.T, atol=1e-7)
    assert np.allclose(cells["estimate"], weights @ dense.x, rtol=1e-7, atol=1e-6)
    x = np.arange(2.0 * len(cells)).reshape(-1, 2)
    assert np.allclose(factors.times(x), factors.dense() @ x)
    assert np.allclose(
        np.sqrt(np.diag(factors.dense()).clip(0)),
        release.level(level, all=True)["standard_error"],
        atol=1e-6,
    )


def test_a_covariance_without_sparse_factors_is_refused_with_the_way_to_draws():
    release = made("spine")
    with pytest.raises(hr.ReleaseError, match=r"ask for draws of its errors: release\.draws\("):
        release.covariance(FINEST)
    assert release.draws(FINEST, 3).columns[-1] == "error_3"


def slope_errors(plan, seeds):
    """Of a regression on a county's own number: slopes' errors, and what three ways say of them.

    The true counts follow the line exactly, so that noise is all the error there is.
    """
    tree, x = plan.tree, np.repeat([0.0, 1.0, 2.0, 3.0], 6)
    counts = all_leaves(tree, (100 + 50 * x).astype(np.int64))
    design = np.stack([np.ones(24), x], axis=1)
    solve = np.linalg.inv(design.T @ design) @ design.T
    for seed in seeds:
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        cells, factors = release.covariance("town")
        y = cells["estimate"].to_numpy()
        slope, residual = solve[1] @ y, y - design @ (solve @ y)
        naive = np.sqrt(residual @ residual / 22 * (solve @ solve.T)[1, 1])
        exact = np.sqrt(solve[1] @ factors.times(solve[1]))
        errors = release.draws("town", 100, seed=seed).select(pl.col("^error_.*$")).to_numpy()
        yield slope - 50, naive, exact, (solve[1] @ errors).std()


def test_the_slope_of_a_regression_is_covered_by_the_covariance_and_by_draws_and_not_without():
    """Of 100 slopes 95 % are within 1.96 standard errors; α = 1e-6: 82 to 100 (binomial).

    Towns' errors add up to their county's, which is told more surely by its own noisy counts: the
    usual standard error of a slope on what counties have is several times too wide.
    """
    plan = plain_plan(
        hr.Tree(TREE.axes[:1]), budget=hr.Rho("1/8"), measure=hr.All(),
        allocation=hr.Shares(["1/10", "4/5", "1/10"]),
    )  # fmt: skip
    error, naive, exact, drawn = np.array(list(slope_errors(plan, range(100)))).T
    assert 82 <= (np.abs(error) <= 1.96 * exact).sum() < 100
    assert 82 <= (np.abs(error) <= 1.96 * drawn).sum() < 100
    assert (np.abs(error) <= 1.96 * naive).all()
    assert np.median(naive / exact) > 2


def test_simultaneous_sets_hold_at_once_over_all_cells_and_not_those_that_are_listed():
    """Nearly all towns are empty: noise lists some. 40 releases; α = 1e-6: at most 10 may miss."""
    tree = hr.Tree([hr.Axis.from_frame(
        "place", {"town": [f"t{i:03}" for i in range(600)], "county": ["c"] * 600},
        ["county", "town"],
    )])  # fmt: skip
    plan = plain_plan(tree, budget=hr.Rho("1/8"), measure=hr.All())
    counts = all_leaves(tree, np.array([5000, 3000] + [0] * 598))
    missed = 0
    at_once = Confidence(0.95, simultaneous=True)
    for seed in range(40):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        found = release.ratio({"place": "town"}, {"place": "county"}, confidence=at_once)
        true = found["town"].replace_strict({"t000": 5 / 8, "t001": 3 / 8}, default=0.0)
        missed += not ((found["low"] <= true + 1e-12) & (true <= found["high"] + 1e-12)).all()
        assert not found["contradicted"].any()
    assert missed <= 10


@pytest.mark.parametrize("kind", ["chain", "cube"])
def test_a_difference_of_public_counts_is_exact(kind):
    towns = {"town": PLACES["town"], "side": ["x", "x", "x", "y", "y", "z"]}
    fixed = [hr.Invariant("place", "county")]
    tree = hr.Tree([hr.Axis.from_frame("place", PLACES, ["county", "town"])])
    if kind == "cube":
        tree = hr.Tree([*tree.axes, hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, ["sex"])])
    more = {**WORKLOADS[kind], **FIXED, "invariants": fixed}
    plan = plain_plan(tree, budget=hr.Rho("1/7"), **more)
    counts = all_leaves(tree, np.arange(30, 30 + tree.leaves) * 37 % 101)
    for seed in range(8):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        found = release.difference("x", "y", towns)
        count = found["count"][0]
        assert found.select("low", "high", "contradicted").row(0) == (count, count, False)


def test_errors_that_nearly_cancel_move_in_steps():
    """All towns but one, of all: its error is nearly that of the whole, apart in whole steps.

    30 releases of 60 towns, whose noise has a variance of 1: of 1,800 sets that depend on one
    another through the total alone at least 93 % hold (α = 1e-4 of independent ones).
    """
    tree = hr.Tree(
        [hr.Axis.from_frame("place", {"town": [f"t{i:02}" for i in range(60)]}, ["town"])]
    )
    plan = plain_plan(tree, budget=hr.Rho("1/2"), measure=hr.All(),
                      allocation=hr.Shares(["1/1000", "999/1000"]))  # fmt: skip
    counts = all_leaves(tree, np.full(60, 500))
    towns = tree.axes[0].labels[0].to_list()
    others = [(f"but {one}", other) for one in towns for other in towns if other != one]
    areas = {"area": [a for a, _ in others], "town": [t for _, t in others]}
    lookup = Lookup.of(tree, areas)
    held = []
    for seed in range(30):
        release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
        pairs = pairs_of_areas(release.content, {}, lookup, area_numbers(lookup, None, None))
        low, high, _ = pairs.joint(Confidence()).sets(1.0)
        held.append(((low <= 59 / 60) & (high >= 59 / 60)).mean())
    assert np.mean(held) > 0.93


def test_codes_are_never_overwritten_by_figures():
    axis = hr.Axis.from_frame("place", {"of": ["a", "b"], "town": ["a1", "b1"]}, ["of", "town"])
    plan = plain_plan(hr.Tree([axis]), budget=hr.Rho(1), measure=hr.All())
    counts = all_leaves(plan.tree, np.array([50, 60]))
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(1))
    public = pl.DataFrame({"town": ["a1", "b1"], "people": [100, 200]})
    for denominator in ({}, public):
        with pytest.raises(hr.TableError, match="a column of codes is called 'of'"):
            release.ratio({"place": "town"}, denominator)


def test_draws_of_two_releases_differ_and_a_seed_is_a_whole_number():
    one, other = (made("chain", budget=hr.Rho(rho)) for rho in ("1/40", "1/41"))
    finest = one.plan.tree.name_of(one.plan.levels[2])
    assert one.draws(finest, 2).equals(one.draws(finest, 2, seed=0))
    errors = (release.draws(finest, 1)["error_1"].to_numpy() for release in (one, other))
    assert not np.allclose(*errors, rtol=0.05)
    for seed in ("x", 1.5, -1):
        with pytest.raises(hr.ReleaseError, match="a seed"):
            one.draws(finest, 2, seed=seed)


@pytest.mark.parametrize(
    "pair", [NESTED[2], ({"place": "town", "age": "age", "sex": "sex"}, {"place": "county"})]
)
def test_cells_without_records_have_shares_on_demand(pair):
    release = made("chain", budget=hr.Rho("1/4000"))
    listed, every = (release.ratio(*pair, all=both) for both in (False, True))
    assert len(listed) < len(every)
    there = every.filter(pl.col("count") > 0).drop("contradicted")
    assert there.equals(listed.drop("contradicted"))


def test_cells_that_are_not_listed_have_no_share_of_what_is_no_table_of_the_plan():
    """Their denominators may not be listed, and no other one stands for them."""
    areas = pl.DataFrame({"u": list("ppqqrr"), "v": ["p1", "p2", "q1", "q2", "r1", "r2"]})
    tree = hr.Tree([hr.Axis.from_frame(name, areas, ["u", "v"], columns=[f"{name}u", f"{name}v"])
                    for name in "ab"])  # fmt: skip
    rows = [
        {"au": u, "av": v, "bu": x, "bv": y, "n": 0 if u == x == "p" else 1000 * (i + j + 1)}
        for i, (u, v) in enumerate(areas.iter_rows())
        for j, (x, y) in enumerate(areas.iter_rows())
    ]
    table = hr.Counts.from_frame(tree, pl.DataFrame(rows), count="n")
    plan = hr.make_plan(tree, budget=hr.Rho(10), workload=hr.Cuboids(["a.v × b.v"]))
    release = hr.release(table, plan)
    pair = {"a": "v", "b": "v"}, {"a": "u", "b": "u"}
    told = release.cuboid(**pair[1]).select("au", "bu", of="count")
    listed = release.ratio(*pair)
    assert listed.join(told, on=["au", "bu"], how="left")["of_right"].equals(listed["of"])
    with pytest.raises(hr.ReleaseError, match="no table of the plan"):
        release.ratio(*pair, all=True)


def test_the_total_is_all_of_itself():
    row = made("chain").ratio({}, {}).row(0, named=True)
    assert (row["ratio"], row["low"] <= 1 <= row["high"]) == (1, True)


def test_areas_with_too_many_codes_are_refused(monkeypatch):
    monkeypatch.setattr(ratios, "MOST_HELD", 10)
    with pytest.raises(hr.ReleaseError, match="name fewer areas, or a lookup of coarser codes"):
        made("chain").ratio(areas=TOWNS)
