"""The page of a release: complete, safe from the names in it, and made from public files alone."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.cli.released import report
from hedgerow.errors import ReleaseError
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.pages.markup import SCRIPTS, part
from hedgerow.plan.cuboids import Invariant
from hedgerow.plan.forecast import HEADINGS, forecast, forecast_rows
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.release.directory.measurements import counts_file
from hedgerow.release.page import carried as blocks
from hedgerow.release.page import cuboids as cuboids_module
from hedgerow.release.page import levels as facts_module
from hedgerow.release.page import report as report_module
from hedgerow.release.page.carried import Cells, varints
from hedgerow.release.page.cuboids import Carried
from hedgerow.release.page.levels import keeps_budget
from hedgerow.release.page.price import curves, least_missed
from hedgerow.release.page.report import EXPLORE, MAPS, SHARED, check_report
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from tests.made import plain_plan, random_axis, random_tree
from tests.release.contradictions import uneven
from tests.release.drawn_page import read, table
from tests.release.made_pages import (
    blocks_of,
    carried_rows,
    changed,
    facts_of,
    numbers,
    page_of,
    written,
)
from tests.release.shown_pages import OTHERS

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

PLANTED = 987_654_321


def wrote(folder, counts, **options):
    """A release along a chain with its page."""
    options = {"budget": Rho("1/2"), "estimator": Chebyshev(), "seed": 3, **options}
    return written(folder, counts, **options)


def text_of(made):
    return read(page_of(made)).text


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_numbers_of_variable_length_read_back(values):
    assert numbers(varints(np.array(values, dtype=np.int64))) == values


def test_one_directory_gives_one_page(shown):
    made = shown["flows"]
    assert page_of(made) == made.text


def test_another_deflation_is_the_same_page(shown, monkeypatch, tmp_path):
    made = wrote(tmp_path / "release", shown["geography"].counts)
    text, levels = page_of(made), []
    compressor = blocks.zlib.compressobj
    monkeypatch.setattr(
        blocks.zlib, "compressobj",
        lambda level, *others: levels.append(level) or compressor(0, *others),
    )  # fmt: skip
    other = page_of(made)
    assert levels
    assert other != text
    (made.folder / report_module.REPORT).write_text(other, encoding="utf-8")
    monkeypatch.undo()
    check_report(made.folder, made.plan, made.estimator, "9.8.7")


def test_nothing_confidential_is_in_a_page(tmp_path):
    """The true count of one leaf, planted, is drawn with noise so wide that it cannot return."""
    rng = np.random.default_rng(8)
    tree = Tree([random_axis(rng, "geography", depth=2)])
    counts = Counts.from_leaves(tree, (np.array([1], np.int32),), np.array([PLANTED]))
    made = wrote(tmp_path / "release", counts, budget=Rho("1/100000000"))
    shown = [
        value
        for levels in made.plan.levels
        for *_, count, low, high, estimate, _doubt in carried_rows(made.text, levels)
        for value in (count, low, high, estimate)
    ]
    assert max(shown) > PLANTED / 2
    assert PLANTED not in shown
    for words in (str(PLANTED), f"{PLANTED:,}"):
        assert words not in made.text


def test_the_true_table_does_not_change_a_page_of_the_same_files(shown, tmp_path):
    """A page is a function of the directory and the plan; no table is at hand when it is made."""
    made = shown["flows"]
    report(made.folder, tmp_path / "again.html")
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    version = json.loads((made.folder / "manifest.json").read_text())["software"]["hedgerow"]
    assert again == made.text.replace("9.8.7", version)


def test_deep_levels_are_left_to_the_files(shown, monkeypatch):
    made = shown["geography"]
    rows = [pq.read_metadata(made.folder / counts_file(made.plan.tree.cuboid(t))).num_rows
            for t in range(4)]  # fmt: skip
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", sum(rows[:3]))
    text = page_of(made)
    assert "This page carries the counts of depths 0 to 2" in read(text).text
    assert "counts/cuboid=3.parquet" in read(text).text
    assert set(blocks_of(text)) == {
        "level-0-1", "level-0-2", *(f"{what}-{k}" for what in ("cuboid", "intervals")
                                    for k in range(3)),
    }  # fmt: skip


def test_a_page_has_room_for_so_many_characters(shown, monkeypatch):
    made = shown["geography"]
    size = {one.attributes["id"]: len(one.text) for one in made.seen.all("script")
            if one.attributes.get("type") == "text/plain"}  # fmt: skip
    monkeypatch.setattr(cuboids_module, "MOST_CHARACTERS", sum(size.values()))
    assert facts_of(page_of(made))["cuboids"] == [[0], [1], [2], [3]]
    monkeypatch.setattr(cuboids_module, "MOST_CHARACTERS", sum(size.values()) - 1)
    assert facts_of(page_of(made))["cuboids"] == [[0], [1], [2]]


def test_files_too_large_to_read_are_said_to_be(shown, monkeypatch):
    made = shown["geography"]
    rows = pq.read_metadata(made.folder / counts_file((2,))).num_rows
    monkeypatch.setattr(facts_module, "MOST_ROWS_OF_A_PAGE", rows)
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", rows)
    assert "Too large to read for this page: level3" in text_of(made)


def test_what_is_public_is_said(shown, tmp_path):
    made = wrote(
        tmp_path / "release", shown["flows"].counts, neighbours=Replace(),
        invariants=[Invariant("a0", "level1")],
    )  # fmt: skip
    said = text_of(made)
    assert "Exact counts, released without noise: total and a0 level1" in said
    assert "does not hide anything that these counts give away" in said
    assert "Public counts are stated as exact" in said
    assert "No count is public" in shown["geography"].seen.text
    assert "Public counts are held" not in shown["geography"].seen.text


def test_the_lines_of_units_of_several_records_are_called_bounds(shown, tmp_path):
    counts = shown["geography"].counts
    made = wrote(tmp_path / "release", counts, neighbours=AddRemove(3))
    seen = made.seen
    assert "no unit has more than 3 records is the publisher" in seen.text
    assert "proved bounds for whatever one unit changes, a little on the safe side" in seen.text
    assert "The exact lines are those of all noisy measurements" not in seen.text
    (names,) = {tuple(e.text for e in seen.all("th") if "bound" in e.text)}
    assert names == ("proved bound",)


def figures_of(plan):
    """The table of ε: its caption and first two headings."""
    drawn = curves(plan)
    part = drawn[drawn.index("ε at several δ") :]
    return part[: part.index("<")], re.findall(r"<th[^>]*>([^<]*)</th>", part)[:2]


def test_figures_are_called_exact_only_where_they_are():
    """Beyond δ = 1e-250 figures follow from ρ, and with two records a unit from norms."""
    tree = Tree([Axis.from_frame("geo", {"area": ["a", "b"]}, ["area"])])
    exact = ("ε at several δ, rounded up", ["δ", "exact"])
    bound = (f"{exact[0]}; the first column is what is promised", ["δ", "proved bound"])
    usual, tiny = EpsilonDelta(1, "1e-8"), EpsilonDelta(1, "1e-310")
    assert figures_of(plain_plan(tree, budget=usual)) == exact
    once = Replace(exactly=False)
    assert figures_of(plain_plan(tree, budget=usual, neighbours=once)) == exact
    assert figures_of(plain_plan(tree, budget=tiny)) == bound
    assert figures_of(plain_plan(tree, budget=usual, neighbours=AddRemove(2))) == bound


def test_the_citation_names_plan_version_and_promise(shown):
    made = shown["flows"]
    (quoted,) = made.seen.all("blockquote")
    assert made.plan.hash in quoted.text
    assert "Hedgerow 9.8.7" in quoted.text
    assert "at δ = 1e-08" in quoted.text


def test_a_numeric_release_shows_its_distribution(shown):
    assert "Distribution of income" in shown["numeric"].seen.text
    assert shown["numeric"].seen.all("polygon")
    assert not shown["geography"].seen.all("polygon")


@pytest.mark.parametrize("kind", ["geography", "flows", "numeric"])
def test_the_budget_is_seen_to_be_kept(shown, kind):
    plan, said = shown[kind].plan, "it is in budget"
    assert keeps_budget(plan)
    assert said in shown[kind].seen.text
    dearer = plain_plan(plan.tree, budget=Rho(200), neighbours=plan.neighbours)
    if plan.mechanism is DiscreteLaplace:
        dearer = plain_plan(plan.tree, budget=Epsilon(2), neighbours=plan.neighbours,
                           mechanism=DiscreteLaplace)  # fmt: skip
    given = SimpleNamespace(guarantee=dearer.guarantee, budget=plan.budget)
    assert not keeps_budget(given)


def test_a_budget_that_is_passed_by_a_thousandth_is_not_kept():
    costs = {
        Rho("1/2"): [Rho("499/1000")],
        EpsilonDelta(1, "1e-8"): [EpsilonDelta("999/1000", "1e-8"), EpsilonDelta(1, "9e-9")],
    }
    tree = random_tree(np.random.default_rng(2))
    for budget, smaller in costs.items():
        guarantee = plain_plan(tree, budget=budget).guarantee
        assert keeps_budget(SimpleNamespace(guarantee=guarantee, budget=budget))
        for less in smaller:
            assert not keeps_budget(SimpleNamespace(guarantee=guarantee, budget=less))


def test_a_pure_promise_leaves_the_two_lines_of_its_epsilon():
    epsilon = np.log(2)
    for alpha in (0.0, 0.2, 1 / 3, 0.7, 1.0):
        wanted = max(0.0, 1 - 2 * alpha, (1 - alpha) / 2)
        assert least_missed([(epsilon, 0.0)], alpha) == pytest.approx(wanted)


def test_the_command_leaves_a_release_as_it_is(shown, tmp_path):
    made = shown["flows"]
    with pytest.raises(ReleaseError, match="lies within the release"):
        report(made.folder, made.folder / "page.html")
    (tmp_path / "taken.html").touch()
    with pytest.raises(ReleaseError, match="exists already"):
        report(made.folder, tmp_path / "taken.html")
    with pytest.raises(ReleaseError, match="the directory does not exist"):
        report(made.folder, tmp_path / "no" / "page.html")
    with pytest.raises(ReleaseError, match="is no release directory"):
        report(tmp_path, tmp_path.with_name("page-of-none.html"))


def test_a_damaged_release_is_one_sentence(shown, tmp_path):
    made = shown["flows"]
    levels = made.tree.cuboid(2)
    made = changed(made, tmp_path / "changed", levels, lambda frame: frame.head(0))
    with pytest.raises(ReleaseError):
        report(made.folder, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("kind", ["geography", "flows", "numeric", *OTHERS])
def test_the_largest_errors_are_those_that_the_plan_shows(shown, kind):
    rows = forecast_rows(forecast(shown[kind].plan))
    largest = [row[HEADINGS.index("95 % max")] for row in rows]
    assert any(largest)
    told = table(shown[kind].seen, "Depth by depth").column("No estimate off by more (95 %)")
    assert [words for words in told if words != "–"] == [each[1:] for each in filter(None, largest)]


def test_contradicted_counts_stand_in_the_page_with_their_estimates(out):
    """By the noisy counts themselves: the towns were measured alone, so these are the estimates."""
    counts, release = uneven()
    estimator = release.content.estimator
    made = wrote(out, counts, plan=release.plan, estimator=estimator, seed=4)
    blocks = blocks_of(made.text)
    assert "contradicted-1" not in blocks
    assert [numbers(part) for part in blocks["contradicted-2"]] == [[0] * 12]
    estimates = [row[-2] for row in carried_rows(made.text, (2,))]
    assert estimates == release.measurements(depth=2)["noisy_count"].to_list()
    assert "Contradicted by their own noisy counts: 12." in made.seen.text
    cells = [one.text for one in made.seen.all("td")]
    headings = [one.text for one in made.seen.all("th") if one.attributes.get("scope") == "col"]
    assert headings.count("Contradicted ≠") == 1
    assert cells.count("12") == 3, "possible, listed, contradicted"
    for one in ("geography", "empty"):
        assert "No count that this page has read is contradicted" not in made.seen.text, one


def test_the_table_for_readers_without_scripts_marks_them_too():
    tree = Tree([Axis.from_frame("a", {"a": list("xyz"), "b": list("uvw")}, ["a", "b"])])
    place = np.arange(3)
    values = (np.array(each) for each in ([4, 900, 5], [1, 2, 3], [5, 6, 7], [3, -12, 5]))
    cells = Cells((place,), place, *values, np.array([False, True, False]), np.zeros(3, dtype=bool))
    plan = plain_plan(tree, budget=Rho(1))
    text = Carried(plan, cells={(1,): cells}, used={(0, 1): place}).first_counts()
    assert text.count("contradicted") == 1
    line = next(line for line in text.splitlines() if "contradicted" in line)
    assert "900" in line
    assert "unbiased estimate -12" in line


def test_no_name_of_a_script_hides_another():
    """All parts of a page's script share one scope, where the last of two functions would win."""
    parts = [part("hedgerow.pages", name) for name in SCRIPTS]
    own = (*SHARED, *MAPS, EXPLORE)
    parts += [part("hedgerow.release.page", name) for name in own]
    names = re.findall(
        r"^(?:async )?(?:function|const|let) (\w+)", "".join(parts), flags=re.MULTILINE
    )
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))
