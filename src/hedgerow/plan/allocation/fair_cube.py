"""Fair shares over a cube: the least mean variance at which cells of a cuboid are about as precise.

Estimates of a cube are combined, so the variance of a cell is a product over the axes, less what a
public cuboid explains (`hedgerow.estimate.cube.variances`). It depends on how many siblings,
cousins and ancestors' siblings a node has. The ratio of the largest variance of a cuboid
to the least above 0 is a smooth function of the shares but for kinks; it is first made least, then
kept below the bound while Σ_c mean V_c is made least, by sequential quadratic programming from
several starts. No optimum is proved: what is returned keeps the bound, which is verified.
"""

from functools import reduce
from math import inf, log, prod

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

from hedgerow.arrays import Float64
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.shares import mean_variances, squares_of
from hedgerow.estimate.tree.shapes import classes_of_nodes
from hedgerow.limits import MOST_KINDS
from hedgerow.plan.allocation.cube import AxisShares, CubeFacts, rounded

SLACKS = 1e-3, 4e-3, 1.6e-2
"""By how much the logarithm of the ratio stays below the bound before shares are rounded."""


def fair_cube_shares(facts: CubeFacts, ratio: float) -> AxisShares:
    """Return shares under which no cell of a cuboid has ``ratio`` times the variance of another.

    Args:
        facts: of the cube.
        ratio: of the variances of two cells of a cuboid at most, for wide noise; at least 1.

    Raises:
        PlanError: survivors are measured, too many cells are different, or no shares were found
            that keep the ratio.
    """
    if facts.all_levels:
        raise PlanError(
            'fair shares of a cube need measure = "all": what survivors add depends on the counts'
        )
    kinds = _Kinds(facts)
    least = kinds.least_ratio()
    if kinds.log_ratio(least) > log(ratio):
        raise PlanError(
            f"no shares were found that keep the cells of every cuboid within {ratio:g} times the "
            f"variance of each other; the smallest ratio found is "
            f"{np.exp(kinds.log_ratio(least)):.4g}"
        )
    for slack in SLACKS:
        found = rounded(facts, kinds.shares_within(log(ratio) - slack, least))
        if kinds.log_ratio([np.array([float(s) for s in each]) for each in found]) <= log(ratio):
            return found
    raise PlanError(
        f"shares in steps of 1/10,000 do not keep a ratio of {ratio:g}, so near the smallest one "
        f"found, {np.exp(kinds.log_ratio(least)):.4g}; allow a little more"
    )


class _Kinds:
    """The cells of a cube that may differ in variance: one node of each kind, level by level."""

    def __init__(self, facts: CubeFacts) -> None:
        self.facts, self.shape = facts, facts.shape
        alike = (classes_of_nodes(a.child_start, subtrees=True)[1] for a in self.shape.axes)
        self.nodes = [[np.unique(own, return_index=True)[1] for own in axis] for axis in alike]
        if prod(max(map(len, levels)) for levels in self.nodes) > MOST_KINDS:
            raise PlanError(
                "fair shares of a cube are for trees whose families are alike enough: here more "
                f"than {MOST_KINDS:,} cells of a cuboid may differ in variance"
            )

    def log_ratios(self, shares: list[Float64]) -> Float64:
        """Return ln(largest / least above 0) for each cuboid that is not public."""
        facts = self.facts
        squares = squares_of(self.shape, shares, facts.public, power=facts.power)
        found = []
        for cuboid in facts.measurable:
            nodes = [of[k] for of, k in zip(self.nodes, cuboid, strict=True)]
            every = list(zip(squares, cuboid, nodes, strict=True))
            cells = reduce(np.multiply.outer, [s.final[k][kept] for s, k, kept in every])
            if facts.public is not None:
                exact = zip(every, facts.public, strict=True)
                known = [s.explained(k, e)[kept] for (s, k, kept), e in exact]
                cells = cells - reduce(np.multiply.outer, known)
            above = cells[cells > 1e-9 * cells.max()]
            found.append(log(above.max() / above.min()))
        return np.array(found)

    def log_ratio(self, shares: list[Float64]) -> float:
        """Return the largest of them."""
        return float(self.log_ratios(shares).max())

    def least_ratio(self) -> list[Float64]:
        """Return the shares of the smallest largest ratio that were found."""
        found = []
        for start in self._starts():
            begin = np.append(start, self.log_ratio(self._split(start)))
            solved = minimize(
                lambda x: float(x[-1]),
                begin,
                constraints={
                    "type": "ineq",
                    "fun": lambda x: x[-1] - self.log_ratios(self._split(x[:-1])),
                },
                bounds=[*[(-9.0, 3.0)] * len(start), (0.0, None)],
                method="SLSQP",
                options={"maxiter": 200, "ftol": 1e-9},
            )
            found += [self._split(start), self._split(solved.x[:-1])]
        return min(found, key=self.log_ratio)

    def shares_within(self, bound: float, feasible: list[Float64]) -> list[Float64]:
        """Return the shares of least mean variances, within a bound, that were found."""

        def error(shares: list[Float64]) -> float:
            means = mean_variances(self.shape, shares, self.facts.public, power=self.facts.power)
            return log(sum(means[cuboid] for cuboid in self.facts.measurable))

        best, least = feasible, inf
        for start in [*self._starts(), np.concatenate([np.log(each) for each in feasible])]:
            solved = minimize(
                lambda x: error(self._split(x)),
                start,
                constraints={
                    "type": "ineq",
                    "fun": lambda x: bound - self.log_ratios(self._split(x)),
                },
                bounds=[(-9.0, 3.0)] * len(start),
                method="SLSQP",
                options={"maxiter": 200, "ftol": 1e-10},
            )
            shares = self._split(solved.x)
            if self.log_ratio(shares) <= bound + 1e-6 and error(shares) < least:
                best, least = shares, error(shares)
        return best

    def _starts(self) -> list[Float64]:
        """Return logarithms of shares to begin at: equal ones, and most of them at the leaves."""
        equal = np.zeros(sum(axis.depth + 1 for axis in self.shape.axes))
        last = np.concatenate([np.eye(axis.depth + 1)[-1] for axis in self.shape.axes])
        return [equal, 2 * last, -2 * last]

    def _split(self, logs: Float64) -> list[Float64]:
        """Return the shares of each axis."""
        ends = np.cumsum([axis.depth + 1 for axis in self.shape.axes])[:-1]
        return [softmax(each) for each in np.split(logs, ends)]
