"""Criteria on the planning page: the plan's own verdicts, at every budget of its slider."""

from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.distribution.bins import coded_axis
from hedgerow.pages.catalogue import catalogue
from hedgerow.plan.criteria.law import Bounded
from hedgerow.plan.page import points as budgets
from hedgerow.plan.page.accepted import listed, required, told
from hedgerow.plan.page.judged import judged_at, least_of
from hedgerow.plan.page.page import planning_page
from hedgerow.plan.page.points import Budgets, points_of
from hedgerow.privacy.budget import value_of, with_value
from tests.made import all_leaves, fixed_tree, plain_plan

AVEC = "avec une probabilité de 95 %"
USUAL, PART = "with a probability of 95 %", "every count within 1 % of the count"
TREE = fixed_tree(place=(3, 8))
BLOCKS = TREE.axes[0].labels[-1].to_list()
TOWNS = hr.Criterion("level2", 12, cells="0.9")
REGIONS = hr.Criterion("level1", hr.OfCount("0.01", least=100), records=3000)
WHOLE = hr.Criterion("total", hr.OfRecords("0.002"), records=3000, probability="0.99")

CHAIN = plain_plan(TREE, budget=hr.Rho("1/20"), measure=hr.All(), accept=[TOWNS, REGIONS, WHOLE])
CUBE = plain_plan(
    hr.Tree([hr.Axis.from_frame(name, {name: list("abcd")}, [name]) for name in ("sex", "age")]),
    budget=hr.EpsilonDelta("1/2", "1e-8"), measure=hr.All(), workload=hr.Cube(),
    accept=[hr.Criterion("sex.sex × age.age", 20), hr.Criterion("age.age", 9, cells="3/4")],
)  # fmt: skip


def at(plan, value):
    return replace(plan, budget=with_value(plan.budget, value), inverse_two_rho=None)


@pytest.mark.parametrize("plan", [CHAIN, CUBE])
def test_each_budget_has_the_verdicts_of_its_own_plan(plan):
    least = least_of(plan)
    around = Budgets.around(plan.budget, ("1", "5")).including(value_of(least))
    assert around.values[around.least] == value_of(least)
    plans = [at(plan, value) for value in around.values]
    seen = set()
    every = judged_at(plans, around.own, around.least)
    for place, judged in enumerate(zip(*every, strict=True)):
        for verdict, own in zip(judged, hr.verdicts(plans[place]), strict=True):
            assert (verdict.kept, verdict.of_estimates) == (own.kept, own.of_estimates)
            assert verdict.reach == pytest.approx(own.reach, rel=5e-3)
            assert verdict.probability == pytest.approx(own.probability, abs=5e-3)
            seen.add(verdict.of_estimates)
        keeps = all(verdict.of_estimates == "yes" for verdict in judged)
        assert keeps == (place >= around.least)
    assert seen == {"yes", "no"}


def test_no_budget_is_marked_where_a_criterion_is_kept_by_none():

    survivors = plain_plan(TREE, budget=hr.Rho("1/20"), measure=hr.Survivors(), accept=[TOWNS])
    assert least_of(survivors) is None
    assert least_of(replace(CHAIN, accept=())) is None
    (verdict,) = hr.verdicts(survivors)
    assert told(survivors, verdict) == ("unknown", "not shown", "")
    assert verdict.why.split(":")[0] in listed(survivors, [verdict])


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
def test_criteria_of_areas_shares_and_quantiles_are_judged_at_every_budget(monkeypatch):
    monkeypatch.setitem(budgets.USUAL, hr.Rho, ("0.01", "1"))
    bins = coded_axis(hr.Ranges.equal_width("income", 0, 40, 4), [4])
    tree = hr.Tree([TREE.axes[0], bins])
    known = hr.Prior(all_leaves(tree, [30] * tree.leaves), public=True)
    accept = [
        hr.Criterion("total", 12, areas={"level2": BLOCKS[:4], "clinic": list("ppqq")}),
        hr.Criterion("place.level1", hr.OfShare("0.004", "total"), sizes=known),
        hr.Criterion("place.level1", hr.OfQuantile("1/2", "income"), sizes=known),
    ]
    plan = plain_plan(tree, budget=hr.Rho("1/20"), measure=hr.All(), workload=hr.Cube(),
                      accept=accept)  # fmt: skip
    (division,) = points_of(plan, is_fixed=False)["divisions"]
    for each, verdict in zip(division["criteria"], hr.verdicts(plan), strict=True):
        seen = [told for told, *_ in each]
        assert seen == sorted(seen, key=["no", "near", "unknown", "estimates"].index)
        missed = "unknown" if verdict.is_bound else "near"  # conditions of quantiles are enough
        assert set(seen) == {missed, "estimates"}, verdict
        assert verdict.is_bound == isinstance(verdict.criterion.within, hr.OfQuantile)
        assert (verdict.within is None) == (verdict.criterion.areas is None)
    assert "every quantile 1/2 of income within 0.5, with" in planning_page(plan, "1")


