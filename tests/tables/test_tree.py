"""Trees: orders of refinement, names of depths, digests, and orders that are none."""

import pytest

from hedgerow.errors import TableError
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from tests.made import fixed_axis


def sexes(columns=None):
    return Axis.from_frame("sex", {"sex": ["f", "m"]}, ["sex"], columns=columns)


def diseases():
    rows = {"chapter": ["A", "A", "B"], "code": ["A1", "A2", "B1"]}
    return Axis.from_frame("disease", rows, ["chapter", "code"])


def ages():
    return Axis.from_frame("age", {"band": ["0", "1", "2", "3"]}, ["band"])


def two_axes(refine=None):
    """Origin and destination of two levels: 2 × 3 areas each."""
    ends = [
        fixed_axis(end, 2, 3, columns=[f"{end}_1", f"{end}_2"]) for end in ("origin", "destination")
    ]
    return Tree(ends, refine)


def test_one_axis_is_refined_level_by_level():
    tree = Tree([diseases()])
    assert [tree.cuboid(t) for t in range(3)] == [(0,), (1,), (2,)]
    assert [tree.nodes(t) for t in range(3)] == [1, 2, 3]
    assert [tree.cuboid_name(t) for t in range(3)] == ["total", "chapter", "code"]
    assert tree.columns(1) == ["chapter"]


def test_axes_alternate_in_the_order_given():
    tree = two_axes(["destination", "origin"])
    assert [tree.cuboid(t) for t in range(5)] == [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2)]
    assert [tree.nodes(t) for t in range(5)] == [1, 2, 4, 12, 36]
    assert tree.leaves == 36
    assert tree.columns(3) == ["origin_1", "destination_1", "destination_2"]
    assert two_axes().cuboid(1) == (1, 0)


def test_an_axis_without_levels_left_drops_out_of_the_alternation():
    tree = Tree([sexes(), diseases()])
    assert tree.steps == ((0, 1), (1, 1), (1, 2))


def test_every_step_can_be_listed():
    order = ["disease.chapter", "sex.sex", "age.band", "disease.code"]
    tree = Tree([diseases(), sexes(), ages()], order)
    assert tree.steps == ((0, 1), (1, 1), (2, 1), (0, 2))
    assert tree.cuboid_name(2) == "disease.chapter × sex.sex"
    assert [tree.nodes(t) for t in range(5)] == [1, 2, 4, 16, 24]


def test_one_axis_is_no_list_of_axes():
    with pytest.raises(TableError, match=r"a list of axes, got one axis; write Tree\(\[axis\]\)"):
        Tree(ages())


def test_a_depth_is_found_by_its_name():
    tree = two_axes()
    assert [tree.depth_of(tree.cuboid_name(t)) for t in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(TableError, match="the tree has no depth 'county'; its depths are 'total'"):
        tree.depth_of("county")


def test_a_depth_out_of_range_is_refused():
    for depth in (-1, 5):
        with pytest.raises(TableError, match=f"depth must be between 0 and 4, got {depth}"):
            two_axes().cuboid(depth)


@pytest.mark.parametrize(
    ("refine", "words"),
    [
        (["origin"], "refine must name every axis once (origin, destination), got origin"),
        (["origin", "origin"], "refine must name every axis once"),
        ([], "refine must name every axis once"),
        (["origin.level1", "sex.sex"], "'sex.sex' does not fit"),
        (["origin.level2"], "'origin.level2' is out of order; next for axis 'origin' is 'level1'"),
        (["origin.level3"], "axis 'origin' has no level 'level3'"),
        (["origin.level1", "origin.level2"], "refine leaves out 'destination.level1'"),
        (
            [f"{a}.level{k}" for a in ("origin", "destination") for k in (1, 2)]
            + ["origin.level2"],
            "'origin.level2' is out of order; next for axis 'origin' is 'nothing'",
        ),
    ],
)
def test_an_order_that_is_none_is_refused(refine, words):
    with pytest.raises(TableError) as caught:
        two_axes(refine)
    assert words in str(caught.value)


def test_axes_must_differ_in_name_and_columns():
    with pytest.raises(TableError, match="at least one axis"):
        Tree([])
    with pytest.raises(TableError, match="share the name 'sex'"):
        Tree([sexes(), sexes(["other"])])
    with pytest.raises(TableError, match="share a column called 'band'"):
        Tree([sexes(["band"]), ages()])


def test_the_number_of_nodes_may_exceed_a_word():
    axes = [fixed_axis(f"a{i}", 10, 10, 10, columns=[f"{i}{k}" for k in "xyz"]) for i in range(22)]
    assert Tree(axes).leaves == 10**66


def test_the_digest_changes_with_the_axes_their_columns_and_the_order():
    base = Tree([diseases(), sexes()])
    others = [
        Tree([diseases(), sexes(["gender"])]),
        Tree([sexes(), diseases()]),
        Tree([diseases(), sexes()], ["sex", "disease"]),
        Tree([diseases()]),
        Tree([diseases(), ages()]),
    ]
    digests = {tree.digest for tree in (base, *others)}
    assert len(digests) == 1 + len(others)
    assert Tree([diseases(), sexes()], ["disease", "sex"]).digest == base.digest
