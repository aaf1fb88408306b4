"""Codes in files of counts: a dictionary a row group, or row by row, say the same."""

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory import measurements
from hedgerow.release.directory.measurements import Shape, counts_file, counts_growing, read_counts
from tests.made import fixed_axis, plain_plan

LISTS = [{"sex": ["f", "m"]}, {"age": ["old", "young", "young at heart"]}]


def made():
    place = fixed_axis("place", 4, 5, 6)
    person = hr.Axis.from_product("person", LISTS, ["sex", "detail"])
    tree = hr.Tree([place, person])
    return plain_plan(
        tree, budget=hr.Rho(1), neighbours=hr.Replace(), workload=hr.Cube(), measure=hr.All()
    )


@pytest.mark.parametrize("shared", [1 << 20, 300, 0], ids=["all", "coarse levels", "none"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_have_the_codes_of_their_nodes_and_ancestors(seed, shared, monkeypatch, tmp_path):
    monkeypatch.setattr(measurements, "MOST_SHARED", shared)
    monkeypatch.setattr(measurements, "ROWS_A_GROUP", 50)
    plan, rng = made(), np.random.default_rng(seed)
    tree = plan.tree
    (tmp_path / "counts").mkdir()
    for levels in plan.levels:
        cells = tree.cells(levels)
        some = np.sort(rng.choice(cells, size=max(1, cells // 3), replace=False))
        sizes = [axis.size(k) for axis, k in zip(tree.axes, levels, strict=True)]
        codes = tuple(c.astype(np.int32) for c in np.unravel_index(some, sizes))
        nodes = Nodes.exact(codes, some + 1)
        file = counts_growing(tmp_path / counts_file(levels), plan, levels, cells)
        for begin in range(0, len(some), 40):
            few = nodes.take(slice(begin, begin + 40))
            file.add(few, len(few))
        file.close()
        paths = zip(tree.axes, levels, codes, strict=True)
        expected = [each for axis, k, code in paths for each in axis.path(k, code)]
        found = read_counts(tmp_path, Shape.of(tree, levels))
        assert found.select(tree.columns_of(levels)).equals(pl.DataFrame(expected))
        assert found["count"].to_list() == (some + 1).tolist()


def test_a_row_group_holds_no_more_codes_than_lie_between_its_first_and_last(tmp_path):
    plan = made()
    levels = (3, 0)
    codes = np.arange(10, 20, dtype=np.int32), np.zeros(10, dtype=np.int32)
    file = counts_growing(tmp_path / "one.parquet", plan, levels, 100)
    file.add(Nodes.exact(codes, np.arange(10) + 1), 10)
    file.close()
    file = pq.ParquetFile(tmp_path / "one.parquet", read_dictionary=["level3"])
    (chunk,) = file.read(["level3"])["level3"].chunks
    assert chunk.dictionary.to_pylist() == chunk.to_pylist()
