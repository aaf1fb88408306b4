"""Releases of running sums: priced for every neighbour, noisy as promised, checked from outside."""

import json
import shutil
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

from hedgerow.cli import run
from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.plan import ForDistribution, plan_distribution
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import BudgetError, EstimateError, PlanError, ReleaseError
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.tree.least_squares import LeastSquares
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.plan.allocation.allocation import Uniform
from hedgerow.plan.allocation.cheapest import cheapest
from hedgerow.plan.allocation.fairness import fairness
from hedgerow.plan.cuboids import All, RunningSums, Summed
from hedgerow.plan.forecast import forecast
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.privacy.use import read_use
from hedgerow.release.directory.check import check
from hedgerow.release.distribution.distribution import read_distribution
from hedgerow.release.distribution.release import (
    column_counts,
    distribution_in_memory,
    release_distribution,
)
from hedgerow.release.execution import release
from hedgerow.release.reestimate.reestimate import reestimate
from hedgerow.release.release import read_release
from hedgerow.tables.tree import Tree
from tests.made import plain_plan
from tests.release.forged import reseal

BINS = 40
RANGES = Ranges.equal_width("x", 0, BINS, BINS)
VALUES = np.random.default_rng(5).gamma(3, 5, 500).clip(0, BINS)
RELATIONS = {
    "replace": Replace(),
    "replace three": Replace(3),
    "replace up to three": Replace(3, exactly=False),
    "add or remove": AddRemove(),
    "add or remove up to two": AddRemove(2),
}


def planned(budget="1/10", who=None, ranges=RANGES):
    who = Replace() if who is None else who
    return plan_distribution(ranges, budget=Rho(budget), neighbours=who, measure=RunningSums())


def moves(who):
    """Changes of the bins that one unit can make: the extreme ones, and some between."""
    rng, m = np.random.default_rng(8), who.contributions
    for first in range(BINS):
        for last in range(BINS):
            change = np.zeros(BINS, dtype=np.int64)
            change[last] += m
            if who.name == "replace":
                change[first] -= m
            yield change
            if not who.total_is_public:
                yield np.eye(BINS, dtype=np.int64)[first] * m
    for _ in range(200):
        change = np.bincount(rng.integers(0, BINS, m), minlength=BINS)
        if who.name == "replace":
            change = change - np.bincount(rng.integers(0, BINS, m), minlength=BINS)
        yield change


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_unit_costs_more_than_the_plan_says_and_one_costs_as_much(relation):
    """ρ of a move is ‖W(x - x')‖²/(2σ²), by the sums themselves."""
    who = RELATIONS[relation]
    plan = planned(who=who)
    sigma2 = plan.depths[1].mechanism.parameter
    strategy = plan.strategy
    costs = []
    for change in moves(who):
        up, down = np.maximum(change, 0), np.maximum(-change, 0)
        gap = strategy.sums(up) - strategy.sums(down)
        costs.append(Fraction(int(gap @ gap)) / (2 * sigma2))
    assert max(costs) <= plan.guarantee.rho == Fraction(1, 10)
    if relation != "replace up to three":  # the larger of both kinds of change is charged there
        assert max(costs) == plan.guarantee.rho


def test_the_noise_of_the_sums_has_the_plans_variance():
    """α = 1e-6 on either side; the seed is pinned. Half the variance would be noticed."""
    plan = planned()
    counts = column_counts(plan, RANGES, VALUES)
    exact = plan.strategy.sums(np.bincount(RANGES.bin(VALUES), minlength=BINS))
    gaps = []
    for seed in range(100):
        made = distribution_in_memory(counts, plan, bits=seeded_bits(seed))
        gaps.append(made.release.content.measured[1,] - exact)
    scaled = np.square(gaps).sum() / float(plan.depths[1].mechanism.parameter)
    draws = np.size(gaps)
    assert chi2.ppf(1e-6, draws) < scaled < chi2.ppf(1 - 1e-6, draws)
    assert len(np.unique(gaps, axis=0)) == 100


