"""Noisy counts that somebody else measured, estimated as our own are.

The layout: one table a measured depth, with one row a node: the columns of its codes (as
`Tree.columns` names them), ``noisy_count`` (a number in ±2^61) and ``variance`` (records², from
2^-300 to 2^300). A node without a row was not measured. Any noise will do as long as it is
unbiased, independent and of the stated variance; nothing is promised about privacy here, as nothing
private is read. What a release may hold beside one chain is refused: put the levels that were
measured into one order of refinement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from hedgerow.arrays import FloatPair
from hedgerow.errors import TableError, of_public_table
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.families.real_projection import LARGEST_VARIANCE
from hedgerow.limits import LARGEST_COUNT, LARGEST_REAL_COUNT, MOST_CELLS_GIVEN
from hedgerow.plan.chain import Outline
from hedgerow.release.answers.measured_nodes import (
    Depths,
    estimated,
    least_squares_of,
    measured_nodes,
    unlisted,
)
from hedgerow.release.descent.nodes import Nodes, NodesOf
from hedgerow.release.descent.source import Stored
from hedgerow.release.directory.measurements import NOISY_COUNT
from hedgerow.tables.counts import label_nodes
from hedgerow.tables.sources.source import as_arrow, as_codes
from hedgerow.tables.tree import Tree

VARIANCE = "variance"


@dataclass(frozen=True, eq=False)
class Measurements:
    """Noisy counts of the nodes of a tree, from wherever they come.

    Attributes:
        stored: the noisy counts of all nodes, in tree order; of infinite variance where a node
            was not measured.
        outline: which depths hold any.

    Example:
        >>> import polars as pl
        >>> towns = pl.DataFrame({"town": ["a1", "a2", "b1"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", towns, levels=["town"])])
        >>> noisy = towns.with_columns(noisy_count=pl.Series([88.0, 302.0, 46.0]), variance=4.0)
        >>> total, leaves = hr.Measurements.from_frames(tree, {1: noisy}).least_squares()[0]
        >>> total.estimate.tolist(), total.variance.tolist()
        ([436.0], [12.0])
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
        if tree.leaves > MOST_CELLS_GIVEN:
            raise TableError(f"the tree has {tree.leaves:,} leaves; 2**28 can be laid out")
        nothing = Outline(tree, -1, frozenset(), True, 0)
        everywhere, _ = measured_nodes(*unlisted(nothing, {}, {}))
        noisy, variance = {}, {}
        for depth, frame in sorted(frames.items(), key=lambda each: str(each[0]).rjust(20)):
            if depth == 0 and total is not None:
                raise TableError("the total is public, so it has no noisy count; leave one out")
            if type(depth) is not int or not 0 <= depth <= tree.depth:
                raise TableError(
                    f"noisy counts from elsewhere are those of a tree's depths, 0 to {tree.depth}, "
                    f"got {str(depth)[:40]!r}; other cuboids are not estimated"
                )
            levels = tree.cuboid(depth)
            noisy[levels], variance[levels] = _aligned(tree, depth, everywhere[depth], frame)
        public = NodesOf()
        if total is not None:
            if type(total) is not int or not 0 <= total <= LARGEST_COUNT:
                raise TableError(
                    f"a public total is a whole number from 0 to 2^61, got {repr(total)[:40]}"
                )
            public[tree.cuboid(0)] = Nodes.exact(everywhere[0].codes, np.array([total]))
        if tree.finest not in variance:
            raise TableError(
                f"the leaves (depth {tree.depth}, {tree.cuboid_name(tree.depth)}) were not "
                f"measured; leave the levels below the last measured one out of the axes"
            )
        outline = Outline(tree, len(public) - 1, frozenset(frames), True, 0)
        made = cls(Stored(tree, noisy, variance, public), outline)
        made.least_squares()
        return made

    def estimate(self, estimator: Estimator) -> list[Nodes]:
        """Return for each depth the nodes with positive counts, and their unbiased estimates.

        Raises:
            TableError: numbers beyond 2^40, where fractions have no room beside them.
        """
        largest = [float(np.abs(noisy).sum()) for noisy in self.stored.measured.values()]
        largest += [float(nodes.counts.sum()) for nodes in self.stored.nodes.values()]
        if max(largest) > LARGEST_REAL_COUNT:
            raise TableError(
                f"whole counts are estimated from noisy counts that sum to at most 2^40 a depth, "
                f"signs left out, and a total of at most 2^40, got {max(largest):.3g}; "
                f"least-squares takes more"
            )
        made = estimated(self.stored, self.outline, estimator)
        return [made[levels] for levels in self.outline.tree.chain]

    def least_squares(self) -> Depths:
        """Return for each depth all nodes with their best linear unbiased estimates, and layers.

        Raises:
            TableError: what was measured does not determine every node.
        """
        stored = self.stored
        exact = {k: nodes.counts for k, nodes in self.stored.nodes.items()}
        variances = {**stored.variances, **dict.fromkeys(exact, 0.0)}
        every = unlisted(self.outline, {**stored.measured, **exact}, variances)
        nodes, layers = least_squares_of(*every)
        for t, here in enumerate(nodes):
            if not np.isfinite(here.variance).all():
                raise TableError(
                    f"what was measured does not determine every node of depth {t} "
                    f"({self.outline.tree.cuboid_name(t)}); measure all children of a node, or all "
                    f"but one"
                )
        return nodes, layers


def _aligned(tree: Tree, depth: int, nodes: Nodes, given: Any) -> FloatPair:
    """Return the noisy counts of all nodes of a depth, and their variances."""
    where = f"the noisy counts of depth {depth}"
    columns = tree.columns(depth)
    frame = _read(given, columns, where)
    if columns:
        if frame.select(columns).is_duplicated().any():
            raise TableError(f"{where} name a node twice")
        every = label_nodes(tree, tree.cuboid(depth), nodes.codes)
        joined = every.join(frame, on=columns, how="left", maintain_order="left")
    else:
        joined = frame
    matched = len(joined) - joined[VARIANCE].null_count()
    if matched < len(frame) or len(joined) != len(nodes):
        raise TableError(f"{where} name a node that is not in the tree")
    return (
        joined[NOISY_COUNT].fill_null(0.0).to_numpy(),
        joined[VARIANCE].fill_null(np.inf).to_numpy(),
    )


def _read(given: Any, columns: list[str], where: str) -> pl.DataFrame:
    """Return the columns of the layout: text codes and two finite numbers within limits."""
    if isinstance(given, pl.DataFrame):
        _check_names(given.columns, where)
    with of_public_table():
        table = as_arrow(given, where)
    _check_names(table.column_names, where)
    wanted = [*columns, NOISY_COUNT, VARIANCE]
    missing = [name for name in wanted if name not in table.column_names]
    if missing:
        raise TableError(f"{where} have no column {missing[0]!r}; they need {', '.join(wanted)}")
    if len(set(wanted)) < len(wanted):
        raise TableError(f"{where} have a level called {NOISY_COUNT} or {VARIANCE}; rename it")
    if not len(table):
        raise TableError(f"{where} have no row: nothing was measured; leave the table out")
    frame = pl.DataFrame(_numeric(table.select(wanted), where))
    numbers = frame.select(
        pl.col(name).cast(pl.Float64, strict=False) for name in (NOISY_COUNT, VARIANCE)
    )
    frame = pl.concat([as_codes(frame, columns, where), numbers], how="horizontal")
    if frame.null_count().sum_horizontal()[0]:
        raise TableError(f"{where} have a cell that is empty or no number")
    noisy = frame[NOISY_COUNT]
    variance = frame[VARIANCE]
    if not (noisy.is_finite() & variance.is_finite() & (variance > 0)).all():
        raise TableError(f"{where} must be finite, with variances above 0")
    if (noisy.abs() > LARGEST_COUNT).any():
        raise TableError(f"{where} must lie between -2^61 and 2^61; at least one does not")
    if not variance.is_between(1 / LARGEST_VARIANCE, LARGEST_VARIANCE).all():
        raise TableError(f"{where} must have variances from 2^-300 to 2^300; at least one is not")
    return frame


def _check_names(names: list[str], where: str) -> None:
    """Refuse names that Polars and Arrow cannot hand to each other."""
    if any(not character.isprintable() for name in names for character in name):
        raise TableError(f"{where} are no table: a column's name has a control character")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"{where} have several columns called {twice[0]!r}; rename one")


def _numeric(table: pa.Table, where: str) -> pa.Table:
    """Return the table, once its noisy counts and variances are known to be numbers, or text."""
    for name in (NOISY_COUNT, VARIANCE):
        kind = table.schema.field(name).type
        of_numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        of_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        if not any(is_one(kind) for is_one in (*of_numbers, *of_text)):
            raise TableError(f"{where} need numbers in column {name!r}, got the type {kind}")
    return table
