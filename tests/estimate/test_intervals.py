from fractions import Fraction
from math import ceil, floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.estimate.intervals import Confidence, interval
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace

STANDARD_ERRORS = 4
ALPHA = 3.2e-5  # of one statistical test: one side of a normal law beyond four standard errors

Noise = DiscreteGaussian | DiscreteLaplace
NOISE: dict[str, Noise] = {
    **{f"sigma2={s}": DiscreteGaussian(s) for s in ("0.1", "0.1374", "0.2", "0.5", "1", "4", "25")},
    **{f"scale={s}": DiscreteLaplace(s) for s in ("0.3", "0.33", "0.7", "1", "3")},
}
LEVELS = [0.5, 0.905, 0.92, 0.95, 0.99, 0.999, 1 - 1e-6]
each_noise = pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())
each_level = pytest.mark.parametrize("level", LEVELS)


def masses(noise):
    """The support that matters and its probabilities, by definition."""
    x = np.arange(-220, 221)
    if isinstance(noise, DiscreteGaussian):
        p = np.exp(-x * x / (2 * float(noise.sigma2)))
    else:
        p = np.exp(-abs(x) / float(noise.scale))
    return x, p / p.sum()


def family_error(noise, children, of):
    """Errors, probabilities and variance of least squares in a family with equal noise.

    With b children and a measured parent the error of either is (b η - Σ of the b others) / (b+1)
    up to signs, for a parent (η + Σ children's) b/(b+1) becomes (b η + Σ) / (b+1); with a public
    parent and two children it is (η - η') / 2.
    """
    _, p = masses(noise)
    if of == "public":
        law = np.convolve(p, p)
        support = np.arange(-(len(law) // 2), len(law) // 2 + 1) / 2
        return support, law, noise.noise_variance / 2
    stretched = np.zeros(children * (len(p) - 1) + 1)
    stretched[::children] = p
    law = stretched
    for _ in range(children):
        law = np.convolve(law, p)
    support = np.arange(-(len(law) // 2), len(law) // 2 + 1) / (children + 1)
    return support, law, noise.noise_variance * children / (children + 1)


@each_noise
@each_level
def test_raw_intervals_cover_by_enumeration_and_could_not_be_shorter(noise, level):
    x, p = masses(noise)
    reach = Confidence(level).half_width(noise, None, 10)
    assert isinstance(reach, int)
    low, high = interval(500 + x, reach, None)
    assert p[(low <= 500) & (high >= 500)].sum() >= level - 1e-13
    if reach > 0:
        low, high = interval(500 + x, reach - 1, None)
        assert p[(low <= 500) & (high >= 500)].sum() < level


@each_noise
@pytest.mark.parametrize("cells", [2, 30, 10**6])
def test_simultaneous_raw_intervals_cover_all_cells_at_once(noise, cells):
    x, p = masses(noise)
    reach = Confidence(0.95, simultaneous=True).half_width(noise, None, cells)
    outside = p[abs(x) > reach].sum()
    assert np.exp(cells * np.log1p(-outside)) >= 0.95
    assert reach == 0 or np.exp(cells * np.log1p(-p[abs(x) >= reach].sum())) < 0.95


@each_noise
@each_level
@pytest.mark.parametrize("shape", ["public", 2, 3, 10])
def test_combined_intervals_cover_by_enumeration(noise, level, shape):
    """No sampling: the exact law of the least-squares error of a family."""
    of = "public" if shape == "public" else "measured"
    errors, p, variance = family_error(noise, 2 if shape == "public" else shape, of)
    assert p @ errors**2 == pytest.approx(variance, rel=1e-9)
    reach = Confidence(level).half_width(noise, np.full(len(p), variance), 1)
    truth = 10**4
    low, high = interval(truth + errors, reach, None)
    missed = p[(low > truth) | (truth > high)].sum()
    # Of a millionth: no wider than raw means that an error of just k + 1/2 is left out.
    assert missed <= (1 - level + 1e-12 if level < 0.9999 else 2 * (1 - level))
    if level >= 0.92:
        raw = Confidence(level).half_width(noise, None, 1)
        assert p @ (high - low) <= 2 * raw + 1e-9


@each_noise
@each_level
def test_an_uncombined_count_among_combined_ones_is_treated_like_a_raw_one(noise, level):
    raw = Confidence(level).half_width(noise, None, 1)
    (reach,) = Confidence(level).half_width(noise, np.array([noise.noise_variance]), 1)
    assert raw <= reach < (raw + 0.5 if level > 0.91 else np.inf)


def least_squares(noisy, variances, branching):
    """Two passes over a regular tree, root measured: estimates (releases, cells) and variance."""
    up = [(noisy[-1], variances[-1])]
    for x, v in zip(noisy[-2::-1], variances[-2::-1], strict=True):
        below, u = up[0]
        sums = below.reshape(len(x), -1, branching).sum(axis=2)
        share = branching * u / (v + branching * u)
        up.insert(0, (share * x + (1 - share) * sums, share * v))
    done = [up[0]]
    for own, v in up[1:]:
        above, above_variance = done[-1]
        gap = above - own.reshape(len(above), -1, branching).sum(axis=2)
        estimate = own + np.repeat(gap / branching, branching, axis=1)
        done.append((estimate, v - v / branching + above_variance / branching**2))
    return done


def simulated(noise, branching, releases, seed):
    """Of each depth, root first: true counts, estimates (releases, cells) and their variance."""
    rng = np.random.default_rng(seed)
    truth = [rng.integers(0, 4, branching ** (len(noise) - 1)) * rng.integers(0, 60)]
    for _ in noise[1:]:
        truth.insert(0, truth[0].reshape(-1, branching).sum(axis=1))
    draws = []
    for mechanism, counts in zip(noise, truth, strict=True):
        x, p = masses(mechanism)
        draws.append(counts + rng.choice(x, (releases, len(counts)), p=p))
    fitted = least_squares(draws, [m.noise_variance for m in noise], branching)
    return [(t, *f) for t, f in zip(truth, fitted, strict=True)]


def coverage(truth, estimate, reach):
    """The mean coverage of the cells, its standard error over releases, and the widths."""
    low, high = interval(estimate.ravel(), np.full(estimate.size, reach), None)
    low, high = low.reshape(estimate.shape), high.reshape(estimate.shape)
    covered = ((low <= truth) & (truth <= high)).mean(axis=1)
    return covered.mean(), covered.std() / np.sqrt(len(covered)), high - low


@pytest.mark.parametrize(
    ("noise", "branching"),
    [
        ([DiscreteGaussian("0.2")] * 3, 3),
        ([DiscreteGaussian("0.5"), DiscreteGaussian(1), DiscreteGaussian(2)], 2),
        ([DiscreteGaussian(100), DiscreteGaussian(25), DiscreteGaussian("6.25")], 4),
        ([DiscreteLaplace("0.7")] * 3, 3),
        ([DiscreteLaplace(6), DiscreteLaplace(3), DiscreteLaplace(3)], 2),
    ],
    ids=["tiny", "growing", "falling", "laplace", "unequal-laplace"],
)
def test_simulated_releases_are_covered_at_each_depth_by_intervals_no_wider_than_raw(
    noise, branching
):
    releases = 2000
    for mechanism, (truth, estimate, variance) in zip(
        noise, simulated(noise, branching, releases, 4), strict=True
    ):
        (reach,) = Confidence().half_width(mechanism, np.array([variance]), truth.size)
        covered, error, width = coverage(truth, estimate, reach)
        assert covered >= 0.95 - STANDARD_ERRORS * error
        k = mechanism.tail_bound(0.05)
        x, p = masses(mechanism)
        raw = np.maximum(0, truth + x[:, None] + k) - np.maximum(0, truth + x[:, None] - k)
        assert width.mean() <= (p @ raw).mean()


@pytest.mark.parametrize("factor", [1, 0.85])
def test_an_interval_15_percent_narrower_is_found_out(factor):
    noise: list[Noise] = [DiscreteGaussian(400)] * 3
    for truth, estimate, variance in simulated(noise, 3, 2000, 5):
        (reach,) = Confidence().half_width(noise[0], np.array([variance]), truth.size)
        covered, error, _ = coverage(truth, estimate, factor * reach)
        assert (covered >= 0.95 - STANDARD_ERRORS * error) == (factor == 1)
        assert covered <= 0.965


def test_all_combined_intervals_of_a_depth_hold_at_once():
    noise: list[Noise] = [DiscreteGaussian(9)] * 3
    for truth, estimate, variance in simulated(noise, 4, 2000, 6):
        confidence = Confidence(0.9, simultaneous=True)
        (reach,) = confidence.half_width(noise[0], np.array([variance]), truth.size)
        together = (abs(estimate - truth) <= reach).all(axis=1).mean()
        assert 0.9 - STANDARD_ERRORS * 0.0067 <= together <= 0.97


def test_rare_draws_of_better_measured_depths_are_not_taken_for_normal_ones():
    """A count that is known from 100 cells below, whose noise is 0 but for nine in 100,000."""
    below = DiscreteGaussian("0.05")
    x, p = masses(below)
    law = np.ones(1)
    for _ in range(100):
        law = np.convolve(law, p[abs(x) <= 2])
    support = np.arange(-(len(law) // 2), len(law) // 2 + 1)
    for level in (0.99, 0.999, 1 - 1e-6):
        (reach,) = Confidence(level).half_width(
            DiscreteGaussian("0.8"), np.array([100 * below.noise_variance]), 1
        )
        assert law[abs(support) <= reach].sum() >= level


@pytest.mark.parametrize("kind", [DiscreteGaussian, DiscreteLaplace])
@pytest.mark.parametrize("parameter", ["0.2", "1", "9"])
def test_sums_of_counts_below_an_unmeasured_depth_are_covered(kind, parameter):
    noise = kind(parameter)
    _, p = masses(noise)
    law = np.convolve(np.convolve(p, p), p)
    support = np.arange(-(len(law) // 2), len(law) // 2 + 1)
    for level in (0.5, 0.95, 0.9999):
        variance = np.array([3 * noise.noise_variance])
        (reach,) = Confidence(level).half_width(noise, variance, 1, measured=False)
        assert law[abs(support) <= reach].sum() >= level
        assert (
            reach == Confidence(level).half_width(noise, variance, 1)[0]
        )  # above its own: not its own


def test_an_unmeasured_depth_is_not_held_to_the_width_of_a_noisy_count():
    noise = DiscreteGaussian("0.1")
    variance = np.array([noise.noise_variance])
    (own,) = Confidence().half_width(noise, variance, 1)
    (other,) = Confidence().half_width(noise, variance, 1, measured=False)
    assert own < 0.5 < other


@given(
    st.sampled_from(list(NOISE.values())),
    st.lists(st.floats(0, 1.2), min_size=1, max_size=20),
    st.tuples(st.floats(0.4, 1 - 1e-7), st.floats(0.4, 1 - 1e-7)),
    st.booleans(),
    st.integers(1, 10**9),
)
def test_reach_rises_with_the_level_and_with_simultaneity(noise, shares, levels, measured, cells):
    variance = np.array(shares) * noise.noise_variance
    low, high = sorted(levels)

    def reach(level, *, simultaneous=False):
        confidence = Confidence(level, simultaneous)
        return confidence.half_width(noise, variance, cells, measured=measured)

    if not (isinstance(noise, DiscreteLaplace) and low < 0.91):  # the cap may change its kind there
        assert (reach(low) <= reach(high)).all()
        assert (reach(high) <= reach(high, simultaneous=True)).all()
    assert Confidence(low).half_width(noise, None, 1) <= Confidence(high).half_width(noise, None, 1)
    assert (reach(high) >= 0).all()
    assert (reach(high)[variance == 0] == 0).all()


@given(
    st.lists(
        st.one_of(
            st.floats(-(2.0**60), 2.0**60), st.floats(-9, 9), st.integers(-20, 20).map(float)
        ),
        min_size=1,
        max_size=20,
    ),
    st.one_of(st.floats(0, 20), st.floats(0, 2.0**60), st.integers(0, 9)),
    st.one_of(st.none(), st.integers(0, 2**60), st.integers(0, 9)),
)
def test_an_interval_holds_every_possible_integer_within_reach(estimates, reach, total):
    low, high = interval(np.array(estimates), reach, total)
    most = 2**62 - 1 if total is None else total
    assert low.dtype == high.dtype == np.int64
    for a, b, x in zip(low.tolist(), high.tolist(), map(Fraction, estimates), strict=True):
        assert 0 <= a <= b <= most
        assert a <= max(0, ceil(x - Fraction(reach))) or a == most
        assert b >= min(most, floor(x + Fraction(reach)))
        assert b - a <= 2 * reach + 1


def test_impossible_intervals_shrink_to_the_nearest_possible_count():
    low, high = interval(np.array([-50.0, 5.3, 90.0, 5.5]), 0.1, 60)
    assert low.tolist() == [0, 5, 60, 6]
    assert high.tolist() == [0, 5, 60, 6]


@pytest.mark.parametrize("level", [0, 1, -0.1, 95, float("nan")])
def test_a_level_is_a_probability(level):
    with pytest.raises(EstimateError, match=r"a confidence must be in \(0, 1\), got"):
        Confidence(level)


@pytest.mark.parametrize("bad", [-1.0, float("nan")])
def test_variances_that_cannot_be_are_refused(bad):
    with pytest.raises(EstimateError, match="variances must not be negative"):
        Confidence().half_width(DiscreteGaussian(1), np.array([0.5, bad]), 2)


@pytest.mark.parametrize(
    ("estimate", "reach"), [(np.nan, 1.0), (np.inf, 1.0), (1.0, -1.0), (1.0, np.nan)]
)
def test_estimates_and_reaches_that_cannot_be_are_refused(estimate, reach):
    with pytest.raises(EstimateError, match="estimates must be finite"):
        interval(np.array([estimate]), np.array([reach]), None)


def test_an_unknown_count_may_be_anything_up_to_the_total():
    reach = Confidence().half_width(DiscreteGaussian(1), np.array([np.inf]), 1)
    low, high = interval(np.array([3.2]), reach, 10**12)
    assert (low.tolist(), high.tolist()) == ([0], [10**12])
