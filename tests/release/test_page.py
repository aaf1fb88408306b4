"""What holds for every page, whatever was released; what a kind says alone: `test_page_*`."""

import base64
import hashlib
import re

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.estimate.cube.shape import is_within
from hedgerow.release.directory.manifest import REPORT
from hedgerow.release.page import cuboids as cuboids_module
from hedgerow.release.page.report import check_report
from hedgerow.text import visible
from tests.release import made_pages, shown_pages
from tests.release.drawn_page import number, table
from tests.release.made_pages import CUBES, NAMED, carried_rows, changed, facts_of, page_of
from tests.release.shown_pages import KINDS, NUMERIC, OTHERS

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

every_page = pytest.mark.parametrize("kind", [*KINDS, *OTHERS, *CUBES, *NAMED, "spine"])


@every_page
@pytest.mark.sweep(3)
def test_the_counts_in_a_page_are_those_of_the_files(pages, kind):
    made = pages[kind]
    facts = facts_of(made.text)
    assert sorted(map(tuple, facts["cuboids"])) == sorted(made.plan.levels)
    for levels in made.plan.levels:
        file = made.release.level(made.tree.name_of(levels))
        columns = [axis.columns[k - 1] for axis, k in zip(made.tree.axes, levels, strict=True) if k]
        wanted = []
        for row in file.iter_rows(named=True):
            names = [visible(row[column]) for column in columns]
            if kind in NUMERIC:
                names = [re.sub(r"^\d+ ", "", name) for name in names]
            told = (row["count"], row["low"], row["high"], round(row["estimate"]))
            wanted.append((*names, *told, row["contradicted"]))
        found = list(carried_rows(made.text, levels))
        if made.plan.is_chain:  # the files are in the order of the tree
            found, wanted = sorted(found), sorted(wanted)
        assert found == wanted


