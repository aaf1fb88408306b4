"""A sample of what the commands of this folder measure, of estimates, counts and shares."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.estimate.intervals import Confidence
from tests.acceptance import (
    allocations,
    coverage,
    criteria,
    efficiency,
    estimates,
    quantiles,
    settling,
)
from tests.acceptance.random_plans import KINDS, drawn

SEED = 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sweep(4)
def test_estimates_and_variances_are_those_of_dense_least_squares(kind):
    """500 plans: ``python -m tests.acceptance.estimates``."""
    _, found = estimates.compare(kind, SEED)
    assert sum(each.numbers for each in found) > 20
    assert max(each.scaled for each in found) <= estimates.ALLOWED, max(found)


def test_a_variance_that_is_a_millionth_too_large_is_seen():
    beside = estimates.Beside(drawn("chain, one axis", SEED))
    beside.dense.rows[0,] = (
        *beside.dense.rows[0,][:2],
        *np.multiply(beside.dense.rows[0,][2:], 1.000001),
    )
    assert max(each.scaled for each in beside.cells()) > estimates.ALLOWED


@pytest.mark.parametrize("who", efficiency.NEIGHBOURS)
@pytest.mark.parametrize("kind", efficiency.KINDS)
@pytest.mark.sweep(4)
def test_no_plan_is_said_to_be_better_than_a_convex_program_lets_it_be(kind, who):
    """200 workloads: ``python -m tests.acceptance.efficiency``."""
    found = efficiency.judged(kind, SEED, who)
    assert not list(efficiency.faults(found))
    is_exact = who == "come or go" or (who, kind) == ("move", "chain, even")
    assert found.below < (1e-3 if is_exact else 0.2)


@pytest.mark.parametrize("settler", settling.SETTLERS)
def test_whole_counts_are_the_best_of_small_tables_or_next_to_them(settler):
    """1,000 tables: ``python -m tests.acceptance.settling 1000``."""
    found = settling.excesses(settler, 60, first=SEED)
    assert found.min() > -1e-9
    assert np.mean(found < 1e-9) >= (1.0 if settler == "families" else 0.95)
    assert found.mean() < 0.03


SAMPLE = ["chain, several axes", "column, running sums"]


@pytest.mark.parametrize("kind", SAMPLE)
def test_intervals_hold_as_often_as_they_say(kind):
    """Every kind, thousands of releases: ``python -m tests.acceptance.coverage 2000``."""
    made = coverage.with_wide_noise(kind, hr.DiscreteGaussian)
    found = coverage.coverage(made, 40)
    assert not {name: each for name, each in found.items() if each.faults}


def test_intervals_that_are_too_narrow_are_seen(monkeypatch):
    monkeypatch.setattr(coverage, "USUAL", Confidence(0.85))
    made = coverage.with_wide_noise(SAMPLE[0], hr.DiscreteGaussian)
    assert any(each.faults for each in coverage.coverage(made, 12).values())


def test_shares_cost_no_more_than_those_of_the_optimisers_before():
    """510 plans: ``python -m tests.acceptance.allocations compare FILE``."""
    sample = Path(__file__).with_name("allocations.json").read_text(encoding="utf-8")
    found = allocations.compare(json.loads(sample))
    costs = {kind: max(filter(None, each), default=0) for kind, each in found.items()}
    assert not {kind: more for kind, more in costs.items() if more > allocations.WORSE}


def test_shares_that_cost_more_are_seen():
    plan, cost = allocations.made("chain, all, ρ", 0)
    before = {"chain, all, ρ/0": {"hash": "", "cost": cost * (1 - 1e-5)}}
    assert plan.shares
    assert allocations.compare(before)["chain, all, ρ"][0] > allocations.WORSE


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("chain, unmeasured levels", 2), ("named, general", 13), ("cube, survivors", 10)],
)
@pytest.mark.sweep(3)
def test_the_least_budget_keeps_criteria_and_a_little_less_does_not(kind, seed):
    """30 plans, and 400 releases of 10: ``python -m tests.acceptance.criteria 30 400``."""
    found = criteria.judged(kind, seed)
    assert not found.faults
    assert not found.bounds
    kept = criteria.simulated(found.made, 40)
    assert not criteria.too_few(found.made, kept, 40)


def test_a_budget_that_is_too_large_or_too_small_is_seen(monkeypatch):
    least = hr.least_budget
    for factor in (Fraction(103, 100), Fraction(97, 100)):
        monkeypatch.setattr(hr, "least_budget", lambda plan, f=factor: hr.Rho(least(plan).rho * f))
        assert criteria.judged("chain, unmeasured levels", 2).faults


FEW_AREAS = quantiles.Incomes.drawn(areas=48)
WORKLOADS = pytest.mark.parametrize("workload", quantiles.WORKLOADS)


def test_medians_by_area_have_half_the_error_of_histograms_cut_at_0():
    """400 areas: ``python -m tests.acceptance.quantiles``."""
    found = {k: each.medians() for k, each in quantiles.of_the_median(FEW_AREAS, 3).items()}
    for errors in zip(*found.values(), strict=True):  # in income, and in records
        chain, cube, sums, clipped, whole = errors
        assert max(chain, cube, sums) < clipped / 2
        assert max(chain, cube) < 0.75 * whole
        assert sums < whole / 2


def test_exponential_mechanisms_win_for_a_median_alone_and_lose_for_many_quantiles():
    """The same command."""
    found = quantiles.crossing(FEW_AREAS, 1, many=(1, 99))
    alone, together = ({k: each.medians() for k, each in found[k].items()} for k in (1, 99))
    for workload in quantiles.WORKLOADS:
        for unit in (0, 1):  # income, records
            assert 2 * alone[quantiles.EXPONENTIAL][unit] < alone[workload][unit]
            assert together[workload][unit] < together[quantiles.EXPONENTIAL][unit]


@WORKLOADS
def test_intervals_of_quantiles_hold_and_are_next_to_as_narrow_as_can_be(workload):
    """200 releases, by size of area and five ranks: the same command."""
    found = quantiles.intervals(FEW_AREAS, workload, 12, ranks=[0.25, 0.5])
    assert not {at: held for at, held in found.items() if held.is_low}
    assert max(found[rank, "all"].ratio for rank in (0.25, 0.5)) < 1.3


def test_intervals_of_quantiles_that_are_too_narrow_are_seen():
    found = quantiles.intervals(FEW_AREAS, "cube", 12, ranks=[0.5], confidence=Confidence(0.5))
    assert found[0.5, "all"].is_low


@WORKLOADS
def test_variances_of_quantiles_are_those_of_every_release(workload):
    first, second = quantiles.Told(FEW_AREAS, workload, 2)
    other = quantiles.Told(FEW_AREAS, workload, 1).of(7)
    one, two, third = (told.cumulative.error.excess(0.5) for told in (first, second, other))
    assert one is not two
    assert np.allclose(third, two, rtol=1e-9)
