"""Criteria of random plans: the least budget beside dense matrices, and simulated releases.

``python -m tests.acceptance.criteria [plans] [releases]`` prints a table.

The law of all errors of a cuboid is e = Q G η: G from dense least squares over the leaves, η drawn
by NumPy's generator, normal or Laplace. At the budget that is found every criterion is kept with
its probability, and at 2 % less one is not, as far as draws tell (three standard errors). Where
bounds alone are known the first is asked. Then releases at that budget are simulated.
"""

import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import ceil, sqrt

import numpy as np
from scipy.stats import binom

import hedgerow as hr
from hedgerow.errors import HedgerowError
from hedgerow.plan.criteria.least import planned_at
from hedgerow.plan.cuboids import Measured, Summed
from hedgerow.privacy.budget import value_of, with_value
from tests.acceptance.dense import Dense, variance_of
from tests.acceptance.random_plans import KINDS, drawn

ALPHA = 1e-4
LESS = Fraction(98, 100)
NUMBERS = 4e7
MOST_RUNS = 4_000_000
SURE = 3.0


class Planned(Dense):
    """Dense least squares of what a plan measures, before anything is."""

    def __init__(self, made):
        super().__init__(made, None)
        if self.chain:  # a plan knows no counts below which nothing is
            sizes = self.tree.sizes(self.tree.chain[-1])
            self.codes = np.indices(sizes).reshape(len(sizes), -1)

    @cached_property
    def rows(self):
        found, power = {}, self.plan.mechanism.price.power
        shares = {k: w.share for k, w in self.plan.by_levels.items() if isinstance(w, Measured)}
        finest = max(shares, key=sum, default=None)
        for levels, what in self.plan.by_levels.items():
            if isinstance(what, Summed):
                rows = self.running_sums()
                found[levels] = rows, np.zeros(len(rows)), variance_of(what.mechanism), 1.0
            elif isinstance(what, Measured) and (levels in self.plan.whole or not self.chain):
                sums = self.sums(levels)
                nominal = float(shares[finest] / what.share) ** power
                rows = sums[sums.any(axis=1)]
                found[levels] = rows, np.zeros(len(rows)), variance_of(what.mechanism), nominal
        return found

    def truth(self, levels):
        return np.zeros(self.tree.cells(levels))

    def root(self, levels):
        """R of errors R ξ, ξ of variance 1 and independent: (cells that may hold records, …).

        Of normal noise that of the covariance, smaller than G; G times deviations of other noise.
        """
        solution, sums = self.solutions(levels)[0], self.sums(levels)
        sums = sums[sums.any(axis=1)]
        if self.plan.mechanism.price.power > 1:
            return sums @ solution.gain * np.sqrt(solution.variances)
        sizes, basis = np.linalg.eigh(solution.covariance_of(sums))
        return basis * np.sqrt(np.maximum(sizes, 0))


def probability(made, criterion, seed):
    """With which the estimates keep a criterion, and its standard error."""
    rng, kept = np.random.default_rng(seed), 0
    root = Planned(made).root(criterion.levels(made.plan.tree))
    runs = int(min(MOST_RUNS, NUMBERS / root.size**0.5))
    within = float(criterion.within)
    within = min(within, np.floor(within) + 0.5)
    least, block = ceil(criterion.cells * len(root)), max(1, int(1e6 / root.shape[1]))
    for first in range(0, runs, block):
        size = root.shape[1], min(block, runs - first)
        normal = made.plan.mechanism.price.power == 1
        unit = rng.normal(size=size) if normal else rng.laplace(scale=sqrt(0.5), size=size)
        off = np.abs(root @ unit)
        kept += ((off <= within).sum(axis=0) >= least).sum()
    return kept / runs, sqrt(max(kept / runs * (1 - kept / runs), 1e-9) / runs)


def with_criteria(kind, seed):
    """A random plan with one to three random criteria of cuboids that keep them at some budget."""
    made, rng = drawn(kind, seed), np.random.default_rng([seed, 36])
    plan, design = made.plan, made.plan.design
    able = [k for k in plan.levels if k in plan.whole and not plan.is_public(k)]
    able = [k for k in able if 0 < design.mean_variance(k) < np.inf]
    if isinstance(plan.measure, hr.Survivors) and design.depth_of(plan.levels[0]) is not None:
        able = [k for k in able if k in plan.noise]
    if not able:
        return None
    criteria = []
    for _ in range(rng.integers(1, 4)):
        levels = able[rng.integers(len(able))]
        far = sqrt(design.mean_variance(levels)) * rng.uniform(1.0, 4.0)
        criteria.append(
            hr.Criterion(
                plan.tree.name_of(levels),
                Fraction(max(far, 1)).limit_denominator(10),
                cells=["1", "0.95", "0.75", "0.5"][rng.integers(4)],
                probability=["0.8", "0.9", "0.95", "0.99"][rng.integers(4)],
            )
        )
    return replace(made, plan=replace(plan, accept=tuple(criteria)))


