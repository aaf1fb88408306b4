"""``[privacy]`` becomes one mechanism, one relation of neighbours and one budget, or a sentence."""

import pytest

import hedgerow as hr
from hedgerow.errors import BudgetError, SpecError
from hedgerow.noise.mechanisms import MECHANISMS
from hedgerow.spec.release_file import PrivacySection, budget_of, neighbours_of

LAPLACE = "discrete-laplace"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"rho": "1/2"}, hr.Rho("1/2")),
        ({"epsilon": 1, "delta": "1e-8"}, hr.EpsilonDelta(1, "1e-8")),
        ({"epsilon": 1, "delta": "1e-8", "mechanism": LAPLACE}, hr.EpsilonDelta(1, "1e-8")),
        ({"epsilon": 2, "mechanism": LAPLACE}, hr.Epsilon(2)),
    ],
    ids=["rho", "epsilon-delta", "laplace-with-delta", "epsilon"],
)
def test_one_budget_is_taken(given, made):
    assert budget_of(PrivacySection(**given)) == made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "got none"),
        ({"delta": "1e-8"}, "got delta"),
        ({"epsilon": 1, "rho": 1}, "got epsilon and rho"),
        ({"epsilon": 1, "delta": "1e-8", "rho": 1}, "got delta and epsilon and rho"),
        ({"epsilon": 1}, "discrete-gaussian noise has no pure epsilon"),
    ],
    ids=["none", "delta", "two", "three", "pure-gaussian"],
)
def test_other_budgets_are_refused(given, said):
    with pytest.raises(SpecError, match=rf"^\[privacy\] .*{said}"):
        budget_of(PrivacySection(**given))


def test_a_number_that_is_no_budget_is_refused_with_its_section():
    with pytest.raises(BudgetError, match=r"^\[privacy\] rho must be above 0"):
        budget_of(PrivacySection(rho=-1))


@pytest.mark.parametrize(
    ("given", "unit", "made"),
    [
        ({}, None, hr.AddRemove(1)),
        ({"contributions": 3}, "who", hr.AddRemove(3, unit="who")),
        ({"neighbours": "replace"}, None, hr.Replace(1, exactly=True)),
        ({"neighbours": "replace"}, "who", hr.Replace(1, exactly=True, unit="who")),
        (
            {"neighbours": "replace", "contributions": 2},
            "who",
            hr.Replace(2, exactly=False, unit="who"),
        ),
        (
            {"neighbours": "replace", "contributions": 2, "exactly": True},
            None,
            hr.Replace(2, exactly=True),
        ),
    ],
    ids=["add-remove", "of-units", "replace", "one-a-unit", "at-most-two-a-unit", "exactly-two"],
)
def test_neighbours_are_those_of_the_section_and_the_unit(given, unit, made):
    assert neighbours_of(PrivacySection(**given), unit) == made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"exactly": True}, 'exactly goes with neighbours = "replace"'),
        ({"neighbours": "replace", "contributions": 2}, "needs exactly = true .* or exactly"),
    ],
    ids=["add-remove", "replace"],
)
def test_whether_records_are_exactly_as_many_must_be_said_where_it_matters(given, said):
    with pytest.raises(SpecError, match=rf"^\[privacy\] .*{said}"):
        neighbours_of(PrivacySection(**given), None)


@pytest.mark.parametrize("kind", [hr.DiscreteGaussian, hr.DiscreteLaplace])
def test_a_mechanism_goes_by_its_name(kind):
    assert MECHANISMS[PrivacySection(mechanism=kind.name).mechanism] is kind
