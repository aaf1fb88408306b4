"""The covariance of all estimates of a cuboid as sparse factors, C = W diag(v) Wᵀ (records²).

*Along a tree* an estimate is a share of its parent's and a residual, y_c = q_c y_p + r_c, residuals
of a family having the covariance diag(u) - u uᵀ/S and none with anything else
(`hedgerow.estimate.tree.sums`). So W has a column for the root, and at each depth one for each
node, with v = u, and one for each family, with v = -1/S: at a cell below, the product of the shares
q on the way to that node, or of the family's u and these shares. That is O(depth) numbers a cell.

*A product over axes* has Kronecker products of such factors, and what a public cuboid explains,
which is a product, too, is taken off: its v change their signs.
"""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, hstack, kron

from hedgerow.arrays import Float64, Int64, Numbers
from hedgerow.declared import frozen


@frozen(eq=False)
class Factors:
    """A covariance matrix C = W diag(v) Wᵀ, which need not be written out.

    Attributes:
        weights: W, a sparse array (cells, parts).
        variances: float64 (parts): v, records²; below 0 for what is taken off.

    Example:
        >>> one = Factors.along([2.0], [np.zeros(3, dtype=np.int64)], [np.ones(3)])[1]
        >>> one.times(np.ones(3)).round(9).tolist()  # the sum of the three is the root's
        [0.666666667, 0.666666667, 0.666666667]
    """

    weights: csr_array
    variances: Float64

    @classmethod
    def along(
        cls, root: Numbers, parents: Sequence[Int64], combined: Sequence[Float64]
    ) -> "list[Factors]":
        """Return those of each depth of a tree, from the roots down.

        Args:
            root: the variance of each root's estimate, records².
            parents: for each depth below int64 (nodes): the parent of each node.
            combined: for each of them float64 (nodes): u, finite.
        """
        roots = np.asarray(root, dtype=np.float64)
        every = [cls(eye_array(len(roots), format="csr"), roots)]
        for above, u in zip(parents, combined, strict=True):
            every.append(every[-1].below(above, u))
        return every

    @classmethod
    def diagonal(cls, variances: Float64) -> "Factors":
        """Return those of estimates that are independent."""
        return cls(eye_array(len(variances), format="csr"), np.array(variances))

    def below(self, parents: Int64, u: Float64) -> "Factors":
        """Return those of the nodes below, as `along` does."""
        nodes = len(parents)
        is_child = csr_array(
            (np.ones(nodes), (np.arange(nodes), parents)), shape=(nodes, self.weights.shape[0])
        )
        families = np.bincount(parents, u, minlength=is_child.shape[1])
        told = families > 0  # of a family without errors the parent's move nobody
        q = np.divide(u, families[parents], out=np.zeros(nodes), where=told[parents])
        of_family = (diags_array(u) @ is_child).tocsc()[:, np.flatnonzero(told)]
        weights = [diags_array(q) @ is_child @ self.weights, eye_array(nodes), of_family]
        variances = np.concatenate([self.variances, u, -1 / families[told]])
        return Factors(csr_array(hstack(weights, format="csr")), variances)

    def moved(self, gains: csr_array) -> "Factors":
        """Return those of sums of these estimates: the rows of a sparse array of weights."""
        return Factors(csr_array(gains @ self.weights), self.variances)

    @classmethod
    def product(cls, axes: Sequence["Factors"]) -> "Factors":
        """Return those of a covariance that is a Kronecker product over axes."""
        weights = reduce(lambda a, b: kron(a, b, format="csr"), [each.weights for each in axes])
        variances = reduce(np.multiply.outer, [each.variances for each in axes]).ravel()
        return cls(csr_array(weights), variances)

    @classmethod
    def sum(cls, terms: Sequence[tuple[float, "Factors"]]) -> "Factors":
        """Return those of a sum of covariances, each with a number that it is multiplied with."""
        weights = hstack([each.weights for _, each in terms], format="csr")
        variances = np.concatenate([sign * each.variances for sign, each in terms])
        return cls(csr_array(weights), variances)

    def times(self, x: Float64) -> Float64:
        """Return C x of a vector or matrix: float64 (cells, …), records²."""
        inner = self.weights.T @ x
        return np.asarray(self.weights @ (self.variances.reshape(-1, *(1,) * (x.ndim - 1)) * inner))

    def dense(self) -> Float64:
        """Return C: float64 (cells, cells), records²."""
        return np.asarray((self.weights * self.variances) @ self.weights.T.toarray())
