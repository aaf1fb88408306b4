"""The picture of a plan: what is expected of it, and what it is called."""

import itertools

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.plan import picture
from hedgerow.plan.forecast import forecast
from hedgerow.plan.picture import picture_of_forecast, some_rows, svg_of_forecast
from tests.made import fixed_axis, plain_plan

TREE = hr.Tree([fixed_axis("geo", 3, 4)])
SAID = hr.Description(
    title="Residents", unit="people", period="2021", levels={TREE.axes[0].levels[0]: "Province"}
)


@pytest.fixture
def plan():
    return plain_plan(TREE, budget=hr.Rho(1), neighbours=hr.Replace())


def panels(plan, monkeypatch, tmp_path):
    """The figure of a plan, and its forecast."""
    figures, real = [], picture.write_heading
    monkeypatch.setattr(
        picture,
        "write_heading",
        lambda figure, *said: (figures.append(figure), real(figure, *said)),
    )
    picture_of_forecast(plan, tmp_path / "a.svg")
    return figures[0], forecast(plan)


def test_errors_shares_and_empty_cells_are_those_of_the_forecast(plan, monkeypatch, tmp_path):
    figure, frame = panels(plan, monkeypatch, tmp_path)
    errors, shares, empty = figure.axes
    most, noise, typical = (line.get_xdata().tolist() for line in errors.lines[:3])
    assert (most, noise, typical) == tuple(
        frame[name].to_list() for name in ("max_95", "noise_sd", "rmse")
    )
    assert [bar.get_width() for bar in shares.patches] == [0, 50, 50]
    words = [text.get_text().strip() for text in shares.texts]
    assert words == ["public", "50.0%", "50.0%"]
    assert list(empty.lines[0].get_xdata()) == frame["false_positive_share"].to_list()
    rows = [label.get_text() for label in errors.get_yticklabels()]
    assert rows == frame["cuboid"].to_list()
    assert errors.get_ylim()[0] > errors.get_ylim()[1], "the first row is at the top"
    assert errors.get_xlabel() == "records"


def test_the_tables_own_title_unit_and_labels_are_shown(plan, monkeypatch, tmp_path):
    figure, _ = panels(plan.described(SAID), monkeypatch, tmp_path)
    words = [text.get_text() for text in figure.texts]
    assert words[0] == "Residents, 2021"
    assert "the released counts of people, from public facts" in " ".join(words[1:])
    assert plan.hash[:12] in " ".join(words[1:])
    assert figure.axes[0].get_xlabel() == "people"
    assert figure.axes[0].get_yticklabels()[1].get_text() == "Province"


def test_a_picture_of_a_plan_states_no_guarantee(plan):
    """One that stood alone would say ε without its neighbours."""
    drawn = svg_of_forecast(plan.described(SAID), forecast(plan)).decode()
    assert "ε" not in drawn
    assert "ρ" not in drawn


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_picture_is_drawn_even_of_what_is_partly_unknown(plan, tmp_path, suffix):
    frame = forecast(plan).with_columns(pl.Series("rmse", [0.0, None, 1.0]))
    picture_of_forecast(plan, tmp_path / f"forecast.{suffix}", frame)
    assert (tmp_path / f"forecast.{suffix}").stat().st_size > 5000


def test_a_picture_that_cannot_be_written_is_explained(plan, tmp_path):
    for path in (tmp_path / "no" / "where.png", tmp_path / "a.word"):
        with pytest.raises(hr.PlanError, match="cannot write the picture"):
            picture_of_forecast(plan, path)


def test_of_many_cuboids_an_even_choice_is_drawn_from_the_first_to_the_last():
    assert some_rows(5) == [0, 1, 2, 3, 4]
    chosen = some_rows(1000)
    assert len(chosen) == 60
    assert (chosen[0], chosen[-1]) == (0, 999)
    assert {b - a for a, b in itertools.pairwise(chosen)} <= {16, 17, 18}
