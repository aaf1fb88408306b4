"""One record more changes one count of each depth by at most one, also where leaves are full.

The limit of a leaf is made small, so that random tables pass it.
"""

from contextlib import contextmanager
from itertools import pairwise

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.limits import LARGEST_LEAF
from hedgerow.plan import chain as planned_chain
from hedgerow.spark import table as spark_table
from hedgerow.spark import top as cluster_top
from hedgerow.spark.table import SparkTable
from hedgerow.spark.top import Top
from hedgerow.tables import counts as counts_module
from hedgerow.tables import ordered
from hedgerow.tables import ordered as whole
from hedgerow.tables.counts import Counts
from tests.made import fixed_axis, plain_plan

LIMIT = 5
TREE = hr.Tree([fixed_axis("geo", 2, 2)])
(AXIS,) = TREE.axes
CODES = AXIS.labels[-1].to_list()
COLUMN = AXIS.columns[-1]

rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1, max_size=12)


@contextmanager
def leaves_hold(limit):
    with pytest.MonkeyPatch.context() as patch:
        for module in (counts_module, ordered, whole, spark_table):
            patch.setattr(module, "LARGEST_LEAF", limit)
        yield patch


def table_of(given_rows, *, grouped):
    """Rows of leaves and counts; grouped: a row is a record."""
    if grouped:
        return pa.table(
            {COLUMN: pa.array([CODES[c] for c, n in given_rows for _ in range(n)], pa.string())}
        )
    return pa.table(
        {
            COLUMN: [CODES[c] for c, _ in given_rows],
            "n": pa.array([n for _, n in given_rows], pa.int64()),
        }
    )


def local(given_rows, *, grouped):
    return Counts.from_frame(
        TREE, table_of(given_rows, grouped=grouped), count=None if grouped else "n"
    )


def expected(given_rows, limit=LIMIT):
    """The counts of the leaves, by brute force."""
    found = [0] * TREE.leaves
    for code, n in given_rows:
        found[code] += n
    return [min(n, limit) for n in found]


def dense(counts, depth):
    found = np.zeros(TREE.nodes(depth), dtype=np.int64)
    (codes,), values = counts.roll_up(depth)
    found[codes] = values
    return found


def assert_stable(before, after, depths):
    for depth in depths:
        change = dense(after, depth) - dense(before, depth)
        assert np.count_nonzero(change) <= 1, depth
        assert ((change == 0) | (change == 1)).all(), depth


def one_more(given_rows, code, *, into):
    """A record more: in a row of its own, or in one that is there."""
    if into is None:
        return [(code, 1), *given_rows]
    place = into % len(given_rows)
    leaf, n = given_rows[place]
    return [*given_rows[:place], (leaf, n + 1), *given_rows[place + 1 :]]


more = st.tuples(st.integers(0, 3), st.none() | st.integers(0, 11))


@settings(max_examples=15, deadline=None)
@given(rows, more, st.booleans())
def test_a_record_more_changes_one_count_of_each_depth_by_one_at_most(some, added, grouped):
    after = one_more(some, added[0], into=added[1])
    with leaves_hold(LIMIT):
        tables = local(some, grouped=grouped), local(after, grouped=grouped)
    for table, given_rows in zip(tables, (some, after), strict=True):
        assert dense(table, TREE.depth).tolist() == expected(given_rows)
    assert_stable(*tables, range(TREE.depth + 1))


@settings(max_examples=15, deadline=None)
@given(rows, more)
def test_leaves_from_anywhere_are_stable(some, added):
    def made(given_rows):
        codes = np.array([c for c, _ in given_rows], dtype=np.int32)
        return Counts.from_leaves(TREE, (codes,), np.array([n for _, n in given_rows]))

    after = one_more(some, added[0], into=added[1])
    with leaves_hold(LIMIT):
        tables = made(some), made(after)
    assert dense(tables[1], TREE.depth).tolist() == expected(after)
    assert_stable(*tables, range(TREE.depth + 1))


def test_rows_of_a_leaf_that_add_up_to_two_to_the_63_do_not_wrap():
    for many in (1 << 23, 1 << 24):
        codes = np.zeros(many + 1, dtype=np.int32)
        codes[-1] = 1
        values = np.full(many + 1, LARGEST_LEAF)
        values[-1] = 7
        found = Counts.from_leaves(TREE, (codes,), values)
        assert found.values.tolist() == [LARGEST_LEAF, 7]


class Rows:
    """A data frame of Spark as far as `_each_once` asks for one, evaluated by DuckDB."""

    database: duckdb.DuckDBPyConnection

    def __init__(self, table, keys=None):
        self.table, self.keys = table, keys

    def selectExpr(self, *columns):  # noqa: N802 - Spark's name
        return self._asked(", ".join(columns))

    def groupBy(self, *keys):  # noqa: N802 - Spark's name
        return Rows(self.table, keys)

    def sum(self, column):
        return self._asked(f'{", ".join(self.keys)}, SUM({column}) AS "sum({column})"', group=True)

    def _asked(self, columns, *, group=False):
        with Rows.database.cursor() as db:
            db.register("t", self.table)
            by = f" GROUP BY {', '.join(self.keys)}" if group else ""
            found = db.sql(f"SELECT {columns.replace('`', chr(34))} FROM t{by}")
            return Rows(found.to_arrow_table())


