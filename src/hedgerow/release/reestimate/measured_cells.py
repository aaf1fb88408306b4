"""Estimates of every measured cell of a cube, listed in its release or not, and their covariances.

Of the cuboids that are measured whole they are the best linear unbiased ones
(`hedgerow.release.cube.cube_pass`). Of the others those cells were measured that lie below positive
counts of the release, and their estimates are the noisy counts as they are.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from hedgerow.arrays import Float64, Int64
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.estimate.cube.shape import Cuboid, coarser
from hedgerow.estimate.cube.variances import Product
from hedgerow.estimate.families.euclidean import Euclidean
from hedgerow.estimate.workload.sparse import survivors_below
from hedgerow.plan.cube import PlannedCube
from hedgerow.plan.plan import Plan
from hedgerow.release.cube.cube_pass import CubePass
from hedgerow.release.descent.nodes import Nodes
from hedgerow.release.descent.source import Stored
from hedgerow.tables.tree import Levels, cell_numbers


def measured_cells(
    plan: Plan,
    stored: Stored,
    released: Mapping[Levels, Nodes],
    wanted: Sequence[Levels] | None = None,
) -> dict[Levels, Nodes]:
    """Return all measured cells of the cuboids of a cube, row by row.

    Their counts are the released ones, 0 where a cell is not listed; their estimates unbiased.

    Args:
        plan: of a cube.
        stored: its noisy counts.
        released: its listed cells.
        wanted: of which cuboids; all of them unless given.

    Raises:
        ReleaseError: the noisy counts are more or fewer than the plan's cells, or cells are listed
            that were not measured.
    """
    cube = plan.cube
    estimates = CubePass(plan, stored, Euclidean()).estimates()
    found = {}
    for levels in plan.levels if wanted is None else wanted:
        cuboid = cube.shape.given(levels)
        if cuboid in cube.whole:
            nodes = _whole(cube, cuboid, estimates[cuboid])
        else:
            nodes = _survivors(cube, cuboid, stored, released)
        _fill(plan, levels, nodes, released[levels])
        found[levels] = nodes
    return found


def _whole(cube: PlannedCube, cuboid: Cuboid, estimates: Float64) -> Nodes:
    """Return all cells of a cuboid, with counts of 0."""
    codes = tuple(code.ravel().astype(np.int32) for code in np.indices(estimates.shape))
    variance = np.zeros(estimates.size)
    if cube.public is None or any(k > e for k, e in zip(cuboid, cube.public, strict=True)):
        variance = cube.box_of[cuboid].variances.of_cells(cuboid).ravel()
    return Nodes(codes, np.zeros(estimates.size, np.int64), estimates.ravel(), variance)


def _survivors(
    cube: PlannedCube, cuboid: Cuboid, stored: Stored, released: Mapping[Levels, Nodes]
) -> Nodes:
    """Return the cells below positive counts of both margins, with counts of 0."""
    covers = coarser(cuboid, 0), coarser(cuboid, 1)
    margins = {c: released[cube.levels(c)] for c in covers}
    counted = {c: (nodes.codes, nodes.counts) for c, nodes in margins.items()}
    survivors = survivors_below(cube.shape, cuboid, covers, counted)
    noisy = stored.cells(cube.levels(cuboid), survivors)
    codes = survivors.nodes(np.arange(survivors.cells))
    order = np.lexsort(codes[::-1])
    counts, variance = np.zeros(len(order), np.int64), np.full(len(order), cube.noise[cuboid])
    codes = tuple(code[order] for code in codes)
    return Nodes(codes, counts, noisy[order].astype(np.float64), variance)


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
        plan: of a cube.
        cells: the cuboid of each, and its place there, row by row.

    Raises:
        EstimateError: a cell is not there, or its estimate is none of least squares over the same
            measurements as the others.
    """
    cube, names = plan.cube, [plan.tree.name_of(levels) for levels, _ in cells]
    cuboids = [cube.shape.given(levels) for levels, _ in cells]
    boxes = {id(box): box for box in map(cube.box_of.get, cuboids)}
    box = next(iter(boxes.values()), None)
    if box is None or len(boxes) > 1:
        raise EstimateError(
            f"{' and '.join(sorted(set(names)))} were not all measured whole and estimated from "
            f'the same noisy counts, so covariances are unknown; they exist with measure = "all"'
        )
    weights = [_alone(cube, *each) for each in zip(cuboids, cells, names, strict=True)]
    found = np.empty((len(cells), len(cells)))
    for i, one in enumerate(weights):
        for j, other in enumerate(weights[: i + 1]):
            found[i, j] = found[j, i] = box.variances.covariance(one, other)
    return found


def _alone(cube: PlannedCube, cuboid: Cuboid, cell: tuple[Levels, int], name: str) -> Product:
    """Return the weights of the sum that is one cell."""
    shape = cube.shape.shape(cuboid)
    if not 0 <= cell[1] < cube.shape.cells(cuboid):
        raise EstimateError(f"{name} has {cube.shape.cells(cuboid):,} cells, none is {cell[1]}")
    place = np.unravel_index(cell[1], shape)
    return [
        (level, np.bincount([int(at)], minlength=size).astype(np.float64))
        for level, at, size in zip(cuboid, place, shape, strict=True)
    ]
