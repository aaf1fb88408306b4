"""The page of a release: complete, safe from the names in it, and made from public files alone."""

import json
import re
import shutil
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hedgerow.cli.released import report
from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import ReleaseError
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.pages.markup import SCRIPTS, part
from hedgerow.plan.cuboids import All, Invariant
from hedgerow.plan.forecast import HEADINGS, forecast, forecast_rows
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.release.directory.measurements import counts_file
from hedgerow.release.execution import in_memory
from hedgerow.release.page import carried as blocks
from hedgerow.release.page import cuboids as cuboids_module
from hedgerow.release.page import levels as facts_module
from hedgerow.release.page import report as report_module
from hedgerow.release.page.carried import Cells, parts_of, varints
from hedgerow.release.page.cuboids import Carried
from hedgerow.release.page.levels import keeps_budget
from hedgerow.release.page.report import (
    EXPLORE,
    MAPS,
    SHARED,
    check_report,
    curves,
    least_missed,
    page,
)
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from hedgerow.text import visible
from tests.made import plain_plan, random_axis, random_counts, random_tree
from tests.release.contradictions import uneven
from tests.release.cube_pages import carried_rows, numbers

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

EVIL = "</script><script>alert('name')</script>"
NAMES = [EVIL, '"><img src=x onerror=alert(1)>', "&lt;b&gt;", "\u202eabc", "a\x00b", "$title", "—"]
PLANTED = 987_654_321


def released(folder, counts, *, estimator=None, **options):
    """A release of seeded noise in a folder, with what its page is made of."""
    options.setdefault("budget", Rho("1/2"))
    plan = plain_plan(counts.tree, **options)
    estimator = estimator or Chebyshev()
    in_memory(counts, plan, estimator=estimator, bits=seeded_bits(3)).write(folder)
    return SimpleNamespace(folder=folder, plan=plan, estimator=estimator, counts=counts)


def page_of(made):
    return page(made.folder, made.plan, made.estimator, "9.8.7")


def geography(rng):
    return random_counts(
        rng, Tree([random_axis(rng, "geography", depth=3, widest=6)]), filled=0.7, mean=90
    )


def named(labels):
    """Counts over areas of two levels whose names are these."""
    frame = pl.DataFrame(
        {
            "re</script <i>gion": [labels[0]] * (len(labels) - 1) + [labels[1]],
            'place"': [f"{name}{i}" for i, name in enumerate(labels)],
        }
    )
    axis = Axis.from_frame("<i>where", frame, frame.columns)
    codes = (np.arange(len(labels), dtype=np.int32),)
    return Counts.from_leaves(Tree([axis]), codes, np.full(len(labels), 500))


def numeric(rng):
    ranges = Ranges.equal_width("income", 0, 1000, 40, out_of_bounds="clamp")
    tree = Tree([coded_axis(ranges, [4, 10])])
    bins = np.arange(40, dtype=np.int32)
    return Counts.from_leaves(tree, (bins,), rng.integers(0, 300, 40))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Releases of each kind, with their pages."""
    rng, place = np.random.default_rng(5), tmp_path_factory.mktemp("releases")
    made = {
        "geography": released(place / "geography", geography(rng)),
        "flows": released(place / "flows", random_counts(rng, random_tree(rng)),
                          neighbours=Replace(), budget=EpsilonDelta(1, "1e-8")),
        "numeric": released(place / "numeric", numeric(rng), neighbours=Replace(), measure=All(),
                            budget=Epsilon(1), mechanism=DiscreteLaplace, estimator=Euclidean()),
        "names": released(place / "names", named(NAMES)),
        "empty": released(place / "empty", Counts.from_leaves(
            random_tree(rng), (np.zeros(0, np.int32),) * 2, np.zeros(0, np.int64)),
            neighbours=Replace()),
    }  # fmt: skip
    for one in made.values():
        one.text = page_of(one)
        one.seen = Seen(one.text)
    return made


KINDS = ["geography", "flows", "numeric", "names", "empty"]


class Seen(HTMLParser):
    """The elements of a page: their names, attributes and the text within each."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"left open: {self.open}"

    def handle_starttag(self, tag, attributes):
        inside = [one.tag for one in self.open]
        made = SimpleNamespace(tag=tag, attributes=dict(attributes), inside=inside, text="")
        self.elements.append(made)
        if tag not in {"meta", "link", "br"}:
            self.open.append(made)

    def handle_endtag(self, tag):
        assert self.open.pop().tag == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        hidden = self.open and self.open[-1].tag in {"script", "style"}
        for one in self.open[-1:] if hidden else self.open:
            one.text += data

    def all(self, tag):
        return [one for one in self.elements if one.tag == tag]

    @property
    def said(self):
        return " ".join(self.all("body")[0].text.split())


