"""Rhode Island in the schema of the 2020 redistricting file, and its measurement by two plans.

The state's table, areas and facilities are in ``../shared/data/pl94_ri_2010`` beside the
repository. Levels of the spine are state, county, tract, block group and block.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from pathlib import Path

import numpy as np
import polars as pl

import hedgerow as hr
from hedgerow.arrays import Bool, Float64, Int32, Int64, Levels
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.support import Bounds, Support
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.examples.production_shares import noise_parameters, rho_of

LEVELS = ("state", "county", "tract", "block_group", "block")
KINDS = (
    "household",
    "correctional", "juvenile", "nursing", "other_institutional",
    "college", "military", "other_noninstitutional",
)  # fmt: skip
CLASS_START = (0, 1, 5, 8)
"""Where households, institutional and non-institutional kinds begin, and the end."""
AGES, ORIGINS = ("minor", "adult"), ("no", "yes")
ALONE = ("white", "black", "aian", "asian", "nhpi", "other")
RACES = tuple("+".join(races) for k in range(1, 7) for races in combinations(ALONE, k))
GROUPS = ("hispanic", *ALONE, "two or more")
"""Hispanics of any race, then all others by race: the eight groups that the file is read by."""

STATE_RHO = rho_of(several=False)
"""ρ of all levels but the nation's, whose share is unused (Bureau's production code)."""

CELLS = list(product(range(8), range(2), range(2), range(63)))
"""Kind, voting age, Hispanic origin and race of all 2,016 cells."""
LEVELS_OF = {
    "inst": (0, 1),
    "hhgq": (0, 2),
    "votingage": (1, 1),
    "hispanic": (2, 1),
    "cenrace": (3, 1),
}
"""The place of each attribute in a key, and its level: hhgq has classes above its kinds."""
CHAIN = ((2, 0, 0, 0), (2, 0, 1, 0), (2, 0, 1, 1), (2, 1, 1, 1))
"""The Bureau's rounding: kinds, × Hispanic origin, × race, × voting age."""


def production_uses() -> list[tuple[Fraction, int]]:
    """σ² and number of uses of all that the production measured, the nation's level included.

    A record that is replaced moves two counts of a cuboid by one: two uses of each.
    """
    return [(sigma2, 2) for sigma2 in noise_parameters().values()]


def production_sigma2() -> dict[Levels, Fraction]:
    """The noise parameter of every cuboid that the production measured in a state."""
    return {
        (LEVELS.index(level), *marginal_of(query)): sigma2
        for (level, query), sigma2 in noise_parameters().items()
        if level in LEVELS
    }


def marginal_of(query: str) -> tuple[int, int, int, int]:
    """Levels of hhgq (total, classes, kinds), voting age, Hispanic origin and race."""
    levels = [0, 0, 0, 0]
    for word in query.split(" × "):
        if word != "total":
            place, level = LEVELS_OF[word]
            levels[place] = level
    return levels[0], levels[1], levels[2], levels[3]