@every_page
def test_a_page_is_whole_and_speaks_to_all(pages, kind):
    elements, seen = list(pages[kind].seen.walk()), pages[kind].seen
    ids = [one.attributes["id"] for one in elements if "id" in one.attributes]
    assert len(ids) == len(set(ids))
    headings = [one.tag for one in elements if re.fullmatch(r"h\d", one.tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}
    assert seen.all("html")[0].attributes["lang"] == "en"
    assert len(seen.all("main")) == 1
    for link in seen.all("a"):
        assert link.attributes["href"][1:] in ids
    assert len(seen.all("caption")) == len(seen.all("table")) > 0
    assert all(one.text for one in seen.all("caption"))
    assert all(one.attributes.get("scope") in {"col", "row"} for one in seen.all("th"))
    for drawn in seen.all("svg"):
        told = drawn.attributes.get("aria-labelledby") in ids
        assert told or drawn.attributes.get("aria-hidden") == "true"


@every_page
def test_a_page_asks_for_nothing_from_outside(pages, kind):
    text = pages[kind].text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    for name, tag in (("script-src", "script"), ("style-src", "style")):
        (inner,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for one in pages[kind].seen.walk():
        assert not {"src", "style"} & {*one.attributes}
        assert one.attributes.get("href", "#")[:1] == "#" or one.attributes["href"] == "data:,"
        assert not [name for name in one.attributes if name.startswith("on")]
    for words in ("url(", "@import", "fetch("):
        assert words not in text


@pytest.mark.parametrize(
    ("kind", "plain", "evil", "level"),
    [
        ("names of a chain", "geography", shown_pages.EVIL, "re</script <i>gion"),
        ("names of a cube", "pairs", made_pages.EVIL, "<i>home"),
        ("names of named", "margins", made_pages.EVIL, "<i>home"),
    ],
)
def test_no_name_leaves_its_place(pages, kind, plain, evil, level):
    made = pages[kind]
    scripts = made.seen.all("script")
    assert sum("type" not in one.attributes for one in scripts) == 1
    assert {one.tag for one in made.seen.walk()} <= {one.tag for one in pages[plain].seen.walk()}
    assert not any(made.seen.all(tag) for tag in ("img", "i", "b"))
    assert evil not in made.text.replace("&#x27;", "'")
    assert evil in made.seen.text
    assert level in made.seen.text
    assert not {"\u202e", "\x00"} & {*made.text}
    (facts,) = made.seen.all("script", id="facts")
    assert "<" not in facts.text
    listed = {row[0] for row in carried_rows(made.text, made.plan.levels[-1])}
    assert kind != "names of a chain" or listed >= {
        f"{visible(name)}{i}" for i, name in enumerate(shown_pages.NAMES)
    }


@pytest.mark.parametrize("kind", [*CUBES, *NAMED])
def test_every_cuboid_has_a_row_of_its_own(pages, kind):
    made = pages[kind]
    found = table(made.seen, "Level by level")
    assert found.column("Level") == [made.plan.label_of(levels) for levels in made.plan.levels]
    for levels, row in zip(made.plan.levels, found.rows, strict=True):
        file = made.release.level(made.tree.name_of(levels))
        assert number(row["Listed, above 0"].text) == len(file)
        assert number(row["Contradicted ≠"].text) == file["contradicted"].sum()


@every_page
@pytest.mark.sweep(3)
def test_the_page_in_a_release_is_the_one_that_its_files_make(pages, kind):
    made = pages[kind]
    check_report(made.folder, made.plan, made.estimator, hr.__version__)


@pytest.mark.parametrize("kind", ["geography", "pairs", "tables"])
def test_a_page_of_other_words_or_blocks_is_refused(pages, kind, tmp_path):
    """A browser ends a script at ``</SCRIPT>`` too, and base64 forgives what it does not know."""
    made = changed(pages[kind], tmp_path / "copy", pages[kind].plan.levels[0], lambda file: file)
    place, text = made.folder / REPORT, made.text
    place.write_text(text, encoding="utf-8")
    check_report(made.folder, made.plan, made.estimator, "9.8.7")
    first, mark, rest = text.partition('<script type="text/plain" id="')
    end = rest.index("</script>")
    added = ("</SCRIPT><h1>ε = 0.01</h1>", " ", "QUJD")
    one, other = (made.seen.all("script", type="text/plain")[i].text for i in (-1, -2))
    for forged in (
        text.replace("records", "rows", 1),
        text.replace(one, other, 1),
        *(f"{first}{mark}{rest[:end]}{more}{rest[end:]}" for more in added),
    ):
        assert forged != text
        place.write_text(forged, encoding="utf-8")
        with pytest.raises(ReleaseError):
            check_report(made.folder, made.plan, made.estimator, "9.8.7")
    place.write_text(text.replace("records", "rows", 1), encoding="utf-8")
    with pytest.raises(ReleaseError, match="is not what the files"):
        check_report(made.folder, made.plan, made.estimator, "9.8.7")


@pytest.mark.parametrize("kind", ["pairs", "three axes", "beside", "tables", "below"])
@pytest.mark.sweep(2)
def test_what_is_carried_has_all_coarser_cuboids_beside_it(pages, kind, monkeypatch):
    made, seen = pages[kind], set()
    names = map(made.tree.name_of, made.plan.levels)
    whole = sum(len(made.release.level(name)) for name in names)
    for most in np.linspace(1, whole, 7).astype(int).tolist():
        monkeypatch.setattr(cuboids_module, "MOST_NODES_OF_A_PAGE", most)
        some = set(map(tuple, facts_of(page_of(made))["cuboids"]))
        seen.add(len(some))
        for levels in some:
            assert {k for k in made.plan.levels if is_within(k, levels)} <= some
    assert len(seen) > 2


def rolled(frame):
    """The same counts, and so the same total, at other cells."""
    return frame.with_columns(pl.Series("count", np.roll(frame["count"].to_numpy(), 1)))


def swapped(frame):
    """Swapped between two columns of one row, the row's sum stays and the columns' change."""
    row = frame["home_region"][0]
    few = np.flatnonzero((frame["home_region"] == row).to_numpy())[:2]
    counts = frame["count"].to_numpy().copy()
    assert counts[few[0]] != counts[few[1]]
    counts[few] = counts[few[::-1]]
    return frame.with_columns(pl.Series("count", counts))


ADD_UP = "do not add up to those in counts/cuboid="
BROKEN = [
    *(("pairs", levels, rolled, ADD_UP) for levels in [(1, 0), (0, 2), (1, 1), (2, 3)]),
    ("pairs", (1, 1), swapped, "=1-1.parquet do not add .* in counts/cuboid=0-1"),
    ("pairs", (1, 1), lambda frame: frame.reverse(), "not row by row"),
    ("tables", (3, 1, 0), rolled, f"{ADD_UP}1-1-0"),
    ("tables", (1, 1, 1), rolled, f"{ADD_UP}1-1-0"),
    ("beside", (2, 3), rolled, f"{ADD_UP}0-3"),
    ("below", (2, 2), rolled, f"{ADD_UP}[12]-[12]"),
    ("geography", (3,), lambda f: f.with_columns(pl.lit(0).alias("count")), "is none"),
    ("geography", (3,), lambda f: f.with_columns(pl.col("high") * 0 - 1), "is none"),
    ("geography", (3,), lambda f: f.with_columns(pl.col("low") * 0 - 1), "is none"),
    ("geography", (3,), lambda f: f.with_columns(pl.col("count") + 1), "do not sum"),
    ("geography", (3,), lambda f: f.filter(pl.col("count") < pl.col("count").max()), "do not sum"),
    ("geography", (3,), lambda f: f.with_columns(pl.col("count").reverse()), "add up"),
    ("flows", (0, 0), lambda f: f.with_columns(pl.col("high") + 1), "some counts are not exact"),
]


@pytest.mark.parametrize(("kind", "levels", "change", "message"), BROKEN)
def test_no_page_is_made_of_counts_that_do_not_hold(pages, tmp_path, kind, levels, change, message):
    with pytest.raises(ReleaseError, match=message):
        page_of(changed(pages[kind], tmp_path / "changed", levels, change))
