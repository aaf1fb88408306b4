"""Allocations for the error after estimation, against dense matrices and generic solvers."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import hedgerow as hr
from hedgerow.plan.allocation import means, objectives, optimum
from hedgerow.plan.allocation.means import Along
from hedgerow.plan.allocation.objectives import Largest, Total
from hedgerow.plan.allocation.optimum import least, least_in_cases
from tests.estimate.dense_trees import dense_combined, dense_gradient, dense_projected
from tests.made import fixed_axis, problem_of, random_tree

RHO, EPSILON = hr.Rho(1), hr.Epsilon(1)
SEEDS = st.integers(0, 10_000)


def released_optimum(problem, importance):
    wanted = np.asarray(importance, dtype=float)
    along = Along.of(problem, importance=wanted)
    return least(along, Total(along.costs(wanted)), along.starts(wanted))


def released_shares(problem, importance):
    return released_optimum(problem, importance).shares.tolist()


def own_variances(problem, shares):
    """Continuous noise at a budget of 1: Δ₂²/(2s) or 2(Δ₁/s)²."""
    own = np.full(problem.tree.depth + 1, np.inf)
    own[: problem.depths[0]] = 0
    for t, share in zip(problem.depths, shares, strict=True):
        if isinstance(problem.budget, hr.Epsilon):
            l1 = float(problem.neighbours.l1_sensitivity(t))
            own[t] = 2 * (l1 / share) ** 2 if share else np.inf
        else:
            l2_squared = float(problem.neighbours.l2_sensitivity_squared(t))
            own[t] = l2_squared / (2 * share) if share else np.inf
    return own


def weighted_error(problem, importance, shares):
    dense = dense_combined if isinstance(problem.measure, hr.All) else dense_projected
    found = dense(problem.tree, own_variances(problem, shares))
    return sum(w * found[t].sum() for t, w in zip(problem.depths, importance, strict=True))


def some_problem(rng, what=None, **options):
    while True:
        tree = random_tree(rng, int(rng.integers(1, 3)), depth=2, widest=4)
        neighbours = (hr.AddRemove(), hr.Replace(3))[int(rng.integers(2))]
        problem = problem_of(tree, what, neighbours=neighbours, **options)
        if len(problem.depths) > 1:
            return problem, rng.uniform(0.1, 1, len(problem.depths))


@given(SEEDS)
@settings(max_examples=12)
def test_no_generic_solver_finds_less_error_under_rho(seed):
    problem, importance = some_problem(np.random.default_rng(seed))
    shares = released_shares(problem, importance)
    assert sum(shares) == pytest.approx(1, abs=1e-12)
    assert min(shares) >= 0
    count = len(shares)
    generic = minimize(
        lambda s: weighted_error(problem, importance, s / s.sum()),
        np.full(count, 1 / count),
        bounds=[(1e-9, 1)] * count,
    )
    found = weighted_error(problem, importance, shares)
    assert found <= generic.fun * (1 + 1e-9)


@given(SEEDS)
@settings(max_examples=20)
def test_dense_gradients_certify_the_minimum_under_rho(seed):
    """For a convex F: F - F* ≤ max(-∂F) - Σ s (-∂F)."""
    rng = np.random.default_rng(seed)
    problem = problem_of(random_tree(rng, 2, depth=2, widest=3))
    importance = rng.uniform(0, 1, len(problem.depths))
    assume(problem.depths[-1] == problem.tree.depth and len(problem.depths) > 1)
    shares = np.array(released_shares(problem, importance))
    weights = np.zeros(problem.tree.depth + 1)
    weights[list(problem.depths)] = importance
    slopes = dense_gradient(problem.tree, own_variances(problem, shares), weights)
    falls = np.array([-2 * slopes[t] for t in problem.depths])  # precision 2s where Δ₂ = 1
    assert falls.max() - shares @ falls <= 1e-8 * weighted_error(problem, importance, shares)


each_what = pytest.mark.parametrize("what", [RHO, EPSILON], ids=["rho", "epsilon"])


@given(SEEDS)
@settings(max_examples=30)
@each_what
def test_survivors_get_the_closed_form_of_separate_depths(what, seed):
    """F = Σ D/s or Σ D/s², where the oracle finds D from one depth's noise alone."""
    problem, importance = some_problem(
        np.random.default_rng(seed), what=what, measure=hr.Survivors()
    )
    count = len(problem.depths)
    own = own_variances(problem, np.full(count, 1.0))
    costs = []
    for t in problem.depths:
        alone = np.where(np.arange(len(own)) == t, own, 0.0)
        alone[np.isinf(own)] = np.inf
        found = dense_projected(problem.tree, alone)
        costs.append(
            sum(w * found[k].sum() for k, w in zip(problem.depths, importance, strict=True))
        )
    closed = np.array(costs) ** (1 / (3 if what is EPSILON else 2))
    assert released_shares(problem, importance) == pytest.approx(closed / closed.sum(), rel=1e-5)


