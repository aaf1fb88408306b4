"""Who has which groups, bounds that follow from others, and the detail layout."""

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.cube.shape import AxisShape
from hedgerow.estimate.spine.support import UNBOUNDED, Part, Support
from tests.estimate.spine.spines import (
    detail_cells,
    groups_of,
    parts_below,
    random_pairs,
    random_support,
)

TWO_TOWNS = AxisShape.of([np.array([0, 2]), np.array([0, 2, 4])])
THREE_GROUPS = AxisShape.of([np.array([0, 3])])


def ints(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_a_node_has_the_groups_of_the_nodes_below_it(seed):
    support = random_support(np.random.default_rng(seed), chance=0.3)
    for level in range(support.spine.depth + 1):
        start, group = support.start[level], support.group[level]
        found = [group[start[n] : start[n + 1]].tolist() for n in range(support.spine.sizes[level])]
        assert found == groups_of(support, level)


@pytest.mark.parametrize("seed", range(20))
def test_the_parent_of_a_row_is_the_row_of_the_same_group_one_level_up(seed):
    support = random_support(np.random.default_rng(seed), depth=3, chance=0.4)
    for level in range(1, 4):
        node = np.repeat(np.arange(support.spine.sizes[level]), np.diff(support.start[level]))
        above = np.repeat(
            np.arange(support.spine.sizes[level - 1]), np.diff(support.start[level - 1])
        )
        up = support.parent[level]
        assert np.array_equal(support.group[level - 1][up], support.group[level])
        assert np.array_equal(above[up], support.spine.parents(level)[node])


@pytest.mark.parametrize("seed", range(10))
def test_the_detail_layout_goes_node_by_node_group_by_group(seed):
    support = random_support(np.random.default_rng(seed), depth=2)
    for level in range(3):
        nodes = range(support.spine.sizes[level] // 2, support.spine.sizes[level])
        cells = detail_cells(support, level, nodes)
        assert support.cells(level, nodes) == len(cells)
        rows = support.rows(level, nodes)
        start = support.cell[level][rows.start : rows.stop]
        firsts = [i for i, (_, g, c) in enumerate(cells) if c == support.offset[g]]
        assert (start - start[:1]).tolist() == firsts


def test_all_groups_are_everywhere_where_nothing_is_said():
    support = Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 2, 1), None)
    assert support.group[2].tolist() == [0, 1, 2] * 4


def test_a_group_without_cells_is_nowhere():
    support = Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 0, 1), (ints(0, 1, 3), ints(0, 1, 2)))
    assert [each.tolist() for each in support.group] == [[0, 2], [0, 2], [0, 2]]
    assert np.diff(support.start[2]).tolist() == [1, 0, 0, 1]
    everywhere = Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 0, 1), None)
    assert everywhere.group[2].tolist() == [0, 2] * 4


def test_no_group_anywhere_is_refused():
    with pytest.raises(EstimateError, match="no node has a group"):
        Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 0, 1), (ints(0), ints(1)))


@pytest.mark.parametrize(
    ("node", "group", "words"), [(4, 0, "no node 4; .*0 to 3"), (0, -1, "no group -1; .*0 to 2")]
)
def test_numbers_that_do_not_exist_are_refused(node, group, words):
    with pytest.raises(EstimateError, match=words):
        Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 1, 1), (ints(node), ints(group)))


def test_widths_are_one_a_group():
    with pytest.raises(EstimateError, match="3 groups"):
        Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 1), None)


def one_group(bounds):
    return Support.of(TWO_TOWNS, AxisShape.of([]), ints(1), None, bounds)


def test_what_blocks_must_have_their_towns_must_have():
    support = one_group(
        [(2, ints(0, 1, 2), ints(0, 0, 0), ints(3, 4, 1), ints(9, 9, 9)),
         (1, ints(0, 1), ints(0, 0), ints(5, 2), ints(50, 4))]
    )  # fmt: skip
    assert support.low[1].tolist() == [7, 2]
    assert support.low[0].tolist() == [9]
    assert support.high[1].tolist() == [18, 4]
    assert support.high[0].tolist() == [22]
    assert support.high[2].tolist() == [9, 9, 9, UNBOUNDED]


@pytest.mark.parametrize("seed", range(10))
def test_consistent_bounds_can_be_met_level_by_level(seed):
    """A count within its bounds can be shared out among the rows below within theirs."""
    rng = np.random.default_rng(seed)
    bare = random_support(rng, depth=3)
    deepest = len(bare.group[3])
    low = rng.integers(0, 5, deepest)
    node = np.repeat(np.arange(bare.spine.sizes[3]), np.diff(bare.start[3]))
    group = bare.group[3].astype(np.int64)
    bounds = [(3, node, group, low, low + rng.integers(0, 9, deepest))]
    support = Support.of(bare.spine, bare.tree, bare.widths, (node, group), bounds)
    for level in range(3):
        for row in range(len(support.group[level])):
            below = support.parent[level + 1] == row
            assert support.low[level][row] >= support.low[level + 1][below].sum()
            assert support.high[level][row] <= support.high[level + 1][below].sum()


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([(2, ints(1), ints(0), ints(5), ints(4))],
         "group 0 of node 1 of spine level 2 .*5 and at most 4"),
        ([(2, ints(0, 1), ints(0, 0), ints(5, 5), ints(9, 9)),
          (1, ints(0), ints(0), ints(0), ints(9))],
         "node 0 of spine level 1 .*at least 10 and at most 9"),
    ],
)  # fmt: skip
def test_bounds_that_contradict_each_other_are_refused(bounds, words):
    with pytest.raises(EstimateError, match=f"contradict.*{words}"):
        one_group(bounds)


def test_a_count_must_not_be_wanted_where_the_group_is_absent():
    bounds = [(2, ints(1), ints(2), ints(1), ints(UNBOUNDED))]
    has = ints(0, 1, 2), ints(2, 0, 1)
    with pytest.raises(EstimateError, match=r"group 2 of node 1 of spine level 2 .*at least 1"):
        Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 1, 1), has, bounds)
    none_wanted = [(2, ints(1), ints(2), ints(0), ints(UNBOUNDED))]
    assert Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 1, 1), has, none_wanted).low[2].sum() == 0


def test_parts_know_their_levels_and_nodes():
    support = random_support(np.random.default_rng(3), depth=3)
    top, job = Part.top(1), parts_below(support, 1)[-1]
    assert list(top.levels) == [0, 1]
    assert list(job.levels) == [2, 3]
    assert support.nodes(top, 1) == range(support.spine.sizes[1])
    children = support.spine.child_start[1]
    assert support.nodes(job, 2) == range(children[-2], children[-1])
    assert support.nodes(job, 1) == job.nodes
    joined = [n for part in parts_below(support, 1) for n in support.nodes(part, 3)]
    assert joined == list(range(support.spine.sizes[3]))


def test_pairs_may_come_in_any_order_and_twice():
    rng = np.random.default_rng(5)
    node, group = random_pairs(rng, 4, 3)
    first = Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 1, 1), (node, group))
    order = rng.permutation(len(node))
    again = Support.of(TWO_TOWNS, THREE_GROUPS, ints(1, 1, 1), (node[order], group[order]))
    assert np.array_equal(first.group[2], again.group[2])
