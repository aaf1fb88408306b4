"""Fairness: variances by family type against dense algebra, and shares that keep a ratio."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import hedgerow as hr
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.plan.allocation.fair import Fair, Kinds, fair_shares
from hedgerow.plan.allocation.fairness import Classes, fairness, variances
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from tests.estimate import dense_trees as judge
from tests.made import plain_plan, problem_of, random_tree

LAPLACE = {"budget": hr.Epsilon("1/50"), "mechanism": hr.DiscreteLaplace}
GAUSS = {"budget": hr.Rho("1/500")}


def problem(tree, **options):
    """Of survivors, in tables of a known total, unless told otherwise."""
    return problem_of(tree, **{"neighbours": hr.Replace(), "measure": hr.Survivors(), **options})


def least_ratio(asked):
    """The smallest ratio that shares were found to reach."""
    kinds = Kinds.of(asked, np.ones(len(asked.cuboids)))
    return np.exp(kinds.log_ratio(kinds.narrowest.shares))


def states(*counties):
    """A tree of states with so many counties each."""
    rows = [(f"S{s}", f"S{s}C{c:03}") for s, n in enumerate(counties) for c in range(n)]
    frame = pl.DataFrame(rows, schema=["state", "county"], orient="row")
    return Tree([Axis.from_frame("geography", frame, ["state", "county"])])


def by_nodes(tree, classes, found):
    """Variances by class spread over the nodes, in order."""
    spread = []
    for t, at in enumerate(found):
        levels = zip(classes.members, tree.cuboid(t), strict=True)
        members = [axis[k] for axis, k in levels]
        spread.append(at[np.ix_(*members)].ravel())
    return spread


@pytest.mark.parametrize("exact", [True, False], ids=["public", "noisy"])
@pytest.mark.parametrize("combine", [True, False], ids=["combined", "projected"])
@pytest.mark.parametrize("axes", [1, 2])
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_variances_by_class_are_those_of_dense_covariance_matrices(axes, combine, exact, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, axes=axes, depth=3, widest=4 - axes)
    own = rng.uniform(0.5, 20, tree.depth + 1)
    own[0] = 0 if exact else own[0]
    classes = Classes.of(tree, subtrees=combine)
    found = by_nodes(tree, classes, variances(classes, own, combine=combine))
    dense = (judge.dense_combined if combine else judge.dense_projected)(tree, own)
    for ours, theirs in zip(found, dense, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("neighbours", [hr.Replace(), hr.AddRemove()], ids=["public", "noisy"])
@pytest.mark.parametrize("measure", [hr.All(), hr.Survivors()], ids=["combined", "projected"])
@pytest.mark.parametrize("axes", [1, 2])
@settings(max_examples=10)
@given(seed=st.integers(0, 10**6))
@example(seed=177)  # Classes whose parts of a family of two sum to 1.9999999999999998.
@example(seed=262_143)  # A level at the least share, so that its noise is wide.
def test_every_column_is_that_of_the_nodes_one_by_one(axes, measure, neighbours, seed):
    """The ratio: to the most precise node of the depth that is not exact, whatever its family."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, axes=axes, depth=3, widest=5 - axes)
    assume(tree.leaves > 1)
    plan = hr.make_plan(tree, **GAUSS, neighbours=neighbours, measure=measure)
    own = [own_variance(what) for what in plan.depths]
    combine = isinstance(measure, hr.All)
    dense = (judge.dense_combined if combine else judge.dense_projected)(tree, own)
    frame, nodes = fairness(plan), judge.node_sums(tree)
    assert frame["depth"].unique().sort().to_list() == list(range(1, tree.depth + 1))
    for t in range(1, tree.depth + 1):
        families = nodes[t - 1] @ nodes[t].T > 0  # (parents, children)
        siblings = families.T @ families.sum(axis=1)
        above = dense[t][dense[t] > 1e-9]
        rows = frame.filter(depth=t).sort("siblings")
        assert rows["siblings"].to_list() == np.unique(siblings).tolist()
        for row in rows.iter_rows(named=True):
            of = dense[t][siblings == row["siblings"]]
            found = [row["variance"], row["least"], row["largest"], row["sd"] ** 2]
            told = [of.mean(), of.min(), of.max(), of.mean()]
            assert found == pytest.approx(told, rel=1e-8, abs=1e-6)
            assert row["families"] == len(of) / row["siblings"]
            assert row["cuboid"] == tree.cuboid_name(t)
            if len(above):
                assert row["ratio"] == pytest.approx(of.mean() / above.min(), rel=1e-8, abs=1e-9)
            else:
                assert row["ratio"] is None


