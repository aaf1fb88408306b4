"""Quantiles of a column by area without a hierarchy, which Hedgerow's are compared with.

Both methods treat the areas one by one. A record is in one area, so every area is answered at the
whole price. They run under seeds on public tables; their floating-point draws are no release.
"""

from fractions import Fraction
from math import sqrt

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.declared import frozen
from hedgerow.distribution.bins import ranges_of
from hedgerow.distribution.branching import Quantiles
from hedgerow.evaluate.baselines import LeafNoise
from hedgerow.evaluate.method import CuboidCounts
from hedgerow.evaluate.practice.practice import APART
from hedgerow.evaluate.practice.rounding import unit_keys
from hedgerow.noise.bits import Bits
from hedgerow.noise.mechanisms import DiscreteGaussian
from hedgerow.privacy.budget import Rho
from hedgerow.privacy.neighbours import AddRemove, Neighbours
from hedgerow.tables.counts import Counts

DRAWS = (APART, 3)
"""The place of the draws of the exponential mechanism."""


def cumulative_by_area(counts: Counts) -> Int64:
    """Return the true counts below the edges: int64 (areas, bins + 1), records.

    Args:
        counts: over two axes, the numeric column last; areas are the leaves of the first.
    """
    areas, bins = counts.tree.sizes(counts.tree.finest)
    cells = CuboidCounts.true(counts, counts.tree.finest).dense(areas * bins)
    return cumulative(cells.reshape(areas, bins))


def cumulative(cells: Int64) -> Int64:
    """Return counts below the edges, int64 (areas, bins + 1), of those between them."""
    return np.pad(np.cumsum(cells, axis=1), ((0, 0), (1, 0)))


def values_at(below: Int64, edges: Float64, rank: float) -> Float64:
    """Return where each area's CDF, straight within bins, reaches a rank: float64 (areas).

    Args:
        below: int64 (areas, bins + 1), records: never falling, from 0 on.
        edges: float64 (bins + 1).
        rank: in (0, 1).

    Returns:
        Values; NaN of areas without a record.

    Example:
        >>> from hedgerow.evaluate.area_quantiles import values_at
        >>> values_at(np.array([[0, 3, 4], [0, 0, 0]]), np.array([0.0, 10.0, 20.0]), 0.5)
        array([6.66666667,        nan])
    """
    total = below[:, -1]
    wanted = rank * total
    bin_ = np.clip((below < wanted[:, None]).sum(axis=1), 1, len(edges) - 1) - 1
    before, after = (np.take_along_axis(below, (bin_ + k)[:, None], 1)[:, 0] for k in (0, 1))
    part = (wanted - before) / np.maximum(after - before, 1)
    return np.where(total > 0, edges[bin_] + (edges[bin_ + 1] - edges[bin_]) * part, np.nan)


@frozen
class HistogramsAlone:
    """Noise on the bins of each area, and the quantiles of what is left of its counts.

    `hedgerow.evaluate.baselines.LeafNoise`: each cell of areas × bins gets discrete Gaussian noise
    for the whole budget, so all cells together, and whatever follows from them, satisfy ρ-zCDP
    under the given neighbours. Under `AddRemove` of one record the variance is 1/(2ρ).

    Attributes:
        quantiles: which ranks.
        budget: ρ of all cells.
        neighbours: the unit of privacy.
        clipped: whether counts are cut at 0, which moves quantiles towards empty bins. If not, the
            CDF is the middle between its largest value so far and its least from there on.

    Example:
        >>> from hedgerow.evaluate.area_quantiles import HistogramsAlone
        >>> from hedgerow.evaluate.simulate import seeded_bits
        >>> place = hr.Axis.from_frame("place", pl.DataFrame({"area": ["a"]}), levels=["area"])
        >>> ages = hr.Ranges.equal_width("age", 0, 80, 8)
        >>> plan = hr.plan_distribution(ages, budget=hr.Rho(1), measure=hr.RunningSums())
        >>> tree = hr.Tree([place, *plan.tree.axes])
        >>> leaves = (np.zeros(8, dtype=np.int32), np.arange(8, dtype=np.int32))
        >>> counts = hr.Counts.from_leaves(tree, leaves, np.full(8, 1000))
        >>> alone = HistogramsAlone(hr.Quantiles(["1/2"]), hr.Rho(1), hr.AddRemove())
        >>> alone.values(counts, seeded_bits(1)).round().tolist()
        [[40.0]]
    """

    quantiles: Quantiles
    budget: Rho
    neighbours: Neighbours
    clipped: bool = True

    def values(self, counts: Counts, bits: Bits) -> Float64:
        """Return float64 (areas, ranks); NaN of areas of which nothing is left.

        Args:
            counts: over two axes, the numeric column last; areas are the leaves of the first.
            bits: of a seed.

        Raises:
            TableError: too many cells, or the last axis is not numeric.
        """
        edges = ranges_of(counts.tree.axes[-1]).edges
        finest = counts.tree.finest
        noise = LeafNoise(counts.tree, self.budget, self.neighbours, DiscreteGaussian)
        noisy = dict(noise.released(counts, bits))[finest].values
        noisy = np.maximum(noisy, 0) if self.clipped else noisy
        below = cumulative(noisy.reshape(counts.tree.sizes(finest)))
        if not self.clipped:
            after = np.minimum.accumulate(below[:, ::-1], axis=1)[:, ::-1]
            below = np.maximum(np.maximum.accumulate(below, axis=1) + after, 0)  # twice the CDF
        ranks = map(float, self.quantiles.ranks)
        return np.stack([values_at(below, edges, rank) for rank in ranks], axis=1)


