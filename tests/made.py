"""Small public tables made for tests."""

from typing import Any

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree


def random_axis(rng, name, depth=3, widest=4):
    """An axis with 1 to ``widest`` children a node."""
    paths = [()]
    for _ in range(depth):
        paths = [
            (*path, f"{path[-1] if path else name}.{child}")
            for path in paths
            for child in range(rng.integers(1, widest + 1))
        ]
    levels = [f"level{k}" for k in range(1, depth + 1)]
    frame = pl.DataFrame(paths, schema=levels, orient="row")
    return Axis.from_frame(name, frame, levels, columns=[f"{name}_{level}" for level in levels])


def random_tree(rng, axes=2, depth=3, widest=4):
    """A tree over alternating random axes called a0, a1, ..."""
    return Tree([random_axis(rng, f"a{i}", depth, widest) for i in range(axes)])


def random_counts(rng, tree, filled=0.5, mean=20):
    """Heavy-tailed counts on about this share of the leaves (at most a few thousand)."""
    leaves = max(1, int(min(tree.leaves, 5000) * filled))
    codes = tuple(
        rng.integers(0, axis.size(axis.depth), leaves).astype(np.int32) for axis in tree.axes
    )
    values = np.ceil(rng.pareto(1.2, leaves) * mean / 4).astype(np.int64)
    return Counts.from_leaves(tree, codes, values)


def all_leaves(tree, values):
    """Counts on every leaf, all axes row by row."""
    codes = np.indices([axis.size(axis.depth) for axis in tree.axes]).reshape(len(tree.axes), -1)
    values = np.asarray(values).ravel().astype(np.int64)
    return Counts.from_leaves(tree, tuple(codes.astype(np.int32)), values)


def fixed_axis(name, *sizes, columns=None, attribute=False):
    """An axis whose nodes of level k have ``sizes[k]`` children each; codes are padded numbers."""
    levels = [f"level{k}" for k in range(1, len(sizes) + 1)]
    leaves = np.arange(int(np.prod(sizes)))
    below = np.cumprod((1, *sizes[:0:-1]))[::-1]
    frame = pl.DataFrame(
        {
            level: pl.Series(leaves // per).cast(pl.String).str.zfill(9)
            for level, per in zip(levels, below, strict=True)
        }
    )
    return Axis.from_frame(name, frame, levels, columns=columns, attribute=attribute)


def fixed_tree(refine=None, /, **sizes):
    """A tree of such axes, by their names, whose columns are called by axis and level."""
    columns = {name: [f"{name}{k}" for k in range(len(each))] for name, each in sizes.items()}
    return Tree([fixed_axis(n, *sizes[n], columns=columns[n]) for n in sizes], refine)


def named_axis(name, *sizes):
    """An axis of such families, whose levels, columns and codes begin with its name."""
    leaves, below, codes = int(np.prod(sizes)), 1, {}
    for level, size in reversed([*enumerate(sizes, start=1)]):
        codes[f"{name}{level}"] = [f"{name}{level}-{i // below:03d}" for i in range(leaves)]
        below *= size
    return Axis.from_frame(name, codes, [*codes][::-1])


def named_tree(**sizes):
    """A tree of such axes, by their names."""
    return Tree([named_axis(name, *each) for name, each in sizes.items()])


def problem_of(tree, budget=None, *, neighbours=None, measure=None, workload=None, mechanism=None):
    """What an allocation is asked: of a budget of 1 ρ for all cells along a chain, unless told."""
    budget = budget or hr.Rho(1)
    kind = hr.DiscreteLaplace if isinstance(budget, hr.Epsilon) else hr.DiscreteGaussian
    return Problem.of(
        tree, workload or hr.Chain(), neighbours or hr.AddRemove(), mechanism or kind, budget,
        measure or hr.All(), (),
    )  # fmt: skip


def by_code(tree, table, **options):
    """The counts of a table by the deepest code of the tree's only axis."""
    counts = Counts.from_frame(tree, table, **options)
    codes = tree.axes[0].labels[-1].gather(counts.codes[0])
    return dict(zip(codes, counts.values.tolist(), strict=True))


def plain_plan(tree: hr.Tree, **options: Any) -> hr.Plan:
    """A plan of equal shares, along a chain of survivors, unless told otherwise."""
    given = {name: option for name, option in options.items() if option is not None}
    along_a_chain = isinstance(given.get("workload", hr.Chain()), hr.Chain)
    usual = {"measure": hr.Survivors()} if along_a_chain else {}
    return hr.make_plan(tree, **{"allocation": hr.Uniform(), **usual, **given})