def own_variance(what):
    """Of one noisy count, by enumeration; 0 where it is public, ∞ where none is taken."""
    if not isinstance(what, hr.Measured):
        return 0.0 if what.kind == "public" else np.inf
    sigma2 = float(what.mechanism.parameter)
    widest = int(12 * sigma2**0.5) + 12
    x = np.arange(-widest, widest + 1)
    weights = np.exp(-(x * x) / (2 * sigma2))
    return float((x * x * weights).sum() / weights.sum())


def worst_ratios(plan):
    """By depth the largest variance to the least one above 0; None where counts are exact."""
    found = {}
    for (depth,), rows in fairness(plan).group_by("depth", maintain_order=True):
        least = rows["least"].filter(rows["least"] > 0).min()
        found[depth] = None if least is None else rows["largest"].max() / least
    return found


def test_arizona_and_texas_below_public_states_differ_by_the_papers_six_per_cent():
    """Zhu et al.: 186.67 and 199.21 at a scale of 10."""
    neighbours = hr.Replace()
    plan = plain_plan(
        states(15, 254),
        budget=hr.Epsilon("1/5"),
        mechanism=hr.DiscreteLaplace,
        neighbours=neighbours,
        invariants=[hr.Invariant("geography", "state")],
    )
    frame = fairness(plan).filter(depth=2)
    noise = plan.depths[2].mechanism
    assert noise.scale == 10
    assert frame["siblings"].to_list() == [15, 254]
    assert frame["families"].to_list() == [1, 1]
    expected = [noise.noise_variance * (1 - 1 / n) for n in (15, 254)]
    assert frame["variance"].to_list() == pytest.approx(expected, rel=1e-12)
    assert expected == pytest.approx([186.67, 199.21], rel=1e-3)
    assert frame["ratio"][1] == pytest.approx(1.0672, abs=5e-5)
    assert worst_ratios(plan) == {1: None, 2: pytest.approx(1.0672, abs=5e-5)}


def test_an_only_child_of_a_public_parent_is_exact_and_no_measure_of_the_others():
    plan = hr.make_plan(
        states(1, 4, 4),
        **GAUSS,
        neighbours=hr.Replace(),
        invariants=[hr.Invariant("geography", "state")],
        allocation=hr.Uniform(),
        measure=hr.Survivors(),
    )
    frame = fairness(plan).filter(depth=2)
    assert frame["families"].to_list() == [1, 2]
    assert frame["variance"][0] == 0
    assert frame["ratio"].to_list() == [0, 1]


def test_below_an_unmeasured_depth_all_leaves_are_as_one_family():
    """Its counts are sums of the noisy leaves, so two projections are one."""
    plan = hr.make_plan(
        states(2, 5, 9), **GAUSS, allocation=hr.Shares(["1/4", 0, "3/4"]), measure=hr.Survivors()
    )
    above, own = (plan.depths[t].mechanism.noise_variance for t in (0, 2))
    frame = fairness(plan).filter(depth=2)
    expected = above / 16**2 + own * (1 - 1 / 16)
    assert frame["variance"].to_list() == pytest.approx([expected] * 3, rel=1e-12)


def test_the_rows_add_up_to_the_nodes_of_each_depth():
    tree = random_tree(np.random.default_rng(3), axes=2, depth=3)
    frame = fairness(hr.make_plan(tree, **GAUSS, allocation=hr.Uniform(), measure=hr.Survivors()))
    for t in range(1, tree.depth + 1):
        at = frame.filter(depth=t)
        assert (at["siblings"] * at["families"]).sum() == tree.nodes(t)
        assert (at["least"] <= at["variance"] + 1e-9).all()
        assert (at["largest"] >= at["variance"] - 1e-9).all()
        assert (at["sd"] ** 2 - at["variance"]).abs().max() < 1e-9
        assert at["cuboid"].unique().to_list() == [tree.cuboid_name(t)]


def test_combining_depths_makes_everybody_more_precise():
    tree = states(3, 40)
    alone = fairness(hr.make_plan(tree, **GAUSS, allocation=hr.Uniform(), measure=hr.Survivors()))
    combined = fairness(hr.make_plan(tree, **GAUSS, measure=hr.All(), allocation=hr.Uniform()))
    assert (combined["variance"] <= alone["variance"] * (1 + 1e-12)).all()
    assert (combined["variance"] < alone["variance"] * 0.9).any()


@pytest.mark.parametrize(("fewer", "more"), [(2, 3), (3, 254), (1, 5)])
def test_two_family_sizes_reach_every_ratio_within_the_range_and_no_other(fewer, more):
    low, high = (fewer / more) ** 2, (1 - 1 / more) / (1 - 1 / fewer) if fewer > 1 else np.inf
    x = np.concatenate(([0.0], 10.0 ** np.linspace(-8, 8, 400)))
    ratio = (x / more**2 + 1 - 1 / more) / np.maximum(x / fewer**2 + 1 - 1 / fewer, 1e-300)
    assert (np.diff(ratio) < 0).all()
    assert ratio[-1] == pytest.approx(low, rel=1e-3)
    if fewer > 1:
        assert ratio[0] == pytest.approx(high)
    even = fewer * more / (fewer + more)
    equal = [even / n**2 + 1 - 1 / n for n in (fewer, more)]
    assert equal[0] == pytest.approx(equal[1])


