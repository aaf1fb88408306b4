"""Figures and their files: one home for what all pictures share."""

import itertools
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

import hedgerow
from hedgerow.cli.output_file import check_picture_place
from hedgerow.errors import BudgetError, PlanError
from hedgerow.picture import (
    COLOURS,
    LONGEST_NAME,
    MARKS,
    NAME,
    WARNING,
    figure_for,
    label_rows,
    open_axes,
    panel_name,
    power_of_ten,
    row_names,
    rows_height,
    scale_errors,
    svg_of,
    write_heading,
)

SOURCE = Path(hedgerow.__file__).parent


@pytest.mark.parametrize("suffix", ["png", "SVG", "pdf"])
def test_a_file_is_there_when_the_block_ends(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    with figure_for(path, (3, 2), PlanError) as figure:
        axes = figure.subplots()
        open_axes(axes)
        assert not path.exists()
    assert path.stat().st_size > 1000
    assert figure.get_size_inches().tolist() == [3, 2]
    seen = {side: spine.get_visible() for side, spine in axes.spines.items()}
    assert seen == {"left": True, "bottom": True, "top": False, "right": False}


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_a_picture_drawn_twice_is_the_same_file_without_a_date(tmp_path, suffix):
    drawn = []
    for name in "ab":
        with figure_for(tmp_path / f"{name}.{suffix}", (3, 2), PlanError) as figure:
            write_heading(figure, "Title", "below")
            figure.subplots().plot([1, 2], [2, 1])
        drawn.append((tmp_path / f"{name}.{suffix}").read_bytes())
    assert drawn[0] == drawn[1]
    assert b"CreationDate" not in drawn[0]
    assert b"dc:date" not in drawn[0]


def test_names_of_many_axes_stand_beside_their_rows_and_do_not_touch(tmp_path):
    name = "place.hospital × sex.sex × age.band × disease.chapter"
    names = row_names(["total", *(" × ".join(name.split(" × ")[: 1 + t // 3]) for t in range(12))])
    assert names[-1].count("\n") == 3
    with figure_for(tmp_path / "a.png", (8, rows_height(names)), PlanError) as figure:
        first, second = figure.subplots(1, 2)
        label_rows(first, names)
        label_rows(second, names, written=False)
        figure.draw_without_rendering()
        boxes = [label.get_window_extent() for label in first.get_yticklabels()]
    assert [label.get_text() for label in first.get_yticklabels()] == names
    assert all(above.y0 >= below.y1 for above, below in itertools.pairwise(boxes))
    assert all(box.x0 >= 0 for box in boxes)
    assert not any(label.get_visible() for label in second.get_yticklabels())


@pytest.mark.parametrize(
    "text",
    ["Residents by county and town " * 9, "WWWWWW MMMMMM " * 30,
     "RESIDENTS BY COUNTY " * 15, "人口普查按地区和年龄分组" * 12,
     "x" * 400],
    ids=["words", "broad", "capitals", "without spaces", "one word"],
)  # fmt: skip
def test_lines_of_a_text_are_no_longer_than_the_picture(tmp_path, text):
    with figure_for(tmp_path / "a.png", (7, 1), PlanError) as figure:
        write_heading(figure, text, text)
        figure.subplots()
        figure.draw_without_rendering()
        boxes = [line.get_window_extent() for line in figure.texts]
    assert all(box.x1 <= 7 * 100 for box in boxes)
    assert max(box.x1 for box in boxes) > 0.75 * 7 * 100, "a line that is nearly full"
    said = [line.get_text() for line in figure.texts]
    assert "".join("".join(said).split()) == 2 * "".join(text.split())


def test_a_very_long_name_of_a_row_is_cut_and_stays_beside_its_row():
    (name,) = row_names([f"{'Very long label ' * 30} × {'x' * 300} × sex"])
    lines = name.split("\n")
    assert lines[0].split() == (["Very", "long", "label"] * 9)[: len(lines[0].split())]
    assert all(0.5 < NAME.width_of(line) / LONGEST_NAME <= 1 for line in lines if len(line) > 6)
    assert lines[2] == lines[5] == "…"
    assert lines[-1] == "× sex"
    assert len(lines) == 7
    assert row_names(["total", "home × work"]) == ["total", "home × work"]
    assert panel_name("home.town × work.town") == "home.town\n× work.town"


@pytest.mark.parametrize("words", ["short", "A title that is long " * 9], ids=["short", "long"])
def test_a_heading_stands_over_the_panels_within_the_picture(tmp_path, words):
    below = "What is drawn, said in a sentence that needs more than a line of this picture. " * 2
    with figure_for(tmp_path / "a.png", (7, 3), PlanError) as figure:
        write_heading(figure, words, below, warning="CONFIDENTIAL")
        axes = figure.subplots()
        axes.set_title("panel")
        figure.draw_without_rendering()
        boxes = [text.get_window_extent() for text in figure.texts]
    assert all(above.y0 >= below.y1 - 1 for above, below in itertools.pairwise(boxes))
    assert all(box.x0 >= 0 and box.x1 <= 100 * 7 for box in boxes)
    assert boxes[0].y1 <= 100 * figure.get_size_inches()[1]
    assert boxes[-1].y0 >= axes.get_tightbbox().y1
    reds = [text.get_text() for text in figure.texts if text.get_color() == WARNING]
    assert reds == ["CONFIDENTIAL"]
    said = " ".join(text.get_text() for text in figure.texts)
    assert " ".join(f"{words} CONFIDENTIAL {below}".split()) == " ".join(said.split())


@pytest.mark.parametrize("title", ["$5 to $10", "100 % of \\alpha_2^3 $x", "人口 2021", "<b>&</b>"])
def test_a_title_is_drawn_letter_by_letter_and_never_as_a_formula(tmp_path, title):
    with figure_for(tmp_path / "a.svg", (6, 3), PlanError) as figure:
        write_heading(figure, title)
        label_rows(figure.subplots(), [title, "b"])
    assert not figure.texts[0].get_parse_math()
    assert "<b>" not in (tmp_path / "a.svg").read_text()


def test_drawing_leaves_the_settings_of_a_notebook_as_they_were(tmp_path):
    before = dict(mpl.rcParams)
    with figure_for(tmp_path / "a.png", (3, 2), PlanError):
        assert dict(mpl.rcParams) != before
    assert dict(mpl.rcParams) == before


def test_a_notebook_gets_the_same_picture_without_a_file(monkeypatch):
    drawn = svg_of(lambda figure: figure.subplots().plot([1, 2]), (3, 2), PlanError)
    assert drawn.startswith(b"<?xml")
    assert b"<svg" in drawn
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert svg_of(lambda _: None, (3, 2), PlanError) is None


# Simulated eyes: Machado, Oliveira & Fernandes (2009), severity 1, on linear RGB.
EYES = {
    "all colours": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour, eye):
    seen = XYZ @ np.clip(np.array(eye) @ linear(colour), 0, 1) / (XYZ @ np.ones(3))
    f = np.where(seen > 0.008856, np.cbrt(seen), 7.787 * seen + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
def test_all_eyes_tell_the_colours_of_series_apart_and_so_does_their_mark(eye):
    pairs = itertools.combinations(COLOURS, 2)
    assert all(np.linalg.norm(lab(a, EYES[eye]) - lab(b, EYES[eye])) > 15 for a, b in pairs)
    assert len(set(MARKS)) == len(set(COLOURS)) == len(COLOURS)


@pytest.mark.parametrize("colour", COLOURS)
def test_the_colours_of_series_stand_out_from_paper(colour):
    """Contrast 3 : 1, as WCAG 2.1 asks of graphics."""
    assert 1.05 / (XYZ[1] @ linear(colour) + 0.05) >= 3


@pytest.mark.parametrize(
    "values",
    [[9.8, 13.1, 12.4], [47.0], [10.0, 10.0], [1, 2e6], [3e-9, 4e12], [0, 43, 55], [0, 0.001, 9e5],
     [None, 7, float("inf")], [0, 0], [20, 5000]],
    ids=str,
)  # fmt: skip
def test_an_axis_of_errors_has_ticks_around_all_that_is_drawn(tmp_path, values):
    with figure_for(tmp_path / "a.png", (3, 3), PlanError) as figure:
        axes = figure.subplots()
        scale_errors(axes, values)
    drawn = [value for value in values if value is not None and value < float("inf")]
    bottom, top = axes.get_xlim()
    ticks = axes.get_xticks()
    shown = [tick for tick in ticks if bottom <= tick <= top]
    assert len(shown) == len(ticks), "a tick that is not to be seen"
    assert len(shown) >= (3 if any(drawn) else 2)
    assert min(shown) <= min(drawn) <= max(drawn) <= max(shown)
    spread = max(drawn) / max(min((x for x in drawn if x), default=1), 1e-300)
    far = 0 not in drawn and spread < 1e6 and max(shown) / min(shown) > 100 * spread
    assert not far, "ticks that leave the values little room"
    assert len(shown) <= 9
    words = [label.get_text() for label in axes.get_xticklabels()]
    assert [float(word.replace(",", "")) for word in words] == pytest.approx(list(ticks))
    assert not axes.xaxis.get_minorticklocs().size
    wanted = "symlog" if 0 in drawn else "log"
    assert axes.get_xscale() == wanted


@pytest.mark.parametrize(("value", "words"), [(1, "10⁰"), (1e-14, "10⁻¹⁴"), (1e3, "10³")])
def test_a_power_of_ten_is_written_without_a_formula(value, words):
    assert power_of_ten(value) == words


def test_a_figure_that_was_not_finished_is_not_written(tmp_path):
    with pytest.raises(ZeroDivisionError), figure_for(tmp_path / "a.png", (3, 2), PlanError):
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [PlanError, BudgetError], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["a.docx", "none/a.png", "folder.png"])
def test_a_place_that_cannot_be_is_an_error_of_the_room_that_draws(tmp_path, kind, name):
    (tmp_path / "folder.png").mkdir()
    with (
        pytest.raises(kind, match="cannot write the picture"),
        figure_for(tmp_path / name, (3, 2), kind),
    ):
        pass


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf"])
def test_a_picture_of_its_kind_is_replaced_and_nothing_else_unless_forced(tmp_path, name):
    path = tmp_path / name
    path.write_text("table")
    with (
        pytest.raises(BudgetError, match="the file exists and is not an image"),
        figure_for(path, (3, 2), BudgetError),
    ):
        pass
    assert path.read_text() == "table"
    with figure_for(path, (3, 2), BudgetError, force=True):
        pass
    drawn = path.stat().st_mtime_ns
    with figure_for(path, (3, 2), BudgetError):
        pass
    assert path.stat().st_mtime_ns > drawn


def test_without_matplotlib_a_command_stops_before_it_works(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    check_picture_place(None, PlanError)
    with pytest.raises(PlanError, match=r"pip install '\.\[pictures\]'"):
        check_picture_place(tmp_path / "a.png", PlanError)


def test_without_matplotlib_a_picture_a_picture_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with (
        pytest.raises(PlanError, match=r"pip install '\.\[pictures\]'"),
        figure_for(tmp_path / "a.png", (3, 2), PlanError),
    ):
        pass


def test_figures_are_made_in_one_place():
    makers = [path.name for path in SOURCE.rglob("*.py") if "matplotlib.figure" in path.read_text()]
    assert makers == ["picture.py"]


@pytest.mark.slow
def test_the_commands_are_there_without_loading_matplotlib():
    code = "import sys, hedgerow.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
