"""The search over ordered integer factorisations: bound sets of factors first, then try orders.

Minimal sets of factors are walked depth first, within a bound; then orders are improved by
exchanges. What a tree costs, its best shares and why the search is complete:
docs/proofs/distributions.md, "Trees over a numeric range".
"""

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from hedgerow.arrays import Float64, Int64, Sizes, int64
from hedgerow.declared import frozen
from hedgerow.kernels import kernel

MOST_STEPS = 2000
RESOLUTION = 1e-13


@kernel
def level_coefficients(
    branching: Int64,
    ranges: bool,  # noqa: FBT001 - a kernel has no keyword-only arguments
    quantiles: Float64,
    out: Float64,
) -> None:
    """Write a_i, float64 (levels): all cuts, all ranges, or the cuts at given quantiles."""
    above = 1.0  # Q_i: families of level i
    below = 1.0  # M_i: leaves below a node of level i
    for i in range(len(branching)):
        below *= branching[i]
    for i in range(len(branching)):
        n = float(branching[i])
        below /= n
        if i == 0 and len(quantiles) > 0:
            out[i] = _top_of_quantiles(n, below, quantiles)
        else:
            out[i] = (n - 1) * (n + below**-2) / (6 * n)
            if ranges:
                out[i] = 2 * out[i] - (n * n - 1) / (6 * n) / above
        above *= n


@kernel
def _top_of_quantiles(
    n: float,
    below: float,
    quantiles: Float64,
) -> float:
    total = 0.0
    for q in quantiles:
        end = n * min(q, 1 - q)  # how many children lie between the cut and the nearer end
        if end < 1:
            total += end * end * (1 - 1 / n)
        else:
            total += n * q * (1 - q) - (1 - below**-2) / 6
    return total / len(quantiles)


@kernel
def mean_error(
    branching: Int64,
    coefficients: Float64,
    shares: Float64,
    power: int,
) -> float:
    """Return ``Σ a_i/w_i`` with w from below."""
    total = 0.0
    precision = 0.0  # w of the level below
    for i in range(len(branching) - 1, -1, -1):
        carried = precision / branching[i + 1] if i + 1 < len(branching) else 0.0
        precision = shares[i] ** power + carried
        total += coefficients[i] / precision
    return total


@kernel
def best_shares(
    branching: Int64,
    coefficients: Float64,
    power: int,
    shares: Float64,
) -> float:
    """Write the shares of least error and return it; infinite where a level is best unmeasured.

    With power 1 the budget is linear in w: ``Σ p_i = Σ c_i w_i``, c_1 = 1 and c_i = 1 - 1/n_i
    below, so ``w_i ∝ sqrt(a_i/c_i)``. With power 2 see `_descend`. A tree whose best shares leave a
    level unmeasured is a lower tree with two factors multiplied, which the search meets on its own.
    """
    root = 1.0 / (power + 1)
    for i in range(len(branching)):
        # A level whose own error does not count is best left unmeasured.
        if coefficients[i] <= 0:
            return np.inf
        shares[i] = (coefficients[i] * _own_part(branching, i)) ** root
    if power == 2:
        measured = _descend(branching, coefficients, shares)
    else:
        measured = _subtract_carried(branching, shares)
    if not measured:
        return np.inf
    shares /= shares.sum()
    return mean_error(branching, coefficients, shares, power)


@kernel
def _own_part(branching: Int64, i: int) -> float:
    """Return c_i: the part of w_i that the level itself must bring, w_1 being that of the top."""
    # Each w_i saves the level above w_i / n_i, and the top has none above it.
    return 1.0 - 1.0 / branching[i] if i > 0 else 1.0


@kernel
def _subtract_carried(branching: Int64, shares: Float64) -> bool:
    """Replace ``sqrt(a_i c_i)`` by ``p_i ∝ w_i - w_{i+1}/n_{i+1}``; return if all are positive."""
    for i in range(len(branching)):
        shares[i] /= _own_part(branching, i)
    # From the top down: what each takes off is the w of the next level, and not yet its share.
    for i in range(len(branching) - 1):
        shares[i] -= shares[i + 1] / branching[i + 1]
    return bool(shares.min() > 0)


@kernel
def _descend(branching: Int64, coefficients: Float64, shares: Float64) -> bool:
    """Write the e_i that minimise ``Σ a_i/w_i + Σ e_i``, w_i = e_i² + w_{i+1}/n_{i+1}.

    As ``sqrt(p) = min_θ (p/θ + θ)/2``, the objective is the least over θ of a function that is
    convex in w, with its minimum at ``w_i = sqrt(2 a_i/(1/θ_i - 1/(n_i θ_{i-1})))``; then θ_i =
    sqrt(p_i). Each step lowers the objective. Scaling e shows that the same shares minimise
    ``Σ a_i/w_i`` at a fixed sum.
    """
    levels = len(branching)
    w = np.empty(levels)
    for i in range(levels):
        shares[i] *= 2.0 ** (1.0 / 3.0)
    for _ in range(MOST_STEPS):
        for i in range(levels):
            slope = 1.0 / shares[i]
            if i > 0:
                slope -= 1.0 / (branching[i] * shares[i - 1])
            if slope <= 0:  # the minimum is at p_i = 0: the level is best left unmeasured
                return False
            w[i] = np.sqrt(2.0 * coefficients[i] / slope)
        moved = 0.0
        for i in range(levels):
            carried = w[i + 1] / branching[i + 1] if i + 1 < levels else 0.0
            if w[i] <= carried:
                return False
            root = np.sqrt(w[i] - carried)
            moved = max(moved, abs(root / shares[i] - 1.0))
            shares[i] = root
        if moved < RESOLUTION:
            return True
    return True


