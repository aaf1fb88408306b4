"""What a publisher says of a table: in the manifest and on the page, outside the plan's hash."""

import json

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import HedgerowError, ReleaseError, TableError
from hedgerow.release.page.report import page
from hedgerow.spec.release_spec import ReleaseSpec
from tests.made import plain_plan

FILE = """
[table]
source = "flows.csv"
count = "people"
[[axis]]
name = "home"
levels = ["state", "sa2"]
columns = ["h_state", "h_sa2"]
areas = "areas.csv"
[[axis]]
name = "work"
levels = ["state", "sa2"]
columns = ["w_state", "w_sa2"]
areas = "areas.csv"
[privacy]
rho = "1/20"
"""
DESCRIBE = '''
[describe]
title = "Journeys to work, 2021"
unit = "workers"
publisher = "Office of <Statistics>"
period = "10 August 2021"
notes = """
Counts are of people
in employment.

Those who work at home are left out."""
licence = "CC BY 4.0"
language = "en-AU"
[describe.axes]
home = "Place of residence"
[describe.levels]
home.state = "State of residence"
"work.state" = "State of work"
sa2 = "Statistical area"
'''
WHOLE = hr.Description(
    title="Journeys to work, 2021",
    unit="workers",
    publisher="Office of <Statistics>",
    period="10 August 2021",
    notes=("Counts are of people in employment.", "Those who work at home are left out."),
    licence="CC BY 4.0",
    language="en-AU",
    axes={"home": "Place of residence"},
    levels={
        "home.state": "State of residence",
        "work.state": "State of work",
        "sa2": "Statistical area",
    },
)


@pytest.fixture
def spec(tmp_path):
    """Write a release file with some more lines; return it read."""
    areas = pl.DataFrame({"state": ["1", "1", "2"], "sa2": ["101", "102", "201"]})
    areas.write_csv(tmp_path / "areas.csv")
    flows = {"h_sa2": ["101", "102", "201"], "w_sa2": ["102", "102", "201"], "people": [900, 70, 8]}
    pl.DataFrame(flows).write_csv(tmp_path / "flows.csv")

    def write(lines=""):
        file = tmp_path / "release.toml"
        file.write_text(FILE + lines)
        return ReleaseSpec(file)

    return write


@pytest.fixture
def out(spec, tmp_path):
    made = spec(DESCRIBE)
    plan = made.plan(made.tree())
    hr.release(made.table.counts(plan.tree), plan, directory=tmp_path / "out")
    return tmp_path / "out"


def changed(out, change):
    manifest = json.loads((out / "manifest.json").read_text())
    change(manifest)
    (out / "manifest.json").write_text(json.dumps(manifest))


def test_a_description_is_read_from_the_release_file_and_leaves_the_hash_as_it_is(spec):
    plain, made = spec(), spec(DESCRIBE)
    plan = made.plan(made.tree())
    assert plan.description == WHOLE
    assert plan.hash == plain.plan(plain.tree()).hash
    assert "Journeys" not in json.dumps(plan.to_dict())


def test_the_manifest_has_it_and_a_release_read_back(out):
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["describe"] == WHOLE.to_dict()
    assert manifest["describe"]["notes"][0] == "Counts are of people in employment."
    assert hr.read_release(out).plan.description == WHOLE
    assert all(finding.passed for finding in hr.check(out))


def test_a_release_without_a_description_has_none_in_its_manifest(spec, tmp_path):
    made = spec()
    plan = made.plan(made.tree())
    hr.release(made.table.counts(plan.tree), plan).write(tmp_path / "plain")
    assert "describe" not in json.loads((tmp_path / "plain" / "manifest.json").read_text())
    assert not hr.read_release(tmp_path / "plain").plan.description


def test_the_page_has_the_readers_words_and_no_names_of_columns(out):
    text = (out / "report.html").read_text()
    assert "<title>Journeys to work, 2021</title>" in text
    assert '<h1><span lang="en-AU"><bdi>Journeys to work, 2021</bdi></span></h1>' in text
    for words in (
        "State of residence × State of work",
        "</strong> <bdi>workers</bdi>",
        "Office of &lt;Statistics&gt;",
        "10 August 2021",
        "<p><bdi>Those who work at home are left out.</bdi></p>",
        "CC BY 4.0",
        "Place of residence: Statistical area",
        "work: Statistical area",
    ):
        assert words in text, words
    assert "home.state" not in text
    facts = json.loads(text.split('id="facts">')[1].split("</script>")[0])
    assert facts["unit"] == "workers"
    assert facts["axes"][0]["alone"] == [
        "State of residence",
        "Place of residence: Statistical area",
    ]


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda m: m["describe"].update(title="Another title"), "report.html"),
        (lambda m: m["describe"].update(publisher="Somebody else"), "report.html"),
        (lambda m: m["describe"].update(unit=""), "belong together"),
        (lambda m: m["describe"].update(surprise="x"), "belong together"),
        (lambda m: m.update(describe={}), "belong together"),
        (lambda m: m["describe"]["axes"].update(nowhere="x"), "belong together"),
    ],
)
def test_check_finds_a_description_that_was_changed(out, change, check):
    changed(out, change)
    failed = [finding for finding in hr.check(out) if finding.failure]
    assert failed
    assert check in failed[0].what


