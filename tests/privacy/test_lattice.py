"""The lattice accountant against direct convolution, published figures and its own bounds."""

import math
import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
import scipy.fft

from hedgerow.errors import BudgetError
from hedgerow.privacy.accountant import lattice, lattice_convolution, lattice_masses
from tests.privacy import oracles_loss
from tests.privacy.losses import DHC, SMALL, gaussian, laplace, pair


def test_epsilon_on_an_atom_counts_the_atom_as_nothing_and_its_neighbours_apart():
    # the atoms of Laplace noise of scale 2 and shift 1 are ±1/2, exactly binary
    once = ((laplace(2), 1),)
    assert lattice.delta(once, 0.5) == 0
    just_below = lattice.delta(once, math.nextafter(0.5, 0))
    assert just_below == pytest.approx(2.0**-54 / (1 + math.exp(-0.5)), rel=1e-12)


def test_bounds_that_ignore_rounding_would_be_caught(monkeypatch):
    """The truth does not lie within the value by chance: without the error terms it falls out."""
    monkeypatch.setattr(lattice_convolution, "LEVEL", 0.0)
    monkeypatch.setattr(lattice_convolution, "ROUND", 0.0)
    monkeypatch.setattr(lattice_masses, "ROUND", 0.0)
    monkeypatch.setattr(lattice, "ROUND", 0.0)
    monkeypatch.setattr(lattice, "DOUBT", 0.0)
    outside = 0
    for epsilon in np.linspace(0, 6, 13):
        lower, upper = lattice.delta_bounds(SMALL["two"], float(epsilon))
        truth = oracles_loss.delta(SMALL["two"], float(epsilon))
        outside += not lower <= truth <= upper
    assert outside >= 6


@pytest.mark.parametrize("epsilon", [16.0, 18.5, 24.0])
def test_delta_keeps_its_digits_down_to_1e_minus_30_and_far_below(epsilon):
    losses = ((gaussian(2), 3),)
    truth = oracles_loss.delta(losses, epsilon)
    assert truth < 1e-30
    assert abs(lattice.delta(losses, epsilon) - truth) <= 1e-12 * truth


def test_all_80_queries_of_the_census():
    """Together ε(1e-10) = 20.3247; see PAPERS.md.

    The values of δ are python-flint's: the same convolution of 818,221 atoms in ball arithmetic of
    160 bits, which takes it four minutes.
    """
    for epsilon, truth in ((2.0, 0.59439701400688351), (20.3247, 9.9997562826006897e-11)):
        lower, upper = lattice.delta_bounds(DHC, epsilon)
        assert lower < truth < upper
        assert upper - lower < 1e-10 * upper
        assert lattice.delta(DHC, epsilon) == pytest.approx(truth, rel=1e-12)


def test_one_delta_of_the_census_takes_a_fraction_of_a_second():
    """Some 30 ms; the limit leaves room for a slow machine that does much else."""
    lattice.delta(DHC, 20.0)
    times = []
    for _ in range(9):
        start = time.process_time()
        lattice.delta(DHC, 20.3247)
        times.append(time.process_time() - start)
    assert min(times) < 0.5


def test_1890_equal_folds():
    lower, upper = lattice.delta_bounds(((gaussian(500), 1890),), 12.0)
    assert upper - lower < 1e-9 * upper
    # twice as many folds of twice the variance are nearly the same, by the central limit theorem
    other = lattice.delta(((gaussian(1000), 3780),), 12.0)
    assert lower == pytest.approx(other, rel=1e-6)


@pytest.mark.parametrize("epsilon", [10.0, 20.0, 30.0])
def test_1890_pairs_are_a_binomial(epsilon):
    """L = (2k - n)ε₀ with k ~ Binomial(n, 1/(1 + e^-ε₀)); so many folds do feel the rounding."""
    folds, step = 1890, Fraction(1, 16)
    mp = oracles_loss.mp
    up = 1 / (1 + mp.exp(-oracles_loss.number(step)))
    truth = mp.fsum(
        math.comb(folds, k)
        * up**k
        * (1 - up) ** (folds - k)
        * -mp.expm1(oracles_loss.number(Fraction(epsilon) - (2 * k - folds) * step))
        for k in range(folds + 1)
        if (2 * k - folds) * step > epsilon
    )
    losses = ((pair(step), folds),)
    lower, upper = lattice.delta_bounds(losses, epsilon)
    assert lower <= truth <= upper
    assert upper - lower < 1e-9 * upper
    assert abs(lattice.delta(losses, epsilon) - truth) <= 1e-12 * truth


@pytest.mark.parametrize("order", [1, -1])
def test_what_any_factor_leaves_out_is_counted(monkeypatch, order):
    monkeypatch.setattr(lattice_masses, "CUT", 3.0)
    losses = SMALL["mixture"][::order]
    lower, upper = lattice.delta_bounds(losses, 1.0)
    assert lower <= oracles_loss.delta(losses, 1.0) <= upper
    assert upper - lower > 1e-6


def test_what_a_repeated_factor_leaves_out_is_counted_each_time(monkeypatch):
    losses = ((gaussian(50), 400),)
    truth = lattice.delta(losses, 6.0)
    monkeypatch.setattr(lattice_masses, "CUT", 10.0)
    lower, upper = lattice.delta_bounds(losses, 6.0)
    assert lower <= truth <= upper
    assert lattice.delta(losses, 6.0) < truth * (1 - 1e-4)  # every use lacks as much


