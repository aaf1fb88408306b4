import math
import pickle
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import cast

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import logsumexp

from hedgerow.errors import NoiseError
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace, Mechanism
from tests.noise.reference import KEY, Reference, gaussian_weight, laplace_weight

KINDS = [DiscreteGaussian, DiscreteLaplace]
ALL: list[Mechanism] = [
    DiscreteGaussian("1/3"),
    DiscreteGaussian(5),
    DiscreteGaussian(10**12),
    DiscreteLaplace("1/2"),
    DiscreteLaplace(20),
    DiscreteLaplace(10**6),
]


@pytest.fixture(autouse=True)
def precision():
    with mp.workprec(300):
        yield


def weight_of(mechanism):
    kind = gaussian_weight if isinstance(mechanism, DiscreteGaussian) else laplace_weight
    return kind(mechanism.parameter)


def drawn(mechanism, start, count, *place):
    out = np.full(count, -99, dtype=np.int64)
    mechanism.draw(KEY.stream(*place), start, out)
    return out.tolist()


each_mechanism = pytest.mark.parametrize("mechanism", ALL, ids=repr)


@each_mechanism
def test_the_noise_of_a_cell_does_not_depend_on_how_the_range_is_cut(mechanism):
    whole = drawn(mechanism, 0, 70_000)
    cuts = [0, 1, 2, 17, 16_384, 16_385, 40_001, 70_000]
    parts = [drawn(mechanism, a, b - a) for a, b in pairwise(cuts)]
    assert [noise for part in parts for noise in part] == whole


@each_mechanism
def test_threads_change_nothing(mechanism, monkeypatch):
    alone = drawn(mechanism, 3, 100_001)
    monkeypatch.setattr("hedgerow.noise.rejection.CELLS_WORTH_THREADS", 1000)
    monkeypatch.setattr("hedgerow.noise.rejection.core_count", lambda: 3)
    assert drawn(mechanism, 3, 100_001) == alone


@each_mechanism
def test_noise_belongs_to_the_key_and_the_place(mechanism):
    out = np.empty(200, dtype=np.int64)
    mechanism.draw(ReleaseKey(bytes(32)).stream(1), 0, out)
    assert drawn(mechanism, 0, 200, 1) == drawn(mechanism, 0, 200, 1)
    assert drawn(mechanism, 0, 200, 1) != drawn(mechanism, 0, 200, 2)
    assert drawn(mechanism, 0, 200, 1) != drawn(mechanism, 200, 200, 1)
    assert drawn(mechanism, 0, 200, 1) != out.tolist()


@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [
        (DiscreteGaussian(5), [1, -2, 3, -4, 0, 0]),
        (DiscreteLaplace(20), [11, -19, 34, -57, 4, -3]),
        (DiscreteGaussian(10**12), [-167655, 164012, -967504, -808464, -391378, -765605]),
        (DiscreteLaplace(10**6), [-145127, 139436, -1104720, -869904, -360658, -816805]),
    ],
    ids=repr,
)
def test_the_noise_of_a_key_never_changes_between_versions(mechanism, noise):
    """A release that resumes under a later version must draw the same noise."""
    assert drawn(mechanism, 100, 6, 1, 2) == noise


@pytest.mark.usefixtures("keys_of_the_system")
@each_mechanism
def test_samples_are_fresh_every_time(mechanism):
    a, b = mechanism.sample(1000), mechanism.sample(1000)
    assert a.dtype == np.int64
    assert a.shape == (1000,)
    assert a.tolist() != b.tolist()
    assert mechanism.sample(0).shape == (0,)


each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("parameter", ["1/100", "1/3", "1", "4.99", "5", "40"])
@each_kind
@pytest.mark.sweep(4)
def test_the_noise_variance_is_that_of_the_discrete_law(kind, parameter):
    mechanism = kind(parameter)
    weight = weight_of(mechanism)
    second = 2 * mp.fsum(j * j * weight(j) for j in range(1, 6000))
    true = second / (1 + 2 * mp.fsum(weight(j) for j in range(1, 6000)))
    assert abs(mechanism.noise_variance / true - 1) < 1e-13


@each_kind
def test_the_noise_variance_of_tiny_and_huge_parameters_is_right(kind):
    assert kind("1e-30").noise_variance == 0
    assert kind("1/1600").noise_variance == 0
    q = mp.exp(-mpf(1) / 2**52)
    assert math.isclose(DiscreteLaplace(2**52).noise_variance, 2 * q / (1 - q) ** 2, rel_tol=1e-13)
    assert DiscreteGaussian(2**112).noise_variance == 2.0**112


