"""What an attacker finds out: the power of the best test, and how far odds can move."""

import math
import re
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError
from hedgerow.privacy.accountant import accountant
from hedgerow.privacy.accountant.lattice_convolution import TooFineError
from hedgerow.privacy.profile import FALSE_ALARMS
from tests.privacy.test_profile import exact_law, real

MODEL = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text(encoding="utf-8")
PROFILES = {
    "one Gaussian": hr.compose([(hr.DiscreteGaussian("3"), 1)]),
    "two Gaussians": hr.compose([(hr.DiscreteGaussian("40"), 1), (hr.DiscreteGaussian("25"), 1)]),
    "Laplace": hr.compose([(hr.DiscreteLaplace("2"), 2)]),
    "both": hr.compose([(hr.DiscreteLaplace("3"), 1), (hr.DiscreteGaussian("9"), 1)]),
}


def best_power(law, alpha):
    """Neyman and Pearson: accept the largest losses until α is used up, the last one in part."""
    used = power = mpmath.mpf(0)
    for loss in sorted(law, reverse=True):
        false = law[loss] * mpmath.exp(-real(loss))
        part = min(mpmath.mpf(1), (alpha - used) / false)
        used, power = used + part * false, power + part * law[loss]
        if part < 1:
            break
    return power


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("alpha", [0.01, FALSE_ALARMS, 0.4])
def test_the_power_is_that_of_the_best_test_and_never_below(name, alpha):
    with mpmath.workdps(50):
        true = best_power(exact_law(PROFILES[name]), mpmath.mpf(alpha))
        assert true <= PROFILES[name].power(alpha) <= true + mpmath.mpf("1e-6")


def test_losses_without_a_common_unit_leave_an_attacker_as_much_as_those_with_one():
    """Of the same ρ, and nearly of the same law."""
    alike = hr.compose([(hr.DiscreteGaussian("100"), 3)])
    apart = hr.compose([(hr.DiscreteGaussian(f"{100 + k}.{10**6 + k}7"), 1) for k in (-1, 0, 1)])
    assert accountant.lattice.cells(apart.losses[0], 0.0) > accountant.LARGEST_CELLS
    for alpha in (0.01, FALSE_ALARMS, 0.5):
        assert apart.power(alpha) == pytest.approx(alike.power(alpha), abs=1e-3)


def test_a_strong_attacker_is_told_by_the_flat_lines_of_a_profile():
    """Where the best line is flatter than -1: T(α) of μ-Gaussian privacy, μ = 4."""
    profile = hr.compose([(hr.DiscreteGaussian("1/16"), 1)] * 1)
    wide = hr.compose([(hr.DiscreteGaussian("100"), 1600)])
    normal = hr.compose([(hr.DiscreteGaussian("100"), 1600), (hr.DiscreteGaussian("1e9"), 1)])
    truth = 1 - mpmath.ncdf(-mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf("0.05") - 1) - 4)
    assert wide.power() == pytest.approx(float(truth), abs=2e-4)
    line = 1 - accountant.highest_line(normal.delta, FALSE_ALARMS)
    assert line == pytest.approx(float(truth), abs=2e-4)
    assert profile.power() > 0.9


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 1000.0])
@pytest.mark.parametrize("alpha", [0.0, 1e-300, 0.01, 0.3, 0.9, 1.0])
def test_a_pure_epsilon_leaves_an_attacker_what_randomised_response_does(epsilon, alpha):
    """Neyman and Pearson: of its two answers the telling one is taken first."""
    with mpmath.workdps(50):
        told = 1 / (1 + mpmath.exp(epsilon))  # the telling answer's chance under the first table
        first = min(mpmath.mpf(1), alpha / told)
        then = max(mpmath.mpf(0), (alpha - told) / (1 - told))
        missed = 1 - (1 - told) * first - told * then
        found = accountant.pure_line(epsilon, alpha)
        assert missed - mpmath.mpf("1e-13") <= found <= max(missed, 0)


def test_where_no_worst_case_is_proved_an_attacker_finds_no_more_than_a_pure_epsilon_tells():
    tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
    plan = hr.make_plan(tree, budget=hr.Epsilon("3/2"), mechanism=hr.DiscreteLaplace,
                        neighbours=hr.AddRemove(contributions=2))  # fmt: skip
    assert not plan.guarantee.is_worst
    assert plan.guarantee.power() <= math.exp(1.5) * FALSE_ALARMS + 1e-12


