"""A plan written down as JSON."""

import hashlib
import json

from hedgerow.arrays import Levels
from hedgerow.plan.cuboids import CuboidPlan, Measured, Summed
from hedgerow.tables.tree import Tree
from hedgerow.text import Json


def plan_hash(described: Json) -> str:
    """Return the SHA-256 of a plan's description in canonical JSON: what is signed off."""
    text = json.dumps(described, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def describe_tree(tree: Tree) -> Json:
    """Return axes and order of refinement as JSON; each axis's codes by their digest."""
    return {
        "axes": [
            {
                "name": axis.name,
                "levels": list(axis.levels),
                "columns": list(axis.columns),
                "sizes": list(axis.sizes[1:]),
                "not_stated": axis.not_stated,
                "from_table": axis.from_table,
                "sha256": axis.digest,
            }
            | ({"attribute": True} if axis.attribute else {})
            | ({} if axis.product is None else {"told": list(axis.product.column_ends)})
            for axis in tree.axes
        ],
        "refine": [f"{tree.axes[a].name}.{tree.axes[a].levels[k - 1]}" for a, k in tree.steps],
    }


def describe_cuboid(tree: Tree, levels: Levels, cuboid_plan: CuboidPlan, *, whole: bool) -> Json:
    """Return one cuboid as JSON: levels, cells, kind, and where measured share and parameter.

    Args:
        tree: the public domain.
        levels: the cuboid.
        cuboid_plan: what is done there.
        whole: whether every cell is measured; else those that survive alone.
    """
    described: Json = {
        "levels": list(levels),
        "cuboid": tree.name_of(levels),
        "cells": tree.cells(levels),
        "kind": cuboid_plan.kind,
    }
    if isinstance(cuboid_plan, Measured | Summed):
        described |= {
            "share": str(cuboid_plan.share),
            "mechanism": cuboid_plan.mechanism.name,
            "parameter": str(cuboid_plan.mechanism.parameter),
            "whole": whole,
        }
    if isinstance(cuboid_plan, Summed):
        described["scale"] = cuboid_plan.scale
    return described
