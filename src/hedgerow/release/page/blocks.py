"""Counts as a page carries them: columns of small whole numbers, deflated, in base64.

A block is a sequence of parts. It begins with their number and their lengths in bytes (uint32,
little-endian); numbers within a part are of variable length, seven bits a byte, lowest first.
"""

import base64
import zlib
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import ReleaseError
from hedgerow.release.descent.nodes import Nodes
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from hedgerow.text import visible

Int64 = NDArray[np.int64]

MOST_BYTES = 1 << 28
"""Of a block: a damaged page must not fill the memory."""

LARGEST_SCRIPT_NUMBER = 1 << 53
"""Whole numbers up to here are exact in a browser."""


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """How sure the counts of a depth are.

    Attributes:
        low, high: int64 (nodes), records: their intervals.
        contradicted: int64, ascending: which counts their own measurements contradict.
        estimate: int64, records: the unbiased estimates of those, rounded.
    """

    low: Int64
    high: Int64
    contradicted: Int64
    estimate: Int64

    def told(self) -> dict[int, int]:
        """The rounded estimate of each count that is contradicted, by its place."""
        return dict(zip(self.contradicted.tolist(), self.estimate.tolist(), strict=True))


def block(parts: list[bytes]) -> str:
    """The parts as text."""
    sizes = np.array([len(parts), *map(len, parts)], dtype="<u4").tobytes()
    squeezed = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(
        squeezed.compress(b"".join([sizes, *parts])) + squeezed.flush()
    ).decode()


def parts_of(text: str, most: int = MOST_BYTES) -> list[bytes]:
    """What `block` was given, of at most some bytes.

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
    """The nodes of a depth: family sizes, places among siblings, counts and intervals.

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
    low, high = interval.low, interval.high
    widths, often = np.unique((high - low)[low > 0], return_counts=True)
    width = int(widths[np.argmax(often)]) if len(widths) else 0
    usual = np.maximum(0, high - width)
    return block(
        [
            varints(np.array([width])),
            varints(np.diff(start)),
            varints(step - 1),
            varints(nodes.counts),
            varints(_folded(high - nodes.counts)),
            varints(_folded(low - usual)),
        ]
    )


def contradicted_block(interval: Interval) -> str:
    """Which nodes of a depth have counts that are contradicted, and their estimates."""
    gaps = np.diff(interval.contradicted, prepend=-1) - 1
    return block([varints(gaps), varints(_folded(interval.estimate))])


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
        """Those of a level below those above it."""
        child_start = axis.child_start[level - 1]
        start = np.searchsorted(codes, child_start[above])
        return cls(codes, np.append(start, len(codes)).astype(np.int64))


def level_block(axis: Axis, level: int, used: UsedCodes, above: Int64, *, numeric: bool) -> str:
    """The codes of a level: family sizes, used and possible, and their labels, one a line.

    Where every label begins with that of its parent, the rest alone is written. The ranges of a
    numeric axis are written without the number before them.
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
    return block(
        [
            varints(np.array([int(shortened)])),
            varints(np.diff(used.start)),
            varints(child_start[above + 1] - child_start[above]),
            "\n".join(labels.to_list()).encode(),
        ]
    )


def visible_labels(labels: pl.Series) -> pl.Series:
    """Labels as `hedgerow.text.visible` makes each of them."""
    if not labels.str.contains(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]").any():
        return labels
    return pl.Series(labels.name, [visible(label) for label in labels], pl.String)


def local_places(tree: Tree, depth: int, nodes: Nodes, used: UsedCodes, above: Int64) -> Int64:
    """For each node its place among the used children of its parent's code: int64 (nodes)."""
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


def _folded(values: Int64) -> Int64:
    """Whole numbers 0, -1, 1, -2, … as 0, 1, 2, 3, …."""
    return np.where(values < 0, -2 * values - 1, 2 * values)
