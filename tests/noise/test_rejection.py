from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from hedgerow.noise.inversion import inversion
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.noise.rejection import is_below_exp, rejection, taylor_exp
from tests.noise.reference import KEY, ChosenWords, Reference, draw_in_chunks, fits, spoken

WIDE = [DiscreteGaussian(10**12), DiscreteGaussian("98765432109/7"), DiscreteLaplace(10**6)]
ONES = 2**64 - 1
Round = tuple[list[int], dict[int, list[int]]]  # three words; further words by branch
EASY: Round = ([1, 0, 0], {})  # block 0, offset 0, positive: x = 0, which always stands


@pytest.fixture(autouse=True)
def precision():
    with mp.workprec(400):
        yield


def draw_rounds(sampler, rounds, cell=5):
    """The draw of a cell that is told the words of its rounds."""
    branches: dict[tuple[int, ...], ChosenWords] = {}
    for turn, (words, further) in enumerate(rounds):
        own = {3 * cell + i: word for i, word in enumerate(words)}
        branches[turn,] = ChosenWords(own)
        for kind, rest in further.items():
            branches[turn,].branches[cell, kind] = spoken(rest)
    out = np.empty(1, dtype=np.int64)
    sampler.fill(ChosenWords({}, branches), cell, out)
    return int(out[0])


def proposal(sampler, word, offset, negative):
    """An independent account of a proposal: x and the probability that it stands."""
    width = 1 << sampler.width_bits
    block = int(np.searchsorted(sampler.blocks.thresholds, np.uint64(word)))
    magnitude = block * width + offset + negative
    exponent = sampler.law.exponent(magnitude) - sampler.law.exponent(block * width)
    stands = mp.exp(-mpf(exponent.numerator) / exponent.denominator)
    return (-magnitude if negative else magnitude), stands


@pytest.mark.parametrize("mechanism", WIDE, ids=repr)
@pytest.mark.parametrize("negative", [0, 1])
@pytest.mark.parametrize("distance", [1, 2**10, 2**13, 2**15, 2**20, 2**40])
def test_a_proposal_stands_exactly_where_its_word_is_below_the_ratio(mechanism, negative, distance):
    """Distances of 2**13 units and less are within the margin: exact arithmetic decides them."""
    sampler = rejection(mechanism.law)
    width = 1 << sampler.width_bits
    for word in (2**40 + 1, 2**63 + 9, 2**64 - 10**6):
        for offset in (1, width // 3, width - 1):
            x, stands = proposal(sampler, word, offset, negative)
            limit = int(mp.floor(stands * mpf(2) ** 64))
            second = negative << 63 | offset
            below: Round = ([word, second, limit - distance], {})
            above: Round = ([word, second, min(limit + distance, ONES)], {})
            assert draw_rounds(sampler, [below]) == x
            assert draw_rounds(sampler, [above, EASY]) == 0


@pytest.mark.parametrize("distance", [-(2**20), 2**20])
def test_exponents_too_large_for_the_polynomial_are_settled_exactly(distance):
    sampler = rejection(DiscreteGaussian(5).law)
    x, stands = proposal(sampler, 2**64 - 2**50, 0, 1)
    limit = int(mp.floor(stands * mpf(2) ** 64))
    words: Round = ([2**64 - 2**50, 1 << 63, limit + distance], {})
    assert stands < 0.3
    assert draw_rounds(sampler, [words, EASY]) == (x if distance < 0 else 0)


@pytest.mark.parametrize("nudge", [-1, 1])
def test_a_word_that_agrees_with_the_ratio_is_settled_by_the_next_digits(nudge):
    sampler = rejection(DiscreteGaussian(10**12).law)
    x, stands = proposal(sampler, 2**62, 99, 1)
    high, low = divmod(int(mp.floor(stands * mpf(2) ** 128)), 2**64)
    rounds = [([2**62, 1 << 63 | 99, high], {1: [low + nudge]}), EASY]
    assert draw_rounds(sampler, rounds) == (x if nudge < 0 else 0)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", WIDE, ids=repr)
@pytest.mark.sweep(2)
def test_a_block_on_a_threshold_is_settled_even_in_the_far_tail(mechanism):
    sampler = rejection(mechanism.law)
    law, width = sampler.blocks.law, 1 << sampler.width_bits

    def weight(b):
        return mp.exp(-mpf(law.exponent(b).numerator) / law.exponent(b).denominator)

    reference = Reference(weight, 1 << 14, two_sided=False)
    assert not sampler.blocks.law.two_sided
    for k in (0, 100, 3000):
        assert int(sampler.blocks.thresholds[k]) == int(mp.floor(reference.cdf(k) * mpf(2) ** 64))
        high, low = divmod(int(mp.floor(reference.cdf(k) * mpf(2) ** 128)), 2**64)
        for nudge in (-1, 1):
            words = ([high, 0, 0], {0: [low + nudge]})
            assert draw_rounds(sampler, [words]) == (k + (nudge > 0)) * width
    expected = reference.value(ONES << 64 | ONES - 12345, 128)
    assert expected > len(sampler.blocks.thresholds)
    words = ([ONES, 1 << 63, 0], {0: [ONES - 12345]})
    assert draw_rounds(sampler, [words]) == -expected * width - 1


def test_a_word_may_agree_for_long_before_it_is_settled():
    exponent = Fraction(3, 7)
    digits = int(mp.floor(mp.exp(mpf(-3) / 7) * mpf(2) ** 256))
    words = [digits >> 192, *(digits >> s & (2**64 - 1) for s in (128, 64, 0))]
    assert is_below_exp(exponent, words[0], spoken([*words[1:3], words[3] - 1]))
    assert not is_below_exp(exponent, words[0], spoken([*words[1:3], words[3] + 1]))
    assert is_below_exp(Fraction(0), 2**64 - 1, ChosenWords())


def test_the_taylor_polynomial_keeps_its_promise():
    for exponent in np.linspace(0, 1 / 16, 5001):
        assert abs(taylor_exp(float(exponent)) - mp.exp(-mpf(float(exponent)))) < mpf(2) ** -51


@pytest.mark.parametrize("mechanism", [*WIDE, DiscreteGaussian(2**112), DiscreteLaplace(2**52)])
def test_blocks_are_as_wide_as_the_proof_assumes(mechanism):
    sampler = rejection(mechanism.law)
    width, last = 1 << sampler.width_bits, len(sampler.blocks.thresholds) - 1
    assert width <= 2**47
    assert (last + 1) * width < 2**62
    greatest = mechanism.law.exponent((last + 1) * width) - mechanism.law.exponent(last * width)
    assert greatest < Fraction(1, 32)


@pytest.mark.slow
def test_draws_that_are_mostly_settled_exactly_have_the_law_of_inversion():
    """With sigma2 = 25 a block is one place and most exponents exceed 1/16."""
    law = DiscreteGaussian(25).law
    table = inversion(law)
    draws = draw_in_chunks(rejection(law), KEY.stream(25), 20_000)
    edges = np.arange(-12, 12)
    cumulative = table.thresholds[edges - table.lowest] / 2.0**64
    assert fits(draws, edges, np.diff(cumulative, prepend=0, append=1))
