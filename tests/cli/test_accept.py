"""``[[accept]]`` in a release file, and what ``hedgerow plan`` says of it."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.examples import EXAMPLES
from hedgerow.examples.census import CENSUS_SIZES, CensusSize
from hedgerow.spec.release_spec import ReleaseSpec

CRITERIA = """
[[accept]]
cuboid = "state"
within = 200

[[accept]]
cuboid = "county"
within = "20 %"
from = 100
cells = 0.9
probability = 0.9
records = 40000

[[accept]]
cuboid = "total"
within = "1/2 % of records"
records = 40000
"""


@pytest.fixture
def census(tmp_path):
    """A census of 240 blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CENSUS_SIZES, "small", CensusSize(3, 12, 60, 240, 40_000))
        return Path(EXAMPLES["census"](tmp_path / "census", "small"))


@pytest.fixture
def census_file(census):
    """The same with all nodes measured, and criteria."""
    text = census.read_text().replace('measure = "survivors"', 'measure = "all"')
    text = re.sub(r"(?m)^epsilon.*", 'rho = "1/20"', text)
    census.write_text(re.sub(r"(?m)^delta.*", "", text) + CRITERIA)
    return census


def test_a_release_file_says_what_must_be_kept(census_file):
    spec = ReleaseSpec(census_file)
    assert spec.criteria(spec.tree()) == [
        hr.Criterion("state", 200),
        hr.Criterion("county", hr.OfCount("1/5", least=100), cells="0.9", probability="0.9",
                     records=40000),
        hr.Criterion("total", hr.OfRecords("1/200"), records=40000),
    ]  # fmt: skip


def test_plan_says_of_each_criterion_whether_it_is_kept_and_the_least_budget(succeeds, census_file):
    said = succeeds("plan", census_file)
    assert "Criterion 1: all state within 200 records, with probability 0.95." in said
    assert "Sizes: 40,000 expected records, spread evenly." in said
    least = re.search(r'keep every criterion: rho = "([0-9.]+)" \(--accept\)', said)
    facts = json.loads(succeeds("plan", census_file, "--json"))
    assert [each["of_estimates"] for each in facts["verdicts"]] == ["yes", "yes", "yes"]
    assert len(facts["accept"]) == 3
    found = json.loads(succeeds("plan", census_file, "--accept", "--json"))
    assert float(found["budget"]["rho"].split("/")[0]) > 0
    assert found["sha256"] != facts["sha256"]
    lines = succeeds("plan", census_file, "--accept")
    assert f'rho = "{least[1]}"' in lines
    census_file.write_text(census_file.read_text().replace('rho = "1/20"', f'rho = "{least[1]}"'))
    again = json.loads(succeeds("plan", census_file, "--json"))
    assert again["sha256"] == found["sha256"]
    assert f"--expect-plan {found['sha256']}" in lines


OF_AREAS = """
[[accept]]
cuboid = "total"
within = 400
areas = "clinics.csv"
area_column = "clinic"

[[accept]]
cuboid = "county"
within = "3 points"
share = "state"
from = 100
sizes = {source = "before.csv", count = "people", public = true}
"""


@pytest.fixture
def areas_file(census_file):
    """The same with criteria of areas and shares, a lookup of counties and earlier counts."""
    spec = ReleaseSpec(census_file)
    tree = spec.tree()
    counties = tree.axes[0].labels[1].to_list()
    clinics = {"county": counties, "clinic": ["p", "q"] * 6, "other": ["x"] * 12}
    pl.DataFrame(clinics).write_csv(census_file.parent / "clinics.csv")
    blocks = tree.axes[0].leaf_frame().with_columns(people=pl.lit(160))
    unknown = blocks[:1].with_columns(("zz" + pl.col(c)).alias(c) for c in blocks.columns[1:4])
    pl.concat([blocks, unknown]).write_csv(census_file.parent / "before.csv")
    census_file.write_text(census_file.read_text().replace(CRITERIA, OF_AREAS))
    return census_file


