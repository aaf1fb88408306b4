"""Plans read back: what was signed comes back, and what was forged does not."""

import copy
from fractions import Fraction

import pytest

import hedgerow as hr
from hedgerow.plan.make import read_plan
from tests.made import fixed_tree

TRIPS = fixed_tree(["destination", "origin"], origin=(2, 3), destination=(2, 3))


def test_a_calibrated_plan_is_verified_where_it_is_read_and_not_sought_again():
    plan = hr.make_plan(TRIPS, budget=hr.EpsilonDelta(1, "1e-8"), neighbours=hr.Replace())
    described = plan.to_dict()
    assert read_plan(TRIPS, described).to_dict() == described

    def with_noise(factor):
        """The plan as a machine would state it whose search ended a little elsewhere."""
        changed = copy.deepcopy(described)
        changed["guarantee"]["rho"] = str(plan.guarantee.rho / factor)
        for use in changed["guarantee"]["uses"]:
            use["sigma2"] = str(Fraction(use["sigma2"]) * factor)
        for depth in changed["cuboids"]:
            if "parameter" in depth:
                depth["parameter"] = str(Fraction(depth["parameter"]) * factor)
        return changed

    more = with_noise(Fraction(1_000_003, 1_000_000))
    assert read_plan(TRIPS, more).to_dict() == more
    with pytest.raises(hr.BudgetError, match="does not keep"):
        read_plan(TRIPS, with_noise(Fraction(99, 100)))
    more["cuboids"][3]["parameter"] = "1"
    assert read_plan(TRIPS, more).to_dict() != more


@pytest.mark.parametrize("number", ["1e-99999999", "1/0", "nan", "much"])
def test_a_forged_number_in_a_plan_is_refused_and_not_expanded(number):
    plan = hr.make_plan(TRIPS, budget=hr.EpsilonDelta(1, "1e-8"), neighbours=hr.Replace())
    shares, rho = plan.to_dict(), plan.to_dict()
    shares["cuboids"][3]["share"] = number
    rho["guarantee"]["rho"] = number
    for forged in (shares, rho):
        with pytest.raises(hr.PlanError):
            read_plan(TRIPS, forged)
