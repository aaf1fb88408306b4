"""Tables as text: what fits a terminal, and what is whole whatever the width."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hedgerow.columns import WIDTH, aligned, cut

CUBOID = "origin.municipality × destination.municipality"
HEADINGS = ("depth", "cuboid", "cells", "RMSE", "MAE", "95 % max", "share", "noise", "empty > 0")
FIGURES = ("14,400", "16.93", "13.51", "±89", "16.7%", "σ² 312.155 on sums × 1,024", "48.9%")


def width(text):
    return max(map(cell_len, text.splitlines()))


def test_a_table_that_fits_is_one_line_a_row():
    text = aligned([("depth", "cuboid", "cells"), ("0", "total", "1"), ("12", "state", "30")])
    assert text.splitlines() == [
        "depth  cuboid  cells",
        "    0  total       1",
        "   12  state      30",
    ]


def test_names_and_headings_give_way_and_figures_do_not():
    rows = [HEADINGS, ("0", "total", *FIGURES), ("1", CUBOID, *FIGURES)]
    parts = aligned(rows).split("\n\n")
    assert width("\n".join(parts)) <= WIDTH
    assert len(parts) == 2
    for part in parts:
        assert "o.municipality × d.municipality" in part, "each part says whose figures these are"
    assert [" ".join(parts).count(figure) for figure in FIGURES] == [2] * len(FIGURES)
    whole = aligned(rows, wide=True)
    assert "\n\n" not in whole
    assert CUBOID in whole
    assert "95 % max" in whole


def test_a_heading_goes_over_lines_that_end_between_words_and_blank_columns_are_left_out():
    rows = [("a", "b", *["95 % max"] * 12, "blank"), ("1", "total", *["±8"] * 12, "")]
    first, second, row = aligned(rows).splitlines()
    assert first.split() == ["95", "%"] * 12
    assert second.split() == ["a", "b", *["max"] * 12]
    assert row.split() == ["1", "total", *["±8"] * 12]


def test_codes_that_differ_are_not_cut_to_the_same():
    codes = [f"{'9' * 30}{middle}{'9' * 30}" for middle in "12"]
    rows = [("code", *HEADINGS), *((code, "1", "total", *FIGURES) for code in codes)]
    parts = aligned(rows, left=(0,)).split("\n\n")
    assert width("\n".join(parts)) <= WIDTH
    assert [line.split()[0] for line in parts[-1].splitlines()[-2:]] == ["1", "2"], "by their rows"
    short = [("code", *HEADINGS), *((f"{'9' * 12}{x}{'9' * 12}", "1", "a", *FIGURES) for x in "12")]
    assert len({line.split()[0] for line in aligned(short, left=(0,)).splitlines()[-2:]}) == 2


def test_codes_of_any_length_are_cut_in_no_time():
    codes = [f"{'9' * 200_000}{middle}{'9' * 200_000}" for middle in "12"]
    rows = [("code", *HEADINGS), *((code, "1", "total", *FIGURES) for code in codes)]
    began = time.process_time()
    assert width(aligned(rows, left=(0,))) <= WIDTH
    assert time.process_time() - began < 10
    assert codes[0] in aligned(rows, left=(0,), wide=True)


def test_a_figure_that_is_wider_than_a_terminal_is_whole():
    figure, code = "9" * 100, "c" * 50
    text = aligned([("depth", "cuboid", "cells"), ("0", "total", "1"), ("1", code, figure)])
    assert figure in text
    assert "\n2" in text, "its row has a number"


def test_letters_of_east_asia_take_two_columns():
    rows = [("名前", *HEADINGS), ("東京都" * 20, "1", "b", *FIGURES), ("a", "1", "b", *FIGURES)]
    text = aligned(rows, left=(0,))
    assert width(text) <= WIDTH
    assert len({cell_len(line) for line in text.split("\n\n")[0].splitlines()[-2:]}) == 1


@pytest.mark.parametrize("room", range(1, 47))
def test_a_name_takes_no_more_room_than_it_has(room):
    for name in (CUBOID, "都道府県" * 9, "x" * 46):
        assert cell_len(cut(name, room)) <= room
    assert cut("total", 5) == "total"


WORDS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=60)
TABLES = st.integers(1, 12).flatmap(
    lambda columns: st.lists(st.tuples(*[WORDS] * columns), min_size=1, max_size=4)
)


@settings(max_examples=40)
@given(TABLES, st.sets(st.integers(0, 11)))
def test_whatever_the_words_no_line_is_too_wide_and_no_figure_is_cut(rows, left):
    rows = [[x if i in left else x[:20] for i, x in enumerate(row)] for row in rows]
    text = aligned(rows, left)
    assert all(cell_len(line) <= WIDTH for line in text.splitlines())
    for row in rows[1:]:
        for i, word in enumerate(row):
            assert i in left or word.strip() in text
