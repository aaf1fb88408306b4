"""A release on Spark: the top of the tree on the driver, its subtrees on the executors.

Executors read the records (`hedgerow.spark.table`) and hand back the true counts of the cut
(`hedgerow.spark.top`); the driver runs the pass down to it. The jobs below are done by the
executors (`hedgerow.spark.executors`), before the top those that tell it of what is below.
"""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hedgerow.estimate.estimator import Estimator
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import Progress
from hedgerow.release.descent.source import Drawn
from hedgerow.release.directory.keys import KEY_FILE, Charging
from hedgerow.release.directory.output import Unfinished
from hedgerow.release.directory.staging import Bound, open_staging
from hedgerow.release.directory.stored import OnDisk, verified_release
from hedgerow.release.execution import release, release_into
from hedgerow.release.passes import pass_of
from hedgerow.release.preflight import check_estimator, check_match, check_public_total
from hedgerow.release.release import Release
from hedgerow.spark.executors import GAVE_UP, Cluster, take_parts
from hedgerow.spark.session import (
    Frame,
    collected,
    spark_errors,
)
from hedgerow.spark.table import SparkTable
from hedgerow.spark.top import Top, leaves_of
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree


def release_on_spark(
    table: SparkTable,
    plan: Plan,
    *,
    directory: str | Path,
    estimator: Estimator | None = None,
    progress: Progress | None = None,
    charging: Charging | None = None,
    unfinished: Unfinished = Unfinished.REFUSE,
) -> Release:
    """Execute a plan on a confidential table that Spark reads; otherwise as `release`.

    Executors sum the table. A design that is not cut is one part, as the plan says: the leaves are
    collected, and the driver does the rest.

    Args:
        table: the confidential table, with the columns of the plan's tree.
        plan: what to measure with which noise; states the guarantee.
        directory: where the release appears, whole or not at all. The staging folder beside it
            must be one that driver and executors share and may write to.
        estimator: as of `hedgerow.release.execution.release`.
        progress: likewise.
        charging: likewise.
        unfinished: likewise.

    Raises:
        TableError: a column that is not there; a table that is damaged, is outside its limits or
            changed while it was read.
        PlanError, ReleaseError, MachineError: as of `release`; the cluster failed.
    """
    estimator = plan.design.usual if estimator is None else estimator
    check_estimator(estimator, plan)
    most = table.contributions if table.unit is not None else None
    with persisted(table.leaves(plan.tree)) as leaves:
        cut = plan.design.cut_at
        if cut is None:
            return release(
                collected_counts(leaves, plan.tree, most), plan, estimator=estimator,
                directory=directory, progress=progress, charging=charging, unfinished=unfinished,
            )  # fmt: skip
        top = Top.of(leaves, plan.tree, cut, most)
        check_match(top.counts, plan)
        check_public_total(top.total, plan)
        named = json.dumps(estimator.to_dict(), sort_keys=True)
        bound = Bound(top.sealed, plan, f"{named} on Spark", charging)
        with open_staging(Path(directory), bound, unfinished) as staging:
            if staging is not None:
                on_progress = progress or Progress()
                place = staging.jobs.absolute()
                key = staging.folder.absolute() / KEY_FILE
                source = Drawn(top.counts, plan, staging.key)
                with closing(Cluster(leaves, top, plan, key, place, on_progress)) as cluster:
                    run = pass_of(plan, source, estimator, on_progress, cluster)
                    release_into(
                        staging, plan, estimator, run, charging,
                        lambda: take_parts(staging.jobs, staging.content),
                    )  # fmt: skip
    if staging is None:  # an earlier run's: its estimator may be another one
        return Release(verified_release(Path(directory)))
    return Release(OnDisk(Path(directory), plan, estimator))


@contextmanager
def persisted(leaves: Frame) -> Iterator[Frame]:
    """Open a frame that is kept on the executors once it was computed, until the end."""
    with spark_errors(GAVE_UP):
        leaves.persist()
    try:
        yield leaves
    finally:
        with spark_errors(GAVE_UP):
            leaves.unpersist()


def collected_counts(leaves: Frame, tree: Tree, contributions: int | None) -> Counts:
    """Return all the leaves, on the driver.

    Raises:
        TableError: a code or count that does not fit.
    """
    rows = collected(leaves, "the table cannot be read")
    return Counts.from_leaves(tree, *leaves_of(rows, tree), contributions=contributions)
