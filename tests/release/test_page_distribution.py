"""The distribution on a page, in figures and in a picture, against files and least squares."""

import math

import numpy as np
import pytest

from hedgerow.plan.cuboids import RunningSums
from tests.estimate.dense_trees import node_sums
from tests.release.drawn_page import ends, number, picture, table
from tests.release.shown_pages import BINS, NUMERIC, WIDTH, covariance_of_sums, own_variances

pytestmark = pytest.mark.xdist_group("pages")  # the releases are made once

BELOW, VALUES = "How many records lie below", "Records below a value of income"
INTERVAL = "95 % interval of the records"


@pytest.fixture(scope="module")
def cut(shown):
    """For each kind its best estimates before each edge; see `best_cuts`."""
    return {kind: best_cuts(shown[kind]) for kind in NUMERIC}


def cumulative(made):
    """Released counts before each edge, from the file of the finest depth."""
    (axis,) = made.tree.axes
    known = dict(zip(made.files[-1][axis.columns[-1]], made.files[-1]["count"], strict=True))
    labels = axis.labels[-1].to_list()
    return np.append(0, np.cumsum([known.get(label, 0) for label in labels]))


def best_cuts(made):
    """Estimates before each edge, their variances, and the weight of every noise draw.

    Least squares of all noisy counts, the total being public; of running sums by inverting them.
    """
    total, plan = made.files[0]["count"][0], made.plan
    below = np.tril(np.ones((BINS, BINS)))
    if isinstance(plan.measure, RunningSums):
        covariance = covariance_of_sums(plan)
        return None, np.append(0, np.diag(covariance)), None
    sums, own = node_sums(plan.tree), own_variances(plan)
    inner = np.zeros((BINS + 1, BINS + 1))
    inner[:BINS, :BINS] = sum(a.T @ a / v for a, v in zip(sums, own, strict=True) if v)
    inner[BINS, :BINS] = inner[:BINS, BINS] = 1
    solved = np.linalg.inv(inner)
    measured = [t for t, v in enumerate(own) if v]
    weights = [solved[:BINS, :BINS] @ sums[t].T / own[t] for t in measured]
    leaves = solved[:BINS, BINS] * total
    leaves = leaves + sum(w @ made.noisy[t] for w, t in zip(weights, measured, strict=True))
    found = [np.vstack([np.zeros((1, w.shape[1])), below @ w]) for w in weights]
    variance_of = sum((w * w).sum(axis=1) * own[t] for w, t in zip(found, measured, strict=True))
    laws = [plan.depths[t].mechanism for t in measured]
    return np.append(0, np.cumsum(leaves)), variance_of, list(zip(laws, found, strict=True))


def within(cuts, edge, reach):
    """P(an estimate before an edge is off by at most this), by its characteristic function."""
    _, variances_of, draws = cuts
    deviation = math.sqrt(variances_of[edge])
    if draws is None:
        return math.erf(reach / deviation / math.sqrt(2))
    u = (np.arange(6_000) + 0.5) * (30 / deviation / 6_000)
    phi = np.ones_like(u)
    for mechanism, weights in draws:
        q = math.exp(-1 / float(mechanism.parameter))
        for weight in weights[edge]:
            phi *= (1 - q) ** 2 / (1 - 2 * q * np.cos(weight * u) + q * q)
    return float((np.sin(reach * u) / u * phi).sum() * (u[1] - u[0]) * 2 / math.pi)


@pytest.mark.parametrize("kind", NUMERIC)
def test_the_distribution_in_figures_is_the_sum_of_the_released_counts(shown, kind):
    made = shown[kind]
    found, before = table(made.seen, VALUES), cumulative(made)
    edges = [round(number(words) / WIDTH) for words in found.column("Below")]
    assert edges == list(range(2, BINS + 1, 2))
    assert [number(words) for words in found.column("Below")] == [WIDTH * i for i in edges]
    assert [number(words) for words in found.column("Records")] == before[edges].tolist()


@pytest.mark.parametrize("kind", NUMERIC)
def test_the_intervals_of_the_distribution_hold_with_95_per_cent(shown, cut, kind):
    """Of the true count: at least 95 %, and at most 98 % (they are verified, not tight)."""
    made = shown[kind]
    found, total = table(made.seen, VALUES), cumulative(made)[-1]
    estimate, _, _ = cut[kind]
    checked = 0
    for row in found.rows:
        edge, words = round(number(row["Below"].text) / WIDTH), row[INTERVAL].text
        if edge == BINS:
            assert words == "exact"
            continue
        low, high = ends(words)
        if estimate is not None:
            assert low <= estimate[edge] <= high or low == high
        if low > 0 and high < total:
            if estimate is not None:
                assert (low + high) / 2 == pytest.approx(estimate[edge], abs=1)
            assert within(cut[kind], edge, (high - low) / 2 + 1) >= 0.95
            assert within(cut[kind], edge, (high - low) / 2) <= 0.98
            checked += 1
    assert checked > 10


@pytest.mark.parametrize("kind", NUMERIC)
def test_the_distribution_in_a_picture_is_that_of_the_figures(shown, kind):
    made = shown[kind]
    found, before = picture(made.seen, BELOW), cumulative(made)
    assert (found.x.title, found.y.title) == ("income", "part of the records below")
    assert [value for _, value in found.x.ticks] == [0, 200, 400, 600, 800, 1000]
    line = found.lines["released"]
    assert len(line) == BINS + 1
    for i, point in enumerate(line):
        assert point.x[0] <= WIDTH * i <= point.x[1]
        assert point.y[0] <= before[i] / before[-1] <= point.y[1]


@pytest.mark.parametrize("kind", NUMERIC)
def test_the_band_of_the_picture_is_the_intervals_called_95_per_cent(shown, cut, kind):
    made = shown[kind]
    (band,) = picture(made.seen, BELOW).bands.items()
    total = cumulative(made)[-1]
    assert band[0] == "95 % interval at each edge"
    lower, upper = band[1][: BINS + 1], band[1][: -BINS - 2 : -1]
    estimate, _, _ = cut[kind]
    assert len(band[1]) == 2 * (BINS + 1)
    checked = 0
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        for end in (low, high):
            assert end.x[0] <= WIDTH * i <= end.x[1]
        if low.y[0] > 0 and high.y[1] < 1:
            least, most = (total * (high.y[k] - low.y[1 - k]) / 2 for k in (0, 1))
            assert within(cut[kind], i, most + 1) >= 0.95
            assert within(cut[kind], i, least) <= 0.98
            if estimate is not None:
                middle = total * (low.middle[1] + high.middle[1]) / 2
                assert middle == pytest.approx(estimate[i], abs=2.5)
            checked += 1
    assert checked > 20
