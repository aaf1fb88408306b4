"""The sizes of counts at the head of the planning page: a prior's, or examples."""

import json
import re

import numpy as np
import pytest

from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.plan.allocation.optimal import Optimal
from hedgerow.plan.cuboids import All
from hedgerow.plan.make import make_plan
from hedgerow.plan.page.page import LARGE, MIDDLING, SMALL, planning_page
from hedgerow.plan.prior import Prior
from hedgerow.privacy.budget import Epsilon
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree
from tests.made import fixed_axis
from tests.plan.page.test_page_in_browser import few_of
from tests.plan.page.test_solver import CHAIN

pytestmark = pytest.mark.usefixtures("few_budgets", "own_division_alone")


def facts_of(tree, neighbours, **options):
    plan = make_plan(
        tree, budget=Epsilon(1), mechanism=DiscreteLaplace, neighbours=neighbours, **options
    )
    page = planning_page(plan, "1")
    return page, json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])


def test_without_a_public_table_sizes_fall_from_the_coarsest_level_and_are_called_examples():
    page, facts = facts_of(CHAIN, AddRemove(), measure=All())
    assert facts["shown"] == [[1, LARGE], [2, MIDDLING], [3, SMALL]]
    assert "These sizes are examples" in page


def test_where_one_level_alone_carries_noise_it_is_shown_with_three_sizes():
    _, facts = facts_of(Tree([fixed_axis("place", 12)]), Replace(), measure=All())
    assert facts["shown"] == [[1, LARGE], [1, MIDDLING], [1, SMALL]]


def test_an_earlier_public_table_tells_the_size_that_half_the_counts_above_0_do_not_exceed():
    counts = Counts.from_frame(CHAIN, few_of(CHAIN), count="people")
    prior = Optimal(prior=Prior(counts, public=True), objective="cells")
    page, facts = facts_of(CHAIN, AddRemove(), allocation=prior)
    for place, count in facts["shown"]:
        values = counts.roll_up(place)[1]
        positive = np.sort(values[values > 0])
        middle = positive[(len(positive) - 1) // 2]
        assert count == int(float(f"{middle:.2g}"))
    assert "typical of each level in an earlier, public table" in page
    assert "These sizes are examples" not in page
