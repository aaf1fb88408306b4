"""What releases of random plans say of any sums, beside dense least squares: how far it is off.

``python -m tests.acceptance.estimates [plans] [first]`` prints a table by kind of workload.
"""

import sys
from collections import Counter, defaultdict
from itertools import islice
from typing import NamedTuple

import numpy as np

import hedgerow as hr
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.plan.planned_spine import PlannedSpine
from hedgerow.release.distribution.cumulative import Cumulative
from tests.acceptance.dense import Dense, every_cuboid, random_areas
from tests.acceptance.random_plans import KINDS, drawn

ALLOWED = 1e-9


class Compared(NamedTuple):
    """Numbers of a release beside those of dense matrices.

    Attributes:
        what: which they are.
        off: the largest difference, in parts of max(1, the number).
        scaled: the same in parts of max(1, the number, the scale of the noise).
        numbers: how many there are.
        below: of stated variances that are bounds, how far the exact ones may be below.
    """

    what: str
    off: float
    scaled: float
    numbers: int
    below: float = 0.0


def largest(parts):
    return float(np.max(parts, initial=0.0))


class Beside:
    """A release of a plan, and dense least squares of its noisy counts."""

    def __init__(self, made):
        self.made, self.plan, self.tree = made, made.plan, made.plan.tree
        self.rng = np.random.default_rng(made.seed)
        self.release = made.release()
        self.dense = Dense(made, self.release)
        self.whole = isinstance(self.plan.measure, hr.All | hr.RunningSums)
        self.noise = max(variance for *_, variance, _ in self.dense.rows.values())
        self.floor = 1.0  # the least part of a stated variance that the exact one is
        design = self.plan.design
        if isinstance(design, PlannedSpine) and not design.is_best:
            self.floor = float(design.model.ratios.min() / design.model.excess)

    def gap(self, what, stated, dense, numbers=None, *, bounds=False):
        """Numbers beside dense ones: estimates, or variances, which may be bounds."""
        stated, dense = np.asarray(stated, dtype=float), np.asarray(dense, dtype=float)
        apart, below = np.abs(stated - dense), 0.0
        if bounds and self.floor < 1:
            apart = np.maximum(np.maximum(dense - stated, self.floor * stated - dense), 0.0)
            below = 1 - self.floor
        scale = np.maximum(1.0, np.abs(dense))
        noise = self.noise ** (0.5 if "estimates" in what else 1)
        numbers = dense.size if numbers is None else numbers
        wide = largest(apart / np.maximum(scale, noise))
        return Compared(what, largest(apart / scale), wide, numbers, below)

    def compared(self, what, levels, sums, estimate, variance):
        """Estimates and variances of sums, beside those of the likeliest solution."""
        yield from min(
            (
                self.gap(f"{what}: estimates", estimate, each.estimates(sums)),
                self.gap(f"{what}: variances", variance, each.variances_of(sums), bounds=True),
            )
            for each in self.dense.solutions(levels)
        )

    def every(self):
        yield from self.cells()
        yield from self.figures()
        yield from self.cuboids()
        yield from self.areas()
        yield from self.covariances()
        if self.made.kind.startswith("column"):
            yield from self.ranges()

    @property
    def way(self):
        """What estimates, in a word."""
        design = self.plan.design
        if self.dense.chain:
            return "running sums" if isinstance(self.plan.measure, hr.RunningSums) else "tree"
        return type(getattr(design, "model", None) or design.solver).__name__

    @property
    def worse(self):
        """How much larger errors are than the least possible, where weights are a product."""
        if not self.dense.is_nominal:
            return 0.0
        every = [c for c in self.plan.levels if self.plan.is_whole(c)]
        whole = [c for c in self.dense.rows if self.plan.is_whole(c)]
        best, found = self.dense.solution(whole, nominal=False), [1.0]
        for levels in every:
            sums = self.dense.sums(levels)
            own = min(each.variances_of(sums).mean() for each in self.dense.solutions(levels))
            least = best.variances_of(sums).mean()
            found.append(own / least if own > 1e-9 else 1.0)
        return max(found) ** 0.5 - 1

    def cells(self):
        """Every measured cell of each cuboid of the plan."""
        conditional = None
        if self.dense.chain and not self.whole:
            conditional = hr.reestimate(self.release, hr.LeastSquares())
        for levels in self.plan.levels:
            name, sums = self.tree.name_of(levels), self.dense.sums(levels)
            try:
                frame = self.release.level(name, all=True)
            except ReleaseError:
                assert not self.whole
                frame = None
            if frame is not None:
                cells = self.dense.numbers(levels, frame)
                estimate = frame["estimate"].to_numpy()
                variance = frame["standard_error"].to_numpy() ** 2
                if self.whole or (self.plan.is_whole(levels) and not self.dense.chain):
                    # others are public counts of 0, below which nothing is measured
                    assert set(cells) >= set(np.flatnonzero(sums.any(axis=1)))
                    yield from self.compared("cells", levels, sums[cells], estimate, variance)
                elif levels in self.dense.rows:
                    _, noisy, true, _ = self.dense.rows[levels]
                    yield self.gap("survivors: estimates", estimate, noisy)
                    yield self.gap("survivors: variances", variance, true, len(noisy))
            if conditional is not None:
                frame = conditional.level(name)
                cells = self.dense.numbers(levels, frame)
                told = np.isfinite(frame["standard_error"].to_numpy())
                cells, frame = cells[told], frame.filter(told)
                yield from self.compared(
                    "survivors, least squares", levels, sums[cells], frame["estimate"].to_numpy(),
                    frame["standard_error"].to_numpy() ** 2,
                )  # fmt: skip

    def figures(self):
        """The mean and the largest variance of each cuboid, as forecasts have them."""
        design, forecast = self.plan.design, hr.forecast(self.plan)
        for levels, rmse, bound in zip(
            self.plan.levels, forecast["rmse"], forecast["max_95"], strict=True
        ):
            below = self.dense.chain and any(self.plan.public or ())  # forecasts know no counts
            if below or not (self.whole or self.plan.is_whole(levels)):
                continue
            sums = self.dense.sums(levels)
            exact = [s.variances_of(sums[sums.any(axis=1)]) for s in self.dense.solutions(levels)]
            if self.dense.chain and not self.whole:  # raw
                exact = [self.dense.rows[levels][2]] if levels in self.dense.rows else []
            if not exact or not np.size(exact[0]):
                continue
            for what, figure, of in (
                ("mean variances", rmse**2, np.mean),
                ("largest variances", design.largest_variance(levels), np.max),
            ):
                yield min(self.gap(what, figure, of(each), bounds=True) for each in exact)
            far = bound**2 >= min(map(np.max, exact)) * (1 - ALLOWED) - ALLOWED
            assert far or design.is_raw(levels)

    def cuboids(self):
        """Sums by cuboids that the plan does not have."""
        design = self.plan.design
        asked = [c for c in every_cuboid(self.tree) if c not in self.plan.by_levels]
        for levels in asked:
            if not self.whole or self.plan.table_of(levels) is None:
                continue
            assert design.is_answerable(levels)
            by = self.by(levels)
            frame = self.release.cuboid(**by)
            cells = self.dense.numbers(levels, frame)
            yield from self.compared(
                "sums off the plan", levels, self.dense.sums(levels)[cells],
                frame["estimate"].to_numpy(), frame["standard_error"].to_numpy() ** 2,
            )  # fmt: skip

    def by(self, levels, but=None):
        axes = zip(self.tree.axes, levels, strict=True)
        return {a.name: a.levels[k - 1] for i, (a, k) in enumerate(axes) if k and i != but}

    def areas(self):
        """Sums over areas that overlap, beside levels of the other axes."""
        for _ in range(2):
            axis = int(self.rng.integers(len(self.tree.axes)))
            level, lookup = random_areas(self.rng, self.tree.axes[axis])
            levels = [int(self.rng.integers(a.depth + 1)) for a in self.tree.axes]
            levels[axis] = level
            column = self.tree.axes[axis].columns_of(level)[-1]
            try:
                frame = self.release.areas(lookup, column="area", by=self.by(levels, axis))
            except ReleaseError:
                answerable = self.plan.table_of(tuple(levels)) is not None
                assert not (isinstance(self.plan.measure, hr.All) and answerable)
                continue
            nodes = self.tree.axes[axis].keys(level)[column].to_list()
            rest = [*levels]
            rest[axis] = 0
            beside, own = self.dense.sums(tuple(rest)), self.dense.codes[axis]
            above = self.tree.axes[axis].ancestors(level)[own]
            sums = []
            numbers = self.dense.numbers(tuple(rest), frame)
            for area, cell in zip(frame["area"].to_list(), numbers, strict=True):
                members = set(lookup.filter(area=area)[column].to_list())
                inside = np.array([code in members for code in nodes])
                sums.append(beside[cell] * inside[above])
            stacked = np.array(sums)
            yield from self.compared(
                "areas", tuple(levels), stacked, frame["estimate"].to_numpy(),
                frame["standard_error"].to_numpy() ** 2,
            )  # fmt: skip

    def covariances(self):
        """Covariances of cells, and so the variances of any weighted sums of them."""
        if not self.dense.rows or isinstance(self.plan.measure, hr.RunningSums):
            return
        again = hr.reestimate(self.release, hr.LeastSquares())
        cells, sums, places = [], [], []
        for levels in self.plan.levels:
            if not (self.whole or self.dense.chain or self.plan.is_whole(levels)):
                continue
            frame = again.level(self.tree.name_of(levels))
            numbers = self.dense.numbers(levels, frame)
            told = np.isfinite(frame["standard_error"].to_numpy())
            for row in np.flatnonzero(told)[self.rng.permutation(told.sum())[:4]]:
                cells.append((self.tree.name_of(levels), int(row)))
                sums.append(self.dense.sums(levels)[numbers[row]])
                places.append(levels)
        if not cells:
            return
        try:
            found = again.covariance(cells)
        except EstimateError:  # along a spine, and of cubes in several boxes
            return
        stacked, solution = np.array(sums), self.dense.solutions(places[-1])[0]
        yield self.gap("covariances", found, solution.covariance_of(stacked))
        weights = self.rng.normal(size=(5, len(cells)))
        weighted = np.einsum("ij,jk,ik->i", weights, found, weights)
        yield self.gap(
            "weighted sums: variances", weighted, solution.variances_of(weights @ stacked)
        )

    def ranges(self):
        """Counts between edges of a numeric column."""
        cumulative = Cumulative.of_release(self.release.content)
        bins = cumulative.bins
        pairs = np.sort(self.rng.integers(0, bins + 1, (40, 2)), axis=1)
        first, last = pairs[pairs[:, 0] < pairs[:, 1]].T
        if self.dense.codes.shape[1] < bins:  # nothing below a public total of 0
            return
        leaves = np.arange(bins)
        sums = ((first[:, None] <= leaves) & (leaves < last[:, None])).astype(float)
        estimate = cumulative.estimate[last] - cumulative.estimate[first]
        variance = cumulative.error.between(first, last)
        yield from self.compared("ranges", self.tree.chain[-1], sums, estimate, variance)