each_kind = pytest.mark.parametrize("kind", [GAUSS, LAPLACE], ids=["gaussian", "laplace"])


@each_kind
def test_two_family_sizes_can_be_made_equal(kind):
    asked = problem(states(3, 12), **kind)
    assert least_ratio(asked) == pytest.approx(1, abs=1e-5)
    plan = hr.make_plan(
        asked.tree, **kind, neighbours=hr.Replace(), allocation=Fair(1.001), measure=hr.Survivors()
    )
    assert worst_ratios(plan)[2] <= 1.001 * (1 + 1e-4)
    assert (
        worst_ratios(
            hr.make_plan(
                asked.tree,
                **kind,
                neighbours=hr.Replace(),
                allocation=hr.Uniform(),
                measure=hr.Survivors(),
            )
        )[2]
        > 1.1
    )


@each_kind
def test_fair_shares_are_the_cheapest_on_a_grid(kind):
    asked = problem(states(3, 12, 30), **kind)
    power = 1 if kind is GAUSS else 2
    n = np.array([3, 12, 30])
    mean = np.array([2 / 3, 0.0]), np.array([(1 / n).sum() * 2 / 3, (n - 1).sum()]) / n.sum()
    grid = np.linspace(1e-4, 1 - 1e-4, 20_001)
    v = np.stack([grid, 1 - grid]) ** -float(power)
    each = v[0] * (2 / 3) / n[:, None] ** 2 + v[1] * (1 - 1 / n[:, None])
    ratios = each.max(axis=0) / each.min(axis=0)
    costs = mean[0] @ v + mean[1] @ v
    assert least_ratio(asked) == pytest.approx(ratios.min(), rel=1e-4)
    for ratio in (1.2, 1.05, 3.0):
        shares = fair_shares(asked, ratio)
        best = grid[np.where(ratios <= ratio, costs, np.inf).argmin()]
        assert sum(shares) == 1
        assert float(shares[0]) == pytest.approx(best, abs=2e-4)


FAMILIES = [(1, 2, 30), (1, 2, 9), (2, 3, 12), range(1, 9)]


def uneven_chain(seed, most=300):
    """A tree of one axis with families of very unlike sizes, cut off at so many nodes a level."""
    rng = np.random.default_rng(seed)
    sizes, depth, nodes = FAMILIES[seed % len(FAMILIES)], int(rng.integers(3, 7)), [()]
    for _ in range(depth):
        nodes = [
            (*node, f"{node[-1] if node else 'a'}.{child}")
            for node in nodes
            for child in range(rng.choice(sizes))
        ][:most]
    levels = [f"level{k}" for k in range(1, depth + 1)]
    frame = pl.DataFrame(nodes, schema=levels, orient="row")
    return Tree([Axis.from_frame("a", frame, levels)])


def reached_by_linear_programs(asked, *ratios):
    """Which ratios some shares reach: of b <= c·v <= ratio·b for all kinds of nodes of a depth."""
    axis, found = asked.tree.axes[0], []
    at, own = np.zeros((1, axis.depth + 1)), np.eye(axis.depth + 1)
    at[0] = own[0]
    for k, start in enumerate(axis.child_start):
        siblings = np.diff(start)
        n = np.repeat(siblings, siblings)[:, None]
        at = np.repeat(at, siblings, axis=0) / n**2 + (1 - 1 / n) * own[k + 1]
        rows = np.unique(at[:, list(asked.depths)], axis=0)
        found += [rows] if len(rows) > 1 else []
    units = [
        np.tile(unit, (len(at), 1)) for at, unit in zip(found, np.eye(len(found)), strict=True)
    ]
    rows, units = np.vstack(found), np.vstack(units)
    bounds = [*[(1.0, 1e8)] * rows.shape[1], *[(0, None)] * units.shape[1]]

    def is_reached(ratio):
        a = np.vstack([np.hstack([-rows, units]), np.hstack([rows, -ratio * units])])
        return linprog(np.ones(a.shape[1]), A_ub=a, b_ub=np.zeros(len(a)), bounds=bounds).success

    return [is_reached(ratio) for ratio in ratios]


