"""The least error at a price, beside dense matrices, and what a plan says of it."""

import json
from itertools import product

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.plan.efficiency.least_total import least_total
from hedgerow.plan.efficiency.traces import COME, MOVE, Branches, Pairs, root_of
from hedgerow.plan.page.page import planning_page
from tests.made import fixed_axis, fixed_tree, plain_plan, random_axis

RHO = hr.Rho("1/10")
REGULAR = hr.Tree([fixed_axis("a", 4, 5, 10)])


def ancestors(axis, level):
    """The node of a level above each leaf."""
    return np.repeat(np.arange(axis.size(level)), np.diff(axis.descendant_start(level, axis.depth)))


def weighted(tree, importance):
    """G, of all leaves row by row."""
    total = 0.0
    for levels, each in importance.items():
        same = np.ones((1, 1))
        for axis, level in zip(tree.axes, levels, strict=True):
            above = ancestors(axis, level)
            same = np.kron(same, above[:, None] == above)
        total = total + each * same
    return total


def root_of_matrix(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def alike(tree):
    return {levels: 1 / tree.cells(levels) for levels in hr.Cube().cuboids(tree)}


def uneven(seed):
    """A random axis, or two axes of which the second is even."""
    rng = np.random.default_rng(seed)
    first = random_axis(rng, "a", 3, 3)
    return hr.Tree([first, fixed_axis("b", 2, columns=["y"])][: 1 + seed % 2])


def two_uneven(seed):
    """Two axes neither of which has families of one size alone."""
    rng, axes = np.random.default_rng(seed), []
    while len(axes) < 2:
        axis = random_axis(rng, "ab"[len(axes)], 2, 3)
        if any(np.ptp(np.diff(start)) for start in axis.child_start):
            axes.append(axis)
    return hr.Tree(axes)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("pairs", [COME, MOVE, Pairs(single=0.3, moved=0.7)])
def test_a_root_is_that_of_dense_matrices(seed, pairs):
    rng = np.random.default_rng(seed)
    axis = random_axis(rng, "a", 3, 4)
    families = [np.diff(start) for start in axis.child_start]
    branches, g = Branches.of(families), rng.uniform(0.1, 3, axis.depth + 1)
    weight = rng.uniform(0.5, 2, len(branches.leaves))
    weight /= branches.leaves @ weight
    w = np.repeat(weight, branches.leaves)
    top = ancestors(axis, next(k for k in range(1, 4) if axis.size(k) > 1))
    apart = np.outer(w, w) * (top[:, None] != top)
    moved = 2 * (np.diag(apart.sum(1)) - apart) / apart.sum()
    laplacian = pairs.single * np.diag(w) + pairs.moved * moved
    half = root_of_matrix(weighted(hr.Tree([axis]), {(k,): g[k] for k in range(4)}))
    expected = np.trace(root_of_matrix(half @ laplacian @ half))
    found = root_of(branches, g, weight, pairs)
    assert found.value <= expected
    assert found.value == pytest.approx(expected, rel=2e-7)
    for k in range(axis.depth + 1):
        more, less = g.copy(), g.copy()
        more[k], less[k] = g[k] * 1.001, g[k] / 1.001
        steps = [root_of(branches, each, weight, pairs).value for each in (more, less)]
        slope = (steps[0] - steps[1]) / (more[k] - less[k])
        assert found.by_level[k] == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_whatever_the_total_matters_it_is_no_error_of_records_that_move():
    """Their trace knows nothing of it, not even the rounding of so large a number."""
    branches = Branches.of([np.array([4]), np.array([2, 3, 3, 2])])
    g, weight = np.array([0.0, 8e-10, 9e-10]), np.array([0.03, 0.05, 0.17, 0.14])
    weight /= branches.leaves @ weight
    least = root_of(branches, g, weight, MOVE)
    for total in (1e-10, 1.0, 1e10):
        g[0] = total
        found = root_of(branches, g, weight, MOVE)
        assert found.value == least.value
        assert found.by_level.tolist() == least.by_level.tolist()
    nothing = root_of(branches, np.array([1.0, 0.0, 0.0]), weight, MOVE)
    assert nothing.value == 0


@pytest.mark.parametrize("small", [4e-14, 6e-14, 1e-30])
def test_importances_far_below_another_one_are_not_rounded_to_others(small):
    """Whose records move change no total, so that its importance takes nothing and adds nothing."""
    axis = random_axis(np.random.default_rng(7), "a", 2, 4)
    assert np.ptp(np.diff(axis.child_start[1])) > 0
    tree, leaves = hr.Tree([axis]), {(2,): small}
    expected = least_total(tree, leaves, [MOVE]).total
    found = least_total(tree, {(0,): 1.0} | leaves, [MOVE]).total
    assert found == pytest.approx(expected, rel=1e-6, abs=0)


@pytest.mark.parametrize("weight", [1 / 3, 0.32027629419440374, 0.4])
@pytest.mark.parametrize("opposed", [-1.0, -0.5, 0.5])
def test_contrasts_that_two_blocks_are_opposed_in_have_a_root(opposed, weight):
    """Of two blocks that weigh unlike one direction of L is 0, and comes out of rounding alone."""
    branches, g = Branches.of([np.array([2]), np.array([2, 1])]), np.ones(3)
    w = np.array([weight, weight, 1 - 2 * weight])
    apart = np.outer(w, w) * (np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0]]))
    laplacian = 2 * (np.diag(apart.sum(1)) - opposed * apart) / apart.sum()
    sums = np.ones((3, 3)) + np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]]) + np.eye(3)
    half = root_of_matrix(sums)
    expected = np.trace(root_of_matrix(half @ laplacian @ half))
    found = root_of(branches, g, w[1:], MOVE, opposed)
    assert np.isfinite(found.by_level).all()
    assert expected * (1 - 2e-7) <= found.value <= expected


