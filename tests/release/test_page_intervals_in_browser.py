"""The intervals that a reader chooses on a page, against those of the release at that level."""

import csv
import re

import numpy as np
import polars as pl
import pytest

from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.ranges import Ranges
from hedgerow.estimate.intervals import Confidence
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.plan.cuboids import All
from hedgerow.plan.workload import Cube
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.neighbours import Replace
from hedgerow.release.page.carried import OTHERS, other_intervals
from hedgerow.release.release import read_release
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from tests.made import all_leaves
from tests.parts import CHROMIUM
from tests.release.drawn_page import between
from tests.release.in_browser import ROWS, address, ready
from tests.release.made_pages import written
from tests.release.test_areas import made as made_areas

pytestmark = [CHROMIUM.needed, pytest.mark.xdist_group("browser")]

RELIABILITY = ["firm", "rough", "mostly noise"]


def areas(name):
    rows = [(f"r{i // 4}", f"r{i // 4}d{i}") for i in range(12)]
    frame = pl.DataFrame(rows, schema=["region", "district"], orient="row")
    return Axis.from_frame(
        name, frame, frame.columns, columns=[f"{name}_{c}" for c in frame.columns]
    )


def made(folder, tree, **options):
    return written(
        folder, all_leaves(tree, 7 * np.arange(tree.leaves) ** 2 % 400), seed=3, **options
    )


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("intervals")
    ranges = Ranges.equal_width("income", 0, 60, 60)
    return {
        "survivors": made(folder / "survivors", Tree([areas("place")]), budget=Rho("1/50")),
        "combined": made(folder / "combined", Tree([areas("place")]), budget=Rho("1/50"),
                            measure=All(), neighbours=Replace()),
        "incomes": made(folder / "incomes", Tree([coded_axis(ranges, [6, 10])]),
                           budget=Epsilon("1/4"), measure=All(), mechanism=DiscreteLaplace),
        "cube": made(folder / "cube", Tree([areas("home"), areas("work")]), budget=Rho("1/10"),
                        workload=Cube(), neighbours=Replace()),
    }  # fmt: skip


def file_at(release, kind, confidence):
    if kind == "cube":
        return release.cuboid(confidence, home="district", work="region")
    return release.level(depth=1, confidence=confidence)


HERE = {"cube": address("", "", by=(2, 1))}


def choose(tab, level):
    tab.locator(f"button[data-sure='{level}']").click()
    tab.wait_for_selector(f"button[data-sure='{level}'][aria-pressed='true']")


def sureness(row):
    reach = max(row["high"] - row["count"], row["count"] - row["low"]) / row["count"]
    return RELIABILITY[0 if reach <= 0.1 else 1 if reach <= 0.5 else 2]


@pytest.mark.parametrize("kind", ["survivors", "combined", "incomes", "cube"])
@pytest.mark.parametrize("width", [1280, 390])
def test_rows_words_and_downloads_follow_the_chosen_level(opened, releases, kind, width):
    tab = opened(releases[kind].path, HERE.get(kind, ""), width=width)
    tab.wait_for_selector("#explorer[data-ready]")
    for level in (90, 99, 95):
        choose(tab, level)
        file = file_at(releases[kind].release, kind, Confidence(level / 100))
        if kind != "incomes":  # bins stand in their order
            file = file.sort("count", descending=True, maintain_order=True)
        rows = tab.locator(ROWS).evaluate_all(
            "(all) => all.map(({ cells }) => [cells[1], cells[2], cells[cells.length - 1]]"
            ".map((one) => one.innerText.trim()))"
        )
        assert rows == [
            [f"{row['count']:,}", between(row["low"], row["high"]), sureness(row)]
            for row in file.head(12).to_dicts()
        ]
        heading = f"{level} % interval"
        assert tab.locator(f"{ROWS} td[data-of]").nth(1).get_attribute(
            "data-of") == heading  # fmt: skip
        with tab.expect_download() as got:
            tab.locator("button.save").click()
        with got.value.path().open(encoding="utf-8-sig", newline="") as written_out:
            saved = [
                tuple(int(row[name]) for name in ("count", f"low_{level}", f"high_{level}"))
                for row in csv.DictReader(written_out)
            ]
        assert sorted(saved) == sorted(file.select("count", "low", "high").iter_rows())


def test_the_total_has_the_chosen_interval_too(opened, releases):
    tab = opened(releases["survivors"].path)
    tab.wait_for_selector("#explorer[data-ready]")
    for level in (99, 90):
        choose(tab, level)
        (whole,) = (
            releases["survivors"]
            .release.level(depth=0, confidence=Confidence(level / 100))
            .to_dicts()
        )
        told = f"{between(whole['low'], whole['high'])} {level} % interval"
        assert told in tab.inner_text("#answer")


