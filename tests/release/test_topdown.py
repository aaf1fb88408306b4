"""The pass: what it releases, and with which noise."""

from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.plan import chain as planned_chain
from hedgerow.release.descent import block
from hedgerow.release.descent.jobs import LocalEngine, LocalJobs, Progress
from hedgerow.release.descent.source import Drawn
from hedgerow.release.execution import in_memory
from hedgerow.release.passes import pass_of
from tests.estimate.oracles import algorithm_4
from tests.made import fixed_axis, plain_plan, random_counts, random_tree

RHO = hr.Rho("1/2")


def simulate(counts, plan, seed=0, estimator=None):
    estimator = hr.Chebyshev() if estimator is None else estimator
    return in_memory(counts, plan, estimator=estimator, bits=seeded_bits(seed))


def truth_of(counts):
    """For each depth a dictionary from node codes to true counts."""
    tree = counts.tree
    tables = []
    for depth in range(tree.depth + 1):
        codes, values = counts.roll_up(depth)
        tables.append(dict(zip(zip(*codes, strict=True), values.tolist(), strict=True)))
    return tables


def inftda(counts, plan, bits, cut=None):
    """Algorithms 1 and 3 of Boninsegna & Silvestri, line by line, on dictionaries.

    The noise of a family is the next stretch of its job's stream at that depth. A tree that is cut
    at a depth has one job a node there, whose place are the levels and then the codes of the node.
    """
    tree, truth = plan.tree, truth_of(counts)
    root = (0,) * len(tree.axes)
    first = max(plan.public_depth, 0)
    if plan.public_depth < 0:
        noise = np.empty(1, dtype=np.int64)
        plan.depths[0].mechanism.draw(bits.stream(*root), 0, noise)
        released = [{root: max(0, counts.total + int(noise[0]))}]
    else:
        released = truth[: first + 1]
    for depth in range(first + 1, tree.depth + 1):
        axis, level = tree.steps[depth - 1]
        start = tree.axes[axis].child_start[level - 1]
        here, cell = {}, {}
        for parent, total in released[-1].items():
            if total == 0:
                continue
            place = tree.cuboid(depth)
            if cut is not None and depth > cut:
                place = (*place, *ancestor(tree, parent, depth - 1, cut))
            children = range(start[parent[axis]], start[parent[axis] + 1])
            nodes = [(*parent[:axis], child, *parent[axis + 1 :]) for child in children]
            noise = np.empty(len(nodes), dtype=np.int64)
            mechanism = plan.depths[depth].mechanism
            mechanism.draw(bits.stream(*place), cell.get(place, 0), noise)
            cell[place] = cell.get(place, 0) + len(nodes)
            noisy = [truth[depth].get(n, 0) + int(z) for n, z in zip(nodes, noise, strict=True)]
            estimate = algorithm_4(noisy, total)
            here |= {n: y for n, y in zip(nodes, estimate, strict=True) if y > 0}
        released.append(here)
    return released


def ancestor(tree, node, depth, upper):
    """The codes of the ancestor at a coarser depth, one parent after the other."""
    node = list(node)
    for axis, level in reversed(tree.steps[upper:depth]):
        child_start = tree.axes[axis].child_start[level - 1].tolist()
        node[axis] = max(j for j, start in enumerate(child_start[:-1]) if start <= node[axis])
    return tuple(node)


def as_table(nodes):
    return dict(zip(zip(*nodes.codes, strict=True), nodes.counts.tolist(), strict=True))


PLANS = {
    "replace": {"neighbours": hr.Replace(), "budget": RHO},
    "add-remove": {"neighbours": hr.AddRemove(2), "budget": RHO},
    "at most m": {"neighbours": hr.Replace(2, exactly=False), "budget": RHO},
    "laplace": {
        "neighbours": hr.Replace(),
        "budget": hr.Epsilon(2),
        "mechanism": hr.DiscreteLaplace,
    },
}


