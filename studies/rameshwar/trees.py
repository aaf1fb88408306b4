"""Noisy counts of a tree over bins under pure ε, and the CDFs that can be made of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np
from numpy.random import Generator
from scipy.optimize import nnls

from hedgerow.arrays import Float64, Int64
from hedgerow.distribution.branching import Design
from hedgerow.distribution.cut_error import CutError
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.tree.least_squares import combine, distribute_down
from hedgerow.noise.mechanisms import Mechanism

Level = tuple[Float64, Float64, Int64]
"""Estimates of a level's nodes, their variances, and where the families begin."""


class Trees:
    """A design with its noise, so many times side by side: one kernel call serves all of them.

    Attributes:
        one: the families of each level of one tree.
        starts: the same of all.
        variances: of the noise of each level.
        shape: of the cumulative counts: (runs, K), of a single tree (K).
    """

    def __init__(self, design: Design, variances: Sequence[float], runs: int = 1) -> None:
        self.one, self.variances = families(design.bins, design.branching), variances
        self.shape = (runs, design.bins) if runs > 1 else (design.bins,)
        copies = np.arange(runs)[:, None]
        self.starts = [
            np.append((start[:-1] + start[-1] * copies).ravel(), start[-1] * runs)
            for start in self.one
        ]

    def least_squares(self, noisy: Sequence[Int64], total: int) -> Float64:
        """Cumulative counts by least squares with the public total."""
        above = np.full(len(self.starts[0]) - 1, float(total))
        final = above, np.zeros_like(above)
        for estimate, variance, start in from_below(noisy, self.variances, self.starts):
            final = distribute_down(*final, estimate, variance, start)
        return final[0].reshape(self.shape).cumsum(axis=-1)

    def descended(self, noisy: Sequence[Int64], total: int) -> Int64:
        """Cumulative counts of non-negative integers, projected family by family downwards."""
        return self.settled(from_below(noisy, self.variances, self.starts), total)

    def settled(self, levels: Iterable[Level], total: int) -> Int64:
        """The same from estimates of each level, coarsest first."""
        whole = np.full(len(self.starts[0]) - 1, total)
        for estimate, variance, start in levels:
            whole = Euclidean().project(estimate, start, whole, variance)
        return whole.reshape(self.shape).cumsum(axis=-1)


class TreeRelease(Trees):
    """A design at an ε: noisy counts of all levels, and the ways to make a CDF of them.

    Neighbours are replace-one and N is public, so a level under ε_i has discrete Laplace noise of
    scale 2/ε_i.
    """

    def __init__(self, design: Design, epsilon: float) -> None:
        scales = np.array([2 / (epsilon * float(share)) for share in design.shares])
        self.chances, decay = -np.expm1(-1 / scales), np.exp(-1 / scales)
        super().__init__(design, (2 * decay / (1 - decay) ** 2).tolist())

    def measure(self, leaves: Int64, rng: Generator) -> list[Int64]:
        """Noisy counts of each level, coarsest first."""
        return [
            level + rng.geometric(p, len(level)) - rng.geometric(p, len(level))
            for level, p in zip(level_sums(leaves, self.starts), self.chances, strict=True)
        ]

    def non_negative(self, noisy: Sequence[Int64], total: int) -> Float64:
        """Least squares over leaves of at least 0: what exact inequalities would give (dense)."""
        leaves = np.eye(self.shape[-1], dtype=np.int64)
        sums = *level_sums(leaves, self.starts), np.ones((1, len(leaves)))
        counts = np.concatenate([*noisy, [total]])
        variances = [*self.variances, min(self.variances) / 900]
        weight = np.repeat(1 / np.sqrt(variances), [len(rows) for rows in sums])
        found, _ = nnls(
            np.vstack(sums) * weight[:, None], counts * weight, maxiter=50 * len(leaves)
        )
        return np.asarray(np.cumsum(found) * total / max(found.sum(), 1e-9))


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
) -> Iterator[Level]:
    """Each level combined with all below it, coarsest first."""
    found = [(noisy[-1].astype(np.float64), np.full(len(noisy[-1]), variances[-1]))]
    for level in range(len(noisy) - 2, -1, -1):
        found.append(combine(noisy[level], variances[level], *found[-1], starts[level + 1]))
    return ((*each, start) for each, start in zip(found[::-1], starts, strict=True))


def tilted(design: Design, tilt: float) -> Design:
    """The design with each level's share times tilt per level down: below 1 favours the top."""
    weights = [float(s) * tilt**i for i, s in enumerate(design.shares)]
    _, *shares = (Fraction(round(w / sum(weights) * 1000), 1000) for w in weights)
    return replace(design, shares=(Fraction(1) - sum(shares), *shares))


def trimmed_error(design: Design, *, mechanism: type[Mechanism]) -> float:
    """Return the mean squared error of the cuts before bins 0 … K - 1, in units of `Design`."""
    starts = families(design.bins, design.branching)
    variances = [float(share) ** -mechanism.price.power for share in design.shares]
    return float(CutError.of_tree(starts, variances).cuts()[:-1].mean())
