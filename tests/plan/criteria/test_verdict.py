"""Verdicts: the joint law of a plan's estimates, and what is proved of whole counts."""

from dataclasses import replace
from fractions import Fraction
from math import inf

import numpy as np
import polars as pl
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.noise.envelope import LaplaceEnvelope, NormalEnvelope
from hedgerow.plan.criteria.joint import errors_of
from hedgerow.plan.criteria.law import Alike, Bounded, Drawn, drawn_law
from hedgerow.plan.criteria.verdict import _settled
from hedgerow.plan.make import read_plan
from tests.acceptance.criteria import Planned
from tests.acceptance.random_plans import KINDS, drawn
from tests.made import all_leaves, fixed_tree, plain_plan

TREE = fixed_tree(place=(3, 4))
RUNS = 40_000


def judged(*criteria, tree=TREE, **options):
    options = {"budget": hr.Rho("1/50"), "measure": hr.All(), **options}
    return hr.verdicts(plain_plan(tree, accept=criteria, **options))


# --- closed forms -------------------------------------------------------------------------------


def test_one_estimate_is_normal():
    plan = plain_plan(TREE, budget=hr.Rho("1/50"), measure=hr.All())
    deviation = plan.design.mean_variance((0,)) ** 0.5
    (verdict,) = judged(hr.Criterion("total", 10, probability="0.9"))
    assert verdict.probability == pytest.approx(1 - 2 * stats.norm.sf(10 / deviation), rel=1e-12)
    assert verdict.reach == pytest.approx(10 / (stats.norm.isf(0.05) * deviation), rel=1e-6)
    assert verdict.budget_factor == pytest.approx(verdict.reach**-2)
    assert verdict.within == pytest.approx(10 / verdict.reach)


@pytest.mark.parametrize(
    ("mechanism", "budget", "law"),
    [
        (hr.DiscreteGaussian, hr.Rho("1/50"), stats.norm()),
        (hr.DiscreteLaplace, hr.Epsilon("1/5"), stats.laplace(scale=0.5**0.5)),
    ],
)
@pytest.mark.parametrize(("cells", "k"), [("1", 12), ("0.75", 9), ("0.7", 9)])
def test_of_noisy_counts_alone_the_number_that_keep_it_is_binomial(
    mechanism, budget, law, cells, k
):
    options = {"budget": budget, "mechanism": mechanism}
    workload = hr.Cuboids(["level2"], chain=False)
    (verdict,) = judged(hr.Criterion("level2", 12, cells=cells), workload=workload, **options)
    plan = plain_plan(TREE, workload=workload, measure=hr.All(), **options)
    ratio = 12 / plan.noise[2,].envelope.variance ** 0.5
    assert isinstance(verdict.law, Alike)
    chance = stats.binom.sf(k - 1, 12, 1 - 2 * law.sf(ratio))
    assert verdict.probability == pytest.approx(chance, rel=1e-9)
    kept = stats.binom.sf(k - 1, 12, 1 - 2 * law.sf(ratio / verdict.reach))
    assert kept == pytest.approx(0.95, rel=1e-6)
    assert verdict.probability_at(verdict.reach) == pytest.approx(0.95, rel=1e-6)


def test_a_bound_between_whole_numbers_is_that_which_the_nearest_whole_counts_keep():
    whole, more, most, next_whole = (
        each.probability for each in judged(*(hr.Criterion("total", w) for w in (
            10, Fraction(103, 10), Fraction(109, 10), Fraction(105, 10))))
    )  # fmt: skip
    assert whole < more < most == next_whole


# --- the joint law ------------------------------------------------------------------------------

JOINT = [
    "chain, several axes", "chain, unmeasured levels", "chain, only children",
    "chain, an invariant", "cube, two axes", "cube, any shares", "cube, an invariant",
    "named, a spine", "named, general", "named, two tables", "marginals", "nested attributes",
]  # fmt: skip


@pytest.mark.parametrize("kind", JOINT)
def test_drawn_errors_have_the_covariance_of_dense_least_squares(kind):
    """And variances stand at the numbers of their cells."""
    every = (drawn(kind, seed) for seed in range(20))
    made = next(each for each in every if each.plan.mechanism is hr.DiscreteGaussian)
    dense, compared = Planned(made), 0
    for levels in made.plan.levels:
        errors = errors_of(made.plan, levels)
        sums = dense.sums(levels)[errors.numbers]
        exact = dense.solutions(levels)[0].covariance_of(sums)
        assert np.broadcast_to(errors.variances, len(sums)) == pytest.approx(
            np.diag(exact), rel=1e-7, abs=1e-7 * max(1, exact.max())
        )
        if errors.draws is None:
            continue
        found = [*errors.draws(RUNS, 0).values()][-1]
        size = np.sqrt(np.outer(np.diag(exact), np.diag(exact))) + 1e-9
        assert np.abs(found @ found.T / RUNS - exact).max() < 7 * size.max() / RUNS**0.5
        compared += 1
    assert compared


