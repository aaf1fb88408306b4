"""A plan: what will be measured with which noise, and what that promises; from public facts."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from hedgerow.errors import PlanError, as_list, check_type
from hedgerow.estimate.running_sums import Strategy
from hedgerow.noise.mechanisms import MECHANISMS, DiscreteGaussian, Mechanism
from hedgerow.plan.allocation.allocation import Allocation, Problem, Uniform
from hedgerow.plan.depths import (
    MEASURES,
    DepthPlan,
    Invariant,
    Measure,
    Measured,
    Public,
    RunningSums,
    Summed,
    Survivors,
    Unmeasured,
    check_parts,
    check_running_sums,
    check_size,
    measurable_depths,
    protection,
    public_depth,
    refuse_kind,
)
from hedgerow.plan.describe import (
    describe_depth,
    describe_tree,
    plan_hash,
)
from hedgerow.plan.forecast import forecast, forecast_table
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho, check_budget, rho_within
from hedgerow.privacy.calibrate import calibrate
from hedgerow.privacy.neighbours import AddRemove, Change, Neighbours, Replace
from hedgerow.privacy.profile import Profile
from hedgerow.privacy.promise import Promise, Protection
from hedgerow.tables.tree import Tree
from hedgerow.text import exact


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything a release needs to know except the table. Make one with `make_plan`.

    Attributes:
        tree: the public domain and the order of refinement.
        neighbours: the unit of privacy.
        budget: what may be spent.
        mechanism: the noise.
        allocation: the name of the rule that shared the budget out.
        shares: for each depth 0..T its share of the budget, None where it is not measured.
        invariants: what is public by declaration.
        measure: all nodes of a measured depth, or those below survivors alone.
        prior: the public table that the allocation rests on, if any; no part of what is signed.
        inverse_two_rho: for a plan read back, the 1/(2ρ) that its (ε, δ) budget was calibrated to,
            which is verified rather than searched for again.

    Raises:
        PlanError: an impossible invariant, a share for a depth that is public or made of single
            children, none for the deepest of the others, or more cells to measure than 2³².
        BudgetError: a budget that the mechanism cannot spend, or invalid shares.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta(1, "1e-6"))
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
    shares: tuple[Fraction | None, ...]
    invariants: tuple[Invariant, ...]
    measure: Measure
    inverse_two_rho: Fraction | None = None
    prior: Prior | None = None

    def __post_init__(self) -> None:
        possible = measurable_depths(self.tree, self.neighbours, self.invariants)
        if not possible:
            raise PlanError(
                "this plan measures nothing: every depth is public or has single children only"
            )
        given = [t for t, share in enumerate(self.shares) if share is not None]
        fits = len(self.shares) == self.tree.depth + 1 and set(given) <= set(possible)
        if not fits or possible[-1] not in given:
            raise PlanError(
                f"shares can be given for the depths {possible} and must be for the last of them, "
                f"got shares for {given}"
            )
        check_size(self.tree, self.measure)
        if isinstance(self.measure, RunningSums):
            check_running_sums(self.tree, self.mechanism, given)
        self.guarantee  # noqa: B018 - computed here, so that an invalid plan cannot exist

    @cached_property
    def public_depth(self) -> int:
        """The deepest public depth; -1 if not even the total is public."""
        return public_depth(self.tree, self.neighbours, self.invariants)

    @cached_property
    def guarantee(self) -> Profile:
        """The composition of all measurements, coarsest first."""
        measured = [t for t, share in enumerate(self.shares) if share is not None]
        shares = [share for share in self.shares if share is not None]
        changes = [self._changes(t) for t in measured]
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
        """The weights of the running sums, where these are measured."""
        return Strategy.of(self.tree.nodes(self.tree.depth))

    def _changes(self, depth: int) -> tuple[Change, ...]:
        """Return what one unit changes of the measurements of a depth, in each case."""
        if not isinstance(self.measure, RunningSums):
            return self.neighbours.changes(depth)
        columns = self.strategy
        return (self.neighbours.norm_of_columns(columns.column_squared, columns.distance_squared),)

    @property
    def deltas(self) -> list[Fraction]:
        """The δ at which the price is shown: the budget's own, and usual ones."""
        own = {self.budget.delta} if isinstance(self.budget, EpsilonDelta) else set()
        return sorted(own | {Fraction(1, 10**k) for k in (6, 8, 10)}, reverse=True)

    @cached_property
    def price_of_a_share(self) -> Fraction:
        """What a depth alone costs, as a multiple of its share of the budget: at least 1.

        It is 1 where one unit can change all depths by their worst at once: then costs of depths
        add up to the budget. Where it cannot (`Neighbours.changes` has several cases), they add up
        to more, the whole costs the budget, and shares say how depths compare.
        """
        guarantee = self.guarantee
        whole, each = guarantee.pure_epsilon, [use.pure_epsilon for use in guarantee.uses]
        if whole is None:
            whole, each = guarantee.rho, [use.rho for use in guarantee.uses]
        return sum((cost for cost in each if cost is not None), Fraction(0)) / (whole or 1)

    @cached_property
    def saved(self) -> Fraction | None:
        """The share of noise variance saved beside the conversion of Bun & Steinke."""
        guarantee = self.guarantee
        if not isinstance(self.budget, EpsilonDelta) or guarantee.rho is None:
            return None
        return 1 - rho_within(self.budget.epsilon, self.budget.delta) / guarantee.rho

    @cached_property
    def depths(self) -> tuple[DepthPlan, ...]:
        """For each depth 0..T `Measured`, `Public` or `Unmeasured`."""
        uses = iter(self.guarantee.uses)
        return tuple(
            Public()
            if t <= self.public_depth
            else Unmeasured()
            if share is None
            else Summed(next(uses).noise, share, self.strategy.scale)
            if isinstance(self.measure, RunningSums)
            else Measured(next(uses).noise, share)
            for t, share in enumerate(self.shares)
        )

    @cached_property
    def protection(self) -> Protection:
        """Who is protected, and what neighbours agree on."""
        return protection(self.tree, self.neighbours, self.invariants)

    @property
    def promise(self) -> Promise:
        """The privacy promise in full, as `str` prints it."""
        delta = self.budget.delta if isinstance(self.budget, EpsilonDelta) else None
        return Promise(self.protection, self.guarantee, delta)

    def __repr__(self) -> str:
        depths = ", ".join(self.tree.cuboid_name(t) for t in range(self.tree.depth + 1))
        return f"Plan({depths}; {self.promise.label}; print() shows its table and promise)"

    def __str__(self) -> str:
        """Return the table that `hedgerow plan` shows, and what is promised."""
        return f"{forecast_table(forecast(self))}\n\n{self.promise}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the same."""
        return f"<pre>{html.escape(str(self))}</pre>"

    @cached_property
    def hash(self) -> str:
        """The SHA-256 of the plan in canonical JSON, to sign off."""
        return plan_hash(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON: public facts only, exact numbers as text; see `read_plan`."""
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
            "depths": [describe_depth(self.tree, t, plan) for t, plan in enumerate(self.depths)],
            "guarantee": self.guarantee.to_dict(),
        }


def make_plan(
    tree: Tree,
    *,
    budget: Budget,
    neighbours: Neighbours | None = None,
    mechanism: type[Mechanism] = DiscreteGaussian,
    allocation: Allocation | None = None,
    measure: Measure | None = None,
    invariants: Sequence[Invariant] = (),
) -> Plan:
    """Return the plan of a release, made from public facts alone.

    The total is public where all neighbours agree on it, and measured otherwise. An invariant makes
    its depth and all coarser ones public. A depth at which no family has a second child repeats its
    parents' counts, so it is left unmeasured and costs nothing.

    Args:
        tree: the public domain.
        budget: `Rho` or `EpsilonDelta` for the discrete Gaussian, `Epsilon` for discrete Laplace.
        neighbours: the unit of privacy; `AddRemove` with one contribution unless given.
        mechanism: the noise.
        allocation: how the measured depths share the budget; equally unless given.
        measure: `Survivors` unless given; `All` lets estimators combine depths.
        invariants: levels whose counts are public (`Replace` with exact contributions only).

    Raises:
        PlanError: an impossible invariant, a tree with nothing to measure, or a name or class
            in place of an object: ``"all"`` for ``All()``.
        BudgetError: a budget that the mechanism cannot spend.

    Example:
        >>> tree = hr.Tree([hr.Ranges.equal_width("age", 0, 80, 8).axis([2, 4])])
        >>> plan = hr.make_plan(
        ...     tree, budget=hr.Epsilon(1), mechanism=hr.DiscreteLaplace, measure=hr.All()
        ... )
        >>> plan
        Plan(total, bins_4, bin; satisfies ε = 1 differential privacy; ...)
    """
    check_budget(budget)
    neighbours = AddRemove() if neighbours is None else neighbours
    allocation = Uniform() if allocation is None else allocation
    measure = Survivors() if measure is None else measure
    check_parts(tree, neighbours, mechanism, measure)
    _check_rules(allocation, invariants)
    depths = tuple(measurable_depths(tree, neighbours, invariants))
    check_size(tree, measure)
    problem = Problem(tree, neighbours, mechanism, budget, measure, depths)
    shares = dict(zip(depths, allocation.shares(problem) if depths else (), strict=True))
    return Plan(
        tree,
        neighbours,
        budget,
        mechanism,
        allocation.name,
        tuple(shares.get(t) for t in range(tree.depth + 1)),
        tuple(invariants),
        measure,
        prior=allocation.prior,
    )


def _check_rules(allocation: object, invariants: object) -> None:
    """Raise a PlanError for names or classes in place of an allocation or invariants."""
    if isinstance(allocation, type) or not hasattr(allocation, "shares"):
        refuse_kind("an allocation", "Uniform() or Optimal()", allocation)
    fitting = "Invariant(axis, level)"
    for invariant in as_list("invariants", invariants, f"a list of {fitting}", PlanError):
        check_type("an invariant", invariant, Invariant, fitting, PlanError)


def read_plan(tree: Tree, described: Mapping[str, Any]) -> Plan:
    """Return the plan that `Plan.to_dict` describes, over a tree that must be its own.

    Noise and guarantee are computed again, so a description that contradicts itself reads back as a
    different plan. Noise calibrated to an (ε, δ) budget is verified to keep that budget.

    Raises:
        PlanError, BudgetError: no plan can be made of it.
        KeyError, TypeError: it does not describe a plan.
    """
    neighbours, budget = described["neighbours"], described["budget"]
    options: dict[str, Any] = {name: neighbours[name] for name in ("contributions", "unit")}
    if neighbours["relation"] == Replace().name:
        options["exactly"] = neighbours["total_is_public"]
    kind = {kind.__name__: kind for kind in (Rho, EpsilonDelta, Epsilon)}[budget["kind"]]
    return Plan(
        tree,
        (Replace if "exactly" in options else AddRemove)(**options),
        kind(*(budget[name] for name in kind.__slots__)),
        MECHANISMS[described["mechanism"]],
        described["allocation"],
        tuple(
            exact(t["share"], "share", PlanError) if "share" in t else None
            for t in described["depths"]
        ),
        tuple(Invariant(i["axis"], i["level"]) for i in described["invariants"]),
        MEASURES[described["measure"]],
        1 / (2 * exact(described["guarantee"]["rho"], "rho", PlanError))
        if kind is EpsilonDelta
        else None,
    )
