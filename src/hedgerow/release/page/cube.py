"""The cuboids on a page of no chain: margins first, then coarse to fine while they fit.

A *margin* here is a cuboid of one axis alone. The areas of a level that are used are the same in
every cuboid with that level, as released counts agree on what they have in common; so a cell is one
number: its place in row-major order of the used areas of its levels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.cube.shape import is_within, maximal
from hedgerow.limits import LARGEST_DOUBLE, MOST_CHARACTERS, MOST_NODES_OF_A_PAGE
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import shown, table
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    Shape,
    counts_file,
    read_counts,
)
from hedgerow.release.directory.stored import read_nodes
from hedgerow.release.page.carried import (
    ROOT,
    UsedCodes,
    area_labels,
    block,
    folded,
    intervals_block,
    level_block,
    rounded,
    value_parts,
    varints,
)
from hedgerow.release.page.described import (
    axis_facts,
    between,
    counted,
    first_table,
    unit_facts,
    words_of,
)
from hedgerow.release.page.intervals import Ends, other_intervals, percent
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.product import BETWEEN_CODES
from hedgerow.tables.tree import Tree
from hedgerow.text import visible

MOST_ROWS, MOST_COLUMNS = 60, 12
"""Of the first table, for readers without scripts."""
_MARGIN = ("all", "interval", "unbiased")
_UNKNOWN = ["–", "–"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The listed cells of a cuboid, row by row.

    Attributes:
        codes: for each axis int64 (cells): the number of the cell's node on the axis.
        counts: int64 (cells), records.
        low, high: int64 (cells), records: their intervals.
        estimate: int64 (cells), records: their unbiased estimates, rounded.
        contradicted: bool (cells): whether their own measurements contradict them.
        others: the other intervals that a reader can choose.
    """

    codes: tuple[Int64, ...]
    counts: Int64
    low: Int64
    high: Int64
    estimate: Int64
    contradicted: NDArray[np.bool_]
    others: Sequence[Ends] = ()

    def __len__(self) -> int:
        return len(self.counts)

    def sentence(self, say: Catalogue, i: int) -> list[str]:
        """Return a count, its interval and its estimate as HTML."""
        doubt = int(self.estimate[i]) if self.contradicted[i] else None
        low, high = self.low[i], self.high[i]
        exact = low == high == self.counts[i]
        return [
            counted(say, int(self.counts[i]), doubt),
            say("script.exact") if exact else between(say, int(low), int(high)),
            say.number(int(self.estimate[i])),
        ]


