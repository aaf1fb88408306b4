"""Sums off a chain of which survivors alone were measured: estimates, and intervals that hold."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from hedgerow.release.survivor_sums import survivor_sums
from tests.made import all_leaves, fixed_axis, plain_plan
from tests.release.contradictions import mostly_lost

OUTFLOW = {"o": "level2"}
ERRORS = ["estimate", "standard_error", "low", "high", "contradicted"]


def flows(*, regions=4, places=8, seed=3):
    """Trips between places: many within a region, few and small ones beyond, many pairs empty."""
    rng = np.random.default_rng(seed)
    axes = [fixed_axis(n, regions, places, columns=[f"{n}1", f"{n}2"]) for n in "od"]
    tree = hr.Tree(axes, ["d", "o"])
    size = rng.lognormal(0, 1, (2, regions * places))
    region = np.arange(regions * places) // places
    near = np.where(region[:, None] == region[None, :], 12.0, 1.5)
    trips = rng.poisson(near * size[0][:, None] * size[1][None, :])
    return all_leaves(tree, trips.ravel()), trips.sum(axis=1)


def made(counts, *, seeds=(0,), **options):
    """Releases of one plan, one of each seed."""
    options = {"budget": hr.Rho("1/20"), "neighbours": hr.Replace()} | options
    plan = plain_plan(counts.tree, **options)
    for bits in map(seeded_bits, seeds):
        yield in_memory(counts, plan, estimator=hr.Euclidean(), bits=bits)


def every_sum(found, truth):
    """The listed sums with their truth, by the place's number."""
    number = (found["o2"].cast(pl.Int64)).to_numpy()
    return found.with_columns(pl.Series("truth", truth[number]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"neighbours": hr.AddRemove()},
        {"budget": hr.Epsilon(3), "mechanism": hr.DiscreteLaplace},
        {"budget": hr.Rho("1/400")},
    ],
    ids=["public total", "measured total", "Laplace", "small budget"],
)
def test_intervals_of_sums_hold_as_often_as_they_say(options):
    """120 releases: 95 % in each half by size, within 4 standard errors over releases."""
    counts, truth = flows()
    held = []
    for release in made(counts, seeds=range(120), **options):
        found = every_sum(release.cuboid(**OUTFLOW), truth)
        known = found.drop_nulls("low")
        inside = known["truth"].is_between(known["low"], known["high"])
        small = known["truth"] < np.median(truth)
        held.append([(inside & each).sum() / max(1, each.sum()) for each in (small, ~small)])
        assert len(known) > 0.6 * len(found)
    held = np.array(held)
    assert (held.mean(axis=0) > 0.95 - 4 * held.std(axis=0) / np.sqrt(len(held))).all()
    assert held.mean() < 0.99


def test_standard_errors_are_those_of_the_estimates_and_no_bias_is_left():
    counts, truth = flows()
    z = []
    for release in made(counts, seeds=range(120)):
        found = every_sum(release.cuboid(**OUTFLOW), truth).drop_nulls("estimate")
        each = (found["estimate"] - found["truth"]) / found["standard_error"]
        z.append([each.mean(), (each**2).mean()])
    mean, square = np.mean(z, axis=0)
    margin = 4 * np.std(z, axis=0) / np.sqrt(len(z))
    assert abs(mean) < margin[0] + 0.05, "what was not measured is put in its place"
    assert abs(square - 1) < margin[1] + 0.05


def test_what_was_not_measured_is_put_in_its_place_where_most_of_it_belongs():
    """The largest sums lose most below counts of 0: as measured, 0.37 standard errors too low."""
    counts, truth = flows()
    largest, z = np.argsort(truth)[-4:].astype(np.int32), []
    for release in made(counts, seeds=range(60), budget=hr.Rho("1/2000")):
        codes = largest, np.zeros(4, dtype=np.int32)
        estimate, variance, _ = survivor_sums(release.content, (2, 0), codes)
        z.append(((estimate - truth[largest]) / np.sqrt(variance)).mean())
    assert abs(np.mean(z)) < 0.2


def test_sums_of_which_nothing_was_lost_are_those_of_least_squares():
    """Two depths, all released above 0: by a dense matrix, the total being public."""
    axes = [fixed_axis(n, size, columns=[n]) for n, size in (("o", 3), ("d", 4))]
    tree = hr.Tree(axes, ["d", "o"])
    counts = all_leaves(tree, np.arange(12) * 40 + 900)
    (release,) = made(counts, allocation=hr.Shares(["1/3", "2/3"]))
    found = release.cuboid(o="level1")
    cells = np.arange(12).reshape(3, 4)  # origin by destination
    measured = np.array([np.isin(cells, cells[:, d]).ravel() for d in range(4)])
    rows = np.vstack([measured, np.eye(12)]).astype(float)
    noisy = [
        release.measurements(level)["noisy_count"]
        for level in release.plan.cuboids
        if level != "total"
    ]
    leaves = release.measurements(depth=2).sort("o", "d")["noisy_count"].to_numpy()
    values = np.concatenate([noisy[0].to_numpy(), leaves])
    variance = [release.plan.depths[t].mechanism.noise_variance for t in (1, 2)]
    weights = np.repeat(1 / np.array(variance), (4, 12))
    free = np.linalg.svd(np.ones((1, 12)))[2][1:].T  # all tables with the public total
    start = np.full(12, counts.total / 12)
    seen = rows @ free
    covariance = free @ np.linalg.inv((seen.T * weights) @ seen) @ free.T
    best = start + covariance @ rows.T @ (weights * (values - rows @ start))
    sums = np.repeat(np.eye(3), 4, axis=1)
    assert np.allclose(found["estimate"], sums @ best)
    assert np.allclose(found["standard_error"] ** 2, np.diag(sums @ covariance @ sums.T))


