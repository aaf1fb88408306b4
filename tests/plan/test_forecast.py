"""The forecast of a plan, against simulated least squares and against the laws of the noise."""

import json
import math
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy import optimize, stats

import hedgerow as hr
from hedgerow.estimate.tree import shapes as tree_shapes
from hedgerow.noise.envelope import LaplaceEnvelope, NormalEnvelope
from hedgerow.plan.forecast import SCHEMA, forecast, forecast_rows
from tests.made import fixed_axis, fixed_tree, plain_plan, random_tree

ERRORS = ["noise_sd", "rmse", "mae", "max_95", "false_positive_share"]


def geography(*sizes):
    return hr.Tree([fixed_axis("geo", *sizes)])


def families(tree):
    """For each step of a tree over one axis where its families begin, and the end."""
    return tree.axes[0].child_start


def drawn(rng, mechanism, shape):
    """Noise of the mechanism's law."""
    parameter = float(mechanism.parameter)
    if mechanism.name == "discrete-laplace":
        return stats.dlaplace(1 / parameter).rvs(shape, random_state=rng).astype(float)
    reach = math.ceil(12 * math.sqrt(parameter)) + 2
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * parameter))
    return rng.choice(values, shape, p=weights / weights.sum()).astype(float)


def released_errors(tree, noise, variances, *, combine):
    """Errors of least squares by two passes over the nodes, or of projection: list by depth.

    ``noise`` holds for each depth the errors of the noisy counts (runs, nodes).
    """
    starts = families(tree)
    best, spread = (
        list(noise),
        [np.full(n.shape[1], v) for n, v in zip(noise, variances, strict=True)],
    )
    if combine:
        for t in range(tree.depth - 1, -1, -1):
            sums = np.add.reduceat(best[t + 1], starts[t][:-1], axis=1)
            variance = np.add.reduceat(spread[t + 1], starts[t][:-1])
            pull = spread[t] / (spread[t] + variance)
            best[t] = best[t] + (sums - best[t]) * pull
            spread[t] = variance * pull
    final = [best[0]]
    for t in range(tree.depth):
        sums = np.add.reduceat(best[t + 1], starts[t][:-1], axis=1)
        share = spread[t + 1] / np.repeat(
            np.add.reduceat(spread[t + 1], starts[t][:-1]), np.diff(starts[t])
        )
        gap = np.repeat(final[-1] - sums, np.diff(starts[t]), axis=1)
        final.append(best[t + 1] + gap * share)
    return final


@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
@pytest.mark.parametrize(
    "what",
    [
        {"budget": hr.Rho("1/20"), "mechanism": hr.DiscreteGaussian},
        {"budget": hr.Rho(2), "mechanism": hr.DiscreteGaussian},
        {"budget": hr.Epsilon("1/2"), "mechanism": hr.DiscreteLaplace},
        {"budget": hr.Epsilon(8), "mechanism": hr.DiscreteLaplace},
    ],
    ids=["gaussian", "small-gaussian", "laplace", "small-laplace"],
)
def test_expected_errors_agree_with_simulated_estimates(what, measure):
    """RMSE within 5 %; of 2,000 runs so many (0.05 / runs) are off by more than the bound.

    Seed pinned; with about 2,000 independent errors or more a depth the RMSE's own error is 2 %.
    """
    rng = np.random.default_rng(20261121)
    tree = random_tree(rng, 1, 3, 6)
    plan = hr.make_plan(
        tree, measure=measure, allocation=hr.Shares(["0.1", "0.2", "0.3", "0.4"]), **what
    )
    frame, runs = forecast(plan), 4000
    used = [depth.mechanism for depth in plan.depths]
    noise = [drawn(rng, m, (runs, tree.nodes(t))) for t, m in enumerate(used)]
    errors = released_errors(
        tree, noise, [m.noise_variance for m in used], combine=measure == hr.All()
    )
    for t, found in enumerate(errors):
        assert frame["rmse"][t] == pytest.approx(math.sqrt((found**2).mean()), rel=0.05)
        beyond = (np.abs(found).max(axis=1) > frame["max_95"][t] + 1e-9).mean()
        assert beyond <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_the_mean_absolute_error_is_that_of_gaussian_errors():
    rng = np.random.default_rng(7)
    tree = geography(4, 5)
    plan = hr.make_plan(tree, budget=hr.Rho("1/50"), measure=hr.All())
    used = [depth.mechanism for depth in plan.depths]
    noise = [drawn(rng, m, (4000, tree.nodes(t))) for t, m in enumerate(used)]
    errors = released_errors(tree, noise, [m.noise_variance for m in used], combine=True)
    frame = forecast(plan)
    for t, found in enumerate(errors):
        assert frame["mae"][t] == pytest.approx(np.abs(found).mean(), rel=0.05)


