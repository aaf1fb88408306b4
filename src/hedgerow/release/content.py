"""Where the frames of a release come from: memory or a directory."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.plan.plan import Plan
from hedgerow.release import measurements
from hedgerow.release.manifest import write_manifest
from hedgerow.release.measurements import COUNT, ReleaseFiles
from hedgerow.release.staging import whole_or_not
from hedgerow.tables.counts import labelled
from hedgerow.tables.order import Codes

Int64 = NDArray[np.int64]


class Content(Protocol):
    """Where the frames of a release come from: memory or a directory."""

    def counts(self, depth: int) -> pl.DataFrame:
        """The positive released counts of a depth with their codes, in tree order."""

    def noisy(self, depth: int) -> Int64:
        """The noisy counts of a measured depth."""

    def write(self, directory: Path) -> None:
        """Make a release directory."""


@dataclass(frozen=True)
class InMemory:
    """A release in memory: for each depth node codes and counts, and noisy counts."""

    plan: Plan
    estimator: str
    nodes: dict[int, tuple[Codes, Int64]]
    measured: dict[int, Int64]

    def counts(self, depth: int) -> pl.DataFrame:
        """The positive released counts of a depth with their codes."""
        codes, values = self.nodes[depth]
        return labelled(self.plan.tree, depth, codes, **{COUNT: values})

    def noisy(self, depth: int) -> Int64:
        """The noisy counts of a measured depth."""
        return self.measured[depth]

    def write(self, directory: Path) -> None:
        """Write the files beside their place and let them appear there in one rename."""
        with whole_or_not(directory) as folder:
            with ReleaseFiles(folder, self.plan) as files:
                for t, (codes, values) in self.nodes.items():
                    files.add(t, codes, values, self.measured.get(t))
            write_manifest(folder, self.plan, self.estimator)


@dataclass(frozen=True)
class OnDisk:
    """A release in a directory."""

    folder: Path

    def counts(self, depth: int) -> pl.DataFrame:
        """The positive released counts of a depth with their codes."""
        return measurements.read_counts(self.folder, depth)

    def noisy(self, depth: int) -> Int64:
        """The noisy counts of a measured depth."""
        return measurements.read_noisy(self.folder, depth)

    def write(self, directory: Path) -> None:
        """Copy the directory."""
        with whole_or_not(directory) as folder:
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)
