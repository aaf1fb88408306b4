"""What a plan decides of cuboids that are held as tables: all of a cube, or those that are named.

Where shares are a product over the axes, as a cube's are by axis, estimates and variances are those
of one axis after the other, and whole counts are settled with their weights
(`PlannedTables.squares`). Any other cuboids have a solver of their own
(`hedgerow.estimate.workload.general.solver_of`), and are settled without weights.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.arrays import (
    Bool,
    ByCuboid,
    Codes,
    CuboidList,
    Float64,
    IntTables,
    Levels,
    OfCuboids,
    Tables,
    float64,
    int64,
)
from hedgerow.errors import EstimateError, PlanError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import (
    CubeShape,
    is_within,
    is_within_any,
    join,
    maximal,
    meet,
    summed,
)
from hedgerow.estimate.cube.variances import AGREED, Groups, nominal_of
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.spine.nested.nested import Nested
from hedgerow.estimate.workload.fold import Fold
from hedgerow.estimate.workload.general import solver_of
from hedgerow.estimate.workload.kept_sums import KeptSumsError
from hedgerow.estimate.workload.lattice import Lattice, settle
from hedgerow.estimate.workload.observed import Covariances, Observed, Solver
from hedgerow.estimate.workload.product import ProductSolver, Reduced
from hedgerow.estimate.workload.sparse import folded_sizes
from hedgerow.estimate.workload.spine import SpineSolver
from hedgerow.limits import MOST_AXES_OF_TABLES, MOST_NUMBERED, MOST_ROWS_OF_A_BLOCK
from hedgerow.plan.cuboids import Measured, Survivors
from hedgerow.plan.design import Design
from hedgerow.plan.joint import TARGETS, Joint, own_levels, shape_of_tree
from hedgerow.plan.product import AxisFactors, axis_factors, product_variances, wide_variance
from hedgerow.plan.spine import Spine, is_cut
from hedgerow.plan.workload import Cube

if TYPE_CHECKING:  # a plan makes its design
    from hedgerow.plan.plan import Plan

BYTES_A_CUBE_CELL = 32
"""Of a cell where shares are a product: noise, sums, counts, estimates."""
BYTES_A_CELL = 40
"""Of a cell of named cuboids, or of what they are settled at: noise, sums, counts, estimates."""
BYTES_A_FOLDED_NODE = 24
"""Of a row or column among which survivors are found: its parent, and weights."""

VAGUE = (
    "not measured, and known worse than by the survivors that must add up to it, so that these are "
    "released with larger errors than shown; name it in [workload], too."
)

LEAST_SAVED = 6
"""A cube goes along its first axis if it has so many times the cells that are then held at once."""
AXES_IN_JOBS = 2
"""Axes of a cube that goes along the first one: a spine and one attribute."""

SMALLEST = 1e-12
"""Records²: noise of a smaller variance is given this one where estimates are weighted."""


@dataclass(frozen=True, eq=False)
class PlannedTables(Joint):
    """The cuboids of a workload, what they have in common, and how they are estimated.

    Attributes:
        nominal: for each measured cuboid the variance of its noise if it were wide, records².
        factors: for each axis the share of each level relative to that of its last one; None where
            shares are no product over the axes.
        instead: why attributes do not stand beside a spine, in a clause; empty where there is none.
    """

    nominal: OfCuboids
    factors: AxisFactors | None
    instead: str

    @classmethod
    def of(cls, plan: "Plan", instead: str = "") -> "PlannedTables":
        """Return the cuboids of a plan, and why they do not go along a spine, if there is one.

        Raises:
            PlanError: tables that cannot be settled together, survivors below margins that do not
                fit, or a workload that is too large.
        """
        if (axes := len(plan.tree.axes)) > MOST_AXES_OF_TABLES:
            raise PlanError(
                f"named cuboids are estimated over {MOST_AXES_OF_TABLES} axes at most, and this "
                f'tree has {axes}: leave some out, or use cuboids = "chain"'
            )
        shape = shape_of_tree(plan.tree, plan.by_levels)
        measured = {
            shape.given(levels): what
            for levels, what in plan.by_levels.items()
            if isinstance(what, Measured)
        }
        public = None if plan.public is None else shape.given(plan.public)
        planned = cls(
            plan,
            shape,
            {k: max(what.mechanism.noise_variance, SMALLEST) for k, what in measured.items()},
            public,
            frozenset(map(shape.given, plan.whole)),
            own_levels(shape, plan.by_levels),
            {k: wide_variance(what.mechanism) for k, what in measured.items()},
            axis_factors(shape, {k: what.share for k, what in measured.items()}, public),
            instead,
        )
        if planned.is_cube and isinstance(plan.measure, Survivors):
            check_survivors(shape, planned.noise, public, planned.whole)
        try:
            planned.check()
        except PlanError as error:
            if not planned.is_cube or planned.factors is not None:
                raise
            by_axis = "or give the shares of the cube by axis, shares = {axis = [...], ...}"
            raise PlanError(f"{error}; {by_axis}") from None
        return planned

    def check(self) -> None:
        """Raise a PlanError unless the cuboids can be estimated, and settled together."""

        def named(cuboids: Iterable[Levels]) -> str:
            return " and ".join(repr(self.tree.name_of(self.levels(c))) for c in cuboids)

        if not self.tables:
            raise PlanError(
                "survivors are measured below cuboids that are measured whole, which have at most "
                "2^26 cells, and none is named: name a coarser one"
            )
        for cuboid in self.cuboids:
            has_counts = cuboid in self.noise or self.is_public(cuboid)
            if not has_counts and not (cuboid in self.whole and is_within_any(cuboid, self.tables)):
                raise PlanError(
                    f"{named([cuboid])} belongs to several tables whose survivors are measured, "
                    "and they must agree on it: name it, too, or measure all cells "
                    '(measure = "all")'
                )
        if self.factors is not None and self.is_cube:
            return  # a cube always has its sums, and a closed form
        try:
            self.solver, self.lattice  # noqa: B018 - so that an impossible plan cannot exist
        except KeptSumsError as error:
            raise PlanError(
                f"the sums of {named([error.cuboid])} by {named(error.sums)} cannot all be kept: "
                "three margins of a table need not fit together; name one of them less, or use a "
                'single table (cuboids = "cube")'
            ) from None
        except EstimateError as error:
            raise PlanError(str(error)) from None
        self._check_survivors(named)

    def _check_survivors(self, named: Callable[[Iterable[Levels]], str]) -> None:
        """Raise a PlanError unless survivors can be listed, below one cuboid or two."""
        for cuboid in self.sparse:
            if (cells := self.shape.cells(cuboid)) > MOST_NUMBERED:
                raise PlanError(
                    f"{named([cuboid])} has {cells:,} cells, and they are numbered up to 2^62: "
                    "name a coarser one"
                )
            covers = [cover for cover in self.margins[cuboid] if any(cover)]
            if len(covers) > 2 or not covers or (len(covers) == 2 and join(*covers) != cuboid):
                above = reduce(join, self.margins[cuboid])  # what all have between them
                fits = any(above) and above != cuboid
                also = f"name {named([above])}, too" if fits else "name others"
                raise PlanError(
                    f"{named([cuboid])} cannot be measured at survivors below "
                    f"{named(covers) or 'the total alone'}: that takes one cuboid, or two that "
                    f"have all its levels between them; {also}, or measure all cells "
                    '(measure = "all")'
                )
            if (most := max(self.folded(cuboid))) > MOST_ROWS_OF_A_BLOCK:
                raise PlanError(
                    f"{named([cuboid])} has {most:,} rows or columns below {named(covers)}, and "
                    "survivors are found among 2^31 at most: name coarser ones, or a chain of "
                    "nested cuboids"
                )

    def folded(self, cuboid: Levels) -> tuple[int, int]:
        """Return how many rows and columns survivors stand in below two cuboids; 0 below one."""
        covers = self.margins[cuboid]
        if len(covers) == 1:
            return 0, 0
        return folded_sizes(Fold(self.shape, cuboid, covers))

    @cached_property
    def tables(self) -> CuboidList:
        """The cuboids that are measured whole and that no other such one refines."""
        return maximal(cuboid for cuboid in self.noise if cuboid in self.whole)

    @property
    def sparse(self) -> CuboidList:
        """The cuboids of which survivors are measured, coarse to fine."""
        return tuple(cuboid for cuboid in self.cuboids if cuboid not in self.whole)

    @cached_property
    def lattice(self) -> Lattice:
        """What is settled of the cuboids that are measured whole."""
        whole = [cuboid for cuboid in self.cuboids if cuboid in self.whole]
        return Lattice.of(whole, maximal(whole), public=self.public)

    @cached_property
    def margins(self) -> Mapping[Levels, CuboidList]:
        """For each cuboid of which survivors are measured, the one or two that it lies below."""
        return {
            cuboid: maximal(
                other for other in self.cuboids if other != cuboid and is_within(other, cuboid)
            )
            for cuboid in self.sparse
        }

    @property
    def is_cube(self) -> bool:
        """Whether every combination of levels is released."""
        return self.plan.workload.name == Cube.name

    @cached_property
    def observed(self) -> Observed:
        """What is measured whole."""
        noise = {cuboid: v for cuboid, v in self.noise.items() if cuboid in self.whole}
        return Observed(self.shape, noise, self.public_margin)

    @cached_property
    def squares(self) -> tuple[AxisSquares, ...] | None:
        """Least squares along each axis where shares are a product, which estimate everything.

        Of named cuboids where the variances of their noise are one, too, so that its weights are
        the best, and the finest is measured whole; and where no other closed form does without
        tables of zeros for the levels that they lack.
        """
        if self.factors is None:
            return None
        leaves = self.plan.noise[self.levels(self.shape.finest)]  # a product has them
        own = product_variances(self.shape, self.factors, leaves, self.public)
        squares = tuple(map(AxisSquares.of, self.shape.axes, own))
        agree = all(abs(v - nominal_of(squares, k)) <= AGREED * v for k, v in self.noise.items())
        is_one = agree and self.tables == (self.shape.finest,)
        fits = self.is_cube or (is_one and not SpineSolver.fits(self.observed))
        return squares if fits else None

    @property
    def is_best(self) -> bool:
        """Whether estimates are those of all noisy counts with the variances of the noise."""
        return self.solver.is_best

    @cached_property
    def solver(self) -> Solver:
        """What estimates all cuboids that are measured whole."""
        return self._solver(self.observed)

    def _solver(self, observed: Observed) -> Solver:
        """Return what estimates these cuboids under some noise."""
        if self.squares is None:
            return solver_of(observed)
        return ProductSolver(observed, self.squares)

    def rehearse(self) -> None:
        """Raise a PlanError unless the solver makes estimates, whatever the counts; once."""
        self._rehearsed  # noqa: B018

    @cached_property
    def _rehearsed(self) -> bool:
        try:
            self.solver.rehearse()
        except EstimateError as error:
            raise PlanError(str(error)) from None
        return True

    @cached_property
    def public_margin(self) -> Levels | None:
        """What is public of the measured tables: the public cuboid's own one may be none of them.

        It is a level of one axis, so that its common coarsenings with tables are nested.
        """
        if self.public is None:
            return None
        return max((meet(self.public, table) for table in self.tables), key=sum)

    def is_known(self, cuboid: Levels) -> bool:
        """Return whether a cuboid is public or a sum of cells that are all measured."""
        return self.is_public(cuboid) or self.observed.is_answerable(cuboid)

    def estimates(self, tables: ByCuboid, wanted: Iterable[Levels] | None = None) -> Tables:
        """Return the unbiased estimates of cuboids whose cells are all measured, and public counts.

        Args:
            tables: of each of them that is measured its noisy counts, and of those that are public
                the true ones: float64 (cells along each axis).
            wanted: of which cuboids, each of them known; of all that are settled unless given.

        Returns:
            For each of them, and others on the way, float64 (cells along each axis), records.
        """
        every = list(self.lattice.elements if wanted is None else wanted)
        given = {c: table for c, table in tables.items() if c in self.noise}
        estimates = Tables()
        if self.public is not None:
            exact = int64(tables[self.public])
            for cuboid in {*filter(self.is_public, every), *filter(None, [self.public_margin])}:
                counts = summed(self.shape, exact, self.public, cuboid)
                estimates[cuboid] = float64(counts)
        if self.public_margin is not None:
            given[self.public_margin] = estimates[self.public_margin]
        return estimates | self.solver.estimates(given, [c for c in every if c not in estimates])

    def settled(self, tables: Tables, estimates: ByCuboid, exact: IntTables) -> IntTables:
        """Return whole counts of all that is settled, each the sum of every finer one.

        Args:
            tables: as for `estimates`; they are overwritten, or let go.
            estimates: the estimates.
            exact: the true counts of public cuboids.
        """
        targets, weights = self.solver.settling(tables, estimates)
        return settle(self.shape, self.lattice, targets, exact, weights)

    def variances_of(self, cuboid: Levels) -> Covariances:
        """Return the variances of what tells most of a cuboid that is measured whole."""
        return self.solver.variances_of(cuboid)

    def each(self, cuboid: Levels) -> Float64:
        """Return the variances of all cells of a cuboid that is measured whole."""
        variances = self.variances_of(cuboid).of_cells(cuboid)
        alone = [] if self.public_margin is None else self._alone(cuboid, self.public_margin)
        if alone and all(map(np.any, alone)):
            variances = variances.copy()
            variances[np.ix_(*alone)] = 0.0
        return variances

    def variances_at(self, cuboid: Levels, codes: Codes) -> Float64:
        """Return the variances of listed estimates: float64 (cells), records²."""
        variances = super().variances_at(cuboid, codes)
        if self.public_margin is not None and self.is_known(cuboid):
            each = zip(self._alone(cuboid, self.public_margin), codes, strict=True)
            variances[np.logical_and.reduce([alone[code] for alone, code in each])] = 0.0
        return variances

    def _alone(self, cuboid: Levels, public: Levels) -> list[Bool]:
        """Return of each axis which nodes of a cuboid's level are alone below a public one.

        A cell of such nodes has the count of a public cell, and no error. Its variance is the
        difference of two equal numbers, and would be a rounding error.
        """
        alone = []
        for axis, level, exact in zip(self.shape.axes, cuboid, public, strict=True):
            many = np.diff(axis.descendant_start(min(level, exact), level))
            alone.append(np.repeat(many == 1, many))
        return alone

    def fixed(self, cuboid: Levels, groups: Groups) -> Bool:
        """Return which sums of a cuboid's cells are sums of public cells, and so without error.

        A sum is one if it counts all cells below a public one alike, along each axis.

        Args:
            cuboid: whose cells.
            groups: of each axis the sums in the place of its nodes, if any.

        Returns:
            bool (sums along each axis).
        """
        axes = list(zip(self.shape.axes, cuboid, groups, strict=True))
        if (public := self.public_margin) is None:
            sizes = [axis.sizes[k] if w is None else w.shape[1] for axis, k, w in axes]
            return np.zeros(sizes, dtype=np.bool_)
        alike = []
        for alone, exact, (axis, k, w) in zip(
            self._alone(cuboid, public), public, axes, strict=True
        ):
            start = axis.descendant_start(min(k, exact), k)[:-1]
            ends = [] if w is None else [end.reduceat(w, start) for end in (np.minimum, np.maximum)]
            alike.append((ends[0] == ends[1]).all(axis=0) if ends else alone)
        return reduce(np.logical_and.outer, alike)

    def steps(self, cuboid: Levels) -> Steps | None:
        """Return what bounds the coefficients of estimates; None where none is above 1 - h."""
        return self.solver.steps(cuboid)

    def reduced(self, cuboid: Levels) -> Reduced | None:
        """Return how a cuboid is estimated without what is finer; None if cuboids are named."""
        solver = self.solver
        if self.is_cube and isinstance(solver, ProductSolver):
            return solver.reduced(cuboid)
        return None

    def wide_mean(self, cuboid: Levels) -> float:
        """Return the mean variance if noise were wide: it scales with 1/ρ, or 1/ε² (records²)."""
        if self.is_public(cuboid):
            return 0.0
        if cuboid not in self.whole:
            return self.nominal[cuboid]
        return self._wide.variances_of(cuboid).mean(cuboid)

    @cached_property
    def _wide(self) -> Solver:
        """The same solver under the variances of wide noise."""
        wide = {cuboid: v for cuboid, v in self.nominal.items() if cuboid in self.whole}
        return self._solver(Observed(self.shape, wide, self.public_margin))

    def is_raw(self, levels: Levels) -> bool:
        """Return whether the estimates of a cuboid are its own noisy counts alone.

        Of a product by its own variances, which its weights are the best for: under those of the
        noise a combined estimate may have the variance of the noisy count, or more.
        """
        cuboid = self.shape.given(levels)
        solver = self.solver
        if not isinstance(solver, ProductSolver) or cuboid not in self.observed.variances:
            return super().is_raw(levels)
        nominal = replace(solver.variances_of(cuboid), measured=None)
        return nominal.mean(cuboid) >= nominal_of(solver.squares, cuboid) * (1 - 1e-9)

    @property
    def ways(self) -> str:
        """How cuboids are estimated, and what the stated errors are, in a sentence."""
        return self.solver.words

    @cached_property
    def spine(self) -> Spine | None:
        """How a cube goes along its first axis; None of survivors, other shares or other axes.

        Estimates are those of `solver`, whatever way they are made, and so are their variances.
        Named cuboids are settled at what they have in common alone, which a spine does not know.
        """
        squares = self.squares
        axes = self.shape.axes
        public = self.public
        if not self.is_cube or len(axes) != AXES_IN_JOBS or self.sparse or any(public or ()):
            return None
        if squares is None or len(self.tables) > 1:
            return None
        try:
            model = Nested.of(
                spine=axes[0],
                attribute=axes[1],
                group_level=0,
                has=None,
                bounds=(),
                zero_leaves=np.zeros(axes[1].sizes[-1], dtype=np.bool_),
                spine_variances=squares[0].own,
                attribute_variances=squares[1].own,
                total_known=public is not None,
                noise=self.noise,
            )
        except EstimateError:  # more rows than are held
            return None
        return Spine(self.shape, model)

    @cached_property
    def along(self) -> Spine | None:
        """How a large cube goes along its first axis, where jobs are small beside the whole."""
        cells = self.shape.cells(self.shape.finest)
        spine = self.spine if is_cut(cells) else None
        return spine if spine is not None and spine.largest_held * LEAST_SAVED <= cells else None

    def settler(self, levels: Levels) -> str:
        """Return which way makes the counts of a cuboid whole: blocks where it keeps two sums."""
        is_block = len(self.lattice.exact.get(self.shape.given(levels), ())) > 1
        return "blocks" if self.along is None and is_block else super().settler(levels)

    @property
    def kept(self) -> str:
        """What is held in memory at once, and why not in jobs along a spine, in a sentence."""
        if self.along is not None:
            return super().kept
        which = "The cuboids that are measured whole" if self.sparse else "All counts"
        reason = f", and not in jobs along the spine: {self.instead}" if self.instead else ""
        return f"{which} are held in memory at once, as one job{reason}."

    @property
    def remarks(self) -> str:
        """Which cuboids survivors tell more of, and that some settled sums are kept nearly."""
        vague = " and ".join(self.tree.name_of(self.levels(cuboid)) for cuboid in self.vague)
        warning = f" {vague}: {VAGUE}" if vague else ""
        covers = map(len, self.lattice.covers.values())
        return f"{warning}{TARGETS if max(covers) > 2 else ''}"

    @property
    def bytes_read(self) -> int:
        """The memory of the tables that noisy counts of jobs are read back into."""
        return 0 if self.along is None else BYTES_A_CUBE_CELL * sum(map(self.size, self.noise))

    @property
    def bytes_held(self) -> int:
        """The memory of the tables, of what is settled on the way, and of what a solver keeps."""
        if self.along is not None:
            return self.along.bytes_held
        if self.squares is not None:
            every = (c for c in self.shape.cuboids() if is_within_any(c, self.tables))
            return BYTES_A_CUBE_CELL * sum(map(self.shape.cells, every))
        held = {*self.lattice.elements, *self.observed.variances}
        cells = sum(map(self.shape.cells, held))
        folded = max((sum(self.folded(cuboid)) for cuboid in self.sparse), default=0)
        return cells * BYTES_A_CELL + folded * BYTES_A_FOLDED_NODE + self.solver.bytes_held

    def below_margins(self, cuboid: Levels, alive: Mapping[Levels, int]) -> int:
        """Return how many cells lie below so many positive ones of the cuboids above them.

        Rows and columns of positive margins are taken to be spread evenly over the blocks.
        """
        covers = self.margins[cuboid]
        count = prod(alive[cover] for cover in covers)
        if len(covers) == 1:
            return -(-count * self.shape.cells(cuboid) // self.shape.cells(covers[0]))
        return -(-count // max(1, alive[meet(*covers)]))

    @cached_property
    def vague(self) -> CuboidList:
        """The unmeasured cuboids that survivors add up to, though these tell more of them."""
        vague = {
            cover
            for cuboid, covers in self.margins.items()
            for cover in covers
            if cover not in self.noise
            and not self.is_public(cover)
            and self.mean(cover) * self.shape.cells(cover)
            > self.noise[cuboid] * self.shape.cells(cuboid)
        }
        return tuple(sorted(vague))


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


def as_tables(design: Design) -> PlannedTables:
    """Return what is held in memory as tables.

    Raises:
        PlanError: the cuboids go along a spine, or are a chain's.
    """
    if not isinstance(design, PlannedTables):
        raise PlanError("the cuboids of this plan are not held as tables")
    return design
