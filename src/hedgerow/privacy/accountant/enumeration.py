"""δ(ε) of a few losses with two atoms each, by all outcomes of one half against those of the other.

Laplace noise on a count that moves by one record, and a pair, lose ±ε_i. With p_a, p_b the chances
of the sums a, b of either half of the losses, and q_b = p_b e^(-b),

    δ(ε) = P[L = ∞] + P[L < ∞] Σ_a p_a (Σ_{b > ε-a} p_b - e^(ε-a) Σ_{b > ε-a} q_b),

one search of a sorted list for each a: n losses take 2^(n/2) steps, fewer where some are alike.

Round-off: `docs/proofs/accounting.md`, "δ(ε) by enumeration".
"""

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from hedgerow.arrays import Float64, FloatPair, float64
from hedgerow.declared import frozen
from hedgerow.noise.loss import Bounds, LaplaceLoss, Loss, Losses, PairLoss
from hedgerow.privacy.accountant.lattice_masses import ROUND, infinite

MOST_OUTCOMES = 1 << 17
"""Of a half."""

LARGEST_LOSS, MOST_COINS = 300.0, 500
"""Of all together, and how many: no chance of an outcome, e^-300 2^-500 or more, underflows."""

WIDEST = 1e-7
"""Of certified bounds, relative: wider ones are not reported."""

Coin = tuple[float, int]
"""ε_i and how often."""


@frozen(eq=False)
class _Halves:
    """Sums of losses with their chances: of one half as they come, of the other from each on.

    Attributes:
        sums, chances: float64 (outcomes): a and p_a.
        others: float64 (outcomes): b, ascending.
        above, above_null: float64 (outcomes + 1): Σ of p_b and of q_b from each b on.
        extent: Σ ε_i times.
        coins: how many losses.
    """

    sums: Float64
    chances: Float64
    others: Float64
    above: Float64
    above_null: Float64
    extent: float
    coins: int


def delta_bounds(losses: Losses, epsilon: float) -> Bounds | None:
    """Return certified bounds of δ(ε), at most 1e-7 apart relatively.

    Returns:
        None where a loss has more than two atoms, or outcomes are too many or too close to ε.
    """
    halves = _halves(losses)
    if halves is None:
        return None
    first = np.searchsorted(halves.others, epsilon - halves.sums, side="right")
    above = halves.above[first]
    null = halves.above_null[first]
    # Where any b is above ε - a, that is at most their extent.
    null = null * np.exp(np.where(above > 0, epsilon - halves.sums, 0.0))
    value = float(halves.chances @ (above - null))
    size = float(halves.chances @ (above + null))
    # Each loss is right to `moved`, by which (1 - e^(ε-l))₊ moves at most where l > ε - moved.
    moved = 8 * ROUND * (halves.coins + 4) * (halves.extent + abs(epsilon) + 1)
    near = np.searchsorted(halves.others, epsilon - halves.sums - 2 * moved, side="right")
    steps = halves.sums.size + halves.others.size + 100 * (halves.coins + 1)
    units = steps + 10 * (halves.extent + abs(epsilon))
    error = 1.01 * (units * ROUND * size + moved * float(halves.chances @ halves.above[near]))
    never = infinite(losses)
    finite = 1 - never
    doubt = 20 * ROUND
    low = (never + finite * max(value - error, 0.0)) * (1 - doubt)
    high = (never + finite * (value + error)) * (1 + doubt) + 1e-300
    return (low, min(high, 1.0)) if high - low <= WIDEST * low else None


@lru_cache(maxsize=4)
def _halves(losses: Losses) -> _Halves | None:
    """Return the outcomes of both halves of about equal numbers; None if there are too many."""
    coins = [coin for loss, times in losses if (coin := _coin(loss, times)) is not None]
    extent = sum(rate * times for rate, times in coins)
    outcomes = sum(math.log(times + 1) for _, times in coins)
    number = sum(times for _, times in coins)
    if len(coins) < len(losses) or extent > LARGEST_LOSS or number > MOST_COINS:
        return None
    if not coins or outcomes > 2 * math.log(MOST_OUTCOMES):
        return None
    halves: tuple[list[Coin], list[Coin]] = ([], [])
    for coin in sorted(coins, key=lambda coin: -coin[1]):
        min(halves, key=lambda half: sum(math.log(times + 1) for _, times in half)).append(coin)
    sums, chances = _outcomes(halves[0])
    others, theirs = _outcomes(halves[1])
    order = np.argsort(others)
    others, theirs = others[order], theirs[order]
    above, above_null = (
        np.append(np.cumsum(part[::-1])[::-1], 0.0) for part in (theirs, theirs * np.exp(-others))
    )
    return _Halves(sums, chances, others, above, above_null, extent, number)


def _coin(loss: Loss, times: int) -> Coin | None:
    if isinstance(loss, PairLoss):
        return float(loss.epsilon), times
    if isinstance(loss, LaplaceLoss) and loss.shift == 1:
        return float(1 / loss.scale), times
    return None


def _outcomes(coins: Sequence[Coin]) -> FloatPair:
    """Return all sums of losses, and their chances."""
    sums = np.zeros(1)
    chances = np.ones(1)
    for rate, times in coins:
        ups = np.arange(times + 1)
        ways = float64([math.comb(times, k) for k in ups.tolist()])
        downs = math.exp(-rate)
        each = ways * (1 / (1 + downs)) ** ups * (downs / (1 + downs)) ** (times - ups)
        sums = np.add.outer(sums, rate * (2.0 * ups - times)).ravel()
        chances = np.multiply.outer(chances, each).ravel()
    return sums, chances