def test_out_of_reach_of_all_accountants_the_power_is_that_of_rho(monkeypatch):
    profile = hr.compose([(hr.DiscreteGaussian("100"), 4)])
    near = profile.power()

    def too_fine(*_):
        raise TooFineError("too fine")

    monkeypatch.setattr(accountant, "tradeoff_below", too_fine)
    assert near < profile.power() < 2 * near


def test_where_a_tilted_law_needs_too_many_points_the_power_is_that_of_rho():
    """It failed behind the charge of a release, which then could never be finished."""
    shares = [Fraction(s) for s in ("697543/3243777", "13894/45687", "5360/11147")]
    tree = hr.Tree([hr.Ranges.equal_width("age", 0, 50, 5).axis([2, 3])])
    plan = hr.make_plan(tree, budget=hr.Rho("32.43777"), allocation=hr.Shares(shares))
    assert 0.99 < plan.guarantee.power() <= 1


@pytest.fixture(scope="module")
def documented():
    """The plan of docs/privacy.md, and the law of its loss in doubles: values and chances."""
    geography = hr.Axis.from_frame(
        "place",
        {"hospital": ["North", "North", "South"], "ward": ["North A", "North B", "South A"]},
        levels=["hospital", "ward"],
    )
    plan = hr.make_plan(hr.Tree([geography]), budget=hr.EpsilonDelta("1", "1e-8"))
    losses, chances = np.zeros(1), np.ones(1)
    for use in plan.guarantee.uses:
        variance = float(use.noise.sigma2)
        most = int(9 * variance**0.5)  # beyond it lies less than 1e-17
        x = np.arange(-most, most + 1)
        mass = np.exp(-(x**2) / (2 * variance))
        losses = np.add.outer(losses, (2 * x + 1) / (2 * variance)).ravel()
        chances = np.multiply.outer(chances, mass / mass.sum()).ravel()
    order = np.argsort(losses)
    losses, chances = losses[order], chances[order]
    return plan, losses, chances


def test_the_loss_exceeds_epsilon_as_often_as_the_docs_say_and_not_once_in_delta(documented):
    plan, losses, chances = documented
    exceeds = float(chances[losses > 1].sum()) / 1e-8
    (said,) = re.findall(r"more than e<sup>ε</sup> with a probability of (\d+) δ", MODEL)
    assert round(exceeds) == int(said) > 20
    assert float((chances * np.maximum(0, 1 - np.exp(1 - losses))).sum()) <= 1e-8
    assert plan.guarantee.epsilon("1e-8") <= 1


@pytest.mark.parametrize("delta", ["1e-2", "1e-4", "1e-6", "1e-9"])
def test_the_loss_exceeds_its_bound_with_the_stated_probability_at_most(documented, delta):
    plan, losses, chances = documented
    bound = plan.guarantee.loss_bound(delta)
    assert float(chances[losses > bound].sum()) <= float(delta)
    beyond = np.cumsum(chances[::-1])[::-1] - chances
    least = losses[beyond <= float(delta)][0]
    assert least <= bound <= min(1.2 * least, plan.guarantee.bureau_epsilon(delta))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**6)])
def test_no_loss_of_a_composition_exceeds_its_bound_more_often(name, delta):
    law, bound = exact_law(PROFILES[name]), PROFILES[name].loss_bound(delta)
    with mpmath.workdps(50):
        assert sum(p for loss, p in law.items() if real(loss) > bound) <= real(delta)


def test_a_loss_is_bounded_by_a_pure_epsilon_and_by_nothing_where_a_promise_may_fail():
    assert hr.compose([(hr.DiscreteLaplace(1), 5)]).loss_bound("1e-9") == 5
    fails = hr.compose([(hr.EpsilonDelta(1, "1e-6"), 2)])
    assert fails.loss_bound("1e-7") == math.inf
    assert 1 < fails.loss_bound("1e-4") < math.inf
    with pytest.raises(BudgetError, match="delta must be in"):
        fails.loss_bound(0)
