"""The joint law of the errors of all estimates of a cuboid, from a plan alone.

Estimates are linear in noisy counts, so their errors are what least squares makes of noise,
whatever the true counts. Three ways draw them, the first that can:

1. *A chain of which all is measured, and cuboids whose shares are a product*: the estimation of the
   cuboid from its coarsenings (`hedgerow.estimate.workload.product.Reduced`) runs on normal draws,
   many at once. A chain is a cube of one axis, whose levels are its depths.
2. *Running sums*: their decoding runs on normal draws.
3. *Others that are small, or have Laplace noise*: the estimates of each noisy count alone are the
   columns of the matrix G of e = G η, and η is drawn with the law of the noise.

Else marginal variances are known, and nothing joint. Noise of a kind is drawn at a scale at which
it is continuous, under a key of public words: the same draws for all budgets, so that what is drawn
scales as errors do.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
from scipy.linalg import toeplitz

from hedgerow.arrays import Float64, Int64, Levels, Tables, run_starts, run_sums
from hedgerow.declared import frozen
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.product import ProductSolver
from hedgerow.limits import MOST_VARIANCES
from hedgerow.noise.bits import key_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.chain import PlannedChain, PlannedSums, noise_variances
from hedgerow.plan.cuboids import RunningSums, Survivors
from hedgerow.plan.joint import Joint
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.tables import SMALLEST, PlannedTables
from hedgerow.tables.tree import cell_numbers, nodes_along

WIDE = 24
"""Noise is drawn at a variance of about 2 to this power, and scaled down to 1."""
MOST_ALONG = 1 << 23
"""Leaves of a chain along which all nodes are looked at."""
MOST_COLUMNS = 1 << 11
"""Noisy counts of which each is estimated alone."""

Draws = Callable[[int, int], Tables]
"""Of a number of runs, and the number of the block that they are, errors of a cuboid, after those
of coarser ones that were estimated on the way: float64 (cells, runs), records."""


class NoVerdictError(PlanError):
    """Why no budget tells whether released counts of a cuboid keep a criterion."""


@frozen(eq=False)
class Errors:
    """The errors of the estimates of all cells of a cuboid.

    Attributes:
        numbers: int64 (cells): the number of each, row by row.
        variances: float64 (cells), or (1) where all have one, records².
        noise: whose law single noisy counts have; of several the narrowest, beside whose variance
            tails are heaviest.
        is_exact: whether variances are those of the estimates; if not, they are bounds.
        is_alone: whether each is one noisy count, so that they are independent.
        draws: of the errors; None where nothing joint is known.
        drawn: how many numbers are drawn of each run, if more than there are cells.
        chain: of a chain that settles by families its squares, and the level of the cuboid.
    """

    numbers: Int64
    variances: Float64
    noise: Mechanism
    is_exact: bool = True
    is_alone: bool = False
    draws: Draws | None = None
    drawn: int = 0
    chain: tuple[AxisSquares, int] | None = None

    @property
    def is_normal(self) -> bool:
        """Whether sums of draws of the noise are taken for normal."""
        return self.noise.price.power == 1

    @property
    def widening(self) -> float:
        """The variance of the continuous law that bounds the noise, over that of the noise.

        Discrete Laplace noise has heavier tails than a Laplace law of its variance, and discrete
        Gaussian noise below σ² = 1 than a normal one.
        """
        return self.noise.envelope.variance / max(self.noise.noise_variance, SMALLEST)


def errors_of(plan: Plan, levels: Levels) -> Errors:
    """Return what is known of the errors of a cuboid's estimates.

    Raises:
        NoVerdictError: nothing is; the sentence says why, and what would help.
    """
    if (fault := _fault(plan, levels)) is not None:
        raise NoVerdictError(f"{plan.tree.name_of(levels)} {fault}")
    design = plan.design
    noise = min(plan.noise.values(), key=lambda mechanism: mechanism.noise_variance)
    found = Errors(np.arange(plan.tree.cells(levels)), np.zeros(1), noise)
    if plan.is_public(levels):
        return found
    if isinstance(design, PlannedSums):
        return _of_sums(plan, design, levels, found)
    if isinstance(design, PlannedChain):
        return _of_chain(plan, design, levels, found)
    if isinstance(design, PlannedSpine) and design.is_best and plan.constraints is None:
        with suppress(PlanError):  # too large to be held as tables, with the same estimates
            design = PlannedTables.of(plan)
    assert isinstance(design, Joint)  # noqa: S101 - whatever else plans have
    cuboid = design.shape.given(levels)
    codes, _ = design.codes_of(cuboid)
    numbers = cell_numbers(plan.tree, levels, codes)
    variances = design.variances_at(cuboid, codes)
    found = replace(found, numbers=numbers, variances=variances)
    if not isinstance(design, PlannedTables):
        return replace(found, is_exact=design.is_best)
    return _solved(plan, replace(found, is_exact=design.solver.is_exact), cuboid, design.solver)


def _fault(plan: Plan, levels: Levels) -> str | None:
    """Return why nothing is known of a cuboid, as the end of a sentence; None where it is."""
    if levels not in plan.by_levels and isinstance(plan.measure, RunningSums):
        return (
            "is no depth of the tree, and running sums tell of depths alone: give areas, or "
            'measure all (measure = "all") and name it in [workload]'
        )
    if levels not in plan.by_levels:
        return (
            "is no cuboid of the plan, but a sum of released counts that are each kept from "
            "falling below 0, which adds up: name it in [workload]"
        )
    if (cells := plan.tree.cells(levels)) > MOST_VARIANCES:
        return f"has {cells:,} cells, too many to be judged together"
    pruned = isinstance(plan.measure, Survivors) and plan.is_chain and levels not in plan.noise
    if levels not in plan.whole or (pruned and not plan.is_public(levels)):
        return (
            "is not measured in every cell: those below counts that are released as 0 are missing; "
            'measure all (measure = "all")'
        )
    return None


def _of_chain(plan: Plan, design: PlannedChain, levels: Levels, found: Errors) -> Errors:
    """Return those of a depth of a chain."""
    depth = sum(levels)
    if not design.everything:  # the root, a noisy count as it is
        own = plan.noise[levels]
        return replace(found, variances=np.array([own.noise_variance]), noise=own, is_alone=True)
    if plan.tree.leaves > MOST_ALONG:
        variances = np.array([design.largest_variance(levels)])
        return replace(found, variances=variances, is_exact=False)
    codes, families = zip(*nodes_along(plan.tree), strict=True)
    shape = CubeShape.of([[*map(run_starts, families[:-1])]])
    variances = np.full(shape.axes[0].depth + 1, np.inf)
    for t, variance in enumerate(noise_variances(design.depths)):
        (level,) = shape.given((t,))  # of which deeper ones of only children are not measured
        variances[level] = min(variances[level], max(variance, SMALLEST))
    noise: dict[Levels, float] = {(k,): float(v) for k, v in enumerate(variances) if v < np.inf}
    public = None if plan.public is None else shape.given((design.public_depth,))
    if public is not None:  # whose own variances, and those above, are of no account
        noise = {c: v for c, v in noise.items() if c > public}
        variances[: public[0] + 1] = variances[-1]
    squares = AxisSquares.of(shape.axes[0], variances)
    solver = ProductSolver(Observed(shape, noise, public), [squares])
    cuboid = shape.given((depth,))
    found = replace(
        found,
        numbers=cell_numbers(plan.tree, levels, codes[depth]),
        variances=solver.variances_of(cuboid).of_cells(cuboid),
        chain=(squares, cuboid[0]),
    )
    return _solved(plan, found, cuboid, solver)


def _of_sums(plan: Plan, design: PlannedSums, levels: Levels, found: Errors) -> Errors:
    """Return those of a depth of running sums: of totals of rows, or of what is decoded of each."""
    depth = sum(levels)
    one = design.decoded
    rows = plan.tree.cells(plan.tree.chain[-2])
    bins = plan.strategy.bins
    codes, _ = [*nodes_along(plan.tree)][depth]
    numbers = cell_numbers(plan.tree, levels, codes)
    found = replace(found, numbers=numbers, variances=design.variances_at(levels))
    noise = _noise_of(plan)

    def draws_of_totals(many: int, block: int) -> Tables:
        totals = noise(block, levels, many, rows) * sqrt(one.before[-1])
        if one.known:
            totals = totals - totals.mean(axis=0)
        return {levels: run_sums(totals, run_starts(design.rows_below[depth]))}

    if depth <= design.row_depth:
        return replace(found, draws=draws_of_totals, drawn=rows)
    if bins > MOST_COLUMNS:
        return found
    decoding = toeplitz(one.strategy.decoding, np.zeros(bins)) * sqrt(one.noise_variance)

    def draws(many: int, block: int) -> Tables:
        drawn = noise(block, levels, many, rows * bins).reshape(rows, bins, many)
        before = decoding @ drawn
        if one.known:  # the errors of totals that are public, shared by their rows
            known = before[:, -1:]
            if one.known < 1:
                known = known.mean(axis=0)
            before = before - one.pull[1:, None] * known
        return {levels: np.diff(before, axis=1, prepend=0.0).reshape(-1, many)}

    return replace(found, draws=draws, drawn=rows * bins)


def _noise_of(plan: Plan) -> Callable[[int, Levels, int, int], Float64]:
    """Return what draws noise of variance 1: of a block and levels float64 (cells, many)."""
    key = key_of(f"criteria/{plan.tree.digest}")
    wide = plan.mechanism.with_precision(Fraction(1, 1 << WIDE // plan.mechanism.price.power))

    def noise(block: int, levels: Levels, many: int, cells: int) -> Float64:
        drawn = np.zeros(cells * many, dtype=np.int64)
        wide.draw(key.stream(block, *levels), 0, drawn)
        return np.asarray(drawn.reshape(cells, many) / sqrt(wide.noise_variance))

    return noise


def _solved(plan: Plan, errors: Errors, cuboid: Levels, solver: Solver) -> Errors:
    """Return errors with draws of what a solver makes of noise, where these can be had."""
    observed = solver.observed
    noise = _noise_of(plan)
    own = observed.variances.get(cuboid, np.inf)
    if errors.is_exact and np.allclose(errors.variances, own, rtol=1e-9, atol=0.0):
        alone = min(plan.noise.values(), key=lambda each: abs(each.noise_variance - own))
        errors = replace(errors, variances=np.array([own]), noise=alone, is_alone=True)
    if isinstance(solver, ProductSolver) and errors.is_normal:
        reduced = solver.reduced(cuboid)

        def reduced_draws(many: int, block: int) -> Tables:
            tables = reduced.errors(lambda levels, cells: noise(block, levels, many, cells))
            return {levels: table.reshape(-1, many) for levels, table in tables.items()}

        return replace(errors, draws=reduced_draws)
    gains = _gains(solver, cuboid)
    if gains is None:
        return errors
    return replace(
        errors,
        draws=lambda many, block: {cuboid: gains @ noise(block, cuboid, many, len(gains.T))},
        drawn=max(gains.shape),
    )


def _gains(solver: Solver, cuboid: Levels) -> Float64 | None:
    """Return G times the standard deviations of η: float64 (cells, noisy counts), if few."""
    observed = solver.observed
    zeros = {c: np.zeros(observed.shape.shape(c)) for c in observed.cuboids}
    if sum(zeros[c].size for c in observed.variances) > MOST_COLUMNS:
        return None
    gains = []
    for measured, variance in observed.variances.items():
        for i in range(zeros[measured].size):
            tables = {c: table.copy() for c, table in zeros.items()}
            tables[measured].flat[i] = sqrt(variance)
            gains.append(solver.estimates(tables, [cuboid])[cuboid].ravel())
    return np.array(gains).T
