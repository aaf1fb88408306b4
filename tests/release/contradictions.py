"""Releases with counts that their own measurements contradict, or tell little of."""

import numpy as np

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import all_leaves, fixed_axis, plain_plan

GEOGRAPHY_FIRST = ["geo.level1", "geo.level2", "group.level1"]


def counts_of(values):
    """A table of areas (20 a district) by groups."""
    areas, groups = values.shape
    tree = hr.Tree(
        [fixed_axis("geo", areas // 20, 20), fixed_axis("group", groups, columns=["group"])],
        refine=GEOGRAPHY_FIRST,
    )
    return all_leaves(tree, values.ravel())


def made(counts, seed=0, **options):
    options = {"budget": hr.Rho("1/20"), "measure": hr.All(), "allocation": hr.Uniform()} | options
    plan = plain_plan(counts.tree, neighbours=hr.Replace(), **options)
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))


def small_group():
    """The table of the issue: a group of 300 people in 1,000 areas of 5 groups of thousands."""
    rng = np.random.default_rng(14)
    values = rng.integers(800, 4000, (1000, 6))
    values[:, 0] = 0
    values[rng.choice(1000, 300, replace=False), 0] = 1
    return values


def uneven():
    """Towns are measured well, the regions above them badly, and towns must add up to regions."""
    tree = hr.Tree([fixed_axis("geo", 4, 3)])
    plan = hr.make_plan(
        tree, budget=hr.Rho("1/2"), neighbours=hr.Replace(),
        allocation=hr.Shares(["1/2000", "1999/2000"]), measure=hr.Survivors(),
    )  # fmt: skip
    counts = all_leaves(tree, np.arange(200, 1400, 100))
    return counts, in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(4))


def mostly_lost():
    """Survivors of flows to 60 places: two have many, and most others are released as 0."""
    axes = [fixed_axis(n, size, columns=[n]) for n, size in (("o", 4), ("d", 60))]
    flows = np.full((4, 60), 2)
    flows[:, :2] = 5000
    codes = np.indices(flows.shape).reshape(2, -1).astype(np.int32)
    counts = hr.Counts.from_leaves(hr.Tree(axes, ["d", "o"]), tuple(codes), flows.ravel())
    return made(counts, seed=1, budget=hr.Rho("1/200"), measure=hr.Survivors())
