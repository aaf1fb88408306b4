"""Least squares over the leaves of a table by dense matrices, from the definition of its cuboids.

Minimises Σ w_i (y_i - a_i x)² over the leaves x, a_i being 1 at the leaves of noisy count y_i's
cell, subject to the public counts; sums of x that are estimable do not depend on which minimum is
taken. What is asked of it are estimates Qx and their covariance under the variances of the noise.
Leaves where public facts let nobody be are left out.
"""

import itertools
from functools import cached_property

import numpy as np
import polars as pl

from hedgerow.estimate.running_sums import Strategy
from hedgerow.plan.cuboids import Measured, Summed
from tests.estimate.dense import Dense as Oracle


def variance_of(mechanism):
    """The variance of a draw, from the probabilities of all whole numbers."""
    parameter = float(mechanism.parameter)
    if mechanism.price.norm == 1:
        ratio = np.exp(-1 / parameter)
        return 2 * ratio / (1 - ratio) ** 2
    k = np.arange(1.0, 40 + 12 * np.sqrt(parameter))
    mass = np.exp(-(k**2) / (2 * parameter))
    return 2 * (k**2 @ mass) / (1 + 2 * mass.sum())


class Solution(Oracle):
    """Estimates of leaves from some rows, of which the public ones come last."""

    noisy: np.ndarray

    def estimates(self, sums):
        return sums @ self.gain @ self.noisy

    def covariance_of(self, sums):
        first = sums @ self.gain
        return (first * self.variances) @ first.T


