"""Counts that public facts fix, against linear programs; and plans that would release a file."""

from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.errors import PlanError
from hedgerow.plan.facts.facts import PublicTable, Zeros
from hedgerow.plan.facts.fixed import fixed_counts
from hedgerow.plan.page.protected import fixed as fixed_on_pages
from tests.plan.test_facts import (
    APART,
    ONE,
    RULE,
    bounds_of,
    cells_of,
    is_open,
    known,
    planned,
    random_rows,
)

BLOCKS = pl.DataFrame([row[0] for row in cells_of(ONE)]).select("county", "tract", "block")
SAYS: dict[str, Any] = {"at_least": "n", "at_most": "n"}
CUBOIDS = {
    True: [(3, 3), (2, 1), (1, 0), (0, 2)],
    False: [(3, 1, 1, 1), (2, 1, 0, 1), (1, 0, 0, 0)],
}


def random_truth(seed):
    """A table, and public facts that it keeps to, most of them exact."""
    rng = np.random.default_rng(seed)
    tree, facts = (ONE, APART)[seed % 2], []
    if rng.random() < 0.5:
        facts.append(Zeros({"hhgq": ["nursing"], "votingage": ["minor"]}))
    if rng.random() < 0.7:
        rows = random_rows(rng, tree, ["block", "hhgq"], 0.5)
        facts += [PublicTable(rows, zeros="unlisted")] if len(rows) else []
    cells = pl.DataFrame([cell for row in cells_of(tree) for cell in row])
    free = np.array([is_open(cell, facts) for cell in cells.to_dicts()])
    truth = cells.with_columns(n=np.where(free, rng.integers(0, 3, len(cells)), 0))
    for level in rng.permutation(["county", "tract", "block", None])[: 1 + seed % 3]:
        columns = [*filter(None, [level]), "hhgq"]
        rows = truth.group_by(columns, maintain_order=True).agg(pl.col("n").sum())
        rows = rows.filter(pl.Series(rng.random(len(rows)) < 0.8))
        wider = np.where(rng.random(len(rows)) < 0.2, rng.integers(0, 3, len(rows)), 0)
        rows = rows.with_columns(most=rows["n"] + wider)
        given = {"at_least": "n"} if rng.random() < 0.2 else {"at_least": "n", "at_most": "most"}
        facts += [PublicTable(rows, **given)] if len(rows) else []
    return tree, facts, truth, free


def fixed_by_program(tree, facts, truth, free, levels, *, total=False):
    """How many sums of the cells of a cuboid are the same in every table, and how many are open."""
    cells = truth.drop("n").to_dicts()
    given = {**bounds_of(facts, cells), "bounds": [(0, None if yes else 0) for yes in free]}
    if total:
        given |= {"A_eq": np.ones((1, len(truth))), "b_eq": [truth["n"].sum()]}
    columns = [c for axis, k in zip(tree.axes, levels, strict=True) for c in axis.columns[:k]]
    key = [tuple(cell[c] for c in columns) for cell in cells]
    fixed = there = 0
    for one in dict.fromkeys(key):
        mask = np.array([each == one for each in key], float)
        if not (mask * free).any():
            continue
        ends = [linprog(sign * mask, **given) for sign in (1, -1)]
        there += 1
        fixed += ends[1].status == 0 and round(ends[0].fun + ends[1].fun, 6) == 0
    return fixed, there


@pytest.mark.parametrize("seed", range(16))
def test_counts_are_fixed_that_are_the_same_in_every_table_that_keeps_to_the_facts(seed):
    tree, facts, truth, free = random_truth(seed)
    found, cuboids = known(tree, *facts), CUBOIDS[tree is ONE]
    fixed = fixed_counts(tree, found, cuboids, total_is_public=False)
    for levels in cuboids:
        wanted = fixed_by_program(tree, facts, truth, free, levels)
        assert fixed.get(levels, (0, wanted[1])) == wanted, levels


