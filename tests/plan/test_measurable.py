"""Which depths can be measured: those neither public nor made of single children."""

import pytest

import hedgerow as hr
from hedgerow.plan.cuboids import measurable, public_cuboid
from tests.made import fixed_axis, fixed_tree

TRIPS = fixed_tree(["destination", "origin"], origin=(2, 3), destination=(2, 3))


def kinds(plan):
    return [what.kind for what in plan.depths]


def test_a_depth_of_single_children_is_left_unmeasured_and_costs_nothing():
    tree = hr.Tree([fixed_axis("geo", 3, 1, 4)])
    plan = hr.make_plan(tree, budget=hr.Rho(1))
    assert kinds(plan) == ["measured", "measured", "unmeasured", "measured"]
    assert plan.guarantee.rho == 1
    assert len(plan.guarantee.uses) == 3


def test_the_coarser_of_two_invariants_adds_nothing_to_the_finer():
    order = [f"{axis}.level{k}" for axis in ("destination", "origin") for k in (1, 2)]
    finer = hr.Tree(TRIPS.axes, order)
    coarse, fine = (hr.Invariant("destination", f"level{k}") for k in (1, 2))
    for invariants in ([fine], [coarse, fine], [fine, coarse]):
        assert public_cuboid(finer, hr.Chain(), hr.Replace(), invariants) == finer.cuboid(2)
        assert measurable(finer, hr.Chain(), hr.Replace(), invariants) == [
            finer.cuboid(3),
            finer.cuboid(4),
        ]
    assert public_cuboid(finer, hr.Chain(), hr.Replace(), [coarse]) == finer.cuboid(1)
    assert public_cuboid(finer, hr.Chain(), hr.Replace(), []) == finer.cuboid(0)
    assert public_cuboid(finer, hr.Chain(), hr.AddRemove(), []) is None


def test_an_invariant_makes_its_depth_and_all_above_public():
    plan = hr.make_plan(
        TRIPS,
        budget=hr.Rho(1),
        neighbours=hr.Replace(),
        invariants=[hr.Invariant("destination", "level1")],
    )
    assert kinds(plan) == ["public", "public", "measured", "measured", "measured"]
    assert "agree on the counts of destination.level1" in plan.protection.restriction


@pytest.mark.parametrize(
    ("neighbours", "invariant", "message"),
    [
        (hr.AddRemove(), hr.Invariant("destination", "level1"), "need replace neighbours"),
        (hr.Replace(), hr.Invariant("origin", "level1"), "not a depth of this tree"),
        (hr.Replace(), hr.Invariant("age", "level1"), "no axis 'age'"),
        (hr.Replace(), hr.Invariant("origin", "city"), "no level 'city'"),
    ],
)
def test_an_impossible_invariant_is_refused(neighbours, invariant, message):
    with pytest.raises(hr.HedgerowError, match=message):
        hr.make_plan(TRIPS, budget=hr.Rho(1), neighbours=neighbours, invariants=[invariant])
