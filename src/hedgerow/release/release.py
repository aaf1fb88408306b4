"""`release`: execute a plan on a table. `Release`: what came out, for those outside too."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.errors import (
    BudgetError,
    PlanError,
    ReleaseError,
    machine_errors,
    nearest,
)
from hedgerow.estimate.chebyshev import Chebyshev
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.intervals import Confidence
from hedgerow.noise.bits import Bits, ReleaseKey
from hedgerow.plan.plan import Plan
from hedgerow.plan.prior import refuse_own_table
from hedgerow.release.again import check_combines, check_range
from hedgerow.release.certainty import certainty
from hedgerow.release.charging import Charging
from hedgerow.release.content import InMemory, OnDisk
from hedgerow.release.cuboid import cuboid_errors, depth_of_cuboid
from hedgerow.release.kept import KeptOnDisk
from hedgerow.release.manifest import read_manifest, write_manifest
from hedgerow.release.measurements import COUNT, ESTIMATE, HIGH, LOW, STANDARD_ERROR, ReleaseFiles
from hedgerow.release.report import write_report
from hedgerow.release.source import Drawn
from hedgerow.release.staging import (
    Staging,
    Unfinished,
    open_staging,
)
from hedgerow.release.summed import SummedPass, pass_of
from hedgerow.release.topdown import Pass, Progress, gathered
from hedgerow.tables.counts import Counts

Int64 = NDArray[np.int64]
USUAL = Confidence()


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
            column names, ``count`` (records), and of the unbiased estimate below it the
            ``standard_error``, and ``low`` and ``high``: with the given confidence, over all
            measured nodes and not only those listed, the true count is one of low..high. (See
            `hedgerow.estimate.intervals`; the count itself may lie outside, where its siblings'
            noisy counts leave it no room.) A node that is not listed has a count of 0.

        Raises:
            ReleaseError: no such depth.
        """
        number = self._depth(level, depth)
        frame = self.content.counts(number)
        if confidence is not None:
            known = certainty(self.plan, number, self._total())
            variance = frame[STANDARD_ERROR].to_numpy() ** 2
            low, high = known.interval(frame[ESTIMATE].to_numpy(), variance, confidence)
            frame = frame.with_columns(pl.Series(LOW, low), pl.Series(HIGH, high))
        return frame.drop(ESTIMATE)

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
            ``standard_error``, ``low`` and ``high``. Of a depth of the tree they are those of
            `level`; of others see `hedgerow.release.cuboid`, which says what they assume where the
            plan measures survivors alone.

        Raises:
            ReleaseError: no such axis or level; too many noisy counts for errors off the tree.
        """
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
        found = found.select(*columns, COUNT, STANDARD_ERROR, LOW, HIGH)
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
                    f"{given!r}; there are {', '.join(known)}{nearest(given, known)}"
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
        raise ReleaseError(
            f"no depth {level if depth is None else depth!r}; there are "
            f"{', '.join(f'{t} ({name})' for t, name in enumerate(names))}"
            f"{nearest(level, names) if level is not None else ''}"
        )


def release(
    counts: Counts,
    plan: Plan,
    *,
    estimator: Estimator | None = None,
    directory: str | Path | None = None,
    progress: Progress | None = None,
    charging: Charging | None = None,
    unfinished: Unfinished = Unfinished.REFUSE,
) -> Release:
    """Execute a plan on a confidential table, under a fresh key from the operating system.

    Args:
        counts: the confidential table, over the plan's tree.
        plan: what to measure with which noise; states the guarantee (`Plan.guarantee`).
        estimator: from noisy counts to consistent counts; `Chebyshev` unless given.
        directory: where the release appears, whole or not at all, built in bounded memory; left
            out, the release stays in memory.
        progress: whom to tell how far the pass is.
        charging: the ledger that the release is charged to, before its noise is drawn; without
            one the manifest says that none was kept. Needs a directory.
        unfinished: what to do about a release that a killed run left unfinished for the directory.

    Raises:
        PlanError: the plan is for another domain, or promises what the table does not keep.
        ReleaseError: the directory exists, or the unfinished release is another one's.
        MachineError: the disk is full, or the memory.
    """
    check_match(counts, plan)
    estimator = Chebyshev() if estimator is None else estimator
    check_combines(estimator, plan)
    check_range(counts.total, estimator, plan)
    progress = Progress() if progress is None else progress
    if directory is None:
        if charging is not None:
            raise ReleaseError("a release that is charged to a ledger needs a directory")
        key = ReleaseKey.fresh()
        return in_memory(counts, plan, estimator=estimator, bits=key, progress=progress)
    output = Path(directory)
    named = json.dumps(estimator.to_dict(), sort_keys=True)
    staging = open_staging(output, counts, plan, named, unfinished)
    if staging is not None:
        source = Drawn(counts, plan, staging.key)
        run = pass_of(plan, source, estimator, progress)
        if isinstance(run, Pass):
            run = replace(run, kept=KeptOnDisk(staging.jobs, len(plan.tree.axes)))
        release_into(staging, plan, run, charging)
    return read_release(output)


def release_into(
    staging: Staging,
    plan: Plan,
    run: Pass | SummedPass,
    charging: Charging | None,
    collect: Callable[[], None] = lambda: None,
) -> None:
    """Charge a release, fill its staging folder, and let it appear.

    Args:
        staging: of the release.
        plan: what is charged and measured.
        run: the pass.
        charging: the ledger, if any.
        collect: takes in what other machines have written, when the pass is through.

    Raises:
        BudgetError: the charge is refused; nothing was drawn.
        MachineError: the disk is full or not writable.
    """
    ledger: dict[str, str] | None = None
    try:
        if charging is not None:
            _charge(charging, plan, staging)
            ledger = charging.to_dict(staging.release_id)
        with machine_errors(f"cannot write the release to {str(staging.folder)!r}"):
            with ReleaseFiles(staging.content, plan) as files:
                for found in run.results():
                    files.add(found.depth, found.nodes, found.noisy)
            collect()
            write_report(staging.content, plan, run.estimator)
            write_manifest(staging.content, plan, run.estimator, ledger)
            staging.publish()
    finally:
        staging.leave()


def _charge(charging: Charging, plan: Plan, staging: Staging) -> None:
    """Charge the release; where it is refused, nothing was drawn and nothing stays behind."""
    try:
        charging.charge(plan, staging.release_id)
    except BudgetError:
        staging.abandon()
        raise


def check_match(counts: Counts, plan: Plan) -> None:
    """Refuse a table that is not what the plan was made for.

    Raises:
        PlanError: another domain, contributions that were bounded otherwise, or a prior that is
            the table itself.
    """
    if counts.tree.digest != plan.tree.digest:
        raise PlanError("the plan was made for another tree than the table's; make it anew")
    if plan.prior is not None:
        refuse_own_table(plan.prior, counts)
    bound, promised = counts.contributions, plan.neighbours.contributions
    if bound is None and plan.neighbours.unit is not None:
        raise PlanError(
            f"the plan protects each {plan.neighbours.unit!r}, but the table's contributions were "
            f"not bounded: read it with unit={plan.neighbours.unit!r}"
        )
    if bound is None:
        return
    if bound > promised:
        raise PlanError(
            f"the table keeps up to {bound} records a unit, but the plan protects {promised}"
        )
    if bound > 1 and plan.neighbours.total_is_public:
        raise PlanError(
            "the plan holds the total public, which needs units with exactly as many records as "
            "contributions says; a table bounded by its unit column keeps at most that many: use "
            "Replace(contributions, exactly=False), which measures the total"
        )


def in_memory(
    counts: Counts,
    plan: Plan,
    *,
    estimator: Estimator,
    bits: Bits,
    progress: Progress | None = None,
) -> Release:
    """A release that stays in memory, from given random bits (a seed in simulations alone)."""
    source = Drawn(counts, plan, bits)
    run = pass_of(plan, source, estimator, progress)
    nodes, noisy = gathered(run.results())
    return Release(plan.to_dict(), InMemory(plan, estimator, nodes, noisy))


def read_release(directory: str | Path) -> Release:
    """The release in a directory.

    Raises:
        ReleaseError: there is none.
    """
    folder = Path(directory)
    return Release(read_manifest(folder)["plan"], OnDisk(folder))
