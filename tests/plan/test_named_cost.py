"""What releases of named cuboids cost, and the memory that they need."""

import pytest

import hedgerow as hr
from hedgerow.estimate.workload import general
from hedgerow.plan.cost import (
    expected_cost,
    sums_off_the_chain,
)
from hedgerow.plan.tables import BYTES_A_CELL
from hedgerow.release import preflight
from hedgerow.release.preflight import check_memory, check_tables, needed_memory
from tests.made import fixed_tree
from tests.release.pairs import MARGINS, WORKLOADS, named

WIDE = fixed_tree(o=(20, 20), d=(20, 20))


def test_memory_is_that_of_the_tables_and_of_what_they_are_settled_at(monkeypatch):
    workload = hr.Cuboids(["o.level2", "o.level1 × d.level1", "d.level2", "o.level2 × d.level2"])
    plan = named(workload)
    elements = plan.design.lattice.elements
    assert (2, 1) in set(elements) - set(plan.levels), "settled on the way"
    cells = sum(map(plan.design.shape.cells, elements))
    dense = plan.design.solver.dense
    rows = plan.design.solver.dual.size
    assert rows > 0
    kept = plan.design.bytes_held - cells * BYTES_A_CELL
    assert kept == dense.factor.nbytes + sum(
        t.nbytes for h in dense.halves for t in h.parts.values()
    )
    assert kept >= 8 * rows**2
    monkeypatch.setattr(general, "MOST_DENSE", 0)
    assert named(workload).design.bytes_held == cells * BYTES_A_CELL


def test_named_cuboids_that_do_not_fit_are_refused_with_a_way_out(monkeypatch):
    plan = named(hr.Cuboids(["o.level2 × d.level1", "d.level2"]), WIDE)
    check_memory(plan, needed_memory(plan))
    with pytest.raises(hr.PlanError, match=r"measured whole, are held in memory.*name fewer cub"):
        check_memory(plan, needed_memory(plan) - 1)
    monkeypatch.setattr(preflight, "_memory_limit", lambda: 1)
    with pytest.raises(hr.MachineError, match="to estimate these cuboids again takes about"):
        check_tables(plan)


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
def test_work_is_at_most_that_of_all_cells(name, measure):
    plan = named(WORKLOADS[name], measure=measure)
    cost = expected_cost(plan, 500, 2)
    cells = [plan.tree.cells(k) if isinstance(w, hr.Measured) else 0
             for k, w in plan.by_levels.items()]  # fmt: skip
    assert all(
        e <= m <= c for e, m, c in zip(cost.expected.cells, cost.most.cells, cells, strict=True)
    )
    if isinstance(measure, hr.All):
        assert list(cost.expected.cells) == cells


def test_survivors_are_fewer_where_counts_are_few():
    plan = named(hr.Cuboids([*MARGINS, "o.level2 × d.level2"]), WIDE, measure=hr.Survivors())
    assert expected_cost(plan, 10**3, 2).expected.cells[-1] < WIDE.leaves / 10
    below_one = hr.Cuboids(["o.level2", "o.level2 × d.level2"])
    plan = named(below_one, WIDE, measure=hr.Survivors())
    alive = expected_cost(plan, 10**3, 2).expected
    assert alive.cells[-1] == alive.survivors[-2] * 400, "all children of the positive margins"


def test_sums_of_the_leaves_are_no_concern_beside_a_chain():
    for name in WORKLOADS:
        assert sums_off_the_chain(named(WORKLOADS[name])).is_empty()
    assert sums_off_the_chain(named(hr.Cube())).is_empty()
    assert len(sums_off_the_chain(named(hr.Chain())))
