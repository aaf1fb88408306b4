"""Amounts shared by counts: the rules, seats, misallocation."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.errors import EstimateError
from hedgerow.evaluate.funds import (
    Above,
    Logarithmic,
    Proportional,
    Quadratic,
    Seats,
    huntington_hill,
)
from hedgerow.limits import LARGEST_DOUBLE
from studies.ko.misallocation import misallocation

RULES = [Proportional(), Logarithmic(), Quadratic(), Above(20), Above(20, equally=True), Seats()]
NAMES = ["proportional", "logarithmic", "quadratic", "above", "equally", "seats"]

# The apportionment of 2010: populations of the fifty states with their citizens overseas (US
# Census Bureau; they sum to the published 309,183,463), and the seats that they got.
TEXT_2010 = """
AL 4802982 7 AK 721523 1 AZ 6412700 9 AR 2926229 4 CA 37341989 53 CO 5044930 7 CT 3581628 5
DE 900877 1 FL 18900773 27 GA 9727566 14 HI 1366862 2 ID 1573499 2 IL 12864380 18 IN 6501582 9
IA 3053787 4 KS 2863813 4 KY 4350606 6 LA 4553962 6 ME 1333074 2 MD 5789929 8 MA 6559644 9
MI 9911626 14 MN 5314879 8 MS 2978240 4 MO 6011478 8 MT 994416 1 NE 1831825 3 NV 2709432 4
NH 1321445 2 NJ 8807501 12 NM 2067273 3 NY 19421055 27 NC 9565781 13 ND 675905 1 OH 11568495 16
OK 3764882 5 OR 3848606 5 PA 12734905 18 RI 1055247 2 SC 4645975 7 SD 819761 1 TN 6375431 9
TX 25268418 36 UT 2770765 4 VT 630337 1 VA 8037736 11 WA 6753369 10 WV 1859815 3 WI 5698230 8
WY 568300 1"""
POPULATIONS_2010 = TEXT_2010.split()
NAMES_2010 = POPULATIONS_2010[::3]
PEOPLE_2010 = np.array([int(n) for n in POPULATIONS_2010[1::3]])
SEATS_2010 = np.array([int(n) for n in POPULATIONS_2010[2::3]])


def one_by_one(counts, seats):
    """Seats handed out one after another, by exact priorities, infinite for a first seat."""
    held = [0] * len(counts)
    for _ in range(seats):
        without = [i for i, n in enumerate(held) if n == 0]
        if without:
            winner = max(without, key=lambda i: (counts[i], -i))
        else:
            winner = max(
                range(len(counts)),
                key=lambda i: (Fraction(counts[i] ** 2, held[i] * (held[i] + 1)), -i),
            )
        held[winner] += 1
    return held


@given(
    st.lists(st.integers(0, 40) | st.integers(0, 10**12), min_size=1, max_size=8),
    st.integers(0, 60),
)
def test_seats_are_those_handed_out_one_by_one(counts, seats):
    assert huntington_hill(np.array(counts), seats).tolist() == one_by_one(counts, seats)


@given(st.lists(st.sampled_from([3, 6, 12, 10**15]), min_size=2, max_size=6), st.integers(0, 40))
def test_exact_ties_go_to_the_area_that_comes_first(counts, seats):
    assert huntington_hill(np.array(counts), seats).tolist() == one_by_one(counts, seats)


def test_the_apportionment_of_2010_is_the_published_one():
    assert PEOPLE_2010.sum() == 309_183_463
    found = huntington_hill(PEOPLE_2010, 435)
    assert found.tolist() == SEATS_2010.tolist()
    one_more = huntington_hill(PEOPLE_2010, 436) - found
    assert NAMES_2010[int(one_more.argmax())] == "NC"  # next in line, as published


def test_seats_of_many_areas_and_runs_sum_to_the_house():
    rng = np.random.default_rng(5)
    counts = np.ceil(rng.pareto(1, (4, 3000)) * 10_000).astype(np.int64)
    for seats in (435, 3000, 20_000):
        found = huntington_hill(counts, seats)
        assert found.shape == counts.shape
        assert (found.sum(axis=1) == seats).all()
        assert (huntington_hill(counts[2], seats) == found[2]).all()


def test_a_priority_that_doubles_cannot_tell_apart_is_settled_exactly():
    counts = np.array([LARGEST_DOUBLE - 1, LARGEST_DOUBLE])
    assert huntington_hill(counts, 3).tolist() == [1, 2]
    assert huntington_hill(counts[::-1].copy(), 3).tolist() == [2, 1]


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=9))
def test_a_rule_shares_the_whole_amount_where_anybody_is_eligible(rule, counts):
    found = rule.allocate(np.array(counts), 30.0)
    assert (found >= 0).all()
    eligible = isinstance(rule, Seats) or max(counts) > getattr(rule, "threshold", 0)
    assert found.sum() == pytest.approx(30 if eligible else 0)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_runs_are_shared_one_by_one(rule):
    counts = np.random.default_rng(1).integers(0, 60, (4, 7))
    found = rule.allocate(counts, 40)
    for row, run in zip(found, counts, strict=True):
        assert row == pytest.approx(rule.allocate(run, 40))


def test_rules_share_as_they_say():
    counts = np.array([10, 20, 70, 0])
    assert Proportional().allocate(counts, 1.0) == pytest.approx([0.1, 0.2, 0.7, 0])
    logs = np.log([1.1, 1.2, 1.7, 1])
    assert Logarithmic().allocate(counts, 1.0) == pytest.approx(logs / logs.sum())
    assert Quadratic().allocate(counts, 54.0) == pytest.approx([1, 4, 49, 0])
    assert Above(10).allocate(counts, 90.0) == pytest.approx([0, 20, 70, 0])
    assert Above(9, equally=True).allocate(counts, 3.0) == pytest.approx([1, 1, 1, 0])
    assert Above(70).allocate(counts, 3.0) == pytest.approx([0, 0, 0, 0])


def test_misallocation_of_known_errors_is_exact():
    truth = np.array([50, 50, 100])
    runs = np.array([[60, 40, 100], [40, 60, 100], [80, 20, 100], [60, 40, 100]])
    found = misallocation(truth, runs, Proportional(), 1000.0, classes=(0, 100))
    errors = np.array([[5, -5, 0], [-5, 5, 0], [15, -15, 0], [5, -5, 0]])
    variance = errors.var(axis=0, ddof=1)
    bias2 = errors.mean(axis=0) ** 2 - variance / 4
    assert found["records"].to_list() == ["0–99", "100 and more", "all"]
    assert found["areas"].to_list() == [2, 1, 3]
    assert found["due"].to_list() == [500, 500, 1000]
    assert found["bias2"].to_list() == pytest.approx([bias2.sum(), 0, bias2.sum()])
    assert found["variance"].to_list() == pytest.approx([variance.sum(), 0, variance.sum()])
    assert found["moved"].to_list() == pytest.approx([150, 0, 150])


def test_misallocation_is_unbiased_and_knows_its_error():
    """Alpha: each of four means is off by more than 4.9 of its errors with chance 1e-6."""
    rng = np.random.default_rng(8)
    truth = rng.integers(1, 400, 40)
    many = np.maximum(np.rint(truth + rng.normal(size=(40_000, 40)) * 30), 0).astype(np.int64)
    parts = Quadratic().allocate(many, 100.0) - Quadratic().allocate(truth, 100.0)
    exact = {"bias2": (parts.mean(axis=0) ** 2).sum(), "variance": parts.var(axis=0).sum()}
    batches = [misallocation(truth, many[k : k + 100], Quadratic(), 7.0)[-1] for k in
               range(0, 40_000, 100)]  # fmt: skip
    for name, value in exact.items():
        found = np.array([batch[name].item() for batch in batches])
        stated = np.array([batch[f"{name}_error"].item() for batch in batches])
        error = found.std() / np.sqrt(len(found))
        assert abs(found.mean() - value) < 4.9 * error + 0.002 * value
        ratio = np.sqrt((stated**2).mean()) / found.std()
        assert 0.9 < ratio < (1.5 if name == "bias2" else 1.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Above(-1), "threshold"),
        (lambda: Seats().allocate(np.array([1, 2]), 2.5), "whole"),
        (lambda: Proportional().allocate(np.array([1, -2]), 2.5), "not negative"),
        (lambda: Proportional().allocate(np.array([1, 2]), np.nan), "finite"),
        (lambda: huntington_hill(np.array([1.5]), 2), "int64"),
        (lambda: huntington_hill(np.array([-1]), 2), "from 0"),
        (lambda: huntington_hill(np.array([1]), -2), "seats"),
    ],
    ids=["threshold", "half", "negative", "nan", "real", "below", "house"],
)
def test_what_cannot_be_shared_is_refused(call, words):
    with pytest.raises(EstimateError, match=words):
        call()
