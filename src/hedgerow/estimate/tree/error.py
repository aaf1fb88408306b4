"""The exact variance of the estimates of a whole tree, from its real family sizes.

*Combined* estimates are least squares over all depths (Hay et al. 2010, any families and
variances). *Projected* ones are projected family by family from the root down. A variance of 0 is a
public depth, an infinite one an unmeasured depth. All is exact for real-valued estimates; rounding
and cutting off at 0 are not in it. The work is that of the distinct subtrees (`Shapes`), never that
of the nodes. Formulas: `docs/proofs/variances.md`, "Variances of a whole tree".
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.arrays import ByLevel, Float64, FloatPair, FloatTriple, Int64, Numbers, distinct
from hedgerow.declared import frozen
from hedgerow.errors import EstimateError
from hedgerow.estimate.tree.shapes import Shapes
from hedgerow.kernels import kernel


def mean_variances(shapes: Shapes, own_variance: Numbers, *, combine: bool) -> Float64:
    """Return the mean variance of the estimates of each depth's nodes: float64 (T + 1), records².

    Returns:
        inf for a depth about which the measurements do not say enough.
    """
    own = _checked(shapes, own_variance)
    if not combine and _is_measured_throughout(shapes, own):
        sums: Float64 = _by_source(shapes.projection, own).sum(axis=1)
        return sums / shapes.sizes
    return Passes.of(shapes, own, combine=combine).by_depth() / shapes.sizes


def largest_variances(shapes: Shapes, own_variance: Numbers, *, combine: bool) -> Float64:
    """Return the largest variance among the nodes of each depth: float64 (T + 1), records².

    Exact; but where a tree has too many distinct subtrees and is projected, an upper bound: every
    parent is taken for the worst one of its depth. Arguments and errors are those of
    `mean_variances`.
    """
    own = _checked(shapes, own_variance)
    if combine or shapes.fit or not _is_measured_throughout(shapes, own):
        return Passes.of(shapes, own, combine=combine).by_depth(largest=True)
    by_depth = own.copy()
    for t, (axis, level) in enumerate(shapes.steps, start=1):
        n = distinct(shapes.levels[axis][level - 1].families)
        n_own = np.where(n > 1, own[t], 0.0)  # an only child is its parent
        by_depth[t] = (by_depth[t - 1] / n**2 + n_own * (1 - 1 / n)).max()
    return by_depth


def weighted_variance_and_gradient(
    shapes: Shapes, own_variance: Numbers, weights: Numbers, *, combine: bool
) -> tuple[float, Float64]:
    """Return Σ_t weights_t Σ_{nodes of t} Var, and its derivatives by the depths' precisions 1/v_t.

    By reverse differentiation of the two passes, so both cost a few evaluations.

    Returns:
        The sum (inf where a weighted depth is not determined), and float64 (T + 1): at most 0, and
        0 for public depths. Combined, it says of an unmeasured depth what measuring it would begin
        to gain; projected, it is 0 there, for a bad measurement would be worse than none.
    """
    own = _checked(shapes, own_variance)
    weight = _numbers(shapes, weights, "weights")
    if not np.isfinite(weight).all():
        raise EstimateError("weights must be finite")
    if not combine and _is_measured_throughout(shapes, own):
        effect = weight @ shapes.projection
        costs = _by_source(effect, own)
        return float(costs.sum()), -_by_source(costs, own)
    last = last_measured(own)
    beyond = weight.copy()
    for t in range(shapes.depth, last, -1):
        if not shapes.is_single(t):
            if weight[t:].any():
                return float("inf"), np.full(len(own), -np.inf)
            continue
        beyond[t - 1] += beyond[t]  # an unmeasured only child has its parent's estimate
    passes = Passes.of(shapes, own, combine=combine)
    return passes.value_and_gradient(beyond[: last + 1], passes.down())


def _checked(shapes: Shapes, own_variance: Numbers) -> Float64:
    own = _numbers(shapes, own_variance, "own_variance")
    if not np.isfinite(own).any():
        raise EstimateError("own_variance must be finite for at least one depth: none is measured")
    return own


def _numbers(shapes: Shapes, given: Numbers, name: str) -> Float64:
    """Return the numbers, one a depth and none below 0."""
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape != (shapes.depth + 1,):
        raise EstimateError(
            f"{name} must hold one number for each of {shapes.depth + 1} depths, got {numbers.size}"
        )
    if not (numbers >= 0).all():
        raise EstimateError(f"{name} must not hold numbers below 0 or NaN, got {list(given)}")
    return numbers


def _is_measured_throughout(shapes: Shapes, own: Float64) -> bool:
    """Return whether all depths to the last measured one are measured, only children aside."""
    unmeasured = np.flatnonzero(np.isinf(own[: last_measured(own)]))
    return all(t > 0 and shapes.is_single(int(t)) for t in unmeasured)


def _by_source(effect: Float64, own: Float64) -> Float64:
    """Return what each depth's own variance adds; where it has no effect, it may be infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(effect > 0, effect * own, 0.0)