def test_the_joint_law_is_that_of_multivariate_normal_draws():
    tree = fixed_tree(place=(4, 6), work=(3,))
    criterion = hr.Criterion("place.level1 × work.level1", 30, cells="0.9", probability="0.8")
    plan = plain_plan(tree, budget=hr.Rho("1/100"), measure=hr.All(), accept=[criterion],
                      workload=hr.Cube())  # fmt: skip
    (verdict,) = hr.verdicts(plan)
    levels = criterion.levels(tree)
    noise = [(k, w.mechanism.noise_variance) for k, w in plan.by_levels.items()]
    codes = np.indices(tree.sizes(tree.finest)).reshape(2, -1)
    sums = {
        k: (
            np.arange(tree.cells(k))[:, None]
            == np.ravel_multi_index(
                [a.ancestors(n)[c] for a, n, c in zip(tree.axes, k, codes, strict=True)],
                tree.sizes(k),
            )
        ).astype(float)
        for k in plan.levels
    }
    precision = sum(sums[k].T @ sums[k] / variance for k, variance in noise)
    covariance = sums[levels] @ np.linalg.inv(precision) @ sums[levels].T
    draws = stats.multivariate_normal(cov=covariance).rvs(200_000, random_state=5)
    third = np.sort(np.abs(draws), axis=1)[:, 10]  # 11 of 12 cells
    assert verdict.probability == pytest.approx((third <= 30).mean(), abs=0.005)
    assert 30 / verdict.reach == pytest.approx(np.quantile(third, 0.8), rel=0.006)
    alone = [hr.Criterion(criterion.cuboid, 30, cells=c) for c in ("1/12", "1/2", "1")]
    chances = [v.probability for v in judged(*alone, tree=tree, workload=hr.Cube())]
    assert chances == sorted(chances, reverse=True)


def test_draws_are_the_same_for_all_budgets_so_that_one_law_tells_all():
    wide, half = (
        judged(hr.Criterion("level2", 20, cells="0.75"), budget=hr.Rho(Fraction(1, n)))[0]
        for n in (200, 800)
    )
    assert half.reach == pytest.approx(wide.reach / 2, rel=1e-6)
    assert wide.probability_at(2.0) == pytest.approx(half.probability, abs=1e-4)


# --- laws ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("envelope", [NormalEnvelope(1.0), LaplaceEnvelope(1.0)])
def test_bounds_from_marginal_errors_are_below_what_holds_and_near_it_where_all_must_keep(envelope):
    ratio = np.array([envelope.quantile(0.01 / 20)])
    for least in (20, 19, 15):
        exact = Alike(20, least, envelope, float(ratio[0]))
        bound = Bounded(least, envelope, ratio, np.array([20]))
        assert bound.probability() <= exact.probability() + 1e-12
        assert bound.quantile(0.9) >= exact.quantile(0.9)
        assert bound.probability(bound.quantile(0.9) ** -1) == pytest.approx(0.9, rel=1e-5)
    if isinstance(envelope, NormalEnvelope):
        bound = Bounded(20, envelope, ratio, np.array([20]))
        assert bound.probability() == pytest.approx(0.99, abs=1e-3)


@pytest.mark.parametrize("envelope", [NormalEnvelope(1.0), LaplaceEnvelope(1.0)])
def test_the_chance_to_miss_inverts_the_quantile_and_the_chernoff_bound(envelope):
    for chance in (0.3, 1e-3, 1e-9):
        assert envelope.miss(np.array(envelope.quantile(chance))) == pytest.approx(chance)
        k = np.array(envelope.farthest(chance))
        assert envelope.miss_of_sums(k) <= chance * (1 + 1e-6)


def test_a_drawn_quantile_is_on_the_safe_side_and_as_near_as_is_asked():
    rng = np.random.default_rng(3)
    law = drawn_law(lambda many, _: np.abs(rng.normal(size=many)), 1, 0.95)
    assert 1.96 < law.quantile(0.95) < 1.96 * 1.008
    assert law.at(0.95, 1) / law.at(0.95, -1) - 1 <= 2 * 0.0015
    assert drawn_law(lambda many, _: np.ones(many), 1 << 25, 0.95) is None
    assert Drawn(np.arange(10.0)).quantile(0.95) == inf


