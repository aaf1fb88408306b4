"""The pass where all nodes are measured: against a dense solve, whole and cut into jobs."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import chain as planned_chain
from hedgerow.plan.cuboids import Measured
from hedgerow.release.answers.measured_nodes import estimated
from hedgerow.release.descent import block
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.descent.nodes import by_cuboid
from hedgerow.release.descent.source import Drawn, Stored
from hedgerow.release.execution import in_memory
from hedgerow.release.passes import Pass
from tests.made import all_leaves, fixed_axis, plain_plan, random_axis, random_counts, random_tree
from tests.release.test_topdown import ancestor, truth_of

RHO = hr.Rho("1/20")
ESTIMATORS = [hr.Chebyshev(), hr.Euclidean()]


def nodes_by_depth(tree):
    """All node codes of each depth in tree order."""
    found = [[(0,) * len(tree.axes)]]
    for axis, level in tree.steps:
        start = tree.axes[axis].child_start[level - 1].tolist()
        found.append(
            [
                (*node[:axis], child, *node[axis + 1 :])
                for node in found[-1]
                for child in range(start[node[axis]], start[node[axis] + 1])
            ]
        )
    return found


def noisy_counts(counts, plan, bits, cut):
    """Every node's noisy count, with the noise of its job's stream."""
    tree, truth = plan.tree, truth_of(counts)
    first = max(plan.public_depth, 0)
    noisy = []
    for depth, nodes in enumerate(nodes_by_depth(tree)):
        what, here, cell = plan.depths[depth], {}, {}
        for node in nodes if isinstance(what, Measured) else ():
            place = tree.cuboid(depth)
            if cut is not None and depth > cut:
                place = (*place, *ancestor(tree, node, depth, cut))
            elif plan.public_depth > 0 and not truth[first].get(
                ancestor(tree, node, depth, first), 0
            ):
                continue
            noise = np.empty(1, dtype=np.int64)
            what.mechanism.draw(bits.stream(*place), cell.get(place, 0), noise)
            cell[place] = cell.get(place, 0) + 1
            here[node] = truth[depth].get(node, 0) + int(noise[0])
        noisy.append(here)
    return noisy


def dense(plan, noisy, exact, root, depth):
    """The least-squares leaf counts below one node, from all that is known there and below."""
    tree = plan.tree
    every = nodes_by_depth(tree)
    leaves = [n for n in every[-1] if ancestor(tree, n, tree.depth, depth) == root]
    place = {leaf: i for i, leaf in enumerate(leaves)}
    rows, values, weights = [], [], []
    for t in range(depth, tree.depth + 1):
        for node in every[t]:
            if t < depth or ancestor(tree, node, t, depth) != root:
                continue
            known = exact is not None and t == exact[0]
            if not known and node not in noisy[t]:
                continue
            row = np.zeros(len(leaves))
            for leaf in leaves:
                row[place[leaf]] = ancestor(tree, leaf, tree.depth, t) == node
            rows.append(row)
            values.append(exact[1].get(node, 0) if known else noisy[t][node])
            weights.append(1e4 if known else plan.depths[t].mechanism.noise_variance ** -0.5)
    matrix = np.array(rows) * np.array(weights)[:, None]
    return leaves, matrix, np.array(values) * np.array(weights)


def sums(tree, leaves, values, depth):
    found = {}
    for leaf, value in zip(leaves, values, strict=True):
        node = ancestor(tree, leaf, tree.depth, depth)
        found[node] = found.get(node, 0.0) + value
    return found


PLANS = {
    "public total": {"neighbours": hr.Replace()},
    "measured total": {"neighbours": hr.AddRemove()},
    "no total": {"neighbours": hr.AddRemove(), "allocation": hr.Shares([0, "1/4", "1/4", "1/2"])},
    "a gap": {"neighbours": hr.Replace(), "allocation": hr.Shares(["1/3", 0, "2/3"])},
}


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_estimates_are_least_squares_and_counts_their_projection(monkeypatch, kind, cut):
    if cut:
        monkeypatch.setattr(planned_chain, "UNCUT_LEAVES_OF_ALL", 0)
        monkeypatch.setattr(planned_chain, "MIN_JOBS", 2)
    rng = np.random.default_rng(7)
    tree = hr.Tree([random_axis(rng, "geo", depth=3, widest=4)])
    counts = random_counts(rng, tree, filled=0.6)
    plan = plain_plan(tree, budget=RHO, measure=hr.All(), **PLANS[kind])
    at = plan.design.cut if cut else None
    noisy = noisy_counts(counts, plan, seeded_bits(3), at)
    exact = (0, {(0,): counts.total}) if plan.public_depth == 0 else None
    leaves, matrix, values = dense(plan, noisy, exact, (0,), 0)
    solved = np.linalg.lstsq(matrix, values, rcond=None)[0]
    covariance = np.linalg.inv(matrix.T @ matrix)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(3))
    for t, nodes in enumerate(release.content.nodes.values()):
        expected = sums(tree, leaves, solved, t)
        for i, node in enumerate(zip(*nodes.codes, strict=True)):
            assert nodes.estimate[i] == pytest.approx(expected[node], abs=1e-4)
            inside = np.array([ancestor(tree, n, tree.depth, t) == node for n in leaves])
            assert nodes.variance[i] == pytest.approx(inside @ covariance @ inside, abs=1e-4)
    # The root's children: combined from below alone, then projected onto the root's count.
    first = nodes_by_depth(tree)[1]
    combined, variances = [], []
    for node in first:
        below, part, known = dense(plan, noisy, None, node, 1)
        combined.append(np.linalg.lstsq(part, known, rcond=None)[0].sum())
        variances.append(np.linalg.inv(part.T @ part).sum())
        assert len(below)
    whole = release.level(depth=0)["count"].to_numpy()
    projected = hr.Euclidean().project(
        np.array(combined), np.array([0, len(first)]), whole, np.array(variances)
    )
    nodes = release.content.nodes[1,]
    assert dict(zip(nodes.codes[0].tolist(), nodes.counts.tolist(), strict=True)) == {
        node[0]: y for node, y in zip(first, projected.tolist(), strict=True) if y
    }


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda made: made.name)
@pytest.mark.parametrize("seed", range(6))
def test_jobs_change_nothing_but_the_noise_and_everything_adds_up(monkeypatch, seed, estimator):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, axes=1 + seed % 2, depth=3)
    counts = random_counts(rng, tree, filled=[0.05, 0.8][seed % 2])
    neighbours = [hr.Replace(), hr.AddRemove()][seed // 3]
    plan = plain_plan(tree, budget=RHO, neighbours=neighbours, measure=hr.All())
    monkeypatch.setattr(planned_chain, "UNCUT_LEAVES_OF_ALL", 0)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", 3)
    monkeypatch.setattr(block, "CHUNK_CELLS", 5)
    source = Drawn(counts, plan, seeded_bits(seed))
    cut, noisy = by_cuboid(Pass(ChainFlow(plan.design.outline, source, estimator)).results())
    public = {tree.cuboid(t): cut[tree.cuboid(t)] for t in range(plan.public_depth + 1)}
    variance = {c: plan.depths[sum(c)].mechanism.noise_variance for c in noisy}
    stored = Stored(tree, noisy, variance, public)
    whole = estimated(stored, plan.design.outline.uncut, estimator)
    for t in range(tree.depth + 1):
        c = tree.cuboid(t)
        assert np.array_equal(cut[c].counts, whole[c].counts)
        assert np.array_equal(cut[c].estimate, whole[c].estimate)
        assert (cut[c].counts > 0).all()
        assert cut[c].counts.sum() == cut[tree.cuboid(0)].counts.sum()
        if isinstance(plan.depths[t], Measured):
            assert len(noisy[c]) == tree.nodes(t)


def test_nodes_below_a_public_zero_are_not_measured():
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    codes = np.array([0, 9], dtype=np.int32)
    counts = hr.Counts.from_leaves(tree, (codes,), np.array([50, 70]))
    plan = plain_plan(
        tree,
        budget=RHO,
        neighbours=hr.Replace(),
        invariants=[hr.Invariant("geo", "level1")],
        measure=hr.All(),
    )
    release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(0))
    assert len(release.measurements(depth=2)) == 8
    assert release.level(depth=2)["count"].sum() == 120


def test_more_leaves_than_can_be_measured_are_refused():
    axes = [fixed_axis(n, 300, 300, columns=[f"{n}1", f"{n}2"]) for n in "od"]
    with pytest.raises(hr.PlanError, match="measure survivors alone"):
        plain_plan(hr.Tree(axes), budget=RHO, measure=hr.All())


@pytest.mark.parametrize("seed", range(4))
def test_survivors_of_an_unmeasured_depth_are_sums_of_what_is_measured_below(seed):
    rng = np.random.default_rng(seed)
    tree = hr.Tree([fixed_axis("geo", 4, 3, 5)])
    counts = random_counts(rng, tree)
    shares = hr.Shares(["1/2", 0, "1/2"])
    plan = plain_plan(tree, budget=RHO, neighbours=hr.Replace(), allocation=shares)
    release = in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))
    nodes = {t: here for (t,), here in release.content.nodes.items()}
    noisy = release.measurements(depth=3)["noisy_count"].to_numpy().reshape(-1, 3, 5)
    place = {code: i for i, code in enumerate(nodes[1].codes[0].tolist())}
    for code, estimate, variance in zip(
        nodes[2].codes[0].tolist(), nodes[2].estimate, nodes[2].variance, strict=True
    ):
        assert estimate == noisy[place[code // 3], code % 3].sum()
        assert variance == pytest.approx(5 * plan.depths[3].mechanism.noise_variance)
    assert nodes[2].counts.sum() == nodes[3].counts.sum() == counts.total


@pytest.mark.parametrize("estimator", [hr.Euclidean(), hr.Sparse()], ids=lambda e: e.name)
def test_noise_that_real_valued_estimates_do_not_hold_is_refused_and_no_table_is(
    tmp_path, estimator
):
    """How large a table is decides no refusal: its counts stop at the limit of the estimates."""
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    plan = plain_plan(tree, budget=RHO, measure=hr.All())
    for leaves, wanted in (([1], 1 << 40), ([1, 2], 1 << 40), ([1, 5], 1 << 40)):
        values = np.full(len(leaves), 1 << 40)
        huge = hr.Counts.from_leaves(tree, (np.array(leaves, np.int32),), values)
        total = hr.release(huge, plan, estimator=estimator).level(depth=0)["count"].item()
        assert abs(total - wanted) < 1_000
    wide = plain_plan(tree, budget=hr.Rho("1e-30"), measure=hr.All())
    counts = random_counts(np.random.default_rng(1), tree)
    with pytest.raises(hr.EstimateError, match=r"above 2\*\*30 records"):
        hr.release(counts, wide, estimator=estimator, directory=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    survivors = plain_plan(tree, budget=RHO)
    assert hr.release(huge, survivors).level(depth=0)["count"].item() > 1 << 39


@pytest.mark.parametrize("epsilon", [100, 500, 1000, 5000])
@pytest.mark.parametrize("measure", [hr.Survivors(), hr.All()], ids=["survivors", "all"])
@pytest.mark.parametrize("estimator", [hr.Chebyshev(), hr.Euclidean(), hr.Sparse()], ids=str)
def test_noise_that_is_next_to_never_there_leaves_the_truth(epsilon, measure, estimator):
    """The variance is from e⁻³³ to less than doubles can say."""
    tree = hr.Tree([fixed_axis("geo", 3, 3)])
    values = 5 * np.arange(9, dtype=np.int64) + 1
    counts = all_leaves(tree, values)
    plan = plain_plan(
        tree, budget=hr.Epsilon(epsilon), mechanism=hr.DiscreteLaplace, measure=measure
    )
    found = in_memory(counts, plan, estimator=estimator, bits=seeded_bits(1))
    for depth in range(3):
        assert found.level(depth=depth)["count"].to_list() == counts.level(depth)["count"].to_list()
