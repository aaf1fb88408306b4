"""What a plan decides for cuboids that are estimated together: a cube's, or those that are named.

In the estimate room's terms: levels of only children are left out there, and `Joint.levels`
translates. Nothing here is confidential.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from math import sqrt

import numpy as np

from hedgerow.arrays import CellNumbers, Codes, CuboidList, Float64, Levels, OfCuboids, OtherCuboids
from hedgerow.estimate.cube.shape import CubeShape, is_within, join
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.workload.observed import Variances
from hedgerow.estimate.workload.product import Reduced
from hedgerow.limits import MOST_VARIANCES
from hedgerow.plan.cuboids import All, Measured
from hedgerow.plan.design import (
    BEST,
    PUBLIC,
    CarriedNoise,
    Design,
    kept_in_jobs,
    refuse_apart,
)
from hedgerow.plan.spine import Spine
from hedgerow.tables.tree import Tree

NOT_BEST = "unbiased linear estimates (not the best ones)"
"""Of estimates under noise whose variances are no product over the axes, as it is narrow or a total
costs half, or that each rest on some of the noisy counts."""

TARGETS = (
    " Of three axes or more whole counts keep their sums along the first two axes of a cuboid "
    "exactly and along the others nearly: within 0.03 records (RMS) on dense tables, and 1 to 2 "
    "where a third of the cells is 0, beside an RMSE of 10 to 13, as measured."
)
"""Of settled sums that are kept nearly, as a table of three axes may not admit all."""


@dataclass(frozen=True, eq=False)
class Joint(Design):
    """Cuboids that are estimated together.

    Levels of only children are left out: here a cuboid has the numbers that `shape` gives its
    levels, but for the questions of every `Design`.

    Attributes:
        shape: how the levels nest.
        noise: for each measured cuboid the variance of one noisy count, records².
        public: the finest cuboid whose counts are public, if any.
        whole: the cuboids of which every cell is measured, public or a sum of such; of the others,
            survivors.
        own_levels: for each cuboid of the workload the levels of the tree's axes, coarse to fine.
    """

    key = "cuboids"
    shape: CubeShape
    noise: OfCuboids
    public: Levels | None
    whole: frozenset[Levels]
    own_levels: OtherCuboids

    @property
    def cuboids(self) -> CuboidList:
        """The cuboids of the workload, each after all that are coarser."""
        return tuple(self.own_levels)

    def levels(self, cuboid: Levels) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""
        return self.own_levels.get(cuboid) or self.shape.first(cuboid)

    @abstractmethod
    def variances_of(self, cuboid: Levels) -> Variances:
        """Return the variances of what tells most of a cuboid all of whose cells are measured."""

    @abstractmethod
    def wide_mean(self, cuboid: Levels) -> float:
        """Return the mean variance if noise were wide (records²)."""

    @property
    @abstractmethod
    def is_best(self) -> bool:
        """Whether estimates are those of all noisy counts with the variances of the noise."""

    def size(self, cuboid: Levels) -> int:
        """Return how many cells of a cuboid are measured where it is measured whole."""
        return self.shape.cells(cuboid)

    def codes_of(self, cuboid: Levels) -> CellNumbers:
        """Return the cells of such a cuboid that may hold records, row by row, and their places."""
        codes = np.indices(self.shape.shape(cuboid), dtype=np.int32)
        return tuple(code.ravel() for code in codes), np.arange(self.shape.cells(cuboid))

    def is_public(self, cuboid: Levels) -> bool:
        """Return whether the counts of a cuboid are public."""
        return is_within(cuboid, self.public)

    @abstractmethod
    def is_known(self, cuboid: Levels) -> bool:
        """Return whether a cuboid is public or a sum of cells that are all measured."""

    def reduced(self, cuboid: Levels) -> Reduced | None:
        """Return how a cuboid is estimated without what is finer; None where that is not known."""
        del cuboid
        return None

    @abstractmethod
    def steps(self, cuboid: Levels) -> Steps | None:
        """Return what bounds the coefficients of estimates; None where none is above 1 - h."""

    @property
    def steps_of_sums(self) -> Steps:
        """What bounds the coefficients of the estimates of any sums of cells."""
        return Steps(min(self.noise.values()), is_exact=True)

    def mean(self, cuboid: Levels) -> float:
        """Return the mean variance of a cuboid's estimates (records²)."""
        if self.is_public(cuboid):
            return 0.0
        if self.is_known(cuboid):
            return self.variances_of(cuboid).mean(cuboid)
        return self.noise[cuboid]

    def variances_at(self, cuboid: Levels, codes: Codes) -> Float64:
        """Return the variances of listed estimates: float64 (cells), records²."""
        if self.is_public(cuboid):
            return np.zeros(len(codes[0]))
        if self.is_known(cuboid):
            return self.variances_of(cuboid).at(cuboid, codes)
        return np.full(len(codes[0]), self.noise[cuboid])

    # --- jobs -----------------------------------------------------------------------------------

    @property
    def spine(self) -> Spine | None:
        """How cuboids can go along the first axis, whether they do (`along`) or not."""
        return self.along

    @property
    def cut_at(self) -> Levels | None:
        """The cut of the spine, beside all that is finest; None where it is uncut."""
        if self.along is None or not self.along.jobs:
            return None
        return (self.along.level_of_cut, *self.tree.finest[1:])

    @property
    def kept(self) -> str:
        """What is held in memory at once, and in how many jobs, in a sentence."""
        if self.along is None or not self.along.jobs:
            return super().kept
        level = self.along.level_of_cut
        below = self.tree.name_of((level, *self.shape.total[1:])) if level else "the total"
        return kept_in_jobs(len(self.along.jobs), below, "one for each core")

    # --- the questions of every design ----------------------------------------------------------

    def settler(self, levels: Levels) -> str:
        """Return which way makes the counts of a cuboid whole: families, blocks or fit."""
        if self.along is None:
            return super().settler(levels)
        return self.along.model.settler(self.shape.given(levels))

    def mean_variance(self, levels: Levels) -> float:
        """Return the mean variance of a cuboid's estimates (records²)."""
        return self.mean(self.shape.given(levels))

    def largest_variance(self, levels: Levels) -> float:
        """Return the largest variance of a cuboid's estimates, or a bound of it (records²)."""
        cuboid = self.shape.given(levels)
        if self.is_public(cuboid):
            return 0.0
        if cuboid in self.whole:
            return self.variances_of(cuboid).largest(cuboid)
        return self.noise[cuboid]

    def nominal_variance(self, levels: Levels) -> float:
        """Return the mean variance if noise were wide: it scales with 1/ρ, or 1/ε² (records²)."""
        return self.wide_mean(self.shape.given(levels))

    def cell_variances(self, levels: Levels) -> Float64 | None:
        """Return the variance of each cell's estimate; of survivors the one that all have."""
        cuboid = self.shape.given(levels)
        if cuboid not in self.whole:
            return np.array([self.noise[cuboid]])
        return self.each(cuboid) if self.size(cuboid) <= MOST_VARIANCES else None

    @abstractmethod
    def each(self, cuboid: Levels) -> Float64:
        """Return the variances of all cells of a cuboid that is measured whole."""

    def error_of(self, levels: Levels) -> float | None:
        """Return the root of the mean variance of a cuboid's estimates, in the workload or not."""
        if not self.is_answerable(levels):
            return None
        return sqrt(self.mean(self.shape.given(levels)))

    def is_raw(self, levels: Levels) -> bool:
        """Return whether the estimates of a measured cuboid are its own noisy counts alone."""
        cuboid = self.shape.given(levels)
        own = self.noise.get(cuboid)
        return own is not None and self.mean(cuboid) >= own * (1 - 1e-9)

    def carried_noise(self, levels: Levels) -> CarriedNoise:
        """Return the noise that the estimates of a cuboid carry.

        The estimates of one that is measured whole combine its own noisy counts with others; those
        of survivors are their noisy counts.
        """
        cuboid = self.shape.given(levels)
        if self.is_public(cuboid):
            return PUBLIC
        own = self.plan.noise.get(self.levels(cuboid))
        if own is None or levels not in self.plan.by_levels:
            return self.noise_of_sums(self.steps(cuboid))
        raw = cuboid not in self.whole
        return CarriedNoise(own, raw, steps=None if raw else self.steps(cuboid))

    def possible_cells(self, levels: Levels) -> int:
        """Return how many cells of a cuboid are measured where it is measured whole."""
        return self.size(self.shape.given(levels))

    def is_answerable(self, levels: Levels) -> bool:
        """Return whether a cuboid is public or a sum of cells that are all measured."""
        axes = zip(self.shape.axes, levels, strict=True)
        within = all(level < len(axis.given) for axis, level in axes)
        return within and self.is_known(self.shape.given(levels))

    def check_estimator(self, estimator: Estimator) -> None:
        """Raise an EstimateError but for Euclidean projection."""
        if not isinstance(estimator, Euclidean):
            refuse_apart(self.plan.workload.noun, estimator)

    @property
    def claim(self) -> str:
        """What is claimed of least squares over all noisy counts."""
        survivors = (
            "best linear unbiased estimates of the cuboids that are measured whole; of others the "
            "noisy counts of the cells that were measured, each unbiased, as it is"
        )
        claim = BEST if isinstance(self.plan.measure, All) else survivors
        return claim if self.is_best else claim.replace("best linear unbiased estimates", NOT_BEST)

    def laid_out(self, levels: Levels, alive: Mapping[Levels, int]) -> int:
        """Return how many cells of a cuboid are measured: all, or those below margins."""
        cuboid = self.shape.given(levels)
        cells = self.size(cuboid)
        if cuboid in self.whole:
            return cells
        given = {self.shape.given(k): n for k, n in alive.items()}
        return min(cells, self.below_margins(cuboid, given))

    @abstractmethod
    def below_margins(self, cuboid: Levels, alive: Mapping[Levels, int]) -> int:
        """Return how many cells lie below so many positive ones of the cuboids above them."""

    @property
    def noised(self) -> str:
        """How the text of a page that says which counts have noise of their own is called."""
        measured = [k for k, what in self.plan.by_levels.items() if isinstance(what, Measured)]
        whole = [levels in self.plan.whole for levels in measured]
        which = "whole" if all(whole) else "both" if any(whole) else "below"
        return f"{which}_{self.plan.workload.name}"

    @property
    def bytes_read(self) -> int:
        """The memory that noisy counts take beside what is held."""
        return 0

    @property
    def memory_words(self) -> str:
        """What is held in memory at once and what to do about it, as a clause for users."""
        held = (
            "the cuboids that are measured whole" if self.cut_at is None else "a job for each core"
        )
        return (
            f"{held}, are held in memory at once; measure survivors "
            f'(measure = "survivors"), {self.plan.workload.fewer}'
        )


def shape_of_tree(tree: Tree, cuboids: Iterable[Levels] | None = None) -> CubeShape:
    """Return how the levels of a tree's axes nest: all of them, or down to the finest of cuboids'.

    So a workload's tables are as large as its cuboids, whatever the tree has below them.
    """
    starts = [[np.asarray(s, np.int64) for s in axis.child_start] for axis in tree.axes]
    whole = CubeShape.of(starts)
    return whole if cuboids is None else whole.down_to(reduce(join, map(whole.given, cuboids)))


def own_levels(shape: CubeShape, cuboids: Iterable[Levels]) -> OtherCuboids:
    """Return for each cuboid, without levels of only children, the first of those that it is."""
    first: dict[Levels, Levels] = {}
    for levels in cuboids:
        first.setdefault(shape.given(levels), levels)
    return first