@pytest.mark.parametrize("parameter", ["1/50", "1/3", "1", "5", "20"])
@each_kind
def test_the_tail_bound_is_the_smallest_for_small_parameters(kind, parameter):
    mechanism = kind(parameter)
    reach = 1
    while mechanism.law.exponent(reach) < 760:  # exp(-760) < 1e-300 by far
        reach *= 2
    reference = Reference(weight_of(mechanism), reach)
    for probability in (1.0, 0.999, 0.5, 0.05, 1e-9, 1e-300):
        bound = mechanism.tail_bound(probability)
        assert 2 * reference.tails[bound] <= probability
        assert bound == 0 or 2 * reference.tails[bound - 1] > probability


@pytest.mark.parametrize("probability", [0.999, 0.5, 0.05, 1e-9, 1e-300, 5e-324])
@pytest.mark.parametrize("sigma2", [4097, 10**6, 10**20])
def test_the_tail_bound_of_a_wide_gaussian_is_safe_and_hardly_larger(sigma2, probability):
    """The sum over x > k lies between the integrals from k + 1 and from k; the total likewise."""
    bound = DiscreteGaussian(sigma2).tail_bound(probability)
    root = mp.sqrt(2 * mpf(sigma2))
    assert mp.erfc(bound / root) <= probability
    assert mp.erfc((bound * (1 - mpf(10) ** -11) - 1) / root) > probability


@pytest.mark.parametrize("probability", [1.0, 0.999, 0.5, 0.05, 1e-9, 1e-300, 5e-324])
@pytest.mark.parametrize("scale", [65, 10**6, 2**52])
def test_the_tail_bound_of_a_wide_laplace_is_safe_and_hardly_larger(scale, probability):
    bound = DiscreteLaplace(scale).tail_bound(probability)

    def beyond(k):
        return 2 * mp.exp(-(k + 1) / mpf(scale)) / (1 + mp.exp(-1 / mpf(scale)))

    assert beyond(bound) <= probability
    assert bound == 0 or beyond(bound * (1 - mpf(10) ** -11) - 1 - scale * 1e-11) > probability


@pytest.mark.parametrize("probability", [0.0, -0.1, 1.5, math.nan, math.inf])
@each_kind
def test_a_tail_probability_outside_its_range_is_refused(kind, probability):
    with pytest.raises(NoiseError, match=r"must be in \(0, 1\], got"):
        kind(1).tail_bound(probability)


def test_one_use_of_a_gaussian_costs_half_the_squared_sensitivity_over_sigma2():
    """Canonne, Kamath, Steinke (2020), Theorem 4: N_Z(0, Δ²/ε²) is ε²/2-concentrated."""
    assert DiscreteGaussian("2/3").rho(Fraction(1)) == Fraction(3, 4)
    assert DiscreteGaussian(5).rho(Fraction(2)) == Fraction(1, 5)


def test_one_use_of_a_laplace_costs_its_sensitivity_over_the_scale():
    assert DiscreteLaplace("2/3").epsilon(Fraction(2)) == 3
    assert DiscreteLaplace(2).rho(Fraction(1)) == Fraction(1, 8)


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("scale", ["1/2", "1", "20"])
def test_the_laplace_rho_bounds_every_renyi_divergence(scale, shift):
    """D_α(X || X + m) <= α m² / (2 scale²), summed directly."""
    mechanism = DiscreteLaplace(scale)
    x = np.arange(-3000, 3000)
    log_mass = -np.abs(x) / float(mechanism.scale)
    log_mass -= logsumexp(log_mass)
    here, there = log_mass[shift:], log_mass[:-shift]
    rho = float(mechanism.rho(Fraction(shift**2)))
    for alpha in (1.01, 2, 10, 100):
        divergence = logsumexp(alpha * here + (1 - alpha) * there) / (alpha - 1)
        assert 0 < divergence <= alpha * rho + 1e-9


@each_kind
def test_sensitivities_are_exact_and_not_negative(kind):
    with pytest.raises(NoiseError, match="l2_squared must be at least 0, got"):
        kind(1).rho(Fraction(-1))
    with pytest.raises(NoiseError, match="l2_squared must be exact, and the float"):
        kind(1).rho(0.1)
    with pytest.raises(NoiseError, match="l1 must be at least 0, got"):
        DiscreteLaplace(1).epsilon(Fraction(-1))


