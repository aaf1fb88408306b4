"""tr √(√G L √G) along a tree: what the least error at a price is the square of.

G = Σ_t g_t Q_tᵀ Q_t, Q_t summing the leaves below each node of level t; L weighs pairs of leaves
that neighbours may differ in (`hedgerow.plan.efficiency.least_total`). Q_tᵀ Q_t are blocks of ones,
so log det(I + LG/t) takes one pass up the tree, and

    tr √M = (1/2π) ∫ log det(I + M/t) t^(-1/2) dt

by the trapezoidal rule in log t, whose relative error with steps of 1 is below 1e-8 for every
eigenvalue, and whose ends are cut off downwards (docs/proofs/least-error.md, "The least error of
any estimates").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Float64, FloatTriple, Int64, IntTriple, Sizes, float64, starts_of
from hedgerow.declared import frozen
from hedgerow.errors import PlanError
from hedgerow.kernels import kernel, over_families
from hedgerow.limits import MOST_FAMILIES

BELOW, ABOVE = 60, 32
"""How far the integral goes beyond the largest eigenvalue, in log t, to either side."""
TRAPEZOID = 1e-7
"""What the rule, and rounding where t is small, may be off by, relatively; the bound is less."""
NEAR_ZERO = 1e-14

ONE_CELL = "a table of one cell has nothing to divide the budget among"


@frozen(kw_only=True)
class Pairs:
    """Which neighbours the dual weighs.

    Attributes:
        single: α, the weight of those that come or go.
        moved: the weight of those that move, 1 - α.
    """

    single: float
    moved: float


COME, MOVE = Pairs(single=1.0, moved=0.0), Pairs(single=0.0, moved=1.0)


@dataclass(frozen=True, eq=False)
class Branches:
    """A tree of at least two levels below its root, the leaves of a family being alike.

    Attributes:
        parent: int64 (nodes of the levels 1..T-1, one behind the other): the place of the parent;
            that of level 1 is not looked at.
        start: where each level's nodes begin, for 1..T-1, and the end.
        leaves: int64 (nodes of level T-1): how many each has.
        top: int64 (nodes of level T-1): the node of level 1 above.
        merged: for each level of the tree that was given the one that stands for it here.
    """

    parent: Int64
    start: Int64
    leaves: Int64
    top: Int64
    merged: Sizes

    @classmethod
    def of(cls, families: Sequence[Int64]) -> "Branches":
        """Return the tree whose nodes of level t have so many children each, in order.

        Levels of one node are its root; where the root's children are the leaves, each is a family
        of its own.
        """
        single = next((t for t, sizes in enumerate(families) if sizes.sum() > 1), None)
        if single is None:
            raise PlanError(ONE_CELL)
        check_families(sum(map(len, families)))
        kept = list(families[single:])
        levels = len(families) + 1
        merged = tuple(max(0, t - single) for t in range(levels))
        if len(kept) == 1:
            kept.append(np.ones(int(kept[0][0]), np.int64))
            merged = tuple(2 if t else 0 for t in merged)
        start = starts_of(kept[1:])
        parents = [
            np.repeat(np.arange(len(sizes)), sizes) + (start[t - 1] if t else 0)
            for t, sizes in enumerate(kept[:-1])
        ]
        top = np.arange(int(kept[0][0]))
        for sizes in kept[1:-1]:
            top = np.repeat(top, sizes)
        return cls(np.concatenate(parents), start, kept[-1], top, merged)

    @property
    def even(self) -> Float64:
        """Equal weights of all leaves, of which the families hold one each: float64 (families)."""
        return np.full(len(self.leaves), 1 / self.leaves.sum())

    @property
    def visits(self) -> int:
        """How many nodes a trace visits."""
        return (len(self.parent) + 1) * (BELOW + ABOVE)

    def importance(self, given: Float64) -> Float64:
        """Return importances by level, of the levels here: float64 (T + 1)."""
        importance = np.zeros(len(self.start) + 1)
        np.add.at(importance, list(self.merged), given)
        return importance

    def largest(self, importance: Float64, weight: Float64) -> float:
        """Return an upper bound of the largest eigenvalue of √G L √G: the largest row of LG."""
        below: Float64 = self.leaves * weight
        rows: Float64 = importance[-1] * weight
        for t in range(len(self.start) - 1, 1, -1):
            rows = rows + importance[t] * below
            parent = self.parents(t)
            first = np.flatnonzero(np.diff(parent, prepend=-1))
            below = float64(np.bincount(parent, below))
            rows = np.maximum.reduceat(rows, first)
        return float(importance[0] * below.sum() + (rows + importance[1] * below).max())

    def parents(self, level: int) -> Int64:
        """Return the parents of a level's nodes below level 1, numbered in their level."""
        here = slice(self.start[level - 1], self.start[level])
        return np.asarray(self.parent[here] - self.start[level - 2])

    def heaviest(self, weight: Float64) -> Float64:
        """Return the largest weight of a node of each level that was given: float64 (levels)."""
        below: Float64 = self.leaves * weight
        heaviest = [float(weight.max())]
        for t in range(len(self.start) - 1, 0, -1):
            heaviest.append(float(below.max()))
            if t > 1:
                below = float64(np.bincount(self.parents(t), below))
        return np.array([1.0, *heaviest[::-1]])[list(self.merged)]


