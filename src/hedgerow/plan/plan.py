"""A plan: what will be measured with which noise, and what that promises; from public facts."""

import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

from hedgerow.arrays import CuboidList, Levels, OtherCuboids
from hedgerow.errors import PlanError, check_type
from hedgerow.estimate.cube.shape import is_within
from hedgerow.estimate.running_sums import Strategy
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.pages.catalogue import USUAL, catalogue
from hedgerow.plan.allocation.allocation import (
    Allocation,
    ByDepth,
    Importance,
    PerLevel,
    Problem,
    Uniform,
)
from hedgerow.plan.allocation.optimum import Optimised, Optimum
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.chain import PlannedChain, PlannedSums, chain_of
from hedgerow.plan.criteria.criterion import Criterion, checked_criteria
from hedgerow.plan.cuboids import (
    CuboidPlan,
    Invariant,
    Measure,
    Measured,
    Public,
    RunningSums,
    Summed,
    Unmeasured,
    check_running_sums,
    check_size,
    check_whole,
    goes_along_spine,
    measurable,
    protection,
    public_cuboid,
    whole_cuboids,
)
from hedgerow.plan.describe import (
    describe_cuboid,
    describe_tree,
    plan_hash,
)
from hedgerow.plan.design import Design
from hedgerow.plan.efficiency.efficiency import Efficiency, efficiency_of
from hedgerow.plan.facts.constraints import Constraints, constraints_of, describe_facts
from hedgerow.plan.facts.facts import Facts
from hedgerow.plan.facts.fixed import FixedCounts, fixed_counts, fixed_in_words, refuse_fixed
from hedgerow.plan.facts.public_rows import SPINE
from hedgerow.plan.forecast import forecast, forecast_matrix, forecast_table
from hedgerow.plan.picture import figure_of_forecast, plan_html
from hedgerow.plan.planned_spine import NoSpineError, planned_spine
from hedgerow.plan.prior import Prior
from hedgerow.plan.tables import PlannedTables
from hedgerow.plan.workload import Chain, Workload, repeated, tables_of
from hedgerow.privacy.budget import Budget, EpsilonDelta, rho_within
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import Change, Neighbours
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.promise import Promise, Protection
from hedgerow.tables.description import Description
from hedgerow.tables.tree import Tree
from hedgerow.text import Json, TextByName, Texts


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a release needs to know except the table. Make one with `make_plan`.

    Attributes:
        tree: the public domain and the order of refinement.
        neighbours: the unit of privacy.
        budget: what may be spent.
        mechanism: the noise.
        allocation: the name of the rule that shared the budget out.
        shares: for each cuboid of the workload its share of the budget, None where it is not
            measured.
        invariants: what is public by declaration.
        measure: all cells of a measured cuboid, or survivors alone.
        workload: which cuboids are measured and released.
        prior: the public table that the allocation rests on, if any; no part of what is signed.
        inverse_two_rho: for a plan read back, the 1/(2ρ) that its (ε, δ) budget was calibrated to,
            which is verified rather than searched for again.
        importance: of the errors of its cuboids, by which `efficiency` judges it; no part of what
            is signed.
        facts: what public files say of cells that hold nobody, and of bounds.
        description: what the table is, in words (see `described`); no part of what is signed.
        rule: that shared the budget out, if it is known; no part of what is signed.
        accept: the criteria that the release is to keep (`hedgerow.plan.criteria`).
        chosen: what was chosen by default and why, and what shares weigh, as keys of the sentences
            of `choices`; no part of what is signed.

    Raises:
        PlanError: an impossible invariant, a share for a cuboid that is public or repeats a coarser
            one, none for the finest of the others, or more cells to measure than 2³²; facts that
            contradict each other, fix every count of a table, or without a spine.
        BudgetError: a budget that the mechanism cannot spend, or invalid shares.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta(1, "1e-8"))
        >>> len(plan.depths), len(plan.hash), plan.budget.epsilon
        (3, 64, Fraction(1, 1))
        >>> float(plan.guarantee.epsilon(delta="1e-6")) <= 1
        True
    """

    tree: Tree
    neighbours: Neighbours
    budget: Budget
    mechanism: type[Mechanism]
    allocation: str
    shares: ByDepth
    invariants: tuple[Invariant, ...]
    measure: Measure
    workload: Workload = field(default_factory=Chain)
    inverse_two_rho: Fraction | None = None
    prior: Prior | None = None
    importance: Importance = field(default_factory=PerLevel)
    facts: Facts = ()
    description: Description = field(default_factory=Description)
    chosen: Texts = ()
    rule: Allocation | None = None
    accept: tuple[Criterion, ...] = ()

    def __post_init__(self) -> None:
        possible = measurable(self.tree, self.workload, self.neighbours, self.invariants)
        self.description.check_names(self.tree)
        checked_criteria(self.tree, self.accept)
        if not possible:
            raise PlanError(
                "this plan measures nothing: every cuboid is public or has single children only"
            )
        if len(self.shares) != len(self.levels):
            raise PlanError(
                f"a plan has one share or None for each of {len(self.levels)} cuboids, got "
                f"{len(self.shares)}"
            )
        given = self.measured
        needed = [levels for levels in self.tables if not self.is_public(levels)]
        if not set(needed) <= set(given) <= set(possible):
            raise PlanError(
                f"shares can be given for {'; '.join(map(self.tree.name_of, possible))} and must "
                f"be for {'; '.join(map(self.tree.name_of, needed))}, got shares for "
                f"{'; '.join(map(self.tree.name_of, given)) or 'none'}"
            )
        check_size(self.tree, self.workload, self.measure)
        if self.facts and self.is_chain:
            raise PlanError(SPINE)
        # Facts that contradict each other make no plan either.
        refuse_fixed(self.tree, self.fixed_counts, self.tables)
        if isinstance(self.measure, RunningSums):
            check_running_sums(self.tree, self.mechanism, given, self.public)
        self.guarantee  # noqa: B018 - computed here, so that an invalid plan cannot exist
        self.design  # noqa: B018 - likewise

    def described(self, description: Description) -> "Plan":
        """Return the same plan, with the same hash, for a table that is described so.

        Raises:
            TableError: a label of what is no axis, level or column of the tree.

        Example:
            >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
            >>> plan = hr.make_plan(tree, budget=hr.Rho(1))
            >>> plan.described(hr.Description(title="Ages in 2021")).hash == plan.hash
            True
        """
        check_type("a description", description, Description, "Description(…)", PlanError)
        description.check_names(self.tree)
        return self._with("description", description)

    def choosing(self, *chosen: str) -> "Plan":
        """Return the same plan, with the same hash, of which more was chosen: keys of sentences.

        Example:
            >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
            >>> plan = hr.make_plan(tree, budget=hr.Rho(1), measure=hr.All())
            >>> plan.choosing("measure_few").chosen
            ('shares_least', 'measure_few')
        """
        return self._with("chosen", (*self.chosen, *chosen))

    @property
    def chosen_measure(self) -> Texts:
        """Those of `chosen` that say why so much is measured, which holds whatever the shares."""
        return tuple(key for key in self.chosen if key.startswith("measure_"))

    def _with(self, name: str, value: object) -> "Plan":
        same = copy.copy(self)  # with what was computed, which such a value does not change
        object.__setattr__(same, name, value)
        return same

    def label_of(self, levels: Levels) -> str:
        """Return a cuboid in readers' words: its name, with the description's labels."""
        return self.description.cuboid_label(self.tree, levels)

    @cached_property
    def levels(self) -> CuboidList:
        """The cuboids of the workload, each after all that are coarser."""
        return self.workload.cuboids(self.tree)

    @property
    def has_all_combinations(self) -> bool:
        """Whether the workload has every combination of levels of the axes."""
        return len(self.levels) == prod(map(len, self.tree.level_numbers))

    @cached_property
    def measured(self) -> CuboidList:
        """The cuboids that have a share."""
        return tuple(
            levels
            for levels, share in zip(self.levels, self.shares, strict=True)
            if share is not None
        )

    @cached_property
    def public(self) -> Levels | None:
        """The finest cuboid whose counts are public, with all its coarsenings; None for none."""
        return public_cuboid(self.tree, self.workload, self.neighbours, self.invariants)

    @property
    def public_depth(self) -> int:
        """The deepest public depth of a chain; -1 if not even the total is public."""
        return chain_of(self).public_depth

    @property
    def has_depths(self) -> bool:
        """Whether the cuboids are estimated as depths of a tree."""
        return self.design.depth_of(self.levels[0]) is not None

    @property
    def is_chain(self) -> bool:
        """Whether the cuboids are nested, so that the pass descends from depth to depth."""
        return isinstance(self.workload, Chain)

    def is_public(self, levels: Levels) -> bool:
        """Return whether the counts of a cuboid are public."""
        return is_within(levels, self.public)

    def is_whole(self, levels: Levels) -> bool:
        """Return whether every cell of a measured cuboid is measured, and not survivors alone."""
        return levels in self.whole

    @cached_property
    def whole(self) -> frozenset[Levels]:
        """The cuboids of which every cell is measured or a sum of what is."""
        return whole_cuboids(self.tree, self.workload, self.measure, self.public)

    @cached_property
    def constraints(self) -> Constraints | None:
        """What public facts say, in numbers; None where there is none."""
        return constraints_of(self.tree, self.facts) if self.facts else None

    @cached_property
    def fixed_counts(self) -> FixedCounts:
        """Of which released cuboids public facts fix some counts, and how many."""
        if self.constraints is None:
            return {}
        released = (levels for levels in self.levels if not self.is_public(levels))
        total_is_public = self.public is not None
        return fixed_counts(self.tree, self.constraints, released, total_is_public=total_is_public)

    @property
    def public_facts(self) -> str:
        """What public files say, in lines; nothing where there are none."""
        return (
            ""
            if self.constraints is None
            else describe_facts(self.tree, self.facts, self.constraints)
        )

    @cached_property
    def tables(self) -> CuboidList:
        """The released tables: cuboids that no other one refines. A chain or cube has one."""
        return tables_of(self.tree, self.levels)

    def table_of(self, levels: Levels) -> Levels | None:
        """Return the smallest table whose cells sum to a cuboid's; None where there is none."""
        return min(self.tables_with(levels), key=self.tree.cells, default=None)

    def tables_with(self, levels: Levels) -> CuboidList:
        """Return the tables whose cells sum to a cuboid's: they contain it.

        A table contains its coarsenings, and those of the single children of its cells.
        """
        return tuple(
            table
            for table in self.tables
            if all(
                k <= own or axis.size(k) == axis.size(own)
                for axis, k, own in zip(self.tree.axes, levels, table, strict=True)
            )
        )

    @cached_property
    def guarantee(self) -> Profile:
        """The composition of all measurements, coarsest first."""
        shares = [share for share in self.shares if share is not None]
        changes = [self.changes(levels) for levels in self.measured]
        worst = self.neighbours.is_worst and not isinstance(self.measure, RunningSums)
        return calibrate(
            self.mechanism,
            self.budget,
            shares,
            changes,
            is_worst=worst,
            inverse_two_rho=self.inverse_two_rho,
        )

    @property
    def strategy(self) -> Strategy:
        """The weights of running sums of the bins that end a chain, where these are measured."""
        axis, level = self.tree.steps[-1]
        return Strategy.of(self.tree.axes[axis].size(level))

    def changes(self, levels: Levels) -> tuple[Change, ...]:
        """Return what one unit changes of the measurements of a cuboid, in each case."""
        if not isinstance(self.measure, RunningSums):
            return self.neighbours.changes(sum(levels))
        column = self.strategy.column_squared
        distance = self.strategy.distance_squared
        rows = self.tree.chain[-2]
        if self.tree.cells(rows) > 1 and self.public != rows:
            distance = 2 * column  # a record may move to another row; two rows share no sum
        return (self.neighbours.norm_of_columns(column, distance),)

    @property
    def deltas(self) -> list[Fraction]:
        """The δ at which the price is shown: the budget's own, and usual ones."""
        own = {self.budget.delta} if isinstance(self.budget, EpsilonDelta) else set()
        return sorted(own | {Fraction(1, 10**k) for k in (6, 8, 10)}, reverse=True)

    @cached_property
    def price_of_a_share(self) -> Fraction:
        """What a cuboid alone costs, as a multiple of its share of the budget: at least 1.

        It is 1 where one unit can change all cuboids by their worst at once: then their costs
        add up to the budget. Where it cannot (`Neighbours.changes` has several cases), they add up
        to more, the whole costs the budget, and shares say how cuboids compare.
        """
        guarantee = self.guarantee
        whole = guarantee.pure_epsilon
        each = [use.pure_epsilon for use in guarantee.uses]
        if whole is None:
            whole = guarantee.rho
            each = [use.rho for use in guarantee.uses]
        return sum((cost for cost in each if cost is not None), Fraction(0)) / (whole or 1)

    @cached_property
    def saved(self) -> Fraction | None:
        """The share of noise variance saved beside the conversion of Bun & Steinke."""
        guarantee = self.guarantee
        if not isinstance(self.budget, EpsilonDelta) or guarantee.rho is None:
            return None
        return 1 - rho_within(self.budget.epsilon, self.budget.delta) / guarantee.rho

    @cached_property
    def by_levels(self) -> dict[Levels, CuboidPlan]:
        """For each cuboid of the workload `Measured`, `Public` or `Unmeasured`."""
        return {
            levels: Public()
            if self.is_public(levels)
            else Unmeasured()
            if share is None
            else Summed(self.noise[levels], share, self.strategy.scale)
            if isinstance(self.measure, RunningSums)
            else Measured(self.noise[levels], share)
            for levels, share in zip(self.levels, self.shares, strict=True)
        }

    @cached_property
    def noise(self) -> dict[Levels, Mechanism]:
        """For each cuboid that is measured the noise of one of its counts, or of its sums."""
        uses = (use.noise for use in self.guarantee.uses)
        return dict(zip(self.measured, uses, strict=True))

    @property
    def cuboids(self) -> dict[str, CuboidPlan]:
        """The same by name, coarse to fine."""
        return {self.tree.name_of(levels): what for levels, what in self.by_levels.items()}

    @property
    def depths(self) -> tuple[CuboidPlan, ...]:
        """The same of a chain, for each depth 0..T."""
        return chain_of(self).depths

    @cached_property
    def design(self) -> Design:
        """How cuboids are estimated and settled: what all that follows a plan asks of it."""
        if isinstance(self.measure, RunningSums):
            return PlannedSums(self)
        if self.is_chain:
            return PlannedChain(self)
        if not goes_along_spine(self.tree, self.workload):
            return PlannedTables.of(self)
        try:
            return planned_spine(self)
        except NoSpineError as reason:
            try:
                check_whole(self.tree, self.workload, self.measure)
                return PlannedTables.of(self, str(reason))
            except PlanError as refusal:
                raise PlanError(f"{refusal} (nor along the spine: {reason})") from None

    def __getstate__(self) -> Json:
        """Return what travels to other machines: the design is made anew where it is asked for."""
        return {name: value for name, value in vars(self).items() if name != "design"}

    @property
    def problem(self) -> Problem:
        """The problem that its shares are an answer to."""
        return Problem.of(
            self.tree, self.workload, self.neighbours, self.mechanism, self.budget, self.measure,
            self.invariants,
        )  # fmt: skip

    @cached_property
    def optimum(self) -> Optimum | None:
        """How near its shares are to the least cost; None where they were not chosen by one.

        Example:
            >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
            >>> print(hr.make_plan(tree, budget=hr.Rho("1/10")).optimum)
            The shares are within 1e-09 of the least cost under wide noise, before they are rounded.
        """
        problem = self.problem
        if not isinstance(self.rule, Optimised) or len(problem.cuboids) == 1:
            return None
        optimum = self.rule.optimum(problem)
        # What the problem that was solved leaves out of the plan's.
        outside = {"facts": bool(self.facts), "price": problem.is_cube and len(problem.cases) > 1}
        reason = next((key for key, is_so in outside.items() if is_so), "")
        return replace(optimum, unproved=reason) if optimum and reason else optimum

    @cached_property
    def efficiency(self) -> Efficiency:
        """The least squared error of any unbiased estimates at its price, over its own.

        Example:
            >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
            >>> plan = hr.make_plan(tree, budget=hr.Rho("1/10"), allocation=hr.Uniform())
            >>> round(plan.efficiency.value, 3)
            0.975
        """
        rho = self.guarantee.rho or Fraction(0)
        efficiency = efficiency_of(self.problem, self.importance, self.prior, self.design, rho)
        return replace(efficiency, is_plain=self.allocation in {Uniform.name, Shares.name})

    @property
    def choices(self) -> TextByName:
        """What was chosen by default and why, and what shares weigh: by key a sentence.

        Example:
            >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
            >>> plan = hr.make_plan(tree, budget=hr.Rho(1), allocation=hr.Uniform())
            >>> plan.choices["measure_few"]
            'All cells are measured by default, because there are at most 2²⁴ finest cells.'
        """
        say = catalogue(USUAL)
        return {key: say(f"planning.chosen.{key}") for key in self.chosen}

    @property
    def possible_shares(self) -> dict[Levels, Fraction]:
        """For each cuboid that can be measured its share, 0 where it has none."""
        given = dict(zip(self.levels, self.shares, strict=True))
        possible = measurable(self.tree, self.workload, self.neighbours, self.invariants)
        return {levels: given[levels] or Fraction(0) for levels in possible}

    @property
    def axis_shares(self) -> list[list[Fraction]] | None:
        """The shares of a cube by axis and level, the axis's total included, if they are a product.

        They are those of the other axes' finest levels, and sum to 1 an axis.
        """
        design = self.design
        if not isinstance(design, PlannedTables) or not design.is_cube:
            return None
        factors = design.factors
        return None if factors is None else [[f / sum(each) for f in each] for each in factors]

    @cached_property
    def repeats(self) -> OtherCuboids:
        """For each cuboid that has the cells of a coarser one, the coarsest such one."""
        return repeated(self.tree, self.levels)

    @cached_property
    def protection(self) -> Protection:
        """Who is protected, and what neighbours agree on."""
        return protection(self.tree, self.workload, self.neighbours, self.invariants)

    @property
    def promise(self) -> Promise:
        """The privacy promise in full, as `str` prints it."""
        budget = self.budget if isinstance(self.budget, EpsilonDelta) else None
        fixed = fixed_in_words(self.tree, self.fixed_counts)
        return Promise(self.protection, self.guarantee, budget, fixed)

    def __repr__(self) -> str:
        names = ", ".join(self.cuboids)
        return f"Plan({names}; {self.promise.label}; print() shows its table and promise)"

    def __str__(self) -> str:
        """Return the table that `hedgerow plan --wide` shows, and what is promised."""
        expected = forecast(self)
        tables = forecast_table(expected, wide=True), forecast_matrix(self, expected, wide=True)
        chosen = " ".join(self.choices.values())
        near = str(self.optimum or "")
        parts = *tables, chosen, str(self.efficiency), near, str(self.promise), self.public_facts
        return "\n\n".join(part for part in parts if part)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the same as a table, with its picture."""
        return plan_html(self)

    def plot(self) -> Any:
        """Return the picture of ``hedgerow plan --picture``, a figure of matplotlib.

        Raises:
            PlanError: matplotlib is not installed.

        Example:
            >>> tree = hr.Tree([hr.Axis.from_frame("town", {"town": ["a", "b"]}, levels=["town"])])
            >>> figure = hr.make_plan(tree, budget=hr.Rho("1/8")).plot()
            >>> [axes.get_title(loc="left") for axes in figure.axes]
            ['Expected error of a count', 'Share of the budget', 'Empty cells seen above 0']
        """
        return figure_of_forecast(self)

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the plan in canonical JSON, to sign off."""
        return plan_hash(self.to_dict())

    def to_dict(self) -> Json:
        """Return the plan as JSON, exact numbers as text; see `hedgerow.plan.make`."""
        return {
            "tree": describe_tree(self.tree),
            "neighbours": {
                "relation": self.neighbours.name,
                "contributions": self.neighbours.contributions,
                "unit": self.neighbours.unit,
                "total_is_public": self.neighbours.total_is_public,
            },
            "budget": {
                "kind": type(self.budget).__name__,
                **{name: str(getattr(self.budget, name)) for name in self.budget.__slots__},
            },
            "mechanism": self.mechanism.name,
            "allocation": self.allocation,
            "measure": self.measure.name,
            "invariants": [{"axis": i.axis, "level": i.level} for i in self.invariants],
            **({"public": [fact.to_dict() for fact in self.facts]} if self.facts else {}),
            **({"accept": [each.to_dict() for each in self.accept]} if self.accept else {}),
            "workload": self.workload.described(),
            "cuboids": [
                describe_cuboid(self.tree, levels, what, whole=self.is_whole(levels))
                for levels, what in self.by_levels.items()
            ],
            "guarantee": self.guarantee.to_dict(),
        }
