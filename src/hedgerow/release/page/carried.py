"""What a page carries for its scripts: columns of whole numbers and texts, deflated, in base64.

A block is a sequence of parts. It begins with their number and their lengths in bytes (uint32,
little-endian); numbers within a part are of variable length, seven bits a byte, lowest first.
"""

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.arrays import Float64, Int32, Int64, IntArrays, IntPair, Levels, int64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.limits import MOST_BYTES_OF_A_BLOCK
from hedgerow.pages.catalogue import Catalogue
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.tables.axis import Axis
from hedgerow.tables.maps.shapes import Shapes
from hedgerow.text import Json, visible

OTHERS = (Confidence(0.90), Confidence(0.99))
"""The intervals that a reader can choose beside the usual ones: below these and above.

The files list 95 % intervals. The others are made anew from the estimates and standard errors
beside them, as `Release.level` makes them."""

Block = tuple[str, str]
"""The name of a block and its text."""
Ends = IntPair
"""Where intervals begin and end: two int64 (cells), records."""


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
    ends = 4 * (count + 1) + int64(np.cumsum(np.frombuffer(whole, "<u4", count, 4)))
    starts = [4 * (count + 1), *ends[:-1].tolist()]
    if ends[-1] != len(whole):
        raise ReleaseError("a block of the page holds more than its parts")
    return [whole[first:last] for first, last in zip(starts, ends.tolist(), strict=True)]


@dataclass(frozen=True, eq=False)
class Cells:
    """The listed cells of a cuboid, row by row.

    Attributes:
        places: for each axis int64 (cells): the cell's place among the used codes of its level.
        flat: int64 (cells), ascending: its number in row-major order of these.
        counts: int64 (cells), records.
        low, high: int64 (cells), records: their intervals.
        estimate: int64 (cells), records: their unbiased estimates, rounded.
        contradicted: bool (cells): whether their own measurements contradict them.
        exact: bool (cells): whether no noise is in them, as public counts and facts have none.
        others: the other intervals that a reader can choose.
    """

    places: IntArrays
    flat: Int64
    counts: Int64
    low: Int64
    high: Int64
    estimate: Int64
    contradicted: NDArray[np.bool_]
    exact: NDArray[np.bool_]
    others: Sequence[Ends] = ()

    def __len__(self) -> int:
        return len(self.counts)

    def sentence(self, say: Catalogue, i: int, *, worded: bool = True) -> list[str]:
        """Return a count, its interval and its estimate as HTML.

        Args:
            say: the texts of the page.
            i: the cell.
            worded: whether a count without noise is called exact.
        """
        count, low, high, estimate = (
            int(each[i]) for each in (self.counts, self.low, self.high, self.estimate)
        )
        said = say.number(count)
        if self.contradicted[i]:
            doubt = say("release.contradicted", estimate=estimate)
            said += f'<small class="doubt">{doubt}</small>'
        sure = say("script.exact") if worded and self.exact[i] else say.between(low, high)
        return [said, sure, say.number(estimate)]


def other_intervals(
    errors: CuboidErrors, estimate: Float64, variance: Float64, usual: Ends
) -> list[Ends]:
    """Return the other intervals of some counts, which lie within one another.

    Args:
        errors: of their cuboid.
        estimate: float64 (cells), records: unbiased.
        variance: float64 (cells), records².
        usual: the 95 % intervals of the files.
    """
    narrow, wide = (errors.interval(estimate, variance, each) for each in OTHERS)
    low, high = usual
    return [
        (np.maximum(narrow[0], low), np.minimum(narrow[1], high)),
        (np.minimum(wide[0], low), np.maximum(wide[1], high)),
    ]


