"""One suite over every mechanism, of the package and of one's own: what each brings along is true.

The judges share nothing with the mechanisms: a mechanism's law is given by its masses, and all
that is claimed of it (loss, price, error, reach) is computed from these by plain sums. Two are of
our own (`tests.own_mechanisms`) and go all the way that the package's do.
"""

import math
import re
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError, NoiseError, PlanError
from hedgerow.estimate.intervals import Confidence
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.loss import GaussianLoss, InEpsilon, precision_of
from hedgerow.noise.mechanisms import MECHANISMS, PIECES, Mechanism, check_mechanism
from hedgerow.plan.allocation.cheapest import cheapest
from hedgerow.plan.allocation.fair import Fair
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.forecast import forecast
from hedgerow.plan.make import read_plan
from hedgerow.plan.prior import Prior
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.ledger.ledger import create_ledger
from hedgerow.privacy.ledger.records import Charge
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.promise import Protection
from hedgerow.privacy.use import Use, read_use
from hedgerow.spec.other_file import UseSection
from hedgerow.spec.release_file import PrivacySection
from tests.made import fixed_axis, plain_plan, random_counts
from tests.own_mechanisms import TwoGaussian, TwoLaplace

ALL: list[Any] = [hr.DiscreteGaussian, hr.DiscreteLaplace, TwoLaplace, TwoGaussian]
OWN = [TwoLaplace, TwoGaussian]
EVERY = pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.name)
EACH_OWN = pytest.mark.parametrize("kind", OWN, ids=lambda kind: kind.name)
NARROW = {"sigma2": ["1/2", "3", "20"], "scale": ["1/2", "2", "5"]}
MADE = [kind(parameter) for kind in ALL for parameter in NARROW[kind.key]]
EACH = pytest.mark.parametrize("noise", MADE, ids=str)
REACH = 260

TREE = hr.Tree([fixed_axis("geo", 4, 5, 6)])
TABLE = random_counts(np.random.default_rng(0), TREE, 0.4)
PRIOR = Prior(TABLE, public=True)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """As a name in the table of `noise/mechanisms.py` would."""
    for kind in OWN:
        monkeypatch.setitem(MECHANISMS, kind.name, kind)


def masses(noise):
    """P(X = x), x = -REACH … REACH, from the definition of the law."""
    x = np.arange(-REACH, REACH + 1)
    power = {"sigma2": x**2 / 2, "scale": np.abs(x)}[noise.key]
    law = np.exp(-power / float(noise.parameter))
    law /= law.sum()
    return np.convolve(law, law, mode="same") if type(noise) in OWN else law


def x_of(law):
    return np.arange(len(law)) - len(law) // 2


def brute_delta(law, shift, epsilon):
    """Σ (P(x) - e^ε P(x - s))₊ of one count that moves by the shift."""
    return np.maximum(law - math.exp(epsilon) * shifted(law, shift), 0).sum()


def shifted(law, shift):
    """The law of X + s; what leaves the window is below 1e-20."""
    moved = np.zeros_like(law)
    moved[shift:] = law[: len(law) - shift]
    return moved


def brute_error(law, counts):
    """E(max(0, N + X) - N)² for each N."""
    errors = np.maximum(x_of(law), -np.asarray(counts)[:, None])
    return (errors**2) @ law


def budgets_of(kind):
    """Budgets that buy it."""
    if isinstance(kind.price, InEpsilon):
        return [hr.Epsilon("3/4")]
    return [hr.Rho("1/2"), hr.EpsilonDelta(1, "1e-6")]


def amount(budget):
    return budget.epsilon if isinstance(budget, hr.Epsilon) else budget.rho


def in_own_currency(kind, amount):
    return hr.Epsilon(amount) if isinstance(kind.price, InEpsilon) else hr.Rho(amount)


def test_every_mechanism_of_the_package_is_in_this_suite():
    assert set(MECHANISMS.values()) <= set(ALL)


