"""A budget is spent to the last digit, and never beyond."""

from contextlib import suppress
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from hedgerow.errors import BudgetError
from hedgerow.noise.loss import GaussianLoss, gather_losses
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.privacy import calibrate as calibrate_module
from hedgerow.privacy.accountant import accountant
from hedgerow.privacy.accountant.lattice_convolution import TooFineError
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho, optimal_epsilon, rho_within
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.use import Use
from tests.privacy.oracles_domination import dominated_delta
from tests.privacy.oracles_loss import enclosure

CHOOSING = Path(__file__).parents[2] / "docs" / "choosing.md"
AMOUNTS = st.fractions(min_value=Fraction(1, 1000), max_value=100)
SHARES = st.lists(st.integers(1, 50), min_size=1, max_size=8).map(
    lambda parts: [Fraction(part, sum(parts)) for part in parts]
)
NEIGHBOURS = st.one_of(
    st.builds(AddRemove, st.integers(1, 20)), st.builds(Replace, st.integers(1, 20))
)


def changes_below_the_total(neighbours, depths):
    return [neighbours.changes(depth) for depth in range(1, depths + 1)]


def uniform(depths):
    return [Fraction(1, depths)] * depths


@given(AMOUNTS, SHARES, NEIGHBOURS)
def test_gaussian_noise_spends_rho_exactly_in_the_given_shares(rho, shares, neighbours):
    changes = changes_below_the_total(neighbours, len(shares))
    profile = calibrate(DiscreteGaussian, Rho(rho), shares, changes)
    assert profile.rho == rho
    assert [use.rho / rho for use in profile.uses] == shares
    for depth, (use, share) in enumerate(zip(profile.uses, shares, strict=True), start=1):
        assert use.mechanism.parameter == neighbours.l2_sensitivity_squared(depth) / (
            2 * share * rho
        )


@given(AMOUNTS, SHARES, NEIGHBOURS)
def test_laplace_noise_spends_epsilon_exactly_in_the_given_shares(epsilon, shares, neighbours):
    changes = changes_below_the_total(neighbours, len(shares))
    profile = calibrate(DiscreteLaplace, Epsilon(epsilon), shares, changes)
    assert profile.pure_epsilon == epsilon
    for depth, (use, share) in enumerate(zip(profile.uses, shares, strict=True), start=1):
        assert use.mechanism.parameter == neighbours.l1_sensitivity(depth) / (share * epsilon)


@settings(max_examples=10)  # each searches for its noise twice
@given(AMOUNTS, st.integers(2, 40), SHARES, NEIGHBOURS)
def test_an_epsilon_delta_budget_is_kept(epsilon, places, shares, neighbours):
    delta = Fraction(1, 10**places)
    changes = changes_below_the_total(neighbours, len(shares))
    for is_worst in (True, False):
        budget = EpsilonDelta(epsilon, delta)
        profile = calibrate(DiscreteGaussian, budget, shares, changes, is_worst=is_worst)
        assert profile.epsilon(delta) <= float(epsilon) * (1 + 2e-9)
        tight = Fraction(profile.delta(epsilon)) <= delta
        assert tight or (not is_worst and profile.zcdp_epsilon(delta) <= float(epsilon))


@pytest.mark.parametrize(
    ("epsilon", "ours", "papers"),
    [("1", 312.15, 454.02), ("0.1", 25_323, 44_330), ("10", 4.56, 5.56)],
)
def test_six_equal_depths_get_less_noise_than_the_papers(epsilon, ours, papers):
    """One trip replaced, δ = 1e-8; the paper's σ² is that of Boninsegna et al., Lemma 2."""
    changes = changes_below_the_total(Replace(), 6)
    budget = EpsilonDelta(epsilon, "1e-8")
    profile = calibrate(DiscreteGaussian, budget, uniform(6), changes)
    (variance,) = {float(use.noise.parameter) for use in profile.uses}
    assert variance == pytest.approx(ours, rel=1e-5, abs=0.006)
    loose = 6 * 2 / (2 * float(rho_within(budget.epsilon, budget.delta)))
    assert loose == pytest.approx(papers, rel=1e-4, abs=0.006)
    slack = float(epsilon) - profile.epsilon("1e-8")
    assert -1e-8 * float(epsilon) <= slack < 1e-4


def test_a_total_that_is_not_public_takes_its_share():
    neighbours = Replace(2, exactly=False)
    changes = [neighbours.changes(depth) for depth in range(3)]
    profile = calibrate(DiscreteGaussian, Rho(1), uniform(3), changes)
    assert [use.mechanism.parameter for use in profile.uses] == [4, 8, 8]
    assert profile.rho == 1  # come or go: 1/2 + 1/4 + 1/4; move: 1/2 + 1/2