def facts_of(made):
    return json.loads(next(s.text for s in made.seen.all("script") if len(s.attributes) == 2
                           and s.attributes["id"] == "facts"))  # fmt: skip


def blocks_of(made):
    return {
        one.attributes["id"]: parts_of(one.text)
        for one in made.seen.all("script")
        if one.attributes.get("type") == "text/plain"
    }


@given(st.lists(st.integers(0, 2**63 - 1)))
def test_numbers_of_variable_length_read_back(values):
    assert numbers(varints(np.array(values, dtype=np.int64))) == values


@pytest.mark.parametrize("kind", KINDS)
def test_the_counts_in_a_page_are_those_of_the_files(pages, kind):
    made = pages[kind]
    for levels in made.plan.tree.chain:
        axes = zip(made.plan.tree.axes, levels, strict=True)
        columns = [axis.columns[k - 1] for axis, k in axes if k]
        wanted = []
        for row in pl.read_parquet(made.folder / counts_file(levels)).iter_rows(named=True):
            names = [visible(row[column]) for column in columns]
            if kind == "numeric":
                names = [re.sub(r"^\d+ ", "", name) for name in names]
            wanted.append((*names, row["count"], row["low"], row["high"], round(row["estimate"])))
        found = [row[:-1] for row in carried_rows(made.text, levels)]
        if len(made.plan.tree.axes) > 1:  # the files are in the order of the tree
            found, wanted = sorted(found), sorted(wanted)
        assert found == wanted
    assert facts_of(made)["cuboids"] == [list(levels) for levels in made.plan.tree.chain]


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_whole_and_speaks_to_all(pages, kind):
    seen = pages[kind].seen
    ids = [one.attributes["id"] for one in seen.elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    headings = [one.tag for one in seen.elements if re.fullmatch(r"h\d", one.tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}
    assert seen.all("html")[0].attributes["lang"] == "en"
    assert len(seen.all("main")) == 1
    for link in seen.all("a"):
        assert link.attributes["href"][1:] in ids
    assert len(seen.all("caption")) == len(seen.all("table")) > 0
    assert all(one.text.strip() for one in seen.all("caption"))
    assert all(one.attributes.get("scope") in {"col", "row"} for one in seen.all("th"))
    for drawn in seen.all("svg"):
        told = drawn.attributes.get("aria-labelledby") in ids
        assert told or drawn.attributes.get("aria-hidden") == "true"


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_asks_for_nothing_from_outside(pages, kind):
    made = pages[kind]
    for one in made.seen.elements:
        assert "src" not in one.attributes
        assert one.attributes.get("href", "#")[:1] == "#" or one.attributes["href"] == "data:,"
        assert not [name for name in one.attributes if name.startswith("on")]
        assert "style" not in one.attributes
    assert "url(" not in made.text
    assert "@import" not in made.text
    assert "fetch(" not in made.text
    policy = made.seen.all("meta")[1].attributes["content"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_names_cannot_leave_their_place(pages):
    made = pages["names"]
    scripts = made.seen.all("script")
    assert sum("type" not in one.attributes for one in scripts) == 1
    assert not made.seen.all("img")
    assert not made.seen.all("i")
    assert not made.seen.all("b")
    assert EVIL not in made.text.replace("&#x27;", "'")
    (facts,) = [one.text for one in scripts if one.attributes.get("id") == "facts"]
    assert "<" not in facts
    assert "\u202e" not in made.text
    assert "\x00" not in made.text
    assert f"{EVIL} 500" not in made.seen.said
    assert EVIL in made.seen.said
    assert "re</script <i>gion" in made.seen.said
    assert "<i>where" in made.seen.said
    kinds = {one.tag for one in made.seen.elements}
    assert kinds == {one.tag for one in pages["geography"].seen.elements}


def test_every_name_of_a_file_survives_within_the_blocks(pages):
    listed = {name for name, *_ in carried_rows(pages["names"].text, (2,))}
    assert {f"{visible(name)}{i}" for i, name in enumerate(NAMES)} <= listed


def test_one_directory_gives_one_page(pages):
    made = pages["flows"]
    assert page_of(made) == made.text


def test_a_page_is_checked_against_the_files(pages, tmp_path):
    made = released(tmp_path / "release", pages["geography"].counts)
    place = made.folder / report_module.REPORT
    place.write_text(page_of(made), encoding="utf-8")
    check_report(made.folder, made.plan, made.estimator, "9.8.7")
    place.write_text(page_of(made).replace("records", "rows", 1), encoding="utf-8")
    with pytest.raises(ReleaseError, match="is not what the files"):
        check_report(made.folder, made.plan, made.estimator, "9.8.7")


@pytest.mark.parametrize("forged", ["</SCRIPT><h1>ε = 0.01</h1>", " ", "QUJD"])
def test_nothing_can_be_added_to_a_block_of_the_page(pages, tmp_path, forged):
    """A browser ends a script at ``</SCRIPT>`` too, and base64 forgives what it does not know."""
    made = released(tmp_path / "release", pages["geography"].counts)
    first, mark, rest = page_of(made).partition('<script type="text/plain" id="')
    end = rest.index("</script>")
    text = f"{first}{mark}{rest[:end]}{forged}{rest[end:]}"
    (made.folder / report_module.REPORT).write_text(text, encoding="utf-8")
    with pytest.raises(ReleaseError):
        check_report(made.folder, made.plan, made.estimator, "9.8.7")


def test_another_deflation_is_the_same_page(pages, monkeypatch, tmp_path):
    made = released(tmp_path / "release", pages["geography"].counts)
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
    made = released(tmp_path / "release", counts, budget=Rho("1/100000000"))
    made.text = page_of(made)
    made.seen = Seen(made.text)
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


def test_the_true_table_does_not_change_a_page_of_the_same_files(pages, tmp_path):
    """A page is a function of the directory and the plan; no table is at hand when it is made."""
    made = pages["flows"]
    report(made.folder, tmp_path / "again.html")
    again = (tmp_path / "again.html").read_text(encoding="utf-8")
    version = json.loads((made.folder / "manifest.json").read_text())["software"]["hedgerow"]
    assert again == made.text.replace("9.8.7", version)


def test_deep_levels_are_left_to_the_files(pages, monkeypatch):
    made = pages["geography"]
    rows = [pq.read_metadata(made.folder / counts_file(made.plan.tree.cuboid(t))).num_rows
            for t in range(4)]  # fmt: skip
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", sum(rows[:3]))
    text = page_of(made)
    seen = Seen(text)
    assert "This page carries the counts of depths 0 to 2" in seen.said
    assert "counts/cuboid=3.parquet" in seen.said
    assert set(blocks_of(SimpleNamespace(seen=seen))) == {
        "level-0-1", "level-0-2", *(f"{what}-{k}" for what in ("cuboid", "intervals")
                                    for k in range(3)),
    }  # fmt: skip


def test_a_page_has_room_for_so_many_characters(pages, monkeypatch):
    made = pages["geography"]
    size = {one.attributes["id"]: len(one.text) for one in made.seen.all("script")
            if one.attributes.get("type") == "text/plain"}  # fmt: skip
    monkeypatch.setattr(cuboids_module, "MOST_CHARACTERS", sum(size.values()))
    assert facts_of(SimpleNamespace(seen=Seen(page_of(made))))["cuboids"] == [[0], [1], [2], [3]]
    monkeypatch.setattr(cuboids_module, "MOST_CHARACTERS", sum(size.values()) - 1)
    assert facts_of(SimpleNamespace(seen=Seen(page_of(made))))["cuboids"] == [[0], [1], [2]]


def test_files_too_large_to_read_are_said_to_be(pages, monkeypatch):
    made = pages["geography"]
    rows = pq.read_metadata(made.folder / counts_file((2,))).num_rows
    monkeypatch.setattr(facts_module, "MOST_ROWS_OF_A_PAGE", rows)
    monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", rows)
    seen = Seen(page_of(made))
    assert "Too large to read for this page: level3" in seen.said


def changed(made, tmp_path, depth, change):
    """The release with another file of counts."""
    folder = tmp_path / "changed"
    shutil.copytree(made.folder, folder)
    path = folder / counts_file(made.plan.tree.cuboid(depth))
    table = pq.read_table(path)
    frame = change(pl.DataFrame(table))
    pq.write_table(frame.to_arrow().cast(table.schema), path)
    return SimpleNamespace(**{**vars(made), "folder": folder})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.with_columns(pl.lit(0).alias("count")), "is none"),
        (lambda f: f.with_columns(pl.col("high") * 0 - 1), "is none"),
        (lambda f: f.with_columns(pl.col("low") * 0 - 1), "is none"),
        (lambda f: f.with_columns(pl.col("count") + 1), "do not sum"),
        (lambda f: f.filter(pl.col("count") < pl.col("count").max()), "do not sum"),
        (lambda f: f.with_columns(pl.col("count").reverse()), "add up"),
    ],
    ids=["zero", "high", "low", "more", "less", "family"],
)  # fmt: skip
def test_no_page_is_made_of_counts_that_do_not_hold(pages, tmp_path, change, message):
    with pytest.raises(ReleaseError, match=message):
        page_of(changed(pages["geography"], tmp_path, 3, change))


