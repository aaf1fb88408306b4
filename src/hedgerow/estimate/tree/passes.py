"""The passes of least squares up and down a tree, and backwards, over its distinct subtrees.

The formulas are those of `hedgerow.estimate.tree.error`; all arrays have one dimension an axis.
"""

from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.kernels import kernel


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Passes:
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
    own: Float64
    combine: bool
    top: int
    last: int
    combined: dict[int, Float64]
    family: dict[int, Float64]

    def __init__(self, shapes: Shapes, own: Float64, *, combine: bool) -> None:
        exact = np.flatnonzero(own == 0)
        top, last = int(exact[-1]) if len(exact) else -1, last_measured(own)
        combined: dict[int, Float64] = {}
        family: dict[int, Float64] = {}
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

    def totals(self) -> dict[int, Float64]:
        """Return, for each depth from ``top``, the summed variances by distinct subtree."""
        by_depth = {max(self.top, 0): np.zeros_like(self.shapes.nodes(max(self.top, 0)))}
        if self.top < 0:
            by_depth[0] = self.combined[0]
        for t in range(max(self.top, 0) + 1, self.last + 1):
            level, upper, lower = self.shapes.refined(t)
            by_depth[t] = np.zeros_like(self.combined[t])
            _sum_down(
                level.start, level.child, level.times,
                self.family[t - 1].reshape(upper), self.combined[t].reshape(lower),
                self.shapes.nodes(t - 1).reshape(upper), by_depth[t - 1].reshape(upper),
                by_depth[t].reshape(lower),
            )  # fmt: skip
        return by_depth

    def sums(self) -> Float64:
        """Return the sum of the variances of each depth 0..last."""
        by_depth = np.zeros(self.last + 1)
        for t, totals in self.totals().items():
            by_depth[t] = totals.sum()
        return by_depth

    def largest(self) -> Float64:
        """Return the largest variance of each depth 0..last."""
        by_depth = np.zeros(self.last + 1)
        above = np.zeros_like(self.shapes.nodes(max(self.top, 0)))
        if self.top < 0:
            above = self.combined[0]
            by_depth[0] = above.max()
        for t in range(max(self.top, 0) + 1, self.last + 1):
            level, upper, lower = self.shapes.refined(t)
            here = np.zeros_like(self.combined[t])
            _largest_down(
                level.start, level.child,
                self.family[t - 1].reshape(upper), self.combined[t].reshape(lower),
                above.reshape(upper), here.reshape(lower),
            )  # fmt: skip
            above, by_depth[t] = here, here.max()
        return by_depth

    def value_and_gradient(self, weight: Float64) -> tuple[float, Float64]:
        """Return Σ_t weight_t · sum_t over the depths 0..last, and its derivatives by all 1/v_t.

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

    def _gradient(self, by_combined: dict[int, Float64], by_family: dict[int, Float64]) -> Float64:
        """Return the pass up, backwards: adjoints of u and S to derivatives by precision."""
        gradient = np.zeros(len(self.own))
        for t in range(max(self.top, 0), self.last + 1):
            if t > self.top:
                by_precision = -(self.combined[t] ** 2) * by_combined[t]
                if self.combine or np.isfinite(self.own[t]):
                    gradient[t] = by_precision.sum()
                if t < self.last and (self.combine or np.isinf(self.own[t])):
                    by_family[t] -= by_precision / self.family[t] ** 2
            if t < self.last:
                level, upper, lower = self.shapes.refined(t + 1)
                _backwards_down(
                    level.start, level.child, level.times,
                    by_family[t].reshape(upper), by_combined[t + 1].reshape(lower),
                )  # fmt: skip
        if self.combine:
            for t in range(self.last + 1, len(gradient)):  # the same counts again, or unknown ones
                gradient[t] = gradient[t - 1] if self.shapes.is_single(t) else -np.inf
        return gradient


def last_measured(own: Float64) -> int:
    """Return the deepest depth whose own variance is finite."""
    return int(np.flatnonzero(np.isfinite(own))[-1])


# In the kernels below a depth's distinct subtrees are [i, p, j]: the axes before the refined one,
# that axis, and those after it. Entry e of parent shape p is the child shape child[e], times[e]
# times.


@kernel
def _sum_families(start: Int64, child: Int64, times: Float64, below: Float64, out: Float64) -> None:
    for i in range(out.shape[0]):
        for p in range(out.shape[1]):
            for e in range(start[p], start[p + 1]):
                for j in range(out.shape[2]):
                    out[i, p, j] += times[e] * below[i, child[e], j]


@kernel
def _sum_down(  # noqa: PLR0913, PLR0917 - kernels take arrays, not objects
    start: Int64,
    child: Int64,
    times: Float64,
    family: Float64,
    combined: Float64,
    nodes: Float64,
    above: Float64,
    out: Float64,
) -> None:
    for i in range(above.shape[0]):
        for p in range(above.shape[1]):
            for e in range(start[p], start[p + 1]):
                c = child[e]
                for j in range(above.shape[2]):
                    u = combined[i, c, j]
                    r = u / family[i, p, j]  # the child's share of its family's correction
                    each = r * r * above[i, p, j] + nodes[i, p, j] * u * (1 - r)
                    out[i, c, j] += times[e] * each


@kernel
def _largest_down(
    start: Int64, child: Int64, family: Float64, combined: Float64, above: Float64, out: Float64
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
    start: Int64,
    child: Int64,
    times: Float64,
    family: Float64,
    combined: Float64,
    nodes: Float64,
    above: Float64,
    by_total: Float64,
    by_above: Float64,
    by_combined: Float64,
    by_family: Float64,
) -> None:
    """Differentiate `_sum_down` backwards: add to the last three arrays."""
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
    start: Int64, child: Int64, times: Float64, by_family: Float64, by_combined: Float64
) -> None:
    """Differentiate `_sum_families` backwards: add to the last array."""
    for i in range(by_family.shape[0]):
        for p in range(by_family.shape[1]):
            for e in range(start[p], start[p + 1]):
                for j in range(by_family.shape[2]):
                    by_combined[i, child[e], j] += times[e] * by_family[i, p, j]
