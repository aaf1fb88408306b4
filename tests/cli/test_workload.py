"""`[workload]` of a release file: what is read, and the sentence for what cannot be."""

import json
import subprocess
import sys

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.spec.release_spec import ReleaseSpec

FILE = """
[table]
source = "none.csv"
[[axis]]
name = "home"
levels = ["region", "town"]
columns = ["h_region", "h_town"]
areas = "home.csv"
[[axis]]
name = "work"
levels = ["region", "town"]
columns = ["w_region", "w_town"]
areas = "work.csv"
{axes}
[workload]
{workload}
[privacy]
rho = "0.02"
neighbours = "replace"
[estimate]
measure = "{measure}"
{more}
"""
AGE = '[[axis]]\nname = "age"\nlevels = ["group", "age"]\nareas = "age.csv"\n'


@pytest.fixture
def file(tmp_path):
    """Write a release file; no table is there to be read."""
    for name in ("home", "work"):
        frame = {"region": [f"r{i // 3}" for i in range(9)], "town": [f"t{i}" for i in range(9)]}
        pl.DataFrame(frame).write_csv(tmp_path / f"{name}.csv")
    pl.DataFrame({"group": ["a", "a", "b"], "age": ["1", "2", "3"]}).write_csv(tmp_path / "age.csv")

    def write(workload, measure="all", more="", axes=""):
        path = tmp_path / "release.toml"
        path.write_text(FILE.format(workload=workload, measure=measure, more=more, axes=axes))
        return path

    return write


def listed(*names):
    return f"cuboids = {json.dumps(names, ensure_ascii=False)}"


