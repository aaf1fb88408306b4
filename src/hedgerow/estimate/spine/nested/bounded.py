"""One sum shared out within bounds: fractions, and whole counts.

    minimise Σ (x_i - t_i)² / s_i  over low <= x <= high with Σ x = total.

The solution is ``x_i = clip(t_i + λ s_i, low_i, high_i)`` for the λ at which it has the sum. Over
whole counts it is ``clip(floor(t_i + λ s_i + 1/2), low_i, high_i)``: a unit that raises cell i from
k - 1 to k costs ``(k - 1/2 - t_i) / s_i``, and those that cost at most λ are taken. Of units that
cost the same, those that a hash chooses are (`hedgerow.estimate.families.units`).
"""

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.families.units import receives_leftover_unit
from hedgerow.kernels import kernel

NEWTON = 30
"""Steps after which the search for λ bisects: it ends on any family."""

STEPS = 200
"""Steps at most; bisection needs some 60 within one power of two."""

BoundedFamily = tuple[Float64, Float64, Int64, Int64]
"""t, float64 (cells), records; s, float64 (cells), above 0; low and high, int64 (cells)."""


@kernel
def fill_between(family: BoundedFamily, total: float, x: Float64) -> float:
    """Write the fractional solution to x; return λ.

    Args:
        family: of at least one cell.
        total: between the sums of low and of high.
        x: float64 (cells), records.
    """
    t, s, low, high = family
    lower, upper, level, width = -np.inf, np.inf, 0.0, 2.0**-52
    for step in range(STEPS):
        filled, rising, falling, up, down = _survey(family, level)
        # The sum rises with the level; slopes and corners are those on the side of the gap.
        gap = total - filled
        if abs(gap) <= 1e-12 * (1.0 + total):
            break
        if gap > 0.0:
            lower, slope, corner = level, rising, up
        else:
            upper, slope, corner = level, falling, down
        after = level + gap / slope if slope > 0.0 else corner
        # A step that leaves the bracket, or that takes long: its middle, or further out.
        if not lower < after < upper or (step > NEWTON and step % 2 == 0):
            width *= 4.0
            after = _inside(lower, upper, width * (1.0 + abs(level)))
            if after <= lower or after >= upper:
                break
        level = after
    for i in range(len(t)):
        x[i] = min(max(t[i] + level * s[i], float(low[i])), float(high[i]))
    return level


@kernel
def _inside(lower: float, upper: float, step: float) -> float:
    """Return the middle of a bracket, or a step beyond the end that it has."""
    if np.isinf(upper):
        return lower + step
    if np.isinf(lower):
        return upper - step
    return lower + (upper - lower) / 2.0


@kernel
def _survey(family: BoundedFamily, level: float) -> tuple[float, float, float, float, float]:
    """Return the sum at a level, its slopes to the right and left, and the next corners there."""
    t, s, low, high = family
    filled, rising, falling, up, down = 0.0, 0.0, 0.0, np.inf, -np.inf
    for i in range(len(t)):
        value = t[i] + level * s[i]
        filled += min(max(value, float(low[i])), float(high[i]))
        # A cell at its bound moves from the level on at which it leaves it.
        if value < low[i]:
            up = min(up, (low[i] - t[i]) / s[i])
        elif value < high[i]:
            rising += s[i]
        if value > high[i]:
            down = max(down, (high[i] - t[i]) / s[i])
        elif value > low[i]:
            falling += s[i]
    return filled, rising, falling, up, down


@kernel
def share_between(family: BoundedFamily, total: int, level: float, hashed: int, y: Int64) -> None:
    """Write whole counts of exactly the sum, within the bounds, to y.

    Args:
        family: of at least one cell; t within ±2^42.
        total: between the sums of low and of high.
        level: a guess of λ, as `fill_between` returns.
        hashed: a hash of the family.
        y: int64 (cells), records.
    """
    lower, upper = -np.inf, np.inf
    step = 0.25 / np.max(family[1])
    for _ in range(STEPS):
        # Units that cost at most the level: too few, exactly, or too many.
        missing = total - _units_at(family, level, y)
        if missing == 0:
            return
        if missing > 0:
            lower = level
        else:
            upper = level
        after = _inside(lower, upper, step)
        step *= 2.0
        if after <= lower or after >= upper:
            break
        level = after
    # No double lies between: the units that are still to be had cost about the upper level.
    missing = total - _units_at(family, lower, y)
    _hand_out(family, missing, upper, hashed, y)


@kernel
def _units_at(family: BoundedFamily, level: float, y: Int64) -> int:
    """Write the counts whose units cost at most the level; return their sum."""
    t, s, low, high = family
    total = 0
    for i in range(len(t)):
        # k units of a cell cost at most λ if (k - 1/2 - t) / s <= λ.
        value = np.floor(t[i] + level * s[i] + 0.5)
        if value <= low[i]:
            y[i] = low[i]
        elif value >= high[i]:
            y[i] = high[i]
        else:
            y[i] = int(value)
        total += y[i]
    return total


@kernel
def _hand_out(family: BoundedFamily, missing: int, level: float, hashed: int, y: Int64) -> None:
    """Give units that cost just the level, evenly; then any that are left where there is room."""
    t, s, _, high = family
    is_next = (y < high) & (t + level * s + 0.5 >= y + 1)
    ties = int(is_next.sum())
    units = min(missing, ties)
    for place, cell in enumerate(np.flatnonzero(is_next)):
        if receives_leftover_unit(place, hashed, units, ties):
            y[cell] += 1
            missing -= 1
    # Whatever rounding left, where there is room.
    for i in range(len(t)):
        units = max(min(missing, high[i] - y[i]), 0)
        y[i] += units
        missing -= units
