"""What projection does to the error of a family: Zhu et al.'s figures, exact sums, simulation."""

from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import erf, exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gamma

from hedgerow.noise.cell_error import DiscreteGaussianError, DiscreteLaplaceError, LaplaceError
from studies.zhu.projection_error import (
    GeometricNorm,
    LaplaceNorm,
    LaplaceProjection,
    bias_bound,
    projected_variance,
    projection_distance,
    projection_masses,
)
from studies.zhu.skewness import bias_of_clipping, least_bias_of_clipping

NEW_MEXICO = {"smallest": 348, "total": 7_289_112}
ERRORS = [LaplaceError(), DiscreteLaplaceError(), DiscreteGaussianError()]


def geometric(scale, farthest):
    q = exp(-1 / scale)
    return q ** np.abs(np.arange(-farthest, farthest + 1)) * (1 - q) / (1 + q)


def test_the_bound_for_new_mexico_is_what_the_papers_formula_gives():
    """The paper's text says 0.29; its formula gives 3.758e-7 · 7,288,764."""
    norm = LaplaceNorm(33, 5.0)
    assert norm.outside(348) == pytest.approx(3.758e-7, rel=1e-4)
    assert bias_bound(norm, **NEW_MEXICO) == pytest.approx(2.739, abs=5e-4)


def test_the_sharper_bound_holds_and_is_far_below_the_papers():
    """A family small enough that clipping is frequent, so that a wrong bound would be seen."""
    assert LaplaceNorm(33, 5.0).mean_outside(348) < 1e-3
    rng = np.random.default_rng(5)
    counts = np.array([1.0, 1.0, 40.0])
    noisy = counts + rng.laplace(scale=2.0, size=(200_000, 3))
    ordered = np.sort(noisy, axis=1)[:, ::-1]
    levels = (np.cumsum(ordered, axis=1) - counts.sum()) / np.arange(1, 4)
    kept = (ordered > levels).sum(axis=1)
    projected = np.maximum(noisy - levels[np.arange(len(noisy)), kept - 1][:, None], 0)
    bias = np.abs((projected - counts).mean(axis=0)).max()
    assert 0.3 < bias < LaplaceNorm(3, 2.0).mean_outside(1)
    assert bias < bias_bound(LaplaceNorm(3, 2.0), 1, 42)


@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 7), (2, 0), (3, 5), (9, 20), (25, 31)])
def test_the_geometric_norm_is_the_papers_recursion_in_fractions(cells, radius):
    a = Fraction(exp(-1 / 3))

    @cache
    def h(i, r):
        if i == 0:
            return 1
        return sum(h(i - 1, r - abs(v)) for v in range(-r, r + 1))

    ratio = (1 - a) / (1 + a)
    tail = 2 * a ** (radius + 1) / (1 + a) * sum(h(i, radius) * ratio**i for i in range(cells))
    assert GeometricNorm(cells, 3.0).outside(radius) == pytest.approx(float(tail), rel=1e-13)


@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 3), (2, 1), (5, 12), (12, 60)])
def test_the_mean_outside_the_ball_is_an_exact_convolution(cells, radius):
    one = geometric(3.0, 300)[300:] * np.r_[1, np.full(300, 2)]
    law = np.array([1.0])
    for _ in range(cells):
        law = np.convolve(law, one)
    sums = np.arange(len(law))
    norm = GeometricNorm(cells, 3.0)
    beyond = sums > radius
    assert norm.outside(radius) == pytest.approx(law[beyond].sum(), rel=1e-11)
    assert norm.mean_outside(radius) == pytest.approx((sums * law)[beyond].sum(), rel=1e-11)


@pytest.mark.parametrize(("cells", "radius"), [(1, 0), (1, 5), (4, 3), (30, 90)])
def test_the_laplace_norm_is_a_gamma_variable(cells, radius):
    law = gamma(cells, scale=2.0)
    norm = LaplaceNorm(cells, 2.0)
    assert norm.outside(radius) == pytest.approx(law.sf(radius), rel=1e-12)
    mean = law.expect(lambda x: x, lb=radius, ub=radius + 400)
    assert norm.mean_outside(radius) == pytest.approx(mean, rel=1e-7)


@pytest.mark.slow
def test_hundreds_of_cells_and_records_overflow_nothing():
    near, far = GeometricNorm(400, 1.5), GeometricNorm(400, 1.5)
    assert 1 - 1e-9 < near.outside(300) <= 1
    assert 0 < far.outside(1500) < 1e-60
    wide, smooth = GeometricNorm(300, 1000.0), LaplaceNorm(300, 1000.0)
    assert wide.outside(300_000) == pytest.approx(smooth.outside(300_000.5), rel=1e-3)


def test_variances_of_arizona_and_texas_are_the_papers():
    """Theory 186.67 and 199.21; the paper's 80,000 runs gave 186.88 and 199.32."""
    arizona, texas = (projected_variance(2 * 10**2, counties) for counties in (15, 254))
    assert arizona == pytest.approx(186.67, abs=5e-3)
    assert texas == pytest.approx(199.21, abs=5e-3)
    assert texas / arizona == pytest.approx(1.0672, abs=5e-5)


