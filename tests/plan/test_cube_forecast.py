"""The forecast of a cube: variances of its estimates, by dense least squares over what is whole."""

import json
from fractions import Fraction

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.plan.forecast import forecast_legend, forecast_matrix
from hedgerow.plan.joint import shape_of_tree
from hedgerow.plan.make import read_plan
from tests.estimate.cube.dense_cubes import cuboid_sums
from tests.estimate.dense import Dense
from tests.made import fixed_tree, random_axis

NEIGHBOURS = {
    "measured": hr.AddRemove(),
    "public": hr.Replace(),
    "half": hr.Replace(exactly=False),  # the total moves by half of what the others do
}
BUDGETS = {hr.DiscreteGaussian: hr.Rho("2"), hr.DiscreteLaplace: hr.Epsilon("8")}


def uneven(rng, axes):
    return hr.Tree([random_axis(rng, f"a{i}", 2, 3) for i in range(axes)])


def two_axes(*sizes):
    """Axes a0 and a1 of even families, so many children a node at each level."""
    return fixed_tree(**{f"a{i}": each for i, each in enumerate(sizes)})


def plan_of(tree, total="public", mechanism=hr.DiscreteGaussian, **options):
    usual = {"workload": hr.Cube(), "measure": hr.All(), "allocation": hr.Uniform()}
    options = {**usual, "budget": BUDGETS[mechanism], **options}
    return hr.make_plan(tree, neighbours=NEIGHBOURS[total], mechanism=mechanism, **options)


def dense(plan):
    """The cube, its sums, what is measured, and least squares by shares, under the true noise."""
    shape, power = shape_of_tree(plan.tree), plan.mechanism.price.power
    measured = {k: w for k, w in plan.by_levels.items() if isinstance(w, hr.Measured)}
    sums = {shape.given(k): cuboid_sums(shape, shape.given(k)) for k in plan.levels}
    blocks = [
        (sums[shape.given(k)], float(what.share) ** -power, what.mechanism.noise_variance)
        for k, what in measured.items()
    ]
    if plan.public is not None:
        blocks.append((sums[shape.given(plan.public)], 0.0, 0.0))
    return shape, sums, [shape.given(k) for k in measured], Dense.of(blocks)


@pytest.mark.parametrize("mechanism", BUDGETS)
@pytest.mark.parametrize("total", NEIGHBOURS)
@pytest.mark.parametrize("seed", range(3))
def test_the_errors_of_a_cube_are_those_of_a_dense_solver(seed, total, mechanism):
    """Of narrow noise, whose true variances are no product, over one axis more than two."""
    rng = np.random.default_rng(seed)
    tree = uneven(rng, 2 + seed % 2)
    plan = plan_of(tree, total, mechanism, allocation=hr.Optimal(importance=hr.PerLevel()))
    (shape, sums, _, found), frame = dense(plan), hr.forecast(plan)
    assert [tuple(levels) for levels in frame["levels"]] == list(plan.levels)
    for levels, cells, rmse, bound in zip(
        plan.levels, frame["cells"], frame["rmse"], frame["max_95"], strict=True
    ):
        variances = found.variances_of(sums[shape.given(levels)])
        assert cells == len(variances)
        assert rmse**2 == pytest.approx(variances.mean(), rel=1e-8, abs=1e-9)
        far = bound**2 >= variances.max() - 1e-9
        assert far or plan.design.is_raw(levels)
        largest = plan.design.largest_variance(levels)
        assert largest == pytest.approx(variances.max(), rel=1e-8, abs=1e-9)
    assert frame["depth"].null_count() == len(frame)


def test_a_cuboid_that_repeats_another_has_its_errors():
    plan = plan_of(two_axes((2, 1, 3), (2,)))
    frame = hr.forecast(plan)
    rows = {tuple(row["levels"]): row for row in frame.iter_rows(named=True)}
    assert rows[2, 1]["kind"] == "unmeasured"
    for name in ("cells", "rmse", "mae"):
        assert rows[2, 1][name] == rows[1, 1][name]


def test_a_level_without_a_share_is_estimated_from_the_others():
    tree = uneven(np.random.default_rng(1), 2)
    n = [axis.depth + 1 for axis in shape_of_tree(tree).axes]
    alone = {f"a{i}": [0] * (k - 1) + [1] for i, k in enumerate(n)}
    plan = plan_of(tree, "measured", allocation=hr.Shares(alone))
    noise = plan.by_levels[plan.levels[-1]].mechanism.noise_variance
    for levels, rmse in zip(plan.levels, hr.forecast(plan)["rmse"], strict=True):
        assert rmse**2 == pytest.approx(noise * tree.leaves / tree.cells(levels))


@pytest.mark.parametrize("axis", ["a0", "a1"])
@pytest.mark.parametrize("level", ["level1", "level2"])
@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()])
def test_any_level_of_an_axis_can_be_invariant(axis, level, measure):
    tree = two_axes((2, 3), (2, 3))
    plan = plan_of(tree, measure=measure, invariants=[hr.Invariant(axis, level)])
    frame = hr.forecast(plan)
    assert (frame["rmse"].is_not_null()).all()
    assert ((frame["rmse"] == 0) == (frame["kind"] == "public")).all()


