"""The exact variance of the estimates of a whole tree, from its real family sizes.

*Combined*: the least-squares estimate from the measurements of all depths (Hay et al. 2010, with
families and variances of any size). With own variance v_t of a measurement of depth t, from the
leaves up: S is the sum of the children's combined variances and u = 1/(1/v_t + 1/S) the variance of
what a node and its subtree say. From the root down: the root has variance u, and a child c of a
parent p, whose family is corrected by x_c += (u_c/S) (x_p - Σ x), has

    Var(x_c) = (u_c/S)² Var(x_p) + u_c - u_c²/S.

*Projected*: families are projected onto their parents' counts from the root down, and measurements
of different depths are not combined: u = v_t where a depth is measured and u = S where it is not
(its counts are sums of what is measured next). While no count is cut off at 0 the same formula
holds; where all depths are measured it is Var(x_p)/n² + v_t (1 - 1/n) for a child among n.

A variance of 0 is a public depth, an infinite one an unmeasured depth. All is exact for real-valued
estimates; rounding to integers and cutting off at 0 are not in it. The work is that of the distinct
subtrees (`Shapes`), never that of the nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import EstimateError
from hedgerow.estimate.tree_shapes import Shapes
from hedgerow.kernels import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Numbers = Sequence[float] | Floats


def mean_variances(shapes: Shapes, own_variance: Numbers, *, combine: bool) -> Floats:
    """The mean variance of the estimates of the nodes of each depth: float64 (T + 1), records².

    Args:
        shapes: of the tree.
        own_variance: one a depth 0..T, records²: 0 for a public depth, inf for an unmeasured one.
        combine: by least squares over all depths; otherwise projected from the root down.

    Returns:
        inf for a depth about which the measurements do not say enough.

    Raises:
        EstimateError: these are no variances, nothing is measured, or too many distinct subtrees.
    """
    own = _checked(shapes, own_variance)
    if not combine and _is_measured_throughout(shapes, own):
        sums: Floats = _by_source(shapes.projection, own).sum(axis=1)
        return sums / shapes.sizes
    sums = _Passes(shapes, own, combine=combine).sums()
    return _with_unmeasured_tail(shapes, own, sums) / shapes.sizes


def largest_variances(shapes: Shapes, own_variance: Numbers, *, combine: bool) -> Floats:
    """The largest variance among the nodes of each depth: float64 (T + 1), records².

    Exact; but where a tree has too many distinct subtrees and is projected, an upper bound: every
    parent is taken for the worst one of its depth. Arguments and errors are those of
    `mean_variances`.
    """
    own = _checked(shapes, own_variance)
    if combine or shapes.fit or not _is_measured_throughout(shapes, own):
        largest = _Passes(shapes, own, combine=combine).largest()
        return _with_unmeasured_tail(shapes, own, largest)
    found = own.copy()
    for t, (axis, level) in enumerate(shapes.steps, start=1):
        n = np.unique(shapes.levels[axis][level - 1].families)
        n_own = np.where(n > 1, own[t], 0.0)  # an only child is its parent
        found[t] = (found[t - 1] / n**2 + n_own * (1 - 1 / n)).max()
    return found


def weighted_variance_and_gradient(
    shapes: Shapes, own_variance: Numbers, weights: Numbers, *, combine: bool
) -> tuple[float, Floats]:
    """Σ_t weights_t Σ_{nodes of t} Var, and its derivatives by the depths' precisions 1/v_t.

    By reverse differentiation of the two passes, so both cost a few evaluations.

    Args:
        shapes: of the tree.
        own_variance: as in `mean_variances`.
        weights: one a depth 0..T, at least 0: what a squared error of one node costs there.
        combine: as in `mean_variances`.

    Returns:
        The sum (inf where a weighted depth is not determined), and float64 (T + 1): at most 0, and
        0 for public depths. Combined, it says of an unmeasured depth what measuring it would begin
        to gain; projected, it is 0 there, for a bad measurement would be worse than none.

    Raises:
        EstimateError: as `mean_variances`, or weights that are no weights.
    """
    own = _checked(shapes, own_variance)
    weight = _numbers(shapes, weights, "weights")
    if not np.isfinite(weight).all():
        raise EstimateError("weights must be finite")
    if not combine and _is_measured_throughout(shapes, own):
        effect = weight @ shapes.projection
        with np.errstate(invalid="ignore"):
            costs = np.where(effect > 0, effect * own, 0.0)
            return float(costs.sum()), np.where(effect > 0, -costs * own, 0.0)
    last = _last_measured(own)
    beyond = weight.copy()
    for t in range(shapes.depth, last, -1):
        if not shapes.is_single(t):
            if weight[t:].any():
                return float("inf"), np.full(len(own), -np.inf)
            continue
        beyond[t - 1] += beyond[t]  # an unmeasured only child has its parent's estimate
    return _Passes(shapes, own, combine=combine).value_and_gradient(beyond[: last + 1])


@dataclass(frozen=True, slots=True, init=False, eq=False)
class _Passes:
    """The passes up and down between the deepest public depth and the last measured one.

    Attributes:
        own: the own variances.
        combine: whether measurements of different depths are combined.
        top: the deepest public depth, or -1; all above are exact as well.
        last: the deepest measured depth.
        combined: for depths above ``top`` the variances u, by distinct subtree.
        family: for depths from ``top`` (at least 0) the sums S over children, by distinct subtree.
    """

    shapes: Shapes
    own: Floats
    combine: bool
    top: int
    last: int
    combined: dict[int, Floats]
    family: dict[int, Floats]

    def __init__(self, shapes: Shapes, own: Floats, *, combine: bool) -> None:
        exact = np.flatnonzero(own == 0)
        top, last = int(exact[-1]) if len(exact) else -1, _last_measured(own)
        combined: dict[int, Floats] = {}
        family: dict[int, Floats] = {}
        for t in range(last, top, -1):
            if t == last:
                combined[t] = np.full([len(at.nodes) for at in shapes.cuboids[t]], own[t])
            elif combine or np.isinf(own[t]):
                combined[t] = 1 / (1 / own[t] + 1 / family[t])
            else:
                combined[t] = np.full_like(family[t], own[t])
            if t:
                level, upper, lower = shapes.refined(t)
                family[t - 1] = np.zeros([len(at.nodes) for at in shapes.cuboids[t - 1]])
                below, out = combined[t].reshape(lower), family[t - 1].reshape(upper)
                _sum_families(level.start, level.child, level.times, below, out)
        for name, value in zip(
            self.__slots__, (shapes, own, combine, top, last, combined, family), strict=True
        ):
            object.__setattr__(self, name, value)

    def totals(self) -> dict[int, Floats]:
        """For each depth from ``top`` the sum of variances over the nodes of a distinct subtree."""
        found = {max(self.top, 0): np.zeros_like(self.shapes.nodes(max(self.top, 0)))}
        if self.top < 0:
            found[0] = self.combined[0]
        for t in range(max(self.top, 0) + 1, self.last + 1):
            level, upper, lower = self.shapes.refined(t)
            found[t] = np.zeros_like(self.combined[t])
            _sum_down(
                level.start, level.child, level.times,
                self.family[t - 1].reshape(upper), self.combined[t].reshape(lower),
                self.shapes.nodes(t - 1).reshape(upper), found[t - 1].reshape(upper),
                found[t].reshape(lower),
            )  # fmt: skip
        return found

    def sums(self) -> Floats:
        """The sum of the variances of each depth 0..last."""
        found = np.zeros(self.last + 1)
        for t, totals in self.totals().items():
            found[t] = totals.sum()
        return found

    def largest(self) -> Floats:
        """The largest variance of each depth 0..last."""
        found = np.zeros(self.last + 1)
        above = np.zeros_like(self.shapes.nodes(max(self.top, 0)))
        if self.top < 0:
            above = self.combined[0]
            found[0] = above.max()
        for t in range(max(self.top, 0) + 1, self.last + 1):
            level, upper, lower = self.shapes.refined(t)
            here = np.zeros_like(self.combined[t])
            _largest_down(
                level.start, level.child,
                self.family[t - 1].reshape(upper), self.combined[t].reshape(lower),
                above.reshape(upper), here.reshape(lower),
            )  # fmt: skip
            above, found[t] = here, here.max()
        return found

    def value_and_gradient(self, weight: Floats) -> tuple[float, Floats]:
        """Σ_t weight_t · sum_t over the depths 0..last, and its derivatives by all 1/v_t.

        The passes backwards: first the one down, whose adjoints begin at the leaves, then the one
        up, whose adjoints begin at the root.
        """
        totals = self.totals()
        value = float(sum(weight[t] * total.sum() for t, total in totals.items()))
        first = max(self.top, 0)
        by_combined = {t: np.zeros_like(u) for t, u in self.combined.items()}
        by_family = {t: np.zeros_like(s) for t, s in self.family.items()}
        by_total = np.full_like(totals[self.last], weight[self.last])
        for t in range(self.last, first, -1):
            level, upper, lower = self.shapes.refined(t)
            above = np.full_like(totals[t - 1], weight[t - 1])
            _backwards_up(
                level.start, level.child, level.times,
                self.family[t - 1].reshape(upper), self.combined[t].reshape(lower),
                self.shapes.nodes(t - 1).reshape(upper), totals[t - 1].reshape(upper),
                by_total.reshape(lower), above.reshape(upper),
                by_combined[t].reshape(lower), by_family[t - 1].reshape(upper),
            )  # fmt: skip
            by_total = above
        if self.top < 0:
            by_combined[0] += by_total
        return value, self._gradient(by_combined, by_family)

    def _gradient(self, by_combined: dict[int, Floats], by_family: dict[int, Floats]) -> Floats:
        """The pass up, backwards: adjoints of u and S to derivatives by precision."""
        found = np.zeros(len(self.own))
        for t in range(max(self.top, 0), self.last + 1):
            if t > self.top:
                by_precision = -(self.combined[t] ** 2) * by_combined[t]
                if self.combine or np.isfinite(self.own[t]):
                    found[t] = by_precision.sum()
                if t < self.last and (self.combine or np.isinf(self.own[t])):
                    by_family[t] -= by_precision / self.family[t] ** 2
            if t < self.last:
                level, upper, lower = self.shapes.refined(t + 1)
                _backwards_down(
                    level.start, level.child, level.times,
                    by_family[t].reshape(upper), by_combined[t + 1].reshape(lower),
                )  # fmt: skip
        if self.combine:
            for t in range(self.last + 1, len(found)):  # the same counts again, or unknown ones
                found[t] = found[t - 1] if self.shapes.is_single(t) else -np.inf
        return found


def _checked(shapes: Shapes, own_variance: Numbers) -> Floats:
    own = _numbers(shapes, own_variance, "own_variance")
    if not np.isfinite(own).any():
        raise EstimateError("own_variance must be finite for at least one depth: none is measured")
    return own


def _numbers(shapes: Shapes, given: Numbers, name: str) -> Floats:
    """The numbers, one a depth and none below 0."""
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape != (shapes.depth + 1,):
        raise EstimateError(
            f"{name} must hold one number for each of {shapes.depth + 1} depths, got {numbers.size}"
        )
    if not (numbers >= 0).all():
        raise EstimateError(f"{name} must not hold numbers below 0 or NaN, got {list(given)}")
    return numbers


def _last_measured(own: Floats) -> int:
    return int(np.flatnonzero(np.isfinite(own))[-1])


def _is_measured_throughout(shapes: Shapes, own: Floats) -> bool:
    """Whether all depths down to the last measured one are, but for those of only children."""
    unmeasured = np.flatnonzero(np.isinf(own[: _last_measured(own)]))
    return all(t > 0 and shapes.is_single(int(t)) for t in unmeasured)


def _by_source(projection: Floats, own: Floats) -> Floats:
    """What each depth's own variance adds to each depth's sum; an only child's adds nothing."""
    with np.errstate(invalid="ignore"):
        return np.where(projection > 0, projection * own, 0.0)


