"""Named workloads on real tables: margins beside a chain, and two tables from one budget."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evaluate.simulate import seeded_bits
from studies import workloads
from studies.cube import CASES
from studies.page import DATA
from studies.releases import ratio, rmse
from studies.tables import trips_between
from studies.workloads import (
    BLOCKS,
    CHAIN,
    MARGINS,
    TRACTS,
    Agreeing,
    TwoTables,
    coarsenings,
    squared_errors,
    standard_error,
)

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the real tables are not here")
COUNTY = "44001"
INFLOW, OUTFLOW = (0, 3), (3, 0)


@pytest.fixture(scope="module")
def trips():
    """Plans and squared errors of 20 releases of UK commuting."""
    counts = trips_between(DATA / CASES[0].folder)
    plans = workloads.trips_plans(counts.tree)
    squares = {name: squared_errors(counts, plans[name], 20) for name in (CHAIN, MARGINS)}
    leaves = counts.tree.chain[-1]
    by_levels = {
        name: {levels: each for (table, levels), each in found.items() if table == leaves}
        for name, found in squares.items()
    }
    return plans, by_levels


@needs_data
def test_a_real_chain_and_two_margins_forecast_flows_within_20_5_trips(trips):
    plans, _ = trips
    assert all(share in {None, plans[MARGINS].shares[-1]} for share in plans[MARGINS].shares)
    assert sum(share is not None for share in plans[MARGINS].shares) == 8
    for flow in (INFLOW, OUTFLOW):
        assert 15 < standard_error(plans[MARGINS], flow) <= 20.5


@needs_data
def test_real_margins_are_released_within_22_trips_and_the_chain_loses_16_percent_at_most(trips):
    plans, squares = trips
    for flow in (INFLOW, OUTFLOW):
        assert rmse(squares[MARGINS][flow]) <= 22
        assert rmse(squares[CHAIN][flow]) > 90
    for levels in plans[CHAIN].levels[1:]:
        over, _ = ratio(squares[MARGINS][levels], squares[CHAIN][levels])
        assert 1 < over <= 1.16, levels
    leaves, _ = ratio(squares[MARGINS][3, 3], squares[CHAIN][3, 3])
    assert leaves < 1.12  # settled below what is measured, and its common coarsenings, alone


@pytest.fixture(scope="module")
def two_tables():
    """People of one county of Rhode Island."""
    return TwoTables.of(DATA / "pl94_ri_2010", COUNTY)


@needs_data
def test_two_real_tables_from_one_budget_agree_on_tract_by_race(two_tables):
    tree = two_tables.counts.tree
    one, other = (tree.named(name) for name in (BLOCKS, TRACTS))
    for seed in range(10):
        method = Agreeing(two_tables.both)
        listed = dict(method.released(two_tables.counts, seeded_bits(seed)))
        tables = {
            levels: listed[levels].dense(tree.cells(levels)).reshape(tree.sizes(levels))
            for levels in two_tables.both.tables
        }
        assert set(tables) == {one, other}
        start = tree.axes[0].descendant_start(one[0] - 2, one[0])[:-1]
        by_tract = np.add.reduceat(tables[one], start, axis=0)
        assert np.array_equal(by_tract.sum(axis=2), tables[other].sum(axis=2))
        assert (by_tract >= 0).all()


@needs_data
def test_two_real_tables_are_each_no_worse_than_alone_with_their_share_of_rho(two_tables):
    together, alone = two_tables.squared_errors(10)
    assert set(together) == set(alone)
    for name, plan in two_tables.alone.items():
        (only,) = [what for what in plan.by_levels.values() if isinstance(what, hr.Measured)]
        levels = two_tables.counts.tree.named(name)
        assert two_tables.both.by_levels[levels].mechanism == only.mechanism
        assert plan.guarantee.rho * 2 == two_tables.both.guarantee.rho
        for cuboid in coarsenings(plan, levels):
            both, single = two_tables.standard_errors(levels, cuboid)
            assert both < single, (name, cuboid)
    for place, squares in together.items():
        over, error = ratio(squares, alone[place])
        single_count = two_tables.counts.tree.cells(place[1]) == 1
        assert over < (1 + 3 * error if single_count else 1), place
