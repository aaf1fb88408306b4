"""The errors of released counts, cuboid by cuboid: standard errors and intervals, from the plan."""

from dataclasses import replace

import numpy as np

from hedgerow.arrays import Bool, Float64, Int64, IntPair, Levels
from hedgerow.declared import frozen
from hedgerow.estimate.intervals import Confidence, interval
from hedgerow.plan.design import CarriedNoise
from hedgerow.plan.plan import Plan

USUAL = Confidence()
WIDEST = 0.5
"""Of the noise's half width, what intervals may be wider by for what was not measured."""
FIRMER = 0.1
"""The part of the chance to miss at which an estimate must be above 0 for ``low`` to be, where a
part was not measured."""


@frozen
class CuboidErrors:
    """What a plan tells of the errors of the unbiased estimates of one cuboid.

    Attributes:
        noise: that the estimates carry.
        cells: how many counts the cuboid has, over which simultaneous intervals hold.
        total: the public number of records, which no count exceeds; None where it is measured.
        allowance: of sums of which a part was not measured float64 (sums), records: by how much it
            may differ from what is put in its place (`hedgerow.release.survivor_sums`).
    """

    noise: CarriedNoise
    cells: int
    total: int | None
    allowance: Float64 | None = None

    @classmethod
    def of(cls, plan: Plan, levels: Levels, total: int | None) -> "CuboidErrors":
        """Return those of a cuboid of a plan, or of sums of cells that are all measured.

        Args:
            plan: of the release.
            levels: the cuboid.
            total: the released number of records.
        """
        public = None if plan.public is None else total
        return cls(plan.design.carried_noise(levels), plan.tree.cells(levels), public)

    @classmethod
    def of_sums(cls, plan: Plan, cells: int, total: int) -> "CuboidErrors":
        """Return those of so many sums that have no noisy counts of their own."""
        public = None if plan.public is None else total
        return cls(plan.design.noise_of_sums(plan.design.steps_of_sums), cells, public)

    def half_width(self, variance: Float64, confidence: Confidence) -> int | Float64:
        """Return how far each interval reaches to either side: one for all, or float64 (cells).

        Args:
            variance: float64 (cells), records².
            confidence: of one interval, or of all at once.
        """
        noise = self.noise
        if noise.sums:
            return confidence.half_width_of_sums(variance, self.cells)
        if noise.mechanism is None:
            return 0
        own = None if noise.raw else variance
        return confidence.half_width(
            noise.mechanism, own, self.cells, measured=noise.measured, steps=noise.steps
        )

    def interval(self, estimate: Float64, variance: Float64, confidence: Confidence) -> IntPair:
        """Return the lowest and highest count in each interval: int64 (cells).

        Args:
            estimate: float64 (cells), records.
            variance: float64 (cells), records².
            confidence: of one interval, or of all at once.
        """
        reach = self.half_width(variance, confidence)
        if self.allowance is None:
            return interval(estimate, reach, None if self.noise.mechanism is None else self.total)
        low, high = interval(estimate, reach + self.allowance, self.total)
        surer = replace(confidence, coverage=1 - FIRMER * (1 - confidence.coverage))
        firm = estimate > self.half_width(variance, surer) + self.allowance
        return np.where(firm, low, 0), high

    def is_told(self, variance: Float64, confidence: Confidence) -> Bool:
        """Return which cells have an interval of any use: bool (cells); all that are measured."""
        if self.allowance is None:
            return np.ones(len(variance), dtype=np.bool_)
        return self.allowance <= WIDEST * self.half_width(variance, Confidence(confidence.coverage))

    def contradicted(
        self, counts: Int64, estimate: Float64, variance: Float64, level: float = USUAL.coverage
    ) -> Bool:
        """Return which counts their own measurements contradict: bool (cells).

        Those outside the intervals that hold for all cells of the cuboid at once: keeping counts
        from falling below 0 moved them by more than noise explains. The chance that any true count
        of the cuboid is called so is at most ``1 - level``: proved for noisy counts as they are
        (tails and the union bound); for combined estimates it rests on their simultaneous intervals
        (`hedgerow.estimate.intervals`).

        Args:
            counts: int64 (cells), records, as released.
            estimate: float64 (cells), records: unbiased.
            variance: float64 (cells), records².
            level: the chance that no true count of the depth is called contradicted.
        """
        low, high = self.interval(estimate, variance, Confidence(level, simultaneous=True))
        return (counts < low) | (counts > high)