def test_public_counts_must_be_exact(pages, tmp_path):
    def moved(frame):
        return frame.with_columns(pl.col("high") + 1)

    with pytest.raises(ReleaseError, match="some counts are not exact"):
        page_of(changed(pages["flows"], tmp_path, 0, moved))


def test_what_is_public_is_said(pages, tmp_path):
    made = released(
        tmp_path / "release", pages["flows"].counts, neighbours=Replace(),
        invariants=[Invariant("a0", "level1")],
    )  # fmt: skip
    said = Seen(page_of(made)).said
    assert "Exact counts, released without noise: total and a0 level1" in said
    assert "does not hide anything that these counts give away" in said
    assert "Public counts are stated as exact" in said
    assert "No count is public" in pages["geography"].seen.said
    assert "Public counts are held" not in pages["geography"].seen.said


def test_the_lines_of_units_of_several_records_are_called_bounds(tmp_path):
    counts = geography(np.random.default_rng(1))
    made = released(tmp_path / "release", counts, neighbours=AddRemove(3))
    seen = Seen(page_of(made))
    assert "no unit has more than 3 records is the publisher" in seen.said
    assert "proved bounds for whatever one unit changes, a little on the safe side" in seen.said
    assert "The exact lines are those of all noisy measurements" not in seen.said
    (names,) = {tuple(e.text.strip() for e in seen.all("th") if "bound" in e.text)}
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


