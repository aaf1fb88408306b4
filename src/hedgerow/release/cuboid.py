"""Sums of released leaves by any cuboid, on the tree or off it, and how sure they are.

A cuboid of the tree's own chain has the errors of its depth. Off the chain there are two ways.

*All nodes were measured.* Beside each sum of released leaves stands the least-squares estimate of
the same sum from all measurements. It is unbiased, its variance is exact
(`hedgerow.estimate.tree.sums`), and ``low`` and ``high`` are its interval, as on the tree. The sum
of released leaves is not unbiased: each is kept from falling below 0, which adds up
(`hedgerow.plan.cost`). Where it lies outside the intervals that hold for all sums at once it is
``contradicted``, as on the tree (`hedgerow.release.directory.depth_errors`).

*Survivors alone were measured.* Some leaves of a sum were never measured, and which ones noise
decided, so no unbiased estimate of the sum exists. Then a parametric bootstrap: the released leaves
stand for the truth, the pass runs again on them, RUNS times, with the same plan and estimator, and

    standard_error = √(mean (simulated - released)²),   low, high = released ∓ quantile.

The quantile is that of |simulated - released| of the cell: of R runs the ⌈level (R + 1)⌉-th
smallest (as a rank among R + 1 exchangeable errors it is exceeded with probability 1 - level at
most; all cells at once: that of the greatest error in units of its standard error). It reads
released counts alone, so it costs no privacy. It assumes that errors around the released table are
as large as around the truth. They are smaller where noise wiped small cells out: what is gone
cannot be wiped out again, and a sum that lost all its records is not listed at all. The keys of the
runs are a digest of the plan and the released leaves, all public: whoever asks a release again gets
the same interval. (They draw none of its own noise, whose key was random.)

So it is an approximation, and covers less than it says. Measured at 95 % on a synthetic table of
120 x 120 places in 3 levels, 60,000 trips in 2,500 pairs (a sixth of the cells), public total,
delta = 1e-8, means of 12 releases; of the listed sums, the share whose truth lies in low..high, and
standard_error (root mean square) relative to the released counts' true root mean squared error:

    epsilon                             0.1           1             10
    outflow of a place (120 sums)
      Chebyshev                     0.89  0.69    0.88  0.79    0.94  0.96
      Euclidean                     0.84  0.63    0.85  0.77    0.94  0.93
      Sparse                        0.86  0.65    0.88  0.83    0.94  0.95
      all nodes measured            0.97          0.97          0.97
    outflow to a region (480 sums)
      Chebyshev                     0.95  0.91    0.93  0.92    0.96  0.97
      Euclidean                     0.94  0.86    0.93  0.90    0.97  1.00
      Sparse                        0.95  0.87    0.94  0.91    0.96  1.00
      all nodes measured            0.96          0.96          0.97

At epsilon = 0.1 noise wiped out 6 to 34 of the 120 places and 181 to 293 of the 480 sums; those are
not listed and not in these figures. Measure all nodes where off-tree sums matter.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.registry import read_estimator
from hedgerow.estimate.intervals import Confidence, interval
from hedgerow.estimate.tree.sums import sums_of_leaves
from hedgerow.noise.bits import ReleaseKey
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.depths import All, Measured
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Outline, gathered
from hedgerow.release.descent.source import Drawn, Stored
from hedgerow.release.descent.topdown import Pass
from hedgerow.release.directory.depth_errors import outside
from hedgerow.release.directory.manifest import read_manifest
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    noisy_file,
)
from hedgerow.release.directory.output import InMemory, OnDisk
from hedgerow.release.directory.parquet_file import rows_of
from hedgerow.release.directory.stored import read_nodes, stated_plan
from hedgerow.release.reestimate.measured_nodes import measured_nodes, read_stored
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Codes, Tree

RUNS = 60
MOST_CELLS = 1 << 24
MOST_SIMULATED_CELLS = 300_000_000


@dataclass(frozen=True, eq=False)
class Stated:
    """What is known of a release: plan, estimator, listed nodes and noisy counts."""

    plan: Plan
    estimator: Estimator
    nodes: Mapping[int, Nodes]
    stored: Stored

    @property
    def leaves(self) -> Nodes:
        """The listed leaves."""
        return self.nodes[self.plan.tree.depth]

    @property
    def total(self) -> int | None:
        """The number of records where it is public."""
        return int(self.nodes[0].counts.sum()) if self.plan.public_depth >= 0 else None


def depth_of_cuboid(plan: Mapping[str, Any], levels: Mapping[str, str]) -> int | None:
    """The depth of the tree that has these levels; None for a cuboid off its chain.

    Args:
        plan: as JSON (`Plan.to_dict`).
        levels: axis = level; an axis that is not named is summed over.
    """
    axes = plan["tree"]["axes"]
    wanted = [
        f"{axis['name']}.{levels[axis['name']]}" if len(axes) > 1 else levels[axis["name"]]
        for axis in axes
        if axis["name"] in levels
    ]
    names = [what["cuboid"] for what in plan["depths"]]
    name = " × ".join(wanted) or "total"
    return names.index(name) if name in names else None


def cuboid_errors(
    content: InMemory | OnDisk, levels: Mapping[str, str], confidence: Confidence
) -> pl.DataFrame:
    """The released counts of a cuboid off the tree's chain, and how sure they are.

    Args:
        content: of the release.
        levels: axis = level; an axis that is not named is summed over.
        confidence: of one interval, or of all rows' at once.

    Returns:
        One row a combination: its codes axis by axis as the tree has them, ``count``, ``estimate``
        (least squares; null unless all nodes were measured), ``standard_error``, ``low``, ``high``,
        ``contradicted`` (null where the estimate is). Where all nodes were measured, every
        combination below the public counts has a row, with a count of 0 or not; where survivors
        were, those with a positive count.

    Raises:
        ReleaseError: the release is too large for this.
        TableError: no such level.
    """
    _check_size(content, confidence)
    known = stated(content)
    tree = known.plan.tree
    wanted = tuple(axis.level_number(levels[axis.name]) if axis.name in levels else 0
                   for axis in tree.axes)  # fmt: skip
    if isinstance(known.plan.measure, All) and len(known.nodes[0]):
        return _least_squares(known, wanted, confidence)
    return _bootstrap(known, wanted, confidence)


def _least_squares(known: Stated, wanted: tuple[int, ...], confidence: Confidence) -> pl.DataFrame:
    """All sums from what was measured, by least squares."""
    every, layers = measured_nodes(known.stored, Outline.of(known.plan), known.nodes)
    leaves = every[-1]
    cells = _at_levels(known.plan.tree, wanted, leaves.codes)
    labels = cells.unique().sort(cells.columns).with_row_index("group")
    group = cells.join(labels, on=cells.columns, maintain_order="left")["group"]
    groups = group.cast(pl.Int64).to_numpy()
    found = sums_of_leaves(layers, groups)
    counts = np.zeros(len(labels), dtype=np.int64)
    np.add.at(counts, groups, leaves.counts)
    noise = _widest(known.plan)

    def ends(sure: Confidence) -> tuple[Int64, Int64]:
        reach = sure.half_width(noise, found.variance, len(labels), measured=False)
        return interval(found.estimate, reach, known.total)

    low, high = ends(confidence)
    flags = outside(counts, *ends(Confidence(confidence.coverage, simultaneous=True)))
    return _labelled(known.plan.tree, wanted, labels.drop("group")).with_columns(
        pl.Series(COUNT, counts),
        pl.Series(ESTIMATE, found.estimate),
        pl.Series(STANDARD_ERROR, np.sqrt(found.variance)),
        pl.Series(LOW, low),
        pl.Series(HIGH, high),
        pl.Series(CONTRADICTED, flags),
    )


def _bootstrap(known: Stated, wanted: tuple[int, ...], confidence: Confidence) -> pl.DataFrame:
    """The listed sums, by simulating the release of the released table."""
    tree, released = known.plan.tree, known.leaves
    listed = _sums(tree, wanted, released)
    labels = listed.drop(COUNT)
    counts = listed[COUNT].to_numpy()
    table = Counts.from_leaves(tree, released.codes, released.counts)
    errors = np.empty((_runs(confidence), len(listed)), dtype=np.int64)
    digest = _digest(known)
    for number, run in enumerate(errors):
        key = ReleaseKey(hashlib.sha256(digest + number.to_bytes(8, "big")).digest())
        source = Drawn(table, known.plan, key)
        nodes, _ = gathered(Pass(Outline.of(known.plan), source, known.estimator).results())
        simulated = _sums(tree, wanted, nodes[tree.depth])
        joined = labels.join(simulated, on=labels.columns, how="left", maintain_order="left")
        run[:] = np.abs(joined[COUNT].fill_null(0).to_numpy() - counts)
    deviation = np.sqrt((errors.astype(np.float64) ** 2).mean(axis=0))
    low, high = interval(counts, _quantile(errors, deviation, confidence), known.total)
    return _labelled(tree, wanted, labels).with_columns(
        listed[COUNT],
        pl.lit(None, pl.Float64).alias(ESTIMATE),
        pl.Series(STANDARD_ERROR, deviation),
        pl.Series(LOW, low),
        pl.Series(HIGH, high),
        pl.lit(None, pl.Boolean).alias(CONTRADICTED),
    )


def _digest(known: Stated) -> bytes:
    """32 bytes that follow from what everybody can read of a release."""
    made = hashlib.sha256(b"hedgerow/cuboid/1/" + known.plan.hash.encode())
    for column in (*known.leaves.codes, known.leaves.counts):
        made.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    return made.digest()


def _quantile(errors: Int64, deviation: Float64, confidence: Confidence) -> Any:
    """How far from its count each sum's interval reaches: float64 (sums)."""
    rank = ceil(confidence.coverage * (len(errors) + 1)) - 1
    if not confidence.simultaneous:
        return np.partition(errors, rank, axis=0)[rank].astype(np.float64)
    unit = np.where(deviation > 0, deviation, 1)  # errors are 0 in every run there
    greatest = (errors / unit).max(axis=1, initial=0)
    return np.sort(greatest)[rank] * deviation


