"""Criteria on the planning page in a real browser: they follow the slider."""

from dataclasses import replace

import pytest

import hedgerow as hr
from hedgerow.plan.page.judged import least_of
from hedgerow.privacy.budget import value_of, with_value
from tests.browser import barriers
from tests.made import fixed_tree, plain_plan
from tests.parts import CHROMIUM
from tests.plan.page.test_page_in_browser import a_page, moved, opened, told

pytestmark = [
    CHROMIUM.needed,
    pytest.mark.xdist_group("browser"),
    pytest.mark.usefixtures("few_budgets"),
]

TOWNS = hr.Criterion("level2", 12, cells="0.9")
WHOLE = hr.Criterion("total", hr.OfRecords("0.002"), records=3000)


def outcomes(tab):
    return [told(tab, f"#criteria dt >> nth={i}") for i in range(2)]


def test_criteria_follow_the_slider_and_each_division_has_its_own_verdicts(browser, tmp_path):
    tree = fixed_tree(place=(3, 8))
    plan = plain_plan(tree, budget=hr.Rho("1/2"), measure=hr.All(), accept=[TOWNS, WHOLE])
    path = a_page(tmp_path, plan)
    are_kept_until_the_slider_goes_below_the_least_budget(opened(browser, path), plan)
    are_others_of_another_division_and_none_of_one_s_own(opened(browser, path))


def are_kept_until_the_slider_goes_below_the_least_budget(tab, plan):
    assert tab.locator("main > section").first.get_attribute("id") == "criteria"
    assert all("kept" in said and "not" not in said for said in outcomes(tab))
    least = value_of(least_of(plan))
    assert told(tab, "#least") == f"Estimates keep all of them from ρ = {float(least):g} on."
    tab.locator("#to-least").click()
    assert told(tab) == f"ρ = {float(least):g}"
    assert not any("not kept" in said for said in outcomes(tab))
    hash_ = tab.locator("#hash").inner_text().replace(" ", "")
    there = replace(plan, budget=with_value(plan.budget, least), inverse_two_rho=None)
    assert hash_ == there.hash
    mark = tab.locator("#ticks .least")
    step = int(tab.locator("#value").input_value())
    most = int(tab.locator("#value").get_attribute("max"))
    assert mark.evaluate("mark => mark.style.left") == f"{100 * step / most:g}%"
    moved(tab, "#value", step - 1)
    assert any("not kept" in said for said in outcomes(tab))
    moved(tab, "#value", 0)
    assert outcomes(tab)[1].startswith("not kept by estimates (")
    assert barriers(tab) == []
    assert tab.complaints == []


def are_others_of_another_division_and_none_of_one_s_own(tab):
    first = told(tab, "#least")
    tab.get_by_role("button", name="Optimal").click()
    assert told(tab, "#least") != first
    moved(tab, "#rows input >> nth=1", 700)
    assert outcomes(tab) == ["not judged", "not judged"]
    assert "hedgerow plan FILE" in told(tab, "#least")
    assert tab.locator("#ticks .least").is_hidden()
    tab.get_by_role("button", name="As in the file").click()
    assert told(tab, "#least") == first
    assert tab.complaints == []
