import math
import time
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from scipy.optimize import minimize

from hedgerow.distribution.branching import (
    AllRanges,
    Cdf,
    Design,
    Quantiles,
    best_branching,
    costs_of,
)
from hedgerow.distribution.branching_search import level_coefficients, mean_error
from hedgerow.errors import NoiseError, PlanError
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from studies.rameshwar.covering import covering_error
from studies.rameshwar.trees import trimmed_error
from tests.estimate.dense import Dense, indicators, of_cuts

MECHANISMS = [DiscreteLaplace, DiscreteGaussian]
SHARE_UNITS = 10_000
KEEN = {
    "cdf": Cdf(),
    "ranges": AllRanges(),
    "median": Quantiles(["1/2"]),
    "deciles": Quantiles([f"{i}/10" for i in range(1, 10)]),
}
POWER = {DiscreteLaplace: 2, DiscreteGaussian: 1}


def design_error(branching, shares, *, mechanism, objective=None):
    """The mean squared error of any factors with any shares; units as in `Design`."""
    Design(prod(branching), tuple(branching), tuple(shares), 0.0)
    costs = costs_of(mechanism, objective or Cdf())
    factors, coefficients = np.array(branching, dtype=np.int64), np.empty(len(branching))
    level_coefficients(factors, costs.ranges, costs.quantiles, coefficients)
    return float(mean_error(factors, coefficients, as_floats(shares), costs.power))


def as_floats(shares):
    return np.array([float(share) for share in shares])


def best_shares_for(branching, *, mechanism, objective=None):
    """The design with these factors and the best shares for them, over all their leaves."""
    factors = tuple(int(n) for n in branching)
    error, shares = costs_of(mechanism, objective or Cdf()).error(factors)
    if not np.isfinite(error):
        raise PlanError(f"with factors {list(factors)} a level is best left unmeasured; merge two")
    units = [max(1, round(share * SHARE_UNITS)) for share in shares.tolist()]
    units[int(np.argmax(shares))] += SHARE_UNITS - sum(units)
    exact = tuple(Fraction(unit, SHARE_UNITS) for unit in units)
    return Design(prod(factors), factors, exact, error)


