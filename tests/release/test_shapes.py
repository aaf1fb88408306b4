"""Every structure: with hardly any noise a release is the truth, whatever is measured and cut."""

import pickle

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import chain as planned_chain
from hedgerow.plan.cuboids import measurable
from hedgerow.release.descent import block
from hedgerow.release.execution import in_memory
from tests.made import all_leaves, fixed_axis, plain_plan, random_axis

ESTIMATORS = [hr.Chebyshev(), hr.Euclidean(), hr.Sparse(penalty=0.01), hr.LeastSquares()]


class Gaps:
    """Equal shares for some of the depths, the last one among them."""

    name = "gaps"
    prior = None

    def __init__(self, rng):
        self.rng = rng

    def shares(self, problem):
        kept = self.rng.random(len(problem.depths)) < 0.5
        kept[-1] = True
        return tuple(hr.Rho(f"1/{kept.sum()}").rho if k else None for k in kept)


def some_release(seed, estimator):
    """A release of a random table under a random plan at a huge budget."""
    rng = np.random.default_rng(seed)
    axes = [random_axis(rng, f"a{i}", depth=rng.integers(1, 4), widest=3) for i in range(2)]
    if rng.random() < 0.5:
        axes = [fixed_axis("geo", *rng.integers(1, 4, rng.integers(2, 5)).tolist())]
    tree = hr.Tree(axes)
    leaves = rng.integers(0, 2) * max(1, tree.leaves // 2)
    codes = tuple(rng.integers(0, a.size(a.depth), leaves).astype(np.int32) for a in tree.axes)
    counts = hr.Counts.from_leaves(tree, codes, rng.integers(1, 30, leaves))
    neighbours = [hr.Replace(), hr.AddRemove()][seed % 2]
    if not measurable(tree, hr.Chain(), neighbours, ()):
        return None
    plan = hr.make_plan(
        tree,
        budget=hr.Rho(200),
        neighbours=neighbours,
        allocation=Gaps(rng),
        measure=[hr.Survivors(), hr.All()][seed // 2 % 2],
    )
    return counts, in_memory(counts, plan, estimator=estimator, bits=seeded_bits(seed))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: e.name)
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_with_hardly_any_noise_the_release_is_the_truth(monkeypatch, tmp_path, cut, estimator):
    if cut:
        monkeypatch.setattr(planned_chain, "UNCUT_LEAVES", 0)
        monkeypatch.setattr(planned_chain, "UNCUT_LEAVES_OF_ALL", 0)
        monkeypatch.setattr(planned_chain, "MIN_JOBS", 2)
        monkeypatch.setattr(block, "CHUNK_CELLS", 3)
    made = 0
    for seed in range(ESTIMATORS.index(estimator), 60, 5):  # of all kinds, each its own
        found = some_release(seed, estimator)
        if found is None:
            continue
        counts, release = found
        made += 1
        for depth in range(counts.tree.depth + 1):
            true = counts.level(depth)
            given = release.level(depth=depth).select(true.columns)
            if counts.total == 0:
                assert given["count"].sum() == 0, seed
            else:
                assert given.equals(true), (seed, depth)
        if made in {3, 8}:
            folder = tmp_path / f"{seed}"
            release.write(folder)
            assert [f for f in hr.check(folder) if f.failure] == [], seed
            for other in ESTIMATORS:
                again = hr.reestimate(folder, other)
                column = "estimate" if other.name == "least-squares" else "count"
                total = again.level(depth=counts.tree.depth)[column].sum()
                assert total == pytest.approx(counts.total, abs=1e-6), (seed, other)
    assert made >= 8


def test_a_cut_below_survivors_is_at_a_measured_depth(monkeypatch):
    monkeypatch.setattr(planned_chain, "UNCUT_LEAVES", 0)
    tree = hr.Tree([fixed_axis("geo", 300, 5, 4)])
    shares = hr.Shares(["1/2", 0, 0, "1/2"])
    plan = plain_plan(tree, budget=hr.Rho(1), allocation=shares)
    assert plan.design.cut == 0
    plan = plain_plan(tree, budget=hr.Rho(1), allocation=hr.Shares(["1/2", 0, "1/4", "1/4"]))
    assert plan.design.cut == 2


def test_a_release_in_memory_holds_nothing_of_the_table_but_noisy_counts():
    tree = hr.Tree([fixed_axis("geo", 3, 50)])
    kinds = [np.arange(0, 150, 3), np.arange(0, 150, 3)[::2]]
    pickled = []
    for leaves in kinds:
        values = np.full(len(leaves), 600 // len(leaves) * 1000)
        counts = hr.Counts.from_leaves(tree, (leaves.astype(np.int32),), values)
        plan = plain_plan(tree, budget=hr.Rho("1/2"))
        release = in_memory(counts, plan, estimator=hr.Chebyshev(), bits=seeded_bits(1))
        pickled.append(pickle.dumps(release.content.nodes[0,]))
    assert pickled[0] == pickled[1], "the total alone is the same in both, and so is its node"


def test_whether_a_prior_is_the_table_decides_nothing():
    """A refusal would tell whoever has the prior that it is the table."""
    tree = hr.Tree([fixed_axis("geo", 3, 5)])
    rng = np.random.default_rng(1)
    counts = all_leaves(tree, rng.integers(1, 90, 15))
    plan = hr.cheapest(tree, target=500, prior=hr.Prior(counts, public=True))
    assert hr.release(counts, plan).plan.hash == plan.hash
