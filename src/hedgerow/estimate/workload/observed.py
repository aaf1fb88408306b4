"""What is measured of a workload's cuboids, and what every way of estimating them offers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from hedgerow.arrays import ByCuboid, CuboidList, Float64, Integers, Levels, OfCuboids, Tables
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import CubeShape, is_within, is_within_any, maximal
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.workload.fold import AxisWeights


@dataclass(frozen=True, eq=False)
class Observed:
    """The cuboids that are measured whole, the variances of their noise, and what is public.

    Attributes:
        shape: how the levels nest.
        variances: of one noisy count of each measured cuboid, above 0, records².
        public: a cuboid whose true counts, and so those of all its coarsenings, are known.
    """

    shape: CubeShape
    variances: OfCuboids
    public: Levels | None = None

    def __post_init__(self) -> None:
        if not self.variances:
            raise EstimateError("a workload needs a cuboid that is measured")
        for cuboid, variance in self.variances.items():
            if not 0 < variance < np.inf:
                raise EstimateError(f"the variance of cuboid {cuboid} must be above 0 and finite")
            if self.is_public(cuboid):
                raise EstimateError(f"cuboid {cuboid} is public, so it is not measured")

    @cached_property
    def tables(self) -> CuboidList:
        """The measured cuboids that no other one refines, sorted."""
        return maximal(self.variances)

    @property
    def cuboids(self) -> CuboidList:
        """The cuboids of which anything is told: those that are measured, and the public one."""
        return (*self.variances, *([] if self.public is None else [self.public]))

    def is_public(self, cuboid: Levels) -> bool:
        """Return whether the true counts of a cuboid are known."""
        return is_within(cuboid, self.public)

    def is_answerable(self, cuboid: Levels) -> bool:
        """Return whether a cuboid is a sum of some table's cells."""
        return is_within_any(cuboid, self.tables)


class Variances(Protocol):
    """The variances of estimates that rest on the same noisy counts (records²).

    A cuboid here is any that is answerable: the sum of a table's cells.
    """

    def mean(self, cuboid: Levels) -> float:
        """Return the mean variance over all cells of a cuboid."""

    def largest(self, cuboid: Levels) -> float:
        """Return the largest variance of a cell of a cuboid, or a bound of it."""

    def at(self, cuboid: Levels, codes: Sequence[Integers]) -> Float64:
        """Return the variance of listed cells: float64 (cells).

        Args:
            cuboid: whose cells.
            codes: for each axis int (cells): the cell's node.
        """

    def covariance(self, first: Product, second: Product) -> float:
        """Return the covariance of two sums whose weights are products over axes.

        Raises:
            EstimateError: it is unknown.
        """


class Covariances(Variances, Protocol):
    """Those of tables that are held, of which every cell's can be listed."""

    def of_cells(self, cuboid: Levels) -> Float64:
        """Return the variance of each cell: float64 (cells along each axis)."""

    @property
    def has_covariances(self) -> bool:
        """Whether covariances of sums are known without iteration."""


class Solver(ABC):
    """Best linear unbiased estimates of all cuboids together, and their variances (records²).

    Attributes:
        observed: what is measured.
        is_exact: whether variances are exact; if not, they are upper bounds.
    """

    observed: Observed
    is_exact: bool

    @property
    def is_best(self) -> bool:
        """Whether each estimate is from all noisy counts, by the variances of their noise."""
        return True

    @property
    def bytes_held(self) -> int:
        """The memory that it takes beside the tables."""
        return 0

    @property
    @abstractmethod
    def words(self) -> str:
        """How it estimates, and what its variances are, in a sentence for users."""

    def rehearse(self) -> None:  # noqa: B027 - a closed form can always be had
        """Raise an EstimateError unless estimates can be had, whatever the counts.

        It may take as long as to make them, and is for the time before anything is measured.
        """

    @abstractmethod
    def estimates(self, tables: ByCuboid, wanted: Iterable[Levels]) -> Tables:
        """Return the estimates of the wanted cuboids: float64 (cells along each axis), records.

        Args:
            tables: of every measured cuboid its noisy counts, and of the public one its true
                counts: float64 (cells along each axis).
            wanted: of which cuboids.
        """

    def settling(self, tables: Tables, estimates: ByCuboid) -> tuple[ByCuboid, AxisWeights | None]:
        """Return what whole counts are settled near, and the weights: the estimates, alike.

        Args:
            tables: as for `estimates`; they are overwritten, or let go.
            estimates: the estimates.
        """
        tables.clear()
        return estimates, None

    @abstractmethod
    def variances_of(self, cuboid: Levels) -> Covariances:
        """Return the variances of the estimates of a cuboid, and of others from the same counts."""

    def steps(self, cuboid: Levels) -> Steps | None:
        """Return what bounds the coefficients of estimates; None where none is above 1 - h.

        That is proved where the cuboids are those of two chains (docs/proofs/coefficients.md,
        "Coefficients of an estimate").
        """
        observed = self.observed
        if are_two_chains({*observed.cuboids, cuboid}):
            return None if self.is_exact else Steps(0.0, is_exact=False)
        return Steps(min(observed.variances.values()), is_exact=self.is_exact)


def are_two_chains(cuboids: Iterable[Levels]) -> bool:
    """Return whether cuboids fall into two chains (or one), each of nested cuboids.

    By Dilworth's theorem they do if and only if of every three of them two nest.
    """
    return _are_two_chains(frozenset(cuboids))


@lru_cache(maxsize=1024)
def _are_two_chains(every: frozenset[Levels]) -> bool:
    apart = {
        one: {other for other in every if not (is_within(one, other) or is_within(other, one))}
        for one in every
    }
    return all(apart[one].isdisjoint(apart[other]) for one in every for other in apart[one])
