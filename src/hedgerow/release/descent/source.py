"""Where noisy counts come from: drawn on a confidential table, or read back."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels, Sizes, Tables, int64_zeros
from hedgerow.errors import ReleaseError
from hedgerow.limits import LARGEST_COUNT
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.layouts import EveryCell, Layout
from hedgerow.release.descent.nodes import NodesOf, Noisy, Roots, Slices, true_nodes
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cell_numbers

Variance = float | Float64
NO_INFORMATION = float("inf")


@dataclass(frozen=True, eq=False)
class Drawn:
    """True counts of a confidential table plus noise, each cell its own.

    A job's noise at a cuboid is the stream of the place ``(*levels, *job)``. A plan has one number
    of axes, so the levels are the first of these numbers, and no two pairs have one place.
    Count and noise are added modulo 2⁶⁴ and then clipped to ±`LARGEST_COUNT`: post-processing.

    By convention flows ask ``counts`` which rows lie below a node, no more; `SpineFlow` sorts and
    slices them, values included, for `Stretch.add`. A pass returns `Nodes`: places in the table
    stay inside.

    Attributes:
        counts: the confidential table, over the plan's tree.
        plan: which cuboid is measured with which noise.
        bits: where random words come from: a release key, or a seed in simulation.
    """

    counts: Counts
    plan: Plan
    bits: Bits

    def public(self, levels: Levels) -> Roots:
        """Return all non-zero nodes of a public cuboid of a chain.

        Raises:
            ValueError: the cuboid is confidential.
        """
        self._check_public(levels)
        return true_nodes(self.counts, self.plan.tree.chain.index(levels))

    def exact(self, levels: Levels) -> Int64:
        """Return the true counts of a public cuboid: int64 (cells), row by row.

        Raises:
            ValueError: the cuboid is confidential.
        """
        self._check_public(levels)
        layout = EveryCell(self.plan.tree, levels)
        exact = int64_zeros(layout.cells)
        layout.add(exact, self.counts)
        return exact

    def _check_public(self, levels: Levels) -> None:
        if not self.plan.is_public(levels):
            raise ValueError("true counts of a cuboid that is not public")

    def noisy(self, levels: Levels, layout: Layout, job: Sizes = (), start: int = 0) -> Int64:
        """Return true counts plus the noise of the place's stream: int64 (cells).

        Args:
            levels: a measured cuboid.
            layout: which of its cells.
            job: what tells a subtree job from others; nothing for what is in none.
            start: how many cells stand before these in the stream: of those that the job
                measures of the cuboid, or of the whole cuboid where jobs share its stream.
        """
        if levels not in self.plan.noise:
            raise TypeError("noise of a cuboid that is not measured")
        noisy = np.empty(layout.cells, dtype=np.int64)
        self.plan.noise[levels].draw(self.bits.stream(*levels, *job), start, noisy)
        layout.add(noisy, self.counts)
        clip(noisy)
        return noisy

    def variance(self, levels: Levels, layout: Layout) -> float:
        """Return the variance of each of such noisy counts; inf of an unmeasured cuboid."""
        del layout
        noise = self.plan.noise.get(levels)
        return NO_INFORMATION if noise is None else noise.noise_variance


def clip(noisy: Int64) -> None:
    """Clip noisy counts to ±`LARGEST_COUNT`, in place, before anyone sees them.

    Post-processing, so it costs nothing; a refusal after the charge would depend on the table.
    """
    np.clip(noisy, -LARGEST_COUNT, LARGEST_COUNT, out=noisy)


@dataclass(frozen=True, eq=False)
class Stored:
    """Noisy counts that were written down, to be estimated again; no table is needed.

    Attributes:
        tree: the tree.
        measured: for each measured cuboid int64 or float64 (cells): the noisy counts in tree order.
        variances: for each measured cuboid a float, or float64 (cells), records².
        nodes: for each public cuboid, or each of a release, its non-zero nodes (codes and counts).
        solved: the estimates of tables that were made of these counts, once they are asked for.
    """

    tree: Tree
    measured: Mapping[Levels, Noisy]
    variances: Mapping[Levels, Variance]
    nodes: NodesOf
    solved: Tables = field(default_factory=dict)

    counts = None

    def public(self, levels: Levels) -> Roots:
        """Return all non-zero nodes of a public cuboid."""
        nodes = self.nodes[levels]
        return Roots(nodes, Slices.without_table(nodes.codes))

    def exact(self, levels: Levels) -> Int64:
        """Return the counts of a public cuboid: int64 (cells), row by row."""
        exact = int64_zeros(self.tree.cells(levels))
        nodes = self.nodes[levels]
        exact[cell_numbers(self.tree, levels, nodes.codes)] = nodes.counts
        return exact

    def noisy(self, levels: Levels, layout: Layout, job: Sizes = (), start: int = 0) -> Noisy:
        """Return the noisy counts that stand where the layout says.

        Raises:
            ReleaseError: they are more or fewer.
        """
        del job, start
        noisy = self.measured[levels]
        stop = layout.first + layout.cells
        if len(noisy) < stop or (layout.is_all and len(noisy) > stop):
            raise uneven(self.tree, levels)
        return noisy[layout.first : stop]

    def variance(self, levels: Levels, layout: Layout) -> Variance:
        """Return the variances of such noisy counts; inf of an unmeasured cuboid."""
        every = self.variances.get(levels, NO_INFORMATION)
        if isinstance(every, np.ndarray):
            return every[layout.first : layout.first + layout.cells]
        return every


Source = Drawn | Stored
"""Where the noisy counts of a pass come from."""


def uneven(tree: Tree, levels: Levels) -> ReleaseError:
    """Return the error of stored noisy counts that do not fit the tree."""
    return ReleaseError(
        f"the noisy counts of {tree.name_of(levels)} are more or fewer than the nodes that were "
        "measured"
    )
