"""A plan written down: as JSON for machines, its price and other tables as text for people."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.plan.depths import DepthPlan, Measured, Summed
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.privacy.profile import Profile
from hedgerow.tables.tree import Tree
from hedgerow.text import Exact, format_delta, format_rounded_up


def plan_hash(described: Mapping[str, Any]) -> str:
    """SHA-256 of a plan's description in canonical JSON: what is signed off."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def describe_tree(tree: Tree) -> dict[str, Any]:
    """Axes and order of refinement as JSON; each axis's codes by their digest."""
    return {
        "axes": [
            {
                "name": axis.name,
                "levels": list(axis.levels),
                "columns": list(axis.columns),
                "sizes": [axis.size(k) for k in range(1, axis.depth + 1)],
                "not_stated": axis.not_stated,
                "from_table": axis.from_table,
                "sha256": axis.digest,
            }
            for axis in tree.axes
        ],
        "refine": [f"{tree.axes[a].name}.{tree.axes[a].levels[k - 1]}" for a, k in tree.steps],
    }


def describe_neighbours(neighbours: Neighbours) -> dict[str, Any]:
    """Return the unit of privacy as JSON."""
    return {
        "relation": neighbours.name,
        "contributions": neighbours.contributions,
        "unit": neighbours.unit,
        "total_is_public": neighbours.total_is_public,
    }


def describe_budget(budget: Budget) -> dict[str, Any]:
    """Return the kind of a budget and its amounts as JSON."""
    amounts = {name: str(getattr(budget, name)) for name in budget.__slots__}
    return {"kind": type(budget).__name__, **amounts}


def describe_depth(tree: Tree, depth: int, what: DepthPlan) -> dict[str, Any]:
    """One depth as JSON: cuboid, cells, kind, and of a measured one share and noise parameter."""
    described: dict[str, Any] = {
        "depth": depth,
        "cuboid": tree.cuboid_name(depth),
        "cells": tree.nodes(depth),
        "kind": what.kind,
    }
    if isinstance(what, Measured | Summed):
        described |= {
            "share": str(what.share),
            "mechanism": what.mechanism.name,
            "parameter": str(what.mechanism.parameter),
        }
    if isinstance(what, Summed):
        described["scale"] = what.scale
    return described


def price_table(profile: Profile, deltas: Sequence[Exact]) -> str:
    """ε at several δ as aligned text: exact, and by the two conversions from ρ."""
    rows: list[tuple[str, ...]] = [("", "δ", "ε", "from ρ, optimally", "from ρ, as the Bureau")]
    for delta in deltas:
        asked = (profile.epsilon, profile.zcdp_epsilon, profile.bureau_epsilon)
        figures = (format_rounded_up(ask(delta)) for ask in asked)
        rows.append(("", format_delta(delta), *figures))
    return aligned(rows)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows of a table by depth as text: the second column, the cuboid, stands to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            word.ljust(width) if i == 1 else word.rjust(width)
            for i, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
