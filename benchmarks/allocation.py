"""Ko's two convex programs: cvxpy, and a general solver where cvxpy has no words, beside ours."""

from collections.abc import Callable, Sequence
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
    rng, levels = np.random.default_rng(7), list[LevelCost]()
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
    part, given = cvxpy.Variable(len(levels)), cvxpy.Parameter(pos=True)
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


def without_prior(cvxpy: Any, count: int) -> list[Found]:
    """Both programs against cvxpy."""
    levels = large(count)
    best = total_error(levels, least_error(levels, BUDGET).budgets)
    peers = cvxpy_programs(cvxpy, levels)
    ours: dict[str, Callable[[float], Float64]] = {
        "6": lambda budget: least_error(levels, budget).budgets,
        "7": lambda target: least_budgets(levels, target, LARGEST),
    }
    asked = {"6": BUDGET, "7": best}
    judged: dict[str, Callable[[Float64], float]] = {
        "6": lambda budgets: total_error(levels, budgets * (BUDGET / budgets.sum())),
        # scaled to just reach the target; the error goes with the inverse square of the budgets
        "7": lambda budgets: float(budgets.sum()) * (total_error(levels, budgets) / best) ** 0.5,
    }
    found = list[Found]()
    for program in ("6", "7"):
        tasks = {"ours": ours[program], "theirs": peers[program]}
        times = fastest(tasks, near(asked[program], QUESTIONS, STEP))
        objective = judged[program]
        found_by = {name: objective(task(asked[program])) for name, task in tasks.items()}
        worse = found_by["theirs"] / found_by["ours"] - 1
        what = f"program {program}, {count} levels"
        found.append(
            (Ratio(what, "cvxpy (Clarabel)", times["ours"].wall, times["theirs"].wall), worse)
        )
    return found


def prior(count: int) -> Found:
    """Program (6) with a prior against SLSQP."""
    levels = with_prior(count)
    best = total_error(levels, least_error(levels, BUDGET).budgets)
    tasks: dict[str, Callable[[float], object]] = {
        "ours": lambda budget: least_error(levels, budget),
        "theirs": lambda budget: slsqp(levels, budget, best),
    }
    times = fastest(tasks, near(BUDGET, QUESTIONS_WITH_PRIOR, STEP))
    worse = total_error(levels, slsqp(levels, BUDGET, best)) / best - 1
    what = f"program 6 with a prior, {count} levels"
    return Ratio(what, "SciPy (SLSQP)", times["ours"].wall, times["theirs"].wall), worse


def measured() -> Benchmark:
    """All sizes."""
    cvxpy = needed("cvxpy", "cvxpy")
    found = [one for count in LEVELS for one in without_prior(cvxpy, count)]
    found += [prior(count) for count in LEVELS_WITH_PRIOR]
    rows = [
        [one.what, one.peer, f"{worse:.0e}", "" if worse < AGREEMENT else "not the optimum"]
        for one, worse in found
    ]
    figures = markdown(["program", "peer", "worse", ""], rows)
    ratios = tuple(one for one, _ in found)
    text = TEXT.format(values=VALUES, figures=figures)
    kept = {one.what: {"peer": one.peer, "worse": worse} for one, worse in found}
    return Benchmark("Allocation programs", text, ratios, (), kept)
