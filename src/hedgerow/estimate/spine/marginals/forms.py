"""The variances of sums of detail cells, from the covariance of each residual's coordinates.

With w the cells that a sum takes (rows: groups), ŵ in the coordinates of `Residuals`, and F_R the
covariance of a coordinate of R at a node, over its groups,

    Var = Σ_R tr(F_R Q_R),   Q_R = Σ_{coordinates k of R} ŵ_k ŵ_kᵀ   (groups × groups).

Q depends on the sum alone, F on the node alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.block_squares import BlockSquares
from hedgerow.estimate.spine.coupled import Coupled
from hedgerow.estimate.spine.marginals.residuals import Residuals
from hedgerow.estimate.spine.over_nodes import covariance_over, variances_over
from hedgerow.estimate.spine.row_squares import RowSquares
from hedgerow.estimate.spine.support import Support
from hedgerow.kernels import kernel

ALIKE = 1e-9
"""Sums whose forms differ by less, relatively, have one variance; rounding leaves 1e-14."""


@dataclass(frozen=True, slots=True, eq=False)
class MarginalForms:
    """The variances of the estimates of some sums, at every node.

    Attributes:
        support: which nodes have which groups.
        squares: for each residual least squares along the spine.
        forms: float64 (residuals, sums, groups, groups): Q.
        has: bool (sums, groups): whether a sum has a cell in a group.
    """

    support: Support
    squares: tuple[Coupled, ...]
    forms: Float64
    has: NDArray[np.bool_]

    @classmethod
    def of(
        cls, support: Support, residuals: Residuals, squares: Sequence[Coupled], labels: Int32
    ) -> "MarginalForms":
        """Return the variances of the sums that labels give.

        Args:
            support: which nodes have which groups.
            residuals: of the attributes beside the groups.
            squares: for each residual least squares along the spine.
            labels: int32 (detail cells of all groups): the sum to which each belongs, -1 for none.

        Raises:
            EstimateError: not a label a detail cell.
        """
        live = np.flatnonzero(support.widths)
        if len(labels) != len(live) * residuals.width:
            raise EstimateError(
                f"{len(live) * residuals.width} detail cells need a label each, got {len(labels)}"
            )
        sums = int(labels.max(initial=-1)) + 1
        table = np.asarray(labels).reshape(len(live), residuals.width)
        pair = np.flatnonzero((table >= 0).ravel())
        sum_of, group = table.ravel()[pair].astype(np.int64), live[pair // residuals.width]
        key, row = np.unique(sum_of * support.groups + group, return_inverse=True)
        weights = np.zeros((len(key), residuals.width))
        weights[row, pair % residuals.width] = 1.0
        has = np.zeros((sums, support.groups), dtype=bool)
        has.ravel()[key] = True
        forms = np.zeros((residuals.count, sums, support.groups, support.groups))
        _add_products(residuals.residual, key, residuals.turned(weights), forms)
        return cls(support, tuple(squares), forms, has)

    def at(self, level: int, nodes: Int64, sums: Int64) -> Float64:
        """Return the variance of each pair of a node and a sum: float64 (pairs), records².

        A sum none of whose cells the node has is 0 exactly.
        """
        found = np.zeros(len(nodes))
        for residual, each in enumerate(self.squares):
            layout = self._layout(each, level)
            _add_traces(np.asarray(nodes), np.asarray(sums), layout, self.forms[residual], found)
        return np.maximum(found, 0.0)  # what is known exactly may come out a rounding error below

    def over(self, level: int, nodes: Int64) -> Float64:
        """Return the variance of each sum over some nodes together: float64 (sums), records²."""
        found = np.zeros(self.forms.shape[1])
        for forms, each in zip(self.forms, self.squares, strict=True):
            if isinstance(each.squares, RowSquares):  # groups do not meet
                diagonal = np.diagonal(forms, axis1=1, axis2=2)
                found += diagonal @ variances_over(each.squares, level, nodes)
            else:
                found += forms.reshape(len(found), -1) @ covariance_over(each, level, nodes).ravel()
        return np.maximum(found, 0.0)

    def mean(self, level: int) -> float:
        """Return the mean over all pairs of a node and a sum that has a cell there, records²."""
        whole = self.forms.sum(axis=1, keepdims=True)
        every = np.arange(self.support.spine.sizes[level])
        found, first = np.zeros(len(every)), np.zeros(len(every), dtype=np.int64)
        for residual, each in enumerate(self.squares):
            _add_traces(every, first, self._layout(each, level), whole[residual], found)
        pairs = self.support.count_pairs(level, self.has)
        return max(float(found.sum()), 0.0) / pairs if pairs else 0.0

    def largest(self, level: int) -> float:
        """Return the largest over all pairs of a node and a sum that has a cell there, records²."""
        nodes, best = self.support.spine.sizes[level], 0.0
        every = np.arange(nodes)
        for one in self._unlike():
            best = max(best, float(self.at(level, every, np.full(nodes, one)).max(initial=0.0)))
        return best

    def _unlike(self) -> Int64:
        """Return sums of which every other one has the forms of one."""
        flat = self.forms.transpose(1, 0, 2, 3).reshape(self.forms.shape[1], -1)
        if len(flat) == 0:
            return np.zeros(0, dtype=np.int64)
        rounded = np.round(flat / (ALIKE * max(1.0, np.abs(flat).max())))
        return np.unique(rounded, axis=0, return_index=True)[1]

    def _layout(self, coupled: Coupled, level: int) -> tuple[Int64, Int32, Int64, Float64]:
        """Return where rows begin, groups, where matrices begin (none: numbers), and F."""
        here, final = self.support, coupled.squares.final[level]
        start = coupled.squares.start[level] if isinstance(coupled.squares, BlockSquares) else None
        begins = np.zeros(0, dtype=np.int64) if start is None else start
        return here.start[level], here.group[level], begins, final


@kernel
def _add_products(residual: Int32, key: Int64, turned: Float64, forms: Float64) -> None:
    """Add ŵ_k ŵ_kᵀ of every coordinate to the forms; keys are sum · groups + group, ascending."""
    groups, first = forms.shape[3], 0
    while first < len(key):
        here, last = key[first] // groups, first
        while last < len(key) and key[last] // groups == here:
            last += 1
        for p in range(first, last):
            for q in range(first, last):
                i, j = key[p] % groups, key[q] % groups
                for k in range(len(residual)):
                    forms[residual[k], here, i, j] += turned[p, k] * turned[q, k]
        first = last


@kernel
def _add_traces(
    nodes: Int64,
    sums: Int64,
    layout: tuple[Int64, Int32, Int64, Float64],
    forms: Float64,
    found: Float64,
) -> None:
    """Add tr(F Q) of each pair of a node and a sum."""
    start, group, begins, final = layout
    for i in range(len(nodes)):
        first, last = start[nodes[i]], start[nodes[i] + 1]
        form, m = forms[sums[i]], last - first
        if len(begins) == 0:
            for row in range(first, last):
                found[i] += final[row] * form[group[row], group[row]]
            continue
        at = begins[nodes[i]]
        for p in range(m):
            for q in range(m):
                found[i] += final[at + p * m + q] * form[group[first + p], group[first + q]]
