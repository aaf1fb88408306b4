"""Releases of running sums: priced for every neighbour, noisy as promised, checked from outside."""

import json
import shutil
from fractions import Fraction
from unittest import mock

import numpy as np
import polars as pl
import pytest
from scipy.stats import chi2

from hedgerow.cli import run
from hedgerow.cli.plan import cut_errors
from hedgerow.distribution.bins import coded_axis
from hedgerow.distribution.branching import numeric_axis
from hedgerow.distribution.plan import (
    ForDistribution,
    alternative_plan,
    mean_cut_variance,
    plan_distribution,
)
from hedgerow.distribution.ranges import Ranges
from hedgerow.errors import BudgetError, EstimateError, PlanError, ReleaseError
from hedgerow.estimate.families.chebyshev import Chebyshev
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.families.isotonic import Isotonic
from hedgerow.estimate.tree.least_squares import LeastSquares
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.plan.allocation.allocation import Uniform
from hedgerow.plan.allocation.cheapest import cheapest
from hedgerow.plan.allocation.fairness import fairness
from hedgerow.plan.criteria.criterion import Criterion
from hedgerow.plan.criteria.joint import errors_of
from hedgerow.plan.criteria.verdict import verdicts
from hedgerow.plan.cuboids import All, Invariant, RunningSums, Summed, Survivors
from hedgerow.plan.forecast import forecast
from hedgerow.plan.make import make_plan
from hedgerow.plan.workload import Chain
from hedgerow.privacy.budget import Epsilon, EpsilonDelta, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.privacy.use import read_use
from hedgerow.release.answers.joint_errors import cells_with_errors
from hedgerow.release.directory.check import check
from hedgerow.release.distribution.distribution import read_distribution
from hedgerow.release.distribution.places import Distributions
from hedgerow.release.distribution.release import (
    column_counts,
    distribution_in_memory,
    release_distribution,
)
from hedgerow.release.execution import in_memory, release
from hedgerow.release.reestimate.reestimate import reestimate
from hedgerow.release.release import read_release
from hedgerow.tables.axis import Axis
from hedgerow.tables.counts import Counts
from hedgerow.tables.tree import Tree, cell_numbers, nodes_along
from tests.estimate.dense import Dense
from tests.estimate.test_running_sums import matrix
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
        gap = strategy.sums(up[None])[0] - strategy.sums(down[None])[0]
        costs.append(Fraction(int(gap @ gap)) / (2 * sigma2))
    assert max(costs) <= plan.guarantee.rho == Fraction(1, 10)
    if relation != "replace up to three":  # the larger of both kinds of change is charged there
        assert max(costs) == plan.guarantee.rho


def test_the_noise_of_the_sums_has_the_plans_variance():
    """α = 1e-6 on either side; the seed is pinned. Half the variance would be noticed."""
    plan = planned()
    counts = column_counts(plan, RANGES, VALUES)
    exact = plan.strategy.sums(np.bincount(RANGES.bin(VALUES), minlength=BINS)[None])[0]
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
    with pytest.raises(PlanError, match="bins of an axis of one level"):
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


# --- rows of bins ---------------------------------------------------------------------------------

TRACTS = [2, 3, 1]
EDGES = 6
PUBLIC = {
    "no total": (AddRemove(), []),
    "the total": (Replace(), []),
    "the totals of tracts": (Replace(), [Invariant("place", "tract")]),
}


def tracts(factors=(EDGES,)):
    """Six tracts in three counties, and the bins of each."""
    number = np.repeat(np.arange(len(TRACTS)), TRACTS)
    rows = {"county": [f"c{i}" for i in number], "tract": [f"t{i}" for i in range(len(number))]}
    place = Axis.from_frame("place", pl.DataFrame(rows), ["county", "tract"])
    bins = coded_axis(Ranges.equal_width("x", 0, EDGES, EDGES), factors)
    return Tree([place, bins], ["place.county", "place.tract", *(f"x.{k}" for k in bins.levels)])


