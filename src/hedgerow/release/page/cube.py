"""The cuboids of a cube that a page carries: margins first, then coarse to fine while they fit.

A *margin* here is a cuboid of one axis alone. It says which areas of a level are used, so that a
cell of any cuboid is one number: its place in row-major order of the used areas of its levels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import ReleaseError
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.cuboid_errors import CuboidErrors
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
    LARGEST_SCRIPT_NUMBER,
    MOST_CHARACTERS,
    MOST_NODES,
    ROOT,
    UsedCodes,
    block,
    folded,
    level_block,
    rounded,
    value_parts,
    varints,
    visible_labels,
)
from hedgerow.release.page.markup import counted, shown, table
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Levels, Tree
from hedgerow.text import visible

MOST_ROWS, MOST_COLUMNS = 60, 12
"""Of the first table, for readers without scripts."""
_MARGIN = ["all", "95 % interval", "unbiased estimate"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The listed cells of a cuboid, row by row.

    Attributes:
        codes: for each axis int64 (cells): the number of the cell's node on the axis.
        counts: int64 (cells), records.
        low, high: int64 (cells), records: their intervals.
        estimate: int64 (cells), records: their unbiased estimates, rounded.
        contradicted: bool (cells): whether their own measurements contradict them.
    """

    codes: tuple[Int64, ...]
    counts: Int64
    low: Int64
    high: Int64
    estimate: Int64
    contradicted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.counts)

    def sentence(self, i: int) -> list[str]:
        """Return a count, its interval and its estimate as HTML."""
        doubt = int(self.estimate[i]) if self.contradicted[i] else None
        low, high = self.low[i], self.high[i]
        exact = low == high == self.counts[i]
        return [
            counted(int(self.counts[i]), doubt),
            "exact" if exact else f"{low:,} to {high:,}",
            f"{self.estimate[i]:,}",
        ]


@dataclass(frozen=True, eq=False)
class CarriedCube:
    """Cuboids of a release, in memory and as blocks of text.

    Attributes:
        tree: the public domain.
        cells: for each carried cuboid its cells; all coarser cuboids of one are carried, too.
        used: for each axis and level the codes that its margin lists.
        blocks: names and texts, see `hedgerow.release.page.carried`.
    """

    tree: Tree
    cells: dict[Levels, Cells] = field(default_factory=dict)
    used: dict[tuple[int, int], UsedCodes] = field(default_factory=dict)
    blocks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def start(self) -> Levels:
        """The cuboid that is shown first: the coarsest of two axes, or what is left of it."""
        split = [next((k for k, n in enumerate(_sizes(a)) if n > 1), 0) for a in self.tree.axes]
        wanted = [a for a, k in enumerate(split) if k][:2]
        for some in (wanted, wanted[:1], wanted[1:]):
            levels = tuple(k if a in some else 0 for a, k in enumerate(split))
            if levels in self.cells:
                return levels
        return (0,) * len(split)

    def facts(self) -> dict[str, Any]:
        """Return the cube as the page's script reads it."""
        listed = any(map(len, self.cells.values()))
        return {
            "axes": [
                {"name": visible(axis.name), "levels": [visible(level) for level in axis.levels]}
                for axis in self.tree.axes
            ],
            "sizes": [_sizes(axis) for axis in self.tree.axes],
            "cuboids": list(self.cells) if listed else [],
            "start": self.start if listed else [],
        }

    def first_counts(self) -> str:
        """Return the first counts as a table with its margins, for readers without scripts."""
        levels = self.start
        split = [a for a, k in enumerate(levels) if k]
        if not split or not len(self.cells[levels]):
            return "<p>The counts are in the Parquet files of this release.</p>"
        if len(split) == 1:
            return self._list(levels, split[0])
        rows, columns = (self.cells[_only(levels, a)] for a in split)
        if len(rows) > MOST_ROWS or len(columns) > MOST_COLUMNS:
            return self._list(_only(levels, split[0]), split[0])
        return self._matrix(levels, (split[0], split[1]))

    def _labels(self, axis: int, level: int) -> list[str]:
        codes = self.used[axis, level].codes
        labels = self.tree.axes[axis].labels[level - 1].gather(codes)
        return [shown(label) for label in visible_labels(labels).to_list()]

    def _list(self, levels: Levels, axis: int) -> str:
        name, cells = shown(self.tree.name_of(levels)), self.cells[levels]
        labels = self._labels(axis, levels[axis])[:MOST_ROWS]
        rows = [[label, *cells.sentence(i)] for i, label in enumerate(labels)]
        more = "" if len(rows) == len(cells) else f"; the first {len(rows)} of {len(cells):,}"
        return table(f"Counts by {name}{more}", [name, "Count", *_MARGIN[1:]], rows)

    def _matrix(self, levels: Levels, split: tuple[int, int]) -> str:
        cells, whole = self.cells[levels], self.cells[(0,) * len(levels)]
        name = [shown(self.tree.name_of(_only(levels, a))) for a in split]
        rows, columns = (self.cells[_only(levels, a)] for a in split)
        place = [np.searchsorted(self.used[a, levels[a]].codes, cells.codes[a]) for a in split]
        inner = {at: cells.sentence(i)[0] for i, at in enumerate(zip(*place, strict=True))}
        margin = [columns.sentence(c) for c in range(len(columns))]
        lines = [
            [words, *(["", "", ""] if k else whole.sentence(0)), *(each[k] for each in margin)]
            for k, words in enumerate(_MARGIN)
        ]
        for r, label in enumerate(self._labels(split[0], levels[split[0]])):
            row = (inner.get((r, c), "0") for c in range(len(columns)))
            lines.append([label, *rows.sentence(r), *row])
        head = self._labels(split[1], levels[split[1]])
        return table(
            f"Counts by {name[0]} (rows) and {name[1]} (columns)",
            [f"{name[0]} ↓<br>{name[1]} →", *_MARGIN, *head],
            lines,
        )