@pytest.mark.usefixtures("few_budgets")
def test_other_divisions_are_judged_too_and_their_hashes_sign_the_criteria():
    points = points_of(CHAIN, is_fixed=False)
    assert len(points["divisions"]) > 1
    for division in points["divisions"]:
        assert [len(each) for each in division["criteria"]] == [len(points["values"])] * 3
    optimal = next(each for each in points["divisions"] if each["key"] == "optimal")
    made = plain_plan(
        TREE, budget=CHAIN.budget, measure=hr.All(), allocation=hr.Optimal(), accept=CHAIN.accept
    )
    assert optimal["hashes"][points["own"]] == made.hash
    outcomes = [told(made, verdict)[0] for verdict in hr.verdicts(made)]
    assert [each[points["own"]][0] for each in optimal["criteria"]] == outcomes


@pytest.mark.usefixtures("few_budgets", "own_division_alone")
def test_a_page_without_criteria_has_nothing_of_them():
    plan = replace(CHAIN, accept=())
    page = planning_page(plan, "1")
    assert 'id="criteria"' not in page
    assert points_of(plan, is_fixed=False)["divisions"][0]["criteria"] == []


@pytest.mark.parametrize(
    ("language", "criterion", "said"),
    [
        ("en", TOWNS, f"level2: 90 of 100 counts within 12 people, {USUAL}"),
        ("en", REGIONS, f"level1: {PART}, from 100 people on, {USUAL}"),
        ("en", WHOLE, "total: every count within 0.2 % of all people, with a probability of 99 %"),
        (
            "fr", TOWNS,
            "level2 : 90 effectifs sur 100 à 12 près (people), avec une probabilité de 95 %",
        ),
        (
            "fr", WHOLE,
            "total : chaque effectif à 0,2 % du total (people) près, avec une probabilité de 99 %",
        ),
        (
            "en", hr.Criterion("total", 5, areas={"level2": BLOCKS[:2], "clinic": ["p", "q"]}),
            f"total, by areas of clinic: every count within 5 people, {USUAL}",
        ),
        (
            "fr", hr.Criterion("level2", hr.OfShare("0.005", "level1", least=9), cells="0.9"),
            ("level2 : 90 parts sur 100 de level1 à 0,5 points près, "
            f"là où level1 a au moins 9 people, {AVEC}"),
        ),
        (
            "en", hr.Criterion("level2", hr.OfShare("0.005", "level1")),
            ("level2: every share of level1 within 0.5 points, "
            f"where level1 has at least 1 people, {USUAL}"),
        ),
        (
            "en", hr.Criterion("level1", hr.OfQuantile(500, "income", least=1_200)),
            ("level1: every quantile 1/2 of income within 500, "
            f"where there are at least 1,200 people, {USUAL}"),
        ),
        (
            "fr", hr.Criterion("level1", hr.OfQuantile(500, "income", least=900)),
            ("level1 : chaque quantile 1/2 de income à 500 près, "
            f"là où il y a au moins 900 people, {AVEC}"),
        ),
        ("en", hr.Criterion("level2", 12345), f"level2: every count within 12,345 people, {USUAL}"),
    ],
)  # fmt: skip
def test_criteria_are_said_in_words_of_an_office(language, criterion, said):
    plan = CHAIN.described(hr.Description(unit="people", language=language))
    assert required(plan, criterion).replace("\u00a0", " ") == said


def test_chances_are_rounded_down_and_what_would_be_kept_up():
    (verdict, *_) = hr.verdicts(CHAIN)
    high = replace(verdict, probability=0.99996, reach=12 / 7.811, settled=1.0)
    assert told(CHAIN, high) == (
        "yes", "kept (99.9 %)",
        "With the probability that was asked for: within 7.82 records.",
    )  # fmt: skip
    assert told(CHAIN, replace(high, settled=2.0))[:2] == (
        "estimates", "kept by estimates (99.9 %)",
    )  # fmt: skip
    low = replace(verdict, probability=0.51999, reach=0.5)
    assert told(CHAIN, low)[:2] == ("no", "not kept (51.9 %)")
    bound = Bounded(1, hr.DiscreteGaussian("1/2").envelope, np.ones(1), np.ones(1))
    unknown = replace(low, law=bound)
    assert told(CHAIN, unknown)[:2] == ("unknown", "not shown (at least 51.9 %)")
    assert catalogue("fr")("criteria.told.yes") == "respecté"
