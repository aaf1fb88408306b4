"""An allocation under which no family of a depth is much less precise than another.

Measured from survivors, the variance of a node is linear in the variances v of the measurements:
``V = Σ_s c_s v_s`` with coefficients of the family sizes above it
(`hedgerow.plan.allocation.fairness`). So "no node of a depth has more than r times the variance of
another" is a cone in v, whatever the budget: ratios depend on how it is shared and never on how
large it is. Whether a ratio can be reached is a linear program, and the least one is found by
bisection.

Of all fair shares those are taken that minimise ``Σ_t importance_t · mean V_t``. With
v_t ∝ Δ₂²/(s_t ρ) (discrete Gaussian) or (Δ₁/(s_t ε))² (discrete Laplace, for large scales), the
shares are s_t ∝ 1/v_t or 1/√v_t; that they sum to 1 is a convex constraint in v, and everything
else is linear: the optimum is global.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy.optimize import linprog, minimize

from hedgerow.arrays import Float64
from hedgerow.errors import PlanError, as_list, check_type
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.plan.allocation.fairness import Classes, along, tree_classes
from hedgerow.plan.depths import Survivors
from hedgerow.plan.prior import Prior

WIDEST = 1e4
"""A measurement more than so many times as variable as another counts as out of reach."""

_SLACK = 1e-6  # shares are rounded to nine digits; the ratio must hold for them
_MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class Fair:
    """The least mean variance at which nobody is ``ratio`` times less precise than others.

    At each depth the largest variance of a node is at most ``ratio`` times the least above 0. For
    noise measured from survivors, where variances are those of large counts.

    Attributes:
        ratio: at least 1.
        importance: for each measurable depth what its mean variance counts for; equal unless given.

    Raises:
        PlanError: a ratio below 1, or importance that is negative or nowhere above 0.
    """

    prior: ClassVar[Prior | None] = None
    ratio: float
    importance: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_type("a ratio of variances", self.ratio, Real, "a number", PlanError)
        if not 1 <= self.ratio < float("inf"):
            raise PlanError(f"a ratio of variances must be at least 1 and finite, got {self.ratio}")
        given = self.importance
        if given is not None:
            for number in as_list("importance", given, "numbers", PlanError):
                check_type("an importance", number, Real, "a number", PlanError)
        if given is not None and not (min(given, default=-1) >= 0 and 0 < sum(given) < np.inf):
            raise PlanError(
                f"importance must be numbers of at least 0, not all 0, got {list(given)}"
            )

    @property
    def name(self) -> str:
        """``fair``."""
        return "fair"

    def shares(self, problem: Problem) -> tuple[Fraction, ...]:
        """Return shares as `fair_shares`."""
        return fair_shares(problem, self.ratio, self.importance)


def fair_shares(
    problem: Problem, ratio: float, importance: Sequence[float] | None = None
) -> tuple[Fraction, ...]:
    """Return the shares of `Fair`, one a measurable depth.

    Raises:
        PlanError: no shares reach the ratio (the message says which ratio can be reached), all
            nodes are measured, or importance for more or fewer depths.
    """
    wanted = np.ones(len(problem.depths)) if importance is None else np.array(importance)
    if len(wanted) != len(problem.depths):
        raise PlanError(
            f"importance must be one number a measurable depth ({'; '.join(problem.cuboids)}), "
            f"got {len(wanted)}"
        )
    rows, mean = _coefficients(problem)
    costs = _costs(problem)
    v = _reachable(rows, costs, ratio / (1 + _SLACK))
    if v is None:
        reached = least_ratio(problem)
        raise PlanError(
            f"no shares keep every family within {ratio:g} times the variance of another; the "
            f"smallest ratio they can reach is {reached:.6g}"
        )
    power = 1 / problem.mechanism.price.power
    found = _cheapest(rows, costs, wanted @ mean, (ratio / (1 + _SLACK), v), power)
    shares = (costs / found) ** power
    return _rounded(shares / shares.sum())


def least_ratio(problem: Problem) -> float:
    """Return the smallest ratio that shares can reach, to about 1e-7 from above.

    Raises:
        PlanError: all nodes are measured.
    """
    rows, _ = _coefficients(problem)
    costs = _costs(problem)
    low, high = 1.0, 1 + 1e-9
    while _reachable(rows, costs, high) is None:
        low, high = high, 1 + (high - 1) * 16
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (middle, high) if _reachable(rows, costs, middle) is None else (low, middle)
    return high * (1 + _SLACK)


def _coefficients(problem: Problem) -> tuple[list[Float64], Float64]:
    """For each depth the distinct nonzero rows c; and the mean row of each measurable depth."""
    if not isinstance(problem.measure, Survivors):
        raise PlanError(
            "fair shares are known for noise measured from survivors; where all nodes are measured "
            "use another allocation and look at the fairness of the plan"
        )
    classes = tree_classes(problem.tree, subtrees=False)
    found = np.zeros((*classes.shape(0), len(problem.depths)))
    rows, means = [], []
    for t in range(problem.tree.depth + 1):
        if t:
            found = _below(classes, t, found)
        if t in problem.depths:
            found[..., problem.depths.index(t)] += _own_part(classes, t)
            nodes = classes.nodes(t)
            means.append(np.tensordot(nodes, found, nodes.ndim) / nodes.sum())
        distinct = np.unique(found.reshape(-1, found.shape[-1]), axis=0)
        rows.append(distinct[distinct.any(axis=1)])
    return [at for at in rows if len(at) > 1], np.array(means)


def _below(classes: Classes, depth: int, found: Float64) -> Float64:
    """Return what the parents' noise contributes: divided by n²."""
    axis, level = classes.refined(depth)
    n = along(level.siblings.astype(np.float64), axis, found.ndim)
    below: Float64 = np.take(found, level.parent, axis=axis) / n**2
    return below


