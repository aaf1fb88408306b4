"""A census as a cube: a spine beside one attribute axis, every combination of levels measured.

The attribute's levels 0..G are those above and at the groups, G..B those within them. Of spine
level l and attribute level b the noise variance is v_l s_b; a level of either axis that is not
measured has an infinite one. If all groups were everywhere, least squares would be a product. As
they are not, it falls into two problems that are independent of each other:

1. *The rest* within each group. From the measurements of one node, least squares in the group's own
   attribute tree gives ``x_leaf = e + g x_group``
   (`hedgerow.estimate.spine.nested.group_trees`), with Cov(e) = v_l E for one matrix E a group. So
   along the spine each cell's e is estimated like a single number, of the information 1/v_l, by
   the nodes that have the group.
2. *The vector of groups*, of which a node tells (1/v_l) (Σ_{b<G} S_bᵀS_b/s_b + diag(1/u)), S_b
   summing groups to level b and u being the variance of what a group's own tree says of it.

Whole counts are settled coarse to fine (`hedgerow.estimate.spine.nested.settle`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from hedgerow.arrays import (
    Bool,
    ByCuboid,
    Float64,
    FloatPair,
    Int32,
    Int64,
    IntPair,
    Levels,
    Numbers,
    OfCuboids,
    float64,
    run_starts,
    run_sums,
)
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.component import Component, check_apart
from hedgerow.estimate.spine.model import Model, Upward
from hedgerow.estimate.spine.nested.group_trees import GroupTrees
from hedgerow.estimate.spine.nested.settle import settle_below, settle_top
from hedgerow.estimate.spine.support import Bounds, Part, Support

MOST_APART = 1 << 27
"""How many times the variance of one attribute level may be another's: what a tree of attributes
tells of its groups is inverted twice, which takes twice the digits."""

SPINES_APART = 1 << 50
"""How many times the variance of one spine level may be another's, where there are groups: what two
levels tell of them is of one shape, so that little is lost, but from some 2^54 on all of it."""


@dataclass(frozen=True, eq=False)
class Nested(Model):
    """Least squares and whole counts of a spine beside one attribute axis, by product variances.

    A measured cuboid is a spine level and an attribute level; the components are the rests, of the
    detail layout, and the vectors of groups.

    Attributes:
        trees: the attribute's levels from the groups on.
        spine_variances: float64 (spine levels): v, infinite where a level is not measured.
        attribute_variances: float64 (attribute levels): s, infinite where a level is not measured.
    """

    trees: GroupTrees
    spine_variances: Float64
    attribute_variances: Float64

    @classmethod
    def of(  # noqa: PLR0913, PLR0917 - what a census is
        cls,
        spine: AxisShape,
        attribute: AxisShape,
        group_level: int,
        has: IntPair | None,
        bounds: Sequence[Bounds],
        zero_leaves: Bool,
        spine_variances: Numbers,
        attribute_variances: Numbers,
        *,
        total_known: bool,
        noise: OfCuboids | None = None,
    ) -> "Nested":
        """Return the model of a census whose cuboids are measured with product variances.

        Args:
            spine: the shape of the axis that is cut into jobs.
            attribute: the shape of the attribute axis.
            group_level: G, the attribute level whose nodes are the groups.
            has: which nodes of the deepest spine level may have which groups; None for all.
            bounds: of groups' counts at any spine levels.
            zero_leaves: bool (attribute leaves): those that are 0 by rule, everywhere.
            spine_variances: v of each spine level, infinite where it is not measured.
            attribute_variances: s of each attribute level, infinite where it is not measured.
            total_known: whether the number of records at the root is public; it is not measured.
            noise: the true noise variances of measured cuboids, records², where they differ from
                the products, which remain the weights.

        Raises:
            EstimateError: variances that are none, or public facts that contradict each other.
        """
        v = _checked(spine_variances, spine)
        s = _checked(attribute_variances, attribute)
        if group_level:
            check_apart(s, MOST_APART)
            check_apart(v, SPINES_APART)
        trees = GroupTrees.of(attribute, group_level, zero_leaves, s[group_level:])
        tree = attribute.down_to(group_level)
        support = Support.of(spine, tree, trees.widths(trees.depth), has, bounds)
        support.check_held(max(support.pairs, len(v) * support.groups**2))
        measured: dict[Levels, float] = {
            key: float((noise or {}).get(key, v[key[0]] * s[key[1]]))
            for key in product(range(len(v)), range(len(s)))
            if np.isfinite(v[key[0]] * s[key[1]]) and not (total_known and key == (0, 0))
        }
        information = _information(support, trees, v, s[:group_level], is_known=total_known)
        every = np.ones(support.groups, dtype=np.int64)
        components = (
            Component.of(support, support.widths, [np.diag(every / each) for each in v]),
            Component.of(support, every, information, 1.0 if total_known else None),
        )
        return cls(support, measured, total_known, components, trees, v, s)

    @property
    def group_level(self) -> int:
        """The attribute level of the groups, G."""
        return self.support.tree.depth

    @property
    def leaves(self) -> Int32:
        """Of each detail cell the attribute leaf: int32 (detail cells of all groups)."""
        return self.trees.leaf

    @property
    def ratios(self) -> Float64:
        """Of each measured cuboid its noise variance over the product that is its weight."""
        v = self.spine_variances
        s = self.attribute_variances
        return np.array([noise / (v[key[0]] * s[key[1]]) for key, noise in self.measured.items()])

    def _made_cells(self, key: Levels) -> Cells:
        """Return the cells of a spine level and an attribute level."""
        level, b = key
        if b < self.group_level:
            width = np.ones(self.support.tree.sizes[b], dtype=np.int64)
            place = np.zeros(len(self.trees.leaf), dtype=np.int32)
            return Cells(self.support, level, b, width, place)
        deeper = b - self.group_level
        place = self.trees.places(deeper)
        return Cells(self.support, level, self.group_level, self.trees.widths(deeper), place)

    def _weighted(self, level: int, nodes: range, noisy: ByCuboid) -> FloatPair:
        """Return h of the rests and of the rows of some nodes."""
        group = self.support.group[level][self.support.rows(level, nodes)]
        deepest = self.group_level + self.trees.depth
        tables = [self._table(level, b, nodes, noisy) for b in range(deepest)]
        leaves = self._table(level, deepest, nodes, noisy)
        if leaves is None:  # one cell, the public total, on which the root is conditioned
            leaves = np.zeros(1)
        whole, rest = self.trees.split(group, tables[self.group_level :], leaves)
        h = whole / self.trees.combined(0)[self.trees.start[0][group]]
        for b, s in enumerate(self.attribute_variances[: self.group_level]):
            if (table := tables[b]) is not None:
                h += table[self.cells((level, b)).row_starts(nodes)] / s
        h /= self.spine_variances[level]
        rest /= self.spine_variances[level]
        return rest, h

    def _table(self, level: int, b: int, nodes: range, noisy: ByCuboid) -> Float64 | None:
        """Return the noisy table of a cuboid, None where it is not measured."""
        is_measured = (level, b) in self.measured
        return self.table((level, b), nodes, noisy) if is_measured else None

    def _apart(self, group: Int32, detail: Float64) -> FloatPair:
        """Return the rests and the numbers of rows."""
        whole = run_sums(detail, run_starts(self.support.widths[group]))
        return self.trees.with_gains(group, -whole, detail.copy()), whole

    def _together(self, group: Int32, coordinates: Sequence[Float64]) -> Float64:
        """Return the cells of rows."""
        rest, whole = coordinates
        return self.trees.with_gains(group, whole, rest)

    def _weights(self, labels: Int32) -> tuple[Int64, Sequence[Float64]]:
        """Return what sums of cells weigh of the rests, and of groups."""
        keys, *weights = self.trees.weights(labels)
        return keys, weights

    def settler(self, key: Levels) -> str:
        """Return which way makes the counts of a cuboid whole; see `settle_below`."""
        if key[1] <= self.group_level:
            return "fit"
        return "blocks" if key[0] > 0 else "families"

    def _settled_root(self, upward: Upward, total: int | None) -> Int64:
        """Return the whole counts of the spine's root."""
        return settle_top(self.components[1], self.trees, [z[0] for z in upward.said], total)

    def _settled(self, part: Part, level: int, upward: Upward, above: Int64) -> Int64:
        """Return the whole counts of a level of a part."""
        said = [z[level] for z in upward.said]
        return settle_below(self.components, self.trees, (part, level), said, above)


def _checked(variances: Numbers, axis: AxisShape) -> Float64:
    """Return an axis's variances: float64 (levels).

    Raises:
        EstimateError: one that is not above 0, none for a level, or an infinite one of the last.
    """
    own = float64(variances)
    if own.shape != (axis.depth + 1,) or not (own > 0).all() or not np.isfinite(own[-1]):
        raise EstimateError(
            f"an axis needs a variance above 0 for each of its {axis.depth + 1} levels, a finite "
            "one for the last"
        )
    return own


def _information(
    support: Support, trees: GroupTrees, v: Float64, coarse: Float64, *, is_known: bool
) -> list[Float64]:
    """Return what a node of each spine level tells of its groups: float64 (groups, groups)."""
    information = []
    own = np.zeros(support.groups)
    has_leaves = support.widths > 0
    own[has_leaves] = 1 / trees.combined(0)
    for level, variance in enumerate(v):
        here = np.diag(own)
        for b, s in enumerate(coarse):
            if np.isfinite(s) and not (is_known and (level, b) == (0, 0)):
                here += support.together(b) / s
        information.append(here / variance)
    return information