def test_the_page_on_choosing_noise_has_a_row_for_each_of_the_package():
    page = (Path(__file__).parents[1] / "docs" / "choosing.md").read_text(encoding="utf-8")
    rows = re.findall(r'^\| `"([\w-]+)"` \|', page.partition("## Which noise")[2], re.MULTILINE)
    assert rows == [name for name, kind in MECHANISMS.items() if kind not in OWN]


@EVERY
def test_a_mechanism_is_complete(kind):
    check_mechanism(kind)
    own = {name for name in vars(Mechanism) if not name.startswith("_")}
    assert own | set(Mechanism.__annotations__) == set(PIECES)


# --- the law --------------------------------------------------------------------------------------


@EACH
def test_moments_and_tails_are_those_of_the_masses(noise):
    law = masses(noise)
    x = x_of(law)
    assert noise.noise_variance == pytest.approx(x**2 @ law, rel=1e-12)
    assert noise.chance_of_zero == pytest.approx(law[REACH], rel=1e-12)
    for chance in (0.5, 0.05, 1e-6):
        assert law[np.abs(x) > noise.tail_bound(chance)].sum() <= chance
        assert law[np.abs(x) > noise.tail_bound(chance) / 3 - 1].sum() > chance


@EACH
def test_draws_follow_the_masses(noise):
    """α = 1e-6 by Bernstein's inequality for the variance of 40,000 draws, seeded by the key."""
    key, n = ReleaseKey(bytes(32)), 40_000
    out, part = np.empty(n, dtype=np.int64), np.empty(n - 17, dtype=np.int64)
    noise.draw(key.stream(1), 0, out)
    noise.draw(key.stream(1), 17, part)
    assert (out[17:] == part).all()
    assert abs(out.mean()) < 5 * math.sqrt(noise.noise_variance / n)
    spread = math.sqrt((x_of(masses(noise)) ** 4 @ masses(noise) - noise.noise_variance**2) / n)
    assert abs((out**2.0).mean() - noise.noise_variance) < 5 * spread


@EACH
def test_the_envelope_bounds_the_moment_generating_function(noise):
    """Of one draw, at every λ where it is finite; and not by much, where the noise is wide."""
    law, s2 = masses(noise), noise.envelope.variance
    normal = type(noise.envelope) is type(hr.DiscreteGaussian(1).envelope)
    for part in (0.01, 0.1, 0.3, 0.5, 0.7, 0.9):
        rate = part / math.sqrt(s2 / 2)
        bound = math.exp(rate**2 * s2 / 2) if normal else 1 / (1 - rate**2 * s2 / 2)
        exact = float(np.cosh(rate * x_of(law)) @ law)
        assert exact <= bound * (1 + 1e-9)
        if noise.parameter >= 5 and part <= 0.1:
            assert bound - 1 <= (exact - 1) * 1.02


@EACH
def test_sums_of_draws_stay_within_the_chernoff_bound(noise):
    """Of the weighted sums 3X + Y - 2Z and X, exactly, against k deviations of the envelope."""
    law, single = masses(noise), math.sqrt(noise.envelope.variance)
    for weights in ((1,), (3, 1, 2)):
        total = np.ones(1)
        for weight in weights:
            spaced = np.zeros(weight * (len(law) - 1) + 1)
            spaced[::weight] = law
            total = np.convolve(total, spaced)
        size = math.sqrt(sum(weight**2 for weight in weights)) * single
        for chance in (0.05, 1e-4, 1e-8):
            far = noise.envelope.farthest(chance) * size
            assert total[np.abs(x_of(total)) >= far].sum() <= chance