def test_repetition_equals_listing_one_by_one():
    loss = gaussian(7, 2)
    folded = lattice.delta(((loss, 6),), 9.0)
    assert lattice.delta(((loss, 1),) * 6, 9.0) == pytest.approx(folded, rel=1e-13)


def test_losses_that_are_none():
    nothing = ((pair(0, "1/8"), 1),)
    assert lattice.common_unit(nothing) is None
    assert lattice.delta(nothing, 0.0) == pytest.approx(1 / 8, rel=1e-15)
    exact = 1 / 8 + 7 / 8 * -math.expm1(-1)
    assert lattice.delta(nothing, -1.0) == pytest.approx(exact, rel=1e-13)
    assert lattice.delta((), 1.0) == 0
    assert lattice.delta((), -1.0) == pytest.approx(-math.expm1(-1), rel=1e-13)


def test_atoms_far_apart_leave_the_bounds_narrow():
    """The next atom is 73 above ε: a mass outside the window counts for as little there."""
    losses = ((gaussian("19/1800"), 1),)
    lower, upper = lattice.delta_bounds(losses, 163.5)
    least, most = oracles_loss.enclosure(losses, 163.5)
    assert lower <= least
    assert most <= upper
    assert upper - lower < 1e-11 * upper


def test_bounds_of_a_probability_are_probabilities():
    losses = ((pair("1/9", "99/100"), 50),)
    for epsilon in (0.0, 3.0, 300.0):
        lower, upper = lattice.delta_bounds(losses, epsilon)
        assert 0 <= lower <= lattice.delta(losses, epsilon) <= upper <= 1


def test_a_pure_composition_promises_nothing_beyond_its_largest_loss():
    losses = ((laplace(4, 2), 6),)
    assert lattice.delta_bounds(losses, 3.0) == (0, 0)
    lower, _ = lattice.delta_bounds(losses, 2.999)
    assert lower > 0


def test_the_common_unit_divides_every_step_and_none_larger_does():
    losses = (
        (gaussian("5/2"), 1),
        (laplace(3, 2), 9),
        (pair("1/4"), 1),
    )
    assert lattice.common_unit(losses) == Fraction(1, 30)  # of 2/5, 2/3 and 1/2


def test_a_unit_too_fine_for_the_memory_is_refused_with_the_size_it_needs():
    losses = (
        (gaussian(10), 9),
        (gaussian("10.0000001"), 1),
    )
    needed = lattice.cells(losses, 5.0)
    assert needed > lattice_convolution.LARGEST_CELLS
    with pytest.raises(BudgetError, match=str(needed)):
        lattice.delta(losses, 5.0)


def test_a_cell_takes_less_than_56_bytes():
    """The largest computation allowed, 2^23 cells, then stays below 500 MB."""
    losses = (
        (gaussian(10), 9),
        (gaussian("10.001"), 1),
    )
    size = lattice.cells(losses, 5.0)
    assert size >= 2**17
    tracemalloc.start()
    lattice.delta(losses, 5.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (peak + 8 * size) / size < 56  # the FFT's own buffer is not traced
    assert 56 * lattice_convolution.LARGEST_CELLS < 500e6


UNITS = {name: losses for name, losses in SMALL.items() if not name.startswith("no common")}
of_one_unit = pytest.mark.parametrize("losses", UNITS.values(), ids=UNITS)


@pytest.mark.parametrize("tilt", [Fraction(-1, 2), Fraction(0), Fraction(5, 4)])
@of_one_unit
@pytest.mark.sweep(4)
def test_tilted_masses_are_within_their_error(losses, tilt):
    for loss, _ in losses:
        part = lattice_masses.tilt_masses(loss, tilt)
        places = part.start + np.arange(len(part.masses))
        found = {loss.offset + loss.step * int(k): 0.0 for k in places}
        for k, mass in zip(places, part.masses, strict=True):
            found[loss.offset + loss.step * int(k)] += float(mass)
        finite, _ = oracles_loss.atoms(loss)
        wrong = oracles_loss.mp.mpf(0)
        for atom in finite.keys() | found.keys():
            power = oracles_loss.number(tilt * atom - part.exponent)
            truth = finite.get(atom, 0) * oracles_loss.mp.exp(power) / oracles_loss.ONE
            wrong += abs(truth - found.get(atom, 0.0))
        assert wrong <= part.error
        assert part.error < 1e-13


@of_one_unit
def test_cumulants_equal_sums_over_the_atoms(losses):
    tilts = [-1.25, -0.5, 0.0, 1.25]
    found = lattice_masses.cumulant(losses, np.array(tilts))
    for tilt, value in zip(tilts, found, strict=True):
        truth = oracles_loss.mp.mpf(0)
        for loss, times in losses:
            finite, _ = oracles_loss.atoms(loss)
            total = sum(
                mass * oracles_loss.mp.exp(oracles_loss.number(Fraction(tilt) * atom))
                for atom, mass in finite.items()
            )
            truth += times * oracles_loss.mp.log(total / oracles_loss.ONE)
        assert value == pytest.approx(float(truth), abs=1e-12, rel=1e-12)


def test_the_charge_for_an_fft_covers_what_it_really_errs():
    """Against the same transform in extended precision; the charge is far above, as it must be."""
    rng = np.random.default_rng(5)
    for size in (1 << 4, 1 << 10, 1 << 15):
        masses = rng.exponential(size=size)
        exact = scipy.fft.rfft(masses.astype(np.longdouble))
        wrong = np.max(np.abs(scipy.fft.rfft(masses) - exact))
        assert wrong <= lattice_convolution._levels(size) * masses.sum()
