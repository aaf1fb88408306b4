"""What one unit changes is one of a few cases: prices against all pairs of neighbouring tables.

Every pair of tables that differ in one unit is listed, and the privacy loss of all measurements of
the two is convolved atom by atom (`law`, which shares nothing with the package).
"""

import json
import math
from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement, product

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError
from hedgerow.privacy import promise as combining
from hedgerow.privacy.accountant.domination import Domination, Gaussians
from hedgerow.privacy.neighbours import Norm
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.promise import compose_profiles
from hedgerow.privacy.use import Use, read_use
from tests.made import plain_plan

AREAS = pl.DataFrame({"county": ["A", "A", "B", "B"], "tract": ["A1", "A2", "B1", "B2"]})
TREE = hr.Tree([hr.Axis.from_frame("place", AREAS, levels=["county", "tract"])])
NODES = [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]  # of each depth, the node of each leaf
AT_MOST = hr.Replace(exactly=False)
EPSILONS = ["0.01", "0.3", "0.7", "1", "1.6", "2.5"]
GAUSS = {"budget": hr.EpsilonDelta(1, "1e-6")}
LAPLACE = {"budget": hr.Epsilon(1), "mechanism": hr.DiscreteLaplace}


def change(before, after):
    """The absolute shifts of each depth, where a unit has records in these leaves before, after."""
    found = []
    for nodes in NODES:
        moved: defaultdict[int, int] = defaultdict(int)
        for leaves, sign in ((before, -1), (after, 1)):
            for leaf in leaves:
                moved[nodes[leaf]] += sign
        found.append(tuple(sorted(abs(shift) for shift in moved.values() if shift)))
    return tuple(found)


def all_changes(most):
    """Of all pairs of tables that differ in one unit of at most so many records."""
    units = [u for n in range(most + 1) for u in combinations_with_replacement(range(4), n)]
    return {change(before, after) for before, after in product(units, repeat=2)}


@cache
def loss_atoms(mechanism, shift):
    """Each ln P(x)/P(x - shift) with its chance under P, but for 1e-30 in all."""
    gauss = isinstance(mechanism, hr.DiscreteGaussian)

    def energy(x):
        return Fraction(x * x) / (2 * mechanism.sigma2) if gauss else abs(x) / mechanism.scale

    reach = 1
    while energy(reach) < 75:
        reach += 1
    mass = {x: math.exp(-energy(x)) for x in range(-reach, reach + 1)}
    total = math.fsum(mass.values())
    atoms: defaultdict[Fraction, float] = defaultdict(float)
    for x, weight in mass.items():
        atoms[energy(x - shift) - energy(x)] += weight / total
    return dict(atoms)


@cache
def law(noises, shifts):
    """Unit, least loss and chances of the loss of all measured depths together.

    Sums of positive numbers alone, so each chance is right to 1e-12 of itself.
    """
    parts = [
        loss_atoms(noise, shift)
        for noise, moved in zip(noises, shifts, strict=True)
        for shift in moved
        if noise is not None
    ]
    apart = [loss - min(part) for part in parts for loss in part]
    below = math.lcm(1, *(loss.denominator for loss in apart))
    unit = Fraction(math.gcd(*(int(loss * below) for loss in apart)) or 1, below)
    found = np.ones(1)
    for part in parts:
        chances = np.zeros(int((max(part) - min(part)) / unit) + 1)
        for loss, chance in part.items():
            chances[int((loss - min(part)) / unit)] += chance
        found = np.convolve(found, chances)
    return unit, sum((min(part) for part in parts), Fraction(0)), found


def true_delta(plan, shifts, epsilon):
    """E[(1 - e^{ε-L})₊] of one pair of tables."""
    noises = tuple(getattr(depth, "mechanism", None) for depth in plan.depths)
    unit, least, chances = law(noises, shifts)
    beyond = float(least - Fraction(epsilon)) + float(unit) * np.arange(len(chances))
    return math.fsum(-chances * np.expm1(-np.maximum(beyond, 0)))