def test_what_is_known_of_records_that_come_or_go_is_not_of_those_that_may_move_too():
    """There the best weights are of both, and so are the errors at the least total."""
    tree = uneven(0)
    assert least_total(tree, alike(tree), [COME]).slack < 1e-3
    either = least_total(tree, alike(tree), [COME, Pairs(single=0.99, moved=0.01)])
    assert either.slack is None
    assert not either.by_cuboid
    plan = hr.make_plan(tree, budget=RHO, neighbours=hr.Replace(exactly=False))
    assert plan.efficiency.slack is None
    assert {there for _, there in plan.efficiency.errors.values()} == {None}
    assert "where the total is least" not in str(plan.efficiency)


EVEN = {
    "chain": hr.Tree([fixed_axis("a", 2, 3, 2)]),
    "cube": fixed_tree(a=(2, 2), b=(3,)),
    "three axes": fixed_tree(**dict.fromkeys("xyz", (2,))),
    "only children": fixed_tree(a=(1, 3, 1), b=(2,)),
}


@pytest.mark.parametrize("pairs", [[COME], [MOVE], [COME, MOVE]], ids=["come", "move", "either"])
@pytest.mark.parametrize("tree", EVEN.values(), ids=EVEN)
@pytest.mark.sweep(4)
def test_the_errors_at_the_least_total_are_its_slopes(tree, pairs):
    """What a little more importance costs; the total itself: `tests.acceptance.efficiency`."""
    rng = np.random.default_rng(0)
    for importance in (alike(tree), {c: rng.uniform(0.1, 3) for c in hr.Cube().cuboids(tree)}):
        found = least_total(tree, importance, pairs)
        assert found.slack < 1e-5
        for levels, each in importance.items():
            steps = [
                least_total(tree, {**importance, levels: each * by}, pairs).total
                for by in (1.001, 1 / 1.001)
            ]
            slope = (steps[0] - steps[1]) / (1.001 - 1 / 1.001) / each
            assert found.by_cuboid[levels] == pytest.approx(slope, rel=1e-3, abs=1e-6)


