"""What a chain tells of any cells: least squares over its tree, or below survivors what is left.

Errors of areas take a pass over the tree for each group of areas that do not overlap; variances are
those of `hedgerow.estimate.tree.sums`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import numpy as np
import polars as pl

from hedgerow.arrays import Codes, Float64, Int64, Levels
from hedgerow.distribution.plan import cumulative_error
from hedgerow.errors import ReleaseError
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.intervals import Confidence, interval
from hedgerow.estimate.running_sums import Decoded
from hedgerow.estimate.tree.layers import Layer
from hedgerow.estimate.tree.least_squares import LeastSquares, least_squares, upward
from hedgerow.estimate.tree.sums import covariance, sums_of_leaves, variance_of_sums
from hedgerow.limits import MOST_NOISY_OF_SUMS
from hedgerow.plan.cuboids import Measured
from hedgerow.release.answers.answers import (
    Answers,
    AreaWork,
    Covariances,
    listed_sums,
)
from hedgerow.release.answers.measured_nodes import (
    check_stored,
    estimated,
    estimated_again,
    least_squares_of,
    measured_nodes,
)
from hedgerow.release.area_sums import AreaSums
from hedgerow.release.descent.chain import Outline
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.layouts import Dense
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Stored, uneven
from hedgerow.release.descent.sums import BINS, ROOT
from hedgerow.release.directory.cuboid_errors import CuboidErrors, outside
from hedgerow.release.directory.measurements import (
    CONTRADICTED,
    COUNT,
    ESTIMATE,
    HIGH,
    LOW,
    STANDARD_ERROR,
    error_columns,
)
from hedgerow.release.directory.stored import Content, noise_variances, public_nodes
from hedgerow.release.passes import ESTIMATION
from hedgerow.release.preflight import check_combines
from hedgerow.release.survivor_sums import survivor_sums
from hedgerow.tables.counts import label_nodes

WIDEST = 0.5
"""Of the noise's half width, what intervals may be wider by for what was not measured."""
FIRMER = 0.1
"""The part of the chance to miss at which an estimate must be above 0 for ``low`` to be."""


