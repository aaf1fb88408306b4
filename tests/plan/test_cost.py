"""The expected cost of a release: a bound that holds, an expectation that grows as it should."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.examples.redistricting import write_redistricting
from hedgerow.plan.cost import (
    BYTES_A_ROW,
    PARALLEL,
    SECONDS_TO_START,
    expected_cost,
)
from hedgerow.release.execution import in_memory
from hedgerow.spec.release_spec import ReleaseSpec
from tests.made import fixed_axis, fixed_tree, random_axis, random_counts

WIDE = fixed_tree(o=(20, 20, 20), d=(20, 20, 20))
MEASURES = {"survivors": hr.Survivors(), "all": hr.All()}


def plan_of(tree, epsilon=1, measure=None, neighbours=None):
    return hr.make_plan(
        tree,
        budget=hr.EpsilonDelta(epsilon, "1e-8"),
        neighbours=hr.Replace() if neighbours is None else neighbours,
        measure=hr.Survivors() if measure is None else measure,
    )


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(5))
def test_no_release_does_more_work_than_the_most(seed, measure):
    rng = np.random.default_rng(seed)
    tree = hr.Tree([random_axis(rng, f"a{i}", depth=2, widest=4) for i in range(2)])
    counts = random_counts(rng, tree, filled=0.3)
    plan = plan_of(tree, 10, MEASURES[measure])
    cost = expected_cost(plan, counts.total, 2)
    found = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(seed)).content
    for t in range(tree.depth + 1):
        assert len(found.nodes[tree.cuboid(t)]) <= cost.most.survivors[t]
        assert cost.expected.survivors[t] <= cost.most.survivors[t]
        if measure == "all" and t in found.measured:
            assert len(found.measured[t]) == cost.most.cells[t] == cost.expected.cells[t]


def test_survivors_are_expected_where_counts_exceed_the_noise():
    """A sparse table with heavy tails: within a factor of three at every depth."""
    tree = fixed_tree(o=(10,) * 3, d=(10,) * 3)
    rng = np.random.default_rng(0)
    codes = tuple((1000 * rng.random(50_000) ** 3).astype(np.int32) for _ in "od")
    values = np.ceil(rng.pareto(1.1, 50_000)).astype(np.int64)
    counts = hr.Counts.from_leaves(tree, codes, values)
    plan = plan_of(tree)
    cost = expected_cost(plan, counts.total, 2)
    found = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(0)).content
    for t in range(tree.depth + 1):
        ratio = len(found.nodes[tree.cuboid(t)]) / cost.expected.survivors[t]
        assert 1 / 3 < ratio < 3, (t, ratio)


def test_a_known_tree_has_known_work():
    tree = hr.Tree([fixed_axis("geo", 10, 20, 5)])
    plan = plan_of(tree)
    work = expected_cost(plan, 10**9, 1).expected
    assert work.cells == (0, 10, 200, 1000)
    assert work.survivors == (1, 10, 200, 1000)
    measured = expected_cost(plan_of(tree, neighbours=hr.AddRemove()), 10**9, 1).expected
    assert measured.cells == (1, 10, 200, 1000)
    few = expected_cost(plan, 3, 1).most
    assert few.survivors == (1, 3, 3, 3)
    assert few.cells == (0, 10, 60, 15)


def test_an_unmeasured_depth_costs_no_cells():
    tree = hr.Tree([fixed_axis("geo", 10, 1, 20)])
    assert expected_cost(plan_of(tree), 10**6, 1).expected.cells == (0, 10, 0, 200)


def test_nobody_pays_for_an_empty_table():
    plan = plan_of(hr.Tree([fixed_axis("geo", 10, 20)]))
    work = expected_cost(plan, 0, 1).expected
    assert sum(work.survivors) == 0
    assert work.cells[-1] == 0


def test_more_records_cores_and_budget_do_what_they_should():
    plan = plan_of(WIDE)
    small, large = (expected_cost(plan, n, 2) for n in (10**5, 10**7))
    assert small.seconds < large.seconds
    assert small.memory < large.memory
    assert small.output < large.output
    assert expected_cost(plan, 10**7, 1).seconds > large.seconds
    generous = expected_cost(plan_of(plan.tree, 10), 10**7, 2)
    assert sum(generous.expected.cells) > sum(large.expected.cells)


def test_the_cost_is_said_in_a_sentence():
    said = expected_cost(plan_of(WIDE), 10**7, 2).describe()
    assert said.startswith("Expected cost (rough): about ")
    assert said.count("MB") + said.count("GB") == 2
    assert "measured cells (at most" in said


def test_a_spine_costs_what_public_facts_leave_open(tmp_path):
    write_redistricting(tmp_path, size="small")
    spec = ReleaseSpec(tmp_path / "release.toml")
    plan = spec.plan(spec.tree())
    cost, many = (expected_cost(plan, n, 2) for n in (90_000, 10**12))
    open_cells = plan.design.open_cells(plan.tree.chain[-1])
    assert open_cells == 353_052
    assert plan.tree.leaves == 4_233_600
    assert sum(cost.expected.cells) == 422_623
    cells_at_least = 422_623 * plan.design.seconds_a_cell / (1 + PARALLEL)
    assert cells_at_least < cost.seconds - SECONDS_TO_START < 5 * cells_at_least
    assert many.memory - cost.memory <= open_cells * BYTES_A_ROW
