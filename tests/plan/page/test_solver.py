"""The planning page's own arithmetic against plans that are made at random points."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from hedgerow.distribution.ranges import Ranges
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.noise.mechanisms import DiscreteGaussian, DiscreteLaplace
from hedgerow.plan.allocation.shares import Shares
from hedgerow.plan.cuboids import All, Invariant, Survivors
from hedgerow.plan.forecast import forecast
from hedgerow.plan.make import make_plan
from hedgerow.plan.page.points import divisions, points_of
from hedgerow.plan.page.solver import NARROWEST, WIDEST, shares_for, solver_of
from hedgerow.plan.workload import Chain, Cube, Cuboids
from hedgerow.privacy.budget import Epsilon, Rho
from hedgerow.privacy.neighbours import AddRemove, Replace
from hedgerow.tables.axis import Axis
from hedgerow.tables.tree import Tree
from tests.plan.page.javascript import run

WITHIN = 2e-5
"""Of what follows from the noise of shares, and of lines between budgets."""
ALL_POINTS = """
const { solver, points } = given;
return points.map(([shares, whole]) => variancesOf(solver, { shares }, whole).map(Math.sqrt));
"""


def uneven(name, regions=5, seed=7):
    """An axis whose families differ: regions of 1 to 9 districts, of 1 to 14 towns."""
    drawn, rows = np.random.default_rng(seed), []
    for r in range(regions):
        for d in range(int(drawn.integers(1, 10))):
            towns = range(int(drawn.integers(1, 15)))
            rows += [(f"r{r}", f"r{r}d{d}", f"r{r}d{d}t{t}") for t in towns]
    frame = pl.DataFrame(rows, schema=["region", "district", "town"], orient="row")
    columns = [f"{name}_{level}" for level in frame.columns]
    return Axis.from_frame(name, frame, frame.columns, columns=columns)


def ages():
    return Ranges.equal_width("age", 0, 60, 6).axis([2, 3])


CHAIN = Tree([uneven("place")])
PAIR = Tree([uneven("home", seed=3), uneven("work", regions=3, seed=4)], ["home", "work"])
SQUARE = Tree([uneven("home"), ages()])
ROOMS = Ranges.equal_width("rooms", 0, 4, 4).axis([2, 2])
CUBE = Tree([uneven("home", regions=2), ages(), ROOMS])
REPLACE = Replace(contributions=1)
KINDS = {
    "survivors": (CHAIN, Chain(), Survivors(), AddRemove(), DiscreteGaussian),
    "survivors of pairs": (PAIR, Chain(), Survivors(), REPLACE, DiscreteGaussian),
    "survivors by Laplace": (CHAIN, Chain(), Survivors(), AddRemove(), DiscreteLaplace),
    "all": (CHAIN, Chain(), All(), AddRemove(contributions=3), DiscreteGaussian),
    "all of pairs": (PAIR, Chain(), All(), REPLACE, DiscreteGaussian),
    "all by Laplace": (CHAIN, Chain(), All(), REPLACE, DiscreteLaplace),
    "cube": (SQUARE, Cube(), All(), AddRemove(), DiscreteGaussian),
    "cube of pairs, total public": (PAIR, Cube(), All(), REPLACE, DiscreteGaussian),
    "cube by Laplace": (SQUARE, Cube(), All(), AddRemove(), DiscreteLaplace),
    "cube by Laplace, total public": (SQUARE, Cube(), All(), REPLACE, DiscreteLaplace),
    "cube by Laplace, districts public": (PAIR, Cube(), All(), REPLACE, DiscreteLaplace,
                                          Invariant("home", "district")),
    "cube of three axes, regions public": (CUBE, Cube(), All(), REPLACE, DiscreteGaussian,
                                           Invariant("home", "region")),
    "cube of one axis, total public": (CHAIN, Cube(), All(), REPLACE, DiscreteGaussian),
}  # fmt: skip
POINTS = 30  # of each kind


def random_shares(drawn, number):
    """Shares in thousandths, each at least one, that sum to 1."""
    cuts = np.sort(drawn.choice(np.arange(1, 1000), number - 1, replace=False))
    return [Fraction(int(n), 1000) for n in np.diff([0, *cuts, 1000])]


def a_plan(kind, shares, whole):
    tree, workload, measure, neighbours, mechanism, *invariants = KINDS[kind]
    budget = Rho(whole) if mechanism is DiscreteGaussian else Epsilon(whole)
    return make_plan(
        tree, budget=budget, workload=workload, measure=measure, neighbours=neighbours,
        mechanism=mechanism, allocation=None if shares is None else Shares(shares),
        invariants=invariants,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sweep(3)
def test_figures_of_the_page_are_those_of_plans_at_random_points(kind):
    drawn = np.random.default_rng(20)
    first = a_plan(kind, None, Fraction(1))
    solver, own = solver_of(first), shares_for(first)
    given, plans = [(own, 1.0)], [first]
    for _ in range(POINTS):
        whole = Fraction(str(round(float(np.exp(drawn.uniform(np.log(0.003), np.log(8)))), 5)))
        if solver["kind"] == "cube":
            each = [random_shares(drawn, len(levels)) for levels in own]
            names = [axis.name for axis in first.tree.axes]
            shares = dict(zip(names, each, strict=True))
            carried = [[float(s) for s in levels] for levels in each]
        else:
            shares = random_shares(drawn, len(own))
            carried = [float(s) for s in shares]
        plans.append(a_plan(kind, shares, whole))
        given.append((carried, float(whole)))
    found = run(["solver.js"], ALL_POINTS, {"solver": solver, "points": given})
    for plan, errors in zip(plans, found, strict=True):
        assert errors == pytest.approx(forecast(plan)["rmse"].to_list(), rel=WITHIN, abs=1e-6)


@pytest.mark.parametrize("exact", [0, 1, 2, 3])
@pytest.mark.parametrize("own", [[3.0, 0.5, 2.0, 1.0], [np.inf, 4.0, np.inf, 1.0]])
def test_what_each_levels_noise_has_in_an_estimate_is_the_estimators(own, exact):
    plan = make_plan(SQUARE, budget=Rho(1), workload=Cube(), measure=All())
    code = """const { axes, own, exact } = given;
    const levels = own.map((variance) => variance ?? Infinity);
    return meanCoefficients(chainOf(axes.slice(0, 1), [[0, 1], [0, 2], [0, 3]]), levels, exact);"""
    carried = [None if np.isinf(variance) else variance for variance in own]
    given = {"axes": solver_of(plan)["axes"], "own": carried, "exact": exact}
    found = np.array(run(["solver.js"], code, given))
    squares = AxisSquares.of(plan.design.shape.axes[0], own)
    for level in range(4):
        each = np.array([part.mean(axis=0) for part in squares.coefficients(level, exact)])
        assert found[:, level] == pytest.approx(each, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("mechanism", [DiscreteGaussian, DiscreteLaplace])
def test_variances_of_noise_are_the_true_ones_between_those_of_the_table(mechanism):
    price, drawn = mechanism.price, np.random.default_rng(29)
    nominal = np.exp(drawn.uniform(np.log(NARROWEST), np.log(10 * WIDEST), 200))
    bought = (float(price.variance) / nominal) ** (1 / price.power)
    budget = Rho(1) if mechanism is DiscreteGaussian else Epsilon(1)
    chain = solver_of(make_plan(CHAIN, budget=budget, mechanism=mechanism))
    code = "return given.bought.map((precision) => trueVariance(given.solver, precision));"
    found = run(["solver.js"], code, {"solver": chain, "bought": bought.tolist()})
    exact = [mechanism.with_precision(Fraction(p)).noise_variance for p in bought]
    assert found == pytest.approx(exact, rel=2 * WITHIN)


NAMED = ["home.town", "work.town", "home.district × work.district", "home.town × work.town"]
FEW = Tree([uneven("home", regions=2, seed=3), uneven("work", regions=2, seed=5)])
CARRIED = {
    "named": (FEW, Cuboids(NAMED), REPLACE, DiscreteGaussian),
    "named beside the chain": (FEW, Cuboids(NAMED[:2], chain=True), REPLACE, DiscreteGaussian),
    "named by Laplace": (SQUARE, Cuboids(["home.town", "home.region × age.bins_3"]), AddRemove(),
                         DiscreteLaplace),
}  # fmt: skip
AT_BUDGETS = """
const { solver, points, asked } = given;
const rooted = (v) => (v === Infinity ? null : Math.sqrt(v));
return asked.map(([k, place]) => variancesOf(solver, points.divisions[k], null, place).map(rooted));
"""


@pytest.mark.usefixtures("few_budgets")
@pytest.mark.parametrize("kind", CARRIED)
def test_figures_of_named_cuboids_are_those_of_plans_at_each_budget(kind):
    """The divisions are those of the page, as nobody else's can be chosen on it."""
    tree, workload, neighbours, mechanism = CARRIED[kind]
    of = Rho if mechanism is DiscreteGaussian else Epsilon
    options = {"workload": workload, "neighbours": neighbours, "mechanism": mechanism,
               "measure": All()}  # fmt: skip
    plan = make_plan(tree, budget=of("1"), **options)
    ways, points = divisions(plan), points_of(plan, is_fixed=True)
    given, plans = [], []
    for place, text in enumerate(points["texts"]):
        k = place % len(ways)
        shares = {
            name: share
            for name, share in zip(ways[k].plan.cuboids, ways[k].plan.shares, strict=True)
            if share is not None
        }
        plans.append(make_plan(tree, budget=of(text), allocation=Shares(shares), **options))
        given.append((k, place))
    carried = {"solver": solver_of(plan), "points": points, "asked": given}
    found = run(["solver.js"], AT_BUDGETS, carried)
    for made, errors in zip(plans, found, strict=True):
        assert errors == pytest.approx(forecast(made)["rmse"].to_list(), rel=1e-12, abs=1e-6)
