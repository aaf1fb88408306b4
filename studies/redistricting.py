"""Rhode Island in the schema of the 2020 redistricting file, by both release files of the example.

The state's table, areas and facilities are in ``../shared/data/pl94_ri_2010`` beside the
repository. Levels of the spine are state, county, tract, block group and block.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Int64, Tables
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.support import Support
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.examples.redistricting import write_redistricting
from hedgerow.examples.redistricting_nation import AGES, CENRACE, HISPANIC, KINDS, RACES
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.release.descent.layouts import leaves_between
from hedgerow.spec.release_spec import ReleaseSpec

LEVELS = ("state", "county", "tract", "block_group", "block")
CODES = ("hhgq", "votingage", "hispanic", "cenrace")
GROUPS = ("hispanic", *RACES, "two or more")
"""Hispanics of any race, then all others by race: the eight groups that the file is read by."""


def write_files(folder: Path, state: Path) -> None:
    """Write the release files of the example, over the real state's table and public lists."""
    write_redistricting(folder, size="small")
    for name, other in (("people", "table"), ("areas", "areas")):
        pl.read_parquet(state / f"{other}.parquet").write_parquet(folder / f"{name}.parquet")
    least = pl.when(pl.col("hhgq") == "household").then(0).otherwise(pl.col("facilities"))
    facilities = pl.read_parquet(state / "facilities.parquet").with_columns(people_at_least=least)
    facilities.write_parquet(folder / "facilities.parquet")


@dataclass(frozen=True, eq=False)
class Table:
    """A table of people under a release file, in the detail layout of its spine.

    Attributes:
        plan: of the release file.
        counts: the truth.
    """

    plan: hr.Plan
    counts: hr.Counts

    @classmethod
    def read(cls, file: Path) -> "Table":
        """Plan a release file, and read its table."""
        spec = ReleaseSpec(file)
        plan = spec.plan(spec.tree())
        return cls(plan, spec.table.counts(plan.tree))

    @property
    def spine(self) -> PlannedSpine:
        """What the plan decides along its spine."""
        return cast("PlannedSpine", self.plan.design)

    @property
    def support(self) -> Support:
        """Who may live where."""
        return self.spine.model.support

    @cached_property
    def cells(self) -> pl.DataFrame:
        """The codes of each detail cell: kind of quarters, voting age, Hispanic origin, race."""
        axes = self.plan.tree.axes[1:]
        leaves = np.unravel_index(self.spine.leaves, [axis.leaves for axis in axes])
        columns = list[pl.Series]()
        for axis, leaf in zip(axes, leaves, strict=True):
            codes, number = axis.parts([code for code in CODES if code in axis.columns])
            columns += codes[number[leaf]].get_columns()
        return pl.DataFrame(columns).select(CODES)

    @cached_property
    def labels(self) -> dict[str, tuple[int, Int64]]:
        """For each query its number of cells, and that of each detail cell; -1 for none."""
        kind, age, origin, race = (
            self.cells[code].replace_strict(words, range(len(words))).to_numpy()
            for code, words in zip(CODES, (KINDS, AGES, HISPANIC, CENRACE), strict=True)
        )
        alone = np.minimum(race, len(RACES))
        return {
            "total": (1, np.zeros_like(kind)),
            "voting age": (1, age - 1),
            "hispanic": (1, origin - 1),
            "race": (len(RACES) + 1, alone),
            "group": (len(GROUPS), np.where(origin == 1, 0, 1 + alone)),
            "kind": (len(KINDS), kind),
        }

    def detail(self, level: int) -> tuple[Cells, range]:
        """The layout of a level's detail, and the nodes of the level."""
        beside = (axis.depth for axis in self.spine.shape.axes[1:])
        return self.spine.cells((level, *beside)), range(self.support.spine.sizes[level])

    def located(self, level: int, places: Int64) -> tuple[Int64, Int64]:
        """The nodes and the detail cells of places of a level's table."""
        layout, nodes = self.detail(level)
        return layout.located(places, nodes)

    @cached_property
    def truth(self) -> dict[int, Int64]:
        """The true counts of every level."""
        leaves = leaves_between(self.counts, self.spine.detail_of, 0, self.support.spine.sizes[-1])
        tables = dict[int, Int64]()
        for level in range(len(LEVELS)):
            (layout, nodes), above = self.detail(level), self.spine.ancestors(level)
            tables[level] = np.zeros(layout.count(nodes), dtype=np.int64)
            layout.add(tables[level], nodes, above[leaves.nodes], leaves.cells, leaves.values)
        return tables

    def noisy(self, seed: int) -> Tables:
        """The measurements of a run: exact noise from bits that all can draw."""
        tables = Tables()
        for cuboid in self.spine.noise:
            levels, nodes = self.spine.levels(cuboid), range(self.support.spine.sizes[cuboid[0]])
            true = self.spine.cells(cuboid).sums(self.truth[cuboid[0]], nodes)
            drawn = np.empty(len(true), dtype=np.int64)
            self.plan.noise[levels].draw(seeded_bits(seed).stream(*levels), 0, drawn)
            tables[cuboid] = (true + drawn).astype(np.float64)
        return tables

    def inhabited(self, level: int) -> Int64:
        """The nodes of a level where somebody may live."""
        return np.flatnonzero(np.diff(self.support.start[level]))

    @cached_property
    def true_sums(self) -> dict[int, dict[str, Int64]]:
        """What each query truly adds up to, by level."""
        return {level: self.sums(level, table) for level, table in self.truth.items()}

    def sums(self, level: int, table: Int64) -> dict[str, Int64]:
        """What each query adds up to: (nodes where somebody may live, cells of the query)."""
        at = np.flatnonzero(table)
        node, cell = self.located(level, at)
        nodes, found = self.support.spine.sizes[level], dict[str, Int64]()
        for query, (size, label) in self.labels.items():
            keep = label[cell] >= 0
            keys = node[keep] * size + label[cell][keep]
            sums = np.bincount(keys, table[at][keep], nodes * size).astype(np.int64)
            found[query] = sums.reshape(nodes, size)[self.inhabited(level)]
        return found

    def check(self, counts: Mapping[int, Int64]) -> None:
        """Raise unless counts add up to the public total and keep all that is public.

        Raises:
            ValueError: a negative count, a person where nobody may be, a bound or a sum not kept.
        """
        here = self.support
        if counts[0].sum() != self.counts.total:
            raise ValueError("the total is not the public one")
        for level, table in counts.items():
            node, cell = (
                each.astype(np.int32) for each in self.located(level, np.arange(len(table)))
            )
            rows = np.add.reduceat(table, here.cell[level][:-1])
            if table.min() < 0 or (rows < here.low[level]).any() or (rows > here.high[level]).any():
                raise ValueError(f"a bound is not kept at level {level}")
            if table[~self.spine.is_free[cell]].any():
                raise ValueError(f"there is somebody in a cell that is 0 by rule at level {level}")
            if level > 0:
                parent = here.spine.parents(level).astype(np.int32)[node]
                (layout, nodes), sums = self.detail(level - 1), np.zeros_like(counts[level - 1])
                layout.add(sums, nodes, parent, cell, table)
                if (sums != counts[level - 1]).any():
                    raise ValueError(f"counts of level {level} do not add up to those above")
