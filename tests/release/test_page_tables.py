"""Every table of a page, by its headings, against the files beside it and sums of our own.

Columns are found by their words (`tests.release.drawn_page`), and what they should say is computed
from the Parquet files, by dense matrices and by enumeration (`tests.release.shown_pages`).
"""

import json
import math
import re

import numpy as np
import polars as pl
import pytest

from hedgerow.estimate.intervals import Confidence
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.cuboids import Measured, Summed
from hedgerow.release.release import read_release
from tests.estimate.dense_trees import node_sums
from tests.release.drawn_page import between, ends, number, table, tables
from tests.release.made_pages import blocks_of, carried_rows, numbers, unfolded
from tests.release.shown_pages import (
    ALPHA,
    KINDS,
    NUMERIC,
    close,
    item,
    tail_quantile,
    variance,
    variances,
)

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

LEVELS = "Depth by depth"
SIZES = "Standard error of the unbiased estimates"
RELIABILITY = ["firm", "rough", "mostly noise"]


# The head of the page, and the first counts.


@pytest.mark.parametrize("kind", KINDS)
def test_the_facts_at_the_head_are_those_of_the_files(shown, kind):
    made = shown[kind]
    total = made.files[0]["count"][0]
    (answer,) = made.seen.all("div", id="answer")
    figure = answer.all("strong")[0]
    if kind in NUMERIC:
        assert item(answer, "Records").text == f"{total:,}"
    else:
        assert figure.text == f"{total:,}"
        low, high = made.files[0].select("low", "high").row(0)
        told = f"{between(low, high)} 95 % interval, "
        word = RELIABILITY[int(np.searchsorted([0.1, 0.5], max(high - total, total - low) / total))]
        (interval,) = answer.all("p", **{"class": "interval"})
        assert interval.text == ("exact" if low == high else f"{told}{word}")
    assert made.seen.all("details", id="made")[0].all("strong")[0].text == f"{total:,}"
    assert f"sum to the same total, {total:,}." in made.seen.all("details", id="files")[0].text
    assert f"plan {made.plan.hash[:8]}" in made.seen.all("p", **{"class": "by"})[0].text


@pytest.mark.parametrize("kind", KINDS)
def test_at_most_forty_words_stand_before_the_first_number(shown, kind):
    """But for the title, which is the publisher's: what a reader hears before the answer."""
    main = shown[kind].seen.all("body")[0]
    before = main.text.partition(main.all("strong")[0].text)[0]
    assert len(re.findall(r"[^\W\d_]+", before)) <= 40


@pytest.mark.parametrize("kind", KINDS)
def test_how_many_counts_are_firm_rough_and_noise_is_counted_in_the_files(shown, kind):
    made = shown[kind]
    (sure,) = made.seen.all("section", id="sure")
    rows = [row for one in tables(sure).values() for row in one.rows]
    listed = [(k, file) for k, file in enumerate(made.files) if len(file)]
    for row, (depth, file) in zip(rows, listed, strict=True):
        count, low, high = (file[name].to_numpy() for name in ("count", "low", "high"))
        reach = np.maximum(high - count, count - low) / count
        wanted = [reach <= 0.1, (reach > 0.1) & (reach <= 0.5), reach > 0.5]
        assert row["Level"].text == made.plan.label_of(made.tree.cuboid(depth))
        assert [number(row[word].text) for word in RELIABILITY] == [one.sum() for one in wanted]
        wide = [float(one.attributes["width"]) for one in row["In a picture"].all("rect")]
        assert wide == pytest.approx([160 * one.mean() for one in wanted], abs=0.06)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_counts_are_those_of_the_coarsest_file_with_several(shown, kind):
    made = shown[kind]
    depth = next(t for t, one in enumerate(node_sums(made.tree)) if len(one) > 1)
    file, found = made.files[depth], table(made.seen, "Counts by")
    columns = [axis.columns[level - 1] for axis, level in
               zip(made.tree.axes, made.tree.cuboid(depth), strict=True) if level]  # fmt: skip
    names = [" › ".join(row) for row in file.select(columns).iter_rows()]
    assert found.column(made.plan.label_of(made.tree.cuboid(depth))) == names[:60]
    for row, (count, estimate) in zip(
        found.rows, file.select("count", "estimate").iter_rows(), strict=False
    ):
        told = row["Count"].all("small")
        assert row["Count"].inside[0] == f"{count:,}"
        if told:
            why = "the count was changed so that none is negative and all add up"
            wanted = f"≠ contradicted; unbiased estimate {round(estimate):,}; {why}"
            assert told[0].text == wanted
    told = [ends(words) for words in found.column("95 % interval")]
    assert told == list(file.select("low", "high").iter_rows())[:60]