def _with_unmeasured_tail(shapes: Shapes, own: Floats, found: Floats) -> Floats:
    """Depths below the last measured one: only children are as good as their parents."""
    whole = np.append(found, np.zeros(len(own) - len(found)))
    for t in range(len(found), len(own)):
        whole[t] = whole[t - 1] if shapes.is_single(t) else np.inf
    return whole


@kernel
def _sum_families(start: Ints, child: Ints, times: Floats, below: Floats, out: Floats) -> None:
    for i in range(out.shape[0]):
        for p in range(out.shape[1]):
            for e in range(start[p], start[p + 1]):
                for j in range(out.shape[2]):
                    out[i, p, j] += times[e] * below[i, child[e], j]


@kernel
def _sum_down(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    start: Ints,
    child: Ints,
    times: Floats,
    family: Floats,
    combined: Floats,
    nodes: Floats,
    above: Floats,
    out: Floats,
) -> None:
    for i in range(above.shape[0]):
        for p in range(above.shape[1]):
            for e in range(start[p], start[p + 1]):
                c = child[e]
                for j in range(above.shape[2]):
                    u = combined[i, c, j]
                    r = u / family[i, p, j]
                    each = r * r * above[i, p, j] + nodes[i, p, j] * u * (1 - r)
                    out[i, c, j] += times[e] * each


