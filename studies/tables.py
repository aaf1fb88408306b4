"""Counts of a census and of trips, from data frames and from the real tables."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Array, Codes, Int64, Levels
from hedgerow.evaluate.metrics import true_cells
from studies.page import read

ENDS = ("origin", "destination")


def dense(tree: hr.Tree, levels: Levels, codes: Codes, values: Array) -> Array:
    """Values of all cells of a cuboid, 0 where none is given: one dimension an axis."""
    table = np.zeros(tree.sizes(levels), dtype=values.dtype)
    table[codes] = values
    return table


def every_count(counts: hr.Counts, levels: Levels) -> Int64:
    """The true counts of all cells of a cuboid: one dimension an axis."""
    return dense(counts.tree, levels, *true_cells(counts, levels))


def leaves_of(release: hr.Release) -> Int64:
    """The released counts of all leaves: one dimension an axis."""
    finest = release.plan.levels[-1]
    nodes = release.content.nodes[finest]
    return dense(release.plan.tree, finest, nodes.codes, nodes.counts)


def census_of(frame: pl.DataFrame, levels: Sequence[str], count: str) -> hr.Counts:
    """A census whose own rows are the public list of areas."""
    tree = hr.Tree([hr.Axis.from_frame("geography", frame, levels)])
    return hr.Counts.from_frame(tree, frame.select(*levels, count), count=count)


def pairs_of(
    areas: pl.DataFrame, levels: Sequence[str], prefixes: Sequence[str] = ("o", "d")
) -> hr.Tree:
    """Pairs of areas; destinations are refined first at each level.

    Args:
        areas: the public list.
        levels: coarsest first.
        prefixes: of the columns of origins and of destinations in a table of trips.
    """
    axes = [
        hr.Axis.from_frame(end, areas, levels, columns=[f"{prefix}_{level}" for level in levels])
        for end, prefix in zip(ENDS, prefixes, strict=True)
    ]
    return hr.Tree(axes, refine=["destination", "origin"])


def trips_between(folder: Path, levels: Sequence[str]) -> hr.Counts:
    """The trips of a folder between the areas of its ``geo.parquet``."""
    areas = read(folder / "geo.parquet", f"the real tables are not at {folder.parent}")
    return hr.Counts.from_frame(pairs_of(areas, levels), folder / "od.parquet", count="count")
