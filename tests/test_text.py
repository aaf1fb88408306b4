"""What can be seen of a text, against Unicode's own categories."""

import sys
import unicodedata
from fractions import Fraction

import pytest

from hedgerow.errors import PlanError
from hedgerow.text import (
    LONGEST_LINE,
    check_name,
    format_percent,
    is_visible,
    one_line,
    raised,
    visible,
)

UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
SIGNS = {*map(chr, range(0x600, 0x606)), *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}
"""Format characters that are seen: they enclose the numbers that follow."""


def test_what_is_unseen_is_what_unicode_says():
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        kind = unicodedata.category(letter)
        if kind == "Cn":
            continue  # a younger Unicode may have put a letter there
        assert is_visible(letter) == (kind not in UNSEEN or letter in SIGNS), hex(code)


def test_what_is_unseen_is_escaped_and_the_rest_stays():
    assert visible("a\x1b[2J\nb\u202ec\ud800\U000e0041\x9b é 東京 👩") == (
        "a\\x1b[2J\\nb\\u202ec\\ud800\\U000e0041\\x9b é 東京 👩"
    )
    assert visible("a\nb\rc", lines=True) == "a\nb\\rc"


def test_a_line_is_one_line_and_no_longer_than_it_may_be():
    assert one_line("a\nb") == "a\\nb"
    assert len(one_line("\x1b" * 10**7)) == LONGEST_LINE + 1


@pytest.mark.parametrize("name", ["", None, 3, "a\x1b", "a\n", "\u200ba", "a\u2028", "x" * 101])
def test_a_name_is_seen_as_it_is(name):
    with pytest.raises(PlanError, match="the name of it") as refused:
        check_name(name, "the name of it", 100, PlanError)
    assert is_visible(str(refused.value))
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize(
    "name", ["county", "Bezirk-1 (neu)", "東京都", "مدينة", "a\u0308", "x" * 100]
)
def test_names_of_any_script_are_names(name):
    check_name(name, "the name", 100, PlanError)


def test_powers_of_ten_are_written_as_people_write_them():
    shown = {"1e-08": "10⁻⁸", "2.5e-10": "2.5 · 10⁻¹⁰", "3e-105": "3 · 10⁻¹⁰⁵", "0.01": "0.01"}
    assert {given: raised(given) for given in shown} == shown


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Fraction("0.0703"), "7.03"),
        (0.0703, "7.04"),  # the float is a little more
        (0.070301, "7.04"),
        (1.0, "100"),
        (0.5, "50"),
    ],
)
def test_a_percentage_is_rounded_up(part, words):
    assert format_percent(part) == words