@pytest.mark.parametrize(
    ("mechanism", "budget", "way_out"),
    [
        (DiscreteGaussian, Epsilon(1), "add a delta"),
        (DiscreteLaplace, EpsilonDelta(1, "1e-8"), "leave delta out"),
        (DiscreteLaplace, Rho(1), "give epsilon"),
    ],
)
def test_a_mechanism_refuses_a_budget_that_it_cannot_spend(mechanism, budget, way_out):
    with pytest.raises(BudgetError, match=way_out):
        calibrate(mechanism, budget, [Fraction(1)], [((1,),)])


@pytest.mark.parametrize(
    ("shares", "rule"),
    [
        ([], "one a measured depth"),
        (uniform(3), "one a measured depth, got 3 for 2 depths"),
        ([Fraction(1), Fraction(0)], "above 0, got .* in place 2"),
        ([Fraction(3, 2), Fraction(-1, 2)], "above 0, got .* in place 2"),
        ([Fraction(1, 3), Fraction(1, 3)], "sum to exactly 1, got 2/3"),
        ([Fraction(2, 3), Fraction(2, 3)], "sum to exactly 1, got 4/3"),
        ([0.5, 0.5], "fractions above 0, got 0.5 in place 1"),
    ],
)
def test_shares_that_are_no_shares_are_refused(shares, rule):
    with pytest.raises(BudgetError, match=rule):
        calibrate(DiscreteGaussian, Rho(1), shares, [((1,),), ((1,),)])


def test_a_public_total_takes_no_share():
    changes = [Replace().changes(depth) for depth in range(2)]
    with pytest.raises(BudgetError, match=r"place 1 .* is public and takes no share"):
        calibrate(DiscreteGaussian, Rho(1), uniform(2), changes)


def test_an_epsilon_delta_budget_is_not_wasted():
    changes = changes_below_the_total(Replace(), 6)
    profile = calibrate(DiscreteGaussian, EpsilonDelta(1, "1e-8"), uniform(6), changes)
    assert 0.999_999 < profile.epsilon("1e-8") <= 1
    loose = calibrate(
        DiscreteGaussian, EpsilonDelta(1, "1e-8"), uniform(6), changes, is_worst=False
    )
    assert 0.999_99 < loose.epsilon("1e-8") <= 1
    more = loose.uses[0].noise.parameter / profile.uses[0].noise.parameter
    assert 1 < more < 1.01  # a norm alone costs half a percent


BUDGETS = [("1", "1e-6"), ("3", "1e-9"), ("0.4", "1e-3")]
UNEQUAL = [Fraction(1, 4), Fraction(3, 4)]


def less_by(profile, part):
    """With variances times 1 - part."""
    uses = (
        Use(DiscreteGaussian(use.noise.parameter * (1 - Fraction(part))), use.times, use.changes)
        for use in profile.uses
    )
    return Profile(tuple(uses), profile.is_worst)


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("who", [AddRemove(), Replace()], ids=str)
@pytest.mark.sweep(3)
def test_the_noise_is_the_least_that_keeps_a_budget(epsilon, delta, who):
    """By exact convolution: enough, and 0.003 % less variance is too little."""
    changes = changes_below_the_total(who, 2)
    found = calibrate(DiscreteGaussian, EpsilonDelta(epsilon, delta), UNEQUAL, changes)
    for profile, is_enough in ((found, True), (less_by(found, "3e-5"), False)):
        losses = gather_losses(
            (GaussianLoss(use.noise.parameter, 1), len(use.changes[0])) for use in profile.uses
        )
        low, high = enclosure(losses, Fraction(epsilon))
        assert (high <= float(delta)) if is_enough else (low > float(delta))


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("who", [AddRemove(3), Replace(2)], ids=str)
def test_the_noise_is_the_least_that_a_norm_asks_for(epsilon, delta, who):
    """By the theorem of `hedgerow.privacy.accountant.domination`, in 50 digits."""
    changes = changes_below_the_total(who, 2)
    budget = EpsilonDelta(epsilon, delta)
    found = calibrate(DiscreteGaussian, budget, UNEQUAL, changes, is_worst=False)
    squared = int(who.l2_sensitivity_squared(1))
    for profile, is_enough in ((found, True), (less_by(found, "3e-5"), False)):
        noises = [(use.noise.parameter, squared) for use in profile.uses]
        true = dominated_delta(noises, epsilon)
        assert (true <= float(delta)) if is_enough else (true > float(delta))


GRID = [
    (epsilon, delta, is_worst)
    for epsilon in ("1e-11", "1e-9", "1e-5", "0.01", "0.7", "12.5", "300", "1e6")
    for delta in ("1e-310", "1e-40", "1e-9", "1e-5", "0.3")
    for is_worst in (True, False)
]


