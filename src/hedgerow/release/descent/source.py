"""Where noisy counts come from: drawn on a confidential table, or read back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from hedgerow.arrays import Codes, Float64, Int32, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.workload.sparse import Survivors
from hedgerow.kernels import kernel
from hedgerow.limits import LARGEST_COUNT
from hedgerow.noise.bits import Bits, Stream
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes, Roots, Slices, true_nodes, unknown_root
from hedgerow.release.descent.steps import Refinement, add_true_counts
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cell_numbers

Noisy = Int64 | Float64
Variance = float | Float64


class Reader(Protocol):
    """The noisy counts of one job at one cuboid."""

    def __call__(
        self, start: int, family_start: Int64, parents: Slices, step: Refinement
    ) -> tuple[Noisy, Variance]:
        """Return the noisy counts of the children of ``parents``, and their variances.

        Args:
            start: how many cells the job measured at this cuboid before these.
            family_start: int64 (parents + 1).
            parents: nodes of the depth above.
            step: the refinement.
        """


class Source(Protocol):
    """Where the noisy counts of a pass come from."""

    @property
    def counts(self) -> Counts | None:
        """The confidential table; None where noisy counts are read back."""

    def root(self) -> Roots:
        """Return the root, of which nothing is known yet."""

    def public(self, levels: Levels) -> Roots:
        """Return all non-zero nodes of a public cuboid."""

    def total(self) -> tuple[Noisy, Variance]:
        """Return the noisy total, one cell, and its variance: infinite where it is unmeasured."""

    def reader(self, job: tuple[int, ...], levels: Levels) -> Reader | None:
        """Return the noisy counts of a job at a cuboid; None where the cuboid is unmeasured.

        Args:
            job: the codes of its root, one an axis; none for what is in no subtree job.
            levels: the cuboid.
        """


@dataclass(frozen=True, eq=False)
class Drawn:
    """True counts of a confidential table plus noise, each cell its own.

    A job's noise at a cuboid is the stream of the place ``(*levels, *job)``. A plan has one number
    of axes, so the levels are the first of these numbers, and no two pairs have one place.
    Count and noise are added modulo 2⁶⁴ and then clipped to ±`LARGEST_COUNT`: post-processing.

    Attributes:
        counts: the confidential table, over the plan's tree.
        plan: which cuboid is measured with which noise.
        bits: where random words come from: a release key, or a seed in simulation.
    """

    counts: Counts
    plan: Plan
    bits: Bits

    def root(self) -> Roots:
        """Return the root, of which nothing is known yet."""
        return unknown_root(self.counts)

    def public(self, levels: Levels) -> Roots:
        """Return all non-zero nodes of a public cuboid."""
        return true_nodes(self.counts, self.plan.tree.chain.index(levels))

    def total(self) -> tuple[Noisy, Variance]:
        """Return the noisy total, one cell, and its variance: infinite where it is unmeasured."""
        levels, noisy = self.plan.tree.cuboid(0), np.zeros(1, dtype=np.int64)
        what = self.plan.by_levels[levels]
        if not isinstance(what, Measured):
            return noisy, np.inf
        what.mechanism.draw(self.bits.stream(*levels), 0, noisy)
        noisy += self.counts.total
        clip(noisy)
        return noisy, what.mechanism.noise_variance

    def reader(self, job: tuple[int, ...], levels: Levels) -> Reader | None:
        """Return noise from the place's stream, to be added to the true counts."""
        what = self.plan.by_levels[levels]
        if not isinstance(what, Measured):
            return None
        mechanism, stream = what.mechanism, self.bits.stream(*levels, *job)
        return _Drawing(self.counts, mechanism, stream, mechanism.noise_variance)

    def table(self, levels: Levels) -> Int64:
        """Return the noisy counts of a whole cuboid: int64 (cells), row by row."""
        noisy = self.noise(levels, self.plan.tree.cells(levels))
        _add_leaves(noisy, *_in_rows(self.counts, levels))
        clip(noisy)
        return noisy

    def cells(self, levels: Levels, survivors: Survivors) -> Int64:
        """Return the noisy counts of a cuboid's cells below released counts: int64 (cells).

        Args:
            levels: the cuboid.
            survivors: which cells.
        """
        noisy = self.noise(levels, survivors.cells)
        for codes, values in _nodes_of_leaves(self.counts, levels):
            place = survivors.places(codes)
            there = place >= 0
            np.add.at(noisy, place[there], values[there])
        clip(noisy)
        return noisy

    def exact(self, levels: Levels) -> Int64:
        """Return the true counts of a public cuboid: int64 (cells), row by row.

        Raises:
            ValueError: the cuboid is confidential.
        """
        if not self.plan.is_public(levels):
            raise ValueError("true counts of a cuboid that is not public")
        found = np.zeros(self.plan.tree.cells(levels), dtype=np.int64)
        _add_leaves(found, *_in_rows(self.counts, levels))
        return found

    def noise(self, levels: Levels, cells: int, job: tuple[int, ...] = ()) -> Int64:
        """Return the noise of a job at a measured cuboid: int64 (cells), to be added to counts."""
        what = self.plan.by_levels[levels]
        if not isinstance(what, Measured):
            raise TypeError("noise of a cuboid that is not measured")
        noise = np.empty(cells, dtype=np.int64)
        what.mechanism.draw(self.bits.stream(*levels, *job), 0, noise)
        return noise


