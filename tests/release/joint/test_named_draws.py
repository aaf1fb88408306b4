"""No two cells of a release of named cuboids share a draw."""

import pytest

import hedgerow as hr
from hedgerow.release.execution import in_memory
from tests.made import plain_plan
from tests.release.cube.test_cube_release import BUDGET, PAIRS, table_of
from tests.release.test_draws import Recorder

LEAVES = "o.level2 × d.level2"
WORKLOADS = {
    "two tables": hr.Cuboids(["o.level2 × d.level1", "o.level1 × d.level2"]),
    "a chain and margins": hr.Cuboids(["o.level2", "d.level2"], chain=True),
    "coarse and fine": hr.Cuboids(["o.level1", "d.level1", "o.level2 × d.level1", LEAVES]),
}


@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_no_two_cells_of_named_cuboids_share_a_draw(name, measure):
    counts = table_of(filled=0.4)
    plan = plain_plan(
        PAIRS,
        budget=BUDGET,
        neighbours=hr.AddRemove(),
        workload=WORKLOADS[name],
        measure=measure,
    )
    bits = Recorder()
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=bits)
    assert bits.shared() == []
    assert len(bits.words()) == release.content.noisy_cells
    cells = {place: sum(b - a for a, b in ranges) for place, ranges in bits.by_place().items()}
    assert cells == {levels: len(noisy) for levels, noisy in release.content.measured.items()}


def test_a_stream_that_lacks_a_level_is_shared():
    workload = WORKLOADS["a chain and margins"]
    plan = plain_plan(PAIRS, budget=BUDGET, workload=workload, measure=hr.All())
    for drop in (0, 1):
        fault = Recorder(drop)
        in_memory(table_of(), plan, estimator=hr.Euclidean(), bits=fault)
        assert fault.shared(), drop
