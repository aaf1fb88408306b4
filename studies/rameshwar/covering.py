"""Cumulative counts from the noisy counts of a tree over a range: covering sums, the paper's way.

These are the estimates of Rameshwar, Tandon & Sharma, to compare with: least squares over the whole
tree (`hedgerow.estimate.tree.least_squares`) is never worse. A tree has the factors n_1 … n_m, and
K bins that exist; level i has ⌈K / M_i⌉ nodes of M_i = n_{i+1} · … · n_m bins each, the last one
narrower. The total is public.

Errors are expected squared ℓ2 errors of the K cumulative counts, records²: N² times the paper's E₂,
for Laplace noise of scale 2/ε_i on level i (replace-one neighbours).
"""

from collections.abc import Sequence
from math import log, prod

import numpy as np

from hedgerow.arrays import Float64, Int64
from studies.rameshwar.trees import families, from_below

Counts = Int64 | Float64


def covering_sums(
    levels: Sequence[Counts], branching: Sequence[int], bins: int, total: int
) -> Float64:
    """Cumulative counts up to and with each bin: the sum over the left covering; float64 (K).

    The covering of the bins before a cut holds, at each level, the nodes that lie wholly before the
    cut and below a node that does not (Rameshwar, Lemma IV.1 and (5)). The last is the total.

    Args:
        levels: for each level 1 … m its noisy counts (nodes that exist), records.
        branching: n_1 … n_m, coarsest first, at least 2 each.
        bins: K.
        total: N, records.
    """
    result = _covered(levels, branching, bins, 1)
    result[-1] = total
    return result


def right_covering_sums(levels: Sequence[Counts], branching: Sequence[int], bins: int) -> Float64:
    """Counts behind each bin: the sum over the right covering (Lemma B.1); float64 (K), last 0."""
    return _covered(levels, branching, bins, -1)


def _covered(levels: Sequence[Counts], branching: Sequence[int], bins: int, side: int) -> Float64:
    """The sum over the covering before each cut (side 1) or behind it (-1)."""
    widths = prod(branching) // np.cumprod(branching)
    result = np.zeros(bins)
    cuts = side * np.arange(1, bins + 1)
    for counts, width, n in zip(levels, widths, branching, strict=True):
        before = np.concatenate([[0.0], np.cumsum(counts, dtype=np.float64)])
        above = side * (cuts // (width * n)) * n
        here, there = before[np.minimum([side * (cuts // width), above], len(counts))]
        result += side * (here - there)
    return result


def refined_from_below(
    levels: Sequence[Counts],
    branching: Sequence[int],
    bins: int,
    variances: Sequence[float],
) -> list[Float64]:
    """Each node's count combined with the sum of its children's, from below; float64 a level.

    Step 1 of Rameshwar, Appendix B, (11): weights are inverse variances, ``α = v_i⁻¹ / (v_i⁻¹ +
    (Σ children's variances)⁻¹)``, here for any budgets and for narrower last families.

    Args:
        levels: as for `covering_sums`.
        branching: as there.
        bins: K.
        variances: noise variance of each level, records², positive.
    """
    return [estimate for estimate, _, _ in from_below(levels, variances, families(bins, branching))]


def refined_covering_sums(
    levels: Sequence[Counts],
    branching: Sequence[int],
    bins: int,
    total: int,
    variances: Sequence[float],
) -> Float64:
    """Cumulative counts by the paper's two-step refinement (Appendix B, (11)–(14)); float64 (K).

    The mean of the left covering and of the total less the right covering, both of counts that were
    refined from below.
    """
    refined = refined_from_below(levels, branching, bins, variances)
    right = right_covering_sums(refined, branching, bins)
    return np.asarray((covering_sums(refined, branching, bins, total) + total - right) / 2)


def range_queries_error(bins: int, epsilon: float) -> float:
    """``2 (K - 1)³ / ε²``, noise on every cumulative count (Lemma III.1), records²."""
    return 2 * (bins - 1) ** 3 / epsilon**2


def covering_error(branching: Sequence[int], epsilons: Sequence[float]) -> float:
    """``4K Σ (n_i - 1) / ε_i²`` of covering sums, K = Π n_i (Theorem IV.1), records².

    Of one level they are the sums of a noisy histogram (Lemma III.2).
    """
    levels = zip(branching, epsilons, strict=True)
    return 4 * prod(branching) * sum((n - 1) / epsilon**2 for n, epsilon in levels)


def equal_factors_error(bins: int, factor: float, epsilon: float) -> float:
    """``4K (ln K)³ (β - 1) / (ε² (ln β)³)``, factors β, equal budgets (Theorem IV.3), records²."""
    return 4 * bins * log(bins) ** 3 * (factor - 1) / (epsilon**2 * log(factor) ** 3)


def refined_variance(level: int, height: int, factor: int, epsilon: float) -> float:
    """``(8/ε̂²) / Σ_{j=0}^{m-i} β^{-j}``, ε̂ = ε/m: a node of level i of m from below, records².

    Proposition B.1, where the paper's m is one more.
    """
    return 8 * (height / epsilon) ** 2 / sum(float(factor) ** -j for j in range(height - level + 1))


def refined_error(factor: int, height: int, epsilon: float) -> float:
    """``2K (β - 1)/ε̂² Σ_i (Σ_{j=0}^{m-i} β^{-j})⁻¹`` after both steps (Lemma IV.4), records²."""
    variance = sum(refined_variance(i, height, factor, epsilon) for i in range(1, height + 1))
    return float(factor) ** height * (factor - 1) * variance / 4