@kernel
def _largest_down(
    start: Ints, child: Ints, family: Floats, combined: Floats, above: Floats, out: Floats
) -> None:
    for i in range(above.shape[0]):
        for p in range(above.shape[1]):
            for e in range(start[p], start[p + 1]):
                c = child[e]
                for j in range(above.shape[2]):
                    u = combined[i, c, j]
                    r = u / family[i, p, j]
                    out[i, c, j] = max(out[i, c, j], r * r * above[i, p, j] + u * (1 - r))


@kernel
def _backwards_up(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    start: Ints,
    child: Ints,
    times: Floats,
    family: Floats,
    combined: Floats,
    nodes: Floats,
    above: Floats,
    by_total: Floats,
    by_above: Floats,
    by_combined: Floats,
    by_family: Floats,
) -> None:
    """`_sum_down` backwards: adds to the last three arrays."""
    for i in range(above.shape[0]):
        for p in range(above.shape[1]):
            for e in range(start[p], start[p + 1]):
                c = child[e]
                for j in range(above.shape[2]):
                    r = combined[i, c, j] / family[i, p, j]
                    per = above[i, p, j] / family[i, p, j]
                    many = nodes[i, p, j]
                    a = times[e] * by_total[i, c, j]
                    by_above[i, p, j] += a * r * r
                    by_combined[i, c, j] += a * (2 * r * per + many * (1 - 2 * r))
                    by_family[i, p, j] += a * r * r * (many - 2 * per)


@kernel
def _backwards_down(
    start: Ints, child: Ints, times: Floats, by_family: Floats, by_combined: Floats
) -> None:
    """`_sum_families` backwards: adds to the last array."""
    for i in range(by_family.shape[0]):
        for p in range(by_family.shape[1]):
            for e in range(start[p], start[p + 1]):
                for j in range(by_family.shape[2]):
                    by_combined[i, child[e], j] += times[e] * by_family[i, p, j]
