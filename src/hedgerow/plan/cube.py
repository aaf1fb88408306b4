"""The cube of a plan: its axes' weights, its noise, and the variances of what it estimates.

Where the shares of cuboids are a product over the axes, so are the variances of wide noise, and
estimates are those of one axis after the other (`hedgerow.estimate.cube.estimates`): with s_a(k)
the share of level k of axis a, cuboid c has a share in proportion to Π_a s_a(c_a). They are read
back from the cuboids' shares: s_a(k) is to s_a(L) as the share of (…, L, k, L, …) is to that of the
leaves. A cube with other shares is estimated as named cuboids are (`hedgerow.plan.named`).
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, prod

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.estimates import least_squares, upward
from hedgerow.estimate.cube.settle import settle
from hedgerow.estimate.cube.shape import CubeShape, at_level, coarser, is_within, maximal, meet
from hedgerow.estimate.cube.variances import CubeVariances, nominal_of
from hedgerow.noise.loss import precision_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured, Survivors
from hedgerow.plan.design import Planned
from hedgerow.plan.joint import TARGETS, JointTables, Tables, Variances, shape_of_tree
from hedgerow.plan.named import PlannedCuboids

BYTES_A_CELL = 32
"""Of a cell of a cube, whose tables are held in memory whole: noise, sums, counts, estimates."""

AxisFactors = tuple[tuple[Fraction, ...], ...]
"""For each axis the share of each level relative to that of its last one, coarsest first."""


@dataclass(frozen=True, eq=False)
class Box:
    """A cuboid and all its coarsenings, all measured whole: these are estimated together, exactly.

    Attributes:
        finest: the cuboid.
        squares: for each axis its weights, down to the cuboid's level.
        variances: of the estimates.
        public: the finest public cuboid among them, if any.
    """

    finest: Levels
    squares: tuple[AxisSquares, ...]
    variances: CubeVariances
    public: Levels | None


@dataclass(frozen=True, eq=False)
class PlannedCube(JointTables):
    """What a plan decides for a cube whose shares are a product over its axes.

    Attributes:
        squares: for each axis its weights; a cuboid's nominal variance is their product, records².
        factors: for each axis the share of each level relative to that of its last one.
    """

    squares: tuple[AxisSquares, ...]
    factors: AxisFactors

    @property
    def cuboids(self) -> tuple[Levels, ...]:
        """All combinations of levels, each after all that are coarser."""
        return tuple(self.shape.cuboids())

    def levels(self, cuboid: Levels) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""
        return self.shape.first(cuboid)

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The largest boxes of cuboids that are measured whole; one where all are."""
        return tuple(map(self._box, maximal(self.whole)))

    def _box(self, corner: Levels) -> Box:
        squares = []
        for own, level in zip(self.squares, corner, strict=True):
            kept = own
            while kept.depth > level:
                kept = kept.without_leaves()
            squares.append(kept)
        exact = None if self.public is None else meet(self.public, corner)
        return Box(corner, tuple(squares), CubeVariances(squares, exact, self.noise), exact)

    @cached_property
    def box_of(self) -> dict[Levels, Box]:
        """For each cuboid that is measured whole, the box that tells most of it."""
        return {
            cuboid: min(
                (box for box in self.boxes if is_within(cuboid, box.finest)),
                key=lambda box: box.variances.mean(cuboid),
            )
            for cuboid in self.shape.cuboids()
            if cuboid in self.whole
        }

    def estimates(
        self, tables: Mapping[Levels, Float64], wanted: Iterable[Levels] | None = None
    ) -> Tables:
        """Return the estimates of each cuboid from the box that tells most of it."""
        del wanted  # all come at once
        found = Tables()
        for box in self.boxes:
            inside = {}
            for cuboid in self.whole:
                if is_within(cuboid, box.finest):
                    table = tables.get(cuboid)
                    shape = self.shape.shape(cuboid)
                    inside[cuboid] = np.zeros(shape) if table is None else table.copy()
            least_squares(box.squares, inside, box.public)
            found |= {c: table for c, table in inside.items() if self.box_of[c] is box}
            inside.clear()
        return found

    def settled(
        self, tables: Tables, estimates: Mapping[Levels, Float64], exact: Mapping[Levels, Int64]
    ) -> dict[Levels, Int64]:
        """Return the counts, settled from what each cell's own subtree says; overwrites tables."""
        del estimates
        for cuboid in self.whole:
            if cuboid not in tables:
                tables[cuboid] = np.zeros(self.shape.shape(cuboid))
        upward(self.squares, tables)
        return settle(self.squares, tables, exact)

    @cached_property
    def margins(self) -> Mapping[Levels, tuple[Levels, ...]]:
        """For each cuboid of which survivors are measured, those one level coarser."""
        return {c: (coarser(c, 0), coarser(c, 1)) for c in self.cuboids if c not in self.whole}

    def variances_of(self, cuboid: Levels) -> Variances:
        """Return the variances of the box that tells most of a cuboid."""
        return self.box_of[cuboid].variances

    def wide_mean(self, cuboid: Levels) -> float:
        """Return the mean variance if noise were wide: it scales with 1/ρ, or 1/ε² (records²)."""
        if cuboid in self.whole:
            box = self.box_of[cuboid]
            return CubeVariances(box.squares, box.public).mean(cuboid)
        return nominal_of(self.squares, cuboid)

    def is_own_noise(self, cuboid: Levels) -> bool:
        """Return whether the estimates of a cuboid are its own noisy counts, nothing beside them.

        By the nominal variances, which the weights are best for: under those of the noise a
        combined estimate may be worse than the noisy count.
        """
        return self.wide_mean(cuboid) >= nominal_of(self.squares, cuboid) * (1 - 1e-9)

    @property
    def words(self) -> str:
        """How cuboids are estimated and what their variances are, in a sentence for users."""
        return "Cuboids are estimated together, and their errors are exact."

    @property
    def remarks(self) -> str:
        """That some settled sums are kept nearly, over three axes or more."""
        return TARGETS if len(self.shape.axes) > 2 else ""

    @property
    def bytes_held(self) -> int:
        """The memory of whole tables: noise, sums, counts, estimates."""
        return BYTES_A_CELL * sum(map(self.shape.cells, self.whole))


