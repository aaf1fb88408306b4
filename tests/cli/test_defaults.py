"""`new`, Python, a file that says nothing and the pages of the documentation plan alike."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.distribution.plan import plan_distribution
from hedgerow.estimate.tree import shapes
from hedgerow.plan.defaults import FEW_LEAVES, USUAL_DELTA
from hedgerow.plan.page.page import planning_page
from hedgerow.plan.workload import tables_of
from hedgerow.spec.release_spec import ReleaseSpec
from tests.made import fixed_axis, random_tree
from tests.pages import blocks

DOCS = Path(__file__).parents[2] / "docs"
FIRST = "first-release.md"
SHOWN = "hedgerow new patients.csv --list place=wards.csv --epsilon 1"
SMALL = hr.Tree([fixed_axis("place", 3, 4)])


def planned(file):
    spec = ReleaseSpec(file)
    return spec.plan(spec.tree())


def test_new_python_a_bare_file_and_the_first_release_make_one_plan(
    succeeds, tmp_path, monkeypatch
):
    """One hash: of the measure, the shares, the noise and so the δ."""
    page = blocks(DOCS / FIRST, FIRST)
    titled = {each.title: each.text for each in page if each.title is not None}
    monkeypatch.chdir(tmp_path)
    for script in ("make_patients.py", "make_wards.py"):
        subprocess.run([sys.executable, "-c", titled[script]], check=True)
    assert f"`{SHOWN}`" in (DOCS / FIRST).read_text(encoding="utf-8")
    succeeds(*shlex.split(SHOWN)[1:])
    new = planned("release.toml")
    bare = titled["release.toml"]
    assert not re.search(r"\[(allocation|estimate|workload)", bare)
    Path("bare.toml").write_text(bare, encoding="utf-8")
    tree = hr.Tree([hr.Axis.from_frame("place", pl.read_csv("wards.csv"), ["hospital", "ward"])])
    python = hr.make_plan(tree, budget=hr.EpsilonDelta(1, USUAL_DELTA))
    assert new.hash == planned("bare.toml").hash == python.hash
    assert (python.measure, python.allocation) == (hr.All(), hr.Optimal.name)
    assert f"plan {python.hash}\n" in "".join(each.text for each in page)
    assert python.shares != hr.make_plan(tree, budget=hr.Rho(1), allocation=hr.Uniform()).shares


@pytest.mark.parametrize("name", ["privacy.md", FIRST, "developers/estimator.md", "r.md"])
def test_pages_of_first_steps_show_the_delta_that_new_writes(name):
    text = "".join(each.text for each in blocks(DOCS / name, name))
    deltas = re.findall(
        r'^delta *= *"?(1e-\d+)|EpsilonDelta\("?1"?, "(1e-\d+)"', text, re.MULTILINE
    )
    assert {"".join(each) for each in deltas} == {USUAL_DELTA}


def tree_of(**areas):
    """A tree of axes of one level; those in capitals stand beside the others."""
    return hr.Tree(
        [
            fixed_axis(name, count, columns=[name], attribute=name.isupper())
            for name, count in areas.items()
        ]
    )


FEW, MANY = (hr.All(), "measure_few"), (hr.Survivors(), "measure_many")
TWO = hr.Cuboids(["o.level1 × d.level1", "s.level1"])


@pytest.mark.parametrize("neighbours", [hr.AddRemove(), hr.Replace()])
@pytest.mark.parametrize("noise", [hr.DiscreteGaussian, hr.DiscreteLaplace])
@pytest.mark.parametrize(
    ("tree", "workload", "leaves", "usual"),
    [
        (tree_of(o=1 << 12, d=1 << 12), hr.Chain(), 0, FEW),
        (tree_of(o=(1 << 12) + 1, d=1 << 12), hr.Chain(), 1 << 12, MANY),
        (tree_of(o=1 << 12, d=1 << 12), hr.Cube(), 0, FEW),
        (tree_of(o=(1 << 12) + 1, d=1 << 12), hr.Cube(), 1 << 12, MANY),
        (tree_of(o=4096, d=4095, s=4096), TWO, 0, FEW),
        (tree_of(o=4096, d=4095, s=4097), TWO, 1, MANY),
        (tree_of(o=256, d=256, s=256), hr.Cube(), 0, FEW),
        (tree_of(o=257, d=256, s=256), hr.Cube(), 1 << 16, (hr.All(), "measure_cube")),
        (tree_of(o=257, d=256, s=256), hr.Chain(), 1 << 16, MANY),
        (tree_of(o=1 << 12, D=1 << 12), hr.Cube(), 0, FEW),
        (tree_of(o=(1 << 12) + 1, D=1 << 12), hr.Cube(), 1 << 12, (hr.All(), "measure_spine")),
    ],
)
def test_all_cells_are_measured_up_to_a_number_of_the_finest(
    tree, workload, leaves, usual, neighbours, noise
):
    """By a fixed number, and never by the memory of a machine; a plan says so."""
    named = tables_of(tree, workload.cuboids(tree))
    assert sum(map(tree.cells, named)) == FEW_LEAVES + leaves == (1 << 24) + leaves
    budget = hr.Epsilon(1) if noise is hr.DiscreteLaplace else hr.Rho(1)
    plan = hr.make_plan(
        tree, budget=budget, neighbours=neighbours, mechanism=noise, workload=workload
    )
    assert (plan.measure, plan.chosen[-1]) == usual
    assert plan.chosen[:-1] == ("shares_least",) * (len(plan.possible_shares) > 1)


def test_shares_are_equal_where_the_least_error_is_beyond_reach(monkeypatch):
    monkeypatch.setattr(shapes, "MOST_SHAPES", 1)
    tree = random_tree(np.random.default_rng(4), axes=1, depth=3, widest=5)
    plan = hr.make_plan(tree, budget=hr.Rho(1))
    assert (plan.allocation, len(set(plan.shares))) == (hr.Uniform.name, 1)
    assert plan.chosen == ("shares_equal", "measure_few")
    monkeypatch.undo()
    assert hr.make_plan(tree, budget=hr.Rho(1)).allocation == hr.Optimal.name


def test_a_budget_that_the_noise_cannot_spend_is_refused_and_not_shared_equally():
    with pytest.raises(hr.BudgetError, match="has no pure epsilon"):
        hr.make_plan(SMALL, budget=hr.Epsilon(1))


LEAST, BY_COUNT = "shares_least", "shares_by_count"
OPTIMAL = hr.Optimal(objective="released", importance=hr.PerLevel())


@pytest.mark.parametrize(
    ("given", "chosen"),
    [
        ({"allocation": OPTIMAL, "measure": hr.All()}, ()),
        ({"allocation": hr.Uniform()}, ("measure_few",)),
        ({"measure": hr.Survivors()}, (LEAST,)),
        ({"allocation": hr.Optimal()}, (BY_COUNT, "measure_few")),
        ({"allocation": hr.Optimal(objective="cells"), "measure": hr.Survivors()}, (BY_COUNT,)),
        ({"allocation": hr.Optimal(importance=[1, 1, 1])}, ("measure_few",)),
        ({"allocation": hr.Optimal(objective="largest"), "workload": hr.Cube()}, ("measure_few",)),
    ],
)
def test_a_plan_says_what_was_chosen_by_default_and_what_shares_weigh(given, chosen):
    plan = hr.make_plan(tree_of(o=3, d=4), budget=hr.Rho(1), **given)
    assert plan.chosen == tuple(plan.choices) == chosen


def test_what_was_chosen_is_no_part_of_what_is_signed():
    usual = hr.make_plan(SMALL, budget=hr.Rho(1))
    given = hr.make_plan(SMALL, budget=hr.Rho(1), allocation=OPTIMAL, measure=hr.All())
    assert usual.hash == given.hash
    assert "chosen" not in usual.to_dict()


def test_where_one_cuboid_takes_the_whole_budget_nothing_is_said_of_shares():
    one = tree_of(place=5)
    for allocation in (None, hr.Optimal()):
        plan = hr.make_plan(one, budget=hr.Rho(1), neighbours=hr.Replace(), allocation=allocation)
        assert plan.chosen == ("measure_few",)


def test_a_distribution_says_why_its_tree_or_running_sums_are_measured():
    few, many = (hr.Ranges.equal_width("age", 0, 100, bins) for bins in (4, 100))
    for ranges, budget, key in (
        (many, hr.Rho(1), "measure_sums"),
        (few, hr.Rho(1), "measure_tree"),
        (many, hr.Epsilon(1), "measure_tree"),
    ):
        plan = plan_distribution(ranges, budget=budget)
        assert plan.chosen == (key,)
        assert plan_distribution(ranges, budget=budget, measure=plan.measure).chosen == ()


@pytest.mark.parametrize(
    ("bins", "measure", "chosen"),
    [(100, "", ("measure_sums",)), (4, "", ("measure_tree",)), (100, "all", ())],
)
def test_a_file_says_the_same_of_a_distribution(tmp_path, bins, measure, chosen):
    given = f'[estimate]\nmeasure = "{measure}"' if measure else ""
    (tmp_path / "release.toml").write_text(
        '[table]\nsource = "people.csv"\n'
        f'[[axis]]\nname = "age"\nlow = 0\nhigh = 100\nbins = {bins}\n[privacy]\nrho = 1\n'
        f'[allocation]\nmethod = "distribution"\n{given}\n',
        encoding="utf-8",
    )
    assert planned(tmp_path / "release.toml").chosen == chosen


SENTENCES = {
    LEAST: "The shares were chosen by default: they minimise the squared error where every level",
    "shares_equal": "Equal shares were chosen by default, because those of least error are out",
    BY_COUNT: "so mostly that of the finest level: coarse levels may be less precise than with",
    "measure_few": "All cells are measured by default, because there are at most 2²⁴ finest",
    "measure_many": "Survivors are measured by default, because there are more than 2²⁴ finest",
    "measure_spine": "All cells are measured by default, as always along a spine.",
    "measure_cube": "All cells are measured by default, as always in a cube of three axes and",
    "measure_sums": "Running sums are measured by default: with a tree of bins the mean squared",
    "measure_tree": "A tree of bins is measured by default: running sums are less than a tenth",
}


@pytest.mark.parametrize("key", SENTENCES)
def test_what_was_chosen_is_printed_in_words(key):
    plan = hr.make_plan(SMALL, budget=hr.Rho(1), allocation=hr.Uniform(), measure=hr.All())
    assert plan.choices == {}
    said = plan.choosing(key)
    assert (said.hash, SENTENCES[key] in said.choices[key]) == (plan.hash, True)
    assert f"\n\n{said.choices[key]}\n\nEfficiency" in str(said)
    assert f"<p>{said.choices[key]}</p>" in said._repr_html_().replace("&quot;", '"')
    assert not any(sentence in str(plan) for sentence in SENTENCES.values())


def facts_of(page):
    return json.loads(
        re.search(r"<script [^>]*application/json[^>]*>(.*?)</script>", page, re.DOTALL)[1]
    )


@pytest.mark.usefixtures("few_budgets")
@pytest.mark.parametrize("measure", [None, hr.All()])
@pytest.mark.parametrize("workload", [hr.Chain(), hr.Cube()])
def test_the_planning_page_says_it_of_each_division(workload, measure):
    """Of what is measured also where the shares are others, and for those of levers."""
    budget = hr.Rho("1/100")  # of noise whose figures are soon certified
    plan = hr.make_plan(tree_of(o=3, d=4), budget=budget, workload=workload, measure=measure)
    points = facts_of(planning_page(plan, "1"))["points"]
    found = {each["key"]: each["chosen"] for each in points["divisions"]}
    of_measure = "" if measure else plan.choices["measure_few"]
    assert found.keys() >= {"own", "equal", "optimal"}
    assert found["own"] == " ".join(plan.choices.values())
    assert SENTENCES[BY_COUNT] in found["optimal"]
    assert all(said.endswith(of_measure) for said in found.values())
    assert found["equal"] == points["chosen"] == of_measure


BARE = """
[table]
source = "people.csv"

