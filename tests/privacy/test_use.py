"""One use of a mechanism: what is none, and how one is written down."""

import json
from fractions import Fraction

import pytest

from hedgerow.errors import BudgetError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.privacy.budget import Epsilon, EpsilonDelta
from hedgerow.privacy.neighbours import Norm
from hedgerow.privacy.use import Use, read_use


@pytest.mark.parametrize("times", [0, -1, 1.5, True])
def test_a_mechanism_is_used_at_least_once(times):
    with pytest.raises(BudgetError, match="at least once"):
        Use(DiscreteGaussian(1), times, ((1,),))


@pytest.mark.parametrize("shifts", [(), (0,), (1, 0), (0.5,)])
def test_counts_that_nobody_changes_need_no_noise(shifts):
    with pytest.raises(BudgetError, match="are public and need no noise"):
        Use(DiscreteGaussian(1), 1, (shifts,))


@pytest.mark.parametrize(
    "use",
    [
        Use(DiscreteGaussian("22/7"), 3, ((2, -2),)),
        Use(DiscreteLaplace("0.3"), 1, ((1,),)),
        Use(DiscreteGaussian(5), 2, (Norm(7),)),
        Use(EpsilonDelta("1/3", "1e-9"), 4, ((1,),)),
        Use(Epsilon("1/3"), 4, ((1,),)),
    ],
    ids=["Gaussian", "Laplace", "norm", "approximate guarantee", "pure guarantee"],
)
def test_a_use_that_is_written_down_is_read_back_exactly(use):
    assert read_use(json.loads(json.dumps(use.to_dict()))) == use


def test_the_times_of_a_use_multiply_its_costs():
    assert Use(DiscreteGaussian(4), 3, ((2, -1),)).rho == 3 * Fraction(5, 8)
    assert Use(DiscreteLaplace(4), 3, ((2, -1),)).pure_epsilon == 3 * Fraction(3, 4)
    assert Use(Epsilon("1/2"), 3, ((1,),)).rho == Fraction(3, 8)
    assert Use(EpsilonDelta("1/2", "1e-9"), 3, ((1,),)).rho is None


def test_an_unknown_mechanism_is_named():
    with pytest.raises(BudgetError, match="no mechanism is called 'gauss'"):
        read_use({"mechanism": "gauss", "times": 1})


def test_a_guarantee_draws_no_noise():
    with pytest.raises(BudgetError, match="draws no noise"):
        _ = Use(Epsilon(1), 1, ((1,),)).noise
