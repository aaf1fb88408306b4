"""A prior: an earlier public table that tells an allocation which counts to expect.

An allocation made from the confidential table reveals some of it through the noise of each depth
(Ko et al., Section 3.2), so a prior is declared public. Whether it has the table's own counts only
the table can tell: `has_counts_of`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import compress
from typing import Any

import numpy as np

from hedgerow.arrays import Int64, IntPair
from hedgerow.declared import frozen
from hedgerow.errors import PlanError, TableError, check_type, of_public_table, shorten
from hedgerow.limits import MOST_COLUMNS_OF_A_LIST
from hedgerow.tables.axis import Axis
from hedgerow.tables.codes.rule import Reading
from hedgerow.tables.counts import Counts
from hedgerow.tables.lists.column_names import count_among
from hedgerow.tables.lists.public_table import as_called, columns_in
from hedgerow.tables.ordered import hold_counts
from hedgerow.tables.read import read_areas, read_leaves
from hedgerow.tables.sources.database import translate_duckdb_errors
from hedgerow.tables.sources.source import TooLargeError, describe_source, load, open_table
from hedgerow.tables.tree import Tree

_MOST_BINS = 1 << 22
SUBJECT = "the table"
HINT = 'say so: columns = {AXIS = ["…"]}'


@frozen(eq=False, repr=False)
class Prior:
    """The counts of a public table over a tree of its own, with the levels of the release's.

    Its areas may differ: only how many nodes of a depth have which count matters.

    Args:
        counts: of the public table.
        public: must be True: the planner's declaration that anyone may see this table.

    Raises:
        PlanError: it is not declared public.

    Example:
        >>> import polars as pl
        >>> areas = pl.DataFrame({"town": ["a", "b"]})
        >>> tree = hr.Tree([hr.Axis.from_frame("place", areas, ["town"])])
        >>> earlier = hr.Counts.from_frame(tree, pl.DataFrame({"town": ["a", "a", "b"]}))
        >>> hr.Prior(earlier, public=True)
        Prior(3 records)
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

        Its columns are called as the table's, or as the list's where no other axis has them. The
        areas are those that it names, where it has all columns of an axis. Where it has codes of
        the deepest level alone, they are the release's; or those of its own codes, if the axis cuts
        codes by prefix or divides coordinates. Those of a product axis are its lists'.

        Args:
            tree: the release's; it gives axes, levels and the order of refinement.
            source: a file, a `Query` or a data frame: rows as of a table.
            count: the column with the number of records of a row; left out, a row is a record.
            columns: for axes whose columns are named otherwise in the file: axis → its columns,
                coarsest first, or that of the leaf codes alone.
            public: must be True.

        Raises:
            PlanError: it is not declared public, or ``columns`` name no axis.
            TableError: a column or a code that does not fit; no ``count``, and a column that looks
                like one.
        """
        _check_public(public)
        check_type("the tree of a prior", tree, Tree, "Tree([axis, …])", PlanError)
        _check_axes(tree, columns or {})
        with of_public_table("the prior: "):
            subject = describe_source(source, SUBJECT)
            names = columns_in(source, SUBJECT)
            called = as_called(tree.axes, names, subject, given=columns, hint=HINT)
            own = tree.with_axes([_axis_of(axis, source) for axis in called])
            counts = _public_counts(own, source, count)
            if count is None:
                _refuse_counts(own, source, names, counts)
        return cls(counts, public=True)

    def check_fits(self, tree: Tree) -> None:
        """Raise a PlanError unless the prior has the axes, levels and refinement of a tree."""
        properties: dict[str, Callable[[Tree], list[str]]] = {
            "axes": lambda tree: tree.axis_names,
            "levels": lambda tree: [f"{a.name}.{level}" for a in tree.axes for level in a.levels],
            "order of refinement": lambda tree: list(map(tree.name_of, tree.chain)),
        }
        for name, of in properties.items():
            own = of(self.counts.tree)
            wanted = of(tree)
            if own != wanted:
                raise PlanError(
                    f"the prior must have the {name} of the release ({', '.join(wanted)}), got "
                    f"{', '.join(own)}; only its areas may differ"
                )

    def values(self, depth: int, nodes: int) -> IntPair:
        """Return the distinct counts of a depth, and how many nodes have each.

        Of the ``nodes`` of the release's tree those that the prior does not list count as empty.

        Returns:
            counts: int64 (values), records, ascending; times: int64 (values), all positive.
        """
        listed = self.counts.roll_up(depth)[1]
        values, times = _grouped(listed)
        empty = nodes - len(listed)
        if empty <= 0:
            return values, times
        return np.insert(values, 0, 0), np.insert(times, 0, empty)


def check_prior(prior: object) -> None:
    """Raise a PlanError unless it is a prior or None: a bare table is not declared public."""
    fitting = "Prior(counts, public=True), or None"
    check_type("a prior", prior, (Prior, type(None)), fitting, PlanError)


def _public_counts(tree: Tree, source: Any, count: str | None) -> Counts:
    codes, values, _, unlisted = read_leaves(
        tree, source, count=count, unit=None, contributions=1, public=True
    )
    return Counts(tree, codes, values, unlisted=unlisted)


def has_counts_of(public: Counts, counts: Counts) -> bool:
    """Return whether a public table has the leaf counts of another, whatever their labels.

    The other is the confidential one, and so is the answer: it is for a terminal alone.
    """
    pairs = zip(_grouped(counts.values), _grouped(public.values), strict=True)
    return len(counts.values) > 0 and all(np.array_equal(one, other) for one, other in pairs)


def _grouped(counts: Int64) -> IntPair:
    """Return distinct values and how often each occurs.

    Small values are counted without sorting. Sums that wrapped may be negative; they count as
    large.
    """
    bins = min(_MOST_BINS, 4 * len(counts))
    small = counts.view(np.uint64) < bins
    times = np.bincount(counts if small.all() else counts[small], minlength=1)
    values = np.flatnonzero(times)
    large, large_times = np.unique(counts[~small], return_counts=True)
    return np.append(values, large), np.append(times[values], large_times)


def _axis_of(axis: Axis, source: Any) -> Axis:
    """Return an axis of the codes that a file names, or as it is where these tell no levels."""
    reading = axis.reading
    if axis.product is not None or (reading is not None and not _is_path(reading)):
        return axis
    if reading is not None and reading.rule is not None:
        own = reading.rule.of_columns(reading.columns)
        areas = read_areas(
            source, reading.columns, repeated=True, public=True, numbers=reading.numeric
        )
        return Axis.from_frame(
            axis.name, areas, axis.levels, rule=own, from_table=True, attribute=axis.attribute
        )
    if not set(axis.columns) <= set(columns_in(source, SUBJECT)):  # the deepest alone
        return axis
    areas = read_areas(source, axis.columns, repeated=True, public=True)
    areas = areas.rename(dict(zip(axis.columns, axis.levels, strict=True)))
    return Axis.from_frame(
        axis.name,
        areas,
        axis.levels,
        columns=axis.columns,
        from_table=True,
        attribute=axis.attribute,
    )


def _is_path(reading: Reading) -> bool:
    """Return whether a code tells all its levels."""
    return reading.rule is not None and reading.rule.sql(1, reading.columns) is not None


def _check_axes(tree: Tree, given: Mapping[str, Sequence[str]]) -> None:
    """Raise unless columns are given of axes of a tree."""
    for name in given:
        if name not in tree.axis_names:
            axes = ", ".join(tree.axis_names)
            raise PlanError(
                f"columns of the prior: there is no axis {shorten(name)!r}; there is {axes}"
            )


def _check_public(public: object) -> None:
    if public is not True:
        raise PlanError(
            "a prior must be public, as the plan made from it will be: declare public = true if "
            "anyone may see it, or plan without a prior"
        )


def _refuse_counts(tree: Tree, source: Any, names: Sequence[str], counts: Counts) -> None:
    """Raise a TableError if a row seems to be no record, but a cell with its count.

    That is where a column is called like counts; or where no cell has two rows, and a column holds
    whole numbers that sum to more than there are rows.
    """
    left = [name for name in names if name not in tree.every_column]
    count_column = count_among(left)
    if count_column is None and len(counts.values) > 1 and counts.values.max() == 1:
        once = [name for name in left[:MOST_COLUMNS_OF_A_LIST] if left.count(name) == 1]
        count_column = _holding_counts(source, once)
    if count_column is not None:
        raise TableError(
            f"no count is given, so each row would be one record, but the column {count_column!r} "
            f'looks like numbers of records: give count = "{count_column}", or leave that column '
            f"out of the file if each row is a record"
        )


def _holding_counts(source: Any, names: Sequence[str]) -> str | None:
    """Return the first column of whole numbers; all are looked at together."""
    if not names:
        return None
    try:
        with open_table(source, SUBJECT, public=True) as (db, opened):
            kinds = load(db, opened, names)
            with translate_duckdb_errors(SUBJECT, "cannot be read to its end"):
                return next(compress(names, hold_counts(db, kinds)), None)
    except TooLargeError:
        raise
    except TableError:
        return None
