"""The depths that a page carries: from the coarsest on, as long as they stay small."""

import base64
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int32, Int64
from hedgerow.errors import ReleaseError
from hedgerow.limits import (
    LARGEST_DOUBLE,
    MOST_BYTES_OF_A_BLOCK,
    MOST_CHARACTERS,
    MOST_NODES_OF_A_PAGE,
)
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes, family_starts
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.measurements import (
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    Shape,
    read_counts,
)
from hedgerow.release.directory.stored import read_nodes
from hedgerow.release.page.intervals import Ends, most_often, other_intervals, usual_reach
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from hedgerow.text import visible

# Counts as a page carries them: columns of small whole numbers, deflated, in base64.
#
# A block is a sequence of parts. It begins with their number and their lengths in bytes (uint32,
# little-endian); numbers within a part are of variable length, seven bits a byte, lowest first.


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """How sure the counts of a depth are.

    Attributes:
        low, high: int64 (nodes), records: their intervals.
        contradicted: int64, ascending: which counts their own measurements contradict.
        estimate: int64, records: the unbiased estimates of those, rounded.
        others: the other intervals that a reader can choose.
    """

    low: Int64
    high: Int64
    contradicted: Int64
    estimate: Int64
    others: Sequence[Ends] = ()

    def contradictions(self) -> dict[int, int]:
        """Return the rounded estimate of each count that is contradicted, by its place."""
        return dict(zip(self.contradicted.tolist(), self.estimate.tolist(), strict=True))


def block(parts: list[bytes]) -> str:
    """Return the parts as text."""
    sizes = np.array([len(parts), *map(len, parts)], dtype="<u4").tobytes()
    squeezed = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(
        squeezed.compress(b"".join([sizes, *parts])) + squeezed.flush()
    ).decode()


def parts_of(text: str, most: int = MOST_BYTES_OF_A_BLOCK) -> list[bytes]:
    """Return what `block` was given, of at most some bytes.

    Raises:
        ReleaseError: it is anything else, or holds anything more.
    """
    deflated = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        whole = deflated.decompress(base64.b64decode(text, validate=True), max(1, most))
    except (ValueError, zlib.error):
        raise ReleaseError("a block of the page is not what Hedgerow writes") from None
    if not deflated.eof or deflated.unused_data:
        raise ReleaseError("a block of the page is not what Hedgerow writes")
    count = int.from_bytes(whole[:4], "little")
    ends = 4 * (count + 1) + np.cumsum(np.frombuffer(whole, "<u4", count, 4)).astype(np.int64)
    starts = [4 * (count + 1), *ends[:-1].tolist()]
    if ends[-1] != len(whole):
        raise ReleaseError("a block of the page holds more than its parts")
    return [whole[first:last] for first, last in zip(starts, ends.tolist(), strict=True)]


def depth_block(local: Int64, start: Int64, nodes: Nodes, interval: Interval) -> str:
    """Return the nodes of a depth: family sizes, places among siblings, counts and intervals.

    Most intervals of a depth have one width w, and their lower ends are cut off at 0; so of a lower
    end it is written how far it is from ``max(0, high - w)``.

    Args:
        local: int64 (nodes), each one's place among the used children of its parent's code.
        start: int64 (parents + 1): where each family begins.
        nodes: with their counts.
        interval: of each count.
    """
    step = np.diff(local, prepend=-1)
    step[start[:-1]] = local[start[:-1]] + 1
    width, values = value_parts(nodes.counts, interval.low, interval.high)
    width_part = varints(np.array([width]))
    return block([width_part, varints(np.diff(start)), varints(step - 1), *values])


def value_parts(counts: Int64, low: Int64, high: Int64) -> tuple[int, list[bytes]]:
    """Return the usual width of intervals, and counts with their intervals as parts of a block.

    Args:
        counts: int64 (cells), records.
        low: int64 (cells), records: where their intervals begin.
        high: int64 (cells), records: and end.
    """
    width = most_often((high - low)[low > 0])
    usual = np.maximum(0, high - width)
    return width, [varints(counts), varints(folded(high - counts)), varints(folded(low - usual))]


