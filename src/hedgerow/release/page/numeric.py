"""The distribution of a numeric column in a release: its CDF, with the band of its intervals."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.distribution.bin_codes import ranges_of
from hedgerow.errors import ReleaseError, TableError
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.plan import Plan
from hedgerow.release.directory.measurements import Shape, read_counts, read_noisy
from hedgerow.release.distribution.cumulative import Cumulative
from hedgerow.release.page.curves import Line, Scale, even_ticks, legend, picture
from hedgerow.release.page.markup import shown, table
from hedgerow.tables.tree import Tree

MOST_POINTS = 400
MOST_ROWS = 20


def is_numeric(tree: Tree) -> bool:
    """Whether a tree is of one numeric axis, whose codes say their ranges."""
    axis = tree.axes[0]
    if len(tree.axes) > 1 or " [" not in axis.labels[-1][0]:
        return False
    try:
        ranges_of(axis)
    except TableError:
        return False
    return True


@dataclass(frozen=True)
class _Files:
    """The files of a release, as `Cumulative` asks for them."""

    folder: Path
    tree: Tree

    def level(self, *, depth: int) -> pl.DataFrame:
        """The listed counts of a depth."""
        return read_counts(self.folder, Shape.of(self.tree, depth))

    def measurements(self, depth: int) -> NDArray[np.int64]:
        """The noisy counts of a depth."""
        return read_noisy(self.folder, Shape.of(self.tree, depth))


def distribution(folder: Path, plan: Plan) -> str | None:
    """The CDF of a numeric release as HTML; None where it has no band (see `Cumulative`)."""
    try:
        found = Cumulative.of_release(plan, _Files(folder, plan.tree))
    except ReleaseError:
        return None
    ranges = ranges_of(plan.tree.axes[0])
    if found.total == 0:
        return None
    upto = np.arange(found.bins + 1)
    low, high = found.between(np.zeros_like(upto), upto, Confidence())
    part = np.stack([found.released, low, high]) / found.total
    kept = np.unique(np.linspace(0, found.bins, min(found.bins + 1, MOST_POINTS)).astype(int))
    edges = ranges.edges
    line = Line("exact", "released", [(float(edges[i]), float(part[0, i])) for i in kept])
    band = [
        (float(edges[i]), min(float(part[1, i]), 1.0), min(float(part[2, i]), 1.0)) for i in kept
    ]
    first, last = float(edges[0]), float(edges[-1])
    drawn = picture(
        "cdf",
        f"The part of the records below each value of {ranges.name}, rising from 0 to 1, with a "
        "band of 95 % intervals. The table below gives figures.",
        Scale(ranges.name, first, last, even_ticks(first, last)),
        Scale("part of the records below", 0, 1, [(i / 5, f"{20 * i} %") for i in range(6)]),
        [line],
        band=band,
    )
    rows = [
        [
            f"{edges[i]:,.10g}",
            f"{found.released[i]:,}",
            f"{100 * part[0, i]:.2f} %",
            f"{low[i]:,} to {high[i]:,}" if low[i] < high[i] else "exact",
        ]
        for i in np.unique(np.linspace(0, found.bins, MOST_ROWS + 1).astype(int))[1:]
    ]
    figures = table(
        f"Records below a value of {shown(ranges.name)}",
        ["Below", "Records", "Part", "95 % interval of the records"],
        rows,
    )
    return (
        "<figure><figcaption>How many records lie below each value</figcaption>\n"
        f"{drawn}\n{legend([line, Line('band-key', '95 % interval at each edge', [])])}</figure>"
        f"\n{figures}\n<p>Quantiles with intervals: <code>hedgerow distribution DIR</code>.</p>"
    )
