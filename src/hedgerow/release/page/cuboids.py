"""The cuboids that a page carries, and the first of them as a table for readers without scripts.

Margins, cuboids of one axis alone, come first, then the others coarse to fine, while they fit; each
is proved to add up. The areas of a level that are used are the same in every cuboid with that
level, as released counts agree on what they have in common; so a cell is one number: its place in
row-major order of the used areas of its levels. A chain is carried like any other workload.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path

import numpy as np

from hedgerow.arrays import Int64, Levels, distinct, int32, int64, int64_zeros
from hedgerow.distribution.bins import ranges_of
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import ReleaseError
from hedgerow.estimate.cube.shape import is_within, maximal
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import (
    LARGEST_DOUBLE,
    MOST_CHARACTERS,
    MOST_NODES_OF_A_PAGE,
    MOST_NOISY_OF_A_PAGE,
)
from hedgerow.pages.catalogue import Catalogue
from hedgerow.pages.markup import corner, shown, table
from hedgerow.plan.page.protected import units, words_of
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes, adds_up, is_in_order
from hedgerow.release.directory.cuboid_errors import USUAL, CuboidErrors
from hedgerow.release.directory.measurements import (
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    counts_file,
    read_counts,
)
from hedgerow.release.directory.stored import OnDisk, read_nodes
from hedgerow.release.distribution.cumulative import Shown
from hedgerow.release.page.carried import (
    OTHERS,
    Block,
    Cells,
    area_labels,
    cell_blocks,
    level_block,
    other_intervals,
)
from hedgerow.release.page.quartiles import Quartiles, distributions_of
from hedgerow.release.page.words import level_labels, source
from hedgerow.tables.axis import Axis
from hedgerow.tables.lists.product import BETWEEN_CODES
from hedgerow.tables.tree import cell_numbers
from hedgerow.text import Json, visible

MOST_ROWS, MOST_COLUMNS = 60, 12
"""Of the first table."""
MOST_DECIMALS = 20
"""Of values: every browser writes as many."""
ROOT = int64_zeros(1)
_VALUES = (ESTIMATE, STANDARD_ERROR, LOW, HIGH)

Used = dict[tuple[int, int], Int64]
"""For each axis and level the codes that occur, ascending: int64 (used)."""


def percent(confidence: Confidence) -> int:
    """Return the level of a confidence in whole percents."""
    return round(100 * confidence.coverage)


@dataclass(frozen=True, eq=False)
class Carried:
    """Cuboids of a release, in memory and as blocks of text.

    Attributes:
        plan: of the release.
        numeric: the axis whose codes are ranges of a column, all of which are carried; None where
            there is none.
        cells: for each carried cuboid its cells; all coarser cuboids of the workload are carried,
            too.
        used: for each axis and level the codes that occur.
        quartiles: of a column beside other axes by their cells, where errors are known.
        whole: the distribution of that column over all records, where its errors are known.
        blocks: names and texts, see `hedgerow.release.page.carried`.
    """

    plan: Plan
    numeric: int | None = None
    cells: dict[Levels, Cells] = field(default_factory=dict)
    used: Used = field(default_factory=dict)
    quartiles: dict[Levels, Quartiles] = field(default_factory=dict)
    whole: list[Shown] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def start(self) -> Levels:
        """The cuboid that is shown first: the coarsest of two axes, or the nearest to that.

        Along a chain it is the coarsest that has several counts, and beside a column the coarsest
        places.
        """
        axes = self.plan.tree.axes
        is_beside = self.numeric is not None
        is_beside &= len(axes) > 1
        wanted = 1 if self.plan.is_chain or is_beside else 2

        def rank(levels: Levels) -> tuple[bool, int, int, list[int]]:
            wide = sum(size > 1 for size in self.plan.tree.sizes(levels))
            is_split = is_beside and levels[self.numeric or 0] > 0
            return is_split, abs(wide - wanted), sum(levels), [-k for k in levels]

        return min(self.cells, key=rank, default=(0,) * len(axes))

    def nodes(self, levels: Levels, cells: Cells) -> Nodes:
        """Return the cells of a cuboid with their codes."""
        each = zip(enumerate(levels), cells.places, strict=True)
        codes = (int32(self.used[at][place]) for at, place in each)
        return Nodes.exact(tuple(codes), cells.counts)

    def level_block(self, axis: int, level: int) -> Block:
        """Return the block of the codes of a level that occur."""
        used, above = (self.used[axis, k] for k in (level, level - 1))
        numeric = axis == self.numeric
        text = level_block(self.plan.tree.axes[axis], level, used, above, numeric=numeric)
        return f"level-{axis}-{level}", text

    def facts(self) -> Json:
        """Return the cuboids as the page's script reads them, and how to cite one of their counts.

        Under ``released`` stand all of the workload; ``ruled`` says whether public facts rule some
        counts out, ``zeros`` whether these or public counts may tell that a count is 0.
        """
        plan = self.plan
        axes = self.plan.tree.axes
        facts: Json = {
            "source": visible(source(plan)),
            "unit": visible(units(plan)),
            "words": words_of(plan).script("release"),
            "sure": sorted(map(percent, (USUAL, *OTHERS))),
            "axes": [_axis_facts(plan, axis) for axis in axes],
            "sizes": [axis.sizes for axis in axes],
            "cuboids": list(self.cells),
            "ruled": bool(plan.facts),
            "zeros": bool(plan.facts) or any(plan.public or ()),
            "released": list(plan.levels),
        }
        if self.numeric is None:
            return facts
        ranges = ranges_of(axes[self.numeric])
        return facts | {"numeric": self.numeric, "digits": min(ranges.decimals, MOST_DECIMALS)}

    def first_counts(self) -> str:
        """Return the first counts as a table with its margins, for readers without scripts."""
        levels = self.start
        split = [a for a, k in enumerate(levels) if k]
        if not split or not len(self.cells[levels]):
            return f"<p>{self._say('release.in_files')}</p>"
        if len(split) != 2 or self.plan.is_chain:
            return self._list(levels)
        used = [len(self.used[a, levels[a]]) for a in split]
        if used[0] > MOST_ROWS or used[1] > MOST_COLUMNS:
            rows = _only(levels, split[0])
            return self._list(rows if rows in self.cells else levels)
        return self._matrix(levels, (split[0], split[1]))

    @property
    def _say(self) -> Catalogue:
        return words_of(self.plan)

    def _headings(self, *keys: str) -> list[str]:
        return [self._say(f"script.{key}", sure=percent(USUAL)) for key in keys]

    def _labels(self, axis: int, level: int, places: slice | Int64) -> list[str]:
        codes = self.used[axis, level][places]
        return [shown(label) for label in area_labels(self.plan.tree.axes[axis], level, codes)]

    def _list(self, levels: Levels) -> str:
        say = self._say
        cells = self.cells[levels]
        is_chain = self.plan.is_chain
        name = shown(self.plan.label_of(levels))
        every = len(cells)
        between = " → "
        headings = self._headings("count", "interval", "unbiased")
        told = [cells.sentence(say, i, worded=not is_chain) for i in range(min(every, MOST_ROWS))]
        if is_chain:
            headings, told, between = headings[:-1], [each[:-1] for each in told], " › "
        if (quartiles := self.quartiles.get(levels)) is not None:
            column = shown(quartiles.name)
            headings.append(say("release.first.median", name=column, sure=percent(USUAL)))
            told = [[*each, quartiles.median(say, i)] for i, each in enumerate(told)]
        labels = [
            self._labels(a, k, places[: len(told)])
            for (a, k), places in zip(enumerate(levels), cells.places, strict=True)
            if k
        ]
        paths = map(between.join, zip(*labels, strict=True))
        rows = [[path, *each] for path, each in zip(paths, told, strict=True)]
        key = "release.first.list" if len(rows) == every else "release.first.part"
        return table(say, say(key, name=name, rows=len(rows), every=every), [name, *headings], rows)

    def _margin(self, levels: Levels, axis: int) -> list[list[str]]:
        """Return the counts of a pair's margin in words: sums alone where it was not released."""
        cells = self.cells[levels]
        if (margin := self.cells.get(_only(levels, axis))) is not None:
            return [margin.sentence(self._say, i) for i in range(len(margin))]
        sums = int64_zeros(len(self.used[axis, levels[axis]]))
        np.add.at(sums, cells.places[axis], cells.counts)
        return [[self._say.number(each), "–", "–"] for each in sums.tolist()]

    def _matrix(self, levels: Levels, split: tuple[int, int]) -> str:
        say = self._say
        cells = self.cells[levels]
        whole = self.cells[(0,) * len(levels)]
        names = [shown(self.plan.label_of(_only(levels, a))) for a in split]
        rows, columns = (self._margin(levels, a) for a in split)
        is_known = any(_only(levels, a) in self.cells for a in split)
        words = self._headings("all", *(("interval", "unbiased") if is_known else ()))
        places = zip(*(cells.places[a] for a in split), strict=True)
        inner = {at: cells.sentence(say, i)[0] for i, at in enumerate(places)}
        labels = [self._labels(a, levels[a], slice(None)) for a in split]
        lines = [
            [word, *([""] * len(words) if k else whole.sentence(say, 0)[: len(words)])]
            + [each[k] for each in columns]
            for k, word in enumerate(words)
        ]
        for r, label in enumerate(labels[0]):
            row = (inner.get((r, c), "0") for c in range(len(columns)))
            lines.append([label, *rows[r][: len(words)], *row])
        caption = say("release.first.matrix", rows=names[0], columns=names[1])
        return table(say, caption, [corner(*names), *words, *labels[1]], lines)


