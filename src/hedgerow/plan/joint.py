"""What a plan decides for cuboids that are estimated together: a cube's, or those that are named.

In the estimate room's terms: levels of only children are left out there, and `Joint.levels`
translates. Nothing here is confidential.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Codes, Float64, Int64, Levels
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shape import CubeShape, is_within, join
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.intervals import Steps
from hedgerow.tables.tree import Tree

Tables = dict[Levels, Float64]


class Variances(Protocol):
    """The variances of estimates that rest on the same noisy counts (records²)."""

    def mean(self, cuboid: Levels) -> float:
        """Return the mean over the cells of a cuboid."""

    def largest(self, cuboid: Levels) -> float:
        """Return the largest one, or a bound of it."""

    def of_cells(self, cuboid: Levels) -> Float64:
        """Return those of all cells: float64 (cells along each axis)."""

    def at(self, cuboid: Levels, codes: Sequence[NDArray[np.integer]]) -> Float64:
        """Return those of listed cells: float64 (cells)."""

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products."""


@dataclass(frozen=True, eq=False)
class Joint(ABC):
    """Cuboids that are estimated together.

    Attributes:
        shape: how the levels nest.
        noise: for each measured cuboid the variance of one noisy count, records².
        public: the finest cuboid whose counts are public, if any.
        whole: the cuboids of which every cell is measured, public or a sum of such; of the others,
            survivors.
    """

    shape: CubeShape
    noise: Mapping[Levels, float]
    public: Levels | None
    whole: frozenset[Levels]

    @property
    @abstractmethod
    def cuboids(self) -> tuple[Levels, ...]:
        """The cuboids of the workload, each after all that are coarser."""

    @abstractmethod
    def levels(self, cuboid: Levels) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""

    @abstractmethod
    def variances_of(self, cuboid: Levels) -> Variances:
        """Return the variances of what tells most of a cuboid all of whose cells are measured."""

    @abstractmethod
    def nominal_variance(self, cuboid: Levels) -> float:
        """Return the mean variance if noise were wide: it scales with 1/ρ, or 1/ε² (records²)."""

    @abstractmethod
    def is_raw(self, cuboid: Levels) -> bool:
        """Return whether the estimates of a cuboid are its own noisy counts alone."""

    @abstractmethod
    def rehearse(self) -> None:
        """Raise a PlanError unless estimates can be had, whatever the counts.

        To be called before anything is charged.
        """

    @property
    @abstractmethod
    def words(self) -> str:
        """How cuboids are estimated and what their variances are, in a sentence for users."""

    @property
    @abstractmethod
    def has_targets(self) -> bool:
        """Whether some settled sums are kept nearly, as a table of three axes may not admit all."""

    @property
    def vague(self) -> tuple[Levels, ...]:
        """The unmeasured cuboids that survivors add up to, though these tell more of them."""
        return ()

    def possible_cells(self, cuboid: Levels) -> int:
        """Return how many cells of a cuboid are measured where it is measured whole."""
        return self.shape.cells(cuboid)

    def open_cells(self, cuboid: Levels) -> int:
        """Return how many cells of a cuboid may hold records: all that no public fact rules out."""
        return self.possible_cells(cuboid)

    def is_public(self, cuboid: Levels) -> bool:
        """Return whether the counts of a cuboid are public."""
        return is_within(cuboid, self.public)

    def is_answerable(self, cuboid: Levels) -> bool:
        """Return whether a cuboid is public or a sum of cells that are all measured."""
        return cuboid in self.whole

    def error_of(self, levels: Levels) -> float | None:
        """Return the root of the mean variance of a cuboid's estimates, in the workload or not.

        Returns:
            Records; None where no table whose cells are all measured sums to it.
        """
        axes = zip(self.shape.axes, levels, strict=True)
        if any(level >= len(axis.given) for axis, level in axes):
            return None
        cuboid = self.shape.given(levels)
        if self.is_public(cuboid):
            return 0.0
        return self.variances_of(cuboid).mean(cuboid) ** 0.5 if self.is_answerable(cuboid) else None

    def steps(self, cuboid: Levels) -> Steps | None:
        """Return what bounds the coefficients of estimates; None where none is above 1 - h."""
        del cuboid
        return None

    def mean_variance(self, cuboid: Levels) -> float:
        """Return the mean variance of a cuboid's estimates (records²)."""
        if self.is_public(cuboid):
            return 0.0
        if cuboid in self.whole:
            return self.variances_of(cuboid).mean(cuboid)
        return self.noise[cuboid]

    def largest_variance(self, cuboid: Levels) -> float:
        """Return the largest variance of a cuboid's estimates, or a bound of it (records²)."""
        if self.is_public(cuboid):
            return 0.0
        if cuboid in self.whole:
            return self.variances_of(cuboid).largest(cuboid)
        return self.noise[cuboid]

    def variances_at(self, cuboid: Levels, codes: Codes) -> Float64:
        """Return the variances of listed estimates: float64 (cells), records²."""
        if self.is_public(cuboid):
            return np.zeros(len(codes[0]))
        if self.is_answerable(cuboid):
            return self.variances_of(cuboid).at(cuboid, codes)
        return np.full(len(codes[0]), self.noise[cuboid])


class JointTables(Joint):
    """Cuboids that are estimated together as dense tables, held in memory."""

    @property
    @abstractmethod
    def margins(self) -> Mapping[Levels, tuple[Levels, ...]]:
        """For each cuboid of which survivors are measured, the one or two that it lies below."""

    @abstractmethod
    def estimates(
        self, tables: Mapping[Levels, Float64], wanted: Iterable[Levels] | None = None
    ) -> Tables:
        """Return the unbiased estimates of all cuboids whose cells are all measured.

        Args:
            tables: of each of them that is measured its noisy counts, and of those that are public
                the true ones: float64 (cells along each axis).
            wanted: of which cuboids, each of them answerable; of all that are settled unless given.

        Returns:
            For each of them, and others that are settled on the way, float64 (cells along each
            axis), records.
        """

    @abstractmethod
    def settled(
        self, tables: Tables, estimates: Mapping[Levels, Float64], exact: Mapping[Levels, Int64]
    ) -> dict[Levels, Int64]:
        """Return whole counts of the same cuboids, each the sum of every finer one.

        Args:
            tables: as for `estimates`; they may be overwritten.
            estimates: the estimates.
            exact: the true counts of public cuboids.
        """


def as_tables(joint: Joint) -> JointTables:
    """Return what is held in memory as tables.

    Raises:
        PlanError: the cuboids go along a spine.
    """
    if not isinstance(joint, JointTables):
        raise PlanError("the cuboids of this plan go along a spine and are not held as tables")
    return joint


def shape_of_tree(tree: Tree, cuboids: Iterable[Levels] | None = None) -> CubeShape:
    """Return how the levels of a tree's axes nest: all of them, or down to the finest of cuboids'.

    So a workload's tables are as large as its cuboids, whatever the tree has below them.
    """
    starts = [[np.asarray(s, np.int64) for s in axis.child_start] for axis in tree.axes]
    whole = CubeShape.of(starts)
    return whole if cuboids is None else whole.down_to(reduce(join, map(whole.given, cuboids)))