class Falling:
    """Shares that differ at every depth: 1, 2, 3, … parts."""

    name = "falling"
    prior = None

    def shares(self, problem):
        parts = range(1, len(problem.depths) + 1)
        return tuple(Fraction(part, sum(parts)) for part in parts)


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
@pytest.mark.parametrize("seed", range(4))
def test_the_pass_is_the_papers_algorithm(monkeypatch, seed, cut, kind):
    """With every depth's own noise, and every job's own stream where the tree is cut."""
    if cut:
        cut_everything(monkeypatch, chunk=5, jobs=6)
    rng = np.random.default_rng(seed)
    axes = [fixed_axis(f"a{i}", 2, 3, 2, columns=[f"a{i}_{k}" for k in "xyz"]) for i in range(2)]
    tree = hr.Tree(axes)
    counts = random_counts(rng, tree)
    plan = plain_plan(tree, allocation=Falling(), **PLANS[kind])
    assert len({what.mechanism for what in plan.depths[1:]}) == tree.depth
    released = simulate(counts, plan, seed).content.nodes
    at = plan.design.cut if cut else None
    assert at is None or 0 not in tree.cuboid(at), "jobs differ in both axes"
    expected = inftda(counts, plan, seeded_bits(seed), at)
    for depth in range(tree.depth + 1):
        positive = {n: y for n, y in expected[depth].items() if y > 0}
        found = as_table(released[tree.cuboid(depth)])
        assert found == positive
        assert list(found) == list(positive), "tree order"


def test_a_measured_total_is_not_released_as_it_is():
    rng = np.random.default_rng(1)
    tree = random_tree(rng)
    counts = random_counts(rng, tree)
    measured = plain_plan(tree, budget=hr.Rho("1/100000"), neighbours=hr.AddRemove())
    totals = {simulate(counts, measured, s).level(depth=0)["count"].sum() for s in range(5)}
    assert len(totals) == 5


def test_a_tree_of_a_single_cell_is_released():
    tree = hr.Tree([fixed_axis("geo", 1)])
    counts = hr.Counts.from_leaves(tree, (np.zeros(1, np.int32),), np.array([1000]))
    release = simulate(counts, plain_plan(tree, budget=RHO))
    assert release.level(depth=1)["count"].item() == release.level(depth=0)["count"].item()
    assert abs(release.level(depth=1)["count"].item() - 1000) < 50


def cut_everything(monkeypatch, chunk=7, jobs=3):
    monkeypatch.setattr(planned_chain, "UNCUT_LEAVES", 0)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", jobs)
    monkeypatch.setattr(block, "CHUNK_CELLS", chunk)


def test_the_cut_depends_on_public_structure_alone(monkeypatch):
    cut_everything(monkeypatch)
    tree = random_tree(np.random.default_rng(4))
    plan = plain_plan(tree, budget=RHO)
    assert tree.nodes(plan.design.cut) >= 3 > tree.nodes(plan.design.cut - 1)


class Twice:
    """An engine of one's own, which does every job again: as a cluster may."""

    def run(self, jobs, work):
        for job in jobs:
            work(job)
            yield work(job)


@pytest.mark.parametrize("seed", range(5))
def test_chunks_workers_and_engines_change_nothing(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, axes=2, depth=3)
    counts = random_counts(rng, tree)
    plan = plain_plan(tree, budget=RHO)

    def nodes(engine):
        source = Drawn(counts, plan, seeded_bits(seed))
        run = pass_of(plan, source, hr.Chebyshev(), runner=LocalJobs(engine))
        return [
            (found.levels, found.nodes.counts.tolist(), np.asarray(found.noisy).tolist())
            for found in run.results()
        ]

    cut_everything(monkeypatch, chunk=1 << 20)
    whole = nodes(LocalEngine(1))
    monkeypatch.setattr(block, "CHUNK_CELLS", 3)
    for engine in (LocalEngine(1), LocalEngine(4), Twice()):
        assert nodes(engine) == whole
    assert len(whole) > tree.depth + 1, "the tree was cut"


def test_two_releases_of_one_table_differ():
    rng = np.random.default_rng(6)
    tree = random_tree(rng)
    counts = random_counts(rng, tree)
    plan = plain_plan(tree, budget=hr.Rho("1/1000"))
    first, second = hr.release(counts, plan), hr.release(counts, plan)
    assert not first.level(depth=tree.depth).equals(second.level(depth=tree.depth))


