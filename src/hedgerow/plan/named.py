"""The cuboids that a workload names, as a plan has them: how they are estimated and settled."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import EstimateError, PlanError
from hedgerow.estimate.cube.shape import is_within, is_within_any, join, maximal, meet
from hedgerow.estimate.cube.sums import summed
from hedgerow.estimate.intervals import Steps
from hedgerow.estimate.workload.fold import Fold
from hedgerow.estimate.workload.kept_sums import KeptSumsError
from hedgerow.estimate.workload.lattice import Lattice
from hedgerow.estimate.workload.observed import Observed, Solver, are_two_chains
from hedgerow.estimate.workload.settle import settle
from hedgerow.estimate.workload.solvers import bytes_of_solver, solver_of
from hedgerow.estimate.workload.sparse import MOST_NODES, folded_sizes
from hedgerow.noise.loss import precision_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.design import Planned
from hedgerow.plan.joint import TARGETS, JointTables, Tables, Variances, own_levels, shape_of_tree

MOST_NUMBERED = 1 << 62
"""Cells that a cuboid may have: int64 numbers them."""

MOST_AXES = 62
"""Axes of named cuboids: NumPy's arrays have 64 at most, and vectors of tables one more."""

BYTES_A_CELL = 40
"""Of a cell of named cuboids, or of what they are settled at: noise, sums, counts, estimates."""
BYTES_A_FOLDED_NODE = 24
"""Of a row or column among which survivors are found: its parent, and weights."""

VAGUE = (
    "not measured, and known worse than by the survivors that must add up to it, so that these are "
    "released with larger errors than shown; name it in [workload], too."
)

SMALLEST = 1e-12
"""Records²: noise of a smaller variance is given this one where estimates are weighted."""


