"""Intervals of shares from a release's own noisy counts."""

from functools import cache

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.evaluate.funds import Above, Logarithmic, Proportional, Quadratic, Seats
from hedgerow.evaluate.share_intervals import share_intervals
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from hedgerow.release.release import read_release
from hedgerow.tables.counts import Counts
from tests.made import all_leaves, fixed_axis, plain_plan

SETTINGS = {
    "all, gaussian": (hr.Rho("1/100"), hr.AddRemove(), hr.DiscreteGaussian, hr.All()),
    "all, laplace": (hr.Epsilon("1/5"), hr.AddRemove(), hr.DiscreteLaplace, hr.All()),
    "survivors": (hr.Epsilon("1/5"), hr.AddRemove(), hr.DiscreteLaplace, hr.Survivors()),
    "public total": (hr.Rho("1/100"), hr.Replace(), hr.DiscreteGaussian, hr.Survivors()),
}


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(2)
    tree = hr.Tree([fixed_axis("geo", 20, 6)])
    values = np.ceil(rng.pareto(1.1, 120) * 40).astype(np.int64)
    return all_leaves(tree, values)


def made_release(counts, setting, seed):
    budget, neighbours, mechanism, measure = SETTINGS[setting]
    plan = plain_plan(
        counts.tree, budget=budget, neighbours=neighbours, mechanism=mechanism, measure=measure
    )
    return in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(seed))


def due(counts, found, depth, rule, amount):
    truth = counts.level(depth=depth).rename({"count": "true"})
    columns = counts.tree.columns(depth)
    joined = found.join(truth, on=columns, how="left", maintain_order="left")
    return rule.allocate(joined["true"].fill_null(0).to_numpy(), amount)


@pytest.fixture(scope="module")
def releases(counts):
    """25 releases of a setting, made once."""
    return cache(lambda setting: [made_release(counts, setting, seed) for seed in range(25)])


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("rule", [Proportional(), Logarithmic(), Quadratic()], ids=str)
@pytest.mark.sweep(4)
def test_intervals_cover_what_is_due_as_often_as_they_say(counts, releases, setting, rule):
    """25 releases of 20 areas: 500 intervals, of which 475 are to cover.

    Of 200 draws the ends are off by a chance of 1.5 % (standard error), which 500 average out.
    Below 90 % or above 99 % has a chance below 1e-6 were they independent (binomial).
    """
    covered = []
    for seed, release in enumerate(releases(setting)):
        found = share_intervals(release, "level1", rule, 1000.0, draws=200, seed=seed)
        assert len(found) == 20
        true = due(counts, found, 1, rule, 1000.0)
        covered.append((found["low"] <= true + 1e-9) & (found["high"] >= true - 1e-9))
    assert 0.9 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize("rule", [Above(150), Above(150, equally=True), Seats()], ids=str)
def test_shares_in_steps_are_covered_at_least_as_often(counts, releases, rule):
    covered = []
    for seed, release in enumerate(releases("survivors")):
        found = share_intervals(release, "level1", rule, 60, draws=500, seed=seed)
        true = due(counts, found, 1, rule, 60)
        covered.append((found["low"] <= true + 1e-9) & (found["high"] >= true - 1e-9))
    assert np.mean(covered) >= 0.9


def test_one_known_remainder_leaves_the_interval_of_the_count(counts):
    """With one huge area the shares of small ones are their counts' intervals, scaled."""
    values = counts.values.copy()
    values[0] = 10**9
    table = Counts.from_leaves(counts.tree, counts.codes, values)
    release = made_release(table, "survivors", 4)
    found = share_intervals(release, "level2", Proportional(), 1e9, draws=8000)
    both = found.join(release.level("level2"), on=release.columns["geo"], suffix="_of_count")
    small = both.filter(pl.col("count") < 1000)
    assert len(small) > 20
    for end in ("low", "high"):
        gap = (small[end] - small[f"{end}_of_count"]).abs()
        assert gap.mean() < 2.5  # records; the noise has a standard deviation of 21


def test_released_shares_are_the_rule_on_released_counts(counts):
    release = made_release(counts, "survivors", 1)
    found = share_intervals(release, "level2", Quadratic(), 50.0, draws=100)
    released = Quadratic().allocate(found["count"].to_numpy(), 50.0)
    assert found["amount"].to_numpy() == pytest.approx(released)
    assert found["share"].sum() == pytest.approx(1)
    listed = release.level("level2")
    assert found["count"].sum() == listed["count"].sum()
    assert len(found) > len(listed)  # measured areas that are not listed have rows