def plan_of_rows(public, budget="1/4", **more):
    who, invariants = PUBLIC[public]
    given = {"budget": Rho(budget), "neighbours": who, "invariants": invariants}
    return make_plan(tracts(), measure=RunningSums(), **given, **more)


def members(plan):
    """By depth 0/1 (nodes, leaves): which leaves, in tree order, a node sums."""
    leaves = np.eye(plan.tree.leaves)
    tract = leaves.reshape(-1, EDGES, plan.tree.leaves).sum(axis=1)
    county = np.add.reduceat(tract, np.cumsum([0, *TRACTS[:-1]]))
    return [county.sum(axis=0, keepdims=True), county, tract, leaves]


def best(plan):
    """Least squares of all leaves from all sums, by dense matrices."""
    sums, (total, _, tract, _) = matrix(EDGES), members(plan)
    measured = np.kron(np.eye(sum(TRACTS)), sums)
    known = {"no total": total[:0], "the total": total, "the totals of tracts": tract}
    exact = next(
        known[name] for name, each in PUBLIC.items() if plan_of_rows(name).hash == plan.hash
    )
    return Dense.of([(measured, float(plan.noise[plan.tree.finest].noise_variance)), (exact, 0.0)])


@pytest.fixture(scope="module", params=PUBLIC)
def areas(request):
    """A plan, a table without an empty tract, and a release."""
    plan = plan_of_rows(request.param)
    leaves = np.random.default_rng(7).integers(0, 30, plan.tree.leaves)
    codes = [*nodes_along(plan.tree)][-1][0]
    counts = Counts.from_leaves(plan.tree, codes, leaves)
    return plan, leaves, in_memory(counts, plan, estimator=Isotonic(), bits=seeded_bits(3))


def test_rows_cost_what_any_record_can_change(areas):
    """A record may come or go, or move to any bin of any tract whose total is not public."""
    plan, _, made = areas
    columns = np.kron(np.eye(sum(TRACTS), dtype=np.int64), matrix(EDGES)).T
    if plan.neighbours.name == "add-remove":
        changes = columns
    else:
        here, there = np.divmod(np.arange(len(columns) ** 2), len(columns))
        same = here // EDGES == there // EDGES
        kept = same if plan.invariants else np.ones_like(same)
        changes = columns[here[kept]] - columns[there[kept]]
    sigma2 = plan.noise[plan.tree.finest].parameter
    worst = Fraction(int((changes**2).sum(axis=1).max())) / (2 * sigma2)
    assert worst == plan.guarantee.rho == Fraction(1, 4)
    assert made.content.measured[plan.tree.finest].shape == (sum(TRACTS) * EDGES,)


def test_rows_are_estimated_as_dense_least_squares_does(areas):
    plan, leaves, made = areas
    dense, tree = best(plan), plan.tree
    told = len(dense.variances) - len(made.content.measured[tree.finest])
    exact = members(plan)[2 if told > 1 else 0][:told] @ leaves
    wanted = dense.gain @ [*made.content.measured[tree.finest], *exact]
    for depth, rows in enumerate(members(plan)):
        name = tree.cuboid_name(depth)
        frame = made.level(name) if plan.public_depth >= depth else made.level(name, all=True)
        assert frame["estimate"].to_numpy() == pytest.approx(rows @ wanted, abs=1e-8), name
        variance = frame["standard_error"].to_numpy() ** 2
        known = dense.variances_of(rows)
        assert variance == pytest.approx(known, abs=1e-9 * known.max() + 1e-12), name
        mean = forecast(plan)["rmse"][depth] ** 2
        assert mean == pytest.approx(known.mean(), rel=1e-9, abs=1e-12), name


