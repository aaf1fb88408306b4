"""Counts rounded, or left out where they are too uncertain, for those who look."""

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.release.presentation import Presentation

COUNTS = pl.DataFrame({
    "town": ["a", "b", "c", "d", "e"],
    "count": [2, 3, 12, 13, 2_000_000_000_000_003],
    "estimate": [1.7, 2.6, 12.1, 13.5, 2e15],
    "low": [0, 2, 9, 10, 2_000_000_000_000_000],
    "high": [5, 3, 15, 17, 2_000_000_000_000_006],
})  # fmt: skip


def test_counts_are_rounded_to_the_nearest_multiple_halves_upwards():
    for to in (2, 3, 5, 10, 100):
        shown = Presentation(to).applied(COUNTS)
        wanted = [(2 * n + to) // (2 * to) * to for n in COUNTS["count"]]
        assert shown["count"].to_list() == wanted
        assert shown["rounded_to"].to_list() == [to] * 5
        assert shown.drop("count", "rounded_to").equals(COUNTS.drop("count"))
    assert Presentation(10).applied(pl.DataFrame({"count": [5, 15]}))["count"].to_list() == [10, 20]


def test_counts_with_an_interval_wider_than_their_share_are_left_out():
    shown = Presentation(suppress_wider=0.5).applied(COUNTS)
    assert shown["suppressed"].to_list() == [True, False, False, True, False], "6 of 12 is no more"
    assert shown["count"].to_list() == [None, 3, 12, None, 2_000_000_000_000_003]
    assert shown["estimate"].to_list() == [None, 2.6, 12.1, None, 2e15]
    assert shown.select("low", "high").equals(COUNTS.select("low", "high"))


def test_counts_without_an_interval_are_left_out():
    unknown = COUNTS.with_columns(pl.lit(None, pl.Int64).alias(end) for end in ("low", "high"))
    shown = Presentation(suppress_wider=0.5).applied(unknown)
    assert shown["suppressed"].all()
    assert shown["count"].null_count() == len(COUNTS)


def test_what_is_left_out_is_decided_before_counts_are_rounded():
    one = pl.DataFrame({"count": [12], "low": [9], "high": [15]})
    shown = Presentation(10, 0.5).applied(one)
    assert (shown["count"].item(), shown["suppressed"].item()) == (10, False)
    both = Presentation(5, 0.5).applied(COUNTS)
    assert both["count"].to_list() == [None, 5, 10, None, 2_000_000_000_000_005]


def test_what_was_done_is_said():
    given = Presentation(5, 0.5)
    suppressed, rounded = given.sentences(given.applied(COUNTS))
    assert suppressed.startswith("2 of 5 counts are left out ([u], suppressed)")
    assert "wider than 0.5 times the count" in suppressed
    assert rounded.startswith("Counts are rounded to multiples of 5, so they need not add up")
    assert Presentation().sentences(COUNTS) == []
    assert Presentation().applied(COUNTS).equals(COUNTS)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"round_to": 1}, "--round must be a whole number from 2 .*, got 1"),
        ({"round_to": -5}, "got -5"),
        (
            {"suppress_wider": 0.0},
            "--suppress-wider must be above 0 and finite, got 0.0; it is a share",
        ),
        ({"suppress_wider": float("nan")}, "got nan"),
    ],
)
def test_what_is_no_number_to_round_to_or_no_share_is_refused(given, message):
    with pytest.raises(hr.ReleaseError, match=message):
        Presentation(**given)
