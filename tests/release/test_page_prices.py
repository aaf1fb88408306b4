"""What a page says of the price, in figures, pictures and words, against prices of our own.

The price of Gaussian noise is by convolution, where a bound is told by the theorem that proves it,
and from ρ by the formulas of the papers.
"""

import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm

from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.privacy.neighbours import Norm
from tests.release.drawn_page import number, picture, table, unraised
from tests.release.shown_pages import ALPHA, KINDS, masses

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

DELTAS = [1e-6, 1e-8, 1e-10]
GAUSSIAN = ["geography", "flows", "parts", "combined", "cases"]  # exactly, by convolution
PRICED = [kind for kind in KINDS if kind != "uneven"]  # one draw nearly all of its price
BOUNDED = ["three", "sums"]  # changes told by their norms

PRICES = "ε at several δ"


COSTS, TESTS = "What the release costs", "What an attacker can find out"
BUREAU, BEST = "from ρ, as the US Census Bureau states it", "from ρ, by the best known conversion"
NOTHING, LOOSE = "no release at all", "what ρ or a pure ε alone promise"


def loss_of(uses):
    """The privacy loss of all draws together, Σ (2x + 1)/2σ² by its definition, and its law.

    The steps 1/2σ² of the draws have a common measure, so their losses lie on one grid.
    """
    draws = [
        use.mechanism for use in uses for _ in range(use.times) for shift in use.change if shift
    ]
    assert {abs(shift) for use in uses for shift in use.change} == {1}
    steps = [1 / (2 * Fraction(mechanism.parameter)) for mechanism in draws]
    parts = math.lcm(*(step.denominator for step in steps))
    unit = Fraction(math.gcd(*(int(step * parts) for step in steps)), parts)
    mass, first = np.ones(1), 0
    for mechanism, step in zip(draws, steps, strict=True):
        (x, p), width = masses(mechanism), int(step / unit)
        spread = np.zeros(2 * width * (len(x) - 1) + 1)
        spread[:: 2 * width] = p
        mass, first = np.convolve(mass, spread), first + width * (2 * int(x[0]) + 1)
    return (first + np.arange(len(mass))) * float(unit), mass


def dominated(uses):
    """δ(ε) by the theorem of `privacy.accountant.domination`, at the variances s² that it tries."""
    changes = [(use.times, float(use.mechanism.parameter), moved(use)) for use in uses]
    bounds = []
    for spread in (1 / 4, 1 / 2, 3 / 4, 1, 3 / 2, 2, 3, 4):
        q = math.exp(-2 * math.pi**2 * spread)
        eta = 2 * q / (1 - q)
        doubt = sum(n * size * math.log((1 + eta) / (1 - eta)) for n, _, size in changes)
        mu = math.sqrt(sum(n * size / (sigma2 - spread) for n, sigma2, size in changes))
        if doubt < 1:
            bounds.append((doubt, mu))

    def delta(epsilon):
        found = []
        for doubt, mu in bounds:
            e = epsilon - 2 * doubt
            gauss = norm.cdf(mu / 2 - e / mu) - math.exp(e + norm.logcdf(-mu / 2 - e / mu))
            found.append(math.exp(doubt) * gauss)
        return float(min(found))

    return delta


def moved(use):
    """The squared norm of what one unit changes."""
    if isinstance(use.change, Norm):
        return float(use.change.squared)
    return float(sum(shift**2 for shift in use.change))


def exact_delta(kind, plan):
    """δ(ε), the largest of all cases: by convolution, by a theorem where a bound is told; else the
    plan's own."""
    if kind in GAUSSIAN:
        laws = [loss_of(case) for case in plan.guarantee.cases]
        return lambda epsilon: max(
            float((mass * -np.expm1(np.minimum(epsilon - loss, 0))).sum()) for loss, mass in laws
        )
    if kind in BOUNDED:
        (case,) = plan.guarantee.cases
        return dominated(case)
    return plan.guarantee.delta


def exact_missed(kind, plan):
    """T(α), the least of all cases: by the Neyman-Pearson test, rejecting where the loss is large,
    at random in between; by all lines of δ(ε) where a bound is told; else the plan's own."""
    if kind in BOUNDED:
        grid, delta = np.linspace(0, plan.guarantee.epsilon("1e-15"), 500), exact_delta(kind, plan)
        pairs = [(e, delta(e)) for e in grid]
        return lambda alpha: missed_by(pairs, alpha)
    if kind not in GAUSSIAN:
        return plan.guarantee.tradeoff
    curves = []
    for loss, mass in (loss_of(case) for case in plan.guarantee.cases):
        order = np.argsort(-loss)
        false = np.append(0, np.cumsum(mass[order] * np.exp(-loss[order])))
        curves.append((false, 1 - np.append(0, np.cumsum(mass[order]))))
    return lambda alpha: min(float(np.interp(alpha, *curve)) for curve in curves)


def bureau(rho, delta):
    return rho + 2 * math.sqrt(rho * math.log(1 / delta))


def best_known(rho, delta):
    """Canonne, Kamath & Steinke 2020, Proposition 12: the best order α of a Rényi divergence."""

    def at(log_order):
        a = 1 + math.exp(log_order)
        return rho * a + (math.log(1 / delta) + a * math.log1p(-1 / a) - math.log(a - 1)) / (a - 1)

    found = minimize_scalar(at, bounds=(-12, 12), method="bounded", options={"xatol": 1e-10})
    return max(0.0, float(found.fun))


def rho_of(plan):
    """Σ shift²/2σ² of the worst case; Σ (|shift|/scale)²/2 for Laplace noise, as what is pure ε is
    ε²/2-zCDP."""
    return max(sum(map(rho_of_use, case)) for case in plan.guarantee.cases)