def carry(release: OnDisk, listed: Sequence[int], *, numeric: int | None) -> Carried:
    """Return the cuboids that fit, each proved to add up to the coarser ones.

    Args:
        release: whose.
        listed: how many counts the file of each cuboid lists.
        numeric: the axis of which all codes of all levels are carried, as ranges of a column.

    Raises:
        ReleaseError: codes that are not in the domain or in no coarser cuboid, cells that are not
            in their order, or cuboids that do not add up.
    """
    folder = release.folder
    plan = release.plan
    tree = release.plan.tree
    rows = dict(zip(plan.levels, listed, strict=True))
    made = Carried(plan, numeric, used={(a, 0): ROOT for a in range(len(tree.axes))})
    room = MOST_CHARACTERS
    left = MOST_NODES_OF_A_PAGE
    for levels in sorted(plan.levels, key=lambda each: sum(map(bool, each)) > 1):
        above = _above(plan, levels)
        ranges = 0 if numeric is None else tree.axes[numeric].size(levels[numeric])
        is_wide = ranges > MOST_NODES_OF_A_PAGE
        if rows[levels] > left or is_wide or not all(each in made.cells for each in above):
            continue
        nodes = read_nodes(folder, tree, levels)
        grown = replace(made, used=_used(made, levels, nodes))
        if prod(len(grown.used[at]) for at in enumerate(levels)) >= LARGEST_DOUBLE:
            continue
        cells = _read(folder, grown, levels, nodes)
        if max(cells.high.max(initial=0), cells.counts.max(initial=0)) >= LARGEST_DOUBLE:
            continue
        for coarser in above:
            check_adds_up(grown, (levels, cells), (coarser, made.cells[coarser]))
        fresh = sorted(grown.used.keys() - made.used.keys())
        blocks = [*(grown.level_block(*at) for at in fresh), *cell_blocks(levels, cells)]
        size = sum(len(text) for _, text in blocks)
        if size > room:
            continue
        room, left = room - size, left - len(cells)
        made.used.update(grown.used)
        made.cells[levels] = cells
        made.blocks.extend(blocks)
    if numeric is not None and len(tree.axes) > 1:
        _carry_quartiles(release, made, numeric, room)
    return made


