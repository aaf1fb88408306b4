"""How far sums off the tree's chain may leave their truth, foreseen from public facts.

Released counts are kept from falling below 0. Of one count that raises the expectation a little; a
sum over many of them adds it up, while the noise that it averages out grows more slowly. On the
chain this cannot happen: a count there is settled before the counts below it, which then add up to
it. A cuboid off the chain is a sum of counts of the first depth that refines it, and those that
lie in one of its cells belong to many families.

The *excess* of a cell that sums n counts, each estimated with variance V, is at most about

    n √V E max(0, Z) = n √(V / 2π)          (Z standard normal),

which a cell reaches whose true counts are all 0, beside siblings so large that they are never
cut off and take in all that it gains; truths above 0 gain less, as E max(0, T + e) - T falls with
T, and so do empty cells beside empty siblings, which share what their family's count leaves them.
What some cells gain others lose, as the total is kept. So this is the worst case over all tables;
`hedgerow.evaluate.forecast` simulates a public prior instead.
"""

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import polars as pl

from hedgerow.plan.describe import aligned
from hedgerow.plan.forecast import Planned, forecast
from hedgerow.tables.tree import Tree

SCHEMA = {"cuboid": pl.String, "cells": pl.Float64, "summands": pl.Float64, "of": pl.String,
          "excess": pl.Float64}  # fmt: skip
MOST_CUBOIDS = 4096

Levels = tuple[int, ...]


def sums_off_the_chain(plan: Planned, expected: pl.DataFrame | None = None) -> pl.DataFrame:
    """The cuboids off the chain by how far a count of theirs may exceed its truth, worst first.

    Args:
        plan: what is measured.
        expected: its `forecast`, if it is at hand.

    Returns:
        One row a cuboid: its name, ``cells`` (possible ones), ``summands`` (how many counts a cell
        sums at most), ``of`` (the depth they are of, by name), and the ``excess`` (records):
        *worst case over tables, approximate*, null where the error of the summands is not known.
        Cuboids whose summands are public are left out, as sums of exact counts are exact. Of trees
        with more than 4,096 cuboids those that refine one axis alone.
    """
    tree = plan.tree
    rmse = (forecast(plan) if expected is None else expected)["rmse"]
    rows = []
    for levels in off_the_chain(tree):
        depth = first_refining(tree, levels)
        if rmse[depth] == 0:
            continue
        summands = _most_below(tree, levels, tree.cuboid(depth))
        error = rmse[depth]
        excess = None if error is None else summands * error / math.sqrt(2 * math.pi)
        cells = math.prod(
            float(axis.size(level)) for axis, level in zip(tree.axes, levels, strict=True)
        )
        name = tree.name_of(levels)
        rows.append((name, cells, float(summands), tree.cuboid_name(depth), excess))
    found = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return found.sort("excess", descending=True, nulls_last=False, maintain_order=True)


def off_the_chain(tree: Tree) -> Iterator[Levels]:
    """The levels of all cuboids off the chain, or of a wide tree those that refine one axis."""
    chain = {tree.cuboid(t) for t in range(tree.depth + 1)}
    every = [range(axis.depth + 1) for axis in tree.axes]
    if math.prod(map(len, every)) <= MOST_CUBOIDS:
        found: Iterator[Levels] = product(*every)
    else:
        found = (
            tuple(level if i == a else 0 for i in range(len(every)))
            for a, levels in enumerate(every)
            for level in levels[1:]
        )
    return (levels for levels in found if levels not in chain)


def first_refining(tree: Tree, levels: Levels) -> int:
    """The first depth of which every node lies in one cell of the cuboid."""
    return next(
        t
        for t in range(tree.depth + 1)
        if all(k >= level for k, level in zip(tree.cuboid(t), levels, strict=True))
    )


def _most_below(tree: Tree, levels: Levels, deeper: Levels) -> int:
    """How many nodes of deeper levels one cell holds at most."""
    return math.prod(
        int(np.diff(axis.descendant_start(level, k)).max(initial=0))
        for axis, level, k in zip(tree.axes, levels, deeper, strict=True)
        if k > level
    )


HEADINGS = ("", "cuboid", "cells", "counts a cell", "of", "too high by up to")
MOST_SHOWN = 5


def sums_told(sums: pl.DataFrame, *, everything: bool) -> str:
    """The worst of `sums_off_the_chain` in words and as a table; nothing where there are none.

    Args:
        sums: of `sums_off_the_chain`.
        everything: whether all nodes are measured, so that sums have unbiased estimates.
    """
    if sums.is_empty():
        return ""
    rows = [
        ("", row["cuboid"], f"{row['cells']:,.0f}", f"{row['summands']:,.0f}", row["of"],
         "not known" if row["excess"] is None else f"{row['excess']:,.3g}"
         if row["excess"] < 1000 else f"{row['excess']:,.0f}")
        for row in sums.head(MOST_SHOWN).iter_rows(named=True)
    ]  # fmt: skip
    left = len(sums) - len(rows)
    more = f"\n{left:,} more; --json has them all." if left else ""
    way_out = (
        "A release shows an unbiased estimate beside each sum and flags what it contradicts."
        if everything
        else 'Of survivors such sums have no unbiased estimate; with measure = "all" they have.'
    )
    return (
        "Sums that are no depth of the tree add up counts that are each kept from falling below 0: "
        "too high where the true counts are 0, on average by up to about so many records (worst "
        "case over tables), and too low elsewhere, by as much altogether:\n\n"
        f"{aligned([HEADINGS, *rows])}{more}\n\n{way_out} Sums that matter should be depths: "
        "refine their levels first."
    )
