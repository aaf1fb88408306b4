"""Shares by level and by query are the products that somebody would write out by hand."""

from fractions import Fraction

import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import PlanError
from hedgerow.plan.cuboids import Measured

LEVELS = {"county": "1/3", "town": "2/3"}
QUERIES = {
    "county": {"total": "1/4", "sex × race": "3/4"},
    "town": {"sex": "1/5", "race.race × sex": "4/5"},
}
WORKLOAD = [
    "place.county", "place.county × sex.sex × race.race", "place.town × sex.sex",
    "place.town × sex.sex × race.race",
]  # fmt: skip


@pytest.fixture(scope="module")
def tree():
    towns = pl.DataFrame({
        "state": ["s"] * 4, "county": ["a", "a", "b", "b"], "town": ["a1", "a2", "b1", "b2"],
    })  # fmt: skip
    place = hr.Axis.from_frame("place", towns, levels=["state", "county", "town"])
    sex = hr.Axis.from_frame("sex", {"sex": ["f", "m"]}, levels=["sex"])
    race = hr.Axis.from_frame("race", {"race": ["x", "y", "z"]}, levels=["race"])
    return hr.Tree([place, sex, race])


def planned(tree, levels=LEVELS, queries=QUERIES, workload=WORKLOAD, neighbours=None):
    return hr.make_plan(
        tree,
        budget=hr.Rho(2),
        workload=hr.Cuboids(workload),
        allocation=hr.QueryShares(levels, queries),
        neighbours=neighbours or hr.Replace(),
    )


def shares_of(plan):
    return {n: what.share for n, what in plan.cuboids.items() if isinstance(what, Measured)}


def test_a_cuboid_gets_the_exact_product_of_its_level_and_its_query(tree):
    assert shares_of(planned(tree)) == {
        "place.county": Fraction(1, 12),
        "place.county × sex.sex × race.race": Fraction(1, 4),
        "place.town × sex.sex": Fraction(2, 15),
        "place.town × sex.sex × race.race": Fraction(8, 15),
    }


def test_levels_that_sum_to_less_than_1_keep_their_proportions(tree):
    less = {"county": "1/6", "town": "2/6"}
    assert shares_of(planned(tree, less)) == shares_of(planned(tree))


def test_what_is_public_may_be_named_and_is_not_measured(tree):
    """The total of the only state is that of the table, which `Replace` makes public."""
    levels = {"state": "1/2", **{name: Fraction(share) / 2 for name, share in LEVELS.items()}}
    queries = {"state": {"total": "9/10", "sex": "1/10"}, **QUERIES}
    found = shares_of(planned(tree, levels, queries, ["place.state × sex.sex", *WORKLOAD]))
    assert "place.state" not in found
    assert sum(found.values()) == 1
    assert found["place.county"] == Fraction(1, 24) / Fraction(11, 20)
    assert found["place.state × sex.sex"] == Fraction(1, 20) / Fraction(11, 20)


@pytest.mark.parametrize(
    ("levels", "queries", "said"),
    [
        ({"county": "1/2", "town": "2/3"}, QUERIES, "sum to 7/6, which is above 1"),
        (LEVELS, {**QUERIES, "town": {"sex": "1/5"}}, "must sum to exactly 1, got 1/5"),
        ({"county": "1/2"}, QUERIES, "'town' has queries and no share"),
        ({**LEVELS, "state": 0}, QUERIES, "'state' has a share and no queries"),
        ({"county": "1/2", "towns": "1/2"}, QUERIES, "'towns' has a.*did you mean 'town'"),
        ({"county": "-1/3", "town": 1}, QUERIES, "must not be negative"),
        (LEVELS, {**QUERIES, "town": {"sex": "2", "race": "-1"}}, "must not be negative"),
        ({}, {}, "levels are shares by name"),
        ({"county": 0.1}, QUERIES, "share of 'county'"),
    ],
)
def test_shares_that_cannot_be_are_refused(levels, queries, said):
    with pytest.raises(PlanError, match=said):
        hr.QueryShares(levels, queries)


@pytest.mark.parametrize(
    ("level", "query", "said"),
    [
        ("towns", "sex", "no level 'towns'.*did you mean 'town'"),
        ("town", "sexes", "queries of 'town': there is no level 'sexes'.*did you mean 'sex"),
        ("town", "sexes", r"there are state, county, (?!.*place\.county).*sex"),
        ("town", "county", "'county' is of axis 'place' as the level is"),
        ("town × sex", "race", "is no level of one axis"),
        ("town", "sex × sex", "names two levels of one axis"),
        ("town", "sex × race × sex", "names two levels of one axis"),
        ("county", "race", "share of 'place.county × race.race'.*name it in \\[workload\\]"),
    ],
)
def test_levels_and_queries_that_are_none_are_named(tree, level, query, said):
    with pytest.raises(PlanError, match=said):
        planned(tree, {level: 1}, {level: {query: 1}})


def test_a_cuboid_that_is_named_twice_is_refused(tree):
    queries = {"town": {"sex × race": "1/2", "race × sex": "1/2"}}
    with pytest.raises(PlanError, match="has two shares"):
        planned(tree, {"town": 1}, queries)


def test_a_table_without_a_share_is_refused(tree):
    with pytest.raises(PlanError, match=r"town × sex\.sex × race\.race' needs a share above 0"):
        planned(tree, {"county": 1}, {"county": QUERIES["county"]})


def test_a_level_of_several_axes_must_be_told_with_its_axis():
    places = {"region": ["a", "b"]}
    tree = hr.Tree(
        [
            hr.Axis.from_frame(name, pl.DataFrame(places), levels=["region"], columns=[f"{name}_r"])
            for name in ("origin", "destination")
        ]
    )
    both = ["origin.region × destination.region"]
    with pytest.raises(PlanError, match=r"origin\.region or destination\.region"):
        planned(tree, {"total": 1}, {"total": {"region": 1}}, both)
    named = {"origin.region": {"destination.region": 1}}
    assert shares_of(planned(tree, {"origin.region": 1}, named, both)) == {both[0]: 1}


def test_if_all_that_is_named_is_public_nothing_can_be_measured(tree):
    with pytest.raises(PlanError, match="is public, or has a share of 0"):
        planned(tree, {"state": 1}, {"state": {"total": 1}})
