"""How often 95 % intervals hold the true counts, over releases of random plans under seeds.

Noise has a variance of 25 records² or a little more where it is least. *Before* cutting at 0 an
interval is that of the same estimate a billion records higher; *after* is as it is printed. Cells
of one release depend on each other, so Monte Carlo errors are over releases.

``python -m tests.acceptance.coverage [releases] [mechanism] [kind, or a part of it]`` prints a row
a kind. Answers are cuboids, all measured cells of them (`Release.level` with ``all=True``), sums
over areas (`Release.areas`), sums off a chain of survivors that are listed (`Release.cuboid`),
shares of the level above and differences of two areas (`Release.ratio`, `Release.difference`), and
counts below the edges of a column.
"""

import sys
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import NamedTuple

import numpy as np

import hedgerow as hr
from hedgerow.estimate.intervals import interval
from hedgerow.plan.cuboids import Measured, Summed, Survivors
from hedgerow.release.answers.questions import answers_of
from hedgerow.release.answers.ratios import pairs_of_areas, pairs_of_levels
from hedgerow.release.answers.sums import Sums
from hedgerow.release.descent.jobs import tell_nobody
from hedgerow.release.directory.cuboid_errors import USUAL
from hedgerow.release.distribution.cumulative import Cumulative
from hedgerow.tables.lists.lookup import Lookup
from tests.acceptance.dense import Dense, random_areas
from tests.acceptance.random_plans import KINDS, drawn

LEAST = 25
HIGHER = 10**9
WITHIN = 3
LOWEST, HIGHEST = 0.94, 0.97
MECHANISMS = {"gaussian": hr.DiscreteGaussian, "laplace": hr.DiscreteLaplace}


def with_wide_noise(kind, mechanism):
    """The first plan of a kind that is no trifle, with a variance of 25 where it is least."""
    every = (drawn(kind, seed) for seed in count())
    return widened(next(d for d in every if d.plan.mechanism is mechanism and is_worth_it(d.plan)))


def widened(made):
    """The same plan at a budget that leaves a variance of 25 where it is least."""
    plan, least = made.plan, np.inf
    for what in plan.by_levels.values():
        if isinstance(what, Measured | Summed):
            variance = what.mechanism.noise_variance
            least = min(least, variance / (what.scale**2 if isinstance(what, Summed) else 1))
    ratio = float(least) / (LEAST * 1.02)
    if isinstance(plan.budget, hr.Rho):
        budget = hr.Rho(plan.budget.rho * Fraction(ratio).limit_denominator())
    else:
        budget = hr.Epsilon(plan.budget.epsilon * Fraction(ratio**0.5).limit_denominator(10**6))
    return replace(made, plan=replace(plan, budget=budget), in_jobs=False)


def is_worth_it(plan):
    """Whether several cuboids are measured, and cells are neither few nor many."""
    kinds = [what for what in plan.by_levels.values() if isinstance(what, Measured | Summed)]
    several = len(kinds) > 1 or isinstance(plan.measure, hr.RunningSums)
    return several and 12 <= plan.tree.leaves <= 150


class Held(NamedTuple):
    """What one release says of one answer.

    Attributes:
        before: bool (sums): whether intervals hold before they are cut.
        after: the same of those that are printed.
        true: the true sums.
        unbounded: how many sets of ratios have no end, as the denominator may be 0; None of sums.
    """

    before: np.ndarray
    after: np.ndarray
    true: np.ndarray
    unbounded: int | None = None


class Reach:
    """Half widths of an answer, which follow from its variances: found once while these stay."""

    def __init__(self):
        self.known: dict[str, tuple[np.ndarray, np.ndarray]] = {}

    def held(self, name, errors, estimate, variance, true):
        """Of sums whose estimates a release has."""
        variances, reach = self.known.get(name, (None, None))
        if variances is None or not np.array_equal(variances, variance):
            reach = np.broadcast_to(errors.half_width(variance, USUAL), np.shape(estimate))
            self.known[name] = np.array(variance), reach
        allowance = getattr(errors, "allowance", None)
        total = None if errors.noise.mechanism is None else errors.total
        low, high = interval(estimate, reach, total)
        if allowance is not None:  # below survivors a part is not measured
            reach = reach + allowance
            low, high = errors.interval(estimate, variance, USUAL)
        after = (low <= true) & (true <= high)
        low, high = interval(estimate + HIGHER, reach, None)
        before = (low <= true + HIGHER) & (true + HIGHER <= high)
        return Held(before, after, np.asarray(true))