def worst(plan, most, epsilon):
    return max(true_delta(plan, shifts, epsilon) for shifts in all_changes(most))


PLANS = {
    "equal shares": {**GAUSS},
    "half for the total": {**GAUSS, "allocation": hr.Shares(["1/2", "1/4", "1/4"])},
    "little for the total": {**GAUSS, "allocation": hr.Shares(["1/10", "3/5", "3/10"])},
    "total and leaves": {**GAUSS, "allocation": hr.Shares(["1/3", 0, "2/3"])},
    "no total": {**GAUSS, "allocation": hr.Shares([0, "1/2", "1/2"])},
    "rho": {"budget": hr.Rho("1/4")},
    "Laplace": {**LAPLACE},
    "Laplace, half for the total": {**LAPLACE, "allocation": hr.Shares(["1/2", "1/4", "1/4"])},
}


@pytest.mark.parametrize("name", PLANS)
def test_delta_is_exactly_that_of_the_worst_pair_of_tables(name):
    plan = plain_plan(TREE, neighbours=AT_MOST, **PLANS[name])
    assert plan.guarantee.is_worst
    for epsilon in EPSILONS:
        low, high = plan.guarantee.delta_bounds(epsilon)
        true = worst(plan, 1, epsilon)
        assert low - 1e-20 <= true * (1 + 1e-12)
        assert true * (1 - 1e-12) <= high
        assert high - low <= 1e-6 * high


@pytest.mark.parametrize("name", ["equal shares", "half for the total", "little for the total"])
def test_the_worst_pair_of_tables_costs_the_whole_budget(name):
    plan = plain_plan(TREE, neighbours=AT_MOST, **PLANS[name])
    assert 0.9999e-6 < worst(plan, 1, "1") <= 1e-6


@pytest.mark.parametrize("who", [AT_MOST, hr.Replace(3, exactly=False)], ids=str)
@pytest.mark.parametrize(
    "shares", [["1/3", "1/3", "1/3"], ["3/5", "1/5", "1/5"], [0, "1/2", "1/2"]]
)
def test_the_worst_case_costs_exactly_the_budget(who, shares):
    plan = plain_plan(TREE, neighbours=who, allocation=hr.Shares(shares), budget=hr.Rho("1/2"))
    assert plan.guarantee.rho == Fraction(1, 2)
    pure = plain_plan(TREE, neighbours=who, allocation=hr.Shares(shares), **LAPLACE)
    assert pure.guarantee.pure_epsilon == 1


def test_what_was_spent_where_one_was_asked_is_spent_now():
    """The total and one level, half each: as if both depths changed at once, and as they can."""
    level = AREAS.select("county").unique()
    tree = hr.Tree([hr.Axis.from_frame("place", level, levels=["county"])])
    plan = plain_plan(tree, neighbours=AT_MOST, **GAUSS)
    assert [use.noise.parameter for use in plan.guarantee.uses] == [
        Fraction("26.74575"),
        Fraction("53.4915"),
    ]
    before = [hr.DiscreteGaussian("35.7048"), hr.DiscreteGaussian("71.4096")]
    assert hr.compose([(before[0], 1), (before[1], 2)]).delta(1) == pytest.approx(1e-6, rel=1e-4)
    cases = hr.compose([(before[0], 1), (before[1], 1)]), hr.compose([(before[1], 2)])
    assert [f"{case.delta(1):.1e}" for case in cases] == ["3.4e-08", "5.1e-11"]
    assert round(max(case.epsilon("1e-6") for case in cases), 2) == 0.86
    assert 0.99999 < plan.guarantee.epsilon("1e-6") <= 1