@pytest.mark.parametrize("kind", ["geography", "flows"])
def test_intervals_called_95_per_cent_are_the_quantiles_of_the_noise(shown, kind):
    """Of noisy counts as they are: the least k with P(|noise| > k) ≤ 5 %, to either side."""
    made, checked = shown[kind], 0
    for what, file in zip(made.plan.depths, made.files, strict=True):
        if not isinstance(what, Measured):
            continue
        inside = file.filter((pl.col("low") > 0) & (pl.col("high") < made.files[0]["count"][0]))
        wide = (inside["high"] - inside["low"]).unique().to_list()
        assert wide in ([], [2 * tail_quantile(what.mechanism, ALPHA)])
        checked += len(inside)
    assert checked > 10


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_script_reads_of_the_depths_is_in_plan_and_files(shown, kind):
    made = shown[kind]
    facts = json.loads(made.seen.all("script", id="facts")[0].text)
    assert facts["cuboids"] == [list(levels) for levels in made.tree.chain]
    assert facts["released"] == facts["cuboids"]
    assert [axis["name"] for axis in facts["axes"]] == [axis.name for axis in made.tree.axes]
    assert facts["sizes"] == [
        [axis.size(k) for k in range(axis.depth + 1)] for axis in made.tree.axes
    ]
    assert facts.get("numeric") == (0 if kind in NUMERIC else None)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_script_reads_of_the_total_is_in_its_file(shown, kind):
    made = shown[kind]
    root = made.tree.chain[0]
    ((count, low, high, *_),) = carried_rows(made.text, root)
    assert (count, low, high) == made.files[0].select("count", "low", "high").row(0)
    name = "-".join(map(str, root))
    parts = [numbers(part) for part in blocks_of(made.text)[f"intervals-{name}"]]
    for k, coverage in enumerate((0.9, 0.99)):
        (beyond, width), (over,), (under,) = parts[3 * k : 3 * k + 3]
        end = high + unfolded(beyond) + unfolded(over)
        told = read_release(made.folder).level(depth=0, confidence=Confidence(coverage))
        assert (max(0, end - width) + unfolded(under), end) == told["low", "high"].row(0)


# Level by level.


@pytest.mark.parametrize("kind", KINDS)
def test_the_levels_have_the_cells_rows_noise_and_shares_of_plan_and_files(shown, kind):
    made = shown[kind]
    found, cells = table(made.seen, LEVELS), [len(one) for one in node_sums(made.tree)]
    names = [f"{t} {made.plan.label_of(made.tree.cuboid(t))}" for t in range(made.tree.depth + 1)]
    assert found.column("Level") == names
    assert [number(words) for words in found.column("Possible counts")] == cells
    listed = [number(words) for words in found.column("Listed, above 0")]
    assert listed == [len(file) for file in made.files]
    part = "Share beside other levels" if kind == "cases" else "Share of the budget"
    for what, row in zip(made.plan.depths, found.rows, strict=True):
        noise, share = row["Noise"].text, row[part].text
        if not isinstance(what, Measured | Summed):
            assert (noise, share) == (what.kind, "–")
            continue
        symbol = "scale" if isinstance(what.mechanism, DiscreteLaplace) else "σ²"
        parameter, _, scale = noise.removeprefix(f"{symbol} ").partition(" on sums × ")
        assert close(parameter, float(what.mechanism.parameter), 6)
        assert close(share, float(what.share), 3)
        if isinstance(what, Summed):
            assert number(scale) == what.scale


@pytest.mark.parametrize("kind", KINDS)
def test_the_errors_of_the_levels_are_those_of_dense_matrices(shown, kind):
    """RMSE: the root of the mean variance; the mean absolute error would be a fifth less."""
    made = shown[kind]
    for what, each, row in zip(
        made.plan.depths, variances(made.plan), table(made.seen, LEVELS).rows, strict=True
    ):
        deviation = row["Noise: standard deviation"].text
        if isinstance(what, Measured):
            assert close(deviation, math.sqrt(variance(what.mechanism)), 4)
        else:
            assert deviation in ("–", "0")
        assert close(row["Expected error (RMSE)"].text, math.sqrt(each.mean()), 4)


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_that_none_exceeds_is_the_bound_at_95_per_cent(shown, kind):
    """By the union over all cells: of the noise's own tail where the counts are raw, of the
    Chernoff bound of a Gaussian's or a Laplace's, at the largest variance, elsewhere."""
    made = shown[kind]
    used = [what.mechanism for what in made.plan.depths if isinstance(what, Measured | Summed)]
    spread = max(continuous_variance(one) / variance(one) for one in used)
    found = table(made.seen, LEVELS).column("No estimate off by more (95 %)")
    for t, (what, each, words) in enumerate(
        zip(made.plan.depths, variances(made.plan), found, strict=True)
    ):
        chance, largest = ALPHA / len(each), each.max()
        if largest < 1e-9:
            assert words == "0"
        elif t == 0 and largest == pytest.approx(variance(what.mechanism)):
            quantile = tail_quantile(
                what.mechanism, chance
            )  # that of continuous noise is rounded up
            assert quantile <= number(words) <= quantile + 1
        else:
            many = deviations(chance, gaussian=isinstance(used[0], DiscreteGaussian))
            assert number(words) == math.ceil(math.sqrt(largest * spread) * many)


