"""Minima on the simplex of smooth functions F that are homogeneous of degree -1 or -2."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ACCURACY = 1e-11
"""How small slopes must become, in units of F."""

Function = Callable[[Floats], tuple[float, Floats]]


def multiplied(objective: Function, y: Floats, power: int, times: int = 8) -> Floats:
    """A few steps y_t ← y_t (-∂F/∂y_t)^(1/(power+1)), which are exact where F is separable.

    The multiplicative algorithm of optimal design (Silvey, Titterington & Torsney 1978). It only
    finds a good beginning; no rate or monotonicity is relied on.
    """
    for _ in range(times):
        y = y * np.maximum(-objective(y)[1], 0.0) ** (1 / (power + 1))
        y = y / y.sum()
    return y


def descended(objective: Function, y: Floats, power: int) -> tuple[float, float, Floats]:
    """A stationary point of F on the simplex by projected Newton steps: (F, gap, y).

    The gap is max_t (-∂F/∂y_t) - Σ_t y_t (-∂F/∂y_t): no convex F is lower than F - gap anywhere.

    F has degree -power, so its minima on the simplex are, but for scale, those of F/power + Σy on
    y ≥ 0 (Bertsekas 1982 for such bounds). Second derivatives are differences of the gradient.
    """
    scale = objective(y)[0]

    def lifted(y: Floats) -> tuple[float, Floats]:
        value, gradient = objective(y)
        return value / scale / power + y.sum(), gradient / scale / power + 1

    value, gradient = lifted(y)
    for _ in range(100):
        distance = _distance(y, gradient)
        if distance < ACCURACY:
            break
        step = _newton_step(lifted, y, gradient)
        for halvings in range(40):
            ahead = np.maximum(y + step / 2**halvings, 0.0)
            found, slope = lifted(ahead)
            # At the bottom F is flat to the last bit; there the slopes tell.
            is_level = found <= value * (1 + 1e-13) and _distance(ahead, slope) < distance / 2
            if is_level or found <= value + 1e-4 * float(gradient @ (ahead - y)) < value:
                break
        else:
            break
        y, value, gradient = ahead, found, slope
    y = y / y.sum()
    value, gradient = objective(y)
    return value, float((-gradient).max() + y @ gradient), y


def _distance(y: Floats, gradient: Floats) -> float:
    """How far y is from a minimum on y ≥ 0: slopes that fall, and slopes of what is above 0."""
    return max(-float(gradient.min()), float(np.abs(gradient * y).max()))


def _newton_step(lifted: Function, y: Floats, gradient: Floats) -> Floats:
    """The step to the minimum of the quadratic model over what is not held at 0."""
    held = (y <= 1e-9 * y.sum()) & (gradient > 0)
    free = np.flatnonzero(~held)
    hessian = np.empty((len(free), len(free)))
    for row, t in enumerate(free):
        ahead = y.copy()
        ahead[t] += 1e-5 * max(y[t], 1e-5 * y.sum())
        hessian[row] = (lifted(ahead)[1] - gradient)[free] / (ahead[t] - y[t])
    curvatures, directions = np.linalg.eigh((hessian + hessian.T) / 2)
    curvatures = np.maximum(np.abs(curvatures), 1e-12 * np.abs(curvatures).max())
    step = -y
    step[free] = -directions @ ((directions.T @ gradient[free]) / curvatures)
    return step
