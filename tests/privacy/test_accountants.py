"""The contract of the accountants: each against exact convolution, atom by atom."""

import random
from fractions import Fraction

import pytest

from hedgerow.noise.loss import PairLoss
from hedgerow.privacy.accountant import contour, enumeration, lattice
from hedgerow.privacy.accountant.lattice_convolution import TooFineError
from tests.privacy import oracles_loss as oracle
from tests.privacy.losses import SMALL, gaussian, laplace, pair

WIDTHS = {lattice: 1e-10, contour: contour.WIDEST, enumeration: 1e-11}
EPSILONS = (-30.0, -2.5, -1.0, 0.0, 0.1, 0.3, 0.7, 1.0, 2.9, 4.0, 7.3, 9.0, 15.0)


def is_taken(accountant, losses):
    """Whether an accountant can tell a composition's δ."""
    if accountant is lattice:
        return losses != SMALL["no common unit to speak of"]
    coins = all(isinstance(loss, PairLoss) or (getattr(loss, "scale", 0) and loss.shift == 1)
                for loss, _ in losses)  # fmt: skip
    return coins or accountant is contour


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.sweep(4)
def test_the_bounds_hold_exact_convolution_and_are_narrow(name):
    """Of all accountants: one convolution judges them."""
    truth = [(epsilon, *oracle.enclosure(SMALL[name], epsilon)) for epsilon in EPSILONS]
    for accountant in WIDTHS:
        assert_bounds_hold(accountant, name, truth)


def assert_bounds_hold(accountant, name, truth):
    losses, seen, width = SMALL[name], 0, WIDTHS[accountant]
    if accountant is lattice and (lattice.common_unit(losses) or 1) > 1 / 8:
        width = 2e-12
    for epsilon, least, most in truth:
        if accountant is not lattice and most < 1e-60:  # nothing is above ε
            continue
        try:
            found = accountant.delta_bounds(losses, epsilon)
        except TooFineError:
            found = None
        assert (found is not None) == is_taken(accountant, losses)
        if found is None:
            continue
        low, high = map(oracle.mpf, found)
        assert low <= most + oracle.RESOLUTION
        assert high >= least - oracle.RESOLUTION
        assert high - low <= width * high
        if hasattr(accountant, "delta"):
            tolerance = 1e-7 if name.startswith("no common") else 1e-12
            off = abs(oracle.mpf(accountant.delta(losses, epsilon)) - least)
            assert off <= tolerance * abs(least) + oracle.RESOLUTION
        seen += 1
    assert seen >= 4 or not is_taken(accountant, losses)


def random_loss(rng):
    kind = rng.choice(["gaussian", "gaussian", "laplace", "pair"])
    ratio = Fraction(rng.randint(1, 12), rng.randint(1, 4))
    if kind != "pair":
        return (gaussian if kind == "gaussian" else laplace)(ratio, rng.randint(1, 3))
    return pair(ratio / 4, rng.choice([0, "1e-9", "1/7"]))


def test_the_bounds_hold_the_truth_on_random_compositions():
    rng = random.Random(20250801)
    for _ in range(20):
        losses = tuple((random_loss(rng), rng.randint(1, 2)) for _ in range(rng.randint(1, 2)))
        for epsilon in (rng.uniform(-2, 4), rng.uniform(4, 15)):
            lower, upper = lattice.delta_bounds(losses, epsilon)
            least, most = oracle.enclosure(losses, epsilon)
            assert lower <= least + oracle.RESOLUTION, (losses, epsilon)
            assert most <= upper + oracle.RESOLUTION, (losses, epsilon)
            assert upper - lower <= 1e-11 * upper, (losses, epsilon)