def intervals_block(high: Int64, others: Sequence[Ends]) -> str:
    """Return the other intervals of counts, each as three parts of a block.

    First how far most end beyond the usual ones, and their width; then what is left of each end,
    the lower one beyond ``max(0, end - width)``.

    Args:
        high: int64 (cells), records: where the 95 % intervals end.
        others: see `hedgerow.release.page.intervals`.
    """
    parts = []
    for (low, end), (beyond, width) in zip(others, usual_reach(high, others), strict=True):
        left = np.maximum(0, end - width)
        head = np.array([int(folded(np.array(beyond))), width])
        parts += [varints(head), varints(folded(end - high - beyond)), varints(folded(low - left))]
    return block(parts)


def contradicted_block(interval: Interval) -> str:
    """Return which nodes of a depth have counts that are contradicted, and their estimates."""
    gaps = np.diff(interval.contradicted, prepend=-1) - 1
    return block([varints(gaps), varints(folded(interval.estimate))])


@dataclass(frozen=True, slots=True, eq=False)
class UsedCodes:
    """The codes of one level of an axis that a page speaks of.

    Attributes:
        codes: int64 (used), ascending: their numbers on the axis.
        start: int64 (used codes of the level above + 1): how they group below those.
    """

    codes: Int64
    start: Int64

    @classmethod
    def of(cls, axis: Axis, level: int, codes: Int64, above: Int64) -> "UsedCodes":
        """Return those of a level below those above it."""
        child_start = axis.child_start[level - 1]
        start = np.searchsorted(codes, child_start[above])
        return cls(codes, np.append(start, len(codes)).astype(np.int64))


def level_block(axis: Axis, level: int, used: UsedCodes, above: Int64, *, numeric: bool) -> str:
    """Return the codes of a level: family sizes, used and possible, and their labels, one a line.

    Where every label begins with that of its parent, the rest alone is written. The ranges of a
    numeric axis are written without the number before them. Names follow where the level has any,
    one a line, empty where a code has none.
    """
    child_start = axis.child_start[level - 1]
    labels = visible_labels(axis.labels[level - 1].gather(used.codes))
    shortened = False
    if numeric:
        labels = labels.str.replace(r"^\d+ ", "")
    elif level > 1:
        parent = np.repeat(above, np.diff(used.start))
        upper = visible_labels(axis.labels[level - 2].gather(parent))
        both = pl.DataFrame({"own": labels, "upper": upper})
        begins = both.select(pl.col("own").str.starts_with(pl.col("upper")).all()).item()
        shortened = bool(begins and (labels != upper).any())
        if shortened:
            labels = labels.str.slice(upper.str.len_chars())
    names = axis.names_of(level)
    named = [] if names is None else [visible_labels(names.gather(used.codes).fill_null(""))]
    return block(
        [
            varints(np.array([int(shortened)])),
            varints(np.diff(used.start)),
            varints(child_start[above + 1] - child_start[above]),
            *("\n".join(each.to_list()).encode() for each in (labels, *named)),
        ]
    )


def area_labels(axis: Axis, level: int, codes: Int32 | Int64) -> list[str]:
    """Return areas as a table shows them: the name, and the code after it; else the code alone."""
    labels = visible_labels(axis.labels[level - 1].gather(codes))
    names = axis.names_of(level)
    if names is None:
        return labels.to_list()
    named = visible_labels(names.gather(codes).fill_null(""))
    return [f"{name} ({code})" if name else code for code, name in zip(labels, named, strict=True)]


def visible_labels(labels: pl.Series) -> pl.Series:
    """Labels as `hedgerow.text.visible` makes each of them."""
    if not labels.str.contains(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]").any():
        return labels
    return pl.Series(labels.name, [visible(label) for label in labels], pl.String)


def local_places(tree: Tree, depth: int, nodes: Nodes, used: UsedCodes, above: Int64) -> Int64:
    """Return each node's place among the used children of its parent's code: int64 (nodes)."""
    number, level = tree.steps[depth - 1]
    child_start = tree.axes[number].child_start[level - 1]
    code = nodes.codes[number].astype(np.int64)
    parent = np.searchsorted(child_start, code, side="right") - 1
    place: Int64 = np.searchsorted(used.codes, code)
    return place - used.start[np.searchsorted(above, parent)]


def varints(values: Int64) -> bytes:
    """Whole numbers of at least 0, each in as few bytes as it needs."""
    left = values.astype(np.uint64)
    length = np.ones(len(left), dtype=np.int64)
    for bits in range(7, 64, 7):
        length += left >= (1 << bits)
    place = np.cumsum(length) - length
    written = np.empty(int(length.sum()), dtype=np.uint8)
    which = np.arange(len(left))
    while len(which):
        more = length[which] > 1
        written[place[which]] = (left[which] & np.uint64(127)) | (more.astype(np.uint64) << 7)
        which = which[more]
        left[which] >>= np.uint64(7)
        length[which] -= 1
        place[which] += 1
    return written.tobytes()


