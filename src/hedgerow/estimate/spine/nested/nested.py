"""A census as a cube: a spine beside one attribute axis, every combination of levels measured.

The attribute's levels 0..G are those above and at the groups, G..B those within them. Of spine
level l and attribute level b the noise variance is v_l s_b; a level of either axis that is not
measured has an infinite one. If all groups were everywhere, least squares would be a product. As
they are not, it falls into two problems that are independent of each other:

1. *The rest* within each group. From the measurements of one node, least squares in the group's own
   attribute tree gives ``x_leaf = e + g x_group``
   (`hedgerow.estimate.spine.nested.group_trees`), with Cov(e) = v_l E for one matrix E a group. So
   along the spine e is estimated like a single number, by the nodes that have the group
   (`RowSquares`).
2. *The vector of groups*, of which a node tells (1/v_l) (Σ_{b<G} S_bᵀS_b/s_b + diag(1/u)), S_b
   summing groups to level b and u being the variance of what a group's own tree says of it
   (`Coupled`).

Whole counts are settled coarse to fine (`hedgerow.estimate.spine.nested.settle`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64, Levels
from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.cells import Cells
from hedgerow.estimate.spine.coupled import Coupled, check_apart
from hedgerow.estimate.spine.forms import Forms
from hedgerow.estimate.spine.model import Model
from hedgerow.estimate.spine.nested.group_trees import GroupTrees
from hedgerow.estimate.spine.nested.rests import Rests, add_gains
from hedgerow.estimate.spine.nested.settle import Descent
from hedgerow.estimate.spine.support import Bounds, Part, Support

EQUAL = 1e-6
"""How far ratios of variances may be apart, relative, that count as one."""


@dataclass(frozen=True, slots=True, eq=False)
class NestedUpward:
    """What the subtree of every row of a part says.

    Attributes:
        whole: for each level float64 (rows): of the row's count, z.
        rest: for each level float64 (detail layout): of its cells, e; records.
        told: float64: of the roots, row by row: Σ z, then Σ e of each cell, over the children.
    """

    whole: Mapping[int, Float64]
    rest: Mapping[int, Float64]
    told: Float64


MOST_APART = 1 << 27
"""How many times the variance of one attribute level may be another's: what a tree of attributes
tells of its groups is inverted twice, which takes twice the digits."""


@dataclass(frozen=True, eq=False)
class Nested(Model):
    """Least squares and whole counts of a spine beside one attribute axis, by product variances.

    A measured cuboid is a spine level and an attribute level.

    Attributes:
        trees: the attribute's levels from the groups on.
        spine_variances: float64 (spine levels): v, infinite where a level is not measured.
        coarse_variances: float64 (G): s of the attribute levels above the groups.
        coupled: the vectors of groups along the spine.
        rests: the rest of each row along the spine.
    """

    trees: GroupTrees
    spine_variances: Float64
    coarse_variances: Float64
    coupled: Coupled
    rests: Rests

    @classmethod
    def of(  # noqa: PLR0913, PLR0917 - what a census is
        cls,
        spine: AxisShape,
        attribute: AxisShape,
        group_level: int,
        has: tuple[Int64, Int64] | None,
        bounds: Sequence[Bounds],
        zero_leaves: NDArray[np.bool_],
        spine_variances: Sequence[float] | Float64,
        attribute_variances: Sequence[float] | Float64,
        *,
        total_known: bool,
        noise: Mapping[Levels, float] | None = None,
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
        v, s = _checked(spine_variances, spine), _checked(attribute_variances, attribute)
        if group_level:
            check_apart(s, MOST_APART)
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
        weights = np.ones(support.groups) if total_known else None
        coupled = Coupled.of(support, information, known_total=weights)
        rests = Rests.of(support, v)
        return cls(support, measured, total_known, trees, v, s[:group_level], coupled, rests)

    @property
    def group_level(self) -> int:
        """The attribute level of the groups, G."""
        return self.support.tree.depth

    @property
    def leaves(self) -> Int32:
        """Of each detail cell the attribute leaf: int32 (detail cells of all groups)."""
        return self.trees.leaf

    @cached_property
    def ratios(self) -> Float64:
        """Of each measured cuboid its noise variance over the product that is its weight."""
        v, s = self.spine_variances, [*self.coarse_variances, *self.trees.own]
        return np.array([noise / (v[key[0]] * s[key[1]]) for key, noise in self.measured.items()])

    @property
    def excess(self) -> float:
        """The largest ratio of a true noise variance to the product that is its weight."""
        return float(self.ratios.max())

    @property
    def is_exact(self) -> bool:
        """Whether these ratios are all one, so that variances are exact and no bounds."""
        return float(self.ratios.min()) >= self.excess * (1 - EQUAL)

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

    def up(
        self, part: Part, noisy: Mapping[Levels, Float64], below: Float64 | None = None
    ) -> NestedUpward:
        """Return what the noisy tables of a part say; see `Model.up`."""
        h, own = dict[int, Float64](), dict[int, Float64]()
        for level in part.levels:
            if np.isfinite(self.spine_variances[level]):
                h[level], own[level] = self._of_nodes(part, level, noisy)
        whole_below, rest_below = None, below
        if below is not None:
            cell = self.support.part_cells(part, part.last)
            at = cell[:-1] + np.arange(len(cell) - 1)
            if below.shape != (expected := int(cell[-1]) + len(at),):
                raise EstimateError(
                    f"what parts below say must be {expected} numbers here, got {below.shape}"
                )
            whole_below, rest_below = below[at, None], np.delete(below, at)
        whole, rest = self.coupled.up(part, h, whole_below), self.rests.up(part, own, rest_below)
        said = {level: z[:, 0] for level, z in whole.items()}
        if part.is_top:
            return NestedUpward(said, rest, np.zeros(0))
        at = self.support.part_cells(part, part.root)[:-1]
        told = np.insert(self.rests.told(part, rest), at, self.coupled.told(part, whole)[:, 0])
        return NestedUpward(said, rest, told)

    def estimates(
        self,
        part: Part,
        upward: NestedUpward,
        above: Float64 | None,
        total: float | None = None,
    ) -> dict[int, Float64]:
        """Return the estimates of a part; see `Model.estimates`."""
        self.check_total(part, total)
        z, given = {level: each[:, None] for level, each in upward.whole.items()}, None
        if part.is_top:
            given, root = None if total is None else np.array([float(total)]), upward.rest[0].copy()
        elif above is None:
            raise EstimateError("a part below the top needs the estimates of its roots")
        else:
            root = above.copy()
            given = np.add.reduceat(above, self.support.part_cells(part, part.root)[:-1])[:, None]
            self._add_gains(part, part.root, -given[:, 0], root)
        found, x = self.rests.estimates(part, upward.rest, root), self.coupled.down(part, z, given)
        for level in part.levels:
            self._add_gains(part, level, x[level][:, 0], found[level])
        return found

    def settle(
        self,
        part: Part,
        upward: NestedUpward,
        above: Int64 | None,
        total: int | None = None,
    ) -> dict[int, Int64]:
        """Return whole counts of a part; see `Model.settle`."""
        self.check_total(part, total)
        squares = self.coupled, self.rests.squares, self.trees
        return Descent(*squares, part, upward.whole, upward.rest).counts(above, total)

    def variances(self, labels: Int32) -> Forms:
        """Return the variances of the estimates of sums of detail cells; see `Model.variances`."""
        self.check_labels(labels)
        keys, rests, gains = self.trees.weights(labels)
        components = (self.rests.squares, rests), (self.coupled.squares, gains)
        return Forms.of(self.support, keys, components, self.excess)

    def _add_gains(self, part: Part, level: int, x: Float64, table: Float64) -> None:
        """Add to each cell of a table its gain times the number of its row, in place."""
        group = self.support.group[level][self.support.part_rows(part, level)]
        add_gains(group, (self.support.offset, self.trees.gain), x, table)

    def _of_nodes(
        self, part: Part, level: int, noisy: Mapping[Levels, Float64]
    ) -> tuple[Float64, Float64]:
        """Return h of the rows of a level (rows, 1), and their rests, from their own tables."""
        here, nodes = self.support, self.support.nodes(part, level)
        group = here.group[level][here.rows(level, nodes)]
        deepest = self.group_level + self.trees.depth
        tables = [self._table(level, b, nodes, noisy) for b in range(deepest)]
        leaves = self._table(level, deepest, nodes, noisy)
        if leaves is None:  # one cell, the public total, on which the root is conditioned
            leaves = np.zeros(1)
        whole, rest = self.trees.split(group, tables[self.group_level :], leaves)
        u = self.trees.combined[0][self.trees.start[0][group]]
        h = whole / u
        for b, s in enumerate(self.coarse_variances):
            table = tables[b]
            if table is not None:
                h += table[self.cells((level, b)).row_starts(nodes)] / s
        h /= self.spine_variances[level]
        if not np.isfinite(h).all():
            raise EstimateError("noisy tables must be finite")
        return h[:, None], rest

    def _table(
        self, level: int, b: int, nodes: range, noisy: Mapping[Levels, Float64]
    ) -> Float64 | None:
        """Return the noisy table of a cuboid, None where it is not measured."""
        is_measured = (level, b) in self.measured
        return self.table((level, b), nodes, noisy) if is_measured else None


def _checked(variances: Sequence[float] | Float64, axis: AxisShape) -> Float64:
    """Return an axis's variances: float64 (levels).

    Raises:
        EstimateError: one that is not above 0, none for a level, or an infinite one of the last.
    """
    found = np.array(variances, dtype=np.float64)
    if found.shape != (axis.depth + 1,) or not (found > 0).all() or not np.isfinite(found[-1]):
        raise EstimateError(
            f"an axis needs a variance above 0 for each of its {axis.depth + 1} levels, a finite "
            "one for the last"
        )
    return found


def _information(
    support: Support, trees: GroupTrees, v: Float64, coarse: Float64, *, is_known: bool
) -> list[Float64]:
    """Return what a node of each spine level tells of its groups: float64 (groups, groups)."""
    found = list[Float64]()
    own = np.zeros(support.groups)
    has_leaves = support.widths > 0
    own[has_leaves] = 1 / trees.combined[0]
    for level, variance in enumerate(v):
        here = np.diag(own)
        for b, s in enumerate(coarse):
            if np.isfinite(s) and not (is_known and (level, b) == (0, 0)):
                here += support.together(b) / s
        found.append(here / variance)
    return found