def test_sums_of_rows_have_the_errors_of_dense_least_squares(areas):
    """Over areas that overlap, by bins of a county, and between any two edges of any place."""
    plan, leaves, made = areas
    dense, (_, county, tract, _) = best(plan), members(plan)
    some = pl.DataFrame({"tract": ["t0", "t3", "t3", "t5"], "area": ["a", "a", "b", "b"]})
    rows = np.array([tract[0] + tract[3], tract[3] + tract[5]])
    cells = np.eye(EDGES)[None, :, None, :] * county.reshape(len(TRACTS), 1, -1, EDGES)
    each = [
        (rows, made.areas(some, column="area")),
        (cells.reshape(-1, len(leaves)), made.cuboid(place="county", x="bin")),
    ]
    for sums, frame in each:
        known = dense.variances_of(sums)[: len(frame)]
        assert frame["standard_error"].to_numpy() ** 2 == pytest.approx(known, abs=1e-9)
    near = {"abs": 1e-8 * dense.variances_of(tract).max() + 1e-12}
    steps = np.tril(np.ones((EDGES + 1, EDGES)), -1)[:, None]
    for groups, where in ((tract, {"place": "tract"}), (rows, {"areas": some, "column": "area"})):
        own = Distributions.of(made.content, "x", where).cumulative
        every = groups.reshape(len(groups), 1, -1, EDGES)
        before = every * steps
        for share in (0.0, 0.5, 0.9):
            known = dense.variances_of((before - share * every).reshape(-1, len(leaves)))
            assert own.error.excess(share).ravel() == pytest.approx(known, **near)
        first, last = np.array([1, 2, 0]), np.array([3, 6, 6])
        known = dense.variances_of((before[:, last] - before[:, first]).reshape(-1, len(leaves)))
        assert own.error.between(first, last).ravel() == pytest.approx(known, **near)
        assert own.known.tolist() == [bool(plan.invariants)] * len(groups)


def test_criteria_have_the_joint_law_of_rows(areas):
    plan, _, _ = areas
    dense = best(plan).covariance
    for levels, rows in zip(plan.tree.chain, members(plan), strict=True):
        if plan.is_public(levels):
            continue
        errors = errors_of(plan, levels)
        drawn = errors.draws(40_000, 0)[levels]
        order = cell_numbers(plan.tree, levels, [*nodes_along(plan.tree)][sum(levels)][0])
        assert errors.numbers.tolist() == order.tolist()
        wanted = rows @ dense @ rows.T
        assert errors.variances == pytest.approx(np.diag(wanted), abs=1e-9 * wanted.max())
        assert np.abs(np.cov(drawn) - wanted).max() < 0.04 * wanted.max()  # 6 Monte Carlo errors


def test_released_rows_add_up_and_their_cumulative_counts_are_near(areas):
    plan, leaves, made = areas
    counts = [made.level(plan.tree.cuboid_name(t))["count"].sum() for t in range(4)]
    assert len(set(counts)) == 1
    if plan.public is not None:
        assert counts[0] == leaves.sum()
    off = made.level("place.tract × x.bin", all=True)["count"].to_numpy() - leaves
    assert np.abs(off).max() < 30  # σ is about 3


def test_a_directory_of_rows_is_checked_and_read_again(areas, out):
    plan, leaves, _ = areas
    codes = [*nodes_along(plan.tree)][-1][0]
    empty = leaves * (codes[0] != 3)  # of a tract, which is publicly empty where totals are public
    counts = Counts.from_leaves(plan.tree, codes, empty)
    release(counts, plan, estimator=Isotonic(), directory=out)
    assert not [finding for finding in check(out) if finding.failure]
    made, rows = read_release(out), sum(TRACTS) - bool(plan.invariants)
    assert len(made.content.measured[plan.tree.finest]) == rows * EDGES
    medians = made.quantiles("x", [0.5], place="tract")
    assert len(medians) == sum(TRACTS)
    again = reestimate(out, Isotonic()).frames
    assert all(frame["count"].equals(frame["released"]) for frame in again.values())


def test_a_public_total_of_nothing_leaves_all_rows_unmeasured(out):
    plan = plan_of_rows("the total")
    nothing = tuple(np.zeros(0, dtype=np.int32) for _ in plan.tree.axes)
    counts = Counts.from_leaves(plan.tree, nothing, np.zeros(0, dtype=np.int64))
    made = release(counts, plan, estimator=Isotonic(), directory=out)
    assert made.content.measured[plan.tree.finest].size == 0
    assert not [finding for finding in check(out) if finding.failure]
    assert made.cuboid(place="tract").is_empty()


