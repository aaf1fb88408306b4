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
(m_t). ``docs/proofs/survivors.md``, "Sums off a chain below survivors".
"""

from collections.abc import Sequence
from itertools import pairwise
from math import sqrt

import numpy as np

from hedgerow.arrays import Codes, Float64, FloatTriple, Levels, among
from hedgerow.declared import frozen
from hedgerow.estimate.cube.shape import meet
from hedgerow.plan.chain import chain_of
from hedgerow.plan.cost import first_refining
from hedgerow.release.answers.measured_nodes import measured_nodes
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.steps import descendants
from hedgerow.release.directory.stored import Content
from hedgerow.tables.tree import Tree, cell_numbers, cells_above

ALLOWANCE = 0.5
"""The part of what is modelled that the model may be wrong by."""


@frozen
class _Depth:
    """The measured nodes of a depth.

    Attributes:
        tree: the tree.
        levels: the cuboid.
        nodes: with their released counts.
        noisy: float64 (nodes), records.
        variance: of the noise of each, records²; 0 where counts are public.
    """

    tree: Tree
    levels: Levels
    nodes: Nodes
    noisy: Float64
    variance: float

    def sums(self, above: Levels, wanted: Levels, codes: Codes) -> Float64:
        """Return the sums of noisy counts, of ones, and of ones where 0 was released.

        Args:
            above: the cuboid of some depth above, or this one.
            wanted: the levels of sums.
            codes: one int32 array (sums) an axis.

        Returns:
            float64 (3, sums): over the nodes below cells of that depth that have cells in a sum.
        """
        tree = self.tree
        group = meet(wanted, above)
        cells = cell_numbers(tree, group, cells_above(tree, group, wanted, codes))
        numbers, place = np.unique(cells, return_inverse=True)
        own = cells_above(tree, group, self.levels, self.nodes.codes)
        of_node = cell_numbers(tree, group, own)
        at, there = among(numbers, of_node)
        columns = self.noisy, np.ones(len(self.nodes)), self.nodes.counts == 0
        many = len(numbers)
        return np.stack([np.bincount(at[there], x[there], many)[place] for x in columns])

    def expected(self, above: Levels, wanted: Levels, codes: Codes) -> Float64:
        """Return about how many nodes `sums` counts: float64 (sums)."""
        tree = self.tree
        group = meet(wanted, above)
        coarse = cells_above(tree, group, wanted, codes)
        share = np.full(len(codes[0]), len(self.nodes) / tree.cells(self.levels))
        return share * descendants(tree, group, self.levels, coarse)


def survivor_sums(content: Content, wanted: Levels, codes: Codes) -> FloatTriple:
    """Return estimates of sums of a release along a chain, measured from survivors.

    Args:
        content: the release.
        wanted: the levels of the sums.
        codes: one int32 array (sums) an axis.

    Returns:
        float64 (sums) each: the estimates, records; the variance of the noise in them, records²;
        and by how much what was not measured may differ from what is put in its place, records.
    """
    tree = content.plan.tree
    depths = _depths(content)
    refined = tree.cuboid(first_refining(tree, wanted))
    last = next(t for t, each in enumerate(depths) if meet(each.levels, refined) == refined)
    filled, error = _filled(depths)
    marginals = _marginals(tree, depths[-1])
    estimate, variance, allowance = np.zeros((3, len(codes[0])))
    weight = np.ones(len(codes[0]))
    passed_on = _passed_on(depths[: last + 1], wanted, codes)
    for t in range(last, -1, -1):
        here = depths[t].sums(depths[t].levels, wanted, codes)
        above = depths[t].sums(depths[t - 1].levels, wanted, codes) if t else here
        carried = weight * passed_on[t]
        estimate += weight * here[0] - carried * above[0]
        own = (weight - carried) ** 2 * here[1]
        above_it = carried**2 * (above[1] - here[1])
        variance += depths[t].variance * (own + above_it)
        if t < last:
            share = _share(tree, marginals, wanted, depths[t].levels, codes)
            lost = sqrt(depths[t].variance) * here[2]
            estimate += (share - weight) * filled * lost
            allowance += ALLOWANCE * share * (filled + 2 * error) * lost
        weight = carried
    return estimate, variance, allowance


def _depths(content: Content) -> list[_Depth]:
    """Return the deepest public depth, and the measured ones below it."""
    outline = chain_of(content.plan).outline
    tree = content.plan.tree
    nodes, layers = measured_nodes(content.stored, outline)
    public = {outline.public_depth} if outline.public_depth >= 0 else set()
    depths = sorted(public | outline.measured)
    at = {t: t for t in depths} | {depths[-1]: tree.depth}  # single children below the last
    return [
        _Depth(tree, tree.cuboid(at[t]), nodes[at[t]], np.asarray(layers[t].noisy, np.float64),
               float(np.asarray(layers[t].variance).max(initial=0)))
        for t in depths
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


def _passed_on(depths: Sequence[_Depth], wanted: Levels, codes: Codes) -> list[Float64]:
    """Return for each depth t the w_t-1 / w_t of the smallest expected variance: float64 (sums).

    With n nodes of a depth in C and f beside their siblings, v the noise's variance and c w² the
    smallest variance down to the depth above, a depth adds v ((w_t - w_t-1)² n + w_t-1² (f - n)).
    """
    least = np.zeros(len(codes[0]))
    passed = [least]
    for t, depth in enumerate(depths):
        own = depth.variance * depth.expected(depth.levels, wanted, codes)
        if t:
            many = depth.expected(depths[t - 1].levels, wanted, codes)
            every = least + depth.variance * many
            ratio = np.divide(own, every, out=np.zeros(len(own)), where=every > 0)
            passed.append(ratio)
            own = own * (1 - ratio)
        least = own
    return passed


def _marginals(tree: Tree, leaves: _Depth) -> list[Float64]:
    """Return by axis the released records of its leaves, and one more each: float64 (leaves)."""
    records = [np.ones(axis.leaves) for axis in tree.axes]
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