def compare(kind, seed):
    """All that is compared of one plan."""
    made = drawn(kind, seed)
    with made.limits():
        beside = Beside(made)
        return beside, list(beside.every())


def plans(number, first=0):
    """Kinds by turns, each with seeds of its own."""
    every = ((kind, seed) for seed in range(first, first + number) for kind in KINDS)
    return list(islice(every, number))


def main(number=500, first=0):
    """Compare, print what was compared by kind, and what is off."""
    by_kind, by_what, wrong = defaultdict(list), defaultdict(list), 0
    ways, worse = defaultdict(Counter), defaultdict(float)
    write = sys.stdout.write
    for kind, seed in plans(number, first):
        beside, found = compare(kind, seed)
        by_kind[kind].append(found)
        ways[kind][beside.way] += 1
        worse[kind] = max(worse[kind], beside.worse)
        for each in found:
            by_what[each.what].append(each)
            if not each.scaled <= ALLOWED:
                wrong += 1
                write(f"{kind}, seed {seed}: {each}\n")
                sys.stdout.flush()
    write(
        "| kind | plans | estimated by | numbers | strict | with noise | bounds | not best by |\n"
    )
    write("|---|---|---|---|---|---|---|---|\n")
    for kind, found in by_kind.items():
        bounds = sum(any(each.below for each in one) for one in found) or ""
        how = ", ".join(f"{way} {times}" for way, times in ways[kind].most_common())
        above = f"{worse[kind]:.1%}" if worse[kind] > 1e-6 else ""
        every = [each for one in found for each in one]
        write(f"| {kind} | {len(found)} | {how} | {row(every)} | {bounds} | {above} |\n")
    write("\n| what | numbers | strict | with noise |\n|---|---|---|---|\n")
    for what, every in by_what.items():
        write(f"| {what} | {row(every)} |\n")
    write(f"\n{wrong} differences are above {ALLOWED:.0e}.\n")
    return int(wrong > 0)


def row(every):
    """How many numbers, and their largest differences, in cells of a table."""
    apart, scaled = max(each.off for each in every), max(each.scaled for each in every)
    return f"{sum(each.numbers for each in every):,} | {apart:.1e} | {scaled:.1e}"


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
