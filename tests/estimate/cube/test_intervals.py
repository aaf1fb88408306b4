"""Intervals of a cube's estimates against the exact law of their error."""

from fractions import Fraction

import numpy as np
import pytest

from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.intervals import Confidence, Steps
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from tests.estimate.cube.dense_cubes import cuboid_sums, dense_gain, random_axis

TWO, THREE = np.array([0, 2]), np.array([0, 3])
FOUR_OF_TWO, NINE_OF_THREE = np.array([0, 2, 4]), np.array([0, 3, 6, 9])
SHAPES = {
    "(2) × (2)": [[TWO], [TWO]],
    "(2, 2) × (2, 2)": [[TWO, FOUR_OF_TWO], [TWO, FOUR_OF_TWO]],
    "(3, 3) × (2)": [[THREE, NINE_OF_THREE], [TWO]],
}
STEPS = {"same": (1, 1), "falling": (4, 4), "rising": (1 / 4, 1 / 4), "crossed": (4, 1 / 4)}
"""By how much variances grow from a level of each axis to the next finer one."""


def covered(noises, found, reaches, blur=2e-3):
    """P(|S| ≤ reach) of S = Σ coefficient · draw for each reach, from below and without sampling.

    With φ the characteristic function of S, and U a sum of four uniforms of ± blur/4, which is
    never beyond ± blur, P(|S| ≤ r) is at least P(|S + U| ≤ r - blur), the integral over the line of
    φ(t) φ_U(t) sin((r - blur)t)/πt. Spacing 2π/period adds what S + U has beyond the period less r;
    what is left out beyond ``last`` is below 2e-5, as φ_U falls like (4/(blur t))⁴.
    """
    deviation = np.sqrt(sum(noises[c].noise_variance * (a @ a) for c, a in found.items()))
    blur *= max(deviation, 1.0)
    widest = max(np.abs(a).max() * noises[c].tail_bound(1e-12) for c, a in found.items())
    period, last = max(reaches) + 2 * widest + 14 * deviation + 1, 40 / blur
    t = np.arange(1, np.ceil(last * period / (2 * np.pi))) * (2 * np.pi / period)
    transform = np.sinc(blur * t / 4 / np.pi) ** 4 / t
    for c, a in found.items():
        each, often = np.unique(np.abs(a).round(12), return_counts=True)
        for coefficient, times in zip(each, often, strict=True):
            transform *= characteristic(noises[c], coefficient * t) ** times
    inside = np.maximum(np.array(reaches) - blur, 0.0)
    return [r * 2 / period + 4 / period * (transform @ np.sin(r * t)) - 2e-5 for r in inside]


def characteristic(noise, angle):
    """E e^(i·angle·X), from the definition of the noise."""
    if isinstance(noise, DiscreteLaplace):
        q = np.exp(-1 / float(noise.scale))
        return (1 - q) ** 2 / ((1 - q) ** 2 + 4 * q * np.sin(angle / 2) ** 2)
    sigma2 = float(noise.sigma2)
    x = np.arange(1, 9)
    if sigma2 < 1:
        weights = np.exp(-(x**2) / (2 * sigma2))
        return 1 - sum(2 * w * (1 - np.cos(k * angle)) for w, k in zip(weights, x, strict=True)) / (
            1 + 2 * weights.sum()
        )
    turned = angle - 2 * np.pi * np.rint(angle / (2 * np.pi))  # Poisson summation
    terms = [np.exp(-sigma2 / 2 * (turned - 2 * np.pi * k) ** 2) for k in (-1, 0, 1)]
    return sum(terms) / (1 + 2 * np.exp(-2 * np.pi**2 * sigma2))


MECHANISMS = {
    "gaussian": (DiscreteGaussian, 1, ["0.1", "0.5", "4", "25"]),
    "laplace": (DiscreteLaplace, 1 / 2, ["0.3", "1", "3"]),
}
"""Of each kind of noise what a variance is of its parameter, and parameters."""
PARAMETERS = [(kind, each) for kind, (_, _, every) in MECHANISMS.items() for each in every]


def coverages(name, steps, public, kind, parameter, level=0.95):
    """Coverage of each measured cuboid; ``parameter`` is the smallest of all."""
    shape, (mechanism, power, _) = CubeShape.of(SHAPES[name]), MECHANISMS[kind]
    given = shape.total if public else None
    growth = {
        c: np.prod([s ** (power * k) for s, k in zip(STEPS[steps], c, strict=True)])
        for c in shape.cuboids()
        if c != given
    }
    noises = {
        c: mechanism(Fraction(g / min(growth.values())) * Fraction(parameter))
        for c, g in growth.items()
    }
    gains, _ = dense_gain(shape, {c: n.envelope.variance for c, n in noises.items()}, given)
    for cuboid, noise in noises.items():
        cell = cuboid_sums(shape, cuboid)[0]
        found = {c: cell @ gain for c, gain in gains.items() if c != "public"}
        variance = sum(noises[c].noise_variance * (a @ a) for c, a in found.items())
        half_width = Confidence(level).half_width(noise, np.array([variance]), 1)[0]
        # The nearest integer is always inside: an error below 1/2 never misses.
        yield covered(noises, found, [max(half_width, 0.5)])[0]


