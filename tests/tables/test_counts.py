"""Leaf counts: tree order and roll-ups against dictionaries."""

from collections import Counter
from itertools import pairwise, product

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, tree_rank, word_depths
from tests.made import fixed_axis, random_axis
from tests.refused import refused


def paths_of(axis):
    """For each leaf its path of node numbers."""
    return list(zip(*(axis.ancestors(k).tolist() for k in range(1, axis.depth + 1)), strict=True))


def key_of(tree, depth, leaf):
    """The path of a leaf's node: one node number a step, by brute force."""
    paths = [paths_of(axis)[code] for axis, code in zip(tree.axes, leaf, strict=True)]
    return tuple(paths[axis][level - 1] for axis, level in tree.steps[:depth])


def random_refinement(rng, axes):
    """Every level of every axis in a random order that keeps each axis's own."""
    turns = rng.permutation([i for i, axis in enumerate(axes) for _ in range(axis.depth)])
    reached = [0] * len(axes)
    steps = []
    for i in turns:
        steps.append(f"{axes[i].name}.{axes[i].levels[reached[i]]}")
        reached[i] += 1
    return steps


@st.composite
def tables(draw):
    """A random tree over 1 to 3 axes and random leaves, some repeated, some zero."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    axes = [
        random_axis(rng, f"a{i}", depth=draw(st.integers(1, 3)), widest=3)
        for i in range(draw(st.integers(1, 3)))
    ]
    tree = Tree(axes, random_refinement(rng, axes) if draw(st.booleans()) else None)
    size = draw(st.integers(0, 60))
    codes = tuple(rng.integers(0, axis.size(axis.depth), size).astype(np.int32) for axis in axes)
    return tree, codes, rng.integers(0, 4, size)


@settings(deadline=None)
@given(tables())
def test_leaves_stand_in_tree_order_each_once(table):
    tree, codes, values = table
    counts = Counts.from_leaves(tree, codes, values)
    expected = Counter()
    for *leaf, n in zip(*codes, values, strict=True):
        expected[key_of(tree, tree.depth, leaf), tuple(leaf)] += n
    listed = sorted((key, leaf, n) for (key, leaf), n in expected.items() if n)
    assert list(zip(*counts.codes, strict=True)) == [leaf for _, leaf, _ in listed]
    assert counts.values.tolist() == [n for _, _, n in listed]
    assert counts.total == values.sum()


@settings(deadline=None)
@given(tables())
def test_a_roll_up_sums_each_subtree_and_keeps_the_order(table):
    tree, codes, values = table
    counts = Counts.from_leaves(tree, codes, values)
    for depth in range(tree.depth + 1):
        expected = Counter()
        for *leaf, n in zip(*codes, values, strict=True):
            expected[key_of(tree, depth, leaf)] += n
        _, sums = counts.roll_up(depth)
        assert sums.tolist() == [expected[key] for key in sorted(expected) if expected[key]]


@settings(deadline=None)
@given(tables())
def test_labels_are_the_paths_of_the_nodes(table):
    tree, codes, values = table
    counts = Counts.from_leaves(tree, codes, values)
    for depth in range(1, tree.depth + 1):
        expected = Counter()
        for *leaf, n in zip(*codes, values, strict=True):
            labels = []
            for axis, code, level in zip(tree.axes, leaf, tree.cuboid(depth), strict=True):
                labels += [axis.labels[k][paths_of(axis)[code][k]] for k in range(level)]
            expected[tuple(labels)] += int(n)
        level = counts.level(depth)
        assert level.columns == [*tree.columns(depth), "count"]
        assert {row[:-1]: row[-1] for row in level.rows()} == {
            k: n for k, n in expected.items() if n
        }


def deep_tree():
    """64 refinements of 8 axes with 3⁸ leaves each: 3.4 × 10³⁰ leaves."""
    axes = [
        fixed_axis(f"a{i}", *[3] * 8, columns=[f"a{i}_{k}" for k in range(8)]) for i in range(8)
    ]
    return Tree(axes)


def test_a_tree_of_depth_64_is_sorted_by_keys_of_several_words():
    tree = deep_tree()
    assert tree.depth == 64
    assert tree.leaves > 2**100
    cuts = word_depths(tree)
    assert len(cuts) > 2
    assert (cuts[0], cuts[-1]) == (0, 64)
    rng = np.random.default_rng(1)
    # few distinct codes, so that leaves part at every depth
    codes = tuple(
        rng.choice([0, 1, 3, 2187, 4373, 4374, 6559, 6560], 400).astype(np.int32) for _ in "a" * 8
    )
    counts = Counts.from_leaves(tree, codes, np.ones(400, dtype=np.int64))
    paths = paths_of(tree.axes[0])

    def key(leaf):
        return tuple(paths[leaf[axis]][level - 1] for axis, level in tree.steps)

    expected = sorted(set(zip(*codes, strict=True)), key=key)
    assert list(zip(*counts.codes, strict=True)) == expected


def test_words_reach_the_last_and_first_leaf_without_overflow():
    tree = deep_tree()
    ends = tuple(np.array([0, 6560], dtype=np.int32) for _ in tree.axes)
    for word in tree_rank(tree, ends):
        assert word[0] == 0
        assert word[1] > 0
    cuts = word_depths(tree)
    for (upper, lower), word in zip(pairwise(cuts), tree_rank(tree, ends), strict=True):
        assert word[1] == int("2" * (lower - upper), 4), "two bits a step, the last of three"


def test_words_increase_over_the_leaves_of_a_full_tree():
    rng = np.random.default_rng(3)
    for _ in range(20):
        axes = [random_axis(rng, f"a{i}", depth=2, widest=3) for i in range(3)]
        tree = Tree(axes, random_refinement(rng, axes))
        leaves = list(product(*(range(axis.size(2)) for axis in axes)))
        leaves.sort(key=lambda leaf: key_of(tree, tree.depth, leaf))
        codes = tuple(np.array(code, dtype=np.int32) for code in zip(*leaves, strict=True))
        (word,) = tree_rank(tree, codes)
        assert (np.diff(word) > 0).all()


def test_a_tree_of_100_billion_leaves_takes_a_handful_of_counts():
    axes = [fixed_axis(end, 100, 100, 32, columns=[f"{end}{k}" for k in range(3)]) for end in "od"]
    tree = Tree(axes)
    assert tree.leaves > 10**11
    counts = Counts.from_leaves(
        tree, (np.array([319_999, 0], np.int32), np.array([5, 319_999], np.int32)), np.array([2, 3])
    )
    assert counts.values.tolist() == [3, 2]
    assert counts.roll_up(2)[1].tolist() == [3, 2]


def test_nothing_is_an_ordinary_table():
    tree = deep_tree()
    nothing = tuple(np.zeros(0, dtype=np.int32) for _ in tree.axes)
    counts = Counts.from_leaves(tree, nothing, np.zeros(0, dtype=np.int64))
    assert counts.total == 0
    assert counts.level(3).is_empty()


def test_each_leaf_is_cut_at_its_limit_and_a_negative_count_is_refused():
    tree = Tree([Axis.from_frame("x", {"x": ["a", "b"]}, ["x"])])
    codes = (np.array([0, 1], dtype=np.int32),)
    for values in ([2**40 - 1, 1], [2**40, 1], [2**40 + 1, 1], [2**63 - 1, 2**63 - 1]):
        cut = [min(value, 2**40) for value in values]
        assert Counts.from_leaves(tree, codes, np.array(values)).values.tolist() == cut
    twice = (np.array([0, 1, 0, 1], dtype=np.int32),)
    counts = Counts.from_leaves(tree, twice, np.array([2**40 - 1, 1, 2, 2**40 - 2]))
    assert counts.values.tolist() == [2**40, 2**40 - 1]
    with refused("negative"):
        Counts.from_leaves(tree, codes, np.array([1, -1]))


def test_counts_never_print_themselves():
    tree = Tree([Axis.from_frame("x", {"x": ["secret"]}, ["x"])])
    counts = Counts.from_leaves(tree, (np.array([0], np.int32),), np.array([12345]))
    assert repr(counts) == "Counts(confidential)"


def test_from_frame_remembers_the_bound_only_where_there_is_one():
    tree = Tree([Axis.from_frame("x", {"x": ["a"]}, ["x"])])
    table = pl.DataFrame({"x": ["a", "a", "a"], "who": ["1", "1", "2"]})
    bounded = Counts.from_frame(tree, table, unit="who", contributions=1)
    assert (bounded.contributions, bounded.total) == (1, 2)
    free = Counts.from_frame(tree, table)
    assert (free.contributions, free.total) == (None, 3)
