"""Fair shares over a cube: the least mean variance at which cells of a cuboid are about as precise.

Estimates of a cube are combined, so the variance of a cell is a product over the axes, less what a
public cuboid explains (`hedgerow.estimate.cube.variances`). It depends on how many siblings,
cousins and ancestors' siblings a node has. The ratio of the largest variance of a cuboid
to the least above 0 is a smooth function of the shares but for kinks; it is first made least, then
kept below the bound while Σ_c mean V_c is made least, by sequential quadratic programming from
several starts. No optimum is proved: what is returned keeps the bound, which is verified.
"""

from collections.abc import Sequence
from functools import reduce
from math import inf, log, prod

import numpy as np
from scipy.optimize import minimize

from hedgerow.arrays import Float64
from hedgerow.errors import PlanError
from hedgerow.limits import MOST_KINDS
from hedgerow.plan.allocation.cube import AxisShares, CubeFacts, rounded
from hedgerow.plan.allocation.descent import in_logs, shares_of, weighted
from hedgerow.plan.allocation.fairness import Classes, variances
from hedgerow.plan.allocation.products import CubeMeans, variances_of

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
        shares = kinds.shares_within(log(ratio) - slack, least)
        found = rounded(facts, np.split(shares, kinds.means.ends))
        if kinds.log_ratio(np.array([float(s) for each in found for s in each])) <= log(ratio):
            return found
    raise PlanError(
        f"shares in steps of 1/10,000 do not keep a ratio of {ratio:g}, so near the smallest one "
        f"found, {np.exp(kinds.log_ratio(least)):.4g}; allow a little more"
    )


class _Kinds:
    """The cells of a cube that may differ in variance: one node of each kind, level by level."""

    def __init__(self, facts: CubeFacts) -> None:
        self.facts = facts
        self.means = CubeMeans.of(facts.shape, facts.public, facts.power)
        self.classes = [Classes.along(axis.child_start) for axis in facts.shape.axes]
        most = (max(len(level.nodes) for level in own.levels[0]) for own in self.classes)
        if prod(most) > MOST_KINDS:
            raise PlanError(
                "fair shares of a cube are for trees whose families are alike enough: here more "
                f"than {MOST_KINDS:,} cells of a cuboid may differ in variance"
            )

    def log_ratios(self, shares: Float64) -> Float64:
        """Return ln(largest / least above 0) for each cuboid that is not public."""
        public, found = self.facts.public, []
        each = list(zip(self.classes, np.split(shares, self.means.ends), strict=True))

        def along(levels: Sequence[int]) -> list[list[Float64]]:
            """Return the variances of each axis's classes, some levels being public, or none."""
            return [
                variances(axis, variances_of(own, self.facts.power, exact), combine=True)
                for (axis, own), exact in zip(each, levels, strict=True)
            ]

        terms = [along([-1] * len(each))]
        if public is not None:
            both = zip(terms[0], along(public), strict=True)
            terms.append([list(map(np.subtract, whole, rest)) for whole, rest in both])
        for cuboid in self.facts.measurable:
            cells = reduce(np.subtract, [
                reduce(np.multiply.outer, [own[k] for own, k in zip(parts, cuboid, strict=True)])
                for parts in terms
            ])  # fmt: skip
            above = cells[cells > 1e-9 * cells.max()]
            found.append(log(above.max() / above.min()))
        return np.array(found)

    def log_ratio(self, shares: Float64) -> float:
        """Return the largest of them."""
        return float(self.log_ratios(shares).max())

    def least_ratio(self) -> Float64:
        """Return the shares of the smallest largest ratio that were found."""
        found = []
        for start in self._starts():
            begin = np.append(start, self.log_ratio(shares_of(self.means, start)))
            solved = minimize(
                lambda x: float(x[-1]),
                begin,
                constraints={
                    "type": "ineq",
                    "fun": lambda x: x[-1] - self.log_ratios(shares_of(self.means, x[:-1])),
                },
                bounds=[*[(-9.0, 3.0)] * len(start), (0.0, None)],
                method="SLSQP",
                options={"maxiter": 200, "ftol": 1e-9},
            )
            found += [shares_of(self.means, start), shares_of(self.means, solved.x[:-1])]
        return min(found, key=self.log_ratio)

    def shares_within(self, bound: float, feasible: Float64) -> Float64:
        """Return the shares of least mean variances, within a bound, that were found."""
        error = in_logs(
            self.means, weighted(self.means.table(dict.fromkeys(self.facts.measurable, 1.0)))
        )
        best, least = feasible, inf
        for start in [*self._starts(), np.log(feasible)]:
            solved = minimize(
                error,
                start,
                jac=True,
                constraints={
                    "type": "ineq",
                    "fun": lambda x: bound - self.log_ratios(shares_of(self.means, x)),
                },
                bounds=[(-9.0, 3.0)] * len(start),
                method="SLSQP",
                options={"maxiter": 200, "ftol": 1e-10},
            )
            shares = shares_of(self.means, solved.x)
            if self.log_ratio(shares) <= bound + 1e-6 and solved.fun < least:
                best, least = shares, solved.fun
        return best

    def _starts(self) -> list[Float64]:
        """Return logarithms of shares to begin at: equal ones, and most of them at the leaves."""
        axes = self.facts.shape.axes
        last = np.concatenate([np.eye(axis.depth + 1)[-1] for axis in axes])
        return [0 * last, 2 * last, -2 * last]
