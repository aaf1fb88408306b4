"""Intervals of equal parts: how many areas are above a threshold, and which."""

import numpy as np
import pytest

from hedgerow.errors import EstimateError
from hedgerow.estimate.intervals import Confidence
from hedgerow.evaluate.share_intervals import eligible, equal_parts, least_draws

THRESHOLD = 20


def correlated(rng, draws, cells, deviation):
    """Errors that share a part, as least squares leaves them, each with its mirror image."""
    half = rng.normal(0, 1, (draws // 2, cells)) + rng.normal(0, 0.5, (draws // 2, 1))
    half *= deviation
    return np.concatenate([half, -half])


TABLES = {
    "far from it": np.repeat([0, 100], [40, 60]),
    "all near it": np.full(100, THRESHOLD + 1),
    "just below it": np.full(100, THRESHOLD),
    "spread around it": np.arange(100) // 2,
    "none above": np.zeros(100, dtype=np.int64),
}


@pytest.mark.parametrize("table", TABLES)
def test_the_number_of_areas_above_is_between_the_bounds_as_often_as_stated(table):
    """Missed at most 2 times in 10: 80 or more of 200 has a chance below 1e-9."""
    truth, rng = TABLES[table], np.random.default_rng(3)
    deviation = rng.uniform(1, 12, 100)
    above = int((truth > THRESHOLD).sum())
    missed = 0
    for _ in range(200):
        estimate = truth + correlated(rng, 2, 100, deviation)[0]
        errors = correlated(rng, 400, 100, deviation)
        fewest, most = eligible(THRESHOLD, estimate, errors, 0.2)
        assert 0 <= fewest <= 100
        missed += not fewest <= above <= most
    assert missed < 80


@pytest.mark.parametrize("table", TABLES)
def test_each_area_is_due_what_its_interval_holds(table):
    """95 % for each area of each table, in the mean over 100 releases with one noise for all."""
    truth, rng = TABLES[table], np.random.default_rng(4)
    deviation = np.full(100, 10.0)
    eligible_areas = truth > THRESHOLD
    due = eligible_areas / max(eligible_areas.sum(), 1)
    covered = []
    for _ in range(100):
        estimate = truth + correlated(rng, 2, 100, deviation)[0]
        errors = correlated(rng, 1000, 100, deviation)
        low, high = equal_parts(THRESHOLD, estimate, errors, Confidence())
        covered.append((low <= due) & (due <= high))
    assert np.mean(covered) >= 0.95


def test_without_noise_the_ends_meet_at_what_is_due():
    truth = np.arange(40.0)
    low, high = equal_parts(THRESHOLD, truth, np.zeros((1000, 40)), Confidence())
    assert low.tolist() == high.tolist() == [0.0] * 21 + [1 / 19] * 19


def test_areas_far_above_and_far_below_are_told_apart():
    rng = np.random.default_rng(5)
    errors = correlated(rng, 2000, 100, np.full(100, 5.0))
    truth = TABLES["far from it"] + 0.0
    low, high = equal_parts(THRESHOLD, truth, errors, Confidence())
    assert (high[:40] == 0).all()
    assert (low[40:] > 1 / 65).all()
    assert (high[40:] < 1 / 55).all()


def test_more_noise_is_wider():
    rng = np.random.default_rng(6)
    truth = TABLES["spread around it"] + 0.0
    widths = []
    for deviation in (1, 3, 9):
        errors = correlated(rng, 2000, 100, np.full(100, float(deviation)))
        fewest, most = eligible(THRESHOLD, truth, errors, 0.05)
        widths.append(most - fewest)
    assert widths == sorted(set(widths))


def test_bounds_that_contradict_each_other_leave_an_interval():
    """With a chance below that to miss, where estimates are no whole numbers."""
    rng = np.random.default_rng(7)
    errors = rng.laplace(0, 0.12, (1000, 4))
    estimate = np.array([0.55, 3.1, 0.02, 2.0])
    low, high = equal_parts(0, estimate, np.concatenate([errors, -errors]), Confidence())
    assert (low <= high).all()


@pytest.mark.parametrize("level", [0.5, 0.95, 0.99, 0.999])
def test_the_least_number_of_draws_is_enough(level):
    draws = least_draws(Confidence(level))
    equal_parts(1, np.ones(3), np.zeros((draws, 3)), Confidence(level))
    with pytest.raises(EstimateError, match="need"):
        equal_parts(1, np.ones(3), np.zeros((draws - 2, 3)), Confidence(level))


def test_too_few_draws_are_refused():
    with pytest.raises(EstimateError, match=r"equal parts at this confidence need 480 draws, got"):
        equal_parts(1, np.ones(3), np.zeros((400, 3)), Confidence())
