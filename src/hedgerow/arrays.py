"""The arrays that modules pass to each other, by the type of their elements."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
"""Of numbers of any type."""
Bool = NDArray[np.bool_]
Integers = NDArray[np.integer[Any]]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
Float64 = NDArray[np.float64]
Complex128 = NDArray[np.complex128]
IntPair = tuple[Int64, Int64]
FloatPair = tuple[Float64, Float64]
"""Two arrays that go together: numbers and counts, lower and upper ends, rows and columns."""
IntTriple = tuple[Int64, Int64, Int64]
FloatTriple = tuple[Float64, Float64, Float64]
IntArrays = tuple[Int64, ...]
FloatArrays = tuple[Float64, ...]
"""One array for each of several levels, axes or steps."""
WithGradient = tuple[float, Float64]
"""A value, and its derivatives by all that it depends on."""
Numbers = Sequence[float] | Float64
"""Variances and the like, as users or as modules give them."""
Codes = tuple[Int32, ...]
"""Of listed cells the node on each axis: one array an axis."""
CellNumbers = tuple[Codes, Int64]
"""Listed cells, and a number of each: its count, or its place elsewhere."""

Sizes = tuple[int, ...]
"""Whole numbers in their order: one size an axis or level, a place among others."""
Levels = tuple[int, ...]
"""A cuboid: one level of each axis, 0 where it has no part in it."""
CuboidList = tuple[Levels, ...]
OfCuboids = Mapping[Levels, float]
"""Of each of some cuboids one number: its variance, its importance."""

OtherCuboids = Mapping[Levels, Levels]
"""Of each of some cuboids another one: that whose cells it has, its place elsewhere."""

ByLevel = dict[int, Float64]
"""Of each of some levels or depths the numbers of its nodes."""

ByCuboid = Mapping[Levels, Float64]
"""Of each of some cuboids the numbers of its cells."""

Tables = dict[Levels, Float64]
IntTables = dict[Levels, Int64]
"""The same, to be added to or overwritten."""


def int32(values: Any) -> Int32:
    """Return numbers as a new int32 array, always a copy."""
    return np.array(values, dtype=np.int32)


def int64(values: Any) -> Int64:
    """Return numbers as a new int64 array, always a copy."""
    return np.array(values, dtype=np.int64)


def float64(values: Any) -> Float64:
    """Return numbers as a new float64 array, always a copy."""
    return np.array(values, dtype=np.float64)


def int64_zeros(shape: int | Sizes) -> Int64:
    """Return zeros to count or number with."""
    return np.zeros(shape, dtype=np.int64)


def rises(values: Array) -> bool:
    """Return whether each value is above the one before."""
    return bool((values[1:] > values[:-1]).all())


def begins(codes: Sequence[Array]) -> Bool:
    """Return which of listed cells begin a run of equal ones: bool (cells)."""
    starts = np.ones(len(codes[0]), dtype=np.bool_)
    starts[1:] = False
    for code in codes:
        starts[1:] |= code[1:] != code[:-1]
    return starts


def distinct(numbers: Array) -> Array:
    """Return distinct numbers, ascending; `numpy.unique` hashes them, up to 80 times as long."""
    ordered = np.sort(numbers, axis=None)
    return ordered[begins([ordered])]


def some_of(codes: Codes, which: Integers | Bool | slice) -> Codes:
    """Return some of listed cells."""
    return tuple(code[which] for code in codes)


def row_by_row(codes: Codes) -> CellNumbers:
    """Return listed cells by the first axis, then by the next, and the place where each stood."""
    order = np.lexsort(codes[::-1])
    return some_of(codes, order), order


def among(numbers: Int64, wanted: Int64) -> tuple[Int64, Bool]:
    """Return where numbers, 0 or more, stand among ascending ones, and which of them are there."""
    place = np.searchsorted(numbers, wanted)
    return place, np.append(numbers, -1)[place] == wanted


def run_starts(lengths: Integers) -> Int64:
    """Return where runs of given lengths begin, and the end: int64 (runs + 1)."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))


def starts_among(numbers: Integers, many: int) -> Int64:
    """Return where each of ``0 .. many - 1`` begins among ascending numbers, and the end."""
    return np.searchsorted(numbers, np.arange(many + 1))


def run_sums(values: Array, start: Int64) -> Array:
    """Return the sums of runs, none of which is empty, along the first axis."""
    return np.add.reduceat(values, start[:-1])


def starts_of(parts: Iterable[Sized]) -> Int64:
    """Return where parts begin once they stand behind each other: int64 (parts + 1)."""
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def sums_before(values: Array) -> Float64:
    """Return the sum of all values before each, and of all: float64 (values + 1)."""
    return np.append(0.0, np.cumsum(values))


def run_of(start: Int64 | Float64, places: Integers | Float64) -> Int64:
    """Return which run each place is in, the last one that begins there: int64 (places)."""
    return np.searchsorted(start, places, side="right") - 1


def run_numbers(start: Int64) -> Int64:
    """Return of all places in consecutive runs the run that each is in: int64 (places)."""
    return np.repeat(np.arange(len(start) - 1), np.diff(start))


def starts_within(start: Int64, some: range | slice) -> Int64:
    """Return where each of some consecutive runs begins, from 0: int64 (runs + 1)."""
    return np.asarray(start[some.start : some.stop + 1] - start[some.start])


def runs(first: Int64 | int, lengths: Int64) -> Int64:
    """Return the numbers of runs, each from its first one on, one behind the other: int64."""
    start = run_starts(lengths)
    return np.repeat(first - start[:-1], lengths) + np.arange(start[-1])
