"""Composed profiles against published figures, a peer's bracket, and their own laws."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_distribution import from_discrete_gaussian_mechanism

import hedgerow as hr
from hedgerow import DiscreteGaussian, DiscreteLaplace, EpsilonDelta
from hedgerow.errors import BudgetError
from hedgerow.privacy.accountant import accountant
from hedgerow.privacy.neighbours import Norm
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.use import Use
from tests.made import plain_plan
from tests.privacy.losses import DHC

RHO = Fraction(365, 100)


def decennial(reduction=1):
    """The 80 queries of the 2020 DHC allocation (Su, Su & Wang), noise times ``reduction``."""
    return hr.compose((hr.DiscreteGaussian(reduction * loss.sigma2), folds) for loss, folds in DHC)


def test_all_queries_of_the_2020_census_cost_less_than_stated():
    profile = decennial()
    assert profile.epsilon("1e-10") == pytest.approx(20.3247, abs=5e-5)
    assert profile.bureau_epsilon("1e-10") == pytest.approx(21.9851, abs=5e-5)


def test_the_census_could_have_had_an_eighth_less_noise():
    """12.28 % less variance at the Bureau's own ε(1e-10); the paper could prove 8.59 %."""
    stated = decennial().bureau_epsilon("1e-10")
    assert decennial(Fraction(8772, 10_000)).epsilon("1e-10") <= stated + 1e-4
    assert decennial(Fraction(8771, 10_000)).epsilon("1e-10") > stated


@pytest.mark.parametrize(
    ("name", "share", "sigma2", "reduced"),
    [
        ("US", 20, 68.49, 54.19),
        ("State", 274, 5.00, 4.25),
        ("County", 85, 16.12, 13.28),
        ("PEPG", 131, 10.46, 8.72),
        ("Tract subset", 238, 5.76, 4.87),
        ("Optimized block group", 118, 11.61, 9.65),
        ("Block", 3, 456.62, 343.27),
    ],
)
def test_table_1_of_su_su_and_wang(name, share, sigma2, reduced):
    unrounded = 10 / (2 * Fraction(share, 1000) * RHO)
    assert round(float(unrounded), 2) == sigma2, name
    stated = hr.compose([(hr.DiscreteGaussian(unrounded), 10)]).bureau_epsilon("1e-11")

    def costs(variance):
        exact = Fraction(str(variance))
        return hr.compose([(hr.DiscreteGaussian(exact), 10)]).epsilon("1e-11")

    assert costs(round(reduced + 0.005, 4)) <= stated < costs(round(reduced - 0.006, 4))


@pytest.mark.parametrize(
    ("delta", "ours", "bureau"), [("1e-11", 10.13, 11.07), ("1e-5", 6.57, 7.79)]
)
def test_the_state_level_of_the_census(delta, ours, bureau):
    state = hr.compose([(hr.DiscreteGaussian(10 / (2 * Fraction(274, 1000) * RHO)), 10)])
    assert round(state.epsilon(delta), 2) == ours
    assert round(state.bureau_epsilon(delta), 2) == bureau


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_the_exact_delta_lies_in_the_peers_bracket(epsilon):
    """Google's dp-accounting, pessimistic and optimistic, connect-the-dots."""

    def bracket(pessimistic):
        parts = [
            from_discrete_gaussian_mechanism(
                math.sqrt(s), pessimistic_estimate=pessimistic, value_discretization_interval=1e-3
            ).self_compose(n)
            for s, n in ((5, 10), (Fraction(37, 3), 4))
        ]
        return parts[0].compose(parts[1]).get_delta_for_epsilon(epsilon)

    profile = hr.compose([(hr.DiscreteGaussian(5), 10), (hr.DiscreteGaussian("37/3"), 4)])
    low, high = profile.delta_bounds(epsilon)
    assert bracket(pessimistic=False) * (1 - 1e-9) <= low <= high
    assert high <= bracket(pessimistic=True) * (1 + 1e-9)


def test_epsilon_and_delta_are_inverse_and_on_the_private_side():
    profile = hr.compose(
        [
            (hr.DiscreteGaussian("7/3"), 3),
            (hr.DiscreteLaplace(4), 5, 2),
            (hr.EpsilonDelta("1/2", "1e-9"), 2),
        ]
    )
    for delta in ("1e-3", "1e-6", "2.1e-9"):
        epsilon = profile.epsilon(delta)
        assert Fraction(profile.delta(epsilon)) <= Fraction(delta)
        assert Fraction(profile.delta(epsilon * (1 - 1e-7))) > Fraction(delta)
    assert profile.epsilon("1e-9") == math.inf, "the guarantees alone may fail more often"
    assert profile.rho is None


