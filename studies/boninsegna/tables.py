"""The tables of Boninsegna & Silvestri: the six synthetic ones exactly, Italy as far as known.

The synthetic ones are drawn as the authors' published program draws them
(github.com/aidaLabDEI/TDA_hierarchical, ``preprocess_data``), so they are the paper's own tables,
number for number (Table 1). Of Italy, public data give all depths of the paper's tree down to pairs
of provinces, and `hedgerow.examples` a synthetic country with the sizes of its municipalities.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Int64
from studies.tables import ENDS, pairs_of, synthetic_country, trips_between

SEED = 42
PARETO = 3
LARGEST_FLOW = 1000
FILLED = {"complete": 1.0, "dense": 1 - 0.5, "sparse": 1 - 0.99}
BINARY, RANDOM = "binary", "random"


@dataclass(frozen=True, slots=True)
class Table:
    """Counts under a name.

    Attributes:
        name: such as ``binary sparse``.
        counts: over its destination tree.
    """

    name: str
    counts: hr.Counts

    @property
    def depth(self) -> int:
        """T."""
        return self.counts.tree.depth


def synthetic_tables() -> list[Table]:
    """8 binary levels, and 4 levels of 2 to 10 children: complete, half filled, 1 % filled."""
    areas = {BINARY: binary_areas(8), RANDOM: random_areas(4, 10)}
    return [
        Table(f"{shape} {name}", flows(destination_tree(listed), share))
        for (shape, listed), (name, share) in product(areas.items(), FILLED.items())
    ]


def binary_areas(levels: int) -> pl.DataFrame:
    """All paths of a binary tree, one column a level."""
    return areas_of([*product(range(2), repeat=levels)])


def random_areas(levels: int, most: int) -> pl.DataFrame:
    """The paths of a tree whose families have 2 to ``most`` areas, from the authors' seeds.

    An area has the seed of its parent plus its place in the family; the seed alone says how many
    areas it is divided into.
    """
    paths: list[tuple[int, ...]] = [()]
    for _ in range(levels):
        paths = [
            (*path, child)
            for path in paths
            for child in range(random.Random(SEED + sum(path)).randint(2, most))  # noqa: S311
        ]
    return areas_of(paths)


def areas_of(paths: Sequence[tuple[int, ...]]) -> pl.DataFrame:
    """Codes that sort as the paths do, one column a level."""
    codes = [["".join(f"{c:02d}" for c in p[:k]) for k in range(1, len(p) + 1)] for p in paths]
    names = [f"level{k}" for k in range(1, len(paths[0]) + 1)]
    return pl.DataFrame(codes, schema=names, orient="row")


def destination_tree(areas: pl.DataFrame) -> hr.Tree:
    """Pairs of areas; destinations are refined first at each level."""
    return pairs_of(areas, areas.columns, ENDS)


def flows(tree: hr.Tree, share: float) -> hr.Counts:
    """Pareto flows, scaled to 1 … 1,000 and rounded down, on a share of all pairs."""
    filled = int(tree.leaves * share)
    pairs = np.array(random.Random(SEED).sample(range(tree.leaves), filled))  # noqa: S311
    drawn = np.random.RandomState(SEED).pareto(PARETO, filled)
    values: Int64 = (1 + drawn / drawn.max() * (LARGEST_FLOW - 1)).astype(np.int64)
    origin, destination = np.divmod(pairs, tree.axes[0].leaves)
    return hr.Counts.from_leaves(
        tree, (origin.astype(np.int32), destination.astype(np.int32)), values
    )


def italian_provinces(data: Path) -> Table:
    """The ISTAT matrix of 2011 between provinces: the paper's table at depths 1 to 4 of its 6."""
    return Table("Italy", trips_between(data / "od_italy_province_2011", ["region", "province"]))


def synthetic_municipalities() -> Table:
    """28,805,440 synthetic trips on 500,000 of the pairs of 8,092 municipalities, T = 6."""
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        tree = synthetic_country(directory)
        trips = hr.Counts.from_frame(tree, directory / "trips.parquet", count="trips")
    return Table("synthetic country", trips)