def test_the_facts_above_fix_some_counts_and_not_others():
    shares = []
    for seed in range(16):
        tree, facts, *_ = random_truth(seed)
        found = fixed_counts(tree, known(tree, *facts), CUBOIDS[tree is ONE], total_is_public=False)
        shares += [n / cells for n, cells in found.values()]
    assert len(shares) > 15
    assert sum(share < 1 for share in shares) > 5
    assert sum(share == 1 for share in shares) > 5


@pytest.mark.parametrize("seed", range(16))
def test_with_a_known_total_a_table_is_fixed_that_no_other_table_has(seed):
    tree, facts, truth, free = random_truth(seed)
    facts = [f for f in facts if isinstance(f, Zeros) or not f.numbers or seed % 4]
    least = truth.group_by(["block", "hhgq"], maintain_order=True).agg(pl.col("n").sum())
    if seed % 4 < 2:  # nothing but least counts, which add up to the total
        facts.append(PublicTable(least.with_columns(most=pl.lit(1 << 40)), at_least="n"))
    levels = tuple(int(c == "hhgq") if a else 3 for a, c in enumerate(tree_columns(tree)))
    total = int(truth["n"].sum())
    found = fixed_counts(
        tree, known(tree, *facts), [levels], total_is_public=True, total=total
    ).get(levels, (0, 1))
    wanted = fixed_by_program(tree, facts, truth, free, levels, total=True)
    assert (found[0] == found[1]) == (wanted[0] == wanted[1])


def tree_columns(tree):
    """The first column of each axis."""
    return [axis.columns[0] for axis in tree.axes]


# --- plans --------------------------------------------------------------------------------------

TOWNS = {"state": ["A", "A", "B"], "town": ["A1", "A2", "B1"]}
PLACES = hr.Axis.from_frame("place", TOWNS, levels=["state", "town"])
KINDS = hr.Axis.from_frame("kind", {"kind": ["x", "y"]}, levels=["kind"], attribute=True)
TREE = hr.Tree([PLACES, KINDS])
COPY = pl.DataFrame(
    {"town": ["A1", "A1", "A2", "A2", "B1", "B1"], "kind": ["x", "y"] * 3, "n": [5, 1, 0, 3, 2, 2]}
)
ALL = "place.town × kind.kind"
STATES = PublicTable(pl.DataFrame({"state": ["A", "B"], "n": [9, 4]}), **SAYS)


def plan_with(*facts, **options):
    options = {"workload": hr.Cube(), "budget": hr.Rho("1/1000")} | options
    return hr.make_plan(TREE, public=facts, **options)


KNOWN_TOTAL = {"neighbours": hr.Replace()}
WHOLE = {
    "a copy": ([PublicTable(COPY, **SAYS)], {}),
    "zeros for those with none": (
        [PublicTable(COPY.filter(pl.col("n") > 0), zeros="unlisted", **SAYS)], {}
    ),
    "two halves": ([PublicTable(COPY[:3], **SAYS), PublicTable(COPY[3:], **SAYS)], {}),
    "ends from two files": (
        [PublicTable(COPY, at_least="n"), PublicTable(COPY, at_most="n")], {}
    ),
    "states by kind, and one town of each": (
        [
            PublicTable({"state": ["A", "A"], "kind": ["x", "y"], "n": [5, 4]}, **SAYS),
            PublicTable(COPY[[0, 1, 4, 5]], **SAYS),
        ],
        {},
    ),
    "all but one, and a public total": ([PublicTable(COPY[1:], **SAYS)], KNOWN_TOTAL),
    "named cuboids": ([PublicTable(COPY, **SAYS)], {"workload": hr.Cuboids([ALL])}),
    "running through a coarser table": (
        [STATES, PublicTable({"town": ["A1", "B1"]}, zeros="unlisted")],
        {"workload": hr.Cuboids(["place.town"])},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE)
def test_a_plan_that_would_release_a_public_file_without_noise_is_refused(case):
    """As a copy of the table would be published, under whatever small promise."""
    facts, options = WHOLE[case]
    with pytest.raises(PlanError, match=r"\[\[public\]\] fixes every count of place.town"):
        plan_with(*facts, **options)


def test_nor_is_one_made_for_the_cheapest_budget_or_read_back():
    facts = [PublicTable(COPY, **SAYS)]
    with pytest.raises(PlanError, match="fixes every count"):
        hr.cheapest(TREE, target=10, workload=hr.Cube(), public=facts)


@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ([PublicTable(COPY[1:], **SAYS)], {}),
        ([PublicTable(COPY[2:], **SAYS)], KNOWN_TOTAL),
        ([PublicTable(COPY, at_least="n")], KNOWN_TOTAL),
        ([PublicTable(COPY, at_most="n")], {}),
        ([PublicTable(COPY.with_columns(m=pl.col("n") + 1), at_least="n", at_most="m")], {}),
        ([STATES], {}),
    ],
)
def test_facts_that_leave_something_to_measure_are_taken(facts, options):
    assert plan_with(*facts, **options).facts