def test_a_manifest_that_describes_the_table_by_no_text_is_refused(out):
    changed(out, lambda manifest: manifest["describe"].update(notes=["a\u200bb"]))
    with pytest.raises(ReleaseError, match="control characters"):
        hr.read_release(out)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('[describe]\ntitle = "a\\u0007b"', r"^\[describe\] title must have no line breaks"),
        ('[describe]\ntitle = "a\\nb"', r"^\[describe\] title must have no line breaks"),
        (f'[describe]\ntitle = "{"x" * 201}"', r"title has 201 letters, and at most 200"),
        (f'[describe]\nnotes = "{"x" * 4001}"', r"paragraph 1 of notes has 4,001 letters"),
        ('[describe]\nlanguage = "English"', r'language must be a tag such as "en"'),
        ('[describe.axes]\nhome = ""', r"^\[describe\] the label of 'home' in axes is empty"),
        ('[describe.axes]\nhomes = "x"', r"no axis is called 'homes'.*did you mean 'home'"),
        ('[describe.levels]\nsa3 = "x"', r"^\[describe\] no level is called 'sa3'"),
        ('[describe.levels]\nhome.sa3 = "x"', r"no level is called 'home\.sa3'"),
        (
            '[describe.levels]\nhome.sa2 = "x"\n"home.sa2" = "y"',
            r"levels labels 'home\.sa2' twice",
        ),
        ('[describe]\ntitel = "x"', r"unknown key 'titel'; did you mean 'title'"),
        ("[describe]\ntitle = 3", r"title must be text"),
    ],
)
def test_a_description_that_cannot_be_published_is_refused(spec, lines, sentence):
    def made():
        read = spec(lines)
        read.plan(read.tree())

    with pytest.raises(HedgerowError, match=sentence):
        made()


def test_a_label_of_one_axis_stands_alone_and_a_shared_one_behind_its_axis(spec):
    made = spec()
    tree = made.tree()
    said = hr.Description(levels={"sa2": "Area"}, axes={"work": "Place of work"})
    assert said.cuboid_label(tree, (2, 2)) == "home: Area × Place of work: Area"
    assert said.cuboid_label(tree, (1, 0)) == "home state"
    assert said.cuboid_label(tree, (0, 0)) == "total"
    home = hr.Tree([tree.axes[0]])
    assert said.cuboid_label(home, (2,)) == "Area"
    assert hr.Description().cuboid_label(tree, (2, 1)) == "home sa2 × work state"


def test_a_label_that_two_axes_share_stands_behind_each(spec):
    """Else the planning page has two tables called district."""
    said = hr.Description(levels={"home.sa2": "district", "work.sa2": "district"})
    assert said.cuboid_label(spec().tree(), (2, 0)) == "home district"
    assert said.cuboid_label(spec().tree(), (0, 2)) == "work district"
    apart = hr.Description(levels={"home.sa2": "of homes", "work.sa2": "of work"})
    assert apart.cuboid_label(spec().tree(), (2, 2)) == "of homes × of work"


def test_levels_with_the_same_label_stay_apart_on_the_page(spec, tmp_path):
    made = spec('[describe.levels]\nstate = "Area"\nsa2 = "Area"\n')
    plan = made.plan(made.tree())
    release = hr.release(made.table.counts(plan.tree), plan, directory=tmp_path / "same")
    text = page(tmp_path / "same", plan, release.content.estimator, "0.1.0")
    assert f"at {len(plan.measured)} of {len(plan.levels)} levels" in text


def test_texts_are_texts():
    with pytest.raises(TableError, match="title must be text, got 3"):
        hr.Description(title=3)
    with pytest.raises(TableError, match="notes must be a list of texts"):
        hr.Description(notes="one")
    with pytest.raises(TableError, match="axes must be a table of names and labels"):
        hr.Description(axes=["home"])
    with pytest.raises(HedgerowError, match=r"a description .*Description"):
        plain_plan(
            hr.Tree([hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"])]),
            budget=hr.Rho(1),
        ).described({"title": "x"})


def test_what_has_no_label_is_called_in_words_without_the_one_for_codes():
    areas = {"STE_CODE_2021": ["1"], "SA2_CODE_2021": ["101"], "code": ["x"]}
    tree = hr.Tree([hr.Axis.from_frame("home", areas, levels=list(areas))])
    labels = hr.Description().column_labels(tree)
    assert list(labels.values()) == ["STE 2021", "SA2 2021", "code"]


def test_the_page_says_what_a_record_is_in_the_words_of_the_publisher(tmp_path):
    tree = hr.Tree([hr.Axis.from_frame("home", {"town": ["1", "2"]}, levels=["town"])])
    counts = hr.Counts.from_frame(tree, {"town": ["1"], "n": [5]}, count="n")
    plan = plain_plan(tree, budget=hr.Rho(1)).described(hr.Description(unit="workers"))
    hr.release(counts, plan).write(tmp_path / "out")
    text = (tmp_path / "out" / "report.html").read_text()
    assert "say “record”, they mean one of these <bdi>workers</bdi>." in text