@pytest.mark.parametrize(
    "half", ["1/2", "0.5", "5e-1", Fraction(1, 2), Decimal("0.5")], ids=lambda v: type(v).__name__
)
@each_kind
def test_equal_parameters_make_equal_mechanisms(kind, half):
    assert kind(half) == kind(Fraction(1, 2))
    assert hash(kind(half)) == hash(kind(Fraction(1, 2)))
    assert kind(half) != kind(1)
    assert kind(half).parameter == Fraction(1, 2)
    assert isinstance(kind(half).parameter, Fraction)


def test_the_kinds_are_never_equal_and_carry_the_names_of_the_release_file():
    assert len({kind(1) for kind in KINDS}) == 2
    assert DiscreteGaussian.name == "discrete-gaussian"
    assert DiscreteLaplace.name == "discrete-laplace"
    assert DiscreteGaussian(sigma2=5).sigma2 == 5
    assert DiscreteLaplace(scale="1/2").scale == Fraction(1, 2)


@each_mechanism
def test_a_mechanism_reads_back_from_its_repr_and_travels(mechanism):
    names = {kind.__name__: kind for kind in KINDS}
    kind, _, rest = repr(mechanism).partition("(")
    assert names[kind](rest.split('"')[1]) == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism  # noqa: S301


def test_a_numpy_integer_becomes_a_fraction_of_python_integers():
    parameter = DiscreteGaussian(cast("int", np.int64(2**40))).parameter
    assert type(parameter.numerator) is int
    assert (parameter**4).numerator == 2**160


BAD = [
    (0, "must be above 0, got 0"),
    ("-1/2", "must be above 0, got -1/2"),
    (0.1, 'the float 0.1 is only near 0.1; write it as text: "0.1"'),
    (np.float64(0.1), 'the float 0.1 is only near 0.1; write it as text: "0.1"'),
    (True, "must be a whole number, a Fraction, a Decimal or text"),
    (None, "must be a whole number, a Fraction, a Decimal or text"),
    ("nan", "must be a number such as"),
    ("many", "must be a number such as"),
    ("1/0", "a division by zero"),
    ("1e-99999999", "must be a number such as"),
    (Decimal("inf"), "must be a number such as"),
    (Decimal("nan"), "must be a number such as"),
    (2**112 + 1, "so that noise fits 64-bit integers, got"),
]


@pytest.mark.parametrize(("parameter", "sentence"), BAD, ids=lambda v: str(v)[:20])
@each_kind
def test_a_parameter_outside_the_domain_is_refused_in_one_sentence(kind, parameter, sentence):
    with pytest.raises(NoiseError) as caught:
        kind(parameter)
    message = str(caught.value)
    assert sentence in message
    assert message.startswith("sigma2 " if kind is DiscreteGaussian else "scale ")
    assert "\n" not in message


def test_the_largest_parameters_still_fit():
    for mechanism in (DiscreteGaussian(2**112), DiscreteLaplace(2**52)):
        assert np.abs(mechanism.sample(10_000)).max() < 2**62
        assert mechanism.tail_bound(1e-300) < 2**62
    with pytest.raises(NoiseError, match=r"at most 2\^52"):
        DiscreteLaplace(2**52 + 1)


@each_kind
def test_no_attribute_of_a_mechanism_can_be_changed(kind):
    mechanism = kind(1)
    with pytest.raises(AttributeError):
        setattr(mechanism, "sigma2" if kind is DiscreteGaussian else "scale", Fraction(2))


@pytest.mark.parametrize(
    ("start", "out"),
    [
        (-1, np.zeros(3, np.int64)),
        (0, np.zeros(3, np.int32)),
        (0, np.zeros((2, 2), np.int64)),
    ],
)
def test_noise_goes_into_one_row_of_int64_from_cell_zero_on(start, out):
    with pytest.raises(NoiseError, match="one row of int64"):
        DiscreteGaussian(1).draw(KEY.stream(), start, out)
    with pytest.raises(NoiseError, match="cannot be below 0, got -1"):
        DiscreteGaussian(1).sample(-1)
    assert not out.any()


def test_noise_can_be_drawn_into_every_second_place():
    out = np.zeros(20, dtype=np.int64)
    DiscreteGaussian(10**12).draw(KEY.stream(), 0, out[::2])
    assert out[::2].tolist() == drawn(DiscreteGaussian(10**12), 0, 10)
    assert not out[1::2].any()
