"""The allocation for distributions: the design's shares, and a share for a measured total."""

from fractions import Fraction

import numpy as np
import pytest

from hedgerow.distribution.branching import best_branching
from hedgerow.distribution.cut_error import CutError
from hedgerow.distribution.plan import ForDistribution
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import PlanError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.cuboids import All, Measured, Survivors, Unmeasured
from hedgerow.plan.make import make_plan
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.tables.tree import Tree

BUDGETS = {DiscreteLaplace: Epsilon("0.01"), DiscreteGaussian: Rho("0.0001")}
BINS = 60


def planned(mechanism, neighbours, allocation=None, branching=None, measure=None):
    branching = branching or best_branching(BINS, mechanism=mechanism).branching
    return make_plan(
        Tree([Ranges.equal_width("x", 0, 1, BINS).axis(branching)]),
        budget=BUDGETS[mechanism],
        neighbours=neighbours,
        mechanism=mechanism,
        allocation=allocation or ForDistribution(),
        measure=measure or All(),
    )


def mean_error(plan):
    """Of the K cumulative counts, by the noise that the plan in fact has."""
    variances = [
        what.mechanism.noise_variance if isinstance(what, Measured) else np.inf
        for what in plan.depths
    ]
    start = plan.tree.axes[0].child_start
    error = CutError.of_tree(start, variances[1:], variances[0])
    cuts = np.arange(1, BINS + 1)
    return error.between(np.zeros_like(cuts), cuts).mean()


@pytest.mark.parametrize("mechanism", BUDGETS)
def test_with_a_public_total_the_shares_are_the_designs(mechanism):
    plan = planned(mechanism, Replace())
    assert plan.shares == (None, *best_branching(BINS, mechanism=mechanism).shares)
    assert plan.allocation == "distribution"


@pytest.mark.parametrize("mechanism", BUDGETS)
@pytest.mark.parametrize(
    "who", [AddRemove(), AddRemove(3), Replace(2, exactly=False)], ids=["add", "add 3", "replace"]
)
def test_no_other_share_of_a_measured_total_has_a_smaller_error(mechanism, who):
    plan = planned(mechanism, who)
    assert sum(share or 0 for share in plan.shares) == 1
    chosen = plan.shares[0] or Fraction(0)
    design = best_branching(BINS, mechanism=mechanism).shares
    errors = {}
    for r in range(0, 60, 2):
        root = Fraction(r, 100)
        shares = Shares([root, *((1 - root) * share for share in design)])
        errors[root] = mean_error(planned(mechanism, who, shares))
    assert mean_error(plan) <= min(errors.values()) * 1.0001
    assert abs(chosen - min(errors, key=errors.get)) <= Fraction(2, 100)
    assert isinstance(plan.depths[0], Measured if chosen else Unmeasured)


def test_another_tree_or_measure_is_refused():
    with pytest.raises(PlanError, match=r"designs levels of \(.*\) nodes, and axis 'x' has \(30,"):
        planned(DiscreteLaplace, Replace(), branching=(30, 2))
    with pytest.raises(PlanError, match='needs measure = "all"'):
        planned(DiscreteLaplace, Replace(), measure=Survivors())
