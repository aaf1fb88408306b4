"""Errors of areas along a chain: a pass over the tree for each group of areas that do not overlap.

The variances are those of `hedgerow.estimate.tree.sums`.
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import least_squares, upward
from hedgerow.estimate.tree.sums import variance_of_sums
from hedgerow.plan.plan import Plan
from hedgerow.release.areas.sums import AreaSums
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.source import Stored
from hedgerow.release.directory.stored import Content, noise_variances, public_nodes
from hedgerow.release.reestimate.measured_nodes import measured_nodes


def estimates_along_chain(content: Content, sums: AreaSums) -> tuple[Float64, Float64]:
    """Return estimates and variances: float64 (areas, cells beside) both."""
    nodes, layers = measured_nodes(content.stored, Outline.of(content.plan), content.nodes)
    return _along_chain(sums, nodes[-1], layers)


def variances_along_chain(sums: AreaSums) -> Float64:
    """Return variances from public facts: float64 (areas, cells beside).

    Where counts below the total are public, every node is taken to have records.
    """
    return _along_chain(sums, *_layers_of_plan(sums.plan))[1]


def _along_chain(sums: AreaSums, leaves: Nodes, layers: Sequence[Layer]) -> tuple[Float64, Float64]:
    """Return estimates and variances, group after group of areas that do not overlap."""
    tree, lookup, cells = sums.plan.tree, sums.lookup, sums.cells
    estimate, variance = np.zeros((2, len(lookup) * cells))
    if not len(leaves):
        return estimate.reshape(-1, cells), variance.reshape(-1, cells)
    axes = zip(tree.axes, sums.levels, leaves.codes, strict=True)
    node, beside = sums.split([axis.ancestors(k)[code] for axis, k, code in axes])
    combined, best = upward(layers), least_squares(layers)[-1].estimate
    for area_of in lookup.partitions(tree.axes[lookup.axis].size(lookup.level)):
        area = area_of[node]
        groups = np.where(area >= 0, area * cells + beside, len(variance))
        found = variance_of_sums(layers, groups, combined)
        of = np.unique(groups[area >= 0])
        variance[of] = found[of]
        estimate += np.bincount(groups, best, minlength=len(estimate) + 1)[:-1]
    return estimate.reshape(-1, cells), variance.reshape(-1, cells)


def _layers_of_plan(plan: Plan) -> tuple[Nodes, list[Layer]]:
    """Return the leaves of a chain and its layers as public facts have them, with counts of 0."""
    outline, tree, released = Outline.of(plan), plan.tree, dict[Levels, Nodes]()
    for levels in plan.levels:
        sizes = [axis.size(level) for axis, level in zip(tree.axes, levels, strict=True)]
        public = plan.is_public(levels)
        rows = np.unravel_index(np.arange(tree.cells(levels) if public else 0), sizes)
        codes = tuple(row.astype(np.int32) for row in rows)
        released[levels] = Nodes.exact(codes, np.ones(len(codes[0]), dtype=np.int64))
    noisy = {c: np.zeros(tree.cells(c), dtype=np.int64) for c in noise_variances(plan)}
    stored = Stored(tree, noisy, noise_variances(plan), public_nodes(plan, released))
    nodes, layers = measured_nodes(stored, outline, released)
    return nodes[-1], layers
