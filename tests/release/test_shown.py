"""What a notebook shows of a release."""

import base64
import html
import re
import sys

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from hedgerow.release.shown import _reliability
from tests.made import plain_plan

TOWNS = pl.DataFrame({
    "county": ["a", "a", "a", "b", "b"],
    "town": ["a1", "a2", "a3", "b1", "b2"],
    "name": ["Aller", "<b>Brue</b>", "Corve", "Dart", "Exe"],
})  # fmt: skip
PEOPLE = [50_000, 900, 3, 12_000, 14]


@pytest.fixture
def release():
    axis = hr.Axis.from_frame("place", TOWNS, levels=["county", "town"], names={"town": "name"})
    tree = hr.Tree([axis])
    frame = TOWNS.with_columns(people=pl.Series(PEOPLE))
    counts = hr.Counts.from_frame(tree, frame, count="people")
    said = hr.Description(title="Residents & others", unit="residents", period="2021")
    plan = plain_plan(
        tree,
        budget=hr.EpsilonDelta("1", "1e-8"),
        neighbours=hr.Replace(),
        invariants=[hr.Invariant("place", "county")],
        measure=hr.All(),
    ).described(said)
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(3))


def words_of(shown):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", shown)).split())


def test_the_largest_counts_stand_with_their_intervals_and_a_word(release):
    shown = release.show("town", rows=3)
    frame = release.level("town").sort("count", descending=True).head(3)
    assert shown.frame.equals(frame)
    text = words_of(shown._repr_html_())
    for row in frame.to_dicts():
        assert f"{row['count']:,} {row['low']:,} to {row['high']:,}" in text
    assert f"The 3 largest of {len(release.level('town'))} counts of residents above 0" in text
    assert "Residents & others, 2021" in text
    assert "with intervals of 95 % each" in text
    sure = release.show("town", confidence=hr.Confidence(0.99, simultaneous=True))
    assert "with intervals of 99 % for all at once" in str(sure)


def test_the_guarantee_is_shown_with_its_neighbours_and_restrictions(release):
    promise = " ".join(str(release.plan.promise).split())
    assert "the counts of place.county" in promise
    for shown in (release.show("town")._repr_html_(), release._repr_html_()):
        assert promise in words_of(shown)
    assert promise in " ".join(str(release.show("town")).split())


def test_the_words_say_how_far_the_truth_may_be_from_the_count(release):
    """By the farther end of the interval: within a tenth, within half, or beyond."""
    rows = release.show("town", rows=99)._rows()
    wanted = []
    for row in release.show("town", rows=99).frame.to_dicts():
        reach = max(row["high"] - row["count"], row["count"] - row["low"]) / row["count"]
        wanted.append("firm" if reach <= 0.1 else "rough" if reach <= 0.5 else "mostly noise")
    assert [row[-1].split(",")[0] for row in rows] == wanted
    assert {"firm", "mostly noise"} <= set(wanted)


@pytest.mark.parametrize(
    ("count", "low", "high", "word"),
    [
        (100, 91, 110, "firm"), (100, 90, 110, "firm"), (100, 89, 101, "rough"),
        (100, 99, 111, "rough"), (100, 50, 150, "rough"), (100, 49, 101, "mostly noise"),
        (100, 99, 151, "mostly noise"), (7, 7, 7, "firm"), (7, None, None, ""),
    ],
)  # fmt: skip
def test_the_farther_end_of_the_interval_decides_on_the_word(count, low, high, word):
    assert _reliability(count, low, high) == word
    told = _reliability(count, low, high, 1234.4)
    assert told == (word and f"{word}, contradicted: estimate 1,234")


def test_counts_that_are_public_are_exact(release):
    text = words_of(release._repr_html_())
    assert "50,903 50,903 exactly firm" in text, "the counties, which come first"


def test_names_of_areas_stand_for_their_codes_and_are_no_markup(release):
    shown = release.show("town", rows=99)._repr_html_()
    assert "Aller" in shown
    assert "<b>" not in shown
    assert "&lt;b&gt;Brue" in shown
    assert not re.search(r"<script|<style|<link|https?://|\son\w+=", shown)


def test_the_picture_draws_the_same_counts(release, monkeypatch):
    shown = release.show("town", rows=3)
    figures = []
    draw = type(shown)._draw

    def kept(self, figure, names):
        draw(self, figure, names)
        figures.append(figure)

    monkeypatch.setattr(type(shown), "_draw", kept)
    drawn = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', shown._repr_html_())
    assert b"<svg" in base64.b64decode(drawn[1])
    (axes,) = figures[0].axes
    assert axes.lines[0].get_xdata().tolist() == shown.frame["count"].to_list()
    ends = [segment[:, 0].tolist() for segment in axes.collections[0].get_segments()]
    assert ends == [list(map(float, row)) for row in shown.frame.select("low", "high").rows()]
    assert axes.get_xlabel() == "residents"
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "<img" not in shown._repr_html_()


def test_beside_a_row_of_one_axis_stand_its_last_two_names(release):
    shown = release.show("town")
    assert shown._short(["a", "Aller"]) == "a, Aller"
    assert release.show("county")._short(["a"]) == "a"
    assert len(shown._short(["a", "A long name " * 20])) == 60


def test_no_such_cuboid_or_no_rows_is_refused(release):
    with pytest.raises(hr.ReleaseError, match="no cuboid 'village'"):
        release.show("village")
    with pytest.raises(hr.ReleaseError, match="rows must be a whole number of at least 1, got 0"):
        release.show("town", rows=0)


def test_a_cube_is_shown_by_any_of_its_cuboids():
    axes = [
        hr.Axis.from_frame(name, {name: ["x", "y"]}, levels=[name]) for name in ("home", "work")
    ]
    tree = hr.Tree(axes)
    frame = pl.DataFrame({"home": ["x", "y"], "work": ["y", "x"], "n": [500, 40]})
    counts = hr.Counts.from_frame(tree, frame, count="n")
    plan = plain_plan(tree, budget=hr.Rho("1"), workload=hr.Cube(), measure=hr.All())
    made = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(0))
    shown = made.show("home.home × work.work", rows=2)
    assert [shown._short(words) for words in shown._labels()[1]] == ["x × y", "y × x"]
    assert [made.show("work.work")._short(["y"]), made.show("total")._short([])] == ["y", "total"]
    text = words_of(shown._repr_html_())
    assert np.all([word in text for word in ("home", "work", "records")])
    assert "above 0 by" in words_of(made._repr_html_())


def test_a_release_of_nothing_but_the_total_shows_it():
    areas = pl.DataFrame({"region": ["north"], "town": ["mill"]})
    tree = hr.Tree([hr.Axis.from_frame("place", areas, levels=["region", "town"])])
    plan = plain_plan(
        tree,
        budget=hr.EpsilonDelta("1", "1e-8"),
        neighbours=hr.AddRemove(),
        workload=hr.Cuboids(["total"]),
    )
    counts = hr.Counts.from_frame(tree, areas.with_columns(people=pl.lit(5_000)), count="people")
    assert "intervals of" in hr.release(counts, plan)._repr_html_()