@pytest.mark.parametrize("seed", [35, 52, 55, 78, 119, 179])
def test_the_least_ratio_along_a_chain_is_that_of_linear_programs(seed):
    kind = LAPLACE if seed % 2 else GAUSS
    asked = problem(uneven_chain(seed, most=100), neighbours=hr.AddRemove(), **kind)
    found = least_ratio(asked)
    around = found * (1 - 2e-5), found * (1 + 2e-5)
    assert reached_by_linear_programs(asked, *around) == [False, True]
    plan = hr.make_plan(asked.tree, **kind, allocation=Fair(found * 1.0001), measure=hr.Survivors())
    assert max(each or 1 for each in worst_ratios(plan).values()) <= found * 1.0001 * (1 + 1e-9)


def test_a_ratio_out_of_reach_is_refused_with_the_one_that_can_be_reached():
    asked = problem(states(3, 12, 30, 90), **GAUSS)
    reached = least_ratio(asked)
    with pytest.raises(hr.PlanError, match=f"{reached:.6g}"):
        fair_shares(asked, 1 + (reached - 1) / 2)
    assert sum(fair_shares(asked, reached * 1.0001)) == 1


def test_below_a_public_parent_no_shares_change_the_ratio():
    axis = states(2, 10).axes[0]
    tree = Tree([axis])
    asked = Problem(
        tree, hr.Replace(), hr.DiscreteGaussian, hr.Rho(1), hr.Survivors(), (tree.cuboid(2),)
    )
    assert least_ratio(asked) == pytest.approx((1 - 1 / 10) / (1 - 1 / 2), rel=1e-5)
    assert fair_shares(asked, 2.0) == (Fraction(1),)


def test_importance_moves_the_shares_of_a_loose_ratio():
    asked = problem(states(3, 12, 30), **GAUSS)
    above = fair_shares(asked, 5.0, (10, 1))
    below = fair_shares(asked, 5.0, (1, 10))
    assert above[0] > below[0]


def test_shares_of_a_tree_of_several_axes_keep_the_ratio():
    tree = random_tree(np.random.default_rng(8), axes=2, depth=2, widest=3)
    asked = problem(tree, **GAUSS)
    ratio = least_ratio(asked) * 1.05
    plan = hr.make_plan(
        tree, **GAUSS, neighbours=hr.Replace(), allocation=Fair(ratio), measure=hr.Survivors()
    )
    assert max(found or 1 for found in worst_ratios(plan).values()) <= ratio * (1 + 1e-4)


@each_kind
@pytest.mark.parametrize("seed", [35, 78, 119])
def test_shares_of_combined_depths_keep_the_ratio_too(seed, kind):
    """By dense matrices; where the bound is loose the mean variances are the least there are."""
    tree = uneven_chain(seed, most=40)
    asked = problem(tree, neighbours=hr.AddRemove(), measure=hr.All(), **kind)
    power, free = asked.mechanism.price.power, hr.Optimal(importance=hr.PerLevel())

    def judged(shares):
        own = np.full(tree.depth + 1, np.inf)
        for t, share in zip(asked.depths, shares, strict=True):
            own[t] = np.inf if share is None else float(share) ** -power
        found = judge.dense_combined(tree, own)
        above = [each[each > 1e-9] for each in found]
        cost = sum(found[t].mean() for t in asked.depths)
        return max(each.max() / each.min() for each in above), cost

    unfair, least = judged(free.shares(asked))
    narrow = least_ratio(asked)
    for ratio in ((narrow + unfair) / 2, narrow * 1.001, 2 * unfair):
        reached, cost = judged(fair_shares(asked, ratio))
        assert reached <= ratio * (1 + 1e-8)
        assert cost >= least * (1 - 1e-6)
    assert cost == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Fair(0.9), "at least 1"),
        (lambda: Fair(2, (0.0, 0.0)), "importance"),
        (lambda: Fair(2, (-1.0, 2.0)), "importance"),
        (lambda: fair_shares(problem(states(2, 3), **GAUSS), 2, (1,)), "state; county"),
    ],
    ids=["ratio", "zero", "negative", "length"],
)
def test_wishes_that_make_no_sense_are_refused(wrong, said):
    with pytest.raises(hr.PlanError, match=said):
        wrong()


@pytest.mark.parametrize(
    ("axes", "message"),
    [(64, "trees of up to 63 axes, this one has 64"), (63, "different kinds of nodes")],
)
def test_fairness_of_very_many_axes_is_refused(axes, message):
    """NumPy has 64 dimensions at most, and its product of 63 twos is none of int64."""
    uneven = {"top": ["a", "a", "b"], "leaf": ["a1", "a2", "b1"]}
    names = [(f"x{i}", [f"top{i}", f"leaf{i}"]) for i in range(axes)]
    tree = Tree([Axis.from_frame(n, uneven, ["top", "leaf"], columns=c) for n, c in names])
    with pytest.raises(hr.PlanError, match=message):
        Classes.of(tree, subtrees=False)