@pytest.mark.slow
@pytest.mark.parametrize("shares", [["1/3", "1/3", "1/3"], ["1/2", "1/4", "1/4"]])
@pytest.mark.parametrize("spent", [{"budget": hr.EpsilonDelta(4, "1e-3")}, LAPLACE])
def test_no_unit_of_two_records_costs_more_than_is_stated(spent, shares):
    who = hr.Replace(2, exactly=False)
    plan = plain_plan(TREE, neighbours=who, allocation=hr.Shares(shares), **spent)
    assert not plan.guarantee.is_worst
    for epsilon in ("0.3", "1", "4"):
        low, high = plan.guarantee.delta_bounds(epsilon)
        assert low == 0
        assert worst(plan, 2, epsilon) <= high * (1 + 1e-12)


def test_the_least_missed_differences_are_those_of_the_worse_case():
    plan = plain_plan(TREE, neighbours=AT_MOST, **PLANS["half for the total"])
    cases = [Profile(case) for case in plan.guarantee.cases]
    for alpha in (0.01, 0.05, 0.4):
        least = plan.guarantee.tradeoff(alpha)
        assert least == min(case.tradeoff(alpha) for case in cases)
        (curve,) = plan.guarantee.tradeoff_curve([alpha])
        assert least - 0.01 < curve <= least + 1e-12


@pytest.mark.parametrize("name", [name for name in PLANS if "Laplace" not in name])
def test_epsilon_is_that_of_the_worse_case(name):
    """Whichever it is: moving where the total has a small share, coming or going elsewhere."""
    guarantee = plain_plan(TREE, neighbours=AT_MOST, **PLANS[name]).guarantee
    for delta in ("1e-4", "1e-6", "1e-10"):
        each = [Profile(case).epsilon(delta) for case in guarantee.cases]
        assert guarantee.epsilon(delta) == pytest.approx(max(each), rel=1e-8)


def test_pure_noise_of_several_cases_is_dominated_by_that_of_the_dearest():
    profile = Profile((Use(hr.DiscreteLaplace(30), 5, ((1,), (2, -2))),), is_worst=False)
    each = [Profile(case, is_worst=False) for case in profile.cases]
    for epsilon in ("0.1", "0.3", "0.6"):
        assert profile.delta(epsilon) == max(case.delta(epsilon) for case in each)
        assert profile.delta(epsilon) > min(case.delta(epsilon) for case in each)


def test_a_case_that_is_part_of_another_is_not_priced_again():
    plan = plain_plan(TREE, neighbours=AT_MOST, **PLANS["no total"])
    (losses,) = plan.guarantee.losses
    assert sum(times for _, times in losses) == 4


def test_equal_cases_are_priced_once():
    noise = hr.DiscreteGaussian(5)
    twice = Profile((Use(noise, 1, ((1,), (1,))), Use(noise, 2, ((2,), (-2,)))))
    assert len(twice.losses) == 1
    assert twice.delta(1) == Profile((Use(noise, 1, ((1,),)), Use(noise, 2, ((2,),)))).delta(1)


def test_cases_are_written_down_and_read_back_exactly():
    for use in (
        Use(hr.DiscreteGaussian(5), 2, ((1,), (1, -1))),
        Use(hr.DiscreteLaplace("0.3"), 1, ((2,), ())),
        Use(hr.DiscreteGaussian(5), 1, (Norm(7), Norm(3))),
    ):
        described = json.loads(json.dumps(Profile((use,), is_worst=False).to_dict()))
        (written,) = described["uses"]
        assert read_use(written) == use
        assert "shifts" not in written
        with pytest.raises(BudgetError, match="cases are at least two"):
            read_use({**written, "cases": written["cases"][:1]})


def test_what_one_unit_changes_in_several_cases_has_no_single_loss():
    use = Use(hr.DiscreteGaussian(5), 1, ((1,), ()))
    with pytest.raises(BudgetError, match="depends on the case"):
        _ = use.losses
    assert use.in_case(1) is None