def _carry_quartiles(release: OnDisk, made: Carried, numeric: int, room: int) -> None:
    """Add the quartiles of a column in the cells of the other axes, in so many characters."""
    tree = made.plan.tree
    label = made.plan.description.axis_label(tree.axes[numeric])
    own = ranges_of(tree.axes[numeric])
    ranges = Ranges(label, own.edges, own.out_of_bounds)
    if release.noisy_cells > MOST_NOISY_OF_A_PAGE or ranges.decimals > MOST_DECIMALS:
        return
    if np.abs(ranges.edges).max() * 10**ranges.decimals >= LARGEST_DOUBLE:
        return
    for levels, cells in made.cells.items():
        told = None if levels[numeric] else distributions_of(release, numeric, levels)
        if told is None or not len(cells):
            continue
        if not any(levels):
            made.whole.append(Shown(told, ranges, words_of(made.plan)))
        codes = made.nodes(levels, cells).codes
        quartiles = Quartiles.of(told, ranges, cell_numbers(tree, levels, codes))
        name, text = quartiles.block(levels)
        if len(text) <= room:
            room -= len(text)
            made.quartiles[levels] = quartiles
            made.blocks.append((name, text))


def _above(plan: Plan, levels: Levels) -> Sequence[Levels]:
    """Return the finest cuboids of the workload that are coarser than one."""
    steps = [(*levels[:a], k - 1, *levels[a + 1 :]) for a, k in enumerate(levels) if k]
    if all(each in plan.by_levels for each in steps):
        return steps
    coarser = [each for each in plan.levels if each != levels and is_within(each, levels)]
    return maximal(coarser) if coarser else ()


