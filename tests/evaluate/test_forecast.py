"""Forecast errors against simulated ones, and what a simulation says of itself."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate.forecast import (
    HEADINGS,
    METRICS,
    plan_over,
    simulated_releases,
    simulated_rows,
)
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.release.descent.chain import ChainFlow
from hedgerow.release.descent.nodes import by_cuboid
from hedgerow.release.descent.source import Drawn
from hedgerow.release.passes import Pass
from tests.made import all_leaves, fixed_axis, plain_plan, random_axis

GAUSSIAN = {"budget": hr.Rho("1/20"), "mechanism": hr.DiscreteGaussian}
LAPLACE = {"budget": hr.Epsilon(1), "mechanism": hr.DiscreteLaplace}


def census(seed=1, least=3000, *, empty=0.0):
    """Blocks of three states with uneven families, of thousands of people each, some empty."""
    rng = np.random.default_rng(seed)
    tree = hr.Tree([random_axis(rng, "geo", depth=4, widest=4)])
    leaves = tree.leaves
    values = rng.integers(least, 3 * least, leaves) * (rng.random(leaves) >= empty)
    return all_leaves(tree, values)


def public(counts):
    return hr.Prior(counts, public=True)


def least_squares_rmse(plan, counts, runs):
    """RMSE by depth of least squares: no count is near 0, so every node is listed."""
    squares = np.zeros((runs, plan.tree.depth + 1))
    for run in range(runs):
        source = Drawn(counts, plan, seeded_bits(run))
        nodes, _ = by_cuboid(
            Pass(ChainFlow(plan.design.outline, source, hr.LeastSquares())).results()
        )
        for t, here in enumerate(nodes.values()):
            truth = counts.roll_up(t)[1]
            squares[run, t] = np.square(here.estimate - truth).mean()
    return np.sqrt(squares.mean(axis=0))


@pytest.mark.parametrize("what", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_forecast_rmse_is_within_5_percent_of_simulated_least_squares(what):
    """4 standard errors or more at every depth (alpha 1e-4); a tenth too little noise is found."""
    counts = census()
    options = {"neighbours": hr.Replace(), "measure": hr.All()}
    plan = plain_plan(counts.tree, **what, **options)
    found = least_squares_rmse(plan, counts, 1000)[1:]
    told = hr.forecast(plan)["rmse"].to_numpy()[1:]
    np.testing.assert_allclose(found, told, rtol=0.05)
    assert (abs(found / (0.9 * told) - 1) > 0.05).all()


def test_the_monte_carlo_error_is_the_spread_of_repeated_simulations():
    """Relative error of a spread over 50 blocks: 10 %; 40 % is beyond 4 of them (alpha 1e-4).

    Of one cell and 10 runs the formula is some 10 % too small, as squares are skewed.
    """
    counts = census(2, least=20, empty=0.4)
    plan = plain_plan(counts.tree, **GAUSSIAN)
    blocks = [
        simulated_releases(plan, public(counts), hr.Chebyshev(), runs=10, seed=10 * i)[0]
        for i in range(50)
    ]
    for t in range(counts.tree.depth + 1):
        for name in ("rmse", "mae", "max_error"):
            spread = np.std([block[name][t] for block in blocks], ddof=1)
            told = np.sqrt(np.mean([block[f"{name}_error"][t] ** 2 for block in blocks]))
            assert 0.6 < spread / told < 1.5, (t, name)


def test_simulated_errors_are_the_errors_of_the_same_seeds():
    counts = census(3, least=20)
    plan = plain_plan(counts.tree, **LAPLACE)
    both = simulated_releases(plan, public(counts), hr.Euclidean(), runs=2, seed=4)[0]
    again = simulated_releases(plan, public(counts), hr.Euclidean(), runs=2, seed=5)[0]
    assert both.equals(simulated_releases(plan, public(counts), hr.Euclidean(), runs=2, seed=4)[0])
    assert not both.equals(again)
    last = counts.tree.depth
    squares = []
    for run in (4, 5):
        source = Drawn(counts, plan, seeded_bits(run))
        nodes, _ = by_cuboid(Pass(ChainFlow(plan.design.outline, source, hr.Euclidean())).results())
        released = np.zeros(counts.tree.leaves)
        leaves = nodes[counts.tree.cuboid(last)]
        released[leaves.codes[0]] = leaves.counts
        truth = np.zeros(counts.tree.leaves)
        truth[counts.codes[0]] = counts.values
        squares.append(np.square(released - truth).mean())
    assert both["rmse"][last] == pytest.approx(np.sqrt(np.mean(squares)))
    error = np.std(squares, ddof=1) / np.sqrt(2) / (2 * np.sqrt(np.mean(squares)))
    assert both["rmse_error"][last] == pytest.approx(error)


def test_every_error_comes_with_its_monte_carlo_error_and_public_depths_with_none():
    counts = census(3, least=20)
    plan = plain_plan(counts.tree, neighbours=hr.Replace(), **GAUSSIAN)
    errors = simulated_releases(plan, public(counts), hr.Chebyshev(), runs=3)[0]
    assert set(METRICS) | {f"{name}_error" for name in METRICS} < set(errors.columns)
    assert errors.select(f"{name}_error" for name in METRICS).null_count().sum_horizontal()[0] == 0
    assert errors["rmse"][0] == errors["rmse_error"][0] == 0
    assert errors["rmse_error"][1:].min() > 0
    assert {len(row) for row in simulated_rows(errors)} == {len(HEADINGS)}


@pytest.mark.parametrize("runs", [0, 1])
def test_fewer_than_two_runs_are_refused(runs):
    counts = census(3, least=20)
    with pytest.raises(hr.PlanError, match=f"of at least 2, got {runs}"):
        simulated_releases(
            plain_plan(counts.tree, **GAUSSIAN), public(counts), hr.Chebyshev(), runs=runs
        )[0]


def named(axis, levels):
    """A table with one state of three counties, or whatever its levels are called."""
    areas = [["a"] * (len(levels) - 1) + [county] for county in "bcd"]
    frame = pl.DataFrame(areas, schema=levels, orient="row")
    tree = hr.Tree([hr.Axis.from_frame(axis, frame, levels)])
    return hr.Counts.from_leaves(
        tree, (np.arange(3, dtype=np.int32),), np.full(3, 9, dtype=np.int64)
    )


@pytest.mark.parametrize(
    "levels",
    [
        ["state", "region", "county"],
        ["county"],
        ["state", "town"],
        ["region", "county"],
    ],
    ids="-".join,
)
def test_a_table_with_other_levels_is_refused(levels):
    plan = plain_plan(named("geo", ["state", "county"]).tree, **GAUSSIAN)
    with pytest.raises(hr.PlanError, match="the table to simulate has the levels"):
        simulated_releases(plan, public(named("geo", levels)), hr.Chebyshev(), runs=2)[0]


@pytest.mark.parametrize(
    "what",
    [GAUSSIAN, LAPLACE, {"budget": hr.EpsilonDelta(1, "1e-8"), "mechanism": hr.DiscreteGaussian}],
    ids=["gaussian", "laplace", "epsilon-delta"],
)
def test_a_table_over_other_areas_is_simulated_with_the_noise_of_the_plan(what):
    plan = plain_plan(hr.Tree([fixed_axis("geo", 2, 3)]), **what)
    tree = hr.Tree([fixed_axis("geo", 4, 5)])
    counts = hr.Counts.from_leaves(
        tree, (np.arange(20, dtype=np.int32),), np.full(20, 900, dtype=np.int64)
    )
    assert plan_over(plan, counts).depths == plan.depths
    errors = simulated_releases(plan, public(counts), hr.Chebyshev(), runs=2)[0]
    assert errors["cells"].to_list() == [1, 4, 20]