@dataclass(frozen=True, eq=False)
class Attributes:
    """The detail cells of all groups (kinds of quarters), in the order that a plan refines them.

    Attributes:
        tree: of the attribute levels down to the kinds.
        kind, age, origin, race, group: int32 (cells): the place in the lists above.
        allowed: bool (cells): False for minors in nursing homes.
    """

    tree: AxisShape
    kind: Int32
    age: Int32
    origin: Int32
    race: Int32
    allowed: Bool

    @classmethod
    def crossed(cls) -> "Attributes":
        """Kinds in three classes, and in each kind age × origin × race: as production measured."""
        tree = AxisShape.of([np.array([0, 3]), np.array(CLASS_START)])
        return cls.of(tree, CELLS)

    @classmethod
    def nested(cls) -> "Attributes":
        """Kinds, in each voting age, in each eight groups, in each all cells; no nursing minors."""
        kept = [c for c in CELLS if c[:2] != (KINDS.index("nursing"), 0)]
        kept.sort(key=lambda c: (*c[:2], group_of(*c[2:]), *c[2:]))
        return cls.of(AxisShape.of([np.array([0, 8])]), kept)

    @staticmethod
    def refined() -> tuple[AxisShape, Bool]:
        """The axis of `nested` with its cells that are 0 by rule, and which of its leaves are."""
        cells = sorted(
            (kind, age, group_of(origin, race), origin, race) for kind, age, origin, race in CELLS
        )
        starts, nodes = list[Int64](), list[tuple[int, ...]]([()])
        for k in (1, 2, 3, 5):
            finer = sorted({cell[:k] for cell in cells})
            above = positions(nodes, [cell[: len(nodes[0])] for cell in finer])
            starts.append(np.concatenate(([0], np.cumsum(np.bincount(above)))))
            nodes = finer
        nursing = KINDS.index("nursing")
        return AxisShape.of(starts), np.array([cell[:2] == (nursing, 0) for cell in cells])

    @classmethod
    def of(cls, tree: AxisShape, cells: list[tuple[int, int, int, int]]) -> "Attributes":
        """Number the cells."""
        kind, age, origin, race = np.array(cells, dtype=np.int32).T
        nursing = kind == KINDS.index("nursing")
        return cls(tree, kind, age, origin, race, ~(nursing & (age == 0)))

    @cached_property
    def group(self) -> Int32:
        """Which of the eight groups: int32 (cells)."""
        each = zip(self.origin.tolist(), self.race.tolist(), strict=True)
        return np.array([group_of(*pair) for pair in each], dtype=np.int32)

    @property
    def widths(self) -> Int64:
        """Cells of each kind."""
        return np.bincount(self.kind, minlength=len(KINDS))

    def number(self) -> Int32:
        """The cell of each (kind, age, origin, race): int32 (8, 2, 2, 63), -1 for none."""
        table = np.full((8, 2, 2, 63), -1, dtype=np.int32)
        table[self.kind, self.age, self.origin, self.race] = np.arange(len(self.kind))
        return table


def positions(nodes: list[tuple[int, ...]], wanted: list[tuple[int, ...]]) -> Int64:
    """The place of each node that is wanted."""
    number = {node: i for i, node in enumerate(nodes)}
    return np.array([number[node] for node in wanted])


def group_of(origin: int, race: int) -> int:
    """The place in `GROUPS`; races alone are the first of `RACES`."""
    return 0 if origin else 1 + min(race, len(ALONE))


@dataclass(frozen=True)
class State:
    """A state: who lives where, and what is public.

    Attributes:
        spine: state, county, tract, block group, block.
        block: int64 (rows): the block of each row of the table.
        cell: int64 (4, rows): kind, voting age, origin and race.
        people: int64 (rows).
        places: int64 (facilities): the block of each pair of a block and a kind.
        kinds: int64 (facilities).
        facilities: int64 (facilities): how many, each with a person at least but for households.
    """

    spine: AxisShape
    block: Int64
    cell: Int64
    people: Int64
    places: Int64
    kinds: Int64
    facilities: Int64

    @classmethod
    def read(cls, folder: Path) -> "State":
        """Read the three files."""
        areas = pl.read_parquet(folder / "areas.parquet").sort(LEVELS)
        sizes = [areas.n_unique(LEVELS[: k + 1]) for k in range(len(LEVELS))]
        starts = []
        for k in range(1, len(LEVELS)):
            children = areas.unique(LEVELS[: k + 1]).sort(LEVELS[: k + 1])
            count = children.group_by(LEVELS[:k], maintain_order=True).len()["len"]
            starts.append(np.concatenate(([0], np.cumsum(count.to_numpy(), dtype=np.int64))))
        assert sizes[0] == 1
        number = {code: i for i, code in enumerate(areas["block"])}
        table = pl.read_parquet(folder / "table.parquet")
        names = zip(
            ("hhgq", "votingage", "hispanic", "cenrace"),
            (KINDS, AGES, ORIGINS, RACES), strict=True,
        )  # fmt: skip
        cell = [numbered(table[column], list(values)) for column, values in names]
        public = pl.read_parquet(folder / "facilities.parquet")
        return cls(
            AxisShape.of(starts),
            numbered(table["block"], list(number)),
            np.array(cell),
            table["count"].cast(pl.Int64).to_numpy(),
            numbered(public["block"], list(number)),
            numbered(public["hhgq"], list(KINDS)),
            public["facilities"].cast(pl.Int64).to_numpy(),
        )

    @property
    def total(self) -> int:
        """People."""
        return int(self.people.sum())

    @property
    def has(self) -> tuple[Int64, Int64]:
        """The blocks and the kinds that they may have."""
        return self.places, self.kinds

    @property
    def bounds(self) -> list[Bounds]:
        """A person at least in each facility but for households."""
        at_least = self.kinds != KINDS.index("household")
        places, kinds, least = (x[at_least] for x in (self.places, self.kinds, self.facilities))
        return [(len(LEVELS) - 1, places, kinds, least, np.full_like(least, 1 << 53))]

    def support(self, attributes: Attributes) -> Support:
        """Who may live where."""
        return Support.of(self.spine, attributes.tree, attributes.widths, self.has, self.bounds)

    def detail(self, support: Support, attributes: Attributes) -> dict[int, Int64]:
        """The true counts of every level: detail layout."""
        number = attributes.number()[tuple(self.cell)]
        within = number - support.offset[self.cell[0]]
        assert (number >= 0).all()
        tables = {}
        for level in range(len(LEVELS)):
            node = self.spine.ancestors(len(LEVELS) - 1, level)[self.block]
            key = row_keys(support, level)
            row = np.searchsorted(key, node * len(KINDS) + self.cell[0])
            table = np.zeros(int(support.cell[level][-1]), dtype=np.int64)
            np.add.at(table, support.cell[level][row] + within, self.people)
            tables[level] = table
        return tables


