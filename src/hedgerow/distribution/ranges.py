"""A numeric column as an axis: public bounds, bins, and a tree over the bins."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, gcd, log10, prod
from typing import Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from hedgerow.arrays import Float64, Int32, Sizes, float64, int32, rises
from hedgerow.declared import Whole
from hedgerow.errors import TableError, check_type, kind_of, outside_limits
from hedgerow.limits import MOST_BINS
from hedgerow.tables.axis import Axis

OutOfBounds = Literal["clamp", "refuse"]
OUT_OF_BOUNDS = get_args(OutOfBounds)
BINS = Whole("the number of bins", 2, MOST_BINS, TableError, ends="[]")
WHOLE_DOUBLES = 1 << 53

Bound = float | Fraction | Decimal


@dataclass(frozen=True, eq=False, init=False)
class Ranges:
    """A numeric column cut into K bins between public bounds.

    Bin i is the half-open interval ``[edges[i], edges[i + 1])``; the last one is closed, so the
    upper bound itself is inside. Edges are doubles: a decimal such as 0.1 stands for the double
    nearest to it, in the edges and in the values alike, so a value that is written like an edge
    lies in the bin that the edge opens. Dates and exact decimals should come as whole numbers
    (days, cents), which doubles hold exactly up to 2^53.

    The edges must be public: chosen without looking at the confidential column.

    Attributes:
        name: of the column, and of the axis.
        edges: float64 (K + 1), strictly increasing, finite.
        out_of_bounds: whether a value outside, infinite ones included, is moved to the nearest
            bound, or refused, which tells whoever sees the refusal that there is one.

    Raises:
        TableError: fewer than 2 bins, edges that do not increase or are not finite.

    Example:
        >>> ages = hr.Ranges("age", [0, 18, 65, 120])
        >>> ages.bins, ages.bin([17.5, 18, 200]).tolist()
        (3, [0, 1, 2])
    """

    name: str
    edges: Float64
    out_of_bounds: OutOfBounds

    def __init__(self, name: str, edges: ArrayLike, out_of_bounds: str = "clamp") -> None:
        check_type("the name of a range", name, str, "a text", TableError)
        numbers = _as_edges(name, edges)
        BINS(len(numbers) - 1, f"range {name!r}: the number of bins")
        if not np.isfinite(numbers).all():
            raise TableError(f"range {name!r}: edges must be finite numbers")
        falls = np.flatnonzero(numbers[1:] <= numbers[:-1])
        if len(falls):
            i = int(falls[0])
            raise TableError(
                f"range {name!r}: edges must increase, but edge {i} is {numbers[i]:.17g} and "
                f"edge {i + 1} is {numbers[i + 1]:.17g}"
            )
        if out_of_bounds not in OUT_OF_BOUNDS:
            raise TableError(
                f"range {name!r}: out_of_bounds must be 'clamp' or 'refuse', got "
                f"{kind_of(out_of_bounds)}"
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "edges", numbers)
        object.__setattr__(self, "out_of_bounds", out_of_bounds)

    @classmethod
    def equal_width(
        cls,
        name: str,
        low: Bound,
        high: Bound,
        bins: int,
        *,
        out_of_bounds: str = "clamp",
    ) -> "Ranges":
        """Return K bins of equal width between two bounds.

        Edge i is the double nearest to ``low + (high - low)·i/K``; a bound that is a double stands
        for the shortest decimal that reads back as it, so 0.1 is one tenth.

        Raises:
            TableError: bounds reversed, equal or not finite, fewer than 2 bins, or bins narrower
                than doubles can tell apart.
        """
        first, last = _as_edges(name, [low, high]).tolist()
        if not first < last or not np.isfinite(last - first):
            raise TableError(
                f"range {name!r}: low must be below high, both finite, got low = {first:.17g} and "
                f"high = {last:.17g}"
            )
        many = BINS(bins, f"range {name!r}: the number of bins")
        edges = _equal_edges(_as_exact(low), _as_exact(high), many)
        if not rises(edges):
            raise TableError(
                f"range {name!r}: {bins} bins between {first:.17g} and {last:.17g} are narrower "
                f"than doubles can tell apart; use fewer"
            )
        return cls(name, edges, out_of_bounds)

    @property
    def bins(self) -> int:
        """K."""
        return len(self.edges) - 1

    @property
    def low(self) -> float:
        """The lower bound, which is inside."""
        return float(self.edges[0])

    @property
    def high(self) -> float:
        """The upper bound, which is inside."""
        return float(self.edges[-1])

    @property
    def decimals(self) -> int:
        """How many decimals a value is shown with: as many as the narrowest bin's width needs."""
        return max(0, ceil(-log10(float(np.diff(self.edges).min()))))

    def bin(self, values: ArrayLike) -> Int32:
        """Return the bin of each value: int32 (values), which is the leaf of `axis`.

        Args:
            values: numbers (values); confidential, so no message shows one of them.

        Raises:
            TableError: values that are no numbers, NaN, or out of bounds if that is refused.
        """
        numbers = _as_numbers(self.name, values)
        if np.isnan(numbers).any():
            raise outside_limits(
                self._column, "has missing values (NaN or null); drop or fill them first"
            )
        if self.out_of_bounds == "refuse" and self.outside(numbers):
            raise outside_limits(
                self._column,
                f"has values outside the public bounds {self.low:.17g} to {self.high:.17g}; set "
                "out_of_bounds = 'clamp' to move them to the nearest bound",
            )
        bins = np.searchsorted(self.edges, numbers, side="right") - 1
        return int32(np.clip(bins, 0, self.bins - 1))

    def outside(self, values: ArrayLike) -> int:
        """Return how many values are outside the bounds. Confidential."""
        numbers = _as_numbers(self.name, values)
        return int(((numbers < self.low) | (numbers > self.high)).sum())

    @property
    def _column(self) -> str:
        return f"range {self.name!r}: the column"

    def axis(self, branching: Sequence[int]) -> Axis:
        """Return the bins as the leaves of a tree, an axis with one level a branching factor.

        A node of level i covers ``M_i = n_{i+1} · … · n_m`` bins, the last of a level those that
        are left: bins from K on do not exist. The code of a node is the number of its first bin,
        zero-padded, so that codes stand in the order of numbers. The levels are called ``bins_M``
        for coarse nodes of M bins and ``bin`` for the leaves.

        Args:
            branching: n_1 … n_m, coarsest first, at least 2 each, with a product of at least K; a
                level that would have one node alone (all bins) is refused.

        Raises:
            TableError: factors that break these rules.
        """
        factors = tuple(branching)
        widths = self._widths(factors)
        digits = len(str(self.bins - 1))
        levels = tuple(["bin" if width == 1 else f"bins_{width}" for width in widths])
        labels = []
        child_start = []
        upper = 1
        for level, width, n in zip(levels, widths, factors, strict=True):
            size = -(-self.bins // width)
            first = pl.Series(level, np.arange(size, dtype=np.int64) * width)
            labels.append(first.cast(pl.String).str.zfill(digits))
            child_start.append(np.minimum(np.arange(upper + 1, dtype=np.int64) * n, size))
            upper = size
        columns = tuple(f"{self.name}_{level}" for level in levels)
        return Axis(self.name, levels, columns, tuple(labels), tuple(child_start))

    def _widths(self, factors: Sizes) -> list[int]:
        """Return how many bins a node of each level covers."""
        if not factors or any(not isinstance(n, int) or n < 2 for n in factors):
            raise TableError(
                f"range {self.name!r}: branching factors must be whole numbers of at least 2, "
                f"got {list(factors)}"
            )
        leaves = prod(factors)
        if leaves < self.bins:
            raise TableError(
                f"range {self.name!r}: branching factors {list(factors)} make {leaves} leaves, "
                f"fewer than the {self.bins} bins"
            )
        widths = [leaves := leaves // n for n in factors]
        if widths[0] >= self.bins:
            raise TableError(
                f"range {self.name!r}: with factors {list(factors)} one node of the first level "
                f"covers all {self.bins} bins; leave the first factor out"
            )
        return widths


def _as_edges(name: str, edges: ArrayLike | list[Bound]) -> Float64:
    """Return a private copy that nobody can change."""
    try:
        numbers = float64(edges)
    except (TypeError, ValueError, OverflowError) as error:
        raise TableError(f"range {name!r}: bounds and edges must be numbers") from error
    if numbers.ndim != 1:
        raise TableError(f"range {name!r}: edges must be one list of numbers")
    numbers.flags.writeable = False
    return numbers


def _as_exact(bound: Bound) -> Fraction:
    """Return the rational number of a finite bound."""
    if isinstance(bound, int | Fraction | Decimal):
        return Fraction(bound)
    return Fraction(repr(float(bound)))


def _equal_edges(low: Fraction, high: Fraction, bins: int) -> Float64:
    """Return the doubles nearest to ``low + (high - low)·i/K = (start + i·step)/below``.

    Python rounds a quotient of whole numbers exactly; doubles do if both are below 2^53.
    """
    below = bins * low.denominator * high.denominator
    start = int(low * below)
    step = int((high - low) * below) // bins
    shared = gcd(start, step, below)
    start, step, below = start // shared, step // shared, below // shared
    if max(abs(start), abs(start + bins * step), below) < WHOLE_DOUBLES:
        return (start + step * np.arange(bins + 1, dtype=np.int64)) / below
    edges = ((start + i * step) / below for i in range(bins + 1))
    return np.fromiter(edges, dtype=np.float64, count=bins + 1)


def _as_numbers(name: str, values: Any) -> Float64:
    """Return float64 (values), masked ones NaN."""
    if isinstance(values, pl.Series):
        values = values.to_numpy()
    if isinstance(values, np.ma.MaskedArray):
        whole = values.dtype.kind in "iuf"
        values = np.ma.filled(values.astype(np.float64), np.nan) if whole else None
    try:
        array = np.asarray(values)
        whole = array.dtype.kind in "iuf" or array.size == 0
        numbers = float64(array) if whole else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise outside_limits(f"range {name!r}:", "the column must be one list of numbers")
    if numbers.ndim != 1:
        raise TableError(f"range {name!r}: the column must be one list of numbers")
    return numbers
