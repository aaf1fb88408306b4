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
from functools import reduce
from itertools import chain, combinations
from math import prod

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.coefficients import mean_weights
from hedgerow.estimate.cube.shape import AxisShape, CubeShape

NEGLIGIBLE = 1e-5
"""Shares below it are none: the level is not measured."""

ROUNDS = 5_000
AGREED = 1e-9
"""By how much the shares of two rounds differ, relatively, once they have converged."""

MOST_TRIED = 6
"""Levels above the leaves up to which all subsets are tried, where there may be several optima."""

SHARPNESS = 1.0, 4.0, 16.0, 64.0, 256.0
"""Exponents of the p-norms that stand in for a maximum, one after the other."""

SMALLEST, LARGEST = -14.0, 3.0
"""Logarithms of shares, up to a factor: no share vanishes, as 0 has no logarithm."""

Shares = Sequence[Float64]
"""For each axis float64 (levels), at least 0, summing to 1, the last above 0."""


def squares_of(
    shape: CubeShape, shares: Shares, public: Levels | None = None, *, power: int = 1
) -> tuple[AxisSquares, ...]:
    """Return least squares under the variances that shares buy, a share of 1 buying 1."""
    cost = measured_part(shares, public)
    own = [_variances(np.asarray(each, dtype=np.float64), power) for each in shares]
    own[0] = own[0] * cost**power
    return tuple(AxisSquares.of(axis, v) for axis, v in zip(shape.axes, own, strict=True))


def measured_part(shares: Shares, public: Levels | None) -> float:
    """Return 1 less the shares of the public cuboids: what the others' shares sum to."""
    if public is None:
        return 1.0
    return 1 - prod(float(s[: e + 1].sum()) for s, e in zip(shares, public, strict=True))


def cuboid_shares(
    shape: CubeShape, shares: Shares, public: Levels | None = None
) -> dict[Levels, float]:
    """Return the share of every cuboid that is measured; they sum to 1."""
    exact, cost = shape.within(public), measured_part(shares, public)
    found = {
        cuboid: prod(float(s[k]) for s, k in zip(shares, cuboid, strict=True)) / cost
        for cuboid in shape.cuboids()
        if cuboid not in exact
    }
    return {cuboid: share for cuboid, share in found.items() if share}


def mean_variances(
    shape: CubeShape, shares: Shares, public: Levels | None = None, *, power: int = 1
) -> dict[Levels, float]:
    """Return the mean variance of every cuboid's estimates, a share of 1 buying 1."""
    means = _Means(shape, public, power).of(shares)
    return {cuboid: float(means[cuboid]) for cuboid in shape.cuboids()}


class _Means:
    """The mean variances at given shares, each axis's factors computed once for its shares."""

    def __init__(self, shape: CubeShape, public: Levels | None, power: int) -> None:
        self.shape, self.public, self.power = shape, public, power
        self._factors: list[tuple[bytes, tuple[Float64, Float64]]] = [
            (b"", (np.empty(0), np.empty(0))) for _ in shape.axes
        ]

    def of(self, shares: Shares) -> Float64:
        """Return the mean variance of every cuboid: float64 (levels of each axis)."""
        factors = [self._of_axis(axis, np.asarray(s)) for axis, s in enumerate(shares)]
        found = reduce(np.multiply.outer, [whole for whole, _ in factors])
        if self.public is not None:
            found = found - reduce(np.multiply.outer, [explained for _, explained in factors])
        cost: float = measured_part(shares, self.public) ** self.power
        return np.maximum(found, 0.0) * cost

    def _of_axis(self, axis: int, shares: Float64) -> tuple[Float64, Float64]:
        """Return an axis's factors: float64 (levels) twice, the second of what is explained."""
        if self._factors[axis][0] != shares.tobytes():
            own = AxisSquares.of(self.shape.axes[axis], _variances(shares, self.power))
            whole = np.array([each.mean() for each in own.final])
            explained = whole
            if self.public is not None:
                exact, levels = self.public[axis], range(own.depth + 1)
                explained = np.array([own.explained(k, exact).mean() for k in levels])
            self._factors[axis] = shares.tobytes(), (whole, explained)
        return self._factors[axis][1]


def axis_shares(
    axis: AxisShape, importance: Sequence[float] | Float64, *, power: int = 1
) -> Float64:
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

    def error(shares: Float64) -> float:
        means = mean_variances(cube, [shares], power=power)
        return sum(float(w) * means[k,] for k, w in enumerate(wanted) if w)

    return min(found, key=error)


