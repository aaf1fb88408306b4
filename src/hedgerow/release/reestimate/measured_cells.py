"""Estimates of every measured cell, listed in its release or not, and their covariances.

Of the cuboids that are measured whole they are the best linear unbiased ones
(`hedgerow.release.joint.joint_pass`). Of the others those cells were measured that lie below
positive counts of the release, and their estimates are the noisy counts as they are.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from hedgerow.arrays import Float64, Int64, Levels
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.workload.sparse import Survivors, survivors_below
from hedgerow.plan.joint import Joint, as_tables
from hedgerow.plan.plan import Plan
from hedgerow.plan.spine import PlannedSpine
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Stored
from hedgerow.release.joint.joint_pass import JointPass
from hedgerow.release.spine.answers import cells_along_spine
from hedgerow.tables.tree import cell_numbers


def measured_cells(
    plan: Plan,
    stored: Stored,
    released: Mapping[Levels, Nodes],
    wanted: Sequence[Levels] | None = None,
) -> dict[Levels, Nodes]:
    """Return all measured cells of cuboids that are estimated together, row by row.

    Their counts are the released ones, 0 where a cell is not listed; their estimates unbiased.

    Args:
        plan: whose cuboids are estimated together.
        stored: its noisy counts.
        released: its listed cells.
        wanted: of which cuboids; all of them unless given.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the plan's cells, or cells are listed
            that were not measured.
    """
    joint, found = plan.joint, dict[Levels, Nodes]()
    if isinstance(joint, PlannedSpine):
        for levels in wanted or plan.levels:
            found[levels] = cells_along_spine(plan, stored, levels)
            _fill(plan, levels, found[levels], released[levels])
        return found
    cuboids = {each: joint.shape.given(each) for each in (wanted or plan.levels)}
    whole = {cuboid for cuboid in cuboids.values() if cuboid in joint.whole}
    estimates = JointPass(plan, stored, Euclidean()).estimates(whole) if whole else {}
    for levels, cuboid in cuboids.items():
        if cuboid in joint.whole:
            nodes = _whole(joint, cuboid, estimates[cuboid])
        else:
            nodes = _survivors(joint, cuboid, stored, released)
        _fill(plan, levels, nodes, released[levels])
        found[levels] = nodes
    return found


def _whole(joint: Joint, cuboid: Levels, estimates: Float64) -> Nodes:
    """Return all cells of a cuboid, with counts of 0."""
    codes = tuple(code.ravel().astype(np.int32) for code in np.indices(estimates.shape))
    variance = np.zeros(estimates.size)
    if not joint.is_public(cuboid):
        variance = joint.variances_of(cuboid).of_cells(cuboid).ravel()
    return Nodes(codes, np.zeros(estimates.size, np.int64), estimates.ravel(), variance)


def _survivors(
    joint: Joint, cuboid: Levels, stored: Stored, released: Mapping[Levels, Nodes]
) -> Nodes:
    """Return the cells below positive counts of both margins, with counts of 0."""
    survivors = surviving_cells(joint, cuboid, released.__getitem__)
    noisy = stored.cells(joint.levels(cuboid), survivors)
    codes = survivors.nodes(np.arange(survivors.cells))
    order = np.lexsort(codes[::-1])
    counts, variance = np.zeros(len(order), np.int64), np.full(len(order), joint.noise[cuboid])
    codes = tuple(code[order] for code in codes)
    return Nodes(codes, counts, noisy[order].astype(np.float64), variance)


def surviving_cells(joint: Joint, cuboid: Levels, listed: Callable[[Levels], Nodes]) -> Survivors:
    """Return the cells of a cuboid that were measured below positive counts of its margins.

    Args:
        joint: what the plan decides.
        cuboid: of which survivors were measured.
        listed: of a margin its released cells.
    """
    covers = as_tables(joint).margins[cuboid]
    margins = {cover: listed(joint.levels(cover)) for cover in covers}
    counted = {cover: (nodes.codes, nodes.counts) for cover, nodes in margins.items()}
    return survivors_below(joint.shape, cuboid, covers, counted)


def _fill(plan: Plan, levels: Levels, nodes: Nodes, listed: Nodes) -> None:
    """Write the released counts to the cells, which are in order."""
    every: Int64 = cell_numbers(plan.tree, levels, nodes.codes)
    numbers = cell_numbers(plan.tree, levels, listed.codes)
    place = np.searchsorted(every, numbers)
    there = place[place < len(every)]
    if not np.array_equal(every[there], numbers):
        raise ReleaseError(f"{plan.tree.name_of(levels)} lists cells that were not measured")
    nodes.counts[place] = listed.counts


def covariance_of_cells(plan: Plan, cells: Sequence[tuple[Levels, int]]) -> Float64:
    """Return covariances of the estimates of `measured_cells`: float64 (cells, cells), records².

    Args:
        plan: whose cuboids are estimated together.
        cells: the cuboid of each, and its place there, row by row.

    Raises:
        EstimateError: a cell is not there, or its estimate is none of least squares over the same
            measurements as the others.
    """
    joint, names = plan.joint, [plan.tree.name_of(levels) for levels, _ in cells]
    cuboids = [joint.shape.given(levels) for levels, _ in cells]
    whole = [joint.variances_of(cuboid) for cuboid in cuboids if cuboid in joint.whole]
    if len(whole) < len(cuboids) or len({id(each) for each in whole}) != 1:
        raise EstimateError(
            f"{' and '.join(sorted(set(names)))} were not all measured whole and estimated from "
            f'the same noisy counts, so covariances are unknown; they exist with measure = "all"'
        )
    weights = [_alone(joint, *each) for each in zip(cuboids, cells, names, strict=True)]
    found = np.empty((len(cells), len(cells)))
    for i, one in enumerate(weights):
        for j, other in enumerate(weights[: i + 1]):
            found[i, j] = found[j, i] = whole[0].covariance(one, other)
    return found


def _alone(joint: Joint, cuboid: Levels, cell: tuple[Levels, int], name: str) -> Product:
    """Return the weights of the sum that is one cell."""
    shape = joint.shape.shape(cuboid)
    if not 0 <= cell[1] < joint.shape.cells(cuboid):
        raise EstimateError(f"{name} has {joint.shape.cells(cuboid):,} cells, none is {cell[1]}")
    place = np.unravel_index(cell[1], shape)
    return [
        (level, np.bincount([int(at)], minlength=size).astype(np.float64))
        for level, at, size in zip(cuboid, place, shape, strict=True)
    ]
