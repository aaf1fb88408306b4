"""The joint law of the errors of all estimates of a cuboid, from a plan alone.

Estimates are linear in noisy counts, so their errors are what least squares makes of noise,
whatever the true counts. Three ways tell their law, the first that can:

1. *Noisy counts as they are* are independent, each with the law of the noise.
2. *A chain of which all is measured, and cuboids whose shares are a product*: the estimation of the
   cuboid from its coarsenings (`hedgerow.estimate.workload.product.Reduced`) runs on normal draws,
   many at once. The errors are normal as noise is: of discrete Gaussian noise nearly so.
3. *Others that are small*: the estimates of each noisy count alone are the columns of the matrix G
   of e = G η, and η is drawn with the law of the noise, Laplace where it is that.

Else marginal variances are known, and nothing joint. Noise of a kind is drawn at a scale at which
it is continuous, under a key of public words: the same draws for all budgets, so that what is drawn
scales as errors do.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import cast

import numpy as np

from hedgerow.arrays import Codes, Float64, Int64, Levels, Tables, run_starts, runs
from hedgerow.errors import PlanError
from hedgerow.estimate.cube.axis_squares import AxisSquares
from hedgerow.estimate.cube.shape import CubeShape
from hedgerow.estimate.workload.observed import Observed, Solver
from hedgerow.estimate.workload.product import ProductSolver
from hedgerow.noise.bits import Stream, key_of
from hedgerow.noise.mechanisms import Mechanism
from hedgerow.plan.chain import PlannedChain, PlannedSums
from hedgerow.plan.cuboids import Measured
from hedgerow.plan.plan import Plan
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.plan.tables import SMALLEST, PlannedTables
from hedgerow.tables.tree import Tree

WIDE = 24
"""Noise is drawn at a variance of about 2 to this power, and scaled down to 1."""
MOST_ALONG = 1 << 23
"""Nodes of a chain whose errors are drawn, or are listed one by one."""
MOST_COLUMNS = 1 << 11
"""Noisy counts of which each is estimated alone."""
MOST_GAINS = 1 << 22
"""Numbers of the matrix of these."""

Noise = Callable[[Levels, int], Float64]
"""Of a cuboid and a number of cells, draws of variance 1: float64 (cells, runs)."""
Draws = Callable[[int, int], Tables]
"""Of a number of runs, and the number of the block that they are, the errors of a cuboid and of
those coarser ones that were estimated on the way: float64 (cells, runs), records."""


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """The errors of the estimates of all cells of a cuboid.

    Attributes:
        numbers: int64 (cells): the number of each, row by row.
        variances: float64 (cells), or (1) where all have one, records².
        noise: whose law single noisy counts have; None where counts are public.
        is_exact: whether variances are those of the estimates; if not, they are bounds.
        is_alone: whether each is one noisy count, so that they are independent.
        draws: of the errors; None where nothing joint is known.
        chain: of a chain that settles by families, down to the cuboid; None of any other cuboid.
    """

    numbers: Int64
    variances: Float64
    noise: Mechanism | None
    is_exact: bool = True
    is_alone: bool = False
    draws: Draws | None = None
    chain: tuple[AxisSquares, int] | None = None

    @property
    def cells(self) -> int:
        """How many there are."""
        return len(self.numbers)

    @property
    def is_normal(self) -> bool:
        """Whether errors are normal, as sums of draws are."""
        return self.noise is None or self.noise.price.power == 1


class NoVerdictError(PlanError):
    """Why no budget tells whether released counts of a cuboid keep a criterion, in a clause."""


def errors_of(plan: Plan, levels: Levels) -> Errors:
    """Return what is known of the errors of a cuboid's estimates.

    Raises:
        NoVerdictError: nothing is; the sentence says why, and what would help.
    """
    name, what = plan.tree.name_of(levels), plan.by_levels.get(levels)
    if what is None:
        raise NoVerdictError(
            f"{name} is no cuboid of the plan, so that it is a sum of released counts, of which "
            f"each is kept from falling below 0, and that adds up: name it in [workload]"
        )
    if plan.is_public(levels):
        return Errors(np.arange(plan.tree.cells(levels)), np.zeros(1), None)
    if levels not in plan.whole:
        raise NoVerdictError(
            f"of {name} survivors alone are measured: cells below counts that are released as 0 "
            'have no noise of their own, but are 0; measure all (measure = "all")'
        )
    design = plan.design
    if isinstance(design, PlannedSums):
        return _of_running_sums(plan, design, levels)
    if isinstance(design, PlannedChain):
        return _of_chain(plan, design, levels)
    if isinstance(design, PlannedSpine):
        return _along_spine(plan, design, levels)
    return _of_tables(cast("PlannedTables", design), levels)


# --- draws --------------------------------------------------------------------------------------


def unit_noise(kind: type[Mechanism], stream: Stream, shape: tuple[int, ...]) -> Float64:
    """Return draws of variance 1 with the law of a mechanism's wide noise."""
    wide = kind.with_precision(Fraction(1, 1 << (WIDE // kind.price.power)))
    drawn = np.zeros(shape, dtype=np.int64)
    wide.draw(stream, 0, drawn.reshape(-1))
    return np.asarray(drawn / sqrt(wide.noise_variance))


def _streams(words: str, block: int) -> Callable[[Levels], Stream]:
    key = key_of(f"criteria/{words}")
    return lambda levels: key.stream(block, *levels)


def _draws(plan: Plan, make: Callable[[Noise], Tables]) -> Draws:
    """Return draws of what is made of independent noise of variance 1, many runs at once."""
    key = key_of(f"criteria/{plan.tree.digest}")

    def draws(many: int, block: int) -> Tables:
        def noise(cuboid: Levels, cells: int) -> Float64:
            return unit_noise(plan.mechanism, key.stream(block, *cuboid), (cells, many))

        return {cuboid: table.reshape(-1, many) for cuboid, table in make(noise).items()}

    return draws


def _of_gains(plan: Plan, cuboid: Levels, gains: Float64) -> Draws:
    """Return draws of G η, from G times the standard deviation of each η."""
    return _draws(plan, lambda noise: {cuboid: gains @ noise(cuboid, gains.shape[1])})


def _solved(plan: Plan, errors: Errors, cuboid: Levels, solver: Solver) -> Errors:
    """Return errors with draws of what a solver makes of noise, where these can be had."""
    observed, own = solver.observed, solver.observed.variances.get(cuboid, 0.0)
    if own and errors.variances.mean() >= own * (1 - 1e-9):  # what is combined has less
        alone = partial(_alone, cuboid, errors.cells, own)
        errors = replace(
            errors, variances=np.array([own]), is_alone=True, draws=_draws(plan, alone)
        )
    if isinstance(solver, ProductSolver) and errors.is_normal:
        return replace(errors, draws=_draws(plan, solver.reduced(cuboid).errors))
    if errors.is_alone:
        return errors
    zeros = {c: np.zeros(observed.shape.shape(c)) for c in observed.cuboids}

    def estimate(measured: Levels, noisy: Float64) -> Float64:
        tables = zeros | {measured: noisy.reshape(zeros[measured].shape)}
        return solver.estimates({c: t.copy() for c, t in tables.items()}, [cuboid])[cuboid].ravel()

    counts = {c: (zeros[c].size, variance) for c, variance in observed.variances.items()}
    gains = _gains(counts, errors.cells, estimate)
    return errors if gains is None else replace(errors, draws=_of_gains(plan, cuboid, gains))


def _alone(cuboid: Levels, cells: int, variance: float, noise: Noise) -> Tables:
    return {cuboid: sqrt(variance) * noise(cuboid, cells)}


def _gains(
    noise: Mapping[Levels, tuple[int, float]],
    cells: int,
    estimate: Callable[[Levels, Float64], Float64],
) -> Float64 | None:
    """Return G times the standard deviations: float64 (cells, noisy counts); None of too many.

    Args:
        noise: of each cuboid that is measured how many noisy counts it has, and their variance.
        cells: of the cuboid that is estimated.
        estimate: of one cuboid's noisy counts, others being 0.
    """
    columns = sum(many for many, _ in noise.values())
    if columns > MOST_COLUMNS or columns * cells > MOST_GAINS:
        return None
    gains, column = np.zeros((cells, columns)), 0
    for levels, (many, variance) in noise.items():
        for i in range(many):
            unit = np.zeros(many)
            unit[i] = sqrt(variance)
            gains[:, column] = estimate(levels, unit)
            column += 1
    return gains


# --- designs ------------------------------------------------------------------------------------


def _noise(plan: Plan) -> Mechanism:
    """Return the noise of the plan with the widest parameter."""
    return max(plan.noise.values(), key=lambda mechanism: mechanism.noise_variance)


def _of_running_sums(plan: Plan, design: PlannedSums, levels: Levels) -> Errors:
    error, bins = design.decoded, plan.tree.leaves
    total = 0 if error.total_known else None

    def estimate(_: Levels, noisy: Float64) -> Float64:
        before = error.decode(noisy, total)
        return np.diff(before) if any(levels) else before[-1:]

    cells = plan.tree.cells(levels)
    variances = error.leaves if any(levels) else error.before[-1:]
    gains = _gains({levels: (bins, error.noise_variance)}, cells, estimate)
    draws = None if gains is None else _of_gains(plan, levels, gains)
    return Errors(np.arange(cells), variances, design.noise, draws=draws)


def _of_chain(plan: Plan, design: PlannedChain, levels: Levels) -> Errors:
    """Return those of a depth: a chain is a cube of one axis, whose levels are its depths."""
    tree, depth = plan.tree, sum(levels)
    if not design.everything:  # the root, of which a noisy count is released as it is
        own = plan.noise.get(levels)
        if own is None:
            raise NoVerdictError(
                f"{tree.name_of(levels)} is not measured, and below it survivors alone are: give "
                'it a share, or measure all (measure = "all")'
            )
        return Errors(np.zeros(1, dtype=np.int64), np.array([own.noise_variance]), own,
                      is_alone=True)  # fmt: skip
    if tree.leaves > MOST_ALONG:
        variance = design.largest_variance(levels)
        return Errors(np.arange(tree.cells(levels)), np.array([variance]), _noise(plan),
                      is_exact=False)  # fmt: skip
    codes, starts = _nodes(tree)
    shape = CubeShape.of([starts])
    noise = {
        shape.given((sum(k),)): max(what.mechanism.noise_variance, SMALLEST)
        for k, what in plan.by_levels.items()
        if isinstance(what, Measured)
    }
    public = None if design.public_depth < 0 else shape.given((design.public_depth,))
    own_variances = [noise.get((k,), np.inf) for k in range(shape.axes[0].depth + 1)]
    if public is not None:
        own_variances[: public[0] + 1] = [1.0] * (public[0] + 1)  # any will do
    squares = AxisSquares.of(shape.axes[0], own_variances)
    solver = ProductSolver(Observed(shape, noise, public), [squares])
    (level,) = cuboid = shape.given((depth,))
    numbers = np.zeros(len(codes[depth][0]), dtype=np.int64)
    for axis, k, code in zip(tree.axes, levels, codes[depth], strict=True):
        numbers = numbers * axis.size(k) + code
    variances = np.maximum(solver.variances_of(cuboid).of_cells(cuboid).ravel(), 0.0)
    found = Errors(numbers, variances, _noise(plan), chain=(squares, level))
    return _solved(plan, found, cuboid, solver)


def _of_tables(design: PlannedTables, levels: Levels) -> Errors:
    """Return those of a cuboid that is held in a table."""
    plan, cuboid = design.plan, design.shape.given(levels)
    cells = design.size(cuboid)
    variances = design.cell_variances(levels)
    exact = design.solver.is_exact
    if variances is None:
        exact, variances = False, np.array([design.largest_variance(levels)])
    found = Errors(np.arange(cells), np.ravel(variances), _noise(plan), is_exact=exact)
    return _solved(plan, found, cuboid, design.solver)


def _along_spine(plan: Plan, design: PlannedSpine, levels: Levels) -> Errors:
    """Return those of cuboids along a spine: without public facts they are those of tables."""
    if plan.constraints is None and design.is_best:
        try:
            return _of_tables(PlannedTables.of(plan), levels)
        except PlanError:  # no tables of that size
            pass
    cuboid = design.shape.given(levels)
    codes, _ = design.codes_of(cuboid)
    numbers = np.ravel_multi_index(
        tuple(code.astype(np.int64) for code in codes), plan.tree.sizes(levels)
    )
    variances = design.variances_at(cuboid, codes)
    return Errors(numbers, variances, _noise(plan), is_exact=design.is_best)


def _nodes(tree: Tree) -> tuple[list[Codes], list[Int64]]:
    """Return the nodes of each depth in tree order, and where the children of each begin."""
    codes, starts = [tuple(np.zeros(1, dtype=np.int32) for _ in tree.axes)], list[Int64]()
    for refined, level in tree.steps:
        above = codes[-1]
        first = np.asarray(tree.axes[refined].child_start[level - 1], dtype=np.int64)
        families = np.diff(first)[above[refined]]
        below = [np.repeat(code, families) for code in above]
        below[refined] = runs(first[:-1][above[refined]], families).astype(np.int32)
        codes.append(tuple(below))
        starts.append(run_starts(families))
    return codes, starts
