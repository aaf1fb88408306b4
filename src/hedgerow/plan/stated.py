"""A plan that was written down, read back; its noise and its promise are computed again."""

from collections.abc import Mapping
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.noise.mechanisms import MECHANISMS
from hedgerow.plan.cuboids import MEASURES, Invariant
from hedgerow.plan.plan import Plan
from hedgerow.plan.workload import WORKLOADS, workload_for
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.tables.tree import Tree
from hedgerow.text import exact


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
    workload = workload_for(tree, WORKLOADS[described["workload"]])
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
    )