class Asked:
    """What is asked of each release of a plan."""

    def __init__(self, made):
        self.made, self.plan, self.tree = made, made.plan, made.plan.tree
        self.answers, self.reach = answers_of(made.plan), Reach()
        self.dense = Dense(made, made.release())
        self.areas = dict(self._areas(np.random.default_rng(made.seed)))
        self.is_column = made.kind.startswith("column")

    def _areas(self, rng):
        """Sums over areas of each axis by a level of the others, and their true counts."""
        if not isinstance(self.plan.measure, hr.All):
            return
        for number, axis in enumerate(self.tree.axes):
            level, lookup = random_areas(rng, axis)
            levels = [int(rng.integers(a.depth + 1)) for a in self.tree.axes]
            levels[number] = level
            if self.plan.table_of(tuple(levels)) is None:
                continue
            others = [(a, k) for i, (a, k) in enumerate(zip(self.tree.axes, levels, strict=True))
                      if i != number and k]  # fmt: skip
            by = {a.name: a.levels[k - 1] for a, k in others}
            sums = Sums(self.plan, by, Lookup.of(self.tree, lookup, "area"))
            counts = self.dense.truth(tuple(levels)).reshape(self.tree.sizes(levels))
            counts = np.moveaxis(counts, number, 0)
            found = sums.lookup
            true = [counts[found.members(i)].sum(axis=0).ravel() for i in range(len(found))]
            yield f"areas of {self.tree.name_of(tuple(levels))}", (sums, np.concatenate(true))

    def of(self, release):
        """What a release says of every answer."""
        content, plan, tree = release.content, self.plan, self.tree
        cells = self.answers.cells(content.stored, plan.levels)
        for levels, nodes in cells.items():
            if not nodes.variance.any():  # public, or the same as what is
                continue
            sizes = tree.sizes(levels)
            numbers = np.ravel_multi_index(nodes.codes, sizes)
            true = self.dense.truth(levels)[numbers].astype(np.int64)
            errors = content.errors(levels)
            name = tree.name_of(levels)
            yield name, self.reach.held(name, errors, nodes.estimate, nodes.variance, true)
        for name, (sums, true) in self.areas.items():
            numbers, _, estimate, variance, errors = self.answers.answer(content, sums, tell_nobody)
            if variance.any():
                known = true[numbers].astype(np.int64)
                yield name, self.reach.held(name, errors, estimate, variance, known)
            if len(sums.lookup) > 1:
                pairs = pairs_of_areas(content, sums.by, sums.lookup, [(0, 1)])
                frame, (one, other) = pairs.differences(USUAL), true.reshape(-1, sums.cells)[:2]
                low, high = frame["low"].to_numpy(), frame["high"].to_numpy()
                held = (low <= one - other) & (one - other <= high)
                if not (frame["standard_error"] > 0).all():  # of areas that are the same
                    continue
                yield f"difference of {name}", Held(held, held, one - other)
        yield from self._shares(content)
        if self.dense.chain and isinstance(plan.measure, Survivors):
            yield from self._off_the_chain(content)
        if self.is_column:
            cumulative = Cumulative.of_release(content)
            edges = np.arange(1, cumulative.bins + (cumulative.errors.total is None))
            variance = cumulative.error.between(np.zeros_like(edges), edges)
            true = np.cumsum(self.dense.truth(tree.chain[-1]))[edges - 1].astype(np.int64)
            estimate = cumulative.estimate[edges]
            name = "counts below edges"
            yield name, self.reach.held(name, cumulative.errors, estimate, variance, true)

    def _shares(self, content):
        """Shares of the level above, along each axis, of the cells of each cuboid."""
        for levels in self.plan.levels:
            for number, level in enumerate(levels):
                above = tuple(k - (a == number) for a, k in enumerate(levels))
                if not level or self.plan.is_public(levels) or above not in self.plan.by_levels:
                    continue
                fine, coarse = Sums.of(self.plan, levels), Sums.of(self.plan, above)
                try:
                    pairs = pairs_of_levels(content, fine.by, coarse.by, all_cells=True)
                except hr.ReleaseError as refused:  # listed ones alone would be chosen by noise
                    assert "unmeasured" in str(refused), refused  # noqa: PT017
                    continue
                every = fine.labelled(np.arange(fine.cells)).with_row_index("number")
                on = pairs.labels.columns
                numbers = pairs.labels.join(every, on=on, how="left", maintain_order="left")
                numbers = numbers["number"].to_numpy()
                truth, whole = self.dense.truth(levels), self.dense.truth(above)
                truth, whole = truth.ravel(), np.asarray(whole).reshape(self.tree.sizes(above))
                axis = self.tree.axes[number]
                whole = whole.take(axis.nodes_above(level - 1, level, np.arange(axis.size(level))),
                                   axis=number).ravel()  # fmt: skip
                there = whole[numbers] > 0
                share = truth[numbers] / np.maximum(whole[numbers], 1)
                given = pairs.joint(USUAL)
                low, high, bounded = given.sets(1.0)
                after = (low <= share + 1e-9) & (share - 1e-9 <= high)
                name = f"share of {self.tree.name_of(levels)} in {self.tree.name_of(above)}"
                apart = pairs.first.variance + pairs.second.variance - 2 * pairs.covariance
                there &= ~(apart < 1e-9)  # one cell and itself: a share of 1
                if there.any():
                    held = given.holds(share), after, truth[numbers]
                    unbounded = int((~bounded[there]).sum())
                    yield name, Held(*(each[there] for each in held), unbounded)

    def _off_the_chain(self, content):
        """Sums by cuboids off the chain that are listed and have an interval."""
        axes = self.tree.axes
        off = [tuple(axis.depth if a == i else 0 for i, axis in enumerate(axes))
               for a in range(len(axes))]  # fmt: skip
        for levels in off:
            if levels in self.plan.by_levels:
                continue
            sums = Sums.of(self.plan, levels)
            numbers, counts, estimate, variance, errors = self.answers.answer(
                content, sums, tell_nobody
            )
            there = (counts > 0) & errors.is_told(variance, USUAL)
            true = self.dense.truth(levels)[numbers].astype(np.int64)
            name = f"{self.tree.name_of(levels)} (off the chain, listed)"
            found = self.reach.held(name, errors, estimate, variance, true)
            yield name, Held(*(each[there] for each in found[:3]))