@dataclass(frozen=True, slots=True, repr=False)
class SpineLeaves:
    """The non-zero leaves below a stretch of the spine. Confidential.

    Attributes:
        nodes: int32 (leaves): of the spine's finest level.
        cells: int32 (leaves): which detail cell, -1 for none.
        values: int64 (leaves), records.
    """

    nodes: Int32
    cells: Int32
    values: Int64


def leaves_between(counts: Counts, detail_of: Int32, first: int, stop: int) -> SpineLeaves:
    """Return the leaves below nodes first..stop of the finest level of the spine, the first axis.

    Args:
        counts: the confidential table, in an order that takes the spine first.
        detail_of: int32 (attribute leaves, row by row): the detail cell of each, -1 for none.
        first: the first of the nodes.
        stop: the node behind the last one.
    """
    ends = np.array([first, stop], dtype=np.int32)  # another type would be a copy of all the codes
    here = slice(*np.searchsorted(counts.codes[0], ends).tolist())
    sizes = [axis.size(axis.depth) for axis in counts.tree.axes[1:]]
    number = np.zeros(here.stop - here.start, dtype=np.int64)
    for code, size in zip(counts.codes[1:], sizes, strict=True):
        number = number * size + code[here]
    return SpineLeaves(counts.codes[0][here], detail_of[number], counts.values[here])


LEAVES_AT_ONCE = 1 << 22


def _nodes_of_leaves(counts: Counts, levels: Levels) -> Iterator[tuple[Codes, Int64]]:
    """Yield the cells that the non-zero leaves belong to, and the leaves' counts; confidential."""
    ancestors = [a.ancestors(k) for a, k in zip(counts.tree.axes, levels, strict=True)]
    for begin in range(0, len(counts.values), LEAVES_AT_ONCE):
        few = slice(begin, begin + LEAVES_AT_ONCE)
        codes = tuple(up[code[few]] for up, code in zip(ancestors, counts.codes, strict=True))
        yield codes, counts.values[few]


def _in_rows(counts: Counts, levels: Levels) -> tuple[tuple[Int64, ...], Codes, Int64]:
    """Return what each leaf of an axis adds to the number of its cell, row by row, and the leaves.

    Confidential. Returns for each axis int64 (its leaves) and int32 (leaves): its leaf numbers; and
    int64 (leaves): the counts.
    """
    steps, below = [], 1
    for axis, level in zip(reversed(counts.tree.axes), reversed(levels), strict=True):
        steps.append(axis.ancestors(level).astype(np.int64) * below)
        below *= axis.size(level)
    return tuple(reversed(steps)), counts.codes, counts.values


@kernel
def _add_leaves(table: Int64, steps: tuple[Int64, ...], codes: Codes, values: Int64) -> None:
    """Add each leaf's count to its cell, modulo 2⁶⁴."""
    for leaf in range(len(values)):
        cell = 0
        for a in range(len(codes)):
            cell += steps[a][codes[a][leaf]]
        table[cell] += values[leaf]


