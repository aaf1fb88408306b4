"""An allocation under which no family of a depth is much less precise than another.

Measured from survivors, the variance of a node is linear in the variances v of the measurements:
``V = Σ_s c_s v_s`` (`hedgerow.plan.allocation.fairness`). So a bound r on the ratio of variances
within a depth is a cone in v, whether it can be reached is a linear program, and the shares of
least ``Σ_t importance_t · mean V_t`` solve a convex one: docs/proofs.md, "Fair shares".
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
from hedgerow.plan.allocation.cube import CubeFacts, cuboid_shares
from hedgerow.plan.allocation.fair_cube import fair_cube_shares
from hedgerow.plan.allocation.fairness import Classes
from hedgerow.plan.cuboids import Survivors
from hedgerow.plan.prior import Prior

WIDEST = 1e4
"""The largest ratio of the variances of two measurements that is tried."""

_SLACK = 1e-6  # shares are rounded to nine digits; the ratio must hold for them
_MOST_PAIRS = 1000


@dataclass(frozen=True, slots=True)
class Fair:
    """The least mean variance at which no node is ``ratio`` times less precise than another.

    At each depth the largest variance of a node is at most ``ratio`` times the least above 0. Along
    a chain for noise measured from survivors, where variances are those of large counts; of a cube
    for ``All``, where they are those of the estimates under wide noise, and the least mean variance
    is not proved (`hedgerow.plan.allocation.fair_cube`).

    Attributes:
        ratio: at least 1.
        importance: the weight of each measurable depth's mean variance; equal unless given. A
            cube's cuboids have equal ones.

    Raises:
        PlanError: a ratio below 1, or importance that is negative or nowhere above 0.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 50, 5).axis([2, 3])])
        >>> plan = hr.make_plan(
        ...     tree, budget=hr.Rho(1), allocation=hr.Fair(1.25), measure=hr.Survivors()
        ... )
        >>> bool(hr.fairness(plan)["ratio"].max() <= 1.25)
        True
    """

    name: ClassVar[str] = "fair"
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

    def shares(self, problem: Problem) -> tuple[Fraction | None, ...]:
        """Return shares as `fair_shares`, or of a cube as `fair_cube_shares`."""
        if problem.is_cube:
            if self.importance is not None:
                raise PlanError("fair shares of a cube count its cuboids alike: no importance")
            facts = CubeFacts.of(problem)
            return problem.in_order(cuboid_shares(facts, fair_cube_shares(facts, self.ratio)))
        if problem.is_named:
            raise PlanError(
                "fair shares are for a chain or a cube; of named cuboids "
                'method = "optimal" with objective = "largest" makes the errors of cuboids alike'
            )
        return fair_shares(problem, self.ratio, self.importance)


def fair_shares(
    problem: Problem, ratio: float, importance: Sequence[float] | None = None
) -> tuple[Fraction, ...]:
    """Return the shares of `Fair`, one a measurable depth."""
    weights = np.ones(len(problem.depths)) if importance is None else np.array(importance)
    if len(weights) != len(problem.depths):
        raise PlanError(
            f"importance must be one number a measurable depth ({'; '.join(problem.names)}), "
            f"got {len(weights)}"
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
    least = _least_variances(rows, costs, weights @ mean, (ratio / (1 + _SLACK), v), power)
    shares = (costs / least) ** power
    return _rounded(shares / shares.sum())


def least_ratio(problem: Problem) -> float:
    """Return the smallest ratio that shares can reach, to about 1e-7 from above."""
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
    """Return each depth's distinct nonzero rows c, and the mean row of measurable depths."""
    if not isinstance(problem.measure, Survivors):
        raise PlanError(
            'fair shares need measure = "survivors"; where all nodes are measured use another '
            "allocation and look at the fairness of the plan"
        )
    classes = Classes.of(problem.tree, subtrees=False)
    coefficients = np.zeros((*classes.counts(0), len(problem.depths)))
    rows, means = [], []
    for t in range(problem.tree.depth + 1):
        own: Float64 = np.ones(1)
        if t:  # from the parents' noise 1/n², of a measurement's own 1 - 1/n
            axis, parent, siblings = classes.above(t)
            n = siblings.reshape([-1 if i == axis else 1 for i in range(coefficients.ndim)])
            coefficients = np.take(coefficients, parent, axis=axis) / n**2
            own = 1 - 1 / n[..., 0]
        if t in problem.depths:
            coefficients[..., problem.depths.index(t)] += own
            nodes = classes.nodes(t)
            means.append(np.tensordot(nodes, coefficients, nodes.ndim) / nodes.sum())
        distinct = np.unique(coefficients.reshape(-1, coefficients.shape[-1]), axis=0)
        rows.append(distinct[distinct.any(axis=1)])
    return [at for at in rows if len(at) > 1], np.array(means)


def _costs(problem: Problem) -> Float64:
    """Return the variance that a share of 1 buys at each depth, up to a common factor."""
    power = problem.mechanism.price.power
    return np.array([problem.sensitivity(t) ** power for t in problem.depths])


def _reachable(rows: list[Float64], costs: Float64, ratio: float) -> Float64 | None:
    """Return variances of one measurement (the least is 1) that keep the ratio, or None.

    A linear program in v and a b_t a depth, with b_t <= c·v <= ratio b_t for all rows c.
    """
    if not rows:
        return costs
    units = [np.tile(unit, (len(at), 1)) for at, unit in zip(rows, np.eye(len(rows)), strict=True)]
    below = [np.hstack([-at, unit]) for at, unit in zip(rows, units, strict=True)]
    above = [np.hstack([at, -ratio * unit]) for at, unit in zip(rows, units, strict=True)]
    bounds = [*((1.0, WIDEST) for _ in costs), *((0, None) for _ in rows)]
    solved = linprog(
        np.ones(len(bounds)),
        A_ub=np.vstack(below + above),
        b_ub=np.zeros(2 * sum(map(len, rows))),
        bounds=bounds,
    )
    return np.array(solved.x[: len(costs)]) if solved.status == 0 else None


def _least_variances(
    rows: list[Float64],
    costs: Float64,
    objective: Float64,
    limit: tuple[float, Float64],
    power: float,
) -> Float64:
    """Return the v of least objective·v within the ratio and the budget Σ (costs/v)^power <= 1.

    Pairs of rows enter as constraints when a solution breaks them, so that few ever do.

    ``limit`` is the ratio and a v that keeps it; ``power`` is 1 where variances are ∝ 1/share (ρ),
    1/2 where ∝ 1/share² (ε).
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
            return np.asarray(start * w)
        pairs += broken


def _broken(rows: Float64, w: Float64, ratio: float) -> Float64 | None:
    """Return ``ratio`` times the least row minus the largest where that is below 0 at w."""
    values = rows @ w
    least, most = rows[values.argmin()], rows[values.argmax()]
    if values.max() <= ratio * values.min() * (1 + _SLACK / 2):
        return None
    pair: Float64 = (ratio * least - most) / values.max()
    return pair


def _rounded(shares: Float64) -> tuple[Fraction, ...]:
    """Return the shares to nine digits, summing to exactly 1."""
    rounded = [Fraction(round(share * 10**9), 10**9) for share in shares]
    largest = int(shares.argmax())
    rounded[largest] += 1 - sum(rounded)
    return tuple(rounded)