class Coverage(NamedTuple):
    """Of one answer over all releases: shares with their Monte Carlo errors.

    Attributes:
        before, after: of all sums.
        zeros: after cutting, of those whose true count is 0; NaN of none.
        sums: how many a release has, on average.
        unbounded: which share of sets of ratios has no end; NaN of sums.
    """

    before: tuple[float, float]
    after: tuple[float, float]
    zeros: tuple[float, float]
    sums: float
    unbounded: tuple[float, float]

    @property
    def faults(self):
        """What is not as it should be, within three Monte Carlo errors."""
        (before, error), (after, other) = self.before, self.after
        found = []
        if before < LOWEST - WITHIN * error:
            found.append("before low")
        if before > HIGHEST + WITHIN * error:
            found.append("before high")
        if after < LOWEST - WITHIN * other:
            found.append("after low")
        return found


def share(hits, cells):
    """A share of cells, and its error with releases as the independent draws."""
    hits, cells = np.array(hits, dtype=float), np.array(cells, dtype=float)
    if not cells.sum():
        return np.nan, np.nan
    mean = hits.sum() / cells.sum()
    error = (hits - mean * cells).std(ddof=1) / cells.mean() / np.sqrt(len(cells))
    return float(mean), float(error)


def coverage(made, releases):
    """Of each answer, over so many releases."""
    asked, kept = Asked(made), defaultdict(list)
    for seed in range(releases):
        for name, (before, after, true, endless) in asked.of(made.release(seed)):
            zero = true == 0
            own = before.sum(), after.sum(), len(true), after[zero].sum(), zero.sum()
            kept[name].append((*own, np.nan if endless is None else endless))
    found = {}
    for name, rows in kept.items():
        before, after, cells, of_zeros, zeros, endless = map(np.array, zip(*rows, strict=True))
        found[name] = Coverage(
            share(before, cells), share(after, cells), share(of_zeros, zeros), float(cells.mean()),
            share(endless, cells),
        )  # fmt: skip
    return found


def cases(mechanism, part=""):
    """The kinds that have plans with a mechanism."""
    kinds = [kind for kind in KINDS if part in kind]
    if mechanism is hr.DiscreteLaplace:
        kinds = [kind for kind in kinds if "running sums" not in kind]
    return kinds


def told(shares, which):
    """The least or the largest share with its error, in percent."""
    known = [each for each in shares if not np.isnan(each[0])]
    return "{:.2f} ± {:.2f}".format(*(100 * x for x in which(known))) if known else ""


def main(releases=400, mechanism="gaussian", part=""):
    """Simulate releases of a plan of each kind; print coverage and what is not as it should be."""
    write, every = sys.stdout.write, list[Coverage]()
    write(f"{mechanism}, {releases} releases each; in percent, with Monte Carlo errors\n")
    write(
        "| kind | answers | sums | before: least | largest | after: least | true zeros: least "
        "| unbounded sets: most |\n|---|---|---|---|---|---|---|---|\n"
    )
    for kind in cases(MECHANISMS[mechanism], part):
        made = with_wide_noise(kind, MECHANISMS[mechanism])
        found = coverage(made, int(releases))
        before, after, zeros, sums, endless = zip(*found.values(), strict=True)
        write(
            f"| {kind}, seed {made.seed} | {len(found)} | {sum(sums):.0f} | {told(before, min)} "
            f"| {told(before, max)} | {told(after, min)} | {told(zeros, min)} "
            f"| {told(endless, max)} |\n"
        )
        for name, each in found.items():
            if each.faults:
                own = f"{each.sums:.1f}", *(told([p], min) for p in each[:3])
                write(f"{kind}: {name}: {', '.join(each.faults)}: {'; '.join(own)}\n")
        every += found.values()
        sys.stdout.flush()
    wrong = sum(bool(each.faults) for each in every)
    errors = [each.before[1] for each in every]
    write(f"\n{len(every)} answers; {wrong} are not as they should be. Monte Carlo errors: ")
    write(f"median {100 * np.median(errors):.2f}, largest {100 * max(errors):.2f}.\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