def planned_cube(plan: Planned) -> JointTables:
    """Return the cube of a plan: axis after axis, or as named cuboids if shares are no product.

    Raises:
        PlanError: survivors are to be measured below a cuboid without a share, or over other than
            two axes; or the shares are no product and there are too many cells.
    """
    shape = shape_of_tree(plan.tree)
    measured = {
        shape.given(levels): what
        for levels, what in plan.by_levels.items()
        if isinstance(what, Measured)
    }
    exact = None if plan.public is None else shape.given(plan.public)
    measured_whole = frozenset(map(shape.given, plan.whole))
    if isinstance(plan.measure, Survivors):
        check_survivors(shape, measured, exact, measured_whole)
    factors = axis_factors(shape, {c: what.share for c, what in measured.items()}, exact)
    if factors is None:
        try:
            return PlannedCuboids.of(plan)
        except PlanError as error:
            raise PlanError(
                f"{error}; or give the shares of the cube by axis, shares = {{axis = [...], ...}}"
            ) from None
    noise = {cuboid: what.mechanism.noise_variance for cuboid, what in measured.items()}
    squares = _squares(shape, factors, measured[shape.finest].mechanism, exact)
    return PlannedCube(plan, shape, noise, exact, measured_whole, squares, factors)


def _squares(
    shape: CubeShape, factors: AxisFactors, leaves: Mechanism, public: Levels | None
) -> tuple[AxisSquares, ...]:
    """Return the weights of each axis, from the noise of the leaves on."""
    variances = product_variances(shape, factors, leaves, public)
    return tuple(map(AxisSquares, shape.axes, variances))


def product_variances(
    shape: CubeShape, factors: AxisFactors, leaves: Mechanism, public: Levels | None
) -> list[Float64]:
    """Return for each axis float64 (levels): a cuboid's nominal variance is their product.

    Records² on the first axis, ratios on the others; infinite where nothing is measured.
    """
    power, known, found = leaves.price.power, shape.within(public), []
    wide = float(leaves.price.variance / precision_of(leaves) ** power)
    for axis, (own, levels) in enumerate(zip(shape.axes, factors, strict=True)):
        unit = wide if axis == 0 else 1.0
        alone = [at_level(shape.finest, axis, k) for k in range(own.depth + 1)]
        # A level that is public even beside the leaves is never measured: any number will do.
        variances = [
            unit * float(f) ** -power if f else unit if cuboid in known else inf
            for f, cuboid in zip(levels, alone, strict=True)
        ]
        found.append(np.array(variances))
    return found


def check_survivors(
    shape: CubeShape,
    measured: Container[Levels],
    public: Levels | None,
    whole: Container[Levels],
) -> None:
    """Raise a PlanError unless survivors of a cube can be found below settled margins."""
    if len(shape.axes) != 2:
        raise PlanError(
            "a cube measures survivors over two axes alone: over more, measure all cells "
            '(measure = "all"), or use cuboids = "chain"'
        )
    if any(not all(c) for c in shape.cuboids() if c not in whole):
        raise PlanError(
            "where a cube measures survivors, both axes must have several areas, and the areas "
            "of each level of one alone must be few enough to be measured whole: measure all "
            'cells (measure = "all"), or use cuboids = "chain"'
        )
    if any(c not in measured and not is_within(c, public) for c in shape.cuboids()):
        raise PlanError(
            "where a cube measures survivors, every level of every axis needs a share, and so "
            "does every cuboid: survivors are the cells below its counts"
        )


def axis_factors(
    shape: CubeShape, shares: Mapping[Levels, Fraction], public: Levels | None
) -> AxisFactors | None:
    """Return for each axis the share of each level relative to that of its last one.

    Args:
        shape: of the cube.
        shares: of the measured cuboids; those that are missing are public or have none.
        public: the finest public cuboid, if any.

    Returns:
        None where the shares are no product over the axes.
    """
    leaves = shares[shape.finest]
    factors = tuple(
        tuple(
            shares.get(at_level(shape.finest, axis, k), Fraction(0)) / leaves
            for k in range(own.depth + 1)
        )
        for axis, own in enumerate(shape.axes)
    )
    for cuboid in shape.cuboids():
        product = leaves * prod(f[k] for f, k in zip(factors, cuboid, strict=True))
        if not is_within(cuboid, public) and shares.get(cuboid, 0) != product:
            return None
    return factors