@frozen(eq=False)
class Root:
    """tr √(√G L √G), and its derivatives.

    Attributes:
        value: what it is at least.
        by_level: by the importance of each level of the tree that was given.
        by_family: by the weight of a leaf of each family; for neighbours that come or go alone.
    """

    value: float
    by_level: Float64
    by_family: Float64


def root_of(
    tree: Branches, importance: Float64, weight: Float64, pairs: Pairs, opposed: float = 1.0
) -> Root:
    """Return tr √(√G L √G) of a tree.

    Neighbours that move leave one node of level 1 for another: L = D - θ Σ_{R ≠ S} w_R w_Sᵀ over
    the blocks w_R of the weights, with D its row sums for θ = 1.

    Args:
        tree: the branches.
        importance: float64 (levels): of a squared error, for each level that was given, root first.
        weight: float64 (families): of each leaf of a family; those of all leaves sum to 1.
        pairs: which neighbours are weighed.
        opposed: θ, which is 1 but for contrasts of other axes, from -1 to 1.
    """
    g = tree.importance(importance)
    if pairs.single == 0 and opposed == 1:
        # Who moves leaves the total: L1 = 0, so its importance is none. The rounding of log det is
        # that of the largest eigenvalue that there may be, which without it is one that there is.
        g[0] = 0.0
        if not g.any():
            return Root(0.0, np.zeros(len(tree.merged)), np.zeros(len(weight)))
    blocks = float64(np.bincount(tree.top, tree.leaves * weight))
    moved = 2 * pairs.moved / (1 - float(blocks @ blocks))
    held: Float64 = moved * (1 - blocks) + pairs.single  # κ: D is κ_R w within block R
    own = weight * held[tree.top]
    largest = np.log(tree.largest(g, own) * 2)
    points = np.arange(np.floor(largest) - BELOW, np.ceil(largest) + ABOVE)
    values = np.zeros(len(points))
    by_level = np.zeros((len(points), len(g)))
    by_family = []

    def run(first: int, last: int) -> None:
        derivatives = np.zeros(len(own))
        _log_determinants(
            (first, last), points, (tree.parent, tree.start, tree.leaves),
            (own, blocks, held, g), (pairs.single, moved, opposed), (values, by_level, derivatives),
        )  # fmt: skip
        by_family.append(derivatives)

    over_families(run, np.arange(len(points) + 1) * (len(tree.parent) + 1))
    levels = by_level.sum(axis=0)[list(tree.merged)]
    return Root(float(values.sum()) * (1 - TRAPEZOID), levels, np.sum(by_family, axis=0))


