"""Where the frames of a release come from: memory or a directory."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.intervals import Confidence
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Noisy
from hedgerow.release.directory import measurements
from hedgerow.release.directory.depth_errors import certainty
from hedgerow.release.directory.manifest import MANIFEST, file_names, write_manifest
from hedgerow.release.directory.measurements import ReleaseFiles, Shape, released_columns
from hedgerow.release.directory.output import whole_or_not
from hedgerow.release.directory.part_names import check_plain
from hedgerow.release.page.report import write_report
from hedgerow.tables.counts import labelled

Int64 = NDArray[np.int64]


class Content(Protocol):
    """Where the frames of a release come from: memory or a directory."""

    def counts(self, depth: int) -> pl.DataFrame:
        """The positive released counts of a depth, in tree order: the columns of its file."""

    def noisy(self, depth: int) -> Int64:
        """The noisy counts of a measured depth."""

    def write(self, directory: Path) -> None:
        """Make a release directory."""


@dataclass(frozen=True)
class InMemory:
    """A release in memory: for each depth the survivors, and noisy counts."""

    plan: Plan
    estimator: Estimator
    nodes: dict[int, Nodes]
    measured: dict[int, Noisy]

    def counts(self, depth: int) -> pl.DataFrame:
        """The positive released counts of a depth with their codes."""
        nodes, total = self.nodes[depth], int(self.nodes[0].counts.sum())
        known = certainty(self.plan.to_dict(), depth, total)
        columns = released_columns(nodes, known, Confidence())
        return labelled(self.plan.tree, depth, nodes.codes, **columns)

    def noisy(self, depth: int) -> Int64:
        """The noisy counts of a measured depth."""
        return cast("Int64", self.measured[depth])

    def write(self, directory: Path) -> None:
        """Write the files beside their place and let them appear there in one rename."""
        with whole_or_not(directory) as folder:
            with ReleaseFiles(folder, self.plan) as files:
                for t, nodes in self.nodes.items():
                    files.add(t, nodes, self.measured.get(t))
            write_report(folder, self.plan, self.estimator)
            write_manifest(folder, self.plan, self.estimator)


@dataclass(frozen=True)
class OnDisk:
    """A release in a directory.

    Attributes:
        folder: the directory.
        shapes: of its depths.
    """

    folder: Path
    shapes: tuple[Shape, ...]

    def counts(self, depth: int) -> pl.DataFrame:
        """The positive released counts of a depth with their codes."""
        return measurements.read_counts(self.folder, self.shapes[depth])

    def noisy(self, depth: int) -> Int64:
        """The noisy counts of a measured depth."""
        return measurements.read_noisy(self.folder, self.shapes[depth])

    def write(self, directory: Path) -> None:
        """Copy the directory."""
        with whole_or_not(directory) as folder:
            for name in [*file_names(self.folder), MANIFEST]:
                check_plain(self.folder, self.folder / name)
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.folder / name, folder / name)
