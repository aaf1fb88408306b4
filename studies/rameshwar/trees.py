"""Noisy counts of a tree over bins under pure ε, and the CDFs that can be made of them."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

import numpy as np
from scipy.optimize import nnls

from hedgerow.arrays import Float64, Int64
from hedgerow.distribution.branching import Design
from hedgerow.distribution.cut_error import CutError
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.tree.least_squares import combine, distribute_down
from hedgerow.noise.mechanisms import Mechanism


class TreeRelease:
    """A design at an ε: noisy counts of all levels, and the ways to make a CDF of them.

    Neighbours are replace-one and N is public, so a level under ε_i has discrete Laplace noise of
    scale 2/ε_i.
    """

    def __init__(self, design: Design, epsilon: float) -> None:
        self.design = design
        self.starts = families(design.bins, design.branching)
        self.scales = [2 / (epsilon * float(share)) for share in design.shares]
        decay = [np.exp(-1 / scale) for scale in self.scales]
        self.variances = [float(2 * d / (1 - d) ** 2) for d in decay]

    def measure(self, leaves: Int64, rng: np.random.Generator) -> list[Int64]:
        """Noisy counts of each level, coarsest first."""
        decays = [-np.expm1(-1 / scale) for scale in self.scales]
        return [
            level + rng.geometric(p, len(level)) - rng.geometric(p, len(level))
            for level, p in zip(level_sums(leaves, self.starts), decays, strict=True)
        ]

    def least_squares(self, noisy: list[Int64], total: int) -> Float64:
        """Cumulative counts by least squares with the public total."""
        final = np.array([float(total)]), np.array([0.0])
        for estimate, variance, start in from_below(noisy, self.variances, self.starts):
            final = distribute_down(*final, estimate, variance, start)
        return np.cumsum(final[0])

    def descended(self, noisy: list[Int64], total: int) -> Int64:
        """Cumulative counts of non-negative integers, projected family by family downwards."""
        totals = np.array([total])
        for estimate, variance, start in from_below(noisy, self.variances, self.starts):
            totals = Euclidean().project(estimate, start, totals, variance)
        return np.cumsum(totals)

    def non_negative(self, noisy: list[Int64], total: int) -> Float64:
        """Least squares over leaves of at least 0: what exact inequalities would give (dense)."""
        bins = self.design.bins
        weights = 1 / np.sqrt([*self.variances, min(self.variances) / 900])
        sums = [*level_sums(np.eye(bins, dtype=np.int64), self.starts), np.ones((1, bins))]
        matrix = [rows * weight for rows, weight in zip(sums, weights, strict=True)]
        target = [
            counts * weight
            for counts, weight in zip([*noisy, np.array([total])], weights, strict=True)
        ]
        leaves, _ = nnls(np.vstack(matrix), np.concatenate(target), maxiter=50 * bins)
        return np.asarray(np.cumsum(leaves) * total / max(leaves.sum(), 1e-9))


def families(bins: int, branching: Sequence[int]) -> list[Int64]:
    """Where the families of each level begin, and the end: int64 (families + 1), the root's first.

    A node of a level covers the product of the factors below it, the last one what is left.
    """
    return [
        -(-np.append(np.arange(0, bins, width * n), bins) // width)
        for width, n in zip(prod(branching) // np.cumprod(branching), branching, strict=True)
    ]


def level_sums(leaves: Int64, starts: Sequence[Int64]) -> list[Int64]:
    """The counts of each level, coarsest first, from the families of each."""
    levels = [leaves]
    for start in starts[:0:-1]:
        levels.append(np.add.reduceat(levels[-1], start[:-1]))
    return levels[::-1]


def from_below(
    noisy: Sequence[Int64 | Float64], variances: Sequence[float], starts: Sequence[Int64]
) -> Iterator[tuple[Float64, Float64, Int64]]:
    """Each level combined with all below it, coarsest first: estimates, variances, families."""
    found = [(noisy[-1].astype(np.float64), np.full(len(noisy[-1]), variances[-1]))]
    for level in range(len(noisy) - 2, -1, -1):
        found.append(combine(noisy[level], variances[level], *found[-1], starts[level + 1]))
    return ((*each, start) for each, start in zip(found[::-1], starts, strict=True))


def tilted(design: Design, tilt: float) -> Design:
    """The design with each level's share times tilt per level down: below 1 favours the top."""
    weights = [float(s) * tilt**i for i, s in enumerate(design.shares)]
    shares = [Fraction(round(w / sum(weights) * 1000), 1000) for w in weights]
    shares[0] += 1 - sum(shares)
    return Design(design.bins, design.branching, tuple(shares), design.error)


def trimmed_error(design: Design, *, mechanism: type[Mechanism]) -> float:
    """Return the mean squared error of the cuts before bins 0 … K - 1, in units of `Design`."""
    starts = families(design.bins, design.branching)
    variances = [float(share) ** -mechanism.price.power for share in design.shares]
    return float(CutError.of_tree(starts, variances).cuts()[:-1].mean())
