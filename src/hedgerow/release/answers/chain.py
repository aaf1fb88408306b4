"""What a chain tells of any cells: least squares over its tree, or below survivors what is left.

Errors of areas take a pass over the tree for each group of areas that do not overlap; variances are
those of `hedgerow.estimate.tree.sums`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from hedgerow.arrays import Codes, Float64, Int64, Levels
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import LeastSquares
from hedgerow.estimate.tree.sums import covariance, sums_of_leaves
from hedgerow.limits import MOST_NOISY_OF_SUMS
from hedgerow.plan.chain import PlannedChain, PlannedSums
from hedgerow.plan.cuboids import Measured, Survivors
from hedgerow.release.answers.answers import Answer, Answers, Covariances
from hedgerow.release.answers.measured_nodes import (
    check_stored,
    estimated,
    estimated_again,
    least_squares_of,
    measured_nodes,
)
from hedgerow.release.answers.sums import Sums
from hedgerow.release.descent.chain import Outline
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.layouts import Dense
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Stored, uneven
from hedgerow.release.descent.sums import BINS, ROOT
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.stored import Content, noise_variances, public_nodes, total_of
from hedgerow.release.passes import ESTIMATION
from hedgerow.release.preflight import check_combines
from hedgerow.release.survivor_sums import SurvivorErrors, survivor_sums
from hedgerow.tables.tree import cell_codes


class ChainAnswers(Answers[PlannedChain]):
    """Those of nested cuboids."""

    most_noisy = MOST_NOISY_OF_SUMS

    @property
    def outline(self) -> Outline:
        """Of the plan."""
        return Outline.of(self.plan)

    # --- cells ----------------------------------------------------------------------------------

    def cells(
        self, stored: Stored, released: Mapping[Levels, Nodes], wanted: Sequence[Levels]
    ) -> dict[Levels, Nodes]:
        """Return all measured nodes of depths, in tree order; below survivors of those measured."""
        if self.design.everything:
            nodes, _ = least_squares_of(stored, self.outline, released)
            every = dict(zip(self.plan.levels, nodes, strict=True))
        else:
            every = self._uncombined(stored, released, self.plan.tree.depth)
        return {levels: every[levels] for levels in wanted if levels in every}

    def every_cell(self, content: Content, levels: Levels) -> Nodes:
        """Return all measured nodes of a depth; below survivors with their noisy counts alone."""
        if self.design.everything:
            return super().every_cell(content, levels)
        plan, what = self.plan, self.plan.by_levels[levels]
        if not (isinstance(what, Measured) or plan.is_public(levels)):
            raise ReleaseError(
                f"{plan.tree.name_of(levels)!r} is {what.kind}, so cells that are not listed have "
                f"no estimates of their own; ask for the listed ones alone, or for a measured "
                f"cuboid"
            )
        noisy = {levels: content.noisy(levels)} if isinstance(what, Measured) else {}
        return self._alone(content, levels, noisy)

    def _alone(self, content: Content, levels: Levels, noisy: dict[Levels, Int64]) -> Nodes:
        """Return the nodes of a depth that were measured, in tree order; no other file is read."""
        plan, depth = self.plan, sum(levels)
        last = max(depth, self.outline.public_depth)  # public counts below are known, too
        released = {each: content.listed(each) for each in plan.tree.chain[: last + 1]}
        stored = Stored(plan.tree, noisy, noise_variances(plan), public_nodes(plan, released))
        return self._uncombined(stored, released, depth)[levels]

    def _uncombined(
        self, stored: Stored, released: Mapping[Levels, Nodes], last: int
    ) -> dict[Levels, Nodes]:
        """Return of each depth that was measured, or is public, all nodes by its counts alone."""
        found = dict[Levels, Nodes]()
        nodes, layers = measured_nodes(stored, self.outline, released, last)
        for levels, cells, layer in zip(self.plan.tree.chain, nodes, layers, strict=False):
            variance = np.broadcast_to(layer.variance, len(cells))
            if np.isfinite(variance).all():
                estimate = np.asarray(layer.noisy, dtype=np.float64)
                found[levels] = replace(cells, estimate=estimate, variance=variance)
        return found

    def listed(self, stored: Stored, released: Mapping[Levels, Nodes]) -> dict[Levels, Nodes]:
        """Return the listed nodes with their estimates; below survivors of measured depths."""
        if self.outline.public_depth >= 0 and not len(released[self.plan.tree.cuboid(0)]):
            check_stored(stored)
            return _of_an_empty_table(stored, released)
        return super().listed(stored, released)

    def noisy_cells(self, content: Content, levels: Levels, noisy: Int64) -> tuple[Codes, Int64]:
        """Return the nodes of a depth that were measured, in tree order, and their noisy counts."""
        return self._alone(content, levels, {levels: noisy}).codes, noisy

    def again(
        self, content: Content, method: Estimator
    ) -> tuple[dict[Levels, Nodes], Covariances | None]:
        """Return the nodes of each depth.

        The release's own method, below survivors, makes the release again; others, and that of
        another version of the estimation, are given the nodes that it lists.
        """
        plan, listed, stored = self.plan, content.nodes, content.stored
        check_combines(method, plan)
        check_stored(stored)
        if self.outline.public_depth >= 0 and not len(listed[plan.tree.cuboid(0)]):
            return _of_an_empty_table(stored, listed), None
        if isinstance(method, LeastSquares):
            nodes, layers = least_squares_of(stored, self.outline, listed)
            return dict(zip(plan.levels, nodes, strict=True)), partial(covariance_of_nodes, layers)
        own = method.to_dict() == content.estimator.to_dict() and content.estimation == ESTIMATION
        if isinstance(plan.measure, Survivors) and not own:
            return estimated(stored, self.outline, method, listed), None
        return estimated_again(stored, method, plan), None

    # --- sums -----------------------------------------------------------------------------------

    def check_sums(self, content: Content, sums: Sums) -> None:
        """Raise a ReleaseError if noisy counts are too many."""
        del sums
        self.check_read(content, "a cuboid off the tree")

    def answer(self, content: Content, sums: Sums, on_fraction: OnFraction) -> Answer:
        """Return all sums of what was measured, or below survivors those that are listed."""
        del on_fraction
        total = total_of(content)
        if self.design.everything and (sums.lookup is not None or total):
            answer = _least_squares(
                sums, *measured_nodes(content.stored, self.outline, content.nodes)
            )
            return *answer, CuboidErrors.of_sums(self.plan, len(answer[0]), total)
        numbers, counts = sums.counted(content)
        codes = cell_codes(self.plan.tree, sums.levels, numbers)
        found = survivor_sums(content, sums.levels, codes)
        # noise decided which of all sums are listed
        known = CuboidErrors.of_sums(self.plan, sums.many, total)
        errors = SurvivorErrors(known.noise, known.cells, known.total, found.allowance)
        return numbers, counts, found.estimate, found.variance, errors

    def planned_variances(self, sums: Sums, on_fraction: OnFraction) -> Float64:
        """Return the variances of all sums over areas from public facts: float64 (sums).

        Where counts below the total are public, every node is taken to have records.
        """
        del on_fraction
        plan, tree, released = self.plan, self.plan.tree, dict[Levels, Nodes]()
        for levels in plan.levels:
            many = tree.cells(levels) if plan.is_public(levels) else 0
            codes = cell_codes(tree, levels, np.arange(many))
            released[levels] = Nodes.exact(codes, np.ones(many, dtype=np.int64))
        variances = noise_variances(plan)
        noisy = {levels: np.zeros(tree.cells(levels), dtype=np.int64) for levels in variances}
        stored = Stored(tree, noisy, variances, public_nodes(plan, released))
        return _least_squares(sums, *measured_nodes(stored, self.outline, released))[3]


class SumsAnswers(ChainAnswers):
    """Those of running sums of the bins of one numeric axis."""

    def listed(self, stored: Stored, released: Mapping[Levels, Nodes]) -> dict[Levels, Nodes]:
        """Return the total and the listed bins, decoded from the sums."""
        check_stored(stored)
        root, listed = released[ROOT], released[BINS]
        public = None if self.plan.public is None else int(root.counts.sum())
        if public == 0:
            return _of_an_empty_table(stored, released)
        sums = cast("Int64", stored.noisy(BINS, Dense(self.plan.tree, BINS)))
        errors = cast("PlannedSums", self.design).decoded
        cumulative, at = errors.estimate(sums, public), listed.codes[0]
        if public is None:
            here = slice(len(cumulative) - len(root), None)  # none below a total of 0
            root = replace(root, estimate=cumulative[here], variance=errors.before[here])
        bins = replace(listed, estimate=np.diff(cumulative)[at], variance=errors.leaves[at])
        return {ROOT: root, BINS: bins}


def _least_squares(
    sums: Sums, nodes: Sequence[Nodes], layers: Sequence[Layer]
) -> tuple[Int64, Int64, Float64, Float64]:
    """Return all sums over areas, or else those that have measured leaves.

    Returns:
        int64 (sums): their numbers; released counts; and float64 (sums): estimates and variances.
    """
    tree, leaves, lookup = sums.plan.tree, nodes[-1], sums.lookup
    axes = zip(tree.axes, sums.levels, leaves.codes, strict=True)
    own, group = sums.split([axis.ancestors(k)[code] for axis, k, code in axes])
    numbers, areas = np.arange(0 if lookup is None else sums.many), [np.zeros(1, dtype=np.int64)]
    if lookup is None:
        numbers, group = np.unique(group, return_inverse=True)
    else:
        areas = lookup.partitions(tree.axes[lookup.axis].size(lookup.level))
    counts = np.zeros(len(numbers), dtype=np.int64)

    def partitions() -> Iterator[Int64]:
        for area_of in areas:  # one after the other: each has a number for every leaf
            area = area_of[own]
            groups = np.where(area < 0, -1, area * sums.cells + group)
            np.add.at(counts, groups[area >= 0], leaves.counts[area >= 0])
            yield groups

    if not len(leaves):
        return numbers, counts, *np.zeros((2, len(numbers)))
    found = sums_of_leaves(layers, partitions(), len(numbers))
    return numbers, counts, found.estimate, found.variance


def covariance_of_nodes(layers: Sequence[Layer], cells: Sequence[tuple[Levels, int]]) -> Float64:
    """Return covariances of nodes, each a depth's cuboid and its place there."""
    return covariance(layers, [(sum(levels), row) for levels, row in cells])


def _of_an_empty_table(stored: Stored, listed: Mapping[Levels, Nodes]) -> dict[Levels, Nodes]:
    """Return no node of any cuboid: below a public total of 0 nothing is measured or listed."""
    for levels, nodes in listed.items():
        if len(nodes):
            name = stored.tree.name_of(levels)
            raise ReleaseError(f"the public total is 0, but nodes of {name} are listed")
        if len(stored.measured.get(levels, ())):
            raise uneven(stored.tree, levels)
    return dict(listed)
