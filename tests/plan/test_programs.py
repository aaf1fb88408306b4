"""Programs (6) and (7): optimality, inverse of each other, and other solutions as judges.

Where the error is a power, as of large counts, the judge is the closed form. With a prior the error
holds (1 + Nε) exp(-Nε); there scipy's general solver finds nothing better, and slopes are equal.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from hedgerow.errors import PlanError
from hedgerow.noise.cell_error import DiscreteGaussianError, DiscreteLaplaceError, LaplaceError
from hedgerow.plan.allocation.programs import (
    LARGEST_RESIDUAL,
    LargeCounts,
    PriorCells,
    least_budgets,
    least_error,
    total_error,
)

KINDS = [LaplaceError(), DiscreteLaplaceError(), DiscreteGaussianError()]
IDS = ["laplace", "discrete-laplace", "discrete-gaussian"]


def random_levels(seed, kind, levels=4):
    """Levels that grow about tenfold each, with many empty and some very large cells."""
    rng = np.random.default_rng(seed)
    made = []
    for depth in range(levels):
        size = 10**depth + int(rng.integers(0, 5))
        counts = np.floor(rng.pareto(1.0, size) * 10 ** (4 - depth)) * (rng.random(size) < 0.7)
        values, times = np.unique(counts, return_counts=True)
        weights = times * rng.uniform(0.2, 3)
        made.append(PriorCells(kind, values, weights, float(rng.choice([1, 2, 8]))))
    return made


each_kind = pytest.mark.parametrize("kind", KINDS, ids=IDS)


@each_kind
@pytest.mark.parametrize("budget", [1e-6, 0.05, 1.0, 40.0])
def test_the_error_falls_equally_fast_with_each_level(kind, budget):
    for seed in range(5):
        levels = random_levels(seed, kind)
        found = least_error(levels, budget)
        slopes = [g.derivative(b, 1) for g, b in zip(levels, found.budgets, strict=True)]
        assert found.budgets.sum() == pytest.approx(budget, rel=1e-13)
        assert np.allclose(slopes, -found.multiplier, rtol=LARGEST_RESIDUAL, atol=0)
        assert found.residual <= LARGEST_RESIDUAL


@each_kind
@pytest.mark.parametrize("budget", [1e-6, 0.05, 1.0, 40.0])
def test_the_two_programs_are_inverse_to_each_other(kind, budget):
    for seed in range(3):
        levels = random_levels(seed, kind)
        best = least_error(levels, budget).budgets
        back = least_budgets(levels, total_error(levels, best), 1e4)
        assert back.sum() == pytest.approx(budget, rel=1e-8)
        assert np.allclose(back, best, rtol=1e-8, atol=0)
        again = least_error(levels, float(back.sum())).budgets
        assert total_error(levels, again) == pytest.approx(total_error(levels, best), rel=1e-8)


@pytest.mark.parametrize("power", [1, 2], ids=["rho", "epsilon"])
def test_without_a_prior_the_closed_form_is_met(power):
    sizes, weights = np.array([1, 23, 160, 457]), np.array([1, 2, 0.5, 1])
    sensitivities = np.array([1.0, 2, 2, 2])
    levels = [
        LargeCounts(w * n, power, d) for w, n, d in zip(weights, sizes, sensitivities, strict=True)
    ]
    expected = (weights * sizes * sensitivities**power) ** (1 / (power + 1))
    found = least_error(levels, 0.7).budgets
    assert np.allclose(found, 0.7 * expected / expected.sum(), rtol=1e-13)


@pytest.mark.parametrize("power", [1, 2], ids=["rho", "epsilon"])
def test_without_a_prior_budgets_are_those_of_the_closed_form(power):
    """Σ f b^-p is least for a sum of b where b is in proportion to f^(1/(1 + p)) (Lagrange)."""
    costs, sensitivities = np.array([1.0, 30, 160, 900]), np.array([1.0, 2, 2, 3])
    levels = [LargeCounts(cost, power, d) for cost, d in zip(costs, sensitivities, strict=True)]
    factors = costs * sensitivities**power
    parts = factors ** (1 / (1 + power))
    assert np.allclose(least_error(levels, 2.0).budgets, 2 * parts / parts.sum(), rtol=1e-6)

    scale = ((factors * parts**-power).sum() / (1.3 * factors.max())) ** (1 / power)
    ours = least_budgets(levels, 1.3 * factors.max(), 1e6)
    assert np.allclose(ours, scale * parts, rtol=1e-6)


@each_kind
def test_a_general_solver_agrees_with_a_prior(kind):
    levels = random_levels(7, kind)
    ours = least_error(levels, 1.5)
    scale = total_error(levels, ours.budgets)
    judge = minimize(
        lambda b: total_error(levels, b) / scale,
        np.full(4, 1.5 / 4),
        jac=lambda b: (
            np.array([g.derivative(x, 1) for g, x in zip(levels, b, strict=True)]) / scale
        ),
        method="SLSQP",
        bounds=[(1e-3, 1.5)] * 4,
        constraints={"type": "eq", "fun": lambda b: b.sum() - 1.5, "jac": np.ones_like},
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    assert scale <= total_error(levels, judge.x * 1.5 / judge.x.sum()) * (1 + 1e-12)
    slopes = [g.derivative(x, 1) for g, x in zip(levels, ours.budgets, strict=True)]
    assert slopes == pytest.approx([slopes[0]] * len(slopes), rel=1e-5), "no shift gains"


@given(
    st.integers(0, 10**6),
    st.sampled_from(KINDS),
    st.floats(0.01, 20),
)
def test_deeper_levels_get_no_less_with_equal_importance(seed, kind, budget):
    """Ko et al., Theorem 3: counts that add up, each level refining the one before."""
    rng = np.random.default_rng(seed)
    counts = [np.array([rng.integers(0, 3000)])]
    for _ in range(rng.integers(1, 5)):
        parts = [
            rng.multinomial(n, rng.dirichlet(np.full(rng.integers(1, 6), 0.3))) for n in counts[-1]
        ]
        counts.append(np.concatenate(parts))
    levels = [PriorCells(kind, np.sort(c).astype(float), np.ones(len(c)), 1.0) for c in counts]
    found = least_error(levels, budget).budgets
    assert (np.diff(found) >= -1e-9 * budget).all()


def test_a_common_factor_of_the_importances_changes_nothing():
    levels = random_levels(3, DiscreteLaplaceError())
    scaled = [PriorCells(g.kind, g.counts, g.weights * 1e-7, g.sensitivity) for g in levels]
    assert np.allclose(
        least_error(levels, 1.0).budgets, least_error(scaled, 1.0).budgets, rtol=1e-11
    )


def test_more_importance_means_more_budget():
    levels = random_levels(4, DiscreteGaussianError())
    first = levels[0]
    more = [PriorCells(first.kind, first.counts, first.weights * 3, first.sensitivity), *levels[1:]]
    assert least_error(more, 1.0).budgets[0] > 1.1 * least_error(levels, 1.0).budgets[0]


def test_floors_are_kept_and_the_rest_is_optimal():
    levels = random_levels(5, LaplaceError())
    free = least_budgets(levels, 5e4, 1e6)
    floors = np.array([2 * free[0], 0, 1.5 * free[2], 0.5 * free[3]])
    found = least_budgets(levels, 5e4, 1e6, floors)
    assert found[[0, 2]] == pytest.approx(floors[[0, 2]], rel=1e-15)
    assert total_error(levels, found) == pytest.approx(5e4, rel=1e-10)
    slopes = [g.derivative(b, 1) for g, b in zip(levels, found, strict=True)]
    assert slopes[1] == pytest.approx(slopes[3], rel=1e-9)
    assert slopes[0] > slopes[1]
    assert slopes[2] > slopes[1]
    assert (found[[1, 3]] < free[[1, 3]]).all()


def test_floors_beyond_the_target_leave_nothing_to_find():
    levels = random_levels(5, LaplaceError())
    floors = 3 * least_budgets(levels, 5e4, 1e6)
    assert (least_budgets(levels, 5e4, 1e6, floors) >= floors).all()
    assert least_budgets(levels[:1], 1.0, 1e6, np.array([100.0])) == [100.0]


@each_kind
@pytest.mark.parametrize("precision", [1e-7, 0.01, 0.5, 5, 100])
def test_counts_far_beyond_the_noise_are_told_from_their_limit_by_no_digit(kind, precision):
    counts = np.unique(np.floor(np.geomspace(1, 1e10, 4000)))
    weights = np.random.default_rng(0).uniform(0, 1, len(counts)) * counts**-0.2
    level = PriorCells(kind, counts, weights, 2.0)
    moments = kind.mse, kind.mse_slope, kind.mse_curvature
    for order, moment in enumerate(moments):
        exact = weights @ moment(precision, counts) / 2**order
        assert level.derivative(2 * precision, order) == pytest.approx(exact, rel=1e-12)


def test_one_level_reaches_its_target():
    (level,) = random_levels(1, DiscreteGaussianError(), levels=1)
    budget = float(least_budgets([level], 3.5, 1e4)[0])
    assert level.derivative(budget) == pytest.approx(3.5, rel=1e-12)


def test_a_target_out_of_reach_is_told_with_the_least_error():
    level = LargeCounts(10, 1, 1.0)
    with pytest.raises(PlanError, match=r"no budget up to 1,000 reaches .* there is 0\.01,"):
        least_budgets([level], 0.001, 1e3)


@pytest.mark.parametrize("costs", [(1e-300, 1e300, 1.0), (1e-300, 1.0, 1e300), (0.0, 1.0, 1.0)])
@pytest.mark.parametrize("power", [1, 2])
def test_levels_that_are_too_far_apart_have_no_optimum(costs, power):
    with pytest.raises(PlanError, match="within a factor of 1e100"):
        least_error([LargeCounts(cost, power, 1.0) for cost in costs], 1.0)


@pytest.mark.parametrize("power", [1, 2])
def test_levels_within_the_factor_have_one(power):
    found = least_error([LargeCounts(cost, power, 1.0) for cost in (1e-100, 1.0, 1e100)], 1.0)
    ratio = 1e200 ** (1 / (power + 1))
    np.testing.assert_allclose(found.budgets[2] / found.budgets[0], ratio, rtol=1e-6)