def test_a_sum_that_may_lie_below_counts_of_0_has_neither_estimate_nor_interval():
    release = mostly_lost()
    found = release.cuboid(o="level1")
    assert found["count"].sum() == 40_000 + 4 * 58 * 2
    assert found.select(ERRORS).null_count().row(0) == (4,) * 5
    assert found.schema["contradicted"] == pl.Boolean
    codes = np.arange(4, dtype=np.int32), np.zeros(4, int)
    _, variance, allowance = survivor_sums(release.content, (1, 0), codes)
    assert (allowance > 0.5 * 1.96 * np.sqrt(variance)).all()
    assert release.cuboid(d="level1").select(ERRORS).null_count().row(0) == (0,) * 5


def single_children():
    """Flows between places, each of which has one office: the last depths are not measured."""
    axes = [fixed_axis(n, 4, 6, 1, columns=[f"{n}1", f"{n}2", f"{n}3"]) for n in "od"]
    return hr.Tree(axes, ["d", "o"]), {}


def three_axes():
    """Flows by mode: three axes in turn."""
    axes = [fixed_axis(n, 4, 6, columns=[f"{n}1", f"{n}2"]) for n in "od"]
    return hr.Tree([*axes, fixed_axis("mode", 3, columns=["mode"])], ["d", "o", "mode"]), {}


def an_unmeasured_depth():
    """Flows whose third depth is only the sum of the fourth."""
    axes = [fixed_axis(n, 4, 6, columns=[f"{n}1", f"{n}2"]) for n in "od"]
    return hr.Tree(axes, ["d", "o"]), {"allocation": hr.Shares(["1/4", "1/4", "0", "1/2"])}


def public_regions():
    """Flows whose numbers by region of destination are public."""
    axes = [fixed_axis(n, 4, 6, columns=[f"{n}1", f"{n}2"]) for n in "od"]
    return hr.Tree(axes, ["d", "o"]), {"invariants": [hr.Invariant("d", "level1")]}


@pytest.mark.parametrize("kind", [single_children, three_axes, an_unmeasured_depth, public_regions])
def test_of_any_chain_errors_are_those_of_the_estimates(kind):
    tree, options = kind()
    rng = np.random.default_rng(8)
    shape = [axis.size(axis.depth) for axis in tree.axes]
    trips = rng.poisson(rng.lognormal(-1, 2, shape))
    counts = hr.Counts.from_leaves(
        tree, tuple(np.indices(shape).reshape(len(shape), -1).astype(np.int32)), trips.ravel()
    )
    truth, z = trips.reshape(shape[0], -1).sum(axis=1), []
    for release in made(counts, seeds=range(60), **options):
        found = every_sum(release.cuboid(**OUTFLOW), truth).drop_nulls("estimate")
        each = (found["estimate"] - found["truth"]) / found["standard_error"]
        z.append([each.mean(), (each**2).mean()])
    mean, square = np.mean(z, axis=0)
    margin = 4 * np.std(z, axis=0) / np.sqrt(len(z))
    assert abs(mean) < margin[0] + 0.1
    assert abs(square - 1) < margin[1] + 0.1


def test_a_sum_that_the_public_total_tells_is_exact():
    """Two axes of one code each come first, so that either's sum is the total."""
    first = [hr.Axis.from_frame(n, {n: ["all"]}, [n]) for n in "ab"]
    tree = hr.Tree([*first, fixed_axis("geo", 5, columns=["geo"])], ["a", "b", "geo"])
    codes = (*np.zeros((2, 5), dtype=np.int32), np.arange(5, dtype=np.int32))
    counts = hr.Counts.from_leaves(tree, codes, np.array([0, 0, 1, 2, 500]))
    (release,) = made(counts, budget=hr.Rho("1/400"))
    (found,) = release.cuboid(b="b").to_dicts()
    assert [found[name] for name in ("count", "estimate", "low", "high")] == [503] * 4
    assert found["standard_error"] == 0


def test_sums_listed_because_of_noise_are_covered_too():
    """Empty sums that noise made positive: only those are listed, and 0 must not be left out."""
    axes = [fixed_axis(n, size, columns=[n]) for n, size in (("o", 40), ("d", 10))]
    tree = hr.Tree(axes, ["d", "o"])
    trips = np.zeros((40, 10), dtype=np.int64)
    trips[0] = 3000
    counts = all_leaves(tree, trips.ravel())
    share = []
    for release in made(counts, seeds=range(60)):
        found = release.cuboid(o="level1").drop_nulls("low")
        empty = found.filter(pl.col("o").cast(pl.Int64) > 0)
        share.append([(empty["low"] == 0).sum(), len(empty)])
    held, many = np.sum(share, axis=0)
    assert many > 100
    assert held / many > 0.98, "0.956 where their ends are those of any sum"
