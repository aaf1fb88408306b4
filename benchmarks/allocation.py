"""Ko's two convex programs: cvxpy, and a general solver where cvxpy has no words, beside ours."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from scipy.optimize import minimize

from benchmarks.clock import fastest, near
from benchmarks.machine import needed
from benchmarks.page import Benchmark, Ratio
from hedgerow.arrays import Float64
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.plan.allocation.programs import (
    LargeCounts,
    LevelCost,
    PriorCells,
    least_budgets,
    least_error,
    total_error,
)
from studies.page import markdown

LEVELS = (4, 16, 64)
LEVELS_WITH_PRIOR = (4, 16)
BUDGET = 1.5
STEP = 1e-3
"""By how much budgets differ, relatively, from question to question."""
QUESTIONS, QUESTIONS_WITH_PRIOR = 11, 4
LARGEST = 1e4
AGREEMENT = 1e-3
"""By how much a peer's error may exceed ours, relatively, to count as an answer."""

TEXT = """The smallest error for a budget (program 6 of Ko et al.) and the smallest budget for an
error (program 7), for counts that are large compared with the noise: cvxpy with Clarabel, the
program built once, with the budget or the error as a parameter, and solved repeatedly; and program
6 with a prior and clipping at 0, whose error cvxpy's atoms cannot express: SciPy's SLSQP with our
gradient. Laplace noise; levels of 1, 4, 16, … nodes up to 4¹⁰; with the prior up to {values:,}
distinct counts a level. Each run has a new budget (or target error), larger by a thousandth.
*Worse* is the relative excess of the other program's optimum over ours.

{figures}"""

VALUES = 2_000
Found = tuple[Ratio, float]
"""A program solved by both, and the peer's objective over ours, less 1."""


def nodes(count: int) -> Float64:
    """Of each level."""
    sizes: Float64 = 4.0 ** np.minimum(np.arange(count), 10)
    return sizes


def large(count: int) -> list[LevelCost]:
    """Levels of large counts under Laplace noise."""
    return [LargeCounts(2 * size, 2, 1.0) for size in nodes(count)]


def with_prior(count: int) -> list[LevelCost]:
    """Levels whose counts are known, log-normal, smaller the deeper."""
    rng = np.random.default_rng(7)
    levels = list[LevelCost]()
    for depth, size in enumerate(nodes(count)):
        many = int(min(size, 20_000))
        drawn = np.floor(rng.lognormal(8 - 0.7 * min(depth, 10), 1.5, many))
        values, times = np.unique(drawn, return_counts=True)
        kept = slice(0, VALUES)
        weights = times.astype(np.float64) * (size / many)
        levels.append(PriorCells(DiscreteLaplace.cell_error, values[kept], weights[kept], 1.0))
    return levels


def cvxpy_programs(
    cvxpy: Any, levels: Sequence[LevelCost]
) -> dict[str, Callable[[float], Float64]]:
    """Both programs for levels of large counts, each a function of its budget or its error."""
    costs = np.array([level.derivative(1.0) for level in levels])
    part = cvxpy.Variable(len(levels))
    given = cvxpy.Parameter(pos=True)
    error = cvxpy.sum(cvxpy.multiply(costs / costs.max(), cvxpy.power(part, -2)))
    least = cvxpy.Problem(cvxpy.Minimize(error), [cvxpy.sum(part) == given])
    cheapest = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(part)), [error <= given])

    def solved(problem: Any, unit: float, asked: float) -> Float64:
        given.value = asked / unit
        with catch_warnings():
            simplefilter("ignore")  # "solution may be inaccurate": its distance is shown
            problem.solve(cvxpy.CLARABEL)
        found: Float64 = part.value
        return found

    return {"6": partial(solved, least, 1.0), "7": partial(solved, cheapest, costs.max())}


def slsqp(levels: Sequence[LevelCost], budget: float, scale: float) -> Float64:
    """Program (6) by a general solver."""
    count = len(levels)
    found: Float64 = minimize(
        lambda b: total_error(levels, b) / scale,
        np.full(count, budget / count),
        jac=lambda b: (
            np.array([g.derivative(x, 1) for g, x in zip(levels, b, strict=True)]) / scale
        ),
        method="SLSQP",
        bounds=[(1e-3 * budget / count, budget)] * count,
        constraints={"type": "eq", "fun": lambda b: b.sum() - budget, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 1000},
    ).x
    return found


def solved(
    what: str,
    peer: str,
    both: tuple[Callable[[float], Float64], Callable[[float], Float64]],
    questions: Sequence[float],
    judged: Callable[[Float64], float],
) -> Found:
    """A program solved by us and by a peer, judged at the first question."""
    tasks = dict(zip(("ours", "theirs"), both, strict=True))
    seconds = (time.wall for time in fastest(tasks, questions).values())
    ours, theirs = (judged(task(questions[0])) for task in both)
    return Ratio(what, peer, *seconds), theirs / ours - 1


def without_prior(cvxpy: Any, count: int) -> Iterator[Found]:
    """Both programs against cvxpy."""
    levels = large(count)
    peer = "cvxpy (Clarabel)"
    best = total_error(levels, least_error(levels, BUDGET).budgets)
    peers = cvxpy_programs(cvxpy, levels)
    yield solved(
        f"program 6, {count} levels", peer,
        (lambda budget: least_error(levels, budget).budgets, peers["6"]),
        near(BUDGET, QUESTIONS, STEP),
        lambda budgets: total_error(levels, budgets * (BUDGET / budgets.sum())),
    )  # fmt: skip
    yield solved(
        f"program 7, {count} levels", peer,
        (lambda target: least_budgets(levels, target, LARGEST), peers["7"]),
        near(best, QUESTIONS, STEP),
        # scaled to just reach the target; the error goes with the inverse square of the budgets
        lambda budgets: float(budgets.sum()) * (total_error(levels, budgets) / best) ** 0.5,
    )  # fmt: skip


def prior(count: int) -> Found:
    """Program (6) with a prior against SLSQP."""
    levels = with_prior(count)
    best = total_error(levels, least_error(levels, BUDGET).budgets)
    return solved(
        f"program 6 with a prior, {count} levels", "SciPy (SLSQP)",
        (lambda b: least_error(levels, b).budgets, lambda b: slsqp(levels, b, best)),
        near(BUDGET, QUESTIONS_WITH_PRIOR, STEP),
        lambda budgets: total_error(levels, budgets),
    )  # fmt: skip


def measured() -> Benchmark:
    """All sizes."""
    cvxpy = needed("cvxpy", "cvxpy")
    found = [one for count in LEVELS for one in without_prior(cvxpy, count)]
    found += [prior(count) for count in LEVELS_WITH_PRIOR]
    rows = [
        (one.what, one.peer, worse, "" if worse < AGREEMENT else "not the optimum")
        for one, worse in found
    ]
    text = TEXT.format(
        values=VALUES, figures=markdown("program | peer | worse | ", rows, " |  | .0e")
    )
    return Benchmark("Allocation programs", text, [one for one, _ in found], figures=found)
