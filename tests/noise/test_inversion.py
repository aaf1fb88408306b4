from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from hedgerow.noise.inversion import GUIDE_BITS, Tails, _floors_and_ceilings, inversion
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from tests.noise.reference import (
    ChosenWords,
    Reference,
    gaussian_weight,
    laplace_weight,
    spoken,
)

ONES = 2**64 - 1
Kind = DiscreteGaussian | DiscreteLaplace
MECHANISMS: list[Kind] = [
    *map(DiscreteGaussian, ["1/3", "1", "5", "456.62", "10000"]),
    *map(DiscreteLaplace, ["1/2", "1", "20"]),
]


@pytest.fixture(autouse=True)
def precision():
    with mp.workprec(1500):
        yield


def reference_of(mechanism, digits=256):
    """The reference with everything above 2**-digits in it."""
    reach = 1
    while mechanism.law.exponent(reach) < digits * 0.7:
        reach *= 2
    weight_of = gaussian_weight if isinstance(mechanism, DiscreteGaussian) else laplace_weight
    return Reference(weight_of(mechanism.parameter), reach)


def first_draw(mechanism, words, cell=0):
    """The draw of a cell whose uniform number has these 64-bit digits."""
    stream = ChosenWords({cell: words[0]}, {(cell,): spoken(words[1:])})
    out = np.empty(1, dtype=np.int64)
    inversion(mechanism.law).fill(stream, cell, out)
    return int(out[0])


def joined(words):
    return int("".join(f"{word:016x}" for word in words), 16)


each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)


@each_mechanism
def test_every_threshold_is_the_floor_of_the_true_distribution_function(mechanism):
    with mp.workprec(256):
        reference = reference_of(mechanism, digits=200)
        table = inversion(mechanism.law)
        floors = [
            int(mp.floor(reference.cdf(k) * mpf(2) ** 64))
            for k in range(table.lowest, table.lowest + len(table.thresholds))
        ]
    assert table.thresholds.tolist() == floors
    assert floors[0] == 0 < floors[1]
    assert floors[-2] < floors[-1] == ONES


@each_mechanism
def test_words_between_thresholds_need_no_further_bits(mechanism):
    table = inversion(mechanism.law)
    known = table.thresholds.tolist()
    words, expected = [], []
    for place in range(1, len(known)):
        if known[place] - known[place - 1] > 1:
            words += [known[place - 1] + 1, known[place] - 1]
            expected += 2 * [table.lowest + place]
    out = np.empty(len(words), dtype=np.int64)
    table.fill(spoken(words), 0, out)  # no branch to read
    assert out.tolist() == expected
    assert len(words) > 4


@each_mechanism
@pytest.mark.parametrize("nudge", [-1, 1])
@pytest.mark.sweep(4)
def test_a_word_on_a_threshold_is_settled_by_the_next_digits(mechanism, nudge):
    reference = reference_of(mechanism)
    table = inversion(mechanism.law)
    inner = range(table.lowest + 1, table.lowest + len(table.thresholds) - 1)
    chosen = set(np.linspace(inner[0], inner[-1], 7).astype(int).tolist()) | {-1, 0}
    for k in sorted(chosen & set(inner)):
        high, low = divmod(int(mp.floor(reference.cdf(k) * mpf(2) ** 128)), 2**64)
        expected = reference.value((high << 64) + low + nudge, 128)
        assert expected == k + (nudge > 0)
        assert first_draw(mechanism, [high, low + nudge], cell=11) == expected


def test_agreement_in_two_words_is_settled_by_the_third():
    mechanism = DiscreteGaussian(5)
    digits = int(mp.floor(reference_of(mechanism).cdf(2) * mpf(2) ** 192))
    words = [digits >> 128, digits >> 64 & ONES]
    assert first_draw(mechanism, [*words, (digits & ONES) - 1]) == 2
    assert first_draw(mechanism, [*words, (digits & ONES) + 1]) == 3


@pytest.mark.parametrize("zeros", [1, 2, 5])
@each_mechanism
@pytest.mark.sweep(4)
def test_both_tails_reach_as_far_as_the_digits_say(mechanism, zeros):
    reference = reference_of(mechanism, digits=64 * zeros + 100)
    table = inversion(mechanism.law)
    low, high = zeros * [0] + [2**63 + 12345], zeros * [ONES] + [2**62 + 54321]
    left, right = first_draw(mechanism, low), first_draw(mechanism, high)
    assert left == reference.value(joined(low), 64 * len(low))
    assert right == reference.value(joined(high), 64 * len(high))
    assert left <= table.lowest + 1
    assert right >= table.lowest + len(table.thresholds) - 2


def test_a_tiny_parameter_gives_zero_unless_hundreds_of_digits_are_zero():
    mechanism = DiscreteGaussian("1/1000")  # P(X < 0) is about 2**-721
    assert first_draw(mechanism, [12345]) == 0
    assert first_draw(mechanism, [0, 0, 7]) == 0
    assert first_draw(mechanism, [0] * 11 + [1]) == -1
    assert first_draw(mechanism, [ONES] * 12 + [5]) == 1


def test_a_parameter_whose_tails_no_precision_reaches_is_still_sampled():
    assert first_draw(DiscreteGaussian("1e-30"), [12345]) == 0
    assert first_draw(DiscreteLaplace("1e-30"), [0, 1]) == 0


def test_only_the_cell_that_is_undecided_reads_its_own_branch():
    mechanism = DiscreteGaussian(5)
    stream = ChosenWords({7: 2**63, 8: 0, 9: ONES}, {(8,): spoken([9]), (9,): spoken([4])})
    out = np.empty(3, dtype=np.int64)
    inversion(mechanism.law).fill(stream, 7, out)
    assert out.tolist() == [0, first_draw(mechanism, [0, 9]), first_draw(mechanism, [ONES, 4])]


@pytest.mark.parametrize("parameter", [Fraction(1, 3), 10_000, 4 * 10**7])
def test_the_guide_points_to_the_first_threshold_its_words_can_reach(parameter):
    table = inversion(DiscreteGaussian(parameter).law)
    fewest, most = GUIDE_BITS
    assert 2**fewest <= len(table.guide) <= 2**most
    known, shift = table.thresholds.tolist(), int(table.shift)
    for i in range(0, len(table.guide), 101):
        at = int(table.guide[i])
        assert known[at] >= i << shift
        assert at == 0 or known[at - 1] < i << shift


def test_a_floor_or_a_ceiling_that_the_bounds_leave_open_is_not_taken():
    """In units of 2**-66, four to a unit of a threshold."""
    assert _floors_and_ceilings(Tails([21, 1], [22, 2], 66)) == ([5, 0], [6, 1])
    assert _floors_and_ceilings(Tails([21, 0], [22, 2], 66)) == ([5, 0], [6, 1])
    assert _floors_and_ceilings(Tails([19, 1], [21, 2], 66)) is None
    assert _floors_and_ceilings(Tails([20, 1], [21, 2], 66)) is None
    assert _floors_and_ceilings(Tails([21], [22], 66)) is None
