"""Least squares along one axis: the factor that each axis gives to a cube's estimates.

One axis alone is a tree with a variance v_k at each level k. Write, for a node and from its own
subtree alone, z for its best estimate, u for the variance of z and S = Σ u over its children:

    up:    u = 1 / (1/v + 1/S),  z = (u/v) x + (u/S) Σ z_child          (at the leaves u = v, z = x)
    down:  y_child = z_child + q (y_parent - Σ z),  q = u_child / S     (at the root y = z)

The children are ``y_child = q y_parent + e`` with e independent of y_parent and of everything
outside the family, and Cov(e) = diag(u) - u uᵀ/S (`hedgerow.estimate.tree.sums`). All below
follows from this. `hedgerow.estimate.tree.least_squares` makes u and the variances of y, in
O(nodes of the axis). Kernels go over a cube's tables, in place, which are seen as (left, nodes,
right): all axes before the one at hand, its nodes, all axes behind.

Given the true counts of a level e exactly, the estimate of a node i below e moves by g_i times the
gap of its ancestor at e, g_i being the product of q on the way: then what e *explains* of the
variance of i is g_i² Var(y_ancestor), and of a node at e or above it is all of it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, prod

import numpy as np
from scipy.sparse import csr_array

from hedgerow.arrays import (
    Array,
    Float64,
    FloatArrays,
    FloatPair,
    FloatTriple,
    Int64,
    Numbers,
    float64,
    run_sums,
)
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.factors import Factors
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import downward, upward
from hedgerow.kernels import kernel, over_families, run_range


@frozen(eq=False)
class AxisSquares:
    """The weights and variances of least squares along one axis.

    Attributes:
        shape: of the axis.
        own: float64 (levels): v of each level 0..L, infinite where it is not measured, 0 where
            the true counts are known; only products over axes have a unit, records².
        combined: for each level float64 (nodes): u.
        family: for each level but the last float64 (nodes): S.
        share: for each level from 1 on float64 (nodes): q; for level 0 ones.
        final: for each level float64 (nodes): the variance of y.
    """

    shape: AxisShape
    own: Float64
    combined: FloatArrays
    family: FloatArrays
    share: FloatArrays
    final: FloatArrays

    @classmethod
    def of(cls, shape: AxisShape, own: Numbers, *, public: int | None = None) -> "AxisSquares":
        """Go up and down the axis once.

        Args:
            shape: of the axis.
            own: the variance of each level, infinite where it is not measured.
            public: a level whose true counts stand in the place of measurements: its variance is
                0 whatever ``own`` says, and what is measured above it says nothing.

        Raises:
            EstimateError: a variance that is not above 0, or none for a level.
        """
        own = float64(own)
        usable = own > 0
        if public is not None:
            own[:public] = inf
            own[public] = 0.0
            usable[: public + 1] = True
        if len(own) != shape.depth + 1 or not usable.all() or own[-1] == inf:
            raise EstimateError(
                f"an axis needs a variance above 0 for each of its {shape.depth + 1} levels, "
                "a finite one for the last"
            )
        sizes = shape.sizes
        starts = (None, *shape.child_start)
        layers = [Layer(np.zeros(n), v, s) for n, v, s in zip(sizes, own, starts, strict=True)]
        up = upward(layers)
        combined = tuple(variance for _, variance in up)
        final = tuple(each.variance for each in downward(layers, up))
        family = tuple(sums(shape, k, below) for k, below in enumerate(combined[1:]))
        share = [
            _ratio(below, family[k][shape.parents(k + 1)], 0.0)
            for k, below in enumerate(combined[1:])
        ]
        return cls(shape, own, combined, family, (np.ones(1), *share), final)

    @property
    def depth(self) -> int:
        """The deepest level."""
        return self.shape.depth

    def down_to(self, level: int) -> "AxisSquares":
        """Return the axis without what is below a level."""
        if level == self.depth:
            return self
        return AxisSquares.of(self.shape.down_to(level), self.own[: level + 1])

    def summed_up(self, level: int) -> "AxisSquares":
        """Return the axis down to a level whose measurements are what each node's subtree says."""
        shape = self.shape.down_to(level)
        below = level + 1
        return AxisSquares(
            shape, self.own[:below], self.combined[:below], self.family[:level],
            self.share[:below], self.final[:below],
        )  # fmt: skip

    def own_weight(self, level: int) -> Float64:
        """Return u/v, the weight of a node's own measurement on the way up: float64 (nodes)."""
        return _ratio(self.combined[level], np.full(self.shape.sizes[level], self.own[level]), 1.0)

    def child_weight(self, level: int) -> Float64:
        """Return u/S, the weight of the sum over a node's children: float64 (nodes)."""
        return _ratio(self.combined[level], self.family[level], 1.0)

    def gain(self, level: int, exact: int) -> Float64:
        """Return the factor g of each node of a level at or below ``exact``: float64 (nodes)."""
        gain = np.ones(self.shape.sizes[exact])
        for k in range(exact + 1, level + 1):
            gain = gain[self.shape.parents(k)] * self.share[k]
        return gain

    def explained(self, level: int, exact: int) -> Float64:
        """Return what level ``exact`` explains of the variance of each node of a level."""
        if level <= exact:
            return self.final[level]
        above = self.final[exact][self.shape.ancestors(level, exact)]
        return self.gain(level, exact) ** 2 * above

    def explaining(self, level: int, weights: Float64, exact: int) -> tuple[int, Float64]:
        """Return the sum of nodes of level ``exact`` that explains a weighted sum at a level.

        Args:
            level: of the nodes that are summed.
            weights: float64 (nodes of the level, …), further dimensions being further sums.
            exact: the level whose counts are known.

        Returns:
            The level min(level, exact) and the weights of its nodes.
        """
        for k in range(level, exact, -1):
            weights = sums(self.shape, k - 1, weights * _aligned(self.share[k], weights))
        return min(level, exact), weights

    def covariances(self, level: int, weights: Float64) -> list[Float64]:
        """Return the covariance of every node's estimate with a weighted sum over one level.

        Args:
            level: of the nodes that are summed.
            weights: float64 (nodes of the level, …), further dimensions being further sums.

        Returns:
            For each level 0..L float64 (nodes, …).
        """
        upward = [weights]
        within = list[Float64]()
        for k in range(level, 0, -1):  # the sum as one over nodes of level k - 1 and residuals
            here = upward[0]
            within.insert(0, sums(self.shape, k - 1, here * _aligned(self.combined[k], here)))
            upward.insert(0, sums(self.shape, k - 1, here * _aligned(self.share[k], here)))
        covariances = [self.final[0] * upward[0]]
        for k in range(1, self.depth + 1):
            up = self.shape.parents(k)
            share = _aligned(self.share[k], weights)
            below = share * covariances[-1][up]
            if k <= level:
                below += _aligned(self.combined[k], weights) * upward[k] - share * within[k - 1][up]
            covariances.append(below)
        return covariances

    def covariance(self, first: tuple[int, Float64], second: tuple[int, Float64]) -> float:
        """Return the covariance of two weighted sums, each a level and its nodes' weights."""
        return float(second[1] @ self.covariances(*first)[second[0]])

    def covariance_factors(self, level: int, exact: int) -> tuple[Factors, Factors]:
        """Return the covariance of all nodes of a level, and what level ``exact`` explains of it.

        Args:
            level: whose nodes.
            exact: the level whose counts are known.
        """
        parents = [self.shape.parents(k) for k in range(1, level + 1)]
        every = Factors.along(self.final[0], parents, self.combined[1 : level + 1])
        if level <= exact:
            return every[level], every[level]
        above = self.shape.ancestors(level, exact)
        nodes = np.arange(self.shape.sizes[level])
        gains = csr_array((self.gain(level, exact), (nodes, above)))
        return every[level], every[exact].moved(gains)

    def subtree_coefficients(self) -> list[Float64]:
        """Return Σ t² of z, what each node's own subtree says of it: float64 (nodes, levels) each.

        z is Σ t M over the axis's measurements M; sums are by the level of M.
        """
        squares = [np.zeros((self.shape.sizes[-1], self.depth + 1))]
        squares[0][:, self.depth] = 1.0
        for k in range(self.depth - 1, -1, -1):
            here = self.child_weight(k)[:, None] ** 2 * sums(self.shape, k, squares[0])
            here[:, k] += self.own_weight(k) ** 2
            squares.insert(0, here)
        return squares

    def coefficients(self, level: int, exact: int) -> FloatTriple:
        """Return τ of each node of a level, by the level of the noise: float64 (nodes, levels).

        For sums w, w' of nodes τ(w, w', l) is the sum over level l of the products of their
        coefficients t; with noise of variance v_l, whatever the weights were chosen for, their
        covariance is Σ_l v_l τ(w, w', l). The first here is τ of a node with itself, the second
        with the sum of nodes of level ``exact`` that explains it, the third of that with itself.

        v_l² τ is the derivative of a (co)variance by -1/v_l, weights being the best, so that the
        first follows from ``final = u (1 - q) + q² Var(y_parent)`` and those of u and S.
        """
        up = self.subtree_coefficients()
        whole = crossed = regressor = up[0]
        explained = self.final[0][:, None]
        for k in range(1, level + 1):
            parent = self.shape.parents(k)
            q = self.share[k][:, None]
            family = self.family[k - 1][:, None]
            below = sums(self.shape, k - 1, up[k])
            r = self.final[k - 1][:, None] / family
            reach = explained / family
            shared = (1 - 2 * r) * below + whole
            whole = up[k] * (1 - 2 * q * (1 - r[parent])) + q**2 * shared[parent]
            crossed = q * (reach[parent] * up[k] + q * (crossed - reach * below)[parent])
            regressor, explained = q**2 * regressor[parent], q**2 * explained[parent]
            if k <= exact:
                crossed = whole
                regressor = whole
                explained = self.final[k][:, None]
        return whole, crossed, regressor

    def products(self, one: tuple[int, Float64], other: tuple[int, Float64]) -> Float64:
        """Return τ of two weighted sums along the axis, by level: float64 (…, levels)."""
        each = zip(self.own, self.covariances(*one), self.covariances(*other), strict=True)
        return np.stack(
            [np.zeros(a.shape[1:]) if v == inf else (a * b).sum(axis=0) / v**2 for v, a, b in each],
            axis=-1,
        )

    def factors(self, level: int, exact: int, weights: Float64) -> FloatPair:
        """Return the variance of sums over a level, and what level ``exact`` explains of it.

        Args:
            level: of the nodes that are summed.
            exact: the level whose counts are known.
            weights: float64 (nodes of the level, sums).
        """
        explaining = self.explaining(level, weights, exact)
        both = ((level, weights), explaining)
        of_sums, explained = ((w * self.covariances(k, w)[k]).sum(axis=0) for k, w in both)
        return of_sums, explained

    def coefficients_of(self, level: int, exact: int, weights: Float64) -> FloatTriple:
        """Return τ of sums over a level as `coefficients` does of nodes: float64 (sums, levels)."""
        one = (level, weights)
        other = self.explaining(level, weights, exact)
        return self.products(one, one), self.products(one, other), self.products(other, other)


