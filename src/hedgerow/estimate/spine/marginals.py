"""Marginals that do not nest, on one spine, beside groups: estimates, variances and whole counts.

*Where it applies.* One axis is the spine. One attribute axis, the *group axis*, may have several
levels, each measured, and nodes of the spine may lack groups (its finest nodes). Every other
attribute occurs at its total and at its finest level, of n_a nodes. At each level of the spine any
set of cuboids is measured, each with any variance v.

*Residuals.* Below each group stand all combinations of the other attributes, in the coordinates of
`Residuals`. A cuboid of group level b and other attributes B says, of each coordinate of a residual
R ⊆ B, S_b x √(Π_{a ∉ B} n_a) with white noise of variance v, S_b summing groups: as many problems
along the spine as there are coordinates, each of vectors over groups, with the information

    M = Σ_B S_bᵀS_b Π_{a ∉ B} n_a / v       over the cuboids of the level with R ⊆ B,

the same for all coordinates of one residual: a component. Zeros by rule that are not along the
group axis are not used by estimates; counts keep them.

*Counts.* `hedgerow.estimate.spine.fit.fit`, `hedgerow.estimate.spine.fit.rounding`.

Source: as `hedgerow.estimate.workload.spine`, which this extends by groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod, sqrt

import numpy as np

from hedgerow.arrays import (
    Array,
    Bool,
    ByCuboid,
    Float64,
    Int32,
    Int64,
    IntPair,
    Levels,
    OfCuboids,
    Sizes,
    float64,
    int64,
)
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.residuals import Residuals, turn, within
from hedgerow.estimate.cube.shape import AxisShape, CubeShape, spread
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.component import Component, check_apart
from hedgerow.estimate.spine.fit.families import settle_families, settle_root
from hedgerow.estimate.spine.model import Model, Upward
from hedgerow.estimate.spine.support import Bounds, Part, Support
from hedgerow.limits import MOST_ATTRIBUTES


@dataclass(frozen=True, eq=False)
class Marginals(Model):
    """The model of marginals that do not nest; see `hedgerow.estimate.spine.model.Model`.

    A cuboid is a vector of levels along all axes, in the order of the shape; every group that is
    used has W cells. The components are the residuals.

    Attributes:
        shape: of all axes, the spine first.
        group_axis: the number of the attribute axis whose finest nodes are the groups, or None.
        residuals: of the attributes beside the groups, in the order of the axes.
        allowed: bool (groups, W): where a count may be above 0.
    """

    shape: CubeShape
    group_axis: int | None
    residuals: Residuals
    allowed: Bool

    @classmethod
    def of(
        cls,
        shape: CubeShape,
        group_axis: int | None,
        has: IntPair | None,
        bounds: Sequence[Bounds],
        zero_cells: Bool,
        noise: OfCuboids,
        *,
        total_known: bool,
    ) -> "Marginals":
        """Return the model of a set of measured cuboids.

        Args:
            shape: of all axes, the one that is cut into jobs first.
            group_axis: the attribute axis that may have several levels and zeros that differ by
                node; None where no axis needs that.
            has: nodes of the deepest spine level and groups that they may have; see `Support.of`.
            bounds: of groups' counts; see `Support.of`.
            zero_cells: bool (finest cells of all attributes, row-major in the order of the axes):
                which are 0 by rule.
            noise: the noise variance of each measured cuboid, records².
            total_known: whether the number of all records is public.

        Raises:
            EstimateError: cuboids or variances that do not fit, or the finest one not measured;
                public facts that contradict each other.
        """
        others = _others(shape, group_axis)
        if len(others) > MOST_ATTRIBUTES or not all(_fits(shape, others, key) for key in noise):
            raise EstimateError(
                "marginals on a spine need attributes that are measured at their total and finest "
                f"levels alone, but for one, and {MOST_ATTRIBUTES} of them at most"
            )
        wrong = [key for key, v in noise.items() if not (isfinite(v) and v > 0)]
        if wrong:
            raise EstimateError(f"the noise variance of cuboid {wrong[0]} must be above 0")
        check_apart(noise.values())
        if shape.finest not in noise:
            raise EstimateError(
                f"the deepest level of the spine must measure every attribute at its finest level: "
                f"the cuboid {shape.finest}; nothing else tells all cells apart"
            )
        if zero_cells.size != (cells := prod(axis.sizes[-1] for axis in shape.axes[1:])):
            raise EstimateError(
                f"zeros by rule need one entry for each of {cells} cells, got {zero_cells.size}"
            )
        residuals = Residuals(others, tuple(shape.axes[a].sizes[-1] for a in others))
        tree = AxisShape((), (0,)) if group_axis is None else shape.axes[group_axis]
        allowed = ~_by_group(shape, group_axis, zero_cells)
        widths = np.where(allowed.any(axis=1), residuals.width, 0)
        support = Support.of(shape.axes[0], tree, widths, has, bounds)
        support.check_held(_numbers_held(support, residuals))
        components = tuple(
            Component.of(
                support,
                np.full(support.groups, prod(residuals.coordinates(residual))),
                _information(support, group_axis, residuals.precisions(residual, noise)),
                sqrt(residuals.width) if total_known and not any(residual) else None,
            )
            for residual in residuals.every
        )
        own = shape, group_axis, residuals, allowed
        return cls(support, dict(noise), total_known, components, *own)

    @property
    def leaves(self) -> Int32:
        """Of each detail cell the attribute leaf, all attributes row by row: int32."""
        every = np.arange(self.allowed.size, dtype=np.int32)
        table = _by_group(self.shape, self.group_axis, every)
        return table[self.support.widths > 0].ravel()

    def _made_cells(self, key: Levels) -> Cells:
        """Return the cells of a cuboid."""
        attributes = CubeShape(tuple(self.shape.axes[a] for a in self.residuals.axes))
        levels = tuple(key[a] for a in self.residuals.axes)
        numbers = np.arange(attributes.cells(levels), dtype=np.int32).reshape(
            attributes.shape(levels)
        )
        place = spread(attributes, numbers, levels, attributes.finest)
        coarse = _level(key, self.group_axis)
        live = np.count_nonzero(self.support.widths)
        widths = np.full(self.support.tree.sizes[coarse], numbers.size)
        return Cells(self.support, key[0], coarse, widths, np.tile(place.ravel(), live))

    def _weighted(self, level: int, nodes: range, noisy: ByCuboid) -> Sequence[Float64]:
        """Return Σ S_bᵀ (coordinates) √(Π n_a) / v of some nodes' tables."""
        residuals = self.residuals
        rows = self.support.rows(level, nodes)
        tables = np.zeros((rows.stop - rows.start, *residuals.sizes))
        for key, variance in self.measured.items():
            if key[0] != level:
                continue
            marginal = residuals.marginal(key)
            cells = self.cells(key)
            shape = residuals.shape(marginal)
            own = turn(self.table(key, nodes, noisy).reshape(-1, *shape).copy())
            own *= sqrt(residuals.spread(key)) / variance
            within(tables, marginal)[...] += own[cells.row_starts(nodes) // prod(shape)]
        return residuals.apart(tables)

    def _apart(self, group: Int32, detail: Float64) -> Sequence[Float64]:
        """Return the coordinates of rows, of each residual."""
        rows = detail.reshape(len(group), *self.residuals.sizes)
        return self.residuals.apart(turn(rows.copy()))

    def _together(self, group: Int32, coordinates: Sequence[Float64]) -> Float64:
        """Return the cells of rows."""
        del group
        return turn(self.residuals.joined(coordinates)).ravel()

    def _weights(self, labels: Int32) -> tuple[Int64, Sequence[Float64]]:
        """Return what sums of cells weigh of each residual."""
        cell = np.flatnonzero(labels >= 0)
        width = self.residuals.width
        groups = self.support.groups
        group = np.flatnonzero(self.support.widths)[cell // width]
        keys, entry = np.unique(int64(labels[cell]) * groups + group, return_inverse=True)
        weights = np.zeros((len(keys), width))
        weights[entry, cell % width] = 1.0
        turned = turn(weights.reshape(-1, *self.residuals.sizes))
        return keys, [each.reshape(len(keys), -1) for each in self.residuals.apart(turned)]

    def settler(self, key: Levels) -> str:
        """Return which way makes the counts of a cuboid whole: the fit."""
        del key
        return "fit"

    def _settled_root(self, upward: Upward, total: int | None) -> Int64:
        """Return the whole counts of the spine's root."""
        said = self._said(upward, 0)
        model = self.residuals, self.components, self._near
        return settle_root(*model, self.allowed, said, total).ravel()

    def _settled(self, part: Part, level: int, upward: Upward, above: Int64) -> Int64:
        """Return the whole counts of a level of a part."""
        over = above.reshape(-1, self.residuals.width)
        said = self._said(upward, level)
        model = self.residuals, self.components, self._near
        return settle_families(*model, part, level, said, over).ravel()

    @cached_property
    def _near(self) -> Float64:
        """How many levels of the groups' tree have two groups in one cell: all weigh alike."""
        levels = range(self.support.tree.depth + 1)
        return np.asarray(sum(float64(self.support.together(b)) for b in levels))

    def _said(self, upward: Upward, level: int) -> Float64:
        """Return what each node's subtree says, in coordinates: float64 (rows, W)."""
        joined = self.residuals.joined([z[level] for z in upward.said])
        return joined.reshape(len(joined), self.residuals.width)


def _fits(shape: CubeShape, others: Sequence[int], key: Levels) -> bool:
    """Return whether a cuboid has each attribute beside the groups at its total or finest level."""
    return (
        len(key) == len(shape.axes)
        and all(0 <= k <= axis.depth for k, axis in zip(key, shape.axes, strict=True))
        and all(key[a] in (0, shape.axes[a].depth) for a in others)
    )


def _information(support: Support, group_axis: int | None, precisions: OfCuboids) -> list[Float64]:
    """Return what each level says of a residual's coordinates: float64 (groups, groups)."""
    information = [np.zeros((support.groups, support.groups)) for _ in support.spine.sizes]
    for key, precision in precisions.items():
        information[key[0]] += support.together(_level(key, group_axis)) * precision
    return information


def _level(key: Levels, group_axis: int | None) -> int:
    """Return a cuboid's level of the group axis."""
    return 0 if group_axis is None else key[group_axis]


def _numbers_held(support: Support, residuals: Residuals) -> int:
    """Return the size of the largest matrices: a node's, those of variances, their weights."""
    cells = int(support.widths.sum())
    square = support.groups**2 * max(len(residuals.every) * cells, len(support.spine.sizes))
    return max(len(residuals.every) * support.pairs, square, cells * residuals.width)


def _others(shape: CubeShape, group_axis: int | None) -> Sizes:
    """Return the axes beside the spine and the groups that have more than one node."""
    axes = enumerate(shape.axes)
    return tuple(a for a, axis in axes if a not in (0, group_axis) and axis.depth > 0)


def _by_group(shape: CubeShape, group_axis: int | None, cells: Array) -> Array:
    """Return a table of all attributes' finest cells as (groups, W)."""
    if group_axis is None:
        return cells.reshape(1, -1)
    table = cells.reshape([axis.sizes[-1] for axis in shape.axes[1:]])
    moved = np.moveaxis(table, group_axis - 1, 0)
    return moved.reshape(len(moved), -1)
