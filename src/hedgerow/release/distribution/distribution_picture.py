"""A picture of a distribution: its CDF with the band of its intervals."""

from pathlib import Path

import numpy as np

from hedgerow.errors import ReleaseError
from hedgerow.estimate.intervals import Confidence
from hedgerow.picture import BLUE, figure_for, open_axes
from hedgerow.release.distribution.distribution import Distribution

MOST_POINTS = 4_000


def picture_of_distribution(
    distribution: Distribution,
    path: Path,
    *,
    confidence: Confidence | None = None,
    title: str | None = None,
) -> None:
    """Draw the released CDF at the bins' edges, and the interval at each of them.

    Args:
        distribution: what was released.
        path: PNG, SVG or PDF.
        confidence: of the band; 95 % at each edge unless given.
        title: above the picture.

    Raises:
        ReleaseError: matplotlib is not installed, or the file cannot be written.
    """
    confidence = confidence or Confidence()
    band = distribution.band(confidence)
    kept = np.unique(np.linspace(0, len(band) - 1, min(len(band), MOST_POINTS)).astype(np.int64))
    total = max(distribution.cumulative.total, 1)
    x = np.append(distribution.ranges.low, band["upper"].to_numpy()[kept])
    low, cdf, high = (
        np.append(0.0, band[name].to_numpy()[kept] / total) for name in ("low", "count", "high")
    )
    with figure_for(path, (8, 4.6), ReleaseError) as figure:
        axes = figure.subplots()
        kind = "all edges at once" if confidence.simultaneous else "each edge"
        axes.fill_between(
            x, low, np.minimum(high, 1.05), alpha=0.25, lw=0, color=BLUE,
            label=f"{100 * confidence.level:g} % interval ({kind})",
        )  # fmt: skip
        axes.plot(x, cdf, color=BLUE, lw=1.3, label="released")
        axes.set(
            xlabel=distribution.ranges.name, ylabel="part of the records below", ylim=(0, 1.02)
        )
        axes.set_xlim(x[0], x[-1])
        axes.legend(loc="lower right", frameon=False)
        open_axes(axes)
        if title is not None:
            axes.set_title(title, fontsize=10)
