"""Runs of named cuboids that are killed or do not fit in memory."""

import pytest

import hedgerow as hr
from hedgerow.release.descent.nodes import Found
from hedgerow.release.execution import in_memory
from hedgerow.release.passes import Pass
from hedgerow.release.preflight import check_memory, needed_memory
from tests.made import plain_plan
from tests.release.cube.test_cube_release import BUDGET, PAIRS, named_axis, table_of

WORKLOADS = {
    "two tables": hr.Cuboids(["o.level2 × d.level1", "o.level1 × d.level2"]),
    "a chain and margins": hr.Cuboids(["o.level2", "d.level2"], chain=True),
}


def named(name, tree=PAIRS, measure=None):
    return plain_plan(
        tree,
        budget=BUDGET,
        neighbours=hr.Replace(),
        workload=WORKLOADS[name],
        measure=measure or hr.All(),
    )


@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"])
@pytest.mark.parametrize("name", WORKLOADS)
def test_a_run_that_was_killed_is_finished_with_the_same_noise(
    tmp_path, monkeypatch, name, measure
):
    counts, plan, keys = table_of(), named(name, measure=measure), []
    last = plan.levels[-1]
    own = Pass._results

    def dies(run):
        keys.append(run.flow.source.bits)
        for found in own(run):
            if isinstance(found, Found) and found.levels == last:
                raise OSError(28, "No space left on device")
            yield found

    with monkeypatch.context() as patch:
        patch.setattr(Pass, "_results", dies)
        with pytest.raises(hr.MachineError, match="No space left"):
            hr.release(counts, plan, directory=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(hr.ReleaseError, match="--resume"):
        hr.release(counts, plan, directory=tmp_path / "out")
    resume = hr.Unfinished.RESUME
    release = hr.release(counts, plan, directory=tmp_path / "out", unfinished=resume)
    expected = in_memory(counts, plan, estimator=hr.Euclidean(), bits=keys[0])
    for cuboid in plan.cuboids:
        assert release.level(cuboid).equals(expected.level(cuboid)), cuboid
    assert all(finding.passed for finding in hr.check(tmp_path / "out"))


def test_tables_that_do_not_fit_in_memory_are_refused_before_anything_is_read():
    tree = hr.Tree([named_axis("o", 50, 50), named_axis("d", 50, 40)])
    whole = named("a chain and margins", tree)
    two = named("two tables", tree)
    assert needed_memory(whole) > needed_memory(two)
    with pytest.raises(hr.PlanError, match="held in memory at once"):
        check_memory(whole, needed_memory(whole) - 1)
    check_memory(whole, needed_memory(whole))
    check_memory(two, needed_memory(whole) - 1)