@dataclass(frozen=True, slots=True)
class _Drawing:
    counts: Counts
    mechanism: Mechanism
    stream: Stream
    variance: float

    def __call__(
        self, start: int, family_start: Int64, parents: Slices, step: Refinement
    ) -> tuple[Noisy, Variance]:
        noisy = np.empty(int(family_start[-1]), dtype=np.int64)
        self.mechanism.draw(self.stream, start, noisy)
        add_true_counts(noisy, family_start, parents, step, self.counts)
        clip(noisy)
        return noisy, self.variance


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
        noisy: for each measured cuboid int64 or float64 (cells): the noisy counts in tree order.
        variance: for each measured cuboid a float, or float64 (cells), records².
        nodes: for each public cuboid its non-zero nodes (codes and counts).
    """

    tree: Tree
    noisy: Mapping[Levels, Noisy]
    variance: Mapping[Levels, Variance]
    nodes: Mapping[Levels, Nodes]

    counts = None

    def root(self) -> Roots:
        """Return the root, of which nothing is known yet."""
        codes = tuple(np.zeros(1, dtype=np.int32) for _ in self.tree.axes)
        return Roots(Nodes.unknown(codes), Slices.without_table(codes))

    def public(self, levels: Levels) -> Roots:
        """Return all non-zero nodes of a public cuboid."""
        nodes = self.nodes[levels]
        return Roots(nodes, Slices.without_table(nodes.codes))

    def total(self) -> tuple[Noisy, Variance]:
        """Return the noisy total, one cell, and its variance: infinite where it is unmeasured."""
        root = self.tree.cuboid(0)
        if root not in self.noisy:
            return np.zeros(1, dtype=np.int64), np.inf
        if len(self.noisy[root]) != 1:
            raise uneven(self.tree, root)
        return self.noisy[root], self.variance[root]

    def reader(self, _job: tuple[int, ...], levels: Levels) -> Reader | None:
        """Return the noisy counts of the cuboid."""
        if levels not in self.noisy:
            return None
        return _Reading(self.tree, levels, self.noisy[levels], self.variance[levels])

    def table(self, levels: Levels) -> Int64:
        """Return the noisy counts of a whole cuboid: int64 (cells), row by row.

        Raises:
            ReleaseError: they are more or fewer.
        """
        return self._listed(levels, self.tree.cells(levels))

    def cells(self, levels: Levels, survivors: Survivors) -> Int64:
        """Return the noisy counts of a cuboid's cells below released counts: int64 (cells).

        Raises:
            ReleaseError: they are more or fewer.
        """
        return self._listed(levels, survivors.cells)

    def stretch(self, levels: Levels, first: int, cells: int) -> Int64:
        """Return some noisy counts of a cuboid that follow each other: int64 (cells).

        Raises:
            ReleaseError: there are fewer.
        """
        noisy = self.noisy[levels]
        if len(noisy) < first + cells:
            raise uneven(self.tree, levels)
        return cast("Int64", noisy[first : first + cells])

    def exact(self, levels: Levels) -> Int64:
        """Return the counts of a public cuboid: int64 (cells), row by row."""
        found = np.zeros(self.tree.cells(levels), dtype=np.int64)
        nodes = self.nodes[levels]
        found[cell_numbers(self.tree, levels, nodes.codes)] = nodes.counts
        return found

    def _listed(self, levels: Levels, cells: int) -> Int64:
        noisy = self.noisy[levels]
        if len(noisy) != cells:
            raise uneven(self.tree, levels)
        return cast("Int64", noisy)


@dataclass(frozen=True, slots=True)
class _Reading:
    tree: Tree
    levels: Levels
    noisy: Noisy
    variance: Variance

    def __call__(
        self, start: int, family_start: Int64, parents: Slices, step: Refinement
    ) -> tuple[Noisy, Variance]:
        del parents, step  # the table is not needed
        stop = start + int(family_start[-1])
        if stop > len(self.noisy):
            raise uneven(self.tree, self.levels)
        if isinstance(self.variance, np.ndarray):
            return self.noisy[start:stop], self.variance[start:stop]
        return self.noisy[start:stop], self.variance


def uneven(tree: Tree, levels: Levels) -> ReleaseError:
    """Return the error of stored noisy counts that do not fit the tree."""
    return ReleaseError(
        f"the noisy counts of {tree.name_of(levels)} are more or fewer than the nodes that were "
        "measured"
    )