@dataclass(frozen=True, eq=False)
class CarriedCuboids:
    """Cuboids of a release, in memory and as blocks of text.

    Attributes:
        plan: of the release.
        cells: for each carried cuboid its cells; all coarser cuboids of the workload are carried,
            too.
        used: for each axis and level the codes that occur.
        blocks: names and texts, see `hedgerow.release.page.carried`.
    """

    plan: Plan
    cells: dict[Levels, Cells] = field(default_factory=dict)
    used: dict[tuple[int, int], UsedCodes] = field(default_factory=dict)
    blocks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def tree(self) -> Tree:
        """The public domain."""
        return self.plan.tree

    @property
    def start(self) -> Levels:
        """The cuboid that is shown first: the coarsest of two axes, or the nearest to that."""

        def rank(levels: Levels) -> tuple[int, int, list[int]]:
            axes = zip(self.tree.axes, levels, strict=True)
            wide = sum(axis.size(k) > 1 for axis, k in axes)
            return abs(wide - 2), sum(levels), [-k for k in levels]

        return min(self.cells, key=rank, default=(0,) * len(self.tree.axes))

    def facts(self) -> dict[str, Any]:
        """Return the cuboids as the page's script reads them.

        Under ``released`` stand all of the workload where they are not every combination of levels;
        ``ruled`` says whether public facts rule some counts out.
        """
        listed = any(map(len, self.cells.values()))
        return {
            **unit_facts(self.plan),
            "axes": [_axis_facts(self.plan, axis) for axis in self.tree.axes],
            "sizes": [_sizes(axis) for axis in self.tree.axes],
            "cuboids": list(self.cells) if listed else [],
            "start": self.start if listed else [],
            "ruled": bool(self.plan.facts),
            "released": None if self.plan.has_all_combinations else list(self.plan.levels),
        }

    def first_counts(self) -> str:
        """Return the first counts as a table with its margins, for readers without scripts."""
        levels = self.start
        split = [a for a, k in enumerate(levels) if k]
        if not split or not len(self.cells[levels]):
            return f"<p>{words_of(self.plan)('release.in_files')}</p>"
        if len(split) != 2:
            return self._list(levels)
        used = [len(self.used[a, levels[a]].codes) for a in split]
        if used[0] > MOST_ROWS or used[1] > MOST_COLUMNS:
            rows = _only(levels, split[0])
            return self._list(rows if rows in self.cells else levels)
        return self._matrix(levels, (split[0], split[1]))

    @property
    def _say(self) -> Catalogue:
        return words_of(self.plan)

    def _labels(self, axis: int, level: int, codes: Int64) -> list[str]:
        return [shown(label) for label in area_labels(self.tree.axes[axis], level, codes)]

    def _list(self, levels: Levels) -> str:
        say, name, cells = self._say, shown(self.plan.label_of(levels)), self.cells[levels]
        labels = [self._labels(a, k, cells.codes[a][:MOST_ROWS]) for a, k in enumerate(levels) if k]
        rows = [
            [" → ".join(path), *cells.sentence(say, i)]
            for i, path in enumerate(zip(*labels, strict=True))
        ]
        return first_table(say, name, _MARGIN[1:], rows, len(cells))

    def _margin(self, levels: Levels, axis: int) -> list[list[str]]:
        """Return the counts of a pair's margin in words: sums alone where it was not released."""
        cells = self.cells[levels]
        if (margin := self.cells.get(_only(levels, axis))) is not None:
            return [margin.sentence(self._say, i) for i in range(len(margin))]
        codes = self.used[axis, levels[axis]].codes
        sums = np.zeros(len(codes), dtype=np.int64)
        np.add.at(sums, np.searchsorted(codes, cells.codes[axis]), cells.counts)
        return [[self._say.number(int(each)), *_UNKNOWN] for each in sums]

    def _matrix(self, levels: Levels, split: tuple[int, int]) -> str:
        say, cells, whole = self._say, self.cells[levels], self.cells[(0,) * len(levels)]
        name = [shown(self.plan.label_of(_only(levels, a))) for a in split]
        rows, columns = (self._margin(levels, a) for a in split)
        is_known = any(_only(levels, a) in self.cells for a in split)
        keys = _MARGIN if is_known else _MARGIN[:1]
        words = [say(f"script.{key}", sure=percent(USUAL)) for key in keys]
        used = [self.used[a, levels[a]].codes for a in split]
        place = [np.searchsorted(own, cells.codes[a]) for own, a in zip(used, split, strict=True)]
        inner = {at: cells.sentence(say, i)[0] for i, at in enumerate(zip(*place, strict=True))}
        lines = [
            [word, *([""] * len(words) if k else whole.sentence(say, 0)[: len(words)])]
            + [each[k] for each in columns]
            for k, word in enumerate(words)
        ]
        for r, label in enumerate(self._labels(split[0], levels[split[0]], used[0])):
            row = (inner.get((r, c), "0") for c in range(len(columns)))
            lines.append([label, *rows[r][: len(words)], *row])
        head = self._labels(split[1], levels[split[1]], used[1])
        return table(
            say,
            say("release.first.matrix", rows=name[0], columns=name[1]),
            [f"{name[0]} ↓<br>{name[1]} →", *words, *head],
            lines,
        )


def carry_cuboids(folder: Path, plan: Plan, listed: Mapping[Levels, int]) -> CarriedCuboids:
    """Return the cuboids that fit, each proved to add up to the coarser ones.

    Args:
        folder: of the release.
        plan: of the release; no chain.
        listed: how many counts the file of each cuboid lists.

    Raises:
        ReleaseError: codes that are not in the domain, cells that are not row by row, or cuboids
            that do not add up.
    """
    made, room, left = CarriedCuboids(plan), MOST_CHARACTERS, MOST_NODES_OF_A_PAGE
    made.used.update({(a, 0): UsedCodes(ROOT, ROOT) for a in range(len(plan.tree.axes))})
    total: int | None = None
    for levels in sorted(plan.levels, key=lambda each: sum(map(bool, each)) > 1):
        above = _above(plan, levels)
        known = all(coarser in made.cells for coarser in above)
        if not known or listed[levels] > left or plan.tree.cells(levels) >= LARGEST_DOUBLE:
            continue
        cells = _read(folder, plan, levels, total)
        if max(cells.high.max(initial=0), cells.counts.max(initial=0)) >= LARGEST_DOUBLE:
            continue
        total = int(cells.counts.sum()) if total is None else total
        for coarser in above:
            check_adds_up(plan.tree, levels, coarser, (cells, made.cells[coarser]))
        used, blocks = _blocks(made, levels, cells)
        size = sum(len(text) for _, text in blocks)
        if size > room:
            continue
        room, left = room - size, left - len(cells)
        made.used.update(used)
        made.cells[levels] = cells
        made.blocks.extend(blocks)
    return made


def _above(plan: Plan, levels: Levels) -> Sequence[Levels]:
    """Return the finest cuboids of the workload that are coarser than one."""
    steps = [(*levels[:a], k - 1, *levels[a + 1 :]) for a, k in enumerate(levels) if k]
    if all(each in plan.by_levels for each in steps):
        return steps
    coarser = [each for each in plan.levels if each != levels and is_within(each, levels)]
    return maximal(coarser) if coarser else ()


