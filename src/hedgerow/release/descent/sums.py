"""The pass over running sums: measure them, decode, and make the nearest cumulative counts.

Source: `hedgerow.estimate.running_sums`. Privacy: every sum gets one draw of the plan's noise,
whose price is that of the largest change of all sums together (`Plan.guarantee`); everything else
is post-processing. Whatever the table holds, all sums are measured, except those of publicly empty
rows; their noise comes from one keyed stream, so a resumed run draws the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from hedgerow.arrays import Codes, Float64, Int64, float64, int64, run_starts, run_sums
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.limits import LARGEST_REAL_COUNT
from hedgerow.plan.chain import PlannedSums
from hedgerow.release.descent.jobs import PlannedFlow, Told, Top
from hedgerow.release.descent.layouts import Sums
from hedgerow.release.descent.nodes import Found, Nodes
from hedgerow.release.descent.source import Source


@dataclass(frozen=True, eq=False)
class DecodedRows:
    """What noisy sums tell of all nodes that were measured, row by row.

    Attributes:
        design: of the plan.
        public: the nodes of each public depth that have records.
        rows: one int32 array (rows) an axis: the nodes above the bins.
        noisy: int64 (rows × K): the noisy sums.
        cumulative: float64 (rows, K + 1), records: estimates of the counts before the cuts.
    """

    design: PlannedSums
    public: Sequence[Nodes]
    rows: Codes
    noisy: Int64
    cumulative: Float64

    @classmethod
    def of(cls, design: PlannedSums, source: Source) -> "DecodedRows":
        """Return those of a table that is measured now, or of sums that were written down.

        Raises:
            ReleaseError: the sums are more or fewer than the bins of the rows.
        """
        plan = design.plan
        tree = design.tree
        errors = design.decoded
        public = [source.public(levels).nodes for levels in tree.chain[: design.public_depth + 1]]
        own = len(public) == tree.depth  # rows have totals of their own
        # below a public count of 0 nothing is measured
        listed = own or (public and not len(public[-1]))
        rows = public[-1].codes if listed else design.above[-1][0]
        noisy = cast("Int64", source.noisy(tree.finest, Sums(tree, rows, plan.strategy)))
        cumulative = errors.estimate(noisy.reshape(-1, plan.strategy.bins))
        if own:
            cumulative = errors.given_totals(cumulative, public[-1].counts)
        elif public and len(rows[0]):
            totals = cumulative[:, -1]
            missing = (public[-1].counts.sum() - totals.sum()) / len(totals)
            cumulative = errors.given_totals(cumulative, totals + missing)
        return cls(design, public, rows, noisy, cumulative)

    def codes(self, depth: int) -> Codes:
        """Return the measured nodes of a depth below the public ones: one int32 array an axis."""
        if depth <= self.design.row_depth:
            return self.design.above[depth][0] if len(self.rows[0]) else self.rows
        last = self.design.tree.steps[-1][0]
        bins = self.design.plan.strategy.bins
        codes = [np.repeat(code, bins) for code in self.rows]
        codes[last] = np.tile(np.arange(bins, dtype=np.int32), len(self.rows[0]))
        return tuple(codes)

    def estimate(self, depth: int) -> Float64:
        """Return the estimates of these nodes: float64 (nodes), records."""
        if depth > self.design.row_depth:
            return np.diff(self.cumulative).ravel()
        below = self.design.rows_below[depth]
        totals = self.cumulative[:, -1]
        return run_sums(totals, run_starts(below)) if len(totals) else totals

    def nodes(self, depth: int, counts: Int64) -> Nodes:
        """Return the same nodes with released counts, estimates and variances."""
        variance = self.design.variances_at(self.design.tree.cuboid(depth))[: len(counts)]
        return Nodes(self.codes(depth), counts, self.estimate(depth), variance)


@dataclass(frozen=True, eq=False)
class SumsFlow(PlannedFlow[PlannedSums]):
    """What running sums do with noisy counts.

    Attributes:
        estimator: makes cumulative counts of whole numbers that never fall.
    """

    estimator: Isotonic = field(default_factory=Isotonic)

    def top(self, from_below: Told) -> Top:
        """Yield the depths above the bins, whose totals add up, and the bins with their sums."""
        del from_below
        design = self.design
        tree = self.tree
        decoded = DecodedRows.of(design, self.source)
        self.progress.on_cells(len(decoded.noisy))
        for levels, public in zip(tree.chain, decoded.public, strict=False):
            yield Found(levels, public, None)
        counts = decoded.public[-1].counts if decoded.public else None
        for depth in range(len(decoded.public), tree.depth):
            estimate = decoded.estimate(depth)
            if counts is None:
                total = min(max(0, round(float(estimate[0]))), LARGEST_REAL_COUNT)
                counts = int64([total])
            elif len(counts):
                rows = float64(design.rows_below[depth])
                families = run_starts(design.above[depth - 1][1])
                counts = Euclidean().project(estimate, families, counts, rows)
            yield Found(tree.cuboid(depth), decoded.nodes(depth, counts).listed, None)
        given = replace(design.decoded, known=1.0).cuts[1:]
        bins = self.estimator.nearest(decoded.cumulative[:, 1:], cast("Int64", counts), given)
        yield Found(tree.finest, decoded.nodes(tree.depth, bins.ravel()).listed, decoded.noisy)
        return None
