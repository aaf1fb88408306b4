"""Estimates of sums off a chain of which survivors alone were measured.

Which nodes of a depth are measured depends on noise of coarser depths alone, so the noisy counts of
a depth, taken all together, are unbiased whatever survived. What is missing lies below nodes
released as 0. With the measured depths 0 … r down to the first that refines the cuboid, the
estimate of the sum C is

    Σ_t Σ_b (w_t(b) - w_t-1(parent of b)) y_b  +  Σ_t<r Σ_b released as 0 (m_t - w_t) κ σ_t,

b over the measured nodes of a depth with their noisy counts y_b: w_t(b) = w_t where b has cells in
C, else 0; w_r = 1, and the other w_t have the smallest variance. Whatever they are, the noise has
mean 0 and the variance Σ σ_t² (w_t(b) - w_t-1(parent))², and the first sum lacks, in expectation,
what nodes released as 0 have in C but for a part w_t of all that they have. The second sum is a
model of that: such a node has κ σ_t records on average, the same κ at all depths, measured by what
the depths lose from one to the next; and its records are spread as those released, axis by axis
(m_t). ``docs/proofs.md``, "Sums off a chain below survivors".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np

from hedgerow.arrays import Codes, Float64, Int64, Levels
from hedgerow.estimate.cube.shape import meet
from hedgerow.plan.cost import first_refining
from hedgerow.release.answers.measured_nodes import measured_nodes
from hedgerow.release.descent.chain import Outline
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory.stored import Content
from hedgerow.tables.tree import Tree, cell_numbers

ALLOWANCE = 0.5
"""The part of what is modelled that the model may be wrong by."""


@dataclass(frozen=True, slots=True)
class SurvivorSums:
    """Estimates of sums, float64 (sums) each.

    Attributes:
        estimate: records.
        variance: of the noise in them, records².
        allowance: by how much what was not measured may differ from what is put in its place,
            records.
    """

    estimate: Float64
    variance: Float64
    allowance: Float64


@dataclass(frozen=True, slots=True)
class _Depth:
    """The measured nodes of a depth.

    Attributes:
        levels: the cuboid.
        nodes: with their released counts.
        noisy: float64 (nodes), records.
        variance: of the noise of each, records²; 0 where counts are public.
    """

    levels: Levels
    nodes: Nodes
    noisy: Float64
    variance: float

    @property
    def columns(self) -> Float64:
        """Noisy counts, ones, and where 0 was released: float64 (3, nodes)."""
        return np.stack([self.noisy, np.ones(len(self.nodes)), self.nodes.counts == 0])

    def sums(self, tree: Tree, group: Levels, cells: Int64) -> Float64:
        """Return the sums of the columns over each of some cells of a coarser cuboid, by number."""
        numbers, place = np.unique(cells, return_inverse=True)
        of_node = cell_numbers(tree, group, _above(tree, group, self.levels, self.nodes.codes))
        at = np.searchsorted(numbers, of_node)
        there = np.append(numbers, -1)[at] == of_node
        sums = np.zeros((3, len(numbers)))
        for row, each in zip(sums, self.columns, strict=True):
            row[:] = np.bincount(at[there], each[there], len(numbers))
        return sums[:, place]

    def expected(self, tree: Tree, group: Levels, codes: Codes) -> Float64:
        """Return about how many nodes were measured in cells of a coarser cuboid."""
        many = np.full(len(codes[0]), len(self.nodes) / tree.cells(self.levels))
        for axis, level, own, code in zip(tree.axes, group, self.levels, codes, strict=True):
            if level < own:
                many *= np.diff(axis.descendant_start(level, own))[code]
        return many


def survivor_sums(content: Content, wanted: Levels, codes: Codes) -> SurvivorSums:
    """Return estimates of sums of a release along a chain, measured from survivors.

    Args:
        content: the release.
        wanted: the levels of the sums.
        codes: one int32 array (sums) an axis.
    """
    tree, depths = content.plan.tree, _depths(content)
    refined = tree.cuboid(first_refining(tree, wanted))
    last = next(t for t, each in enumerate(depths) if meet(each.levels, refined) == refined)
    filled, error = _filled(depths)
    marginals = _marginals(tree, depths[-1])
    estimate, variance, allowance = np.zeros((3, len(codes[0])))
    weight = np.ones(len(codes[0]))
    passed_on = _passed_on(tree, depths[: last + 1], wanted, codes)
    for t in range(last, -1, -1):
        here, above = _touching(tree, depths, t, wanted, codes)
        carried = weight * passed_on[t]
        estimate += weight * here[0] - carried * above[0]
        own, beside = (weight - carried) ** 2 * here[1], carried**2 * (above[1] - here[1])
        variance += depths[t].variance * (own + beside)
        if t < last:
            share = _share(tree, marginals, wanted, depths[t].levels, codes)
            lost = sqrt(depths[t].variance) * here[2]
            estimate += (share - weight) * filled * lost
            allowance += ALLOWANCE * share * (filled + 2 * error) * lost
        weight = carried
    return SurvivorSums(estimate, variance, allowance)


def _depths(content: Content) -> list[_Depth]:
    """Return the deepest public depth, and the measured ones below it."""
    outline, tree = Outline.of(content.plan), content.plan.tree
    nodes, layers = measured_nodes(content.stored, outline, content.nodes)
    public = {outline.public_depth} if outline.public_depth >= 0 else set[int]()
    known = sorted(public | outline.measured)
    at = {t: t for t in known} | {known[-1]: tree.depth}  # single children below the last
    return [
        _Depth(tree.cuboid(at[t]), nodes[at[t]], np.asarray(layers[t].noisy, np.float64),
               float(np.asarray(layers[t].variance).max(initial=0)))
        for t in known
    ]  # fmt: skip


def _filled(depths: Sequence[_Depth]) -> tuple[float, float]:
    """Return κ and its standard error: records below a node released as 0, in units of its noise.

    What a depth loses is the sum of all its noisy counts less that of the next depth: unbiased,
    since either is of all nodes that were measured. Depths count by the inverse of their variances.
    """
    weighted = weights = 0.0
    for upper, lower in pairwise(depths):
        many = float((upper.nodes.counts == 0).sum())
        if many and upper.variance:
            lost = upper.noisy.sum() - lower.noisy.sum()
            spread = upper.variance * len(upper.nodes) + lower.variance * len(lower.nodes)
            weight = many**2 * upper.variance / spread
            weighted += weight * lost / (many * sqrt(upper.variance))
            weights += weight
    return (max(weighted / weights, 0.0), 1 / sqrt(weights)) if weights else (0.0, 0.0)


def _passed_on(tree: Tree, depths: Sequence[_Depth], wanted: Levels, codes: Codes) -> list[Float64]:
    """Return for each depth t the w_t-1 / w_t of the smallest expected variance: float64 (sums).

    With n nodes of a depth in C and f beside their siblings, v the noise's variance and c w² the
    smallest variance down to the depth above, a depth adds v ((w_t - w_t-1)² n + w_t-1² (f - n)).
    """
    least = np.zeros(len(codes[0]))
    passed = [least]
    for t, depth in enumerate(depths):
        group = meet(wanted, depth.levels)
        own = depth.variance * depth.expected(tree, group, _above(tree, group, wanted, codes))
        if t:
            family = meet(wanted, depths[t - 1].levels)
            many = depth.expected(tree, family, _above(tree, family, wanted, codes))
            every = least + depth.variance * many
            ratio = np.divide(own, every, out=np.zeros(len(own)), where=every > 0)
            passed.append(ratio)
            own = own * (1 - ratio)
        least = own
    return passed


def _touching(
    tree: Tree, depths: Sequence[_Depth], t: int, wanted: Levels, codes: Codes
) -> tuple[Float64, Float64]:
    """Return the sums over nodes with cells in each sum, and over all children of such parents."""

    def sums(levels: Levels) -> Float64:
        group = meet(wanted, levels)
        cells = cell_numbers(tree, group, _above(tree, group, wanted, codes))
        return depths[t].sums(tree, group, cells)

    here = sums(depths[t].levels)
    return here, sums(depths[t - 1].levels) if t else here


def _marginals(tree: Tree, leaves: _Depth) -> list[Float64]:
    """Return by axis the released records of its leaves, and one more each: float64 (leaves)."""
    records = [np.ones(axis.size(axis.depth)) for axis in tree.axes]
    for of_leaf, code in zip(records, leaves.nodes.codes, strict=True):
        np.add.at(of_leaf, code, leaves.nodes.counts)
    return records


def _share(
    tree: Tree, marginals: Sequence[Float64], wanted: Levels, levels: Levels, codes: Codes
) -> Float64:
    """Return m, the part of a node's records that lies in a sum: float64 (sums)."""
    share = np.ones(len(codes[0]))
    for axis, records, level, above, code in zip(
        tree.axes, marginals, wanted, levels, codes, strict=True
    ):
        if above < level:
            own, whole = (np.bincount(axis.ancestors(k), records) for k in (level, above))
            share *= own[code] / whole[axis.nodes_above(above, level, code)]
    return share


def _above(tree: Tree, group: Levels, levels: Levels, codes: Codes) -> Codes:
    """Return the nodes of coarser levels that nodes belong to."""
    axes = zip(tree.axes, group, levels, codes, strict=True)
    return tuple(axis.nodes_above(level, given, code) for axis, level, given, code in axes)
