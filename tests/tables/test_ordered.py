"""Leaf counts as they stream out of the database: in tree order, each leaf once, on disk or not."""

import numpy as np
import polars as pl
import pytest

from hedgerow.tables import ordered
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from tests.made import fixed_axis, random_axis


def random_table(rng, tree, rows):
    """Rows with repeated leaves and zero counts, and the counts that they make."""
    codes = tuple(
        rng.integers(0, axis.size(axis.depth), rows).astype(np.int32) for axis in tree.axes
    )
    values = rng.integers(0, 4, rows)
    deepest = {
        axis.columns[-1]: axis.labels[-1].gather(code)
        for axis, code in zip(tree.axes, codes, strict=True)
    }
    return pl.DataFrame(deepest | {"n": values}), Counts.from_leaves(tree, codes, values)


def same(one, other):
    pairs = zip((*one.codes, one.values), (*other.codes, other.values), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


each_memory = pytest.mark.parametrize("memory", [None, 1 << 30], ids=["in memory", "on disk"])


@each_memory
@pytest.mark.parametrize("seed", range(6))
def test_rows_become_counts_in_tree_order(monkeypatch, seed, memory):
    monkeypatch.setattr(ordered, "ROWS_A_BATCH", 17)
    rng = np.random.default_rng(seed)
    axes = [random_axis(rng, f"a{i}", depth=2, widest=5) for i in range(1 + seed % 3)]
    tree = Tree(axes)
    table, expected = random_table(rng, tree, 500)
    assert same(Counts.from_frame(tree, table, count="n", memory=memory), expected)
    assert Counts.from_frame(tree, table, memory=memory).total == 500


def test_a_tree_of_several_words_is_in_order_too():
    axes = [fixed_axis(n, *[2] * 10, columns=[f"{n}{k}" for k in range(10)]) for n in "abkl"]
    tree = Tree([*axes, *(fixed_axis(n, 8, columns=[n]) for n in "cdefghij")])
    table, expected = random_table(np.random.default_rng(0), tree, 300)
    assert len(ordered.leaf_words(tree, 0)) > 1
    assert same(Counts.from_frame(tree, table, count="n"), expected)


@each_memory
@pytest.mark.parametrize("rows", [0, 1])
def test_an_empty_table_and_a_single_row_are_ordinary(rows, memory):
    tree = Tree([fixed_axis("a", 3)])
    table = pl.DataFrame({"level1": ["000000001"] * rows, "n": [5] * rows})
    table = table.cast({"level1": pl.String, "n": pl.Int64})
    counts = Counts.from_frame(tree, table, count="n", memory=memory)
    assert counts.codes[0].tolist() == [1] * rows
    assert counts.values.tolist() == [5] * rows


@pytest.mark.parametrize("grouped", [False, True], ids=["sorted", "grouped"])
def test_a_sum_over_many_rows_is_cut_and_never_wraps(monkeypatch, grouped):
    monkeypatch.setattr(ordered, "ROWS_A_BATCH", 3)
    tree = Tree([fixed_axis("a", 3 if grouped else 1000)])
    table = pl.DataFrame({"level1": ["000000001"] * 40, "n": [1 << 38] * 40})
    for rows in (2, 3, 4, 5, 40):
        counted = Counts.from_frame(tree, table.head(rows), count="n").total
        assert counted == min(rows << 38, 1 << 40)


def test_leaf_counts_on_disk_leave_no_file_behind(monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    tree = Tree([fixed_axis("a", 100)])
    table, expected = random_table(np.random.default_rng(1), tree, 1000)
    counts = Counts.from_frame(tree, table, count="n", memory=1 << 30)
    assert list(tmp_path.iterdir()) == []
    assert same(counts, expected)
    assert not counts.values.flags.writeable, "a map of a file"


def test_a_column_on_disk_has_no_name_that_a_killed_run_could_leave(tmp_path):
    column = ordered.Column(np.int64, tmp_path / "leaf0")
    for part in (np.arange(5), np.arange(5, 9)):
        column.append(part)
        assert list(tmp_path.iterdir()) == []
    assert column.whole().tolist() == list(range(9))
