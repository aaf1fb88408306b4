"""The errors of released counts, cuboid by cuboid: standard errors and intervals, from the plan."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.estimate.intervals import Confidence, Steps, interval
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured, Summed, Survivors, Unmeasured
from hedgerow.plan.plan import Plan

USUAL = Confidence()


@dataclass(frozen=True, slots=True)
class CuboidErrors:
    """What a plan tells of the errors of the unbiased estimates of one cuboid.

    Attributes:
        mechanism: the noise that the estimates carry; None where the counts are public.
        raw: whether an estimate is one noisy count, not a combination of several.
        measured: whether each count of the cuboid has a noisy count of its own.
        cells: how many counts the cuboid has, over which simultaneous intervals hold.
        total: the public number of records, which no count exceeds; None where it is measured.
        sums: whether estimates are decoded from running sums.
        steps: what is known of the coefficients of estimates of named cuboids.
    """

    mechanism: Mechanism | None
    raw: bool
    measured: bool
    cells: int
    total: int | None
    sums: bool = False
    steps: Steps | None = None

    @classmethod
    def of(cls, plan: Plan, levels: Levels, total: int | None) -> "CuboidErrors":
        """Return those of a cuboid of a plan.

        One that is measured below survivors has estimates that are noisy counts as they are.
        One of single children has its parents' estimates, and any other unmeasured one the sums of
        what is measured below it.

        Args:
            plan: of the release.
            levels: a depth of a chain; of other workloads any cuboid that is a sum of cells that
                are all measured.
            total: the released number of records.
        """
        if not plan.is_chain:
            return cls._of_joint(plan, levels, total)
        depths, nodes, depth = plan.depths, plan.tree.nodes, plan.tree.chain.index(levels)
        public, cells = total if plan.public_depth >= 0 else None, nodes(depth)
        source = depth  # whose estimates it has
        while (
            isinstance(depths[source], Unmeasured) and source and nodes(source) == nodes(source - 1)
        ):
            source -= 1
        if source <= plan.public_depth:
            return cls(None, True, True, cells, public)
        if isinstance(depths[-1], Summed):
            return cls(depths[-1].mechanism, False, False, cells, public, sums=True)
        pruned, own = isinstance(plan.measure, Survivors), depths[source]
        if isinstance(own, Measured):
            return cls(own.mechanism, pruned, True, cells, public)
        noise = [d.mechanism for d in depths[source if pruned else 0 :] if isinstance(d, Measured)]
        widest = noise[0] if pruned else min(noise, key=lambda mechanism: mechanism.parameter)
        return cls(widest, False, False, cells, public)

    @classmethod
    def _of_joint(cls, plan: Plan, levels: Levels, total: int | None) -> "CuboidErrors":
        """Return those of a cuboid that is estimated together with others.

        The estimates of one that is measured whole combine its own noisy counts with others; those
        of survivors are their noisy counts.
        """
        public, cells = None if plan.public is None else total, plan.tree.cells(levels)
        if plan.is_public(levels):
            return cls(None, True, True, cells, public)
        source = plan.repeats.get(levels, levels)
        if plan.is_public(source):
            return cls(None, True, True, cells, public)
        own = plan.by_levels.get(source)
        if isinstance(own, Measured):
            raw = not plan.is_whole(source)
            steps = None if raw else plan.joint.steps(plan.joint.shape.given(source))
            return cls(own.mechanism, raw, True, cells, public, steps=steps)
        steps = plan.joint.steps(plan.joint.shape.given(source))
        return cls.of_sums(plan, cells, total, steps)

    @classmethod
    def of_sums(
        cls, plan: Plan, cells: int, total: int | None, steps: Steps | None
    ) -> "CuboidErrors":
        """Return those of sums that have no noisy counts of their own, beside a chain.

        Args:
            plan: of the release.
            cells: how many sums there are.
            total: the released number of records.
            steps: what is known of the coefficients of their estimates.
        """
        noise = [what.mechanism for what in plan.by_levels.values() if isinstance(what, Measured)]
        widest = min(noise, key=lambda mechanism: mechanism.parameter)
        public = None if plan.public is None else total
        return cls(widest, False, False, cells, public, steps=steps)

    def interval(
        self, estimate: Float64, variance: Float64, confidence: Confidence
    ) -> tuple[Int64, Int64]:
        """Return the lowest and highest count in each interval: int64 (cells).

        Args:
            estimate: float64 (cells), records.
            variance: float64 (cells), records².
            confidence: of one interval, or of all at once.
        """
        if self.mechanism is None:
            return interval(estimate, np.zeros(1), None)
        if self.sums:
            return interval(
                estimate, confidence.half_width_of_sums(variance, self.cells), self.total
            )
        own = None if self.raw else variance
        half_width = confidence.half_width(
            self.mechanism, own, self.cells, measured=self.measured, steps=self.steps
        )
        return interval(estimate, half_width, self.total)

    def contradicted(
        self, counts: Int64, estimate: Float64, variance: Float64, level: float = USUAL.coverage
    ) -> NDArray[np.bool_]:
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
        return outside(counts, low, high)


def outside(counts: Int64, low: Int64, high: Int64) -> NDArray[np.bool_]:
    """Return which counts lie outside low..high: bool (cells)."""
    return (counts < low) | (counts > high)