def test_they_are_chosen_where_their_error_is_less_by_a_tenth():
    def chosen(bins, budget):
        ranges = Ranges.equal_width("x", 0, 1, bins)
        return plan_distribution(ranges, budget=budget).measure

    assert chosen(16, Rho(1)) == All()
    assert chosen(256, Rho(1)) == RunningSums()
    assert chosen(16, EpsilonDelta(1, "1e-8")) == All()
    assert chosen(64, EpsilonDelta(1, "1e-8")) == RunningSums()
    assert chosen(10_000, EpsilonDelta(1, "1e-8")) == RunningSums()
    assert chosen(1 << 17, Rho(1)) == All()
    assert chosen(256, Epsilon(1)) == All()


@pytest.mark.parametrize("who", [Replace(), AddRemove()], ids=lambda who: who.name)
def test_the_error_after_consistency_is_less_than_the_trees(who):
    """Means over 120 runs with pinned seeds; a tenth less in squared error is asked for."""
    ranges = Ranges.equal_width("x", 0, BINS, 256)
    truth = np.cumsum(np.bincount(ranges.bin(VALUES), minlength=256))
    squares = {}
    for measure in (All(), RunningSums()):
        plan = plan_distribution(ranges, budget=Rho("1/20"), neighbours=who, measure=measure)
        counts = column_counts(plan, ranges, VALUES)
        runs = [
            distribution_in_memory(counts, plan, bits=seeded_bits(seed)).cdf["count"].to_numpy()
            for seed in range(120)
        ]
        squares[measure] = np.mean((np.array(runs) - truth) ** 2)
    assert squares[RunningSums()] * 1.1 < squares[All()]


def test_the_forecast_is_the_error_of_the_estimates():
    for who in (Replace(), AddRemove()):
        plan = planned(who=who)
        counts = column_counts(plan, RANGES, VALUES)
        truth = np.bincount(RANGES.bin(VALUES), minlength=BINS)
        gaps = []
        for seed in range(200):
            found = distribution_in_memory(counts, plan, bits=seeded_bits(seed)).cumulative
            gaps.append(np.diff(found.estimate) - truth)
        told = forecast(plan)["rmse"][1]
        assert np.sqrt(np.mean(np.square(gaps))) == pytest.approx(told, rel=0.03)
        assert forecast(plan)["kind"].to_list()[1] == "summed"


