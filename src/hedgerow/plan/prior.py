"""A prior: an earlier table that is public and tells an allocation what counts to expect.

An allocation that has looked at the confidential table gives some of it away through the noise
that each depth gets (Ko et al., Section 3.2), so a prior is public by declaration, and the table
itself is refused as its own prior.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hedgerow.arrays import Int64
from hedgerow.errors import OUTSIDE, PlanError, check_type, of_public_table
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.read import read_areas
from hedgerow.tables.tree import Tree

_MOST_BINS = 1 << 22


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prior:
    """The counts of a public table over a tree of its own, with the levels of the release's.

    Its areas may differ: what counts is how many nodes of a depth have which count.

    Args:
        counts: of the public table.
        public: must be True: the word of whoever plans that anyone may see this table.

    Raises:
        PlanError: it is not declared public.
    """

    counts: Counts
    public: bool = field(kw_only=True)

    def __post_init__(self) -> None:
        fitting = "Counts.from_frame(tree, …)"
        check_type("the counts of a prior", self.counts, Counts, fitting, PlanError)
        _check_public(self.public)

    def __repr__(self) -> str:
        return f"Prior({self.counts.total:,} records)"

    @classmethod
    def read(
        cls,
        tree: Tree,
        source: Any,
        *,
        count: str | None = None,
        columns: Mapping[str, Sequence[str]] | None = None,
        public: bool,
    ) -> "Prior":
        """Return a prior from a file (or a data frame) for releases over a tree.

        The areas are those that the file names, so all columns of every axis must be in it.

        Args:
            tree: the release's; it gives axes, levels and the order of refinement.
            source: a CSV or Parquet file, a `Query` or a data frame: rows as of a table.
            count: the column with the number of records of a row; left out, a row is a record.
            columns: for axes whose columns are named otherwise in the file: axis → its columns,
                coarsest first.
            public: must be True.

        Raises:
            PlanError: it is not declared public, or ``columns`` fit no axis.
            TableError: a column or a code that does not fit.
        """
        _check_public(public)
        check_type("the tree of a prior", tree, Tree, "Tree([axis, …])", PlanError)
        named = _columns(tree, columns or {})
        with of_public_table("the prior: "):
            own = Tree(
                [_axis_of(axis, source, named[axis.name]) for axis in tree.axes],
                [f"{tree.axes[a].name}.{tree.axes[a].levels[k - 1]}" for a, k in tree.steps],
            )
            counts = Counts.from_frame(own, source, count=count)
        return cls(counts, public=True)

    def check_fits(self, tree: Tree) -> None:
        """Raise unless the prior's levels are those of a tree.

        Raises:
            PlanError: another axis, level or order of refinement.
        """
        own = self.counts.tree
        for what, ours, theirs in (
            ("axes", _axis_names(own), _axis_names(tree)),
            ("levels", _level_names(own), _level_names(tree)),
            ("order of refinement", _cuboid_names(own), _cuboid_names(tree)),
        ):
            if ours != theirs:
                raise PlanError(
                    f"the prior must have the {what} of the release "
                    f"({', '.join(theirs)}), got {', '.join(ours)}; its areas alone may differ"
                )

    def values(self, depth: int, nodes: int) -> tuple[Int64, Int64]:
        """Return the distinct counts of a depth, and how many nodes have each.

        Args:
            depth: of the tree.
            nodes: how many the release's tree has there: those that the prior does not know are
                taken for empty.

        Returns:
            counts: int64 (values), records, ascending; times: int64 (values), all positive.
        """
        known = self.counts.roll_up(depth)[1]
        values, times = _grouped(known)
        empty = nodes - len(known)
        if empty <= 0:
            return values, times
        return np.insert(values, 0, 0), np.insert(times, 0, empty)

    @property
    def digest(self) -> str:
        """SHA-256 of the positive leaf counts in ascending order, whatever they are labelled."""
        return _digest(self.counts)


def check_prior(prior: object) -> None:
    """Refuse a table in place of a prior: whether anyone may see it, it does not say.

    Raises:
        PlanError: it is neither a prior nor None.
    """
    fitting = "Prior(counts, public=True), or None"
    check_type("a prior", prior, (Prior, type(None)), fitting, PlanError)


def refuse_own_table(prior: Prior, counts: Counts) -> None:
    """Raise if the confidential table has just the leaf counts of the prior.

    The comparison is for those inside the boundary; it leaves no trace.

    Raises:
        PlanError: it has, so that the prior is the table itself, perhaps under other labels.
    """
    if len(counts.values) and _digest(counts) == prior.digest:
        raise PlanError(
            f"the table {OUTSIDE}",
            confidential="the table is its own prior; an allocation that follows from the "
            "confidential counts gives some of them away: name an earlier table that is public, or "
            "none",
        )


def _digest(counts: Counts) -> str:
    values, times = _grouped(counts.values)
    return hashlib.sha256(np.stack([values, times]).astype("<i8").tobytes()).hexdigest()


def _grouped(counts: Int64) -> tuple[Int64, Int64]:
    """Distinct values and how often each occurs; small ones first and without sorting.

    Sums that wrapped may be negative; they count as large.
    """
    bins = min(_MOST_BINS, 4 * len(counts))
    small = counts.view(np.uint64) < bins
    times = np.bincount(counts if small.all() else counts[small], minlength=1)
    values = np.flatnonzero(times)
    large, large_times = np.unique(counts[~small], return_counts=True)
    return np.append(values, large), np.append(times[values], large_times)


def _axis_of(axis: Axis, source: Any, columns: Sequence[str]) -> Axis:
    areas = read_areas(source, columns, repeated=True)
    areas = areas.rename(dict(zip(columns, axis.levels, strict=True)))
    return Axis.from_frame(axis.name, areas, axis.levels, columns=columns, from_table=True)


def _columns(tree: Tree, given: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    named = {axis.name: axis.columns for axis in tree.axes}
    for name, columns in given.items():
        if name not in named or len(columns) != len(named[name]):
            known = ", ".join(f"{axis.name} ({axis.depth})" for axis in tree.axes)
            raise PlanError(
                f"columns of the prior must name an axis and one column a level ({known}), "
                f"got {len(columns)} for {name!r}"
            )
        named[name] = tuple(columns)
    return named


def _check_public(public: object) -> None:
    if public is not True:
        raise PlanError(
            "a prior must be public, as the plan that follows from it will be: say public = true "
            "if anyone may see it, or plan without a prior"
        )


def _axis_names(tree: Tree) -> list[str]:
    return [axis.name for axis in tree.axes]


def _level_names(tree: Tree) -> list[str]:
    return [f"{axis.name}.{level}" for axis in tree.axes for level in axis.levels]


def _cuboid_names(tree: Tree) -> list[str]:
    return [tree.cuboid_name(t) for t in range(tree.depth + 1)]
