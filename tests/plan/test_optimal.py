"""The optimal allocation: shares of real plans."""

import time
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.plan.allocation.allocation import Relative, importances, rounded_shares
from hedgerow.plan.allocation.means import Along
from hedgerow.plan.allocation.objectives import Total
from hedgerow.plan.allocation.optimal import Optimal, levels_of
from hedgerow.plan.allocation.optimum import least
from hedgerow.plan.prior import Prior
from tests.made import fixed_axis, fixed_tree, problem_of, random_counts

TREE = hr.Tree([fixed_axis("geo", 4, 5, 6)])
RHO = hr.Rho("1/2")


def problem(tree=TREE, budget=RHO, **options):
    return problem_of(tree, budget, **options)


def prior_of(tree=TREE, seed=0, filled=0.4):
    return Prior(random_counts(np.random.default_rng(seed), tree, filled), public=True)


def floats(shares):
    return [float(share) for share in shares]


LAPLACE = problem(budget=hr.Epsilon(1))
PROBLEMS = [problem(), LAPLACE, problem(budget=hr.EpsilonDelta("1", "1e-10"))]
KINDS = ["rho", "epsilon", "epsilon-delta"]


@pytest.mark.parametrize("given", PROBLEMS, ids=KINDS)
@pytest.mark.parametrize("prior", [None, prior_of()], ids=["large", "prior"])
def test_shares_are_multiples_of_a_ten_thousandth_that_sum_to_one(given, prior):
    shares = Optimal(prior=prior, objective="cells").shares(given)
    assert sum(shares) == 1
    assert all((share * 10_000).denominator == 1 and share > 0 for share in shares)
    assert list(shares) == sorted(shares)


@pytest.mark.parametrize(("given", "power"), [(PROBLEMS[0], 1 / 2), (LAPLACE, 1 / 3)])
def test_without_a_prior_shares_follow_the_numbers_of_nodes(given, power):
    importance = [3, 1, 2, 0.5]
    expected = (np.array(importance) * np.array([1, 4, 20, 120])) ** power
    shares = Optimal(importance=importance, objective="cells").shares(given)
    assert floats(shares) == pytest.approx(expected / expected.sum(), abs=1e-4)


def test_the_total_counts_less_where_replacing_moves_it_by_half_of_what_moves_elsewhere():
    who = hr.Replace(3, exactly=False)
    shares = floats(Optimal(objective="cells").shares(problem(neighbours=who)))
    assert shares[1] / shares[0] == pytest.approx((4 * 18 / 9) ** 0.5, rel=5e-3)
    assert shares[2] / shares[1] == pytest.approx(5**0.5, rel=1e-3)


def test_laplace_noise_of_a_level_grows_with_the_sum_of_the_shifts_there():
    given = problem(budget=hr.Epsilon(1), neighbours=hr.Replace(2, exactly=False))
    expected = (np.array([1, 4, 20, 120]) * np.array([2, 4, 4, 4]) ** 2) ** (1 / 3)
    assert floats(Optimal(objective="cells").shares(given)) == pytest.approx(
        expected / expected.sum(), abs=1e-4
    )
    _, levels = levels_of(given, None, prior_of())
    assert [level.sensitivity for level in levels] == [2, 4, 4, 4]


def test_a_plan_takes_the_shares_and_names_the_allocation():
    plan = hr.make_plan(TREE, budget=RHO, allocation=Optimal(prior=prior_of(), objective="cells"))
    assert plan.allocation == "optimal"
    assert plan.shares == Optimal(prior=prior_of(), objective="cells").shares(
        problem(measure=hr.Survivors())
    )
    assert plan.guarantee.rho == Fraction(1, 2)


def test_an_epsilon_delta_budget_is_shared_as_the_rho_it_allows():
    given = problem(budget=hr.EpsilonDelta("1", "1e-10"))
    prior = prior_of()
    shares = Optimal(prior=prior, objective="cells").shares(given)
    plan = hr.make_plan(
        TREE, budget=given.budget, allocation=Optimal(prior=prior, objective="cells")
    )
    same = Optimal(prior=prior, objective="cells").shares(
        problem(budget=hr.Rho(plan.guarantee.rho))
    )
    assert floats(shares) == pytest.approx(floats(same), abs=1.01e-4)


@given(st.integers(0, 1000), st.floats(1e-3, 1e3))
def test_a_common_factor_of_importances_changes_nothing(seed, factor):
    importance = np.random.default_rng(seed).uniform(0.1, 5, 4)
    given = problem()
    one = Optimal(importance=list(importance), objective="cells").shares(given)
    other = Optimal(importance=list(importance * factor), objective="cells").shares(given)
    assert floats(one) == pytest.approx(floats(other), abs=1.01e-4)