def _used(made: Carried, levels: Levels, nodes: Nodes) -> Used:
    """Return the codes that occur in what is carried and in one cuboid more.

    Raises:
        ReleaseError: it has codes of a level that a cuboid before it has not.
    """
    used = dict(made.used)
    for a, (axis, finest) in enumerate(zip(made.plan.tree.axes, levels, strict=True)):
        own = int64(distinct(nodes.codes[a]))
        for level in range(finest, 0, -1):
            every = np.arange(axis.size(level)) if a == made.numeric else own
            if not np.isin(own, used.setdefault((a, level), every)).all():
                file = counts_file(levels)
                raise ReleaseError(f"the counts in {file} are of other areas than coarser ones")
            own = int64(distinct(axis.nodes_above(level - 1, level, own)))
    return used


def check_adds_up(made: Carried, below: tuple[Levels, Cells], above: tuple[Levels, Cells]) -> None:
    """Raise unless the cells of a cuboid sum to those of a coarser one.

    Args:
        made: with the codes that both use.
        below: the finer cuboid and its cells.
        above: the coarser one.

    Raises:
        ReleaseError: they do not.
    """
    both = ((levels, made.nodes(levels, cells)) for levels, cells in (below, above))
    if not adds_up(made.plan.tree, *both):
        finer = counts_file(below[0])
        coarser = counts_file(above[0])
        raise ReleaseError(f"the counts in {finer} do not add up to those in {coarser}")


def _read(folder: Path, made: Carried, levels: Levels, nodes: Nodes) -> Cells:
    plan = made.plan
    tree = made.plan.tree
    depth = plan.design.depth_of(levels)
    if not is_in_order(tree, levels, nodes.codes, depth):
        raise ReleaseError(
            f"the counts in {counts_file(levels)} are not "
            f"{'in tree order' if depth else 'row by row'}"
        )
    flat = int64_zeros(len(nodes))
    places = []
    for at, own in zip(enumerate(levels), nodes.codes, strict=True):
        places.append(np.searchsorted(made.used[at], own))
        flat = flat * len(made.used[at]) + places[-1]
    order = np.argsort(flat, kind="stable")
    counts = nodes.counts[order]
    # no copy of labels, which are large
    read = read_counts(folder, tree, levels).select(_VALUES)[order]
    estimate, error, low, high = (read[name].to_numpy() for name in _VALUES)
    errors = CuboidErrors.of(plan, levels, int(counts.sum()))
    flags = errors.contradicted(counts, estimate, error**2)
    others = other_intervals(errors, estimate, error**2, (low, high))
    most = LARGEST_DOUBLE - 1  # whole numbers that a browser knows
    whole = int64(np.clip(np.rint(estimate), -most, most))
    sorted_places = tuple(place[order] for place in places)
    exact = error == 0
    return Cells(sorted_places, flat[order], counts, low, high, whole, flags, exact, others)


def _axis_facts(plan: Plan, axis: Axis) -> Json:
    """Return an axis as the page's script reads it: names; of a product what its labels list."""
    said = plan.description
    lists = {"levels": level_labels(plan, axis), "alone": said.labels_of(plan.tree, axis)}
    if axis.product is not None:
        columns = [axis.columns_of(level) for level in range(1, axis.depth + 1)]
        each = [[said.level_label(axis, column) for column in own] for own in columns]
        lists["told"] = [BETWEEN_CODES.join(own) if len(own) > 1 else "" for own in each]
    given = {key: list(map(visible, words)) for key, words in lists.items() if words is not None}
    return {"name": visible(said.axis_label(axis)), **given}


def _only(levels: Levels, axis: int) -> Levels:
    """Return the margin of a cuboid along one axis."""
    return tuple(k if a == axis else 0 for a, k in enumerate(levels))