@dataclass(frozen=True, slots=True)
class ChainAnswers(Answers):
    """Those of nested cuboids."""

    @property
    def everything(self) -> bool:
        """Whether all nodes were measured."""
        return self.plan.design.is_answerable(self.plan.tree.chain[-1])

    @property
    def outline(self) -> Outline:
        """Of the plan."""
        return Outline.of(self.plan)

    def cells(
        self, stored: Stored, released: Mapping[Levels, Nodes], wanted: Sequence[Levels]
    ) -> dict[Levels, Nodes]:
        """Return all measured nodes of depths, in tree order."""
        nodes, _ = least_squares_of(stored, self.outline, released)
        every = dict(zip(self.plan.levels, nodes, strict=True))
        return {levels: every[levels] for levels in wanted}

    def every_cell(self, content: Content, levels: Levels) -> Nodes:
        """Return all measured nodes of a depth; below survivors with their noisy counts alone."""
        if self.everything:
            return self.cells(content.stored, content.nodes, [levels])[levels]
        plan, what = self.plan, self.plan.by_levels[levels]
        if not (isinstance(what, Measured) or plan.is_public(levels)):
            raise ReleaseError(
                f"{plan.tree.name_of(levels)!r} is {what.kind}, so cells that are not listed have "
                f"no estimates of their own; ask for the listed ones alone, or for a measured "
                f"cuboid"
            )
        noisy = content.noisy(levels) if isinstance(what, Measured) else None
        found = self._measured(content, levels, noisy)
        if noisy is None:
            return Nodes.exact(found.codes, found.counts)
        variance = np.full(len(found), noise_variances(plan)[levels])
        return replace(found, estimate=noisy.astype(np.float64), variance=variance)

    def _measured(self, content: Content, levels: Levels, noisy: Int64 | None) -> Nodes:
        """Return the nodes of a depth that were measured, in tree order; no other file is read."""
        plan, depth = self.plan, sum(levels)
        last = max(depth, self.outline.public_depth)  # public counts below are known, too
        released = {each: content.listed(each) for each in plan.tree.chain[: last + 1]}
        given = {} if noisy is None else {levels: noisy}
        public = public_nodes(plan, released)
        stored = Stored(plan.tree, given, noise_variances(plan), public)
        return measured_nodes(stored, self.outline, released, depth)[0][depth]

    def listed(self, stored: Stored, released: Mapping[Levels, Nodes]) -> dict[Levels, Nodes]:
        """Return the listed nodes with their estimates; below survivors of measured depths."""
        check_stored(stored)
        if self.outline.public_depth >= 0 and not len(released[self.plan.tree.cuboid(0)]):
            return _of_an_empty_table(stored, released)
        if self.everything:
            return Answers.listed(self, stored, released)
        found = dict[Levels, Nodes]()
        nodes, layers = measured_nodes(stored, self.outline, released)
        for levels, cells, layer in zip(self.plan.levels, nodes, layers, strict=True):
            variance = np.broadcast_to(layer.variance, len(cells))
            if np.isfinite(variance).all():
                estimate = np.asarray(layer.noisy, dtype=np.float64)
                told = replace(cells, estimate=estimate, variance=variance)
                found[levels] = told.take(np.flatnonzero(told.counts))
        return found

    def most_cells(self, levels: Levels) -> int:
        """Return all nodes of the depth."""
        return self.plan.tree.cells(levels)

    def noisy_cells(self, content: Content, levels: Levels, noisy: Int64) -> tuple[Codes, Int64]:
        """Return the nodes of a depth that were measured, in tree order, and their noisy counts."""
        return self._measured(content, levels, noisy).codes, noisy

    # --- sums off the chain ---------------------------------------------------------------------

    def sums(self, content: Content, wanted: Levels, confidence: Confidence) -> pl.DataFrame:
        """Return all sums of what was measured, or below survivors those that are listed."""
        if (cells := content.noisy_cells) > MOST_NOISY_OF_SUMS:
            raise ReleaseError(
                f"errors of a cuboid off the tree need all {cells:,} noisy counts, and can be had "
                f"up to {MOST_NOISY_OF_SUMS:,}; ask for counts alone: "
                "cuboid(None, ...) or --counts-only"
            )
        if self.everything and len(content.listed(self.plan.tree.cuboid(0))):
            return self._least_squares(content, wanted, confidence)
        return self._of_survivors(content, wanted, confidence)

    def _least_squares(
        self, content: Content, wanted: Levels, confidence: Confidence
    ) -> pl.DataFrame:
        """Return all sums of what was measured, by least squares."""
        tree = self.plan.tree
        every, layers = measured_nodes(content.stored, self.outline, content.nodes)
        axes = zip(tree.axes, wanted, every[-1].codes, strict=True)
        own = {f"{a}": axis.ancestors(k)[code] for a, (axis, k, code) in enumerate(axes)}
        cells = pl.DataFrame(own)
        labels = cells.unique().sort(cells.columns).with_row_index("group")
        group = cells.join(labels, on=cells.columns, maintain_order="left")["group"]
        groups = group.cast(pl.Int64).to_numpy()
        sums = sums_of_leaves(layers, groups)
        counts = np.zeros(len(labels), dtype=np.int64)
        np.add.at(counts, groups, every[-1].counts)
        errors = CuboidErrors.of_sums(self.plan, len(labels), _total(content), None)
        columns = error_columns(counts, sums.estimate, sums.variance, errors, confidence)
        codes = tuple(labels[name].to_numpy() for name in cells.columns)
        return label_nodes(tree, wanted, codes, **{COUNT: counts}, **columns)

    def _of_survivors(
        self, content: Content, wanted: Levels, confidence: Confidence
    ) -> pl.DataFrame:
        """Return the listed sums, with estimates where little of them was not measured."""
        plan, total = self.plan, _total(content)
        codes, counts = listed_sums(content, wanted, plan.tree.chain[-1])
        sums = survivor_sums(content, wanted, codes)
        cells = plan.tree.cells(wanted)  # noise decided which of them are listed
        known = CuboidErrors.of_sums(plan, cells, total, None)

        def ends(sure: Confidence) -> tuple[Int64, Int64]:
            reach = known.half_width(sums.variance, sure)
            low, high = interval(sums.estimate, reach + sums.allowance, known.total)
            surer = replace(sure, coverage=1 - FIRMER * (1 - sure.coverage))
            firmer = known.half_width(sums.variance, surer)
            return np.where(sums.estimate > firmer + sums.allowance, low, 0), high

        low, high = ends(confidence)
        flags = outside(counts, *ends(replace(confidence, simultaneous=True)))
        errors = {
            ESTIMATE: sums.estimate, STANDARD_ERROR: np.sqrt(sums.variance), LOW: low, HIGH: high,
            CONTRADICTED: flags,
        }  # fmt: skip
        reach = known.half_width(sums.variance, Confidence(confidence.coverage))
        is_told = pl.when(pl.Series(sums.allowance <= WIDEST * reach))
        found = label_nodes(plan.tree, wanted, codes, **{COUNT: counts}, **errors)
        return found.with_columns(is_told.then(pl.col(name)).alias(name) for name in errors)

    # --- sums over areas ------------------------------------------------------------------------

    def area_work(self, sums: AreaSums, *, is_planned: bool) -> AreaWork:
        """Return that all noisy counts are gone over, for all areas at once."""
        del sums, is_planned
        noisy = sum(map(self.plan.tree.cells, noise_variances(self.plan)))
        return AreaWork(self.everything, noisy, MOST_NOISY_OF_SUMS)

    def area_estimates(
        self, content: Content, sums: AreaSums, on_fraction: OnFraction
    ) -> tuple[Float64, Float64]:
        """Return estimates and variances: float64 (areas, cells beside) both."""
        del on_fraction
        nodes, layers = measured_nodes(content.stored, self.outline, content.nodes)
        return _over_areas(sums, nodes[-1], layers)

    def area_variances(self, sums: AreaSums, on_fraction: OnFraction) -> Float64:
        """Return variances from public facts: float64 (areas, cells beside).

        Where counts below the total are public, every node is taken to have records.
        """
        del on_fraction
        plan, tree, released = self.plan, self.plan.tree, dict[Levels, Nodes]()
        for levels in plan.levels:
            sizes = [axis.size(level) for axis, level in zip(tree.axes, levels, strict=True)]
            public = plan.is_public(levels)
            rows = np.unravel_index(np.arange(tree.cells(levels) if public else 0), sizes)
            codes = tuple(row.astype(np.int32) for row in rows)
            released[levels] = Nodes.exact(codes, np.ones(len(codes[0]), dtype=np.int64))
        variances = noise_variances(plan)
        noisy = {levels: np.zeros(tree.cells(levels), dtype=np.int64) for levels in variances}
        stored = Stored(tree, noisy, variances, public_nodes(plan, released))
        nodes, layers = measured_nodes(stored, self.outline, released)
        return _over_areas(sums, nodes[-1], layers)[1]

    # --- another method -------------------------------------------------------------------------

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
        if not (self.everything or own):
            return estimated(stored, self.outline, method, listed), None
        return estimated_again(stored, method, plan), None