@pytest.mark.slow
@pytest.mark.sweep(4)
@pytest.mark.parametrize("public", [False, True], ids=["measured", "public"])
@pytest.mark.parametrize("name", list(SHAPES)[1:])
@pytest.mark.parametrize(("kind", "parameter"), PARAMETERS)
def test_intervals_of_a_cube_cover_by_the_exact_law_of_the_error(kind, parameter, name, public):
    """A part of the study in `docs/proofs`, "Intervals"."""
    steps = "crossed" if parameter in ("0.1", "1", "25") else "same"
    found = list(coverages(name, steps, public, kind, parameter))
    assert min(found) >= 0.95
    if parameter in ("25", "3"):
        assert max(found) <= 0.98


def test_an_estimate_that_is_less_exact_than_its_own_count_keeps_a_sane_interval():
    """Noise that is nearly always 0 says nothing of the tails of others: q √(V s²/v) is 400."""
    noise = DiscreteGaussian("0.02")
    assert noise.noise_variance < 1e-10
    assert noise.tail_bound(0.05) == 0
    assert Confidence().half_width(noise, np.array([1e-3]), 1)[0] == pytest.approx(
        2 * 1.959964 * np.sqrt(0.02) + 0.5, rel=1e-6
    )
    normal = 1.959964 * np.sqrt(0.5) + 0.5
    assert Confidence().half_width(noise, np.array([0.5]), 1)[0] == pytest.approx(normal, rel=1e-6)
    assert Confidence().half_width(noise, np.array([100.0]), 1)[0] == pytest.approx(20.1, abs=0.01)


@pytest.mark.parametrize("level", [0.95, 0.999])
@pytest.mark.parametrize("parameter", ["0.1", "0.3", "0.5", "0.8", "2", "3.4"])
def test_a_draw_that_counts_more_than_a_record_is_blurred_by_the_own_one(parameter, level):
    """The worst that is proved possible: all that is not the own draw's is one precise draw's."""
    least = DiscreteGaussian(parameter)
    for ratio, h in [(10, 0.5), (30, 0.05), (30, 0.3), (1000, 0.01), (1000, 0.05), (1000, 0.4)]:
        own = DiscreteGaussian(ratio * Fraction(parameter))
        variance = h * own.noise_variance
        coefficient = np.sqrt((1 - h) * variance / least.noise_variance)
        steps = Steps(least.noise_variance, is_exact=True)
        half_width = Confidence(level).half_width(own, np.array([variance]), 1, steps=steps)[0]
        found = {"own": np.array([h]), "other": np.array([coefficient])}
        share = covered({"own": own, "other": least}, found, [half_width])[0]
        assert share >= level - 4e-5  # what `covered` leaves out
        if variance >= 25 and h * least.noise_variance >= 0.25:
            assert share <= 1 - 0.6 * (1 - level)


def test_a_draw_is_not_blurred_where_the_own_one_is_unknown_or_laplace():
    steps = Steps(1.0, is_exact=True)
    wide = DiscreteGaussian(1000)
    exact = Confidence().half_width(wide, np.array([300.0]), 1, steps=steps)[0]
    bound = Confidence().half_width(wide, np.array([300.0]), 1, steps=Steps(1.0, is_exact=False))[0]
    assert bound - exact == pytest.approx(np.sqrt(210) / 2 - 0.5)  # 0.3 · 0.7 · 1,000, not blurred
    laplace = DiscreteLaplace(25)
    own = laplace.noise_variance
    variance = np.array([0.3 * own])
    alone = Confidence().half_width(laplace, variance, 1)[0]
    beside = Confidence().half_width(laplace, variance, 1, steps=steps)[0]
    assert beside - alone == pytest.approx(np.sqrt(0.21 * own) / 2 - 0.35)


def excesses(shape, variances, public):
    """For each measured cuboid: by how much the coefficient of a draw that is not the cell's own
    is above 1 - h at most, and how far that of its own is from h = V/v.
    """
    exact = [c for c in variances if public and all(a <= b for a, b in zip(c, public, strict=True))]
    measured = {c: v for c, v in variances.items() if c not in exact}
    gains, covariance = dense_gain(shape, measured, public)
    for cuboid, variance in measured.items():
        sums = cuboid_sums(shape, cuboid)
        h = np.einsum("ij,jk,ik->i", sums, covariance, sums) / variance
        for other in measured:
            found = sums @ gains[other]
            if other == cuboid:
                yield -1.0, np.abs(np.diag(found) - h).max()
                np.fill_diagonal(found, 0.0)
            yield (np.abs(found).max(axis=1) - (1 - h)).max(), 0.0


@pytest.mark.parametrize("kind", ["measured", "total", "level"])
@pytest.mark.parametrize("seed", range(15))
def test_the_own_draw_counts_h_and_no_other_more_than_what_is_left(kind, seed):
    """`docs/proofs`, "Coefficients of an estimate": for product variances, any cuboid public."""
    rng = np.random.default_rng(seed)
    axes = 1 + seed % 3
    shape = CubeShape.of(
        [
            random_axis(rng, rng.integers(1, 4 if axes < 3 else 3), [5, 3, 2][axes - 1])
            for _ in range(axes)
        ]
    )
    own = [4.0 ** rng.uniform(-2, 2, axis.depth + 1) for axis in shape.axes]
    variances = {c: np.prod([v[k] for v, k in zip(own, c, strict=True)]) for c in shape.cuboids()}
    public = {
        "measured": None,
        "total": shape.total,
        "level": tuple(int(rng.integers(0, a.depth + 1)) for a in shape.axes),
    }[kind]
    if public == shape.finest:
        return
    found = np.array(list(excesses(shape, variances, public)))
    assert found[:, 0].max() < 1e-9
    assert found[:, 1].max() < 1e-9
