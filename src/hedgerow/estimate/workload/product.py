"""Cuboids that are every combination of some levels, with variances that are a product over axes.

Then everything is a Kronecker product: `hedgerow.estimate.cube.estimates` in O(cells), whatever the
axes. A level that does not occur has an infinite variance. Weights are those of nominal variances,
which are a product; stated variances are those of the noise itself.

*Survivors.* Where the finest cuboids are missing, as they are measured for survivors alone, the
others are several boxes: a cuboid and all its coarsenings, estimated together. Of a cuboid in
several of them the box with the least mean variance tells most.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from hedgerow.arrays import ByCuboid, Float64, FloatPair, Levels, OfCuboids, Tables
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import (
    least_squares,
    reaching,
    shape_of,
    solve,
    upward,
)
from hedgerow.estimate.cube.shape import is_within, is_within_any, meet, summed
from hedgerow.estimate.cube.variances import AGREED, CubeVariances, nominal_of
from hedgerow.estimate.workload.fold import AxisWeights
from hedgerow.estimate.workload.observed import Observed, Solver


@dataclass(frozen=True, eq=False)
class Reduced:
    """A cuboid estimated from its coarsenings, to which all that is finer was summed up.

    The table of one that has k of the axes at the cuboid's own level then holds h η + ζ: η is its
    own noise, h the product of k weights u/v, and ζ what finer cuboids add.

    Attributes:
        cuboid: that is estimated.
        squares: for each axis its weights, down to the cuboid's level.
        public: the finest public cuboid among the coarsenings, if any.
        laws: of each h and the variance of ζ, records², in the shape of its table; 0 if it is
            public: what else is measured of it changes nothing.
        variances: of one noisy count η of each that is measured, records².
    """

    cuboid: Levels
    squares: tuple[AxisSquares, ...]
    public: Levels | None
    laws: Mapping[Levels, FloatPair]
    variances: OfCuboids

    def estimates(self, tables: Tables) -> Float64:
        """Return the estimates, from a table of each coarsening, which is overwritten."""
        least_squares(self.squares, tables, self.public)
        return tables[self.cuboid].ravel()

    def errors(self, noise: Callable[[Levels, int], Float64]) -> Tables:
        """Return the errors of the cuboid and its coarsenings, under normal noise.

        Args:
            noise: returns independent draws of variance 1 of a cuboid's cells: (cells, runs).

        Returns:
            float64 (cells along each axis, runs), records.
        """
        tables = Tables()
        for cuboid, (weight, rest) in self.laws.items():
            own = self.variances.get(cuboid, 0.0)
            deviation = np.sqrt(np.maximum(weight**2 * own + rest, 0.0))
            drawn = noise(cuboid, deviation.size).reshape(*deviation.shape, -1)
            tables[cuboid] = np.ascontiguousarray(deviation[..., None] * drawn)
        solve(self.squares, tables, self.public)
        return tables


class ProductSolver(Solver):
    """Least squares along one axis after the other; see the module.

    Attributes:
        observed: what is measured.
        squares: for each axis its weights; a cuboid's nominal variance is their product, records².
        boxes: the variances of the largest boxes, a cuboid and all its coarsenings that are
            estimated together; one where all are measured whole.
    """

    is_exact = True

    def __init__(self, observed: Observed, squares: Sequence[AxisSquares]) -> None:
        self.observed = observed
        self.squares = tuple(squares)
        self.boxes = tuple(
            CubeVariances(
                [own.down_to(level) for own, level in zip(self.squares, corner, strict=True)],
                None if observed.public is None else meet(observed.public, corner),
                observed.variances,
            )
            for corner in observed.tables
        )
        self._box_of: dict[Levels, CubeVariances] = {}

    @property
    def is_best(self) -> bool:
        """Whether weights are those of the noise, and everything is estimated together."""
        noise = self.observed.variances.items()
        ratios = [nominal_of(self.squares, cuboid) / variance for cuboid, variance in noise]
        alike = max(ratios, default=1.0) <= min(ratios, default=1.0) * (1 + AGREED)
        return alike and len(self.boxes) == 1

    def steps(self, cuboid: Levels) -> None:
        """Return None: none is above 1 - h.

        Proof: docs/proofs/coefficients.md, "Coefficients of an estimate".
        """
        del cuboid

    @property
    def words(self) -> str:
        """How it estimates, and what its variances are, in a sentence for users."""
        if len(self.boxes) == 1:
            return "Cuboids are estimated together, and their errors are exact."
        return (
            "Cuboids are estimated in groups, each of a finest one and all that are coarser; one "
            "in several groups has the estimates of that which tells most of it. Errors are exact."
        )

    def variances_of(self, cuboid: Levels) -> CubeVariances:
        """Return the variances of the box that tells most of a cuboid."""
        if cuboid not in self._box_of:
            inside = (box for box in self.boxes if is_within(cuboid, box.finest))
            self._box_of[cuboid] = min(inside, key=lambda box: box.mean(cuboid))
        return self._box_of[cuboid]

    def reduced(self, cuboid: Levels) -> Reduced:
        """Return the estimation of a cuboid without what is finer, in the box that tells most."""
        box = self.variances_of(cuboid)
        exact = None if box.public is None else meet(box.public, cuboid)
        squares = [own.summed_up(k) for own, k in zip(box.squares, cuboid, strict=True)]
        below = [own.subtree_coefficients()[k] for own, k in zip(box.squares, cuboid, strict=True)]
        noise = np.zeros([own.depth + 1 for own in box.squares])
        laws = {}
        for each in shape_of(box.squares).cuboids():
            noise[each] = self.observed.variances.get(each, 0.0)
        for each in sorted(shape_of(squares).cuboids()):
            rest = noise.copy()
            h = np.ones(())
            rest[each] = 0.0
            for own, part, level, k in zip(squares, below, cuboid, each, strict=True):
                size = own.shape.sizes[k]
                levels = part.shape[1]
                squared = part if k == level else np.broadcast_to(np.eye(levels)[k], (size, levels))
                # the first axis, of levels, becomes a last one of nodes
                rest = np.tensordot(rest, squared, axes=(0, 1))
                h = np.multiply.outer(h, np.sqrt(squared[:, k]))
            laws[each] = (0 * h, 0 * rest) if is_within(each, exact) else (h, rest)
        return Reduced(cuboid, tuple(squares), exact, laws, self.observed.variances)

    def estimates(self, tables: ByCuboid, wanted: Iterable[Levels]) -> Tables:
        """Return the estimates of the wanted cuboids, each from the box that tells most of it."""
        estimates: Tables = {}
        cuboids = list(wanted)
        for box in self.boxes:
            here = [cuboid for cuboid in cuboids if self.variances_of(cuboid) is box]
            if here:
                inside = self._inside(tables, [box.finest], box.public)
                least_squares(box.squares, inside, box.public)
                estimates |= {cuboid: inside[cuboid] for cuboid in here}
        return estimates

    def settling(self, tables: Tables, estimates: ByCuboid) -> tuple[ByCuboid, AxisWeights | None]:
        """Return what each cell's own subtree says of it, and weights: all that settling needs.

        Inside a block the covariance given the margins is (diag u - uuᵀ/U) ⊗ (diag v - vvᵀ/V), so
        that conditioning on the margins is the projection with weights 1/(u_i v_j).
        """
        del estimates
        subtrees = self._inside(tables, self.observed.tables, self.observed.public, copies=False)
        upward(self.squares, subtrees)
        return subtrees, partial(weight_of, self.squares, tables=subtrees)

    def _inside(
        self,
        tables: ByCuboid,
        tops: Sequence[Levels],
        public: Levels | None,
        *,
        copies: bool = True,
    ) -> Tables:
        """Return a table of each coarsening of some cuboids: as measured, public, or of zeros."""
        shape = self.observed.shape
        public_cuboid = self.observed.public
        inside = Tables()
        for cuboid in shape.cuboids():
            if not is_within_any(cuboid, tops):
                continue
            if public is not None and public_cuboid is not None and is_within(cuboid, public):
                inside[cuboid] = summed(shape, tables[public_cuboid], public_cuboid, cuboid).copy()
            elif cuboid in self.observed.variances:
                inside[cuboid] = tables[cuboid].copy() if copies else tables[cuboid]
            else:
                inside[cuboid] = np.zeros(shape.shape(cuboid))
        return inside


def weight_of(
    squares: Sequence[AxisSquares], cuboid: Levels, axis: int, tables: ByCuboid
) -> Float64:
    """Return the factor of an axis in the variances of what is settled: float64 (nodes).

    Args:
        squares: one an axis.
        cuboid: that is settled.
        axis: of the factor.
        tables: the cuboids that are measured whole, so that all above has them in it.
    """
    return reaching(squares[axis], axis, cuboid, tables).combined[cuboid[axis]]