def test_importances_by_name_leave_the_others_at_one():
    by_name = Optimal(importance={"level2": 5}, objective="cells").shares(problem())
    assert by_name == Optimal(importance=[1, 1, 5, 1], objective="cells").shares(problem())


def test_a_level_of_no_importance_stays_unmeasured():
    shares = Optimal(importance=[1, 0, 1, 1], prior=prior_of(), objective="cells").shares(problem())
    assert shares[1] is None
    assert sum(share for share in shares if share) == 1
    plan = hr.make_plan(
        TREE, budget=RHO, allocation=Optimal(importance={"level1": 0}, objective="cells")
    )
    assert [what.kind for what in plan.depths].count("unmeasured") == 1


def test_relative_errors_without_a_prior_weigh_by_the_square_of_the_nodes():
    sizes = np.array([1.0, 4, 20, 120])
    shares = Optimal(importance=Relative(), objective="cells").shares(problem())
    expected = sizes**1.5
    assert floats(shares) == pytest.approx(expected / expected.sum(), abs=1.1e-4)


def test_levels_that_matter_alike_share_equally_where_each_noisy_count_is_meant():
    """Σ_ℓ of mean variances: w n = 1 at every level, so that ρ_ℓ ∝ (w n)^(1/2) is constant."""
    given = problem()
    assert (
        Optimal(importance=hr.PerLevel(), objective="cells").shares(given) == (Fraction(1, 4),) * 4
    )
    numbers = [1 / n for n in (1, 4, 20, 120)]
    for objective in ("cells", "released"):
        named, numbered = (
            Optimal(importance=importance, objective=objective).shares(given)
            for importance in (hr.PerLevel(), numbers)
        )
        assert named == numbered


def test_estimates_of_levels_that_matter_alike_have_the_least_sum_of_mean_errors():
    given = problem(measure=hr.All())
    sums = {}
    for name, importance in (("levels", hr.PerLevel()), ("cells", None)):
        allocation = Optimal(importance=importance, objective="released")
        plan = hr.make_plan(TREE, budget=RHO, allocation=allocation, measure=given.measure)
        sums[name] = (hr.forecast(plan)["rmse"] ** 2).sum()
    assert sums["levels"] < 0.95 * sums["cells"]


def test_relative_errors_with_a_prior_weigh_each_cell_by_its_count():
    prior = prior_of()
    _, levels = levels_of(problem(), Relative(), prior)
    values, times = prior.values(3, 120)
    assert levels[3].weights == pytest.approx(times / np.maximum(values, 1) ** 2)
    means = importances(problem(), Relative(), prior)
    assert means[0] == pytest.approx(1 / prior.counts.total**2)
    assert means[3] == pytest.approx(levels[3].weights.sum() / 120)


def test_empty_cells_of_a_prior_take_budget_from_their_level():
    leaves = np.arange(120, dtype=np.int32)
    full = hr.Counts.from_leaves(TREE, (leaves,), np.full(120, 10**6))
    empty = hr.Counts.from_leaves(TREE, (leaves[:1],), np.array([120 * 10**6]))
    of_full, of_empty = (
        floats(Optimal(prior=Prior(counts, public=True), objective="cells").shares(problem()))
        for counts in (full, empty)
    )
    assert of_full == pytest.approx(
        floats(Optimal(objective="cells").shares(problem())), abs=1.01e-4
    )
    halved = np.array([1, 4 * 0.625, 20 * 0.525, 120 * (0.5 + 1 / 240)]) ** 0.5
    assert of_empty == pytest.approx(halved / halved.sum(), abs=3e-3)
    assert of_empty[3] < of_full[3] - 0.01


@pytest.mark.parametrize("given", PROBLEMS[:2], ids=KINDS[:2])
def test_the_error_after_estimation_has_a_solver_of_its_own(given):
    shares = Optimal(objective="released", importance=[1, 2, 1, 1]).shares(given)
    along = Along.of(given)

    def released(importance):
        return least(along, Total(along.costs(importance)), along.starts(importance)).shares

    expected = released(np.array([1, 2, 1, 1]))
    assert [float(share or 0) for share in shares] == pytest.approx(expected, abs=2e-4)
    relative = Optimal(objective="released", importance=Relative()).shares(given)
    assert relative == rounded_shares(released(np.array([1, 16, 400, 14400])))


def test_a_budget_with_which_no_count_is_wrong_is_still_shared():
    shares = Optimal(prior=prior_of(), objective="cells").shares(problem(budget=hr.Rho(10**6)))
    assert sum(shares) == 1
    assert min(shares) > Fraction(1, 10)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda s: sum(s) > 1e-6))