@given(SEEDS)
@settings(max_examples=15)
@each_what
def test_survivors_leave_out_what_does_not_matter_where_that_costs_less(what, seed):
    """Of every choice of depths that holds those that matter the closed form, by dense matrices."""
    rng = np.random.default_rng(seed)
    problem, importance = some_problem(rng, what=what, measure=hr.Survivors())
    importance *= rng.random(len(importance)) < 0.5
    assume(importance.any())
    count, power = len(importance), 2 if what is EPSILON else 1
    needed, costs = importance[:-1] > 0, {}
    for chosen in product([False, True], repeat=count - 1):
        if (needed <= chosen).all():
            kept, terms = np.append(chosen, True), []
            for place in np.flatnonzero(kept):  # with noise at one depth alone, or nearly so
                shares = np.where(np.arange(count) == place, 1e-3, kept * 1.0)
                terms.append(weighted_error(problem, importance, shares))
            own = weighted_error(problem, importance, kept * 1.0)
            each = np.maximum(np.array(terms) - own, 0) / (1e3**power - 1)
            costs[chosen] = (each ** (1 / (power + 1))).sum() ** (power + 1)
    found = released_optimum(problem, importance)
    reached = weighted_error(problem, importance, found.shares)
    assert reached == pytest.approx(min(costs.values()), rel=1e-4)
    assert found.gap <= 1e-5


def test_survivors_keep_a_depth_below_which_too_many_cells_would_be_measured(monkeypatch):
    problem = problem_of(hr.Tree([fixed_axis("geo", 2, 2, 2, 2)]), EPSILON, measure=hr.Survivors())
    assert np.flatnonzero(released_shares(problem, [0, 0, 0, 0, 1])).tolist() == [4]
    for most, kept in ((15, [3, 4]), (7, [2, 3, 4]), (1, [0, 1, 2, 3, 4])):
        monkeypatch.setattr(means, "MOST_WHOLE", most)
        assert np.flatnonzero(released_shares(problem, [0, 0, 0, 0, 1])).tolist() == kept
    monkeypatch.undo()
    monkeypatch.setattr(means, "MOST_TRIED", 3)
    assert released_optimum(problem, [0, 0, 0, 0, 1]).unproved == "survivors"


each_measure = pytest.mark.parametrize(
    "measure", [hr.All(), hr.Survivors()], ids=["all", "survivors"]
)


