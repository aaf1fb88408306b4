"""Cumulants and characteristic functions against mpmath; the sieve against every node."""

import itertools
import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hedgerow.noise.loss import GaussianLoss, PairLoss
from hedgerow.privacy.accountant.contour_nodes import Folded, Smoothed
from hedgerow.privacy.accountant.contour_sum import Product, _polar, node_blocks, surviving_nodes
from hedgerow.privacy.accountant.cumulant import UNIT_ROUNDOFF, cumulant, cumulant_error, tilt_loss
from tests.privacy.losses import gaussian, laplace, pair

mp = mpmath.MPContext()
mp.dps = 50

LOSSES = [
    gaussian("1/100"),
    gaussian("1/3", 4),
    gaussian("99/100"),
    gaussian(1, 3),
    gaussian("26/10"),
    gaussian(9),
    gaussian("4567/100", 20),
    laplace("1/20"),
    laplace(3),
    laplace(3, 2),
    laplace(70, 60),
    pair("1/3", "1/100"),
    pair(8, "99/100"),
]
TILTS = [0.011, 0.5, 1.73, 12.5]


def atoms(loss):
    """[(x, P(x) without tilt)], as `tilt_loss` counts: up, or down from the largest loss."""
    if isinstance(loss, GaussianLoss):
        reach = int(16 * math.sqrt(loss.sigma2)) + 13 * loss.shift + 20
        sigma2 = mp.mpf(loss.sigma2.numerator) / loss.sigma2.denominator
        weights = [(x, mp.exp(-x * x / (2 * sigma2))) for x in range(-reach, reach + 1)]
        total = mp.fsum(w for _, w in weights)
        return [(x, w / total) for x, w in weights]
    if isinstance(loss, PairLoss):
        epsilon = mp.mpf(loss.epsilon.numerator) / loss.epsilon.denominator
        mass = 1 - mp.mpf(loss.delta.numerator) / loss.delta.denominator
        return [(0, mass / (1 + mp.exp(-epsilon))), (1, mass / (1 + mp.exp(epsilon)))]
    q = mp.exp(-mp.mpf(loss.scale.denominator) / loss.scale.numerator)
    found = {x: mp.mpf(0) for x in range(loss.shift + 1)}
    for x in range(-4000, 4001):
        found[min(max(x, 0), loss.shift)] += (1 - q) / (1 + q) * q ** abs(x)
    return list(found.items())


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.sweep(4)
def test_transforms_are_right_within_their_own_bounds(loss, tilt):
    part = tilt_loss(loss, tilt)
    step, origin = (mp.mpf(v.numerator) / v.denominator for v in (abs(loss.step), part.origin))
    step *= math.copysign(1, part.step)
    masses = [(x, p * mp.exp(tilt * (origin + step * x))) for x, p in atoms(loss)]
    total = mp.fsum(p for _, p in masses)
    moment = float(cumulant(((loss, 1),), np.array([tilt]))[0])
    assert abs(moment - mp.log(total)) <= cumulant_error(((loss, 1),), tilt)
    spread = mp.fsum(p * abs(x - part.centre) for x, p in masses) / total
    assert spread <= part.spread * (1 + 1e-9) + 1e-25
    angles = np.array([0.0, 1e-3, 0.3, -1.0, 2.0, 3.1, math.pi])
    computed = np.exp(part.log_characteristic(angles))
    for angle, value in zip(angles, computed, strict=True):
        turn = mp.mpf(angle) / mp.pi
        exact = mp.fsum(p * mp.expjpi(turn * (x - mp.mpf(part.centre))) for x, p in masses) / total
        assert abs(complex(value) - exact) <= part.error * UNIT_ROUNDOFF
        bound = mp.exp(-2 * part.sharpness * mp.sin(mp.mpf(angle) / 2) ** 2)
        assert abs(exact) <= bound * (1 + mp.mpf(10) ** -25)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if not isinstance(loss, GaussianLoss)])
def test_the_sharpness_of_a_geometric_loss_is_the_chance_of_neighbours(loss):
    masses = dict(atoms(loss))
    step = mp.mpf(loss.step.numerator) / loss.step.denominator
    bent = {x: p * mp.exp(-0.5 * step * x) for x, p in masses.items()}
    total = mp.fsum(bent.values())
    expected = mp.fsum(p * bent.get(x + 1, 0) for x, p in bent.items()) / total**2
    assert tilt_loss(loss, 0.5).sharpness == pytest.approx(float(expected), rel=1e-8, abs=0)
    assert tilt_loss(loss, 0.5).sharpness < expected