def test_the_seed_alone_decides(counts, tmp_path):
    release = made_release(counts, "all, gaussian", 1)
    release.write(tmp_path / "out")
    again = read_release(tmp_path / "out")
    found = [share_intervals(r, "level1", Proportional(), 1.0, draws=100) for r in (release, again)]
    assert found[0].equals(found[1])
    other = share_intervals(release, "level1", Proportional(), 1.0, draws=100, seed=1)
    assert not other.equals(found[0])


def test_public_counts_are_due_exactly(counts):
    budget = hr.Rho("1/100")
    plan = plain_plan(
        counts.tree,
        budget=budget,
        neighbours=hr.Replace(),
        invariants=[hr.Invariant("geo", "level1")],
    )
    release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(1))
    found = share_intervals(release, "level1", Proportional(), 8.0)
    assert (found["low"] == found["amount"]).all()
    assert (found["high"] == found["amount"]).all()
    below = share_intervals(release, "level2", Proportional(), 8.0, draws=100)
    assert (below["low"] < below["high"]).any()


def test_more_confidence_is_wider(counts):
    release = made_release(counts, "all, laplace", 3)
    widths = [
        (found["high"] - found["low"]).sum()
        for level in (0.5, 0.95, 0.99)
        for found in [
            share_intervals(release, "level1", Proportional(), 1.0, hr.Confidence(level), draws=800)
        ]
    ]
    assert widths == sorted(widths)
    assert widths[0] < 0.6 * widths[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"level": "tract"}, "no level is called 'tract'"),
        ({"amount": 0.0}, "above 0"),
        ({"amount": float("nan")}, "above 0"),
        ({"confidence": hr.Confidence(0.95, simultaneous=True)}, "one at a time"),
        ({"draws": 20}, "needs 40 draws"),
        ({"draws": 1 << 24}, "fill the memory"),
    ],
    ids=["level", "nothing", "nan", "simultaneous", "few", "many"],
)
def test_what_cannot_be_told_is_refused(counts, arguments, words):
    given = {"level": "level1", "rule": Proportional(), "amount": 1.0, **arguments}
    release = made_release(counts, "all, gaussian", 1)
    with pytest.raises((EstimateError, ReleaseError), match=words):
        share_intervals(release, **given)


@pytest.mark.parametrize("who", [hr.AddRemove(), hr.Replace()])
def test_running_sums_are_not_taken_for_counts(who):
    """They are weighted sums of bins: as counts they would be hundreds of times too large."""
    bins = hr.Ranges.equal_width("income", 0, 900, 9)
    plan = hr.plan_distribution(bins, budget=hr.Rho(1), neighbours=who, measure=hr.RunningSums())
    counts = all_leaves(plan.tree, np.arange(9) * 100)
    release = in_memory(counts, plan, estimator=hr.Isotonic(), bits=seeded_bits(0))
    with pytest.raises(ReleaseError, match="of bin weighted running sums were measured"):
        share_intervals(release, "bin", Proportional(), 1000.0)


def test_noise_on_many_small_areas_does_not_shift_a_quadratic_rule(counts):
    """Squared noise of small areas would outweigh the squares of all true counts.

    At most 4 misses of 14 have a chance above 1 - 1e-3 at a coverage of 95 %; without the
    correction the large area's share is nearly halved and always missed.
    """
    values = np.full(120, 10, dtype=np.int64)
    values[0] = 300
    table = Counts.from_leaves(counts.tree, counts.codes, values)
    covered = []
    for seed in range(14):
        release = made_release(table, "all, laplace", seed)
        found = share_intervals(release, "level2", Quadratic(), 1.0, draws=200, seed=seed)
        true = due(table, found, 2, Quadratic(), 1.0)[0]
        covered.append(found["low"][0] <= true <= found["high"][0])
    assert np.sum(covered) >= 10


def test_a_level_of_one_of_several_axes_is_named_as_what_it_is():
    cause = hr.Axis.from_frame("cause", pl.DataFrame({"cause": ["a", "b"]}), ["cause"])
    tree = hr.Tree([fixed_axis("place", 3, 2), cause])
    leaves = (np.arange(6, dtype=np.int32), np.zeros(6, dtype=np.int32))
    release = made_release(Counts.from_leaves(tree, leaves, np.full(6, 50)), "survivors", 1)
    with pytest.raises(
        ReleaseError, match=r"no cuboid 'level2' \(a level of axis 'place' alone\); .*: total, pl"
    ):
        share_intervals(release, "level2", Proportional(), 1.0)
