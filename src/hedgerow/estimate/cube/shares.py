"""How the budget is best shared out over a cube: a share for each level of each axis.

Cuboid c gets the share Π_a s_a(c_a), each axis's shares summing to 1; a share s buys the variance
V/s^power (`hedgerow.noise.price`: power 1 for noise priced in ρ, 2 in pure ε), here with V = 1. The
mean variance of a cuboid's estimates is then a product over axes, less one where a cuboid is public
(`hedgerow.estimate.cube.variances`).

*Total measured.* With an importance that is a product too, w_c = Π w_a(c_a), the weighted sum of
mean variances is Π_a (Σ_k w_a(k) V_a(k)): each axis has its own optimum, and for noise priced in ρ
their product is the best of *all* shares of cuboids, product or not (Kiefer's theorem on product
designs).

*Public.* A public cuboid and its coarsenings cost nothing, so all shares are divided by
1 - Π_a Σ_{k ≤ e_a} s_a(k). The objective does not factor then; product shares are found together,
and are near-optimal among all.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations
from math import prod

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.coefficients import mean_weights
from hedgerow.estimate.cube.estimates import public_cuboids
from hedgerow.estimate.cube.shape import AxisShape, CubeShape, Cuboid, Floats
from hedgerow.estimate.cube.variances import CubeVariances

NEGLIGIBLE = 1e-5
"""Shares below it are none: the level is not measured."""

ROUNDS = 5_000
AGREED = 1e-9
"""By how much the shares of two rounds differ, relatively, once they have converged."""

MOST_TRIED = 6
"""Levels above the leaves up to which all subsets are tried, where there may be several optima."""

Shares = Sequence[Floats]
"""For each axis float64 (levels), at least 0, summing to 1, the last above 0."""


def squares_of(
    shape: CubeShape, shares: Shares, public: Cuboid | None = None, *, power: int = 1
) -> tuple[AxisSquares, ...]:
    """Return least squares under the variances that shares buy, a share of 1 buying 1."""
    cost = measured_part(shares, public)
    own = [_variances(np.asarray(each, dtype=np.float64), power) for each in shares]
    own[0] = own[0] * cost**power
    return tuple(AxisSquares(axis, v) for axis, v in zip(shape.axes, own, strict=True))


def measured_part(shares: Shares, public: Cuboid | None) -> float:
    """Return 1 less the shares of the public cuboids: what the others' shares sum to."""
    if public is None:
        return 1.0
    return 1 - prod(float(s[: e + 1].sum()) for s, e in zip(shares, public, strict=True))


def cuboid_shares(
    shape: CubeShape, shares: Shares, public: Cuboid | None = None
) -> dict[Cuboid, float]:
    """Return the share of every cuboid that is measured; they sum to 1."""
    exact, cost = public_cuboids(shape, public), measured_part(shares, public)
    found = {
        cuboid: prod(float(s[k]) for s, k in zip(shares, cuboid, strict=True)) / cost
        for cuboid in shape.cuboids()
        if cuboid not in exact
    }
    return {cuboid: share for cuboid, share in found.items() if share}


def mean_variances(
    shape: CubeShape, shares: Shares, public: Cuboid | None = None, *, power: int = 1
) -> dict[Cuboid, float]:
    """Return the mean variance of every cuboid's estimates, a share of 1 buying 1."""
    found = CubeVariances(squares_of(shape, shares, public, power=power), public)
    return {cuboid: found.mean(cuboid) for cuboid in shape.cuboids()}


