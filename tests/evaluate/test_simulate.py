"""Simulations against a direct computation on dense tables, and what they say of themselves."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.evaluate import simulate as simulate_module
from hedgerow.evaluate.baselines import (
    IndependentNoise,
    LeafNoise,
    StabilityHistogram,
    boninsegna,
    ko,
)
from hedgerow.evaluate.error_picture import picture_of_errors
from hedgerow.evaluate.method import FACTS, Setting, budget_text
from hedgerow.evaluate.metrics import error_by_cuboid
from hedgerow.evaluate.moments import CLASS_NAMES
from hedgerow.evaluate.simulate import METRICS, run_bits, seeded_bits, simulate
from hedgerow.evaluate.simulation_output import (
    WORDS,
    TableWords,
    metric_rows,
    picture_of_simulation,
)
from hedgerow.release.execution import in_memory
from tests.made import all_leaves, fixed_axis, plain_plan, random_counts, random_tree

BUDGET = hr.EpsilonDelta(1, "1e-6")


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(7)
    return random_counts(rng, random_tree(rng, axes=2, depth=2, widest=5), mean=200)


@pytest.fixture(scope="module")
def settings(counts):
    tree, who = counts.tree, hr.AddRemove()
    plans = [
        plain_plan(tree, budget=BUDGET, neighbours=who, measure=measure)
        for measure in (hr.Survivors(), hr.All())
    ]
    return [
        Setting("survivors", plans[0], hr.Chebyshev()),
        Setting("all", plans[1], hr.Euclidean()),
        boninsegna(tree, BUDGET, who),
        ko(tree, BUDGET, who, hr.Uniform(), name="Ko uniform"),
        ko(tree, BUDGET, who, hr.Optimal(objective="cells"), name="Ko optimal"),
        IndependentNoise(plans[0]),
        LeafNoise(tree, BUDGET, who, hr.DiscreteGaussian),
        StabilityHistogram(BUDGET, who),
    ]


def dense(tree, frame, depth):
    """Counts of a depth as a dense array over all possible nodes."""
    sizes = [axis.size(k) for axis, k in zip(tree.axes, tree.cuboid(depth), strict=True)]
    table = np.zeros(sizes)
    for row in frame.iter_rows(named=True):
        place = tuple(
            axis.labels[k - 1].to_list().index(row[axis.columns[k - 1]]) if k else 0
            for axis, k in zip(tree.axes, tree.cuboid(depth), strict=True)
        )
        table[place] = row["count"]
    return table.ravel()


def metrics_of(released, truth):
    """All metrics of a depth, from the dense counts of all runs: (runs, cells) and (cells)."""
    error = released - truth
    square = (error**2).mean(axis=1)
    shown, there = released > 0, truth > 0
    shares = np.maximum(released, 0) / np.maximum(released, 0).sum(axis=1, keepdims=True)
    classes = np.digitize(truth, [1, 10, 100, 1000, 10_000])
    each = {
        "max_error": abs(error).max(axis=1),
        "mae": abs(error).mean(axis=1),
        "false_discovery_rate": (shown & ~there).sum(axis=1) / np.maximum(shown.sum(axis=1), 1),
        "false_negative_rate": (there & ~shown).sum(axis=1) / there.sum(),
        "total_variation": abs(shares - truth / truth.sum()).sum(axis=1) / 2,
        **{
            name: (abs(error) / np.maximum(truth, 1))[:, classes == i].mean(axis=1)
            for i, name in enumerate(CLASS_NAMES, start=1)
            if (classes == i).any()
        },
    }
    runs = len(error)
    found = {"rmse": np.sqrt(square.mean())}
    found["rmse_error"] = square.std(ddof=1) / np.sqrt(runs) / max(2 * found["rmse"], 1e-300)
    for name, values in each.items():
        found[name], found[f"{name}_error"] = values.mean(), values.std(ddof=1) / np.sqrt(runs)
    found["variance"] = error.var(axis=0, ddof=1).mean()
    found["bias2"] = (error.mean(axis=0) ** 2).mean() - found["variance"] / runs
    return found


@pytest.mark.parametrize("which", [0, 1], ids=["survivors", "all"])
def test_all_metrics_are_those_of_the_dense_tables(counts, settings, which):
    setting, runs, tree = settings[which], 7, counts.tree
    errors = simulate(counts, [setting], public=True, runs=runs, seed=3)
    releases = [
        in_memory(counts, setting.plan, estimator=setting.estimator, bits=run_bits(3, r))
        for r in range(runs)
    ]
    classes = set()
    for t, row in enumerate(errors.iter_rows(named=True)):
        truth = dense(tree, counts.level(t), t)
        released = np.array([dense(tree, r.level(depth=t), t) for r in releases])
        wanted = metrics_of(released, truth)
        assert row["cells"] == len(truth)
        assert row["cuboid"] == tree.cuboid_name(t)
        for name, value in wanted.items():
            assert row[name] == pytest.approx(value, rel=1e-9, abs=1e-12), (t, name)
        missing = set(CLASS_NAMES) - set(wanted)
        assert all(row[name] is row[f"{name}_error"] is None for name in missing)
        classes |= set(wanted) & set(CLASS_NAMES)
    assert len(classes) == len(CLASS_NAMES)
    assert errors["rmse"][-1] > 1
    assert errors["false_negative_rate"][-1] > 0


def test_cumulative_errors_are_those_of_running_sums_over_all_cells():
    tree = hr.Tree([fixed_axis("a", 4, 25)])
    rng = np.random.default_rng(2)
    chosen = np.flatnonzero(rng.random(100) < 0.3).astype(np.int32)
    counts = hr.Counts.from_leaves(tree, (chosen,), rng.integers(1, 90, len(chosen)))
    plan = plain_plan(tree, budget=hr.Rho("1/9"))
    methods = [Setting("pass", plan, hr.Chebyshev()), IndependentNoise(plan)]
    errors = simulate(counts, methods, public=True, runs=4).filter(pl.col("depth") == 2)
    for i, method in enumerate(methods):
        truth = counts.codes[0], counts.values
        squares = []
        for r in range(4):
            cells = dict(method.released(counts, run_bits(0, r)))[2,].dense(100).copy()
            cells[truth[0]] -= truth[1]
            squares.append((np.cumsum(cells) ** 2).mean())
        assert errors["cumulative_rmse"][i] == pytest.approx(np.sqrt(np.mean(squares)))
        spread = np.std(squares, ddof=1) / 2 / (2 * np.sqrt(np.mean(squares)))
        assert errors["cumulative_rmse_error"][i] == pytest.approx(spread)


def test_several_axes_have_no_cumulative_errors(counts, settings):
    errors = simulate(counts, settings[:1], public=True, runs=3)
    assert errors["cumulative_rmse"].null_count() == len(errors)


def test_bias_and_variance_add_up_to_the_mean_squared_error(counts, settings):
    errors = simulate(counts, settings, public=True, runs=5)
    both = errors["bias2"] + errors["variance"]
    np.testing.assert_allclose(both, errors["rmse"] ** 2, rtol=1e-9, atol=1e-9)
    assert (errors["variance"] >= 0).all()


def test_results_are_the_same_for_any_number_of_workers(counts, settings):
    one, three = (
        simulate(counts, settings, public=True, runs=9, workers=n).drop("seconds", "seconds_error")
        for n in (1, 3)
    )
    assert one.equals(three)
    other = simulate(counts, settings, public=True, runs=9, seed=1).drop("seconds", "seconds_error")
    assert not one.equals(other)


def test_runs_of_different_seeds_share_no_bits():
    words = {run_bits(s, r).stream(0).words(0, 1)[0] for s in range(4) for r in range(4)}
    assert len(words | {seeded_bits(s).stream(0).words(0, 1)[0] for s in range(4)}) == 20


def test_settings_are_compared_on_common_noise(counts, settings):
    """So the same setting under two names has the same errors to the last digit."""
    plan = settings[0].plan
    twins = [Setting(name, plan, hr.Chebyshev()) for name in "ab"]
    errors = simulate(counts, twins, public=True, runs=3).drop(
        "setting", "seconds", "seconds_error"
    )
    half = len(errors) // 2
    assert errors.head(half).equals(errors.tail(half))


def test_unbiased_noise_has_the_variance_of_its_law_and_no_bias(counts):
    """z-scores within 4.9 of independent noise (alpha 1e-6 each): the correction of B matters.

    Without it bias² would be variance / runs, which is far outside.
    """
    plan = plain_plan(counts.tree, budget=hr.Rho("1/4"))
    runs = 16
    errors = simulate(counts, [IndependentNoise(plan)], public=True, runs=runs)
    last = errors.row(-1, named=True)
    cells = last["cells"]
    law = plan.depths[-1].mechanism.noise_variance
    spread = law * np.sqrt(2 / (cells * (runs - 1)))
    assert abs(last["variance"] - law) < 4.9 * spread
    assert abs(last["variance"] - 0.8 * law) > 4.9 * spread
    of_bias = law * np.sqrt(2 / cells) / runs
    assert abs(last["bias2"]) < 4.9 * of_bias
    assert law / runs > 4.9 * of_bias


def test_the_monte_carlo_errors_are_the_spread_of_repeated_simulations(counts, settings):
    """48 blocks: 10 % of a spread; the jackknife's 8 groups know theirs to 27 % a block."""
    names = ("rmse", "bias2", "variance", "mae", "total_variation")
    blocks = [
        simulate(counts, settings[:1], public=True, runs=8, seed=seed).row(-1, named=True)
        for seed in range(48)
    ]
    for name in names:
        spread = np.std([block[name] for block in blocks], ddof=1)
        told = np.sqrt(np.mean([block[f"{name}_error"] ** 2 for block in blocks]))
        assert 0.6 < spread / told < 1.5, name


