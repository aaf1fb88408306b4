"""The tables of Ko's studies: state, tracts, and blocks or block groups; allocations over them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Float64, Int64
from hedgerow.noise.cell_error import LaplaceError
from hedgerow.plan.allocation.programs import LevelCost, PriorCells, least_budgets, least_error
from studies.page import read
from studies.tables import BLOCKS, census_of, every_count

WYOMING_TRACTS, WYOMING_BLOCKS = 128, 20_975
LAPLACE = LaplaceError()
LARGEST = 1e6
STATES = {"Wyoming": "56", "New Mexico": "35", "Delaware": "10"}


@dataclass(frozen=True)
class Case:
    """One hierarchy of three levels: the counts to plan with and the true ones.

    Attributes:
        name: for pages.
        leaf: what the leaves are.
        prior: for each level the counts to plan with.
        truth: for each level the true counts, in tree order.
        counts: the true ones.
    """

    name: str
    leaf: str
    prior: tuple[Float64, ...]
    truth: tuple[Float64, ...]
    counts: hr.Counts

    @classmethod
    def alone(cls, name: str, blocks: pl.DataFrame) -> "Case":
        """Blocks of one census: prior and truth."""
        truth, counts = _by_level(blocks)
        return cls(name, "block", truth, truth, counts)

    @property
    def tract_start(self) -> Int64:
        """Where the leaves of each tract begin, and the end: int64 (tracts + 1)."""
        return self.counts.tree.axes[0].child_start[1]

    @property
    def nodes(self) -> list[int]:
        """How many nodes each level has."""
        return [len(counts) for counts in self.truth]

    @property
    def levels(self) -> tuple[str, str, str]:
        """The names of the levels."""
        return ("state", "tract", self.leaf)

    def planned(self, importance: Sequence[float] = (1.0, 1.0, 1.0)) -> list[LevelCost]:
        """The error of each level by the prior."""
        counted = (np.unique(counts, return_counts=True) for counts in self.prior)
        return [
            PriorCells(LAPLACE, values, np.asarray(times * w, dtype=np.float64), 1.0)
            for (values, times), w in zip(counted, importance, strict=True)
        ]

    def optimum(self, budget: float, importance: Sequence[float] = (1.0, 1.0, 1.0)) -> Float64:
        """Program (6)."""
        return least_error(self.planned(importance), budget).budgets

    def cheapest(self, target: float) -> Float64:
        """Program (7)."""
        return least_budgets(self.planned(), target, LARGEST)

    def by_level(self, budgets: Float64) -> Float64:
        """Bias² and variance of each level, each count clipped at 0 and no more: (2, levels).

        Closed forms (Ko et al., Propositions 1 and 2), summed over the true counts.
        """
        found = [
            ((LAPLACE.bias(b, n) ** 2).sum(), LAPLACE.variance(b, n).sum())
            for b, n in zip(budgets, self.truth, strict=True)
        ]
        return np.array(found).T

    def clipped(self, epsilon: float) -> Float64:
        """Bias² and variance of uniform shares and of the optimum, and their ratios: (6)."""
        shares = uniform(epsilon), self.optimum(epsilon)
        both = [self.by_level(each).sum(axis=1) for each in shares]
        return np.array([*both, both[0] / both[1]]).ravel()


def uniform(budget: float) -> Float64:
    """Equal parts."""
    return np.full(3, budget / 3)


def wyoming_shaped() -> Case:
    """128 tracts of Washington with about as many populated blocks as Wyoming in the paper.

    The microdata file of the paper lists people, so blocks without any are not in it: 20,975 of
    Wyoming's 86,000 are. Here Washington's populated blocks of 2010 stand in. Its tracts are put in
    the order of people a block, and of all runs of 128 the one with the nearest number of blocks is
    taken. There is no second census by block: it is prior and truth.
    """
    every = _blocks().filter(pl.col("count") > 0)
    tracts = every.group_by("tract").agg(blocks=pl.len(), people=pl.col("count").mean())
    tracts = tracts.sort("people", "tract")
    until = np.append(0, np.cumsum(tracts["blocks"].to_numpy()))
    blocks = until[WYOMING_TRACTS:] - until[:-WYOMING_TRACTS]
    first = int(np.abs(blocks - WYOMING_BLOCKS).argmin())
    chosen = every.join(tracts[first : first + WYOMING_TRACTS], on="tract", how="semi")
    return Case.alone("128 tracts of Washington, populated blocks", chosen)


def washington() -> Case:
    """All blocks of Washington in 2010, 39 % of them empty: prior and truth."""
    return Case.alone("Washington, all blocks", _blocks())


def block_groups(state: str) -> Case:
    """A state's block groups: 2010 to plan with, 2020 as truth.

    Where 2020 has more nodes than 2010 the prior is filled up with empty ones.
    """
    earlier, _ = _by_level(_groups(state, 2010))
    truth, counts = _by_level(_groups(state, 2020))
    prior = tuple(
        np.append(old[old > 0], np.zeros(max(0, len(new) - int((old > 0).sum()))))
        for old, new in zip(earlier, truth, strict=True)
    )
    return Case(f"{state}, block groups", "block group", prior, truth, counts)


def every_case() -> list[Case]:
    """All of these, Wyoming's stand-in first."""
    return [wyoming_shaped(), *(block_groups(state) for state in STATES), washington()]


def _blocks() -> pl.DataFrame:
    table = read(BLOCKS)
    return table.select("tract", leaf="block", count=pl.col("pop").cast(pl.Int64))


def _groups(state: str, year: int) -> pl.DataFrame:
    table = read(f"census_us_block_group/bg_{year}.parquet")
    table = table.filter(pl.col("state") == STATES[state])
    tract = pl.concat_str("county", "tract")
    leaf = pl.concat_str("county", "tract", "block_group")
    return table.select(tract.alias("tract"), leaf=leaf, count=pl.col("population").cast(pl.Int64))


def _by_level(leaves: pl.DataFrame) -> tuple[tuple[Float64, ...], hr.Counts]:
    """The counts of each level in tree order."""
    counts = census_of(leaves, ["tract", "leaf"], "count")
    levels = counts.tree.chain
    return tuple(every_count(counts, k).astype(np.float64) for k in levels), counts
