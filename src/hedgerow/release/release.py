"""`Release`: what came out of a plan and a table, for those outside too."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from hedgerow.arrays import Int64
from hedgerow.errors import ReleaseError, did_you_mean, kind_of
from hedgerow.estimate.intervals import Confidence
from hedgerow.release.cuboid import cuboid_errors, depth_of_cuboid
from hedgerow.release.directory.depth_errors import certainty
from hedgerow.release.directory.manifest import read_manifest
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
)
from hedgerow.release.directory.output import InMemory, OnDisk
from hedgerow.release.directory.stored import shapes_of

USUAL = Confidence()
SURENESS = (ESTIMATE, STANDARD_ERROR, LOW, HIGH, CONTRADICTED)


@dataclass(frozen=True)
class Release:
    """A release: counts that are non-negative integers and add up at every level.

    Attributes:
        plan: the plan as JSON: tree, depths, guarantee.
        content: where the frames come from.
    """

    plan: Mapping[str, Any]
    content: InMemory | OnDisk = field(repr=False)

    def __repr__(self) -> str:
        depths = ", ".join(what["cuboid"] for what in self.plan["depths"])
        return f"Release({depths}; {self._total():,} records released)"

    @property
    def columns(self) -> dict[str, list[str]]:
        """The label columns of each axis, coarsest level first."""
        return {axis["name"]: axis["columns"] for axis in self.plan["tree"]["axes"]}

    def level(
        self,
        level: str | None = None,
        *,
        depth: int | None = None,
        confidence: Confidence | None = None,
    ) -> pl.DataFrame:
        """The released counts of one depth of the tree, and how sure they are.

        Args:
            level: a depth by the name that the plan shows, such as ``"county"``; or
            depth: its number, 0 being everything.
            confidence: of the intervals, 95 % for each of them unless given.

        Returns:
            One row a node with a positive count, in tree order: its codes under the table's own
            column names, ``count`` (records), the unbiased ``estimate`` below it and its
            ``standard_error``, and ``low`` and ``high``: with the given confidence, over all
            measured nodes and not only those listed, the true count is one of low..high (see
            `hedgerow.estimate.intervals`). The count itself may lie outside by chance; where it is
            ``contradicted``, that is no chance: it lies outside the intervals that hold for all
            nodes of the depth at once (see `hedgerow.release.directory.depth_errors`), and the
            estimate is the better number. A node that is not listed has a count of 0.

        Raises:
            ReleaseError: no such depth, or a confidence that is a bare number.
        """
        check_confidence(confidence)
        number = self._depth(level, depth)
        frame = self.content.counts(number)
        known = certainty(self.plan, number, self._total())
        estimate, variance = frame[ESTIMATE].to_numpy(), frame[STANDARD_ERROR].to_numpy() ** 2
        if confidence is not None:
            low, high = known.interval(estimate, variance, confidence)
            frame = frame.with_columns(pl.Series(LOW, low), pl.Series(HIGH, high))
        sure = (confidence or USUAL).coverage
        flags = known.contradicted(frame[COUNT].to_numpy(), estimate, variance, sure)
        return frame.with_columns(pl.Series(CONTRADICTED, flags))

    def _total(self) -> int:
        return int(self.content.counts(0)[COUNT].sum())

    def cuboid(self, confidence: Confidence | None = USUAL, /, **levels: str) -> pl.DataFrame:
        """The released counts by any choice of one level an axis, and how sure they are.

        Args:
            confidence: of the intervals, 95 % for each of them unless given; None for the counts
                alone, which is cheap whatever the size of the release.
            levels: axis = level; an axis that is not named is summed over.

        Returns:
            One row a combination with a positive count, sorted by its codes: these, ``count``,
            ``estimate``, ``standard_error``, ``low``, ``high`` and ``contradicted``. Of a depth of
            the tree they are those of `level`; of others see `hedgerow.release.cuboid`, which says
            what they assume where the plan measures survivors alone: there no unbiased estimate
            exists, and ``estimate`` and ``contradicted`` are null.

        Raises:
            ReleaseError: no such axis or level; too many noisy counts for errors off the tree.
        """
        check_confidence(confidence)
        columns = self._columns(levels)
        depth = depth_of_cuboid(self.plan, levels)
        if confidence is None:
            leaves = self.content.counts(len(self.plan["depths"]) - 1)
            if not columns:
                return leaves.select(pl.col(COUNT).sum())
            return leaves.group_by(columns).agg(pl.col(COUNT).sum()).sort(columns)
        if depth is not None:
            found = self.level(depth=depth, confidence=confidence)
        else:
            every = cuboid_errors(self.content, levels, confidence)
            found = every.filter(pl.col(COUNT) > 0)
        found = found.select(*columns, COUNT, *SURENESS)
        return found.sort(columns) if columns else found

    def _columns(self, levels: Mapping[str, str]) -> list[str]:
        """The label columns of a cuboid, in the order in which its axes were named."""
        columns: list[str] = []
        for name, level in levels.items():
            axis = {axis["name"]: axis for axis in self.plan["tree"]["axes"]}.get(name)
            if axis is None or level not in axis["levels"]:
                known = self.columns if axis is None else axis["levels"]
                given = name if axis is None else level
                raise ReleaseError(
                    f"no {'axis' if axis is None else f'level of axis {name!r}'} is called "
                    f"{given!r}; there are {', '.join(known)}{did_you_mean(given, known)}"
                )
            columns += axis["columns"][: axis["levels"].index(level) + 1]
        return columns

    def measurements(self, depth: int) -> Int64:
        """The noisy counts of a measured depth: int64 (children of the survivors above it).

        Of a plan that measures running sums, the noisy sums of its bins.
        """
        kind = self.plan["depths"][self._depth(None, depth)]["kind"]
        if kind not in {"measured", "summed"}:
            raise ReleaseError(f"depth {depth} is {kind}; it has no noisy counts")
        return self.content.noisy(depth)

    def write(self, directory: str | Path) -> None:
        """Make a release directory; it appears whole or not at all.

        Raises:
            ReleaseError: the directory exists.
            MachineError: the disk is full or not writable.
        """
        self.content.write(Path(directory))

    def _depth(self, level: str | None, depth: int | None) -> int:
        names = [what["cuboid"] for what in self.plan["depths"]]
        if (level is None) == (depth is None):
            raise ReleaseError('name one depth: level("county") or level(depth=2)')
        if level is not None and level in names:
            return names.index(level)
        if depth is not None and 0 <= depth < len(names):
            return depth
        found = None if level is None else axis_level(self.plan, level)
        if found is not None:
            axis, name = found
            raise ReleaseError(
                f"no depth {level!r}; it is a level of axis {axis!r}, summed over the others: "
                f"release.cuboid({axis}={json.dumps(name, ensure_ascii=False)})"
            )
        raise ReleaseError(
            f"no depth {level if depth is None else depth!r}; there are "
            f"{', '.join(f'{t} ({name})' for t, name in enumerate(names))}"
            f"{did_you_mean(level, names) if level is not None else ''}"
        )


def check_confidence(confidence: object) -> None:
    """Refuse a level of the table, or a bare number, in place of a confidence.

    Raises:
        ReleaseError: it is one.
    """
    if confidence is not None and not isinstance(confidence, Confidence):
        raise ReleaseError(
            f"a confidence is Confidence(0.99), got {kind_of(confidence)}; levels are named by "
            f'their axes: cuboid(origin="region")'
        )


def axis_level(plan: Mapping[str, Any], level: str) -> tuple[str, str] | None:
    """The first axis that has a level ``region`` or ``origin.region``, and its name there."""
    for axis in plan["tree"]["axes"]:
        for name in axis["levels"]:
            if level in {name, f"{axis['name']}.{name}"}:
                return axis["name"], name
    return None


def read_release(directory: str | Path) -> Release:
    """The release in a directory.

    Raises:
        ReleaseError: there is none, or its manifest is damaged.
    """
    folder = Path(directory)
    plan = read_manifest(folder)["plan"]
    return Release(plan, OnDisk(folder, shapes_of(plan)))
