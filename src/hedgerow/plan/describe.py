"""A plan in words: as JSON for machines, as a table for people."""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from math import isfinite
from typing import Any

from hedgerow.noise.numerals import Exact
from hedgerow.plan.depths import DepthPlan, Measured, Summed
from hedgerow.privacy.profile import Profile, delta_text
from hedgerow.tables.tree import Tree

SMALLEST = 1e-300  # a probability; more cells than its inverse are not to be had
HEADINGS = ("depth", "cuboid", "cells", "share", "noise", "sd", "95 % within", "all within")


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


def plan_rows(tree: Tree, depths: Sequence[DepthPlan]) -> list[tuple[str, ...]]:
    """For each depth the `HEADINGS` in words.

    ``sd``: standard deviation of the noise of one count (records). ``95 % within``: 95 of 100 noisy
    counts lie within this distance of the truth. ``all within``: with 95 % probability all possible
    cells of the depth do (union bound).
    """
    return [
        (str(t), tree.cuboid_name(t), f"{tree.nodes(t):,}", *_noise(what, tree.nodes(t)))
        for t, what in enumerate(depths)
    ]


def plan_table(tree: Tree, depths: Sequence[DepthPlan]) -> str:
    """The rows as aligned text."""
    return aligned([HEADINGS, *plan_rows(tree, depths)])


def price_table(profile: Profile, deltas: Sequence[Exact]) -> str:
    """ε at several δ as aligned text: exact, and by the two conversions from ρ."""
    rows: list[tuple[str, ...]] = [("", "δ", "ε", "from ρ, optimally", "from ρ, as the Bureau")]
    for delta in deltas:
        asked = (profile.epsilon, profile.zcdp_epsilon, profile.bureau_epsilon)
        figures = (figure_above(ask(delta)) for ask in asked)
        rows.append(("", delta_text(delta), *figures))
    return aligned(rows)


def figure_above(epsilon: float) -> str:
    """Six digits, rounded up."""
    if not isfinite(epsilon):
        return "none"
    return f"{float(Context(prec=6, rounding=ROUND_CEILING).create_decimal(epsilon)):g}"


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


def _noise(what: DepthPlan, cells: int) -> tuple[str, ...]:
    if isinstance(what, Summed):
        sums = f"σ² {float(what.mechanism.parameter):,.6g} on sums × {what.scale:,}"
        return (f"{float(what.share):.1%}", sums, "", "", "")
    if not isinstance(what, Measured):
        return ("", what.kind, "0" if what.kind == "public" else "", "", "")
    noise = what.mechanism
    symbol = "σ²" if noise.name == "discrete-gaussian" else "scale"
    return (
        f"{float(what.share):.1%}",
        f"{symbol} {float(noise.parameter):,.6g}",
        f"{noise.noise_variance**0.5:,.4g}",
        f"±{noise.tail_bound(0.05):,}",
        f"±{noise.tail_bound(max(float(Fraction(1, 20) / cells), SMALLEST)):,}",
    )
