"""Subtree jobs away from the driver: everything that one needs, and nothing of the whole table.

A worker gets what is known of the nodes of the cut (`Subtrees`) and the leaves below a run of them;
it makes the jobs *up* and *down* of `hedgerow.release.descent.topdown`, the very ones of the local
engine. Until the release appears a `Subtrees` is confidential: it holds the release key.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from hedgerow.estimate.estimator import Estimator
from hedgerow.noise.bits import Bits
from hedgerow.plan.plan import Plan
from hedgerow.release.descent.jobs import Said, all_said, equal_runs
from hedgerow.release.descent.local import LocalEngine
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.outline import Outline
from hedgerow.release.descent.results import DepthResult
from hedgerow.release.descent.source import Drawn
from hedgerow.release.descent.topdown import Pass
from hedgerow.tables.counts import Counts
from hedgerow.tables.order import Codes
from hedgerow.tables.tree import Tree

NOWHERE = -1
LEAVES_A_RUN = 1 << 22
FEWEST_RUNS, MOST_RUNS = 8, 1024


@dataclass(frozen=True, eq=False, repr=False)
class Subtrees:
    """The jobs of a tree that is cut.

    Attributes:
        plan: what is measured with which noise.
        outline: of the plan.
        estimator: from noisy counts to consistent counts.
        bits: of the release.
        roots: nodes of the cut in tree order, one a job, with their released counts; their slices
            mean nothing.
    """

    plan: Plan
    outline: Outline
    estimator: Estimator
    bits: Bits
    roots: Nodes

    def down(self, jobs: range, leaves: Counts) -> Iterator[DepthResult]:
        """The results of consecutive jobs *down*, given the leaves below their roots."""
        roots, run = self._located(jobs, leaves), self._run(leaves)
        for i in range(len(roots)):
            yield from run.subtree(roots.part(i, i + 1))

    def up(self, jobs: range, leaves: Counts) -> Said:
        """What consecutive jobs *up* say of their roots: estimates and variances."""
        roots, run = self._located(jobs, leaves), self._run(leaves)
        return all_said(run.said(roots.part(i, i + 1)) for i in range(len(roots)))

    def _run(self, leaves: Counts) -> Pass:
        source = Drawn(leaves, self.plan, self.bits)
        return Pass(self.outline, source, self.estimator, engine=LocalEngine(1))

    def _located(self, jobs: range, leaves: Counts) -> Nodes:
        """The roots of some jobs with their slices of these leaves, which lie below them all."""
        roots = self.roots.part(jobs.start, jobs.stop)
        job = jobs_of(self.outline, roots, leaves.codes)
        start = np.searchsorted(job, np.arange(len(roots)))
        stop = np.searchsorted(job, np.arange(len(roots)), side="right")
        return replace(roots, start=start, stop=stop)


def runs_of(tree: Tree, weights: NDArray[np.int64]) -> list[range]:
    """Consecutive jobs in runs of about equal weight, which are worth a task.

    How many runs there are at most is public: one for each four million possible leaves.

    Args:
        tree: the tree.
        weights: int64 (jobs), at least 0: what is known of their sizes; zeros where nothing is.
    """
    return equal_runs(weights, min(max(tree.leaves // LEAVES_A_RUN, FEWEST_RUNS), MOST_RUNS))


def jobs_of(outline: Outline, roots: Nodes, codes: Codes) -> NDArray[np.int64]:
    """For each leaf the place of its root among ``roots``, or `NOWHERE`: int64 (leaves).

    Args:
        outline: says where the tree is cut.
        roots: nodes of the cut.
        codes: one int32 array (leaves) an axis.
    """
    names = [f"axis {a}" for a in range(len(codes))]
    known = pl.DataFrame(dict(zip(names, roots.codes, strict=True))).with_row_index("job")
    found = pl.DataFrame(dict(zip(names, cut_codes(outline, codes), strict=True)))
    joined = found.join(known, on=names, how="left", maintain_order="left")["job"]
    return joined.cast(pl.Int64).fill_null(NOWHERE).to_numpy()


def cut_codes(outline: Outline, codes: Codes) -> Codes:
    """For each leaf its node of the cut: one int32 array (leaves) an axis."""
    return tuple(
        axis.ancestors(level)[code] if level < axis.depth else code
        for axis, level, code in zip(
            outline.tree.axes, outline.tree.cuboid(outline.cut), codes, strict=True
        )
    )


def first_leaves(tree: Tree, depth: int, codes: Codes) -> Codes:
    """For each node of a depth the first leaf below it: one int32 array (nodes) an axis.

    A table whose records all moved there has the counts of the true one down to that depth.
    """
    return tuple(
        axis.descendant_start(level, axis.depth)[code].astype(np.int32)
        for axis, level, code in zip(tree.axes, tree.cuboid(depth), codes, strict=True)
    )
