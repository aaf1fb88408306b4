"""Small tables of pairs, plans of cubes and of named cuboids over them, and their releases."""

import numpy as np

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.execution import in_memory
from tests.made import fixed_axis, plain_plan, random_counts

BUDGET = hr.EpsilonDelta("1", "1e-8")
MEASURES = [hr.All(), hr.Survivors()]


def named_axis(name, *sizes):
    return fixed_axis(name, *sizes, columns=[f"{name}_{k}" for k in range(1, len(sizes) + 1)])


PAIRS = hr.Tree([named_axis("o", 3, 4), named_axis("d", 2, 5)])
SINGLE = hr.Tree([named_axis("o", 2, 1, 2), named_axis("d", 3, 1)])
"""Levels of only children: o.level2 repeats o.level1, d.level2 repeats d.level1."""
LEAVES = "o.level2 × d.level2"
MARGINS = ["o.level2", "d.level2"]
OVERLAP = ["o.level2 × d.level1", "o.level1 × d.level2"]
WORKLOADS = {
    "margins alone": hr.Cuboids(MARGINS),
    "margins that overlap": hr.Cuboids(OVERLAP),
    "a chain with margins": hr.Cuboids(MARGINS, chain=True),
    "margins and leaves": hr.Cuboids([*MARGINS, LEAVES]),
    "overlap and leaves": hr.Cuboids([*OVERLAP, LEAVES]),
}


def named(workload, tree=PAIRS, **options):
    options = {"budget": BUDGET, "neighbours": hr.Replace(), "measure": hr.All(), **options}
    return plain_plan(tree, workload=workload, **options)


def cube(tree=PAIRS, **options):
    return named(hr.Cube(), tree, **options)


def released(counts, plan, seed=1):
    return in_memory(counts, plan, estimator=hr.Euclidean(), bits=seeded_bits(seed))


def table_of(seed=5, tree=PAIRS, **options):
    return random_counts(np.random.default_rng(seed), tree, **options)


def dense(tree, levels, codes, values):
    """The table of listed cells: int64 (cells along each axis)."""
    found = np.zeros(tree.sizes(levels), dtype=np.int64)
    np.add.at(found, tuple(codes), values)
    return found


def true_table(counts, levels):
    tree = counts.tree
    ancestors = [axis.ancestors(k) for axis, k in zip(tree.axes, levels, strict=True)]
    codes = [up[code] for up, code in zip(ancestors, counts.codes, strict=True)]
    return dense(tree, levels, codes, counts.values)


def tables(release):
    """Each cuboid's released counts as a dense table."""
    nodes = release.content.nodes
    return {k: dense(release.plan.tree, k, n.codes, n.counts) for k, n in nodes.items()}


def summed(tree, table, finer, coarser):
    """The sums of a dense table by a coarser cuboid."""
    for axis, (k, j) in enumerate(zip(finer, coarser, strict=True)):
        start = tree.axes[axis].descendant_start(j, k)
        table = np.add.reduceat(table, start[:-1], axis=axis)
    return table