def factorisations(number):
    """Every ordered way to write the number as a product of factors of at least 2."""
    if number == 1:
        yield ()
    for n in range(2, number + 1):
        if number % n == 0:
            for rest in factorisations(number // n):
                yield (n, *rest)


def levels_below(branching):
    return [prod(branching[i + 1 :]) for i in range(len(branching))]


def covariance_of_cuts(design, power):
    """Dense generalised least squares with a public total: covariance of the K cuts."""
    bins, blocks = np.arange(design.bins), [(np.ones((1, design.bins)), 0.0)]
    for share, leaves in zip(design.shares, levels_below(design.branching), strict=True):
        blocks.append((indicators(bins // leaves), float(share) ** -power))
    return of_cuts(Dense.of(blocks))[:-1, :-1]


def uneven(levels):
    weights = [Fraction(2 + 3 * i % 5) for i in range(levels)]
    return tuple(weight / sum(weights) for weight in weights)


TREES = [
    (24, (2, 3, 4)),
    (24, (4, 3, 2)),
    (7, (7,)),
    (17, (3, 2, 3)),
    (29, (3, 2, 5)),
    (11, (5, 3)),
]
TREES += [(31, (2,) * 5), (26, (3, 3, 3)), (28, (3, 3, 4))]


each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS)
each_tree = pytest.mark.parametrize("tree", TREES, ids=str)


@each_mechanism
@each_tree
def test_the_error_after_least_squares_is_that_of_the_dense_covariance(tree, mechanism):
    bins, branching = tree
    design = Design(bins, branching, uneven(len(branching)), 0.0)
    cuts = covariance_of_cuts(design, POWER[mechanism])
    assert trimmed_error(design, mechanism=mechanism) == pytest.approx(np.diag(cuts).mean())
    padded = Design(prod(branching), branching, design.shares, 0.0)
    cuts = covariance_of_cuts(padded, POWER[mechanism])
    variance = np.diag(cuts)
    found = design_error(branching, design.shares, mechanism=mechanism)
    assert found == pytest.approx(variance.mean())
    ranges = (variance[:, None] + variance[None] - 2 * cuts).mean()
    found = design_error(branching, design.shares, mechanism=mechanism, objective=AllRanges())
    assert found == pytest.approx(ranges)


@each_mechanism
@each_tree
def test_leaving_padded_bins_out_is_never_worse_at_any_cut(tree, mechanism):
    bins, branching = tree
    power = POWER[mechanism]
    trimmed = Design(bins, branching, uneven(len(branching)), 0.0)
    padded = Design(prod(branching), branching, trimmed.shares, 0.0)
    more = np.diag(covariance_of_cuts(padded, power))[:bins]
    assert (np.diag(covariance_of_cuts(trimmed, power)) <= more * (1 + 1e-9) + 1e-9).all()


def test_a_quantile_is_the_mean_over_the_cuts_in_the_child_where_it_lies():
    """The rank 0.3 of 10 · 4 leaves, entered anywhere: the mean over shifts of a child's width."""
    branching, shares = (10, 4), uneven(2)
    leaves = 4
    below = design_error((4,), [Fraction(1)], mechanism=DiscreteGaussian)
    top = 1 / (float(shares[0]) + float(shares[1]) / 4)
    t = np.arange(leaves) / leaves
    siblings = 10 * 0.3 - t
    inside = siblings + t**2 - (siblings + t) ** 2 / 10
    expected = inside.mean() * top + below / float(shares[1])
    ranks = Quantiles(["0.3"])
    found = design_error(branching, shares, mechanism=DiscreteGaussian, objective=ranks)
    assert found == pytest.approx(expected)


each_objective = pytest.mark.parametrize("objective", KEEN.values(), ids=KEEN)


@each_mechanism
@each_objective
def test_the_search_equals_brute_force_over_all_ordered_factorisations(mechanism, objective):
    costs = costs_of(mechanism, objective)
    errors = {
        number: min(costs.error(tree)[0] for tree in factorisations(number))
        for number in range(2, 512)
    }
    for bins in [2, 3, 5, 7, 11, 16, 17, 30, 37, 51, 64, 81, 97, 100, 127, 131, 177, 210, 251, 256]:
        best = min(errors[number] for number in range(bins, 2 * bins))
        found = best_branching(bins, mechanism=mechanism, objective=objective)
        assert found.error == pytest.approx(best, rel=1e-12), bins


@each_mechanism
@each_objective
@pytest.mark.parametrize("branching", [(9, 11), (12, 9, 14), (9, 10, 8, 11)], ids=str)
def test_no_other_shares_are_better(branching, mechanism, objective):
    options = {"mechanism": mechanism, "objective": objective}
    design = best_shares_for(branching, **options)
    costs = costs_of(mechanism, objective)
    assert costs.error(branching)[0] == pytest.approx(
        design_error(branching, design.shares, **options)
    )

    def error(logits):
        weights = np.exp(logits - logits.max())
        units = np.maximum(np.round(weights / weights.sum() * 10**12), 1).astype(np.int64)
        shares = [Fraction(int(u), int(units.sum())) for u in units]
        return design_error(branching, shares, **options)

    for start in (np.zeros(len(branching)), np.arange(len(branching)) * 1.0):
        other = minimize(error, start, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9})
        assert design.error <= other.fun * (1 + 1e-9)


def test_a_tree_that_the_search_skips_has_no_shares_better_than_a_merged_tree():
    """Under pure ε the best shares of 4 · 6 · 5 · 3 measure two levels only: the tree 24 · 15."""
    tree, merged = (4, 6, 5, 3), (24, 15)
    assert costs_of(DiscreteLaplace, Cdf()).error(tree)[0] == np.inf
    below = best_shares_for(merged, mechanism=DiscreteLaplace)

    def error(logits):
        units = 1 + np.round(np.exp(logits - logits.max()) * 10**9).astype(np.int64)
        shares = [Fraction(int(u), int(units.sum())) for u in units]
        return design_error(tree, shares, mechanism=DiscreteLaplace)

    for start in (np.zeros(4), np.array([1.0, 0, 0, 1]), np.array([0, 2.0, 0, 2])):
        other = minimize(error, start, method="Nelder-Mead", options={"fatol": 1e-7})
        assert other.fun >= below.error * (1 - 1e-6)


@each_mechanism
@pytest.mark.parametrize("bins", [1000, 33_333, 1_000_000])
def test_no_neighbouring_design_is_better(bins, mechanism):
    costs = costs_of(mechanism, Cdf())
    design = best_branching(bins, mechanism=mechanism)
    for i in range(len(design.branching)):
        for j in range(len(design.branching)):
            for step in (-1, 1):
                changed = list(design.branching)
                changed[i] += step
                others = prod(changed) // changed[j]
                changed[j] = -(-bins // others)
                if min(changed) >= 2:
                    assert costs.error(tuple(changed))[0] >= design.error * (1 - 1e-9)


@each_mechanism
@each_objective
@pytest.mark.sweep(4)
def test_a_million_bins_are_designed_in_five_seconds_of_a_processor(mechanism, objective):
    """A second, in fact; processor time is our own, whatever else the machine does."""
    best_branching(50, mechanism=mechanism, objective=objective)  # compiled
    begun = time.process_time()
    design = best_branching(10**6, mechanism=mechanism, objective=objective)
    assert time.process_time() - begun < 5
    assert prod(design.branching) >= 10**6


# Rameshwar, Tandon & Sharma: covering sums, each level with its own part of ε = 1.


def best_budgets(branching):
    """In proportion to the cubic roots of n_i - 1 (Theorem IV.2)."""
    roots = [(n - 1) ** (1 / 3) for n in branching]
    return [root / sum(roots) for root in roots]


def variance_of_covering(cut, branching, budgets):
    """Of the noisy counts that a cut adds up, by walking down to its leaf."""
    rest, variance = cut, 0.0
    for budget, leaves in zip(budgets, levels_below(branching), strict=True):
        variance += rest // leaves * 8 / budget**2
        rest %= leaves
    return variance


@each_tree
def test_theorem_iv_1_is_the_sum_over_all_cuts(tree):
    _, branching = tree
    budgets = as_floats(uneven(len(branching))).tolist()
    each = [variance_of_covering(cut, branching, budgets) for cut in range(prod(branching))]
    assert covering_error(branching, budgets) == pytest.approx(sum(each))


def test_theorem_iv_2():
    branching, shares = (3, 8, 5), as_floats(uneven(3)).tolist()
    roots = sum((n - 1) ** (1 / 3) for n in branching)
    least = covering_error(branching, best_budgets(branching))
    assert least == pytest.approx(4 * 120 * roots**3)
    assert covering_error(branching, shares) > least


def test_theorem_iv_2_for_given_budgets():
    """The best real factors are n_i ∝ ε_i²: no other factors of the same product are better."""
    shares, best = [2 / 9, 3 / 9, 4 / 9], (4 * 4, 9 * 4, 16 * 4)
    error = covering_error(best, shares)
    for other in factorisations(prod(best)):
        if len(other) == 3:
            assert (covering_error(other, shares) > error) == (other != best)


def test_theorem_iv_3_and_lemma_iv_3():
    """Equal factors and budgets are best at a height; 17 is the best equal integer factor."""
    equal = equal_budgets((9,) * 3)
    assert equal == pytest.approx(4 * 729 * 3**3 * (729 ** (1 / 3) - 1))
    for other in factorisations(729):
        if len(other) == 3:
            assert covering_error(other, best_budgets(other)) >= equal * (1 - 1e-12)
    rates = {n: equal_budgets((n, n)) / n**2 / math.log(n) ** 3 for n in range(2, 60)}
    assert min(rates, key=lambda n: rates[n]) == 17


def equal_budgets(branching):
    return covering_error(branching, [1 / len(branching)] * len(branching))


@pytest.mark.parametrize(("prime", "exponent"), [(2, 10), (3, 7), (5, 5), (2, 11)])
def test_theorem_v_1(prime, exponent):
    """With equal budgets and a given height, exponents are as equal as possible."""
    trees = list(factorisations(prime**exponent))
    for height in range(1, exponent + 1):
        best = min((t for t in trees if len(t) == height), key=equal_budgets)
        small, more = divmod(exponent, height)
        expected = [prime**small] * (height - more) + [prime ** (small + 1)] * more
        assert sorted(best) == expected


@pytest.mark.parametrize("number", [2**8, 2**12, 3**6, 17**2, 19**2, 23**2, 10**3])
def test_theorem_v_2(number):
    """With equal budgets: K̄ = b^m with b >= 17 needs at least m levels, with b <= 16 at most."""
    trees = list(factorisations(number))
    height = len(min(trees, key=equal_budgets))
    equal = {(tree[0], len(tree)) for tree in trees if len(set(tree)) == 1}
    assert equal
    for factor, levels in equal:
        assert height >= levels if factor >= 17 else height <= levels


def test_lemma_v_2():
    """For 2^11 some unequal factors have less than a third of the error of any equal ones."""
    trees = list(factorisations(2**11))
    equal = min(equal_budgets(tree) for tree in trees if len(set(tree)) == 1)
    assert min(equal_budgets(tree) for tree in trees) < equal / 3


def test_figure_1_the_16_ary_tree_is_the_best_for_256_bins():
    trees = list(factorisations(256))
    best = min(trees, key=lambda tree: covering_error(tree, best_budgets(tree)))
    assert best == (16, 16)
    assert best_budgets(best) == [1 / 2, 1 / 2]
    assert equal_budgets(best) == pytest.approx(4 * 256 * 8 * 15)


def test_sizes_count_the_nodes_that_exist():
    assert Design(997, (10, 10, 10), uneven(3), 1.0).sizes == (10, 100, 997)
    assert Design(11, (5, 3), uneven(2), 1.0).sizes == (4, 11)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: best_branching(1, mechanism=DiscreteLaplace), "from 2 to 2^30, got 1"),
        (lambda: best_branching(True, mechanism=DiscreteLaplace), "got True"),
        (lambda: Quantiles([]), "at least one rank"),
        (lambda: Quantiles(["1/2", 1]), r"must be in (0, 1), got 1"),
        (
            lambda: best_shares_for((2, 3, 4), mechanism=DiscreteLaplace),
            "a level is best left unmeasured",
        ),
    ],
)
def test_what_is_no_design_is_refused(call, words):
    with pytest.raises(PlanError) as caught:
        call()
    assert words in str(caught.value)


def test_a_tree_is_designed_for_a_mechanism_alone():
    with pytest.raises(NoiseError, match="int is no complete mechanism: it has no name"):
        best_branching(9, mechanism=int)
