"""Noisy counts that somebody else measured, estimated as our own are.

The layout: one table a measured depth, with one row a node: the columns of its codes (as
`Tree.columns` names them), ``noisy_count`` (a number) and ``variance`` (records², above 0). A node
without a row was not measured. Any noise will do as long as it is unbiased, independent and of the
stated variance; nothing is promised about privacy here, as nothing private is read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from hedgerow.errors import TableError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.layers import Layer
from hedgerow.release.again import estimated, listed_nodes
from hedgerow.release.estimates import least_squares_of
from hedgerow.release.measurements import NOISY_COUNT
from hedgerow.release.source import Stored
from hedgerow.release.steps import Nodes, Refinement, children
from hedgerow.release.topdown import Outline
from hedgerow.tables.counts import labelled
from hedgerow.tables.frames import as_arrow, as_codes
from hedgerow.tables.tree import Tree

VARIANCE = "variance"
MOST_CELLS = 1 << 28


@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy counts of the nodes of a tree, from wherever they come.

    Attributes:
        stored: the noisy counts of all nodes, in tree order; of infinite variance where a node
            was not measured.
        outline: which depths hold any.
    """

    stored: Stored
    outline: Outline

    @classmethod
    def from_frames(
        cls, tree: Tree, frames: Mapping[int, Any], total: int | None = None
    ) -> "Measurements":
        """Measurements from one table a depth, in the layout of this module.

        Args:
            tree: the tree.
            frames: by depth, anything with the Arrow stream interface.
            total: the number of records, where it is public.

        Raises:
            TableError: a column is missing, a code unknown or twice, a number none, or the leaves
                do not follow from what was measured.
        """
        if tree.leaves > MOST_CELLS:
            raise TableError(f"the tree has {tree.leaves:,} leaves; 2**28 can be laid out")
        everywhere = _every_node(tree)
        noisy, variance = {}, {}
        for depth, frame in sorted(frames.items()):
            if depth == 0 and total is not None:
                raise TableError("the total is public, so it has no noisy count; leave one out")
            if not 0 <= depth <= tree.depth:
                raise TableError(f"the tree has depths 0 to {tree.depth}, got {depth}")
            noisy[depth], variance[depth] = _aligned(tree, depth, everywhere[depth], frame)
        public = {} if total is None else {0: _exact_root(everywhere[0], total)}
        _check_identified(tree, variance)
        outline = Outline(tree, len(public) - 1, frozenset(noisy) - frozenset(public), True, 0)
        return cls(Stored(tree, noisy, variance, public), outline)

    def estimate(self, estimator: Estimator) -> list[Nodes]:
        """For each depth the nodes with positive counts, and their unbiased estimates."""
        made = estimated(self.stored, self.outline, estimator)
        return [made[t] for t in range(self.outline.tree.depth + 1)]

    def least_squares(self) -> tuple[list[Nodes], list[Layer]]:
        """For each depth all nodes with their best linear unbiased estimates; and the layers."""
        nothing = (np.empty(0, dtype=np.int32),) * len(self.outline.tree.axes)
        none = listed_nodes(nothing, np.empty(0, dtype=np.int64))
        return least_squares_of(
            self.stored, self.outline, dict.fromkeys(range(self.outline.tree.depth + 1), none)
        )


def _every_node(tree: Tree) -> list[Nodes]:
    root = tuple(np.zeros(1, dtype=np.int32) for _ in tree.axes)
    nodes = [listed_nodes(root, np.zeros(1, dtype=np.int64))]
    empty = Stored(tree, {}, {}, {}).counts
    for t in range(1, tree.depth + 1):
        step = Refinement.of(tree, t)
        start = step.family_start(nodes[-1].codes)
        nodes.append(children(np.arange(start[-1]), start, nodes[-1], step, empty))
    return nodes


def _exact_root(root: Nodes, total: int) -> Nodes:
    if type(total) is not int or total < 0:
        raise TableError(f"a public total is a whole number of at least 0, got {total!r}")
    return listed_nodes(root.codes, np.array([total], dtype=np.int64))


def _aligned(
    tree: Tree, depth: int, nodes: Nodes, given: Any
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    """The noisy counts of all nodes of a depth, and their variances."""
    where, columns = f"the noisy counts of depth {depth}", tree.columns(depth)
    frame = pl.DataFrame(as_arrow(given, where))
    wanted = [*columns, NOISY_COUNT, VARIANCE]
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise TableError(f"{where} have no column {missing[0]!r}; they need {', '.join(wanted)}")
    numbers = frame.select(
        pl.col(name).cast(pl.Float64, strict=False) for name in (NOISY_COUNT, VARIANCE)
    )
    frame = pl.concat([as_codes(frame, columns, where), numbers], how="horizontal")
    if frame.null_count().sum_horizontal()[0]:
        raise TableError(f"{where} have a cell that is empty or no number")
    good = frame[NOISY_COUNT].is_finite() & frame[VARIANCE].is_finite() & (frame[VARIANCE] > 0)
    if not good.all():
        raise TableError(f"{where} must be finite, with variances above 0")
    if columns:
        if frame.select(columns).is_duplicated().any():
            raise TableError(f"{where} name a node twice")
        every = labelled(tree, depth, nodes.codes)
        joined = every.join(frame, on=columns, how="left", maintain_order="left")
    else:
        joined = frame
    found = len(joined) - joined[VARIANCE].null_count()
    if found < len(frame) or len(joined) != len(nodes):
        raise TableError(f"{where} name a node that is not in the tree")
    return (
        joined[NOISY_COUNT].fill_null(0.0).to_numpy(),
        joined[VARIANCE].fill_null(np.inf).to_numpy(),
    )


def _check_identified(tree: Tree, variance: Mapping[int, Any]) -> None:
    """Refuse measurements from which some leaf does not follow."""
    if tree.depth not in variance:
        raise TableError(
            f"the leaves (depth {tree.depth}, {tree.cuboid_name(tree.depth)}) were not measured; "
            f"leave the levels below the last measured one out of the axes"
        )