def test_the_error_of_a_product_covers_angles_of_many_turns():
    gaussians = (gaussian("50/7"), 10), (gaussian("2000/17", 3), 5)
    # near joint revivals, where both are near whole turns
    heights = [50.0, 2 * math.pi * 50 * 400, 2 * math.pi * 2000 * 50 * 16 + 0.01]
    coins = (
        (laplace("50/7"), 9),
        (pair("1/12", "1/9"), 5),
        (laplace("400/7"), 2),
    )
    for losses, places in (
        (gaussians, heights),
        (coins, [0.0, *heights]),
        (gaussians + coins, [7.0]),
    ):
        largest = max(errors_of_a_product(losses, 1.75, places))
        assert len(places) == 1 or largest > 1e-14  # the turns did cost digits


def errors_of_a_product(losses, tilt, heights):
    """How far the product is off at each height, having seen that the bounds cover it."""
    factors = tuple((tilt_loss(loss, tilt), times) for loss, times in losses)
    # No lag: its own rounding would hide that of the turns.
    modulus, angle, error = _polar(Product(factors, Fraction(0)), np.array(heights))
    for place, height in enumerate(heights):
        exact = mp.mpf(1)
        for (loss, times), (part, _) in zip(losses, factors, strict=True):
            step = mp.mpf(loss.step.numerator) / loss.step.denominator
            step *= math.copysign(1, part.step)
            masses = [(x, p * mp.exp(tilt * step * x)) for x, p in atoms(loss)]
            phi = mp.fsum(p * mp.expj(mp.mpf(height) * step * x) for x, p in masses)
            exact *= (phi / mp.fsum(p for _, p in masses)) ** times
        wrong = float(abs(mp.mpf(modulus[place]) * mp.expj(mp.mpf(angle[place])) - exact))
        assert wrong <= error[place]
        yield wrong


@pytest.mark.parametrize("loss", LOSSES[:7], ids=str)
def test_the_sharpness_of_a_gaussian_is_nearly_the_best_constant(loss):
    """|φ(v)| = 1 - B v²/2 + …: a larger constant would be wrong at small angles."""
    part = tilt_loss(loss, 0.5)
    assert part.sharpness > 1e-20
    angle = np.array([1e-3 / max(1.0, math.sqrt(part.sharpness))])
    fallen = -part.log_characteristic(angle).real[0]
    if fallen > 1e-12:
        assert fallen == pytest.approx(2 * part.sharpness * np.sin(angle[0] / 2) ** 2, rel=1e-3)