def test_a_pure_guarantee_is_never_stated_worse_than_it_is():
    profile = hr.compose([(hr.Epsilon("1/10"), 50)])
    assert profile.pure_epsilon == 5
    assert profile.epsilon("1e-6") < 5
    assert profile.delta(5) == 0


def test_a_shift_costs_what_its_square_says_and_times_add():
    one = hr.compose([(hr.DiscreteGaussian(10), 3, 2)])
    assert one.rho == 3 * Fraction(4, 20)
    again = hr.compose([(hr.DiscreteGaussian(10), 1, -2), (hr.DiscreteGaussian(10), 2, 2)])
    assert again.epsilon("1e-6") == one.epsilon("1e-6")


def test_the_trade_off_curve_is_convex_and_agrees_with_the_profile():
    for profile in (
        hr.compose([(hr.DiscreteGaussian(5), 10)]),
        hr.compose([(hr.DiscreteGaussian("7/3"), 4), (hr.DiscreteGaussian("11/5"), 3)]),
    ):
        alphas = [i / 40 for i in range(41)]
        curve = [profile.tradeoff(alpha) for alpha in alphas]
        assert all(t <= 1 - a + 1e-12 for a, t in zip(alphas, curve, strict=True))
        assert all(
            2 * b <= a + c + 1e-9 for a, b, c in zip(curve, curve[1:], curve[2:], strict=False)
        )
        for epsilon in (0.5, 2.0):
            supported = 1 - min(
                t + math.exp(epsilon) * a for a, t in zip(alphas, curve, strict=True)
            )
            assert supported <= profile.delta(epsilon) + 1e-9


def test_the_whole_curve_lies_close_below_its_points():
    profile = hr.compose([(hr.DiscreteGaussian(5), 10)])
    alphas = [0.0, 0.001, 0.05, 0.3, 0.9, 1.0]
    for alpha, low in zip(alphas, profile.tradeoff_curve(alphas), strict=True):
        assert low <= profile.tradeoff(alpha) + 1e-12
        assert low >= profile.tradeoff(alpha) - 2e-3


def test_the_height_of_a_line_is_rounded_down():
    random = np.random.default_rng(1)
    for epsilon, delta, alpha in random.uniform([-3, 0, 0], [3, 0.1, 1], (2_000, 3)).tolist():
        with mpmath.workdps(40):
            true = 1 - mpmath.mpf(delta) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(alpha)
            assert accountant.height(epsilon, delta, alpha) <= true
            assert accountant.height(epsilon, delta, alpha) >= true - 5e-14


def test_both_ways_to_the_trade_off_curve_agree(monkeypatch):
    profile = hr.compose([(hr.DiscreteGaussian("7/3"), 4), (hr.DiscreteGaussian("11/5"), 3)])
    for alpha in (0.01, 0.2, 0.6):
        low, high = accountant.lattice_tradeoff_bounds(profile.losses[0], alpha)
        with monkeypatch.context() as patch:
            patch.setattr(accountant, "LARGEST_CELLS", 0)
            accountant.tradeoff_below.cache_clear()
            by_duality = profile.tradeoff(alpha)
        accountant.tradeoff_below.cache_clear()
        assert high - 1e-7 <= by_duality <= high
        assert profile.tradeoff(alpha) == low


def test_more_than_one_record_a_unit_is_bounded_by_a_continuous_gaussian():
    tree = hr.Tree([hr.Axis.from_frame("geo", {"area": ["a", "b"]}, ["area"])])
    plan = plain_plan(tree, budget=hr.EpsilonDelta(1, "1e-8"), neighbours=hr.AddRemove(3))
    bounded = plan.guarantee
    assert not bounded.is_worst
    assert bounded.epsilon("1e-8") <= 1 < 0.97 * bounded.zcdp_epsilon("1e-8")
    exact = Profile(bounded.uses)  # all three records in one node: the worst, or nearly so
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        low, high = bounded.delta_bounds(epsilon)
        assert low == 0
        assert exact.delta_bounds(epsilon)[0] <= high == bounded.delta(epsilon)
        assert high <= exact.delta(epsilon) * 1.1
    alphas = [0.0, 0.05, 0.3, 0.9, 1.0]
    for alpha, point in zip(alphas, bounded.tradeoff_curve(alphas), strict=True):
        assert point <= bounded.tradeoff(alpha) + 1e-9
        assert bounded.tradeoff(alpha) <= exact.tradeoff(alpha) + 1e-9
        assert bounded.tradeoff(alpha) >= exact.tradeoff(alpha) - 0.002
    with pytest.raises(BudgetError, match=r"alpha must be in \[0, 1\], got 2"):
        bounded.tradeoff(2)


