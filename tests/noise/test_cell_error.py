"""The error of one cell against exact sums and integrals, and its shape in the precision."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import NoiseError
from hedgerow.noise import cell_error as gaussian_sums
from hedgerow.noise.cell_error import (
    FORMULA_FROM,
    DiscreteGaussianError,
    DiscreteLaplaceError,
    LaplaceError,
)
from hedgerow.noise.loss import precision_of
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace

ALL = [LaplaceError(), DiscreteLaplaceError(), DiscreteGaussianError()]
NAMES = ["laplace", "discrete-laplace", "discrete-gaussian"]
EVERY = pytest.mark.parametrize("error", ALL, ids=NAMES)
INTEGER = pytest.mark.parametrize("error", ALL[1:], ids=NAMES[1:])
GRID = 10.0 ** np.linspace(-7, 1.5, 69)


def moments(error, precision, count):
    """Bias, mean squared error and its two derivatives."""
    n = np.array([float(count)])
    asked = (error.bias, error.mse, error.mse_slope, error.mse_curvature)
    return [float(ask(precision, n)[0]) for ask in asked]


def exact_moments(energy, statistic, farthest, count):
    """The same by exact sums over |x| <= farthest: p(x) ∝ exp(-energy(x)), statistic = -d ln/dθ."""
    places = range(-farthest, farthest + 1)
    weights = [mp.exp(-energy(x)) for x in places]
    whole = mp.fsum(weights)

    def mean(values):
        return mp.fsum(v * w for v, w in zip(values, weights, strict=True)) / whole

    errors = [max(0, count + x) - count for x in places]
    squares = [e * e for e in errors]
    level = [mp.mpf(statistic(x)) for x in places]
    centre, mse = mean(level), mean(squares)
    slope = -mean([g * (y - centre) for g, y in zip(squares, level, strict=True)])
    curvature = mean([(g - mse) * (y - centre) ** 2 for g, y in zip(squares, level, strict=True)])
    return [mean(errors), mse, slope, curvature]


@pytest.mark.parametrize("count", [0, 1, 2, 7, 40])
@pytest.mark.parametrize("epsilon", [0.08, 0.5, 1.3, 5.0, 30.0])
def test_discrete_laplace_agrees_with_the_exact_sum(epsilon, count):
    with mp.workdps(40):
        farthest = int(100 / epsilon) + 45
        exact = exact_moments(lambda x: mp.mpf(epsilon) * abs(x), abs, farthest, count)
        found = moments(DiscreteLaplaceError(), epsilon, count)
        assert found == pytest.approx([float(e) for e in exact], rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("deviations", [0, 0.02, 1, 3, 7])
@pytest.mark.parametrize("rho", [0.5 / 70_000, 0.5 / 65_000, 0.001, 0.05, 0.7, 4.0, 40.0])
@pytest.mark.sweep(4)
def test_discrete_gaussian_agrees_with_the_exact_sum(rho, deviations):
    sigma = (2 * rho) ** -0.5
    count = round(deviations * sigma)
    with mp.workdps(30):
        farthest = int(11.5 * sigma) + 6
        exact = exact_moments(lambda x: mp.mpf(rho) * x * x, lambda x: x * x, farthest, count)
        found = moments(DiscreteGaussianError(), rho, count)
        assert found == pytest.approx([float(e) for e in exact], rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("count", [0, 3, 25.5])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 7.0])
@pytest.mark.sweep(3)
def test_laplace_agrees_with_the_integral(epsilon, count):
    """Ko et al., Propositions 1 and 2."""

    def mse(e):
        cut = mp.exp(-count * e) / 2 * count**2
        body = mp.quad(
            lambda x: x * x * e / 2 * mp.exp(-abs(x) * e), [-count, -count / 8, 0, mp.inf]
        )
        return cut + body

    with mp.workdps(40):
        e = mp.mpf(epsilon)
        bias = mp.quad(lambda x: (x - count) * e / 2 * mp.exp(-x * e), [count, mp.inf])
        exact = [bias, mse(e), mp.diff(mse, e), mp.diff(mse, e, 2)]
        found = moments(LaplaceError(), epsilon, count)
        assert found == pytest.approx([float(x) for x in exact], rel=1e-13)


def test_table_and_formula_meet():
    rho = 0.5 / FORMULA_FROM
    counts = np.array([0.0, 1, 100, 256, 1000, 3000, 1e9])
    for ask in ("bias", "mse", "mse_slope", "mse_curvature"):
        formula = getattr(DiscreteGaussianError(), ask)(rho, counts)
        table = getattr(DiscreteGaussianError(), ask)(rho * (1 + 2e-16), counts)
        np.testing.assert_allclose(formula, table, rtol=1e-11, atol=1e-300)


def test_every_term_of_the_formula_is_right_where_it_still_matters(monkeypatch):
    """At sigma2 = 100 the third term is some 1e-9, and what is left out 1e-11."""
    rho, counts = 0.005, np.arange(0.0, 31)
    asked = [
        getattr(DiscreteGaussianError(), f"mse{what}") for what in ("", "_slope", "_curvature")
    ]
    asked.append(DiscreteGaussianError().bias)
    table = [ask(rho, counts) for ask in asked]
    monkeypatch.setattr(gaussian_sums, "FORMULA_FROM", 50.0)
    for ask, exact in zip(asked, table, strict=True):
        formula = ask(rho, counts)
        assert (formula != exact).any()
        np.testing.assert_allclose(formula, exact, rtol=1e-10)


@EVERY
def test_without_a_count_clipping_halves_the_error_and_far_from_zero_it_is_gone(error):
    for precision in GRID:
        nothing, far = error.mse(precision, np.array([0.0, 1e12]))
        assert nothing == pytest.approx(far / 2, rel=1e-13)
        assert error.bias(precision, np.array([1e12]))[0] == 0
        assert error.variance(precision, np.array([1e12]))[0] == far


@INTEGER
def test_far_from_zero_the_error_is_the_variance_of_the_noise(error):
    for parameter in ("1/20", "1/3", "1", "7", "300", "1e6"):
        kind = DiscreteGaussian if error == DiscreteGaussianError() else DiscreteLaplace
        noise = kind(parameter)
        assert kind.cell_error == error
        far = error.mse(float(precision_of(noise)), np.array([1e13]))[0]
        assert far == pytest.approx(noise.noise_variance, rel=1e-12)


@EVERY
def test_the_error_is_strictly_convex_and_falls_in_the_precision(error):
    """Proved for the Laplace kinds; for the discrete Gaussian this grid is the evidence."""
    counts = np.array([0.0, 1, 2, 3, 5, 10, 30, 100, 1000, 10_000, 1e6])
    for precision in GRID:
        slope = error.mse_slope(precision, counts)
        curvature = error.mse_curvature(precision, counts)
        assert (slope < 0).all()
        assert (curvature > 0).all()
        near = precision * (1 + 1e-5), precision * (1 - 1e-5)
        up, down = (error.mse(p, counts) for p in near)
        np.testing.assert_allclose((up - down) / (2e-5 * precision), slope, rtol=2e-6)
        up, down = (error.mse_slope(p, counts) for p in near)
        np.testing.assert_allclose((up - down) / (2e-5 * precision), curvature, rtol=2e-6)


@EVERY
def test_the_error_grows_with_the_count_and_the_bias_falls(error):
    counts = np.arange(0.0, 60)
    for precision in (1e-6, 0.01, 0.2, 1.0):
        assert (np.diff(error.mse(precision, counts)) >= 0).all()
        assert (np.diff(error.bias(precision, counts)) <= 0).all()
        assert (np.diff(error.bias(precision, counts[:5])) < 0).all()


@given(st.floats(1e-6, 1e3), st.floats(0, 1e9))
def test_the_error_of_laplace_noise_lies_between_one_and_two_scales_squared(epsilon, count):
    mse = LaplaceError().mse(epsilon, np.array([count]))[0] * epsilon**2
    assert 1 - 1e-12 <= mse <= 2


@INTEGER
def test_integer_noise_on_a_part_of_a_record_is_refused(error):
    with pytest.raises(NoiseError, match="whole counts"):
        error.mse(1.0, np.array([0.5]))


@EVERY
@pytest.mark.parametrize("precision", [0.0, -1.0, float("nan"), float("inf")])
def test_a_precision_that_is_none_is_refused(error, precision):
    with pytest.raises(NoiseError, match="precision"):
        error.mse(precision, np.array([1.0]))


@EVERY
@pytest.mark.parametrize("count", [-1.0, float("nan")])
def test_a_negative_count_is_refused_and_not_shown(error, count):
    with pytest.raises(NoiseError, match="at least 0") as caught:
        error.bias(1.0, np.array([count]))
    assert str(count) not in str(caught.value)