def test_words_to_look_for_and_the_focus_outlive_another_level(opened, releases):
    tab = opened(releases["cube"].path, HERE["cube"])
    tab.wait_for_selector("#explorer[data-ready]")
    tab.locator("#explorer input[type=search]").fill("r1d5")
    choose(tab, 99)
    assert tab.locator("#explorer input[type=search]").input_value() == "r1d5"
    assert tab.evaluate("document.activeElement.dataset.sure") == "99"
    assert "99 % interval" in tab.inner_text(".reading")


def test_the_intervals_lie_within_one_another():
    class Shifted:
        """Errors whose other intervals come out a record too wide and too narrow."""

        def interval(self, _estimate, _variance, confidence):
            ends = {OTHERS[0]: (9, 21), OTHERS[1]: (12, 18)}[confidence]
            return tuple(np.array([end]) for end in ends)

    usual = np.array([10]), np.array([20])
    found = other_intervals(Shifted(), np.array([15.0]), np.array([4.0]), usual)
    assert [tuple(int(end[0]) for end in pair) for pair in found] == [(10, 20), (10, 20)]


def test_a_share_stands_in_answer_and_rows_with_a_set_that_holds_that_of_the_release(
    opened, tmp_path
):
    """A page knows the files alone, and no covariance: its sets are a little wider."""
    path = made(tmp_path / "shares", Tree([areas("place")]), budget=Rho("1/20"), measure=All()).path
    release = read_release(path.with_suffix(""))
    file = release.level("district")
    is_noise = pl.max_horizontal(
        pl.col("high") - pl.col("count"), pl.col("count") - pl.col("low")
    ) > 0.5 * pl.col("count")
    firm = file.filter(~is_noise).select("place_district")
    of_total, of_region = (
        release.ratio({"place": "district"}, whole).join(firm, on="place_district")
        for whole in ({}, {"place": "region"})
    )
    assert 0 < len(firm) < len(file)
    tab = ready(opened(path, address("", by=(2,))))
    assert tab.locator(".listing thead th").nth(3).inner_text() == "Share of the total"
    rows = [row.split("\t") for row in tab.locator(ROWS).all_inner_texts()]
    shares = {name: numbers for name, *cells in rows if len(numbers := parts(cells[2])) == 3}
    assert {*shares} == {*firm["place_district"]}
    for row in of_total.iter_rows(named=True):
        check_share(shares[row["place_district"]], row)
    row = of_region.row(-1, named=True)
    code, region = row["place_district"], row["place_region"]
    tab = ready(opened(path, address(code)), code)
    assert tab.inner_text("#answer .share").startswith(f"Share of {region}: ")
    check_share(parts(tab.inner_text("#answer .share")), row)
    shares = {
        name: parts(cells[2])
        for name, *cells in (row.split("\t") for row in tab.locator(ROWS).all_inner_texts())
    }
    assert shares[code] == parts(tab.inner_text("#answer .share")), "the rows are those beside it"
    small = file.filter(is_noise)["place_district"][0]
    assert ready(opened(path, address(small)), small).locator("#answer .share").count() == 0


@pytest.mark.parametrize("kind", ["cube", "spine cube"])
def test_shares_of_two_axes_have_sets_that_hold_those_of_the_release(opened, kind, tmp_path):
    """Beside a fixed code its rows are shares of it; a pair is one of what each of both has."""
    release = made_areas(kind, budget=Rho(50))
    release.write(tmp_path / "out")
    page, rest = tmp_path / "out" / "report.html", [""] * (len(release.plan.tree.axes) - 2)
    alone = [0 for _ in rest]
    tab = ready(opened(page, address("", "x", *rest, by=(2, 1, *alone))), "x")
    assert tab.locator(".listing thead th").nth(3).inner_text() == "Share of age x"
    rows = [row.split("\t") for row in tab.locator(ROWS).all_inner_texts()]
    shares = {name: numbers for name, *cells in rows if len(numbers := parts(cells[2])) == 3}
    fine, of_age, of_town = {"place": "town", "age": "band"}, {"age": "band"}, {"place": "town"}
    told = release.ratio(fine, of_age).filter(pl.col("band") == "x")
    wanted = {row["town"]: row for row in told.iter_rows(named=True)}
    assert len(shares) > 2
    for town, share in shares.items():
        check_share(share, wanted[town])
    town = next(iter(shares))
    tab = ready(opened(page, address(town, "x", *rest)), town)
    both = [parts(words) for words in tab.locator("#answer .share").all_inner_texts()]
    beside = release.ratio(fine, of_town).filter(town=town, band="x").row(0, named=True)
    for share, row in zip(both, (wanted[town], beside), strict=True):
        check_share(share, row)


def check_share(found, row):
    """A share in per cent and the ends of its set, beside those of the release."""
    value, low, high = found
    assert low <= 100 * row["low"] + 1e-9
    assert high >= 100 * row["high"] - 1e-9
    assert high - low < 200 * (row["high"] - row["low"]) + 5
    assert abs(value - 100 * row["ratio"]) <= max((high - low) / 2, 0.1)


def parts(words):
    """The percentages in some words."""
    return [float(each) for each in re.findall(r"([\d.]+) %", words)]