def test_the_citation_names_plan_version_and_promise(pages):
    made = pages["flows"]
    (quoted,) = made.seen.all("blockquote")
    assert made.plan.hash in quoted.text
    assert "Hedgerow 9.8.7" in quoted.text
    assert "at δ = 1e-08" in quoted.text


def test_a_numeric_release_shows_its_distribution(pages):
    assert "Distribution of income" in pages["numeric"].seen.said
    assert pages["numeric"].seen.all("polygon")
    assert not pages["geography"].seen.all("polygon")


@pytest.mark.parametrize("kind", ["geography", "flows", "numeric"])
def test_the_budget_is_seen_to_be_kept(pages, kind):
    plan, said = pages[kind].plan, "it is in budget"
    assert keeps_budget(plan)
    assert said in pages[kind].seen.said
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


def test_the_command_leaves_a_release_as_it_is(pages, tmp_path):
    made = pages["flows"]
    with pytest.raises(ReleaseError, match="lies within the release"):
        report(made.folder, made.folder / "page.html")
    (tmp_path / "taken.html").touch()
    with pytest.raises(ReleaseError, match="exists already"):
        report(made.folder, tmp_path / "taken.html")
    with pytest.raises(ReleaseError, match="the directory does not exist"):
        report(made.folder, tmp_path / "no" / "page.html")
    with pytest.raises(ReleaseError, match="is no release directory"):
        report(tmp_path, tmp_path.with_name("page-of-none.html"))