@frozen
class QuantilesAlone:
    """Each quantile of each area for itself, by an exponential mechanism over the bins' edges.

    The score of an edge x for the rank q is ``u(x) = -|n(< x) - q n|``, records, and x is drawn
    with a chance in proportion to exp(λ u(x)). Where scores move by at most D, log chances of two
    edges move apart by at most ε = 2 λ D: the mechanism is ε-bounded range (Durfee and Rogers,
    "Practical differentially private top-k selection with pay-what-you-get composition", NeurIPS
    2019), and so satisfies ε²/8-zCDP (Cesar and Rogers, "Bounding, concentrating, and truncating",
    ALT 2021): λ² D²/2. One record more or less in an area has D = max(q, 1 - q). One that changes
    its bin within an area moves n(< x) by at most 1 and not n; one that changes its area moves the
    scores of two areas, whose draws are independent: under `Replace` D² is max(1, 2 max(q, 1 -
    q)²). Of units of m records it is m² times that (group privacy). Each of k ranks gets ρ/k.

    Attributes:
        quantiles: which ranks.
        budget: ρ of all of them.
        neighbours: the unit of privacy.

    Example:
        >>> from hedgerow.evaluate.area_quantiles import QuantilesAlone
        >>> QuantilesAlone(hr.Quantiles(["1/2"]), hr.Rho(2), hr.AddRemove()).rates
        (4.0,)
    """

    quantiles: Quantiles
    budget: Rho
    neighbours: Neighbours

    @property
    def rates(self) -> tuple[float, ...]:
        """λ of each rank: how fast chances fall, a record."""
        alone = [max(rank, 1 - rank) ** 2 for rank in self.quantiles.ranks]
        moves = not isinstance(self.neighbours, AddRemove)
        moved = [max(Fraction(1), 2 * each) if moves else each for each in alone]
        part = 2 * self.budget.rho / len(alone) / self.neighbours.contributions**2
        return tuple(sqrt(part / each) for each in moved)

    def values(self, counts: Counts, bits: Bits) -> Float64:
        """Return float64 (areas, ranks): edges of bins.

        Args:
            counts: as `HistogramsAlone.values`.
            bits: of a seed.

        Raises:
            TableError: the last axis is not numeric.
        """
        edges = ranges_of(counts.tree.axes[-1]).edges
        below = cumulative_by_area(counts)
        drawn = np.empty((len(below), len(self.quantiles.ranks)))
        for k, (rank, rate) in enumerate(zip(self.quantiles.ranks, self.rates, strict=True)):
            away = np.abs(below - float(rank) * below[:, -1:])
            chance = np.cumsum(np.exp(rate * (away.min(axis=1, keepdims=True) - away)), axis=1)
            part = unit_keys(bits.stream(*DRAWS, k).words(0, len(below)))[:, None]
            drawn[:, k] = edges[(chance <= part * chance[:, -1:]).sum(axis=1)]
        return drawn