def test_uses_of_other_cases_do_not_compose():
    noise = hr.DiscreteGaussian(5)
    with pytest.raises(BudgetError, match="speak of the same cases"):
        Profile((Use(noise, 1, ((1,), ())), Use(noise, 1, ((1,), (1,), (1,)))))


def test_the_domination_of_cases_is_that_of_the_largest_norms():
    """No smaller than that of any case, nor than of changes between two, and of the worst alone."""
    a, b = (Gaussians(Fraction(20), Fraction(n), 1) for n in (9, 4))
    c = Gaussians(Fraction(15), Fraction(8), 1)
    both = Domination(((a,), (b, c)))
    for epsilon in (-1.0, 0.0, 0.5, 1.0, 3.0):
        alone = max(Domination(((a,),)).delta(epsilon), Domination(((b, c),)).delta(epsilon))
        assert alone <= both.delta(epsilon) <= alone * 1.001
    assert Domination(((a,), (a,))).delta(1.0) == Domination(((a,),)).delta(1.0)


NOISE = hr.DiscreteGaussian(30)
TWO_CASES = Profile((Use(NOISE, 1, ((1,), ())), Use(NOISE, 2, ((1,), (1, -1)))))
OTHER = Profile((Use(NOISE, 2, ((1,), ())), Use(hr.DiscreteGaussian(40), 1, ((1,), (1, -1)))))
"""`TWO_CASES` costs more where a unit moves, this where it comes or goes."""


def chosen(*cases):
    """Releases together, each in a case of its own."""
    return Profile(tuple(use for profile, case in cases for use in profile.cases[case]))


def test_releases_together_cost_what_the_worst_combination_of_their_cases_costs():
    """A unit may come in one table and move in another."""
    releases = [TWO_CASES, OTHER, TWO_CASES]
    both = compose_profiles(releases)
    assert both.rho == sum(profile.rho for profile in releases)
    assert both.rho > max(sum(c.rho for p in releases for c in p.cases[k]) for k in range(2))
    assert not both.is_worst
    for epsilon in EPSILONS:
        true = max(
            chosen(*zip(releases, cases, strict=True)).delta(epsilon)
            for cases in product(range(2), repeat=3)
        )
        assert true <= both.delta(epsilon) <= true * 1.3


def test_too_many_combinations_are_bounded_by_the_union_of_their_cases(monkeypatch):
    exact = compose_profiles([TWO_CASES, OTHER, TWO_CASES])
    monkeypatch.setattr(combining, "MOST_COMBINATIONS", 2)
    bounded = compose_profiles([TWO_CASES, OTHER, TWO_CASES])
    assert bounded.rho > exact.rho
    for epsilon in EPSILONS:
        assert exact.delta(epsilon) < bounded.delta(epsilon)
    norms = Profile((Use(NOISE, 1, (Norm(7), Norm(3))),), is_worst=False)
    monkeypatch.setattr(combining, "MOST_COMBINATIONS", 1)
    assert compose_profiles([norms, norms]).rho == 2 * norms.rho


def test_a_release_alone_keeps_its_exact_price_and_one_case_stays_one():
    assert compose_profiles([TWO_CASES]) is TWO_CASES
    single = Profile((Use(NOISE, 1, ((1,),)),))
    assert compose_profiles([single, single]) == Profile(single.uses * 2)
    assert compose_profiles([single, single]).is_worst
    assert not compose_profiles([single, TWO_CASES]).is_worst


def test_the_plan_is_read_back_with_its_cases():
    plan = plain_plan(TREE, neighbours=AT_MOST, **GAUSS)
    described = json.loads(json.dumps(plan.to_dict()))
    assert tuple(map(read_use, described["guarantee"]["uses"])) == plan.guarantee.uses
    assert [use["cases"] for use in described["guarantee"]["uses"]][:2] == [
        [{"shifts": [1]}, {"shifts": []}],
        [{"shifts": [1]}, {"shifts": [1, -1]}],
    ]
