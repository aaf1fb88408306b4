"""Importance: what a squared error of one count costs, by level."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import PlanError, kind_of, listed
from hedgerow.plan.allocation.allocation import Problem
from hedgerow.plan.prior import Prior

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Relative:
    """Relative errors: the squared error of a count N costs 1/max(N, 1)².

    N is the prior's. Without one the mean count of the depth stands for it, total/n for n nodes, so
    that the cost is n², the unknown total² being common to all depths.
    """


@dataclass(frozen=True, slots=True)
class PerLevel:
    """Every depth the same, however many nodes it has: n of them cost 1/n each.

    What is minimised is then the sum of the depths' mean squared errors. With importance 1 for all
    counts the few coarse ones hardly matter beside the many fine ones.
    """


Importance = Sequence[float] | Mapping[str, float] | Relative | PerLevel | None
"""What a squared error of one count costs: one number a measurable depth, coarsest first; or some
by the cuboid's name, and 1 for the others; or `Relative` or `PerLevel`; None: 1 for all."""


def check_importance(importance: Importance) -> None:
    """Nothing, if the numbers are importances.

    Raises:
        PlanError: one below 0 or not finite, or all 0.
    """
    if importance is None or isinstance(importance, Relative | PerLevel):
        return
    numbers = importance.values() if isinstance(importance, Mapping) else importance
    given = listed("importance", numbers, "numbers, Relative() or PerLevel()", PlanError)
    for number in given:
        if not isinstance(number, Real):
            raise PlanError(f"an importance must be a number, got {kind_of(number)}")
        if not isfinite(number) or number < 0:
            raise PlanError(
                f"importances must be finite and 0 or more, got {number:g}; 0 says that a level "
                f"does not matter"
            )
    if not isinstance(importance, Mapping) and not any(given):
        raise PlanError("importances must not all be 0; give 1 to each level that matters")


def importances(
    problem: Problem, importance: Sequence[float] | Mapping[str, float] | PerLevel | None
) -> Floats:
    """One number for each of `Problem.depths`: float64 (depths).

    Raises:
        PlanError: too many or too few, or a cuboid that is none of these depths.
    """
    names = problem.cuboids
    if importance is None:
        return np.ones(len(names))
    if isinstance(importance, PerLevel):
        return 1 / np.array([problem.tree.nodes(t) for t in problem.depths], dtype=np.float64)
    if isinstance(importance, Mapping):
        unknown = [name for name in importance if name not in names]
        if unknown:
            raise PlanError(
                f"importance of {unknown[0]!r}: the depths that can be measured are "
                f"{', '.join(names)}"
            )
        numbers = [float(importance.get(name, 1)) for name in names]
    else:
        numbers = [float(number) for number in importance]
        if len(numbers) != len(names):
            raise PlanError(
                f"this plan can measure {len(names)} depths ({'; '.join(names)}), so it needs as "
                f"many importances, got {len(numbers)}"
            )
    if not any(numbers):
        raise PlanError("importances must not all be 0; give 1 to each level that matters")
    return np.array(numbers)


def mean_importances(problem: Problem, importance: Importance, prior: Prior | None) -> list[float]:
    """The mean cost of a squared error of one count, one for each of `Problem.depths`.

    Raises:
        PlanError: importances or a prior that do not fit.
    """
    if prior is not None:
        prior.check_fits(problem.tree)
    if not isinstance(importance, Relative):
        return [float(number) for number in importances(problem, importance)]
    nodes = [problem.tree.nodes(t) for t in problem.depths]
    if prior is None:
        return [float(n) ** 2 for n in nodes]
    found = []
    for t, n in zip(problem.depths, nodes, strict=True):
        counts, times = prior.values(t, n)
        found.append(float(times @ np.maximum(counts.astype(np.float64), 1) ** -2) / n)
    return found