def _alternated(axis: AxisShape, wanted: Float64, measured: Sequence[int], power: int) -> Float64:
    """Return the shares that alternation finds from equal shares of some levels."""
    shares = np.zeros(axis.depth + 1)
    shares[list(measured)] = 1 / len(measured)
    for _ in range(ROUNDS):
        weights = mean_weights(AxisSquares.of(axis, _variances(shares, power)), wanted)
        better = weights ** (1 / (1 + power))
        better[:-1][better[:-1] < NEGLIGIBLE * better.sum()] = 0.0
        better /= better.sum()
        if np.abs(better - shares).max() <= AGREED:
            return better
        shares = better
    return shares


def _variances(shares: Float64, power: int) -> Float64:
    """Return the variances that shares buy; a share of 0 buys an infinite one."""
    with np.errstate(divide="ignore", over="ignore"):
        found: Float64 = shares ** -float(power)
    return found


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
    weights = _of_measured(shape, importance, public)
    if not weights.any():
        raise EstimateError("importances of cuboids that are measured must not all be 0")
    means = _Means(shape, public, power)

    def error(shares: Shares) -> float:
        return float(np.log((weights * means.of(shares)).sum()))

    alone = []
    for axis, own in enumerate(shape.axes):
        others = tuple(a for a in range(len(shape.axes)) if a != axis)
        alone.append(axis_shares(own, weights.sum(axis=others), power=power))
    found = [alone, _least(shape, error, alone), _least(shape, error)]
    return min(found, key=error)


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
    alike = dict.fromkeys(shape.cuboids(), 1.0) if targets is None else targets
    wanted = _of_measured(shape, alike, public)
    counts = wanted > 0
    if not counts.any():
        raise EstimateError("a cuboid that is measured must have a target")
    means, offset = _Means(shape, public, power), np.log(wanted[counts])

    def logs(shares: Shares) -> Float64:
        return np.asarray(np.log(means.of(shares)[counts]) - offset)

    found: list[Float64] | None = None
    for sharpness in SHARPNESS:

        def error(shares: Shares, sharpness: float = sharpness) -> float:
            return float(logsumexp(sharpness * logs(shares))) / sharpness

        found = _least(shape, error, found)
    return _least_maximum(shape, logs, found or [])


def _of_measured(shape: CubeShape, given: Mapping[Levels, float], public: Levels | None) -> Float64:
    """Return numbers of cuboids, 0 where public or not named: float64 (levels of each axis)."""
    found = np.zeros([axis.depth + 1 for axis in shape.axes])
    exact = shape.within(public)
    for cuboid, number in given.items():
        found[cuboid] = 0.0 if cuboid in exact else number
    return found


def _split(shape: CubeShape, logs: Float64) -> list[Float64]:
    """Return the shares of each axis from logarithms of all, which count up to a factor."""
    ends = np.cumsum([axis.depth + 1 for axis in shape.axes])[:-1]
    return [softmax(each) for each in np.split(logs, ends)]


def _joined(shares: Shares) -> Float64:
    """Return the logarithms of the shares of all axes, end to end."""
    with np.errstate(divide="ignore"):
        logs = np.concatenate([np.log(each) - np.log(np.max(each)) for each in shares])
    found: Float64 = np.maximum(logs, SMALLEST)
    return found


def _least(
    shape: CubeShape, error: Callable[[Shares], float], begin: Shares | None = None
) -> list[Float64]:
    """Return the shares at which an error is least, starting at equal ones or those given."""
    start = np.zeros(sum(axis.depth + 1 for axis in shape.axes))
    start = start if begin is None else _joined(begin)
    found = minimize(
        lambda logs: error(_split(shape, logs)),
        start,
        method="L-BFGS-B",
        bounds=[(SMALLEST, LARGEST)] * len(start),
        options={"ftol": 1e-13, "gtol": 1e-9, "maxfun": 50_000},
    )
    return _split(shape, found.x)


def _least_maximum(
    shape: CubeShape, logs: Callable[[Shares], Float64], begin: Shares
) -> list[Float64]:
    """Return the shares at which the largest of several errors is least, if no worse than given."""
    start = _joined(begin)
    most = float(logs(begin).max())
    found = minimize(
        lambda x: float(x[-1]),
        np.append(start, most),
        jac=lambda x: np.append(np.zeros(len(x) - 1), 1.0),
        constraints={"type": "ineq", "fun": lambda x: x[-1] - logs(_split(shape, x[:-1]))},
        bounds=[*[(SMALLEST, LARGEST)] * len(start), (None, None)],
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 300},
    )
    better = _split(shape, found.x[:-1])
    return better if float(logs(better).max()) < most else list(begin)