@given(SEEDS)
@settings(max_examples=8)
@each_measure
@each_what
@pytest.mark.sweep(2)
def test_where_units_come_go_or_move_no_shares_have_less_error_for_the_dearer_case(
    what, measure, seed
):
    """A record that comes or goes costs half of what one costs that moves, but at the total."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(1, 3)), depth=2, widest=4)
    problem = problem_of(tree, what, measure=measure, neighbours=hr.Replace(2, exactly=False))
    importance, power = rng.uniform(0.1, 1, len(problem.depths)), 2 if what is EPSILON else 1
    assume(problem.depths[0] == 0 and len(importance) > 1)
    along = Along.of(problem)
    objective = Total(along.costs(importance))
    found = least_in_cases(along, objective, importance, problem.cases)

    def error(shares):
        dearer = max(1 - shares[0], (1 + shares[0]) / 2)
        return dearer**power * weighted_error(problem, importance / importance.max(), shares)

    assert found.value == pytest.approx(error(found.shares), rel=1e-6)
    assert found.value <= error(released_optimum(problem, importance).shares) * (1 + 1e-9)
    if not found.unproved:
        assert found.least == pytest.approx(found.value, rel=1e-6)
        for _ in range(20):
            moved = found.shares * np.exp(rng.normal(0, rng.choice([0.01, 1]), len(importance)))
            assert error(moved / moved.sum()) >= found.value * (1 - 1e-9)


@given(SEEDS)
@settings(max_examples=8)
def test_no_shares_of_a_fine_grid_have_less_error_under_epsilon(seed):
    rng = np.random.default_rng(seed)
    tree = hr.Tree([fixed_axis("geo", int(rng.integers(2, 6)), int(rng.integers(2, 4)))])
    problem, importance = problem_of(tree, EPSILON), rng.uniform(0, 1, 3)
    found = weighted_error(problem, importance, released_shares(problem, importance))
    for a, b in product(np.arange(0, 1, 0.05), repeat=2):
        if a + b < 0.999:
            assert found <= weighted_error(problem, importance, (a, b, 1 - a - b)) * (1 + 1e-9)


def test_under_epsilon_depths_that_do_not_pay_are_left_unmeasured():
    """Two halves of a budget buy a quarter of the weight each, so few depths are worth it."""
    tree = hr.Tree([fixed_axis("geo", 2, 2, 2, 2)])
    shares = released_shares(problem_of(tree, EPSILON), [1] * 5)
    assert 0 in shares
    assert shares[-1] > 0.5


def test_every_choice_of_depths_is_tried_for_up_to_six_of_them():
    problem = problem_of(hr.Tree([fixed_axis("geo", 2, 2, 2, 2, 2)]), EPSILON)
    starts = {tuple(start > 0) for start in Along.of(problem).starts(np.ones(6))}
    assert len(starts) == 2**5


def compared(problem, importance):
    """Shares and F: uniform, of program (6) for large counts, and of `released_shares`."""
    along, count = Along.of(problem), len(problem.depths)
    wanted = np.asarray(importance, dtype=float)
    shares = {
        "uniform": np.full(count, 1 / count),
        "program 6": along.apart(wanted),
        "released": np.array(released_shares(problem, importance)),
    }
    weights = along.costs(wanted)
    return shares, {name: along.total(each, weights)[0] for name, each in shares.items()}


def test_a_longer_chain_is_solved_too():
    problem = problem_of(hr.Tree([fixed_axis("geo", *[2] * 10)]))
    _, errors = compared(problem, [1] * 11)
    assert errors["released"] == min(errors.values())
    assert errors["uniform"] > 1.2 * errors["released"]
    _, errors = compared(problem_of(problem.tree, EPSILON), [1] * 11)
    assert errors["released"] == min(errors.values())


@given(SEEDS)
@settings(max_examples=8)
@each_measure
@each_what
def test_released_is_never_worse_than_other_objectives(what, measure, seed):
    problem, importance = some_problem(np.random.default_rng(seed), what=what, measure=measure)
    shares, errors = compared(problem, importance)
    for name, error in errors.items():
        expected = weighted_error(problem, importance / importance.max(), shares[name])
        assert error == pytest.approx(expected, rel=1e-9)
        assert error >= errors["released"] * (1 - 1e-9)


def test_program_6_for_large_counts_has_kos_closed_forms():
    tree = hr.Tree([fixed_axis("geo", 4, 4)])
    for what, power in ((RHO, 1 / 2), (EPSILON, 1 / 3)):
        shares = compared(problem_of(tree, what), [3, 1, 2])[0]["program 6"]
        closed = np.array([3 * 1, 1 * 4, 2 * 16]) ** power
        assert shares == pytest.approx(closed / closed.sum())


@each_measure
@each_what
def test_what_must_be_measured_keeps_a_share_however_unimportant(what, measure):
    problem = problem_of(hr.Tree([fixed_axis("geo", 4, 4)]), what, measure=measure)
    shares = released_shares(problem, [1, 0, 0])
    assert 0 < shares[-1] < 1e-4
    assert shares[0] > 0.99


def test_only_the_ratio_of_importances_matters():
    problem = problem_of(hr.Tree([fixed_axis("geo", 5, 3)]))
    assert released_shares(problem, [1, 2, 3]) == pytest.approx(
        released_shares(problem, [1e9, 2e9, 3e9]), rel=1e-9
    )


def test_a_single_depth_gets_the_whole_budget():
    problem = problem_of(hr.Tree([fixed_axis("geo", 7)]), neighbours=hr.Replace())
    assert released_shares(problem, [1]) == [1.0]


@given(SEEDS)
@settings(max_examples=12)
@each_measure
@each_what
def test_the_gap_is_closed_and_proved_where_the_error_is_convex(what, measure, seed):
    found = released_optimum(*some_problem(np.random.default_rng(seed), what=what, measure=measure))
    assert found.value == pytest.approx(found.least, rel=1e-9)
    is_convex = what is RHO or measure == hr.Survivors()
    assert found.unproved == ("" if is_convex else "power")


@pytest.mark.parametrize("sharpest", [1.0, 16.0, 256.0])
def test_no_shares_are_below_the_bound_however_little_the_search_has_done(monkeypatch, sharpest):
    monkeypatch.setattr(optimum, "_newton_step", lambda _, y, *__: np.zeros(len(y)))
    monkeypatch.setattr(objectives, "SHARPEST", sharpest)
    problem = problem_of(hr.Tree([fixed_axis("geo", 5, 3, 4)]))
    along = Along.of(problem)
    rng = np.random.default_rng(1)
    for objective in (Total(along.costs(np.ones(4))), Largest(np.array([1.0, 2.0, 0.5, 1.0]))):
        found = least(along, objective, along.starts(np.ones(4)))
        assert found.least < found.value * (1 - 1e-3)
        for shares in rng.dirichlet(np.ones(4), 300):
            assert objective.reached(along.variances(shares)[0]) >= found.least
