"""Quantiles by area without a hierarchy: their draws, their price, their answers."""

from functools import partial
from itertools import product

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.distribution.bins import coded_axis
from hedgerow.evaluate.area_quantiles import HistogramsAlone, QuantilesAlone
from hedgerow.evaluate.simulate import seeded_bits

RANKS = hr.Quantiles(["1/10", "1/2", "9/10"])


def table(cells, high=100):
    """Areas (rows) by bins of equal width from 0."""
    cells = np.asarray(cells, dtype=np.int64)
    areas, bins = cells.shape
    names = pl.DataFrame({"area": [f"{i:05d}" for i in range(areas)]})
    place = hr.Axis.from_frame("place", names, levels=["area"])
    ranges = hr.Ranges.equal_width("income", 0, high, bins)
    tree = hr.Tree([place, coded_axis(ranges, (bins,))])
    codes = tuple(code.ravel().astype(np.int32) for code in np.indices(cells.shape))
    return hr.Counts.from_leaves(tree, codes, cells.ravel())


def chances(cells, rank, rate):
    """The law of a draw over the edges, from the definition, for one area."""
    below, n = np.append(0, np.cumsum(cells)), np.sum(cells)
    weights = np.exp([-rate * abs(each - float(rank) * n) for each in below])
    return weights / weights.sum()


UNCLIPPED = partial(HistogramsAlone, clipped=False)


@pytest.mark.parametrize("kind", [HistogramsAlone, UNCLIPPED, QuantilesAlone])
def test_with_a_large_budget_both_say_the_true_quantiles(kind):
    values = np.random.default_rng(3).lognormal(3, 0.5, (20, 900)).clip(0, 99)
    bins = np.floor(values * 4).astype(int)
    counts = table([np.bincount(row, minlength=400) for row in bins])
    made = kind(RANKS, hr.Rho(1000), hr.AddRemove()).values(counts, seeded_bits(1))
    true = np.quantile(values, [0.1, 0.5, 0.9], axis=1).T
    assert np.abs(made - true).max() < 0.5  # a bin is a quarter; few records are near 0.9


def test_an_area_of_whose_counts_nothing_is_left_has_no_quantile():
    counts = table(np.zeros((500, 2)))
    made = HistogramsAlone(RANKS, hr.Rho(1), hr.AddRemove()).values(counts, seeded_bits(1))
    empty = np.isnan(made).all(axis=1)
    assert empty.any()
    assert np.isfinite(made[~empty]).all()


def test_cutting_at_zero_moves_a_median_towards_empty_bins_and_a_monotone_cdf_does_not():
    """Twenty records in the second of a hundred bins of 1."""
    cells = np.zeros((2_000, 100), dtype=np.int64)
    cells[:, 1] = 20
    moved = {
        kind: kind(hr.Quantiles(["1/2"]), hr.Rho(1), hr.AddRemove()).values(
            table(cells), seeded_bits(1)
        )
        for kind in (HistogramsAlone, UNCLIPPED)
    }
    assert np.median(moved[HistogramsAlone]) > 5
    assert 1 < np.median(moved[UNCLIPPED]) < 2


def test_noise_of_a_histogram_is_that_of_the_whole_budget():
    """Of two bins far above 0 the median is at n/2, which the noise of both moves."""
    areas, n = 20_000, 10_000
    counts = table(np.full((areas, 2), n // 2))
    half = hr.Quantiles(["1/2"])
    made = HistogramsAlone(half, hr.Rho("1/8"), hr.AddRemove()).values(counts, seeded_bits(5))
    moved = (made[:, 0] - 50) / 50 * (n / 2)  # (x₁ - x₀) / 2, of variance 1/(2ρ) / 2 = 2
    assert abs(moved.var() / 2 - 1) < 4.9 * np.sqrt(2 / areas)  # alpha = 1e-6


@pytest.mark.parametrize("rank", RANKS.ranks)
def test_edges_are_drawn_as_often_as_scores_say(rank):
    cells, areas = [2, 0, 1, 3], 60_000
    mechanism = QuantilesAlone(hr.Quantiles([rank]), hr.Rho("1/4"), hr.AddRemove())
    made = mechanism.values(table([cells] * areas), seeded_bits(7))[:, 0]
    number = np.bincount((made / 25).round().astype(int), minlength=5)
    expected = areas * chances(cells, rank, mechanism.rates[0])
    assert ((number - expected) ** 2 / expected).sum() < 33.4  # chi-squared of 4, alpha = 1e-6


def divergence(p, q, order):
    return np.log((p**order * q ** (1 - order)).sum()) / (order - 1)


def worst(rank, rate, moves):
    """The largest Rényi divergence over its order, of small tables of one area or two."""
    found = 0.0
    for cells in product(range(4), repeat=3):
        for change in moves:
            other = np.array(cells) + change
            if (other < 0).any():
                continue
            p, q = (chances(each, rank, rate) for each in (cells, other))
            for order in (1.01, 1.5, 2, 4, 16):
                found = max(found, divergence(p, q, order) / order)
    return found


COME = [*np.eye(3, dtype=int)]
GO = [-each for each in COME]
MOVE = [one - other for one in COME for other in COME if one is not other]


def spent(mechanism):
    """What all ranks cost together, by all neighbours of small tables."""
    found = 0.0
    for rank, rate in zip(mechanism.quantiles.ranks, mechanism.rates, strict=True):
        alone = max(worst(rank, rate, moves) for moves in (COME, GO))
        if isinstance(mechanism.neighbours, hr.AddRemove):
            found += alone
        else:  # within an area, or out of one into another
            found += max(worst(rank, rate, MOVE), 2 * alone)
    return found


WHO = pytest.mark.parametrize("who", [hr.AddRemove(), hr.Replace()], ids=["come or go", "move"])


@WHO
@pytest.mark.parametrize("rho", ["1/50", "1", "8"])
def test_all_ranks_together_cost_no_more_than_the_budget(who, rho):
    mechanism = QuantilesAlone(RANKS, hr.Rho(rho), who)
    assert spent(mechanism) <= float(mechanism.budget.rho) * (1 + 1e-9)


@WHO
def test_a_median_costs_what_it_is_said_to(who):
    """Come or go: next to all of it. Moves are priced as the worst of any three edges."""
    mechanism = QuantilesAlone(hr.Quantiles(["1/2"]), hr.Rho("1/50"), who)
    least = 0.99 if isinstance(who, hr.AddRemove) else 0.5
    assert spent(mechanism) > least * float(mechanism.budget.rho)


def test_units_of_several_records_pay_for_all_of_them():
    one, three = (QuantilesAlone(RANKS, hr.Rho(1), hr.AddRemove(m)).rates for m in (1, 3))
    assert np.allclose(np.array(one) / three, 3)
