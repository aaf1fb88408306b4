"""What studies release again and again: trips, one of a person's replaced, under a seed."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

import hedgerow as hr
from hedgerow.arrays import Float64
from hedgerow.estimate.estimator import Estimator
from hedgerow.evaluate.method import CuboidCounts, Released, Setting
from hedgerow.evaluate.simulate import seeded_bits
from hedgerow.kernels import core_count
from hedgerow.noise.bits import Bits
from hedgerow.plan.allocation.allocation import Allocation
from hedgerow.plan.cuboids import Measure
from hedgerow.plan.workload import Workload
from hedgerow.privacy.budget import Budget
from hedgerow.privacy.neighbours import Neighbours
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.execution import in_memory
from studies.tables import dense

DELTA = "1e-8"


def within(epsilon: str | Fraction) -> hr.EpsilonDelta:
    """The budget of trips: ε, and δ = 1e-8."""
    return hr.EpsilonDelta(epsilon, DELTA)


def plan_of(
    tree: hr.Tree,
    budget: Budget,
    measure: Measure,
    allocation: Allocation | None = None,
    workload: Workload | None = None,
    neighbours: Neighbours | None = None,
) -> hr.Plan:
    """The plan of a table: equal shares, and neighbours add-remove, unless others are given."""
    return hr.make_plan(
        tree,
        budget=budget,
        neighbours=neighbours or hr.AddRemove(),
        mechanism=hr.DiscreteLaplace if isinstance(budget, hr.Epsilon) else hr.DiscreteGaussian,
        measure=measure,
        allocation=allocation or hr.Uniform(),
        workload=workload,
    )


trips_plan = partial(plan_of, neighbours=hr.Replace())
"""That of a table of trips, of which one of a person's is replaced."""


def seeded(counts: hr.Counts, plan: hr.Plan, estimator: Estimator, seed: int) -> hr.Release:
    """A release of a public table that anyone can make again."""
    return in_memory(counts, plan, estimator=estimator, bits=seeded_bits(seed))


def by_pass(plan: hr.Plan, estimator: Estimator) -> Setting:
    """The pass under a plan, to be released again and again."""
    return Setting("", plan, estimator, workers=core_count())


@dataclass(frozen=True)
class Unprojected:
    """Least squares of a release's noisy counts: may be negative and fractional."""

    plan: hr.Plan

    def released(self, counts: hr.Counts, bits: Bits) -> Released:
        """The estimates of all cells of each cuboid."""
        plan = self.plan
        content = in_memory(counts, plan, estimator=plan.design.usual, bits=bits).content
        every = answers_of(plan).cells(content.stored, plan.levels)
        for levels, nodes in every.items():
            table = dense(plan.tree, levels, nodes.codes, nodes.estimate)
            yield levels, CuboidCounts(None, table.ravel())


def rmse(squares: Float64) -> float:
    """The root of the mean squared error of releases, records."""
    return float(np.sqrt(squares.mean()))


def ratio(over: Float64, under: Float64) -> tuple[float, float]:
    """The ratio of two RMSE of the same seeds, and its Monte Carlo standard error."""
    found = rmse(over) / rmse(under)
    parts = over / over.mean() - under / under.mean()
    return found, found / 2 * parts.std(ddof=1) / np.sqrt(len(parts))