def test_memory_grows_with_what_is_there_and_not_with_what_could_be():
    """10¹¹ possible leaves; only children of survivors are ever laid out."""
    axes = [fixed_axis(n, 20, 20, 20, 40, columns=[f"{n}{k}" for k in range(4)]) for n in "od"]
    tree = hr.Tree(axes)
    assert tree.leaves == 320_000**2 > 10**11
    rng = np.random.default_rng(7)
    codes = tuple(rng.integers(0, 320_000, 500).astype(np.int32) for _ in "od")
    counts = hr.Counts.from_leaves(tree, codes, np.full(500, 10_000))
    plan = plain_plan(tree, budget=hr.Rho(10), neighbours=hr.Replace())
    measured = []
    source = Drawn(counts, plan, seeded_bits(0))
    progress = Progress(on_cells=measured.append)
    run = pass_of(plan, source, hr.Chebyshev(), progress)
    results = list(run.results())
    leaves = sum(len(found.nodes) for found in results if found.levels == tree.cuboid(tree.depth))
    assert leaves < 2_000
    assert sum(measured) < 1_000_000


def test_sizes_of_all_shapes_survive(monkeypatch):
    """One child, many children, one family with nearly everything; cut or not."""
    for sizes, cut in product([(1, 1, 1), (1, 9), (9, 1), (300,), (2,) * 9], [False, True]):
        if cut:
            cut_everything(monkeypatch)
        tree = hr.Tree([fixed_axis("geo", *sizes)])
        counts = random_counts(np.random.default_rng(8), tree)
        release = simulate(counts, plain_plan(tree, budget=RHO))
        assert (
            release.level(depth=tree.depth)["count"].sum() == release.level(depth=0)["count"].sum()
        )


def test_a_plan_that_protects_a_unit_needs_a_table_that_bounds_it():
    tree = hr.Tree([fixed_axis("geo", 2, 2)])
    frame = pl.DataFrame({"level1": ["000000000"], "level2": ["000000000"], "person": ["a"]})
    plan = plain_plan(tree, budget=RHO, neighbours=hr.AddRemove(1, unit="person"))
    with pytest.raises(hr.PlanError, match="contributions were not bounded"):
        hr.release(hr.Counts.from_frame(tree, frame), plan)
    hr.release(hr.Counts.from_frame(tree, frame, unit="person"), plan)


@pytest.mark.parametrize("estimator", ["euclidean", hr.Euclidean], ids=["name", "class"])
def test_a_name_or_a_class_of_an_estimator_is_refused_before_noise_is_drawn(estimator, tmp_path):
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    counts = random_counts(np.random.default_rng(0), tree)
    plan = plain_plan(tree, budget=RHO)
    with pytest.raises(hr.EstimateError, match=r"an estimator must be Chebyshev\(\)"):
        hr.release(counts, plan, estimator=estimator, directory=tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_what_is_no_table_or_no_plan_is_refused_without_its_contents():
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    counts = random_counts(np.random.default_rng(0), tree)
    plan = plain_plan(tree, budget=RHO)
    with pytest.raises(hr.PlanError, match=r"must be Counts\.from_frame\(tree, …\), got Plan$"):
        hr.release(plan, counts)
    with pytest.raises(hr.PlanError, match=r"got DataFrame$"):
        hr.release(pl.DataFrame({"secret": [1]}), plan)
    with pytest.raises(hr.PlanError, match=r"must be make_plan\(…\), got Counts$"):
        hr.release(counts, counts)


def test_a_level_or_a_number_in_place_of_a_confidence_is_refused():
    tree = hr.Tree([fixed_axis("geo", 3, 4)])
    counts = random_counts(np.random.default_rng(0), tree)
    released = simulate(counts, plain_plan(tree, budget=RHO))
    with pytest.raises(hr.ReleaseError, match=r"got 'level1'; levels are named by their axes"):
        released.cuboid("level1")
    with pytest.raises(hr.ReleaseError, match=r"a confidence is Confidence\(0\.99\), got 0\.9"):
        released.level(depth=1, confidence=0.9)
