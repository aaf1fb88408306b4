"""What a plan decides of a chain: nested cuboids, released depth by depth from the root down.

*Where the tree is cut into jobs.* Small trees are one job. Others are cut at the first depth with
at least `MIN_JOBS` possible nodes below the public ones: jobs enough for any number of workers, and
few enough to be cheap. Below survivors that is a measured depth, as an unmeasured one belongs to
the block that follows it. Public facts alone decide it, so a resumed release has the same jobs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.arrays import Codes, Float64, Int64, Levels, float64, run_starts, run_sums
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError, PlanError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.families.sparse import Sparse
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.running_sums import Decoded
from hedgerow.estimate.tree.error import largest_variances, mean_variances
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.limits import MOST_AXES_OF_SHAPES, MOST_LEAVES_FORECAST
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import All, CuboidPlan, Measured, Public, Survivors, Unmeasured
from hedgerow.plan.design import (
    BEST,
    BYTES_AT_ONCE,
    PUBLIC,
    CarriedNoise,
    Design,
    Work,
    kept_in_jobs,
)
from hedgerow.tables.tree import Tree, nodes_along

if TYPE_CHECKING:  # a plan makes its design
    from hedgerow.plan.plan import Plan

UNCUT_LEAVES = 1 << 24
UNCUT_LEAVES_OF_ALL = 1 << 22
MIN_JOBS = 256

BYTES_A_CELL = 60
"""Noise, estimates, projection: measured on one family of 10⁷ leaves, 45 bytes a leaf."""
PART_OF_A_DEPTH = 1 << 22
"""Cells of a depth that are estimated at once, at most."""


@frozen
class Outline:
    """What a pass needs to know of a plan.

    Attributes:
        tree: the tree.
        public_depth: the deepest public depth, -1 if none is.
        measured: the measured depths.
        everything: whether all nodes of a measured depth are, not survivors' children alone.
        cut: where the tree is cut into jobs.
    """

    tree: Tree
    public_depth: int
    measured: frozenset[int]
    everything: bool
    cut: int

    @property
    def first(self) -> int:
        """The depth that the pass starts below."""
        return max(self.public_depth, 0)

    @property
    def is_cut(self) -> bool:
        """Whether there are subtree jobs, and not one pass from the first depth to the last."""
        return self.cut not in {self.first, self.tree.depth}

    @property
    def uncut(self) -> "Outline":
        """The same without jobs."""
        return replace(self, cut=self.first)

    def needs_reals(self, estimator: Estimator) -> bool:
        """Return whether an estimator is given combined, real-valued counts, or makes such."""
        below = range(self.public_depth + 1, self.tree.depth + 1)
        sums = self.everything or not self.measured.issuperset(below)
        return sums or isinstance(estimator, Sparse | Isotonic)


class PlannedChain(Design):
    """What a plan decides of the cuboids of its tree's own chain, one a depth."""

    key = "chain"

    @cached_property
    def depths(self) -> tuple[CuboidPlan, ...]:
        """What is done at each depth 0..T."""
        return tuple(self.plan.by_levels.values())

    @property
    def public_depth(self) -> int:
        """The deepest public depth; -1 if not even the total is public."""
        return -1 if self.plan.public is None else sum(self.plan.public)

    @cached_property
    def measured(self) -> frozenset[int]:
        """The depths with noisy counts."""
        return frozenset(t for t, what in enumerate(self.depths) if isinstance(what, Measured))

    @property
    def everything(self) -> bool:
        """Whether all nodes of a measured depth are, not survivors' children alone."""
        return isinstance(self.plan.measure, All)

    @cached_property
    def outline(self) -> Outline:
        """What a pass needs to know."""
        tree = self.tree
        first = max(self.public_depth, 0)
        cut = first
        last = max(self.measured, default=first)
        if tree.leaves > (UNCUT_LEAVES_OF_ALL if self.everything else UNCUT_LEAVES):
            possible = range(first, last) if self.everything else sorted(self.measured - {last})
            cut = next((t for t in possible if tree.nodes(t) >= MIN_JOBS), first)
        return Outline(tree, self.public_depth, self.measured, self.everything, cut)

    @property
    def cut(self) -> int:
        """The depth whose nodes are the roots of jobs."""
        return self.outline.cut

    @property
    def cut_at(self) -> Levels | None:
        """The cuboid whose nodes are the roots of jobs; None where the tree is not cut."""
        return self.tree.cuboid(self.cut) if self.outline.is_cut else None

    def depth_of(self, levels: Levels) -> int:
        """Return the depth of a cuboid."""
        return sum(levels)

    # --- errors ---------------------------------------------------------------------------------

    @cached_property
    def variances(self) -> tuple[Sequence[float], Sequence[float]]:
        """The mean and the largest variance of each depth; inf where unknown."""
        own = noise_variances(self.depths)
        unknown = [0.0 if v == 0 else math.inf for v in own]
        if self.tree.leaves > MOST_LEAVES_FORECAST or len(self.tree.axes) > MOST_AXES_OF_SHAPES:
            return unknown, unknown
        shapes = Shapes.of(self.tree)
        variances = []
        for function in (mean_variances, largest_variances):
            try:
                variances.append(function(shapes, own, combine=self.everything).tolist())
            except EstimateError:  # too many distinct subtrees; a plan is shown all the same
                variances.append(unknown)
        return variances[0], variances[1]

    def mean_variance(self, levels: Levels) -> float:
        """Return the mean variance of the estimates of a depth, records²; inf where unknown."""
        return self.variances[0][sum(levels)]

    def largest_variance(self, levels: Levels) -> float:
        """Return the largest one."""
        return self.variances[1][sum(levels)]

    def is_raw(self, levels: Levels) -> bool:
        """Return whether the estimates of a measured depth are its own noisy counts alone."""
        own = noise_variances(self.depths)[sum(levels)]
        # A combined estimate has the variance of its own noisy count only if it is that count.
        alike = self.mean_variance(levels) >= own * (1 - 1e-9)
        return alike and (self.everything or not any(levels))

    def carried_noise(self, levels: Levels) -> CarriedNoise:
        """Return the noise that the estimates of a depth carry.

        One of single children has its parents' estimates, and any other unmeasured one the sums of
        what is measured below it. Below survivors estimates are noisy counts as they are.
        """
        source = sum(self.plan.repeats.get(levels, levels))  # whose estimates it has
        if source <= self.public_depth:
            return PUBLIC
        pruned = isinstance(self.plan.measure, Survivors)
        own = self.depths[source]
        if isinstance(own, Measured):
            return CarriedNoise(own.mechanism, raw=pruned)
        if pruned:
            first = next(noise for k, noise in self.plan.noise.items() if sum(k) >= source)
            return CarriedNoise(first, measured=False)
        return self.noise_of_sums(None)

    @property
    def steps_of_sums(self) -> None:
        """None: along a chain no coefficient is above 1."""

    @property
    def ways(self) -> str:
        """How nodes are estimated, and what the stated errors are, in a sentence."""
        errors = "the errors shown are exact"
        if not all(map(math.isfinite, (*self.variances[0], *self.variances[1]))):
            errors = "some errors are unknown, of too many axes, leaves or different subtrees"
        if self.everything:
            return f"Estimates are made together along the tree; {errors}."
        return (
            "Counts are settled level by level below those that are released above 0, and add up "
            f"to them; {errors}, before what is negative is cut off."
        )

    @property
    def kept(self) -> str:
        """What is held in memory at once, and in how many jobs, in a sentence."""
        if (cut := self.cut_at) is not None:
            return kept_in_jobs(self.tree.cells(cut), self.tree.name_of(cut), "a few")
        if self.everything:
            return super().kept
        return "Counts are released as one job; memory holds a part of a level at a time."

    # --- cells and estimation -------------------------------------------------------------------

    def is_answerable(self, levels: Levels) -> bool:
        """Return whether sums of all leaves have been measured: whether all nodes are."""
        del levels
        return self.everything

    def measured_below(self, levels: Levels) -> Levels | None:
        """Return the depth whose listed nodes alone have descendants that are measured, if any."""
        above = sum(levels) - 1
        while above > 0 and isinstance(self.depths[above], Unmeasured):
            above -= 1
        pruned = isinstance(self.plan.measure, Survivors) and above >= 0
        return self.tree.cuboid(above) if pruned else None

    def needs_reals(self, estimator: Estimator) -> bool:
        """Return whether the estimator is given combined, real-valued counts, or makes such."""
        return self.outline.needs_reals(estimator)

    @property
    def claim(self) -> str:
        """What is claimed of least squares over its noisy counts."""
        if self.everything:
            return BEST
        return (
            "least squares conditional on which nodes survived: not unbiased, as noise decided "
            "which nodes survived"
        )

    # --- costs ----------------------------------------------------------------------------------

    def laid_out(self, levels: Levels, alive: Mapping[Levels, int]) -> int:
        """Return how many nodes, or children of survivors, are measured."""
        nodes = self.tree.cells(levels)
        by_levels = self.plan.by_levels
        above = [k for k in alive if not isinstance(by_levels[k], Unmeasured)]
        if self.everything or not above:
            return nodes
        return min(-(-alive[above[-1]] * nodes // self.tree.cells(above[-1])), nodes)

    @property
    def widest(self) -> int:
        """The nodes of the largest family."""
        starts = (start for axis in self.tree.axes for start in axis.child_start)
        return max(int(np.diff(start).max()) for start in starts)

    @property
    def bytes_held(self) -> int:
        """The memory of the largest family, or job where all nodes are measured."""
        held = self.widest
        cut = self.cut
        if self.everything:
            below = range(cut + 1, self.tree.depth + 1)
            roots = self.tree.nodes(cut)
            held = max(held, sum(-(-self.tree.nodes(depth) // roots) for depth in below))
        return held * BYTES_A_CELL

    def bytes_at_once(self, expected: Work) -> int:
        """Return the memory of a family, or of part of a depth."""
        return BYTES_AT_ONCE * max(self.widest, min(max(expected.cells), PART_OF_A_DEPTH))

    @property
    def memory_words(self) -> str:
        """What is held in memory at once and what to do about it, as a clause for users."""
        return (
            "the largest family of siblings (or subtree, where all nodes are measured), are held "
            f"in memory at once; {self.plan.workload.fewer}"
        )


class PlannedSums(PlannedChain):
    """What a plan decides of weighted running sums of the bins that end a chain, in rows.

    A *row* is the bins below one node of the depth above them; a column alone is one row, below the
    root. Public is the total of the root, or of every row, or none.
    """

    @property
    def row_depth(self) -> int:
        """The depth whose nodes have a row each."""
        return self.tree.depth - 1

    @cached_property
    def decoded(self) -> Decoded:
        """The errors of what is decoded from the sums of one row."""
        known = 1.0
        if self.public_depth < self.row_depth:
            known = 0.0 if self.public_depth < 0 else 1 / self.tree.nodes(self.row_depth)
        return Decoded(self.plan.strategy, self.noise.noise_variance, known)

    def of_rows(self, rows: Int64) -> Decoded:
        """Return the errors of the counts of several rows added up.

        Args:
            rows: int64 (places): how many each place adds up.
        """
        one = self.decoded
        many = float64(rows[:, None])
        # all rows of a public total are known to the last digit
        of_total = 0 <= self.public_depth < self.row_depth
        known = many * (many / self.tree.nodes(self.row_depth)) if of_total else many * one.known
        return replace(one, known=known, rows=many)

    @cached_property
    def above(self) -> Sequence[tuple[Codes, Int64]]:
        """The nodes of each depth above the bins in tree order, and how many children each has."""
        return [*islice(nodes_along(self.tree), self.tree.depth)]

    @cached_property
    def rows_below(self) -> Sequence[Int64]:
        """For each of these depths how many rows lie below each node: int64 (nodes)."""
        rows = [np.ones_like(self.above[-1][1])]
        for _, many in self.above[-2::-1]:
            rows.append(run_sums(rows[-1], run_starts(many)))
        return rows[::-1]

    def variances_at(self, levels: Levels) -> Float64:
        """Return the variances of the estimates of a depth: float64 (nodes in tree order)."""
        depth = sum(levels)
        one = self.decoded
        if depth > self.row_depth:
            return np.tile(one.leaves, self.tree.nodes(self.row_depth))
        if depth <= self.public_depth:
            return np.zeros(self.tree.cells(levels))
        return self.of_rows(self.rows_below[depth]).cuts[:, -1]

    @cached_property
    def variances(self) -> tuple[Sequence[float], Sequence[float]]:
        """The mean and the largest variance of each depth, decoded from running sums."""
        each = [self.variances_at(levels) for levels in self.tree.chain[:-1]]
        each.append(self.decoded.leaves)
        return [float(v.mean()) for v in each], [float(v.max()) for v in each]

    def is_answerable(self, levels: Levels) -> bool:
        """Return True: all rows are measured that may have records."""
        del levels
        return True

    @property
    def noise(self) -> Mechanism:
        """The noise of one sum, in units of the sums."""
        return next(iter(self.plan.noise.values()))

    @property
    def ways(self) -> str:
        """How bins are estimated, and what the stated errors are, in a sentence."""
        return "Estimates are decoded from running sums of the bins, and their errors are exact."

    @property
    def kept(self) -> str:
        """What is held in memory at once, and in how many jobs, in a sentence."""
        return "All sums are held in memory at once, as one job."

    @property
    def cut_at(self) -> None:
        """None: sums are made of all bins at once."""

    @property
    def noised(self) -> str:
        """The key of the page's text that says what noise was added to."""
        return "sums_by_place" if self.row_depth else super().noised

    @property
    def scale(self) -> int:  # type: ignore[override]
        """What a record counts in noisy counts at most: the scale of the weights."""
        return self.plan.strategy.scale

    def carried_noise(self, levels: Levels) -> CarriedNoise:
        """Return the noise of the sums that a depth is decoded from."""
        if sum(levels) <= self.public_depth:
            return PUBLIC
        return self.noise_of_sums(None)

    def noise_of_sums(self, steps: Steps | None) -> CarriedNoise:
        """Return the noise of the sums that any others are decoded from."""
        return CarriedNoise(self.noise, measured=False, sums=True, steps=steps)

    @property
    def widest(self) -> int:
        """The bins of all rows."""
        return self.tree.leaves

    @property
    def memory_words(self) -> str:
        """What is held in memory at once and what to do about it, as a clause for users."""
        return "the bins of all rows, are held in memory at once; name fewer bins or areas"

    @property
    def usual(self) -> Estimator:
        """What settles the counts unless another is given: the nearest that never fall."""
        return Isotonic()

    def check_estimator(self, estimator: Estimator) -> None:
        """Raise an EstimateError but for isotonic regression."""
        if not isinstance(estimator, Isotonic):
            raise EstimateError(
                f'running sums are estimated by method = "isotonic" alone, got "{estimator.name}"; '
                'to use another, measure all nodes of a tree (measure = "all")'
            )


def noise_variances(depths: Sequence[CuboidPlan]) -> list[float]:
    """Return the variance of one noisy count a depth: 0 where public, inf where unmeasured."""
    return [
        what.mechanism.noise_variance
        if isinstance(what, Measured)
        else 0.0
        if isinstance(what, Public)
        else math.inf
        for what in depths
    ]


def chain_of(plan: "Plan") -> PlannedChain:
    """Return what a plan decides of its chain.

    Raises:
        PlanError: its workload is none.
    """
    if not isinstance(plan.design, PlannedChain):
        raise PlanError("this plan has no depths: see cuboids, by name, or by_levels")
    return plan.design