[[axis]]
name = "place"
levels = ["region", "town"]
areas = "areas.csv"

[privacy]
rho = 1
"""


@pytest.mark.parametrize(
    ("more", "keys"),
    [
        ("", (LEAST, "measure_few")),
        ('[estimate]\nmeasure = "all"', (LEAST,)),
        ('[allocation]\nmethod = "uniform"', ("measure_few",)),
        ('[allocation]\nmethod = "optimal"', (BY_COUNT, "measure_few")),
        (
            '[allocation]\nmethod = "optimal"\nimportance = "levels"\n[estimate]\nmeasure = "all"',
            (),
        ),
    ],
)
def test_the_command_says_it_in_text_and_json(succeeds, tmp_path, more, keys):
    pl.DataFrame({"region": ["a", "a", "b"], "town": ["1", "2", "3"]}).write_csv(
        tmp_path / "areas.csv"
    )
    (tmp_path / "people.csv").write_text("region,town\na,1\n", encoding="utf-8")
    file = tmp_path / "release.toml"
    file.write_text(f"{BARE}\n{more}\n", encoding="utf-8")
    chosen = planned(file).choices
    assert tuple(chosen) == keys
    text = " ".join(succeeds("plan", file).split())
    assert [key for key, said in SENTENCES.items() if said in text] == list(keys)
    assert json.loads(succeeds("plan", file, "--json"))["chosen"] == chosen
    target = json.loads(succeeds("plan", file, "--json", "--target-mse", "100"))["chosen"]
    assert tuple(target) == tuple(key for key in keys if key == "measure_few")
