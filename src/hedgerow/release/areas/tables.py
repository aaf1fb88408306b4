"""Errors of areas of a cube and of named cuboids, which are held as tables.

A sum over an area, by groups of the other axes, has weights that are a product over axes: its
variance follows from the covariance of such sums, which cubes and workloads with a dense factor
have in closed form. Of others estimates are found by iteration. They are linear in noisy counts,

    y = C Σ_c S_cᵀ m_c / v_c,

C being their covariance, S_c the sums of cuboid c, m_c its noisy counts and v_c their variance; so
from v_c u as the noisy counts of one cuboid, and 0 as those of all others, they are C w for the
weights w = S_cᵀ u: one estimation a sum, exact as far as iteration goes (a residual of 1e-9).
"""

from collections.abc import Callable
from functools import reduce

import numpy as np

from hedgerow.arrays import Float64, Levels
from hedgerow.errors import EstimateError, ReleaseError
from hedgerow.estimate.cube.shape import is_within
from hedgerow.estimate.cube.sums import spread
from hedgerow.estimate.cube.variances import Product
from hedgerow.plan.joint import JointTables
from hedgerow.release.areas.sums import AreaSums
from hedgerow.release.directory.stored import Content
from hedgerow.release.joint.joint_pass import JointPass


def estimates_of_tables(content: Content, sums: AreaSums) -> Float64:
    """Return the estimates: float64 (areas, cells beside)."""
    run = JointPass(content.plan, content.stored, content.estimator)
    return sums.of_table(run.estimates([sums.given])[sums.given])


def is_closed(joint: JointTables, cuboid: Levels) -> bool:
    """Return whether covariances of sums of a cuboid's cells are known without iteration."""
    nothing = [(k, np.zeros(n)) for k, n in zip(cuboid, joint.shape.shape(cuboid), strict=True)]
    try:
        joint.variances_of(cuboid).covariance(nothing, nothing)
    except EstimateError:
        return False
    return True


def variances_of_tables(
    sums: AreaSums, joint: JointTables, on_fraction: Callable[[float], None]
) -> Float64:
    """Return the variances: float64 (areas, cells beside).

    Args:
        sums: over which areas.
        joint: what the plan decides.
        on_fraction: told how much is done.

    Raises:
        ReleaseError: iteration does not reach its residual.
    """
    found = np.zeros((len(sums.lookup), sums.cells))
    known = joint.variances_of(sums.given)
    closed = is_closed(joint, sums.given)
    tables = {} if closed else _zeros(joint)
    for number in range(found.size):
        area, cell = divmod(number, sums.cells)
        weights = _weights(sums, joint, area, cell)
        if closed:
            found[area, cell] = known.covariance(weights, weights)
        else:
            found[area, cell] = _by_iteration(joint, sums.given, weights, tables)
        on_fraction((number + 1) / found.size)
    return np.maximum(found, 0.0)


def _weights(sums: AreaSums, joint: JointTables, area: int, cell: int) -> Product:
    """Return the weights of a sum, a product over axes."""
    place = np.unravel_index(cell, sums.sizes)
    found = list[tuple[int, Float64]]()
    axes = zip(sums.given, joint.shape.shape(sums.given), sums.beside, strict=True)
    for number, (level, size, beside) in enumerate(axes):
        weight = np.zeros(size)
        if number == sums.lookup.axis:
            weight[sums.lookup.members(area)] = 1.0
        else:
            weight[beside.number == place[number]] = 1.0
        found.append((level, weight))
    return found


def _zeros(joint: JointTables) -> dict[Levels, Float64]:
    """Return tables of zeros of all that estimates are made of."""
    known = [cuboid for cuboid in joint.noise if cuboid in joint.whole]
    if joint.public is not None:
        known.append(joint.public)
    return {cuboid: np.zeros(joint.shape.shape(cuboid)) for cuboid in known}


def _by_iteration(
    joint: JointTables, cuboid: Levels, weights: Product, tables: dict[Levels, Float64]
) -> float:
    """Return wᵀ C w; the tables of zeros stay as they are."""
    table = reduce(np.multiply.outer, [weight for _, weight in weights])
    finer = [each for each in tables if each in joint.noise and is_within(cuboid, each)]
    source = min(finer, key=joint.shape.cells)
    of_source = joint.noise[source] * spread(joint.shape, table, cuboid, source)
    try:
        found = joint.estimates({**tables, source: of_source}, [cuboid])[cuboid]
    except EstimateError as error:
        raise ReleaseError(f"errors of sums over areas: {error}") from None
    return float((table * found).sum())