@pytest.fixture(scope="module", params=["replace", "add or remove"])
def directory(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sums") / "out"
    plan = planned(who=RELATIONS[request.param])
    release(column_counts(plan, RANGES, VALUES), plan, estimator=Isotonic(), directory=folder)
    return folder


def test_a_directory_is_read_back_as_a_distribution(directory):
    made, found = read_distribution(directory), read_release(directory)
    assert isinstance(made.plan.depths[1], Summed)
    assert made.cdf["count"].to_numpy()[-1] == found.level(depth=0)["count"].sum()


def test_the_command_estimates_a_directory_its_own_way_where_no_method_is_named(
    directory, tmp_path, capsys
):
    place = tmp_path / "again"
    assert run(["estimate", str(directory), "--output", str(place)]) == 0
    assert "non-negative whole counts" in capsys.readouterr().out.lower()
    assert json.loads((place / "estimate.json").read_text())["method"] == {"method": "isotonic"}
    again = pl.read_parquet(place / "cuboid=1.parquet")
    assert again["count"].to_list() == again["released"].to_list()
    estimated = again.filter(pl.col("released") > 0)
    for column in ("estimate", "standard_error", "low", "high"):
        stated = pl.read_parquet(directory / "counts" / "cuboid=1.parquet")[column]
        assert estimated[column].to_list() == pytest.approx(stated.to_list()), column


@pytest.mark.parametrize("method", ["euclidean", "least-squares", "sparse"])
def test_the_command_says_which_method_suits_running_sums(directory, tmp_path, capsys, method):
    place = tmp_path / "again"
    assert run(["estimate", str(directory), "--method", method, "--output", str(place)]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f'by method = "isotonic" alone, got "{method}"' in said
    assert not place.exists()


def test_a_place_that_nobody_named_is_called_by_the_method_that_was_chosen(directory, tmp_path):
    folder = shutil.copytree(directory, tmp_path / "sums")
    assert run(["estimate", str(folder)]) == 0
    assert (tmp_path / "sums.isotonic" / "estimate.json").exists()


@pytest.mark.parametrize("what", ["a sum", "a count", "the scale", "the price"])
def test_a_change_is_found(directory, out, what):
    """The digests are made to fit, as a forger would."""
    folder = shutil.copytree(directory, out)
    name = "measurements/cuboid=1.parquet" if what == "a sum" else "counts/cuboid=1.parquet"
    column = "noisy_count" if what == "a sum" else "count"

    def change(manifest):
        if what in {"a sum", "a count"}:
            changed = pl.read_parquet(folder / name)
            many = 1 << 16 if what == "a sum" else 1
            row = pl.int_range(pl.len()) == len(changed) // 2
            changed.with_columns(pl.col(column) + many * row).write_parquet(folder / name)
        elif what == "the scale":
            manifest["plan"]["cuboids"][1]["scale"] *= 2
        else:
            use = manifest["plan"]["guarantee"]["uses"][0]
            use["squared_norm"] = str(int(use["squared_norm"]) // 2)

    reseal(folder, change)
    assert [finding for finding in check(folder) if finding.failure]


@pytest.mark.parametrize("method", [Chebyshev(), LeastSquares()], ids=lambda m: m.name)
def test_other_estimators_are_refused(directory, method):
    with pytest.raises(EstimateError, match=r"running sums are estimated by .* alone"):
        reestimate(directory, method)
    plan = planned()
    with pytest.raises(EstimateError, match="alone"):
        release(column_counts(plan, RANGES, VALUES), plan, estimator=method)


def test_what_no_running_sums_can_be_of_is_refused():
    def plan(axes, **options):
        given = {"budget": Rho(1), "neighbours": Replace(), "allocation": ForDistribution()}
        return plain_plan(Tree(axes), measure=RunningSums(), **(given | options))

    flat, deep = coded_axis(RANGES, (BINS,)), coded_axis(RANGES, (5, 8))
    wide = Ranges.equal_width("x", 0, 1, (1 << 16) + 1)
    with pytest.raises(PlanError, match="one axis with one level"):
        plan([deep])
    with pytest.raises(PlanError, match=r"2 to 2\^16 bins, got 65,537"):
        plan([coded_axis(wide, (wide.bins,))])
    with pytest.raises(PlanError, match="discrete Gaussian"):
        plan([flat], budget=Epsilon(1), mechanism=DiscreteLaplace)
    with pytest.raises(PlanError, match='"distribution"'):
        plan([flat], neighbours=AddRemove(), allocation=Uniform())


def test_an_empty_column_with_a_public_total_measures_nothing(out):
    given = {"low": 0, "high": 300, "bins": 300, "budget": Rho(1)}
    made = release_distribution([], directory=out, **given)
    assert made.plan.measure == RunningSums()
    assert len(made.release.content.measured[1,]) == 0
    assert not [finding for finding in check(out) if finding.failure]
    assert read_distribution(out).count_between(0, 5).high == 0


def test_the_profile_is_a_bound_by_the_norm():
    plan = planned()
    assert not plan.guarantee.is_worst
    assert plan.guarantee.delta_bounds(1)[0] == 0
    assert plan.guarantee.epsilon("1e-8") < 0.97 * plan.guarantee.zcdp_epsilon("1e-8")


@pytest.mark.parametrize("length", [0, 1, BINS - 1, BINS + 1, 30 * BINS])
def test_more_or_fewer_sums_than_bins_are_refused(directory, out, length):
    folder = shutil.copytree(directory, out)
    sums = pl.DataFrame({"noisy_count": np.arange(length)})
    sums.write_parquet(folder / "measurements" / "cuboid=1.parquet")
    with pytest.raises(ReleaseError, match=r"more or fewer|has room for 40"):
        read_distribution(folder)
    with pytest.raises(ReleaseError, match=r"more or fewer|has room for 40"):
        reestimate(folder, Isotonic())


def test_fairness_and_targets_are_refused_for_sums():
    plan = planned(who=AddRemove())
    with pytest.raises(PlanError, match="running sums"):
        fairness(plan)
    with pytest.raises(PlanError, match="running sums have none"):
        cheapest(plan.tree, target=100, measure=RunningSums())


@pytest.mark.parametrize("written", ["1e3x", "x", "1/2", "-4", "0"])
def test_a_damaged_norm_is_refused_in_a_sentence(written):
    described = planned().guarantee.to_dict()["uses"][0]
    with pytest.raises(BudgetError):
        read_use({**described, "squared_norm": written})