def test_a_huge_variance_is_a_continuous_gaussian():
    loss = gaussian(10**12, 3000)
    tilts = np.array([0.0, 1.0, 1e3, 1e6])
    expected = (tilts**2 + tilts) * 9e6 / 2e12
    assert cumulant(((loss, 7),), tilts) == pytest.approx(7 * expected, rel=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_the_sieve_drops_no_node_that_it_should_keep(seed):
    chosen = random.Random(seed)
    waves = [
        (10 ** chosen.uniform(-3, 1), 10 ** chosen.uniform(-1, 3))
        for _ in range(chosen.choice([0, 1, 2, 5, 30]))
    ]
    spacing, last = 10 ** chosen.uniform(-2, 0.5), 100_000
    rooms = {block: chosen.uniform(-1, 30) for block in node_blocks(last)}
    found = surviving_nodes(waves, spacing, last, lambda *block: rooms[block], last + 1)
    nodes = np.arange(last + 1)
    spent = np.zeros(last + 1)
    for step, strength in waves:
        spent += 2 * strength * np.sin(nodes * spacing * step / 2) ** 2
    allowed = np.zeros(last + 1)
    for (start, stop), room in rooms.items():
        allowed[start:stop] = room
    wanted = set(nodes[(spent < allowed - 1e-6) & (allowed > 0)])
    idle = set(nodes[(spent > allowed + 1e-3 * (1 + allowed)) | (allowed <= 0)])
    assert np.all(np.diff(found) > 0)
    assert wanted <= set(found)
    assert not idle & set(found)


def test_the_sieve_gives_up_in_time():
    assert surviving_nodes([], 0.1, 1 << 40, lambda *_: 1.0, 1 << 16) is None
    assert surviving_nodes([(1e3, 50.0)], 1e-6, 1 << 40, lambda *_: 1.0, 1 << 16) is None


def test_the_folded_weight_is_the_sum_over_all_periods():
    unit, gap, tilt = Fraction(1, 2), Fraction(1, 5), 1.3
    kernel = Folded.of(unit, gap)
    heights = np.array([0.0, 0.7, 3.0, 6.2])
    terms = 200_000
    shifts = 2 * math.pi * np.arange(-terms, terms + 1) / float(unit)
    for height, weight in zip(heights, kernel.weights(tilt, heights)[0], strict=True):
        points = tilt + 1j * (height + shifts)
        # e^(s r) of the lattice point y = ε + r is periodic but for this turn
        summed = np.sum(np.exp(float(gap) * points) / (points * (points + 1)))
        assert weight == pytest.approx(summed * np.ones(1)[0], rel=1e-6)
        assert abs(weight) <= kernel.envelope(tilt, np.array([height]))[0] * (1 + 1e-12)


def test_the_envelopes_bound_their_weights_and_fall():
    heights = np.linspace(0, math.pi / 0.5, 1001)
    folded = Folded.of(Fraction(1, 2), Fraction(1, 5))
    bound = folded.envelope(0.4, heights)
    assert np.all(np.abs(folded.weights(0.4, heights)) <= bound * (1 + 1e-12))
    assert np.all(np.diff(bound) <= 0)
    smoothed, heights = Smoothed(0.01), np.linspace(0, 5000, 20001)
    bound = smoothed.envelope(3.0, heights)
    assert np.all(np.abs(smoothed.weights(3.0, heights))[1:] <= bound * (1 + 1e-12))
    assert np.all(np.diff(bound) <= 0)
    tail = np.trapezoid(bound[10000:], heights[10000:]) / math.pi
    assert tail <= smoothed.beyond(3.0, heights[10000])


def mean_modulus(terms):
    """E|V_1 + … + V_n| of independent uniforms on [-1, 1], exactly (Irwin and Hall)."""
    total = sum(
        (-1) ** k * math.comb(terms, k) * max(Fraction(terms, 2) - k, Fraction(0)) ** (terms + 1)
        for k in range(terms + 1)
    )
    return 4 * total / math.factorial(terms + 1)


def test_the_constant_of_the_lower_average():
    factors, half = Smoothed.FACTORS, 2 * Smoothed.LARGEST_WIDTH
    ratio = mean_modulus(2 * factors) / mean_modulus(factors)
    assert ratio == Fraction(7435, 5292)
    least = float(ratio) / (math.cosh(half) * math.sinh(half) / half) - 1
    assert least > 1 / Smoothed.EXCESS


def test_the_two_averages_enclose_every_kink():
    """k̂ applied to single losses: δ of a loss certain to be ℓ, averaged by quadrature on a grid."""
    width, points = 0.02, 81
    grid = np.linspace(-width, width, points)
    box = np.full(points, 1.0 / points)
    density = box
    for _ in range(Smoothed.FACTORS - 1):
        density = np.convolve(density, box)
    steps = np.arange(density.size) - density.size // 2
    shift = steps * (grid[1] - grid[0])
    weights = density * np.exp(-shift / 2)
    weights /= weights.sum()  # = b̂(1/2) up to the grid
    once = dict(zip(steps.tolist(), weights.tolist(), strict=True))
    twice = dict(enumerate(np.convolve(weights, weights), start=2 * int(steps[0])))
    spacing = grid[1] - grid[0]

    def averaged(law, above):
        return sum(p * -math.expm1(-max(above - k * spacing, 0.0)) for k, p in law.items())

    for above in itertools.chain(np.linspace(-0.2, 0.2, 41), [0.001, -0.001]):
        truth = -math.expm1(-max(above, 0.0))
        first, second = averaged(once, above), averaged(twice, above)
        assert truth <= first * (1 + 1e-9) + 1e-15
        assert (1 + Smoothed.EXCESS) * first - Smoothed.EXCESS * second <= truth + 1e-12
