"""A release in memory, before it is written or without a directory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from hedgerow.arrays import Int64, Levels
from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import NodesOf
from hedgerow.release.directory.manifest import write_manifest
from hedgerow.release.directory.measurements import COUNT, ReleaseFiles
from hedgerow.release.directory.output import whole_or_not
from hedgerow.release.directory.stored import Content
from hedgerow.release.page.report import write_report
from hedgerow.release.passes import ESTIMATION
from hedgerow.tables.counts import label_nodes


@dataclass(frozen=True)
class InMemory(Content):
    """A release in memory.

    Attributes:
        plan: what was measured with which noise.
        estimator: what made the counts.
        nodes: for each cuboid the listed nodes with their counts.
        measured: for each measured cuboid its noisy counts.
        estimation: the version of the estimation that made the counts.
    """

    plan: Plan
    estimator: Estimator
    nodes: NodesOf
    measured: Mapping[Levels, Int64]
    estimation: int = ESTIMATION

    @property
    def noisy_cells(self) -> int:
        """How many noisy counts there are."""
        return sum(map(len, self.measured.values()))

    def counts(self, levels: Levels) -> pl.DataFrame:
        """Return the listed counts of a cuboid, in tree order: the columns of its file."""
        return self.told(levels, self.nodes[levels])

    def parts(self, levels: Levels, rows: int) -> Iterator[pl.DataFrame]:
        """Yield codes and counts of a cuboid in tree order, at most so many rows at a time."""
        nodes = self.nodes[levels]
        for first in range(0, len(nodes), rows):
            part = nodes.take(slice(first, first + rows))
            yield label_nodes(self.plan.tree, levels, part.codes, **{COUNT: part.counts})

    def write(self, directory: Path) -> None:
        """Write a release directory."""
        with whole_or_not(directory) as folder:
            with ReleaseFiles(folder, self.plan) as files:
                for levels, nodes in self.nodes.items():
                    files.add(levels, nodes, self.measured.get(levels))
            write_report(folder, self.plan, self.estimator)
            write_manifest(folder, self.plan, self.estimator)