@EACH
def test_the_error_of_a_cell_is_that_of_the_masses(noise):
    counts = np.array([0.0, 1, 2, 5, 17])
    p, law = float(precision_of(noise)), masses(noise)
    error = type(noise).cell_error
    assert error.mse(p, counts) == pytest.approx(brute_error(law, counts), rel=1e-10)
    bias = np.maximum(x_of(law), -counts[:, None]) @ law
    assert error.bias(p, counts) == pytest.approx(bias, rel=1e-9, abs=1e-15)

    def mse(precision):
        return brute_error(masses(type(noise).with_precision(Fraction(precision))), counts)

    up, down = mse(p * (1 + 1e-4)), mse(p * (1 - 1e-4))
    assert error.mse_slope(p, counts) == pytest.approx((up - down) / (2e-4 * p), rel=1e-6)
    up, down = (error.mse_slope(q, counts) for q in (p * (1 + 1e-4), p * (1 - 1e-4)))
    assert error.mse_curvature(p, counts) == pytest.approx((up - down) / (2e-4 * p), rel=1e-5)
    assert (error.mse_slope(p, counts) < 0).all()
    assert (error.mse_curvature(p, counts) > 0).all()


@EVERY
def test_the_variance_falls_with_the_precision_as_the_price_says(kind):
    for precision in (Fraction(1, 300), Fraction(1, 40_000)):
        noise = kind.with_precision(precision)
        law = float(kind.price.variance / precision**kind.price.power)
        assert noise.noise_variance == pytest.approx(law, rel=1e-4)


# --- the price ------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("shift", [1, -3])
def test_delta_is_bounded_by_the_price_and_told_exactly_where_that_is_claimed(noise, shift):
    law, profile = masses(noise), hr.compose([(noise, 1, shift)])
    largest = 8 if profile.pure_epsilon is None else float(profile.pure_epsilon)
    for epsilon in largest * np.array([0.05, 0.3, 0.7, 0.95]):
        exact = brute_delta(law, abs(shift), epsilon)
        lower, upper = profile.delta_bounds(epsilon)
        assert lower <= exact * (1 + 1e-9) + 1e-18
        assert upper >= exact * (1 - 1e-9) - 1e-18
        if noise.loss_is_exact:
            assert upper == pytest.approx(exact, rel=1e-6, abs=1e-17)
        else:
            assert lower == 0
    assert profile.is_exact is noise.loss_is_exact


@EACH
def test_two_uses_cost_no_less_than_the_law_of_both(noise):
    law = masses(noise)
    both, moved = np.outer(law, law), np.outer(shifted(law, 1), shifted(law, 2))
    profile = hr.compose([(noise, 1), (noise, 1, 2)])
    for epsilon in (0.2, 1.0, 2.5):
        exact = np.maximum(both - math.exp(epsilon) * moved, 0).sum()
        assert profile.delta(epsilon) >= exact * (1 - 1e-9) - 1e-18


@EACH
@pytest.mark.parametrize("shift", [1, 3])
def test_rho_and_pure_epsilon_bound_every_divergence(noise, shift):
    law = masses(noise)
    seen = law > 1e-250
    with np.errstate(divide="ignore"):
        p, q = np.log(law), np.log(shifted(law, shift))
    p, q = (log[seen & np.isfinite(q)] for log in (p, q))
    rho = float(noise.rho(Fraction(shift**2)))
    for alpha in (1.1, 2, 8):
        divergence = np.log(np.exp(alpha * p + (1 - alpha) * q).sum()) / (alpha - 1)
        assert divergence <= alpha * rho * (1 + 1e-9)
    epsilon = noise.epsilon(Fraction(shift))
    if epsilon is not None:
        middle = np.abs(p - q)[p > -50]  # beyond, the masses of sums are cut off
        assert middle.max() <= float(epsilon) * (1 + 1e-9)


