"""Counts of a census and of trips, from data frames and from the real tables."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Array, Codes, Int64, Levels
from hedgerow.evaluate.metrics import true_cells
from hedgerow.examples.commuting import write_commuting
from studies.page import read

ENDS = ("origin", "destination")
BLOCKS = "census_us_block/wa_2010.parquet"
"""The blocks of Washington in 2010."""
TRIPS = {
    "od_uk_lad_2011": "nuts1 nuts2 lad",
    "od_italy_province_2011": "area region province",
    "od_sydney_tz_2001": "sd ssd sla tz",
    "od_sardinia_municipality_2001": "province municipality",
    "od_us_county_acs_2011_2015": "state county",
}
"""The real tables of trips, and the levels of their areas, coarsest first."""


def dense(tree: hr.Tree, levels: Levels, codes: Codes, values: Array) -> Array:
    """Values of all cells of a cuboid, 0 where none is given: one dimension an axis."""
    table = np.zeros(tree.sizes(levels), dtype=values.dtype)
    table[codes] = values
    return table


def every_count(counts: hr.Counts, levels: Levels) -> Int64:
    """The true counts of all cells of a cuboid: one dimension an axis."""
    return dense(counts.tree, levels, *true_cells(counts, levels))


def released_counts(release: hr.Release) -> list[Int64]:
    """The released counts of all cells of each depth: one dimension an axis."""
    tree, nodes = release.plan.tree, release.content.nodes
    return [dense(tree, levels, nodes[levels].codes, nodes[levels].counts) for levels in tree.chain]


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


def synthetic_country(folder: Path) -> hr.Tree:
    """Write the synthetic country's ``trips.parquet``; returns the pairs of its municipalities."""
    write_commuting(folder, "national")
    areas = pl.read_parquet(folder / "municipalities.parquet")
    return pairs_of(areas, areas.columns)


def trips_between(folder: Path, levels: Sequence[str] = ()) -> hr.Counts:
    """The trips of one of `TRIPS`, by all levels of its ``geo.parquet`` or by some."""
    areas = read(folder / "geo.parquet")
    tree = pairs_of(areas, levels or TRIPS[folder.name].split())
    return hr.Counts.from_frame(tree, folder / "od.parquet", count="count")
