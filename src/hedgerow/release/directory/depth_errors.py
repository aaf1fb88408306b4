"""How sure each released count is: its standard error and interval, from the plan alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence, interval
from hedgerow.noise.mechanisms import MECHANISMS, Mechanism
from hedgerow.plan.depths import Summed

USUAL = Confidence()


@dataclass(frozen=True, slots=True)
class Certainty:
    """What a plan says of the errors of the unbiased estimates of one depth.

    Attributes:
        mechanism: the noise that the estimates carry; None where the counts are public.
        raw: whether an estimate is one noisy count, not a combination of several.
        measured: whether each count of the depth has a noisy count of its own.
        cells: how many counts the depth has, over which simultaneous intervals hold.
        total: the public number of records, which no count exceeds; None where it is measured.
        sums: whether estimates are decoded from running sums.
    """

    mechanism: Mechanism | None
    raw: bool
    measured: bool
    cells: int
    total: int | None
    sums: bool = False

    def interval(
        self, estimate: Float64, variance: Float64, confidence: Confidence
    ) -> tuple[Int64, Int64]:
        """The lowest and highest count in each interval: int64 (cells).

        Args:
            estimate: float64 (cells), records.
            variance: float64 (cells), records².
            confidence: of one interval, or of all at once.
        """
        if self.mechanism is None:
            exact = estimate.astype(np.int64)
            return exact, exact
        if self.sums:
            return interval(
                estimate, confidence.half_width_of_sums(variance, self.cells), self.total
            )
        known = None if self.raw else variance
        reach = confidence.half_width(self.mechanism, known, self.cells, measured=self.measured)
        return interval(estimate, reach, self.total)

    def contradicted(
        self, counts: Int64, estimate: Float64, variance: Float64, level: float = USUAL.coverage
    ) -> NDArray[np.bool_]:
        """Which counts cannot be the true ones by their own measurements: bool (cells).

        Those outside the intervals that hold for all cells of the depth at once. A 95 % interval
        misses one true count in twenty by chance, so a count outside its own is nothing to remark.
        Of all counts of a depth that are the true ones, though, the chance that a single one is
        called contradicted is at most ``1 - level``, however many cells there are: proved for noisy
        counts as they are (tails and the union bound), and as sure as their simultaneous intervals
        for combined estimates (`hedgerow.estimate.intervals`). What is called so was moved by more
        than noise explains, by keeping counts from falling below 0.

        Args:
            counts: int64 (cells), records, as released.
            estimate: float64 (cells), records: unbiased.
            variance: float64 (cells), records².
            level: the chance that no true count of the depth is called contradicted.
        """
        low, high = self.interval(estimate, variance, Confidence(level, simultaneous=True))
        return outside(counts, low, high)


def outside(counts: Int64, low: Int64, high: Int64) -> NDArray[np.bool_]:
    """Which counts lie outside low..high: bool (cells)."""
    return (counts < low) | (counts > high)


def certainty(plan: Mapping[str, Any], depth: int, total: int | None) -> Certainty:
    """What the plan says of a depth.

    A depth that is measured below survivors has estimates that are noisy counts as they are. One
    of single children has its parents' estimates, and any other unmeasured one the sums of what
    is measured below it.

    Args:
        plan: as JSON (`Plan.to_dict`).
        depth: which.
        total: the released number of records.
    """
    depths = plan["depths"]
    public = total if depths[0]["kind"] == "public" else None
    cells = depths[depth]["cells"]
    if depths[depth]["kind"] == "public":
        return Certainty(None, True, True, cells, public)
    if depths[-1]["kind"] == Summed.kind:
        return Certainty(_noise(depths[-1]), False, False, cells, public, sums=True)
    told = depth
    while depths[told]["kind"] == "unmeasured" and told > 0 and _is_single(depths, told):
        told -= 1
    if depths[told]["kind"] == "public":
        return Certainty(None, True, True, cells, public)
    measured, pruned = depths[told]["kind"] == "measured", plan["measure"] == "survivors"
    if not measured:
        below = (what for what in depths[told:] if what["kind"] == "measured")
        every = [what for what in depths if what["kind"] == "measured"]
        if not every:
            raise ReleaseError(
                "nothing was measured by the plan of this release: run hedgerow check"
            )
        smallest = min(every, key=lambda what: Fraction(what["parameter"]))
        what = next(below) if pruned else smallest
    else:
        what = depths[told]
    return Certainty(_noise(what), pruned and measured, measured, cells, public)


def _noise(measured: Mapping[str, Any]) -> Mechanism:
    """The noise of a measured depth as a plan describes it."""
    return MECHANISMS[measured["mechanism"]](measured["parameter"])


def _is_single(depths: list[dict[str, Any]], depth: int) -> bool:
    """Whether every node above a depth has one child there."""
    return bool(depths[depth]["cells"] == depths[depth - 1]["cells"])