def cell_blocks(levels: Levels, cells: Cells) -> Iterator[Block]:
    """Yield the blocks of a cuboid.

    Its cells are written as the usual width of intervals, the gaps between their numbers, counts,
    ends of intervals, and estimates beyond the middle of these; other intervals as what is left
    when the usual reach beyond these is taken off, which is little.
    """
    name = "-".join(map(str, levels))
    width, ends = _ends(cells.counts, cells.low, cells.high)
    off = varints(folded(cells.estimate - (cells.high - width // 2)))
    head = [varints(np.array([width])), _gaps(cells.flat), varints(cells.counts)]
    yield f"cuboid-{name}", block([*head, *ends, off])
    parts = []
    for low, high in cells.others:
        beyond = most_often(high - cells.high)
        width, ends = _ends(cells.high + beyond, low, high)
        parts += [varints(np.array([folded(np.array(beyond)), width])), *ends]
    if len(cells):
        yield f"intervals-{name}", block(parts)
    for kind, own in (("contradicted", cells.contradicted), ("exact", cells.exact)):
        if own.any():
            yield f"{kind}-{name}", block([_gaps(np.flatnonzero(own))])


def _gaps(numbers: Int64) -> bytes:
    """Return ascending numbers as how many are left out before each."""
    return varints(np.diff(numbers, prepend=-1) - 1)


def _ends(base: Int64, low: Int64, high: Int64) -> tuple[int, list[bytes]]:
    """Return the usual width of intervals, and as parts of a block what is left of their ends.

    Most intervals of a cuboid have one width w, and their lower ends are cut off at 0; so of a
    lower end it is written how far it is from ``max(0, high - w)``, of an upper one from the base.
    """
    width = most_often((high - low)[low > 0])
    left = high - base, low - np.maximum(0, high - width)
    return width, [varints(folded(each)) for each in left]


def most_often(values: Int64) -> int:
    """Return the commonest of some whole numbers; 0 of none."""
    distinct, often = np.unique(values, return_counts=True)
    return int(distinct[np.argmax(often)]) if len(distinct) else 0


def level_block(axis: Axis, level: int, used: Int64, above: Int64, *, numeric: bool) -> str:
    """Return the codes of a level: family sizes, used and possible, and their labels, one a line.

    Where every label begins with that of its parent, the rest alone is written. The ranges of a
    numeric axis are written without the number before them. Names follow where the level has any,
    one a line, empty where a code has none.

    Args:
        axis: of the level.
        level: of the axis.
        used: int64 (used), ascending: the codes of the level that the page speaks of.
        above: the same of the level above.
        numeric: whether they are ranges of a column.
    """
    first, end = (axis.child_start[level - 1][above + k] for k in (0, 1))
    families = np.diff(np.searchsorted(used, np.append(first, end[-1:])))
    labels = visible_labels(axis.labels[level - 1].gather(used))
    shortened = False
    if numeric:
        labels = labels.str.replace(r"^\d+ ", "")
    elif level > 1:
        parent = np.repeat(above, families)
        upper = visible_labels(axis.labels[level - 2].gather(parent))
        both = pl.DataFrame({"own": labels, "upper": upper})
        begins = both.select(pl.col("own").str.starts_with(pl.col("upper")).all()).item()
        shortened = bool(begins and (labels != upper).any())
        if shortened:
            labels = labels.str.slice(upper.str.len_chars())
    names = axis.names_of(level)
    named = [] if names is None else [visible_labels(names.gather(used).fill_null(""))]
    return block(
        [
            varints(np.array([int(shortened)])),
            varints(families),
            varints(end - first),
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


def varints(values: Int64) -> bytes:
    """Whole numbers of at least 0, each in as few bytes as it needs."""
    largest = int(values.max(initial=1))
    left = values[:, None] >> np.arange(0, largest.bit_length(), 7)
    is_written = left > 0
    is_written[:, 0] = True
    written = (left & 127).astype(np.uint8)
    written[:, :-1] |= is_written[:, 1:].astype(np.uint8) << 7  # where more bytes follow
    return written[is_written].tobytes()


def folded(values: Int64) -> Int64:
    """Whole numbers 0, -1, 1, -2, … as 0, 1, 2, 3, …."""
    return np.where(values < 0, -2 * values - 1, 2 * values)


def carry_maps(plan: Plan) -> tuple[list[Json], list[Block]]:
    """Return the shapes of all axes that have some, for the script that draws a map of them.

    Returns:
        For each of these axes what the script starts from, and the blocks; the same shapes once.
    """
    axes = []
    blocks = dict[str, str]()
    for number, axis in enumerate(plan.tree.axes):
        if (shapes := axis.shapes) is not None:
            parts = [*_shape_parts(shapes), *_size_parts(shapes), *_code_parts(axis, shapes.level)]
            text = block(parts)
            name = blocks.setdefault(text, f"shapes-{number}")
            about = ("level", "geographic", "scale", "translate")
            given = {each: getattr(shapes, each) for each in about}
            axes.append({"axis": number, "block": name, **given})
    return axes, [(name, text) for text, name in blocks.items()]


def _shape_parts(shapes: Shapes) -> list[bytes]:
    """Return borders and the rings that they make: sizes, steps from point to point, and numbers.

    Polygons of each area, rings of each polygon, arcs of each ring, and these: ~i is arc i, turned.
    """
    steps = np.diff(shapes.points, axis=0, prepend=0)
    first = shapes.arc_start[:-1]
    steps[first] = np.diff(shapes.points[first], axis=0, prepend=0)
    polygons = [polygon for area in shapes.areas for polygon in area]
    rings = [ring for polygon in polygons for ring in polygon]
    return [
        varints(np.diff(shapes.arc_start)),
        varints(folded(steps[:, 0])),
        varints(folded(steps[:, 1])),
        *(varints(np.array([*map(len, each)])) for each in (shapes.areas, polygons, rings)),
        varints(folded(int64([arc for ring in rings for arc in ring]))),
    ]


def _size_parts(shapes: Shapes) -> list[bytes]:
    """Return how large areas are: four digits, and by which power of 10 they are square metres."""
    if shapes.km2 is None:
        return [b"", b""]
    metres = np.rint(1e6 * shapes.km2)
    powers = int64(np.maximum(np.floor(np.log10(np.maximum(metres, 1))) - 3, 0))
    return [varints(int64(np.rint(metres / 10.0**powers))), varints(powers)]


def _code_parts(axis: Axis, finest: int) -> list[bytes]:
    """Return for each level down to one: family sizes, codes, and names where it has any."""
    parts = []
    for level in range(1, finest + 1):
        names = axis.names_of(level)
        parts += [
            varints(np.diff(axis.child_start[level - 1])),
            "\n".join(visible_labels(axis.labels[level - 1])).encode(),
            b"" if names is None else "\n".join(visible_labels(names.fill_null(""))).encode(),
        ]
    return parts
