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


def with_attributes(refine=None, spines=("disease",)):
    """A spine of two levels between attributes of one and two levels."""
    areas = {"region": ["N", "S"], "town": ["N1", "S1"]}
    axes = [
        Axis.from_frame("sex", {"sex": ["f", "m"]}, ["sex"], attribute="sex" not in spines),
        Axis.from_frame(
            "disease", {"chapter": ["A", "B"], "code": ["A1", "B1"]}, ["chapter", "code"],
            attribute="disease" not in spines,
        ),
        Axis.from_frame("home", areas, ["region", "town"], attribute="home" not in spines),
    ]  # fmt: skip
    return Tree(axes, refine)


def test_the_spine_is_the_one_axis_that_is_no_attribute():
    assert with_attributes().spine == 1
    assert with_attributes(spines=("home",)).spine == 2
    assert two_axes().spine is None
    assert not two_axes().is_spine_first


@pytest.mark.parametrize("spines", [(), ("sex", "home")])
def test_attributes_need_one_spine(spines):
    with pytest.raises(TableError, match="one axis that is none, the spine, got") as caught:
        with_attributes(spines=spines)
    assert ("'sex' and 'home'" if spines else "attributes alone") in str(caught.value)


def test_the_whole_spine_is_refined_before_the_attributes_alternate():
    tree = with_attributes()
    assert tree.steps == ((1, 1), (1, 2), (0, 1), (2, 1), (2, 2))
    assert with_attributes(["home", "sex", "disease"]).steps == (
        (1, 1),
        (1, 2),
        (2, 1),
        (0, 1),
        (2, 2),
    )
    assert tree.is_spine_first


def test_every_step_given_may_leave_the_spine_for_later():
    steps = ["disease.chapter", "sex.sex", "disease.code", "home.region", "home.town"]
    assert not with_attributes(steps).is_spine_first
    steps[1:3] = steps[2:0:-1]
    assert with_attributes(steps).is_spine_first


def test_an_attribute_changes_the_digest():
    spines = [("sex",), ("disease",), ("home",)]
    assert len({with_attributes(spines=each).digest for each in spines}) == 3


def test_a_cuboid_of_a_level_that_joins_columns_is_found_by_its_name():
    lists = [{"a": ["1", "2"]}, {"b": ["1", "2"]}, {"c": ["1", "2"]}]
    person = Axis.from_product("person", lists, ["a", "b × c"])
    tree = Tree([sexes(), person])
    for levels in ((0, 2), (1, 2), (1, 1), (0, 1)):
        assert tree.named(tree.name_of(levels)) == levels
    assert tree.named("sex.sex x person.b*c") == (1, 2)
    assert tree.named("person.b") is None
    alone = Tree([person])
    assert [alone.named(name) for name in ("a", "b × c", "a × b × c", "b")] == [
        (1,),
        (2,),
        None,
        None,
    ]