@pytest.mark.parametrize(
    "mechanism",
    [
        hr.DiscreteLaplace("1/3"), hr.DiscreteLaplace(1), hr.DiscreteLaplace(50),
        hr.DiscreteGaussian("1/10"), hr.DiscreteGaussian(3), hr.DiscreteGaussian(5),
        hr.DiscreteGaussian(700),
    ],
    ids=str,
)  # fmt: skip
def test_false_positives_are_noise_of_at_least_one(mechanism):
    parameter = float(mechanism.parameter)
    power = 1 if mechanism.name == "discrete-laplace" else 2
    values = np.arange(1, 4000)
    weights = np.exp(-(values**power) / (power * parameter))
    exact = weights.sum() / (1 + 2 * weights.sum())
    assert (1 - mechanism.chance_of_zero) / 2 == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("chance", [0.05, 1e-3, 1e-9, 1e-200])
def test_the_chernoff_bound_of_laplace_noise_holds_for_one_term_and_for_many(chance):
    farthest = LaplaceEnvelope(1.0).farthest(chance)
    alone = math.log(1 / chance) / math.sqrt(2)  # P(|Laplace| > k sd) = exp(-k sqrt(2))
    assert alone <= farthest <= 2 * alone
    assert farthest >= -stats.norm.ppf(chance / 2)
    assert NormalEnvelope(1.0).farthest(chance) >= -stats.norm.ppf(chance / 2)


def test_the_chernoff_bound_is_the_least_over_its_parameter():
    needed = math.log(2 / 1e-4)
    x = LaplaceEnvelope(1.0).farthest(1e-4) * math.sqrt(2)
    mu = np.linspace(1e-6, 1 - 1e-6, 200_001)
    assert np.max(mu * x + np.log1p(-(mu**2))) == pytest.approx(needed, rel=1e-8)


def test_the_chernoff_bound_of_gaussian_noise_is_the_least_over_its_parameter():
    rates = np.linspace(0, 40, 400_001)
    for chance in (0.05, 1e-4, 1e-30):
        k = NormalEnvelope(1.0).farthest(chance)
        assert 2 * np.exp(np.min(rates**2 / 2 - rates * k)) == pytest.approx(chance, rel=1e-6)


def least_chernoff(needed):
    """The x at which the least e^(-μx)/(1 - μ²) over 0 < μ < 1 is e^-needed, by plain search."""

    def excess(x):
        least = optimize.minimize_scalar(
            lambda mu: -mu * x - math.log1p(-mu * mu), bounds=(1e-12, 1 - 1e-12), method="bounded",
            options={"xatol": 1e-14},
        )  # fmt: skip
        return least.fun + needed

    return optimize.brentq(excess, 0.1, needed + 20, xtol=1e-12)


@pytest.mark.parametrize(("epsilon", "sizes"), [(4, (3, 4)), (1, (3, 4)), ("1/10", (2, 5, 2))])
def test_combined_laplace_estimates_stay_within_the_least_chernoff_bound(epsilon, sizes):
    """Σ aX with Σ a²v = V: E e^{λX} <= 1/(1 - λ²b²), so x √(V b²/v) with x of the infimum."""
    tree = geography(*sizes)
    plan = hr.make_plan(
        tree,
        budget=hr.Epsilon(epsilon),
        mechanism=hr.DiscreteLaplace,
        measure=hr.All(),
        allocation=hr.Uniform(),
    )
    frame, noise = forecast(plan), plan.depths[-1].mechanism
    q, b = math.exp(-1 / float(noise.scale)), float(noise.scale)
    variance = 2 * q / (1 - q) ** 2
    for t in range(1, tree.depth + 1):
        sd = frame["rmse"][t] * math.sqrt(b**2 / variance)
        needed = math.log(2 * tree.nodes(t) / 0.05)
        assert frame["max_95"][t] == pytest.approx(sd * least_chernoff(needed), rel=1e-6)


def test_a_count_that_is_released_as_measured_has_the_exact_tail_of_its_noise():
    plan = plain_plan(geography(3, 4), budget=hr.Rho(1))
    total = plan.depths[0].mechanism
    assert forecast(plan)["max_95"][0] == total.tail_bound(0.05)
    leaves_alone = hr.Shares([0, 0, 1])
    plan = hr.make_plan(
        geography(3, 4), budget=hr.Rho(1), measure=hr.All(), allocation=leaves_alone
    )
    frame = forecast(plan)
    own = plan.depths[2].mechanism.noise_variance
    assert frame["max_95"][2] == plan.depths[2].mechanism.tail_bound(0.05 / 12)
    assert frame["rmse"].to_list() == pytest.approx([math.sqrt(k * own) for k in (12, 4, 1)])