SENTENCES = {
    "unknown level": (
        {"workload": listed("home.twon")},
        (
            "[workload] no cuboid is called 'home.twon'; put levels together with ×, one an axis, "
            "of home.region, home.town, work.region, work.town; did you mean 'home.town'?"
        ),
    ),
    "two levels of an axis": (
        {"workload": listed("home.town × home.region")},
        (
            "[workload] no cuboid is called 'home.town × home.region'; put levels together with ×, "
            "one an axis, of home.region, home.town, work.region, work.town"
        ),
    ),
    "levels without their axes": (
        {"workload": listed("town x group"), "axes": AGE},
        "of home.region, home.town, work.region, work.town, age.group, age.age\n",
    ),
    "a level without its axis": (
        {"workload": listed("home.town × group"), "axes": AGE},
        "; did you mean 'home.town × age.group'?",
    ),
    "a typo in one of two": (
        {"workload": listed("home.twon × work.region")},
        "; did you mean 'home.town × work.region'?",
    ),
    "named twice": (
        {"workload": listed("home.town x work.town", "home.town * work.town")},
        "[workload] cuboid 'home.town × work.town' is named twice",
    ),
    "empty list": (
        {"workload": "cuboids = []"},
        "[workload] name at least one cuboid",
    ),
    "another word": (
        {"workload": 'cuboids = "chian"'},
        (
            '[workload] cuboids: must be "chain", "cube" or a list of names, such as '
            "[\"origin.region\"], got 'chian'; did you mean 'chain'?"
        ),
    ),
    "a number": (
        {"workload": "cuboids = 3"},
        (
            '[workload] cuboids: must be "chain", "cube" or a list of names, such as '
            '["origin.region"], got 3'
        ),
    ),
    "a number in the list": (
        {"workload": 'cuboids = ["home.town", 3]'},
        '[workload] cuboids: must be "chain", "cube" or a list of names, such as ["origin.region"]',
    ),
    "a chain beside nothing": (
        {"workload": "chain = true"},
        '[workload] chain = true goes with a list of cuboids: cuboids = ["…"]',
    ),
    "a chain beside a cube": (
        {"workload": 'cuboids = "cube"\nchain = true'},
        '[workload] chain = true goes with a list of cuboids: cuboids = ["…"]',
    ),
    "a word for a chain": (
        {"workload": f'{listed("home.town")}\nchain = "yes"'},
        "[workload] chain must be true or false, got 'yes'",
    ),
    "three margins": (
        {
            "workload": listed(
                "home.region × work.region × age.group",
                "home.town × work.region",
                "work.town × age.group",
                "home.region × age.age",
            ),
            "axes": AGE,
        },
        (
            "three margins of a table need not fit together; name one of them less, or use a "
            'single table (cuboids = "cube")'
        ),
    ),
    "survivors without margins": (
        {
            "workload": listed("home.town", "work.region", "home.town × work.town"),
            "measure": "survivors",
        },
        (
            "'home.town × work.town' cannot be measured at survivors below 'work.region' and "
            "'home.town': that takes one cuboid, or two that have all its levels between them; "
            "name 'home.town × work.region', too, or measure all cells (measure = \"all\")"
        ),
    ),
    "two shares of a cuboid": (
        {
            "workload": listed("home.town × work.town", "home.town"),
            "more": (
                '[allocation]\nmethod = "shares"\nshares = {"home.town × work.town" = "1/3", '
                '"work.town × home.town" = "1/3", "home.town" = "1/3"}'
            ),
        },
        "cuboid 'home.town × work.town' has two shares",
    ),
    "a list of importances": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[allocation]\nmethod = "optimal"\nimportance = [1, 2]',
        },
        (
            "named cuboids take their importances by name, not as a list: importance = "
            '{"work.town" = 10}'
        ),
    ),
    "importances by axis": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[allocation]\nmethod = "optimal"\nimportance = {home = [1, 2, 1]}',
        },
        'give them by name: importance = {"work.town" = 10}',
    ),
    "importance of what is not measured": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[allocation]\nmethod = "optimal"\nimportance = {"home.region" = 2}',
        },
        "importance of 'home.region': the cuboids that can be measured are work.town, home.town",
    ),
    "a share of what is not measured": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[allocation]\nmethod = "shares"\nshares = {"home.region" = 1}',
        },
        "are work.town, home.town; to measure another, name it in [workload]",
    ),
    "a table without a share": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[allocation]\nmethod = "shares"\nshares = {"home.town" = 1, "work.town" = 0}',
        },
        "'work.town' needs a share above 0: it is a table, and no other cuboid tells its counts",
    ),
    "a table without importance": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[allocation]\nmethod = "optimal"\nobjective = "cells"\n'
            'importance = {"work.town" = 0}',
        },
        "the importance of 'work.town' must be above 0: the leaves have to be measured",
    ),
    "shares in a list": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[allocation]\nmethod = "shares"\nshares = ["1/2", "1/2"]',
        },
        'named cuboids take their shares by name: shares = {"work.town" = "1/4", ...}',
    ),
    "fair shares": (
        {
            "workload": listed("home.town × age.age", "work.town"),
            "axes": AGE,  # groups of two ages and of one
            "more": '[allocation]\nmethod = "fair"\nratio = 2',
        },
        'method = "optimal" with objective = "largest" makes the errors of cuboids alike',
    ),
    "an invariant elsewhere": (
        {
            "workload": listed("home.town", "work.town"),
            "more": '[[invariant]]\naxis = "home"\nlevel = "region"',
        },
        "invariant home.region is no cuboid of the workload; name it, too",
    ),
    "nothing to measure": (
        {"workload": listed("total")},
        "this plan measures nothing: every cuboid is public or has single children only",
    ),
}


@pytest.mark.parametrize("kind", SENTENCES)
def test_a_wrong_workload_gets_one_sentence(run, file, kind, tmp_path):
    given, sentence = SENTENCES[kind]
    before = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = run("plan", str(file(**given)))
    assert code == 2
    said = err.splitlines()[-1]
    assert sentence in f"{said}\n"
    assert said.startswith("Error: ")
    assert "internal error" not in err
    assert not out
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted({*before, "release.toml"})