Factors = Sizes
WIDEST = 4096
MANY_LEAVES = 1 << 20
SLACK = 0.02
ROUNDING = 1e-9
ORDER_GAIN = 0.03
MOST_ORDERED = 300


@frozen
class Costs:
    """What a design is judged by, as numbers the kernels take.

    Attributes:
        power: 2 where noise variances are ∝ 1/share² (pure ε), 1 where ∝ 1/share (zCDP).
        ranges: all ranges rather than cuts.
        quantiles: float64: fractions of the leaves where the cuts lie; empty for all cuts.
    """

    power: int
    ranges: bool
    quantiles: Float64

    @property
    def is_bounded(self) -> bool:
        """Whether `top` and the sum of `deep` never exceed the (power + 1)-th root of the error."""
        return not self.ranges and self.power != 2

    def error(self, branching: Factors) -> tuple[float, Float64]:
        """Return the least mean squared error of a tree, and the shares that reach it."""
        factors = int64(branching)
        coefficients = np.empty(len(factors))
        shares = np.empty(len(factors))
        level_coefficients(factors, self.ranges, self.quantiles, coefficients)
        error = best_shares(factors, coefficients, self.power, shares)
        return float(error), shares

    def deep(self, n: Float64) -> Float64:
        """Return what a level of families of n costs far from the root and the leaves."""
        coefficients = (n - 1) * (2 if self.ranges else 1) / 6
        return (coefficients * (1 - 1 / n)) ** (1 / (self.power + 1))

    def top(self, n: int) -> float:
        """Return what the top level costs, over many leaves."""
        coefficients = np.empty(2)
        pair = np.array([n, MANY_LEAVES])
        level_coefficients(pair, self.ranges, self.quantiles, coefficients)
        return float(max(coefficients[0], 0.0) ** (1 / (self.power + 1)))


def best_order(bins: int, costs: Costs) -> Factors:
    """Return the branching factors of least error, ordered from the root."""
    start = _even_start(bins, costs)
    root = 1 / (costs.power + 1)
    slack = 0.0 if costs.is_bounded else SLACK
    limit = _error_of(start, costs) ** root * (1 + slack + ROUNDING)
    sets = [start, *_sets(bins, costs, limit)]
    judged = sorted((_error_of(factors, costs), factors) for factors in sets)[:MOST_ORDERED]
    worth = [factors for error, factors in judged if error <= judged[0][0] * (1 + ORDER_GAIN)]
    return min(_ordered(tuple(sorted(factors)), costs) for factors in worth)[1]


def _error_of(factors: Factors, costs: Costs) -> float:
    return costs.error(factors)[0]


def _even_start(bins: int, costs: Costs) -> Factors:
    """Return the best tree of equal factors, the top one no wider than it must be."""
    trees = [(bins,)]
    for levels in range(2, bins.bit_length()):
        width = math.ceil(bins ** (1 / levels))
        others = width ** (levels - 1)
        if 2 * others <= bins:
            trees.append((-(-bins // others),) + (width,) * (levels - 1))
    return min(trees, key=lambda tree: _error_of(tree, costs))


def _sets(bins: int, costs: Costs, limit: float) -> Iterator[Factors]:
    """Return the top factor and, sorted, the others: all that may cost at most the limit."""
    n = np.arange(2.0, min(bins, WIDEST) + 1)
    deep = costs.deep(n)
    rate = float((deep / np.log(n)).min())
    table = [np.inf, np.inf, *deep.tolist()]

    def cost(n: int) -> float:
        return table[n] if n < len(table) else float(costs.deep(np.array([float(n)]))[0])

    def walk(product: int, spent: float, chosen: Factors) -> Iterator[Factors]:
        n = chosen[-1] if len(chosen) > 1 else 2
        last = -(-bins // product)
        if last >= n and spent + cost(last) <= limit:
            yield (*chosen, last)
        while product * n * (n - 1) < bins:
            least = spent + cost(n) + rate * math.log(bins / (product * n))
            if least <= limit:
                yield from walk(product * n, spent + cost(n), (*chosen, n))
            n += 1

    yield (bins,)
    for top in range(2, min(-(-bins // 2), WIDEST) + 1):
        spent = costs.top(top)
        if spent + rate * math.log(bins / top) <= limit:
            yield from walk(top, spent, (top,))


def _ordered(factors: Factors, costs: Costs) -> tuple[float, Factors]:
    """Return the best order that exchanges of two factors lead to, with its error."""
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
