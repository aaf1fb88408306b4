"""Noise on every possible leaf, the whole budget at once (VanillaGauss of Boninsegna et al.)."""

import polars as pl

import hedgerow as hr
from hedgerow.arrays import Int64
from hedgerow.evaluate.baselines import check_leaves, leaf_mechanism, noisy_leaves
from hedgerow.evaluate.method import sum_to_cuboid
from hedgerow.evaluate.metrics import errors_of_cells, with_depths
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from studies.tables import every_count

MOST_CELLS = 1 << 31


def leaf_noise(counts: hr.Counts, bits: Bits, *, budget: Budget, neighbours: Neighbours) -> Int64:
    """Return noisy counts of all leaves: int64, one dimension an axis; they may be negative."""
    check_leaves(counts.tree, MOST_CELLS)
    noise = leaf_mechanism(
        counts.tree, budget=budget, neighbours=neighbours, mechanism=DiscreteGaussian
    )
    return noisy_leaves(counts, bits, noise)


def error_of_leaves(counts: hr.Counts, leaves: Int64) -> pl.DataFrame:
    """Return the frame of `error_by_cuboid` for counts of every possible leaf, summed to depths."""
    tree, rows = counts.tree, []
    truth = every_count(counts, tree.chain[-1])
    for levels in tree.chain:
        given, true = (sum_to_cuboid(tree, table, levels).ravel() for table in (leaves, truth))
        rows.append(errors_of_cells(tree, levels, given, true))
    return with_depths(tree, tree.chain, rows)
