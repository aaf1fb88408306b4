"""How much a release has done by depth: for the terminal alone, never for a file.

The numbers of cells and survivors are confidential until the release appears, and how long the work
took is so for ever: both tell of the table.
"""

from dataclasses import dataclass, field

HEADINGS = ("depth", "cells", "survivors", "core seconds")


@dataclass(slots=True)
class Tally:
    """Sums by depth of what `hedgerow.release.descent.progress.Progress.on_depth` is told."""

    work: dict[int, tuple[int, int, float]] = field(default_factory=dict)

    def on_depth(self, depth: int, cells: int, survivors: int, seconds: float) -> None:
        """Add what was found at a depth."""
        before = self.work.get(depth, (0, 0, 0.0))
        self.work[depth] = before[0] + cells, before[1] + survivors, before[2] + seconds

    def rows(self) -> list[tuple[str, ...]]:
        """One row a depth: `HEADINGS` in words."""
        return [
            (str(depth), f"{cells:,}", f"{survivors:,}", f"{seconds:,.1f}")
            for depth, (cells, survivors, seconds) in sorted(self.work.items())
        ]