def test_totals_from_elsewhere_are_rightful_and_the_promise_lists_what_they_fix():
    plan, without = plan_with(STATES), plan_with()
    assert plan.fixed_counts == {(0, 0): (1, 1), (1, 0): (2, 2), (2, 0): (1, 3)}
    said = (
        "Public files fix 1 of 1 counts of total, 2 of 2 counts of place.state, 1 of 3 counts of "
        "place.town: the release gives these as the files have them, and the guarantee hides "
        "nothing that the files give away."
    )
    assert str(plan.promise) == f"{without.promise} {said}"
    assert said in str(plan)
    assert plan.protection == without.protection, "neighbours need not agree on what files say"
    assert without.fixed_counts == {}


def test_a_public_total_is_not_listed_and_tells_the_last_count():
    plan = plan_with(PublicTable(COPY[2:], **SAYS), **KNOWN_TOTAL)
    assert (0, 0) not in plan.fixed_counts
    assert plan.fixed_counts[1, 0] == (2, 2), "state B is fixed, and so A by the total"
    assert plan.fixed_counts[2, 1] == (4, 6)


def test_what_is_empty_by_rule_is_no_count_that_a_file_fixes():
    plan = planned(RULE, PublicTable(BLOCKS.select("block").with_columns(n=7)[:1], **SAYS))
    assert plan.fixed_counts == {(3, 0): (1, 6)}
    assert planned(RULE).fixed_counts == {}


def test_a_release_prints_what_is_fixed_wherever_it_prints_its_promise(tmp_path):
    table = hr.Counts.from_frame(TREE, COPY, count="n")
    release = hr.release(table, plan_with(STATES), directory=tmp_path / "out")
    said = "Public files fix 1 of 1 counts of total"
    assert said in (tmp_path / "out" / "manifest.json").read_text()
    assert said in hr.read_release(tmp_path / "out").plan.promise.statement()
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Public files fix 1 of 1 counts of" in page
    assert release.level("place.state")["count"].to_list() == [9, 4]
    assert all(finding.passed for finding in hr.check(tmp_path / "out"))


def test_pages_say_it_in_their_language():
    french = plan_with(STATES).described(hr.Description(language="fr"))
    assert "Des fichiers publics fixent 1 des 1 effectifs de" in fixed_on_pages(french)
    assert fixed_on_pages(plan_with()) == ""


def test_a_public_total_that_leaves_one_table_alone_is_refused_before_noise_is_drawn(tmp_path):
    """Least counts that are the table's own are no more than least counts until the total is."""
    plan = plan_with(PublicTable(COPY, at_least="n"), **KNOWN_TOTAL)
    table = hr.Counts.from_frame(TREE, COPY, count="n")
    with pytest.raises(PlanError, match=r"fixes every count of .* for 13 records, a number"):
        hr.release(table, plan, directory=tmp_path / "out")
    assert not [*tmp_path.iterdir()]
    more = hr.Counts.from_frame(TREE, pl.concat([COPY, COPY[:1]]), count="n")
    assert hr.release(more, plan).level("total")["count"].item() == 18