def sums(shape: AxisShape, level: int, below: Float64) -> Float64:
    """Return the sum over the children of each node of a level: float64 (nodes, …)."""
    return run_sums(below, shape.child_start[level])


def _ratio(part: Float64, whole: Float64, otherwise: float) -> Float64:
    """Return part / whole, and a limit where the whole is 0: float64 (nodes)."""
    return np.asarray(np.divide(part, whole, out=np.full(len(part), otherwise), where=whole > 0))


def _aligned(values: Float64, weights: Float64) -> Float64:
    """Return the values of nodes, with as many dimensions as the weights."""
    return values.reshape(-1, *(1,) * (weights.ndim - 1))


def lines(table: Array, axis: int) -> Array:
    """Return a contiguous table as (left, nodes, right), without a copy."""
    left = table.shape[:axis]
    right = table.shape[axis + 1 :]
    return table.reshape(prod(left), table.shape[axis], prod(right))


def over_lines(
    task: Callable[[tuple[int, int, int, int]], None],
    shape: tuple[int, int, int],
    child_start: Int64,
) -> None:
    """Run ``task((l0, l1, p0, p1))`` over ranges of left and of parents that cover all once.

    Args:
        task: calls a kernel for ``l0 <= left < l1`` and the families ``p0 <= parent < p1``.
        shape: (left, children, right) of the lower table.
        child_start: int64 (parents + 1).
    """
    left, children, right = shape
    parents = len(child_start) - 1
    if left >= parents:
        starts = np.arange(left + 1, dtype=np.int64) * (children * right)
        over_families(lambda a, b: task((a, b, 0, parents)), starts)
    else:
        over_families(lambda a, b: task((0, left, a, b)), child_start * (left * right))


