"""What one would write without Hedgerow's estimators, and whether its answers are as good.

- Algorithm 4 of Boninsegna & Silvestri, in NumPy, as printed; for Chebyshev.
- HiGHS through scipy.optimize.milp, the generic integer solver of their TDA_ℓ∞; for Chebyshev.
- Sort, water-fill and round in NumPy: the usual real projection, made integer by rounding and
  handing the rest to the largest remainders; for Euclidean. The same optimum, up to ties.
- cvxpy with Clarabel: the same real projection as a quadratic program, built once for each size of
  family and solved with new parameters; for Euclidean.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from hedgerow.arrays import Array, Float64, Int64

Peer = Callable[[Int64, int], Array]

CVXPY, HIGHS = "cvxpy (Clarabel)", "milp (HiGHS)"
ALGORITHM_4, SORT = "algorithm 4", "sort and round"
OURS_FOR = {
    ALGORITHM_4: "chebyshev",
    HIGHS: "chebyshev",
    SORT: "euclidean",
    CVXPY: "euclidean",
}
"""The estimator that each peer stands beside."""
LARGEST_PROGRAM = 100


def peers_for(cvxpy: Any, size: int) -> dict[str, Peer]:
    """By name; the slow integer program for small families alone, cvxpy where it is installed."""
    found: dict[str, Peer] = {ALGORITHM_4: algorithm_4, SORT: sort_and_round}
    if size <= LARGEST_PROGRAM:
        found[HIGHS] = integer_program
    if cvxpy is not None:
        found[CVXPY] = quadratic_program(cvxpy, size)
    return found


def algorithm_4(x: Int64, c: int) -> Int64:
    """IntOpt∞ as the paper prints it, vectors in NumPy, running sums instead of new ones."""
    z = np.maximum(-((int(x.sum()) - c) // len(x)), -x)
    t = int(np.abs(z).max())
    order = np.argsort(x, kind="stable")
    order = order[z[order] > -x[order]]
    surplus = int(z.sum() + x.sum()) - c
    j = 0
    while surplus > 0:
        i = order[j]
        lowered = max(int(z[i]) - surplus, -int(x[i]), -t)
        surplus -= int(z[i]) - lowered
        z[i] = lowered
        j = (j + 1) % len(order)
        if j == 0 and surplus > 0:
            order = order[z[order] > -x[order]]
            t += max(1, surplus // len(order))
    return np.asarray(x + z, dtype=np.int64)


def integer_program(x: Int64, c: int) -> Int64:
    """Equation 12 of the paper handed to HiGHS: variables z and their largest size."""
    size = len(x)
    ones = np.ones((size, 1))
    rows = [
        LinearConstraint(np.hstack([np.eye(size), ones]), lb=0),
        LinearConstraint(np.hstack([np.eye(size), -ones]), ub=0),
        LinearConstraint(np.append(np.ones(size), 0), c - x.sum(), c - x.sum()),
    ]
    bounds = Bounds(np.append(-x, 0), np.inf)
    found = milp(np.append(np.zeros(size), 1), constraints=rows, bounds=bounds, integrality=1)
    solution: Int64 = x + np.rint(found.x[:-1]).astype(np.int64)
    return solution


def sort_and_round(x: Int64, c: int) -> Int64:
    """The real projection by sorting, rounded down; the largest remainders get the rest."""
    falling = np.sort(x)[::-1]
    levels = (np.cumsum(falling) - c) / np.arange(1, len(x) + 1)
    real = np.maximum(x - (levels[np.nonzero(falling > levels)[0][-1]] if c else falling[0]), 0)
    y: Int64 = np.floor(real).astype(np.int64)
    rest = c - int(y.sum())
    if rest:
        y[np.argsort(y - real, kind="stable")[:rest]] += 1
    return y


def quadratic_program(cvxpy: Any, size: int) -> Peer:
    """min ‖y - x‖² with y ≥ 0 and Σ y = c, for families of one size."""
    x = cvxpy.Parameter(size)
    c = cvxpy.Parameter()
    y = cvxpy.Variable(size)
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(y - x)), [y >= 0, cvxpy.sum(y) == c])

    def solved(noisy: Int64, total: int) -> Float64:
        x.value, c.value = noisy.astype(np.float64), float(total)
        program.solve(solver=cvxpy.CLARABEL)
        found: Float64 = y.value
        return found

    return solved


def agree(name: str, found: Int64, peer: Array, x: Int64) -> bool:
    """Whether a peer's answer is as good as ours, in the measure it shares with us."""
    if name == ALGORITHM_4:
        return bool((found == peer).all())
    if name == HIGHS:
        return int(abs(found - x).max()) == int(abs(peer - x).max())
    if name == SORT:
        return int(((found - x) ** 2).sum()) == int(((peer - x) ** 2).sum())
    return float(abs(found - peer).max()) < 1.01
