"""The pass over running sums: measure them, decode, and make the nearest cumulative counts.

Source: `hedgerow.estimate.running_sums`. Privacy: every sum gets one draw of the plan's noise,
whose price is that of the largest change of all sums together (`Plan.guarantee`); everything else
is post-processing. All sums are measured whatever the table holds, in one keyed stream, so a
resumed run draws the same noise.
"""

from dataclasses import dataclass, field
from typing import cast

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels, int64_zeros
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.running_sums import Decoded
from hedgerow.limits import LARGEST_REAL_COUNT
from hedgerow.plan.chain import PlannedSums
from hedgerow.release.descent.jobs import PlannedFlow, Told, Top
from hedgerow.release.descent.layouts import Sums
from hedgerow.release.descent.nodes import Found, Nodes, unknown_root

ROOT: Levels = (0,)
BINS: Levels = (1,)
"""The cuboids of one axis of one level."""


@dataclass(frozen=True, eq=False)
class SumsFlow(PlannedFlow[PlannedSums]):
    """What running sums do with noisy counts.

    Attributes:
        estimator: makes cumulative counts of whole numbers that never fall.
    """

    estimator: Isotonic = field(default_factory=Isotonic)

    def top(self, from_below: Told) -> Top:
        """Yield the total and the bins, with what was measured of them."""
        del from_below
        bins, public = self.plan.tree.cells(BINS), self.plan.public_depth == 0
        above = self.source.public(ROOT) if public else unknown_root(self.plan.tree, None)
        root = above.nodes
        if not len(root):  # below a public total of 0 nothing is measured
            yield Found(ROOT, root, None)
            yield Found(BINS, root, int64_zeros(0))
            return None
        layout = Sums(bins, self.plan.strategy)
        noisy = cast("Int64", self.source.noisy(BINS, layout))
        self.progress.on_cells(bins)
        errors = self.design.decoded
        cumulative = errors.estimate(noisy, int(root.counts[0]) if public else None)
        if not public:
            total = min(max(0, round(float(cumulative[-1]))), LARGEST_REAL_COUNT)
            root = Nodes(root.codes, np.array([total]), cumulative[-1:], errors.before[-1:])
        yield Found(ROOT, root.listed, None)
        cuts = Decoded(errors.strategy, errors.noise_variance, total_known=True).cuts
        counts = self.estimator.nearest(cumulative[1:], int(root.counts[0]), cuts[1:])
        yield Found(BINS, decoded_bins(errors, cumulative, counts).listed, noisy)
        return None


def decoded_bins(errors: Decoded, cumulative: Float64, counts: Int64) -> Nodes:
    """Return all bins with their counts, and the estimates that cumulative ones make of them."""
    codes = (np.arange(len(counts), dtype=np.int32),)
    return Nodes(codes, counts, np.diff(cumulative), errors.leaves)