def combine_levels(own: AxisSquares, levels: Sequence[Float64], axis: int) -> None:
    """Pass up an axis, in place: turn noisy counts into what each node's subtree says of it.

    Args:
        own: least squares along the axis.
        levels: for each level of the axis a contiguous float64 table with its nodes along ``axis``.
        axis: which dimension of the tables.
    """
    for level in range(own.depth - 1, -1, -1):
        above = lines(levels[level], axis)
        below = lines(levels[level + 1], axis)
        weights = (own.own_weight(level), own.child_weight(level))
        start = own.shape.child_start
        task = partial(combine_lines, above, below, start[level], weights)
        over_lines(task, below.shape, start[level])


def spread_levels(own: AxisSquares, levels: Sequence[Float64], axis: int) -> None:
    """Pass down an axis, in place: after `combine_levels`, turn all levels into estimates."""
    for level in range(1, own.depth + 1):
        above = lines(levels[level - 1], axis)
        below = lines(levels[level], axis)
        start = own.shape.child_start[level - 1]
        task = partial(spread_lines, above, below, start, own.share[level])
        over_lines(task, below.shape, start)


@kernel
def combine_lines(
    upper: Float64,
    lower: Float64,
    child_start: Int64,
    weights: FloatPair,
    part: tuple[int, int, int, int],
) -> None:
    """Write ``own · upper + child · Σ lower`` to the upper table, (left, parents, right)."""
    own, child = weights
    right = upper.shape[2]
    for i in range(part[0], part[1]):
        for p in range(part[2], part[3]):
            # u/v of what is measured at the node, u/S of what its children add up to.
            for r in range(right):
                upper[i, p, r] *= own[p]
            for c in run_range(child_start, p):
                for r in range(right):
                    upper[i, p, r] += child[p] * lower[i, c, r]


@kernel
def spread_lines(
    upper: Float64,
    lower: Float64,
    child_start: Int64,
    share: Float64,
    part: tuple[int, int, int, int],
) -> None:
    """Move the children by their shares of the gap to their parent, in the lower table."""
    right = upper.shape[2]
    gap = np.empty(right)
    for i in range(part[0], part[1]):
        for p in range(part[2], part[3]):
            # y_parent - Σ z of the family, for all lines at once.
            for r in range(right):
                gap[r] = upper[i, p, r]
            for c in run_range(child_start, p):
                for r in range(right):
                    gap[r] -= lower[i, c, r]
            # Each child takes its share q of the gap.
            for c in run_range(child_start, p):
                for r in range(right):
                    lower[i, c, r] += share[c] * gap[r]
