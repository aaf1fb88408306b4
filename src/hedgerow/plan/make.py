"""Plans made: from an allocation, or from what was written down."""

from collections.abc import Sequence

from hedgerow.errors import PlanError, as_list, check_type
from hedgerow.noise.mechanisms import MECHANISMS, DiscreteGaussian, Mechanism
from hedgerow.plan.allocation.allocation import Allocation, Problem
from hedgerow.plan.criteria.criterion import Criterion, checked_criteria, read_criterion
from hedgerow.plan.cuboids import (
    MEASURES,
    Invariant,
    Measure,
    check_parts,
    check_size,
    check_tree,
    refuse_kind,
)
from hedgerow.plan.defaults import judged_by, measure_for, shares_of
from hedgerow.plan.facts.facts import Fact, Facts, PublicTable, read_facts
from hedgerow.plan.facts.public_rows import SPINE
from hedgerow.plan.plan import Plan
from hedgerow.plan.workload import AnyWorkload, Chain, Workload, workload_for, workload_of
from hedgerow.privacy.budget import Budget, Epsilon, EpsilonDelta, Rho, check_budget
from hedgerow.privacy.neighbours import AddRemove, Neighbours, Replace
from hedgerow.tables.tree import Tree
from hedgerow.text import Json, exact


def make_plan(  # noqa: PLR0913 - what a plan is made of
    tree: Tree,
    *,
    budget: Budget,
    neighbours: Neighbours | None = None,
    mechanism: type[Mechanism] = DiscreteGaussian,
    allocation: Allocation | None = None,
    workload: AnyWorkload | None = None,
    measure: Measure | None = None,
    invariants: Sequence[Invariant] = (),
    public: Sequence[Fact | PublicTable] = (),
    accept: Sequence[Criterion] = (),
) -> Plan:
    """Return the plan of a release, made from public facts alone.

    The total is public where all neighbours agree on it, and measured otherwise. An invariant makes
    its cuboid and all coarser ones public. A cuboid that has the cells of a coarser one, as no
    family has a second child, repeats its counts: it is left unmeasured and costs nothing.

    Args:
        tree: the public domain.
        budget: `Rho` or `EpsilonDelta` for the discrete Gaussian, `Epsilon` for discrete Laplace.
        neighbours: the unit of privacy; `AddRemove` with one contribution unless given.
        mechanism: the noise.
        allocation: how the measured cuboids share the budget; unless given so that the sum of
            the mean variances of their estimates is least, before these are made whole counts
            (`Optimal` with `PerLevel`), and equally where that is beyond reach
            (`hedgerow.plan.defaults.shares_of`).
        workload: which cuboids are measured: those of the tree's own `Chain` unless given, all
            combinations of levels (`Cube`), or those that are named (`Cuboids`).
        measure: which cells: unless given `All`, which lets estimators combine cuboids, up to
            2²⁴ leaves, along a spine and of cubes of three axes and more; else `Survivors`.
        invariants: levels whose counts are public (`Replace` with exact contributions only).
        public: cells that hold nobody and bounds, from public rules and files (`Zeros`,
            `PublicTable`): used by the release, free, and no restriction of the promise. For a
            cube or named cuboids along a spine, beside which all axes are attributes.
        accept: criteria that the release is to keep, which `verdicts` judges.

    Raises:
        PlanError: an impossible invariant, a criterion of no cuboid of the tree, public facts that
            contradict each other, fix every count of a released table or name what the tree has
            not, a tree with nothing to measure, or a name or class in place of an object: ``"all"``
            for ``All()``.
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
    check_tree(tree)
    workload = workload_for(tree, workload)
    measure, of_measure = measure_for(tree, workload, measure)
    check_parts(neighbours, mechanism, measure, workload)
    _check_rules(allocation, invariants)
    criteria = checked_criteria(tree, accept)
    facts = _facts(tree, workload, public)
    check_size(tree, workload, measure)
    problem = Problem.of(tree, workload, neighbours, mechanism, budget, measure, invariants)
    allocation, fractions, of_shares = shares_of(problem, allocation)
    shares = dict(zip(problem.cuboids, fractions, strict=True))
    return Plan(
        tree,
        neighbours,
        budget,
        mechanism,
        allocation.name,
        tuple(map(shares.get, workload.cuboids(tree))),
        tuple(invariants),
        measure,
        workload,
        prior=allocation.prior,
        importance=judged_by(allocation),
        facts=facts,
        chosen=(*of_shares, *of_measure),
        rule=allocation,
        accept=criteria,
    )


def _facts(tree: Tree, workload: Workload, public: Sequence[Fact | PublicTable]) -> Facts:
    """Return the public facts, read; a chain has no use for them, so none is read."""
    if isinstance(workload, Chain) and public:
        raise PlanError(SPINE)
    return read_facts(tree, public)


def _check_rules(allocation: object, invariants: object) -> None:
    """Raise a PlanError for names or classes in place of an allocation or invariants."""
    is_rule = allocation is None or hasattr(allocation, "shares")
    if isinstance(allocation, type) or not is_rule:
        refuse_kind("an allocation", "Uniform() or Optimal()", allocation)
    fitting = "Invariant(axis, level)"
    for invariant in as_list("invariants", invariants, f"a list of {fitting}", PlanError):
        check_type("an invariant", invariant, Invariant, fitting, PlanError)


def read_plan(tree: Tree, described: Json, facts: Facts = ()) -> Plan:
    """Return the plan that `Plan.to_dict` describes, over a tree and facts that must be its own.

    Noise and guarantee are computed again, so a description that contradicts itself reads back as a
    different plan. Noise calibrated to an (ε, δ) budget is verified to keep that budget.

    Raises:
        PlanError, BudgetError: no plan can be made of it.
        KeyError, TypeError: it does not describe a plan.
    """
    neighbours = described["neighbours"]
    budget = described["budget"]
    options: Json = {name: neighbours[name] for name in ("contributions", "unit")}
    if neighbours["relation"] == Replace().name:
        options["exactly"] = neighbours["total_is_public"]
    kind = {kind.__name__: kind for kind in (Rho, EpsilonDelta, Epsilon)}[budget["kind"]]
    workload = workload_for(tree, workload_of(described["workload"]))
    listed = described["cuboids"]
    if [tuple(each["levels"]) for each in listed] != list(workload.cuboids(tree)):
        raise PlanError("the plan lists other cuboids than those of its workload")
    return Plan(
        tree,
        (Replace if "exactly" in options else AddRemove)(**options),
        kind(*(budget[name] for name in kind.__slots__)),
        MECHANISMS[described["mechanism"]],
        described["allocation"],
        tuple(
            exact(each["share"], "share", PlanError) if "share" in each else None for each in listed
        ),
        tuple(Invariant(i["axis"], i["level"]) for i in described["invariants"]),
        MEASURES[described["measure"]],
        workload,
        1 / (2 * exact(described["guarantee"]["rho"], "rho", PlanError))
        if kind is EpsilonDelta
        else None,
        facts=facts,
        accept=tuple(map(read_criterion, described.get("accept", ()))),
    )