def test_public_depths_have_no_error_and_unmeasured_ones_no_noise():
    plan = hr.make_plan(geography(3, 1, 4), budget=hr.Rho(1), neighbours=hr.Replace())
    rows = forecast(plan).to_dicts()
    assert [row["kind"] for row in rows] == ["public", "measured", "unmeasured", "measured"]
    assert [rows[0][name] for name in ERRORS] == [0.0] * 5
    assert rows[0]["share"] is rows[0]["noise"] is None
    assert rows[2]["noise_sd"] is rows[2]["false_positive_share"] is rows[2]["noise"] is None
    assert rows[2]["rmse"] == rows[1]["rmse"] < rows[1]["noise_sd"]


def test_a_skipped_depth_of_survivors_is_the_sum_of_what_is_measured_below():
    skipping = hr.Shares(["1/2", 0, "1/2"])
    plan = hr.make_plan(
        geography(3, 4), budget=hr.Rho(1), allocation=skipping, measure=hr.Survivors()
    )
    v = plan.depths[2].mechanism.noise_variance
    expected = [v, v / 9 + 4 * v * (1 - 1 / 3), v / 144 + v * (1 - 1 / 12)]
    assert forecast(plan)["rmse"].to_list() == pytest.approx(np.sqrt(expected))


def test_combining_depths_makes_every_error_smaller():
    options = {"budget": hr.Rho(1)}
    together = forecast(
        hr.make_plan(geography(3, 4, 5), measure=hr.All(), **options, allocation=hr.Uniform())
    )
    apart = forecast(
        hr.make_plan(geography(3, 4, 5), **options, allocation=hr.Uniform(), measure=hr.Survivors())
    )
    assert (together["rmse"] < apart["rmse"]).all()


def test_more_budget_makes_every_error_smaller():
    frames = [forecast(hr.make_plan(geography(3, 4), budget=hr.Rho(r))) for r in ("0.01", 1, 2)]
    for poor, rich in pairwise(frames):
        for name in ERRORS:
            assert (rich[name] <= poor[name]).all(), name
            assert rich[name][2] < poor[name][2], name


def test_a_forecast_of_trillions_of_leaves_uses_no_memory_per_leaf():
    tree = fixed_tree(**dict.fromkeys("abc", (100, 100)))
    assert tree.leaves == 10**12
    frame = forecast(hr.make_plan(tree, budget=hr.Rho(1)))
    assert frame["cells"][-1] == 10**12
    assert (frame["rmse"] > 0).all()


def test_a_tree_with_too_many_distinct_subtrees_is_shown_without_errors(monkeypatch):
    monkeypatch.setattr(tree_shapes, "MOST_SHAPES", 1)
    tree = random_tree(np.random.default_rng(4), 1, 3, 5)
    frame = forecast(hr.make_plan(tree, budget=hr.Rho(1), measure=hr.All()))
    assert frame["rmse"].null_count() == frame["max_95"].null_count() == 4
    assert (frame["noise_sd"] > 0).all()
    rows = forecast_rows(frame)
    assert rows[1][3:6] == ("", "", "")


def test_a_forecast_is_json():
    frame = forecast(hr.make_plan(geography(3, 1, 4), budget=hr.Rho(1), measure=hr.All()))
    assert json.loads(json.dumps(frame.to_dicts(), allow_nan=False)) == frame.to_dicts()
    assert frame.columns == list(SCHEMA)


def test_the_bound_is_for_the_cells_that_are_estimated_worst():
    """Only children under Survivors have their parent's error, one of many siblings nearly its own.

    Families of 1 and 9: Var = V_p and V_p/81 + v (1 - 1/9).
    """
    areas = pl.DataFrame({"a": ["x", *"yyyyyyyyy"], "b": list("0123456789")})
    tree = hr.Tree([hr.Axis.from_frame("geo", areas, ["a", "b"])])
    plan = plain_plan(tree, budget=hr.Rho("1/100"), neighbours=hr.Replace())
    v1, v2 = (depth.mechanism.noise_variance for depth in plan.depths[1:])
    above, large = v1 / 2, v1 / 2 / 81 + v2 * 8 / 9
    frame = forecast(plan)
    assert frame["rmse"][2] == pytest.approx(math.sqrt((above + 9 * large) / 10))
    assert above < large
    assert frame["max_95"][2] == pytest.approx(math.sqrt(2 * math.log(2 * 10 / 0.05) * large))
