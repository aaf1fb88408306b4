"""Counts that their own measurements contradict: flagged, and hardly ever by chance."""

from statistics import NormalDist

import numpy as np
from scipy.stats import binom

import hedgerow as hr
from hedgerow.evaluate.funds import Proportional
from hedgerow.evaluate.share_intervals import share_intervals
from hedgerow.release.answers.questions import sums_of
from hedgerow.release.answers.sums import Sums
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.release import read_release
from tests.release.contradictions import counts_of, made, small_group, uneven

SURENESS = ["estimate", "standard_error", "low", "high", "contradicted"]


def test_a_sum_of_counts_kept_from_falling_below_0_is_flagged_and_its_estimate_stands_beside_it():
    values = small_group()
    found = made(counts_of(values)).cuboid(group="level1")
    assert found.columns == ["group", "count", *SURENESS]
    small, *large = found.to_dicts()
    assert small["count"] > 2000, "of 300 people: what this issue is about"
    assert small["count"] > small["high"]
    assert small["contradicted"] is True
    truth = values.sum(axis=0)
    for row, true in zip([small, *large], truth, strict=True):
        assert abs(row["estimate"] - true) < 4.5 * row["standard_error"]
    assert abs(small["estimate"] - 300) < abs(small["count"] - 300) / 3


def test_the_flag_is_that_of_the_intervals_that_hold_at_once():
    release = made(counts_of(small_group()), measure=hr.All())
    alone, together = hr.Confidence(0.9), hr.Confidence(0.9, simultaneous=True)
    for levels in ({"group": "level1"}, {"geo": "level2"}, {"geo": "level1", "group": "level1"}):
        every = release.cuboid(together, **levels)
        outside = (every["count"] < every["low"]) | (every["count"] > every["high"])
        assert every["contradicted"].to_list() == outside.to_list()
        assert release.cuboid(alone, **levels)["contradicted"].equals(every["contradicted"])
    assert not release.cuboid(geo="level2")["contradicted"].any()


def test_counts_of_the_tree_that_must_add_up_to_bad_ones_are_flagged():
    _, release = uneven()
    towns = release.level("level2")
    assert towns.columns == ["level1", "level2", "count", *SURENESS]
    assert towns["contradicted"].all()
    assert (towns["estimate"] == release.measurements("level2")["noisy_count"]).all(), (
        "noisy counts, as they are"
    )
    assert not release.level("level1")["contradicted"].any()
    assert release.level(depth=0).to_dicts() == [
        {"count": 9000, "estimate": 9000.0, "standard_error": 0.0, "low": 9000, "high": 9000,
         "contradicted": False}
    ]  # fmt: skip


def test_a_release_on_disk_flags_what_it_flags_in_memory(out):
    _, release = uneven()
    release.write(out)
    for depth in range(3):
        assert read_release(out).level(depth=depth).equals(release.level(depth=depth))


def test_true_counts_are_flagged_in_one_table_of_twenty_at_most():
    """200 releases; α = 1e-6: 0.14 is found as often as not. The flags are not idle either."""
    values = np.random.default_rng(3).integers(500, 3000, (40, 6))
    counts = counts_of(values)
    sums, runs = values.sum(axis=0), 200
    flagged = {"leaves": 0, "sums": 0}
    for seed in range(runs):
        release = made(counts, seed)
        leaves = release.content.nodes[release.plan.tree.cuboid(3)]
        known = CuboidErrors.of(release.plan, release.plan.tree.cuboid(3), int(values.sum()))
        told = known.contradicted(values.ravel(), leaves.estimate, leaves.variance)
        flagged["leaves"] += told.any()
        by_group = Sums(release.plan, {"group": "level1"})
        off = sums_of(release.content, by_group, hr.Confidence(simultaneous=True))
        low, high = off["low"].to_numpy(), off["high"].to_numpy()
        flagged["sums"] += ((sums < low) | (sums > high)).any()
    for name, number in flagged.items():
        assert binom.sf(number - 1, runs, 0.05) > 1e-6, name
        assert number / runs > 0.005, f"{name}: far too wide"


def test_dense_tables_have_next_to_no_flags():
    """Released counts of a dense table are nearly their estimates: nothing moves them."""
    values = np.random.default_rng(4).integers(500, 3000, (40, 6))
    counts = counts_of(values)
    for seed in range(20):
        release = made(counts, seed)
        for depth in range(4):
            assert not release.level(depth=depth)["contradicted"].any()
        assert not release.cuboid(group="level1")["contradicted"].any()


def test_the_flag_reaches_as_far_as_a_normal_quantile_over_all_cells_says():
    """Independent of the intervals: Bonferroni and Gauss, with half a record for rounding."""
    values = np.random.default_rng(5).integers(5000, 9000, (40, 6))
    release = made(counts_of(values))
    leaves = release.content.nodes[release.plan.tree.cuboid(3)]
    known = CuboidErrors.of(release.plan, release.plan.tree.cuboid(3), int(values.sum()))
    cells = values.size
    reach = NormalDist().inv_cdf(1 - 0.05 / (2 * cells)) * np.sqrt(leaves.variance)
    for step, wanted in ((-2.5, False), (2.5, True)):
        for sign in (1, -1):
            moved = np.rint(leaves.estimate + sign * (reach + step)).astype(np.int64)
            told = known.contradicted(moved, leaves.estimate, leaves.variance)
            assert told.tolist() == [wanted] * cells, (step, sign)


def test_a_tree_with_more_cells_than_a_float_holds_is_flagged_too():
    noise = hr.DiscreteGaussian(100)
    sure = hr.Confidence(simultaneous=True)
    for cells in (10**290, 10**400):
        assert sure.half_width(noise, None, cells) == noise.tail_bound(0.05 / 10**290)
        assert sure.half_width(noise, np.array([50.0]), cells)[0] > 7 * 36


def test_sums_of_survivors_that_are_too_high_are_flagged_too():
    values = small_group()
    found = made(counts_of(values), measure=hr.Survivors()).cuboid(group="level1")
    assert found.columns == ["group", "count", *SURENESS]
    small, *large = found.to_dicts()
    assert small["contradicted"] is True
    assert small["count"] > small["high"] > 300
    assert not any(row["contradicted"] for row in large)


def test_amounts_are_shared_with_the_estimates_and_flags_of_their_level():
    for counts, release, level in (
        (*uneven(), "level2"),
        (counts_of(small_group()[:100]), made(counts_of(small_group()[:100])), "geo.level2"),
    ):
        found = share_intervals(release, level, Proportional(), 100)
        listed = release.level(level)
        columns = [name for name in listed.columns if name not in ("count", *SURENESS)]
        both = found.join(listed, on=columns, suffix="_listed")
        assert len(both) == len(listed)
        assert np.allclose(both["estimate"], both["estimate_listed"])
        assert both["contradicted"].equals(both["contradicted_listed"], check_names=False)
        assert found["contradicted"].any() == (level == "level2")
        assert counts.total == release.level(depth=0)["count"].item()
