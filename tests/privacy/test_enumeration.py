"""δ(ε) by enumeration against exact convolution, the contour, and its own limits."""

import math
import random
from fractions import Fraction

import pytest

from hedgerow.noise.discrete_laplace import DiscreteLaplace
from hedgerow.noise.loss import gather_losses
from hedgerow.privacy.accountant import contour, enumeration
from hedgerow.privacy.profile import compose
from tests.privacy.losses import gaussian, laplace


def cube(shares):
    return gather_losses((laplace(2 / share), 2) for share in shares)


@pytest.mark.parametrize("seed", range(4))
def test_fifteen_scales_agree_with_the_contour(seed):
    chosen = random.Random(seed)
    losses = cube(Fraction(chosen.randrange(200, 900), 10_007) for _ in range(15))
    most = float(sum(times / loss.scale for loss, times in losses))
    for epsilon in (0.1 * most, 0.5 * most, 0.9 * most):
        low, high = enumeration.delta_bounds(losses, epsilon)
        other_low, other_high = contour.delta_bounds(losses, epsilon)
        assert other_low <= high
        assert low <= other_high
        assert high - low <= 1e-9 * low


def test_few_uneven_uses_have_an_exact_price_below_their_sum():
    """Two of three scales have nearly all of the budget; no common unit, and no integral."""
    profile = compose((DiscreteLaplace(Fraction(s)), 2) for s in ("2.0003", "700.07", "1301.1"))
    chance = math.prod(1 / (1 + math.exp(-float(1 / u.noise.scale))) ** 2 for u in profile.uses)
    assert chance > 0.02
    pure = float(profile.pure_epsilon)
    delta = 1e-6  # P of the largest sum times 1 - e^(ε - sum), there being no other above ε
    assert profile.epsilon(delta) == pytest.approx(pure + math.log1p(-delta / chance), rel=1e-9)
    assert profile.epsilon(delta) < pure - 1e-5


@pytest.mark.parametrize(
    "losses",
    [
        (),
        ((gaussian(3), 1),),
        ((laplace(3, 2), 1),),
        ((laplace(3), 501),),
        ((laplace("1/100"), 4),),
        tuple((laplace(Fraction(k, 7)), 1) for k in range(20, 60)),
    ],
    ids=["none", "gaussian", "three atoms", "many", "large", "distinct"],
)
def test_what_is_not_a_few_coins_is_handed_on(losses):
    assert enumeration.delta_bounds(losses, 0.1) is None