def rho_of_use(use):
    noise = float(use.mechanism.parameter)
    scale = noise if isinstance(use.mechanism, DiscreteGaussian) else noise**2
    return use.times * moved(use) / (2 * scale)


@pytest.mark.parametrize("kind", PRICED)
def test_the_prices_are_those_of_their_headings(shown, kind):
    """Six digits, rounded up: never below, and above by a unit of the sixth digit at most."""
    made = shown[kind]
    plan, rho, delta_at = made.plan, rho_of(made.plan), exact_delta(kind, made.plan)
    found = table(made.seen, PRICES)
    asked = {float(getattr(plan.budget, "delta", 1e-6)), *DELTAS}
    assert [unraised(words) for words in found.column("δ")] == sorted(asked, reverse=True)
    promised = "exact" if plan.guarantee.is_worst else "proved bound"
    for row in found.rows:
        delta = unraised(row["δ"].text)
        for heading, known in (
            ("from ρ, Bun & Steinke", bureau), ("from ρ, best known", best_known)
        ):  # fmt: skip
            told, exact = number(row[heading].text), known(rho, delta)
            assert exact * (1 - 1e-8) <= told <= exact * (1 + 1.1e-5)
        told = number(row[promised].text)
        assert delta_at(told) <= delta * (1 + 1e-5)
        assert delta_at(told * (1 - 1.2e-5)) > delta


@pytest.mark.parametrize("kind", PRICED)
def test_the_lines_of_the_price_run_through_the_pairs_of_their_names(shown, kind):
    made = shown[kind]
    plan, rho, delta_at = made.plan, rho_of(made.plan), exact_delta(kind, made.plan)
    found = picture(made.seen, COSTS)
    assert found.x.title == "ε"
    assert found.y.title.startswith("δ")
    assert found.x.ticks[0][1] == 0
    assert len(found.x.ticks) >= 3
    assert sorted(value for _, value in found.y.ticks) == [10.0**-k for k in range(15, -1, -3)]
    tight = "exact" if plan.guarantee.is_worst else "proved bound"
    assert found.lines.keys() == {BUREAU, BEST, tight}
    for name, known in ((BUREAU, bureau), (BEST, best_known)):
        assert len(found.lines[name]) >= 15
        for point in found.lines[name]:
            assert known(rho, point.y[1]) <= point.x[1]
            assert known(rho, point.y[0]) >= point.x[0]
        deltas = [point.middle[1] for point in found.lines[name]]
        assert max(deltas) > 0.4
        assert min(deltas) < 1.1e-15
    assert len(found.lines[tight]) >= 15
    for point in found.lines[tight]:
        assert delta_at(point.x[1]) <= point.y[1] * 1.001
        assert delta_at(max(point.x[0], 0.0)) >= point.y[0] * 0.999
    assert found.lines[tight][0].x[0] <= 0 <= found.lines[tight][0].x[1]
    if plan.guarantee.pure_epsilon is None:
        assert found.lines[tight][-1].middle[1] < 1e-10


@pytest.mark.parametrize("kind", PRICED)
@pytest.mark.sweep(2)
def test_the_lines_of_the_test_are_lower_bounds_and_close(shown, kind):
    made = shown[kind]
    plan, found = made.plan, picture(made.seen, TESTS)
    assert (found.x.title, found.y.title) == ("false alarms", "differences missed, at least")
    tight = "exact" if plan.guarantee.is_worst else "proved bound"
    assert found.lines.keys() == {NOTHING, LOOSE, tight}
    straight = found.lines[NOTHING]
    assert [point.middle for point in straight] == [
        pytest.approx((0, 1), abs=1e-3), pytest.approx((1, 0), abs=1e-3)
    ]  # fmt: skip
    missed = exact_missed(kind, plan)
    loose = 0.03 if plan.guarantee.pure_epsilon is None else 0.01  # the corners of ρ are some
    for name, truth, gap in ((tight, missed, 0.01), (LOOSE, loosely_missed(plan), loose)):
        assert len(found.lines[name]) >= 40
        alphas = [point.middle[0] for point in found.lines[name]]
        assert (min(alphas), max(alphas)) == pytest.approx((0, 1), abs=1e-3)
        for point in found.lines[name]:
            alpha = min(max(point.middle[0], 0), 1)
            assert truth(alpha) - gap <= point.y[1]
            assert point.y[0] <= truth(alpha) + 1e-3


def loosely_missed(plan):
    """T(α) of all (ε, δ) that the best conversion of ρ gives, and of a pure ε."""
    rho, pure = rho_of(plan), plan.guarantee.pure_epsilon
    pairs = [(best_known(rho, delta), delta) for delta in np.geomspace(1e-15, 0.99, 300)]
    pairs += [] if pure is None else [(float(pure), 0.0)]

    return lambda alpha: missed_by(pairs, alpha)


def missed_by(pairs, alpha):
    """What pairs (ε, δ) leave of type II errors, each holding in both directions."""
    straight = [1 - d - math.exp(min(e, 700)) * alpha for e, d in pairs]
    return max(0.0, *straight, *(math.exp(-e) * (1 - d - alpha) for e, d in pairs))


@pytest.mark.parametrize("kind", PRICED)
def test_the_promise_in_words_has_the_power_of_the_best_test(shown, kind):
    made = shown[kind]
    said = made.seen.all("p", **{"class": "big"})[0].text
    (words,) = re.findall(r"notices a true difference in at most (\S+ %) of cases", said)
    missed = exact_missed(kind, made.plan)
    assert 1 - missed(ALPHA) <= number(words) <= 1 - missed(ALPHA) + 0.01
    assert "accepts false alarms in 5 % of cases" in said