def test_pure_noise_of_units_of_many_records_composes_by_its_pairs():
    """Better than the sum of ε at a δ; nothing is left above that sum."""
    profile = Profile((Use(DiscreteLaplace(30), 12, ((3, -3),)),), is_worst=False)
    assert profile.pure_epsilon == Fraction(12, 5)
    assert profile.delta("2.41") == 0
    assert profile.epsilon("1e-3") < 2.2
    assert profile.epsilon("1e-12") <= 2.4


def test_running_sums_beside_another_guarantee_have_an_epsilon():
    sums = Use(DiscreteGaussian(40_000), 1, (Norm(37_803),))
    both = Profile((sums, Use(EpsilonDelta("1/2", "1e-9"), 1, ((1,),))), is_worst=False)
    alone = Profile((sums,), is_worst=False)
    assert both.rho is None
    assert alone.epsilon("1e-6") < both.epsilon("1e-6") <= alone.epsilon("9.98e-7") + 0.5
    assert math.isinf(both.epsilon("1e-10"))


def test_noise_that_is_too_small_for_the_bound_is_priced_by_rho():
    tiny = Profile((Use(DiscreteGaussian("1/5"), 1, (Norm(2),)),), is_worst=False)
    assert tiny.domination.delta(40) == 1
    epsilon = tiny.epsilon("1e-6")
    assert epsilon == tiny.zcdp_epsilon("1e-6")
    assert tiny.delta(epsilon) == pytest.approx(1e-6, rel=1e-9)


@pytest.mark.parametrize("sigma2", ["1/5", "3.8", 30, 3_000])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12"])
def test_a_bound_and_its_questions_agree(sigma2, delta):
    """ε(δ), δ(ε) and T(α) are of one promise, whichever bound is the better one."""
    bounded = Profile((Use(DiscreteGaussian(sigma2), 2, ((2, -2),)),), is_worst=False)
    epsilon = bounded.epsilon(delta)
    assert bounded.delta(epsilon) <= float(delta) * (1 + 1e-9)
    if epsilon > 0:
        assert bounded.delta(epsilon * (1 - 1e-6)) > float(delta) * (1 - 1e-5)
    line = 1 - float(delta) * (1 + 1e-9) - math.exp(epsilon) * 0.01
    assert bounded.tradeoff(0.01) >= line - 1e-9


def test_what_is_out_of_reach_is_answered_from_rho():
    fine = hr.compose(
        [
            (hr.DiscreteLaplace("1.1234567891"), 3),
            (hr.DiscreteLaplace("2.7654321123"), 2),
            (hr.DiscreteGaussian("3.1415926"), 2),
        ]
    )
    assert fine.epsilon("1e-10") <= fine.zcdp_epsilon("1e-10")
    plain = hr.compose([(hr.DiscreteGaussian(5), 10)])
    assert plain.epsilon("1e-400") == plain.zcdp_epsilon("1e-400")
    tree = hr.Tree([hr.Axis.from_frame("geo", {"area": ["a", "b"]}, ["area"])])
    plan = plain_plan(tree, budget=hr.EpsilonDelta(1, "1e-310"))
    assert plan.guarantee.zcdp_epsilon("1e-310") <= 1


def test_statements_of_odd_compositions_are_sentences():
    guarantee = hr.compose([(hr.EpsilonDelta(1, "1e-6"), 1)])
    assert guarantee.statement() == (
        "The composition has neither a ρ nor a pure ε; ask for ε at a δ."
    )
    assert guarantee.statement("1e-10") == ("Used together, they satisfy no ε at δ = 1e-10.")


@pytest.mark.parametrize(
    ("uses", "message"),
    [
        ([], "no mechanisms promises nothing"),
        (
            [(hr.DiscreteGaussian(1), -1)],
            "got -1; a mechanism is used at least once",
        ),
        ([(hr.DiscreteGaussian(1), 0)], "of at least 1, got 0"),
        ([(hr.DiscreteGaussian(1), 1, 0)], "other than 0"),
        ([(hr.DiscreteGaussian(1), 1, 0.5)], "whole numbers"),
        ([(hr.Epsilon(1), 1, 2)], "speaks of one unit already"),
        ([hr.DiscreteGaussian(1)], "a use is"),
        ([("gauss", 1)], "no mechanism and no guarantee"),
    ],
)
def test_a_composition_that_is_none_is_refused(uses, message):
    with pytest.raises(BudgetError, match=message):
        hr.compose(uses)


@pytest.mark.parametrize("question", [math.nan, math.inf, "much"])
def test_an_epsilon_that_is_no_number_is_refused(question):
    with pytest.raises(BudgetError):
        hr.compose([(hr.DiscreteGaussian(1), 1)]).delta(question)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, math.nan])
def test_an_error_probability_that_is_none_is_refused(alpha):
    with pytest.raises(BudgetError, match="alpha must be in"):
        hr.compose([(hr.DiscreteGaussian(1), 1)]).tradeoff(alpha)