@pytest.mark.parametrize("sizes", [((4,), (2, 3)), ((2, 3), (4,)), ((4,), (5,))])
def test_an_axis_of_one_level_can_be_invariant_where_survivors_are_measured(sizes):
    tree = two_axes(*sizes)
    for axis in range(2):
        plan = plan_of(
            tree, measure=hr.Survivors(), invariants=[hr.Invariant(f"a{axis}", "level1")]
        )
        frame = hr.forecast(plan)
        assert ((frame["rmse"] == 0) == (frame["kind"] == "public")).all()


def test_an_estimate_that_is_worse_than_its_noisy_count_is_not_taken_for_it():
    """Narrow noise: weights are for nominal variances, under the true ones they may be no gain."""
    tree = two_axes((3,), (4,))
    shares = hr.Shares({"a0": ["0.9", "0.1"], "a1": ["0.9", "0.1"]})
    narrow = {"budget": hr.Epsilon(10), "allocation": shares}
    plan = plan_of(tree, "measured", hr.DiscreteLaplace, **narrow)
    total, cube = plan.by_levels[0, 0].mechanism, plan.design
    assert cube.mean_variance((0, 0)) > total.noise_variance
    assert not cube.is_raw((0, 0))
    assert hr.forecast(plan)["max_95"][0] > total.tail_bound(0.05)
    single = plan_of(tree, "measured", allocation=hr.Shares({"a0": [0, 1], "a1": [0, 1]}))
    assert single.design.is_raw(single.levels[-1])


@pytest.mark.parametrize("mechanism", BUDGETS)
@pytest.mark.parametrize("total", NEIGHBOURS)
@pytest.mark.parametrize("seed", range(6))
def test_estimates_are_raw_where_dense_least_squares_take_a_noisy_count_as_it_is(
    seed, total, mechanism
):
    """By the weights, that is, whatever the noise: a total that costs half is less noisy."""
    rng = np.random.default_rng(seed)
    tree = uneven(rng, 2)
    shape, shares = shape_of_tree(tree), {}
    for number, axis in enumerate(shape.axes):
        parts = rng.choice([0, 0, 1, 5], axis.depth) if seed else np.zeros(axis.depth, int)
        listed = [int(part) for part in parts] + [1 + int(seed > 3) * 9]
        shares[f"a{number}"] = [Fraction(part, sum(listed)) for part in listed]
    plan = plan_of(tree, total, mechanism, allocation=hr.Shares(shares))
    _, sums, measured, found = dense(plan)
    begin = 0
    for cuboid in measured:
        gain, end = sums[cuboid] @ found.gain, begin + len(sums[cuboid])
        own = np.zeros_like(gain)
        own[:, begin:end], begin = np.eye(end - begin), end
        is_raw = np.allclose(gain, own, rtol=0, atol=1e-9)
        assert plan.design.is_raw(plan.design.levels(cuboid)) == is_raw


def test_a_cube_is_printed_as_a_list_without_depths_and_as_a_matrix_of_two_axes():
    tree = fixed_tree(o=(2, 3), d=(4,))
    plan = plan_of(tree, "measured")
    frame = hr.forecast(plan)
    lines = str(plan).split("\n")
    assert lines[0].split()[:3] == ["cuboid", "cells", "RMSE"]
    rows = [line.split() for line in forecast_matrix(plan, frame).split("\n")[2:]]
    assert rows[0] == ["total", "level1"]
    assert [row[0] for row in rows[1:]] == ["total", "level1", "level2"]
    rmse = dict(zip(plan.levels, frame["rmse"], strict=True))
    assert rows[3] == ["level2", f"{rmse[2, 0]:,.4g}", f"{rmse[2, 1]:,.4g}"]
    assert all(any(" ".join(row) == " ".join(line.split()) for line in lines) for row in rows)
    chain = hr.make_plan(tree, budget=hr.Rho(1))
    assert forecast_matrix(chain, hr.forecast(chain)) == ""
    assert "RMSE by levels" not in str(chain)


def test_the_legend_says_how_near_sums_are_over_three_axes():
    """An axis of a single node takes no part: all sums are then kept exactly."""
    said = set()
    for axes, seed in [(2, 0), *((3, seed) for seed in range(4))]:
        tree = uneven(np.random.default_rng(seed), axes)
        wide = sum(axis.size(axis.depth) > 1 for axis in tree.axes)
        plan = plan_of(tree)
        legend = forecast_legend(plan, hr.forecast(plan))
        assert ("exactly and along the others nearly" in legend) == (wide == 3)
        said.add((axes, wide == 3))
    assert said == {(2, False), (3, False), (3, True)}
    chain = hr.make_plan(uneven(np.random.default_rng(1), 3), budget=hr.Rho(1))
    assert "along the others" not in forecast_legend(chain, hr.forecast(chain))


def test_a_plan_read_back_has_the_same_forecast():
    plan = plan_of(uneven(np.random.default_rng(6), 2), "half", hr.DiscreteLaplace)
    again = read_plan(plan.tree, json.loads(json.dumps(plan.to_dict())))
    assert hr.forecast(again).equals(hr.forecast(plan))