def test_every_baseline_says_what_it_is(counts, settings):
    errors = simulate(counts, settings, public=True, runs=3)
    facts = {row["setting"]: row for row in errors.filter(pl.col("depth") == 0).to_dicts()}
    assert facts["survivors"]["measure"] == "survivors"
    assert facts["Ko uniform"]["estimator"] == "clipped-euclidean"
    assert facts["leaf noise"]["allocation"] is None
    assert {row["budget"] for row in facts.values()} == {"ε = 1, δ = 1e-06"}
    assert set(FACTS) < set(errors.columns)
    assert budget_text(hr.Rho("1/2")) == "ρ = 0.5"
    assert budget_text(hr.Epsilon(2)) == "ε = 2"


def test_progress_goes_up_to_one(counts, settings):
    told = []
    simulate(counts, settings[:2], public=True, runs=3, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1
    assert len(told) == 6


@pytest.mark.parametrize("word", [False, None, "no", 1], ids=repr)
def test_a_table_that_is_not_declared_public_is_not_simulated(counts, settings, word, monkeypatch):
    """Nothing is drawn or counted before the word is given, and leaving it out is no word."""
    monkeypatch.setattr(simulate_module, "check_numbered", pytest.fail)
    with pytest.raises(
        hr.PlanError, match=r"reveal a table: declare public=True if anyone may see"
    ):
        simulate(counts, settings[:1], public=word, runs=3)
    with pytest.raises(TypeError, match="'public'"):
        simulate(counts, settings[:1], runs=3)


def test_what_cannot_be_simulated_is_refused(counts, settings):
    with pytest.raises(hr.PlanError, match="of at least 3, got"):
        simulate(counts, settings, public=True, runs=2)
    with pytest.raises(hr.PlanError, match="workers must be a whole number of at least 1"):
        simulate(counts, settings, public=True, runs=3, workers=0)
    with pytest.raises(hr.PlanError, match="two settings are called 'survivors'"):
        simulate(counts, [settings[0], settings[0]], public=True, runs=3)
    with pytest.raises(hr.PlanError, match="there is no setting"):
        simulate(counts, [], public=True, runs=3)
    other = plain_plan(hr.Tree([fixed_axis("a", 3)]), budget=BUDGET)
    with pytest.raises(hr.PlanError, match="another tree"):
        simulate(counts, [Setting("other", other, hr.Chebyshev())], public=True, runs=3)
    with pytest.raises(hr.PlanError, match="another tree"):
        simulate(counts, [IndependentNoise(other)], public=True, runs=3)


def test_a_tree_whose_cells_cannot_be_numbered_is_refused():
    axes = [fixed_axis(n, 40_000, columns=[n]) for n in "abcde"]
    nothing = np.empty(0, dtype=np.int64)
    counts = hr.Counts.from_leaves(hr.Tree(axes), (nothing.astype(np.int32),) * 5, nothing)
    plan = plain_plan(counts.tree, budget=hr.Rho(1))
    with pytest.raises(hr.TableError, match=r"2\*\*62"):
        simulate(counts, [Setting("x", plan, hr.Chebyshev())], public=True, runs=3)


def test_an_empty_table_has_no_missed_cells():
    tree = hr.Tree([fixed_axis("a", 3, 4)])
    nothing = np.empty(0, dtype=np.int64)
    counts = hr.Counts.from_leaves(tree, (nothing.astype(np.int32),), nothing)
    plan = plain_plan(tree, budget=hr.Rho(100))
    errors = simulate(counts, [Setting("x", plan, hr.Chebyshev())], public=True, runs=3)
    assert errors["false_negative_rate"].sum() == 0
    assert errors["total_variation"].is_between(0, 1).all()
    assert errors[CLASS_NAMES[0]].null_count() == len(errors)


def test_the_settings_of_the_papers_are_theirs():
    tree = hr.Tree([fixed_axis("a", 3, 4, 5)])
    paper = boninsegna(tree, hr.EpsilonDelta(1, "1e-8"), hr.Replace()).plan
    rho = (np.sqrt(1 + np.log(1e8)) - np.sqrt(np.log(1e8))) ** 2
    assert [float(d.mechanism.sigma2) for d in paper.depths[1:]] == pytest.approx([3 / rho] * 3)
    assert isinstance(paper.measure, hr.Survivors)
    with pytest.raises(hr.BudgetError, match="no pure epsilon"):
        boninsegna(tree, hr.Epsilon(1), hr.Replace())
    own = ko(tree, hr.EpsilonDelta(1, "1e-8"), hr.AddRemove(), hr.Uniform()).plan
    assert {d.mechanism.scale for d in own.depths} == {Fraction(4)}
    shares = [
        float(d.share)
        for d in ko(tree, hr.Epsilon(1), hr.Replace(), hr.Optimal(objective="cells")).plan.depths[
            1:
        ]
    ]
    assert shares == pytest.approx(np.cbrt([3, 12, 60]) / np.cbrt([3, 12, 60]).sum(), abs=2e-4)
    with pytest.raises(hr.BudgetError, match="takes epsilon alone"):
        ko(tree, hr.Rho(1), hr.Replace(), hr.Uniform())


def test_ko_clips_noisy_counts_before_projecting():
    clipped = ko(hr.Tree([fixed_axis("a", 3)]), hr.Epsilon(1), hr.Replace(), hr.Uniform()).estimator
    noisy, start, totals = np.array([-9, 5, 8]), np.array([0, 3]), np.array([19])
    assert clipped.project(noisy, start, totals).tolist() == [2, 7, 10]
    assert hr.Euclidean().project(noisy, start, totals).tolist() == [0, 8, 11]
    assert clipped.to_dict() == {"method": "clipped-euclidean"}


def test_a_stability_histogram_of_added_records_is_run_at_twice_the_budget():
    budget = hr.EpsilonDelta(1, "1e-8")
    assert StabilityHistogram(budget, hr.Replace()).for_one_replaced() == budget
    doubled = StabilityHistogram(budget, hr.AddRemove()).for_one_replaced()
    assert doubled == hr.EpsilonDelta(2, "2e-8")
    with pytest.raises(hr.BudgetError, match="epsilon with delta"):
        StabilityHistogram(hr.Rho(1), hr.Replace())
    with pytest.raises(hr.BudgetError, match="one record alone"):
        StabilityHistogram(budget, hr.AddRemove(2))


def test_independent_noise_repeats_single_children_and_needs_all_other_depths():
    frame = pl.DataFrame({"level1": ["x", "y"], "level2": ["x1", "y1"], "level3": ["x2", "y2"]})
    tree = hr.Tree([hr.Axis.from_frame("a", frame, ["level1", "level2", "level3"])])
    counts = all_leaves(tree, np.array([50, 70]))
    plan = plain_plan(tree, budget=hr.Rho(1))
    found = dict(IndependentNoise(plan).released(counts, seeded_bits(0)))
    assert found[3,].values.tolist() == found[2,].values.tolist() == found[1,].values.tolist()
    gap = plain_plan(
        hr.Tree([fixed_axis("a", 3, 4)]), budget=hr.Rho(1), allocation=hr.Shares([1, 0, 0][::-1])
    )
    with pytest.raises(hr.PlanError, match="needs a measurement of 'total'"):
        IndependentNoise(gap)


def test_running_sums_are_no_independent_noise_but_can_be_simulated():
    tree = hr.Tree([fixed_axis("a", 64)])
    plan = plain_plan(tree, budget=hr.Rho(1), neighbours=hr.Replace(), measure=hr.RunningSums())
    with pytest.raises(hr.PlanError, match="needs a measurement of 'level1'"):
        IndependentNoise(plan)
    counts = hr.Counts.from_leaves(
        tree, (np.arange(64, dtype=np.int32),), np.arange(64, dtype=np.int64)
    )
    errors = simulate(counts, [Setting("sums", plan, hr.Isotonic())], public=True, runs=3)
    assert errors["measure"].unique().to_list() == ["running-sums"]
    assert 0 < errors["cumulative_rmse"][1] < 10


def test_what_lays_out_too_many_leaves_is_refused():
    tree = hr.Tree([fixed_axis(n, 9000, columns=[n]) for n in "ab"])
    with pytest.raises(hr.TableError, match="81,000,000 cells"):
        LeafNoise(tree, hr.Rho(1), hr.AddRemove(), hr.DiscreteGaussian)
    with pytest.raises(hr.TableError, match="81,000,000 cells"):
        IndependentNoise(plain_plan(tree, budget=hr.Rho(1)))


def test_a_table_of_a_metric_marks_the_least_of_each_cuboid(counts, settings):
    errors = simulate(counts, settings, public=True, runs=3)
    assert set(WORDS) == set(METRICS)
    for metric in METRICS:
        rows = metric_rows(errors, metric)
        assert len(rows) == len(settings) + 1
        assert {len(row) for row in rows} == {len(rows[0])}
    rows = metric_rows(errors, "rmse")
    last = errors.filter(pl.col("depth") == counts.tree.depth)
    marked = [row[1] for row in rows[1:] if row[-1].endswith("*")]
    assert marked == [last.sort("rmse")["setting"][0]]


def test_a_picture_of_a_simulation_is_drawn(counts, settings, tmp_path):
    plan = settings[0].plan
    given = [Setting(f"s{i}", plan, hr.Chebyshev()) for i in range(31)]
    errors = simulate(counts, [*given, *settings[5:]], public=True, runs=3)
    picture_of_simulation(errors, tmp_path / "e.svg", words=TableWords(title="title"))
    drawn = (tmp_path / "e.svg").read_bytes()
    assert drawn.startswith(b"<?xml")
    assert b"stability histogram" in drawn
    with pytest.raises(hr.ReleaseError, match="cannot write the picture"):
        picture_of_simulation(errors, tmp_path / "e.docx")


TWO_BY_TWO = [*zip(METRICS[1::2], METRICS[::2], strict=False), (METRICS[-1], METRICS[-1])]


@pytest.mark.parametrize("metrics", TWO_BY_TWO)
@pytest.mark.sweep(4)
def test_a_picture_shows_the_metrics_that_are_asked_for(counts, settings, tmp_path, metrics):
    """In whatever order, also if one is asked for twice."""
    errors = simulate(counts, settings[:2], public=True, runs=3)
    picture_of_simulation(errors, tmp_path / "e.svg", metrics=metrics)
    drawn = (tmp_path / "e.svg").read_text()
    assert [name for name in METRICS if WORDS[name] in drawn] == sorted(
        {*metrics}, key=METRICS.index
    )


def test_every_metric_is_asked_for_in_some_picture():
    assert {name for metrics in TWO_BY_TWO for name in metrics} == {*METRICS}


def test_a_picture_of_errors_never_goes_into_a_release(counts, settings, tmp_path):
    released = hr.release(counts, settings[0].plan)
    released.write(tmp_path / "out")
    errors, expected = error_by_cuboid(counts, released), hr.forecast(released.plan)
    with pytest.raises(hr.ReleaseError, match=r"the picture .* lies within the release"):
        picture_of_errors(
            released.plan, errors, tmp_path / "out" / "e.png", expected=expected, covered={}
        )
    assert not (tmp_path / "out" / "e.png").exists()
