"""Marginals that do not nest, on one spine, beside groups: estimates, variances and whole counts.

*Where it applies.* One axis is the spine. One attribute axis, the *group axis*, may have several
levels, each measured, and nodes of the spine may lack groups (its finest nodes). Every other
attribute occurs at its total and at its finest level, of n_a nodes. At each level of the spine any
set of cuboids is measured, each with any variance v.

*Residuals.* Below each group stand all combinations of the other attributes, in the coordinates of
`Residuals`. A cuboid of group level b and other attributes B says, of each coordinate of a residual
R ⊆ B, S_b x √(Π_{a ∉ B} n_a) with white noise of variance v, S_b summing groups: as many problems
along the spine as there are coordinates, each of vectors over groups (`Coupled`), with the
information

    M = Σ_B S_bᵀS_b Π_{a ∉ B} n_a / v       over the cuboids of the level with R ⊆ B,

the same for all coordinates of one residual. Nothing is summed over what a node does not have, so
zeros along the group axis cost nothing. Zeros by rule that are not along it are not used by
estimates; counts keep them.

*Counts.* `hedgerow.estimate.spine.marginals.fit`, `hedgerow.estimate.spine.marginals.rounding`.

Source: as `hedgerow.estimate.workload.spine`, which this extends by groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, prod, sqrt
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape, CubeShape
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.coupled import Coupled, check_apart
from hedgerow.estimate.spine.forms import Forms
from hedgerow.estimate.spine.marginals.families import settle_families, settle_root
from hedgerow.estimate.spine.marginals.residuals import Residuals, turn
from hedgerow.estimate.spine.model import Model
from hedgerow.estimate.spine.support import Bounds, Part, Support
from hedgerow.limits import MOST_ATTRIBUTES

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class MarginalsUpward:
    """What the noisy tables of a part say.

    Attributes:
        said: for each level of the part float64 (rows, W): z, in coordinates.
        told: float64 (rows of the roots · W): the sums over their children, in coordinates.
    """

    said: Mapping[int, Float64]
    told: Float64


@dataclass(frozen=True, eq=False)
class Marginals(Model):
    """The model of marginals that do not nest; see `hedgerow.estimate.spine.model.Model`.

    A cuboid is a vector of levels along all axes, in the order of the shape; every group that is
    used has W cells.

    Attributes:
        shape: of all axes.
        spine_axis: the number of the axis that is cut into jobs.
        group_axis: the number of the attribute axis whose finest nodes are the groups, or None.
        residuals: of the attributes beside the groups, in the order of the axes.
        allowed: bool (groups, W): where a count may be above 0.
        squares: for each residual least squares along the spine.
    """

    shape: CubeShape
    spine_axis: int
    group_axis: int | None
    residuals: Residuals
    allowed: NDArray[np.bool_]
    squares: tuple[Coupled, ...]

    @classmethod
    def of(  # noqa: PLR0913 - what marginals are of
        cls,
        shape: CubeShape,
        spine_axis: int,
        group_axis: int | None,
        has: tuple[Int64, Int64] | None,
        bounds: Sequence[Bounds],
        zero_cells: NDArray[np.bool_] | None,
        noise: Mapping[Levels, float],
        *,
        total_known: bool,
    ) -> "Marginals":
        """Return the model of a set of measured cuboids.

        Args:
            shape: of all axes.
            spine_axis: the axis that is cut into jobs.
            group_axis: the attribute axis that may have several levels and zeros that differ by
                node; None where no axis needs that.
            has: nodes of the deepest spine level and groups that they may have; see `Support.of`.
            bounds: of groups' counts; see `Support.of`.
            zero_cells: bool (finest cells of all attributes, row-major in the order of the axes):
                which are 0 by rule; None for none.
            noise: the noise variance of each measured cuboid, records².
            total_known: whether the number of all records is public.

        Raises:
            EstimateError: cuboids or variances that do not fit, or the finest one not measured;
                public facts that contradict each other.
        """
        if not cls.fits(shape, spine_axis, noise, group_axis):
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
        residuals = Residuals(
            tuple(shape.axes[a].sizes[-1] for a in _others(shape, spine_axis, group_axis))
        )
        tree = AxisShape((), (0,)) if group_axis is None else shape.axes[group_axis]
        allowed = ~_zeros(shape, spine_axis, group_axis, zero_cells)
        widths = np.where(allowed.any(axis=1), residuals.width, 0)
        support = Support.of(shape.axes[spine_axis], tree, widths, has, bounds)
        support.check_held(_numbers_held(support, residuals))
        axes = shape, spine_axis, group_axis
        self = cls(support, dict(noise), total_known, *axes, residuals, allowed, ())
        root = np.full(support.groups, sqrt(residuals.width)) if total_known else None
        squares = tuple(
            Coupled.of(support, self._information(r), known_total=None if r else root)
            for r in range(residuals.count)
        )
        object.__setattr__(self, "squares", squares)
        return self

    @staticmethod
    def fits(
        shape: CubeShape, spine_axis: int, cuboids: Iterable[Levels], group_axis: int | None
    ) -> bool:
        """Return whether cuboids are such as this model takes: all but the finest one's presence.

        Args:
            shape: of all axes.
            spine_axis: the axis that is cut into jobs.
            cuboids: those measured.
            group_axis: the attribute axis that may have several levels, or None.
        """
        others = _others(shape, spine_axis, group_axis)
        return len(others) <= MOST_ATTRIBUTES and all(
            len(key) == len(shape.axes)
            and all(0 <= k <= axis.depth for k, axis in zip(key, shape.axes, strict=True))
            and all(key[a] in (0, shape.axes[a].depth) for a in others)
            for key in cuboids
        )

    @property
    def others(self) -> list[int]:
        """The attribute axes beside the groups that have more than one node."""
        return _others(self.shape, self.spine_axis, self.group_axis)

    @property
    def leaves(self) -> Int32:
        """Of each detail cell the attribute leaf, all attributes row by row: int32."""
        every = np.arange(self.allowed.size, dtype=np.int32)
        table = _by_group(self.shape, self.spine_axis, self.group_axis, every)
        return np.asarray(table[self.support.widths > 0].ravel())

    def _made_cells(self, key: Levels) -> Cells:
        """Return the cells of a cuboid."""
        axes = [self.shape.axes[a] for a in self.others]
        levels = [key[a] for a in self.others]
        place = np.zeros((), dtype=np.int64)
        for axis, level in zip(axes, levels, strict=True):
            ancestors = axis.ancestors(axis.depth, level)
            place = place[..., None] * axis.sizes[level] + ancestors
        width = prod(a.sizes[k] for a, k in zip(axes, levels, strict=True))
        coarse = self._group_level(key)
        live = int((self.support.widths > 0).sum())
        every = np.tile(place.ravel().astype(np.int32), live)
        widths = np.full(self.support.tree.sizes[coarse], width, dtype=np.int64)
        return Cells(self.support, key[self.spine_axis], coarse, widths, every)

    def up(
        self, part: Part, noisy: Mapping[Levels, Float64], below: Float64 | None = None
    ) -> MarginalsUpward:
        """Return what the noisy tables of a part say; see `Model.up`."""
        width = self.residuals.width
        said = {level: self._weighted(part, level, noisy) for level in part.levels}
        under = None if below is None else below.reshape(-1, width)
        for residual, squares in enumerate(self.squares):
            columns = self.residuals.columns(residual)
            own = {level: np.ascontiguousarray(table[:, columns]) for level, table in said.items()}
            from_below = None if under is None else np.ascontiguousarray(under[:, columns])
            for level, table in squares.up(part, own, from_below).items():
                said[level][:, columns] = table
        told = np.zeros(0) if part.is_top else self.squares[0].told(part, said).ravel()
        return MarginalsUpward(said, told)

    def estimates(
        self, part: Part, upward: MarginalsUpward, above: Float64 | None, total: float | None = None
    ) -> dict[int, Float64]:
        """Return the best linear unbiased estimates of a part; see `Model.estimates`."""
        self.check_total(part, total)
        found = {level: np.empty_like(table) for level, table in upward.said.items()}
        roots = None if part.is_top else self.residuals.turned(self._by_row(part, above))
        for residual, squares in enumerate(self.squares):
            columns = self.residuals.columns(residual)
            said = {k: np.ascontiguousarray(t[:, columns]) for k, t in upward.said.items()}
            known = None if roots is None else np.ascontiguousarray(roots[:, columns])
            if part.is_top and total is not None and residual == 0:
                known = np.array([float(total)])
            for level, table in squares.down(part, said, known).items():
                found[level][:, columns] = table
        for table in found.values():
            turn(table, self.residuals.extents)
        return {level: table.ravel() for level, table in found.items()}

    def settle(
        self, part: Part, upward: MarginalsUpward, above: Int64 | None, total: int | None = None
    ) -> dict[int, Int64]:
        """Return whole counts of a part; see `Model.settle`."""
        self.check_total(part, total)
        found, known = dict[int, Int64](), (self.support, self.residuals, self.squares)
        for level in part.levels:
            if level == 0:
                counts = settle_root(*known, self.allowed, upward.said[0], total)
            else:
                is_first = level == part.root + 1
                over = self._by_row(part, above) if is_first else found[level - 1]
                counts = settle_families(*known, part, level, upward.said[level], over)
            found[level] = counts
        return {level: counts.ravel() for level, counts in found.items()}

    def variances(self, labels: Int32) -> Forms:
        """Return the variances of sums of detail cells; see `Model.variances`."""
        self.check_labels(labels)
        cell, width, groups = np.flatnonzero(labels >= 0), self.residuals.width, self.support.groups
        group = np.flatnonzero(self.support.widths)[cell // width]
        keys, entry = np.unique(labels[cell].astype(np.int64) * groups + group, return_inverse=True)
        weights = np.zeros((len(keys), width))
        weights[entry, cell % width] = 1.0
        turn(weights, self.residuals.extents)
        components = [
            (each.squares, np.ascontiguousarray(weights[:, self.residuals.columns(residual)]))
            for residual, each in enumerate(self.squares)
        ]
        return Forms.of(self.support, keys, components)

    def _group_level(self, key: Levels) -> int:
        """Return a cuboid's level of the group axis."""
        return 0 if self.group_axis is None else key[self.group_axis]

    def _marginal(self, key: Levels) -> int:
        """Return the set of other attributes that a measured cuboid does not sum up."""
        return self.residuals.number([i for i, a in enumerate(self.others) if key[a]])

    def _by_row(self, part: Part, detail: NDArray[Number] | None) -> NDArray[Number]:
        """Return the table of a part's roots as (rows, W)."""
        expected = self.support.cells(part.root, part.nodes)
        if detail is None or len(detail) != expected:
            raise EstimateError(f"a part below the top needs the {expected} cells of its roots")
        return detail.reshape(-1, self.residuals.width)

    def _information(self, residual: int) -> list[Float64]:
        """Return what each level says of a residual's coordinates: float64 (groups, groups)."""
        groups = self.support.groups
        found = [np.zeros((groups, groups)) for _ in self.support.spine.sizes]
        for key, variance in self.measured.items():
            marginal = self._marginal(key)
            if residual & ~marginal == 0:
                same = self.support.together(self._group_level(key))
                found[key[self.spine_axis]] += same * (self.residuals.spread(marginal) / variance)
        return found

    def _weighted(self, part: Part, level: int, noisy: Mapping[Levels, Float64]) -> Float64:
        """Return Σ S_bᵀ (coordinates) √(Π n_a) / v of a level's tables: float64 (rows, W)."""
        support, residuals = self.support, self.residuals
        nodes = support.nodes(part, level)
        rows = support.rows(level, nodes)
        found = np.zeros((rows.stop - rows.start, residuals.width))
        for key, variance in self.measured.items():
            if key[self.spine_axis] != level:
                continue
            size = residuals.size(marginal := self._marginal(key))
            own = self.table(key, nodes, noisy).reshape(-1, size).copy()
            turn(own, residuals.extents_of(marginal))
            own *= sqrt(residuals.spread(marginal)) / variance
            found[:, residuals.within(marginal)] += own[self.cells(key).row_starts(nodes) // size]
        return found


def _numbers_held(support: Support, residuals: Residuals) -> int:
    """Return the size of the largest matrices: a node's, those of variances, their weights."""
    cells = int(support.widths.sum())
    square = support.groups**2 * max(residuals.count * cells, len(support.spine.sizes))
    return max(residuals.count * support.pairs, square, cells * residuals.width)


def _others(shape: CubeShape, spine_axis: int, group_axis: int | None) -> list[int]:
    """Return the axes beside the spine and the groups that have more than one node."""
    every = range(len(shape.axes))
    return [a for a in every if a not in (spine_axis, group_axis) and shape.axes[a].depth > 0]


def _zeros(
    shape: CubeShape, spine_axis: int, group_axis: int | None, zero_cells: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Return which cells are 0 by rule: bool (groups, W)."""
    cells = prod(axis.sizes[-1] for a, axis in enumerate(shape.axes) if a != spine_axis)
    zero = np.zeros(cells, dtype=bool) if zero_cells is None else np.asarray(zero_cells, dtype=bool)
    if zero.size != cells:
        raise EstimateError(
            f"zeros by rule need one entry for each of {cells} cells, got {zero.size}"
        )
    return _by_group(shape, spine_axis, group_axis, zero)


def _by_group(
    shape: CubeShape, spine_axis: int, group_axis: int | None, cells: NDArray[Any]
) -> NDArray[Any]:
    """Return a table of all attributes' finest cells as (groups, W)."""
    axes = [a for a in range(len(shape.axes)) if a != spine_axis]
    table = cells.reshape([shape.axes[a].sizes[-1] for a in axes])
    if group_axis is None:
        return table.reshape(1, -1)
    moved = np.moveaxis(table, axes.index(group_axis), 0)
    return moved.reshape(len(moved), -1)
