"""Codes in files of counts: a dictionary a row group, or row by row, say the same."""

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.directory import measurements
from hedgerow.release.directory.measurements import ReleaseFiles, counts_file, read_counts
from hedgerow.tables import code_column
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
    monkeypatch.setattr(code_column, "MOST_SHARED", shared)
    monkeypatch.setattr(measurements, "ROWS_A_GROUP", 50)
    plan, rng, known = made(), np.random.default_rng(seed), {}
    tree = plan.tree
    with ReleaseFiles(tmp_path, plan) as files:
        for levels in plan.levels:
            cells = tree.cells(levels)
            some = np.sort(rng.choice(cells, size=max(1, cells // 3), replace=False))
            sizes = [axis.size(k) for axis, k in zip(tree.axes, levels, strict=True)]
            codes = tuple(c.astype(np.int32) for c in np.unravel_index(some, sizes))
            known[levels] = Nodes.exact(codes, some + 1)
            for begin in range(0, len(some), 40):
                files.add(levels, known[levels].take(slice(begin, begin + 40)), None)
    for levels, nodes in known.items():
        paths = zip(tree.axes, levels, nodes.codes, strict=True)
        expected = [each for axis, k, code in paths for each in axis.path(k, code)]
        found = read_counts(tmp_path, tree, levels)
        assert found.select(tree.columns_of(levels)).equals(pl.DataFrame(expected))
        assert found["count"].to_list() == nodes.counts.tolist()
    leaves = pl.from_arrow(pq.read_table(tmp_path / "domain" / "place.parquet"))
    assert leaves.equals(tree.axes[0].leaf_frame())


def test_a_row_group_holds_no_more_codes_than_lie_between_its_first_and_last(tmp_path):
    plan = made()
    levels = (3, 0)
    codes = np.arange(10, 20, dtype=np.int32), np.zeros(10, dtype=np.int32)
    with ReleaseFiles(tmp_path, plan) as files:
        files.add(levels, Nodes.exact(codes, np.arange(10) + 1), None)
    path = tmp_path / counts_file(levels)
    assert pq.ParquetFile(path).schema_arrow.field("level3").type == "string"
    file = pq.ParquetFile(path, read_dictionary=["level3"])
    (chunk,) = file.read(["level3"])["level3"].chunks
    assert chunk.dictionary.to_pylist() == chunk.to_pylist()