@dataclass(frozen=True, eq=False)
class PlannedCuboids(JointTables):
    """The cuboids that a workload names, what they have in common, and how they are estimated.

    Attributes:
        nominal: for each measured cuboid the variance of its noise if it were wide, records².
        own_levels: for each cuboid of the workload the levels of the tree's axes, coarse to fine.
    """

    nominal: Mapping[Levels, float]
    own_levels: Mapping[Levels, Levels]

    @classmethod
    def of(cls, plan: Planned) -> "PlannedCuboids":
        """Return the cuboids of a plan.

        Raises:
            PlanError: tables that cannot be settled together, survivors below margins that do not
                fit, or a workload that is too large.
        """
        if (axes := len(plan.tree.axes)) > MOST_AXES:
            raise PlanError(
                f"named cuboids are estimated over {MOST_AXES} axes at most, and this tree has "
                f'{axes}: leave some out, or use cuboids = "chain"'
            )
        shape = shape_of_tree(plan.tree, plan.by_levels)
        noise = {
            shape.given(levels): what.mechanism
            for levels, what in plan.by_levels.items()
            if isinstance(what, Measured)
        }
        found = cls(
            plan,
            shape,
            {cuboid: max(own.noise_variance, SMALLEST) for cuboid, own in noise.items()},
            None if plan.public is None else shape.given(plan.public),
            frozenset(map(shape.given, plan.whole)),
            {cuboid: wide_variance(own) for cuboid, own in noise.items()},
            own_levels(shape, plan.by_levels),
        )
        found.check()
        return found

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
            told = cuboid in self.noise or self.is_public(cuboid)
            if not told and not (cuboid in self.whole and is_within_any(cuboid, self.tables)):
                raise PlanError(
                    f"{named([cuboid])} belongs to several tables whose survivors are measured, "
                    "and they must agree on it: name it, too, or measure all cells "
                    '(measure = "all")'
                )
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
                above = self._above(cuboid)
                also = f"name {named([above])}, too" if above else "name others"
                raise PlanError(
                    f"{named([cuboid])} cannot be measured at survivors below "
                    f"{named(covers) or 'the total alone'}: that takes one cuboid, or two that "
                    f"have all its levels between them; {also}, or measure all cells "
                    '(measure = "all")'
                )
            if (most := max(self.folded(cuboid))) > MOST_NODES:
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

    def _above(self, cuboid: Levels) -> Levels | None:
        """Return what all margins of a cuboid have between them, unless it is that cuboid."""
        above = reduce(join, self.margins[cuboid])
        return above if any(above) and above != cuboid else None

    @cached_property
    def tables(self) -> tuple[Levels, ...]:
        """The cuboids that are measured whole and that no other such one refines."""
        return maximal(cuboid for cuboid in self.noise if cuboid in self.whole)

    @property
    def sparse(self) -> tuple[Levels, ...]:
        """The cuboids of which survivors are measured, coarse to fine."""
        return tuple(cuboid for cuboid in self.cuboids if cuboid not in self.whole)

    @cached_property
    def lattice(self) -> Lattice:
        """What is settled of the cuboids that are measured whole."""
        whole = [cuboid for cuboid in self.cuboids if cuboid in self.whole]
        return Lattice.of(whole, maximal(whole), public=self.public)

    @cached_property
    def margins(self) -> Mapping[Levels, tuple[Levels, ...]]:
        """For each cuboid of which survivors are measured, the one or two that it lies below."""
        return {
            cuboid: maximal(
                other for other in self.cuboids if other != cuboid and is_within(other, cuboid)
            )
            for cuboid in self.sparse
        }

    @property
    def cuboids(self) -> tuple[Levels, ...]:
        """The cuboids of the workload, each after all that are coarser."""
        return tuple(self.own_levels)

    def levels(self, cuboid: Levels) -> Levels:
        """Return the levels of the tree's axes that a cuboid has: the coarsest of equal ones."""
        if cuboid in self.own_levels:
            return self.own_levels[cuboid]
        return self.shape.first(cuboid)

    @cached_property
    def solver(self) -> Solver:
        """What estimates all cuboids that are measured whole."""
        noise = {cuboid: v for cuboid, v in self.noise.items() if cuboid in self.whole}
        return solver_of(Observed(self.shape, noise, self.known))

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
    def known(self) -> Levels | None:
        """What is public of the measured tables: the public cuboid's own one may be none of them.

        It is a level of one axis, so that its common coarsenings with tables are nested.
        """
        if self.public is None:
            return None
        return max((meet(self.public, table) for table in self.tables), key=sum)

    def is_known(self, cuboid: Levels) -> bool:
        """Return whether a cuboid is public or a sum of cells that are all measured."""
        return self.is_public(cuboid) or self.solver.observed.is_answerable(cuboid)

    def estimates(
        self, tables: Mapping[Levels, Float64], wanted: Iterable[Levels] | None = None
    ) -> Tables:
        """Return the least-squares estimates of all that is settled, and the public counts."""
        every = list(self.lattice.elements if wanted is None else wanted)
        given = {c: table for c, table in tables.items() if c in self.noise}
        found = Tables()
        if self.public is not None:
            exact = tables[self.public].astype(np.int64)
            for cuboid in {*filter(self.is_public, every), *filter(None, [self.known])}:
                known = summed(self.shape, exact, self.public, cuboid)
                found[cuboid] = known.astype(np.float64)
        if self.known is not None:
            given[self.known] = found[self.known]
        return found | self.solver.estimates(given, [c for c in every if c not in found])

    def settled(
        self, tables: Tables, estimates: Mapping[Levels, Float64], exact: Mapping[Levels, Int64]
    ) -> dict[Levels, Int64]:
        """Return the counts of all that is settled."""
        tables.clear()
        return settle(self.shape, self.lattice, estimates, exact)

    def variances_of(self, cuboid: Levels) -> Variances:
        """Return the variances of all cuboids that are measured whole."""
        del cuboid
        return self.solver

    def steps(self, cuboid: Levels) -> Steps | None:
        """Return what bounds the coefficients of estimates; None where none is above 1 - h.

        That is proved where the cuboids are those of two chains (docs/proofs.md, "Intervals").
        """
        told = self.solver.observed
        known = () if told.public is None else (told.public,)
        if are_two_chains({*told.variances, *known, cuboid}):
            return None if self.solver.is_exact else Steps(0.0, is_exact=False)
        return Steps(min(told.variances.values()), is_exact=self.solver.is_exact)

    def wide_mean(self, cuboid: Levels) -> float:
        """Return the mean variance if noise were wide: it scales with 1/ρ, or 1/ε² (records²)."""
        if self.is_public(cuboid):
            return 0.0
        return self._wide.mean(cuboid) if cuboid in self.whole else self.nominal[cuboid]

    @cached_property
    def _wide(self) -> Solver:
        """The same solver under the variances of wide noise."""
        wide = {cuboid: v for cuboid, v in self.nominal.items() if cuboid in self.whole}
        return solver_of(Observed(self.shape, wide, self.known))

    def is_own_noise(self, cuboid: Levels) -> bool:
        """Return whether the estimates of a cuboid are its own noisy counts alone."""
        own = self.noise.get(cuboid)
        return own is not None and self.mean(cuboid) >= own * (1 - 1e-9)

    @property
    def words(self) -> str:
        """How cuboids are estimated and what their variances are, in a sentence for users."""
        errors = "; their errors are exact" if self.solver.is_exact else ""
        return f"Cuboids are {self.solver.words}{errors}."

    @property
    def remarks(self) -> str:
        """Which cuboids survivors tell more of, and that some settled sums are kept nearly."""
        vague = " and ".join(self.tree.name_of(self.levels(cuboid)) for cuboid in self.vague)
        warning = f" {vague}: {VAGUE}" if vague else ""
        targets = any(len(covers) > 2 for covers in self.lattice.covers.values())
        return f"{warning}{TARGETS if targets else ''}"

    @property
    def bytes_held(self) -> int:
        """The memory of the tables, of what is settled on the way, and of what a solver keeps."""
        held = {*self.lattice.elements, *(cuboid for cuboid in self.noise if cuboid in self.whole)}
        cells = sum(map(self.shape.cells, held))
        folded = max((sum(self.folded(cuboid)) for cuboid in self.sparse), default=0)
        kept = cells * BYTES_A_CELL + folded * BYTES_A_FOLDED_NODE
        return kept + bytes_of_solver(self.solver)

    @cached_property
    def vague(self) -> tuple[Levels, ...]:
        """The unmeasured cuboids that survivors add up to, though these tell more of them."""
        found = {
            cover
            for cuboid, covers in self.margins.items()
            for cover in covers
            if cover not in self.noise
            and not self.is_public(cover)
            and self.mean(cover) * self.shape.cells(cover)
            > self.noise[cuboid] * self.shape.cells(cuboid)
        }
        return tuple(sorted(found))


def wide_variance(mechanism: Mechanism) -> float:
    """Return the variance of noise of this precision, were it wide: records²."""
    price = mechanism.price
    return float(price.variance / precision_of(mechanism) ** price.power)