# --- whole counts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    ["chain, one axis", "chain, several axes", "chain, unmeasured levels", "chain, only children"],
)
@pytest.mark.sweep(2)
def test_no_settled_count_is_off_by_more_than_its_bound(kind):
    compared = 0
    for seed in range(12):
        made = drawn(kind, seed)
        plan, dense = made.plan, Planned(made)
        exact = plan.public is not None
        if plan.mechanism is not hr.DiscreteGaussian:
            continue
        for run in range(6):
            release = made.release(bits=run)
            errors, counts = {}, {}
            for levels in plan.levels:
                frame = release.level(plan.tree.name_of(levels), all=True)
                number = dense.numbers(levels, frame)
                truth = np.bincount(
                    dense.cell(levels, made.counts.codes), made.counts.values, len(number)
                )[number]
                squares, level = errors_of(plan, levels).chain or (None, None)
                if squares is not None:
                    errors[level,] = (frame["estimate"].to_numpy() - truth)[:, None]
                    counts[level] = np.abs(frame["count"].to_numpy() - truth), squares
            if exact:
                errors[0,] = np.zeros((1, 1))
            for level, (off, squares) in counts.items():
                bound = _settled(squares, level, errors, 0 if exact else None)
                assert (off <= bound[:, 0] + 1e-6).all()
                compared += 1
    assert compared > 40


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sweep(4)
def test_a_total_that_keeps_whatever_its_estimate_keeps_is_the_nearest_whole_count(kind):
    made = drawn(kind, 2)
    plan = replace(made.plan, accept=(hr.Criterion("total", 5),))
    total = (0,) * len(plan.tree.axes)
    if total not in plan.by_levels or plan.is_public(total):
        return
    (verdict,) = hr.verdicts(plan)
    if verdict.settled != 1:
        assert verdict.kept != "yes"
        assert any(word in kind for word in ("survivors", "groups", "running sums"))
        return
    for run in range(4):
        with made.limits():
            frame = made.release(bits=run).level("total", all=True)
        assert abs(frame["count"][0] - max(0, frame["estimate"][0])) <= 0.5 + 1e-9


def test_whole_counts_keep_what_is_proved_and_there_is_no_verdict_where_nothing_is():
    tight, wide, total = judged(
        hr.Criterion("level2", 25), hr.Criterion("level2", 120), hr.Criterion("total", 20)
    )
    assert (tight.of_estimates, tight.kept) == ("yes", "unknown")
    assert 1 < tight.settled < 4
    assert "proved to keep" in tight.sentence
    assert (wide.of_estimates, wide.kept) == ("yes", "yes")
    assert (total.settled, total.kept) == (1.0, "yes")
    both = fixed_tree(place=(3, 4), work=(2,))
    criterion = hr.Criterion("place.level2", 120)
    (of_cube,) = judged(criterion, tree=both, workload=hr.Cube())
    assert (of_cube.of_estimates, of_cube.kept, of_cube.settled) == ("yes", "unknown", None)
    assert "no bound is known" in of_cube.sentence
    (missed,) = judged(hr.Criterion("level2", 3))
    assert missed.kept == missed.of_estimates == "no"
    assert "times the budget" in missed.sentence


# --- sizes --------------------------------------------------------------------------------------


def test_sizes_are_from_a_public_table_by_its_codes_or_an_expected_total():
    counts = all_leaves(TREE, [0, 0, 900, 100, *range(1, 9)])
    one = hr.Criterion("level2", hr.OfCount("1/10", least=100), sizes=hr.Prior(counts, public=True))
    (verdict,) = judged(one)
    assert verdict.cells == 2
    assert verdict.source == "a public table of 1,036 records"
    plan = plain_plan(TREE, budget=hr.Rho("1/50"), measure=hr.All(), accept=[one])
    small = [hr.Criterion("level2", 10, cells="1/12", probability="0.5")]
    assert verdict.probability < judged(*small)[0].probability  # of the one that keeps it best
    (evenly,) = judged(hr.Criterion("level1", hr.OfCount("1/10", least=1000), records=3000))
    assert evenly.source == "3,000 expected records, spread evenly"
    assert evenly.probability == judged(hr.Criterion("level1", 100))[0].probability
    (of_all,) = judged(hr.Criterion("level1", hr.OfRecords("1/30"), records=3000))
    assert of_all.probability == evenly.probability
    assert of_all.source == "3,000 expected records"
    sized = hr.verdicts(plan, sizes=lambda _: hr.Sizes(np.full(12, 150.0), "released counts"))
    assert (sized[0].cells, sized[0].source) == (12, "released counts")


def test_sizes_of_another_list_of_areas_are_found_by_code():
    codes = TREE.axes[0].labels[-1].to_list()
    areas = pl.DataFrame(
        {"level1": ["x", *TREE.axes[0].labels[0][:1]], "level2": ["new", codes[2]]}
    )
    axis = hr.Axis.from_frame("place", areas, ["level1", "level2"], columns=TREE.axes[0].columns)
    own = hr.Tree([axis])
    order = own.axes[0].labels[-1].to_list()
    prior = hr.Prior(all_leaves(own, [{"new": 70, codes[2]: 500}[c] for c in order]), public=True)
    criterion = hr.Criterion("level2", hr.OfCount("1/10", least=60), sizes=prior)
    (verdict,) = judged(criterion)
    assert verdict.cells == 1
    wide = plain_plan(TREE, budget=hr.Rho("1/50"), measure=hr.All()).design.mean_variance((2,))
    assert verdict.probability == pytest.approx(1 - 2 * stats.norm.sf(50 / wide**0.5), abs=2e-3)