@EVERY
@pytest.mark.parametrize("who", [hr.AddRemove(), hr.AddRemove(3), hr.Replace(2)], ids=str)
def test_shares_of_a_budget_buy_noise_that_costs_no_more(kind, who):
    for budget in budgets_of(kind):
        plan = hr.make_plan(TREE, budget=budget, mechanism=kind, neighbours=who)
        if isinstance(budget, hr.EpsilonDelta):
            assert plan.guarantee.delta(budget.epsilon) <= budget.delta
            continue
        cost = plan.guarantee.rho if kind.price.norm == 2 else plan.guarantee.pure_epsilon
        assert amount(budget) * Fraction(99, 100) < cost <= amount(budget)


@EVERY
def test_a_budget_that_does_not_buy_the_mechanism_is_refused(kind):
    other = hr.Rho(1) if isinstance(kind.price, InEpsilon) else hr.Epsilon(1)
    for allocation in (None, Optimal()):
        with pytest.raises(BudgetError, match=r"no pure epsilon|takes epsilon alone"):
            hr.make_plan(TREE, budget=other, mechanism=kind, allocation=allocation)


# --- plans ----------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=str)
def test_a_forecast_tells_of_the_law(kind, measure):
    alone = hr.Shares([0, 0, 0, 1])
    for budget in budgets_of(kind):
        plan = hr.make_plan(TREE, budget=budget, mechanism=kind, measure=measure, allocation=alone)
        noise, row = plan.depths[3].mechanism, forecast(plan).row(3, named=True)
        law = masses(noise)
        assert row["noise"] == f"{noise.symbol} {float(noise.parameter):,.6g}"
        assert row["noise_sd"] == pytest.approx(math.sqrt(x_of(law) ** 2 @ law))
        assert row["false_positive_share"] == pytest.approx(law[x_of(law) >= 1].sum())
        if measure == hr.All():
            assert row["rmse"] == pytest.approx(row["noise_sd"])
            assert law[np.abs(x_of(law)) > row["max_95"]].sum() <= 0.05 / 120


def level_error(plan, table=PRIOR):
    """The sum of squared errors of each measured depth, from the masses of the plan's noise."""
    found = []
    for t, what in enumerate(plan.depths):
        values, times = table.values(t, plan.tree.nodes(t))
        noise = what.mechanism
        mse = brute_error(masses(noise), np.minimum(values, REACH))
        found.append(float(times @ mse))
    return sum(found)


@EVERY
def test_optimal_shares_cannot_be_improved_by_moving_a_little(kind):
    """By the masses: a hundredth of the budget moved between two depths helps nothing."""
    budget = in_own_currency(kind, 2)
    best = hr.make_plan(TREE, budget=budget, mechanism=kind, allocation=Optimal(prior=PRIOR))
    least = level_error(best)
    moved = Fraction(1, 100)
    for a, b in ((0, 3), (3, 0), (1, 2), (2, 1)):
        shares = list(best.shares)
        shares[a], shares[b] = shares[a] + moved, shares[b] - moved
        other = hr.make_plan(TREE, budget=budget, mechanism=kind, allocation=hr.Shares(shares))
        assert level_error(other) > least


@EVERY
def test_without_a_prior_shares_follow_the_variance_law(kind):
    """Minimise Σ n V/s^k: s ∝ n^(1/(k+1)) for add-remove neighbours, whose sensitivities agree."""
    plan = hr.make_plan(
        TREE, budget=in_own_currency(kind, 1), mechanism=kind, allocation=Optimal(objective="cells")
    )
    wanted = np.array([1, 4, 20, 120]) ** (1 / (1 + {1: 2, 2: 1}[kind.price.norm]))
    assert [float(s) for s in plan.shares] == pytest.approx(wanted / wanted.sum(), abs=2e-4)


@EVERY
def test_the_cheapest_plan_keeps_its_target_and_none_is_cheaper(kind):
    plan = cheapest(TREE, target=3000, prior=PRIOR, mechanism=kind)
    assert level_error(plan) <= 3000 * (1 + 1e-9)
    less = amount(plan.budget) * Fraction(98, 100)
    cheaper = hr.make_plan(
        TREE,
        budget=in_own_currency(kind, less),
        mechanism=kind,
        allocation=Optimal(prior=PRIOR),
    )
    assert level_error(cheaper) > 3000