@dataclass(frozen=True)
class Found:
    """A plan at its least budget.

    Attributes:
        made: the plan there.
        factor: that budget over the one that the plan had.
        bounds: whether bounds alone tell some criterion.
        faults: what is wrong.
    """

    made: object
    factor: float
    bounds: bool
    faults: list


def judged(kind, seed):
    """The least budget of a plan, judged by dense matrices; None where there is none."""
    made = with_criteria(kind, seed)
    if made is None:
        return None
    try:
        budget = hr.least_budget(made.plan)
    except HedgerowError as reason:
        return Found(made, 0.0, bounds=False, faults=[f"{reason}"])
    faults = []
    at = replace(made, plan=planned_at(made.plan, budget))
    less = replace(made, plan=planned_at(made.plan, with_value(budget, value_of(budget) * LESS)))
    verdicts = hr.verdicts(at.plan)
    bounds = any(each.is_bound for each in verdicts)
    fails = False
    for verdict in verdicts:
        criterion = verdict.criterion
        own, error = probability(at, criterion, seed)
        if own < criterion.probability - SURE * error:
            faults.append(f"{criterion!r}: {own:.5f} ± {error:.5f}")
        under, error = probability(less, criterion, seed)
        fails |= under < criterion.probability - SURE * error
    if not (fails or bounds):
        faults.append("2 % less keeps every criterion, too")
    return Found(at, float(value_of(budget) / value_of(made.plan.budget)), bounds, faults)


def simulated(made, releases):
    """How often estimates, and whole counts, keep each criterion: (criteria, 2), by releases."""
    kept = np.zeros((len(made.plan.accept), 2))
    dense = Dense(made, None)
    for run in range(releases):
        release = made.release(bits=1_000_000 + run)
        for number, criterion in enumerate(made.plan.accept):
            levels = criterion.levels(made.plan.tree)
            frame = release.level(criterion.cuboid, all=True)
            truth = dense.truth(levels)[dense.numbers(levels, frame)]
            for place, column in enumerate(("estimate", "count")):
                off = np.abs(frame[column].to_numpy() - truth)
                # cells that no public fact or count leaves any room are right
                cells = made.plan.design.open_cells(levels)
                wrong = (off > float(criterion.within)).sum()
                kept[number, place] += cells - wrong >= ceil(criterion.cells * cells)
    return kept


def too_few(made, kept, releases):
    """Which criteria are kept less often than is said."""
    faults = []
    for verdict, (estimates, counts) in zip(hr.verdicts(made.plan), kept, strict=True):
        asked = float(verdict.criterion.probability)
        if binom.cdf(estimates, releases, asked) < ALPHA:
            faults.append(f"estimates: {verdict.criterion!r}: {estimates / releases:.3f}")
        if verdict.kept == "yes" and binom.cdf(counts, releases, asked) < ALPHA:
            faults.append(f"whole counts: {verdict.criterion!r}: {counts / releases:.3f}")
    return faults


def main(plans=30, releases=400, simulate=10):
    """Judge plans of all kinds by turns, and simulate releases of the first of them."""
    write, wrong, number, seed = sys.stdout.write, 0, 0, 0
    kinds = list(KINDS)
    write("| kind | budget × | criteria | estimates keep | whole counts keep |\n")
    write("|---|---|---|---|---|\n")
    while number < plans:
        kind = kinds[seed % len(kinds)]
        found = judged(kind, seed)
        seed += 1
        if found is None:
            continue
        number += 1
        faults = list(found.faults)
        shares = ["", ""]
        if number <= simulate and found.factor:
            kept = simulated(found.made, releases)
            faults += too_few(found.made, kept, releases)
            shares = [", ".join(f"{x / releases:.3f}" for x in column) for column in kept.T]
        wrong += len(faults)
        asked = "; ".join(map(repr, found.made.plan.accept))
        known = " (bounds)" if found.bounds else ""
        write(f"| {kind} | {found.factor:.3g}{known} | {asked} | {shares[0]} | {shares[1]} |\n")
        for fault in faults:
            write(f"  {kind}, {seed - 1}: {fault}\n")
        sys.stdout.flush()
    write(f"\n{wrong} faults.\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
