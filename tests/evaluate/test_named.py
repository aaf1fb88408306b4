"""Named cuboids evaluated: settings side by side."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import EstimateError, PlanError
from hedgerow.evaluate.baselines import IndependentNoise, LeafNoise
from hedgerow.evaluate.forecast import simulated_releases
from hedgerow.evaluate.method import CuboidCounts, Setting, table_of
from hedgerow.evaluate.simulate import left_out, run_bits, simulate
from hedgerow.evaluate.simulation_output import legend, metric_rows, picture_of_simulation
from hedgerow.release.preflight import check_estimator
from tests.made import plain_plan
from tests.release.pairs import MARGINS, OVERLAP, PAIRS, WORKLOADS, cube, named, true_table
from tests.release.pairs import table_of as counts_of


def settings():
    chain = plain_plan(
        PAIRS, budget=hr.Rho(1), neighbours=hr.Replace(), measure=hr.All(), workload=hr.Chain()
    )
    return [
        Setting("named", named(WORKLOADS["margins that overlap"]), hr.Euclidean()),
        Setting("margins", named(WORKLOADS["margins alone"]), hr.Euclidean()),
        Setting("beside", named(WORKLOADS["a chain with margins"]), hr.Euclidean()),
        Setting("chain", chain, hr.Euclidean()),
        LeafNoise(PAIRS, hr.Rho(1), hr.Replace(), hr.DiscreteGaussian),
    ]


def test_settings_are_compared_on_every_cuboid_that_some_plan_releases(tmp_path):
    counts, some = counts_of(filled=0.5), settings()
    found = simulate(counts, some, public=True, runs=3)
    every = {k for s in some[:4] for k in s.plan.levels}
    names = [PAIRS.name_of(k) for k in sorted(every, key=lambda k: (sum(k), k))]
    of = {name: part["cuboid"].to_list() for (name,), part in found.group_by("setting")}
    for name in ("beside", "chain", "leaf noise"):
        assert of[name] == names, "leaves answer every cuboid"
    inside = {
        each.name: [
            PAIRS.name_of(k)
            for k in sorted(every, key=lambda k: (sum(k), k))
            if each.plan.table_of(k) is not None
        ]
        for each in some[:2]
    }
    assert of["named"] == inside["named"]
    assert of["margins"] == inside["margins"]
    assert left_out(counts, some) == {
        name: [each for each in names if each not in kept] for name, kept in inside.items()
    }
    assert "o.level2 × d.level2" in left_out(counts, some)["named"]
    of_setting = {row[1]: row for row in metric_rows(found, "rmse")[1:]}
    assert list(of_setting) == [each.name for each in some]
    assert of_setting["margins"].count("-") == len(names) - len(inside["margins"])
    assert all(row[2] != "-" for row in metric_rows(found, "seconds"))
    assert len(legend(found)) == len(names) + 1
    picture_of_simulation(found, tmp_path / "errors.png")


def test_what_a_setting_does_not_release_is_the_sum_of_a_table_that_it_does():
    counts, setting = counts_of(filled=0.5), settings()[0]
    found = dict(setting.released(counts, run_bits(0, 0)))
    assert (1, 0) not in found
    table = table_of(setting, PAIRS, (2, 0))
    assert table == (2, 1)
    sums = found[table].summed(PAIRS, (2, 0), table)
    dense = found[table].dense(24).reshape(12, 2).sum(axis=1)
    assert sums.number.tolist() == np.flatnonzero(dense).tolist()
    assert sums.values.tolist() == dense[dense > 0].tolist()
    whole = CuboidCounts(None, found[table].dense(24)).summed(PAIRS, (2, 0), table)
    assert whole.dense(12).tolist() == sums.dense(12).tolist()


def test_errors_of_sums_are_those_of_the_table_that_is_released():
    counts, some = counts_of(filled=0.5), settings()
    found = simulate(counts, some, public=True, runs=3).filter(pl.col("setting") == "named")
    squares = []
    for run in range(3):
        cells = dict(some[0].released(counts, run_bits(0, run)))[2, 1]
        given = cells.dense(24).reshape(12, 2).sum(axis=1)
        squares.append(((given - true_table(counts, (2, 0)).ravel()) ** 2).mean())
    rmse = found.filter(pl.col("cuboid") == "o.level2")["rmse"].item()
    assert rmse == pytest.approx(np.sqrt(np.mean(squares)))


def test_a_cube_beside_named_cuboids_has_all_of_them():
    counts = counts_of(filled=0.5)
    some = [*settings()[:1], Setting("cube", cube(), hr.Euclidean())]
    found = simulate(counts, some, public=True, runs=3)
    assert len(found.filter(pl.col("setting") == "cube")) == 9
    assert left_out(counts, some[1:]) == {}


def test_a_prior_is_released_again_and_again_under_a_plan_of_named_cuboids():
    prior = hr.Prior(counts_of(filled=0.5), public=True)
    for name in ("margins that overlap", "a chain with margins"):
        plan = named(WORKLOADS[name])
        errors, sums = simulated_releases(plan, prior, hr.Euclidean(), runs=2)
        assert errors["cuboid"].to_list() == list(plan.cuboids)
        assert sums.is_empty()
        assert "depth" not in errors.columns


def test_independent_noise_needs_a_measurement_of_what_named_cuboids_share():
    with pytest.raises(PlanError, match=r"independent noise needs a measurement of 'o\.level1 × d"):
        IndependentNoise(named(hr.Cuboids(OVERLAP)))
    method = IndependentNoise(named(hr.Cuboids(MARGINS)))
    assert [k for k, _ in method.released(counts_of(), run_bits(0, 0))] == [(0, 0), (0, 2), (2, 0)]


def test_other_estimators_than_euclidean_are_refused():
    with pytest.raises(EstimateError, match="a workload of named cuboids is settled by method = "):
        check_estimator(hr.Chebyshev(), named(WORKLOADS["margins alone"]))
