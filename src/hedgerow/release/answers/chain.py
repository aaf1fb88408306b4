"""What a chain tells of any cells: least squares over its tree, or below survivors what is left.

Errors of areas take a pass over the tree for each group of areas that do not overlap; variances are
those of `hedgerow.estimate.tree.sums`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

import numpy as np

from hedgerow.arrays import CellNumbers, Codes, Float64, Int64, Levels, int64_zeros
from hedgerow.distribution.cut_error import CutError
from hedgerow.distribution.plan import cumulative_error, places_of
from hedgerow.estimate.estimator import Estimator
from hedgerow.estimate.factors import Factors
from hedgerow.estimate.running_sums import Decoded
from hedgerow.estimate.tree.layers import Layer, start_of
from hedgerow.estimate.tree.least_squares import LeastSquares, upward
from hedgerow.estimate.tree.sums import covariance, sums_of_leaves, variance_of_sums
from hedgerow.limits import MOST_NOISY_OF_SUMS
from hedgerow.plan.chain import PlannedChain, PlannedSums
from hedgerow.plan.cuboids import Survivors
from hedgerow.release.answers.answers import Again, Answer, Answers
from hedgerow.release.answers.measured_nodes import (
    check_stored,
    estimated,
    estimated_again,
    least_squares_of,
    measured_nodes,
    unlisted,
)
from hedgerow.release.answers.sums import Sums, Totals
from hedgerow.release.descent.jobs import OnFraction
from hedgerow.release.descent.nodes import NOWHERE, Nodes, NodesOf, places
from hedgerow.release.descent.source import Stored, uneven
from hedgerow.release.descent.sums import DecodedRows
from hedgerow.release.directory.cuboid_errors import CuboidErrors
from hedgerow.release.directory.stored import Content, noise_variances
from hedgerow.release.passes import ESTIMATION, pass_of
from hedgerow.release.preflight import check_estimator
from hedgerow.release.survivor_sums import survivor_sums
from hedgerow.tables.tree import cell_codes


class ChainAnswers(Answers[PlannedChain]):
    """Those of nested cuboids."""

    most_noisy = MOST_NOISY_OF_SUMS
    of_all = "a cuboid off the tree"

    # --- cells ----------------------------------------------------------------------------------

    def cells(self, stored: Stored, wanted: Sequence[Levels]) -> NodesOf:
        """Return all measured nodes of depths, in tree order.

        Below survivors these are the nodes of depths that were measured, or are public, by their
        counts alone; nothing is read of any depth below the last one.
        """
        if self.design.everything:
            every, _ = least_squares_of(stored, self.design.outline)
            return {levels: every[sum(levels)] for levels in wanted}
        measured = self.design.outline.measured
        is_public = self.plan.is_public
        by_depth = {sum(k): k for k in wanted if sum(k) in measured or is_public(k)}
        if not by_depth:
            return {}
        nodes, layers = measured_nodes(stored, self.design.outline, max(by_depth))
        return {
            levels: replace(
                nodes[depth],
                estimate=np.asarray(layers[depth].noisy, dtype=np.float64),
                variance=np.broadcast_to(layers[depth].variance, len(nodes[depth])),
            )
            for depth, levels in by_depth.items()
        }

    def noisy_cells(self, content: Content, levels: Levels) -> CellNumbers:
        """Return the nodes of a depth that were measured, in tree order, and their noisy counts."""
        nodes, _ = measured_nodes(content.stored, self.design.outline, sum(levels))
        return nodes[-1].codes, content.measured[levels]

    def again(self, content: Content, method: Estimator) -> Again:
        """Return the nodes of each depth.

        The release's own method, below survivors, makes the release again; others, and that of
        another version of the estimation, are given the nodes that it lists.
        """
        stored = content.stored
        plan = self.plan
        check_stored(stored)
        check_estimator(method, plan)
        if isinstance(method, LeastSquares):
            nodes, layers = least_squares_of(stored, self.design.outline)
            return dict(zip(plan.levels, nodes, strict=True)), partial(covariance_of_nodes, layers)
        own = method.to_dict() == content.estimator.to_dict() and content.estimation == ESTIMATION
        if isinstance(plan.measure, Survivors) and not own:
            return estimated(stored, self.design.outline, method, again=True), None
        return estimated_again(stored, pass_of(plan, stored, method)), None

    def factors(self, content: Content, levels: Levels, cells: Nodes) -> Factors | None:
        """Return the covariance of the estimates of all measured nodes of a depth."""
        if not self.design.everything:
            return super().factors(content, levels, cells)
        _, layers = measured_nodes(content.stored, self.design.outline)
        combined = [variance for _, variance in upward(layers)][: sum(levels) + 1]
        if not all(map(np.isfinite, map(np.max, combined))):
            return None
        starts = [np.diff(start_of(layer)) for layer in layers[1 : sum(levels) + 1]]
        parents = [np.repeat(np.arange(len(many)), many) for many in starts]
        return Factors.along(combined[0], parents, combined[1:])[-1]

    # --- sums -----------------------------------------------------------------------------------

    def answer(self, content: Content, sums: Sums, on_fraction: OnFraction) -> Answer:
        """Return all sums of what was measured, or below survivors those that are listed."""
        del on_fraction
        total = content.total
        if self.design.everything:
            answer = _least_squares(sums, *measured_nodes(content.stored, self.design.outline))
            return *answer, CuboidErrors.of_sums(self.plan, len(answer[0]), total)
        numbers, counts = sums.counted(content)
        codes = cell_codes(self.plan.tree, sums.levels, numbers)
        estimate, variance, allowance = survivor_sums(content, sums.levels, codes)
        # noise decided which of all sums are listed
        errors = CuboidErrors.of_sums(self.plan, sums.many, total)
        return numbers, counts, estimate, variance, replace(errors, allowance=allowance)

    def each_variances(self, content: Content, each: Sequence[Sums]) -> list[Float64]:
        """Return the variances of the same estimates, of each of several kinds of sums."""
        return _variances(each, *measured_nodes(content.stored, self.design.outline))

    def cut_errors(self, content: Content, sums: Sums, number: int) -> CutError | None:
        """Return those of places whose bins end the chain: nothing else tells of their bins."""
        del number  # places name all axes but that of the bins
        tree = self.plan.tree
        place = places_of(tree)
        if place is None or not sums.is_cuboid or sums.levels != (levels := tree.chain[place]):
            return None
        if not self.design.everything or self.design.public_depth > place:
            return None
        nodes = self.cells(content.stored, [levels])[levels]
        if len(nodes) < sums.many:  # below public counts of 0 nothing is measured
            return None
        own = np.empty((sums.many, 1))
        own[sums.key(levels, nodes.codes), 0] = nodes.variance
        return replace(cast("CutError", cumulative_error(self.plan)), total_variance=own)

    def planned_variances(self, sums: Sums, on_fraction: OnFraction) -> Float64:
        """Return the variances of all sums over areas from public facts: float64 (sums).

        Where counts below the total are public, every node is taken to have records.
        """
        del on_fraction
        plan = self.plan
        tree = plan.tree
        variances = noise_variances(plan) | dict.fromkeys(filter(plan.is_public, plan.levels), 0.0)
        noisy = {levels: int64_zeros(tree.cells(levels)) for levels in variances}
        every = measured_nodes(*unlisted(self.design.outline, noisy, variances))
        return _variances([sums], *every)[0]


class SumsAnswers(Answers[PlannedSums]):
    """Those of running sums in rows: by bin, or over all bins."""

    most_noisy = MOST_NOISY_OF_SUMS

    def cells(self, stored: Stored, wanted: Sequence[Levels]) -> NodesOf:
        """Return the nodes of depths, public or decoded."""
        decoded = DecodedRows.of(self.design, stored)
        found = NodesOf()
        for levels in wanted:
            depth = sum(levels)
            listed = stored.nodes[levels]
            if depth <= self.design.public_depth:
                found[levels] = decoded.public[depth]
                continue
            codes = decoded.codes(depth)
            place = places(listed.codes, codes)
            counts = int64_zeros(len(codes[0]))
            if (place == NOWHERE).any():
                raise uneven(self.plan.tree, levels)
            counts[place] = listed.counts
            found[levels] = decoded.nodes(depth, counts)
        return found

    def noisy_cells(self, content: Content, levels: Levels) -> CellNumbers:
        """Return the bin of each running sum, and the noisy sums."""
        decoded = DecodedRows.of(self.design, content.stored)
        return decoded.codes(sum(levels)), decoded.noisy

    def again(self, content: Content, method: Estimator) -> Again:
        """Return the nodes of each depth."""
        check_stored(content.stored)
        check_estimator(method, self.plan)
        return estimated_again(content.stored, pass_of(self.plan, content.stored, method)), None

    def answer(self, content: Content, sums: Sums, on_fraction: OnFraction) -> Answer:
        """Return all sums, added up from decoded bins."""
        del on_fraction
        finest = self.plan.tree.finest
        bins = self.cells(content.stored, [finest])[finest]
        keys, numbers, counts = sums.added(finest, bins)
        estimates = Totals.of(sums, numbers)
        estimates.add(keys, bins.estimate)
        variance = self._variances(sums, self._errors(content, sums))[numbers]
        errors = CuboidErrors.of_sums(self.plan, len(numbers), content.total)
        return numbers, counts, estimates.sums, variance, errors

    def planned_variances(self, sums: Sums, on_fraction: OnFraction) -> Float64:
        """Return the variances of all sums from public facts: float64 (sums).

        Where the totals of rows are public, every row is taken to have records.
        """
        del on_fraction
        return self._variances(sums, self._of_places(sums, None))

    def _variances(self, sums: Sums, errors: Decoded) -> Float64:
        """Return the variances of all sums by bins, or over all, from those of their places."""
        last = self.plan.tree.steps[-1][0]
        each = errors.leaves if sums.levels[last] else errors.cuts[:, -1:]
        places = sums.sizes[:last] + sums.sizes[last + 1 :]
        return np.moveaxis(each.reshape(-1, *places, each.shape[1]), -1, last + 1).ravel()

    def cut_errors(self, content: Content, sums: Sums, number: int) -> Decoded | None:
        """Return those of the bins that end the chain."""
        is_last = number == self.plan.tree.steps[-1][0]
        return self._errors(content, sums) if is_last else None

    def _errors(self, content: Content, sums: Sums) -> Decoded:
        """Return the errors of counts before cuts, by place, whichever bins the sums are of."""
        public = self.plan.public
        nodes = None if public is None else content.nodes[public]
        if nodes is None or (len(nodes) and public != self.plan.tree.chain[-2]):
            return self._of_places(sums, None)
        return self._of_places(sums, nodes.codes)  # below public counts of 0 nothing is measured

    def _of_places(self, sums: Sums, codes: Codes | None) -> Decoded:
        """Return them where the rows of these codes alone are measured; of None all rows."""
        tree = self.plan.tree
        codes = self.design.above[-1][0] if codes is None else codes
        bins = tree.axes[tree.steps[-1][0]].name
        by = {name: level for name, level in sums.by.items() if name != bins}
        own = {name: groups for name, groups in sums.own.items() if name != bins}
        of_rows = Sums(self.plan, by, sums.lookup, own)
        rows = Totals.of(of_rows, np.arange(of_rows.many), np.int64)
        rows.add(of_rows.key(tree.chain[-2], codes), np.ones(len(codes[0]), dtype=np.int64))
        return self.design.of_rows(rows.sums)

    def fault_of_areas(self, sums: Sums, *, is_planned: bool = False) -> str | None:
        """Return why sums over areas have no errors: they are made of bins."""
        if sums.lookup is not None and sums.lookup.axis == self.plan.tree.steps[-1][0]:
            return (
                "errors of areas that are made of bins are unknown where running sums are "
                'measured; a plan with measure = "all" has them'
            )
        return super().fault_of_areas(sums, is_planned=is_planned)


def _least_squares(
    sums: Sums, nodes: Sequence[Nodes], layers: Sequence[Layer]
) -> tuple[Int64, Int64, Float64, Float64]:
    """Return all sums over areas, or else those that have measured leaves.

    Returns:
        int64 (sums): their numbers; released counts; and float64 (sums): estimates and variances.
    """
    keys, numbers, counts = sums.added(sums.plan.tree.finest, nodes[-1])
    if not len(nodes[-1]):
        return numbers, counts, *np.zeros((2, len(numbers)))
    groups = [np.searchsorted(numbers, keys)] if sums.lookup is None else _groups(sums, keys)
    solution = sums_of_leaves(layers, groups, len(numbers))
    return numbers, counts, solution.estimate, solution.variance


def _variances(
    each: Sequence[Sums], nodes: Sequence[Nodes], layers: Sequence[Layer]
) -> list[Float64]:
    """Return the variances of all sums of several kinds; 0 of those without measured leaves."""
    combined = upward(layers)
    variances = []
    for sums in each:
        own = np.zeros(sums.many + 1)
        for groups in _groups(sums, sums.key(sums.plan.tree.finest, nodes[-1].codes)):
            others = np.where(groups < 0, sums.many, groups)
            here = variance_of_sums(layers, others, combined)
            own[: len(here)] += here  # each sum is in one of the groups
        variances.append(own[:-1])
    return variances


def _groups(sums: Sums, keys: Int64) -> Iterable[Int64]:
    """Return the number of each leaf's sum, -1 for none, where sums overlap several times.

    Args:
        sums: over areas, or any others.
        keys: int64 (leaves).
    """
    if (lookup := sums.lookup) is None:
        return [keys]
    node, cell = np.divmod(keys, sums.cells)
    areas = lookup.partitions(sums.area_nodes)
    return (np.where(area[node] < 0, -1, area[node] * sums.cells + cell) for area in areas)


def covariance_of_nodes(layers: Sequence[Layer], cells: Sequence[tuple[Levels, int]]) -> Float64:
    """Return covariances of nodes, each a depth's cuboid and its place there."""
    return covariance(layers, [(sum(levels), row) for levels, row in cells])