@pytest.mark.parametrize(
    ("criterion", "options", "sentence"),
    [
        (hr.Criterion("level2", hr.OfCount("0.01", least=9)), {}, "needs to know how large counts"),
        (hr.Criterion("level2", hr.OfRecords("0.01")), {}, "needs to know how large counts"),
        (
            hr.Criterion("level2", hr.OfCount("0.01", least=900), records=1200),
            {},
            "no count is 900 or more in 1,200 expected records",
        ),
        (hr.Criterion("level2", 9), {"measure": hr.Survivors()}, "not measured in every cell"),
        (hr.Criterion("level1", 9), {"workload": hr.Cuboids(["level2"])}, "name it in [workload]"),
    ],
)
def test_a_criterion_that_no_budget_keeps_says_why(criterion, options, sentence):
    (verdict,) = judged(criterion, **options)
    assert (verdict.kept, verdict.reach, verdict.probability) == ("unknown", None, None)
    assert sentence in verdict.sentence
    plan = plain_plan(TREE, **{"budget": hr.Rho(1), "measure": hr.All(), **options},
                      accept=[criterion])  # fmt: skip
    with pytest.raises(hr.PlanError) as error:
        hr.least_budget(plan)
    assert sentence in str(error.value)


def test_public_counts_keep_any_criterion():
    (verdict,) = judged(hr.Criterion("total", 1), neighbours=hr.Replace())
    assert (verdict.kept, verdict.reach, verdict.sentence) == ("yes", inf, "Its counts are public.")
    plan = plain_plan(TREE, budget=hr.Rho(1), neighbours=hr.Replace(), accept=[verdict.criterion])
    with pytest.raises(hr.PlanError, match="any budget keeps it"):
        hr.least_budget(plan)


def test_a_plan_that_is_read_back_has_the_same_verdicts():
    plan = plain_plan(TREE, budget=hr.Rho("1/50"), measure=hr.All(),
                      accept=[hr.Criterion("level2", 20, cells="0.75")])  # fmt: skip
    again = read_plan(TREE, plan.to_dict())
    assert hr.verdicts(again) == hr.verdicts(plan)
    assert hr.least_budget(again) == hr.least_budget(plan)


# --- the least budget ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"budget": hr.Rho("1/50"), "allocation": hr.Optimal()},
        {"budget": hr.EpsilonDelta(3, "1e-8")},
        {"budget": hr.Epsilon("1/7"), "mechanism": hr.DiscreteLaplace},
    ],
)
def test_two_percent_less_than_the_least_budget_is_too_little(options):
    plan = plain_plan(TREE, measure=hr.All(), accept=[hr.Criterion("level2", 40, cells="0.9")],
                      **options)  # fmt: skip
    budget = hr.least_budget(plan)
    assert type(budget) is type(plan.budget)
    (name, *others) = budget.__slots__
    assert all(getattr(budget, other) == getattr(plan.budget, other) for other in others)
    amount = getattr(budget, name)
    assert float(amount) == float(f"{float(amount):.4g}")
    for part, kept in ((1, True), (Fraction(98, 100), False)):
        changed = {name: amount * part} | {o: getattr(budget, o) for o in others}
        at = plain_plan(TREE, measure=hr.All(), accept=plan.accept,
                        **options | {"budget": type(budget)(**changed)})  # fmt: skip
        assert (hr.verdicts(at)[0].reach >= 1) is kept


def test_a_plan_without_criteria_has_no_least_budget():
    with pytest.raises(hr.PlanError, match="no criterion"):
        hr.least_budget(plain_plan(TREE, budget=hr.Rho(1)))


def test_a_criterion_beyond_any_protection_is_refused():
    workload = hr.Cuboids(["level2"], chain=False)
    plan = plain_plan(TREE, budget=hr.Rho(1), measure=hr.All(), workload=workload,
                      accept=[hr.Criterion("level2", Fraction(1, 10**60))])  # fmt: skip
    with pytest.raises(hr.PlanError, match="nothing is protected"):
        hr.least_budget(plan)


def test_criteria_are_no_part_of_what_is_measured():
    plan = plain_plan(TREE, budget=hr.Rho(1), measure=hr.All())
    same = replace(plan, accept=(hr.Criterion("total", 5),))
    assert same.noise == plan.noise
    assert same.hash != plan.hash
