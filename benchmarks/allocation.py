"""Ko's two convex programs: cvxpy, and a general solver where cvxpy has no words, beside ours."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from benchmarks.clock import fastest
from benchmarks.machine import needed
from benchmarks.page import Benchmark, Ratio, publish, table
from hedgerow.noise.mechanisms import DiscreteLaplace
from hedgerow.plan.programs import (
    Cells,
    LargeCounts,
    Level,
    least_budgets,
    least_error,
    total_error,
)

Floats = NDArray[np.float64]

LEVELS = (4, 16, 64)
LEVELS_WITH_PRIOR = (4, 16)
RUNS = 10
BUDGET = 1.5
LARGEST = 1e4
AGREEMENT = 1e-3
"""By how much a peer's error may exceed ours, relatively, to count as an answer."""

TEXT = """The least error that a budget buys (program 6 of Ko et al.) and the least budget for an
error (program 7), where counts are large against the noise: cvxpy with Clarabel, the program built
once and solved again; and program 6 with a prior whose counts are cut off at 0, whose error cvxpy's
atoms cannot express: SciPy's SLSQP with our gradient. Laplace noise; levels of 1, 4, 16, … nodes up
to 4¹⁰; with the prior up to {values:,} distinct counts a level. *Worse* is by how much the peer's
optimum misses ours, relatively.

{figures}"""

VALUES = 2_000


@dataclass(frozen=True, slots=True)
class Found:
    """A program solved by both.

    Attributes:
        what: the program.
        peer: who else.
        worse: the peer's objective over ours, less 1.
        ours, theirs: seconds.
    """

    what: str
    peer: str
    worse: float
    ours: float
    theirs: float


def nodes(count: int) -> Floats:
    """Of each level."""
    sizes: Floats = 4.0 ** np.minimum(np.arange(count), 10)
    return sizes


def large(count: int) -> list[Level]:
    """Levels of large counts under Laplace noise."""
    return [LargeCounts(2 * size, 2, 1.0) for size in nodes(count)]


def with_prior(count: int) -> list[Level]:
    """Levels whose counts are known, log-normal, smaller the deeper."""
    rng, levels = np.random.default_rng(7), list[Level]()
    for depth, size in enumerate(nodes(count)):
        many = int(min(size, 20_000))
        drawn = np.floor(rng.lognormal(8 - 0.7 * min(depth, 10), 1.5, many))
        values, times = np.unique(drawn, return_counts=True)
        kept = slice(0, VALUES)
        weights = times.astype(np.float64) * (size / many)
        levels.append(Cells(DiscreteLaplace.cell_error, values[kept], weights[kept], 1.0))
    return levels


def cvxpy_programs(
    cvxpy: Any, levels: Sequence[Level], target: float
) -> dict[str, Callable[[], Floats]]:
    """Both programs for levels of large counts."""
    costs = np.array([level.error(1.0) for level in levels])
    part = cvxpy.Variable(len(levels))
    error = cvxpy.sum(cvxpy.multiply(costs / costs.max(), cvxpy.power(part, -2)))
    least = cvxpy.Problem(cvxpy.Minimize(error), [cvxpy.sum(part) == BUDGET])
    cheapest = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(part)), [error <= target / costs.max()])

    def solved(problem: Any) -> Floats:
        with catch_warnings():
            simplefilter("ignore")  # "solution may be inaccurate": its distance is shown
            problem.solve(cvxpy.CLARABEL)
        found: Floats = part.value
        return found

    return {"6": partial(solved, least), "7": partial(solved, cheapest)}


def slsqp(levels: Sequence[Level], scale: float) -> Floats:
    """Program (6) by a general solver."""
    count = len(levels)
    found: Floats = minimize(
        lambda b: total_error(levels, b) / scale,
        np.full(count, BUDGET / count),
        jac=lambda b: np.array([g.slope(x) for g, x in zip(levels, b, strict=True)]) / scale,
        method="SLSQP",
        bounds=[(1e-3 * BUDGET / count, BUDGET)] * count,
        constraints={"type": "eq", "fun": lambda b: b.sum() - BUDGET, "jac": np.ones_like},
        options={"ftol": 1e-12, "maxiter": 1000},
    ).x
    return found


def without_prior(cvxpy: Any, count: int) -> list[Found]:
    """Both programs against cvxpy."""
    levels = large(count)
    best = total_error(levels, least_error(levels, BUDGET).budgets)
    peers = cvxpy_programs(cvxpy, levels, best)
    ours: dict[str, Callable[[], Floats]] = {
        "6": lambda: least_error(levels, BUDGET).budgets,
        "7": lambda: least_budgets(levels, best, LARGEST),
    }
    judged: dict[str, Callable[[Floats], float]] = {
        "6": lambda budgets: total_error(levels, budgets * (BUDGET / budgets.sum())),
        # scaled to just reach the target; the error goes with the inverse square of the budgets
        "7": lambda budgets: float(budgets.sum()) * (total_error(levels, budgets) / best) ** 0.5,
    }
    found = list[Found]()
    for program in ("6", "7"):
        times = fastest({"ours": ours[program], "theirs": peers[program]}, RUNS)
        objective = judged[program]
        worse = objective(peers[program]()) / objective(ours[program]()) - 1
        what = f"program {program}, {count} levels"
        found.append(
            Found(what, "cvxpy (Clarabel)", worse, times["ours"].wall, times["theirs"].wall)
        )
    return found


def prior(count: int) -> Found:
    """Program (6) with a prior against SLSQP."""
    levels = with_prior(count)
    best = total_error(levels, least_error(levels, BUDGET).budgets)
    tasks = {
        "ours": lambda: least_error(levels, BUDGET),
        "theirs": lambda: slsqp(levels, best),
    }
    times = fastest(tasks, 3)
    worse = total_error(levels, slsqp(levels, best)) / best - 1
    what = f"program 6 with a prior, {count} levels"
    return Found(what, "SciPy (SLSQP)", worse, times["ours"].wall, times["theirs"].wall)


def measured() -> Benchmark:
    """All sizes."""
    cvxpy = needed("cvxpy", "cvxpy")
    found = [one for count in LEVELS for one in without_prior(cvxpy, count)]
    found += [prior(count) for count in LEVELS_WITH_PRIOR]
    rows = [
        [
            one.what,
            one.peer,
            f"{one.worse:.0e}",
            "" if one.worse < AGREEMENT else "not the optimum",
        ]
        for one in found
    ]
    figures = table(["program", "peer", "worse", ""], rows)
    ratios = tuple(Ratio(one.what, one.peer, one.ours, one.theirs) for one in found)
    text = TEXT.format(values=VALUES, figures=figures)
    kept = {one.what: {"peer": one.peer, "worse": one.worse} for one in found}
    return Benchmark("Allocation programs", text, ratios, (), kept)


def main() -> None:
    """Measure and publish."""
    publish("allocation", measured)


if __name__ == "__main__":
    main()
