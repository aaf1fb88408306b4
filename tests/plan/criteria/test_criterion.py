"""Criteria: what they say, what is signed of them, and what is refused."""

import json
from fractions import Fraction
from typing import Any

import pytest

import hedgerow as hr
from hedgerow.distribution.bins import coded_axis
from hedgerow.plan.make import read_plan
from tests.made import fixed_tree, plain_plan

TREE = fixed_tree(place=(2, 3))
AREAS = {"level2": TREE.axes[0].labels[-1][:4].to_list(), "clinic": list("qpqp")}
BOTH = hr.Tree([TREE.axes[0], coded_axis(hr.Ranges.equal_width("income", 0, 40, 4), [4])])
NO_PRIOR: Any = {}
A_FILE: Any = "areas.csv"
NO_TEXT: Any = 5
NUMBERS: Any = [1, 2]


def planned(*criteria, **more):
    return plain_plan(TREE, budget=hr.Rho("1/8"), measure=hr.All(), accept=criteria, **more)


def test_criteria_enter_the_hash_of_a_plan_and_come_back_from_its_description():
    criteria = [
        hr.Criterion("level1", 100, cells="0.95", probability="0.9"),
        hr.Criterion("level2", hr.OfCount("0.01", least=10), records=1000),
        hr.Criterion("total", hr.OfRecords("1/200"), records=1000),
    ]
    plan = planned(*criteria)
    described = plan.to_dict()
    again = read_plan(TREE, described)
    assert again.accept == tuple(criteria)
    assert again.to_dict() == described
    hashes = {planned(*criteria[:k]).hash for k in range(4)}
    assert len(hashes) == 4
    stricter = hr.Criterion("level1", 100, cells="0.96", probability="0.9")
    assert planned(stricter).hash != planned(criteria[0]).hash
    assert planned(criteria[0]).noise == planned().noise
    assert "accept" not in planned().to_dict()


def test_areas_shares_and_quantiles_come_back_from_the_description_of_a_plan():
    bound = hr.OfShare("1/200", "place.level1", least=50)
    criteria = [
        hr.Criterion("place.level2", bound, cells="0.95"),
        hr.Criterion("place.level1", hr.OfQuantile("2.5", "income", "1/4", least=20)),
        hr.Criterion("income.bin", 30, areas=AREAS),
        hr.Criterion("total", hr.OfQuantile(5, "income"), areas=AREAS),
    ]
    options = {"budget": hr.Rho("1/8"), "measure": hr.All(), "workload": hr.Cube()}
    plan = plain_plan(BOTH, accept=criteria, **options)
    described = json.loads(json.dumps(plan.to_dict()))
    again = read_plan(BOTH, described)
    assert again.accept == tuple(criteria)
    assert again.to_dict() == described
    assert again.hash == plan.hash
    assert list(map(repr, again.accept)) == [
        (
            "95 % of place.level2 within 0.5 points of its share of place.level1 from 50, with "
            "probability 0.95"
        ),
        "all place.level1 within 2.5 of the quantile 1/4 of income from 20, with probability 0.95",
        "all income.bin by areas (clinic, level2) within 30 records, with probability 0.95",
        (
            "all total by areas (clinic, level2) within 5 of the quantile 1/2 of income, with "
            "probability 0.95"
        ),
    ]
    hashes = {plain_plan(BOTH, accept=criteria[:k], **options).hash for k in range(5)}
    assert len(hashes) == 5
    described["accept"][2]["areas"]["level2"][1] = "elsewhere"
    with pytest.raises(hr.TableError, match="have codes that axis 'place' does not have"):
        read_plan(BOTH, described)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hr.Criterion("level1", 0), "within must be in"),
        (lambda: hr.Criterion("level1", 0.1), "within must be exact"),
        (lambda: hr.Criterion("level1", 5, cells="1.1"), "cells must be in"),
        (lambda: hr.Criterion("level1", 5, cells=0), "cells must be in"),
        (lambda: hr.Criterion("level1", 5, probability=1), "probability must be in"),
        (lambda: hr.Criterion("level1", 5, records=100), "needs neither records nor sizes"),
        (lambda: hr.Criterion("level1", hr.OfRecords("0.01"), records=0), "records must be"),
        (lambda: hr.Criterion("level1", hr.OfRecords("0.01"), sizes=NO_PRIOR), "a prior must be"),
        (lambda: hr.OfCount(1, least=5), "a part of a count must be in"),
        (lambda: hr.OfCount("0.01", least=0), "from must be"),
        (lambda: hr.OfShare(1, "total"), "a part of a count must be in"),
        (lambda: hr.OfQuantile(0, "income"), "the distance of a quantile must be in"),
        (lambda: hr.OfQuantile(5, "income", 1), "the rank of a quantile must be in"),
        (lambda: hr.Criterion("total", 5, areas=A_FILE), "the areas of a criterion must"),
        (lambda: planned(hr.Criterion("level1", 5, areas=AREAS)), "cuboid: place is taken"),
        (
            lambda: planned(hr.Criterion("level1", hr.OfShare("0.1", "level2"))),
            "share: level1 must be finer than what it is of",
        ),
        (
            lambda: planned(hr.Criterion("level1", hr.OfShare("0.1", "state"))),
            "share: the tree has no 'state'",
        ),
        (
            lambda: planned(hr.Criterion("total", hr.OfQuantile(5, "age"))),
            "no axis is called 'age'",
        ),
        (
            lambda: planned(hr.Criterion("level1", hr.OfShare("0.1", "level1"))),
            "share: level1 must be finer than what it is of",
        ),
        (lambda: hr.OfShare("0.1", NO_TEXT), "OfShare: of must be a name"),
        (lambda: hr.OfQuantile(5, NO_TEXT), "OfQuantile: axis must be a name"),
        (
            lambda: hr.Criterion("total", 5, areas={"level2": NUMBERS, "clinic": ["p", "q"]}),
            "must be columns of texts",
        ),
        (lambda: hr.Criterion("level1", "1e-190"), "within must be in"),
        (lambda: hr.OfRecords("1e-190"), "a part of a count must be in"),
        (lambda: planned("level1"), "a criterion must be Criterion"),
        (lambda: planned(hr.Criterion("county", 5)), "the tree has no 'county'"),
    ],
)
def test_what_is_no_criterion_is_refused_in_a_sentence(make, sentence):
    with pytest.raises(hr.PlanError, match=sentence):
        make()


def test_a_quantile_needs_an_axis_of_bins():
    with pytest.raises(hr.TableError, match="'place' is no numeric column"):
        planned(hr.Criterion("total", hr.OfQuantile(5, "place")))


def test_exact_numbers_stay_exact():
    criterion = hr.Criterion("level1", "1/3", cells="0.95", probability="0.9")
    assert (criterion.within, criterion.cells) == (Fraction(1, 3), Fraction(19, 20))
    assert repr(criterion) == "95 % of level1 within 0.3333 records, with probability 0.9"


@pytest.mark.parametrize("codes", [["0 [-inf, 10)", "1 [10, inf]"], ["0 [30, 10)", "1 [10, 5]"]])
def test_quantiles_need_bins_that_are_finite_and_increase(codes):
    tree = hr.Tree([hr.Axis.from_frame("b", {"b": codes}, ["b"])])
    accept = [hr.Criterion("total", hr.OfQuantile(5, "b"))]
    with pytest.raises(hr.TableError, match="the edges in its codes must be finite and increase"):
        hr.make_plan(tree, budget=hr.Rho(1), accept=accept)