def check_adds_up(tree: Tree, levels: Levels, above: Levels, both: tuple[Cells, Cells]) -> None:
    """Raise unless the cells of a cuboid sum to those of a coarser one.

    Args:
        tree: the public domain.
        levels: the finer cuboid.
        above: the coarser one.
        both: the cells of the finer and of the coarser cuboid.

    Raises:
        ReleaseError: they do not.
    """
    finer, coarser = both
    codes = [
        np.searchsorted(axis.descendant_start(upper, lower), code, side="right") - 1
        for axis, upper, lower, code in zip(tree.axes, above, levels, finer.codes, strict=True)
    ]
    place = _flat(tree, above, tuple(codes))
    order = np.argsort(place, kind="stable")
    first = np.flatnonzero(np.diff(place[order], prepend=-1))
    sums = np.add.reduceat(finer.counts[order], first) if len(first) else finer.counts
    same = np.array_equal(place[order][first], _flat(tree, above, coarser.codes))
    if not same or not np.array_equal(sums, coarser.counts):
        raise ReleaseError(
            f"the counts in {counts_file(levels)} do not add up to those in {counts_file(above)}"
        )


def _read(folder: Path, plan: Plan, levels: Levels, total: int | None) -> Cells:
    tree = plan.tree
    nodes = read_nodes(folder, tree, levels)
    codes = tuple(code.astype(np.int64) for code in nodes.codes)
    if (np.diff(_flat(tree, levels, codes)) <= 0).any():
        raise ReleaseError(f"the counts in {counts_file(levels)} are not row by row")
    whole = int(nodes.counts.sum()) if total is None else total
    read = read_counts(folder, Shape.of(tree, levels))
    estimate: Float64 = read[ESTIMATE].to_numpy()
    counts, variance = read[COUNT].to_numpy(), read[STANDARD_ERROR].to_numpy() ** 2
    errors = CuboidErrors.of(plan, levels, whole)
    flags = errors.contradicted(counts, estimate, variance)
    low, high = read[LOW].to_numpy(), read[HIGH].to_numpy()
    others = other_intervals(errors, estimate, variance, (low, high))
    return Cells(codes, counts, low, high, rounded(estimate), flags, others)


def _blocks(
    made: CarriedCuboids, levels: Levels, cells: Cells
) -> tuple[dict[tuple[int, int], UsedCodes], list[tuple[str, str]]]:
    """Return the blocks of a cuboid and of levels that occur in it first, and their codes."""
    blocks: list[tuple[str, str]] = []
    used: dict[tuple[int, int], UsedCodes] = {}
    for a, (axis, finest) in enumerate(zip(made.tree.axes, levels, strict=True)):
        for level in range(1, finest + 1):
            if (a, level) in made.used:
                continue
            above = (made.used | used)[a, level - 1].codes
            start = axis.descendant_start(level, finest)
            codes = np.unique(np.searchsorted(start, cells.codes[a], side="right") - 1)
            own = used[a, level] = UsedCodes.of(axis, level, codes, above)
            text = level_block(axis, level, own, above, numeric=False)
            blocks.append((f"level-{a}-{level}", text))
    known = made.used | used
    every = [known[a, k].codes for a, k in enumerate(levels)]
    places = tuple(np.searchsorted(own, code) for own, code in zip(every, cells.codes, strict=True))
    flat = np.zeros(0, dtype=np.int64)
    if len(cells):
        flat = np.ravel_multi_index(places, tuple(map(len, every)))
    name = "-".join(map(str, levels))
    width, values = value_parts(cells.counts, cells.low, cells.high)
    estimate = cells.estimate - (cells.high - width // 2)
    head = [varints(np.array([width])), varints(np.diff(flat, prepend=-1) - 1)]
    blocks.append((f"cuboid-{name}", block([*head, *values, varints(folded(estimate))])))
    if len(cells):
        blocks.append((f"intervals-{name}", intervals_block(cells.high, cells.others)))
    if cells.contradicted.any():
        gaps = np.diff(np.flatnonzero(cells.contradicted), prepend=-1) - 1
        blocks.append((f"contradicted-{name}", block([varints(gaps)])))
    return used, blocks


def _flat(tree: Tree, levels: Levels, codes: tuple[Int64, ...]) -> Int64:
    """Return the places of cells in row-major order of all nodes: int64 (cells)."""
    sizes = tuple(axis.size(k) for axis, k in zip(tree.axes, levels, strict=True))
    return np.ravel_multi_index(codes, sizes)


def _only(levels: Levels, axis: int) -> Levels:
    """Return the margin of a cuboid along one axis."""
    return tuple(k if a == axis else 0 for a, k in enumerate(levels))


def _axis_facts(plan: Plan, axis: Axis) -> dict[str, Any]:
    """Return an axis as the script reads it; of a product also what the labels of a level list."""
    facts = axis_facts(plan, axis)
    if axis.product is None:
        return facts
    described = plan.description
    columns = (
        [described.level_label(axis, column) for column in axis.columns_of(level)]
        for level in range(1, axis.depth + 1)
    )
    told = [BETWEEN_CODES.join(each) if len(each) > 1 else "" for each in columns]
    return facts | {"told": [visible(words) for words in told]}


def _sizes(axis: Axis) -> list[int]:
    return [axis.size(level) for level in range(axis.depth + 1)]
