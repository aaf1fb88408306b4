"""Criteria: what they say, what is signed of them, and what is refused."""

from fractions import Fraction
from typing import Any

import pytest

import hedgerow as hr
from hedgerow.plan.make import read_plan
from tests.made import fixed_tree, plain_plan

TREE = fixed_tree(place=(2, 3))
NO_PRIOR: Any = {}


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
        (lambda: planned("level1"), "a criterion must be Criterion"),
        (lambda: planned(hr.Criterion("county", 5)), "the tree has no 'county'"),
    ],
)
def test_what_is_no_criterion_is_refused_in_a_sentence(make, sentence):
    with pytest.raises(hr.PlanError, match=sentence):
        make()


def test_exact_numbers_stay_exact():
    criterion = hr.Criterion("level1", "1/3", cells="0.95", probability="0.9")
    assert (criterion.within, criterion.cells) == (Fraction(1, 3), Fraction(19, 20))
    assert repr(criterion) == "95 % of level1 within 0.3333 records, with probability 0.9"