def test_a_damaged_release_is_one_sentence(pages, tmp_path):
    made = changed(pages["flows"], tmp_path, 2, lambda frame: frame.head(0))
    with pytest.raises(ReleaseError):
        report(made.folder, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_errors_are_those_that_the_plan_shows(pages, kind):
    shown = [row[HEADINGS.index("95 % max")] for row in forecast_rows(forecast(pages[kind].plan))]
    assert [row for row in shown if row]
    assert re.findall(r"<td[^>]*>(±[\d,]+)</td>", pages[kind].text) == [row for row in shown if row]


def test_contradicted_counts_stand_in_the_page_with_their_estimates(tmp_path):
    """By the noisy counts themselves: the towns were measured alone, so these are the estimates."""
    _, release = uneven()
    release.write(tmp_path / "out")
    made = SimpleNamespace(
        folder=tmp_path / "out", plan=release.content.plan, estimator=release.content.estimator
    )
    made.text = page_of(made)
    made.seen = Seen(made.text)
    blocks = blocks_of(made)
    assert "contradicted-1" not in blocks
    assert [numbers(part) for part in blocks["contradicted-2"]] == [[0] * 12]
    estimates = [row[-2] for row in carried_rows(made.text, (2,))]
    assert estimates == release.measurements(depth=2)["noisy_count"].to_list()
    assert "Contradicted by their own noisy counts: 12." in made.seen.said
    cells = [one.text.strip() for one in made.seen.all("td") if "table" in one.inside]
    headings = [one.text for one in made.seen.all("th") if one.attributes.get("scope") == "col"]
    assert headings.count("Contradicted ≠") == 1
    assert cells.count("12") == 3, "possible, listed, contradicted"
    for one in ("geography", "empty"):
        assert "No count that this page has read is contradicted" not in made.seen.said, one


def test_the_table_for_readers_without_scripts_marks_them_too():
    tree = Tree([Axis.from_frame("a", {"a": list("xyz"), "b": list("uvw")}, ["a", "b"])])
    place = np.arange(3)
    values = (np.array(each) for each in ([4, 900, 5], [1, 2, 3], [5, 6, 7], [3, -12, 5]))
    cells = Cells((place,), place, *values, np.array([False, True, False]))
    plan = plain_plan(tree, budget=Rho(1))
    text = Carried(plan, cells={(1,): cells}, used={(0, 1): place}).first_counts()
    assert text.count("contradicted") == 1
    line = next(line for line in text.splitlines() if "contradicted" in line)
    assert "900" in line
    assert "unbiased estimate -12" in line


@pytest.mark.parametrize("kind", ["chain", "cuboids"])
def test_no_name_of_a_script_hides_another(kind):
    """All parts of a page's script share one scope, where the last of two functions would win."""
    parts = [part("hedgerow.pages", name) for name in SCRIPTS]
    own = (*SHARED, f"{kind}.js", EXPLORE, *MAPS)
    parts += [part("hedgerow.release.page", name) for name in own]
    names = re.findall(
        r"^(?:async )?(?:function|const|let) (\w+)", "".join(parts), flags=re.MULTILINE
    )
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))