def plan_of(path):
    spec = ReleaseSpec(path)
    return spec.plan(spec.tree())


def test_a_list_is_read_as_named_cuboids_with_the_chain_or_without(file):
    alone = plan_of(file(listed("home.town", "work.town")))
    assert alone.workload == hr.Cuboids(["work.town", "home.town"])
    beside = plan_of(file(f"{listed('home.town', 'work.town')}\nchain = true"))
    assert set(beside.workload.given) == {*map(beside.tree.name_of, beside.tree.chain),
                                          "home.town", "work.town"}  # fmt: skip
    assert alone.hash != beside.hash


def test_names_are_read_with_any_sign_between_levels(file):
    plans = [plan_of(file(listed(f"home.town {sign} work.region"))) for sign in "×x*"]
    assert len({plan.hash for plan in plans}) == 1


def test_a_plan_says_which_tables_there_are_and_that_no_joint_one_is_made(succeeds, file):
    out = succeeds("plan", str(file(listed("home.town", "work.town"))))
    words = " ".join(out.split())
    assert (
        "2 tables are released: work.town; home.town. They agree on all that they have in common, "
        "and no joint table is made."
    ) in words
    assert "their errors are exact." in words
    out = succeeds("plan", str(file(listed("home.town × work.town"))))
    assert "tables are released" not in out


def test_the_picture_of_a_plan_has_every_named_cuboid(succeeds, file, tmp_path):
    path = file(listed("home.town", "work.town", "home.region × work.region"))
    place = tmp_path / "plan.svg"
    succeeds("plan", str(path), "--picture", str(place))
    drawn = place.read_text()
    for name in ("home.town", "work.town", "home.region"):
        assert name in drawn


def test_importances_take_names_in_any_spelling(file):
    """An x for the ×, and levels in any order, as in the list and in shares."""

    def shares(name):
        more = f'[allocation]\nmethod = "optimal"\nimportance = {{"{name}" = 9}}'
        workload = listed("home.town × work.town", "home.town", "work.town")
        spec = ReleaseSpec(file(workload, more=more))
        return spec.plan(spec.tree()).shares

    assert shares("work.town x home.town") == shares("home.town × work.town")
    assert shares("home.town × work.town") != shares("home.town")


REGISTERED = """
import itertools
import sys

from hedgerow.plan.workload import WORKLOADS


class Pairs:
    def named(self, tree):
        depths = [axis.depth for axis in tree.axes]
        for pair in itertools.combinations(range(len(depths)), 2):
            yield tuple(depth if k in pair else 0 for k, depth in enumerate(depths))


WORKLOADS["pairs"] = Pairs()  # before `hedgerow.spec` is imported, as in the package

from hedgerow import cli

for command in sys.argv[1:]:
    assert cli.run(command.split()) == 0, command
"""


def test_a_workload_that_is_registered_is_planned_released_and_checked_like_any_other(
    succeeds, file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    towns = [f"t{i % 9}" for i in range(500)]
    ages = [str(1 + i % 3) for i in range(500)]
    regions = [f"r{int(town[1]) // 3}" for town in towns]
    pl.DataFrame(
        {
            "h_region": regions, "h_town": towns, "w_region": regions[::-1], "w_town": towns[::-1],
            "group": [" aab"[int(age)] for age in ages], "age": ages,
        }
    ).write_csv("none.csv")  # fmt: skip
    path = file('cuboids = "pairs"', more='[output]\ndirectory = "out"', axes=AGE)
    done = subprocess.run(
        [sys.executable, "-c", REGISTERED, f"release {path}", "check out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "report.html").exists()
    assert "checks passed" in succeeds("check", "out")  # where nobody knows its name
    pairs = ["home.town × work.town", "home.town × age.age", "work.town × age.age"]
    assert hr.read_release("out").plan.hash == plan_of(file(listed(*pairs), axes=AGE)).hash