class Dense:
    """The cells, noisy counts and solutions of a release."""

    def __init__(self, drawn, release):
        self.plan, self.release, self.counts = drawn.plan, release, drawn.counts
        self.tree = drawn.plan.tree
        sizes = self.tree.sizes(self.tree.chain[-1])
        codes = np.indices(sizes).reshape(len(sizes), -1)
        kept = np.ones(codes.shape[1], dtype=bool)
        if drawn.allowed is not None:
            kept &= drawn.allowed[codes[0], codes[drawn.grouped]]
        self.codes = codes[:, kept]
        self.chain = self.plan.design.depth_of(self.plan.levels[0]) is not None
        if self.chain and self.plan.public is not None:  # nothing is measured below a public 0
            public = self.plan.public
            self.codes = self.codes[:, self.truth(public)[self.cell(public)] > 0]
        self.solved: dict = {}

    # --- cells ----------------------------------------------------------------------------------

    def cell(self, levels, codes=None):
        """For each leaf the number of its cell, row by row: int64 (leaves)."""
        axes = zip(self.tree.axes, levels, self.codes if codes is None else codes, strict=True)
        above = tuple(axis.ancestors(k)[code] for axis, k, code in axes)
        return np.ravel_multi_index(above, self.tree.sizes(levels))

    def sums(self, levels):
        """The sums of a cuboid: 0/1 (cells, leaves)."""
        found = np.zeros((self.tree.cells(levels), self.codes.shape[1]))
        found[self.cell(levels), np.arange(self.codes.shape[1])] = 1
        return found

    def truth(self, levels):
        """The true counts of a cuboid, row by row."""
        cells = self.cell(levels, self.counts.codes)
        return np.bincount(cells, self.counts.values, self.tree.cells(levels))

    def numbers(self, levels, frame):
        """The numbers of the cells whose codes stand in a frame."""
        found = np.zeros(len(frame), dtype=np.int64)
        for axis, level in zip(self.tree.axes, levels, strict=True):
            if level:
                keys = axis.keys(level).with_row_index("node")
                on = keys.columns[1:]
                code = frame.select(on).join(keys, on=on, how="left", maintain_order="left")["node"]
                found = found * axis.size(level) + code.to_numpy()
        return found

    # --- measurements ---------------------------------------------------------------------------

    def running_sums(self):
        """The sums of all rows of bins, from the weights: (rows × bins, leaves)."""
        last, _ = self.tree.steps[-1]
        rows = self.cell(self.tree.chain[-2])
        weights = Strategy.of(self.tree.axes[last].leaves).weights
        lag = np.arange(len(weights))[:, None] - self.codes[last]  # of each sum behind each leaf
        each = np.where(lag >= 0, weights[np.maximum(lag, 0)], 0).astype(float)
        own = [each * (rows == row) for row in np.unique(rows)]
        return np.concatenate([np.zeros((0, len(rows))), *own])

    @cached_property
    def rows(self):
        """For each measured cuboid its rows, noisy counts, variance, and that of a product.

        Where shares are a product over the axes, so are the weights of estimates: those of wide
        noise under neighbours that change every cuboid alike.
        """
        found = {}
        measured = {k: w for k, w in self.plan.by_levels.items() if isinstance(w, Measured)}
        finest = measured.get(max(measured, key=sum, default=None))
        for levels, what in self.plan.by_levels.items():
            if isinstance(what, Summed):
                noisy = self.release.content.measured[levels].astype(float)
                found[levels] = self.running_sums(), noisy, variance_of(what.mechanism), 1.0
            elif isinstance(what, Measured):
                power = 2 if what.mechanism.price.norm == 1 else 1
                nominal = float(finest.share / what.share) ** power
                frame = self.release.measurements(self.tree.name_of(levels))
                cells = self.numbers(levels, frame)
                noisy = frame["noisy_count"].to_numpy().astype(float)
                found[levels] = (
                    self.sums(levels)[cells],
                    noisy,
                    variance_of(what.mechanism),
                    nominal,
                )
        return found

    @property
    def is_nominal(self):
        """Whether weights are a product over the axes, as shares are."""
        design = self.plan.design
        if self.chain:
            return False
        model = getattr(design, "model", None)
        if model is not None:
            return type(model).__name__ == "Nested"
        return design.squares is not None

    def solution(self, cuboids=None, *, nominal=None):
        """The solution from the noisy counts of some cuboids, all that there are unless given."""
        cuboids = tuple(self.rows) if cuboids is None else tuple(cuboids)
        nominal = self.is_nominal if nominal is None else nominal
        if (cuboids, nominal) not in self.solved:
            used = [self.rows[levels] for levels in cuboids]
            rows = [(a, each if nominal else true, true) for a, _, true, each in used]
            noisy = [y for _, y, *_ in used]
            if self.plan.public is not None:
                exact = self.sums(self.plan.public)
                there = exact.any(axis=1)
                rows.append((exact[there], 0.0, 0.0))
                noisy.append(self.truth(self.plan.public)[there])
            found = self.solved[cuboids, nominal] = Solution.of(rows)
            found.noisy = np.concatenate(noisy)
        return self.solved[cuboids, nominal]

    def solutions(self, levels):
        """The solutions that may be what tells most of a cuboid: several where they tell as much.

        Of a cube of which survivors are measured, those of the largest cuboids measured whole, each
        with all that is coarser; else the one of all that is measured whole.
        """
        whole = [c for c in self.rows if self.plan.is_whole(c)]
        if self.chain or len(whole) == len(self.rows) or not self.is_nominal:
            return [self.solution(self.rows if self.chain else whole)]
        levels = tuple(next(k for k in range(level + 1) if axis.size(k) == axis.size(level))
                       for axis, level in zip(self.tree.axes, levels, strict=True))  # fmt: skip
        tops = [c for c in whole if not any(c != d and within(c, d) for d in whole)]
        found = [self.solution([c for c in whole if within(c, top)])
                 for top in tops if within(levels, top)]  # fmt: skip
        means = [each.variances_of(self.sums(levels)).mean() for each in found]
        return [s for s, mean in zip(found, means, strict=True) if mean <= min(means) * (1 + 1e-9)]


def within(coarse, fine):
    return all(a <= b for a, b in zip(coarse, fine, strict=True))


def every_cuboid(tree):
    """Every combination of levels."""
    return list(itertools.product(*(range(axis.depth + 1) for axis in tree.axes)))


def random_areas(rng, axis):
    """Areas of an axis that overlap: a column of codes of a level, and a column of areas."""
    level = int(rng.integers(1, axis.depth + 1))
    nodes, areas = axis.keys(level), []
    column = axis.columns_of(level)[-1]
    for number in range(int(rng.integers(1, 5))):
        there = rng.random(len(nodes)) < rng.uniform(0.2, 0.9)
        there[rng.integers(len(nodes))] = True
        codes = nodes[column].filter(pl.Series(there))
        areas.append(pl.DataFrame({column: codes, "area": [f"area {number}"] * len(codes)}))
    return level, pl.concat(areas)