def _own_part(classes: Classes, depth: int) -> Float64:
    """1 - 1/n of a measurement's own variance (1 at the root), spread over the other axes."""
    if depth == 0:
        return np.ones(classes.shape(0))
    axis, level = classes.refined(depth)
    return along(1 - 1 / level.siblings, axis, len(classes.shape(depth)))


def _costs(problem: Problem) -> Float64:
    """Return the variance that a share of 1 buys at each depth, but for a factor common to all."""
    power = problem.mechanism.price.power
    return np.array([problem.sensitivity(t) ** power for t in problem.depths])


def _reachable(rows: list[Float64], costs: Float64, ratio: float) -> Float64 | None:
    """Variances of one measurement (the least at 1) that keep the ratio; None if there are none.

    A linear program in v and a b_t a depth, with b_t <= c·v <= ratio b_t for all rows c.
    """
    if not rows:
        return costs
    depths = len(rows)
    below = [np.hstack([-at, _column(len(at), depths, i, 1.0)]) for i, at in enumerate(rows)]
    above = [np.hstack([at, _column(len(at), depths, i, -ratio)]) for i, at in enumerate(rows)]
    bounds = [*((1.0, WIDEST) for _ in costs), *((0, None) for _ in rows)]
    solved = linprog(
        np.ones(len(bounds)),
        A_ub=np.vstack(below + above),
        b_ub=np.zeros(2 * sum(map(len, rows))),
        bounds=bounds,
    )
    return np.array(solved.x[: len(costs)]) if solved.status == 0 else None


def _column(rows: int, depths: int, place: int, value: float) -> Float64:
    found = np.zeros((rows, depths))
    found[:, place] = value
    return found


def _cheapest(
    rows: list[Float64],
    costs: Float64,
    objective: Float64,
    limit: tuple[float, Float64],
    power: float,
) -> Float64:
    """The v with the least objective·v within the budget Σ (costs/v)^power <= 1 and the ratio.

    Pairs of rows enter as constraints when a solution breaks them, so that few ever do.

    Args:
        rows: the coefficients of each depth.
        costs: the variance that a share of 1 buys.
        objective: its coefficients.
        limit: the ratio, and a v that keeps it.
        power: 1 where variances are ∝ 1/share (ρ), 1/2 where ∝ 1/share² (ε).
    """
    ratio, start = limit
    start = start * ((costs / start) ** power).sum() ** (1 / power)
    scaled, cheap = [at * start for at in rows], costs / start

    def left(w: Float64) -> float:
        return 1 - float(((cheap / w) ** power).sum())

    def left_slope(w: Float64) -> Float64:
        slope: Float64 = power * (cheap / w) ** power / w
        return slope

    budget = {"type": "ineq", "fun": left, "jac": left_slope}
    gains = objective * start / (objective @ start)
    pairs: list[Float64] = []
    w = np.ones(len(costs))
    while True:
        fair = np.array(pairs).reshape(-1, len(costs))
        ratios = {"type": "ineq", "fun": lambda w, a=fair: a @ w, "jac": lambda _, a=fair: a}
        w = minimize(
            lambda w: float(gains @ w),
            np.ones(len(costs)),
            jac=lambda _: gains,
            bounds=[(1e-6, 1e6)] * len(costs),
            constraints=[budget, ratios] if pairs else [budget],
            method="SLSQP",
            options={"ftol": 1e-13, "maxiter": 500},
        ).x
        broken = [pair for at in scaled if (pair := _broken(at, w, ratio)) is not None]
        if not broken or len(pairs) > _MOST_PAIRS:
            found: Float64 = start * w
            return found
        pairs += broken


def _broken(rows: Float64, w: Float64, ratio: float) -> Float64 | None:
    """``ratio`` times the least row minus the largest, if w breaks that it is at least 0."""
    values = rows @ w
    least, most = rows[values.argmin()], rows[values.argmax()]
    if values.max() <= ratio * values.min() * (1 + _SLACK / 2):
        return None
    pair: Float64 = (ratio * least - most) / values.max()
    return pair


def _rounded(shares: Float64) -> tuple[Fraction, ...]:
    """Nine digits each, summing to exactly 1."""
    rounded = [Fraction(round(share * 10**9), 10**9) for share in shares]
    largest = int(shares.argmax())
    rounded[largest] += 1 - sum(rounded)
    return tuple(rounded)
