"""The cheapest plan that is as precise as asked for."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp

import hedgerow as hr
from hedgerow.noise.loss import precision_of
from hedgerow.plan.allocation import cheapest as cheapest_module
from hedgerow.plan.allocation.allocation import Relative
from hedgerow.plan.allocation.cheapest import cheapest
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.allocation.programs import LargeCounts
from hedgerow.plan.make import read_plan
from hedgerow.plan.prior import Prior
from tests.made import fixed_axis, random_counts

TREE = hr.Tree([fixed_axis("geo", 4, 5, 6)])
PRIOR = Prior(random_counts(np.random.default_rng(0), TREE, 0.4), public=True)
KINDS = [hr.DiscreteGaussian, hr.DiscreteLaplace]


def error_by_depth(plan, prior=PRIOR):
    """The sum of the squared errors of each measured depth, from the plan's exact noise."""
    found = {}
    for t, what in enumerate(plan.depths):
        if isinstance(what, hr.Measured):
            values, times = prior.values(t, plan.tree.nodes(t))
            noise = what.mechanism
            each = noise.cell_error.mse(float(precision_of(noise)), values.astype(float))
            found[t] = float(times @ each)
    return found


def spent(plan):
    return plan.budget.rho if isinstance(plan.budget, hr.Rho) else plan.budget.epsilon


each_mechanism = pytest.mark.parametrize("mechanism", KINDS)


@each_mechanism
@pytest.mark.parametrize("target", [30, 2000, 1e6])
def test_the_target_is_kept_by_the_exact_noise_and_not_by_a_smaller_budget(mechanism, target):
    plan = cheapest(TREE, target=target, prior=PRIOR, mechanism=mechanism)
    assert sum(error_by_depth(plan).values()) <= target
    less = spent(plan) * Fraction(9999, 10_000)
    budget = hr.Rho(less) if mechanism is hr.DiscreteGaussian else hr.Epsilon(less)
    cheaper = hr.make_plan(
        TREE, budget=budget, mechanism=mechanism, allocation=Optimal(prior=PRIOR)
    )
    assert sum(error_by_depth(cheaper).values()) > target
    assert sum(error_by_depth(cheaper).values()) == pytest.approx(target, rel=1e-3)


@each_mechanism
@pytest.mark.parametrize("who", [hr.Replace(exactly=False), hr.Replace(2, exactly=False)], ids=str)
def test_a_plan_of_units_that_come_go_or_move_is_no_more_precise_than_asked(mechanism, who):
    """Its noise is that of the budgets of single depths, which no unit incurs at all of them."""
    asked = {"total": 3, "level1": 5, "level3": 20}
    plan = cheapest(TREE, per_level=asked, mechanism=mechanism, neighbours=who)
    for (t, what), rmse in zip(
        [(t, what) for t, what in enumerate(plan.depths) if isinstance(what, hr.Measured)],
        asked.values(),
        strict=True,
    ):
        assert plan.tree.cuboid_name(t) in asked
        variance = what.mechanism.noise_variance
        assert 0.97 * rmse**2 <= variance <= rmse**2 * (1 + 1e-9)


def test_the_plan_has_readable_numbers_and_can_be_read_again():
    plan = cheapest(TREE, target=2000, prior=PRIOR)
    assert plan.allocation == "cheapest"
    for share in plan.shares:
        assert len(f"{float(share * spent(plan)):.12g}".lstrip("0.")) <= 6
    assert (spent(plan) * 10**9).denominator == 1
    assert read_plan(TREE, plan.to_dict()).to_dict() == plan.to_dict()


@each_mechanism
def test_without_a_prior_all_counts_are_large(mechanism):
    plan = cheapest(TREE, target=5000, mechanism=mechanism)
    noise = sum(what.mechanism.noise_variance * TREE.nodes(t) for t, what in enumerate(plan.depths))
    assert noise <= 5000
    assert noise == pytest.approx(5000, rel=0.02)
    sizes = np.array([1, 4, 20, 120]) ** (1 / 2 if mechanism is hr.DiscreteGaussian else 1 / 3)
    assert [float(s) for s in plan.shares] == pytest.approx(sizes / sizes.sum(), rel=1e-4)