def test_rounded_shares_sum_to_one_and_stay_close(shares):
    total = sum(shares)
    rounded = rounded_shares(shares)
    assert sum(share for share in rounded if share) == 1
    for share, due in zip(rounded, shares, strict=True):
        assert (share is None) == (due == 0)
        assert share is None or share >= Fraction(1, 10_000)
        assert float(share or 0) == pytest.approx(due / total, abs=2e-4 + 0.005 * due / total)


@pytest.mark.parametrize(
    ("importance", "said"),
    [
        ([0, 0, 0, 0], "must not all be 0"),
        ([1, -1, 1, 1], "at least 0 and finite, got -1"),
        ([1, float("inf"), 1, 1], "finite"),
        ([1, float("nan"), 1, 1], "finite"),
        ({"level1": -2}, "got -2"),
        ("relative", "Relative"),
        ([1, 10**400, 1, 1], "an importance is too large"),
        ([1, Fraction(1, 10**400), 1, 1], "an importance is too near 0"),
        ([1, 1e51, 1, 1], r"must be 0, or from 1e-50 to 1e[+]50, got 1e[+]51"),
        ([1, 1e-51, 1, 1], "got 1e-51"),
        ([1, None, 1, 1], "an importance must be a number, got NoneType"),
        ({7: 1}, "name of an importance must be text, got 7"),
        ({"o": [1, 2], "level1": 3}, "by axis, or single numbers by cuboid, and not both"),
    ],
    ids=[
        "zeros",
        "negative",
        "infinite",
        "nan",
        "named",
        "text",
        "huge",
        "tiny",
        "large",
        "small",
        "none",
        "no-name",
        "both",
    ],
)
def test_importances_that_are_none_are_refused_when_made(importance, said):
    with pytest.raises(hr.PlanError, match=said):
        Optimal(importance=importance, objective="cells")
    if importance != "relative":
        with pytest.raises(hr.PlanError, match=said):
            hr.Fair(2, importance=importance)


@pytest.mark.parametrize(
    ("importance", "said"),
    [
        ([1, 1, 1], "needs as many importances, got 3"),
        ({"county": 1}, r"'county': the depths .* total, level1, level2, level3"),
        ([1, 1, 1, 0], "'level3' must be above 0"),
        ({"total": 0, "level1": 0, "level2": 0, "level3": 0}, "must not all be 0"),
    ],
    ids=["too-few", "unknown", "leaves", "zeros"],
)
def test_importances_that_do_not_fit_the_depths_are_refused(importance, said):
    with pytest.raises(hr.PlanError, match=said):
        Optimal(importance=importance, objective="cells").shares(problem())


def test_unknown_objectives_are_refused():
    with pytest.raises(hr.PlanError, match="cells, released or largest, got 'best'"):
        Optimal(objective="best")


@pytest.mark.parametrize("objective", ["cells", "released"])
def test_a_prior_with_other_level_names_is_refused(objective):
    other = hr.Tree([fixed_axis("geo", 4, 5, 6, 2)])
    allocation = Optimal(prior=prior_of(other), objective=objective)
    with pytest.raises(hr.PlanError, match=r"the levels of the release .* got .*level4"):
        allocation.shares(problem())


@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [(hr.Rho(1), hr.DiscreteLaplace), (hr.Epsilon(1), hr.DiscreteGaussian)],
    ids=["laplace", "gaussian"],
)
def test_a_budget_that_the_mechanism_cannot_spend_is_refused(budget, mechanism):
    with pytest.raises(hr.BudgetError, match=r"epsilon"):
        Optimal(objective="cells").shares(problem(budget=budget, mechanism=mechanism))


@pytest.mark.slow
def test_eight_million_prior_counts_are_shared_out_in_seconds():
    """Some 0.2 seconds, where the machine does nothing else."""
    tree = fixed_tree(o=(50, 57), d=(50, 57))
    rng = np.random.default_rng(0)
    counts = np.floor(rng.pareto(1.2, tree.leaves) * 20).clip(0, 10**9).astype(np.int64)
    leaves = tuple(code.astype(np.int32) for code in np.divmod(np.arange(tree.leaves), 50 * 57))
    prior = Prior(hr.Counts.from_leaves(tree, leaves, counts), public=True)
    given = problem(tree=tree, budget=hr.Rho("1/10"))
    assert sum(tree.nodes(t) for t in given.depths) > 8_000_000
    tracemalloc.start()
    begun = time.process_time()
    shares = Optimal(prior=prior, objective="cells").shares(given)
    seconds = time.process_time() - begun
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(shares) == 1
    assert seconds < 5
    assert memory < 10**9
