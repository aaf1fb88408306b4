"""Figures and their files: one home for what all pictures share."""

import itertools
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import hedgerow
from hedgerow.cli.output_file import check_picture_place
from hedgerow.errors import BudgetError, PlanError
from hedgerow.picture import figure_for, label_depths, open_axes, scale_errors

SOURCE = Path(hedgerow.__file__).parent


@pytest.mark.parametrize("suffix", ["png", "SVG", "pdf"])
def test_a_file_is_there_when_the_block_ends(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    path = tmp_path / f"a.{suffix}"
    with figure_for(path, (3, 2), PlanError) as figure:
        axes = figure.subplots()
        label_depths(axes, pl.DataFrame({"depth": [0, 2], "cuboid": ["total", "a × b"]}))
        open_axes(axes, grid="y")
        assert not path.exists()
    assert path.stat().st_size > 1000
    assert figure.get_size_inches().tolist() == [3, 2]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["total", "a\n× b"]
    assert axes.get_xticks().tolist() == [0, 2]
    seen = {side: spine.get_visible() for side, spine in axes.spines.items()}
    assert seen == {"left": True, "bottom": True, "top": False, "right": False}
    assert not any(line.get_visible() for line in axes.get_xgridlines())
    assert all(line.get_visible() for line in axes.get_ygridlines())


def test_names_of_many_axes_at_many_depths_do_not_touch(tmp_path):
    pytest.importorskip("matplotlib")
    name = "place.hospital × sex.sex × age.band × disease.chapter"
    names = ["total", *(" × ".join(name.split(" × ")[: 1 + t // 3]) for t in range(12))]
    with figure_for(tmp_path / "a.png", (11, 4.6), PlanError) as figure:
        axes = figure.subplots(1, 2)[0]
        axes.plot(range(13), range(0, 1300, 100))
        label_depths(axes, pl.DataFrame({"depth": list(range(13)), "cuboid": names}))
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert len(boxes) == 13
    assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize(
    "values",
    [[9.8, 13.1, 12.4], [47.0], [10.0, 10.0], [1, 2e6], [3e-9, 4e12], [0, 43, 55], [0, 0.001, 9e5],
     [None, 7, float("inf")], [0, 0], [20, 5000]],
    ids=str,
)  # fmt: skip
def test_an_axis_of_errors_has_ticks_around_all_that_is_drawn(tmp_path, values):
    pytest.importorskip("matplotlib")
    with figure_for(tmp_path / "a.png", (3, 3), PlanError) as figure:
        axes = figure.subplots()
        scale_errors(axes, values)
    drawn = [value for value in values if value is not None and value < float("inf")]
    bottom, top = axes.get_ylim()
    ticks = axes.get_yticks()
    shown = [tick for tick in ticks if bottom <= tick <= top]
    assert len(shown) == len(ticks), "a tick that is not to be seen"
    assert len(shown) >= (3 if any(drawn) else 2)
    assert min(shown) <= min(drawn) <= max(drawn) <= max(shown)
    assert len(shown) <= 13
    words = [label.get_text() for label in axes.get_yticklabels()]
    assert [float(word.replace(",", "")) for word in words] == pytest.approx(list(ticks))
    assert not axes.yaxis.get_minorticklocs().size
    wanted = "symlog" if 0 in drawn else "log"
    assert axes.get_yscale() == wanted


def test_a_figure_that_was_not_finished_is_not_written(tmp_path):
    pytest.importorskip("matplotlib")
    with pytest.raises(ZeroDivisionError), figure_for(tmp_path / "a.png", (3, 2), PlanError):
        1 / 0  # noqa: B018
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [PlanError, BudgetError], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", ["a.docx", "none/a.png", "folder.png"])
def test_a_place_that_cannot_be_is_an_error_of_the_room_that_draws(tmp_path, kind, name):
    pytest.importorskip("matplotlib")
    (tmp_path / "folder.png").mkdir()
    with (
        pytest.raises(kind, match="cannot write the picture"),
        figure_for(tmp_path / name, (3, 2), kind),
    ):
        pass


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf"])
def test_a_picture_of_its_kind_is_replaced_and_nothing_else_unless_forced(tmp_path, name):
    pytest.importorskip("matplotlib")
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
    with pytest.raises(PlanError, match=r"pip install 'hedgerow\[pictures\]'"):
        check_picture_place(tmp_path / "a.png", PlanError)


def test_without_matplotlib_a_picture_a_picture_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with (
        pytest.raises(PlanError, match=r"pip install 'hedgerow\[pictures\]'"),
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