@dataclass(frozen=True, slots=True)
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
        errors = cumulative_error(self.plan)
        assert isinstance(errors, Decoded)  # noqa: S101 - of running sums they are
        cumulative, at = errors.estimate(sums, public), listed.codes[0]
        if public is None:
            here = slice(len(cumulative) - len(root), None)  # none below a total of 0
            root = replace(root, estimate=cumulative[here], variance=errors.before[here])
        bins = replace(listed, estimate=np.diff(cumulative)[at], variance=errors.leaves[at])
        return {ROOT: root, BINS: bins}

    def again(
        self, content: Content, method: Estimator
    ) -> tuple[dict[Levels, Nodes], Covariances | None]:
        """Return the total and the bins, whoever made them: counts decide nothing of the sums."""
        plan, listed, stored = self.plan, content.nodes, content.stored
        check_combines(method, plan)
        check_stored(stored)
        if plan.public is not None and not len(listed[ROOT]):
            return _of_an_empty_table(stored, listed), None
        return estimated_again(stored, method, plan), None


def _total(content: Content) -> int:
    """Return the released number of records."""
    return int(content.listed(content.plan.tree.cuboid(0)).counts.sum())


def _over_areas(sums: AreaSums, leaves: Nodes, layers: Sequence[Layer]) -> tuple[Float64, Float64]:
    """Return estimates and variances, group after group of areas that do not overlap."""
    tree, lookup, cells = sums.plan.tree, sums.lookup, sums.cells
    estimate, variance = np.zeros((2, len(lookup) * cells))
    if not len(leaves):
        return estimate.reshape(-1, cells), variance.reshape(-1, cells)
    axes = zip(tree.axes, sums.levels, leaves.codes, strict=True)
    node, beside = sums.split([axis.ancestors(k)[code] for axis, k, code in axes])
    combined, best = upward(layers), least_squares(layers)[-1].estimate
    for area_of in lookup.partitions(tree.axes[lookup.axis].size(lookup.level)):
        area = area_of[node]
        groups = np.where(area >= 0, area * cells + beside, len(variance))
        found = variance_of_sums(layers, groups, combined)
        of = np.unique(groups[area >= 0])
        variance[of] = found[of]
        estimate += np.bincount(groups, best, minlength=len(estimate) + 1)[:-1]
    return estimate.reshape(-1, cells), variance.reshape(-1, cells)


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