@pytest.mark.parametrize("pairs", [COME, MOVE])
@pytest.mark.parametrize("seed", range(8))
def test_the_errors_of_uneven_families_add_up_to_the_least_total(seed, pairs):
    weights = alike(uneven(seed))
    found = least_total(uneven(seed), weights, [pairs])
    told = sum(each * found.by_cuboid[levels] for levels, each in weights.items())
    assert told == pytest.approx(found.total, rel=1e-5)


def test_an_axis_of_one_node_changes_nothing():
    one = fixed_tree(a=(1, 1), b=(3,))
    for who in (hr.AddRemove(), hr.Replace()):
        beside = hr.make_plan(one, budget=RHO, neighbours=who, workload=hr.Cube())
        alone = hr.make_plan(hr.Tree(one.axes[1:]), budget=RHO, neighbours=who)
        assert beside.efficiency.value == pytest.approx(alone.efficiency.value, rel=1e-6)


@pytest.mark.parametrize("neighbours", [hr.AddRemove(), hr.Replace(), hr.AddRemove(3)])
def test_the_usual_plan_of_a_regular_chain_attains_the_least(neighbours):
    plan = hr.make_plan(REGULAR, budget=RHO, neighbours=neighbours)
    assert plan.efficiency.value == pytest.approx(1, abs=1e-6)
    assert str(plan.efficiency).startswith("Efficiency: 1.000.")
    assert not plan.efficiency.better
    for own, least in plan.efficiency.errors.values():
        assert own == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("neighbours", [hr.AddRemove(), hr.Replace(), hr.Replace(exactly=False)])
@pytest.mark.parametrize("workload", [hr.Chain(), hr.Cube()])
def test_no_plan_is_better_than_the_least(neighbours, workload):
    rng = np.random.default_rng(5)
    tree = hr.Tree([random_axis(rng, "a", 2, 4), fixed_axis("b", 2, 2, columns=["x", "y"])])
    for allocation in (None, hr.Uniform(), hr.Optimal(objective="released")):
        plan = hr.make_plan(
            tree, budget=RHO, neighbours=neighbours, workload=workload, allocation=allocation,
            measure=hr.All(),
        )  # fmt: skip
        design, found = plan.design, plan.efficiency
        total = sum(w * design.mean_variance(tree.named(n)) for n, w in found.weights.items())
        own = found.least / (2 * float(plan.guarantee.rho)) / total
        assert found.value == pytest.approx(own, rel=1e-12)
        assert 0.7 < own < 1 + 1e-6


def test_importances_are_those_of_the_allocation():
    by_count = hr.Optimal(objective="released", importance=[1, 1, 1, 1])
    plan = hr.make_plan(REGULAR, budget=RHO, allocation=by_count)
    assert plan.efficiency.value == pytest.approx(1, abs=1e-5)
    shares = hr.Shares([share for share in plan.shares if share is not None])
    assert hr.make_plan(REGULAR, budget=RHO, allocation=shares).efficiency.value < 0.99


def test_what_is_worse_is_said():
    plan = hr.make_plan(REGULAR, budget=RHO, allocation=hr.Shares([".4", ".3", ".1", ".2"]))
    found = plan.efficiency
    assert found.value < 0.8
    assert found.better.keys() == {"level2", "level3"}
    said = str(found)
    assert "Without [allocation] shares of least error are chosen." in said
    assert "level2  5.816" in said
    assert f"at most {max(found.slack, 0.001):.1%} below the least possible" in said
    assert said in str(plan)
    read = json.loads(json.dumps(found.to_dict()))
    assert read["value"] == found.value
    assert [each["cuboid"] for each in read["cuboids"]] == list(plan.cuboids)


