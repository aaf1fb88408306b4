"""Stated guarantees against the exact loss of small compositions, convolved atom by atom."""

import json
from collections import defaultdict
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import pytest

from hedgerow.errors import BudgetError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.use import Use


def real(value):
    return mpmath.mpf(value.numerator) / value.denominator


def energy(mechanism, x):
    """The exponent of the noise's law."""
    if isinstance(mechanism, DiscreteGaussian):
        return Fraction(x * x) / (2 * mechanism.sigma2)
    return Fraction(abs(x)) / mechanism.scale


@cache
def loss_atoms(mechanism, shift):
    """{loss: probability} of one draw against a draw moved by ``shift``; losses are rational.

    To 50 digits, as all that is exact here.
    """
    mass = {x: mpmath.exp(-real(energy(mechanism, x))) for x in range(-2500, 2501)}
    total = sum(mass.values())
    atoms: defaultdict[Fraction, Any] = defaultdict(mpmath.mpf)
    for x, weight in mass.items():
        atoms[energy(mechanism, x - shift) - energy(mechanism, x)] += weight / total
    return {loss: p for loss, p in atoms.items() if p > mpmath.mpf(10) ** -40}


@cache
def exact_law(profile):
    """The law of the loss of a composition with one case, every sum of losses kept apart."""
    law = {Fraction(0): mpmath.mpf(1)}
    for use in profile.uses:
        (shifts,) = use.changes
        for shift in shifts * use.times:
            atoms = loss_atoms(use.mechanism, shift)
            total: defaultdict[Fraction, Any] = defaultdict(mpmath.mpf)
            for loss, p in law.items():
                for more, q in atoms.items():
                    total[loss + more] += p * q
            law = total
    return law


def exact_delta(profile, epsilon):
    """E[(1 - e^{ε-L})₊] of a composition with one case."""
    return sum(
        p * (1 - mpmath.exp(epsilon - real(loss)))
        for loss, p in exact_law(profile).items()
        if loss > epsilon
    )


def gaussians(*variances, shifts=(1,), times=1):
    return Profile(tuple(Use(DiscreteGaussian(v), times, (shifts,)) for v in variances))


def laplaces(*scales, shifts=(1,), times=1):
    return Profile(tuple(Use(DiscreteLaplace(s), times, (shifts,)) for s in scales))


COMPOSITIONS = {
    "one narrow draw": gaussians("1/2"),
    "four depths, add-remove": gaussians(2, times=4),
    "three depths, replace": gaussians(4, shifts=(1, -1), times=3),
    "three contributions": gaussians(20, shifts=(3, -3), times=2),
    "unequal shares": gaussians(2, 4, 8),
    "one Laplace": laplaces(2),
    "Laplace, replace": laplaces(3, shifts=(1, -1), times=2),
    "many small Laplaces": laplaces(20, times=40),
    "both kinds": Profile(
        (Use(DiscreteGaussian(4), 2, ((1,),)), Use(DiscreteLaplace(2), 2, ((2, -2),)))
    ),
}


@pytest.mark.parametrize("name", COMPOSITIONS)
@pytest.mark.sweep(3)
def test_the_stated_epsilon_holds_in_exact_arithmetic(name):
    profile = COMPOSITIONS[name]
    for delta in ("1e-2", "1e-6", "1e-12"):
        with mpmath.workdps(50):
            stated = profile.epsilon(delta)
            assert exact_delta(profile, mpmath.mpf(stated)) <= mpmath.mpf(delta)


@pytest.mark.parametrize("name", ["four depths, add-remove", "three depths, replace"])
def test_half_of_the_stated_epsilon_would_be_a_lie(name):
    """The judge above can say no, and the statement is no empty one."""
    profile = COMPOSITIONS[name]
    with mpmath.workdps(50):
        half = mpmath.mpf(profile.epsilon("1e-6")) / 2
        assert exact_delta(profile, half) > mpmath.mpf("1e-6")


@pytest.mark.parametrize("name", ["one Laplace", "Laplace, replace"])
def test_the_pure_epsilon_is_the_largest_loss(name):
    profile = COMPOSITIONS[name]
    with mpmath.workdps(50):
        largest = real(profile.pure_epsilon)
        assert exact_delta(profile, largest) == 0
        assert exact_delta(profile, largest * 99 / 100) > 0


def test_costs_add_exactly():
    assert gaussians(2, times=4).rho == 1
    assert gaussians(4, shifts=(1, -1), times=3).rho == Fraction(3, 4)
    assert gaussians(2, 4, 8).rho == Fraction(7, 16)
    assert gaussians(3).pure_epsilon is None
    assert laplaces(3, shifts=(1, -1), times=2).pure_epsilon == Fraction(4, 3)
    # (2/2)²/2 for each cell of each of two uses, and 1/8 for each of the two Gaussians.
    assert COMPOSITIONS["both kinds"].rho == 2 + Fraction(1, 4)
    assert COMPOSITIONS["both kinds"].pure_epsilon is None


def test_many_small_pure_losses_are_stated_by_their_concentration():
    profile = laplaces(20, times=40)
    assert profile.pure_epsilon == 2
    assert profile.epsilon("1e-2") < 2
    assert profile.epsilon("1e-100") == 2


def test_a_float_delta_stands_for_the_smaller_of_its_two_readings():
    profile = gaussians(2)
    for delta in (1e-11, 1e-10, 0.1, 0.3):
        readings = profile.epsilon(Fraction(delta)), profile.epsilon(str(delta))
        assert profile.epsilon(delta) == pytest.approx(max(readings), rel=1e-12)


def test_less_delta_costs_more_epsilon():
    profile = gaussians(4, times=3)
    spent = [profile.epsilon(f"1e-{places}") for places in range(1, 40)]
    assert spent == sorted(spent)
    assert len(set(spent)) == len(spent)


@pytest.mark.parametrize("delta", [0, 1, "2", -0.5, float("nan"), "tiny"])
def test_a_delta_that_is_no_chance_is_refused(delta):
    with pytest.raises(BudgetError, match="delta"):
        gaussians(2).epsilon(delta)


def test_an_empty_composition_is_refused():
    with pytest.raises(BudgetError, match="name at least one"):
        Profile(())


def test_statements_round_up():
    assert gaussians(3).statement() == (
        "Used together, they satisfy ρ = 0.166667 zero-concentrated differential privacy."
    )
    said = "Used together, they satisfy ε = 0.333334 differential privacy."
    assert laplaces(3).statement() == said
    told = gaussians(3).statement("1e-6")
    epsilon = float(told.split("ε = ")[1].split()[0])
    assert gaussians(3).epsilon("1e-6") <= epsilon <= gaussians(3).epsilon("1e-6") * 1.00001
    assert told.endswith("at δ = 1e-06.")


def test_a_profile_is_written_down_exactly():
    written = json.loads(json.dumps(COMPOSITIONS["both kinds"].to_dict()))
    assert written == {
        "uses": [
            {"mechanism": "discrete-gaussian", "sigma2": "4", "times": 2, "shifts": [1]},
            {"mechanism": "discrete-laplace", "scale": "2", "times": 2, "shifts": [2, -2]},
        ],
        "is_worst": True,
        "rho": "9/4",
        "pure_epsilon": None,
    }
    assert laplaces(3).to_dict()["pure_epsilon"] == "1/3"
