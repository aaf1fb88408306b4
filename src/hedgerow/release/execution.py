"""`release`: execute a plan on a confidential table.

What does not fit is refused, the release is charged, the pass fills a staging folder, and the
release appears. Or it stays in memory.
"""

import json
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import cast

from hedgerow.arrays import Int64, Levels
from hedgerow.errors import ReleaseError, machine_errors
from hedgerow.estimate.estimator import Estimator
from hedgerow.noise.bits import Bits, ReleaseKey
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import LocalEngine, LocalJobs, Progress
from hedgerow.release.descent.nodes import Found, NoisyCuboid, by_cuboid
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory.job_cache import DiskCache
from hedgerow.release.directory.keys import Charging
from hedgerow.release.directory.manifest import write_manifest
from hedgerow.release.directory.measurements import ReleaseFiles
from hedgerow.release.directory.output import Unfinished
from hedgerow.release.directory.staging import Bound, Staging, open_staging
from hedgerow.release.directory.stored import OnDisk, verified_release
from hedgerow.release.in_memory import InMemory
from hedgerow.release.page.report import write_report
from hedgerow.release.passes import Pass, pass_of
from hedgerow.release.preflight import (
    check_estimator,
    check_match,
    check_public_total,
)
from hedgerow.release.release import Release
from hedgerow.tables.counts import Counts
from hedgerow.text import TextByName


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
        estimator: makes consistent counts; `Euclidean` (of running sums `Isotonic`) unless given.
        directory: where the release appears, whole or not at all, built in bounded memory; left
            out, the release stays in memory.
        progress: whom to tell how far the pass is.
        charging: the ledger that the release is charged to, before its noise is drawn; without
            one the manifest says that none was kept. Needs a directory.
        unfinished: what to do about a release that a killed run left unfinished for the directory.

    Raises:
        PlanError: the plan is for another domain, or promises what the table does not keep.
        BudgetError: the ledger refuses the charge; what an earlier run began is kept.
        ReleaseError: the directory exists, or the unfinished release is another one's.
        MachineError: the disk is full, or the memory.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"county": ["a", "a", "b"], "town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["county", "town"])])
        >>> people = towns.with_columns(people=pl.Series([900, 3000, 500]))
        >>> counts = hr.Counts.from_frame(tree, people, count="people")
        >>> plan = hr.make_plan(tree, budget=hr.EpsilonDelta("1", "1e-8"))
        >>> hr.release(counts, plan).level("county").columns
        ['county', 'count', 'estimate', 'standard_error', 'low', 'high', 'contradicted']
    """
    check_match(counts, plan)
    estimator = plan.design.usual if estimator is None else estimator
    check_estimator(estimator, plan)
    plan.design.rehearse()
    check_public_total(counts.unwrapped_total, plan)
    if directory is None:
        if charging is not None:
            raise ReleaseError("a release that is charged to a ledger needs a directory")
        key = ReleaseKey.fresh()
        return in_memory(counts, plan, estimator=estimator, bits=key, progress=progress)
    output = Path(directory)
    named = json.dumps(estimator.to_dict(), sort_keys=True)
    with open_staging(output, Bound(counts, plan, named, charging), unfinished) as staging:
        if staging is not None:
            source = Drawn(counts, plan, staging.key)
            kept = LocalJobs(cache=DiskCache(staging.jobs))
            run = pass_of(plan, source, estimator, progress, kept)
            release_into(staging, plan, estimator, run, charging)
    if staging is None:  # an earlier run's: its estimator may be another one
        return Release(verified_release(output))
    return Release(OnDisk(output, plan, estimator))


def release_into(
    staging: Staging,
    plan: Plan,
    estimator: Estimator,
    run: Pass,
    charging: Charging | None,
    collect: Callable[[], None] = lambda: None,
) -> None:
    """Charge a release, fill its staging folder, and let it appear.

    Raises:
        BudgetError: the charge is refused.
        MachineError: the disk is full or not writable.
    """
    ledger: TextByName | None = None
    plan.guarantee.power()  # what the page needs, and may fail or be stopped, comes before a charge
    if charging is not None:
        staging.charge(charging, plan)
        ledger = charging.to_dict(staging.release_id)
    with machine_errors(f"cannot write the release to {str(staging.folder)!r}"):
        with ReleaseFiles(staging.content, plan) as files:

            def write(result: Found | NoisyCuboid) -> None:
                if isinstance(result, NoisyCuboid):
                    files.add_noisy(result.levels, result.noisy)
                else:
                    files.add(result.levels, result.nodes, result.noisy)

            deque(LocalEngine(1).run(run.results(), write), maxlen=0)  # in order, beside the pass
        collect()
        write_report(staging.content, plan, estimator)
        write_manifest(staging.content, plan, estimator, ledger)
        staging.publish()


def in_memory(
    counts: Counts,
    plan: Plan,
    *,
    estimator: Estimator,
    bits: Bits,
    progress: Progress | None = None,
) -> Release:
    """Make a release in memory from given random bits (a seed in simulations alone)."""
    source = Drawn(counts, plan, bits)
    run = pass_of(plan, source, estimator, progress)
    nodes, noisy = by_cuboid(run.results())
    return Release(InMemory(plan, estimator, nodes, cast("dict[Levels, Int64]", noisy)))
