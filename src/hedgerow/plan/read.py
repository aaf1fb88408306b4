"""A plan read back from its description: what a manifest says was signed."""

from collections.abc import Mapping
from typing import Any

from hedgerow.errors import PlanError
from hedgerow.noise.mechanisms import MECHANISMS
from hedgerow.numerals import exact
from hedgerow.plan.depths import MEASURES, Invariant
from hedgerow.plan.plan import Plan
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.tables.tree import Tree


def read_plan(tree: Tree, described: Mapping[str, Any]) -> Plan:
    """The plan that `Plan.to_dict` describes, over a tree that must be its own.

    Everything that follows from something else (noise, guarantee) is computed again, so a
    description that contradicts itself does not come back as it was. Of noise that was calibrated
    to an (ε, δ) budget it is verified that it keeps it.

    Raises:
        PlanError, BudgetError: no plan can be made of it.
        KeyError, TypeError: it is no description of a plan.
    """
    who, budget = described["neighbours"], described["budget"]
    options: dict[str, Any] = {"contributions": who["contributions"], "unit": who["unit"]}
    if who["relation"] == Replace().name:
        options["exactly"] = who["total_is_public"]
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