@pytest.mark.parametrize("kind", ["geography", "flows", "cases", "uneven", "three"])
def test_contradicted_are_the_counts_that_no_noise_of_a_whole_level_explains(shown, kind):
    """Further from their noisy counts than all draws of the level stay with 95 %, by Šidák."""
    made, marked = shown[kind], 0
    for what, file, row in zip(
        made.plan.depths, made.files, table(made.seen, LEVELS).rows, strict=True
    ):
        reach = 0
        if isinstance(what, Measured):
            each = -math.expm1(math.log(1 - ALPHA) / number(row["Possible counts"].text))
            reach = tail_quantile(what.mechanism, each)
        low, high = (file["estimate"] + end * reach for end in (-1, 1))
        outside = (file["count"] < low) & (file["count"] > 0) | (file["count"] > high.clip(0))
        assert number(row["Contradicted ≠"].text) == outside.sum()
        marked += outside.sum()
    shown_below = made.seen.all("section", id="counts")[0].all("small", **{"class": "doubt"})
    assert (marked > 20) == (kind == "uneven")
    assert bool(shown_below) == (kind == "uneven")


def continuous_variance(mechanism):
    """Of the law on the real line that the noise is a lattice version of."""
    parameter = float(mechanism.parameter)
    return parameter if isinstance(mechanism, DiscreteGaussian) else 2 * parameter**2


def deviations(chance, *, gaussian):
    """How far a sum goes with at most this probability, by the best exponent on a fine grid."""
    if gaussian:
        return math.sqrt(2 * math.log(2 / chance))
    mu = np.linspace(0, 1, 2_000_001)[1:-1]
    return ((math.log(2 / chance) - np.log1p(-mu * mu)) / mu).min() / math.sqrt(2)


# By size.


@pytest.mark.parametrize("kind", KINDS)
def test_standard_errors_by_size_are_the_means_over_the_rows_of_the_files(shown, kind):
    made = shown[kind]
    found, counted = table(made.seen, SIZES), 0
    names = [
        made.plan.label_of(made.tree.cuboid(t)) for t, file in enumerate(made.files) if len(file)
    ]
    assert found.column("Level") == names
    for row, file, what in zip(
        found.rows, [file for file in made.files if len(file)], made.plan.depths, strict=True
    ):
        for heading in row.keys() - {"Level"}:
            low, high = ends(heading)
            assert (low, high) == (10 ** len(str(low)) // 10, 10 ** len(str(low)) - 1)
            of = file.filter(pl.col("count").is_between(low, high))
            if not len(of):
                assert row[heading].text == "–"
                continue
            (many,) = row[heading].all("small")
            assert number(many.text) == len(of)
            counted += len(of)
            words = row[heading].text.removesuffix(many.text)
            relative = (of["standard_error"] / of["count"]).mean()
            if what.kind == "public" or relative == 0:
                assert words == "exact"
            else:
                small = relative < 0.0001
                assert small == (words == "< 0.01 %")
                assert small or close(words, relative, 2)
    assert counted == sum(map(len, made.files))


def test_every_table_and_picture_of_a_page_is_held_by_a_test(shown):
    """Here, in `test_page_prices` and in `test_page_distribution`; a new one needs its own.

    The hundred circles have no caption above them; they are the last of this file.
    """
    known = ("Counts by", "How many counts are", LEVELS, SIZES, "ε at several δ", "Records below")
    drawn = ("What the release costs", "What an attacker can find out", "How many records lie")
    for made in shown.values():
        assert all(caption.startswith(known) for caption in tables(made.seen))
        for figure in made.seen.all("figure"):
            if figure.classes != {"hundred"}:
                assert figure.all("figcaption")[0].text.startswith(drawn)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_circles_are_filled_as_far_as_an_attacker_notices(shown, kind):
    made = shown[kind]
    (figure,) = made.seen.all("figure", **{"class": "hundred"})
    words = made.seen.all("p", **{"class": "big"})[0].text
    told = float(re.search(r"at most ([\d.]+) %", words)[1])
    discs = [one.attributes.get("class") for one in figure.all("circle")]
    wedges = [one.attributes["class"] for one in figure.all("path")]
    assert (discs.count(None), discs.count("guessed")) == (100, 5)
    assert 5 <= discs.count("noticed") <= told <= discs.count("noticed") + 1.001
    assert set(wedges) <= {"noticed"}
    assert len(wedges) <= 1
