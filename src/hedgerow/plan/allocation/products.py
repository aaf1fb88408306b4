"""How the budget is best shared out over a cube: a share for each level of each axis.

Cuboid c gets the share Π_a s_a(c_a), each axis's shares summing to 1; a share s buys the variance
V/s^power (`hedgerow.noise.price`: power 1 for noise priced in ρ, 2 in pure ε), here with V = 1. The
mean variance of a cuboid's estimates is then a product over axes, less one where a cuboid is public
(`hedgerow.estimate.cube.variances`).

*Total measured.* With an importance that is a product too, w_c = Π w_a(c_a), the weighted sum of
mean variances is Π_a (Σ_k w_a(k) V_a(k)): each axis has its own optimum, that of a chain
(`hedgerow.plan.allocation.released`), and for noise priced in ρ their product is the best of *all*
shares of cuboids, product or not (Kiefer's theorem on product designs).

*Public.* A public cuboid and its coarsenings cost nothing, so all shares are divided by
1 - Π_a Σ_{k ≤ e_a} s_a(k). The objective does not factor then; product shares are found together,
and are near-optimal among all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.optimize import minimize

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape, CubeShape
from hedgerow.estimate.tree.error import weighted_variance_and_gradient
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.plan.allocation.descent import (
    SHARPNESS,
    Cost,
    by_logs,
    least,
    norm_of,
    shares_of,
    weighted,
)
from hedgerow.plan.allocation.released import Released

SMALLEST, LARGEST = -14.0, 3.0
"""Logarithms of shares, up to a factor: no share vanishes, as 0 has no logarithm."""

Shares = Sequence[Float64]
"""For each axis float64 (levels), at least 0, summing to 1, the last above 0."""

Sloped = tuple[Float64, Float64]
"""Numbers, and beside each its derivatives by shares: a last dimension more."""


@dataclass(frozen=True, eq=False)
class CubeMeans:
    """The mean variances of a cube's cuboids, coarsest first, by the shares of its axes' levels.

    With A_a(k) the mean variance of level k along axis a alone, R_a(k) the same where the true
    counts of the public cuboid's level are known, and C what is measured of all shares,

        V_c = C^power (Π_a A_a(c_a) - Π_a (A_a(c_a) - R_a(c_a))).

    Attributes:
        axes: the shapes of each axis.
        public: the cuboid whose counts are known exactly, if any.
        power: of the noise.
    """

    axes: tuple[Shapes, ...]
    public: Levels | None
    power: int

    @classmethod
    def of(cls, shape: CubeShape, public: Levels | None, power: int) -> "CubeMeans":
        """Return the mean variances of a cube."""
        return cls(tuple(Shapes.along(axis.child_start) for axis in shape.axes), public, power)

    @property
    def ends(self) -> Int64:
        """Where the shares of each axis begin, but for the first."""
        return np.cumsum([axis.depth + 1 for axis in self.axes])[:-1]

    def table(self, given: Mapping[Levels, float]) -> Float64:
        """Return numbers of cuboids, 0 where public or not named: float64 (cuboids)."""
        found = np.zeros([axis.depth + 1 for axis in self.axes])
        for cuboid, number in given.items():
            found[cuboid] = number
        if self.public is not None:
            found[tuple(slice(e + 1) for e in self.public)] = 0.0
        return found.ravel()

    def variances(self, shares: Float64) -> Sloped:
        """Return float64 (cuboids), and their derivatives by shares, (cuboids, shares)."""
        each = list(zip(self.axes, np.split(shares, self.ends), strict=True))
        alone = [self._along(axis, own) for axis, own in each]
        found, slope = _products(alone)
        if self.public is None:
            return found, slope
        known = list(zip(each, self.public, strict=True))
        rests = [self._along(axis, own, exact) for (axis, own), exact in known]
        told = _products([
            (v - rest, by_share - by_rest)
            for (v, by_share), (rest, by_rest) in zip(alone, rests, strict=True)
        ])  # fmt: skip
        inside = [np.arange(len(own)) <= exact for (_, own), exact in known]
        part, by_part = _products([
            (own[free].sum(keepdims=True), free[None, :].astype(np.float64))
            for (_, own), free in zip(each, inside, strict=True)
        ])  # fmt: skip
        found, slope, cost = np.maximum(found - told[0], 0.0), slope - told[1], 1 - part
        lower = self.power * cost ** (self.power - 1) * found[:, None] * by_part
        return cost**self.power * found, cost**self.power * slope - lower

    def _along(self, axis: Shapes, shares: Float64, public: int = -1) -> Sloped:
        """Return the mean variance of each level of an axis by itself, one being public or none."""
        own = variances_of(shares, self.power, public)
        each = [
            weighted_variance_and_gradient(axis, own, weights, combine=True)
            for weights in np.diag(1 / axis.sizes)
        ]
        by_share = self.power * shares ** (self.power - 1)
        return np.array([v for v, _ in each]), np.array([slope for _, slope in each]) * by_share


def variances_of(shares: Float64, power: int, public: int = -1) -> Float64:
    """Return the variances that shares of levels buy: infinite for a share of 0, 0 for public."""
    with np.errstate(divide="ignore", over="ignore"):
        own: Float64 = shares ** -float(power)
    own[: public + 1] = 0.0
    return own


def _products(parts: Sequence[Sloped]) -> Sloped:
    """Return the products of all combinations of some numbers, one of each part, in order."""
    slopes = []
    for place in range(len(parts)):
        factors = [part[int(place == i)] for i, part in enumerate(parts)]
        product = np.moveaxis(reduce(np.multiply.outer, factors), place + 1, -1)
        slopes.append(product.reshape(-1, product.shape[-1]))
    values: Float64 = reduce(np.multiply.outer, [value for value, _ in parts])
    return values.ravel(), np.hstack(slopes)


def axis_shares(
    axis: AxisShape, importance: Sequence[float] | Float64, *, power: int = 1
) -> Float64:
    """Return the shares of one axis's levels that make Σ_k w_k V_k least, V_k being mean variances.

    Args:
        axis: its levels.
        importance: float64 (levels), at least 0, one above: w.
        power: of the noise.

    Returns:
        float64 (levels), summing to 1; 0 for a level that is better not measured.

    Raises:
        EstimateError: importances that do not fit.
    """
    wanted = np.asarray(importance, dtype=np.float64)
    if (
        wanted.shape != (axis.depth + 1,)
        or not (wanted >= 0).all()
        or not 0 < wanted.max() < np.inf
    ):
        raise EstimateError(
            f"an axis of {axis.depth + 1} levels needs as many importances, at least 0 and not "
            f"all 0, got {len(wanted)}"
        )
    shapes = Shapes.along(axis.child_start)
    weights, levels = wanted / wanted.max() / shapes.sizes, tuple(range(axis.depth + 1))
    chain = Released(shapes, levels, weights, np.ones(len(levels)), combine=True, power=power)
    return np.array(chain.minimum())


def product_shares(
    shape: CubeShape,
    importance: Mapping[Levels, float],
    public: Levels | None = None,
    *,
    power: int = 1,
) -> list[Float64]:
    """Return the product shares that make Σ_c w_c V_c least, for any importance of cuboids.

    Begins at equal shares, and at the optima of single axes for importances summed over the others;
    where importances are a product and nothing is public, these are the optimum.

    Args:
        shape: the cube.
        importance: w, at least 0, one above; cuboids that are not named have 0.
        public: a cuboid whose counts are known exactly, if any.
        power: of the noise.

    Raises:
        EstimateError: no cuboid that is measured has an importance above 0.
    """
    means = CubeMeans.of(shape, public, power)
    weights = means.table(importance)
    if not weights.any():
        raise EstimateError("importances of cuboids that are measured must not all be 0")
    by_axis = weights.reshape([axis.depth + 1 for axis in shape.axes])
    alone = []
    for axis, own in enumerate(shape.axes):
        others = tuple(a for a in range(len(shape.axes)) if a != axis)
        alone.append(axis_shares(own, by_axis.sum(axis=others), power=power))
    equal = np.zeros(sum(map(len, alone)))
    return np.split(_least(means, weighted(weights), _logs(alone), equal), means.ends)


def level_shares(
    shape: CubeShape,
    public: Levels | None = None,
    *,
    power: int = 1,
    targets: Mapping[Levels, float] | None = None,
) -> list[Float64]:
    """Return the product shares that make the largest mean variance of a cuboid least.

    Where shares can make them so, all cuboids then have the same root mean square error. Minimises
    a smooth stand-in of the maximum, the p-norm, that is sharpened step by step; then the maximum
    itself, by sequential quadratic programming.

    Args:
        shape: the cube.
        public: a cuboid whose counts are known exactly, if any.
        power: of the noise.
        targets: variances in whose units those of single cuboids count, above 0; cuboids that are
            not named do not count. All count alike unless given.

    Raises:
        EstimateError: no cuboid that is measured has a target.
    """
    means = CubeMeans.of(shape, public, power)
    alike = dict.fromkeys(shape.cuboids(), 1.0) if targets is None else targets
    costs = means.table({cuboid: 1 / target for cuboid, target in alike.items()})
    if not costs.any():
        raise EstimateError("a cuboid that is measured must have a target")
    start = np.zeros(sum(axis.depth + 1 for axis in shape.axes))
    for sharp in SHARPNESS:
        shares = _least(means, norm_of(costs, sharp), start)
        start = _logs(np.split(shares, means.ends))
    return np.split(_least_maximum(means, costs, shares, start), means.ends)


def _logs(shares: Shares) -> Float64:
    """Return the logarithms of the shares of all axes, end to end, 0 for the largest of each."""
    with np.errstate(divide="ignore"):
        logs = np.concatenate([np.log(each) - np.log(np.max(each)) for each in shares])
    found: Float64 = np.maximum(logs, SMALLEST)
    return found


def _least(means: CubeMeans, cost: Cost, *starts: Float64) -> Float64:
    """Return the shares at which a cost is least, from several starts: float64 (shares)."""
    options = {"ftol": 1e-13, "gtol": 1e-9, "maxfun": 50_000}
    return least(means, cost, starts, (SMALLEST, LARGEST), **options)


def _least_maximum(means: CubeMeans, costs: Float64, begin: Float64, start: Float64) -> Float64:
    """Return the shares at which the largest of several variances is least, if no worse."""
    counts = costs > 0

    def logs(shares: Float64) -> Sloped:
        variances, slope = means.variances(shares)
        slopes = by_logs(means, shares, slope[counts] / variances[counts, None])
        return np.log(variances[counts] * costs[counts]), slopes

    most = float(logs(begin)[0].max())
    last = np.append(np.zeros(len(start)), 1.0)
    found = minimize(
        lambda x: float(x[-1]),
        np.append(start, most),
        jac=lambda _: last,
        constraints={
            "type": "ineq",
            "fun": lambda x: x[-1] - logs(shares_of(means, x[:-1]))[0],
            "jac": lambda x: np.insert(-logs(shares_of(means, x[:-1]))[1], len(start), 1.0, axis=1),
        },
        bounds=[*[(SMALLEST, LARGEST)] * len(start), (None, None)],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    better = shares_of(means, found.x[:-1])
    return better if float(logs(better)[0].max()) < most else begin