def folded(values: Int64) -> Int64:
    """Whole numbers 0, -1, 1, -2, … as 0, 1, 2, 3, …."""
    return np.where(values < 0, -2 * values - 1, 2 * values)


ROOT = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Carried:
    """Depths 0 … `last` of a release, in memory and as blocks of text.

    Attributes:
        nodes: for each depth its listed counts.
        intervals: and their intervals.
        blocks: names and texts, see `hedgerow.release.page.carried`.
    """

    nodes: list[Nodes] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    blocks: list[tuple[str, str]] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The deepest depth; -1 where not even the total is carried."""
        return len(self.nodes) - 1


def carry(folder: Path, plan: Plan, rows: Sequence[int], *, numeric: bool) -> Carried:
    """Return the depths that fit, their families proved to add up.

    Raises:
        ReleaseError: codes that are not in the domain, or families that do not add up.
    """
    made, room, tree = Carried(), MOST_CHARACTERS, plan.tree
    used = {(a, 0): UsedCodes(ROOT, ROOT) for a in range(len(tree.axes))}
    for t, total in enumerate(np.cumsum(rows).tolist()):
        if total > MOST_NODES_OF_A_PAGE or (numeric and tree.nodes(t) > MOST_NODES_OF_A_PAGE):
            break
        levels = tree.cuboid(t)
        nodes = read_nodes(folder, tree, levels)
        whole = int((made.nodes[0] if made.nodes else nodes).counts.sum())
        errors = CuboidErrors.of(plan, levels, whole)
        interval = _interval(folder, Shape.of(tree, levels), errors)
        if max(interval.high.max(initial=0), nodes.counts.max(initial=0)) >= LARGEST_DOUBLE:
            break
        if t > 0:
            blocks = _blocks(tree, t, (made.nodes[-1], nodes), interval, used, numeric=numeric)
            room -= sum(len(text) for _, text in blocks)
            if room < 0:
                break
            made.blocks.extend(blocks)
        made.nodes.append(nodes)
        made.intervals.append(interval)
    return made


def _blocks(
    tree: Tree,
    depth: int,
    nodes: tuple[Nodes, Nodes],
    interval: Interval,
    used: dict[tuple[int, int], UsedCodes],
    *,
    numeric: bool,
) -> list[tuple[str, str]]:
    number, level = tree.steps[depth - 1]
    axis, above = tree.axes[number], used[number, level - 1].codes
    size = axis.size(level)
    listed = np.bincount(nodes[1].codes[number], minlength=size) > 0
    codes = np.arange(size) if numeric else np.flatnonzero(listed)
    of_level = UsedCodes.of(axis, level, codes, above)
    used[number, level] = of_level
    start = family_starts(tree, depth, *nodes)
    local = local_places(tree, depth, nodes[1], of_level, above)
    blocks = [
        (f"level-{number}-{level}", level_block(axis, level, of_level, above, numeric=numeric)),
        (f"depth-{depth}", depth_block(local, start, nodes[1], interval)),
    ]
    if len(nodes[1]):
        others = intervals_block(interval.high, interval.others)
        blocks.append((f"intervals-{depth}", others))
    if len(interval.contradicted):
        blocks.append((f"contradicted-{depth}", contradicted_block(interval)))
    return blocks


def _interval(folder: Path, shape: Shape, errors: CuboidErrors) -> Interval:
    table = read_counts(folder, shape)
    estimate, variance = table[ESTIMATE].to_numpy(), table[STANDARD_ERROR].to_numpy() ** 2
    flags = errors.contradicted(table[COUNT].to_numpy(), estimate, variance)
    places = np.flatnonzero(flags)
    low, high = table[LOW].to_numpy(), table[HIGH].to_numpy()
    others = other_intervals(errors, estimate, variance, (low, high))
    return Interval(low, high, places, rounded(estimate[places]), others)


def rounded(estimate: Float64) -> Int64:
    """Return estimates as whole numbers that a browser knows: int64 (cells), records."""
    exact = LARGEST_DOUBLE - 1
    return np.clip(np.rint(estimate), -exact, exact).astype(np.int64)