@EVERY
def test_other_allocations_take_it(kind):
    budget = in_own_currency(kind, 1)
    for allocation in (Fair(1.5), Optimal(objective="released")):
        plan = plain_plan(TREE, budget=budget, mechanism=kind, allocation=allocation)
        assert sum(share or 0 for share in plan.shares) == 1


# --- releases -------------------------------------------------------------------------------------


@EACH
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.999])
def test_intervals_hold_as_often_as_they_say(noise, level):
    """Of a noisy count; and of a child below a measured parent: (2X - Y + Z)/3, by the masses."""
    law, confidence = masses(noise), Confidence(level)
    x = x_of(law)
    raw = confidence.half_width(noise, None, 1)
    assert law[np.abs(x) <= raw].sum() >= level
    parts = [np.zeros(2 * (len(law) - 1) + 1), law, law]
    parts[0][::2] = law
    sums = np.convolve(np.convolve(parts[0], parts[1]), parts[2])
    reach = float(confidence.half_width(noise, np.array(noise.noise_variance * 6 / 9), 1))
    assert sums[np.abs(x_of(sums)) / 3 <= reach + 0.5].sum() >= level
    assert reach <= raw + 0.5 or level < 0.905


@EVERY
@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=str)
@pytest.mark.sweep(4)
def test_a_release_is_written_checked_and_read(kind, measure, tmp_path):
    plan = hr.make_plan(TREE, budget=in_own_currency(kind, 1), mechanism=kind, measure=measure)
    release = hr.release(TABLE, plan, directory=tmp_path / "out")
    hr.check(tmp_path / "out")
    leaves = release.level("level3")
    assert (leaves["low"] <= leaves["high"]).all()
    assert (leaves["standard_error"] > 0).all()


@EVERY
def test_a_plan_and_a_use_are_read_back_as_they_were(kind):
    for budget in budgets_of(kind):
        plan = plain_plan(TREE, budget=budget, mechanism=kind)
        assert read_plan(TREE, plan.to_dict()).hash == plan.hash
        written = plan.guarantee.uses[0].to_dict()
        assert written[kind.key] == str(plan.depths[0].mechanism.parameter)
        assert read_use(written) == plan.guarantee.uses[0]


@EVERY
def test_a_ledger_charges_and_reads_it(kind, tmp_path):
    profile = hr.make_plan(TREE, budget=in_own_currency(kind, "1/2"), mechanism=kind).guarantee
    ledger = create_ledger(tmp_path / "ledger.sqlite")
    account = ledger.open_account("census", Protection(hr.AddRemove()), in_own_currency(kind, 1))
    at = datetime(2026, 5, 4, tzinfo=UTC)
    ledger.charge(account, Charge("r" * 32, profile, plan_hash="a" * 64, at=at))
    standing = ledger.standing(account)
    assert standing.charges[0].profile == profile
    assert standing.spent == (profile.rho if kind.price.norm == 2 else profile.pure_epsilon)


# --- the door -------------------------------------------------------------------------------------


def lacking(piece, **instead):
    """`TwoLaplace` without one of its pieces, or with another in its place."""
    whole = {name: getattr(TwoLaplace, name) for name in PIECES} | {"__init__": TwoLaplace.__init__}
    own = {name: given for name, given in {**whole, **instead}.items() if name != piece}
    return type("Lacking", (), own)


