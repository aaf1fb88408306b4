"""The search over ordered integer factorisations: bound sets of factors first, then try orders.

A design with the product K̄ ≥ K in which some factor could be one less is beaten by that smaller
tree. So only *minimal* sets of factors matter: sorted, the last is ⌈K / the others⌉. All of them
have K̄ < 2K. They are walked depth first, smallest factor first.

The error of a design is about ``(Σ g(n_i))^{power + 1}``, where ``g(n) = (a c)^{1/(power + 1)}`` is
what a level costs deep in a large tree (c = 1 - 1/n with least squares and 1 without; the top level
has its own a, and c = 1). For cuts and quantiles that is exact or a lower bound, except for pure ε
with least squares, where neighbouring levels trade a little; for ranges, upper levels share some
error. There ``SLACK`` widens the search. A walk ends where even the best rate of cost a log-leaf,
``min g(n)/log n``, cannot bring it within the best design known. What remains is judged exactly,
and the order of the factors, which matters little, is improved by exchanges.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from hedgerow.distribution.branching_error import best_shares, level_coefficients

Factors = tuple[int, ...]
WIDEST = 4096
MANY_LEAVES = 1 << 20
SLACK = 0.02
ROUNDING = 1e-9
ORDER_GAIN = 0.03
MOST_ORDERED = 300


@dataclass(frozen=True, slots=True)
class Costs:
    """What a design is judged by, as numbers the kernels take.

    Attributes:
        power: 2 where noise variances are ∝ 1/share² (pure ε), 1 where ∝ 1/share (zCDP).
        combine: least squares over the tree rather than covering sums.
        ranges: all ranges rather than cuts.
        quantiles: float64: fractions of the leaves where the cuts lie; empty for all cuts.
    """

    power: int
    combine: bool
    ranges: bool
    quantiles: NDArray[np.float64]

    @property
    def is_bounded(self) -> bool:
        """Whether `top` and the sum of `deep` never exceed the (power + 1)-th root of the error."""
        return not self.ranges and not (self.combine and self.power == 2)

    def error(self, branching: Factors) -> tuple[float, NDArray[np.float64]]:
        """The least mean squared error of a tree, and the shares that reach it."""
        factors = np.array(branching, dtype=np.int64)
        coefficients, shares = np.empty(len(factors)), np.empty(len(factors))
        level_coefficients(factors, self.combine, self.ranges, self.quantiles, coefficients)
        error = best_shares(factors, coefficients, self.power, self.combine, shares)
        return float(error), shares

    def deep(self, n: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a level of families of n costs far from the root and the leaves."""
        coefficients = (n - 1) * (2 if self.ranges else 1) / (6 if self.combine else 2)
        kept = 1 - 1 / n if self.combine else np.ones_like(n)
        return np.asarray((coefficients * kept) ** (1 / (self.power + 1)))

    def top(self, n: int) -> float:
        """What the top level costs, over many leaves."""
        found = np.empty(2)
        pair = np.array([n, MANY_LEAVES])
        level_coefficients(pair, self.combine, self.ranges, self.quantiles, found)
        return float(max(found[0], 0.0) ** (1 / (self.power + 1)))


def best_order(bins: int, costs: Costs, *, padded: bool) -> Factors:
    """The branching factors of least error, ordered from the root."""
    start = _even_start(bins, costs) if padded else (bins,)
    root = 1 / (costs.power + 1)
    slack = 0.0 if costs.is_bounded else SLACK
    limit = _error_of(start, costs) ** root * (1 + slack + ROUNDING)
    found = [(_error_of(factors, costs), factors) for factors in _sets(bins, costs, limit, padded)]
    found = sorted([*found, (_error_of(start, costs), start)])[:MOST_ORDERED]
    worth = [factors for error, factors in found if error <= found[0][0] * (1 + ORDER_GAIN)]
    return min(_ordered(tuple(sorted(factors)), costs) for factors in worth)[1]


def _error_of(factors: Factors, costs: Costs) -> float:
    return costs.error(factors)[0]


def _even_start(bins: int, costs: Costs) -> Factors:
    """The best tree of equal factors, the top one no wider than it must be."""
    trees = [(bins,)]
    for levels in range(2, bins.bit_length()):
        width = math.ceil(bins ** (1 / levels))
        others = width ** (levels - 1)
        if 2 * others <= bins:
            trees.append((-(-bins // others),) + (width,) * (levels - 1))
    return min(trees, key=lambda tree: _error_of(tree, costs))


def _sets(bins: int, costs: Costs, limit: float, padded: bool) -> Iterator[Factors]:  # noqa: FBT001
    """The top factor and, sorted, the others: all that may cost at most the limit."""
    n = np.arange(2.0, min(bins, WIDEST) + 1)
    deep = costs.deep(n)
    rate = float((deep / np.log(n)).min())
    table = [np.inf, np.inf, *deep.tolist()]

    def cost(n: int) -> float:
        return table[n] if n < len(table) else float(costs.deep(np.array([float(n)]))[0])

    def walk(product: int, spent: float, chosen: Factors) -> Iterator[Factors]:
        n = chosen[-1] if len(chosen) > 1 else 2
        last = -(-bins // product)
        if last >= n and (padded or bins % product == 0) and spent + cost(last) <= limit:
            yield (*chosen, last)
        while product * n * (n - 1) < bins:
            reach = spent + cost(n) + rate * math.log(bins / (product * n))
            if reach <= limit and (padded or bins % (product * n) == 0):
                yield from walk(product * n, spent + cost(n), (*chosen, n))
            n += 1

    yield (bins,)
    for top in range(2, min(-(-bins // 2), WIDEST) + 1):
        spent = costs.top(top)
        if spent + rate * math.log(bins / top) <= limit and (padded or bins % top == 0):
            yield from walk(top, spent, (top,))


def _ordered(factors: Factors, costs: Costs) -> tuple[float, Factors]:
    """The best order that exchanges of two factors lead to, with its error."""
    best = (_error_of(factors, costs), factors)
    while True:
        trials = {_exchange(best[1], i, j) for i, j in combinations(range(len(factors)), 2)}
        better = min(((_error_of(trial, costs), trial) for trial in trials), default=best)
        if better[0] >= best[0]:
            return best
        best = better


def _exchange(factors: Factors, i: int, j: int) -> Factors:
    changed = list(factors)
    changed[i], changed[j] = changed[j], changed[i]
    return tuple(changed)