def test_areas_and_shares_are_planned_released_checked_and_compared(succeeds, areas_file):
    spec = ReleaseSpec(areas_file)
    tree = spec.tree()
    areas, shares = spec.criteria(tree)
    assert areas.lookup(tree).areas.to_list() == ["p", "q"]
    assert sorted(areas.areas) == ["clinic", "county"]
    assert shares.within == hr.OfShare("0.03", "state", least=100)
    said = " ".join(succeeds("plan", areas_file).split())
    assert "Criterion 1: all total by areas (clinic, county) within 400 records, with" in said
    assert "within 3 points of its share of state from 100" in said
    assert "a public table of 38,560 records, 160 of which are in no area of the release." in said
    assert "The least budget at which estimates keep every criterion: rho" in said
    facts = json.loads(succeeds("plan", areas_file, "--json"))
    found = json.loads(succeeds("plan", areas_file, "--accept", "--json"))
    assert {each["of_estimates"] for each in found["verdicts"]} == {"yes"}
    assert found["verdicts"][0]["areas"] == areas.to_dict()["areas"]
    succeeds("release", areas_file, "--expect-plan", facts["sha256"])
    out = ReleaseSpec(areas_file).output
    assert hr.read_release(out).plan.hash == facts["sha256"]
    assert "Sizes: released counts." in succeeds("check", out)
    by_truth = " ".join(succeeds("compare", areas_file).split())
    assert re.search(r"by areas .+?: \d of 2 cells keep it, 2 must: (not )?kept", by_truth)
    assert re.search(r"share of state .+?: \d+ of 12 cells keep it, 12 must", by_truth)


def test_a_reason_why_no_budget_is_known_is_printed_once(succeeds, census_file):
    text = census_file.read_text()
    census_file.write_text(
        text.replace("records = 40000\n", "", 1).replace("within = 200", "within = 300")
    )
    said = " ".join(succeeds("plan", census_file).split())
    assert said.count("needs to know how large counts are") == 1
    assert "There is no least budget, as none is known to keep every criterion." in said


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('"3 points"', "3", '"0.5 points" goes with share'),
        ('share = "state"', "", '"0.5 points" goes with share'),
        ('share = "state"', 'share = "block"', "[[accept]] 2 share: county must be finer"),
        ('cuboid = "total"', 'cuboid = "state"', "[[accept]] 1 cuboid: geography is taken"),
        ('area_column = "clinic"', "", "[[accept]] 1 "),
        ('areas = "clinics.csv"', "", "area_column goes with areas"),
        ('areas = "clinics.csv"', 'areas = "population.parquet"', "is the confidential table"),
        ("within = 400", 'within = 400\nquantile = {geography = "1/2"}', "is no numeric column"),
        ("within = 400", "within = 400\nquantile = {income = 0.5}", "no axis is called 'income'"),
        ("within = 400", "within = 400\nquantile = {}", "quantile"),
        ("within = 400", 'within = "4 %"\nquantile = {geography = 0.5}\nfrom = 3', "units of"),
    ],
)  # fmt: skip
def test_areas_and_shares_that_do_not_fit_are_refused(run, areas_file, before, after, sentence):
    areas_file.write_text(areas_file.read_text().replace(before, after, 1))
    code, said, err = run("plan", areas_file)
    assert (code, said) == (2, "")
    assert sentence in " ".join(err.split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ('cuboid = "state"', 'cuboid = "canton"', "[[accept]] 1 cuboid: the tree has no 'canton'"),
        ("within = 200", "within = 0", "[[accept]] 1 within must be in"),
        ("within = 200", 'within = "1 %"', "with from = 1000, from which size on"),
        ("within = 200", 'within = "1 % of all"', 'within must be a number such as "1/2"'),
        ("within = 200", "within = 200\nfrom = 10", 'or "0.5 % of records", got'),
        ("within = 200", 'within = 200\nfrom = 10\nquantile = {geography = "1/2"}',
         "[[accept]] 1 axis 'geography' is no numeric column"),
        ("from = 100", "from = 0", "[[accept]] 2 from must be"),
        ("from = 100", "form = 100", "unknown key 'form'; did you mean 'from'"),
        ("cells = 0.9", "cells = 2", "[[accept]] 2 cells must be in"),
        ("records = 40000\n", "sizes = {source = 'population.parquet', public = true}\n",
         "[[accept]] 2 "),
    ],
)  # fmt: skip
def test_what_is_no_criterion_is_refused_in_one_sentence(run, census_file, before, after, sentence):
    census_file.write_text(census_file.read_text().replace(before, after, 1))
    code, said, err = run("plan", census_file)
    assert (code, said) == (2, "")
    assert sentence in err
    assert "Traceback" not in err


def test_two_ways_to_seek_a_budget_are_refused_together(run, census_file):
    code, _, err = run("plan", census_file, "--accept", "--target-mse", "100")
    assert code == 2
    assert "give one of them" in err


def test_nothing_to_keep_is_said(run, census):
    code, _, err = run("plan", census, "--accept")
    assert code == 2
    assert "there is no criterion to keep" in err


def test_a_release_carries_its_criteria_and_is_checked(succeeds, census_file):
    signed = json.loads(succeeds("plan", census_file, "--json"))
    succeeds("release", census_file, "--expect-plan", signed["sha256"])
    out = ReleaseSpec(census_file).output
    plan, spec = hr.read_release(out).plan, ReleaseSpec(census_file)
    assert list(plan.accept) == spec.criteria(spec.tree())
    assert plan.hash == signed["sha256"]
    succeeds("check", out)