@pytest.mark.parametrize("piece", PIECES)
def test_a_mechanism_that_lacks_a_piece_is_refused_at_the_door(piece, monkeypatch):
    kind = lacking(piece)
    monkeypatch.setitem(MECHANISMS, "two-laplace", kind)
    said = rf"Lacking is no complete mechanism: it has no {piece} \({PIECES[piece]}"
    if piece != "draw":  # what cannot be drawn from is not even meant for one
        with pytest.raises(NoiseError, match=said):
            hr.compose([(kind(3), 1)])
        with pytest.raises(NoiseError, match=said):
            hr.make_plan(TREE, budget=hr.Epsilon(1), mechanism=kind)
    with pytest.raises(NoiseError, match=said):
        Use(kind(3), 1, ((1,),))


def test_a_mechanism_that_nobody_could_read_back_is_refused(monkeypatch):
    monkeypatch.delitem(MECHANISMS, TwoLaplace.name)
    with pytest.raises(NoiseError, match=r"TwoLaplace is not in hedgerow\.noise\.mech"):
        hr.make_plan(TREE, budget=hr.Epsilon(1), mechanism=TwoLaplace)
    assert hr.compose([(TwoLaplace(3), 1)]).pure_epsilon == Fraction(1, 3)


def moves_twice(_, shift):
    """An honest bound, of which the σ² alone was taken: half the loss."""
    return GaussianLoss(Fraction(400), 2 * abs(shift))


def widens(_, shift):
    return GaussianLoss(Fraction(400 * abs(shift)), abs(shift))


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ({"price": "epsilon"}, r"Lacking.price \(by which budget it is bought\) must be InRho"),
        ({"cell_error": 1}, r"Lacking.cell_error .* must be a CellError, got int"),
        ({"loss": lambda _, shift: shift}, "must be a GaussianLoss, a LaplaceLoss or a PairLoss"),
        ({"epsilon": lambda *_: None}, "neither the loss of a discrete Gaussian nor a pure"),
        (
            {"loss": moves_twice},
            r"loss\(2\) is not the loss of a discrete Gaussian that",
        ),
        ({"loss": widens}, r"loss\(2\) is not the loss .* one sigma2 at every shift"),
    ],
    ids=["price", "cell_error", "loss", "epsilon", "larger move", "another sigma2"],
)
def test_a_piece_of_another_kind_is_refused_at_the_door(instead, said):
    with pytest.raises((NoiseError, BudgetError), match=said):
        Profile((Use(lacking(None, **instead)(3), 1, ((2, -2),)),), is_worst=False).epsilon("1e-6")


@pytest.mark.parametrize("rounded", [math.floor, math.ceil])
def test_noise_that_does_not_cost_its_share_is_refused(rounded):
    """Rounded down the budget would be overspent; rounded up targets would be missed."""
    other = lacking(None, with_precision=classmethod(lambda cls, p: cls(rounded(1 / p))))
    with pytest.raises(BudgetError, match=r"costs 1/[23] of a budget of 2/5"):
        calibrate(other, hr.Epsilon("2/5"), [Fraction(1)], [((1,),)])


@pytest.mark.parametrize("given", ["discrete-laplace", hr.DiscreteLaplace(1), int])
def test_what_is_no_mechanism_is_refused_by_a_plan(given):
    with pytest.raises(PlanError, match="a mechanism must be the class DiscreteGaussian or"):
        hr.make_plan(TREE, budget=hr.Epsilon(1), mechanism=given)


@pytest.mark.parametrize("given", ["discrete-laplace", hr.DiscreteLaplace, 3])
def test_what_is_no_mechanism_is_refused_by_a_composition(given):
    with pytest.raises(BudgetError, match="is no mechanism and no guarantee"):
        hr.compose([(given, 1)])


def test_files_know_every_mechanism_of_the_package_by_name_and_parameter():
    """Those of our own are registered later than a release file's format is made."""
    names = tuple(name for name, kind in MECHANISMS.items() if kind not in OWN)
    assert get_args(PrivacySection.model_fields["mechanism"].annotation) == names
    assert get_args(UseSection.model_fields["mechanism"].annotation) == (*names, "guarantee")
    assert {MECHANISMS[name].key for name in names} <= set(UseSection.model_fields)
