"""Named cuboids evaluated: what areas are due, errors against the truth, settings side by side."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import EstimateError, PlanError, ReleaseError
from hedgerow.evaluate import joint_errors
from hedgerow.evaluate.baselines import IndependentNoise, LeafNoise
from hedgerow.evaluate.forecast import simulated_releases
from hedgerow.evaluate.funds import Above, Proportional, Seats
from hedgerow.evaluate.joint_errors import errors_of, raw_errors
from hedgerow.evaluate.method import CuboidCounts, Setting, table_of
from hedgerow.evaluate.metrics import error_by_cuboid
from hedgerow.evaluate.share_intervals import share_intervals
from hedgerow.evaluate.simulate import left_out, run_bits, simulate
from hedgerow.evaluate.simulation_output import legend, metric_tables, picture_of_simulation
from hedgerow.release.preflight import check_estimator
from tests.estimate.cube.dense_cubes import cuboid_sums
from tests.made import plain_plan
from tests.release.cube.test_cube_release import PAIRS, cube, released, tables, true_table
from tests.release.cube.test_cube_release import table_of as counts_of
from tests.release.joint.test_named_answers import (
    MARGINS,
    OVERLAP,
    WORKLOADS,
    dense_estimates,
    named,
)

DRAWS = 4_000


@pytest.mark.sweep(3)
@pytest.mark.parametrize("name", ["margins that overlap", "a chain with margins"])
@pytest.mark.parametrize(
    ("who", "options"),
    [
        (hr.Replace(), {}),
        (hr.AddRemove(), {}),
        (hr.AddRemove(), {"mechanism": hr.DiscreteLaplace, "budget": hr.Epsilon(6)}),
    ],
    ids=["public total", "measured total", "laplace"],
)
def test_joint_errors_have_the_covariance_of_a_dense_solver(name, who, options):
    """Each entry within 6 standard errors of 4,000 independent draws (α below 1e-6)."""
    plan = named(WORKLOADS[name], neighbours=who, **options)
    shape, _, covariance = dense_estimates(released(counts_of(), plan))
    for levels in [(1, 0), plan.tables[-1]]:
        drawn = errors_of(plan, levels)(DRAWS, seed=1)
        sums = cuboid_sums(shape, levels)
        exact = sums @ covariance @ sums.T
        own = np.diag(exact)
        error = np.sqrt(2.5 * (np.outer(own, own) + exact**2) / DRAWS)  # 2.5: of Laplace noise
        found = drawn.T @ drawn / DRAWS
        assert (np.abs(found - exact) <= 6 * error + 1e-9).all(), levels
        assert np.abs(drawn.mean(axis=0)).max() <= 6 * np.sqrt(own.max() / DRAWS)
        if who.total_is_public:
            assert np.abs(drawn.sum(axis=1)).max() < 1e-6


@pytest.mark.parametrize("rule", [Proportional(), Seats()], ids=lambda r: r.name)
def test_intervals_cover_what_is_due_as_often_as_they_say(rule):
    """20 releases of 12 areas each: below 86 % is a fault."""
    counts, covered = counts_of(filled=0.9), []
    plan = named(WORKLOADS["margins alone"], neighbours=hr.AddRemove(), budget=hr.Rho("1/20"))
    truth = true_table(counts, (2, 0)).ravel()
    for seed in range(20):
        release = released(counts, plan, seed)
        found = share_intervals(release, "o.level2", rule, 60, draws=400, seed=seed)
        due = rule.allocate(truth, 60)
        low, high = found["low"].to_numpy(), found["high"].to_numpy()
        covered.append(((low <= due + 1e-9) & (due <= high + 1e-9)).mean())
    assert np.mean(covered) >= 0.86


def test_survivors_share_by_their_noisy_counts():
    plan = named(WORKLOADS["margins and leaves"], measure=hr.Survivors())
    release = released(counts_of(filled=0.1), plan)
    found = share_intervals(release, PAIRS.name_of((2, 2)), Proportional(), 5.0, draws=100)
    again = hr.reestimate(release, hr.LeastSquares()).frames[2, 2]
    assert found["estimate"].equals(again["estimate"])
    assert len(found) < PAIRS.leaves
    equal = share_intervals(release, "o.level2", Above(5, equally=True), 3.0)
    assert (equal["low"] <= equal["high"]).all()
    assert raw_errors((2, 2), hr.DiscreteGaussian("30"), 7)(3, seed=2).shape == (3, 7)


def test_areas_of_no_cuboid_of_the_workload_are_refused():
    release = released(counts_of(), named(WORKLOADS["margins alone"]))
    with pytest.raises(ReleaseError, match=r"the plan has no cuboid 'o\.level1' .*by cuboids of"):
        share_intervals(release, "o.level1", Proportional(), 1.0)


def test_so_many_draws_that_they_take_minutes_are_refused(monkeypatch):
    release = released(counts_of(), named(WORKLOADS["margins alone"]))
    monkeypatch.setattr(joint_errors, "MOST_DRAWN", 1000)
    with pytest.raises(ReleaseError, match=r"22 noisy counts of this release 50 times, and 1,000"):
        share_intervals(release, "o.level2", Proportional(), 1.0, draws=100)


@pytest.mark.parametrize("name", WORKLOADS)
def test_errors_of_every_cuboid_are_those_of_dense_tables(name):
    counts = counts_of(filled=0.3)
    release = released(counts, named(WORKLOADS[name]))
    errors = error_by_cuboid(counts, release)
    assert errors["cuboid"].to_list() == list(release.plan.cuboids)
    for row, (levels, given) in zip(
        errors.iter_rows(named=True), tables(release).items(), strict=True
    ):
        error = np.abs(given - true_table(counts, levels))
        assert row["max_error"] == error.max()
        assert row["rmse"] == pytest.approx(np.sqrt((error.astype(float) ** 2).mean()))


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
    for part in metric_tables(found, "rmse"):
        assert [row[1] for row in part[1:]] == [each.name for each in some]
    shown = [row for part in metric_tables(found, "rmse") for row in part if row[1] == "margins"]
    dashes = sum(row.count("-") for row in shown)
    assert dashes == len(names) - len(inside["margins"])
    (seconds,) = metric_tables(found, "seconds")
    assert all(row[2] != "-" for row in seconds)
    assert legend(found).count("\n") == len(names) - 1
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