def _runs(confidence: Confidence) -> int:
    """How many simulations the quantile needs: 60 up to a level of 60/61."""
    return max(RUNS, ceil(confidence.coverage / (1 - confidence.coverage) - 1e-9))


def stated(content: InMemory | OnDisk) -> Stated:
    """What is known of a release in memory or on disk."""
    if isinstance(content, InMemory):
        plan, nodes = content.plan, content.nodes
        variance = {t: what.mechanism.noise_variance for t, what in enumerate(plan.depths)
                    if isinstance(what, Measured)}  # fmt: skip
        public = {t: nodes[t] for t in range(plan.public_depth + 1)}
        stored = Stored(plan.tree, content.measured, variance, public)
        return Stated(plan, content.estimator, nodes, stored)
    folder = content.folder
    manifest = read_manifest(folder)
    plan = stated_plan(folder, manifest)
    nodes = {t: read_nodes(folder, plan.tree, t) for t in range(plan.tree.depth + 1)}
    estimator = read_estimator(manifest["estimator"])
    return Stated(plan, estimator, nodes, read_stored(folder, plan, nodes))


def _check_size(content: InMemory | OnDisk, confidence: Confidence) -> None:
    """Refuse what would take gigabytes or minutes."""
    if isinstance(content, InMemory):
        cells = sum(len(noisy) for noisy in content.measured.values())
        measure = content.plan.measure.name
    else:
        plan = read_manifest(content.folder)["plan"]
        measured = [t for t, depth in enumerate(plan["depths"]) if depth["kind"] == Measured.kind]
        cells = sum(
            rows_of(content.folder, noisy_file(t), content.shapes[t].noisy) for t in measured
        )
        measure = plan["measure"]
    most = MOST_CELLS
    if measure != All.name:
        most = MOST_SIMULATED_CELLS // _runs(confidence)
    if cells > most:
        raise ReleaseError(
            f"errors of a cuboid off the tree need all {cells:,} noisy counts, and can be had up "
            f"to {most:,} at this confidence; ask for counts alone: cuboid(None, ...) or "
            f"--counts-only"
        )