def carry_cube(folder: Path, plan: Plan, listed: Mapping[Levels, int]) -> CarriedCube:
    """Return the cuboids that fit, each proved to add up to the coarser ones.

    Args:
        folder: of the release.
        plan: of a cube.
        listed: how many counts the file of each cuboid lists.

    Raises:
        ReleaseError: codes that are not in the domain, cells that are not row by row, or cuboids
            that do not add up.
    """
    made, room, left = CarriedCube(plan.tree), MOST_CHARACTERS, MOST_NODES
    made.used.update({(a, 0): UsedCodes(ROOT, ROOT) for a in range(len(plan.tree.axes))})
    total: int | None = None
    for levels in sorted(plan.levels, key=lambda each: sum(map(bool, each)) > 1):
        above = {a: _coarser(levels, a) for a, k in enumerate(levels) if k}
        known = all(coarser in made.cells for coarser in above.values())
        if not known or listed[levels] > left or plan.tree.cells(levels) >= LARGEST_SCRIPT_NUMBER:
            continue
        cells = _read(folder, plan, levels, total)
        if max(cells.high.max(initial=0), cells.counts.max(initial=0)) >= LARGEST_SCRIPT_NUMBER:
            continue
        total = int(cells.counts.sum()) if total is None else total
        for axis, coarser in above.items():
            check_adds_up(plan.tree, levels, axis, (cells, made.cells[coarser]))
        used, blocks = _blocks(made, levels, cells)
        size = sum(len(text) for _, text in blocks)
        if size > room:
            continue
        room, left = room - size, left - len(cells)
        made.used.update(used)
        made.cells[levels] = cells
        made.blocks.extend(blocks)
    return made


def check_adds_up(tree: Tree, levels: Levels, axis: int, both: tuple[Cells, Cells]) -> None:
    """Raise unless the cells of a cuboid sum to those one level coarser along an axis.

    Args:
        tree: the public domain.
        levels: the finer cuboid.
        axis: along which.
        both: the cells of the finer and of the coarser cuboid.

    Raises:
        ReleaseError: they do not.
    """
    finer, coarser = both
    child_start = tree.axes[axis].child_start[levels[axis] - 1]
    codes = list(finer.codes)
    codes[axis] = np.searchsorted(child_start, codes[axis], side="right") - 1
    above = _coarser(levels, axis)
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
    flags = CuboidErrors.of(plan, levels, whole).contradicted(counts, estimate, variance)
    low, high = read[LOW].to_numpy(), read[HIGH].to_numpy()
    return Cells(codes, counts, low, high, rounded(estimate), flags)


def _blocks(
    made: CarriedCube, levels: Levels, cells: Cells
) -> tuple[dict[tuple[int, int], UsedCodes], list[tuple[str, str]]]:
    """Return the blocks of a cuboid; of a margin also those of its level, and the codes it uses."""
    split, blocks, used = [a for a, k in enumerate(levels) if k], [], {}
    if len(split) == 1:
        (a,) = split
        axis, level, above = made.tree.axes[a], levels[a], made.used[a, levels[a] - 1].codes
        own = used[a, level] = UsedCodes.of(axis, level, cells.codes[a], above)
        text = level_block(axis, level, own, above, numeric=False)
        blocks.append((f"level-{a}-{level}", text))
    known = made.used | used
    codes = [known[a, k].codes for a, k in enumerate(levels)]
    places = tuple(np.searchsorted(own, code) for own, code in zip(codes, cells.codes, strict=True))
    flat = np.zeros(0, dtype=np.int64)
    if len(cells):
        flat = np.ravel_multi_index(places, tuple(map(len, codes)))
    name = "-".join(map(str, levels))
    width, values = value_parts(cells.counts, cells.low, cells.high)
    estimate = cells.estimate - (cells.high - width // 2)
    head = [varints(np.array([width])), varints(np.diff(flat, prepend=-1) - 1)]
    blocks.append((f"cuboid-{name}", block([*head, *values, varints(folded(estimate))])))
    if cells.contradicted.any():
        gaps = np.diff(np.flatnonzero(cells.contradicted), prepend=-1) - 1
        blocks.append((f"contradicted-{name}", block([varints(gaps)])))
    return used, blocks


def _flat(tree: Tree, levels: Levels, codes: tuple[Int64, ...]) -> Int64:
    """Return the places of cells in row-major order of all nodes: int64 (cells)."""
    sizes = tuple(axis.size(k) for axis, k in zip(tree.axes, levels, strict=True))
    return np.ravel_multi_index(codes, sizes)


def _coarser(levels: Levels, axis: int) -> Levels:
    return (*levels[:axis], levels[axis] - 1, *levels[axis + 1 :])


def _only(levels: Levels, axis: int) -> Levels:
    """Return the margin of a cuboid along one axis."""
    return tuple(k if a == axis else 0 for a, k in enumerate(levels))


def _sizes(axis: Axis) -> list[int]:
    return [axis.size(level) for level in range(axis.depth + 1)]
