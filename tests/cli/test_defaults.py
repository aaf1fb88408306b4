"""`new`, Python, a file that says nothing and the pages of the documentation plan alike."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.estimate.tree import shapes
from hedgerow.plan.defaults import FEW_LEAVES, USUAL_DELTA, usual_measure
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


def test_new_python_a_bare_file_and_the_first_release_make_one_plan(run, tmp_path, monkeypatch):
    """One hash: of the measure, the shares, the noise and so the δ."""
    page = blocks(DOCS / FIRST, FIRST)
    titled = {each.title: each.text for each in page if each.title is not None}
    monkeypatch.chdir(tmp_path)
    for script in ("make_patients.py", "make_wards.py"):
        subprocess.run([sys.executable, "-c", titled[script]], check=True)
    assert f"`{SHOWN}`" in (DOCS / FIRST).read_text(encoding="utf-8")
    assert run(*shlex.split(SHOWN)[1:])[0] == 0
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


def test_a_chain_measures_all_its_leaves_where_they_are_few():
    for areas, measure in ((1 << 12, hr.All()), ((1 << 12) + 1, hr.Survivors())):
        wide = hr.Tree([fixed_axis(n, k, columns=[n]) for n, k in (("o", areas), ("d", 1 << 12))])
        assert (wide.leaves <= FEW_LEAVES) == (measure == hr.All())
        assert usual_measure(wide, hr.Chain()) == measure
        assert hr.make_plan(wide, budget=hr.Rho(1)).measure == measure


def test_shares_are_equal_where_the_least_error_is_beyond_reach(monkeypatch):
    monkeypatch.setattr(shapes, "MOST_SHAPES", 1)
    tree = random_tree(np.random.default_rng(4), axes=1, depth=3, widest=5)
    plan = hr.make_plan(tree, budget=hr.Rho(1))
    assert (plan.allocation, len(set(plan.shares))) == (hr.Uniform.name, 1)
    monkeypatch.undo()
    assert hr.make_plan(tree, budget=hr.Rho(1)).allocation == hr.Optimal.name


def test_a_budget_that_the_noise_cannot_spend_is_refused_and_not_shared_equally():
    with pytest.raises(hr.BudgetError, match="has no pure epsilon"):
        hr.make_plan(SMALL, budget=hr.Epsilon(1))
