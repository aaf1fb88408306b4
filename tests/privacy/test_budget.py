"""Budgets that exist, and the sentences about those that do not."""

from decimal import Decimal
from fractions import Fraction

import pytest

from hedgerow.errors import BudgetError
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho


def test_budgets_hold_fractions():
    assert Rho("1/2").rho == Fraction(1, 2)
    assert Epsilon(Decimal("0.1")).epsilon == Fraction(1, 10)
    both = EpsilonDelta(1, "1e-10")
    assert (both.epsilon, both.delta) == (Fraction(1), Fraction(1, 10**10))
    assert all(type(part) is Fraction for part in (both.epsilon, both.delta, Rho(1).rho))


def test_equal_amounts_are_equal_budgets():
    assert Rho("0.5") == Rho("1/2")
    assert len({EpsilonDelta(1, "1e-2"), EpsilonDelta("1.0", "1/100")}) == 1


@pytest.mark.parametrize("kind", [Rho, Epsilon, lambda e: EpsilonDelta(e, "1e-8")])
@pytest.mark.parametrize("amount", [0, "-1", "-1e-300"])
def test_nothing_is_free(kind, amount):
    with pytest.raises(BudgetError, match="must be above 0, got"):
        kind(amount)


@pytest.mark.parametrize("delta", [1, "1.5", "-1e-8"])
def test_delta_is_a_chance(delta):
    with pytest.raises(BudgetError, match=r"delta must be in \(0, 1\), got"):
        EpsilonDelta(1, delta)


def test_a_delta_of_zero_is_told_about_pure_privacy():
    with pytest.raises(BudgetError, match="leave delta out and use the discrete Laplace"):
        EpsilonDelta(1, 0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "named"), [(1, 1e-8, "delta"), (0.1, "1e-8", "epsilon")]
)
def test_each_field_is_named_in_its_own_error(epsilon, delta, named):
    with pytest.raises(BudgetError, match=f"{named} must be exact"):
        EpsilonDelta(epsilon, delta)