def six_digits_up(exact):
    """The least number of six digits that is no smaller than a number of 50."""
    unit = mp.mpf(10) ** (math.floor(mp.log10(exact)) - 5)
    return Fraction(int(mp.ceil(exact / unit))) * Fraction(10) ** round(mp.log10(unit))


@each_mechanism
def test_budgets_are_those_of_the_closed_form_rounded_up(mechanism):
    """One count each: a variance of 1/(2ρ) or 2/ε². Under one target ρ ∝ √n, ε ∝ ∛n."""
    is_gaussian = mechanism is hr.DiscreteGaussian
    with mp.workdps(50):
        each = [1 / (2 * mp.mpf(r) ** 2) if is_gaussian else mp.sqrt(2) / r for r in (3, 7, 11)]
        wanted = [six_digits_up(budget) for budget in each]
        assert all(w > e for w, e in zip(wanted, each, strict=True)), "rounding must be seen"
    plan = cheapest(TREE, per_level={"level1": 3, "level2": 7, "level3": 11}, mechanism=mechanism)
    assert [share * spent(plan) for share in plan.shares[1:]] == wanted
    with mp.workdps(50):
        power = 1 if is_gaussian else 2
        parts = [mp.mpf(n) ** (mp.mpf(1) / (power + 1)) for n in (1, 4, 20, 120)]
        variance = mp.mpf(1) / 2 if is_gaussian else mp.mpf(2)
        # Σ n V/b^k = τ at b = c n^(1/(k+1)): c^k = V Σ n^(1/(k+1)) / τ
        scale = (variance * mp.fsum(parts) / 7000) ** (mp.mpf(1) / power)
        wanted = [six_digits_up(scale * part) for part in parts]
    plan = cheapest(TREE, target=7000, mechanism=mechanism)
    assert [share * spent(plan) for share in plan.shares] == wanted


def test_budgets_that_miss_the_target_by_a_digit_are_raised_and_no_further():
    levels = [LargeCounts(1.0, 1, 1.0)]  # an error of 1/b
    kept = cheapest_module._rounded(levels, np.array([0.2499985]), 4.0)
    assert kept == [Fraction("0.25")]
    with pytest.raises(hr.PlanError, match="no budget was found that meets the target of 4"):
        cheapest_module._rounded(levels, np.array([0.2]), 4.0)


def test_importance_scales_the_target():
    one = cheapest(TREE, target=500, importance=[1, 2, 1, 1], prior=PRIOR)
    same = cheapest(TREE, target=1500, importance=[3, 6, 3, 3], prior=PRIOR)
    assert float(spent(one)) == pytest.approx(float(spent(same)), rel=1e-5)
    assert spent(cheapest(TREE, target=500, importance=[1, 3, 1, 1], prior=PRIOR)) > spent(one)


def test_relative_targets_are_pure_numbers():
    plan = cheapest(TREE, target=20, importance=Relative(), prior=PRIOR)
    relative = 0.0
    for t, what in enumerate(plan.depths):
        values, times = PRIOR.values(t, TREE.nodes(t))
        each = hr.DiscreteGaussian.cell_error.mse(float(precision_of(what.mechanism)), values * 1.0)
        relative += float(times @ (each / np.maximum(values, 1) ** 2))
    assert relative == pytest.approx(20, rel=1e-4)
    assert relative <= 20


@each_mechanism
def test_levels_get_the_precision_asked_of_them_alone(mechanism):
    plan = cheapest(TREE, per_level={"level1": 2, "level3": 3}, prior=PRIOR, mechanism=mechanism)
    assert [what.kind for what in plan.depths] == ["unmeasured", "measured"] * 2
    found = error_by_depth(plan)
    assert found[1] / 4 == pytest.approx(2**2, rel=1e-4)
    assert found[3] / 120 == pytest.approx(3**2, rel=1e-4)
    assert found[1] / 4 <= 2**2 * (1 + 1e-14)
    assert found[3] / 120 <= 3**2 * (1 + 1e-14)