def test_the_plan_says_how_counts_of_one_place_compare():
    """The other plan has the error that is said of it, and both are means over places."""
    sums = make_plan(tracts(), budget=Rho(1), measure=RunningSums())
    trees = alternative_plan(sums)
    assert trees.measure == All()
    assert alternative_plan(trees).hash == sums.hash
    for plan in (sums, trees):
        made = in_memory(
            Counts.from_leaves(plan.tree, tuple(np.zeros((2, 1), dtype=np.int32)), np.array([5])),
            plan,
            estimator=Isotonic() if plan is sums else Euclidean(),
            bits=seeded_bits(1),
        )
        errors = Distributions.of(made.content, "x", {"place": "tract"}).cumulative.error
        assert mean_cut_variance(plan) == pytest.approx(errors.excess(0.0)[:, 1:].mean())
    refined = make_plan(tracts((2, 3)), budget=Rho(1), measure=All())
    assert alternative_plan(refined).hash == sums.hash
    assert alternative_plan(make_plan(tracts(), budget=Rho(1), measure=Survivors())) is None
    assert alternative_plan(planned()) is None


def test_the_plan_says_nothing_of_errors_that_are_unknown():
    """Those of places of too many different subtrees; of running sums they are known."""
    sums = make_plan(tracts(), budget=Rho(1), measure=RunningSums())
    with mock.patch("hedgerow.plan.chain.MOST_LEAVES_FORECAST", 10):
        trees = make_plan(tracts((2, 3)), budget=Rho(1), measure=All(), allocation=Uniform())
        assert mean_cut_variance(trees) == np.inf
        assert not cut_errors(trees)
        assert cut_errors(sums).endswith("records, unrounded.")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tree": tracts((2, 3))}, "ends with the bins of an axis of one level, and 'x' has 2"),
        (
            {"neighbours": Replace(), "invariants": [Invariant("place", "county")]},
            "public counts of place.tract or of the total, got those of place.county",
        ),
        ({"allocation": Uniform()}, "measures the bins alone, which tell all above them"),
        (
            {"tree": Tree(tracts().axes, ["x.bin", "place.county", "place.tract"])},
            "ends with the bins of a numeric axis, and this one ends with 'place'",
        ),
    ],
)
def test_rows_that_cannot_be_measured_are_refused(given, words):
    given = {"tree": tracts(), "budget": Rho(1), "measure": RunningSums(), **given}
    with pytest.raises(PlanError, match=words):
        make_plan(**given)


def test_rows_beyond_what_is_held_are_refused():
    with (
        mock.patch("hedgerow.plan.cuboids.MOST_SUMMED_CELLS", 6 * EDGES - 1),
        pytest.raises(PlanError, match="of 6 rows of 6 bins would take too much time or memory"),
    ):
        plan_of_rows("no total")