@pytest.fixture(scope="module", autouse=True)
def database():
    """Opened once, as that takes longer than what is asked."""
    with duckdb.connect() as Rows.database:
        yield


def on_executors(given_rows, shares):
    """The leaves, and the top, as Spark makes them of a table that is split into shares of rows."""
    table = SparkTable(None, count="n")
    work = spark_table._leaf_rows(table, TREE, [COLUMN, "n"])
    bounds = [0, *sorted(s % (len(given_rows) + 1) for s in shares), len(given_rows)]
    parts = [given_rows[a:b] for a, b in pairwise(bounds) if a < b]
    found = [
        batch for part in parts for batch in work(iter(table_of(part, grouped=False).to_batches()))
    ]
    leaves = spark_table._each_once(
        Rows(pa.Table.from_batches(found, spark_table.leaf_schema(TREE))), TREE
    ).table
    leaves = leaves.cast(spark_table.leaf_schema(TREE))
    design = plain_plan(TREE, budget=hr.Rho(1), neighbours=hr.AddRemove()).design
    batches = leaves.to_batches(max_chunksize=1)
    work = cluster_top._node_rows(TREE, TREE.cuboid(design.cut))
    nodes = pa.Table.from_batches(list(work(iter(batches))), cluster_top._top_schema(TREE))
    return leaves, Top.from_rows(nodes, TREE, None), design.cut


@pytest.fixture
def cut_trees(monkeypatch):
    for limit in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
        monkeypatch.setattr(planned_chain, limit, 0)
    monkeypatch.setattr(planned_chain, "MIN_JOBS", 2)


splits = st.lists(st.integers(0, 12), max_size=4)


@pytest.mark.usefixtures("cut_trees")
def test_the_tree_of_these_tests_is_cut():
    assert on_executors([(0, 1)], [])[2] == 1 < TREE.depth


@settings(max_examples=15, deadline=None)
@given(rows, more, splits, splits)
def test_the_top_is_that_of_the_local_engine_however_rows_are_shared_out(some, added, one, other):
    after = one_more(some, added[0], into=added[1])
    with leaves_hold(LIMIT) as patch:
        for name in ("UNCUT_LEAVES", "UNCUT_LEAVES_OF_ALL"):
            patch.setattr(planned_chain, name, 0)
        patch.setattr(planned_chain, "MIN_JOBS", 2)
        tops = []
        for given_rows, shares in ((some, one), (after, other)):
            leaves, top, cut = on_executors(given_rows, shares)
            own = local(given_rows, grouped=False)
            assert sum(leaves["n"].to_pylist()) == own.total == top.total
            for depth in range(cut + 1):
                assert dense(top.counts, depth).tolist() == dense(own, depth).tolist()
            tops.append(top)
    assert_stable(*(top.counts for top in tops), range(cut + 1))


@pytest.mark.usefixtures("cut_trees")
def test_two_full_rows_of_a_leaf_are_one_full_leaf_in_one_share_or_two():
    for shares in ([], [1]):
        _, top, _ = on_executors([(0, 2**40), (0, 2**40)], shares)
        assert top.total == top.counts.total == LARGEST_LEAF


def test_what_an_executor_could_not_do_is_still_told():
    schema = spark_table.leaf_schema(TREE)
    fault = pa.RecordBatch.from_arrays(
        [pa.array([None], f.type) if f.name != "fault" else pa.array(["why"]) for f in schema],
        schema=schema,
    )
    found = spark_table._each_once(Rows(pa.Table.from_batches([fault])), TREE).table
    assert found.to_pylist() == [{"leaf0": None, "n": 0, "fault": "why"}]


def rows_of_nodes(nodes, values):
    zeros = pa.array([1] * len(nodes), pa.int64())
    columns = {"leaf0": pa.array(nodes, pa.int32()), "n": pa.array(values, pa.int64())}
    return pa.table({**columns, "sum0": zeros, "sum1": zeros})


@pytest.mark.parametrize("parts", [7, 8, 12, 16])
def test_nodes_of_any_size_wrap_as_the_local_sums_do(parts):
    """A node of 2^23 full leaves and more, from sums of 2^60: nothing is refused or dropped."""
    top = Top.from_rows(rows_of_nodes([0] * parts + [2], [2**60] * parts + [3]), TREE, None)
    wrapped = (parts * 2**60 + 2**63) % 2**64 - 2**63
    assert dense(top.counts, 1).tolist() == [wrapped, 3]
    assert top.sums.tolist() == [[parts, parts], [1, 1]]
    assert top.total == float(parts * 2**60 + 3)