def test_targets_of_levels_and_of_the_whole_are_kept_together():
    plan = cheapest(TREE, target=2000, per_level={"level1": 2}, prior=PRIOR)
    free = cheapest(TREE, target=2000, prior=PRIOR)
    found = error_by_depth(plan)
    assert error_by_depth(free)[1] / 4 > 2**2
    assert found[1] / 4 == pytest.approx(4, rel=1e-4)
    assert sum(found.values()) == pytest.approx(2000, rel=1e-4)
    assert sum(found.values()) <= 2000
    assert spent(free) < spent(plan)
    loose = cheapest(TREE, target=2000, per_level={"level1": 50}, prior=PRIOR)
    assert loose.to_dict() == free.to_dict()


def test_a_level_of_no_importance_may_have_a_target_of_its_own():
    unmeasured = cheapest(TREE, target=2000, importance={"level1": 0}, prior=PRIOR)
    assert unmeasured.shares[1] is None
    wanted = {"level1": 4}
    plan = cheapest(TREE, target=2000, importance={"level1": 0}, per_level=wanted, prior=PRIOR)
    assert error_by_depth(plan)[1] / 4 == pytest.approx(16, rel=1e-4)
    assert plan.depths[3].mechanism == unmeasured.depths[3].mechanism


def test_neighbours_measure_and_invariants_are_those_of_the_plan():
    who = hr.Replace(2)
    held = [hr.Invariant("geo", "level1")]
    plan = cheapest(TREE, target=5000, neighbours=who, measure=hr.All(), invariants=held)
    assert [what.kind for what in plan.depths] == ["public", "public", "measured", "measured"]
    assert (plan.neighbours, plan.measure, plan.invariants) == (who, hr.All(), tuple(held))
    noise = sum(
        what.mechanism.noise_variance * TREE.nodes(t + 2) for t, what in enumerate(plan.depths[2:])
    )
    assert noise == pytest.approx(5000, rel=1e-4)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "give a target"),
        ({"target": 0}, "above 0 and finite, got 0"),
        ({"target": -3.5}, "got -3.5"),
        ({"target": float("nan")}, "got nan"),
        ({"target": 1e-9}, "no budget up to 1e[+]06 reaches an error of 1e-09"),
        ({"per_level": {"level3": 1e-6}}, "no budget up to"),
        ({"per_level": {"level3": 9e-4, "level2": 9e-4}}, "needs a budget of 1.23"),
        ({"per_level": {"county": 3}}, r"'county': the depths .* total, level1"),
        ({"per_level": {"level1": 3}}, "a target for 'level3' too"),
        ({"target": 5, "per_level": {"level1": 0}}, "the target of 'level1' must be above 0"),
        ({"target": 5, "importance": Relative()}, "needs a prior"),
        ({"target": 5, "importance": [0, 0, 0, 0]}, "must not all be 0"),
        ({"target": 10**400}, "the target is too large"),
        ({"target": Decimal("1e-400")}, "the target is too near 0"),
        ({"target": Decimal("sNaN")}, "got sNaN"),
        ({"target": 1e200}, r"the target must be from 1e-100 to 1e[+]100, got 1e[+]200"),
        ({"target": "five"}, "the target must be a number, got 'five'"),
        ({"per_level": {"level1": [3]}}, "the target of 'level1' must be a number, got list"),
        ({"per_level": {("level1",): 3}}, "target of tuple: the depths"),
        ({"per_level": ["level1"]}, "must be a mapping of cuboids"),
        ({"per_level": {"level3": 3}, "importance": [1, 1]}, "as many importances, got 2"),
        ({"per_level": {"level3": 3}, "importance": {"level9": 1}}, "importance of 'level9'"),
    ],
    ids=[
        "none", "zero", "negative", "nan", "large-counts", "level", "together", "unknown",
        "leaves", "zero-level", "relative", "importance", "huge", "tiny", "signalling", "far",
        "text", "list", "tuple", "no-mapping", "unused-importance", "unused-name",
    ],
)  # fmt: skip
def test_targets_that_no_plan_can_keep_are_refused(options, said):
    with pytest.raises(hr.PlanError, match=said):
        cheapest(TREE, **options)