Entries = tuple[Int64, Int64, Float64]
"""The parents' shapes, the children's, and how many such children a parent has."""
Both = FloatPair


@frozen(eq=False)
class Passes:
    """The passes up, down and backwards between the deepest public and the last measured depth.

    They go over distinct subtrees; all arrays have one dimension an axis.

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
    combined: ByLevel
    family: ByLevel

    @classmethod
    def of(cls, shapes: Shapes, own: Float64, *, combine: bool) -> "Passes":
        """Go up the tree."""
        exact = np.flatnonzero(own == 0)
        top = int(exact[-1]) if len(exact) else -1
        last = last_measured(own)
        passes = cls(shapes, own, combine, top, last, {}, {})
        combined = passes.combined
        family = passes.family
        for t in range(last, top, -1):
            if t == last:
                combined[t] = np.full(shapes.counts(t), own[t])
            elif combine or np.isinf(own[t]):
                combined[t] = 1 / (1 / own[t] + 1 / family[t])
            else:
                combined[t] = np.full_like(family[t], own[t])
            if t:
                family[t - 1] = np.zeros(shapes.counts(t - 1))
                (parent, child, times), out, below = passes._around(t)
                _add(child, parent, times, below, out)
        return passes

    @property
    def first(self) -> int:
        """The depth at which the pass down begins."""
        return max(self.top, 0)

    def _around(self, t: int) -> tuple[Entries, Float64, Float64]:
        """Return the entries of the refinement to a depth, S above it, and u there."""
        level, upper, lower = self.shapes.refined(t)
        entries = level.shape, level.child, level.times
        return entries, self.family[t - 1].reshape(upper), self.combined[t].reshape(lower)

    def down(self, *, largest: bool = False) -> ByLevel:
        """Return, for each depth from the first, variances by distinct subtree: summed, or largest.

        The largest are those among the nodes that have the subtree.
        """
        root = self.combined[0] if self.top < 0 else np.zeros(self.shapes.counts(self.first))
        by_depth = {self.first: root}
        for t in range(self.first + 1, self.last + 1):
            entries, family, combined = self._around(t)
            nodes = np.ones_like(family) if largest else self._nodes(t - 1, family)
            above = by_depth[t - 1].reshape(family.shape)
            by_depth[t] = np.zeros_like(self.combined[t])
            out = by_depth[t].reshape(combined.shape)
            _go_down(entries, (family, combined), (nodes, above), largest, out)
        return by_depth

    def _nodes(self, t: int, like: Float64) -> Float64:
        return self.shapes.nodes(t).reshape(like.shape)

    def by_depth(self, *, largest: bool = False) -> Float64:
        """Return the sum, or the largest, of the variances of each depth: float64 (T + 1)."""
        by_depth = np.zeros(len(self.own))
        for t, variances in self.down(largest=largest).items():
            by_depth[t] = variances.max() if largest else variances.sum()
        for t in range(self.last + 1, len(by_depth)):  # only children are as good as their parents
            by_depth[t] = by_depth[t - 1] if self.shapes.is_single(t) else np.inf
        return by_depth

    def value_and_gradient(
        self, weight: Sequence[Float64] | Float64, totals: ByLevel
    ) -> tuple[float, Float64]:
        """Return Σ_t weight_t · sum_t over the depths 0..last, and its derivatives by all 1/v_t.

        Weights of a depth may differ by distinct subtree; totals are what `down` returns. The
        passes backwards: first the one down, whose adjoints begin at the leaves, then the one up,
        whose adjoints begin at the root.
        """
        value = float(sum((weight[t] * total).sum() for t, total in totals.items()))
        by_combined = {t: np.zeros_like(u) for t, u in self.combined.items()}
        by_family = {t: np.zeros_like(s) for t, s in self.family.items()}
        by_total = np.full_like(totals[self.last], weight[self.last])
        for t in range(self.last, self.first, -1):
            entries, family, combined = self._around(t)
            upper = family.shape
            lower = combined.shape
            by_above = np.full_like(totals[t - 1], weight[t - 1])
            _go_backwards(
                entries, (family, combined),
                (self._nodes(t - 1, family), totals[t - 1].reshape(upper)),
                by_total.reshape(lower),
                (by_above.reshape(upper), by_combined[t].reshape(lower),
                 by_family[t - 1].reshape(upper)),
            )  # fmt: skip
            by_total = by_above
        if self.top < 0:
            by_combined[0] += by_total
        return value, self._gradient(by_combined, by_family)

    def _gradient(self, by_combined: ByLevel, by_family: ByLevel) -> Float64:
        """Return the pass up, backwards: adjoints of u and S to derivatives by precision."""
        gradient = np.zeros(len(self.own))
        for t in range(self.first, self.last + 1):
            if t > self.top:
                by_precision = -(self.combined[t] ** 2) * by_combined[t]
                if self.combine or np.isfinite(self.own[t]):
                    gradient[t] = by_precision.sum()
                if t < self.last and (self.combine or np.isinf(self.own[t])):
                    by_family[t] -= by_precision / self.family[t] ** 2
            if t < self.last:
                (parent, child, times), family, combined = self._around(t + 1)
                given = by_family[t].reshape(family.shape)
                out = by_combined[t + 1]
                _add(parent, child, times, given, out.reshape(combined.shape))
        if self.combine:
            for t in range(self.last + 1, len(gradient)):  # the same counts again, or unknown ones
                gradient[t] = gradient[t - 1] if self.shapes.is_single(t) else -np.inf
        return gradient


def last_measured(own: Float64) -> int:
    """Return the deepest depth whose own variance is finite."""
    return int(np.flatnonzero(np.isfinite(own))[-1])


# In the kernels below a depth's distinct subtrees are [i, p, j] or [i, c, j]: the axes before the
# refined one, that axis, and those after it. Entry e says that parents of shape p have times[e]
# children of shape c.


@kernel
def _add(of: Int64, to: Int64, times: Float64, given: Float64, out: Float64) -> None:
    """Add up over children, from shapes c to shapes p; or, backwards, from p to c."""
    for i in range(out.shape[0]):
        for e in range(len(times)):
            # Innermost is what lies side by side in memory.
            for j in range(out.shape[2]):
                out[i, to[e], j] += times[e] * given[i, of[e], j]


@kernel
def _go_down(
    entries: Entries,
    variances: Both,
    parents: Both,
    largest: bool,  # noqa: FBT001 - a kernel has no keyword-only arguments
    out: Float64,
) -> None:
    """Write the variances of children, given S and u, and the parents' numbers and variances."""
    parent, child, times = entries
    family, combined = variances
    nodes, above = parents
    for i in range(above.shape[0]):
        for e in range(len(times)):
            p, c = parent[e], child[e]
            for j in range(above.shape[2]):
                u = combined[i, c, j]
                r = u / family[i, p, j]  # the child's share of its family's correction
                each = r * r * above[i, p, j] + nodes[i, p, j] * u * (1 - r)
                before = out[i, c, j]
                out[i, c, j] = max(before, each) if largest else before + times[e] * each


@kernel
def _go_backwards(
    entries: Entries,
    variances: Both,
    parents: Both,
    by_total: Float64,
    out: FloatTriple,
) -> None:
    """Differentiate `_go_down` of sums: add to the adjoints of the parents' sums, of u and of S."""
    parent, child, times = entries
    family, combined = variances
    nodes, above = parents
    by_above, by_combined, by_family = out
    for i in range(above.shape[0]):
        for e in range(len(times)):
            p, c = parent[e], child[e]
            for j in range(above.shape[2]):
                # The derivatives of r² above + n u (1 - r), r = u/S: by above r², by u
                # 2r above/S + n (1 - 2r), by S r² (n - 2 above/S).
                r = combined[i, c, j] / family[i, p, j]
                per = above[i, p, j] / family[i, p, j]
                many = nodes[i, p, j]
                a = times[e] * by_total[i, c, j]
                by_above[i, p, j] += a * r * r
                by_combined[i, c, j] += a * (2 * r * per + many * (1 - 2 * r))
                by_family[i, p, j] += a * r * r * (many - 2 * per)