def _widest(plan: Plan) -> Mechanism:
    """Return the noise whose intervals are the widest in units of its standard deviation."""
    noise = [what.mechanism for what in plan.depths if isinstance(what, Measured)]
    return min(noise, key=lambda mechanism: mechanism.noise_variance)


def _at_levels(tree: Tree, wanted: tuple[int, ...], codes: Codes) -> pl.DataFrame:
    """The nodes of a cuboid's levels that leaves belong to: one column an axis."""
    return pl.DataFrame({
        f"axis {a}": axis.ancestors(level)[code]
        for a, (axis, level, code) in enumerate(zip(tree.axes, wanted, codes, strict=True))
    })  # fmt: skip


def _sums(tree: Tree, wanted: tuple[int, ...], leaves: Nodes) -> pl.DataFrame:
    """The positive sums of leaves by the cuboid's levels, sorted."""
    cells = _at_levels(tree, wanted, leaves.codes)
    frame = cells.with_columns(pl.Series(COUNT, leaves.counts))
    return frame.group_by(cells.columns).agg(pl.col(COUNT).sum()).sort(cells.columns)


def _labelled(tree: Tree, wanted: tuple[int, ...], cells: pl.DataFrame) -> pl.DataFrame:
    """The cells' codes in words, under the table's own column names."""
    series = []
    for axis, level, code in zip(tree.axes, wanted, cells.iter_columns(), strict=True):
        series += axis.path(level, code.to_numpy())
    return pl.DataFrame(series)