RAGGED = fixed_tree(a=(2, 3), b=(2,))
TOTAL = [hr.Invariant("a", "level1")]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"measure": hr.Survivors()}, "survivors"),
        ({"mechanism": hr.DiscreteLaplace, "budget": hr.Epsilon(1)}, "Gaussian noise alone"),
        ({"budget": hr.Rho(40)}, "standard deviation below 1"),
        ({"neighbours": hr.Replace(), "invariants": TOTAL}, "counts that are public"),
    ],
)
def test_where_the_notion_does_not_hold_the_reason_is_said(options, reason):
    plan = plain_plan(RAGGED, **{"budget": RHO, "measure": hr.All(), **options})
    assert plan.efficiency.value is None
    assert reason in plan.efficiency.reason
    assert str(plan.efficiency) == f"Efficiency: not known, because {plan.efficiency.reason}."


def test_running_sums_have_none():
    tree = hr.Tree([hr.Ranges.equal_width("o", 0, 30, 30).axis([30])])
    plan = hr.make_plan(tree, budget=RHO, measure=hr.RunningSums(), allocation=hr.ForDistribution())
    assert "running sums" in plan.efficiency.reason


def test_a_table_of_one_cell_and_trees_too_large_have_none(monkeypatch):
    one = hr.Tree([fixed_axis("a", 1)])
    assert "one cell" in hr.make_plan(one, budget=RHO).efficiency.reason
    tree = uneven(0)
    families = sum(tree.axes[0].size(k) for k in range(tree.depth))
    for most, workload in product((families - 1, families), (hr.Chain(), hr.Cube())):
        monkeypatch.setattr("hedgerow.plan.efficiency.traces.MOST_FAMILIES", most)
        found = hr.make_plan(tree, budget=RHO, workload=workload).efficiency
        assert (found.value is None) == (most < families)
        assert ("families" in found.reason) == (most < families)


def test_a_bound_that_takes_too_long_leaves_the_others(monkeypatch):
    """A chain over two uneven axes has more families than either axis."""
    tree = two_uneven(3)
    whole = least_total(tree, alike(tree), [COME])
    monkeypatch.setattr("hedgerow.plan.efficiency.traces.MOST_FAMILIES", 5)
    assert least_total(tree, alike(tree), [COME]).total == whole.total
    chain = dict.fromkeys(tree.chain, 1.0)
    with pytest.raises(hr.errors.PlanError, match="families takes too long"):
        least_total(tree, chain, [COME])


def test_common_factors_of_importances_do_not_matter_however_large():
    plans = [
        hr.make_plan(
            REGULAR,
            budget=RHO,
            allocation=hr.Optimal(objective="released", importance=[k, 2 * k, k, k]),
        )
        for k in (1.0, 1e49)
    ]
    first, second = (plan.efficiency for plan in plans)
    assert first.value == pytest.approx(second.value, rel=1e-12)
    assert first.weights == pytest.approx(second.weights)


def test_a_plan_whose_own_errors_are_not_known_has_none(monkeypatch):
    plan = hr.make_plan(REGULAR, budget=RHO)
    monkeypatch.setattr(type(plan.design), "mean_variance", lambda *_: np.inf)
    assert "errors of the plan itself" in plan.efficiency.reason


def test_levels_of_one_node_and_only_children():
    """What repeats a coarser cuboid is neither measured nor weighed."""
    plain = hr.Tree([fixed_axis("a", 3, 4)])
    longer = hr.Tree([fixed_axis("a", 1, 3, 1, 4)])
    values = [hr.make_plan(t, budget=RHO).efficiency for t in (plain, longer)]
    assert values[0].value == pytest.approx(values[1].value, rel=1e-6)
    assert values[0].least == pytest.approx(values[1].least, rel=1e-6)


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
def test_the_page_has_the_least_and_the_weights():
    plan = hr.make_plan(REGULAR, budget=RHO)
    page = planning_page(plan, "1")
    assert f'"least":{json.dumps(plan.efficiency.least)}' in page.replace(": ", ":")
    laplace = hr.make_plan(REGULAR, budget=hr.Epsilon(1), mechanism=hr.DiscreteLaplace)
    assert '"efficiency":null' in planning_page(laplace, "1").replace(": ", ":")