@pytest.mark.parametrize(("counties", "paper"), [(15, 186.88), (254, 199.32)])
def test_80_000_simulated_runs_agree_within_monte_carlo_error(counties, paper):
    """alpha = 1e-6 for ours (4.9 standard errors); the paper's runs must lie within it as well.

    One cell a run is looked at, as its kurtosis is at most 6: the standard error is sqrt(5/runs).
    """
    rng = np.random.default_rng(2022)
    variance = projected_variance(200.0, counties)
    total = sum(
        float((noise[:, 0] - noise.mean(axis=1)) @ (noise[:, 0] - noise.mean(axis=1)))
        for noise in (rng.laplace(scale=10, size=(8_000, counties)) for _ in range(10))
    )
    allowed = 4.9 * sqrt(5 / 80_000)
    assert total / 80_000 == pytest.approx(variance, rel=allowed)
    assert paper == pytest.approx(variance, rel=allowed)
    assert variance / projected_variance(200.0, 2) > 1 + allowed


@given(st.floats(0.1, 1e6), st.integers(1, 5000))
def test_the_projected_variance_rises_with_siblings_to_that_of_the_noise(variance, siblings):
    assert projected_variance(variance, siblings) < projected_variance(variance, siblings + 1)
    assert projected_variance(variance, siblings) < variance
    assert projected_variance(variance, 1) == 0


@pytest.mark.parametrize("siblings", [2, 3, 4, 15, 254])
def test_the_closed_form_is_a_distribution_with_the_variance_of_the_theorem(siblings):
    law = LaplaceProjection(siblings, 10.0)
    x = np.linspace(0, 400, 40_001)
    tail = law.tail(x)
    assert tail[0] == pytest.approx(0.5, rel=1e-12)
    assert (np.diff(tail) <= 1e-16).all()
    assert (tail >= 0).all()
    second = 4 * np.trapezoid(x * tail, x)
    assert second == pytest.approx(projected_variance(200.0, siblings), rel=1e-4)


def test_the_closed_form_agrees_with_a_convolution_of_fine_lattice_noise():
    """Geometric noise on a lattice of 1/200 of its scale is Laplace noise but for O(1/200²)."""
    masses = projection_masses(geometric(200.0, 6000), 5)
    middle = len(masses) // 2
    places = np.array([0, 100, 1000, 5000])
    tails = [masses[middle + p + 1 :].sum() + masses[middle + p] / 2 for p in places]
    law = LaplaceProjection(5, 1.0)
    np.testing.assert_allclose(law.tail(places / 1000.0), tails, rtol=1e-4)


def test_the_distance_to_the_noise_falls_with_the_number_of_siblings():
    """Theorem 14, and Figure 5. For n = 2 it is λ/4: the two laws have E|·| 3λ/4 and λ."""
    distances = [LaplaceProjection(n, 10.0).distance() for n in (2, 3, 5, 8, 15, 33, 100, 254)]
    assert distances[0] == pytest.approx(2.5, rel=1e-12)
    assert all(a > b for a, b in pairwise(distances))
    assert distances[-1] < 0.03


def test_the_distance_of_laplace_noise_is_that_of_its_fine_lattice():
    for siblings in (3, 15):
        fine = projection_distance(geometric(100.0, 3500), siblings) / 100
        assert LaplaceProjection(siblings, 1.0).distance() == pytest.approx(fine, rel=5e-3)


def test_gaussian_noise_stays_gaussian_so_its_distance_is_known():
    """The error is normal with variance v (1 - 1/n): W1 is the difference of the mean sizes."""
    sigma, siblings = 40.0, 6
    x = np.arange(-400, 401)
    noise = np.exp(-(x**2) / (2 * sigma**2))
    noise /= noise.sum()
    known = sigma * sqrt(2 / np.pi) * (1 - sqrt(1 - 1 / siblings))
    assert projection_distance(noise, siblings) == pytest.approx(known, rel=0.01)
    masses = projection_masses(noise, siblings)
    places = (np.arange(len(masses)) - len(masses) // 2) / siblings
    assert masses @ places**2 == pytest.approx(sigma**2 * (1 - 1 / siblings), rel=1e-9)
    inside = masses[np.abs(places) <= sigma].sum()
    assert inside == pytest.approx(erf(sqrt(0.5 / (1 - 1 / siblings))), abs=2e-3)


def test_integer_noise_keeps_a_distance_of_a_quarter_record_to_its_projection():
    """The parents' count moves cells by parts of a record: the lattice is 1/n, not 1."""
    assert projection_distance(geometric(10.0, 360), 254) > 0.25


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=12),
    st.integers(0, 11),
    st.integers(0, 11),
    st.sampled_from(ERRORS),
    st.floats(0.01, 2),
)
def test_giving_a_record_of_the_richer_cell_to_the_poorer_lowers_the_bias(
    counts, one, other, error, precision
):
    """Ko et al., Appendix B, one Robin Hood step at a time."""
    skewed = np.array(sorted(counts), dtype=np.float64)
    poor, rich = sorted((one % len(counts), other % len(counts)))
    even = skewed.copy()
    if skewed[rich] - skewed[poor] >= 2:
        even[[poor, rich]] += [1, -1]
    more = bias_of_clipping(error, precision, skewed)
    less = bias_of_clipping(error, precision, even)
    least = least_bias_of_clipping(error, precision, sum(counts), len(counts))
    assert more >= less * (1 - 1e-12)
    assert less >= least * (1 - 1e-12)


def test_a_skewed_family_has_more_bias_than_an_even_one():
    skewed, even = np.array([0.0, 0, 30]), np.array([10.0, 10, 10])
    assert bias_of_clipping(LaplaceError(), 0.5, skewed) == pytest.approx(2, abs=1e-6)
    assert bias_of_clipping(LaplaceError(), 0.5, even) == pytest.approx(3 * exp(-5), rel=1e-12)
    assert least_bias_of_clipping(LaplaceError(), 0.5, 30, 3) == pytest.approx(3 * exp(-5))