def axis_shares(axis: AxisShape, importance: Sequence[float] | Floats, *, power: int = 1) -> Floats:
    """Return the shares of one axis's levels that make Σ_k w_k V_k least, V_k being mean variances.

    Alternates between the estimator that is best for the shares (least squares) and the shares that
    are best for the estimator: for W_k the weights with which variances of measurements come in,
    s_k ∝ W_k^(1/(1 + power)). Each round lowers the objective. For noise priced in ρ it is convex
    in the shares; for noise priced in pure ε it is not, and every subset of levels is tried.

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
    every = [tuple(range(axis.depth + 1))]
    if power > 1 and axis.depth <= MOST_TRIED:
        coarse = chain.from_iterable(combinations(range(axis.depth), n) for n in range(axis.depth))
        every += [(*levels, axis.depth) for levels in coarse]
    cube = CubeShape((axis,))
    found = [_alternated(axis, wanted, measured, power) for measured in every]

    def error(shares: Floats) -> float:
        means = mean_variances(cube, [shares], power=power)
        return sum(float(w) * means[k,] for k, w in enumerate(wanted) if w)

    return min(found, key=error)


def _alternated(axis: AxisShape, wanted: Floats, measured: Sequence[int], power: int) -> Floats:
    """Return the shares that alternation finds from equal shares of some levels."""
    shares = np.zeros(axis.depth + 1)
    shares[list(measured)] = 1 / len(measured)
    for _ in range(ROUNDS):
        weights = mean_weights(AxisSquares(axis, _variances(shares, power)), wanted)
        better = weights ** (1 / (1 + power))
        better[:-1][better[:-1] < NEGLIGIBLE * better.sum()] = 0.0
        better /= better.sum()
        if np.abs(better - shares).max() <= AGREED:
            return better
        shares = better
    return shares


def _variances(shares: Floats, power: int) -> Floats:
    """Return the variances that shares buy; a share of 0 buys an infinite one."""
    with np.errstate(divide="ignore", over="ignore"):
        found: Floats = shares ** -float(power)
    return found


def product_shares(
    shape: CubeShape,
    importance: Mapping[Cuboid, float],
    public: Cuboid | None = None,
    *,
    power: int = 1,
) -> list[Floats]:
    """Return the product shares that make Σ_c w_c V_c least, for any importance of cuboids.

    Args:
        shape: the cube.
        importance: w, at least 0, one above; cuboids that are not named have 0.
        public: a cuboid whose counts are known exactly, if any.
        power: of the noise.
    """
    exact = public_cuboids(shape, public)
    wanted = {c: w for c, w in importance.items() if w and c not in exact}
    if not wanted:
        raise EstimateError("importances of cuboids that are measured must not all be 0")

    def error(shares: Shares) -> float:
        found = mean_variances(shape, shares, public, power=power)
        return float(np.log(sum(w * found[c] for c, w in wanted.items())))

    return _least(shape, error)


def level_shares(shape: CubeShape, public: Cuboid | None = None, *, power: int = 1) -> list[Floats]:
    """Return the product shares that make the largest mean variance of a cuboid least.

    Where shares can make them so, all cuboids then have the same root mean square error. Minimises
    a smooth stand-in of the maximum, the p-norm, that is sharpened step by step.
    """
    exact, found = public_cuboids(shape, public), None
    for sharpness in (1.0, 4.0, 16.0, 64.0, 256.0):

        def error(shares: Shares, sharpness: float = sharpness) -> float:
            means = mean_variances(shape, shares, public, power=power)
            logs = np.log([v for c, v in means.items() if c not in exact])
            return float(logsumexp(sharpness * logs)) / sharpness

        found = _least(shape, error, found)
    return [] if found is None else found


def _least(
    shape: CubeShape, error: Callable[[Shares], float], begin: Shares | None = None
) -> list[Floats]:
    """Return the shares at which an error is least, starting at equal ones or those given."""
    ends = np.cumsum([axis.depth + 1 for axis in shape.axes])[:-1]

    def shares_of(logs: Floats) -> list[Floats]:
        return [softmax(each) for each in np.split(logs, ends)]

    start = np.zeros(sum(axis.depth + 1 for axis in shape.axes))
    if begin is not None:
        start = np.concatenate([np.log(each) for each in begin])
    bounds = [(-14.0, 3.0)] * len(start)  # no share vanishes: 0 would have no logarithm
    found = minimize(lambda logs: error(shares_of(logs)), start, method="L-BFGS-B", bounds=bounds)
    return shares_of(found.x)