def row_keys(support: Support, level: int) -> Int64:
    """Node · 8 + kind of every row of a level, ascending."""
    count = np.diff(support.start[level])
    return np.repeat(np.arange(len(count)), count) * len(KINDS) + support.group[level]


def numbered(column: pl.Series, names: list[str]) -> Int64:
    """The place of each word in a list."""
    keys = pl.DataFrame({"name": names, "number": np.arange(len(names))})
    found = (
        column.rename("name").to_frame().join(keys, on="name", how="left", maintain_order="left")
    )
    return found["number"].to_numpy()


@dataclass(frozen=True)
class Production:
    """What the production measured, as the Bureau's way needs it.

    Attributes:
        support: who may live where.
        attributes: crossed.
        sigma2: of every cuboid.
    """

    support: Support
    attributes: Attributes
    sigma2: Mapping[Levels, Fraction]

    @cached_property
    def measured(self) -> dict[Levels, float]:
        """Noise variances."""
        return {key: float(value) for key, value in self.sigma2.items()}

    def cells(self, key: Levels) -> Cells:
        """The cells of a marginal."""
        level, coarse, age, origin, race = key
        here, sizes = self.attributes, (2 if age else 1, 2 if origin else 1, 63 if race else 1)
        place = np.zeros_like(here.kind)
        for used, size, value in zip(
            key[2:], sizes, (here.age, here.origin, here.race), strict=True
        ):
            place = place * size + (value if used else 0)
        width = np.full(self.support.tree.sizes[coarse], np.prod(sizes), dtype=np.int64)
        return Cells(self.support, level, coarse, width, place.astype(np.int32))


def noisy_tables(
    cells: Mapping[Levels, Cells],
    sigma2: Mapping[Levels, Fraction],
    truth: Mapping[int, Int64],
    seed: int,
) -> dict[Levels, Float64]:
    """The measurements of a run: exact discrete Gaussian noise from bits that all can draw."""
    bits, tables = seeded_bits(seed), {}
    for key, layout in cells.items():
        nodes = range(layout.support.spine.sizes[key[0]])
        true = layout.sums(truth[key[0]], nodes)
        noise = np.zeros(len(true), dtype=np.int64)
        hr.DiscreteGaussian(sigma2[key]).draw(bits.stream(*key), 0, noise)
        tables[key] = (true + noise).astype(np.float64)
    return tables