@pytest.mark.parametrize(("epsilon", "delta", "is_worst"), GRID)
@pytest.mark.sweep(4)
def test_what_is_stated_is_never_more_than_what_was_asked(epsilon, delta, is_worst):
    """ε at the asked δ and δ at the asked ε, of tiny budgets and of huge ones."""
    changes = changes_below_the_total(AddRemove(), 2)
    budget = EpsilonDelta(epsilon, delta)
    profile = calibrate(DiscreteGaussian, budget, UNEQUAL, changes, is_worst=is_worst)
    stated = profile.epsilon(delta)
    assert stated <= Fraction(epsilon)
    failing = None  # where the exact profile is out of reach ε is that of ρ
    if float(delta) > accountant.SMALLEST_DELTA:
        with suppress(TooFineError):
            failing = profile.delta(epsilon)
    assert failing is None or failing <= Fraction(delta)
    assert stated >= 0.9999 * float(epsilon) or failing >= 0.99 * float(delta)
    base = 1 / (2 * profile.rho)
    again = calibrate(
        DiscreteGaussian, budget, UNEQUAL, changes, is_worst=is_worst, inverse_two_rho=base
    )
    assert again == profile


@pytest.mark.parametrize("is_worst", [True, False])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.01", "1e-9"), ("1", "1e-8"), ("12", "1e-5")])
def test_noise_that_is_said_to_keep_a_budget_has_no_larger_epsilon(epsilon, delta, is_worst):
    """At the least noise whose δ is within the budget's to the last bit, and around it."""
    budget, changes = EpsilonDelta(epsilon, delta), changes_below_the_total(AddRemove(), 2)
    bought = partial(calibrate_module._bought, DiscreteGaussian, UNEQUAL, changes, is_worst)
    least = 1 / (2 * calibrate(DiscreteGaussian, budget, UNEQUAL, changes, is_worst=is_worst).rho)
    low, high = least * (1 - Fraction("1e-4")), least
    while high - low > least / 10**17:
        middle = (low + high) / 2
        is_within = bought(1 / (2 * middle)).delta(epsilon) <= Fraction(delta)
        low, high = (low, middle) if is_within else (middle, high)
    kept = []
    for more in ("-1e-9", "0", "1e-16", "1e-12", "1e-9", "5e-8", "1e-6", "1e-4"):
        profile = bought(1 / (2 * high * (1 + Fraction(more))))
        kept.append(calibrate_module._keeps(profile, budget))
        is_within = profile.delta(epsilon) <= Fraction(delta)
        assert kept[-1] == (is_within and profile.epsilon(delta) <= Fraction(epsilon))
    assert not kept[0]
    assert kept[-1]


@pytest.mark.parametrize("is_worst", [True, False])
def test_an_epsilon_is_found_to_nine_digits_however_small_it_is(is_worst):
    """The smallest at which the certified δ is within the asked one."""
    for sigma2, delta in (("1.4e17", "1e-9"), ("1.5e11", "1e-6"), (700, "1e-9"), ("0.3", "1e-4")):
        profile = Profile((Use(DiscreteGaussian(sigma2), 1, ((1,),)),), is_worst)
        epsilon = profile.epsilon(delta)
        assert epsilon > 0
        assert profile.delta(epsilon) <= float(delta)
        assert profile.delta(epsilon * (1 - 3e-9)) > float(delta)


@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
@pytest.mark.parametrize("places", [6, 8, 10])
def test_units_of_several_records_get_less_noise_than_rho_asks_for(epsilon, places):
    """8 to 15 % less variance than by the best conversion of ρ, as the changelog says."""
    changes, delta = changes_below_the_total(Replace(3), 6), Fraction(1, 10**places)
    budget = EpsilonDelta(epsilon, delta)
    profile = calibrate(DiscreteGaussian, budget, uniform(6), changes, is_worst=False)
    loose = brentq(
        lambda rho: float(optimal_epsilon(Fraction(rho), delta)) - float(epsilon), 1e-7, 9
    )
    assert 0.845 < loose / profile.rho < 0.925


@pytest.mark.parametrize(
    ("who", "delta", "depths"),
    [
        (AddRemove(), "1e-6", 8),
        (AddRemove(), "1e-8", 13),
        (AddRemove(), "1e-10", 17),
        (Replace(), "1e-6", 4),
        (Replace(), "1e-8", 6),
        (Replace(), "1e-10", 8),
    ],
    ids=str,
)
def test_laplace_noise_of_the_same_epsilon_is_less_up_to_so_many_depths(who, delta, depths):
    """The table of docs/choosing.md: equal shares, ε = 1."""
    row = next(
        line for line in CHOOSING.read_text().splitlines() if line.startswith(f"| `{who.name}` |")
    )
    column = ["1e-6", "1e-8", "1e-10"].index(delta)
    assert int(row.split("|")[2 + column]) == depths
    for number in (depths, depths + 1):
        shares, changes = [Fraction(1, number)] * number, [who.changes(1)] * number
        gauss, laplace = (
            calibrate(kind, budget, shares, changes, is_worst=True).uses[0].noise.noise_variance
            for kind, budget in (
                (DiscreteGaussian, EpsilonDelta(1, delta)),
                (DiscreteLaplace, Epsilon(1)),
            )
        )
        assert (laplace < gauss) == (number == depths)
