"""`plot` of a plan, a release and a distribution: the pictures of the commands, as figures."""

import sys

import matplotlib as mpl
import pytest

import hedgerow as hr
from hedgerow.plan.picture import picture_of_forecast
from hedgerow.release.distribution.distribution import picture_of_distribution

TOWNS = {"town": ["a", "$b", "<i>c"], "people": [900, 3000, 20]}
SAID = hr.Description(title="Residents", unit="people", period="2021")


@pytest.fixture(scope="module")
def made():
    """A plan, its release, and a distribution."""
    tree = hr.Tree([hr.Axis.from_frame("place", TOWNS, levels=["town"])])
    plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8")).described(SAID)
    release = hr.release(hr.Counts.from_frame(tree, TOWNS, count="people"), plan)
    ages = [20 + i % 60 for i in range(6000)]
    ranges = {"low": 0, "high": 100, "bins": 20}
    return {
        "plan": plan,
        "release": release,
        "distribution": hr.release_distribution(ages, **ranges, budget=hr.Rho(1)),
    }


DRAWN = {"plan": picture_of_forecast, "distribution": picture_of_distribution}


@pytest.mark.parametrize("kind", DRAWN)
def test_a_plot_is_the_picture_of_the_command(made, kind, tmp_path, monkeypatch):
    figures = []
    module = sys.modules[DRAWN[kind].__module__]
    write = module.write_heading
    monkeypatch.setattr(
        module,
        "write_heading",
        lambda figure, *said: figures.append(figure) or write(figure, *said),
    )
    DRAWN[kind](made[kind], tmp_path / "a.svg")
    figure = made[kind].plot()
    assert figures[1] is figure
    ours, theirs = ([words_and_data(each) for each in one.axes] for one in reversed(figures))
    assert ours == theirs
    assert figure.get_size_inches().tolist() == figures[0].get_size_inches().tolist()
    figure.savefig(tmp_path / "b.png")
    assert (tmp_path / "b.png").stat().st_size > 5000


def words_and_data(axes):
    lines = [line.get_xydata().tolist() for line in axes.lines]
    return axes.get_title(loc="left"), axes.get_xlabel(), str(lines)


def test_a_plot_of_a_release_has_the_counts_and_intervals_that_show_gives(made):
    release = made["release"]
    figure, shown = release.plot(rows=2), release.show("town", rows=2)
    title, about = (text.get_text() for text in figure.texts[:2])
    assert title == "Residents, 2021"
    assert "The 2 largest of" in about
    (axes,) = figure.axes
    assert axes.lines[0].get_xdata().tolist() == shown.frame["count"].to_list()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["$b", "a"]
    wide = release.plot("town", confidence=hr.Confidence(0.999)).axes[0].collections[0]
    usual = release.plot("town").axes[0].collections[0]
    for longer, shorter in zip(wide.get_segments(), usual.get_segments(), strict=True):
        assert longer[0, 0] <= shorter[0, 0] <= shorter[1, 0] < longer[1, 0]
    with pytest.raises(hr.ReleaseError, match="did you mean 'town'"):
        release.plot("towns")


@pytest.mark.parametrize("kind", ["plan", "release", "distribution"])
def test_a_plot_leaves_the_settings_of_a_notebook_as_they_were(made, kind):
    before = dict(mpl.rcParams)
    figure = made[kind].plot()
    assert figure._repr_svg_().startswith("<?xml")
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize(
    ("kind", "error"),
    [("plan", hr.PlanError), ("release", hr.ReleaseError), ("distribution", hr.ReleaseError)],
)
def test_without_matplotlib_a_plot_names_the_extra(made, kind, error, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(error, match="a picture needs matplotlib: install Hedgerow with its extra"):
        made[kind].plot()


def test_a_notebook_shows_a_guarantee_and_a_promise_with_their_prices(made):
    plan = made["plan"]
    guarantee, promise = plan.guarantee._repr_html_(), plan.promise._repr_html_()
    assert "the promise of a plan does" in guarantee
    assert "notices a true difference" in promise
    assert "with or without any one record" in promise
    for shown in (guarantee, promise):
        assert shown.count("<tr>") == 6, "headings, and ε at five δ"
        assert ">1e-10</td>" in shown
    assert promise.index(">1e-08</td>") < promise.index(">1e-05</td>"), "its own δ first"
    assert ">1</td>" in promise


def test_no_name_is_markup_in_what_a_notebook_shows_of_a_promise():
    neighbours = hr.AddRemove(2, unit="<b>")
    tree = hr.Tree([hr.Axis.from_frame("place", TOWNS, levels=["town"])])
    plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"), neighbours=neighbours)
    shown = plan.promise._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown
