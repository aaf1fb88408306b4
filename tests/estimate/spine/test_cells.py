"""The measured cells of a cuboid, against a list made cell by cell."""

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.spine.cells import Cells
from tests.estimate.spine.spines import detail_cells, groups_of, random_support


def random_cells(rng, *, holes=False):
    support = random_support(rng, depth=2)
    coarse = int(rng.integers(0, support.tree.depth + 1))
    level = int(rng.integers(0, 3))
    width = rng.integers(1, 4, support.tree.sizes[coarse])
    above = support.tree.ancestors(support.tree.depth, coarse)
    group = np.repeat(np.arange(support.groups), support.widths)
    place = rng.integers(-1 if holes else 0, width[above[group]]).astype(np.int32)
    return Cells(support, level, coarse, width, place)


def listed(cells, nodes):
    """All measured cells as (node, coarse cell, cell within)."""
    tree, found = cells.support.tree, []
    above = tree.ancestors(tree.depth, cells.coarse)
    for node in nodes:
        every = groups_of(cells.support, cells.level)[node]
        for coarse in sorted({int(above[g]) for g in every}):
            found += [(node, coarse, within) for within in range(cells.width[coarse])]
    return found


def some_nodes(rng, cells):
    size = cells.support.spine.sizes[cells.level]
    first = int(rng.integers(0, size))
    return range(first, int(rng.integers(first, size)) + 1)


@pytest.mark.parametrize("seed", range(30))
def test_cells_are_those_of_the_coarse_cells_that_are_there(seed):
    rng = np.random.default_rng(seed)
    cells = random_cells(rng)
    nodes = some_nodes(rng, cells)
    expected = listed(cells, nodes)
    assert cells.count(nodes) == len(expected)
    ends = [sum(node < n for node, *_ in expected) for n in range(nodes.start, nodes.stop + 1)]
    assert cells.start(nodes).tolist() == ends
    node, cell = cells.located(np.arange(len(expected)), nodes)
    offset = np.concatenate(([0], np.cumsum(cells.width)))
    assert node.tolist() == [n for n, _, _ in expected]
    assert cell.tolist() == [int(offset[c]) + within for _, c, within in expected]


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
@pytest.mark.parametrize("seed", range(30))
def test_sums_and_counts_fall_into_the_same_cells(seed, dtype):
    rng = np.random.default_rng(seed)
    cells = random_cells(rng, holes=seed % 2 == 0)
    nodes = some_nodes(rng, cells)
    detail = detail_cells(cells.support, cells.level, nodes)
    values = rng.integers(-50, 50, len(detail)).astype(dtype)
    table = dict.fromkeys(listed(cells, nodes), 0)
    above = cells.support.tree.ancestors(cells.support.tree.depth, cells.coarse)
    for (node, group, cell), value in zip(detail, values, strict=True):
        if cells.place[cell] >= 0:
            table[node, int(above[group]), int(cells.place[cell])] += value
    found = cells.sums(values, nodes)
    assert found.dtype == dtype
    assert found.tolist() == list(table.values())
    node = np.array([n for n, _, _ in detail], dtype=np.int32)
    cell = np.array([c for _, _, c in detail], dtype=np.int32)
    order, out = rng.permutation(len(detail)), np.zeros(len(found), dtype=np.int64)
    cells.add(out, nodes, node[order], cell[order], values[order].astype(np.int64))
    assert out.tolist() == list(table.values())


def test_counts_of_absent_groups_of_no_cell_and_of_nodes_outside_are_left_out():
    rng = np.random.default_rng(1)
    cells = random_cells(rng)
    size = cells.support.spine.sizes[cells.level]
    every = [(n, c) for n in range(size) for c in range(len(cells.place))]
    there = {(n, c) for n, _, c in detail_cells(cells.support, cells.level, range(size))}
    absent = [pair for pair in every if pair not in there] + [(0, -1), (-1, 0), (size, 0)]
    assert len(absent) > 3
    out = np.zeros(cells.count(range(size)), dtype=np.int64)
    node, cell = np.array(absent, dtype=np.int32).T
    cells.add(out, range(size), node, cell, np.ones(len(absent), dtype=np.int64))
    assert not out.any()


def test_counts_are_added_modulo_two_to_the_64():
    support = random_support(np.random.default_rng(2), depth=1, chance=None)
    total = Cells(support, 0, 0, np.ones(1, np.int64), np.zeros(support.widths.sum(), np.int32))
    out, zeros = np.zeros(1, dtype=np.int64), np.zeros(2, dtype=np.int32)
    total.add(out, range(1), zeros, zeros, np.full(2, 2**62 + 2**61))
    assert out[0] == 3 * 2**62 - 2**64


def test_the_detail_itself_is_not_copied():
    support = random_support(np.random.default_rng(4), depth=1)
    place = np.concatenate([np.arange(w) for w in support.widths]).astype(np.int32)
    cells = Cells(support, 1, support.tree.depth, support.widths, place)
    nodes = range(support.spine.sizes[1])
    detail = np.arange(float(support.cells(1, nodes)))
    assert cells.sums(detail, nodes) is detail


def test_cells_that_do_not_fit_are_refused():
    support = random_support(np.random.default_rng(4), depth=1)
    cells, place = int(support.widths.sum()), np.zeros(support.widths.sum(), dtype=np.int32)
    one = np.ones(1, dtype=np.int64)
    with pytest.raises(EstimateError, match="the widths of 1 coarse"):
        Cells(support, 0, 0, np.ones(2, dtype=np.int64), place)
    with pytest.raises(EstimateError, match="the widths of 1 coarse"):
        Cells(support, 0, 0, one, np.zeros(cells + 1, dtype=np.int32))
    with pytest.raises(EstimateError, match="must lie within its coarse cell"):
        Cells(support, 0, 0, one, place + np.int32(1))
    with pytest.raises(EstimateError, match="cells here, got"):
        Cells(support, 0, 0, one, place).sums(np.zeros(1 + support.cells(0, range(1))), range(1))
