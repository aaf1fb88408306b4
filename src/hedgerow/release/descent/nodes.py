"""Nodes of a depth: released ones, and where their leaves lie in the confidential table.

The two are different types. `Nodes` is what a release may hold; `Slices` points into the table and
stays within the pass.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
import polars as pl

from hedgerow.arrays import (
    Array,
    Codes,
    Float64,
    Int64,
    IntPair,
    Levels,
    begins,
    float64,
    int32,
    int64_zeros,
    run_of,
    some_of,
)
from hedgerow.declared import frozen
from hedgerow.errors import ReleaseError
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cell_numbers, cells_above

NOWHERE = -1
Noisy = Int64 | Float64


@dataclass(frozen=True, slots=True, repr=False)
class Rows:
    """Nodes of a depth in tree order, and an array for each thing that is known of them.

    Attributes:
        codes: one int32 array (nodes) an axis.
    """

    codes: Codes

    def __len__(self) -> int:
        return len(self.codes[0])

    @property
    def columns(self) -> tuple[Array, ...]:
        """What is known of the nodes, an array each."""
        return tuple(getattr(self, name) for name in self.__slots__)  # a subclass's own fields

    def take(self, which: Int64 | slice) -> Self:
        """Return some of the nodes, in ascending order."""
        made: type[Any] = type(self)
        codes = some_of(self.codes, which)
        return cast("Self", made(codes, *(column[which] for column in self.columns)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Return the nodes of several parts, in their order."""
        parts = [part for part in parts if len(part)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        made: type[Any] = cls
        codes = zip(*(part.codes for part in parts), strict=True)
        columns = zip(*(part.columns for part in parts), strict=True)
        return cast("Self", made(tuple(map(np.concatenate, codes)), *map(np.concatenate, columns)))


@frozen(repr=False)
class Nodes(Rows):
    """Released nodes of a depth in tree order, with their estimates; nothing of the table.

    Attributes:
        counts: int64 (nodes): released counts.
        estimate: float64 (nodes), records: unbiased estimates of the true counts.
        variance: float64 (nodes), records²: their variances.
    """

    counts: Int64
    estimate: Float64
    variance: Float64

    @property
    def listed(self) -> "Nodes":
        """Those with a positive count: a release lists no others."""
        return self.take(np.flatnonzero(self.counts > 0))

    @staticmethod
    def exact(codes: Codes, counts: Int64) -> "Nodes":
        """Return nodes whose counts are their estimates: public, or read from a release."""
        return Nodes(codes, counts, float64(counts), np.zeros(len(counts)))

    @staticmethod
    def unknown(codes: Codes) -> "Nodes":
        """Return nodes of which nothing is known yet."""
        size = len(codes[0])
        return Nodes(codes, int64_zeros(size), np.zeros(size), np.full(size, np.inf))


NodesOf = dict[Levels, Nodes]
"""Of each of some cuboids its nodes."""


@frozen
class Found:
    """What a pass or a job of it releases of one cuboid, in tree order.

    Attributes:
        levels: the cuboid.
        nodes: the survivors with their released counts and unbiased estimates.
        noisy: int64 (measured cells): the noisy counts, families end to end, of surviving parents
            or (`All`) of all; None where nothing was measured.
        seconds: of work; confidential, for the terminal alone. 0 where the result had been kept.
    """

    levels: Levels
    nodes: Nodes
    noisy: Noisy | None
    seconds: float = 0.0

    @staticmethod
    def concatenate(parts: Sequence["Found"]) -> "Found":
        """Return the results of one cuboid from chunks or jobs that follow each other."""
        noisy: list[Any] = [part.noisy for part in parts if part.noisy is not None]
        whole = np.concatenate(noisy) if len(noisy) > 1 else next(iter(noisy), None)
        nodes = Nodes.concatenate([part.nodes for part in parts])
        seconds = sum(part.seconds for part in parts)
        return Found(parts[0].levels, nodes, whole, seconds)


@frozen
class NoisyCuboid:
    """The noisy counts of a cuboid whose counts are found later, together with others.

    Attributes:
        levels: the cuboid.
        noisy: int64 (cells): of all its cells, row by row.
        seconds: of work; confidential, as of `Found`.
    """

    levels: Levels
    noisy: Int64
    seconds: float = 0.0


def by_cuboid(
    results: Iterable[Found | NoisyCuboid],
) -> tuple[NodesOf, dict[Levels, Noisy]]:
    """Return all survivors and all noisy counts by cuboid."""
    parts: dict[Levels, list[Found]] = {}
    measured = {}
    for result in results:
        if isinstance(result, NoisyCuboid):
            measured[result.levels] = result.noisy
        else:
            parts.setdefault(result.levels, []).append(result)
    whole = {levels: Found.concatenate(each) for levels, each in parts.items()}
    noisy = {levels: result.noisy for levels, result in whole.items() if result.noisy is not None}
    return {levels: result.nodes for levels, result in whole.items()}, measured | noisy


@frozen(repr=False)
class Slices(Rows):
    """Nodes of a depth in tree order, and the slice of the leaves below each. Confidential.

    Attributes:
        start, stop: int64 (nodes): places in the confidential table; all 0 where there is none.
    """

    start: Int64
    stop: Int64

    @staticmethod
    def without_table(codes: Codes) -> "Slices":
        """Return empty slices: noisy counts are read back, and there is no table."""
        nothing = int64_zeros(len(codes[0]))
        return Slices(codes, nothing, nothing)


@frozen(repr=False)
class Roots:
    """Released nodes below which the pass goes on, and where their leaves lie. Confidential.

    Attributes:
        nodes: with their released counts.
        slices: of the same nodes.
    """

    nodes: Nodes
    slices: Slices

    @property
    def weights(self) -> Int64:
        """About how much work lies below each: the released counts."""
        return self.nodes.counts

    def take(self, which: Int64 | slice) -> "Roots":
        """Return some of the roots, in ascending order."""
        return Roots(self.nodes.take(which), self.slices.take(which))


def unknown_root(tree: Tree, counts: Counts | None) -> Roots:
    """Return the root, of which nothing is known yet, and its slice of a table, if there is one."""
    codes = tuple(np.zeros(1, dtype=np.int32) for _ in tree.axes)
    stop = np.array([0 if counts is None else len(counts.values)])
    return Roots(Nodes.unknown(codes), Slices(codes, np.zeros_like(stop), stop))


def true_nodes(counts: Counts, depth: int) -> Roots:
    """Return all non-zero nodes of a depth with their true counts: for public depths alone."""
    if not depth:
        root = unknown_root(counts.tree, counts)
        total = Nodes.exact(root.nodes.codes, np.array([counts.total]))
        return Roots(total, root.slices).take(np.flatnonzero(total.counts))
    codes, values = counts.roll_up(depth)
    start = np.flatnonzero(begins(counts.node_codes(depth)))
    stop = np.append(start[1:], len(counts.values))[: len(values)]
    return Roots(Nodes.exact(codes, values), Slices(codes, start, stop))


def places(codes: Codes, among: Codes) -> Int64:
    """Return for each node its place among other nodes, or `NOWHERE`: int64 (nodes)."""
    if len(among[0]) == 1:  # as below a root: a join takes a hundred times as long
        is_there = np.all([code == other for code, other in zip(codes, among, strict=True)], axis=0)
        return np.where(is_there, 0, NOWHERE)
    nodes, others = (pl.DataFrame(list(each), orient="col") for each in (codes, among))
    placed = others.with_row_index("place")
    place = nodes.join(placed, on=nodes.columns, how="left", maintain_order="left")["place"]
    return place.cast(pl.Int64).fill_null(NOWHERE).to_numpy()


@frozen
class JobRoots:
    """The nodes that jobs hang from, which tell whose leaves are whose.

    Attributes:
        levels: the cuboid that they are nodes of.
        codes: one int32 array (roots) an axis: those of all jobs, in tree order.
        first: int64 (jobs): the first root of each.
    """

    levels: Levels
    codes: Codes
    first: Int64

    def jobs_of(self, tree: Tree, leaves: Codes) -> Int64:
        """Return the number of the job that each leaf lies below, or `NOWHERE`: int64 (leaves)."""
        root = places(cells_above(tree, self.levels, tree.finest, leaves), self.codes)
        job = run_of(self.first, root)
        return np.where(root == NOWHERE, NOWHERE, job)


def first_leaves(tree: Tree, levels: Levels, codes: Codes) -> Codes:
    """Return for each node of a cuboid the first leaf below it: one int32 array (nodes) an axis.

    A table whose records all moved there has the counts of the true one down to that cuboid.
    """
    return tuple(
        int32(axis.descendant_start(level, axis.depth)[code])
        for axis, level, code in zip(tree.axes, levels, codes, strict=True)
    )


def placed(survivors: Nodes, every: Nodes) -> Nodes:
    """Return all nodes, with the counts and estimates of the survivors among them."""
    kept = places(survivors.codes, every.codes)
    columns = [each.copy() for each in every.columns]
    for column, survivor in zip(columns, survivors.columns, strict=True):
        column[kept] = survivor
    return Nodes(every.codes, *columns)


def check_families(tree: Tree, depth: int, upper: Nodes, lower: Nodes) -> None:
    """Raise unless the listed nodes of a depth add up to those above, family by family.

    Raises:
        ReleaseError: they are not in tree order, or some family does not add up to its parent.
    """
    above, levels = tree.chain[depth - 1 : depth + 1]
    if not is_in_order(tree, levels, lower.codes, depth):
        raise ReleaseError("the nodes are not in tree order")
    if not adds_up(tree, (levels, lower), (above, upper)):
        raise ReleaseError("some families do not add up to their parents' counts")


def is_in_order(tree: Tree, levels: Levels, codes: Codes, depth: int | None) -> bool:
    """Return whether cells stand once each in the order of their file.

    Args:
        tree: the tree.
        levels: the cuboid.
        codes: one int32 array (cells) an axis.
        depth: of the cuboid, where the order is the tree's; else it is row by row.
    """
    steps = tree.steps[:depth] if depth else tuple(enumerate(levels))
    later = np.zeros(max(len(codes[0]) - 1, 0), dtype=np.bool_)
    for a, level in steps[::-1]:
        key = tree.axes[a].nodes_above(level, levels[a], codes[a])
        later = (key[1:] > key[:-1]) | (later & (key[1:] == key[:-1]))
    return bool(later.all())


def adds_up(tree: Tree, below: tuple[Levels, Nodes], above: tuple[Levels, Nodes]) -> bool:
    """Return whether the counts of a cuboid are the sums of those of a finer one.

    Args:
        tree: the tree.
        below: the finer cuboid, and its listed cells.
        above: the coarser one, and its own, each once.
    """
    finer, summands = below
    levels, given = above
    place = places(cells_above(tree, levels, finer, summands.codes), given.codes)
    sums = int64_zeros(len(given) + 1)  # the last one of cells that are not listed
    np.add.at(sums, place, summands.counts)
    return np.array_equal(sums, np.append(given.counts, 0))


def sums_of_cells(tree: Tree, levels: Levels, finer: Levels, nodes: Nodes) -> IntPair:
    """Return the sums of listed counts by a cuboid: its cells' numbers, ascending, and the sums.

    Args:
        tree: the tree.
        levels: the cuboid.
        finer: a cuboid that refines it, single children aside.
        nodes: the listed cells of that.
    """
    codes = cells_above(tree, levels, finer, nodes.codes)
    numbers, cell = np.unique(cell_numbers(tree, levels, codes), return_inverse=True)
    sums = int64_zeros(len(numbers))
    np.add.at(sums, cell, nodes.counts)
    return numbers, sums
