"""The least squared error of any estimates where all families of each level have one size: exact.

Then the cells of a table are told apart by nothing, and best weights of pairs of cells are alike
for all pairs of a *class*: those whose deepest common ancestors are of the levels k, one an axis.
The contrasts of an axis of sizes n_0 = 1 < n_1 < … split into spaces, those of level b less those
of level b - 1, and on the products of these both G and L are numbers:

    Q_cᵀ Q_c:  Π_a (N_a / n_{c_a}) where b ≤ c, and 0 elsewhere,
    L_k:       (2/N) (1 - Π_a λ_{k_a}(b_a)),  λ_k(b) = 1 for b ≤ k, -1/(n_b/n_k - 1) for b = k + 1
               and 0 beyond, as A_k = (m_k J_k - m_{k+1} J_{k+1}) / (m_k - m_{k+1}) goes to all
               cells at once that part from a cell at level k: J_k takes means, over m_k = N_a/n_k;
    L of cells that come or go:  1/N.

So S = tr √(√G L √G) = Σ_b dim_b √(G_b L_b) is a concave function of one weight a class, whatever
the number of cells, and the bound S² is the least total itself (docs/proofs/least-error.md, "The
least error of any estimates").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from hedgerow.arrays import Float64, FloatArrays, OfCuboids, OtherCuboids
from hedgerow.errors import PlanError
from hedgerow.plan.efficiency.traces import ONE_CELL
from hedgerow.tables.tree import Tree

CLOSE = 1e-7
"""The relative distance from the best bound at which the search ends."""
MOST_STEPS = 500
WORK = 1 << 24
"""Numbers that the search may visit."""
NOTHING = 1e-12
"""A number of L below so many parts of its largest one is a rounding error, and taken for 0."""


@dataclass(frozen=True, eq=False)
class Even:
    """The spaces, classes and cuboids of a table whose families are alike.

    All arrays have one dimension an axis: its sizes, each once.

    Attributes:
        cells: N.
        sizes: of the levels of each axis: float64 (sizes).
        importance: of each cuboid.
        places: where each cuboid stands.
    """

    cells: float
    sizes: FloatArrays
    importance: Float64
    places: OtherCuboids

    @classmethod
    def of(cls, tree: Tree, importance: OfCuboids) -> "Even":
        """Return those of a tree.

        Raises:
            PlanError: it has one cell.
            OverflowError: it has more cells than a floating-point number can count.
        """
        if tree.leaves == 1:
            raise PlanError(ONE_CELL)
        each = [np.unique(list(map(float, axis.sizes)), return_inverse=True) for axis in tree.axes]
        places = {
            levels: tuple(int(at[k]) for (_, at), k in zip(each, levels, strict=True))
            for levels in importance
        }
        dense = np.zeros([len(sizes) for sizes, _ in each])
        for levels, place in places.items():
            dense[place] += importance[levels]
        return cls(float(tree.leaves), tuple(sizes for sizes, _ in each), dense, places)

    def least(self, *, single: bool, moved: bool) -> tuple[float, OfCuboids, float]:
        """Return the least total, each cuboid's part of it, and its slack (`LeastTotal`).

        Weights are searched for by w ← w (∂/∂w)², scaled; S is concave, and Σ w ∂/∂w its half, so
        that no weights have more than S/2 + max ∂/∂w.

        Args:
            single: whether records come or go.
            moved: whether they move.
        """
        gains = [np.triu(np.tile(sizes[-1] / sizes, (len(sizes), 1))) for sizes in self.sizes]
        means = [_eigenvalues(sizes) for sizes in self.sizes]
        dims = reduce(np.multiply.outer, [np.diff(sizes, prepend=0.0) for sizes in self.sizes])
        g = _along(gains, self.importance)
        # The class of a cell and itself stands for the cells that come or go.
        weight = np.full(g.shape, float(moved))
        apart = np.full(g.shape, 2.0)
        weight.flat[-1] = single
        apart.flat[-1] = 0.0
        own = np.maximum(apart, 1.0)
        weight /= weight.sum()
        best = 0.0
        most = np.inf
        chosen = g
        for _ in range(min(MOST_STEPS, 1 + WORK // g.size)):
            seen = (own * weight).sum() - _along(means, apart * weight)  # N L on each space
            seen[seen < NOTHING] = 0.0
            root = dims * np.sqrt(g * seen)
            value = float(root.sum())
            by_seen = np.divide(root, seen, out=np.zeros_like(seen), where=seen > 0) / 2
            slope = own * by_seen.sum() - apart * _along([each.T for each in means], by_seen)
            slope = np.where(weight > 0, 2 * slope / value, 0.0)  # at most 1 where they are best
            most = min(most, value * (1 + float(slope.max())) / 2)
            if value > best:
                best, chosen = value, root
            if most < best * (1 + CLOSE / 2):
                break
            weight *= slope**2
            weight /= weight.sum()
        by_gain = np.divide(chosen, g, out=np.zeros_like(g), where=g > 0)
        by_place = _along([gain.T for gain in gains], by_gain) * (best / self.cells)
        errors = {levels: float(by_place[at]) for levels, at in self.places.items()}
        return best**2 / self.cells, errors, (most / best) ** 2 - 1


def _eigenvalues(sizes: Float64) -> Float64:
    """Return λ_k(b), and 1 for a cell and itself: float64 (spaces, classes)."""
    eigenvalues = np.triu(np.ones((len(sizes), len(sizes))))
    for k in range(len(sizes) - 1):
        eigenvalues[k + 1, k] = -1 / (sizes[k + 1] / sizes[k] - 1)
    return eigenvalues


def _along(matrices: Sequence[Float64], table: Float64) -> Float64:
    """Multiply a table by a matrix along each axis."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table