def test_a_file_needs_no_branching_or_shares_for_rows(tmp_path, capsys):
    number = [0, 0, 1, 1, 2]
    rows = {"county": number, "tract": range(5), "x": [1.0, 3.0, 3.5, 0.2, 5.9]}
    pl.DataFrame(rows).write_csv(tmp_path / "people.csv")
    pl.DataFrame(rows).drop("x").write_csv(tmp_path / "areas.csv")
    (tmp_path / "rows.toml").write_text("""
[table]
source = "people.csv"
[[axis]]
name = "place"
levels = ["county", "tract"]
areas = "areas.csv"
[[axis]]
name = "x"
low = 0
high = 6
bins = 6
[tree]
refine = ["place.county", "place.tract", "x.bin"]
[privacy]
neighbours = "add-remove"
rho = 1
[estimate]
measure = "running-sums"
[workload]
cuboids = "chain"
[output]
directory = "out"
""")
    file = str(tmp_path / "rows.toml")
    assert run(["plan", file]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The count of values below an edge, in one place.tract: RMSE " in said
    assert 'with measure = "all", which measures counts of all levels above, too.' in said
    assert run(["release", file]) == 0
    capsys.readouterr()
    assert run(["distribution", str(tmp_path / "out"), "--by", "place=tract"]) == 0
    assert "x: 5 places" in capsys.readouterr().out


def test_what_is_asked_of_joint_errors_is_refused_of_every_depth(areas):
    _, _, made = areas
    with pytest.raises(ReleaseError, match="weighted running sums were measured"):
        cells_with_errors(made.content, made.plan.tree.finest)
    criterion = Criterion("x.bin", 9)
    (verdict,) = verdicts(plan_of_rows("no total", accept=[criterion]))
    assert "is no depth of the tree, and running sums tell of depths alone" in verdict.sentence


def test_the_page_says_whose_ranges_are_summed(areas, out):
    plan, leaves, _ = areas
    codes = [*nodes_along(plan.tree)][-1][0]
    counts = Counts.from_leaves(plan.tree, codes, leaves)
    release(counts, plan, estimator=Isotonic(), directory=out)
    words = "weighted running sums of the ranges of each <bdi>place tract</bdi>"
    assert words in (out / "report.html").read_text()


def test_areas_of_bins_have_no_errors(areas):
    _, _, made = areas
    bins = made.content.plan.tree.axes[1].labels[-1].to_list()
    few = pl.DataFrame({"x_bin": bins, "area": ["low"] * 3 + ["high"] * 3})
    with pytest.raises(ReleaseError, match="areas that are made of bins are unknown where running"):
        made.areas(few, column="area")


def test_other_axes_than_that_of_the_sums_have_the_errors_of_their_sums():
    """Of another numeric axis counts below an edge are sums of whole rows."""
    first, last = (coded_axis(Ranges.equal_width(name, 0, 4, 4), (4,)) for name in "xy")
    plan = make_plan(Tree([first, last], ["x.bin", "y.bin"]), budget=Rho(1), measure=RunningSums())
    leaves = np.arange(16, dtype=np.int32)
    counts = Counts.from_leaves(plan.tree, (leaves // 4, leaves % 4), np.full(16, 9))
    made = in_memory(counts, plan, estimator=Isotonic(), bits=seeded_bits(1))
    dense = Dense.of([(np.kron(np.eye(4), matrix(4)), plan.noise[1, 1].noise_variance)])
    for by, columns in (({}, np.ones((1, 4))), ({"y": "bin"}, np.eye(4))):
        error = Distributions.of(made.content, "x", {"by": by}).cumulative.error
        forms = [np.kron(np.arange(4) < b, of) for of in columns for b in range(5)]
        known = dense.variances_of(np.array(forms))
        assert error.excess(0.0).ravel() == pytest.approx(known, abs=1e-9)


@pytest.mark.parametrize("many", [49, 98, 103])
def test_a_public_total_is_known_however_many_rows_it_has(many):
    """(1 / m) m² is not m in floats."""
    place = Axis.from_frame("place", pl.DataFrame({"tract": range(many)}), ["tract"])
    bins = coded_axis(Ranges.equal_width("x", 0, 2, 2), (2,))
    plan = make_plan(
        Tree([place, bins]), budget=Rho(1), neighbours=Replace(), measure=RunningSums()
    )
    assert plan.design.of_rows(np.array([many])).cuts[0, -1] == 0
    assert plan.design.bytes_held > 2 * many


def test_the_other_plan_keeps_the_attribute_that_bins_are():
    place = Axis.from_frame("place", pl.DataFrame({"tract": ["a", "b"]}), ["tract"])
    bins = numeric_axis(Ranges.equal_width("x", 0, 4, 4), [4], attribute=True)
    plan = make_plan(Tree([place, bins]), budget=Rho(1), measure=RunningSums(), workload=Chain())
    assert alternative_plan(plan).measure == All()