@kernel
def _log_determinants(  # noqa: C901, PLR0912, PLR0915 - one walk up a tree and down again
    span: tuple[int, int],
    points: Float64,
    tree: IntTriple,
    problem: tuple[Float64, Float64, Float64, Float64],
    pairs: tuple[float, float, float],
    out: FloatTriple,
) -> None:
    """Add up log det(I + LG/t) and its derivatives at some points t, weighted for the integral."""
    # Up: F of a subtree is 1ᵀ(D⁻¹ + G/t)⁻¹1 over its leaves, r the sum of the children's, and a
    # node adds log(1 + γ r), γ = g/t. At the root the k blocks R meet, with φ = F/κ and
    # n = (W - φ)/κ: L adds Π(1 + θn) · (1 - θ Σ n/(1 + θn)), and the root's own γ the factor
    # 1 + γh, h = ΣF + θ(φᵀy - Σφ Σy), y = (φ + θnΣy)/(1 + θn). Down: derivatives by F.
    parent, start, leaves = tree
    own, blocks, held, g = problem
    single, moved, contrast = pairs
    opposed = moved * contrast
    values, by_level, by_family = out
    levels = len(start)
    nodes = len(parent)
    k = len(blocks)
    last = start[levels - 2]  # where the families begin
    r = np.empty(nodes)
    back = np.empty(nodes)
    phi = np.empty(k)
    n = np.empty(k)
    y = np.empty(k)
    at_top = np.empty(k)
    for p in range(span[0], span[1]):
        t = np.exp(points[p])
        scale = np.exp(points[p] / 2) / (2 * np.pi)
        log_determinant = 0.0
        gamma = g[levels] / t
        for i in range(last):
            r[i] = 0.0
        for i in range(len(leaves)):
            log_determinant += leaves[i] * np.log1p(own[i] * gamma)
            r[last + i] = leaves[i] * own[i] / (1 + own[i] * gamma)
        for level in range(levels - 1, 0, -1):
            gamma = g[level] / t
            for i in range(start[level - 1], start[level]):
                log_determinant += np.log1p(gamma * r[i])
                if level > 1:
                    r[parent[i]] += r[i] / (1 + gamma * r[i])
        gamma = g[1] / t
        root = g[0] / t
        # rest is 1 - θ Σ n/(1 + θn), and inside 1 + θn, both without the cancellation.
        rest = total = sum_y = sum_phi = 0.0
        for i in range(k):
            f = r[i] / (1 + gamma * r[i])
            total += f
            phi[i] = f / held[i]
            n[i] = (blocks[i] - phi[i]) / held[i]
            inside = single + moved * (1 - blocks[i] * (1 - contrast) - contrast * phi[i])
            inside /= held[i]
            if abs(inside) < NEAR_ZERO:  # of a t so small that it hardly counts
                inside = NEAR_ZERO
            at_top[i] = inside
            apart = moved * (1 - blocks[i])
            kept = blocks[i] * (single + apart * (1 - contrast)) + contrast * apart * phi[i]
            rest += kept / (held[i] * inside)
            sum_y += phi[i] / inside
            sum_phi += phi[i]
            log_determinant += np.log(abs(inside))
        if contrast < 1 and abs(rest) < NEAR_ZERO:  # of two blocks opposed it is but rounding there
            rest = NEAR_ZERO
        log_determinant += np.log(max(abs(rest), 1e-300))  # where one is below 0, so is the other
        sum_y /= rest
        h = total - opposed * sum_phi * sum_y
        for i in range(k):
            y[i] = (phi[i] + opposed * n[i] * sum_y) / at_top[i]
            h += opposed * phi[i] * y[i]
        h = max(h, 0.0)
        log_determinant += np.log1p(root * h)
        values[p] = scale * log_determinant
        scale /= t
        by_level[p, 0] = scale * h / (1 + root * h)
        for i in range(k):
            # A = C(I + nC)⁻¹ at (i, i), and what the root's own measurement takes.
            inside = at_top[i]
            over = 1 / (inside * rest)
            a = opposed * ((1 + opposed * n[i] * over) / inside - over)
            share = 1 + opposed * (y[i] - sum_y) / held[i]
            back[i] = root * share * share / (1 + root * h) - a / (held[i] * held[i])
        for level in range(1, levels):
            gamma = g[level] / t
            for i in range(start[level - 1], start[level]):
                f_back = back[i] if level == 1 else back[parent[i]]
                inside = 1 + gamma * r[i]
                f = r[i] / inside
                by_level[p, level] += scale * (f - f_back * f * f)
                back[i] = gamma / inside + f_back / (inside * inside)
        gamma = g[levels] / t
        for i in range(len(leaves)):
            inside = 1 + own[i] * gamma
            f = own[i] / inside
            f_back = back[last + i]
            by_level[p, levels] += scale * leaves[i] * (f - f_back * f * f)
            by_family[i] += scale * t * (gamma / inside + f_back / (inside * inside))


def check_families(many: int) -> None:
    """Raise a PlanError for more families than are walked in some seconds."""
    if many > MOST_FAMILIES:
        raise PlanError(f"a tree of more than {MOST_FAMILIES:,} families takes too long")
